//! Three parties on a simulated network: keys, windows and memory for layers of products, and how their hosts start them.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::parties::{self, ABORT, Armed, Hosts, Start, Windows, key};
use super::{
    Command, LANES, Layer, Network, Node, NodeError, Parties, Plan, PrfCounters, Shape, Tuple,
    Window,
};
use crate::Absent;

/// Three nodes, each a party of replicated sharing, and their hosts.
///
/// Memory of each: two beats that differ, for the command that tells of a failure; then columns, of which component c of value v is at
/// [`Trio::column`]. Component 0 is the party's own, component 1 that of the party before it, which that party may write. Columns are of whole
/// beats: what is behind a value's words is multiplied like them, and is never read.
pub struct Trio {
    /// The network.
    pub network: Network,
    /// The nodes, in the order of the parties.
    pub nodes: [Node; 3],
    words: u32,
    /// Words of a column: those of a value, up to a whole beat.
    stride: u32,
    /// Words of a beat.
    lanes: u32,
    values: u32,
    /// The party before writes in each.
    windows: Windows,
    tag: u32,
    counter: u64,
    /// Tags of the layer that was submitted last.
    waits: Vec<u32>,
}

impl Trio {
    /// Nodes with room for `values` values of so many words, with keys that are drawn from `seed` (which are for simulations: a party with
    /// the seed knows them). Nodes that do not answer for `timeout` cycles are gone.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no nodes were built in. The inner [`NodeError`] is that of a node that does not come up.
    pub fn new(
        shape: Shape,
        (values, words): (u32, u32),
        seed: u64,
        timeout: u32,
    ) -> Result<Result<Self, NodeError>, Absent> {
        let stride = words.next_multiple_of(LANES);
        let bytes = 32 * (u64::from(LANES) + u64::from(values) * u64::from(stride));
        let shape = Shape {
            nodes: 3,
            bytes: shape.bytes.max(bytes),
            ..shape
        };
        let network = Network::new(shape)?;
        Ok(Self::with(network, (values, words), seed, timeout))
    }

    fn with(
        network: Network,
        (values, words): (u32, u32),
        seed: u64,
        timeout: u32,
    ) -> Result<Self, NodeError> {
        let open = |node| Node::open(Box::new(network.port(node)));
        let nodes = [open(0)?, open(1)?, open(2)?];
        let lanes = nodes[0].limits().lanes;
        let mut trio = Trio {
            network,
            nodes,
            words,
            stride: words.next_multiple_of(lanes),
            lanes,
            values,
            windows: Windows {
                timeout,
                ..Windows::default()
            },
            tag: 1,
            counter: 0,
            waits: Vec::new(),
        };
        let own = Window {
            address: 0,
            words: 2 * lanes + 2 * values * trio.stride,
        };
        // Component 1 of all values is behind one another.
        let inbox = Window {
            address: trio.column(1, 0),
            words: values * trio.stride,
        };
        (trio.windows.own, trio.windows.inboxes) = (own, [inbox; 4]);
        trio.set_up(seed)?;
        Ok(trio)
    }

    /// Windows and keys of all nodes, and the armed command that tells of a failure.
    fn set_up(&mut self, seed: u64) -> Result<(), NodeError> {
        let keys = [0, 1, 2].map(|party| pair_key(seed, party));
        self.set_windows()?;
        for me in 0..3 {
            let node = &mut self.nodes[usize::from(me)];
            let (own, before) = (&keys[usize::from(me)], &keys[usize::from(previous(me))]);
            node.share_keys(own, before)?;
            parties::meet(node, me, 3, seed)?;
        }
        Ok(())
    }

    fn set_windows(&mut self) -> Result<(), NodeError> {
        let sends = |from, to| to == next(from);
        self.windows.set(&mut self.nodes, sends)
    }

    /// What a node's own commands use: all of the columns, and the beats before them.
    pub fn window(&self) -> Window {
        self.windows.own
    }

    /// Where component `component` of a value begins.
    pub fn column(&self, component: u8, value: u32) -> u64 {
        let place = u64::from(component) * u64::from(self.values) + u64::from(value);
        16 * (2 * u64::from(self.lanes) + place * u64::from(self.stride))
    }

    /// Words of a value.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Words of a column: those of a value, up to a whole beat.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Writes one component of a value at all nodes: `components[i]` is that of party i, and the previous one of the party after it.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the nodes have no room for so many values.
    pub fn share(&mut self, value: u32, components: [&[u8]; 3]) -> Result<(), NodeError> {
        for me in 0..3 {
            for (part, of) in [(0, me), (1, previous(me))] {
                let at = self.column(part, value);
                self.nodes[usize::from(me)].store(at, components[usize::from(of)])?;
            }
        }
        Ok(())
    }

    /// Component `component` of a value at a node.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the nodes have no room for so many values.
    pub fn component(&mut self, me: u8, component: u8, value: u32) -> Result<Vec<u8>, NodeError> {
        let mut bytes = vec![0; 16 * self.words as usize];
        let at = self.column(component, value);
        self.nodes[usize::from(me)].load(at, &mut bytes)?;
        Ok(bytes)
    }

    /// The layer `out..out + count` = `a..` times `b..`, value by value, as party `me` computes it.
    fn layer(&self, me: u8, ring: Ring, [a, b, out]: [u32; 3], count: u32) -> Layer {
        let of = |value| [self.column(0, value), self.column(1, value)];
        Layer {
            ring,
            words: count * self.stride,
            from: [of(a), of(b)],
            own: self.column(0, out),
            next: (next(me), self.column(1, out)),
            tell: None,
            call: Tuple {
                tag: if ring == Ring::Bits {
                    DomainTag::AND3
                } else {
                    DomainTag::MUL3
                },
                lane: 0,
                counter: self.counter,
                chunk: 0,
            },
        }
    }

