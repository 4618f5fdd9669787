//! `veil-lab bench infer`: a network with public weights, of the shape of LeNet-5, over secret images.

use std::sync::Arc;

use miette::{IntoDiagnostic, Result, miette};
use veil_cli::devices::Registry;
use veil_job::{ProtocolKind, Security};
use veil_program::Words;
use veil_query::{Application, Job, Query};
use veil_relation::network::{Activation, Layer, NetworkParts, Readout, Window};
use veil_relation::{Apply, Expr, Network, Type};

use super::asked::{Asked, Asking, Owned, READER, Ready};
use super::random::Random;
use super::{BenchArgs, print_json, short};

/// Rows and columns of an image.
const SIDE: u32 = 28;
/// Images, where nothing else is said.
const IMAGES: u64 = 64;
/// Decimal places of weights.
const PLACES: u32 = 9;
/// Decimal places of scores.
const SCORES: u32 = 2;

/// Weights as large as those of a network before it is trained: up to the root of six over the cells that are added up.
fn weights(random: &mut Random, outputs: usize, terms: usize) -> (Vec<Vec<i64>>, Vec<i64>) {
    let most = (6e18 / terms as f64).sqrt() as i64;
    let mut one = || random.below(2 * most as u64) as i64 - most;
    let weights = (0..outputs).map(|_| (0..terms).map(|_| one()).collect());
    (weights.collect(), vec![0; outputs])
}

fn convolution(random: &mut Random, outputs: usize, channels: usize, padding: u32) -> Layer {
    let (weights, bias) = weights(random, outputs, channels * 25);
    Layer::Convolution {
        weights,
        bias,
        window: Window {
            size: [5; 2],
            stride: [1; 2],
            padding: [padding; 4],
        },
    }
}

fn dense(random: &mut Random, outputs: usize, terms: usize) -> Layer {
    let (weights, bias) = weights(random, outputs, terms);
    Layer::Dense { weights, bias }
}

fn pixel(at: u32) -> String {
    format!("p{at}")
}

/// The layers of LeCun, Bottou, Bengio, Haffner, *Gradient-Based Learning Applied to Document Recognition*, 1998, with maxima and rectifiers.
fn network(random: &mut Random) -> Result<Network> {
    let relu = || Layer::Activation(Activation::Relu);
    let pool = || Layer::Pool {
        mean: false,
        window: Window {
            size: [2; 2],
            stride: [2; 2],
            padding: [0; 4],
        },
    };
    let layers = vec![
        of_pixels(convolution(random, 6, 1, 2)),
        relu(),
        pool(),
        convolution(random, 16, 6, 0),
        relu(),
        pool(),
        dense(random, 120, 400),
        relu(),
        dense(random, 84, 120),
        relu(),
        dense(random, 10, 84),
    ];
    Network::new(NetworkParts {
        name: "digits".into(),
        source: "made up".into(),
        features: (0..SIDE * SIDE).map(pixel).collect(),
        cells: [1, SIDE, SIDE],
        places: PLACES,
        layers,
        readout: Readout::Classes((0..10).map(|class| class.to_string()).collect()),
    })
    .into_diagnostic()
}

/// The same layer for pixels from 0 to 255 instead of 0 to 1.
fn of_pixels(mut layer: Layer) -> Layer {
    if let Layer::Convolution { weights, .. } = &mut layer {
        for weight in weights.iter_mut().flatten() {
            *weight /= 255;
        }
    }
    layer
}

/// What is measured: the class of each image, which are opened in no order.
fn job(network: &Network, owned: &Owned) -> Job {
    let names: Vec<String> = (0..SIDE * SIDE).map(pixel).collect();
    Job {
        tables: vec![owned.table.clone()],
        queries: vec![Query {
            name: "read".into(),
            sql: format!("SELECT {} FROM images", names.join(", ")),
            to: Some(READER.into()),
            keep: None,
            min_count: 0,
            fit: None,
            apply: Some(Application {
                model: network.name().into(),
                places: SCORES,
                scores: false,
                weights: None,
            }),
        }],
        bounds: vec![],
        models: vec![network.clone().into()],
        functions: vec![],
    }
}

/// A row of results: that of every benchmark, and what is of networks alone.
#[derive(serde::Serialize)]
struct Found {
    weights: usize,
    /// Products with public integers in each row.
    products: u64,
    /// Binary places of cells.
    places: u32,
    #[serde(flatten)]
    asked: Asked,
}

const HEADER: &str = "weights   products/image   places   link    cores   images   CPU-s   images per CPU-s   of bytes   MB sent   rounds   online ms";

fn print(found: &Found) {
    let row = &found.asked.row;
    println!(
        "{:>7} {:>16} {:>8}   {:<7} {:>5} {:>8} {:>7.3} {:>18} {:>9.0}% {:>9.1} {:>8} {:>11.1}",
        found.weights,
        found.products,
        found.places,
        row.link,
        row.cores,
        row.batch,
        row.cpu_s,
        short(row.rate_per_cpu_s),
        row.bytes_fraction * 100.0,
        row.bytes_sent as f64 / 1e6,
        found.asked.rounds,
        row.online_ms,
    );
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    if sharing == ProtocolKind::Yao {
        return Err(miette!("models are applied among three or four parties"));
    }
    let security: Security = args.security(sharing, Words::default())?;
    let device = args.devices(registry)?;
    let rows = args.batch.unwrap_or(IMAGES).clamp(1, 1 << 20) as u32;
    let mut random = Random(1);
    let network = network(&mut random)?;
    let names = (0..SIDE * SIDE).map(pixel);
    let owned = Owned::drawn(("images", rows), names, 256, &mut random)?;
    let job = job(&network, &owned);
    let types: Vec<Type> = owned.table.columns.iter().map(|of| of.ty.clone()).collect();
    let features = (0..SIDE * SIDE).map(Expr::column).collect();
    let apply = Apply {
        network: network.clone(),
        features,
        places: SCORES,
        scores: false,
    };
    let inference = apply.inference(&types).into_diagnostic()?;
    if !args.json {
        println!("{HEADER}");
    }
    let tables = std::slice::from_ref(&owned);
    let asking = Asking {
        args,
        device,
        security,
        name: "infer",
        ops: f64::from(rows),
        blocks: 0.0,
    };
    let ready = |how| Ready::new(&job, tables, how, true);
    asking.each(ready, |asked| {
        let found = Found {
            weights: network.weights(),
            products: inference.products(),
            places: inference.binary_places(),
            asked,
        };
        if args.json {
            return print_json(&found);
        }
        print(&found);
        Ok(())
    })
}
