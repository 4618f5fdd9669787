//! Devices that are simulated or emulated, and nodes with a network between them.

use std::sync::Arc;

use veil_cli::boards::{self, Cards};
use veil_cli::devices::{Candidate, Maker, Network, Registry, Wanted};
use veil_cli::failure::{Code, Failure};
use veil_cli::launch::{Crossed, Headless};
use veil_cli::links::NODES;
use veil_device::Device;
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_fpga::board::Kind;
use veil_device_fpga::node::{CLOCK_MHZ, Carrier, PLACES, Shape};
use veil_device_fpga::{Clock, Fpga};
use veil_engine::Settings;
use veil_link::Link;
use veil_protocol::{Plan, Protocol};
use veil_session::{PartyId, Peer};

/// The device with kernels for GPUs.
const CUDA: &str = "cuda-sim";

/// The device with cores.
const FPGA: &str = "fpga-sim";

/// All of them, and what their cores have in common in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simulated {
    cards: Cards,
}

impl Simulated {
    /// Makes cards whose cores count on this clock.
    fn card(&self, clock: Clock) -> impl Fn() -> Result<Fpga, String> + Send + Sync + use<> {
        let cards = self.cards.clone();
        move || match Fpga::simulated() {
            Ok(fpga) => Ok(cards.join(fpga, &clock)),
            Err(absent) => Err(absent.to_string()),
        }
    }
}

impl Registry for Simulated {
    fn candidates(&self) -> Vec<Candidate> {
        let card = self.card(Clock::default());
        vec![
            Candidate {
                name: CUDA,
                what: "the same kernels, each thread of which this processor imitates: slow, for tests",
                make: Arc::new(|| {
                    let emulator = Emulator::new(Order::Forward);
                    Ok(Box::new(Cuda::on(Box::new(emulator))))
                }),
            },
            Candidate {
                name: FPGA,
                what: "cores on an FPGA that garble, two rows of gates, and compute on shares, simulated cycle by cycle",
                make: Arc::new(move || Ok(Box::new(card()?))),
            },
        ]
    }

    fn of_party(&self, device: &str, party: &str) -> Option<Maker> {
        (device == FPGA).then(|| -> Maker {
            let card = self.card(self.cards.clock(party));
            Arc::new(move || Ok(Box::new(card()?)))
        })
    }

    fn cycles(&self, party: &str) -> Option<u64> {
        self.cards.cycles(party)
    }

    fn suits(&self, device: &str, plan: &Plan, protocol: &dyn Protocol) -> Result<(), Failure> {
        if device == FPGA {
            boards::suits(device, Kind::Both, plan, protocol)?;
        }
        Ok(())
    }

    fn has_network(&self) -> bool {
        true
    }

    fn network(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Network>, Failure> {
        let joins = !wanted.looks && join(wanted);
        if wanted.headless && !joins {
            let message = "--headless needs three parties or four that all compute on fpga-sim, in 8 lanes at most, and whose messages nobody looks at";
            let help = "add --device fpga-sim; leave out --record, --shadow, --watch and views of messages";
            return Err(Failure::new(Code::Usage, message).help(help));
        }
        let parties = wanted.plan.parties().len();
        let carrier = nodes(parties, joins)?;
        Ok(Box::new(Nodes {
            carrier: if wanted.headless {
                carrier.compute_headless()
            } else {
                carrier
            },
            parties,
            joins,
            headless: wanted.headless,
            simulated: self.clone(),
        }))
    }
}

/// Whether all parties of a plan compute on shares on simulated cores, so that nodes can do rounds of theirs.
fn join(Wanted { plan, devices, .. }: &Wanted<'_>) -> bool {
    // As many products at once as nodes have places for.
    let lanes = u32::from(plan.lanes) * Settings::default().window as u32;
    plan.parties().len() > 2
        && lanes <= PLACES
        && devices.iter().all(|device| *device == Some(FPGA))
}

/// A node for each party, with keys of this run. `joins`: they compute on shares.
fn nodes(parties: usize, joins: bool) -> Result<Carrier, Failure> {
    let here = |why: String| Failure::new(Code::Link, format!("--link {NODES} is not here: {why}"));
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = getrandom::fill(bytes) {
            failed = Some(error);
        }
    };
    let shape = Shape {
        four: joins && parties == 4,
        ..Shape::new(parties as u8)
    };
    let made = Carrier::new(shape, &mut random);
    match (failed, made) {
        (Some(error), _) => Err(here(format!("this machine gives no randomness: {error}"))),
        (None, Ok(Ok(carrier))) => Ok(carrier),
        (None, Ok(Err(error))) => Err(here(error.to_string())),
        (None, Err(absent)) => Err(here(absent.to_string())),
    }
}

/// The nodes of a run.
struct Nodes {
    carrier: Carrier,
    parties: usize,
    /// Products are made at them.
    joins: bool,
    headless: bool,
    simulated: Simulated,
}

impl Network for Nodes {
    fn link(&self, me: Peer, inner: Box<dyn Link>) -> Box<dyn Link> {
        Box::new(self.carrier.link(me, inner))
    }

    fn of_party(&self, party: PartyId, name: &str) -> Option<Maker> {
        self.joins.then(|| -> Maker {
            let node = self.carrier.node(party.index() as u8);
            let card = self.simulated.card(self.simulated.cards.clock(name));
            Arc::new(move || Ok(Box::new(card()?.joined(node.user())) as Box<dyn Device>))
        })
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
