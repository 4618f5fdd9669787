//! What a multiplication costs on three nodes, and on four: cycles end to end, words on the wire, and what hosts do for it.

use std::ops::AddAssign;

use veil_math::Ring;

use super::parties::bytes;
use super::simulated::CLOCK_MHZ;
use super::{Node, NodeError, Products, Quartet, Shape, Start, Trio};
use crate::Absent;

/// Cycles after which a node that is measured counts as gone: more than any run takes.
const TIMEOUT: u32 = 1 << 24;
/// Cycles in which armed commands have come to their slots.
const ARMED: u64 = 1 << 12;
const SEED: u64 = 0x6d65_6173_7572_6564;

/// What a host has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Accesses {
    /// Registers that it read.
    pub reads: u64,
    /// Registers that it wrote.
    pub writes: u64,
    /// Commands that it queued, each with a doorbell.
    pub commands: u64,
    /// Completions that it took.
    pub completions: u64,
}

impl Accesses {
    /// All of them.
    pub fn all(self) -> u64 {
        self.reads + self.writes + self.commands + self.completions
    }

    pub(super) fn since(self, before: Self) -> Self {
        Accesses {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            commands: self.commands - before.commands,
            completions: self.completions - before.completions,
        }
    }
}

impl AddAssign for Accesses {
    fn add_assign(&mut self, more: Self) {
        self.reads += more.reads;
        self.writes += more.writes;
        self.commands += more.commands;
        self.completions += more.completions;
    }
}

/// A batch of products at three parties, or at four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Throughput {
    /// Words of 128 bits that were multiplied, whole beats of them: 128 ANDs each, or one product modulo 2^128.
    pub words: u32,
    /// Cycles from the first command until the last of the nodes that a host has started has its completion: until all shares lie in memory.
    pub cycles: u64,
    /// Words of 16 bytes that party 0 sent, with headers, tags and answers.
    pub sent: u64,
}

impl Throughput {
    /// Words in a second at a clock, in MHz.
    pub fn per_second(&self, clock_mhz: f64) -> f64 {
        f64::from(self.words) / self.cycles as f64 * clock_mhz * 1e6
    }

    /// Gb/s of messages that party 0 sent, without what is around them, at the clock of the published accelerators.
    pub fn gigabits(&self) -> f64 {
        self.per_second(CLOCK_MHZ) * 128.0 / 1e9
    }
}

/// Multiplies `words` words at three parties of `shape`, and says what it took. A multiplication end to end is one of a single beat: see
/// [`latency`]. Simulated time goes on at some thousand cycles in a second, of which a word takes about one.
///
/// # Errors
/// [`Absent::NoVerilator`] if no nodes were built in. The inner [`NodeError`] is that of a node that does not come up, or does
/// not run the layer to its end.
pub fn throughput(
    shape: Shape,
    ring: Ring,
    words: u32,
) -> Result<Result<Throughput, NodeError>, Absent> {
    Ok(match trio(shape, words, 3)? {
        Ok(mut trio) => batch(&mut trio, ring),
        Err(error) => Err(error),
    })
}

/// Cycles of one multiplication end to end: from the command until the product lies in the memories of all three parties and their hosts
/// know it. Two messages cross the network, the share and the answer that it was written.
///
/// # Errors
/// As of [`throughput`].
pub fn latency(shape: Shape, ring: Ring) -> Result<Result<u64, NodeError>, Absent> {
    Ok(throughput(shape, ring, 1)?.map(|of| of.cycles))
}

/// What each of the three hosts does for a layer of `words` words, on average over `layers` of them, from when everything is set up (and
/// armed, if node 0 alone starts them) on. The first number says how often any of them reached its node in all layers.
///
/// # Panics
/// If there are fewer than one or more than seven layers.
///
/// # Errors
/// As of [`throughput`].
pub fn accesses(
    shape: Shape,
    start: Start,
    (layers, words): (u32, u32),
) -> Result<Result<[Accesses; 3], NodeError>, Absent> {
    assert!((1..=7).contains(&layers), "one to seven layers");
    Ok(match trio(shape, words, layers + 2)? {
        Ok(mut trio) => counted(&mut trio, start, layers),
        Err(error) => Err(error),
    })
}

