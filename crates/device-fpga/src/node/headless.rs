//! Circuits of a run at the nodes of its parties: hosts put inputs and lists into the memories of their nodes, the host of node 0 starts all lists,
//! and hosts read outputs when these have ended.
//!
//! One circuit goes on at a time, since nodes count what others tell them of, and do not say what it is of. It is one that all parties have come to,
//! and of several the first by name, so that it does not matter in which order parties come to them. Before a list is armed its node has to be idle,
//! and takes no other command until all have begun; then messages and products of other lanes go on beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::carrier::{self, Inner, User};
use super::circuit::{Graph, Parties, Plan, PrfCounters, Site};
use super::measure::Accesses;
use super::work::{Components, Differs, Keys, Name, changed, keyed};
use super::{Command, Completion, Event, Failure, Limits, MOST_NODES, NodeError, four};

/// Bytes of columns and lists at a node.
pub(super) const OWN: u64 = 1 << 24;
/// Bytes that another node may write of them.
pub(super) const SENT: u64 = 1 << 22;
/// Bit of a tag: it is of a list.
const OF_LIST: u32 = 1 << 30;
/// That of the invocation of lists.
const INVOCATION: u32 = OF_LIST | 1;
/// A further bit: it is of a command in a list, whose number is below.
const IN_LIST: u32 = 1 << 29;
/// A further bit: it is of a question, which of the messages of a join is wrong.
const ASKS: u32 = 1 << 28;
/// Slot of lists.
const SLOT: u8 = 0;
/// Looks at a node after its list was armed, so that it has come to its slot.
const ARMING: u8 = 2;
/// Plans that are kept.
const PLANS: usize = 16;
/// Cycles that the longest wave takes at most, beside its words.
const WAVE: u64 = 1 << 14;
/// Cycles for each word of a command, at most.
const WORD_CYCLES: u64 = 16;

/// A circuit of a run, as one of its parties comes to it.
pub(crate) struct Task {
    /// By its first round.
    pub(crate) name: Name,
    pub(crate) plan: Arc<Plan>,
    /// Rounds of the run that it is.
    pub(crate) rounds: u64,
    /// Components of its inputs: bytes of all rows.
    pub(crate) inputs: Vec<Components>,
    /// What its first product draws.
    pub(crate) counters: PrfCounters,
    pub(crate) keys: Arc<Keys>,
}

/// Circuits that nodes have computed without their hosts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Headless {
    /// How many.
    pub circuits: u64,
    /// Rounds of the run that they were.
    pub rounds: u64,
    /// Cycles from the first command of each until all its lists had ended.
    pub cycles: u64,
    /// What the host of each node did in that time, for whatever reason.
    pub hosts: [Accesses; MOST_NODES as usize],
}

/// A plan that was made, and of what; none if memory has no room.
struct Made {
    graph: Arc<Graph>,
    of: (Parties, u32),
    plan: Option<Arc<Plan>>,
}

/// How far a circuit is.
enum Stage {
    /// Nodes become idle, and get keys and lists: those that have are armed. So often was looked at all of them since.
    Arming {
        armed: [bool; MOST_NODES as usize],
        looks: u8,
    },
    /// So many completions are missing.
    Runs { left: u8 },
}

/// A circuit that all parties have come to.
struct Running {
    tasks: Vec<Task>,
    stage: Stage,
    /// What runs the list of node 0.
    own: Option<Command>,
    /// When it began, and what hosts had done by then.
    begin: u64,
    before: Vec<Accesses>,
}

/// The circuits of a run.
#[derive(Default)]
pub(super) struct Circuits {
    /// Whether nodes compute any.
    pub(super) wanted: bool,
    waiting: [BTreeMap<Name, Task>; MOST_NODES as usize],
    running: Option<Running>,
    made: [BTreeMap<Name, Result<Vec<Components>, Differs>>; MOST_NODES as usize],
    plans: Vec<Made>,
    /// What lies in the memory of each node.
    there: [Option<Arc<Plan>>; MOST_NODES as usize],
    /// Cycles after which an answer is missing, at each node.
    timeouts: [u32; MOST_NODES as usize],
    pub(super) done: Headless,
}

