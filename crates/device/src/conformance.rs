//! The suite that every device must pass: the same commands, the same bytes as [`Reference`].
//!
//! Cases are drawn from a seed: random programs over every ring, with chains and sums of products, on ragged numbers of rows.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::Use;
use veil_session::{Frame, Secret, SessionId};

use crate::{
    Command, Device, Draw, Dst, Fault, Form, Instr, Item, KeyId, Layout, Op, Outcome, Place,
    Program, Reference, Region, Span, Src, Tag,
};

/// A device gave other bytes than the reference.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// Bytes differ.
    #[error(
        "case {case} ({ring:?}, {rows} of {chunk_rows} rows): {what} differs from the reference"
    )]
    Bytes {
        /// Number of the case under the seed.
        case: u32,
        /// Ring of the case.
        ring: Ring,
        /// Rows of the case.
        rows: u32,
        /// Rows of a full chunk.
        chunk_rows: u32,
        /// What differs.
        what: &'static str,
    },
    /// The device refused what the reference did.
    #[error("case {case}: {fault}")]
    Fault {
        /// Number of the case under the seed.
        case: u32,
        /// The fault.
        fault: Fault,
    },
}

/// Forms of the protocols at hand, and one that nobody specialises.
const FORMS: [Form; 4] = [
    Form {
        ring: Ring::Bits,
        terms: &[(0, 1), (1, 0), (1, 1)],
        own: 0,
    },
    Form {
        ring: Ring::Z64,
        terms: &[(0, 0), (0, 1), (1, 0)],
        own: 0,
    },
    Form {
        ring: Ring::Z128,
        terms: &[(0, 0), (0, 1), (1, 0)],
        own: 0,
    },
    Form {
        ring: Ring::Z64,
        terms: &[(1, 1), (0, 1)],
        own: 1,
    },
];

/// Numbers of rows that find the edges: nothing, one, around bytes, words, vectors and groups of them.
const ROWS: [u32; 18] = [
    0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 129, 511, 512, 513, 1000, 2048, 2500,
];

/// Runs `cases` random cases from `seed`.
pub fn check(device: &mut dyn Device, seed: u64, cases: u32) -> Result<(), Difference> {
    let mut rng = SplitMix(seed);
    for case in 0..cases {
        one(device, &mut rng, case)?;
    }
    device.wipe();
    Ok(())
}

/// Test data only: a device's behaviour never depends on it (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

const SLOTS: u32 = 24;
const UNIFORMS: u32 = 3;
const SUMS: u32 = 4;
const IN: u16 = 0;
const SLOT_REGION: u16 = 1;
const UNIFORM_REGION: u16 = 2;
const SUM_REGION: u16 = 3;
const MESSAGE: u16 = 4;
const SUM_MESSAGE: u16 = 5;
const OUT: u16 = 6;
const DIGEST: u16 = 7;
const RANDOM: u16 = 8;

fn layout(ring: Ring, chunk_rows: u32) -> Layout {
    let region = |place, item, parts, count| Region {
        place,
        item,
        parts,
        count,
    };
    Layout {
        chunk_rows,
        regions: vec![
            region(Place::Mapped, Item::Rows(ring), 2, SLOTS),
            region(Place::Resident, Item::Rows(ring), 2, SLOTS),
            region(Place::Mapped, Item::One(ring), 2, UNIFORMS),
            region(Place::Mapped, Item::One(ring), 2, SUMS),
            region(Place::Mapped, Item::Rows(ring), 1, 64),
            region(Place::Mapped, Item::One(ring), 1, SUMS),
            region(Place::Public, Item::Rows(ring), 2, SLOTS),
            region(Place::Mapped, Item::Bytes(32), 1, 2),
            region(Place::Mapped, Item::Rows(ring), 1, 5),
        ],
    }
}

