//! How a command fails: what happened, where, what to do, and the exit code that scripts see.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, MietteHandlerOpts, NamedSource, SourceCode};
use serde::Serialize;
use veil_engine::{Abort, local};
use veil_job::DataError;
use veil_link::tls::{IdentityError, SetupError};
use veil_program::{AlignKeyError, JobError};
use veil_protocol::passes::ProgramError;
use veil_protocol::{Plan, PlanError};
use veil_runtime::PartError;
use veil_session::Peer;
use veil_store::StoreError;
use veilworks::{About, Error, Excerpt, Refused};

/// What an exit code means. 0 is success.
pub use veilworks::Code;

/// The code that another process ended with.
pub(crate) fn code_of(number: u8) -> Code {
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

/// Why a command failed: an [`Error`] of the library, as a terminal shows it.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.error)]
pub struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    error: Error,
    /// The file at fault, to show a part of it.
    source: Option<NamedSource<String>>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let source = error.excerpt();
        let source = source.map(|excerpt| NamedSource::new(&excerpt.file, excerpt.text.clone()));
        Failure(Box::new(Inner { error, source }))
    }
}

impl Failure {
    /// A failure with a message that says where, what, and what to do.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        self.0.error.with_help(help).into()
    }

    /// Shows a part of the file at fault.
    #[must_use]
    pub fn showing(self, name: &str, text: String, span: std::ops::Range<usize>) -> Self {
        let end = text.len();
        let span = span.start.min(end)..span.end.min(end);
        let file = name.to_owned();
        self.0.error.showing(Excerpt { file, text, span }).into()
    }

    /// Adds what a program may have to know.
    #[must_use]
    pub(crate) fn about(self, about: About) -> Self {
        self.0.error.with_about(about).into()
    }

    /// The line that a program reads.
    pub(crate) fn json(&self) -> String {
        let (error, place) = (&self.0.error, self.0.error.place());
        let said = Said {
            code: word(self.code()),
            message: error.to_string(),
            help: error.help(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            query: place.and_then(|place| place.query.as_deref()),
            range: error.range(),
            about: error.about(),
        };
        serde_json::to_string(&said).unwrap_or_default()
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        self.0.error.code()
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
        self.0.error.help()
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
        Error::abort(plan, at, abort).into()
    }

    /// All participants were in this process, and the run failed.
    pub(crate) fn local(plan: &Plan, failure: &local::Failure) -> Self {
        Error::local(plan, failure).into()
    }

    /// Participants could not be connected.
    pub(crate) fn setup(plan: &Plan, error: &SetupError) -> Self {
        Error::setup(plan, error).into()
    }
}

/// The word for an exit code.
const fn word(code: Code) -> &'static str {
    match code {
        Code::Other => "other",
        Code::Usage => "usage",
        Code::Input => "input",
        Code::Check => "check",
        Code::Link => "link",
        Code::Device => "device",
    }
}

/// A failure, as `--errors json` prints it.
#[derive(Serialize)]
struct Said<'a> {
    code: &'a str,
    message: String,
    help: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<&'a Refused>,
    #[serde(flatten)]
    about: &'a About,
}

/// What the library has words for.
macro_rules! in_words_of_the_library {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        }
    )*};
}
in_words_of_the_library!(
    PartError,
    JobError,
    DataError,
    AlignKeyError,
    PlanError,
    ProgramError,
    IdentityError
);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
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

impl From<miette::Report> for Failure {
    fn from(report: miette::Report) -> Self {
        let chain: Vec<String> = report.chain().map(ToString::to_string).collect();
        Self::new(Code::Other, chain.join(": "))
    }
}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = Some(self.advice()).filter(|help| !help.is_empty());
        help.map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        let source = self.0.source.as_ref();
        source.map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.0.error.excerpt()?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(
            excerpt.span.clone(),
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
