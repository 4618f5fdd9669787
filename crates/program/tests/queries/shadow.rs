//! Shadow runs: proved ranges beside what sample rows use of them.

use std::fmt::Write;

use veil_program::{Shadow, ShadowColumn};
use veil_relation::{Kind, Value};

use super::{JOB, NORTH, case};
use crate::common::Case;

/// The report of a shadow run, or what is wrong with the sample.
fn shadow(case: &Case) -> Result<Shadow, Vec<String>> {
    let shadow = case.load().unwrap().shadow(&|_, _| {});
    let shadow = shadow.map_err(|errors| {
        let said = errors.iter().map(ToString::to_string);
        said.map(|error| case.shorten(&error)).collect::<Vec<_>>()
    });
    shadow.map(|shadow| shadow.expect("the job has queries"))
}

fn of<'a>(shadow: &'a Shadow, relation: &str, column: &str) -> &'a ShadowColumn {
    let mut all = shadow.columns.iter();
    let found = all.find(|one| one.relation == relation && one.column == column);
    found.unwrap_or_else(|| panic!("no {relation}.{column} in {shadow:?}"))
}

fn asking(sql: &str) -> String {
    JOB.replace("SELECT since, ward, pay, ok, beds FROM stays", sql)
}

fn ends(least: &str, greatest: &str) -> [String; 2] {
    [least.to_owned(), greatest.to_owned()]
}

#[test]
fn each_column_has_its_proved_and_its_observed_range() {
    let shadow = shadow(&case(JOB, NORTH)).unwrap();
    let pay = ShadowColumn {
        relation: "stays".to_owned(),
        derived: false,
        column: "pay".to_owned(),
        r#type: "decimal with 2 places".to_owned(),
        rows: 3,
        nulls: 1,
        proved: Some(ends("-10.00", "9999.99")),
        observed: Some(ends("-9.50", "9999.99")),
        // 1000999 and 1000949 units above the least.
        bits: Some(20),
        used_bits: Some(20),
        at_ends: Some([0, 1]),
        max_error: None,
    };
    assert_eq!(of(&shadow, "stays", "pay"), &pay);
    let since = of(&shadow, "all_stays", "since");
    assert!(since.derived);
    assert_eq!(since.observed, Some(ends("2020-01-01", "2025-12-31")));
    assert_eq!((since.bits, since.at_ends), (Some(12), Some([1, 1])));
    let ward = of(&shadow, "all_stays", "ward");
    assert_eq!(
        (&ward.proved, &ward.observed),
        (&Some(ends("a", "c")), &Some(ends("a", "c")))
    );
    let ok = of(&shadow, "stays", "ok");
    assert_eq!(
        (&ok.observed, ok.used_bits),
        (&Some(ends("false", "true")), Some(1))
    );
    let beds = of(&shadow, "stays", "beds");
    assert_eq!(
        (beds.bits, beds.used_bits, beds.at_ends),
        (Some(0), Some(0), None)
    );
    // No digest is shown, in whatever form.
    let patient = of(&shadow, "stays", "patient");
    assert_eq!(
        (&patient.proved, &patient.observed, patient.rows),
        (&None, &None, 3)
    );
    let text = shadow.text();
    assert!(text.contains("table stays: 3 rows\n"), "{text}");
    assert!(text.contains("2020-01-01 to 2025-12-31"), "{text}");
}

#[test]
fn derived_ranges_say_which_bits_no_row_needs_and_where_clips_act() {
    let sql =
        "SELECT ward, least(greatest(pay, 0), 500) AS clipped, pay * pay AS square FROM stays";
    let mut north = String::from("patient,since,ward,pay,ok,beds\n");
    for (at, pay) in ["-3", "-1.25", "0.00", "12.5", "499.99", "501", "600.25"]
        .iter()
        .enumerate()
    {
        let _ = writeln!(north, "p{at},2021-01-01,a,{pay},t,3");
    }
    let shadow = shadow(&case(&asking(sql), &north)).unwrap();
    let clipped = of(&shadow, "all_stays", "clipped");
    assert_eq!(clipped.proved, Some(ends("0.00", "500.00")));
    assert_eq!(clipped.observed, Some(ends("0.00", "500.00")));
    assert_eq!(clipped.at_ends, Some([3, 2]));
    assert_eq!(clipped.unused_bits(), Some(0));
    let square = of(&shadow, "all_stays", "square");
    // 600.25² has 3603000625 units of 10^-4, 32 bits above 0; the range is 999999² units wide, 40 bits, and -10 · 9999.99 below 0.
    assert_eq!(square.observed, Some(ends("0.0000", "360300.0625")));
    assert_eq!((square.bits, square.used_bits), (Some(40), Some(32)));
    assert_eq!(square.unused_bits(), Some(8));
}

