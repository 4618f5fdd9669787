//! What a service asks of another one, and answers: within the limits that its operator has written down.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use veil_job::{StockError, StockKind};
use veil_link::tls::Fingerprint;
use veil_protocol::{Options, Plan, PlanError, Stock, items_of_row, making_of};
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};
use veil_store::stock::Stocks;

use super::super::{News, ServiceState};
use super::{Agreed, MEET, Place, unfinished};
use crate::control::{self, Reply, Request};
use crate::jobs::State as Job;
use crate::log::Event;
use crate::members::Member;
use crate::settings::StockWith;
use crate::stock::kind_of;
use crate::time::Time;

/// What may be made with a party now.
pub(super) struct May {
    pub(super) cells: u64,
    /// Cells that are left.
    pub(super) left: u64,
    /// Time of the day that is left.
    pub(super) time: Duration,
    stocks: Stocks,
}

/// Why nothing is made, in words for the other party, which say nothing of this machine.
pub(super) type No = String;

pub(super) fn unusable(error: &StockError) -> No {
    match error {
        StockError::Failures { .. } | StockError::Busy => error.to_string(),
        error => {
            tracing::error!(%error, "stock cannot be made");
            "this party's stock cannot be used; its operator reads why in its log lines".to_owned()
        }
    }
}

/// What there is to be made with a party: so many items of a kind.
pub(super) type Items = (StockKind, u64);

/// The plan of a making between a garbler and an evaluator.
fn plan_of(
    [own, other]: [&str; 2],
    with: &StockWith,
    (kind, cells): Items,
) -> Result<(Passes, Peer), PlanError> {
    let [own, other] = [own, other].map(str::to_owned);
    let garbles = with.garbles(&own, &other);
    let parties = if garbles { [own, other] } else { [other, own] };
    let job = making_of(kind, parties, with.statistical, cells);
    let options = Options {
        lanes: 1,
        chunk_rows: None,
    };
    let plan = Plan::stocked(Arc::new(job), options, Stock::Made)?;
    let me = PartyId::TWO[usize::from(!garbles)];
    Ok((plan.into(), Peer::Party(me)))
}

/// Why nothing comes of a question.
pub(super) enum Unasked {
    /// The other party refuses.
    Refused(String),
    /// It gave no answer, or this party could not ask.
    Failed(String),
}

/// What the other service answers, if it does not refuse.
pub(super) fn answered(
    shared: &ServiceState,
    member: &Member,
    request: &Request,
) -> Result<Reply, Unasked> {
    let until = Instant::now() + MEET;
    match control::ask(&shared.home.identity(), member, request, until) {
        Ok(Reply::Refused { why }) => {
            let name = &member.name;
            Err(Unasked::Refused(format!("`{name}` refuses: {why}")))
        }
        Ok(reply) => Ok(reply),
        Err(error) => Err(Unasked::Failed(error.to_string())),
    }
}

/// The other service's answer is none to what it was asked.
pub(super) fn senseless(name: &str) -> Unasked {
    Unasked::Failed(format!("`{name}` gave an answer that makes no sense"))
}

impl From<String> for Unasked {
    fn from(why: String) -> Self {
        Unasked::Failed(why)
    }
}

/// Asks the other service, which may refuse: it is asked for half as much then. Nothing where cells of former makings suffice.
pub(super) fn ask(
    shared: &ServiceState,
    name: &str,
    with: &StockWith,
    may: May,
    place: Place,
) -> Result<Option<Agreed>, Unasked> {
    let kind = may.stocks.kind();
    let settings = shared.home.settings();
    let members = shared.home.members();
    let member = members.by_name(name);
    let member = member.ok_or_else(|| "it is no member here".to_owned())?;
    // What was kept may be all that there is room or time for.
    let may = if unfinished::settle(shared, member, &may.stocks)? {
        shared.may_make((name, kind), with, None).ok()
    } else {
        Some(may)
    };
    let Some(may) = may.filter(|may| may.cells > 0) else {
        return Ok(None);
    };
    let halves = shared
        .refills
        .with((name, kind), |party| party.refusals.min(32));
    let batch = items_of_row(kind);
    let cells = ((may.cells >> halves) / batch * batch).max(batch);
    let planned = plan_of([&settings.name, name], with, (kind, cells));
    let (plan, me) = planned.map_err(|error| error.to_string())?;
    let stocks = may.stocks;
    let unusable = |error: StockError| unusable(&error);
    stocks.make_room().map_err(unusable)?;
    let request = Request::Refill {
        plan: Event::plan(plan.hash),
        cells,
        transfers: kind == StockKind::Transfers,
        statistical: with.statistical.bits(),
        garbles: with.garbles(&settings.name, name),
        generations: names(&stocks)?,
    };
    let Reply::Refills { generations } = answered(shared, member, &request)? else {
        return Err(senseless(name));
    };
    let lost = stocks.burn_unnamed(&generations).map_err(unusable)?;
    say_lost(name, lost);
    Ok(Some(Agreed {
        party: member.clone(),
        plan,
        me,
        stocks,
        cells,
        disk: with.disk,
        asks: true,
        place,
    }))
}

fn names(stocks: &Stocks) -> Result<Vec<String>, No> {
    let generations = stocks.generations().map_err(|error| unusable(&error))?;
    Ok(generations.into_iter().map(|(name, _)| name).collect())
}

fn say_lost(party: &str, cells: u64) {
    if cells > 0 {
        tracing::warn!(%party, cells, "stock was burnt: the other party has no other half of it");
    }
}

