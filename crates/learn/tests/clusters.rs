//! Clusters against the same computed in IEEE doubles.

use proptest::prelude::*;
use veil_learn::{ClusterSpec, Clusters, FitError};

use crate::fits::{Draws, column};

fn spec() -> ClusterSpec {
    ClusterSpec {
        features: vec![column(0, 120, 0), column(0, 100_000, 2)],
        start: vec![vec![20, 10_000], vec![50, 50_000], vec![90, 90_000]],
        rows: 400,
        iterations: 6,
        places: 4,
    }
}

/// Centres and rows of each, in doubles: over the power of two above half of each range.
fn reference(spec: &ClusterSpec, rows: &[Vec<i128>]) -> Vec<(usize, Vec<f64>)> {
    let scale = [64.0, 65_536.0];
    let of = |row: &[i128]| {
        row.iter()
            .zip(scale)
            .map(|(x, s)| *x as f64 / s)
            .collect::<Vec<f64>>()
    };
    let mut centres: Vec<Vec<f64>> = spec.start.iter().map(|row| of(row)).collect();
    let mut counts = vec![0; centres.len()];
    for _ in 0..spec.iterations {
        let mut sums = vec![(0, vec![0.0; 2]); centres.len()];
        for row in rows {
            let x = of(row);
            let distance = |c: &[f64]| x.iter().zip(c).map(|(x, c)| (x - c) * (x - c)).sum::<f64>();
            let mut best = 0;
            for at in 1..centres.len() {
                if distance(&centres[at]) < distance(&centres[best]) {
                    best = at;
                }
            }
            sums[best].0 += 1;
            sums[best]
                .1
                .iter_mut()
                .zip(&x)
                .for_each(|(sum, x)| *sum += x);
        }
        for ((centre, (rows, sum)), count) in centres.iter_mut().zip(&sums).zip(&mut counts) {
            *count = *rows;
            if *rows > 0 {
                *centre = sum.iter().map(|sum| sum / *rows as f64).collect();
            }
        }
    }
    let units = |centre: &Vec<f64>| centre.iter().zip(scale).map(|(x, s)| x * s).collect();
    counts.into_iter().zip(centres.iter().map(units)).collect()
}

#[test]
fn clusters_are_those_of_doubles() {
    let mut draws = Draws(3);
    let spec = spec();
    let rows: Vec<Vec<i128>> = (0..400)
        .map(|at| {
            let near = [(25, 20_000), (60, 40_000), (80, 85_000)][at % 3];
            let mut around =
                |x: i128, by: f64| x + ((draws.next() + draws.next() - 1.0) * by) as i128;
            vec![
                around(near.0, 20.0),
                around(near.1, 18_000.0).clamp(0, 100_000),
            ]
        })
        .collect();
    let found = Clusters::new(spec.clone()).unwrap().fit(&rows).unwrap();
    for (found, (rows, centre)) in found.iter().zip(reference(&spec, &rows)) {
        println!("{found:?} {rows} {centre:?}");
        assert_eq!(found.rows, rows as i128);
        // A cell is rounded to 2^-17 of half a range, and so is a centre in each step.
        for ((x, wanted), (unit, slack)) in found
            .centre
            .iter()
            .zip(centre)
            .zip([(10_000.0, 0.002), (100.0, 2.0)])
        {
            assert!((*x as f64 / unit - wanted).abs() < slack, "{x} {wanted}");
        }
    }
}

#[test]
fn what_cannot_be_clustered_is_refused() {
    let refused = |change: &dyn Fn(&mut ClusterSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Clusters::new(spec).unwrap_err()
    };
    assert_eq!(
        refused(&|s| s.features.clear()),
        FitError::Features { found: 0 }
    );
    assert_eq!(refused(&|s| s.iterations = 0), FitError::Iterations(0));
    assert_eq!(refused(&|s| s.places = 19), FitError::Places(19));
    assert_eq!(
        refused(&|s| s.start.truncate(1)),
        FitError::Clusters { found: 1 }
    );
    assert_eq!(
        refused(&|s| s.start = vec![vec![1, 1]; 65]),
        FitError::Clusters { found: 65 }
    );
    assert_eq!(refused(&|s| s.start[1][0] = 121), FitError::Start { at: 1 });
    assert_eq!(
        refused(&|s| s.start[2] = vec![1]),
        FitError::Start { at: 2 }
    );
    assert_eq!(refused(&|s| s.start[0].push(1)), FitError::Start { at: 0 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Clusters without rows, rows that are equal, rows at the ends: each integer stays in its range.
    #[test]
    fn no_rows_break_a_range(
        rows in prop::collection::vec((0_i128..=120, prop_oneof![Just(0_i128), Just(100_000), 0_i128..100_000]), 0..60),
        start in prop::collection::vec((0_i128..=120, 0_i128..=100_000), 2..9),
        iterations in 1_u32..4,
    ) {
        let pairs = |all: &[(i128, i128)]| all.iter().map(|(a, b)| vec![*a, *b]).collect::<Vec<_>>();
        let spec = ClusterSpec { start: pairs(&start), iterations, ..spec() };
        let of = Clusters::new(spec).unwrap();
        let found = of.fit(&pairs(&rows)).unwrap();
        prop_assert_eq!(found.iter().map(|of| of.rows).sum::<i128>(), rows.len() as i128);
        for cluster in found {
            for (x, range) in cluster.centre.iter().zip(of.outputs()) {
                prop_assert!(range.contains(*x));
            }
        }
    }
}
