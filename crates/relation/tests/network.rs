//! Networks: their text, what they make of a relation, and what is refused.

use veil_relation::network::{Activation, Bounds, Layer, NetworkParts, Readout, Secret, Window};
use veil_relation::{
    Apply, Consent, ConsentError, Expr, Kind, Network, Operation, Plan, PlanError, Program, Reveal,
    Step, Trained, Type, Value, clear,
};

use crate::common::range;

/// Two layers over two features, that give a number.
fn parts() -> NetworkParts {
    let dense = |weights: &[&[i64]], bias: &[i64]| Layer::Dense {
        weights: weights.iter().map(|of| of.to_vec()).collect(),
        bias: bias.to_vec(),
    };
    NetworkParts {
        name: "risk".into(),
        source: "by hand".into(),
        features: ["age", "pay"].map(String::from).to_vec(),
        cells: [2, 1, 1],
        places: 2,
        layers: vec![
            dense(&[&[150, -25], &[0, 100]], &[-5, 0]),
            Layer::Activation(Activation::Relu),
            dense(&[&[100, -100]], &[250]),
        ],
        readout: Readout::Values(vec!["risk".into()]),
    }
}

/// Every kind of layer over an image, that gives one of three classes.
fn image() -> NetworkParts {
    let window = |size, stride, padding| Window {
        size,
        stride,
        padding,
    };
    NetworkParts {
        name: "digits".into(),
        source: "by \"hand\"".into(),
        features: (0..16).map(|at| format!("p{at}")).collect(),
        cells: [1, 4, 4],
        places: 0,
        layers: vec![
            Layer::Convolution {
                weights: vec![vec![1, 2, 3, -4], vec![5, 6, -7, 8]],
                bias: vec![9, -10],
                window: window([2, 2], [1, 1], [1, 1, 0, 0]),
            },
            Layer::Activation(Activation::Tanh),
            Layer::Add { layer: 0 },
            Layer::Pool {
                mean: false,
                window: window([2, 2], [2, 2], [0; 4]),
            },
            Layer::Activation(Activation::Sigmoid),
            Layer::Pool {
                mean: true,
                window: window([1, 2], [1, 1], [0; 4]),
            },
            Layer::Dense {
                weights: vec![vec![1, 0, 0, 1], vec![0; 4], vec![-1, 1, -1, 1]],
                bias: vec![0, 1, 2],
            },
        ],
        readout: Readout::Classes(["two", "one", "ten"].map(String::from).to_vec()),
    }
}

/// Layers whose weights an owner brings, and one with public weights.
fn secret() -> NetworkParts {
    let layer = |outputs, window, weight, bias| {
        Layer::Secret(Secret {
            outputs,
            window,
            bounds: Bounds { weight, bias },
        })
    };
    let window = Window {
        size: [2, 1],
        stride: [1, 2],
        padding: [1, 0, 0, 0],
    };
    NetworkParts {
        name: "theirs".into(),
        source: "an owner".into(),
        features: (0..4).map(|at| format!("p{at}")).collect(),
        cells: [1, 2, 2],
        places: 2,
        layers: vec![
            layer(3, Some(window), 150, 0),
            Layer::Activation(Activation::Relu),
            Layer::Dense {
                weights: vec![vec![1, 2, 3, 4, 5, 6]],
                bias: vec![7],
            },
            layer(2, None, 100, 25),
        ],
        readout: Readout::Classes(vec!["no".into(), "yes".into()]),
    }
}

/// One number for two classes.
fn one_of_two() -> NetworkParts {
    let mut of = parts();
    of.name = "ill".into();
    of.readout = Readout::Classes(vec!["no".into(), "yes".into()]);
    of
}

/// Networks that have no name of a model of trees.
pub(crate) fn networks() -> Vec<Network> {
    let mut number = parts();
    number.name = "number".into();
    let all = [number, image(), one_of_two(), secret()];
    all.map(|of| Network::new(of).unwrap()).to_vec()
}

