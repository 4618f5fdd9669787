//! The straight-line program of a layer: linear gates and products in order.

use std::ops::Range;

use veil_math::Ring;

use crate::layout::{ColumnType, Layout, Region, Residency, Span};
use crate::proof::TRACE_PARTS;
use crate::{Fault, Form};

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Src {
    /// A slot of the workspace: survives from layer to layer.
    Slot(u32),
    /// A value of this program, written before by an instruction of it and forgotten after it. Written once.
    Temp(u32),
    /// A value that all rows of the job share.
    JobWide(u32),
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dst {
    /// A slot of the workspace.
    Slot(u32),
    /// A value of this program; each is written once.
    Temp(u32),
}

/// One instruction. Linear ones act on every component alike; constants act on the components that the command names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Instr {
    /// out = a + b.
    Add(Src, Src, Dst),
    /// out = a - b.
    Sub(Src, Src, Dst),
    /// out = a + c, where c is public.
    Plus(Src, u128, Dst),
    /// out = a · c, where c is public.
    Times(Src, u128, Dst),
    /// out = a.
    Copy(Src, Dst),
    /// out = c, a public constant as a sharing.
    Constant(u128, Dst),
    /// out = Σ a · b over `pairs`, one element per row, as product `index` of the message.
    Product {
        /// Range of [`Program::pairs`]; not empty.
        pairs: Range<u32>,
        /// Slot that gets the components which the form writes.
        out: u32,
        /// Place in the message, and in the calls.
        index: u32,
    },
    /// sums\[out\] = Σ_rows Σ a · b over `pairs`, one element in all, as element `index` of the message of sums.
    ProductSum {
        /// Range of [`Program::pairs`]; not empty.
        pairs: Range<u32>,
        /// Column of the sums region.
        out: u32,
        /// Place in the message of sums, and in the calls.
        index: u32,
    },
    /// sums\[out\] = Σ_rows a.
    Sum(Src, u32),
}

impl Instr {
    /// Where it writes, if that is not a sum over rows.
    pub const fn to(&self) -> Option<Dst> {
        match *self {
            Instr::Add(_, _, to)
            | Instr::Sub(_, _, to)
            | Instr::Plus(_, _, to)
            | Instr::Times(_, _, to)
            | Instr::Copy(_, to)
            | Instr::Constant(_, to) => Some(to),
            Instr::Product { out, .. } => Some(Dst::Slot(out)),
            Instr::ProductSum { .. } | Instr::Sum(..) => None,
        }
    }
}

/// A program over the slots of a workspace.
///
/// The result of a product of shares is complete only when messages have come: no later instruction of the same program touches its slot. The
/// result of a product of labels is complete at once, and later instructions read it and reuse its slot like any other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    /// The ring of all its values.
    pub ring: Ring,
    /// Region of slots: resident or a plane, `ColumnType::Rows(ring)`; or resident, `ColumnType::Labels`, for a program of bits that is garbled or evaluated.
    pub slots: u16,
    /// Region of job-wide values: `ColumnType::One(ring)`, or `ColumnType::Label`; read only.
    pub job_wide: u16,
    /// Region of sums: `ColumnType::One(ring)`, or `ColumnType::Label`.
    pub sums: u16,
    /// Number of temps.
    pub temps: u32,
    /// Operands of products.
    pub pairs: Vec<(Src, Src)>,
    /// The instructions.
    pub code: Vec<Instr>,
}

impl Program {
    /// Lengths of the message of row products and of the message of sums: one more than the largest index.
    pub fn products(&self) -> (u32, u32) {
        self.code.iter().fold((0, 0), |(rows, sums), i| match i {
            Instr::Product { index, .. } => (rows.max(index + 1), sums),
            Instr::ProductSum { index, .. } => (rows, sums.max(index + 1)),
            _ => (rows, sums),
        })
    }

    /// A component of the slots of its row products, in the order of their message, in runs.
    pub fn products_in_slots(&self, component: u8) -> Vec<Span> {
        let places = self.code.iter().filter_map(|instr| match *instr {
            Instr::Product { out, index, .. } => Some((index, out)),
            _ => None,
        });
        let mut places: Vec<(u32, u32)> = places.collect();
        places.sort_unstable();
        let runs = places.chunk_by(|a, b| a.1.checked_add(1) == Some(b.1));
        runs.map(|run| Span {
            region: self.slots,
            component,
            first: run[0].1,
            count: run.len() as u32,
        })
        .collect()
    }