    /// Arms the commands of all nodes but 0 for layers that are started one after the other: each is first values and number of values,
    /// as of [`Trio::products`]. Says which slots they are in, and the commands of node 0.
    ///
    /// # Panics
    /// If there are not the slots.
    ///
    /// # Errors
    /// No error at present: arming gives no completion.
    pub fn arm(&mut self, ring: Ring, layers: &[([u32; 3], u32)]) -> Result<Vec<Armed>, NodeError> {
        let limits = self.nodes[0].limits();
        let mut slot = 0;
        let mut armed = Vec::new();
        for &(values, count) in layers {
            let mut slots = Vec::new();
            let tag = self.tag;
            for me in 1..3 {
                let commands = self
                    .layer(me, ring, values, count)
                    .commands(me, limits, tag);
                for (k, command) in (0..).zip(commands) {
                    assert!(slot + k < ABORT, "a slot for each command");
                    self.nodes[usize::from(me)].arm(slot + k, &command);
                    slots.push((me, slot + k));
                }
            }
            let own: Vec<Command> = self
                .layer(0, ring, values, count)
                .commands(0, limits, tag)
                .collect();
            slot += own.len() as u8;
            let layer = Armed {
                slots,
                tag: tag + own.len() as u32,
                own,
            };
            self.tag = layer.tag + layer.tags();
            self.counter += u64::from(count * self.stride);
            armed.push(layer);
        }
        Ok(armed)
    }

    /// The host of node 0 runs a layer that was armed, and waits for all nodes.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn start(&mut self, armed: &Armed) -> Result<(), NodeError> {
        armed.start(&mut self.nodes[0])
    }

    /// Products of `count` values from `a` on with as many from `b` on, to values from `out` on.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`], of the first node that fails.
    pub fn products(
        &mut self,
        start: Start,
        ring: Ring,
        values: [u32; 3],
        count: u32,
    ) -> Result<(), NodeError> {
        if start == Start::Headless {
            let armed = self.arm(ring, &[(values, count)])?;
            return self.start(&armed[0]);
        }
        self.submit(ring, values, count);
        (0..3).try_for_each(|me| self.finish(me))
    }

    /// All hosts queue the commands of such a layer.
    pub fn submit(&mut self, ring: Ring, values: [u32; 3], count: u32) {
        let limits = self.nodes[0].limits();
        for me in 0..3 {
            let layer = self.layer(me, ring, values, count);
            let commands = layer.commands(me, limits, self.tag);
            self.waits = (commands.map(|command| {
                self.nodes[usize::from(me)].submit(&command);
                command.tag
            }))
            .collect();
        }
        self.tag += self.waits.len() as u32;
        self.counter += u64::from(count * self.stride);
    }

    /// The host of a node waits for what it has queued.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn finish(&mut self, me: u8) -> Result<(), NodeError> {
        self.nodes[usize::from(me)].finish("a layer", &self.waits)
    }

    /// What a host does whose node has failed: it tells the others, as far as they can be reached. Each of them has a completion then:
    /// [`super::Failure::Mismatch`] of the command that waits for this, or of a packet that does not come as it should.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::next`]. A node that cannot be reached is no error.
    pub fn tell(&mut self, me: u8) -> Result<(), NodeError> {
        self.tag += 2;
        let others = [previous(me), next(me)].into_iter();
        parties::tell(&mut self.nodes[usize::from(me)], self.tag - 2, others)
    }

    /// The same nodes with the keys of another seed, after [`Trio::abort`]: counters of packets and draws begin again.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::set_up`] and [`Node::link_key`].
    pub fn renewed(mut self, seed: u64, timeout: u32) -> Result<Self, NodeError> {
        self.counter = 0;
        self.windows.timeout = timeout;
        self.set_up(seed)?;
        Ok(self)
    }

    /// Ends everything at all nodes: nothing is left of keys, shares and messages.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::abort`], of the first node that fails; those after it are not aborted.
    pub fn abort(&mut self) -> Result<(), NodeError> {
        let window = self.window();
        self.nodes
            .iter_mut()
            .try_for_each(|node| node.abort(window))
    }
}

impl Hosts for Trio {
    fn parties(&self) -> Parties {
        Parties::Three
    }

    fn nodes(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    fn use_windows(&mut self, own: Window, inboxes: [Window; 4]) -> Result<(), NodeError> {
        (self.windows.own, self.windows.inboxes) = (own, inboxes);
        self.set_windows()
    }

    fn use_tags(&mut self, count: u32) -> u32 {
        self.tag += count;
        self.tag - count
    }

    fn take_counters(&mut self, plan: &Plan) -> PrfCounters {
        let mut counters = PrfCounters::first(plan.parties());
        counters.masks.counter = self.counter;
        self.counter += plan.words();
        counters
    }
}

pub(super) const fn next(party: u8) -> u8 {
    (party + 1) % 3
}

pub(super) const fn previous(party: u8) -> u8 {
    (party + 2) % 3
}

/// The key that a party has with the one after it, of the nodes of a seed.
pub fn pair_key(seed: u64, party: u8) -> Secret {
    key(seed, 1 + u64::from(party))
}
