//! All participants of a job in this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use veil_engine::local::{self, Conditions};
use veil_engine::{DeviceFactory, Settings};
use veil_job::{Sink, Source};
use veil_link::Link;
use veil_program::TableReport;

use crate::ends::{Ends, Outcome};
use crate::error::{Code, Error};
use crate::job::Job;
use crate::running::{Running, Shared};
use crate::values::Values;

/// A run of all participants of a job in this process, over links in memory: to try a job, to test a circuit.
///
/// Nothing is hidden from the process that runs it: it has all inputs.
#[derive(Clone)]
pub struct Local {
    job: Job,
    ends: Ends,
    settings: Settings,
}

impl Local {
    /// Of this job, whose data are where its file says, unless they are given here.
    pub fn of(job: &Job) -> Self {
        Local {
            job: job.clone(),
            ends: Ends::default(),
            settings: Settings::default(),
        }
    }

    /// The values of a participant.
    #[must_use]
    pub fn values(mut self, name: impl Into<String>, values: Values) -> Self {
        self.ends.values(name.into(), values);
        self
    }

    /// A source of a participant's values.
    #[must_use]
    pub fn source(mut self, name: impl Into<String>, source: Arc<dyn Source>) -> Self {
        self.ends.source(name.into(), source);
        self
    }

    /// A sink of what is opened to a participant. Without one, statistics and values are in the [`Outcome`].
    #[must_use]
    pub fn sink(mut self, name: impl Into<String>, sink: Arc<dyn Sink>) -> Self {
        self.ends.sink(name.into(), sink);
        self
    }

    /// The file of an owner's table or block, in the place of the one that the job file names.
    #[must_use]
    pub fn file(
        mut self,
        owner: impl Into<String>,
        table: impl Into<String>,
        file: impl Into<PathBuf>,
    ) -> Self {
        let tables = self.ends.tables();
        tables.file(owner.into(), table.into(), file.into());
        self
    }

    /// An owner's table of a job with queries, in memory. It is read and checked as a file is.
    #[cfg(feature = "columnar")]
    #[must_use]
    pub fn table(
        mut self,
        owner: impl Into<String>,
        name: impl Into<String>,
        table: crate::MemoryTable,
    ) -> Self {
        let tables = self.ends.tables();
        tables.memory(owner.into(), name.into(), table);
        self
    }

    /// Reads and checks all tables that are given or named, and runs nothing: a report of each.
    ///
    /// # Errors
    /// The [`Error`] of the first that is not as the job declares it.
    pub fn check(&self) -> Result<Vec<TableReport>, Error> {
        let file = self.job.file();
        let file = file.ok_or_else(|| {
            Error::new(Code::Usage, "a job that is made of a circuit has no tables")
        })?;
        let file = self.ends.clone().tables().put_into(file)?;
        let mut reports = Vec::new();
        for holder in file.holders() {
            let (own, problems) = file.check_data(holder, &|_, _| {});
            if let Some(problem) = problems.into_iter().next() {
                return Err(problem.into());
            }
            reports.extend(own);
        }
        Ok(reports)
    }

    /// What queries mean on the tables that are given or named, by the meaning of the algebra and without any sharing: to whom a relation would be
    /// opened, and the relation. It is what results are compared with.
    ///
    /// # Errors
    /// The [`Error`] of the first table that is not as the job declares it; of [`Code::Usage`] for a job that is made of a circuit.
    pub fn clear(&self) -> Result<Vec<(String, crate::Answered)>, Error> {
        let file = self.job.file();
        let file = file.ok_or_else(|| {
            Error::new(
                Code::Usage,
                "a job that is made of a circuit has no queries",
            )
        })?;
        let file = self.ends.clone().tables().put_into(file)?;
        Ok(file.clear_relations()?)
    }

    /// A shadow run: the queries in the clear on sample rows that are given or named, and what each column uses of its range. A table may have fewer rows
    /// than the job says.
    ///
    /// # Errors
    /// The [`Error`] of the first table that is not as the job declares it; of [`Code::Usage`] for a job without queries over tables.
    pub fn shadow(&self) -> Result<crate::Shadow, Error> {
        let none = || Error::new(Code::Usage, "the job has no queries over tables");
        let file = self.job.file().ok_or_else(none)?;
        let file = self.ends.clone().tables().put_into(file)?;
        let shadow = file.shadow(&|_, _| {});
        let shadow = shadow.map_err(|problems| {
            let first = problems.into_iter().next();
            first.map_or_else(none, Error::from)
        });
        shadow?.ok_or_else(none)
    }

    /// A folder for the result files of a job file; each recipient has one of its name in it.
    #[must_use]
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Self {
        self.ends.out(folder.into());
        self
    }

    /// What all parties compute on; without it the fastest device of the processor.
    #[must_use]
    pub fn device(mut self, device: DeviceFactory) -> Self {
        self.settings.device = device;
        self
    }

    /// Gives the run up when nothing moves for so long; without it 30 seconds.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Runs the job.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Usage`] if values are missing or given for no participant, of [`Code::Input`] if data are wrong, else what ended
    /// the run.
    pub fn run(self) -> Result<Outcome, Error> {
        self.start().join()
    }

    /// Runs the job in the background.
    pub fn start(self) -> Running {
        Running::start(move |shared| self.go(shared))
    }

    fn go(&self, shared: &Shared) -> Result<Outcome, Error> {
        let (job, passes, plan) = (&self.job, self.job.passes(), self.job.plan());
        job.without_stores()?;
        self.ends.check(job)?;
        let peers = veil_engine::participants(plan);
        let mut ready = Vec::new();
        for peer in &peers {
            ready.push(self.ends.ready(job, *peer)?);
        }
        let data = |peer, pass: usize| {
            let index = peers.iter().position(|other| *other == peer);
            index.map_or_else(Default::default, |index| ready[index].data[pass].clone())
        };
        let conditions = Conditions {
            settings: &|_| self.settings.clone(),
            wrap: &|_, _, link| -> Box<dyn Link> { Box::new(link) },
            stop: Some(shared.stop()),
        };
        let progress = |progress| shared.goes(progress);
        let ran = local::run_program(passes.program(), data, &progress, &conditions);
        let mut reports = ran.map_err(|failure| {
            if shared.stop().load(std::sync::atomic::Ordering::Relaxed) {
                return Error::stopped();
            }
            Error::local(plan, &failure)
        })?;
        let mut outcome = Outcome::default();
        for (peer, ready) in peers.iter().zip(ready) {
            let name = veil_engine::name_of(plan, *peer);
            let report = reports.remove(peer).ok_or_else(|| {
                Error::new(Code::Other, format!("the run has no report of `{name}`"))
            })?;
            outcome.add(name, ready, report);
        }
        Ok(outcome)
    }
}
