//! The stock of a home: authenticated products that its party has made with others.

use std::sync::Arc;

use serde::Serializer;
use veil_engine::Data;
use veil_job::{StockError, StockKind};
use veil_node::Home;
use veil_node::stock::{self, UnstockedError};
use veil_program::Job;
use veil_protocol::{Options, Plan, Stock};
use veil_runtime::{Neighbours, Passes};
use veil_session::Peer;
use veil_store::stock::Stocks;

use crate::failure::{Code, Failure};
use crate::prepare;

/// What a stock is of, as JSON says it.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to a field"
)]
pub(crate) fn items<S: Serializer>(kind: &StockKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.items())
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
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    stock::planned(job, options).map_err(|error| match error {
        UnstockedError::Plan(error) => error.into(),
        error => Failure::new(Code::Usage, error.to_string()),
    })
}

/// The stock of a home with the other party of a plan.
pub(crate) fn of(
    home: &Home,
    plan: &Plan,
    me: Peer,
    neighbours: &Neighbours,
) -> Result<Stocks, Failure> {
    let stocks = home.stocks_of(plan, me, &neighbours.pins);
    stocks.map_err(|error| failure(&error))
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
