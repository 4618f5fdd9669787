//! A recipient waits for as long as the parties compute; and a participant that has met some waits for the others as long as a meeting may take.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_engine::local::{self, Conditions};
use veil_engine::{Abort, Binding, Data, Phase, Progress, Settings, bounds, participants, party};
use veil_job::{Audience, Block, DataError, Holder, JobSpec, Sink, Slice, Source};
use veil_link::memory;
use veil_math::Ring;
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan, Protocol};
use veil_session::{PartyId, Peer};

const ROWS: u64 = 64;
/// Ones.
struct Ones;

impl Source for Ones {
    fn fill(&self, _port: usize, _slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        into.chunks_mut(8)
            .for_each(|x| x.copy_from_slice(&1u64.to_le_bytes()));
        Ok(())
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<u8>>);

impl Sink for Seen {
    fn put(&self, _port: usize, _slice: Slice, values: &[u8]) -> Result<(), DataError> {
        self.0.lock().expect("no panic").extend(values);
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}

/// The sum of squares of an owner's values, to a recipient.
fn plan() -> Arc<Plan> {
    let circuit = Circuit {
        ring: Ring::Z64,
        inputs: vec![InputPort {
            name: "x".into(),
            width: 1,
            per: Per::Row,
            bits: false,
        }],
        gates: vec![Gate::Mul(Wire(0), Wire(0))],
        outputs: vec![OutputPort {
            name: "sum".into(),
            wires: vec![Wire(1)],
            reduce: Reduce::Sum,
        }],
        clock: veil_circuit::Clock::default(),
    };
    let job = JobSpec {
        name: "slow".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["a", "b", "c"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: veil_job::Security::among(3),
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: ROWS,
            holders: vec![Holder::Owner(0)],
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: vec![Audience::Recipient(0)],
        opened: vec!["the sum of squares".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    let options = Options {
        lanes: 1,
        chunk_rows: Some(1),
    };
    Arc::new(Plan::new(Arc::new(job), options).unwrap())
}

/// A clock on which a participant's looks take time.
#[derive(Default)]
struct Looks {
    looks: AtomicU32,
    /// None of them does any more.
    over: AtomicBool,
}

impl Looks {
    fn count(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Takes note of a look.
    fn look(&self) -> u32 {
        if self.over.load(Ordering::Relaxed) {
            self.count()
        } else {
            self.looks.fetch_add(1, Ordering::Relaxed)
        }
    }
}

/// What a participant brings: ones if it is the owner, and a sink if it is the recipient.
fn data(peer: Peer, seen: &Arc<Seen>) -> Data {
    match peer {
        Peer::Owner(_) => Data {
            source: Some(Arc::new(Ones)),
            ..Data::default()
        },
        Peer::Recipient(_) => Data {
            sink: Some(Arc::clone(seen) as Arc<dyn Sink>),
            ..Data::default()
        },
        Peer::Party(_) => Data::default(),
    }
}

/// The time of a look: a lane that looks so often has not stood still.
const LOOK: Duration = Duration::from_millis(100);

#[test]
fn a_recipient_of_sums_hears_nothing_for_longer_than_a_run_may_stall() {
    let (plan, seen) = (plan(), Arc::new(Seen::default()));
    let (start, looks) = (Instant::now(), Mutex::new(BTreeMap::new()));
    let timeout = Duration::from_secs(1);
    let settings = |peer| {
        let own = Arc::new(Looks::default());
        looks.lock().unwrap().insert(peer, Arc::clone(&own));
        Settings {
            timeout,
            window: 1,
            clock: Arc::new(move || start + LOOK * own.look()),
            ..Settings::default()
        }
    };
    let conditions = Conditions {
        settings: &settings,
        wrap: &|_, _, link| Box::new(link),
        stop: None,
    };
    let ended = local::run_with(&plan, |peer| data(peer, &seen), &|_| (), &conditions);
    ended.unwrap();
    assert_eq!(*seen.0.lock().unwrap(), ROWS.to_le_bytes());
    let waited = LOOK * looks.lock().unwrap()[&Peer::Recipient(0)].count();
    assert!(waited > timeout * 2, "the recipient waited {waited:?} only");
}

/// A run may stall for so long.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Time that passes from one look to the next of a participant that has met all that are present.
const LEAP: Duration = Duration::from_secs(5);

/// Runs the participants apart, all but the last party, for a meeting of a given length. From when they have met on, time leaps for them.
/// The last party comes when the others have waited for `late`, if it comes at all. How each of them ended, and what was opened.
fn meet(meeting: Duration, late: Option<Duration>) -> (BTreeMap<Peer, Result<(), Abort>>, Vec<u8>) {
    let (plan, seen) = (plan(), Arc::new(Seen::default()));
    let peers = participants(&plan);
    let last = Peer::Party(PartyId::THREE[2]);
    let protocol = |me: Peer| Arc::new(Replicated::new(Arc::clone(&plan), me)) as Arc<dyn Protocol>;
    let ends = memory::mesh(&peers, bounds(&plan, &*protocol(peers[0])));
    let binding = Binding {
        identities: vec![[0; 32]; 3],
        exporters: BTreeMap::new(),
    };
    let (start, stop) = (Instant::now(), AtomicBool::new(false));
    let clocks: BTreeMap<Peer, Arc<Looks>> = peers.iter().map(|p| (*p, Arc::default())).collect();
    let mut ended = BTreeMap::new();
    thread::scope(|scope| {
        let (mut threads, mut comes) = (Vec::new(), None);
        for (me, end) in peers.iter().zip(ends) {
            let (plan, protocol, data) = (&plan, protocol(*me), data(*me, &seen));
            let (binding, stop) = (binding.clone(), &stop);
            let (own, met) = (Arc::clone(&clocks[me]), Arc::new(AtomicBool::new(false)));
            let meets = Arc::clone(&met);
            let settings = Settings {
                timeout: TIMEOUT,
                meeting: Some(start + meeting),
                clock: Arc::new(move || {
                    let met = met.load(Ordering::Relaxed);
                    Instant::now() + LEAP * if met { own.look() } else { 0 }
                }),
                ..Settings::default()
            };
            let progress = move |progress: Progress| {
                let waits: Vec<Peer> = progress.waits.iter().map(|wait| wait.peer).collect();
                let meeting = progress.phase == Phase::Meeting;
                meets.fetch_or(meeting && waits == [last], Ordering::Relaxed);
            };
            let run = move || {
                let links = vec![Box::new(end) as Box<dyn veil_link::Link>];
                let with = (data, binding);
                party::run(plan, &protocol, &settings, with, links, stop, &progress).map(|_| ())
            };
            if *me == last {
                // One that does not come is connected all the same.
                comes = Some(run);
            } else {
                threads.push((*me, scope.spawn(run)));
            }
        }
        if let Some(late) = late {
            let present = || clocks.iter().filter(|(peer, _)| **peer != last);
            while !present().all(|(_, clock)| LEAP * clock.count() >= late) {
                thread::yield_now();
            }
            let over = |clock: &Arc<Looks>| clock.over.store(true, Ordering::Relaxed);
            clocks.values().for_each(over);
            ended.insert(last, comes.take().expect("the last party is one of them")());
        }
        for (me, thread) in threads {
            ended.insert(me, thread.join().unwrap());
        }
    });
    let opened = seen.0.lock().unwrap().clone();
    (ended, opened)
}

#[test]
fn a_participant_that_meets_has_the_time_of_the_meeting() {
    let (ended, opened) = meet(Duration::from_secs(3600), Some(TIMEOUT * 2));
    for (me, ended) in ended {
        assert!(ended.is_ok(), "{me}: {ended:?}");
    }
    assert_eq!(opened, ROWS.to_le_bytes());
}

#[test]
fn a_participant_late_is_named_and_none_that_waits_for_it() {
    let (ended, _) = meet(Duration::from_secs(60), None);
    let absent = Peer::Party(PartyId::THREE[2]);
    let mut named = false;
    for (me, ended) in ended {
        match ended.unwrap_err() {
            Abort::Unmet { peers } => {
                named = true;
                assert_eq!(peers, [absent], "{me}");
            }
            // Another one gave up a moment before.
            Abort::Told { .. } => {}
            other => panic!("{me}: {other:?}"),
        }
    }
    assert!(named);
}
