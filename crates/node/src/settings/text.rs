//! The text of `veil.toml`.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{Admission, LEVELS, Limits, LogFormat, LogSettings, Settings, SettingsError, Timeouts};
use crate::file::{self, FileError};
use crate::names::Role;

/// The version of the file that this release reads and writes.
const VERSION: i64 = 1;

/// A week in seconds.
const WEEK: u64 = 7 * 24 * 3600;

impl Settings {
    /// Reads the settings of a home.
    pub(crate) fn load(path: &Path) -> Result<Self, FileError> {
        Self::parse(path, &file::read(path)?)
    }

    /// Reads the text of a settings file that is, or could be, at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let raw: Raw = file::parse(path, text, VERSION)?;
        let wrong = |span, what: String| FileError::at(path, text, span, what);
        let socket = |field: &Option<Spanned<String>>| {
            let parse = |field: &Spanned<String>| {
                field.get_ref().parse::<SocketAddr>().map_err(|_| {
                    let error = SettingsError::Listen(field.get_ref().clone());
                    wrong(field.span(), error.to_string())
                })
            };
            field.as_ref().map(parse).transpose()
        };
        let seconds = |field: &Option<Spanned<u64>>, default: Duration| match field {
            Some(field) if !(1..=WEEK).contains(field.get_ref()) => Err(wrong(
                field.span(),
                format!("must be 1 to {WEEK} seconds, a week"),
            )),
            Some(field) => Ok(Duration::from_secs(*field.get_ref())),
            None => Ok(default),
        };
        let at_least_one = |field: &Option<Spanned<u64>>, default: u64, most: u64| match field {
            Some(field) if !(1..=most).contains(field.get_ref()) => {
                Err(wrong(field.span(), format!("must be 1 to {most}")))
            }
            Some(field) => Ok(*field.get_ref()),
            None => Ok(default),
        };
        let bytes = |field: &Option<Spanned<String>>, default: u64| {
            match field {
            Some(field) => bytes_of(field.get_ref()).ok_or_else(|| {
                let what = format!(
                    "`{}` is no number of bytes: write one such as \"10 GiB\", in B, KiB, MiB, GiB or TiB",
                    field.get_ref()
                );
                wrong(field.span(), what)
            }),
            None => Ok(default),
        }
        };
        let (limits, timeouts) = (Limits::default(), Timeouts::default());
        let admission = Admission::default();
        let level = raw.log.level.as_ref();
        if let Some(level) = level
            && !LEVELS.contains(&level.get_ref().as_str())
        {
            let what = format!(
                "`{}` is no level: write {}",
                level.get_ref(),
                LEVELS.join(", ")
            );
            return Err(wrong(level.span(), what));
        }
        let settings = Settings {
            name: raw.name.get_ref().clone(),
            role: raw.role,
            listen: socket(&raw.listen)?,
            address: raw.address.as_ref().map(|a| a.get_ref().clone()),
            admin: socket(&raw.admin)?,
            limits: Limits {
                jobs: at_least_one(&raw.limits.jobs, limits.jobs.into(), 1024)? as u16,
                memory_mib: at_least_one(&raw.limits.memory_mib, limits.memory_mib, 1 << 30)?,
                rows: at_least_one(&raw.limits.rows, limits.rows, i64::MAX as u64)?,
                lanes: at_least_one(&raw.limits.lanes, limits.lanes.into(), 1024)? as u16,
            },
            admission: Admission {
                disk_reserve: bytes(&raw.admission.disk_reserve, admission.disk_reserve)?,
            },
            timeouts: Timeouts {
                meet: seconds(&raw.timeouts.meet, timeouts.meet)?,
                stall: seconds(&raw.timeouts.stall, timeouts.stall)?,
                grace: seconds(&raw.timeouts.grace, timeouts.grace)?,
            },
            log: LogSettings {
                format: raw.log.format.unwrap_or(LogFormat::Auto),
                level: level.map_or_else(|| "info".to_owned(), |level| level.get_ref().clone()),
            },
        };
        settings.check().map_err(|error| {
            let span = match &error {
                SettingsError::Name(_) => Some(raw.name.span()),
                SettingsError::OnlyParties(_, "listen") => raw.listen.as_ref().map(Spanned::span),
                _ => raw.address.as_ref().map(Spanned::span),
            };
            wrong(span.unwrap_or(0..0), error.to_string())
        })?;
        Ok(settings)
    }

    /// The text of a settings file, with every field and what it means.
    pub fn to_toml(&self) -> String {
        let text = |value: &str| toml::Value::from(value).to_string();
        let optional = |name: &str, value: Option<String>, example: &str| match value {
            Some(value) => format!("{name} = {}", text(&value)),
            None => format!("# {name} = {}", text(example)),
        };
        let mut out = String::new();
        let mut line = |left: &str, comment: &str| {
            let _ = match comment {
                "" => writeln!(out, "{left}"),
                _ => writeln!(out, "{left:<34} # {comment}"),
            };
        };
        line(&format!("version = {VERSION}"), "");
        line(&format!("name = {}", text(&self.name)), "as jobs write it");
        line(
            &format!("role = {}", text(self.role.name())),
            "party, owner or recipient",
        );
        line(
            &optional("listen", self.listen.map(|a| a.to_string()), "0.0.0.0:7000"),
            "parties only: one port for everybody",
        );
        line(
            &optional("address", self.address.clone(), "mpc.example.org:7000"),
            "parties only: where others dial",
        );
        line(
            &optional("admin", self.admin.map(|a| a.to_string()), "127.0.0.1:9464"),
            "health and metrics, without any protection",
        );
        line("", "");
        line("[limits]", "");
        line(
            &format!("jobs = {}", self.limits.jobs),
            "at once; more wait",
        );
        line(
            &format!("memory_mib = {}", self.limits.memory_mib),
            "working memory of all running jobs",
        );
        line(&format!("rows = {}", self.limits.rows), "of a job");
        line(&format!("lanes = {}", self.limits.lanes), "of a job");
        line("", "");
        line("[admission]", "");
        line(
            &format!(
                "disk_reserve = {}",
                text(&bytes_text(self.admission.disk_reserve))
            ),
            "free bytes of the disk that are kept for jobs that run",
        );
        line("", "");
        line("[timeouts]", "seconds");
        line(
            &format!("meet = {}", self.timeouts.meet.as_secs()),
            "for the others to turn up",
        );
        line(
            &format!("stall = {}", self.timeouts.stall.as_secs()),
            "without any progress of a run",
        );
        line(
            &format!("grace = {}", self.timeouts.grace.as_secs()),
            "for running jobs, when asked to stop",
        );
        line("", "");
        line("[log]", "");
        line(
            &format!("format = {}", text(self.log.format.name())),
            "auto, text or json",
        );
        line(
            &format!("level = {}", text(&self.log.level)),
            "error, warn, info, debug or trace",
        );
        out
    }
}

