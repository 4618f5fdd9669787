//! `veil identity`: the key by which other participants know this one.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_link::tls::ControlError;
use veil_node::control::{CallError, Reply, Request, ask_if_there};
use veil_node::{Home, Role};

use crate::commands::jobs;
use crate::failure::Failure;
use crate::home::{HomeArgs, note};
use crate::output;

/// A member that listens is there at once.
const CALL: Duration = Duration::from_secs(3);

/// Our own service reads a new key within a second, on a machine that has nothing else to do.
const READ: Duration = Duration::from_secs(30);

/// Our own service is on this machine, or does not run.
const HERE: Duration = Duration::from_millis(500);

/// Shows the key of a home, and replaces it.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil identity show                  prints the fingerprint, for others to compare
  veil identity rotate                makes a new key; prints the statement that others take with veil join
  veil identity show --statements     prints all such statements again, the oldest first")]
pub(crate) enum IdentityCommand {
    /// Print the fingerprint of the home's key
    Show {
        /// Print the statements of new keys, for members that missed one.
        #[arg(long)]
        statements: bool,
        /// Print one JSON object: name, role, key, and where a party listens.
        #[arg(long, conflicts_with = "statements")]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Replace the key, and print the statement that makes members accept the new one
    Rotate {
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    role: Role,
    key: String,
    /// Where its service listens, if it is a party.
    listen: Option<String>,
    /// Where others reach it, if it is a party.
    address: Option<&'a str>,
}

/// Waits until the service of this home, if one runs, has read the new key: until then members that took it refuse it.
fn serves_new_key(home: &Home) -> bool {
    let Ok(own) = jobs::own(home) else {
        return false;
    };
    let until = Instant::now() + READ;
    loop {
        match ask_if_there(&home.identity(), &own, &Request::Jobs {}, HERE) {
            Ok(_) => return true,
            // It shows the old key, or knows only that one.
            Err(CallError::Call {
                error: ControlError::WrongKey { .. } | ControlError::OurKey { .. },
                ..
            }) if Instant::now() < until => thread::sleep(HERE / 5),
            Err(_) => return false,
        }
    }
}

pub(crate) fn run(command: &IdentityCommand) -> Result<(), Failure> {
    match command {
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
        IdentityCommand::Show {
            json: true, home, ..
        } => {
            let home = home.open()?;
            let settings = home.settings();
            output::print_json(&Shown {
                name: &settings.name,
                role: settings.role,
                key: home.identity().fingerprint().to_string(),
                listen: settings.listen.map(|listen| listen.to_string()),
                address: settings.address.as_deref(),
            })
        }
        IdentityCommand::Show { home, .. } => {
            output::print(&format!("{}\n", home.open()?.identity().fingerprint()))
        }
        IdentityCommand::Rotate { home } => {
            let home = home.open()?;
            // Members still pin the old key: it is the one that they listen to.
            let old = home.identity();
            let statement = home.rotate()?;
            output::print(&format!("{statement}\n"))?;
            for member in home.members().iter().filter(|m| m.address.is_some()) {
                let request = Request::Rotate {
                    statement: Box::new(statement.clone()),
                };
                match ask_if_there(&old, member, &request, CALL) {
                    Ok(Reply::Welcome { name }) => note(&format!("`{name}` took the new key")),
                    Ok(Reply::Refused { why }) => {
                        note(&format!("`{}` refuses the new key: {why}", member.name));
                    }
                    Ok(_) => note(&format!("`{}` gave an answer of another kind", member.name)),
                    Err(error) => note(&format!("not told directly: {error}")),
                }
            }
            if serves_new_key(&home) {
                note("the service of this home shows the new key");
            }
            note(&format!(
                "the key is {} now. Every other member refuses it until it took the string above with `veil join`; nothing in it is secret",
                statement.new_key()
            ));
            note(
                "the old key is not kept; if it was stolen, members must revoke this participant and invite it again instead",
            );
            Ok(())
        }
    }
}
