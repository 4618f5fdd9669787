//! Intersections between two parties: from a file to the keys that both have, in one process and in several.

use std::fs;

use crate::common::Folder;

const JOB: &str = r#"version = 1
kind = "psi"
name = "both"
owners = ["ann", "bob"]
parties = ["ann", "bob"]

[[table]]
name = "left"
owner = "ann"
rows = { up_to = 40 }
file = "left.csv"
column = [{ name = "id", type = "key" }]

[[table]]
name = "right"
owner = "bob"
rows = 30
file = "right.csv"
column = [{ name = "id", type = "key", of = "number" }]

[intersection]
to = "bob"
file = "ours.csv"
"#;

/// Numbers from one to another, in a column of this name.
fn table(name: &str, numbers: std::ops::Range<u32>) -> String {
    let lines = numbers.map(|number| format!("{number}\n"));
    std::iter::once(format!("{name}\n")).chain(lines).collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("left.csv", table("id", 0..35));
    folder.write("right.csv", table("number", 20..50));
    folder
}

#[test]
fn the_recipient_gets_the_keys_that_both_have() {
    for processes in ["", " --processes"] {
        let folder = folder();
        let said = folder.succeed(&format!("run job.toml --out results{processes}"));
        let ours = fs::read_to_string(folder.at("results/bob/ours.csv")).unwrap();
        assert_eq!(ours, table("number", 20..35), "{said}");
        assert!(!folder.at("results/ann/ours.csv").exists());
    }
}

#[test]
fn explain_says_what_is_opened_and_what_one_that_lies_can_ask_for() {
    let folder = folder();
    let said = folder.succeed("explain job.toml");
    for text in [
        "keys       70 of two lists, at most",
        "malicious, with abort",
        "ann  40 values of left",
        "bob  30 values of right",
        "opened: which keys of `right` are in `left` of ann, for up to 30 keys of bob: one that lies can ask for up to 216 keys",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let advice = "leave `adversary` and `technique` out";
    folder.fail("explain job.toml --adversary semi-honest", 3, &[advice]);
}
