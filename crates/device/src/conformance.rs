//! The suite that every device must pass: the same commands, the same bytes as [`Reference`].
//!
//! Cases are drawn from a seed: random programs over every ring, with chains and sums of products, on ragged numbers of rows.

mod proof;

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::Use;
use veil_session::{Frame, Secret, SessionId};

use crate::{
    Command, Cross, Device, Draw, Dst, Fault, Form, Instr, Item, KeyId, Layout, Op, Outcome, Place,
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

/// Forms that devices may have kernels for, and two that nobody specialises.
fn forms() -> Vec<&'static Form> {
    let mut forms = vec![&PLAIN, &ODD];
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        forms.push(Form::replicated(ring));
        for (swapped, five) in [(false, false), (false, true), (true, false), (true, true)] {
            forms.push(Form::fourfold(ring, swapped, five));
        }
    }
    forms
}

static PLAIN: Form = Form {
    ring: Ring::Z64,
    crosses: &[Cross {
        terms: &[(1, 1), (0, 1)],
        masks: &[(0, false), (1, true)],
        to: 1,
    }],
    keeps: &[],
};

static ODD: Form = Form {
    ring: Ring::Z128,
    crosses: &[
        Cross {
            terms: &[(2, 0)],
            masks: &[(0, true), (3, false)],
            to: 2,
        },
        Cross {
            terms: &[(0, 1), (1, 0), (2, 2)],
            masks: &[],
            to: 2,
        },
    ],
    keeps: &[(2, 0), (1, 2)],
};

/// Numbers of rows that find the edges: nothing, one, around bytes, words, vectors and groups of them.
const ROWS: [u32; 18] = [
    0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 129, 511, 512, 513, 1000, 2048, 2500,
];

/// After so many cases comes one about proofs.
const PROOFS: u32 = 4;

/// Runs `cases` random cases from `seed`.
pub fn check(device: &mut dyn Device, seed: u64, cases: u32) -> Result<(), Difference> {
    let mut rng = SplitMix(seed);
    for case in 0..cases {
        one(device, &mut rng, case)?;
        if case % PROOFS == 0 {
            proof::one(device, &mut rng, case)?;
        }
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

/// Components of a share: as many as any form has.
const PARTS: u8 = 3;
/// Messages of a product: as many as any form has.
const MESSAGES: u8 = Form::MOST_CROSSES as u8;
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
const CODE: u16 = 9;
const BITS: u16 = 10;
const LIFTED: u16 = 11;
const BITS_SEEN: u16 = 12;
/// Items of bits.
const WORD: u32 = 128;

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
            region(Place::Mapped, Item::Rows(ring), PARTS, SLOTS),
            region(Place::Resident, Item::Rows(ring), PARTS, SLOTS),
            region(Place::Mapped, Item::One(ring), PARTS, UNIFORMS),
            region(Place::Mapped, Item::One(ring), PARTS, SUMS),
            region(Place::Mapped, Item::Rows(ring), MESSAGES, 64),
            region(Place::Mapped, Item::One(ring), MESSAGES, SUMS),
            region(Place::Public, Item::Rows(ring), PARTS, SLOTS),
            region(Place::Mapped, Item::Bytes(32), 1, 2),
            region(Place::Mapped, Item::Rows(ring), 1, 5),
            region(Place::Mapped, Item::Bytes(16), 1, 1),
            region(Place::Resident, Item::Rows(Ring::Bits), PARTS, WORD),
            region(Place::Public, Item::Rows(integers(ring)), PARTS, 3),
            region(Place::Public, Item::Rows(Ring::Bits), PARTS, WORD),
        ],
    }
}

/// The ring of integers that bits are lifted to, beside values of `ring`.
fn integers(ring: Ring) -> Ring {
    if ring == Ring::Bits { Ring::Z64 } else { ring }
}

