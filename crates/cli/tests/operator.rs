//! What a party's operator is told, what others are told, and what does not happen unless it is logged: three services on loopback, an
//! owner and a recipient.

use std::fs;

use crate::common::deployment::{
    Service, alone, at, kill, states, submit, succeed, take_part, wait,
};
use crate::common::homes::{NAMES, homes};
use crate::common::line::Line;
use crate::common::{Folder, text};
use veil_node::{Home, Role};

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
    let _alone = alone();
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

/// Attack case S9: what a participant reads of why a job waits or was refused says nothing of a party's rules.
#[test]
fn others_read_that_a_policy_refuses_and_not_which_rule() {
    let _alone = alone();
    let (folder, homes) = site();
    let policy = |name: &str, decision: &str, jobs: &str| {
        let rule = format!("name = \"{name}\"\ndecision = \"{decision}\"\njobs = [\"{jobs}\"]\n");
        folder.write("c/policy.toml", format!("version = 1\n[[rule]]\n{rule}"));
    };
    let _services = serve(&folder, &[]);
    policy("only the harbour", "allow", "harbour");
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["pending"; 3]);
    let why = |of: &str| at(&folder, of, "c", &plan).unwrap().why;
    assert_eq!(why("eve"), "it waits for approval at this party");
    assert_eq!(
        why("c"),
        "waits for approval: rule `only the harbour`: the job is named `blocks`; `veil approve` shows the job and asks"
    );
    policy("never blocks", "refuse", "blocks");
    wait("it is refused", || states(&folder, &plan)[2] == "refused");
    assert_eq!(why("eve"), "this party's policy refuses it");
    assert_eq!(
        why("c"),
        "refused by rule `never blocks` of the policy: it is named `blocks`"
    );
    let again = folder.veil("submit job.toml --home eve");
    let said = text(&again.stdout) + &text(&again.stderr);
    assert!(
        said.contains("`c` refuses the job: this party's policy refuses it"),
        "{said}"
    );
    assert!(!said.contains("never"), "{said}");
    let log = fs::read_to_string(homes[2].log().path()).unwrap();
    assert!(log.contains("\"rule\":\"never blocks\"") && log.contains("\"kind\":\"refusal\""));
}

#[test]
fn a_policy_that_cannot_be_read_is_told_everywhere() {
    let _alone = alone();
    let folder = Folder::new();
    homes(folder.path(), &["a", "ann"]);
    let service = Service::start(folder.path(), "a", &[]);
    assert!(service.page("/readyz").starts_with("HTTP/1.1 200"));
    let rule = "version = 1\n[[rule]]\nname = \"x\"\ndecison = \"ask\"\n";
    folder.write("a/policy.toml", rule);
    let wrong = "policy.toml:4:1: unknown field `decison`, did you mean `decision`?";
    wait("it is in the log lines", || service.said().contains(wrong));
    let page = service.page("/readyz");
    assert!(page.starts_with("HTTP/1.1 503"), "{page}");
    assert!(
        page.contains("not ready: the policy cannot be read, and allows nothing: ")
            && page.contains(wrong),
        "{page}"
    );
    assert!(service.metric("mpc_policy_readable") < 0.5);
    let doctor = text(&folder.veil("doctor --home a").stdout);
    let line = doctor
        .lines()
        .find(|line| line.contains("policy  "))
        .unwrap();
    assert!(line.contains("MISSING") && line.contains(wrong), "{doctor}");
    folder.write("a/policy.toml", rule.replace("decison", "decision"));
    wait("it is ready", || {
        service.page("/readyz").starts_with("HTTP/1.1 200")
    });
    wait("and says so", || service.said().contains("ready again"));
    assert_eq!(service.said().matches(wrong).count(), 1, "said once");
}

#[test]
fn a_run_that_was_killed_is_ended_in_the_log_and_called_interrupted() {
    let _alone = alone();
    let (folder, homes) = site();
    let mut line = Line::stand(&folder, &homes[0]);
    let mut services = serve(&folder, &["--yes"]);
    line.learn(&folder);
    line.hold();
    let (plan, _) = submit(&folder, "job.toml");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    wait("it runs", || states(&folder, &plan)[2] == "running");
    // As a machine that loses power.
    drop(services.pop());
    parts.into_iter().for_each(kill);
    assert_eq!(begun(&homes[2]).len(), 1);
    services.push(Service::start(folder.path(), "c", &["--yes"]));
    // It plans the job once more before it knows it.
    wait("it is known again", || {
        at(&folder, "c", "c", &plan).is_some()
    });
    let at = at(&folder, "c", "c", &plan).unwrap();
    assert_eq!(
        (at.state.as_str(), at.why.as_str()),
        (
            "interrupted",
            "this party's service ended in the middle of the run: propose the job again, or come for it"
        )
    );
    let mut last = None;
    homes[2].log().for_each(|entry| last = Some(entry)).unwrap();
    let last = last.unwrap();
    assert_eq!(
        (last.kind.as_str(), last.text("cause")),
        ("run_ended", Some("killed"))
    );
    assert_eq!(last.text("plan"), Some(plan.as_str()));
    homes[2].log().verify(&[]).unwrap();
}

