//! Networks whose weights an owner brings: parties open what the clear has, and what is refused.

use std::collections::BTreeSet;

use veil_job::Security;
use veil_physical::{Opening, TablePort, plan};
use veil_protocol::Options;
use veil_query::{Application, Job, Query, SortedBytes, compile, families};
use veil_relation::network::{Activation, Bounds, Layer, NetworkParts, Readout, Secret};
use veil_relation::{
    ColumnId, Consent, Kind, Network, Operation, Origin, Program, Reveal, Table, Value, clear,
};

use crate::common::{self, Random, range};
use crate::inference::{Layers, activation, names, pool, window};
use crate::parties::{
    Stores, opens_what_it_means, participants, run_with, run_with_stores, securities,
};

/// What is public of layers, and their weights in their order: those of layers that are to stay public are left as they are.
fn split(layers: &mut [Layer], public: &[usize]) -> Vec<i64> {
    let mut numbers = Vec::new();
    for (at, layer) in layers.iter_mut().enumerate() {
        let (weights, bias, window) = match layer {
            _ if public.contains(&at) => continue,
            Layer::Dense { weights, bias } => (weights, bias, None),
            Layer::Convolution {
                weights,
                bias,
                window,
            } => (weights, bias, Some(*window)),
            _ => continue,
        };
        for term in 0..weights[0].len() {
            numbers.extend(weights.iter().map(|of| of[term]));
        }
        numbers.extend(bias.iter());
        *layer = Layer::Secret(Secret {
            outputs: bias.len() as u32,
            window,
            bounds: Bounds {
                weight: weights.iter().flatten().map(|w| w.abs()).max().unwrap(),
                bias: bias.iter().map(|w| w.abs()).max().unwrap(),
            },
        });
    }
    numbers
}

/// A table of weights within 1, of 6 places, that south owns.
fn weights(rows: usize) -> Table {
    let kind = Kind::Decimal {
        places: 6,
        units: range(-1_000_000, 1_000_000),
    };
    let mut table = common::table("weights", rows as u32, vec![("w", kind, false)], &[]);
    table.origin = Origin::Owner("south".into());
    table.padded = false;
    table
}

/// Numbers as the rows of their table.
fn rows(numbers: &[i64]) -> clear::Input {
    let number = |number: &i64| vec![Value::Number((*number).into())];
    clear::Input {
        valid: vec![true; numbers.len()],
        rows: numbers.iter().map(number).collect(),
    }
}

fn parts(features: Vec<String>, cells: [u32; 3], layers: Vec<Layer>, to: Readout) -> NetworkParts {
    NetworkParts {
        name: "net".into(),
        source: "drawn".into(),
        features,
        cells,
        places: 6,
        layers,
        readout: to,
    }
}

fn applied(tables: Vec<Table>, sql: &str, parts: NetworkParts, scores: bool) -> Job {
    let mut job = common::job(tables, sql);
    job.queries[0].apply = Some(Application {
        model: "net".into(),
        places: 2,
        scores,
        weights: Some("weights".into()),
    });
    job.models = vec![Network::new(parts).unwrap().into()];
    job
}

fn opened_by_parties(job: &Job, inputs: &[clear::Input]) {
    let program = compile(job, &SortedBytes).unwrap();
    assert_eq!(Program::read(&program.to_string()).as_ref(), Ok(&program));
    for security in securities().into_iter().chain([Security::among(4)]) {
        opens_what_it_means((&program, inputs), security, &format!("{security}"));
    }
}

#[test]
fn parties_apply_secret_weights_to_tables() {
    let tables = common::tables(70, 10);
    let inputs = common::rows(&tables, 21);
    let mut layers = Layers(Random(5));
    let relu = || activation(Activation::Relu);
    let features = || names(["age", "income", "active"]);
    let values = || Readout::Values(names(["risk", "other"]));
    let classes = Readout::Classes(names(["mild", "bad", "good"]));
    let no_bias = |mut layer: Layer| {
        if let Layer::Dense { bias, .. } = &mut layer {
            bias.fill(0);
        }
        layer
    };
    let cases = [
        (
            vec![layers.dense(6, 3), relu(), layers.dense(3, 6)],
            vec![],
            classes,
            "SELECT id, age, income, active FROM people",
        ),
        // The first layer is public, and the last one has no biases.
        (
            vec![
                layers.dense(4, 3),
                activation(Activation::Tanh),
                layers.dense(4, 4),
                Layer::Add { layer: 1 },
                relu(),
                no_bias(layers.dense(2, 4)),
                activation(Activation::Sigmoid),
            ],
            vec![0],
            values(),
            "SELECT id, coalesce(age, 0) AS age, coalesce(income, 0) AS income, coalesce(active, false) AS active FROM people WHERE age > 20",
        ),
    ];
    for (mut layers, public, readout, sql) in cases {
        let scores = matches!(readout, Readout::Classes(_));
        let numbers = split(&mut layers, &public);
        let parts = parts(features(), [3, 1, 1], layers, readout);
        let all = [&tables[..], &[weights(numbers.len())]].concat();
        let inputs = [&inputs[..], &[rows(&numbers)]].concat();
        opened_by_parties(&applied(all, sql, parts, scores), &inputs);
    }
}

