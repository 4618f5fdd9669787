//! What can be seen of a run: traces and their pictures, records and their replay, shadows, the board, and what `explain` foretells.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use common::{Folder, text};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_trace_tells_every_round_and_no_value() {
    let folder = Folder::blocks();
    folder.succeed("run job.toml --trace run.jsonl");
    let lines = std::fs::read_to_string(folder.at("run.jsonl")).unwrap();
    let mut lines = lines.lines().map(json);
    let header = lines.next().unwrap();
    assert_eq!(header["veil_trace"], 1);
    assert_eq!(header["participants"].as_array().unwrap().len(), 5);
    assert_eq!(header["trace"].as_str().unwrap().len(), 32);
    let known: BTreeSet<&str> = [
        "by", "chunk", "commands", "index", "lane", "place", "received", "rows", "sent", "t",
        "task",
    ]
    .into();
    let mut rounds = 0;
    for event in lines {
        let keys: BTreeSet<&str> = event
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, known);
        rounds += 1;
    }
    let said = folder.succeed("trace run.jsonl");
    assert!(
        said.contains("longest waits") && said.contains("drawn: run.svg"),
        "{said}"
    );
    let svg = std::fs::read_to_string(folder.at("run.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(">ann<") && svg.contains(">eve<"));
    // Bytes are those that `explain` foretells.
    let summary = json(&folder.succeed("trace run.jsonl --json"));
    let explained = json(&folder.succeed("explain job.toml --json"));
    assert_eq!(summary["rounds"], rounds);
    for spent in summary["participants"].as_array().unwrap() {
        let mut all = explained["participants"].as_array().unwrap().iter();
        let same = all.find(|p| p["name"] == spent["name"]).unwrap();
        assert_eq!(spent["bytes_sent"], same["bytes"], "{spent}");
    }
}

#[test]
fn traces_of_two_runs_are_not_drawn_together() {
    let folder = Folder::wages();
    folder.succeed("stats wages.toml --trace one.jsonl");
    folder.succeed("stats wages.toml --trace two.jsonl");
    folder.fail(
        "trace one.jsonl two.jsonl",
        3,
        &["is of another run than", "one.jsonl"],
    );
    folder.write("half.jsonl", "{\"veil_trace\":1");
    folder.fail(
        "trace half.jsonl",
        3,
        &["half.jsonl, line 1: not a line of a trace"],
    );
    folder.fail("trace nowhere.jsonl", 3, &["nowhere.jsonl"]);
    folder.fail(
        "stats wages.toml --trace no/such/folder",
        3,
        &["cannot create the trace"],
    );
}

#[test]
fn a_recorded_party_replays_alone() {
    let folder = Folder::wages();
    folder.fail(
        "run wages.toml --record rec",
        2,
        &["lays open the values of all owners", "--data-are-mine"],
    );
    folder.fail(
        "run wages.toml --record rec --data-are-mine --processes",
        2,
        &["leave --processes out"],
    );
    folder.fail(
        "run wages.toml --record rec --data-are-mine --party dora",
        2,
        &["nobody is called `dora`", "ann, bob, carol"],
    );
    let output = folder.veil("run wages.toml --lanes 2 --record rec --party carol --data-are-mine");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("keep it to yourself"),
        "{said}"
    );
    assert!(said.contains("recorded carol"), "{said}");
    let file = folder.at("rec/lane-0.record");
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.at("rec")), mode(file.clone())), (0o700, 0o600));
    let head = std::fs::read(&file).unwrap();
    assert!(head.starts_with(b"veilworks device record 1\nSECRET"));
    for device in ["cpu", "reference"] {
        let said = folder.succeed(&format!("device replay rec --device {device}"));
        assert!(
            said.contains("all equal") && said.contains("lane-1"),
            "{said}"
        );
    }
    folder.fail(
        "run wages.toml --record rec --data-are-mine",
        3,
        &["not there yet"],
    );
    folder.fail(
        "device replay rec --device abacus",
        2,
        &["no device `abacus`", "reference"],
    );
    folder.fail("device replay .", 3, &["no record in this folder"]);
    let mut damaged = head;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    folder.fail(
        "device replay rec",
        3,
        &["was changed after it was written"],
    );
}

#[test]
fn a_shadow_says_what_it_compared() {
    let folder = Folder::blocks();
    let output = folder.veil("run job.toml --shadow --data-are-mine");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    // An AES block has 5120 products, without those of the key schedule, which is the same for all.
    assert!(
        said.contains("products compared") && said.contains("all equal"),
        "{said}"
    );
    folder.fail("run job.toml --shadow", 2, &["--data-are-mine"]);
    folder.fail(
        "run job.toml --shadow --data-are-mine --processes",
        2,
        &["leave --processes out"],
    );
}

#[test]
fn everybody_can_be_watched() {
    let folder = Folder::blocks();
    for how in ["", "--processes"] {
        let output = folder.veil(&format!("run job.toml --net lan --watch {how}"));
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        for name in ["a: ", "b: ", "c: ", "ann: ", "eve: "] {
            assert!(said.contains(name), "no `{name}` in {said}");
        }
        assert!(said.contains("done") && said.contains("received"), "{said}");
    }
}

#[test]
fn explain_foretells_bytes_and_time_over_processes() {
    for (folder, job) in [(Folder::blocks(), "job.toml"), (large(), "large.toml")] {
        let mut ratios = Vec::new();
        let mut right = false;
        // Other work on this machine disturbs either: a few tries, one of which has to be quiet.
        for _ in 0..5 {
            let explained = json(&folder.succeed(&format!("explain {job} --json")));
            let run = json(&folder.succeed(&format!("run {job} --processes --json")));
            let (told, ran) = (&explained["participants"], &run["participants"]);
            let mut slowest = 0.0f64;
            for told in told.as_array().unwrap() {
                let mut all = ran.as_array().unwrap().iter();
                let same = |p: &&Value| p["name"] == told["name"] && p["role"] == told["role"];
                let ran = all.find(same).unwrap();
                assert_eq!(told["framed"], ran["bytes_sent"], "{told} {ran}");
                slowest = slowest.max(ran["seconds"].as_f64().unwrap());
            }
            let loopback = &explained["estimates"][0];
            assert_eq!(loopback["net"], "loopback");
            let ratio = loopback["seconds"].as_f64().unwrap() / slowest;
            ratios.push(ratio);
            right = (0.5..=2.0).contains(&ratio);
            if right {
                break;
            }
        }
        assert!(right, "{job}: estimated over real time is {ratios:?}");
    }
}

/// A statistics job of many rows.
fn large() -> Folder {
    let folder = Folder::new();
    let rows = 200_000;
    folder.write(
        "large.toml",
        format!(
            r#"version = 1
kind = "stats"
name = "large"
owners = ["ann", "bob"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{{ name = "pay", type = "integer", min = 0, max = 99999 }},
          {{ name = "years", type = "integer", min = 0, max = 50 }}]
block = [{{ name = "all", rows = {rows}, holds = {{ ann = ["pay"], bob = ["years"] }},
           files = {{ ann = "ann.csv", bob = "bob.csv" }} }}]
analysis = [{{ name = "pay and years", kind = "regression", of = "pay", on = ["years"], to = "eve" }}]
"#
        ),
    );
    let column = |name: &str, modulus: u64| {
        let cells = (0..rows).map(|row| format!("{}\n", row * 7919 % modulus));
        format!("{name}\n{}", cells.collect::<String>())
    };
    folder.write("ann.csv", column("pay", 100_000));
    folder.write("bob.csv", column("years", 51));
    folder
}
