//! What is made of the rows of a column, of one component: other rows, bits of words, running sums. Memory is reached in the order of rows.

use veil_math::{Ring, bits_from_words};

/// An integer modulo every power of two.
pub(super) const fn signed(value: i64) -> u128 {
    (value as i128).cast_unsigned()
}

/// Rows of a column, and the rows that they go to.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// The row of the column that goes to row `to`; less than 0 if it is before the first.
    pub(super) from: i64,
    /// Rows of the column from one to the next.
    pub(super) step: i64,
    pub(super) to: usize,
    /// The same of the rows that they go to.
    pub(super) every: usize,
}

impl Walk {
    /// From row `from` on, to row 0 and all that follow.
    pub(super) const fn from(from: i64, step: i64) -> Self {
        Walk {
            from,
            step,
            to: 0,
            every: 1,
        }
    }

    /// Copies the rows that there are.
    pub(super) fn copy(&self, column: &[u8], bytes: usize, into: &mut [u8]) {
        let (there, room) = ((column.len() / bytes) as i64, into.len() / bytes);
        if self.step == 0 {
            if (0..there).contains(&self.from) {
                let element = &column[self.from as usize * bytes..][..bytes];
                let rows = into.chunks_exact_mut(bytes).skip(self.to);
                rows.step_by(self.every)
                    .for_each(|to| to.copy_from_slice(element));
            }
            return;
        }
        // The first one that is there.
        let beyond = if self.step > 0 {
            -self.from
        } else {
            self.from - (there - 1)
        };
        let stride = self.step.abs();
        let before = beyond.max(0).div_euclid(stride) + i64::from(beyond.max(0) % stride > 0);
        let (Ok(skipped), first) = (usize::try_from(before), self.from + before * self.step) else {
            return;
        };
        let to = skipped.saturating_mul(self.every).saturating_add(self.to);
        if to >= room || !(0..there).contains(&first) {
            return;
        }
        let fit = (room - to).div_ceil(self.every);
        let left = if self.step > 0 {
            there - 1 - first
        } else {
            first
        };
        let count = fit.min((left / stride) as usize + 1);
        // Downwards: the same rows from the last of them on, backwards.
        let lowest = if self.step > 0 {
            first
        } else {
            first - (count as i64 - 1) * stride
        };
        let first = lowest as usize * bytes;
        if self.step == 1 && self.every == 1 {
            into[to * bytes..][..count * bytes].copy_from_slice(&column[first..][..count * bytes]);
            return;
        }
        macro_rules! of_bytes {
            ($($bytes:literal),*) => {
                match bytes {
                    $($bytes => {
                        let (from, _) = column[first..].as_chunks::<$bytes>();
                        let (into, _) = into[to * bytes..].as_chunks_mut::<$bytes>();
                        let from = from.iter().step_by(stride as usize).take(count);
                        let into = into.iter_mut().step_by(self.every).take(count);
                        if self.step > 0 {
                            from.zip(into).for_each(|(from, into)| *into = *from);
                        } else {
                            from.zip(into.rev()).for_each(|(from, into)| *into = *from);
                        }
                    })*
                    _ => unreachable!("elements have 1, 2, 4, 8 or 16 bytes"),
                }
            };
        }
        of_bytes!(1, 2, 4, 8, 16);
    }
}

/// `count` bits of words from bit `low` on, above `below` bits of the row's number; words of `to` bytes. No words are zeros; a first row of [`usize::MAX`] says
/// that rows have no number here, on components that constants do not act on.
pub(super) fn numbered(
    (from, bytes): (&[u8], usize),
    (low, count): (u32, u32),
    (first, below): (usize, u32),
    to: usize,
    into: &mut [u8],
) {
    let number = |row: usize| if first == usize::MAX { 0 } else { first + row };
    macro_rules! of_words {
        ($word:ty) => {{
            let mask = !(<$word>::MAX.checked_shl(count).unwrap_or(0));
            for (row, into) in into.chunks_exact_mut(to).enumerate() {
                let mut word = [0; size_of::<$word>()];
                if !from.is_empty() {
                    word[..bytes].copy_from_slice(&from[row * bytes..][..bytes]);
                }
                let bits = <$word>::from_le_bytes(word) >> low & mask;
                let all = bits << below | number(row) as $word;
                into.copy_from_slice(&all.to_le_bytes()[..to]);
            }
        }};
    }
    if to.max(bytes) <= 8 {
        of_words!(u64);
    } else {
        of_words!(u128);
    }
}

