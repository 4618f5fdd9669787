//! Whether two circuits compute the same: on all inputs where those are few, on random ones otherwise.

use std::fmt::Write;

use veil_circuit::{Circuit, Per};
use veil_cli::failure::{Code, Failure};
use veil_math::Ring;

/// Inputs of so many bits are all tried: a million cases.
const EXHAUSTIVE: u64 = 20;

/// Bytes that inputs and outputs of all rows may take.
const MOST: u64 = 1 << 30;

/// What a comparison found.
pub(super) enum Verdict {
    /// No difference.
    Same {
        /// Inputs tried.
        cases: u64,
        /// Whether these are all there are.
        all: bool,
    },
    /// A difference, in words.
    Differ(String),
}

/// Compares two circuits over one ring.
pub(super) fn compare(a: &Circuit, b: &Circuit, cases: u32) -> Result<Verdict, Failure> {
    let inputs = |circuit: &Circuit| {
        circuit
            .inputs
            .iter()
            .map(|port| port.value_width(circuit.clock.cycles))
            .collect::<Vec<_>>()
    };
    let outputs = |circuit: &Circuit| {
        circuit
            .outputs
            .iter()
            .map(|port| port.value_width(circuit.clock.cycles))
            .collect::<Vec<_>>()
    };
    if a.ring != b.ring {
        let message = format!(
            "one circuit is over {} and the other over {}: nothing can be compared",
            a.ring.name(),
            b.ring.name()
        );
        return Err(Failure::new(Code::Input, message));
    }
    if a.is_random() || b.is_random() {
        return Err(Failure::new(
            Code::Input,
            "a circuit that draws or rounds at random is no function: nothing can be compared",
        ));
    }
    if inputs(a) != inputs(b) || outputs(a) != outputs(b) {
        let shape =
            |circuit: &Circuit| format!("{:?} wires to {:?}", inputs(circuit), outputs(circuit));
        return Ok(Verdict::Differ(format!(
            "the first takes {}, the second {}",
            shape(a),
            shape(b)
        )));
    }
    let bits: u64 = inputs(a).iter().sum();
    let all = a.ring == Ring::Bits && bits <= EXHAUSTIVE;
    let rows = if all { 1 << bits } else { u64::from(cases) };
    // What all rows have at once.
    let values = |circuit: &Circuit| {
        inputs(circuit)
            .into_iter()
            .chain(outputs(circuit))
            .sum::<u64>()
    };
    if values(a).saturating_mul(a.ring.bytes(rows)) > MOST {
        let message = format!(
            "{rows} rows of all cycles take too much memory: ask for fewer cases or cycles"
        );
        return Err(Failure::new(Code::Input, message));
    }
    let values = if all {
        every(a, rows)
    } else {
        random(a, rows)?
    };
    let evaluate = |circuit: &Circuit| {
        let mut circuit = circuit.clone();
        let shared = circuit
            .inputs
            .iter_mut()
            .filter(|port| port.per == Per::Job);
        shared.for_each(|port| port.per = Per::Row);
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        circuit
            .evaluate_batch(rows, &values)
            .map_err(|error| Failure::new(Code::Other, error.to_string()))
    };
    let (first, second) = (evaluate(a)?, evaluate(b)?);
    for row in 0..rows {
        let at = |columns: &[Vec<u8>]| {
            columns
                .iter()
                .map(|column| value(a.ring, column, rows, row))
                .collect::<Vec<_>>()
        };
        if at(&first) != at(&second) {
            let (given, one, two) = (
                at(&values).join(" "),
                at(&first).join(" "),
                at(&second).join(" "),
            );
            return Ok(Verdict::Differ(format!(
                "the input {given} gives {one} in the first and {two} in the second"
            )));
        }
    }
    Ok(Verdict::Same { cases: rows, all })
}

/// All inputs: row `i` has the bits of `i`, the first wire the least significant.
fn every(circuit: &Circuit, rows: u64) -> Vec<Vec<u8>> {
    let mut wire = 0;
    let column = |port: &veil_circuit::InputPort| {
        let stride = Ring::Bits.bytes(rows) as usize;
        let mut bits = vec![0; stride * port.value_width(circuit.clock.cycles) as usize];
        for column in bits.chunks_exact_mut(stride) {
            for row in (0..rows).filter(|row| row >> wire & 1 == 1) {
                column[(row / 8) as usize] |= 1 << (row % 8);
            }
            wire += 1;
        }
        bits
    };
    circuit.inputs.iter().map(column).collect()
}

