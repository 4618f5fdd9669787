//! Networks against the same computed in IEEE doubles, and what is refused.

use veil_learn::network::{
    Activation, Cells, Layer, Network, NetworkError, NetworkParts, Readout, Step, Window,
};
use veil_learn::{Column, FitError};
use veil_numeric::Range;

use crate::fits::{Draws, column};

pub(crate) const PLACES: u32 = 6;

pub(crate) fn window(size: u32, stride: u32, padding: u32) -> Window {
    Window {
        size: [size; 2],
        stride: [stride; 2],
        padding: [padding; 4],
    }
}

pub(crate) fn parts(cells: Cells, layers: Vec<Layer>, outputs: usize) -> NetworkParts {
    let features = cells.iter().product::<u32>();
    NetworkParts {
        name: "net".into(),
        source: "drawn".into(),
        features: (0..features).map(|k| format!("x{k}")).collect(),
        cells,
        places: PLACES,
        layers,
        readout: Readout::Values((0..outputs).map(|k| format!("y{k}")).collect()),
    }
}

/// Weights up to so many units.
fn weights(
    draws: &mut Draws,
    outputs: usize,
    terms: usize,
    most: i64,
) -> (Vec<Vec<i64>>, Vec<i64>) {
    let most = i128::from(most);
    let mut one = || draws.within(-most, most) as i64;
    let weights = (0..outputs).map(|_| (0..terms).map(|_| one()).collect());
    let weights = weights.collect();
    (weights, (0..outputs).map(|_| one()).collect())
}

fn dense(draws: &mut Draws, outputs: usize, terms: usize, most: i64) -> Layer {
    let (weights, bias) = weights(draws, outputs, terms, most);
    Layer::Dense { weights, bias }
}

fn convolution(draws: &mut Draws, outputs: usize, channels: usize, of: Window, most: i64) -> Layer {
    let terms = channels * (of.size[0] * of.size[1]) as usize;
    let (weights, bias) = weights(draws, outputs, terms, most);
    Layer::Convolution {
        weights,
        bias,
        window: of,
    }
}

/// What a network means, layer by layer in doubles.
pub(crate) fn reference(parts: &NetworkParts, features: &[f64]) -> Vec<f64> {
    let unit = 10_f64.powi(-(parts.places as i32));
    let mut maps = vec![(parts.cells, features.to_vec())];
    for layer in &parts.layers {
        let (cells, x) = maps.last().unwrap().clone();
        let [channels, rows, columns] = cells.map(|n| n as usize);
        let places = |w: &Window, length: usize, k: usize| {
            (length + (w.padding[k] + w.padding[k + 2]) as usize - w.size[k] as usize)
                / w.stride[k] as usize
                + 1
        };
        // The cells of a window, with zeros where there is padding.
        let seen = |w: &Window, channel: usize, y: usize, x_at: usize| -> Vec<f64> {
            let mut all = Vec::new();
            for dy in 0..w.size[0] as usize {
                for dx in 0..w.size[1] as usize {
                    let row = (y * w.stride[0] as usize + dy) as i64 - i64::from(w.padding[0]);
                    let column =
                        (x_at * w.stride[1] as usize + dx) as i64 - i64::from(w.padding[1]);
                    let inside =
                        (0..rows as i64).contains(&row) && (0..columns as i64).contains(&column);
                    all.push(if inside {
                        x[(channel * rows + row as usize) * columns + column as usize]
                    } else {
                        0.0
                    });
                }
            }
            all
        };
        let next = match layer {
            Layer::Dense { weights, bias } => {
                let out = weights.iter().zip(bias).map(|(of, bias)| {
                    of.iter()
                        .zip(&x)
                        .map(|(w, x)| *w as f64 * unit * x)
                        .sum::<f64>()
                        + *bias as f64 * unit
                });
                ([weights.len() as u32, 1, 1], out.collect())
            }
            Layer::Convolution {
                weights,
                bias,
                window,
            } => {
                let (down, across) = (places(window, rows, 0), places(window, columns, 1));
                let mut out = Vec::new();
                for (of, bias) in weights.iter().zip(bias) {
                    for y in 0..down {
                        for x_at in 0..across {
                            let cells = (0..channels).flat_map(|c| seen(window, c, y, x_at));
                            out.push(
                                cells
                                    .zip(of)
                                    .map(|(x, w)| x * *w as f64 * unit)
                                    .sum::<f64>()
                                    + *bias as f64 * unit,
                            );
                        }
                    }
                }
                ([weights.len() as u32, down as u32, across as u32], out)
            }
            Layer::Secret(_) => panic!("its weights are not known"),
            Layer::Pool { mean, window } => {
                let (down, across) = (places(window, rows, 0), places(window, columns, 1));
                let mut out = Vec::new();
                for channel in 0..channels {
                    for y in 0..down {
                        for x_at in 0..across {
                            let cells = seen(window, channel, y, x_at);
                            out.push(if *mean {
                                cells.iter().sum::<f64>() / cells.len() as f64
                            } else {
                                cells.into_iter().fold(f64::MIN, f64::max)
                            });
                        }
                    }
                }
                ([channels as u32, down as u32, across as u32], out)
            }
            Layer::Activation(of) => {
                let f = |x: &f64| match of {
                    Activation::Relu => x.max(0.0),
                    Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                    Activation::Tanh => x.tanh(),
                };
                (cells, x.iter().map(f).collect())
            }
            Layer::Add { layer } => {
                let other = &maps[*layer as usize + 1].1;
                (cells, x.iter().zip(other).map(|(a, b)| a + b).collect())
            }
        };
        maps.push(next);
    }
    maps.pop().unwrap().1
}

