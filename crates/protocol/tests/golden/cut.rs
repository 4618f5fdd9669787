//! The golden vectors of cut-and-choose: `vectors/cut.json`, written by the Python model, reproduced by every device of this machine, step by step.

use std::sync::Arc;

use crate::common::vectors::{bytes, json, list, number};
use crate::common::{Kind, SESSION};
use serde_json::Value;
use veil_device::cut::{By, Cut, DIGEST, MARKS};
use veil_device::{
    ColumnType, Command, Dst, Frame, Instr, Layout, Op, Outcome, Program, Region, Residency, Span,
    Src, Tag, completion,
};
use veil_math::Ring;

const VECTORS: &str = include_str!("../../../../vectors/cut.json");

/// A workspace that has what a case has, and what steps make of it.
struct Bench<'a> {
    all: &'a Value,
    case: &'a Value,
    layout: Layout,
    commands: Vec<Command>,
    /// What is written, and what is expected.
    given: Vec<(Span, Vec<u8>)>,
    expected: Vec<(&'static str, Span, Vec<u8>)>,
}

impl<'a> Bench<'a> {
    fn new(all: &'a Value, case: &'a Value) -> Self {
        Bench {
            all,
            case,
            layout: Layout {
                chunk_rows: number(&case["rows"]),
                regions: vec![],
            },
            commands: vec![],
            given: vec![],
            expected: vec![],
        }
    }

    fn region(&mut self, residency: Residency, column: ColumnType, count: u32) -> Span {
        let region = self.layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        });
        self.layout.all(region, 0)
    }

    /// Items that hold these bytes.
    fn given(&mut self, item: ColumnType, bytes: Vec<u8>) -> Span {
        let one = item.bytes(self.layout.chunk_rows) as usize;
        let span = self.region(Residency::Mapped, item, (bytes.len() / one) as u32);
        self.given.push((span, bytes));
        span
    }

    fn labels(&mut self, field: &str) -> Span {
        self.given(ColumnType::Labels, bytes(&self.case[field]))
    }

    /// Keys, one after the other in rows.
    fn in_rows(&mut self, mut keys: Vec<u8>) -> Span {
        let row = 16 * self.layout.chunk_rows as usize;
        keys.resize(keys.len().next_multiple_of(row), 0);
        self.given(ColumnType::Labels, keys)
    }

    /// What a step makes: so many items, which are those of a field.
    fn made(&mut self, item: ColumnType, count: u32, field: &'static str) -> Span {
        let to = self.region(Residency::Public, item, count);
        self.expected.push((field, to, bytes(&self.case[field])));
        to
    }

    fn step(&mut self, cut: Cut, src: &[Span], dst: &[Span]) {
        let command = Command::new(Op::Cut(cut), src.to_vec(), dst.to_vec());
        self.commands.push(command);
    }

    fn kind(&self, name: &str) -> u16 {
        number(&self.all["labels"][name])
    }
}

/// A program in which every wire is a slot.
fn program(gates: &Value, slots: u16, job_wide: u16) -> Program {
    let mut program = Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums: job_wide,
        temps: 0,
        pairs: vec![],
        code: vec![],
    };
    for (wire, gate) in (4..).zip(list(gates)) {
        let source = |k: usize| Src::Slot(number(&gate[k]));
        program.code.push(match gate[0].as_str().expect("a gate") {
            "xor" => Instr::Add(source(1), source(2), Dst::Slot(wire)),
            "not" => Instr::Plus(source(1), 1, Dst::Slot(wire)),
            _ => {
                let index = program.pairs.len() as u32;
                program.pairs.push((source(1), source(2)));
                Instr::Product {
                    pairs: index..index + 1,
                    out: wire,
                    index,
                }
            }
        });
    }
    program
}

fn combine(from: Span, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    Command::new(op, vec![from], vec![to])
}

