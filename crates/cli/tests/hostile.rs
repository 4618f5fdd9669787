//! Attack cases S3 and S7: members that propose what takes memory, time and places, played by their own requests; beside them, others are
//! answered. One party is enough: nothing runs here.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::deployment::{Service, at, turn};
use common::homes::{NAMES, homes};
use common::{Folder, text};
use veil_link::tls;
use veil_node::control::{self, Proposal, Reply, Request};
use veil_node::{Home, Member};

/// A job over a circuit that is sent along.
const JOB: &str = r#"version = 1
kind = "circuit"
name = "NAME"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
circuit = { file = "c.txt", rows = 4 }
input = [{ port = "in0", owner = "ann", format = "hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "out.hex" }]
"#;

/// A chain of so many products.
fn chain(products: usize) -> String {
    let mut circuit = format!("{products} {}\n1 2\n1 1\n\n2 1 0 1 2 AND\n", products + 2);
    for gate in 1..products {
        let _ = writeln!(circuit, "2 1 {} 0 {} AND", gate + 1, gate + 2);
    }
    circuit
}

fn proposal(name: &str, circuit: String) -> Proposal {
    Proposal {
        job: JOB.replace("NAME", name),
        lanes: 1,
        files: BTreeMap::from([("c.txt".to_owned(), circuit)]),
    }
}

/// A party with these settings, a member of which is whoever asks.
struct Site {
    folder: Folder,
    homes: Vec<Home>,
    service: Option<Service>,
}

impl Site {
    fn new(settings: &[(&str, &str)]) -> Self {
        let folder = Folder::blocks();
        let homes = homes(folder.path(), &NAMES);
        for (from, to) in settings {
            folder.replace("a/veil.toml", from, to);
        }
        let service = Some(Service::start(folder.path(), "a", &[]));
        Site {
            folder,
            homes,
            service,
        }
    }

    fn restart(&mut self) {
        drop(self.service.take());
        self.service = Some(Service::start(self.folder.path(), "a", &[]));
    }

    fn home(&self, name: &str) -> (&Home, Member) {
        let home = &self.homes[NAMES.iter().position(|known| *known == name).unwrap()];
        (home, home.members().by_name("a").unwrap().clone())
    }

    fn ask(&self, who: &str, request: &Request) -> Reply {
        let (home, party) = self.home(who);
        let until = Instant::now() + Duration::from_secs(60);
        control::ask(&home.identity(), &party, request, until).unwrap()
    }

    /// Bytes that are no request of ours; what comes back.
    fn raw(&self, who: &str, request: &[u8]) -> String {
        let (home, party) = self.home(who);
        let until = Instant::now() + Duration::from_secs(60);
        let address = party.address.unwrap();
        let reply = tls::control(
            &home.identity(),
            party.fingerprint,
            &address,
            request,
            until,
        );
        match control::decode(&reply.unwrap()).unwrap() {
            Reply::Refused { why } => why,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&self, who: &str, proposal: Proposal) -> String {
        match self.ask(who, &Request::Propose(proposal)) {
            Reply::Refused { why } => why,
            other => panic!("{other:?}"),
        }
    }

    fn taken(&self, who: &str, proposal: Proposal) {
        let reply = self.ask(who, &Request::Propose(proposal));
        assert!(matches!(reply, Reply::Pending { .. }), "{reply:?}");
    }

    fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    /// How long one in a hundred answers to a greeting takes, at least.
    fn greeting(&self, who: &str, times: usize) -> Duration {
        let mut took: Vec<Duration> = (0..times)
            .map(|_| {
                let began = Instant::now();
                assert!(matches!(self.ask(who, &Request::Hello {}), Reply::Hello(_)));
                began.elapsed()
            })
            .collect();
        took.sort();
        took[times - 1 - times / 100]
    }
}

/// S3: what takes too much to plan ends with its own process, whose limit is named, and others are greeted meanwhile.
#[test]
fn planning_that_takes_too_much_harms_one_proposal() {
    let _turn = turn();
    let site = Site::new(&[
        ("planning_mib = 2048", "planning_mib = 320"),
        ("planning_seconds = 60", "planning_seconds = 2"),
    ]);
    let alone = site.greeting("ann", 100);
    let before = site.service().kilobytes("VmRSS:");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let greeted = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                worst = worst.max(site.greeting("ann", 100));
            }
            worst
        });
        let whys: Vec<String> = (0..3)
            .map(|index| site.refused("eve", proposal(&format!("{index}"), chain(500_000))))
            .collect();
        over.store(true, Ordering::Relaxed);
        for why in &whys {
            let limit = "planning it takes more than this party allows: ";
            let named = ["320 MiB of memory", "2 s of a processor", "3 s"];
            assert!(
                named.iter().any(|named| *why == format!("{limit}{named}")),
                "{why}"
            );
        }
        let beside = greeted.join().unwrap();
        println!("p99 of a greeting: {alone:?} alone, {beside:?} beside planning");
        // Its processor is shared with the planner and this test.
        assert!(
            beside < Duration::from_millis(50).max(10 * alone),
            "{beside:?}"
        );
    });
    // The requests themselves went through the service.
    let grown = site.service().kilobytes("VmHWM:").saturating_sub(before);
    assert!(grown < 96 << 10, "{grown} kB");
    assert!(site.service().metric("veil_planner_ended_total") > 0.0);
}

