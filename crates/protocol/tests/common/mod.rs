//! Runs a plan without a network: every participant has a device, and bytes go from one to the other by hand.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test binary uses its own part of it"
)]

pub mod job;
pub mod jobs;
pub mod transfers;
pub mod vectors;

use std::collections::HashMap;
use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Cpu, Device, Isa, Layout, Op, Outcome, Reference, Region, Residency, Span,
    Tag, Workspace, completion,
};
use veil_math::Ring;
use veil_protocol::{Cleared, Cost, Plan, Protocol, Round, Task, Transfer, WorkspaceOf};
use veil_prss::{DomainTag, Prf};
use veil_session::{Frame, PartyId, Peer, Secret, SessionId};

/// The session of every test; what differs from one to the other is the keys.
pub const SESSION: SessionId = SessionId([0x5e; 32]);

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The scalar device, whose ledger rings on a draw that was drawn before.
    Reference,
    /// The SIMD device.
    Cpu(Isa),
}

impl Kind {
    /// Those of this machine.
    pub fn all() -> Vec<Kind> {
        std::iter::once(Kind::Reference)
            .chain(Isa::available().into_iter().map(Kind::Cpu))
            .collect()
    }

    /// A new device.
    pub fn device(self) -> Box<dyn Device> {
        match self {
            Kind::Reference => Box::new(Reference::default()),
            Kind::Cpu(isa) => Box::new(Cpu::with(isa)),
        }
    }
}

/// Keys of a run: of pairs of parties, and the two seeds of each owner.
#[derive(Clone)]
pub struct Keys {
    /// `κ_i`, of parties i and i + 1.
    pub pairs: [[u8; 16]; 3],
    /// `s_0` and `s_1` of each owner.
    pub seeds: Vec<[[u8; 16]; 2]>,
}

impl Keys {
    /// Keys that follow from `seed`.
    pub fn from_seed(seed: u64, owners: usize) -> Keys {
        let prf = Prf::new(&Secret::new([0xa5; 16]));
        let key = |use_of: u16, index: usize| prf.block(DomainTag(use_of), 0, seed, index as u32);
        Keys {
            pairs: std::array::from_fn(|i| key(0, i)),
            seeds: (0..owners).map(|o| [key(1, o), key(2, o)]).collect(),
        }
    }
}

/// Keys as a protocol asks for them.
pub trait Keyring {
    /// The key of the pair of two parties.
    fn pair(&self, a: PartyId, b: PartyId) -> [u8; 16];
    /// Key `index` of those that a participant chooses for others.
    fn dealt(&self, by: Peer, index: u8) -> [u8; 16];
}

impl Keyring for Keys {
    fn pair(&self, a: PartyId, b: PartyId) -> [u8; 16] {
        let first = if b == a.after(1, 3) { a } else { b };
        self.pairs[first.index()]
    }

    fn dealt(&self, by: Peer, index: u8) -> [u8; 16] {
        match by {
            Peer::Owner(owner) => self.seeds[owner as usize][index as usize],
            _ => panic!("{by} chooses no keys for others"),
        }
    }
}

/// A message of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who sent it.
    pub from: Peer,
    /// To whom.
    pub to: Peer,
    /// In which task.
    pub task: Task,
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
    pub protocol: Arc<dyn Protocol>,
    /// Its device.
    pub device: Box<dyn Device>,
    /// The layouts of the protocol, for chunks and for one row, and behind each the window.
    layouts: [Layout; 2],
    /// A region through which tests see rows that a host never sees; and behind it one for labels.
    window: u16,
    workspace: Option<Workspace>,
    cleared: Option<Cleared>,
}

impl Node {
    /// Runs commands, and says which of them found two values to differ.
    pub fn submit(&mut self, commands: &[Command]) -> Option<usize> {
        let workspace = self.workspace();
        self.device
            .submit(workspace, commands, Tag(0))
            .expect("commands that the device can run");
        match completion(&mut *self.device)
            .expect("a batch that was submitted ends")
            .outcome
        {
            Outcome::Done => None,
            Outcome::Mismatch { command } => Some(command),
        }
    }

    /// Fills a mapped span.
    pub fn write(&mut self, to: Span, bytes: &[u8]) {
        let workspace = self.workspace();
        self.device
            .write(workspace, to, bytes)
            .expect("bytes that fill the span");
    }

    /// Reads a mapped or public span.
    pub fn view(&self, from: Span) -> Vec<u8> {
        self.device
            .view(self.workspace(), from)
            .expect("a span that the host may see")
            .to_vec()
    }

