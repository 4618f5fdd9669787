//! Linear equations, exactly.

use num_bigint::BigInt;
use num_traits::{One, Zero};

/// The adjugate and the determinant of a square matrix, so that its inverse is their quotient; nothing if it is
/// singular.
///
/// Gauss-Jordan elimination without fractions: every intermediate entry is a minor, so it stays an integer and no
/// longer than that. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination",
/// Mathematics of Computation 22, 1968, the one-step method, applied to all rows.
pub(super) fn invert(matrix: &[Vec<BigInt>]) -> Option<(Vec<Vec<BigInt>>, BigInt)> {
    let size = matrix.len();
    let unit = |row: usize, column: usize| {
        if row == column {
            BigInt::one()
        } else {
            BigInt::zero()
        }
    };
    let mut rows: Vec<Vec<BigInt>> = (matrix.iter().enumerate())
        .map(|(index, row)| {
            row.iter()
                .cloned()
                .chain((0..size).map(|column| unit(index, column)))
                .collect()
        })
        .collect();
    let mut previous = BigInt::one();
    for step in 0..size {
        let pivot = (step..size).find(|&row| !rows[row][step].is_zero())?;
        if pivot != step {
            // A change of sign keeps the determinant's.
            rows.swap(pivot, step);
            rows[step].iter_mut().for_each(|entry| *entry = -&*entry);
        }
        let own = rows[step].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if index == step {
                continue;
            }
            let factor = row[step].clone();
            for (entry, above) in row.iter_mut().zip(&own) {
                *entry = (&own[step] * &*entry - &factor * above) / &previous;
            }
        }
        previous.clone_from(&own[step]);
    }
    let adjugate = rows.into_iter().map(|row| row[size..].to_vec()).collect();
    Some((adjugate, previous))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn big(matrix: &[Vec<i64>]) -> Vec<Vec<BigInt>> {
        matrix
            .iter()
            .map(|row| row.iter().map(|&entry| BigInt::from(entry)).collect())
            .collect()
    }

    #[test]
    fn a_zero_pivot_is_exchanged() {
        let (adjugate, determinant) = invert(&big(&[vec![0, 2], vec![3, 4]])).expect("regular");
        assert_eq!(determinant, BigInt::from(-6));
        assert_eq!(adjugate, big(&[vec![4, -2], vec![-3, 0]]));
    }

    #[test]
    fn a_singular_matrix_is_noticed() {
        assert_eq!(invert(&big(&[vec![1, 2], vec![2, 4]])), None);
        assert_eq!(invert(&big(&[vec![0]])), None);
    }

    proptest! {
        #[test]
        fn adjugate_times_matrix_is_the_determinant(
            entries in proptest::collection::vec(-3i64..=3, 16),
        ) {
            let matrix = big(&entries.chunks(4).map(<[i64]>::to_vec).collect::<Vec<_>>());
            if let Some((adjugate, determinant)) = invert(&matrix) {
                prop_assert!(!determinant.is_zero());
                for (index, row) in adjugate.iter().enumerate() {
                    for column in 0..4 {
                        let entry: BigInt = row.iter().zip(&matrix).map(|(a, other)| a * &other[column]).sum();
                        let want = if index == column { determinant.clone() } else { BigInt::zero() };
                        prop_assert_eq!(entry, want);
                    }
                }
            }
        }
    }
}
