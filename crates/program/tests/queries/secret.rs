//! Networks whose weights an owner brings: files of their shapes, what is said of them, and an owner's own look at its weights.

use std::collections::BTreeMap;

use veil_job::Holder;
use veil_program::{Job, read_model, read_network};

use super::{JOB, NORTH};
use crate::common::Case;

const SHAPE: &str = r#"{
  "version": 1,
  "kind": "network",
  "source": "the laboratory",
  "places": 2,
  "features": [{ "name": "pay" }, { "name": "ok" }],
  "layers": [
    { "dense": { "outputs": 2, "bounds": { "weight": "1.5", "bias": "0.05" } } },
    { "activation": "relu" },
    { "dense": { "outputs": 1, "bounds": { "weight": "1", "bias": "2.50" } } }
  ],
  "outputs": ["risk"]
}"#;

const IMAGE: &str = r#"{
  "version": 1,
  "kind": "network",
  "source": "the laboratory",
  "places": 1,
  "features": [{ "name": "a" }, { "name": "b" }, { "name": "c" }, { "name": "d" }],
  "shape": [1, 2, 2],
  "layers": [
    { "convolution": { "outputs": 2, "size": [2, 1], "bounds": { "weight": "1", "bias": "0" }, "padding": [1, 0, 0, 0] } },
    { "dense": { "weights": [["1", "1", "1", "1", "1", "1", "1", "1"]], "bias": ["0"] } }
  ],
  "classes": ["no", "yes"]
}"#;

/// Weights of the first layer, for each feature, biases, and the same of the last layer.
const WEIGHTS: &str = "w\n1.5\n0\n-0.25\n1\n-0.05\n0\n1\n-1\n2.5\n";

const TABLE: &str = r#"[[table]]
name = "weights"
owner = "south"
rows = 9
file = "weights.csv"
column = [{ name = "w", type = "decimal", scale = 2, min = "-2.5", max = "2.5" }]

[model.risk]
file = "shape.json"
weights = "weights"

[query]"#;

fn text() -> String {
    let asked = "sql = \"SELECT ward, pay, ok FROM stays\"\napply = { model = \"risk\" }";
    let job = JOB.replace(
        "sql = \"SELECT since, ward, pay, ok, beds FROM stays\"",
        asked,
    );
    job.replace("[query]", TABLE)
}

fn case(text: &str, shape: &str, weights: &str) -> Case {
    Case::new(&[
        ("job.toml", text),
        ("north.csv", NORTH),
        ("shape.json", shape),
        ("weights.csv", weights),
    ])
}

#[test]
fn a_shape_is_said() {
    let said = |text: &str| read_model("risk", text.as_bytes());
    assert_eq!(
        said(SHAPE).unwrap(),
        "`risk`: a network of 2 features, 3 layers: dense to 2 cells of secret weights within 1.50 and biases within 0.05, relu, dense to 1 cell of secret weights within 1.00 and biases within 2.50; 6 weights of 2 decimal places; it gives 1 number, and nulls where a feature is null; from: the laboratory; every participant has it, but for 9 numbers that an owner brings"
    );
    assert_eq!(
        said(IMAGE).unwrap(),
        "`risk`: a network of 4 features, 2 layers: convolution of 2 × 1, padded to 2 × 2 × 2 cells of secret weights within 1.0 and biases within 0.0, dense to 1 cell; 12 weights of 1 decimal place; it gives one of 2 classes, and nulls where a feature is null; from: the laboratory; every participant has it, but for 6 numbers that an owner brings"
    );
}

#[test]
fn the_size_of_a_network_is_counted() {
    let facts = |text: &str| read_network("risk", text.as_bytes()).unwrap();
    for (text, cells, secret) in [(SHAPE, 1, 9), (IMAGE, 1, 6), (super::networks::RISK, 1, 0)] {
        let facts = facts(text);
        assert_eq!((facts.cells, facts.secret), (cells, secret));
        assert_eq!(facts.about, read_model("risk", text.as_bytes()).unwrap());
    }
    let wrong = read_network("risk", b"{}").unwrap_err();
    assert_eq!(wrong, read_model("risk", b"{}").unwrap_err());
}

