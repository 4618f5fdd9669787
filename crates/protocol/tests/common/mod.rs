//! Runs a plan without a network: every participant has a device, and bytes go from one to the other by hand.

#![allow(dead_code, reason = "every test binary uses its own part of it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use veil_circuit::{Per, Reduce};
use veil_device::{Bank, Command, Cpu, Device, Isa, Op, Outcome, Reference, Region, Span, Tag};
use veil_math::Ring;
use veil_prss::{Prf, Use};
use veil_protocol::rep3::Rep3;
use veil_protocol::{Cleared, Cost, Plan, Protocol, Round, Task, Transfer, seed_digest};
use veil_session::{Frame, PartyId, Peer, Secret, SessionId};

/// The session of every test; what differs from one to the other is the keys.
pub const SESSION: SessionId = SessionId([0x5e; 32]);

/// The devices of this machine, by name.
pub fn devices() -> Vec<(String, Box<dyn Device>)> {
    let reference: (String, Box<dyn Device>) = ("reference".into(), Box::new(Reference::default()));
    let cpu = |isa| -> (String, Box<dyn Device>) { (format!("{isa:?}"), Box::new(Cpu::with(isa))) };
    std::iter::once(reference).chain(Isa::available().into_iter().map(cpu)).collect()
}

/// Keys of a run: of pairs of parties, and the two seeds of each owner.
#[derive(Clone)]
pub struct Keys {
    /// κ_i, of parties i and i + 1.
    pub pairs: [[u8; 16]; 3],
    /// s_0 and s_1 of each owner.
    pub seeds: Vec<[[u8; 16]; 2]>,
}

impl Keys {
    /// Keys that follow from `seed`.
    pub fn from_seed(seed: u64, owners: usize) -> Keys {
        let prf = Prf::new(&Secret::new([0xa5; 16]));
        let key = |use_of: u16, index: usize| prf.block(Use(use_of), 0, seed, index as u32);
        Keys {
            pairs: std::array::from_fn(|i| key(0, i)),
            seeds: (0..owners).map(|o| [key(1, o), key(2, o)]).collect(),
        }
    }

    /// The key of the pair of two parties.
    fn pair(&self, a: PartyId, b: PartyId) -> [u8; 16] {
        let first = if b == a.next() { a } else { b };
        self.pairs[first.index()]
    }
}

/// A message of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who sent it.
    pub from: Peer,
    /// To whom.
    pub to: Peer,
    /// Place of its round.
    pub place: u32,
    /// Which message of the round.
    pub part: u16,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a task cost a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metered {
    /// Whom.
    pub peer: Peer,
    /// The task.
    pub task: Task,
    /// Rows of its frame.
    pub rows: u32,
    /// What it sent and waited for.
    pub found: Cost,
    /// What the protocol had declared.
    pub declared: Cost,
}

/// A check failed: at whom, and what was compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Who noticed.
    pub at: Peer,
    /// Who may have caused it.
    pub suspects: Vec<Peer>,
    /// What was compared.
    pub what: &'static str,
}

/// A participant.
pub struct Node {
    /// Who.
    pub me: Peer,
    /// Its rounds.
    pub protocol: Rep3,
    /// Its device.
    pub device: Box<dyn Device>,
    bank: Option<Bank>,
    cleared: Option<Cleared>,
}

impl Node {
    /// Runs commands, and says which of them found two values to differ.
    pub fn submit(&mut self, commands: &[Command]) -> Option<usize> {
        let bank = self.bank();
        self.device.submit(bank, commands, Tag(0)).expect("commands that the device can run");
        match self.device.poll().expect("a batch that was submitted ends").outcome {
            Outcome::Done => None,
            Outcome::Mismatch { command } => Some(command),
        }
    }

    /// Fills a mapped span.
    pub fn write(&mut self, to: Span, bytes: &[u8]) {
        let bank = self.bank();
        self.device.write(bank, to, bytes).expect("bytes that fill the span");
    }

    /// Reads a mapped or public span.
    pub fn view(&self, from: Span) -> Vec<u8> {
        self.device.view(self.bank(), from).expect("a span that the host may see").to_vec()
    }

    /// Reads a span that the host may not see, by way of one that it may.
    pub fn read(&mut self, ring: Ring, from: Span, via: Span) -> Vec<u8> {
        assert_eq!(self.submit(&[Command::new(Op::Combine { ring, minus: 0 }, vec![from], vec![via])]), None);
        self.view(via)
    }

    fn bank(&self) -> Bank {
        self.bank.expect("a bank is open")
    }

