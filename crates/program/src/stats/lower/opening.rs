//! Opened values, and the ring that holds them.

use std::collections::HashMap;

use veil_circuit::Limits;
use veil_math::Ring;

use super::{
    Layout,
    division::Division,
    target::{Shown, Target},
    totals::steps,
};
use crate::{
    error::JobProblem,
    stats::{Analysis, Column, End, Statistic, Stats, extremes::Extremes, monomial::Monomial},
};

/// What is opened, and which statistic needs it.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) ring: Ring,
    /// Column of the job behind each of the first input ports.
    pub(crate) columns: Vec<usize>,
    /// What owners find in their own rows: further input ports, with a value per job.
    pub(crate) extremes: Vec<Extremes>,
    /// What each output port opens, in order.
    pub(in crate::stats) shown: Vec<Shown>,
    pub(super) ports: HashMap<Shown, usize>,
    /// What the ports of a circuit of bits hold, of two parties.
    pub(in crate::stats) layout: Option<Layout>,
}

impl Opening {
    /// One sentence for each output port: what is opened.
    pub(in crate::stats) fn sentences(&self, columns: &[Column]) -> Vec<String> {
        let sentence = |shown: &Shown| shown.sentence(columns);
        self.shown.iter().map(sentence).collect()
    }

    /// Columns that owners read: those behind ports, and those that their own extremes need.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let of_extremes = self.extremes.iter().flat_map(Extremes::columns);
        let mut reads: Vec<usize> = self.columns.iter().copied().chain(of_extremes).collect();
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// What is summed over the rows for all that is opened, each once, in order.
    pub(super) fn sums(&self) -> Vec<Monomial> {
        let all = self.shown.iter().flat_map(Shown::sums);
        let mut sums: Vec<Monomial> = all.cloned().collect();
        sums.sort();
        sums.dedup();
        sums
    }

    /// Input ports of extremes.
    fn supplied(&self) -> u64 {
        let ports = self.extremes.iter().map(|one| one.holders.len() as u64);
        ports.sum()
    }

    /// Which of the extremes, and which of its groups.
    pub(super) fn extreme(
        &self,
        end: End,
        of: usize,
        by: &[usize],
        group: &[u8],
    ) -> (usize, usize) {
        let mut all = self.extremes.iter();
        let index = all.position(|one| (one.end, one.of, &one.by[..]) == (end, of, by));
        let index = index.expect("extremes that are opened are supplied");
        let mut groups = self.extremes[index].groups.iter();
        let group = groups.position(|other| other == group);
        (index, group.expect("groups are those of the columns"))
    }

    /// Adds what a port opens, unless one does already; how many ports there are.
    fn open(&mut self, shown: Shown) -> u64 {
        if !self.ports.contains_key(&shown) {
            self.ports.insert(shown.clone(), self.shown.len());
            self.shown.push(shown);
        }
        self.shown.len() as u64
    }
}

impl Opening {
    /// Whether the circuit computes on bits, between two parties.
    pub(crate) fn is_of_bits(&self) -> bool {
        self.layout.is_some()
    }

    /// Of a circuit of bits, the bits of an output port, and whether the highest is a sign.
    pub(in crate::stats) fn word(&self, port: usize) -> Option<(u32, bool)> {
        self.layout.as_ref()?.opened.get(port).copied()
    }

    /// How many numbers are opened.
    pub(crate) fn numbers(&self) -> u64 {
        self.shown.len() as u64
    }
}

