//! Jobs that take products from the stock of this party: whether they may, and what they take.

use std::sync::Arc;

use veil_job::StockSource;
use veil_runtime::Passes;
use veil_session::Peer;

use super::ServiceState;
use super::attempt::patience;
use super::ended::Failed;
use super::meet::Here;
use crate::planner::Planned;

impl ServiceState {
    /// Whether a job may take from the stock what it takes: this party's people allow it with the other party, and the member that asks has a quota
    /// for it.
    pub(super) fn may_take(&self, planned: &Planned, asked_by: Option<&str>) -> Result<(), String> {
        let Some(takes) = &planned.takes else {
            return Ok(());
        };
        let settings = self.home.settings();
        let with = &takes.with;
        if !settings.stock.get(with).is_some_and(|with| with.runs) {
            return Err(format!(
                "this party runs no jobs from its stock with `{with}`: its operator sets `runs = true` under [stock.{with}] in veil.toml, or the job is \
                 proposed without `--stock`"
            ));
        }
        match asked_by {
            None => Ok(()),
            Some(member) => {
                let quota = settings.quotas.of(member);
                self.usage.may_take(member, &quota, takes.cells)
            }
        }
    }
}

/// The stock that a run takes from, if it takes from any, charged to the member that asked for it. Two runs that begin at once wait for each other for
/// times that differ by their plans, as they do for places.
pub(super) fn taking(
    shared: &ServiceState,
    planned: &Planned,
    asked_by: Option<&str>,
    (plan, me, here): (&Passes, Peer, &Here),
) -> Result<Option<Arc<dyn StockSource>>, Failed> {
    let Some(takes) = &planned.takes else {
        return Ok(None);
    };
    shared.may_take(planned, asked_by).map_err(Failed::Quota)?;
    let stocks = shared.home.stocks_of(plan, me, &here.neighbours.pins);
    let stocks = stocks.map_err(|error| Failed::Here(error.to_string()))?;
    if let Some(member) = asked_by {
        shared.usage.takes(member, takes.cells);
    }
    let patience = patience(plan.hash, shared.engine().timeout / 4);
    Ok(Some(Arc::new(stocks.taking().patient(patience))))
}
