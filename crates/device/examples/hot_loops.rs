//! Runs one hot loop of the CPU device a number of times: `hot_loops ISA LOOP TIMES SEED`. Without arguments it lists `ISA LOOP ELEMENTS`,
//! the elements of one time, of those that callgrind can follow.
//!
//! `cargo xtask counts` runs it under callgrind and compares the instructions per element with `bench/instructions.toml`; and it compares the
//! instructions on values of one seed with those on values of another, which are as many if no branch depends on a value.

#[path = "hot_loops/authenticated.rs"]
mod authenticated;
#[path = "hot_loops/rows.rs"]
mod rows;
#[path = "hot_loops/silent.rs"]
mod silent;

use std::process::ExitCode;
use std::sync::Arc;

use veil_device::ot::{COLUMNS, Choices, Low, column_bytes};
use veil_device::{
    ColumnType, Command, Cpu, Device, Dst, Form, Frame, Garbling, Instr, Isa, KeyId, Layout,
    Lifting, Op, Ot, Outcome, PrfCall, Program, Proof, Region, Residency, Span, Src, Tag, Trees,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

/// Instruction sets, as the file of counts names them.
const ISAS: [(&str, Isa); 4] = [
    ("avx512", Isa::Avx512),
    ("avx2_vaes", Isa::Avx2Vaes),
    ("avx2", Isa::Avx2),
    ("portable", Isa::Portable),
];

/// Wires of a layer: operands in the first two thirds of the slots, products in the last.
const WIRES: u32 = 64;

/// A loop: a program over slots of a ring, and which operation runs it.
struct HotLoop {
    name: &'static str,
    ring: Ring,
    /// Rows of a chunk: the workspace stays in the second cache level.
    rows: u32,
    op: Op,
    code: Vec<Instr>,
    temps: u32,
    /// What one element is counted by: instructions of the program, or items drawn.
    items: u32,
}

fn hot_loops() -> Vec<HotLoop> {
    let product = |k: u32| Instr::Product {
        pairs: k..k + 1,
        out: 2 * WIRES + k,
        index: k,
    };
    let sum = |k: u32| Instr::ProductSum {
        pairs: k..k + 1,
        out: k,
        index: k,
    };
    // Eight sources each, as the linear layers of AES have them; no other instruction reads the middle values.
    let xors = (0..WIRES).flat_map(|k| {
        let slot = move |n: u32| Src::Slot((5 * k + 7 * n) % (2 * WIRES));
        (0..7).map(move |n| {
            let before = if n == 0 {
                slot(0)
            } else {
                Src::Temp(6 * k + n - 1)
            };
            let to = if n == 6 {
                Dst::Slot(2 * WIRES + k)
            } else {
                Dst::Temp(6 * k + n)
            };
            Instr::Add(before, slot(n + 1), to)
        })
    });
    let bits = |name, op, code: Vec<Instr>, temps| {
        let items = code.len() as u32;
        HotLoop {
            name,
            ring: Ring::Bits,
            rows: 8192,
            op,
            code,
            temps,
            items,
        }
    };
    let words = |name, op, code: Vec<Instr>| HotLoop {
        name,
        ring: Ring::Z64,
        rows: 512,
        op,
        code,
        temps: 0,
        items: WIRES,
    };
    let long_words = |name, op, code: Vec<Instr>| HotLoop {
        ring: Ring::Z128,
        rows: 256,
        ..words(name, op, code)
    };
    let labels = |name, op, rows| HotLoop {
        name,
        ring: Ring::Bits,
        rows,
        op,
        code: (0..WIRES).map(product).collect(),
        temps: 0,
        items: WIRES,
    };
    // Counted by columns of the destination, or of the factors.
    let integers = |name, ring, op, columns| HotLoop {
        name,
        ring,
        rows: 512,
        op,
        code: vec![],
        temps: 0,
        items: columns,
    };
    let combine = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    let terms = Op::Lifting(Lifting::Terms {
        terms: [(1, 0), (2, 0)],
        keeps: [Some(1), None],
    });
    let transfer = |name, step| HotLoop {
        name,
        ring: Ring::Bits,
        rows: 1024,
        op: Op::Ot(step),
        code: vec![],
        temps: 0,
        items: CHOICES,
    };
    let (trees, offset) = (Trees::default(), OFFSET);
    let garble = |scheme| Op::Garble {
        scheme,
        offset: KeyId(1),
    };
    let evaluate = |scheme| Op::Evaluate { scheme };
    let (half, three) = (Garbling::HalfGates, Garbling::ThreeHalves);
    // A block for each wire in each row.
    let authenticated = authenticated::steps().into_iter();
    let authenticated = authenticated.map(|(name, step)| labels(name, Op::Ag(step), 16));
    let mut all = vec![
        labels("garble", garble(half), 32),
        labels("garble_one", garble(half), 1),
        labels("evaluate", evaluate(half), 32),
        labels("evaluate_one", evaluate(half), 1),
        labels("garble_three", garble(three), 32),
        labels("garble_three_one", garble(three), 1),
        labels("evaluate_three", evaluate(three), 32),
        labels("evaluate_three_one", evaluate(three), 1),
        bits(
            "and",
            Op::Product(Form::replicated(Ring::Bits)),
            (0..WIRES).map(product).collect(),
            0,
        ),
        bits("xor", Op::Linear, xors.collect(), 6 * WIRES),
        bits(
            "add_received",
            Op::AddReceived { component: 1 },
            (0..WIRES).map(product).collect(),
            0,
        ),
        words(
            "mul64",
            Op::Product(Form::replicated(Ring::Z64)),
            (0..WIRES).map(product).collect(),
        ),
        long_words(
            "mul128",
            Op::Product(Form::replicated(Ring::Z128)),
            (0..WIRES).map(product).collect(),
        ),
        bits(
            "and_four",
            Op::Product(Form::fourfold(Ring::Bits, false, false)),
            (0..WIRES).map(product).collect(),
            0,
        ),
        words(
            "mul64_four",
            Op::Product(Form::fourfold(Ring::Z64, false, false)),
            (0..WIRES).map(product).collect(),
        ),
        long_words(
            "mul128_four",
            Op::Product(Form::fourfold(Ring::Z128, false, false)),
            (0..WIRES).map(product).collect(),
        ),
        words(
            "row_sum",
            Op::Product(Form::replicated(Ring::Z64)),
            (0..WIRES).map(sum).collect(),
        ),
        long_words(
            "row_sum128",
            Op::Product(Form::replicated(Ring::Z128)),
            (0..WIRES).map(sum).collect(),
        ),
        long_words(
            "times128",
            Op::Linear,
            (0..WIRES)
                .map(|k| Instr::Times(Src::Slot(k), TIMES, Dst::Slot(2 * WIRES + k)))
                .collect(),
        ),
        long_words(
            "total128",
            Op::Linear,
            (0..WIRES).map(|k| Instr::Sum(Src::Slot(k), k)).collect(),
        ),
        words("random", Op::Random, vec![]),
        integers("split64", Ring::Z64, Op::Split { first: 0 }, 64),
        integers("split64_one", Ring::Z64, Op::Split { first: 63 }, 1),
        integers("split128", Ring::Z128, Op::Split { first: 0 }, 128),
        integers("split128_one", Ring::Z128, Op::Split { first: 63 }, 1),
        integers("lift64", Ring::Z64, Op::Lift, 8),
        integers("lift128", Ring::Z128, Op::Lift, 8),
        integers("lift_share32", Ring::Z32, Op::Lifting(Lifting::Share), 8),
        integers("lift_share64", Ring::Z64, Op::Lifting(Lifting::Share), 8),
        integers("lift_turn32", Ring::Z32, Op::Lifting(Lifting::Turn), 8),
        integers("lift_turn64", Ring::Z64, Op::Lifting(Lifting::Turn), 8),
        integers("lift_terms32", Ring::Z32, terms.clone(), 8),
        integers("lift_terms64", Ring::Z64, terms, 8),
        integers("scale64", Ring::Z64, Op::Scale, 8),
        integers("scale128", Ring::Z128, Op::Scale, 8),
        integers("shift64", Ring::Z64, Op::Shift { by: 20 }, 1),
        integers("shift128", Ring::Z128, Op::Shift { by: 20 }, 1),
        integers("widen", Ring::Z128, Op::Resize, 8),
        integers("narrow", Ring::Z64, Op::Resize, 8),
        integers("dot64", Ring::Z64, Op::Dot, 8),
        integers("dot128", Ring::Z128, Op::Dot, 8),
        integers("combine", Ring::Bits, combine, 64),
        transfer("ot_receive", Ot::Receive { trees }),
        transfer("ot_send", Ot::Send { trees, offset }),
        transfer(
            "ot_fold",
            Ot::Fold {
                items: CHOICES,
                of: Choices::Rows,
            },
        ),
        transfer("ot_compare", Ot::Compare { offset }),
        transfer("ot_labels", Ot::Labels { low: Low::Zero }),
        transfer(
            "ot_keys",
            Ot::Keys {
                offset: Some(offset),
            },
        ),
        transfer("ot_choose", Ot::Choose),
    ];
    all.extend(authenticated);
    all.extend(silent::steps().into_iter().map(|(name, step)| HotLoop {
        name,
        ring: Ring::Bits,
        rows: 1024,
        op: Op::Silent(step),
        code: vec![],
        temps: 0,
        items: silent::ITEMS,
    }));
    // Counted by rows.
    all.extend(rows::steps().into_iter().map(|(name, step)| HotLoop {
        name,
        ring: Ring::Bits,
        rows: 4096,
        op: Op::Proof(Proof::Rows(step)),
        code: vec![],
        temps: 0,
        items: 1,
    }));
    all
}

impl HotLoop {
    fn elements(&self) -> u64 {
        u64::from(self.items) * u64::from(self.rows)
    }

    /// How tables are made, in a loop over labels.
    fn scheme(&self) -> Option<Garbling> {
        match self.op {
            Op::Garble { scheme, .. } | Op::Evaluate { scheme } => Some(scheme),
            _ => None,
        }
    }

    /// Whether callgrind knows all its instructions: it has neither AVX-512 nor VAES, and in three-halves with AES-NI there is a move of
    /// half a register that it does not know.
    fn is_followed(&self, isa: Isa) -> bool {
        match isa {
            Isa::Avx512 | Isa::Avx2Vaes => false,
            Isa::Avx2 => self.scheme() != Some(Garbling::ThreeHalves),
            Isa::Portable => true,
        }
    }

    /// Products among four parties.
    fn is_fourfold(&self) -> bool {
        matches!(self.op, Op::Product(form) if form.crosses.len() == 3)
    }

    fn run(&self, isa: Isa, times: u64, seed: u8) {
        if let Op::Ot(step) = self.op {
            return transfers(isa, self.rows, (step, times), seed);
        }
        if let Op::Ag(step) = self.op {
            return authenticated::run(isa, self.rows, (step, times), seed);
        }
        if let Op::Proof(Proof::Rows(step)) = self.op {
            return rows::run(isa, self.rows, (step, times), seed);
        }
        if let Op::Silent(step) = self.op {
            return silent::run(isa, self.rows, (step, times), seed);
        }
        if self.code.is_empty() && self.op != Op::Random {
            return self.columns(isa, times, seed);
        }
        let region = |residency, column, components, count| Region {
            residency,
            column,
            components,
            count,
        };
        let mut layout = Layout {
            chunk_rows: self.rows,
            regions: vec![],
        };
        let (rows, one, parts) = if self.scheme().is_some() {
            (ColumnType::Labels, ColumnType::Label, 1)
        } else {
            let parts = if self.is_fourfold() { 3 } else { 2 };
            (
                ColumnType::Rows(self.ring),
                ColumnType::One(self.ring),
                parts,
            )
        };
        // Of two components, one is the message of products, and what comes lands in the other.
        let residency = if parts == 2 {
            Residency::Plane
        } else {
            Residency::Resident
        };
        let slots = layout.add(region(residency, rows, parts, 3 * WIRES));
        let job_wide = layout.add(region(Residency::Mapped, one, parts, 1));
        let sums = layout.add(region(Residency::Mapped, one, parts, WIRES));
        // The messages of products, and of sums; or tables of both kinds.
        let tables = self.scheme().map_or(&[][..], |scheme| scheme.tables());
        let kind = |k: usize, other: ColumnType| match tables.get(k) {
            Some((item, count)) => region(Residency::Mapped, *item, 1, count * WIRES),
            None => region(Residency::Mapped, other, 1, WIRES),
        };
        let message = layout.add(kind(0, rows));
        let sum_message = layout.add(kind(1, one));
        let mut messages = [message, sum_message].map(|r| layout.all(r, 0)).to_vec();
        if self.is_fourfold() {
            messages.clear();
            for column in [rows, one].into_iter().flat_map(|column| [column; 3]) {
                let apart = layout.add(region(Residency::Mapped, column, 1, WIRES));
                messages.push(layout.all(apart, 0));
            }
        }
        let program = Arc::new(Program {
            ring: self.ring,
            slots,
            job_wide,
            sums,
            temps: self.temps,
            pairs: (0..WIRES)
                .map(|k| (Src::Slot(k), Src::Slot(WIRES + k)))
                .collect(),
            code: self.code.clone(),
        });

        let mut device = Cpu::with(isa);
        for key in [0, 1] {
            device
                .load_key(KeyId(key), &Secret::new([key as u8 + 2 * seed; 16]))
                .expect("a key");
        }
        let id = device
            .load(&program, &layout)
            .expect("a program that fits the layout");
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: self.rows,
        };
        let workspace = device.open(&layout, frame).expect("a small workspace");

        let call = |key| PrfCall {
            key: KeyId(key),
            tag: DomainTag(0x0100),
            first: 0,
        };
        if matches!(self.op, Op::Product(_)) && !self.is_fourfold() {
            // The own component of the products is their message.
            messages[0].count = 0;
        }
        let random = |to: Span| {
            let mut command = Command::new(Op::Random, vec![], vec![to]);
            command.calls = vec![call(0)];
            command
        };
        let mut fill: Vec<Command> = (0..parts)
            .map(|part| random(layout.all(slots, part)))
            .collect();
        if self.scheme().is_some() {
            fill.extend(messages.iter().map(|to| random(*to)));
        }
        let mut command = match self.op {
            Op::Random => random(layout.all(message, 0)),
            Op::AddReceived { .. } | Op::Evaluate { .. } => {
                Command::new(self.op.clone(), messages, vec![])
            }
            _ => Command::new(self.op.clone(), vec![], messages),
        };
        if self.scheme().is_some() || matches!(self.op, Op::Product(_)) {
            command.calls = [0, 1].repeat(2).into_iter().map(call).collect();
        }
        if self.is_fourfold() {
            // Each has a tag of its own.
            let joint = |k: u16| PrfCall {
                key: KeyId(k % 2),
                tag: DomainTag(0x0800 | k),
                first: 0,
            };
            command.calls = [0, 1, 2, 3].repeat(2).into_iter().map(joint).collect();
        }
        command.program = Some(id);
        let commands = [command];
        submit(&mut device, workspace, &fill);
        for _ in 0..times {
            submit(&mut device, workspace, &commands);
        }
        device.close(workspace);
    }
}

