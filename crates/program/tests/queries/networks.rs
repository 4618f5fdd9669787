//! Networks that a job names: read from their files, said, and refused.

use veil_program::{Job, Sent, read_model};

use super::{JOB, NORTH};
use crate::common::Case;

pub(super) const RISK: &str = r#"{
  "version": 1,
  "kind": "network",
  "source": "by hand",
  "places": 2,
  "features": [{ "name": "pay" }, { "name": "ok" }],
  "layers": [
    { "dense": { "weights": [["1.5", "-0.25"], ["0", "1"]], "bias": ["-0.05", "0"] } },
    { "activation": "relu" },
    { "dense": { "weights": [["1.00", "-1"]], "bias": ["2.5"] } }
  ],
  "outputs": ["risk"]
}"#;

/// Every kind of layer.
const IMAGE: &str = r#"{
  "version": 1,
  "kind": "network",
  "source": "a test",
  "places": 0,
  "features": [
    { "name": "a" }, { "name": "b" }, { "name": "c" }, { "name": "d" },
    { "name": "e" }, { "name": "f" }, { "name": "g" }, { "name": "h" }
  ],
  "shape": [2, 2, 2],
  "layers": [
    { "convolution": {
      "weights": [[[["1", "2"]], [["3", "4"]]], [[["5", "6"]], [["7", "8"]]]],
      "bias": ["0", "1"], "stride": [1, 2], "padding": [0, 1, 0, 1]
    } },
    { "activation": "tanh" },
    { "add": 0 },
    { "pool": { "kind": "max", "size": [2, 1] } },
    { "pool": { "kind": "mean", "size": [1, 2], "stride": [1, 1] } },
    { "activation": "sigmoid" },
    { "dense": { "weights": [["1", "-1"]], "bias": ["1"] } }
  ],
  "classes": ["no", "yes"]
}"#;

fn text() -> String {
    let asked = "sql = \"SELECT ward, pay, ok FROM stays\"\napply = { model = \"risk\" }";
    let job = JOB.replace(
        "sql = \"SELECT since, ward, pay, ok, beds FROM stays\"",
        asked,
    );
    job.replace("[query]", "[model.risk]\nfile = \"risk.json\"\n\n[query]")
}

fn case(text: &str, risk: &str) -> Case {
    Case::new(&[
        ("job.toml", text),
        ("north.csv", NORTH),
        ("risk.json", risk),
    ])
}

#[test]
fn a_network_is_said() {
    let said = |text: &str| read_model("risk", text.as_bytes());
    assert_eq!(
        said(RISK).unwrap(),
        "`risk`: a network of 2 features, 3 layers: dense to 2 cells, relu, dense to 1 cell; 6 weights of 2 decimal places; it gives 1 number, and nulls where a feature is null; from: by hand; every participant has it, with all weights"
    );
    assert_eq!(
        said(IMAGE).unwrap(),
        "`risk`: a network of 8 features, 7 layers: convolution of 1 × 2 in steps of 1 × 2, padded to 2 × 2 × 2 cells, tanh, sum with layer 0, largest of 2 × 1 in steps of 2 × 1 to 2 × 1 × 2 cells, mean of 1 × 2 to 2 cells, sigmoid, dense to 1 cell; 10 weights of 0 decimal places; it gives one of 2 classes, and nulls where a feature is null; from: a test; every participant has it, with all weights"
    );
    // The form of the file makes no difference.
    let spaced = RISK.replace("\"1.00\"", "\"1\"").replace('\n', " ");
    assert_eq!(said(&spaced), said(RISK));
}

fn plan(job: &Job) -> veil_job::passes::ProgramSpec {
    job.passes().unwrap().clone()
}

