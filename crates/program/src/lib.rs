//! Jobs: what is computed, on whose data, for whom.

mod clear;
mod data;
mod error;
mod gates;
mod job;
mod load;
mod number;
mod publish;
mod raw;
mod roles;
pub mod stats;

pub use clear::{ClearError, evaluate};
pub use data::{CellFault, CellProblem, DataError, Sink, Slice, Source};
pub use error::{JobError, JobProblem, Place};
pub use gates::{FileSink, FileSource, Gates};
pub use job::{Audience, Block, Holder, Lowered};
pub use load::{DataFile, Files, Job, Kind, Output};
pub use number::{NumberError, Scaled, parse_scaled};
pub use roles::Roles;
