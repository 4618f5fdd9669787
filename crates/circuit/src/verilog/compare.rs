//! Do a circuit and a simulation of its Verilog agree?

use super::Source;
use super::error::VerilogError;
use super::simulate::simulate;
use crate::yosys::Synthesis;
use crate::{Circuit, EvaluateError};

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// No difference.
    Same {
        /// Rows compared.
        rows: usize,
        /// Bits that the simulation leaves undefined, where any value is right.
        undefined: u64,
    },
    /// A difference.
    Differ {
        /// The row.
        row: usize,
        /// The output.
        port: String,
        /// The circuit's value.
        circuit: Vec<bool>,
        /// The simulation's value.
        simulated: Vec<Option<bool>>,
    },
}

/// Evaluates a circuit and simulates the Verilog on rows of values (see [`simulate()`]). `made` is the synthesis of the Verilog; `circuit`
/// is its circuit, or another one with ports of the same widths.
///
/// # Errors
/// [`VerilogError`] as of [`simulate()`]; [`VerilogError::Simulation`] if `rows` do not fit the ports of `circuit`. A difference
/// is no error, but [`Comparison::Differ`].
pub fn compare(
    source: &Source,
    made: &Synthesis,
    circuit: &Circuit,
    rows: &[Vec<Vec<bool>>],
) -> Result<Comparison, VerilogError> {
    let simulated = simulate(source, made, rows)?;
    let evaluated = evaluate(circuit, rows).map_err(|error| VerilogError::Simulation {
        top: source.top.clone(),
        found: error.to_string(),
    })?;
    let mut undefined = 0;
    for (row, (simulated, evaluated)) in simulated.into_iter().zip(evaluated).enumerate() {
        let ports = circuit.outputs.iter().zip(simulated).zip(evaluated);
        for ((port, simulated), evaluated) in ports {
            let fits = |(bit, other): (&Option<bool>, &bool)| bit.is_none_or(|bit| bit == *other);
            if simulated.len() != evaluated.len() || !simulated.iter().zip(&evaluated).all(fits) {
                return Ok(Comparison::Differ {
                    row,
                    port: port.name.clone(),
                    circuit: evaluated,
                    simulated,
                });
            }
            undefined += simulated.iter().filter(|bit| bit.is_none()).count() as u64;
        }
    }
    Ok(Comparison::Same {
        rows: rows.len(),
        undefined,
    })
}

/// Evaluates a circuit of bits on rows of values.
fn evaluate(
    circuit: &Circuit,
    rows: &[Vec<Vec<bool>>],
) -> Result<Vec<Vec<Vec<bool>>>, EvaluateError> {
    let mut circuit = circuit.clone();
    for port in &mut circuit.inputs {
        if port.per == crate::Per::Job {
            port.per = crate::Per::Row;
        }
    }
    let stride = rows.len().div_ceil(8);
    let packed: Vec<Vec<u8>> = (0..circuit.inputs.len())
        .map(|port| {
            let bits = rows.first().map_or(0, |row| row[port].len());
            let mut packed = vec![0; bits * stride];
            for (number, row) in rows.iter().enumerate() {
                for (bit, _) in row[port].iter().enumerate().filter(|(_, bit)| **bit) {
                    packed[bit * stride + number / 8] |= 1 << (number % 8);
                }
            }
            packed
        })
        .collect();
    let columns: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
    let outputs = circuit.evaluate_batch(rows.len() as u64, &columns)?;
    let of_row = |row: usize| {
        let bit = |column: &[u8]| column[row / 8] >> (row % 8) & 1 == 1;
        let port = |packed: &Vec<u8>| packed.chunks_exact(stride).map(bit).collect();
        outputs.iter().map(port).collect()
    };
    Ok((0..rows.len()).map(of_row).collect())
}
