//! Programs that run the command for a person: what it prints for them, the answers that they bring, and refusals.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Folder, text};

/// A folder with the first job, and the home of an owner that computes, too.
fn ann() -> Folder {
    let folder = Folder::wages();
    folder.succeed("init ann --role party --home a");
    folder
}

/// What `veil approve --json` prints and says, and its exit code, where a program answers so.
fn approve(folder: &Folder, answer: &str, more: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut process = Command::new(crate::PROGRAM)
        .args(["--errors", "json", "approve", "wages.toml", "--home", "a"])
        .arg("--json")
        .args(more)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(answer.as_bytes()).unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    let lines = text(&output.stdout);
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), text(&output.stderr), output.status.code())
}

fn decision(folder: &Folder) -> (bool, String) {
    let said = folder.succeed("policy check wages.toml --home a --json");
    let said: Value = serde_json::from_str(&said).unwrap();
    let decision = said["decision"].as_str().unwrap().to_owned();
    (said["allowed"].as_bool().unwrap(), decision)
}

#[test]
fn a_program_shows_what_is_approved_and_brings_the_answer() {
    let folder = ann();
    for answer in ["no\n", "", "YES\n", "y\n", "no\nyes\n"] {
        let (shown, said, code) = approve(&folder, answer, &[]);
        assert_eq!((shown.len(), code), (1, Some(1)), "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["message"], "not approved: nothing was changed");
        assert_eq!(said["unapproved"], true);
    }
    let (shown, said, code) = approve(&folder, "yes\n", &["--runs", "2"]);
    assert_eq!((said.as_str(), code), ("", Some(0)));
    let [shown, approved] = &shown[..] else {
        panic!("{shown:?}");
    };
    let explained = shown["explained"].as_str().unwrap();
    assert!(
        explained.contains("sum of wage over all rows"),
        "{explained}"
    );
    assert_eq!(shown["term"], "2 runs");
    assert_eq!(shown["asked_by"], Value::Null);
    let reads = shown["reads"][0].as_str().unwrap();
    assert!(reads.starts_with("reads: `ann`'s `north` from "), "{reads}");
    assert_eq!(approved["approved"], "2 runs");
    let log = std::fs::read_to_string(folder.at("a/log.jsonl")).unwrap();
    assert!(log.contains("\"how\":\"answered\""), "{log}");
    let (allowed, said) = decision(&folder);
    assert!(allowed && said.ends_with("(answered)"), "{said}");
}

#[test]
fn a_refusal_stands_until_an_approval() {
    let folder = ann();
    let allow = "version = 1\n[[rule]]\nname = \"all\"\ndecision = \"allow\"\n";
    folder.write("a/policy.toml", allow);
    assert_eq!(
        decision(&folder),
        (true, "allowed by rule `all` of the policy".to_owned())
    );
    for _ in 0..2 {
        folder.succeed("approve wages.toml --home a --refuse");
        let (allowed, said) = decision(&folder);
        assert!(!allowed && said.ends_with("by a person here"), "{said}");
    }
    let log = std::fs::read_to_string(folder.at("a/log.jsonl")).unwrap();
    assert_eq!(log.matches("\"kind\":\"refusal\"").count(), 1, "{log}");
    assert!(log.contains("a person refused it"), "{log}");
    folder.succeed("log verify --home a");
    // Nor does `--yes` stand above it.
    let output = folder.veil("--errors json party wages.toml --home a --yes");
    let said = text(&output.stderr);
    let said: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        (&said["refused"], &said["rule"]),
        (&Value::Bool(true), &Value::Null)
    );
    let (shown, _, code) = approve(&folder, "", &["--yes"]);
    assert_eq!(code, Some(0));
    let said = shown[0]["decision"].as_str().unwrap();
    assert!(said.starts_with("refused at"), "{said}");
    assert!(decision(&folder).1.starts_with("approved at"));
    folder.succeed("init eve --role owner --home e");
    folder.fail(
        "approve wages.toml --home e --refuse",
        3,
        &["`eve` has no part in the job"],
    );
}

#[test]
fn failures_are_one_line_for_programs() {
    let folder = ann();
    let rule = "version = 1\n[[rule]]\nname = \"never\"\ndecision = \"refuse\"\n";
    folder.write("a/policy.toml", rule);
    let (_, said, code) = approve(&folder, "yes\n", &[]);
    assert_eq!(code, Some(3));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["rule"], &said["code"]),
        (&"never".into(), &"input".into())
    );
    folder.write("bad.toml", "version = 1\nkind = 7\n");
    let output = folder.veil("explain bad.toml --errors json");
    let said: Value = serde_json::from_str(&text(&output.stderr)).unwrap();
    assert_eq!((&said["line"], &said["column"]), (&2.into(), &8.into()));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_home_says_who_it_is() {
    let folder = Folder::new();
    folder.succeed(
        "init ann --role party --home a --listen 127.0.0.1:7001 --address ann.example:7000",
    );
    let said = folder.succeed("identity show --json --home a");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        [
            &said["name"],
            &said["role"],
            &said["listen"],
            &said["address"]
        ],
        ["ann", "party", "127.0.0.1:7001", "ann.example:7000"]
    );
    let key = folder.succeed("identity show --home a");
    assert_eq!(said["key"], key.trim());
}