/// A random program that obeys the rules of [`Program::check`].
fn program(rng: &mut SplitMix, ring: Ring) -> Program {
    let mut p = Program {
        ring,
        slots: SLOT_REGION,
        uniforms: UNIFORM_REGION,
        sums: SUM_REGION,
        temps: 0,
        pairs: vec![],
        code: vec![],
    };
    let mut pending = vec![];
    let (mut products, mut sums) = (0, 0);
    for _ in 0..10 + rng.below(60) {
        let free: Vec<u32> = (0..SLOTS).filter(|s| !pending.contains(s)).collect();
        if free.len() < 4 {
            break;
        }
        let src = |rng: &mut SplitMix, temps: u32| match rng.below(8) {
            0 => Src::Uniform(rng.below(UNIFORMS as usize) as u32),
            1..=4 if temps > 0 => Src::Temp(temps - 1 - rng.below((temps as usize).min(6)) as u32),
            _ => Src::Slot(free[rng.below(free.len())]),
        };
        let (a, b) = (src(rng, p.temps), src(rng, p.temps));
        let dst = |rng: &mut SplitMix, temps: &mut u32| {
            if rng.below(3) == 0 {
                Dst::Slot(free[rng.below(free.len())])
            } else {
                *temps += 1;
                Dst::Temp(*temps - 1)
            }
        };
        let constant = u128::from(rng.next()) << 64 | u128::from(rng.next());
        let instr = match rng.below(11) {
            0..=3 => Instr::Add(a, b, dst(rng, &mut p.temps)),
            4 => Instr::Sub(a, b, dst(rng, &mut p.temps)),
            5 => Instr::Plus(a, constant, dst(rng, &mut p.temps)),
            6 => Instr::Times(a, constant, dst(rng, &mut p.temps)),
            7 if rng.below(2) == 0 => Instr::Copy(a, dst(rng, &mut p.temps)),
            7 => Instr::Constant(constant, dst(rng, &mut p.temps)),
            8 if ring != Ring::Bits && sums < SUMS => {
                let start = p.pairs.len() as u32;
                p.pairs.extend([(a, b), (b, b)]);
                sums += 1;
                let out = sums - 1;
                if rng.below(2) == 0 {
                    Instr::Sum(a, out)
                } else {
                    Instr::ProductSum {
                        pairs: start..start + 2,
                        out,
                        index: out,
                    }
                }
            }
            _ => {
                let start = p.pairs.len() as u32;
                let len = 1 + rng.below(3) as u32;
                for _ in 0..len {
                    let pair = (src(rng, p.temps), src(rng, p.temps));
                    p.pairs.push(pair);
                }
                let out = free[rng.below(free.len())];
                pending.push(out);
                products += 1;
                Instr::Product {
                    pairs: start..start + len,
                    out,
                    index: products - 1,
                }
            }
        };
        p.code.push(instr);
    }
    p
}

