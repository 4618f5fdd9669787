//! Scalar expressions over the columns of a row.
//!
//! Logic is three-valued: a condition over a null is null, and counts as false where rows are chosen. Arithmetic is exact.

use std::collections::BTreeSet;

use veil_numeric::{Function, Range};

use crate::calendar;
use crate::forest::{Forest, Output};
use crate::kind::{Kind, Value, Values};
use crate::place::At;
use crate::schema::ColumnId;

/// A public value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// An integer.
    Integer(i128),
    /// A decimal number: `units · 10^−places`.
    Decimal {
        /// The units.
        units: i128,
        /// Decimal places.
        places: u32,
    },
    /// A day since 1970-01-01.
    Date(i32),
    /// True or false.
    Bool(bool),
    /// A value of a category.
    Category {
        /// Its index in the list.
        index: u16,
        /// The list.
        values: Values,
    },
    /// Null, of a kind.
    Null(Kind),
}

impl Literal {
    /// The kind, as narrow as the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Integer(value) => Kind::Integer(Range::point(*value)),
            Self::Decimal { units, places } => Kind::Decimal {
                places: *places,
                units: Range::point(*units),
            },
            Self::Date(day) => Kind::Date(Range::point(i128::from(*day))),
            Self::Bool(_) => Kind::Bool,
            Self::Category { values, .. } => Kind::Category(values.clone()),
            Self::Null(kind) => kind.clone(),
        }
    }

    /// The value as a cell.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Integer(value) => Value::Number(*value),
            Self::Decimal { units, .. } => Value::Number(*units),
            Self::Date(day) => Value::Number(i128::from(*day)),
            Self::Bool(value) => Value::Bool(*value),
            Self::Category { index, .. } => Value::Number(i128::from(*index)),
            Self::Null(_) => Value::Null,
        }
    }

    /// The literal of a value of a kind; `None` for quotients and keys, which have no literals, and for a value that is not of the kind.
    #[must_use]
    pub fn of(value: Value, kind: &Kind) -> Option<Self> {
        match (value, kind) {
            (Value::Null, _) => Some(Self::Null(kind.clone())),
            (Value::Bool(value), Kind::Bool) => Some(Self::Bool(value)),
            (Value::Number(value), Kind::Integer(_)) => Some(Self::Integer(value)),
            (Value::Number(units), Kind::Decimal { places, .. }) => Some(Self::Decimal {
                units,
                places: *places,
            }),
            (Value::Number(day), Kind::Date(_)) => {
                let day = i32::try_from(day).ok()?;
                (calendar::FIRST_DAY..=calendar::LAST_DAY)
                    .contains(&day)
                    .then_some(Self::Date(day))
            }
            (Value::Number(index), Kind::Category(values)) => {
                let index = u16::try_from(index).ok()?;
                (usize::from(index) < values.texts().len()).then(|| Self::Category {
                    index,
                    values: values.clone(),
                })
            }
            _ => None,
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];

    /// The sign in SQL and in the canonical text.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// Whether two values in this order compare so.
    #[must_use]
    pub const fn admits(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }

    /// The comparison of the operands in the other order.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }

    /// The comparison that is true where this one is false.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
        }
    }
}

/// Exact arithmetic of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arithmetic {
    /// `+`: places of the operand with more of them.
    Add,
    /// `−`: likewise.
    Sub,
    /// `*`: places add.
    Mul,
}

impl Arithmetic {
    /// The sign in SQL and in the canonical text.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
        }
    }
}

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatePart {
    /// The year.
    Year,
    /// The month, 1 to 12.
    Month,
}

/// Most results of a table that is applied to a number.
pub const MOST_POINTS: usize = 1 << 12;

