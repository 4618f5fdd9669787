//! The gates of a batch: words of 64 rows of the trace and of what was received.

use veil_session::Secret;
use zeroize::Zeroizing;

use super::multiply::{and, xor};
use super::{LANES, Register};
use crate::Fault;
use crate::cpu::workspace::Memory;
use crate::layout::Span;
use crate::proof::{self, PIECES, Side, WORD};

/// Bytes of a register.
const BYTES: usize = 8 * LANES;

/// Rows of products in a region of the workspace.
struct Columns<'a> {
    /// From the first product on.
    bytes: &'a [u8],
    /// From a product to the next one.
    column: usize,
    /// From a part to the next one.
    component: usize,
}

/// Eight words of a piece, or fewer, and zeros.
#[derive(Clone, Copy)]
pub(super) struct Place {
    product: usize,
    /// Of the product.
    word: usize,
    count: usize,
    /// Whether all words are there, and of this product or of products without gaps.
    whole: bool,
    /// Rows that exist.
    rows: Register,
}

/// The trace of a batch and what was received of it, with the keys of weights.
pub(super) struct Gates<'a> {
    trace: Columns<'a>,
    received: Columns<'a>,
    products: usize,
    rows: usize,
    keys: Zeroizing<Vec<u64>>,
}

impl Gates<'_> {
    /// Words of a piece.
    pub(super) fn words(&self) -> usize {
        self.keys.len()
    }

    /// Words of a product.
    fn per_product(&self) -> usize {
        self.rows.div_ceil(WORD as usize)
    }

    /// Keys of eight words of a piece, and zeros.
    #[inline(always)]
    pub(super) fn keys(&self, first: usize) -> Register {
        load(&self.keys[first..])
    }

    /// Where words `first` to `first` + 7 of a piece are.
    #[inline(always)]
    pub(super) fn place(&self, piece: usize, first: usize) -> Place {
        let all = self.products * self.per_product();
        let at = piece * self.words() + first;
        let left = all.saturating_sub(at).min(self.words() - first);
        let count = left.min(LANES);
        let (product, word) = (at / self.per_product(), at % self.per_product());
        // Products follow each other without gaps.
        let dense = self.trace.column == 8 * self.per_product()
            && self.received.column == self.trace.column;
        let whole = count == LANES && (dense || word + LANES <= self.per_product());
        let mut rows = [u64::MAX; LANES];
        let rest = self.rows % WORD as usize;
        if count < LANES || rest > 0 {
            for (k, rows) in rows.iter_mut().enumerate() {
                let last = (word + k) % self.per_product() == self.per_product() - 1;
                *rows = match (k < count, last && rest > 0) {
                    (false, _) => 0,
                    (true, true) => (1 << rest) - 1,
                    (true, false) => u64::MAX,
                };
            }
        }
        Place {
            product,
            word,
            count,
            whole,
            rows,
        }
    }

    /// The words there of a part.
    #[inline(always)]
    fn register(&self, columns: &Columns<'_>, part: usize, place: &Place) -> Register {
        let at = part * columns.component + place.product * columns.column + 8 * place.word;
        let whole = if place.whole {
            columns.bytes[at.min(columns.bytes.len())..].first_chunk::<BYTES>()
        } else {
            None
        };
        let words = match whole {
            Some(bytes) => from_bytes(bytes),
            None => self.gathered(columns, part, place),
        };
        and(words, place.rows)
    }

    /// The same, word by word.
    #[inline(never)]
    fn gathered(&self, columns: &Columns<'_>, part: usize, place: &Place) -> Register {
        let mut bytes = [0; BYTES];
        let (mut product, mut word) = (place.product, place.word);
        for out in bytes.chunks_exact_mut(8).take(place.count) {
            let at = part * columns.component + product * columns.column + 8 * word;
            let there = (self.rows.div_ceil(8) - 8 * word).min(8);
            out[..there].copy_from_slice(&columns.bytes[at..][..there]);
            word += 1;
            if word == self.per_product() {
                (product, word) = (product + 1, 0);
            }
        }
        from_bytes(&bytes)
    }

    /// The bits of gates that a side multiplies: a and c, or b and d.
    #[inline(always)]
    pub(super) fn factors(&self, side: Side, place: &Place) -> [Register; 2] {
        let parts = match side {
            Side::OwnNext => [0, 2],
            Side::OwnPrevious => [3, 1],
            Side::Previous => [1, 3],
            Side::Next => [2, 0],
        };
        parts.map(|part| self.register(&self.trace, part, place))
    }

    /// What a verifier adds of gates: e, or f.
    #[inline(always)]
    pub(super) fn addends(&self, side: Side, place: &Place) -> Register {
        let trace = |part| self.register(&self.trace, part, place);
        match side {
            Side::Previous => xor(self.register(&self.received, 0, place), trace(5)),
            _ => xor(trace(4), and(trace(0), trace(2))),
        }
    }
}

/// The first eight elements, and zeros.
#[inline(always)]
pub(super) fn load(elements: &[u64]) -> Register {
    if let Some(whole) = elements.first_chunk() {
        return *whole;
    }
    let mut register = [0; LANES];
    register[..elements.len()].copy_from_slice(elements);
    register
}

#[inline(always)]
fn from_bytes(bytes: &[u8; BYTES]) -> Register {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Lets `act` see the gates of `src`, a trace, what was received and a seed, and write the bytes of a span, which is in another region than
/// the first two.
pub(super) fn with(
    memory: &mut Memory,
    src: &[Span],
    to: Span,
    act: impl FnOnce(&Gates<'_>, &mut [u8]),
) -> Result<(), Fault> {
    let frame = memory.frame;
    let seed: Secret = proof::seed_of(memory, src[2]);
    let words = proof::words(src[0].count, frame.rows);
    // Where a span begins in its region, and how far parts and items are from each other.
    let [trace, received, out] = [src[0], src[1], to].map(|span| {
        let strides = memory.all_strides[span.region as usize];
        let first = memory.column(span, 0).0 - strides.offset;
        (first, strides.column, strides.component)
    });
    let bytes = memory.bytes(to).len();
    let regions = [src[0].region, src[1].region, to.region];
    let [of_trace, of_received, of_out] = memory.regions_mut(regions)?;
    let columns = |region, (first, column, component): (usize, usize, usize)| {
        let region: &[u8] = region;
        Columns {
            bytes: &region[first..],
            column,
            component,
        }
    };
    let gates = Gates {
        trace: columns(of_trace, trace),
        received: columns(of_received, received),
        products: src[0].count as usize,
        rows: frame.rows as usize,
        keys: proof::weights(&seed, frame, words as usize),
    };
    debug_assert!(gates.words() * PIECES as usize >= gates.products * gates.per_product());
    act(&gates, &mut of_out[out.0..][..bytes]);
    Ok(())
}
