//! The hash of `Op::Mac`, 64 blocks at a time where the CPU multiplies polynomials in vectors: 512 bits at a time, or 256.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use veil_prss::Prf;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Isa;
use crate::mac::{BLOCK, Hash, hash_key, length_block};

/// Blocks that are multiplied side by side, before one reduction: 16 vectors. With fewer, each reduction waits for the one before.
const GROUP: usize = 64;

/// A key of the hash, and its powers. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct MacKey {
    key: [u8; BLOCK],
    /// key^64, key^63, …, key^1, as POLYVAL multiplies; of use to the wide kernel alone.
    powers: [[u8; BLOCK]; GROUP],
}

impl MacKey {
    pub(super) fn new(isa: Isa, prf: &Prf) -> Self {
        MacKey::of(isa, &hash_key(prf))
    }

    /// The key itself.
    pub(super) fn of(isa: Isa, key: &[u8; BLOCK]) -> Self {
        let key = *key;
        let mut powers = [key; GROUP];
        #[cfg(target_arch = "x86_64")]
        if wide::is_there(isa) {
            for k in (0..GROUP - 1).rev() {
                // SAFETY: a device with these vectors was asked for on a machine that has them.
                powers[k] = unsafe { wide::times(powers[k + 1], key) };
            }
        }
        MacKey { key, powers }
    }

    /// POLYVAL of whole blocks, without their number.
    pub(super) fn blocks(&self, isa: Isa, blocks: &[u8]) -> Zeroizing<[u8; BLOCK]> {
        #[cfg(target_arch = "x86_64")]
        if wide::is_there(isa) {
            // SAFETY: as in `of`.
            return Zeroizing::new(unsafe { wide::update(isa, &self.powers, [0; BLOCK], blocks) });
        }
        let mut state = Polyval::new(&self.key.into());
        state.update_padded(blocks);
        Zeroizing::new(state.finalize().into())
    }

    /// POLYVAL of more whole blocks, of which the first is changed, behind those that gave `state`.
    pub(super) fn go_on(
        &self,
        isa: Isa,
        state: &[u8; BLOCK],
        blocks: &mut [u8],
    ) -> Zeroizing<[u8; BLOCK]> {
        blocks.iter_mut().zip(state).for_each(|(a, b)| *a ^= b);
        self.blocks(isa, blocks)
    }

    /// The hash of the sources, which `isa` has the instructions for.
    pub(super) fn hash<'a>(
        &self,
        isa: Isa,
        sources: impl Iterator<Item = &'a [u8]>,
    ) -> Zeroizing<[u8; BLOCK]> {
        #[cfg(target_arch = "x86_64")]
        if wide::is_there(isa) {
            let (mut state, mut bytes) = ([0; BLOCK], 0);
            for source in sources {
                // SAFETY: as in `of`.
                state = unsafe { wide::update(isa, &self.powers, state, source) };
                bytes += source.len() as u64;
            }
            // SAFETY: as in `of`.
            let last = unsafe { wide::update(isa, &self.powers, state, &length_block(bytes)) };
            return Zeroizing::new(last);
        }
        let mut hash = Hash::new(&self.key);
        sources.for_each(|source| hash.source(source));
        Zeroizing::new(hash.finish())
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod wide;
#[cfg(target_arch = "x86_64")]
pub(super) use wide::{reduce, reduce_lanes};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veil_session::Secret;

    use super::*;

    /// RFC 8452, appendix A.
    #[test]
    fn standard_vector() {
        let bytes = |hex: u128| hex.to_be_bytes();
        let mut state =
            polyval::Polyval::new(&bytes(0x2562_9347_5892_4276_1d31_f826_ba4b_757b).into());
        state.update_padded(&bytes(0x4f4f_9566_8c83_dfb6_4017_62bb_2d01_a262));
        state.update_padded(&bytes(0xd1a2_4ddd_2721_d006_bbe4_5f20_d3c9_f362));
        let want = bytes(0xf7a3_b47b_8461_19fa_e5b7_866c_f5e5_b77e);
        assert_eq!(<[u8; 16]>::from(state.finalize()), want);
    }

    proptest! {
        #[test]
        fn every_instruction_set_hashes_alike(
            key: [u8; 16],
            sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2500), 0..5),
        ) {
            let prf = Prf::new(&Secret::new(key));
            let mut want = Hash::new(&hash_key(&prf));
            for source in &sources {
                want.source(source);
            }
            let want = want.finish();
            for isa in Isa::available() {
                let got = MacKey::new(isa, &prf).hash(isa, sources.iter().map(|s| &s[..]));
                prop_assert_eq!(*got, want, "{:?}", isa);
            }
        }
    }
}