/// A scalar expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A column of the row, and where it is written.
    Column(ColumnId, At),
    /// A public value.
    Literal(Literal),
    /// Not: null stays null.
    Not(Box<Expr>),
    /// All of them: false if one is false, else null if one is null. Of none, true.
    And(Vec<Expr>),
    /// One of them: true if one is true, else null if one is null. Of none, false.
    Or(Vec<Expr>),
    /// A comparison of two numbers, quotients, dates, bools, or texts of one list; null if an operand is.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Whether it is null; never null itself.
    IsNull(Box<Expr>),
    /// Arithmetic of numbers and quotients.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// The exact quotient of two numbers or quotients. The divisor's range must leave 0 out, or the divisor be [`Expr::NullIf`] with the
    /// literal 0: a division by zero would otherwise be an error that depends on secret values.
    Divide(Box<Expr>, Box<Expr>),
    /// The remainder of an integer by a public one, at least 1; it has the sign of the integer, as in PostgreSQL.
    Modulo(Box<Expr>, i128),
    /// A number or quotient rounded to so many places, halves away from zero (PostgreSQL's `round` of `numeric`): a decimal.
    Round(Box<Expr>, u32),
    /// A function of a number that has no exact value, to so many places: a decimal, no farther from the function than [`crate::real`] states.
    Real(Function, Box<Expr>, u32),
    /// A number as a decimal with at least as many places: the same value.
    Rescale(Box<Expr>, u32),
    /// A date and an integer of days after it.
    AddDays(Box<Expr>, Box<Expr>),
    /// Days from the second date to the first.
    DaysBetween(Box<Expr>, Box<Expr>),
    /// A part of a date, as an integer.
    Extract(DatePart, Box<Expr>),
    /// A public table applied to a value of a category: `LIKE`, `IN`, comparisons with texts, parts of texts, another list; or to a number whose range is within the table.
    Lookup {
        /// The category, or the number.
        of: Box<Expr>,
        /// The units of the number that the first result is for; 0 for a category.
        first: i128,
        /// The kind of the results.
        kind: Kind,
        /// A result for each index, or for each number from the first on, of which there are [`MOST_POINTS`] at most; null is one.
        table: Vec<Value>,
    },
    /// The value of the first branch whose condition is true, else the last expression. All values have one kind but for ranges.
    Case {
        /// Conditions and values.
        branches: Vec<(Expr, Expr)>,
        /// The value where no condition is true.
        otherwise: Box<Expr>,
    },
    /// The first that is not null; all have one kind but for ranges. At least one.
    Coalesce(Vec<Expr>),
    /// The first operand, but null where it equals the second.
    NullIf(Box<Expr>, Box<Expr>),
    /// A public model of trees applied to the row; null where an argument is, unless the model says where nulls go.
    Predict {
        /// The model.
        model: Forest,
        /// What is asked of it.
        output: Output,
        /// An argument for each of its features.
        of: Vec<Expr>,
    },
}

impl Expr {
    /// A column.
    #[must_use]
    pub const fn column(index: u32) -> Self {
        Self::Column(ColumnId(index), At(None))
    }

    /// A public truth value.
    #[must_use]
    pub const fn bool(value: bool) -> Self {
        Self::Literal(Literal::Bool(value))
    }

    /// A public integer.
    #[must_use]
    pub const fn integer(value: i128) -> Self {
        Self::Literal(Literal::Integer(value))
    }

    /// A comparison.
    #[must_use]
    pub fn compare(comparison: Comparison, left: Self, right: Self) -> Self {
        Self::Compare(comparison, Box::new(left), Box::new(right))
    }

    /// Arithmetic of two numbers.
    #[must_use]
    pub fn arithmetic(of: Arithmetic, left: Self, right: Self) -> Self {
        Self::Arithmetic(of, Box::new(left), Box::new(right))
    }

    /// The column of which an expression is a copy: with more places, or over another list of texts, each value stays another one.
    #[must_use]
    pub fn copied(&self) -> Option<ColumnId> {
        match self {
            Self::Column(id, _) => Some(*id),
            Self::Rescale(of, _) => of.copied(),
            Self::Lookup { of, table, .. } => {
                let distinct: BTreeSet<_> = table.iter().collect();
                let copy = distinct.len() == table.len() && !table.contains(&Value::Null);
                if copy { of.copied() } else { None }
            }
            _ => None,
        }
    }

    /// All of a list of conditions, as one: nested conjunctions become one list, a list of one its element.
    #[must_use]
    pub fn all(conditions: Vec<Self>) -> Self {
        let mut flat = Vec::new();
        for condition in conditions {
            condition.conjuncts(&mut flat);
        }
        match flat.len() {
            1 => flat.remove(0),
            _ => Self::And(flat),
        }
    }

    /// Appends the conditions whose conjunction this is.
    pub fn conjuncts(self, into: &mut Vec<Self>) {
        match self {
            Self::And(parts) => parts.into_iter().for_each(|part| part.conjuncts(into)),
            other => into.push(other),
        }
    }