impl Circuits {
    /// Whether a party waits for a circuit.
    pub(super) fn works(&self, me: u8) -> bool {
        let running = self.running.is_some();
        running || !self.waiting[usize::from(me)].is_empty()
    }

    /// Whether time has to go on.
    pub(super) fn goes_on(&self) -> bool {
        self.running.is_some()
    }

    /// Whether a node is to be left alone until all lists have begun.
    pub(super) fn holds(&self) -> bool {
        let stage = self.running.as_ref().map(|running| &running.stage);
        matches!(stage, Some(Stage::Arming { .. }))
    }

    /// The first circuit that all of so many parties have come to.
    fn next(&mut self, parties: usize) -> Option<Vec<Task>> {
        let (first, others) = self.waiting[..parties].split_first()?;
        let all = |name: &&Name| others.iter().all(|of| of.contains_key(name));
        let name = *first.keys().find(all)?;
        let waiting = self.waiting[..parties].iter_mut();
        waiting.map(|of| of.remove(&name)).collect()
    }
}

/// Whether a completion is of a list.
pub(super) fn is_of_list(completion: Completion) -> bool {
    !matches!(completion.event, Event::Arrived(_) | Event::Packet(_))
        && completion.tag & OF_LIST != 0
}

/// Bytes of columns and list of a plan.
fn bytes(plan: &Plan) -> u64 {
    let list = plan.list_at();
    list.address + 16 * u64::from(list.words) - carrier::columns()
}

/// Cycles that a plan takes at most.
fn patience(plan: &Plan, limits: Limits) -> u32 {
    let [products, sums] = plan.waves();
    let waves = (products + sums) as u64 * WAVE;
    let words = plan.work() as u64 * u64::from(limits.longest) * WORD_CYCLES;
    u32::try_from(waves + words).unwrap_or(u32::MAX)
}

impl User {
    /// What units of the nodes have.
    pub(crate) fn limits(&self) -> Limits {
        let all = self.all();
        all.nodes[usize::from(self.me())].limits()
    }

    /// Whether nodes compute circuits without their hosts.
    pub(crate) fn is_headless(&self) -> bool {
        self.all().circuits.wanted
    }

    /// The lists of a circuit, if there is memory for them. All parties make the same of it. `checks`: messages of four parties have MACs.
    pub(crate) fn plan(&self, graph: &Arc<Graph>, rows: u32, checks: bool) -> Option<Arc<Plan>> {
        self.all().plan(graph, rows, checks)
    }

    /// Takes a circuit.
    pub(crate) fn compute(&self, task: Task) {
        let mut all = self.all();
        let waiting = &mut all.circuits.waiting[usize::from(self.me())];
        waiting.insert(task.name, task);
    }

    /// The components of a circuit's outputs, once they are there, or which message of it differs.
    pub(crate) fn outputs(&self, name: &Name) -> Option<Result<Vec<Components>, Differs>> {
        self.all().circuits.made[usize::from(self.me())].remove(name)
    }
}

impl Inner {
    fn plan(&mut self, graph: &Arc<Graph>, rows: u32, checks: bool) -> Option<Arc<Plan>> {
        let parties = match self.nodes.len() {
            3 => Parties::Three,
            _ => Parties::Four { checks },
        };
        let of = (parties, rows);
        let plans = &mut self.circuits.plans;
        let same = |made: &&Made| {
            made.of == of && (Arc::ptr_eq(&made.graph, graph) || made.graph == *graph)
        };
        if let Some(made) = plans.iter().find(same) {
            return made.plan.clone();
        }
        let limits = self.nodes[0].limits();
        let site = Site {
            inboxes: Some([0, 1, 2, 3].map(carrier::arriving)),
            ..Site::new(parties, carrier::columns())
        };
        let plan = Plan::of(graph, rows, limits, site).ok().filter(|plan| {
            let fits = |from| 16 * u64::from(plan.inbox(from).words) <= SENT;
            bytes(plan) <= OWN && (0..MOST_NODES).all(fits)
        });
        let plan = plan.map(Arc::new);
        if plans.len() == PLANS {
            plans.remove(0);
        }
        plans.push(Made {
            graph: Arc::clone(graph),
            of,
            plan: plan.clone(),
        });
        plan
    }

