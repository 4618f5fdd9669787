//! Circuits of the expressions of the algebra.
//!
//! [`Exprs`] compiles each expression once, on cells that the caller has put on wires: as bits, as integers of the circuit's ring, or both. What
//! it computes is what [`veil_relation::clear`] does, in every row. A cell as *bits* is its value less the least of its kind, with as many wires
//! as the range needs, none for a kind of one value; a key is its digest. As an *integer* it is the value itself modulo the ring. A null is a wire
//! of its own, absent where the type has none.
//!
//! Public facts cost nothing: operations on literals are folded, and so are comparisons that ranges decide.

mod aggregates;
mod cells;
mod columns;
mod compare;
mod dates;
mod divide;
mod forest;
mod fractions;
mod integers;
mod keys;
mod logic;
mod needs;
mod real;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod thresholds;
mod word;

use std::collections::HashMap;
use std::fmt;

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Wire};
use veil_math::Ring;
use veil_relation::{At, ColumnId, Expr, Forest, Kind, Type, TypeError};

pub(crate) use aggregates::{Sums, deviation, variance};
pub(crate) use columns::Columns;
pub(crate) use compare::{below_bits, choose, less, less_bits, masked};
pub(crate) use divide::rounded as quotient;
pub use forest::ands;
pub(crate) use forest::highest;
pub(crate) use keys::sort_bits;
pub(crate) use needs::{Form, Want, needs};
pub(crate) use real::Bits;
pub(crate) use thresholds::{Asked, decoded};
pub(crate) use word::Word;

/// Most wires of a circuit: some thirty divisions of 128 bits by 128; building it takes a party a fifth of a gigabyte.
const MOST_WIRES: u64 = 1 << 21;

/// Why an expression has no circuit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExprError {
    /// It has no type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A column that is not on wires in the form that is needed.
    #[error("column #{} is not at hand as {form}", column.0)]
    Missing {
        /// The column.
        column: ColumnId,
        /// The form.
        form: &'static str,
    },
    /// A number that may need more than 128 bits, or more than the ring of the circuit has.
    #[error("`{expr}` may not fit {bits} bits; declare narrower ranges, or round earlier")]
    TooWide {
        /// The expression.
        expr: Shown,
        /// Bits at hand.
        bits: u32,
    },
    /// A quotient where a cell is asked for.
    #[error("`{expr}` is a quotient, which has no cell of its own; round it")]
    Quotient {
        /// The expression.
        expr: Shown,
    },
    /// A circuit of bits has no integers.
    #[error("`{expr}` is wanted as an integer in a circuit of bits")]
    NoIntegers {
        /// The expression.
        expr: Shown,
    },
    /// A sum that may need more than 128 bits.
    #[error("the sum of `{expr}` may not fit 128 bits; declare narrower ranges, or round earlier")]
    WideSum {
        /// The summands.
        expr: Shown,
    },
    /// A variance that may need more than 128 bits.
    #[error("the variance may not fit 128 bits; declare narrower ranges, or round earlier")]
    WideVariance,
    /// A quotient that is opened.
    #[error("`{name}` is a quotient, which is not opened; round it")]
    Opened {
        /// The column.
        name: String,
        /// Where it is computed.
        at: At,
    },
    /// A circuit that is too large.
    #[error("the circuit of `{expr}` has more than {MOST_WIRES} wires; split the query")]
    TooLarge {
        /// The expression.
        expr: Shown,
    },
}

/// An expression in an error: its canonical text, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    text: String,
    at: At,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Shown {
    pub(crate) fn of(expr: &Expr) -> Self {
        Shown {
            text: expr.to_string(),
            at: expr.written(),
        }
    }

    /// What is no expression of a query.
    fn text(text: &str) -> Self {
        Shown {
            text: text.to_owned(),
            at: At::default(),
        }
    }
}

impl ExprError {
    /// Where the expression is written, if that is known.
    pub(crate) const fn at(&self) -> At {
        match self {
            ExprError::TooWide { expr, .. }
            | ExprError::Quotient { expr }
            | ExprError::NoIntegers { expr }
            | ExprError::WideSum { expr }
            | ExprError::TooLarge { expr } => expr.at,
            ExprError::Opened { at, .. } => *at,
            ExprError::Type(TypeError::Range(range)) => range.at,
            ExprError::Type(_) | ExprError::Missing { .. } | ExprError::WideVariance => At(None),
        }
    }

    /// What is wrong, in words for who looks at the place, and what to write instead.
    pub(crate) fn said(&self) -> (String, Option<&'static str>) {
        let narrower = Some("declare narrower ranges, or round earlier");
        match self {
            ExprError::TooWide { bits, .. } => (format!("this may not fit {bits} bits"), narrower),
            ExprError::WideSum { .. } => ("the sum of this may not fit 128 bits".into(), narrower),
            ExprError::WideVariance => ("the variance may not fit 128 bits".into(), narrower),
            ExprError::Quotient { .. } => (
                "this is a quotient, which has no cell of its own".into(),
                Some("round it: round(…, 6)"),
            ),
            ExprError::Opened { name, .. } => (
                format!("`{name}` is a quotient, which is not opened"),
                Some("round it: round(…, 6)"),
            ),
            ExprError::TooLarge { .. } => (
                format!("the circuit of this has more than {MOST_WIRES} wires"),
                Some("ask for less in one query"),
            ),
            other => (other.to_string(), None),
        }
    }
}

