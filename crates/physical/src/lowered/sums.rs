//! Sums over rows, and over the rows before each, of words.

use veil_circuit::Builder;
use veil_job::passes::{PassSpec, Take};
use veil_math::Ring;

use super::columns::{Taken, port};
use super::{Lowered, Word, bits_for};
use crate::PhysicalError;
use crate::bits::words;
use crate::plan::aim_of;

/// Rows that one pass adds up. Upside of more: fewer passes, and fewer carries that run along a word. Downside: words of the first sums are wider than most of them need.
const FAN_IN: u32 = 16;

/// Words that are added up: no sum has more bits than so many of the largest one have.
#[derive(Clone, Copy)]
struct Summed {
    /// Rows that there were at first.
    rows: u32,
    /// The largest that each of them may be.
    largest: u128,
    /// Bits of a sum that are read.
    read: u32,
}

impl Summed {
    const fn of(word: Word, read: u32) -> Self {
        Summed {
            rows: word.rows,
            largest: words::largest(word.bits as usize),
            read,
        }
    }

    /// Bits of the sum of so many rows, at least one.
    fn bits(self, rows: u64) -> u32 {
        let rows = u128::from(rows.min(self.rows.into()));
        let bits = bits_for(self.largest.saturating_mul(rows));
        bits.min(self.read).max(1)
    }
}

impl Lowered<'_> {
    /// One row with the sum over all rows of a word, of which so many low bits are read.
    pub(super) fn total(&mut self, of: Word, read: u32) -> Result<Word, PhysicalError> {
        let summed = Summed::of(of, read);
        let (mut word, mut rows) = (of, 1_u64);
        while word.rows > 1 {
            let fan = word.rows.min(FAN_IN);
            rows *= u64::from(fan);
            let bits = summed.bits(rows);
            let step = |first: u32| Take::Rows {
                of: vec![word.column],
                first: first.into(),
                step: fan.cast_signed(),
            };
            let takes = (0..fan).map(step).collect();
            let next = word.rows.div_ceil(fan);
            let mut b = Builder::new(Ring::Bits);
            let all = (0..fan).map(|k| port(&mut b, (&format!("row{k}"), word.bits), bits));
            let all: Vec<_> = all.collect();
            let sum = words::sum_of(&mut b, &all, bits as usize, aim_of(next));
            b.output("sum", &sum);
            word = self.computed(b, next, (takes, bits))?;
        }
        Ok(word)
    }

    /// In each row the sum over the rows before it, of which so many low bits are read: nothing where all of them are zero.
    pub(super) fn sums_before(
        &mut self,
        of: Word,
        read: u32,
    ) -> Result<Option<Word>, PhysicalError> {
        let key = (of.column, read);
        if let Some(known) = self.before.get(&key) {
            return Ok(*known);
        }
        let sums = self.prefix(of, 1, Summed::of(of, read))?;
        self.before.insert(key, sums);
        Ok(sums)
    }

    /// The same, of rows that are the sums of `each` rows.
    ///
    /// Pairs of rows are added up; what comes before a pair comes before its first row, and that together with the first row comes before the second one.
    fn prefix(
        &mut self,
        of: Word,
        each: u64,
        summed: Summed,
    ) -> Result<Option<Word>, PhysicalError> {
        let rows = of.rows;
        if rows < 2 {
            return Ok(None);
        }
        let every_other = |first| Take::Rows {
            of: vec![of.column],
            first,
            step: 2,
        };
        let half = rows.div_ceil(2);
        let before = if rows == 2 {
            None
        } else {
            let bits = summed.bits(2 * each);
            let takes = vec![every_other(0), every_other(1)];
            let pairs = self.added(half, [of.bits, of.bits], (takes, bits))?;
            self.prefix(pairs, 2 * each, summed)?
        };
        let Some(before) = before else {
            let take = Take::shifted(of.column, -1);
            let bits = of.bits;
            return Ok(Some(self.make(Taken { take, bits }, rows)?));
        };
        let bits = summed.bits(u64::MAX);
        let both = self.turns(before, (of, every_other(0)), bits)?;
        let [even, odd] = both.map(|word| word.column);
        let take = Take::Turns { even, odd };
        Ok(Some(self.make(Taken { take, bits }, rows)?))
    }

    /// The sum of two words in each row.
    fn added(
        &mut self,
        rows: u32,
        of: [u32; 2],
        (takes, bits): (Vec<Take>, u32),
    ) -> Result<Word, PhysicalError> {
        let mut b = Builder::new(Ring::Bits);
        let [x, y] = [("x", of[0]), ("y", of[1])].map(|of| port(&mut b, of, bits));
        let sum = words::plus(&mut b, &x, &y, aim_of(rows));
        b.output("sum", &sum);
        self.computed(b, rows, (takes, bits))
    }

    /// What comes before the first row of each pair, and before the second one, in as many bits.
    fn turns(
        &mut self,
        before: Word,
        (of, first): (Word, Take),
        bits: u32,
    ) -> Result<[Word; 2], PhysicalError> {
        let rows = before.rows;
        let mut b = Builder::new(Ring::Bits);
        let both = [("before", before.bits), ("first", of.bits)];
        let [x, y] = both.map(|of| port(&mut b, of, bits));
        let sum = words::plus(&mut b, &x, &y, aim_of(rows));
        b.output("before first", &x);
        b.output("before second", &sum);
        let job = self.common(b, rows)?;
        let both = [(); 2].map(|()| self.word(rows, bits));
        self.push(PassSpec::Rows {
            job,
            takes: vec![Some(Take::Of(before.column)), Some(first)],
            leaves: both.map(|word| Some(word.column)).to_vec(),
            claim: None,
        });
        Ok(both)
    }
}
