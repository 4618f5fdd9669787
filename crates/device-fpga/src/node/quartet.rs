//! Four parties on a simulated network: keys, windows and memory for layers of products, and how their hosts start them.

use veil_math::Ring;
use veil_session::Secret;

use super::four::{Piece, part};
use super::parties::{self, ABORT, Armed, Hosts, Start, Windows, key};
use super::{Command, LANES, Network, Node, NodeError, Parties, Plan, PrfCounters, Shape, Window};
use crate::Absent;

/// Columns of a party.
const PARTS: u8 = 3;
/// Messages, and MACs, that a party gets at most in a layer.
const MOST: u32 = 2;
/// Words that each piece of a layer has at least, but the last: workers of any unit keep as many.
const PIECE: u32 = 256;

/// A layer of products: `count` values from the first number on, times as many from the second, to values from the third on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Products {
    /// Ring.
    pub ring: Ring,
    /// First values.
    pub values: [u32; 3],
    /// Products.
    pub count: u32,
    /// The chunk: in odd ones who sends and who vouches change places.
    pub chunk: u32,
    /// Whether messages have MACs. Without them a party that sends something else is not found.
    pub checks: bool,
}

/// Four nodes, each a party of replicated sharing, and their hosts.
///
/// Memory of each: two beats that differ; columns, of which component c of value v, in the party's order, is at [`Quartet::column`]; three columns
/// of shares that are not complete; and what each other node may write: two messages, then their MACs. Columns are
/// of whole beats: what is behind a value's words is multiplied like them, and MACs are of it too.
pub struct Quartet {
    /// The network.
    pub network: Network,
    /// The nodes, in the order of the parties.
    pub nodes: [Node; 4],
    words: u32,
    /// Words of a column: those of a value, up to a whole beat.
    stride: u32,
    /// Words of a beat.
    lanes: u32,
    values: u32,
    /// Most words of a command's column.
    step: u32,
    windows: Windows,
    tag: u32,
    counter: u64,
    /// Layers so far, each piece for itself.
    number: u64,
    /// Circuits so far: each is a chunk.
    chunk: u32,
}

impl Quartet {
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
        let shape = Shape {
            nodes: 4,
            four: true,
            bytes: (shape.bytes).max(16 * u64::from(all_words(values, words, LANES))),
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
        let nodes = [open(0)?, open(1)?, open(2)?, open(3)?];
        let lanes = nodes[0].limits().lanes;
        let mut quartet = Quartet {
            step: nodes[0].limits().longest.max(PIECE),
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
            number: 0,
            chunk: 0,
        };
        quartet.windows.own = Window {
            address: 0,
            words: all_words(values, words, lanes),
        };
        quartet.windows.inboxes = [0, 1, 2, 3].map(|from| Window {
            address: quartet.message(from, 0),
            words: inbox(quartet.most(), lanes),
        });
        quartet.set_up(seed)?;
        Ok(quartet)
    }

    /// Windows and keys of all nodes, and the armed command that tells of a failure.
    fn set_up(&mut self, seed: u64) -> Result<(), NodeError> {
        self.set_windows()?;
        for (me, node) in (0..).zip(&mut self.nodes) {
            let next = [1, 2, 3].map(|step| (me + step) % 4);
            let components = next.map(|component| component_key(seed, component));
            let pairs = next.map(|other| code_key(seed, [me, other]));
            node.four_keys(me, &components, &pairs)?;
            parties::meet(node, me, 4, seed)?;
        }
        Ok(())
    }

    fn set_windows(&mut self) -> Result<(), NodeError> {
        self.windows.set(&mut self.nodes, |_, _| true)
    }

    /// Most words of a layer's column.
    fn most(&self) -> u32 {
        self.values * self.stride
    }

    /// What a node's own commands use: all of it.
    pub fn window(&self) -> Window {
        self.windows.own
    }

    /// Where component `component` of a value begins, in the order of the party: that which the next one lacks first.
    pub fn column(&self, component: u8, value: u32) -> u64 {
        let place = u64::from(component) * u64::from(self.values) + u64::from(value);
        16 * (2 * u64::from(self.lanes) + place * u64::from(self.stride))
    }

