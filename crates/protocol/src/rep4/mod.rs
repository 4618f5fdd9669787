//! Four-party replicated sharing with joint messages, secure against one malicious party with abort, or one semi-honest party.
//!
//! Functionality: the arithmetic black box over Z_2, Z_2^64 or Z_2^128: input, linear gates, products, sums, opening.
//!
//! Model: four parties, at most one corrupt; keys of three parties and of pairs; encrypted, authenticated links. Every message of a product
//! is computed by a second party, too, which vouches for it: the receiver checks it in the same round, before anything that depends on it
//! leaves (rule R1). Against a semi-honest party the same messages go without MACs.
//!
//! From: Dalskov, Escudero, Keller, "Fantastic Four: Honest-Majority Four-Party Secure Computation With Malicious Security", USENIX
//! Security 2021. Where we differ: checks are never deferred; who vouches sends an authentication code of Carter and Wegman, under a
//! key that the sender lacks, instead of a hash.
//!
//! `docs/protocol-rep4.md` tells it in full.

pub(crate) mod layers;
mod lifts;

use veil_device::KeyId;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::PartyId;

use crate::replicated::{Component, Products, Scheme};

/// Keys of the parts: that of part k is held by every party that holds the component.
const PART_KEYS: u16 = 3;

/// Against one party that does anything.
pub(crate) static SCHEME: Scheme = scheme(
    "malicious with abort: private and correct against any one party, whatever it does; it can make the job stop",
    layers::products::<true>(),
);

/// The same, in a job that three parties finish when the fourth is lost.
pub(crate) static GUARANTEED: Scheme = scheme(
    "malicious: private and correct against any one party, whatever it does; if one is lost, the others finish without it",
    layers::products::<true>(),
);

/// Against one party that follows the protocol.
pub(crate) static SEMI_HONEST: Scheme = scheme(
    "semi-honest: private against any one party that follows the protocol; products are not checked, inputs and openings are cross-checked",
    layers::products::<false>(),
);

const fn scheme(guarantee: &'static str, products: Products) -> Scheme {
    Scheme {
        name: "rep4",
        guarantee,
        parties: &PartyId::FOUR,
        parts: &[1, 2, 3],
        lacks: 0,
        input: DomainTag::input4,
        share: DomainTag::SHARE4,
        random: DomainTag::RAND4,
        constants,
        keys: PART_KEYS + 3,
        pair_keys,
        dealt: true,
        products,
    }
}

/// Component u_0, which party 0 lacks.
fn constants(_: Ring, me: PartyId) -> u8 {
    SCHEME.part_of(me, Component(0)).map_or(0, |part| 1 << part)
}

/// The key of a pair, for MACs that one of them sends and the other checks.
pub(crate) fn pair_key(me: PartyId, other: PartyId) -> KeyId {
    let by = (other.index() + 4 - me.index()) % 4;
    KeyId(PART_KEYS + by as u16 - 1)
}

fn pair_keys(me: PartyId, other: PartyId) -> Vec<(&'static str, KeyId)> {
    vec![("code", pair_key(me, other))]
}