#[test]
fn parties_apply_secret_weights_to_images() {
    let mut layers = Layers(Random(9));
    let mut layers = vec![
        layers.convolution(3, 1, window(3, 1, 1)),
        activation(Activation::Relu),
        pool(false, 2, 2),
        layers.convolution(2, 3, window(2, 1, 0)),
        pool(true, 2, 1),
        activation(Activation::Sigmoid),
        layers.dense(3, 2),
    ];
    let numbers = split(&mut layers, &[]);
    let features = names((0..36).map(|k| format!("p{k}")));
    let columns = features.iter().map(|name| {
        let kind = Kind::Integer(range(0, 255));
        (name.as_str(), kind, false)
    });
    let images = common::table("images", 9, columns.collect(), &[]);
    let mut inputs = common::rows(std::slice::from_ref(&images), 3);
    inputs.push(rows(&numbers));
    let sql = format!("SELECT {} FROM images", features.join(", "));
    let readout = Readout::Classes(names(["0", "1", "2"]));
    let parts = parts(features, [1, 6, 6], layers, readout);
    let tables = vec![images, weights(numbers.len())];
    opened_by_parties(&applied(tables, &sql, parts, true), &inputs);
}

/// A network of two layers with bounds of 0.5 and 0.1, and 0.25 and 0, over ages and incomes.
fn small() -> NetworkParts {
    let layer = |outputs, weight, bias| {
        Layer::Secret(Secret {
            outputs,
            window: None,
            bounds: Bounds { weight, bias },
        })
    };
    parts(
        names(["age", "income"]),
        [2, 1, 1],
        vec![
            layer(2, 500_000, 100_000),
            activation(Activation::Relu),
            layer(1, 1_000_000, 0),
        ],
        Readout::Values(names(["risk"])),
    )
}

const NUMBERS: [i64; 9] = [
    500_000, -20_000, 7, -500_000, 100_000, -100_000, 1_000_000, -1_000_000, 0,
];

const SMALL: &str = "SELECT id, age, income FROM people";

fn small_job() -> (Job, Vec<clear::Input>) {
    let mut tables = common::tables(20, 10);
    let mut inputs = common::rows(&tables, 2);
    tables.push(weights(NUMBERS.len()));
    inputs.push(rows(&NUMBERS));
    (applied(tables, SMALL, small(), false), inputs)
}

/// An owner that supplies a weight beyond the bound of its layer ends the run, and nothing is opened.
#[test]
fn weights_beyond_the_bounds_of_their_layers_end_a_run() {
    let (job, inputs) = small_job();
    let program = compile(&job, &SortedBytes).unwrap();
    let [_, malicious] = securities();
    let physical = plan(&program, &participants(malicious)).unwrap();
    let said = "what `south` says of its tables (cells of `weights` are in the ranges of w; numbers of `weights` are within the bounds of weights of `net`)";
    let looked_at = physical.opens.iter().filter_map(|opening| match opening {
        Opening::Claims { owner, of, .. } if owner == "south" => Some(of.join("; ")),
        _ => None,
    });
    let looked_at: Vec<String> = looked_at.collect();
    assert_eq!(looked_at.len(), 1);
    assert!(said.contains(&looked_at[0]), "{looked_at:?}");
    let with = |row: usize, units: i128| {
        let to = (units + 1_000_000) as u128;
        run_with(
            &physical,
            &program,
            &inputs,
            |table, at, port, value| match port {
                TablePort::Bits(ColumnId(0)) if table == "weights" && at == row => to,
                _ => value,
            },
        )
    };
    for (row, most) in [
        (0, 500_000),
        (3, 500_000),
        (4, 100_000),
        (7, 1_000_000),
        (8, 0),
    ] {
        for within in [-most, most] {
            with(row, within).unwrap();
        }
        for beyond in [-most - 1, most + 1] {
            // The column has no number below its range.
            if beyond < -1_000_000 {
                continue;
            }
            let ended = with(row, beyond).unwrap_err();
            assert!(
                ended.ends_with(&format!(
                    "{said}: that is false, and the run is over; nothing else was opened"
                )),
                "{row} {beyond}: {ended}"
            );
        }
    }
    // In the clear such numbers are refused as well.
    let mut other = inputs.clone();
    other[3].rows[4] = vec![Value::Number(100_001)];
    assert_eq!(
        clear::evaluate(&program, &other).unwrap_err().to_string(),
        "number 5 of the weights is a bias of layer 0, and beyond its bound"
    );
}

