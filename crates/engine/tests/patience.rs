//! A recipient waits for as long as the parties compute.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_engine::{Binding, Data, Settings, bounds, participants, party};
use veil_link::memory;
use veil_math::Ring;
use veil_program::{Audience, Block, DataError, Holder, Lowered, Sink, Slice, Source};
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan, Protocol};
use veil_session::Peer;

const ROWS: u64 = 64;
/// A machine may stand still for less.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Ones, read slowly, but by far not as slowly as a run may stall: so only all rows take longer than that.
struct Slow;

impl Source for Slow {
    fn fill(&self, _port: usize, _slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        thread::sleep(TIMEOUT / 6);
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

#[test]
fn a_recipient_of_sums_hears_nothing_for_longer_than_a_run_may_stall() {
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
    let job = Lowered {
        name: "slow".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["a", "b", "c"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: veil_program::Security::among(3),
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: ROWS,
            holders: vec![Holder::Owner(0)],
            stored: None,
            order: veil_program::Order::Unsaid,
        }],
        audiences: vec![Audience::Recipient(0)],
        opened: vec!["the sum of squares".into()],
    };
    let options = Options {
        lanes: 1,
        chunk_rows: Some(8),
    };
    let plan = Arc::new(Plan::new(Arc::new(job), options).unwrap());
    assert!(plan.chunks() >= 8, "long enough for a recipient to give up");
    let seen = Arc::new(Seen::default());
    let data = |peer| match peer {
        Peer::Owner(_) => Data {
            source: Some(Arc::new(Slow)),
            ..Data::default()
        },
        Peer::Recipient(_) => Data {
            sink: Some(seen.clone()),
            ..Data::default()
        },
        Peer::Party(_) => Data::default(),
    };
    let settings = Settings {
        timeout: TIMEOUT,
        ..Settings::default()
    };
    let peers = participants(&plan);
    let protocols = peers
        .iter()
        .map(|me| Arc::new(Replicated::new(Arc::clone(&plan), *me)) as Arc<dyn Protocol>);
    let ends = memory::mesh(
        &peers,
        bounds(&plan, &Replicated::new(Arc::clone(&plan), peers[0])),
    );
    let binding = Binding {
        identities: vec![[0; 32]; 3],
        exporters: BTreeMap::new(),
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for ((me, protocol), end) in peers.iter().zip(protocols).zip(ends) {
            let (plan, settings, binding, data, stop) =
                (&plan, &settings, binding.clone(), data(*me), &stop);
            scope.spawn(move || {
                let links = vec![Box::new(end) as Box<dyn veil_link::Link>];
                let ended = party::run(
                    plan,
                    &protocol,
                    settings,
                    (data, binding),
                    links,
                    stop,
                    &|_| (),
                );
                assert!(ended.is_ok(), "{me}: {ended:?}");
            });
        }
    });
    assert_eq!(*seen.0.lock().unwrap(), ROWS.to_le_bytes());
}