    /// The permission of the last agreement.
    pub fn cleared(&self) -> Cleared {
        self.cleared.expect("the parties have agreed")
    }
}

/// Changes a message on its way.
pub type Tap = Box<dyn FnMut(&mut Message)>;

/// All participants of a plan.
pub struct Net {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Parties, then owners, then recipients.
    pub nodes: Vec<Node>,
    /// Messages so far.
    pub log: Vec<Message>,
    /// Costs of the tasks so far.
    pub meters: Vec<Metered>,
    /// Changes messages on their way.
    pub tap: Tap,
    rows: u32,
}

/// Where a participant is in a task.
enum At {
    Start,
    Waits(Arc<Round>),
    End,
}

impl Net {
    /// Participants of `plan` with devices that `device` makes.
    pub fn new(plan: Plan, keys: &Keys, device: impl Fn() -> Box<dyn Device>) -> Net {
        let plan = Arc::new(plan);
        let owners = (0..plan.job.owners.len() as u16).map(Peer::Owner);
        let recipients = (0..plan.job.recipients.len() as u16).map(Peer::Recipient);
        let peers = PartyId::ALL.map(Peer::Party).into_iter().chain(owners).chain(recipients);
        let node = |me: Peer| {
            let protocol = Rep3::new(Arc::clone(&plan), me);
            let mut device = device();
            device.bind(SESSION);
            for program in protocol.programs() {
                device.load(program, protocol.layout()).expect("a program that fits the layout");
            }
            for peer in protocol.peers() {
                for (_, id) in protocol.keys(peer) {
                    let (Some(a), Some(b)) = (me.party(), peer.party()) else { panic!("{me} has a key of a pair with {peer}") };
                    device.load_key(id, &Secret::new(keys.pair(a, b))).expect("room for a key");
                }
            }
            for owner in 0..plan.job.owners.len() as u16 {
                for seed in protocol.seeds(owner) {
                    let key = keys.seeds[owner as usize][seed.index as usize];
                    device.load_key(seed.key, &Secret::new(key)).expect("room for a key");
                }
            }
            Node { me, protocol, device, bank: None, cleared: None }
        };
        let nodes = peers.map(node).collect();
        Net { plan, nodes, log: Vec::new(), meters: Vec::new(), tap: Box::new(|_| {}), rows: 0 }
    }

    /// Opens a bank at every participant.
    pub fn open(&mut self, frame: Frame) {
        self.rows = frame.rows;
        for node in &mut self.nodes {
            node.cleared = None;
            node.bank = Some(node.device.open(node.protocol.layout(), frame).expect("room for a bank"));
        }
    }

    /// Closes the banks.
    pub fn close(&mut self) {
        for node in &mut self.nodes {
            let bank = node.bank.take().expect("a bank is open");
            node.device.close(bank);
        }
    }

    /// Runs a task at all participants.
    pub fn run(&mut self, task: impl Fn(&Node) -> Task) -> Result<(), Mismatch> {
        self.run_changed(task, |_| {})
    }

