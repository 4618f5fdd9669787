//! How a run fails: what happened, where, and what to do.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use veil_engine::{Abort, local};
use veil_job::{DataError, StockError};
use veil_link::LinkError;
use veil_link::tls::{IdentityError, SetupError};
use veil_program::{AlignKeyError, CellProblem, InputError, JobError, RangeError};
use veil_protocol::passes::ProgramError;
use veil_protocol::{Plan, PlanError};
use veil_runtime::{PartError, RunError, who_is_who};
use veil_session::Peer;

/// The kind of an [`Error`]; the command `veil` ends with it as its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Anything else: the run was stopped, an output cannot be written.
    Other = 1,
    /// The call makes no sense: of the command, its command line.
    Usage = 2,
    /// A job, party, circuit or data file is wrong.
    Input = 3,
    /// A participant cheated, a key was another than the pinned one, or a comparison failed.
    Check = 4,
    /// A link failed, or a time-out passed.
    Link = 5,
    /// A device failed, or is not there.
    Device = 6,
}

/// Why a call failed: the message says where and what, [`Error::help`] what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    message: String,
    help: String,
    excerpt: Option<Excerpt>,
    place: Option<Place>,
    range: Option<Refused>,
    cells: Vec<CellProblem>,
    table: Option<PathBuf>,
    about: About,
}

/// An operation of a query that is refused for the ranges of its operands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refused {
    /// The operation, as SQL writes it: `*`, `ln`, `sum`.
    pub operation: String,
    /// What is wrong, with the ranges, in a sentence.
    pub what: String,
    /// Of each operand its kind, `integer`, `decimal` or `date`, its least and its greatest value.
    pub ranges: Vec<(String, String, String)>,
    /// What to write instead, in SQL: each alone helps.
    pub remedies: Vec<String>,
    /// The same in Python, and in one sentence.
    pub in_python: (Vec<String>, String),
}

impl From<&RangeError> for Refused {
    fn from(error: &RangeError) -> Self {
        let ranges = error.ranges().into_iter();
        let (remedies, operands) = (error.remedies.iter(), &error.operands);
        let python = remedies.clone().map(|remedy| remedy.python(operands));
        Self {
            operation: error.operation.to_owned(),
            what: error.to_string(),
            ranges: ranges
                .map(|(kind, least, greatest)| (kind.to_owned(), least, greatest))
                .collect(),
            remedies: remedies.map(|remedy| remedy.sql(operands)).collect(),
            in_python: (python.collect(), error.instead_in_python()),
        }
    }
}

/// What a program may have to know of an error, beside its [`Code`]: names of participants, as the job has them. What an error is not about is
/// empty.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct About {
    /// Who may have cheated: of two whose messages contradict each other, both.
    pub suspects: Vec<String>,
    /// Who did not come, or of whom nothing came for too long.
    pub waits_for: Vec<String>,
    /// With whom the link was lost, or who gave up.
    pub peer: Option<String>,
    /// The message that was under way on it.
    pub step: Option<String>,
    /// The rule of the policy that refuses the job.
    pub rule: Option<String>,
    /// Whether a person refuses the job.
    pub refused: bool,
    /// Whether the job is not approved here.
    pub unapproved: bool,
}

impl About {
    /// Those of a run that ended at a participant of `plan`.
    fn of_abort(plan: &Plan, abort: &Abort) -> Self {
        let mut about = About::default();
        match abort {
            Abort::Cheated { suspects, .. } => about.suspects = names(plan, suspects),
            Abort::SetUp { peer, .. } => about.suspects = names(plan, &[*peer]),
            Abort::Told { by, .. } => about.peer = names(plan, &[*by]).pop(),
            Abort::Link(LinkError { peer, at, .. }) => {
                about.peer = names(plan, &[*peer]).pop();
                about.step = at.as_ref().map(ToString::to_string);
            }
            Abort::Stalled { waits, .. } => {
                let peers: Vec<Peer> = waits.iter().map(|wait| wait.peer).collect();
                about.waits_for = names(plan, &peers);
            }
            Abort::Unmet { peers } => about.waits_for = names(plan, peers),
            _ => {}
        }
        about
    }

    /// Those of a connection that was not made.
    fn of_setup(plan: &Plan, error: &SetupError) -> Self {
        let mut about = About::default();
        match error {
            SetupError::TimedOut { peers, .. } => about.waits_for = names(plan, peers),
            SetupError::WrongKey { peer, .. } => about.suspects = names(plan, &[*peer]),
            SetupError::OurKey { peer, .. }
            | SetupError::Tls { peer, .. }
            | SetupError::Refused { peer, .. } => about.peer = names(plan, &[*peer]).pop(),
            _ => {}
        }
        about
    }
}

