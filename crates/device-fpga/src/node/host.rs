//! What the host of a node of three parties does for a layer, as driver, without the node: for measuring what it takes a processor.

use veil_math::Ring;
use veil_prss::DomainTag;

use super::loopback::Loopback;
use super::parties::Armed;
use super::trio::next;
use super::{Command, Layer, Node, NodeError, Tuple};

/// A host whose node ends commands when they are queued ([`Loopback`]).
///
/// It does what it does for a node, and waits for nothing: commands are made and written to their ring, completions read from theirs.
pub struct Host {
    node: Node,
    me: u8,
    layer: Layer,
    tag: u32,
    slot: u8,
}

impl Host {
    /// The host of a party, for layers of so many words of ANDs.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::open`].
    pub fn new(me: u8, words: u32) -> Result<Self, NodeError> {
        let column = |k: u64| 16 * k * u64::from(words);
        let layer = Layer {
            ring: Ring::Bits,
            words,
            from: [[column(0), column(3)], [column(1), column(4)]],
            own: column(2),
            next: (next(me), column(5)),
            tell: None,
            call: Tuple {
                tag: DomainTag::AND3,
                lane: 0,
                counter: 0,
                chunk: 0,
            },
        };
        Ok(Host {
            node: Node::open(Box::new(Loopback::new()))?,
            me,
            layer,
            tag: 1,
            slot: 0,
        })
    }

    /// A layer of its own node, from queueing it to knowing that it has ended.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn run(&mut self) -> Result<(), NodeError> {
        let mut tags = Vec::new();
        for command in self.commands() {
            self.node.submit(&command);
            tags.push(command.tag);
        }
        self.node.finish("a layer", &tags)
    }

    /// Arms a layer, which another host starts.
    ///
    /// # Errors
    /// No error at present: arming gives no completion.
    pub fn arm(&mut self) -> Result<(), NodeError> {
        for command in self.commands() {
            self.node.arm(self.slot, &command);
            self.slot = (self.slot + 1) % 8;
        }
        Ok(())
    }

    /// Starts a layer that was armed at the two other nodes, with its own, until it has ended everywhere.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::finish`].
    pub fn start(&mut self) -> Result<(), NodeError> {
        let own = self.commands();
        let others = [next(self.me), next(next(self.me))];
        let slots = others.iter();
        let slots = slots.flat_map(|&node| (0..).zip(&own).map(move |(slot, _)| (node, slot)));
        let armed = Armed {
            slots: slots.collect(),
            own,
            tag: self.tag,
        };
        self.tag += armed.tags();
        armed.start(&mut self.node)
    }

    fn commands(&mut self) -> Vec<Command> {
        let limits = self.node.limits();
        let commands: Vec<_> = (self.layer.commands(self.me, limits, self.tag)).collect();
        self.tag = self.tag.wrapping_add(commands.len() as u32);
        self.layer.call.counter += u64::from(self.layer.words);
        commands
    }
}
