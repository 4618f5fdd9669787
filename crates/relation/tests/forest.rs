//! Models of trees: what is one, its text, and what it means.

use veil_relation::forest::{
    Feature, FeatureKind, ForestError, ForestParts, MOST_DEPTH, MOST_LEAVES, Node, Output, Split,
    Test, Threshold, Tree,
};
use veil_relation::{
    Expr, Forest, Kind, Literal, Program, Range, Trained, Type, TypeError, Value, Values, clear,
};

fn threshold(units: i128, places: u32) -> Threshold {
    Threshold::new(units, places).unwrap()
}

fn split(feature: u16, test: Test, null: Option<bool>, yes: Node, no: Node) -> Node {
    Node::Split(Box::new(Split {
        feature,
        test,
        null,
        yes,
        no,
    }))
}

fn leaf(units: i128) -> Node {
    Node::Leaf(vec![units])
}

pub(crate) fn parts() -> ForestParts {
    let wards = Values::new(vec!["east".into(), "north".into(), "west".into()]).unwrap();
    let first = split(
        0,
        Test::AtMost(threshold(415, 1)),
        None,
        leaf(-250),
        split(1, Test::In(vec![0, 2]), None, leaf(1_000), leaf(30)),
    );
    let second = split(0, Test::Below(threshold(60, 0)), None, leaf(0), leaf(7));
    let feature = |name: &str, kind| Feature {
        name: name.into(),
        kind,
    };
    ForestParts {
        name: "risk".into(),
        source: "by hand".into(),
        features: vec![
            feature("age", FeatureKind::Number),
            feature("ward", FeatureKind::Category(wards)),
        ],
        classes: vec![],
        places: 2,
        base: vec![100],
        trees: vec![
            Tree {
                to: None,
                root: first,
            },
            Tree {
                to: None,
                root: second,
            },
        ],
    }
}

