//! Numbers and quotients as fractions: arithmetic and comparison by cross multiplication.

use veil_circuit::generate::{constant_bits, quotient_and_rest};
use veil_relation::{Arithmetic, Expr, Kind, Range};

use super::columns::Columns;
use super::compare::choose;
use super::divide::{rounded, signed};
use super::word::{Sign, aligned, width};
use super::{Cell, Data, ExprError, Exprs, Ratio, Shown, Word};

/// `above / below · 10^−places`; the denominator of a number is none.
struct Fraction {
    above: Word,
    below: Option<Word>,
    places: u32,
}

/// Why products here fit: the type of the expression was proved so, and has the same ranges.
fn fits(range: Option<Range>) -> Result<Range, ExprError> {
    range.ok_or_else(|| ExprError::TooWide {
        expr: Shown::text("a product of a quotient"),
        bits: 128,
    })
}

fn power(places: u32) -> Result<i128, ExprError> {
    let power = 10_i128.checked_pow(places);
    fits(power.map(Range::point)).map(Range::min)
}

impl Fraction {
    /// Nothing for a key.
    fn of(cell: &Cell) -> Option<Self> {
        let (above, below) = match &cell.value {
            Data::Word(above) => (above, None),
            Data::Ratio(Ratio { above, below }) => (above, Some(below)),
            Data::Key(_) => return None,
        };
        Some(Self {
            above: above.clone(),
            below: below.cloned(),
            places: cell.places,
        })
    }
}

impl Exprs {
    /// Two cells as words that compare as the cells do.
    pub(super) fn crossed(&mut self, x: &Cell, y: &Cell) -> Result<(Word, Word), ExprError> {
        let (Some(x), Some(y)) = (Fraction::of(x), Fraction::of(y)) else {
            // Keys are compared by joins only: the type says so.
            return Err(ExprError::Quotient {
                expr: Shown::text("a comparison of keys"),
            });
        };
        let places = x.places.max(y.places);
        let left = self.scaled(&x, places, y.below.as_ref())?;
        let right = self.scaled(&y, places, x.below.as_ref())?;
        Ok((left, right))
    }

    /// The numerator at more places, times another's denominator.
    fn scaled(
        &mut self,
        of: &Fraction,
        places: u32,
        below: Option<&Word>,
    ) -> Result<Word, ExprError> {
        let more = places - of.places;
        let range = fits(of.above.range.shifted(more))?;
        let shifted = of.above.times(&mut self.b, power(more)?, range, self.aim);
        let Some(below) = below else {
            return Ok(shifted);
        };
        let range = fits(range.times(below.range))?;
        Ok(Word::product(&mut self.b, &shifted, below, range, self.aim))
    }

    /// The sum, difference or product of two numbers or quotients, of a kind.
    pub(super) fn arithmetic(
        &mut self,
        sign: Arithmetic,
        x: &Cell,
        y: &Cell,
        kind: &Kind,
    ) -> Result<Data, ExprError> {
        let wrong = || ExprError::Quotient {
            expr: Shown::text("arithmetic of keys"),
        };
        let x = Fraction::of(x).ok_or_else(wrong)?;
        let y = Fraction::of(y).ok_or_else(wrong)?;
        let (above_range, below_range) = match kind {
            Kind::Ratio { above, below, .. } => (*above, Some(*below)),
            other => (other.range().ok_or_else(wrong)?, None),
        };
        let mut sum = Columns::new(above_range.bits());
        match sign {
            Arithmetic::Mul => sum.product(&mut self.b, &x.above, &y.above, false, self.aim),
            Arithmetic::Add | Arithmetic::Sub => {
                let places = x.places.max(y.places);
                self.term(&mut sum, &x, places, y.below.as_ref(), false)?;
                self.term(
                    &mut sum,
                    &y,
                    places,
                    x.below.as_ref(),
                    sign == Arithmetic::Sub,
                )?;
            }
        }
        let above = sum.word(&mut self.b, above_range, self.aim);
        let Some(range) = below_range else {
            return Ok(Data::Word(above));
        };
        let below = match (x.below, y.below) {
            (Some(x), Some(y)) => Word::product(&mut self.b, &x, &y, range, self.aim),
            (one, other) => match one.or(other) {
                Some(below) => below,
                None => Word::constant(&mut self.b, 1, range),
            },
        };
        Ok(Data::Ratio(Ratio { above, below }))
    }

