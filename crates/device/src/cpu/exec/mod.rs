//! The kernels: a tape over a workspace, generic over the vector. No branch and no address here depends on a value.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

pub(super) mod columns;
mod dot;
mod groups;
mod product;
mod ring;
pub(super) mod templates;
mod terms;
pub(super) mod xor;

use std::marker::PhantomData;

use veil_math::Ring;

use super::tape::{NO_JOB_WIDE, NO_ROW, Product, Tape, TapeOp};
use super::vector::{Domain, GROUP, Kernel, RoundKeys, VECTOR, Vector};
use super::workspace::{Memory, RegionStrides};
use crate::Form;
use crate::layout::Span;
use dot::dot;
use product::products_of;
pub(super) use ring::step;
use ring::{BitOps, Z32Ops, Z64Ops, Z128Ops, element, fill, plus, set_element, times, total, zip};
pub(super) use terms::{Shape, shape_of};
use xor::{xor, xor2, xor3};

/// A call with its key at hand.
#[derive(Clone, Copy)]
pub(super) struct Mask<'a> {
    pub(super) key: &'a RoundKeys,
    pub(super) domain: Domain,
    pub(super) first: u64,
}

/// Where a message of each cross term begins in the workspace, if it lies apart from the results.
pub(super) type Offsets = [Option<usize>; Form::MOST_CROSSES];

/// Everything a run of a tape needs.
pub(super) struct Run<'a> {
    pub(super) tape: &'a Tape,
    pub(super) constants: u8,
    pub(super) form: Option<&'static Form>,
    /// Which kernel computes the form.
    pub(super) shape: Shape,
    /// Components of a product that the form writes: bit c for component c.
    pub(super) writes: u8,
    /// Calls of row products, of sums.
    pub(super) calls: [&'a [Mask<'a>]; 2],
    /// Offset of product 0 in the messages of row products, of sums.
    pub(super) messages: [Offsets; 2],
    /// Counters per row product.
    pub(super) stride: u64,
    /// Where operands and masks of row products are kept, if they are.
    pub(super) trace: Option<Traced>,
}

/// Where the trace of row products begins in the workspace. Its parts are as long as those of slots.
#[derive(Clone, Copy)]
pub(super) struct Traced {
    offset: usize,
    column: usize,
    component: usize,
}

impl Traced {
    pub(super) fn at(memory: &Memory, span: Span) -> Self {
        let strides = memory.all_strides[span.region as usize];
        Traced {
            offset: memory.column(span, 0).0,
            column: strides.column,
            component: strides.component,
        }
    }
}

/// Addresses of a workspace's rows. All derived once, from a checked program and layout.
#[derive(Clone, Copy)]
pub(super) struct RowAddresses {
    pub(super) base: *mut u8,
    pub(super) slots: usize,
    /// Bytes of a component of a slot, whole vectors: the next slot's follows.
    pub(super) column: usize,
    /// Bytes from a component of a slot to the next.
    pub(super) component: usize,
    /// Components of a slot.
    pub(super) components: usize,
    /// Bytes of a component of a slot that count.
    pub(super) packed: usize,
}

impl RowAddresses {
    #[inline(always)]
    pub(super) fn at(&self, row: u32) -> *mut u8 {
        self.base
            .wrapping_add(self.slots + row as usize * self.column)
    }

    /// Where a component of each of these rows begins.
    #[inline(always)]
    fn component_of<const N: usize>(&self, component: usize, of: [u32; N]) -> [*mut u8; N] {
        let mut at = [self.base; N];
        for k in 0..N {
            at[k] = self.at(of[k]).wrapping_add(component * self.component);
        }
        at
    }

    /// Where a row product's element of the message of a cross term begins.
    #[inline(always)]
    fn message(&self, run: &Run<'_>, cross: usize, product: &Product) -> Option<*mut u8> {
        let first = run.messages[0][cross]?;
        let at = first + product.index as usize * self.packed;
        Some(self.base.wrapping_add(at))
    }
}

/// Where operations find rows, job-wide values and sums.
#[derive(Clone, Copy)]
struct Addresses {
    rows: RowAddresses,
    job_wide: RegionStrides,
    sums: RegionStrides,
}

