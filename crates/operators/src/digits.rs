//! Circuits that find the position of every row by one digit of its key.
//!
//! Of a digit t of L bits the indicators e_t are bits; E_t are they as integers, S_t\[j\] counts the rows with digit t before row j, and those with a
//! smaller digit anywhere. Then row j belongs at Σ E_t\[j\] · S_t\[j\]: a stable sort by counting.

use veil_circuit::{Circuit, Clock, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_math::Ring;

/// Builds a circuit over integers.
struct Writer {
    inputs: Vec<InputPort>,
    wires: u32,
    gates: Vec<Gate>,
    outputs: Vec<OutputPort>,
}

impl Writer {
    fn new(inputs: Vec<InputPort>) -> Self {
        Writer {
            wires: inputs.iter().map(|port| port.width).sum(),
            inputs,
            gates: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn gate(&mut self, gate: Gate) -> Wire {
        self.gates.push(gate);
        self.wires += 1;
        Wire(self.wires - 1)
    }

    fn output(&mut self, name: String, wire: Wire) {
        self.outputs.push(OutputPort {
            name,
            wires: vec![wire],
            reduce: Reduce::None,
        });
    }

    fn finish(self) -> Circuit {
        Circuit {
            ring: Ring::Z32,
            inputs: self.inputs,
            gates: self.gates,
            outputs: self.outputs,
            clock: Clock::default(),
        }
    }
}

fn port(name: String, width: u32, bits: bool) -> InputPort {
    InputPort {
        name,
        width,
        per: Per::Row,
        bits,
    }
}

/// From the `bits` bits of a digit to the indicators E_t of all digits but 0, as integers.
pub(crate) fn indicators(bits: u32) -> Circuit {
    let mut circuit = Writer::new(vec![port("digit".into(), bits, true)]);
    let all = 1usize << bits;
    // The product of the bits of each set, of which single bits are the inputs; the last one of a set is multiplied with the product of the others, those
    // halves of a set apart, so that there are as few rounds as can be.
    let mut products = vec![Wire(0); all];
    for set in 1..all {
        products[set] = match set.count_ones() {
            1 => Wire(set.trailing_zeros()),
            size => {
                let mut low = 0;
                for bit in (0..bits)
                    .filter(|bit| set >> bit & 1 == 1)
                    .take(size as usize / 2)
                {
                    low |= 1 << bit;
                }
                circuit.gate(Gate::Mul(products[low], products[set ^ low]))
            }
        };
    }
    for digit in 1..all {
        // Π b_i Π (1 + b_k) is the sum of the products of all sets that contain the digit.
        let mut others = (digit + 1..all).filter(|set| set & digit == digit);
        let first = products[digit];
        let sum = others.try_fold(first, |sum, set| {
            Some::<Wire>(circuit.gate(Gate::Add(sum, products[set])))
        });
        let lifted = circuit.gate(Gate::Lift(sum.unwrap_or(first)));
        circuit.output(format!("e{digit}"), lifted);
    }
    circuit.finish()
}

/// From E_t and S_t of all digits but 0, and the number that Σ S_t is subtracted from for S_0, to the position of the row.
pub(crate) fn position(bits: u32) -> Circuit {
    let digits = (1u32 << bits) - 1;
    let each = |name: &str| -> Vec<InputPort> {
        (1..=digits)
            .map(|digit| port(format!("{name}{digit}"), 1, false))
            .collect()
    };
    let mut inputs = each("e");
    inputs.extend(each("s"));
    inputs.push(port("first".into(), 1, false));
    let mut circuit = Writer::new(inputs);
    let (e, s) = (|digit: u32| Wire(digit), |digit: u32| Wire(digits + digit));
    let mut zero = Wire(2 * digits);
    for digit in 0..digits {
        zero = circuit.gate(Gate::Sub(zero, s(digit)));
    }
    // Σ E_t S_t with E_0 = 1 - Σ E_t.
    let mut sum = None;
    for digit in 0..digits {
        let more = circuit.gate(Gate::Sub(s(digit), zero));
        let product = circuit.gate(Gate::Mul(e(digit), more));
        sum = Some(match sum {
            None => product,
            Some(sum) => circuit.gate(Gate::Add(sum, product)),
        });
    }
    let position = match sum {
        Some(sum) => circuit.gate(Gate::Add(sum, zero)),
        None => zero,
    };
    circuit.output("position".into(), position);
    circuit.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_indicator_is_one() {
        for bits in 1..=4 {
            let circuit = indicators(bits);
            circuit.validate().unwrap();
            let products = circuit.gates.iter().filter(|g| matches!(g, Gate::Mul(..)));
            assert_eq!(products.count(), (1 << bits) - bits as usize - 1);
            for digit in 0..1u128 << bits {
                let input = (0..bits).map(|bit| digit >> bit & 1).collect();
                let found = circuit.evaluate(&[input]).unwrap();
                let want: Vec<Vec<u128>> = (1..1 << bits)
                    .map(|other| vec![u128::from(digit == other)])
                    .collect();
                assert_eq!(found, want);
            }
        }
    }

    #[test]
    fn a_position_is_that_of_its_digit() {
        for bits in 1..=3 {
            let circuit = position(bits);
            circuit.validate().unwrap();
            let digits = (1u128 << bits) - 1;
            let starts: Vec<u128> = (0..=digits).map(|digit| 100 * digit + 7).collect();
            let first = starts.iter().sum();
            for digit in 0..=digits {
                let mut inputs: Vec<Vec<u128>> = (1..=digits)
                    .map(|other| vec![u128::from(digit == other)])
                    .collect();
                inputs.extend(starts[1..].iter().map(|s| vec![*s]));
                inputs.push(vec![first]);
                let found = circuit.evaluate(&inputs).unwrap();
                assert_eq!(found, [[starts[digit as usize]]]);
            }
        }
    }
}
