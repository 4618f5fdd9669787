//! Random programs over every ring.

use veil_math::Ring;

use super::SplitMix;
use super::rings::{JOB_WIDE, JOB_WIDE_REGION, SLOT_REGION, SLOTS, SUM_REGION, SUMS};
use crate::{Dst, Instr, Program, Src};

/// A random program over labels: its products have one pair each, and half of the programs read and overwrite their results.
pub(super) fn labels(rng: &mut SplitMix) -> Program {
    let chained = rng.below(2) == 0;
    let mut program = random(rng, Ring::Bits, chained);
    for instr in &mut program.code {
        if let Instr::Product { pairs, .. } = instr {
            pairs.end = pairs.start + 1;
        }
    }
    program
}

/// A random program over shares that obeys the rules of [`Program::check`].
pub(super) fn program(rng: &mut SplitMix, ring: Ring) -> Program {
    random(rng, ring, false)
}

fn random(rng: &mut SplitMix, ring: Ring, chained: bool) -> Program {
    let mut p = Program {
        ring,
        slots: SLOT_REGION,
        job_wide: JOB_WIDE_REGION,
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
            0 => Src::JobWide(rng.below(JOB_WIDE as usize) as u32),
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
                if !chained {
                    pending.push(out);
                }
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
