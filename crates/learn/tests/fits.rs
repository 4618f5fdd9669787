//! Models against the same computed in IEEE doubles, and rows that break what is not proved.

use proptest::prelude::*;
use veil_learn::{Column, Family, FitError, Fitted, Regression, Spec};
use veil_numeric::Range;

pub(crate) fn column(min: i128, max: i128, places: u32) -> Column {
    let range = Range::new(min, max).unwrap();
    Column { range, places }
}

/// Solves a symmetric system, and gives the diagonal of the inverse.
fn solved(mut a: Vec<Vec<f64>>, b: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = b.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
        row.push(b[i]);
    }
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs()))
            .unwrap();
        a.swap(k, pivot);
        let row = a[k].clone();
        for (i, other) in a.iter_mut().enumerate() {
            let factor = if i == k {
                1.0 - 1.0 / row[k]
            } else {
                other[k] / row[k]
            };
            for (x, y) in other.iter_mut().zip(&row) {
                *x -= factor * y;
            }
        }
    }
    let x = a.iter().map(|row| row[2 * n]).collect();
    (x, (0..n).map(|i| a[i][n + i]).collect())
}

/// Coefficients and standard errors in doubles.
pub(crate) fn reference(spec: &Spec, rows: &[(Vec<i128>, i128)]) -> (Vec<f64>, Vec<f64>) {
    let unit = |x: i128, column: &Column| x as f64 / 10_f64.powi(column.places as i32);
    let cells = |row: &[i128]| {
        let features = row.iter().zip(&spec.features).map(|(x, c)| unit(*x, c));
        std::iter::once(1.0).chain(features).collect::<Vec<f64>>()
    };
    let n = spec.features.len() + 1;
    let ridge = spec.ridge.0 as f64 / 10_f64.powi(spec.ridge.1 as i32);
    let mut w = vec![0.0; n];
    let mut errors = vec![];
    for _ in 0..60 {
        let (mut g, mut h) = (vec![0.0; n], vec![vec![0.0; n]; n]);
        let mut squares = 0.0;
        for (row, y) in rows {
            let x = cells(row);
            let z: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
            let (mean, weight) = match spec.family {
                Family::Linear => (z, 1.0),
                Family::Logistic => {
                    let p = 1.0 / (1.0 + (-z).exp());
                    (p, p * (1.0 - p))
                }
                Family::Poisson => (z.exp(), z.exp()),
            };
            let residual = unit(*y, &spec.target) - mean;
            squares += residual * residual;
            for i in 0..n {
                g[i] += x[i] * residual;
                for j in 0..n {
                    h[i][j] += weight * x[i] * x[j];
                }
            }
        }
        for i in 1..n {
            g[i] -= ridge * w[i];
            h[i][i] += ridge;
        }
        let (step, inverse) = solved(h, &g);
        for (w, step) in w.iter_mut().zip(step) {
            *w += step;
        }
        let dispersion = match spec.family {
            Family::Linear => squares / (rows.len() as f64 - n as f64),
            _ => 1.0,
        };
        errors = inverse.iter().map(|v| (v * dispersion).sqrt()).collect();
    }
    (w, errors)
}

/// Numbers that look random, and are the same each time.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
    pub(crate) fn within(&mut self, min: i128, max: i128) -> i128 {
        min + (self.next() * (max - min + 1) as f64) as i128
    }
}

/// Age, money with cents, an indicator, a year.
pub(crate) fn features() -> Vec<Column> {
    vec![
        column(0, 120, 0),
        column(0, 10_000_000, 2),
        column(0, 1, 0),
        column(2000, 2025, 0),
    ]
}

