//! Each operation of an expression, on cells as bits.

use veil_circuit::Wire;
use veil_circuit::generate::{Integer as Bits, constant_bits, decompose};
use veil_math::Ring;
use veil_relation::{ColumnId, Comparison, Expr, Kind, Literal, Range, Value, calendar};

use super::columns::Columns;
use super::dates::extract;
use super::table::{MOST_INDEX, look_up};
use super::{Cell, Data, ExprError, Exprs, Ratio, Shown, Word};

impl Cell {
    /// A cell of a kind.
    pub(super) fn of(value: Data, null: Option<Wire>, kind: &Kind) -> Self {
        let places = match kind {
            Kind::Decimal { places, .. } | Kind::Ratio { places, .. } => *places,
            _ => 0,
        };
        Self {
            value,
            null,
            places,
        }
    }

    /// A truth value.
    pub(super) fn truth(value: Wire, null: Option<Wire>) -> Self {
        let range = Range::new(0, 1).unwrap_or(Range::point(0));
        let word = Word::of_bits(vec![value], range);
        Self::of(Data::Word(word), null, &Kind::Bool)
    }
}

impl Exprs {
    /// Compiles an expression whose operands may have been.
    pub(super) fn compile(&mut self, expr: &Expr) -> Result<Cell, ExprError> {
        let ty = self.ty(expr)?;
        let kind = &ty.kind;
        if self.by_integers_alone(expr, kind) {
            return self.decomposed(expr, kind);
        }
        match expr {
            Expr::Column(column, _) => self.column(*column, kind),
            Expr::Literal(literal) => self.literal(expr, literal),
            Expr::Not(of) => {
                let (value, null) = self.condition(of)?;
                let value = self.b.not(value);
                Ok(Cell::truth(value, null))
            }
            Expr::And(parts) => self.decided(parts, false),
            Expr::Or(parts) => self.decided(parts, true),
            Expr::Compare(sign, a, b) => {
                let (value, null) = self.compared(*sign, a, b)?;
                Ok(Cell::truth(value, null))
            }
            Expr::IsNull(of) => {
                let null = self.is_null(of)?;
                Ok(Cell::truth(null, None))
            }
            Expr::Arithmetic(sign, a, b) => {
                let (x, y) = (self.cell(a)?, self.cell(b)?);
                let value = self.arithmetic(*sign, &x, &y, kind)?;
                let null = self.either_null(x.null, y.null);
                Ok(Cell::of(value, null, kind))
            }
            Expr::Divide(a, b) => {
                let (x, y) = (self.cell(a)?, self.cell(b)?);
                let value = self.quotient(expr, &x, &y, kind)?;
                let null = self.either_null(x.null, y.null);
                Ok(Cell::of(value, null, kind))
            }
            Expr::Modulo(of, by) => self.of_word(expr, of, |exprs, word, range| {
                Ok(exprs.modulo(word, *by, range))
            }),
            Expr::Round(of, places) | Expr::Rescale(of, places) => {
                let of = self.cell(of)?;
                let value = self.round(expr, &of, *places, kind)?;
                Ok(Cell::of(value, of.null, kind))
            }
            Expr::Real(function, of, places) => self.real(expr, *function, of, *places),
            Expr::AddDays(a, b) => self.days(expr, a, b, false),
            Expr::DaysBetween(a, b) => self.days(expr, a, b, true),
            Expr::Extract(part, of) => self.of_word(expr, of, |exprs, word, range| {
                let calendar = calendar::FIRST_DAY.into()..=calendar::LAST_DAY.into();
                if !calendar.contains(&word.range.min()) || !calendar.contains(&word.range.max()) {
                    let expr = Shown::of(expr);
                    return Err(ExprError::TooWide { expr, bits: 22 });
                }
                Ok(extract(&mut exprs.b, *part, word, range, exprs.aim))
            }),
            Expr::Lookup {
                of,
                first,
                kind,
                table,
            } => self.lookup(expr, of, *first, (kind, table)),
            Expr::Case {
                branches,
                otherwise,
            } => self.case(expr, branches, otherwise),
            Expr::Coalesce(parts) => self.coalesce(expr, parts),
            Expr::NullIf(a, b) => {
                let (same, _) = self.compared(Comparison::Eq, a, b)?;
                let (first, second) = (self.cell(a)?, self.cell(b)?);
                // Where the first is null it stays so, equal or not.
                let same = match second.null {
                    Some(null) => {
                        let there = self.b.not(null);
                        self.b.and(same, there)
                    }
                    None => same,
                };
                let null = self.either_null(first.null, Some(same));
                Ok(Cell { null, ..first })
            }
            Expr::Predict { model, output, of } => self.predict(expr, model, *output, of),
        }
    }

