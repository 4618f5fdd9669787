//! The run that makes stock, what is kept of it, and what has become of all stock since the last look.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use veil_engine::Data;
use veil_runtime::{Neighbours, Part};
use veil_store::stock::{ListedState, stocks};

use super::super::ServiceState;
use super::{Agreed, Counted, LOOK, MEET};
use crate::stock::agree;

/// Makes stock, keeps what is to be kept, and writes down what it took.
pub(super) fn make(shared: &ServiceState, agreed: &Agreed) {
    let Agreed { party, cells, .. } = agreed;
    let (name, kind) = (&party.name, agreed.stocks.kind());
    let start = Instant::now();
    tracing::info!(party = %name, cells, of = kind.items(), asked = !agreed.asks, "making stock");
    let ran = run(shared, agreed);
    let took = start.elapsed();
    let kept = ran.as_ref().map_or(0, |(kept, _)| *kept);
    shared.usage.makes(name, kept, took);
    let seconds = took.as_secs_f64();
    let stopped = agreed.place.stop.load(Ordering::Relaxed);
    let why = match ran {
        Ok((kept, None)) => {
            tracing::info!(party = %name, kept, seconds, "stock is made");
            None
        }
        Ok((kept, Some(why))) => {
            tracing::info!(party = %name, kept, of = cells, seconds, %why, "a making of stock ended early");
            Some(why)
        }
        Err(why) => {
            tracing::warn!(party = %name, seconds, %why, "no stock was made");
            Some(why)
        }
    };
    shared.refills.with((name, kind), |party| {
        if why.is_none() || kept > 0 || stopped {
            (party.failures, party.refusals) = (0, 0);
            party.again = why.map(|_| Instant::now() + LOOK);
        } else {
            party.pauses(party.failures);
            party.failures += 1;
        }
        party.short = None;
    });
}

/// Meets the other party and runs: the cells that are kept, and why they are not all.
fn run(shared: &ServiceState, agreed: &Agreed) -> Result<(u64, Option<String>), String> {
    let Agreed {
        party, plan, me, ..
    } = agreed;
    let (identity, members) = (shared.home.identity(), shared.home.members());
    let neighbours = Neighbours::find(plan, *me, &*members).map_err(|error| error.to_string())?;
    let part = Part {
        plan,
        me: *me,
        identity: &identity,
        port: Some(shared.port()),
        neighbours: &neighbours,
        link: shared.options.link,
        net: shared.options.net,
        stop: &agreed.place.stop,
    };
    let over = |why: String| {
        shared.refills.making.is_over();
        why
    };
    let connections = part.meet(MEET).map_err(|error| over(error.to_string()))?;
    let made = Arc::new(agreed.stocks.making(agreed.cells, Some(agreed.disk)));
    let data = Data {
        makes: Some(Arc::clone(&made) as Arc<dyn veil_job::StockSink>),
        ..Data::default()
    };
    let wrap = |link| shared.metrics.count(link);
    let ran = part.run(
        connections,
        &shared.engine(),
        Arc::from([data]),
        &wrap,
        &|_| (),
    );
    let Err(abort) = ran else {
        shared.refills.making.is_over();
        return Ok((agreed.cells, None));
    };
    shared.metrics.aborted(&abort);
    if abort.is_cheat() {
        return Err(over(abort.to_string()));
    }
    let kept = if agreed.asks {
        agree(&identity, party, plan.hash, &made).map_err(|why| {
            made.stay();
            format!("{abort}; how much is kept is asked again: {why}")
        })?
    } else {
        shared.refills.making.ends(&made)
    };
    if kept == 0 {
        // The next refill asks again.
        made.stay();
    }
    Ok((kept, Some(abort.to_string())))
}

/// Counts what has become of the stock since the last look, if anything has.
pub(in crate::service) fn count(shared: &ServiceState) {
    let folder: PathBuf = shared.home.stock_folder();
    let Ok(changed) = std::fs::metadata(&folder).and_then(|of| of.modified()) else {
        // All that comes is new.
        let mut state = shared.refills.lock();
        state.counted.known.get_or_insert_default();
        return;
    };
    if shared.refills.lock().counted.changed == Some(changed) {
        return;
    }
    let key = shared.home.stock_key();
    let Some(listed) = key.ok().and_then(|key| stocks(&folder, &key).ok()) else {
        return;
    };
    let there = listed.into_iter().filter_map(|of| match of.state {
        ListedState::There { cells, .. } => Some((of.generation, cells)),
        _ => None,
    });
    let now: BTreeMap<String, [u64; 2]> = there.collect();
    let left = |[made, used]: [u64; 2]| made.saturating_sub(used);
    let mut state = shared.refills.lock();
    let metrics = &shared.metrics;
    metrics.set_stock(now.values().map(|cells| left(*cells)).sum());
    if let Some(before) = &state.counted.known {
        for (name, [made, used]) in &now {
            match before.get(name) {
                None => metrics.stock([*made, *used, 0]),
                Some([_, known]) => metrics.stock([0, used.saturating_sub(*known), 0]),
            }
        }
        let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
        for (_, cells) in gone {
            metrics.stock([0, 0, left(*cells)]);
        }
    }
    state.counted = Counted {
        changed: Some(changed),
        known: Some(now),
    };
}
