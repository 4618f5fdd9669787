//! Two parties over TLS that garble: one is killed, stands still, deviates, or has another job. What every other participant says, with
//! which code, and whom it blames.

use std::process::Stdio;
use std::sync::Arc;

use crate::common::Folder;
use crate::common::between::{JOB, NAMES, chain, rows, with_other};
use crate::common::byzantine::{Round, Site};
use crate::common::deployment::{
    At, Place, Service, alone, at, end, expected, submit, succeed, take_part, take_part_at, wait,
};
use crate::common::homes::homes;
use veil_link::tls::{Caller, Port, Reception};
use veil_node::Home;
use veil_node::control::{self, Reply};
use veil_testkit::Kind;

const GARBLER: usize = 0;
const EVALUATOR: usize = 1;

fn site() -> Site {
    let files = [
        ("rows.hex", rows()),
        ("job.hex", "03\n".into()),
        ("chain.txt", chain(2)),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    Site::new(NAMES, JOB, &files)
}

/// Points and trees of another session, to the party that gets them.
const POINTS: Round = Round::of(Kind::Points, TRANSFERS);
const TREES: Round = Round::of(Kind::Trees, TRANSFERS);
const TRANSFERS: &str = "sent a message of oblivious transfer that was not made for this session";
const JOB_CORRECTION: Round = Round::of(Kind::JobCorrection, CORRECTIONS);
const CORRECTION: Round = Round::of(Kind::Correction, CORRECTIONS);
const CORRECTIONS: &str = "corrections of oblivious transfer";
/// What is in tables is not checked.
const JOB_TABLE: Round = Round::of(Kind::JobTable, "");
const TABLE: Round = Round::of(Kind::Table, "");

/// A party that is withheld a message stands in that round: the garbler in all but those of tables, where it waits for no message.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_is_killed_at_any_round_is_named_at_once() {
    let _alone = alone();
    let site = site();
    site.is_killed(Round::HANDSHAKE, [GARBLER, EVALUATOR]);
    site.is_killed(Round::HANDSHAKE, [EVALUATOR, GARBLER]);
    site.is_killed(POINTS, [GARBLER, EVALUATOR]);
    site.is_killed(POINTS, [EVALUATOR, GARBLER]);
    site.is_killed(TREES, [EVALUATOR, GARBLER]);
    site.is_killed(Round::SET_UP, [GARBLER, EVALUATOR]);
    site.is_killed(JOB_CORRECTION, [EVALUATOR, GARBLER]);
    site.is_killed(JOB_TABLE, [GARBLER, EVALUATOR]);
    site.is_killed(CORRECTION, [EVALUATOR, GARBLER]);
    site.is_killed(TABLE, [GARBLER, EVALUATOR]);
    site.is_killed(TABLE.after(3), [GARBLER, EVALUATOR]);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_stands_still_at_any_round_is_named_in_time() {
    let _alone = alone();
    let site = site();
    site.stands_still(POINTS, [GARBLER, EVALUATOR]);
    site.stands_still(TREES, [EVALUATOR, GARBLER]);
    site.stands_still(JOB_CORRECTION, [EVALUATOR, GARBLER]);
    site.stands_still(CORRECTION, [EVALUATOR, GARBLER]);
    site.stands_still(TABLE.after(2), [GARBLER, EVALUATOR]);
}

/// All that is checked between two who follow the protocol: the session, the list of inputs, and transfers.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_lies_at_any_round_that_is_checked_is_found_by_the_other() {
    let _alone = alone();
    let site = site();
    for (round, byzantine) in [
        (Round::HANDSHAKE, GARBLER),
        (Round::HANDSHAKE, EVALUATOR),
        (POINTS, GARBLER),
        (POINTS, EVALUATOR),
        (TREES, EVALUATOR),
        (Round::SET_UP, GARBLER),
        (Round::SET_UP, EVALUATOR),
        (JOB_CORRECTION, EVALUATOR),
        (CORRECTION, EVALUATOR),
    ] {
        let other = GARBLER + EVALUATOR - byzantine;
        site.lies(round, [byzantine, other], &[other]);
    }
}

