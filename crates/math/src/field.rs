//! Prime fields of Mersenne primes, and polynomials given by their values at 0, 1, 2, ….

/// The field of integers modulo `2^BITS − 1`, which has to be prime.
///
/// An element is a `u64` below the prime. Nothing branches on the value of one.
///
/// ```
/// use veil_math::P61;
/// assert_eq!(P61::mul(P61::P - 1, P61::P - 1), 1);
/// // 1 + x^2 is 1, 2, 5 at 0, 1, 2, so it is 101 at 10.
/// let at_ten = P61::basis::<3>(10);
/// assert_eq!(P61::dot(&at_ten, &[1, 2, 5]), 101);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mersenne<const BITS: u32>;

/// The field of 2^61 − 1 elements.
pub type P61 = Mersenne<61>;

/// Most places at which a polynomial is given.
const PLACES: usize = 16;

impl<const BITS: u32> Mersenne<BITS> {
    /// The prime.
    pub const P: u64 = (1 << BITS) - 1;

    /// 1/2.
    pub const HALF: u64 = 1 << (BITS - 1);

    /// For n places, what the basis polynomial of place i is divided by: `1 / Π (i − j)` over the others.
    const WEIGHTS: [[u64; PLACES]; PLACES + 1] = Self::weights();

    /// `x` if it is below the prime, `x − P` if not; `x` is below twice the prime.
    #[inline]
    const fn once(x: u64) -> u64 {
        let less = x.wrapping_sub(Self::P);
        // All ones if it wrapped.
        let mask = ((less as i64) >> 63) as u64;
        less.wrapping_add(mask & Self::P)
    }

    /// Any number modulo the prime.
    #[inline]
    pub const fn reduce(x: u64) -> u64 {
        Self::reduce_wide(x as u128)
    }

    /// Any number modulo the prime.
    #[inline]
    pub const fn reduce_wide(x: u128) -> u64 {
        let mut x = x;
        let mut left = 128 / BITS + 2;
        while left > 0 {
            x = (x & Self::P as u128) + (x >> BITS);
            left -= 1;
        }
        Self::once(x as u64)
    }

    /// a + b.
    #[inline]
    pub const fn add(a: u64, b: u64) -> u64 {
        Self::once(a + b)
    }

    /// a − b.
    #[inline]
    pub const fn sub(a: u64, b: u64) -> u64 {
        Self::once(a + Self::P - b)
    }

    /// a · b.
    #[inline]
    pub const fn mul(a: u64, b: u64) -> u64 {
        let product = a as u128 * b as u128;
        Self::once((product as u64 & Self::P) + (product >> BITS) as u64)
    }

    /// a^e, for a public exponent.
    pub const fn pow(a: u64, mut e: u64) -> u64 {
        let (mut power, mut result) = (a, 1);
        while e > 0 {
            if e & 1 == 1 {
                result = Self::mul(result, power);
            }
            power = Self::mul(power, power);
            e >>= 1;
        }
        result
    }

    /// 1/a; 0 of 0.
    pub const fn inverse(a: u64) -> u64 {
        Self::pow(a, Self::P - 2)
    }

    /// A number of either sign.
    pub const fn signed(x: i64) -> u64 {
        let low = Self::reduce(x.unsigned_abs());
        let negative = (x >> 63) as u64;
        // −low where it is negative, without a branch.
        Self::once((low & !negative) + ((Self::P - low) & negative))
    }

    /// Σ a b.
    ///
    /// # Panics
    /// If the two are not equally long.
    pub fn dot(a: &[u64], b: &[u64]) -> u64 {
        assert_eq!(
            a.len(),
            b.len(),
            "an inner product is of equally long vectors"
        );
        let terms = a.iter().zip(b);
        terms.fold(0, |sum, (a, b)| Self::add(sum, Self::mul(*a, *b)))
    }

    /// Σ a.
    pub fn sum(a: &[u64]) -> u64 {
        a.iter().fold(0, |sum, a| Self::add(sum, *a))
    }

    /// The polynomials of degree below N that are 1 at one of the places 0, …, N − 1 and 0 at the others, at `x`: the value there of the
    /// polynomial with values v is [`Self::dot`] of these and v (Lagrange).
    pub fn basis<const N: usize>(x: u64) -> [u64; N] {
        const { assert!(N >= 1 && N <= PLACES, "places for which there are weights") };
        let mut basis = [0; N];
        basis.copy_from_slice(&Self::WEIGHTS[N][..N]);
        let mut before = 1;
        for (i, value) in basis.iter_mut().enumerate() {
            *value = Self::mul(*value, before);
            before = Self::mul(before, Self::sub(x, Self::reduce(i as u64)));
        }
        let mut after = 1;
        for (i, value) in basis.iter_mut().enumerate().rev() {
            *value = Self::mul(*value, after);
            after = Self::mul(after, Self::sub(x, Self::reduce(i as u64)));
        }
        basis
    }

