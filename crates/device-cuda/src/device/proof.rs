//! Steps of proofs as launches of kernels/device/proof.cu.

use veil_device::proof::{COUNTS, Proof, Side, factor, length, values};
use veil_device::{Command, Fault, PrfCall, Span};
use veil_math::P61;
use zeroize::Zeroizing;

use super::queue::{Argument, Queue};
use crate::kernels;

/// Weights and masks that a call has room for.
const WEIGHTS: usize = 8;

/// Numbers of a call that has masks, at most: it does not move while it is made.
const CALL: usize = 32;

/// What the basis polynomials of places 0, …, n - 1 are divided by: products of their distances.
fn weights(places: u32) -> Vec<u64> {
    let distance = |i: u32, j: u32| P61::signed(i64::from(i) - i64::from(j));
    let weight = |i: u32| {
        let others = (0..places).filter(|j| *j != i);
        P61::inverse(others.fold(1, |product, j| P61::mul(product, distance(i, j))))
    };
    (0..places).map(weight).collect()
}

impl Queue<'_> {
    /// Elements of a draw, from `from` on.
    fn elements(
        &self,
        prf_call: PrfCall,
        from: u32,
        count: u32,
    ) -> Result<Zeroizing<Vec<u64>>, Fault> {
        let prf = &self.key(prf_call)?.prf;
        let frame = self.memory.frame;
        let block = |k: u32| {
            let counter = prf_call.first + u64::from(k);
            u128::from_le_bytes(prf.block(prf_call.tag, frame.lane, counter, frame.chunk))
        };
        let mut elements = Zeroizing::new(Vec::with_capacity(count as usize));
        elements.extend((0..count).map(|k| P61::from_place(block(k), from)));
        Ok(elements)
    }

    /// Traced products and what was received of them, for a kernel.
    fn traced(&self, trace: Span, received: Span) -> Vec<u64> {
        let rows = u64::from(self.memory.frame.rows);
        let products = u64::from(trace.count);
        vec![
            self.memory.at(trace),
            self.memory.part(trace.region),
            self.memory.at(received),
            self.memory.item(trace.region),
            rows,
            products,
            products.div_ceil(4),
        ]
    }

    /// A launch with sums of all threads.
    fn summed(&mut self, kernel: &'static kernels::Kernel, work: Option<u64>, numbers: &[u64]) {
        let call = self.call(numbers);
        let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
        self.step(kernel, work, &arguments);
        self.sums = self.sums.max(8 * u64::from(COUNTS));
    }

    /// The share of a level: what it follows from, sources, length of vectors, and masks of the last pieces.
    fn share(
        &mut self,
        level: u32,
        command: &Command,
        kind: u64,
        length: u64,
        last: [u64; 2],
    ) -> Result<(), Fault> {
        let (src, to) = (&command.src, self.memory.at(command.dst[0]));
        let places = factor(level);
        let source = |k: usize| src.get(k).map_or(0, |from| self.memory.at(*from));
        let [a, b] = [source(0), source(1)];
        let mut call = Zeroizing::new(Vec::with_capacity(CALL));
        call.extend([kind, to, u64::from(places), a, b, length]);
        call.extend(last);
        let mut weights = weights(places);
        weights.resize(WEIGHTS, 0);
        call.extend(weights);
        call.extend(self.elements(command.calls[0], 0, values(level))?.iter());
        self.summed(&kernels::SHARE, None, &call);
        Ok(())
    }

    /// Queues a step, command `index` of the batch, which was checked.
    pub(super) fn proof(
        &mut self,
        index: usize,
        step: Proof,
        command: &Command,
    ) -> Result<(), Fault> {
        let (src, dst) = (&command.src, &command.dst);
        let at = |span: Span| self.memory.at(span);
        let rows = self.memory.frame.rows;
        match step {
            Proof::Elements { from } => {
                let drawn = self.elements(command.calls[0], from, dst[0].count)?;
                let mut call = Zeroizing::new(Vec::with_capacity(CALL));
                call.extend([at(dst[0]), u64::from(dst[0].count)]);
                call.extend(drawn.iter());
                self.plain(&kernels::PUT, None, &call);
            }
            Proof::Claim { products } => {
                let gates = P61::reduce(u64::from(products) * u64::from(rows));
                let claim = P61::sub(0, P61::mul(gates, P61::HALF));
                self.plain(&kernels::PUT, None, &[at(dst[0]), 1, claim]);
            }
            Proof::Counts => {
                let gates = self.traced(src[0], src[1]);
                let to = at(dst[0]);
                // Each thread of a block has its own counts, and blocks have parts of the gates.
                let work = gates[6] * gates[3].div_ceil(4) * 16;
                self.summed(&kernels::COUNTS, Some(work), &gates);
                self.summed(&kernels::COUNTS_END, Some(COUNTS.into()), &[to]);
            }
            Proof::Share { level, last, .. } if level < 3 && !last => {
                self.share(level, command, u64::from(level - 1), 0, [0, 0])?;
            }
            Proof::Share {
                level,
                products,
                last: false,
            } => {
                let (length, places) = (length(products, rows, level), u64::from(factor(level)));
                let call = [at(src[0]), at(src[1]), length, places];
                self.summed(&kernels::GRAM, Some(length), &call);
                self.share(level, command, 2, length, [0, 0])?;
            }
            Proof::Share {
                level, products, ..
            } => {
                let drawn = |k: usize| self.elements(command.calls[k], 0, 1);
                let masks = [drawn(1)?[0], drawn(2)?[0]];
                self.share(level, command, 3, length(products, rows, level), masks)?;
            }
            Proof::Expand { side } => {
                let mut call = self.traced(src[0], src[1]);
                let work = call[6] * 8 * call[3];
                let side = match side {
                    Side::OwnNext => 0,
                    Side::OwnPrevious => 1,
                    Side::Previous => 2,
                    Side::Next => 3,
                };
                call.extend([side, at(dst[0]), at(src[2]), at(src[3])]);
                call.extend(weights(4));
                self.plain(&kernels::EXPAND, Some(work), &call);
            }
            Proof::Fold { level, products } => {
                let (length, places) = (length(products, rows, level), factor(level));
                let mut call = vec![at(src[0]), length, u64::from(places), at(src[1])];
                call.extend(weights(places));
                let work = length.div_ceil(u64::from(places));
                self.plain(&kernels::FOLD, Some(work), &call);
            }
            Proof::End { level, products } => {
                let mask = self.elements(command.calls[0], 0, 1)?[0];
                let places = factor(level);
                let mut call = Zeroizing::new(Vec::with_capacity(CALL));
                call.extend([at(dst[0]), at(src[0])]);
                call.push(length(products, rows, level));
                call.extend([u64::from(places), at(src[1]), mask]);
                call.extend(weights(places));
                self.plain(&kernels::END, None, &call);
            }
            Proof::Verify { last } => {
                let count = src[1].count;
                let added = count.div_ceil(2) - u32::from(last);
                let mut call = vec![at(src[0]), at(src[1]), u64::from(count), at(src[2])];
                call.extend([u64::from(added), at(dst[0]), at(dst[1])]);
                call.extend(weights(count));
                self.plain(&kernels::VERIFY, None, &call);
            }
            Proof::Compare => {
                let call = [at(src[0]), at(src[1]), u64::from(src[0].count)];
                self.plain(&kernels::COMPARE_FOUND, None, &call);
                let command = Argument::Number(index as u32);
                self.step(&kernels::DECIDE, None, &[Argument::Verdict, command]);
            }
        }
        Ok(())
    }
}
