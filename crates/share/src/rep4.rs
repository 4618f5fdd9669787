//! Four-party replicated sharing: v = u_0 + u_1 + u_2 + u_3, and party i holds every component but u_i.
//!
//! From: Dalskov, Escudero, Keller, "Fantastic Four: Honest-Majority Four-Party Secure Computation With Malicious Security", USENIX
//! Security 2021, section 3.

use veil_math::Ring;

use crate::Inconsistent;

/// Parties, and components of a value.
pub const PARTIES: usize = 4;

/// One party's share of a value: u_{i+1}, u_{i+2}, u_{i+3}, of which the last is u_{i-1}.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Share(pub [u128; PARTIES - 1]);

/// Where party `party` keeps component `component`; nothing if that is the one it lacks.
pub const fn part(party: usize, component: usize) -> Option<u8> {
    match (component + PARTIES - party) % PARTIES {
        0 => None,
        part => Some(part as u8 - 1),
    }
}

/// The component that part `part` of party `party` is.
pub const fn component(party: usize, part: u8) -> usize {
    (party + 1 + part as usize) % PARTIES
}

/// Splits `value` with three random elements.
pub fn split(ring: Ring, value: u128, random: [u128; 3]) -> [Share; PARTIES] {
    let [u0, u1, u2] = random.map(|r| ring.reduce(r));
    let known = [u0, u1, u2].into_iter();
    let u3 = known.fold(ring.reduce(value), |rest, u| ring.sub(rest, u));
    from_components([u0, u1, u2, u3])
}

/// The shares of given components.
pub fn from_components(u: [u128; PARTIES]) -> [Share; PARTIES] {
    std::array::from_fn(|party| Share(std::array::from_fn(|part| u[component(party, part as u8)])))
}

/// The value behind four shares, if every component is the same at its three holders.
///
/// # Errors
/// [`Inconsistent`] with the first component whose three holders differ.
pub fn join(ring: Ring, shares: [Share; PARTIES]) -> Result<u128, Inconsistent> {
    let mut sum = 0;
    for c in 0..PARTIES {
        let mut held = (0..PARTIES).filter_map(|i| Some(shares[i].0[usize::from(part(i, c)?)]));
        let first = held.next().expect("three parties hold a component");
        if held.any(|other| other != first) {
            return Err(Inconsistent { component: c });
        }
        sum = ring.add(sum, first);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rings() -> impl Strategy<Value = Ring> {
        prop_oneof![
            Just(Ring::Bits),
            Just(Ring::Z32),
            Just(Ring::Z64),
            Just(Ring::Z128)
        ]
    }

    proptest! {
        #[test]
        fn join_undoes_split(ring in rings(), v: u128, random: [u128; 3]) {
            prop_assert!(join(ring, split(ring, v, random)) == Ok(ring.reduce(v)));
        }

        #[test]
        fn sums_of_shares_share_the_sum(ring in rings(), v: [u128; 2], r: [[u128; 3]; 2]) {
            let (a, b) = (split(ring, v[0], r[0]), split(ring, v[1], r[1]));
            let sum = std::array::from_fn(|i| {
                Share(std::array::from_fn(|k| ring.add(a[i].0[k], b[i].0[k])))
            });
            prop_assert!(join(ring, sum) == Ok(ring.add(ring.reduce(v[0]), ring.reduce(v[1]))));
        }

        #[test]
        fn a_changed_copy_is_noticed(
            ring in rings(), v: u128, random: [u128; 3], i in 0usize..4, k in 0u8..3,
        ) {
            let mut shares = split(ring, v, random);
            let changed = &mut shares[i].0[usize::from(k)];
            *changed = ring.add(*changed, 1);
            let want = Inconsistent { component: component(i, k) };
            prop_assert!(join(ring, shares) == Err(want));
        }
    }

    #[test]
    fn parts_and_components_are_inverse() {
        for party in 0..PARTIES {
            assert_eq!(part(party, party), None);
            for k in 0..3 {
                assert_eq!(part(party, component(party, k)), Some(k));
            }
        }
    }

    /// All that one party sees of a bit is uniform whatever the bit: exhaustively.
    #[test]
    fn one_share_of_a_bit_tells_nothing() {
        for party in 0..PARTIES {
            let mut seen = [[0; 8]; 2];
            for v in 0..2u128 {
                for r in 0..8u128 {
                    let random = [r & 1, r >> 1 & 1, r >> 2];
                    let Share(s) = split(Ring::Bits, v, random)[party];
                    seen[v as usize][(s[0] * 4 + s[1] * 2 + s[2]) as usize] += 1;
                }
            }
            assert_eq!(seen, [[1; 8]; 2]);
        }
    }
}
