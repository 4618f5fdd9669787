//! A job file, checked, and its specification; its owners' data and its recipients' results.

mod ends;
mod job_files;
mod shadow;
mod words;

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use ends::{ClearAnswer, Sinks, Sources};
pub(crate) use job_files::JobFiles;
pub use job_files::Sent;
use veil_session::PartyId;

use crate::InputError;
#[cfg(feature = "columnar")]
use crate::MemoryTable;
use crate::{
    AlignKey, Gates, Intersection, JobError, JobProblem, Place, Queries, Resharing, Roles, Words,
    error::Fault,
    gates::Input,
    raw::{self, RawJob},
    roles::check_name,
    stats::{Opening, Stats},
};
use veil_job::passes::ProgramSpec;
use veil_job::{Adversary, Block, Holder, JobSpec, Keep, Security};

/// Bytes of a job file: ten thousand lines.
const LONGEST_JOB: u64 = 1 << 20;

/// What the text of a job is called that is in no file of its reader.
const SENT: &str = "the job file";

/// Files of this machine that replace those named in a job, or add to them: by owner and by the name of a block or of an input port.
pub type Files = BTreeMap<(String, String), PathBuf>;

/// A data file of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    /// Whose data.
    pub holder: Holder,
    /// The owner's name.
    pub owner: String,
    /// The block or the input port.
    pub what: String,
    /// Where it is on this machine, if that is known.
    pub path: Option<PathBuf>,
}

/// The kind of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Statistics over rows that stay where they are.
    Stats(Stats),
    /// A circuit on files.
    Circuit(Gates),
    /// A dataset that goes to other parties.
    Reshare(Resharing),
    /// Queries over tables, those of statistics among them.
    Query(Box<Queries>),
    /// Keys of two parties that meet.
    Intersection(Box<Intersection>),
}

/// A job: read, checked, and made into the specification that planner and engine need.
#[derive(Clone, Debug)]
pub struct Job {
    /// The folder that paths in the job are relative to; nothing where none of them is followed.
    base: Option<PathBuf>,
    roles: Roles,
    kind: Kind,
    spec: Arc<JobSpec>,
    opening: Option<Opening>,
    durable: bool,
    given: Files,
    #[cfg_attr(
        not(feature = "columnar"),
        expect(
            dead_code,
            reason = "tables are given in memory as Arrow batches alone"
        )
    )]
    memory: InMemory,
    align: Option<AlignKey>,
    /// The file's words about its security, and the words of the command line.
    said: Words,
    chosen: Words,
}

/// Tables that are given in memory, by owner and name.
#[derive(Clone, Debug, Default)]
struct InMemory {
    #[cfg(feature = "columnar")]
    tables: BTreeMap<(String, String), MemoryTable>,
}

/// The text of a job file, as long as one may be.
fn read_text(file: &Path) -> Result<String, JobError> {
    let unread = |error| JobError::new(file, None, JobProblem::Read(error));
    let handle = File::open(file).map_err(unread)?;
    let mut text = String::new();
    let read = handle.take(LONGEST_JOB + 1).read_to_string(&mut text);
    read.map_err(unread)?;
    Ok(text)
}

/// A query that is asked of the tables of a job file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Its text.
    pub sql: String,
    /// To whom its result is opened; the first recipient of the file, if nothing is said, else the first party.
    pub to: Option<String>,
    /// Groups of fewer rows are left out.
    pub min_count: Option<u32>,
}

impl Asked {
    fn put_into(&self, raw: &mut RawJob) {
        let at = |text: &String| toml::Spanned::new(0..0, text.clone());
        let first = raw.recipients.first().or(raw.parties.get_ref().first());
        let to = self.to.as_ref().map(at);
        let to = to.or_else(|| first.cloned());
        let words: Vec<String> = self
            .sql
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map(str::to_lowercase)
            .collect();
        raw.bound
            .retain(|bound| words.contains(bound.get_ref().of.get_ref()));
        // Of a job of statistics over tables its analyses are not asked either.
        if !raw.table.is_empty() {
            raw.kind = toml::Spanned::new(raw.kind.span(), "query".into());
            (raw.analysis, raw.most_opened) = (Vec::new(), None);
            raw.derived.clear();
        }
        raw.query.0 = vec![raw::RawQuery {
            name: at(&"query".into()),
            sql: at(&self.sql),
            to,
            keep: None,
            open_size: None,
            min_count: self.min_count.map(|count| toml::Spanned::new(0..0, count)),
            file: None,
            fit: None,
            apply: None,
        }];
    }
}

