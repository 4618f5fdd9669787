//! Four parties over TLS of whom one is killed, stands still, or lies, at each kind of round: what everybody else says, with which code, whom
//! it blames, and how soon.
//!
//! One party runs within the test, so that the others can be brought to any round: it withholds a message from the party that is to fall
//! there, or changes one.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::Folder;
use common::deployment::{Place, end, kill, take_part_at, turn};
use common::homes::homes;
use rustix::process::{Pid, Signal, kill_process};
use veil_engine::{Abort, Data, Settings};
use veil_link::Link;
use veil_link::tap::{Fate, Tapped};
use veil_link::tls::{Port, Reception};
use veil_node::Home;
use veil_node::participant::{Neighbours, Part};
use veil_program::Job;
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer};
use veil_testkit::{Kind, Kinds, Seen, flipped};

/// Everybody; parties are the first four.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "ann", "eve"];

const JOB: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c", "d"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "wages", kind = "variance", of = "wage", to = "eve" },
            { name = "again", kind = "sum", of = "wage", to = "INSIDE" }]
"#;

/// Seconds without progress after which participants give up: where nobody stands still, nobody may come near it.
const PATIENCE: u64 = 30;
/// The same where somebody does.
const IMPATIENCE: u64 = 3;
/// Seconds within which whoever is told must have ended, on a busy machine.
const AT_ONCE: u64 = 15;

/// A kind of round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Handshake,
    SetUp,
    Inputs,
    Layers,
    Agreement,
    Opening,
}

impl Stage {
    /// What the party within the test changes there, or withholds: then the receiver stays at this stage, and the others at the next.
    const fn withheld(self) -> Kind {
        match self {
            Stage::Handshake => Kind::Proof,
            Stage::SetUp => Kind::List,
            Stage::Inputs => Kind::OwnerDigest,
            Stage::Layers => Kind::SumProduct,
            // Whoever has not heard of the agreement does not open, and the others do.
            Stage::Agreement => Kind::Agreement,
            Stage::Opening => Kind::Total,
        }
    }

    /// What the receiver of a changed message says, and whom it suspects beside who sent it.
    const fn blamed(self) -> &'static str {
        match self {
            Stage::Handshake => "was told other nonces by another party",
            Stage::SetUp => "the list of accepted inputs",
            Stage::Inputs => "an owner's shares",
            Stage::Layers => "a joint message of a product",
            Stage::Agreement => "the agreement to open",
            Stage::Opening => "an opened component",
        }
    }
}

/// What the party within the test does to a message to this peer.
#[derive(Clone, Copy)]
enum Act {
    Withholds,
    Changes,
}

/// A deployment.
struct Site {
    folder: Folder,
    homes: Vec<Home>,
}

