//! From analyses to one circuit: its products, and the audiences of its outputs.
//!
//! A number column is an input port of two wires, value and validity; a category column is a port of one membership bit for each of its
//! values. Columns that no analysis uses are not inputs, so they are never shared. Every output is summed over the rows, so that nothing
//! about a single row is ever opened but an extreme, if an analysis asks for it. Products of rows may wrap around in the ring without harm:
//! sums modulo 2^k are right wherever the true sum fits, and the lowering checks that it does.

mod bits;
mod builder;
mod division;
mod guard;
mod opening;
mod target;
mod totals;

pub(super) use bits::{Cell, Layout, Port, only_holder};
use builder::Builder;
pub(crate) use guard::Guard;
pub(crate) use opening::Opening;
pub(super) use target::{Meaning, Shown, Target};
use veil_circuit::{Circuit, OutputPort, Reduce};

use super::{
    Analysis, Column, Stats, extremes,
    moments::{Moments, Variable},
    monomial::Monomial,
    products,
};
use crate::error::JobProblem;
use veil_job::Audience;

/// A statistics job as a circuit.
pub(crate) struct LoweredStats {
    pub(crate) circuit: Circuit,
    /// What is computed of the sums before they are opened.
    pub(crate) totals: Option<Circuit>,
    pub(crate) audiences: Vec<Audience>,
    pub(crate) opened: Vec<String>,
    pub(crate) opening: Opening,
}

impl Stats {
    /// Lowers the job. An error comes with the index of the analysis.
    pub(crate) fn lower(&self) -> Result<LoweredStats, (usize, JobProblem)> {
        let opening = self.opening()?;
        let targets = opening.sums();
        let splits = products::choose(&self.columns, &targets);
        let mut builder = Builder::new(self, &opening, &splits);
        let extremes = extremes::ports(&opening.extremes, &self.columns);
        builder.once(extremes.map(|(name, width, _)| (name, width)));
        let mut outputs: Vec<OutputPort> = (opening.shown.iter().enumerate())
            .map(|(index, shown)| OutputPort {
                name: format!("sum {index}"),
                wires: builder.sums(&shown.sums()),
                reduce: Reduce::Sum,
            })
            .collect();
        let mut audiences: Vec<Audience> =
            (opening.shown.iter()).map(|shown| shown.audience).collect();
        let mut opened = opening.sentences(&self.columns);
        if let Some(keep) = &self.keep {
            outputs.extend(
                opening
                    .columns
                    .iter()
                    .map(|&column| builder.kept(column, &self.columns[column].name)),
            );
            audiences.extend(opening.columns.iter().map(|_| Audience::Stored));
            opened.extend(opening.columns.iter().map(|&column| {
                let column = &self.columns[column].name;
                format!("`{column}` of every row, as `{}`", keep.name)
            }));
        }
        let circuit = Circuit {
            ring: opening.ring,
            inputs: builder.inputs,
            gates: builder.gates,
            outputs,
            clock: veil_circuit::Clock::default(),
        };
        Ok(LoweredStats {
            circuit,
            totals: totals::circuit(&opening, &self.columns, self.rows())
                .map_err(|problem| (0, problem))?,
            audiences,
            opened,
            opening,
        })
    }

    /// What was opened of the groups of an analysis that is answered by the parties, from all opened numbers by output port.
    pub(super) fn answers(
        &self,
        opening: &Opening,
        analysis: &Analysis,
        opened: &[i128],
    ) -> Vec<Meaning> {
        let answer = |group: &Vec<u8>| {
            let shown = Shown {
                audience: analysis.to,
                target: self.targets(analysis, group).pop()?,
                guard: self.guard(analysis, group).ok()?,
            };
            let value = opened[opening.ports[&shown]];
            Some(shown.read(&self.columns, self.rows(), opening.ring, value))
        };
        let groups = self.groups(analysis);
        (groups.iter())
            .map(|group| answer(group).unwrap_or(Meaning::Nothing))
            .collect()
    }

