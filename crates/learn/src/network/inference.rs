//! Networks as integer arithmetic: sums of cells times integers, and what becomes of them.

use std::sync::Arc;

use veil_numeric::{Applied, Function, Range};

use super::analysis::{self, Analysis};
use super::sums::Weights;
use super::{Block, Cells, Network, Readout, Window, count};
use crate::column::Column;
use crate::error::FitError;

/// Most decimal places of what a network gives.
pub const MOST_SCORE_PLACES: u32 = 9;
/// Binary places of cells beyond those of what the network gives.
const GUARD: u32 = 6;
/// Binary places of cells, at least.
const FEWEST: u32 = 6;
/// So many with fewer places that are no nearer are tried, one after the other.
const MOST_WORSE: u32 = 3;

/// A sum of cells, each times an integer, for every cell of the result: a product of matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The map that it is of.
    pub of: usize,
    /// The cells of that map.
    pub before: Cells,
    /// Windows of a convolution; without them all cells are added up.
    pub window: Option<Window>,
    /// The integers.
    pub weights: Weights,
    /// The cells of the result.
    pub cells: Cells,
}

/// What becomes of cells: several are put together, multiplied, rounded, and a function is taken.
#[derive(Clone, Debug)]
pub struct Settle {
    /// The maps that it is of, all with the same cells.
    pub of: Vec<usize>,
    /// The cells of these maps.
    pub before: Cells,
    /// Windows that are put together.
    pub window: Option<Window>,
    /// Whether what is put together is added up; else the largest cell is taken.
    pub sum: bool,
    /// The public factor of what was put together.
    pub factor: i64,
    /// The product is over 2^by, rounded to nearest.
    pub by: u32,
    /// What is rounded is from −2^whole to 2^whole − 1.
    pub whole: u32,
    /// Whether negative numbers become 0.
    pub relu: bool,
    /// Bits of numbers from 0 on.
    pub positive: u32,
    /// The function.
    pub function: Option<Arc<Applied>>,
    /// The cells of the result.
    pub cells: Cells,
}

impl Settle {
    /// What is rounded, before negative numbers become 0.
    #[must_use]
    pub fn signed(&self) -> Range {
        let whole = 1_i128 << self.whole;
        Range::new(-whole, whole - 1).unwrap_or(Range::point(0))
    }

    /// The range of what is rounded, before a function.
    #[must_use]
    pub fn rounded(&self) -> Range {
        if !self.relu {
            return self.signed();
        }
        Range::new(0, (1_i128 << self.positive) - 1).unwrap_or(Range::point(0))
    }

    /// The range of the result.
    #[must_use]
    pub fn range(&self) -> Range {
        match &self.function {
            Some(function) => function.result(false),
            None => self.rounded(),
        }
    }

    /// Whether it takes no more than sums.
    #[must_use]
    pub const fn is_sum(&self) -> bool {
        self.sum && self.by == 0 && !self.relu && self.function.is_none()
    }
}

/// What is computed of maps, which are cells of a row; the result is the next map. Map 0 has the features.
#[derive(Clone, Debug)]
pub enum Step {
    /// A product of matrices.
    Product(Product),
    /// What becomes of each cell.
    Settle(Settle),
}

impl Step {
    /// The cells of its result.
    #[must_use]
    pub const fn cells(&self) -> Cells {
        match self {
            Self::Product(product) => product.cells,
            Self::Settle(settle) => settle.cells,
        }
    }
}

/// The arithmetic of a network over columns of features, and how near it is.
#[derive(Clone, Debug)]
pub struct Inference {
    /// Whether scores are of classes.
    of_classes: bool,
    factors: Vec<i64>,
    binary_places: u32,
    steps: Arc<[Step]>,
    outputs: Vec<Range>,
    error: u128,
    /// Numbers that an owner brings.
    secret: Vec<Block>,
}

