//! Expressions over one row.

use std::cmp::Ordering;

use super::forest::predicted;
use crate::calendar;
use crate::expr::{Arithmetic, Comparison, DatePart, Expr, Literal};
use crate::fraction::{real, round_ratio};
use crate::kind::{Kind, Type, Value};

/// Why arithmetic here does not overflow.
const FITS: &str = "the type of the expression proves that its values fit";

/// A valid row with the types of its cells.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    cells: &'a [Value],
    types: &'a [Type],
}

/// A value with its decimal places, which are 0 if it is no number.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) value: Value,
    pub(super) places: u32,
}

impl Cell {
    pub(super) const NULL: Self = Self {
        value: Value::Null,
        places: 0,
    };

    const fn plain(value: Value) -> Self {
        Self { value, places: 0 }
    }

    /// Numerator, denominator and places; `None` for null.
    fn fraction(self) -> Option<(i128, i128, u32)> {
        match self.value {
            Value::Number(above) => Some((above, 1, self.places)),
            Value::Ratio(above, below) => Some((above, below, self.places)),
            _ => None,
        }
    }

    fn is_ratio(self) -> bool {
        matches!(self.value, Value::Ratio(..))
    }
}

fn shifted(value: i128, places: u32) -> i128 {
    let power = 10_i128.checked_pow(places).expect(FITS);
    value.checked_mul(power).expect(FITS)
}

fn places(kind: &Kind) -> u32 {
    match kind {
        Kind::Decimal { places, .. } | Kind::Ratio { places, .. } => *places,
        _ => 0,
    }
}

impl<'a> Row<'a> {
    pub(super) const fn new(cells: &'a [Value], types: &'a [Type]) -> Self {
        Self { cells, types }
    }

    /// Whether a condition is true: neither false nor null.
    pub(super) fn is_true(&self, condition: &Expr) -> bool {
        self.value(condition) == Value::Bool(true)
    }

    /// The value of an expression.
    pub(super) fn value(&self, expr: &Expr) -> Value {
        self.cell(expr).value
    }

    /// The value of an expression with its places.
    pub(super) fn cell(&self, expr: &Expr) -> Cell {
        match expr {
            Expr::Column(id, _) => Cell {
                value: self.cells[id.index()],
                places: places(&self.types[id.index()].kind),
            },
            Expr::Literal(literal) => Cell {
                value: literal.value(),
                places: match literal {
                    Literal::Decimal { places, .. } => *places,
                    _ => 0,
                },
            },
            Expr::Not(a) => Cell::plain(match self.value(a) {
                Value::Bool(value) => Value::Bool(!value),
                _ => Value::Null,
            }),
            Expr::And(all) => Cell::plain(self.decided(all, false)),
            Expr::Or(all) => Cell::plain(self.decided(all, true)),
            Expr::Compare(sign, a, b) => Cell::plain(self.compare(*sign, a, b)),
            Expr::IsNull(a) => Cell::plain(Value::Bool(self.value(a) == Value::Null)),
            Expr::Arithmetic(sign, a, b) => self.arithmetic(*sign, a, b),
            Expr::Divide(a, b) => self.quotient(a, b),
            Expr::Modulo(a, by) => Cell::plain(match self.value(a) {
                Value::Number(value) => Value::Number(value % by),
                _ => Value::Null,
            }),
            Expr::Round(a, to) => match self.cell(a).fraction() {
                Some((above, below, from)) => Cell {
                    value: Value::Number(round_ratio(above, below, from, *to).expect(FITS)),
                    places: *to,
                },
                None => Cell::NULL,
            },
            Expr::Real(function, a, to) => match self.cell(a).value {
                Value::Number(x) => {
                    let kind = a.ty(self.types).map(|ty| ty.kind);
                    let applied = kind.ok().and_then(|kind| real(*function, a, &kind, *to));
                    let value = applied.and_then(Result::ok).and_then(|f| f.clear(x));
                    Cell {
                        value: Value::Number(value.expect(FITS)),
                        places: *to,
                    }
                }
                _ => Cell::NULL,
            },
            Expr::Rescale(a, to) => {
                let cell = self.cell(a);
                match cell.value {
                    Value::Number(value) => Cell {
                        value: Value::Number(shifted(value, to - cell.places)),
                        places: *to,
                    },
                    _ => Cell::NULL,
                }
            }
            Expr::AddDays(a, b) => self.days(a, b, |date, days| date + days),
            Expr::DaysBetween(a, b) => self.days(a, b, |to, from| to - from),
            Expr::Extract(part, a) => Cell::plain(match self.value(a) {
                Value::Number(day) => {
                    let (year, month, _) = calendar::civil(day as i32);
                    Value::Number(match part {
                        DatePart::Year => i128::from(year),
                        DatePart::Month => i128::from(month),
                    })
                }
                _ => Value::Null,
            }),
            Expr::Lookup {
                of,
                first,
                kind,
                table,
            } => match self.value(of) {
                Value::Number(number) => Cell {
                    value: table[(number - first) as usize],
                    places: places(kind),
                },
                _ => Cell::NULL,
            },
            Expr::Case {
                branches,
                otherwise,
            } => {
                let taken = branches.iter().find(|(when, _)| self.is_true(when));
                self.cell(taken.map_or(otherwise, |(_, then)| then))
            }
            Expr::Coalesce(all) => {
                let mut cells = all.iter().map(|part| self.cell(part));
                cells
                    .find(|cell| cell.value != Value::Null)
                    .unwrap_or(Cell::NULL)
            }
            Expr::NullIf(a, b) => match self.compare(Comparison::Eq, a, b) {
                Value::Bool(true) => Cell::NULL,
                _ => self.cell(a),
            },
            Expr::Predict { model, output, of } => {
                let of = of.iter().filter_map(|part| {
                    let ty = part.ty(self.types).ok()?;
                    Some((self.value(part), ty))
                });
                predicted(model, *output, &of.collect::<Vec<_>>())
            }
        }
    }

