//! `--device`: which device a party computes on, and what is refused before a run.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use common::Folder;

const JOB: &str = r#"version = 1
kind = "circuit"
name = "sum"
owners = ["ann", "bob"]
parties = ["ann", "bob"]
recipients = ["bob"]
circuit = { make = "adder:32" }
input = [{ port = "x", owner = "ann", format = "hex", file = "x.hex" },
         { port = "y", owner = "bob", format = "hex", file = "y.hex" }]
output = [{ port = "out", to = "bob", format = "hex", file = "sum.hex" }]
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("x.hex", "00000005\n0000ffff\n12345678\n");
    folder.write("y.hex", "00000007\n00000001\n11111111\n");
    folder
}

/// Whether there is a simulated core.
fn simulated(folder: &Folder) -> bool {
    let listed = folder.succeed("device list");
    let line = listed
        .lines()
        .find(|line| line.contains("fpga-sim"))
        .unwrap();
    if line.contains("absent") {
        println!("skipped: {line}");
    }
    line.contains("present")
}

#[test]
fn a_party_garbles_on_a_core() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    let runs = [
        "run job.toml --device garbler=fpga-sim",
        "run job.toml --device ann=fpga-sim --schedule list(2)",
        "run job.toml --device ann=fpga-sim --device bob=cpu-portable --processes",
        "run job.toml --device ann=reference --device evaluator=cpu-portable",
    ];
    for run in runs {
        let said = folder.succeed(&format!("{run} --out results"));
        assert!(said.contains("3 rows by yao"), "{run}: {said}");
        let sums = std::fs::read_to_string(folder.path().join("results/bob/sum.hex")).unwrap();
        assert_eq!(sums, "0000000c\n0000ff00\n23456789\n", "{run}");
    }
}

#[test]
fn what_a_device_cannot_do_is_refused_before_the_run() {
    let folder = folder();
    let run = |options: &str| format!("run job.toml --device {options}");
    folder.fail(
        &run("carol=cpu"),
        2,
        &["no party is called `carol`", "ann, bob"],
    );
    folder.fail(&run("abacus"), 2, &["there is no device `abacus`"]);
    if !simulated(&folder) {
        return;
    }
    folder.fail(&run("bob=fpga-sim"), 2, &["bob does not in this job"]);
    let tables = run("ann=fpga-sim --tables three-halves");
    folder.fail(&tables, 2, &["makes tables of half-gates"]);
    folder.replace("job.toml", "adder:32", "mul-fast:256");
    let word = "0123456789abcdef".repeat(4);
    folder.write("x.hex", format!("{word}\n"));
    folder.write("y.hex", format!("{word}\n"));
    for schedule in ["layers", "list(2)"] {
        let large = run(&format!("ann=fpga-sim --schedule {schedule}"));
        folder.fail(&large, 6, &["does not fit fpga-sim", "docs/sequential.md"]);
    }
}