/// Services of two parties, one of which is killed among tables that would take hours to send. It is named, and when it is there again it takes
/// part in the next job: two parties keep nothing of a run.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_service_that_is_killed_among_tables_is_named_and_comes_again() {
    let _alone = alone();
    let folder = Folder::blocks();
    folder.replace("job.toml", r#"["a", "b", "c"]"#, r#"["a", "b"]"#);
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    folder.write("long.toml", job.replace("rows = 4096", "rows = 1000000"));
    folder.write("short.toml", job.replace("rows = 4096", "rows = 50"));
    let homes = homes(folder.path(), NAMES);
    let options = ["--yes", "--wait", "180", "--timeout", "60"];
    let serve = |name: &str| Service::start_at(&Place::HERE, folder.path(), name, &options);
    let mut services = ["a", "b"].map(|name| Some(serve(name)));
    let how = |party: &str, plan: &str| at(&folder, party, party, plan).unwrap();
    let part = |job, name| take_part_at(&Place::HERE, &folder, job, name, &options[3..]);
    let parts = |job| ["ann", "eve"].map(|name| part(job, name));
    for victim in [GARBLER, EVALUATOR] {
        let (plan, said) = submit(&folder, "long.toml");
        assert_eq!(said, ["accepted"; 2]);
        let [ann, eve] = parts("long.toml");
        let other = NAMES[GARBLER + EVALUATOR - victim];
        // A run has a name when its handshake is over; what is left of the one before goes when it begins.
        let evaluates =
            |at: &At| at.state == "running" && !at.trace.is_empty() && at.received > 1_000_000;
        wait("tables are sent", || evaluates(&how("b", &plan)));
        // Dropped is killed.
        services[victim] = None;
        let (code, said) = end(eve);
        assert_eq!(code, Some(5), "{said}");
        // The owner may have sent all it has.
        let (code, said) = end(ann);
        assert!(matches!(code, Some(0 | 5)), "{said}");
        wait("it is given up", || how(other, &plan).state == "failed");
        let why = how(other, &plan).why;
        let named = format!("is `{}`", NAMES[victim]);
        assert!(why.contains(&named), "{why}");
        assert!(!folder.at("out-long.toml").exists());
        services[victim] = Some(serve(NAMES[victim]));
    }
    let (plan, _) = submit(&folder, "short.toml");
    for part in parts("short.toml") {
        succeed(part);
    }
    let blocks = std::fs::read(folder.at("out-short.toml/blocks")).unwrap();
    assert!(blocks.len() == 50 * 16 && blocks == expected()[..50 * 16]);
    for (party, home) in NAMES[..2].iter().zip(&homes) {
        wait("done", || how(party, &plan).state == "done");
        // Every run had a session of its own: a trace id stands for one.
        let mut traces = Vec::new();
        let log = home.log();
        log.for_each(|entry| {
            let trace = entry.text("trace").map(str::to_owned);
            traces.extend(trace.filter(|_| entry.kind == "run_ended"));
        })
        .unwrap();
        let all = traces.len();
        traces.sort();
        traces.dedup();
        assert!(all > 1 && traces.len() == all, "{party}: {traces:?}");
    }
}

/// What it is called, who has the job as it is and who has the other one, and how that differs.
type Change<'a> = (&'a str, [&'a str; 2], &'a dyn Fn(&Folder));

