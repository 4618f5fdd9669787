//! What rows are sorted and compared by.

use veil_circuit::generate::{any, equal};
use veil_circuit::{Builder as Gates, Circuit, Per, Wire};
use veil_job::passes::Take;
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};

/// What rows are sorted and compared by: words of bits, the least significant first. Rows that take no part are 1 in the highest bit of the last word
/// and 0 in all others, so that they come last, and are equal to each other alone.
#[derive(Clone, Debug)]
pub struct Key {
    words: Vec<(Take, u32)>,
    rows: u32,
}

impl Key {
    /// Of columns of one relation, the least significant first.
    ///
    /// # Panics
    /// If there are no columns, they have not one number of rows, or one is not shared bit by bit.
    pub fn of(columns: &[Shared]) -> Self {
        let rows = crate::moves::rows_of(columns);
        let words = columns
            .iter()
            .map(|shared| (shared.take(), bits_of(*shared)));
        Key {
            words: words.collect(),
            rows,
        }
    }

    /// Whether rows with a key of these columns take no part: its highest bit.
    pub(crate) fn absent(columns: &[Shared]) -> Self {
        Key {
            words: vec![(absence(columns), 1)],
            rows: crate::moves::rows_of(columns),
        }
    }

    /// Of the rows of several relations, one behind the other.
    ///
    /// # Panics
    /// If there are no relations, or their keys have not the same words.
    pub fn stacked(relations: &[&[Shared]]) -> Self {
        let of: Vec<Key> = relations.iter().map(|columns| Key::of(columns)).collect();
        let first = of.first().expect("a key is of a relation");
        let words = (0..first.words.len()).map(|word| {
            let bits = first.words[word].1;
            let columns = relations.iter().map(|columns| {
                assert_eq!(bits_of(columns[word]), bits, "keys have the same words");
                columns[word]
            });
            (stacked(columns), bits)
        });
        Key {
            words: words.collect(),
            rows: of.iter().map(|key| key.rows).sum(),
        }
    }

    /// Rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// The words, and how many bits each has.
    pub fn words(&self) -> &[(Take, u32)] {
        &self.words
    }

    /// The words as they move.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (Take, Sharing)> {
        let words = self.words.iter();
        words.map(|(take, bits)| (take.clone(), Sharing::Bits(*bits)))
    }
}

/// The rows of columns of one form, those of one behind those of the other.
pub fn stacked(columns: impl IntoIterator<Item = Shared>) -> Take {
    Take::Rows {
        of: columns.into_iter().map(|shared| shared.column).collect(),
        first: 0,
        step: 1,
    }
}

fn bits_of(shared: Shared) -> u32 {
    match shared.sharing {
        Sharing::Bits(bits) => bits,
        Sharing::Ring(_) => panic!("a key is shared bit by bit"),
    }
}

/// The bit of a key that says that a row takes no part.
pub(crate) fn absence(key: &[Shared]) -> Take {
    let last = key.last().expect("a key is of columns");
    last.take().bits(bits_of(*last) - 1, 1)
}

/// What is compared with the row before, or with the next one.
pub(crate) fn neighbour(columns: &[Shared], by: i64) -> Vec<Take> {
    let own = columns.iter().map(Shared::take);
    let other = columns.iter().map(|shared| shared.rows_from(by));
    own.chain(other).collect()
}

/// Input ports of words and of those of another row.
pub(crate) struct Compared {
    /// The words of the row.
    pub(crate) own: Vec<Vec<Wire>>,
    /// Whether the other row's words are others.
    pub(crate) differs: Wire,
}

impl Compared {
    pub(crate) fn ports(b: &mut Gates, columns: &[Shared]) -> Self {
        let mut ports = |name: &str| -> Vec<Vec<Wire>> {
            let words = columns.iter().enumerate();
            words
                .map(|(k, shared)| b.input(format!("{name}{k}"), bits_of(*shared), Per::Row))
                .collect()
        };
        let (own, other) = (ports("own"), ports("other"));
        let same = equal(b, &own.concat(), &other.concat());
        let differs = b.not(same);
        Compared { own, differs }
    }

    /// Whether the row takes no part.
    pub(crate) fn absent(&self) -> Wire {
        let last = self.own.last().and_then(|word| word.last());
        *last.expect("a key has bits")
    }
}

