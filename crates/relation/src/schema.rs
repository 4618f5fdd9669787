//! Tables: columns, capacity, claims, and the words of consent.

use std::collections::BTreeSet;
use std::fmt;

use crate::kind::{Kind, Type};

/// The place of a column in a relation, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

impl ColumnId {
    /// The place as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a query does with a column, as its owner's consent names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Decides which rows count: conditions of filters, joins and `CASE`.
    Filter,
    /// Is a key of groups, or distinct.
    GroupBy,
    /// Is a key of joins.
    Join,
    /// Is a key of an order, also of the first rows of one.
    Sort,
    /// Is a key or an argument of a window.
    Window,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Filter,
        Self::GroupBy,
        Self::Join,
        Self::Sort,
        Self::Window,
    ];

    /// The word in job files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::GroupBy => "group-by",
            Self::Join => "join",
            Self::Sort => "sort",
            Self::Window => "window",
        }
    }
}

/// How much of a column may be opened. A later one allows what an earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reveal {
    /// Nothing that depends on its values, but through the operations that the owner allows.
    Never,
    /// Sums, counts, averages and variances over rows; values as keys of groups.
    Aggregates,
    /// Values of rows; smallest, largest and middle values, which are values of rows.
    Rows,
}

impl Reveal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Never, Self::Aggregates, Self::Rows];

    /// The word in job files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Aggregates => "aggregates",
            Self::Rows => "rows",
        }
    }
}

/// An owner's words about a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consent {
    /// What a query may do with it.
    pub may: BTreeSet<Operation>,
    /// How much of it may be opened.
    pub reveal: Reveal,
}

/// A column of an owner's table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its name, in lower case.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The owner's words; without any, the owner's policy alone decides.
    pub consent: Option<Consent>,
}

/// Where the rows of a table come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An owner supplies them, and says what holds of them: its name.
    Owner(String),
    /// The parties have kept them in a job before, with what that job's plan proved of them: the name of the dataset.
    Stored(String),
    /// The first of such rows: the parties have kept more, and have opened how many are valid at most.
    First(First),
}

/// The first rows of a dataset whose valid rows stand in front of all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct First {
    /// The name of the dataset.
    pub dataset: String,
    /// Rows that it has.
    pub of: u32,
    /// Its opened size: no more rows are valid.
    pub opened: u32,
}

impl Origin {
    /// The owner, if one supplies the rows.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Owner(name) => Some(name),
            Self::Stored(_) | Self::First(_) => None,
        }
    }

    /// The dataset, if the parties have one.
    #[must_use]
    pub fn dataset(&self) -> Option<&str> {
        match self {
            Self::Owner(_) => None,
            Self::Stored(name) => Some(name),
            Self::First(first) => Some(&first.dataset),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(name) => f.write_str(name),
            Self::Stored(name) => write!(f, "dataset {name}"),
            Self::First(first) => write!(f, "dataset {}", first.dataset),
        }
    }
}

/// A table: a relation of an owner, or one that parties have kept, with a public capacity, in which each row has a secret valid bit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// Its name, in lower case.
    pub name: String,
    /// Where its rows come from.
    pub origin: Origin,
    /// Rows, those that are not valid among them.
    pub capacity: u32,
    /// Whether some of the rows may not be valid: how many are, the owner alone knows, and of a dataset no participant. Without, each row is valid.
    pub padded: bool,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Columns by which the owner says, or it is known, that the valid rows ascend, nulls last; rows that are not valid come behind them.
    pub sorted_by: Vec<ColumnId>,
    /// Sets of columns of which the owner says, or it is known, that no two valid rows have equal values without a null.
    pub unique: Vec<Vec<ColumnId>>,
}

/// Most rows of a table: positions fit 31 bits.
pub const MOST_ROWS: u32 = 1 << 31;

