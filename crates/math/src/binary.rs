//! The field of 2^64 elements, and polynomials over it that are given by their values at some places.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction, and closures would not be"
)]

/// The field GF(2)\[x\] / (x^64 + x^4 + x^3 + x + 1).
///
/// An element is a `u64` whose bit i is the coefficient of x^i; the sum of two is their XOR. *Place* k is the element whose number is k.
/// Nothing branches on the value of an element, and no memory index depends on one.
///
/// ```
/// use veil_math::Gf64;
/// assert_eq!(Gf64::mul(1 << 63, 2), 0b1_1011);
/// // The polynomial 1 + X is 1, 0, 3, 2 at the places 0, 1, 2, 3, so it is 11 at 10.
/// let at_ten = Gf64::basis(4, 10);
/// assert_eq!(Gf64::dot(&at_ten, &[1, 0, 3, 2]), 11);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gf64;

/// Most places at which a polynomial is given.
const PLACES: u32 = 64;

impl Gf64 {
    /// x^64 as an element: x^4 + x^3 + x + 1.
    pub const TAIL: u64 = 0b1_1011;

    /// For 2^s places, 1 over the product of all of them but 0: what each basis polynomial is divided by, as their differences are the
    /// places themselves.
    const DIVISORS: [u64; 7] = Self::divisors();

    /// a · b.
    #[inline]
    pub fn mul(a: u64, b: u64) -> u64 {
        Self::reduce(Self::product(a, b))
    }

    /// The product of two polynomials of degree below 64, which has a degree below 127.
    #[inline]
    pub fn product(a: u64, b: u64) -> u128 {
        #[cfg(target_arch = "x86_64")]
        if has_instruction() {
            // SAFETY: the processor has it.
            return unsafe { product_by_instruction(a, b) };
        }
        product_by_numbers(a, b)
    }

    /// A polynomial of degree below 128 modulo the field's.
    #[inline]
    pub const fn reduce(x: u128) -> u64 {
        let high = (x >> 64) as u64;
        // Of degree below 68, then 8.
        let folded = times_tail(high as u128);
        let beyond = times_tail(folded >> 64);
        x as u64 ^ folded as u64 ^ beyond as u64
    }

    /// x · a.
    #[inline]
    pub const fn times_x(a: u64) -> u64 {
        a << 1 ^ (Self::TAIL & (a >> 63).wrapping_neg())
    }

    /// 1/a; 0 of 0.
    pub const fn inverse(a: u64) -> u64 {
        // a^(2^64 - 2), all of whose bits but the lowest are set.
        let (mut power, mut result, mut bit) = (a, 1, 1);
        while bit < 64 {
            power = Self::constant(power, power);
            result = Self::constant(result, power);
            bit += 1;
        }
        result
    }

    /// [`Self::mul`] for constants.
    const fn constant(a: u64, b: u64) -> u64 {
        Self::reduce(product_by_numbers(a, b))
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
        #[cfg(target_arch = "x86_64")]
        if has_instruction() {
            // SAFETY: the processor has it.
            return unsafe { dot_by_instruction(a, b) };
        }
        dot::<ByNumbers>(a, b)
    }

    /// Σ a.
    pub fn sum(a: &[u64]) -> u64 {
        a.iter().fold(0, |sum, a| sum ^ a)
    }

    /// The polynomials of degree below `places` that are 1 at one of the places 0, …, `places` − 1 and 0 at the others, at `x`: the value
    /// there of the polynomial with values v is [`Self::dot`] of these and v (Lagrange).
    ///
    /// # Panics
    /// If `places` is neither a power of two from 2 to 64 nor one less: only these places are a subspace, or one but for its last element.
    pub fn basis(places: u32, x: u64) -> Vec<u64> {
        let divisor = Self::divisor(places);
        let mut basis = vec![divisor; places as usize];
        #[cfg(target_arch = "x86_64")]
        if has_instruction() {
            // SAFETY: the processor has it.
            unsafe { basis_by_instruction(&mut basis, x) };
            return basis;
        }
        fill_basis::<ByNumbers>(&mut basis, x);
        basis
    }

    /// 1 over the product of all places but 0, of so many places, or of one more if these are one less than a power of two.
    ///
    /// # Panics
    /// As [`Self::basis`].
    pub fn divisor(places: u32) -> u64 {
        let all = places.next_power_of_two();
        assert!(
            (2..=PLACES).contains(&all) && all - places <= 1,
            "places for which there are divisors"
        );
        Self::DIVISORS[all.trailing_zeros() as usize]
    }

