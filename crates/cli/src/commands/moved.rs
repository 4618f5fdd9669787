//! Commands that are those of `veil-lab`.

use std::ffi::OsString;

use crate::failure::{Code, Failure};

/// Whatever was written after such a command.
#[derive(clap::Args, Debug)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// The command is `veil-lab NAME`.
pub(crate) fn to(name: &str) -> Failure {
    Failure::new(Code::Usage, format!("this command is `veil-lab {name}`"))
}
