//! Nodes with their readers, and the longest paths behind them.

use super::{LONGEST, MOST_NODES, Machine, Node, Read, ScheduleError};

const NOBODY: u32 = u32::MAX;

/// What is scheduled, checked.
pub(super) struct Graph<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) latency: Vec<u32>,
    /// Readers of node `u` are `readers[first[u]..first[u + 1]]`; `node` is the reader.
    first: Vec<u32>,
    readers: Vec<Read>,
    /// An order in which a node stands behind all of its netlist cycle that it reads.
    order: Vec<u32>,
}

/// A ring of nodes that no interval below `latency / distance` lets turn.
struct Turn {
    latency: u64,
    distance: u64,
}

impl<'a> Graph<'a> {
    pub(super) fn new(nodes: &'a [Node], machine: &Machine) -> Result<Self, ScheduleError> {
        machine.valid()?;
        if nodes.len() > MOST_NODES {
            return Err(ScheduleError::TooLarge {
                found: nodes.len(),
                most: MOST_NODES,
            });
        }
        let count = nodes.len() as u32;
        let mut first = vec![0_u32; nodes.len() + 1];
        for (node, reads) in (0..).zip(nodes) {
            for read in reads.reads.iter().flatten() {
                let reads = read.node;
                if reads >= count {
                    return Err(ScheduleError::NoNode {
                        node,
                        reads,
                        nodes: count,
                    });
                }
                first[reads as usize + 1] += 1;
            }
        }
        for k in 1..first.len() {
            first[k] += first[k - 1];
        }
        let mut next = first.clone();
        let nobody = Read {
            node: NOBODY,
            distance: 0,
        };
        let mut readers = vec![nobody; first[nodes.len()] as usize];
        for (node, reads) in (0..).zip(nodes) {
            for read in reads.reads.iter().flatten() {
                let place = &mut next[read.node as usize];
                readers[*place as usize] = Read {
                    node,
                    distance: read.distance,
                };
                *place += 1;
            }
        }
        let mut graph = Graph {
            nodes,
            latency: nodes.iter().map(|node| machine.latency(node)).collect(),
            first,
            readers,
            order: Vec::with_capacity(nodes.len()),
        };
        graph.sort()?;
        Ok(graph)
    }

    pub(super) fn readers(&self, node: u32) -> &[Read] {
        let node = node as usize;
        &self.readers[self.first[node] as usize..self.first[node + 1] as usize]
    }

    pub(super) fn reads(&self, node: u32) -> impl Iterator<Item = &Read> {
        self.nodes[node as usize].reads.iter().flatten()
    }

    /// How many values of its own netlist cycle each node reads.
    pub(super) fn awaited(&self) -> Vec<u8> {
        let now = |node: &Node| {
            let own = node.reads.iter().flatten().filter(|r| r.distance == 0);
            own.count() as u8
        };
        self.nodes.iter().map(now).collect()
    }

    fn sort(&mut self) -> Result<(), ScheduleError> {
        let mut awaited = self.awaited();
        let mut order: Vec<u32> = (0..self.nodes.len() as u32)
            .filter(|&node| awaited[node as usize] == 0)
            .collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            done += 1;
            for reader in self.readers(node).iter().filter(|r| r.distance == 0) {
                let left = &mut awaited[reader.node as usize];
                *left -= 1;
                if *left == 0 {
                    order.push(reader.node);
                }
            }
        }
        self.order = order;
        match awaited.iter().position(|&left| left != 0) {
            Some(node) => Err(ScheduleError::Ring {
                node: self.on_ring(node as u32, &awaited),
            }),
            None => Ok(()),
        }
    }

    /// A node of a ring among those that wait: `node` waits for one, if it is not on one itself.
    fn on_ring(&self, mut node: u32, awaited: &[u8]) -> u32 {
        for _ in 0..self.nodes.len() {
            let waits = |r: &&Read| r.distance == 0 && awaited[r.node as usize] != 0;
            node = self.reads(node).find(waits).map_or(node, |r| r.node);
        }
        node
    }

    /// The smallest interval from `least` on at which rings turn, and the [`heights`](Self::heights) there.
    pub(super) fn recurrence(&self, least: u32) -> (u32, Vec<i64>) {
        let mut interval = u64::from(least);
        loop {
            match self.heights(interval) {
                Ok(heights) => return (interval as u32, heights),
                Err(turn) => interval = turn.latency.div_ceil(turn.distance).max(interval + 1),
            }
        }
    }

    /// Heights if no netlist cycle reads an earlier one.
    pub(super) fn heights_alone(&self) -> Vec<i64> {
        // At this interval whatever comes from another netlist cycle is there long before.
        let apart = (MOST_NODES as u64 + 1) * u64::from(LONGEST);
        match self.heights(apart) {
            Ok(heights) => heights,
            Err(_) => unreachable!("no ring takes longer than all nodes one after the other"),
        }
    }

    /// Of each node, the longest path that begins with it, in cycles: how long before the end it has to start.
    ///
    /// Relaxes backwards until nothing changes. If it would never end, the chosen readers form a ring at some point (R. E. Tarjan 1981,
    /// "Shortest Paths"), which is then what is returned.
    fn heights(&self, interval: u64) -> Result<Vec<i64>, Turn> {
        let mut heights = vec![0_i64; self.nodes.len()];
        let mut by: Vec<Option<Read>> = vec![None; self.nodes.len()];
        loop {
            let mut changed = false;
            for &node in self.order.iter().rev() {
                let mut height = heights[node as usize];
                for reader in self.readers(node) {
                    let path = heights[reader.node as usize] + self.gap(node, *reader, interval);
                    if path > height {
                        height = path;
                        by[node as usize] = Some(*reader);
                        changed = true;
                    }
                }
                heights[node as usize] = height;
            }
            if !changed {
                return Ok(heights);
            }
            if let Some(turn) = self.turn(&by) {
                return Err(turn);
            }
        }
    }

    /// How long after `node` the reader starts at least: negative if it reads a value of long ago.
    pub(super) fn gap(&self, node: u32, reader: Read, interval: u64) -> i64 {
        let latency = i64::from(self.latency[node as usize]);
        // Both are below 2^32 and 2^31.
        latency - (interval * u64::from(reader.distance)) as i64
    }

    /// A ring among the chosen readers.
    fn turn(&self, by: &[Option<Read>]) -> Option<Turn> {
        let mut seen = vec![NOBODY; by.len()];
        for from in 0..by.len() as u32 {
            let mut node = from;
            while seen[node as usize] == NOBODY {
                seen[node as usize] = from;
                match by[node as usize] {
                    Some(read) => node = read.node,
                    None => break,
                }
            }
            if seen[node as usize] == from && by[node as usize].is_some() {
                return Some(self.around(node, by));
            }
        }
        None
    }

    fn around(&self, from: u32, by: &[Option<Read>]) -> Turn {
        let (mut node, mut latency, mut distance) = (from, 0, 0);
        while let Some(read) = by[node as usize] {
            latency += u64::from(self.latency[node as usize]);
            distance += u64::from(read.distance);
            node = read.node;
            if node == from {
                break;
            }
        }
        Turn { latency, distance }
    }
}
