//! The kernels of a proof, 512 bits at a time, where the CPU counts bits and multiplies 52 of them in every lane.

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use veil_math::P61;
use zeroize::Zeroizing;

use super::{BASE, COUNTS, Gates, Half, Register, Side, Table};
use crate::cpu::vector::VECTOR;

/// Elements of a vector.
const LANES: usize = VECTOR / 8;

/// Whether this machine has the instructions.
pub(super) fn is_there() -> bool {
    cfg!(not(veil_portable))
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("avx512ifma")
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(register: &Register) -> __m512i {
    // SAFETY: a register is a vector long.
    unsafe { _mm512_loadu_si512(register.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(register: &mut [u64; LANES], vector: __m512i) {
    // SAFETY: a register is a vector long.
    unsafe { _mm512_storeu_si512(register.as_mut_ptr().cast(), vector) }
}

/// The numbers of 512 halves, x y, y, x, 1, and their signs.
#[derive(Clone, Copy)]
struct Numbers {
    numbers: [__m512i; BASE],
    sign: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn numbers(half: &Half, present: &Register) -> Numbers {
    let [x, y, sign] = [load(&half[0]), load(&half[1]), load(&half[2])];
    let numbers = [_mm512_and_si512(x, y), y, x, load(present)];
    Numbers { numbers, sign }
}

/// As [`super::portable::counts`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vpopcntdq")]
pub(super) fn counts(gates: &Gates<'_>, counts: &mut [i64; COUNTS as usize]) {
    let mut sums = Zeroizing::new([[0u64; LANES]; COUNTS as usize]);
    for register in 0..gates.registers() {
        let present = gates.present(register);
        for at in 0..gates.quarter() {
            let zero = _mm512_setzero_si512();
            let none = Numbers {
                numbers: [zero; BASE],
                sign: zero,
            };
            let (mut left, mut right) = ([none; BASE], [none; BASE]);
            for quarter in 0..BASE {
                let product = quarter as u32 * gates.quarter() + at;
                if product < gates.products() {
                    let half = gates.half(Side::OwnNext, product, register, &present);
                    left[quarter] = numbers(&half, &present);
                    let half = gates.half(Side::OwnPrevious, product, register, &present);
                    right[quarter] = numbers(&half, &present);
                }
            }
            let mut sums = sums.iter_mut();
            for left in &left {
                for right in &right {
                    let sign = _mm512_xor_si512(left.sign, right.sign);
                    for n in left.numbers {
                        for (m, sum) in right.numbers.into_iter().zip(&mut sums) {
                            let both = _mm512_popcnt_epi64(_mm512_and_si512(n, m));
                            // n & m & sign.
                            let negative = _mm512_ternarylogic_epi64::<0x80>(n, m, sign);
                            let negative = _mm512_popcnt_epi64(negative);
                            let new = _mm512_sub_epi64(both, _mm512_add_epi64(negative, negative));
                            let new = _mm512_add_epi64(load(sum), new);
                            store(sum, new);
                        }
                    }
                }
            }
        }
    }
    for (count, sum) in counts.iter_mut().zip(sums.iter()) {
        *count = sum
            .iter()
            .fold(0i64, |all, lane| all.wrapping_add(*lane as i64));
    }
}

/// A number below 2^63 modulo the prime.
#[inline]
#[target_feature(enable = "avx512f")]
fn reduce(x: __m512i) -> __m512i {
    let prime = _mm512_set1_epi64(P61::P as i64);
    let once = _mm512_add_epi64(_mm512_and_si512(x, prime), _mm512_srli_epi64::<61>(x));
    // What is less than the prime becomes large.
    _mm512_min_epu64(once, _mm512_sub_epi64(once, prime))
}

/// As [`super::portable::expand`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn expand(gates: &Gates<'_>, side: Side, table: &Table, vector: &mut [u64]) {
    let mut tables = Zeroizing::new([[0u64; LANES]; BASE]);
    for (quarter, values) in tables.iter_mut().enumerate() {
        for (pattern, value) in (0u64..).zip(values) {
            let bits = [pattern & 1, pattern >> 1 & 1, pattern >> 2];
            *value = table.value::<61>(quarter, bits);
        }
    }
    let tables = [
        load(&tables[0]),
        load(&tables[1]),
        load(&tables[2]),
        load(&tables[3]),
    ];
    let width = gates.bytes() * 8;
    for register in 0..gates.registers() {
        let present = gates.present(register);
        let first = register * VECTOR * 8;
        let end = width.min(first + VECTOR * 8);
        for at in 0..gates.quarter() {
            let to = &mut vector[at as usize * width..][first..end];
            let mut halves = [[[0; LANES]; 3]; BASE];
            let mut there = [false; BASE];
            for quarter in 0..BASE {
                let product = quarter as u32 * gates.quarter() + at;
                there[quarter] = product < gates.products();
                if there[quarter] {
                    halves[quarter] = gates.half(side, product, register, &present);
                }
            }
            // Words of 64 rows, whose patterns are a byte each.
            for (word, to) in to.chunks_mut(64).enumerate() {
                let mut patterns = [[0u8; 64]; BASE];
                for quarter in 0..BASE {
                    let [x, y, s] = halves[quarter].map(|bits| bits[word]);
                    let of = |mask, value| _mm512_maskz_set1_epi8(mask, value);
                    let pattern = _mm512_or_si512(_mm512_or_si512(of(x, 1), of(y, 2)), of(s, 4));
                    // SAFETY: there is room for 64 bytes.
                    unsafe {
                        _mm512_storeu_si512(patterns[quarter].as_mut_ptr().cast(), pattern);
                    }
                }
                for (eight, to) in to.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                    let rows = (present[word] >> (8 * eight)) as u8;
                    let mut sum = _mm512_setzero_si512();
                    for quarter in 0..BASE {
                        let bytes = &patterns[quarter][8 * eight..];
                        // SAFETY: a register has 64 patterns, and eight is below 8.
                        let bytes = unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) };
                        let pattern = _mm512_cvtepu8_epi64(bytes);
                        let mask = if there[quarter] { rows } else { 0 };
                        let value = _mm512_maskz_permutexvar_epi64(mask, pattern, tables[quarter]);
                        sum = _mm512_add_epi64(sum, value);
                    }
                    store(to, reduce(sum));
                }
            }
        }
    }
}

/// Sums of products, by weights 1, 2^52, 2^104. Each takes less than 2^54 more per product.
#[derive(Clone, Copy)]
struct Sum([__m512i; 3]);

/// Products that a [`Sum`] takes.
const MOST: usize = 1 << 10;

/// An element, and what of it is beyond 52 bits.
#[derive(Clone, Copy)]
struct Split(__m512i, __m512i);

#[inline]
#[target_feature(enable = "avx512f")]
fn split(x: __m512i) -> Split {
    Split(x, _mm512_srli_epi64::<52>(x))
}

impl Sum {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> Self {
        Sum([_mm512_setzero_si512(); 3])
    }

    /// self + a b. The instructions look at the lower 52 bits of what they multiply.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn plus(self, a: Split, b: Split) -> Self {
        let [low, mut middle, mut high] = self.0;
        let low = _mm512_madd52lo_epu64(low, a.0, b.0);
        middle = _mm512_madd52hi_epu64(middle, a.0, b.0);
        middle = _mm512_madd52lo_epu64(middle, a.0, b.1);
        middle = _mm512_madd52lo_epu64(middle, a.1, b.0);
        high = _mm512_madd52hi_epu64(high, a.0, b.1);
        high = _mm512_madd52hi_epu64(high, a.1, b.0);
        high = _mm512_madd52lo_epu64(high, a.1, b.1);
        Sum([low, middle, high])
    }

    /// The sum modulo the prime: 2^52 x = 2^52 (x mod 2^9) + x / 2^9, and 2^104 x = 2^43 (x mod 2^18) + x / 2^18.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn reduced(self) -> __m512i {
        let [low, middle, high] = self.0;
        let prime = _mm512_set1_epi64(P61::P as i64);
        let low = _mm512_add_epi64(_mm512_and_si512(low, prime), _mm512_srli_epi64::<61>(low));
        let bits = _mm512_and_si512(middle, _mm512_set1_epi64((1 << 9) - 1));
        let middle = _mm512_add_epi64(
            _mm512_slli_epi64::<52>(bits),
            _mm512_srli_epi64::<9>(middle),
        );
        let bits = _mm512_and_si512(high, _mm512_set1_epi64((1 << 18) - 1));
        let high = _mm512_add_epi64(_mm512_slli_epi64::<43>(bits), _mm512_srli_epi64::<18>(high));
        // Each is below 2^61 + 2^56.
        reduce(_mm512_add_epi64(low, _mm512_add_epi64(middle, high)))
    }
}

