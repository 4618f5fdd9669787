//! Bad input gets a clear error with file, line or row, and what to do; nothing is left behind.

use crate::common::{Folder, WAGES, text};

#[test]
fn a_missing_table() {
    let folder = Folder::wages();
    std::fs::remove_file(folder.at("bob.csv")).unwrap();
    for how in ["", "--processes"] {
        let run = format!("stats wages.toml --out results {how}");
        folder.fail(
            &run,
            3,
            &[
                "cannot open",
                "bob.csv",
                "No such file",
                "check the path in the job",
            ],
        );
    }
}

#[test]
fn a_malformed_table() {
    let folder = Folder::wages();
    folder.write("ann.csv", "wage\n3100,7\n2900\n");
    folder.fail(
        "stats wages.toml --out results",
        3,
        &[
            "ann.csv: line 2",
            "2 cells, but the header has 1",
            "extra comma",
        ],
    );
    folder.write("ann.csv", "wage\n3100\ntwo\n");
    folder.fail(
        "stats wages.toml --out results",
        3,
        &["ann.csv: line 3 (row 2), column `wage`", "`two`"],
    );
    folder.write("ann.csv", "");
    folder.fail(
        "stats wages.toml --out results",
        3,
        &["ann.csv", "the file is empty", "must name the columns"],
    );
    folder.write("ann.csv", "wage\n\"3100\n2900\n");
    folder.fail("stats wages.toml --out results", 3, &["ann.csv"]);
}

#[test]
fn an_unknown_column() {
    let folder = Folder::wages();
    folder.write("ann.csv", "pay\n3100\n2900\n");
    folder.fail(
        "stats wages.toml --out results",
        3,
        &["ann.csv: no column `wage`", "the header names `pay`"],
    );
    let folder = Folder::wages();
    folder.replace("wages.toml", "of = \"wage\"", "of = \"pay\"");
    folder.fail(
        "stats wages.toml",
        3,
        &["wages.toml:9:", "column `pay` is not defined", "`wage`"],
    );
}

#[test]
fn a_value_out_of_range() {
    let folder = Folder::wages();
    folder.write("bob.csv", "wage\n4000\n20001\n-1\n");
    let parts = [
        "bob.csv: line 3 (row 2), column `wage`: `20001` is outside",
        "line 4 (row 3)",
        "0 to 20000",
        "declare a wider range",
    ];
    folder.fail("stats wages.toml --out results", 3, &parts);
    folder.fail("stats wages.toml --out results --processes", 3, &parts);
}

#[test]
fn rows_that_are_missing() {
    let folder = Folder::wages();
    folder.write("bob.csv", "wage\n4000\n3500\n");
    let parts = [
        "bob.csv has 2 rows",
        "declares 3 for block `south`",
        "give the whole table, or change `rows`",
    ];
    folder.fail("stats wages.toml --out results", 3, &parts);
}

#[test]
fn an_owner_named_twice() {
    let folder = Folder::wages();
    folder.replace(
        "wages.toml",
        "owners = [\"ann\", \"bob\"]",
        "owners = [\"ann\", \"bob\", \"ann\"]",
    );
    folder.fail(
        "stats wages.toml",
        3,
        &[
            "wages.toml:4:25",
            "owner `ann` is named twice; rename or remove one",
        ],
    );
}

#[test]
fn zero_rows_one_row() {
    let folder = Folder::wages();
    folder.replace("wages.toml", "rows = 2", "rows = 0");
    folder.fail(
        "stats wages.toml",
        3,
        &["wages.toml:7:", "0 rows; give it at least 1 or remove it"],
    );
    let folder = Folder::wages();
    folder.replace("wages.toml", "rows = 2", "rows = 1");
    folder.replace("wages.toml", "rows = 3", "rows = 1");
    folder.write("ann.csv", "wage\n3000\n");
    folder.write("bob.csv", "wage\n3001\n");
    let said = folder.succeed("stats wages.toml --check");
    assert!(
        said.contains("3000.50") && said.contains("checked:"),
        "{said}"
    );
}

#[test]
fn a_million_rows() {
    let folder = Folder::wages();
    folder.replace("wages.toml", "rows = 2", "rows = 1000000");
    let wages: Vec<u64> = (0..1_000_000).map(|row: u64| row * 7919 % 20_001).collect();
    let table: String = std::iter::once("wage\n".to_owned())
        .chain(wages.iter().map(|wage| format!("{wage}\n")))
        .collect();
    folder.write("ann.csv", table);
    let sum: u64 = wages.iter().sum::<u64>() + 10_000;
    let said = folder.succeed("stats wages.toml --json");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let opened = &json["results"][0]["statistics"]["json"]["opened"];
    assert_eq!(
        opened[0]["value"],
        serde_json::Value::String(sum.to_string()),
        "{opened}"
    );
}

