//! What no schedule of a body can be faster than.

use veil_circuit::schedule::Machine;

use super::Capacity;
use super::body::{Body, Of};

/// Cycles that `repetitions` of a body take at least on a core: each engine starts one gate per cycle, a gate starts when what it reads is there,
/// and so many labels come in as its beats have, and one leaves per cycle.
pub fn least(body: &Body, capacity: &Capacity, repetitions: u64) -> u64 {
    let gates = (body.gates.len() as u64).saturating_mul(repetitions);
    let beats = |inputs: u32| u64::from(inputs.div_ceil(capacity.labels_in));
    let inputs = beats(body.of_each).saturating_mul(repetitions);
    let leaves = (body.leaves.len() as u64).saturating_mul(repetitions);
    let started = gates.div_ceil(capacity.engines.into());
    started
        .max(inputs)
        .max(leaves)
        .max(path(body, &capacity.machine(), repetitions))
}

/// The longest path through all repetitions, from the start of its first gate to the start of its last one, and that cycle.
fn path(body: &Body, machine: &Machine, repetitions: u64) -> u64 {
    let latencies = [machine.xor, machine.and].map(u64::from);
    let mut starts: Vec<Vec<u64>> = Vec::new();
    let mut longest = 0;
    for repetition in 0..repetitions as usize {
        let mut own: Vec<u64> = Vec::with_capacity(body.gates.len());
        for gate in &body.gates {
            let ready = gate.operands.map(|value| match value.of {
                Of::Gate { gate, back } => {
                    let latency = latencies[usize::from(body.gates[gate as usize].is_and)];
                    let start = match back as usize {
                        0 => own.get(gate as usize),
                        back => (repetition.checked_sub(back))
                            .and_then(|at| starts.get(at)?.get(gate as usize)),
                    };
                    start.map_or(0, |start| start + latency)
                }
                _ => 0,
            });
            own.push(ready[0].max(ready[1]));
        }
        longest = own
            .iter()
            .copied()
            .fold(longest, |longest, start| longest.max(start + 1));
        starts.push(own);
        // What no repetition reads any more is forgotten.
        if let Some(old) = repetition.checked_sub(OLDEST) {
            starts[old] = Vec::new();
        }
    }
    longest
}

/// No value is read that is older.
const OLDEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garble::body::Value;

    #[test]
    fn a_chain_of_products_takes_their_latency() {
        let card = crate::Simulated::capacity(2);
        let mut body = Body::default();
        let input = Value::plain(Of::Each { input: 0, back: 0 });
        body.of_each = 1;
        let first = body.push(true, [input, input]);
        body.push(true, [first, first.earlier(1)]);
        assert_eq!(least(&body, &card, 1), 11);
        // Nothing of a repetition waits for the one before but what the chain has ready by then.
        assert_eq!(least(&body, &card, 100), 100);
        let ring = Value::plain(Of::Gate { gate: 1, back: 1 });
        body.gates[1].operands[1] = ring;
        assert_eq!(least(&body, &card, 100), 10 + 99 * 10 + 1);
    }
}