    /// The bytes of resident rows or labels, by way of the window.
    pub fn peek(&mut self, from: Span) -> Vec<u8> {
        let (window, op) = self.window(from);
        assert_eq!(
            self.submit(&[Command::new(op, vec![from], vec![window])]),
            None
        );
        self.view(window)
    }

    /// Writes resident rows, by way of the window.
    pub fn poke(&mut self, to: Span, bytes: &[u8]) {
        let (window, op) = self.window(to);
        self.write(window, bytes);
        assert_eq!(
            self.submit(&[Command::new(op, vec![window], vec![to])]),
            None
        );
    }

    /// Where the window shows a span of resident rows, and the command that copies between the two.
    pub fn window(&self, span: Span) -> (Span, Op) {
        let (region, ring) = match self.layouts[0].regions[span.region as usize].column {
            ColumnType::Rows(ring) => (self.window, ring),
            ColumnType::Labels => (self.window + 1, Ring::Bits),
            item => panic!("the window shows no {item:?}"),
        };
        (
            Span {
                region,
                component: 0,
                first: 0,
                count: span.count,
            },
            Op::Combine { ring, minus: 0 },
        )
    }

    fn workspace(&self) -> Workspace {
        self.workspace.expect("a workspace is open")
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
    /// The keys of the run.
    pub keys: Arc<dyn Keyring>,
    frame: Frame,
}

/// Where a participant is in a task.
enum At {
    Start,
    Waits(Arc<Round>),
    End,
}

impl Net {
    /// Participants of `plan` with three parties, each with a device of its own.
    pub fn new(plan: Plan, keys: &Keys, kind: Kind) -> Net {
        Net::of(plan, &PartyId::THREE, Arc::new(keys.clone()), kind)
    }

    /// Participants of `plan` with these parties, by its protocol.
    pub fn of(plan: Plan, parties: &[PartyId], keys: Arc<dyn Keyring>, kind: Kind) -> Net {
        let plan = Arc::new(plan);
        let of_plan = Arc::clone(&plan);
        let protocol = move |me| veil_protocol::protocol(Arc::clone(&of_plan), me);
        Net::by(plan, parties, keys, kind, &protocol)
    }

    /// The same by other rounds, with the participants and the keys of the plan.
    pub fn by(
        plan: Arc<Plan>,
        parties: &[PartyId],
        keys: Arc<dyn Keyring>,
        kind: Kind,
        protocol: &dyn Fn(Peer) -> Arc<dyn Protocol>,
    ) -> Net {
        let owners = (0..plan.job.owners.len() as u16).map(Peer::Owner);
        let recipients = (0..plan.job.recipients.len() as u16).map(Peer::Recipient);
        let parties = parties.iter().copied().map(Peer::Party);
        let peers: Vec<Peer> = parties.chain(owners).chain(recipients).collect();
        let node = |me: Peer| {
            let (protocol, of_keys) =
                (protocol(me), veil_protocol::protocol(Arc::clone(&plan), me));
            let garbles = protocol.transfers().is_some();
            let workspaces = [
                (WorkspaceOf::Rows, plan.slots),
                (WorkspaceOf::Job, plan.job_slots[0]),
            ];
            let [(chunk, window), (job, _)] = workspaces.map(|(of, count)| {
                let mut layout = protocol.layout(of).clone();
                let mut window = |column, count| {
                    layout.add(Region {
                        residency: Residency::Mapped,
                        column,
                        components: 1,
                        count,
                    })
                };
                let rows = window(ColumnType::Rows(plan.words), count);
                window(ColumnType::Labels, if garbles { count } else { 0 });
                (layout, rows)
            });
            let mut device = kind.device();
            device.bind(SESSION);
            for (program, of) in protocol
                .programs()
                .iter()
                .zip(plan.workspaces_of_programs())
            {
                let layout = if of == WorkspaceOf::Rows {
                    &chunk
                } else {
                    &job
                };
                device
                    .load(program, layout)
                    .expect("a program that fits the layout");
            }
            for peer in of_keys.peers() {
                for (_, id) in of_keys.keys(peer) {
                    let (Some(a), Some(b)) = (me.party(), peer.party()) else {
                        panic!("{me} has a key of a pair with {peer}")
                    };
                    device
                        .load_key(id, &Secret::new(keys.pair(a, b)))
                        .expect("room for a key");
                }
            }
            for by in &peers {
                for seed in of_keys.dealt(*by) {
                    let key = Secret::new(keys.dealt(*by, seed.index));
                    device.load_key(seed.key, &key).expect("room for a key");
                }
            }
            Node {
                me,
                protocol,
                device,
                layouts: [chunk, job],
                window,
                workspace: None,
                cleared: None,
            }
        };
        let nodes = peers.iter().copied().map(node).collect();
        Net {
            plan,
            nodes,
            log: Vec::new(),
            meters: Vec::new(),
            tap: Box::new(|_| {}),
            keys,
            frame: Frame {
                epoch: 0,
                lane: 0,
                chunk: 0,
                rows: 0,
            },
        }
    }

