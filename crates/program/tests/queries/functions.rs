//! Functions that a job gives by their values: read, explained, under the plan hash, and refused.

use super::{JOB, NORTH, case};

const TAX: &str = "[function.tax]
first = \"-10.0\"
step = \"0.1\"
scale = 3
values = [0, \"0.14\", \"0.240\", 1]

[function.weight]
of = [\"c\", \"a\", \"b\"]
values = [3, -1, 2]

";

fn text(functions: &str, asked: &str) -> String {
    let job = JOB.replace("SELECT since, ward, pay, ok, beds FROM stays", asked);
    job.replace("[query]", &format!("{functions}[query]"))
}

const ASKED: &str = "SELECT weight(ward) AS w, tax(least(round(pay, 1), -9.7)) AS t FROM stays";

#[test]
fn functions_are_read_and_explained() {
    let job = case(&text(TAX, ASKED), NORTH).load().unwrap();
    let queries = job.queries().unwrap();
    assert_eq!(
        queries.functions(),
        [
            "`tax` of -10.0 to -9.7: 0.000 to 1.000",
            "`weight` of 3 texts: -1 to 3"
        ]
    );
    // In the plan, and in the order of the category.
    let program = queries.program().to_string();
    assert!(
        program.contains("(lookup #0 (integer -1 3) (-1 2 3))"),
        "{program}"
    );
    assert!(program.contains(" -100 (0 140 240 1000))"), "{program}");
}

#[test]
fn the_plan_has_all_that_a_function_says() {
    let plan = |text: &str| {
        let job = case(text, NORTH).load().unwrap();
        job.passes().unwrap().clone()
    };
    let whole = text(TAX, ASKED);
    assert_eq!(plan(&whole), plan(&whole.replace("1]", "\"1.000\"]")));
    for (from, to) in [
        ("\"0.14\"", "\"0.141\""),
        ("\"-10.0\"", "\"-10.1\""),
        ("[\"c\", \"a\", \"b\"]", "[\"a\", \"c\", \"b\"]"),
        // No query calls it then.
        ("weight(ward) AS w", "3 AS w"),
    ] {
        let other = whole
            .replace(from, to)
            .replace("-9.7", if to == "\"-10.1\"" { "-9.8" } else { "-9.7" });
        assert_ne!(plan(&whole), plan(&other), "{to}");
    }
    let uncalled = whole.replace("weight(ward) AS w", "3 AS w");
    assert_ne!(
        plan(&uncalled),
        plan(&uncalled.replace("[3, -1, 2]", "[3, -1, 1]"))
    );
}

#[test]
fn what_is_no_function_is_refused() {
    let many = vec!["1"; 4097].join(",");
    let cases = [
        (
            "values = [0, \"0.14\", \"0.240\", 1]",
            "values = []",
            "23:11: function `tax`: a function has 1 to 4096 values",
        ),
        (
            "values = [0, \"0.14\", \"0.240\", 1]",
            &format!("values = [{many}]"),
            "23:11: function `tax`: a function has 1 to 4096 values",
        ),
        (
            "\"0.14\"",
            "\"0.1401\"",
            "27:14: `values` is `0.1401`: has more than 3 digits after the point; round it, or raise the scale of the column",
        ),
        (
            "\"0.14\"",
            "0.14",
            "27:14: `values` is `0.14`: write it in quotes, such as \"1.50\", so that no digit is lost",
        ),
        (
            "\"0.14\"",
            "\"x\"",
            "27:14: `values` is `x`: is not a number",
        ),
        (
            "\"0.14\"",
            "\"9999999999999999\"",
            "27:14: `values` is `9999999999999999`: it is too large; a bound is at most 4611686018427387.904, or -4611686018427387.904",
        ),
        (
            "scale = 3",
            "scale = 19",
            "26:9: `scale` is `19`: at most 18 digits are kept",
        ),
        (
            "step = \"0.1\"",
            "step = \"0.5\"",
            "25:8: `step` is `0.5`: arguments are 1, \"0.1\", \"0.01\", … apart",
        ),
        (
            "step = \"0.1\"",
            "step = 2",
            "25:8: `step` is `2`: arguments are 1, \"0.1\", \"0.01\", … apart",
        ),
        (
            "first = \"-10.0\"",
            "first = \"-10.05\"",
            "24:9: `first` is `-10.05`: has more than 1 digits after the point; round it, or raise the scale of the column",
        ),
        (
            "first = \"-10.0\"",
            "",
            "23:1: function `tax` needs `first`; add it",
        ),
        (
            "of = [\"c\", \"a\", \"b\"]",
            "of = [\"c\", \"a\", \"b\"]\nfirst = 3",
            "31:9: function `weight` of texts has no use for `first`; remove it",
        ),
        (
            "of = [\"c\", \"a\", \"b\"]",
            "of = [\"c\", \"a\", \"b\"]\nstep = 1",
            "31:8: function `weight` of texts has no use for `step`; remove it",
        ),
        (
            "of = [\"c\", \"a\", \"b\"]",
            "of = [\"c\", \"a\", \"c\"]",
            "30:17: text `c` is named twice; rename or remove one",
        ),
        (
            "values = [3, -1, 2]",
            "values = [3, -1]",
            "29:11: function `weight`: a function of texts has one value for each of them",
        ),
        (
            "[function.tax]",
            "[function.ln]",
            "23:11: function `ln`: SQL has a function or a word of this name; choose another one",
        ),
        (
            "[function.tax]",
            "[function.Tax]",
            "23:11: function `Tax`: the name of a function has lower-case letters, digits and `_`",
        ),
        (
            "scale = 3",
            "scale = 3\nlast = 4",
            "27:1: unknown field `last`, expected one of `first`, `step`, `of`, `scale`, `values`",
        ),
    ];
    let mut wrong = Vec::new();
    for (from, to, expected) in cases {
        assert!(TAX.contains(from), "{from}");
        let found = case(&text(&TAX.replacen(from, to, 1), ASKED), NORTH)
            .load()
            .unwrap_err();
        if found.lines().next() != Some(&format!("job.toml:{expected}")) {
            wrong.push(format!("{found}\n  for {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_argument_beyond_is_refused_at_its_place() {
    let asked = "SELECT tax(round(pay, 1)) AS t FROM stays";
    let found = case(&text(TAX, asked), NORTH).load().unwrap_err();
    assert!(
        found.contains("`tax(x)` has values for -10.0 to -9.7; x is -10.0 to 10000.0")
            && found
                .ends_with("write least(x, -9.7) in the place of x, or declare narrower ranges"),
        "{found}"
    );
}

#[test]
fn circuits_have_no_functions() {
    let text = text(TAX, ASKED).replace("kind = \"query\"", "kind = \"circuit\"");
    let found = case(&text, NORTH).load().unwrap_err();
    assert!(
        found.contains("a circuit job has no `[[table]]`")
            || found.contains("a circuit job has no `[function]`"),
        "{found}"
    );
}
