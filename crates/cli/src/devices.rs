//! Devices by name: which there are, and which one a participant computes on.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::{Cpu, Device, Fault, Isa, Reference};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_fpga::node::{Carrier, PLACES};
use veil_device_fpga::{Assembled, Clock, Fpga};
use veil_engine::{DeviceFactory, Settings};
use veil_program::{Rows, Tables};
use veil_protocol::Plan;
use veil_session::Peer;

use crate::failure::{Code, Failure};

/// The device with simulated cores.
const FPGA: &str = "fpga-sim";

/// A device that could be here.
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Makes it, or says why it is not here.
    pub(crate) make: Box<dyn FnOnce() -> Result<Box<dyn Device>, String>>,
}

/// A fresh device of this name, which takes programs that are assembled already, and says on the clock what its cores do.
pub(crate) fn make(
    name: &str,
    assembled: &Assembled,
    clock: &Clock,
) -> Result<Box<dyn Device>, Failure> {
    if name == "cpu" {
        return Ok(Box::new(Cpu::detect()));
    }
    let mut names = vec!["cpu"];
    for candidate in candidates(assembled, clock) {
        names.push(candidate.name);
        if candidate.name == name {
            return (candidate.make)()
                .map_err(|why| Failure::new(Code::Device, format!("{name} is not here: {why}")));
        }
    }
    let help = format!("--device takes one of: {}", names.join(", "));
    Err(Failure::new(Code::Usage, format!("there is no device `{name}`")).help(help))
}

/// Every device that there can be.
pub(crate) fn candidates(assembled: &Assembled, clock: &Clock) -> Vec<Candidate> {
    let (assembled, clock) = (assembled.clone(), clock.clone());
    let cpu = |name, what, isa, needs: &[(&'static str, bool)]| {
        let missing = needs.iter().filter(|(_, there)| !there);
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        let make = move || {
            if Isa::available().contains(&isa) {
                Ok(Box::new(Cpu::with(isa)) as Box<dyn Device>)
            } else {
                Err(format!("this processor lacks {}", missing.join(", ")))
            }
        };
        let make = Box::new(make);
        Candidate { name, what, make }
    };
    let reference = Candidate {
        name: "reference",
        what: "defines every operation, and is slow",
        make: Box::new(|| Ok(Box::new(Reference::default()))),
    };
    vec![
        reference,
        cpu(
            "cpu-avx512",
            "512 bits at a time, AES in vectors",
            Isa::Avx512,
            &avx512(),
        ),
        cpu(
            "cpu-avx2",
            "256 bits at a time, AES instructions",
            Isa::Avx2,
            &avx2(),
        ),
        cpu(
            "cpu-portable",
            "64 bits at a time, any processor",
            Isa::Portable,
            &[],
        ),
        Candidate {
            name: "cuda",
            what: "the first GPU of NVIDIA, by kernels that this program brings along",
            make: Box::new(|| match Cuda::open(0) {
                Ok(gpu) => Ok(Box::new(gpu)),
                Err(absent) => Err(absent.to_string()),
            }),
        },
        Candidate {
            name: "cuda-sim",
            what: "the same kernels, each thread of which this processor imitates: slow, for tests",
            make: Box::new(|| {
                let emulator = Emulator::new(Order::Forward);
                Ok(Box::new(Cuda::on(Box::new(emulator))))
            }),
        },
        Candidate {
            name: FPGA,
            what: "cores on an FPGA that garble, two rows of gates, and compute on shares, simulated cycle by cycle",
            make: Box::new(move || match Fpga::simulated() {
                Ok(fpga) => Ok(Box::new(fpga.sharing(&assembled).counting(&clock))),
                Err(absent) => Err(absent.to_string()),
            }),
        },
    ]
}

/// What the fastest device needs of a processor, and whether it is there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx512() -> [(&'static str, bool); 4] {
    [
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512dq", is_x86_feature_detected!("avx512dq")),
        ("vaes", is_x86_feature_detected!("vaes")),
    ]
}

