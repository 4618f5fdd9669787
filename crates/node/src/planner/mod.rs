//! Planning what members propose, in a process of its own that may do nothing else.
//!
//! A proposal is text that somebody else wrote. The service looks at its length and at who sent it, and gives it to a child process, which
//! confines itself before it reads it ([`veil_sandbox`]), reads, checks and plans it, and answers with what the service decides by:
//! `Planned`. The child is believed as a planner always was; what it cannot do is harm anything but the one proposal. What is approved is
//! planned again in the service, which must find the same plan hash.

mod errand;
mod inner;
mod pool;
mod prepare;

pub(crate) use errand::{Planned, Terms};
#[doc(hidden)]
pub use inner::fuzz_proposal;
pub use inner::{Asked, confinement, inner};
pub(crate) use pool::{Planner, Refusal};
pub(crate) use prepare::{Prepared, prepare};
