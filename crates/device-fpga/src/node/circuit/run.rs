//! How the nodes of a network run a circuit: their memory, their lists, and who starts these.

use veil_circuit::Circuit;

use super::super::parties::Hosts;
use super::super::{Armed, Command, NodeError, Quartet, Start, Trio, Window};
use super::{Parties, Plan, Site, Unfit, WORD};

/// Slot of the list at nodes that others start.
const SLOT: u8 = 0;

/// Whole circuits at the nodes of a [`Trio`] or a [`Quartet`].
pub trait Circuits {
    /// Writes the components of an input wire, which lie at `at`, at all nodes: `components[c]` is component c, of three parties that of party c,
    /// of four the one that party c lacks.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if an address is not in a node's memory.
    fn put_in(&mut self, at: &[u64], components: &[&[u8]]) -> Result<(), NodeError>;

    /// Leaves the list of a circuit in the memory of each node, and arms it at all but node 0, whose host then starts it. What it draws is used,
    /// whatever becomes of it.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the list does not lie in a node's memory.
    fn arm_circuit(&mut self, plan: &Plan) -> Result<Armed, NodeError>;

    /// Runs a circuit whose inputs are there. They are there once: columns are used again.
    ///
    /// # Errors
    /// As of [`Circuits::arm_circuit`]; [`NodeError::Failed`], [`NodeError::Silent`] and [`NodeError::Completion`] if a node does
    /// not run the circuit to its end.
    fn circuit(&mut self, start: Start, plan: &Plan) -> Result<(), NodeError>;
}

impl<T: Hosts> Circuits for T {
    fn put_in(&mut self, at: &[u64], components: &[&[u8]]) -> Result<(), NodeError> {
        let parties = self.parties();
        for (me, node) in (0..).zip(self.nodes()) {
            for (part, address) in (0..).zip(at) {
                let component = parties.component(me, part);
                node.store(*address, components[usize::from(component)])?;
            }
        }
        Ok(())
    }

    fn arm_circuit(&mut self, plan: &Plan) -> Result<Armed, NodeError> {
        let mut lists = lists(self, plan)?.into_iter();
        let own = lists.next().into_iter().collect();
        let mut slots = Vec::new();
        let nodes = (0..).zip(self.nodes()).skip(1);
        for ((me, node), list) in nodes.zip(lists) {
            node.arm(SLOT, &list);
            slots.push((me, SLOT));
        }
        let mut armed = Armed { slots, own, tag: 0 };
        armed.tag = self.use_tags(armed.tags());
        Ok(armed)
    }

    fn circuit(&mut self, start: Start, plan: &Plan) -> Result<(), NodeError> {
        if start == Start::Headless {
            let armed = self.arm_circuit(plan)?;
            return armed.start(&mut self.nodes()[0]);
        }
        let lists = lists(self, plan)?;
        for (node, list) in self.nodes().iter_mut().zip(&lists) {
            node.submit(list);
        }
        let mut ends = self.nodes().iter_mut().zip(&lists);
        ends.try_for_each(|(node, list)| node.finish("a circuit", &[list.tag]))
    }
}

/// Writes the list of each node, and makes the command that runs it.
fn lists(hosts: &mut impl Hosts, plan: &Plan) -> Result<Vec<Command>, NodeError> {
    let (tag, counters) = (hosts.use_tags(1), hosts.take_counters(plan));
    let lists = (0..).zip(hosts.nodes());
    let lists = lists.map(|(me, node)| plan.put_list(node, me, counters, [0, tag]));
    lists.collect()
}

/// The memory of all nodes is a circuit's alone from now on, and has its constants. What lay there as values is lost.
fn take(hosts: &mut impl Hosts, plan: &Plan) -> Result<(), NodeError> {
    let list = plan.list_at();
    let all = Window {
        address: 0,
        words: (list.address / WORD) as u32 + list.words,
    };
    hosts.use_windows(all, [0, 1, 2, 3].map(|from| plan.inbox(from)))?;
    let mut nodes = hosts.nodes().iter_mut();
    nodes.try_for_each(|node| plan.put_constants(node))
}

/// A plan behind the two beats that begin each memory, which is its alone from now on.
fn planned(
    hosts: &mut impl Hosts,
    parties: Parties,
    circuit: &Circuit,
    rows: u32,
) -> Result<Result<Plan, NodeError>, Unfit> {
    let limits = hosts.nodes()[0].limits();
    let base = 2 * WORD * u64::from(limits.lanes);
    let plan = Plan::new(circuit, rows, limits, Site::new(parties, base))?;
    Ok(take(hosts, &plan).map(|()| plan))
}

impl Trio {
    /// A circuit for these nodes: their memory is its alone from now on, and has its constants. What lay there as values is lost.
    ///
    /// # Errors
    /// [`Unfit`] as of [`Plan::new`]. The inner [`NodeError`] is that of a node that does not take its windows or constants.
    pub fn plan(&mut self, circuit: &Circuit, rows: u32) -> Result<Result<Plan, NodeError>, Unfit> {
        planned(self, Parties::Three, circuit, rows)
    }
}

impl Quartet {
    /// The same for four nodes, whose messages have MACs or not.
    ///
    /// # Errors
    /// As of [`Trio::plan`].
    pub fn plan(
        &mut self,
        circuit: &Circuit,
        rows: u32,
        checks: bool,
    ) -> Result<Result<Plan, NodeError>, Unfit> {
        planned(self, Parties::Four { checks }, circuit, rows)
    }
}