impl Job {
    /// Reads a job file. Paths in it are relative to its folder; paths in `given` replace them.
    ///
    /// # Errors
    /// [`JobProblem::Read`] if the file cannot be read; another [`JobError`] as of [`Job::parse`].
    pub fn load(file: &Path, given: Files) -> Result<Self, JobError> {
        let text = read_text(file)?;
        Self::parse(&text, file, given)
    }

    /// Reads the tables of a job file with queries, and asks them this query instead of the file's own. Of the file's bounds those remain that are of
    /// relations which the query names.
    ///
    /// # Errors
    /// As of [`Job::load`].
    pub fn asking(file: &Path, given: Files, asked: &Asked) -> Result<Self, JobError> {
        let text = read_text(file)?;
        let folder = JobFiles::Folder(file.parent().unwrap_or(Path::new("")));
        let checked = |mut raw: RawJob| {
            asked.put_into(&mut raw);
            Self::check(&raw, folder, given)
        };
        raw::read(&text).and_then(checked).map_err(|fault| {
            // A place in the query is none of the file.
            let asked = matches!(
                fault.problem,
                JobProblem::Query(_) | JobProblem::Unplanned(_) | JobProblem::Collisions(_)
            );
            let place = (!asked).then(|| Place::of(&text, fault.span));
            JobError::new(file, place, fault.problem)
        })
    }

    /// Reads the text of a job file that is, or could be, at `file`.
    ///
    /// # Errors
    /// [`JobError`] at the place in the text where the job is not understood, contradicts itself or asks for what no protocol
    /// does; without a place if the text is longer than 1 MiB ([`JobProblem::TooLong`]). [`JobProblem::Circuit`] if the circuit
    /// cannot be read or made; [`JobProblem::Data`], [`JobProblem::RowsDiffer`] and [`JobProblem::RowsUnknown`] if the number of
    /// rows has to come from data files and does not.
    pub fn parse(text: &str, file: &Path, given: Files) -> Result<Self, JobError> {
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::read(text, file, JobFiles::Folder(folder), false, given)
    }

    /// Reads a foreign job, with the files that came with it, and touches no file of this machine: its circuit is among those files, its
    /// rows are declared, no path in it leads out of its folder, and none is followed.
    ///
    /// # Errors
    /// [`JobError`] as of [`Job::parse`], and for a path that leads out of the job; the sender may read [`JobError::for_sender`].
    pub fn sent(text: &str, files: &Sent) -> Result<Self, JobError> {
        Self::read(
            text,
            Path::new(SENT),
            JobFiles::Sent(files),
            true,
            Files::new(),
        )
    }

    /// Reads a job that was taken in before, as [`Job::sent`] does, with the files that were kept with it. Its data are where `given` says,
    /// and nowhere else, whatever the job says of them.
    ///
    /// # Errors
    /// As for a job file.
    pub fn kept(text: &str, files: &Sent, given: Files) -> Result<Self, JobError> {
        Self::read(text, Path::new(SENT), JobFiles::Sent(files), false, given)
    }

    /// The files that the text of a job names, circuit and models: they have to be sent or kept with the job.
    pub fn named_files(text: &str) -> Vec<String> {
        job_files::named_files(text)
    }

