//! Shapes of XORs: those of a program that hang together, up to the names of what they read and write.

use std::collections::BTreeMap;

use super::fuse::{Fused, for_sources, fuse};
use crate::program::{Dst, Instr, Program, Src};

/// XORs that hang together: each but the first reads the result of another of them, or has its result read by one.
#[derive(Debug, Default)]
pub(super) struct Component {
    /// Which instructions, in order.
    pub(super) members: Vec<usize>,
    /// What they compute.
    pub(super) shape: Vec<u16>,
    /// Rows that come from outside, in the order in which they are first read; and job-wide values.
    pub(super) rows: Vec<Src>,
    pub(super) job_values: Vec<u32>,
    /// Where results go that others read, in order.
    pub(super) outs: Vec<Dst>,
}

/// XORs of a component, at most, and sources of each: a longer one is none. Circuits of others may hang together as a whole.
const MOST_XORS: usize = 1 << 10;
const MOST_SOURCES: usize = 1 << 8;

/// A shape is a list of XORs: each begins with four times its number of sources, and these flags; then come the sources, each four times its number
/// among those of its kind, and that kind.
pub(in crate::cpu) const ONE: u16 = 1;
/// Others read the result.
pub(in crate::cpu) const OUT: u16 = 2;
/// A row from outside; what it is not, is one of the other kinds.
const ROW: u16 = 0;
/// A job-wide value.
pub(in crate::cpu) const JOB_VALUE: u16 = 1;
/// The result of an XOR of the component.
pub(in crate::cpu) const LOCAL: u16 = 2;

/// Written by no XOR of the program.
const NONE: u32 = u32::MAX;

/// Of an instruction, the one that stands for its component.
fn root(of: &mut [u32], mut k: u32) -> u32 {
    while of[k as usize] != k {
        of[k as usize] = of[of[k as usize] as usize];
        k = of[k as usize];
    }
    k
}

/// Which XOR every value of a program comes from.
struct Origins {
    /// For each source of each XOR, one after the other.
    of_sources: Vec<u32>,
    /// For each instruction, one of the same component: that which stands for it refers to itself.
    component: Vec<u32>,
    /// Whether others than XORs read the result.
    out: Vec<bool>,
}

impl Origins {
    fn of(code: &[Fused], temps: u32, slots: u32) -> Self {
        let mut origins = Origins {
            of_sources: Vec::new(),
            component: (0..code.len() as u32).collect(),
            out: vec![false; code.len()],
        };
        let mut of_temp = vec![NONE; temps as usize];
        let mut of_slot = vec![NONE; slots as usize];
        for (k, instr) in code.iter().enumerate() {
            match instr {
                Fused::Xor { srcs, out, .. } => {
                    for src in srcs {
                        let from = match *src {
                            Src::Temp(t) => of_temp[t as usize],
                            Src::Slot(s) => of_slot[s as usize],
                            Src::JobWide(_) => NONE,
                        };
                        origins.of_sources.push(from);
                        if from != NONE {
                            let all = &mut origins.component;
                            let (a, b) = (root(all, k as u32), root(all, from));
                            all[a.max(b) as usize] = a.min(b);
                        }
                    }
                    match *out {
                        Dst::Temp(t) => of_temp[t as usize] = k as u32,
                        Dst::Slot(s) => {
                            of_slot[s as usize] = k as u32;
                            origins.out[k] = true;
                        }
                    }
                }
                Fused::Product {
                    pairs, out, sum, ..
                } => {
                    for src in pairs.iter().flat_map(|(a, b)| [a, b]) {
                        if let Src::Temp(t) = src
                            && of_temp[*t as usize] != NONE
                        {
                            origins.out[of_temp[*t as usize] as usize] = true;
                        }
                    }
                    if !sum {
                        of_slot[*out as usize] = NONE;
                    }
                }
                Fused::Plain(_) => {}
            }
        }
        origins
    }
}