/// One gate is another one, a port has another width, tables are of another kind or in another order, or there are more rows: a participant
/// that meets one with another job says so, at both ends, before anything is sent that depends on an input.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn participants_with_other_circuits_say_so_at_both_ends() {
    let _alone = alone();
    let gate = |folder: &Folder| folder.replace("other.txt", "2 1 2 3 4 AND", "2 1 2 3 4 XOR");
    let width = |folder: &Folder| folder.write("other.txt", chain(3));
    let tables = |folder: &Folder| {
        folder.replace(
            "other.toml",
            "version = 1\n",
            "version = 1\ntables = \"three-halves\"\n",
        );
    };
    let schedule = |folder: &Folder| {
        folder.replace(
            "other.toml",
            "version = 1\n",
            "version = 1\nschedule = \"list(2)\"\n",
        );
    };
    let longer = |folder: &Folder| folder.replace("other.toml", "rows = 40", "rows = 44");
    let changes: [Change<'_>; 6] = [
        ("another gate at the evaluator", ["a", "b"], &gate),
        ("another gate at the garbler", ["b", "a"], &gate),
        ("a wider port at the owner", ["a", "ann"], &width),
        ("tables of another kind", ["a", "b"], &tables),
        ("tables in another order", ["b", "a"], &schedule),
        ("more rows", ["a", "b"], &longer),
    ];
    for (what, [name, other], change) in changes {
        let folder = with_other(change);
        homes(folder.path(), NAMES);
        folder.succeed("circuit info other.txt");
        let parts = [(name, "job.toml"), (other, "other.toml")];
        let parts = parts.map(|(name, job)| take_part(&folder, job, name));
        for (part, blamed) in parts.into_iter().zip([other, name]) {
            let (code, said) = end(part);
            assert_eq!(code, Some(3), "{what}: {said}");
            let blamed = format!("is `{blamed}`");
            for part in ["runs plan", "must be the same on both sides", &blamed] {
                assert!(said.contains(part), "{what}: no {part:?} in {said}");
            }
        }
        assert!(!folder.at("out-job.toml").exists(), "{what}");
        assert!(!folder.at("out-other.toml").exists(), "{what}");
    }
}

/// Values that do not fit the ports end with their owner, and what two parties cannot do is said before any connect request.
#[test]
fn what_does_not_fit_is_said_before_a_party_is_called() {
    let folder = with_other(|_| ());
    homes(folder.path(), NAMES);
    folder.write("rows.hex", rows().replacen("03", "07", 1));
    let parts = ["rows.hex: line 4", "bits beyond the 2 of the port"];
    folder.fail("party job.toml --home ann --yes --wait 1", 3, &parts);
    folder.write("rows.hex", rows().replacen("03\n", "", 1));
    let parts = ["rows.hex", "39", "40"];
    folder.fail("party job.toml --home ann --yes --wait 1", 3, &parts);
    folder.replace(
        "other.toml",
        "version = 1\n",
        "version = 1\ndurable = true\n",
    );
    let parts = ["keeps no shares and loads none", "name three parties"];
    folder.fail("party other.toml --home a --yes --wait 1", 3, &parts);
    folder.fail("explain other.toml", 3, &parts);
}

/// Plays the garbler, which states this to a participant of this name, and admits no caller.
fn states(home: &Home, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Port {
    let members = home.members();
    let keys: Vec<_> = members.iter().map(|member| member.fingerprint).collect();
    let handler = move |caller: Caller, _: &[u8]| {
        answer(
            members
                .by_fingerprint(&caller.key)
                .map_or("", |member| &member.name),
        )
    };
    let reception = Reception::sole(keys).with_handler(Arc::new(handler));
    let address = home.settings().listen.unwrap().to_string();
    Port::bind(&home.identity(), &address, reception).unwrap()
}

/// What it is called, what is answered to b and to others, and what these say.
type Stated<'a> = (&'a str, [Vec<u8>; 2], &'a [&'a str]);

/// A garbler that states what is no order, or not the same to all, or answers with anything else: every participant ends, and says why.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn what_a_garbler_states_is_an_order_for_all_or_none() {
    let _alone = alone();
    let word = |word: &str| {
        let schedule = Some(word.to_owned());
        control::encode(&Reply::Schedule { schedule })
    };
    let nonsense = word(&("\u{1b}[2J".to_owned() + &"x".repeat(100_000)));
    let late: &[&str] = &["wait", "`a`"];
    let cases: [Stated<'_>; 5] = [
        (
            "no order",
            [word("list(3)"), word("list(3)")],
            &["`a` states", "list(3)", "none of this name"],
        ),
        (
            "an endless one",
            [nonsense.clone(), nonsense],
            &["none of this name"],
        ),
        ("no reply", [b"\xff{".to_vec(), b"".to_vec()], late),
        (
            "the reply to another question",
            [
                control::encode(&Reply::Jobs { jobs: vec![] }),
                control::encode(&Reply::Refused { why: "no".into() }),
            ],
            late,
        ),
        (
            "two orders",
            [word("list(2)"), word("list(4)")],
            &["runs plan", "must be the same on both sides"],
        ),
    ];
    for (what, [to_b, to_others], parts) in cases {
        let folder = with_other(|_| ());
        let homes = homes(folder.path(), NAMES);
        let answer = move |name: &str| {
            if name == "b" {
                to_b.clone()
            } else {
                to_others.clone()
            }
        };
        let _port = states(&homes[GARBLER], answer);
        let more = ["--timeout", "60", "--wait", "4"];
        let part = |name| {
            let mut part = Place::HERE.veil(folder.path());
            part.args(["party", "job.toml", "--home", name, "--out", "out", "--yes"]);
            part.args(more).stdout(Stdio::null()).stderr(Stdio::piped());
            part.spawn().unwrap()
        };
        for child in ["b", "ann"].map(part) {
            let (code, said) = end(child);
            assert!(matches!(code, Some(3 | 5)), "{what}: {code:?} {said}");
            for part in parts {
                assert!(said.contains(part), "{what}: no {part:?} in {said}");
            }
            assert!(said.len() < 10_000 && !said.contains('\u{1b}'), "{what}");
        }
    }
}

