//! A program of passes as one whose columns are words of bits alone, as three parties of whom one may be malicious compute it.
//!
//! What these parties prove of a move is of bits, so no pass of theirs has an integer:
//!
//! ```text
//! column            a word of as many bits as are not known to be zero, and no more than are read
//! pass of rows      its circuit over bits; what a word lacks are zeros, which fold
//! sum over rows     a tree of passes, of which each adds up sixteen rows
//! running sum       a parallel prefix: two passes for each halving of the rows
//! move              words move; keys that are compared keep the bits that the comparison has
//! ```
//!
//! Passes that nothing reads are left out. A pass may become several: what a plan says of passes is of the new ones.
//!
//! From: Ladner, Fischer, "Parallel Prefix Computation", 1980; Wallace, "A Suggestion for a Fast Multiplier", 1964, for the sums of many words.
//!
//! # Limits
//!
//! Matrices are not multiplied, and nothing is drawn that no party knows.

mod columns;
mod passes;
mod rows;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use veil_circuit::{Builder, Circuit};
use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, ProgramSpec};
use veil_job::{Audience, Block, Holder, JobSpec, Order};

use crate::bits::Reads;
use crate::{Node, Opening, PhysicalError, PhysicalPlan};
use rows::{Key, Rewritten};

/// The plan in bits alone.
pub(crate) fn in_bits(mut plan: PhysicalPlan) -> Result<PhysicalPlan, PhysicalError> {
    let mut lowered = Lowered::new(&plan.passes)?;
    lowered.passes()?;
    let Lowered {
        passes,
        begins,
        mains,
        ..
    } = lowered;
    plan.passes = passes;
    // A pass that opens, keeps or takes something of an owner is never left out.
    let main = |pass: &mut usize| {
        let at = mains.get(*pass).copied().flatten();
        *pass = at.ok_or_else(|| PhysicalError::Circuit("a pass of ports is left out".into()))?;
        Ok::<(), PhysicalError>(())
    };
    plan.tables
        .iter_mut()
        .try_for_each(|of| main(&mut of.pass))?;
    plan.results
        .iter_mut()
        .try_for_each(|of| main(&mut of.pass))?;
    for kept in &mut plan.keeps {
        main(&mut kept.pass)?;
        kept.size
            .iter_mut()
            .try_for_each(|size| main(&mut size.pass))?;
    }
    let range = |of: &mut Range<usize>| *of = begins[of.start]..begins[of.end];
    for opening in &mut plan.opens {
        if let Opening::Claims { passes, .. } = opening {
            range(passes);
        }
    }
    plan.tree
        .iter_mut()
        .for_each(|node| renumbered(node, &range));
    Ok(plan)
}

/// A node of a plan whose passes have other numbers.
fn renumbered(node: &mut Node, range: &impl Fn(&mut Range<usize>)) {
    node.passes.iter_mut().for_each(range);
    node.passes.retain(|passes| !passes.is_empty());
    let inputs = node.inputs.iter_mut();
    inputs.for_each(|input| renumbered(input, range));
}

/// What stands in the way of a plan in bits.
fn refused(what: &'static str) -> PhysicalError {
    PhysicalError::NotInBits { what }
}

fn defect(what: &str) -> PhysicalError {
    PhysicalError::Circuit(what.into())
}

/// Bits of numbers up to this one.
const fn bits_for(most: u128) -> u32 {
    u128::BITS - most.leading_zeros()
}

/// A column of words, above whose bits all are known to be zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    column: ColumnId,
    rows: u32,
    /// 1 to 128.
    bits: u32,
}

impl Word {
    fn form(self) -> Result<ColumnForm, PhysicalError> {
        form_of(self.bits)
    }
}

/// The form of words of so many bits.
fn form_of(bits: u32) -> Result<ColumnForm, PhysicalError> {
    ColumnForm::of_bits(bits).ok_or_else(|| defect("a word has 1 to 128 bits"))
}

