//! Tables of rates: which one a command takes, and when it was measured.

use std::path::{Path, PathBuf};

use veil_node::Time;
use veilworks::explain::RatesError;

pub use veilworks::explain::{Found, IN_HOME, Kind, Origin, Rates, Work, machine};

use crate::failure::{Code, Failure};

/// Which table of rates.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct RatesArgs {
    /// The table of rates for estimated times [default: rates.toml of the home if it is there, else that of the program]
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
}

impl RatesArgs {
    /// The table that counts where `home` is the home, whether it is there or not.
    pub(crate) fn load(&self, home: &Path) -> Result<Found, Failure> {
        Ok(match &self.rates {
            Some(path) => Found::at(path)?,
            None => Found::of(home)?,
        })
    }
}

/// Days since a table was measured.
pub(crate) fn age_days(rates: &Rates) -> i64 {
    let measured: Option<Time> = format!("{}T00:00:00Z", rates.measured).parse().ok();
    let measured = measured.map_or(0, Time::seconds);
    (Time::now().seconds() - measured).max(0) / (24 * 60 * 60)
}

/// Today, as a table says when it was measured.
pub fn today() -> String {
    let now = Time::now().to_string();
    now.chars().take_while(|c| *c != 'T').collect()
}

impl From<RatesError> for Failure {
    fn from(error: RatesError) -> Self {
        let failure = Failure::new(Code::Input, error.to_string());
        match &error {
            RatesError::Syntax {
                path, text, span, ..
            } if *span != (0..0) => {
                failure.showing(&path.display().to_string(), text.clone(), span.clone())
            }
            _ => failure,
        }
        .help("leave --rates out, or measure a table with `veil-lab calibrate --out FILE`")
    }
}
