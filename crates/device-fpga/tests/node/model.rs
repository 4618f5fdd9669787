//! Three or four nodes that run lists in the clear, command by command, in any order that lists allow.

use std::collections::{HashMap, HashSet};

use veil_device_fpga::node::{Command, Op, Parties, Plan, Stage, Tuple};
use veil_math::Ring;
use veil_prss::DomainTag;

use super::circuit::{counters, limits};
use super::{random, sum};

/// Steps without one that changes anything, after which another node goes on.
const PATIENCE: u32 = 40;

/// Words as a node of the model has them; no node reads what no node wrote.
type Memory = HashMap<u64, u128>;

/// Joint messages of four parties: pair, receiver, outsider, and products of components (`docs/protocol-rep4.md`).
type Joint = ([u8; 2], u8, u8, &'static [[u8; 2]]);
const JOINT: [Joint; 6] = [
    ([0, 1], 3, 2, &[[2, 2], [3, 2], [2, 3]]),
    ([1, 2], 0, 3, &[[3, 3], [0, 3], [3, 0]]),
    ([2, 3], 1, 0, &[[0, 0], [1, 0], [0, 1]]),
    ([3, 0], 2, 1, &[[1, 1], [2, 1], [1, 2]]),
    ([0, 2], 3, 1, &[[1, 3], [3, 1]]),
    ([1, 3], 2, 0, &[[2, 0], [0, 2]]),
];

/// `N` nodes that run lists in the clear. Products of three parties have masks of zero; those of four have some, and MACs of all that is agreed.
pub(crate) struct Model<'a, const N: usize> {
    plan: &'a Plan,
    memories: [Memory; N],
    lists: [Vec<(Command, bool)>; N],
    at: [usize; N],
    /// Commands that have begun, and what they have still to do.
    begun: [Vec<Begun>; N],
    /// Tells by who is told, and by whom.
    came: [[u32; N]; N],
    /// What other nodes of four have begun to write, and the node has not joined.
    waits: [HashSet<u64>; N],
}

enum Begun {
    Reads(Command),
    Writes(Command, Vec<u128>),
    /// Nodes, and how often they have to tell.
    Awaits(Vec<(usize, u32)>),
}

/// Which component a party has at a place of its own.
pub(crate) fn component(nodes: usize, me: usize, part: usize) -> usize {
    match nodes {
        3 => (me + 3 - part) % 3,
        _ => (me + 1 + part) % 4,
    }
}

/// Numbers that follow from what is drawn.
fn mask(tag: DomainTag, lane: u16, counter: u64, chunk: u32) -> u128 {
    let seed = u128::from(tag.0) << 112
        | u128::from(lane) << 96
        | u128::from(chunk) << 64
        | u128::from(counter);
    let product = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (product ^ product >> 59).wrapping_mul(0xd134_2543_de82_ef95_2545_f491_4f6c_dd1d)
}

