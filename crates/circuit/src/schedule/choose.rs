//! The best of the schedules that are found.

use super::graph::Graph;
use super::list::{Products, list};
use super::modulo::modulo;
use super::number::{blocked, number, place};
use super::{Machine, NO_NUMBER, Node, Schedule, ScheduleError, total};

/// How many intervals are tried at most, and nodes that are tried so often: of larger circuits fewer intervals are.
const TRIES: u32 = 24;
const TRIED: u32 = 1 << 17;

/// Times, engines and numbers of `nodes`, so that `cycles` netlist cycles are done as early as was found.
///
/// # Errors
/// [`ScheduleError::Machine`] if a figure of `machine` is out of range, [`ScheduleError::TooLarge`] if there are too many nodes,
/// [`ScheduleError::NoNode`] if a node reads one that does not exist, [`ScheduleError::Ring`] if nodes read each other within a
/// netlist cycle.
pub fn schedule(nodes: &[Node], machine: &Machine, cycles: u64) -> Result<Schedule, ScheduleError> {
    let search = Search::new(nodes, machine, cycles, None)?;
    if let Some(best) = search.best(None)? {
        return Ok(best);
    }
    // The buffer is so small that lines find no room even in the order of starts. In that order they can be waited for.
    let starts = list(&search.graph, &search.alone, machine, None)?;
    let interval = starts.iter().max().map_or(1, |last| last + 1);
    let numbers = number(nodes, starts, interval, machine).numbers;
    schedule_numbered(nodes, machine, cycles, &numbers)
}

/// The same where products have their `numbers`, by node: the engine of a product is then its number modulo the engines. Numbers of other
/// nodes do not matter.
///
/// # Errors
/// As of [`schedule`]; [`ScheduleError::Numbers`] if `numbers` does not number the products from 0, each once; [`ScheduleError::Order`] if
/// a product depends on one of so much larger a number that the buffer has no room for the latter's table first.
pub fn schedule_numbered(
    nodes: &[Node],
    machine: &Machine,
    cycles: u64,
    numbers: &[u32],
) -> Result<Schedule, ScheduleError> {
    let numbers = numbered(nodes, numbers)?;
    let search = Search::new(nodes, machine, cycles, Some(&numbers))?;
    let in_order = list(
        &search.graph,
        &search.alone,
        machine,
        Some((&numbers, Products::InOrder)),
    )?;
    let in_order = search.apart(in_order);
    match search.best(in_order)? {
        Some(best) => Ok(best),
        None => {
            unreachable!("products that start in order find room if netlist cycles are far apart")
        }
    }
}

/// Numbers of products, checked, and [`NO_NUMBER`] elsewhere.
fn numbered(nodes: &[Node], numbers: &[u32]) -> Result<Vec<u32>, ScheduleError> {
    let products = nodes.iter().filter(|node| node.product).count();
    let mut seen = vec![false; products];
    let mut own = vec![NO_NUMBER; nodes.len()];
    for (node, _) in nodes.iter().enumerate().filter(|(_, node)| node.product) {
        let number = numbers.get(node).copied().unwrap_or(NO_NUMBER);
        match seen.get_mut(number as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => {
                return Err(ScheduleError::Numbers {
                    node: node as u32,
                    number,
                    products: products as u32,
                });
            }
        }
        own[node] = number;
    }
    Ok(own)
}

struct Search<'a> {
    graph: Graph<'a>,
    machine: &'a Machine,
    cycles: u64,
    numbers: Option<&'a [u32]>,
    /// Rows that products must have.
    fixed: Option<Vec<Option<u32>>>,
    /// No interval is smaller.
    least: u32,
    /// Heights at that interval, and heights of a netlist cycle alone.
    heights: Vec<i64>,
    alone: Vec<i64>,
    /// No span is smaller.
    shortest: u32,
}

impl<'a> Search<'a> {
    fn new(
        nodes: &'a [Node],
        machine: &'a Machine,
        cycles: u64,
        numbers: Option<&'a [u32]>,
    ) -> Result<Self, ScheduleError> {
        let graph = Graph::new(nodes, machine)?;
        let share = (nodes.len() as u32).div_ceil(machine.engines);
        let (least, heights) = graph.recurrence(share.max(machine.least).max(1));
        let alone = graph.heights_alone();
        let path = alone.iter().max().map_or(0, |&height| height as u32 + 1);
        let shortest = share.max(path);
        let engine = |&number: &u32| (number != NO_NUMBER).then_some(number % machine.engines);
        Ok(Search {
            graph,
            machine,
            cycles,
            numbers,
            fixed: numbers.map(|numbers| numbers.iter().map(engine).collect()),
            least: least.max(shortest.div_ceil(machine.stages)),
            heights,
            alone,
            shortest,
        })
    }

