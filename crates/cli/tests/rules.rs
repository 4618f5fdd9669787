//! What rules and explanations say of a job is what it does: whose columns a circuit reads, how strong its protocol is, to whom it opens, and
//! why rows of several owners belong together.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::common::{Folder, text};

/// A circuit job of three parties: `INPUTS` and `OUTPUT` are replaced.
const SUMS: &str = r#"version = 1
kind = "circuit"
name = "sums"
owners = ["ann", "bob"]
parties = ["ann", "bob", "carol"]
circuit = { make = "adder:8", rows = 3 }
input = [{ port = "x", owner = "ann", INPUT },
         { port = "y", owner = "bob", format = "csv", column = "pay" }]
output = [{ port = "out", to = "carol", format = "csv", file = "sums.csv" }]
"#;

/// A folder with the home of `ann`, and a policy.
struct Ann(Folder);

impl Ann {
    fn new() -> Self {
        let folder = Folder::new();
        folder.succeed("init ann --role party --home a");
        Ann(folder)
    }

    /// Rules as they are written, in the order of the file.
    fn rules(&self, rules: &[&str]) {
        let rules = rules.iter().map(|rule| format!("[[rule]]\n{rule}\n"));
        let path = self.0.at("a/policy.toml");
        fs::write(&path, format!("version = 1\n{}", rules.collect::<String>())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// What the policy says of a job.
    fn check(&self, job: &str) -> Value {
        self.0.write("job.toml", job);
        let said = self.0.succeed("policy check job.toml --home a --json");
        serde_json::from_str(&said).unwrap()
    }

    fn decision(&self, job: &str) -> String {
        self.check(job)["decision"].as_str().unwrap().to_owned()
    }

    /// What a job is refused with, before the operator is asked.
    fn refused(&self, job: &str) -> String {
        self.0.write("job.toml", job);
        let output = self.0.veil("explain job.toml");
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
        text(&output.stderr)
    }
}

/// Case S4: a rule about columns saw columns of statistics alone, so that a circuit read what was refused and opened every row.
#[test]
fn a_rule_about_columns_sees_what_a_circuit_reads() {
    let ann = Ann::new();
    let refuse = "name = \"no diagnoses\"\ndecision = \"refuse\"\ncolumns = [\"diagnosis\"]";
    let columns = |names: &str| {
        format!(
            "name = \"sums\"\ndecision = \"allow\"\ncircuits = [\"adder:8\"]\ncolumns = [{names}]"
        )
    };
    let job = |input: &str| SUMS.replace("INPUT", input);
    let diagnosis = job("format = \"csv\", column = \"diagnosis\"");
    let age = job("format = \"csv\", column = \"age\"");
    let hex = job("format = \"hex\"");

    ann.rules(&[
        refuse,
        "name = \"all\"\ndecision = \"allow\"\ncircuits = [\"adder:8\"]",
    ]);
    let decided = ann.decision(&diagnosis);
    assert!(
        decided.contains("rule `no diagnoses`")
            && decided.contains("it uses the column `diagnosis`"),
        "{decided}"
    );
    assert_eq!(ann.check(&age)["rule"], "all");
    let decided = ann.decision(&hex);
    assert!(
        decided.contains("rule `no diagnoses`")
            && decided.contains("it reads input `x`, whose columns cannot be named"),
        "{decided}"
    );

    ann.rules(&[&columns("\"age\", \"pay\"")]);
    assert_eq!(ann.check(&age)["allowed"], true);
    let decided = ann.decision(&diagnosis);
    assert!(
        decided.contains("rule `sums`: the job uses the column `diagnosis`"),
        "{decided}"
    );
    let decided = ann.decision(&hex);
    let want = "rule `sums`: the job reads input `x`, whose columns cannot be named, and the rule lists `columns`";
    assert!(decided.contains(want), "{decided}");

    let facts = &ann.check(&diagnosis)["facts"];
    assert_eq!(facts["opens_rows"], true);
    let first = &facts["inputs"][0];
    assert_eq!(
        (&first["owner"], &first["column"], &first["port"]),
        (&"ann".into(), &"diagnosis".into(), &"x".into())
    );
    // It is another plan, and the explanation says what is read.
    assert_ne!(ann.check(&diagnosis)["plan"], ann.check(&age)["plan"]);
    assert_ne!(ann.check(&hex)["plan"], ann.check(&age)["plan"]);
    ann.0.write("job.toml", diagnosis);
    let explained = ann.0.succeed("explain job.toml");
    for line in [
        "  read: `x` of ann: column \"diagnosis\" of a CSV file, 8 bits in every row\n",
        "  read: `y` of bob: column \"pay\" of a CSV file, 8 bits in every row\n",
        "  order: rows are paired as the owners agreed beforehand, and not compared\n",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
}

/// The same job between two parties, against this adversary, with these lines besides.
fn between_two(adversary: &str, more: &str) -> String {
    let two = SUMS
        .replace("\"ann\", \"bob\", \"carol\"", "\"ann\", \"bob\"")
        .replace("to = \"carol\"", "to = \"bob\"")
        .replace("INPUT", "format = \"csv\", column = \"age\"");
    let words = format!("adversary = \"{adversary}\"\n{more}circuit = {{");
    two.replace("circuit = {", &words)
}

/// Case S4: what a garbler can forge once in 512 times was as good as malicious.
#[test]
fn cut_and_choose_is_as_strong_as_its_parameter() {
    let ann = Ann::new();
    let job = |statistical: &str| between_two("malicious-cutchoose", statistical);
    for few in ["9", "19", "29", "39"] {
        let said = ann.refused(&job(&format!("statistical = \"{few}\"\n")));
        let want = format!(
            "job.toml:7:15: `statistical` is \"{few}\": a cheat would get away with probability 2^-{few}; write \"40\" or more, less is for \
             `veil-lab bench cut` alone"
        );
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&want), "{said}");
    }
    let rule = |more: &str| {
        format!(
            "name = \"sums\"\ndecision = \"allow\"\ncircuits = [\"adder:8\"]\nadversary = \"malicious\"\n{more}"
        )
    };
    ann.rules(&[&rule("")]);
    assert_eq!(ann.check(&job(""))["allowed"], true);
    ann.rules(&[&rule("statistical = 59")]);
    let decided = ann.decision(&job(""));
    let want = "rule `sums`: a cheat gets away with probability 2^-40 in each row or batch, and the rule wants 2^-59 at most";
    assert!(decided.contains(want), "{decided}");
    assert_eq!(ann.check(&job("statistical = \"59\"\n"))["allowed"], true);
    let said = ann.0.succeed("policy check job.toml --home a");
    let want = "malicious-cutchoose: a cheat gets away with probability 2^-59 in each row";
    assert!(said.contains(want), "{said}");
}

/// Who reads a job reads the assumption that it adds, and a rule that does not name it leaves it to a person.
#[test]
fn a_job_that_rests_on_more_says_so_and_needs_a_rule_that_does() {
    let ann = Ann::new();
    let job = |more: &str| between_two("malicious", more);
    let rule = |more: &str| {
        format!("name = \"sums\"\ndecision = \"allow\"\ncircuits = [\"adder:8\"]\n{more}")
    };
    let silent = job("ot = \"silent\"\n");
    ann.rules(&[&rule("")]);
    assert_eq!(ann.check(&job(""))["allowed"], true);
    let decided = ann.decision(&silent);
    let want = "rule `sums`: the job rests on `regular-lpn`, and the rule lists no `assumptions`";
    assert!(decided.contains(want), "{decided}");
    let said = ann.0.succeed("explain job.toml");
    let want = "yao, malicious, abort, 2 parties, error of 2^-40, if learning parity with regular noise is hard\n";
    assert!(said.contains(want), "{said}");
    ann.rules(&[&rule("assumptions = [\"regular-lpn\"]")]);
    for job in [&silent, &job("")] {
        assert_eq!(ann.check(job)["allowed"], true);
    }
    let refuse = "name = \"no\"\ndecision = \"refuse\"\nassumptions = [\"regular-lpn\"]";
    ann.rules(&[refuse, &rule("")]);
    let decided = ann.decision(&silent);
    assert!(decided.contains("it rests on `regular-lpn`"), "{decided}");
    assert_eq!(ann.check(&job(""))["allowed"], true);
}

/// Case S5: owners agreed that the fourth party gets a sum, and all four got it.
#[test]
fn what_is_for_one_party_has_another_plan_than_what_is_for_all() {
    let folder = Folder::new();
    let plan = |to: &str| {
        folder.write(
            "job.toml",
            format!(
                r#"version = 1
kind = "stats"
name = "sum"
owners = ["ann"]
parties = ["p0", "p1", "p2", "p3"]
column = [{{ name = "wage", type = "integer", min = 0, max = 20000 }}]
block = [{{ name = "all", rows = 2, holds = {{ ann = ["wage"] }} }}]
analysis = [{{ name = "sum", kind = "sum", of = "wage", to = "{to}" }}]
"#
            ),
        );
        let said: Value = serde_json::from_str(&folder.succeed("explain job.toml --json")).unwrap();
        said["plan"].as_str().unwrap().to_owned()
    };
    let plans: Vec<String> = ["p0", "p1", "p2", "p3", "parties"].map(plan).into();
    for (k, one) in plans.iter().enumerate() {
        assert!(!plans[..k].contains(one), "{plans:?}");
    }
}

/// A block of two owners, whose word for the order of rows is `ORDER`.
const STUDY: &str = r#"version = 1
kind = "stats"
name = "pay by group"
owners = ["mill", "office"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [{ name = "pay", type = "integer", min = 0, max = 9999 },
          { name = "group", type = "category", values = ["a", "b"] }]
block = [{ name = "all", rows = 20, holds = { mill = ["pay"], office = ["group"] },ORDER
           files = { mill = "mill.csv", office = "office.csv" } }]
analysis = [{ name = "pay", kind = "sum", of = "pay", by = "group", to = "press" }]
"#;

fn study() -> Folder {
    let folder = Folder::new();
    let people = |row: &dyn Fn(u32) -> String, order: &[u32]| -> String {
        order
            .iter()
            .map(|id| [id.to_string(), row(*id)].join(",") + "\n")
            .collect()
    };
    let all: Vec<u32> = (0..20).collect();
    let shuffled: Vec<u32> = (0..20).map(|row| row * 7 % 20).collect();
    let twice: Vec<u32> = (0..20).map(|row| if row == 19 { 3 } else { row }).collect();
    let group = |id: u32| if id.is_multiple_of(3) { "a" } else { "b" }.to_owned();
    let pay = |id: u32| (100 * id).to_string();
    folder.write("mill.csv", format!("id,pay\n{}", people(&pay, &all)));
    folder.write(
        "mill-twice.csv",
        format!("id,pay\n{}", people(&pay, &twice)),
    );
    for (name, order) in [("office", &all), ("shuffled", &shuffled), ("twice", &twice)] {
        let table = format!("id,group\n{}", people(&group, order));
        folder.write(&format!("{name}.csv"), table);
    }
    folder.succeed("data key new align.key");
    folder
}

fn ordered(folder: &Folder, order: &str) {
    folder.write("job.toml", STUDY.replace("ORDER", order));
}

#[test]
fn rows_of_several_owners_are_paired_by_a_word_or_by_a_key() {
    let folder = study();
    ordered(&folder, "");
    for command in ["explain job.toml", "stats job.toml --check"] {
        let output = folder.veil(command);
        assert_eq!(output.status.code(), Some(3), "{command}");
        let said = text(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "job.toml:9:10: block `all` has columns of `mill` and `office`",
            "write `align = { column = \"…\", every = 65536 }`",
            "or `order = \"agreed\"`",
        ] {
            assert!(said.contains(part), "{command} does not say {part}: {said}");
        }
    }

    // Agreed, and not so: wrong numbers, as everything says that explains them.
    ordered(&folder, " order = \"agreed\",");
    let explained = folder.succeed("explain job.toml");
    let before =
        "  order: block `all`: rows are paired as the owners agreed beforehand, and not compared\n";
    assert!(explained.contains(before), "{explained}");
    let after = "block `all`: rows were paired as the owners agreed beforehand, and not compared";
    let said = folder.succeed("stats job.toml --check --data office:all=shuffled.csv --out agreed");
    let unchecked = format!("not checked: {after}; the clear computation pairs them alike\n");
    assert!(said.contains(&unchecked), "{said}");
    let file = |name: &str| fs::read_to_string(folder.at(name)).unwrap();
    let result = file("agreed/press/result.txt");
    assert!(result.contains(&format!("{after}\n")), "{result}");
    let result: Value = serde_json::from_str(&file("agreed/press/result.json")).unwrap();
    let paired = serde_json::json!([{ "block": "all", "order": "agreed" }]);
    assert_eq!(result["paired"], paired);

    // Compared: a shuffled table is refused, and nothing is shared.
    ordered(&folder, " align = { column = \"id\", every = 16 },");
    let explained = folder.succeed("explain job.toml");
    let before = "  order: block `all`: the order of rows is compared by column `id`\n";
    assert!(explained.contains(before), "{explained}");
    folder.fail(
        "stats job.toml --align-key align.key --data office:all=shuffled.csv",
        3,
        &["nothing was shared"],
    );
    let said = folder.succeed("stats job.toml --check --align-key align.key --out compared");
    let after = "block `all`: the order of rows was compared by column `id`\n";
    assert!(said.contains(&format!("checked: {after}")), "{said}");
    assert!(file("compared/press/result.txt").contains(after));
    let result: Value = serde_json::from_str(&file("compared/press/result.json")).unwrap();
    let paired = serde_json::json!([{ "block": "all", "order": "compared", "column": "id" }]);
    assert_eq!(result["paired"], paired);
}

#[test]
fn a_key_that_two_rows_have_is_named_with_both() {
    let folder = study();
    ordered(&folder, " align = { column = \"id\", every = 16 },");
    let twice = "--align-key align.key --data mill:all=mill-twice.csv --data office:all=twice.csv";
    folder.fail(
        &format!("stats job.toml {twice}"),
        3,
        &[
            "mill-twice.csv: line 21 (row 20), column `id`: `3` is the key of row 4 (line 5) as well",
            "write `duplicates = \"allowed\"` into `align`",
        ],
    );
    folder.fail(
        "data check job.toml --owner office --align-key align.key --data office:all=twice.csv",
        3,
        &["twice.csv: line 21 (row 20), column `id`: `3` is the key of row 4 (line 5) as well"],
    );
    ordered(
        &folder,
        " align = { column = \"id\", every = 16, duplicates = \"allowed\" },",
    );
    let said = folder.succeed(&format!("stats job.toml --check {twice}"));
    let want = "checked: block `all`: the order of rows was compared by column `id`, in which a key may be there several times\n";
    assert!(said.contains(want), "{said}");
}
