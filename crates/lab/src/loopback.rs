//! A plan on made-up values: all participants in threads of this process, over TLS on loopback.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, miette};
use rustix::time::ClockId;
use veil_engine::{Acts, Binding, Data, Report, Settings, participants, party, program_bounds};
use veil_job::{DataError, Sink, Slice, Source};
use veil_link::tls::{Identity, Meeting, Port, Reception, Terms, TlsLink, meet};
use veil_link::{Link, shape};
use veil_protocol::Plan;
use veil_protocol::passes::PassProgram;
use veil_session::Peer;

/// What a run took at each participant.
pub(crate) type Reports = BTreeMap<Peer, Report>;

/// The key of each participant.
pub(crate) struct Keys(BTreeMap<Peer, Identity>);

impl Keys {
    /// Made for one run, or for several.
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let peers = participants(plan).into_iter();
        let keys = peers.map(|p| Ok((p, Identity::generate()?)));
        let keys = keys.collect::<Result<_, veil_link::tls::IdentityError>>();
        Ok(Keys(keys.into_diagnostic()?))
    }
}

/// Every participant in threads of its own, with keys made for this run.
pub(crate) fn over_tls(
    plan: &Arc<Plan>,
    settings: &Settings,
    data: &(dyn Fn(Peer) -> Data + Sync),
    net: Option<shape::Profile>,
) -> Result<Reports> {
    over_tls_as(plan, &Keys::new(plan)?, settings, data, net)
}

/// The same with these keys.
pub(crate) fn over_tls_as(
    plan: &Arc<Plan>,
    keys: &Keys,
    settings: &Settings,
    data: &(dyn Fn(Peer) -> Data + Sync),
    net: Option<shape::Profile>,
) -> Result<Reports> {
    let program = Arc::new(Arc::clone(plan).into());
    program_over_tls(&program, keys, settings, &|peer, _| data(peer), net)
}

/// What a participant brings to a pass.
pub(crate) type DataOfPass<'a> = dyn Fn(Peer, usize) -> Data + Sync + 'a;

/// The same of all passes of a program.
pub(crate) fn program_over_tls(
    program: &Arc<PassProgram>,
    keys: &Keys,
    settings: &Settings,
    data: &DataOfPass<'_>,
    net: Option<shape::Profile>,
) -> Result<Reports> {
    among(program, keys, settings, data, (net, None))
}

/// The same over an unshaped link, with the CPU time of all participants from when all of them are connected.
pub(crate) fn timed(
    plan: &Arc<Plan>,
    keys: &Keys,
    settings: &Settings,
    data: &(dyn Fn(Peer) -> Data + Sync),
) -> Result<(Reports, Duration)> {
    let met = Met {
        barrier: Barrier::new(participants(plan).len()),
        cpu: OnceLock::new(),
    };
    let program = Arc::new(Arc::clone(plan).into());
    let of_pass = |peer, _| data(peer);
    let reports = among(&program, keys, settings, &of_pass, (None, Some(&met)))?;
    let began = met.cpu.get().copied().unwrap_or_default();
    let spent = cpu_time(ClockId::ProcessCPUTime).saturating_sub(began);
    Ok((reports, spent))
}

/// Where participants wait until all are connected, and the CPU time of the process then.
struct Met {
    barrier: Barrier,
    cpu: OnceLock<Duration>,
}

impl Met {
    fn wait(&self) {
        if self.barrier.wait().is_leader() {
            self.cpu.get_or_init(|| cpu_time(ClockId::ProcessCPUTime));
        }
    }
}

