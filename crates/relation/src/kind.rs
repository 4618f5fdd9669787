//! Logical types and values.

use std::fmt;
use std::sync::Arc;

use crate::calendar::{FIRST_DAY, LAST_DAY};
use veil_numeric::Range;

/// Most decimal places of a number: more would leave no room for digits before them.
pub const MOST_PLACES: u32 = 30;

/// Most values of a category: an index fits 16 bits, and the public list of a query stays readable.
pub const MOST_VALUES: usize = 65_535;

/// The public list of values of a category: distinct texts, ascending by their bytes. The index of a value is its place in the list, so that
/// order of indices is order of texts (PostgreSQL's collation "C").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values(Arc<[String]>);

impl Values {
    /// A list of any order; `None` if a text occurs twice, if there are none, or more than [`MOST_VALUES`].
    #[must_use]
    pub fn new(mut texts: Vec<String>) -> Option<Self> {
        texts.sort_unstable();
        let distinct = texts.windows(2).all(|pair| pair[0] != pair[1]);
        (distinct && !texts.is_empty() && texts.len() <= MOST_VALUES).then(|| Self(texts.into()))
    }

    /// The texts in order.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.0
    }

    /// The index of a text.
    #[must_use]
    pub fn index(&self, text: &str) -> Option<u16> {
        let found = self.0.binary_search_by(|value| value.as_str().cmp(text));
        found.ok().map(|index| index as u16)
    }
}

/// What the cells of a column or of an expression are, with what is publicly known about them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An integer of a range.
    Integer(Range),
    /// A decimal number, exact: `units · 10^−places`.
    Decimal {
        /// Decimal places.
        places: u32,
        /// Range of the units.
        units: Range,
    },
    /// An exact quotient: `above / below · 10^−places`, with `below` at least 1. It is made by division, averages and variances, and ends
    /// where it is compared or rounded.
    Ratio {
        /// Decimal places of the numerator.
        places: u32,
        /// Range of the numerator.
        above: Range,
        /// Range of the denominator.
        below: Range,
    },
    /// A date, in days since 1970-01-01.
    Date(Range),
    /// One of the texts of a public list.
    Category(Values),
    /// True or false.
    Bool,
    /// A digest of 64, 80 or 128 bits that joins compare, and nothing else.
    Key {
        /// Bits of the digest.
        bits: u16,
    },
}

impl Kind {
    /// Whether its values have an order: digests of keys are compared for equality alone, and ratios are opened as two numbers.
    #[must_use]
    pub const fn has_order(&self) -> bool {
        !matches!(self, Self::Key { .. } | Self::Ratio { .. })
    }

    /// A date between two days.
    #[must_use]
    pub fn date(min: i32, max: i32) -> Option<Self> {
        let calendar = FIRST_DAY..=LAST_DAY;
        let range = Range::new(min.into(), max.into())?;
        (calendar.contains(&min) && calendar.contains(&max)).then_some(Self::Date(range))
    }

    /// A number's places and units; `None` for what is no integer or decimal.
    #[must_use]
    pub fn number(&self) -> Option<(u32, Range)> {
        match self {
            Self::Integer(range) => Some((0, *range)),
            Self::Decimal { places, units } => Some((*places, *units)),
            _ => None,
        }
    }

    /// The range of what is compared as one integer: numbers in units, days, indices, 0 and 1. `None` for quotients and keys.
    #[must_use]
    pub fn range(&self) -> Option<Range> {
        match self {
            Self::Integer(range) | Self::Date(range) => Some(*range),
            Self::Decimal { units, .. } => Some(*units),
            Self::Category(values) => Range::new(0, values.texts().len() as i128 - 1),
            Self::Bool => Range::new(0, 1),
            Self::Ratio { .. } | Self::Key { .. } => None,
        }
    }

    /// Bits of a cell that is shared as bits; `None` for quotients, which have no form of their own.
    #[must_use]
    pub fn bits(&self) -> Option<u32> {
        match self {
            Self::Key { bits } => Some(u32::from(*bits)),
            _ => self.range().map(Range::bits),
        }
    }

    /// Number of values of a category or of a bool: what a public domain counts.
    #[must_use]
    pub fn domain(&self) -> Option<u64> {
        match self {
            Self::Category(values) => Some(values.texts().len() as u64),
            Self::Bool => Some(2),
            _ => None,
        }
    }

    /// The kind that holds the cells of both: equal but for ranges. `None` if they are of two kinds, places, lists or widths, or quotients.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(Self::Integer(a.hull(*b))),
            (Self::Date(a), Self::Date(b)) => Some(Self::Date(a.hull(*b))),
            (
                Self::Decimal { places, units },
                Self::Decimal {
                    places: other,
                    units: others,
                },
            ) if places == other => Some(Self::Decimal {
                places: *places,
                units: units.hull(*others),
            }),
            (Self::Category(a), Self::Category(b)) if a == b => Some(self.clone()),
            (Self::Bool, Self::Bool) => Some(Self::Bool),
            (Self::Key { bits: a }, Self::Key { bits: b }) if a == b => Some(self.clone()),
            _ => None,
        }
    }

    /// Whether a value is one of this kind's, in its range.
    #[must_use]
    pub fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool, Value::Bool(_)) => true,
            (Self::Key { bits }, Value::Key(key)) => {
                key.checked_shr(u32::from(*bits)).unwrap_or(0) == 0
            }
            (Self::Ratio { above, below, .. }, Value::Ratio(a, b)) => {
                above.contains(*a) && below.contains(*b)
            }
            (Self::Bool | Self::Key { .. } | Self::Ratio { .. }, _) => false,
            (_, Value::Number(number)) => self.range().is_some_and(|range| range.contains(*number)),
            _ => false,
        }
    }
}

impl fmt::Display for Kind {
    /// As a message names it: without the list of a category.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(_) => f.write_str("integer"),
            Self::Decimal { places, .. } => write!(f, "decimal with {places} places"),
            Self::Ratio { .. } => f.write_str("quotient"),
            Self::Date(_) => f.write_str("date"),
            Self::Category(values) => write!(f, "category of {} values", values.texts().len()),
            Self::Bool => f.write_str("bool"),
            Self::Key { bits } => write!(f, "key of {bits} bits"),
        }
    }
}

/// A kind, and whether a cell may be null.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// What the cells are.
    pub kind: Kind,
    /// Whether a cell may be null.
    pub nullable: bool,
}

impl Type {
    /// A type whose cells are never null.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            nullable: false,
        }
    }

    /// The same kind, with nulls if `nullable`.
    #[must_use]
    pub fn or_null(mut self, nullable: bool) -> Self {
        self.nullable |= nullable;
        self
    }

    /// Whether a value is one of this type's.
    #[must_use]
    pub fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.nullable,
            _ => self.kind.holds(value),
        }
    }
}

/// One cell in the clear.
///
/// The order of values of one kind is their order in SQL; null is the last. Quotients have no order of this type: it would be of their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// An integer; units of a decimal; days of a date; the index of a category.
    Number(i128),
    /// Numerator and denominator of a quotient, the latter at least 1, not reduced.
    Ratio(i128, i128),
    /// A digest.
    Key(u128),
    /// Null, of any kind.
    Null,
}

impl Value {
    /// The number; `None` for other values.
    #[must_use]
    pub const fn number(self) -> Option<i128> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}
