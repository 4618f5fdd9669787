//! Joins of two relations of which one has each key at most once.
//!
//! The rows of both are stacked, those that have each key once before the others, and sorted by their keys. The sort is stable, so that
//! the row of a key comes before the rows that look it up. A scan copies its columns down to them, and they go back to where they were.
//!
//! From: Mohassel, Rindal, Rosulek, "Fast Database Joins and PSI for Secret Shared Data", CCS 2020; Baum et al., "ORQ: Complex Analytics on Private Data with
//! Strong Security Guarantees", SOSP 2025. Here the rows that look up keep their order, and their other columns do not move.

use veil_circuit::{Builder as Gates, Per};
use veil_job::passes::Take;
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::key::{Compared, Key, done, neighbour};
use crate::scan::Scan;

/// What rows look up by a key in the rows of another relation.
#[derive(Debug)]
pub struct Found {
    /// Whether the other relation has the key. It says nothing of rows that take no part.
    pub found: Shared,
    /// The columns of the row that has it; zero, or anything, if there is none.
    pub columns: Vec<Shared>,
}

/// What happens if a key occurs twice where it should be once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplicates<'a> {
    /// The run ends: the parties open whether there is one. The words say what is false then.
    Refused(&'a str),
    /// The first row of a key is found, and the others are not. Nothing is opened.
    First,
}

impl Builder {
    /// For each row of a relation with key `by`, the columns of the row with the same key among those with key `of`, which each have their own. Keys are as of
    /// [`Key`], of the same words; rows that take no part are not found.
    ///
    /// # Panics
    /// If keys are not of the same words, columns are not shared bit by bit or have not the rows of `of`.
    pub fn look_up(
        &mut self,
        by: &[Shared],
        of: &[Shared],
        columns: &[Shared],
        duplicates: Duplicates<'_>,
    ) -> Found {
        let first = of[0].rows;
        assert!(
            columns.iter().all(|column| column.rows == first),
            "columns are of the rows that are looked up"
        );
        let key = Key::stacked(&[of, by]);
        let order = self.sort(&key);
        let known = (
            Take::Within {
                first: 0,
                end: first,
            },
            Sharing::Bits(1),
        );
        let carried = columns
            .iter()
            .map(|column| (column.rows_from(0), column.sharing));
        let taken: Vec<(Take, Sharing)> = key.moved().chain([known]).chain(carried).collect();
        let (opened, sorted) = self.apply_and_keep(&order, &taken);
        let (key, rest) = sorted.split_at(of.len());
        let [known, columns @ ..] = rest else {
            unreachable!("as many columns as were taken")
        };
        let begin = match duplicates {
            Duplicates::Refused(what) => {
                let [begin, twice] = self.begins(key, known);
                self.claim_none(twice, what);
                begin
            }
            Duplicates::First => self.firsts(key),
        };
        let scans = std::iter::once(known).chain(columns);
        let scans: Vec<_> = scans.map(|column| (Scan::First, *column)).collect();
        let copied = self.scan(begin, &scans);
        let mut all = self.back_behind(&opened, &copied, first).into_iter();
        Found {
            found: all.next().expect("what is known"),
            columns: all.collect(),
        }
    }

    /// Of rows in the order of their keys, whether each is the first of its key; and whether it is one of those with keys of their own, takes part, and is not
    /// the first.
    fn begins(&mut self, key: &[Shared], known: &Shared) -> [Shared; 2] {
        let rows = known.rows;
        let mut b = Gates::new(Ring::Bits);
        let compared = Compared::ports(&mut b, key);
        let first_row = b.input("first row", 1, Per::Row)[0];
        let known_here = b.input("known", 1, Per::Row)[0];
        let begins = b.or(compared.differs, first_row);
        let present = b.not(compared.absent());
        let again = b.not(begins);
        let known_again = b.and(known_here, again);
        let twice = b.and(known_again, present);
        b.output("begins", &[begins]);
        b.output("twice", &[twice]);
        let mut takes = neighbour(key, -1);
        takes.push(Take::Within { first: 0, end: 1 });
        takes.push(known.take());
        let both = self.compute(done(b), rows, takes);
        [both[0], both[1]]
    }
}
