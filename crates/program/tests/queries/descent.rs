//! Regressions by gradient descent: what a job file says, what is said of them, and what is refused.

use std::fmt::Write as _;

use super::{JOB, NORTH, case};

const FIT: &str = "sql = \"SELECT pay, ward = 'a' AS a, ok FROM stays\"\nfit = { family = \"logistic\", target = \"ok\", method = \"gradient\", rate = \"0.5\", epochs = 3 }\nmin_count = 3\n";

fn job(more: &str) -> String {
    let fit = FIT.replace("epochs = 3", &format!("epochs = 3{more}"));
    JOB.replace(
        "sql = \"SELECT since, ward, pay, ok, beds FROM stays\"\n",
        &fit,
    )
}

#[test]
fn a_model_is_said() {
    for (more, by) in [
        (
            "",
            "by gradient descent at rate 0.5 in 3 epochs of all rows; coefficients over half their range are within 32 of 0; of at least 3 and at most 10 rows; \
             features have 20 binary places over half their range",
        ),
        (
            ", batch = 5, momentum = \"0.90\", limit = 8, ridge = \"2\"",
            "penalised by 2.0, by gradient descent at rate 0.5 with momentum 0.9 in 3 epochs of 2 batches of up to 5 rows, in a secret order of rows; those of the last batches weigh most; \
             coefficients over half their range are within 8 of 0; of at least 3 and at most 10 rows; features have 20 binary places over half their range",
        ),
    ] {
        let job = case(&job(more), NORTH).load().unwrap();
        let queries = job.queries().unwrap();
        let rest = "A model is a function of all rows: it may show single ones where they are few or unusual";
        assert_eq!(
            queries.models(),
            [format!(
                "all_stays: a logistic regression on pay, a, {by}. {rest}"
            )]
        );
        assert_eq!(
            queries.operations().into_iter().collect::<Vec<_>>(),
            ["regression"]
        );
        assert_eq!(queries.shows(), (3, 3));
    }
}

/// Everything that is said of a model is under the plan hash.
#[test]
fn each_word_changes_the_plan() {
    let hash = |text: &str| {
        let case = case(text, NORTH).load().unwrap();
        case.passes().map(|passes| format!("{passes:?}")).unwrap()
    };
    let first = hash(&job(", batch = 5"));
    for other in [
        "",
        ", batch = 4",
        ", batch = 5, momentum = \"0.5\"",
        ", batch = 5, limit = 31",
        ", batch = 5, places = 5",
        ", batch = 5, ridge = \"0.5\"",
    ] {
        assert_ne!(first, hash(&job(other)), "{other}");
    }
    for (from, to) in [
        ("epochs = 3", "epochs = 4"),
        ("\"0.5\"", "\"0.51\""),
        ("logistic", "linear"),
    ] {
        assert_ne!(first, hash(&job(", batch = 5").replace(from, to)), "{to}");
    }
    let said = ", batch = 5, momentum = \"0\", limit = 32, places = 6, ridge = \"0\"";
    assert_eq!(first, hash(&job(said)));
    // The words of Newton's method are those without a method.
    let newton = |method: &str| {
        let of = ", method = \"gradient\", rate = \"0.5\", epochs = 3";
        hash(&job("").replace(of, method))
    };
    assert_eq!(newton(""), newton(", method = \"newton\""));
}

#[test]
fn mistakes() {
    let mut wrong = String::new();
    let mut refused = |text: &str, expected: &str| {
        let Err(found) = case(text, NORTH).load() else {
            panic!("{expected}: it is accepted")
        };
        if !found.contains(expected) {
            writeln!(wrong, "{found}\n  {expected}").unwrap();
        }
    };
    for (more, expected) in [
        (", batch = 0", "`batch` is `0`: a batch has 1 row or more"),
        (
            ", batch = 11",
            "a batch has 1 to 10 rows, as many as there are places for rows, and this has 11",
        ),
        (
            ", batch = 2",
            "a step of this model is of as few as 2 rows, those of a batch, and a model is of at least 3: choose larger batches, or lower `min_count`",
        ),
        (
            ", steps = 4",
            "a model `logistic` by gradient descent has no use for `steps`; remove it",
        ),
        (
            ", momentum = \"1\"",
            "`momentum` is \"1\": the momentum of gradient descent is from 0 to 0.99, with up to 6 decimal places",
        ),
        (
            ", momentum = \"-0.5\"",
            "`momentum` is \"-0.5\": the momentum of gradient descent is from 0 to 0.99, with up to 6 decimal places",
        ),
        (
            ", limit = 0",
            "`limit` is `0`: the limit of coefficients is 1 to 1024, and this is 0",
        ),
        (
            ", limit = 1025",
            "`limit` is `1025`: the limit of coefficients is 1 to 1024, and this is 1025",
        ),
        (
            ", ridge = \"900000000000000000\"",
            "a step of gradient descent may need 129 bits where there are 128: choose a smaller rate, momentum, penalty or limit, or declare narrower ranges",
        ),
        (", method = \"gradients\"", "duplicate key"),
    ] {
        refused(&job(more), expected);
    }
    let rate =
        "the rate of gradient descent is above 0 and up to 1000, with up to 6 decimal places";
    let rates = [
        "0",
        "-0.5",
        "1000.5",
        "0.0000001",
        "fast",
        "99999999999999999999",
    ]
    .map(|rate| {
        (
            "rate = \"0.5\"",
            format!("rate = \"{rate}\""),
            format!("`rate` is \"{rate}\": "),
        )
    });
    for (from, to, at) in rates {
        refused(&job("").replace(from, &to), &format!("{at}{rate}"));
    }
    for (from, to, expected) in [
        (
            "epochs = 3",
            "epochs = 0",
            "`epochs` is `0`: there are 1 to 2048 epochs",
        ),
        (
            "epochs = 3",
            "epochs = 2049",
            "`epochs` is `2049`: there are 1 to 2048 epochs",
        ),
        (
            "epochs = 3",
            "epochs = 700, batch = 3",
            "a model by gradient descent takes 1 to 2048 steps, and 700 epochs of 4 batches are 2800: choose larger batches, or other epochs",
        ),
        (
            "rate = \"0.5\", ",
            "",
            "a model `logistic` by gradient descent needs `rate`; add it",
        ),
        (
            ", epochs = 3",
            "",
            "a model `logistic` by gradient descent needs `epochs`; add it",
        ),
        (
            "\"gradient\"",
            "\"sgd\"",
            "`method` is \"sgd\": write one of \"newton\", \"gradient\"",
        ),
        (
            "\"gradient\"",
            "\"newton\"",
            "a model `logistic` by Newton's method has no use for `epochs`; remove it",
        ),
        (
            "method = \"gradient\", rate = \"0.5\", epochs = 3",
            "momentum = \"0.5\"",
            "a model `logistic` by Newton's method has no use for `momentum`; remove it",
        ),
        (
            "\"logistic\"",
            "\"tree\"",
            "a model `tree` has no use for `method`; remove it",
        ),
        (
            "family = \"logistic\", target = \"ok\", method = \"gradient\", rate = \"0.5\", epochs = 3",
            "family = \"pca\", components = 1, batch = 4",
            "a model `pca` has no use for `batch`; remove it",
        ),
    ] {
        assert!(job("").contains(from), "{from}");
        refused(&job("").replace(from, to), expected);
    }
    assert!(wrong.is_empty(), "{wrong}");
}
