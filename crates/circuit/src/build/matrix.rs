//! Products of matrices over a ring.

use crate::{Builder, Wire};

/// Rows of x, its columns, which are the rows of y, and columns of y.
pub type Shape = [usize; 3];

/// The product of two matrices, row by row: `x` has `shape[0]` rows of `shape[1]`, `y` has `shape[1]` rows of `shape[2]`.
///
/// Each element is a sum of products that nothing else uses, so that it costs one message element, whatever the inner size.
///
/// # Panics
/// If there are not as many wires as the shape says, or if it has a zero.
pub fn matrix_product(b: &mut Builder, x: &[Wire], y: &[Wire], shape: Shape) -> Vec<Wire> {
    let [rows, inner, columns] = shape;
    assert!(!shape.contains(&0), "a matrix has elements");
    assert_eq!(x.len(), rows * inner, "elements of x");
    assert_eq!(y.len(), inner * columns, "elements of y");
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let mut sum = b.mul(x[i * inner], y[j]);
            for k in 1..inner {
                let product = b.mul(x[i * inner + k], y[k * columns + j]);
                sum = b.add(sum, product);
            }
            out.push(sum);
        }
    }
    out
}
