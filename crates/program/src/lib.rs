//! Jobs: what is computed, on whose data, for whom.

mod data;
mod job;

pub use data::{DataError, Sink, Slice, Source};
pub use job::{Audience, Block, Holder, Lowered};