#[test]
fn a_network_is_explained() {
    let job = case(&text(), RISK).load().unwrap();
    let queries = job.queries().unwrap();
    assert_eq!(
        queries.networks(),
        [
            "`risk`: a network of 2 features, 3 layers: dense to 2 cells, relu, dense to 1 cell; 6 weights of 2 decimal places; it gives 1 number, and nulls where a feature is null; from: by hand; every participant has it, with all weights",
            "`risk` in `all_stays`: risk for each of up to 10 rows, by 6 products of integers a row, with 16 binary places between layers; numbers are within 0.002405 of the network's with real numbers"
        ]
    );
    assert!(queries.forests().is_empty());
    let operations: Vec<_> = queries.operations().into_iter().collect();
    assert_eq!(operations, ["network", "select-rows"]);
    assert_eq!(
        job.spec().opened,
        ["`all_stays`: up to 10 rows of ward, risk"]
    );
    let program = queries.program().to_string();
    assert!(
        program.contains("(dense (bias -0.05 0.00) (weights 1.50 -0.25) (weights 0.00 1.00))"),
        "{program}"
    );
    let classes = RISK.replace("\"outputs\": [\"risk\"]", "\"classes\": [\"no\", \"yes\"]");
    let scored = text().replace("\"risk\" }", "\"risk\", places = 0, scores = true }");
    let job = case(&scored, &classes).load().unwrap();
    assert_eq!(
        job.spec().opened,
        ["`all_stays`: up to 10 rows of ward, class, score_1"]
    );
    let said = &job.queries().unwrap().networks()[1];
    assert!(
        said.starts_with("`risk` in `all_stays`: class, score_1 for each of up to 10 rows, by 6 products of integers a row, with ")
            && said.ends_with(" of the network's with real numbers; where the score is nearer to 0 than that, the class may be the other one"),
        "{said}"
    );
}

#[test]
fn one_weight_is_another_plan() {
    let spec = |text: &str, risk: &str| plan(&case(text, risk).load().unwrap());
    let first = spec(&text(), RISK);
    assert_eq!(first, spec(&text(), RISK));
    for (from, to) in [
        ("-0.25", "-0.24"),
        ("by hand", "by head"),
        ("[\"2.5\"]", "[\"2.6\"]"),
    ] {
        assert_ne!(first, spec(&text(), &RISK.replace(from, to)), "{to}");
    }
    let places = text().replace("\"risk\" }", "\"risk\", places = 4 }");
    assert_ne!(first, spec(&places, RISK));
    let same = text().replace("\"risk\" }", "\"risk\", places = 3, scores = false }");
    // The form of the file is none of it.
    let spaced = RISK
        .replace("\"1.5\"", "\"1.50\"")
        .replace("\"2.5\"", "\"2.50\"");
    assert_eq!(first, spec(&same, &spaced));
}

/// The file that the book shows is one.
#[test]
fn the_file_of_the_book_is_read() {
    let book = include_str!("../../../../docs/models.md");
    let (_, file) = book.split_once("### The file of a network").unwrap();
    let (_, file) = file.split_once("```json").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    let said = read_model("digits", file.as_bytes()).unwrap();
    let layers = "convolution of 1 × 2 to 2 × 2 × 1 cells, relu, largest of 2 × 1 in steps of 2 × 1 to 2 cells, dense to 2 cells";
    assert!(said.contains(layers), "{said}");
}

/// What is wrong with a file, and where in it: the reader's own affair.
fn refused(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let changed = text.replacen(from, to, 1);
    let said = read_model("risk", changed.as_bytes()).unwrap_err();
    said.split_once(" at line ")
        .map_or_else(|| said.clone(), |(said, _)| format!("{said} at line"))
}