    fn column(&mut self, column: ColumnId, kind: &Kind) -> Result<Cell, ExprError> {
        let source = self.sources.get(&column).cloned().unwrap_or_default();
        let form = "bits";
        let missing = ExprError::Missing { column, form };
        let whole = |bits: Option<Vec<Wire>>, len: Option<u32>| match bits {
            Some(bits) if Some(bits.len() as u32) == len => Ok(bits),
            _ => Err(missing.clone()),
        };
        let value = match kind {
            Kind::Key { .. } => Data::Key(whole(source.bits, kind.bits())?),
            Kind::Ratio { above, below, .. } => {
                let numerator = whole(source.bits, Some(above.bits()))?;
                let denominator = whole(source.below, Some(below.bits()))?;
                Data::Ratio(Ratio {
                    above: Word::of_bits(numerator, *above),
                    below: Word::of_bits(denominator, *below),
                })
            }
            _ => {
                let range = kind.range().ok_or(missing.clone())?;
                match (source.bits, source.integer) {
                    (None, Some(integer)) => {
                        let expr = Expr::column(column.0);
                        Data::Word(self.taken(&expr, integer, range)?)
                    }
                    (bits, _) => Data::Word(Word::of_bits(whole(bits, kind.bits())?, range)),
                }
            }
        };
        Ok(Cell::of(value, source.null, kind))
    }

    /// The bits of an integer of the ring whose range is known: as many as the range needs.
    fn taken(&mut self, expr: &Expr, integer: Wire, range: Range) -> Result<Word, ExprError> {
        let (ring, bits) = (self.b.ring(), range.bits());
        if ring == Ring::Bits || bits > ring.bits() {
            let (expr, bits) = (Shown::of(expr), ring.bits());
            return Err(ExprError::TooWide { expr, bits });
        }
        if bits == 0 {
            return Ok(Word::of_bits(Vec::new(), range));
        }
        let up = self.b.plus(integer, (range.min() as u128).wrapping_neg());
        let bits = decompose(&mut self.b, up, Bits::unsigned(bits));
        Ok(Word::of_bits(bits, range))
    }

    /// An expression that is computed in the ring, as bits.
    fn decomposed(&mut self, expr: &Expr, kind: &Kind) -> Result<Cell, ExprError> {
        let integer = self.in_ring(expr)?;
        let range = kind.range().ok_or_else(|| ExprError::Quotient {
            expr: Shown::of(expr),
        })?;
        let word = self.taken(expr, integer.wire, range)?;
        Ok(Cell::of(Data::Word(word), integer.null, kind))
    }

    fn literal(&mut self, expr: &Expr, literal: &Literal) -> Result<Cell, ExprError> {
        let kind = literal.kind();
        let null = match literal {
            Literal::Null(_) => Some(self.b.constant_bit(true)),
            _ => None,
        };
        let mut least = |range: Range| Word::constant(&mut self.b, range.min(), range);
        let value = match (literal.value(), &kind) {
            (Value::Number(number), kind) => {
                let range = kind.range().unwrap_or(Range::point(number));
                Data::Word(Word::constant(&mut self.b, number, range))
            }
            (Value::Bool(bit), _) => {
                let wire = self.b.constant_bit(bit);
                return Ok(Cell::truth(wire, None));
            }
            (Value::Null, Kind::Ratio { above, below, .. }) => Data::Ratio(Ratio {
                above: least(*above),
                below: least(*below),
            }),
            (Value::Null, Kind::Key { bits }) => {
                Data::Key(constant_bits(&mut self.b, 0, u32::from(*bits)))
            }
            (Value::Null, kind) => match kind.range() {
                Some(range) => Data::Word(least(range)),
                None => Data::Word(least(Range::point(0))),
            },
            (Value::Key(_) | Value::Ratio(..), _) => {
                let expr = Shown::of(expr);
                return Err(ExprError::Quotient { expr });
            }
        };
        Ok(Cell::of(value, null, &kind))
    }