    /// `z_i z_j` in the rows of a group that count for the analysis; nothing if it is always 0.
    fn product(
        &self,
        analysis: &Analysis,
        variables: &[Variable],
        group: &[u8],
        i: usize,
        j: usize,
    ) -> Option<Monomial> {
        let mut values = Vec::new();
        let mut cells: Vec<_> = analysis
            .by
            .iter()
            .copied()
            .zip(group.iter().copied())
            .collect();
        for index in [i, j] {
            match index.checked_sub(1).map(|index| variables[index]) {
                None => {}
                Some(Variable::Value(column)) => values.push(column),
                Some(Variable::Cell(column, value)) => cells.push((column, value)),
            }
        }
        Monomial::new(&self.columns, values, cells, self.needed(analysis))
    }

    /// The moments of one group, from all opened numbers by output port.
    pub(super) fn moments(
        &self,
        opening: &Opening,
        analysis: &Analysis,
        group: &[u8],
        opened: &[i128],
    ) -> Moments {
        let variables = analysis.variables(&self.columns);
        let guard = self.guard(analysis, group).ok().flatten();
        let mut moments = Moments::zero(variables.len());
        for (i, j) in analysis.needs(variables.len(), self.may_drop(analysis)) {
            let value = match self.product(analysis, &variables, group, i, j) {
                None => 0,
                Some(sum) if sum == Monomial::ONE => i128::from(self.rows()),
                Some(sum) => {
                    let shown = Shown {
                        audience: analysis.to,
                        target: Target::Sum(sum),
                        guard: guard.clone(),
                    };
                    opened[opening.ports[&shown]]
                }
            };
            moments.set(i, j, value);
        }
        moments
    }
}