/// What the second device needs of a processor, and whether it is there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx2() -> [(&'static str, bool); 2] {
    [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("aes", is_x86_feature_detected!("aes")),
    ]
}

/// What the fastest device needs of a processor, and whether it is there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx512() -> [(&'static str, bool); 1] {
    [("x86-64", false)]
}

/// What the second device needs of a processor, and whether it is there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx2() -> [(&'static str, bool); 1] {
    [("x86-64", false)]
}

/// On which devices the parties of a run compute.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct DevicesArgs {
    /// The device that parties compute on, of `veil device list`: of all parties, or of one [default: the fastest CPU device]. Parties are
    /// called as in the job, or `garbler` and `evaluator`, if there are two.
    #[arg(long = "device", value_name = "[PARTY=]DEVICE")]
    devices: Vec<Choice>,
    /// What a check has assembled, for the devices of the run.
    #[arg(skip)]
    assembled: Assembled,
    /// What the cores of each party have done, by its name.
    #[arg(skip)]
    clocks: Arc<Mutex<BTreeMap<String, Clock>>>,
}

/// One `--device`.
#[derive(Debug, Clone)]
struct Choice {
    party: Option<String>,
    device: String,
}

impl FromStr for Choice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (party, device) = match text.split_once('=') {
            Some((party, device)) => (Some(party.to_owned()), device),
            None => (None, text),
        };
        let device = device.to_owned();
        Ok(Choice { party, device })
    }
}

/// The name of the role of each of two parties.
const ROLES: [&str; 2] = ["garbler", "evaluator"];

impl DevicesArgs {
    /// The device of a participant, if one was named for it.
    pub(crate) fn named(&self, plan: &Plan, peer: Peer) -> Option<&str> {
        let Peer::Party(party) = peer else {
            return None;
        };
        let roles = (plan.parties().len() == 2).then_some(ROLES);
        let role = roles.and_then(|roles| roles.get(party.index()).copied());
        let name = veil_engine::name_of(plan, peer);
        let is = |choice: &&Choice| {
            let party = choice.party.as_deref();
            party.is_none_or(|party| party == name || Some(party) == role)
        };
        // The last one counts, and one for a party more than one for all.
        let choices = self.devices.iter().filter(is);
        let choice = choices.max_by_key(|choice| choice.party.is_some());
        choice.map(|choice| choice.device.as_str())
    }

    /// Whether all parties of a plan compute on shares on simulated cores, so that nodes can do rounds of theirs.
    pub(crate) fn join(&self, plan: &Plan) -> bool {
        let mut parties = plan.parties().iter().map(|party| Peer::Party(*party));
        // As many products at once as nodes have places for.
        let lanes = u32::from(plan.lanes) * Settings::default().window as u32;
        plan.parties().len() > 2
            && lanes <= PLACES
            && parties.all(|peer| self.named(plan, peer) == Some(FPGA))
    }

    /// Makes the devices of a participant. Those of parties that are nodes have the node of theirs.
    pub(crate) fn factory(
        &self,
        plan: &Plan,
        peer: Peer,
        nodes: Option<&Carrier>,
    ) -> DeviceFactory {
        let Some(name) = self.named(plan, peer).map(str::to_owned) else {
            return Arc::new(|| Box::new(Cpu::detect()));
        };
        let (assembled, clock) = (self.assembled.clone(), Clock::default());
        if name == FPGA {
            let who = veil_engine::name_of(plan, peer).to_owned();
            let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
            clocks.insert(who, clock.clone());
        }
        let node = (peer.party().zip(nodes)).map(|(party, nodes)| nodes.node(party.index() as u8));
        // It was there when the run was checked.
        Arc::new(move || {
            if let (Some(node), Ok(fpga)) = (&node, Fpga::simulated()) {
                let fpga = fpga.sharing(&assembled).counting(&clock);
                return Box::new(fpga.joined(node.user()));
            }
            let made = make(&name, &assembled, &clock);
            made.unwrap_or_else(|_| Box::new(Cpu::detect()))
        })
    }

