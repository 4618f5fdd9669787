//! Steps of proofs as launches of kernels/device/proof.cu.

use veil_device::proof::{PIECES, Proof, Side, factor, length, values, words};
use veil_device::{Command, Fault, PrfCall, Span};
use veil_math::Gf64;
use veil_prss::{DomainTag, Prf};
use zeroize::Zeroizing;

use super::queue::{Argument, Queue};
use super::unsupported;
use crate::kernels;

/// Numbers of a call that has masks, at most: it does not move while it is made.
const CALL: usize = 40;

/// Sums of pairs of pieces, two numbers each: keys of weights are behind them.
const FIRST_SUMS: u64 = (PIECES * (PIECES + 1)) as u64;

/// Traced products and what was received of them, as a kernel sees them.
struct Gates {
    call: Vec<u64>,
    /// Words of a piece.
    words: u64,
    /// Where the seed is.
    seed: u64,
}

impl Gates {
    /// The call with more numbers behind.
    fn with(&self, more: &[u64]) -> Vec<u64> {
        [&self.call, more].concat()
    }
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
        elements.extend((0..count).map(|k| Gf64::from_place(block(k), from)));
        Ok(elements)
    }

    /// The gates of a command.
    fn traced(&self, src: &[Span]) -> Gates {
        let rows = self.memory.frame.rows;
        let words = words(src[0].count, rows);
        let call = vec![
            self.memory.at(src[0]),
            self.memory.part(src[0].region),
            self.memory.at(src[1]),
            self.memory.item(src[0].region),
            rows.into(),
            src[0].count.into(),
            rows.div_ceil(64).into(),
            words,
        ];
        Gates {
            call,
            words,
            seed: self.memory.at(src[2]),
        }
    }

    /// A launch with sums of all threads.
    fn summed(&mut self, kernel: &'static kernels::Kernel, work: Option<u64>, numbers: &[u64]) {
        let call = self.call(numbers);
        let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
        self.step(kernel, work, &arguments);
        self.sums = self.sums.max(8 * FIRST_SUMS);
    }

    /// Makes the keys of a command's weights, does `steps`, and clears them.
    fn weighted(
        &mut self,
        gates: &Gates,
        steps: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let frame = self.memory.frame;
        let input = Prf::input(DomainTag::DZKP_THETA, frame.lane, 0, frame.chunk);
        let word = |at: usize| {
            let word = input[at..].first_chunk().expect("four bytes");
            u64::from(u32::from_le_bytes(*word))
        };
        let call = gates.with(&[gates.seed, word(0), word(12)]);
        let counters = gates.words.div_ceil(2);
        self.summed(&kernels::WEIGHTS, Some(counters), &call);
        self.sums = self.sums.max(8 * (FIRST_SUMS + gates.words));
        steps(self)?;
        let call = self.call(&gates.call);
        let arguments = [Argument::Sums, call, Argument::Verdict];
        self.step(&kernels::CLEAR, Some(gates.words), &arguments);
        Ok(())
    }

    /// The share of a level, of which there are sums of pairs.
    fn share(&mut self, level: u32, command: &Command) -> Result<(), Fault> {
        let places = factor(level);
        let first = if level == 1 { places } else { 1 };
        let mut call = Zeroizing::new(Vec::with_capacity(CALL));
        call.push(self.memory.at(command.dst[0]));
        call.extend([places, first, values(level)].map(u64::from));
        call.push(Gf64::divisor(places));
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
        let rows = self.memory.frame.rows;
        let at = |queue: &Self, span: Span| queue.memory.at(span);
        match step {
            Proof::Elements { from } => {
                let drawn = self.elements(command.calls[0], from, dst[0].count)?;
                let mut call = Zeroizing::new(Vec::with_capacity(CALL));
                call.extend([at(self, dst[0]), u64::from(dst[0].count)]);
                call.extend(drawn.iter());
                self.plain(&kernels::PUT, None, &call);
            }
            Proof::Claims { side } => {
                let (gates, to) = (self.traced(src), at(self, dst[0]));
                self.weighted(&gates, |queue| {
                    let work = gates.words * u64::from(PIECES);
                    let call = gates.with(&[number(side)]);
                    queue.summed(&kernels::CLAIMS, Some(work), &call);
                    queue.summed(&kernels::CLAIMS_END, None, &[to]);
                    Ok(())
                })?;
            }
            Proof::Share { level: 1, .. } => {
                let gates = self.traced(src);
                self.weighted(&gates, |queue| {
                    // Each thread of a block has its own pairs, and blocks have parts of the words.
                    let work = gates.words * kernels::FIRST.block as u64;
                    queue.summed(&kernels::FIRST, Some(work), &gates.call);
                    queue.share(1, command)
                })?;
            }
            Proof::Share { level: 2, .. } => {
                let gates = self.traced(src);
                let call = gates.with(&[at(self, src[3]), Gf64::divisor(PIECES)]);
                self.weighted(&gates, |queue| {
                    queue.summed(&kernels::SECOND, Some(32 * gates.words), &call);
                    queue.share(2, command)
                })?;
            }
            Proof::Share {
                level,
                products,
                last,
            } => {
                let (length, places) = (length(products, rows, level), factor(level).into());
                let mut call = Zeroizing::new(vec![at(self, src[0]), at(self, src[1])]);
                call.extend([length, places]);
                if last {
                    for k in [1, 2] {
                        call.push(self.elements(command.calls[k], 0, 1)?[0]);
                    }
                    self.summed(&kernels::LAST, None, &call);
                } else {
                    self.summed(&kernels::PAIRS, Some(length), &call);
                }
                self.share(level, command)?;
            }
            Proof::Expand { side } => {
                let gates = self.traced(src);
                let mut call = gates.with(&[number(side)]);
                call.extend([dst[0], src[3], src[4]].map(|span| at(self, span)));
                call.extend([PIECES, factor(2)].map(Gf64::divisor));
                self.weighted(&gates, |queue| {
                    queue.summed(&kernels::EXPAND, Some(32 * gates.words), &call);
                    Ok(())
                })?;
            }
            Proof::Fold { level, products } => {
                let (length, places) = (length(products, rows, level), factor(level));
                let challenge = at(self, src[1]);
                let call = [at(self, src[0]), length, places.into(), challenge];
                let call = [&call[..], &[Gf64::divisor(places)]].concat();
                let work = length.div_ceil(u64::from(places));
                self.plain(&kernels::FOLD, Some(work), &call);
            }
            Proof::End { level, products } => {
                let mask = self.elements(command.calls[0], 0, 1)?[0];
                let places = factor(level);
                let mut call = Zeroizing::new(Vec::with_capacity(CALL));
                call.extend([at(self, dst[0]), at(self, src[0])]);
                call.push(length(products, rows, level));
                call.extend([u64::from(places), at(self, src[1]), mask]);
                call.push(Gf64::divisor(places));
                self.plain(&kernels::END, None, &call);
            }
            Proof::Verify { last, .. } => {
                let [claims, share] = [src[0].count, src[1].count];
                // From the second level on, one claim is that of a sum.
                let added = if claims == 1 {
                    share / 2 - u32::from(last)
                } else {
                    0
                };
                let mut call = vec![at(self, dst[0]), at(self, src[0]), claims.into()];
                call.extend([at(self, src[1]), share.into(), at(self, src[2])]);
                call.extend([added.into(), Gf64::divisor(claims + share)]);
                self.plain(&kernels::VERIFY, None, &call);
            }
            Proof::Rows(_) => return Err(unsupported("proofs that rows were moved rightly")),
            Proof::Compare => {
                let call = [at(self, src[0]), at(self, src[1])];
                self.plain(&kernels::COMPARE_FOUND, None, &call);
                let command = Argument::Number(index as u32);
                self.step(&kernels::DECIDE, None, &[Argument::Verdict, command]);
            }
        }
        Ok(())
    }
}

/// A side, as kernels number them.
fn number(side: Side) -> u64 {
    match side {
        Side::OwnNext => 0,
        Side::OwnPrevious => 1,
        Side::Previous => 2,
        Side::Next => 3,
    }
}