#[test]
fn what_is_no_network_is_refused() {
    for (from, to, said) in [
        (
            "\"version\": 1",
            "\"version\": 2",
            "it is no model of version 1 and of kind \"trees\" or \"network\"",
        ),
        (
            "\"network\"",
            "\"transformer\"",
            "it is no model of version 1 and of kind \"trees\" or \"network\"",
        ),
        (
            "\"network\"",
            "\"trees\"",
            "unknown field `layers`, expected one of `version`, `kind`, `source`, `places`, `features`, `classes`, `base`, `trees` at line",
        ),
        ("\"version\": 1,", "", "missing field `version` at line"),
        (
            "\"places\": 2,",
            "\"places\": 2, \"more\": 1,",
            "unknown field `more`, expected one of `version`, `kind`, `source`, `places`, `features`, `shape`, `layers`, `outputs`, `classes` at line",
        ),
        (
            "{ \"name\": \"pay\" }",
            "{ \"name\": \"pay\", \"values\": [\"a\"] }",
            "unknown field `values`, expected `name` at line",
        ),
        (
            "{ \"name\": \"pay\" }",
            "{ \"name\": \"ok\" }",
            "there are two of the feature `ok`, or it has no name",
        ),
        (
            "\"places\": 2",
            "\"places\": 1",
            "layer 0: a weight has 2 decimal places, and those of the network are 1; it is rounded where the file is written, and not here",
        ),
        (
            "\"places\": 2",
            "\"places\": 16",
            "weights have at most 15 decimal places, and not 16",
        ),
        (
            "\"1.5\"",
            "1.5",
            "invalid type: floating point `1.5`, expected a number in quotes, such as \"-0.25\" at line",
        ),
        (
            "\"1.5\"",
            "null",
            "invalid type: null, expected a number in quotes, such as \"-0.25\" at line",
        ),
        (
            "\"1.5\"",
            "\"1e3\"",
            "`1e3` is no decimal number of at most 38 digits: write it as \"-41.5\" at line",
        ),
        (
            "\"1.5\"",
            "\"NaN\"",
            "`NaN` is no decimal number of at most 38 digits: write it as \"-41.5\" at line",
        ),
        (
            "\"1.5\"",
            "\"0.0000000000000001\"",
            "`0.0000000000000001` has more than 18 digits, or more than 15 places at line",
        ),
        (
            "\"1.5\"",
            "\"9999999999999999999\"",
            "`9999999999999999999` has more than 18 digits, or more than 15 places at line",
        ),
        (
            "\"1.5\"",
            "\"999999999999999999\"",
            "layer 0: a weight has at most 61 bits in units of the network's places",
        ),
        (
            "\"1.5\"",
            "\"50000000000000000\"",
            "layer 0: a weight has at most 61 bits in units of the network's places",
        ),
        (
            "[\"0\", \"1\"]",
            "[\"0\"]",
            "layer 0: each output has a weight for each cell that it takes",
        ),
        (
            "[\"-0.05\", \"0\"]",
            "[\"-0.05\"]",
            "layer 0: it has a list of weights and a bias for each output, and one output at least",
        ),
        (
            "\"relu\"",
            "\"gelu\"",
            "unknown variant `gelu`, expected one of `relu`, `sigmoid`, `tanh` at line",
        ),
        (
            "{ \"activation\": \"relu\" }",
            "{ \"softmax\": 1 }",
            "unknown variant `softmax`, expected one of `dense`, `convolution`, `pool`, `activation`, `add` at line",
        ),
        (
            "{ \"activation\": \"relu\" }",
            "{ \"add\": -1 }",
            "invalid value: integer `-1`, expected u32 at line",
        ),
        (
            "{ \"activation\": \"relu\" }",
            "{ \"add\": 1 }",
            "layer 1: cells are added to those of an earlier layer",
        ),
        (
            "\"outputs\": [\"risk\"]",
            "\"shape\": [2, 1, 1]",
            "a network has `outputs` or `classes`, one of the two",
        ),
        (
            "\"outputs\": [\"risk\"]",
            "\"outputs\": [\"risk\"], \"classes\": [\"a\", \"b\"]",
            "a network has `outputs` or `classes`, one of the two",
        ),
        (
            "\"outputs\": [\"risk\"]",
            "\"outputs\": [\"risk\", \"more\"]",
            "the last layer gives 1 cells, and the network 2 outputs",
        ),
        (
            "\"outputs\": [\"risk\"]",
            "\"outputs\": [\"risk\"], \"shape\": [3, 1, 1]",
            "features are 3 channels of 1 rows and 1 columns, and there are 2 of them",
        ),
        (
            "by hand",
            "by\\nhand",
            "a name of a feature or class, or the source of a model, has at most 200 bytes and no control characters",
        ),
    ] {
        assert_eq!(refused(RISK, from, to), said, "{to}");
    }
    let uneven = "layer 0: weights of a convolution are as many rows and columns for each channel, and as many channels for each output";
    for (from, to, said) in [
        // Rows of two lengths, as many weights though they are.
        (
            "[[\"5\", \"6\"]], [[\"7\", \"8\"]]",
            "[[\"5\", \"6\", \"7\"]], [[\"8\"]]",
            uneven,
        ),
        (
            "[[\"5\", \"6\"]], [[\"7\", \"8\"]]",
            "[[\"5\", \"6\"]], [[\"7\"], [\"8\"]]",
            uneven,
        ),
        (
            "[[\"5\", \"6\"]], [[\"7\", \"8\"]]",
            "[[\"5\", \"6\"]]",
            uneven,
        ),
        (
            "[[[[\"1\", \"2\"]], [[\"3\", \"4\"]]], [[[\"5\", \"6\"]], [[\"7\", \"8\"]]]]",
            "[]",
            "layer 0: a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding",
        ),
        (
            "\"stride\": [1, 2]",
            "\"stride\": [1, 0]",
            "layer 0: a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding",
        ),
        (
            "\"padding\": [0, 1, 0, 1]",
            "\"padding\": [0, 4294967295, 0, 1]",
            "layer 0: a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding",
        ),
        (
            "\"stride\": [1, 2]",
            "\"stride\": [1, 2], \"dilation\": [2, 2]",
            "unknown field `dilation`, expected one of `weights`, `bias`, `outputs`, `size`, `bounds`, `stride`, `padding` at line",
        ),
        (
            "\"stride\": [1, 2]",
            "\"stride\": [1]",
            "invalid length 1, expected an array of length 2 at line",
        ),
        (
            "\"kind\": \"max\"",
            "\"kind\": \"least\"",
            "unknown variant `least`, expected `max` or `mean` at line",
        ),
        (
            "\"size\": [2, 1]",
            "\"size\": [2, 1], \"padding\": [0, 0, 0, 0]",
            "unknown field `padding`, expected one of `kind`, `size`, `stride` at line",
        ),
        (
            "\"size\": [2, 1]",
            "\"size\": [3, 1]",
            "layer 3: a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding",
        ),
        (
            "\"add\": 0",
            "\"add\": 7",
            "layer 2: cells are added to those of an earlier layer",
        ),
        (
            "\"classes\": [\"no\", \"yes\"]",
            "\"classes\": [\"no\", \"no\"]",
            "there are two of the class `no`, or it has no name",
        ),
        (
            "\"classes\": [\"no\", \"yes\"]",
            "\"classes\": [\"no\"]",
            "a network has 2 to 256 names of its class, and this has 1",
        ),
        (
            "\"shape\": [2, 2, 2]",
            "\"shape\": [4294967295, 4294967295, 4294967295]",
            "features are 4294967295 channels of 4294967295 rows and 4294967295 columns, and there are 8 of them",
        ),
    ] {
        assert_eq!(refused(IMAGE, from, to), said, "{to}");
    }
    // Lists that never end, where a weight stands or where nothing does.
    let deep = "[".repeat(100_000);
    let closed = deep.clone() + &"]".repeat(100_000);
    assert_eq!(
        refused(RISK, "\"1.5\"", &closed),
        "invalid type: sequence, expected a number in quotes, such as \"-0.25\" at line"
    );
    assert!(read_model("risk", deep.as_bytes()).is_err());
    let many = ["{ \"activation\": \"relu\" }"; 65].join(", ");
    assert_eq!(
        refused(RISK, "{ \"activation\": \"relu\" }", &many),
        "a network has at least one and at most 64 layers, and this has 67"
    );
}

