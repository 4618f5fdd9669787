//! The home that a command works on.

use std::path::PathBuf;

use veil_node::log::{HeadError, LogFault};
use veil_node::receipt::ReceiptError;
use veil_node::{FileError, Home, HomeError, JoinError, RotationError, SettingsError, StringError};

use crate::failure::{Code, Failure};

/// Which home.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct HomeArgs {
    /// The home, a folder with all that a participant owns [default: `$VEIL_HOME`, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl HomeArgs {
    /// Where it is, or would be.
    pub(crate) fn path(&self) -> PathBuf {
        Home::locate(self.home.as_deref())
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Home, Failure> {
        Ok(Home::open(&self.path())?)
    }
}

/// Prints a sentence for the person at the terminal; what scripts take goes to standard output.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let failure = Failure::new(Code::Input, error.to_string());
        match &error {
            FileError::Syntax { path, span, .. } if *span != (0..0) => {
                match std::fs::read_to_string(path) {
                    Ok(text) => failure.showing(&path.display().to_string(), text, span.clone()),
                    Err(_) => failure,
                }
            }
            _ => failure,
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        match error {
            HomeError::File(error) => error.into(),
            HomeError::Identity(error) => error.into(),
            HomeError::LogDamaged(_) => Failure::new(Code::Check, error.to_string()),
            HomeError::Busy(_) | HomeError::Random(_) => {
                Failure::new(Code::Other, error.to_string())
            }
            error => Failure::new(Code::Input, error.to_string()),
        }
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Home(error) => error.into(),
            error => Failure::new(Code::Input, error.to_string()),
        }
    }
}

impl From<RotationError> for Failure {
    fn from(error: RotationError) -> Self {
        match error {
            RotationError::Home(error) => error.into(),
            RotationError::Statement(error) => Failure::new(Code::Check, error.to_string()),
            error => Failure::new(Code::Input, error.to_string()),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Failure::new(Code::Usage, error.to_string())
    }
}

impl From<StringError> for Failure {
    fn from(error: StringError) -> Self {
        Failure::new(Code::Input, error.to_string())
    }
}

impl From<HeadError> for Failure {
    fn from(error: HeadError) -> Self {
        Failure::new(Code::Usage, error.to_string())
    }
}

impl From<LogFault> for Failure {
    fn from(error: LogFault) -> Self {
        let code = match error {
            LogFault::Read(_) => Code::Input,
            _ => Code::Check,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<ReceiptError> for Failure {
    fn from(error: ReceiptError) -> Self {
        match error {
            ReceiptError::File(error) => error.into(),
            error => Failure::new(Code::Check, error.to_string()),
        }
    }
}
