//! Multiplication.

use super::adder::{Aim, add, sum_columns};
use crate::{Builder, Wire};

/// The low `n` bits of `x · y`, for words of `n` bits, signed or not.
///
/// [`Aim::Size`]: rows of partial products added one after another, `n² - n + 1` ANDs. [`Aim::Depth`]: a carry-save tree,
/// then a parallel-prefix adder: depth `2 + 2 ⌈log2 n⌉` at most.
///
/// # Panics
/// If the words have different widths.
///
/// # Panics
/// If the words have different widths.
pub fn multiply(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    assert_eq!(x.len(), y.len(), "words of one width");
    let width = x.len();
    if width == 0 {
        return Vec::new();
    }
    match aim {
        Aim::Size => {
            let mut product: Vec<Wire> = x.iter().map(|&x| b.and(x, y[0])).collect();
            for shift in 1..width {
                let row: Vec<Wire> = x[..width - shift]
                    .iter()
                    .map(|&x| b.and(x, y[shift]))
                    .collect();
                let sum = add(b, &product[shift..], &row, Aim::Size);
                product.splice(shift.., sum);
            }
            product
        }
        Aim::Depth => {
            let mut columns = vec![Vec::new(); width];
            for (i, &x) in x.iter().enumerate() {
                for (j, &y) in y[..width - i].iter().enumerate() {
                    columns[i + j].push(b.and(x, y));
                }
            }
            sum_columns(b, columns)
        }
    }
}
