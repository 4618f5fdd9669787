//! All participants of a job in one process, under conditions that a test chooses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use veil_device::{Device, Fault, Reference};
use veil_engine::local::{Conditions, rehearse};
use veil_engine::{
    Abort, Binding, Clock, Data, OtCache, Report, Settings, bounds, participants, party,
};
use veil_job::{DataError, JobSpec, Slice, Source, StockSink, StockSource};
use veil_link::memory::{self, MemoryLink};
use veil_link::shape::{Profile, Shaped};
use veil_link::tap::{Fate, Tapped};
use veil_link::{Bounds, Link};
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan, Protocol, Stock};
use veil_session::Peer;

use crate::crash::{Crash, CrashingLink, Edge};
use crate::outcome::{Message, Outcome};
use crate::{Kinds, Seed, Seen, Shares, Values};

/// By what participants that are stepped in turn judge that nothing moves.
#[derive(Clone, Copy)]
enum Time {
    /// A lane's looks: each takes [`LOOK`]. Only peers on the same thread can be waited for, so a stall takes no time.
    Looks,
    /// The clock of the machine: something else computes, or carries messages.
    Machine,
}

/// The time that a lane's look takes by [`Time::Looks`].
const LOOK: Duration = Duration::from_millis(10);

/// A clock that a reader's looks move, from now on.
fn looks() -> Clock {
    let (start, looks) = (Instant::now(), AtomicU32::new(0));
    Arc::new(move || start + LOOK * looks.fetch_add(1, Ordering::Relaxed))
}

/// Decides about every message that any participant posts.
type Cheat = Arc<dyn Fn(&Message) -> Fate + Send + Sync>;

/// Makes the device of a participant.
type Devices = dyn Fn(Peer) -> Result<Box<dyn Device>, Fault> + Send + Sync;

/// A job and the conditions under which it runs. By default every participant is honest, devices are [`Reference`] with its ledger, links
/// are as fast as memory, and everything random follows from a new [`Seed`].
#[derive(Clone)]
pub struct World {
    plan: Arc<Plan>,
    seed: Seed,
    values: Option<Values>,
    timeout: Duration,
    window: usize,
    devices: Arc<Devices>,
    clock: Time,
    cheat: Option<Cheat>,
    crash: Option<(Peer, Crash, u64)>,
    profile: Option<Profile>,
    stored: Vec<Option<Arc<Shares>>>,
    orders: BTreeMap<Peer, Vec<Vec<[u8; 32]>>>,
    ot_caches: BTreeMap<Peer, Arc<OtCache>>,
    stock: BTreeMap<Peer, Arc<dyn StockSource>>,
    makes: BTreeMap<Peer, Arc<dyn StockSink>>,
}

impl World {
    /// The job, planned by default.
    ///
    /// # Panics
    /// If there is no plan for it.
    pub fn new(job: JobSpec) -> Self {
        Self::planned(job, Options::default(), Stock::Fresh)
    }

    /// The job, planned in chunks of `chunk_rows` rows on `lanes` lanes.
    ///
    /// # Panics
    /// If there is no plan for it.
    pub fn in_chunks(job: JobSpec, chunk_rows: u32, lanes: u16) -> Self {
        Self::planned(
            job,
            Options {
                lanes,
                chunk_rows: Some(chunk_rows),
            },
            Stock::Fresh,
        )
    }

    /// As [`World::in_chunks`], with products from a stock, or for one: see [`World::uses`] and [`World::makes`].
    ///
    /// # Panics
    /// If there is no plan for it.
    pub fn stocked(job: JobSpec, (chunk_rows, lanes): (u32, u16), stock: Stock) -> Self {
        let options = Options {
            lanes,
            chunk_rows: Some(chunk_rows),
        };
        Self::planned(job, options, stock)
    }

    fn planned(job: JobSpec, options: Options, stock: Stock) -> Self {
        let plan = Plan::stocked(Arc::new(job), options, stock);
        World {
            plan: Arc::new(plan.expect("the test's job has a plan")),
            seed: Seed::any(),
            values: None,
            timeout: Duration::from_secs(20),
            window: 2,
            devices: Arc::new(|_| Ok(Box::new(Reference::default()))),
            clock: Time::Looks,
            cheat: None,
            crash: None,
            profile: None,
            stored: Vec::new(),
            orders: BTreeMap::new(),
            ot_caches: BTreeMap::new(),
            stock: BTreeMap::new(),
            makes: BTreeMap::new(),
        }
    }

