//! Bristol Fashion and the older Bristol Format, read and written.
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
//! let error = bristol::read(b"1 3\n2 1 1\n1 1\n2 1 0 7 2 AND\n", &Limits::default()).unwrap_err();
//! assert_eq!((error.line, error.column), (4, 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::Limits;

mod error;
mod header;
mod read;
mod scan;
mod write;

pub use error::{ParseError, ParseErrorKind};
pub use read::{detect, read};
pub use write::{WriteError, write};

/// Which of the two formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flavour {
    /// Bristol Fashion: any number of input and output values.
    Fashion,
    /// The older Bristol Format: one or two inputs, one output, and only `XOR`, `AND`, `INV`.
    Old,
}

/// The body of the fuzz target: reads `text`, and checks what was read. Returns whether it was a circuit.
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
    };
    let Ok(circuit) = read(text, &limits) else {
        return false;
    };
    circuit
        .validate_within(&limits)
        .expect("what is read is valid");
    let mut fashion = Vec::new();
    write(&circuit, Flavour::Fashion, &mut fashion).expect("what is read can be written");
    let copies = Limits {
        gates: 1 << 18,
        wires: 1 << 19,
        ..limits
    };
    let again = read(&fashion, &copies).expect("what is written can be read");
    let zeros: Vec<Vec<u128>> = circuit
        .inputs
        .iter()
        .map(|port| vec![0; port.width as usize])
        .collect();
    assert_eq!(
        circuit.evaluate(&zeros),
        again.evaluate(&zeros),
        "writing and reading keeps the meaning"
    );
    true
}
