//! Jobs: read from a file or made of a circuit, and planned once.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use veil_circuit::{Circuit, Per};
use veil_job::{Audience, Block, Guarantee, Holder, InputSpec, JobSpec, Order, Security};
use veil_program::{ColumnFacts, DataFile, Files, Opens, Operator, Queries, TableFacts};
use veil_protocol::{Options, Plan};
use veil_runtime::Passes;
use veil_session::{PartyId, Peer, PlanHash};

use crate::error::{Code, Error};
use crate::explain::{self, Explained, Rates};

/// A job that is planned: what is computed, on whose values, and to whom the results are opened.
///
/// It is planned when it is made. Clones share the plan, so that a job runs as often as it is wanted without being planned again; two jobs are
/// the same if their [`Job::hash`] is.
#[derive(Clone)]
pub struct Job(Arc<Inner>);

struct Inner {
    /// The job file behind it, if there is one.
    file: Option<veil_program::Job>,
    passes: Passes,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name())
            .field("hash", &self.hash())
            .finish_non_exhaustive()
    }
}

impl Job {
    /// Reads a job file, as `veil run` does; paths in it are relative to its folder.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] that shows the place in the file.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, Error> {
        let job = veil_program::Job::load(file.as_ref(), Files::new())?;
        Self::of_file(job)
    }

    /// Reads the text of a job file; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`].
    pub fn parse(text: &str, folder: impl AsRef<Path>) -> Result<Self, Error> {
        let file = folder.as_ref().join("job.toml");
        let job = veil_program::Job::parse(text, &file, Files::new())?;
        Self::of_file(job)
    }

    /// The same; models that are among `beside`, by the names that the job gives their files, are taken from there.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`].
    pub fn parse_with(
        text: &str,
        folder: impl AsRef<Path>,
        beside: &veil_program::Sent,
    ) -> Result<Self, Error> {
        let file = folder.as_ref().join("job.toml");
        let job = veil_program::Job::parse_with(text, &file, beside)?;
        Self::of_file(job)
    }

    fn of_file(job: veil_program::Job) -> Result<Self, Error> {
        Self::planned(job, 1)
    }

    /// Refuses a run of a job whose parties keep or load shares: they are in homes, which the command has.
    pub(crate) fn without_stores(&self) -> Result<(), Error> {
        if !self.file().is_some_and(veil_program::Job::needs_stores) {
            return Ok(());
        }
        let message = "the job keeps or loads shares, which parties have in their homes";
        Err(Error::new(Code::Usage, message)
            .with_help("`veil run`, `veil party` and `veil serve` run it"))
    }

    fn planned(job: veil_program::Job, lanes: u16) -> Result<Self, Error> {
        let passes = passes(&job, lanes)?;
        Ok(Job(Arc::new(Inner {
            file: Some(job),
            passes,
        })))
    }

    /// The job of a specification: all that a job file cannot say can be said there.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] if no protocol does what it asks for, of [`Code::Usage`] if its parties keep or load shares.
    pub fn of(spec: JobSpec) -> Result<Self, Error> {
        let stored = spec.keep.is_some() || !spec.datasets.is_empty() || !spec.loads().is_empty();
        if stored || !spec.keeps().is_empty() {
            let message = "the job keeps or loads shares, which parties have in their homes";
            return Err(Error::new(Code::Usage, message));
        }
        let passes = plan(Arc::new(spec), 1)?;
        Ok(Job(Arc::new(Inner { file: None, passes })))
    }

    /// The same job on so many lanes, which run in parallel: at least 1. All participants have to say the same.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] if the job cannot be planned for so many.
    pub fn on_lanes(&self, lanes: u16) -> Result<Self, Error> {
        if let Some(file) = &self.0.file {
            return Self::planned(file.clone(), lanes);
        }
        let passes = plan(Arc::clone(&self.0.passes.job), lanes)?;
        Ok(Job(Arc::new(Inner { file: None, passes })))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.plan().job.name
    }

    /// The hash of its plan. Participants only meet for the same one: it covers all that is read, computed and opened.
    pub fn hash(&self) -> PlanHash {
        self.plan().hash
    }

    /// Rows of its input.
    pub fn rows(&self) -> u64 {
        self.plan().job.rows()
    }

    /// The names of its participants, parties first; a name that has several roles once.
    pub fn participants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for peer in veil_engine::participants(self.plan()) {
            let name = veil_engine::name_of(self.plan(), peer);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What is opened, a sentence for each output, with the name of who reads it.
    pub fn opens(&self) -> Vec<(String, String)> {
        let spec = &self.plan().job;
        let named = |audience: &Audience| match audience {
            Audience::Parties => "all parties".to_owned(),
            Audience::Party(party) => spec.parties[party.index()].clone(),
            Audience::Recipient(recipient) => spec.recipients[usize::from(*recipient)].clone(),
            Audience::Stored | Audience::Column => "no participant".to_owned(),
        };
        let opened = spec.opened.iter().cloned();
        opened.zip(spec.audiences.iter().map(named)).collect()
    }

    /// What is opened, the bits and sizes that parties see among it: of a job with queries as `veil explain` lists it, else as [`Job::opens`].
    pub fn opened(&self) -> Vec<Opens> {
        if let Some(queries) = self.queries() {
            return queries.opens();
        }
        let opens = self.opens().into_iter();
        opens
            .map(|(what, to)| Opens { to: Some(to), what })
            .collect()
    }

    /// What a job with queries opens, reads and costs: [`Explained::text`] is what `veil explain` prints of it.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Usage`] for other jobs, which the command explains.
    pub fn explain(&self, rates: &Rates) -> Result<Explained, Error> {
        let Some((file, queries)) = self.file().zip(self.queries()) else {
            let message = "the job has no queries: `veil explain` says what it opens and costs";
            return Err(Error::new(Code::Usage, message));
        };
        explain::of_queries(file, queries, self.passes(), None, rates)
    }

    /// What a job with queries is about.
    pub(crate) fn queries(&self) -> Option<&Queries> {
        self.file()?.queries()
    }

    /// The operators of a job with queries, each above its inputs.
    pub fn operators(&self) -> Vec<Operator> {
        self.queries().map(Queries::operators).unwrap_or_default()
    }

    /// The tables that queries read.
    pub fn tables(&self) -> Vec<TableFacts> {
        self.queries().map(Queries::table_facts).unwrap_or_default()
    }

    /// The columns that queries read, and what for.
    pub fn columns(&self) -> Vec<ColumnFacts> {
        self.queries()
            .map(Queries::column_facts)
            .unwrap_or_default()
    }

    /// The data files of its owners: whose each is, what of the job it is, and where, if that is known.
    pub fn data(&self) -> Vec<DataFile> {
        self.file().map(veil_program::Job::data).unwrap_or_default()
    }

    /// What the result is worth: the protocol, the corruptions that it holds against, and what is open to them.
    pub fn guarantee(&self) -> Guarantee {
        self.plan().job.guarantee()
    }

    /// What planner and engine see of it.
    pub fn spec(&self) -> &JobSpec {
        &self.plan().job
    }

    /// Its plan; of a job with queries, what participants know of it.
    pub fn plan(&self) -> &Arc<Plan> {
        self.0.passes.face()
    }

    /// What runs: one pass, or many.
    pub fn passes(&self) -> &Passes {
        &self.0.passes
    }

    /// The job file behind it.
    pub(crate) fn file(&self) -> Option<&veil_program::Job> {
        self.0.file.as_ref()
    }

    /// The roles of the participant of this name.
    pub(crate) fn roles(&self, name: &str) -> Result<Vec<Peer>, Error> {
        Ok(veil_runtime::roles(self.plan(), name)?)
    }

    /// Whether a role supplies values.
    pub(crate) fn supplies(&self, peer: Peer) -> bool {
        let blocks = self.spec().blocks.iter();
        let mut holders = blocks.flat_map(|block| &block.holders);
        holders.any(|holder| holder.peer() == Some(peer))
    }

    /// Whether something is opened to a role.
    pub(crate) fn receives(&self, peer: Peer) -> bool {
        let mut audiences = self.spec().audiences.iter();
        audiences.any(|audience| audience.includes(peer))
    }
}