/// The shape that the book shows is one, and has as many numbers as its table has rows.
#[test]
fn the_shape_of_the_book_is_read() {
    let book = include_str!("../../../../docs/models.md");
    let (_, part) = book.split_once("### Secret weights").unwrap();
    let (table, shape) = part.split_once("```json").unwrap();
    let (shape, _) = shape.split_once("```").unwrap();
    let said = read_model("risk", shape.as_bytes()).unwrap();
    assert!(
        said.ends_with("but for 9 numbers that an owner brings"),
        "{said}"
    );
    assert!(table.contains("rows = 9 ") && table.contains("weights = \"weights\" "));
}

#[test]
fn a_secret_network_is_explained() {
    let job = case(&text(), SHAPE, WEIGHTS).load().unwrap();
    let queries = job.queries().unwrap();
    let said = &queries.networks()[1];
    let (before, after) = said.split_once(" are within ").unwrap();
    assert_eq!(
        before,
        "`risk` in `all_stays`: risk for each of up to 10 rows, by 6 products of integers a row, with 16 binary places between layers; numbers"
    );
    let (error, after) = after.split_once(' ').unwrap();
    // 0.005 times a pay of 9999.99 alone is 50.
    assert!(error.parse::<f64>().unwrap() > 50.0, "{error}");
    assert_eq!(
        after,
        "of the network's with real numbers and with secret weights as they were before they were rounded to 2 places; its secret weights are 9 numbers of `weights`, column `w`, of south, which no participant sees: predictions are functions of them, and a recipient of many learns much of the network"
    );
    let operations: Vec<_> = queries.operations().into_iter().collect();
    assert_eq!(operations, ["network", "select-rows"]);
    let tables = queries.table_facts();
    assert_eq!(tables[1].claims, ["weights of network risk"]);
    let columns = queries.column_facts();
    let weights = columns.iter().find(|of| of.table == "weights").unwrap();
    assert_eq!(
        (&*weights.column, &*weights.owner, weights.reveal),
        ("w", "south", "rows")
    );
    assert!(
        queries
            .hidden()
            .contains(&"`weights`: no row of it".to_owned())
    );
}

/// The plan has the shape, and nothing of the weights.
#[test]
fn weights_are_no_part_of_a_plan() {
    let plan = |shape: &str, weights: &str| {
        let case = case(&text(), shape, weights);
        let job = case.load().unwrap();
        job.sources(Holder::Owner(1)).unwrap();
        job.passes().unwrap().clone()
    };
    let first = plan(SHAPE, WEIGHTS);
    let zeros = format!("w\n{}", "0\n".repeat(9));
    assert_eq!(first, plan(SHAPE, &zeros));
    for (from, to) in [
        ("\"1.5\"", "\"1.51\""),
        ("\"0.05\"", "\"0.06\""),
        ("laboratory", "clinic"),
    ] {
        assert_ne!(first, plan(&SHAPE.replace(from, to), WEIGHTS), "{to}");
    }
    // The form of the file is none of it.
    assert_eq!(first, plan(&SHAPE.replace("\"1.5\"", "\"1.50\""), WEIGHTS));
}

