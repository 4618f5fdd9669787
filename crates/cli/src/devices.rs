//! Devices by name: which there are, and which one a participant computes on.
//!
//! Every program offers the devices of the processor and the GPU, and [boards] by their sockets. What it offers beside them is a [`Registry`], which the program gives in:
//! `veil` has [`Plain`], `veil-lab` one with simulated devices.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::{Cpu, Device, Fault, Isa, Reference};
use veil_device_cuda::{Cuda, backend};
use veil_device_fpga::Clock;
use veil_engine::{DeviceFactory, Settings};
use veil_job::Rows;
use veil_link::Link;
use veil_node::control::Computes;
use veil_protocol::passes::Pass;
use veil_protocol::{Plan, Protocol};
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};

use crate::boards::{self, Cards};
use crate::failure::{Code, Failure};
use crate::launch::Crossed;
use crate::nodes::Nodes;
use crate::wishes::Wish;

/// The name of the fastest device of the processor.
pub const CPU: &str = "cpu";

/// How `--device` takes one GPU among several.
const GPU: &str = "cuda:N";

/// The number of the GPU of this name, from 0, if it is one's.
fn gpu(device: &str) -> Option<usize> {
    device.strip_prefix("cuda:")?.parse().ok()
}

/// A GPU of this machine, and what is known of it.
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Whether the kernels run on it.
    pub(crate) present: bool,
    pub(crate) detail: String,
}

/// All GPUs of this machine.
pub(crate) fn gpus() -> Vec<Listed> {
    let listed = |number| {
        let facts = backend::facts(number).map(|facts| facts.to_string());
        let (present, detail) = match (Cuda::open(number), facts) {
            (Ok(_), Ok(facts)) => (true, facts),
            (Err(absent), _) | (_, Err(absent)) => (false, absent.to_string()),
        };
        let name = format!("cuda:{number}");
        Listed {
            name,
            present,
            detail,
        }
    };
    (0..backend::count().unwrap_or(0)).map(listed).collect()
}

/// Devices that `veil-lab` alone offers, by name.
const SIMULATED: [&str; 2] = ["cuda-sim", "fpga-sim"];

/// Where simulated devices are, for a caller that names one elsewhere.
pub(crate) const IN_LAB: &str = "simulated devices are in `veil-lab`";

/// Makes a device, or says why it is not here.
pub type Maker = Arc<dyn Fn() -> Result<Box<dyn Device>, String> + Send + Sync>;

/// A device that could be here.
pub struct Candidate {
    /// As `--device` takes it.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// Makes it.
    pub make: Maker,
}

/// What a program offers beside the devices of the processor and the GPU.
///
/// The methods that have a body say of such a device that it is like any other.
pub trait Registry: Send + Sync {
    /// Its devices.
    fn candidates(&self) -> Vec<Candidate>;

    /// What makes the devices of a party of this name for a run, a device for every lane, where it is not the candidate's maker.
    fn of_party(&self, _device: &str, _party: &str) -> Option<Maker> {
        None
    }

    /// Cycles that the cores of a party have run, if it computes on some.
    fn cycles(&self, _party: &str) -> Option<u64> {
        None
    }

    /// Refuses a device that does not do what a party of this plan is to do, for a reason other than room.
    fn suits(&self, _device: &str, _plan: &Plan, _protocol: &dyn Protocol) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether it has a network of nodes in simulation.
    fn has_network(&self) -> bool {
        false
    }

    /// A network of nodes in simulation, one for each party.
    fn network(&self, _wanted: &Wanted<'_>) -> Result<Box<dyn Network>, Failure> {
        Err(Failure::new(Code::Usage, IN_LAB))
    }
}

/// What a run wants of a network in simulation.
pub struct Wanted<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The devices that were named for its parties.
    pub devices: Vec<Option<&'a str>>,
    /// Whether the caller inspects messages, or what devices are told.
    pub looks: bool,
    /// Whether nodes are to compute circuits without their hosts.
    pub headless: bool,
}

/// Nodes in simulation, and the network between them.
pub trait Network: Send + Sync {
    /// The link of a participant, beside those of the others.
    fn link(&self, me: Peer, inner: Box<dyn Link>) -> Box<dyn Link>;

    /// What makes the devices of a party that compute at its node, if products are made there. `name`: of the party.
    fn of_party(&self, party: PartyId, name: &str) -> Option<Maker>;

    /// What has crossed it.
    fn crossed(&self) -> Crossed;
}

/// The registry of a program that offers nothing more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Registry for Plain {
    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }
}

