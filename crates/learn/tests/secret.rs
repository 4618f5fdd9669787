//! Networks whose weights an owner brings, against the same ones with public weights and in IEEE doubles, and what is refused.

use veil_learn::network::{
    Block, Bounds, Layer, Network, NetworkParts, Readout, Secret, Step, Weights,
};
use veil_learn::{Column, FitError};
use veil_numeric::Range;

use crate::fits::{Draws, column};
use crate::networks::{PLACES, all, parts, reference, window};

/// The same layers with weights rounded to so many places, halves away from zero.
fn rounded(of: &NetworkParts, places: u32) -> NetworkParts {
    let power = 10_i64.pow(of.places - places);
    let one = |w: &mut i64| {
        let up = w.abs() % power * 2 >= power;
        *w = w.signum() * (w.abs() / power + i64::from(up));
    };
    let mut of = of.clone();
    of.places = places;
    for layer in &mut of.layers {
        if let Layer::Dense { weights, bias } | Layer::Convolution { weights, bias, .. } = layer {
            weights.iter_mut().flatten().chain(bias).for_each(one);
        }
    }
    of
}

/// What is public of a network whose weights are secret, and its weights in their order.
fn split(of: &NetworkParts) -> (NetworkParts, Vec<i128>) {
    let mut of = of.clone();
    let mut numbers = Vec::new();
    for layer in &mut of.layers {
        let (weights, bias, window) = match layer {
            Layer::Dense { weights, bias } => (weights, bias, None),
            Layer::Convolution {
                weights,
                bias,
                window,
            } => (weights, bias, Some(*window)),
            _ => continue,
        };
        for term in 0..weights[0].len() {
            numbers.extend(weights.iter().map(|of| i128::from(of[term])));
        }
        numbers.extend(bias.iter().map(|bias| i128::from(*bias)));
        let most = |of: &mut dyn Iterator<Item = &i64>| of.map(|w| w.abs()).max().unwrap();
        let bounds = Bounds {
            weight: most(&mut weights.iter().flatten()).max(1),
            bias: most(&mut bias.iter()),
        };
        *layer = Layer::Secret(Secret {
            outputs: bias.len() as u32,
            window,
            bounds,
        });
    }
    (of, numbers)
}

fn columns(of: &NetworkParts) -> Vec<Column> {
    let column = |k| column(-100, 255, if k % 3 == 0 { 2 } else { 0 });
    (0..of.features.len()).map(column).collect()
}

fn rows(columns: &[Column], seed: u64) -> Vec<Vec<i128>> {
    let mut draws = Draws(seed);
    let mut row = |at| {
        let cells = columns.iter().map(|of| match at {
            0 => of.range.min(),
            1 => of.range.max(),
            _ => draws.within(of.range.min(), of.range.max()),
        });
        cells.collect()
    };
    (0..100).map(&mut row).collect()
}

/// The same layers with all weights at the ends of their bounds, of either sign in the first layer and positive in others: bounds say of ranges what the weights say.
fn extreme(of: &NetworkParts) -> NetworkParts {
    let mut of = of.clone();
    for (at, layer) in of.layers.iter_mut().enumerate() {
        if let Layer::Dense { weights, bias } | Layer::Convolution { weights, bias, .. } = layer {
            let all = || weights.iter().flatten().chain(&*bias);
            let most = all().map(|w| w.abs()).max().unwrap();
            let end = |w: &mut i64| *w = if at == 0 && *w < 0 { -most } else { most };
            weights.iter_mut().flatten().for_each(end);
            bias.fill(most);
        }
    }
    of
}

