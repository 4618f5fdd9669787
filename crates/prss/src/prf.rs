//! block = AES-128_K( BE16(tag) ‖ BE16(lane) ‖ BE64(ctr) ‖ BE32(j) ).
//!
//! A block cipher under one key is a good PRF up to 2^40 blocks here (PRP/PRF switching: 2^80 / 2^129 = 2^-49); keys change
//! with every run and epoch, and a plan that would need more is refused.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use veil_session::Secret;

/// The domain tag of a PRF call, which says its purpose: family in the high byte, sub-use in the low one. Two purposes never share a tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DomainTag(pub u16);

impl DomainTag {
    /// Masks of bit products in three-party replicated sharing.
    pub const AND3: DomainTag = DomainTag(0x0100);
    /// Masks of ring products in three-party replicated sharing.
    pub const MUL3: DomainTag = DomainTag(0x0200);
    /// An outside owner's shares, drawn from the seeds it chose.
    pub const SHARE3: DomainTag = DomainTag(0x0400);
    /// Random shared values.
    pub const RAND3: DomainTag = DomainTag(0x0500);
    /// Masks of sums of ring products over rows.
    pub const SUM3: DomainTag = DomainTag(0x0600);

    /// An outside owner's shares for four parties, drawn from the seeds it chose.
    pub const SHARE4: DomainTag = DomainTag(0x0c00);
    /// Random values shared by four parties.
    pub const RAND4: DomainTag = DomainTag(0x0d00);
    /// The key of a universal hash: one block for each key of two participants that compare what they have.
    pub const MAC_KEY: DomainTag = DomainTag(0x0700);

    /// The mask of an input by computing party `party` of three.
    pub const fn input3(party: u8) -> DomainTag {
        DomainTag(0x0300 | party as u16)
    }

    /// The mask of an input by computing party `party` of four.
    pub const fn input4(party: u8) -> DomainTag {
        DomainTag(0x0b00 | party as u16)
    }

    /// Masks of joint message `joint` of products in four-party replicated sharing.
    pub const fn joint4(joint: u8) -> DomainTag {
        DomainTag(0x0800 | joint as u16)
    }

    /// Masks of joint message `joint` of sums of products over rows.
    pub const fn sum4(joint: u8) -> DomainTag {
        DomainTag(0x0900 | joint as u16)
    }

    /// The share that one verifier has, by a common key, of the proof of party `prover` of three that its products of bits are right.
    pub const fn dzkp_share(prover: u8) -> DomainTag {
        DomainTag(0x1000 | prover as u16)
    }

    /// The mask of that half of the proof's vectors which the verifier after the prover has.
    pub const fn dzkp_p_mask(prover: u8) -> DomainTag {
        DomainTag(0x1100 | prover as u16)
    }

    /// The mask of the other half.
    pub const fn dzkp_q_mask(prover: u8) -> DomainTag {
        DomainTag(0x1200 | prover as u16)
    }

    /// Challenges of both verifiers to the prover.
    pub const fn dzkp_challenge(prover: u8) -> DomainTag {
        DomainTag(0x1300 | prover as u16)
    }

    /// The seed of the weights of a proof, by both verifiers for the prover.
    pub const fn dzkp_seed(prover: u8) -> DomainTag {
        DomainTag(0x1c00 | prover as u16)
    }

    /// Weights of a proof, under its seed.
    pub const DZKP_THETA: DomainTag = DomainTag(0x1d00);

    /// Keys of the words of rows that move, under the seed of the proof that they did.
    pub const DZKP_WORDS: DomainTag = DomainTag(0x1e00);

    /// Weights of rows, under the same seed: of both messages that the proof is about.
    pub const fn dzkp_rows(place: u8) -> DomainTag {
        DomainTag(0x1e10 | place as u16)
    }

    /// The key that the MACs of integers are products with, once in a chunk.
    pub const MAC_KEY3: DomainTag = DomainTag(0x1400);
    /// Weights of pairs of values and MACs in a check: of rows, and of sums.
    pub const WEIGHT3: DomainTag = DomainTag(0x1401);
    /// See [`DomainTag::WEIGHT3`].
    pub const SUM_WEIGHT3: DomainTag = DomainTag(0x1402);
    /// Masks of the products of a check.
    pub const CHECK3: DomainTag = DomainTag(0x1403);
    /// Masks of the MACs of job-wide values.
    pub const MAC3: DomainTag = DomainTag(0x1404);

