//! What a party's operator is told, what others are told, and what does not happen unless it is logged: three services on loopback, an
//! owner and a recipient.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::fs;

use common::Folder;
use common::deployment::{
    Service, approve, at, states, submit, succeed, take_part, turn, wait, wait_for,
};
use common::homes::{NAMES, homes};
use veil_node::Home;

/// What others read of a party whose log cannot be written.
const NO_LOG: &str = "this party's log cannot be written: the job waits until it can; its operator reads why with `veil jobs` there";

fn site() -> (Folder, Vec<Home>) {
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    (folder, homes)
}

fn serve(folder: &Folder, more: &[&str]) -> Vec<Service> {
    let start = |name: &&str| Service::start(folder.path(), name, more);
    NAMES[..3].iter().map(start).collect()
}

/// What a party's log says of the runs that began there: the name of what ran, and what decided.
fn begun(home: &Home) -> Vec<(String, serde_json::Value)> {
    home.log().verify(&[]).unwrap();
    let mut begun = Vec::new();
    let log = home.log();
    log.for_each(|entry| {
        if entry.kind == "run_started" {
            let job = entry.text("job").unwrap().to_owned();
            begun.push((job, entry.fields["decided"].clone()));
        }
    })
    .unwrap();
    begun
}

/// Attack case S6: a log that takes no entry stops the input stage of a durable job, and what `--yes` allows.
#[test]
fn nothing_runs_that_is_not_in_the_log() {
    let _turn = turn();
    let (folder, homes) = site();
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    let services = serve(&folder, &["--yes"]);
    // Its end is not the one that it had: nothing is added to it.
    let head = folder.at("c/log.head");
    let good = fs::read_to_string(&head).unwrap();
    fs::write(&head, format!("9{good}")).unwrap();
    let log = fs::read(folder.at("c/log.jsonl")).unwrap();
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["accepted", "accepted", "pending"]);
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    wait("the others meet", || {
        states(&folder, &plan)[..2] == ["meeting"; 2]
    });
    let others = at(&folder, "eve", "c", &plan).unwrap();
    assert_eq!(
        (others.state.as_str(), others.why.as_str()),
        ("pending", NO_LOG)
    );
    let own = at(&folder, "c", "c", &plan).unwrap();
    assert!(
        own.why
            .contains("log.jsonl: the log does not end as it was left"),
        "{own:?}"
    );
    assert!(fs::read(folder.at("c/log.jsonl")).unwrap() == log);
    fs::write(&head, good).unwrap();
    for part in parts {
        succeed(part);
    }
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    drop(services);
    let yes = serde_json::json!({"by": "yes"});
    let stages = ["blocks: input", "blocks"].map(|job| (job.to_owned(), yes.clone()));
    for home in &homes[..3] {
        assert_eq!(begun(home), stages);
    }
}
