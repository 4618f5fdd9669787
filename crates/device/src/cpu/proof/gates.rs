//! The gates of a batch: words of 64 rows of the trace and of what was received.

use veil_prss::DomainTag;
use zeroize::Zeroizing;

use super::draw;
use super::lanes::{LANES, Lanes, Register};
use crate::Fault;
use crate::cpu::Cpu;
use crate::cpu::vector::RoundKeys;
use crate::cpu::workspace::Memory;
use crate::layout::Span;
use crate::proof::{self, PIECES, Side, WORD};

/// How far ahead words are fetched, in bytes: some registers.
const AHEAD: usize = 128;

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
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// The first of them, of all words of the batch.
    word: usize,
    count: usize,
    /// Whether they lie side by side, and all of their rows exist.
    whole: bool,
}

/// The trace of a batch and what was received of it, with the keys of weights.
pub(super) struct Gates<'a> {
    trace: Columns<'a>,
    received: Columns<'a>,
    products: usize,
    rows: usize,
    /// Words of a product.
    per_product: usize,
    /// Whether the words of all products lie side by side, and all of their rows exist.
    dense: bool,
    keys: Zeroizing<Vec<u64>>,
}

impl Gates<'_> {
    /// Words of a piece.
    pub(super) fn words(&self) -> usize {
        self.keys.len()
    }

    /// Keys of eight words of a piece, and zeros.
    #[inline(always)]
    pub(super) fn keys<L: Lanes>(&self, first: usize) -> L {
        load(&self.keys[first..])
    }

    /// Where words `first` to `first` + 7 of a piece are.
    #[inline(always)]
    pub(super) fn place(&self, piece: usize, first: usize) -> Place {
        let word = piece * self.words() + first;
        let there = (self.products * self.per_product).saturating_sub(word);
        let count = there.min(self.words() - first).min(LANES);
        Place {
            word,
            count,
            whole: self.dense && count == LANES,
        }
    }

    /// The words there of a part.
    #[inline(always)]
    fn register<L: Lanes>(&self, columns: &Columns<'_>, part: u8, place: &Place) -> L {
        if place.whole {
            let at = usize::from(part) * columns.component + 8 * place.word;
            let from = columns.bytes[at..].first_chunk().expect("whole words");
            // Pieces lie far apart: a processor does not see by itself that they are read in order.
            L::prefetch(from.as_ptr().wrapping_add(AHEAD));
            L::bytes(from)
        } else {
            let mut register = Register::ZERO;
            self.gather(columns, part, place, &mut register.0);
            L::load(&register.0)
        }
    }

    /// The same, word by word.
    #[inline(never)]
    fn gather(&self, columns: &Columns<'_>, part: u8, place: &Place, out: &mut [u64; LANES]) {
        let mut product = place.word / self.per_product;
        let mut word = place.word % self.per_product;
        for out in out.iter_mut().take(place.count) {
            let column = usize::from(part) * columns.component + product * columns.column;
            let bytes = (self.rows.div_ceil(8) - 8 * word).min(8);
            let from = &columns.bytes[column + 8 * word..][..bytes];
            let mut all = [0; 8];
            all[..bytes].copy_from_slice(from);
            let rows = (self.rows - 64 * word).min(64);
            *out = u64::from_le_bytes(all) & u64::MAX >> (64 - rows);
            word += 1;
            if word == self.per_product {
                (product, word) = (product + 1, 0);
            }
        }
    }

    /// The words there of a part of the trace.
    #[inline(always)]
    pub(super) fn trace<L: Lanes>(&self, part: u8, place: &Place) -> L {
        self.register(&self.trace, part, place)
    }

    /// What a verifier adds of gates: e, or f.
    #[inline(always)]
    pub(super) fn addends<L: Lanes>(&self, side: Side, place: &Place) -> L {
        if side == Side::Previous {
            let received: L = self.register(&self.received, 0, place);
            received.xor(self.register(&self.trace, 5, place))
        } else {
            let u: L = self.register(&self.trace, 0, place);
            let mask: L = self.register(&self.trace, 4, place);
            mask.xor(u.and(self.register(&self.trace, 2, place)))
        }
    }
}

/// The first eight elements, and zeros.
#[inline(always)]
pub(super) fn load<L: Lanes>(elements: &[u64]) -> L {
    if let Some(whole) = elements.first_chunk() {
        return L::load(whole);
    }
    let mut register = [0; LANES];
    register[..elements.len()].copy_from_slice(elements);
    L::load(&register)
}

/// As [`proof::weights`].
fn keys(device: &Cpu, memory: &Memory, src: &[Span]) -> Zeroizing<Vec<u64>> {
    let frame = memory.frame;
    let words = proof::words(src[0].count, frame.rows) as usize;
    let key = RoundKeys::new(&proof::seed_of(memory, src[2]));
    let mut keys = Zeroizing::new(vec![0; words]);
    draw(device, &key, (DomainTag::DZKP_THETA, frame), 0, &mut keys);
    keys
}

/// Lets `act` see the gates of `src`, a trace, what was received and a seed, and write the bytes of a span, which is in another region than
/// the first two.
pub(super) fn with(
    device: &Cpu,
    memory: &mut Memory,
    src: &[Span],
    to: Span,
    act: impl FnOnce(&Gates<'_>, &mut [u8]),
) -> Result<(), Fault> {
    let frame = memory.frame;
    let keys = keys(device, memory, src);
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
    let per_product = frame.rows.div_ceil(WORD) as usize;
    let side_by_side = [trace, received].map(|(_, column, _)| column == 8 * per_product);
    let gates = Gates {
        dense: side_by_side == [true; 2] && frame.rows.is_multiple_of(WORD),
        per_product,
        trace: columns(of_trace, trace),
        received: columns(of_received, received),
        products: src[0].count as usize,
        rows: frame.rows as usize,
        keys,
    };
    debug_assert!(gates.words() * PIECES as usize >= gates.products * per_product);
    act(&gates, &mut of_out[out.0..][..bytes]);
    Ok(())
}
