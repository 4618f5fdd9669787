//! The device: workspaces of the host, and commands that cores do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use veil_device::{
    Ahead, Command, Completion, Cpu, Device, Fault, Form, Garbling, Instr, KeyId, Layout, Op,
    Outcome, Program, ProgramId, Repeat, Round, Tag, Workspace,
};
use veil_math::Ring;
use veil_session::Secret;

use crate::Absent;
use crate::assembled::{Assembled, Loaded, ROWS};
use crate::board::{self, Board};
use crate::cycles::{self, Loop};
use crate::driver::{CardError, Garbler};
use crate::garble::cycles::{Cycle, Programs};
use crate::node::circuit::Plan;
use crate::node::work::{Components, Differs, Name};
use crate::node::{Task, User};
use crate::share::circuit::Traced;
use crate::share::rounds::Whole;
use crate::share::{Cores, Ended};
use crate::sim::Stalls;

/// Bodies of which it is known how the core runs them, at most.
const LOOPS: usize = 16;

/// What the card was given last.
enum OnCard {
    Program(ProgramId),
    Loop(Arc<Loop>),
}

/// Cycles of cores, of all devices that count on it.
#[derive(Clone, Default, Debug)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// How many.
    pub fn cycles(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A host with cores on a card: a garbler, those that compute on shares, or both.
pub struct Fpga {
    name: &'static str,
    host: Cpu,
    garbler: Option<Garbler>,
    clock: Clock,
    /// Cycles that the clock has.
    counted: u64,
    shares: Option<Cores>,
    /// Programs with products.
    programs: BTreeMap<ProgramId, Arc<Loaded>>,
    assembled: Assembled,
    /// All programs over labels.
    labels: Programs,
    /// Bodies that were repeated, and how the core runs them, if it does.
    loops: Vec<(Repeat, Option<Arc<Loop>>)>,
    overlapped: u64,
    /// The program that the card has.
    on_card: Option<OnCard>,
    /// The node of the party, if it is joined with those of the others.
    node: Option<User>,
    /// Rounds that go on there.
    under_way: Vec<UnderWay>,
    done: VecDeque<Completion>,
}

/// What a node does without its host going through rounds.
struct UnderWay {
    tag: Tag,
    workspace: Workspace,
    work: Work,
}

enum Work {
    /// The products of a round.
    Products {
        round: Arc<Round>,
        whole: Whole,
        /// They, and what came of the first of them.
        names: Vec<Name>,
        made: Vec<Components>,
    },
    /// Rounds that are a circuit.
    Circuit { traced: Box<Traced>, name: Name },
}

impl Fpga {
    /// A simulated card whose garbler has two rows.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] and [`Absent::NotBuilt`] if the cores were not built in, [`Absent::Card`] if the garbler does not
    /// come up.
    pub fn simulated() -> Result<Self, Absent> {
        let garbler = Garbler::simulated(2, Stalls::default())?;
        Ok(Self::with(garbler).shares(Cores::simulated(Stalls::default())?))
    }

    /// With cores of shares beside the garbler.
    #[must_use]
    pub fn shares(self, cores: Cores) -> Self {
        Fpga {
            shares: Some(cores),
            ..self
        }
    }

    /// The same, whose cores say on a clock how many cycles they have run.
    #[must_use]
    pub fn counting(self, clock: &Clock) -> Self {
        Fpga {
            clock: clock.clone(),
            ..self
        }
    }

    /// The same, taking programs that others have assembled.
    #[must_use]
    pub fn sharing(self, assembled: &Assembled) -> Self {
        Fpga {
            assembled: assembled.clone(),
            ..self
        }
    }

    /// A card of a board that is a process of its own, with all cores that it has.
    ///
    /// # Errors
    /// [`CardError::Board`] if the board is gone, else [`CardError`] as of [`Garbler::open`].
    pub fn of_board(board: &Board) -> Result<Self, CardError> {
        let kind = board.identity().kind;
        let garbler = kind.garbles().then(|| board.garbler()).transpose()?;
        let cores = kind.shares().then(|| board.cores()).transpose()?;
        let fpga = Self::new(board::BOARD, garbler);
        Ok(match cores {
            Some(cores) => fpga.shares(cores),
            None => fpga,
        })
    }

    /// With this garbler.
    pub fn with(garbler: Garbler) -> Self {
        Self::new(garbler.name(), Some(garbler))
    }

    pub(crate) fn new(name: &'static str, garbler: Option<Garbler>) -> Self {
        Fpga {
            name,
            host: Cpu::detect(),
            garbler,
            clock: Clock::default(),
            counted: 0,
            shares: None,
            programs: BTreeMap::new(),
            assembled: Assembled::default(),
            labels: Programs::new(),
            loops: Vec::new(),
            overlapped: 0,
            on_card: None,
            node: None,
            under_way: Vec::new(),
            done: VecDeque::new(),
        }
    }

    /// The same, as the host of a party's node: products of shares are computed there, and their messages go from node to node.
    #[must_use]
    pub fn joined(self, node: User) -> Self {
        Fpga {
            node: Some(node),
            ..self
        }
    }

    /// Repetitions that were parts of one run with others.
    pub fn overlapped(&self) -> u64 {
        self.overlapped
    }

    /// Cycles that the cores of shares have run so far.
    pub fn share_cycles(&self) -> u64 {
        self.shares.as_ref().map_or(0, Cores::cycles)
    }

    /// Cycles that the garbler has run so far.
    pub fn cycles(&self) -> u64 {
        self.garbler.as_ref().map_or(0, Garbler::cycles)
    }

    /// Whether the core does a command.
    fn takes(&self, command: &Command) -> bool {
        matches!(
            command.op,
            Op::Garble {
                scheme: Garbling::HalfGates,
                ..
            }
        ) && command
            .program
            .is_some_and(|id| self.programs.contains_key(&id))
    }

    /// Does a garbling command on the core.
    fn garble(
        &mut self,
        workspace: Workspace,
        index: usize,
        command: &Command,
    ) -> Result<(), Fault> {
        let garbler = self.garbler.as_mut();
        let garbler = garbler.ok_or(Fault::Unknown("the garbler of a command"))?;
        let mut gates = self.host.offload_gates(workspace, index, command)?;
        let found = command
            .program
            .and_then(|id| Some((id, self.programs.get(&id)?)));
        let (id, loaded) = found.ok_or(Fault::Unknown("the program of a command"))?;
        if !matches!(self.on_card, Some(OnCard::Program(there)) if there == id) {
            self.on_card = None;
            let there = garbler.load(&loaded.image);
            there.map_err(|error| garbler.fault(&error))?;
            self.on_card = Some(OnCard::Program(id));
        }
        let rows = gates.frame().rows;
        let mut from = 0;
        while from < rows {
            let until = rows.min(from + ROWS);
            loaded.run(garbler, &mut gates, (from, until), command.dst[0])?;
            from = until;
        }
        Ok(())
    }
}

impl Fpga {
    /// How the core runs these commands as a loop, if that takes it no longer than one after the other.
    fn looped(&mut self, repeat: &Repeat, rows: u32) -> Option<Arc<Loop>> {
        let capacity = self.garbler.as_ref()?.capacity();
        let shape = cycles::shape(repeat);
        let known = self.loops.iter().position(|(other, _)| *other == shape);
        let at = known.unwrap_or_else(|| {
            let found = Cycle::of(repeat, &self.labels)
                .and_then(|cycle| Loop::of(cycle, capacity, repeat.count.max(2)));
            if self.loops.len() == LOOPS {
                self.loops.remove(0);
            }
            self.loops.push((shape, found.map(Arc::new)));
            self.loops.len() - 1
        });
        let found = self.loops[at].1.as_ref()?;
        let ids = repeat.body.iter().filter_map(|step| step.command.program);
        let images = ids.filter_map(|id| self.programs.get(&id));
        let alone: u64 = images
            .map(|loaded| cycles::clock(&loaded.image, rows))
            .sum();
        let together = found.clock(repeat.count, rows);
        let worth = together <= alone.saturating_mul(repeat.count.into());
        (worth && found.takes(repeat, rows)).then(|| Arc::clone(found))
    }

    /// Does commands that are repeated: as one run of the core, or one after the other.
    fn repeat(
        &mut self,
        workspace: Workspace,
        (index, command): (usize, &Command),
        repeat: &Repeat,
        tag: Tag,
    ) -> Result<(), Fault> {
        let rows = self.host.offload_repeat(workspace, index, command)?;
        let found = self.looped(repeat, rows);
        let (Some(found), Some(garbler)) = (found, &mut self.garbler) else {
            for repetition in 0..repeat.count {
                let commands = repeat.body.iter().map(|step| step.at(repetition));
                let commands: Vec<Command> = commands.collect();
                self.batch(workspace, &commands, tag)?;
            }
            return self.host.clear_offloaded(workspace, repeat);
        };
        if !matches!(&self.on_card, Some(OnCard::Loop(there)) if Arc::ptr_eq(there, &found)) {
            self.on_card = None;
            let loaded = garbler.load(&found.image);
            loaded.map_err(|error| garbler.fault(&error))?;
            self.on_card = Some(OnCard::Loop(Arc::clone(&found)));
        }
        let garbles = &repeat.body[found.cycle.garbles].command;
        let mut gates = self.host.offload_gates(workspace, index, garbles)?;
        let leaving = found.run(garbler, &mut gates, repeat);
        let leaving = leaving.map_err(|error| garbler.fault(&error))?;
        self.overlapped += u64::from(repeat.count);
        for repetition in leaving.repetitions() {
            let mut gates = self.host.offload_gates(workspace, index, garbles)?;
            leaving.put(&found, &mut gates, repetition);
            let colours = found.cycle.colours.iter();
            let colours = colours.map(|step| repeat.body[*step].at(repetition));
            let colours: Vec<Command> = colours.collect();
            self.batch(workspace, &colours, tag)?;
        }
        self.host.clear_offloaded(workspace, repeat)
    }

    /// Does commands, those of the core and those of the host; says which comparison failed, if one did.
    fn batch(
        &mut self,
        workspace: Workspace,
        batch: &[Command],
        tag: Tag,
    ) -> Result<Outcome, Fault> {
        let mut at = 0;
        while at < batch.len() {
            if let Op::Repeat(repeat) = &batch[at].op {
                self.repeat(workspace, (at, &batch[at]), &Arc::clone(repeat), tag)?;
                at += 1;
                continue;
            }
            if self.takes(&batch[at]) {
                self.garble(workspace, at, &batch[at])?;
                at += 1;
                continue;
            }
            let rest = &batch[at..];
            if self
                .shares
                .as_ref()
                .is_some_and(|cores| cores.refuse(&rest[0]))
            {
                let (device, what) = (self.name, Form::OTHER);
                return Err(Fault::Unsupported { device, what });
            }
            let task = self.shares.as_ref().and_then(|cores| cores.task(rest));
            let ended = if let (Some(cores), Some(task)) = (&mut self.shares, task) {
                cores.run(&mut self.host, workspace, (at, rest), &task)?
            } else {
                let own = |from: &usize| self.owns(&rest[*from..]);
                Ended::Host((1..rest.len()).find(own).unwrap_or(rest.len()))
            };
            let (Ended::Done(count) | Ended::Host(count) | Ended::Differs(count)) = ended;
            if !matches!(ended, Ended::Done(_)) {
                self.host.submit(workspace, &rest[..count], tag)?;
                match self.host.poll()?.map(|ended| ended.outcome) {
                    Some(Outcome::Mismatch { command }) => {
                        return Ok(Outcome::Mismatch {
                            command: at + command,
                        });
                    }
                    Some(Outcome::Done) => {}
                    None => return Err(Fault::Unknown("the completion of a batch")),
                }
            }
            if matches!(ended, Ended::Differs(_)) {
                let why = "it finds a difference of codes where there is none".to_owned();
                let device = self.name;
                return Err(Fault::Card { device, why });
            }
            at += count;
        }
        Ok(Outcome::Done)
    }

    /// Begins rounds at the node, as many as it does without this host, if it does any.
    fn begin(
        &mut self,
        workspace: Workspace,
        rounds: &[Arc<Round>],
        tag: Tag,
    ) -> Result<usize, Fault> {
        let (Some(node), Some(cores)) = (&self.node, &self.shares) else {
            return Ok(0);
        };
        let frame = self.host.offload_shares(workspace, 0, &[])?.frame();
        if frame.rows == 0 {
            return Ok(0);
        }
        let party = node.party();
        if node.is_headless()
            && let Some(traced) = cores.traced(party, rounds)
            && u64::from(node.limits().lanes) <= Ahead::OF_BLOCK
            && let Some(plan) = node.plan(&traced.graph, frame.rows, traced.checks())
        {
            return self.circuit(workspace, rounds, (traced, plan), tag);
        }
        let Some(round) = rounds.first() else {
            return Ok(0);
        };
        let Some(whole) = cores.whole(party, round) else {
            return Ok(0);
        };
        self.before(workspace, &round.local[..whole.before], tag)?;
        let (Some(node), Some(cores)) = (&self.node, &mut self.shares) else {
            return Ok(0);
        };
        let (products, keys) = cores.gather(&mut self.host, workspace, (round, &whole))?;
        let work = Work::Products {
            round: Arc::clone(round),
            whole,
            names: products.iter().map(|product| product.name).collect(),
            made: Vec::new(),
        };
        self.under_way.push(UnderWay {
            tag,
            workspace,
            work,
        });
        node.multiply(products, &keys);
        self.count();
        Ok(1)
    }

    /// What a round does before programs.
    fn before(
        &mut self,
        workspace: Workspace,
        commands: &[Command],
        tag: Tag,
    ) -> Result<(), Fault> {
        if commands.is_empty() || self.batch(workspace, commands, tag)? == Outcome::Done {
            return Ok(());
        }
        Err(Fault::Unknown(
            "a comparison before the products of a round",
        ))
    }

    /// Begins rounds that are a circuit.
    fn circuit(
        &mut self,
        workspace: Workspace,
        rounds: &[Arc<Round>],
        (traced, plan): (Traced, Arc<Plan>),
        tag: Tag,
    ) -> Result<usize, Fault> {
        let rounds = &rounds[..traced.rounds];
        let first = &rounds[0];
        self.before(workspace, &first.local[..traced.whole.before], tag)?;
        let frame = self.host.offload_shares(workspace, 0, &[])?.frame();
        let (Some(node), Some(cores)) = (&self.node, &self.shares) else {
            return Ok(0);
        };
        let (inputs, keys) = cores.inputs(&mut self.host, workspace, &traced, rounds)?;
        let at = (frame.lane, frame.chunk);
        let name = Name {
            at,
            round: (first.place, first.cycle),
            number: 0,
        };
        node.compute(Task {
            name,
            plan,
            rounds: rounds.len() as u64,
            inputs,
            counters: traced.counters(at),
            keys,
        });
        let work = Work::Circuit {
            traced: Box::new(traced),
            name,
        };
        self.under_way.push(UnderWay {
            tag,
            workspace,
            work,
        });
        self.count();
        Ok(rounds.len())
    }

    /// Takes what came of what a node does. Whether that is over, and how.
    fn end(&mut self, of: &mut UnderWay) -> Result<Option<Outcome>, Fault> {
        let (Some(node), Some(cores)) = (&self.node, &mut self.shares) else {
            return Ok(None);
        };
        let (workspace, tag) = (of.workspace, of.tag);
        match &mut of.work {
            Work::Circuit { traced, name } => {
                let outputs = match node.outputs(name) {
                    Some(Ok(outputs)) => outputs,
                    Some(Err(Differs(k))) => {
                        let command = traced.whole.compares.get(k).copied().unwrap_or(0);
                        return Ok(Some(Outcome::Mismatch { command }));
                    }
                    None => return Ok(None),
                };
                traced.put(&mut self.host, workspace, &outputs)?;
                Ok(Some(Outcome::Done))
            }
            Work::Products {
                round,
                whole,
                names,
                made,
            } => {
                while let Some(name) = names.get(made.len()) {
                    match node.take(name) {
                        Some(Ok(parts)) => made.push(parts),
                        Some(Err(Differs(k))) => {
                            let command = whole.compares.get(k).copied().unwrap_or(0);
                            return Ok(Some(Outcome::Mismatch { command }));
                        }
                        None => return Ok(None),
                    }
                }
                cores.put(&mut self.host, workspace, (round, whole), made)?;
                let finished = whole.finished;
                let round = Arc::clone(round);
                let ended = self.batch(workspace, &round.finish[finished..], tag)?;
                Ok(Some(match ended {
                    Outcome::Mismatch { command } => Outcome::Mismatch {
                        command: finished + command,
                    },
                    Outcome::Done => Outcome::Done,
                }))
            }
        }
    }

    /// The clock has all cycles of the cores.
    fn count(&mut self) {
        let cycles = self.cycles() + self.share_cycles();
        let more = cycles - self.counted;
        self.clock.0.fetch_add(more, Ordering::Relaxed);
        self.counted = cycles;
    }

    /// Whether a batch begins with what the host does not do alone.
    fn owns(&self, batch: &[Command]) -> bool {
        let cores = self.shares.as_ref();
        self.takes(&batch[0])
            || matches!(batch[0].op, Op::Repeat(_))
            || cores.is_some_and(|cores| cores.task(batch).is_some() || cores.refuse(&batch[0]))
    }
}

/// A card that does not do what it should.
pub(crate) fn failed(device: &'static str, error: &CardError) -> Fault {
    Fault::Card {
        device,
        why: error.to_string(),
    }
}

impl Device for Fpga {
    fn name(&self) -> &'static str {
        self.name
    }

    fn engines(&self) -> Option<u32> {
        Some(self.garbler.as_ref()?.capacity().engines)
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let id = self.host.load(program, layout)?;
        let slots = &layout.regions[program.slots as usize];
        let has_products = program
            .code
            .iter()
            .any(|instr| matches!(instr, Instr::Product { .. }));
        let labels = slots.column == veil_device::ColumnType::Labels;
        if labels {
            self.labels.insert(id, Arc::clone(program));
        }
        if let Some(garbler) = self.garbler.as_ref().filter(|_| labels && has_products) {
            let capacity = garbler.capacity();
            let loaded = self.assembled.program(program, layout, capacity);
            let loaded = loaded.map_err(|why| Fault::NoRoom {
                device: self.name,
                why: why.to_string(),
            })?;
            self.programs.insert(id, loaded);
        }
        if let Some(cores) = &mut self.shares {
            if program.ring == Ring::Z32 {
                return Err(Fault::Unsupported {
                    device: self.name,
                    what: "integers modulo 2^32: its cores add and multiply words of 64 and of 128 bits",
                });
            }
            let loaded = cores.load(id, program, layout);
            loaded.map_err(|why| Fault::NoRoom {
                device: self.name,
                why,
            })?;
        }
        Ok(id)
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        if let Some(cores) = &mut self.shares {
            cores.load_key(id, key);
        }
        self.host.load_key(id, key)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let outcome = self.batch(workspace, batch, tag)?;
        self.count();
        self.done.push_back(Completion { tag, outcome });
        Ok(())
    }

    /// Rounds that are a circuit of bits, or else one that is nothing but products.
    fn exchange(
        &mut self,
        workspace: Workspace,
        rounds: &[Arc<Round>],
        tag: Tag,
    ) -> Result<usize, Fault> {
        self.begin(workspace, rounds, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        if let Some(node) = self.node.as_ref().filter(|_| !self.under_way.is_empty()) {
            node.advance().map_err(|error| Fault::Card {
                device: self.name,
                why: error.to_string(),
            })?;
        }
        for mut of in std::mem::take(&mut self.under_way) {
            match self.end(&mut of) {
                Ok(None) => self.under_way.push(of),
                Ok(Some(outcome)) => {
                    self.count();
                    let tag = of.tag;
                    self.done.push_back(Completion { tag, outcome });
                }
                Err(fault) => {
                    // Lanes of the same node, and the links of all nodes, hear of it.
                    if let Some(node) = &self.node {
                        node.fail(&fault.to_string());
                    }
                    return Err(fault);
                }
            }
        }
        Ok(self.done.pop_front())
    }

    fn wipe(&mut self) {
        // A card that does not answer is of no more use, and is told no secret any more.
        if (self.garbler.as_mut()).is_some_and(|garbler| garbler.scrub().is_err()) {
            self.programs.clear();
            self.loops.clear();
        }
        if let Some(cores) = &mut self.shares {
            cores.wipe();
        }
        self.under_way.clear();
        self.node = None;
        self.host.wipe();
    }

    veil_device::forward!(self, self.host, bind open close write map view);
}
