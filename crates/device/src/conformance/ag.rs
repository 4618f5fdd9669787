//! Cases about authenticated garbling: every step on random blocks, and programs over each component of the slots.

mod meaning;

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::program;
use super::rings::{JOB_WIDE, SLOTS};
use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::ag::{Ag, One, Role};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, PrfCall, Program, ProgramId, Reference,
    Residency, Span, Tag,
};

/// Blocks of an array in each column, and their bits.
const ARRAYS: u16 = 0;
/// Regions of the programs.
const SLOT_REGION: u16 = 1;
const JOB_WIDE_REGION: u16 = 2;
const SUM_REGION: u16 = 3;
const BITS: u16 = 4;
const TABLES: u16 = 5;
/// Challenge and digest.
const DIGEST: u16 = 6;
const FOLD: u16 = 7;
/// A label for each row, and its bits.
const LABELS: u16 = 8;
const ROW_BITS: u16 = 9;

/// Components of the slots: labels, MACs, keys, Λ.
const PARTS: u8 = 4;
/// Arrays, and columns of bits.
const COUNT: u32 = 16;
const PRODUCTS: u32 = 64;

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);

struct Case {
    layout: Layout,
    frame: Frame,
    program: Arc<Program>,
    keys: [Secret; 2],
    written: Vec<(Span, Vec<u8>)>,
    role: Role,
    first: u64,
    part: u8,
    /// Products before those of the program.
    at: u32,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    if rng.below(3) == 0 {
        return meaning::one(device, rng, case);
    }
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let rows = match rng.below(4) {
            0 => 1,
            1 => rng.below(20) as u32,
            _ => ROWS[rng.below(ROWS.len())].min(300),
        };
        let program = Arc::new(program::labels(rng));
        // Long enough for the program, and not always whole words.
        let at = rng.below(3) as u32 * rng.below(20) as u32;
        let blocks = (at + program.products().0) * rows + 1 + rng.below(200) as u32;
        // Bits of blocks, and bytes behind them.
        let bits = blocks.div_ceil(8) + rng.below(10) as u32;
        let (mapped, resident) = (Residency::Mapped, Residency::Resident);
        let layout = regions(
            rows,
            &[
                (mapped, ColumnType::Bytes(16 * blocks), 1, COUNT),
                (resident, ColumnType::Labels, PARTS, SLOTS),
                (mapped, ColumnType::Label, PARTS, JOB_WIDE),
                (mapped, ColumnType::Label, PARTS, 1),
                (mapped, ColumnType::Bytes(bits), 1, COUNT),
                (mapped, ColumnType::Labels, 1, 2 * PRODUCTS),
                (mapped, ColumnType::Bytes(32), 1, 1),
                (mapped, ColumnType::Bytes(16), 1, 3),
                (mapped, ColumnType::Labels, 1, SLOTS),
                (mapped, ColumnType::Rows(Ring::Bits), 1, SLOTS),
            ],
        );
        let mut written = Vec::new();
        for (index, region) in (0..).zip(&layout.regions) {
            if region.residency == Residency::Mapped {
                for part in 0..region.components {
                    let span = layout.all(index, part);
                    written.push((span, rng.bytes(layout.bytes(span, rows) as usize)));
                }
            }
        }
        let mut keys = [(); 2].map(|()| rng.bytes(16));
        let role = [Role::Garbler, Role::Evaluator][rng.below(2)];
        keys[0][0] |= 3;
        let key = |bytes: Vec<u8>| Secret::new(std::array::from_fn(|k| bytes[k]));
        Case {
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32 >> 1,
                rows,
            },
            keys: keys.map(key),
            first: rng.next() >> [20, 40, 63][rng.below(3)],
            part: rng.below(usize::from(PARTS)) as u8,
            at,
            layout,
            program,
            written,
            role,
        }
    }

    fn call(&self, tag: DomainTag) -> PrfCall {
        PrfCall {
            key: START,
            tag,
            first: self.first,
        }
    }

    /// Steps without a program, each on what those before have left.
    fn steps(&self) -> Vec<Command> {
        let span = |region, first, count| Span {
            region,
            component: 0,
            first,
            count,
        };
        let array = |k| span(ARRAYS, k, 1);
        let bits = |k| span(BITS, k, 1);
        let arrays = |from: std::ops::Range<u32>| from.map(array).collect::<Vec<_>>();
        let (role, offset) = (self.role, OFFSET);
        let step = |step, src: Vec<Span>, dst: Vec<Span>| Command::new(Op::Ag(step), src, dst);
        let mut offer = step(Ag::Offer { offset, role }, arrays(0..3), vec![array(8)]);
        offer.calls = vec![self.call(DomainTag::AG_LEAKY)];
        let taken = vec![array(9), bits(4)];
        let mut take = step(Ag::Take { offset, role }, arrays(0..7), taken);
        take.calls = vec![self.call(DomainTag::AG_LEAKY)];
        let (of_rows, rows) = (span(LABELS, 0, SLOTS), span(ROW_BITS, 0, SLOTS));
        let digest = span(DIGEST, 0, 1);
        let fold = |k| vec![span(FOLD, k, 1)];
        let spent = [0, 1, 2, 3].map(bits).into_iter().chain(arrays(0..8));
        let checked = [0, 1, 2].map(bits).into_iter().chain(arrays(2..8));
        let products = self.program.products().0;
        let own = Some(OFFSET);
        let mut again = step(Ag::Offer { offset, role }, arrays(0..3), vec![array(2)]);
        again.calls = vec![PrfCall {
            first: self.first + (1 << 24),
            ..self.call(DomainTag::AG_LEAKY)
        }];
        let in_place = vec![array(1), bits(6)];
        let mut taken_again = step(Ag::Take { offset, role }, arrays(0..7), in_place);
        taken_again.calls.clone_from(&take.calls);
        // Destinations that take the places of sources, in another order.
        let in_place = vec![
            step(
                Ag::Absorb,
                [bits(3), bits(2)].into_iter().chain(arrays(0..4)).collect(),
                vec![array(1), array(3), array(0), array(5)],
            ),
            step(
                Ag::Spend { offset, role },
                [0, 1, 2, 3]
                    .map(bits)
                    .into_iter()
                    .chain(arrays(2..10))
                    .collect(),
                vec![array(5), array(2)],
            ),
            step(
                Ag::Gates {
                    offset: own,
                    products,
                },
                [2, 1, 0]
                    .map(bits)
                    .into_iter()
                    .chain(arrays(6..12))
                    .collect(),
                vec![array(9)],
            ),
            step(
                Ag::Rotate { layer: 1 << 20 },
                vec![digest, span(ARRAYS, 4, 4)],
                vec![span(ARRAYS, 4, 4)],
            ),
            again,
            taken_again,
        ];
        let mut steps = vec![
            step(Ag::Pin { bit: 0 }, vec![array(7), bits(0)], vec![array(7)]),
            step(Ag::Pin { bit: 1 }, vec![of_rows, rows], vec![of_rows]),
            step(Ag::Pin { bit: 0 }, vec![array(6)], vec![array(6)]),
            offer,
            take,
            step(
                Ag::Settle { offset, role },
                vec![bits(4), bits(1)],
                vec![array(9), array(5)],
            ),
            step(
                Ag::Bits { bit: 1 },
                vec![array(9), array(5), array(1)],
                vec![bits(5)],
            ),
            step(Ag::Bits { bit: 0 }, vec![of_rows], vec![rows]),
            step(Ag::Expand, vec![bits(5)], vec![array(10)]),
            step(
                Ag::Rotate { layer: 3 },
                vec![digest, span(ARRAYS, 0, 4)],
                vec![span(ARRAYS, 11, 4)],
            ),
            step(
                Ag::Absorb,
                vec![bits(1), bits(2), array(11), array(12), array(13), array(14)],
                vec![array(0), array(1), array(2), array(3)],
            ),
            step(
                Ag::Spend { offset, role },
                spent.collect(),
                vec![array(8), array(9)],
            ),
            step(
                Ag::Gates {
                    offset: None,
                    products,
                },
                vec![bits(0), bits(1), array(2), array(3), array(4)],
                vec![array(14)],
            ),
            step(
                Ag::Gates {
                    offset: own,
                    products,
                },
                checked.collect(),
                vec![array(15)],
            ),
            step(
                Ag::Fold { offset: None },
                vec![digest, array(14), array(3)],
                fold(0),
            ),
            step(
                Ag::Fold { offset: own },
                vec![digest, rows, of_rows],
                fold(1),
            ),
        ];
        // There are devices without it.
        if self.first.is_multiple_of(4) {
            let both = [fold(0), fold(1)].concat();
            steps.push(step(Ag::Expect { offset }, both, fold(2)));
        }
        steps.splice(12..12, in_place);
        steps
    }

    /// The program over a component of the slots: masks, tables, or what they give.
    fn programs(&self, id: ProgramId) -> [(&'static str, Vec<Command>); 3] {
        let array = |k| Span {
            first: k,
            count: 1,
            ..self.layout.all(ARRAYS, 0)
        };
        let bits = |k| Span {
            first: k,
            count: 1,
            ..self.layout.all(BITS, 0)
        };
        let labels = self.layout.all(LABELS, 0);
        let slots = |part| self.layout.all(SLOT_REGION, part);
        let tables = self.layout.all(TABLES, 0);
        let begin = |part| {
            let xor = Op::Combine {
                ring: Ring::Bits,
                minus: 0,
            };
            Command::new(xor, vec![labels], vec![slots(part)])
        };
        let end = |part| {
            let xor = Op::Combine {
                ring: Ring::Bits,
                minus: 0,
            };
            Command::new(xor, vec![slots(part)], vec![labels])
        };
        let run = |step, src: Vec<Span>, dst: Vec<Span>| {
            let mut command = Command::new(Op::Ag(step), src, dst);
            command.program = Some(id);
            command.calls = vec![self.call(DomainTag::GARBLE)];
            command
        };
        let one = match self.first % 3 {
            0 => One::Nothing,
            1 => One::Unit,
            _ => One::Offset(OFFSET),
        };
        let (part, at) = (self.part, self.at);
        let masks = run(
            Ag::Masks { part, at, one },
            vec![array(0)],
            vec![array(8), array(9)],
        );
        let six: Vec<Span> = (0..6).map(array).collect();
        let garble = run(
            Ag::Garble { at, offset: OFFSET },
            six,
            vec![tables, bits(7), array(8)],
        );
        let evaluate = run(
            Ag::Evaluate { at },
            vec![tables, bits(0), array(0), array(1), array(2)],
            vec![array(8), bits(7), bits(8), bits(9)],
        );
        [
            ("masks", vec![begin(part), masks, end(part)]),
            ("garbling with masks", vec![begin(0), garble, end(0)]),
            ("evaluation with masks", vec![begin(0), evaluate, end(0)]),
        ]
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([9; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let id = device.load(&self.program, &self.layout)?;
        let mut all = self.programs(id).to_vec();
        all.push(("steps", self.steps()));
        let mut seen = Seen::new();
        for (chunk, (what, commands)) in (self.frame.chunk..).zip(all) {
            let frame = Frame {
                chunk,
                ..self.frame
            };
            let workspace = device.open(&self.layout, frame)?;
            for (span, bytes) in &self.written {
                device.write(workspace, *span, bytes)?;
            }
            device.submit(workspace, &commands, Tag(1))?;
            expect_done(device)?;
            for region in [ARRAYS, BITS, TABLES, FOLD, LABELS, ROW_BITS] {
                let bytes = device.view(workspace, self.layout.all(region, 0))?;
                seen.push((what, bytes.to_vec()));
            }
            device.close(workspace);
        }
        debug_assert_eq!(
            [SLOT_REGION, JOB_WIDE_REGION, SUM_REGION],
            [1, 2, 3],
            "regions of the programs"
        );
        Ok(seen)
    }
}
