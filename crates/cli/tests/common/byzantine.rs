//! A deployment of processes over TLS of which one party runs within the test, so that the others can be brought to any round: it withholds a
//! message from the party that is to fall there, or changes one.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use veil_engine::{Abort, Settings};
use veil_link::Link;
use veil_link::tap::{Fate, Tapped};
use veil_link::tls::{Port, Reception};
use veil_node::Home;
use veil_program::Job;
use veil_protocol::{Options, Plan};
use veil_runtime::{Neighbours, Part, Passes};
use veil_session::{PartyId, Peer};
use veil_testkit::{Kind, Kinds, Seen, flipped};

use super::Folder;
use super::deployment::{PATIENCE, Place, end, kill, take_part_at};
use super::homes::homes;

/// Seconds without progress after which participants give up where one stands still; elsewhere they have the patience of a test, which
/// no participant may come near.
const IMPATIENCE: u64 = 12;
/// Seconds within which a participant that is told must have ended, on a busy machine.
const AT_ONCE: u64 = 60;

/// A kind of round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// What the party within the test changes there, or withholds: then the receiver stays in this round, and the others in the next.
    kind: Kind,
    /// So many messages of the kind pass before.
    before: usize,
    /// What the receiver of a changed message says.
    blamed: &'static str,
}

impl Round {
    pub(crate) const HANDSHAKE: Round =
        Round::of(Kind::Proof, "was told other nonces by another party");
    pub(crate) const SET_UP: Round = Round::of(Kind::List, "the list of accepted inputs");
    pub(crate) const INPUTS: Round = Round::of(Kind::OwnerDigest, "an owner's shares");
    /// A party that has not heard of the agreement does not open, and the others do.
    pub(crate) const AGREEMENT: Round = Round::of(Kind::Agreement, "the agreement to open");

    pub(crate) const fn of(kind: Kind, blamed: &'static str) -> Self {
        let before = 0;
        Round {
            kind,
            before,
            blamed,
        }
    }

    /// The same, after so many messages of the kind.
    pub(crate) const fn after(self, before: usize) -> Self {
        Round { before, ..self }
    }
}

/// What the party within the test does to a message.
#[derive(Clone, Copy)]
enum Act {
    Withholds,
    Changes,
}

/// A deployment.
pub(crate) struct Site {
    folder: Folder,
    homes: Vec<Home>,
    /// All participants, parties first; `eve`, if she is one of them, is the recipient, and the last.
    names: &'static [&'static str],
    job: &'static str,
}

