//! Stock of a run on this machine: made first, between the same parties in this process, and taken by the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_engine::local::{self, Conditions};
use veil_engine::{Data, Settings};
use veil_job::{DataError, StockKind, StockSink, StockSource};
use veil_link::{Link, shape};
use veil_node::stock::cells_of;
use veil_protocol::{Options, Plan, Stock, making_of, stock_kind, stock_parameter};
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};
use veil_store::StoreKey;
use veil_store::stock::{Between, Stocks};

use crate::failure::Failure;
use crate::launch::threads::Site;
use crate::progress::{Meter, Snapshot};
use crate::stocks;

/// What making took.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ahead {
    /// Cells or transfers that the run takes.
    pub(crate) cells: u64,
    /// What they are.
    #[serde(rename = "of", serialize_with = "stocks::items")]
    pub(crate) kind: StockKind,
    /// As many of them were made for it: whole batches.
    pub(crate) made: u64,
    /// Seconds.
    pub(crate) seconds: f64,
    /// Bytes that both parties sent for it.
    pub(crate) bytes_sent: u64,
}

/// The stock of each party of a run.
pub(crate) type Sources = BTreeMap<Peer, Arc<dyn StockSource>>;

/// Makes the stock that a plan takes, in a folder that is there for the run alone.
pub(crate) fn make(
    plan: &Passes,
    site: &Site<'_>,
    folder: &Path,
) -> Result<(Sources, Ahead), Failure> {
    let cells = cells_of(plan);
    let spec = &plan.job;
    let parties = [spec.parties[0].clone(), spec.parties[1].clone()];
    let kind = stock_kind(spec).unwrap_or_default();
    let mut job = making_of(kind, parties, spec.security.statistical, cells);
    if kind == StockKind::Cells {
        job.security.ot = spec.security.ot;
    }
    let options = Options {
        lanes: 1,
        chunk_rows: None,
    };
    let making: Passes = Plan::stocked(Arc::new(job), options, Stock::Made)?.into();
    let made = cells_of(&making);
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| {
        let error = DataError::own(format!("the system gives no random numbers: {error}"));
        stocks::failure(&error.into())
    })?;
    let key = StoreKey::derive(&secret);
    let stocks: BTreeMap<Peer, Stocks> = PartyId::TWO
        .into_iter()
        .map(|party| {
            let own = [party.index() as u8; 32];
            let between = Between {
                me: own,
                peer: [1 - party.index() as u8; 32],
                garbles: party.index() == 0,
                statistical: stock_parameter(kind, spec.security.statistical),
                kind,
            };
            let folder = folder.join(party.index().to_string());
            let stocks = Stocks::open(&folder, &key, between);
            Ok((
                Peer::Party(party),
                stocks.map_err(|error| stocks::failure(&error))?,
            ))
        })
        .collect::<Result<_, Failure>>()?;
    let sinks: BTreeMap<Peer, Arc<dyn StockSink>> = stocks
        .iter()
        .map(|(peer, stocks)| {
            let sink: Arc<dyn StockSink> = Arc::new(stocks.making(made, None));
            (*peer, sink)
        })
        .collect();
    let start = Instant::now();
    let settings = |peer| Settings {
        timeout: site.timeout.max(Duration::from_secs(1)),
        device: site.devices.factory(&making, peer, None),
        ..Settings::default()
    };
    let wrap = |_, _: u16, link| -> Box<dyn Link> {
        match site.net {
            Some(profile) => Box::new(shape::Shaped::new(Box::new(link), profile)),
            None => Box::new(link),
        }
    };
    let conditions = Conditions {
        settings: &settings,
        wrap: &wrap,
        stop: Some(site.stop.flag()),
    };
    let data = |peer, _| Data {
        makes: sinks.get(&peer).cloned(),
        ..Data::default()
    };
    let meter = Meter::new(&making);
    let progress = |progress| meter.show(&Snapshot::from(&progress));
    let reports = local::run_program(making.program(), data, &progress, &conditions);
    drop(meter);
    let reports = reports.map_err(|failure| {
        if site.stop.asked() {
            Failure::stopped()
        } else {
            Failure::local(&making, &failure)
        }
    })?;
    let took = Ahead {
        cells,
        kind,
        made,
        seconds: start.elapsed().as_secs_f64(),
        bytes_sent: reports
            .values()
            .map(|report| report.meters.bytes_sent)
            .sum(),
    };
    let sources = stocks.into_iter().map(|(peer, stocks)| {
        let source: Arc<dyn StockSource> = Arc::new(stocks.taking());
        (peer, source)
    });
    Ok((sources.collect(), took))
}
