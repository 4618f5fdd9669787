//! One participant of a job, which meets the others over TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::{DeviceFactory, Report, Settings};
use veil_job::{Sink, Source};
use veil_link::LinkKind;
use veil_link::tls::{Fingerprint, Identity, Port, Reception, SetupError};
use veil_runtime::{As, Course, Ended, Heard, Neighbours, Part, Roster, RunError, Stage, Step};
use veil_session::Peer;

use crate::ends::{Ends, Outcome, Ready};
use crate::error::{Code, Error};
use crate::job::Job;
use crate::running::{Running, Shared};
use crate::values::Values;

/// One participant of a job, in this process; the others are in theirs, and meet it over TLS 1.3 by keys that each has pinned.
///
/// Parties listen; owners and recipients call all parties, and parties those before them in the job's order. All have to have the same job, by
/// its [hash](Job::hash), and to say who may be who: [`Participant::knows`].
#[derive(Clone)]
pub struct Participant {
    job: Job,
    name: String,
    identity: Arc<Identity>,
    known: Known,
    ends: Ends,
    listen: Option<String>,
    wait: Duration,
    settings: Settings,
}

/// Keys and addresses, by name.
#[derive(Clone, Default)]
struct Known(BTreeMap<String, (Fingerprint, Option<String>)>);

impl Roster for Known {
    fn key(&self, name: &str) -> Option<Fingerprint> {
        self.0.get(name).map(|(key, _)| *key)
    }

    fn address(&self, name: &str) -> Option<String> {
        self.0.get(name)?.1.clone()
    }
}

impl Participant {
    /// The participant of this name, with its key.
    pub fn new(job: &Job, name: impl Into<String>, identity: impl Into<Arc<Identity>>) -> Self {
        Participant {
            job: job.clone(),
            name: name.into(),
            identity: identity.into(),
            known: Known::default(),
            ends: Ends::default(),
            listen: None,
            wait: Duration::from_secs(60),
            settings: Settings::default(),
        }
    }

    /// Another participant: the fingerprint of its key, which the connection has to prove, and for a party where it listens.
    #[must_use]
    pub fn knows(
        mut self,
        name: impl Into<String>,
        key: Fingerprint,
        address: Option<&str>,
    ) -> Self {
        let address = address.map(str::to_owned);
        self.known.0.insert(name.into(), (key, address));
        self
    }

    /// Where it listens, if it is a party, as in `0.0.0.0:7000`.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// Its values.
    #[must_use]
    pub fn values(mut self, values: Values) -> Self {
        self.ends.values(self.name.clone(), values);
        self
    }

