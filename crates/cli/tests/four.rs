//! A job of four parties, in one process and in processes over TLS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Folder, text};

const JOB: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann", "bob"]
parties = ["a", "b", "c", "ann"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [
  { name = "x", rows = 3, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } },
  { name = "y", rows = 2, holds = { bob = ["wage"] }, files = { bob = "bob.csv" } },
]
analysis = [{ name = "wages", kind = "variance", of = "wage", to = "eve" }]
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("ann.csv", "wage\n3100\n2900\n4000\n");
    folder.write("bob.csv", "wage\n3500\n2500\n");
    folder
}

#[test]
fn four_parties_give_the_right_result_and_say_what_it_is_worth() {
    let folder = folder();
    for (how, out) in [("", "threads"), (" --processes", "processes")] {
        folder.succeed(&format!("run job.toml --out {out}{how}"));
        let path = folder.at(out).join("eve/result.txt");
        let result = std::fs::read_to_string(path).unwrap();
        assert!(result.contains("330000"), "{result}");
    }
    let explained = folder.succeed("explain job.toml");
    assert!(explained.contains("malicious with abort"), "{explained}");
}

/// The words of a job's security: in the file or beside it they are the same plan, and a difference is refused.
#[test]
fn words_of_security_are_the_same_in_the_job_and_beside_it() {
    let folder = folder();
    let plan = |command: &str| {
        let printed = folder.succeed(&format!("{command} --json"));
        let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
        printed["plan"].as_str().unwrap().to_owned()
    };
    let usual = plan("explain job.toml");
    let all = "--protocol rep4 --adversary malicious --output abort";
    assert_eq!(plan(&format!("explain job.toml {all}")), usual);
    folder.succeed(&format!("run job.toml --processes {all}"));
    for (options, said) in [
        (
            "--protocol rep3",
            "job.toml: `protocol` is \"rep3\": it is of 3 parties, and the job names 4",
        ),
        (
            "--output guaranteed --adversary semi-honest",
            "job.toml: `delivery` is \"guaranteed\": it needs `adversary = \"malicious\"`",
        ),
        ("--adversary none", "write \"semi-honest\" or \"malicious\""),
    ] {
        let refused = folder.veil(&format!("explain job.toml {options}"));
        assert!(!refused.status.success());
        let stderr = text(&refused.stderr);
        assert!(stderr.contains(said), "{stderr}");
    }
    let trusting = folder.succeed("explain job.toml --adversary semi-honest");
    assert!(
        trusting.contains("semi-honest: private against"),
        "{trusting}"
    );
    for how in ["", " --processes"] {
        let run = folder.succeed(&format!("run job.toml --adversary semi-honest{how}"));
        assert!(run.contains("semi-honest: private against"), "{run}");
    }
    assert_ne!(plan("explain job.toml --adversary semi-honest"), usual);
    let words = "version = 1\nprotocol = \"rep4\"\nadversary = \"malicious\"\n";
    folder.replace("job.toml", "version = 1\n", words);
    assert_eq!(plan("explain job.toml"), usual);
    let refused = folder.veil("explain job.toml --adversary semi-honest");
    let stderr = text(&refused.stderr);
    let said = "`--adversary semi-honest` contradicts `adversary = \"malicious\"` of the job";
    assert!(stderr.contains(said), "{stderr}");
}

#[test]
fn what_four_parties_cannot_do_is_refused() {
    let folder = folder();
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    let refused = folder.veil("run job.toml");
    let said = text(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        said.contains("shares at rest are of three parties"),
        "{said}"
    );
    folder.write(
        "job.toml",
        JOB.replace("\"a\", \"b\"", "\"a\", \"d\", \"b\""),
    );
    let refused = folder.veil("run job.toml");
    let said = text(&refused.stderr);
    assert!(said.contains("5 parties"), "{said}");
}