fn plan(spec: Arc<JobSpec>, lanes: u16) -> Result<Passes, Error> {
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    Ok(Plan::new(spec, options)?.into())
}

/// Plans the passes of a job file.
fn passes(job: &veil_program::Job, lanes: u16) -> Result<Passes, Error> {
    let Some(queries) = job.queries() else {
        return plan(job.shared(), lanes);
    };
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let passes = &queries.physical().passes;
    let names = queries.names_of_passes();
    Ok(Passes::new(passes, job.shared(), names, options)?)
}

/// A job made of a circuit: who computes, who supplies which input, to whom which output is opened.
///
/// ```
/// use veilworks::{Builder, Computation, Per, Ring};
///
/// let mut circuit = Builder::new(Ring::Z64);
/// let [x, y] = ["x", "y"].map(|name| circuit.input(name, 1, Per::Row)[0]);
/// let product = circuit.mul(x, y);
/// circuit.output("z", &[product]);
/// let job = Computation::new("products", circuit.finish()?)
///     .parties(["a", "b", "c"])
///     .input("x", "ann")
///     .input("y", "bob")
///     .output("z", "eve", "the product of both values, for every row")
///     .rows(3)
///     .job()?;
/// assert_eq!(job.participants(), ["a", "b", "c", "ann", "bob", "eve"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Computation {
    name: String,
    circuit: Circuit,
    parties: Vec<String>,
    security: Option<Security>,
    inputs: Vec<(String, String)>,
    outputs: Vec<(String, String, String)>,
    rows: u64,
}

