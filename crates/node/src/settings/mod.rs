//! `veil.toml`: what a participant is, where it listens, and how much it takes on.

mod quota;
mod stock;
mod text;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::names::{self, NameError, Role};

pub use quota::{Admission, Quota, Quotas};
pub use stock::StockWith;

/// The settings of a home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Name of this participant, as jobs write it.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Where it listens, `host:port` with a numeric host; only parties do.
    pub listen: Option<SocketAddr>,
    /// Where others reach it, `host:port`: what its invitations tell them.
    pub address: Option<String>,
    /// Where health and metrics are served; nowhere by default.
    pub admin: Option<SocketAddr>,
    /// How much it takes on.
    pub limits: Limits,
    /// Its limits on proposals.
    pub admission: Admission,
    /// Limits of each member.
    pub quotas: Quotas,
    /// How long it waits.
    pub timeouts: Timeouts,
    /// The oblivious transfers that it keeps between runs.
    pub transfers: Transfers,
    /// What it allows of stock with other parties, by their names; nothing with those that it does not name.
    pub stock: BTreeMap<String, StockWith>,
    /// Its log on standard error.
    pub log: LogSettings,
    /// Where its own data are, for jobs that ask for them.
    pub data: Vec<OwnData>,
}

/// Paths of this participant's data for any member's jobs: an approval gives them for one job, settings for many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnData {
    /// The block or the input port that asks for them.
    pub what: String,
    /// The file: an absolute path.
    pub file: PathBuf,
    /// Names of jobs that may ask, as rules of the policy write them; empty, if all may.
    pub jobs: Vec<String>,
}

impl OwnData {
    /// Whether it is what a job of this name asks for.
    pub(crate) fn is_of(&self, job: &str, what: &str) -> bool {
        let named = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => job.starts_with(beginning),
            None => job == pattern,
        };
        self.what == what && (self.jobs.is_empty() || self.jobs.iter().any(named))
    }
}

/// Settings for oblivious transfers between runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfers {
    /// Whether they are kept in memory, so that the next run with the same party begins without curves.
    pub keep: bool,
}

/// How much a participant takes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Jobs that run at once; more wait.
    pub jobs: u16,
    /// Working memory of all running jobs, in MiB; a job that would need more waits, or is refused if it alone does.
    pub memory_mib: u64,
    /// Rows of a job.
    pub rows: u64,
    /// Lanes of a job.
    pub lanes: u16,
}

/// How long a participant waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// For the others to turn up.
    pub meet: Duration,
    /// Without any progress of a run.
    pub stall: Duration,
    /// For running jobs, when asked to stop.
    pub grace: Duration,
}

/// Settings of the log on standard error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// In which form.
    pub format: LogFormat,
    /// From which level on: error, warn, info, debug or trace.
    pub level: String,
}

/// The form of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// A line of text.
    Text,
    /// A JSON object per line.
    Json,
}

impl LogFormat {
    const fn name(self) -> &'static str {
        match self {
            LogFormat::Auto => "auto",
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Settings that make no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A bad name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Not an address to bind.
    #[error(
        "`{0}` is no address to listen on: write a number and a port, such as 0.0.0.0:7000 or [::]:7000"
    )]
    Listen(String),
    /// Not an address to dial.
    #[error(
        "`{0}` is no address that others can dial: write a host and a port, such as mpc.example.org:7000"
    )]
    Address(String),
    /// An owner or recipient, which only dials out, listens or has an address.
    #[error("an {0} only dials out: leave `{1}` away; only a party listens")]
    OnlyParties(Role, &'static str),
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            jobs: 4,
            memory_mib: 4096,
            rows: 1_000_000_000,
            lanes: 64,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            meet: Duration::from_secs(300),
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(30),
        }
    }
}

impl Default for Transfers {
    fn default() -> Self {
        Transfers { keep: true }
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            format: LogFormat::Auto,
            level: "info".to_owned(),
        }
    }
}

impl Settings {
    /// Settings of a participant that listens nowhere yet.
    ///
    /// # Errors
    /// [`SettingsError::Name`] for a bad name.
    pub fn new(name: &str, role: Role) -> Result<Self, SettingsError> {
        names::check(name)?;
        Ok(Settings {
            name: name.to_owned(),
            role,
            listen: None,
            address: None,
            admin: None,
            limits: Limits::default(),
            admission: Admission::default(),
            quotas: Quotas::default(),
            timeouts: Timeouts::default(),
            transfers: Transfers::default(),
            stock: BTreeMap::new(),
            log: LogSettings::default(),
            data: Vec::new(),
        })
    }

    /// The same, listening there.
    #[must_use]
    pub fn listening_on(mut self, listen: SocketAddr) -> Self {
        self.listen = Some(listen);
        self
    }

    /// The same, reached by others there.
    #[must_use]
    pub fn reached_at(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// Whether the fields fit each other.
    ///
    /// # Errors
    /// [`SettingsError::Name`] and [`SettingsError::Address`] for a bad name or address, [`SettingsError::OnlyParties`] if an
    /// owner or recipient listens or has an address.
    pub fn check(&self) -> Result<(), SettingsError> {
        names::check(&self.name)?;
        if let Some(address) = &self.address {
            check_address(address)?;
        }
        if self.role != Role::Party {
            let field = match (&self.listen, &self.address) {
                (Some(_), _) => "listen",
                (_, Some(_)) => "address",
                _ => return Ok(()),
            };
            return Err(SettingsError::OnlyParties(self.role, field));
        }
        Ok(())
    }
}

/// Longest `host:port`: a host name has at most 253 characters.
const LONGEST_ADDRESS: usize = 260;

/// Whether text looks like `host:port`. Whether a service is there, only dialling says.
pub(crate) fn check_address(address: &str) -> Result<(), SettingsError> {
    let host_and_port = || {
        let (host, port) = address.rsplit_once(':')?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = !host.contains(':') && !host.contains(['[', ']']);
        let printable = host
            .chars()
            .all(|c| c.is_ascii_graphic() && c != '/' && c != '@');
        let port_is_one = port.parse::<u16>().is_ok_and(|port| port != 0);
        let short = address.len() <= LONGEST_ADDRESS;
        (!host.is_empty() && (bracketed || plain) && printable && port_is_one && short)
            .then_some(())
    };
    host_and_port().ok_or_else(|| SettingsError::Address(address.chars().take(80).collect()))
}