/// What this processor lacks for an instruction set.
pub(crate) fn lacking(isa: Isa) -> Vec<&'static str> {
    let needs = isa.needs().into_iter();
    needs
        .filter_map(|(name, there)| (!there).then_some(name))
        .collect()
}

/// Every device that there can be, where this registry is.
pub fn candidates(registry: &dyn Registry) -> Vec<Candidate> {
    let cpu = |name, what, isa: Isa| {
        let make = move || match &lacking(isa)[..] {
            [] => Ok(Box::new(Cpu::with(isa)) as Box<dyn Device>),
            missing => Err(format!("this processor lacks {}", missing.join(", "))),
        };
        let make = Arc::new(make);
        Candidate { name, what, make }
    };
    let reference = Candidate {
        name: "reference",
        what: "defines every operation, and is slow",
        make: Arc::new(|| Ok(Box::new(Reference::default()))),
    };
    let mut all = vec![
        reference,
        cpu(
            "cpu-avx512",
            "512 bits at a time, AES in vectors",
            Isa::Avx512,
        ),
        cpu(
            "cpu-avx2-vaes",
            "256 bits at a time, AES in vectors",
            Isa::Avx2Vaes,
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
            what: "GPUs of NVIDIA, by kernels that this program brings along: lanes take turns at them",
            make: Arc::new(|| match Cuda::next() {
                Ok(gpu) => Ok(Box::new(gpu)),
                Err(absent) => Err(absent.to_string()),
            }),
        },
    ];
    all.extend(registry.candidates());
    all
}

/// A fresh device of this name, for no party of a run.
pub fn make(name: &str, registry: &dyn Registry) -> Result<Box<dyn Device>, Failure> {
    let candidates = candidates(registry);
    let is = |candidate: &Candidate| candidate.name == name;
    let elsewhere = boards::socket(name).is_some() || gpu(name).is_some();
    if name != CPU && !elsewhere && !candidates.iter().any(is) {
        let message = format!("there is no device `{name}`");
        let help = if SIMULATED.contains(&name) {
            IN_LAB.to_owned()
        } else {
            let names = candidates.iter().map(|candidate| candidate.name);
            let names = [CPU].into_iter().chain(names).chain([GPU, boards::NAME]);
            let names: Vec<&str> = names.collect();
            format!("--device takes one of: {}", names.join(", "))
        };
        return Err(Failure::new(Code::Usage, message).help(help));
    }
    start(name, registry).map_err(|why| absent(name, &why))
}

fn absent(name: &str, why: &str) -> Failure {
    Failure::new(Code::Device, format!("{name} is not here: {why}"))
}

/// Makes devices of this name for a participant whose runs are not known yet. It is made once, so that one that is not here is found now.
///
/// # Errors
/// [`Code::Usage`] if there is no such device, [`Code::Device`] if it is not here.
pub fn maker(name: &str, registry: &Arc<dyn Registry>) -> Result<DeviceFactory, Failure> {
    let name = boards::anywhere(name);
    make(&name, &**registry)?;
    let registry = Arc::clone(registry);
    Ok(Arc::new(move || {
        start(&name, &*registry).map_err(|why| Fault::Absent {
            device: name.clone(),
            why,
        })
    }))
}

/// The same, or why it does not start.
fn start(name: &str, registry: &dyn Registry) -> Result<Box<dyn Device>, String> {
    if name == CPU {
        return Ok(Box::new(Cpu::detect()));
    }
    if let Some(socket) = boards::socket(name) {
        return boards::open(socket).map(|(card, _)| Box::new(card) as Box<dyn Device>);
    }
    if let Some(number) = gpu(name) {
        let gpu = Cuda::open(number).map_err(|absent| absent.to_string())?;
        return Ok(Box::new(gpu));
    }
    let mut candidates = candidates(registry).into_iter();
    match candidates.find(|candidate| candidate.name == name) {
        Some(candidate) => (candidate.make)(),
        None => Err("there is no such device".into()),
    }
}

/// On which devices the parties of a run compute.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct DevicesArgs {
    /// The device that parties compute on, of `veil device list`: of all parties, or of one [default: the fastest CPU device]. Parties are
    /// called as in the job, or `garbler` and `evaluator`, if there are two. `cuda` has lanes take turns at all GPUs, `cuda:N` is GPU N, from 0; `fpga:SOCKET` is the
    /// board behind that socket.
    #[arg(long = "device", value_name = "[PARTY=]DEVICE")]
    devices: Vec<Choice>,
}

