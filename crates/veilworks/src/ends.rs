//! What participants bring to a run and take from it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use veil_engine::{Data, Report};
use veil_job::{Sink, Source};
#[cfg(feature = "columnar")]
use veil_program::MemoryTable;
use veil_program::stats::StatsResult;
use veil_program::{Answered, Files, Output, Sinks, Sources};
use veil_session::Peer;

use crate::error::{Code, Error};
use crate::job::Job;
use crate::values::{Opened, Values};

/// The ends of some participants, by name.
#[derive(Clone, Default)]
pub(crate) struct Ends {
    values: BTreeMap<String, Values>,
    sources: BTreeMap<String, Arc<dyn Source>>,
    sinks: BTreeMap<String, Arc<dyn Sink>>,
    tables: Tables,
    /// Where results of a job file go that are files.
    out: Option<PathBuf>,
}

/// Where tables of a job with queries are, by owner and name, that are not where the job file says.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    files: Files,
    #[cfg(feature = "columnar")]
    memory: BTreeMap<(String, String), MemoryTable>,
}

impl Tables {
    pub(crate) fn file(&mut self, owner: String, table: String, file: PathBuf) {
        self.files.insert((owner, table), file);
    }

    #[cfg(feature = "columnar")]
    pub(crate) fn memory(&mut self, owner: String, table: String, given: MemoryTable) {
        self.memory.insert((owner, table), given);
    }

    /// The job file with these in the place of its own.
    pub(crate) fn put_into(&self, file: &veil_program::Job) -> Result<veil_program::Job, Error> {
        let mut file = file.clone();
        file.give_files(self.files.clone())?;
        #[cfg(feature = "columnar")]
        for ((owner, name), table) in &self.memory {
            file.give_table(owner, name, table.clone())?;
        }
        Ok(file)
    }
}

/// The ends of one role, ready.
pub(crate) struct Ready {
    pub(crate) data: Arc<[Data]>,
    output: Option<Taken>,
}

/// Where what is opened to a role is found afterwards.
enum Taken {
    Program(Arc<Output>),
    Opened(Opened),
}

impl Ends {
    pub(crate) fn values(&mut self, name: String, values: Values) {
        self.values.insert(name, values);
    }

    pub(crate) fn source(&mut self, name: String, source: Arc<dyn Source>) {
        self.sources.insert(name, source);
    }

    pub(crate) fn sink(&mut self, name: String, sink: Arc<dyn Sink>) {
        self.sinks.insert(name, sink);
    }

    pub(crate) fn tables(&mut self) -> &mut Tables {
        &mut self.tables
    }

    pub(crate) fn out(&mut self, folder: PathBuf) {
        self.out = Some(folder);
    }

    /// Refuses ends for names that the job has not.
    pub(crate) fn check(&self, job: &Job) -> Result<(), Error> {
        let names = self.values.keys().chain(self.sources.keys());
        for name in names.chain(self.sinks.keys()) {
            job.roles(name)?;
        }
        Ok(())
    }

    /// What a role brings and takes: what was given for its name, else what the job file says.
    pub(crate) fn ready(&self, job: &Job, peer: Peer) -> Result<Ready, Error> {
        let name = veil_engine::name_of(job.plan(), peer);
        let mut ends = veil_runtime::Ends::default();
        if job.supplies(peer) {
            ends.sources = self.brings(job, peer, name)?;
        }
        let mut output = None;
        if job.receives(peer) {
            (ends.sinks, output) = self.takes(job, peer, name)?;
        }
        let data = job.passes().data(ends);
        Ok(Ready { data, output })
    }

    fn brings(&self, job: &Job, peer: Peer, name: &str) -> Result<Sources, Error> {
        if self.sources.contains_key(name) || self.values.contains_key(name) {
            one_pass(job, name)?;
        }
        let given = match (self.sources.get(name), self.values.get(name)) {
            (Some(source), _) => Some(Arc::clone(source)),
            (None, Some(values)) => Some(values.clone().source(job.spec())?),
            (None, None) => None,
        };
        if let Some(source) = given {
            return Ok(vec![(0, source)]);
        }
        if let Some(file) = job.file() {
            let file = self.tables.put_into(file)?;
            let mut holders = file.holders().into_iter();
            if let Some(holder) = holders.find(|holder| holder.peer() == Some(peer)) {
                return Ok(file.sources(holder)?);
            }
        }
        let message = format!("`{name}` supplies values, and none were given for it");
        Err(Error::new(Code::Usage, message)
            .with_help("give them with `values`, or a source of your own with `source`"))
    }

