//! Joins in which both sides may have a key more than once, up to a public number of pairs.
//!
//! The keys of both are sorted together. Scans count, for each row of the left, how many rows of the right come before those with its key, and how many have it; for each row of the
//! right which one it is in the order of keys. Each row of the left is given as many places as it has matches, and looks the first one up that is its own: place t of a row that begins at s
//! has match t − s.
//!
//! From: Krastnikov, Kerschbaum, Stebila, "Efficient Oblivious Database Joins", PVLDB 13, 2020, which expands both sides and aligns them by a sort. Here the right is looked up
//! by its number, which is there once.

use veil_circuit::generate::{Aim, add, constant_bits, less_than, sub};
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_job::passes::{ColumnForm, Take};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::join::Duplicates;
use crate::key::{Key, absence, done};
use crate::scan::Scan;

/// One side of a join.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its key, as of [`Key`]: rows that take no part match none.
    pub key: &'a [Shared],
    /// Columns of bits that pairs have of it.
    pub columns: &'a [Shared],
}

/// Pairs of rows that match, in the order of the left, and for each of its rows in the order of the right.
#[derive(Debug)]
pub struct Pairs {
    /// Whether a row is a pair: the first ones are.
    pub valid: Shared,
    /// The columns of the left; anything in rows that are no pairs.
    pub left: Vec<Shared>,
    /// The columns of the right; anything in rows that are no pairs.
    pub right: Vec<Shared>,
}

/// What a row of the left knows of its matches, and a row of the right of itself.
struct Counted {
    /// Of the left: how many rows of the right have smaller keys.
    before: Shared,
    /// Of the left: how many have its key.
    matches: Shared,
    /// Of the right: its number among those that take part, as a key.
    number: Shared,
}

/// Bits that hold numbers up to this one.
const fn bits_for(most: u64) -> u32 {
    let bits = u64::BITS - most.leading_zeros();
    if bits == 0 { 1 } else { bits }
}

impl Builder {
    /// All pairs of rows with one key, of which there are at most `most`: the parties open whether there are more, and the run ends then, saying that `what` is false.
    ///
    /// # Panics
    /// If keys are not of the same words, or columns have not the rows of their key or are no bits.
    pub fn pairs(&mut self, left: Side<'_>, right: Side<'_>, most: u32, what: &str) -> Pairs {
        let counted = self.matches(left.key, right.key);
        let (rows, others) = (left.key[0].rows, right.key[0].rows);
        let all = u64::from(rows) * u64::from(others);
        let wide = Sharing::Bits(bits_for(all.max(most.into())));
        let matches = self.widened(counted.matches, wide);
        let first = self.within(rows, 0, 1);
        let ends = self.scan(first, &[(Scan::Sum, matches)])[0];
        let total = self.make(ends.rows_from(i64::from(rows) - 1), 1, wide);
        let beyond = self.exceeds(total, most);
        self.claim_none(beyond, what);
        // A relation has a row, though it be none.
        let places = most.max(1);
        let (place, key) = self.first_places(ends, matches, places);
        let numbers = self.numbers(places);
        let mut carried = vec![place, counted.before];
        carried.extend(left.columns);
        let spread = self.spread(key, numbers, &carried);
        let [place, before, left @ ..] = &spread[..] else {
            unreachable!("as many columns as were spread")
        };
        let (valid, wanted) = self.numbers_of_matches(numbers, [*place, *before], (total, others));
        let found = self.look_up(
            &[wanted],
            &[counted.number],
            right.columns,
            Duplicates::First,
        );
        Pairs {
            valid,
            left: left.to_vec(),
            right: found.columns,
        }
    }

