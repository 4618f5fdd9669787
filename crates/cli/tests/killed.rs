//! Participants are killed while a job runs, and started again: the others say who is gone. A job that is not durable runs when it is
//! asked for again; a durable one goes on by itself. Every run has a session of its own.

use std::collections::BTreeSet;

use crate::common::Folder;
use crate::common::deployment::{
    At, Place, Service, at, end, expected, kill, states, submit, succeed, take_part, take_part_at,
    wait, wait_for,
};
use crate::common::homes::{NAMES, homes};
use crate::common::line::Line;
use veil_node::Home;

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_service_that_is_killed_is_named_and_the_job_runs_again_in_another_session() {
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let mut line = Line::stand(&folder, &homes[0]);
    let serve = |name: &str| Service::start(folder.path(), name, &["--yes"]);
    let mut services: Vec<Service> = NAMES[..3].iter().map(|name| serve(name)).collect();
    line.learn(&folder);
    line.hold();
    let how = |party: &str, plan: &str| at(&folder, party, party, plan).unwrap();
    for phase in ["handshake", "rows"] {
        let (plan, _) = submit(&folder, "job.toml");
        let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
        line.reach(phase, || how("a", &plan));
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
        // A party that was told by another first says that.
        assert!(whys.iter().any(|why| why.contains("is `c`")), "{whys:?}");
        assert!(whys.iter().all(|why| why.contains("party ")), "{whys:?}");
        assert!(!folder.at("out-job.toml/blocks").exists());
        services.push(serve("c"));
    }
    line.let_go();
    let (plan, _) = submit(&folder, "job.toml");
    for part in ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name)) {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    assert_sessions_differ(&homes, 1);
}

/// A trace id stands for a session: none comes twice, and each party has had at least so many.
fn assert_sessions_differ(homes: &[Home], runs: usize) {
    for home in &homes[..3] {
        let mut traces = Vec::new();
        let note = |entry: veil_node::log::Entry| {
            let trace = entry.text("trace").map(str::to_owned);
            traces.extend(trace.filter(|_| entry.kind == "run_ended"));
        };
        home.log().for_each(note).unwrap();
        assert!(traces.len() >= runs, "{traces:?}");
        let different: BTreeSet<&String> = traces.iter().collect();
        assert_eq!(different.len(), traces.len(), "{traces:?}");
    }
}

/// A durable job with sums and products of rows.
const WAGES: &str = r#"version = 1
durable = true
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "wages", kind = "variance", of = "wage", to = "eve" }]
"#;

/// How long a run may stand still, in seconds: for longer than it takes to see that it does. One test waits until it is over.
const STALL: &str = "12";

/// What becomes of the next run.
type Next = fn(&Site);

/// The parties of a job.
const THREE: &[&str] = &["a", "b", "c"];
const FOUR: &[&str] = &["a", "b", "c", "d"];

/// Services, and a relay on the line from c to a: so every stage lasts for as long as a test wants.
struct Site {
    parties: &'static [&'static str],
    folder: Folder,
    homes: Vec<Home>,
    services: Vec<Service>,
    line: Line,
    plan: String,
}