    /// Lets circuits go on. Whether one did.
    pub(super) fn circuits(&mut self) -> Result<bool, (u8, NodeError)> {
        if self.circuits.running.is_none() {
            let Some(tasks) = self.circuits.next(self.nodes.len()) else {
                return Ok(false);
            };
            self.circuits.running = Some(Running {
                tasks,
                stage: Stage::Arming {
                    armed: [false; MOST_NODES as usize],
                    looks: 0,
                },
                own: None,
                begin: 0,
                before: Vec::new(),
            });
        }
        let Some(mut running) = self.circuits.running.take() else {
            return Ok(false);
        };
        let moved = self.go_on(&mut running);
        self.circuits.running = Some(running);
        moved
    }

    fn go_on(&mut self, running: &mut Running) -> Result<bool, (u8, NodeError)> {
        let Stage::Arming { armed, looks } = &mut running.stage else {
            return Ok(false);
        };
        for (me, (armed, task)) in (0..).zip(armed.iter_mut().zip(&running.tasks)) {
            if !*armed {
                let list = self.arm(me, task).map_err(|error| (me, error))?;
                *armed = list.is_some();
                *looks = 0;
                if me == 0 {
                    running.own = list;
                }
            }
        }
        let mut idle = armed[..running.tasks.len()].iter().all(|armed| *armed);
        for (me, node) in (0..).zip(&mut self.nodes) {
            idle = idle && !node.is_busy().map_err(|error| (me, error))?;
        }
        if !idle {
            return Ok(false);
        }
        *looks += 1;
        if *looks < ARMING {
            return Ok(false);
        }
        running.before = self.nodes.iter().map(super::Node::accesses).collect();
        running.begin = self.cycle();
        let others = 1..self.nodes.len() as u8;
        let slots: Vec<_> = others.map(|other| (other, SLOT)).collect();
        // Its own list, the invocation, and an end at each other node.
        running.stage = Stage::Runs {
            left: 2 + slots.len() as u8,
        };
        let node = &mut self.nodes[0];
        node.invoke(INVOCATION, &slots);
        running.own.iter().for_each(|list| node.submit(list));
        Ok(true)
    }

    /// Gives an idle node keys, inputs and its list: the command that runs it, if it was idle.
    fn arm(&mut self, me: u8, task: &Task) -> Result<Option<Command>, NodeError> {
        let at = usize::from(me);
        let (node, station) = (&mut self.nodes[at], &mut self.stations[at]);
        if !keyed(node, me, &mut station.keys, &task.keys)? {
            return Ok(None);
        }
        let timeout = patience(&task.plan, node.limits());
        if self.circuits.timeouts[at] < timeout {
            match node.set_timeout(timeout) {
                Err(NodeError::Register { .. }) => return Ok(None),
                set => set?,
            }
            self.circuits.timeouts[at] = timeout;
        }
        let plan = &task.plan;
        self.circuits.there[at] = Some(Arc::clone(plan));
        plan.put_constants(node)?;
        for (columns, parts) in plan.inputs().iter().zip(&task.inputs) {
            for (address, bytes) in columns.iter().zip(parts) {
                node.store(*address, bytes)?;
            }
        }
        let list = plan.put_list(node, me, task.counters, [OF_LIST | IN_LIST, OF_LIST])?;
        if me > 0 {
            node.arm(SLOT, &list);
        }
        Ok(Some(list))
    }

    /// A list has ended, or the invocation of lists, or something in one that failed, or what was asked then.
    pub(super) fn list_ended(
        &mut self,
        me: u8,
        completion: Completion,
    ) -> Result<(), (u8, NodeError)> {
        let (tag, result) = (completion.tag, completion.result);
        if tag & ASKS != 0 {
            return self.answered(me, tag, result);
        }
        // Of four parties: the join that found it is asked about, and lists end with it.
        if self.nodes.len() == 4 && result == Err(Failure::Mismatch) {
            return if tag & IN_LIST != 0 {
                self.ask_of_join(me, tag & !(OF_LIST | IN_LIST), 0)
            } else {
                Ok(())
            };
        }
        let what = "a circuit";
        result.map_err(|failure| (me, NodeError::Failed { what, failure }))?;
        let Some(running) = &mut self.circuits.running else {
            return Ok(());
        };
        if let Stage::Runs { left } = &mut running.stage {
            *left = left.saturating_sub(1);
            if *left > 0 {
                return Ok(());
            }
        }
        let Some(running) = self.circuits.running.take() else {
            return Ok(());
        };
        self.count(&running);
        for (me, task) in (0..).zip(running.tasks) {
            let outputs = self.outputs_of(me, &task.plan);
            let outputs = outputs.map_err(|error| (me, error))?;
            self.circuits.made[usize::from(me)].insert(task.name, Ok(outputs));
            self.clear(me).map_err(|error| (me, error))?;
        }
        Ok(())
    }

