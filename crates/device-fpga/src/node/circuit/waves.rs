//! When each step of a circuit is done: in waves, of which one begins when the one before has ended.
//!
//! A wave with products takes as long as the network, one of sums as long as memory. So all products of a depth are one wave; between two of
//! them are those sums that the second reads, in as few waves as they take; and what no step waits for yet is done beside products.

use super::graph::{Graph, Step};

/// Steps that need nothing of each other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Wave {
    /// Sums and complements.
    pub(super) sums: Vec<u32>,
    /// Products.
    pub(super) products: Vec<u32>,
}

/// All steps but inputs.
pub(super) fn waves(graph: &Graph) -> Vec<Wave> {
    let depths = graph.depths();
    let last = depths.iter().copied().max().unwrap_or(0);
    let needed = needed(graph, &depths, last);
    let mut work = Work::new(graph);
    let mut waves = Vec::new();
    for depth in 0..=last {
        loop {
            let sums = work.take(|at, step| !step.is_product() && needed[at] <= depth);
            if sums.is_empty() {
                break;
            }
            work.done(&sums);
            waves.push(Wave {
                sums,
                products: Vec::new(),
            });
        }
        let products = work.take(|at, step| step.is_product() && depths[at] == depth + 1);
        if !products.is_empty() {
            let sums = work.take(|_, step| !step.is_product());
            work.done(&products);
            work.done(&sums);
            waves.push(Wave { sums, products });
        }
    }
    waves
}

/// For each step the depth of products before whose end it has to be done.
fn needed(graph: &Graph, depths: &[u32], last: u32) -> Vec<u32> {
    let mut needed = vec![last; graph.steps.len()];
    for (at, step) in graph.steps.iter().enumerate().rev() {
        let before = if step.is_product() {
            depths[at] - 1
        } else {
            needed[at]
        };
        for operand in step.operands() {
            let of = &mut needed[operand as usize];
            *of = before.min(*of);
        }
    }
    needed
}

struct Work<'a> {
    graph: &'a Graph,
    /// Who reads a value.
    readers: Vec<Vec<u32>>,
    /// Operands of each step that are not there.
    lacks: Vec<u8>,
    /// Steps that lack nothing, and were not taken.
    ready: Vec<u32>,
}

impl<'a> Work<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut readers = vec![Vec::new(); graph.steps.len()];
        let mut lacks = vec![0; graph.steps.len()];
        for (at, step) in (0u32..).zip(&graph.steps) {
            for operand in step.operands() {
                readers[operand as usize].push(at);
                lacks[at as usize] += 1;
            }
        }
        let mut work = Work {
            graph,
            readers,
            lacks,
            ready: Vec::new(),
        };
        let inputs = (0u32..).zip(&graph.steps);
        let inputs = inputs.filter(|(_, step)| matches!(step, Step::Input));
        work.done(&inputs.map(|(at, _)| at).collect::<Vec<_>>());
        work
    }

    /// Those of the steps that lack nothing which are wanted now, in the order of the circuit.
    fn take(&mut self, wanted: impl Fn(usize, Step) -> bool) -> Vec<u32> {
        let wanted = |at: &mut u32| wanted(*at as usize, self.graph.steps[*at as usize]);
        let mut taken: Vec<u32> = self.ready.extract_if(.., wanted).collect();
        taken.sort_unstable();
        taken
    }

    fn done(&mut self, steps: &[u32]) {
        for step in steps {
            for reader in &self.readers[*step as usize] {
                let lacks = &mut self.lacks[*reader as usize];
                *lacks -= 1;
                if *lacks == 0 {
                    self.ready.push(*reader);
                }
            }
        }
    }
}
