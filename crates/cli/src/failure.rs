//! How a command fails: what happened, where, what to do, and the exit code that scripts see.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, MietteHandlerOpts, NamedSource, SourceCode};
use veil_engine::{Abort, local};
use veil_job::DataError;
use veil_link::tls::{IdentityError, SetupError};
use veil_node::participant::{PartError, who_is_who};
use veil_program::{AlignKeyError, JobError};
use veil_protocol::{Plan, PlanError};
use veil_session::Peer;
use veil_store::StoreError;

/// What an exit code means. 0 is success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Anything else: a signal, an output that cannot be written.
    Other = 1,
    /// The command line makes no sense. `clap` uses the same.
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

impl Code {
    /// The code that another process ended with.
    pub(crate) fn from_number(number: u8) -> Self {
        let all = [
            Code::Usage,
            Code::Input,
            Code::Check,
            Code::Link,
            Code::Device,
        ];
        all.into_iter()
            .find(|code| *code as u8 == number)
            .unwrap_or(Code::Other)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    message: String,
    help: Option<String>,
    /// The file at fault and the bytes of it to show.
    source: Option<(NamedSource<String>, std::ops::Range<usize>)>,
}

impl Failure {
    /// A failure with a message that says where, what, and what to do.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure(Box::new(Inner {
            code,
            message: message.into(),
            help: None,
            source: None,
        }))
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into()).filter(|help: &String| !help.is_empty());
        self
    }

    /// Shows a part of the file at fault.
    #[must_use]
    pub fn showing(mut self, name: &str, text: String, span: std::ops::Range<usize>) -> Self {
        let end = text.len();
        let span = span.start.min(end)..span.end.min(end);
        self.0.source = Some((NamedSource::new(name, text), span));
        self
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// A word for the cause, for logs.
    pub(crate) fn cause(&self) -> &'static str {
        match self.code() {
            Code::Check => "check",
            Code::Input => "input",
            Code::Link => "link",
            Code::Device => "device",
            Code::Usage | Code::Other => "other",
        }
    }

    /// What to do, if the message does not say.
    pub(crate) fn advice(&self) -> &str {
        self.0.help.as_deref().unwrap_or_default()
    }

    /// What happened, and what to do, without a break.
    pub(crate) fn in_a_line(&self) -> String {
        match self.advice() {
            "" => self.to_string(),
            advice => format!("{self} ({advice})"),
        }
    }

    /// The run was ended by a signal.
    pub(crate) fn stopped() -> Self {
        Self::new(
            Code::Other,
            "stopped by a signal; the other participants were told, nothing was published",
        )
    }

    /// A run failed at a participant of `plan`.
    pub(crate) fn abort(plan: &Plan, at: Peer, abort: &Abort) -> Self {
        let code = match abort {
            Abort::Cheated { .. } | Abort::SetUp { .. } => Code::Check,
            Abort::Device(_) => Code::Device,
            Abort::Data(_) | Abort::Misaligned { .. } => Code::Input,
            Abort::Told { .. } | Abort::Link(_) | Abort::Stalled { .. } => Code::Link,
            _ => Code::Other,
        };
        let message = format!("{}: {abort}", veil_engine::name_of(plan, at));
        let help = who_is_who(plan, &message);
        Self::new(code, message).help(help)
    }

    /// All participants were in this process, and the run failed.
    pub(crate) fn local(plan: &Plan, failure: &local::Failure) -> Self {
        let (peer, abort) = failure.first();
        Self::abort(plan, peer, abort)
    }

    /// Participants could not be connected.
    pub(crate) fn setup(plan: &Plan, error: &SetupError) -> Self {
        let code = match error {
            SetupError::WrongKey { .. } | SetupError::OurKey { .. } => Code::Check,
            SetupError::NoPin { .. } | SetupError::Plan { .. } | SetupError::Link { .. } => {
                Code::Input
            }
            _ => Code::Link,
        };
        let message = error.to_string();
        let help = who_is_who(plan, &message);
        Self::new(code, message).help(help)
    }
}

impl From<PartError> for Failure {
    fn from(error: PartError) -> Self {
        Self::new(Code::Input, error.to_string())
    }
}

impl From<veil_node::FiledError> for Failure {
    fn from(error: veil_node::FiledError) -> Self {
        match error {
            veil_node::FiledError::Job(error) => error.into(),
            error => Failure::new(Code::Input, error.to_string()),
        }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        let failure = Self::new(Code::Input, error.to_string());
        match (&error.place, std::fs::read_to_string(&error.file)) {
            (Some(place), Ok(text)) => {
                failure.showing(&error.file.display().to_string(), text, place.span.clone())
            }
            _ => failure,
        }
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::new(Code::Input, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Code::Input, error.to_string())
    }
}

impl From<AlignKeyError> for Failure {
    fn from(error: AlignKeyError) -> Self {
        let exists = matches!(&error, AlignKeyError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists);
        let help = if exists {
            "a key is never overwritten: choose another file, or use the key that is there"
        } else {
            ""
        };
        Self::new(Code::Input, error.to_string()).help(help)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(Code::Input, format!("the job cannot be planned: {error}"))
    }
}

impl From<IdentityError> for Failure {
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
        Self::new(code, error.to_string()).help(help)
    }
}

impl From<miette::Report> for Failure {
    fn from(report: miette::Report) -> Self {
        let chain: Vec<String> = report.chain().map(ToString::to_string).collect();
        Self::new(Code::Other, chain.join(": "))
    }
}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0
            .help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0
            .source
            .as_ref()
            .map(|(text, _)| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.0.source.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(
            span.clone(),
        ))))
    }
}

/// Failures are printed in colour where there is a terminal, and never broken within a line: scripts search in them.
pub fn install_reporter() {
    let handler = |_: &_| -> Box<dyn miette::ReportHandler> {
        Box::new(
            MietteHandlerOpts::new()
                .wrap_lines(false)
                .context_lines(1)
                .build(),
        )
    };
    // Fails only if a handler is there already; that one prints as well.
    let _ = miette::set_hook(Box::new(handler));
}
