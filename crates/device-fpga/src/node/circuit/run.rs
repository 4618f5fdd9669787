//! The list of each of three nodes, and how it is run.

use veil_circuit::Circuit;
use veil_math::Ring;
use veil_prss::Use;

use super::super::trio::{next, previous};
use super::super::{
    Armed, COUNTED, Command, List, NodeError, Op, Segment, Start, Trio, Tuple, Window,
};
use super::pack::Packed;
use super::{Plan, Unfit, WORD};

/// Slot of the list at nodes that others start.
const SLOT: u8 = 0;
/// Messages that an await counts at most.
const MOST_TELLS: usize = u16::MAX as usize;

/// What the first word of the first circuit of a [`Trio`] draws.
const FIRST: Tuple = Tuple {
    tag: Use::AND3,
    lane: 0,
    counter: 0,
    chunk: 0,
};

impl Plan {
    /// What a party does, whose products draw from `draw` on: commands in their order, and whether each begins when all before it have ended.
    pub fn commands(&self, me: u8, draw: Tuple) -> Vec<(Command, bool)> {
        let mut all = Vec::new();
        for round in &self.rounds {
            let begin = all.len();
            for of in &round.products {
                let first = Tuple {
                    counter: draw.counter + round.before + u64::from(of.first),
                    ..draw
                };
                all.push((self.product(me, of, first), false));
            }
            all.extend(round.sums.iter().map(|of| (self.sum(me, of), false)));
            all[begin].1 = true;
            for some in round.products.chunks(MOST_TELLS) {
                let tells = [(previous(me), some.len() as u16)];
                all.push((Command::awaits(0, &tells), false));
            }
        }
        all
    }

    /// The list of a party. Tags of its commands are numbers from `tag` on.
    pub(crate) fn list(&self, me: u8, draw: Tuple, tag: u32) -> List {
        let mut list = List::new();
        for (tag, (mut command, after)) in (tag..).zip(self.commands(me, draw)) {
            // If it fails its completion says which it is.
            command.tag = tag;
            list.push(&command, after);
        }
        list
    }

    /// Where it lies: behind all columns, and behind what the party before writes, if that lies behind them.
    pub(crate) fn list_at(&self, lanes: u32) -> Window {
        Window {
            address: self.end(),
            words: self.list(0, FIRST, 0).words(lanes),
        }
    }

    /// Bytes that it takes of a node's memory, with its list, but for what others write elsewhere.
    pub(crate) fn bytes(&self, lanes: u32) -> u64 {
        let list = self.list_at(lanes);
        list.address + WORD * u64::from(list.words) - self.constants.address
    }

    /// Segments of streams at a node, where what is addressed as of another one was sent by that one.
    fn segments<'a>(
        &'a self,
        (node, from): (u8, u8),
        streams: &'a [Vec<(u64, u32)>],
    ) -> impl Iterator<Item = Segment> + 'a {
        let all = streams.iter().flatten();
        all.map(move |&(address, words)| Segment::new(node, self.place(address, from), words))
    }

    fn sum(&self, me: u8, of: &Packed) -> Command {
        let own = (me, previous(me));
        let from = self.segments(own, &of.from).collect();
        let to = self.segments(own, &of.to).collect();
        Command::new(Op::Xor, 0, of.words, from, to)
    }

    /// The message leaves before the own copy is written, and the next party counts it once.
    fn product(&self, me: u8, of: &Packed, draw: Tuple) -> Command {
        let own = (me, previous(me));
        let mut to: Vec<Segment> = self.segments((next(me), me), &of.to[..1]).collect();
        if let Some(last) = to.last_mut() {
            last.tell = Some(COUNTED);
        }
        to.extend(self.segments(own, &of.to[1..]));
        Command {
            draw: Some(draw),
            ..Command::new(
                Op::Product(Ring::Bits),
                0,
                of.words,
                self.segments(own, &of.from).collect(),
                to,
            )
        }
    }
}

impl Trio {
    /// A circuit for these nodes: their memory is its alone from now on, and has its constants. What lay there as values is lost.
    pub fn plan(&mut self, circuit: &Circuit, rows: u32) -> Result<Result<Plan, NodeError>, Unfit> {
        let base = 2 * WORD * u64::from(self.lanes());
        let plan = Plan::new(circuit, rows, self.nodes[0].limits(), base)?;
        Ok(self.take(&plan).map(|()| plan))
    }

    fn take(&mut self, plan: &Plan) -> Result<(), NodeError> {
        let list = plan.list_at(self.lanes());
        let all = Window {
            address: 0,
            words: (list.address / WORD) as u32 + list.words,
        };
        self.use_windows(all, plan.inbox(0))?;
        let constants = plan.constants();
        let half = WORD as usize * constants.words as usize / 2;
        let bytes = [vec![0; half], vec![0xff; half]].concat();
        let mut nodes = self.nodes.iter_mut();
        nodes.try_for_each(|node| node.store(constants.address, &bytes))
    }

    /// Writes the components of an input wire, which lies at `at`, at all nodes: `components[i]` is that of party i.
    pub fn put_in(&mut self, at: [u64; 2], components: [&[u8]; 3]) -> Result<(), NodeError> {
        for me in 0..3 {
            for (address, of) in at.into_iter().zip([me, previous(me)]) {
                self.nodes[usize::from(me)].store(address, components[usize::from(of)])?;
            }
        }
        Ok(())
    }

    /// Leaves the list of a circuit in the memory of each node, and arms it at all but node 0: [`Trio::start`] runs it. What it draws is used,
    /// whatever becomes of it.
    pub fn arm_circuit(&mut self, plan: &Plan) -> Result<Armed, NodeError> {
        let own = self.lists(plan)?;
        for (me, list) in (0..).zip(&own).skip(1) {
            self.nodes[me].arm(SLOT, list);
        }
        let [own, ..] = own;
        let armed = Armed {
            slots: vec![(1, SLOT), (2, SLOT)],
            tag: self.tag,
            own: vec![own],
        };
        self.tag += armed.tags();
        Ok(armed)
    }

    /// Runs a circuit whose inputs are there. They are there once: columns are used again.
    pub fn circuit(&mut self, start: Start, plan: &Plan) -> Result<(), NodeError> {
        if start == Start::Headless {
            let armed = self.arm_circuit(plan)?;
            return self.start(&armed);
        }
        let lists = self.lists(plan)?;
        for (node, list) in self.nodes.iter_mut().zip(&lists) {
            node.submit(list);
        }
        let mut ends = self.nodes.iter_mut().zip(&lists);
        ends.try_for_each(|(node, list)| node.finish("a circuit", &[list.tag]))
    }

    /// Writes the list of each node, and makes the command that runs it.
    fn lists(&mut self, plan: &Plan) -> Result<[Command; 3], NodeError> {
        let at = plan.list_at(self.lanes());
        let tag = self.tag;
        let draw = Tuple {
            counter: self.counter,
            ..FIRST
        };
        self.counter += plan.words;
        self.tag += 1;
        for (me, node) in (0..).zip(&mut self.nodes) {
            let list = plan.list(me, draw, 0);
            node.store(at.address, &list.bytes(node.limits().lanes))?;
        }
        let list = |me| Command::list(tag, vec![Segment::new(me, at.address, at.words)]);
        Ok([0, 1, 2].map(list))
    }
}