    fn takes(&self, job: &Job, peer: Peer, name: &str) -> Result<(Sinks, Option<Taken>), Error> {
        if let Some(sink) = self.sinks.get(name) {
            one_pass(job, name)?;
            return Ok((vec![(0, Arc::clone(sink))], None));
        }
        let in_memory = || {
            let opened = Opened::of(job.spec());
            let sink: Arc<dyn Sink> = Arc::new(opened.clone());
            (vec![(0, sink)], Some(Taken::Opened(opened)))
        };
        let Some(file) = job.file() else {
            return Ok(in_memory());
        };
        let output = if let Some(out) = &self.out {
            let folder = out.join(folder_name(name));
            std::fs::create_dir_all(&folder).map_err(|error| {
                let message = format!("cannot create {}: {error}", folder.display());
                Error::new(Code::Input, message)
            })?;
            file.sink(peer, &folder)?
        } else if let Some(output) = file.memory_sink(peer)? {
            output
        } else {
            return Ok(in_memory());
        };
        let output = Arc::new(output);
        Ok((output.sinks(), Some(Taken::Program(output))))
    }
}

/// Refuses values, sources and sinks of a program where a job has queries: they would be of one pass of many.
fn one_pass(job: &Job, name: &str) -> Result<(), Error> {
    if job.passes().count() == 1 {
        return Ok(());
    }
    let message = format!("`{name}` brings and takes tables in this job, which has queries");
    Err(Error::new(Code::Usage, message)
        .with_help("its tables are read from the files that the job names, and results are in the outcome, or in the folder of `out`"))
}

/// A name of a job as the name of a folder: jobs come from others, and their names lead to no other place.
pub fn folder_name(name: &str) -> String {
    let safe = |c: char| {
        if c.is_alphanumeric() || "-_. ".contains(c) {
            c
        } else {
            '_'
        }
    };
    let safe: String = name.chars().map(safe).collect();
    if safe.starts_with('.') {
        format!("_{safe}")
    } else {
        safe
    }
}

/// What a run came to.
#[derive(Default)]
pub struct Outcome {
    taken: BTreeMap<String, Taken>,
    reports: Vec<(String, Report)>,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("recipients", &self.taken.keys())
            .field("reports", &self.reports)
            .finish()
    }
}

impl Outcome {
    pub(crate) fn add(&mut self, name: &str, ready: Ready, report: Report) {
        if let Some(taken) = ready.output {
            self.taken.insert(name.to_owned(), taken);
        }
        self.reports.push((name.to_owned(), report));
    }

    /// The statistics that the recipient of this name got. They print as `veil stats` prints them, and are `Serialize`.
    pub fn statistics(&self, recipient: &str) -> Option<&StatsResult> {
        match self.taken.get(recipient)? {
            Taken::Program(output) => output.statistics(),
            Taken::Opened(_) => None,
        }
    }

    /// The relations that queries opened to the recipient of this name.
    pub fn answers(&self, recipient: &str) -> Option<&[Answered]> {
        match self.taken.get(recipient)? {
            Taken::Program(output) => output.queries()?.answers(),
            Taken::Opened(_) => None,
        }
    }

    /// The values that were opened to the recipient of this name, where neither a sink of its own took them nor files.
    pub fn opened(&self, recipient: &str) -> Option<&Opened> {
        match self.taken.get(recipient)? {
            Taken::Opened(opened) => Some(opened),
            Taken::Program(_) => None,
        }
    }

    /// What the run took at each participant of this process: time, messages, bytes.
    pub fn reports(&self) -> impl Iterator<Item = (&str, &Report)> {
        self.reports
            .iter()
            .map(|(name, report)| (name.as_str(), report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_no_other_folder() {
        for (name, folder) in [
            ("north-mill", "north-mill"),
            ("../../etc", "_.._.._etc"),
            ("/etc", "_etc"),
            ("..", "_.."),
            ("a/b", "a_b"),
        ] {
            assert_eq!(folder_name(name), folder, "{name}");
        }
    }
}