/// How all participants but the one that fell have ended: names, codes, and what they said.
type Ends = Vec<(&'static str, Option<i32>, String)>;

impl Site {
    /// A deployment for this job. If it has a result for the party `INSIDE`, the one within the test is there to the end.
    pub(crate) fn new(
        names: &'static [&'static str],
        job: &'static str,
        files: &[(&str, &str)],
    ) -> Self {
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(name, text);
        }
        let homes = homes(folder.path(), names);
        Site {
            folder,
            homes,
            names,
            job,
        }
    }

    fn peer(&self, name: usize) -> Peer {
        if self.names[name] == "eve" {
            Peer::Recipient(0)
        } else {
            Peer::Party(PartyId::FOUR[name])
        }
    }

    fn plan(&self, inside: usize) -> (Job, Arc<Plan>) {
        let job = self.job.replace("INSIDE", self.names[inside]);
        self.folder.write("job.toml", job);
        let file = self.folder.at("job.toml");
        let job = Job::load(&file, veil_program::Files::default()).unwrap();
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        let plan = Plan::new(Arc::new(job.spec().clone()), options).unwrap();
        (job, Arc::new(plan))
    }

    /// Takes part as party `inside` until the run ends, and does `act` to messages of `kind` for `to`; says when it does.
    fn inside(
        &self,
        (job, plan): &(Job, Arc<Plan>),
        inside: usize,
        (act, round, to): (Act, Round, usize),
        did: &mpsc::Sender<()>,
        timeout: u64,
    ) -> Option<Abort> {
        let home = &self.homes[inside];
        let me = self.peer(inside);
        let neighbours = Neighbours::find(plan, me, &*home.members()).unwrap();
        let listen = home.settings().listen.unwrap().to_string();
        let keys = Reception::sole(neighbours.pins.values().copied());
        let port = Port::bind(&home.identity(), &listen, keys).unwrap();
        let passes = Passes::from(Arc::clone(plan));
        let part = Part {
            plan: &passes,
            me,
            identity: &home.identity(),
            port: Some(&port),
            neighbours: &neighbours,
            link: veil_link::LinkKind::Tls,
            net: None,
            stop: &AtomicBool::new(false),
        };
        let connections = part.meet(Duration::from_secs(PATIENCE)).unwrap();
        let settings = Settings {
            timeout: Duration::from_secs(timeout),
            ..Settings::default()
        };
        let (kinds, to) = (Arc::new(Kinds::of(plan)), self.peer(to));
        let wrap = |link: Box<dyn Link>| -> Box<dyn Link> {
            let (kinds, did, mut before) = (Arc::clone(&kinds), did.clone(), round.before);
            Box::new(Tapped::new(link, move |peer, at, bytes: &[u8]| {
                if kinds.find(me, peer, at) != Some(round.kind) || peer != to {
                    return Fate::Pass;
                }
                if before > 0 {
                    before -= 1;
                    return Fate::Pass;
                }
                // The receiver of this is gone when the test has failed.
                let _ = did.send(());
                match act {
                    Act::Withholds => Fate::Drop,
                    Act::Changes => Fate::Replace(flipped(bytes)),
                }
            }))
        };
        let holders = plan.job.blocks.iter().flat_map(|block| &block.holders);
        let own = holders.copied().find(|holder| holder.peer() == Some(me));
        let ends = veil_runtime::Ends {
            sources: own.map_or_else(Vec::new, |holder| job.sources(holder).unwrap()),
            sinks: vec![(0, Arc::new(Seen::default()))],
            ..veil_runtime::Ends::default()
        };
        let data = passes.data(ends);
        part.run(connections, &settings, data, &wrap, &|_| ()).err()
    }

    /// All participants run; when the party within the test has done its act, `crash` happens to party `victim`. How the others end within
    /// so many seconds, and why the party within the test gave up, if it did.
    fn play(
        &self,
        [inside, victim]: [usize; 2],
        act: (Act, Round, usize),
        crash: Option<Signal>,
        [timeout, within]: [u64; 2],
    ) -> (Ends, Option<Abort>) {
        let plan = self.plan(inside);
        let seconds = timeout.to_string();
        let options = ["--timeout", &seconds];
        let start = |name| take_part_at(&Place::HERE, &self.folder, "job.toml", name, &options);
        let names = self.names.iter().enumerate().filter(|(k, _)| *k != inside);
        let mut players: Vec<(&str, Child)> = names.map(|(_, name)| (*name, start(name))).collect();
        let (did, done) = mpsc::channel();
        thread::scope(|scope| {
            let own = scope.spawn(|| self.inside(&plan, inside, act, &did, timeout));
            done.recv_timeout(Duration::from_secs(PATIENCE))
                .expect("the run comes to the round");
            let mut crashed = None;
            if let Some(signal) = crash {
                // All others get as far as they can.
                thread::sleep(Duration::from_millis(300));
                let at = players
                    .iter()
                    .position(|(name, _)| *name == self.names[victim]);
                let (_, process) = players.remove(at.unwrap());
                kill_process(Pid::from_child(&process), signal).unwrap();
                crashed = Some(process);
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
            if let Some(crashed) = crashed {
                kill(crashed);
            }
            (ends, own)
        })
    }

    /// Results that a recipient got: a file gets its name when it is whole.
    fn results(&self) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(self.folder.at("out-job.toml")) else {
            return Vec::new();
        };
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// `victim` falls at a round: all others end in time, none with a result, and one of them names it.
    fn crash_at(&self, round: Round, [inside, victim]: [usize; 2], crash: Signal, times: [u64; 2]) {
        let act = (Act::Withholds, round, victim);
        let (ends, own) = self.play([inside, victim], act, Some(crash), times);
        let case = format!("{} fell in {round:?}", self.names[victim]);
        let own = own.map(|abort| abort.to_string()).unwrap_or_default();
        println!("{case}: within the test: {own}");
        for (name, code, said) in &ends {
            let said = said.trim();
            println!("{case}: {name} ends with {code:?}: {said}");
            // An owner that has sent all it has is done, and so is a party that has opened all.
            let done = *name == "ann" || round.kind == Kind::Agreement && *name != "eve";
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
        // A participant that noticed it says so, and the names of a home go with it. One of them waited for no other: a peer that waited for that
        // one may be the first to give up, and the others then say for whom they waited meanwhile.
        let noticed = |said: &str| {
            let waits = said
                .matches(&format!("waiting for party {victim} "))
                .count();
            match crash {
                Signal::STOP => waits > 0 && waits == said.matches("waiting for party ").count(),
                _ => said.contains(&format!("party {victim}: the connection ended")),
            }
        };
        let stalled = |said: &str| said.contains("nothing happened for");
        let stall = ends.iter().any(|(_, _, said)| stalled(said)) || stalled(&own);
        assert_eq!(stall, crash == Signal::STOP, "{case}: who stalled");
        let named = format!("party {victim} is `{}`", self.names[victim]);
        let blames = |said: &str| noticed(said) && said.contains(&named);
        let blamed = ends.iter().any(|(_, _, said)| blames(said));
        assert!(blamed || noticed(&own), "{case}: no participant names it");
        assert!(self.results().is_empty(), "{case}");
    }

    /// `victim` is killed when it stands in a round, in which `inside` keeps it: all others end at once.
    pub(crate) fn is_killed(&self, round: Round, inside_and_victim: [usize; 2]) {
        self.crash_at(round, inside_and_victim, Signal::KILL, [PATIENCE, AT_ONCE]);
    }

    /// `victim` does nothing any more in a round, in which `inside` keeps it: all others end when they have no more patience.
    pub(crate) fn stands_still(&self, round: Round, inside_and_victim: [usize; 2]) {
        let times = [IMPATIENCE, 2 * IMPATIENCE + AT_ONCE];
        self.crash_at(round, inside_and_victim, Signal::STOP, times);
    }

    /// `byzantine` changes a message of a round for `to`. At least one of `finders` says so and, unless it is `byzantine`, blames it; all others
    /// end at once.
    pub(crate) fn lies(&self, round: Round, [byzantine, to]: [usize; 2], finders: &[usize]) {
        let act = (Act::Changes, round, to);
        let (ends, own) = self.play([byzantine, to], act, None, [PATIENCE, AT_ONCE]);
        let case = format!(
            "{} lies to {} in {round:?}",
            self.names[byzantine], self.names[to]
        );
        let own = own.map(|abort| abort.to_string()).unwrap_or_default();
        println!("{case}: within the test: {own}");
        let mut found = false;
        for (name, code, said) in &ends {
            let said = said.trim();
            println!("{case}: {name} ends with {code:?}: {said}");
            if *code == Some(4) {
                assert!(finders.iter().any(|k| self.names[*k] == *name), "{case}");
                let blamed = format!("party {byzantine} is `{}`", self.names[byzantine]);
                assert!(said.contains(round.blamed), "{case}");
                assert!(said.contains(&blamed), "{case}");
                found = true;
                continue;
            }
            let last = [Kind::Agreement, Kind::Opened, Kind::Total].contains(&round.kind);
            let done = *name == "ann" || last && *name != "eve";
            assert!(
                *code == Some(5) || done && *code == Some(0),
                "{case}: {name}"
            );
            let told = ["gave up the run", "the connection ended", "it left while"];
            let told = told.iter().any(|part| said.contains(part));
            assert!(*code == Some(0) || told, "{case}: {name}");
        }
        let itself = finders.contains(&byzantine) && own.contains(round.blamed);
        assert!(found || itself, "{case}: no participant finds it");
        assert!(self.results().is_empty(), "{case}");
    }
}
