//! Cases about cut-and-choose: every step, on circuits of random seeds and on arbitrary messages.

use std::sync::Arc;

use veil_math::Ring;
use veil_session::{Frame, SessionId};

use super::program;
use super::rings::{JOB_WIDE, SLOT_REGION, SLOTS};
use super::{Difference, Seen, SplitMix, compare, expect_done, regions, written};
use crate::cut::{By, DIGEST, MARKS};
use crate::{
    ColumnType, Command, Cut, Device, Fault, Layout, Op, Outcome, Program, ProgramId, Reference,
    Residency, Span, Tag, completion,
};

const IN: u16 = 0;
const TABLES: u16 = 4;
const SEEN: u16 = 5;
const BITS: u16 = 6;
const ROW_BITS: u16 = 7;
const SEED: u16 = 8;
const ORDER: u16 = 9;
const KEY: u16 = 10;
const OUT_BITS: u16 = 11;
const OUT_ROWS: u16 = 12;

/// Numbers of circuits in a half: around vectors of labels, bytes of bits, and lanes of hashes.
const CIRCUITS: [u32; 12] = [1, 2, 3, 4, 5, 8, 16, 17, 31, 33, 48, 95];
/// Most products of a program.
const PRODUCTS: u32 = 64;
/// Labels at most that a case looks at.
const MOST: u32 = 600;

struct Case {
    layout: Layout,
    frame: Frame,
    program: Arc<Program>,
    wires: u32,
    outputs: u32,
    half: u8,
    by: By,
    first: u64,
    key: Option<[u8; 16]>,
    written: Vec<(u16, Vec<u8>)>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

fn layout(circuits: u32) -> Layout {
    let (bits, one) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Bits));
    let (mapped, resident) = (Residency::Mapped, Residency::Resident);
    regions(
        circuits,
        &[
            (mapped, ColumnType::Labels, 1, 2 * SLOTS),
            (resident, ColumnType::Labels, 1, SLOTS),
            (mapped, ColumnType::Label, 1, JOB_WIDE),
            (mapped, ColumnType::Label, 1, 1),
            (mapped, ColumnType::Labels, 1, 2 * PRODUCTS),
            (mapped, ColumnType::Labels, 1, MOST),
            (mapped, one, 1, SLOTS),
            (mapped, bits, 1, 2 * SLOTS),
            (mapped, ColumnType::Bytes(32), 1, 1),
            (mapped, ColumnType::Bytes(8 * circuits), 1, 1),
            (mapped, ColumnType::Label, 1, 1),
            (mapped, one, 1, 2 * SLOTS),
            (mapped, bits, 1, 4 * SLOTS),
        ],
    )
}

fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

/// Spans of a region, one behind the other.
struct Places {
    region: u16,
    next: u32,
}

