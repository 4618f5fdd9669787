//! Values of a program: what participants bring, and what they get.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use veil_circuit::Per;
use veil_job::{DataError, JobSpec, Sink, Slice, Source};
use veil_math::Ring;
use zeroize::Zeroizing;

use crate::error::{Code, Error};

/// The values that one participant supplies, by the names of the input ports. They are wiped when they are dropped.
#[derive(Clone, Default)]
pub struct Values(BTreeMap<String, (Kind, Zeroizing<Vec<u128>>)>);

/// How values fill the wires of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// An element for each wire of a row.
    Elements,
    /// A number for each row: its bits, the least significant one first, or the one element that it is.
    Integers,
}

impl Values {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The elements of a port: for each row those of all its wires, one row after the other. A port with one value per job has one row.
    #[must_use]
    pub fn elements<T: Into<u128>>(
        mut self,
        port: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = Zeroizing::new(values.into_iter().map(Into::into).collect());
        self.0.insert(port.into(), (Kind::Elements, values));
        self
    }

    /// A number for each row of a port: in a circuit of bits its bits, the least significant one first.
    #[must_use]
    pub fn integers<T: Into<u128>>(
        mut self,
        port: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = Zeroizing::new(values.into_iter().map(Into::into).collect());
        self.0.insert(port.into(), (Kind::Integers, values));
        self
    }

    /// The source of a participant of a job.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] if a name is no input port, if the number of values is not that of the port's rows, or if a number does not
    /// fit its port.
    pub fn source(self, spec: &JobSpec) -> Result<Arc<dyn Source>, Error> {
        let mut ports = BTreeMap::new();
        for (name, (kind, values)) in self.0 {
            let mut all = spec.circuit.inputs.iter().enumerate();
            let Some((index, port)) = all.find(|(_, port)| port.name == name) else {
                let message = format!("the job has no input `{name}`");
                return Err(Error::new(Code::Input, message));
            };
            let rows = match port.per {
                Per::Job => 1,
                _ => spec.rows(),
            };
            let width = port.width as usize;
            let elements = elements(&name, (kind, values), width, spec.circuit.ring)?;
            if elements.len() as u64 != rows.saturating_mul(width as u64) {
                let message = format!(
                    "input `{name}` has {} values for {rows} rows of {width} wires",
                    elements.len()
                );
                return Err(Error::new(Code::Input, message));
            }
            ports.insert(index, elements);
        }
        Ok(Arc::new(Bound {
            ring: spec.circuit.ring,
            starts: starts(spec),
            ports,
        }))
    }
}

/// An element for each wire of each row.
fn elements(
    name: &str,
    (kind, values): (Kind, Zeroizing<Vec<u128>>),
    width: usize,
    ring: Ring,
) -> Result<Zeroizing<Vec<u128>>, Error> {
    let wide = |bits: usize| {
        // Of all values, so that the time says nothing about one of them.
        let high = values.iter().fold(0, |all, value| all | value);
        bits < 128 && high >> bits != 0
    };
    let bits = match ring {
        Ring::Bits if kind == Kind::Integers => width,
        Ring::Bits => 1,
        Ring::Z32 => 32,
        Ring::Z64 => 64,
        Ring::Z128 => 128,
    };
    if wide(bits) {
        let message = format!("a value of input `{name}` has more than {bits} bits");
        return Err(Error::new(Code::Input, message));
    }
    if kind == Kind::Elements || (ring != Ring::Bits && width == 1) {
        return Ok(values);
    }
    if ring != Ring::Bits {
        let message = format!("input `{name}` has {width} wires, and each has an element");
        return Err(Error::new(Code::Input, message).with_help("give them with `elements`"));
    }
    let bit = |value: u128| (0..width).map(move |at| if at < 128 { value >> at & 1 } else { 0 });
    Ok(Zeroizing::new(
        values.iter().flat_map(|value| bit(*value)).collect(),
    ))
}

/// The first row of each block, counted over all blocks.
fn starts(spec: &JobSpec) -> Vec<u64> {
    let blocks = spec.blocks.iter();
    blocks
        .scan(0, |next, block| {
            let first = *next;
            *next += block.rows;
            Some(first)
        })
        .collect()
}

/// Elements of ports, by index, row after row.
struct Bound {
    ring: Ring,
    starts: Vec<u64>,
    ports: BTreeMap<usize, Zeroizing<Vec<u128>>>,
}

