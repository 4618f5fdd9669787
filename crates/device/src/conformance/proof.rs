//! Cases about proofs: a layer of products whose operands are traced, and every step of the proof that they are right.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::proof::{MOST_VALUES, PIECES, SEED, TRACE_PARTS, length, levels, values};
use crate::{
    ColumnType, Command, Device, Fault, Form, Instr, KeyId, Layout, Op, Outcome, PrfCall, Program,
    Proof, Reference, Residency, Side, Span, Src, Tag, completion,
};

const IN: u16 = 0;
const SLOTS: u16 = 1;
const JOB_WIDE: u16 = 2;
const SUMS: u16 = 3;
const MESSAGE: u16 = 4;
const RECEIVED: u16 = 5;
const TRACE: u16 = 6;
const VECTORS: u16 = 7;
const SCALARS: u16 = 8;
const OUT: u16 = 9;

/// Where in [`SCALARS`] a share is, and what is written beside it; before, challenges and seeds.
const SHARE: u32 = 40;
const WRITTEN: u32 = 80;
const CLAIMS: u32 = 96;
const ALL_SCALARS: u32 = CLAIMS + 2 * PIECES;

/// Slots that are operands; a product each follows.
const OPERANDS: u32 = 6;

fn layout(chunk_rows: u32, products: u32) -> Layout {
    let (rows, one, element) = (
        ColumnType::Rows(Ring::Bits),
        ColumnType::One(Ring::Bits),
        ColumnType::One(Ring::Z64),
    );
    let vectors = length(products, chunk_rows, 3) as u32;
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    regions(
        chunk_rows,
        &[
            (mapped, rows, 2, OPERANDS),
            (resident, rows, 2, OPERANDS + products),
            (mapped, one, 2, 0),
            (mapped, one, 2, 0),
            (mapped, rows, 1, products),
            (mapped, rows, 1, products),
            (resident, rows, TRACE_PARTS, products),
            (resident, element, 4, vectors),
            (mapped, element, 1, ALL_SCALARS),
            (mapped, element, 1, vectors),
        ],
    )
}

fn scalars(first: u32, count: u32) -> Span {
    Span {
        region: SCALARS,
        component: 0,
        first,
        count,
    }
}

struct Case {
    layout: Layout,
    frame: Frame,
    products: u32,
    program: Arc<Program>,
    keys: [Secret; 2],
    input: [Vec<u8>; 2],
    received: Vec<u8>,
    /// Seeds, challenges, and what steps write over: peers may send any.
    elements: Vec<u8>,
    first: u64,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let rows = ROWS[1 + rng.below(ROWS.len() - 1)];
    let chunk_rows = rows + rng.below(3) as u32 * 100;
    // Few, or enough for pieces of some words.
    let products = [5, 11, 150][rng.below(if rows > 600 { 2 } else { 3 })];
    let products = 1 + rng.below(products) as u32;
    let layout = layout(chunk_rows, products);
    let bytes = |rng: &mut SplitMix, span| {
        let length = layout.bytes(span, rows);
        rng.bytes(length as usize)
    };
    let of = Case {
        frame: Frame {
            epoch: 0,
            lane: rng.next() as u16,
            chunk: rng.next() as u32,
            rows,
        },
        products,
        program: Arc::new(program(rng, products)),
        keys: [(); 2].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8))),
        input: [0, 1].map(|part| bytes(rng, layout.all(IN, part))),
        received: bytes(rng, layout.all(RECEIVED, 0)),
        elements: rng.bytes(8 * ALL_SCALARS as usize),
        first: rng.next() >> 8,
        layout,
    };
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

/// Products of operands; every third or so has its result in the slot of one of them, which no later product reads then.
fn program(rng: &mut SplitMix, products: u32) -> Program {
    let mut free: Vec<u32> = (0..OPERANDS).collect();
    let mut pairs = Vec::new();
    let mut code = Vec::new();
    for k in 0..products {
        let [a, b] = [(); 2].map(|()| free[rng.below(free.len())]);
        pairs.push((Src::Slot(a), Src::Slot(b)));
        let out = match rng.below(6) {
            0 if free.len() > 1 => a,
            1 if free.len() > 1 => b,
            _ => OPERANDS + k,
        };
        free.retain(|slot| *slot != out);
        code.push(Instr::Product {
            pairs: k..k + 1,
            out,
            index: k,
        });
    }
    Program {
        ring: Ring::Bits,
        slots: SLOTS,
        job_wide: JOB_WIDE,
        sums: SUMS,
        temps: 0,
        pairs,
        code,
    }
}

impl Case {
    fn call(&self, key: u16) -> PrfCall {
        PrfCall {
            key: KeyId(key),
            tag: DomainTag::AND3,
            first: self.first,
        }
    }

