//! Sessions: parties, owners and recipients, frames, steps, the plan hash, the key schedule.
//!
//! A [`SessionId`] is one run of one plan. A [`Channel`] names a message of the run: part of the batch ([`Frame`]), round ([`StepId`]) and
//! message of the round. A [`KeySchedule`] derives a key for exactly one purpose from the secret of two participants. This crate depends on
//! no other crate of the workspace and does no I/O.
//!
//! ```text
//! TLS exporter ‖ X25519 secret ─► PairSecret ─┐
//! handshake of all participants ─► SessionId ─┴─► KeySchedule ─ derive(Label) ─► Secret
//! plan ─► PlanHash                                              confirm(Label) ─► tag, sent to the peer
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_session::PartyId;
//! let me = PartyId::new(2).expect("there is one");
//! assert_eq!(me.after(1, 3), PartyId::new(0).unwrap());
//! ```
//!
//! # Promises
//!
//! - Every part of the tuple of session, secrets, participants and label changes the key; a confirmation tells nothing of any key.
//! - A [`Secret`] and a [`PairSecret`] are wiped on drop and never printed.
//!
//! # Limits
//!
//! - A session id is as fresh as its maker makes it: the engine takes it from the handshake.

mod ids;
mod keys;
mod wipe;

pub use ids::{Channel, Frame, PartyId, Peer, PlanHash, SessionId, StepId};
pub use keys::{KeySchedule, Label, PairSecret, Secret};
pub use wipe::{Wiped, wipe};
