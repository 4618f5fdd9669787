//! Jobs of four parties whose output is guaranteed: one party is killed, stalls or is cut off, in whatever round, and the others give the
//! right result without it.
//!
//! Deployments stand still for most of their time here, until a party is missed: they do not wait for each other.

use std::thread;

use crate::common::deployment::{
    At, Place, Service, at, expected, submit, succeed, take_part_at, wait, wait_for,
};
use crate::common::homes::homes;
use crate::common::line::Line;
use crate::common::{Folder, text};
use rustix::process::{Pid, Signal, kill_process};
use veil_node::{Home, receipt};

/// Sums and products of rows.
const WAGES: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c", "d"]
recipients = ["eve"]
delivery = "guaranteed"
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "wages", kind = "variance", of = "wage", to = "eve" }]
"#;

/// How parties serve: no party that is there needs so long for an answer on a busy machine, and every party that is lost costs it.
const SERVES: [&str; 5] = ["--yes", "--wait", "180", "--timeout", "12"];
/// How the others take part.
const COMES: [&str; 2] = ["--timeout", "60"];

const PARTIES: [&str; 4] = ["a", "b", "c", "d"];
/// Services, and a relay on the line from c to a.
struct Site {
    folder: Folder,
    homes: Vec<Home>,
    services: Vec<Service>,
    line: Line,
    plan: String,
}

impl Site {
    /// The job is proposed, and the inputs are checkpointed: no party needs the owner any more.
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("job.toml", WAGES);
        folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
        let homes = homes(folder.path(), &["a", "b", "c", "d", "ann", "eve"]);
        let line = Line::stand(&folder, &homes[0]);
        let mut site = Site {
            folder,
            homes,
            services: Vec::new(),
            line,
            plan: String::new(),
        };
        let services = PARTIES.iter().map(|name| site.serve(name));
        site.services = services.collect();
        site.line.learn(&site.folder);
        site.plan = submit(&site.folder, "job.toml").0;
        succeed(site.take_part("ann"));
        std::fs::remove_file(site.folder.at("ann.csv")).unwrap();
        wait("the inputs are kept", || {
            site.at("a").why.contains("are kept")
        });
        site
    }

    fn serve(&self, name: &str) -> Service {
        Service::start_at(&Place::HERE, self.folder.path(), name, &SERVES)
    }

    fn take_part(&self, name: &str) -> std::process::Child {
        take_part_at(&Place::HERE, &self.folder, "job.toml", name, &COMES)
    }

    fn at(&self, party: &str) -> At {
        at(&self.folder, "eve", party, &self.plan).unwrap_or_default()
    }

    /// Waits until a run has come to this phase, and cannot go on.
    fn reach(&mut self, phase: &str) {
        let (folder, plan) = (&self.folder, &self.plan);
        let look = || at(folder, "eve", "a", plan).unwrap_or_default();
        self.line.reach(phase, look);
    }

    fn index(party: &str) -> usize {
        PARTIES.iter().position(|name| *name == party).unwrap()
    }

    /// The others are done, the result is right, and all of them say who is out.
    fn end(&self, out: &str, eve: std::process::Child) {
        let said = succeed(eve);
        assert!(said.contains(&format!("finish without `{out}`")), "{said}");
        let others = || PARTIES.iter().filter(|party| **party != out);
        wait("done", || {
            others().all(|party| self.at(party).state == "done")
        });
        let result = std::fs::read_to_string(self.folder.at("out-job.toml/result.txt")).unwrap();
        assert!(result.contains("330000"), "{result}");
        let path = self.folder.at("out-job.toml").join(receipt::NAME);
        let receipt: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(receipt["without"], out);
        assert_eq!(receipt["protocol"], "rep3");
        assert_eq!(receipt["security"]["parties"], 3);
        let security =
            format!("\nsecurity: rep3, malicious, guaranteed, 3 parties, without `{out}`\n");
        assert!(result.contains(&security), "{result}");
        for party in others() {
            let mut said = Vec::new();
            let home = &self.homes[Self::index(party)];
            home.log()
                .for_each(|entry| {
                    if entry.kind == "party_out" {
                        said.push(entry.text("party").unwrap_or_default().to_owned());
                    }
                })
                .unwrap();
            assert_eq!(said, [out], "{party}");
            self.keeps_nothing(party);
        }
    }

    fn keeps_nothing(&self, party: &str) {
        let kept = std::fs::read_dir(self.folder.at(&format!("{party}/shares"))).unwrap();
        let names = kept.map(|set| set.unwrap().file_name().into_string().unwrap());
        let sets: Vec<String> = names.filter(|name| name != ".lock").collect();
        assert!(sets.is_empty(), "{party}: {sets:?}");
    }
}