/// The cells of a column, as far as they are on wires.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Source {
    /// The cell as bits, lowest first; the numerator of a quotient.
    pub(crate) bits: Option<Vec<Wire>>,
    /// The denominator of a quotient, less its least value.
    pub(crate) below: Option<Vec<Wire>>,
    /// The cell as an integer, 0 where it is null.
    pub(crate) integer: Option<Wire>,
    /// Whether the cell is null. A column without the wire is never null.
    pub(crate) null: Option<Wire>,
}

/// A value on wires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    /// What it is. Where the cell is null it is anything.
    pub(crate) value: Data,
    /// Whether it is null; absent if it never is.
    pub(crate) null: Option<Wire>,
    /// Decimal places of a number or quotient.
    places: u32,
}

/// What a cell is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Data {
    /// Anything that is compared as one integer; 0 and 1 for bools.
    Word(Word),
    /// A digest.
    Key(Vec<Wire>),
    /// A quotient.
    Ratio(Ratio),
}

/// `above / below`, with `below` at least 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ratio {
    /// The numerator.
    pub(crate) above: Word,
    /// The denominator.
    pub(crate) below: Word,
}

/// Compiles expressions over the columns of a row.
#[derive(Debug)]
pub(crate) struct Exprs {
    /// The circuit.
    pub(crate) b: Builder,
    types: Vec<Type>,
    sources: HashMap<ColumnId, Source>,
    aim: Aim,
    cells: HashMap<Expr, Cell>,
    integers: HashMap<Expr, integers::Integer>,
    forests: HashMap<(Forest, Vec<Expr>), forest::Predicted>,
}

impl Exprs {
    /// Over columns of these types, of which some are on wires of the builder.
    pub(crate) fn new(
        b: Builder,
        types: Vec<Type>,
        sources: HashMap<ColumnId, Source>,
        aim: Aim,
    ) -> Self {
        Self {
            b,
            types,
            sources,
            aim,
            cells: HashMap::new(),
            integers: HashMap::new(),
            forests: HashMap::new(),
        }
    }

    /// What its circuit is to have few of.
    pub(crate) const fn aim(&self) -> Aim {
        self.aim
    }

    /// The type of an expression.
    ///
    /// # Errors
    /// [`ExprError::Type`].
    pub(crate) fn ty(&self, expr: &Expr) -> Result<Type, ExprError> {
        Ok(expr.ty(&self.types)?)
    }

    /// The value of an expression; equal expressions are compiled once.
    ///
    /// # Errors
    /// [`ExprError`], with the expression.
    pub(crate) fn cell(&mut self, expr: &Expr) -> Result<Cell, ExprError> {
        if let Some(cell) = self.cells.get(expr) {
            return Ok(cell.clone());
        }
        let cell = self.compile(expr)?;
        if self.b.wires() > MOST_WIRES {
            let expr = Shown::of(expr);
            return Err(ExprError::TooLarge { expr });
        }
        self.cells.insert(expr.clone(), cell.clone());
        Ok(cell)
    }

    /// A cell as bits, zeros where it is null, and whether it is null.
    ///
    /// # Errors
    /// [`ExprError`]; a quotient is [`ExprError::Quotient`].
    pub(crate) fn bits(&mut self, expr: &Expr) -> Result<(Vec<Wire>, Option<Wire>), ExprError> {
        let kind = self.ty(expr)?.kind;
        self.bits_as(expr, &kind)
    }

    /// A cell as bits of a kind that holds all of its kind's: those of another relation of a union, or of the other side of a join.
    ///
    /// # Errors
    /// As [`Exprs::bits`].
    pub(crate) fn bits_as(
        &mut self,
        expr: &Expr,
        kind: &Kind,
    ) -> Result<(Vec<Wire>, Option<Wire>), ExprError> {
        let cell = self.cell(expr)?;
        let bits = match &cell.value {
            Data::Key(bits) => bits.clone(),
            Data::Word(word) => {
                let range = kind.range().unwrap_or(word.range);
                word.at(&mut self.b, range.min(), range.bits(), self.aim)
            }
            Data::Ratio(_) => {
                let expr = Shown::of(expr);
                return Err(ExprError::Quotient { expr });
            }
        };
        let bits = match cell.null {
            None => bits,
            Some(null) => {
                let there = self.b.not(null);
                masked(&mut self.b, &bits, there)
            }
        };
        Ok((bits, cell.null))
    }

    /// Whether a condition is true: neither false nor null.
    ///
    /// # Errors
    /// [`ExprError`], with the expression.
    pub(crate) fn truth(&mut self, condition: &Expr) -> Result<Wire, ExprError> {
        self.definitely(condition, true)
    }

    /// A cell as an integer of the circuit's ring, 0 where it is null, and whether it is null.
    ///
    /// # Errors
    /// [`ExprError`]; in a circuit of bits [`ExprError::NoIntegers`].
    pub(crate) fn integer(&mut self, expr: &Expr) -> Result<(Wire, Option<Wire>), ExprError> {
        if self.b.ring() == Ring::Bits {
            let expr = Shown::of(expr);
            return Err(ExprError::NoIntegers { expr });
        }
        let integer = self.in_ring(expr)?;
        let wire = match integer.null {
            Some(null) if !integer.zeroed => {
                let there = self.b.not(null);
                let there = self.b.lift(there);
                self.b.mul(there, integer.wire)
            }
            _ => integer.wire,
        };
        Ok((wire, integer.null))
    }
}
