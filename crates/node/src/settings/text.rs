//! The text of `veil.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use veil_sandbox::Require;

use super::quota::{bytes, bytes_text, number};
use super::stock::RawStock;
use super::{
    Admission, LEVELS, Limits, LogFormat, LogSettings, OwnData, Quota, Quotas, Settings,
    SettingsError, Timeouts, Transfers,
};
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
    ///
    /// # Errors
    /// [`FileError::Syntax`] at the place in the text that is not understood or out of range, [`FileError::Version`] if another
    /// release wrote it.
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
        let (limits, timeouts) = (Limits::default(), Timeouts::default());
        let memory = match (&raw.admission.memory_mib, &raw.limits.memory_mib) {
            (Some(field), Some(_)) => {
                let what = "`memory_mib` is under [limits] too: write it here alone";
                return Err(wrong(field.span(), what.to_owned()));
            }
            (here, before) => here.as_ref().or(before.as_ref()).cloned(),
        };
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
        let own = |own: &Spanned<RawOwnData>| {
            let RawOwnData { what, file, jobs } = own.get_ref();
            if !file.is_absolute() {
                let what = "`file` is no absolute path: a service runs in any folder";
                return Err(wrong(own.span(), what.to_owned()));
            }
            Ok(OwnData {
                what: what.clone(),
                file: file.clone(),
                jobs: jobs.clone(),
            })
        };
        let settings = Settings {
            name: raw.name.get_ref().clone(),
            role: raw.role,
            listen: socket(&raw.listen)?,
            address: raw.address.as_ref().map(|a| a.get_ref().clone()),
            admin: socket(&raw.admin)?,
            limits: Limits {
                jobs: at_least_one(&raw.limits.jobs, limits.jobs.into(), 1024)? as u16,
                memory_mib: at_least_one(&memory, limits.memory_mib, 1 << 30)?,
                rows: at_least_one(&raw.limits.rows, limits.rows, i64::MAX as u64)?,
                lanes: at_least_one(&raw.limits.lanes, limits.lanes.into(), 1024)? as u16,
            },
            admission: raw.admission.read(&wrong)?,
            quotas: Quotas {
                each: raw.quota.read(Quota::default(), &wrong)?,
                member: (raw.quota.member.iter())
                    .map(|(name, own)| {
                        if !own.member.is_empty() {
                            let what = format!("`quota.member.{name}` has members of its own");
                            return Err(wrong(0..0, what));
                        }
                        let each = raw.quota.read(Quota::default(), &wrong)?;
                        Ok((name.clone(), own.read(each, &wrong)?))
                    })
                    .collect::<Result<_, FileError>>()?,
            },
            timeouts: Timeouts {
                meet: seconds(&raw.timeouts.meet, timeouts.meet)?,
                stall: seconds(&raw.timeouts.stall, timeouts.stall)?,
                grace: seconds(&raw.timeouts.grace, timeouts.grace)?,
            },
            transfers: Transfers {
                keep: (raw.transfers.keep).unwrap_or(Transfers::default().keep),
            },
            log: LogSettings {
                format: raw.log.format.unwrap_or(LogFormat::Auto),
                level: level.map_or_else(|| "info".to_owned(), |level| level.get_ref().clone()),
            },
            stock: (raw.stock.iter())
                .map(|(name, own)| Ok((name.clone(), own.read(&wrong)?)))
                .collect::<Result<_, FileError>>()?,
            data: raw.data.iter().map(own).collect::<Result<_, _>>()?,
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
            "parties only: one port for all participants",
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
        line(&format!("rows = {}", self.limits.rows), "of a job");
        line(&format!("lanes = {}", self.limits.lanes), "of a job");
        line("", "");
        line("[admission]", "what is taken in");
        line(
            &format!("memory_mib = {}", self.limits.memory_mib),
            "working memory of all jobs that run or are met",
        );
        let admission = &self.admission;
        line(
            &format!("sandbox = {}", text(sandbox(admission.sandbox))),
            "require: Landlock and seccomp confine planning; seccomp: that alone",
        );
        line(
            &format!("planners = {}", admission.planners),
            "processes that plan proposals",
        );
        line(
            &format!("planning_mib = {}", admission.planning_mib),
            "of each",
        );
        line(
            &format!("planning_seconds = {}", admission.planning_seconds),
            "of a processor, of each",
        );
        line(
            &format!(
                "disk_reserve = {}",
                text(&bytes_text(admission.disk_reserve))
            ),
            "with less free on the home's disk nothing is taken in",
        );
        line(
            &format!("spill = {}", admission.spill),
            "columns of queries that take more memory wait on that disk",
        );
        line("", "");
        let quota = |line: &mut dyn FnMut(&str, &str), title: &str, quota: &Quota| {
            line(title, "of each member; [quota.member.NAME] of one");
            line(
                &format!("proposals_per_hour = {}", quota.proposals_per_hour),
                "",
            );
            line(
                &format!("waiting_jobs = {}", quota.waiting_jobs),
                "for approval, participants or a place",
            );
            line(&format!("running_jobs = {}", quota.running_jobs), "");
            line(
                &format!(
                    "planning_seconds_per_hour = {}",
                    quota.planning_seconds_per_hour
                ),
                "",
            );
            line(
                &format!("work_per_day = {}", text(&quota.work_per_day.to_string())),
                "products, times the bits of their ring",
            );
            line(
                &format!("bytes_per_day = {}", text(&bytes_text(quota.bytes_per_day))),
                "sent and received",
            );
            line(
                &format!("filed = {}", text(&bytes_text(quota.filed))),
                "its proposals on the disk",
            );
            line(
                &format!("stored = {}", text(&bytes_text(quota.stored))),
                "datasets that its jobs keep",
            );
            line(
                &format!(
                    "stock_cells_per_day = {}",
                    text(&quota.stock_cells_per_day.to_string())
                ),
                "that its jobs take",
            );
            line(
                &format!("weight = {}", quota.weight),
                "its part, where several wait",
            );
            line("", "");
        };
        quota(&mut line, "[quota]", &self.quotas.each);
        for (name, own) in &self.quotas.member {
            quota(&mut line, &format!("[quota.member.{}]", text(name)), own);
        }
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
        line("[transfers]", "");
        line(
            &format!("keep = {}", self.transfers.keep),
            "in memory, for the next run of two parties",
        );
        line("", "");
        for (name, own) in &self.stock {
            line(&format!("[stock.{}]", text(name)), "with this party");
            own.write(&mut line);
            line("", "");
        }
        line("[log]", "");
        line(
            &format!("format = {}", text(self.log.format.name())),
            "auto, text or json",
        );
        line(
            &format!("level = {}", text(&self.log.level)),
            "error, warn, info, debug or trace",
        );
        for own in &self.data {
            line("", "");
            line("[[data]]", "of this participant, for jobs that ask for it");
            line(
                &format!("what = {}", text(&own.what)),
                "block or input port",
            );
            let file = own.file.to_string_lossy();
            line(&format!("file = {}", text(&file)), "");
            let jobs: Vec<_> = own.jobs.iter().map(|job| text(job)).collect();
            line(&format!("jobs = [{}]", jobs.join(", ")), "empty: all jobs");
        }
        out
    }
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
    quota: RawQuota,
    #[serde(default)]
    timeouts: RawTimeouts,
    #[serde(default)]
    transfers: RawTransfers,
    #[serde(default)]
    stock: BTreeMap<String, RawStock>,
    #[serde(default)]
    log: RawLog,
    #[serde(default)]
    data: Vec<Spanned<RawOwnData>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOwnData {
    what: String,
    file: PathBuf,
    #[serde(default)]
    jobs: Vec<String>,
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
    memory_mib: Option<Spanned<u64>>,
    sandbox: Option<Spanned<String>>,
    planners: Option<Spanned<u64>>,
    planning_mib: Option<Spanned<u64>>,
    planning_seconds: Option<Spanned<u64>>,
    disk_reserve: Option<Spanned<String>>,
    spill: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawQuota {
    proposals_per_hour: Option<Spanned<u64>>,
    waiting_jobs: Option<Spanned<u64>>,
    running_jobs: Option<Spanned<u64>>,
    planning_seconds_per_hour: Option<Spanned<u64>>,
    work_per_day: Option<Spanned<String>>,
    bytes_per_day: Option<Spanned<String>>,
    filed: Option<Spanned<String>>,
    stored: Option<Spanned<String>>,
    stock_cells_per_day: Option<Spanned<String>>,
    weight: Option<Spanned<u64>>,
    #[serde(default)]
    member: BTreeMap<String, RawQuota>,
}

/// Makes an error of a field.
pub(super) type Wrong<'a> = dyn Fn(Range<usize>, String) -> FileError + 'a;

/// A number of 1 to `most`, or what it is where it is left out.
pub(super) fn within(
    field: Option<&Spanned<u64>>,
    default: u64,
    most: u64,
    wrong: &Wrong<'_>,
) -> Result<u64, FileError> {
    match field {
        Some(field) if !(1..=most).contains(field.get_ref()) => {
            Err(wrong(field.span(), format!("must be 1 to {most}")))
        }
        Some(field) => Ok(*field.get_ref()),
        None => Ok(default),
    }
}

/// A number in words that `read` understands, such as `example`.
pub(super) fn in_words(
    field: Option<&Spanned<String>>,
    default: u64,
    (read, example): (fn(&str) -> Option<u64>, &str),
    wrong: &Wrong<'_>,
) -> Result<u64, FileError> {
    match field {
        Some(field) => read(field.get_ref()).ok_or_else(|| {
            let what = format!(
                "`{}` is no such number: write one such as {example}",
                field.get_ref()
            );
            wrong(field.span(), what)
        }),
        None => Ok(default),
    }
}

/// Bytes as people write them.
pub(super) const BYTES: (fn(&str) -> Option<u64>, &str) = (bytes, "\"10 GiB\"");

/// What has to confine planning, as the file says it.
const fn sandbox(require: Require) -> &'static str {
    match require {
        Require::Landlock => "require",
        Require::Filter => "seccomp",
    }
}