    /// The start point of the hash of a garbled circuit, one for each chunk.
    pub const GARBLE: DomainTag = DomainTag(0x1500);
    /// Dice of a garbled circuit, by the garbler alone.
    pub const DICE: DomainTag = DomainTag(0x1501);

    /// What lifts of bits draw among three parties: 0 is a component of the XOR of two components; 1 and 2 mask what is sent of the product with the
    /// third.
    pub const fn lift3(mask: u8) -> DomainTag {
        DomainTag(0x0e00 | mask as u16)
    }

    /// Masks of joint message `joint` of lifts of bits among four parties.
    pub const fn lift4(joint: u8) -> DomainTag {
        DomainTag(0x0f00 | joint as u16)
    }

    /// What truncations of integers draw among three parties: 0 is the mask that two of them draw; 1, 2 and 3 hide its highest bit and that of the sum; 4 is a
    /// component of the result, and 5 one of the sum's lowest bits.
    pub const fn truncate3(mask: u8) -> DomainTag {
        DomainTag(0x1b00 | mask as u16)
    }

    /// The factor of a permutation that the two parties with component `component` of three draw.
    pub const fn perm3(component: u8) -> DomainTag {
        DomainTag(0x1700 | component as u16)
    }

    /// What moves of rows among three parties draw: 0 and 1 mask what is sent first, 2 and 3 are components of what moved, 4 hides a permutation from
    /// the party that lacks it where what moved is opened. Where messages are proved, 5 and 6 mask those of the two that know a factor.
    pub const fn move3(mask: u8) -> DomainTag {
        DomainTag(0x1800 | mask as u16)
    }

    /// The factor of a permutation that all parties but `outsider` of four draw.
    pub const fn perm4(outsider: u8) -> DomainTag {
        DomainTag(0x1900 | outsider as u16)
    }

    /// Masks of component `component` in moves of rows among four parties.
    pub const fn move4(component: u8) -> DomainTag {
        DomainTag(0x1a00 | component as u16)
    }

    /// Nodes of a tree of keys for oblivious transfer, below the node that is the key: counter is the side, lane the tree, j the level.
    pub const OT_NODE: DomainTag = DomainTag(0x2000);
    /// The check values that all but one leaf of a tree are right; the leaf is the key.
    pub const OT_PUNCTURE: DomainTag = DomainTag(0x2001);
    /// The strings that transfers stretch the leaves of trees to.
    pub const OT_LEAF: DomainTag = DomainTag(0x2002);
    /// The start point of the hash that makes keys of labels.
    pub const OT_KEYS: DomainTag = DomainTag(0x2003);
    /// The challenge of a check, by the sender alone.
    pub const OT_COIN: DomainTag = DomainTag(0x2004);
    /// Silent transfers: roots of trees of leaves, by the sender alone, one for each tree;
    pub const OT_ROOT: DomainTag = DomainTag(0x2005);
    /// start points of the hash in these trees, by both, one for each tree;
    pub const OT_TREE: DomainTag = DomainTag(0x2006);
    /// rows of the public code, by both;
    pub const OT_ROWS: DomainTag = DomainTag(0x2007);
    /// choices of the transfers that the first trees begin with, by the receiver alone;
    pub const OT_BASE: DomainTag = DomainTag(0x2008);
    /// The same of rounds over blocks: roots of trees,
    pub const VOLE_ROOT: DomainTag = DomainTag(0x2009);
    /// start points of the hash in these trees,
    pub const VOLE_TREE: DomainTag = DomainTag(0x200a);
    /// start points of the hash that their leaves go through,
    pub const VOLE_LEAF: DomainTag = DomainTag(0x200b);
    /// and rows.
    pub const VOLE_ROWS: DomainTag = DomainTag(0x200c);
    /// Intersections of keys of two: the salt of digests, by both;
    pub const PSI_SALT: DomainTag = DomainTag(0x2100);
    /// seeds and columns of what the receiver encodes, by it alone;
    pub const PSI_ENCODE: DomainTag = DomainTag(0x2101);
    /// coins, and what hides the sender's, by each party alone.
    pub const PSI_COIN: DomainTag = DomainTag(0x2102);
    /// The evaluator's share of what an outside owner supplies to a garbled circuit.
    pub const SHARE2: DomainTag = DomainTag(0x1510);
    /// Active labels of what the garbler supplies, by both.
    pub const ACTIVE: DomainTag = DomainTag(0x1511);

