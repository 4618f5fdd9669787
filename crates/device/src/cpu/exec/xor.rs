//! XOR of slots: most of what a bit circuit is made of.

use super::super::vector::{VECTOR, Vector};
use super::RowAddresses;

/// out = a ^ b, all components.
#[inline(always)]
pub(in crate::cpu) unsafe fn xor2<V: Vector>(rows: RowAddresses, a: u32, b: u32, out: u32) {
    for component in 0..rows.components {
        // SAFETY: every component of a row is `rows.column` bytes, whole vectors.
        unsafe {
            let [a, b, out] = rows.component_of(component, [a, b, out]);
            let mut at = 0;
            // Four at a time: the loop itself costs more than a vector.
            while at + 4 * VECTOR <= rows.column {
                let mut x = [V::splat(0); 4];
                for k in 0..4 {
                    x[k] = V::load(a.add(at + k * VECTOR)).xor(V::load(b.add(at + k * VECTOR)));
                }
                for k in 0..4 {
                    x[k].store(out.add(at + k * VECTOR));
                }
                at += 4 * VECTOR;
            }
            while at < rows.column {
                V::load(a.add(at))
                    .xor(V::load(b.add(at)))
                    .store(out.add(at));
                at += VECTOR;
            }
        }
    }
}

/// out = a ^ b ^ c, all components.
#[inline(always)]
pub(in crate::cpu) unsafe fn xor3<V: Vector>(rows: RowAddresses, a: u32, b: u32, c: u32, out: u32) {
    for component in 0..rows.components {
        // SAFETY: as `xor2`.
        unsafe {
            let [a, b, c, out] = rows.component_of(component, [a, b, c, out]);
            let mut at = 0;
            while at + 4 * VECTOR <= rows.column {
                let mut x = [V::splat(0); 4];
                for k in 0..4 {
                    let at = at + k * VECTOR;
                    x[k] = V::load(a.add(at)).xor3(V::load(b.add(at)), V::load(c.add(at)));
                }
                for k in 0..4 {
                    x[k].store(out.add(at + k * VECTOR));
                }
                at += 4 * VECTOR;
            }
            while at < rows.column {
                V::load(a.add(at))
                    .xor3(V::load(b.add(at)), V::load(c.add(at)))
                    .store(out.add(at));
                at += VECTOR;
            }
        }
    }
}

/// One part of out = XOR of any number of rows and a constant; the running value stays in a register.
#[inline(always)]
pub(in crate::cpu) unsafe fn xor<V: Vector>(
    rows: RowAddresses,
    srcs: &[u32],
    component: usize,
    constant: V,
    out: *mut u8,
) {
    // SAFETY: every component of a row is `rows.column` bytes; `out` is such a row.
    unsafe {
        let to = out.add(component);
        match srcs.len() {
            0 => xor_n::<V, 0>(rows, srcs, component, constant, to),
            1 => xor_n::<V, 1>(rows, srcs, component, constant, to),
            2 => xor_n::<V, 2>(rows, srcs, component, constant, to),
            3 => xor_n::<V, 3>(rows, srcs, component, constant, to),
            4 => xor_n::<V, 4>(rows, srcs, component, constant, to),
            5 => xor_n::<V, 5>(rows, srcs, component, constant, to),
            6 => xor_n::<V, 6>(rows, srcs, component, constant, to),
            _ => {
                for at in (component..component + rows.column).step_by(VECTOR) {
                    let mut x = constant;
                    for &s in srcs {
                        x = x.xor(V::load(rows.at(s).add(at)));
                    }
                    x.store(out.add(at));
                }
            }
        }
    }
}

/// As [`xor`] for `N` rows: addresses are computed once.
#[inline(always)]
unsafe fn xor_n<V: Vector, const N: usize>(
    rows: RowAddresses,
    srcs: &[u32],
    component: usize,
    constant: V,
    to: *mut u8,
) {
    let mut from = [rows.base; N];
    for k in 0..N {
        from[k] = rows.at(srcs[k]).wrapping_add(component);
    }
    for at in (0..rows.column).step_by(VECTOR) {
        // SAFETY: as in `xor`.
        unsafe {
            let mut x = constant;
            let mut k = 0;
            while k + 2 <= N {
                x = x.xor3(V::load(from[k].add(at)), V::load(from[k + 1].add(at)));
                k += 2;
            }
            if k < N {
                x = x.xor(V::load(from[k].add(at)));
            }
            x.store(to.add(at));
        }
    }
}