#[test]
fn what_is_wrong_about_a_query_is_said() {
    let refused = |from: &str, to: &str| {
        let text = text();
        assert!(text.contains(from), "{from}");
        let case = case(&text.replacen(from, to, 1), RISK);
        case.load().map(|_| ()).unwrap_err()
    };
    for (from, to, said) in [
        (
            "model = \"risk\"",
            "model = \"rusk\"",
            "job.toml:29:9: all_stays: the job has no model `rusk`: it is declared as [model.rusk]",
        ),
        (
            "pay, ok FROM",
            "ok FROM",
            "job.toml:29:9: all_stays: `pay` is a feature of network `risk`, and no column of the query; select it by this name",
        ),
        (
            "ward, pay",
            "ward, since AS pay",
            "job.toml:28:7: query `all_stays`, line 1, column 1: feature `pay` of network `risk` is a number or a condition, and not date",
        ),
        (
            "ward, pay",
            "ward AS risk, pay",
            "job.toml:28:7: query `all_stays`, line 1, column 1: network `risk` gives a column `risk`, and its rows have one of this name; rename that one",
        ),
        (
            "ward, pay",
            "predict('risk', pay) AS x, pay",
            "job.toml:28:7: query `all_stays`, line 1, column 8: `risk` is a network, which a job applies to all rows of a query, and predict is of models of trees",
        ),
        (
            "\"risk\" }",
            "\"risk\", places = 10 }",
            "job.toml:29:36: `places` is `10`: what a network gives has 0 to 9 places",
        ),
        (
            "\"risk\" }",
            "\"risk\", places = -1 }",
            "job.toml:29:36: `places` is `-1`: what a network gives has 0 to 9 places",
        ),
        (
            "\"risk\" }",
            "\"risk\", scores = true }",
            "job.toml:28:7: query `all_stays`, line 1, column 1: apply: a network of numbers has no scores of classes; leave out `scores`",
        ),
        (
            "\"risk\" }",
            "\"risk\", place = 1 }",
            "unknown field `place`, expected one of `model`, `places`, `scores`",
        ),
        ("model = \"risk\"", "", "missing field `model`"),
        (
            "\"risk\" }",
            "\"risk\" }\nfit = { family = \"logistic\", target = \"ok\" }",
            "job.toml:29:9: all_stays: a query has `fit` or `apply`, and not both; apply the network in a query of its own",
        ),
        (
            "\"risk.json\"",
            "\"job.toml\"",
            "job.toml:24:8: model `risk`, from `job.toml`: expected value at line 1 column 1",
        ),
    ] {
        let found = refused(from, to);
        assert!(found.contains(said), "{to}: {found}");
    }
    let trees = case(&text(), &super::forests::RISK.replace("\"risk\"", "\"r\""));
    assert_eq!(
        trees.load().map(|_| ()).unwrap_err(),
        "job.toml:29:9: all_stays: `risk` is a model of trees, which SQL applies: write predict('risk', …) in the query"
    );
}

