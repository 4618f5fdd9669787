//! Devices that are simulated or emulated, and nodes with a network between them.

use std::sync::Arc;

use veil_cli::boards::{self, Cards};
use veil_cli::devices::{Candidate, Maker, Network, Registry, Wanted};
use veil_cli::failure::Failure;
use veil_cli::links::NODES;
use veil_cli::nodes::{self, Card, Nodes};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_fpga::board::Kind;
use veil_device_fpga::node::{Carrier, Shape};
use veil_device_fpga::{Clock, Fpga};
use veil_protocol::{Plan, Protocol};

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
        let joins = nodes::join(wanted, FPGA, |device| device == FPGA)?;
        let parties = wanted.plan.parties().len();
        let shape = Shape {
            four: joins && parties == 4,
            ..Shape::new(parties as u8)
        };
        let simulated = self.clone();
        let cards = move |_, name: &str| -> Option<Card> {
            Some(Arc::new(simulated.card(simulated.cards.clock(name))))
        };
        let make = |random: &mut dyn FnMut(&mut [u8])| match Carrier::new(shape, random) {
            Ok(Ok(carrier)) => Ok(carrier),
            Ok(Err(error)) => Err(error.to_string()),
            Err(absent) => Err(absent.to_string()),
        };
        let nodes = Nodes::new(wanted, NODES, joins.then_some(cards), make)?;
        Ok(Box::new(nodes))
    }
}
