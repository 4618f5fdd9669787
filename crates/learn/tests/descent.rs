//! Gradient descent against the same steps in IEEE doubles, against the models that it is to end at, and rows that break what is not proved.

use proptest::prelude::*;
use veil_learn::{Column, Descent, DescentSpec, Family, FitError, MOST_DESCENTS, Spec, Stepping};

use crate::fits::{Draws, column, drawn, features, reference, spec as newton};

fn spec(family: Family, rows: u32) -> DescentSpec {
    let Spec {
        features,
        target,
        rows,
        ridge,
        ..
    } = newton(family, rows);
    DescentSpec {
        family,
        features,
        target,
        rows,
        ridge,
        epochs: 3,
        stepping: Stepping {
            batch: None,
            rate: (5, 1),
            momentum: (0, 0),
            limit: 32,
        },
        places: 9,
    }
}

fn decimal((units, places): (u64, u32)) -> f64 {
    units as f64 / 10_f64.powi(places as i32)
}

/// Half of a column's range, rounded up to a power of two of its units, and its centre.
fn halved(of: &Column) -> (f64, f64) {
    let (min, max) = (of.range.min(), of.range.max());
    let centre = min + (max - min) / 2;
    let half = (max - centre).max(centre - min).max(1) as f64;
    let unit = 10_f64.powi(of.places as i32);
    (half.log2().ceil().exp2() / unit, centre as f64 / unit)
}

/// The same steps in doubles, as the page of fitted models has them.
fn in_doubles(of: &Descent, rows: &[Option<(Vec<i128>, i128)>]) -> Vec<f64> {
    let spec = of.spec();
    let n = spec.features.len() + 1;
    let Stepping {
        rate,
        momentum,
        limit,
        batch,
    } = &spec.stepping;
    let (rate, momentum) = (decimal(*rate), decimal(*momentum));
    let places = f64::from(spec.rows);
    let batch = batch.unwrap_or(spec.rows);
    let count = spec.rows.div_ceil(batch);
    let scales: Vec<(f64, f64)> = spec.features.iter().map(halved).collect();
    let of_target = match spec.family {
        Family::Linear => halved(&spec.target),
        _ => (1.0, 0.0),
    };
    let value = |x: i128, column: &Column, (half, centre): (f64, f64)| {
        (x as f64 / 10_f64.powi(column.places as i32) - centre) / half
    };
    let (mut w, mut v) = (vec![0.0_f64; n], vec![0.0_f64; n]);
    for _ in 0..spec.epochs {
        let mut first = 0;
        for k in 1..=u64::from(count) {
            let end = (k * u64::from(spec.rows) / u64::from(count)) as usize;
            let mut g = vec![0.0; n];
            for (x, y) in rows[first..end].iter().flatten() {
                let cells = x.iter().zip(&spec.features).zip(&scales);
                let cells = cells.map(|((x, column), scale)| value(*x, column, *scale));
                let cells: Vec<f64> = std::iter::once(1.0).chain(cells).collect();
                let z: f64 = cells.iter().zip(&w).map(|(x, w)| x * w).sum();
                let most = 4.0 * spec.target.range.max() as f64 + 16.0;
                let mean = match spec.family {
                    Family::Linear => z,
                    Family::Logistic => 1.0 / (1.0 + (-z).exp()),
                    Family::Poisson => z.clamp(-11.0, most.ln()).exp(),
                };
                let y = value(*y, &spec.target, of_target);
                for (g, x) in g.iter_mut().zip(&cells) {
                    *g += x * (y - mean);
                }
            }
            for at in 0..n {
                let ridge = match at {
                    0 => 0.0,
                    at => decimal(spec.ridge) / scales[at - 1].0.powi(2),
                };
                let step = f64::from(count) / places * g[at] - ridge / places * w[at];
                v[at] = momentum * v[at] + rate * step;
                w[at] = (w[at] + v[at]).clamp(-f64::from(*limit), f64::from(*limit));
            }
            first = end;
        }
    }
    let mut shown: Vec<f64> = w.iter().map(|w| w * of_target.0).collect();
    shown[0] += of_target.1;
    for (at, (half, centre)) in scales.iter().enumerate() {
        shown[at + 1] /= half;
        shown[0] -= shown[at + 1] * centre;
    }
    shown
}

/// Coefficients are within this of what doubles have, over half of their columns' ranges.
fn near(of: &Descent, rows: &[Option<(Vec<i128>, i128)>], most: f64) -> f64 {
    let unit = 10_f64.powi(of.spec().places as i32);
    let found = of.fit(rows).unwrap();
    let wanted = in_doubles(of, rows);
    let of_target = match of.spec().family {
        Family::Linear => halved(&of.spec().target).0,
        _ => 1.0,
    };
    let mut all: f64 = 0.0;
    for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let half = match at {
            0 => 0.05,
            at => halved(&of.spec().features[at - 1]).0,
        };
        let far = (*found as f64 / unit - wanted).abs() * half / of_target;
        let slack = most + 2.0 * half / unit / of_target;
        assert!(
            far < slack,
            "{:?} {at}: {found} for {wanted}",
            of.spec().family
        );
        all = all.max(far);
    }
    all
}