impl Column {
    /// Wires of the column as an input port.
    pub(crate) fn width(&self) -> u32 {
        if self.is_number() {
            2
        } else {
            self.categories().len() as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use veil_circuit::Gate;
    use veil_math::Ring;

    use super::*;
    use crate::stats::{ColumnKind, Confidence, Marks, Missing, Statistic, StatsBlock};

    fn stats(max: i64, rows: u64, analyses: &[(Statistic, &[usize])]) -> Stats {
        let number = |name: &str, missing| Column {
            name: name.into(),
            kind: ColumnKind::Number {
                scale: 0,
                min: 0,
                max,
                unit: None,
                marks: Marks::default(),
            },
            missing,
        };
        let category = |name: &str, values: &[&str]| Column {
            name: name.into(),
            kind: ColumnKind::Category(values.iter().map(|&value| value.to_owned()).collect()),
            missing: Missing::DropPair,
        };
        let columns = vec![
            number("x", Missing::Refuse),
            number("y", Missing::DropPair),
            category("g", &["a", "b"]),
            category("h", &["p", "q", "r"]),
            number("unused", Missing::DropPair),
        ];
        let analysis = |(index, (statistic, by)): (usize, &(Statistic, &[usize]))| Analysis {
            name: format!("analysis {index}"),
            statistic: statistic.clone(),
            by: by.to_vec(),
            min_count: None,
            confidence: Confidence::USUAL,
            to: Audience::Recipient(0),
        };
        let holders = vec![veil_job::Holder::Owner(0); columns.len()];
        let blocks = vec![StatsBlock {
            name: "all".into(),
            rows,
            fewest_rows: rows,
            holders,
            files: Vec::new(),
            delimiters: Vec::new(),
            notations: Vec::new(),
            pairing: crate::stats::Pairing::Unsaid,
            stored: None,
        }];
        Stats {
            columns,
            blocks,
            analyses: analyses.iter().enumerate().map(analysis).collect(),
            keep: None,
            most_opened: 1024,
        }
    }

    fn shape(stats: &Stats) -> (Vec<String>, usize, usize, u64) {
        let lowered = stats.lower().map_err(|error| error.1).expect("fits");
        lowered
            .circuit
            .validate()
            .expect("lowering makes valid circuits");
        let inputs = lowered
            .circuit
            .inputs
            .iter()
            .map(|port| port.name.clone())
            .collect();
        let muls = lowered
            .circuit
            .gates
            .iter()
            .filter(|gate| matches!(gate, Gate::Mul(..)))
            .count();
        let mut read = vec![false; lowered.circuit.wires() as usize];
        lowered
            .circuit
            .gates
            .iter()
            .flat_map(Gate::operands)
            .for_each(|wire| read[wire.0 as usize] = true);
        let made = (lowered.circuit.gates.iter().enumerate())
            .filter(|&(index, gate)| {
                matches!(gate, Gate::Mul(..)) && read[lowered.circuit.gate_wire(index).0 as usize]
            })
            .count() as u64;
        (inputs, lowered.audiences.len(), muls, made)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_plain_sum_needs_no_product() {
        assert_eq!(
            shape(&stats(9, 5, &[(Statistic::Mean(0), &[])])),
            (names(&["x"]), 1, 0, 0)
        );
        // The number of rows is public for a column without missing values, and a sum of validities otherwise.
        assert_eq!(
            shape(&stats(9, 5, &[(Statistic::Mean(1), &[])])),
            (names(&["y"]), 2, 0, 0)
        );
    }

    #[test]
    fn products_that_are_only_summed_are_free() {
        // Sums of g, g·x; of x and x·x: no product is a factor of another.
        let analyses: [(Statistic, &[usize]); 2] =
            [(Statistic::Mean(0), &[2]), (Statistic::Variance(0), &[])];
        assert_eq!(
            shape(&stats(9, 5, &analyses)),
            (names(&["x", "g"]), 6, 3, 0)
        );
    }

    #[test]
    fn few_products_serve_many_groups() {
        // Variance by g and h: 6 groups of number, sum and sum of squares. With the parts g·x (2) and h·x (3) every
        // sum is one further product, which is free.
        let (_, opened, _, made) = shape(&stats(9, 5, &[(Statistic::Variance(0), &[2, 3])]));
        assert_eq!(opened, 18);
        assert!(made <= 5, "{made} products cost an element per row");
    }

    #[test]
    fn analyses_share_what_is_opened() {
        let one = shape(&stats(9, 5, &[(Statistic::Correlation(0, 1), &[2])]));
        let analyses: [(Statistic, &[usize]); 2] = [
            (Statistic::Correlation(0, 1), &[2]),
            (Statistic::Covariance(1, 0), &[2]),
        ];
        assert_eq!(shape(&stats(9, 5, &analyses)), one);
    }

    #[test]
    fn the_ring_follows_from_the_ranges() {
        let ring = |max, rows| {
            stats(max, rows, &[(Statistic::Variance(0), &[])])
                .lower()
                .map(|lowered| lowered.opening.ring)
        };
        assert_eq!(ring((1 << 30) - 1, 8).expect("fits"), Ring::Z64); // just below 2^63
        assert_eq!(ring(1 << 30, 8).expect("fits"), Ring::Z128); // exactly 2^63
        assert_eq!(ring((1 << 62) - 1, 8).expect("fits"), Ring::Z128);
        let (index, problem) = ring(1 << 62, 8).expect_err("2^127");
        assert_eq!(index, 0);
        assert_eq!(
            problem.to_string(),
            "analysis `analysis 0`: the sum of x × x over all rows can need 129 bits, and the largest ring has 128; \
             narrow the declared ranges or have fewer rows"
        );
    }

    #[test]
    fn what_is_public_anyway_is_no_job() {
        let problem = stats(9, 5, &[(Statistic::Count(None), &[])])
            .lower()
            .map(|_| ())
            .expect_err("public")
            .1;
        assert!(matches!(problem, JobProblem::NothingSecret), "{problem}");
    }
}
