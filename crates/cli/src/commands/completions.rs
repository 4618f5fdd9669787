//! `veil completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Prints the completions of a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil completions bash > ~/.local/share/bash-completion/completions/veil
  veil completions zsh > ~/.zfunc/_veil")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "veil", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}