/// The elements of these rows.
pub(super) fn pick(of: &[u8], bytes: usize, rows: impl Iterator<Item = u32>, into: &mut [u8]) {
    macro_rules! of_bytes {
        ($($bytes:literal),*) => {
            match bytes {
                $($bytes => {
                    let ((of, _), (into, _)) = (of.as_chunks::<$bytes>(), into.as_chunks_mut::<$bytes>());
                    into.iter_mut().zip(rows).for_each(|(to, row)| *to = of[row as usize]);
                })*
                _ => unreachable!("elements have 1, 2, 4, 8 or 16 bytes"),
            }
        };
    }
    of_bytes!(1, 2, 4, 8, 16);
}

/// `count` bits of words from bit `first` on, as words of `to` bytes.
pub(super) fn cut(
    from: &[u8],
    bytes: usize,
    (first, count): (u32, u32),
    to: usize,
    into: &mut [u8],
) {
    if to == bytes && first == 0 && 8 * to == count as usize {
        into.copy_from_slice(from);
        return;
    }
    macro_rules! of_words {
        ($($bytes:literal $word:ty),*) => {
            match bytes {
                $($bytes => {
                    let (from, _) = from.as_chunks::<$bytes>();
                    let mask = <$word>::MAX >> (<$word>::BITS - count);
                    let bits = |word: &[u8; $bytes]| <$word>::from_le_bytes(*word) >> first & mask;
                    if to == 1 {
                        for (to, word) in into.iter_mut().zip(from) {
                            *to = bits(word) as u8;
                        }
                    } else {
                        for (to, word) in into.chunks_exact_mut(to).zip(from) {
                            to.copy_from_slice(&bits(word).to_le_bytes()[..to.len()]);
                        }
                    }
                })*
                _ => unreachable!("words have 1, 2, 4, 8 or 16 bytes"),
            }
        };
    }
    of_words!(1 u8, 2 u16, 4 u32, 8 u64, 16 u128);
}

/// The same as packed columns, one for each bit.
pub(super) fn spread(from: &[u8], bytes: usize, (first, count): (u32, u32), into: &mut [u8]) {
    let these = (first as usize, count as usize);
    bits_from_words((from, bytes), from.len() / bytes, these, into);
}

/// Does something with integers of a ring.
macro_rules! of_ring {
    ($ring:expr, $type:ident => $do:expr) => {
        match $ring {
            Ring::Bits => unreachable!("bits are words"),
            Ring::Z32 => {
                type $type = u32;
                $do
            }
            Ring::Z64 => {
                type $type = u64;
                $do
            }
            Ring::Z128 => {
                type $type = u128;
                $do
            }
        }
    };
}

/// The sum of integers.
pub(super) fn total(ring: Ring, of: &[u8]) -> u128 {
    of_ring!(ring, Int => {
        let (of, _) = of.as_chunks::<{ size_of::<Int>() }>();
        let sum = of.iter().fold(0, |sum: Int, of| sum.wrapping_add(Int::from_le_bytes(*of)));
        #[allow(clippy::unnecessary_cast, reason = "one of the three is a u128")]
        { sum as u128 }
    })
}

/// Rows whose sums are added up side by side, not one after the other.
const SIDE_BY_SIDE: usize = 8;

/// `start + each · j + Σ_{i<j} from_i` in row j.
pub(super) fn running(
    ring: Ring,
    (start, each): (u128, u128),
    from: Option<&[u8]>,
    into: &mut [u8],
) {
    of_ring!(ring, Int => {
        let (mut sum, each) = (start as Int, each as Int);
        let (into, _) = into.as_chunks_mut::<{ size_of::<Int>() }>();
        let Some(from) = from else {
            for to in into {
                *to = sum.to_le_bytes();
                sum = sum.wrapping_add(each);
            }
            return;
        };
        let (from, _) = from.as_chunks::<{ size_of::<Int>() }>();
        let of = |from: &[u8; size_of::<Int>()]| Int::from_le_bytes(*from).wrapping_add(each);
        let (blocks, rest) = into.as_chunks_mut::<SIDE_BY_SIDE>();
        let (of_blocks, of_rest) = from.as_chunks::<SIDE_BY_SIDE>();
        for (to, from) in blocks.iter_mut().zip(of_blocks) {
            let mut within = [0 as Int; SIDE_BY_SIDE];
            for (to, from) in within.iter_mut().zip(from) {
                *to = of(from);
            }
            for by in [1, 2, 4] {
                let before = within;
                for k in by..SIDE_BY_SIDE {
                    within[k] = before[k].wrapping_add(before[k - by]);
                }
            }
            to[0] = sum.to_le_bytes();
            for k in 1..SIDE_BY_SIDE {
                to[k] = sum.wrapping_add(within[k - 1]).to_le_bytes();
            }
            sum = sum.wrapping_add(within[SIDE_BY_SIDE - 1]);
        }
        for (to, from) in rest.iter_mut().zip(of_rest) {
            *to = sum.to_le_bytes();
            sum = sum.wrapping_add(of(from));
        }
    });
}