/// How everybody but the one who fell has ended: names, codes, and what they said.
type Ends = Vec<(&'static str, Option<i32>, String)>;

impl Site {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
        let homes = homes(folder.path(), &NAMES);
        Site { folder, homes }
    }

    /// The job, of which the party within the test gets a result: it is there to the end.
    fn plan(&self, inside: usize) -> Arc<Plan> {
        self.folder
            .write("job.toml", JOB.replace("INSIDE", NAMES[inside]));
        let file = self.folder.at("job.toml");
        let job = Job::load(&file, veil_program::Files::default()).unwrap();
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        Arc::new(Plan::new(Arc::new(job.lowered().clone()), options).unwrap())
    }

    /// Takes part as party `inside` until the run ends, and does `act` to messages of `kind` for `to`; says when it does.
    fn inside(
        &self,
        plan: &Arc<Plan>,
        inside: usize,
        (act, kind, to): (Act, Kind, &[Peer]),
        did: &mpsc::Sender<()>,
        timeout: u64,
    ) -> Option<Abort> {
        let home = &self.homes[inside];
        let me = Peer::Party(PartyId::FOUR[inside]);
        let neighbours = Neighbours::find(plan, me, &home.members()).unwrap();
        let listen = home.settings().listen.unwrap().to_string();
        let keys = Reception::sole(neighbours.pins.values().copied());
        let port = Port::bind(&home.identity(), &listen, keys).unwrap();
        let part = Part {
            plan,
            me,
            identity: &home.identity(),
            port: Some(&port),
            neighbours: &neighbours,
            net: None,
            stop: &AtomicBool::new(false),
        };
        let connections = part.meet(Duration::from_secs(60)).unwrap();
        let settings = Settings {
            timeout: Duration::from_secs(timeout),
            ..Settings::default()
        };
        let kinds = Arc::new(Kinds::of(plan));
        let wrap = |link: Box<dyn Link>| -> Box<dyn Link> {
            let (kinds, to, did) = (Arc::clone(&kinds), to.to_vec(), did.clone());
            Box::new(Tapped::new(link, move |peer, at, bytes: &[u8]| {
                if kinds.find(me, peer, at) != Some(kind) || !to.contains(&peer) {
                    return Fate::Pass;
                }
                // Nobody listens any more when the test has failed.
                let _ = did.send(());
                match act {
                    Act::Withholds => Fate::Drop,
                    Act::Changes => Fate::Replace(flipped(bytes)),
                }
            }))
        };
        let data = Data {
            sink: Some(Arc::new(Seen::default())),
            ..Data::default()
        };
        part.run(connections, &settings, data, &wrap, &|_| ()).err()
    }

    /// Everybody takes part; when the party within the test has done its act, `fall` happens to party `victim`. How the others end within
    /// so many seconds, and why the party within the test gave up, if it did.
    fn play(
        &self,
        [inside, victim]: [usize; 2],
        act: (Act, Kind, &[Peer]),
        fall: Option<Signal>,
        [timeout, within]: [u64; 2],
    ) -> (Ends, Option<Abort>) {
        let plan = self.plan(inside);
        let seconds = timeout.to_string();
        let options = ["--timeout", &seconds];
        let start = |name| take_part_at(&Place::HERE, &self.folder, "job.toml", name, &options);
        let names = NAMES.iter().enumerate().filter(|(k, _)| *k != inside);
        let mut players: Vec<(&str, Child)> = names.map(|(_, name)| (*name, start(name))).collect();
        let (did, done) = mpsc::channel();
        thread::scope(|scope| {
            let own = scope.spawn(|| self.inside(&plan, inside, act, &did, timeout));
            done.recv_timeout(Duration::from_secs(60))
                .expect("the run comes to the round");
            let mut fallen = None;
            if let Some(signal) = fall {
                // All others get as far as they can.
                thread::sleep(Duration::from_millis(300));
                let at = players.iter().position(|(name, _)| *name == NAMES[victim]);
                let (_, process) = players.remove(at.unwrap());
                kill_process(Pid::from_child(&process), signal).unwrap();
                fallen = Some(process);
            }
            let until = Instant::now() + Duration::from_secs(within);
            let ends = players.into_iter().map(|(name, mut process)| {
                while process.try_wait().unwrap().is_none() {
                    let late = Instant::now() > until;
                    assert!(!late, "{name} still runs after {within} s");
                    thread::sleep(Duration::from_millis(10));
                }
                let (code, said) = end(process);
                (name, code, said)
            });
            let ends: Ends = ends.collect();
            let own = own.join().unwrap();
            if let Some(fallen) = fallen {
                kill(fallen);
            }
            (ends, own)
        })
    }

    /// `victim` falls at a stage: everybody else ends in time, nobody with a result, and somebody names it.
    fn falls(&self, stage: Stage, [inside, victim]: [usize; 2], fall: Signal, times: [u64; 2]) {
        let to = [Peer::Party(PartyId::FOUR[victim])];
        let act = (Act::Withholds, stage.withheld(), &to[..]);
        let (ends, own) = self.play([inside, victim], act, Some(fall), times);
        let case = format!("{} fell in {stage:?}", NAMES[victim]);
        let own = own.map(|abort| abort.to_string()).unwrap_or_default();
        println!("{case}: within the test: {own}");
        for (name, code, said) in &ends {
            let said = said.trim();
            println!("{case}: {name} ends with {code:?}: {said}");
            // An owner that has sent all it has is done, and so is a party that has opened all.
            let done = *name == "ann" || stage == Stage::Agreement && *name != "eve";
            assert!(
                *code == Some(5) || done && *code == Some(0),
                "{case}: {name}"
            );
            let clear = [
                "the connection ended",
                "gave up the run",
                "nothing happened for",
                "has not taken",
                "it left while",
            ];
            let clear = clear.iter().any(|part| said.contains(part));
            assert!(*code == Some(0) || clear, "{case}: {name}");
        }
        // Whoever noticed it says so, and the names of a home go with it.
        let noticed = |said: &str| {
            let [ended, waits] = [
                format!("party {victim}: the connection ended"),
                format!("waiting for party {victim}"),
            ];
            let stalled = said.contains("nothing happened for") && said.contains(&waits);
            stalled && fall == Signal::STOP || said.contains(&ended) && fall == Signal::KILL
        };
        let named = format!("party {victim} is `{}`", NAMES[victim]);
        let blames = |said: &str| noticed(said) && said.contains(&named);
        let blamed = ends.iter().any(|(_, _, said)| blames(said));
        assert!(blamed || noticed(&own), "{case}: nobody names it");
        assert!(!self.folder.at("out-job.toml").exists(), "{case}");
    }

    /// `liar` changes a message of a stage for `to`, which says so; everybody else ends at once.
    fn lies(&self, stage: Stage, liar: usize, to: usize) {
        let peer = match to {
            5 => Peer::Recipient(0),
            to => Peer::Party(PartyId::FOUR[to]),
        };
        let act = (Act::Changes, stage.withheld(), &[peer][..]);
        let (ends, own) = self.play([liar, to], act, None, [PATIENCE, AT_ONCE]);
        let case = format!("{} lies to {} in {stage:?}", NAMES[liar], NAMES[to]);
        let own = own.map(|abort| abort.to_string()).unwrap_or_default();
        println!("{case}: within the test: {own}");
        for (name, code, said) in &ends {
            let said = said.trim();
            println!("{case}: {name} ends with {code:?}: {said}");
            if *name == NAMES[to] {
                assert_eq!(*code, Some(4), "{case}: {name}");
                let blamed = format!("party {liar} is `{}`", NAMES[liar]);
                assert!(said.contains(stage.blamed()), "{case}");
                assert!(said.contains(&blamed), "{case}");
                continue;
            }
            let last = [Stage::Agreement, Stage::Opening].contains(&stage);
            let done = *name == "ann" || last && *name != "eve";
            assert!(
                *code == Some(5) || done && *code == Some(0),
                "{case}: {name}"
            );
            let told = ["gave up the run", "the connection ended", "it left while"];
            let told = told.iter().any(|part| said.contains(part));
            assert!(*code == Some(0) || told, "{case}: {name}");
        }
        assert!(!self.folder.at("out-job.toml").exists(), "{case}");
    }
}

