//! Three-party replicated sharing, secure against one semi-honest party.
//!
//! Functionality: the arithmetic black box over Z_2, Z_2^64 or Z_2^128: input, linear gates, products, sums, opening.
//!
//! Model: three parties, at most one corrupt and following the protocol; pairwise keys; encrypted, authenticated links. One message
//! per party and product, one round per layer.
//!
//! From: Araki, Furukawa, Lindell, Nof, Ohara, "High-Throughput Semi-Honest Secure Three-Party Computation with an Honest Majority",
//! CCS 2016 (proof: section 3 there). Where we differ: shares are in the CNF form (u_i, u_{i-1}), a change of basis (see `veil_share`);
//! bits use the product of Wolfe, Patel, Munafo, Varia, Herbordt, "Secret Sharing MPC on FPGAs in the Datacenter" (2020), whose message
//! is bit-exact with theirs; openings and outside owners' shares are cross-checked, beyond what semi-honest security needs.
//!
//! `docs/protocol-rep3.md` tells it in full.

mod check;
mod layers;
mod lifts;
mod proof;
mod truncations;

pub(crate) use check::CHECK_ELEMENTS;
pub use check::{CheckMessage, check_message};
pub(crate) use proof::{
    Moved, cost_of_rows, elements as proof_elements, longest as proof_longest, rounds_of_rows,
    sizes_of_rows,
};
pub use proof::{ProofMessage, proof_message};

use veil_device::KeyId;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::PartyId;

use crate::replicated::{Products, Scheme};

/// Component u_i.
pub const OWN: u8 = 0;
/// Component u_{i-1}.
pub const PREVIOUS: u8 = 1;

/// κ_i, shared with the next party.
pub const KEY_OWN: KeyId = KeyId(0);
/// κ_{i-1}, shared with the previous party.
pub const KEY_PREVIOUS: KeyId = KeyId(1);

pub(crate) static SCHEME: Scheme = Scheme {
    name: "rep3",
    guarantee: "semi-honest: private against any one party that follows the protocol; inputs of outside owners and openings are cross-checked",
    parties: &PartyId::THREE,
    parts: &[0, 2],
    lacks: 1,
    input: DomainTag::input3,
    share: DomainTag::SHARE3,
    random: DomainTag::RAND3,
    constants,
    keys: 2,
    pair_keys,
    dealt: false,
    products: Products {
        messages: 1,
        alternates: false,
        are_shares: true,
        macs: 0,
        layer: layers::round,
        cost: layers::cost,
        proof: None,
        check: None,
    },
};

/// The same, with a proof that products of bits are right, and a check of the MACs of products of integers, before anything that depends
/// on them is opened.
pub(crate) static MALICIOUS: Scheme = Scheme {
    guarantee: "malicious with abort: private and correct against any one party, whatever it does; it can make the job stop",
    products: Products {
        messages: 1,
        alternates: false,
        are_shares: true,
        macs: 0,
        layer: layers::traced_round,
        cost: layers::cost,
        proof: Some(proof::PROOF_OF),
        check: Some(check::CHECK_OF),
    },
    ..SCHEME
};

/// Of bits all three u_i (an odd number of flips is one), of rings u_0 only, which party 0 holds as its own and party 1 as its
/// previous.
fn constants(ring: Ring, me: PartyId) -> u8 {
    match (ring, me.index()) {
        (Ring::Bits, _) => 0b11,
        (Ring::Z32 | Ring::Z64 | Ring::Z128, 0) => 0b01,
        (Ring::Z32 | Ring::Z64 | Ring::Z128, 1) => 0b10,
        (Ring::Z32 | Ring::Z64 | Ring::Z128, _) => 0b00,
    }
}

fn pair_keys(me: PartyId, other: PartyId) -> Vec<(&'static str, KeyId)> {
    if other == SCHEME.next(me) {
        vec![("pair", KEY_OWN)]
    } else {
        vec![("pair", KEY_PREVIOUS)]
    }
}