    fn step(&self, proof: Proof, src: Vec<Span>, dst: Vec<Span>, calls: usize) -> Command {
        let mut command = Command::new(Op::Proof(proof), src, dst);
        // A call each of its own: the reference notices what is drawn twice.
        let call = |k: usize| PrfCall {
            tag: DomainTag(0x8000 | k as u16),
            ..self.call(k as u16 % 2)
        };
        command.calls = (0..calls).map(call).collect();
        command
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        let layout = &self.layout;
        device.bind(SessionId([9; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let id = device.load(&self.program, layout)?;
        let mut seen = Seen::new();
        // Each level in a workspace of its own chunk: then none draws what another one did.
        let rounds = levels(self.products, layout.chunk_rows);
        for level in 1..=rounds {
            let frame = Frame {
                chunk: self.frame.chunk.wrapping_add(level),
                ..self.frame
            };
            let workspace = device.open(layout, frame)?;
            for part in [0, 1] {
                let input = &self.input[usize::from(part)];
                device.write(workspace, layout.all(IN, part), input)?;
            }
            device.write(workspace, layout.all(RECEIVED, 0), &self.received)?;
            device.write(workspace, layout.all(SCALARS, 0), &self.elements)?;
            let mut commands = self.products(id);
            commands.extend(self.steps(level, level == rounds));
            for (k, command) in commands.iter().enumerate() {
                device.submit(workspace, std::slice::from_ref(command), Tag(k as u64))?;
                expect_done(device)?;
            }
            let mut look = |what, span| -> Result<(), Fault> {
                seen.push((what, device.view(workspace, span)?.to_vec()));
                Ok(())
            };
            look("the message of traced products", layout.all(MESSAGE, 0))?;
            look("an element of a proof", layout.all(SCALARS, 0))?;
            for (what, region, part) in [
                ("a vector of a proof", VECTORS, 0),
                ("a vector of a proof", VECTORS, 1),
                ("a vector of a proof", VECTORS, 2),
                ("a vector of a proof", VECTORS, 3),
            ] {
                let from = layout.all(region, part);
                let to = Span {
                    count: from.count,
                    ..layout.all(OUT, 0)
                };
                let op = Op::Combine {
                    ring: Ring::Z64,
                    minus: 0,
                };
                let copy = Command::new(op, vec![from], vec![to]);
                device.submit(workspace, &[copy], Tag(0))?;
                expect_done(device)?;
                seen.push((what, device.view(workspace, to)?.to_vec()));
            }
            let compared = self.step(
                Proof::Compare,
                vec![scalars(0, 2), scalars(20, 2)],
                vec![],
                0,
            );
            device.submit(workspace, &[compared], Tag(0))?;
            let ended = completion(device)?.outcome == Outcome::Done;
            seen.push(("a comparison of proofs", vec![ended.into()]));
            device.close(workspace);
        }
        Ok(seen)
    }

    /// Operands into their slots, and products of them that are traced.
    fn products(&self, id: crate::ProgramId) -> Vec<Command> {
        let layout = &self.layout;
        let ring = Ring::Bits;
        let copy = |part| {
            let to = Span {
                count: OPERANDS,
                ..layout.all(SLOTS, part)
            };
            let op = Op::Combine { ring, minus: 0 };
            Command::new(op, vec![layout.all(IN, part)], vec![to])
        };
        let mut run = Command::new(
            Op::Product(Form::replicated(ring)),
            vec![],
            vec![
                layout.all(MESSAGE, 0),
                layout.all(SUMS, 0),
                layout.all(TRACE, 0),
            ],
        );
        run.program = Some(id);
        run.calls = vec![self.call(0), self.call(1)];
        vec![copy(0), copy(1), run]
    }

    /// The steps of a proof down to `level`.
    fn steps(&self, level: u32, last: bool) -> Vec<Command> {
        let layout = &self.layout;
        let products = self.products;
        let gates = [layout.all(TRACE, 0), layout.all(RECEIVED, 0)];
        let challenge = |level: u32| scalars(32 + level % 5, 1);
        let seed = |of: u32| scalars(37 + of, SEED);
        let vector = |side| layout.all(VECTORS, side as u8);
        let mut steps = Vec::new();
        for (of, side) in [(0, Side::Previous), (1, Side::Next)] {
            let src = [&gates[..], &[seed(of)]].concat();
            let claims = scalars(CLAIMS + PIECES * of, PIECES);
            steps.push(self.step(Proof::Claims { side }, src, vec![claims], 0));
        }
        if level >= 3 {
            for (k, side) in Side::ALL.into_iter().enumerate() {
                let src = [&gates[..], &[seed(0), challenge(1), challenge(2)]].concat();
                steps.push(self.step(Proof::Expand { side }, src, vec![vector(k)], 0));
            }
        }
        for folded in 3..level {
            let proof = Proof::Fold {
                level: folded,
                products,
            };
            for side in 0..4 {
                let src = vec![vector(side), challenge(folded)];
                steps.push(self.step(proof, src, vec![vector(side)], 0));
            }
        }
        let proof = Proof::Share {
            level,
            products,
            last,
        };
        let src = match level {
            1 => [&gates[..], &[seed(1)]].concat(),
            2 => [&gates[..], &[seed(1), challenge(1)]].concat(),
            _ => vec![vector(0), vector(1)],
        };
        let share = scalars(SHARE, values(level));
        steps.push(self.step(proof, src, vec![share], if last { 3 } else { 1 }));
        let mut drawn = self.step(
            Proof::Elements { from: level },
            vec![],
            vec![scalars(0, MOST_VALUES)],
            1,
        );
        drawn.calls[0].tag = DomainTag(0x8010);
        let claims = if level == 1 { PIECES } else { 1 };
        let verify = vec![scalars(CLAIMS, claims), share, challenge(level)];
        let next = vec![scalars(WRITTEN, 1)];
        steps.extend([
            drawn,
            self.step(Proof::Verify { level, last }, verify, next, 0),
        ]);
        if last {
            let end = Proof::End { level, products };
            let src = vec![vector(2), challenge(level)];
            let mut end = self.step(end, src, vec![scalars(WRITTEN + 1, 1)], 1);
            end.calls[0].tag = DomainTag(0x8020);
            steps.push(end);
        }
        steps
    }
}
