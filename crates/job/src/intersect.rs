//! Rows of two parties that meet where their keys are equal.

use std::collections::HashSet;

use veil_circuit::generate::equal;
use veil_circuit::{Builder, Circuit, Per};
use veil_math::Ring;
use veil_session::PartyId;

use crate::{Assumption, Guarantee, Holder, JobSpec, Order};

/// Bytes of a key: a digest of what names a row.
pub const KEY_BYTES: usize = 32;

/// The circuit of jobs whose rows [meet](Order::Intersected): whether the key of one port, of 256 bits, is that of the other.
pub fn equality(ports: [&str; 2], output: &str) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let bits = 8 * KEY_BYTES as u32;
    let [x, y] = ports.map(|port| b.input(port, bits, Per::Row));
    let same = equal(&mut b, &x, &y);
    b.output(output, &[same]);
    b.finish().expect("gates in their order")
}

/// The one block of a job whose rows meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intersection {
    /// Keys of each party, at most: shorter lists are filled up with keys that no row has.
    pub keys: [u64; 2],
    /// Who learns which of its keys the other party has too.
    pub result: PartyId,
}

impl Intersection {
    /// Keys of one of the two parties.
    ///
    /// # Panics
    /// If the party is none of two.
    pub const fn keys(&self, of: PartyId) -> u64 {
        self.keys[of.index()]
    }

    /// What the two lists give, the first party's first: of each key of the party that learns it a bit, 1 if the other list has the key.
    pub fn common(&self, [first, second]: [&[u8]; 2]) -> Vec<u8> {
        let (own, others) = if self.result == PartyId::TWO[0] {
            (first, second)
        } else {
            (second, first)
        };
        let others: HashSet<&[u8]> = others.chunks_exact(KEY_BYTES).collect();
        let mut bits = vec![0; (own.len() / KEY_BYTES).div_ceil(8)];
        for (at, key) in own.chunks_exact(KEY_BYTES).enumerate() {
            bits[at / 8] |= u8::from(others.contains(key)) << (at % 8);
        }
        bits
    }

    /// Keys that the party which learns the result can ask for, at most, if it is malicious: what it sends has room for more equations than it has keys. The
    /// bound is of 2^80 hashes that it computes while the run waits for it (`docs/protocol-psi.md`).
    pub const fn most_keys_asked(&self) -> u64 {
        let keys = self.keys(self.result);
        if keys < LONG_LIST {
            4 * keys + 96
        } else if keys < LONGER_LIST {
            3 * keys
        } else {
            (8 * keys).div_ceil(3)
        }
    }
}

/// Keys of lists whose encodings take hardly more room for each than those of longer ones.
const LONG_LIST: u64 = 1 << 14;
const LONGER_LIST: u64 = 1 << 18;

impl JobSpec {
    /// What meets, in a job whose rows do.
    pub fn intersection(&self) -> Option<Intersection> {
        self.blocks.iter().find_map(|block| match block.order {
            Order::Intersected { keys, result } => Some(Intersection { keys, result }),
            _ => None,
        })
    }

    /// What a run of the job may rest on beyond what every run rests on. Keys meet by a vector of products, whatever the job says.
    pub fn assumptions(&self) -> &'static [Assumption] {
        match self.intersection() {
            Some(_) => &[Assumption::RegularLpn],
            None => self.security.assumptions(),
        }
    }

    /// The guarantee of a run of the job with all parties.
    pub fn guarantee(&self) -> Guarantee {
        Guarantee::of(self.security).resting_on(self.assumptions())
    }

    /// Whether a job whose rows meet is what it says it is: one block of two parties, each with a port, of which one learns which of its rows meet another
    /// one.
    pub fn is_intersection(&self) -> bool {
        let Some(Intersection { keys, result }) = self.intersection() else {
            return false;
        };
        let [block] = &self.blocks[..] else {
            return false;
        };
        let [a, b] = &self.circuit.inputs[..] else {
            return false;
        };
        let [output] = &self.circuit.outputs[..] else {
            return false;
        };
        let holders = PartyId::TWO.map(Holder::Party);
        self.parties.len() == PartyId::TWO.len()
            && result.index() < PartyId::TWO.len()
            && self.owners.is_empty()
            && self.recipients.is_empty()
            && keys.iter().all(|count| *count > 0)
            && block.rows == keys[result.index()]
            && block.holders == holders
            && block.stored.is_none()
            && self.audiences == [crate::Audience::Party(result)]
            && self.totals.is_none()
            && self.keep.is_none()
            && self.circuit == equality([&a.name, &b.name], &output.name)
    }
}