    /// Whether an expression is null, without its value where that is not needed.
    fn is_null(&mut self, of: &Expr) -> Result<Wire, ExprError> {
        let null = self.null(of)?;
        Ok(null.unwrap_or_else(|| self.b.constant_bit(false)))
    }

    pub(super) fn null(&mut self, of: &Expr) -> Result<Option<Wire>, ExprError> {
        match of {
            Expr::Column(column, _) if self.sources.contains_key(column) => {
                Ok(self.sources[column].null)
            }
            Expr::Not(a)
            | Expr::Modulo(a, _)
            | Expr::Round(a, _)
            | Expr::Real(_, a, _)
            | Expr::Rescale(a, _)
            | Expr::Extract(_, a) => self.null(a),
            Expr::Compare(_, a, b)
            | Expr::Arithmetic(_, a, b)
            | Expr::Divide(a, b)
            | Expr::AddDays(a, b)
            | Expr::DaysBetween(a, b) => {
                let (a, b) = (self.null(a)?, self.null(b)?);
                Ok(self.either_null(a, b))
            }
            Expr::IsNull(_) => Ok(None),
            Expr::Predict { model, of, .. } => self.predicts_null(model, of),
            _ => Ok(self.cell(of)?.null),
        }
    }

    /// An operation on one number or date.
    fn of_word(
        &mut self,
        expr: &Expr,
        of: &Expr,
        by: impl FnOnce(&mut Self, &Word, Range) -> Result<Word, ExprError>,
    ) -> Result<Cell, ExprError> {
        let kind = self.ty(expr)?.kind;
        let of = self.cell(of)?;
        let (Data::Word(word), Some(range)) = (&of.value, kind.range()) else {
            let expr = Shown::of(expr);
            return Err(ExprError::Quotient { expr });
        };
        let word = by(self, word, range)?;
        Ok(Cell::of(Data::Word(word), of.null, &kind))
    }

    /// Days after a date, or between two.
    fn days(&mut self, expr: &Expr, a: &Expr, b: &Expr, minus: bool) -> Result<Cell, ExprError> {
        let other = self.cell(b)?;
        let cell = self.of_word(expr, a, |exprs, word, range| {
            let Data::Word(other) = &other.value else {
                let expr = Shown::of(expr);
                return Err(ExprError::Quotient { expr });
            };
            let mut sum = Columns::new(range.bits());
            sum.scaled(&mut exprs.b, word, 1);
            sum.scaled(&mut exprs.b, other, if minus { -1 } else { 1 });
            Ok(sum.word(&mut exprs.b, range, exprs.aim))
        })?;
        let null = self.either_null(cell.null, other.null);
        Ok(Cell { null, ..cell })
    }

    fn lookup(
        &mut self,
        expr: &Expr,
        of: &Expr,
        first: i128,
        (kind, table): (&Kind, &[Value]),
    ) -> Result<Cell, ExprError> {
        let least = kind.range().map_or(0, Range::min);
        let len = kind.bits().unwrap_or(0);
        let mut null = None;
        let cell = self.of_word(expr, of, |exprs, word, range| {
            if word.range.bits() > MOST_INDEX {
                let expr = Shown::of(expr);
                return Err(ExprError::TooLarge { expr });
            }
            // A number's range may be less than the table is of.
            let before = word.range.min().saturating_sub(first);
            let table = table.get(usize::try_from(before).unwrap_or(0)..);
            let table = table.unwrap_or_default();
            let mut rows: Vec<u128> = Vec::with_capacity(table.len());
            let mut none = Vec::with_capacity(table.len());
            for value in table.iter().take(1 << word.range.bits()) {
                rows.push(match value {
                    Value::Number(number) => number.wrapping_sub(least) as u128,
                    Value::Bool(bit) => (*bit).into(),
                    // What a null stands on is free: the same as before it changes least.
                    _ => rows.last().copied().unwrap_or(0),
                });
                none.push(u128::from(*value == Value::Null));
            }
            let (b, aim) = (&mut exprs.b, exprs.aim);
            let index = word.normal(b, aim);
            if none.contains(&1) {
                null = Some(look_up(b, &index, &none, 1, aim)[0]);
            }
            Ok(Word::of_bits(look_up(b, &index, &rows, len, aim), range))
        })?;
        let null = self.either_null(cell.null, null);
        Ok(Cell { null, ..cell })
    }
}
