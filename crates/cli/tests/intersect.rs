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

/// The same tables with values, in a job that opens this.
fn counting(opens: &str, adversary: &str) -> Folder {
    let value = |name| format!("{{ name = \"{name}\", type = \"integer\", min = 0, max = 99 }}");
    let mine = match opens {
        "sums" | "columns" => format!(", {}", value("cost")),
        _ => String::new(),
    };
    let job = JOB
        .replace("type = \"key\" }", &format!("type = \"key\" }}{mine}"))
        .replace(
            "to = \"bob\"",
            &format!("opens = \"{opens}\"\nto = \"bob\""),
        )
        .replace(
            "name = \"both\"",
            &format!("name = \"both\"\nadversary = \"{adversary}\""),
        );
    let folder = Folder::new();
    folder.write("job.toml", job);
    let costs = (0..35).map(|number| format!("{number},{}\n", number * 2));
    let left: String = std::iter::once("id,cost\n".to_owned())
        .chain(costs)
        .collect();
    folder.write("left.csv", left);
    folder.write("right.csv", table("number", 20..50));
    folder
}

/// Parties of a process, and of several, garble what is computed of keys that both have, against either adversary.
#[test]
fn sizes_sums_and_columns_are_garbled() {
    let columns = (20..35).map(|number| format!("{number},{}\n", number * 2));
    let columns: String = std::iter::once("number,left.cost\n".to_owned())
        .chain(columns)
        .collect();
    for (opens, expected) in [
        ("size", "keys\n15\n"),
        ("sums", "keys,left.cost\n15,810\n"),
        ("columns", &columns),
    ] {
        for adversary in ["semi-honest", "malicious"] {
            let folder = counting(opens, adversary);
            let processes = if opens == "sums" { " --processes" } else { "" };
            let said = folder.succeed(&format!("run job.toml --out results{processes}"));
            let ours = fs::read_to_string(folder.at("results/bob/ours.csv")).unwrap();
            assert_eq!(ours, expected, "{opens}, {adversary}: {said}");
            assert!(!folder.at("results/ann/ours.csv").exists());
        }
    }
    let said = counting("sums", "malicious").succeed("explain job.toml");
    for text in [
        "malicious, with abort",
        "ann  40 values of left",
        "bob  30 values of right",
        "opened: how many keys `left` of ann and `right` of bob have in common, for up to 40 and 30 keys",
        "opened: the sum of `left.cost` over the keys that `left` of ann and `right` of bob have in common",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
}

/// Runs the job of a folder in a process for each party: what a service takes on is what they take, and not more than so many times as much.
fn assert_declared(folder: &Folder, most: f64) {
    // The program, and its own list as texts, are beside it.
    const BESIDE: f64 = 64e6;
    let said = folder.succeed("run job.toml --out results --processes");
    let explained = folder.succeed("explain job.toml --json");
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    for (name, of) in ["ann", "bob"].iter().zip([0, 1]) {
        let mut lines = said.lines();
        let line = lines.find(|line| line.starts_with(&format!("  {name}  party")));
        let line = line.unwrap_or_else(|| panic!("no line of {name}: {said}"));
        let (_, took) = line.split_once("at most ").expect("what it took");
        let took = took.strip_suffix(" MB of memory").expect("megabytes");
        let took = took.parse::<f64>().unwrap() * 1e6;
        let declared = explained["participants"][of]["memory_bytes"].as_f64();
        let declared = declared.unwrap();
        println!("{name}: {took} bytes, declared {declared}");
        assert!(
            took <= declared + BESIDE && declared <= most * took,
            "{name}: {took} bytes, declared {declared}"
        );
    }
}

#[test]
#[ignore = "tier processes: lists of 300 000 keys"]
fn the_declared_memory_of_keys_is_at_most_twice_the_measured() {
    const KEYS: u32 = 300_000;
    let folder = Folder::new();
    let job = JOB.replace("rows = 30", &format!("rows = {KEYS}"));
    folder.write("job.toml", job.replace("{ up_to = 40 }", &KEYS.to_string()));
    folder.write("left.csv", table("id", 0..KEYS));
    folder.write("right.csv", table("number", KEYS / 2..KEYS / 2 + KEYS));
    assert_declared(&folder, 2.0);
}

#[test]
#[ignore = "tier processes: millions of gates"]
fn the_declared_memory_of_circuits_over_bins_is_of_the_size_of_the_measured() {
    for adversary in ["semi-honest", "malicious"] {
        let folder = counting("columns", adversary);
        folder.replace("job.toml", "{ up_to = 40 }", "{ up_to = 1000 }");
        folder.replace("job.toml", "rows = 30", "rows = { up_to = 1000 }");
        assert_declared(&folder, 2.25);
    }
}
