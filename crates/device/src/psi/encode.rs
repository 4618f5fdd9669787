//! Encoding: the keys of a bin one by one, the few that hang together at once.

use veil_session::Wiped;
use zeroize::{Zeroize, Zeroizing};

use super::steps::{Block, DUPLICATE, Digest, Each, UNSOLVED};
use super::{MOST_LEFT, Okvs, Row, SEEDS};
use crate::gf128::{dot, inverse};

/// A key of a bin: its columns, and its number among all keys.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    at: [u32; 3],
    pub(crate) key: u32,
}

/// The keys of a column: how many there are, and the XOR of their numbers in the bin.
#[derive(Clone, Copy, Default, Zeroize)]
struct Column {
    keys: u32,
    numbers: u32,
}

/// Memory that bins are solved in, one after the other.
#[derive(Default, Zeroize)]
struct Scratch {
    columns: Vec<Column>,
    /// Columns that had a key for themselves.
    list: Vec<u32>,
    /// Columns with the keys that they were taken with.
    taken: Vec<(u32, u32)>,
    left: Vec<u32>,
    rests: Vec<u128>,
}

/// Writes a solution, and the seed that there is one for. `draw` makes blocks of the call, from a number on.
pub(super) fn encode<E: Each>(
    each: &E,
    okvs: Okvs,
    digests: &[Digest],
    draw: &dyn Fn(u64, &mut [u8]),
    (seed, to): (&mut Block, &mut [Block]),
) -> Result<(), &'static str> {
    let mut rows = Wiped::from(vec![Row::default(); digests.len()]);
    let mut scratch = Zeroizing::new(Scratch::default());
    for number in 0..SEEDS {
        draw(number.into(), seed);
        draw(SEEDS.into(), to.as_flattened_mut());
        each.rows(okvs, *seed, digests, &mut rows);
        let (entries, ends) = sorted(okvs, &rows);
        let (mut first, mut solved) = (0, true);
        for (bin, end) in to.chunks_exact_mut(okvs.width() as usize).zip(&*ends) {
            let entries = &entries[first..*end];
            solved = solved && solve(each, okvs, (entries, digests), bin, &mut scratch)?;
            first = *end;
        }
        if solved {
            return Ok(());
        }
    }
    Err(UNSOLVED)
}