impl Site {
    /// The job is proposed.
    fn new(parties: &'static [&'static str]) -> Self {
        let folder = Folder::new();
        let names: Vec<String> = parties.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(", ");
        folder.write("job.toml", WAGES.replace(r#""a", "b", "c""#, &names));
        folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
        let homes = homes(folder.path(), &[parties, &["ann", "eve"]].concat());
        let line = Line::stand(&folder, &homes[0]);
        let mut site = Site {
            parties,
            folder,
            homes,
            services: Vec::new(),
            line,
            plan: String::new(),
        };
        let services = site.parties.iter().map(|name| site.serve(name));
        site.services = services.collect();
        site.line.learn(&site.folder);
        site.plan = submit(&site.folder, "job.toml").0;
        site
    }

    /// Whether the job is in this state at every party.
    fn are(&self, state: &str) -> bool {
        let mut parties = self.parties.iter();
        parties.all(|party| self.at(party).state == state)
    }

    fn serve(&self, name: &str) -> Service {
        let options = ["--yes", "--wait", "180", "--timeout", STALL];
        Service::start_at(&Place::HERE, self.folder.path(), name, &options)
    }

    fn take_part(&self, name: &str) -> std::process::Child {
        let patience = ["--timeout", "60"];
        take_part_at(&Place::HERE, &self.folder, "job.toml", name, &patience)
    }

    /// Keeps back all messages of the next run but those that [`Site::reach`] lets through.
    fn hold(&self) {
        self.line.hold();
    }

    /// Keeps nothing back.
    fn let_go(&self) {
        self.line.let_go();
    }

    fn at(&self, party: &str) -> At {
        at(&self.folder, "eve", party, &self.plan).unwrap_or_default()
    }

    /// Waits until a new run has come to this phase, and cannot go on.
    fn reach(&mut self, phase: &str) {
        let (folder, plan) = (&self.folder, &self.plan);
        let look = || at(folder, "eve", "a", plan).unwrap_or_default();
        self.line.reach(phase, look);
    }

    /// Ends a party by force while nothing runs, and starts it again.
    fn restart(&mut self, party: &str) {
        let parties = self.parties;
        let index = parties.iter().position(|name| *name == party).unwrap();
        // Dropped is killed.
        drop(self.services.remove(index));
        self.services.insert(index, self.serve(party));
    }

    /// Ends a party by force in a run, which cannot go on. The others say why it ended; then the party starts again, and the next run
    /// is held, or let go.
    fn kill(&mut self, party: &str, next: Next) {
        let parties = self.parties;
        let index = parties.iter().position(|name| *name == party).unwrap();
        drop(self.services.remove(index));
        let others = parties.iter().filter(|name| **name != party);
        let mut whys = Vec::new();
        for other in others {
            let look = || self.at(other);
            let seen = wait_for("it says that the run ended", look, |seen| {
                seen.why.contains("again in") || seen.why.contains("the attempt before ended")
            });
            whys.push(seen.why);
        }
        // A party that noticed it before may have told them: then its own log has the reason.
        let told = |why: &String| why.contains("gave up the run");
        let named = |why: &String| why.contains(&format!("is `{party}`")) || told(why);
        assert!(whys.iter().any(named), "{party}: {whys:?}");
        assert!(
            whys.iter().all(|why| why.contains("party ") || told(why)),
            "{whys:?}"
        );
        next(self);
        self.services.insert(index, self.serve(party));
    }

    /// The parties have checkpointed the inputs, and need the owner no more.
    fn forget_owner(&self, ann: std::process::Child) -> String {
        let said = succeed(ann);
        std::fs::remove_file(self.folder.at("ann.csv")).unwrap();
        said
    }

    /// Every party is done, nothing is left, and the result is right.
    fn end(&self, runs: usize) {
        wait("done", || self.are("done"));
        let result = std::fs::read_to_string(self.folder.at("out-job.toml/result.txt")).unwrap();
        assert!(result.contains("330000"), "{result}");
        for party in self.parties {
            let kept = std::fs::read_dir(self.folder.at(&format!("{party}/shares"))).unwrap();
            let names = kept.map(|set| set.unwrap().file_name().into_string().unwrap());
            let sets: Vec<String> = names.filter(|name| name != ".lock").collect();
            assert!(sets.is_empty(), "{party}: {sets:?}");
        }
        assert_sessions_differ(&self.homes, runs);
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_durable_job_goes_on_by_itself_whenever_a_party_is_killed() {
    goes_on(Site::new(THREE), "b");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_durable_job_of_four_goes_on_by_itself_whenever_a_party_is_killed() {
    goes_on(Site::new(FOUR), "d");
}

/// The parties a and c are killed, and this one.
fn goes_on(mut site: Site, third: &str) {
    let (hold, let_go): (Next, Next) = (Site::hold, Site::let_go);
    site.restart("c");
    site.hold();
    let ann = site.take_part("ann");
    for (phase, party, next) in [
        ("handshake", "c", hold),
        ("set-up", "a", hold),
        ("rows", third, let_go),
    ] {
        site.reach(phase);
        site.kill(party, next);
    }
    let said = site.forget_owner(ann);
    assert!(said.contains("again in 4 s, attempt 3 of 8"), "{said}");
    site.restart(third);
    site.hold();
    let eve = site.take_part("eve");
    for (phase, party, next) in [
        ("set-up", third, hold),
        ("rows", "a", hold),
        ("opening", "c", let_go),
    ] {
        site.reach(phase);
        site.kill(party, next);
    }
    let said = succeed(eve);
    assert!(said.contains("again in 4 s, attempt 3 of 8"), "{said}");
    site.end(5);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_durable_job_outlives_its_owner_its_recipient_a_cut_line_and_all_parties() {
    outlives(Site::new(THREE));
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_durable_job_of_four_outlives_its_owner_its_recipient_a_cut_line_and_all_parties() {
    outlives(Site::new(FOUR));
}

fn outlives(mut site: Site) {
    site.hold();
    let [ann, eve] = ["ann", "eve"].map(|name| site.take_part(name));
    site.reach("rows");
    // Both at once: with a recipient, the parties would be done before the test sees that they have checkpointed the inputs.
    kill(eve);
    kill(ann);
    site.let_go();
    let ann = site.take_part("ann");
    site.forget_owner(ann);
    site.hold();
    let eve = site.take_part("eve");
    site.reach("rows");
    site.hold();
    kill(eve);
    let eve = site.take_part("eve");
    // The line stays cut for longer than a run may stall.
    site.reach("rows");
    site.hold();
    wait("it stalls", || {
        let stalled = |party: &&str| site.at(party).why.contains("nothing happened for");
        site.parties.iter().any(stalled)
    });
    site.reach("rows");
    site.services.clear();
    site.let_go();
    for party in site.parties {
        let service = site.serve(party);
        site.services.push(service);
    }
    succeed(eve);
    site.end(4);
}

/// The line from c to a breaks when c has sent all, and a has not heard it: all but a have kept the inputs. They hear so from a, whatever
/// the way in which they meet, and the owner that is still there sends again.
#[test]
fn one_party_that_has_not_kept_the_inputs_is_enough_to_ask_for_them_again_and_no_reason_to_wait() {
    let mut site = Site::new(FOUR);
    site.hold();
    let ann = site.take_part("ann");
    site.reach("rows");
    // One message more, and c has all that it needs from a. What it says last stays on the line, which ends with it.
    site.line.step();
    wait("a is the only one that has not kept them", || {
        let kept = |service: &Service| service.said().contains(KEPT);
        let armed = site.services[0].said().contains("armed again");
        armed && !kept(&site.services[0]) && site.services[1..].iter().all(kept)
    });
    site.let_go();
    let said = succeed(ann);
    assert!(said.contains("again in 1 s"), "{said}");
    let said = site.services[0].said();
    assert_eq!(said.matches("armed again").count(), 1, "{said}");
    for service in &site.services[1..] {
        let said = service.said();
        assert!(said.contains("`a` has not kept the inputs"), "{said}");
        assert_eq!(said.matches("armed again").count(), 1, "{said}");
    }
    // In a run no participant is awaited. An owner that comes then is told all the same.
    site.hold();
    let eve = site.take_part("eve");
    site.reach("rows");
    let said = site.forget_owner(site.take_part("ann"));
    assert!(said.contains("are not asked for again"), "{said}");
    site.let_go();
    succeed(eve);
    site.end(3);
}

/// What a party says that goes on to the second stage.
const KEPT: &str = "the inputs are kept: parties and recipients have to come";