/// Weights that parties have kept are those of a later job.
#[test]
fn parties_apply_weights_that_they_have_kept() {
    let (job, inputs) = small_job();
    let program = compile(&job, &SortedBytes).unwrap();
    let wanted = clear::evaluate(&program, &inputs).unwrap();
    let whole = |of: &mut Layer| {
        if let Layer::Secret(secret) = of {
            secret.bounds = Bounds {
                weight: 1_000_000,
                bias: 1_000_000,
            };
        }
    };
    for security in securities() {
        let keep = Query {
            name: "kept".into(),
            to: None,
            keep: Some("kept".into()),
            ..common::query("SELECT w FROM weights")
        };
        let first = Job {
            queries: vec![keep],
            models: vec![],
            functions: vec![],
            ..job.clone()
        };
        let first = compile(&first, &SortedBytes).unwrap();
        let physical = plan(&first, &participants(security)).unwrap();
        let options = || Options {
            lanes: 1,
            chunk_rows: Some(512),
        };
        let none = Stores::new();
        let run = (&physical, &first, &inputs[..]);
        let (_, kept) = run_with_stores(run, |_, _, _, value| value, (options(), &none)).unwrap();
        let mut later = job.clone();
        later.tables[3] = Table {
            name: "weights".into(),
            ..physical.keeps[0].table.clone()
        };
        assert!(later.tables[3].origin.owner().is_none());
        // Parties know the range of the column alone.
        assert_eq!(
            why(&later),
            "weights of network `net`: parties have kept table `weights` with the range of its column alone, which is wider than the bound of weights of layer 0"
        );
        let mut same = small();
        same.layers.iter_mut().for_each(whole);
        later.models = vec![Network::new(same).unwrap().into()];
        let program = compile(&later, &SortedBytes).unwrap();
        let physical = plan(&program, &participants(security)).unwrap();
        let run = (&physical, &program, &inputs[..]);
        let (opened, _) = run_with_stores(run, |_, _, _, value| value, (options(), &kept)).unwrap();
        let own = clear::evaluate(&program, &inputs).unwrap();
        assert_eq!(opened[0], own[0].rows);
        assert_eq!(own[0].rows.len(), wanted[0].rows.len());
    }
}

fn refused(change: impl FnOnce(&mut Job)) -> String {
    let (mut job, _) = small_job();
    change(&mut job);
    why(&job)
}

/// Why a job is refused, without its place.
fn why(job: &Job) -> String {
    let said = compile(job, &SortedBytes).unwrap_err().to_string();
    let first = said.lines().next().unwrap();
    let first = first.strip_prefix("query `q`, line 1, column 1: ");
    first.unwrap_or(&said).to_owned()
}