/// Runs the tape.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller; the tape was compiled from a program that was checked against the workspace's
/// layout, the workspace has `tape.scratch` scratch rows, and the messages lie in the workspace with room for all products.
#[inline(always)]
pub(super) unsafe fn run<V: Vector>(memory: &mut Memory, run: &Run<'_>) {
    let tape = run.tape;
    let strides = memory.all_strides[tape.slots as usize];
    let components = memory.layout.regions[tape.slots as usize].components as usize;
    let rows = RowAddresses {
        base: memory.base(),
        slots: strides.offset,
        column: strides.column,
        component: strides.component,
        components,
        packed: strides.packed,
    };
    let job_wide = memory.all_strides[tape.job_wide as usize];
    let workspace = Addresses {
        rows,
        job_wide,
        sums: memory.all_strides[tape.sums_region as usize],
    };
    for op in &tape.ops {
        // SAFETY: rows, job-wide values and sums named by the tape exist (caller), and every access below stays within one of them.
        unsafe {
            match *op {
                TapeOp::Xors { start, len } => {
                    for x in &tape.xors[start as usize..][..len as usize] {
                        if x.c == NO_ROW {
                            xor2::<V>(rows, x.a, x.b, x.out);
                        } else {
                            xor3::<V>(rows, x.a, x.b, x.c, x.out);
                        }
                    }
                }
                TapeOp::Xor {
                    start,
                    len,
                    one,
                    job_value,
                    out,
                } => {
                    let srcs = &tape.srcs[start as usize..][..len as usize];
                    for component in 0..components {
                        let mut constant =
                            u64::from(one && run.constants >> component & 1 == 1).wrapping_neg();
                        if job_value != NO_JOB_WIDE {
                            let from = job_wide.offset
                                + component * job_wide.component
                                + job_value as usize * job_wide.column;
                            constant ^= u64::from(rows.base.add(from).read() & 1).wrapping_neg();
                        }
                        xor::<V>(
                            rows,
                            srcs,
                            component * rows.component,
                            V::splat(constant),
                            rows.at(out),
                        );
                    }
                }
                TapeOp::Templates { of, start, uses } => {
                    let uses = templates::Uses {
                        rows,
                        args: &tape.args[start as usize..],
                        count: uses,
                        job_wide: [job_wide.offset, job_wide.column, job_wide.component],
                        constants: run.constants,
                    };
                    templates::run::<V>(of, uses);
                }
                TapeOp::Products { start, len } => {
                    let products = &tape.products[start as usize..][..len as usize];
                    match tape.ring {
                        Ring::Bits => products_of::<V, BitOps>(rows, run, products),
                        Ring::Z32 => products_of::<V, Z32Ops>(rows, run, products),
                        Ring::Z64 => products_of::<V, Z64Ops>(rows, run, products),
                        Ring::Z128 => products_of::<V, Z128Ops>(rows, run, products),
                    }
                }
                TapeOp::ProductSum { at } => {
                    V::outlined::<SumOfProducts<V>>((workspace, run, &tape.sums[at as usize]));
                }
                _ => V::outlined::<OfRing<V>>((workspace, run, op)),
            }
        }
    }
}

/// An operation on whole rows of the ring.
struct OfRing<V>(PhantomData<V>);

impl<V: Vector> Kernel for OfRing<V> {
    type Args<'a> = (Addresses, &'a Run<'a>, &'a TapeOp);

    #[inline(always)]
    unsafe fn run((workspace, run, op): Self::Args<'_>) {
        let (tape, components) = (run.tape, workspace.rows.components);
        let Addresses {
            rows,
            job_wide,
            sums,
            ..
        } = workspace;
        // SAFETY: as `run`.
        unsafe {
            match *op {
                TapeOp::Add { a, b, out } => zip::<V>(tape.ring, rows, a, b, out, false),
                TapeOp::Sub { a, b, out } => zip::<V>(tape.ring, rows, a, b, out, true),
                TapeOp::Plus { a, c, out } => {
                    for component in 0..components {
                        let c = if run.constants >> component & 1 == 1 {
                            tape.constants[c as usize]
                        } else {
                            0
                        };
                        let [a, out] = rows.component_of(component, [a, out]);
                        plus::<V>(tape.ring, a, c, out, rows.column);
                    }
                }
                TapeOp::Times { a, c, out } => {
                    for component in 0..components {
                        let [a, out] = rows.component_of(component, [a, out]);
                        times::<V>(tape.ring, a, tape.constants[c as usize], out, rows.column);
                    }
                }
                TapeOp::Constant { c, out } => {
                    for component in 0..components {
                        let c = if run.constants >> component & 1 == 1 {
                            tape.constants[c as usize]
                        } else {
                            0
                        };
                        fill::<V>(
                            tape.ring,
                            c,
                            rows.at(out).add(component * rows.component),
                            rows.column,
                        );
                    }
                }
                TapeOp::Spread { job_value, out } => {
                    for component in 0..components {
                        let from = job_wide.offset
                            + component * job_wide.component
                            + job_value as usize * job_wide.column;
                        let value = element(tape.ring, rows.base.add(from));
                        fill::<V>(
                            tape.ring,
                            value,
                            rows.at(out).add(component * rows.component),
                            rows.column,
                        );
                    }
                }
                TapeOp::Sum { a, out } => {
                    for component in 0..components {
                        let total = total::<V>(
                            tape.ring,
                            rows.at(a).add(component * rows.component),
                            rows.packed,
                        );
                        let to =
                            sums.offset + component * sums.component + out as usize * sums.column;
                        set_element(tape.ring, rows.base.add(to), total);
                    }
                }
                // Done by `run`.
                _ => {}
            }
        }
    }
}

