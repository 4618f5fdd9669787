//! A party's service is killed while a job runs, and started again: the others say who is gone, and the job runs when it is
//! asked for again, in a session of its own.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::collections::BTreeSet;

use common::Folder;
use common::deployment::{
    At, Place, Service, at, end, expected, states, submit, take_part, turn, wait,
};
use common::homes::{NAMES, homes};

#[test]
fn a_service_that_is_killed_is_named_and_the_job_runs_again_in_another_session() {
    let _turn = turn();
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let serve = |name: &str| Service::start(folder.path(), name, &["--yes", "--net", "wan"]);
    let mut services: Vec<Service> = NAMES[..3].iter().map(|name| serve(name)).collect();
    let how = |party: &str, plan: &str| at(&Place::HERE, &folder, party, party, plan).unwrap();
    let stages: [fn(&At) -> bool; 2] = [|at| at.state == "running", |at| at.phase == "rows"];
    for reached in stages {
        let (plan, _) = submit(&folder, "job.toml");
        let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
        wait("it runs", || reached(&how("c", &plan)));
        // Dropped is killed.
        drop(services.pop());
        let (code, said) = end(eve);
        assert_eq!(code, Some(5), "{said}");
        // An owner that had sent all it has is done.
        let (code, said) = end(ann);
        assert!(matches!(code, Some(0 | 5)), "{said}");
        let mut whys = Vec::new();
        for party in ["a", "b"] {
            wait("it is given up", || how(party, &plan).state == "failed");
            whys.push(how(party, &plan).why);
        }
        // Whoever was told by another first says that.
        assert!(whys.iter().any(|why| why.contains("is `c`")), "{whys:?}");
        assert!(whys.iter().all(|why| why.contains("party ")), "{whys:?}");
        assert!(!folder.at("out-job.toml/blocks").exists());
        services.push(serve("c"));
    }
    let (plan, _) = submit(&folder, "job.toml");
    for part in ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name)) {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    // A trace id stands for a session: none comes twice.
    for home in &homes[..2] {
        let mut traces = Vec::new();
        let note = |entry: veil_node::log::Entry| {
            let trace = entry.text("trace").map(str::to_owned);
            traces.extend(trace.filter(|_| entry.kind == "run_ended"));
        };
        home.log().for_each(note).unwrap();
        assert!(!traces.is_empty());
        let different: BTreeSet<&String> = traces.iter().collect();
        assert_eq!(different.len(), traces.len(), "{traces:?}");
    }
}