    /// Batches by silent transfers of these parameters.
    #[must_use]
    pub fn expanding(self, set: veil_device::Lpn) -> Self {
        let plan = Plan::clone(&self.plan).expanding(set);
        World {
            plan: Arc::new(plan),
            ..self
        }
    }

    /// Everything random follows from `seed`.
    #[must_use]
    pub fn seed(self, seed: Seed) -> Self {
        World { seed, ..self }
    }

    /// These inputs; random ones if none are given.
    #[must_use]
    pub fn values(self, values: Values) -> Self {
        World {
            values: Some(values),
            ..self
        }
    }

    /// The shares that the parties load: a run that loads shares needs a store of every party.
    #[must_use]
    pub fn stored(self, stored: Vec<Arc<Shares>>) -> Self {
        World {
            stored: stored.into_iter().map(Some).collect(),
            ..self
        }
    }

    /// The shares that party `party` loads; nothing if it has no store.
    #[must_use]
    pub fn stored_at(mut self, party: u8, stored: Option<Arc<Shares>>) -> Self {
        self.stored[usize::from(party)] = stored;
        self
    }

    /// The digests of the key column that `holder` has, by block.
    #[must_use]
    pub fn order(mut self, holder: Peer, digests: Vec<Vec<[u8; 32]>>) -> Self {
        self.orders.insert(holder, digests);
        self
    }

    /// Where `who` keeps oblivious transfers between runs.
    #[must_use]
    pub fn with_ot_cache(mut self, who: Peer, cache: &Arc<OtCache>) -> Self {
        self.ot_caches.insert(who, Arc::clone(cache));
        self
    }

    /// The stock that `who` takes from: in one run.
    #[must_use]
    pub fn uses(mut self, who: Peer, stock: Arc<dyn StockSource>) -> Self {
        self.stock.insert(who, stock);
        self
    }

    /// Where the stock goes that `who` makes: in one run.
    #[must_use]
    pub fn makes(mut self, who: Peer, stock: Arc<dyn StockSink>) -> Self {
        self.makes.insert(who, stock);
        self
    }

