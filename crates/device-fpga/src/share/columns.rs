//! Columns of shares as beats of words, and back.

use veil_math::Ring;
use zeroize::Zeroizing;

use super::command::WORD;

/// All components of a column, packed.
pub(super) type Column = Zeroizing<Vec<Vec<u8>>>;

/// A component of an operand.
pub(super) enum Bytes<'a> {
    /// Packed elements.
    Column(&'a [u8]),
    /// The same in every word.
    Repeated([u8; WORD]),
}

impl Bytes<'_> {
    /// An element in every place of a word.
    pub(super) fn repeated(ring: Ring, element: u128) -> Self {
        Bytes::Repeated(match ring {
            Ring::Bits => [if element & 1 == 1 { 0xff } else { 0 }; WORD],
            Ring::Z32 => {
                let quarter = (element as u32).to_le_bytes();
                std::array::from_fn(|k| quarter[k % 4])
            }
            Ring::Z64 => {
                let half = u128::from(element as u64);
                (half << 64 | half).to_le_bytes()
            }
            Ring::Z128 => element.to_le_bytes(),
        })
    }

    /// Word `at`; what lies beyond the end is zero.
    pub(super) fn word(&self, at: usize) -> [u8; WORD] {
        match self {
            Bytes::Repeated(word) => *word,
            Bytes::Column(bytes) => {
                let mut word = [0; WORD];
                let from = bytes.len().min(at * WORD);
                let until = bytes.len().min(from + WORD);
                word[..until - from].copy_from_slice(&bytes[from..until]);
                word
            }
        }
    }

    /// So many bytes of it.
    pub(super) fn packed(&self, bytes: usize) -> Vec<u8> {
        let mut packed = vec![0; bytes];
        for (at, piece) in packed.chunks_mut(WORD).enumerate() {
            piece.copy_from_slice(&self.word(at)[..piece.len()]);
        }
        packed
    }
}

/// Puts beats of operands behind what is there: of each pair {a, b}, of these the words of a beat one after the other, with all components.
pub(super) fn beats_of(
    operands: &[Vec<Bytes<'_>>],
    beats: usize,
    words: usize,
    into: &mut Vec<u8>,
) {
    for beat in 0..beats {
        for components in operands {
            for at in beat * words..(beat + 1) * words {
                for component in components {
                    into.extend_from_slice(&component.word(at));
                }
            }
        }
    }
}

/// What words with so many components hold in their first bytes.
pub(super) fn column_of(words: &[u8], parts: usize, bytes: usize) -> Column {
    let mut column = Zeroizing::new(vec![vec![0; bytes]; parts]);
    for (part, packed) in column.iter_mut().enumerate() {
        for (to, word) in packed.chunks_mut(WORD).zip(words.chunks(parts * WORD)) {
            to.copy_from_slice(&word[part * WORD..][..to.len()]);
        }
    }
    column
}
