//! Handshakes of a protocol whose transfers are of both directions, step by step: its keys, its cost, and ends that cheat (case D1).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use veil_circuit::{Circuit, Clock, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Layout, Program, Trees};
use veil_job::{Audience, Block, Holder, JobSpec, Order, Security};
use veil_link::memory;
use veil_link::tap::{Fate, Tapped};
use veil_math::Ring;
use veil_protocol::ot::Pins;
use veil_protocol::{Back, Flow, Options, Spans, Task, Transfers, WorkspaceOf};
use veil_session::{Channel, Frame, PartyId};

use super::*;
use crate::{bounds, participants};

/// Bytes of a message with trees, and of a turn.
const TREES: usize = 5184;
const TURN: usize = 6176;

/// The sender of the first direction, and the other end.
const ENDS: [Peer; 2] = [Peer::Party(PartyId::TWO[0]), Peer::Party(PartyId::TWO[1])];

/// Numbers of the keys of the second direction.
const OFFSET: KeyId = KeyId(9);
const LEAVES: KeyId = KeyId(4000);

/// Garbled circuits, with transfers of both directions.
struct Both(Arc<dyn Protocol>);

impl Protocol for Both {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn guarantee(&self) -> Cow<'static, str> {
        self.0.guarantee()
    }

    fn me(&self) -> Peer {
        self.0.me()
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        self.0.layout(of)
    }

    fn programs(&self) -> &[Arc<Program>] {
        self.0.programs()
    }

    fn flow(&self, task: Task, frame: Frame) -> Flow {
        self.0.flow(task, frame)
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        self.0.cost(task, frame)
    }

    fn spans(&self) -> &Spans {
        self.0.spans()
    }

    fn places(&self) -> u32 {
        self.0.places()
    }

    fn peers(&self) -> Vec<Peer> {
        self.0.peers()
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        self.0.keys(peer)
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        self.0.dealt(by)
    }

    fn transfers(&self) -> Option<Transfers> {
        self.0.transfers().map(|first| Transfers {
            pins: Pins::new(2, 2),
            back: Some(Back {
                offset: OFFSET,
                leaves: LEAVES,
                pins: Pins::new(2, 0),
            }),
            ..first
        })
    }
}