    /// A source of its values.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.ends.source(self.name.clone(), source);
        self
    }

    /// A sink of what is opened to it. Without one, statistics and values are in the [`Outcome`].
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.ends.sink(self.name.clone(), sink);
        self
    }

    /// A folder for the result files of a job file, in a folder of the participant's name.
    #[must_use]
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Self {
        self.ends.out(folder.into());
        self
    }

    /// What it computes on, if it is a party; without it the fastest device of the processor.
    #[must_use]
    pub fn device(mut self, device: DeviceFactory) -> Self {
        self.settings.device = device;
        self
    }

    /// How long the others have to turn up; without it a minute.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Gives the run up when nothing moves for so long; without it 30 seconds.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Meets the others and runs the job.
    ///
    /// # Errors
    /// An [`Error`]: of [`Code::Input`] if this participant has no part in the job, or another one is not known here; of [`Code::Usage`] if values
    /// or an address are missing; of [`Code::Link`] if the others do not come; of [`Code::Check`] if one of them has another key or cheats; else
    /// what ended the run.
    pub fn run(self) -> Result<Outcome, Error> {
        self.start().join()
    }

    /// The same in the background.
    pub fn start(self) -> Running {
        Running::start(move |shared| self.go(shared))
    }

    fn go(&self, shared: &Shared) -> Result<Outcome, Error> {
        self.job.without_stores()?;
        let mine = self.job.roles(&self.name)?;
        let is_party = mine.iter().any(|peer| peer.party().is_some());
        let course = Course {
            me: if is_party {
                As::Party { serves: false }
            } else {
                As::Guest {
                    input: true,
                    compute: true,
                }
            },
            two: false,
            guaranteed: false,
            wait: self.wait,
        };
        let mut here = None;
        let mut outcome = Outcome::default();
        let (mut me, mut step) = veil_runtime::Participant::<Error>::new(course, Instant::now());
        loop {
            let heard = match step {
                Step::Locate => Heard::At(Stage::Whole),
                Step::Prepare(..) => {
                    here = Some(self.ready(&mine)?);
                    Heard::Ready
                }
                Step::Run(_) => match here
                    .take()
                    .map(|here| self.meet(here, shared, &mut outcome))
                {
                    Some(Err(error)) => Heard::failed(error),
                    _ => Heard::Ended {
                        ended: Ended::Done,
                        void: false,
                    },
                },
                Step::Finished => return Ok(outcome),
                Step::GivenUp(given) => {
                    let lost = || Error::new(Code::Other, "the run was given up");
                    return Err(given.failure.unwrap_or_else(lost));
                }
                Step::Rest { pause, .. } => {
                    thread::sleep(pause);
                    Heard::Ready
                }
                Step::AskDone | Step::AskKept | Step::AskWanted => Heard::Yes(false),
                Step::AskStage => Heard::Parties(None),
                Step::Forget => Heard::Ready,
            };
            step = me.next(heard, Instant::now());
        }
    }

    /// Checks and makes ready all that can be before a connection is made.
    fn ready(&self, mine: &[Peer]) -> Result<Here, Error> {
        let plan = self.job.plan();
        let mut roles = Vec::new();
        let mut keys = BTreeSet::new();
        for me in mine {
            let neighbours = Neighbours::find(plan, *me, &self.known)?;
            keys.extend(neighbours.pins.values().copied());
            roles.push((*me, neighbours, self.ends.ready(&self.job, *me)?));
        }
        let mut port = None;
        if mine.iter().any(|peer| peer.party().is_some()) {
            let listen = self.listen.as_deref().ok_or_else(|| {
                let message = format!("`{}` computes, and has no address to listen on", self.name);
                Error::new(Code::Usage, message).with_help("give one with `listen`")
            })?;
            let bound = Port::bind(&self.identity, listen, Reception::sole(keys));
            port = Some(bound.map_err(|error| Error::setup(plan, &error))?);
        }
        Ok(Here { roles, port })
    }

    /// Runs all roles, each in a thread of its own; the first failure ends the others.
    fn meet(&self, here: Here, shared: &Shared, outcome: &mut Outcome) -> Result<(), Error> {
        let Here { roles, port } = here;
        let one = |(me, neighbours, ready): &(Peer, Neighbours, Ready)| {
            let part = Part {
                plan: self.job.passes(),
                me: *me,
                identity: &self.identity,
                port: port.as_ref(),
                neighbours,
                link: LinkKind::Tls,
                net: None,
                stop: shared.stop(),
            };
            let ran = self.one(&part, ready, shared);
            if ran.is_err() {
                shared.stop().store(true, Ordering::Relaxed);
            }
            ran.map_err(|error| {
                (
                    matches!(error, RunError::Setup(SetupError::Stopped { .. })),
                    Error::run(self.job.plan(), *me, &error),
                )
            })
        };
        let before = shared.stop().load(Ordering::Relaxed);
        let ran: Vec<Result<Report, (bool, Error)>> = thread::scope(|scope| {
            let threads: Vec<_> = roles.iter().map(|role| scope.spawn(|| one(role))).collect();
            let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ended
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        // A role that was only stopped knows less than the one that failed.
        let mut failures: Vec<(bool, Error)> = Vec::new();
        let mut reports = Vec::new();
        for ran in ran {
            match ran {
                Ok(report) => reports.push(report),
                Err(failure) => failures.push(failure),
            }
        }
        failures.sort_by_key(|(stopped, _)| *stopped);
        if let Some((stopped, error)) = failures.into_iter().next() {
            return Err(if before || stopped {
                Error::stopped()
            } else {
                error
            });
        }
        for ((_, _, ready), report) in roles.into_iter().zip(reports) {
            outcome.add(&self.name, ready, report);
        }
        Ok(())
    }

    fn one(&self, part: &Part<'_>, ready: &Ready, shared: &Shared) -> Result<Report, RunError> {
        let until = Instant::now() + self.wait;
        let connections = part.meet(self.wait)?;
        let settings = Settings {
            meeting: Some(until),
            ..self.settings.clone()
        };
        let ran = part.run(
            connections,
            &settings,
            Arc::clone(&ready.data),
            &|link| link,
            &|progress| shared.goes(progress),
        );
        Ok(ran?)
    }
}

/// A participant before it meets the others.
struct Here {
    roles: Vec<(Peer, Neighbours, Ready)>,
    port: Option<Port>,
}
