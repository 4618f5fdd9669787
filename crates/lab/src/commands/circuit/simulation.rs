//! Whether a simulation of Verilog agrees with a circuit.

use veil_circuit::verilog::{self, Comparison, Source};
use veil_circuit::yosys::Synthesis;
use veil_circuit::{Circuit, Per};
use veil_cli::commands::circuit::verilog::failure;
use veil_cli::failure::{Code, Failure};

/// Rows that are simulated at most: a simulator is slow.
const ROWS: u32 = 1000;
/// Bits that all rows have at most.
const BITS: u64 = 1 << 23;
/// Inputs of so few bits are all tried.
const EXHAUSTIVE: u64 = 10;

/// Compares a simulation of Verilog with a circuit; returns a line that says that they agree.
pub(super) fn simulate(
    (source, made): &(Source, Synthesis),
    circuit: &Circuit,
    what: &str,
    cases: u32,
) -> Result<String, Failure> {
    let bits: u64 = (0..made.circuit.inputs.len())
        .map(|port| made.circuit.input_width(port))
        .sum();
    let all = bits <= EXHAUSTIVE;
    let rows = values(&made.circuit, cases)?;
    match verilog::compare(source, made, circuit, &rows).map_err(|error| failure(&error))? {
        Comparison::Same { rows, undefined } => {
            let undefined = match undefined {
                0 => String::new(),
                bits => format!("; {bits} bits of it are undefined (x), where any value is right"),
            };
            let (top, all) = (&source.top, if all { "all " } else { "" });
            Ok(format!(
                "a simulation of `{top}` agrees with {what} on {all}{rows} inputs{undefined}\n"
            ))
        }
        Comparison::Differ {
            row,
            port,
            circuit,
            simulated,
        } => {
            let known = |bits: &[bool]| text(&bits.iter().copied().map(Some).collect::<Vec<_>>());
            let given: Vec<String> = rows[row].iter().map(|bits| known(bits)).collect();
            let message = format!(
                "a simulation of `{}` and {what} differ: of {}, `{port}` is {} in the simulation and {} in the circuit",
                source.top,
                given.join(" "),
                text(&simulated),
                known(&circuit),
            );
            Err(Failure::new(Code::Check, message))
        }
    }
}

/// A value in hexadecimal, the most significant digit first; a digit of which a bit is undefined is x.
fn text(bits: &[Option<bool>]) -> String {
    let digit = |digit: &[Option<bool>]| {
        let value = digit
            .iter()
            .rev()
            .try_fold(0, |sum, bit| Some(2 * sum + u32::from((*bit)?)));
        value
            .and_then(|value| char::from_digit(value, 16))
            .unwrap_or('x')
    };
    let digits: String = bits.chunks(4).rev().map(digit).collect();
    format!("0x{digits}")
}

/// All inputs, if they are few; otherwise edges (zeros, ones, the lowest and the highest bit alone) and random ones.
fn values(circuit: &Circuit, cases: u32) -> Result<Vec<Vec<Vec<bool>>>, Failure> {
    let widths: Vec<u64> = (0..circuit.inputs.len())
        .map(|port| circuit.input_width(port))
        .collect();
    let outputs = (0..circuit.outputs.len()).map(|port| circuit.output_width(port));
    let bits = widths.iter().sum::<u64>();
    // Values that are the same in all cycles are given anew in each.
    let repeated = (circuit.inputs.iter().filter(|port| port.per != Per::Cycle))
        .map(|port| u64::from(port.width).saturating_mul(circuit.clock.cycles));
    let each = bits
        .saturating_add(outputs.sum())
        .saturating_add(repeated.sum())
        .max(1);
    let rows = if bits <= EXHAUSTIVE {
        1 << bits
    } else {
        u64::from(cases.min(ROWS)).min(BITS / each).max(1)
    };
    let mut all = Vec::new();
    for row in 0..rows {
        let mut random = vec![0; bits as usize];
        getrandom::fill(&mut random).map_err(|error| {
            let message = format!("the operating system gives no randomness: {error}");
            Failure::new(Code::Other, message)
        })?;
        let mut place = 0;
        let mut values = Vec::new();
        for (port, &width) in widths.iter().enumerate() {
            let first = place;
            place += width;
            let edge = row >> (2 * port % 6) & 3;
            let bit = |at: u64| match edge {
                _ if bits <= EXHAUSTIVE => row >> (first + at) & 1 == 1,
                _ if row >= 64 => random[(first + at) as usize] & 1 == 1,
                0 => false,
                1 => true,
                2 => at == 0,
                _ => at + 1 == width,
            };
            values.push((0..width).map(bit).collect());
        }
        all.push(values);
    }
    Ok(all)
}
