//! `veil data`: tables are checked before anything is sent, and owners compare the order of rows under a key.

use crate::common::Folder;
use serde_json::Value;

const JOB: &str = r#"version = 1
kind = "stats"
name = "study"
owners = ["mill", "office"]
parties = ["a", "b", "c"]
recipients = ["press"]
column = [{ name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99", missing = "drop-row" },
          { name = "bonus", type = "integer", min = 0, max = 50, missing = "zero" },
          { name = "since", type = "date", min = "1990-01-01", max = "2030-12-31", missing = "drop-pair" },
          { name = "group", type = "category", values = ["x", "y"] }]
block = [{ name = "all", rows = 4, holds = { mill = ["pay", "bonus", "since"], office = ["group"] },
           files = { mill = "mill.csv", office = "office.csv" }, align = { column = "id", every = 16 } }]
analysis = [{ name = "pay", kind = "mean", of = "pay", by = "group", to = "press" },
            { name = "bonus", kind = "sum", of = "bonus", to = "press" },
            { name = "since", kind = "mean", of = "since", to = "press" }]
"#;

fn study() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write(
        "mill.csv",
        "id,pay,bonus,since\n7,10.50,,2020-01-01\n8,,3,2020-01-02\n9,20.00,4,\n10,30.00,5,2020-01-04\n",
    );
    folder.write("office.csv", "group,id\nx,7\ny,8\nx,9\ny,10\n");
    folder.succeed("data key new align.key");
    folder
}

#[test]
fn a_table_is_described_before_anything_is_sent() {
    let folder = study();
    let text = folder.succeed("data check job.toml --owner mill --align-key align.key");
    for part in [
        "block all: ",
        "CSV, 4 rows",
        "MB/s",
        "0.00 to 9999.99",
        "1990-01-01 to 2030-12-31",
        "these rows count in no analysis",
        "these count as 0",
        "these rows count in no analysis of this column",
        "compared in order and never shared",
    ] {
        assert!(text.contains(part), "{text}\n{part}");
    }
    let json = folder.succeed("data check job.toml --owner mill --align-key align.key --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["good"], true);
    let table = &json["tables"][0];
    assert_eq!(
        (&table["format"], &table["rows"], &table["key"]),
        (&"CSV".into(), &4.into(), &"id".into())
    );
    let missing: Vec<_> = (table["columns"].as_array().unwrap().iter())
        .map(|column| {
            (
                column["missing"].as_u64().unwrap(),
                column["policy"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(missing, [(1, "drop-row"), (1, "zero"), (1, "drop-pair")]);
}

#[test]
fn problems_of_all_kinds_end_with_code_3() {
    let folder = study();
    let check = |arguments: &str, parts: &[&str]| {
        folder.fail(&format!("data check job.toml {arguments}"), 3, parts);
    };
    check(
        "--owner nobody",
        &["`nobody` brings no data to this job; `mill`, `office` do"],
    );
    check(
        "--owner mill",
        &[
            "block `all` compares the order of column `id`, and `mill` has no alignment key; make one with \
           `veil data key new FILE`",
        ],
    );
    check(
        "--owner mill --align-key none.key",
        &["cannot read the alignment key none.key"],
    );
    folder.write(
        "mill.csv",
        "id,pay,bonus,since\n7,\"1,50\",,2020-01-01\n8,,3,1.2.2020\n,20.00,51,\n10,30.00,5\n",
    );
    check(
        "--owner mill --align-key align.key",
        &[
            "mill.csv: line 2 (row 1), column `pay`: `1,50` looks like 1.50; put `decimal = \",\"` into the column if that is meant",
            "mill.csv: line 3 (row 2), column `since`: `1.2.2020` is not a date of the form %Y-%m-%d",
            "mill.csv: line 4 (row 3), column `bonus`: `51` is outside the declared range 0 to 50",
            "mill.csv: line 4 (row 3), column `id`: `` is empty; every row needs a key",
            "mill.csv: line 5 (row 4): 3 cells, but the header has 4",
        ],
    );
}

#[test]
fn a_key_goes_from_owner_to_owner() {
    let folder = study();
    let text = folder.succeed("data key show align.key");
    assert!(text.starts_with("vwk1:"), "{text}");
    let print = folder.succeed("data key fingerprint align.key");
    let output = assert_cmd::Command::cargo_bin("veil")
        .unwrap()
        .current_dir(folder.path())
        .args(["data", "key", "import", "copy.key"])
        .write_stdin(text.clone())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), print);
    assert_eq!(folder.succeed("data key show copy.key"), text);
    folder.fail(
        "data key new align.key",
        3,
        &["cannot write the alignment key align.key"],
    );
}

#[test]
fn policies_decide_which_rows_count() {
    let folder = study();
    folder.replace(
        "job.toml",
        ", align = { column = \"id\", every = 16 }",
        ", order = \"agreed\"",
    );
    let run = folder.succeed("stats job.toml --check --json --out results");
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["checked"], true);
    let text = std::fs::read_to_string(folder.path().join("results/press/result.json"))
        .or_else(|_| std::fs::read_to_string(folder.path().join("results/result.json")))
        .unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    let used: Vec<_> = (result["analyses"].as_array().unwrap().iter())
        .map(|analysis| analysis["rows_used"].as_u64().unwrap())
        .collect();
    // Row 2 has no pay and is dropped everywhere; row 3 has no date.
    assert_eq!(used, [3, 3, 2]);
    let figure = |analysis: usize, name: &str| {
        let figures = result["analyses"][analysis]["groups"][0]["figures"].clone();
        let figures = figures.as_array().unwrap().clone();
        figures
            .into_iter()
            .find(|figure| figure["name"] == name)
            .unwrap()
    };
    assert_eq!(figure(1, "sum")["exact"], "9");
    assert_eq!(figure(2, "mean")["date"], "2020-01-02");
}
