//! Participants of an ordinary job come in any order and minutes apart: one that has not come is named everywhere, and no time-out of a run
//! begins before all are there. A participant that dies, or is held up by its own data, is the one that is named.

use crate::common;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::Folder;
use crate::common::deployment::{
    PATIENCE, Place, Service, alone, at, end, states, submit, take_part_at, wait, wait_for,
};
use crate::common::homes::{NAMES, homes};
use rustix::process::{Pid, Signal, kill_process};
use veil_node::Home;

/// A run may stand still for so many seconds, and no longer.
const TIMEOUT: &str = "2";

/// Later than that.
const LATER: Duration = Duration::from_secs(5);

/// A deployment whose runs may not stand still for long, and which approves every job.
fn deployment() -> (Folder, Vec<Home>, Vec<Service>) {
    deployment_of(Folder::blocks(), &["--yes", "--timeout", TIMEOUT])
}

fn deployment_of(folder: Folder, more: &[&str]) -> (Folder, Vec<Home>, Vec<Service>) {
    let homes = homes(folder.path(), &NAMES);
    let options = [&["--admin", "127.0.0.1:0", "--wait", "180"], more].concat();
    let start = |name: &&str| Service::start_at(&Place::HERE, folder.path(), name, &options);
    let services = NAMES[..3].iter().map(start).collect();
    (folder, homes, services)
}

/// A participant that is as impatient.
fn comes(folder: &Folder, name: &str) -> Child {
    take_part_at(
        &Place::HERE,
        folder,
        "job.toml",
        name,
        &["--timeout", TIMEOUT],
    )
}

/// A participant that waits for so long, and what it says.
fn waits(folder: &Folder, name: &str, seconds: &str) -> (Option<i32>, String) {
    let child = Place::HERE
        .veil(folder.path())
        .args(["party", "job.toml", "--home", name, "--out", "out", "--yes"])
        .args(["--wait", seconds, "--timeout", TIMEOUT])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    end(child)
}

/// One comes, and the other one long after it.
fn late([first, second]: [&str; 2], role: &str) {
    let _alone = alone();
    let (folder, _homes, _services) = deployment();
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["accepted"; 3]);
    let early = comes(&folder, first);
    missing(&folder, &plan, &[second]);
    let watches = [
        "jobs --home eve --watch",
        "submit job.toml --home eve --watch",
    ];
    let watches = watches.map(|command| watch(&folder, command));
    thread::sleep(LATER);
    let (code, said) = end(comes(&folder, second));
    assert_eq!(code, Some(0), "{second}, which came late: {said}");
    let (code, said) = end(early);
    assert_eq!(code, Some(0), "{first}, which came early: {said}");
    let named = format!("waiting for {role} `{second}` since ");
    assert!(
        said.contains(&named) && said.contains(" s (3 min at most)"),
        "{said}"
    );
    assert_eq!(said.matches(&named).count(), 1, "said once: {said}");
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    for watched in watches {
        let output = watched.wait_with_output().unwrap();
        let said = common::text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
        for party in ["a", "b", "c"] {
            let of = |line: &&str| line.starts_with(&format!("{party}: "));
            let lines: Vec<&str> = said.lines().filter(of).collect();
            let waits = format!("meeting, waits for {second}");
            assert!(lines.iter().any(|line| line.contains(&waits)), "{said}");
            assert!(lines.last().unwrap().contains("done"), "{said}");
        }
    }
}

