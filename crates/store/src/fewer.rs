//! Shares of four parties as shares of three of them, when the fourth is out.
//!
//! A value is u_0 + u_1 + u_2 + u_3, and party i has all but u_i. Without party q, the component u_q is known to all other parties, r_0 <
//! r_1 < r_2. Of three parties, party j and party j + 1 have component w_j: it is u_c of the third one, c = r_{j+2}, which neither lacks.
//! To w_0 both of its holders add u_q. So every party converts its own shares, without a message.

use std::sync::Arc;

use veil_job::{DataError, ShareSource, Slice};
use veil_math::Ring;
use veil_session::PartyId;
use zeroize::Zeroizing;

/// Loads the shares of one of three parties from its shares of four.
pub(crate) struct Fewer {
    ring: Ring,
    four: Arc<dyn ShareSource>,
    /// Parts of the shares of four whose sum each part of the share of three is.
    parts: [Vec<u8>; 2],
}

impl Fewer {
    /// Of party `me` of four, whose shares over `ring` `four` loads, without `dropped`.
    ///
    /// # Panics
    /// If `me` is dropped.
    pub(crate) fn new(
        ring: Ring,
        four: Arc<dyn ShareSource>,
        me: PartyId,
        dropped: PartyId,
    ) -> Self {
        let left: Vec<PartyId> = PartyId::FOUR
            .into_iter()
            .filter(|party| *party != dropped)
            .collect();
        let mine = left.iter().position(|party| *party == me);
        let mine = mine.expect("a party that is out finishes nothing");
        let part = |component: PartyId| ((component.index() + 3 - me.index()) % 4) as u8;
        let parts = [0, 1].map(|own| {
            let component = (mine + 3 - own) % 3;
            let mut parts = vec![part(left[(component + 2) % 3])];
            if component == 0 {
                parts.push(part(dropped));
            }
            parts
        });
        Fewer { ring, four, parts }
    }
}

impl ShareSource for Fewer {
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let parts = self.parts.get(usize::from(component));
        let parts = parts.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        let mut others = parts.iter();
        let first = others.next().expect("a component is some component");
        self.four.load(port, *first, slice, into)?;
        for part in others {
            let mut more = Zeroizing::new(vec![0; into.len()]);
            self.four.load(port, *part, slice, &mut more)?;
            add(self.ring, into, &more);
        }
        Ok(())
    }
}

/// Adds packed elements.
fn add(ring: Ring, into: &mut [u8], more: &[u8]) {
    match ring {
        Ring::Bits => into.iter_mut().zip(more).for_each(|(a, b)| *a ^= b),
        Ring::Z32 => each(into, more, |a, b| {
            u32::from_le_bytes(a)
                .wrapping_add(u32::from_le_bytes(b))
                .to_le_bytes()
        }),
        Ring::Z64 => each(into, more, |a, b| {
            u64::from_le_bytes(a)
                .wrapping_add(u64::from_le_bytes(b))
                .to_le_bytes()
        }),
        Ring::Z128 => each(into, more, |a, b| {
            u128::from_le_bytes(a)
                .wrapping_add(u128::from_le_bytes(b))
                .to_le_bytes()
        }),
    }
}

fn each<const N: usize>(into: &mut [u8], more: &[u8], add: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (into, _) = into.as_chunks_mut::<N>();
    let (more, _) = more.as_chunks::<N>();
    into.iter_mut()
        .zip(more)
        .for_each(|(a, b)| *a = add(*a, *b));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of one row of one port: components in the order of the party's parts.
    struct Held(Vec<u128>);

    impl ShareSource for Held {
        fn load(&self, _: usize, part: u8, _: Slice, into: &mut [u8]) -> Result<(), DataError> {
            let bytes = self.0[usize::from(part)].to_le_bytes();
            into.copy_from_slice(&bytes[..into.len()]);
            Ok(())
        }
    }

    #[test]
    fn three_of_four_have_the_same_value_and_agree_on_its_components() {
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        let high = u128::MAX / 7;
        for ring in Ring::ALL {
            let u = [high, high * 3, high * 5 + 1, 11].map(|u| ring.reduce(u));
            let value = u.into_iter().fold(0, |sum, u| ring.add(sum, u));
            for dropped in PartyId::FOUR {
                let left: Vec<PartyId> = PartyId::FOUR
                    .into_iter()
                    .filter(|party| *party != dropped)
                    .collect();
                let loaded: Vec<[u128; 2]> = left
                    .iter()
                    .map(|me| {
                        let held = (1..4).map(|by| u[(me.index() + by) % 4]).collect();
                        let four = Arc::new(Held(held));
                        let three = Fewer::new(ring, four, *me, dropped);
                        [0, 1].map(|part| {
                            let mut bytes = [0; 16];
                            let own = &mut bytes[..ring.bytes(1) as usize];
                            three.load(0, part, slice, own).expect("it is there");
                            assert!(three.load(0, 2, slice, &mut []).is_err());
                            u128::from_le_bytes(bytes)
                        })
                    })
                    .collect();
                let mut sum = 0;
                for party in 0..3 {
                    // Party i has components i and i − 1.
                    assert_eq!(loaded[party][1], loaded[(party + 2) % 3][0]);
                    sum = ring.add(sum, loaded[party][0]);
                }
                assert_eq!(sum, value, "{ring:?} without {dropped:?}");
            }
        }
    }
}