    /// Where component `component` of shares that are not complete begins.
    pub fn left(&self, component: u8) -> u64 {
        self.column(PARTS, 0) + 16 * u64::from(component) * u64::from(self.most())
    }

    /// Where node `from` writes message number `k` of those that another one gets.
    pub fn message(&self, from: u8, k: u32) -> u64 {
        let words = u64::from(from) * u64::from(inbox(self.most(), self.lanes));
        self.left(PARTS) + 16 * (words + u64::from(k) * u64::from(self.most()))
    }

    /// Where it writes the MAC of piece `piece` of that message.
    pub fn mac(&self, from: u8, k: u32, piece: u32) -> u64 {
        let places = self.most().div_ceil(PIECE);
        self.message(from, MOST) + 16 * u64::from((k * places + piece) * self.lanes)
    }

    /// Words of a value.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Words of a column: those of a value, up to a whole beat.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Writes a value at all nodes: the component that each party lacks, in the order of the parties.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the nodes have no room for so many values.
    pub fn share(&mut self, value: u32, components: [&[u8]; 4]) -> Result<(), NodeError> {
        for me in 0..4 {
            for component in others(me) {
                let at = self.column(part(me, component), value);
                self.nodes[usize::from(me)].store(at, components[usize::from(component)])?;
            }
        }
        Ok(())
    }

    /// The component of a value that party `component` lacks, as another one has it.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the nodes have no room for so many values.
    pub fn component(&mut self, me: u8, component: u8, value: u32) -> Result<Vec<u8>, NodeError> {
        let mut bytes = vec![0; 16 * self.words as usize];
        let at = self.column(part(me, component), value);
        self.nodes[usize::from(me)].load(at, &mut bytes)?;
        Ok(bytes)
    }

    /// The commands of both stages at a node, with tags from `tag` on.
    fn commands(&self, me: u8, of: &Products, tag: u32) -> [Vec<Command>; 2] {
        let pieces = self.pieces(of);
        let [mut locals, mut joins] = [Vec::new(), Vec::new()];
        for k in 0..pieces {
            let first = k * self.step;
            let offset = 16 * u64::from(first);
            let at = |value| [0, 1, 2].map(|part| self.column(part, value) + offset);
            let each = |of: &dyn Fn(u8, u32) -> u64| {
                [0, 1, 2, 3].map(|from| [0, 1].map(|place| of(from, place)))
            };
            let [a, b, out] = of.values;
            let piece = Piece {
                ring: of.ring,
                sums: false,
                lane: 0,
                words: self.step.min(of.count * self.stride - first),
                lanes: self.lanes,
                counter: self.counter + u64::from(first),
                number: self.number + u64::from(k),
                chunk: of.chunk,
                checks: of.checks,
                from: [at(a), at(b)],
                left: [0, 1, 2].map(|part| self.left(part) + offset),
                out: at(out),
                message: each(&|from, place| self.message(from, place) + offset),
                mac: each(&|from, place| self.mac(from, place, k)),
            };
            locals.push(piece.local(me, tag + k));
            joins.push(piece.join(me, tag + pieces + k));
        }
        [locals, joins]
    }

    fn pieces(&self, of: &Products) -> u32 {
        (of.count * self.stride).div_ceil(self.step)
    }

    /// The next layer: the commands of both stages at each node. What they draw is used, whatever becomes of them.
    pub fn stages(&mut self, of: &Products) -> [[Vec<Command>; 2]; 4] {
        let commands = [0, 1, 2, 3].map(|me| self.commands(me, of, self.tag));
        self.tag += 2 * self.pieces(of);
        self.counter += u64::from(of.count * self.stride);
        self.number += u64::from(self.pieces(of));
        commands
    }

    /// Arms the commands of all nodes but 0 for layers that are started one after the other. Says for each stage which slots they are in, and
    /// the commands of node 0.
    ///
    /// # Panics
    /// If there are not the slots.
    pub fn arm(&mut self, layers: &[Products]) -> Vec<[Armed; 2]> {
        let mut slot = 0;
        let arm = |layer| {
            let stages = self.stages(layer);
            self.armed(stages, &mut slot)
        };
        layers.iter().map(arm).collect()
    }

