//! Groups of rows by a secret key: which rows begin and end one, how many rows each has, and sums over them.
//!
//! Rows are sorted by (¬valid, key), so that rows that are not valid come last; the last row of a group is one whose key is another than that of the row behind
//! it. Running sums up to the last rows of groups, brought to the front by a sort of one bit, differ from each other by the sums of groups.

use std::sync::Arc;

use veil_circuit::{Builder as Gates, Circuit, Per, Wire};
use veil_job::passes::Take;
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};

/// The groups of a relation: a row for each, in the order of keys, then rows that are none.
#[derive(Debug)]
pub struct Groups {
    /// The keys of groups; zero in rows that are none.
    pub key: Shared,
    /// Whether a row is a group.
    pub valid: Shared,
    /// How many rows a group has, modulo 2^32.
    pub count: Shared,
    /// Sums over the rows of a group, in the order of the values; zero in rows that are none.
    pub sums: Vec<Shared>,
}

impl Builder {
    /// Groups rows that are `valid` by the `bits` bits of a key, and sums integers over the rows of each group.
    ///
    /// As many rows come out as go in: how many groups there are stays a secret.
    ///
    /// # Panics
    /// If key and validity are not shared bit by bit, values are no integers, or columns have not one number of rows.
    pub fn group(&mut self, key: Shared, valid: Shared, values: &[Shared]) -> Groups {
        let Sharing::Bits(bits) = key.sharing else {
            panic!("a key is shared bit by bit")
        };
        let rows = key.rows;
        let of = |shared: &Shared| Take::Of(shared.column);
        let keyed = Sharing::Bits(bits + 1);
        let key = self.computed_column("sort key", rows, keyed, vec![of(&key), of(&valid)]);
        let zeroed = values.iter().map(|value| {
            let takes = vec![of(value), of(&valid)];
            self.computed_column("zeroed", rows, value.sharing, takes)
        });
        let mut columns: Vec<Shared> = zeroed.collect();
        let order = self.sort(key, bits + 1);
        columns.insert(0, key);
        let sorted = self.apply(&order, &columns);
        let [key, values @ ..] = &sorted[..] else {
            unreachable!("as many columns as were taken")
        };
        let next = Take::Shifted {
            of: key.column,
            by: 1,
        };
        let end = Take::Within {
            first: rows - 1,
            end: rows,
        };
        let bit = Sharing::Bits(1);
        let last = (bit, bits + 1);
        let last = self.computed_as("last", rows, last, vec![of(key), next, end]);
        let behind = self.computed_column("not", rows, bit, vec![of(&last)]);
        // Rows that are not valid come last: a valid row has as many before it as its number says.
        let running = |ring, of, row, constant| Take::Sums {
            of,
            row,
            constant,
            totals: vec![],
            ring,
        };
        let numbers = vec![running(Ring::Z32, None, 1, 1)];
        let ring32 = Sharing::Ring(Ring::Z32);
        let mut sums = vec![self.computed_column("as it is", rows, ring32, numbers)];
        for value in values {
            let Sharing::Ring(ring) = value.sharing else {
                panic!("sums are of integers")
            };
            let before = running(ring, Some(value.column), 0, 0);
            let takes = vec![of(value), before];
            sums.push(self.computed_column("sum", rows, value.sharing, takes));
        }
        let order = self.sort(behind, 1);
        let mut columns = vec![*key, last];
        columns.extend(&sums);
        let front = self.apply(&order, &columns);
        let [key, last, sums @ ..] = &front[..] else {
            unreachable!("as many columns as were taken")
        };
        let mut differences = sums.iter().map(|sum| {
            let before = Take::Shifted {
                of: sum.column,
                by: -1,
            };
            let takes = vec![of(sum), before, of(last)];
            self.computed_column("difference", rows, sum.sharing, takes)
        });
        let count = differences.next().expect("the numbers of rows");
        let sums = differences.collect();
        let key = self.computed_column("key", rows, Sharing::Bits(bits), vec![of(key), of(last)]);
        Groups {
            key,
            valid: *last,
            count,
            sums,
        }
    }