/// Units of bytes, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A number of bytes as people write it: `10 GiB`.
fn bytes_of(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.then(|| number.parse().ok())??;
    number.checked_mul(*scale)
}

/// The same number, in the largest unit of which it is a multiple.
fn bytes_text(bytes: u64) -> String {
    let fits = |(_, scale): &&(&str, u64)| bytes >= *scale && bytes.is_multiple_of(*scale);
    let (unit, scale) = UNITS.iter().find(fits).unwrap_or(&UNITS[UNITS.len() - 1]);
    format!("{} {unit}", bytes / scale)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    name: Spanned<String>,
    role: Role,
    listen: Option<Spanned<String>>,
    address: Option<Spanned<String>>,
    admin: Option<Spanned<String>>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    admission: RawAdmission,
    #[serde(default)]
    timeouts: RawTimeouts,
    #[serde(default)]
    log: RawLog,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    jobs: Option<Spanned<u64>>,
    memory_mib: Option<Spanned<u64>>,
    rows: Option<Spanned<u64>>,
    lanes: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawAdmission {
    disk_reserve: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawTimeouts {
    meet: Option<Spanned<u64>>,
    stall: Option<Spanned<u64>>,
    grace: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLog {
    format: Option<LogFormat>,
    level: Option<Spanned<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, FileError> {
        Settings::parse(Path::new("veil.toml"), text)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut settings = Settings::new("uni \"north\"", Role::Party).unwrap();
        assert_eq!(parse(&settings.to_toml()).unwrap(), settings);
        settings = settings
            .listening_on("[::]:7000".parse().unwrap())
            .reached_at("mpc.uni.example:7000");
        settings.admin = Some("127.0.0.1:9464".parse().unwrap());
        settings.limits.jobs = 9;
        settings.admission.disk_reserve = 3 << 19;
        settings.timeouts.stall = Duration::from_secs(5);
        settings.log.format = LogFormat::Json;
        assert_eq!(parse(&settings.to_toml()).unwrap(), settings);
    }

    #[test]
    fn bytes_are_written_with_their_unit() {
        for (text, bytes) in [
            ("0 B", 0),
            ("1000 B", 1000),
            ("1536 KiB", 3 << 19),
            ("10 GiB", 10 << 30),
            ("1 TiB", 1 << 40),
        ] {
            assert_eq!(bytes_of(text), Some(bytes));
            assert_eq!(bytes_text(bytes), text);
        }
        for text in [
            "",
            "10",
            "10GiB",
            "10 GB",
            "-1 B",
            "+1 B",
            "1.5 GiB",
            "99999999 TiB",
            " 1 B",
        ] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_where_it_stands() {
        let with = |more: &str| {
            let text = format!("version = 1\nname = \"a\"\nrole = \"party\"\n{more}\n");
            parse(&text).unwrap_err().to_string()
        };
        for (more, want) in [
            (
                "listen = \"example.org:7000\"",
                "veil.toml:4:10: `example.org:7000` is no address to listen on",
            ),
            (
                "address = \"example.org\"",
                "veil.toml:4:11: `example.org` is no address that others can dial",
            ),
            (
                "address = \"http://a:1\"",
                "no address that others can dial",
            ),
            ("[limits]\njobs = 0", "veil.toml:5:8: must be 1 to 1024"),
            (
                "[timeouts]\nmeet = 604801",
                "veil.toml:5:8: must be 1 to 604800 seconds",
            ),
            (
                "[admission]\ndisk_reserve = \"10 GB\"",
                "veil.toml:5:16: `10 GB` is no number of bytes",
            ),
            ("[log]\nlevel = \"loud\"", "`loud` is no level"),
            ("[limit]\njobs = 1", "unknown field `limit`"),
        ] {
            let error = with(more);
            assert!(error.contains(want), "{error}");
        }
        let owner = "version = 1\nname = \"a\"\nrole = \"owner\"\nlisten = \"0.0.0.0:1\"\n";
        let error = parse(owner).unwrap_err().to_string();
        assert!(
            error.contains("an owner only dials out: leave `listen` away"),
            "{error}"
        );
        let error = parse("version = 1\nname = \" a\"\nrole = \"owner\"")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("veil.toml:2:8: the name \" a\" has blanks"),
            "{error}"
        );
    }
}