/// Conversions of values of `ring`, if that has bits: some bits of an item and of what all rows share, and what they are lifted to.
fn conversions(rng: &mut SplitMix, ring: Ring) -> Vec<Command> {
    let one = |region, part, first, count| Span {
        region,
        part,
        first,
        count,
    };
    let (part, bits) = (rng.below(PARTS.into()) as u8, integers(ring).bits());
    let first = rng.below(bits as usize) as u32;
    let count = 1 + rng.below((bits - first) as usize) as u32;
    let to = rng.below((WORD - count + 1) as usize) as u32;
    let seen = one(BITS, part, to, count);
    let split = |from, to| Command::new(Op::Split { first }, vec![from], vec![to]);
    let (item, uniform) = (rng.below(SLOTS as usize), rng.below(UNIFORMS as usize));
    let other = one(BITS, (part + 1) % PARTS, to, count);
    let mut commands = Vec::new();
    if ring == Ring::Bits {
        let copy = Op::Combine { ring, minus: 0 };
        let from = one(SLOT_REGION, part, 0, 3);
        commands.push(Command::new(
            copy,
            vec![from],
            vec![one(BITS, part, to.min(WORD - 3), 3)],
        ));
    } else {
        commands.push(split(one(SLOT_REGION, part, item as u32, 1), seen));
        commands.push(split(one(UNIFORM_REGION, part, uniform as u32, 1), other));
        let sources = [
            one(SLOT_REGION, part, item as u32, 1),
            one(UNIFORM_REGION, part, uniform as u32, 1),
        ];
        let (other, by) = ((part + 1) % PARTS, rng.below(bits as usize) as u32);
        for (k, from) in (0..).zip(sources) {
            let to = one(LIFTED, other, k, 1);
            commands.push(Command::new(Op::Shift { by }, vec![from], vec![to]));
        }
    }
    let lifted = 1 + rng.below(3) as u32;
    let from = one(BITS, part, to.min(WORD - lifted), lifted);
    commands.push(Command::new(
        Op::Lift,
        vec![from],
        vec![one(LIFTED, part, 0, lifted)],
    ));
    for part in 0..PARTS {
        let ring = Ring::Bits;
        let (from, to) = (one(BITS, part, 0, WORD), one(BITS_SEEN, part, 0, WORD));
        let op = Op::Combine { ring, minus: 0 };
        commands.push(Command::new(op, vec![from], vec![to]));
    }
    commands
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
    let forms = forms();
    let form = forms[rng.below(forms.len())];
    let ring = form.ring;
    let rows = ROWS[rng.below(ROWS.len())];
    let chunk_rows = rows + rng.below(3) as u32 * 100;
    let layout = layout(ring, chunk_rows);
    let program = Arc::new(program(rng, ring));
    let session = SessionId(std::array::from_fn(|_| rng.next() as u8));
    let keys =
        [(); Form::MOST_DRAWS].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
    let mut per_part = |region, parts: u8| -> Vec<Vec<u8>> {
        let bytes = layout.bytes(layout.all(region, 0), rows) as usize;
        (0..parts).map(|_| rng.bytes(bytes)).collect()
    };
    let input = per_part(IN, PARTS);
    let ones = per_part(UNIFORM_REGION, PARTS);
    let received = per_part(MESSAGE, 1);
    let received_sums = per_part(SUM_MESSAGE, 1);
    let constants = rng.below(1 << PARTS) as u8;
    let (part, add) = (rng.below(PARTS.into()) as u8, rng.below(2) == 0);
    let frame = Frame {
        epoch: 0,
        lane: rng.next() as u16,
        chunk: rng.next() as u32,
        rows,
    };
    let draw = |key, tag, first| Draw {
        key: KeyId(key),
        tag,
        first,
    };
    let first = rng.next() >> 8;
    let conversions = conversions(rng, ring);

    let mut results = Vec::new();
    let mut reference = Reference::default();
    for device in [&mut reference as &mut dyn Device, device] {
        let mut run = || -> Result<Vec<(&'static str, Vec<u8>)>, Fault> {
            device.bind(session);
            for (id, key) in (0..).map(KeyId).zip(&keys) {
                device.load_key(id, key)?;
            }
            let id = device.load(&program, &layout)?;
            let bank = device.open(&layout, frame)?;
            let mut seen = Vec::new();
            for part in 0..PARTS {
                let k = usize::from(part);
                device.write(bank, layout.all(IN, part), &input[k])?;
                device.write(bank, layout.all(UNIFORM_REGION, part), &ones[k])?;
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
            let messages = [MESSAGE, SUM_MESSAGE].map(|region| {
                let crosses = 0..form.crosses.len() as u8;
                crosses.map(|k| layout.all(region, k)).collect::<Vec<_>>()
            });
            let mut run = Command::new(
                if linear {
                    Op::Linear
                } else {
                    Op::Product(form)
                },
                vec![],
                messages.concat(),
            );
            run.program = Some(id);
            run.constants = constants;
            if !linear {
                let draws = |tag| (0..form.draws() as u16).map(move |d| draw(d, tag, first));
                run.draws = draws(Use::AND3).chain(draws(Use::SUM3)).collect();
            }
            let mut random = Command::new(Op::Random, vec![], vec![layout.all(RANDOM, 0)]);
            random.draws = vec![draw(0, Use::RAND3, first)];
            let mut mac = Command::new(
                Op::Mac,
                vec![layout.all(RANDOM, 0), layout.all(UNIFORM_REGION, 1)],
                vec![layout.all(CODE, 0)],
            );
            mac.draws = vec![draw(1, Use::RAND3, first)];
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
            let copies = |from, to| (0..PARTS).map(move |part| copy(from, to, part));
            let mut first_batch: Vec<Command> = copies(IN, SLOT_REGION).collect();
            first_batch.extend([
                run.clone(),
                random,
                Command::new(
                    Op::Hash { label: 7 },
                    vec![layout.all(SLOT_REGION, 0), layout.all(RANDOM, 0)],
                    vec![digest],
                ),
                difference,
                mac,
            ]);
            device.submit(bank, &first_batch, Tag(1))?;
            expect_done(device)?;
            for k in 0..form.crosses.len() as u8 {
                let products = Span {
                    count: rows_products,
                    ..layout.all(MESSAGE, k)
                };
                seen.push((
                    "the message of products",
                    device.view(bank, products)?.to_vec(),
                ));
                let sums = device.view(bank, layout.all(SUM_MESSAGE, k))?;
                seen.push(("the message of sums", sums.to_vec()));
            }
            seen.push((
                "a combination of random elements",
                device.view(bank, layout.all(RANDOM, 0))?.to_vec(),
            ));
            let code = device.view(bank, layout.all(CODE, 0))?;
            seen.push(("an authentication code", code.to_vec()));
            seen.push(("a digest", device.view(bank, digest)?.to_vec()));
            device.write(bank, layout.all(MESSAGE, 0), &received[0])?;
            device.write(bank, layout.all(SUM_MESSAGE, 0), &received_sums[0])?;
            let mut scatter = Command::new(
                Op::Scatter { part, add },
                vec![layout.all(MESSAGE, 0), layout.all(SUM_MESSAGE, 0)],
                vec![],
            );
            scatter.program = Some(id);
            let mut second_batch = vec![scatter];
            second_batch.extend(copies(SLOT_REGION, OUT));
            second_batch.extend(conversions.iter().cloned());
            device.submit(bank, &second_batch, Tag(2))?;
            expect_done(device)?;
            for part in 0..PARTS {
                seen.push(("a slot", device.view(bank, layout.all(OUT, part))?.to_vec()));
                let bits = device.view(bank, layout.all(BITS_SEEN, part))?;
                seen.push(("bits of integers", bits.to_vec()));
                let lifted = device.view(bank, layout.all(LIFTED, part))?;
                seen.push(("bits as integers", lifted.to_vec()));
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