/// Σ over rows and pairs of a form.
struct SumOfProducts<V>(PhantomData<V>);

impl<V: Vector> Kernel for SumOfProducts<V> {
    type Args<'a> = (Addresses, &'a Run<'a>, &'a Product);

    #[inline(always)]
    unsafe fn run((workspace, run, product): Self::Args<'_>) {
        let (tape, Addresses { rows, sums, .. }) = (run.tape, workspace);
        let Some(form) = run.form else { return };
        // SAFETY: as `run`.
        unsafe {
            let mut drawn = [0u128; Form::MOST_PRF_CALLS];
            for (d, mask) in run.calls[1].iter().enumerate() {
                let mut bytes = [0; VECTOR];
                let ctr = mask.first + u64::from(product.index);
                V::prf(mask.key, mask.domain, [ctr; GROUP])[0].store(bytes.as_mut_ptr());
                drawn[d] = element(tape.ring, bytes.as_ptr());
            }
            let mut result = [0u128; Form::MOST_PARTS];
            for (c, cross) in form.crosses.iter().enumerate() {
                let mut m = match tape.ring {
                    Ring::Z32 => dot::<V, Z32Ops>(rows, run, cross.terms, product),
                    // Bits have no sums; this was checked.
                    Ring::Bits | Ring::Z64 => dot::<V, Z64Ops>(rows, run, cross.terms, product),
                    Ring::Z128 => dot::<V, Z128Ops>(rows, run, cross.terms, product),
                };
                for &(d, minus) in cross.masks {
                    m = if minus {
                        tape.ring.sub(m, drawn[d as usize])
                    } else {
                        tape.ring.add(m, drawn[d as usize])
                    };
                }
                if let Some(first) = run.messages[1][c] {
                    let message = first + product.index as usize * sums.packed;
                    set_element(tape.ring, rows.base.add(message), m);
                }
                let to = &mut result[cross.to as usize];
                *to = tape.ring.add(*to, m);
            }
            for &(d, to) in form.keeps {
                let to = &mut result[to as usize];
                *to = tape.ring.add(*to, drawn[d as usize]);
            }
            for component in 0..Form::MOST_PARTS {
                if run.writes >> component & 1 == 1 {
                    let to = sums.offset
                        + component * sums.component
                        + product.out as usize * sums.column;
                    set_element(tape.ring, rows.base.add(to), result[component]);
                }
            }
        }
    }
}

/// The stream of one column of a call: `out` is filled from block `ctr` on.
#[inline(always)]
pub(super) unsafe fn random<V: Vector>(mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
    let mut block = [0u8; VECTOR * GROUP];
    for (k, piece) in out.chunks_mut(VECTOR * GROUP).enumerate() {
        let at = ctr + (k * VECTOR * GROUP / 16) as u64;
        let whole = piece.len() == block.len();
        let into = if whole { &mut *piece } else { &mut block[..] };
        // SAFETY: the caller's instruction set; `into` has room for the group.
        unsafe {
            let vectors = V::prf(mask.key, mask.domain, from([0, 4, 8, 12], at));
            for (g, v) in vectors.into_iter().enumerate() {
                v.store(into.as_mut_ptr().add(g * VECTOR));
            }
        }
        if !whole {
            piece.copy_from_slice(&block[..piece.len()]);
        }
    }
}

#[inline(always)]
fn from(mut counters: [u64; GROUP], first: u64) -> [u64; GROUP] {
    for c in &mut counters {
        *c = c.wrapping_add(first);
    }
    counters
}

/// Blocks of one round of [`rate`].
pub(super) const RATE_BLOCKS: u64 = 1 << 18;

/// Makes `RATE_BLOCKS` blocks under two keys, as products do, and keeps nothing of them but a byte.
#[inline(always)]
pub(super) unsafe fn rate<V: Vector>(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    let mut last = [0u8; VECTOR];
    // SAFETY: the caller's instruction set; `last` is a vector long.
    unsafe {
        let mut sum = V::splat(0);
        for g in 0..RATE_BLOCKS / (2 * 16) {
            for v in V::prf_xor(
                &keys[0],
                &keys[1],
                domain,
                from([0, 4, 8, 12], ctr + 16 * g),
            ) {
                sum = sum.xor(v);
            }
        }
        sum.store(last.as_mut_ptr());
    }
    // Of all of them: the compiler leaves out blocks that no byte of the result depends on.
    last.into_iter().fold(0, |sum, byte| sum ^ byte)
}