/// The owner is told which number is beyond its bound, or that there are more or fewer.
#[test]
fn an_owner_looks_at_its_weights() {
    let case = case(&text(), SHAPE, WEIGHTS);
    let job = case.load().unwrap();
    let south = |weights: &str| {
        case.write("weights.csv", weights.as_bytes());
        let read = job.sources(Holder::Owner(1)).map(drop);
        read.map_err(|error| case.shorten(&error.to_string()))
    };
    south(WEIGHTS).unwrap();
    let beyond = |from: &str, to: &str| {
        assert!(WEIGHTS.contains(from), "{from}");
        south(&WEIGHTS.replacen(from, to, 1)).unwrap_err()
    };
    for (from, to, said) in [
        (
            "\n1.5\n",
            "\n-1.51\n",
            "row 1, column `w`: `-1.51` is a weight of layer 0 of network `risk`, and the job says that these are from -1.50 to 1.50; correct the table, or the bound, at all participants",
        ),
        (
            "-0.05",
            "0.06",
            "row 5, column `w`: `0.06` is a bias of layer 0 of network `risk`, and the job says that these are from -0.05 to 0.05",
        ),
        (
            "\n-1\n",
            "\n-1.01\n",
            "row 8, column `w`: `-1.01` is a weight of layer 2 of network `risk`, and the job says that these are from -1.00 to 1.00",
        ),
        (
            "2.5",
            "2.51",
            "`2.51` is outside the declared range -2.50 to 2.50",
        ),
        ("2.5", "2.505", "has more than 2 digits"),
        ("\n0\n", "\n\n", "is empty"),
        ("2.5\n", "2.5\n0\n", "10 rows"),
        ("2.5\n", "", "8 rows"),
    ] {
        let found = beyond(from, to);
        assert!(found.contains(said), "{to:?}: {found}");
    }
    // The owner brings no file, or another one.
    let without = text().replace("file = \"weights.csv\"\n", "");
    case.write("job.toml", without.as_bytes());
    let job = case.load().unwrap();
    let none = job.sources(Holder::Owner(1)).map(drop).unwrap_err();
    assert!(
        none.to_string().contains("table `weights`") && none.to_string().contains("south"),
        "{none}"
    );
}

#[test]
fn what_is_wrong_about_weights_is_said() {
    for (from, to, said) in [
        (
            "weights = \"weights\"\n",
            "",
            "weights of network `risk`: its file has bounds in their place, and no table is named that has them",
        ),
        (
            "weights = \"weights\"",
            "weights = \"numbers\"",
            "all_stays: the job has no table `numbers`, which has the weights of network `risk`",
        ),
        (
            "weights = \"weights\"",
            "weights = \"stays\"",
            "all_stays: table `stays` has the weights of network `risk`: it has one column, and not 6",
        ),
        (
            "rows = 9",
            "rows = 8",
            "weights of network `risk`: they are 9 numbers, and table `weights` has exactly 8 rows",
        ),
        (
            "rows = 9",
            "rows = { up_to = 9 }",
            "weights of network `risk`: they are 9 numbers, and table `weights` has up to 9 rows",
        ),
        (
            "scale = 2, min = \"-2.5\"",
            "scale = 3, min = \"-2.5\"",
            "weights of network `risk`: they are decimals of 2 places without nulls, and column `w` of `weights` is decimal with 3 places",
        ),
        ("owner = \"south\"", "owner = \"west\"", "`west`"),
        (
            "weights = \"weights\"",
            "weight = \"weights\"",
            "unknown field `weight`, expected `file` or `weights`",
        ),
    ] {
        let text = text();
        assert!(text.contains(from), "{from}");
        let case = case(&text.replacen(from, to, 1), SHAPE, WEIGHTS);
        let found = case.load().map(|_| ()).unwrap_err();
        assert!(found.contains(said), "{to}: {found}");
    }
    let public = SHAPE.replace(
        "\"outputs\": 2, \"bounds\": { \"weight\": \"1.5\", \"bias\": \"0.05\" }",
        "\"weights\": [[\"1\", \"1\"], [\"1\", \"1\"]], \"bias\": [\"0\", \"0\"]",
    );
    // Two layers: one has public weights, and the other three numbers.
    let found = case(&text(), &public, WEIGHTS)
        .load()
        .map(|_| ())
        .unwrap_err();
    assert!(
        found.contains("they are 3 numbers, and table `weights` has exactly 9 rows"),
        "{found}"
    );
    let all = public.replace(
        "\"outputs\": 1, \"bounds\": { \"weight\": \"1\", \"bias\": \"2.50\" }",
        "\"weights\": [[\"1\", \"1\"]], \"bias\": [\"0\"]",
    );
    let found = case(&text(), &all, WEIGHTS).load().map(|_| ()).unwrap_err();
    assert!(
        found.contains(
            "weights of network `risk`: its file has all of them, and it takes none of a table"
        ),
        "{found}"
    );
    let trees = super::forests::RISK;
    let found = case(&text(), trees, WEIGHTS)
        .load()
        .map(|_| ())
        .unwrap_err();
    assert!(
        found.contains("`risk`, a model of trees, has no use for `weights`; remove it"),
        "{found}"
    );
    let wide = SHAPE.replace("\"1\", \"bias\"", "\"1000000000000\", \"bias\"");
    let found = case(&text(), &wide, WEIGHTS)
        .load()
        .map(|_| ())
        .unwrap_err();
    assert!(
        found.contains("layer 2 of a network with secret weights may need")
            && found.contains("bits where there are 62: declare smaller bounds of weights, narrower ranges of features, or fewer places"),
        "{found}"
    );
}

