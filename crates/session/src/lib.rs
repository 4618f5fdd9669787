//! Who takes part and where we are: parties, frames, steps, the plan hash, the key schedule, the handshake.
//!
//! Depends on nothing of ours and does no I/O. A message of a run is named by a [`Channel`]; a key is derived
//! for exactly one purpose by a [`KeySchedule`].
//!
//! ```
//! use veil_session::PartyId;
//! let me = PartyId::new(2).expect("there is one");
//! assert_eq!(me.after(1, 3), PartyId::new(0).unwrap());
//! ```

mod ids;
mod keys;

pub use ids::{Channel, Frame, PartyId, Peer, PlanHash, SessionId, StepId};
pub use keys::{KeySchedule, Label, PairSecret, Secret};
