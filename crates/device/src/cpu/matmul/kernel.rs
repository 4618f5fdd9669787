//! Products of small blocks of matrices: a panel of rows of the left one times a panel of columns of the right one, in registers.
//!
//! Elements of Z_2^64 are a_0 + 2^32 a_1, and a product is a_0 b_0 + 2^32 (a_0 b_1 + a_1 b_0): one product of 32 by 32 bits, and two of which the lower half
//! counts. Both kinds are summed up apart, so that shifts come once for a panel, not once for a product.

/// An element, as it lies in memory.
pub(super) trait Word: Copy + Default + 'static {
    /// Reads the element at a place that need not be aligned.
    unsafe fn get(from: *const Self) -> Self;

    /// Adds to such a place, or takes away.
    unsafe fn grow(self, to: *mut Self, minus: bool);

    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            #[inline(always)]
            unsafe fn get(from: *const Self) -> Self {
                // SAFETY: the caller's.
                Self::from_le(unsafe { from.read_unaligned() })
            }

            #[inline(always)]
            unsafe fn grow(self, to: *mut Self, minus: bool) {
                // SAFETY: the caller's.
                unsafe {
                    let of = Self::get(to);
                    let sum = if minus {
                        of.wrapping_sub(self)
                    } else {
                        of.wrapping_add(self)
                    };
                    to.write_unaligned(sum.to_le());
                }
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    };
}

word!(u32);
word!(u64);
word!(u128);

/// How panels are multiplied.
pub(super) trait Kernel {
    /// Elements.
    type Word: Word;
    /// Elements of the right matrix, as they are packed.
    type Right: Copy + Default + 'static;
    /// Rows of a panel.
    const ROWS: usize;
    /// Columns of a panel.
    const COLUMNS: usize;
    /// Terms that are multiplied together: the depth of a panel is a multiple of it, and terms behind the last are zeros.
    const TERMS: usize = 1;
    /// Words of a panel of the left matrix for each term: its elements, and what [`Kernel::finish_left`] makes of them.
    const LEFT: usize = Self::ROWS;
    /// The same of the right matrix.
    const RIGHT: usize = Self::COLUMNS;

    /// Packs an element of the right matrix.
    fn right(word: Self::Word) -> Self::Right;

    /// Completes a panel of the left matrix: `depth` times [`Kernel::LEFT`] words, of which `depth` times [`Kernel::ROWS`] are there.
    fn finish_left(_panel: &mut [Self::Word]) {}

    /// Completes a panel of the right matrix.
    fn finish_right(_panel: &mut [Self::Right]) {}

    /// The product of a panel of the left matrix, `depth` times [`Kernel::LEFT`] words, and one of the right matrix, `depth` times [`Kernel::RIGHT`],
    /// column by column.
    ///
    /// # Safety
    /// The processor has the instructions of the kernel; panels and `into` have that many elements.
    unsafe fn multiply(
        left: *const Self::Word,
        right: *const Self::Right,
        depth: usize,
        into: *mut Self::Word,
    );
}

/// Any element, without vectors.
pub(super) struct Portable<W>(std::marker::PhantomData<W>);

impl<W: Word> Kernel for Portable<W> {
    type Word = W;
    type Right = W;
    const ROWS: usize = 4;
    const COLUMNS: usize = 2;

    fn right(word: W) -> W {
        word
    }

    unsafe fn multiply(left: *const W, right: *const W, depth: usize, into: *mut W) {
        let mut sums = [[W::default(); 4]; 2];
        for k in 0..depth {
            for (j, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's.
                let b = unsafe { right.add(2 * k + j).read() };
                for (i, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's.
                    let a = unsafe { left.add(4 * k + i).read() };
                    *sum = sum.add(a.mul(b));
                }
            }
        }
        // SAFETY: the caller's.
        unsafe { into.cast::<[[W; 4]; 2]>().write(sums) }
    }
}