impl ServiceState {
    /// What may be made with a party now, by this party's settings and what was made before. Where the other party has named its generations, the others
    /// count as burnt.
    pub(super) fn may_make(
        &self,
        (name, kind): (&str, StockKind),
        with: &StockWith,
        named: Option<&[String]>,
    ) -> Result<May, No> {
        let members = self.home.members();
        let member = members
            .by_name(name)
            .ok_or("the other party is no member here")?;
        let garbles = with.garbles(&self.home.settings().name, name);
        let hour = Time::now().seconds().rem_euclid(86400) / 3600;
        if !with.is_open_at(hour as u8) {
            let [from, to] = with.hours.unwrap_or_default();
            return Err(format!(
                "this party makes stock from {from} to {to} o'clock, in UTC"
            ));
        }
        let unusable = |error: StockError| unusable(&error);
        let key = *member.fingerprint.as_bytes();
        let stocks = self.home.stocks(key, garbles, (kind, with.statistical));
        let stocks = stocks.map_err(unusable)?;
        stocks.may_make().map_err(unusable)?;
        let made = self.usage.made(name);
        let minutes = with.minutes_per_day;
        let time = Duration::from_secs(60 * minutes).as_secs_f64() - made.seconds;
        if time < 1.0 {
            return Err(format!(
                "this party makes stock for {minutes} minutes a day, and they are over"
            ));
        }
        let there = stocks.generations().map_err(unusable)?.into_iter();
        let counts = |name: &String| named.is_none_or(|named| named.contains(name));
        let left: u64 = there
            .filter_map(|(name, left)| counts(&name).then_some(left))
            .sum();
        let batch = items_of_row(kind);
        let cells = with.target_of(kind).saturating_sub(left);
        let cells = cells.div_ceil(batch) * batch;
        let of_day = with.cells_per_day.saturating_sub(made.cells) / batch * batch;
        let of_disk = stocks.room(with.disk, named).map_err(unusable)? / batch * batch;
        Ok(May {
            cells: cells.min(of_day).min(of_disk),
            left,
            time: Duration::from_secs_f64(time),
            stocks,
        })
    }

    /// What the settings say of making stock of a kind with a party.
    pub(super) fn makes_with(&self, name: &str, kind: StockKind) -> Result<StockWith, No> {
        let settings = self.home.settings();
        let with = settings.stock.get(name);
        let with = with.filter(|with| with.target_of(kind) > 0);
        let (what, field) = match kind {
            StockKind::Cells => ("stock", "target"),
            StockKind::Transfers => ("stock of transfers", "transfers"),
        };
        with.copied().ok_or_else(|| {
            format!(
                "this party makes no {what} with `{name}`: its operator sets `{field}` under [stock.{name}] in veil.toml"
            )
        })
    }

    /// Answers a party that asks for a refill: comes, within this party's limits, or says why not.
    pub(in crate::service) fn refills(
        &self,
        member: &Member,
        request: Request,
    ) -> Result<Reply, No> {
        let Request::Refill {
            plan,
            cells,
            transfers,
            statistical,
            garbles,
            generations,
        } = request
        else {
            return Err("this is no question for stock".to_owned());
        };
        let (name, kind) = (&member.name, kind_of(transfers));
        let settings = self.home.settings();
        let with = self.makes_with(name, kind)?;
        if with.garbles(&settings.name, name) == garbles {
            let who = if garbles { "both" } else { "neither" };
            return Err(format!(
                "{who} of the two would garble: one sets `garbles = true` under [stock.NAME] in veil.toml, the other one `garbles = false`"
            ));
        }
        if kind == StockKind::Cells && statistical != with.statistical.bits() {
            return Err(format!(
                "this party makes stock with `{name}` at `statistical = {}`, and it asks for {statistical}",
                with.statistical.bits()
            ));
        }
        if self.stopping.load(Ordering::Relaxed) || !self.jobs.in_state(Job::active).is_empty() {
            return Err("jobs come first at this party: ask again when it is idle".to_owned());
        }
        if let Some(rest) = self.refills.with((name, kind), |party| party.rests()) {
            return Err(format!(
                "this party makes nothing with `{name}` for {} s more: the last making failed",
                rest.as_secs() + 1
            ));
        }
        let may = self.may_make((name, kind), &with, Some(&generations))?;
        if cells == 0 || !cells.is_multiple_of(items_of_row(kind)) || cells > may.cells {
            return Err(format!(
                "`{name}` asks for {cells} {}, and this party makes at most {} with it now",
                kind.items(),
                may.cells
            ));
        }
        let planned = plan_of([&settings.name, name], &with, (kind, cells));
        let (own, me) = planned.map_err(|error| error.to_string())?;
        if Event::plan(own.hash) != plan {
            return Err("the two plan it differently: run the same release on both sides".into());
        }
        let taken = "stock is made at this party at this moment: ask again";
        let place = self.refills.reserve(name, may.time).ok_or(taken)?;
        let stocks = may.stocks;
        let lost = stocks
            .burn_unnamed(&generations)
            .map_err(|error| unusable(&error))?;
        say_lost(name, lost);
        let generations = names(&stocks)?;
        self.refills.making.begins(own.hash, member.fingerprint);
        let agreed = Agreed {
            party: member.clone(),
            plan: own,
            me,
            stocks,
            cells,
            disk: with.disk,
            asks: false,
            place,
        };
        let news = News::Refill(Box::new(agreed));
        self.events
            .try_send(news)
            .map_err(|_| "too much happens at this party at this moment: ask again")?;
        Ok(Reply::Refills { generations })
    }

    /// Answers a party that asks how much of a making is kept.
    pub(in crate::service) fn keeps(&self, plan: &str, cells: u64, by: Fingerprint) -> Reply {
        self.refills.making.answer(plan, cells, by)
    }
}
