//! Products with matrices of so few columns that nothing is packed: each element of the left matrix is read once, where it lies.

use veil_math::Ring;
use veil_session::Wiped;

use super::kernel::Word;
use super::{Columns, Isa};
use crate::matmul::{OfSums, SUMS_OF_FOUR};

/// Columns of the right matrix, at most.
const THIN: usize = 2;

/// Elements of a column that are looked at together: they stay in the first cache.
const BLOCK: usize = 1024;

/// The same where five sums of them are.
const BLOCK_OF_FOUR: usize = 256;

/// Products that four parties make.
const FIVE: usize = SUMS_OF_FOUR.len();

impl Columns {
    /// Whether packing would take longer than products.
    pub(super) const fn is_thin(&self) -> bool {
        self.width <= THIN
    }

    /// Adds products of sums of components where they belong, as [`Columns::panels`] does.
    ///
    /// # Safety
    /// The processor has the instructions of `isa`, and columns have so many elements of the ring.
    pub(super) unsafe fn thin(&mut self, ring: Ring, isa: Isa, all: &[OfSums]) {
        // SAFETY: the caller's.
        unsafe {
            match (ring, isa) {
                #[cfg(target_arch = "x86_64")]
                (Ring::Z64, Isa::Avx512) => thin_512::<u64>(self, all),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z32, Isa::Avx512) => thin_512::<u32>(self, all),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z64, Isa::Avx2Vaes | Isa::Avx2) => thin_256::<u64>(self, all),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z32, Isa::Avx2Vaes | Isa::Avx2) => thin_256::<u32>(self, all),
                (Ring::Z32, _) => thin::<u32>(self, all),
                (Ring::Z64, _) => thin::<u64>(self, all),
                (Ring::Z128, _) => thin::<u128>(self, all),
                (Ring::Bits, _) => unreachable!("it was checked"),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn thin_512<W: Word>(columns: &mut Columns, all: &[OfSums]) {
    // SAFETY: the caller's.
    unsafe { thin::<W>(columns, all) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn thin_256<W: Word>(columns: &mut Columns, all: &[OfSums]) {
    // SAFETY: the caller's.
    unsafe { thin::<W>(columns, all) }
}

#[inline(always)]
unsafe fn thin<W: Word>(columns: &mut Columns, all: &[OfSums]) {
    let sums = all.iter().map(|of| [&of.left[..], &of.right[..]]);
    if sums.eq(SUMS_OF_FOUR.map(|sum| [sum; 2])) {
        let mut block = Wiped::<W>::zeros(FIVE * BLOCK_OF_FOUR);
        for j in 0..columns.width {
            // SAFETY: the caller's.
            unsafe {
                if columns.transposed {
                    inner_products_of_four::<W>(columns, all, j, &mut block);
                } else {
                    multiples_of_four::<W>(columns, all, j, &mut block);
                }
            }
        }
        return;
    }
    let mut block = Wiped::<W>::zeros(BLOCK);
    for of in all {
        for j in 0..columns.width {
            // SAFETY: the caller's.
            unsafe {
                if columns.transposed {
                    inner_products::<W>(columns, of, j, &mut block);
                } else {
                    multiples::<W>(columns, of, j, &mut block);
                }
            }
        }
    }
}

/// A column of the product as a sum of multiples of columns.
#[inline(always)]
unsafe fn multiples<W: Word>(columns: &mut Columns, of: &OfSums, j: usize, block: &mut [W]) {
    for first in (0..columns.rows).step_by(BLOCK) {
        let sums = &mut block[..BLOCK.min(columns.rows - first)];
        sums.fill(W::default());
        for k in 0..columns.inner {
            let mut factor = W::default();
            for component in &of.right {
                // SAFETY: the caller's.
                factor = factor.add(unsafe { W::get(columns.right_at::<W>(j, *component).add(k)) });
            }
            for component in &of.left {
                let column = columns.left_at::<W>(k, *component).wrapping_add(first);
                for (r, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's.
                    *sum = sum.add(unsafe { W::get(column.add(r)) }.mul(factor));
                }
            }
        }
        for (target, minus) in &of.into {
            let to = columns.column(*target, j).0.cast::<W>();
            for (r, sum) in sums.iter().enumerate() {
                // SAFETY: the caller's.
                unsafe { sum.grow(to.add(first + r), *minus) };
            }
        }
    }
}

/// A column of the product by an inner product with each column.
#[inline(always)]
unsafe fn inner_products<W: Word>(columns: &mut Columns, of: &OfSums, j: usize, block: &mut [W]) {
    for first in (0..columns.inner).step_by(BLOCK) {
        let factors = &mut block[..BLOCK.min(columns.inner - first)];
        factors.fill(W::default());
        for component in &of.right {
            let column = columns.right_at::<W>(j, *component).wrapping_add(first);
            for (k, factor) in factors.iter_mut().enumerate() {
                // SAFETY: the caller's.
                *factor = factor.add(unsafe { W::get(column.add(k)) });
            }
        }
        for i in 0..columns.rows {
            let mut sum = W::default();
            for component in &of.left {
                let column = columns.left_at::<W>(i, *component).wrapping_add(first);
                for (k, factor) in factors.iter().enumerate() {
                    // SAFETY: the caller's.
                    sum = sum.add(unsafe { W::get(column.add(k)) }.mul(*factor));
                }
            }
            for (target, minus) in &of.into {
                let to = columns.column(*target, j).0.cast::<W>();
                // SAFETY: the caller's.
                unsafe { sum.grow(to.add(i), *minus) };
            }
        }
    }
}

/// The sums of [`SUMS_OF_FOUR`], of the components of element `at` of a column.
///
/// # Safety
/// There are elements at these places.
#[inline(always)]
unsafe fn sums_of_four<W: Word>(from: [*const W; 3], at: usize) -> [W; FIVE] {
    // SAFETY: the caller's.
    let [a, b, c] = unsafe {
        [
            W::get(from[0].add(at)),
            W::get(from[1].add(at)),
            W::get(from[2].add(at)),
        ]
    };
    let both = b.add(c);
    [both, c, a.add(b), b, a.add(both)]
}

impl Columns {
    /// All three components of a column of the left matrix, from element `first` on.
    #[inline(always)]
    fn left_of_four<W>(&self, column: usize, first: usize) -> [*const W; 3] {
        [
            self.left_at::<W>(column, 0).wrapping_add(first),
            self.left_at::<W>(column, 1).wrapping_add(first),
            self.left_at::<W>(column, 2).wrapping_add(first),
        ]
    }

    /// The same of the right matrix.
    #[inline(always)]
    fn right_of_four<W>(&self, column: usize, first: usize) -> [*const W; 3] {
        [
            self.right_at::<W>(column, 0).wrapping_add(first),
            self.right_at::<W>(column, 1).wrapping_add(first),
            self.right_at::<W>(column, 2).wrapping_add(first),
        ]
    }
}

/// [`multiples`] of all products of four parties: each element is read once.
#[inline(always)]
unsafe fn multiples_of_four<W: Word>(
    columns: &mut Columns,
    all: &[OfSums],
    j: usize,
    block: &mut [W],
) {
    for first in (0..columns.rows).step_by(BLOCK_OF_FOUR) {
        let count = BLOCK_OF_FOUR.min(columns.rows - first);
        block.fill(W::default());
        for k in 0..columns.inner {
            // SAFETY: the caller's.
            let factor = unsafe { sums_of_four(columns.right_of_four::<W>(j, k), 0) };
            let column = columns.left_of_four::<W>(k, first);
            let sums = block.as_mut_ptr();
            for r in 0..count {
                // SAFETY: the caller's, and there is a block for each product.
                unsafe {
                    let elements = sums_of_four(column, r);
                    for s in 0..FIVE {
                        let sum = sums.add(s * BLOCK_OF_FOUR + r);
                        sum.write(sum.read().add(elements[s].mul(factor[s])));
                    }
                }
            }
        }
        for (of, sums) in all.iter().zip(block.chunks_exact(BLOCK_OF_FOUR)) {
            for (target, minus) in &of.into {
                let to = columns.column(*target, j).0.cast::<W>();
                for (r, sum) in sums[..count].iter().enumerate() {
                    // SAFETY: the caller's.
                    unsafe { sum.grow(to.add(first + r), *minus) };
                }
            }
        }
    }
}

/// [`inner_products`] of all products of four parties: each element is read once.
#[inline(always)]
unsafe fn inner_products_of_four<W: Word>(
    columns: &mut Columns,
    all: &[OfSums],
    j: usize,
    block: &mut [W],
) {
    for first in (0..columns.inner).step_by(BLOCK_OF_FOUR) {
        let count = BLOCK_OF_FOUR.min(columns.inner - first);
        let column = columns.right_of_four::<W>(j, first);
        let factors = block.as_mut_ptr();
        for k in 0..count {
            // SAFETY: the caller's, and there is a block for each product.
            unsafe {
                let sums = sums_of_four(column, k);
                for s in 0..FIVE {
                    factors.add(s * BLOCK_OF_FOUR + k).write(sums[s]);
                }
            }
        }
        for i in 0..columns.rows {
            let column = columns.left_of_four::<W>(i, first);
            let mut sums = [W::default(); FIVE];
            for k in 0..count {
                // SAFETY: the caller's, and there are so many factors.
                unsafe {
                    let elements = sums_of_four(column, k);
                    for s in 0..FIVE {
                        let factor = factors.add(s * BLOCK_OF_FOUR + k).read();
                        sums[s] = sums[s].add(elements[s].mul(factor));
                    }
                }
            }
            for (of, sum) in all.iter().zip(sums) {
                for (target, minus) in &of.into {
                    let to = columns.column(*target, j).0.cast::<W>();
                    // SAFETY: the caller's.
                    unsafe { sum.grow(to.add(i), *minus) };
                }
            }
        }
    }
}