    /// Runs a task whose commands are changed before they are submitted.
    pub fn run_changed(&mut self, task: impl Fn(&Node) -> Task, change: impl Fn(&mut Command)) -> Result<(), Mismatch> {
        let tasks: Vec<Task> = self.nodes.iter().map(task).collect();
        let mut flows: Vec<_> = self.nodes.iter().zip(&tasks).map(|(n, t)| n.protocol.flow(*t)).collect();
        let mut found = vec![Cost::default(); self.nodes.len()];
        let mut ats: Vec<At> = self.nodes.iter().map(|_| At::Start).collect();
        let mut under_way: HashMap<(Peer, Peer, u32, u16), Vec<u8>> = HashMap::new();
        let changed = |commands: &[Command]| -> Vec<Command> {
            let mut commands = commands.to_vec();
            commands.iter_mut().for_each(&change);
            commands
        };
        while !ats.iter().all(|at| matches!(at, At::End)) {
            let mut moved = false;
            for (k, node) in self.nodes.iter_mut().enumerate() {
                match &ats[k] {
                    At::End => continue,
                    At::Start => {}
                    At::Waits(round) => {
                        let key = |t: &Transfer| (t.peer, node.me, round.place, t.part);
                        if !round.recvs.iter().all(|t| under_way.contains_key(&key(t))) {
                            continue;
                        }
                        for t in &round.recvs {
                            let bytes = under_way.remove(&key(t)).expect("looked up above");
                            node.write(t.span, &bytes);
                        }
                        if let Some(command) = node.submit(&changed(&round.finish)) {
                            let check = round.checks.iter().find(|c| c.command == command);
                            let check = check.expect("a mismatch comes from a check");
                            return Err(Mismatch { at: node.me, suspects: check.suspects.clone(), what: check.what });
                        }
                    }
                }
                moved = true;
                ats[k] = match flows[k].next() {
                    None => At::End,
                    Some(round) => {
                        assert!(round.place < node.protocol.places(), "a place beyond the last");
                        assert_eq!(node.submit(&changed(&round.local)), None, "checks finish a round");
                        for t in &round.sends {
                            let bytes = node.view(t.span);
                            let mut message = Message { from: node.me, to: t.peer, place: round.place, part: t.part, bytes };
                            found[k] = found[k] + Cost { rounds: 0, messages: 1, bytes: message.bytes.len() as u64 };
                            (self.tap)(&mut message);
                            let key = (message.from, message.to, message.place, message.part);
                            assert!(under_way.insert(key, message.bytes.clone()).is_none(), "two messages of one name: {key:?}");
                            self.log.push(message);
                        }
                        found[k].rounds += u64::from(!round.recvs.is_empty());
                        At::Waits(round)
                    }
                };
            }
            assert!(moved, "every participant waits for another one");
        }
        assert!(under_way.is_empty(), "messages that nobody takes: {:?}", under_way.keys());
        for (k, node) in self.nodes.iter_mut().enumerate() {
            node.cleared = flows[k].cleared().or(node.cleared);
            let declared = node.protocol.cost(tasks[k], self.rows);
            self.meters.push(Metered { peer: node.me, task: tasks[k], rows: self.rows, found: found[k], declared });
        }
        Ok(())
    }
}

/// Clear values of a job: of each block `[row][port][wire]`. A value per job is the same in every row.
pub type Values = Vec<Vec<Vec<Vec<u128>>>>;

/// What a participant learns: values `[row][wire]` by port, over all blocks; one row of sums.
pub type Results = BTreeMap<usize, Vec<Vec<u128>>>;

impl Net {
    /// Runs the whole job, as an engine does; what each participant learns, in the order of the nodes.
    pub fn job(&mut self, values: &Values) -> Result<Vec<Results>, Mismatch> {
        let plan = Arc::clone(&self.plan);
        let ring = plan.ring;
        let mut results = vec![Results::new(); self.nodes.len()];
        let uniforms = self.set_up(values)?;
        let mut sums: Vec<Vec<Vec<u128>>> = vec![Vec::new(); self.nodes.len()];
        for index in 0.. {
            let Some(chunk) = plan.chunk(index) else { break };
            let (block, first, rows) = (chunk.block as usize, chunk.first as usize, chunk.frame.rows as usize);
            self.open(chunk.frame);
            for (node, uniforms) in self.nodes.iter_mut().zip(&uniforms) {
                let spans = node.protocol.spans().clone();
                spans.uniforms.iter().zip(uniforms).for_each(|(span, bytes)| node.write(*span, bytes));
                for (port, span) in spans.inputs {
                    if holds(&plan, node.me, block, port) {
                        let row = |wire: usize| values[block][first..first + rows].iter().map(move |r| r[port][wire]);
                        let columns: Vec<u8> =
                            (0..span.count as usize).flat_map(|w| pack(ring, &row(w).collect::<Vec<_>>())).collect();
                        node.write(span, &columns);
                    }
                }
            }
            self.run(|_| Task::Inputs { block: chunk.block })?;
            self.run(|_| Task::Layers)?;
            for (node, sums) in self.nodes.iter().zip(&mut sums) {
                let spans = &node.protocol.spans().sums;
                sums.resize(spans.len(), Vec::new());
                for (span, sum) in spans.iter().zip(sums) {
                    let more = unpack(ring, &node.view(*span), 1, span.count as usize);
                    sum.resize(more.len(), 0);
                    sum.iter_mut().zip(more).for_each(|(s, m)| *s = ring.add(*s, m[0]));
                }
            }
            if plan.outputs.iter().any(|o| o.reduce == Reduce::None) {
                self.run(|_| Task::Agree)?;
                self.run(|n| Task::Open(n.cleared()))?;
                for (node, results) in self.nodes.iter().zip(&mut results) {
                    for &(port, span) in &node.protocol.spans().opened {
                        let columns = unpack(ring, &node.view(span), rows, span.count as usize);
                        let row = |t: usize| columns.iter().map(|column| column[t]).collect();
                        results.entry(port).or_default().extend((0..rows).map(row));
                    }
                }
            }
            self.close();
        }
        if plan.sums > 0 {
            self.totals(&sums, &mut results)?;
        }
        Ok(results)
    }

