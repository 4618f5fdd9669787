//! The steps of a proof that go through the whole batch, gate by gate and value by value.

use veil_math::{Gf64, Ring};
use veil_prss::DomainTag;
use zeroize::Zeroizing;

use super::{Memory, Reference};
use crate::command::Command;
use crate::layout::{ColumnType, Span};
use crate::moves::no_row;
use crate::proof::{self, Elements, PIECES, Proof, RowStep, Side, WORD, factor, length};
use crate::{Fault, mac};

impl Elements for Memory {
    fn bytes_of(&self, span: Span) -> &[u8] {
        self.bytes(span)
    }

    fn bytes_of_mut(&mut self, span: Span) -> &mut [u8] {
        self.bytes_mut(span)
    }

    fn rows(&self) -> u32 {
        self.frame.rows
    }
}

/// The trace of a batch and what was received of it, with the keys of its weights.
struct Gates<'a> {
    memory: &'a Memory,
    trace: Span,
    received: Span,
    keys: Zeroizing<Vec<u64>>,
}

impl<'a> Gates<'a> {
    fn new(memory: &'a Memory, src: &[Span]) -> Self {
        let words = proof::words(src[0].count, memory.frame.rows);
        Gates {
            memory,
            trace: src[0],
            received: src[1],
            keys: proof::weights(
                &proof::seed_of(memory, src[2]),
                memory.frame,
                words as usize,
            ),
        }
    }

    /// Positions of a piece.
    fn positions(&self) -> usize {
        self.keys.len() * WORD as usize
    }

    /// The weight of a position.
    fn weight(&self, position: usize) -> u64 {
        let bits = WORD as usize;
        let key = self.keys[position / bits];
        (0..position % bits).fold(key, |weight, _| Gf64::times_x(weight))
    }

    /// A bit of the gate at a position of a piece: of component `part` of the trace, or received; 0 if there is none.
    fn bit(&self, part: Option<u8>, piece: usize, position: usize) -> u64 {
        let bits = WORD as usize;
        let rows = self.memory.frame.rows as usize;
        let per_product = rows.div_ceil(bits);
        let word = piece * self.keys.len() + position / bits;
        let (product, row) = (
            word / per_product,
            word % per_product * bits + position % bits,
        );
        if product >= self.trace.count as usize || row >= rows {
            return 0;
        }
        let span = part.map_or(self.received, |component| Span {
            component,
            ..self.trace
        });
        let item = Span {
            first: span.first + product as u32,
            ..span
        };
        self.memory.get(item, Ring::Bits, row) as u64
    }

    /// The bits of a gate that a side multiplies.
    fn factors(&self, side: Side, piece: usize, position: usize) -> [u64; 2] {
        side.parts()
            .map(|part| self.bit(Some(part), piece, position))
    }

    /// What a verifier adds of a gate.
    fn addend(&self, side: Side, piece: usize, position: usize) -> u64 {
        let of = |part| self.bit(part, piece, position);
        match side {
            Side::Previous => of(None) ^ of(Some(5)),
            _ => of(Some(4)) ^ (of(Some(0)) & of(Some(2))),
        }
    }

    /// [`Proof::Claims`].
    fn claims(&self, side: Side) -> Zeroizing<Vec<u64>> {
        let claim = |piece: usize| {
            (0..self.positions()).fold(0, |sum, position| {
                let wrong = self.addend(side, piece, position).wrapping_neg();
                sum ^ (self.weight(position) & wrong)
            })
        };
        Zeroizing::new((0..PIECES as usize).map(claim).collect())
    }

    /// Sums of pairs of pieces, of the gates' weighted products.
    fn first_sums(&self) -> Zeroizing<Vec<u64>> {
        let pieces = PIECES as usize;
        let mut sums = Zeroizing::new(vec![0; proof::pairs(pieces)]);
        for position in 0..self.positions() {
            let weight = self.weight(position);
            let of = |side| {
                let factors = (0..pieces).map(|piece| self.factors(side, piece, position));
                Zeroizing::new(factors.collect::<Vec<[u64; 2]>>())
            };
            let (left, right) = (of(Side::OwnNext), of(Side::OwnPrevious));
            for (i, [a, c]) in left.iter().enumerate() {
                for (j, [b, d]) in right.iter().enumerate() {
                    let product = (a & b) ^ (c & d);
                    sums[proof::pair_of(pieces, i, j)] ^= weight & product.wrapping_neg();
                }
            }
        }
        sums
    }

    /// The vector of a side after the first level, of which `r` is the challenge.
    fn vector(&self, side: Side, r: u64) -> Zeroizing<Vec<u64>> {
        let basis = proof::basis(PIECES, r);
        let (words, bits) = (self.keys.len(), WORD as usize);
        let mut vector = Zeroizing::new(vec![0; 2 * self.positions()]);
        for position in 0..self.positions() {
            let mut both = [0; 2];
            for (piece, basis) in basis.iter().enumerate() {
                let factors = self.factors(side, piece, position);
                for (value, bit) in both.iter_mut().zip(factors) {
                    *value ^= basis & bit.wrapping_neg();
                }
            }
            let weight = if side.is_left() {
                self.weight(position)
            } else {
                1
            };
            let at = position % bits * words + position / bits;
            for (half, value) in vector.chunks_exact_mut(self.positions()).zip(both) {
                half[at] = Gf64::mul(value, weight);
            }
        }
        vector
    }
}

