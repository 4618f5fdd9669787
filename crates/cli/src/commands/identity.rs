//! `veil identity`: the key by which other participants know this one.

use std::path::PathBuf;

use veil_link::tls::Identity;

use crate::failure::Failure;
use crate::output;

/// Makes and shows keys.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil identity new me.key       makes a private key, and prints the fingerprint to send to the others
  veil identity show me.key      prints the fingerprint again

Send fingerprints over a channel that you trust: whoever can change one on its way can play that participant.")]
pub(crate) enum IdentityCommand {
    /// Make a private key in a new file that only you can read, and print its fingerprint
    New {
        /// The file; an existing one is never overwritten.
        file: PathBuf,
    },
    /// Print the fingerprint of a key
    Show {
        /// The file.
        file: PathBuf,
    },
}

pub(crate) fn run(command: &IdentityCommand) -> Result<(), Failure> {
    let identity = match command {
        IdentityCommand::New { file } => {
            let identity = Identity::generate()?;
            identity.save(file)?;
            identity
        }
        IdentityCommand::Show { file } => Identity::load(file)?,
    };
    output::print(&format!("{}\n", identity.fingerprint()))
}