/// The keys of each bin in their order, one bin behind the other, and where bins end.
fn sorted(okvs: Okvs, rows: &[Row]) -> (Wiped<Entry>, Wiped<usize>) {
    let mut ends = Wiped::from(vec![0usize; okvs.bins as usize]);
    for row in rows {
        ends[row.bin as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut *ends {
        sum += *end;
        *end = sum - *end;
    }
    let mut entries = Wiped::from(vec![Entry::default(); rows.len()]);
    for (key, row) in (0..).zip(rows) {
        let at = &mut ends[row.bin as usize];
        entries[*at] = Entry { at: row.at, key };
        *at += 1;
    }
    (entries, ends)
}

/// Solves a bin, whose columns were drawn; whether there is a solution.
fn solve<E: Each>(
    each: &E,
    okvs: Okvs,
    (entries, digests): (&[Entry], &[Digest]),
    bin: &mut [Block],
    scratch: &mut Scratch,
) -> Result<bool, &'static str> {
    peel(okvs, entries, scratch);
    if !scratch.left.is_empty() {
        let mut same: Vec<&Digest> = scratch
            .left
            .iter()
            .map(|k| &digests[entries[*k as usize].key as usize])
            .collect();
        same.sort_unstable();
        if same.windows(2).any(|two| two[0] == two[1]) {
            return Err(DUPLICATE);
        }
        if same.len() > MOST_LEFT || !left_over(okvs, (entries, digests), bin, &scratch.left) {
            return Ok(false);
        }
    }
    let (sparse, dense) = bin.split_at_mut(okvs.sparse as usize);
    scratch.rests.resize(entries.len(), 0);
    each.rests(digests, entries, dense, &mut scratch.rests);
    for (column, k) in scratch.taken.iter().rev() {
        let entry = &entries[*k as usize];
        let mut value = scratch.rests[*k as usize];
        for at in entry.at {
            if at != *column {
                value ^= u128::from_le_bytes(sparse[at as usize]);
            }
        }
        sparse[*column as usize] = value.to_le_bytes();
    }
    Ok(true)
}

/// Takes keys that have a column for themselves, as long as there are some.
fn peel(okvs: Okvs, entries: &[Entry], scratch: &mut Scratch) {
    let Scratch {
        columns,
        list,
        taken,
        left,
        ..
    } = scratch;
    columns.clear();
    columns.resize(okvs.sparse as usize, Column::default());
    for (k, entry) in (0..).zip(entries) {
        for at in entry.at {
            let column = &mut columns[at as usize];
            column.keys += 1;
            column.numbers ^= k;
        }
    }
    list.clear();
    taken.clear();
    left.clear();
    list.extend((0..okvs.sparse).filter(|at| columns[*at as usize].keys == 1));
    let mut next = 0;
    while let Some(&at) = list.get(next) {
        next += 1;
        let Column {
            keys: 1,
            numbers: k,
        } = columns[at as usize]
        else {
            continue;
        };
        taken.push((at, k));
        for other in entries[k as usize].at {
            let column = &mut columns[other as usize];
            column.keys -= 1;
            column.numbers ^= k;
            if column.keys == 1 {
                list.push(other);
            }
        }
    }
    if taken.len() < entries.len() {
        let mut is_left = Zeroizing::new(vec![true; entries.len()]);
        for (_, k) in taken.iter() {
            is_left[*k as usize] = false;
        }
        left.extend((0..).zip(&*is_left).filter(|of| *of.1).map(|(k, _)| k));
    }
}

/// A sum of keys that are left: its sparse columns as bits, its dense part, and its value.
struct Sum {
    bits: Zeroizing<Vec<u64>>,
    dense: Zeroizing<Vec<u128>>,
    value: u128,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.bits
            .iter_mut()
            .zip(&*other.bits)
            .for_each(|(a, b)| *a ^= b);
        self.dense
            .iter_mut()
            .zip(&*other.dense)
            .for_each(|(a, b)| *a ^= b);
        self.value ^= other.value;
    }

    fn has(&self, bit: usize) -> bool {
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn lowest(&self) -> Option<usize> {
        let word = self.bits.iter().position(|word| *word != 0)?;
        Some(64 * word + self.bits[word].trailing_zeros() as usize)
    }

    /// The value less the dense part.
    fn rest(&self, dense: &[Block]) -> u128 {
        let parts = self.dense.iter().zip(dense);
        parts.fold(self.value, |rest, (factor, column)| {
            rest ^ dot(*factor, u128::from_le_bytes(*column))
        })
    }
}

impl Drop for Sum {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

/// Sets dense columns, and those of the keys that are left; whether there is a solution.
fn left_over(
    okvs: Okvs,
    (entries, digests): (&[Entry], &[Digest]),
    bin: &mut [Block],
    left: &[u32],
) -> bool {
    let of = |k: &u32| &entries[*k as usize];
    let mut columns: Zeroizing<Vec<u32>> =
        Zeroizing::new(left.iter().flat_map(|k| of(k).at).collect());
    columns.sort_unstable();
    columns.dedup();
    let (mut sums, mut equations): (Vec<(usize, Sum)>, Vec<Sum>) = (Vec::new(), Vec::new());
    for entry in left.iter().map(of) {
        let (value, factor) = super::steps::parts(&digests[entry.key as usize]);
        let mut sum = Sum {
            bits: Zeroizing::new(vec![0; columns.len().div_ceil(64)]),
            dense: Zeroizing::new(Vec::with_capacity(okvs.dense as usize)),
            value,
        };
        for at in entry.at {
            let bit = columns.partition_point(|column| *column < at);
            sum.bits[bit / 64] |= 1 << (bit % 64);
        }
        let mut power = factor;
        for _ in 0..okvs.dense {
            sum.dense.push(power);
            power = dot(power, factor);
        }
        for (pivot, other) in &sums {
            if sum.has(*pivot) {
                sum.add(other);
            }
        }
        match sum.lowest() {
            Some(pivot) => sums.push((pivot, sum)),
            None => equations.push(sum),
        }
    }
    let (sparse, dense) = bin.split_at_mut(okvs.sparse as usize);
    if !dense_columns(equations, dense) {
        return false;
    }
    for (pivot, sum) in sums.iter().rev() {
        let mut value = sum.rest(dense);
        for (bit, column) in columns.iter().enumerate() {
            if bit != *pivot && sum.has(bit) {
                value ^= u128::from_le_bytes(sparse[*column as usize]);
            }
        }
        sparse[columns[*pivot] as usize] = value.to_le_bytes();
    }
    true
}

/// Sets dense columns so that equations hold; whether there is a solution.
fn dense_columns(equations: Vec<Sum>, dense: &mut [Block]) -> bool {
    let mut solved: Vec<(usize, Sum)> = Vec::new();
    for mut equation in equations {
        for (pivot, other) in &solved {
            let factor = equation.dense[*pivot];
            for (a, b) in equation.dense.iter_mut().zip(&*other.dense) {
                *a ^= dot(factor, *b);
            }
            equation.value ^= dot(factor, other.value);
        }
        let Some(pivot) = equation.dense.iter().position(|factor| *factor != 0) else {
            return false;
        };
        let factor = inverse(equation.dense[pivot]);
        equation.dense.iter_mut().for_each(|a| *a = dot(factor, *a));
        equation.value = dot(factor, equation.value);
        solved.push((pivot, equation));
    }
    for (pivot, equation) in solved.iter().rev() {
        // Its own column counts once, with the factor that changes nothing.
        dense[*pivot] = [0; 16];
        dense[*pivot] = equation.rest(dense).to_le_bytes();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Plain;
    use super::super::steps::parts;
    use super::*;

    /// Test data only (Steele, Lea, Flood 2014).
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn digests(count: u32, state: &mut u64) -> Vec<Digest> {
        let words = |state: &mut u64| std::array::from_fn(|_| random(state).to_le_bytes());
        let digest = |_| {
            let words: [[u8; 8]; 4] = words(state);
            words.as_flattened().try_into().expect("32 bytes")
        };
        (0..count).map(digest).collect()
    }

    /// Random keys in one bin under one seed: whether they are encoded, rightly, and how many are left over.
    fn once(okvs: Okvs, count: u32, state: &mut u64) -> (bool, usize) {
        let digests = digests(count, state);
        let mut rows = vec![Row::default(); digests.len()];
        let seed = u128::from(random(state)).to_le_bytes();
        Plain.rows(okvs, seed, &digests, &mut rows);
        let (entries, ends) = sorted(okvs, &rows);
        assert_eq!(ends[..], [digests.len()]);
        let mut bin = vec![Block::default(); okvs.width() as usize];
        for block in &mut bin {
            *block = (u128::from(random(state)) << 64 | u128::from(random(state))).to_le_bytes();
        }
        let mut scratch = Scratch::default();
        let solved = solve(&Plain, okvs, (&entries, &digests), &mut bin, &mut scratch);
        let solved = solved.expect("different keys");
        if solved {
            for (digest, row) in digests.iter().zip(&rows) {
                let (value, mut power) = parts(digest);
                let factor = power;
                let mut sum = 0;
                for at in row.at {
                    sum ^= u128::from_le_bytes(bin[at as usize]);
                }
                for column in &bin[okvs.sparse as usize..] {
                    sum ^= dot(power, u128::from_le_bytes(*column));
                    power = dot(power, factor);
                }
                assert_eq!(sum, value, "{okvs:?}: {row:?}");
            }
        }
        (solved, scratch.left.len())
    }

    /// How many of `trials` are not encoded.
    fn failures(okvs: Okvs, count: u32, trials: u32) -> u32 {
        let mut state = 1;
        (0..trials)
            .map(|_| u32::from(!once(okvs, count, &mut state).0))
            .sum()
    }

    fn store(sparse: u32, dense: u32) -> Okvs {
        Okvs {
            bins: 1,
            sparse,
            dense,
        }
    }

    /// Two keys fail where they have the same three columns and there is no dense one; a dense one helps. Three keys with the same columns need two.
    #[test]
    fn few_keys_fail_as_often_as_their_columns_are_the_same() {
        let trials = 20_000;
        for (sparse, triples) in [(3, 1.0), (4, 4.0), (5, 10.0), (6, 20.0)] {
            let want: f64 = f64::from(trials) / triples;
            let found = failures(store(sparse, 0), 2, trials);
            let spread = (want * (1.0 - 1.0 / triples)).sqrt();
            assert!(
                (f64::from(found) - want).abs() <= 5.0 * spread,
                "{sparse} columns: {found}, not {want}"
            );
            assert_eq!(failures(store(sparse, 1), 2, 2000), 0);
        }
        assert_eq!(failures(store(3, 1), 3, 50), 50);
        assert_eq!(failures(store(3, 2), 3, 50), 0);
        assert_eq!(failures(store(4, 5), 6, 200), 0);
    }

    /// The published fit for so few bits of security that failures can be counted: fewer are found, as keys that are left over are solved as a whole.
    #[test]
    fn measured_failures_are_below_the_formula() {
        let log = 3f64.log2();
        let c = 0.093 * log.powi(3) - 1.01 * log.powi(2) + 2.925 * log - 0.133;
        for (keys, trials) in [(16u32, 6000u32), (64, 4000), (256, 2000), (1024, 600)] {
            for security in [4.0, 6.0] {
                let n = f64::from(keys);
                let expansion = 1.223 + (security + 9.2) / (0.555 * n.log2() + c).exp2();
                let dense = (security / (expansion * n).log2()).floor();
                let okvs = store((expansion * n).ceil() as u32, dense as u32);
                let found = f64::from(failures(okvs, keys, trials));
                let want = f64::from(trials) * 0.5f64.powf(security);
                assert!(
                    found <= want + 5.0 * want.sqrt(),
                    "{keys} keys at 2^-{security}: {found} of {trials}"
                );
            }
        }
    }

    /// A receiver that lies has more keys than it declared: as many as there are columns, almost, without trying a hash.
    #[test]
    fn a_store_takes_more_keys_than_it_is_for() {
        let mut state = 3;
        for (keys, more) in [(1, 20), (10, 34), (100, 180)] {
            let okvs = Okvs::of(keys);
            assert!(u64::from(more) < okvs.columns() && okvs.columns() < okvs.most_keys());
            let solved = (0..20).filter(|_| once(okvs, more, &mut state).0).count();
            assert!(
                solved > 10,
                "{more} keys in a store of {keys}: {solved} of 20"
            );
        }
    }

    /// Below the threshold of 1.222 many keys hang together, more than are solved at once; at the default expansion next to none do.
    #[test]
    fn many_keys_need_the_expansion() {
        let mut state = 7;
        let short = store(4400, 3);
        for _ in 0..5 {
            let (solved, left) = once(short, 4000, &mut state);
            assert!(!solved && left > MOST_LEFT, "{left} left");
        }
        for keys in [1, 2, 3, 10, 100, 1000, 4000, 16_384] {
            assert!(once(Okvs::of(keys), keys, &mut state).0, "{keys} keys");
        }
    }
}