/// Where sums have the same binary places, so have weights, and each number is the same to the last bit.
#[test]
fn secret_weights_give_what_public_ones_give() {
    let drawn = all().into_iter();
    let both = drawn.flat_map(|of| [(extreme(&of), false), (of, true)]);
    let (mut same, mut all_same) = (0, 0);
    for (public, drawn) in both {
        let (shape, numbers) = split(&public);
        let columns = vec![column(-255, 255, 1); public.features.len()];
        for places in [0, 2] {
            let of = |parts: &NetworkParts| {
                let network = Network::new(parts.clone()).unwrap();
                network.inference(&columns, places).unwrap()
            };
            let (public, secret) = (of(&public), of(&shape));
            assert_eq!(public.products(), secret.products());
            let known = secret.with_weights(&numbers).unwrap();
            let weights = |of: &Step| match of {
                Step::Product(product) => Some(product.weights.clone()),
                Step::Settle(_) => None,
            };
            let steps = || public.steps().iter().zip(known.steps());
            let units_agree = steps().all(|(a, b)| weights(a) == weights(b));
            if !units_agree || numbers.is_empty() {
                continue;
            }
            for row in rows(&columns, 9) {
                assert_eq!(public.apply(&row).unwrap(), known.apply(&row).unwrap());
            }
            same += 1;
            all_same += usize::from(!drawn);
        }
    }
    assert!(same > all_same && all_same >= 8, "{same} {all_same}");
}

/// The bound has what an owner loses by rounding weights to places.
#[test]
fn numbers_are_as_near_to_weights_before_they_were_rounded_as_is_said() {
    for (at, exact) in all().into_iter().enumerate() {
        let columns = columns(&exact);
        for kept in [1, 3, 6] {
            let (shape, numbers) = split(&rounded(&exact, kept));
            let network = Network::new(shape).unwrap();
            let of = network.inference(&columns, 2).unwrap();
            let known = of.with_weights(&numbers).unwrap();
            let bound = of.error() as f64 / 1e5 + 1e-9;
            for row in rows(&columns, 50 + at as u64) {
                let real = row.iter().zip(&columns);
                let real: Vec<f64> = real
                    .map(|(x, of)| *x as f64 / 10_f64.powi(of.places as i32))
                    .collect();
                let (found, wanted) = (known.apply(&row).unwrap(), reference(&exact, &real));
                for ((found, wanted), range) in found.iter().zip(&wanted).zip(of.outputs()) {
                    assert!(range.contains(*found));
                    let off = (*found as f64 / 100.0 - wanted).abs();
                    assert!(off <= bound, "network {at}, {kept}: {off} > {bound}");
                }
            }
        }
    }
}

/// Weights of fewer places are further away.
#[test]
fn the_bound_grows_with_what_is_rounded() {
    let exact = all().swap_remove(0);
    let columns = columns(&exact);
    let error = |kept| {
        let (shape, _) = split(&rounded(&exact, kept));
        let of = Network::new(shape).unwrap();
        of.inference(&columns, 2).unwrap().error()
    };
    // Two features within 255: half of 10^-1 each, in thousandths of 10^-2.
    assert!(error(1) > 2 * 255 * 5000, "{}", error(1));
    let all = [1, 3, 6].map(error);
    assert!(all[0] > 50 * all[1] && all[1] > 5 * all[2], "{all:?}");
}

#[test]
fn the_blocks_of_a_column_are_those_of_layers() {
    let exact = all().swap_remove(6);
    let (shape, numbers) = split(&exact);
    let network = Network::new(shape).unwrap();
    let of = |block: &Block| (block.layer, block.bias, block.first, block.count);
    let found: Vec<_> = network.secret().iter().map(of).collect();
    let wanted = [
        (0, false, 0, 54),
        (0, true, 54, 3),
        (3, false, 57, 72),
        (3, true, 129, 4),
    ];
    assert_eq!(found, wanted);
    assert_eq!(numbers.len(), 133);
    assert_eq!(network.weights(), Network::new(exact).unwrap().weights());
}

fn dense(outputs: u32, weight: i64, bias: i64) -> Layer {
    Layer::Secret(Secret {
        outputs,
        window: None,
        bounds: Bounds { weight, bias },
    })
}

