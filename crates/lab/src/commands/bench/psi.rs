//! `veil-lab bench psi`: keys of two parties that meet, half of each list in both, next to what masks and messages allow.

use std::sync::Arc;

use miette::{IntoDiagnostic, Result};
use veil_cli::devices::Registry;
use veil_device::{Lpn, Okvs};
use veil_engine::Data;
use veil_job::{
    Adversary, Audience, Block, DataError, Holder, JobSpec, KEY_BYTES, Order, ProtocolKind,
    Security, Sink, Slice, Source, equality,
};
use veil_protocol::ot::vole::{Shape, Way};
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer};

use super::measure::{Course, measure_program};
use super::random::Random;
use super::{BenchArgs, HEADER};

/// Keys of each list, unless another number is asked for.
const KEYS: u64 = 1_000_000;

/// Who has no result.
const SENDER: PartyId = PartyId::TWO[0];
/// Who has one.
const RECEIVER: PartyId = PartyId::TWO[1];

/// The keys of a party.
struct Keys(Vec<u8>);

impl Keys {
    /// The first half is that of both parties.
    fn of(party: PartyId, count: u64) -> Self {
        let common = count / 2;
        let mut bytes = Vec::with_capacity(count as usize * KEY_BYTES);
        for (list, keys) in [(2, common), (party.index() as u64, count - common)] {
            let mut random = Random(list << 40);
            for _ in 0..keys * (KEY_BYTES as u64 / 8) {
                bytes.extend_from_slice(&random.next().to_le_bytes());
            }
        }
        Keys(bytes)
    }
}

impl Source for Keys {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        if into.len() != self.0.len() {
            return Err(DataError::out_of_reach(port, slice));
        }
        into.copy_from_slice(&self.0);
        Ok(())
    }
}

/// Compares the result with that of the lists: the first half, and no other key.
struct Compared(u64);

impl Sink for Compared {
    fn put(&self, _: usize, _: Slice, values: &[u8]) -> Result<(), DataError> {
        let found = |at: u64| values[at as usize / 8] >> (at % 8) & 1 == 1;
        let wrong = (0..self.0).find(|at| found(*at) != (*at < self.0 / 2));
        match wrong {
            Some(at) => Err(DataError::own(format!("the result of key {at} is wrong"))),
            None => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}

fn job(count: u64) -> JobSpec {
    JobSpec {
        name: "bench psi".into(),
        schema: String::new(),
        owners: vec![],
        parties: ["a", "b"].map(str::to_owned).into(),
        recipients: vec![],
        security: Security::of(ProtocolKind::Yao).against(Adversary::Malicious),
        circuit: equality(["a", "b"], "common"),
        totals: None,
        blocks: vec![Block {
            name: "keys".into(),
            rows: count,
            holders: PartyId::TWO.map(Holder::Party).into(),
            stored: None,
            order: Order::Intersected {
                keys: [count; 2],
                result: RECEIVER,
            },
        }],
        audiences: vec![Audience::Party(RECEIVER)],
        opened: vec!["which keys of b are keys of a".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

/// AES blocks of both parties: of every leaf two of a tree, and of every row ten words or ten blocks; of every key one for its row, at both parties.
fn blocks(count: u64) -> f64 {
    let shape = Shape::of(Okvs::of(count as u32).columns() as u32);
    let (silent, expansions) = match shape.way() {
        Way::Transfers => (0, 0),
        Way::Silent { rounds } => (rounds, 0),
        Way::Expanded { rounds, expansions } => (rounds, expansions),
    };
    let of = |rounds: u32, set: Lpn| {
        let leaves = set.outputs() as f64;
        f64::from(rounds) * 2.0 * (leaves + set.row_blocks() as f64)
    };
    of(silent, Lpn::C12) + of(expansions, Lpn::V) + 2.0 * count as f64
}

/// Runs the command: an operation is a key of either list.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let count = args.batch.unwrap_or(KEYS).max(1);
    let device = args.devices(registry)?;
    let lists = [SENDER, RECEIVER].map(|party| Arc::new(Keys::of(party, count)));
    if !args.json {
        println!("{HEADER}");
    }
    let mut rows = Vec::new();
    for &carrier in &args.link {
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        let plan = Arc::new(Plan::new(Arc::new(job(count)), options).into_diagnostic()?);
        let ops = 2.0 * count as f64;
        let course = Course {
            name: "psi",
            batch: count,
            ops,
            blocks_per_op: blocks(count) / ops,
            gather_seconds: 0.0,
            program: Arc::new(plan.into()),
            data: &|peer, _| {
                let party = peer.party().unwrap_or(SENDER);
                let sink = Arc::new(Compared(count)) as Arc<dyn Sink>;
                Data {
                    source: Some(Arc::clone(&lists[party.index()]) as Arc<dyn Source>),
                    sink: (peer == Peer::Party(RECEIVER)).then_some(sink),
                    ..Data::default()
                }
            },
        };
        rows.push(measure_program(&course, &args.setup(&device, carrier, 1))?);
        args.show(&rows[rows.len() - 1])?;
    }
    args.draw(&rows)
}
