//! Functions that have no exact values: the arithmetic of [`veil_numeric`] on bits.

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Wire};
use veil_numeric::{Choice, Factor, Function, FunctionError, Machine, Number, Scaled};
use veil_relation::{Expr, Range, real};

use super::columns::Columns;
use super::compare::{choose, padded};
use super::word::{Word, aligned};
use super::{Cell, Data, ExprError, Exprs, Shown};

/// Words of a circuit of bits, or of the bits of another.
pub(crate) struct Bits<'b> {
    b: &'b mut Builder,
    aim: Aim,
}

impl<'b> Bits<'b> {
    /// On the wires of a builder.
    pub(crate) const fn new(b: &'b mut Builder, aim: Aim) -> Self {
        Self { b, aim }
    }
}

impl Machine for Bits<'_> {
    type Int = Word;
    type Bit = Wire;

    fn most_bits(&self) -> u32 {
        128
    }

    fn constant(&mut self, value: i128) -> Word {
        Word::constant(self.b, value, Range::point(value))
    }

    fn add(&mut self, a: &Word, b: &Word, range: Range) -> Word {
        let mut sum = Columns::new(range.bits());
        sum.scaled(self.b, a, 1);
        sum.scaled(self.b, b, 1);
        sum.word(self.b, range, self.aim)
    }

    fn times(&mut self, a: &Word, by: i128, range: Range) -> Word {
        a.times(self.b, by, range, self.aim)
    }

    fn multiply(&mut self, a: &Word, b: &Word, range: Range) -> Word {
        Word::product(self.b, a, b, range, self.aim)
    }

    fn choose(&mut self, bit: &Wire, yes: &Word, no: &Word, ranges: Choice) -> Word {
        let (offset, bits) = aligned(self.b, &[yes, no], ranges.hull, self.aim);
        Word {
            offset,
            bits: choose(self.b, *bit, &bits[0], &bits[1]),
            range: ranges.hull,
        }
    }

    /// Bits in two's complement, inverted where the number is, and one more.
    fn negate_if(&mut self, bit: &Wire, a: &Word, range: Range) -> Option<Word> {
        let len = range.bits();
        let offset = Word::offset_of(range);
        if offset != -1 << (len.max(1) - 1) {
            return None;
        }
        let bits = a.at(self.b, 0, len, self.aim);
        let bits: Vec<Wire> = bits.iter().map(|of| self.b.xor(*of, *bit)).collect();
        let mut sum = Columns::new(len);
        sum.bits(self.b, &bits, 0, false);
        sum.bit(self.b, 0, *bit, false);
        sum.constant((offset as u128).wrapping_neg());
        Some(Word {
            offset,
            bits: sum.total(self.b, self.aim),
            range,
        })
    }

    /// Bit by bit the exclusive or of those whose value has it: without an AND.
    fn pick(&mut self, which: &[Wire], values: &[i128], range: Range) -> Word {
        Word::of_bits(self.pick_bits(which, values, range), range)
    }

    /// Each bit of the result is one of the integer's: an inner product with `which`.
    fn raise(&mut self, _: &Word, bits: &[Wire], which: &[Wire], by: &[u32], range: Range) -> Word {
        let raised = (0..range.bits()).map(|place| {
            let mut sum = self.b.constant_bit(false);
            for (&one, &by) in which.iter().zip(by) {
                let from = place.checked_sub(by);
                if let Some(&bit) = from.and_then(|from| bits.get(from as usize)) {
                    let both = self.b.and(one, bit);
                    sum = self.b.xor(sum, both);
                }
            }
            sum
        });
        Word {
            offset: 0,
            bits: raised.collect(),
            range,
        }
    }

    fn round(&mut self, a: &Word, by: u32, bits: u32, range: Range) -> Word {
        let mut sum = Columns::new(bits);
        sum.scaled(self.b, a, 1);
        if by > 0 {
            sum.constant(1 << (by - 1));
        }
        let sum = sum.total(self.b, self.aim);
        let mut quotient = Columns::new(range.bits());
        quotient.bits(self.b, &sum[by as usize..], 0, false);
        quotient.word(self.b, range, self.aim)
    }

    /// One sum of partial products, half a unit and what is added, of which the lowest places are left out.
    fn scaled_sum(&mut self, of: Scaled<'_, Word>, down: u32, range: Range) -> Option<Word> {
        let bits = Some(down + range.bits()).filter(|bits| *bits <= 128)?;
        let mut sum = Columns::new(bits);
        match of.by {
            Factor::Secret(by) => sum.product(self.b, of.a, by, false, self.aim),
            Factor::Public(by) => sum.scaled(self.b, of.a, by),
        }
        if let Some(plus) = of.plus {
            sum.scaled(self.b, plus, 1 << down);
        }
        let (half, offset) = (1_u128 << (down - 1), Word::offset_of(range));
        sum.constant(half.wrapping_sub((offset as u128) << down));
        let bits = sum.total(self.b, self.aim).split_off(down as usize);
        Some(Word {
            offset,
            bits,
            range,
        })
    }

    fn bits(&mut self, a: &Word, from: u32, bits: u32) -> Vec<Wire> {
        let all = a.unsigned(self.b, self.aim);
        padded(self.b, &all, bits).split_off(from as usize)
    }

    fn is_negative(&mut self, a: &Word, range: Range) -> Wire {
        if range.min() >= 0 || range.max() < 0 {
            return self.b.constant_bit(range.max() < 0);
        }
        let bits = a.signed(self.b, self.aim);
        bits[bits.len() - 1]
    }

    fn lift(&mut self, bit: &Wire) -> Word {
        Word {
            offset: 0,
            bits: vec![*bit],
            range: Range::point(0).hull(Range::point(1)),
        }
    }

    fn truth(&mut self, value: bool) -> Wire {
        self.b.constant_bit(value)
    }

    fn xor(&mut self, a: &Wire, b: &Wire) -> Wire {
        self.b.xor(*a, *b)
    }

    fn and(&mut self, a: &Wire, b: &Wire) -> Wire {
        self.b.and(*a, *b)
    }
}

impl Exprs {
    /// A function of a number, to so many places.
    pub(super) fn real(
        &mut self,
        expr: &Expr,
        function: Function,
        of: &Expr,
        places: u32,
    ) -> Result<Cell, ExprError> {
        let wide = |bits| {
            let expr = Shown::of(expr);
            ExprError::TooWide { expr, bits }
        };
        let applied = match real(function, of, &self.ty(of)?.kind, places) {
            Some(Ok(applied)) => applied,
            Some(Err(FunctionError::TooWide { bits, .. })) => return Err(wide(bits)),
            // The type of the expression says what is wrong with it.
            Some(Err(_)) | None => return Err(wide(128)),
        };
        let kind = self.ty(expr)?.kind;
        let of = self.cell(of)?;
        let Data::Word(word) = &of.value else {
            let expr = Shown::of(expr);
            return Err(ExprError::Quotient { expr });
        };
        let x = Number {
            int: word.clone(),
            range: word.range,
        };
        let (b, aim) = (&mut self.b, self.aim);
        let y = applied.on(&mut Bits::new(b, aim), &x);
        let y = y.map_err(|_| wide(128))?;
        Ok(Cell::of(Data::Word(y.int), of.null, &kind))
    }
}
