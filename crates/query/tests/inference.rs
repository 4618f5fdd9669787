//! Networks on shares: parties open what the clear has, to the last bit.

use veil_query::{Application, Job, SortedBytes, compile};
use veil_relation::network::{Activation, Layer, NetworkParts, Readout, Window};
use veil_relation::{Kind, Network, clear};

use crate::common::{self, Random, range};
use crate::parties::{opens_what_it_means, securities};

pub(crate) fn names(of: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    of.into_iter().map(Into::into).collect()
}

pub(crate) fn window(size: u32, stride: u32, padding: u32) -> Window {
    Window {
        size: [size; 2],
        stride: [stride; 2],
        padding: [padding; 4],
    }
}

/// Draws layers.
pub(crate) struct Layers(pub(crate) Random);

impl Layers {
    fn weights(&mut self, outputs: usize, terms: usize) -> (Vec<Vec<i64>>, Vec<i64>) {
        let mut one = || self.0.below(2_000_001) as i64 - 1_000_000;
        let weights = (0..outputs).map(|_| (0..terms).map(|_| one()).collect());
        let weights = weights.collect();
        (weights, (0..outputs).map(|_| one()).collect())
    }

    pub(crate) fn dense(&mut self, outputs: usize, terms: usize) -> Layer {
        let (weights, bias) = self.weights(outputs, terms);
        Layer::Dense { weights, bias }
    }

    pub(crate) fn convolution(&mut self, outputs: usize, channels: usize, window: Window) -> Layer {
        let terms = channels * (window.size[0] * window.size[1]) as usize;
        let (weights, bias) = self.weights(outputs, terms);
        Layer::Convolution {
            weights,
            bias,
            window,
        }
    }
}

pub(crate) fn pool(mean: bool, size: u32, stride: u32) -> Layer {
    Layer::Pool {
        mean,
        window: window(size, stride, 0),
    }
}

pub(crate) fn activation(of: Activation) -> Layer {
    Layer::Activation(of)
}

/// A job that applies a network to the rows of a query.
fn applied(job: Job, parts: NetworkParts, scores: bool) -> Job {
    let mut job = job;
    job.queries[0].apply = Some(Application {
        model: parts.name.clone(),
        places: 2,
        scores,
        weights: None,
    });
    job.models = vec![Network::new(parts).unwrap().into()];
    job
}

fn opened_by_parties(job: &Job, inputs: &[clear::Input]) {
    let program = compile(job, &SortedBytes).unwrap();
    for security in securities() {
        opens_what_it_means((&program, inputs), security, &format!("{security}"));
    }
}

/// Numbers, decimals and conditions, of which some are null; classes and values, with and without their scores.
#[test]
fn parties_apply_networks_to_tables() {
    let tables = common::tables(70, 10);
    let inputs = common::rows(&tables, 21);
    let mut layers = Layers(Random(5));
    let parts = |layers: Vec<Layer>, readout| NetworkParts {
        name: "net".into(),
        source: "drawn".into(),
        features: names(["age", "income", "active"]),
        cells: [3, 1, 1],
        places: 6,
        layers,
        readout,
    };
    let relu = || activation(Activation::Relu);
    let cases = [
        (
            parts(
                vec![layers.dense(6, 3), relu(), layers.dense(3, 6)],
                Readout::Classes(names(["mild", "bad", "good"])),
            ),
            true,
            "SELECT id, age, income, active FROM people",
        ),
        (
            parts(
                vec![layers.dense(1, 3)],
                Readout::Classes(names(["yes", "no"])),
            ),
            true,
            "SELECT age, income, active, id FROM people WHERE age > 20",
        ),
        (
            parts(
                vec![
                    layers.dense(4, 3),
                    activation(Activation::Tanh),
                    layers.dense(4, 4),
                    Layer::Add { layer: 1 },
                    relu(),
                    layers.dense(2, 4),
                    activation(Activation::Sigmoid),
                ],
                Readout::Values(names(["risk", "other"])),
            ),
            false,
            "SELECT id, coalesce(age, 0) AS age, coalesce(income, 0) AS income, coalesce(active, false) AS active FROM people ORDER BY id LIMIT 30",
        ),
        // A score that is never above 0, and layers without weights.
        (
            parts(
                vec![
                    Layer::Dense {
                        weights: vec![vec![0; 3]; 2],
                        bias: vec![-1_000_000, 500_000],
                    },
                    relu(),
                ],
                Readout::Values(names(["never", "half"])),
            ),
            false,
            "SELECT id, age, income, active FROM people",
        ),
        (
            parts(vec![relu()], Readout::Classes(names(["a", "b", "c"]))),
            true,
            "SELECT id, age, income, active FROM people",
        ),
    ];
    for (parts, scores, sql) in cases {
        let job = applied(common::job(tables.clone(), sql), parts, scores);
        opened_by_parties(&job, &inputs);
    }
}

