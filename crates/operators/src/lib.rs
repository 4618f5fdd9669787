//! Relational operators as passes over columns: how rows that no party knows are shuffled, sorted, grouped and joined.
//!
//! A [`Builder`] writes a program of passes ([`veil_job::passes`]). It says which circuit is computed in which rows and which rows move, and nothing
//! about a protocol: the same program runs among three parties and among four. For two parties, who compute a program as one circuit of bits, circuits have few gates rather than few rounds,
//! and every sort is by comparisons, which a network makes. Three parties of whom one may be malicious sort by comparisons too: their columns become bits.
//!
//! ```
//! use veil_job::{Audience, Holder, JobSpec};
//! use veil_operators::{Builder, Key, Participants, Sharing};
//! use veil_math::Ring;
//!
//! let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
//! let mut builder = Builder::new(Participants {
//!     name: "sorted".into(),
//!     owners: names(&["ann"]),
//!     parties: names(&["p0", "p1", "p2"]),
//!     recipients: names(&["eve"]),
//!     security: veil_job::Security::among(3),
//! });
//! let keys = builder.input(Holder::Owner(0), "key", 1000, Sharing::Bits(20));
//! let order = builder.sort(&Key::of(&[keys]));
//! let sorted = builder.apply(&order, &[keys]);
//! builder.open(&sorted, Audience::Recipient(0), "the keys, in their order");
//! // Keys are shared, moved, compared in 28 passes, of which the last compare nothing, and opened.
//! assert_eq!(builder.finish().passes.len(), 31);
//! ```
//!
//! # Promises
//!
//! - Programs follow from numbers of rows and of bits alone.
//! - Sorting is stable, and no party learns how rows moved.
//!
//! # Limits
//!
//! - A program says nothing of what its result tells about rows.

mod builder;
mod digits;
mod groups;
mod join;
mod key;
mod moves;
mod pairs;
mod products;
mod scan;
mod sort;
mod totals;

pub use builder::{Builder, Participants, Shared, Sharing};
pub use groups::{GroupKey, Groups};
pub use join::{Duplicates, Found};
pub use key::{Key, stacked};
pub use moves::Opened;
pub use pairs::{Pairs, Side};
pub use scan::Scan;
pub use sort::{Arranged, DIGIT, Order};
pub use totals::{FoundGroups, Grouped};