impl Places {
    fn take(&mut self, count: u32) -> Span {
        let first = self.next;
        self.next += count;
        span(self.region, first, count)
    }
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let rows = CIRCUITS[rng.below(CIRCUITS.len())];
        let layout = layout(rows);
        let written = written(rng, &layout, rows);
        Case {
            layout,
            frame: Frame {
                epoch: rng.next() as u16,
                lane: rng.next() as u16,
                chunk: rng.next() as u32,
                rows,
            },
            program: Arc::new(program::labels(rng)),
            wires: 1 + rng.below(20) as u32,
            outputs: 1 + rng.below(8) as u32,
            half: rng.below(2) as u8,
            by: [By::Colour, By::Value][rng.below(2)],
            first: rng.next() >> 20,
            key: (rng.below(2) == 0).then(|| std::array::from_fn(|k| k as u8)),
            written,
        }
    }

    /// Everything but what compares, and where it puts its labels.
    fn commands(&self, id: ProgramId) -> (Vec<Command>, [Span; 4]) {
        let (wires, bits) = (self.wires, |first, count| span(BITS, first, count));
        let mut seen = Places {
            region: SEEN,
            next: 0,
        };
        let given = |first, count| span(IN, first, count);
        let slots = span(SLOT_REGION, 0, SLOTS);
        let all = |region| self.layout.all(region, 0);
        let cut = |step, src: &[Span], dst: &[Span]| {
            Command::new(Op::Cut(step), src.to_vec(), dst.to_vec())
        };
        let [offsets, starts, numbers] = [(); 3].map(|()| seen.take(1));
        let (zeros, marks) = (seen.take(wires), seen.take(MARKS * wires));
        let [active, sums] = [wires, self.outputs].map(|count| seen.take(count));
        let (masked, unmasked) = (seen.take(2 * wires), seen.take(wires));
        let picked = seen.take(self.outputs);
        let [digest, mixed, own] = [(); 3].map(|()| seen.take(DIGEST));
        let (garbled, evaluated) = (seen.take(SLOTS), seen.take(SLOTS));
        let copy = |from, to| {
            let op = Op::Combine {
                ring: Ring::Bits,
                minus: 0,
            };
            Command::new(op, vec![from], vec![to])
        };
        let run = |step, src: &[Span], dst: &[Span]| {
            let mut command = cut(step, src, dst);
            command.program = Some(id);
            command
        };
        let first = self.first;
        let key = self.key;
        let matrix = |add, from, to| {
            let mut src = vec![add, from];
            src.extend(key.is_none().then(|| all(KEY)));
            cut(Cut::Matrix { key }, &src, &[to])
        };
        let (out_bits, out_rows) = (
            |first, count| span(OUT_BITS, first, count),
            |first, count| span(OUT_ROWS, first, count),
        );
        let commands = vec![
            cut(Cut::Stretch, &[given(0, 1)], &[offsets, starts, zeros]),
            cut(Cut::Number { first: 70_000 }, &[], &[numbers]),
            cut(
                Cut::Marks {
                    label: 7,
                    by: self.by,
                },
                &[zeros, offsets, numbers],
                &[marks],
            ),
            cut(Cut::Active, &[zeros, offsets, bits(0, wires)], &[active]),
            matrix(given(0, self.outputs), zeros, sums),
            matrix(bits(0, self.outputs), bits(8, 9), out_bits(0, self.outputs)),
            cut(
                Cut::Mask,
                &[zeros, offsets, numbers, given(1, SLOTS), given(3, SLOTS)],
                &[masked],
            ),
            cut(
                Cut::Unmask,
                &[masked, given(2, SLOTS), bits(1, wires), numbers],
                &[unmasked],
            ),
            cut(Cut::Spread, &[bits(0, SLOTS)], &[out_rows(0, SLOTS)]),
            cut(Cut::Shuffle, &[all(SEED)], &[all(ORDER)]),
            cut(
                Cut::Pick { half: self.half },
                &[given(5, 2 * self.outputs), all(ORDER)],
                &[picked],
            ),
            cut(
                Cut::Pick { half: self.half },
                &[span(ROW_BITS, 0, 2 * self.outputs), all(ORDER)],
                &[out_rows(SLOTS, self.outputs)],
            ),
            cut(
                Cut::Digest { label: 3 },
                &[zeros, given(0, 3), span(ROW_BITS, 1, wires)],
                &[digest],
            ),
            cut(
                Cut::Digest { label: 3 },
                &[span(ROW_BITS, 1, 2), given(0, 3)],
                &[mixed],
            ),
            cut(Cut::Digest { label: 3 }, &[], &[own]),
            cut(
                Cut::Majority { label: 7 },
                &[active, marks, numbers],
                &[out_bits(20, wires)],
            ),
            copy(given(0, SLOTS), slots),
            run(Cut::Garble { first }, &[offsets, starts], &[all(TABLES)]),
            copy(slots, garbled),
            copy(given(9, SLOTS), slots),
            run(Cut::Evaluate { first }, &[starts, all(TABLES)], &[]),
            copy(slots, evaluated),
        ];
        (commands, [active, zeros, marks, numbers])
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId(std::array::from_fn(|k| k as u8)));
        let id = device.load(&self.program, &self.layout)?;
        let workspace = device.open(&self.layout, self.frame)?;
        for (region, bytes) in &self.written {
            device.write(workspace, self.layout.all(*region, 0), bytes)?;
        }
        let (commands, [active, zeros, marks, numbers]) = self.commands(id);
        device.submit(workspace, &commands, Tag(1))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        for (what, region) in [
            ("a table", TABLES),
            ("a label of cut-and-choose", SEEN),
            ("an order", ORDER),
            ("bits of all circuits", OUT_BITS),
            ("bits of circuits", OUT_ROWS),
        ] {
            let bytes = device.view(workspace, self.layout.all(region, 0))?;
            seen.push((what, bytes.to_vec()));
        }
        let member = |wires, marks| {
            let step = Op::Cut(Cut::Member { label: 7 });
            Command::new(step, vec![wires, marks, numbers], vec![])
        };
        // Other marks than those of the labels: off by a wire.
        let shift = |span: Span, by: u32| Span {
            first: span.first + by,
            ..span
        };
        let same = |first, count| {
            let from = span(ROW_BITS, first, count);
            Command::new(Op::Cut(Cut::Same), vec![from], vec![])
        };
        for compared in [
            member(active, marks),
            member(zeros, marks),
            member(zeros, shift(marks, 1)),
            same(0, 0),
            same(0, SLOTS),
        ] {
            device.submit(workspace, &[compared], Tag(1))?;
            let passed = completion(device)?.outcome == Outcome::Done;
            seen.push(("a comparison of circuits", vec![passed.into()]));
        }
        device.close(workspace);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases compare what differs: labels that have their marks pass, others do not.
    #[test]
    fn comparisons_tell_right_from_wrong() -> Result<(), Fault> {
        let mut rng = SplitMix(3);
        for _ in 0..20 {
            let case = Case::new(&mut rng);
            let seen = case.run(&mut Reference::default())?;
            let passed: Vec<u8> = (seen.iter())
                .filter(|(what, _)| *what == "a comparison of circuits")
                .map(|(_, bytes)| bytes[0])
                .collect();
            let alike = u8::from(case.frame.rows == 1);
            assert_eq!(passed, [1, 1, 0, 1, alike], "{} rows", case.frame.rows);
        }
        Ok(())
    }
}