    /// The operands, in order.
    #[must_use]
    pub fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Column(..) | Self::Literal(_) => Vec::new(),
            Self::Not(a)
            | Self::IsNull(a)
            | Self::Modulo(a, _)
            | Self::Round(a, _)
            | Self::Real(_, a, _)
            | Self::Rescale(a, _)
            | Self::Extract(_, a)
            | Self::Lookup { of: a, .. } => vec![a],
            Self::And(all)
            | Self::Or(all)
            | Self::Coalesce(all)
            | Self::Predict { of: all, .. } => all.iter().collect(),
            Self::Compare(_, a, b)
            | Self::Arithmetic(_, a, b)
            | Self::Divide(a, b)
            | Self::AddDays(a, b)
            | Self::DaysBetween(a, b)
            | Self::NullIf(a, b) => vec![a, b],
            Self::Case {
                branches,
                otherwise,
            } => {
                let pairs = branches.iter().flat_map(|(when, then)| [when, then]);
                pairs.chain([&**otherwise]).collect()
            }
        }
    }

    /// The same expression with each operand replaced.
    ///
    /// # Errors
    /// The first error of `by`.
    pub fn try_map<E>(self, by: &mut dyn FnMut(Self) -> Result<Self, E>) -> Result<Self, E> {
        let mut one = |a: Box<Self>| by(*a).map(Box::new);
        Ok(match self {
            Self::Column(..) | Self::Literal(_) => self,
            Self::Not(a) => Self::Not(one(a)?),
            Self::IsNull(a) => Self::IsNull(one(a)?),
            Self::Modulo(a, by) => Self::Modulo(one(a)?, by),
            Self::Round(a, places) => Self::Round(one(a)?, places),
            Self::Real(function, a, places) => Self::Real(function, one(a)?, places),
            Self::Rescale(a, places) => Self::Rescale(one(a)?, places),
            Self::Extract(part, a) => Self::Extract(part, one(a)?),
            Self::Lookup {
                of,
                first,
                kind,
                table,
            } => Self::Lookup {
                of: one(of)?,
                first,
                kind,
                table,
            },
            Self::And(all) => Self::And(all.into_iter().map(by).collect::<Result<_, _>>()?),
            Self::Or(all) => Self::Or(all.into_iter().map(by).collect::<Result<_, _>>()?),
            Self::Coalesce(all) => {
                Self::Coalesce(all.into_iter().map(by).collect::<Result<_, _>>()?)
            }
            Self::Predict { model, output, of } => Self::Predict {
                model,
                output,
                of: of.into_iter().map(by).collect::<Result<_, _>>()?,
            },
            Self::Compare(sign, a, b) => Self::Compare(sign, one(a)?, one(b)?),
            Self::Arithmetic(sign, a, b) => Self::Arithmetic(sign, one(a)?, one(b)?),
            Self::Divide(a, b) => Self::Divide(one(a)?, one(b)?),
            Self::AddDays(a, b) => Self::AddDays(one(a)?, one(b)?),
            Self::DaysBetween(a, b) => Self::DaysBetween(one(a)?, one(b)?),
            Self::NullIf(a, b) => Self::NullIf(one(a)?, one(b)?),
            Self::Case {
                branches,
                otherwise,
            } => {
                let mut mapped = Vec::with_capacity(branches.len());
                for (when, then) in branches {
                    mapped.push((by(when)?, by(then)?));
                }
                Self::Case {
                    branches: mapped,
                    otherwise: Box::new(by(*otherwise)?),
                }
            }
        })
    }

    /// The same expression with each column replaced by an expression. A column in the place of another one is written where that was.
    #[must_use]
    pub fn substitute(self, by: &dyn Fn(ColumnId) -> Self) -> Self {
        match self {
            Self::Column(id, at) => match by(id) {
                Self::Column(other, there) => Self::Column(other, at.or(there)),
                expr => expr,
            },
            other => {
                let mapped =
                    other.try_map::<std::convert::Infallible>(&mut |e| Ok(e.substitute(by)));
                match mapped {
                    Ok(expr) => expr,
                }
            }
        }
    }

    /// Calls `seen` with each column that occurs, as often as it does.
    pub fn columns(&self, seen: &mut dyn FnMut(ColumnId)) {
        match self {
            Self::Column(id, _) => seen(*id),
            other => other
                .operands()
                .into_iter()
                .for_each(|operand| operand.columns(seen)),
        }
    }
}
