//! A tape over labels, generic over the vectors. No branch and no address here depends on a label.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use std::marker::PhantomData;

use super::super::exec::{self, xor};
use super::super::tape::{NO_JOB_WIDE, NO_ROW, Product, Row, TapeOp, Xor};
use super::super::vector::{Kernel, Vector};
use super::super::workspace::Memory;
use super::blocks::{Blocks, Constants, LANES, each};
use super::gates::{GateGroup, GateWalk, Wires};
use super::{Dice, Each, Run, half, masks, narrow, one, three};
use crate::garble::{Garbling, ROW_BITS};

/// From the tweaks of a product of half-gates to those of the next one.
const PRODUCT: u64 = 2 << ROW_BITS;

/// What is the same for all gates of a run.
pub(super) struct Fixed<B> {
    pub(super) start: B,
    /// Δ and σ(Δ).
    pub(super) offset: (B, B),
    pub(super) constants: Constants<B>,
    /// 1 in every high half.
    pub(super) one: B,
    /// Of half-gates of one row: from the tweaks of a product to those of the four from it on, and to those of the fourth product behind it.
    pub(super) steps: B,
    pub(super) four: B,
}

/// Runs the tape, `N` times four half-gates side by side, or `T` times four three-halves.
///
/// # Safety
/// The instruction sets of `V` and `B` are enabled in the caller; the tape was compiled from a program that was checked against the
/// workspace's layout, the workspace has `tape.scratch` scratch rows, and the tables lie in the workspace with room for all products.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, B: Blocks, const N: usize, const T: usize>(
    memory: &mut Memory,
    run: &Run<'_>,
    dice: &mut Dice,
) {
    let tape = run.tape;
    let strides = memory.all_strides[tape.slots as usize];
    let job_wide = memory.all_strides[tape.job_wide as usize];
    let part = usize::from(run.part);
    let wires = Wires {
        slots: strides.offset + part * strides.component,
        slot: strides.column,
        rows: memory.frame.rows as usize,
        base: memory.base(),
    };
    if wires.rows == 0 {
        return;
    }
    // SAFETY: rows and job-wide values named by the tape exist (caller), and every access below stays within one of them or within a message.
    unsafe {
        let offset = run.offset.unwrap_or(0);
        let fixed = Fixed::<B> {
            start: B::splat(run.start),
            offset: (B::splat(offset), B::splat(offset).sigma()),
            constants: Constants::new(),
            one: B::tweak(1),
            steps: B::tweaks([0, PRODUCT, 2 * PRODUCT, 3 * PRODUCT]),
            four: B::tweak(4 * PRODUCT),
        };
        let job_value = |job_value: u32| {
            if job_value == NO_JOB_WIDE {
                return 0;
            }
            let at =
                job_wide.offset + part * job_wide.component + job_value as usize * job_wide.column;
            let label = wires.base.wrapping_add(at).cast::<[u8; 16]>();
            u128::from_le_bytes(label.read_unaligned())
        };
        for op in &tape.ops {
            match *op {
                TapeOp::Xors { start, len } => {
                    xors::<V>(&wires, &tape.xors[start as usize..][..len as usize]);
                }
                TapeOp::Xor {
                    start,
                    len,
                    one,
                    job_value: of,
                    out,
                } => {
                    let bit = u128::from(one).wrapping_neg();
                    let rows = &tape.srcs[start as usize..][..len as usize];
                    sum::<V>(&wires, rows, (bit & run.one) ^ job_value(of), out);
                    if let (true, Some(each)) = (one, &run.each) {
                        add_offsets::<B>(&wires, each, out);
                    }
                }
                TapeOp::Spread { job_value: of, out } => sum::<V>(&wires, &[], job_value(of), out),
                TapeOp::Products { start, len } => {
                    let products = &tape.products[start as usize..][..len as usize];
                    if let Some(masked) = &run.masked {
                        masks::products::<B, N>(&wires, (run, masked), products, &fixed);
                        continue;
                    }
                    dice.throw::<V>(run, products);
                    let gates = (&wires, run, products, &*dice, &fixed);
                    if run.offset.is_some() {
                        gates_of::<B, N, T, true>(gates);
                    } else {
                        gates_of::<B, N, T, false>(gates);
                    }
                }
                // Of rings alone.
                _ => {}
            }
        }
    }
}