const TEXT: &str = r#"(program
  (network
    "risk"
    "by hand"
    (places 2)
    (features "age" "pay")
    (cells 2 1 1)
    (dense (bias -0.05 0.00) (weights 1.50 -0.25) (weights 0.00 1.00))
    (activation relu)
    (dense (bias 2.50) (weights 1.00 -1.00))
    (values "risk"))
  (table
    "stays"
    (owner "north")
    (rows 3 exact)
    (column "patient" (integer 0 9))
    (column "old" (nullable (integer 0 120)))
    (column "ok" bool)
    (unique #0))
  (step
    "risks"
    (open "ministry" (apply "risk" (places 3) (scores false) (features #1 #2) (scan "stays" #0 #1 #2)))))"#;

#[test]
fn a_network_stands_in_the_text_of_its_program() {
    let program = Program::read(TEXT).unwrap();
    let network = Network::new(parts()).unwrap();
    assert_eq!(program.models(), [Trained::Network(network)]);
    // One digit of one weight is another program.
    let other = Program::read(&TEXT.replace("-0.25", "-0.26")).unwrap();
    assert_ne!(other, program);
    assert_ne!(other.to_string(), program.to_string());
    let refused = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        let read = Program::read(&TEXT.replacen(from, to, 1));
        read.unwrap_err().to_string()
    };
    for (from, to) in [
        ("0.00)", "-0.00)"),
        ("(cells 2 1 1)", "(cells 2 1 01)"),
        ("(scores false)", "(scores  false)"),
        // A model that no step applies.
        (
            "(apply \"risk\" (places 3) (scores false) (features #1 #2) ",
            "(filter true ",
        ),
    ] {
        let said = refused(from, to);
        assert_eq!(said, "the text is not in the canonical form", "{to}");
    }
    for (from, to, said) in [
        ("1.50", "1.5", "`1.5` is no number of the model's places"),
        ("1.50", "1.5x", "`1.5x` is no number"),
        (
            "1.50",
            "50000000000000000.00",
            "layer 0: a weight has at most 61 bits in units of the network's places",
        ),
        (
            "1.50",
            "999999999999999999999.00",
            "`999999999999999999999.00` is no weight",
        ),
        (
            "activation relu",
            "activation gelu",
            "`(activation gelu)` is no layer",
        ),
        ("(activation relu)", "(softmax)", "`(softmax)` is no layer"),
        ("(activation relu)", "relu", "`relu` is no layer"),
        (
            "(activation relu)",
            "(add 1)",
            "layer 1: cells are added to those of an earlier layer",
        ),
        (
            "(weights 1.00 -1.00)",
            "(weights 1.00)",
            "layer 2: each output has a weight for each cell that it takes",
        ),
        ("(bias 2.50) (weights 1.00 -1.00)", "", "`()` is no layer"),
        ("(cells 2 1 1)", "(cells 2 1)", "`(cells 2 1)` is no cells"),
        (
            "(cells 2 1 1)",
            "(cells 1 1 1)",
            "features are 1 channels of 1 rows and 1 columns, and there are 2 of them",
        ),
        (
            "(values \"risk\")",
            "(numbers \"risk\")",
            "`(numbers \"risk\")` is no classes",
        ),
        (
            "(apply \"risk\"",
            "(apply \"rusk\"",
            "`\"rusk\"` is no name of a model",
        ),
        ("(scores false)", "(scores no)", "`no` is no number"),
    ] {
        assert_eq!(refused(from, to), said, "{to}");
    }
    let predicts = TEXT.replace(
        "(apply \"risk\" (places 3) (scores false) (features #1 #2) ",
        "(project (columns (\"x\" (predict \"risk\" value #1 #2))) ",
    );
    assert_eq!(
        Program::read(&predicts).unwrap_err().to_string(),
        "`(predict \"risk\" value #1 #2)` is no expression"
    );
}

/// A program of one table of rows that applies a network to them.
fn program(parts: NetworkParts, scores: bool, features: Vec<Expr>) -> Program {
    let mut program = Program::read(TEXT).unwrap();
    let apply = Apply {
        network: Network::new(parts).unwrap(),
        features,
        places: 3,
        scores,
    };
    let input = match program.steps.remove(0).plan {
        Plan::Open { input, .. } => match *input {
            Plan::Apply { input, .. } => input,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    };
    program.steps.push(Step {
        name: "risks".into(),
        plan: Plan::Open {
            input: Box::new(Plan::Apply {
                input,
                model: Box::new(apply),
                weights: None,
            }),
            to: "ministry".into(),
        },
        keep: None,
        at: veil_relation::At::default(),
    });
    program
}

fn both() -> Vec<Expr> {
    vec![Expr::column(1), Expr::column(2)]
}

/// Names of the columns that are added, and whether they may be null.
fn added(program: &Program) -> Vec<(String, bool)> {
    let shape = program.check().unwrap().remove(0);
    assert_eq!(shape.capacity, 3);
    assert_eq!(shape.claimed.len(), 1);
    let names: Vec<&str> = shape.fields[..3]
        .iter()
        .map(|of| of.name.as_str())
        .collect();
    assert_eq!(names, ["patient", "old", "ok"]);
    let added = shape.fields[3..].iter();
    added.map(|of| (of.name.clone(), of.ty.nullable)).collect()
}

#[test]
fn a_network_adds_columns() {
    let named = |of: &[(&str, bool)]| -> Vec<(String, bool)> {
        let named = of.iter().map(|(name, null)| ((*name).to_owned(), *null));
        named.collect()
    };
    let of =
        |parts: fn() -> NetworkParts, scores, features| added(&program(parts(), scores, features));
    assert_eq!(of(parts, false, both()), named(&[("risk", true)]));
    // What is null nowhere gives no null.
    let never = vec![Expr::column(0), Expr::column(2)];
    assert_eq!(of(parts, false, never), named(&[("risk", false)]));
    assert_eq!(of(one_of_two, false, both()), named(&[("class", true)]));
    assert_eq!(
        of(one_of_two, true, both()),
        named(&[("class", true), ("score_1", true)])
    );
    let pixels = vec![Expr::column(2); 16];
    assert_eq!(
        of(image, true, pixels.clone()),
        named(&[
            ("class", false),
            ("score_0", false),
            ("score_1", false),
            ("score_2", false)
        ])
    );
    let program = program(image(), true, pixels);
    let shape = program.check().unwrap().remove(0);
    let Kind::Category(values) = &shape.fields[3].ty.kind else {
        panic!("{:?}", shape.fields[3])
    };
    // A category is in the order of its texts; the class of the first place is the last one there.
    assert_eq!(values.texts(), ["one", "ten", "two"]);
    let Plan::Open { input, .. } = &program.steps[0].plan else {
        panic!("it opens")
    };
    let Plan::Apply { model, .. } = &**input else {
        panic!("it applies")
    };
    let (_, indices) = model.classes().unwrap().unwrap();
    assert_eq!(indices, [2, 0, 1]);
    for field in &shape.fields[4..] {
        assert!(
            matches!(field.ty.kind, Kind::Decimal { places: 3, .. }),
            "{field:?}"
        );
    }
    assert_eq!(program.network_uses().unwrap().len(), 1);
    assert_eq!(Program::read(&program.to_string()).unwrap(), program);
}

#[test]
fn what_no_network_takes_is_refused() {
    let refused = |of: &Program| of.check().unwrap_err().to_string();
    let change = |change: &dyn Fn(&mut Apply)| {
        let mut program = program(parts(), false, both());
        let Plan::Open { input, .. } = &mut program.steps[0].plan else {
            panic!("it opens")
        };
        let Plan::Apply { model, .. } = &mut **input else {
            panic!("it applies")
        };
        change(model);
        refused(&program)
    };
    assert_eq!(
        change(&|of| drop(of.features.pop())),
        "network `risk` has 2 features, and is applied to 1"
    );
    let date = Expr::Literal(veil_relation::Literal::Date(7));
    assert_eq!(
        change(&|of| of.features[1] = date.clone()),
        "feature `pay` of network `risk` is a number or a condition, and not date"
    );
    assert_eq!(
        change(&|of| of.features[1] = Expr::column(3)),
        "in apply: there is no column #3 among 3"
    );
    assert_eq!(
        change(&|of| of.places = 10),
        "what a network gives has up to 9 decimal places, and not 10"
    );
    assert_eq!(
        change(&|of| of.scores = true),
        "apply: a network of numbers has no scores of classes; leave out `scores`"
    );
    let renamed = |readout: &str, name: &str| {
        let mut parts = parts();
        parts.readout = Readout::Values(vec![readout.into()]);
        parts.name = name.into();
        refused(&program(parts, false, both()))
    };
    assert_eq!(
        renamed("patient", "risk"),
        "network `risk` gives a column `patient`, and its rows have one of this name; rename that one"
    );
    assert_eq!(
        renamed("a risk", "risk"),
        "`a risk`, which network `risk` gives, is no name of a column: lower-case letters, digits and `_`, a letter first"
    );
    assert_eq!(
        renamed("risk", "Risk"),
        "`Risk` is no name of a model: lower-case letters, digits and `_`, a letter first"
    );
}

/// Two networks, or a network and trees, of one name.
#[test]
fn a_name_stands_for_one_model() {
    let mut two = program(parts(), false, both());
    let mut other = one_of_two();
    other.name = "risk".into();
    let mut step = program(other, false, both()).steps.remove(0);
    step.name = "others".into();
    two.steps.push(step);
    assert_eq!(two.check().unwrap_err(), PlanError::TwoNames("risk".into()));
    let trees = veil_relation::Forest::new(crate::forest::parts()).unwrap();
    let mut two = program(parts(), false, both());
    let Plan::Open { input, .. } = &mut two.steps[0].plan else {
        panic!("it opens")
    };
    let predict = Expr::Predict {
        model: trees,
        output: veil_relation::forest::Output::Value,
        of: both(),
    };
    **input = Plan::Filter {
        input: input.clone(),
        predicate: Expr::IsNull(Box::new(predict)),
    };
    assert_eq!(two.check().unwrap_err(), PlanError::TwoNames("risk".into()));
}

/// What a network gives for a row shows its features, all together, as values of rows.
#[test]
fn owners_words_go_with_what_a_network_gives() {
    let mut program = program(parts(), false, both());
    program.tables[0].columns[1].consent = Some(Consent {
        may: [Operation::Filter].into(),
        reveal: Reveal::Aggregates,
    });
    program.check().unwrap();
    // The column itself comes first.
    let error = program.check_consent().unwrap_err();
    assert!(matches!(error, ConsentError::Reveal { .. }), "{error}");
    let Plan::Open { input, .. } = &mut program.steps[0].plan else {
        panic!("it opens")
    };
    let named = |name: &str, at| veil_relation::Named {
        name: name.into(),
        expr: Expr::column(at),
    };
    let only = |input: &Plan, columns| Plan::Project {
        input: Box::new(input.clone()),
        columns,
    };
    let applied = input.clone();
    **input = only(&applied, vec![named("patient", 0)]);
    program.check_consent().unwrap();
    let Plan::Open { input, .. } = &mut program.steps[0].plan else {
        panic!("it opens")
    };
    **input = only(&applied, vec![named("risk", 3)]);
    assert_eq!(
        program.check_consent().unwrap_err().to_string(),
        "`north` does not allow that values of rows of column `old` of `stays` are opened"
    );
    // Aggregates of it may be opened.
    let Plan::Open { input, .. } = &mut program.steps[0].plan else {
        panic!("it opens")
    };
    **input = Plan::GroupBy {
        input: applied,
        keys: vec![],
        aggregates: vec![veil_relation::Aggregate {
            name: "mean".into(),
            function: veil_relation::AggregateFunction::Avg(Expr::column(3)),
            filter: None,
        }],
        domain: veil_relation::Domain::Secret,
        min_rows: 0,
    };
    program.check().unwrap();
    program.check_consent().unwrap();
    let uses = program.uses().unwrap();
    let old = uses.iter().find(|of| of.column.0 == 1).unwrap();
    assert_eq!(old.opened, Some(Reveal::Aggregates));
}

/// Rows stay what they are and where they are; a null among the features gives nulls alone.
#[test]
fn rows_keep_their_order_and_nulls_give_nulls() {
    let mut program = program(one_of_two(), true, both());
    let row = |patient, old: Option<i128>, ok| {
        vec![
            Value::Number(patient),
            old.map_or(Value::Null, Value::Number),
            Value::Bool(ok),
        ]
    };
    let stays = clear::Input {
        valid: vec![true; 3],
        rows: vec![
            row(4, Some(80), true),
            row(9, None, true),
            row(1, Some(3), false),
        ],
    };
    let Plan::Open { input, .. } = &mut program.steps[0].plan else {
        panic!("it opens")
    };
    let Plan::Apply { input, .. } = &mut **input else {
        panic!("it applies")
    };
    let rows = input.clone();
    **input = Plan::Sort {
        input: rows,
        keys: vec![veil_relation::SortKey {
            expr: Expr::column(0),
            descending: true,
            nulls_first: false,
        }],
    };
    let opened = clear::evaluate(&program, &[stays]).unwrap().remove(0);
    let patients: Vec<Value> = opened.rows.iter().map(|row| row[0]).collect();
    assert_eq!(patients, [9, 4, 1].map(Value::Number));
    assert_eq!(opened.rows[0][3..], [Value::Null, Value::Null]);
    for row in &opened.rows[1..] {
        let Value::Number(score) = row[4] else {
            panic!("{row:?}")
        };
        // It is `yes` where the score is above 0.
        assert_eq!(row[3], Value::Number(i128::from(score > 0)));
    }
    let names: Vec<&Type> = opened.fields.iter().map(|of| &of.ty).collect();
    assert_eq!(
        *names[1],
        Type::of(Kind::Integer(range(0, 120))).or_null(true)
    );
}
