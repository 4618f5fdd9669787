//! Expressions as integers of the ring.
//!
//! Sums and products are computed in the ring where an operand is at hand there; all else is bits that are lifted, once and late.

use veil_circuit::Wire;
use veil_math::Ring;
use veil_relation::{Arithmetic, Expr, Kind, Value};

use super::compare::masked;
use super::needs::favours_ring;
use super::{Data, ExprError, Exprs, Shown};

/// An integer of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Integer {
    /// The integer.
    pub(super) wire: Wire,
    /// Whether it is null.
    pub(super) null: Option<Wire>,
    /// Whether it is 0 where it is null.
    pub(super) zeroed: bool,
    /// Whether it is a public constant.
    public: bool,
}

impl Exprs {
    /// An expression as an integer of the ring, which may be anything where it is null.
    pub(super) fn in_ring(&mut self, expr: &Expr) -> Result<Integer, ExprError> {
        if let Some(integer) = self.integers.get(expr) {
            return Ok(*integer);
        }
        let integer = if self.favours_ring(expr) {
            self.computed(expr)?
        } else {
            self.lifted(expr)?
        };
        self.integers.insert(expr.clone(), integer);
        Ok(integer)
    }

    /// Whether an expression is best computed in the ring if an integer is asked for.
    fn favours_ring(&self, expr: &Expr) -> bool {
        favours_ring(expr, &self.types, &|column| {
            let source = self.sources.get(&column);
            source.is_some_and(|source| source.integer.is_some())
        })
    }

    /// Whether an expression is arithmetic of columns that are at hand as integers alone, and its result fits the ring: its bits are those of
    /// the result, whatever its terms are.
    pub(super) fn by_integers_alone(&self, expr: &Expr, kind: &Kind) -> bool {
        let ring = self.b.ring();
        let fits = kind
            .range()
            .is_some_and(|range| range.bits() <= ring.bits());
        let column = matches!(expr, Expr::Column(..) | Expr::Literal(_));
        ring != Ring::Bits && fits && !column && self.linked(expr) == Some(true)
    }

    /// Whether arithmetic has columns, all of them as integers alone; nothing for what is no arithmetic of such.
    fn linked(&self, expr: &Expr) -> Option<bool> {
        match expr {
            Expr::Column(column, _) => {
                let source = self.sources.get(column)?;
                (source.integer.is_some() && source.bits.is_none()).then_some(true)
            }
            Expr::Literal(literal) => literal.kind().range().map(|_| false),
            Expr::Arithmetic(_, a, b) | Expr::AddDays(a, b) | Expr::DaysBetween(a, b) => {
                let (a, b) = (self.linked(a)?, self.linked(b)?);
                Some(a || b)
            }
            Expr::Rescale(of, _) => self.linked(of),
            _ => None,
        }
    }

    fn computed(&mut self, expr: &Expr) -> Result<Integer, ExprError> {
        match expr {
            Expr::Column(column, _) => {
                let source = self.sources.get(column);
                let form = "an integer";
                let missing = ExprError::Missing {
                    column: *column,
                    form,
                };
                let source = source.ok_or(missing.clone())?;
                Ok(Integer {
                    wire: source.integer.ok_or(missing)?,
                    null: source.null,
                    zeroed: true,
                    public: false,
                })
            }
            Expr::Arithmetic(Arithmetic::Mul, a, b) => {
                let (x, y) = (self.in_ring(a)?, self.in_ring(b)?);
                let kept = |of: Integer| of.null.is_none() || of.zeroed;
                Ok(Integer {
                    wire: self.b.mul(x.wire, y.wire),
                    null: self.either_null(x.null, y.null),
                    zeroed: kept(x) && kept(y),
                    public: false,
                })
            }
            Expr::Arithmetic(sign, a, b) => {
                let places = self.places(expr)?;
                let more = [a, b].map(|of| self.places(of).map(|of| places - of));
                let [x, y] = [(a, &more[0]), (b, &more[1])].map(|(of, more)| {
                    let more = more.clone()?;
                    let of = self.in_ring(of)?;
                    Ok::<_, ExprError>(self.shifted(of, more))
                });
                Ok(self.sum(x?, y?, *sign == Arithmetic::Sub))
            }
            Expr::AddDays(a, b) => {
                let (x, y) = (self.in_ring(a)?, self.in_ring(b)?);
                Ok(self.sum(x, y, false))
            }
            Expr::DaysBetween(a, b) => {
                let (x, y) = (self.in_ring(a)?, self.in_ring(b)?);
                Ok(self.sum(x, y, true))
            }
            Expr::Rescale(of, places) => {
                let more = places - self.places(of)?;
                let of = self.in_ring(of)?;
                Ok(self.shifted(of, more))
            }
            Expr::NullIf(a, b) => {
                let null = self.cell(&Expr::NullIf(a.clone(), b.clone()))?.null;
                let of = self.in_ring(a)?;
                Ok(Integer {
                    null,
                    zeroed: false,
                    ..of
                })
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                let (mut conditions, mut values) = (Vec::new(), Vec::new());
                for (when, then) in branches {
                    conditions.push(self.truth(when)?);
                    values.push(self.in_ring(then)?);
                }
                values.push(self.in_ring(otherwise)?);
                Ok(self.mixed_integers(&conditions, &values))
            }
            Expr::Coalesce(parts) => {
                let (mut conditions, mut values) = (Vec::new(), Vec::new());
                for part in parts {
                    let mut value = self.in_ring(part)?;
                    if values.len() + 1 < parts.len() {
                        let there = match value.null.take() {
                            Some(null) => self.b.not(null),
                            None => self.b.constant_bit(true),
                        };
                        conditions.push(there);
                    }
                    values.push(value);
                }
                Ok(self.mixed_integers(&conditions, &values))
            }
            _ => self.literal_or_lifted(expr),
        }
    }