/// Passes of bits, so far.
struct Lowered<'a> {
    of: &'a ProgramSpec,
    /// Who takes part.
    first: &'a JobSpec,
    reads: Reads,
    /// Columns that comparisons take as they are.
    compared: HashSet<ColumnId>,
    /// Factors by which something moves later.
    moved_by: HashSet<ColumnId>,
    passes: ProgramSpec,
    columns: u32,
    /// Shared columns of the program, as words.
    known: HashMap<ColumnId, Word>,
    /// Its factors and positions.
    others: HashMap<ColumnId, ColumnId>,
    /// Words with zeros above them, by the column and the bits.
    wider: HashMap<(ColumnId, u32), Word>,
    /// Words that are zero, by rows.
    zeros: HashMap<u32, Word>,
    /// The sums of the rows before each, by the column and how many bits of them are read.
    before: HashMap<(ColumnId, u32), Option<Word>>,
    /// Circuits of passes of rows.
    rewritten: HashMap<Key, Rewritten>,
    /// Circuits that are the same for all programs, by their hash and the rows.
    common: HashMap<([u8; 32], u32), Arc<JobSpec>>,
    /// The first of the new passes of each pass, and how many there are in all.
    begins: Vec<usize>,
    /// The new pass that has the ports of each pass; nothing of one that is left out.
    mains: Vec<Option<usize>>,
}

impl<'a> Lowered<'a> {
    fn new(of: &'a ProgramSpec) -> Result<Self, PhysicalError> {
        let Some(PassSpec::Rows { job: first, .. }) = of.passes.first() else {
            return Err(defect("its first pass is not of rows"));
        };
        let reads = Reads::of(of);
        let (mut compared, mut moved_by) = (HashSet::new(), HashSet::new());
        for pass in &of.passes {
            match pass {
                PassSpec::Compare { of, factors, .. } => {
                    compared.extend(of.iter().copied());
                    moved_by.insert(*factors);
                }
                PassSpec::Move {
                    kind: MoveKind::Along | MoveKind::Back,
                    leaves,
                    factors,
                    ..
                } => {
                    let mut left = leaves.iter().flatten();
                    if left.any(|column| reads.bits(*column) > 0) {
                        moved_by.extend(*factors);
                    }
                }
                PassSpec::Rows { .. } | PassSpec::Move { .. } => {}
                PassSpec::Product { .. } => return Err(refused("multiply matrices")),
            }
        }
        Ok(Lowered {
            of,
            first,
            reads,
            compared,
            moved_by,
            passes: ProgramSpec::default(),
            columns: 0,
            known: HashMap::new(),
            others: HashMap::new(),
            wider: HashMap::new(),
            zeros: HashMap::new(),
            before: HashMap::new(),
            rewritten: HashMap::new(),
            common: HashMap::new(),
            begins: Vec::new(),
            mains: Vec::new(),
        })
    }

    /// Lowers all passes, and what is made between them.
    fn passes(&mut self) -> Result<(), PhysicalError> {
        let of = self.of;
        let mut made = of.made.iter().peekable();
        for (number, pass) in of.passes.iter().enumerate() {
            self.begins.push(self.passes.passes.len());
            while let Some(made) = made.next_if(|made| made.before as usize == number) {
                self.made(made)?;
            }
            let main = self.pass(number, pass)?;
            self.mains.push(main);
        }
        self.begins.push(self.passes.passes.len());
        Ok(())
    }

    /// A new column.
    fn column(&mut self) -> ColumnId {
        self.columns += 1;
        ColumnId(self.columns - 1)
    }

    /// A new column of words.
    fn word(&mut self, rows: u32, bits: u32) -> Word {
        let column = self.column();
        Word { column, rows, bits }
    }

    /// Adds a pass, and says its number.
    fn push(&mut self, pass: PassSpec) -> usize {
        self.passes.passes.push(pass);
        self.passes.passes.len() - 1
    }

    /// A circuit over columns alone that is none of the program's, in so many rows.
    fn common(&mut self, b: Builder, rows: u32) -> Result<Arc<JobSpec>, PhysicalError> {
        let circuit = b.finish()?;
        let key = (circuit.canonical_hash(), rows);
        if let Some(job) = self.common.get(&key) {
            return Ok(Arc::clone(job));
        }
        let job = Arc::new(self.job_of(circuit, rows));
        self.common.insert(key, Arc::clone(&job));
        Ok(job)
    }

    fn job_of(&self, circuit: Circuit, rows: u32) -> JobSpec {
        let of = self.first;
        JobSpec {
            name: of.name.clone(),
            owners: of.owners.clone(),
            parties: of.parties.clone(),
            recipients: of.recipients.clone(),
            security: of.security,
            schema: String::new(),
            totals: None,
            blocks: vec![Block {
                name: "rows".into(),
                rows: rows.into(),
                holders: vec![Holder::Column; circuit.inputs.len()],
                stored: None,
                order: Order::Unsaid,
            }],
            audiences: vec![Audience::Column; circuit.outputs.len()],
            opened: circuit.outputs.iter().map(|_| "nothing".into()).collect(),
            inputs: vec![],
            datasets: vec![],
            keep: None,
            circuit,
        }
    }
}
