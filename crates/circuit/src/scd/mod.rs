//! SCD: the netlists of TinyGarble, read.
//!
//! A file is numbers between blanks. The first line says how many there are of everything, in one of three forms:
//!
//! ```text
//! g_init e_init g_input e_input dff output gate
//! p_init g_init e_init p_input g_input e_input dff output gate
//! p_init g_init e_init p_input g_input e_input dff output terminate_id gate
//! ```
//!
//! Then come six lists: the first operand of every gate, the second, its type; the outputs; of every flip-flop D, its next value, and I, its
//! first one. Wires are numbered as the header names them: initial inputs, inputs of every cycle, flip-flops, gates. -2 and -3 are the
//! constants 0 and 1, and -1 is no wire. The type of a gate is its truth table, bit 2a + b the value for operands a and b; 12 is the negation
//! of a.
//!
//! A file does not say how many cycles there are, nor whether outputs count in every cycle or in the last: the caller of [`read`](fn@read)
//! does. Gates may come in any order, unless they form a cycle. Ports are called as in the header, without ports of no bits, and the output
//! `output`. A circuit that ends when a wire says so (`terminate_id`) is refused: when it ends would say what its values are.
//!
//! Format: E. Songhori, S. Hussain, A.-R. Sadeghi, T. Schneider, F. Koushanfar, "TinyGarble: Highly Compressed and Scalable Sequential
//! Garbled Circuits", 2015, and the programs that came with it.
//!
//! ```
//! use veil_circuit::{Limits, Reduce, scd};
//!
//! // A serial adder: one bit of each number in every cycle, and a flip-flop for the carry.
//! let text = b"0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";
//! let circuit = scd::read(text, 4, Reduce::EveryCycle, &Limits::default())?;
//! let (five, six) = (vec![1, 0, 1, 0], vec![0, 1, 1, 0]);
//! assert_eq!(circuit.evaluate(&[five, six])?, [[1, 1, 0, 1]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod netlist;
mod read;
mod tokens;

use crate::{Limits, Reduce};

pub use netlist::{Gate, Kind, Netlist, Operand, netlist};
pub use read::read;

/// The body of the fuzz target: reads `text`, and checks the circuit. Returns whether it was a circuit.
///
/// # Panics
/// If a promise of this module is broken.
#[doc(hidden)]
pub fn fuzz(text: &[u8]) -> bool {
    // Small enough that a run of the fuzzer needs little memory for any input.
    let limits = Limits {
        gates: 1 << 14,
        wires: 1 << 15,
        ports: 8,
        output_wires: 1 << 12,
        cycles: 4,
        value_bits: 1 << 16,
    };
    let Ok(circuit) = read(text, 3, Reduce::EveryCycle, &limits) else {
        return false;
    };
    circuit
        .validate_within(&limits)
        .expect("what is read is valid");
    let netlist = netlist(text, &limits).expect("a circuit is a netlist");
    let tables = |ands: usize, gate: &Gate| ands + usize::from(matches!(gate.kind, Kind::And(_)));
    let muls = circuit
        .gates
        .iter()
        .filter(|gate| matches!(gate, crate::Gate::Mul(..)));
    assert_eq!(
        netlist.gates.iter().fold(0, tables),
        muls.count(),
        "an AND is one product"
    );
    let zeros: Vec<Vec<u128>> = (0..circuit.inputs.len())
        .map(|port| vec![0; circuit.input_width(port) as usize])
        .collect();
    let simple = crate::simplify(&circuit);
    assert_eq!(
        circuit.evaluate(&zeros),
        simple.evaluate(&zeros),
        "simplifying keeps the meaning"
    );
    true
}
