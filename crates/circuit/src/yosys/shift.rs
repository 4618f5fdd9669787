//! Shifts by a number that is known only to the circuit: a choice per bit of it.

use super::cells::{any, extend};
use super::error::YosysError;
use super::lower::Lowering;
use super::netlist::CellRef;
use crate::{Builder, Wire};

pub(super) fn lower(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let kind = at.cell.kind.as_str();
    let width = at.bits("Y").len();
    let widest = width.max(at.bits("A").len());
    let stages = u64::from(usize::BITS - widest.leading_zeros()) + 1;
    lowering.room((widest as u64).saturating_mul(12 * stages))?;
    let mut word = lowering.word(at, "A")?;
    let by = lowering.word(at, "B")?;
    let b = &mut lowering.b;
    let signed = at.signed("A_SIGNED");
    let zero = b.constant_bit(false);
    let shifted = match kind {
        "$shl" | "$sshl" => {
            extend(b, &mut word, signed, width);
            word.reverse();
            let mut shifted = right(b, word, &by, zero, width);
            shifted.reverse();
            shifted
        }
        "$shr" | "$sshr" => {
            extend(b, &mut word, signed, widest);
            let sign = word.last().copied().unwrap_or(zero);
            let fill = if signed && kind == "$sshr" {
                sign
            } else {
                zero
            };
            right(b, word, &by, fill, width)
        }
        _ => {
            extend(b, &mut word, signed && kind == "$shift", widest);
            match by.split_last() {
                Some((&sign, by)) if at.signed("B_SIGNED") => either(b, word, by, sign, width),
                _ => right(b, word, &by, zero, width),
            }
        }
    };
    lowering.drive(at, &shifted)
}

/// `word >> by`, cut to `width` bits or extended by `fill`. The largest step comes first: after it only those bits are chosen that the
/// others can still reach.
fn right(b: &mut Builder, word: Vec<Wire>, by: &[Wire], fill: Wire, width: usize) -> Vec<Wire> {
    let steps = (0..by.len())
        .find(|&bit| {
            1usize
                .checked_shl(bit as u32)
                .is_none_or(|step| step >= word.len())
        })
        .unwrap_or(by.len());
    let (by, beyond) = by.split_at(steps);
    let mut word = word;
    for (step, &bit) in by.iter().enumerate().rev() {
        let step = 1 << step;
        let reached = width.saturating_add(step - 1).min(word.len());
        word = (0..reached)
            .map(|place| {
                let far = word.get(place + step).copied().unwrap_or(fill);
                b.mux(bit, far, word[place])
            })
            .collect();
    }
    word.resize(width, fill);
    let beyond = any(b, beyond);
    word.iter().map(|&bit| b.mux(beyond, fill, bit)).collect()
}

/// `word >> by` for a number with a sign: a negative one shifts to the left. Vacant places are zero.
fn either(b: &mut Builder, word: Vec<Wire>, by: &[Wire], sign: Wire, width: usize) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    // Those bits that are not the sign in any value of use.
    let reach = word.len().max(width);
    let used = (usize::BITS - reach.leading_zeros()) as usize;
    let (low, high) = by.split_at(used.min(by.len()));
    let differ: Vec<Wire> = high.iter().map(|&bit| b.xor(bit, sign)).collect();
    let beyond = any(b, &differ);
    // by + 2^n is not negative, and the word begins 2^n places up.
    let start = 1 << low.len();
    let mut placed = vec![zero; start];
    placed.extend(word);
    let mut by = low.to_vec();
    by.push(b.not(sign));
    let shifted = right(b, placed, &by, zero, width);
    shifted
        .iter()
        .map(|&bit| b.mux(beyond, zero, bit))
        .collect()
}