/// A member that rotated its key while a party was away, and did not tell it.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_key_that_no_member_has_is_called_that_by_both_sides() {
    let _alone = alone();
    let folder = Folder::new();
    let homes = homes(folder.path(), &["a", "ann"]);
    let service = Service::start(folder.path(), "a", &[]);
    homes[1].rotate().unwrap();
    let key = homes[1].identity().fingerprint().to_string();
    // With and without an invitation for another participant.
    for invited in [false, true] {
        if invited {
            let week = std::time::Duration::from_secs(3600);
            homes[0].invite("bob", Role::Owner, week).unwrap();
        }
        let before = service.metric("mpc_refused_connections_total{outcome=\"stranger\"}");
        let doctor = text(&folder.veil("doctor --home ann").stdout);
        let line = doctor
            .lines()
            .find(|line| line.contains("member a"))
            .unwrap();
        assert!(
            line.contains("MISSING") && line.contains(&format!("does not accept our key {key}")),
            "{doctor}"
        );
        assert!(
            doctor.contains("was our key rotated, and not announced there? `veil identity show --statements` prints what `veil join` takes there"),
            "{doctor}"
        );
        let jobs = folder.veil("jobs --home ann");
        let said = text(&jobs.stdout);
        assert_eq!(jobs.status.code(), Some(4), "{said}");
        assert!(
            said.contains("a:\n  gave no answer: `a`: ")
                && said.contains("does not accept our key"),
            "{said}"
        );
        wait("it is counted", || {
            service.metric("mpc_refused_connections_total{outcome=\"stranger\"}") >= before + 2.0
        });
    }
    let said = service.said();
    let named = |line: &&str| line.contains("nobody here knows this key") && line.contains(&key);
    assert_eq!(
        said.lines().filter(named).count(),
        1,
        "once a minute: {said}"
    );
    let statement = homes[1].statements().unwrap()[0].to_string();
    folder.succeed(&format!("join {statement} --home a"));
    wait("it is known", || {
        folder.veil("jobs --home ann").status.success()
    });
}

/// A member that was revoked takes a new key, and one command lets it in again.
#[test]
fn a_revoked_member_that_rotated_is_let_in_by_one_command() {
    let _alone = alone();
    let folder = Folder::new();
    let homes = homes(folder.path(), &["a", "ann"]);
    let _service = Service::start(folder.path(), "a", &[]);
    let old = homes[1].identity().fingerprint().to_string();
    folder.succeed("members revoke ann --reason mistaken --home a");
    wait("it is refused", || {
        !folder.veil("jobs --home ann").status.success()
    });
    let dead = "the key of `ann` was revoked here and is not let in again: it needs a new one (`veil identity rotate` there), and then `veil members readmit ann --key KEY` here";
    folder.fail(
        &format!("members readmit ann --key {old} --home a"),
        3,
        &[dead],
    );
    // What its own `veil join` says, and what the party does.
    let invitation = homes[0].invite("ann", Role::Owner, std::time::Duration::from_secs(60));
    let joined = folder.veil(&format!("join {} --home ann", invitation.unwrap()));
    let said = text(&joined.stderr);
    assert!(
        said.contains("`a` does not accept our key")
            && said.contains("`veil members readmit ann --key KEY` there lets it in"),
        "{said}"
    );
    let answer = text(&joined.stdout);
    folder.fail(&format!("join {} --home a", answer.trim()), 3, &[dead]);
    let rotated = homes[1].rotate().unwrap();
    folder.fail(
        &format!("join {rotated} --home a"),
        3,
        &["`veil members readmit` lets it in again with its new key"],
    );
    let new = homes[1].identity().fingerprint().to_string();
    folder.succeed(&format!("members readmit ann --key {new} --home a"));
    wait("it is let in", || {
        folder.veil("jobs --home ann").status.success()
    });
    let mut last = None;
    homes[0].log().for_each(|entry| last = Some(entry)).unwrap();
    let last = last.unwrap();
    assert_eq!(
        (last.kind.as_str(), last.text("old"), last.text("new")),
        ("readmission", Some(old.as_str()), Some(new.as_str()))
    );
    folder.fail(
        &format!("members readmit ann --key {new} --home a"),
        3,
        &["`ann` is a member already"],
    );
}