/// The square of an owner's bit, to a recipient.
fn plan() -> Plan {
    let circuit = Circuit {
        ring: Ring::Bits,
        inputs: vec![InputPort {
            name: "x".into(),
            width: 1,
            per: Per::Row,
            bits: false,
        }],
        gates: vec![Gate::Mul(Wire(0), Wire(0))],
        outputs: vec![OutputPort {
            name: "y".into(),
            wires: vec![Wire(1)],
            reduce: Reduce::None,
        }],
        clock: Clock::default(),
    };
    let job = JobSpec {
        name: "square".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["a", "b"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: Security::among(2),
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: 3,
            holders: vec![Holder::Owner(0)],
            stored: None,
            order: Order::Unsaid,
        }],
        audiences: vec![Audience::Recipient(0)],
        opened: vec!["the square".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    Plan::new(Arc::new(job), Options::default()).expect("the job has a plan")
}

/// A message that a party has posted: its place among those of the handshake, and its bytes.
type Posted = (u32, Vec<u8>);

/// Keys by their numbers.
type Numbered = BTreeMap<u16, [u8; 16]>;

/// How a handshake ended.
struct Ended {
    keys: BTreeMap<Peer, Result<Keys, Abort>>,
    /// Messages of each participant, as they should have been.
    posted: BTreeMap<Peer, Vec<Posted>>,
    costs: BTreeMap<Peer, Cost>,
}

/// All participants in turn, until none moves. `cheat` gets who sends to whom, at which place, and what.
fn meet(
    stores: [Option<&Arc<OtCache>>; 2],
    cheat: impl Fn(Peer, Peer, u32, &[u8]) -> Fate + Sync,
) -> Ended {
    let plan = plan();
    let peers = participants(&plan);
    let shared = Arc::new(plan.clone());
    let build = |peer: &Peer| Both(veil_protocol::protocol(Arc::clone(&shared), *peer));
    let protocols: Vec<Both> = peers.iter().map(build).collect();
    let limits = protocols.iter().map(|protocol| bounds(&plan, protocol));
    let limits = limits.reduce(veil_link::Bounds::wider);
    let binding = Binding {
        identities: vec![[1; 32], [2; 32]],
        exporters: BTreeMap::new(),
    };
    let posted = Mutex::new(BTreeMap::<Peer, Vec<Posted>>::new());
    let first = protocols[0].places();
    let mut running = Vec::new();
    for (protocol, link) in (protocols.iter()).zip(memory::mesh(&peers, limits.expect("parties"))) {
        let (me, posted, cheat) = (protocol.me(), &posted, &cheat);
        let link = Tapped::new(link, move |to, at: Channel, bytes: &[u8]| {
            let place = at.step.place - first;
            let mut posted = posted.lock().expect("no panic");
            posted.entry(me).or_default().push((place, bytes.to_vec()));
            cheat(me, to, place, bytes)
        });
        let end = ENDS.iter().position(|end| *end == me);
        let store = end.and_then(|end| stores[end]);
        let made = Handshake::new(
            (&plan, PlanHash([3; 32])),
            protocol,
            &mut system,
            (store, None),
        );
        running.push((protocol, link, made.expect("there is randomness"), true));
    }
    let mut keys = BTreeMap::new();
    // A handshake has ten steps, and a participant may have to wait for another one in each.
    for _ in 0..100 {
        for (protocol, link, handshake, goes) in running.iter_mut().filter(|running| running.3) {
            let misaligned = OnceLock::new();
            let step = handshake.step(&plan, *protocol, &binding, None, &misaligned, link);
            if let Some(ended) = step.transpose() {
                *goes = false;
                keys.insert(protocol.me(), ended);
            }
        }
    }
    drop(running);
    let cost = |protocol: &Both| (protocol.me(), handshake_cost(&plan, protocol));
    Ended {
        keys,
        posted: posted.into_inner().expect("no panic"),
        costs: protocols.iter().map(cost).collect(),
    }
}

fn pass(_: Peer, _: Peer, _: u32, _: &[u8]) -> Fate {
    Fate::Pass
}

impl Ended {
    /// The keys of an end by their numbers.
    fn of(&self, end: Peer) -> Numbered {
        let made = self.keys[&end].as_ref().expect("it ended well");
        let keys = made.secrets.iter();
        let all: Numbered = keys.map(|(id, key)| (id.0, *key.expose())).collect();
        assert_eq!(all.len(), made.secrets.len(), "every key has its number");
        all
    }

    /// Lengths of what an end has sent for transfers.
    fn lengths(&self, end: Peer) -> Vec<(u32, usize)> {
        let sent = self.posted[&end].iter();
        sent.filter(|(place, _)| *place >= TRANSFERS)
            .map(|(place, bytes)| (place - TRANSFERS, bytes.len()))
            .collect()
    }

    /// What an end says of the other one.
    #[track_caller]
    fn said(&self, end: usize) -> &'static str {
        match &self.keys[&ENDS[end]] {
            Err(Abort::SetUp { peer, what }) if *peer == ENDS[1 - end] => what,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it ended well"),
        }
    }
}

/// Leaves and offset of a direction are at each end what they should be.
fn agree((sender, receiver): (&Numbered, &Numbered), (offset, leaves): (KeyId, KeyId)) -> u128 {
    let trees = Trees::default();
    assert!(!receiver.contains_key(&offset.0));
    let offset = u128::from_le_bytes(sender[&offset.0]);
    for tree in 0..trees.count() {
        let path = (offset >> (trees.bits() * tree)) as u32 & (trees.leaves() - 1);
        let number = |leaf| leaves.0 + trees.index(tree, leaf);
        assert!(!sender.contains_key(&number(0)));
        for leaf in 1..trees.leaves() {
            assert_eq!(sender[&number(leaf)], receiver[&number(leaf ^ path)]);
        }
        assert!(receiver.contains_key(&number(path)));
    }
    offset
}

