//! A sort by comparisons that are opened: which rows are compared next, of what was opened before.
//!
//! Rows have moved by a permutation that no party knows, and no two of them are equal. So what is opened says where each row belongs, a uniform
//! permutation, and nothing else: which rows are compared, and how often, follows from it.
//!
//! A *segment* is places whose rows are all larger than those before and smaller than those behind. Of a segment of m rows some √m, the first, which
//! are as good as any, are compared with each other; every other row goes between two of them by a search that halves, and segments become those
//! between. Small segments are compared pair by pair. Segments go on side by side, so that there are few batches: each has at most as many comparisons
//! as it has room for.
//!
//! From: Frazer, McKellar, "Samplesort: A Sampling Approach to Minimal Storage Tree Sorting", JACM 1970; Hamada, Kikuchi, Ikarashi, Chida, Takahashi,
//! "Practically Efficient Multi-party Sorting Protocols from Comparison Sort Algorithms", ICISC 2012 (comparisons are opened behind a shuffle).

use std::ops::Range;

use veil_job::passes::comparisons_at_once;

/// Rows that are compared pair by pair.
const SMALL: u32 = 8;

/// Comparisons that contradict each other: they are no order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("opened comparisons are no order")]
pub struct NoOrder;

/// Rows under way to their places.
#[derive(Debug)]
pub struct Search {
    /// The row at each place.
    rows: Vec<u32>,
    /// Between which samples of its segment the row at each place is, as far as is known.
    gaps: Vec<u32>,
    /// Segments of two rows or more, in the order of places.
    segments: Vec<Segment>,
    /// The places that are compared: whether the row at the first one is the smaller than that at the second one.
    pairs: [Vec<u32>; 2],
    /// The place where the row at each place was, in the places that have moved.
    from: Vec<u32>,
    moved: Vec<Range<usize>>,
    /// Memory of what is counted in a segment.
    counted: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u32,
    rows: u32,
    stage: Stage,
    /// It is in the present batch.
    asked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing is compared.
    New,
    /// All pairs are.
    All,
    /// All pairs of the first 2^bits − 1 rows are.
    Samples(u32),
    /// The first 2^bits − 1 rows are in order; of each other row, so many bits of its gap are known.
    Between { bits: u32, known: u32 },
}

const fn pairs_of(rows: u32) -> u64 {
    let rows = rows as u64;
    rows * rows.saturating_sub(1) / 2
}

impl Segment {
    const fn new(first: u32, rows: u32) -> Self {
        Segment {
            first,
            rows,
            stage: Stage::New,
            asked: false,
        }
    }

    /// What becomes of it in the next batch.
    fn stage(&self, all: bool) -> Stage {
        match self.stage {
            Stage::New if all || self.rows <= SMALL => Stage::All,
            Stage::New => Stage::Samples(self.rows.ilog2().div_ceil(2)),
            stage => stage,
        }
    }

    /// The rows of it that are compared with each other, or those that are not compared with samples.
    const fn samples(&self) -> u32 {
        match self.stage {
            Stage::New | Stage::All => self.rows,
            Stage::Samples(bits) | Stage::Between { bits, .. } => (1 << bits) - 1,
        }
    }

    /// Its comparisons in a batch.
    const fn comparisons(&self) -> u64 {
        match self.stage {
            Stage::Between { .. } => (self.rows - self.samples()) as u64,
            _ => pairs_of(self.samples()),
        }
    }

    const fn places(&self) -> Range<usize> {
        self.first as usize..(self.first + self.rows) as usize
    }
}

impl Search {
    /// Bytes of memory that a row takes, with the outcome of a comparison, while rows move.
    pub const BYTES: u64 = 6 * 4 + 1;