/// Elements `at`, `at + 1`, … of a piece that ends at `end`; zeros beyond.
#[inline]
#[target_feature(enable = "avx512f")]
fn piece(vector: &[u64], at: usize, end: usize) -> __m512i {
    let left = end.min(vector.len()).saturating_sub(at);
    let mask = if left >= LANES {
        0xff
    } else {
        (1u8 << left) - 1
    };
    // SAFETY: lanes that are read lie before the end of the vector, of the others no address is used.
    unsafe { _mm512_maskz_loadu_epi64(mask, vector.as_ptr().wrapping_add(at).cast()) }
}

/// Positions that are gone through for all pairs of pieces before the next ones: they fit the first cache level.
const BLOCK: usize = 256;

/// Pieces of the second vector that are multiplied at once.
const SIDE: usize = 4;

/// As [`crate::proof::gram`], of elements below the prime.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn gram(a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
    const { assert!(BLOCK / LANES <= MOST) };
    let n = a.len().div_ceil(places);
    let mut sums = Zeroizing::new(vec![[0u64; LANES]; places * places]);
    for start in (0..n).step_by(BLOCK) {
        let stop = n.min(start + BLOCK);
        for i in 0..places {
            for group in 0..places / SIDE {
                let mut sum = [Sum::zero(); SIDE];
                for at in (start..stop).step_by(LANES) {
                    let left = split(piece(a, i * n + at, (i + 1) * n));
                    for (k, sum) in sum.iter_mut().enumerate() {
                        let j = group * SIDE + k;
                        let right = split(piece(b, j * n + at, (j + 1) * n));
                        *sum = sum.plus(left, right);
                    }
                }
                let sums = &mut sums[i * places + group * SIDE..][..SIDE];
                for (total, sum) in sums.iter_mut().zip(sum) {
                    let new = reduce(_mm512_add_epi64(load(total), sum.reduced()));
                    store(total, new);
                }
            }
        }
    }
    Zeroizing::new(sums.iter().map(|lanes| P61::sum(lanes)).collect())
}

/// As [`crate::proof::fold`], of elements below the prime: what is left is at the beginning of the vector.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn fold(vector: &mut [u64], basis: &[u64]) {
    let n = vector.len().div_ceil(basis.len());
    let mut coefficients = [split(_mm512_setzero_si512()); 8];
    for (split_one, value) in coefficients.iter_mut().zip(basis) {
        *split_one = split(_mm512_set1_epi64(*value as i64));
    }
    for at in (0..n).step_by(LANES) {
        let mut sum = Sum::zero();
        for (i, coefficient) in coefficients[..basis.len()].iter().enumerate() {
            let values = split(piece(vector, i * n + at, (i + 1) * n));
            sum = sum.plus(*coefficient, values);
        }
        let left = n - at;
        let mask = if left >= LANES {
            0xff
        } else {
            (1u8 << left) - 1
        };
        // SAFETY: lanes that are written lie before n, which is no longer than the vector.
        unsafe {
            _mm512_mask_storeu_epi64(vector.as_mut_ptr().add(at).cast(), mask, sum.reduced());
        }
    }
}