/// A run of short sums.
#[inline(always)]
unsafe fn xors<V: Vector>(wires: &Wires, xors: &[Xor]) {
    // SAFETY: as `run`.
    unsafe {
        if wires.narrow() {
            narrow::xors(wires, xors);
            return;
        }
        let rows = slots(wires);
        for x in xors {
            if x.c == NO_ROW {
                xor::xor2::<V>(rows, x.a, x.b, x.out);
            } else {
                xor::xor3::<V>(rows, x.a, x.b, x.c, x.out);
            }
        }
    }
}

/// out = the XOR of rows and of a label that all have.
#[inline(always)]
unsafe fn sum<V: Vector>(wires: &Wires, rows: &[Row], constant: u128, out: Row) {
    // SAFETY: as `run`.
    unsafe {
        if wires.narrow() {
            narrow::sum(wires, rows, constant, out);
            return;
        }
        let constant = [constant.to_le(); LANES];
        let constant = V::load(constant.as_ptr().cast());
        xor::xor::<V>(slots(wires), rows, 0, constant, wires.at(out));
    }
}

#[inline(always)]
fn slots(wires: &Wires) -> exec::RowAddresses {
    exec::RowAddresses {
        base: wires.base,
        slots: wires.slots,
        column: wires.slot,
        component: wires.slot,
        components: 1,
        packed: 16 * wires.rows,
    }
}

/// A public 1 where each row has its own offset.
#[inline(always)]
unsafe fn add_offsets<B: Blocks>(wires: &Wires, each: &Each, out: Row) {
    let Some(offsets) = each.offsets else { return };
    for row in (0..wires.rows).step_by(LANES) {
        let lanes = (wires.rows - row).min(LANES);
        let to = wires.at(out).wrapping_add(16 * row);
        // SAFETY: as `run`; offsets are an item of labels.
        unsafe {
            let offset = B::load_part(wires.base.wrapping_add(offsets + 16 * row), lanes);
            B::load_part(to, lanes).xor(offset).store_part(to, lanes);
        }
    }
}

/// What a batch of products is done with.
type Gates<'a, B> = (
    &'a Wires,
    &'a Run<'a>,
    &'a [Product],
    &'a Dice,
    &'a Fixed<B>,
);

/// A batch of products by its kernel, of the garbler or of the evaluator.
#[inline(always)]
unsafe fn gates_of<B: Blocks, const N: usize, const T: usize, const GARBLER: bool>(
    gates: Gates<'_, B>,
) {
    let (wires, run, products, ..) = gates;
    let half = run.scheme == Garbling::HalfGates;
    // SAFETY: as `run`.
    unsafe {
        if run.each.is_some() {
            // Half-gates: no other tables are made of circuits that have a row each.
            B::outlined::<Batch<B, N, GARBLER, false, true, false>>(gates);
        } else if wires.rows == 1 && half && one::in_order(products) {
            B::outlined::<OneRow<B, N, GARBLER>>(gates);
        } else if wires.narrow() && half {
            B::outlined::<Batch<B, 1, GARBLER, true, false, false>>(gates);
        } else if wires.narrow() {
            B::outlined::<Batch<B, 1, GARBLER, true, false, true>>(gates);
        } else if half {
            B::outlined::<Batch<B, N, GARBLER, false, false, false>>(gates);
        } else {
            B::outlined::<Batch<B, T, GARBLER, false, false, true>>(gates);
        }
    }
}

/// A batch of products, `N` times four gates side by side, at the garbler or at the evaluator. `NARROW` where there are fewer rows than lanes, `EACH` where rows have offsets and
/// start points of their own, `THREE` for three-halves.
struct Batch<
    B,
    const N: usize,
    const GARBLER: bool,
    const NARROW: bool,
    const EACH: bool,
    const THREE: bool,
>(PhantomData<B>);

impl<
    B: Blocks,
    const N: usize,
    const GARBLER: bool,
    const NARROW: bool,
    const EACH: bool,
    const THREE: bool,
> Kernel for Batch<B, N, GARBLER, NARROW, EACH, THREE>
{
    type Args<'a> = Gates<'a, B>;

    #[inline(always)]
    unsafe fn run((wires, run, products, dice, fixed): Gates<'_, B>) {
        let mut items = GateWalk::new::<NARROW>(products, &run.tape.pairs, *wires);
        // SAFETY: as `run`.
        unsafe {
            while items.left::<NARROW>() >= N {
                let mut group = [items.next::<NARROW>(); N];
                for n in 1..N {
                    group[n] = items.next::<NARROW>();
                }
                group_of::<B, N, GARBLER, NARROW, EACH, THREE>(wires, run, &group, dice, fixed);
            }
            // One at a time there are none left, and nothing is compiled for them.
            while N > 1 && items.left::<NARROW>() > 0 {
                let group = [items.next::<NARROW>()];
                group_of::<B, 1, GARBLER, NARROW, EACH, THREE>(wires, run, &group, dice, fixed);
            }
        }
    }
}