impl Computation {
    /// Of this circuit, which is computed in every row; with one row, unless [`Computation::rows`] says more.
    pub fn new(name: impl Into<String>, circuit: Circuit) -> Self {
        Computation {
            name: name.into(),
            circuit,
            parties: Vec::new(),
            security: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            rows: 1,
        }
    }

    /// Who computes: two, three or four parties.
    #[must_use]
    pub fn parties<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.parties = names.into_iter().map(Into::into).collect();
        self
    }

    /// The protocol and what it holds against; without it that of the number of parties: garbled circuits between two, replicated sharing among
    /// three, both against semi-honest parties, and sharing among four against a malicious one.
    #[must_use]
    pub const fn security(mut self, security: Security) -> Self {
        self.security = Some(security);
        self
    }

    /// The input port `port` is supplied by `owner`, a party or another name.
    #[must_use]
    pub fn input(mut self, port: impl Into<String>, owner: impl Into<String>) -> Self {
        self.inputs.push((port.into(), owner.into()));
        self
    }

    /// The output port `port` is opened to `recipient`, a party or another name; `what` says in a sentence what it is.
    #[must_use]
    pub fn output(
        mut self,
        port: impl Into<String>,
        recipient: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        self.outputs
            .push((port.into(), recipient.into(), what.into()));
        self
    }

    /// So many rows, at least 1.
    #[must_use]
    pub const fn rows(mut self, rows: u64) -> Self {
        self.rows = rows;
        self
    }

    /// The job.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] if a port has no owner or recipient or two, if a name is no port of the circuit, or if the job cannot be
    /// planned.
    pub fn job(self) -> Result<Job, Error> {
        if !(2..=4).contains(&self.parties.len()) {
            let message = format!(
                "`{}` has {} parties, and protocols are for two, three or four",
                self.name,
                self.parties.len()
            );
            return Err(Error::new(Code::Input, message));
        }
        let party = |name: &str| {
            let index = self.parties.iter().position(|party| party == name)?;
            Some(PartyId::FOUR[index])
        };
        let outside = |names: Vec<&String>| {
            let mut outside: Vec<String> = Vec::new();
            for name in names {
                if party(name).is_none() && !outside.contains(name) {
                    outside.push(name.clone());
                }
            }
            outside
        };
        let owners = outside(self.inputs.iter().map(|(_, owner)| owner).collect());
        let recipients = outside(self.outputs.iter().map(|(_, who, _)| who).collect());
        let at = |names: &[String], name: &str| {
            let index = names.iter().position(|other| other == name);
            index.and_then(|index| u16::try_from(index).ok())
        };
        let holder = |name: &str| match party(name) {
            Some(party) => Holder::Party(party),
            None => Holder::Owner(at(&owners, name).unwrap_or_default()),
        };
        let audience = |name: &str| match party(name) {
            Some(party) => Audience::Party(party),
            None => Audience::Recipient(at(&recipients, name).unwrap_or_default()),
        };
        let ports: Vec<&str> = self
            .circuit
            .inputs
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        let given: Vec<&str> = self.inputs.iter().map(|(port, _)| port.as_str()).collect();
        let holders = matched("input", "owner", &ports, &given)?;
        let ports: Vec<&str> = (self.circuit.outputs.iter().map(|p| p.name.as_str())).collect();
        let given: Vec<&str> = self
            .outputs
            .iter()
            .map(|(port, ..)| port.as_str())
            .collect();
        let audiences = matched("output", "recipient", &ports, &given)?;
        let holders: Vec<Holder> = (holders.iter())
            .map(|at| holder(&self.inputs[*at].1))
            .collect();
        let supplying = |rowwise: &Holder| {
            let ports = self.circuit.inputs.iter().zip(&holders);
            let mut own = ports.filter(|(port, _)| port.per == Per::Row);
            own.any(|(_, holder)| holder != rowwise)
        };
        let several = holders.first().is_some_and(supplying);
        let block = Block {
            name: "all".into(),
            rows: self.rows,
            holders: holders.clone(),
            stored: None,
            order: if several {
                Order::Agreed
            } else {
                Order::Unsaid
            },
        };
        let inputs = self.circuit.inputs.iter().zip(&holders);
        let ports_of: Vec<_> = inputs
            .map(|(port, holder)| (port.name.clone(), *holder, port.per))
            .collect();
        let spec = JobSpec {
            name: self.name.clone(),
            security: (self.security).unwrap_or_else(|| Security::among(self.parties.len())),
            schema: String::new(),
            totals: None,
            blocks: vec![block],
            audiences: (audiences.iter())
                .map(|at| audience(&self.outputs[*at].1))
                .collect(),
            opened: (audiences.iter())
                .map(|at| self.outputs[*at].2.clone())
                .collect(),
            inputs: (ports_of.into_iter())
                .map(|(port, holder, per)| InputSpec {
                    holder,
                    block: (per == Per::Row).then(|| "all".into()),
                    column: None,
                    port: Some(port),
                    format: "values of a program".into(),
                })
                .collect(),
            datasets: Vec::new(),
            keep: None,
            owners,
            recipients,
            parties: self.parties.clone(),
            circuit: self.circuit.clone(),
        };
        Job::of(spec)
    }
}

/// For each port of a circuit the index of what was given for it.
fn matched(kind: &str, role: &str, ports: &[&str], given: &[&str]) -> Result<Vec<usize>, Error> {
    let wrong = |message: String| {
        let help = format!("the circuit's {kind}s are: {}", ports.join(", "));
        Err(Error::new(Code::Input, message).with_help(help))
    };
    if let Some(unknown) = given.iter().find(|name| !ports.contains(name)) {
        return wrong(format!("the circuit has no {kind} `{unknown}`"));
    }
    let mut found = Vec::new();
    for port in ports {
        let mut all = (0..given.len()).filter(|at| given[*at] == *port);
        match (all.next(), all.next()) {
            (Some(at), None) => found.push(at),
            (None, _) => return wrong(format!("the {kind} `{port}` has no {role}")),
            (Some(_), Some(_)) => return wrong(format!("the {kind} `{port}` has two {role}s")),
        }
    }
    Ok(found)
}
