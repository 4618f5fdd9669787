//! Clear values: what participants bring, what the result must be, and what they got.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use veil_circuit::{Per, Reduce};
use veil_job::{DataError, JobSpec, Sink, Slice, Source};
use veil_math::Ring;

use crate::Seed;

/// The inputs of a job as plain integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Values {
    ring: Ring,
    /// `[block][row][port][wire]`. A port with one value per job takes it from the first row of the first block.
    pub blocks: Vec<Vec<Vec<Vec<u128>>>>,
    /// By input port, all keys one behind the other, where keys of two parties meet: then there are no other values.
    pub keys: Vec<Vec<u8>>,
}

/// Values of an output port, `[row][wire]`: the rows of all blocks one after the other, or one row of sums.
pub type Rows = Vec<Vec<u128>>;

impl Values {
    /// `value(block, row, port, wire)`, reduced to the ring, everywhere. A key has two values of 16 bytes, as of wires 0 and 1.
    pub fn new(job: &JobSpec, mut value: impl FnMut(usize, usize, usize, usize) -> u128) -> Self {
        let circuit = &job.circuit;
        let ring = circuit.ring;
        if let Some(meeting) = job.intersection() {
            let mut key = |port: usize, row: usize| -> Vec<u8> {
                let halves = [0, 1].map(|half| value(0, row, port, half).to_le_bytes());
                halves.concat()
            };
            let mut keys = |port| {
                let rows = 0..meeting.keys[port] as usize;
                rows.flat_map(|row| key(port, row)).collect()
            };
            return Values {
                ring,
                blocks: Vec::new(),
                keys: vec![keys(0), keys(1)],
            };
        }
        let mut row = |b: usize, r: usize| {
            let ports = circuit.inputs.iter().enumerate();
            let mut wires = |k, width| (0..width).map(|w| ring.reduce(value(b, r, k, w))).collect();
            let cycles = circuit.clock.cycles;
            ports
                .map(|(k, p)| wires(k, p.value_width(cycles) as usize))
                .collect()
        };
        let blocks = job.blocks.iter().enumerate();
        let blocks = blocks.map(|(b, block)| (0..block.rows as usize).map(|r| row(b, r)).collect());
        let mut values = Values {
            ring,
            blocks: blocks.collect(),
            keys: Vec::new(),
        };
        let first: Vec<Vec<u128>> = values.blocks[0][0].clone();
        for (k, _) in circuit
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, p)| p.per == Per::Job)
        {
            for row in values.blocks.iter_mut().flatten() {
                row[k].clone_from(&first[k]);
            }
        }
        values
    }

    /// Random values.
    pub fn random(job: &JobSpec, seed: Seed) -> Self {
        let mut numbers = seed.numbers("values");
        Values::new(job, |_, _, _, _| numbers.next_u128())
    }

    /// The expected values of every output port, by the clear evaluator of circuits.
    ///
    /// # Panics
    /// If the values do not fit the job's circuit.
    pub fn expected(&self, job: &JobSpec) -> Vec<Rows> {
        let circuit = &job.circuit;
        if let (Some(meeting), [first, second]) = (job.intersection(), &self.keys[..]) {
            let count = meeting.keys(meeting.result) as usize;
            let bits = meeting.common([first, second]);
            let bits = (0..count).map(|row| vec![element(Ring::Bits, &bits, row)]);
            return vec![bits.collect()];
        }
        let mut results: Vec<Rows> = vec![Vec::new(); circuit.outputs.len()];
        for row in self.blocks.iter().flatten() {
            let outputs = circuit
                .evaluate(row)
                .expect("the values are made for this circuit");
            for ((output, values), rows) in circuit.outputs.iter().zip(outputs).zip(&mut results) {
                match (output.reduce, rows.first_mut()) {
                    (Reduce::Sum, Some(sums)) => {
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum = self.ring.add(*sum, value);
                        }
                    }
                    _ => rows.push(values),
                }
            }
        }
        if let Some(totals) = &job.totals {
            let summed = |port: &usize| circuit.outputs[*port].reduce == Reduce::Sum;
            let ports: Vec<usize> = (0..results.len()).filter(summed).collect();
            let sums = ports.iter().flat_map(|port| results[*port][0].clone());
            let mut inputs = vec![sums.collect()];
            if totals.inputs.len() > 1 {
                let ports = circuit.inputs.iter().zip(&self.blocks[0][0]);
                let shared = ports.filter(|(port, _)| port.per == Per::Job);
                inputs.extend(shared.map(|(_, values)| values.clone()));
            }
            let opened = totals
                .evaluate(&inputs)
                .expect("the sums are made for this circuit");
            for (port, values) in ports.into_iter().zip(opened) {
                results[port] = vec![values];
            }
        }
        results
    }
}