impl DevicesArgs {
    /// The choices, among what a registry offers.
    pub(crate) fn among(&self, registry: &Arc<dyn Registry>) -> Devices {
        Devices {
            choices: self.devices.clone(),
            registry: Arc::clone(registry),
            cards: Cards::default(),
            stated: Arc::default(),
        }
    }
}

/// The devices of a run: what was chosen, and what there is to choose from.
#[derive(Clone)]
pub(crate) struct Devices {
    choices: Vec<Choice>,
    registry: Arc<dyn Registry>,
    /// Of boards.
    cards: Cards,
    /// What devices said, by their names: one is opened once for it.
    stated: Arc<Mutex<BTreeMap<String, Stated>>>,
}

/// What a device states of itself, before there is a plan for it.
#[derive(Clone)]
struct Stated {
    engines: Option<Rows>,
    window: usize,
    /// Its wishes.
    computes: Computes,
}

impl Stated {
    fn of(device: &dyn Device) -> Self {
        Stated {
            engines: device.engines().and_then(Rows::of),
            window: device.window(),
            computes: Computes::of(device),
        }
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Devices").field(&self.choices).finish()
    }
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
            // The path of a socket may have one, too.
            Some((party, device)) if boards::socket(party).is_none() => {
                (Some(party.to_owned()), device)
            }
            _ => (None, text),
        };
        let device = boards::anywhere(device);
        Ok(Choice { party, device })
    }
}

/// The name of the role of each of two parties.
const ROLES: [&str; 2] = ["garbler", "evaluator"];

