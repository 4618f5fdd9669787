//! `veil-lab bench ag-prepare`: stock of authenticated garbling: cells that two parties make a second, each on a disk, and then runs that take them, one block of AES-128 and a
//! batch, next to the same batch with products made on the way, and against a semi-honest party.

use std::path::Path;
use std::sync::Arc;

use miette::{IntoDiagnostic, Result};
use veil_cli::devices::Registry;
use veil_engine::Data;
use veil_job::{Adversary, ProtocolKind, Security, Statistical, StockKind};
use veil_protocol::ag::{CELLS_OF_ROW, stock_of};
use veil_protocol::{Options, Plan, Stock, protocol};
use veil_session::Peer;
use veil_store::StoreKey;
use veil_store::stock::{Between, Stocks};

use super::measure::{Course, data, measure, measure_program};
use super::workload::Name;
use super::{BenchArgs, HEADER};

/// Rows of the batch, unless another number is asked for.
const BATCH: u64 = 64;

/// What a party has in a folder.
fn stocks(folder: &Path, party: usize, statistical: Statistical) -> Result<Stocks> {
    let between = Between {
        me: [party as u8; 32],
        peer: [1 - party as u8; 32],
        garbles: party == 0,
        statistical: statistical.bits(),
        kind: StockKind::Cells,
    };
    let key = StoreKey::derive(&[party as u8; 32]);
    Stocks::open(&folder.join(party.to_string()), &key, between).into_diagnostic()
}

/// The place of a peer among the parties.
fn index(peer: Peer) -> usize {
    peer.party().map_or(0, veil_session::PartyId::index)
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let statistical = args.statistical.unwrap_or(Statistical::USUAL);
    let security = Security {
        statistical,
        ..Security::of(ProtocolKind::Yao).against(Adversary::Malicious)
    };
    let device = args.devices(registry)?;
    let batch = args.batch.unwrap_or(BATCH).max(1);
    let folder = tempfile::tempdir().into_diagnostic()?;
    let both = [0, 1].map(|party| stocks(folder.path(), party, statistical));
    let [garbler, evaluator] = both;
    let both = [garbler?, evaluator?];
    if !args.json {
        println!("{HEADER}");
    }
    let mut rows = Vec::new();
    for &carrier in &args.link {
        for cores in args.cores.0..=args.cores.1 {
            let setup = args.setup(&device, carrier, cores);
            let of = |name: Name, rows, security| name.workload(rows, security);
            let planned = |workload: &super::workload::Workload| {
                let options = Options {
                    lanes: cores,
                    chunk_rows: setup.chunk_rows,
                };
                Plan::stocked(Arc::clone(&workload.job), options, Stock::Used).into_diagnostic()
            };
            let one = of(Name::Cut, 1, security);
            let many = of(Name::Ag, batch, security);
            let plans = [planned(&one)?, planned(&many)?].map(Arc::new);
            let need = |plan: &Arc<Plan>| {
                let party = protocol(Arc::clone(plan), Peer::Party(plan.parties()[0]));
                party.stock().map_or(0, |stock| stock.cells)
            };
            // Each repetition of the making is a generation, of which one is enough for all repetitions of the others.
            let repeat = u64::from(setup.repeat.max(1));
            let cells = plans.iter().map(need).sum::<u64>() * repeat;
            let parties = ["a", "b"].map(str::to_owned);
            let making = stock_of(parties, statistical, cells);
            let cells = making.blocks[0].rows * CELLS_OF_ROW;
            let options = Options {
                lanes: cores,
                chunk_rows: None,
            };
            let plan = Plan::stocked(Arc::new(making), options, Stock::Made).into_diagnostic()?;
            let course = Course {
                name: "ag-prepare",
                batch: plan.job.rows(),
                ops: cells as f64,
                blocks_per_op: 34.0,
                gather_seconds: 0.0,
                program: Arc::new(Arc::new(plan).into()),
                data: &|peer, _| Data {
                    makes: Some(Arc::new(both[index(peer)].making(cells, None))),
                    ..Data::default()
                },
            };
            rows.push(measure_program(&course, &setup)?);
            args.show(&rows[rows.len() - 1])?;
            for (plan, (name, workload)) in
                plans.iter().zip([("ag-aes1", &one), ("ag-used", &many)])
            {
                let course = Course {
                    name,
                    batch: plan.job.rows(),
                    ops: workload.job.rows() as f64 * workload.ops as f64,
                    blocks_per_op: 6.0,
                    gather_seconds: 0.0,
                    program: Arc::new(Arc::clone(plan).into()),
                    data: &|peer, _| Data {
                        stock: Some(Arc::new(both[index(peer)].taking())),
                        ..data(peer)
                    },
                };
                rows.push(measure_program(&course, &setup)?);
                args.show(&rows[rows.len() - 1])?;
            }
            let semi_honest = Security::of(ProtocolKind::Yao);
            for workload in [many, of(Name::Yao, batch, semi_honest)] {
                rows.push(measure(&workload, &setup)?);
                args.show(&rows[rows.len() - 1])?;
            }
        }
    }
    args.draw(&rows)
}
