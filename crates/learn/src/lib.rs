//! Models of rows, fitted to them or trained elsewhere, as integer arithmetic: what parties compute on shares, and what is computed in the clear, to the last bit.
//!
//! A [`Regression`] is a sequence of stages. Each is arithmetic over a [`Machine`](veil_numeric::Machine), of one row of the data or of one row of a small matrix; between them are products of matrices,
//! which are exact. Every stage knows the ranges of what comes in and derives those of what goes out; nothing wraps, and nothing depends on values but values.
//!
//! A [`Descent`] is the same model by gradient descent in batches.
//!
//! ```
//! use veil_learn::{Column, Family, Regression, Spec};
//! use veil_numeric::Range;
//! let whole = |min, max| Column { range: Range::new(min, max).unwrap_or(Range::point(0)), places: 0 };
//! let of = Regression::new(Spec {
//!     family: Family::Linear,
//!     features: vec![whole(0, 100)],
//!     target: whole(0, 400),
//!     rows: 4,
//!     ridge: (0, 0),
//!     iterations: 8,
//!     places: 3,
//! })?;
//! // y = 7 + 3 x, to the last place.
//! let fitted = of.fit(&[(vec![0], 7), (vec![10], 37), (vec![50], 157), (vec![100], 307)])?;
//! assert_eq!([fitted[0].coefficient, fitted[1].coefficient], [7_000, 3_000]);
//! # Ok::<(), veil_learn::FitError>(())
//! ```
//!
//! # Promises
//!
//! - The fixed point of the iterations is that of the model: the gradient is exact but for the rounding of the mean of each row. What is approximate is the matrix that a step is taken with.
//! - Every matrix that is inverted has the eigenvalue 2^-12 or more, whatever rows are: collinear columns, no rows, and rows that any number separates have a result, which is finite.
//!
//! # Limits
//!
//! - A coefficient of a column over half its range is below 2^10, and is kept there.

mod clear;
mod clusters;
mod column;
mod components;
mod descent;
mod design;
mod error;
mod link;
pub mod network;
mod results;
mod rows;
mod scaled;
mod solve;
mod spec;
mod tree;

pub use clear::Fitted;
pub use clusters::{Cluster, ClusterSpec, Clusters, MOST_CLUSTERS};
pub use column::Column;
pub use components::{Component, ComponentSpec, Components, MOST_SQUARINGS};
pub use descent::{
    Descending, Descent, DescentSpec, MOST_DESCENTS, MOST_LIMIT, MOST_MOMENTUM, MOST_RATE,
    MOST_RATE_PLACES, Moved, Stepping,
};
pub use design::Design;
pub use error::FitError;
pub use link::Link;
pub use network::Network;
pub use results::Deviations;
pub use rows::Row;
pub use solve::Gradient;
pub use spec::{Between, Family, MOST_ITERATIONS, MOST_TERMS, Regression, Spec};
pub use tree::{
    Candidate, Fraction, MOST_CANDIDATES, MOST_CLASSES, MOST_CUTS, MOST_DEPTH, Split, Test, Tree,
    TreeFeature, TreeNode, TreeSpec, TreeTarget,
};