impl Inference {
    pub(super) fn new(
        network: &Network,
        columns: &[Column],
        places: u32,
    ) -> Result<Self, FitError> {
        if places > MOST_SCORE_PLACES {
            return Err(FitError::Scores(places));
        }
        if columns.len() != network.parts().features.len() {
            return Err(FitError::Columns {
                found: columns.len(),
                features: network.parts().features.len(),
            });
        }
        let most = u128::BITS - 10_u128.pow(places).leading_zeros() + GUARD;
        let mut best: Option<Analysis> = None;
        let mut wrong = None;
        let mut worse = 0;
        for binary in (FEWEST..=most).rev() {
            match analysis::of(network, columns, (places, binary)) {
                Ok(found) => {
                    let exact = !found.squeezed;
                    if best.as_ref().is_none_or(|best| found.error < best.error) {
                        best = Some(found);
                        worse = 0;
                    } else {
                        worse += 1;
                    }
                    if exact || worse == MOST_WORSE {
                        break;
                    }
                }
                // The first one asks for the most bits.
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        let Some(best) = best else {
            return Err(wrong.unwrap_or(FitError::Scores(places)));
        };
        Ok(Self {
            of_classes: matches!(network.parts().readout, Readout::Classes(_)),
            outputs: vec![
                best.range;
                count(network.cells().last().copied().unwrap_or_default()) as usize
            ],
            error: best.error_in_thousandths(places),
            factors: best.factors,
            binary_places: best.binary,
            steps: best.steps.into(),
            secret: network.secret(),
        })
    }

    /// The ranges of what the last layer gives, in units of its decimal places.
    #[must_use]
    pub fn outputs(&self) -> &[Range] {
        &self.outputs
    }

    /// Binary places of cells between layers.
    #[must_use]
    pub const fn binary_places(&self) -> u32 {
        self.binary_places
    }

    /// How far what is given is from the network's with real numbers, at most: in thousandths of a unit.
    #[must_use]
    pub const fn error(&self) -> u128 {
        self.error
    }

    /// What each feature is multiplied with, so that all have the same decimal places.
    #[must_use]
    pub fn factors(&self) -> &[i64] {
        &self.factors
    }

    /// What is computed, in this order. The last step is a [`Step::Settle`].
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Integers that are multiplied in a row.
    #[must_use]
    pub fn products(&self) -> u64 {
        let of = self.steps.iter().map(|step| match step {
            Step::Product(product) => count(product.cells) * product.weights.terms() as u64,
            Step::Settle(_) => 0,
        });
        of.sum()
    }

    /// The same with the weights that an owner brings, so that it may be applied in the clear: the numbers of [`Network::secret`], in units of the network's places.
    ///
    /// # Errors
    /// [`FitError::Weights`] if they are more or fewer, and [`FitError::Weight`] if one is beyond its bound.
    pub fn with_weights(&self, numbers: &[i128]) -> Result<Self, FitError> {
        let wanted: usize = self.secret.iter().map(|block| block.count as usize).sum();
        if numbers.len() != wanted {
            return Err(FitError::Weights {
                found: numbers.len(),
                wanted,
            });
        }
        for block in &self.secret {
            let own = numbers.iter().enumerate().skip(block.first as usize);
            let mut own = own.take(block.count as usize);
            if let Some((at, _)) = own.find(|(_, number)| !block.range().contains(**number)) {
                return Err(FitError::Weight {
                    at: at + 1,
                    what: if block.bias { "a bias" } else { "a weight" },
                    layer: block.layer,
                });
            }
        }
        let steps = self.steps.iter().map(|step| match step {
            Step::Product(product) => Step::Product(Product {
                weights: product.weights.known(numbers),
                ..product.clone()
            }),
            Step::Settle(settle) => Step::Settle(settle.clone()),
        });
        Ok(Self {
            steps: steps.collect(),
            secret: Vec::new(),
            ..self.clone()
        })
    }

    /// What the network gives for a row in the clear: units of each score.
    ///
    /// # Errors
    /// [`FitError::Columns`] if the row has other features, and [`FitError::Weights`] without the weights of an owner.
    ///
    /// # Panics
    /// If a number is not in the range of its column.
    pub fn apply(&self, row: &[i128]) -> Result<Vec<i128>, FitError> {
        if row.len() != self.factors.len() {
            return Err(FitError::Columns {
                found: row.len(),
                features: self.factors.len(),
            });
        }
        if !self.secret.is_empty() {
            return self.with_weights(&[]).and_then(|of| of.apply(row));
        }
        let scaled = row.iter().zip(&self.factors);
        let mut maps = vec![
            scaled
                .map(|(x, by)| x * i128::from(*by))
                .collect::<Vec<_>>(),
        ];
        for step in &*self.steps {
            let next = match step {
                Step::Product(product) => product.clear(&maps[product.of]),
                Step::Settle(settle) => {
                    let of: Vec<&[i128]> =
                        settle.of.iter().map(|map| maps[*map].as_slice()).collect();
                    settle.clear(&of)
                }
            };
            maps.push(next);
        }
        Ok(maps.pop().unwrap_or_default())
    }

    /// The class of a row with these scores: the first one with the highest; of one score the second class where it is above 0.
    #[must_use]
    pub fn class(&self, scores: &[i128]) -> usize {
        match scores {
            [one] if self.of_classes => usize::from(*one > 0),
            _ => {
                let mut best = 0;
                for (at, score) in scores.iter().enumerate() {
                    if *score > scores[best] {
                        best = at;
                    }
                }
                best
            }
        }
    }
}

/// The places of a window's cells in an image, for each place of the window: nothing where there is padding.
pub(super) fn windows(
    window: &Window,
    [_, rows, columns]: Cells,
    [_, down, across]: Cells,
) -> impl Iterator<Item = Vec<Option<usize>>> {
    let Window {
        size,
        stride,
        padding,
    } = *window;
    let place = move |at: u32, k: u32, stride: u32, before: u32, length: u32| {
        let place = (at * stride + k).checked_sub(before);
        place.filter(|place| *place < length)
    };
    (0..down).flat_map(move |y| {
        (0..across).map(move |x| {
            let cells = (0..size[0]).flat_map(|dy| (0..size[1]).map(move |dx| (dy, dx)));
            let cells = cells.map(|(dy, dx)| {
                let row = place(y, dy, stride[0], padding[0], rows)?;
                let column = place(x, dx, stride[1], padding[1], columns)?;
                Some(row as usize * columns as usize + column as usize)
            });
            cells.collect()
        })
    })
}

impl Product {
    fn clear(&self, of: &[i128]) -> Vec<i128> {
        let Weights::Public { weights, bias } = &self.weights else {
            return Vec::new();
        };
        let outputs = || weights.iter().zip(bias);
        let Some(window) = &self.window else {
            let sum = |(weights, bias): (&Vec<i64>, &i64)| {
                let terms = weights.iter().zip(of);
                terms.fold(i128::from(*bias), |sum, (weight, cell)| {
                    sum + i128::from(*weight) * cell
                })
            };
            return outputs().map(sum).collect();
        };
        let image = self.before[1] as usize * self.before[2] as usize;
        let places = self.cells[1] as usize * self.cells[2] as usize;
        let mut all = vec![0; weights.len() * places];
        for (place, cells) in windows(window, self.before, self.cells).enumerate() {
            for (output, (weights, bias)) in outputs().enumerate() {
                let mut sum = i128::from(*bias);
                for (channel, weights) in weights.chunks(cells.len()).enumerate() {
                    for (weight, cell) in weights.iter().zip(&cells) {
                        let cell = cell.map_or(0, |cell| of[channel * image + cell]);
                        sum += i128::from(*weight) * cell;
                    }
                }
                all[output * places + place] = sum;
            }
        }
        all
    }
}

impl Settle {
    fn clear(&self, of: &[&[i128]]) -> Vec<i128> {
        let one = Window::one();
        let window = self.window.as_ref().unwrap_or(&one);
        let image = self.before[1] as usize * self.before[2] as usize;
        let mut all = Vec::new();
        for channel in 0..self.cells[0] as usize {
            for cells in windows(window, self.before, self.cells) {
                let places = cells.iter().flatten();
                let cells = of.iter().flat_map(|map| {
                    let places = places.clone();
                    places.map(|place| map[channel * image + place])
                });
                all.push(self.settled(cells));
            }
        }
        all
    }

    /// What becomes of cells that are put together.
    fn settled(&self, cells: impl Iterator<Item = i128>) -> i128 {
        let together = if self.sum {
            cells.sum::<i128>()
        } else {
            cells.max().unwrap_or(0)
        };
        let rounded = rounded(together, self.factor, self.by);
        assert!(
            self.is_sum() || self.signed().contains(rounded),
            "an integer is in the range that it was proved to be in"
        );
        let rounded = if self.relu { rounded.max(0) } else { rounded };
        match &self.function {
            Some(function) => function.clear(rounded).expect("an argument in its range"),
            None => rounded,
        }
    }
}

/// A number times a public factor, over 2^by, rounded to nearest.
pub(super) fn rounded(value: i128, factor: i64, by: u32) -> i128 {
    let half = if by == 0 { 0 } else { 1 << (by - 1) };
    (value * i128::from(factor) + half) >> by
}

/// The function of an activation that is more than a choice.
pub(super) const fn function(of: super::Activation) -> Option<Function> {
    match of {
        super::Activation::Relu => None,
        super::Activation::Sigmoid => Some(Function::Sigmoid),
        super::Activation::Tanh => Some(Function::Tanh),
    }
}
