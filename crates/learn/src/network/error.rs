//! Why something is no network.

use super::{Cells, MOST_PLACES, MOST_TEXT};

/// Why something is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A text that is too long, or has control characters.
    #[error(
        "a name of a feature or class, or the source of a model, has at most {MOST_TEXT} bytes and no control characters"
    )]
    Text,
    /// Fewer or more names than there may be.
    #[error("a network has {least} to {most} names of its {what}, and this has {found}")]
    Names {
        /// What they name.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Something that has no name of its own.
    #[error("there are two of the {what} `{name}`, or it has no name")]
    Twice {
        /// What.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// More places than weights may have.
    #[error("weights have at most {MOST_PLACES} decimal places, and not {0}")]
    Places(u32),
    /// Features that are not as many as the cells.
    #[error(
        "features are {} channels of {} rows and {} columns, and there are {features} of them",
        cells[0], cells[1], cells[2]
    )]
    Features {
        /// What the network says that they are.
        cells: Cells,
        /// How many there are.
        features: usize,
    },
    /// More than a network may have, or nothing.
    #[error("a network has at least one and at most {most} {what}, and this has {found}")]
    Many {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A layer that does not fit what is before it.
    #[error("layer {at}: {what}")]
    Layer {
        /// Its number, from 0 on.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A last layer that gives other numbers than the network.
    #[error("the last layer gives {cells} cells, and the network {outputs} outputs")]
    Readout {
        /// What the layer gives.
        cells: u64,
        /// What the network has names for.
        outputs: usize,
    },
}