/// After the agreement a party owes the others nothing but its part of the opening.
#[test]
fn a_party_that_is_killed_at_any_round_is_named_at_once() {
    let _turn = turn();
    let site = Site::new();
    for (stage, who) in [
        (Stage::Handshake, [3, 1]),
        (Stage::SetUp, [1, 3]),
        (Stage::Inputs, [0, 2]),
        (Stage::Layers, [2, 0]),
        (Stage::Agreement, [0, 3]),
    ] {
        site.falls(stage, who, Signal::KILL, [PATIENCE, AT_ONCE]);
    }
}

#[test]
fn a_party_that_stands_still_at_any_round_is_named_in_time() {
    let _turn = turn();
    let site = Site::new();
    for (stage, who) in [
        (Stage::Handshake, [2, 0]),
        (Stage::SetUp, [0, 2]),
        (Stage::Inputs, [2, 0]),
        (Stage::Layers, [3, 1]),
        (Stage::Agreement, [0, 3]),
    ] {
        let times = [IMPATIENCE, 2 * IMPATIENCE + AT_ONCE];
        site.falls(stage, who, Signal::STOP, times);
    }
}

#[test]
fn a_party_that_lies_at_any_round_is_found_by_whom_it_lies_to() {
    let _turn = turn();
    let site = Site::new();
    for (stage, liar, to) in [
        (Stage::Handshake, 0, 2),
        (Stage::SetUp, 3, 1),
        (Stage::Inputs, 2, 0),
        (Stage::Layers, 1, 3),
        (Stage::Agreement, 0, 1),
        (Stage::Opening, 2, 5),
    ] {
        site.lies(stage, liar, to);
    }
}
