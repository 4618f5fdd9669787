//! Permutations that parties with a common key draw.

use zeroize::Zeroizing;

use crate::prf::{DomainTag, Prf};

/// How a permutation of so many rows is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    /// Rows above which it is drawn by buckets: what a processor's second cache has room for.
    bucketed: u32,
    /// Rows of a bucket, on average: what its first cache has room for.
    bucket: u32,
}

const SHAPE: Shape = Shape {
    bucketed: 1 << 18,
    bucket: 1 << 11,
};

impl Shape {
    /// Bits that say which bucket a row is in; 0 if there are none.
    const fn bits(self, rows: u32) -> u32 {
        if rows <= self.bucketed {
            return 0;
        }
        u32::BITS - ((rows - 1) / self.bucket).leading_zeros()
    }
}

/// Counters that [`Prf::permutation`] takes for so many rows.
pub const fn permutation_counters(rows: u32) -> u64 {
    let each = if SHAPE.bits(rows) > 0 { 2 } else { 1 };
    rows as u64 * each
}

/// Blocks that [`permutation_by`] asks for at once, at most.
pub const PERMUTATION_BLOCKS: usize = 256;

impl Prf {
    /// A permutation of `rows` rows, drawn at [`permutation_counters`] counters from `first` on: entry `j` is the position to which the row at position `j`
    /// moves.
    ///
    /// It is the shuffle of Fisher and Yates (Durstenfeld, *Algorithm 235: Random permutation*, CACM 1964): position `j` is swapped with
    /// one of those from `j` on, by block `j` as a fraction of 2^128, so that no draw is rejected and counters are the same whatever is drawn. The distance
    /// to uniform is at most `rows²` / 2^129. Above 2^18 rows each row goes to a bucket by a block of its own, and buckets, one behind the other, are
    /// shuffled (Rao 1961; Sandelius 1962): the distribution is the same, and memory is reached in order.
    ///
    /// Memory is reached at positions that follow from the key, which the parties that draw hold.
    pub fn permutation(
        &self,
        tag: DomainTag,
        lane: u16,
        first: u64,
        j: u32,
        rows: u32,
    ) -> Zeroizing<Vec<u32>> {
        let mut order = Zeroizing::new(vec![0; rows as usize]);
        permutation_by(&mut order, |counter, blocks| {
            self.stream(tag, lane, first + counter, j, blocks.as_flattened_mut());
        });
        order
    }
}

/// The permutation that [`Prf::permutation`] draws, with blocks from where they are made fastest: `blocks(c, out)` fills `out`, which has at most
/// [`PERMUTATION_BLOCKS`], with those at `c`, `c + 1`, … counters after the first one.
///
/// # Panics
/// If there are 2^32 entries or more.
pub fn permutation_by(order: &mut [u32], blocks: impl FnMut(u64, &mut [[u8; 16]])) {
    let mut blocks = Blocks {
        make: blocks,
        made: Zeroizing::new([[0; 16]; PERMUTATION_BLOCKS]),
    };
    draw(order, SHAPE, &mut blocks);
}

/// Blocks, many at a time.
struct Blocks<F> {
    make: F,
    made: Zeroizing<[[u8; 16]; PERMUTATION_BLOCKS]>,
}

impl<F: FnMut(u64, &mut [[u8; 16]])> Blocks<F> {
    /// So many blocks from `counter` on, or as many as are made at once.
    #[inline]
    fn next(&mut self, counter: u64, count: usize) -> impl Iterator<Item = u128> {
        let made = &mut self.made[..count.min(PERMUTATION_BLOCKS)];
        (self.make)(counter, made);
        made.iter().map(|block| u128::from_le_bytes(*block))
    }

    /// Swaps each position with one of those from it on, by blocks from `first` on.
    fn shuffle(&mut self, rows: &mut [u32], first: u64) {
        let swaps = rows.len().saturating_sub(1);
        let mut parts = Zeroizing::new([0; PERMUTATION_BLOCKS]);
        for begin in (0..swaps).step_by(PERMUTATION_BLOCKS) {
            let rest = &mut rows[begin..];
            let left = rest.len() as u32;
            let parts = &mut parts[..(swaps - begin).min(PERMUTATION_BLOCKS)];
            let blocks = self.next(first + begin as u64, parts.len());
            // All at once before the first swap: no swap waits for a multiplication, and processors run ahead to those that wait for memory.
            for ((part, block), passed) in parts.iter_mut().zip(blocks).zip(0..) {
                *part = fraction(block, left - passed);
            }
            for (j, part) in parts.iter().enumerate() {
                rest.swap(j, j + *part as usize);
            }
        }
    }
}

