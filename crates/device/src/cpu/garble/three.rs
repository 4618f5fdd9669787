//! Three-halves, four gates side by side.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use super::blocks::{Blocks, Constants, each, hashes};

/// The terms that control bits r and r' add to a result: of labels A and B the halves (A_L ⊕ A_R ⊕ B_L, A_L ⊕ B_R) and (A_L ⊕ B_R, A_R ⊕
/// B_L ⊕ B_R).
#[inline(always)]
unsafe fn controlled<B: Blocks>(a: B, b: B) -> [B; 2] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let zero = a.xor(a);
        [
            a.swap().xor3(b, B::blend(a, zero)),
            a.xor3(b.swap(), B::blend(zero, b)),
        ]
    }
}

/// What a table is made of, and the result: C, then the label G_0 ‖ G_1, then one whose high half is G_2; and z_0 to z_4.
pub(crate) type Garbled<B> = ([B; 3], [<B as Blocks>::Bits; 5]);

/// Three-halves of `N` groups of four gates: from zero-labels, the keys of the hashes, dice, Δ and σ(Δ).
#[inline(always)]
pub(crate) unsafe fn garble<B: Blocks, const N: usize>(
    a: [B; N],
    b: [B; N],
    keys: [[B; 3]; N],
    dice: [[B::Bits; 2]; N],
    (offset, sigma): (B, B),
    constants: &Constants<B>,
) -> [Garbled<B>; N] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut labels = [[offset; 3]; N];
        let (mut a0, mut b0) = (a, b);
        each!(n < N, {
            a0[n] = a[n].xor_where(a[n].colour(), offset);
            b0[n] = b[n].xor_where(b[n].colour(), offset);
            let (x, y) = (a0[n].sigma(), b0[n].sigma());
            labels[n] = [x, y, x.xor(y)];
        });
        let hashes = hashes::<B, N, 3, 2>(keys, labels, [sigma; N], constants);
        let of_b = controlled(offset.xor(offset), offset);
        let of_both = controlled(offset, offset);
        let none = [dice[0][0]; 5];
        let mut out = [([offset; 3], none); N];
        each!(n < N, {
            let [[ha, ha1], [hb, hb1], [hx, hx1]] = hashes[n];
            let (p, q) = (a[n].colour(), b[n].colour());
            let (one_a, one_b) = (B::not_bits(p), B::not_bits(q));
            let [r, s] = dice[n];
            let differ = B::xor_bits(p, q);
            let [of_r, of_s] = controlled(a0[n], b0[n]);
            let (x0, x1) = (B::join(hx, hx), B::join(hx1, hx1));
            // Colours 0, 0.
            let y = B::join(ha, hb).xor3(x0, B::blend(b0[n], a0[n]));
            let y = y.xor_where(r, of_r).xor_where(s, of_s);
            let c = y.xor_where(B::and_bits(p, q), offset);
            // Colours 0, 1, of which the high half counts.
            let y = B::join(ha, hb).xor3(x1, b0[n].xor(offset));
            let y = y.xor_where(B::xor_bits(r, differ), of_r.xor(of_b[0]));
            let y = y.xor_where(B::xor_bits(s, one_a), of_s.xor(of_b[1]));
            let g2 = y.xor(c).xor_where(B::and_bits(p, one_b), offset);
            // Colours 1, 1.
            let y = B::join(ha1, hb1).xor(x0);
            let y = y.xor_where(B::xor_bits(r, one_a), of_r.xor(of_both[0]));
            let y = y.xor_where(B::xor_bits(s, one_b), of_s.xor(of_both[1]));
            let g01 = y.xor(c).xor_where(B::and_bits(one_a, one_b), offset);
            let z = [
                B::xor_bits(r, ha.xor(hx).high_colour()),
                B::xor_bits(s, hb.xor(hx).high_colour()),
                B::xor_bits(one_a, ha.xor(ha1).high_colour()),
                B::xor_bits(one_b, hb.xor(hb1).high_colour()),
                B::xor_bits(differ, hx.xor(hx1).high_colour()),
            ];
            out[n] = ([c, g01, g2], z);
        });
        out
    }
}

/// The active labels of the results, from active labels and tables: G_0, G_1, G_2 as low halves, and z_0 to z_4.
#[inline(always)]
pub(crate) unsafe fn evaluate<B: Blocks, const N: usize>(
    a: [B; N],
    b: [B; N],
    keys: [[B; 3]; N],
    tables: [([B; 3], [B::Bits; 5]); N],
    constants: &Constants<B>,
) -> [B; N] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut labels = [[a[0]; 3]; N];
        each!(n < N, {
            let (x, y) = (a[n].sigma(), b[n].sigma());
            labels[n] = [x, y, x.xor(y)];
        });
        let hashes = hashes::<B, N, 3, 1>(keys, labels, a, constants);
        let mut out = [a[0]; N];
        each!(n < N, {
            let [[ha], [hb], [hx]] = hashes[n];
            let ([g0, g1, g2], z) = tables[n];
            let (j, k) = (a[n].colour(), b[n].colour());
            let differ = B::xor_bits(j, k);
            let common = B::and_bits(differ, z[4]);
            let r = B::xor_bits(B::xor_bits(z[0], B::and_bits(j, z[2])), common);
            let s = B::xor_bits(B::xor_bits(z[1], B::and_bits(k, z[3])), common);
            let r = B::xor_bits(r, ha.xor(hx).high_colour());
            let s = B::xor_bits(s, hb.xor(hx).high_colour());
            let [of_r, of_s] = controlled(a[n], b[n]);
            let c = B::join(ha, hb).xor(B::join(hx, hx));
            let c = c.xor_where(r, of_r).xor_where(s, of_s);
            let c = c.xor_high_where(B::not_bits(j), b[n]);
            let c = c.xor_low_where(B::not_bits(k), a[n]);
            let g01 = B::join(g0, g1);
            let c = c.xor_high_where(j, g01).xor_low_where(k, g01);
            out[n] = c.xor_where(differ, B::join(g2, g2));
        });
        out
    }
}