/// Networks with every kind of layer, in many orders.
pub(crate) fn all() -> Vec<NetworkParts> {
    let mut draws = Draws(7);
    let d = &mut draws;
    let (relu, tanh, sigmoid) = (
        || Layer::Activation(Activation::Relu),
        || Layer::Activation(Activation::Tanh),
        || Layer::Activation(Activation::Sigmoid),
    );
    let pool = |mean, size, stride| Layer::Pool {
        mean,
        window: window(size, stride, 0),
    };
    let one = 1_000_000;
    vec![
        parts([3, 1, 1], vec![dense(d, 2, 3, one)], 2),
        parts(
            [3, 1, 1],
            vec![dense(d, 4, 3, one), relu(), dense(d, 1, 4, one), sigmoid()],
            1,
        ),
        parts(
            [5, 1, 1],
            vec![
                dense(d, 8, 5, one),
                tanh(),
                dense(d, 8, 8, one),
                Layer::Add { layer: 1 },
                relu(),
                dense(d, 3, 8, one),
            ],
            3,
        ),
        parts([1, 1, 1], vec![relu()], 1),
        parts([2, 1, 1], vec![tanh()], 2),
        parts([1, 6, 6], vec![pool(false, 2, 2), pool(true, 3, 1)], 1),
        parts(
            [2, 7, 5],
            vec![
                convolution(d, 3, 2, window(3, 2, 1), one / 2),
                relu(),
                pool(false, 2, 1),
                dense(d, 4, 3 * 3 * 2, one / 4),
            ],
            4,
        ),
        parts(
            [1, 8, 8],
            vec![
                convolution(d, 2, 1, window(3, 1, 1), one),
                pool(false, 2, 2),
                relu(),
                convolution(d, 2, 2, window(3, 1, 1), one),
                Layer::Add { layer: 2 },
                relu(),
                pool(true, 2, 2),
                dense(d, 2, 8, one),
                tanh(),
            ],
            2,
        ),
        parts(
            [2, 4, 4],
            vec![
                convolution(d, 2, 2, window(1, 1, 0), one),
                Layer::Add { layer: 0 },
                pool(true, 4, 4),
            ],
            2,
        ),
        parts(
            [4, 1, 1],
            vec![
                dense(d, 3, 4, one),
                relu(),
                tanh(),
                sigmoid(),
                relu(),
                dense(d, 3, 3, one),
                relu(),
            ],
            3,
        ),
    ]
}

#[test]
fn scores_are_as_near_as_is_said() {
    for (at, parts) in all().into_iter().enumerate() {
        let network = Network::new(parts.clone()).unwrap();
        let columns: Vec<Column> = (0..parts.features.len())
            .map(|k| {
                // A convolution's features may have different places as well.
                let places = if k % 3 == 0 { 2 } else { 0 };
                column(-100, 255, places)
            })
            .collect();
        for places in [0, 2, 5] {
            let of = network.inference(&columns, places).unwrap();
            assert_eq!(
                of.outputs().len() as u64,
                veil_learn::network::count(*network.cells().last().unwrap())
            );
            let unit = 10_f64.powi(-(places as i32));
            // Rounding in doubles is far below a thousandth of a unit here.
            let bound = of.error() as f64 * unit / 1000.0 + 1e-9;
            assert!(
                of.error() >= 500 || at == 0 || at == 3,
                "{at}: {}",
                of.error()
            );
            let mut draws = Draws(100 + at as u64);
            let mut worst = 0_f64;
            for row in 0..200 {
                let row: Vec<i128> = columns
                    .iter()
                    .map(|column| match row {
                        0 => column.range.min(),
                        1 => column.range.max(),
                        2 => [column.range.min(), column.range.max()][draws.within(0, 1) as usize],
                        _ => draws.within(column.range.min(), column.range.max()),
                    })
                    .collect();
                let real: Vec<f64> = row
                    .iter()
                    .zip(&columns)
                    .map(|(x, column)| *x as f64 / 10_f64.powi(column.places as i32))
                    .collect();
                let (found, wanted) = (of.apply(&row).unwrap(), reference(&parts, &real));
                for ((found, wanted), range) in found.iter().zip(&wanted).zip(of.outputs()) {
                    assert!(range.contains(*found));
                    let off = (*found as f64 * unit - wanted).abs();
                    worst = worst.max(off);
                    assert!(
                        off <= bound,
                        "network {at}, {places} places: {off} > {bound}"
                    );
                }
            }
            // The bound is not so wide that it says nothing.
            assert!(
                bound <= 1e4 * (worst + unit),
                "network {at}: {bound} and {worst}"
            );
        }
    }
}

