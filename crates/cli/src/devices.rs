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
use veil_job::{Rows, Tables};
use veil_protocol::Plan;
use veil_session::Peer;

use crate::failure::{Code, Failure};

/// The fastest device of the processor.
const CPU: &str = "cpu";

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
    let names = || candidates(assembled, clock).into_iter().map(|it| it.name);
    if name != CPU && !names().any(|known| known == name) {
        let names: Vec<&str> = [CPU].into_iter().chain(names()).collect();
        let help = format!("--device takes one of: {}", names.join(", "));
        return Err(Failure::new(Code::Usage, format!("there is no device `{name}`")).help(help));
    }
    start(name, assembled, clock)
        .map_err(|why| Failure::new(Code::Device, format!("{name} is not here: {why}")))
}

/// The same, or why it does not start.
fn start(name: &str, assembled: &Assembled, clock: &Clock) -> Result<Box<dyn Device>, String> {
    if name == CPU {
        return Ok(Box::new(Cpu::detect()));
    }
    let mut candidates = candidates(assembled, clock).into_iter();
    match candidates.find(|candidate| candidate.name == name) {
        Some(candidate) => (candidate.make)(),
        None => Err("there is no such device".into()),
    }
}

/// What this processor lacks for an instruction set.
pub(crate) fn lacking(isa: Isa) -> Vec<&'static str> {
    let needs = isa.needs().into_iter();
    needs
        .filter_map(|(name, there)| (!there).then_some(name))
        .collect()
}

/// Every device that there can be.
pub(crate) fn candidates(assembled: &Assembled, clock: &Clock) -> Vec<Candidate> {
    let (assembled, clock) = (assembled.clone(), clock.clone());
    let cpu = |name, what, isa: Isa| {
        let make = move || match &lacking(isa)[..] {
            [] => Ok(Box::new(Cpu::with(isa)) as Box<dyn Device>),
            missing => Err(format!("this processor lacks {}", missing.join(", "))),
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
        ),
        cpu(
            "cpu-avx2",
            "256 bits at a time, AES instructions",
            Isa::Avx2,
        ),
        cpu(
            "cpu-portable",
            "64 bits at a time, any processor",
            Isa::Portable,
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

    /// Makes the devices of a participant. Those of parties that are nodes have the node of theirs. A device was there when the run was
    /// checked, and may have gone since: then there is no run, for another one was not asked for.
    pub(crate) fn factory(
        &self,
        plan: &Plan,
        peer: Peer,
        nodes: Option<&Carrier>,
    ) -> DeviceFactory {
        let Some(name) = self.named(plan, peer).map(str::to_owned) else {
            return Arc::new(|| Ok(Box::new(Cpu::detect())));
        };
        let (assembled, clock) = (self.assembled.clone(), Clock::default());
        if name == FPGA {
            let who = veil_engine::name_of(plan, peer).to_owned();
            let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
            clocks.insert(who, clock.clone());
        }
        let node = (peer.party().zip(nodes)).map(|(party, nodes)| nodes.node(party.index() as u8));
        Arc::new(move || {
            let absent = |why: String| Fault::Absent {
                device: name.clone(),
                why,
            };
            let Some(node) = &node else {
                return start(&name, &assembled, &clock).map_err(absent);
            };
            let fpga = Fpga::simulated().map_err(|why| absent(why.to_string()))?;
            let fpga = fpga.sharing(&assembled).counting(&clock);
            Ok(Box::new(fpga.joined(node.user())))
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use veil_program::{Files, Job};
    use veil_protocol::Options;

    use super::*;

    const JOB: &str = r#"version = 1
kind = "circuit"
name = "sum"
owners = ["ann", "bob"]
parties = ["ann", "bob"]
recipients = ["bob"]
circuit = { make = "adder:2", rows = 1 }
input = [{ port = "x", owner = "ann", format = "hex", file = "x.hex" },
         { port = "y", owner = "bob", format = "hex", file = "y.hex" }]
output = [{ port = "out", to = "bob", format = "hex", file = "sum.hex" }]
"#;

    #[test]
    fn a_device_that_has_gone_is_no_other() {
        let job = Job::parse(JOB, Path::new("job.toml"), Files::default()).unwrap();
        let plan = Plan::new(job.shared(), Options::default()).unwrap();
        let peer = Peer::Party(plan.parties()[0]);
        let here = |name: &str| start(name, &Assembled::default(), &Clock::default());
        let candidates = candidates(&Assembled::default(), &Clock::default());
        let names = candidates.iter().map(|candidate| candidate.name);
        let mut absent = 0;
        for name in names.chain([CPU, "one-that-has-gone"]) {
            let Ok(choice) = name.parse();
            let args = DevicesArgs {
                devices: vec![choice],
                ..DevicesArgs::default()
            };
            let device = args.factory(&plan, peer, None)();
            match (device, here(name)) {
                (Ok(device), Ok(same)) => assert_eq!(device.name(), same.name()),
                (Err(fault), Err(why)) => {
                    absent += 1;
                    let device = name.to_owned();
                    assert_eq!(fault, Fault::Absent { device, why });
                }
                (device, _) => panic!("{name}: {:?}", device.map(|device| device.name())),
            }
        }
        assert!(absent > 0);
    }
}