/// Watches, until all is over.
fn watch(folder: &Folder, command: &str) -> Child {
    Place::HERE
        .veil(folder.path())
        .args(command.split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until all parties say that these are missing, and no others.
fn missing(folder: &Folder, plan: &str, who: &[&str]) {
    for party in &NAMES[..3] {
        let met = || at(folder, "eve", party, plan).unwrap_or_default();
        let met = wait_for("who is missing", met, |at| at.waits_for == who);
        assert_eq!(met.state, "meeting", "{party}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_recipient_comes_long_before_the_owner() {
    late(["eve", "ann"], "owner");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn an_owner_comes_long_before_the_recipient() {
    late(["ann", "eve"], "recipient");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn an_owner_that_does_not_come_is_named_by_all_who_wait() {
    let _alone = alone();
    let (folder, _homes, services) = deployment();
    let (plan, _) = submit(&folder, "job.toml");
    let (code, said) = waits(&folder, "eve", "5");
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("waiting for owner `ann` since 5 s (5 s at most)"),
        "{said}"
    );
    // The recipient is gone again.
    missing(&folder, &plan, &["ann", "eve"]);
    let all = folder.succeed("jobs --home eve");
    assert_eq!(
        all.matches("meeting, waits for ann, eve").count(),
        3,
        "{all}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&folder.succeed("jobs --home eve --json")).unwrap();
    for party in json.as_array().unwrap() {
        assert_eq!(party["jobs"][0]["plan"], plan);
        assert_eq!(
            party["jobs"][0]["waits_for"],
            serde_json::json!(["ann", "eve"])
        );
    }
    drop(services);
    // Parties that wait no longer say for whom they did.
    let options = ["--admin", "127.0.0.1:0", "--yes", "--wait", "3"];
    let service = Service::start_at(&Place::HERE, folder.path(), "a", &options);
    let others =
        ["b", "c"].map(|name| Service::start_at(&Place::HERE, folder.path(), name, &options));
    submit(&folder, "job.toml");
    let log = || service.said();
    let log = wait_for("given up", log, |said| said.contains("given up"));
    assert!(log.contains("owner 0 is `ann`"), "{log}");
    drop(others);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn parties_in_the_foreground_say_who_is_missing() {
    let _alone = alone();
    let folder = Folder::blocks();
    homes(folder.path(), &NAMES);
    let parties = ["a", "b", "c"].map(|name| comes(&folder, name));
    let (code, said) = waits(&folder, "eve", "6");
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("waiting for owner `ann` since 6 s (6 s at most)"),
        "{said}"
    );
    let late = ["eve", "ann"].map(|name| comes(&folder, name));
    for child in parties.into_iter().chain(late) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn a_party_killed_in_the_middle_of_a_run_is_named_by_all_others() {
    let _alone = alone();
    // Rounds that take long enough to be killed in.
    let wan = ["--yes", "--timeout", "60", "--net", "wan"];
    let (folder, _homes, mut services) = deployment_of(Folder::blocks(), &wan);
    let (plan, _) = submit(&folder, "job.toml");
    let slow = ["--timeout", "60", "--net", "wan"];
    let others =
        ["ann", "eve"].map(|name| take_part_at(&Place::HERE, &folder, "job.toml", name, &slow));
    let rows = || at(&folder, "eve", "a", &plan).unwrap_or_default();
    wait_for("rows", rows, |at| at.phase == "rows" && at.received > 0);
    let killed = services.pop().unwrap();
    let id = Pid::from_raw(killed.id().cast_signed()).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    for (name, child) in ["ann", "eve"].into_iter().zip(others) {
        let (code, said) = end(child);
        // An owner may have sent all that it has.
        if name == "eve" || code != Some(0) {
            assert_eq!(code, Some(5), "{name}: {said}");
            assert!(
                said.contains("party 2: the connection ended"),
                "{name}: {said}"
            );
        }
    }
    for (service, name) in services.iter().zip(["a", "b"]) {
        let is = || at(&folder, "eve", name, &plan).unwrap_or_default();
        let is = wait_for("failed", is, |at| at.state == "failed");
        assert!(
            is.why.contains("party 2: the connection ended"),
            "{name}: {}",
            is.why
        );
        assert!(
            is.why.contains("party 2 is `c`") && !is.why.contains("eve"),
            "{name}: {}",
            is.why
        );
        let link = service.metric("mpc_runs_total{outcome=\"link\"}");
        assert!((link - 1.0).abs() < 0.1, "{}", service.page("/metrics"));
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn an_owner_whose_data_are_wrong_is_waited_for_by_name() {
    let _alone = alone();
    let (folder, homes, _services) = deployment();
    let (plan, _) = submit(&folder, "job.toml");
    let file = "key.hex";
    let good = std::fs::read(folder.at(file)).unwrap();
    folder.write(file, "no hexadecimal\n");
    let early = comes(&folder, "eve");
    missing(&folder, &plan, &["ann"]);
    let (code, said) = end(comes(&folder, "ann"));
    assert_eq!(code, Some(3), "{said}");
    let all = folder.succeed("jobs --home eve");
    let held = "waits for ann: its data are being corrected";
    assert_eq!(all.matches(held).count(), 3, "{all}");
    let json = folder.succeed("jobs --home eve --json");
    assert!(!json.contains(file), "{json}");
    // A participant that waits asks every two seconds.
    thread::sleep(LATER);
    folder.write(file, good);
    assert_eq!(end(comes(&folder, "ann")).0, Some(0));
    let (code, said) = end(early);
    assert_eq!(code, Some(0), "{said}");
    let held = "waiting for owner `ann`: its data are being corrected, since ";
    assert!(said.contains(held), "{said}");
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    drop(homes);
}

#[test]
fn a_job_with_a_revoked_member_is_refused() {
    let _alone = alone();
    let (folder, homes, _services) = deployment();
    homes[1].revoke("ann", "it left").unwrap();
    let said = || {
        let output = Place::HERE
            .veil(folder.path())
            .args([
                "submit",
                "job.toml",
                "--home",
                "eve",
                "--wait",
                &PATIENCE.to_string(),
            ])
            .output()
            .unwrap();
        (output.status.code(), common::text(&output.stdout))
    };
    let refused = "b: refused: `ann`, which takes part in the job, is no member of this party";
    let (code, said) = wait_for("refused", said, |(_, said)| said.contains(refused));
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("a: accepted") && said.contains("c: accepted"),
        "{said}"
    );
}
