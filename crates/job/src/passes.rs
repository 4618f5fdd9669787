//! Programs over relations: passes over columns of rows, one after the other.
//!
//! A relation is a list of columns with one public number of rows. A *pass* takes columns, and leaves columns: a pass of rows computes a circuit in
//! every row, a move brings all rows to other places, by a permutation that no party knows. A job of one circuit is a program of one pass.
//!
//! ```text
//! owners ─► rows ─► columns ─► move ─► columns ─► rows ─► … ─► rows ─► recipients
//! ```
//!
//! Shapes follow from the program alone: how many rows a column has, which pass reads it, how long messages are.

use std::sync::Arc;

use veil_math::Ring;

use crate::{JobSpec, canonical};

/// A column of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnId(pub u32);

/// The elements of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ColumnForm {
    /// Integers modulo a power of two, little-endian.
    Ring(Ring),
    /// Words of 1, 2, 4, 8 or 16 bytes, little-endian, shared bit by bit.
    Words(u8),
}

impl ColumnForm {
    /// The shortest words for so many bits; nothing for none, or for more than 128.
    pub fn of_bits(bits: u32) -> Option<Self> {
        let bytes = bits.div_ceil(8).next_power_of_two();
        (1..=128)
            .contains(&bits)
            .then_some(ColumnForm::Words(bytes as u8))
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            ColumnForm::Ring(ring) => ring.bytes(1),
            ColumnForm::Words(bytes) => bytes as u64,
        }
    }
}

/// What a pass takes into an input port, or into a column of a move: made of a column by each party on its own components.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Take {
    /// Its elements.
    Of(ColumnId),
    /// Elements of columns that stand one behind the other: in row j that of row `first + step · j`, zero where there is no such row.
    Rows {
        /// The columns, of one form.
        of: Vec<ColumnId>,
        /// The row that row 0 takes; negative numbers are rows before the first.
        first: i64,
        /// Rows from one row to the next: negative where rows are taken from the last to the first, 0 where all take the same one.
        step: i32,
    },
    /// Elements of two columns of one form by turns: row 2j of the first one's row j, row 2j + 1 of the second one's.
    Turns {
        /// Of rows 0, 2, 4, …
        even: ColumnId,
        /// Of rows 1, 3, 5, …
        odd: ColumnId,
    },
    /// Elements of columns of one form and as many rows that stand one behind the other, as of an array of several axes: row j is the element whose place on each axis follows from that
    /// digit of j, the last axis first; zero where an axis has no such place. A column has whole rows of the last axis.
    View {
        /// The columns.
        of: Vec<ColumnId>,
        /// The axes of the array, one to eight, the slowest one first.
        axes: Vec<Axis>,
    },
    /// A public integer in each row.
    Public {
        /// The integers.
        integers: Arc<Vec<i64>>,
        /// The ring.
        ring: Ring,
    },
    /// So many bits of words that are taken from columns in one of the ways above.
    Bits {
        /// The words.
        of: Box<Take>,
        /// The lowest bit.
        first: u32,
        /// How many.
        count: u32,
    },
    /// A public bit: 1 in these rows, 0 in others.
    Within {
        /// The first of them.
        first: u32,
        /// The row behind the last of them.
        end: u32,
    },
    /// Words that are taken from columns in one of the ways above, or none, with the public number of the row below them: no two rows are equal.
    Numbered {
        /// The words: bits of a column, or elements.
        of: Option<Box<Take>>,
        /// Bits of the number.
        bits: u32,
    },
    /// Of a pass that compares rows: the element of the first row of each comparison, or of the second one.
    Compared {
        /// A word of the rows.
        of: ColumnId,
        /// Of the second row.
        second: bool,
    },
    /// `row · j + constant + Σ k · total(column) + Σ_{i<j} of_i` in row j: an integer of the columns' ring. Of no columns it is a public number, of which a port of bits takes the low ones.
    Sums {
        /// The column whose rows before this one are added up.
        of: Option<ColumnId>,
        /// Times the number of the row.
        row: i64,
        /// Added in every row.
        constant: i64,
        /// Columns whose totals are added, and how often each.
        totals: Vec<(i64, ColumnId)>,
        /// The ring.
        ring: Ring,
    },
}