/// The MAC of a message between two parties.
fn coded(k: u8, message: &[u128], stage: Stage, call: Tuple) -> Vec<u128> {
    let mask = mask(DomainTag::mac4(k), call.lane, stage.counter, call.chunk);
    let hash = message.iter().fold(mask, |all, word| {
        (all ^ word)
            .wrapping_mul(0x2545_f491_4f6c_dd1d_9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    let mut beat = vec![0; limits(4).lanes as usize];
    beat[0] = hash;
    beat
}

impl<'a, const N: usize> Model<'a, N> {
    pub(crate) fn new(plan: &'a Plan, chunk: u32, inputs: &[[Vec<u8>; N]]) -> Self {
        let mut memories = [0; N].map(|_| Memory::new());
        for (me, memory) in memories.iter_mut().enumerate() {
            let mut store = |at: u64, bytes: &[u8]| {
                for (k, word) in (0..).zip(bytes.as_chunks().0) {
                    memory.insert(at + 16 * k, u128::from_le_bytes(*word));
                }
            };
            for (at, of) in plan.inputs().iter().zip(inputs) {
                assert_eq!(at.len(), N - 1);
                for (part, at) in at.iter().enumerate() {
                    store(*at, &of[component(N, me, part)]);
                }
            }
            let constants = plan.constants();
            let half = 8 * constants.words as usize;
            store(constants.address, &vec![0; half]);
            store(constants.address + half as u64, &vec![0xff; half]);
        }
        let mut me = 0..;
        let counters = counters(plan, chunk);
        let list = |_| plan.commands(me.next().expect("a party"), counters);
        Model {
            plan,
            memories,
            lists: [0; N].map(list),
            at: [0; N],
            begun: [const { Vec::new() }; N],
            came: [[0; N]; N],
            waits: [0; N].map(|_| HashSet::new()),
        }
    }

    /// Whether a word lies where a node has what another one sends.
    fn is_sent(&self, address: u64, from: usize) -> bool {
        let window = self.plan.inbox(from as u8);
        (window.address..window.address + 16 * u64::from(window.words)).contains(&address)
    }

    /// Who sends what lies there.
    fn sender(&self, me: usize, address: u64) -> Option<usize> {
        let senders = (0..N).filter(|from| match N {
            3 => (from + 1) % 3 == me,
            _ => *from != me,
        });
        let mut senders = senders.filter(|from| self.is_sent(address, *from));
        senders.next()
    }

    /// A command begins: what it puts to others may be overwritten from now on.
    fn begin(&mut self, me: usize, command: &Command) {
        for to in &command.to {
            let node = usize::from(to.node);
            for at in (0..u64::from(to.words)).map(|k| to.address + 16 * k) {
                if command.op == Op::Await {
                    continue;
                }
                let expected = (node != me).then_some(me);
                assert_eq!(self.sender(node, at), expected, "own words, and windows");
                if node != me && N == 4 {
                    let free = self.waits[node].insert(at);
                    assert!(
                        free,
                        "node {me} writes over what node {node} has not joined"
                    );
                }
            }
        }
    }

    /// Does one thing at a node, if there is one that `choice` says.
    fn step(&mut self, me: usize, choice: usize) {
        let next = self.lists[me].get(self.at[me]);
        let may = next.is_some_and(|(_, after)| !after || self.begun[me].is_empty());
        let count = self.begun[me].len();
        let choice = choice % (count + usize::from(may)).max(1);
        if choice >= count {
            if may {
                self.at[me] += 1;
                let command = self.lists[me][self.at[me] - 1].0.clone();
                self.begin(me, &command);
                self.begun[me].push(if command.op == Op::Await {
                    let tells = command.to.iter();
                    Begun::Awaits(tells.map(|of| (of.node.into(), of.words)).collect())
                } else {
                    Begun::Reads(command)
                });
            }
            return;
        }
        match self.begun[me].swap_remove(choice) {
            Begun::Reads(command) => {
                let result = self.result(me, &command);
                self.begun[me].push(Begun::Writes(command, result));
            }
            Begun::Writes(command, result) => {
                let mut words = result.into_iter();
                for to in &command.to {
                    let node = usize::from(to.node);
                    for k in 0..u64::from(to.words) {
                        let word = words.next().expect("a word");
                        self.memories[node].insert(to.address + 16 * k, word);
                    }
                    assert_eq!(to.tell.is_some(), node != me);
                    self.came[node][me] += u32::from(to.tell.is_some());
                }
                assert_eq!(words.next(), None, "words are where they should be");
                if N == 4 {
                    let segments = command.from.iter();
                    let words = segments
                        .flat_map(|of| (0..u64::from(of.words)).map(|k| of.address + 16 * k));
                    for at in words {
                        let joined = self.sender(me, at).is_none() || self.waits[me].remove(&at);
                        assert!(joined, "it is joined once");
                    }
                }
            }
            Begun::Awaits(mut tells) => {
                // One node after the other.
                let (node, count) = tells[0];
                if self.came[me][node] >= count {
                    self.came[me][node] -= count;
                    tells.remove(0);
                }
                if !tells.is_empty() {
                    self.begun[me].push(Begun::Awaits(tells));
                }
            }
        }
    }

    fn result(&self, me: usize, command: &Command) -> Vec<u128> {
        let staged = matches!(command.op, Op::Local(_) | Op::Join(_));
        assert!(command.from.len() + command.to.len() <= if staged { 13 } else { 14 });
        assert!(command.words <= limits(N).longest);
        assert!(command.words.is_multiple_of(limits(N).lanes));
        let memory = &self.memories[me];
        let words = command.from.iter().flat_map(|of| {
            assert_eq!(usize::from(of.node), me);
            (0..u64::from(of.words)).map(|k| of.address + 16 * k)
        });
        let words: Vec<u128> = words.map(|at| memory[&at]).collect();
        let columns: Vec<&[u128]> = words.chunks(command.words as usize).collect();
        let rows = 0..command.words as usize;
        match command.op {
            Op::Move => words,
            Op::Xor => rows.map(|k| columns[0][k] ^ columns[1][k]).collect(),
            Op::Product(Ring::Bits) => {
                let product = |k: usize| {
                    let [x, x_before, y, y_before] = [0, 1, 2, 3].map(|of| columns[of][k]);
                    (x & y) ^ (x & y_before) ^ (x_before & y)
                };
                let own: Vec<u128> = rows.map(product).collect();
                [own.clone(), own].concat()
            }
            Op::Local(stage) => self.local(me, command, stage, &columns),
            Op::Join(stage) => self.join(me, command, stage, &words),
            other => panic!("{other:?} in a list"),
        }
    }

    /// Whether messages have MACs.
    fn checks(&self) -> bool {
        self.plan.parties() == Parties::Four { checks: true }
    }

    /// Messages, MACs, and shares that are not complete.
    fn local(&self, me: usize, command: &Command, stage: Stage, columns: &[&[u128]]) -> Vec<u128> {
        let call = command.call.expect("masks");
        assert_eq!(
            (call.tag, stage.ring, stage.sum, stage.tail),
            (DomainTag::joint4(0), Ring::Bits, false, 0)
        );
        let part = |component: u8| (usize::from(component) + 3 - me) % 4;
        let rows = command.words as usize;
        let (mut messages, mut macs) = (Vec::new(), Vec::new());
        let mut left = vec![vec![0; rows]; 3];
        let mut vouched = stage.macs.into_iter().flatten();
        let mut add = |component: u8, words: &[u128]| {
            for (all, word) in left[part(component)].iter_mut().zip(words) {
                *all ^= word;
            }
        };
        // With the next party, the previous one, the one opposite.
        for (cross, step) in [1, 3, 2].into_iter().enumerate() {
            let (me, other) = (me as u8, (me as u8 + step) % 4);
            let all = (0u8..).zip(JOINT);
            let mut with = all.filter(|(_, of)| of.0.contains(&me) && of.0.contains(&other));
            let (k, (pair, receiver, outsider, terms)) = with.next().expect("a term");
            let masks: Vec<u128> = (0..rows as u64)
                .map(|row| {
                    mask(
                        DomainTag::joint4(k),
                        call.lane,
                        call.counter + row,
                        call.chunk,
                    )
                })
                .collect();
            let message = |row: usize| {
                let terms = terms
                    .iter()
                    .map(|[i, j]| columns[part(*i)][row] & columns[3 + part(*j)][row]);
                terms.fold(masks[row], |a, b| a ^ b)
            };
            let message: Vec<u128> = (0..rows).map(message).collect();
            add(outsider, &message);
            add(receiver, &masks);
            let sends = pair[call.chunk as usize % 2] == me;
            assert_eq!(stage.sends >> cross & 1 == 1, sends);
            if sends {
                messages.extend(message);
            } else if self.checks() {
                let mac = vouched.next().flatten().expect("a code");
                assert_eq!(mac.tag, DomainTag::mac4(k));
                assert_eq!((me + 1 + mac.with) % 4, receiver);
                macs.extend(coded(k, &message, stage, call));
            }
        }
        // Masks of those that it has no part in.
        for (k, (_, receiver, outsider, _)) in (0..).zip(JOINT) {
            if usize::from(outsider) == me {
                let masks = (0..rows as u64).map(|row| {
                    mask(
                        DomainTag::joint4(k),
                        call.lane,
                        call.counter + row,
                        call.chunk,
                    )
                });
                add(receiver, &masks.collect::<Vec<_>>());
            }
        }
        [messages, macs, left.concat()].concat()
    }

    /// Complete shares, if all MACs are those of the messages.
    fn join(&self, me: usize, command: &Command, stage: Stage, words: &[u128]) -> Vec<u128> {
        let call = command.call.expect("masks");
        let rows = command.words as usize;
        let (left, came) = words.split_at(3 * rows);
        let mut left = left.to_vec();
        let mine = (0u8..).zip(JOINT);
        let mine: Vec<(u8, Joint)> = mine.filter(|(_, of)| usize::from(of.1) == me).collect();
        let (messages, macs) = came.split_at(mine.len() * rows);
        let mut macs = macs.chunks(limits(N).lanes as usize);
        for (n, (k, (pair, _, outsider, _))) in mine.into_iter().enumerate() {
            let message = &messages[n * rows..][..rows];
            let part = (usize::from(outsider) + 3 - me) % 4;
            assert_eq!(stage.to[n], Some(part as u8));
            for (all, word) in left[part * rows..].iter_mut().zip(message) {
                *all ^= word;
            }
            if self.checks() {
                let mac = stage.macs.and_then(|macs| macs[n]).expect("a code");
                let voucher = pair[1 - call.chunk as usize % 2];
                assert_eq!(mac.tag, DomainTag::mac4(k));
                assert_eq!((me as u8 + 1 + mac.with) % 4, voucher);
                let made = coded(k, message, stage, call);
                assert_eq!(macs.next(), Some(&made[..]), "message {k} at node {me}");
            }
        }
        assert_eq!(macs.next(), None);
        left
    }

    fn goes_on(&self) -> bool {
        (0..N).any(|me| self.at[me] < self.lists[me].len() || !self.begun[me].is_empty())
    }

    fn state(&self) -> ([usize; N], [usize; N], [[u32; N]; N]) {
        (self.at, self.begun.each_ref().map(Vec::len), self.came)
    }

    /// One way through the lists: any order, or one node as far ahead, or behind, as the others let it be.
    pub(crate) fn run(&mut self, seed: u64) {
        let numbers = random(seed, 1 << 12);
        let mut at = 0;
        let mut next = || {
            at += 1;
            usize::from(numbers[at % numbers.len()]) + at / numbers.len()
        };
        // Two ways are without; in some a node is as fast as it may be, and in others as slow.
        let way = seed as usize % WAYS[N - 3] as usize;
        let chosen = way % N;
        let mut idle = 0;
        while self.goes_on() {
            let mut me = next() % N;
            if way < 2 * N && idle < PATIENCE {
                me = if way < N {
                    chosen
                } else {
                    (chosen + 1 + me % (N - 1)) % N
                };
            }
            let before = self.state();
            let choice = next();
            self.step(me, choice);
            idle = if before == self.state() { idle + 1 } else { 0 };
        }
        assert!(self.waits.iter().all(HashSet::is_empty), "all is joined");
        assert_eq!(self.came, [[0; N]; N], "all was awaited");
    }

    /// The outputs, of which the nodes hold the same components.
    pub(crate) fn opened(&self) -> Vec<Vec<u8>> {
        let outputs = [0, 1, 2, 3].map(|me| self.plan.outputs(me));
        let wire = |wire: usize| {
            let mut all = vec![None; N];
            for (me, outputs) in outputs.iter().enumerate().take(N) {
                for (part, at) in outputs[wire].iter().enumerate() {
                    let words = (0..u64::from(self.plan.stride())).map(|k| at + 16 * k);
                    let words = words.flat_map(|at| self.memories[me][&at].to_le_bytes());
                    let words: Vec<u8> = words.collect();
                    let component = component(N, me, part);
                    let known = all[component].get_or_insert(words.clone());
                    assert_eq!(*known, words, "component {component} at {me}");
                }
            }
            let all: Vec<Vec<u8>> = all.into_iter().flatten().collect();
            assert_eq!(all.len(), N);
            sum(Ring::Bits, &all)
        };
        (0..outputs[0].len()).map(wire).collect()
    }
}

/// Ways of a run of three nodes, and of four.
pub(crate) const WAYS: [u64; 2] = [8, 10];
