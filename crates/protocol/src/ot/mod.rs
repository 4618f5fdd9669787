//! Oblivious transfer between two parties, secure against either of them.
//!
//! - [`base`]: 128 transfers of keys by elliptic curves (Masny, Rindal, "Endemic Oblivious Transfer", 2019), once per session.
//! - [`trees`]: from these, trees of keys of which the sender lacks one leaf each, and the check that they are right (Roy,
//!   "SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension", 2022). [`SenderSetUp`] and [`ReceiverSetUp`] are both
//!   steps as machines: messages in and out as bytes of fixed length, no I/O.
//!
//! - [`reversal`]: reverses transfers, from one direction to the other. So the same two ends have transfers of both directions after one set of
//!   curves ([`ReceiverSetUp::finish_and_turn`], [`SenderTrees::finish_and_grow`]); and [`cache`] holds transfers for their next session, which
//!   then needs no curves.
//!
//! - [`extension`]: many transfers from the leaves of the trees. [`silent`]: many more from these, for fewer bits, by an assumption about noisy codes.
//! - [`vole`]: products of random blocks with the sender's offset, from correlations.
//! - [`transfer`]: random, correlated and chosen transfers.
//!
//! Roles are named after the final transfers: the *receiver* chooses, the *sender* does not learn the choice. In the base transfers, and
//! only there, they change places.
//!
//! ```
//! use veil_device::Trees;
//! use veil_protocol::ot::{Ends, Pins, ReceiverSetUp, SenderSetUp};
//! use veil_session::{PartyId, Peer, SessionId};
//! let ends = Ends {
//!     session: SessionId([7; 32]),
//!     sender: Peer::Party(PartyId::new(0).unwrap()),
//!     receiver: Peer::Party(PartyId::new(1).unwrap()),
//! };
//! // Never do this outside of an example: randomness is the operating system's.
//! let mut seed = 0u64;
//! let mut random = |bytes: &mut [u8]| {
//!     bytes.iter_mut().for_each(|b| { seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1); *b = (seed >> 56) as u8; });
//!     Ok::<(), std::convert::Infallible>(())
//! };
//! let trees = Trees::default();
//! let (sender, to_receiver) = SenderSetUp::start(&ends, trees, Pins::default(), &mut random).unwrap();
//! let (receiver, to_sender) = ReceiverSetUp::start(&ends, trees, &mut random).unwrap();
//! // Both messages cross; then the receiver sends one more.
//! assert_eq!((to_receiver.len(), to_sender.len()), (ReceiverSetUp::EXPECTS, SenderSetUp::EXPECTS));
//! let (message, all) = receiver.finish(&to_receiver).unwrap();
//! let sender = sender.base(&to_sender).unwrap();
//! assert_eq!(message.len(), sender.expects());
//! let (offset, some) = sender.finish(&message).unwrap();
//! assert_eq!((all.len(), some.len()), (512, 480));
//! assert_eq!(offset.expose()[0] & 1, 1);
//! // What the sender calls leaf y of a tree, the receiver calls leaf y XOR the tree's bits of the offset.
//! let lacking = u16::from(offset.expose()[0] & 15);
//! assert_eq!(some[4].0, 5);
//! assert_eq!(some[4].1.expose(), all[usize::from(5 ^ lacking)].1.expose());
//! ```

pub mod base;
pub mod cache;
pub(crate) mod correlations;
pub mod extension;
mod fuzz;
mod hash;
mod pins;
pub mod reversal;
mod set_up;
pub mod silent;
pub mod transfer;
pub mod trees;
pub mod vole;

#[doc(hidden)]
pub use fuzz::fuzz_set_up;
pub use hash::Ends;
pub use pins::Pins;
pub use set_up::{Random, ReceiverSetUp, SenderSetUp, SenderTrees, secrets};

/// Number of a leaf among the leaves of all trees ([`Trees::index`](veil_device::Trees::index)), and the leaf.
pub type Leaf = (u16, veil_session::Secret);

/// The end of a set-up at the sender: the offset Δ, and all leaves but one of each tree.
pub type Punctured = (veil_session::Secret, Vec<Leaf>);

/// The end of a set-up at the receiver: its message with the trees, and all leaves.
pub type Whole = (Vec<u8>, Vec<Leaf>);

/// The other end of a set-up did not follow the protocol. The session is over: the other end may have guessed bits of the offset, so no key
/// of this set-up is used for anything (rule R3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cheat {
    /// A message that is too short or too long.
    #[error("{}", self.what())]
    Length,
    /// A message of another session, of another pair, or of the other end.
    #[error("{}", self.what())]
    Stranger,
    /// Bytes that encode no point, encode it in another way than the standard's, or the identity.
    #[error("{}", self.what())]
    Point,
    /// A point that is there twice.
    #[error("{}", self.what())]
    Twice,
    /// Leaves that contradict each other, or another transfer than was answered.
    #[error("{}", self.what())]
    Trees,
    /// Corrections that turn transfers by different choices.
    #[error("{}", self.what())]
    Reversed,
}

impl Cheat {
    /// The other end's deviation, in words.
    pub const fn what(self) -> &'static str {
        match self {
            Cheat::Length => "sent a message of oblivious transfer of another length than agreed",
            Cheat::Stranger => {
                "sent a message of oblivious transfer that was not made for this session"
            }
            Cheat::Point => "sent bytes that are no point of the group, or its identity",
            Cheat::Twice => "sent the same point twice",
            Cheat::Trees => "sent trees of keys that do not agree with their check",
            Cheat::Reversed => "turned oblivious transfers around by different choices",
        }
    }
}
