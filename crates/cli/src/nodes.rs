//! Parties that are nodes: simulated ones of this process, or boards of others.

use std::path::Path;
use std::sync::Arc;

use veil_device::Device;
use veil_device_fpga::Fpga;
use veil_device_fpga::board::{Board, Patience, socket_of};
use veil_device_fpga::node::{CLOCK_MHZ, Carrier, SLOTS};
use veil_engine::Settings;
use veil_link::Link;
use veil_session::{PartyId, Peer};

use crate::boards::{self, Cards};
use crate::devices::{Maker, Network, Wanted};
use crate::failure::{Code, Failure};
use crate::launch::{Crossed, Headless};

/// Makes cards, or says why there are none.
pub type Card = Arc<dyn Fn() -> Result<Fpga, String> + Send + Sync>;

/// What makes cards for the party of a number and a name.
type OfParty = Box<dyn Fn(PartyId, &str) -> Option<Card> + Send + Sync>;

/// The nodes of a run.
pub struct Nodes {
    carrier: Carrier,
    parties: usize,
    headless: bool,
    /// What makes cards for the party of a number and a name, if products are made at nodes.
    cards: Option<OfParty>,
}

/// Whether products of a run are made at nodes: if all its parties compute on shares on cores that are `theirs`, and no participant looks at messages.
///
/// # Errors
/// [`Failure`] if nodes are to compute without hosts, and cannot.
pub fn join(
    wanted: &Wanted<'_>,
    device: &str,
    theirs: impl Fn(&str) -> bool,
) -> Result<bool, Failure> {
    // As many products at once as nodes have places for.
    let lanes = u32::from(wanted.plan.lanes) * Settings::default().window as u32;
    let joins = !wanted.looks
        && wanted.plan.parties().len() > 2
        && lanes <= SLOTS
        && wanted
            .devices
            .iter()
            .all(|device| device.is_some_and(&theirs));
    if wanted.headless && !joins {
        let message = format!(
            "--headless needs three parties or four that all compute on {device}, in 8 lanes at most, and whose messages no host looks at"
        );
        let help = format!(
            "add --device {device}; leave out --record, --shadow, --watch and views of messages"
        );
        return Err(Failure::new(Code::Usage, message).help(help));
    }
    Ok(joins)
}

impl Nodes {
    /// Nodes that `make` makes with keys of this run, for the link `link`. `cards`: what makes cards for the party of a number and a name, if products
    /// are made at nodes.
    ///
    /// # Errors
    /// [`Failure`] if they are not here.
    pub fn new(
        wanted: &Wanted<'_>,
        link: &str,
        cards: Option<impl Fn(PartyId, &str) -> Option<Card> + Send + Sync + 'static>,
        make: impl FnOnce(&mut dyn FnMut(&mut [u8])) -> Result<Carrier, String>,
    ) -> Result<Self, Failure> {
        let here =
            |why: String| Failure::new(Code::Link, format!("--link {link} is not here: {why}"));
        let mut failed = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = getrandom::fill(bytes) {
                failed = Some(error);
            }
        };
        let made = make(&mut random);
        if let Some(error) = failed {
            return Err(here(format!("this machine gives no randomness: {error}")));
        }
        let carrier = made.map_err(here)?;
        Ok(Nodes {
            carrier: if wanted.headless {
                carrier.compute_headless()
            } else {
                carrier
            },
            parties: wanted.plan.parties().len(),
            headless: wanted.headless,
            cards: cards.map(|cards| -> OfParty { Box::new(cards) }),
        })
    }

    /// Those of the boards at a socket's path, each with the number of its node behind it.
    pub(crate) fn of_boards(
        wanted: &Wanted<'_>,
        socket: &Path,
        cards: &Cards,
    ) -> Result<Self, Failure> {
        let link = format!("{}{}", boards::PREFIX, socket.display());
        let joins = join(wanted, boards::NAME, |device| {
            boards::socket(device).is_some()
        })?;
        let parties = wanted.plan.parties().len() as u8;
        let make = |random: &mut dyn FnMut(&mut [u8])| {
            let meet = |node| Board::connect(&socket_of(socket, node), Patience::default());
            let met: Result<Vec<Board>, _> = (0..parties).map(meet).collect();
            let met = met.map_err(|error| error.to_string())?;
            let four = |board: &Board| board.identity().node.is_some_and(|node| node.four);
            if joins && parties == 4 && !met.iter().all(four) {
                return Err("its nodes have no workers for products of four parties".to_owned());
            }
            Carrier::of_boards(&met, random).map_err(|error| error.to_string())
        };
        let devices: Vec<Option<String>> = (wanted.devices.iter())
            .map(|device| device.map(str::to_owned))
            .collect();
        let cards = cards.clone();
        let of_party = move |party: PartyId, name: &str| {
            let device = devices.get(party.index())?.as_deref()?;
            cards.maker(device, name)
        };
        Self::new(wanted, &link, joins.then_some(of_party), make)
    }
}

impl Network for Nodes {
    fn link(&self, me: Peer, inner: Box<dyn Link>) -> Box<dyn Link> {
        Box::new(self.carrier.link(me, inner))
    }

    fn of_party(&self, party: PartyId, name: &str) -> Option<Maker> {
        let card = self.cards.as_ref()?(party, name)?;
        let node = self.carrier.node(party.index() as u8);
        Some(Arc::new(move || {
            Ok(Box::new(card()?.joined(node.user())) as Box<dyn Device>)
        }))
    }

    fn crossed(&self) -> Crossed {
        let sent = (0..self.parties as u8).map(|node| self.carrier.sent(node));
        Crossed {
            cycles: self.carrier.cycles(),
            clock_mhz: CLOCK_MHZ,
            words: sent.sum(),
            headless: self.headless.then(|| {
                let done = self.carrier.headless();
                let hosts = done.hosts[..self.parties].iter();
                Headless {
                    circuits: done.circuits,
                    rounds: done.rounds,
                    cycles: done.cycles,
                    hosts: hosts.map(|of| [of.commands, of.completions]).collect(),
                }
            }),
        }
    }
}