/// A constant factor of 128 bits.
const TIMES: u128 = 0x0123_4567_89ab_cdef_0fed_cba9_8765_4321;

impl HotLoop {
    /// A command on columns of integers and bits, without a program.
    fn columns(&self, isa: Isa, times: u64, seed: u8) {
        let mut layout = Layout {
            chunk_rows: self.rows,
            regions: vec![],
        };
        let mut add = |column, count| {
            layout.add(Region {
                residency: Residency::Resident,
                column,
                components: 2,
                count,
            })
        };
        let bits = add(ColumnType::Rows(Ring::Bits), 128);
        let [narrow, words, long_words] =
            [Ring::Z32, Ring::Z64, Ring::Z128].map(|r| add(ColumnType::Rows(r), 24));
        let sum = add(ColumnType::One(self.ring), 1);
        let (other, same) = match self.ring {
            Ring::Bits => (bits, bits),
            Ring::Z32 => (words, narrow),
            Ring::Z64 => (long_words, words),
            Ring::Z128 => (words, long_words),
        };
        let span = |region, component, first, count| Span {
            region,
            component,
            first,
            count,
        };
        let n = self.items;
        let (src, to) = match self.op {
            Op::Split { .. } => (vec![span(same, 0, 0, 1)], span(bits, 1, 0, n)),
            Op::Lift | Op::Lifting(_) => (vec![span(bits, 0, 0, n)], span(same, 0, 8, n)),
            Op::Resize => (vec![span(other, 0, 0, n)], span(same, 0, 8, n)),
            Op::Dot => {
                let value = |component| span(same, component, 0, n);
                let factor = |component| span(words, component, 8, n);
                let src = vec![factor(0), factor(1), value(0), value(1)];
                (src, span(sum, 0, 0, 1))
            }
            Op::Combine { .. } => {
                let src = [0, 64].map(|first| span(same, 0, first, n));
                (src.to_vec(), span(same, 1, 0, n))
            }
            Op::Scale => {
                let src = [0, 8].map(|first| span(same, 0, first, n));
                (src.to_vec(), span(same, 0, 16, n))
            }
            _ => (vec![span(same, 0, 0, n)], span(same, 0, 8, n)),
        };
        let mut device = Cpu::with(isa);
        let key = Secret::new([2 * seed; 16]);
        device.load_key(KeyId(0), &key).expect("a key");
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: self.rows,
        };
        let workspace = device.open(&layout, frame).expect("a small workspace");
        let regions = [bits, narrow, words, long_words];
        let all = regions.map(|region| [0, 1].map(|part| layout.all(region, part)));
        let fill: Vec<Command> = (all.as_flattened().iter().zip(0..))
            .map(|(to, k)| {
                let mut command = Command::new(Op::Random, vec![], vec![*to]);
                command.calls = vec![PrfCall {
                    key: KeyId(0),
                    tag: DomainTag(0x0100),
                    first: k << 32,
                }];
                command
            })
            .collect();
        submit(&mut device, workspace, &fill);
        let mut command = Command::new(self.op.clone(), src, vec![to]);
        if let Op::Lifting(step) = self.op {
            command.dst.insert(0, span(same, 0, 0, n));
            if let Lifting::Terms { .. } = step {
                command.src.clear();
                let more = [(0, 16), (1, 0), (1, 8)];
                command
                    .dst
                    .extend(more.map(|(part, first)| span(same, part, first, n)));
            }
            let calls = (1..=step.calls() as u64).map(|k| PrfCall {
                key: KeyId(0),
                tag: DomainTag(0x0200),
                first: k << 40,
            });
            command.calls = calls.collect();
        }
        for _ in 0..times {
            submit(&mut device, workspace, std::slice::from_ref(&command));
        }
        device.close(workspace);
    }
}

