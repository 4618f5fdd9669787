//! `veil members`: whom this participant knows.

use serde::Serialize;
use veil_link::tls::Fingerprint;
use veil_node::Member;

use crate::failure::Failure;
use crate::home::{HomeArgs, note};
use crate::output;

/// Lists members, revokes one, or lets one in again.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  veil members
  veil members --json
  veil members revoke mill --reason \"laptop stolen\"
  veil members readmit mill --key vw1:…    after `veil identity rotate` there, which prints the key

A revoked member is refused at once, by a running daemon too. Its name can be let in or invited again, with another key."
)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    command: Option<MembersCommand>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    home: HomeArgs,
}

#[derive(clap::Subcommand, Debug)]
enum MembersCommand {
    /// Refuse a member's key from now on
    Revoke {
        /// Its name.
        name: String,
        /// Why, for the log.
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Let a revoked member in again, with another key
    Readmit {
        /// Its name.
        name: String,
        /// The key that it has now: `veil identity show` prints it there.
        #[arg(long, value_name = "KEY")]
        key: Fingerprint,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    members: Vec<PrintedMember>,
}

#[derive(Serialize)]
struct PrintedMember {
    name: String,
    role: String,
    fingerprint: String,
    address: Option<String>,
    since: String,
    former: Vec<String>,
    revoked: Option<String>,
    reason: Option<String>,
}

impl PrintedMember {
    fn of(member: &Member) -> Self {
        let revoked = member.revoked.as_ref();
        PrintedMember {
            name: member.name.clone(),
            role: member.role.to_string(),
            fingerprint: member.fingerprint.to_string(),
            address: member.address.clone(),
            since: member.since.to_string(),
            former: (member.former.iter())
                .map(|former| former.fingerprint.to_string())
                .collect(),
            revoked: revoked.map(|revoked| revoked.at.to_string()),
            reason: revoked.map(|revoked| revoked.reason.clone()),
        }
    }
}

pub(crate) fn run(args: &MembersArgs) -> Result<(), Failure> {
    match &args.command {
        None => list(args),
        Some(MembersCommand::Revoke { name, reason, home }) => {
            let member = home.open()?.revoke(name, reason)?;
            note(&format!(
                "`{}` is revoked: its key {} is refused from now on",
                member.name, member.fingerprint
            ));
            Ok(())
        }
        Some(MembersCommand::Readmit { name, key, home }) => {
            let member = home.open()?.readmit(name, *key)?;
            note(&format!(
                "`{}` is let in again, with the key {}; those that it had before are refused",
                member.name, member.fingerprint
            ));
            Ok(())
        }
    }
}

fn list(args: &MembersArgs) -> Result<(), Failure> {
    let home = args.home.open()?;
    let members = home.members();
    let all: Vec<PrintedMember> = members.all().iter().map(PrintedMember::of).collect();
    if args.json {
        return output::print_json(&Printed { members: all });
    }
    if all.is_empty() {
        note("no members yet: `veil invite` and `veil join` make them");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = all
        .into_iter()
        .map(|member| {
            let state = member.revoked.map(|at| format!("revoked {at}"));
            let address = member.address.unwrap_or_else(|| "dials out".to_owned());
            vec![
                member.name,
                member.role,
                address,
                member.fingerprint,
                state.unwrap_or_default(),
            ]
        })
        .collect();
    output::print(&output::columns(&rows))
}