    /// A column that a circuit of this name makes.
    fn computed_column(
        &mut self,
        which: &'static str,
        rows: u32,
        sharing: Sharing,
        takes: Vec<Take>,
    ) -> Shared {
        let size = match sharing {
            Sharing::Bits(bits) => bits,
            Sharing::Ring(ring) => ring.bits(),
        };
        self.computed_as(which, rows, (sharing, size), takes)
    }

    /// The same by a circuit whose inputs have another size than its output.
    fn computed_as(
        &mut self,
        which: &'static str,
        rows: u32,
        (sharing, size): (Sharing, u32),
        takes: Vec<Take>,
    ) -> Shared {
        let job = if let Some(job) = self.known.get(&(which, rows, size)) {
            Arc::clone(job)
        } else {
            let circuit = match sharing {
                Sharing::Bits(_) => of_bits(which, size),
                Sharing::Ring(ring) => of_integers(which, ring),
            };
            let job = Arc::new(self.computed(circuit, rows));
            self.known.insert((which, rows, size), Arc::clone(&job));
            job
        };
        Shared {
            column: self.rows(&job, takes)[0],
            rows,
            sharing,
        }
    }
}

/// Circuits over bits, by their names.
fn of_bits(which: &str, bits: u32) -> Circuit {
    let mut b = Gates::new(Ring::Bits);
    let out: Vec<Wire> = match which {
        // (¬valid, key), which is zero where a row is not valid.
        "sort key" => {
            let key = b.input("key", bits - 1, Per::Row);
            let valid = b.input("valid", 1, Per::Row)[0];
            let mut out: Vec<Wire> = key.into_iter().map(|k| b.and(k, valid)).collect();
            let not = b.not(valid);
            out.push(not);
            out
        }
        // The last row of a group: a valid row, and the next one has another key, or there is none.
        "last" => {
            let key = b.input("key", bits, Per::Row);
            let next = b.input("next", bits, Per::Row);
            let end = b.input("end", 1, Per::Row)[0];
            let mut same: Vec<Wire> = Vec::new();
            for (k, n) in key.iter().zip(next) {
                let differs = b.xor(*k, n);
                same.push(b.not(differs));
            }
            while same.len() > 1 {
                let pairs: Vec<Vec<Wire>> = same.chunks(2).map(<[Wire]>::to_vec).collect();
                same = pairs
                    .into_iter()
                    .map(|pair| match pair[..] {
                        [one, other] => b.and(one, other),
                        _ => pair[0],
                    })
                    .collect();
            }
            let not_end = b.not(end);
            let goes_on = b.and(same[0], not_end);
            let ends = b.not(goes_on);
            let valid = b.not(key[bits as usize - 1]);
            vec![b.and(ends, valid)]
        }
        "not" => {
            let x = b.input("x", 1, Per::Row)[0];
            vec![b.not(x)]
        }
        "key" => {
            let key = b.input("key", bits + 1, Per::Row);
            let valid = b.input("valid", 1, Per::Row)[0];
            let low = key.into_iter().take(bits as usize);
            low.map(|k| b.and(k, valid)).collect()
        }
        other => unreachable!("no circuit of bits has the name {other}"),
    };
    b.output("z", &out);
    b.finish().expect("a valid circuit")
}

/// Circuits over integers, by their names.
fn of_integers(which: &str, ring: Ring) -> Circuit {
    let mut b = Gates::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let out = match which {
        "as it is" => x,
        "sum" => {
            let before = b.input("before", 1, Per::Row)[0];
            b.add(x, before)
        }
        "zeroed" => {
            let valid = b.input_bits("valid", 1)[0];
            let valid = b.lift(valid);
            b.mul(x, valid)
        }
        "difference" => {
            let before = b.input("before", 1, Per::Row)[0];
            let valid = b.input_bits("valid", 1)[0];
            let valid = b.lift(valid);
            let difference = b.sub(x, before);
            b.mul(difference, valid)
        }
        other => unreachable!("no circuit of integers has the name {other}"),
    };
    b.output("z", &[out]);
    b.finish().expect("a valid circuit")
}
