//! Half-gates, four gates side by side.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use super::blocks::{Blocks, Constants, each, hashes};

/// Half-gates of `N` groups of four gates: from zero-labels, σ-free keys of both hashes, Δ and σ(Δ) of each group, the zero-labels of the results and
/// T_G and T_E.
#[inline(always)]
pub(crate) unsafe fn garble<B: Blocks, const N: usize>(
    a: [B; N],
    b: [B; N],
    keys: [[B; 2]; N],
    offsets: [[B; 2]; N],
    constants: &Constants<B>,
) -> [[B; 3]; N] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut labels = [[a[0]; 2]; N];
        let mut sigma = [a[0]; N];
        each!(n < N, {
            labels[n] = [a[n].sigma(), b[n].sigma()];
            sigma[n] = offsets[n][1];
        });
        let hashes = hashes::<B, N, 2, 2>(keys, labels, sigma, constants);
        let mut out = [[a[0]; 3]; N];
        each!(n < N, {
            let [[a0, a1], [b0, b1]] = hashes[n];
            let (p, q) = (a[n].colour(), b[n].colour());
            let garbler = a0.xor(a1).xor_where(q, offsets[n][0]);
            let both = b0.xor(b1);
            let c = a0.xor(b0).xor_where(p, garbler).xor_where(q, both);
            out[n] = [c, garbler, both.xor(a[n])];
        });
        out
    }
}

/// The active labels of the results, from active labels and tables.
#[inline(always)]
pub(crate) unsafe fn evaluate<B: Blocks, const N: usize>(
    a: [B; N],
    b: [B; N],
    keys: [[B; 2]; N],
    tables: [[B; 2]; N],
    constants: &Constants<B>,
) -> [B; N] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut labels = [[a[0]; 2]; N];
        each!(n < N, {
            labels[n] = [a[n].sigma(), b[n].sigma()];
        });
        let hashes = hashes::<B, N, 2, 1>(keys, labels, a, constants);
        let mut out = [a[0]; N];
        each!(n < N, {
            let [[ha], [hb]] = hashes[n];
            let [garbler, evaluator] = tables[n];
            let c = ha.xor(hb).xor_where(a[n].colour(), garbler);
            out[n] = c.xor_where(b[n].colour(), evaluator.xor(a[n]));
        });
        out
    }
}