#[test]
fn distances_from_doubles_are_those_of_the_functions() {
    let sql = "WITH logs AS (SELECT ward, since, ln(abs(pay) + 1) AS l FROM stays WHERE pay IS NOT NULL) \
               SELECT ward, sum(l) AS total, count(*) AS n FROM logs GROUP BY ward";
    let plain = "SELECT pay, round(exp(least(pay, 3)), 6) AS e, erf(least(pay, 3)) AS erf, \
                 CASE WHEN pay > 0 THEN sqrt(greatest(pay, 0)) ELSE 0.5 END AS root FROM stays ORDER BY e, pay LIMIT 2";
    let mut north = String::from("patient,since,ward,pay,ok,beds\n");
    let pays = [0.25, 1.5, -2.75, 2.0, 9000.5, 7.25];
    for (at, pay) in pays.iter().enumerate() {
        let _ = writeln!(north, "p{at},2021-01-01,{},{pay},t,3", ["a", "b"][at % 2]);
    }
    let report = shadow(&case(&asking(sql), &north)).unwrap();
    let total = of(&report, "all_stays", "total");
    assert_eq!(of(&report, "all_stays", "n").max_error, None);
    assert_eq!(of(&report, "stays", "pay").max_error, None);
    // The same in doubles, against the cells that the evaluator gives.
    let sums = [0, 1].map(|ward| {
        let of_ward = pays.iter().skip(ward).step_by(2);
        of_ward.map(|pay: &f64| (pay.abs() + 1.0).ln()).sum::<f64>()
    });
    let case_of = case(&asking(sql), &north);
    let (_, answered) = case_of.load().unwrap().clear_relations().unwrap().remove(0);
    let Kind::Decimal { places, .. } = answered.fields[1].ty.kind else {
        panic!("a sum of logarithms is a decimal");
    };
    let distances = answered.rows.iter().zip(sums).map(|(row, sum)| {
        let Value::Number(units) = row[1] else {
            panic!("{row:?}")
        };
        (units as f64 / 10_f64.powi(places as i32) - sum).abs()
    });
    let largest = distances.fold(0.0, f64::max);
    let error = total.max_error.unwrap();
    assert!(
        (error - largest).abs() < 1e-12 && error > 0.0,
        "{error} {largest}"
    );

    // The two rows with the least pays, -2.75 and 0.25.
    let report = shadow(&case(&asking(plain), &north)).unwrap();
    let error = |column| of(&report, "all_stays", column).max_error;
    assert_eq!(
        of(&report, "all_stays", "pay").observed,
        Some(ends("-2.75", "0.25"))
    );
    assert_eq!(error("pay"), None);
    for column in ["e", "erf", "root"] {
        let error = error(column).unwrap();
        // Within the rounding of the last of 6 places, and what the function is said to be off by.
        assert!(error < 1.2e-6, "{column}: {error}");
    }
    assert_eq!(
        of(&report, "all_stays", "root").observed,
        Some(ends("0.500000", "0.500000"))
    );
    assert!(report.text().contains("from doubles"), "{}", report.text());
}

#[test]
fn a_shadow_run_evaluates_what_the_queries_mean() {
    let sql = "SELECT ward, sum(pay) AS pays, max(since) AS last FROM stays GROUP BY ward HAVING count(*) > 0";
    let case = case(&asking(sql), NORTH);
    let report = shadow(&case).unwrap();
    let (_, answered) = case.load().unwrap().clear_relations().unwrap().remove(0);
    for (at, field) in answered.fields.iter().enumerate() {
        let cells = || answered.rows.iter().map(|row| row[at]);
        let column = of(&report, "all_stays", &field.name);
        assert_eq!(column.rows, answered.rows.len() as u64);
        let nulls = cells().filter(|cell| *cell == Value::Null).count() as u64;
        assert_eq!(column.nulls, nulls);
        let numbers = || cells().filter_map(Value::number);
        let widest = (numbers().max().unwrap() - numbers().min().unwrap()) as u128;
        assert_eq!(column.used_bits, Some(u128::BITS - widest.leading_zeros()));
        // The proved range is that of the job's ten rows, and not of the sample's three.
        if field.name == "pays" {
            assert_eq!(column.proved, Some(ends("-100.00", "99999.90")));
        }
    }
}