    /// Counts in the order of keys, taken back to the rows.
    fn matches(&mut self, left: &[Shared], right: &[Shared]) -> Counted {
        let (rows, others) = (left[0].rows, right[0].rows);
        let key = Key::stacked(&[left, right]);
        let all = key.rows();
        let order = self.sort(&key);
        let of_right = Take::Within {
            first: rows,
            end: all,
        };
        let taken: Vec<(Take, Sharing)> =
            key.moved().chain([(of_right, Sharing::Bits(1))]).collect();
        let (opened, sorted) = self.apply_and_keep(&order, &taken);
        let (key, of_right) = sorted.split_at(left.len());
        let begins = self.firsts(key);
        let bits = bits_for(others.into());
        let counts = self.counted_rows(key, of_right[0], bits);
        let first = self.within(all, 0, 1);
        let so_far = self.scan(first, &[(Scan::Sum, counts)])[0];
        let in_all = self.copy_back(begins, &[so_far])[0];
        let form = Sharing::Bits(bits).form();
        let takes: Vec<(Take, ColumnForm)> = [so_far, in_all]
            .iter()
            .map(|column| (column.take(), form))
            .collect();
        let back = self.go_back(all, &opened, takes);
        let own = |column, first: u32| Take::shifted(column, first.into());
        // A row of the left comes before all of the right with its key.
        let mut b = Gates::new(Ring::Bits);
        let before = b.input("before", bits, Per::Row);
        let end = b.input("end", bits, Per::Row);
        let absent = b.input("absent", 1, Per::Row)[0];
        let present = b.not(absent);
        let matches = sub(&mut b, &end, &before, Aim::Size);
        let matches: Vec<Wire> = matches.iter().map(|bit| b.and(*bit, present)).collect();
        b.output("before", &before);
        b.output("matches", &matches);
        let takes = vec![own(back[0], 0), own(back[1], 0), absence(left)];
        let of_left = self.compute(done(b), rows, takes);
        let mut b = Gates::new(Ring::Bits);
        let so_far = b.input("so far", bits, Per::Row);
        let absent = b.input("absent", 1, Per::Row)[0];
        let present = b.not(absent);
        let one = constant_bits(&mut b, 1, bits);
        let number = sub(&mut b, &so_far, &one, Aim::Size);
        let mut number: Vec<Wire> = number.iter().map(|bit| b.and(*bit, present)).collect();
        number.push(absent);
        b.output("number", &number);
        let takes = vec![own(back[0], rows), absence(right)];
        let number = self.compute(done(b), others, takes)[0];
        Counted {
            before: of_left[0],
            matches: of_left[1],
            number,
        }
    }

    /// 1 in rows of the right that take part, in so many bits.
    fn counted_rows(&mut self, key: &[Shared], of_right: Shared, bits: u32) -> Shared {
        let mut b = Gates::new(Ring::Bits);
        let absent = b.input("absent", 1, Per::Row)[0];
        let of_right_here = b.input("of right", 1, Per::Row)[0];
        let present = b.not(absent);
        let counts = b.and(of_right_here, present);
        let zero = b.constant_bit(false);
        let mut word = vec![counts];
        word.resize(bits as usize, zero);
        b.output("counts", &word);
        let takes = vec![absence(key), of_right.take()];
        self.compute(done(b), of_right.rows, takes)[0]
    }

    /// The same numbers in more bits.
    fn widened(&mut self, of: Shared, to: Sharing) -> Shared {
        let (Sharing::Bits(from), Sharing::Bits(bits)) = (of.sharing, to) else {
            unreachable!("numbers are bits")
        };
        let mut b = Gates::new(Ring::Bits);
        let mut word = b.input("number", from, Per::Row);
        let zero = b.constant_bit(false);
        word.resize(bits as usize, zero);
        b.output("number", &word);
        self.compute(done(b), of.rows, vec![of.take()])[0]
    }

    /// Whether a number is more than a public one.
    fn exceeds(&mut self, of: Shared, most: u32) -> Shared {
        let Sharing::Bits(bits) = of.sharing else {
            unreachable!("numbers are bits")
        };
        let mut b = Gates::new(Ring::Bits);
        let number = b.input("number", bits, Per::Row);
        let most = constant_bits(&mut b, most.into(), bits);
        let more = less_than(&mut b, &most, &number, self.aim());
        b.output("more", &[more]);
        self.compute(done(b), of.rows, vec![of.take()])[0]
    }

