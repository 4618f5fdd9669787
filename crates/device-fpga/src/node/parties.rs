//! What networks of parties have in common: keys of packets between all nodes, how a host tells others of a failure, and how layers start.

use veil_session::Secret;

use super::{
    Command, Direction, MOST_NODES, Node, NodeConfig, NodeError, Op, Parties, Plan, PrfCounters,
    Segment, Window,
};

/// Slot of the command by which other nodes are told that a run has failed.
pub(super) const ABORT: u8 = 15;
/// Its tag at the node that is told.
const ABORTED: u32 = u32::MAX;
/// Slots of one invocation: as many segments as a command has at most, and fewer.
const TOGETHER: usize = 12;

/// How a layer begins at the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Each host queues the command of its node.
    Hosts,
    /// Other hosts have armed theirs; the host of node 0 starts them all.
    Headless,
}

/// Commands that wait for their start: slots of other nodes, and the commands of node 0.
#[derive(Clone, Debug)]
pub struct Armed {
    pub(super) slots: Vec<(u8, u8)>,
    pub(super) own: Vec<Command>,
    /// Tags of the invocations.
    pub(super) tag: u32,
}

impl Armed {
    /// Tags that it takes for invocations.
    pub(super) fn tags(&self) -> u32 {
        self.slots.len().div_ceil(TOGETHER) as u32
    }

    /// The host of node 0 starts it, and waits for all nodes.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn start(&self, node: &mut Node) -> Result<(), NodeError> {
        let mut tags: Vec<u32> = self.own.iter().map(|command| command.tag).collect();
        for (tag, slots) in (self.tag..).zip(self.slots.chunks(TOGETHER)) {
            node.invoke(tag, slots);
            tags.push(tag);
        }
        self.own.iter().for_each(|command| node.submit(command));
        node.finish("a layer", &tags)
    }
}

/// Nodes of a network, of which each is a party, and what is counted for all of them.
pub(super) trait Hosts {
    /// Who they are.
    fn parties(&self) -> Parties;

    /// The nodes, in the order of the parties.
    fn nodes(&mut self) -> &mut [Node];

    /// Other windows than those of values: all that a node's commands use, and what each party writes at those that it sends to.
    fn use_windows(
        &mut self,
        own: Window,
        inboxes: [Window; MOST_NODES as usize],
    ) -> Result<(), NodeError>;

    /// The first of so many tags that no command has had.
    fn use_tags(&mut self, count: u32) -> u32;

    /// What a run of a plan draws, and nothing else after it.
    fn take_counters(&mut self, plan: &Plan) -> PrfCounters;
}

/// Windows of all nodes of a network.
#[derive(Clone, Copy, Default)]
pub(super) struct Windows {
    /// All that a node's commands use.
    pub(super) own: Window,
    /// What each party writes at those that it sends to.
    pub(super) inboxes: [Window; MOST_NODES as usize],
    /// Cycles after which a node that owes an answer is gone.
    pub(super) timeout: u32,
}

impl Windows {
    /// Writes them at nodes of which some send to others.
    pub(super) fn set(
        &self,
        nodes: &mut [Node],
        sends: impl Fn(u8, u8) -> bool,
    ) -> Result<(), NodeError> {
        let all = nodes.len() as u8;
        for (me, node) in (0..).zip(nodes) {
            let mut put = [Window::default(); MOST_NODES as usize];
            for from in (0..all).filter(|from| *from != me && sends(*from, me)) {
                put[usize::from(from)] = self.inboxes[usize::from(from)];
            }
            node.set_up(&NodeConfig {
                node: me,
                timeout: self.timeout,
                own: self.own,
                put,
                get: [Window::default(); MOST_NODES as usize],
                invoke_from: ((1 << all) - 1) & !(1 << me),
            })?;
        }
        Ok(())
    }
}

/// Gives node `me` of `nodes` the keys of packets to and from all others, and arms the command that tells it of a failure: it compares the
/// first two beats of its memory, which differ.
pub(super) fn meet(node: &mut Node, me: u8, nodes: u8, seed: u64) -> Result<(), NodeError> {
    for other in (0..nodes).filter(|other| *other != me) {
        for (direction, name) in [
            (Direction::Seal, [me, other]),
            (Direction::Open, [other, me]),
        ] {
            let (key, salt) = link_key(seed, name);
            node.link_key(other, direction, &key, salt)?;
        }
    }
    let lanes = node.limits().lanes;
    let beat = 16 * u64::from(lanes);
    node.store(0, &vec![0; beat as usize])?;
    node.store(beat, &vec![1; beat as usize])?;
    let [zeros, ones] = [0, beat].map(|at| Segment::new(me, at, lanes));
    let differ = vec![zeros, ones];
    node.arm(
        ABORT,
        &Command::new(Op::Check, ABORTED, lanes, differ, vec![zeros]),
    );
    Ok(())
}

/// What a host does whose node has failed: it tells the others, as far as they can be reached, with tags from `tag` on. Each of them has a
/// completion then: [`super::Failure::Mismatch`] of the command that waits for this, or of a packet that does not come as it should.
pub(super) fn tell(
    node: &mut Node,
    tag: u32,
    others: impl Iterator<Item = u8>,
) -> Result<(), NodeError> {
    let mut last = tag;
    for other in others {
        node.invoke(last, &[(other, ABORT)]);
        last += 1;
    }
    // They end with the mismatch that was asked for, or because no node answers.
    let mut left = last - tag;
    while left > 0 {
        let completion = node.next("an abort")?;
        left -= u32::from((tag..last).contains(&completion.tag));
    }
    Ok(())
}

/// Bytes from a seed, for what they are for (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
pub(super) fn bytes(seed: u64, purpose: u64, into: &mut [u8]) {
    let mut state = seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95);
    for piece in into.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        piece.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..piece.len()]);
    }
}

/// A key of shares, of the nodes of a seed.
pub(super) fn key(seed: u64, purpose: u64) -> Secret {
    let mut key = [0; 16];
    bytes(seed, purpose, &mut key);
    Secret::new(key)
}

/// The key and salt of packets from a node to another one, of the nodes of a seed.
pub fn link_key(seed: u64, [from, to]: [u8; 2]) -> (Secret, u32) {
    let mut key = [0; 20];
    bytes(seed, 16 + 4 * u64::from(from) + u64::from(to), &mut key);
    let (key, salt) = key.split_at(16);
    (
        Secret::new(key.try_into().expect("16 of 20 bytes")),
        u32::from_le_bytes(salt.try_into().expect("4 of 20 bytes")),
    )
}