    /// Opens the workspace of a chunk at every participant.
    pub fn open(&mut self, frame: Frame) {
        self.open_for(WorkspaceOf::Rows, frame);
    }

    /// Opens the workspace of the set-up, or of the totals.
    pub fn open_job(&mut self, frame: Frame) {
        self.open_for(WorkspaceOf::Job, frame);
    }

    fn open_for(&mut self, of: WorkspaceOf, frame: Frame) {
        self.frame = frame;
        for node in &mut self.nodes {
            node.cleared = None;
            let [chunk, job] = &node.layouts;
            let layout = if of == WorkspaceOf::Rows { chunk } else { job };
            node.workspace = Some(
                node.device
                    .open(layout, frame)
                    .expect("room for a workspace"),
            );
        }
    }

    /// Closes the workspaces.
    pub fn close(&mut self) {
        for node in &mut self.nodes {
            let workspace = node.workspace.take().expect("a workspace is open");
            node.device.close(workspace);
        }
    }

    /// Runs a task at all participants.
    pub fn run(&mut self, task: impl Fn(&Node) -> Task) -> Result<(), Mismatch> {
        self.run_changed(task, |_| {})
    }

    /// Runs a task whose commands are changed before they are submitted.
    pub fn run_changed(
        &mut self,
        task: impl Fn(&Node) -> Task,
        change: impl Fn(&mut Command),
    ) -> Result<(), Mismatch> {
        let tasks: Vec<Task> = self.nodes.iter().map(task).collect();
        let mut flows: Vec<_> = self
            .nodes
            .iter()
            .zip(&tasks)
            .map(|(n, t)| n.protocol.flow(*t, self.frame))
            .collect();
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
                        let me = node.me;
                        let key = |t: &Transfer| (t.peer, me, round.place, t.part);
                        if !round.recvs.iter().all(|t| under_way.contains_key(&key(t))) {
                            continue;
                        }
                        for t in &round.recvs {
                            let bytes = under_way.remove(&key(t)).expect("looked up above");
                            let mut rest = &bytes[..];
                            for piece in t.pieces() {
                                let (these, others) = rest.split_at(node.view(piece).len());
                                node.write(piece, these);
                                rest = others;
                            }
                        }
                        if let Some(command) = node.submit(&changed(&round.finish)) {
                            let check = round.checks.iter().find(|c| c.command == command);
                            let check = check.expect("a mismatch comes from a check");
                            return Err(Mismatch {
                                at: node.me,
                                suspects: check.suspects.clone(),
                                what: check.what,
                            });
                        }
                    }
                }
                moved = true;
                ats[k] = match flows[k].next() {
                    None => At::End,
                    Some(round) => {
                        assert!(
                            round.place < node.protocol.places(),
                            "a place beyond the last"
                        );
                        assert_eq!(
                            node.submit(&changed(&round.local)),
                            None,
                            "checks finish a round"
                        );
                        for t in &round.sends {
                            let bytes = t.pieces().flat_map(|piece| node.view(piece)).collect();
                            let mut message = Message {
                                from: node.me,
                                to: t.peer,
                                task: tasks[k],
                                place: round.place,
                                part: t.part,
                                bytes,
                            };
                            found[k] = found[k]
                                + Cost {
                                    rounds: 0,
                                    messages: 1,
                                    bytes: message.bytes.len() as u64,
                                };
                            (self.tap)(&mut message);
                            let key = (message.from, message.to, message.place, message.part);
                            assert!(
                                under_way.insert(key, message.bytes.clone()).is_none(),
                                "two messages of one name: {key:?}"
                            );
                            self.log.push(message);
                        }
                        found[k].rounds += u64::from(!round.recvs.is_empty());
                        At::Waits(round)
                    }
                };
            }
            assert!(moved, "every participant waits for another one");
        }
        assert!(
            under_way.is_empty(),
            "messages that no party takes: {:?}",
            under_way.keys()
        );
        for (k, node) in self.nodes.iter_mut().enumerate() {
            node.cleared = flows[k].cleared().or(node.cleared);
            let declared = node.protocol.cost(tasks[k], self.frame);
            self.meters.push(Metered {
                peer: node.me,
                task: tasks[k],
                rows: self.frame.rows,
                found: found[k],
                declared,
            });
        }
        Ok(())
    }
}