fn one(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    let form = &FORMS[rng.below(FORMS.len())];
    let ring = form.ring;
    let rows = ROWS[rng.below(ROWS.len())];
    let chunk_rows = rows + rng.below(3) as u32 * 100;
    let layout = layout(ring, chunk_rows);
    let program = Arc::new(program(rng, ring));
    let session = SessionId(std::array::from_fn(|_| rng.next() as u8));
    let keys = [(); 2].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
    let input = rng.bytes(layout.bytes(layout.all(IN, 0), rows) as usize * 2);
    let ones = rng.bytes(layout.bytes(layout.all(UNIFORM_REGION, 0), rows) as usize * 2);
    let received = rng.bytes(layout.bytes(layout.all(MESSAGE, 0), rows) as usize);
    let received_sums = rng.bytes(layout.bytes(layout.all(SUM_MESSAGE, 0), rows) as usize);
    let constants = rng.below(4) as u8;
    let frame = Frame {
        epoch: 0,
        lane: rng.next() as u16,
        chunk: rng.next() as u32,
        rows,
    };
    let draw = |key, tag, first, minus| Draw {
        key: KeyId(key),
        tag,
        first,
        minus,
    };
    let first = rng.next() >> 8;

    let mut results = Vec::new();
    let mut reference = Reference::default();
    for device in [&mut reference as &mut dyn Device, device] {
        let mut run = || -> Result<Vec<(&'static str, Vec<u8>)>, Fault> {
            device.bind(session);
            device.load_key(KeyId(0), &keys[0])?;
            device.load_key(KeyId(1), &keys[1])?;
            let id = device.load(&program, &layout)?;
            let bank = device.open(&layout, frame)?;
            let mut seen = Vec::new();
            for part in 0..2u8 {
                let half = input.len() / 2 * part as usize;
                device.write(
                    bank,
                    layout.all(IN, part),
                    &input[half..][..input.len() / 2],
                )?;
                let half = ones.len() / 2 * part as usize;
                device.write(
                    bank,
                    layout.all(UNIFORM_REGION, part),
                    &ones[half..][..ones.len() / 2],
                )?;
            }
            let copy = |from: u16, to: u16, part| {
                Command::new(
                    Op::Combine { ring, minus: 0 },
                    vec![layout.all(from, part)],
                    vec![layout.all(to, part)],
                )
            };
            let (rows_products, sum_products) = program.products();
            let linear = rows_products + sum_products == 0;
            let mut run = Command::new(
                if linear {
                    Op::Linear
                } else {
                    Op::Product(form)
                },
                vec![],
                vec![layout.all(MESSAGE, 0), layout.all(SUM_MESSAGE, 0)],
            );
            run.program = Some(id);
            run.constants = constants;
            run.draws = vec![
                draw(0, Use::AND3, first, false),
                draw(1, Use::AND3, first, true),
                draw(0, Use::SUM3, first, false),
                draw(1, Use::SUM3, first, true),
            ];
            let mut random = Command::new(Op::Random, vec![], vec![layout.all(RANDOM, 0)]);
            random.draws = vec![draw(0, Use::RAND3, first, false)];
            let digest = Span {
                region: DIGEST,
                part: 0,
                first: 1,
                count: 1,
            };
            let difference = Command::new(
                Op::Combine { ring, minus: 0b10 },
                vec![
                    layout.all(RANDOM, 0),
                    Span {
                        count: 5,
                        ..layout.all(IN, 0)
                    },
                ],
                vec![layout.all(RANDOM, 0)],
            );
            let first_batch = [
                copy(IN, SLOT_REGION, 0),
                copy(IN, SLOT_REGION, 1),
                run.clone(),
                random,
                Command::new(
                    Op::Hash { label: 7 },
                    vec![layout.all(SLOT_REGION, 0), layout.all(RANDOM, 0)],
                    vec![digest],
                ),
                difference,
            ];
            device.submit(bank, &first_batch, Tag(1))?;
            expect_done(device)?;
            seen.push((
                "the message of products",
                device
                    .view(bank, used(&layout, MESSAGE, rows_products))?
                    .to_vec(),
            ));
            seen.push((
                "the message of sums",
                device.view(bank, layout.all(SUM_MESSAGE, 0))?.to_vec(),
            ));
            seen.push((
                "a combination of random elements",
                device.view(bank, layout.all(RANDOM, 0))?.to_vec(),
            ));
            seen.push(("a digest", device.view(bank, digest)?.to_vec()));
            device
                .map(bank, layout.all(MESSAGE, 0))?
                .copy_from_slice(&received);
            device
                .map(bank, layout.all(SUM_MESSAGE, 0))?
                .copy_from_slice(&received_sums);
            let mut scatter = Command::new(
                Op::Scatter { part: 1 - form.own },
                vec![layout.all(MESSAGE, 0), layout.all(SUM_MESSAGE, 0)],
                vec![],
            );
            scatter.program = Some(id);
            device.submit(
                bank,
                &[
                    scatter,
                    copy(SLOT_REGION, OUT, 0),
                    copy(SLOT_REGION, OUT, 1),
                ],
                Tag(2),
            )?;
            expect_done(device)?;
            for part in 0..2 {
                seen.push(("a slot", device.view(bank, layout.all(OUT, part))?.to_vec()));
                seen.push((
                    "a sum",
                    device.view(bank, layout.all(SUM_REGION, part))?.to_vec(),
                ));
            }
            let equal = Command::new(
                Op::CheckEqual,
                vec![layout.all(OUT, 0), layout.all(SLOT_REGION, 0)],
                vec![],
            );
            let unequal = Command::new(
                Op::CheckEqual,
                vec![Span { first: 0, ..digest }, Span { first: 1, ..digest }],
                vec![],
            );
            device.submit(bank, &[equal, unequal], Tag(3))?;
            let ended = device.poll().map(|c| c.outcome);
            seen.push((
                "a check of equality",
                vec![u8::from(ended == Some(Outcome::Mismatch { command: 1 }))],
            ));
            device.close(bank);
            Ok(seen)
        };
        results.push(run().map_err(|fault| Difference::Fault { case, fault })?);
    }
    for ((what, want), (_, got)) in results[0].iter().zip(&results[1]) {
        if want != got {
            return Err(Difference::Bytes {
                case,
                ring,
                rows,
                chunk_rows,
                what,
            });
        }
    }
    Ok(())
}

fn used(layout: &Layout, region: u16, count: u32) -> Span {
    Span {
        count,
        ..layout.all(region, 0)
    }
}

fn expect_done(device: &mut dyn Device) -> Result<(), Fault> {
    match device.poll().map(|c| c.outcome) {
        Some(Outcome::Done) => Ok(()),
        _ => Err(Fault::Unknown("the completion of a batch")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Isa};

    #[test]
    fn every_instruction_set_equals_the_reference() {
        for isa in Isa::available().into_iter().rev() {
            check(&mut Cpu::with(isa), 1, 400).unwrap_or_else(|e| panic!("{isa:?}: {e}"));
        }
    }

    /// The suite finds a device that is wrong in one bit of one message.
    #[test]
    fn a_wrong_device_is_found() {
        struct Wrong(Cpu);
        impl Device for Wrong {
            fn name(&self) -> &'static str {
                "wrong"
            }

            fn load_key(&mut self, id: KeyId, _: &Secret) -> Result<(), Fault> {
                self.0.load_key(id, &Secret::new([0; 16]))
            }

            crate::forward!(self, self.0, bind load open close write map view submit poll wipe);
        }
        let found = check(&mut Wrong(Cpu::with(Isa::Portable)), 1, 20);
        assert!(matches!(found, Err(Difference::Bytes { .. })), "{found:?}");
    }
}