/// User and system time so far, of this thread or of all.
pub(crate) fn cpu_time(of: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(of);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn among(
    program: &Arc<PassProgram>,
    Keys(identities): &Keys,
    settings: &Settings,
    data: &DataOfPass<'_>,
    (net, met): (Option<shape::Profile>, Option<&Met>),
) -> Result<Reports> {
    let plan = program.first();
    let peers = participants(plan);
    let passes = 0..program.passes().len();
    let pins: BTreeMap<_, _> = identities
        .iter()
        .map(|(p, i)| (*p, i.fingerprint()))
        .collect();
    let mut ports = BTreeMap::new();
    for party in plan.parties().iter().copied().map(Peer::Party) {
        let reception = Reception::sole(pins.values().copied());
        let port = Port::bind(&identities[&party], "127.0.0.1:0", reception);
        ports.insert(party, port.into_diagnostic()?);
    }
    let stop = AtomicBool::new(false);
    let results: Vec<(Peer, Result<Report>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = peers
            .iter()
            .map(|me| {
                let (pins, ports, stop) = (&pins, &ports, &stop);
                let ends: Arc<[Data]> = passes.clone().map(|pass| data(*me, pass)).collect();
                let run = move || {
                    let acts = Arc::new(Acts::new(Arc::clone(program), *me));
                    one(
                        &acts,
                        (ends, settings),
                        &identities[me],
                        pins,
                        ports,
                        (net, met),
                        stop,
                    )
                };
                (*me, scope.spawn(run))
            })
            .collect();
        let join = |h: std::thread::ScopedJoinHandle<'_, Result<Report>>| {
            h.join()
                .unwrap_or_else(|_| Err(miette!("a participant panicked")))
        };
        handles.into_iter().map(|(me, h)| (me, join(h))).collect()
    });
    results
        .into_iter()
        .map(|(peer, r)| Ok((peer, r?)))
        .collect()
}

fn one(
    acts: &Arc<Acts>,
    (ends, settings): (Arc<[Data]>, &Settings),
    identity: &Identity,
    pins: &BTreeMap<Peer, veil_link::tls::Fingerprint>,
    ports: &BTreeMap<Peer, Port>,
    (net, met): (Option<shape::Profile>, Option<&Met>),
    stop: &AtomicBool,
) -> Result<Report> {
    let (me, plan) = (acts.me(), acts.plan());
    let terms = Terms {
        me,
        plan: acts.hash(),
        pins: pins.clone(),
        link: veil_link::LinkKind::Tls,
        others: Vec::new(),
    };
    // Parties dial parties of lower index; owners and recipients dial all parties.
    let dials = |peer: &Peer| peer.party().is_some() && *peer < me;
    let (dial, from): (Vec<Peer>, Vec<Peer>) = acts.peers().into_iter().partition(dials);
    let dial: Vec<_> = dial
        .into_iter()
        .map(|p| (p, ports[&p].address().to_string()))
        .collect();
    let meeting = Meeting {
        dial: &dial,
        from: &from,
        lanes: plan.lanes,
        until: Instant::now() + Duration::from_secs(30),
    };
    let lanes = meet(identity, &terms, ports.get(&me), &meeting, stop);
    // A participant that met no others comes here, too: all are waited for.
    if let Some(met) = met {
        met.wait();
    }
    let lanes = lanes.into_diagnostic()?;
    let mut binding = Binding {
        identities: (plan.parties().iter())
            .map(|p| *pins[&Peer::Party(*p)].as_bytes())
            .collect(),
        ..Binding::default()
    };
    for connected in lanes.first().into_iter().flatten() {
        let secret = connected.exporter(b"EXPORTER-veilworks pair", &acts.hash().0);
        binding.exporters.insert(connected.peer(), secret.to_vec());
    }
    let limits = program_bounds(acts);
    let link = |connections| -> Box<dyn Link> {
        let link = TlsLink::new(connections, limits);
        match net {
            Some(profile) => Box::new(shape::Shaped::new(link, profile)),
            None => Box::new(link),
        }
    };
    let links = lanes.into_iter().map(link).collect();
    party::run_program(acts, settings, (ends, binding), links, stop, &|_| ()).into_diagnostic()
}

/// Values that follow from their place; the protocol works the same on any.
pub(crate) struct Pattern;

impl Source for Pattern {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let mut x = slice
            .first
            .wrapping_add(port as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            | 1;
        for word in into.chunks_mut(8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            word.copy_from_slice(&x.to_le_bytes()[..word.len()]);
        }
        Ok(())
    }
}

/// Takes results and forgets them.
pub(crate) struct Nowhere;

impl Sink for Nowhere {
    fn put(&self, _port: usize, _slice: Slice, values: &[u8]) -> Result<(), DataError> {
        std::hint::black_box(values);
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}