/// Public integers as elements of a ring.
pub(super) fn public(ring: Ring, integers: &[i64], into: &mut [u8]) {
    let bytes = ring.bytes(1) as usize;
    for (to, integer) in into.chunks_exact_mut(bytes).zip(integers) {
        to.copy_from_slice(&signed(*integer).to_le_bytes()[..bytes]);
    }
}

#[cfg(test)]
mod tests {
    use veil_math::bits_to_words;

    use super::*;

    /// A word of up to 16 bytes.
    fn word(bytes: &[u8]) -> u128 {
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        u128::from_le_bytes(word)
    }

    /// Every row is what its definition says, whatever the rows of a chunk are.
    #[test]
    fn running_sums_are_sums_of_the_rows_before() {
        for rows in [0u64, 1, 7, 8, 9, 40] {
            let of: Vec<u32> = (0..rows as u32)
                .map(|k| k.wrapping_mul(0x9e37_79b9))
                .collect();
            let bytes: Vec<u8> = of.iter().flat_map(|x| x.to_le_bytes()).collect();
            for from in [None, Some(&bytes[..])] {
                let mut into = vec![0; bytes.len()];
                running(Ring::Z32, (5, 3), from, &mut into);
                let mut want = 5u32;
                for (row, to) in into.chunks_exact(4).enumerate() {
                    assert_eq!(to, want.to_le_bytes(), "row {row} of {rows}");
                    let of = from.map_or(0, |_| of[row]);
                    want = want.wrapping_add(3).wrapping_add(of);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_not_there_are_zero() {
        let from: Vec<u8> = (1..=10).collect();
        for (by, rows, want) in [
            (0, 2..5, vec![3, 4, 5]),
            (1, 7..10, vec![9, 10, 0]),
            (-1, 0..3, vec![0, 1, 2]),
            (-4, 2..7, vec![0, 0, 1, 2, 3]),
            (20, 0..2, vec![0, 0]),
            (-20, 5..7, vec![0, 0]),
            (-1 << 40, 0..1, vec![0]),
            (1 << 40, 9..10, vec![0]),
        ] {
            let mut into = vec![0; rows.len()];
            Walk::from(by + rows.start as i64, 1).copy(&from, 1, &mut into);
            assert_eq!(into, want, "{by}, {rows:?}");
        }
    }

    /// Every row by its definition, for all small steps.
    #[test]
    fn every_so_many_rows_go_to_every_so_many() {
        let from: Vec<u8> = (0..24u16).flat_map(|x| (x + 100).to_le_bytes()).collect();
        for (first, step, to, every) in (-9..14).flat_map(|first| {
            (-4..5).flat_map(move |step| {
                (0..3).flat_map(move |to| [1, 2, 3].map(|every| (first, step, to, every)))
            })
        }) {
            let mut into = vec![0; 2 * 17];
            let walk = Walk {
                from: first,
                step,
                to,
                every,
            };
            walk.copy(&from, 2, &mut into);
            for row in 0..17 {
                let number = (row >= to && (row - to) % every == 0).then(|| (row - to) / every);
                let of = number.map(|k| first + step * k as i64);
                let want = of
                    .filter(|of| (0..24).contains(of))
                    .map_or(0, |of| of as u16 + 100);
                let got = u16::from_le_bytes([into[2 * row], into[2 * row + 1]]);
                assert_eq!(
                    got, want,
                    "row {row}: {first} + {step} k, to {to} + {every} k"
                );
            }
        }
    }

    #[test]
    fn bits_of_words_come_as_elements_and_as_columns() {
        let words: Vec<u32> = (0..21u32).map(|k| k.wrapping_mul(0x9e37_79b9)).collect();
        let from: Vec<u8> = words.iter().flat_map(|x| x.to_le_bytes()).collect();
        for (first, count) in [(0, 3), (6, 3), (29, 3), (3, 12), (0, 32)] {
            let want = |row: usize| words[row] >> first & (u32::MAX >> (32 - count));
            let to = (count as usize).div_ceil(8).next_power_of_two();
            let mut elements = vec![0; 16 * to];
            cut(&from[20..], 4, (first, count), to, &mut elements);
            let mut columns = vec![0; 2 * count as usize];
            spread(&from[20..], 4, (first, count), &mut columns);
            let mut back = vec![0xff; 16 * 4];
            bits_to_words(&columns, 16, count as usize, (&mut back, 4));
            for row in 0..16 {
                let word = word(&elements[row * to..][..to]) as u32;
                assert_eq!(word, want(row + 5), "bits {first}, {count}");
                let bits = (0..count).map(|bit| {
                    u32::from(columns[2 * bit as usize + row / 8] >> (row % 8) & 1) << bit
                });
                assert_eq!(bits.sum::<u32>(), word);
                assert_eq!(back[4 * row..][..4], word.to_le_bytes());
            }
        }
    }
}