    /// Time without progress after which participants give up.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        World { timeout, ..self }
    }

    /// Chunks in flight per lane.
    #[must_use]
    pub fn window(self, window: usize) -> Self {
        World { window, ..self }
    }

    /// The devices of each participant.
    #[must_use]
    pub fn devices(
        self,
        devices: impl Fn(Peer) -> Box<dyn Device> + Send + Sync + 'static,
    ) -> Self {
        self.devices_or_faults(move |peer| Ok(devices(peer)))
    }

    /// The devices of each participant, or why one does not start.
    #[must_use]
    pub fn devices_or_faults(
        self,
        devices: impl Fn(Peer) -> Result<Box<dyn Device>, Fault> + Send + Sync + 'static,
    ) -> Self {
        World {
            devices: Arc::new(devices),
            clock: Time::Machine,
            ..self
        }
    }

    /// `cheat` decides about every message that any participant posts.
    #[must_use]
    pub fn cheat(self, cheat: impl Fn(&Message) -> Fate + Send + Sync + 'static) -> Self {
        World {
            cheat: Some(Arc::new(cheat)),
            ..self
        }
    }

    /// `who` leaves the run in the manner of `crash` when it posts more than `after` messages.
    #[must_use]
    pub fn crash(self, who: Peer, crash: Crash, after: u64) -> Self {
        World {
            crash: Some((who, crash, after)),
            ..self
        }
    }

    /// Links that are as slow as `profile` says.
    #[must_use]
    pub fn net(self, profile: Profile) -> Self {
        World {
            profile: Some(profile),
            clock: Time::Machine,
            ..self
        }
    }

    /// The plan that all participants run.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Runs all participants as a run in one process does, stepped in turn, with randomness from the seed.
    pub fn run(&self) -> Outcome {
        let stage = Stage::new(self);
        let start = Instant::now();
        let settings = |peer| match self.clock {
            // A lane may wait for another one, which has a thread of its own.
            Time::Looks if self.plan.lanes == 1 => Settings {
                clock: looks(),
                ..self.settings(peer)
            },
            Time::Looks | Time::Machine => self.settings(peer),
        };
        let wrap = |peer, _: u16, link: MemoryLink| stage.wrap(peer, link);
        let conditions = Conditions {
            settings: &settings,
            wrap: &wrap,
            stop: None,
        };
        let mut numbers = BTreeMap::new();
        #[expect(clippy::disallowed_methods, reason = "this is the test randomness")]
        let ended = rehearse(
            &self.plan,
            |peer| stage.data(peer),
            &conditions,
            |peer, bytes| {
                let numbers = numbers
                    .entry(peer)
                    .or_insert_with(|| self.seed.numbers(&peer.to_string()));
                numbers.fill(bytes);
            },
        );
        let (reports, aborts) = match ended {
            Ok(reports) => (reports, BTreeMap::new()),
            Err(failure) => (BTreeMap::new(), failure.0),
        };
        stage.outcome(start.elapsed(), reports, aborts)
    }

    /// Runs every participant for itself, as a run over a network does: threads that wait, randomness of the operating system, and each
    /// one finishes when its own part is done.
    ///
    /// # Panics
    /// If a participant panics.
    pub fn run_apart(&self) -> Outcome {
        self.apart(|peer| veil_protocol::protocol(Arc::clone(&self.plan), peer))
    }

    /// As [`World::run_apart`], with another build of the protocol: what `build` makes of it.
    ///
    /// # Panics
    /// If a participant panics.
    pub fn run_built(&self, build: impl Fn(Replicated) -> Arc<dyn Protocol>) -> Outcome {
        self.apart(|peer| build(Replicated::new(Arc::clone(&self.plan), peer)))
    }

    fn apart(&self, protocol: impl Fn(Peer) -> Arc<dyn Protocol>) -> Outcome {
        let stage = Stage::new(self);
        let start = Instant::now();
        let peers = participants(&self.plan);
        let protocols: Vec<_> = peers.iter().map(|p| protocol(*p)).collect();
        let limits = protocols
            .iter()
            .map(|p| bounds(&self.plan, &**p))
            .reduce(Bounds::wider)
            .expect("there are parties");
        let mut links: Vec<Vec<Box<dyn Link>>> = peers.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.plan.lanes {
            for ((links, link), peer) in links
                .iter_mut()
                .zip(memory::mesh(&peers, limits))
                .zip(&peers)
            {
                links.push(stage.wrap(*peer, link));
            }
        }
        let (mut reports, mut aborts) = (BTreeMap::new(), BTreeMap::new());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for ((&peer, protocol), links) in peers.iter().zip(&protocols).zip(links) {
                let (stage, stop) = (&stage, &stop);
                let run = move || {
                    let rest = (stage.data(peer), Binding::default());
                    party::run(
                        &self.plan,
                        protocol,
                        &self.settings(peer),
                        rest,
                        links,
                        stop,
                        &|_| (),
                    )
                };
                running.push((peer, scope.spawn(run)));
            }
            for (peer, thread) in running {
                match thread
                    .join()
                    .expect("no participant panics, whatever its peers do")
                {
                    Ok(report) => {
                        reports.insert(peer, report);
                    }
                    Err(abort) => {
                        aborts.insert(peer, abort);
                    }
                }
            }
        });
        stage.outcome(start.elapsed(), reports, aborts)
    }

    fn settings(&self, peer: Peer) -> Settings {
        let devices = Arc::clone(&self.devices);
        Settings {
            timeout: self.timeout,
            window: self.window,
            device: Arc::new(move || devices(peer)),
            ot_cache: self.ot_caches.get(&peer).cloned(),
            ..Settings::default()
        }
    }
}