impl Source for Bound {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let out_of_reach = || DataError::out_of_reach(port, slice);
        let of_wire = self.ring.bytes(slice.rows.into()) as usize;
        let values = self.ports.get(&port).ok_or_else(out_of_reach)?;
        let start = self.starts.get(slice.block as usize);
        let first = start.ok_or_else(out_of_reach)?.saturating_add(slice.first) as usize;
        let width = into.len().checked_div(of_wire).unwrap_or_default();
        for (wire, bytes) in into.chunks_mut(of_wire.max(1)).enumerate() {
            for row in 0..slice.rows as usize {
                let at = (first + row) * width + wire;
                let value = *values.get(at).ok_or_else(out_of_reach)?;
                put(self.ring, bytes, row, value);
            }
        }
        Ok(())
    }
}

/// Writes an element of packed ones.
fn put(ring: Ring, bytes: &mut [u8], row: usize, value: u128) {
    match ring {
        Ring::Bits => {
            let bit = row % 8;
            let byte = &mut bytes[row / 8];
            *byte = *byte & !(1 << bit) | (value as u8 & 1) << bit;
        }
        Ring::Z32 => bytes[row * 4..][..4].copy_from_slice(&(value as u32).to_le_bytes()),
        Ring::Z64 => bytes[row * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes()),
        Ring::Z128 => bytes[row * 16..][..16].copy_from_slice(&value.to_le_bytes()),
    }
}

/// Reads one.
fn get(ring: Ring, bytes: &[u8], row: usize) -> u128 {
    match ring {
        Ring::Bits => u128::from(bytes[row / 8] >> (row % 8) & 1),
        Ring::Z32 => {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[row * 4..][..4]);
            u32::from_le_bytes(word).into()
        }
        Ring::Z64 => {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[row * 8..][..8]);
            u64::from_le_bytes(word).into()
        }
        Ring::Z128 => {
            let mut word = [0; 16];
            word.copy_from_slice(&bytes[row * 16..][..16]);
            u128::from_le_bytes(word)
        }
    }
}

/// What was opened to one participant, in memory: empty until all of it is verified.
#[derive(Clone)]
pub struct Opened(Arc<Inside>);

struct Inside {
    ring: Ring,
    /// Names of the output ports, in their order.
    names: Vec<String>,
    starts: Vec<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By port and row: the elements of its wires.
    rows: BTreeMap<(usize, u64), Vec<u128>>,
    done: bool,
}

impl Opened {
    /// For the outputs of a job.
    pub fn of(spec: &JobSpec) -> Self {
        let outputs = spec.circuit.outputs.iter();
        Opened(Arc::new(Inside {
            ring: spec.circuit.ring,
            names: outputs.map(|output| output.name.clone()).collect(),
            starts: starts(spec),
            state: Mutex::default(),
        }))
    }

    /// The elements of an output port, those of all wires of a row, one row after the other; nothing where it was not opened to this
    /// participant, or not yet.
    pub fn elements(&self, port: &str) -> Option<Vec<u128>> {
        let rows = self.rows(port)?;
        Some(rows.into_iter().flatten().collect())
    }

    /// A number for each row of an output port, as [`Values::integers`] takes them: in a circuit of bits, of at most 128 wires.
    pub fn integers(&self, port: &str) -> Option<Vec<u128>> {
        let number = |row: Vec<u128>| match (self.0.ring, &row[..]) {
            (Ring::Bits, bits) if bits.len() <= 128 => {
                let bits = bits.iter().enumerate();
                Some(bits.fold(0, |number, (at, bit)| number | bit << at))
            }
            (Ring::Z32 | Ring::Z64 | Ring::Z128, [one]) => Some(*one),
            _ => None,
        };
        self.rows(port)?.into_iter().map(number).collect()
    }

    fn rows(&self, port: &str) -> Option<Vec<Vec<u128>>> {
        let index = self.0.names.iter().position(|name| name == port)?;
        let state = self.lock();
        let rows = state.rows.range((index, 0)..=(index, u64::MAX));
        let rows: Vec<_> = rows.map(|(_, row)| row.clone()).collect();
        (state.done && !rows.is_empty()).then_some(rows)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Opened {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let out_of_reach = || DataError::out_of_reach(port, slice);
        let of_wire = self.0.ring.bytes(slice.rows.into()) as usize;
        if port >= self.0.names.len() || of_wire == 0 || !values.len().is_multiple_of(of_wire) {
            return Err(out_of_reach());
        }
        let start = self.0.starts.get(slice.block as usize);
        let first = start.ok_or_else(out_of_reach)?.saturating_add(slice.first);
        let mut state = self.lock();
        for row in 0..slice.rows {
            let wires = values.chunks(of_wire);
            let elements = wires.map(|wire| get(self.0.ring, wire, row as usize));
            let key = (port, first + u64::from(row));
            state.rows.insert(key, elements.collect());
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        self.lock().done = true;
        Ok(())
    }
}
