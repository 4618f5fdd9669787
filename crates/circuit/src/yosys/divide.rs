//! Quotients and remainders, rounded towards zero as in Verilog.

use super::cells::{both_signed, extend};
use super::error::YosysError;
use super::lower::Lowering;
use super::netlist::CellRef;
use crate::build::long_division;
use crate::generate::{Aim, add};
use crate::{Builder, Wire};

/// By zero a quotient is all ones, as many as the operands have bits, for a negative number 1, and a remainder is the number: what long division gives.
pub(super) fn lower(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let (mut x, mut y) = (lowering.word(at, "A")?, lowering.word(at, "B")?);
    let signed = both_signed(at);
    let width = x.len().max(y.len());
    let size = width as u64;
    lowering.room(size.saturating_mul(size).saturating_mul(12))?;
    let (b, aim) = (&mut lowering.b, lowering.aim);
    extend(b, &mut x, signed, width);
    extend(b, &mut y, signed, width);
    let zero = b.constant_bit(false);
    let sign = |word: &[Wire]| word.last().copied().filter(|_| signed).unwrap_or(zero);
    let (x_sign, y_sign) = (sign(&x), sign(&y));
    let x = negate_if(b, &x, x_sign, aim);
    let y = negate_if(b, &y, y_sign, aim);
    let (quotient, rest) = long_division(b, &x, &y, aim);
    let (mut word, negative) = match at.cell.kind.as_str() {
        "$div" => (quotient, b.xor(x_sign, y_sign)),
        _ => (rest, x_sign),
    };
    // The lowest number by -1 is a number that takes one bit more.
    if signed && at.bits("Y").len() > width {
        word.push(zero);
    }
    let mut word = negate_if(b, &word, negative, aim);
    extend(b, &mut word, signed, at.bits("Y").len());
    lowering.drive(at, &word)
}

/// `-x` where the condition holds, in two's complement.
fn negate_if(b: &mut Builder, x: &[Wire], condition: Wire, aim: Aim) -> Vec<Wire> {
    let flipped: Vec<Wire> = x.iter().map(|&bit| b.xor(bit, condition)).collect();
    let mut one = vec![b.constant_bit(false); x.len()];
    if let Some(lowest) = one.first_mut() {
        *lowest = condition;
    }
    add(b, &flipped, &one, aim)
}
