//! Joins of rows with the groups of another relation: what is counted, summed and kept over the rows that have their key.
//!
//! The rows of both are stacked, those that are grouped first, and sorted by their keys once. A running sum at a row of the asking relation, less the one before the
//! first row of its key, is the sum over its group, since asking rows add nothing. What the first row of a key has as an integer comes to the others by differences:
//! first rows go to the front, where each takes from its value that of the one before; they go back, and a running sum of the differences is the value of the
//! key at hand.
//!
//! From: Asharov, Hamada, Kikuchi, Nof, Pinkas, Tomida, "Secure Statistical Analysis on Multiple Datasets: Join and Group-By", CCS 2023, whose copies are these
//! differences. Here join and groups take one sort together.

use veil_circuit::{Builder as Gates, Circuit, Per};
use veil_job::passes::{ColumnForm, Take};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::join::Duplicates;
use crate::key::{Compared, Key, done, neighbour};
use crate::scan::Scan;

/// Rows that are grouped where others look them up.
#[derive(Clone, Copy, Debug)]
pub struct Grouped<'a> {
    /// Their key, as of [`Key`].
    pub key: &'a [Shared],
    /// Integers that are summed over the rows of a group; zero in rows that take no part.
    pub sums: &'a [Shared],
    /// Values that are scanned over them: the smallest, the largest, or whether any is 1, bit by bit. In rows that take no part they give way to all others.
    pub scans: &'a [(Scan, Shared)],
}

/// What rows find of the groups of another relation. It says nothing of rows that take no part.
#[derive(Debug)]
pub struct FoundGroups {
    /// Whether the other relation has a row with the key.
    pub found: Shared,
    /// How many, modulo 2^32.
    pub count: Shared,
    /// Sums over them, in the order of the values; 0 where there are none.
    pub sums: Vec<Shared>,
    /// What scans over them give; anything where there are none.
    pub scanned: Vec<Shared>,
}

impl Builder {
    /// For each row of a relation with key `by`, what there is of the group of rows with the same key among those of `of`. Keys are as of [`Key`], of the same words. With
    /// [`Duplicates::Refused`] rows with key `by` have each their own.
    ///
    /// # Panics
    /// If keys are not of the same words, sums are of no integers, scans are of no bits or others than those of [`Grouped::scans`], or columns have not the rows of
    /// their key.
    pub fn look_up_groups(
        &mut self,
        by: &[Shared],
        of: Grouped<'_>,
        duplicates: Duplicates<'_>,
    ) -> FoundGroups {
        let first = crate::moves::rows_of(of.key);
        let key = Key::stacked(&[of.key, by]);
        let rows = key.rows();
        let order = self.sort(&key);
        let asked = Take::Within {
            first: 0,
            end: first,
        };
        // Rows that ask have zeros, which the largest value and the bit that is 1 give way to nothing of.
        let turned: Vec<Shared> = of.scans.iter().map(|of| self.turned(*of)).collect();
        let carried = of.sums.iter().chain(&turned);
        let carried = carried.map(|column| {
            assert_eq!(column.rows, first, "columns are of the rows of their key");
            (column.rows_from(0), column.sharing)
        });
        let taken: Vec<(Take, Sharing)> = key
            .moved()
            .chain([(asked, Sharing::Bits(1))])
            .chain(carried)
            .collect();
        let (opened, sorted) = self.apply_and_keep(&order, &taken);
        let (key, rest) = sorted.split_at(by.len());
        let [asked, rest @ ..] = rest else {
            unreachable!("as many columns as were taken")
        };
        let (sums, scanned) = rest.split_at(of.sums.len());
        let [begins, inner, twice] = self.begins_of(key, asked);
        if let Duplicates::Refused(what) = duplicates {
            self.claim_none(twice, what);
        }
        let one = self.lifted(*asked);
        let values: Vec<Shared> = std::iter::once(one).chain(sums.iter().copied()).collect();
        let totals = self.totals(&values, begins, inner);
        let scans = of.scans.iter().zip(scanned);
        let scans = scans.map(|((scan, _), value)| match scan {
            Scan::Or => (Scan::Or, *value),
            _ => (Scan::Max, *value),
        });
        let scans: Vec<_> = std::iter::once((Scan::First, *asked))
            .chain(scans)
            .collect();
        let scanned = self.scan(begins, &scans);
        debug_assert!(scanned.iter().all(|of| of.rows == rows));
        let all: Vec<Shared> = scanned.into_iter().chain(totals).collect();
        let mut back = self.back_behind(&opened, &all, first).into_iter();
        let found = back.next().expect("whether there is a group");
        let scanned: Vec<Shared> = back.by_ref().take(of.scans.len()).collect();
        let count = back.next().expect("the numbers of rows");
        let scans = of.scans.iter().zip(scanned);
        FoundGroups {
            found,
            count,
            sums: back.collect(),
            scanned: scans
                .map(|((scan, _), value)| self.turned((*scan, value)))
                .collect(),
        }
    }

