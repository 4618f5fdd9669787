//! Pseudorandom secret sharing: the function that parties with a common key draw from, the tuple that names each
//! draw, and the ledger that forbids drawing one twice (rule R4).
//!
//! For protocols and devices. This scalar version *defines* the function; devices compute the same bytes faster.
//!
//! ```
//! use veil_prss::{Prf, Use};
//! use veil_session::Secret;
//! let prf = Prf::new(&Secret::new([7; 16]));
//! let mut a = [0; 20];
//! prf.stream(Use::AND3, 0, 5, 1, &mut a);
//! assert_eq!(a[16..], prf.block(Use::AND3, 0, 6, 1)[..4]); // the stream goes on with the next counter
//! ```
//!
//! Promises: equal tuples give equal blocks, for everyone who holds the key. Does not promise that a tuple is drawn
//! once: that is the planner's proof, and the [`Ledger`]'s alarm.

mod ledger;
mod prf;

pub use ledger::{Ledger, Reuse};
pub use prf::{Prf, Use};
