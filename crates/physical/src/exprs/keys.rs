//! Keys of orders.

use veil_circuit::Wire;
use veil_relation::SortKey;

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
