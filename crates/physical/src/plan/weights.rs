//! Matrices of weights of networks: public ones, or made of a column that an owner brings.

use veil_job::passes::Take;
use veil_numeric::Number;
use veil_operators::Shared;
use veil_relation::network::{Inference, Scaled, Step, Weights};

use super::fit::{NARROW, integer_of, rounded};
use super::rel::Rel;
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::Want;

impl Planner<'_> {
    /// For each step the columns of its matrix of weights, a column for each channel of the result, of weights and last a bias: none of steps that have no weights.
    pub(super) fn matrices(
        &mut self,
        of: &Inference,
        weights: Option<Rel>,
    ) -> Result<Vec<Vec<Take>>, PhysicalError> {
        let numbers = weights.map(|rel| self.numbers(rel)).transpose()?;
        let mut all = Vec::new();
        for step in of.steps() {
            all.push(match step {
                Step::Product(product) => self.matrix(&product.weights, numbers)?,
                Step::Settle(_) => Vec::new(),
            });
        }
        Ok(all)
    }

    /// The numbers that an owner brings, as integers.
    fn numbers(&mut self, mut rel: Rel) -> Result<Shared, PhysicalError> {
        let none = || PhysicalError::Circuit("weights are one column".into());
        let [field] = &rel.fields[..] else {
            return Err(none());
        };
        let expr = field.clone();
        let wants = [(expr.clone(), Want::Integer)];
        let made = self.rows(&mut rel, NARROW, &wants, |on| {
            Ok(vec![Out::Integer(on.integer(&expr)?.0)])
        })?;
        made.first().copied().ok_or_else(none)
    }

    fn matrix(
        &mut self,
        weights: &Weights,
        numbers: Option<Shared>,
    ) -> Result<Vec<Take>, PhysicalError> {
        let (weights, biases) = match weights {
            Weights::Public { weights, bias } => {
                let columns = weights.iter().zip(bias);
                let columns = columns.map(|(weights, bias)| Take::Public {
                    integers: weights
                        .iter()
                        .copied()
                        .chain([*bias])
                        .collect::<Vec<i64>>()
                        .into(),
                    ring: NARROW,
                });
                return Ok(columns.collect());
            }
            Weights::Secret { weights, biases } => (weights, biases),
        };
        let none = || PhysicalError::Circuit("a network lacks its weights".into());
        let numbers = numbers.ok_or_else(none)?;
        let mut of = Vec::new();
        for scaled in [weights, biases] {
            of.push(self.scaled(scaled, numbers)?.column());
        }
        // Row by row, a row of biases last.
        let outputs = biases.block.count;
        let columns = (0..outputs).map(|output| Take::Rows {
            of: of.clone(),
            first: output.into(),
            step: outputs as i32,
        });
        Ok(columns.collect())
    }

    /// Numbers of a block as the integers that a layer is computed with.
    fn scaled(&mut self, scaled: &Scaled, numbers: Shared) -> Result<Shared, PhysicalError> {
        let block = scaled.block;
        let made = self.matrix_pass(NARROW, block.count, |ports| {
            let number = ports.integer(numbers.rows_from(block.first.into()));
            let b = &mut ports.b;
            let int = b.times(number, b.ring().reduce(i128::from(scaled.factor) as u128));
            if scaled.by == 0 {
                return Ok(vec![Out::Integer(int)]);
            }
            let range = scaled.range();
            let nearest = rounded(ports, &Number { int, range }, scaled.by, range).int;
            let least = range.min().min(0);
            let int = integer_of(&mut ports.b, &nearest.bits, least);
            Ok(vec![Out::Integer(int)])
        })?;
        let none = || PhysicalError::Circuit("weights are a column".into());
        made.first().copied().ok_or_else(none)
    }
}