/// A batch of products on one row. More gates than there are cost less than several groups, each of which waits for the rounds of AES.
struct OneRow<B, const N: usize, const GARBLER: bool>(PhantomData<B>);

impl<B: Blocks, const N: usize, const GARBLER: bool> Kernel for OneRow<B, N, GARBLER> {
    type Args<'a> = Gates<'a, B>;

    #[inline(always)]
    unsafe fn run((wires, run, products, _, fixed): Gates<'_, B>) {
        let mut at = 0;
        // SAFETY: as `run`.
        unsafe {
            while products.len() - at > 2 * LANES && N > 1 {
                one::group::<B, N, GARBLER>(wires, run, products, at, fixed);
                at = products.len().min(at + LANES * N);
            }
            while at < products.len() {
                one::group::<B, 1, GARBLER>(wires, run, products, at, fixed);
                at += LANES;
            }
        }
    }
}

/// All operands of a group are read before a result is written: that may be in the place of an operand.
#[inline(always)]
unsafe fn group_of<
    B: Blocks,
    const N: usize,
    const GARBLER: bool,
    const NARROW: bool,
    const EACH: bool,
    const THREE: bool,
>(
    wires: &Wires,
    run: &Run<'_>,
    group: &[GateGroup; N],
    dice: &Dice,
    fixed: &Fixed<B>,
) {
    // SAFETY: as `run`.
    unsafe {
        if THREE {
            three_halves::<B, N, GARBLER, NARROW>(wires, run, group, dice, fixed);
        } else {
            half_gates::<B, N, GARBLER, NARROW, EACH>(wires, run, group, fixed);
        }
    }
}

/// Operands of a group.
#[inline(always)]
pub(super) unsafe fn operands<B: Blocks, const N: usize, const NARROW: bool>(
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) -> [[B; N]; 2] {
    let mut operands = [[fixed.start; N]; 2];
    each!(n < N, {
        // SAFETY: as `run`.
        unsafe {
            operands[0][n] = group[n].a.load::<B, NARROW>();
            operands[1][n] = group[n].b.load::<B, NARROW>();
        }
    });
    operands
}

/// Keys of a group: the start point ⊕ tweaks in the high halves.
#[inline(always)]
pub(super) unsafe fn keys<B: Blocks, const N: usize, const K: usize, const NARROW: bool>(
    run: &Run<'_>,
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) -> [[B; K]; N] {
    let mut keys = [[fixed.start; K]; N];
    each!(n < N, {
        // SAFETY: as `run`.
        unsafe {
            let mut numbers = group[n].numbers::<NARROW>(run);
            for k in 0..LANES {
                numbers[k] *= K as u64;
            }
            let mut tweaks = B::tweaks(numbers);
            for k in 0..K {
                keys[n][k] = fixed.start.xor(tweaks);
                tweaks = tweaks.plus(fixed.one);
            }
        }
    });
    keys
}

/// Labels of the rows of an item, out of an item of labels of the workspace.
#[inline(always)]
unsafe fn of_rows<B: Blocks>(wires: &Wires, at: usize, gates: &GateGroup) -> B {
    let from = wires.base.wrapping_add(at + 16 * gates.which[0].1);
    // SAFETY: as `run`; the item has a label for each row.
    unsafe { B::load_part(from, gates.lanes) }
}

/// Δ and σ(Δ) of the rows of an item.
#[inline(always)]
unsafe fn offset_of<B: Blocks>(wires: &Wires, run: &Run<'_>, gates: &GateGroup) -> [B; 2] {
    let offsets = run.each.as_ref().and_then(|each| each.offsets);
    // SAFETY: as `run`.
    unsafe {
        let offset = offsets.map_or(B::splat(0), |at| of_rows(wires, at, gates));
        [offset, offset.sigma()]
    }
}

