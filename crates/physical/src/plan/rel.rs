//! Relations while they are planned.

use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::{Shared, Sharing};
use veil_relation::{ColumnId, Expr, Kind, Literal, Type, TypeError};

use super::known::Known;

/// Bits of a column of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    of: Shared,
    first: u32,
    count: u32,
}

impl Field {
    /// So many bits from bit `first` on.
    pub(super) const fn new(of: Shared, first: u32, count: u32) -> Self {
        Field { of, first, count }
    }

    /// How many.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// What a pass takes of it.
    pub(super) fn take(&self) -> Take {
        self.of.take().bits(self.first, self.count)
    }

    /// What a pass takes of it in the row so many rows on: zeros where there is none.
    pub(super) fn take_shifted(&self, by: i64) -> Take {
        self.of.rows_from(by).bits(self.first, self.count)
    }

    /// The bits from the first to the last of fields of one column, if these are half of them or more.
    pub(super) fn span<'f>(fields: impl Iterator<Item = &'f Self> + Clone) -> Option<Self> {
        let of = fields.clone().next()?.of;
        let first = fields.clone().map(|field| field.first).min()?;
        let end = fields
            .clone()
            .map(|field| field.first + field.count)
            .max()?;
        let mut read = vec![false; (end - first) as usize];
        for field in fields {
            read[(field.first - first) as usize..][..field.count as usize].fill(true);
        }
        let used = read.iter().filter(|read| **read).count() as u32;
        (2 * used >= end - first).then(|| Field::new(of, first, end - first))
    }

    /// Where among these bits those of a field are, if they hold all of it.
    pub(super) fn place(&self, field: &Self) -> Option<usize> {
        let end = |of: &Self| of.first + of.count;
        let same = self.of.column() == field.of.column();
        let within = same && field.first >= self.first && end(field) <= end(self);
        within.then(|| (field.first - self.first) as usize)
    }

    /// Whether they are the same bits.
    pub(super) fn is(&self, other: &Self) -> bool {
        let place = |of: &Self| (of.of.column(), of.first, of.count);
        place(self) == place(other)
    }

    /// The same bits of another column, to which their words have gone.
    pub(super) const fn moved(&self, to: Shared) -> Self {
        Field { of: to, ..*self }
    }

    /// Its column.
    pub(super) const fn column(&self) -> Shared {
        self.of
    }
}

/// Bits of a cell: none, where its kind has one value.
pub(super) type Bits = Option<Field>;

/// A column that is there as shares, in one form or in several.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// What its cells are.
    pub(super) ty: Type,
    /// As bits less the least value of its kind; of a quotient the numerator.
    pub(super) bits: Option<Bits>,
    /// Of a quotient the denominator, less its least value.
    pub(super) below: Option<Bits>,
    /// As integers, each of another ring.
    pub(super) integers: Vec<Shared>,
    /// Whether a cell is null.
    pub(super) null: Option<Field>,
    /// The column of a table that it is, by the table's place in the program: its forms are supplied as they are asked for.
    pub(super) of_table: Option<(usize, ColumnId)>,
}

impl Base {
    /// One that is bits.
    pub(super) fn of_bits(ty: Type, bits: Bits, null: Option<Field>) -> Self {
        Base {
            ty,
            bits: Some(bits),
            below: None,
            integers: vec![],
            null,
            of_table: None,
        }
    }

    /// One that is an integer.
    pub(super) fn of_integer(ty: Type, integer: Shared) -> Self {
        Base {
            ty,
            bits: None,
            below: None,
            integers: vec![integer],
            null: None,
            of_table: None,
        }
    }

    /// As an integer of this ring, if it is there as one.
    pub(super) fn integer(&self, ring: Ring) -> Option<Shared> {
        let mut integers = self.integers.iter();
        integers
            .find(|shared| shared.sharing() == Sharing::Ring(ring))
            .copied()
    }

    /// All columns that it has.
    pub(super) fn columns(&self) -> impl Iterator<Item = Shared> {
        let fields = [self.bits.flatten(), self.below.flatten(), self.null];
        let fields = fields.into_iter().flatten().map(|field| field.column());
        fields.chain(self.integers.iter().copied())
    }