    /// The start point of the hash of leaky products, one for each chunk, by both.
    pub const AG_LEAKY: DomainTag = DomainTag(0x1512);
    /// Authenticated garbling, by each party alone: its parts of authenticated bits;
    pub const AG_PARTS: DomainTag = DomainTag(0x1513);
    /// challenges of openings;
    pub const AG_CHALLENGE: DomainTag = DomainTag(0x1514);
    /// coins;
    pub const AG_COIN: DomainTag = DomainTag(0x1515);
    /// what hides commitments.
    pub const AG_NONCE: DomainTag = DomainTag(0x1516);

    /// Cut-and-choose, by each party alone: seeds of circuits;
    pub const CUT_SEED: DomainTag = DomainTag(0x1600);
    /// what hides commitments to seeds and to coins;
    pub const CUT_NONCE: DomainTag = DomainTag(0x1601);
    /// what hides commitments to active labels;
    pub const CUT_ACTIVE: DomainTag = DomainTag(0x1602);
    /// what hides the sum over the garbler's inputs;
    pub const CUT_HIDING: DomainTag = DomainTag(0x1603);
    /// a coin;
    pub const CUT_COIN: DomainTag = DomainTag(0x1604);
    /// the key of the sum over the garbler's inputs;
    pub const CUT_MATRIX: DomainTag = DomainTag(0x1605);
    /// the free bits of the encoding of the evaluator's inputs.
    pub const CUT_ENCODING: DomainTag = DomainTag(0x1606);

    /// The mask of the MAC by which a third party vouches for joint message `joint` of a layer.
    pub const fn mac4(joint: u8) -> DomainTag {
        DomainTag(0x0a00 | joint as u16)
    }
}

/// The pseudorandom function under one key. The key schedule is wiped on drop by the `aes` crate.
pub struct Prf(Aes128);

impl Prf {
    /// Expands `key`.
    pub fn new(key: &Secret) -> Self {
        Prf(Aes128::new(key.expose().into()))
    }

    /// The block of one tuple.
    pub fn block(&self, tag: DomainTag, lane: u16, ctr: u64, j: u32) -> [u8; 16] {
        let mut block = Self::input(tag, lane, ctr, j).into();
        self.0.encrypt_block(&mut block);
        block.into()
    }

    /// The concatenated blocks of `ctr`, `ctr + 1`, …, cut to the length of `out`.
    pub fn stream(&self, tag: DomainTag, lane: u16, ctr: u64, j: u32, out: &mut [u8]) {
        for (k, piece) in out.chunks_mut(16).enumerate() {
            piece.copy_from_slice(&self.block(tag, lane, ctr + k as u64, j)[..piece.len()]);
        }
    }

    /// The cipher's input for a tuple.
    pub const fn input(tag: DomainTag, lane: u16, ctr: u64, j: u32) -> [u8; 16] {
        let t = tag.0.to_be_bytes();
        let l = lane.to_be_bytes();
        let c = ctr.to_be_bytes();
        let j = j.to_be_bytes();
        [
            t[0], t[1], l[0], l[1], c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], j[0], j[1],
            j[2], j[3],
        ]
    }
}

impl std::fmt::Debug for Prf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prf(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS-197, appendix C.1, read as a tuple.
    #[test]
    fn standard_vector() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let prf = Prf::new(&Secret::new(key));
        let block = prf.block(
            DomainTag(0x0011),
            0x2233,
            0x4455_6677_8899_aabb,
            0xccdd_eeff,
        );
        let want = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
        assert_eq!(block, want);
    }
}