impl Source for Values {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        if let Some(keys) = self.keys.get(port) {
            into.copy_from_slice(keys);
            return Ok(());
        }
        let rows =
            &self.blocks[slice.block as usize][slice.first as usize..][..slice.rows as usize];
        let column = self.ring.bytes(u64::from(slice.rows)) as usize;
        for (wire, column) in into.chunks_mut(column).enumerate() {
            pack(self.ring, rows.iter().map(|row| row[port][wire]), column);
        }
        Ok(())
    }
}

/// Writes the elements of a column, packed as on the wire.
pub fn pack(ring: Ring, values: impl Iterator<Item = u128>, into: &mut [u8]) {
    into.fill(0);
    for (k, value) in values.enumerate() {
        match ring {
            Ring::Bits => into[k / 8] |= (value as u8 & 1) << (k % 8),
            Ring::Z32 => into[k * 4..][..4].copy_from_slice(&(value as u32).to_le_bytes()),
            Ring::Z64 => into[k * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes()),
            Ring::Z128 => into[k * 16..][..16].copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// Element `k` of a packed column.
pub(crate) fn element(ring: Ring, column: &[u8], k: usize) -> u128 {
    let mut bytes = [0; 16];
    match ring {
        Ring::Bits => return u128::from(column[k / 8] >> (k % 8) & 1),
        Ring::Z32 => bytes[..4].copy_from_slice(&column[k * 4..][..4]),
        Ring::Z64 => bytes[..8].copy_from_slice(&column[k * 8..][..8]),
        Ring::Z128 => bytes.copy_from_slice(&column[k * 16..][..16]),
    }
    u128::from_le_bytes(bytes)
}

/// The opened values given to a participant, slice by slice.
#[derive(Debug, Default)]
pub struct Seen {
    puts: Mutex<Vec<(usize, Slice, Vec<u8>)>>,
    finished: AtomicBool,
}

impl Seen {
    /// Whether the run told this participant that everything is verified and complete.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Output ports and rows that came so far, in the order in which they came.
    pub fn slices(&self) -> Vec<(usize, Slice)> {
        let puts = self.lock();
        puts.iter()
            .map(|(port, slice, _)| (*port, *slice))
            .collect()
    }

    /// The values of output port `port`, in the order of blocks and rows. `None`: nothing.
    pub fn rows(&self, ring: Ring, port: usize) -> Option<Rows> {
        let puts = self.lock();
        let mut puts: Vec<_> = puts.iter().filter(|p| p.0 == port).collect();
        puts.sort_by_key(|(_, slice, _)| (slice.block, slice.first));
        let rows = |(_, slice, bytes): &&(usize, Slice, Vec<u8>)| -> Rows {
            let column = ring.bytes(u64::from(slice.rows)) as usize;
            let row = |r| {
                bytes
                    .chunks(column)
                    .map(move |c| element(ring, c, r))
                    .collect()
            };
            (0..slice.rows as usize).map(row).collect()
        };
        (!puts.is_empty()).then(|| puts.iter().flat_map(rows).collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Slice, Vec<u8>)>> {
        self.puts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Sink for Seen {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        self.lock().push((port, slice, values.to_vec()));
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        self.finished.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_survive_packing() {
        for ring in Ring::ALL {
            let mut numbers = Seed(1).numbers("columns");
            let values: Vec<u128> = (0..13).map(|_| ring.reduce(numbers.next_u128())).collect();
            let mut column = vec![0xff; ring.bytes(13) as usize];
            pack(ring, values.iter().copied(), &mut column);
            let back: Vec<u128> = (0..13).map(|k| element(ring, &column, k)).collect();
            assert_eq!(back, values);
        }
    }
}