pub(crate) fn drawn(spec: &Spec, rows: usize) -> Vec<(Vec<i128>, i128)> {
    let mut draws = Draws(7);
    let of = [-0.03, 0.000_02, 0.8, 0.04];
    (0..rows)
        .map(|_| {
            let age = (draws.next() + draws.next()) * 60.0;
            let x = vec![
                age as i128,
                ((draws.next() * draws.next()) * 8_000_000.0) as i128,
                i128::from(draws.next() < 0.3),
                draws.within(2003, 2020),
            ];
            let unit = |k: usize| x[k] as f64 / 10_f64.powi(spec.features[k].places as i32);
            let z = -80.2 + (0..4).map(|k| of[k] * unit(k)).sum::<f64>();
            let y = match spec.family {
                Family::Linear => ((z * 100.0 + 60.0 + 80.0 * draws.next()) as i128)
                    .clamp(spec.target.range.min(), spec.target.range.max()),
                Family::Logistic => i128::from(draws.next() < 1.0 / (1.0 + (-z).exp())),
                Family::Poisson => {
                    let (mut k, mut p) = (0, draws.next());
                    while p > (-z.exp()).exp() && k < 40 {
                        p *= draws.next();
                        k += 1;
                    }
                    k
                }
            };
            (x, y)
        })
        .collect()
}

pub(crate) fn spec(family: Family, rows: u32) -> Spec {
    Spec {
        family,
        features: features(),
        target: match family {
            Family::Linear => column(-1000, 1000, 2),
            Family::Logistic => column(0, 1, 0),
            Family::Poisson => column(0, 40, 0),
        },
        rows,
        ridge: (0, 0),
        iterations: if family == Family::Linear { 4 } else { 10 },
        places: 9,
    }
}

/// Every coefficient is within so much of its standard error of what doubles have, and standard errors by such a part.
fn near(spec: &Spec, rows: &[(Vec<i128>, i128)], (of_error, part): (f64, f64)) {
    let fitted = Regression::new(spec.clone()).unwrap().fit(rows).unwrap();
    let (w, errors) = reference(spec, rows);
    let unit = 10_f64.powi(spec.places as i32);
    for (at, Fitted { coefficient, error }) in fitted.iter().enumerate() {
        let (found, wanted) = (*coefficient as f64 / unit, w[at]);
        println!("{:?} {at}: {found} {wanted} ± {}", spec.family, errors[at]);
        let slack = of_error * errors[at] + 2.0 / unit;
        assert!(
            (found - wanted).abs() < slack,
            "{:?} term {at}: {found}, and {wanted}",
            spec.family
        );
        if let Some(error) = error {
            let found = *error as f64 / unit;
            println!("   {found}");
            assert!(
                (found / errors[at] - 1.0).abs() < part + 2.0 / unit / errors[at],
                "error of {at}: {found}, and {}",
                errors[at]
            );
        }
    }
}

#[test]
fn models_are_those_of_doubles() {
    for family in Family::ALL {
        let spec = spec(family, 4_000);
        let rows = drawn(&spec, 3_700);
        near(&spec, &rows, (0.001, 0.001));
    }
}

#[test]
fn large_counts_have_models() {
    for most in [1, 3, 100, 255, 1_000, 4_095] {
        let spec = Spec {
            target: column(0, most, 0),
            ..spec(Family::Poisson, 4_000)
        };
        let rows: Vec<_> = drawn(&spec, 4_000)
            .into_iter()
            .map(|(x, y)| (x, y.min(most)))
            .collect();
        near(&spec, &rows, (0.01, 0.01));
    }
}

#[test]
fn penalised_models_are_those_of_doubles() {
    for family in Family::ALL {
        let spec = Spec {
            ridge: (25, 1),
            ..spec(family, 2_000)
        };
        let rows = drawn(&spec, 2_000);
        near(&spec, &rows, (0.002, 0.0));
    }
}