/// Items of choices of a transfer.
const CHOICES: u32 = 4;

/// The offset of a garbler, and of a sender of transfers.
const OFFSET: KeyId = KeyId(1);

/// Runs a step of transfers on choices, leaves, columns, labels and an offset of a seed.
fn transfers(isa: Isa, rows: u32, (step, times): (Ot, u64), seed: u8) {
    const LEAVES: KeyId = KeyId(16);
    let trees = Trees::default();
    let mut device = Cpu::with(isa);
    let leaves = trees.count() * trees.leaves();
    let keys = [KeyId(0), OFFSET].into_iter();
    for id in keys.chain((0..leaves as u16).map(|leaf| KeyId(LEAVES.0 + leaf))) {
        // The offset is odd.
        let key = Secret::new([id.0 as u8 + 2 * seed; 16]);
        device.load_key(id, &key).expect("a key");
    }
    let mut layout = Layout {
        chunk_rows: rows,
        regions: vec![],
    };
    let mut add = |residency, column, count| {
        let region = layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        });
        layout.all(region, 0)
    };
    let (bits, block) = (ColumnType::Rows(Ring::Bits), ColumnType::Bytes(16));
    let column = ColumnType::Bytes(column_bytes(Choices::Rows, CHOICES, rows) as u32);
    let choices = add(Residency::Resident, bits, CHOICES);
    let corrections = add(Residency::Mapped, bits, CHOICES * trees.count());
    let last = add(Residency::Mapped, block, trees.count() - 1);
    let columns = add(Residency::Resident, column, COLUMNS + 1);
    let challenge = add(Residency::Mapped, block, 1);
    let folds = [COLUMNS, COLUMNS + 1].map(|count| add(Residency::Mapped, block, count));
    let labels = [(); 3].map(|()| add(Residency::Resident, ColumnType::Labels, CHOICES));
    let without_choices = Span {
        count: COLUMNS,
        ..columns
    };
    let command = |step, src: &[Span], dst: &[Span], key, tag: u16| {
        let mut command = Command::new(Op::Ot(step), src.to_vec(), dst.to_vec());
        command.calls = vec![PrfCall {
            key,
            tag: DomainTag(tag),
            first: 0,
        }];
        command
    };
    let random = |to: Span, first| {
        let mut command = Command::new(Op::Random, vec![], vec![to]);
        command.calls = vec![PrfCall {
            key: KeyId(0),
            tag: DomainTag(0x0100),
            first,
        }];
        command
    };
    let from = [corrections, last];
    let made = [corrections, last, columns];
    let all = |step| match step {
        Ot::Receive { .. } => command(step, &[choices], &made, LEAVES, DomainTag::OT_LEAF.0),
        Ot::Send { .. } => command(
            step,
            &from,
            &[without_choices],
            LEAVES,
            DomainTag::OT_LEAF.0,
        ),
        Ot::Fold { .. } => command(step, &[columns, challenge], &[folds[1]], LEAVES, 0),
        Ot::Compare { .. } => command(step, &folds, &[], LEAVES, 0),
        Ot::Labels { .. } => command(step, &[without_choices], &labels[..1], LEAVES, 0),
        Ot::Keys { .. } => command(
            step,
            &labels[..1],
            &labels[1..],
            KeyId(0),
            DomainTag::OT_KEYS.0,
        ),
        Ot::Choose => {
            let src = [labels[0], labels[1], choices];
            command(step, &src, &labels[2..], LEAVES, 0)
        }
    };
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).expect("a small workspace");
    let mut fill: Vec<Command> = vec![random(choices, 0), random(labels[0], 1 << 32)];
    fill.push(random(labels[1], 1 << 33));
    fill.push(all(Ot::Receive { trees }));
    submit(&mut device, workspace, &fill);
    for _ in 0..times {
        submit(&mut device, workspace, &[all(step)]);
    }
    device.close(workspace);
}

fn submit(device: &mut Cpu, workspace: veil_device::Workspace, batch: &[Command]) {
    device
        .submit(workspace, batch, Tag(0))
        .expect("commands that fit the layout");
    let done = device.poll().expect("a device of the host has no error");
    assert_eq!(done.map(|done| done.outcome), Some(Outcome::Done));
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        for (name, isa) in ISAS {
            for hot in hot_loops()
                .iter()
                .filter(|hot| Isa::available().contains(&isa) && hot.is_followed(isa))
            {
                println!("{name} {} {}", hot.name, hot.elements());
            }
        }
        return ExitCode::SUCCESS;
    }
    if let [isa, name, times, seed] = &arguments[..]
        && let Some((_, isa)) = ISAS.iter().find(|(n, _)| n == isa)
        && let Some(hot) = hot_loops().iter().find(|h| h.name == name)
        && let (Ok(times), Ok(seed)) = (times.parse(), seed.parse())
        && seed < 64
    {
        hot.run(*isa, times, seed);
        return ExitCode::SUCCESS;
    }
    eprintln!("Usage: hot_loops [ISA LOOP TIMES SEED]; without arguments it lists what there is");
    ExitCode::from(2)
}