#[test]
fn steps_are_those_of_doubles() {
    let mut farthest: f64 = 0.0;
    for family in Family::ALL {
        for (batch, momentum, ridge) in [
            (None, (0, 0), (0, 0)),
            (Some(100), (0, 0), (0, 0)),
            (Some(64), (9, 1), (0, 0)),
            (Some(128), (5, 1), (35, 1)),
            (None, (0, 0), (400, 0)),
        ] {
            let mut spec = spec(family, 1_000);
            spec.ridge = ridge;
            (spec.stepping.batch, spec.stepping.momentum) = (batch, momentum);
            // Counts up to 40 have gradients so much wider.
            spec.stepping.rate = match family {
                Family::Linear => (25, 2),
                Family::Logistic => (15, 1),
                Family::Poisson => (5, 3),
            };
            let of = Descent::new(spec.clone()).unwrap();
            let rows = drawn(&newton(family, 1_000), 900);
            farthest = farthest.max(near(&of, &of.placed(rows), 1e-4));
        }
    }
    println!("at most {farthest}");
}

/// Whole batches end at the model of Newton's method, penalised or not.
#[test]
fn descent_ends_at_the_model() {
    for (family, rate) in [
        (Family::Linear, (6, 1)),
        (Family::Logistic, (25, 1)),
        (Family::Poisson, (2, 1)),
    ] {
        for ridge in [(0, 0), (4, 0)] {
            let few = vec![column(0, 120, 0), column(0, 1, 0), column(2000, 2025, 0)];
            let newton = Spec {
                features: few.clone(),
                ridge,
                ..newton(family, 600)
            };
            let rows: Vec<_> = drawn(
                &Spec {
                    features: features(),
                    ..newton.clone()
                },
                550,
            )
            .into_iter()
            .map(|(x, y)| (vec![x[0], x[2], x[3]], y))
            .collect();
            let (wanted, errors) = reference(&newton, &rows);
            let of = Descent::new(DescentSpec {
                features: few,
                ridge,
                epochs: 500,
                stepping: Stepping {
                    rate,
                    momentum: (9, 1),
                    ..spec(family, 1).stepping
                },
                ..spec(family, 600)
            })
            .unwrap();
            let found = of.fit(&of.placed(rows)).unwrap();
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let far = (*found as f64 / 1e9 - wanted).abs() / errors[at];
                println!("{family:?} {ridge:?} {at}: {far} of an error");
                assert!(far < 0.005, "{family:?} {at}: {found} for {wanted}");
            }
        }
    }
}

/// Batches of all rows have one result whatever the order of rows is; smaller ones have not, unless rows are equal.
#[test]
fn the_order_of_rows_is_that_of_batches() {
    let mut of = spec(Family::Logistic, 60);
    let mut rows = Descent::new(of.clone())
        .unwrap()
        .placed(drawn(&newton(Family::Logistic, 60), 50));
    let mut found = vec![];
    for (batch, all) in [(None, 1), (Some(7), 2)] {
        of.stepping.batch = batch;
        let of = Descent::new(of.clone()).unwrap();
        let mut some = vec![of.fit(&rows).unwrap()];
        rows.reverse();
        some.push(of.fit(&rows).unwrap());
        some.dedup();
        assert_eq!(some.len(), all);
        found.extend(some);
        let lengths: Vec<_> = of.batches().map(|batch| batch.len()).collect();
        match batch {
            None => assert_eq!(lengths, [60]),
            Some(_) => assert_eq!(lengths, [6, 7, 7, 6, 7, 7, 6, 7, 7]),
        }
    }
    found.dedup();
    assert_eq!(found.len(), 3);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let refused = |change: &dyn Fn(&mut DescentSpec)| {
        let mut spec = spec(Family::Logistic, 100);
        change(&mut spec);
        Descent::new(spec).unwrap_err().to_string()
    };
    let of_rate =
        "the rate of gradient descent is above 0 and up to 1000, with up to 6 decimal places";
    for rate in [(0, 0), (1001, 0), (1_000_001, 3), (1, 7), (u64::MAX, 6)] {
        assert_eq!(refused(&|s| s.stepping.rate = rate), of_rate);
    }
    let of_momentum =
        "the momentum of gradient descent is from 0 to 0.99, with up to 6 decimal places";
    for momentum in [(1, 0), (991, 3), (1, 9)] {
        assert_eq!(refused(&|s| s.stepping.momentum = momentum), of_momentum);
    }
    for (batch, said) in [
        (
            0,
            "a batch has 1 to 100 rows, as many as there are places for rows, and this has 0",
        ),
        (
            101,
            "a batch has 1 to 100 rows, as many as there are places for rows, and this has 101",
        ),
    ] {
        assert_eq!(refused(&|s| s.stepping.batch = Some(batch)), said);
    }
    assert_eq!(
        refused(&|s| s.epochs = 0),
        "a model by gradient descent takes 1 to 2048 steps, and 0 epochs of 1 batches are 0: choose larger batches, or other epochs"
    );
    assert_eq!(
        refused(&|s| (s.epochs, s.stepping.batch) = (21, Some(1))),
        "a model by gradient descent takes 1 to 2048 steps, and 21 epochs of 100 batches are 2100: choose larger batches, or other epochs"
    );
    for limit in [0, 1025] {
        assert_eq!(
            refused(&|s| s.stepping.limit = limit),
            format!("the limit of coefficients is 1 to 1024, and this is {limit}")
        );
    }
    assert_eq!(
        refused(&|s| s.ridge = (u64::MAX, 0)),
        "a step of gradient descent may need 129 bits where there are 128: choose a smaller rate, momentum, penalty or limit, or declare narrower ranges"
    );
    let of_family = |family: Family, change: &dyn Fn(&mut DescentSpec)| {
        let mut spec = spec(family, 100);
        change(&mut spec);
        Descent::new(spec).unwrap_err()
    };
    assert!(matches!(
        of_family(Family::Poisson, &|s| {
            s.target = column(0, 4095, 0);
            (s.stepping.rate, s.stepping.momentum) = ((1000, 0), (99, 2));
        }),
        FitError::WideStep { .. }
    ));
    assert_eq!(
        refused(&|s| s.features.clear()),
        "a model has 1 to 63 features, and this has 0"
    );
    assert_eq!(
        refused(&|s| s.features = vec![column(0, 1, 0); 64]),
        "a model has 1 to 63 features, and this has 64"
    );
    assert_eq!(
        refused(&|s| s.target = column(0, 2, 0)),
        "the target of a logistic regression is a condition, or 0 and 1"
    );
    assert_eq!(
        refused(&|s| s.places = 19),
        "coefficients have up to 18 decimal places, and these 19"
    );
}

