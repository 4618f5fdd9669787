//! Decision trees by histograms: of each node the rows of each public candidate are added up, and the best candidate splits it.
//!
//! Candidates are conditions of one feature. A split into rows for which its condition holds and others is scored by
//!
//! ```text
//! Σ L² / nL + Σ R² / nR
//! ```
//!
//! with sums over the classes of how many rows of each there are, or with the sums of the target: the larger it is, the smaller is Gini's impurity, or the variance, of both sides (Breiman, Friedman,
//! Olshen, Stone, *Classification and Regression Trees*, 1984). Scores are compared as fractions, exactly.

mod clear;
mod split;

use veil_numeric::{Arithmetic, Machine, On, Range, TooWide};

pub use clear::TreeNode;
pub use split::Split;

use crate::column::{Centred, Column};
use crate::error::{FitError, WIDE};
use crate::spec::MOST_TERMS;

/// Levels of splits, at most.
pub const MOST_DEPTH: u32 = 6;
/// Cuts of a feature, at most.
pub const MOST_CUTS: usize = 63;
/// Candidates of a tree, at most.
pub const MOST_CANDIDATES: usize = 1023;
/// Classes of a target, at most.
pub const MOST_CLASSES: u32 = 16;
/// Binary places of a target over half of its range, at least, if its numbers do not need fewer.
const FEWEST: u32 = 8;

/// A feature of a tree, with what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeFeature {
    /// Numbers: for each cut whether they are at most that.
    Number {
        /// The numbers.
        column: Column,
        /// The cuts, ascending, in units of the column: from the least of its numbers on, and below the greatest.
        cuts: Vec<i128>,
    },
    /// 0 and 1: whether it is 0.
    Condition,
    /// The indices of so many values: for each whether it is that; of two, for the first.
    Category {
        /// How many.
        values: u32,
    },
}

/// The target of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeTarget {
    /// One of so many classes, by their indices.
    Classes(u32),
    /// A number.
    Number(Column),
}

/// What is grown, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSpec {
    /// The features.
    pub features: Vec<TreeFeature>,
    /// The target.
    pub target: TreeTarget,
    /// Rows, at most.
    pub rows: u32,
    /// Levels of splits, 1 to [`MOST_DEPTH`].
    pub depth: u32,
    /// The fewest rows of a node; 0 is 1.
    pub least: u32,
    /// Decimal places of shares and means.
    pub places: u32,
}

/// A condition of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// It is at most this.
    AtMost(i128),
    /// It is this.
    Is(i128),
}

impl Test {
    /// Whether it holds of a number.
    #[must_use]
    pub const fn holds(self, x: i128) -> bool {
        match self {
            Self::AtMost(cut) => x <= cut,
            Self::Is(value) => x == value,
        }
    }
}

/// What may split a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The feature, from 0 on.
    pub feature: usize,
    /// Where it holds rows go to the first child, others to the second.
    pub test: Test,
}

/// A target that is a number, as it is added up: less the centre of its range, over 2^shift.
#[derive(Clone, Copy, Debug)]
struct Summed {
    of: Centred,
    column: Column,
    /// Binary places over half of the range.
    places: u32,
}

impl Summed {
    const fn shift(&self) -> u32 {
        self.of.exponent - self.places
    }
}

/// A tree whose arithmetic fits.
#[derive(Clone, Debug)]
pub struct Tree {
    spec: TreeSpec,
    candidates: Vec<Candidate>,
    summed: Option<Summed>,
    /// Ranges of what rows of a node add up to.
    measures: Vec<Range>,
    above: Range,
    below: Range,
    values: Vec<Fraction>,
}

/// The range of a numerator over a number of rows, its decimal places, and the range that the quotient has in units of the last place that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    /// Of the numerator.
    pub above: Range,
    /// Its decimal places.
    pub from: u32,
    /// The least and the greatest quotient, with the numerator's places.
    pub quotients: Range,
}

fn range(min: i128, max: i128) -> Result<Range, FitError> {
    Range::new(min, max).ok_or(WIDE)
}

/// How many values of a category are asked for: of two one is what the other is not.
const fn asked(values: u32) -> u32 {
    if values > 2 {
        values
    } else {
        values.saturating_sub(1)
    }
}

fn candidates(features: &[TreeFeature]) -> Result<Vec<Candidate>, FitError> {
    let mut all = Vec::new();
    for (feature, of) in features.iter().enumerate() {
        let mut add = |test| all.push(Candidate { feature, test });
        match of {
            TreeFeature::Number { column, cuts } => {
                let ascend = cuts.windows(2).all(|pair| pair[0] < pair[1]);
                let (least, most) = (column.range.min(), column.range.max());
                let within = cuts.iter().all(|cut| (least..most).contains(cut));
                if cuts.len() > MOST_CUTS || !ascend || !within {
                    return Err(FitError::Cuts(feature));
                }
                for cut in cuts {
                    add(Test::AtMost(*cut));
                }
            }
            TreeFeature::Condition => add(Test::AtMost(0)),
            TreeFeature::Category { values } => {
                for value in 0..asked(*values) {
                    add(Test::Is(value.into()));
                }
            }
        }
        if all.len() > MOST_CANDIDATES {
            break;
        }
    }
    if all.is_empty() || all.len() > MOST_CANDIDATES {
        return Err(FitError::Candidates {
            found: features
                .iter()
                .map(|of| match of {
                    TreeFeature::Number { cuts, .. } => cuts.len(),
                    TreeFeature::Condition => 1,
                    TreeFeature::Category { values } => asked(*values) as usize,
                })
                .sum(),
        });
    }
    Ok(all)
}