fn run(kind: Kind, all: &Value, case: &Value) {
    let of = &mut Bench::new(all, case);
    let rows: u32 = number(&case["rows"]);
    let (labels, bit) = (ColumnType::Labels, ColumnType::One(Ring::Bits));
    let wires = list(&case["bits"]).len() as u32;
    let gates = list(&all["gates"]).len() as u32;
    let bits: Vec<u8> = list(&case["bits"]).iter().map(number).collect();

    // What follows from seeds.
    let seeds = of.labels("seeds");
    let offsets = of.made(labels, 1, "offsets");
    let starts = of.made(labels, 1, "starts");
    let zero = of.made(labels, wires, "zero");
    of.step(Cut::Stretch, &[seeds], &[offsets, starts, zero]);
    let numbers = of.region(Residency::Resident, labels, 1);
    let first = number(&all["first_circuit"]);
    of.step(Cut::Number { first }, &[], &[numbers]);

    // What is said of labels.
    let bits = of.given(bit, bits);
    let active = of.made(labels, wires, "active");
    of.step(Cut::Active, &[zero, offsets, bits], &[active]);
    let marks = of.made(labels, MARKS * wires, "marks_by_colour");
    let label = of.kind("colours");
    let by = By::Colour;
    of.step(
        Cut::Marks { label, by },
        &[zero, offsets, numbers],
        &[marks],
    );
    of.step(Cut::Member { label }, &[active, marks, numbers], &[]);
    let colours = of.region(Residency::Resident, ColumnType::Rows(Ring::Bits), wires);
    of.commands
        .push(Command::new(Op::Colour, vec![zero], vec![colours]));
    let digests = of.made(labels, DIGEST, "digests");
    let label = of.kind("digest");
    of.step(Cut::Digest { label }, &[zero, colours], &[digests]);
    let hides = of.labels("hides");
    let sums = of.made(labels, 3, "sums");
    let key = bytes(&case["matrix"]).try_into().expect("a key");
    of.step(Cut::Matrix { key: Some(key) }, &[hides, zero], &[sums]);

    // What is sent under keys of transfers: both labels; the one of a bit comes out.
    let keys: [Vec<u8>; 2] = [0, 1].map(|k: usize| bytes(&case["keys"][k]));
    let chosen = list(&case["bits"])
        .iter()
        .enumerate()
        .flat_map(|(wire, bit)| keys[number::<usize>(bit)][16 * wire..][..16].to_vec());
    let chosen = of.in_rows(chosen.collect());
    let [zeros, ones] = keys.map(|keys| of.in_rows(keys));
    let masked = of.made(labels, 2 * wires, "masked");
    of.step(Cut::Mask, &[zero, offsets, numbers, zeros, ones], &[masked]);
    let unmasked = of.made(labels, wires, "active");
    of.step(Cut::Unmask, &[masked, chosen, bits, numbers], &[unmasked]);

    // The order.
    let seed = of.given(ColumnType::Bytes(32), bytes(&case["order_seed"]));
    let order = of.region(Residency::Public, ColumnType::Bytes(8 * rows), 1);
    let circuits = list(&case["order"]).iter().map(number::<u32>);
    let expected = circuits.flat_map(u32::to_le_bytes).collect();
    of.expected.push(("order", order, expected));
    of.step(Cut::Shuffle, &[seed], &[order]);

    // Circuits: of both parties, one after the other in the same slots.
    let slots = of.region(Residency::Resident, labels, wires + gates);
    let job_wide = of.region(Residency::Mapped, ColumnType::Label, 1);
    let products = bytes(&case["tables"]).len() as u32 / (16 * rows);
    let tables = of.made(labels, products, "tables");
    let inputs = Span {
        count: wires,
        ..slots
    };
    let out = Span {
        first: wires,
        count: gates,
        ..slots
    };
    let last = Span {
        first: wires + gates - 1,
        count: 1,
        ..slots
    };
    let first: u64 = all["first_product"]
        .as_str()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    let gates = program(&all["gates"], slots.region, job_wide.region);
    let mut device = kind.device();
    device.bind(SESSION);
    let id = device
        .load(&Arc::new(gates), &of.layout)
        .expect("it is right");
    let label = of.kind("values");
    let by = By::Value;
    let marks = of.made(labels, MARKS, "marks_by_value");
    for (field, from, cut, src, dst) in [
        (
            "zero_out",
            zero,
            Cut::Garble { first },
            vec![offsets, starts],
            vec![tables],
        ),
        (
            "active_out",
            active,
            Cut::Evaluate { first },
            vec![starts, tables],
            vec![],
        ),
    ] {
        of.commands.push(combine(from, inputs));
        let mut command = Command::new(Op::Cut(cut), src, dst);
        command.program = Some(id);
        of.commands.push(command);
        let to = of.made(labels, out.count, field);
        of.commands.push(combine(out, to));
        if let Cut::Garble { .. } = cut {
            of.step(
                Cut::Marks { label, by },
                &[last, offsets, numbers],
                &[marks],
            );
        }
    }

    // What most say.
    let votes = of.labels("votes");
    let result = of.region(Residency::Public, bit, 1);
    of.expected
        .push(("result", result, vec![number(&case["result"])]));
    of.step(Cut::Majority { label }, &[votes, marks, numbers], &[result]);

    let frame = Frame {
        epoch: number(&all["frame"]["epoch"]),
        lane: number(&all["frame"]["lane"]),
        chunk: number(&all["frame"]["chunk"]),
        rows,
    };
    let workspace = device.open(&of.layout, frame).expect("it fits");
    for (span, bytes) in &of.given {
        device
            .write(workspace, *span, bytes)
            .expect("it may be written");
    }
    device
        .submit(workspace, &of.commands, Tag(0))
        .expect("it is right");
    let outcome = completion(&mut *device).map(|done| done.outcome);
    assert_eq!(outcome, Ok(Outcome::Done), "{kind:?}: {rows} rows");
    for (field, span, expected) in &of.expected {
        let got = device.view(workspace, *span).expect("it may be seen");
        assert!(got == expected, "{kind:?}: {field} of {rows} rows");
    }
}

#[test]
fn steps_are_those_of_the_model() {
    let all = json(VECTORS);
    assert_eq!(bytes(&all["session"]), SESSION.0);
    for case in list(&all["cases"]) {
        for kind in Kind::all() {
            run(kind, &all, case);
        }
    }
}
