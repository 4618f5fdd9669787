//! Makings that are over without an agreement: a service was killed, or a link was lost and the other party could not be asked. What has passed at both is kept before more is
//! made.

use std::collections::BTreeMap;
use std::time::Duration;

use veil_job::StockKind;
use veil_store::stock::{Stocks, page_of};

use super::super::ServiceState;
use super::MEET;
use super::answer::{No, Unasked, answered, senseless, unusable};
use crate::control::{Reply, Request};
use crate::members::Member;

/// Makings that a party may name: each took the place of the one before.
const NAMED: usize = 64;

/// Asks the other service how much both keep of makings that are over, and keeps it. Whether there were some.
pub(super) fn settle(
    shared: &ServiceState,
    member: &Member,
    stocks: &Stocks,
) -> Result<bool, Unasked> {
    let unusable = |error| Unasked::Failed(unusable(&error));
    let passed: BTreeMap<String, u64> =
        stocks.unfinished().map_err(unusable)?.into_iter().collect();
    if passed.is_empty() {
        return Ok(false);
    }
    let name = &member.name;
    let request = Request::Unfinished {
        makings: passed.clone(),
        transfers: stocks.kind() == StockKind::Transfers,
    };
    let Reply::Finished { makings } = answered(shared, member, &request)? else {
        return Err(senseless(name));
    };
    for (generation, passed) in passed {
        // Of what the other party has nothing, the next making removes what is left.
        let Some(&cells) = makings.get(&generation) else {
            continue;
        };
        if cells > passed {
            let why = format!("`{name}` keeps cells that have not passed here");
            return Err(Unasked::Failed(why));
        }
        let kept = stocks.keep_unfinished(&generation, cells);
        kept.map_err(unusable)?;
        shared.kept(name, cells);
    }
    Ok(true)
}

impl ServiceState {
    /// Answers a party that asks how much both keep of makings that are over.
    pub(in crate::service) fn finishes(
        &self,
        member: &Member,
        kind: StockKind,
        passed: &BTreeMap<String, u64>,
    ) -> Result<Reply, No> {
        let name = &member.name;
        let with = self.makes_with(name, kind)?;
        if passed.len() > NAMED {
            return Err(format!("a party names {NAMED} makings at most"));
        }
        // A making that goes on here may be one of these.
        let place = self.refills.reserve(name, MEET);
        let _place = place.ok_or("stock is made at this party at this moment: ask again")?;
        let own = &self.home.settings().name;
        let stocks = self.home.stocks(
            *member.fingerprint.as_bytes(),
            with.garbles(own, name),
            (kind, with.statistical),
        );
        let unusable = |error| unusable(&error);
        let stocks = stocks.map_err(unusable)?;
        let here: BTreeMap<String, u64> =
            stocks.unfinished().map_err(unusable)?.into_iter().collect();
        // Of an answer that was lost the cells are there, and none of them is used.
        let there: BTreeMap<String, u64> = stocks
            .generations()
            .map_err(unusable)?
            .into_iter()
            .collect();
        let mut makings = BTreeMap::new();
        for (generation, passed) in passed {
            if let Some(own) = here.get(generation) {
                let page = page_of(kind);
                let cells = *own.min(passed) / page * page;
                if cells > 0 {
                    let kept = stocks.keep_unfinished(generation, cells);
                    kept.map_err(unusable)?;
                    self.kept(name, cells);
                    makings.insert(generation.clone(), cells);
                }
            } else if let Some(cells) = there.get(generation) {
                makings.insert(generation.clone(), *cells);
            }
        }
        Ok(Reply::Finished { makings })
    }

    fn kept(&self, party: &str, cells: u64) {
        self.usage.makes(party, cells, Duration::ZERO);
        tracing::info!(%party, cells, "what was left of a making of stock is kept");
    }
}
