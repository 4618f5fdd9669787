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
        let block = |counter: u64| u128::from_le_bytes(self.block(tag, lane, first + counter, j));
        drawn(rows, SHAPE, block)
    }
}

fn drawn(rows: u32, shape: Shape, block: impl Fn(u64) -> u128) -> Zeroizing<Vec<u32>> {
    let bits = shape.bits(rows);
    let mut order = Zeroizing::new(Vec::with_capacity(rows as usize));
    if bits == 0 {
        order.extend(0..rows);
        shuffle(&mut order, block);
        return order;
    }
    // Of each bucket how many rows it has, then where it begins.
    let of = |row: u32| (block(row.into()) >> (128 - bits)) as usize;
    let buckets = Zeroizing::new((0..rows).map(|row| of(row) as u32).collect::<Vec<_>>());
    let mut starts = Zeroizing::new(vec![0u32; (1 << bits) + 1]);
    for bucket in buckets.iter() {
        starts[*bucket as usize + 1] += 1;
    }
    for bucket in 0..1 << bits {
        starts[bucket + 1] += starts[bucket];
    }
    order.resize(rows as usize, 0);
    let mut next = Zeroizing::new(starts[..1 << bits].to_vec());
    for (row, bucket) in (0..rows).zip(buckets.iter()) {
        let place = &mut next[*bucket as usize];
        order[*place as usize] = row;
        *place += 1;
    }
    for bounds in starts.windows(2) {
        let rows_before = u64::from(rows) + u64::from(bounds[0]);
        let bucket = &mut order[bounds[0] as usize..bounds[1] as usize];
        shuffle(bucket, |counter| block(rows_before + counter));
    }
    order
}

/// Swaps each position with one of those from it on.
fn shuffle(rows: &mut [u32], block: impl Fn(u64) -> u128) {
    for j in 0..rows.len().saturating_sub(1) {
        let left = (rows.len() - j) as u64;
        rows.swap(j, j + fraction(block(j as u64), left) as usize);
    }
}

/// The part `block` / 2^128 of `of`, rounded down.
const fn fraction(block: u128, of: u64) -> u64 {
    let (high, low) = (block >> 64, block & u64::MAX as u128);
    ((high * of as u128 + ((low * of as u128) >> 64)) >> 64) as u64
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
            let block = |counter: u64| {
                let counter = u64::from(at("first")) + counter;
                u128::from_le_bytes(prf.block(tag, at("lane") as u16, counter, at("chunk")))
            };
            let entries: Vec<u32> = case["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(whole)
                .collect();
            assert_eq!(
                *drawn(at("rows"), shape, block),
                entries,
                "{} rows",
                at("rows")
            );
        }
        assert!(by_buckets >= 2 && cases.len() >= 6);
    }

    #[test]
    fn what_is_drawn_is_a_permutation_and_takes_its_counters() {
        let prf = prf(&vectors());
        for rows in [0, 1, 2, 1000, SHAPE.bucketed, SHAPE.bucketed + 1] {
            let asked = std::cell::Cell::new(0);
            let block = |counter: u64| {
                asked.set(asked.get().max(counter + 1));
                u128::from_le_bytes(prf.block(DomainTag(0x1700), 0, counter, 1))
            };
            let drawn = drawn(rows, SHAPE, block);
            assert_eq!(*drawn, *prf.permutation(DomainTag(0x1700), 0, 0, 1, rows));
            let mut sorted = drawn.to_vec();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..rows), "{rows}");
            assert!(asked.get() <= permutation_counters(rows), "{rows}");
            assert!(asked.get() + 1 >= permutation_counters(rows), "{rows}");
        }
    }

    #[test]
    fn fractions_are_rounded_down() {
        assert_eq!(fraction(u128::MAX, 7), 6);
        assert_eq!(fraction(0, 7), 0);
        // A third, and the next number below it.
        let third = u128::MAX / 3;
        assert_eq!([fraction(third + 1, 3), fraction(third, 3)], [1, 0]);
        assert_eq!(fraction(1 << 127, u64::MAX), u64::MAX / 2);
    }
}
