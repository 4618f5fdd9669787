//! Products with matrices of so few columns that nothing is packed: each element of the left matrix is read once, where it lies.

use veil_math::Ring;
use veil_session::Wiped;

use super::kernel::Word;
use super::{Columns, Isa};
use crate::matmul::OfSums;

/// Columns of the right matrix, at most.
const THIN: usize = 2;

/// Elements of a column that are looked at together: they stay in the first cache.
const BLOCK: usize = 1024;

impl Columns {
    /// Whether packing would take longer than products.
    pub(super) const fn is_thin(&self) -> bool {
        self.width <= THIN
    }

    /// Adds a product of sums of components where it belongs, as [`Columns::multiply`] does.
    ///
    /// # Safety
    /// The processor has the instructions of `isa`, and columns have so many elements of the ring.
    pub(super) unsafe fn thin(&mut self, ring: Ring, isa: Isa, of: &OfSums) {
        // SAFETY: the caller's.
        unsafe {
            match (ring, isa) {
                #[cfg(target_arch = "x86_64")]
                (Ring::Z64, Isa::Avx512) => thin_512::<u64>(self, of),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z32, Isa::Avx512) => thin_512::<u32>(self, of),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z64, Isa::Avx2Vaes | Isa::Avx2) => thin_256::<u64>(self, of),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z32, Isa::Avx2Vaes | Isa::Avx2) => thin_256::<u32>(self, of),
                (Ring::Z32, _) => thin::<u32>(self, of),
                (Ring::Z64, _) => thin::<u64>(self, of),
                (Ring::Z128, _) => thin::<u128>(self, of),
                (Ring::Bits, _) => unreachable!("it was checked"),
            }
        }
    }

    #[inline(always)]
    fn of_right<W>(&self, column: usize, component: u8, first: usize) -> *const W {
        let at = column * self.parts + usize::from(component);
        self.right[at].cast::<W>().wrapping_add(first)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn thin_512<W: Word>(columns: &mut Columns, of: &OfSums) {
    // SAFETY: the caller's.
    unsafe { thin::<W>(columns, of) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn thin_256<W: Word>(columns: &mut Columns, of: &OfSums) {
    // SAFETY: the caller's.
    unsafe { thin::<W>(columns, of) }
}

#[inline(always)]
unsafe fn thin<W: Word>(columns: &mut Columns, of: &OfSums) {
    let mut block = Wiped::<W>::zeros(BLOCK);
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
                factor = factor.add(unsafe { W::get(columns.of_right(j, *component, k)) });
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
            let column = columns.of_right::<W>(j, *component, first);
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