    /// Compares one message of those of a join with its MAC alone.
    fn ask_of_join(&mut self, me: u8, join: u32, message: u32) -> Result<(), (u8, NodeError)> {
        let task = self.circuits.running.as_ref();
        let task = task.and_then(|running| running.tasks.get(usize::from(me)));
        let question = task.and_then(|task| {
            let (number, message) = (join as usize, message as usize);
            task.plan.only(me, task.counters, number, message)
        });
        let what = "a circuit";
        let failure = Failure::Mismatch;
        let mut question = question.ok_or((me, NodeError::Failed { what, failure }))?;
        question.tag = OF_LIST | ASKS | message << 24 | join;
        self.nodes[usize::from(me)].submit(&question);
        Ok(())
    }

    fn answered(
        &mut self,
        me: u8,
        tag: u32,
        result: Result<(), Failure>,
    ) -> Result<(), (u8, NodeError)> {
        let (message, join) = (tag >> 24 & 3, tag & 0xff_ffff);
        let last = message as usize + 1 == four::received(me).len();
        match result {
            Err(Failure::Mismatch) => {}
            Ok(()) if !last => return self.ask_of_join(me, join, message + 1),
            Ok(()) => return Err((me, changed())),
            Err(failure) => {
                let what = "a circuit";
                return Err((me, NodeError::Failed { what, failure }));
            }
        }
        if let Some(running) = &self.circuits.running {
            let (at, differs) = (usize::from(me), Differs(message as usize));
            let name = running.tasks[at].name;
            let made = self.circuits.made[at].entry(name);
            made.or_insert(Err(differs));
        }
        Ok(())
    }

    fn count(&mut self, running: &Running) {
        let cycles = self.cycle() - running.begin;
        let done = &mut self.circuits.done;
        done.circuits += 1;
        done.rounds += running.tasks[0].rounds;
        done.cycles += cycles;
        let nodes = self.nodes.iter().zip(&running.before);
        for (all, (node, before)) in done.hosts.iter_mut().zip(nodes) {
            *all += node.accesses().since(*before);
        }
    }

    fn outputs_of(&mut self, me: u8, plan: &Plan) -> Result<Vec<Components>, NodeError> {
        let outputs = plan.outputs(me).into_iter();
        let mut load = |address| self.load(me, address, plan.stride());
        outputs
            .map(|columns| columns.into_iter().map(&mut load).collect())
            .collect()
    }

    /// Writes zeros over what a circuit has of a node's memory.
    fn clear(&mut self, me: u8) -> Result<(), NodeError> {
        let node = &mut self.nodes[usize::from(me)];
        let Some(plan) = self.circuits.there[usize::from(me)].take() else {
            return Ok(());
        };
        let own = bytes(&plan);
        node.store(carrier::columns(), &vec![0; own as usize])?;
        for from in (0..MOST_NODES).filter(|from| *from != me) {
            let inbox = plan.inbox(from);
            node.store(inbox.address, &vec![0; 16 * inbox.words as usize])?;
        }
        Ok(())
    }

    /// Forgets the circuits of a party. One that goes on ends there: the node takes nothing from others any more.
    pub(super) fn forget_circuits(&mut self, me: u8) -> Result<(), NodeError> {
        let at = usize::from(me);
        let circuits = &mut self.circuits;
        circuits.waiting[at].clear();
        circuits.made[at].clear();
        circuits.running = None;
        if circuits.there[at].is_some() {
            self.nodes[at].scrub()?;
        }
        self.clear(me)
    }
}
