//! Stock that services make in idle time, where both allow it.
//!
//! The service that is short of stock asks the other one. That one looks at its own settings, jobs, record of the day and stock, and comes or says why not. Both
//! then run, and yield to jobs: a making stops at the end of a batch, and what has passed at both is kept ([`crate::stock`]). Nothing that a party asks for is made beyond what the
//! other one's operator has written down, and a making that fails costs it the next ones for a while.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use veil_engine::Data;
use veil_job::StockError;
use veil_link::tls::Fingerprint;
use veil_protocol::ag::stock_of;
use veil_protocol::{Options, Plan, PlanError, Stock};
use veil_runtime::{Neighbours, Part, Passes};
use veil_session::{PartyId, Peer};
use veil_store::stock::{ListedState, Stocks, stocks};

use super::{News, ServiceState};
use crate::control::{self, Reply, Request};
use crate::jobs::State as Job;
use crate::log::Event;
use crate::members::Member;
use crate::settings::{BATCH, StockWith};
use crate::stock::{Making, agree};
use crate::time::Time;

/// How often the stock is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long the other service has to answer, and then to turn up.
const MEET: Duration = Duration::from_secs(20);

/// For so long the evaluator leaves it to the garbler to ask: two that ask at once refuse each other.
const LEAVES: Duration = Duration::from_secs(10);

/// After the first failure or refusal nothing is asked for so long; twice as long after each one that follows.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(3600);

/// Stock that is made here.
#[derive(Default)]
pub(super) struct Refills {
    /// The end of a making that the other service asked for.
    pub(super) making: Making,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: Option<UnderWay>,
    parties: BTreeMap<String, Party>,
    looked: Option<Instant>,
    counted: Counted,
}

/// A making that goes on.
struct UnderWay {
    party: String,
    stop: Arc<AtomicBool>,
    /// When the time of the day for it is over.
    until: Instant,
}

/// What is known of another party.
#[derive(Default)]
struct Party {
    /// Since when there is too little.
    short: Option<Instant>,
    /// Nothing is made before.
    again: Option<Instant>,
    /// Makings with it that have failed, since one has succeeded.
    failures: u32,
    /// Questions that it has refused, since it has taken one.
    refusals: u32,
    /// Questions to which it gave no answer, since it has given one.
    unanswered: u32,
}

impl Party {
    /// Nothing follows for a while: longer after each of so many.
    fn pauses(&mut self, before: u32) {
        let pause = PAUSE.saturating_mul(1 << before.min(20)).min(LONGEST);
        self.again = Some(Instant::now() + pause);
    }