#[cfg(target_arch = "x86_64")]
#[path = "avx512.rs"]
mod avx512;
#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{Narrow, Wide, in_registers};
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::{Narrow512, Wide512, in_registers_512};

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::asm;
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_add_epi64, _mm256_loadu_si256, _mm256_mullo_epi32,
        _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64,
        _mm256_srli_epi64, _mm256_storeu_si256,
    };

    use super::Kernel;

    /// Elements of Z_2^64, by registers of 256 bits.
    pub(in super::super) struct Wide;

    impl Kernel for Wide {
        type Word = u64;
        /// The element, and the same with its halves exchanged.
        type Right = [u64; 2];
        const ROWS: usize = 8;
        const COLUMNS: usize = 3;

        fn right(word: u64) -> [u64; 2] {
            [word, word.rotate_left(32)]
        }

        unsafe fn multiply(left: *const u64, right: *const [u64; 2], depth: usize, into: *mut u64) {
            // SAFETY: the caller's.
            unsafe { wide(left, right, depth, into) }
        }
    }

    /// All sixteen registers are in use: twelve sums, two vectors of the left panel, and two for what is multiplied. A compiler that orders these instructions
    /// itself puts sums on the stack.
    macro_rules! step {
        ($left:ident, $right:ident, $low:ident, $cross:ident) => {
            asm!(
                "vmovdqu {a}, [{left}]",
                "vmovdqu {b}, [{left} + 32]",
                step!(@ "[{right}]", "[{right} + 8]", "l0", "l1", "c0", "c1"),
                step!(@ "[{right} + 16]", "[{right} + 24]", "l2", "l3", "c2", "c3"),
                step!(@ "[{right} + 32]", "[{right} + 40]", "l4", "l5", "c4", "c5"),
                left = in(reg) $left,
                right = in(reg) $right,
                a = out(ymm_reg) _,
                b = out(ymm_reg) _,
                x = out(ymm_reg) _,
                y = out(ymm_reg) _,
                l0 = inout(ymm_reg) $low[0],
                l1 = inout(ymm_reg) $low[1],
                l2 = inout(ymm_reg) $low[2],
                l3 = inout(ymm_reg) $low[3],
                l4 = inout(ymm_reg) $low[4],
                l5 = inout(ymm_reg) $low[5],
                c0 = inout(ymm_reg) $cross[0],
                c1 = inout(ymm_reg) $cross[1],
                c2 = inout(ymm_reg) $cross[2],
                c3 = inout(ymm_reg) $cross[3],
                c4 = inout(ymm_reg) $cross[4],
                c5 = inout(ymm_reg) $cross[5],
                options(readonly, nostack, preserves_flags),
            )
        };
        (@ $element:literal, $exchanged:literal, $l0:literal, $l1:literal, $c0:literal, $c1:literal) => {
            concat!(
                "vpbroadcastq {x}, ", $element, "\n",
                "vpmuludq {y}, {x}, {a}\n",
                "vpaddq {", $l0, "}, {", $l0, "}, {y}\n",
                "vpmuludq {x}, {x}, {b}\n",
                "vpaddq {", $l1, "}, {", $l1, "}, {x}\n",
                "vpbroadcastq {x}, ", $exchanged, "\n",
                "vpmulld {y}, {x}, {a}\n",
                "vpaddd {", $c0, "}, {", $c0, "}, {y}\n",
                "vpmulld {x}, {x}, {b}\n",
                "vpaddd {", $c1, "}, {", $c1, "}, {x}\n",
            )
        };
    }

    #[target_feature(enable = "avx2")]
    unsafe fn wide(left: *const u64, right: *const [u64; 2], depth: usize, into: *mut u64) {
        let mut low = [_mm256_setzero_si256(); 6];
        let mut cross = [_mm256_setzero_si256(); 6];
        let (mut left, mut right) = (left, right);
        for _ in 0..depth {
            // SAFETY: the caller's: panels have so many elements.
            unsafe { step!(left, right, low, cross) }
            (left, right) = (left.wrapping_add(8), right.wrapping_add(3));
        }
        for k in 0..6 {
            let both = _mm256_add_epi32(cross[k], _mm256_srli_epi64::<32>(cross[k]));
            let sum = _mm256_add_epi64(low[k], _mm256_slli_epi64::<32>(both));
            // SAFETY: the caller's.
            unsafe { _mm256_storeu_si256(into.add(4 * k).cast(), sum) }
        }
    }

    /// Elements of Z_2^32, by registers of 256 bits.
    pub(in super::super) struct Narrow;

    impl Kernel for Narrow {
        type Word = u32;
        type Right = u32;
        const ROWS: usize = 16;
        const COLUMNS: usize = 4;

        fn right(word: u32) -> u32 {
            word
        }

        unsafe fn multiply(left: *const u32, right: *const u32, depth: usize, into: *mut u32) {
            // SAFETY: the caller's.
            unsafe { narrow(left, right, depth, into) }
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn narrow(left: *const u32, right: *const u32, depth: usize, into: *mut u32) {
        let mut sums = [[_mm256_setzero_si256(); 2]; 4];
        for k in 0..depth {
            // SAFETY: the caller's: panels have so many elements.
            unsafe {
                let a = [
                    _mm256_loadu_si256(left.add(16 * k).cast()),
                    _mm256_loadu_si256(left.add(16 * k + 8).cast()),
                ];
                for j in 0..4 {
                    let b = _mm256_set1_epi32(right.add(4 * k + j).read().cast_signed());
                    for i in 0..2 {
                        let product = _mm256_mullo_epi32(a[i], b);
                        sums[j][i] = _mm256_add_epi32(sums[j][i], product);
                    }
                }
            }
        }
        for j in 0..4 {
            for i in 0..2 {
                // SAFETY: the caller's.
                unsafe { _mm256_storeu_si256(into.add(16 * j + 8 * i).cast(), sums[j][i]) }
            }
        }
    }

    /// Products and sums of elements of Z_2^64 as in [`wide`], as many in each round as a panel has elements, and nothing else: no memory is reached, and no
    /// round waits for the one before but by its sums. Returns the number of products.
    #[target_feature(enable = "avx2")]
    pub(in super::super) unsafe fn in_registers(rounds: u64) -> u64 {
        let mut sums = [[_mm256_setzero_si256(); 2]; 6];
        let (a, b) = (_mm256_set1_epi64x(3), _mm256_set1_epi64x(5));
        for _ in 0..rounds {
            for [low, cross] in &mut sums {
                // SAFETY: vectors are added to vectors; the compiler leaves these instructions as they are.
                unsafe {
                    asm!(
                        "vpmuludq {product}, {a}, {b}",
                        "vpaddq {low}, {low}, {product}",
                        "vpmulld {product}, {a}, {b}",
                        "vpaddd {cross}, {cross}, {product}",
                        product = out(ymm_reg) _,
                        low = inout(ymm_reg) *low,
                        cross = inout(ymm_reg) *cross,
                        a = in(ymm_reg) a,
                        b = in(ymm_reg) b,
                        options(nomem, nostack, preserves_flags),
                    );
                }
            }
        }
        std::hint::black_box(sums);
        rounds * (Wide::ROWS * Wide::COLUMNS) as u64
    }
}
