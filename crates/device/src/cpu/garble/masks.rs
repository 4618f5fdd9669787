//! Products of authenticated garbling, four side by side.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use std::marker::PhantomData;

use super::super::tape::Product;
use super::super::vector::Kernel;
use super::Run;
use super::blocks::{Blocks, LANES, each, hashes};
use super::gates::{GateGroup, GateWalk, Wires};
use super::masked::Masked;
use super::run::{Fixed, keys, operands};

type Args<'a, B> = (
    &'a Wires,
    &'a Run<'a>,
    &'a Masked,
    &'a [Product],
    &'a Fixed<B>,
);

/// A batch of products, `N` times four side by side.
///
/// # Safety
/// As [`run`](super::run::run); arrays of `masked` lie in the workspace and have room for all products.
#[inline(always)]
pub(super) unsafe fn products<B: Blocks, const N: usize>(
    wires: &Wires,
    (run, masked): (&Run<'_>, &Masked),
    products: &[Product],
    fixed: &Fixed<B>,
) {
    // SAFETY: the caller's.
    unsafe {
        if wires.narrow() {
            B::outlined::<Batch<B, N, true>>((wires, run, masked, products, fixed));
        } else {
            B::outlined::<Batch<B, N, false>>((wires, run, masked, products, fixed));
        }
    }
}

struct Batch<B, const N: usize, const NARROW: bool>(PhantomData<B>);

impl<B: Blocks, const N: usize, const NARROW: bool> Kernel for Batch<B, N, NARROW> {
    type Args<'a> = Args<'a, B>;

    #[inline(always)]
    unsafe fn run((wires, run, masked, products, fixed): Args<'_, B>) {
        let mut items = GateWalk::new::<NARROW>(products, &run.tape.pairs, *wires);
        // SAFETY: as `products`.
        unsafe {
            while items.left::<NARROW>() >= N {
                let mut group = [items.next::<NARROW>(); N];
                for n in 1..N {
                    group[n] = items.next::<NARROW>();
                }
                group_of::<B, N, NARROW>(wires, (run, masked), &group, fixed);
            }
            while N > 1 && items.left::<NARROW>() > 0 {
                let group = [items.next::<NARROW>()];
                group_of::<B, 1, NARROW>(wires, (run, masked), &group, fixed);
            }
        }
    }
}

/// All operands of a group are read before a result is written: that may be in the place of an operand.
#[inline(always)]
unsafe fn group_of<B: Blocks, const N: usize, const NARROW: bool>(
    wires: &Wires,
    (run, masked): (&Run<'_>, &Masked),
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) {
    // SAFETY: as `products`.
    unsafe {
        let [a, b] = operands::<B, N, NARROW>(group, fixed);
        match *masked {
            Masked::Masks {
                results,
                operands: to,
            } => {
                each!(n < N, {
                    let lanes = group[n].lanes;
                    let array = |at| group[n].array::<NARROW>(wires, run, at);
                    array(to[0]).store_part::<B, NARROW>(a[n], lanes);
                    array(to[1]).store_part::<B, NARROW>(b[n], lanes);
                    let out = array(results).load_part::<B, NARROW>(lanes);
                    group[n].out.store::<B, NARROW>(out, lanes);
                });
            }
            Masked::Garbler { masks, z, labels } => {
                let keys = keys::<B, N, 2, NARROW>(run, group, fixed);
                garble::<B, N, NARROW>(wires, run, (a, b, keys), (masks, z, labels), group, fixed);
            }
            Masked::Evaluator {
                masks,
                z,
                labels,
                public,
            } => {
                let keys = keys::<B, N, 2, NARROW>(run, group, fixed);
                let at = (masks, z, labels, public);
                evaluate::<B, N, NARROW>(wires, run, (a, b, keys), at, group, fixed);
            }
        }
    }
}

/// Both operands of a group, and the keys of their hashes.
type Operands<B, const N: usize> = ([B; N], [B; N], [[B; 2]; N]);

#[inline(always)]
unsafe fn garble<B: Blocks, const N: usize, const NARROW: bool>(
    wires: &Wires,
    run: &Run<'_>,
    (a, b, keys): Operands<B, N>,
    (masks, z, labels): ([usize; 6], usize, usize),
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) {
    // SAFETY: as `products`.
    unsafe {
        let mut sigma = [[fixed.start; 2]; N];
        each!(n < N, {
            sigma[n] = [a[n].sigma(), b[n].sigma()];
        });
        let (offset, of_offset) = fixed.offset;
        let made = hashes::<B, N, 2, 2>(keys, sigma, [of_offset; N], &fixed.constants);
        each!(n < N, {
            let (gates, [[a0, a1], [b0, b1]]) = (&group[n], made[n]);
            let lanes = gates.lanes;
            let mut own = [fixed.start; 3];
            for k in 0..3 {
                let mac = gates.array::<NARROW>(wires, run, masks[2 * k]);
                let key = gates.array::<NARROW>(wires, run, masks[2 * k + 1]);
                let mac = mac.load_part::<B, NARROW>(lanes);
                let key = key.load_part::<B, NARROW>(lanes);
                own[k] = key.xor_where(mac.colour(), offset);
            }
            let c = a0.xor3(b0, own[2]);
            let bits = c.second();
            let out = c.xor_where(bits, B::splat(2));
            let tables = [a0.xor3(a1, own[1]), b0.xor3(b1, a[n].xor(own[0]))];
            for k in 0..2 {
                let to = gates.table::<NARROW>(wires, run, k, (16, 2));
                to.store_part::<B, NARROW>(tables[k], lanes);
            }
            put_bits::<NARROW>(wires, run, gates, z, B::number(bits));
            let to = gates.array::<NARROW>(wires, run, labels);
            to.store_part::<B, NARROW>(out, lanes);
            gates.out.store::<B, NARROW>(out, lanes);
        });
    }
}

#[inline(always)]
unsafe fn evaluate<B: Blocks, const N: usize, const NARROW: bool>(
    wires: &Wires,
    run: &Run<'_>,
    (a, b, keys): Operands<B, N>,
    (masks, z, labels, public): ([usize; 3], usize, usize, [usize; 3]),
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) {
    // SAFETY: as `products`.
    unsafe {
        let mut sigma = [[fixed.start; 2]; N];
        each!(n < N, {
            sigma[n] = [a[n].sigma(), b[n].sigma()];
        });
        let made = hashes::<B, N, 2, 1>(keys, sigma, a, &fixed.constants);
        each!(n < N, {
            let (gates, [[ha], [hb]]) = (&group[n], made[n]);
            let lanes = gates.lanes;
            let mut own = [fixed.start; 3];
            for k in 0..3 {
                let mac = gates.array::<NARROW>(wires, run, masks[k]);
                own[k] = mac.load_part::<B, NARROW>(lanes);
            }
            let mut tables = [fixed.start; 2];
            for k in 0..2 {
                let from = gates.table::<NARROW>(wires, run, k, (16, 2));
                tables[k] = from.load_part::<B, NARROW>(lanes);
            }
            let (of_a, of_b) = (a[n].second(), b[n].second());
            let c = ha.xor3(hb, own[2]);
            let c = c.xor_where(of_a, tables[0].xor(own[1]));
            let c = c.xor_where(of_b, tables[1].xor3(a[n], own[0]));
            let z = bits::<NARROW>(wires, run, gates, z);
            let out = c.xor_where(B::bits(z), B::splat(2));
            put_bits::<NARROW>(wires, run, gates, public[0], B::number(of_a));
            put_bits::<NARROW>(wires, run, gates, public[1], B::number(of_b));
            put_bits::<NARROW>(wires, run, gates, public[2], B::number(out.second()));
            let to = gates.array::<NARROW>(wires, run, labels);
            to.store_part::<B, NARROW>(out, lanes);
            gates.out.store::<B, NARROW>(out, lanes);
        });
    }
}

/// Sets bits of the blocks of a group, which were 0.
#[inline(always)]
unsafe fn put_bits<const NARROW: bool>(
    wires: &Wires,
    run: &Run<'_>,
    gates: &GateGroup,
    at: usize,
    bits: u8,
) {
    // SAFETY: there is a bit for each block.
    unsafe {
        for lane in 0..gates.lanes {
            let number = if NARROW {
                gates.block(wires, run, lane)
            } else {
                gates.block(wires, run, 0) + lane
            };
            let to = wires.base.wrapping_add(at + number / 8);
            to.write(to.read() | (bits >> lane & 1) << (number % 8));
        }
    }
}

/// Bits of the blocks of a group.
#[inline(always)]
unsafe fn bits<const NARROW: bool>(
    wires: &Wires,
    run: &Run<'_>,
    gates: &GateGroup,
    at: usize,
) -> u8 {
    let mut bits = 0;
    for lane in 0..gates.lanes {
        let number = if NARROW {
            gates.block(wires, run, lane)
        } else {
            gates.block(wires, run, 0) + lane
        };
        // SAFETY: there is a bit for each block.
        let byte = unsafe { wires.base.wrapping_add(at + number / 8).read() };
        bits |= (byte >> (number % 8) & 1) << lane;
    }
    debug_assert!(gates.lanes <= LANES);
    bits
}
