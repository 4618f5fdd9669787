//! The stock of a home: authenticated products that its party has made with others.

use std::path::PathBuf;
use std::sync::Arc;

use veil_engine::Data;
use veil_job::StockError;
use veil_node::Home;
use veil_program::Job;
use veil_protocol::{Options, Plan, Stock};
use veil_runtime::{Neighbours, Passes};
use veil_session::Peer;
use veil_store::StoreKey;
use veil_store::stock::{Between, Stocks};

use crate::failure::{Code, Failure};
use crate::prepare;

/// Where a home has its stock.
pub(crate) fn folder(home: &Home) -> PathBuf {
    home.path().join("stock")
}

/// Its key: that of everything that the home stores.
pub(crate) fn key(home: &Home) -> Result<StoreKey, Failure> {
    Ok(StoreKey::derive(home.store_secret()?.as_slice()))
}

/// A stock that does not serve.
pub(crate) fn failure(error: &StockError) -> Failure {
    Failure::new(Code::Input, error.to_string())
}

/// The plan of a job as its participants are to run it, with products from a stock if that is asked.
pub(crate) fn plan(job: &Job, lanes: u16, stocked: bool) -> Result<Passes, Failure> {
    if !stocked {
        return prepare::plan(job, Some(lanes));
    }
    if job.queries().is_some() {
        let message = "a job with queries takes no products from a stock";
        return Err(Failure::new(Code::Usage, message).help("leave `--stock` out"));
    }
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    Ok(Plan::stocked(job.shared(), options, Stock::Used)?.into())
}

/// The stock of a home with the other party of a plan.
pub(crate) fn of(
    home: &Home,
    plan: &Plan,
    me: Peer,
    neighbours: &Neighbours,
) -> Result<Stocks, Failure> {
    let others = neighbours.pins.iter();
    let mut others = others.filter(|(peer, _)| peer.party().is_some());
    let (_, peer) = others.next().expect("two parties compute");
    let between = Between {
        me: *home.identity().fingerprint().as_bytes(),
        peer: *peer.as_bytes(),
        garbles: me.party().is_some_and(|party| party.index() == 0),
        statistical: plan.job.security.statistical.bits(),
    };
    Stocks::open(&folder(home), &key(home)?, between).map_err(|error| failure(&error))
}

/// What a party brings to a run, with its stock if the run takes from one.
pub(crate) fn with(
    data: Arc<[Data]>,
    (home, plan): (&Home, &Plan),
    me: Peer,
    neighbours: &Neighbours,
) -> Result<Arc<[Data]>, Failure> {
    if plan.stock != Stock::Used || me.party().is_none() {
        return Ok(data);
    }
    let taking = of(home, plan, me, neighbours)?.taking();
    let mut data = data.to_vec();
    if let Some(data) = data.first_mut() {
        data.stock = Some(Arc::new(taking));
    }
    Ok(data.into())
}