/// Images of one owner: every kind of layer, over windows with strides and padding.
#[test]
fn parties_apply_networks_to_images() {
    let mut layers = Layers(Random(9));
    let relu = || activation(Activation::Relu);
    let all = [
        (
            [1, 6, 6],
            vec![
                layers.convolution(3, 1, window(3, 1, 1)),
                relu(),
                pool(false, 2, 2),
                layers.convolution(2, 3, window(2, 1, 0)),
                pool(true, 2, 1),
                relu(),
                layers.dense(3, 2),
            ],
        ),
        (
            [2, 5, 3],
            vec![
                pool(false, 2, 1),
                layers.convolution(2, 2, window(3, 2, 1)),
                Layer::Add { layer: 1 },
                relu(),
                layers.convolution(2, 2, window(1, 1, 0)),
                Layer::Add { layer: 3 },
                pool(true, 1, 1),
                layers.dense(3, 4),
            ],
        ),
    ];
    for (cells, layers) in all {
        let pixels: u32 = cells.iter().product();
        let features = names((0..pixels).map(|k| format!("p{k}")));
        let pixel = |name: &String| (name.as_str().to_owned(), Kind::Integer(range(0, 255)));
        let columns: Vec<(String, Kind)> = features.iter().map(pixel).collect();
        let id = ("id", Kind::Integer(range(0, 100)), false);
        let columns = columns
            .iter()
            .map(|(name, kind)| (name.as_str(), kind.clone(), false));
        let table = common::table("images", 9, columns.chain([id]).collect(), &[]);
        let inputs = common::rows(std::slice::from_ref(&table), 3);
        let sql = format!("SELECT id, {} FROM images", features.join(", "));
        let parts = NetworkParts {
            name: "net".into(),
            source: "drawn".into(),
            features,
            cells,
            places: 6,
            layers,
            readout: Readout::Classes(names(["0", "1", "2"])),
        };
        let job = common::job(vec![table], &sql);
        opened_by_parties(&applied(job, parts, true), &inputs);
    }
}

/// More rows than are computed at once, of which the last are fewer.
#[test]
fn many_rows_are_computed_by_parts() {
    let mut layers = Layers(Random(1));
    let features = names((0..576).map(|k| format!("p{k}")));
    let bit = |name| (name, Kind::Integer(range(0, 1)), false);
    let columns = features.iter().map(|name| bit(name.as_str()));
    let table = common::table("images", 410, columns.collect(), &[]);
    let inputs = common::rows(std::slice::from_ref(&table), 3);
    let sql = format!("SELECT {} FROM images", features.join(", "));
    let parts = NetworkParts {
        name: "net".into(),
        source: "drawn".into(),
        features,
        cells: [1, 24, 24],
        places: 6,
        layers: vec![
            layers.convolution(1, 1, window(16, 1, 0)),
            pool(false, 9, 1),
        ],
        readout: Readout::Values(names(["most"])),
    };
    let job = common::job(vec![table], &sql);
    opened_by_parties(&applied(job, parts, false), &inputs);
}
