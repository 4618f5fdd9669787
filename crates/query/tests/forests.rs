//! Models of trees: parties open what the clear has, and what is no call is refused at its place.

use veil_query::{Job, SortedBytes, compile};
use veil_relation::forest::{
    Feature, FeatureKind, ForestParts, Node, Split, Test, Threshold, Tree,
};
use veil_relation::{Forest, Program, Trained, Values};

use crate::common::{self, Random, job};
use crate::parties::{opens_what_it_means, securities};

fn split(feature: u16, test: Test, null: Option<bool>, yes: Node, no: Node) -> Node {
    Node::Split(Box::new(Split {
        feature,
        test,
        null,
        yes,
        no,
    }))
}

fn feature(name: &str, kind: FeatureKind) -> Feature {
    Feature {
        name: name.into(),
        kind,
    }
}

/// A tree over `age` and `income`, and `active`.
fn tree(random: &mut Random, depth: usize) -> Node {
    if depth == 0 {
        return Node::Leaf(vec![i128::from(random.below(4_000)) - 1_500]);
    }
    let at = random.below(3) as u16;
    let (units, places) = match at {
        0 => (random.below(1_000), 1),
        1 => (random.below(100_000), 2),
        _ => (5, 1),
    };
    let threshold = Threshold::new(units.into(), places).unwrap();
    let test = match random.below(2) {
        0 => Test::AtMost(threshold),
        _ => Test::Below(threshold),
    };
    let null = Some(random.below(2) == 0);
    let (yes, no) = (tree(random, depth - 1), tree(random, depth - 1));
    split(at, test, null, yes, no)
}

/// `risk`, a number whose splits say where nulls go, and `sort`, one of three classes.
pub(crate) fn models() -> Vec<Trained> {
    let mut random = Random(4);
    let trees = (0..5).map(|_| Tree {
        to: None,
        root: tree(&mut random, 4),
    });
    let risk = ForestParts {
        name: "risk".into(),
        source: "a test".into(),
        features: ["age", "income", "active"]
            .map(|name| feature(name, FeatureKind::Number))
            .to_vec(),
        classes: vec![],
        places: 3,
        base: vec![17],
        trees: trees.collect(),
    };
    let cities = ["lima", "nairobi", "o'hare", "oslo", "quito", "rome"]
        .map(String::from)
        .to_vec();
    let cities = Values::new(cities).unwrap();
    let age = Test::AtMost(Threshold::new(355, 1).unwrap());
    let root = split(
        0,
        Test::In(vec![0, 3, 4]),
        None,
        split(
            1,
            age,
            None,
            Node::Leaf(vec![0, 2, 1]),
            Node::Leaf(vec![4, 0, 0]),
        ),
        Node::Leaf(vec![1, 1, 2]),
    );
    let more = split(
        1,
        Test::Below(Threshold::new(50, 0).unwrap()),
        None,
        Node::Leaf(vec![0]),
        Node::Leaf(vec![1]),
    );
    let sort = ForestParts {
        name: "sort".into(),
        source: "a test".into(),
        features: vec![
            feature("city", FeatureKind::Category(cities)),
            feature("age", FeatureKind::Number),
        ],
        classes: ["mild", "bad", "good"].map(String::from).to_vec(),
        places: 0,
        base: vec![0, 0, 0],
        trees: vec![
            Tree { to: None, root },
            Tree {
                to: Some(0),
                root: more,
            },
        ],
    };
    [risk, sort]
        .map(|parts| Forest::new(parts).unwrap().into())
        .to_vec()
}

fn asks(people: u32, sql: &str) -> Job {
    Job {
        models: models(),
        ..job(common::tables(people, 60), sql)
    }
}

const QUERIES: [&str; 5] = [
    "SELECT id, predict('risk', age, income, active) AS risk FROM people ORDER BY id",
    "SELECT id, predict('sort', city, age) AS sort, predict_score('sort', 'bad', city, age) AS bad FROM people ORDER BY id",
    "SELECT predict('sort', city, age) AS sort, count(*) AS n, avg(predict('risk', age, income, active)) AS m FROM people GROUP BY predict('sort', city, age) ORDER BY sort",
    "SELECT id FROM people WHERE predict('sort', city, age) IN ('mild', 'good') OR predict('risk', age, income, true) > 1.25 ORDER BY id",
    "SELECT sum(round(sigmoid(predict('risk', age, v.cost * 2, false)), 4)) AS s FROM people p JOIN visits v ON p.id = v.person",
];