impl Stats {
    /// What the analyses open, each once per audience, and the ring that holds it all.
    pub(super) fn opening(&self) -> Result<Opening, (usize, JobProblem)> {
        let mut opening = Opening {
            ring: Ring::Z64,
            columns: Vec::new(),
            extremes: Vec::new(),
            shown: Vec::new(),
            ports: HashMap::new(),
            layout: None,
        };
        for (index, analysis) in self.analyses.iter().enumerate() {
            let at = |problem| (index, problem);
            if let Statistic::Extreme(end, of) = analysis.statistic {
                let one = Extremes::new(self, analysis, end, of);
                if !opening.extremes.contains(&one) {
                    opening.extremes.push(one);
                }
                let (found, limit) = (opening.supplied(), Limits::default().ports);
                if found > limit {
                    let what = "extremes, counted once for each owner,";
                    return Err(at(JobProblem::TooMany { what, found, limit }));
                }
            }
            for group in self.groups(analysis) {
                let guard = self.guard(analysis, &group).map_err(at)?;
                for target in self.targets(analysis, &group) {
                    let bits = self.bits(analysis, &target).map_err(at)?;
                    if bits > Ring::Z64.bits() {
                        opening.ring = Ring::Z128;
                    }
                    // Each is an output port.
                    let found = opening.open(Shown {
                        audience: analysis.to,
                        target,
                        guard: guard.clone(),
                    });
                    let limit = self.most_opened;
                    if found > limit {
                        return Err(at(JobProblem::TooManyOpened { found, limit }));
                    }
                }
            }
        }
        if let Some(keep) = &self.keep {
            if (keep.ring, opening.ring) == (Some(Ring::Z64), Ring::Z128) {
                return Err((0, JobProblem::NarrowKeep(keep.name.clone())));
            }
            opening.ring = keep.ring.unwrap_or(opening.ring);
            // Another job may use what this one does not.
            opening.columns = (0..self.columns.len()).collect();
            return Ok(opening);
        }
        if opening.shown.is_empty() {
            return Err((0, JobProblem::NothingSecret));
        }
        let reads = |column: usize| {
            opening.shown.iter().flat_map(Shown::sums).any(|sum| {
                sum.values.contains(&column)
                    || sum.valid.contains(&column)
                    || sum.cells.iter().any(|cell| cell.0 == column)
            })
        };
        opening.columns = (0..self.columns.len())
            .filter(|&column| reads(column))
            .collect();
        Ok(opening)
    }

    /// What is opened of a group, without what is public anyway.
    pub(super) fn targets(&self, analysis: &Analysis, group: &[u8]) -> Vec<Target> {
        let variables = analysis.variables(&self.columns);
        let product = |i, j| self.product(analysis, &variables, group, i, j);
        match analysis.statistic {
            Statistic::MeanOnly { of, decimals } => product(0, 1)
                .zip(product(0, 0))
                .map(|(sum, count)| Target::Mean {
                    of,
                    decimals,
                    sum,
                    count,
                })
                .into_iter()
                .collect(),
            Statistic::Extreme(end, of) => product(0, 1)
                .map(|values| Target::Extreme {
                    end,
                    of,
                    by: analysis.by.clone(),
                    group: group.to_vec(),
                    values,
                })
                .into_iter()
                .collect(),
            _ => (analysis
                .needs(variables.len(), self.may_drop(analysis))
                .into_iter())
            .filter_map(|(i, j)| product(i, j))
            .filter(|sum| *sum != Monomial::ONE)
            .map(Target::Sum)
            .collect(),
        }
    }

    /// Bits that a ring must have for what is opened.
    fn bits(&self, analysis: &Analysis, target: &Target) -> Result<u32, JobProblem> {
        match target {
            Target::Sum(sum) => {
                let bits = sum.bits(&self.columns, self.rows());
                if bits > u64::from(Ring::Z128.bits()) {
                    return Err(JobProblem::Overflow {
                        analysis: analysis.name.clone(),
                        sum: sum.sentence(&self.columns),
                        bits,
                    });
                }
                Ok(bits as u32)
            }
            Target::Mean { of, decimals, .. } => {
                match Division::new(&self.columns[*of], *decimals, self.rows()) {
                    Ok(division) => Ok(division.bits()),
                    Err(bits) => Err(JobProblem::Number {
                        field: "decimals",
                        value: decimals.to_string(),
                        reason: format!(
                            "the division can need {bits} bits, and the largest ring has 128; take fewer, or narrow the \
                             declared range"
                        ),
                    }),
                }
            }
            Target::Extreme { end, of, .. } => Ok(steps(*end, &self.columns[*of])),
        }
    }
}
