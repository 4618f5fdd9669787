//! Boards by name: `fpga:SOCKET` is the one that a process serves behind that socket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use veil_device_fpga::board::{Board, Kind, Patience};
use veil_device_fpga::{Assembled, Clock, Fpga};
use veil_job::{Adversary, Tables};
use veil_protocol::{Plan, Protocol};
use veil_session::Peer;

use crate::devices::Maker;
use crate::failure::{Code, Failure};
use crate::nodes::Card;

/// What the name of a board begins with.
pub(crate) const PREFIX: &str = "fpga:";

/// How `--device` takes a board.
pub(crate) const NAME: &str = "fpga:SOCKET";

/// What a board is, in a line.
pub(crate) const WHAT: &str = "a board that a process of this machine serves behind SOCKET: `veil-lab card --socket SOCKET` does, with simulated cores";

/// The socket of a board of this name, if it is one's.
pub(crate) fn socket(device: &str) -> Option<&Path> {
    device.strip_prefix(PREFIX).map(Path::new)
}

/// The same name wherever a process stands: of a relative path, the absolute one.
pub(crate) fn anywhere(device: &str) -> String {
    let absolute = socket(device).and_then(|socket| std::path::absolute(socket).ok());
    let name = absolute.and_then(|socket: PathBuf| Some(format!("{PREFIX}{}", socket.to_str()?)));
    name.unwrap_or_else(|| device.to_owned())
}

/// A card of the board behind a socket, and what the board has.
pub(crate) fn open(socket: &Path) -> Result<(Fpga, Kind), String> {
    let board = Board::connect(socket, Patience::default()).map_err(|error| error.to_string())?;
    let kind = board.identity().kind;
    let fpga = Fpga::of_board(&board).map_err(|error| error.to_string())?;
    Ok((fpga, kind))
}

/// What cards of a run have in common, wherever their cores are.
#[derive(Clone, Debug, Default)]
pub struct Cards {
    /// What a check has assembled, for the devices of the run.
    assembled: Assembled,
    /// What the cores of each party have done, by its name.
    clocks: Arc<Mutex<BTreeMap<String, Clock>>>,
}

impl Cards {
    /// A clock for the cores of a party, in the place of the one that it had.
    pub fn clock(&self, party: &str) -> Clock {
        let clock = Clock::default();
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.insert(party.to_owned(), clock.clone());
        clock
    }

    /// Cycles that the cores of a party have run, if it computes on some.
    pub fn cycles(&self, party: &str) -> Option<u64> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.get(party).map(Clock::cycles)
    }

    /// A card among them, whose cores count on this clock.
    #[must_use]
    pub fn join(&self, card: Fpga, clock: &Clock) -> Fpga {
        card.sharing(&self.assembled).counting(clock)
    }

    /// What makes the cards of a party from the board behind a socket, if the device is one.
    pub(crate) fn of_party(&self, device: &str, party: &str) -> Option<Maker> {
        let card = self.maker(device, party)?;
        Some(Arc::new(move || Ok(Box::new(card()?))))
    }

    /// The same, as cards.
    pub(crate) fn maker(&self, device: &str, party: &str) -> Option<Card> {
        let socket = socket(device)?.to_owned();
        let (cards, clock) = (self.clone(), self.clock(party));
        Some(Arc::new(move || {
            let (card, _) = open(&socket)?;
            Ok(cards.join(card, &clock))
        }))
    }
}

/// Refuses cores for what a party of this plan is to do, for a reason other than room: cores garble half-gates, without MACs, and do nothing for the party that
/// evaluates. `kind`: what they are.
pub fn suits(
    device: &str,
    kind: Kind,
    plan: &Plan,
    protocol: &dyn Protocol,
) -> Result<(), Failure> {
    let refused = |message: String, help: &str| Err(Failure::new(Code::Usage, message).help(help));
    let name = protocol.name();
    if name != "yao" {
        if kind.shares() {
            return Ok(());
        }
        let message = format!("{device} has no cores of shares, and this job runs by {name}");
        return refused(message, "name a board of kind shares or both");
    }
    if !kind.garbles() {
        let message = format!("{device} has no garbler, and this job runs by {name}");
        return refused(message, "name a board of kind garbler or both");
    }
    if plan.job.intersection().is_some() {
        let message = format!("{device} garbles, and where keys meet nothing is garbled");
        return refused(message, "leave out --device");
    }
    if plan.job.security.adversary == Adversary::Malicious {
        let message = format!(
            "{device} garbles half-gates, and this job's tables have the masks and MACs of authenticated garbling, for which it has no core"
        );
        let help = "leave out --device, or let the job hold against a semi-honest party or by cut-and-choose";
        return refused(message, help);
    }
    if protocol.me() != Peer::Party(plan.parties()[0]) {
        let who = veil_engine::name_of(plan, protocol.me());
        let message =
            format!("{device} garbles, and {who} does not in this job, which runs by {name}");
        return refused(message, &format!("`--device garbler={device}`"));
    }
    if plan.job.security.tables != Tables::HalfGates {
        let message = format!("{device} makes tables of half-gates, and this job has others");
        let help = "leave out --tables, or write `--tables half-gates`";
        return refused(message, help);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use veil_program::{Files, Job};
    use veil_protocol::Options;

    use super::*;

    const JOB: &str = r#"version = 1
kind = "circuit"
name = "sum"
owners = ["ann", "bob"]
parties = ["ann", "bob"]
recipients = ["bob"]
WORDS
circuit = { make = "adder:2", rows = 1 }
input = [{ port = "x", owner = "ann", format = "hex", file = "x.hex" },
         { port = "y", owner = "bob", format = "hex", file = "y.hex" }]
output = [{ port = "out", to = "bob", format = "hex", file = "sum.hex" }]
"#;

    /// What a card of this kind says to a party of a job with these words.
    fn said(words: &str, kind: Kind, party: usize) -> Result<(), String> {
        let text = JOB.replace("WORDS", words);
        let job = Job::parse(&text, Path::new("job.toml"), Files::default()).unwrap();
        let plan = Arc::new(Plan::new(job.shared(), Options::default()).unwrap());
        let me = Peer::Party(plan.parties()[party]);
        let protocol = veil_protocol::protocol(Arc::clone(&plan), me);
        suits("fpga:card", kind, &plan, &*protocol).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_card_garbles_half_gates_and_nothing_else() {
        let refused = |why: &str| Err(why.to_owned());
        let semi_honest = "adversary = \"semi-honest\"";
        assert_eq!(said(semi_honest, Kind::Garbler, 0), Ok(()));
        assert_eq!(
            said(semi_honest, Kind::Garbler, 1),
            refused("fpga:card garbles, and bob does not in this job, which runs by yao")
        );
        assert_eq!(
            said(semi_honest, Kind::Shares, 0),
            refused("fpga:card has no garbler, and this job runs by yao")
        );
        assert_eq!(
            said("tables = \"three-halves\"", Kind::Both, 0),
            refused("fpga:card makes tables of half-gates, and this job has others")
        );
        // Either party, whatever transfers are.
        for words in ["", "ot = \"silent\"", "statistical = \"80\""] {
            let words = format!("adversary = \"malicious\"\n{words}");
            for (kind, party) in [(Kind::Garbler, 0), (Kind::Both, 0), (Kind::Both, 1)] {
                let why = "fpga:card garbles half-gates, and this job's tables have the masks and MACs of authenticated garbling, for which it has no core";
                assert_eq!(said(&words, kind, party), refused(why), "{words}");
            }
        }
    }
}