#[test]
fn tables_that_have_no_weights_are_refused() {
    let application = |of: &mut Job, weights: Option<&str>| {
        of.queries[0].apply.as_mut().unwrap().weights = weights.map(str::to_owned);
    };
    let of_net = "weights of network `net`:";
    assert_eq!(
        refused(|job| application(job, None)),
        format!("{of_net} its file has bounds in their place, and no table is named that has them")
    );
    assert_eq!(
        refused(|job| application(job, Some("none"))),
        "q: the job has no table `none`, which has the weights of network `net`"
    );
    assert_eq!(
        refused(|job| application(job, Some("people"))),
        "q: table `people` has the weights of network `net`: it has one column, and not 7"
    );
    let public = |job: &mut Job| {
        let mut parts = small();
        parts.layers = vec![Layer::Dense {
            weights: vec![vec![1, 2]],
            bias: vec![0],
        }];
        job.models = vec![Network::new(parts).unwrap().into()];
    };
    assert_eq!(
        refused(public),
        format!("{of_net} its file has all of them, and it takes none of a table")
    );
    let table = |change: &dyn Fn(&mut Table)| refused(|job| change(&mut job.tables[3]));
    assert_eq!(
        table(&|of| of.capacity = 8),
        format!("{of_net} they are 9 numbers, and table `weights` has exactly 8 rows")
    );
    assert_eq!(
        table(&|of| of.padded = true),
        format!("{of_net} they are 9 numbers, and table `weights` has up to 9 rows")
    );
    let kind = |places, most: i128| Kind::Decimal {
        places,
        units: range(-most, most),
    };
    let decimals = "they are decimals of 6 places without nulls, and column `w` of `weights` is";
    assert_eq!(
        table(&|of| of.columns[0].ty.kind = kind(5, 100)),
        format!("{of_net} {decimals} decimal with 5 places")
    );
    assert_eq!(
        table(&|of| of.columns[0].ty.kind = Kind::Bool),
        format!("{of_net} {decimals} bool")
    );
    assert_eq!(
        table(&|of| of.columns[0].ty.nullable = true),
        format!("{of_net} {decimals} decimal with 6 places, which may be null")
    );
    let wide = format!(
        "{of_net} the range of column `w` of `weights` holds 0, and its numbers have at most 61 bits in units of their places"
    );
    for (min, max) in [
        (-(1 << 61), 0),
        (0, 1 << 61),
        (1, 7),
        (-3, -1),
        (0, i128::MAX),
    ] {
        let units = range(min, max);
        assert_eq!(
            table(&|of| of.columns[0].ty.kind = Kind::Decimal { places: 6, units }),
            wide
        );
    }
}

/// Questions to networks with secret weights are of one family, whatever their bounds are, and of another one than those to public weights.
#[test]
fn questions_to_secret_weights_are_a_family() {
    let of = |change: &dyn Fn(&mut Job)| {
        let (mut job, _) = small_job();
        change(&mut job);
        families(&job, &SortedBytes).unwrap()
    };
    let first = of(&|_| {});
    assert_eq!(first.len(), 1);
    let wider = |job: &mut Job| {
        let mut parts = small();
        if let Layer::Secret(secret) = &mut parts.layers[0] {
            secret.bounds.bias += 1;
        }
        job.models = vec![Network::new(parts).unwrap().into()];
        job.tables[0].capacity = 30;
    };
    assert_eq!(first, of(&wider));
    let public = |job: &mut Job| {
        let mut parts = small();
        parts.layers = vec![Layer::Dense {
            weights: vec![vec![1, 2]],
            bias: vec![0],
        }];
        job.models = vec![Network::new(parts).unwrap().into()];
        job.queries[0].apply.as_mut().unwrap().weights = None;
    };
    assert_ne!(first, of(&public));
}

/// What a network gives is made of its weights: an owner's words about them go with it.
#[test]
fn words_about_weights_go_with_what_is_predicted() {
    let with = |sql: &str, reveal, may: &[Operation]| {
        let (mut job, _) = small_job();
        job.tables[3].columns[0].consent = Some(Consent {
            may: may.iter().copied().collect::<BTreeSet<_>>(),
            reveal,
        });
        if !sql.is_empty() {
            job.queries[0].to = None;
            job.queries.push(Query {
                name: "r".into(),
                ..common::query(sql)
            });
        }
        compile(&job, &SortedBytes).map_err(|error| error.to_string())
    };
    assert!(with("", Reveal::Rows, &[]).is_ok());
    let rows = "`south` does not allow that values of rows of column `w` of `weights` are opened";
    let said = with("", Reveal::Aggregates, &[]).unwrap_err();
    assert!(said.contains(rows), "{said}");
    let mean = "SELECT avg(risk) AS risk FROM q";
    assert!(with(mean, Reveal::Aggregates, &[]).is_ok());
    let said = with(mean, Reveal::Never, &[]).unwrap_err();
    assert!(said.contains("aggregates of column `w`"), "{said}");
    let many = "SELECT count(*) AS n FROM q WHERE risk > 1";
    let said = with(many, Reveal::Never, &[]).unwrap_err();
    assert!(
        said.contains("`south` does not allow filter on column `w` of `weights`"),
        "{said}"
    );
    assert!(with(many, Reveal::Never, &[Operation::Filter]).is_ok());
    // Of what is not asked for, no weight is read.
    let program = with("SELECT id FROM q", Reveal::Never, &[]);
    assert!(program.is_ok(), "{program:?}");
}
