//! Estimates of `explain` and `approve`: of a job and a table of rates, and of nothing else.

use crate::common::{Folder, homes, text, veil};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

/// The table of the program.
const TABLE: &str = include_str!("../../veilworks/src/explain/rates/default.toml");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn seconds(explained: &Value, net: &str) -> f64 {
    let estimates = explained["estimates"].as_array().unwrap();
    let found = estimates.iter().find(|estimate| estimate["net"] == net);
    found.unwrap()["seconds"].as_f64().unwrap()
}

/// The table with every rate `times` what it is.
fn times(times: f64) -> String {
    let line = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let (number, unit) = rest.split_once(" #")?;
        let number = number.parse::<f64>().ok()? * times;
        Some(format!("{name} = {number:e} #{unit}"))
    };
    let lines = TABLE
        .lines()
        .map(|text| line(text).unwrap_or_else(|| text.to_owned()));
    let table = lines.collect::<Vec<_>>().join("\n");
    assert_ne!(table, TABLE);
    table
}

#[test]
fn an_estimate_is_of_a_job_and_a_table() {
    let folder = Folder::blocks();
    let explain = "explain job.toml --home none --json";
    let said = folder.succeed(explain);
    assert_eq!(folder.succeed(explain), said);
    // On one core: the children of a thread have its cores.
    let one_core = std::thread::scope(|scope| {
        let on_one = || {
            let all = sched_getaffinity(None).unwrap();
            let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap();
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            folder.succeed(explain)
        };
        scope.spawn(on_one).join().unwrap()
    });
    assert_eq!(one_core, said);
    let explained = json(&said);
    assert_eq!(explained["lanes"], 1);
    assert_eq!(explained["rates"]["version"], 1);
    for net in ["loopback", "lan", "wan"] {
        assert!(seconds(&explained, net) > 0.0, "{said}");
    }
    for participant in explained["participants"].as_array().unwrap() {
        assert!(participant["cpu_seconds"].as_f64().unwrap() > 0.0, "{said}");
    }
}

/// A run of five participants has dozens of connections, and this process has files for none.
#[test]
fn explaining_opens_no_connection() {
    let folder = Folder::blocks();
    let limited = |command: &str| {
        let mut shell = assert_cmd::Command::new("sh");
        let script = format!("ulimit -n 8 && exec \"$0\" {command} job.toml --home none --json");
        shell.args(["-c", &script, crate::PROGRAM]);
        shell.current_dir(folder.path()).output().unwrap()
    };
    let explained = limited("explain");
    assert!(explained.status.success(), "{}", text(&explained.stderr));
    assert_eq!(
        text(&explained.stdout),
        folder.succeed("explain job.toml --home none --json")
    );
    // The limit is one that a run meets.
    assert!(!limited("run").status.success());
}

#[test]
fn the_table_is_the_one_that_is_given_then_that_of_the_home() {
    let folder = Folder::blocks();
    let explain =
        |options: &str| json(&folder.succeed(&format!("explain job.toml --json {options}")));
    let built_in = explain("--home home");
    std::fs::create_dir(folder.at("home")).unwrap();
    folder.write("home/rates.toml", times(2.0));
    folder.write("three.toml", times(3.0));
    let ratio = |explained: &Value| seconds(explained, "loopback") / seconds(&built_in, "loopback");
    for (options, factor) in [
        ("--home home", 2.0),
        ("--home home --rates three.toml", 3.0),
        ("--home none --rates three.toml", 3.0),
        ("--home none", 1.0),
    ] {
        let found = ratio(&explain(options));
        assert!((found / factor - 1.0).abs() < 1e-6, "{options}: {found}");
    }
    let said = folder.succeed("explain job.toml --home home");
    assert!(said.contains("home/rates.toml"), "{said}");
    let said = folder.succeed("explain job.toml --home none --net wan");
    assert!(said.contains("the table of this program"), "{said}");
    let doctor = |home: &str| {
        text(
            &veil()
                .args(["doctor", "--json"])
                .env("VEIL_HOME", folder.at(home))
                .output()
                .unwrap()
                .stdout,
        )
    };
    assert!(doctor("home").contains("home/rates.toml"));
    assert!(doctor("none").contains("the table of this program"));
    folder.write("home/rates.toml", "version = 9\n");
    assert!(doctor("home").contains("version 9 of a table of rates is unknown"));
    folder.fail(
        "explain job.toml --home home",
        3,
        &["version 9 of a table of rates is unknown"],
    );
}