#[test]
fn a_sample_may_have_fewer_rows_and_no_more() {
    let exact = JOB.replace("{ up_to = 10 }", "10");
    assert_eq!(shadow(&case(&exact, NORTH)).unwrap().columns[0].rows, 3);
    let none = "patient,since,ward,pay,ok,beds\n";
    let empty = shadow(&case(JOB, none)).unwrap();
    let pay = of(&empty, "stays", "pay");
    assert_eq!((pay.rows, &pay.observed, pay.used_bits), (0, &None, None));
    assert_eq!(pay.unused_bits(), None);
    assert_eq!(
        shadow(&case(&exact, none)).unwrap_err(),
        [
            "north.csv has 0 rows, and table `stays` of the job has 1 to 10; change `rows` there, at all participants"
        ]
    );
    assert_eq!(
        shadow(&case(
            &JOB.replace("{ up_to = 10 }", "{ up_to = 2 }"),
            NORTH
        ))
        .unwrap_err(),
        [
            "north.csv has 3 rows, and table `stays` of the job has 0 to 2; change `rows` there, at all participants"
        ]
    );
}

#[test]
fn what_is_wrong_with_a_sample_is_said_of_each_table() {
    let wards = "[[table]]
name = \"wards\"
owner = \"south\"
rows = 4
unique = [[\"size\"]]
file = \"south.csv\"
column = [{ name = \"size\", type = \"integer\", min = 0, max = 9 }, { name = \"cost\", type = \"integer\", min = 0, max = 9 }]

[query]";
    let two = asking("SELECT ward, pay, cost FROM stays JOIN wards ON beds = size");
    let two = two.replace("[query]", wards);
    let case = |south: &str| {
        let north = NORTH.replace("-9.5", "-10.5");
        Case::new(&[
            ("job.toml", two.as_str()),
            ("north.csv", &north),
            ("south.csv", south),
        ])
    };
    let said = shadow(&case("size,cost\n1,3\n3,11\n"));
    let said = said.unwrap_err();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("north.csv") && said[0].contains("line 2 (row 1), column `pay`"),
        "{said:?}"
    );
    assert!(
        said[1].contains("south.csv") && said[1].contains("line 3 (row 2), column `cost`"),
        "{said:?}"
    );
    let said = shadow(&case("size,price\n1,3\n")).unwrap_err();
    assert_eq!(
        said[1],
        "south.csv: no column `cost`; the header names `size`, `price`"
    );
    // A table of which nothing says where it is.
    let nowhere = JOB.replace("file = \"north.csv\"\n", "");
    let said = shadow(&super::case(&nowhere, NORTH)).unwrap_err();
    assert_eq!(
        said,
        [
            "no file is given for table `stays` of `north`; name it in the job, or on the command line"
        ]
    );
}

#[test]
fn tables_that_no_participant_has_and_jobs_without_queries_have_no_shadow_run() {
    let kept = JOB
        .replace("owner = \"north\"", "stored = \"stays-2024\"")
        .replace("rows = { up_to = 10 }", "rows = 10")
        .replace("unique = [[\"patient\"]]\n", "")
        .replace("file = \"north.csv\"\n", "");
    let said = shadow(&case(&kept, NORTH)).unwrap_err();
    assert_eq!(
        said,
        [
            "table `stays` comes from dataset `stays-2024`, whose values no participant has: what queries mean over it in the clear, no program can tell"
        ]
    );
    let blocks = r#"version = 1
kind = "stats"
name = "pay"
owners = ["mill"]
parties = ["a", "b", "c"]
recipients = ["press"]
column = [{ name = "pay", type = "integer", min = 0, max = 9 }]
block = [{ name = "mill", rows = 3, holds = { mill = ["pay"] } }]
analysis = [{ name = "mean pay", kind = "mean", of = "pay", to = "press" }]
"#;
    let job = case(blocks, NORTH).load().unwrap();
    assert!(job.shadow(&|_, _| {}).unwrap().is_none());
}