/// An axis of an array, and what is taken along it: the places `first + step · k` for k below `count`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// Places that the array has, at least 1.
    pub length: u32,
    /// The first place that is taken; outside of the array there are zeros.
    pub first: i32,
    /// From one place to the next.
    pub step: i32,
    /// How many are taken, at least 1.
    pub count: u32,
}

impl Axis {
    /// All places.
    #[must_use]
    pub const fn whole(length: u32) -> Self {
        Self {
            length,
            first: 0,
            step: 1,
            count: length,
        }
    }

    /// One place.
    #[must_use]
    pub const fn at(length: u32, place: u32) -> Self {
        Self {
            length,
            first: place as i32,
            step: 0,
            count: 1,
        }
    }
}

impl Take {
    /// The elements of another row of a column: so many rows further on, or before.
    pub fn shifted(of: ColumnId, by: i64) -> Self {
        Take::Rows {
            of: vec![of],
            first: by,
            step: 1,
        }
    }

    /// These bits of what it takes, which is words or bits of them.
    #[must_use]
    pub fn bits(self, first: u32, count: u32) -> Self {
        let (of, lowest) = match self {
            Take::Bits { of, first, .. } => (of, first),
            words => (Box::new(words), 0),
        };
        Take::Bits {
            of,
            first: lowest + first,
            count,
        }
    }

    /// The columns that it reads.
    pub fn columns(&self) -> Vec<ColumnId> {
        match self {
            Take::Of(of) | Take::Compared { of, .. } => vec![*of],
            Take::Rows { of, .. } | Take::View { of, .. } => of.clone(),
            Take::Turns { even, odd } => vec![*even, *odd],
            Take::Bits { of, .. } => of.columns(),
            Take::Numbered { of, .. } => of.iter().flat_map(|of| of.columns()).collect(),
            Take::Within { .. } | Take::Public { .. } => vec![],
            Take::Sums { of, totals, .. } => {
                let totals = totals.iter().map(|(_, column)| *column);
                of.iter().copied().chain(totals).collect()
            }
        }
    }
}

/// Which way rows move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MoveKind {
    /// By a permutation that is drawn for it.
    There,
    /// The same, and column 0, which is positions, is opened to the parties when it has moved: then they put the others in the order of the positions.
    Open,
    /// By a permutation that other rows have moved by.
    Along,
    /// Back by a permutation that other rows have moved by.
    Back,
    /// No way: no row moves. What is taken are the indicators of all digits but 0, as integers modulo 2^32: 1 in rows with the digit, 0 in others.
    /// One column is left: the position of every row in a stable order by the digit.
    Rank,
}

impl MoveKind {
    /// Whether it draws the permutation.
    pub const fn draws(self) -> bool {
        matches!(self, MoveKind::There | MoveKind::Open)
    }
}

