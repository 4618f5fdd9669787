//! Networks: what a job binds to the rows of a query, what is refused, and what rules make of it.

use veil_query::{
    Application, Job, Model, ModelKind, QueryError, SortedBytes, bind, compile, families, rules,
};
use veil_relation::network::{Activation, Layer, NetworkParts, Readout};
use veil_relation::{Family, Network, Plan, Program, Reveal, Trained, Value, clear};

use crate::common;

fn network(name: &str, features: &[&str], readout: Readout) -> NetworkParts {
    let outputs = match &readout {
        Readout::Values(names) | Readout::Classes(names) => names.len(),
    };
    let hidden = Layer::Dense {
        weights: vec![vec![25; features.len()], vec![-50; features.len()]],
        bias: vec![100, 0],
    };
    let last = Layer::Dense {
        weights: (0..outputs as i64).map(|at| vec![at, -at]).collect(),
        bias: vec![1; outputs],
    };
    NetworkParts {
        name: name.into(),
        source: "a test".into(),
        features: features.iter().map(|name| (*name).to_owned()).collect(),
        cells: [features.len() as u32, 1, 1],
        places: 2,
        layers: vec![hidden, Layer::Activation(Activation::Relu), last],
        readout,
    }
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

/// A number of age and income, and one of three classes of three columns.
fn models() -> Vec<Trained> {
    let risk = network(
        "risk",
        &["income", "age"],
        Readout::Values(texts(&["risk"])),
    );
    let sort = network(
        "sort",
        &["age", "active", "income"],
        Readout::Classes(texts(&["mild", "bad", "good"])),
    );
    let mut trees = crate::forests::models();
    trees.truncate(1);
    let Trained::Trees(trees) = &trees[0] else {
        panic!("it is a model of trees")
    };
    let mut parts = trees.parts().clone();
    parts.name = "trees".into();
    let trees = veil_relation::Forest::new(parts).unwrap();
    vec![
        Network::new(risk).unwrap().into(),
        Network::new(sort).unwrap().into(),
        trees.into(),
    ]
}

fn application(model: &str, scores: bool) -> Application {
    Application {
        model: model.into(),
        places: 3,
        scores,
        weights: None,
    }
}

fn job(model: &str, scores: bool, sql: &str) -> Job {
    let mut job = common::job(common::tables(40, 60), sql);
    job.models = models();
    job.queries[0].apply = Some(application(model, scores));
    job
}

/// The names of the columns that a query gives.
fn columns(job: &Job) -> Vec<String> {
    let fields = veil_query::fields(job, &SortedBytes).unwrap();
    fields[0].iter().map(|field| field.name.clone()).collect()
}

const PEOPLE: &str = "SELECT id, age, city, income, active FROM people";

#[test]
fn features_make_place_for_what_a_network_gives() {
    let asked = job("risk", false, PEOPLE);
    assert_eq!(columns(&asked), ["id", "city", "active", "risk"]);
    let program = bind(&asked, &SortedBytes).unwrap();
    let text = program.to_string();
    // The features are in the order of the network, and not in that of the query.
    assert!(
        text.contains("(apply\n"),
        "the operator has its input below it: {text}"
    );
    assert!(text.contains("(features #3 #1)"), "{text}");
    assert!(
        text.contains("(columns (\"id\" #0) (\"city\" #2) (\"active\" #4) (\"risk\" #5))"),
        "{text}"
    );
    for program in [program, compile(&asked, &SortedBytes).unwrap()] {
        assert_eq!(Program::read(&program.to_string()).as_ref(), Ok(&program));
        assert_eq!(program.models(), [models()[0].clone()]);
    }
    assert_eq!(
        columns(&job("sort", false, PEOPLE)),
        ["id", "city", "class"]
    );
    assert_eq!(
        columns(&job("sort", true, PEOPLE)),
        ["id", "city", "class", "score_0", "score_1", "score_2"]
    );
    assert_eq!(
        columns(&job("risk", false, "SELECT income, age FROM people")),
        ["risk"]
    );
}

#[test]
fn rows_keep_their_order_and_their_number() {
    let sql = "SELECT id, age, income FROM people ORDER BY income DESC, id LIMIT 7";
    let asked = job("risk", false, sql);
    let inputs = common::rows(&asked.tables, 5);
    let applied = compile(&asked, &SortedBytes).unwrap();
    let mut plain = asked.clone();
    plain.queries[0].apply = None;
    let plain = compile(&plain, &SortedBytes).unwrap();
    let ids = |program: &Program| -> Vec<Value> {
        let opened = clear::evaluate(program, &inputs).unwrap();
        opened[0].rows.iter().map(|row| row[0]).collect()
    };
    assert_eq!(ids(&applied).len(), 7);
    assert_eq!(ids(&applied), ids(&plain));
    let mut sorted = ids(&plain);
    sorted.sort_unstable();
    assert_ne!(ids(&applied), sorted);
}

#[test]
fn a_later_query_reads_what_a_network_gives() {
    let mut asked = job("sort", true, PEOPLE);
    asked.queries[0].name = "sorted".into();
    asked.queries[0].to = None;
    let sql = "SELECT class, count(*) AS n, avg(score_2 - score_0) AS gap FROM sorted WHERE class IS NOT NULL AND class IN ('bad', 'good', 'mild') GROUP BY class ORDER BY class";
    asked.queries.push(common::query(sql));
    let program = compile(&asked, &SortedBytes).unwrap();
    let inputs = common::rows(&asked.tables, 5);
    let opened = clear::evaluate(&program, &inputs).unwrap().remove(0);
    let counted = opened.rows.iter().map(|row| match row[1] {
        Value::Number(rows) => rows,
        other => panic!("{other:?}"),
    });
    let people = &inputs[0];
    // Income, age and whether they are active.
    let known = |row: &[Value]| !row[3..6].contains(&Value::Null);
    let known = people
        .rows
        .iter()
        .zip(&people.valid)
        .filter(|(row, valid)| **valid && known(row));
    let known = known.count() as i128;
    assert!(known > 0 && known < 40, "{known}");
    assert_eq!(counted.sum::<i128>(), known);
}

#[test]
fn groups_have_a_minimal_count() {
    let sql = "SELECT city, round(avg(age), 1) AS age, max(income) AS income FROM people GROUP BY city ORDER BY city";
    let mut asked = job("risk", false, sql);
    asked.queries[0].min_count = 6;
    let text = compile(&asked, &SortedBytes).unwrap().to_string();
    assert!(text.contains("(min-rows 6)"), "{text}");
    let mut asked = job("risk", false, PEOPLE);
    asked.queries[0].min_count = 6;
    assert_eq!(
        compile(&asked, &SortedBytes).unwrap_err().to_string(),
        "q: a minimal count is of groups, and this query has none"
    );
}

#[test]
fn what_no_network_is_applied_to_is_refused() {
    let refused = |job: &Job| compile(job, &SortedBytes).unwrap_err().to_string();
    let of = |model: &str, sql: &str| refused(&job(model, false, sql));
    assert_eq!(
        of("rusk", PEOPLE),
        "q: the job has no model `rusk`: it is declared as [model.rusk]"
    );
    assert_eq!(
        of("trees", PEOPLE),
        "q: `trees` is a model of trees, which SQL applies: write predict('trees', …) in the query"
    );
    assert_eq!(
        of("risk", "SELECT id, age FROM people"),
        "q: `income` is a feature of network `risk`, and no column of the query; select it by this name"
    );
    assert_eq!(
        of("risk", "SELECT age, income, id AS age FROM people"),
        "q: `age` is a feature of network `risk`, and the name of two columns of the query"
    );
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    assert_eq!(
        first(of("risk", "SELECT id AS risk, age, income FROM people")),
        "query `q`, line 1, column 1: network `risk` gives a column `risk`, and its rows have one of this name; rename that one"
    );
    assert_eq!(
        first(of("risk", "SELECT id, city AS age, income FROM people")),
        "query `q`, line 1, column 1: feature `age` of network `risk` is a number or a condition, and not category of 5 values"
    );
    let mut places = job("risk", false, PEOPLE);
    places.queries[0].apply.as_mut().unwrap().places = 10;
    assert_eq!(
        first(refused(&places)),
        "query `q`, line 1, column 1: what a network gives has up to 9 decimal places, and not 10"
    );
    assert_eq!(
        first(refused(&job("risk", true, PEOPLE))),
        "query `q`, line 1, column 1: apply: a network of numbers has no scores of classes; leave out `scores`"
    );
    let mut fitted = job("risk", false, PEOPLE);
    fitted.queries[0].fit = Some(Model {
        kind: ModelKind::Regression {
            family: Family::Linear,
            target: "income".into(),
            ridge: (0, 1),
            stepping: None,
        },
        iterations: 2,
        places: 3,
    });
    assert_eq!(
        refused(&fitted),
        "q: a query has `fit` or `apply`, and not both; apply the network in a query of its own"
    );
    assert!(matches!(
        compile(&fitted, &SortedBytes),
        Err(QueryError::Apply { .. })
    ));
    let mut twice = job("risk", false, PEOPLE);
    let Trained::Trees(trees) = &twice.models[2] else {
        panic!("it is a model of trees")
    };
    let mut parts = trees.parts().clone();
    parts.name = "risk".into();
    twice.models[2] = veil_relation::Forest::new(parts).unwrap().into();
    assert_eq!(refused(&twice), "risk: two models have one name");
}

#[test]
fn a_network_is_not_called() {
    for call in [
        "predict('risk', income, age)",
        "predict_score('sort', 'bad', age)",
    ] {
        let (name, rest) = call.split_once("('").unwrap();
        let (model, _) = rest.split_once('\'').unwrap();
        let sql = format!("SELECT {call} AS x FROM people");
        let mut asked = job("risk", false, &sql);
        asked.queries[0].apply = None;
        assert_eq!(
            compile(&asked, &SortedBytes).unwrap_err().to_string(),
            format!(
                "query `q`, line 1, column 8: `{model}` is a network, which a job applies to all rows of a query, and {name} is of models of trees
  {sql}
         ^
  select its features by their names, and write apply = {{ model = \"…\" }} beside sql"
            )
        );
    }
}

/// Words of owners about a feature are about what the network gives, at the place of the feature.
#[test]
fn words_of_owners_go_with_what_a_network_gives() {
    let mut asked = job("risk", false, "SELECT id,\n  age, income FROM people");
    let of_people = &mut asked.tables[0].columns;
    let age = of_people.iter_mut().find(|of| of.name == "age").unwrap();
    age.consent = Some(veil_relation::Consent {
        may: [].into(),
        reveal: Reveal::Aggregates,
    });
    let error = compile(&asked, &SortedBytes).unwrap_err().to_string();
    assert!(
        error.starts_with("query `q`, line 2, column 3: `north` does not allow that values of rows of column `age` of `people` are opened"),
        "{error}"
    );
}

#[test]
fn one_question_with_other_weights_is_one_family() {
    let of = |job: &Job| families(job, &SortedBytes).unwrap();
    let asked = job("risk", false, PEOPLE);
    let mut other = asked.clone();
    let mut parts = network(
        "risk",
        &["income", "age"],
        Readout::Values(texts(&["risk"])),
    );
    parts.layers.pop();
    parts.layers.push(Layer::Dense {
        weights: vec![vec![7, 9]],
        bias: vec![3],
    });
    other.models[0] = Network::new(parts).unwrap().into();
    other.queries[0].apply.as_mut().unwrap().places = 5;
    assert_eq!(of(&asked), of(&other));
    let programs = [&asked, &other].map(|job| compile(job, &SortedBytes).unwrap().to_string());
    assert_ne!(programs[0], programs[1]);
    // What is asked of other columns, or not of a network, is another question.
    let sort = job("sort", false, PEOPLE);
    let scores = job("sort", true, PEOPLE);
    let mut plain = asked.clone();
    plain.queries[0].apply = None;
    let all = [&asked, &sort, &scores, &plain].map(of);
    for (at, one) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|before| before != one));
    }
}