    /// Batches that so many rows are expected to take: those of as many comparisons as there is room for that have as many together, and those that have any.
    /// n rows take about n (log2 n + 2) comparisons in about 3/2 log2 n batches.
    pub fn expected(rows: u32) -> [u32; 2] {
        if rows < 2 {
            [0, 0]
        } else if pairs_of(rows) <= comparisons_at_once(rows).into() {
            [1, 1]
        } else {
            [rows.ilog2() + 2, rows.ilog2() * 3 / 2]
        }
    }

    /// Of rows of which nothing is known.
    pub fn new(rows: u32) -> Self {
        let all = (rows > 1).then(|| Segment::new(0, rows));
        Search {
            rows: (0..rows).collect(),
            gaps: vec![0; rows as usize],
            segments: all.into_iter().collect(),
            pairs: Default::default(),
            from: vec![0; rows as usize],
            moved: Vec::new(),
            counted: Vec::new(),
        }
    }

    /// The places that are compared in the present batch, the first ones and the second ones: whether the row at the first one is the smaller.
    pub fn pairs(&self) -> [&[u32]; 2] {
        self.pairs.each_ref().map(|places| &places[..])
    }

    /// The position of each row, once all are known.
    pub fn positions(&self) -> Option<Vec<u32>> {
        if !self.segments.is_empty() {
            return None;
        }
        let mut positions = vec![0; self.rows.len()];
        for (place, row) in (0..).zip(&self.rows) {
            positions[*row as usize] = place;
        }
        Some(positions)
    }

    /// Chooses what is compared in the next batch, of at most so many comparisons.
    pub fn choose(&mut self, room: u32) {
        let room = u64::from(room);
        // All that is left, if there is room for it.
        let all = self.segments.iter().map(|segment| match segment.stage {
            Stage::New => pairs_of(segment.rows),
            _ => segment.comparisons(),
        });
        let all = all.sum::<u64>() <= room;
        let [smaller, larger] = &mut self.pairs;
        smaller.clear();
        larger.clear();
        for segment in &mut self.segments {
            let next = Segment {
                stage: segment.stage(all),
                asked: true,
                ..*segment
            };
            if smaller.len() as u64 + next.comparisons() > room {
                continue;
            }
            *segment = next;
            let (first, samples) = (next.first, next.samples());
            if let Stage::Between { bits, known } = next.stage {
                let half = bits - 1 - known;
                let gaps = &self.gaps[next.places()][samples as usize..];
                let sample = |gap: &u32| first + ((2 * gap + 1) << half) - 1;
                smaller.extend(gaps.iter().map(sample));
                larger.extend(first + samples..first + next.rows);
            } else {
                for low in first..first + samples {
                    let above = low + 1..first + samples;
                    smaller.extend(above.clone().map(|_| low));
                    larger.extend(above);
                }
            }
        }
    }

    /// Takes what was opened of [`Search::pairs`], a bit each, packed. Rows at the places of [`Search::moved`] have moved.
    ///
    /// # Errors
    /// [`NoOrder`] if comparisons contradict each other.
    ///
    /// # Panics
    /// If there are fewer bits than pairs.
    pub fn learn(&mut self, smaller: &[u8]) -> Result<(), NoOrder> {
        let mut bytes = smaller.iter();
        let (mut bits, mut left_over) = (0, 0);
        let mut bit = || {
            if left_over == 0 {
                (bits, left_over) = (*bytes.next().expect("a bit for each pair"), 8);
            }
            let bit = bits & 1;
            (bits, left_over) = (bits >> 1, left_over - 1);
            u32::from(bit)
        };
        self.moved.clear();
        let segments = std::mem::take(&mut self.segments);
        let mut left = Vec::with_capacity(segments.len());
        for mut segment in segments {
            if !segment.asked {
                left.push(segment);
                continue;
            }
            segment.asked = false;
            match segment.stage {
                Stage::New => unreachable!("what is compared has a stage"),
                Stage::All | Stage::Samples(_) => {
                    self.rank(&segment, &mut bit)?;
                    if let Stage::Samples(bits) = segment.stage {
                        let known = 0;
                        segment.stage = Stage::Between { bits, known };
                        self.gaps[segment.places()].fill(0);
                        left.push(segment);
                    }
                }
                Stage::Between { bits, known } => {
                    let others = &mut self.gaps[segment.places()][segment.samples() as usize..];
                    for gap in others {
                        *gap = 2 * *gap + bit();
                    }
                    if known + 1 < bits {
                        let known = known + 1;
                        segment.stage = Stage::Between { bits, known };
                        left.push(segment);
                    } else {
                        self.split(&segment, &mut left);
                    }
                }
            }
        }
        self.segments = left;
        Ok(())
    }