/// The most of everything fits.
#[test]
fn large_models_have_an_arithmetic() {
    for family in Family::ALL {
        for (rows, batch) in [(1 << 26, 1 << 17), (1 << 20, 1 << 20), (2048, 1)] {
            for limit in [1, 32, 1024] {
                let mut spec = DescentSpec {
                    features: vec![column(-1_000_000, 1_000_000, 3); 63],
                    target: match family {
                        Family::Linear => column(-(1 << 40), 1 << 40, 2),
                        Family::Logistic => column(0, 1, 0),
                        Family::Poisson => column(0, 4095, 0),
                    },
                    ..spec(family, rows)
                };
                spec.epochs = MOST_DESCENTS / rows.div_ceil(batch);
                spec.stepping = Stepping {
                    batch: Some(batch),
                    rate: (1, 3),
                    momentum: (9, 1),
                    limit,
                };
                let of = Descent::new(spec).unwrap();
                println!("{family:?} {rows} {limit}: {} places", of.design().places());
                assert!(of.design().places() >= 9);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    /// No integer leaves the range that was derived for it: arithmetic in the clear looks at each.
    #[test]
    fn no_rows_break_a_range(
        family in prop::sample::select(Family::ALL.to_vec()),
        ranges in prop::collection::vec((-100_000_i128..100_000, prop_oneof![0_i128..4, 0_i128..1 << 24], 0_u32..3), 1..8),
        kinds in prop::collection::vec(0_u8..6, 30),
        seed: u64,
        ridge in prop::sample::select(vec![(0, 0), (1, 0), (5, 4)]),
        (batch, rate, momentum, limit) in (
            1_u32..31,
            prop::sample::select(vec![(1, 6), (5, 1), (3, 0), (1000, 0)]),
            prop::sample::select(vec![(0, 0), (9, 1), (99, 2), (989_999, 6)]),
            prop::sample::select(vec![1_u32, 3, 32, 1024]),
        ),
    ) {
        let features: Vec<Column> = ranges.iter().map(|(min, width, places)| column(*min, min + width, *places)).collect();
        let spec = DescentSpec {
            features: features.clone(),
            ridge,
            stepping: Stepping { batch: Some(batch), rate, momentum, limit },
            epochs: 4,
            places: 3,
            ..spec(family, 30)
        };
        let Ok(of) = Descent::new(spec.clone()) else { return Ok(()) };
        let mut draws = Draws(seed);
        let rows: Vec<_> = kinds.iter().map(|kind| {
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
            let row: (Vec<i128>, i128) = (features.iter().map(&mut of).collect(), of(&spec.target));
            (*kind < 5).then_some(row)
        }).collect();
        let found = of.fit(&rows).unwrap();
        for (found, range) in found.iter().zip(of.outputs()) {
            prop_assert!(range.contains(*found));
        }
    }
}