/// S3: bombs in each of the languages of a proposal, and what is none.
#[test]
fn bombs_are_refused_and_the_service_lives() {
    let _turn = turn();
    let site = Site::new(&[("proposals_per_hour = 60", "proposals_per_hour = 1000")]);
    let job = |text: String| Proposal {
        job: text,
        lanes: 1,
        files: BTreeMap::new(),
    };
    let nested = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables = "[a]\n".repeat(200_000) + &"[[b.c]]\n".repeat(10);
    for text in [nested, tables, "\"".repeat(1 << 20), "\0".repeat(1 << 19)] {
        let why = site.refused("eve", job(text));
        assert!(
            why.starts_with("the job file") || why.starts_with("planning it"),
            "{why}"
        );
    }
    for circuit in [
        "100000000 100000002\n1 2\n1 1\n\n2 1 0 1 2 AND\n".to_owned(),
        "1 3\n1 18446744073709551615\n1 1\n\n2 1 0 1 2 AND\n".to_owned(),
        "9".repeat(1 << 20),
    ] {
        let why = site.refused("eve", proposal("wires", circuit));
        assert!(why.starts_with("the job file:7:20: "), "{why}");
    }
    let cycles = JOB.replace("rows = 4", "rows = 4, cycles = 1152921504606846976");
    let mut bomb = proposal("cycles", chain(2));
    bomb.job = cycles;
    let why = site.refused("eve", bomb);
    assert!(why.starts_with("the job file"), "{why}");
    // A pipe that would hold up whoever opens it, and files that nobody asked for.
    let pipe = site.folder.at("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut named = proposal("pipe", chain(2));
    named.job = named.job.replace("c.txt", &pipe.display().to_string());
    let why = site.refused("eve", named);
    assert!(why.contains("is no plain name"), "{why}");
    let mut more = proposal("more", chain(2));
    more.files.insert("spare".into(), "x".into());
    let why = site.refused("eve", more);
    assert!(why.contains("the job does not name it"), "{why}");
    for request in [
        vec![b'['; 4 << 20],
        vec![0; 15 << 20],
        [
            &br#"{"version":1,"ask":"propose","job":""#[..],
            &vec![b'x'; 1 << 20],
        ]
        .concat(),
    ] {
        let why = site.raw("eve", &request);
        assert!(why.starts_with("the request was not understood"), "{why}");
    }
    assert!(matches!(
        site.ask("eve", &Request::Hello {}),
        Reply::Hello(_)
    ));
    assert!(site.service().page("/readyz").starts_with("HTTP/1.1 200"));
}

/// S7: what a member may ask is counted, also across a restart, and for itself alone.
#[test]
fn each_member_has_its_share_and_no_more() {
    let _turn = turn();
    let mut site = Site::new(&[
        ("proposals_per_hour = 60", "proposals_per_hour = 2"),
        ("waiting_jobs = 16", "waiting_jobs = 2"),
    ]);
    site.taken("eve", proposal("one", chain(2)));
    site.taken("eve", proposal("two", chain(2)));
    let used = "quota: 2 proposals an hour are used; again at ";
    let why = site.refused("eve", proposal("three", chain(2)));
    assert!(why.starts_with(used), "{why}");
    // The same again is none.
    for _ in 0..20 {
        site.taken("eve", proposal("one", chain(2)));
    }
    site.taken("ann", proposal("three", chain(2)));
    site.restart();
    let why = site.refused("eve", proposal("three", chain(2)));
    assert!(why.starts_with(used), "{why}");
    // Places to wait are counted as well.
    site.folder.replace(
        "a/veil.toml",
        "proposals_per_hour = 2",
        "proposals_per_hour = 100",
    );
    site.restart();
    for name in ["one", "two"] {
        site.taken("eve", proposal(name, chain(2)));
    }
    let why = site.refused("eve", proposal("four", chain(2)));
    assert_eq!(
        why,
        "quota: 2 jobs of `eve` wait here, and no more may; again when one of them has begun or was refused"
    );
    site.taken("ann", proposal("five", chain(2)));
}

/// S3: while members keep all planners busy, this participant's own commands are answered.
#[test]
fn members_do_not_fill_the_lane_of_the_operator() {
    let _turn = turn();
    let site = Site::new(&[
        ("planning_seconds = 60", "planning_seconds = 2"),
        ("planners = 2", "planners = 1"),
    ]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for who in ["ann", "eve"] {
            let (site, over) = (&site, &over);
            scope.spawn(move || {
                let mut index = 0;
                while !over.load(Ordering::Relaxed) && index < 50 {
                    index += 1;
                    let heavy = proposal(&format!("{who} {index}"), chain(300_000));
                    let (home, party) = site.home(who);
                    let until = Instant::now() + Duration::from_secs(60);
                    // It may be told to come again.
                    let _ = control::ask(&home.identity(), &party, &Request::Propose(heavy), until);
                }
            });
        }
        thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        let own = site.folder.veil("jobs --home a --at a");
        over.store(true, Ordering::Relaxed);
        assert!(own.status.success(), "{}", text(&own.stderr));
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
    });
    // What a job waits for is known without planning it again.
    let known = Request::Propose(proposal("known", chain(2)));
    let reply = site.ask("ann", &known);
    let Reply::Pending { plan } = reply else {
        panic!("{reply:?}");
    };
    let planned = site.service().metric("veil_planner_seconds_count");
    thread::sleep(Duration::from_millis(1500));
    let more = site.service().metric("veil_planner_seconds_count") - planned;
    assert!(more < 0.5, "{more} more");
    assert_eq!(
        at(&site.folder, "ann", "a", &plan).unwrap().state,
        "pending"
    );
}

/// How planning is confined is said, and without that nobody's proposals are taken.
#[test]
fn the_operator_is_told_how_planning_is_confined() {
    let _turn = turn();
    let site = Site::new(&[]);
    let looked = text(&site.folder.veil("doctor --home a").stdout);
    assert!(
        looked.contains("planning         ok       confined by landlock and seccomp"),
        "{looked}"
    );
    assert!(
        site.service()
            .said()
            .contains("\"by\":\"landlock and seccomp\"")
    );
}