    /// Adds a numerator at more places, times another's denominator, or subtracts it.
    fn term(
        &mut self,
        sum: &mut Columns,
        of: &Fraction,
        places: u32,
        below: Option<&Word>,
        negative: bool,
    ) -> Result<(), ExprError> {
        let Some(below) = below else {
            let factor = power(places - of.places)?;
            sum.scaled(
                &mut self.b,
                &of.above,
                if negative { -factor } else { factor },
            );
            return Ok(());
        };
        let above = self.scaled(of, places, None)?;
        sum.product(&mut self.b, &above, below, negative, self.aim);
        Ok(())
    }

    /// The quotient of two numbers or quotients: `(a/b · 10^−p) / (c/d · 10^−q) = (a·d·10^q) / (b·c) · 10^−p`, the sign moved above.
    pub(super) fn quotient(
        &mut self,
        expr: &Expr,
        x: &Cell,
        y: &Cell,
        kind: &Kind,
    ) -> Result<Data, ExprError> {
        let wrong = || ExprError::Quotient {
            expr: Shown::of(expr),
        };
        let &Kind::Ratio {
            above: above_range,
            below: below_range,
            ..
        } = kind
        else {
            return Err(wrong());
        };
        let x = Fraction::of(x).ok_or_else(wrong)?;
        let y = Fraction::of(y).ok_or_else(wrong)?;
        let above = self.scaled(&x, x.places + y.places, y.below.as_ref())?;
        let (magnitude, sign) = y.above.magnitude(&mut self.b, self.aim);
        let most = y
            .above
            .range
            .min()
            .unsigned_abs()
            .max(y.above.range.max().unsigned_abs());
        let most = i128::try_from(most).map_err(|_| wrong())?;
        let range = fits(Range::new(0, most))?;
        let mut below = Word::of_bits(magnitude, range);
        if let Some(other) = &x.below {
            let range = fits(range.times(other.range))?;
            below = Word::product(&mut self.b, &below, other, range, self.aim);
        }
        let above = match sign {
            Sign::Plus => above.times(&mut self.b, 1, above_range, self.aim),
            Sign::Minus => above.times(&mut self.b, -1, above_range, self.aim),
            Sign::Secret(bit) => {
                let flipped = above.times(&mut self.b, -1, above_range, self.aim);
                let (offset, bits) =
                    aligned(&mut self.b, &[&flipped, &above], above_range, self.aim);
                Word {
                    offset,
                    bits: choose(&mut self.b, bit, &bits[0], &bits[1]),
                    range: above_range,
                }
            }
        };
        // A divisor of 0 makes a null, whose denominator is anything: the range is that of other values.
        let below = below.times(&mut self.b, 1, below_range, self.aim);
        Ok(Data::Ratio(Ratio { above, below }))
    }

    /// A number or quotient rounded to so many places.
    pub(super) fn round(
        &mut self,
        expr: &Expr,
        of: &Cell,
        places: u32,
        kind: &Kind,
    ) -> Result<Data, ExprError> {
        let wrong = || ExprError::Quotient {
            expr: Shown::of(expr),
        };
        let of = Fraction::of(of).ok_or_else(wrong)?;
        let range = kind.range().ok_or_else(wrong)?;
        if of.below.is_none() && places >= of.places {
            let factor = power(places - of.places)?;
            return Ok(Data::Word(of.above.times(
                &mut self.b,
                factor,
                range,
                self.aim,
            )));
        }
        let below = match of.below {
            Some(below) => below,
            None => Word::constant(&mut self.b, 1, Range::point(1)),
        };
        let number = rounded(
            &mut self.b,
            (&of.above, &below),
            (of.places, places),
            range,
            self.aim,
        );
        Ok(Data::Word(number))
    }

    /// The remainder of a number by a public one, with the number's sign.
    pub(super) fn modulo(&mut self, of: &Word, by: i128, range: Range) -> Word {
        let (magnitude, sign) = of.magnitude(&mut self.b, self.aim);
        let divisor = by.unsigned_abs();
        let most = of
            .range
            .min()
            .unsigned_abs()
            .max(of.range.max().unsigned_abs());
        let (b, aim) = (&mut self.b, self.aim);
        let by = constant_bits(b, divisor, width(divisor));
        let bits = width(most / divisor) as usize;
        let (_, rest) = quotient_and_rest(b, &magnitude, &by, bits, aim);
        let zero = b.constant_bit(false);
        signed(b, &rest, zero, sign, range, aim)
    }
}
