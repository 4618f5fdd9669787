//! Groups of rows by a secret key: which rows begin and end one, how many rows each has, and sums over them.
//!
//! Rows are sorted by their key, so that rows that take no part come last; the last row of a group is one whose key is another than that of the row behind
//! it. Running sums up to the last rows of groups, brought to the front by a sort of one bit, differ from each other by the sums of groups.

use veil_circuit::generate::any;
use veil_circuit::{Builder as Gates, Circuit, Per};
use veil_job::passes::Take;
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::key::{Compared, Key, done, neighbour};
use crate::scan::Scan;
use crate::sort::Arranged;

/// The key of groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupKey<'a> {
    /// Its words: as of [`Key`], or without the bit of rows that take no part, if all do.
    pub words: &'a [Shared],
    /// Whether all rows take part.
    pub all: bool,
    /// In which order rows come. Any order serves in which the rows of a group stand together.
    pub arranged: Arranged,
}

impl<'a> GroupKey<'a> {
    /// A key as of [`Key`], of rows of which nothing is known.
    #[must_use]
    pub const fn of(words: &'a [Shared]) -> Self {
        GroupKey {
            words,
            all: false,
            arranged: Arranged::Anyhow,
        }
    }
}

/// The groups of a relation: a row for each, in the order of keys, then rows that are none.
#[derive(Debug)]
pub struct Groups {
    /// The keys of groups; anything in rows that are none.
    pub key: Vec<Shared>,
    /// Whether a row is a group.
    pub valid: Shared,
    /// How many rows a group has, modulo 2^32; anything in rows that are none.
    pub count: Shared,
    /// Sums over the rows of a group, in the order of the values; anything in rows that are none.
    pub sums: Vec<Shared>,
    /// What scans over the rows of a group give; anything in rows that are none.
    pub scanned: Vec<Shared>,
}

impl Builder {
    /// Groups rows by a key, of which rows that take no part make no group; sums integers over the rows of each group, which must be zero in rows that
    /// take no part; and scans values over them.
    ///
    /// As many rows come out as go in: how many groups there are stays a secret.
    ///
    /// # Panics
    /// If the key is not shared bit by bit, sums are of no integers, or columns have not one number of rows.
    pub fn group(&mut self, by: GroupKey<'_>, sums: &[Shared], scans: &[(Scan, Shared)]) -> Groups {
        let key = by.words;
        let values = scans.iter().map(|(_, value)| value);
        let columns: Vec<Shared> = key.iter().chain(sums).chain(values).copied().collect();
        let sorted = self.in_order(key, by.arranged, &columns);
        let (key, rest) = sorted.split_at(key.len());
        let (sums, values) = rest.split_at(sums.len());
        let rows = crate::moves::rows_of(key);
        let [last, behind] = self.lasts(key, by.all);
        let scanned = if scans.is_empty() {
            vec![]
        } else {
            let first = self.firsts(key);
            let scans = scans.iter().zip(values);
            let scans: Vec<_> = scans.map(|((scan, _), value)| (*scan, *value)).collect();
            self.scan(first, &scans)
        };
        // Rows that take no part come last: one that does has as many before it as its number says.
        let mut running = vec![self.running(rows, None)];
        running.extend(sums.iter().map(|value| self.running(rows, Some(value))));
        let order = self.sort(&Key::of(&[behind]));
        let mut columns = key.to_vec();
        columns.push(last);
        columns.extend(&running);
        columns.extend(&scanned);
        let front = self.apply(&order, &columns);
        let (key, rest) = front.split_at(key.len());
        let [valid, rest @ ..] = rest else {
            unreachable!("as many columns as were taken")
        };
        let (running, scanned) = rest.split_at(running.len());
        let mut sums = running.iter().map(|sum| self.difference(sum));
        let count = sums.next().expect("the numbers of rows");
        Groups {
            count,
            sums: sums.collect(),
            key: key.to_vec(),
            valid: *valid,
            scanned: scanned.to_vec(),
        }
    }

    /// Whether each row is the last of those of its key, of rows in the order of their keys, and takes part, as `all` may; and the opposite.
    fn lasts(&mut self, key: &[Shared], all: bool) -> [Shared; 2] {
        let rows = crate::moves::rows_of(key);
        let mut b = Gates::new(Ring::Bits);
        let compared = Compared::ports(&mut b, key);
        let last_row = b.input("last row", 1, Per::Row)[0];
        let ends = any(&mut b, &[compared.differs, last_row]);
        let last = if all {
            ends
        } else {
            let present = b.not(compared.absent());
            b.and(ends, present)
        };
        let behind = b.not(last);
        b.output("last", &[last]);
        b.output("behind", &[behind]);
        let mut takes = neighbour(key, 1);
        takes.push(Take::Within {
            first: rows - 1,
            end: rows,
        });
        let both = self.compute(done(b), rows, takes);
        [both[0], both[1]]
    }

    /// The sum of the rows up to this one, which may wrap; the number of the row, if it is of nothing.
    pub(crate) fn running(&mut self, rows: u32, of: Option<&Shared>) -> Shared {
        let ring = match of.map(Shared::sharing) {
            None => Ring::Z32,
            Some(Sharing::Ring(ring)) => ring,
            Some(Sharing::Bits(_)) => panic!("sums are of integers"),
        };
        let mut takes: Vec<Take> = of.map(Shared::take).into_iter().collect();
        let unit = i64::from(of.is_none());
        takes.push(Take::Sums {
            of: of.map(Shared::column),
            row: unit,
            constant: unit,
            totals: vec![],
            ring,
        });
        self.compute(sum(ring, takes.len()), rows, takes)[0]
    }

    /// What a running sum has more than in the row before.
    fn difference(&mut self, of: &Shared) -> Shared {
        let Sharing::Ring(ring) = of.sharing else {
            panic!("sums are of integers")
        };
        let takes = vec![of.take(), of.rows_from(-1)];
        self.compute(difference(ring), of.rows, takes)[0]
    }
}

fn sum(ring: Ring, of: usize) -> Circuit {
    let mut b = Gates::new(ring);
    let ports: Vec<_> = (0..of)
        .map(|k| b.input(format!("x{k}"), 1, Per::Row)[0])
        .collect();
    let sum = ports.into_iter().reduce(|sum, x| b.add(sum, x));
    b.output("sum", &[sum.expect("a sum is of something")]);
    done(b)
}

fn difference(ring: Ring) -> Circuit {
    let mut b = Gates::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let before = b.input("before", 1, Per::Row)[0];
    let out = b.sub(x, before);
    b.output("difference", &[out]);
    done(b)
}
