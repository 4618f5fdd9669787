//! Why a model cannot be fitted.

use veil_numeric::{FunctionError, TooWide};

use crate::spec::{Family, MOST_ITERATIONS, MOST_TERMS};

/// Why a model cannot be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No feature, or more than there may be.
    #[error("a model has 1 to {} features, and this has {found}", MOST_TERMS - 1)]
    Features {
        /// How many there are.
        found: usize,
    },
    /// No steps, or more than there may be.
    #[error("a model is fitted in 1 to {MOST_ITERATIONS} steps, and this says {0}")]
    Iterations(u32),
    /// No rows of a batch, or more than there are places for rows.
    #[error(
        "a batch has 1 to {rows} rows, as many as there are places for rows, and this has {batch}"
    )]
    Batch {
        /// Rows of a batch.
        batch: u32,
        /// Places for rows.
        rows: u32,
    },
    /// No epochs, or too many.
    #[error(
        "a model by gradient descent takes 1 to {most} steps, and {epochs} epochs of {batches} batches are {steps}: choose larger batches, or other epochs",
        most = crate::descent::MOST_DESCENTS,
        steps = u64::from(*epochs) * u64::from(*batches)
    )]
    Epochs {
        /// Epochs.
        epochs: u32,
        /// Batches of each.
        batches: u32,
    },
    /// A rate that moves nothing, or coefficients beyond their limit at once.
    #[error(
        "the rate of gradient descent is above 0 and up to {}, with up to {} decimal places",
        crate::descent::MOST_RATE,
        crate::descent::MOST_RATE_PLACES
    )]
    Rate,
    /// A momentum with which steps have no range, or nearly none.
    #[error(
        "the momentum of gradient descent is from 0 to 0.{}, with up to {} decimal places",
        crate::descent::MOST_MOMENTUM,
        crate::descent::MOST_RATE_PLACES
    )]
    Momentum,
    /// A limit of coefficients that there may not be.
    #[error("the limit of coefficients is 1 to {most}, and this is {0}", most = crate::descent::MOST_LIMIT)]
    Limit(u32),
    /// Steps of gradient descent that do not fit.
    #[error(
        "a step of gradient descent may need {bits} bits where there are {most}: choose a smaller rate, momentum, penalty or limit, or declare narrower ranges"
    )]
    WideStep {
        /// Bits that may be needed.
        bits: u32,
        /// Bits at hand.
        most: u32,
    },
    /// No squarings, or more than there may be.
    #[error(
        "a matrix is squared 1 to {} times, and this says {found}",
        crate::components::MOST_SQUARINGS
    )]
    Squarings {
        /// How often this says.
        found: u32,
    },
    /// More decimal places than loadings have.
    #[error("loadings have up to 9 decimal places, and these {0}")]
    Loadings(u32),
    /// No components, or more than features.
    #[error("there are 1 to {features} components of {features} features, and this has {found}")]
    Components {
        /// How many there are.
        found: u32,
        /// How many features there are.
        features: usize,
    },
    /// Fewer or more centres than there may be.
    #[error(
        "there are 2 to {} clusters, and this has {found}",
        crate::clusters::MOST_CLUSTERS
    )]
    Clusters {
        /// How many there are.
        found: usize,
    },
    /// A first centre without a number for each feature, or with one that the feature does not have.
    #[error("centre {} of `start` has not a number for each feature, in its range", at + 1)]
    Start {
        /// Which one, from 0 on.
        at: usize,
    },
    /// No levels of a tree, or more than there may be.
    #[error(
        "a tree has 1 to {most} levels of splits, and this says {0}",
        most = crate::tree::MOST_DEPTH
    )]
    Depth(u32),
    /// Cuts of a column that are too many, do not ascend, or separate none of its numbers.
    #[error(
        "cuts of feature {feature} of a tree are up to {most} numbers, ascending, from the least of its range on and below the greatest",
        feature = .0 + 1,
        most = crate::tree::MOST_CUTS
    )]
    Cuts(usize),
    /// No candidates, or more than there may be.
    #[error(
        "a tree has 1 to {} candidates for its splits, and this has {found}: give fewer `cuts`, or fewer columns",
        crate::tree::MOST_CANDIDATES
    )]
    Candidates {
        /// How many there are.
        found: usize,
    },
    /// A target of no or too many classes.
    #[error(
        "a tree has 2 to {} classes, and this target {found}",
        crate::tree::MOST_CLASSES
    )]
    Classes {
        /// How many there are.
        found: u32,
    },
    /// A target that the family does not have.
    #[error("the target of a {family} regression is {needed}", family = of.name())]
    Target {
        /// The family.
        of: Family,
        /// What it has to be.
        needed: &'static str,
    },
    /// A column whose integers are too wide.
    #[error("column {0} of a model may need more than 120 bits; declare a narrower range")]
    Wide(usize),
    /// More decimal places than there may be.
    #[error("coefficients have up to 18 decimal places, and these {0}")]
    Places(u32),
    /// More decimal places than scores have.
    #[error(
        "what a network gives has up to {most} decimal places, and not {0}",
        most = crate::network::MOST_SCORE_PLACES
    )]
    Scores(u32),
    /// Other features than a network has.
    #[error("a network of {features} features takes as many, and not {found}")]
    Columns {
        /// How many there are.
        found: usize,
        /// How many the network has.
        features: usize,
    },
    /// More or fewer numbers than those that an owner brings of a network.
    #[error(
        "a network of {wanted} secret weights and biases takes as many numbers, and not {found}"
    )]
    Weights {
        /// How many there are.
        found: usize,
        /// How many it takes.
        wanted: usize,
    },
    /// A number that is beyond what its layer allows.
    #[error("number {at} of the weights is {what} of layer {layer}, and beyond its bound")]
    Weight {
        /// Which one, from 1 on.
        at: usize,
        /// What it is.
        what: &'static str,
        /// The layer, from 0 on.
        layer: usize,
    },
    /// Numbers of a layer of a network with secret weights do not fit.
    #[error(
        "layer {layer} of a network with secret weights may need {bits} bits where there are {most}: declare smaller bounds of weights, narrower ranges of features, or fewer places"
    )]
    WideLayer {
        /// The layer, from 0 on.
        layer: usize,
        /// Bits that may be needed.
        bits: u32,
        /// Bits at hand.
        most: u32,
    },
    /// Numbers on the way do not fit.
    #[error(
        "a model of these ranges and so many rows may need {bits} bits where there are {most}: declare narrower ranges, fewer places, or a smaller penalty"
    )]
    TooWide {
        /// Bits that may be needed.
        bits: u32,
        /// Bits at hand.
        most: u32,
    },
}

impl From<TooWide> for FitError {
    fn from(TooWide { bits, most }: TooWide) -> Self {
        Self::TooWide { bits, most }
    }
}

impl From<FunctionError> for FitError {
    fn from(error: FunctionError) -> Self {
        match error {
            FunctionError::TooWide { bits, .. } => Self::TooWide {
                bits: 129,
                most: bits,
            },
            // Arguments are clipped to where functions have values.
            _ => Self::TooWide {
                bits: 129,
                most: 128,
            },
        }
    }
}

pub(crate) const WIDE: FitError = FitError::TooWide {
    bits: 129,
    most: 128,
};