#[test]
fn what_is_no_shape_is_refused() {
    let either =
        "it has `weights` and `bias`, or `outputs` and `bounds` of weights that an owner brings";
    let windows = "it has `weights` and `bias`, or `outputs`, `size` and `bounds` of weights that an owner brings";
    let bounds = "the bound of weights is above 0 and that of biases not below, and both have at most 61 bits in units of the network's places";
    let outputs =
        "an output adds up at most 4095 cells, and there are one output at least and at most 4096";
    for (of, from, to, said) in [
        (SHAPE, "\"outputs\": 2, ", "", format!("layer 0: {either}")),
        (SHAPE, "\"outputs\": 2, ", "\"outputs\": 2, \"bias\": [\"0\", \"0\"], ", format!("layer 0: {either}")),
        (SHAPE, "\"outputs\": 2", "\"outputs\": 0", format!("layer 0: {outputs}")),
        (SHAPE, "\"outputs\": 2", "\"outputs\": 4294967295", format!("layer 0: {outputs}")),
        (SHAPE, "\"outputs\": 2", "\"outputs\": -1", "invalid value: integer `-1`, expected u32".into()),
        (SHAPE, "\"outputs\": 1,", "\"outputs\": 2,", "the last layer gives 2 cells, and the network 1 outputs".into()),
        (SHAPE, "\"1.5\"", "\"0\"", format!("layer 0: {bounds}")),
        (SHAPE, "\"1.5\"", "\"-1\"", format!("layer 0: {bounds}")),
        (SHAPE, "\"0.05\"", "\"-0.05\"", format!("layer 0: {bounds}")),
        (SHAPE, "\"1.5\"", "\"40000000000000000\"", format!("layer 0: {bounds}")),
        (SHAPE, "\"1.5\"", "\"1.555\"", "layer 0: a weight has 3 decimal places, and those of the network are 2; it is rounded where the file is written, and not here".into()),
        (SHAPE, "\"1.5\"", "1.5", "invalid type: floating point `1.5`, expected a number in quotes, such as \"-0.25\"".into()),
        (SHAPE, ", \"bias\": \"0.05\"", "", "missing field `bias`".into()),
        (SHAPE, "\"bias\": \"0.05\"", "\"bias\": \"0.05\", \"least\": \"0\"", "unknown field `least`, expected `weight` or `bias`".into()),
        (IMAGE, "\"size\": [2, 1], ", "", format!("layer 0: {windows}")),
        (IMAGE, "\"outputs\": 2, ", "\"weights\": [], ", format!("layer 0: {windows}")),
        (IMAGE, "[2, 1]", "[4, 1]", "layer 0: a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding".into()),
        (IMAGE, "[2, 1]", "[4294967295, 4294967295]", "layer 0: a window has rows".into()),
    ] {
        assert!(of.contains(from), "{from}");
        let found = read_model("risk", of.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(found.starts_with(&said), "{to}: {found}");
    }
}

#[test]
fn a_shape_goes_with_the_job() {
    assert_eq!(Job::named_files(&text()), ["shape.json"]);
    let files = BTreeMap::from([("shape.json".to_owned(), SHAPE.as_bytes().to_vec())]);
    let sent = Job::sent(&text(), &files).unwrap();
    let whole = case(&text(), SHAPE, WEIGHTS).load().unwrap();
    assert_eq!(sent.passes().unwrap(), whole.passes().unwrap());
}
