//! `veil join`: takes the strings that other participants send.

use std::io::Read;
use std::time::Duration;

use veil_link::tls::ControlError;
use veil_node::control::{CallError, Reply, Request, ask_if_there};
use veil_node::{Answer, Home, Invitation, Joined, Sent, Statement};

use crate::failure::{Code, Failure};
use crate::home::{HomeArgs, note};
use crate::output;

/// Takes a string of another participant: an invitation, the answer to one, or the statement of a new key.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil join veil1-…       an invitation: pins the inviter, and makes this participant known there
  veil join veil2-…       the answer to an invitation of yours, where it could not be given directly
  veil join veil3-…       the statement of a member's new key
  veil join - < mail.txt  the string from standard input

A string that was cut, mistyped, used before, meant for somebody else, or is too old is refused, and the message says which.")]
pub(crate) struct JoinArgs {
    /// The string, or `-` for standard input.
    string: String,
    #[command(flatten)]
    home: HomeArgs,
}

/// An inviter that listens is there at once; one that does not takes the answer as a string.
const CALL: Duration = Duration::from_secs(3);

/// No string is longer, however it is wrapped.
const LONGEST: u64 = 1 << 16;

pub(crate) fn run(args: &JoinArgs) -> Result<(), Failure> {
    let home = args.home.open()?;
    let text = if args.string == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
        read.map_err(|error| {
            Failure::new(Code::Input, format!("cannot read standard input: {error}"))
        })?;
        text
    } else {
        args.string.clone()
    };
    match text.parse()? {
        Sent::Invitation(invitation) => invited(&home, &invitation),
        Sent::Answer(answer) => answered(&home, &answer),
        Sent::Statement(statement) => renewed(&home, &statement),
        _ => Err(Failure::new(
            Code::Input,
            "this release cannot take strings of this kind",
        )),
    }
}

fn invited(home: &Home, invitation: &Invitation) -> Result<(), Failure> {
    let (joined, answer) = home.join(invitation)?;
    let inviter = &joined.member;
    say_pinned(&joined);
    if inviter.address.is_some() {
        let request = Request::Join(answer.to_join());
        match ask_if_there(&home.identity(), inviter, &request, CALL) {
            Ok(Reply::Welcome { name }) => {
                note(&format!(
                    "`{name}` knows this participant now; nothing is left to do"
                ));
                return Ok(());
            }
            Ok(Reply::Refused { why }) => {
                return Err(Failure::new(
                    Code::Input,
                    format!("`{}` refuses: {why}", inviter.name),
                ));
            }
            Ok(_) => note(&format!(
                "`{}` gave an answer of another kind",
                inviter.name
            )),
            Err(CallError::Call {
                error: ControlError::OurKey { ours, .. },
                name,
            }) => note(&format!(
                "`{name}` does not accept our key {ours}, or runs no service: if it was revoked there, it refuses the string as well: \
                 `veil identity rotate` makes another one, and `veil members readmit {} --key KEY` there lets it in",
                home.settings().name
            )),
            Err(error) => note(&format!("could not say so directly: {error}")),
        }
    }
    // The answer is all that standard output has, so that a script can pass it on.
    output::print(&format!("{answer}\n"))?;
    note(&format!(
        "send the string above to `{}`, who takes it with `veil join`; it is good until {}",
        inviter.name, invitation.expires
    ));
    Ok(())
}

/// Whose key is pinned.
fn say_pinned(joined: &Joined) {
    let member = &joined.member;
    note(&format!(
        "{} `{}` is {}, with the key {}",
        member.role,
        member.name,
        if joined.again {
            "a member already"
        } else {
            "a member now"
        },
        member.fingerprint
    ));
}

fn answered(home: &Home, answer: &Answer) -> Result<(), Failure> {
    let joined = home.accept_answer(answer)?;
    say_pinned(&joined);
    Ok(())
}

fn renewed(home: &Home, statement: &Statement) -> Result<(), Failure> {
    let joined = home.accept_rotation(statement)?;
    let member = &joined.member;
    note(&if joined.again {
        format!(
            "the key of `{}` is {} already",
            member.name, member.fingerprint
        )
    } else {
        format!(
            "the key of `{}` is {} from now on; the old one is refused",
            member.name, member.fingerprint
        )
    });
    Ok(())
}