    /// The first rule that the program breaks, if any: messages have no more products than there are instructions and slots, operands exist, temps are written once and before they are read, and unless values
    /// are `labels` no result of a product is touched by a later instruction. `slots`, `job_wide` and `sums` are the sizes of the regions.
    ///
    /// # Errors
    /// The rule that is broken, in words.
    pub fn check(
        &self,
        slots: u32,
        job_wide: u32,
        sums: u32,
        labels: bool,
    ) -> Result<(), &'static str> {
        let mut written = vec![false; self.temps as usize];
        let mut pending = vec![false; slots as usize];
        let readable = |src: Src, written: &[bool], pending: &[bool]| match src {
            Src::Slot(s) => pending.get(s as usize).is_some_and(|p| !p),
            Src::JobWide(u) => u < job_wide,
            Src::Temp(t) => written.get(t as usize).copied().unwrap_or(false),
        };
        for instr in &self.code {
            if let Instr::Product { index, .. } | Instr::ProductSum { index, .. } = instr
                && *index as usize >= self.code.len() + slots as usize
            {
                return Err("a product beyond any message");
            }
            let mut sources_exist = true;
            let mut out = None;
            match instr {
                Instr::Add(a, b, o) | Instr::Sub(a, b, o) => {
                    sources_exist =
                        readable(*a, &written, &pending) && readable(*b, &written, &pending);
                    out = Some(*o);
                }
                Instr::Plus(a, _, o) | Instr::Times(a, _, o) | Instr::Copy(a, o) => {
                    sources_exist = readable(*a, &written, &pending);
                    out = Some(*o);
                }
                Instr::Constant(_, o) => out = Some(*o),
                Instr::Sum(a, o) => {
                    sources_exist =
                        readable(*a, &written, &pending) && *o < sums && self.ring != Ring::Bits;
                }
                Instr::Product { pairs, out: o, .. } | Instr::ProductSum { pairs, out: o, .. } => {
                    let row_product = matches!(instr, Instr::Product { .. });
                    let there = self
                        .pairs
                        .get(pairs.start as usize..pairs.end as usize)
                        .unwrap_or(&[]);
                    sources_exist = !there.is_empty()
                        && there.iter().all(|(a, b)| {
                            readable(*a, &written, &pending) && readable(*b, &written, &pending)
                        })
                        && if row_product {
                            *o < slots
                        } else {
                            *o < sums && self.ring != Ring::Bits
                        };
                    if row_product && sources_exist {
                        sources_exist = !std::mem::replace(&mut pending[*o as usize], !labels);
                    }
                }
            }
            if !sources_exist {
                return Err("an operand that does not exist or is not yet there");
            }
            match out {
                Some(Dst::Slot(s)) if pending.get(s as usize).is_none_or(|p| *p) => {
                    return Err("a slot that does not exist or waits for its product");
                }
                Some(Dst::Temp(t)) => match written.get_mut(t as usize) {
                    Some(w) if !*w => *w = true,
                    _ => return Err("a temp that does not exist or is written twice"),
                },
                Some(Dst::Slot(_)) | None => {}
            }
        }
        Ok(())
    }
}

/// Whether no two products have the same place in the message.
fn numbered_apart(program: &Program) -> bool {
    let index = |instr: &Instr| match instr {
        Instr::Product { index, .. } => Some(*index),
        _ => None,
    };
    let mut seen: Vec<u32> = program.code.iter().filter_map(index).collect();
    seen.sort_unstable();
    seen.windows(2).all(|pair| pair[0] != pair[1])
}

