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
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Runs the command, for a program of this name whose arguments are `P`.
pub fn run<P: CommandFactory>(args: &CompletionsArgs, name: &str) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut P::command(), name, &mut text);
    output::print(&String::from_utf8_lossy(&text))
}