/// Keys of a group where each row has its own start point: the tweak is the same in all rows.
#[inline(always)]
unsafe fn keys_of_each<B: Blocks, const N: usize>(
    wires: &Wires,
    run: &Run<'_>,
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) -> [[B; 2]; N] {
    let starts = run.each.as_ref().map_or(0, |each| each.starts);
    let mut keys = [[fixed.start; 2]; N];
    each!(n < N, {
        // SAFETY: as `run`.
        unsafe {
            let product = run.first + u64::from(group[n].index[0]);
            let start: B = of_rows(wires, starts, &group[n]);
            let first = start.xor(B::tweak((product << ROW_BITS) * 2));
            // The tweak is even.
            keys[n] = [first, first.xor(fixed.one)];
        }
    });
    keys
}

#[inline(always)]
unsafe fn half_gates<
    B: Blocks,
    const N: usize,
    const GARBLER: bool,
    const NARROW: bool,
    const EACH: bool,
>(
    wires: &Wires,
    run: &Run<'_>,
    group: &[GateGroup; N],
    fixed: &Fixed<B>,
) {
    // SAFETY: as `run`.
    unsafe {
        let [a, b] = operands::<B, N, NARROW>(group, fixed);
        let mut offsets = [<[B; 2]>::from(fixed.offset); N];
        let keys = if EACH {
            each!(n < N, {
                offsets[n] = offset_of(wires, run, &group[n]);
            });
            keys_of_each(wires, run, group, fixed)
        } else {
            keys::<B, N, 2, NARROW>(run, group, fixed)
        };
        if GARBLER {
            let out = half::garble(a, b, keys, offsets, &fixed.constants);
            each!(n < N, {
                let (gates, [c, garbler, evaluator]) = (&group[n], out[n]);
                gates.out.store::<B, NARROW>(c, gates.lanes);
                let to = |k| gates.table::<NARROW>(wires, run, k, (16, 2));
                to(0).store_part::<B, NARROW>(garbler, gates.lanes);
                to(1).store_part::<B, NARROW>(evaluator, gates.lanes);
            });
            return;
        }
        let mut tables = [[fixed.start; 2]; N];
        each!(n < N, {
            for k in 0..2 {
                let from = group[n].table::<NARROW>(wires, run, k, (16, 2));
                tables[n][k] = from.load_part::<B, NARROW>(group[n].lanes);
            }
        });
        let out = half::evaluate(a, b, keys, tables, &fixed.constants);
        each!(n < N, {
            group[n].out.store::<B, NARROW>(out[n], group[n].lanes);
        });
    }
}

#[inline(always)]
unsafe fn three_halves<B: Blocks, const N: usize, const GARBLER: bool, const NARROW: bool>(
    wires: &Wires,
    run: &Run<'_>,
    group: &[GateGroup; N],
    dice: &Dice,
    fixed: &Fixed<B>,
) {
    // SAFETY: as `run`.
    unsafe {
        let [a, b] = operands::<B, N, NARROW>(group, fixed);
        let keys = keys::<B, N, 3, NARROW>(run, group, fixed);
        if GARBLER {
            let mut thrown = [[B::bits(0); 2]; N];
            each!(n < N, {
                let [r, s] = dice.of::<NARROW>(&group[n]);
                thrown[n] = [B::bits(r), B::bits(s)];
            });
            let out = three::garble(a, b, keys, thrown, fixed.offset, &fixed.constants);
            each!(n < N, {
                let (gates, ([c, g01, g2], z)) = (&group[n], out[n]);
                gates.out.store::<B, NARROW>(c, gates.lanes);
                let halves = [g01.swap(), g01, g2.swap()];
                for k in 0..3 {
                    let to = gates.table::<NARROW>(wires, run, k, (8, 3));
                    to.store_halves::<B, NARROW>(halves[k], gates.lanes);
                }
                for k in 0..z.len() {
                    gates.put_bits::<NARROW>(wires, run, k, B::number(z[k]));
                }
            });
            return;
        }
        let mut tables = [([fixed.start; 3], [B::bits(0); 5]); N];
        each!(n < N, {
            for k in 0..3 {
                let from = group[n].table::<NARROW>(wires, run, k, (8, 3));
                tables[n].0[k] = from.load_halves::<B, NARROW>(group[n].lanes);
            }
            for k in 0..5 {
                tables[n].1[k] = B::bits(group[n].bits::<NARROW>(wires, run, k));
            }
        });
        let out = three::evaluate(a, b, keys, tables, &fixed.constants);
        each!(n < N, {
            group[n].out.store::<B, NARROW>(out[n], group[n].lanes);
        });
    }
}