/// A party is lost in a run that has come to this phase.
fn lost(phase: &str, party: &str, lose: impl FnOnce(&mut Site)) -> Site {
    let mut site = Site::new();
    site.line.hold();
    let eve = site.take_part("eve");
    site.reach(phase);
    lose(&mut site);
    site.line.let_go();
    site.end(party, eve);
    site
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_parties_finish_when_the_fourth_is_killed_in_whatever_round() {
    let killed = |phase, party| {
        let index = Site::index(party);
        let mut site = lost(phase, party, |site| {
            // Dropped is killed.
            drop(site.services.remove(index));
        });
        // When it is back, it hears that it is done, and keeps nothing.
        let service = site.serve(party);
        site.services.insert(index, service);
        wait("it hears it", || {
            let kept = site.folder.at(&format!("{party}/shares"));
            std::fs::read_dir(kept).unwrap().count() <= 1
        });
    };
    thread::scope(|scope| {
        for (phase, party) in [("handshake", "d"), ("set-up", "c"), ("rows", "a")] {
            scope.spawn(move || killed(phase, party));
        }
    });
}

/// The recipient has its results, and has not said so: the run is repeated, and gives it the same.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_parties_finish_when_the_fourth_is_killed_after_the_opening() {
    let mut site = Site::new();
    site.line.hold();
    let eve = site.take_part("eve");
    site.reach("rows");
    let signal = |signal| kill_process(Pid::from_child(&eve), signal).unwrap();
    signal(Signal::STOP);
    site.line.let_go();
    let look = || site.at("a");
    wait_for("it waits for eve", look, |seen| {
        seen.phase == "opening" && seen.waits_for.iter().any(|name| name == "eve")
    });
    drop(site.services.remove(1));
    signal(Signal::CONT);
    site.end("b", eve);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_parties_finish_when_the_fourth_stalls() {
    let site = lost("rows", "b", |site| {
        site.services[1].signal(Signal::STOP);
    });
    site.services[1].signal(Signal::CONT);
    wait("it hears that it is out, or that the job is done", || {
        let at = site.at("b");
        at.state == "done" || at.why.contains("the others finish the job without it")
    });
    site.keeps_nothing("b");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_is_lost_before_the_run_is_not_waited_for() {
    let mut site = Site::new();
    drop(site.services.remove(3));
    let eve = site.take_part("eve");
    site.end("d", eve);
}

/// A circuit of bits is finished by the protocol of three parties that is secure against a malicious one.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn bits_are_finished_against_a_malicious_party() {
    let folder = Folder::blocks();
    let four = "parties = [\"a\", \"b\", \"c\", \"d\"]\ndelivery = \"guaranteed\"";
    folder.replace("job.toml", r#"parties = ["a", "b", "c"]"#, four);
    let homes = homes(folder.path(), &["a", "b", "c", "d", "ann", "eve"]);
    let serve = |name| Service::start_at(&Place::HERE, folder.path(), name, &SERVES);
    let mut services: Vec<Service> = PARTIES.iter().map(|name| serve(name)).collect();
    let (plan, _) = submit(&folder, "job.toml");
    let part = |name| take_part_at(&Place::HERE, &folder, "job.toml", name, &COMES);
    succeed(part("ann"));
    drop(services.remove(1));
    succeed(part("eve"));
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    let path = folder.at("out-job.toml").join(receipt::NAME);
    let receipt: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(receipt["without"], "b");
    let guarantee = receipt["guarantee"].as_str().unwrap();
    assert!(guarantee.starts_with("malicious"), "{guarantee}");
    wait("done", || {
        let state = |party| at(&folder, "eve", party, &plan);
        ["a", "c", "d"]
            .into_iter()
            .all(|party| state(party).is_some_and(|at| at.state == "done"))
    });
    drop(homes);
}

#[test]
fn a_party_that_comes_back_in_time_is_not_out() {
    let mut site = Site::new();
    site.line.hold();
    let eve = site.take_part("eve");
    site.reach("rows");
    drop(site.services.remove(3));
    site.line.let_go();
    let service = site.serve("d");
    site.services.push(service);
    let said = succeed(eve);
    assert!(!said.contains("finish without"), "{said}");
    wait("done", || {
        PARTIES.iter().all(|party| site.at(party).state == "done")
    });
    let result = std::fs::read_to_string(site.folder.at("out-job.toml/result.txt")).unwrap();
    assert!(result.contains("330000"), "{result}");
}

#[test]
fn what_guarantees_nothing_is_refused() {
    let folder = Folder::new();
    folder.write("job.toml", WAGES);
    folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
    let refused = |arguments: &str, code: i32, part: &str| {
        let output = folder.veil(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused(
        "run job.toml --processes",
        2,
        "output is guaranteed by parties that serve",
    );
    let out = folder.succeed("run job.toml");
    assert!(out.contains("330000"), "{out}");
    // What is promised in a run of four, and in one of three.
    let explained = folder.succeed("explain job.toml --json");
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["protocol"], "rep4");
    assert_eq!(explained["finished_by"]["protocol"], "rep3");
    let blocks = Folder::blocks();
    let four = "parties = [\"a\", \"b\", \"c\", \"d\"]\ndelivery = \"guaranteed\"";
    blocks.replace("job.toml", r#"parties = ["a", "b", "c"]"#, four);
    let out = blocks.succeed("explain job.toml");
    let finish = out
        .lines()
        .find(|line| line.trim_start().starts_with("without a party"));
    assert!(
        finish.is_some_and(|line| line.contains("rep3, malicious with abort")),
        "{out}"
    );
    folder.write("keep.toml", format!("{WAGES}keep = {{ as = \"pay\" }}\n"));
    refused("explain keep.toml", 3, "three of four parties cannot keep");
    folder.write("one.toml", WAGES.replace("to = \"eve\"", "to = \"b\""));
    refused(
        "explain one.toml",
        3,
        "what is for one party alone is lost with it",
    );
    let homes = homes(folder.path(), &["a", "b", "c", "d", "ann", "eve"]);
    drop(homes);
    refused(
        "party job.toml --home a --yes",
        3,
        "run `veil serve` at every party",
    );
}

/// One party that says it has not checkpointed the inputs makes no other party forget them: it is as good as lost.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_parties_finish_when_the_fourth_has_lost_what_it_kept() {
    let mut site = Site::new();
    drop(site.services.remove(1));
    let kept = site.folder.at("b/shares");
    std::fs::remove_dir_all(&kept).unwrap();
    std::fs::create_dir(&kept).unwrap();
    let service = site.serve("b");
    site.services.insert(1, service);
    // The owner comes for the input stage, and makes it ready there.
    let mut ann = site.take_part("ann");
    let waits = |at: At| at.why.contains("not kept yet");
    wait("it waits for the inputs", || waits(site.at("b")));
    let eve = site.take_part("eve");
    site.end("b", eve);
    ann.kill().unwrap();
    ann.wait().unwrap();
    wait("it hears that it is out", || {
        site.at("b").why.contains("the others finish the job")
    });
}