    /// The best that is found; `None` if buffers hold none of them.
    fn best(&self, mut best: Option<Schedule>) -> Result<Option<Schedule>, ScheduleError> {
        let free = self.numbers.map(|numbers| (numbers, Products::Free));
        for heights in [&self.alone, &self.heights] {
            let starts = list(&self.graph, heights, self.machine, free)?;
            self.better(&mut best, self.apart(starts));
        }
        self.overlapped(&mut best);
        Ok(best)
    }

    fn total(&self, schedule: &Schedule) -> u64 {
        schedule.total(self.cycles)
    }

    fn better(&self, best: &mut Option<Schedule>, found: Option<Schedule>) -> bool {
        let Some(found) = found else { return false };
        let key = |schedule: &Schedule| (self.total(schedule), schedule.interval);
        if best.as_ref().is_none_or(|best| key(&found) < key(best)) {
            *best = Some(found);
        }
        true
    }

    /// Tries intervals from the smallest on, at growing steps; then those between the last that failed and the first that did not; then
    /// larger ones, as a shorter span may be worth more than a smaller interval if there are few netlist cycles.
    fn overlapped(&self, best: &mut Option<Schedule>) {
        let hopeful = |interval: u32, best: &Option<Schedule>| {
            best.as_ref()
                .is_none_or(|best| total(interval, self.shortest, self.cycles) < self.total(best))
        };
        let nodes = self.graph.nodes.len() as u32;
        let most = TRIES.min(2 + TRIES * TRIED / (nodes + 1));
        let mut tries = most;
        let (mut interval, mut step, mut failed) = (self.least, 1, None);
        let mut found = None;
        while tries > 0 && hopeful(interval, best) {
            tries -= 1;
            let schedule = self.every(interval);
            if self.better(best, schedule) {
                found = Some(interval);
                break;
            }
            failed = Some(interval);
            interval = interval.saturating_add(step);
            step = step.saturating_mul(2);
        }
        let (Some(mut high), Some(low)) = (found, failed.or(found)) else {
            return;
        };
        let mut low = low;
        while tries > most / 4 && high - low > 1 {
            tries -= 1;
            let middle = low + (high - low) / 2;
            if self.better(best, self.every(middle)) {
                high = middle;
            } else {
                low = middle;
            }
        }
        let (mut interval, mut step) = (high, 1 + self.least / 64);
        while tries > 0 && interval < u32::MAX / 4 && hopeful(interval + step, best) {
            tries -= 1;
            interval += step;
            step *= 2;
            self.better(best, self.every(interval));
        }
    }

    /// A schedule with this interval by iterative modulo scheduling.
    fn every(&self, interval: u32) -> Option<Schedule> {
        let (least, heights) = self.graph.recurrence(interval);
        if least != interval {
            return None;
        }
        let fixed = self.fixed.as_deref();
        let starts = modulo(&self.graph, &heights, interval, self.machine.engines, fixed)?;
        self.finished(starts, interval)
    }

    /// Netlist cycles one after the other, as far apart as the values of registers and the tables need.
    fn apart(&self, starts: Vec<u32>) -> Option<Schedule> {
        let last = starts.iter().max().map_or(0, |&last| last + 1);
        let mut interval = u64::from(last.max(self.least));
        for node in 0..starts.len() as u32 {
            for read in self.graph.reads(node).filter(|read| read.distance > 0) {
                let made = starts[read.node as usize] + self.graph.latency[read.node as usize];
                let wait = u64::from(made.saturating_sub(starts[node as usize]));
                interval = interval.max(wait.div_ceil(u64::from(read.distance)));
            }
        }
        let nodes = self.graph.nodes;
        let schedule = self.placed(starts, interval as u32);
        let blocked = blocked(
            nodes,
            &schedule.starts,
            &schedule.numbers,
            schedule.interval,
            self.machine,
        );
        match blocked {
            None => Some(schedule),
            // Rows do not change: no two nodes start in one cycle of a larger interval that did not in the smaller one.
            Some(blocked) => blocked.interval.map(|interval| Schedule {
                interval,
                ..schedule
            }),
        }
    }

    fn finished(&self, starts: Vec<u32>, interval: u32) -> Option<Schedule> {
        let schedule = self.placed(starts, interval);
        schedule
            .check(self.graph.nodes, self.machine)
            .is_ok()
            .then_some(schedule)
    }

    fn placed(&self, starts: Vec<u32>, interval: u32) -> Schedule {
        let nodes = self.graph.nodes;
        match self.numbers {
            None => number(nodes, starts, interval, self.machine),
            Some(numbers) => place(nodes, starts, numbers.to_vec(), interval, self.machine),
        }
    }
}
