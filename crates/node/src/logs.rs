//! Log lines of a service: text for a person, JSON for machines.
//!
//! A line names jobs by plan hash and trace id, members by name, keys by fingerprint. No value, share, key or token, and no
//! hash of one, is ever an argument of a log line.

use std::io::IsTerminal;

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use crate::settings::LogFormat;

/// The lines cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogsError {
    /// The level makes no sense.
    #[error(
        "`{level}` is no log level: use error, warn, info, debug or trace, or `veil_node=debug`; {source}"
    )]
    Level {
        /// The level that was asked for.
        level: String,
        /// The defect.
        source: ParseError,
    },
    /// Another part of this process has set up lines already.
    #[error("log lines are set up already in this process")]
    Twice,
}

/// Writes log lines to standard error from here on.
///
/// # Errors
/// [`LogsError::Level`] if `level` is no filter, [`LogsError::Twice`] if this process has a logger already.
pub fn install(format: LogFormat, level: &str) -> Result<(), LogsError> {
    let filter: Targets = level.parse().map_err(|source| LogsError::Level {
        level: level.to_owned(),
        source,
    })?;
    let terminal = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let json = match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !terminal,
    };
    let registry = registry().with(filter);
    let installed = if json {
        let lines = lines.json().flatten_event(true);
        registry
            .with(lines.with_current_span(true).with_span_list(false))
            .try_init()
    } else {
        registry.with(lines.with_ansi(terminal)).try_init()
    };
    installed.map_err(|_| LogsError::Twice)
}
