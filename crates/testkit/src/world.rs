//! All participants of a job in one process, under conditions that a test chooses.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use veil_device::{Device, Fault, Reference};
use veil_engine::local::{Conditions, rehearse};
use veil_engine::{Binding, Clock, OtCache, Settings, bounds, participants, party};
use veil_job::{JobSpec, StockSink, StockSource};
use veil_link::memory::{self, MemoryLink};
use veil_link::shape::Profile;
use veil_link::tap::Fate;
use veil_link::{Bounds, Link};
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan, Protocol, Stock};
use veil_session::Peer;

use crate::crash::Crash;
use crate::outcome::{Message, Outcome};
use crate::{Seed, Shares, Values};
use stage::Stage;

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