    /// Shares what all rows use: the shares, by participant and span.
    fn set_up(&mut self, values: &Values) -> Result<Vec<Vec<Vec<u8>>>, Mismatch> {
        let plan = Arc::clone(&self.plan);
        self.open(plan.set_up_frame());
        for node in &mut self.nodes {
            let spans = node.protocol.spans().clone();
            if let Some(list) = spans.list {
                node.write(list, &[7; 32]);
            }
            for (port, span) in spans.job_inputs {
                let elements: Vec<u8> =
                    values[0][0][port].iter().flat_map(|v| pack(plan.ring, std::slice::from_ref(v))).collect();
                node.write(span, &elements);
            }
        }
        self.write_seed_digests();
        self.run(|_| Task::SetUp)?;
        let uniforms = |node: &Node| node.protocol.spans().uniforms.iter().map(|s| node.view(*s)).collect();
        let uniforms = self.nodes.iter().map(uniforms).collect();
        self.close();
        Ok(uniforms)
    }

    fn write_seed_digests(&mut self) {
        for node in &mut self.nodes {
            for owner in 0..self.plan.job.owners.len() as u16 {
                for seed in node.protocol.seeds(owner) {
                    if let Some(span) = seed.digest {
                        // Both holders have the seed itself here; that they compare it is what is run.
                        let stand_in = Secret::new([owner as u8; 16]);
                        node.write(span, &seed_digest(&SESSION, owner, seed.index, &stand_in));
                    }
                }
            }
        }
    }

    fn totals(&mut self, sums: &[Vec<Vec<u128>>], results: &mut [Results]) -> Result<(), Mismatch> {
        let ring = self.plan.ring;
        self.open(self.plan.totals_frame());
        for (node, sums) in self.nodes.iter_mut().zip(sums) {
            for (span, sum) in node.protocol.spans().sums.clone().into_iter().zip(sums) {
                node.write(span, &pack(ring, sum));
            }
        }
        self.run(|_| Task::Agree)?;
        self.run(|n| Task::OpenTotals(n.cleared()))?;
        for (node, results) in self.nodes.iter().zip(results) {
            for &(port, span) in &node.protocol.spans().opened_sums {
                let elements = unpack(ring, &node.view(span), 1, span.count as usize);
                results.insert(port, vec![elements.into_iter().map(|e| e[0]).collect()]);
            }
        }
        self.close();
        Ok(())
    }
}

fn holds(plan: &Plan, me: Peer, block: usize, port: usize) -> bool {
    plan.inputs[port].per == Per::Row
        && match plan.job.blocks[block].holders[port] {
            veil_program::Holder::Party(p) => me == Peer::Party(p),
            veil_program::Holder::Owner(o) => me == Peer::Owner(o),
        }
}

/// The packed column of `values`.
pub fn pack(ring: Ring, values: &[u128]) -> Vec<u8> {
    let mut bytes = vec![0; ring.bytes(values.len() as u64) as usize];
    for (t, value) in values.iter().enumerate() {
        match ring {
            Ring::Bits => bytes[t / 8] |= ((value & 1) as u8) << (t % 8),
            Ring::Z64 => bytes[t * 8..][..8].copy_from_slice(&value.to_le_bytes()[..8]),
            Ring::Z128 => bytes[t * 16..][..16].copy_from_slice(&value.to_le_bytes()),
        }
    }
    bytes
}

/// The elements of `count` packed columns of `rows` rows each; padding bits are dropped.
pub fn unpack(ring: Ring, bytes: &[u8], rows: usize, count: usize) -> Vec<Vec<u128>> {
    let column = ring.bytes(rows as u64) as usize;
    assert_eq!(bytes.len(), column * count, "columns of {rows} rows");
    let element = |column: &[u8], t: usize| match ring {
        Ring::Bits => u128::from(column[t / 8] >> (t % 8) & 1),
        Ring::Z64 => u64::from_le_bytes(column[t * 8..][..8].try_into().expect("8 bytes")).into(),
        Ring::Z128 => u128::from_le_bytes(column[t * 16..][..16].try_into().expect("16 bytes")),
    };
    bytes.chunks(column).map(|c| (0..rows).map(|t| element(c, t)).collect()).collect()
}

/// A region, in the order in which tests name its properties.
pub const fn region(place: veil_device::Place, item: veil_device::Item, parts: u8, count: u32) -> Region {
    Region { place, item, parts, count }
}
