//! What a query opens, to whom.

use std::ops::Range;

use veil_relation::Bucket;

/// To whom something is opened.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum To {
    /// A recipient, by its name.
    Recipient(String),
    /// All computing parties.
    Parties,
}

/// Something that a query opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opening {
    /// A relation.
    Rows {
        /// The step.
        step: String,
        /// Rows, at most.
        rows: u32,
        /// The names of the columns.
        columns: Vec<String>,
        /// The fewest rows of a group that is shown; 0 where all are.
        min_rows: u32,
        /// The recipient.
        to: String,
    },
    /// One bit: whether a key of a relation occurs twice. The run ends if it does.
    Duplicates {
        /// The relation, in words.
        of: String,
    },
    /// One bit: whether a relation has more valid rows than a bound. The run ends if it has.
    Overflow {
        /// The relation, in words.
        of: String,
        /// The bound.
        rows: u32,
    },
    /// One bit: whether any of these relations has more valid rows than its bound, so that a result lacks some. The run goes on.
    Incomplete {
        /// The step.
        step: String,
        /// The relations, in words, and their bounds.
        of: Vec<(String, u32)>,
        /// The recipient of the result.
        to: String,
    },
    /// One bit: whether what an owner says of its tables is false. The run ends if it is.
    Claims {
        /// The owner.
        owner: String,
        /// What it says, in words.
        of: Vec<String>,
        /// The passes that look at it, and nothing else.
        passes: Range<usize>,
    },
    /// Of a relation that is kept, which bucket its number of valid rows is in.
    Size {
        /// The step.
        step: String,
        /// Rows of the relation.
        rows: u32,
        /// The buckets.
        bucket: Bucket,
        /// Why, in the words of the job.
        why: String,
    },
    /// Between two parties, one bit: whether the run ends without a result, because something that the parties see ends it.
    Ended {
        /// The recipient, who is no party.
        to: String,
    },
    /// Permutations that are uniform whatever the values are.
    Permutations {
        /// How many.
        count: u32,
    },
}

impl Opening {
    /// Who reads it.
    #[must_use]
    pub fn to(&self) -> To {
        match self {
            Self::Rows { to, .. } | Self::Incomplete { to, .. } | Self::Ended { to } => {
                To::Recipient(to.clone())
            }
            Self::Duplicates { .. }
            | Self::Overflow { .. }
            | Self::Claims { .. }
            | Self::Size { .. }
            | Self::Permutations { .. } => To::Parties,
        }
    }
}