fn draw(order: &mut [u32], shape: Shape, blocks: &mut Blocks<impl FnMut(u64, &mut [[u8; 16]])>) {
    let rows = u32::try_from(order.len()).expect("fewer than 2^32 rows");
    let bits = shape.bits(rows);
    if bits == 0 {
        for (place, row) in order.iter_mut().zip(0..) {
            *place = row;
        }
        blocks.shuffle(order, 0);
        return;
    }
    // The bucket of a row is drawn twice: that takes less time than to write all of them down, and leaves nothing to be wiped.
    let bucket = |block: u128| ((block >> 64) as u64 >> (u64::BITS - bits)) as usize;
    // Of each bucket how many rows it has, then where it begins.
    let mut starts = Zeroizing::new(vec![0u32; (1 << bits) + 1]);
    for first in (0..rows).step_by(PERMUTATION_BLOCKS) {
        for block in blocks.next(first.into(), (rows - first) as usize) {
            starts[bucket(block) + 1] += 1;
        }
    }
    for bucket in 0..1 << bits {
        starts[bucket + 1] += starts[bucket];
    }
    let mut next = Zeroizing::new(starts[..1 << bits].to_vec());
    for first in (0..rows).step_by(PERMUTATION_BLOCKS) {
        let blocks = blocks.next(first.into(), (rows - first) as usize);
        for (row, block) in (first..).zip(blocks) {
            let place = &mut next[bucket(block)];
            order[*place as usize] = row;
            *place += 1;
        }
    }
    for bounds in starts.windows(2) {
        let first = u64::from(rows) + u64::from(bounds[0]);
        blocks.shuffle(&mut order[bounds[0] as usize..bounds[1] as usize], first);
    }
}