    /// Arms the commands of a layer, in slots from `slot` on.
    ///
    /// # Panics
    /// If there are not the slots.
    pub fn armed(&mut self, stages: [[Vec<Command>; 2]; 4], slot: &mut u8) -> [Armed; 2] {
        let [mut own, others @ ..] = stages;
        [0, 1].map(|stage| {
            let mut slots = Vec::new();
            let own = std::mem::take(&mut own[stage]);
            for (me, commands) in (1..).zip(&others) {
                for (k, command) in (*slot..).zip(&commands[stage]) {
                    assert!(k < ABORT, "a slot for each command");
                    self.nodes[usize::from(me)].arm(k, command);
                    slots.push((me, k));
                }
            }
            *slot += own.len() as u8;
            let stage = Armed {
                slots,
                own,
                tag: self.tag,
            };
            self.tag += stage.tags();
            stage
        })
    }

    /// The host of node 0 runs what was armed. Of a layer that is the first stage at all nodes; when it has ended everywhere, all messages and MACs
    /// lie at their receivers, and the second begins.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn start(&mut self, armed: &[Armed]) -> Result<(), NodeError> {
        let node = &mut self.nodes[0];
        armed.iter().try_for_each(|stage| stage.start(node))
    }

    /// A layer, from its beginning to its end.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`], of the first node that fails.
    pub fn products(&mut self, start: Start, of: &Products) -> Result<(), NodeError> {
        if start == Start::Headless {
            let armed = self.arm(&[*of]);
            return self.start(&armed[0]);
        }
        let stages = self.stages(of);
        for stage in 0..2 {
            let ended = self.stage(&stages.each_ref().map(|of| &of[stage][..]));
            ended.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    /// All hosts queue the commands of a stage, and wait for them.
    pub fn stage(&mut self, commands: &[&[Command]; 4]) -> [Result<(), NodeError>; 4] {
        for (node, commands) in self.nodes.iter_mut().zip(commands) {
            commands.iter().for_each(|command| node.submit(command));
        }
        [0, 1, 2, 3].map(|me| {
            let tags: Vec<u32> = commands[me].iter().map(|of| of.tag).collect();
            self.nodes[me].finish("a layer", &tags)
        })
    }

    /// As [`super::Trio::tell`].
    ///
    /// # Errors
    /// As [`super::Trio::tell`].
    pub fn tell(&mut self, me: u8) -> Result<(), NodeError> {
        self.tag += 3;
        let node = &mut self.nodes[usize::from(me)];
        parties::tell(node, self.tag - 3, others(me))
    }

    /// The same nodes with the keys of another seed, after [`Quartet::abort`]: counters of packets and draws begin again.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::set_up`] and [`Node::link_key`].
    pub fn renewed(mut self, seed: u64, timeout: u32) -> Result<Self, NodeError> {
        (self.counter, self.number, self.chunk) = (0, 0, 0);
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
        let mut nodes = self.nodes.iter_mut();
        nodes.try_for_each(|node| node.abort(window))
    }
}

impl Hosts for Quartet {
    fn parties(&self) -> Parties {
        // What a party has does not depend on MACs.
        Parties::Four { checks: true }
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
        counters.masks.chunk = self.chunk;
        counters.layer = self.number;
        self.counter += plan.words();
        self.number += plan.layers();
        self.chunk += 1;
        counters
    }
}

/// Words that a node may write at another one, for layers of so many.
const fn inbox(most: u32, lanes: u32) -> u32 {
    MOST * (most + lanes * most.div_ceil(PIECE))
}

/// Words of a memory.
fn all_words(values: u32, words: u32, lanes: u32) -> u32 {
    let most = values * words.next_multiple_of(lanes);
    2 * lanes + 2 * u32::from(PARTS) * most + 4 * inbox(most, lanes)
}

fn others(me: u8) -> impl Iterator<Item = u8> {
    (0..4).filter(move |other| *other != me)
}

/// The key of the component that a party lacks, of the nodes of a seed.
pub fn component_key(seed: u64, component: u8) -> Secret {
    key(seed, 32 + u64::from(component))
}

/// The key of MACs of two parties, of the nodes of a seed.
pub fn code_key(seed: u64, pair: [u8; 2]) -> Secret {
    let [a, b] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
    key(seed, 36 + 4 * u64::from(a) + u64::from(b))
}