/// The program of a network over people, below this operator of its result.
fn over(job: &Job, above: impl FnOnce(Box<Plan>) -> Plan) -> Program {
    let mut program = bind(job, &SortedBytes).unwrap();
    let step = &mut program.steps[0];
    let Plan::Open { input, to } = step.plan.clone() else {
        panic!("it opens")
    };
    let Plan::Project { input, .. } = *input else {
        panic!("it leaves out features")
    };
    step.plan = Plan::Open {
        input: Box::new(above(input)),
        to,
    };
    program.check().unwrap();
    program
}

fn opened(program: &Program, job: &Job) -> Vec<Vec<Value>> {
    let inputs = common::rows(&job.tables, 5);
    clear::evaluate(program, &inputs).unwrap().remove(0).rows
}

fn columns_of(ids: &[u32]) -> Vec<veil_relation::Named> {
    let named = |id: &u32| veil_relation::Named {
        name: format!("c{id}"),
        expr: veil_relation::Expr::column(*id),
    };
    ids.iter().map(named).collect()
}

#[test]
fn what_nothing_reads_is_not_read() {
    // Columns of the query: id, age, city, income, active; then the class and three scores.
    let asked = job("sort", true, PEOPLE);
    let pruned = |ids: &[u32]| {
        let before = over(&asked, |input| Plan::Project {
            input,
            columns: columns_of(ids),
        });
        let mut after = before.clone();
        rules::prune(&mut after).unwrap();
        assert_eq!(opened(&before, &asked), opened(&after, &asked), "{ids:?}");
        after.to_string()
    };
    let class = pruned(&[5]);
    assert!(class.contains("(scores false)"), "{class}");
    // Neither the id nor the city is scanned: age, income and active are features.
    assert!(class.contains("(scan \"people\" #3 #4 #5)"), "{class}");
    let score = pruned(&[7, 0]);
    assert!(score.contains("(scores true)"), "{score}");
    assert!(score.contains("(scan \"people\" #0 #3 #4 #5)"), "{score}");
    let none = pruned(&[2]);
    assert!(!none.contains("(apply"), "{none}");
    assert!(!none.contains("(network"), "{none}");
}

#[test]
fn conditions_on_rows_go_below_a_network() {
    use veil_relation::{Comparison, Expr};
    let asked = job("sort", true, PEOPLE);
    let of_row = Expr::compare(Comparison::Lt, Expr::column(1), Expr::integer(40));
    let of_score = Expr::compare(Comparison::Le, Expr::column(6), Expr::column(8));
    let before = over(&asked, |input| Plan::Filter {
        input,
        predicate: Expr::And(vec![of_row.clone(), of_score.clone()]),
    });
    let mut after = before.clone();
    rules::push(&mut after).unwrap();
    assert_eq!(opened(&before, &asked), opened(&after, &asked));
    let Plan::Open { input, .. } = &after.steps[0].plan else {
        panic!("it opens")
    };
    let Plan::Filter { input, predicate } = &**input else {
        panic!("{input}")
    };
    assert_eq!(*predicate, of_score);
    let Plan::Apply { input, .. } = &**input else {
        panic!("{input}")
    };
    let below = input.to_string();
    assert!(below.contains("(filter (< #"), "{below}");
}