const TEXT: &str = r#"(program
  (model
    "risk"
    "by hand"
    (places 2)
    (classes)
    (base 1.00)
    (feature "age" number)
    (feature "ward" (category "east" "north" "west"))
    (tree (if (<= #0 41.5) -2.50 (if (in #1 0 2) 10.00 0.30)))
    (tree (if (< #0 60) 0.00 0.07)))
  (table
    "stays"
    (owner "north")
    (rows 3 exact)
    (column "age" (nullable (decimal 1 0 1200)))
    (column "ward" (category "east" "west")))
  (step
    "risks"
    (open "ministry" (project (columns ("risk" (predict "risk" value #0 #1))) (scan "stays" #0 #1)))))"#;

#[test]
fn a_model_stands_in_the_text_of_its_program() {
    let program = Program::read(TEXT).unwrap();
    let shapes = program.check().unwrap();
    let units = Range::new(-150, 1_107).unwrap();
    let expected = Type::of(Kind::Decimal { places: 2, units }).or_null(true);
    assert_eq!(shapes[0].types(), [expected]);
    assert_eq!(
        program.models(),
        [Trained::Trees(Forest::new(parts()).unwrap())]
    );
    // One digit of one leaf is another program.
    let other = Program::read(&TEXT.replace("0.30", "0.31")).unwrap();
    assert_ne!(other, program);
    for (from, to) in [
        ("41.5", "41.50"),
        ("-2.50", "-2.5"),
        ("(tree (if (< ", "(tree 0.00)\n    (tree (if (<  "),
        ("(in #1 0 2)", "(in #1 00 2)"),
    ] {
        assert!(Program::read(&TEXT.replace(from, to)).is_err(), "{to}");
    }
    let unknown = Program::read(&TEXT.replace("(predict \"risk\"", "(predict \"rusk\""));
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "`\"rusk\"` is no name of a model"
    );
    let unused = TEXT.replace("(predict \"risk\" value #0 #1)", "#0");
    assert_eq!(
        Program::read(&unused).unwrap_err().to_string(),
        "the text is not in the canonical form"
    );
    let set = TEXT.replace("(in #1 0 2)", "(in #1 0 1 2)");
    assert_eq!(
        Program::read(&set).unwrap_err().to_string(),
        "a split by `ward` compares it with a set of some of its values and not of all, in order"
    );
}

#[test]
fn trees_are_walked() {
    let program = Program::read(TEXT).unwrap();
    let row =
        |age: Option<i128>, ward| vec![age.map_or(Value::Null, Value::Number), Value::Number(ward)];
    let stays = clear::Input {
        valid: vec![true; 3],
        // 41.5 years go to yes of the first; those of `west`, here 1 and there 2, too; 60 years are not below 60.
        rows: vec![row(Some(415), 0), row(Some(600), 1), row(None, 0)],
    };
    let opened = clear::evaluate(&program, &[stays]).unwrap();
    let mut found = opened[0].rows.concat();
    found.sort_unstable();
    assert_eq!(
        found,
        [Value::Number(-150), Value::Number(1_107), Value::Null]
    );
}

#[test]
fn ties_go_to_the_first_class_and_nulls_where_the_model_says() {
    let scores = |a, b, c| Node::Leaf(vec![a, b, c]);
    let root = split(
        0,
        Test::AtMost(threshold(0, 0)),
        Some(false),
        scores(1, 5, 5),
        scores(0, 0, 0),
    );
    let mut of = parts();
    of.features.truncate(1);
    of.classes = ["much", "little", "none"].map(String::from).to_vec();
    of.base = vec![0, 0, 0];
    let more = |to, units| Tree {
        to: Some(to),
        root: leaf(units),
    };
    of.trees = vec![Tree { to: None, root }, more(2, 4), more(0, 4)];
    let model = Forest::new(of).unwrap();
    assert!(model.tracks_nulls());
    let expr = |output| Expr::Predict {
        model: model.clone(),
        output,
        of: vec![Expr::column(0)],
    };
    let types = [Type::of(Kind::Integer(Range::new(-5, 5).unwrap())).or_null(true)];
    let class = expr(Output::Class).ty(&types).unwrap();
    let Kind::Category(values) = &class.kind else {
        panic!("{class:?}")
    };
    assert!(!class.nullable);
    let row = |x| {
        let literal = Literal::of(x, &types[0].kind).unwrap();
        let (model, output) = (model.clone(), Output::Class);
        let of = vec![Expr::Literal(literal)];
        clear::constant(&Expr::Predict { model, output, of }).unwrap()
    };
    let text = |value| match value {
        Value::Number(index) => values.texts()[index as usize].clone(),
        other => panic!("{other:?}"),
    };
    // 5, 5, 9.
    assert_eq!(text(row(Value::Number(0))), "none");
    // 4, 0, 4.
    assert_eq!(text(row(Value::Number(1))), "much");
    assert_eq!(text(row(Value::Null)), "much");
    let score = expr(Output::Score(1)).ty(&types).unwrap();
    assert_eq!(
        score,
        Type::of(Kind::Decimal {
            places: 2,
            units: Range::new(0, 5).unwrap()
        })
    );
    assert_eq!(
        expr(Output::Value).ty(&types).unwrap_err().to_string(),
        "`(predict \"risk\" value #0)` is not formed as it must be: a model of classes gives a class or the score of one of them, another one a value"
    );
}

#[test]
fn thresholds_are_exact() {
    let most = |units, places, scale, below| threshold(units, places).most(scale, below);
    assert_eq!(most(415, 1, 0, false), Some(41));
    assert_eq!(most(-415, 1, 0, false), Some(-42));
    assert_eq!(most(415, 1, 0, true), Some(41));
    assert_eq!(most(410, 1, 0, true), Some(40));
    assert_eq!(most(-410, 1, 2, true), Some(-4_101));
    assert_eq!(most(1, 30, 0, true), Some(0));
    assert_eq!(most(-1, 30, 0, false), Some(-1));
    // Beyond 128 bits every number is below, or none is.
    assert_eq!(most(i128::MAX, 0, 9, true), Some(i128::MAX));
    assert_eq!(most(i128::MIN, 0, 9, false), None);
    assert_eq!(most(i128::MIN, 0, 0, true), None);
    assert_eq!(threshold(4_150, 2), threshold(415, 1));
    assert_eq!(Threshold::new(1, 31), None);
}

#[test]
fn what_is_no_model_is_refused() {
    let refused = |change: &dyn Fn(&mut ForestParts)| {
        let mut of = parts();
        change(&mut of);
        Forest::new(of).unwrap_err()
    };
    let named = refused(&|of| of.name = "Risk".into());
    assert_eq!(
        named,
        ForestError::Name {
            name: "Risk".into()
        }
    );
    assert_eq!(refused(&|of| of.source = "a\nb".into()), ForestError::Text);
    assert_eq!(
        refused(&|of| of.source = "x".repeat(201)),
        ForestError::Text
    );
    let twice = refused(&|of| of.features[1].name = "age".into());
    assert_eq!(
        twice,
        ForestError::Twice {
            what: "feature",
            name: "age".into()
        }
    );
    assert_eq!(refused(&|of| of.trees.clear()), ForestError::Empty);
    assert_eq!(refused(&|of| of.features.clear()), ForestError::Empty);
    assert_eq!(
        refused(&|of| of.places = 31),
        ForestError::Places { places: 31 }
    );
    assert_eq!(
        refused(&|of| of.base.push(0)),
        ForestError::Leaf { found: 2, wide: 1 }
    );
    assert_eq!(
        refused(&|of| of.trees[0].root = Node::Leaf(vec![])),
        ForestError::Leaf { found: 0, wide: 1 }
    );
    assert_eq!(
        refused(&|of| of.trees[0].to = Some(0)),
        ForestError::NoClass { class: 0 }
    );
    assert_eq!(
        refused(&|of| of.classes = vec!["a".into()]),
        ForestError::OneClass
    );
    let classes = refused(&|of| of.classes = vec!["a".into(), "b".into(), "a".into()]);
    assert_eq!(
        classes,
        ForestError::Twice {
            what: "class",
            name: "a".into()
        }
    );
    let by = |feature, test: Test| {
        move |of: &mut ForestParts| {
            of.trees[0].root = split(feature, test.clone(), None, leaf(0), leaf(1));
        }
    };
    assert_eq!(
        refused(&by(2, Test::In(vec![0]))),
        ForestError::NoFeature { feature: 2 }
    );
    for (feature, test) in [
        (0, Test::In(vec![0])),
        (1, Test::AtMost(threshold(1, 0))),
        (1, Test::In(vec![])),
        (1, Test::In(vec![1, 0])),
        (1, Test::In(vec![1, 1])),
        (1, Test::In(vec![3])),
        (1, Test::In(vec![0, 1, 2])),
    ] {
        assert!(matches!(
            refused(&by(feature, test)),
            ForestError::Test { .. }
        ));
    }
    let nulls = refused(&|of| {
        of.trees[1].root = split(
            0,
            Test::Below(threshold(1, 0)),
            Some(true),
            leaf(0),
            leaf(1),
        );
    });
    assert_eq!(nulls, ForestError::Nulls);
    let wide = refused(&|of| {
        of.trees = vec![Tree {
            to: None,
            root: leaf(i128::MAX),
        }];
    });
    assert_eq!(wide, ForestError::TooWide);
    let chain = |depth: usize| {
        (0..depth).fold(leaf(0), |below, at| {
            split(
                0,
                Test::AtMost(threshold(at as i128, 0)),
                None,
                leaf(1),
                below,
            )
        })
    };
    let deep = |depth| move |of: &mut ForestParts| of.trees[0].root = chain(depth);
    assert_eq!(
        refused(&deep(MOST_DEPTH + 1)),
        ForestError::Many {
            what: "levels of splits",
            most: MOST_DEPTH
        }
    );
    let mut of = parts();
    deep(MOST_DEPTH)(&mut of);
    assert_eq!(Forest::new(of).unwrap().size().depth, MOST_DEPTH);
    let many = refused(&|of| of.trees[0].root = full(13));
    assert_eq!(
        many,
        ForestError::Many {
            what: "leaves in a tree",
            most: MOST_LEAVES
        }
    );
    let all = refused(&|of| {
        of.trees = vec![
            Tree {
                to: None,
                root: full(12)
            };
            65
        ];
    });
    assert_eq!(
        all,
        ForestError::Many {
            what: "leaves",
            most: 1 << 18
        }
    );
}

#[test]
fn arguments_are_those_of_the_model() {
    let model = Forest::new(parts()).unwrap();
    let ward = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Type::of(Kind::Category(Values::new(texts).unwrap()))
    };
    let error = |types: &[Type]| -> TypeError {
        let of = (0..types.len() as u32).map(Expr::column).collect();
        let expr = Expr::Predict {
            model: model.clone(),
            output: Output::Value,
            of,
        };
        expr.ty(types).unwrap_err()
    };
    let age = Type::of(Kind::Integer(Range::new(0, 120).unwrap()));
    assert_eq!(
        error(&[age.clone(), ward(&["east", "south"])]).to_string(),
        "model `risk` does not know the value `south` of its feature `ward`"
    );
    assert_eq!(
        error(&[ward(&["east"]), ward(&["east"])]).to_string(),
        "`(predict \"risk\" value #0 #1)` takes numbers and bools, and not category of 1 values"
    );
    assert_eq!(
        error(&[age.clone(), age.clone()]).to_string(),
        "`(predict \"risk\" value #0 #1)` takes a category, and not integer"
    );
    assert_eq!(
        error(&[age]).to_string(),
        "`(predict \"risk\" value #0)` is not formed as it must be: an argument for each feature of the model"
    );
}

/// A tree whose leaves are all of one depth.
fn full(depth: usize) -> Node {
    if depth == 0 {
        return leaf(0);
    }
    split(
        0,
        Test::AtMost(threshold(0, 0)),
        None,
        full(depth - 1),
        full(depth - 1),
    )
}
