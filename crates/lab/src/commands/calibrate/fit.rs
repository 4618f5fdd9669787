//! Least squares without negative numbers: min ‖A x - b‖ over x ≥ 0.
//!
//! The active-set algorithm of Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23 (NNLS), on a QR factorisation that is
//! made anew for every set: the matrices here have a hundred rows. Columns are scaled to length 1 first, since rates differ by nine decades.

/// A column whose part that the others do not span is shorter than this is one of them, as far as 64-bit numbers can tell.
const DEPENDENT: f64 = 1e-9;

/// The x ≥ 0 that brings Σ x_j · `columns`\[j\] nearest to `target`. Every column has as many numbers as the target.
pub(super) fn nonnegative(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    let lengths: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    let unit = |(column, length): (&Vec<f64>, &f64)| -> Vec<f64> {
        let length = if *length > 0.0 { *length } else { 1.0 };
        column.iter().map(|a| a / length).collect()
    };
    let a: Vec<Vec<f64>> = columns.iter().zip(&lengths).map(unit).collect();
    let small = DEPENDENT * dot(target, target).sqrt();
    let mut x = vec![0.0; a.len()];
    let mut positive: Vec<usize> = Vec::new();
    // Columns that would not stay, until another one has come.
    let mut barred = vec![false; a.len()];
    // Each step comes nearer, so that no set comes twice; rounding could make it one.
    for _ in 0..10 * a.len() {
        let rest = residual(&a, target, &x);
        let gain = |j: &usize| dot(&a[*j], &rest);
        let free =
            (0..a.len()).filter(|j| !barred[*j] && lengths[*j] > 0.0 && !positive.contains(j));
        let Some(best) = free.max_by(|i, j| gain(i).total_cmp(&gain(j))) else {
            break;
        };
        if gain(&best) <= small {
            break;
        }
        positive.push(best);
        let solved = least_squares(&a, &positive, target);
        let Some(mut s) = solved.filter(|s| s.last().is_some_and(|new| *new > 0.0)) else {
            positive.pop();
            barred[best] = true;
            continue;
        };
        barred.fill(false);
        while s.iter().any(|s| *s <= 0.0) {
            // As far towards s as nothing becomes negative.
            let steps = positive.iter().zip(&s).filter(|(_, s)| **s <= 0.0);
            let step = steps.map(|(j, s)| x[*j] / (x[*j] - s)).fold(1.0, f64::min);
            for (j, s) in positive.iter().zip(&s) {
                x[*j] += step * (s - x[*j]);
            }
            let least = x.iter().copied().fold(0.0, f64::max) * DEPENDENT;
            positive.retain(|j| x[*j] > least);
            for (j, x) in x.iter_mut().enumerate() {
                if !positive.contains(&j) {
                    *x = 0.0;
                }
            }
            // A part of independent columns is independent.
            s = least_squares(&a, &positive, target).unwrap_or_default();
        }
        for (j, s) in positive.iter().zip(&s) {
            x[*j] = *s;
        }
    }
    let scaled = x.iter().zip(&lengths);
    scaled
        .map(|(x, length)| if *length > 0.0 { x / length } else { 0.0 })
        .collect()
}

/// target - A x.
fn residual(a: &[Vec<f64>], target: &[f64], x: &[f64]) -> Vec<f64> {
    let mut rest = target.to_vec();
    for (column, x) in a.iter().zip(x) {
        for (rest, a) in rest.iter_mut().zip(column) {
            *rest -= a * x;
        }
    }
    rest
}

/// The least squares of some columns, in their order; nothing if they depend on each other.
fn least_squares(a: &[Vec<f64>], of: &[usize], target: &[f64]) -> Option<Vec<f64>> {
    // Gram and Schmidt, each column twice: as good as reflections for columns that are not nearly dependent, which are refused.
    let mut q: Vec<Vec<f64>> = Vec::new();
    let mut r: Vec<Vec<f64>> = Vec::new();
    for j in of {
        let mut column = a[*j].clone();
        let mut along = vec![0.0; q.len()];
        for _ in 0..2 {
            for (q, along) in q.iter().zip(&mut along) {
                let part = dot(q, &column);
                *along += part;
                for (c, q) in column.iter_mut().zip(q) {
                    *c -= part * q;
                }
            }
        }
        let length = dot(&column, &column).sqrt();
        if length < DEPENDENT {
            return None;
        }
        for c in &mut column {
            *c /= length;
        }
        along.push(length);
        q.push(column);
        r.push(along);
    }
    let mut x: Vec<f64> = q.iter().map(|q| dot(q, target)).collect();
    for k in (0..x.len()).rev() {
        x[k] /= r[k][k];
        let solved = x[k];
        for (i, above) in r[k][..k].iter().enumerate() {
            x[i] -= above * solved;
        }
    }
    Some(x)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let size = expected.abs().max(1e-12);
            assert!(
                (found - expected).abs() < 1e-9 * size.max(1.0),
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn answers_are_the_known_ones() {
        // The examples of `scipy.optimize.nnls`.
        let a = [vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
        near(&nonnegative(&a, &[2.0, 1.0, 1.0]), &[1.5, 1.0]);
        near(&nonnegative(&a, &[-1.0, -1.0, -1.0]), &[0.0, 0.0]);
        // Unbounded, the answer would be (-1, 2), and (3, -1): then the other column alone, projected.
        near(
            &nonnegative(&[vec![1.0, 0.0], vec![0.0, 1.0]], &[-1.0, 2.0]),
            &[0.0, 2.0],
        );
        near(
            &nonnegative(&[vec![1.0, 0.0], vec![1.0, 1.0]], &[2.0, -1.0]),
            &[2.0, 0.0],
        );
        assert!(nonnegative(&[], &[1.0]).is_empty());
    }

    #[test]
    fn columns_of_any_size_may_depend_on_each_other() {
        // Nanoseconds beside seconds, a column twice, and one of zeros.
        let a = [
            vec![1e9, 2e9, 3e9, 5e9],
            vec![1e9, 2e9, 3e9, 5e9],
            vec![1.0, 0.0, 1.0, 0.0],
            vec![0.0; 4],
        ];
        let x = nonnegative(&a, &[3.0, 4.0, 7.0, 10.0]);
        near(&[(x[0] + x[1]) * 1e9, x[2], x[3]], &[2.0, 1.0, 0.0]);
    }

    /// The conditions of Kuhn and Tucker, which only the answer has: where x is positive the residual is orthogonal to the column, and
    /// elsewhere no column has a positive part of it.
    #[test]
    fn no_step_from_an_answer_comes_nearer() {
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f64 / (1u64 << 24) as f64 - 0.4
        };
        for case in 0..200 {
            let (rows, count) = (12, 1 + case % 15);
            let mut vector = || -> Vec<f64> { (0..rows).map(|_| random()).collect() };
            let a: Vec<Vec<f64>> = (0..count).map(|_| vector()).collect();
            let b = vector();
            let x = nonnegative(&a, &b);
            let rest = residual(&a, &b, &x);
            for (j, x) in x.iter().enumerate() {
                let slope = dot(&a[j], &rest);
                assert!(*x >= 0.0);
                assert!(
                    slope < 1e-7 && (*x == 0.0 || slope > -1e-7),
                    "case {case}: {x} {slope}"
                );
            }
        }
    }
}