    /// The places whose rows have moved with what was learnt last, and the place where the row at each of these was before.
    pub fn moved(&self) -> impl Iterator<Item = (Range<usize>, &[u32])> {
        let moved = self.moved.iter();
        moved.map(|places| (places.clone(), &self.from[places.clone()]))
    }

    /// Puts the rows of a segment that were compared with each other in order.
    fn rank(&mut self, segment: &Segment, bit: &mut impl FnMut() -> u32) -> Result<(), NoOrder> {
        let samples = segment.samples() as usize;
        self.counted.clear();
        self.counted.resize(samples, 0);
        let smaller = &mut self.counted[..];
        for low in 0..samples {
            let mut of_low = 0;
            for count in &mut smaller[low + 1..] {
                let low_is_smaller = bit();
                *count += low_is_smaller;
                of_low += 1 - low_is_smaller;
            }
            smaller[low] += of_low;
        }
        let first = segment.first as usize;
        let from = &mut self.from[first..first + samples];
        from.fill(u32::MAX);
        for (place, rank) in (segment.first..).zip(smaller) {
            let to = &mut from[*rank as usize];
            if *to != u32::MAX {
                return Err(NoOrder);
            }
            *to = place;
        }
        self.go(first..first + samples);
        Ok(())
    }

    /// Puts the rows of a segment between its samples: what is between is segments.
    fn split(&mut self, segment: &Segment, left: &mut Vec<Segment>) {
        let (first, samples) = (segment.first as usize, segment.samples() as usize);
        let gaps = &self.gaps[segment.places()][samples..];
        self.counted.clear();
        self.counted.resize(samples + 1, 0);
        for gap in gaps {
            self.counted[*gap as usize] += 1;
        }
        let mut place = segment.first;
        for (gap, count) in self.counted.iter_mut().enumerate() {
            let rows = std::mem::replace(count, place);
            if rows > 1 {
                left.push(Segment::new(place, rows));
            }
            place += rows;
            if gap < samples {
                self.from[place as usize] = (first + gap) as u32;
                place += 1;
            }
        }
        for (was, gap) in ((first + samples) as u32..).zip(gaps) {
            let place = &mut self.counted[*gap as usize];
            self.from[*place as usize] = was;
            *place += 1;
        }
        self.go(segment.places());
    }

    /// Moves what is known of rows to their new places.
    fn go(&mut self, places: Range<usize>) {
        let (first, from) = (places.start, &self.from[places.clone()]);
        self.counted.clear();
        self.counted.extend_from_slice(&self.rows[places.clone()]);
        for (row, was) in self.rows[places.clone()].iter_mut().zip(from) {
            *row = self.counted[*was as usize - first];
        }
        match self.moved.last_mut() {
            Some(last) if last.end == first => last.end = places.end,
            _ => self.moved.push(places),
        }
    }
}

#[cfg(test)]
mod tests {
    use veil_job::passes::{comparisons_at_once as room, passes_of_comparisons};

    use super::*;

    /// A permutation of so many, of a seed.
    fn permutation(rows: u32, mut seed: u64) -> Vec<u32> {
        let mut all: Vec<u32> = (0..rows).collect();
        for last in (1..all.len()).rev() {
            seed = seed
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            all.swap(
                last,
                ((u128::from(seed) * (last as u128 + 1)) >> 64) as usize,
            );
        }
        all
    }

