//! Pseudorandom secret sharing (PRSS): the function that parties with a common key call, the tuple that names each call, and the ledger
//! that forbids a second call on one tuple (rule R4).
//!
//! Parties that hold a common key derive equal masks from it without a message. A call is named by the tuple of domain tag ([`DomainTag`]), lane,
//! counter and chunk; [`Prf`] maps a tuple to a block of 16 bytes, by AES-128. This scalar version *defines* the function, for protocols and
//! devices; devices compute the same bytes faster.
//!
//! ```text
//! party i ── κ ── party i+1        block = AES-128_κ(tag ‖ lane ‖ counter ‖ chunk), equal at both
//!    │               │
//!    └─ Ledger: a tuple that was called before is refused
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_prss::{Prf, DomainTag};
//! use veil_session::Secret;
//! let prf = Prf::new(&Secret::new([7; 16]));
//! let mut a = [0; 20];
//! prf.stream(DomainTag::AND3, 0, 5, 1, &mut a);
//! assert_eq!(a[16..], prf.block(DomainTag::AND3, 0, 6, 1)[..4]); // the stream goes on with the next counter
//! ```
//!
//! # Promises
//!
//! - Equal tuples give equal blocks, for every holder of the key.
//!
//! # Limits
//!
//! - The function does not know whether a tuple was called before: the planner proves that no two calls overlap, and the [`Ledger`] is the
//!   alarm.

mod ledger;
mod permutation;
mod prf;

pub use ledger::{Ledger, Reuse};
pub use permutation::{PERMUTATION_BLOCKS, permutation_by, permutation_counters};
pub use prf::{DomainTag, Prf};
