//! Principal components against those of doubles.

use proptest::prelude::*;
use veil_learn::{ComponentSpec, Components, FitError};

use crate::fits::{Draws, column};

fn spec() -> ComponentSpec {
    ComponentSpec {
        features: vec![
            column(0, 120, 0),
            column(-50_000, 50_000, 2),
            column(0, 1, 0),
            column(0, 255, 1),
        ],
        components: 4,
        rows: 500,
        iterations: 10,
        places: 6,
    }
}

fn drawn(rows: usize) -> Vec<Vec<i128>> {
    let mut draws = Draws(5);
    (0..rows)
        .map(|_| {
            let (a, b) = (draws.next() + draws.next(), draws.next());
            let around = |x: f64, by: f64, of: f64| x + by * (of - 0.5);
            let c = draws.next();
            vec![
                (around(a * 50.0, 20.0, c) as i128).clamp(0, 120),
                (around(a * 30_000.0 - 30_000.0, 30_000.0, b)) as i128,
                i128::from(b + draws.next() < 0.8),
                (around(120.0 - 60.0 * a + 60.0 * b, 40.0, draws.next()) as i128).clamp(0, 255),
            ]
        })
        .collect()
}

/// Shares and vectors of the correlations by Jacobi's rotations.
fn reference(rows: &[Vec<i128>]) -> Vec<(f64, Vec<f64>)> {
    let (n, d) = (rows.len() as f64, rows[0].len());
    let mean: Vec<f64> = (0..d)
        .map(|j| rows.iter().map(|row| row[j] as f64).sum::<f64>() / n)
        .collect();
    let covariance = |i: usize, j: usize| {
        let products = rows
            .iter()
            .map(|row| (row[i] as f64 - mean[i]) * (row[j] as f64 - mean[j]));
        products.sum::<f64>() / n
    };
    let deviation: Vec<f64> = (0..d).map(|j| covariance(j, j).sqrt()).collect();
    let mut a: Vec<Vec<f64>> = (0..d)
        .map(|i| {
            (0..d)
                .map(|j| covariance(i, j) / deviation[i] / deviation[j])
                .collect()
        })
        .collect();
    let mut v: Vec<Vec<f64>> = (0..d)
        .map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..50 {
        for p in 0..d {
            for q in p + 1..d {
                if a[p][q].abs() < 1e-14 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let (c, s) = (
                    (t * t + 1.0).sqrt().recip(),
                    t * (t * t + 1.0).sqrt().recip(),
                );
                for row in a.iter_mut().chain(&mut v) {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (of_p, of_q) = (a[p].clone(), a[q].clone());
                for k in 0..d {
                    a[p][k] = c * of_p[k] - s * of_q[k];
                    a[q][k] = s * of_p[k] + c * of_q[k];
                }
            }
        }
    }
    let mut all: Vec<(f64, Vec<f64>)> = (0..d)
        .map(|k| {
            let vector: Vec<f64> = v.iter().map(|row| row[k]).collect();
            let weighed: f64 = vector
                .iter()
                .enumerate()
                .map(|(i, x)| (i + 1) as f64 * x)
                .sum();
            (
                a[k][k] / d as f64,
                vector.iter().map(|x| x * weighed.signum()).collect(),
            )
        })
        .collect();
    all.sort_by(|x, y| y.0.total_cmp(&x.0));
    all
}

#[test]
fn components_are_those_of_doubles() {
    let rows = drawn(480);
    let found = Components::new(spec()).unwrap().fit(&rows).unwrap();
    for (found, (share, loadings)) in found.iter().zip(reference(&rows)) {
        println!("{found:?} {share} {loadings:?}");
        assert!((found.share as f64 / 1e6 - share).abs() < 2e-6);
        for (x, wanted) in found.loadings.iter().zip(loadings) {
            assert!((*x as f64 / 1e6 - wanted).abs() < 1e-5, "{x} {wanted}");
        }
    }
}

#[test]
fn what_has_no_components_is_refused() {
    let refused = |change: &dyn Fn(&mut ComponentSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Components::new(spec).unwrap_err()
    };
    assert_eq!(
        refused(&|s| s.features.clear()),
        FitError::Features { found: 0 }
    );
    assert_eq!(
        refused(&|s| s.iterations = 0),
        FitError::Squarings { found: 0 }
    );
    assert_eq!(
        refused(&|s| s.iterations = 17),
        FitError::Squarings { found: 17 }
    );
    assert_eq!(refused(&|s| s.places = 10), FitError::Loadings(10));
    let components = FitError::Components {
        found: 5,
        features: 4,
    };
    assert_eq!(refused(&|s| s.components = 5), components);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Columns of one value, columns that are equal, no rows: each integer stays in its range.
    #[test]
    fn no_rows_break_a_range(
        kinds in prop::collection::vec((0_u8..6, any::<u64>()), 0..60),
        width in 1_usize..12,
        copied: bool,
        components in 1_u32..12,
        iterations in 1_u32..16,
    ) {
        let features = vec![column(-100, 155, 0); width];
        let spec = ComponentSpec { features, components: components.min(width as u32), iterations, rows: 60, places: 6 };
        let of = Components::new(spec).unwrap();
        let rows: Vec<Vec<i128>> = kinds.iter().map(|(kind, seed)| {
            let mut draws = Draws(*seed);
            let first = draws.within(-100, 155);
            (0..width).map(|at| match kind {
                0 => -100,
                1 => 155,
                2 => if at % 2 == 0 { -100 } else { 155 },
                _ if copied => first,
                3 => if at == 0 { first } else { 28 },
                _ => draws.within(-100, 155),
            }).collect()
        }).collect();
        let found = of.fit(&rows).unwrap();
        let (share, loading) = of.outputs();
        for component in found {
            prop_assert!(share.contains(component.share));
            prop_assert!(component.loadings.iter().all(|x| loading.contains(*x)));
        }
    }
}