#[test]
fn a_network_goes_with_the_job() {
    assert_eq!(Job::named_files(&text()), ["risk.json"]);
    let refused = |files: &Sent| Job::sent(&text(), files).unwrap_err().for_sender();
    assert_eq!(
        refused(&Sent::new()),
        "the job file:24:8: the file `risk.json` was not sent along with the job; propose both with `veil submit`"
    );
    let none = Sent::from([("risk.json".to_owned(), b"{}".to_vec())]);
    assert!(refused(&none).contains("missing field `version`"));
    let files = Sent::from([("risk.json".to_owned(), RISK.into())]);
    let sent = Job::sent(&text(), &files).unwrap();
    assert_eq!(plan(&sent), plan(&case(&text(), RISK).load().unwrap()));
}

/// Any file is a network or none: its reader neither ends the program nor takes long.
#[test]
fn changed_files_are_networks_or_none() {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let words: [&[u8]; 8] = [b"{", b"]", b"\"", b"-", b"9999999999", b".", b"null", b"[["];
    for whole in [RISK, IMAGE] {
        let mut read = 0;
        for _ in 0..20_000 {
            let mut text = whole.as_bytes().to_vec();
            for _ in 0..=below(3) {
                let at = below(text.len());
                match below(3) {
                    0 => text[at] = below(256) as u8,
                    1 => drop(text.splice(at..at, words[below(words.len())].iter().copied())),
                    _ => drop(text.drain(at..(at + below(9)).min(text.len()))),
                }
            }
            read += u32::from(read_model("m", &text).is_ok());
        }
        assert!((100..15_000).contains(&read), "{read}");
    }
}