#[test]
fn steps_fuse_what_they_can() {
    let parts = all().swap_remove(7);
    let of = Network::new(parts).unwrap();
    let of = of.inference(&[column(0, 255, 0); 64], 2).unwrap();
    let steps: Vec<String> = of
        .steps()
        .iter()
        .map(|step| match step {
            Step::Product(_) => "product".into(),
            Step::Settle(of) => format!(
                "{}{}{}",
                if of.sum { "sum" } else { "settle" },
                if of.window.is_some() { " pool" } else { "" },
                if of.relu { " relu" } else { "" }
            ),
        })
        .collect();
    let wanted = [
        "product",
        "settle pool relu",
        "product",
        "settle",
        "sum relu",
        "sum pool",
        "product",
        "settle",
    ];
    assert_eq!(steps, wanted);
}

/// Weights and ranges that need more than there is.
#[test]
fn what_does_not_fit_is_refused() {
    let mut draws = Draws(3);
    let deep: Vec<Layer> = (0..8)
        .map(|_| dense(&mut draws, 4, 4, 1_000_000_000_000))
        .collect();
    let deep = Network::new(parts([4, 1, 1], deep, 4)).unwrap();
    let error = deep.inference(&[column(0, 255, 0); 4], 2).unwrap_err();
    assert!(
        matches!(error, FitError::TooWide { most: 62, .. }),
        "{error}"
    );
    let small = Network::new(parts([4, 1, 1], vec![dense(&mut draws, 1, 4, 9)], 1)).unwrap();
    assert_eq!(
        small.inference(&[column(0, 1, 0); 3], 2).unwrap_err(),
        FitError::Columns {
            found: 3,
            features: 4
        }
    );
    assert_eq!(
        small.inference(&[column(0, 1, 0); 4], 10).unwrap_err(),
        FitError::Scores(10)
    );
    let wide = Column {
        range: Range::new(0, 1 << 70).unwrap(),
        places: 0,
    };
    assert!(matches!(
        small.inference(&[wide; 4], 2),
        Err(FitError::TooWide { .. })
    ));
}

/// What is wrong with a window.
const WINDOW: &str = "a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding";

