//! Queries between two parties from end to end: in threads and in processes, semi-honest and malicious; what `explain` says of them, and what two parties refuse.

use std::fs;

use serde_json::Value;

use crate::common::Folder;
use crate::queries::{JOB, PEOPLE, STAYS};

/// Owners are outside, or one is a party; results go to a recipient outside and to a party.
fn folder(adversary: &str) -> Folder {
    let folder = Folder::new();
    let job = JOB
        .replace(
            "parties = [\"a\", \"b\", \"c\"]",
            "parties = [\"a\", \"bob\"]",
        )
        .replace("OWNER", "bob")
        .replace(
            "kind = \"query\"\n",
            &format!("kind = \"query\"\n{adversary}"),
        );
    folder.write("job.toml", job);
    folder.write("stays.csv", STAYS);
    folder.write("people.csv", PEOPLE);
    folder
}

const MALICIOUS: &str = "adversary = \"malicious\"\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// By hand, as among three parties.
fn published(folder: &Folder, out: &str) {
    let read = |name: &str| fs::read_to_string(folder.at(&format!("{out}/{name}"))).unwrap();
    assert_eq!(
        read("eve/by_ward.csv"),
        "ward,stays,cost,mean\neast,2,10.75,5.375000\nwest,3,7.00,3.500000\n"
    );
    assert_eq!(
        read("a/dearest.csv"),
        "since,cost\n2024-03-03,700.00\n2024-05-05,700.00\n"
    );
}

#[test]
fn two_parties_answer_queries() {
    for adversary in ["", MALICIOUS] {
        let folder = folder(adversary);
        folder.succeed("run job.toml --out threads");
        published(&folder, "threads");
        let run = json(&folder.succeed("run job.toml --json --out processes --processes"));
        published(&folder, "processes");
        let explained = json(&folder.succeed("explain job.toml --json"));
        assert_eq!(explained["plan"], run["plan"]);
    }
}

/// What is declared is what is sent, by every participant; operators have all ANDs between them.
#[test]
fn declared_bytes_and_ands_are_those_of_a_run() {
    for adversary in ["", MALICIOUS] {
        let folder = folder(adversary);
        let explained = json(&folder.succeed("explain job.toml --json"));
        let run = json(&folder.succeed("run job.toml --json --out out --lanes 1"));
        let declared = explained["participants"].as_array().unwrap();
        for took in run["participants"].as_array().unwrap() {
            let same = |of: &&Value| of["name"] == took["name"] && of["role"] == took["role"];
            let declared = declared.iter().find(same).unwrap();
            assert_eq!(declared["framed"], took["bytes_sent"], "{took}");
        }
        let operators = explained["operators"].as_array().unwrap().iter();
        let ands: u64 = operators.map(|of| of["ands"].as_u64().unwrap()).sum();
        assert_eq!(Some(ands), explained["ands"].as_u64());
        assert_eq!(explained["passes"], 1);
    }
}

#[test]
fn an_explanation_says_what_more_parties_would_send() {
    let folder = folder("");
    let text = folder.succeed("explain job.toml");
    for part in [
        "circuit    all queries are one, of ",
        "opened to eve, and nothing else\n  `by_ward`: up to 3 rows of ward, stays, cost, mean, without groups of fewer than 2 rows\n  \
         one bit: whether the run ends without a result, since what the parties see ends it\n",
        "opened to a, and nothing else\n  `dearest`: up to 2 rows of since, cost\n",
        "opened to the computing parties, and nothing else\n  one bit: whether what ann says",
        "one bit: whether a key of `people` occurs twice; the run ends if it does\n",
        "  what ann supplies is looked at in the circuit: ",
        "the same among three parties (rep3: semi-honest",
        "the same among four parties (rep4: malicious",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(!text.contains("permutation"), "{text}");
    let plan = folder.succeed("explain job.toml --plan");
    let head: Vec<&str> = plan.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["operator", "rows", "ANDs"]);
}

/// An owner's own claim is found where its table is, before anything is sent; what two parties do not do is said when the job is read.
#[test]
fn what_two_parties_do_not_do_is_refused() {
    let folder = folder("");
    folder.replace("people.csv", "noa,1971,53", "kim,1980,53");
    folder.fail(
        "run job.toml",
        3,
        &["is in row 2 as well, and the job says that [\"patient\"] is unique"],
    );
    folder.replace("job.toml", "to = \"a\"", "keep = \"dearest\"");
    folder.fail(
        "run job.toml",
        3,
        &["two parties keep no shares, and load none; name three parties, or four, or leave out `keep`"],
    );
    let folder = self::folder("");
    folder.replace("job.toml", "up_to = 12", "up_to = 100000");
    folder.fail(
        "explain job.toml",
        3,
        &["between two parties the queries are one circuit of bits, of at most 16777216 gates, and they have more"],
    );
}

/// Statistics over tables are queries, and are checked as such.
#[test]
fn two_parties_compute_statistics_over_tables() {
    for adversary in ["", MALICIOUS] {
        let folder = folder(adversary);
        let job = fs::read_to_string(folder.at("job.toml")).unwrap();
        let (tables, _) = job.split_once("[[query]]").unwrap();
        let tables = tables.replace("kind = \"query\"", "kind = \"stats\"");
        folder.write(
            "job.toml",
            tables
                + r#"
[[analysis]]
name = "costs"
from = "stays JOIN people ON stays.patient = people.patient"
where = "age >= 18"
kind = "mean"
of = "cost"
by = "ward"
to = "eve"
"#,
        );
        let text = folder.succeed("stats job.toml --check");
        assert!(
            text.contains(
                "checked: the clear computation over the data of all owners gives the same numbers"
            ),
            "{text}"
        );
    }
}
