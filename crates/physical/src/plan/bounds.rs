//! Weights of networks that an owner supplies, looked at on shares: that those of each layer are within its bounds.

use veil_circuit::Wire;
use veil_circuit::generate::{Aim, any};
use veil_math::Ring;
use veil_operators::Shared;
use veil_relation::Range;

use super::inputs::Supplied;
use super::rel::Field;
use super::rows::{Out, Ports};
use super::{PhysicalError, Planner};
use crate::exprs::below_bits;

/// Whether a number, of which these are the bits less the least of a range, is not within another one.
fn beyond(ports: &mut Ports, bits: &[Wire], (all, own): (Range, Range), aim: Aim) -> Wire {
    let from = |value: i128| value.abs_diff(all.min());
    let mut wrong = Vec::new();
    if own.min() > all.min() {
        wrong.push(below_bits(&mut ports.b, bits, from(own.min()), aim));
    }
    if own.max() < all.max() {
        let within = below_bits(&mut ports.b, bits, from(own.max()) + 1, aim);
        wrong.push(ports.b.not(within));
    }
    any(&mut ports.b, &wrong)
}

impl Planner<'_> {
    /// For each block of weights in a table whether a number is beyond the bound of its layer, in all of its rows, and what is looked at in words.
    ///
    /// Numbers that are supplied as integers alone are those of an owner that does not deviate, and has looked itself.
    pub(super) fn wrong_weights(
        &mut self,
        at: usize,
        of: &Supplied,
    ) -> Result<(Vec<Shared>, Vec<String>), PhysicalError> {
        let (mut wrong, mut words) = (Vec::new(), Vec::new());
        for weights in self.program.weights() {
            let column = weights.column.index();
            let Some(Some(field)) = of.base[column].bits.filter(|_| weights.table == at) else {
                continue;
            };
            let table = &self.program.tables[at];
            let Some(all) = table.columns[column].ty.kind.range() else {
                continue;
            };
            let before = wrong.len();
            for block in &weights.blocks {
                let Some(own) = within(all, block.range()) else {
                    continue;
                };
                wrong.push(self.wrong_block(&field, (all, own), (block.first, block.count))?);
            }
            if wrong.len() > before {
                words.push(format!(
                    "numbers of `{}` are within the bounds of weights of `{}`",
                    table.name, weights.network
                ));
            }
        }
        Ok((wrong, words))
    }

    fn wrong_block(
        &mut self,
        field: &Field,
        ranges: (Range, Range),
        (first, rows): (u32, u32),
    ) -> Result<Shared, PhysicalError> {
        let aim = self.aim(rows);
        let take = field.take_shifted(first.into());
        let made = self.matrix_pass(Ring::Bits, rows, |ports| {
            let bits = ports.bits(take, field.count());
            let wrong = beyond(ports, &bits, ranges, aim);
            Ok(vec![Out::Bits(vec![wrong])])
        })?;
        let none = || PhysicalError::Circuit("a look at weights leaves a bit".into());
        made.first().copied().ok_or_else(none)
    }
}

/// The part of a range of weights that is within another one, unless that is all of it: both hold 0.
fn within(all: Range, own: Range) -> Option<Range> {
    let both = Range::new(all.min().max(own.min()), all.max().min(own.max()))?;
    (both != all).then_some(both)
}
