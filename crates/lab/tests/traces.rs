//! Traces and their pictures: of one process, of several, of several machines, and broken ones.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::common::Folder;
use crate::common::deployment::{Place, end, take_part_at};
use crate::common::homes::{NAMES, homes};
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
    let (mut rounds, mut messages) = (0, 0);
    for event in lines {
        let keys: BTreeSet<&str> = event
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, known);
        rounds += 1;
        messages += event["sent"].as_array().unwrap().len();
    }
    let said = folder.succeed("trace run.jsonl");
    assert!(
        said.contains("longest waits") && said.contains("drawn: run.svg"),
        "{said}"
    );
    let svg = std::fs::read_to_string(folder.at("run.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(">ann<") && svg.contains(">eve<"));
    let summary = whole(&folder, "run.jsonl", "");
    assert_eq!(summary["rounds"], rounds);
    // In one process both ends of each message are known: each is an arrow.
    folder.succeed("trace run.jsonl --out run.json");
    let events = std::fs::read_to_string(folder.at("run.json")).unwrap();
    let events: Value = serde_json::from_str(&events).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let arrows = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count();
    assert_eq!([arrows("s"), arrows("f")], [messages; 2]);
}

/// The summary of these trace files, which hold all that each participant of the job of many rounds does.
fn whole(folder: &Folder, files: &str, lanes: &str) -> Value {
    let summary = json(&folder.succeed(&format!("trace {files} --json")));
    let explained = json(&folder.succeed(&format!("explain job.toml {lanes} --json")));
    let participants = summary["participants"].as_array().unwrap();
    assert_eq!(participants.len(), 5, "{summary}");
    for spent in participants {
        let mut all = explained["participants"].as_array().unwrap().iter();
        let same = all.find(|p| p["name"] == spent["name"]).unwrap();
        assert_eq!(spent["bytes_sent"], same["bytes"], "{spent}");
    }
    summary
}

#[test]
fn processes_and_participants_are_drawn_on_one_time_axis() {
    let folder = Folder::blocks();
    let began = Instant::now();
    folder.succeed("run job.toml --processes --trace run.jsonl");
    let took = began.elapsed().as_secs_f64();
    let lines = std::fs::read_to_string(folder.at("run.jsonl")).unwrap();
    let heads = lines.lines().filter(|line| line.contains("veil_trace"));
    assert_eq!(heads.count(), 5, "a section for each process");
    let summary = whole(&folder, "run.jsonl", "");
    assert!(summary["seconds"].as_f64().unwrap() < took, "{summary}");
    assert_eq!(summary["clocks_moved"], Value::Array(vec![]), "{summary}");

    homes(folder.path(), &NAMES);
    let began = Instant::now();
    let parts = NAMES.map(|name| {
        let more = ["--timeout", "60", "--trace", &format!("{name}.jsonl")];
        take_part_at(&Place::HERE, &folder, "job.toml", name, &more)
    });
    for (code, said) in parts.map(end) {
        assert_eq!(code, Some(0), "{said}");
    }
    let took = began.elapsed().as_secs_f64();
    let files = NAMES.map(|name| format!("{name}.jsonl")).join(" ");
    let summary = whole(&folder, &files, "--lanes 1");
    assert!(summary["seconds"].as_f64().unwrap() < took, "{summary}");
    assert_eq!(summary["clocks_moved"], Value::Array(vec![]), "{summary}");
    assert!(
        folder
            .succeed(&format!("trace {files}"))
            .contains("drawn: a.svg")
    );
    let svg = std::fs::read_to_string(folder.at("a.svg")).unwrap();
    for name in NAMES {
        assert!(svg.contains(&format!(">{name}<")), "no row for {name}");
    }
    // One of them alone shows itself, and a clock that is an hour off is put right.
    let alone = json(&folder.succeed("trace b.jsonl --json"));
    assert_eq!(alone["participants"].as_array().unwrap().len(), 1);
    let text = std::fs::read_to_string(folder.at("b.jsonl")).unwrap();
    let head = json(text.lines().next().unwrap());
    let clock = head["clock_ns"].as_u64().unwrap();
    let late = (clock + 3_600_000_000_000).to_string();
    folder.replace("b.jsonl", &clock.to_string(), &late);
    let files = "a.jsonl c.jsonl ann.jsonl eve.jsonl b.jsonl";
    let summary = whole(&folder, files, "--lanes 1");
    let moved = summary["clocks_moved"].as_array().unwrap();
    assert_eq!((moved.len(), &moved[0][0]), (1, &Value::from("b.jsonl")));
    let by = moved[0][1].as_f64().unwrap();
    assert!((by + 3600.0).abs() < took, "{by}");
    assert!(summary["seconds"].as_f64().unwrap() < 2.0 * took);
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
}

#[test]
fn broken_traces_say_what_is_wrong_where_and_what_to_do() {
    let folder = Folder::wages();
    folder.succeed("stats wages.toml --trace good.jsonl");
    let good = std::fs::read_to_string(folder.at("good.jsonl")).unwrap();
    let (head, rest) = good.split_once('\n').unwrap();
    let first = rest.lines().next().unwrap();
    let help = "a trace comes from `veil run JOB --trace FILE`";
    let broken = |text: String, part: &str| {
        folder.write("bad.jsonl", text);
        folder.fail("trace bad.jsonl", 3, &[part, help]);
    };
    broken(String::new(), "bad.jsonl, line 1: the file is empty");
    broken(
        head[..20].into(),
        "bad.jsonl, line 1: not a line of a trace",
    );
    broken("\u{0}\n".into(), "bad.jsonl, line 1: not a line of a trace");
    broken(first.into(), "bad.jsonl, line 1: a round before any header");
    broken(
        head.replace("\"lanes\":", "\"lane\":"),
        "bad.jsonl, line 1: not a line of a trace: missing field `lanes`",
    );
    broken(
        head.replace("\"veil_trace\":1", "\"veil_trace\":2"),
        "a trace of version 2; this release reads version 1",
    );
    broken(
        format!("{head}\n{}\n", first.replace("\"index\":", "\"indexes\":")),
        "bad.jsonl, line 2: not a line of a trace: missing field `index`",
    );
    broken(
        format!("{head}\n{}\n", first.replace("\"lane\":0", "\"lane\":999")),
        "bad.jsonl, line 2: a lane that the header does not have",
    );
    folder.fail(
        "trace nowhere.jsonl",
        3,
        &["cannot read the trace nowhere.jsonl", help],
    );
    folder.fail("trace .", 3, &[".", "directory", help]);
    folder.fail(
        "trace good.jsonl --out no/such/folder.svg",
        3,
        &[
            "cannot write the picture no/such/folder.svg",
            "`--out FILE`",
        ],
    );
    // Not even a process is started, nor a connect request sent.
    for how in ["run wages.toml", "run wages.toml --processes"] {
        folder.fail(
            &format!("{how} --trace no/such/folder"),
            3,
            &["cannot create the trace no/such/folder", "`--trace FILE`"],
        );
    }
    homes(folder.path(), &["ann"]);
    folder.fail(
        "party wages.toml --home ann --trace no/such/folder",
        3,
        &["cannot create the trace no/such/folder", "`--trace FILE`"],
    );
}