    /// What is opened of places with these keys.
    fn opened([first, second]: [&[u32]; 2], keys: &[u32]) -> Vec<u8> {
        let mut bits = vec![0; first.len().div_ceil(8)];
        for (at, (low, high)) in first.iter().zip(second).enumerate() {
            let smaller = keys[*low as usize] < keys[*high as usize];
            bits[at / 8] |= u8::from(smaller) << (at % 8);
        }
        bits
    }

    /// Batches, and comparisons; the positions are looked at.
    fn sort(keys: &[u32]) -> (u32, u64) {
        let rows = keys.len() as u32;
        let mut search = Search::new(rows);
        let (mut batches, mut comparisons) = (0, 0);
        // What lies at each place, moved as it says.
        let mut at = keys.to_vec();
        loop {
            if let Some(positions) = search.positions() {
                assert_eq!(positions, keys);
                return (batches, comparisons);
            }
            search.choose(room(rows));
            let [compared, _] = search.pairs().map(<[u32]>::len);
            assert!(compared > 0 && compared <= room(rows) as usize);
            (batches, comparisons) = (batches + 1, comparisons + compared as u64);
            search.learn(&opened(search.pairs(), &at)).unwrap();
            let before = at.clone();
            for (places, from) in search.moved() {
                let were = from.iter().map(|was| before[*was as usize]);
                at[places]
                    .iter_mut()
                    .zip(were)
                    .for_each(|(to, was)| *to = was);
            }
        }
    }

    #[test]
    fn rows_find_their_positions_in_fewer_batches_than_there_are() {
        for rows in (0..70).chain([127, 128, 129, 1000, 4096, 10_000, 100_000]) {
            let mut most = 0;
            for seed in 0..(100_000 / (rows + 1)).clamp(1, 60) {
                let keys = permutation(rows, seed.into());
                let (batches, comparisons) = sort(&keys);
                most = most.max(batches);
                // About as many as are expected, in batches and in comparisons.
                let [full, some] = Search::expected(rows);
                assert!(
                    (some / 2..=2 * some + 2).contains(&batches),
                    "{batches} of {rows}"
                );
                let expected = u64::from(full) * u64::from(room(rows));
                assert!(comparisons <= 2 * expected, "{comparisons} of {rows}");
                // log2 n! is what any sort takes; small ones have room for all pairs.
                let bound = u64::from(rows) * u64::from(rows.max(2).ilog2() + 4);
                let bound = bound.max(u64::from(room(0)) * u64::from(batches));
                assert!(
                    comparisons <= bound,
                    "{comparisons} comparisons of {rows} rows"
                );
            }
            assert!(
                most + 8 <= passes_of_comparisons(rows) || rows < 2,
                "{most} batches of {rows} rows"
            );
        }
    }

    #[test]
    fn orders_that_no_shuffle_gives_take_longer_and_end() {
        for rows in [2u32, 9, 100, 5000] {
            let forwards: Vec<u32> = (0..rows).collect();
            let backwards: Vec<u32> = (0..rows).rev().collect();
            sort(&forwards);
            sort(&backwards);
        }
    }

    #[test]
    fn comparisons_that_contradict_each_other_are_no_order() {
        let mut search = Search::new(3);
        search.choose(room(3));
        assert_eq!(search.pairs(), [[0, 0, 1], [1, 2, 2]]);
        // 0 < 1, 1 < 2, 2 < 0.
        assert_eq!(search.learn(&[0b101]), Err(NoOrder));
    }

    #[test]
    fn of_no_rows_and_of_one_nothing_is_compared() {
        for rows in [0, 1] {
            let mut search = Search::new(rows);
            search.choose(room(rows));
            assert_eq!(search.pairs(), [&[] as &[u32], &[]]);
            assert_eq!(search.positions(), Some((0..rows).collect()));
        }
    }
}
