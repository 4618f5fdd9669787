//! Statistics over tables from end to end: in threads and in processes, compared with the clear evaluation, and what `explain` says of them.

use std::fs;

use serde_json::Value;

use crate::common::Folder;
use crate::queries::{self, JOB};

const ANALYSES: &str = r#"
[derived]
month = "extract(month FROM since)"

[[analysis]]
name = "cost of adults"
from = "stays JOIN people ON stays.patient = people.patient"
where = "age >= 18"
kind = "variance"
of = "cost"
by = "ward"
having = "count(*) >= 2"
confidence = "0.9"
to = "eve"

[[analysis]]
name = "months"
from = "stays"
kind = "median"
of = "cost"
by = "month"
top = { groups = 2, by = "count(*)" }
to = "eve"
"#;

fn folder() -> Folder {
    let folder = queries::folder("bob");
    let (tables, _) = JOB.split_once("[[query]]").unwrap();
    let job = tables.replace("kind = \"query\"", "kind = \"stats\"\nmost_opened = 40");
    let job = job.replace("OWNER", "bob");
    folder.write("job.toml", job + ANALYSES);
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// By hand, of the table of `queries`: adults have costs of 10.50 and 0.25 in the east, of 3 and 4 in the west. Student's quantile of 95 % with one degree of freedom
/// is 6.313751514675043 (SciPy), and the standard error in the west is 0.5.
#[test]
fn results_are_what_counting_gives() {
    let folder = folder();
    let text = folder.succeed("stats job.toml --check");
    for part in [
        "cost of adults: variance of cost",
        "checked: the clear computation over the data of all owners gives the same numbers",
        "4 rows are in what is shown",
        "90 % from",
        "opened to eve: ",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(!folder.at("results").exists(), "statistics are printed");
    folder.succeed("run job.toml --out two --processes --lanes 2");
    let read = |name: &str| fs::read_to_string(folder.at(&format!("two/eve/{name}"))).unwrap();
    let result = json(&read("result.json"));
    let groups = result["analyses"][0]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    let mean = &groups[1]["figures"][1];
    assert_eq!(groups[1]["values"], serde_json::json!(["west"]));
    assert_eq!(mean["rounded"], 3.5);
    let low = mean["interval"]["low"]["rounded"].as_f64().unwrap();
    assert!(
        (low - (3.5 - 6.313_751_514_675_043 * 0.5)).abs() < 1e-10,
        "{low}"
    );
    // March has costs of 10.50, 0.25 and 700; April of 3 and 4, and May as many, of which the first month is shown.
    let medians = result["analyses"][1]["groups"].as_array().unwrap();
    assert_eq!(medians[0]["values"], serde_json::json!(["3"]));
    assert_eq!(medians[0]["figures"][0]["exact"], "10.50");
    assert_eq!(medians[1]["values"], serde_json::json!(["4"]));
    assert_eq!(medians[1]["figures"][0]["exact"], "3.00");
    assert_eq!(medians.len(), 2);
    assert!(read("result.svg").contains("whiskers: confidence intervals, 90 %"));
    assert!(read("result.csv").contains("cost of adults,variance,ward,west,,,mean,3.5,"));
    assert!(read("result.txt").contains("security: rep3, semi-honest"));
}

/// An analysis of a query with a bound that flags: every form of the result says whether rows are missing, and lists that this was opened.
#[test]
fn a_bound_that_flags_is_in_the_figures() {
    let folder = folder();
    let job = fs::read_to_string(folder.at("job.toml")).unwrap();
    let bounded = |rows: u32| {
        let more = format!(
            "\n[[query]]\nname = \"few\"\nsql = \"SELECT ward, cost FROM stays\"\n\
             \n[[analysis]]\nname = \"wards\"\nfrom = \"few\"\nkind = \"count\"\nby = \"ward\"\nto = \"eve\"\n\
             \n[[bound]]\nof = \"few\"\nrows = {rows}\noverflow = \"flag\"\n"
        );
        folder.write("job.toml", job.clone() + &more);
    };
    let opened = "`wards`: whether a bound of the job has left out rows (1 if so)";
    let note = "incomplete: a bound of the job has left out rows";
    for (rows, missing) in [(8, false), (7, true)] {
        bounded(rows);
        let output = folder.veil("stats job.toml --check --out out");
        let errors = crate::common::text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let warning = "warning: the result of `wards` for eve is incomplete: a bound of the job has left out rows";
        assert_eq!(errors.contains(warning), missing, "{errors}");
        let text = crate::common::text(&output.stdout);
        assert!(text.contains(opened), "{text}");
        assert_eq!(text.matches(note).count(), usize::from(missing), "{text}");
        let read = |name: &str| fs::read_to_string(folder.at(&format!("out/eve/{name}"))).unwrap();
        let result = json(&read("result.json"));
        assert_eq!(result["analyses"][2]["incomplete"], missing);
        assert_eq!(result["analyses"][0].get("incomplete"), None);
        let lines = result["opened"].as_array().unwrap();
        let flag = lines.iter().find(|one| one["what"] == opened).unwrap();
        assert_eq!(flag["value"], if missing { "1" } else { "0" });
        let csv = read("result.csv");
        let noted = csv
            .lines()
            .filter(|line| line.ends_with("a bound of the job has left out rows"));
        let wards = csv
            .lines()
            .filter(|line| line.starts_with("wards,"))
            .count();
        assert!(wards > 1);
        assert_eq!(noted.count(), if missing { wards } else { 0 }, "{csv}");
        assert_eq!(read("result.svg").contains("incomplete: "), missing);
        assert_eq!(read("result.txt").contains(note), missing);
    }
    // It counts among the numbers that are opened.
    let explained = json(&folder.succeed("explain job.toml --json"));
    let all = explained["opened_numbers"]["at_most"].as_u64().unwrap();
    folder.write(
        "job.toml",
        fs::read_to_string(folder.at("job.toml"))
            .unwrap()
            .replace("\"flag\"", "\"drop\""),
    );
    let explained = json(&folder.succeed("explain job.toml --json"));
    assert_eq!(explained["opened_numbers"]["at_most"], all - 1);
}

#[test]
fn an_explanation_names_what_is_opened_and_its_limit() {
    let folder = folder();
    let text = folder.succeed("explain job.toml");
    for part in [
        "at most 16 numbers; `most_opened`, the job's limit, is 40",
        "opened to eve, and nothing else\n  `cost of adults`: up to 3 rows of ward, count, sum of cost, sum of cost · cost\n  `months`: up to 2 rows of month, quantile 0.5 of cost\n",
        "people.age (bob)      filter, not opened\n",
        "\nqueries\n  cost of adults, to eve:\n    SELECT \"ward\" AS \"ward\", count(*) AS \"count\"",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    let explained = json(&folder.succeed("explain job.toml --json"));
    assert_eq!(
        explained["opened_numbers"],
        serde_json::json!({ "at_most": 16, "limit": 40 })
    );
    folder.replace("job.toml", "most_opened = 40", "most_opened = 15");
    folder.fail(
        "explain job.toml",
        3,
        &["the job opens up to 16 numbers, and its limit is 15; ask for fewer groups or figures, or write `most_opened = 16`"],
    );
    let wages = Folder::wages();
    let text = wages.succeed("explain wages.toml");
    assert!(
        text.contains("`most_opened`, the job's limit, is 1024"),
        "{text}"
    );
    let queries = queries::folder("bob");
    queries.fail("stats job.toml", 2, &["job.toml is no statistics job"]);
}