    /// The first place of each row of the left, as a number and as a key: rows without matches have none.
    fn first_places(&mut self, ends: Shared, matches: Shared, most: u32) -> (Shared, Shared) {
        let Sharing::Bits(bits) = ends.sharing else {
            unreachable!("numbers are bits")
        };
        let places = bits_for(u64::from(most) - 1);
        let mut b = Gates::new(Ring::Bits);
        let end = b.input("end", bits, Per::Row);
        let matches_here = b.input("matches", bits, Per::Row);
        let first = sub(&mut b, &end, &matches_here, Aim::Size);
        let some = veil_circuit::generate::any(&mut b, &matches_here);
        let place: Vec<Wire> = first[..places as usize].to_vec();
        let mut key: Vec<Wire> = place.iter().map(|bit| b.and(*bit, some)).collect();
        key.push(b.not(some));
        b.output("place", &place);
        b.output("key", &key);
        let both = self.compute(done(b), ends.rows, vec![ends.take(), matches.take()]);
        (both[0], both[1])
    }

    /// The number of each row, from 0, which is public and shared as it is.
    fn numbers(&mut self, rows: u32) -> Shared {
        let bits = bits_for(u64::from(rows) - 1);
        let mut b = Gates::new(Ring::Bits);
        let first = b.input("first", 1, Per::Row)[0];
        let zero = b.constant_bit(false);
        let mut one = vec![b.not(first)];
        one.resize(bits as usize, zero);
        b.output("one", &one);
        let first = Take::Within { first: 0, end: 1 };
        let ones = self.compute(done(b), rows, vec![first])[0];
        let first = self.within(rows, 0, 1);
        self.scan(first, &[(Scan::Sum, ones)])[0]
    }

    /// Columns of rows that have places, at all places from theirs to the next one's.
    fn spread(&mut self, key: Shared, numbers: Shared, columns: &[Shared]) -> Vec<Shared> {
        let rows = key.rows;
        let Sharing::Bits(bits) = numbers.sharing else {
            unreachable!("numbers are bits")
        };
        let of_places = self.widened(numbers, Sharing::Bits(bits + 1));
        let stacked = Key::stacked(&[&[key], &[of_places]]);
        let order = self.sort(&stacked);
        let begins = (
            Take::Within {
                first: 0,
                end: rows,
            },
            Sharing::Bits(1),
        );
        let carried = columns
            .iter()
            .map(|column| (column.rows_from(0), column.sharing));
        let taken: Vec<(Take, Sharing)> = [begins].into_iter().chain(carried).collect();
        let (opened, sorted) = self.apply_and_keep(&order, &taken);
        let scans: Vec<_> = sorted[1..]
            .iter()
            .map(|column| (Scan::First, *column))
            .collect();
        let copied = self.scan(sorted[0], &scans);
        self.back_behind(&opened, &copied, rows)
    }

    /// Whether each place is a pair, and the number of its match on the right as a key.
    fn numbers_of_matches(
        &mut self,
        numbers: Shared,
        [place, before]: [Shared; 2],
        (total, others): (Shared, u32),
    ) -> (Shared, Shared) {
        let (Sharing::Bits(of_places), Sharing::Bits(of_total)) = (numbers.sharing, total.sharing)
        else {
            unreachable!("numbers are bits")
        };
        let bits = bits_for(others.into());
        let mut b = Gates::new(Ring::Bits);
        let number = b.input("number", of_places, Per::Row);
        let place_here = b.input("place", of_places, Per::Row);
        let before_here = b.input("before", bits, Per::Row);
        let total_here = b.input("total", of_total, Per::Row);
        let zero = b.constant_bit(false);
        let resized = |word: &[Wire], bits: u32| -> Vec<Wire> {
            let mut word = word.to_vec();
            word.resize(bits as usize, zero);
            word
        };
        let wide = resized(&number, of_total);
        let valid = less_than(&mut b, &wide, &total_here, Aim::Size);
        let offset = sub(&mut b, &number, &place_here, Aim::Size);
        let offset = resized(&offset, bits);
        let wanted = add(&mut b, &before_here, &offset, Aim::Size);
        let mut key: Vec<Wire> = wanted.iter().map(|bit| b.and(*bit, valid)).collect();
        key.push(b.not(valid));
        b.output("valid", &[valid]);
        b.output("key", &key);
        let every = Take::Rows {
            of: vec![total.column],
            first: 0,
            step: 0,
        };
        let takes = vec![numbers.take(), place.take(), before.take(), every];
        let both = self.compute(done(b), numbers.rows, takes);
        (both[0], both[1])
    }
}
