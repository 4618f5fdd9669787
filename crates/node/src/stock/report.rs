//! How much stock a home has with each party, for its people.

use std::collections::BTreeMap;

use serde::Serialize;
use veil_job::{DataError, StockError, StockKind};
use veil_link::tls::Fingerprint;
use veil_store::stock::{ListedState, stocks};

use super::Takes;
use crate::home::Home;
use crate::usage::Usage;

/// The stock with one party.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct StockOf {
    /// Its name, or its key if it is no member any more.
    pub with: String,
    /// Cells that are left.
    pub cells: u64,
    /// Random transfers that are left.
    pub transfers: u64,
    /// The generations that cells are of: the name of each, and its cells that are left. A run takes all of its cells from one.
    pub generations: BTreeMap<String, u64>,
    /// The same of transfers.
    pub transfer_generations: BTreeMap<String, u64>,
    /// Cells and transfers of these generations that runs have taken.
    pub spent: u64,
    /// Cells that there should be, as the settings say; 0 if none are made in idle time.
    pub target: u64,
    /// Transfers that there should be.
    pub transfer_target: u64,
    /// Whether jobs of a service may take from it.
    pub runs: bool,
    /// Cells and transfers that were made in the last day in idle time.
    pub made_today: u64,
    /// Cells or transfers in a second, of the last making in idle time of the last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Generations that cannot be read.
    pub damaged: u64,
}

/// The stock of a home with each party with which it has some, or whose settings allow some, by the names of the parties.
///
/// # Errors
/// [`StockError::Data`] if the folder, the key of the home or the record of what was made cannot be read.
pub fn report(home: &Home) -> Result<Vec<StockOf>, StockError> {
    let own = |error: &dyn std::fmt::Display| DataError::own(error.to_string());
    let key = home.stock_key().map_err(|error| own(&error))?;
    let usage = Usage::open(home.path()).map_err(|error| own(&error))?;
    let members = home.members();
    let mut all: BTreeMap<String, StockOf> = BTreeMap::new();
    for (name, with) in &home.settings().stock {
        let of = all.entry(name.clone()).or_default();
        (of.target, of.runs) = (with.target, with.runs);
        of.transfer_target = with.transfers;
    }
    let mut damaged = 0;
    for listed in stocks(&home.stock_folder(), &key)? {
        match listed.state {
            ListedState::There {
                between,
                cells: [made, used],
                ..
            } => {
                let peer = Fingerprint::from_bytes(between.peer);
                let name = members.by_fingerprint(&peer);
                let name = name.map_or_else(|| peer.to_string(), |member| member.name.clone());
                let of = all.entry(name).or_default();
                let left = made.saturating_sub(used);
                of.spent += used;
                let (all, generations) = match between.kind {
                    StockKind::Cells => (&mut of.cells, &mut of.generations),
                    StockKind::Transfers => (&mut of.transfers, &mut of.transfer_generations),
                };
                *all += left;
                if left > 0 {
                    generations.insert(listed.generation, left);
                }
            }
            ListedState::Damaged(_) => damaged += 1,
            _ => {}
        }
    }
    let named = all.into_iter().map(|(name, of)| {
        let made = usage.made(&name);
        StockOf {
            with: name,
            made_today: made.cells,
            rate: made.rate,
            damaged,
            ..of
        }
    });
    Ok(named.collect())
}

impl StockOf {
    /// Whether a run finds what it takes in one generation.
    pub fn suffices(&self, takes: &Takes) -> bool {
        let generations = match takes.kind() {
            StockKind::Cells => &self.generations,
            StockKind::Transfers => &self.transfer_generations,
        };
        generations.values().any(|left| *left >= takes.cells)
    }
}