/// The components of a program of bits.
pub(super) fn components(code: &[Fused], temps: u32, slots: u32) -> Vec<Component> {
    let mut origins = Origins::of(code, temps, slots);
    let mut from = origins.of_sources.iter();
    // Nothing, of one that is too long.
    let mut all: BTreeMap<u32, Option<Component>> = BTreeMap::new();
    // The place of each XOR in its component.
    let mut place = vec![0u16; code.len()];
    for (k, instr) in code.iter().enumerate() {
        let Fused::Xor { srcs, one, out } = instr else {
            continue;
        };
        let from = from.by_ref().take(srcs.len());
        let from: Vec<u32> = from.copied().collect();
        let entry = all.entry(root(&mut origins.component, k as u32));
        let entry = entry.or_insert_with(|| Some(Component::default()));
        let Some(component) = entry else { continue };
        place[k] = component.members.len() as u16;
        component.members.push(k);
        let flags = if *one { ONE } else { 0 } | if origins.out[k] { OUT } else { 0 };
        component.shape.push((srcs.len() as u16) << 2 | flags);
        for (src, from) in srcs.iter().zip(from) {
            let operand = match *src {
                _ if from != NONE => place[from as usize] << 2 | LOCAL,
                Src::JobWide(u) => number(&mut component.job_values, u) << 2 | JOB_VALUE,
                src => number(&mut component.rows, src) << 2 | ROW,
            };
            component.shape.push(operand);
        }
        if origins.out[k] {
            component.outs.push(*out);
        }
        let sources = component.rows.len().max(component.job_values.len());
        if component.members.len() > MOST_XORS || sources.max(srcs.len()) > MOST_SOURCES {
            *entry = None;
        }
    }
    all.into_values().flatten().collect()
}

/// The place of a value in a list, at whose end it is put if it is not there.
fn number<T: PartialEq>(list: &mut Vec<T>, value: T) -> u16 {
    let found = list.iter().position(|of| *of == value);
    let place = found.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    });
    place as u16
}

/// Which instructions read or write each slot.
pub(super) struct Touched {
    reads: Vec<Vec<usize>>,
    writes: Vec<Vec<usize>>,
}

impl Touched {
    pub(super) fn of(code: &[Fused], slots: u32) -> Self {
        let none = vec![Vec::new(); slots as usize];
        let mut touched = Touched {
            reads: none.clone(),
            writes: none,
        };
        for (k, instr) in code.iter().enumerate() {
            for_sources(instr, |src| {
                if let Src::Slot(s) = src {
                    touched.reads[s as usize].push(k);
                }
            });
            let to = match instr {
                Fused::Xor { out, .. } => Some(*out),
                Fused::Product { out, sum, .. } => (!sum).then_some(Dst::Slot(*out)),
                Fused::Plain(instr) => instr.to(),
            };
            if let Some(Dst::Slot(s)) = to {
                touched.writes[s as usize].push(k);
            }
        }
        touched
    }

    /// Whether all of a component may be computed where its first instruction is: between that and each of the others no other instruction
    /// writes what this one reads, or touches what it writes.
    pub(super) fn may_begin_at_the_first(&self, component: &Component, code: &[Fused]) -> bool {
        let first = component.members[0];
        component.members[1..].iter().all(|&k| {
            let Fused::Xor { srcs, out, .. } = &code[k] else {
                return false;
            };
            let alone = |all: &[Vec<usize>], s: u32| {
                let all = &all[s as usize];
                let from = all.partition_point(|at| *at <= first);
                let between = all[from..].iter().take_while(|at| **at < k);
                between
                    .into_iter()
                    .all(|at| component.members.binary_search(at).is_ok())
            };
            let reads = srcs.iter().all(|src| match src {
                Src::Slot(s) => alone(&self.writes, *s),
                Src::Temp(_) | Src::JobWide(_) => true,
            });
            reads
                && match out {
                    Dst::Slot(s) => alone(&self.writes, *s) && alone(&self.reads, *s),
                    Dst::Temp(_) => true,
                }
        })
    }
}

/// The shapes of the XORs of a program of bits that may be computed at once, one after the other.
pub(in crate::cpu) fn of(program: &Program) -> Vec<Vec<u16>> {
    let slots = slots_of(program);
    let code = fuse(program, slots);
    let touched = Touched::of(&code, slots);
    let components = components(&code, program.temps, slots).into_iter();
    components
        .filter(|component| touched.may_begin_at_the_first(component, &code))
        .map(|component| component.shape)
        .collect()
}

/// One more than the largest slot of a program.
fn slots_of(program: &Program) -> u32 {
    let mut slots = 0;
    let mut see = |s: u32| slots = slots.max(s + 1);
    for instr in &program.code {
        let sources = match instr {
            Instr::Add(a, b, _) | Instr::Sub(a, b, _) => [Some(*a), Some(*b)],
            Instr::Plus(a, ..) | Instr::Times(a, ..) | Instr::Copy(a, _) | Instr::Sum(a, _) => {
                [Some(*a), None]
            }
            Instr::Constant(..) | Instr::Product { .. } | Instr::ProductSum { .. } => [None; 2],
        };
        for source in sources.into_iter().flatten() {
            if let Src::Slot(s) = source {
                see(s);
            }
        }
        if let Some(Dst::Slot(s)) = instr.to() {
            see(s);
        }
    }
    for (a, b) in &program.pairs {
        for source in [a, b] {
            if let Src::Slot(s) = source {
                see(*s);
            }
        }
    }
    slots
}
