//! The file of a table: TOML, whose every number is checked.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::{KINDS, Kind, Rates, VERSION};

/// No unit of work takes longer, in seconds; a sum over any plan stays a number.
const LONGEST_UNIT: f64 = 1e3;
/// Letters of a name of a machine or a device.
const LONGEST_NAME: usize = 100;

/// A file is no table of rates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RatesError {
    /// The system refuses.
    #[error("cannot read the table of rates {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Longer than any table.
    #[error("{}: longer than {limit} bytes: this is no table of rates", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Bytes that a table may have.
        limit: u64,
    },
    /// Bytes that are no text.
    #[error("{}: not UTF-8: this is no table of rates", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// Written by another release.
    #[error("{}: version {found} of a table of rates is unknown; this program reads version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The version that this release knows.
        known: i64,
    },
    /// Not what such a table looks like.
    #[error("{}:{line}:{column}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The defect.
        what: String,
        /// The text of the file.
        text: String,
        /// Bytes of the file, for tools that mark them.
        span: Range<usize>,
    },
}

/// A table as it is written. Later versions may have other fields: the version is looked at first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "version")]
    _version: i64,
    measured: Spanned<String>,
    machine: Spanned<String>,
    device: Spanned<String>,
    cores: Spanned<i64>,
    loopback: Loopback,
    cpu: Spanned<BTreeMap<Spanned<String>, Spanned<f64>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Loopback {
    wait: Spanned<f64>,
}

#[derive(Deserialize)]
struct Versioned {
    version: Option<Spanned<toml::Value>>,
}

/// Reads the text of a table, which is in `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Rates, RatesError> {
    let at = |span: Range<usize>, what: String| {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        RatesError::Syntax {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
            text: text.to_owned(),
            span,
        }
    };
    let syntax = |error: toml::de::Error| {
        let what = error.message().trim_end().to_owned();
        at(error.span().unwrap_or(0..0), what)
    };
    let versioned: Versioned = toml::from_str(text).map_err(syntax)?;
    match versioned.version.as_ref().map(|v| (v.get_ref(), v.span())) {
        Some((toml::Value::Integer(VERSION), _)) => {}
        Some((toml::Value::Integer(found), _)) => {
            return Err(RatesError::Version {
                path: path.to_owned(),
                found: *found,
                known: VERSION,
            });
        }
        Some((_, span)) => return Err(at(span, "`version` must be a number".into())),
        None => {
            let what = format!("`version = {VERSION}` is missing; add it as the first line");
            return Err(at(0..0, what));
        }
    }
    let written: Written = toml::from_str(text).map_err(syntax)?;
    let time = |name: &str, seconds: &Spanned<f64>| {
        let value = *seconds.get_ref();
        if (0.0..=LONGEST_UNIT).contains(&value) {
            return Ok(value);
        }
        let what = format!("`{name}` is {value}: a rate is a number of seconds from 0 to 1000");
        Err(at(seconds.span(), what))
    };
    let mut seconds = [None; KINDS];
    for (name, value) in written.cpu.get_ref() {
        let kind = Kind::ALL.iter().find(|kind| kind.name() == name.get_ref());
        let Some(kind) = kind else {
            return Err(at(
                name.span(),
                format!("unknown rate `{}`", tame(name.get_ref())),
            ));
        };
        seconds[*kind as usize] = Some(time(kind.name(), value)?);
    }
    let missing = Kind::ALL
        .iter()
        .find(|kind| seconds[**kind as usize].is_none());
    if let Some(missing) = missing {
        let what = format!("the rate `{}` is missing", missing.name());
        return Err(at(written.cpu.span(), what));
    }
    let name = |field: &str, name: &Spanned<String>| {
        let text = name.get_ref();
        if !text.is_empty() && tame(text) == *text {
            return Ok(text.clone());
        }
        let what = format!("`{field}` is a name of 1 to {LONGEST_NAME} printable characters");
        Err(at(name.span(), what))
    };
    if day(written.measured.get_ref()).is_none() {
        let what = "`measured` is a day, such as \"2027-12-31\"".to_owned();
        return Err(at(written.measured.span(), what));
    }
    let cores = u16::try_from(*written.cores.get_ref())
        .ok()
        .filter(|n| *n > 0);
    let cores = cores.ok_or_else(|| {
        let what = format!("`cores` is {}: write 1 to 65535", written.cores.get_ref());
        at(written.cores.span(), what)
    })?;
    Ok(Rates {
        measured: written.measured.get_ref().clone(),
        machine: name("machine", &written.machine)?,
        device: name("device", &written.device)?,
        cores,
        wait: time("wait", &written.loopback.wait)?,
        seconds: seconds.map(Option::unwrap_or_default),
    })
}

/// A day, as a table says when it was measured.
fn day(text: &str) -> Option<jiff::civil::Date> {
    let digits = |c: char| c.is_ascii_digit() || c == '-';
    let day = text.len() == 10 && text.chars().all(digits);
    day.then(|| text.parse().ok()).flatten()
}

/// A name that may be printed.
pub(super) fn tame(name: &str) -> String {
    let printable = name.chars().filter(|c| !c.is_control());
    printable.take(LONGEST_NAME).collect()
}