    /// Reads the text of a job file that could be at `file`; models that are among `beside` are taken from there.
    ///
    /// # Errors
    /// As of [`Job::parse`].
    pub fn parse_with(text: &str, file: &Path, beside: &Sent) -> Result<Self, JobError> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let files = JobFiles::With(folder, beside);
        Self::read(text, file, files, false, Files::new())
    }

    fn read(
        text: &str,
        file: &Path,
        job_files: JobFiles<'_>,
        strict: bool,
        given: Files,
    ) -> Result<Self, JobError> {
        let bytes = text.len() as u64;
        if bytes > LONGEST_JOB {
            let problem = JobProblem::TooLong {
                bytes,
                limit: LONGEST_JOB,
            };
            return Err(JobError::new(file, None, problem));
        }
        let checked = |raw: RawJob| {
            if let (true, JobFiles::Sent(files)) = (strict, job_files) {
                job_files::check(&raw, files)?;
            }
            Self::check(&raw, job_files, given)
        };
        raw::read(text)
            .and_then(checked)
            .map_err(|Fault { span, problem }| {
                JobError::new(file, Some(Place::of(text, span)), problem)
            })
    }

    fn check(raw: &RawJob, job_files: JobFiles<'_>, given: Files) -> Result<Self, Fault> {
        check_name("job", &raw.name)?;
        let roles = Roles::parse(raw)?;
        let mut job = match raw.kind.get_ref().as_str() {
            "stats" if !raw.table.is_empty() => Self::query(raw, roles, job_files, given)?,
            "stats" => Self::stats(raw, roles, job_files, given)?,
            "circuit" => Self::circuit(raw, roles, job_files, given)?,
            "reshare" => Self::reshare(raw, roles, job_files, given)?,
            "query" => Self::query(raw, roles, job_files, given)?,
            "psi" => Self::intersection(raw, roles, job_files, given)?,
            other => {
                return Err(Fault::new(
                    raw.kind.span(),
                    JobProblem::Kind(other.to_owned()),
                ));
            }
        };
        job.durable = raw.durable;
        job.said = words::of(raw)?;
        let security = job
            .meant(job.said)
            .map_err(|problem| words::at(raw, problem))?;
        job.secure(security)
            .map_err(|problem| words::at(raw, problem))?;
        let known = job.data();
        for (owner, what) in job.given.keys() {
            if !known
                .iter()
                .any(|data| data.owner == *owner && data.what == *what)
            {
                let known = known
                    .iter()
                    .filter(|data| data.owner == *owner)
                    .map(|data| data.what.clone())
                    .collect();
                let error = InputError::NoSuchData {
                    owner: owner.clone(),
                    what: what.clone(),
                    known,
                };
                return Err(Fault::new(
                    raw.name.span(),
                    JobProblem::Data(error.to_string()),
                ));
            }
        }
        Ok(job)
    }

    /// A job of a kind, before its words are read.
    fn of(
        job_files: JobFiles<'_>,
        roles: Roles,
        (kind, spec): (Kind, Arc<JobSpec>),
        given: Files,
    ) -> Self {
        Self {
            base: job_files.folder(),
            roles,
            kind,
            spec,
            opening: None,
            durable: false,
            given,
            memory: InMemory::default(),
            align: None,
            said: Words::default(),
            chosen: Words::default(),
        }
    }

    fn stats(
        raw: &RawJob,
        roles: Roles,
        job_files: JobFiles<'_>,
        given: Files,
    ) -> Result<Self, Fault> {
        let missing = [
            ("[[column]]", raw.column.is_empty()),
            ("[[block]]", raw.block.is_empty()),
            (
                "[[analysis]]",
                raw.analysis.is_empty() && raw.keep.is_none(),
            ),
        ];
        sections(
            raw,
            "stats",
            &[
                "[[column]]",
                "[[block]]",
                "[[analysis]]",
                "[keep]",
                "most_opened",
            ],
            &missing,
        )?;
        let stats = Stats::parse(raw, &roles)?;
        let two = roles.parties.len() == PartyId::TWO.len();
        let kept = raw.keep.as_ref().map(|_| "[keep]");
        let mut blocks = stats.blocks.iter();
        let loaded = blocks.any(|block| block.stored.is_some());
        if let Some(what) = kept.or(loaded.then_some("stored")).filter(|_| two) {
            return Err(Fault::new(raw.parties.span(), JobProblem::NoShares(what)));
        }
        let made = if two {
            stats.lower_bits()
        } else {
            stats.lower()
        };
        let made = made.map_err(|(analysis, problem)| {
            let analysis = raw.analysis.get(analysis).map(toml::Spanned::span);
            Fault::new(analysis.unwrap_or(raw.name.span()), problem)
        })?;
        let blocks = stats.shared(&made.opening);
        let circuit = made.circuit;
        let mut whole = roles.spec(raw, circuit, blocks, made.audiences, made.opened);
        whole.schema = stats.schema();
        whole.totals = made.totals;
        whole.inputs = stats.inputs();
        whole.datasets = stats.datasets(&made.opening);
        let schema = || whole.schema.clone();
        whole.keep = stats.keep.as_ref().map(|keep| Keep {
            name: keep.name.clone(),
            schema: schema(),
        });
        let opening = Some(made.opening);
        Ok(Self {
            opening,
            ..Self::of(
                job_files,
                roles,
                (Kind::Stats(stats), Arc::new(whole)),
                given,
            )
        })
    }

    fn circuit(
        raw: &RawJob,
        roles: Roles,
        job_files: JobFiles<'_>,
        given: Files,
    ) -> Result<Self, Fault> {
        let missing = [
            ("[circuit]", raw.circuit.is_none()),
            ("[[input]]", raw.input.is_empty()),
            ("[[output]]", raw.output.is_empty()),
        ];
        sections(
            raw,
            "circuit",
            &["[circuit]", "[[input]]", "[[output]]"],
            &missing,
        )?;
        let section = raw.circuit.as_ref().expect("checked: the section is there");
        let base = job_files.folder();
        let path = |input: &Input| locate(&roles, base.as_deref(), &given, input);
        let (gates, circuit) = Gates::parse(raw, section, &roles, job_files, path)?;
        let holders = gates.inputs.iter().map(|input| input.holder).collect();
        let blocks = vec![Block {
            name: "rows".into(),
            rows: gates.rows,
            holders,
            stored: None,
            order: gates.order(),
        }];
        let audiences = gates.outputs.iter().map(|output| output.to).collect();
        let ring = circuit.ring.bits();
        let sentence = |output: &crate::gates::Output| {
            let what = match (ring, output.width / ring) {
                (1, bits) => format!("{bits} bits"),
                (bits, 1) => format!("an integer of {bits} bits"),
                (bits, many) => format!("{many} integers of {bits} bits"),
            };
            format!(
                "`{}` of every row: {what} of each of {} rows",
                output.name, gates.rows
            )
        };
        let opened = gates.outputs.iter().map(sentence).collect();
        let whole = JobSpec {
            inputs: gates.inputs.iter().map(Input::spec).collect(),
            ..roles.spec(raw, circuit, blocks, audiences, opened)
        };
        Ok(Self::of(
            job_files,
            roles,
            (Kind::Circuit(gates), Arc::new(whole)),
            given,
        ))
    }

    fn reshare(
        raw: &RawJob,
        roles: Roles,
        job_files: JobFiles<'_>,
        given: Files,
    ) -> Result<Self, Fault> {
        sections(
            raw,
            "reshare",
            &["[reshare]"],
            &[("[reshare]", raw.reshare.is_none())],
        )?;
        let section = raw.reshare.as_ref().expect("checked: the section is there");
        let resharing = Resharing::parse(raw, section, &roles)?;
        let spec = resharing.spec(raw.name.get_ref(), &roles);
        Ok(Self::of(
            job_files,
            roles,
            (Kind::Reshare(resharing), Arc::new(spec)),
            given,
        ))
    }

    fn intersection(
        raw: &RawJob,
        roles: Roles,
        job_files: JobFiles<'_>,
        given: Files,
    ) -> Result<Self, Fault> {
        let missing = [
            ("[[table]]", raw.table.is_empty()),
            ("[intersection]", raw.intersection.is_none()),
        ];
        sections(raw, "psi", &["[[table]]", "[intersection]"], &missing)?;
        let section = raw
            .intersection
            .as_ref()
            .expect("checked: the section is there");
        let of = Intersection::parse(raw, section, &roles)?;
        let opened = of.sentences(&roles.parties);
        let mut spec = roles.spec(raw, of.circuit(), of.blocks(), of.audiences(), opened);
        spec.inputs = of.inputs();
        spec.schema = of.schema();
        Ok(Self::of(
            job_files,
            roles,
            (Kind::Intersection(Box::new(of)), Arc::new(spec)),
            given,
        ))
    }

    fn query(
        raw: &RawJob,
        roles: Roles,
        job_files: JobFiles<'_>,
        given: Files,
    ) -> Result<Self, Fault> {
        if raw.kind.get_ref() == "stats" {
            let own = [
                "[[table]]",
                "[[query]]",
                "[[bound]]",
                "[model]",
                "[function]",
                "salt",
                "[[analysis]]",
                "[derived]",
                "most_opened",
            ];
            let missing = [("[[analysis]]", raw.analysis.is_empty())];
            sections(raw, "stats (over tables)", &own, &missing)?;
        } else {
            let own = [
                "[[table]]",
                "[[query]]",
                "[[bound]]",
                "[model]",
                "[function]",
                "salt",
            ];
            let missing = [
                ("[[table]]", raw.table.is_empty()),
                ("[[query]]", raw.query.0.is_empty()),
            ];
            sections(raw, "query", &own, &missing)?;
        }
        let stored = |table: &toml::Spanned<raw::RawTable>| table.get_ref().stored.is_some();
        let loads = raw.table.iter().any(stored).then_some("stored");
        let keeps = raw.query.0.iter().any(|query| query.keep.is_some());
        let two = roles.parties.len() == PartyId::TWO.len();
        if let Some(what) = keeps.then_some("keep").or(loads).filter(|_| two) {
            return Err(Fault::new(raw.parties.span(), JobProblem::NoShares(what)));
        }
        if raw.durable {
            let what = match raw.kind.get_ref().as_str() {
                "stats" => "a stats job over tables",
                _ => "a query job",
            };
            let problem = JobProblem::NoUse {
                what: what.into(),
                field: "durable",
            };
            return Err(Fault::new(raw.kind.span(), problem));
        }
        let queries = Queries::parse(raw, &roles, job_files)?;
        let spec = queries.described(&roles).map(Arc::new);
        let spec = spec.ok_or_else(|| {
            let problem = JobProblem::Unplanned("it has no passes".into());
            Fault::new(raw.name.span(), problem)
        })?;
        Ok(Self::of(
            job_files,
            roles,
            (Kind::Query(Box::new(queries)), spec),
            given,
        ))
    }

    /// The passes of a job with queries; nothing for jobs of one circuit, which are one pass.
    pub fn passes(&self) -> Option<&ProgramSpec> {
        self.queries().map(|queries| &queries.physical().passes)
    }

    /// What a job with queries is about.
    pub fn queries(&self) -> Option<&Queries> {
        match &self.kind {
            Kind::Query(queries) => Some(queries),
            Kind::Stats(_) | Kind::Circuit(_) | Kind::Reshare(_) | Kind::Intersection(_) => None,
        }
    }

    /// How many numbers a job with analyses opens at most, and its own limit of them; nothing for other jobs.
    pub fn opened_numbers(&self) -> Option<(u64, u64)> {
        match &self.kind {
            Kind::Stats(stats) => Some((self.opening.as_ref()?.numbers(), stats.most_opened)),
            Kind::Query(queries) => Some((queries.numbers(), queries.most_opened?)),
            Kind::Circuit(_) | Kind::Reshare(_) | Kind::Intersection(_) => None,
        }
    }

    /// Rows of all owners' data: those of the plan, except where two parties compute statistics, whose one row stands for all.
    pub fn rows(&self) -> u64 {
        match &self.kind {
            Kind::Stats(stats) => stats.rows(),
            Kind::Circuit(_) | Kind::Reshare(_) | Kind::Query(_) => self.spec.rows(),
            Kind::Intersection(of) => of.keys().iter().sum(),
        }
    }

    /// A statistics job of two parties as so many would compute it, three or four: with parties more, who are called what they are. Nothing
    /// for other jobs, nor where more parties do not compute it.
    pub fn among_more(&self, parties: usize) -> Option<Self> {
        let Kind::Stats(stats) = &self.kind else {
            return None;
        };
        let two = PartyId::TWO.len();
        if self.roles.parties.len() != two || !(two..=PartyId::FOUR.len()).contains(&parties) {
            return None;
        }
        let made = stats.lower().ok()?;
        let mut roles = self.roles.clone();
        for number in ["third", "fourth"].into_iter().take(parties - two) {
            roles.parties.push(format!("{number} party"));
        }
        let against = match self.spec.security.adversary {
            Adversary::SemiHonest if parties < PartyId::FOUR.len() => Adversary::SemiHonest,
            _ => Adversary::Malicious,
        };
        let spec = JobSpec {
            parties: roles.parties.clone(),
            security: Security::among(parties).against(against),
            blocks: stats.shared(&made.opening),
            circuit: made.circuit,
            totals: made.totals,
            audiences: made.audiences,
            opened: made.opened,
            ..(*self.spec).clone()
        };
        Some(Self {
            roles,
            spec: Arc::new(spec),
            opening: Some(made.opening),
            ..self.clone()
        })
    }

    /// Whether the job's results are statistics, over tables or over rows that stay where they are.
    pub fn is_statistics(&self) -> bool {
        match &self.kind {
            Kind::Stats(_) => true,
            Kind::Query(queries) => !queries.analyses().is_empty(),
            Kind::Circuit(_) | Kind::Reshare(_) | Kind::Intersection(_) => false,
        }
    }

    /// Who takes part.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The kind of the job: statistics, a circuit, resharing, queries, or an intersection.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether the job runs as two plans ([`JobSpec::stages`]), so that an interrupted one goes on without its owners.
    pub const fn is_durable(&self) -> bool {
        self.durable
    }

    /// What planner and engine need; of a job with queries, whose [passes](Job::passes) they need, what participants know of it.
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// The same, for a plan: a circuit may take as much memory as everything else.
    pub fn shared(&self) -> Arc<JobSpec> {
        Arc::clone(&self.spec)
    }
}