/// Why a table is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Two columns have one name.
    #[error("table `{table}` has two columns `{column}`; rename one")]
    TwoColumns {
        /// The table.
        table: String,
        /// The name of both.
        column: String,
    },
    /// A name is no name of the dialect.
    #[error(
        "`{name}` of table `{table}` is no name: use lower-case letters, digits and `_`, a letter or `_` first"
    )]
    Name {
        /// The table.
        table: String,
        /// The name.
        name: String,
    },
    /// A table has no columns.
    #[error("table `{table}` has no columns")]
    Empty {
        /// The table.
        table: String,
    },
    /// More rows than positions.
    #[error("table `{table}` has {rows} rows; {MOST_ROWS} are the most")]
    Rows {
        /// The table.
        table: String,
        /// Its capacity.
        rows: u32,
    },
    /// A claim names no column, or one that the table lacks, or one twice.
    #[error(
        "a claim about table `{table}` names no columns, a column twice, or one that the table does not have"
    )]
    Claim {
        /// The table.
        table: String,
    },
    /// The first rows of a dataset are more than it has, or fewer than may be valid.
    #[error(
        "table `{table}` has the first {rows} of {of} rows, of which up to {opened} count; it has at least those, and no more than there are"
    )]
    First {
        /// The table.
        table: String,
        /// Its capacity.
        rows: u32,
        /// Rows of the dataset.
        of: u32,
        /// The opened size.
        opened: u32,
    },
    /// A column of a table is of a kind that tables do not have.
    #[error("column `{column}` of table `{table}` is no kind of a table: {kind}")]
    Kind {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Its kind, in words.
        kind: String,
    },
}

impl Table {
    /// Looks whether names, kinds and claims are as a table's must be.
    ///
    /// # Errors
    /// [`SchemaError`], with the table and the column.
    pub fn check(&self) -> Result<(), SchemaError> {
        let table = || self.name.clone();
        let names = self.columns.iter().map(|column| &column.name);
        if let Some(name) = std::iter::once(&self.name)
            .chain(names)
            .find(|name| !is_name(name))
        {
            let name = name.clone();
            return Err(SchemaError::Name {
                table: table(),
                name,
            });
        }
        if self.columns.is_empty() {
            return Err(SchemaError::Empty { table: table() });
        }
        if self.capacity > MOST_ROWS {
            let rows = self.capacity;
            return Err(SchemaError::Rows {
                table: table(),
                rows,
            });
        }
        if let Origin::First(first) = &self.origin {
            let (rows, of, opened) = (self.capacity, first.of, first.opened);
            if !self.padded || rows > of || opened > rows || of > MOST_ROWS {
                return Err(SchemaError::First {
                    table: table(),
                    rows,
                    of,
                    opened,
                });
            }
        }
        let mut seen = BTreeSet::new();
        for column in &self.columns {
            if !seen.insert(&column.name) {
                let column = column.name.clone();
                return Err(SchemaError::TwoColumns {
                    table: table(),
                    column,
                });
            }
            let allowed = match &column.ty.kind {
                Kind::Ratio { .. } => false,
                Kind::Decimal { places, .. } => *places <= crate::kind::MOST_PLACES,
                Kind::Key { bits } => matches!(bits, 64 | 80 | 128),
                Kind::Date(range) => {
                    Kind::date(range.min() as i32, range.max() as i32)
                        == Some(column.ty.kind.clone())
                }
                Kind::Integer(_) | Kind::Category(_) | Kind::Bool => true,
            };
            if !allowed {
                let (column, kind) = (column.name.clone(), column.ty.kind.to_string());
                return Err(SchemaError::Kind {
                    table: table(),
                    column,
                    kind,
                });
            }
        }
        let sorted = (!self.sorted_by.is_empty()).then_some(&self.sorted_by);
        for claim in self.unique.iter().chain(sorted) {
            let distinct: BTreeSet<_> = claim.iter().collect();
            let known = claim
                .iter()
                .all(|column| column.index() < self.columns.len());
            if claim.is_empty() || distinct.len() != claim.len() || !known {
                return Err(SchemaError::Claim { table: table() });
            }
        }
        Ok(())
    }

    /// Rows of the dataset that it is loaded from; its own, if that is all of it or none.
    #[must_use]
    pub const fn rows_kept(&self) -> u32 {
        match &self.origin {
            Origin::Owner(_) | Origin::Stored(_) => self.capacity,
            Origin::First(first) => first.of,
        }
    }

    /// The place of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.map(|index| ColumnId(index as u32))
    }
}

/// Whether a text is a name: `[a-z_][a-z0-9_]*`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let starts = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    text.as_bytes().first().is_some_and(starts)
        && text
            .bytes()
            .all(|byte| starts(&byte) || byte.is_ascii_digit())
}