#[test]
fn parties_open_what_the_clear_has() {
    for sql in QUERIES {
        let job = asks(50, sql);
        let inputs = common::rows(&job.tables, 7);
        let program = compile(&job, &SortedBytes).unwrap();
        assert_eq!(
            Program::read(&program.to_string()).as_ref(),
            Ok(&program),
            "{sql}"
        );
        for security in securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
}

/// Sums of a large model over many rows have a circuit among four parties, who add up what several rows have where it is small.
#[test]
fn sums_of_a_large_model_are_planned() {
    let mut random = Random(9);
    let trees = (0..300).map(|_| Tree {
        to: None,
        root: tree(&mut random, 8),
    });
    let large = ForestParts {
        name: "large".into(),
        source: "a test".into(),
        features: ["age", "income", "active"]
            .map(|name| feature(name, FeatureKind::Number))
            .to_vec(),
        classes: vec![],
        places: 3,
        base: vec![17],
        trees: trees.collect(),
    };
    let sql = "SELECT sum(predict('large', age, income, active)) AS s, count(*) AS n FROM people WHERE predict('large', age, income, active) > 3";
    let mut asked = asks(600, sql);
    asked.models = vec![Forest::new(large).unwrap().into()];
    let program = compile(&asked, &SortedBytes).unwrap();
    for security in securities() {
        veil_physical::plan(&program, &crate::parties::participants(security)).unwrap();
    }
}

#[test]
fn applications_are_found_with_their_cost() {
    let program = compile(&asks(50, QUERIES[1]), &SortedBytes).unwrap();
    let uses = program.model_uses().unwrap();
    let found: Vec<(&str, u64)> = uses
        .iter()
        .map(|of| {
            (
                of.model.name(),
                veil_physical::ands(&of.expr, &of.columns).unwrap(),
            )
        })
        .collect();
    let [("sort", class), ("sort", score)] = found[..] else {
        panic!("{found:?}")
    };
    assert!(0 < score && score < class && class < 100, "{found:?}");
}

#[test]
fn what_is_no_call_is_refused() {
    let refused = |sql: &str| {
        let error = compile(&asks(10, sql), &SortedBytes)
            .unwrap_err()
            .to_string();
        let (first, rest) = error.split_once('\n').unwrap();
        let instead = rest.lines().nth(2).map_or("", str::trim);
        format!("{} | {instead}", first.split_once(", ").unwrap().1)
    };
    for (call, said) in [
        (
            "predict()",
            "predict takes the name of a model of the job, in quotes, as its first argument | write predict('risk', age, ward)",
        ),
        (
            "predict(age, 1)",
            "predict takes the name of a model of the job, in quotes, as its first argument | write predict('risk', age, ward)",
        ),
        (
            "predict('rusk', age)",
            "the job has no model `rusk`: it is declared as [model.rusk] | ",
        ),
        (
            "predict('risk', age)",
            "model `risk` takes its 3 features in their order, and not 1: age, income, active | ",
        ),
        (
            "predict('risk', age, income, city)",
            "`(predict \"risk\" value #4 #3 #1)` takes numbers and bools, and not category of 5 values | ",
        ),
        (
            "predict('risk', age, income, income / 3.0)",
            "`(predict \"risk\" value #4 #3 (/ #3 3.0))` takes numbers and bools, and not quotient | ",
        ),
        (
            "predict('risk', age, income, born)",
            "`(predict \"risk\" value #4 #3 #2)` takes numbers and bools, and not date | ",
        ),
        (
            "predict_score('risk', 'x', age)",
            "model `risk` has no classes | write predict(…) for its value",
        ),
        (
            "predict_score('sort', 'worse', city, age)",
            "predict_score takes one of the classes of `sort` as its second argument: 'mild', 'bad', 'good' | ",
        ),
        (
            "predict_score('sort', city, age)",
            "predict_score takes one of the classes of `sort` as its second argument: 'mild', 'bad', 'good' | ",
        ),
        (
            "predict('sort', 'paris', age)",
            "model `sort` does not know the value `paris` of its feature `city` | ",
        ),
        (
            "predict(DISTINCT 'sort', city, age)",
            "DISTINCT, WITHIN GROUP and FILTER stand in aggregates only | ",
        ),
    ] {
        let found = refused(&format!("SELECT {call} FROM people"));
        assert_eq!(found, format!("line 1, column 8: {said}"), "{call}");
    }
    let mut twice = asks(10, QUERIES[0]);
    twice.models = vec![twice.models[0].clone(), twice.models[0].clone()];
    let error = compile(&twice, &SortedBytes).unwrap_err().to_string();
    assert_eq!(error, "risk: two models have one name");
}

/// Owners' words go with what is predicted.
#[test]
fn words_of_owners_go_with_predictions() {
    let mut job = asks(10, QUERIES[0]);
    let age = job.tables[0]
        .columns
        .iter_mut()
        .find(|column| column.name == "age")
        .unwrap();
    age.consent = Some(veil_relation::Consent {
        may: [].into(),
        reveal: veil_relation::Reveal::Aggregates,
    });
    let error = compile(&job, &SortedBytes).unwrap_err().to_string();
    assert!(
        error.contains(
            "`north` does not allow that values of rows of column `age` of `people` are opened"
        ),
        "{error}"
    );
}

#[test]
fn one_question_with_other_models_is_one_family() {
    let families = |job: &Job| veil_query::families(job, &SortedBytes).unwrap();
    let job = asks(10, QUERIES[0]);
    let mut other = job.clone();
    let Trained::Trees(model) = &other.models[0] else {
        panic!("it is a model of trees")
    };
    let mut parts = model.parts().clone();
    parts.base = vec![18];
    other.models[0] = Forest::new(parts).unwrap().into();
    assert_eq!(families(&job), families(&other));
    let programs = [&job, &other].map(|job| compile(job, &SortedBytes).unwrap().to_string());
    assert_ne!(programs[0], programs[1]);
}