impl RawAdmission {
    fn read(&self, wrong: &Wrong<'_>) -> Result<Admission, FileError> {
        let usual = Admission::default();
        let confine = match &self.sandbox {
            None => usual.sandbox,
            Some(field) => match field.get_ref().as_str() {
                "require" => Require::Landlock,
                "seccomp" => Require::Filter,
                other => {
                    let what = format!("`{other}` is no sandbox: write \"require\" or \"seccomp\"");
                    return Err(wrong(field.span(), what));
                }
            },
        };
        Ok(Admission {
            sandbox: confine,
            planners: within(self.planners.as_ref(), usual.planners, 64, wrong)?,
            planning_mib: within(
                self.planning_mib.as_ref(),
                usual.planning_mib,
                1 << 20,
                wrong,
            )?,
            planning_seconds: within(
                self.planning_seconds.as_ref(),
                usual.planning_seconds,
                3600,
                wrong,
            )?,
            disk_reserve: in_words(self.disk_reserve.as_ref(), usual.disk_reserve, BYTES, wrong)?,
            spill: self.spill.unwrap_or(usual.spill),
        })
    }
}

impl RawQuota {
    /// What it says, and `usual` where it says nothing.
    fn read(&self, usual: Quota, wrong: &Wrong<'_>) -> Result<Quota, FileError> {
        let most = i64::MAX as u64;
        let number = (number as fn(&str) -> Option<u64>, "\"2e12\"");
        Ok(Quota {
            proposals_per_hour: within(
                self.proposals_per_hour.as_ref(),
                usual.proposals_per_hour,
                most,
                wrong,
            )?,
            waiting_jobs: within(self.waiting_jobs.as_ref(), usual.waiting_jobs, most, wrong)?,
            running_jobs: within(self.running_jobs.as_ref(), usual.running_jobs, most, wrong)?,
            planning_seconds_per_hour: within(
                self.planning_seconds_per_hour.as_ref(),
                usual.planning_seconds_per_hour,
                most,
                wrong,
            )?,
            work_per_day: in_words(
                self.work_per_day.as_ref(),
                usual.work_per_day,
                number,
                wrong,
            )?,
            bytes_per_day: in_words(
                self.bytes_per_day.as_ref(),
                usual.bytes_per_day,
                BYTES,
                wrong,
            )?,
            filed: in_words(self.filed.as_ref(), usual.filed, BYTES, wrong)?,
            stored: in_words(self.stored.as_ref(), usual.stored, BYTES, wrong)?,
            stock_cells_per_day: in_words(
                self.stock_cells_per_day.as_ref(),
                usual.stock_cells_per_day,
                number,
                wrong,
            )?,
            weight: within(self.weight.as_ref(), usual.weight, 1000, wrong)?,
        })
    }
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
struct RawTransfers {
    keep: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLog {
    format: Option<LogFormat>,
    level: Option<Spanned<String>>,
}

#[cfg(test)]
mod tests {
    use super::super::StockWith;
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
        settings.admission.sandbox = Require::Filter;
        settings.admission.spill = true;
        settings.quotas.each.filed = 5 << 20;
        settings.quotas.each.stored = 7 << 30;
        let own = Quota {
            weight: 3,
            ..settings.quotas.each
        };
        settings.quotas.member.insert("the press".into(), own);
        settings.timeouts.stall = Duration::from_secs(5);
        settings.transfers.keep = false;
        let stock = StockWith {
            runs: true,
            target: 10_000_000,
            hours: Some([22, 6]),
            garbles: Some(false),
            ..StockWith::default()
        };
        settings.stock.insert("the press".into(), stock);
        settings.log.format = LogFormat::Json;
        settings.data = vec![OwnData {
            what: "north".to_owned(),
            file: "/data/pay \"2025\".csv".into(),
            jobs: vec!["pay*".to_owned()],
        }];
        assert_eq!(parse(&settings.to_toml()).unwrap(), settings);
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
                "[quota.member.press]\nfiled = \"much\"",
                "veil.toml:5:9: `much` is no such number: write one such as \"10 GiB\"",
            ),
            (
                "[admission]\nsandbox = \"off\"",
                "veil.toml:5:11: `off` is no sandbox: write \"require\" or \"seccomp\"",
            ),
            (
                "[limits]\nmemory_mib = 1\n[admission]\nmemory_mib = 1",
                "veil.toml:7:14: `memory_mib` is under [limits] too: write it here alone",
            ),
            ("[log]\nlevel = \"loud\"", "`loud` is no level"),
            (
                "[stock.b]\ntarget = \"100\"",
                "veil.toml:5:10: must be 0, or 16384 to 274877906944 cells",
            ),
            (
                "[stock.b]\nhours = [6, 6]",
                "veil.toml:5:9: must be two different hours, such as [22, 6]",
            ),
            ("[stock.b]\nstatistical = 41", "veil.toml:5:15: write "),
            ("[limit]\njobs = 1", "unknown field `limit`"),
            (
                "[[data]]\nwhat = \"north\"\nfile = \"pay.csv\"",
                "`file` is no absolute path",
            ),
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