fn trio(shape: Shape, words: u32, values: u32) -> Result<Result<Trio, NodeError>, Absent> {
    Trio::new(shape, (values, words), SEED, TIMEOUT)
}

/// Multiplies `words` words at four parties of `shape`, checked or not, as [`throughput`] does at three. The host of node 0 starts both stages
/// at all of them.
///
/// # Errors
/// As of [`throughput`].
pub fn throughput_of_four(
    shape: Shape,
    (ring, checks): (Ring, bool),
    words: u32,
) -> Result<Result<Throughput, NodeError>, Absent> {
    Ok(match Quartet::new(shape, (3, words), SEED, TIMEOUT)? {
        Ok(mut quartet) => batch_of_four(&mut quartet, ring, checks),
        Err(error) => Err(error),
    })
}

fn batch_of_four(quartet: &mut Quartet, ring: Ring, checks: bool) -> Result<Throughput, NodeError> {
    for value in 0..2 {
        let components = filled(value, quartet.words());
        quartet.share(value, components.each_ref().map(Vec::as_slice))?;
    }
    let armed = quartet.arm(&[Products {
        ring,
        values: [0, 1, 2],
        count: 1,
        chunk: 0,
        checks,
    }]);
    // Until all hosts' commands were looked at.
    quartet.network.run(ARMED);
    let (begin, before) = (quartet.network.cycle(), quartet.network.sent(0));
    armed.iter().try_for_each(|layer| quartet.start(layer))?;
    Ok(Throughput {
        words: quartet.stride(),
        cycles: quartet.network.completed(0) - begin,
        sent: quartet.network.sent(0) - before,
    })
}

fn batch(trio: &mut Trio, ring: Ring) -> Result<Throughput, NodeError> {
    for value in 0..2 {
        fill(trio, value)?;
    }
    let (begin, before) = (trio.network.cycle(), trio.network.sent(0));
    trio.products(Start::Hosts, ring, [0, 1, 2], 1)?;
    let end = (0..3).map(|node| trio.network.completed(node)).max();
    Ok(Throughput {
        words: trio.stride(),
        cycles: end.unwrap_or(begin) - begin,
        sent: trio.network.sent(0) - before,
    })
}

fn counted(trio: &mut Trio, start: Start, layers: u32) -> Result<[Accesses; 3], NodeError> {
    fill(trio, 0)?;
    fill(trio, 1)?;
    let list: Vec<_> = (0..layers).map(|k| ([k, k + 1, k + 2], 1)).collect();
    let armed = match start {
        Start::Hosts => Vec::new(),
        Start::Headless => trio.arm(Ring::Bits, &list)?,
    };
    let before = trio.nodes.each_ref().map(Node::accesses);
    for (k, (values, count)) in list.iter().enumerate() {
        match start {
            Start::Hosts => trio.products(start, Ring::Bits, *values, *count)?,
            Start::Headless => trio.start(&armed[k])?,
        }
    }
    let after = trio.nodes.each_ref().map(Node::accesses);
    Ok([0, 1, 2].map(|k| after[k].since(before[k])))
}

/// Any value: what it is changes nothing of what is measured.
fn fill(trio: &mut Trio, value: u32) -> Result<(), NodeError> {
    let components: [_; 3] = filled(value, trio.words());
    trio.share(value, components.each_ref().map(Vec::as_slice))
}

fn filled<const N: usize>(value: u32, words: u32) -> [Vec<u8>; N] {
    let mut components = [const { Vec::new() }; N];
    for (k, component) in (0..).zip(&mut components) {
        component.resize(16 * words as usize, 0);
        bytes(SEED, 64 + N as u64 * u64::from(value) + k, component);
    }
    components
}
