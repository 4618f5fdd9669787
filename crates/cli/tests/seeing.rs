//! What can be seen of a run: shadows, the board, and the bytes that `explain` foretells.

use crate::common::homes::NAMES;
use crate::common::{Folder, text};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
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
fn every_participant_can_be_watched() {
    let folder = Folder::blocks();
    for how in ["", "--processes"] {
        let output = folder.veil(&format!("run job.toml --net lan --watch {how}"));
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        for name in ["a: ", "b: ", "c: ", "ann: ", "eve: "] {
            assert!(said.contains(name), "no `{name}` in {said}");
        }
        assert!(said.contains("done") && said.contains("received"), "{said}");
        // No terminal: lines of text that a log can keep, each of one participant, and of each the end.
        assert!(!said.contains('\u{1b}') && !said.contains('\r'), "{said:?}");
        for line in said.lines() {
            assert!(
                NAMES
                    .iter()
                    .any(|name| line.starts_with(&format!("{name}: "))),
                "{line}"
            );
        }
        for name in NAMES {
            let mut mine = said
                .lines()
                .filter(|line| line.starts_with(&format!("{name}: ")));
            assert!(mine.next_back().unwrap().contains(": done"), "{said}");
        }
    }
}

#[test]
fn explain_foretells_bytes_over_processes() {
    for (folder, job) in [(Folder::blocks(), "job.toml"), (large(), "large.toml")] {
        let explained = json(&folder.succeed(&format!("explain {job} --lanes 2 --json")));
        let run = json(&folder.succeed(&format!("run {job} --lanes 2 --processes --json")));
        as_foretold(&explained, &run);
    }
}

/// Every participant sent exactly the bytes that were foretold.
fn as_foretold(explained: &Value, run: &Value) {
    let (told, ran) = (&explained["participants"], &run["participants"]);
    for told in told.as_array().unwrap() {
        let mut all = ran.as_array().unwrap().iter();
        let same = |p: &&Value| p["name"] == told["name"] && p["role"] == told["role"];
        let ran = all.find(same).unwrap();
        assert_eq!(told["framed"], ran["bytes_sent"], "{told} {ran}");
    }
}

#[test]
fn explain_foretells_the_bytes_of_comparing_orders() {
    let folder = aligned();
    let rounds = |options: &str| {
        let explained = json(&folder.succeed(&format!("explain {options} --json")));
        for how in ["", "--processes"] {
            let run = folder.succeed(&format!("run {options} {how} --align-key align.key --json"));
            as_foretold(&explained, &json(&run));
        }
        explained["rounds"]["handshake"].as_u64().unwrap()
    };
    assert_eq!(rounds("aligned.toml --lanes 2"), 5);
    folder.replace(
        "aligned.toml",
        ", align = { column = \"id\", every = 16 }",
        ", order = \"agreed\"",
    );
    assert_eq!(rounds("aligned.toml --lanes 1"), 3);
}

/// A job with two blocks whose order is compared, by two owners and by three, and one that is not.
fn aligned() -> Folder {
    let folder = Folder::new();
    folder.write(
        "aligned.toml",
        r#"version = 1
kind = "stats"
name = "aligned"
owners = ["ann", "bob", "cid"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "pay", type = "integer", min = 0, max = 999 },
          { name = "years", type = "integer", min = 0, max = 50 },
          { name = "age", type = "integer", min = 0, max = 120 }]
block = [{ name = "one", rows = 50, holds = { ann = ["pay", "age"], bob = ["years"] },
           files = { ann = "ann.csv", bob = "bob.csv" }, align = { column = "id", every = 16 } },
         { name = "two", rows = 40, holds = { ann = ["pay"], bob = ["years"], cid = ["age"] },
           files = { ann = "ann2.csv", bob = "bob2.csv", cid = "cid2.csv" }, align = { column = "id", every = 16 } },
         { name = "three", rows = 5, holds = { cid = ["pay", "years", "age"] }, files = { cid = "cid3.csv" } }]
analysis = [{ name = "pay and years", kind = "regression", of = "pay", on = ["years", "age"], to = "eve" }]
"#,
    );
    let table = |columns: &str, rows: u64| {
        let width = columns.split(',').count() as u64;
        let row = |row: u64| {
            let cells = (1..width).map(|k| (row * (7 + 6 * k) % 41).to_string());
            let cells: Vec<String> = std::iter::once(row.to_string()).chain(cells).collect();
            cells.join(",")
                + "
"
        };
        columns.to_owned()
            + "
" + &(0..rows).map(row).collect::<String>()
    };
    for (name, columns, rows) in [
        ("ann.csv", "id,pay,age", 50),
        ("bob.csv", "id,years", 50),
        ("ann2.csv", "id,pay", 40),
        ("bob2.csv", "id,years", 40),
        ("cid2.csv", "id,age", 40),
        ("cid3.csv", "id,pay,years,age", 5),
    ] {
        folder.write(name, table(columns, rows));
    }
    folder.succeed("data key new align.key");
    folder
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
           order = "agreed", files = {{ ann = "ann.csv", bob = "bob.csv" }} }}]
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