#[test]
fn files_that_are_no_jobs() {
    let folder = Folder::wages();
    folder.fail(
        "run nothing.toml",
        3,
        &["nothing.toml: cannot read the job"],
    );
    folder.write("half.toml", &WAGES[..100]);
    folder.fail("explain half.toml", 3, &["half.toml:"]);
    folder.write("more.toml", format!("speed = 9\n{WAGES}"));
    folder.fail(
        "explain more.toml",
        3,
        &["more.toml:1:1", "unknown field `speed`"],
    );
    folder.write("later.toml", WAGES.replace("version = 1", "version = 2"));
    folder.fail(
        "explain later.toml",
        3,
        &["later.toml:1:11", "version 2", "reads version 1"],
    );
}

#[test]
fn what_could_overflow_is_refused() {
    let folder = Folder::wages();
    folder.replace("wages.toml", "rows = 2", "rows = 1000000000000");
    folder.replace("wages.toml", "max = 20000", "max = 4000000000000000000");
    folder.replace("wages.toml", "kind = \"mean\"", "kind = \"variance\"");
    folder.fail(
        "explain wages.toml",
        3,
        &[
            "wages.toml:9:",
            "the largest ring has 128",
            "narrow the declared ranges",
        ],
    );
}

#[test]
fn results_that_cannot_be_written() {
    let folder = Folder::wages();
    folder.write("taken", "a file, not a folder");
    folder.fail(
        "stats wages.toml --out taken",
        3,
        &["cannot create the folder taken/carol", "--out"],
    );
    folder.fail(
        "stats wages.toml --out taken --processes",
        3,
        &["cannot create the folder taken/carol", "--out"],
    );
    assert_eq!(
        std::fs::read(folder.at("taken")).unwrap(),
        b"a file, not a folder"
    );
}

#[test]
fn a_disk_that_fills_up() {
    // A limit on the size of files stands in for a full disk: writing fails in the middle.
    let folder = Folder::blocks();
    let before = folder.everything();
    for how in ["", "--processes"] {
        let run = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" run job.toml {how}");
        let output = std::process::Command::new("bash")
            .args(["-c", &run])
            .arg(crate::PROGRAM)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains("cannot write results/eve/blocks")
                || said.contains("results/eve/blocks: File too large"),
            "{said}"
        );
        assert_eq!(folder.everything(), before);
    }
}

#[test]
fn a_command_line_that_makes_no_sense() {
    let folder = Folder::wages();
    folder.fail("stats", 2, &["JOB.toml"]);
    folder.fail(
        "stats wages.toml --net moon",
        2,
        &["no network profile `moon`", "`lan`", "`wan`"],
    );
    folder.fail("stats wages.toml --data ann", 2, &["OWNER:WHAT=FILE"]);
    folder.fail("stats wages.toml --lanes 0", 2, &["lanes"]);
    folder.fail(
        "stats wages.toml --data ann:west=x.csv",
        3,
        &["`ann` supplies no `west`", "north"],
    );
}

#[test]
fn circuits_that_are_wrong() {
    let folder = Folder::new();
    folder.write("bad.txt", "1 3\n2 1 1\n1 1\n\n2 1 0 9 2 AND\n");
    folder.fail(
        "circuit info bad.txt",
        3,
        &["bad.txt: line 5, column 7", "wire 9 does not exist"],
    );
    folder.fail(
        "circuit make nothing:8 --out x.txt",
        3,
        &["no circuit is called `nothing`", "veil circuit list"],
    );
    folder.fail(
        "circuit convert make:sha256 --to old --out x/y.txt",
        3,
        &["cannot write x/y.txt"],
    );
}

/// What is refused for its range stands under a mark in the job file, with what to write instead; a program reads both.
#[test]
fn a_refused_range_is_shown_in_the_job_file() {
    let folder = Folder::new();
    let job = crate::queries::JOB.replace("OWNER", "bob");
    let job = job.replacen("avg(cost) AS mean", "\n  avg(ln(cost)) AS mean", 1);
    folder.write("job.toml", job);
    let instead =
        "write nullif(x, 0), or greatest(x, 0.01) in the place of x, or declare narrower ranges";
    let what = "query `by_ward`, line 2, column 7: `ln(x)` has no value for 0 and below; x is 0.00 to 1000.00";
    let sign = "avg(ln(cost)) AS mean";
    let line = job_line(&folder, sign);
    let place = format!("[job.toml:{line}:7]");
    folder.fail("explain job.toml", 3, &[what, instead, &place]);
    let remedies = r#""remedies":["nullif(x, 0)","greatest(x, 0.01)","declare narrower ranges"]"#;
    let ranges = r#""operation":"ln","#;
    folder.fail("--errors json explain job.toml", 3, &[ranges, remedies]);
}

/// The line of a text in the job file.
fn job_line(folder: &Folder, text: &str) -> usize {
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    1 + job.lines().position(|line| line.contains(text)).unwrap()
}