#[test]
fn weights_are_as_many_as_there_are_and_within_their_bounds() {
    let parts = parts([2, 1, 1], vec![dense(1, 5, 7), dense(1, 1, 0)], 1);
    let of = Network::new(parts).unwrap();
    let of = of.inference(&[column(0, 9, 0); 2], 0).unwrap();
    let refused = |numbers: &[i128]| of.with_weights(numbers).unwrap_err().to_string();
    let many = "a network of 5 secret weights and biases takes as many numbers, and not";
    assert_eq!(refused(&[1, 2, 3, 1]), format!("{many} 4"));
    assert_eq!(refused(&[0; 6]), format!("{many} 6"));
    assert_eq!(
        of.apply(&[1, 1]).unwrap_err().to_string(),
        format!("{many} 0")
    );
    assert_eq!(
        refused(&[0, -6, 0, 0, 0]),
        "number 2 of the weights is a weight of layer 0, and beyond its bound"
    );
    assert_eq!(
        refused(&[5, -5, 8, 0, 0]),
        "number 3 of the weights is a bias of layer 0, and beyond its bound"
    );
    assert_eq!(
        refused(&[0, 0, 0, 0, 1]),
        "number 5 of the weights is a bias of layer 1, and beyond its bound"
    );
    assert!(of.with_weights(&[5, -5, -7, 1, 0]).is_ok());
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    let of = |layer: Layer| {
        Network::new(parts([1, 3, 3], vec![layer], 1))
            .unwrap_err()
            .to_string()
    };
    let bounds = "layer 0: the bound of weights is above 0 and that of biases not below, and both have at most 61 bits in units of the network's places";
    for (weight, bias) in [
        (0, 1),
        (-1, 0),
        (1, -1),
        (1 << 61, 0),
        (1, i64::MAX),
        (i64::MIN, 0),
    ] {
        assert_eq!(of(dense(1, weight, bias)), bounds);
    }
    let outputs = "layer 0: an output adds up at most 4095 cells, and there are one output at least and at most 4096";
    assert_eq!(of(dense(0, 1, 1)), outputs);
    assert_eq!(of(dense(4097, 1, 1)), outputs);
    let windows = |size, padding| {
        Layer::Secret(Secret {
            outputs: 1,
            window: Some(window(size, 1, padding)),
            bounds: Bounds { weight: 1, bias: 1 },
        })
    };
    assert!(of(windows(4, 0)).starts_with("layer 0: a window has rows"));
    assert!(of(windows(u32::MAX, 0)).starts_with("layer 0: a window has rows"));
    // 2^20 weights, those of all layers together.
    let many: Vec<Layer> = (0..2).map(|_| dense(1024, 1, 1)).collect();
    let mut of_many = parts([1024, 1, 1], many, 1);
    of_many.readout = Readout::Values((0..1024).map(|k| format!("y{k}")).collect());
    assert!(Network::new(of_many).is_err());
}

/// What does not fit 62 bits is refused, with the layer, the bits and what helps.
#[test]
fn bounds_that_need_more_bits_than_there_are_are_refused() {
    let wide = |bound: i64, layers: usize| {
        let layers = (0..layers).map(|_| dense(1, bound, 0)).collect();
        let of = Network::new(parts([1, 1, 1], layers, 1)).unwrap();
        of.inference(&[column(0, 1 << 20, 0)], 0)
    };
    assert_eq!(PLACES, 6);
    // 2^20 · 1000 · 1000 is below 2^40; each layer more takes ten bits.
    assert!(wide(1_000_000_000, 2).is_ok());
    let refused = wide(1_000_000_000, 5).unwrap_err();
    let FitError::WideLayer {
        layer,
        bits,
        most: 62,
    } = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(
        refused.to_string(),
        format!(
            "layer {layer} of a network with secret weights may need {bits} bits where there are 62: declare smaller bounds of weights, narrower ranges of features, or fewer places"
        )
    );
    assert!(bits > 62 && layer > 1, "{layer} {bits}");
}

/// The integers of a number are those nearest to the quotient, also at both ends of a range.
#[test]
fn integers_of_weights_are_the_nearest() {
    let (shape, _) = split(&all().swap_remove(1));
    let of = Network::new(shape).unwrap();
    let of = of.inference(&[column(-100, 255, 0); 3], 2).unwrap();
    for step in of.steps() {
        let Step::Product(product) = step else {
            continue;
        };
        let Weights::Secret { weights, biases } = &product.weights else {
            panic!("its weights are secret")
        };
        for scaled in [weights, biases] {
            let most = i128::from(scaled.block.most);
            let range = scaled.range();
            assert_eq!(
                range,
                Range::new(scaled.clear(-most), scaled.clear(most)).unwrap()
            );
            for value in [-most, -1, 0, 1, most / 3, most] {
                let exact = value * i128::from(scaled.factor);
                let off = (exact - (scaled.clear(value) << scaled.by)).abs();
                assert!(2 * off <= 1 << scaled.by);
            }
        }
    }
}