/// Slots that a program writes.
fn writes(program: &Program) -> Vec<u32> {
    let to = program.code.iter().filter_map(|instr| match instr.to() {
        Some(Dst::Slot(slot)) => Some(slot),
        _ => None,
    });
    let mut slots: Vec<u32> = to.collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Requirements of a checked program on a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needs {
    pub(crate) ring: Ring,
    /// Indices of the regions of slots, job-wide values and sums.
    at: [u16; 3],
    /// These regions.
    pub(crate) regions: [Region; 3],
    /// Lengths of the message of row products and of that of sums.
    pub(crate) messages: [u32; 2],
    /// Whether every product has one pair of operands.
    single: bool,
    /// Whether its values are labels: it is garbled or evaluated.
    pub(crate) labels: bool,
    /// Slots that it writes, if its values are labels.
    pub(crate) writes: Vec<u32>,
}

impl Needs {
    /// Whether a span lies in a region of the program.
    pub(crate) fn has(&self, span: Span) -> bool {
        self.at.contains(&span.region)
    }

    /// Checks a program against the regions it names.
    ///
    /// # Errors
    /// [`Fault::Program`] if a region of the program does not exist in `layout`, is not of the program's ring or of the others'
    /// components, or an instruction breaks a rule of [`Program::check`]; for labels also if a product has several pairs or two
    /// products have one number.
    pub fn of(program: &Program, layout: &Layout) -> Result<Self, Fault> {
        let region = |index: u16, column: ColumnType| {
            let region = layout.regions.get(index as usize);
            let region = region.filter(|r| r.column == column).cloned();
            region.ok_or(Fault::Program("a region of the wrong shape"))
        };
        let labels =
            program.ring == Ring::Bits && region(program.slots, ColumnType::Labels).is_ok();
        let (rows, one) = if labels {
            (ColumnType::Labels, ColumnType::Label)
        } else {
            (
                ColumnType::Rows(program.ring),
                ColumnType::One(program.ring),
            )
        };
        let slots = region(program.slots, rows)?;
        let job_wide = region(program.job_wide, one)?;
        let sums = region(program.sums, one)?;
        // Which components constants act on is said in 8 bits.
        let same = slots.components == job_wide.components && slots.components == sums.components;
        let resident = match slots.residency {
            Residency::Resident => true,
            Residency::Plane => !labels,
            Residency::Mapped | Residency::Lent | Residency::Public => false,
        };
        if !resident || !same || slots.components > 8 {
            return Err(Fault::Program("regions of different components"));
        }
        program
            .check(slots.count, job_wide.count, sums.count, labels)
            .map_err(Fault::Program)?;
        let needs = Needs {
            ring: program.ring,
            at: [program.slots, program.job_wide, program.sums],
            regions: [slots, job_wide, sums],
            messages: program.products().into(),
            single: program.code.iter().all(|instr| match instr {
                Instr::Product { pairs, .. } | Instr::ProductSum { pairs, .. } => pairs.len() == 1,
                _ => true,
            }),
            labels,
            writes: if labels { writes(program) } else { Vec::new() },
        };
        if labels && !needs.single {
            return Err(Fault::Program("a product of labels of several pairs"));
        }
        if labels && !numbered_apart(program) {
            // Two gates under one tweak reveal the offset.
            return Err(Fault::Program("two products of labels with one number"));
        }
        Ok(needs)
    }

    /// The region of its slots.
    pub const fn slots(&self) -> u16 {
        self.at[0]
    }

    /// Whether its values are labels: it is garbled or evaluated.
    pub const fn of_labels(&self) -> bool {
        self.labels
    }

    /// Whether the row products can be traced into `span`.
    pub(crate) fn traces(&self, layout: &Layout, span: Span) -> bool {
        let region = &layout.regions[span.region as usize];
        let shape = (
            region.residency,
            region.column,
            region.components,
            span.component,
        );
        self.single
            && self.messages[1] == 0
            && shape
                == (
                    Residency::Resident,
                    ColumnType::Rows(Ring::Bits),
                    TRACE_PARTS,
                    0,
                )
            && span.count >= self.messages[0]
    }

    /// Whether a component of the slots is what cross term `k` of a form is for row products: there is no other message of it.
    pub(crate) fn is_message(&self, form: &Form, k: usize) -> bool {
        self.regions[0].residency == Residency::Plane && form.is_component(k)
    }

    /// Whether a workspace has these regions.
    pub(crate) fn met_by(&self, layout: &Layout) -> bool {
        let regions = self.at.map(|at| layout.regions.get(at as usize));
        regions
            .iter()
            .zip(&self.regions)
            .all(|(r, wanted)| *r == Some(wanted))
    }
}