impl Builder {
    /// The key of one word of up to 127 bits, of rows of which those that are not `valid` take no part.
    ///
    /// # Panics
    /// If key and validity are not shared bit by bit, or have not one number of rows.
    pub fn key(&mut self, key: Shared, valid: Shared) -> Shared {
        let rows = crate::moves::rows_of(&[key, valid]);
        let circuit = key_circuit(bits_of(key));
        self.compute(circuit, rows, vec![key.take(), valid.take()])[0]
    }

    /// A column that is zero in rows that are not `valid`.
    ///
    /// # Panics
    /// If validity is no bit, or they have not one number of rows.
    pub fn zeroed(&mut self, of: Shared, valid: Shared) -> Shared {
        let rows = crate::moves::rows_of(&[of, valid]);
        let circuit = match of.sharing {
            Sharing::Bits(bits) => zeroed_bits(bits),
            Sharing::Ring(ring) => zeroed_integer(ring),
        };
        self.compute(circuit, rows, vec![of.take(), valid.take()])[0]
    }

    /// Claims that no two of the rows that take part have one key, of rows in the order of their keys, those that take no part last: the run ends if two have,
    /// and says that `what` is false.
    ///
    /// # Panics
    /// As [`Builder::firsts`].
    pub fn claim_apart(&mut self, key: &[Shared], what: &str) {
        let rows = crate::moves::rows_of(key);
        let mut b = Gates::new(Ring::Bits);
        let compared = Compared::ports(&mut b, key);
        let first_row = b.input("first row", 1, Per::Row)[0];
        let begins = any(&mut b, &[compared.differs, first_row, compared.absent()]);
        let again = b.not(begins);
        b.output("again", &[again]);
        let mut takes = neighbour(key, -1);
        takes.push(Take::Within { first: 0, end: 1 });
        let again = self.compute(done(b), rows, takes)[0];
        self.claim_none(again, what);
    }

    /// Whether each row is the first of those of its key, of rows in the order of their keys: a bit.
    ///
    /// # Panics
    /// If the key is of no columns, or they have not one number of rows, or are not shared bit by bit.
    pub fn firsts(&mut self, key: &[Shared]) -> Shared {
        let rows = crate::moves::rows_of(key);
        let mut b = Gates::new(Ring::Bits);
        let compared = Compared::ports(&mut b, key);
        let first_row = b.input("first row", 1, Per::Row)[0];
        let first = any(&mut b, &[compared.differs, first_row]);
        b.output("first", &[first]);
        let mut takes = neighbour(key, -1);
        takes.push(Take::Within { first: 0, end: 1 });
        self.compute(done(b), rows, takes)[0]
    }
}

impl Builder {
    /// A bit that is 1 in rows `first` to `end`, but for the last: it is public, and shared as it is.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn within(&mut self, rows: u32, first: u32, end: u32) -> Shared {
        assert!(
            first <= end && end <= rows,
            "public rows are rows of the relation"
        );
        let mut b = Gates::new(Ring::Bits);
        let within = b.input("within", 1, Per::Row);
        b.output("within", &within);
        self.compute(done(b), rows, vec![Take::Within { first, end }])[0]
    }
}

/// The circuit that was built.
pub(crate) fn done(b: Gates) -> Circuit {
    b.finish().expect("gates in their order, of ports")
}

fn key_circuit(bits: u32) -> Circuit {
    let mut b = Gates::new(Ring::Bits);
    let key = b.input("key", bits, Per::Row);
    let valid = b.input("valid", 1, Per::Row)[0];
    let mut out: Vec<Wire> = key.into_iter().map(|k| b.and(k, valid)).collect();
    out.push(b.not(valid));
    b.output("key", &out);
    done(b)
}

fn zeroed_bits(bits: u32) -> Circuit {
    let mut b = Gates::new(Ring::Bits);
    let x = b.input("x", bits, Per::Row);
    let valid = b.input("valid", 1, Per::Row)[0];
    let out: Vec<Wire> = x.into_iter().map(|x| b.and(x, valid)).collect();
    b.output("z", &out);
    done(b)
}

fn zeroed_integer(ring: Ring) -> Circuit {
    let mut b = Gates::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let valid = b.input_bits("valid", 1)[0];
    let valid = b.lift(valid);
    let out = b.mul(x, valid);
    b.output("z", &[out]);
    done(b)
}
