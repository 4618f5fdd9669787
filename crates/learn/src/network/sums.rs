//! Weights of sums as integers: public ones, or what is public of an owner's.

use num_bigint::BigInt;
use veil_numeric::Range;

use super::secret::{Block, Scaled};
use super::unit::{Unit, nearest};
use super::{Layer, Network, Window};

/// The integers that cells are multiplied with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Integers that all participants know.
    Public {
        /// For each channel of the result, an integer for each cell of the window.
        weights: Vec<Vec<i64>>,
        /// For each channel of the result.
        bias: Vec<i64>,
    },
    /// Integers that are made of an owner's numbers.
    Secret {
        /// For each cell of the window, a number for each channel of the result.
        weights: Scaled,
        /// A number for each channel of the result.
        biases: Scaled,
    },
}

impl Weights {
    /// Channels of the result.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self {
            Self::Public { bias, .. } => bias.len(),
            Self::Secret { biases, .. } => biases.block.count as usize,
        }
    }

    /// Cells that a sum takes.
    #[must_use]
    pub fn terms(&self) -> usize {
        match self {
            Self::Public { weights, .. } => weights.first().map_or(0, Vec::len),
            Self::Secret { weights, biases } => (weights.block.count / biases.block.count) as usize,
        }
    }

    /// The same with the numbers that an owner brings, which are within their bounds.
    pub(super) fn known(&self, numbers: &[i128]) -> Self {
        let Self::Secret { weights, biases } = self else {
            return self.clone();
        };
        let of = |scaled: &Scaled| {
            let Block { first, count, .. } = scaled.block;
            let own = &numbers[first as usize..][..count as usize];
            let integers = own.iter().map(|number| scaled.clear(*number) as i64);
            integers.collect::<Vec<i64>>()
        };
        let (weights, bias) = (of(weights), of(biases));
        let column = |at| weights.iter().skip(at).step_by(bias.len()).copied();
        Self::Public {
            weights: (0..bias.len()).map(|at| column(at).collect()).collect(),
            bias,
        }
    }
}

/// Sums of a layer that has weights.
pub(super) enum Sums<'n> {
    /// Weights and biases.
    Public(&'n [Vec<i64>], &'n [i64]),
    /// What is public of them.
    Secret(Block, Block),
}

impl<'n> Sums<'n> {
    /// The sums of a layer, and their window; `None` of one that has no weights.
    pub(super) fn of(network: &'n Network, layer: usize) -> Option<(Self, Option<Window>)> {
        match network.parts().layers.get(layer)? {
            Layer::Dense { weights, bias } => Some((Self::Public(weights, bias), None)),
            Layer::Convolution {
                weights,
                bias,
                window,
            } => Some((Self::Public(weights, bias), Some(*window))),
            Layer::Secret(secret) => {
                let (weights, biases) = network.blocks(layer)?;
                Some((Self::Secret(weights, biases), secret.window))
            }
            Layer::Pool { .. } | Layer::Activation(_) | Layer::Add { .. } => None,
        }
    }

    /// Weights as integers for results that have units `to` and so many binary places more, of cells of these units and ranges; and the ranges of the sums of each channel. `None`
    /// if there is no room.
    pub(super) fn integers(
        &self,
        (to, more): (Unit, u32),
        (unit, ten): (Unit, &BigInt),
        terms: &[Range],
    ) -> Option<(Weights, Vec<Range>)> {
        let up = to.one() << more;
        let below = ten * unit.one();
        match *self {
            Self::Public(weights, bias) => {
                let integer = |weight: &i64, below: &BigInt| {
                    i64::try_from(nearest(&(&up * *weight), below)).ok()
                };
                let integers = weights.iter().map(|of| {
                    let of = of.iter().map(|weight| integer(weight, &below));
                    of.collect::<Option<Vec<i64>>>()
                });
                let weights: Vec<Vec<i64>> = integers.collect::<Option<_>>()?;
                let bias = bias.iter().map(|bias| integer(bias, ten));
                let bias: Vec<i64> = bias.collect::<Option<_>>()?;
                let sums = weights.iter().zip(&bias).map(|(weights, bias)| {
                    let weights = weights.iter().map(|weight| Range::point((*weight).into()));
                    sum(weights, terms, Range::point((*bias).into()))
                });
                let sums = sums.collect::<Option<Vec<Range>>>()?;
                Some((Weights::Public { weights, bias }, sums))
            }
            Self::Secret(weights, biases) => {
                let weights = Scaled::new(weights, &up, &below)?;
                let biases = Scaled::new(biases, &up, ten)?;
                let of_weights = std::iter::repeat(weights.range());
                let sum = sum(of_weights, terms, biases.range())?;
                let sums = vec![sum; biases.block.count as usize];
                Some((Weights::Secret { weights, biases }, sums))
            }
        }
    }

    /// The largest sum of absolute values of one channel's weights, in halves of the network's units; of secret ones before they were rounded.
    pub(super) fn largest(&self, terms: usize) -> BigInt {
        match self {
            Self::Public(weights, _) => {
                let sums = weights.iter().map(|of| {
                    of.iter()
                        .map(|weight| 2 * u128::from(weight.unsigned_abs()))
                        .sum::<u128>()
                });
                sums.max().unwrap_or(0).into()
            }
            Self::Secret(weights, _) => (BigInt::from(weights.most) * 2 + 1) * terms,
        }
    }
}

/// The range of a sum of terms, each times a weight, and a bias.
fn sum(weights: impl Iterator<Item = Range>, terms: &[Range], bias: Range) -> Option<Range> {
    let mut both = weights.zip(terms);
    both.try_fold(bias, |sum, (weight, term)| sum.plus(term.times(weight)?))
}
