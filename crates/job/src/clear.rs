//! The meaning of a job: all rows evaluated in the clear, without parties.

use veil_circuit::{EvaluateError, Per, Reduce};
use veil_math::Ring;
use veil_session::{PartyId, Peer};

use crate::{DataError, Holder, Intersection, JobSpec, KEY_BYTES, Sink, Slice, Source};

/// Rows evaluated at once: enough to fill words, little memory.
const CHUNK: u64 = 4096;

/// Bits that the values of one port take at once, if a row does not have more.
const MOST_BITS: u64 = 1 << 29;

/// Why a job could not be evaluated in the clear.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClearError {
    /// A source or a sink failed.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The circuit does not fit its inputs.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// No source supplies a port.
    #[error("no source is given for input `{0}`; give the sources of all holders")]
    NoSource(String),
}

/// Evaluates the circuit of a job on the values of all holders, and hands every output to its audience. The parties must compute the same,
/// byte for byte.
///
/// # Errors
/// [`ClearError::NoSource`] if `sources` lacks the holder of a port, [`ClearError::Data`] if a source or a sink fails,
/// [`ClearError::Evaluate`] if the circuit does not fit its inputs.
pub fn evaluate(
    job: &JobSpec,
    sources: &[(Holder, &dyn Source)],
    sinks: &[(Peer, &dyn Sink)],
) -> Result<(), ClearError> {
    if let Some(meeting) = job.intersection() {
        return intersect(job, meeting, sources, sinks);
    }
    let circuit = &job.circuit;
    let ring = circuit.ring;
    let mut sums: Vec<Vec<u128>> = circuit
        .outputs
        .iter()
        .map(|port| vec![0; port.wires.len()])
        .collect();
    let put = |port: usize, slice: Slice, values: &[u8]| -> Result<(), DataError> {
        let mut readers = sinks
            .iter()
            .filter(|(peer, _)| job.audiences[port].includes(*peer));
        readers.try_for_each(|(_, sink)| sink.put(port, slice, values))
    };
    let cycles = circuit.clock.cycles;
    let of_inputs = circuit.inputs.iter().map(|port| port.value_width(cycles));
    let of_outputs = circuit.outputs.iter().map(|port| port.value_width(cycles));
    let widest = of_inputs.chain(of_outputs).max().unwrap_or(1).max(1);
    let chunk = (MOST_BITS / widest).clamp(1, CHUNK);
    // Job-wide values.
    let mut shared: Vec<Vec<u128>> = Vec::new();
    for (index, block) in job.blocks.iter().enumerate() {
        let block_index = index as u32;
        for first in (0..block.rows).step_by(chunk as usize) {
            let rows = chunk.min(block.rows - first) as u32;
            let mut inputs = Vec::new();
            for (port, (input, holder)) in circuit.inputs.iter().zip(&block.holders).enumerate() {
                let slice = match input.per {
                    Per::Row | Per::Cycle => Slice {
                        block: block_index,
                        first,
                        rows,
                    },
                    Per::Job => Slice {
                        block: 0,
                        first: 0,
                        rows: 1,
                    },
                };
                let width = circuit.input_width(port);
                let mut values = vec![0; (width * ring.bytes(slice.rows.into())) as usize];
                let source = sources.iter().find(|source| source.0 == *holder);
                let source = source
                    .ok_or_else(|| ClearError::NoSource(input.name.clone()))?
                    .1;
                source.fill(port, slice, &mut values)?;
                inputs.push(values);
            }
            if shared.is_empty() {
                let ports = circuit.inputs.iter().zip(&inputs);
                let ports = ports.filter(|(port, _)| port.per == Per::Job);
                shared = ports.map(|(_, values)| elements(ring, values)).collect();
            }
            let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let outputs = circuit.evaluate_batch(rows.into(), &inputs)?;
            for (port, values) in outputs.iter().enumerate() {
                if circuit.outputs[port].reduce != Reduce::Sum {
                    put(
                        port,
                        Slice {
                            block: block_index,
                            first,
                            rows,
                        },
                        values,
                    )?;
                    continue;
                }
                for (sum, value) in sums[port].iter_mut().zip(elements(ring, values)) {
                    *sum = ring.add(*sum, value);
                }
            }
        }
    }
    if let Some(totals) = &job.totals {
        let summed = |port: &usize| circuit.outputs[*port].reduce == Reduce::Sum;
        let ports: Vec<usize> = (0..sums.len()).filter(summed).collect();
        let all = ports.iter().flat_map(|port| sums[*port].clone()).collect();
        let mut inputs = vec![all];
        if totals.inputs.len() > 1 {
            inputs.extend(shared);
        }
        let results = totals.evaluate(&inputs)?;
        for (port, result) in ports.into_iter().zip(results) {
            sums[port] = result;
        }
    }
    for (port, sums) in sums.iter().enumerate() {
        if circuit.outputs[port].reduce == Reduce::Sum {
            let bytes = ring.bytes(1) as usize;
            let values: Vec<u8> = sums
                .iter()
                .flat_map(|sum| sum.to_le_bytes()[..bytes].to_vec())
                .collect();
            put(
                port,
                Slice {
                    block: 0,
                    first: 0,
                    rows: 1,
                },
                &values,
            )?;
        }
    }
    sinks.iter().try_for_each(|(_, sink)| sink.finish())?;
    Ok(())
}

/// Compares all keys of two parties.
fn intersect(
    job: &JobSpec,
    meeting: Intersection,
    sources: &[(Holder, &dyn Source)],
    sinks: &[(Peer, &dyn Sink)],
) -> Result<(), ClearError> {
    let of = |party: PartyId, port: usize| {
        let keys = meeting.keys(party);
        let slice = Slice {
            block: 0,
            first: 0,
            rows: keys as u32,
        };
        let holder = Holder::Party(party);
        let source = sources.iter().find(|source| source.0 == holder);
        let missing = || ClearError::NoSource(job.circuit.inputs[port].name.clone());
        let mut values = vec![0; keys as usize * KEY_BYTES];
        source
            .ok_or_else(missing)?
            .1
            .fill(port, slice, &mut values)?;
        Ok::<_, ClearError>(values)
    };
    let [first, second] = PartyId::TWO;
    let [first, second] = [of(first, 0)?, of(second, 1)?];
    let slice = Slice {
        block: 0,
        first: 0,
        rows: meeting.keys(meeting.result) as u32,
    };
    let values = meeting.common([&first, &second]);
    for (peer, sink) in sinks {
        if job.audiences[0].includes(*peer) {
            sink.put(0, slice, &values)?;
        }
        sink.finish()?;
    }
    Ok(())
}

/// The elements of one row, one after the other.
fn elements(ring: Ring, values: &[u8]) -> Vec<u128> {
    let bytes = ring.bytes(1) as usize;
    let element = |value: &[u8]| {
        let mut whole = [0; 16];
        whole[..bytes].copy_from_slice(value);
        u128::from_le_bytes(whole)
    };
    values.chunks_exact(bytes).map(element).collect()
}
