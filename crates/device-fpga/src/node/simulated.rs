//! Nodes in simulation: what Verilator made of the RTL, memories, and a network between them that can be told to fail.

use std::ffi::c_void;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{MOST_NODES, Medium, Port};
use crate::board::BoardError;
use crate::instance::{Free, Instance};
use crate::{Absent, Stalls};

/// Patience with nodes that compute no more than a layer at a time.
const PATIENCE: u64 = 1 << 19;

/// The clock of the published accelerators, in MHz (R. Patel et al., HPEC 2022).
pub const CLOCK_MHZ: f64 = 275.0;

/// Words in a beat of the memories of simulated nodes.
pub const LANES: u32 = 4;

/// A network of nodes, and their memories.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Two to four.
    pub nodes: u8,
    /// With workers for products of four parties.
    pub four: bool,
    /// Bits that a port sends, and takes, in a cycle. A node gives and takes 128 at most.
    pub bits: f64,
    /// Cycles from the end of a packet at its sender to its beginning at its receiver.
    pub latency: u32,
    /// Words on their way to a node, from which on no other packet to it begins.
    pub room: u32,
    /// Cycles until a memory answers.
    pub memory: u32,
    /// Bytes of each memory.
    pub bytes: u64,
    /// Cycles without a completion before a node is silent: more than any timeout, and than anything takes that has one completion.
    pub patience: u64,
    /// Pauses of every stream of every node.
    pub stalls: Stalls,
}

impl Shape {
    /// Ports of 100 Gb/s at 275 MHz, a microsecond apart, no pauses.
    pub fn new(nodes: u8) -> Self {
        Shape {
            nodes,
            four: false,
            bits: 100_000.0 / CLOCK_MHZ,
            latency: CLOCK_MHZ as u32,
            room: 1 << 10,
            memory: 32,
            bytes: 1 << 20,
            patience: PATIENCE,
            stalls: Stalls::default(),
        }
    }
}

/// What becomes of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// They are lost.
    Drop,
    /// They come twice.
    Duplicate,
    /// The next one overtakes them.
    Reorder,
    /// A bit of them is another one.
    Corrupt,
}

#[repr(C)]
struct NetworkShape {
    nodes: u32,
    rate: u32,
    seed: u64,
    bits: f64,
    latency: u32,
    room: u32,
    memory: u32,
    bytes: u64,
}

#[repr(C)]
struct NodeCompletion {
    word: [u8; 16],
    cycle: u64,
}

/// The functions of the model.
struct Model {
    new: unsafe extern "C" fn(*const NetworkShape) -> *mut c_void,
    free: Free,
    write: unsafe extern "C" fn(*mut c_void, u32, u32, u32) -> u32,
    read: unsafe extern "C" fn(*mut c_void, u32, u32, *mut u32) -> u32,
    command: unsafe extern "C" fn(*mut c_void, u32, *const u8, usize),
    completion: unsafe extern "C" fn(*mut c_void, u32, *mut NodeCompletion) -> bool,
    step: unsafe extern "C" fn(*mut c_void, u64, u32) -> u64,
    memory: unsafe extern "C" fn(*mut c_void, u32) -> *mut u8,
    sent: unsafe extern "C" fn(*mut c_void, u32) -> u64,
    fault: unsafe extern "C" fn(*mut c_void, u32, u32, u32, u64, u64),
    reset: unsafe extern "C" fn(*mut c_void, u32),
    state: unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize) -> usize,
}

/// The model, if there is one, from the names of its functions.
macro_rules! nodes {
    ($($rows:literal: $new:ident $free:ident $write:ident $read:ident $command:ident $completion:ident $step:ident $memory:ident $sent:ident
       $fault:ident $reset:ident $state:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(shape: *const NetworkShape) -> *mut c_void;
                fn $free(network: *mut c_void);
                fn $write(network: *mut c_void, node: u32, register: u32, value: u32) -> u32;
                fn $read(network: *mut c_void, node: u32, register: u32, value: *mut u32) -> u32;
                fn $command(network: *mut c_void, node: u32, words: *const u8, count: usize);
                fn $completion(network: *mut c_void, node: u32, into: *mut NodeCompletion) -> bool;
                fn $step(network: *mut c_void, most: u64, until: u32) -> u64;
                fn $memory(network: *mut c_void, node: u32) -> *mut u8;
                fn $sent(network: *mut c_void, node: u32) -> u64;
                fn $fault(network: *mut c_void, from: u32, to: u32, kind: u32, skip: u64, count: u64);
                fn $reset(network: *mut c_void, node: u32);
                fn $state(network: *mut c_void, node: u32, into: *mut u8, room: usize) -> usize;
            )*
        }

        static MODELS: &[Model] = &[$(Model {
            new: $new,
            free: $free,
            write: $write,
            read: $read,
            command: $command,
            completion: $completion,
            step: $step,
            memory: $memory,
            sent: $sent,
            fault: $fault,
            reset: $reset,
            state: $state,
        }),*];
    };
}