/// The part `block` / 2^128 of `of`, rounded down.
#[inline]
const fn fraction(block: u128, of: u32) -> u32 {
    let high = (block >> 64) * of as u128;
    // What the lower half adds is below `of`: it is looked at where that may carry, once in 2^32 blocks.
    if high as u64 <= u64::MAX - of as u64 {
        return (high >> 64) as u32;
    }
    let low = (block & u64::MAX as u128) * of as u128;
    ((high + (low >> 64)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use veil_session::Secret;

    use super::*;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../vectors/permutations.json")).unwrap()
    }

    fn prf(vectors: &Value) -> Prf {
        let key = u128::from_str_radix(vectors["key"].as_str().unwrap(), 16).unwrap();
        Prf::new(&Secret::new(key.to_be_bytes()))
    }

    #[test]
    fn permutations_are_those_of_the_model() {
        let vectors = vectors();
        let prf = prf(&vectors);
        let whole = |value: &Value| value.as_u64().unwrap() as u32;
        assert_eq!(whole(&vectors["bucketed"]), SHAPE.bucketed);
        assert_eq!(whole(&vectors["bucket"]), SHAPE.bucket);
        let cases = vectors["cases"].as_array().unwrap();
        let mut by_buckets = 0;
        for case in cases {
            let at = |name: &str| whole(&case[name]);
            let shape = Shape {
                bucketed: at("bucketed"),
                bucket: at("bucket"),
            };
            by_buckets += u32::from(shape.bits(at("rows")) > 0);
            let tag = DomainTag(at("tag") as u16);
            let (lane, first, chunk) = (at("lane") as u16, u64::from(at("first")), at("chunk"));
            let mut blocks = Blocks {
                make: |counter, blocks: &mut [[u8; 16]]| {
                    prf.stream(tag, lane, first + counter, chunk, blocks.as_flattened_mut());
                },
                made: Zeroizing::new([[0; 16]; PERMUTATION_BLOCKS]),
            };
            let entries: Vec<u32> = case["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(whole)
                .collect();
            let mut order = vec![u32::MAX; at("rows") as usize];
            draw(&mut order, shape, &mut blocks);
            assert_eq!(order, entries, "{} rows", at("rows"));
        }
        assert!(by_buckets >= 2 && cases.len() >= 6);
    }

    #[test]
    fn what_is_drawn_is_a_permutation_and_takes_its_counters() {
        let prf = prf(&vectors());
        for rows in [0, 1, 2, 1000, SHAPE.bucketed, SHAPE.bucketed + 1] {
            let mut asked = 0;
            let mut drawn = vec![u32::MAX; rows as usize];
            permutation_by(&mut drawn, |counter, blocks| {
                asked = asked.max(counter + blocks.len() as u64);
                prf.stream(DomainTag(0x1700), 0, counter, 1, blocks.as_flattened_mut());
            });
            assert_eq!(drawn, *prf.permutation(DomainTag(0x1700), 0, 0, 1, rows));
            let mut sorted = drawn;
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..rows), "{rows}");
            assert!(asked <= permutation_counters(rows), "{rows}");
            assert!(asked + 1 >= permutation_counters(rows), "{rows}");
        }
    }

    /// Of four rows every permutation is drawn as often as any other, plainly and by buckets; so is a product of factors of which one is not known. The
    /// draws are fixed: a correct shuffle gives these numbers every time, one with a biased step is thousands off.
    #[test]
    fn all_permutations_are_drawn_as_often() {
        const DRAWS: u32 = 120_000;
        let prf = prf(&vectors());
        let drawn = |shape: Shape, tag: u16, number: u32| {
            let mut blocks = Blocks {
                make: |counter, blocks: &mut [[u8; 16]]| {
                    prf.stream(
                        DomainTag(tag),
                        0,
                        counter,
                        number,
                        blocks.as_flattened_mut(),
                    );
                },
                made: Zeroizing::new([[0; 16]; PERMUTATION_BLOCKS]),
            };
            let mut order = [0; 4];
            draw(&mut order, shape, &mut blocks);
            order
        };
        let by_buckets = Shape {
            bucketed: 2,
            bucket: 2,
        };
        assert!(by_buckets.bits(4) > 0);
        let known = [2usize, 0, 3, 1];
        for (name, shape, factors) in [
            ("plain", SHAPE, false),
            ("by buckets", by_buckets, false),
            ("a product", SHAPE, true),
        ] {
            let mut counts = std::collections::BTreeMap::new();
            for number in 0..DRAWS {
                let mut order = drawn(shape, 0x1700, number);
                if factors {
                    // What a party that lacks this factor knows of the product is the other one.
                    order = known.map(|row| order[row]);
                }
                *counts.entry(order).or_insert(0u32) += 1;
            }
            assert_eq!(counts.len(), 24, "{name}");
            let expected = f64::from(DRAWS) / 24.0;
            let squares = counts
                .values()
                .map(|count| (f64::from(*count) - expected).powi(2));
            let chi = squares.sum::<f64>() / expected;
            // 23 degrees of freedom: beyond 60 in one case of 40 000.
            assert!(chi < 60.0, "{name}: {chi}");
        }
    }

    #[test]
    fn fractions_are_rounded_down() {
        assert_eq!(fraction(u128::MAX, 7), 6);
        assert_eq!(fraction(0, 7), 0);
        assert_eq!(fraction(1 << 127, u32::MAX), u32::MAX / 2);
        // The first block whose part is `part`, and the one before it.
        let first = |part: u32, of: u32| {
            let (of, part) = (u128::from(of), u128::from(part));
            let (quotient, rest) = (u128::MAX / of, u128::MAX % of + 1);
            quotient * part + (rest * part).div_ceil(of)
        };
        for of in [2, 3, 7, 1000, u32::MAX - 1, u32::MAX] {
            for part in [1, of / 2, of - 1].into_iter().filter(|part| *part > 0) {
                let block = first(part, of);
                for (block, part) in [(block, part), (block - 1, part - 1)] {
                    assert_eq!(fraction(block, of), part, "{block} of {of}");
                }
            }
        }
    }

    /// Where the lower half of a block decides, it does.
    #[test]
    fn lower_halves_decide_swaps() {
        let third = u128::MAX / 3;
        for (block, swapped) in [(third, [0, 1, 2]), (third + 1, [1, 0, 2])] {
            let mut order = [0; 3];
            permutation_by(&mut order, |counter, blocks| {
                for (k, made) in (counter..).zip(blocks) {
                    *made = if k == 0 { block } else { 0 }.to_le_bytes();
                }
            });
            assert_eq!(order, swapped);
        }
    }
}