/// A job of statistics between two parties: two owners with the same people, of whom one has others alone.
fn statistics(folder: &Folder, adversary: &str) {
    use std::fmt::Write as _;
    let mut pay = String::from("id,pay\n");
    let mut people = String::from("id,group\n");
    let mut own = String::from("pay,group\n");
    for row in 0..300 {
        let value = (row * 7919) % 5000;
        let group = ["x", "y", "z"][row % 3];
        let _ = writeln!(pay, "p{row},{value}");
        let _ = writeln!(people, "p{row},{group}");
        let _ = writeln!(own, "{},{group}", value / 2);
    }
    folder.write("pay.csv", pay);
    folder.write("people.csv", &people);
    folder.write("own.csv", own);
    // Two people have changed places.
    folder.write(
        "other.csv",
        people
            .replace("p7,", "q,")
            .replace("p8,", "p7,")
            .replace("q,", "p8,"),
    );
    let job = format!(
        r#"version = 1
kind = "stats"
name = "two"
{adversary}
owners = ["mill", "office"]
parties = ["mill", "office"]
column = [{{ name = "pay", type = "integer", min = 0, max = 5000 }},
          {{ name = "group", type = "category", values = ["x", "y", "z"] }}]
block = [{{ name = "all", rows = 300, holds = {{ mill = ["pay"], office = ["group"] }},
           files = {{ mill = "pay.csv", office = "people.csv" }}, align = {{ column = "id", every = 16 }} }},
         {{ name = "own", rows = 300, holds = {{ mill = ["pay", "group"] }}, files = {{ mill = "own.csv" }} }}]
analysis = [{{ name = "pay", kind = "variance", of = "pay", by = "group", min_count = 20, to = "office" }},
            {{ name = "top", kind = "mean-only", of = "pay", decimals = 1, to = "mill" }}]
"#
    );
    folder.write("stats.toml", &job);
    folder.write("moved.toml", job.replace("people.csv", "other.csv"));
    folder.succeed("data key new align.key");
}

/// Rows of two owners are paired, compared and computed in cycles; what comes out is what counting gives.
#[test]
fn two_parties_compute_statistics() {
    let folder = Folder::new();
    statistics(&folder, "");
    let text = folder.succeed("explain stats.toml");
    for part in [
        "rows       600, with ",
        " cycles",
        "yao",
        "3 parties  send ",
        "4 parties  send ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = folder.succeed("stats stats.toml --check --align-key align.key");
    assert!(
        text.contains(
            "checked: the clear computation over the data of all owners gives the same numbers"
        ),
        "{text}"
    );
    assert!(text.contains("600 rows by yao over Z_2"), "{text}");
    folder.fail(
        "run moved.toml --align-key align.key",
        3,
        &["block `all`", "between rows 1 and 16"],
    );
}

/// The same against a malicious party, by authenticated garbling.
#[test]
fn two_parties_of_whom_one_is_malicious_compute_statistics() {
    let folder = Folder::new();
    statistics(&folder, "adversary = \"malicious\"");
    let text = folder.succeed("stats stats.toml --check --align-key align.key");
    assert!(
        text.contains(
            "checked: the clear computation over the data of all owners gives the same numbers"
        ),
        "{text}"
    );
    assert!(text.contains("security: yao, malicious"), "{text}");
}
