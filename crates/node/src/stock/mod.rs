//! The stock of a home: what its party has made with others ahead of any job, what a job takes of it, and how much of a making that ended early is kept.

mod keep;
mod report;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use veil_engine::name_of;
use veil_job::{DataError, Statistical, StockError, StockKind};
use veil_program::Job;
use veil_protocol::{Options, Plan, PlanError, Stock, stock_kind, stock_parameter};
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};
use veil_store::StoreKey;
use veil_store::stock::{Between, Stocks};

use crate::home::{Home, HomeError};

pub use keep::{Making, agree};
pub use report::{StockOf, report};

/// What a run takes from the stock of a party.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Takes {
    /// The name of the other party.
    pub with: String,
    /// Items, all of one generation.
    pub cells: u64,
    /// Whether they are random transfers, in the place of cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transfers: bool,
}

/// A job cannot take its products or transfers from a stock.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnstockedError {
    /// It has queries.
    #[error("a job with queries takes nothing from a stock; leave `--stock` out")]
    Queries,
    /// It runs in stages.
    #[error("a durable job takes nothing from a stock; leave `--stock` out")]
    Durable,
    /// Its protocol has none, or it cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Plans a job whose products or transfers come from a stock: that they do is under the plan hash.
///
/// # Errors
/// [`UnstockedError`] if the job has queries, is durable, or its protocol takes nothing from a stock.
pub fn planned(job: &Job, options: Options) -> Result<Passes, UnstockedError> {
    if job.queries().is_some() {
        return Err(UnstockedError::Queries);
    }
    if job.is_durable() {
        return Err(UnstockedError::Durable);
    }
    Ok(Plan::stocked(job.shared(), options, Stock::Used)?.into())
}

impl Takes {
    /// What a run of a plan takes at the party of this name; nothing if it takes nothing, or the name is none of a party.
    pub fn of(plan: &Passes, name: &str) -> Option<Self> {
        if plan.stock != Stock::Used {
            return None;
        }
        let is_me = |party: &&PartyId| name_of(plan, Peer::Party(**party)) == name;
        let me = *plan.parties().iter().find(is_me)?;
        let other = *plan.parties().iter().find(|party| **party != me)?;
        Some(Takes {
            with: name_of(plan, Peer::Party(other)).to_owned(),
            cells: cells_of(plan),
            transfers: stock_kind(&plan.job) == Some(StockKind::Transfers),
        })
    }

    /// What they are.
    pub const fn kind(&self) -> StockKind {
        kind_of(self.transfers)
    }
}

/// A kind, by whether it is of transfers: as messages and records say it.
pub(crate) const fn kind_of(transfers: bool) -> StockKind {
    if transfers {
        StockKind::Transfers
    } else {
        StockKind::Cells
    }
}

/// Items that a run of a plan takes from a stock, or makes for one; none of another plan.
pub fn cells_of(plan: &Passes) -> u64 {
    let party = Peer::Party(plan.parties()[0]);
    plan.protocol(party).stock().map_or(0, |stock| stock.cells)
}

impl Home {
    /// Where stock is kept.
    pub fn stock_folder(&self) -> PathBuf {
        self.path().join("stock")
    }

    /// The key of stock: that of everything that the home stores.
    ///
    /// # Errors
    /// [`HomeError`] as of [`Home::store_secret`].
    pub fn stock_key(&self) -> Result<StoreKey, HomeError> {
        Ok(StoreKey::derive(self.store_secret()?.as_slice()))
    }

    /// The stock of a kind with the party that has the key `peer`, of a garbler or of an evaluator, whose making errs with probability 2^-s at most.
    ///
    /// # Errors
    /// [`StockError::Data`] if the key of the home cannot be read, or the folder not be made.
    pub fn stocks(
        &self,
        peer: [u8; 32],
        garbles: bool,
        (kind, statistical): (StockKind, Statistical),
    ) -> Result<Stocks, StockError> {
        let key = self.stock_key();
        let key = key.map_err(|error| DataError::own(error.to_string()))?;
        let between = Between {
            me: *self.identity().fingerprint().as_bytes(),
            peer,
            garbles,
            statistical: stock_parameter(kind, statistical),
            kind,
        };
        Stocks::open(&self.stock_folder(), &key, between)
    }

    /// The stock that a party `me` of a plan takes from, or makes, with the other one, whose key is pinned.
    ///
    /// # Errors
    /// [`StockError::Data`] as of [`Home::stocks`], or if no other party is pinned.
    pub fn stocks_of(
        &self,
        plan: &Plan,
        me: Peer,
        pins: &std::collections::BTreeMap<Peer, veil_link::tls::Fingerprint>,
    ) -> Result<Stocks, StockError> {
        let mut others = pins.iter().filter(|(peer, _)| peer.party().is_some());
        let (_, peer) = others
            .next()
            .ok_or_else(|| DataError::own("stock is between two parties, and one is not known"))?;
        let garbles = me.party().is_some_and(|party| party.index() == 0);
        let kind = stock_kind(&plan.job)
            .ok_or_else(|| DataError::own("the protocol of the job has no stock"))?;
        let of = (kind, plan.job.security.statistical);
        self.stocks(*peer.as_bytes(), garbles, of)
    }
}