    /// Cycles that the cores of a participant have run, if it computes on some.
    pub(crate) fn cycles(&self, plan: &Plan, peer: Peer) -> Option<u64> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = clocks.get(veil_engine::name_of(plan, peer));
        clock.filter(|_| peer.party().is_some()).map(Clock::cycles)
    }

    /// The order of gates at which the device of a participant is best, if one was named for it that has such an order: which device,
    /// and for how many rows.
    pub(crate) fn preferred(
        &self,
        plan: &Plan,
        peer: Peer,
    ) -> Result<Option<(&str, Rows)>, Failure> {
        let Some(name) = self.named(plan, peer) else {
            return Ok(None);
        };
        let rows = make(name, &self.assembled, &Clock::default())?
            .rows()
            .and_then(Rows::of);
        Ok(rows.map(|rows| (name, rows)))
    }

    /// Refuses devices of parties that are not in the job.
    pub(crate) fn known(&self, plan: &Plan) -> Result<(), Failure> {
        let parties = plan.parties().iter().map(|party| Peer::Party(*party));
        let names: Vec<&str> = parties
            .map(|peer| veil_engine::name_of(plan, peer))
            .collect();
        for choice in &self.devices {
            let known = |party: &String| {
                names.contains(&party.as_str())
                    || (names.len() == 2 && ROLES.contains(&party.as_str()))
            };
            if let Some(party) = choice.party.as_ref().filter(|party| !known(party)) {
                let message = format!(
                    "--device {party}={}: no party is called `{party}`",
                    choice.device
                );
                return Err(Failure::new(Code::Usage, message)
                    .help(format!("the parties are {}", names.join(", "))));
            }
        }
        Ok(())
    }

    /// Refuses devices that are not here, parties that are not in the job, and programs that a device has no room for, before anything
    /// else is done.
    ///
    /// Of the devices of others, whoever takes part as `own` alone cannot know whether they are there.
    pub(crate) fn check(&self, plan: &Arc<Plan>, own: Option<&str>) -> Result<(), Failure> {
        self.known(plan)?;
        for peer in plan.parties().iter().map(|party| Peer::Party(*party)) {
            if own.is_some_and(|own| own != veil_engine::name_of(plan, peer)) {
                continue;
            }
            if let Some(name) = self.named(plan, peer) {
                self.fits(name, plan, peer)?;
            }
        }
        Ok(())
    }

    /// Whether a device does what a party of this plan is to do.
    fn fits(&self, name: &str, plan: &Arc<Plan>, peer: Peer) -> Result<(), Failure> {
        let mut device = make(name, &self.assembled, &Clock::default())?;
        let protocol = veil_protocol::protocol(Arc::clone(plan), peer);
        if name == FPGA && protocol.name() == "yao" {
            if peer != Peer::Party(plan.parties()[0]) {
                let who = veil_engine::name_of(plan, peer);
                let message = format!(
                    "{name} garbles, and {who} does not in this job, which runs by {}",
                    protocol.name()
                );
                let help = format!("`--device garbler={name}`");
                return Err(Failure::new(Code::Usage, message).help(help));
            }
            if plan.job.security.tables != Tables::HalfGates {
                let message = format!("{name} makes tables of half-gates, and this job has others");
                return Err(Failure::new(Code::Usage, message)
                    .help("leave out --tables, or write `--tables half-gates`"));
            }
        }
        let programs = protocol.programs().iter().zip(plan.banks_of_programs());
        for (program, of) in programs {
            match device.load(program, protocol.layout(of)) {
                Ok(_) => {}
                Err(fault @ Fault::NoRoom { .. }) => {
                    let help = if protocol.name() == "yao" {
                        "write the circuit as a sequential one that does a part of it in every cycle, with registers for what goes from one to the next: docs/sequential.md; or leave out --device"
                    } else {
                        "leave out --device"
                    };
                    return Err(Failure::new(Code::Device, fault.to_string()).help(help));
                }
                Err(fault) => return Err(Failure::new(Code::Device, format!("{name}: {fault}"))),
            }
        }
        Ok(())
    }
}