#[test]
fn both_directions_are_there_after_one_set_of_curves() {
    let ended = meet([None, None], pass);
    let [a, b] = ENDS.map(|end| ended.of(end));
    let first = Both(veil_protocol::protocol(Arc::new(plan()), ENDS[0])).transfers();
    let first = first.expect("a party has transfers");
    let offsets = [
        agree((&a, &b), (first.offset, first.leaves)),
        agree((&b, &a), (OFFSET, LEAVES)),
    ];
    assert_eq!(offsets.map(|offset| offset & 3), [3, 1]);
    let leaves = |keys: &Numbered, from: KeyId| -> BTreeSet<[u8; 16]> {
        let all = keys.range(from.0..from.0 + 512);
        all.map(|(_, key)| *key).collect()
    };
    let (one, other) = (leaves(&b, first.leaves), leaves(&a, LEAVES));
    assert_eq!((one.len(), other.len()), (512, 512));
    assert!(one.is_disjoint(&other));
    assert_eq!(ended.lengths(ENDS[0]), [(0, 8224), (2, TREES)]);
    assert_eq!(ended.lengths(ENDS[1]), [(0, 64), (1, TREES + TURN)]);
    for (me, cost) in &ended.costs {
        assert!(ended.keys[me].is_ok());
        let sent = &ended.posted[me];
        let bytes = sent.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!(
            (cost.messages, cost.bytes),
            (sent.len() as u64, bytes),
            "{me}"
        );
    }
    let rounds = ENDS.map(|end| ended.costs[&end].rounds);
    assert_eq!(rounds, [6, 6]);
}

/// What each end says of a cache, whatever it has: nothing, and nothing is left.
#[test]
fn no_end_keeps_anything() {
    let stores = [Arc::default(), Arc::default()];
    for _ in 0..2 {
        let ended = meet([Some(&stores[0]), Some(&stores[1])], pass);
        for (end, other) in [(0, 1), (1, 0)] {
            let made = ended.keys[&ENDS[end]].as_ref().expect("it ended well");
            let made = made.transfers.as_ref().expect("a party has transfers");
            assert!(made.pending.is_none());
            assert_eq!(stores[end].count(), 0);
            let sent = ended.posted[&ENDS[end]].iter();
            let words = sent.filter(|(place, bytes)| *place == 1 && bytes.len() > PROOF);
            let words: Vec<_> = words.map(|(_, bytes)| &bytes[PROOF..]).collect();
            assert_eq!(words, [[0; transfers::WORD]], "to {other}");
        }
    }
}

/// An end that says it has a cache says what no party says.
#[test]
fn a_claim_of_cached_transfers_is_refused() {
    for (cheat, word) in [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3)] {
        let ended = meet([None, None], move |from, to, place, bytes| {
            if (from, to, place) != (ENDS[cheat], ENDS[1 - cheat], 1) {
                return Fate::Pass;
            }
            let mut bytes = bytes.to_vec();
            bytes[PROOF] = word;
            Fate::Replace(bytes)
        });
        let told = ended.said(1 - cheat);
        assert_eq!(told, "says of kept transfers what no party says");
        assert!(ended.lengths(ENDS[1 - cheat]).is_empty());
    }
}

/// Every message with a byte changed, and one that comes back to its sender: the error of the end that it reaches, which sends nothing more.
#[test]
fn what_is_changed_is_refused_before_anything_else_is_sent() {
    let stranger = "sent a message of oblivious transfer that was not made for this session";
    for (cheat, place, byte, sent) in [
        (0, 0, 100, 1),
        (1, 0, 10, 1),
        (1, 1, 10, 1),
        (1, 1, TREES - 1, 1),
        (1, 1, TREES, 1),
        (1, 1, TREES + TURN - 1, 1),
        (0, 2, 0, 2),
        (0, 2, TREES - 1, 2),
    ] {
        let ended = meet([None, None], move |from, _, at, bytes| {
            if (from, at) != (ENDS[cheat], TRANSFERS + place) {
                return Fate::Pass;
            }
            let mut bytes = bytes.to_vec();
            bytes[byte] ^= 4;
            Fate::Replace(bytes)
        });
        assert_eq!(ended.said(1 - cheat), stranger, "{place} {byte}");
        assert_eq!(ended.lengths(ENDS[1 - cheat]).len(), sent);
    }
    // The second end's own trees come back to it.
    let trees = Mutex::new(Vec::new());
    let ended = meet([None, None], |from, _, at, bytes| {
        let mut trees = trees.lock().expect("no panic");
        match (from == ENDS[1], at.checked_sub(TRANSFERS)) {
            (true, Some(1)) => trees.extend_from_slice(&bytes[..TREES]),
            (false, Some(2)) => return Fate::Replace(trees.clone()),
            _ => {}
        }
        Fate::Pass
    });
    assert_eq!(ended.said(1), stranger);
}