/// One pass over columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PassSpec {
    /// A circuit in every row.
    Rows {
        /// The circuit, the rows, and who supplies or receives what is no column.
        job: Arc<JobSpec>,
        /// What input ports of [`Holder::Column`](crate::Holder::Column) take, by port.
        takes: Vec<Option<Take>>,
        /// The columns that output ports of [`Audience::Column`](crate::Audience::Column) leave, by port.
        leaves: Vec<Option<ColumnId>>,
        /// That all it opens to the parties is 0, in words: the run ends if it is not. A pass that opens something to others too is the only one, and each of its output ports to the
        /// parties is a claim by itself, in its own words ([`JobSpec::opened`]).
        claim: Option<String>,
    },
    /// A move of rows, by one permutation that no party knows.
    Move {
        /// Rows, at least 1.
        rows: u32,
        /// Who plays which role: passes take turns.
        rotation: u8,
        /// Which way.
        kind: MoveKind,
        /// What moves, and its form.
        takes: Vec<(Take, ColumnForm)>,
        /// The columns that it leaves, but for what is opened; nothing for one that no pass takes.
        leaves: Vec<Option<ColumnId>>,
        /// The factors of the permutation: taken by a move along or back, left by another if rows move by it later.
        factors: Option<ColumnId>,
        /// Opened positions: left where they are opened. A move along takes them to put its columns in their order, as a last step, and a move
        /// back to take its columns out of it, as a first one.
        positions: Option<ColumnId>,
    },
    /// A product of two matrices, whose columns are columns of integers of one ring: left times right, or the transposed left one times right.
    Product {
        /// Rows of the left matrix, at least 1. If it is transposed, the right matrix has as many, and the product has as many as the left one has columns;
        /// else the other way round.
        rows: u32,
        /// The ring.
        ring: Ring,
        /// Whether the left matrix is transposed.
        transposed: bool,
        /// Who plays which role: passes take turns.
        rotation: u8,
        /// The columns of the left matrix, 1 to 4096.
        left: Vec<Take>,
        /// The columns of the right matrix, 1 to 4096.
        right: Vec<Take>,
        /// Those of the product; nothing for one that no pass takes.
        leaves: Vec<Option<ColumnId>>,
    },
    /// Comparisons of rows that have moved, no two of which are equal: whether the first row of each is the smaller is opened to the parties. Which rows
    /// are compared follows from what the passes before have opened of the same rows.
    Compare {
        /// [`precedes`](veil_circuit::generate::precedes) in every one of [`comparisons_at_once`]: whether the words of the first row are less than those of
        /// the second one.
        job: Arc<JobSpec>,
        /// Rows that are put in order, at least 1.
        rows: u32,
        /// The words of the rows, the least significant first, as they have moved; the first of them is numbered. They are in order themselves when
        /// the positions are left, and nothing else takes them before.
        of: Vec<ColumnId>,
        /// The factors of the permutation by which they have moved.
        factors: ColumnId,
        /// The positions of the rows, which the last of [`passes_of_comparisons`] leaves.
        positions: Option<ColumnId>,
    },
}

/// Rows that are compared at once, at most, of so many that are to be put in order. Fewer than 2^12 comparisons take as long as these.
pub const fn comparisons_at_once(rows: u32) -> u32 {
    if rows < 1 << 12 { 1 << 12 } else { rows }
}

/// Passes that compare so many rows to put them in order. Those that are left when all positions are known compare nothing; there are eight or
/// more of them whatever permutations were tried.
pub const fn passes_of_comparisons(rows: u32) -> u32 {
    if rows < 2 { 1 } else { 10 + 2 * rows.ilog2() }
}

/// A column that each party makes of others by itself, before a pass begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeSpec {
    /// The number of the pass, at least 1.
    pub before: u32,
    /// Its elements: no public rows, and no sums.
    pub take: Take,
    /// Their form.
    pub form: ColumnForm,
    /// Rows, at least 1.
    pub rows: u32,
    /// The column.
    pub column: ColumnId,
}

/// The passes of a job, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgramSpec {
    /// The first and the last are of rows.
    pub passes: Vec<PassSpec>,
    /// What parties make by themselves between passes, in the order of passes.
    pub made: Vec<MadeSpec>,
}

impl canonical::Canonical for ColumnId {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        self.0.encode(into);
    }
}

impl canonical::Canonical for Ring {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        self.bits().encode(into);
    }
}

impl<T: canonical::Canonical> canonical::Canonical for Box<T> {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        (**self).encode(into);
    }
}

impl<T: canonical::Canonical> canonical::Canonical for Arc<T> {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        (**self).encode(into);
    }
}

canonical! {
    struct MadeSpec { before, take, form, rows, column }
    enum PassSpec {
        0 = Rows { job, takes, leaves, claim },
        1 = Move { rows, rotation, kind, takes, leaves, factors, positions },
        2 = Compare { job, rows, of, factors, positions },
        3 = Product { rows, ring, transposed, rotation, left, right, leaves },
    }
    enum MoveKind { 0 = There, 1 = Open, 2 = Back, 3 = Along, 4 = Rank }
    enum ColumnForm { 0 = Ring(ring), 1 = Words(bytes) }
    enum Take { 0 = Of(of), 1 = Bits { of, first, count }, 2 = Sums { of, row, constant, totals, ring }, 3 = Rows { of, first, step }, 4 = Within { first, end }, 5 = Turns { even, odd }, 6 = Numbered { of, bits }, 7 = Compared { of, second }, 8 = View { of, axes }, 9 = Public { integers, ring } }
    struct Axis { length, first, step, count }
}
