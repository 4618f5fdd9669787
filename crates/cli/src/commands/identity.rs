//! `veil identity`: the key by which other participants know this one.

use std::path::PathBuf;

use veil_link::tls::Identity;

use crate::failure::Failure;
use crate::home::{HomeArgs, note};
use crate::output;

/// Shows the key of a home, and replaces it.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil identity show                  prints the fingerprint, for others to compare
  veil identity rotate                makes a new key; prints the statement that others take with veil join
  veil identity show --statements     prints all such statements again, the oldest first")]
pub(crate) enum IdentityCommand {
    /// Make a private key in a new file that only you can read, and print its fingerprint
    #[command(hide = true)]
    New {
        /// The file; an existing one is never overwritten.
        file: PathBuf,
    },
    /// Print the fingerprint of the home's key
    Show {
        /// A key file, in place of a home.
        #[arg(hide = true, conflicts_with_all = ["statements", "home"])]
        file: Option<PathBuf>,
        /// Print the statements of new keys, for members that missed one.
        #[arg(long)]
        statements: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Replace the key, and print the statement that makes members accept the new one
    Rotate {
        #[command(flatten)]
        home: HomeArgs,
    },
}

pub(crate) fn run(command: &IdentityCommand) -> Result<(), Failure> {
    match command {
        IdentityCommand::New { file } => {
            let identity = Identity::generate()?;
            identity.save(file)?;
            output::print(&format!("{}\n", identity.fingerprint()))
        }
        IdentityCommand::Show {
            file: Some(file), ..
        } => output::print(&format!("{}\n", Identity::load(file)?.fingerprint())),
        IdentityCommand::Show {
            statements: true,
            home,
            ..
        } => {
            let statements = home.open()?.statements()?;
            if statements.is_empty() {
                note("the key was never replaced");
            }
            let lines: Vec<String> = statements.iter().map(|s| format!("{s}\n")).collect();
            output::print(&lines.concat())
        }
        IdentityCommand::Show { home, .. } => {
            output::print(&format!("{}\n", home.open()?.identity().fingerprint()))
        }
        IdentityCommand::Rotate { home } => {
            let statement = home.open()?.rotate()?;
            output::print(&format!("{statement}\n"))?;
            note(&format!(
                "the key is {} now. Every member refuses it until it took the string above with `veil join`; nothing in it is secret",
                statement.new_key()
            ));
            note(
                "the old key is not kept; if it was stolen, members must revoke this participant and invite it again instead",
            );
            Ok(())
        }
    }
}
