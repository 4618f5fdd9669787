//! Why something is no model.

use crate::kind::MOST_PLACES;

/// Why something is no model of trees.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForestError {
    /// A name that is none of a job.
    #[error("`{name}` is no name of a model: lower-case letters, digits and `_`, a letter first")]
    Name {
        /// The name.
        name: String,
    },
    /// A text that is too long, or has control characters.
    #[error(
        "a name of a feature or class, or the source of a model, has at most {} bytes and no control characters",
        super::MOST_TEXT
    )]
    Text,
    /// Something that has no name of its own.
    #[error("there are two of the {what} `{name}`, or it has no name")]
    Twice {
        /// What.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No trees, or no features.
    #[error("a model has a tree and a feature at least")]
    Empty,
    /// One class.
    #[error("a model of classes has two classes at least")]
    OneClass,
    /// More than a model may have.
    #[error("a model has at most {most} {what}")]
    Many {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// More places than a number may have.
    #[error("what a model gives has at most {MOST_PLACES} decimal places, and not {places}")]
    Places {
        /// Its places.
        places: u32,
    },
    /// A leaf with another number of scores than the model, or base values.
    #[error("a leaf, or the base, has {found} numbers, where the model has {wide}")]
    Leaf {
        /// Numbers that are there.
        found: usize,
        /// Numbers that should be.
        wide: usize,
    },
    /// A split by a feature that is none of the model's.
    #[error("a split is by feature {feature}, which the model does not have")]
    NoFeature {
        /// Its place.
        feature: u16,
    },
    /// A tree that adds to a class that is none of the model's.
    #[error("a tree adds to class {class}, which the model does not have")]
    NoClass {
        /// Its place.
        class: u16,
    },
    /// A test that is none of the feature's kind.
    #[error("a split by `{name}` compares it with {what}")]
    Test {
        /// The feature.
        name: String,
        /// With what it is compared.
        what: &'static str,
    },
    /// Splits of which some say where nulls go.
    #[error("where a row goes whose feature is null is said by all splits of a model, or by none")]
    Nulls,
    /// Sums that may not fit.
    #[error("the sum of the leaves may not fit 128 bits")]
    TooWide,
}