/// What is there during one run.
struct Stage<'a> {
    world: &'a World,
    values: Arc<Values>,
    seen: BTreeMap<Peer, Arc<Seen>>,
    kept: Vec<Arc<Shares>>,
    kinds: Arc<Kinds>,
    transcript: Arc<Mutex<Vec<Message>>>,
    edge: Option<Arc<Edge>>,
}

impl<'a> Stage<'a> {
    fn new(world: &'a World) -> Self {
        let values = world
            .values
            .clone()
            .unwrap_or_else(|| Values::random(&world.plan.job, world.seed));
        Stage {
            world,
            values: Arc::new(values),
            seen: participants(&world.plan)
                .into_iter()
                .map(|peer| (peer, Arc::default()))
                .collect(),
            kept: (world.plan.job.parties.iter())
                .map(|_| Arc::new(Shares::new(world.plan.ring)))
                .collect(),
            kinds: Arc::new(Kinds::of(&world.plan)),
            transcript: Arc::default(),
            edge: world
                .crash
                .map(|(_, crash, after)| Arc::new(Edge::new(crash, after))),
        }
    }

    fn data(&self, peer: Peer) -> Data {
        let source: Arc<dyn Source> = match self.world.orders.get(&peer) {
            None => Arc::clone(&self.values) as _,
            Some(digests) => Arc::new(Ordered {
                values: Arc::clone(&self.values),
                digests: digests.clone(),
            }),
        };
        let party = peer.party().map(veil_session::PartyId::index);
        Data {
            source: Some(source),
            sink: Some(Arc::clone(&self.seen[&peer]) as _),
            stored: party.and_then(|p| Some(self.world.stored.get(p)?.clone()? as _)),
            keeps: party.and_then(|p| Some(Arc::clone(self.kept.get(p)?) as _)),
            stock: self.world.stock.get(&peer).cloned(),
            makes: self.world.makes.get(&peer).cloned(),
        }
    }

    fn wrap(&self, from: Peer, link: MemoryLink) -> Box<dyn Link> {
        let mut link: Box<dyn Link> = match self.world.profile {
            None => Box::new(link),
            Some(profile) => Box::new(Shaped::new(link, profile)),
        };
        if let (Some((who, ..)), Some(edge)) = (self.world.crash, &self.edge)
            && who == from
        {
            link = Box::new(CrashingLink::new(link, Arc::clone(edge)));
        }
        let (kinds, cheat, transcript) = (
            Arc::clone(&self.kinds),
            self.world.cheat.clone(),
            Arc::clone(&self.transcript),
        );
        Box::new(Tapped::new(link, move |to, at, bytes: &[u8]| {
            let message = |to, at, bytes| Message {
                from,
                to,
                at,
                kind: kinds.find(from, to, at),
                bytes,
            };
            let honest = message(to, at, bytes.to_vec());
            let fate = cheat.as_ref().map_or(Fate::Pass, |cheat| cheat(&honest));
            let sent = match &fate {
                Fate::Pass | Fate::Delay(_) => vec![honest],
                Fate::Drop => vec![],
                Fate::Replace(bytes) => vec![message(to, at, bytes.clone())],
                Fate::Twice => vec![honest.clone(), honest],
                Fate::Instead(others) => others
                    .iter()
                    .map(|(to, at, bytes)| message(*to, *at, bytes.clone()))
                    .collect(),
            };
            transcript
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(sent);
            fate
        }))
    }

    fn outcome(
        self,
        elapsed: Duration,
        reports: BTreeMap<Peer, Report>,
        aborts: BTreeMap<Peer, Abort>,
    ) -> Outcome {
        let transcript = std::mem::take(
            &mut *self
                .transcript
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        Outcome {
            plan: Arc::clone(&self.world.plan),
            seed: self.world.seed,
            values: self.values,
            elapsed,
            reports,
            aborts,
            seen: self.seen,
            kept: self.kept,
            transcript,
        }
    }
}

/// Values with digests of a key column.
struct Ordered {
    values: Arc<Values>,
    digests: Vec<Vec<[u8; 32]>>,
}

impl Source for Ordered {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        self.values.fill(port, slice, into)
    }

    fn order(&self, block: u32) -> &[[u8; 32]] {
        self.digests.get(block as usize).map_or(&[], Vec::as_slice)
    }
}
