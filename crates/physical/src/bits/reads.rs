//! Which columns passes read, until when, and how many of their low bits.

use std::collections::{HashMap, HashSet};

use veil_circuit::generate::Aim;
use veil_job::JobSpec;
use veil_job::passes::{ColumnId, PassSpec, ProgramSpec, Take};

use super::gates::InRows;

/// More bits than a column has.
const ALL: u32 = u32::MAX;

/// What passes read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    bits: HashMap<ColumnId, u32>,
    last: HashMap<ColumnId, usize>,
    /// The factors by which rows have moved that are compared.
    compared: HashSet<ColumnId>,
}

impl Reads {
    /// Of all passes of a program.
    pub(crate) fn of(spec: &ProgramSpec) -> Self {
        let mut all = Reads::default();
        let mut made = spec.made.iter().rev().peekable();
        for (number, pass) in spec.passes.iter().enumerate().rev() {
            all.pass(number, pass);
            while let Some(made) = made.next_if(|made| made.before as usize == number) {
                let bits = all.bits(made.column);
                all.take(number, &made.take, bits);
            }
        }
        all
    }

    /// How many low bits of a column are read.
    pub(crate) fn bits(&self, column: ColumnId) -> u32 {
        self.bits.get(&column).copied().unwrap_or(0)
    }

    /// Whether a pass after this one reads a column.
    pub(crate) fn is_read_after(&self, column: ColumnId, pass: usize) -> bool {
        self.last.get(&column).is_some_and(|last| *last > pass)
    }

    /// Whether rows that have moved by these factors are compared.
    pub(crate) fn is_compared(&self, factors: ColumnId) -> bool {
        self.compared.contains(&factors)
    }

    /// How many low bits of an output port are read: all that are opened.
    pub(crate) fn output(&self, job: &JobSpec, leaves: &[Option<ColumnId>], port: usize) -> u32 {
        match (job.audiences[port], leaves[port]) {
            (veil_job::Audience::Column, None) => 0,
            (veil_job::Audience::Column, Some(column)) => self.bits(column),
            _ => ALL,
        }
    }

    /// The same of all output ports.
    pub(crate) fn outputs(&self, job: &JobSpec, leaves: &[Option<ColumnId>]) -> Vec<u32> {
        (0..leaves.len())
            .map(|port| self.output(job, leaves, port))
            .collect()
    }

    fn note(&mut self, pass: usize, column: ColumnId, bits: u32) {
        let known = self.bits.entry(column).or_insert(0);
        *known = (*known).max(bits);
        let last = self.last.entry(column).or_insert(pass);
        *last = (*last).max(pass);
    }

    fn take(&mut self, pass: usize, take: &Take, bits: u32) {
        match take {
            Take::Bits { of, first, count } => {
                self.take(pass, of, first.saturating_add(bits.min(*count)));
            }
            Take::Numbered { of, bits: number } => {
                if let Some(of) = of {
                    self.take(pass, of, bits.saturating_sub(*number));
                }
            }
            take => {
                for column in take.columns() {
                    self.note(pass, column, bits);
                }
            }
        }
    }

    fn pass(&mut self, number: usize, pass: &PassSpec) {
        match pass {
            PassSpec::Rows {
                job, takes, leaves, ..
            } => {
                let circuit = InRows::new(&job.circuit, &self.outputs(job, leaves), Aim::Size);
                let read = circuit.read_of_inputs();
                for (take, bits) in takes.iter().zip(read) {
                    if let Some(take) = take {
                        self.take(number, take, bits);
                    }
                }
            }
            PassSpec::Move { takes, leaves, .. } => {
                for ((take, _), column) in takes.iter().zip(leaves) {
                    let bits = column.map_or(0, |column| self.bits(column));
                    self.take(number, take, bits);
                }
            }
            PassSpec::Compare { of, factors, .. } => {
                self.compared.insert(*factors);
                for of in of {
                    self.note(number, *of, ALL);
                }
            }
            PassSpec::Product { left, right, .. } => {
                for take in left.iter().chain(right) {
                    self.take(number, take, ALL);
                }
            }
        }
    }
}
