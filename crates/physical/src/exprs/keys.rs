//! Keys of orders, and the smaller and the larger of two.

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Wire};
use veil_relation::SortKey;

use super::compare::{choose, less_bits};
use super::{ExprError, Exprs};

/// A word whose order as an unsigned number is the order of the keys, lowest bit first. Of each key, from the last, its bits, and whether it is
/// null if it may be. Cells that are equal, or both null, have equal bits.
///
/// # Errors
/// [`ExprError`], with the expression of the key.
pub(crate) fn sort_bits(exprs: &mut Exprs, keys: &[SortKey]) -> Result<Vec<Wire>, ExprError> {
    let mut word = Vec::new();
    for key in keys.iter().rev() {
        let (bits, null) = exprs.bits(&key.expr)?;
        for bit in bits {
            word.push(if key.descending {
                exprs.b.not(bit)
            } else {
                bit
            });
        }
        word.extend(null.map(|null| {
            if key.nulls_first {
                exprs.b.not(null)
            } else {
                null
            }
        }));
    }
    Ok(word)
}

/// The smaller of two unsigned words of one length, or the larger; one that is null gives way to the other. With it whether both are null.
pub(crate) fn extreme(
    b: &mut Builder,
    (x, x_null): (&[Wire], Option<Wire>),
    (y, y_null): (&[Wire], Option<Wire>),
    largest: bool,
    aim: Aim,
) -> (Vec<Wire>, Option<Wire>) {
    let mut second = if largest {
        less_bits(b, x, y, aim)
    } else {
        less_bits(b, y, x, aim)
    };
    if let Some(null) = x_null {
        second = b.or(second, null);
    }
    if let Some(null) = y_null {
        let there = b.not(null);
        second = b.and(second, there);
    }
    let null = x_null.zip(y_null).map(|(x, y)| b.and(x, y));
    (choose(b, second, y, x), null)
}