impl Roles {
    fn spec(
        &self,
        raw: &RawJob,
        circuit: veil_circuit::Circuit,
        blocks: Vec<Block>,
        audiences: Vec<veil_job::Audience>,
        opened: Vec<String>,
    ) -> JobSpec {
        JobSpec {
            name: raw.name.get_ref().clone(),
            schema: String::new(),
            owners: self.outside_owners(),
            parties: self.parties.clone(),
            recipients: self.outside_recipients(),
            security: veil_job::Security::among(self.parties.len()),
            circuit,
            totals: None,
            blocks,
            audiences,
            opened,
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        }
    }
}

/// Where the file of an input is on this machine.
fn locate(roles: &Roles, base: Option<&Path>, given: &Files, input: &Input) -> Option<PathBuf> {
    let given = given
        .get(&(roles.holder_name(input.holder), input.port.clone()))
        .cloned();
    given.or_else(|| Some(base?.join(input.file.as_ref()?)))
}

/// A job has the sections `own` of its kind, and no others.
fn sections(
    raw: &RawJob,
    kind: &'static str,
    own: &[&str],
    missing: &[(&'static str, bool)],
) -> Result<(), Fault> {
    let all = [
        ("[[column]]", raw.column.first().map(toml::Spanned::span)),
        ("[[block]]", raw.block.first().map(toml::Spanned::span)),
        (
            "[[analysis]]",
            raw.analysis.first().map(toml::Spanned::span),
        ),
        ("[keep]", raw.keep.as_ref().map(toml::Spanned::span)),
        ("[circuit]", raw.circuit.as_ref().map(toml::Spanned::span)),
        ("[[input]]", raw.input.first().map(toml::Spanned::span)),
        ("[[output]]", raw.output.first().map(toml::Spanned::span)),
        ("[reshare]", raw.reshare.as_ref().map(toml::Spanned::span)),
        ("[[table]]", raw.table.first().map(toml::Spanned::span)),
        (
            "[[query]]",
            raw.query.0.first().map(|query| query.name.span()),
        ),
        ("[[bound]]", raw.bound.first().map(toml::Spanned::span)),
        ("[model]", raw.model.keys().next().map(toml::Spanned::span)),
        (
            "[function]",
            raw.function.keys().next().map(toml::Spanned::span),
        ),
        ("salt", raw.salt.as_ref().map(toml::Spanned::span)),
        (
            "[intersection]",
            raw.intersection.as_ref().map(toml::Spanned::span),
        ),
        (
            "most_opened",
            raw.most_opened.as_ref().map(toml::Spanned::span),
        ),
        (
            "[derived]",
            raw.derived.keys().next().map(toml::Spanned::span),
        ),
    ];
    let mut others = all
        .into_iter()
        .filter(|(section, _)| !own.contains(section));
    if let Some((section, span)) = others.find_map(|(section, span)| Some((section, span?))) {
        return Err(Fault::new(span, JobProblem::WrongSection { section, kind }));
    }
    match missing.iter().find(|(_, missing)| *missing) {
        Some(&(section, _)) => Err(Fault::new(
            raw.kind.span(),
            JobProblem::NoSection { section, kind },
        )),
        None => Ok(()),
    }
}