impl Devices {
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
        let choices = self.choices.iter().filter(is);
        let choice = choices.max_by_key(|choice| choice.party.is_some());
        choice.map(|choice| choice.device.as_str())
    }

    /// Nodes for the parties of a plan, on these devices: boards behind the sockets of this path, or else in simulation.
    pub(crate) fn network(
        &self,
        plan: &Plan,
        looks: bool,
        headless: bool,
        boards: Option<&Path>,
    ) -> Result<Box<dyn Network>, Failure> {
        let parties = plan.parties().iter().map(|party| Peer::Party(*party));
        let wanted = Wanted {
            plan,
            devices: parties.map(|peer| self.named(plan, peer)).collect(),
            looks,
            headless,
        };
        match boards {
            Some(socket) => Ok(Box::new(Nodes::of_boards(&wanted, socket, &self.cards)?)),
            None => self.registry.network(&wanted),
        }
    }

    /// Makes the devices of a participant. Those of parties that are nodes have the node of theirs. A device was there when the run was
    /// checked, and may have gone since: then there is no run, for another one was not asked for.
    pub(crate) fn factory(
        &self,
        plan: &Plan,
        peer: Peer,
        network: Option<&dyn Network>,
    ) -> DeviceFactory {
        let Some(name) = self.named(plan, peer).map(str::to_owned) else {
            return Arc::new(|| Ok(Box::new(Cpu::detect())));
        };
        let who = veil_engine::name_of(plan, peer);
        let node = (peer.party().zip(network)).and_then(|(party, all)| all.of_party(party, who));
        let own = node.or_else(|| self.registry.of_party(&name, who));
        let own = own.or_else(|| self.cards.of_party(&name, who));
        let registry = Arc::clone(&self.registry);
        Arc::new(move || {
            let made = match &own {
                Some(own) => own(),
                None => start(&name, &*registry),
            };
            made.map_err(|why| Fault::Absent {
                device: name.clone(),
                why,
            })
        })
    }

    /// Cycles that the cores of a participant have run, if it computes on some.
    pub(crate) fn cycles(&self, plan: &Plan, peer: Peer) -> Option<u64> {
        peer.party()?;
        let name = veil_engine::name_of(plan, peer);
        self.cards
            .cycles(name)
            .or_else(|| self.registry.cycles(name))
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
        let rows = self.stated(name)?.engines;
        Ok(rows.map(|rows| (name, rows)))
    }

    fn stated(&self, device: &str) -> Result<Stated, Failure> {
        let mut all = self.stated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stated) = all.get(device) {
            return Ok(stated.clone());
        }
        let stated = Stated::of(&*make(device, &*self.registry)?);
        all.insert(device.to_owned(), stated.clone());
        Ok(stated)
    }

    /// Chunks that a participant has in flight per lane.
    pub(crate) fn window(&self, plan: &Plan, peer: Peer) -> Result<usize, Failure> {
        let usual = Settings::default().window;
        match self
            .named(plan, peer)
            .filter(|device| *device != CPU && boards::socket(device).is_none())
        {
            Some(device) => Ok(usual.max(self.stated(device)?.window)),
            None => Ok(usual),
        }
    }

    /// The shortest chunk of a plan that a device is best at, of those that are best at longer ones than a processor: of all parties, or of `own` alone.
    pub(crate) fn wish(&self, plan: &Plan, own: Option<&str>) -> Result<Option<Wish>, Failure> {
        let mut least: Option<Wish> = None;
        for peer in plan.parties().iter().map(|party| Peer::Party(*party)) {
            let party = veil_engine::name_of(plan, peer).to_owned();
            let Some(device) = self.named(plan, peer) else {
                continue;
            };
            // A board's cores have no wish, and a processor has none.
            let other = own.is_some_and(|own| own != party);
            if other || device == CPU || boards::socket(device).is_some() {
                continue;
            }
            if let Some(rows) = self.stated(device)?.computes.wish(plan.ring) {
                let device = device.to_owned();
                let wish = Wish {
                    party,
                    device,
                    rows,
                };
                Wish::least(&mut least, wish);
            }
        }
        Ok(least)
    }

    /// Refuses devices of parties that are not in the job.
    pub(crate) fn known(&self, plan: &Plan) -> Result<(), Failure> {
        let parties = plan.parties().iter().map(|party| Peer::Party(*party));
        let names: Vec<&str> = parties
            .map(|peer| veil_engine::name_of(plan, peer))
            .collect();
        for choice in &self.choices {
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
    /// A participant that takes part as `own` alone cannot know whether the devices of others are there.
    pub(crate) fn check(&self, plan: &Passes, own: Option<&str>) -> Result<(), Failure> {
        self.known(plan)?;
        for peer in plan.parties().iter().map(|party| Peer::Party(*party)) {
            if own.is_some_and(|own| own != veil_engine::name_of(plan, peer)) {
                continue;
            }
            let Some(name) = self.named(plan, peer) else {
                continue;
            };
            let passes = plan.program().passes().iter();
            let mut plans: Vec<&Arc<Plan>> = passes.filter_map(Pass::rows).collect();
            // Passes of one plan have one set of programs.
            plans.dedup_by(|a, b| Arc::ptr_eq(a, b));
            for plan in plans {
                self.fits(name, plan, peer)?;
            }
        }
        Ok(())
    }

    /// Whether a device does what a party of this plan is to do.
    fn fits(&self, name: &str, plan: &Arc<Plan>, peer: Peer) -> Result<(), Failure> {
        let protocol = veil_protocol::protocol(Arc::clone(plan), peer);
        let mut device: Box<dyn Device> = if let Some(socket) = boards::socket(name) {
            let (card, kind) = boards::open(socket).map_err(|why| absent(name, &why))?;
            boards::suits(name, kind, plan, &*protocol)?;
            Box::new(self.cards.join(card, &Clock::default()))
        } else {
            let device = make(name, &*self.registry)?;
            self.registry.suits(name, plan, &*protocol)?;
            device
        };
        let programs = protocol
            .programs()
            .iter()
            .zip(plan.workspaces_of_programs());
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
    fn gpus_have_numbers() {
        let numbers = [
            "cuda:0", "cuda:12", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda-sim",
        ]
        .map(gpu);
        assert_eq!(numbers, [Some(0), Some(12), None, None, None, None, None]);
        // It is a device that there may be, and one that is not here says why.
        let refused = make("cuda:1000", &Plain)
            .err()
            .map(|failure| failure.code());
        assert_eq!(refused, Some(Code::Device));
        let unknown = make("cuda:x", &Plain).err().map(|failure| failure.code());
        assert_eq!(unknown, Some(Code::Usage));
    }

    #[test]
    fn a_device_that_has_gone_is_no_other() {
        let job = Job::parse(JOB, Path::new("job.toml"), Files::default()).unwrap();
        let plan = Plan::new(job.shared(), Options::default()).unwrap();
        let peer = Peer::Party(plan.parties()[0]);
        let here = |name: &str| start(name, &Plain);
        let candidates = candidates(&Plain);
        let names = candidates.iter().map(|candidate| candidate.name);
        let mut absent = 0;
        for name in names.chain([CPU, "one-that-has-gone"]) {
            let Ok(choice) = name.parse();
            let args = DevicesArgs {
                devices: vec![choice],
            };
            let registry: Arc<dyn Registry> = Arc::new(Plain);
            let device = args.among(&registry).factory(&plan, peer, None)();
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