    const fn weights() -> [[u64; PLACES]; PLACES + 1] {
        let mut weights = [[0; PLACES]; PLACES + 1];
        let mut n = 1;
        while n <= PLACES {
            let mut i = 0;
            while i < n {
                let (mut below, mut j) = (1, 0);
                while j < n {
                    if j != i {
                        below = Self::mul(below, Self::signed(i as i64 - j as i64));
                    }
                    j += 1;
                }
                weights[n][i] = Self::inverse(below);
                i += 1;
            }
            n += 1;
        }
        weights
    }
}

impl Mersenne<61> {
    /// `x` modulo the number of elements from `from` on, plus `from`: of a uniform `x` an element that is at none of the places
    /// 0, …, `from` − 1, and each other one with probability `1/(P − from)` to within `2^−128`.
    ///
    /// `P − from` is `2^61 − c` with `c = 1 + from`, so `2^61` is `c` modulo it; no division is needed, and nothing branches on `x`.
    #[inline]
    pub const fn from_place(x: u128, from: u32) -> u64 {
        let c = 1 + from as u128;
        // As c is at most 2^32: below 2^100, then below 2^72, then below 2^61 + 2^43, which is below twice the modulus.
        let mut x = x;
        let mut left = 3;
        while left > 0 {
            x = (x & Self::P as u128) + (x >> 61) * c;
            left -= 1;
        }
        let modulus = Self::P - from as u64;
        let less = (x as u64).wrapping_sub(modulus);
        // All ones if it wrapped.
        let mask = ((less as i64) >> 63) as u64;
        from as u64 + less.wrapping_add(mask & modulus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at the edges, and some between them.
    fn numbers<const BITS: u32>() -> Vec<u64> {
        let p = Mersenne::<BITS>::P;
        let mut list = vec![0, 1, 2, 3, p / 2, p / 2 + 1, p - 2, p - 1];
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..40 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            list.push(x % p);
        }
        list
    }

    fn agrees_with_integers<const BITS: u32>() {
        type F<const B: u32> = Mersenne<B>;
        let p = u128::from(F::<BITS>::P);
        for &a in &numbers::<BITS>() {
            for &b in &numbers::<BITS>() {
                let (x, y) = (u128::from(a), u128::from(b));
                assert_eq!(u128::from(F::<BITS>::add(a, b)), (x + y) % p);
                assert_eq!(u128::from(F::<BITS>::sub(a, b)), (x + p - y) % p);
                assert_eq!(u128::from(F::<BITS>::mul(a, b)), x * y % p);
            }
            if a > 0 {
                assert_eq!(F::<BITS>::mul(a, F::<BITS>::inverse(a)), 1);
            }
        }
        assert_eq!(F::<BITS>::add(F::<BITS>::HALF, F::<BITS>::HALF), 1);
        for x in [
            0,
            1,
            p - 1,
            p,
            p + 1,
            2 * p,
            u128::MAX,
            u128::MAX - 1,
            p << 60,
        ] {
            assert_eq!(u128::from(F::<BITS>::reduce_wide(x)), x % p);
        }
        for x in [0, 1, -1, i64::MAX, i64::MIN, -(p as i64), 5 - p as i64] {
            let want = i128::from(x).rem_euclid(p as i128);
            assert_eq!(i128::from(F::<BITS>::signed(x)), want);
        }
    }

    #[test]
    fn elements_are_integers_modulo_the_prime() {
        agrees_with_integers::<61>();
        agrees_with_integers::<13>();
        agrees_with_integers::<31>();
    }

    /// Without a division what a division gives, on both sides of every multiple of the modulus that there is room for.
    #[test]
    fn a_number_gives_an_element_from_a_place_on() {
        let words = numbers::<61>();
        let wide = words.iter().flat_map(|a| {
            words.iter().flat_map(move |b| {
                let (a, b) = (u128::from(*a), u128::from(*b));
                [a << 67 | b, (a * b) << 6, u128::MAX - a * b, b]
            })
        });
        let wide: Vec<u128> = wide.collect();
        for from in [0, 1, 4, 8, 1000, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
            let modulus = u128::from(P61::P - u64::from(from));
            let near = wide.iter().flat_map(|x| {
                let multiple = x - x % modulus;
                [-1, 0, 1].map(|by| multiple.saturating_add_signed(by))
            });
            let ends = [u128::MAX, u128::MAX - u128::MAX % modulus, modulus - 1, 0];
            for x in wide.iter().copied().chain(near).chain(ends) {
                let want = u128::from(from) + x % modulus;
                assert_eq!(
                    u128::from(P61::from_place(x, from)),
                    want,
                    "{x} from {from}"
                );
            }
        }
    }

    /// A polynomial of degree 14 from its values at 15 places, elsewhere and at a place.
    #[test]
    fn values_at_some_places_give_all() {
        let coefficients: Vec<u64> = numbers::<61>()[5..20].to_vec();
        let at = |x: u64| {
            let powers: Vec<u64> = (0..15).map(|e| P61::pow(x, e)).collect();
            P61::dot(&powers, &coefficients)
        };
        let values: Vec<u64> = (0..15).map(at).collect();
        for x in [0, 7, 14, 15, 1 << 40, P61::P - 1] {
            assert_eq!(P61::dot(&P61::basis::<15>(x), &values), at(x));
        }
    }
}
