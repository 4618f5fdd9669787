//! `veil invite`: one string that makes two participants known to each other.

use std::time::Duration;

use veil_node::Role;

use crate::failure::Failure;
use crate::home::{HomeArgs, note};
use crate::output;

/// Prints an invitation for another participant.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil invite mill --role owner
  veil invite union --role party --expires 12h

Send the string over a channel that you trust: whoever has it first can take that name here, once. There: veil join STRING")]
pub(crate) struct InviteArgs {
    /// Name of the other participant, as jobs write it.
    name: String,
    /// What it is: party, owner or recipient.
    #[arg(long)]
    role: Role,
    /// How long the string is good: days, hours or minutes, such as 7d, 12h, 30m.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = span)]
    expires: Duration,
    #[command(flatten)]
    home: HomeArgs,
}

pub(crate) fn run(args: &InviteArgs) -> Result<(), Failure> {
    let home = args.home.open()?;
    let invitation = home.invite(&args.name, args.role, args.expires)?;
    output::print(&format!("{invitation}\n"))?;
    note(&format!(
        "good once, for `{}`, until {}; there: veil join STRING",
        args.name, invitation.expires
    ));
    Ok(())
}

/// A span of time: a number and a unit.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time: write 7d, 12h or 30m");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'd' => 24 * 3600,
        'h' => 3600,
        'm' => 60,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    // A year: an invitation with a longer span is forgotten in a mailbox.
    let span = number
        .checked_mul(seconds)
        .filter(|span| (1..=366 * 24 * 3600).contains(span));
    span.map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is not between a minute and a year"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(span("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(span("90m"), Ok(Duration::from_secs(5400)));
        for text in [
            "",
            "7",
            "d",
            "-1d",
            "7w",
            "1.5h",
            "0d",
            "99999999999999999999d",
            "367d",
            "7é",
        ] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