/// Both words of each row of a column.
fn words_of(memory: &Memory, column: Span) -> Zeroizing<Vec<[u64; 2]>> {
    let size = memory.column(column).bytes(1) as usize;
    let row = |bytes: &[u8]| {
        let mut word = Zeroizing::new([0; 16]);
        word[..size].copy_from_slice(bytes);
        let word = u128::from_le_bytes(*word);
        [word as u64, (word >> 64) as u64]
    };
    let rows = memory.bytes(column).chunks_exact(size);
    Zeroizing::new(rows.map(row).collect())
}

/// A step over rows that move, command `index`.
fn row_step(
    memory: &mut Memory,
    index: usize,
    step: RowStep,
    command: &Command,
) -> Result<(), Fault> {
    let ([seed, from], to) = ([command.src[0], command.src[1]], command.dst[0]);
    let (seed, frame) = (proof::seed_of(memory, seed), memory.frame);
    let rows = frame.rows as usize;
    let weights = |place| proof::draws(&seed, DomainTag::dzkp_rows(place), frame, rows);
    let hashes = |memory: &Memory, word| {
        let bytes = memory.column(from).bytes(1);
        let keys = proof::rows::keys(&seed, frame, word, proof::rows::words(bytes));
        let words = words_of(memory, from);
        let hash = |words: &[u64; 2]| Gf64::dot(&*keys, words);
        Zeroizing::new(words.iter().map(hash).collect::<Vec<u64>>())
    };
    match step {
        RowStep::Hashes { word, place } => {
            let to = proof::rows::in_vector(to, place, frame.rows);
            let mut sums = memory.elements(to, to.count as usize);
            if word == 0 {
                sums.fill(0);
            }
            for (sum, hash) in sums.iter_mut().zip(hashes(memory, word).iter()) {
                *sum ^= hash;
            }
            memory.put(to, &sums);
        }
        RowStep::Weights { place, back } => {
            let to = proof::rows::in_vector(to, place, frame.rows);
            let (weights, places) = (weights(place), memory.entries(from));
            let mut moved = Zeroizing::new(vec![0; to.count as usize]);
            if places.iter().any(|at| *at >= rows) {
                return Err(no_row(index));
            }
            for (row, at) in places.iter().copied().enumerate() {
                let (read, written) = if back { (row, at) } else { (at, row) };
                moved[written] = weights[read];
            }
            memory.put(to, &moved);
        }
        RowStep::Claim { word, place, first } => {
            let before = if first { 0 } else { memory.element(to) };
            let sum = Gf64::dot(&weights(place), &hashes(memory, word));
            memory.put(to, &[before ^ sum]);
        }
    }
    Ok(())
}

impl Reference {
    pub(super) fn proof(
        &mut self,
        memory: &mut Memory,
        index: usize,
        step: Proof,
        command: &Command,
    ) -> Result<bool, Fault> {
        let mut blocks = |memory: &Memory, call: usize, count| {
            let item = ColumnType::Bytes(mac::BLOCK as u32);
            let bytes = self.pseudorandom(memory, command.calls[call], item, count)?;
            Ok(Zeroizing::new(bytes))
        };
        if let Some(fits) = proof::step(step, memory, command, &mut blocks)? {
            return Ok(fits);
        }
        let (src, dst) = (&command.src, &command.dst);
        let vector = |memory: &Memory, span, products, level| {
            let length = length(products, memory.frame.rows, level);
            memory.elements(span, length as usize)
        };
        match step {
            Proof::Rows(step) => row_step(memory, index, step, command)?,
            Proof::Claims { side } => {
                let claims = Gates::new(memory, src).claims(side);
                memory.put(dst[0], &claims);
            }
            Proof::Expand { side } => {
                let mut expanded = Gates::new(memory, src).vector(side, memory.element(src[3]));
                let basis = proof::basis(factor(2), memory.element(src[4]));
                proof::fold(&mut expanded, &basis);
                let left = expanded.len() / basis.len();
                memory.put(dst[0], &expanded[..left]);
            }
            Proof::Fold { level, products } => {
                let mut folded = vector(memory, src[0], products, level);
                let basis = proof::basis(factor(level), memory.element(src[1]));
                proof::fold(&mut folded, &basis);
                let left = folded.len().div_ceil(basis.len());
                memory.put(dst[0], &folded[..left]);
            }
            Proof::Share {
                level, products, ..
            } => {
                let places = factor(level) as usize;
                let sums = match level {
                    1 => Gates::new(memory, src).first_sums(),
                    2 => {
                        let gates = Gates::new(memory, src);
                        let [a, b] = [Side::OwnNext, Side::OwnPrevious]
                            .map(|side| gates.vector(side, memory.element(src[3])));
                        proof::pair_sums(&a, &b, places)
                    }
                    _ => {
                        let [a, b] = [0, 1].map(|k| vector(memory, src[k], products, level));
                        proof::pair_sums(&a, &b, places)
                    }
                };
                let masks = blocks(memory, 0, proof::values(level))?;
                let values = proof::share_of(level, &sums);
                proof::put_share(memory, dst[0], values, &masks);
            }
            // Those that every device does alike.
            _ => return Err(Fault::Program("a step of a proof that no party does")),
        }
        Ok(true)
    }
}
