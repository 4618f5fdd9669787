//! A recipient waits for as long as the parties compute; and a participant that has met some waits for the others as long as a meeting may take.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_engine::{Abort, Binding, Data, Settings, bounds, participants, party};
use veil_job::{Audience, Block, DataError, Holder, JobSpec, Sink, Slice, Source};
use veil_link::memory;
use veil_math::Ring;
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan, Protocol};
use veil_session::{PartyId, Peer};

const ROWS: u64 = 64;
/// A machine may stand still for less.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Ones, read slowly, but by far not as slowly as a run may stall: so only all rows take longer than that.
struct Slow(Duration);

impl Source for Slow {
    fn fill(&self, _port: usize, _slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        thread::sleep(self.0);
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
        chunk_rows: Some(8),
    };
    Arc::new(Plan::new(Arc::new(job), options).unwrap())
}

/// Runs each participant that `comes` lets come, so long after the others; how each of them ended, and what was opened.
fn run(
    source: &Arc<dyn Source>,
    settings: &Settings,
    comes: impl Fn(Peer) -> Option<Duration>,
) -> (BTreeMap<Peer, Result<(), Abort>>, Vec<u8>) {
    let plan = plan();
    assert!(plan.chunks() >= 8, "long enough for a recipient to give up");
    let seen = Arc::new(Seen::default());
    let data = |peer| match peer {
        Peer::Owner(_) => Data {
            source: Some(Arc::clone(source)),
            ..Data::default()
        },
        Peer::Recipient(_) => Data {
            sink: Some(seen.clone()),
            ..Data::default()
        },
        Peer::Party(_) => Data::default(),
    };
    let peers = participants(&plan);
    let protocol = |me: Peer| Arc::new(Replicated::new(Arc::clone(&plan), me)) as Arc<dyn Protocol>;
    let ends = memory::mesh(&peers, bounds(&plan, &*protocol(peers[0])));
    let binding = Binding {
        identities: vec![[0; 32]; 3],
        exporters: BTreeMap::new(),
    };
    let stop = AtomicBool::new(false);
    // A participant that does not come is connected all the same.
    let (mut ended, mut absent) = (BTreeMap::new(), Vec::new());
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (me, end) in peers.iter().zip(ends) {
            let Some(late) = comes(*me) else {
                absent.push(end);
                continue;
            };
            let (plan, protocol, data) = (&plan, protocol(*me), data(*me));
            let (binding, stop) = (binding.clone(), &stop);
            let run = move || {
                thread::sleep(late);
                let links = vec![Box::new(end) as Box<dyn veil_link::Link>];
                let with = (data, binding);
                party::run(plan, &protocol, settings, with, links, stop, &|_| ()).map(|_| ())
            };
            threads.push((*me, scope.spawn(run)));
        }
        for (me, thread) in threads {
            ended.insert(me, thread.join().unwrap());
        }
    });
    let opened = seen.0.lock().unwrap().clone();
    (ended, opened)
}

#[test]
fn a_recipient_of_sums_hears_nothing_for_longer_than_a_run_may_stall() {
    let settings = Settings {
        timeout: TIMEOUT,
        ..Settings::default()
    };
    let slow: Arc<dyn Source> = Arc::new(Slow(TIMEOUT / 6));
    let (ended, opened) = run(&slow, &settings, |_| Some(Duration::ZERO));
    for (me, ended) in ended {
        assert!(ended.is_ok(), "{me}: {ended:?}");
    }
    assert_eq!(opened, ROWS.to_le_bytes());
}

#[test]
fn a_participant_that_meets_has_the_time_of_the_meeting() {
    let fast: Arc<dyn Source> = Arc::new(Slow(Duration::ZERO));
    let settings = Settings {
        timeout: Duration::from_secs(2),
        meeting: Some(Instant::now() + Duration::from_secs(60)),
        ..Settings::default()
    };
    // Twice as long as the run may stall.
    let last = Peer::Party(PartyId::THREE[2]);
    let late = |peer| Some(Duration::from_secs(if peer == last { 4 } else { 0 }));
    let (ended, opened) = run(&fast, &settings, late);
    for (me, ended) in ended {
        assert!(ended.is_ok(), "{me}: {ended:?}");
    }
    assert_eq!(opened, ROWS.to_le_bytes());
}

#[test]
fn a_participant_late_is_named_and_none_that_waits_for_it() {
    let fast: Arc<dyn Source> = Arc::new(Slow(Duration::ZERO));
    let settings = Settings {
        meeting: Some(Instant::now() + Duration::from_secs(1)),
        ..Settings::default()
    };
    let absent = Peer::Party(PartyId::THREE[2]);
    let comes = |peer| (peer != absent).then_some(Duration::ZERO);
    let (ended, _) = run(&fast, &settings, comes);
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
