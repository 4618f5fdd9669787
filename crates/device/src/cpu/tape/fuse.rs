//! Fusion: chains of XOR become one instruction, whose running value stays in a register.

use veil_math::Ring;

use crate::program::{Dst, Instr, Program, Src};

/// An instruction after fusion.
pub(super) enum Fused {
    Xor {
        srcs: Vec<Src>,
        one: bool,
        out: Dst,
    },
    Plain(Instr),
    Product {
        pairs: Vec<(Src, Src)>,
        out: u32,
        index: u32,
        sum: bool,
    },
}

/// A chain longer than this is cut: the encoding of lengths is short, and nothing is gained beyond.
const LONGEST_XOR: usize = 4096;

/// Over bits: makes every linear instruction an XOR of a list, and puts lists that are read once, by another list, in its place.
pub(super) fn fuse(program: &Program, slots: u32) -> Vec<Fused> {
    let mut reads = vec![0u32; program.temps as usize];
    let mut count = |src: &Src| {
        if let Src::Temp(t) = src {
            reads[*t as usize] += 1;
        }
    };
    for instr in &program.code {
        match instr {
            Instr::Add(a, b, _) | Instr::Sub(a, b, _) => [a, b].into_iter().for_each(&mut count),
            Instr::Plus(a, _, _) | Instr::Times(a, _, _) | Instr::Copy(a, _) | Instr::Sum(a, _) => {
                count(a);
            }
            Instr::Constant(..) => {}
            Instr::Product { pairs, .. } | Instr::ProductSum { pairs, .. } => {
                for (a, b) in &program.pairs[pairs.start as usize..pairs.end as usize] {
                    count(a);
                    // A product reads its operands from memory: a temp there is never put in place.
                    count(a);
                    count(b);
                    count(b);
                }
            }
        }
    }
    let mut lists: Vec<Option<(Vec<Src>, bool)>> = vec![None; program.temps as usize];
    // A list that waits must not outlive a value it reads: slots that are overwritten meanwhile. Slots written in this program
    // are known; lists that read them are not put off.
    let mut overwritten = vec![false; slots as usize];
    for instr in &program.code {
        match instr {
            Instr::Add(_, _, Dst::Slot(s))
            | Instr::Sub(_, _, Dst::Slot(s))
            | Instr::Plus(_, _, Dst::Slot(s))
            | Instr::Times(_, _, Dst::Slot(s))
            | Instr::Copy(_, Dst::Slot(s))
            | Instr::Constant(_, Dst::Slot(s))
            | Instr::Product { out: s, .. } => {
                overwritten[*s as usize] = true;
            }
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(program.code.len());
    for instr in &program.code {
        let bits = program.ring == Ring::Bits;
        let (sources, one, dst): (&[Src], bool, Dst) = match instr {
            Instr::Product {
                pairs,
                out: o,
                index,
            }
            | Instr::ProductSum {
                pairs,
                out: o,
                index,
            } => {
                let pairs = program.pairs[pairs.start as usize..pairs.end as usize].to_vec();
                let sum = matches!(instr, Instr::ProductSum { .. });
                out.push(Fused::Product {
                    pairs,
                    out: *o,
                    index: *index,
                    sum,
                });
                continue;
            }
            Instr::Add(a, b, o) | Instr::Sub(a, b, o) if bits => (&[*a, *b], false, *o),
            Instr::Plus(a, c, o) if bits => (&[*a], c & 1 == 1, *o),
            Instr::Times(a, c, o) if bits => (
                if c & 1 == 1 {
                    std::slice::from_ref(a)
                } else {
                    &[]
                },
                false,
                *o,
            ),
            Instr::Copy(a, o) if bits => (std::slice::from_ref(a), false, *o),
            Instr::Constant(c, o) if bits => (&[], c & 1 == 1, *o),
            other => {
                out.push(Fused::Plain(other.clone()));
                continue;
            }
        };
        let mut list = Vec::with_capacity(4);
        let mut one = one;
        for src in sources {
            match src {
                Src::Temp(t) => match lists[*t as usize].take() {
                    Some((inner, inner_one)) => {
                        list.extend(inner);
                        one ^= inner_one;
                    }
                    None => list.push(*src),
                },
                Src::Slot(_) | Src::JobWide(_) => list.push(*src),
            }
        }
        match dst {
            Dst::Temp(t)
                if reads[t as usize] == 1
                    && list.len() < LONGEST_XOR / 2
                    && !list
                        .iter()
                        .any(|s| matches!(s, Src::Slot(s) if overwritten[*s as usize])) =>
            {
                lists[t as usize] = Some((list, one));
            }
            _ => out.push(Fused::Xor {
                srcs: list,
                one,
                out: dst,
            }),
        }
    }
    out
}

/// Calls `f` with every source of an instruction.
pub(super) fn for_sources(instr: &Fused, mut f: impl FnMut(Src)) {
    match instr {
        Fused::Xor { srcs, .. } => srcs.iter().for_each(|s| f(*s)),
        Fused::Product { pairs, .. } => pairs.iter().for_each(|(a, b)| {
            f(*a);
            f(*b);
        }),
        Fused::Plain(instr) => match instr {
            Instr::Add(a, b, _) | Instr::Sub(a, b, _) => {
                f(*a);
                f(*b);
            }
            Instr::Plus(a, _, _) | Instr::Times(a, _, _) | Instr::Copy(a, _) | Instr::Sum(a, _) => {
                f(*a);
            }
            Instr::Constant(..) | Instr::Product { .. } | Instr::ProductSum { .. } => {}
        },
    }
}
