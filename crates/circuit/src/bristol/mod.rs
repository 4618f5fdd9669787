//! Bristol Fashion and the older Bristol Format, read and written; and a format of ours like it, with integers.
//!
//! A file is a header, then a gate per line. In Bristol Fashion:
//!
//! ```text
//! 1 3          gates, wires
//! 2 1 1        number of input values, bits of each
//! 1 1          number of output values, bits of each
//!
//! 2 1 0 1 2 AND
//! ```
//!
//! The older format has a second line `n1 n2 n3` instead: bits of the first party's input, of the second's, and of the
//! output. Inputs are the first wires, outputs the last, and gates come in topological order; `XOR`, `AND`, `INV`, and
//! in Bristol Fashion `EQ` (constant), `EQW` (copy) and `MAND` (several ANDs in one line). Which bit of a value comes
//! first is not in the file, and files in circulation differ: know it from where the file comes from.
//!
//! A file with integers modulo 2^64 or 2^128 has `integers 64` or `integers 128` at the end of its first line; the rest is as in Bristol
//! Fashion, where widths count integers. Its inputs and outputs are integers, and a wire is an integer or a bit, as its gate says:
//!
//! | gate | line | drives |
//! | --- | --- | --- |
//! | `ADD`, `SUB`, `MUL` | `2 1 a b z ADD` | the sum, difference or product of two integers |
//! | `PLUS`, `TIMES` | `2 1 a 7 z PLUS` | the sum or product of an integer and the constant 7, from 0 to 2^k - 1 |
//! | `CONST` | `1 1 7 z CONST` | the integer 7 |
//! | `SHIFT` | `2 1 a 3 z SHIFT` | an integer from 0 to 2^k - 1 divided by 2^3, rounded down |
//! | `SHIFTN` | `3 1 a 3 40 z SHIFTN` | the same of an integer from 0 to 2^40 - 1 |
//! | `BIT` | `2 1 a 3 z BIT` | bit 3 of an integer: a bit |
//! | `ZERO` | `2 1 a 3 z ZERO` | whether an integer is 0 modulo 2^3: a bit |
//! | `LIFT` | `1 1 a z LIFT` | a bit as the integer 0 or 1 |
//! | `APPEND` | `2 1 a b z APPEND` | 2a + b of an integer and a bit |
//! | `XOR`, `AND`, `INV`, `EQ`, `MAND` | as in Bristol Fashion | bits, of bits |
//! | `EQW` | `1 1 a z EQW` | a copy of either |
//!
//! A file of a sequential circuit has `sequential` and the number of cycles at the end of its first line, and declares its ports and
//! registers in lines of words; gates are as in Bristol Fashion. It keeps the names of ports, which may be of one cycle too:
//!
//! ```text
//! 4 8 sequential 32       gates, wires, cycles
//! input 1 cycle x         bits, how often there is a value (row, job or cycle), name
//! input 2 job start
//! output 1 cycle sum      bits, of every cycle or of the last one (cycle or last), name
//! register 6 1            next wire, and the first value: zero, one, or a wire of an input that is no other in every cycle
//!
//! 2 1 0 3 4 XOR
//! ...
//! ```
//!
//! The first wires are the inputs', then come the registers', both in the order of their lines; outputs are the last wires.
//!
//! Formats: S. Tillich, N. Smart, "Circuits of basic functions suitable for MPC and FHE" (old), and the "Bristol
//! Fashion" page of D. Archer, V. Arribas Abril, S. Lu, P. Maene, N. Mertens, D. Sijacic, N. Smart (new).
//!
//! ```
//! use veil_circuit::{bristol, Limits};
//!
//! let text = b"1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n";
//! let circuit = bristol::read(text, &Limits::default())?;
//! assert_eq!(circuit.evaluate(&[vec![1], vec![1]])?, [[1]]);
//!
//! let text = b"3 6 integers 64\n2 1 2\n1 1\n\n2 1 0 1 3 MUL\n2 1 2 7 4 PLUS\n2 1 3 4 5 SUB\n";
//! let circuit = bristol::read(text, &Limits::default())?;
//! assert_eq!(circuit.evaluate(&[vec![6], vec![9, 40]])?, [[6 * 9 - 47]]);
//!
//! let error = bristol::read(b"1 3\n2 1 1\n1 1\n2 1 0 7 2 AND\n", &Limits::default()).unwrap_err();
//! assert_eq!((error.line, error.column), (4, 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::Limits;

mod declared;
mod error;
mod gates;
mod header;
mod read;
mod scan;
mod write;

pub use error::{ParseError, ParseErrorKind};
pub use read::{detect, read};
pub use write::{WriteError, write};

/// Which of the formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flavour {
    /// Bristol Fashion: any number of input and output values.
    Fashion,
    /// The older Bristol Format: one or two inputs, one output, and only `XOR`, `AND`, `INV`.
    Old,
    /// Like Bristol Fashion, with integers as well as bits.
    Integers,
    /// Like Bristol Fashion, with registers, cycles, and names of ports.
    Sequential,
}

/// The body of the fuzz target: reads `text`, and checks the circuit. Returns whether it was a circuit.
///
/// # Panics
/// If a promise of this module is broken.
#[doc(hidden)]
pub fn fuzz(text: &[u8]) -> bool {
    // Small enough that a run of the fuzzer needs little memory for any input.
    let limits = Limits {
        gates: 1 << 16,
        wires: 1 << 17,
        ports: 64,
        output_wires: 1 << 16,
        cycles: 16,
        value_bits: 1 << 17,
    };
    let Ok(circuit) = read(text, &limits) else {
        return false;
    };
    circuit
        .validate_within(&limits)
        .expect("what is read is valid");
    let flavour = match circuit.ring {
        veil_math::Ring::Bits if circuit.is_sequential() => Flavour::Sequential,
        veil_math::Ring::Bits => Flavour::Fashion,
        _ => Flavour::Integers,
    };
    let mut fashion = Vec::new();
    match write(&circuit, flavour, &mut fashion) {
        // A name that was cut out of its line.
        Err(WriteError::Name(_)) => return true,
        written => written.expect("what is read can be written"),
    }
    let copies = Limits {
        gates: 1 << 18,
        wires: 1 << 19,
        ..limits
    };
    let again = read(&fashion, &copies).expect("what is written can be read");
    let zeros: Vec<Vec<u128>> = circuit
        .inputs
        .iter()
        .map(|port| vec![0; port.value_width(circuit.clock.cycles) as usize])
        .collect();
    assert_eq!(
        circuit.evaluate(&zeros),
        again.evaluate(&zeros),
        "writing and reading keeps the meaning"
    );
    true
}