    /// `x` modulo the number of elements from `from` on, plus `from`: of a uniform `x` an element that is at none of the places
    /// 0, …, `from` − 1, and each other one with probability `1/(2^64 − from)` to within `2^−128`.
    ///
    /// 2^64 is `from` modulo `2^64 − from`; no division is needed, and nothing branches on `x`.
    #[inline]
    pub const fn from_place(x: u128, from: u32) -> u64 {
        let mut x = x;
        let mut left = 3;
        // As `from` is below 2^32: below 2^97, then below 2^66, then below 2^64 + 2^34, which is below twice the modulus.
        while left > 0 {
            x = (x as u64 as u128) + (x >> 64) * from as u128;
            left -= 1;
        }
        let modulus = (1u128 << 64) - from as u128;
        let less = x.wrapping_sub(modulus);
        // All ones if it wrapped.
        let mask = ((less as i128) >> 127) as u128;
        from as u64 + less.wrapping_add(mask & modulus) as u64
    }

    const fn divisors() -> [u64; 7] {
        let mut divisors = [1; 7];
        let (mut product, mut place) = (1, 1);
        while place < PLACES {
            product = Self::constant(product, place as u64);
            place += 1;
            if place.is_power_of_two() {
                divisors[place.trailing_zeros() as usize] = Self::inverse(product);
            }
        }
        divisors
    }
}

/// x · (x^4 + x^3 + x + 1).
const fn times_tail(x: u128) -> u128 {
    x ^ x << 1 ^ x << 3 ^ x << 4
}

/// Whether the processor has PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
fn has_instruction() -> bool {
    cfg!(not(veil_portable)) && is_x86_feature_detected!("pclmulqdq")
}

/// How polynomials are multiplied. Always inlined, into a function that enables the instruction.
trait Products {
    fn product(a: u64, b: u64) -> u128;
}

/// By integers.
struct ByNumbers;

impl Products for ByNumbers {
    fn product(a: u64, b: u64) -> u128 {
        product_by_numbers(a, b)
    }
}

/// By PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
struct ByInstruction;

#[cfg(target_arch = "x86_64")]
impl Products for ByInstruction {
    #[inline(always)]
    fn product(a: u64, b: u64) -> u128 {
        use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_cvtsi64_si128};
        use std::arch::x86_64::{_mm_cvtsi128_si64, _mm_unpackhi_epi64};

