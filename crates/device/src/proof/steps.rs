//! Steps of a proof whose time does not depend on the length of the batch: the same code for every device.

use veil_math::Gf64;
use veil_session::Secret;
use zeroize::Zeroizing;

use super::{Proof, SEED, factor, length, scalar, values};
use crate::Fault;
use crate::command::Command;
use crate::layout::Span;

/// Elements in a workspace.
pub(crate) trait Elements {
    /// The packed bytes of a span of elements.
    fn bytes_of(&self, span: Span) -> &[u8];
    /// The same, to be written.
    fn bytes_of_mut(&mut self, span: Span) -> &mut [u8];
    /// Rows of the batch.
    fn rows(&self) -> u32;

    /// The first `count` elements of a span.
    fn elements(&self, span: Span, count: usize) -> Zeroizing<Vec<u64>> {
        let words = self.bytes_of(span).chunks_exact(8).take(count);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        Zeroizing::new(words.map(word).collect())
    }

    /// One element.
    fn element(&self, span: Span) -> u64 {
        self.elements(span, 1)[0]
    }

    /// Writes elements to the beginning of a span.
    fn put(&mut self, span: Span, elements: &[u64]) {
        let words = self.bytes_of_mut(span).chunks_exact_mut(8);
        for (word, element) in words.zip(elements) {
            word.copy_from_slice(&element.to_le_bytes());
        }
    }
}

/// Blocks of a call as elements from `from` on.
fn drawn(blocks: &[u8], from: u32) -> Zeroizing<Vec<u64>> {
    let block = |bytes: &[u8]| u128::from_le_bytes(bytes.try_into().expect("16 bytes"));
    let elements = blocks.chunks_exact(16);
    Zeroizing::new(
        elements
            .map(|bytes| Gf64::from_place(block(bytes), from))
            .collect(),
    )
}

/// The key that the elements of a seed are.
pub(crate) fn seed_of(memory: &impl Elements, span: Span) -> Secret {
    let mut key = Zeroizing::new([0; 16]);
    let elements = memory.elements(span, SEED as usize);
    for (half, element) in key.chunks_exact_mut(8).zip(elements.iter()) {
        half.copy_from_slice(&element.to_le_bytes());
    }
    Secret::new(*key)
}

/// Writes the share of a level: values of its polynomial, less the elements of call 0.
pub(crate) fn put_share(
    memory: &mut impl Elements,
    to: Span,
    mut values: Zeroizing<Vec<u64>>,
    blocks: &[u8],
) {
    for (value, mask) in values.iter_mut().zip(drawn(blocks, 0).iter()) {
        *value ^= mask;
    }
    memory.put(to, &values);
}

/// Does a step, or says that its device has to: what a comparison found. `blocks` gives `count` blocks of call `index`.
pub(crate) fn step<M: Elements>(
    proof: Proof,
    memory: &mut M,
    command: &Command,
    mut blocks: impl FnMut(&M, usize, u32) -> Result<Zeroizing<Vec<u8>>, Fault>,
) -> Result<Option<bool>, Fault> {
    let (src, dst) = (&command.src, &command.dst);
    let rows = memory.rows();
    let vector = |memory: &M, span, products, level| {
        // It is no longer than its span, which is in memory.
        memory.elements(span, length(products, rows, level) as usize)
    };
    match proof {
        Proof::Elements { from } => {
            let blocks = blocks(memory, 0, dst[0].count)?;
            memory.put(dst[0], &drawn(&blocks, from));
        }
        Proof::Share {
            level,
            products,
            last: true,
        } => {
            let places = factor(level) as usize;
            let masks = [1, 2].map(|call| blocks(memory, call, 1));
            let mut pieces = Vec::with_capacity(2);
            for (span, mask) in src.iter().zip(masks) {
                let mask = drawn(&mask?, 0)[0];
                let vector = vector(memory, *span, products, level);
                pieces.push(scalar::masked(&vector, places, mask));
            }
            let sums = scalar::pair_sums(&pieces[0], &pieces[1], places);
            let masks = blocks(memory, 0, values(level))?;
            let values = scalar::share_of(level, &sums);
            put_share(memory, dst[0], values, &masks);
        }
        Proof::End { level, products } => {
            let mask = drawn(&blocks(memory, 0, 1)?, 0)[0];
            let vector = vector(memory, src[0], products, level);
            let piece = scalar::masked(&vector, factor(level) as usize, mask);
            let basis = scalar::basis(factor(level), memory.element(src[1]));
            memory.put(dst[0], &[Gf64::dot(&basis, &piece)]);
        }
        Proof::Verify { last, .. } => {
            let [claims, share] = [src[0], src[1]].map(|s| memory.elements(s, s.count as usize));
            let next = scalar::verify(&claims, &share, memory.element(src[2]), last);
            memory.put(dst[0], &[next]);
        }
        Proof::Compare => {
            let count = src[0].count as usize;
            let [mine, theirs] = [src[0], src[1]].map(|span| memory.elements(span, count));
            return Ok(Some(scalar::accepts(&mine, &theirs)));
        }
        Proof::Claims { .. }
        | Proof::Share { .. }
        | Proof::Expand { .. }
        | Proof::Fold { .. }
        | Proof::Rows(_) => return Ok(None),
    }
    Ok(Some(true))
}
