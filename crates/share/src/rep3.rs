//! Replicated sharing among three parties (Ito, Saito, Nishizeki 1987; Araki, Furukawa, Lindell, Nof, Ohara, CCS 2016).
//!
//! v = u_0 + u_1 + u_2 in the ring; party i holds (u_i, u_{i-1}). This is the CNF form. The (x, a) form in which Araki et al.
//! and Wolfe, Patel, Munafo, Varia, Herbordt (2020) write it is a change of basis, see [`to_pair_format`].

use veil_math::Ring;

use crate::Inconsistent;

/// One party's share of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// `u_i`.
    pub own: u128,
    /// `u_{i-1}`.
    pub previous: u128,
}

/// Splits `value` with two random elements.
pub fn split(ring: Ring, value: u128, random: [u128; 2]) -> [Share; 3] {
    let [u0, u1] = random.map(|r| ring.reduce(r));
    let u2 = ring.sub(ring.sub(ring.reduce(value), u0), u1);
    from_components([u0, u1, u2])
}

/// The shares of given components.
pub fn from_components(u: [u128; 3]) -> [Share; 3] {
    std::array::from_fn(|i| Share {
        own: u[i],
        previous: u[(i + 2) % 3],
    })
}

/// The value behind three shares, if every component is the same at both holders.
///
/// # Errors
/// [`Inconsistent`] with the first component whose two holders differ.
pub fn join(ring: Ring, shares: [Share; 3]) -> Result<u128, Inconsistent> {
    for (i, share) in shares.iter().enumerate() {
        if shares[(i + 1) % 3].previous != share.own {
            return Err(Inconsistent { component: i });
        }
    }
    Ok(shares.iter().fold(0, |sum, s| ring.add(sum, s.own)))
}

/// A share in the (x, a) form: x_0 + x_1 + x_2 = 0 and a_i = x_{i-1} - v.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PairShare {
    /// `x_i`.
    pub x: u128,
    /// `a_i`.
    pub a: u128,
}

/// From (u_i, u_{i-1}) to (x_i, a_i), at one party, without communication.
///
/// Bits: x_i = u_{i-1} ⊕ u_i, a_i = u_i, bit-exact with Wolfe et al. Rings: x_i = u_{i-1} - u_i, a_i = -2 u_{i-1} - u_i.
pub fn to_pair_format(ring: Ring, share: Share) -> PairShare {
    let Share { own, previous } = share;
    let x = ring.sub(previous, own);
    let a = match ring {
        Ring::Bits => own,
        Ring::Z32 | Ring::Z64 | Ring::Z128 => {
            ring.sub(ring.mul(previous, ring.reduce(2u128.wrapping_neg())), own)
        }
    };
    PairShare { x, a }
}

/// The inverse of [`to_pair_format`].
///
/// Bits: u_i = a_i, u_{i-1} = a_i ⊕ x_i. Rings: u_i = -(2 x_i + a_i) / 3, u_{i-1} = -(a_i - x_i) / 3; 3 is invertible modulo 2^k.
pub fn from_pair_format(ring: Ring, share: PairShare) -> Share {
    let PairShare { x, a } = share;
    match ring {
        Ring::Bits => Share {
            own: a,
            previous: a ^ x,
        },
        Ring::Z32 | Ring::Z64 | Ring::Z128 => {
            // 3 · 0xAA…AB = 1 modulo 2^k for every k, so -1/3 = 0x55…55.
            let minus_third = ring.reduce(0x5555_5555_5555_5555_5555_5555_5555_5555);
            Share {
                own: ring.mul(minus_third, ring.add(ring.mul(2, x), a)),
                previous: ring.mul(minus_third, ring.sub(a, x)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn join_undoes_split(ring in rings(), v: u128, random: [u128; 2]) {
            prop_assert!(join(ring, split(ring, v, random)) == Ok(ring.reduce(v)));
        }

        #[test]
        fn sums_of_shares_share_the_sum(ring in rings(), v: [u128; 2], r: [u128; 4]) {
            let (a, b) = (split(ring, v[0], [r[0], r[1]]), split(ring, v[1], [r[2], r[3]]));
            let sum = std::array::from_fn(|i| Share {
                own: ring.add(a[i].own, b[i].own),
                previous: ring.add(a[i].previous, b[i].previous),
            });
            prop_assert!(join(ring, sum) == Ok(ring.add(ring.reduce(v[0]), ring.reduce(v[1]))));
        }

        #[test]
        fn pair_format_is_a_change_of_basis(ring in rings(), v: u128, random: [u128; 2]) {
            let shares = split(ring, v, random);
            let pairs = shares.map(|s| to_pair_format(ring, s));
            prop_assert_eq!(pairs.iter().fold(0, |s, p| ring.add(s, p.x)), 0);
            for i in 0..3 {
                // The definition of the format, and how P_i opens: v = x_{i-1} - a_i.
                prop_assert_eq!(ring.sub(pairs[(i + 2) % 3].x, pairs[i].a), ring.reduce(v));
                prop_assert!(from_pair_format(ring, pairs[i]) == shares[i]);
            }
        }

        #[test]
        fn a_changed_copy_is_noticed(ring in rings(), v: u128, random: [u128; 2], i in 0usize..3) {
            let mut shares = split(ring, v, random);
            shares[i].previous = ring.add(shares[i].previous, 1);
            let want = Inconsistent { component: (i + 2) % 3 };
            prop_assert!(join(ring, shares) == Err(want));
        }
    }

    /// All that one party sees of a bit is uniform whatever the bit: exhaustively.
    #[test]
    fn one_share_of_a_bit_tells_nothing() {
        for party in 0..3 {
            let mut seen = [[0; 4]; 2];
            for v in 0..2u128 {
                for r in 0..4u128 {
                    let s = split(Ring::Bits, v, [r & 1, r >> 1])[party];
                    seen[v as usize][(s.own * 2 + s.previous) as usize] += 1;
                }
            }
            assert_eq!(seen, [[1; 4]; 2]);
        }
    }
}