/// The same of nodes with workers for products of four parties.
macro_rules! fours {
    ($($models:tt)*) => {
        mod fours {
            use super::*;

            nodes! { $($models)* }

            /// Those of this build.
            pub(super) fn models() -> &'static [Model] {
                MODELS
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/nodes.rs"));
include!(concat!(env!("OUT_DIR"), "/fours.rs"));

struct Inner {
    model: &'static Model,
    at: Instance,
    shape: Shape,
    /// Cycle of the completion that was taken last, of each node.
    last: [u64; MOST_NODES as usize],
}

impl Inner {
    fn step(&mut self, most: u64, until: u32) -> u64 {
        // SAFETY: the network is there.
        unsafe { (self.model.step)(self.at.as_ptr(), most, until) }
    }

    /// A part of a node's memory, if it is there.
    fn memory(&mut self, node: u8, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let end = address.checked_add(bytes as u64)?;
        if end > self.shape.bytes {
            return None;
        }
        // SAFETY: a memory has so many bytes, stays where it is, and is reached by no other code while `self` is borrowed.
        let all = unsafe {
            let first = (self.model.memory)(self.at.as_ptr(), node.into());
            slice::from_raw_parts_mut(first, self.shape.bytes as usize)
        };
        Some(&mut all[address as usize..end as usize])
    }
}

/// Nodes in simulation and the network between them. Time goes on while a host waits for a completion, or reaches a register.
#[derive(Clone)]
pub struct Network(Arc<Mutex<Inner>>);

impl Network {
    /// Nodes that were just switched on.
    ///
    /// # Panics
    /// If there are not two to four.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no nodes were built in.
    pub fn new(shape: Shape) -> Result<Self, Absent> {
        assert!((2..=MOST_NODES).contains(&shape.nodes), "two to four nodes");
        let models = if shape.four { fours::models() } else { MODELS };
        let model = models.first().ok_or(crate::NONE)?;
        let of = NetworkShape {
            nodes: shape.nodes.into(),
            rate: shape.stalls.rate.into(),
            seed: shape.stalls.seed,
            bits: shape.bits,
            latency: shape.latency,
            room: shape.room,
            memory: shape.memory,
            bytes: shape.bytes,
        };
        // SAFETY: the function takes this shape, keeps no reference to it, and makes a network, which is freed by no other.
        let at = unsafe { Instance::new((model.new)(&raw const of), model.free) };
        Ok(Network(Arc::new(Mutex::new(Inner {
            model,
            at,
            shape,
            last: [0; MOST_NODES as usize],
        }))))
    }

    /// A way to a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn port(&self, node: u8) -> Simulated {
        assert!(node < self.lock().shape.nodes, "a node of the network");
        Simulated {
            network: self.clone(),
            node,
        }
    }

    /// What becomes of packets from a node to another one: after `skip` of them, of `count`. There is one order for two nodes and a
    /// direction at a time; none with a count of 0.
    pub fn fault(&self, [from, to]: [u8; 2], fault: Fault, skip: u64, count: u64) {
        let inner = self.lock();
        assert!(from.max(to) < inner.shape.nodes, "nodes of the network");
        // SAFETY: the network is there, and has these nodes.
        unsafe {
            (inner.model.fault)(
                inner.at.as_ptr(),
                from.into(),
                to.into(),
                fault as u32,
                skip,
                count,
            );
        }
    }

    /// Switches a node off and on: it loses all but its memory.
    pub fn reset(&self, node: u8) {
        let inner = self.lock();
        assert!(node < inner.shape.nodes, "a node of the network");
        // SAFETY: the network is there, and has this node.
        unsafe { (inner.model.reset)(inner.at.as_ptr(), node.into()) };
    }

    /// Lets time go on.
    pub fn run(&self, cycles: u64) {
        self.lock().step(cycles, 0);
    }

    /// Cycles since the beginning.
    pub fn cycle(&self) -> u64 {
        self.lock().step(0, 0)
    }

    /// The cycle in which the completion came that was taken last from a node.
    pub fn completed(&self, node: u8) -> u64 {
        self.lock().last[usize::from(node)]
    }

    /// Words of 16 bytes that a node has sent.
    pub fn sent(&self, node: u8) -> u64 {
        let inner = self.lock();
        assert!(node < inner.shape.nodes, "a node of the network");
        // SAFETY: the network is there, and has this node.
        unsafe { (inner.model.sent)(inner.at.as_ptr(), node.into()) }
    }

    /// Everything that a node keeps but its memory: all registers and queues. For tests that look for what is left.
    pub fn state(&self, node: u8) -> Vec<u8> {
        let inner = self.lock();
        assert!(node < inner.shape.nodes, "a node of the network");
        // SAFETY: the function writes no more than it is told, and says how much there is.
        let get = |into: &mut [u8]| unsafe {
            (inner.model.state)(
                inner.at.as_ptr(),
                node.into(),
                into.as_mut_ptr(),
                into.len(),
            )
        };
        let mut state = vec![0; get(&mut [])];
        get(&mut state);
        state
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for Network {
    fn cycle(&self) -> u64 {
        Network::cycle(self)
    }

    fn run(&self, cycles: u64) {
        Network::run(self, cycles);
    }

    fn sent(&self, node: u8) -> u64 {
        Network::sent(self, node)
    }
}

/// The way to one node of a [`Network`].
pub struct Simulated {
    network: Network,
    node: u8,
}

impl Port for Simulated {
    fn name(&self) -> &'static str {
        "fpga-sim"
    }

    fn read(&mut self, register: u32) -> Result<Option<u32>, BoardError> {
        let inner = self.network.lock();
        let mut value = 0;
        // SAFETY: the network is there, has this node, and writes the value.
        let answer = unsafe {
            (inner.model.read)(
                inner.at.as_ptr(),
                self.node.into(),
                register,
                &raw mut value,
            )
        };
        Ok((answer == 0).then_some(value))
    }

    fn write(&mut self, register: u32, value: u32) -> Result<bool, BoardError> {
        let inner = self.network.lock();
        // SAFETY: the network is there, and has this node.
        let answer =
            unsafe { (inner.model.write)(inner.at.as_ptr(), self.node.into(), register, value) };
        Ok(answer == 0)
    }

    fn command(&mut self, words: &[u128]) {
        let inner = self.network.lock();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // SAFETY: there are so many words of 16 bytes, which are copied.
        unsafe {
            (inner.model.command)(
                inner.at.as_ptr(),
                self.node.into(),
                bytes.as_ptr(),
                words.len(),
            );
        }
    }

    fn completion(&mut self) -> Result<Option<u128>, BoardError> {
        let mut inner = self.network.lock();
        let mut completion = NodeCompletion {
            word: [0; 16],
            cycle: 0,
        };
        // SAFETY: the network is there, has this node, and writes a completion if it has one.
        let there = unsafe {
            (inner.model.completion)(inner.at.as_ptr(), self.node.into(), &raw mut completion)
        };
        Ok(there.then(|| {
            inner.last[usize::from(self.node)] = completion.cycle;
            u128::from_le_bytes(completion.word)
        }))
    }

    fn wait(&mut self) -> Result<bool, BoardError> {
        let mut inner = self.network.lock();
        let before = inner.step(0, 0);
        let patience = inner.shape.patience;
        Ok(inner.step(patience, 1 << self.node) - before < patience)
    }

    fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<bool, BoardError> {
        let mut inner = self.network.lock();
        let memory = inner.memory(self.node, address, bytes.len());
        Ok(memory.map(|memory| bytes.copy_from_slice(memory)).is_some())
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<bool, BoardError> {
        let mut inner = self.network.lock();
        let memory = inner.memory(self.node, address, bytes.len());
        Ok(memory.map(|memory| memory.copy_from_slice(bytes)).is_some())
    }
}
