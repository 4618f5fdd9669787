//! Tests and intervals are those of SciPy 1.17.1 and statsmodels 0.15.0.

use std::fmt::Write as _;

use veil_program::stats::{Confidence, Estimate, Figure, Interval};

use super::known::longley;
use super::{HEAD, figures, job, value};
use crate::common::Case;

fn same(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= 1e-10 * want.abs(),
        "{got} is not {want}"
    );
}

fn named<'a>(figures: &'a [Figure], name: &str) -> &'a Figure {
    figures.iter().find(|figure| figure.name == name).unwrap()
}

fn ends(figure: &Figure) -> (f64, f64) {
    figure.interval.as_ref().and_then(Interval::ends).unwrap()
}

/// `statsmodels.api.OLS(...).fit()` of Longley's table.
#[test]
fn a_regression_has_its_tests_and_intervals() {
    let result = longley("confidence = \"0.99\"").statistics();
    let found = figures(&result, "longley", &[]);
    let adjusted = value(found, "adjusted R squared").value().unwrap();
    same(adjusted, 0.992_465_007_628_821_6);
    let all = named(found, "F");
    same(all.estimate.value().unwrap(), 330.285_339_234_397_9);
    let test = all.test.as_ref().unwrap();
    assert_eq!(
        (test.statistic, test.degrees_of_freedom.as_slice()),
        ("F", &[6, 9][..])
    );
    same(test.p_value, 4.984_030_528_737_644e-10);
    for (name, t, p, low, high) in [
        (
            "intercept",
            -3.910_802_918_155_727_3,
            0.003_560_403_663_718_715_6,
            -6_375_978.444_204_014,
            -588_538.824_991_870_7,
        ),
        (
            "deflator",
            0.177_376_028_232_038_88,
            0.863_140_832_807_658_4,
            -260.897_671_523_005_95,
            291.021_416_066_105_7,
        ),
        (
            "gnp",
            -1.069_516_317_223_146_3,
            0.312_681_061_091_815_54,
            -0.144_659_446_674_675_28,
            0.073_021_088_089_332_9,
        ),
        (
            "forces",
            -4.821_985_310_445_219,
            0.000_944_366_764_162_112_8,
            -1.729_582_658_261_553_9,
            -0.336_871_076_085_874_4,
        ),
    ] {
        let figure = named(found, name);
        let test = figure.test.as_ref().unwrap();
        assert_eq!(test.degrees_of_freedom, [9]);
        same(test.value, t);
        same(test.p_value, p);
        let (from, to) = ends(figure);
        same(from, low);
        same(to, high);
    }
    let text = result.to_string();
    for part in [
        "99 % from",
        "F (6 and 9 degrees of freedom)",
        "4.98403e-10",
        "0.992465",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let shown = &json["analyses"][0]["groups"][0]["figures"];
    assert_eq!(shown[5]["interval"]["confidence"], "0.9900");
    assert_eq!(shown[5]["test"]["statistic"], "t");
}

/// A probability far out in the tail keeps its digits: `2 * scipy.stats.t.sf(213.4…, 38)`.
#[test]
fn a_small_probability_is_not_zero() {
    let mut table = String::from("x,y\n");
    for i in 0..40 {
        writeln!(table, "{i},{}", 3 * i + 1 - 2 * (i % 2)).unwrap();
    }
    let result = two(&table, 40, "regression", "of = \"y\"\non = \"x\"").statistics();
    let found = figures(&result, "it", &[]);
    let slope = named(found, "x");
    let test = slope.test.as_ref().unwrap();
    same(test.value, 213.408_101_667_070_87);
    same(test.p_value, 4.058_405_275_855_149e-60);
    let (low, high) = ends(slope);
    same(low, 2.967_825_180_573_570_7);
    same(high, 3.024_670_128_994_908_5);
    same(
        named(found, "F").test.as_ref().unwrap().p_value,
        4.058_405_275_855_169e-60,
    );
}

/// A job of one owner with the decimals `x` and `y`.
fn two(table: &str, rows: usize, kind: &str, more: &str) -> Case {
    let job = format!(
        "{HEAD}
        column = [{{ name = \"x\", type = \"decimal\", scale = 1, min = -1000, max = 1000 }},
                  {{ name = \"y\", type = \"integer\", min = -1000, max = 1000 }}]
        [[block]]
        name = \"all\"
        rows = {rows}
        holds = {{ a = [\"x\", \"y\"] }}
        files = {{ a = \"two.csv\" }}
        [[analysis]]
        name = \"it\"
        kind = \"{kind}\"
        {more}
        to = \"press\"
        "
    );
    Case::new(&[("job.toml", &job), ("two.csv", table)])
}

const SIX: &str = "x,y\n1.5,2\n2.5,1\n4,5\n7.5,6\n9,9\n-3.5,-1\n";

/// `scipy.stats.t.interval(0.9, 5, mean, sem)`, and the same of 95 %.
#[test]
fn a_mean_has_an_interval() {
    let mean = |more: &str| {
        let result = two(SIX, 6, "variance", &format!("of = \"x\"\n{more}")).statistics();
        named(figures(&result, "it", &[]), "mean").clone()
    };
    let ninety = mean("confidence = \"0.9\"");
    same(ninety.standard_error.unwrap(), 1.830_300_521_772_313);
    let (low, high) = ends(&ninety);
    same(low, -0.188_144_089_107_885_38);
    same(high, 7.188_144_089_107_883);
    let usual = mean("");
    assert_eq!(
        usual.interval.as_ref().unwrap().confidence,
        Confidence::USUAL
    );
    let (low, high) = ends(&usual);
    same(low, -1.204_937_275_023_576_5);
    same(high, 8.204_937_275_023_577);
    assert_eq!(usual.test, None);
}

/// `scipy.stats.pearsonr`, and its `confidence_interval`.
#[test]
fn a_correlation_has_a_test_and_an_interval() {
    let result = two(
        SIX,
        6,
        "correlation",
        "of = [\"x\", \"y\"]\nconfidence = \"0.999\"",
    )
    .statistics();
    let figure = named(figures(&result, "it", &[]), "correlation");
    same(figure.estimate.value().unwrap(), 0.948_192_497_006_145_7);
    let test = figure.test.as_ref().unwrap();
    same(test.p_value, 0.003_956_499_930_813_16);
    assert_eq!(test.degrees_of_freedom, [4]);
    let (low, high) = ends(figure);
    same(low, -0.086_012_281_723_170_92);
    same(high, 0.998_810_405_866_700_1);
    let text = result.to_string();
    assert!(
        text.contains("p-value") && text.contains("99.9 % from"),
        "{text}"
    );
}

/// Where the rows do not suffice there is a reason, and no number.
#[test]
fn too_few_rows_have_no_tests() {
    let untested = |rows: usize, table: &str, kind: &str, more: &str, name: &str| {
        let result = two(table, rows, kind, more).statistics();
        let figure = named(figures(&result, "it", &[]), name).clone();
        assert_eq!(figure.interval, None);
        let why = figure.untested.unwrap();
        let csv = result.to_csv();
        assert!(csv.contains(why), "{csv}");
        let text = result.to_string();
        assert!(
            text.contains(&format!("without a test or an interval: {why}\n")),
            "{text}"
        );
        (figure.test.is_some(), why)
    };
    let pair = "of = [\"x\", \"y\"]";
    let three = "x,y\n1,1\n2,5\n3,4\n";
    assert_eq!(
        untested(3, three, "correlation", pair, "correlation"),
        (true, "an interval takes four rows")
    );
    let line = "x,y\n1,1\n2,2\n3,3\n4,4\n";
    let exact = (false, "the rows leave no error to test against");
    assert_eq!(untested(4, line, "correlation", pair, "correlation"), exact);
    let on = "of = \"y\"\non = \"x\"";
    assert_eq!(untested(4, line, "regression", on, "x"), exact);
    assert_eq!(
        untested(2, "x,y\n1,1\n2,5\n", "regression", on, "x"),
        (false, "not more rows than coefficients")
    );
    assert_eq!(
        untested(1, "x,y\n1,1\n", "variance", "of = \"x\"", "mean"),
        (false, "only one row")
    );
    let result = two(line, 4, "regression", on).statistics();
    let found = figures(&result, "it", &[]);
    assert_eq!(value(found, "F"), Estimate::Undefined(exact.1));
    assert_eq!(value(found, "adjusted R squared"), Estimate::Rounded(1.0));
    let result = two("x,y\n1,1\n2,5\n", 2, "regression", on).statistics();
    let found = figures(&result, "it", &[]);
    let few = Estimate::Undefined("not more rows than coefficients");
    assert_eq!(value(found, "F"), few);
    assert_eq!(value(found, "adjusted R squared"), few);
    let flat = two("x,y\n1,7\n2,7\n3,7\n", 3, "regression", on).statistics();
    assert_eq!(
        value(figures(&flat, "it", &[]), "F"),
        Estimate::Undefined("a column is constant")
    );
}

#[test]
fn a_confidence_is_a_probability_of_intervals() {
    let refused = |kind: &str, more: &str| {
        let analyses = format!(
            "[[analysis]]\nname = \"it\"\nkind = \"{kind}\"\nof = \"x\"\n{more}\nto = \"press\"\n"
        );
        let error = Case::new(&[("job.toml", &job([2, 2], "refuse", 10, &analyses))])
            .load()
            .unwrap_err();
        error.split_once(": ").unwrap().1.to_owned()
    };
    let reason = "it is a probability of at least one half and below 1, such as \"0.95\"";
    for (given, shown) in [
        ("1", "1.0000"),
        ("\"0.4999\"", "0.4999"),
        ("95", "95.0000"),
        ("-1", "-1.0000"),
    ] {
        assert_eq!(
            refused("variance", &format!("confidence = {given}")),
            format!("`confidence` is `{shown}`: {reason}")
        );
    }
    assert_eq!(
        refused("variance", "confidence = 0.95"),
        "`confidence` is `0.95`: write it in quotes, such as \"1.50\", so that no digit is lost"
    );
    assert_eq!(
        refused("mean", "confidence = \"0.95\""),
        "mean `it` has no use for `confidence`; remove it"
    );
}