    /// A value of which the largest is kept: of which the smallest is, all of its bits are turned.
    fn turned(&mut self, (scan, of): (Scan, Shared)) -> Shared {
        match scan {
            Scan::Max | Scan::Or => return of,
            Scan::Min => {}
            Scan::First | Scan::Sum | Scan::And => {
                panic!("groups that are looked up have their smallest and largest values")
            }
        }
        let Sharing::Bits(bits) = of.sharing else {
            panic!("scans are of values that are shared bit by bit")
        };
        let mut b = Gates::new(Ring::Bits);
        let word = b.input("word", bits, Per::Row);
        let word: Vec<_> = word.into_iter().map(|bit| b.not(bit)).collect();
        b.output("turned", &word);
        self.compute(done(b), of.rows, vec![of.take()])[0]
    }

    /// Of rows in the order of their keys, whether each is the first of its key; the opposite; and whether it takes part and asks, as the one before it does with the same key.
    fn begins_of(&mut self, key: &[Shared], asked: &Shared) -> [Shared; 3] {
        let mut b = Gates::new(Ring::Bits);
        let compared = Compared::ports(&mut b, key);
        let first_row = b.input("first row", 1, Per::Row)[0];
        let asked_here = b.input("asked", 1, Per::Row)[0];
        let asked_before = b.input("asked before", 1, Per::Row)[0];
        let begins = b.or(compared.differs, first_row);
        let inner = b.not(begins);
        let some_asked = b.or(asked_here, asked_before);
        let both_ask = b.not(some_asked);
        let present = b.not(compared.absent());
        let again = b.and(inner, both_ask);
        let twice = b.and(again, present);
        b.output("begins", &[begins]);
        b.output("inner", &[inner]);
        b.output("twice", &[twice]);
        let mut takes = neighbour(key, -1);
        takes.push(Take::Within { first: 0, end: 1 });
        takes.extend([asked.take(), asked.rows_from(-1)]);
        let all = self.compute(done(b), asked.rows, takes);
        [all[0], all[1], all[2]]
    }

    /// A bit as an integer.
    fn lifted(&mut self, bit: Shared) -> Shared {
        let mut b = Gates::new(Ring::Z32);
        let bit_here = b.input_bits("bit", 1)[0];
        let one = b.lift(bit_here);
        b.output("one", &[one]);
        self.compute(done(b), bit.rows, vec![bit.take()])[0]
    }

    /// Integers summed from the first row of each segment up to every row: `begins` says where one begins, and `inner` where none does.
    fn totals(&mut self, values: &[Shared], begins: Shared, inner: Shared) -> Vec<Shared> {
        let rows = begins.rows;
        let running: Vec<Shared> = values
            .iter()
            .map(|value| self.running(rows, Some(value)))
            .collect();
        // First rows go to the front, with the running sums of the rows before them.
        let order = self.sort(&Key::of(&[inner]));
        let before = running.iter().map(|sum| (sum.rows_from(-1), sum.sharing));
        let taken: Vec<(Take, Sharing)> = before.chain([(begins.take(), begins.sharing)]).collect();
        let (opened, front) = self.apply_and_keep(&order, &taken);
        let (before, begins) = front.split_at(running.len());
        let mut steps: Vec<Option<Shared>> = vec![None; before.len()];
        for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
            let of_ring = |(_, sum): &(usize, &Shared)| sum.sharing == Sharing::Ring(ring);
            let own: Vec<(usize, &Shared)> = before.iter().enumerate().filter(of_ring).collect();
            if own.is_empty() {
                continue;
            }
            let mut takes = vec![begins[0].take()];
            takes.extend(
                own.iter()
                    .flat_map(|(_, sum)| [sum.take(), sum.rows_from(-1)]),
            );
            let left = self.compute(differences(ring, own.len()), rows, takes);
            for ((at, _), step) in own.iter().zip(left) {
                steps[*at] = Some(step);
            }
        }
        let steps = steps.into_iter().flatten();
        let steps: Vec<(Take, ColumnForm)> = steps
            .map(|step| (step.take(), step.sharing.form()))
            .collect();
        let back = self.go_back(rows, &opened, steps);
        let both = running.iter().zip(back);
        both.map(|(running, step)| {
            let Sharing::Ring(ring) = running.sharing else {
                unreachable!("sums are of integers")
            };
            let before = Take::Sums {
                of: Some(step),
                row: 0,
                constant: 0,
                totals: vec![],
                ring,
            };
            let takes = vec![running.take(), Take::Of(step), before];
            self.compute(beyond(ring), rows, takes)[0]
        })
        .collect()
    }
}

/// What values have more than those of the row before, where a bit is 1; 0 elsewhere.
fn differences(ring: Ring, count: usize) -> Circuit {
    let mut b = Gates::new(ring);
    let here = b.input_bits("here", 1)[0];
    let here = b.lift(here);
    for k in 0..count {
        let x = b.input(format!("x{k}"), 1, Per::Row)[0];
        let before = b.input(format!("before{k}"), 1, Per::Row)[0];
        let more = b.sub(x, before);
        let step = b.mul(here, more);
        b.output(format!("step{k}"), &[step]);
    }
    done(b)
}

/// What a running sum has more than the sum of steps up to its row.
fn beyond(ring: Ring) -> Circuit {
    let mut b = Gates::new(ring);
    let running = b.input("running", 1, Per::Row)[0];
    let step = b.input("step", 1, Per::Row)[0];
    let before = b.input("before", 1, Per::Row)[0];
    let steps = b.add(step, before);
    let out = b.sub(running, steps);
    b.output("total", &[out]);
    done(b)
}