    fn literal_or_lifted(&mut self, expr: &Expr) -> Result<Integer, ExprError> {
        let Expr::Literal(literal) = expr else {
            return self.lifted(expr);
        };
        let cell = self.cell(expr)?;
        let value = match literal.value() {
            Value::Number(number) => number as u128,
            Value::Bool(bit) => bit.into(),
            _ => 0,
        };
        Ok(Integer {
            wire: self.b.constant(value),
            null: cell.null,
            zeroed: true,
            public: true,
        })
    }

    /// Decimal places of a number.
    fn places(&self, of: &Expr) -> Result<u32, ExprError> {
        let kind = self.ty(of)?.kind;
        Ok(kind.number().map_or(0, |(places, _)| places))
    }

    /// An integer times ten to a public power, which fits: the type of the expression was proved so.
    fn shifted(&mut self, of: Integer, places: u32) -> Integer {
        let factor = 10_u128.wrapping_pow(places);
        let wire = self.b.times(of.wire, factor);
        Integer { wire, ..of }
    }

    fn sum(&mut self, x: Integer, y: Integer, minus: bool) -> Integer {
        let wire = if minus {
            self.b.sub(x.wire, y.wire)
        } else {
            self.b.add(x.wire, y.wire)
        };
        let null = self.either_null(x.null, y.null);
        let zeroed = null.is_none() || (x.null == y.null && x.zeroed && y.zeroed);
        Integer {
            wire,
            null,
            zeroed,
            public: false,
        }
    }

    /// The value of the first condition that is true, else the last: a lifted bit for each, and a product for each but one that is not public.
    fn mixed_integers(&mut self, conditions: &[Wire], values: &[Integer]) -> Integer {
        let firsts = self.firsts(conditions);
        let zero = self.b.constant(0);
        let base = values.iter().find(|value| value.wire == zero);
        let base = base.or_else(|| values.iter().find(|value| value.public));
        let base = base.or(values.last()).map_or(zero, |value| value.wire);
        let (mut wire, mut null) = (base, None);
        let none = self.b.constant_bit(false);
        for (&first, value) in firsts.iter().zip(values) {
            let change = self.b.sub(value.wire, base);
            if change != zero {
                let first = self.b.lift(first);
                let change = self.b.mul(first, change);
                wire = self.b.add(wire, change);
            }
            if let Some(of) = value.null {
                let here = self.b.and(first, of);
                let before = null.unwrap_or(none);
                null = Some(self.b.xor(before, here));
            }
        }
        let zeroed = values.iter().all(|v| v.null.is_none() || v.zeroed);
        Integer {
            wire,
            null,
            zeroed,
            public: false,
        }
    }

    /// A cell as bits, lifted: 0 where it is null.
    fn lifted(&mut self, expr: &Expr) -> Result<Integer, ExprError> {
        let cell = self.cell(expr)?;
        let Data::Word(word) = cell.value else {
            let expr = Shown::of(expr);
            return Err(ExprError::Quotient { expr });
        };
        let there = cell.null.map(|null| self.b.not(null));
        let bits = match there {
            Some(there) => masked(&mut self.b, &word.bits, there),
            None => word.bits,
        };
        let one = there.unwrap_or_else(|| self.b.constant_bit(true));
        let mut wire = self.b.constant(0);
        if word.offset != 0 {
            let one = self.b.lift(one);
            wire = self.b.times(one, word.offset as u128);
        }
        for (j, bit) in bits.into_iter().enumerate() {
            let bit = self.b.lift(bit);
            let bit = self.b.times(bit, 1 << j);
            wire = self.b.add(wire, bit);
        }
        Ok(Integer {
            wire,
            null: cell.null,
            zeroed: true,
            public: false,
        })
    }
}