    /// `decisive` if one of the conditions is; else null if one is null; else the opposite.
    fn decided(&self, all: &[Expr], decisive: bool) -> Value {
        let values: Vec<Value> = all.iter().map(|part| self.value(part)).collect();
        if values.contains(&Value::Bool(decisive)) {
            Value::Bool(decisive)
        } else if values.contains(&Value::Null) {
            Value::Null
        } else {
            Value::Bool(!decisive)
        }
    }

    fn compare(&self, sign: Comparison, a: &Expr, b: &Expr) -> Value {
        let (a, b) = (self.cell(a), self.cell(b));
        if a.value == Value::Null || b.value == Value::Null {
            return Value::Null;
        }
        Value::Bool(sign.admits(order(a, b)))
    }

    fn arithmetic(&self, sign: Arithmetic, a: &Expr, b: &Expr) -> Cell {
        let (a, b) = (self.cell(a), self.cell(b));
        let (Some(x), Some(y)) = (a.fraction(), b.fraction()) else {
            return Cell::NULL;
        };
        let below = x.1.checked_mul(y.1).expect(FITS);
        let (above, places) = if sign == Arithmetic::Mul {
            (x.0.checked_mul(y.0), x.2 + y.2)
        } else {
            let places = x.2.max(y.2);
            let one = shifted(x.0, places - x.2).checked_mul(y.1).expect(FITS);
            let other = shifted(y.0, places - y.2).checked_mul(x.1).expect(FITS);
            let sum = match sign {
                Arithmetic::Sub => one.checked_sub(other),
                _ => one.checked_add(other),
            };
            (sum, places)
        };
        let above = above.expect(FITS);
        let value = if a.is_ratio() || b.is_ratio() {
            Value::Ratio(above, below)
        } else {
            Value::Number(above)
        };
        Cell { value, places }
    }

    fn quotient(&self, a: &Expr, b: &Expr) -> Cell {
        let (Some(x), Some(y)) = (self.cell(a).fraction(), self.cell(b).fraction()) else {
            return Cell::NULL;
        };
        let above = shifted(x.0.checked_mul(y.1).expect(FITS), y.2);
        let below = x.1.checked_mul(y.0).expect(FITS);
        Cell {
            value: Value::Ratio(above * below.signum(), below.abs()),
            places: x.2,
        }
    }

    fn days(&self, a: &Expr, b: &Expr, by: fn(i128, i128) -> i128) -> Cell {
        Cell::plain(match (self.value(a), self.value(b)) {
            (Value::Number(a), Value::Number(b)) => Value::Number(by(a, b)),
            _ => Value::Null,
        })
    }
}

/// The order of two values that are not null: of fractions `a/b · 10^−p` by cross multiplication.
fn order(a: Cell, b: Cell) -> Ordering {
    let (Some(x), Some(y)) = (a.fraction(), b.fraction()) else {
        return a.value.cmp(&b.value);
    };
    let places = x.2.max(y.2);
    let one = shifted(x.0, places - x.2).checked_mul(y.1).expect(FITS);
    let other = shifted(y.0, places - y.2).checked_mul(x.1).expect(FITS);
    one.cmp(&other)
}