#[test]
fn many_rows_take_fewer_places() {
    let of = |rows| {
        Regression::new(spec(Family::Logistic, rows))
            .unwrap()
            .design()
            .places()
    };
    assert_eq!([of(1_000), of(100_000), of(1 << 24)], [16, 13, 9]);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let good = spec(Family::Logistic, 100);
    let refused = |change: &dyn Fn(&mut Spec)| {
        let mut spec = good.clone();
        change(&mut spec);
        Regression::new(spec).unwrap_err()
    };
    assert_eq!(
        refused(&|s| s.features.clear()),
        FitError::Features { found: 0 }
    );
    assert_eq!(
        refused(&|s| s.features = vec![column(0, 1, 0); 64]),
        FitError::Features { found: 64 }
    );
    assert_eq!(refused(&|s| s.iterations = 0), FitError::Iterations(0));
    assert_eq!(refused(&|s| s.iterations = 65), FitError::Iterations(65));
    assert_eq!(refused(&|s| s.places = 19), FitError::Places(19));
    assert_eq!(
        refused(&|s| s.target = column(0, 2, 0)).to_string(),
        "the target of a logistic regression is a condition, or 0 and 1"
    );
    assert_eq!(
        refused(&|s| (s.family, s.target) = (Family::Poisson, column(-1, 5, 0))).to_string(),
        "the target of a poisson regression is a whole number from 0 to 4095"
    );
    assert_eq!(
        refused(&|s| s.features[2] = column(-(1 << 121), 0, 0)),
        FitError::Wide(2)
    );
    assert!(matches!(
        refused(&|s| s.ridge = (u64::MAX, 0)),
        FitError::TooWide { .. }
    ));
}

/// Rows that a number separates, columns that are equal, columns of one value, no rows.
#[test]
fn rows_that_have_no_model_have_a_result() {
    for family in Family::ALL {
        for ridge in [(0, 0), (1, 3)] {
            let spec = Spec {
                features: vec![column(0, 1000, 1), column(0, 1000, 1), column(-5, 5, 0)],
                ridge,
                ..spec(family, 300)
            };
            let of = Regression::new(spec.clone()).unwrap();
            let most = spec.target.range.max();
            let rows = |y: &dyn Fn(i128) -> i128| {
                let row = |x: i128| (vec![x, x, 5], y(x));
                (0..300).map(|x| row(x * 3)).collect::<Vec<_>>()
            };
            let same = of.fit(&rows(&|x| if x > 400 { most } else { 0 })).unwrap();
            println!("{family:?} {same:?}");
            for y in [most, spec.target.range.min()] {
                of.fit(&rows(&|_| y)).unwrap();
            }
            assert!(
                of.fit(&[])
                    .unwrap()
                    .iter()
                    .all(|of| of.coefficient.abs() <= 1000 << 40)
            );
            of.fit(&rows(&|x| x)[..1]).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    /// No integer leaves the range that was derived for it: arithmetic in the clear looks at each.
    #[test]
    fn no_rows_break_a_range(
        family in prop::sample::select(Family::ALL.to_vec()),
        ranges in prop::collection::vec((-100_000_i128..100_000, prop_oneof![0_i128..4, 0_i128..1 << 24], 0_u32..3), 1..12),
        kinds in prop::collection::vec(0_u8..5, 40),
        copied: bool,
        seed: u64,
        ridge in prop::sample::select(vec![(0, 0), (1, 0), (5, 4)]),
        count in 0_usize..40,
    ) {
        let features: Vec<Column> = ranges.iter().map(|(min, width, places)| column(*min, min + width, *places)).collect();
        let spec = Spec { features: features.clone(), ridge, rows: 40, iterations: 3, places: 3, ..spec(family, 40) };
        let Ok(of) = Regression::new(spec.clone()) else { return Ok(()) };
        let mut draws = Draws(seed);
        let mut rows = Vec::new();
        for kind in &kinds[..count] {
            let mut of = |column: &Column| {
                let (min, max) = (column.range.min(), column.range.max());
                match kind {
                    0 => min,
                    1 => max,
                    2 => min + (max - min) / 2,
                    3 => (min + 1).min(max),
                    _ => draws.within(min, max),
                }
            };
            let mut x: Vec<i128> = features.iter().map(&mut of).collect();
            // Columns that depend on each other.
            if copied {
                for at in 1..x.len() {
                    let range = features[at].range;
                    x[at] = (x[at - 1] / 2 + 7).clamp(range.min(), range.max());
                }
            }
            rows.push((x, of(&spec.target)));
        }
        let fitted = of.fit(&rows).unwrap();
        for (fitted, (coefficient, error)) in fitted.iter().zip(of.outputs()) {
            prop_assert!(coefficient.contains(fitted.coefficient));
            prop_assert_eq!(fitted.error.is_some(), error.is_some());
            if let (Some(found), Some(range)) = (fitted.error, error) {
                prop_assert!(range.contains(found) && found >= 0);
            }
        }
    }
}