/// A job may say how many rows are computed together, and a command line where the job does not.
#[test]
fn a_job_says_how_long_chunks_are() {
    let folder = Folder::blocks();
    let explained =
        |options: &str| json(&folder.succeed(&format!("explain job.toml --json {options}")));
    let usual = explained("");
    let chosen = explained("--chunk-rows 4096");
    assert_eq!(chosen["chunk_rows"], 4096);
    assert_ne!(chosen["plan"], usual["plan"]);
    folder.replace("job.toml", "kind =", "chunk_rows = \"4096\"\nkind =");
    assert_eq!(explained("")["plan"], chosen["plan"]);
    folder.fail(
        "explain job.toml --chunk-rows 8192",
        3,
        &["`--chunk-rows 8192` contradicts `chunk_rows = \"4096\"` of the job"],
    );
    folder.replace("job.toml", "\"4096\"", "\"100\"");
    folder.fail(
        "explain job.toml",
        3,
        &[
            "job.toml:",
            "`chunk_rows` is \"100\": write \"64\" or \"128\" or",
        ],
    );
}

/// A network adds its delays to what computing takes.
#[test]
fn a_faster_machine_waits_for_the_network_all_the_same() {
    let folder = Folder::blocks();
    folder.write("fast.toml", times(1e-6));
    let explained = json(&folder.succeed("explain job.toml --rates fast.toml --json"));
    let rounds = &explained["rounds"];
    let rounds =
        ["handshake", "set_up", "per_chunk", "totals"].map(|of| rounds[of].as_u64().unwrap());
    assert!(explained["chunks"].as_u64().unwrap() <= 2);
    let waits = rounds.iter().sum::<u64>() as f64;
    // 40 ms there and back, and the bytes of the busiest participant at 1 Gb/s.
    let sends = explained["participants"].as_array().unwrap().iter();
    let busiest = sends.map(|p| p["framed"].as_u64().unwrap()).max().unwrap();
    let expected = waits * 0.02 + busiest as f64 * 8.0 / 1e9;
    let wan = seconds(&explained, "wan");
    assert!((wan / expected - 1.0).abs() < 1e-3, "{wan} {expected}");
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = Folder::blocks();
    let refused = |table: &str, said: &str| {
        folder.write("rates.toml", table);
        folder.fail("explain job.toml --rates rates.toml", 3, &[said]);
    };
    refused(&times(-1.0), "a rate is a number of seconds from 0 to 1000");
    refused(
        &times(f64::NAN).replace("NaN", "nan"),
        "a rate is a number of seconds from 0 to 1000",
    );
    refused(
        &TABLE.replacen("wait", "weight", 1),
        "unknown field `weight`",
    );
    refused(
        &"#".repeat(70_000),
        "rates.toml: longer than 65536 bytes: this is no table of rates",
    );
    folder.fail(
        "explain job.toml --rates none.toml",
        3,
        &["cannot read the table of rates none.toml"],
    );
}

#[test]
fn an_approver_sees_times_by_the_table_of_its_home() {
    let folder = Folder::blocks();
    homes::homes(folder.path(), &homes::NAMES);
    folder.write("a/rates.toml", times(0.0));
    let said = folder.succeed("approve job.toml --home a --yes");
    assert!(said.contains("loopback  about 0.00 ms"), "{said}");
    assert!(said.contains("a/rates.toml"), "{said}");
    let said = folder.succeed("approve job.toml --home b --yes");
    assert!(said.contains("the table of this program"), "{said}");
    assert!(!said.contains("about 0.00 ms"), "{said}");
}