fn random(circuit: &Circuit, rows: u64) -> Result<Vec<Vec<u8>>, Failure> {
    let column = |port: &veil_circuit::InputPort| {
        let width = port.value_width(circuit.clock.cycles) as usize;
        let mut bits = vec![0; circuit.ring.bytes(rows) as usize * width];
        getrandom::fill(&mut bits).map_err(|error| {
            Failure::new(
                Code::Other,
                format!("the operating system gives no randomness: {error}"),
            )
        })?;
        Ok(bits)
    };
    circuit.inputs.iter().map(column).collect()
}

/// The value of a port in a row: of bits in hexadecimal, most significant digit first; of integers one after the other.
fn value(ring: Ring, column: &[u8], rows: u64, row: u64) -> String {
    if ring != Ring::Bits {
        let (element, stride) = (ring.bytes(1) as usize, ring.bytes(rows) as usize);
        let integer = |wire: &[u8]| {
            let mut whole = [0; 16];
            whole[..element].copy_from_slice(&wire[row as usize * element..][..element]);
            u128::from_le_bytes(whole).to_string()
        };
        let integers: Vec<String> = column.chunks_exact(stride).map(integer).collect();
        return integers.join(",");
    }
    let stride = Ring::Bits.bytes(rows) as usize;
    let bits: Vec<bool> = column
        .chunks_exact(stride)
        .map(|wire| wire[(row / 8) as usize] >> (row % 8) & 1 == 1)
        .collect();
    let mut text = String::from("0x");
    for digit in bits.chunks(4).rev() {
        let digit = digit
            .iter()
            .enumerate()
            .fold(0, |sum, (at, bit)| sum | u8::from(*bit) << at);
        let _ = write!(text, "{digit:x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use veil_circuit::{Wire, make};

    fn verdict(a: &str, b: &str) -> Verdict {
        compare(&make(a).unwrap(), &make(b).unwrap(), 100).unwrap()
    }

    #[test]
    fn equal_circuits_agree_on_all_or_on_random_inputs() {
        assert!(matches!(
            verdict("adder:5", "adder-fast:5"),
            Verdict::Same {
                cases: 1024,
                all: true
            }
        ));
        assert!(matches!(
            verdict("adder:64", "adder-fast:64"),
            Verdict::Same {
                cases: 100,
                all: false
            }
        ));
    }

    #[test]
    fn circuits_of_integers_are_compared() {
        let same = verdict("int-max:64", "int-max:64");
        assert!(matches!(same, Verdict::Same { all: false, .. }));
        let Verdict::Differ(how) = verdict("int-max:64", "int-min:64") else {
            panic!("they differ")
        };
        assert!(how.starts_with("the input "), "{how}");
        let refused = compare(&make("int-max:64").unwrap(), &make("adder:1").unwrap(), 9);
        assert!(refused.is_err());
        let same = verdict("int-word:9", "int-low:9");
        assert!(matches!(same, Verdict::Same { all: false, .. }));
        let [exact, random] = ["int-half:20", "int-half-pr:20"].map(|name| make(name).unwrap());
        assert!(compare(&exact, &random, 9).is_err());
    }

    #[test]
    fn a_serial_circuit_is_compared_with_one_that_is_not() {
        let mut b = veil_circuit::Builder::new(Ring::Bits);
        b.cycles(5);
        let [x, y] = ["x", "y"].map(|name| b.input(name, 1, Per::Cycle)[0]);
        let carry = b.register(veil_circuit::Initial::Constant(false));
        let (of_x, of_y) = (b.xor(x, carry), b.xor(y, carry));
        let (both, sum) = (b.and(of_x, of_y), b.xor(x, of_y));
        let next = b.xor(both, carry);
        b.set_next(carry, next);
        b.output_every_cycle("sum", &[sum]);
        let serial = b.finish().unwrap();
        let same = compare(&serial, &make("adder:5").unwrap(), 9).unwrap();
        assert!(matches!(
            same,
            Verdict::Same {
                cases: 1024,
                all: true
            }
        ));
        let mut held = serial;
        held.clock.registers[0].next = Wire(2);
        let differ = compare(&held, &make("adder:5").unwrap(), 9).unwrap();
        assert!(matches!(differ, Verdict::Differ(_)));
    }

    #[test]
    fn a_difference_is_shown_with_its_input() {
        let Verdict::Differ(how) = verdict("lt:3", "lt-signed:3") else {
            panic!("they differ")
        };
        // 0 < 4 without a sign; with one, 4 is -4.
        assert_eq!(
            how,
            "the input 0x4 0x0 gives 0x0 in the first and 0x1 in the second"
        );
        assert!(matches!(verdict("adder:3", "adder:4"), Verdict::Differ(_)));
    }
}