    /// For how long nothing is made with it.
    fn rests(&self) -> Option<Duration> {
        let left = self.again?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// What the metrics have counted: cells made and used of each generation.
#[derive(Default)]
struct Counted {
    changed: Option<SystemTime>,
    known: Option<BTreeMap<String, [u64; 2]>>,
}

/// A making to which both services have agreed.
pub(super) struct Agreed {
    party: Member,
    plan: Passes,
    me: Peer,
    stocks: Stocks,
    cells: u64,
    disk: u64,
    /// Whether this service has asked.
    asks: bool,
    stop: Arc<AtomicBool>,
}

impl Refills {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what goes on at the next batch.
    pub(super) fn stop(&self) {
        if let Some(under_way) = &self.lock().under_way {
            under_way.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the only place, for the time that is left of the day; nothing if it is taken.
    fn reserve(&self, party: &str, left: Duration) -> Option<Arc<AtomicBool>> {
        let mut state = self.lock();
        if state.under_way.is_some() {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        state.under_way = Some(UnderWay {
            party: party.to_owned(),
            stop: Arc::clone(&stop),
            until: Instant::now() + left,
        });
        Some(stop)
    }

    fn free(&self) {
        self.lock().under_way = None;
    }

    fn with<T>(&self, party: &str, with: impl FnOnce(&mut Party) -> T) -> T {
        with(self.lock().parties.entry(party.to_owned()).or_default())
    }
}

/// What may be made with a party now.
struct May {
    cells: u64,
    /// Cells that are left.
    left: u64,
    /// Time of the day that is left.
    time: Duration,
    stocks: Stocks,
}

/// Why nothing is made, in words for the other party, which say nothing of this machine.
type No = String;

fn unusable(error: &StockError) -> No {
    match error {
        StockError::Failures { .. } | StockError::Busy => error.to_string(),
        error => {
            tracing::error!(%error, "stock cannot be made");
            "this party's stock cannot be used; its operator reads why in its log lines".to_owned()
        }
    }
}

/// Looks whether to make stock, or to stop: a thread that makes some, if it is to begin.
pub(super) fn look(shared: &Arc<ServiceState>) -> Option<JoinHandle<()>> {
    let refills = &shared.refills;
    let busy = !shared.jobs.in_state(Job::active).is_empty();
    {
        let mut state = refills.lock();
        if let Some(under_way) = &state.under_way {
            let over = Instant::now() >= under_way.until;
            if (busy || over) && !under_way.stop.swap(true, Ordering::Relaxed) {
                let party = &under_way.party;
                tracing::info!(%party, busy, "making stock stops at the next batch");
            }
            return None;
        }
        if state.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        state.looked = Some(Instant::now());
    }
    count(shared);
    if busy || shared.stopping.load(Ordering::Relaxed) {
        return None;
    }
    let settings = shared.home.settings();
    let wants = settings.stock.iter().filter(|(_, with)| with.target > 0);
    for (name, with) in wants {
        if refills.with(name, |party| party.rests().is_some()) {
            continue;
        }
        let Ok(may) = shared.may_make(name, with) else {
            continue;
        };
        let short = may.left <= with.target / 2 && may.cells > 0;
        let since = refills.with(name, |party| {
            party.short = party.short.filter(|_| short).or(short.then(Instant::now));
            party.short
        });
        let waits = if with.garbles(&settings.name, name) {
            Duration::ZERO
        } else {
            LEAVES
        };
        if since.is_none_or(|since| since.elapsed() < waits) {
            continue;
        }
        let stop = refills.reserve(name, may.time)?;
        let (beside, name, with) = (Arc::clone(shared), name.clone(), *with);
        let asking = thread::Builder::new().name("stock".to_owned());
        let asking = asking.spawn(move || {
            let _free = Frees(&beside.refills);
            match ask(&beside, &name, &with, may, stop) {
                Ok(agreed) => make(&beside, &agreed),
                Err(unasked) => beside.refills.with(&name, |party| match unasked {
                    Unasked::Refused(why) => {
                        tracing::info!(party = %name, %why, "no stock is made");
                        party.pauses(party.refusals.min(6));
                        (party.refusals, party.unanswered) = (party.refusals + 1, 0);
                    }
                    Unasked::Failed(why) => {
                        tracing::info!(party = %name, %why, "no stock is made: the other party cannot be asked");
                        party.pauses(party.unanswered.min(6));
                        party.unanswered += 1;
                    }
                }),
            }
        });
        return match asking {
            Ok(thread) => Some(thread),
            Err(error) => {
                refills.free();
                tracing::error!(%error, "no thread can be started");
                None
            }
        };
    }
    None
}

/// Makes stock to which this service has agreed, in a thread of its own.
pub(super) fn begin(shared: &Arc<ServiceState>, agreed: Agreed) -> Option<JoinHandle<()>> {
    let beside = Arc::clone(shared);
    let making = thread::Builder::new().name("stock".to_owned());
    let making = making.spawn(move || {
        let _free = Frees(&beside.refills);
        make(&beside, &agreed);
    });
    making
        .inspect_err(|error| {
            shared.refills.free();
            tracing::error!(%error, "no thread can be started");
        })
        .ok()
}

/// The place is free when this is dropped.
struct Frees<'a>(&'a Refills);

impl Drop for Frees<'_> {
    fn drop(&mut self) {
        self.0.free();
    }
}

/// The plan of a making between a garbler and an evaluator.
fn plan_of(
    own: &str,
    other: &str,
    with: &StockWith,
    cells: u64,
) -> Result<(Passes, Peer), PlanError> {
    let [own, other] = [own, other].map(str::to_owned);
    let garbles = with.garbles(&own, &other);
    let parties = if garbles { [own, other] } else { [other, own] };
    let job = stock_of(parties, with.statistical, cells);
    let options = Options {
        lanes: 1,
        chunk_rows: None,
    };
    let plan = Plan::stocked(Arc::new(job), options, Stock::Made)?;
    let me = PartyId::TWO[usize::from(!garbles)];
    Ok((plan.into(), Peer::Party(me)))
}

/// Why nothing comes of a question.
enum Unasked {
    /// The other party refuses.
    Refused(String),
    /// It gave no answer, or this party could not ask.
    Failed(String),
}

impl From<String> for Unasked {
    fn from(why: String) -> Self {
        Unasked::Failed(why)
    }
}

/// Asks the other service, which may refuse: it is asked for half as much then.
fn ask(
    shared: &ServiceState,
    name: &str,
    with: &StockWith,
    may: May,
    stop: Arc<AtomicBool>,
) -> Result<Agreed, Unasked> {
    let settings = shared.home.settings();
    let members = shared.home.members();
    let member = members.by_name(name);
    let member = member.ok_or_else(|| "it is no member here".to_owned())?;
    let halves = shared.refills.with(name, |party| party.refusals.min(32));
    let cells = ((may.cells >> halves) / BATCH * BATCH).max(BATCH);
    let planned = plan_of(&settings.name, name, with, cells);
    let (plan, me) = planned.map_err(|error| error.to_string())?;
    let stocks = may.stocks;
    let unusable = |error: StockError| unusable(&error);
    stocks.make_room().map_err(unusable)?;
    let request = Request::Refill {
        plan: Event::plan(plan.hash),
        cells,
        statistical: with.statistical.bits(),
        garbles: with.garbles(&settings.name, name),
        generations: names(&stocks)?,
    };
    let until = Instant::now() + MEET;
    let generations = match control::ask(&shared.home.identity(), member, &request, until) {
        Ok(Reply::Refills { generations }) => generations,
        Ok(Reply::Refused { why }) => {
            return Err(Unasked::Refused(format!("`{name}` refuses: {why}")));
        }
        Ok(_) => {
            let why = format!("`{name}` gave an answer that makes no sense");
            return Err(Unasked::Failed(why));
        }
        Err(error) => return Err(Unasked::Failed(error.to_string())),
    };
    let lost = stocks.burn_unnamed(&generations).map_err(unusable)?;
    say_lost(name, lost);
    Ok(Agreed {
        party: member.clone(),
        plan,
        me,
        stocks,
        cells,
        disk: with.disk,
        asks: true,
        stop,
    })
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
    /// What may be made with a party now, by this party's settings and what was made before.
    fn may_make(&self, name: &str, with: &StockWith) -> Result<May, No> {
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
        let stocks = self.home.stocks(key, garbles, with.statistical);
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
        let left: u64 = stocks.left().map_err(unusable)?.iter().sum();
        let cells = with.target.saturating_sub(left);
        let cells = cells.div_ceil(BATCH) * BATCH;
        let of_day = with.cells_per_day.saturating_sub(made.cells) / BATCH * BATCH;
        let of_disk = stocks.room(with.disk).map_err(unusable)? / BATCH * BATCH;
        Ok(May {
            cells: cells.min(of_day).min(of_disk),
            left,
            time: Duration::from_secs_f64(time),
            stocks,
        })
    }

    /// Answers a party that asks for a refill: comes, within this party's limits, or says why not.
    pub(super) fn refills(&self, member: &Member, request: Request) -> Result<Reply, No> {
        let Request::Refill {
            plan,
            cells,
            statistical,
            garbles,
            generations,
        } = request
        else {
            return Err("this is no question for stock".to_owned());
        };
        let name = &member.name;
        let settings = self.home.settings();
        let with = settings.stock.get(name).filter(|with| with.target > 0);
        let with = with.ok_or_else(|| {
            format!(
                "this party makes no stock with `{name}`: its operator sets `target` under [stock.{name}] in veil.toml"
            )
        })?;
        if with.garbles(&settings.name, name) == garbles {
            let who = if garbles { "both" } else { "neither" };
            return Err(format!(
                "{who} of the two would garble: one sets `garbles = true` under [stock.NAME] in veil.toml, the other one `garbles = false`"
            ));
        }
        if statistical != with.statistical.bits() {
            return Err(format!(
                "this party makes stock with `{name}` at `statistical = {}`, and it asks for {statistical}",
                with.statistical.bits()
            ));
        }
        if self.stopping.load(Ordering::Relaxed) || !self.jobs.in_state(Job::active).is_empty() {
            return Err("jobs come first at this party: ask again when it is idle".to_owned());
        }
        if let Some(rest) = self.refills.with(name, |party| party.rests()) {
            return Err(format!(
                "this party makes nothing with `{name}` for {} s more: the last making failed",
                rest.as_secs() + 1
            ));
        }
        let may = self.may_make(name, with)?;
        if cells == 0 || !cells.is_multiple_of(BATCH) || cells > may.cells {
            return Err(format!(
                "`{name}` asks for {cells} cells, and this party makes at most {} with it now",
                may.cells
            ));
        }
        let planned = plan_of(&settings.name, name, with, cells);
        let (own, me) = planned.map_err(|error| error.to_string())?;
        if Event::plan(own.hash) != plan {
            return Err("the two plan it differently: run the same release on both sides".into());
        }
        let taken = "stock is made at this party at this moment: ask again";
        let stop = self.refills.reserve(name, may.time).ok_or(taken)?;
        let free = Frees(&self.refills);
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
            stop,
        };
        let news = News::Refill(Box::new(agreed));
        self.events
            .try_send(news)
            .map_err(|_| "too much happens at this party at this moment: ask again")?;
        // The thread that makes it frees the place.
        std::mem::forget(free);
        Ok(Reply::Refills { generations })
    }

    /// Answers a party that asks how much of a making is kept.
    pub(super) fn keeps(&self, plan: &str, cells: u64, by: Fingerprint) -> Reply {
        self.refills.making.answer(plan, cells, by)
    }
}

/// Makes stock, keeps what is to be kept, and writes down what it took.
fn make(shared: &ServiceState, agreed: &Agreed) {
    let Agreed { party, cells, .. } = agreed;
    let name = &party.name;
    let start = Instant::now();
    tracing::info!(party = %name, cells, asked = !agreed.asks, "making stock");
    let ran = run(shared, agreed);
    let took = start.elapsed();
    let kept = ran.as_ref().map_or(0, |(kept, _)| *kept);
    shared.usage.makes(name, kept, took);
    let seconds = took.as_secs_f64();
    let stopped = agreed.stop.load(Ordering::Relaxed);
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
    shared.refills.with(name, |party| {
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
        stop: &agreed.stop,
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
    let abort = match ran {
        Ok(_) => {
            shared.refills.making.is_over();
            return Ok((agreed.cells, None));
        }
        Err(abort) => abort,
    };
    shared.metrics.aborted(&abort);
    if abort.is_cheat() {
        return Err(over(abort.to_string()));
    }
    let kept = if agreed.asks {
        agree(&identity, party, plan.hash, &made)?
    } else {
        shared.refills.making.ends(&made)
    };
    Ok((kept, Some(abort.to_string())))
}

/// Counts what has become of the stock since the last look, if anything has.
fn count(shared: &ServiceState) {
    let folder: PathBuf = shared.home.stock_folder();
    let Ok(changed) = std::fs::metadata(&folder).and_then(|of| of.modified()) else {
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