/// The names of participants, each once, in their order.
fn names(plan: &Plan, peers: &[Peer]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for peer in peers {
        let name = veil_engine::name_of(plan, *peer);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Where in a text the fault is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The query whose text it is; nothing for the job file's.
    pub query: Option<String>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The part of a file that is at fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// The file.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The bytes of the text that are at fault.
    pub span: Range<usize>,
}

impl Error {
    /// An error with a message that says where and what.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            code,
            message: message.into(),
            help: String::new(),
            excerpt: None,
            place: None,
            range: None,
            cells: Vec::new(),
            table: None,
            about: About::default(),
        }))
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = help.into();
        self
    }

    /// Adds a part of the file at fault.
    #[must_use]
    pub fn showing(mut self, excerpt: Excerpt) -> Self {
        self.0.excerpt = Some(excerpt);
        self
    }

    /// Adds what a program may have to know.
    #[must_use]
    pub fn with_about(mut self, about: About) -> Self {
        self.0.about = about;
        self
    }

    /// What a program may have to know of it.
    pub fn about(&self) -> &About {
        &self.0.about
    }

    /// Where in the text of a query, or of the job file, the fault is, if it is in one.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The operation of a query that is refused for the ranges of its operands, if the error is one.
    pub fn range(&self) -> Option<&Refused> {
        self.0.range.as_ref()
    }

    /// The cells of a table at fault, as its owner may read them: the first of them, if there are many.
    pub fn cells(&self) -> &[CellProblem] {
        &self.0.cells
    }

    /// The file of the table whose [cells](Error::cells) are at fault, or what messages call it.
    pub fn table(&self) -> Option<&Path> {
        self.0.table.as_deref()
    }

    /// The kind.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What to do; empty if the message says it.
    pub fn help(&self) -> &str {
        &self.0.help
    }

    /// The part of the file at fault, if there is one.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.0.excerpt.as_ref()
    }

    /// A run failed at a participant of `plan`.
    pub fn abort(plan: &Plan, at: Peer, abort: &Abort) -> Self {
        let code = match abort {
            Abort::Cheated { .. } | Abort::SetUp { .. } => Code::Check,
            Abort::Stock(error) => match &**error {
                StockError::Forked { .. } | StockError::Word => Code::Check,
                _ => Code::Input,
            },
            Abort::Device(_) => Code::Device,
            Abort::Data(_) | Abort::Misaligned { .. } | Abort::Claim { .. } => Code::Input,
            Abort::Told { .. } | Abort::Link(_) | Abort::Stalled { .. } => Code::Link,
            _ => Code::Other,
        };
        let message = format!("{}: {abort}", veil_engine::name_of(plan, at));
        let help = who_is_who(plan, &message);
        let about = About::of_abort(plan, abort);
        Self::new(code, message).with_help(help).with_about(about)
    }

    /// All participants were in this process, and the run failed.
    pub fn local(plan: &Plan, failure: &local::Failure) -> Self {
        let (peer, abort) = failure.first();
        Self::abort(plan, peer, abort)
    }

    /// Participants could not be connected.
    pub fn setup(plan: &Plan, error: &SetupError) -> Self {
        let code = match error {
            SetupError::WrongKey { .. } | SetupError::OurKey { .. } => Code::Check,
            SetupError::NoPin { .. } | SetupError::Plan { .. } | SetupError::Link { .. } => {
                Code::Input
            }
            _ => Code::Link,
        };
        let message = error.to_string();
        let help = who_is_who(plan, &message);
        let about = About::of_setup(plan, error);
        Self::new(code, message).with_help(help).with_about(about)
    }

    /// A run failed at the participant `at`, before or after all had met.
    pub fn run(plan: &Plan, at: Peer, error: &RunError) -> Self {
        match error {
            RunError::Setup(error) => Self::setup(plan, error),
            RunError::Abort(abort) => Self::abort(plan, at, abort),
        }
    }

    /// The run was stopped by [`Running::stop`](crate::Running::stop).
    pub(crate) fn stopped() -> Self {
        Self::new(
            Code::Other,
            "stopped; the other participants were told, nothing was published",
        )
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        let mut failure = Self::new(Code::Input, error.to_string());
        failure.0.place = place(&error);
        failure.0.range = error.range().map(Refused::from);
        let text = std::fs::read_to_string(&error.file).ok();
        let shown = text.and_then(|text| Some((error.span_in(&text)?, text)));
        match shown {
            Some((span, text)) => failure.showing(Excerpt {
                file: error.file.display().to_string(),
                text,
                span,
            }),
            None => failure,
        }
    }
}

impl From<PartError> for Error {
    fn from(error: PartError) -> Self {
        Self::new(Code::Input, error.to_string())
    }
}

/// The place in a query's text, if the fault is in one, else in the job file's.
fn place(error: &JobError) -> Option<Place> {
    if let Some((query, line, column)) = error.in_query() {
        return Some(Place {
            query: Some(query.to_owned()),
            line: line as usize,
            column: column as usize,
        });
    }
    error.place.as_ref().map(|place| Place {
        query: None,
        line: place.line,
        column: place.column,
    })
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        let mut failure = Self::new(Code::Input, error.to_string());
        if let DataError::Own { error, .. } = &error
            && let Some(InputError::Cells { file, problems, .. }) = error.downcast_ref()
        {
            failure.0.table = Some(file.clone());
            failure.0.cells.clone_from(problems);
        }
        failure
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        DataError::from(error).into()
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::new(Code::Input, format!("the job cannot be planned: {error}"))
    }
}

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::Plan(error) => error.into(),
            error => Self::new(Code::Input, format!("the job cannot be planned: {error}")),
        }
    }
}

impl From<AlignKeyError> for Error {
    fn from(error: AlignKeyError) -> Self {
        let exists = matches!(&error, AlignKeyError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists);
        let help = if exists {
            "a key is never overwritten: choose another file, or use the key that is there"
        } else {
            ""
        };
        Self::new(Code::Input, error.to_string()).with_help(help)
    }
}

impl From<IdentityError> for Error {
    fn from(error: IdentityError) -> Self {
        let code = if matches!(error, IdentityError::Provider(_)) {
            Code::Other
        } else {
            Code::Input
        };
        let missing = matches!(&error, IdentityError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
        let help = if missing {
            "put the key back from a copy of the home; without one, make a new home and be invited again"
        } else {
            ""
        };
        Self::new(code, error.to_string()).with_help(help)
    }
}