impl Tree {
    /// The tree.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(spec: TreeSpec) -> Result<Self, FitError> {
        let found = spec.features.len();
        if found == 0 || found >= MOST_TERMS {
            return Err(FitError::Features { found });
        }
        if !(1..=MOST_DEPTH).contains(&spec.depth) {
            return Err(FitError::Depth(spec.depth));
        }
        if spec.places > 18 {
            return Err(FitError::Places(spec.places));
        }
        let candidates = candidates(&spec.features)?;
        // Of fewer rows than four a split has no more than it has of four.
        let rows = i128::from(spec.rows.max(4));
        let pairs = rows * rows / 4;
        let counts = range(0, spec.rows.into())?;
        // A node's score is at most the cube of its rows over four, times the square of the target: nL · nR · (nL + nR).
        let cube = rows.checked_mul(pairs).ok_or(WIDE)?;
        let (summed, measures, most) = match spec.target {
            TreeTarget::Classes(found) => {
                if !(2..=MOST_CLASSES).contains(&found) {
                    return Err(FitError::Classes { found });
                }
                (None, vec![counts; found as usize], cube)
            }
            TreeTarget::Number(column) => {
                let of = Centred::of(column).ok_or(FitError::Wide(found))?;
                let most = |places: u32| cube.checked_mul(1_i128.checked_shl(2 * places)?);
                let fits = |places: &u32| {
                    let score = most(*places).filter(|_| *places < 32);
                    let crossed = score.and_then(|score| score.checked_mul(pairs));
                    crossed.is_some_and(|crossed| crossed < i128::MAX / 2)
                };
                let least = of.exponent.min(FEWEST);
                let places = (least..=of.exponent.min(31)).rev().find(fits).ok_or(WIDE)?;
                let summed = Summed { of, column, places };
                let sums = i128::from(spec.rows) << places;
                let measures = vec![counts, range(-sums, sums)?];
                (Some(summed), measures, most(places).ok_or(WIDE)?)
            }
        };
        let mut of = Self {
            spec,
            candidates,
            summed,
            measures,
            above: range(0, most)?,
            below: range(0, pairs)?,
            values: vec![],
        };
        of.values = of.fractions()?;
        of.derive()?;
        Ok(of)
    }

    /// What it is.
    #[must_use]
    pub const fn spec(&self) -> &TreeSpec {
        &self.spec
    }

    /// What may split a node, in the order in which the first of equals is chosen.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The ranges of what rows of a node add up to: how many there are of each class, or how many there are and the sum of their targets.
    #[must_use]
    pub fn measures(&self) -> &[Range] {
        &self.measures
    }

    /// Of a target that is a number: its binary places over half of the range (rounded up to a power of two), and whether it is exact.
    #[must_use]
    pub fn target_places(&self) -> Option<(u32, bool)> {
        self.summed.map(|of| (of.places, of.shift() == 0))
    }

    /// What is shown of a node: of each class its share of the rows, or the mean.
    #[must_use]
    pub fn values(&self) -> &[Fraction] {
        &self.values
    }

    /// The fewest rows of a node.
    pub(crate) fn least(&self) -> i128 {
        self.spec.least.max(1).into()
    }

    fn fractions(&self) -> Result<Vec<Fraction>, FitError> {
        let Some(summed) = self.summed else {
            let of = Fraction {
                above: self.measures[0],
                from: 0,
                quotients: range(0, 1)?,
            };
            return Ok(vec![of; self.measures.len()]);
        };
        let (centre, half) = (summed.of.centre, 1_i128 << summed.of.exponent);
        // A mean of numbers that are exact is in their range.
        let quotients = if summed.shift() == 0 {
            summed.column.range
        } else {
            let end = |by: i128| centre.checked_add(by).ok_or(WIDE);
            range(end(-half)?, end(half)?)?
        };
        let above = quotients.hull(Range::point(0));
        let above = above.times(self.measures[0]).ok_or(WIDE)?;
        Ok(vec![Fraction {
            above,
            from: summed.column.places,
            quotients,
        }])
    }

    /// The target of a row that is a number, as it is added up.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine.
    ///
    /// # Panics
    /// If the target is a class.
    pub fn response<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        y: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let summed = self.summed.expect("the target is a number");
        summed.of.on(a, y, summed.places)
    }
}
