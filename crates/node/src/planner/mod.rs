//! Planning what members propose, in a process of its own that may do nothing else.
//!
//! A proposal is text of another participant. The service looks at its length and its sender, and gives it to a child process, which
//! confines itself before it reads it ([`veil_sandbox`]), reads, checks and plans it, and answers with the facts that the service decides
//! by: `Planned`. The child is trusted as any planner; it can harm nothing but the one proposal. The service plans an approved job again,
//! and must find the same plan hash.

mod errand;
mod inner;
mod known;
mod pool;
mod prepare;

pub(crate) use errand::{Planned, Terms};
#[doc(hidden)]
pub use inner::fuzz_proposal;
pub use inner::{Asked, confinement, inner};
pub(crate) use known::Known;
pub(crate) use pool::{Planner, Refusal};
pub(crate) use prepare::{Prepared, prepare};
