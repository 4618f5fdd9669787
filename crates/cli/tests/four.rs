//! A job of four parties, in one process and in processes over TLS.

use std::path::{Path, PathBuf};

use crate::common::{Folder, text};

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

/// What eve got.
fn result(folder: &Folder, out: &str) -> String {
    std::fs::read_to_string(folder.at(out).join("eve/result.txt")).unwrap()
}

fn shares(folder: &Folder, party: &str, name: &str) -> PathBuf {
    folder.at(&format!(".veil-run/{party}/shares/{name}"))
}

#[test]
fn a_durable_job_of_four_goes_on_without_its_owners() {
    let folder = folder();
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    folder.succeed("run job.toml --out whole --processes");
    assert!(result(&folder, "whole").contains("330000"));
    let kept = |party: &str| shares(&folder, party, "wages%3a input");
    assert!(!kept("a").exists(), "it is done");
    // The second stage cannot write its results; then the owners, and their data, are gone.
    folder.write("results", "a file is in the way");
    let output = folder.veil("run job.toml --out results");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    for party in ["a", "b", "c", "ann"] {
        assert!(kept(party).join("manifest").is_file(), "{party}");
    }
    for owner in ["ann", "bob"] {
        let data = folder.at(&format!("{owner}.csv"));
        std::fs::rename(data, folder.at(owner)).unwrap();
    }
    let output = folder.veil("run job.toml --out resumed");
    let said = text(&output.stderr);
    assert!(said.contains("their owners are not asked again"), "{said}");
    assert!(result(&folder, "resumed").contains("330000"));
    assert!(!kept("a").exists(), "it is done");
    // One of the four has lost its shares: they are made anew.
    for owner in ["ann", "bob"] {
        std::fs::rename(folder.at(owner), folder.at(&format!("{owner}.csv"))).unwrap();
    }
    folder.veil("run job.toml --out results");
    std::fs::remove_file(kept("ann").join("manifest")).unwrap();
    let output = folder.veil("run job.toml --out again");
    let said = text(&output.stderr);
    assert!(!said.contains("their owners are not asked again"), "{said}");
    assert!(result(&folder, "again").contains("330000"));
}

#[test]
fn four_parties_keep_columns_and_later_jobs_load_them() {
    let folder = folder();
    folder.write("keep.toml", format!("{JOB}keep = {{ as = \"pay\" }}\n"));
    folder.succeed("run keep.toml --out kept --processes");
    let (head, rest) = JOB.split_once("block = [").unwrap();
    let (_, analysis) = rest.split_once("analysis").unwrap();
    let block = "block = [{ name = \"all\", rows = 5, stored = \"pay\" }]\n";
    let load = format!("{head}{block}analysis{analysis}");
    let load = load.replace("owners = [\"ann\", \"bob\"]", "owners = []");
    folder.write("load.toml", &load);
    for how in ["", " --processes"] {
        folder.succeed(&format!("run load.toml --out loaded{how}"));
        assert!(result(&folder, "loaded").contains("330000"));
    }
    // Shares of three other parties are not loaded, nor those of another of the four, nor of another dataset.
    let refused = |part: &str| {
        let output = folder.veil("run load.toml");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(part), "{said}");
    };
    folder.write("load.toml", load.replace("\"c\", \"ann\"]", "\"c\"]"));
    refused("it is shared among a, b, c and ann, and the job names a, b and c");
    folder.write("load.toml", &load);
    let [a, b] = ["a", "b"].map(|party| shares(&folder, party, "pay"));
    let aside = folder.at("aside");
    std::fs::rename(&a, &aside).unwrap();
    let copy = |from: &Path| {
        std::fs::create_dir(&a).unwrap();
        for file in ["shares.arrow", "manifest"] {
            std::fs::copy(from.join(file), a.join(file)).unwrap();
        }
    };
    copy(&b);
    refused("was encrypted under key");
    std::fs::remove_dir_all(&a).unwrap();
    // The same columns of another run: whole and authentic, and no shares of the same sharing.
    for party in ["b", "c", "ann"] {
        std::fs::rename(
            shares(&folder, party, "pay"),
            folder.at(&format!("pay {party}")),
        )
        .unwrap();
    }
    folder.succeed("run keep.toml --out kept");
    for party in ["b", "c", "ann"] {
        std::fs::remove_dir_all(shares(&folder, party, "pay")).unwrap();
        std::fs::rename(
            folder.at(&format!("pay {party}")),
            shares(&folder, party, "pay"),
        )
        .unwrap();
    }
    let output = folder.veil("run load.toml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("a stored share"), "{said}");
    std::fs::remove_dir_all(&a).unwrap();
    copy(&aside);
    folder.succeed("run load.toml --out right");
    assert!(result(&folder, "right").contains("330000"));
}

#[test]
fn what_four_parties_cannot_do_is_refused() {
    let folder = folder();
    folder.write(
        "job.toml",
        JOB.replace("\"a\", \"b\"", "\"a\", \"d\", \"b\""),
    );
    let refused = folder.veil("run job.toml");
    let said = text(&refused.stderr);
    assert!(said.contains("5 parties"), "{said}");
}