    /// The same in other rows: `moved` says where each column has gone.
    pub(super) fn moved(&self, moved: &dyn Fn(Shared) -> Shared) -> Self {
        let to = |field: &Field| field.moved(moved(field.column()));
        Base {
            ty: self.ty.clone(),
            bits: self.bits.map(|bits| bits.as_ref().map(to)),
            below: self.below.map(|bits| bits.as_ref().map(to)),
            integers: self.integers.iter().map(|shared| moved(*shared)).collect(),
            null: self.null.as_ref().map(to),
            of_table: None,
        }
    }
}

/// In which order rows are opened, and whether their places say something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Places {
    /// Places follow from rows of owners: rows are shuffled before they are opened, and ordered by who gets them.
    Secret,
    /// Places are those of public groups, or there is one row.
    Public,
    /// The query asks for this order.
    Ordered,
}
/// A relation: columns that are there as shares, and what is computed of them in each row where it is needed.
#[derive(Clone, Debug)]
pub(super) struct Rel {
    pub(super) rows: u32,
    pub(super) base: Vec<Base>,
    /// The fields, over the base.
    pub(super) fields: Vec<Expr>,
    /// Conditions over the base: rows that are not valid are those where one is not true.
    pub(super) valid: Vec<Expr>,
    pub(super) places: Places,
    /// The order in which rows come, if an operator has left one.
    pub(super) order: Option<Known>,
    /// The fewest rows of a group that is shown, and 0 where there are no groups.
    pub(super) min_rows: u32,
}

impl Rel {
    /// The types of the base.
    pub(super) fn types(&self) -> Vec<Type> {
        self.base.iter().map(|base| base.ty.clone()).collect()
    }

    /// A further column of the base.
    pub(super) fn push(&mut self, base: Base) -> Expr {
        self.base.push(base);
        Expr::column(self.base.len() as u32 - 1)
    }

    /// An expression over the fields as one over the base.
    pub(super) fn over_base(&self, expr: &Expr) -> Expr {
        let field = |column: ColumnId| match self.fields.get(column.index()) {
            Some(field) => field.clone(),
            None => Expr::column(column.0),
        };
        expr.clone().substitute(&field)
    }

    /// The fields with their kinds.
    pub(super) fn typed_fields(&self) -> Result<Vec<(Expr, Kind)>, TypeError> {
        let types = self.types();
        let fields = self.fields.iter();
        fields
            .map(|field| Ok((field.clone(), field.ty(&types)?.kind)))
            .collect()
    }

    /// The condition that a row is valid.
    pub(super) fn condition(&self) -> Expr {
        Expr::all(self.valid.clone())
    }
}

/// Words that outputs of one circuit are packed into, so that few columns move.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// Wires of each word.
    pub(super) words: Vec<Vec<veil_circuit::Wire>>,
    /// Word, first bit and bits of each field.
    fields: Vec<(usize, u32, u32)>,
}

/// The conditions that expressions are not null, of those that may be.
pub(super) fn present(exprs: &[Expr], types: &[Type]) -> Result<Vec<Expr>, TypeError> {
    let mut all = Vec::new();
    for expr in exprs {
        if expr.ty(types)?.nullable {
            let null = Expr::IsNull(Box::new(expr.clone()));
            all.push(Expr::Not(Box::new(null)));
        }
    }
    Ok(all)
}

/// A value where a condition is true, and null elsewhere.
pub(super) fn or_null(condition: Expr, value: Expr, kind: Kind) -> Expr {
    Expr::Case {
        branches: vec![(condition, value)],
        otherwise: Box::new(Expr::Literal(Literal::Null(kind))),
    }
}

/// Bits of a word, at most.
pub(super) const WORD: usize = 128;

impl Packing {
    /// Another field of 1 to 128 wires: its number.
    pub(super) fn add(&mut self, wires: &[veil_circuit::Wire]) -> usize {
        let fits = |word: &Vec<_>| word.len() + wires.len() <= WORD;
        let room = self.words.iter().rposition(fits);
        let at = room.unwrap_or_else(|| {
            self.words.push(Vec::new());
            self.words.len() - 1
        });
        let first = self.words[at].len() as u32;
        self.words[at].extend(wires);
        self.fields.push((at, first, wires.len() as u32));
        self.fields.len() - 1
    }

    /// Where a field is, in the columns of the words.
    pub(super) fn field(&self, number: usize, words: &[Shared]) -> Field {
        let (word, first, count) = self.fields[number];
        Field::new(words[word], first, count)
    }
}