#[test]
fn layers_that_do_not_fit_are_refused() {
    let zeros = |outputs: usize, terms: usize| Layer::Dense {
        weights: vec![vec![0; terms]; outputs],
        bias: vec![0; outputs],
    };
    let of = |cells, layers, outputs| {
        Network::new(parts(cells, layers, outputs))
            .unwrap_err()
            .to_string()
    };
    let windows = |size, stride, padding, channels: usize| Layer::Convolution {
        weights: vec![vec![0; channels * (size * size) as usize]],
        bias: vec![0],
        window: window(size, stride, padding),
    };
    let pool = |size, stride, padding| Layer::Pool {
        mean: false,
        window: window(size, stride, padding),
    };
    let image = [1, 4, 4];
    for (found, wanted) in [
        (
            of([2, 1, 1], vec![], 1),
            "a network has at least one and at most 64 layers, and this has 0".to_owned(),
        ),
        (
            of([2, 1, 1], vec![zeros(1, 3)], 1),
            "layer 0: each output has a weight for each cell that it takes".into(),
        ),
        (
            of([2, 1, 1], vec![zeros(0, 2)], 1),
            "layer 0: it has a list of weights and a bias for each output, and one output at least"
                .into(),
        ),
        (
            of([2, 1, 1], vec![zeros(2, 2)], 1),
            "the last layer gives 2 cells, and the network 1 outputs".into(),
        ),
        (
            of([2, 1, 1], vec![zeros(2, 2), Layer::Add { layer: 1 }], 2),
            "layer 1: cells are added to those of an earlier layer".into(),
        ),
        (
            of(
                [2, 1, 1],
                vec![zeros(3, 2), zeros(2, 3), Layer::Add { layer: 0 }],
                2,
            ),
            "layer 2: cells are added to those of a layer that gives as many".into(),
        ),
        (
            of(image, vec![windows(5, 1, 0, 1)], 1),
            format!("layer 0: {WINDOW}"),
        ),
        (
            of(image, vec![windows(2, 0, 0, 1)], 1),
            format!("layer 0: {WINDOW}"),
        ),
        (
            of(image, vec![windows(2, 1, 2, 1)], 1),
            format!("layer 0: {WINDOW}"),
        ),
        (
            of(image, vec![pool(0, 1, 0)], 1),
            format!("layer 0: {WINDOW}"),
        ),
        (
            of(image, vec![pool(2, 2, 1)], 1),
            "layer 0: no window of a pool goes beyond the image".into(),
        ),
        (
            of(image, vec![windows(2, u32::MAX, u32::MAX, 1)], 1),
            format!("layer 0: {WINDOW}"),
        ),
    ] {
        assert_eq!(found, wanted);
    }
    let good = || parts([2, 1, 1], vec![zeros(1, 2)], 1);
    let changed = |change: &dyn Fn(&mut NetworkParts)| {
        let mut parts = good();
        change(&mut parts);
        Network::new(parts).unwrap_err()
    };
    assert_eq!(changed(&|of| of.places = 16), NetworkError::Places(16));
    assert_eq!(
        changed(&|of| of.cells = [1, 1, 1]),
        NetworkError::Features {
            cells: [1, 1, 1],
            features: 2
        }
    );
    assert_eq!(
        changed(&|of| of.cells = [u32::MAX; 3]),
        NetworkError::Features {
            cells: [u32::MAX; 3],
            features: 2
        }
    );
    assert_eq!(changed(&|of| of.source = "a\nb".into()), NetworkError::Text);
    assert_eq!(
        changed(&|of| of.features[0] = "x1".into()),
        NetworkError::Twice {
            what: "feature",
            name: "x1".into()
        }
    );
    assert_eq!(
        changed(&|of| of.features[0].clear()),
        NetworkError::Twice {
            what: "feature",
            name: String::new()
        }
    );
    let classes =
        |names: &[&str]| Readout::Classes(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(
        changed(&|of| of.readout = classes(&["a"])).to_string(),
        "a network has 2 to 256 names of its class, and this has 1"
    );
    assert_eq!(
        changed(&|of| of.readout = classes(&["a", "b", "c"])),
        NetworkError::Readout {
            cells: 1,
            outputs: 3
        }
    );
    assert!(
        Network::new({
            let mut of = good();
            of.readout = classes(&["a", "b"]);
            of
        })
        .is_ok()
    );
    let huge = || Layer::Dense {
        weights: vec![vec![i64::MIN, 0]],
        bias: vec![0],
    };
    assert_eq!(
        changed(&|of| of.layers = vec![huge()]).to_string(),
        "layer 0: a weight has at most 61 bits in units of the network's places"
    );
}

#[test]
fn the_first_highest_score_counts() {
    let mut parts = parts([3, 1, 1], vec![Layer::Activation(Activation::Relu)], 3);
    parts.readout = Readout::Classes(["a", "b", "c"].map(str::to_owned).into());
    let of = Network::new(parts)
        .unwrap()
        .inference(&[column(-5, 5, 0); 3], 0)
        .unwrap();
    for (scores, class) in [([1, 1, 1], 0), ([0, 2, 2], 1), ([0, 1, 2], 2)] {
        assert_eq!(of.class(&scores), class);
    }
}

/// The largest networks that there may be are looked at in little time and memory.
#[test]
fn large_networks_are_analysed() {
    let mut draws = Draws(11);
    // 2^20 weights of all sizes: places have to go until sums fit.
    let layers: Vec<Layer> = (0..16)
        .map(|_| dense(&mut draws, 256, 256, 3_000_000))
        .collect();
    let network = Network::new(parts([256, 1, 1], layers, 256)).unwrap();
    let wide = network.inference(&[column(-1000, 1000, 0); 256], 2);
    assert!(matches!(wide, Err(FitError::TooWide { .. })), "{wide:?}");
    let image = [1, 256, 16];
    let layers = vec![
        convolution(&mut draws, 16, 1, window(15, 1, 7), 10_000),
        Layer::Pool {
            mean: false,
            window: Window {
                size: [16, 16],
                ..window(1, 1, 0)
            },
        },
    ];
    let mut layers = layers;
    layers.push(dense(&mut draws, 1, 16 * 241, 10_000));
    let network = Network::new(parts(image, layers, 1)).unwrap();
    let of = network
        .inference(&vec![column(0, 255, 0); 4096], 2)
        .unwrap();
    assert_eq!(of.apply(&vec![0; 4096]).unwrap().len(), 1);
}