        // SAFETY: the caller enables the instruction.
        unsafe {
            let (a, b) = (_mm_cvtsi64_si128(a as i64), _mm_cvtsi64_si128(b as i64));
            let product = _mm_clmulepi64_si128::<0>(a, b);
            let low = _mm_cvtsi128_si64(product) as u64;
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(product, product)) as u64;
            (high as u128) << 64 | low as u128
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2,pclmulqdq")]
fn product_by_instruction(a: u64, b: u64) -> u128 {
    ByInstruction::product(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2,pclmulqdq")]
fn dot_by_instruction(a: &[u64], b: &[u64]) -> u64 {
    dot::<ByInstruction>(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2,pclmulqdq")]
fn basis_by_instruction(basis: &mut [u64], x: u64) {
    fill_basis::<ByInstruction>(basis, x);
}

/// [`Gf64::dot`] of equally long vectors.
#[inline(always)]
fn dot<P: Products>(a: &[u64], b: &[u64]) -> u64 {
    let mut sum = 0;
    for k in 0..a.len() {
        sum ^= P::product(a[k], b[k]);
    }
    Gf64::reduce(sum)
}

/// [`Gf64::basis`] at as many places as there are divisors, all alike, in its place.
#[inline(always)]
fn fill_basis<P: Products>(basis: &mut [u64], x: u64) {
    let left_out = basis.len().next_power_of_two() - 1;
    if left_out == basis.len() {
        // The difference to the place that is left out is not in a polynomial's divisor.
        for place in 0..basis.len() {
            let difference = (place ^ left_out) as u64;
            basis[place] = Gf64::reduce(P::product(basis[place], difference));
        }
    }
    let (mut before, mut after) = (1, 1);
    for place in 0..basis.len() {
        let at = basis.len() - 1 - place;
        basis[place] = Gf64::reduce(P::product(basis[place], before));
        before = Gf64::reduce(P::product(before, x ^ place as u64));
        basis[at] = Gf64::reduce(P::product(basis[at], after));
        after = Gf64::reduce(P::product(after, x ^ at as u64));
    }
}

/// [`Gf64::product`] by integers.
const fn product_by_numbers(a: u64, b: u64) -> u128 {
    let low = low_half(a, b);
    // Coefficients in the opposite order: the product's highest come first.
    let high = low_half(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    (high as u128) << 64 | low as u128
}

/// The lowest 64 coefficients of a product. Of every fourth coefficient there are at most 16 terms, whose sum as integers stays below the
/// next one that counts, or beyond the highest (Pornin, "Constant-time multiplication without carries").
const fn low_half(a: u64, b: u64) -> u64 {
    const FOURTH: u64 = 0x1111_1111_1111_1111;
    let (mut out, mut i) = (0, 0);
    while i < 4 {
        let (mut sum, mut j) = (0, 0);
        while j < 4 {
            let left = a & FOURTH << j;
            let right = b & FOURTH << ((4 + i - j) % 4);
            sum ^= left.wrapping_mul(right);
            j += 1;
        }
        out |= sum & FOURTH << i;
        i += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements at the edges, and some between them.
    fn elements() -> Vec<u64> {
        let mut list = vec![
            0,
            1,
            2,
            3,
            1 << 63,
            u64::MAX,
            u64::MAX - 1,
            0x1111_1111_1111_1111,
        ];
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..40 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            list.push(x);
        }
        list
    }

    /// A product bit by bit, and its remainder by long division.
    fn by_hand(a: u64, b: u64) -> (u128, u64) {
        let bit = |i: u32| (u128::from(b) << i) & u128::from(a >> i & 1).wrapping_neg();
        let product = (0..64).fold(0, |sum, i| sum ^ bit(i));
        let modulus = 1u128 << 64 | u128::from(Gf64::TAIL);
        let divide = |x: u128, i: u32| x ^ (modulus << i) & (x >> (64 + i) & 1).wrapping_neg();
        (product, (0..63).rev().fold(product, divide) as u64)
    }

    #[test]
    fn products_are_those_of_polynomials() {
        for &a in &elements() {
            for &b in &elements() {
                let (product, rest) = by_hand(a, b);
                assert_eq!(Gf64::product(a, b), product, "{a:x} {b:x}");
                assert_eq!(product_by_numbers(a, b), product, "{a:x} {b:x}");
                assert_eq!(Gf64::mul(a, b), rest, "{a:x} {b:x}");
            }
            assert_eq!(Gf64::times_x(a), Gf64::mul(a, 2));
            assert_eq!(Gf64::mul(a, Gf64::inverse(a)), u64::from(a != 0));
        }
        let powers = std::iter::successors(Some(1), |power| Some(Gf64::times_x(*power)));
        let all = powers.take(128).fold(0, |sum, power| sum ^ power);
        assert_eq!(Gf64::reduce(u128::MAX), all);
    }

    /// x^(2^64) = x for the element x alone of degree 1 over GF(2^32): the field's polynomial has no factor (Rabin).
    #[test]
    fn the_polynomial_has_no_factor() {
        let squared = |n| (0..n).fold(2, |x, _| Gf64::mul(x, x));
        assert_eq!(squared(64), 2);
        // x^(2^32) - x has an inverse.
        let difference = squared(32) ^ 2;
        assert_eq!(Gf64::mul(difference, Gf64::inverse(difference)), 1);
    }

    /// Without a division what a division gives, on both sides of every multiple of the modulus that there is room for.
    #[test]
    fn a_number_gives_an_element_from_a_place_on() {
        let words = elements();
        let wide = words.iter().flat_map(|a| {
            words.iter().flat_map(move |b| {
                let (a, b) = (u128::from(*a), u128::from(*b));
                [a << 64 | b, a * b, u128::MAX - a * b, b]
            })
        });
        let wide: Vec<u128> = wide.collect();
        for from in [0, 1, 4, 8, 32, 1000, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
            let modulus = (1u128 << 64) - u128::from(from);
            let near = wide.iter().flat_map(|x| {
                let multiple = x - x % modulus;
                [-1, 0, 1].map(|by| multiple.saturating_add_signed(by))
            });
            let ends = [u128::MAX, u128::MAX - u128::MAX % modulus, modulus - 1, 0];
            for x in wide.iter().copied().chain(near).chain(ends) {
                let want = u128::from(from) + x % modulus;
                let got = u128::from(Gf64::from_place(x, from));
                assert_eq!(got, want, "{x} from {from}");
            }
        }
    }

    /// A polynomial of the largest degree from its values at so many places, elsewhere and at a place.
    #[test]
    fn values_at_some_places_give_all() {
        for places in [2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64] {
            let coefficients = elements();
            let at = |x: u64| {
                let powers = |power: &mut u64| Some(std::mem::replace(power, Gf64::mul(*power, x)));
                let powers = std::iter::repeat_with(|| ()).scan(1, |power, ()| powers(power));
                let terms = powers
                    .zip(coefficients.iter().cycle())
                    .take(places as usize);
                terms.fold(0, |sum, (power, c)| sum ^ Gf64::mul(power, *c))
            };
            let values: Vec<u64> = (0..u64::from(places)).map(at).collect();
            for x in [
                0,
                1,
                u64::from(places) - 1,
                u64::from(places),
                1 << 40,
                u64::MAX,
            ] {
                let got = Gf64::dot(&Gf64::basis(places, x), &values);
                assert_eq!(got, at(x), "{places} at {x}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "places for which there are divisors")]
    fn other_places_have_no_basis() {
        Gf64::basis(5, 9);
    }
}
