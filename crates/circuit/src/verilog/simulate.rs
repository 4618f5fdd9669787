//! Simulation of Verilog.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use super::Source;
use super::error::VerilogError;
use super::tools::{self, Tool};
use crate::yosys::Synthesis;
use crate::{Circuit, Per, Reduce};

/// A bit that a simulation puts out; none if it is undefined.
type Simulated = Option<bool>;

/// Runs a design, as Yosys has read it, on rows of values: `rows[row][port]` are the bits of an input port of the circuit that was made of it, of all cycles if
/// the port has a value in each. Returns the same of output ports; a bit that is undefined is none.
///
/// Each row has an instance of its own if the design has cycles, for it begins anew; otherwise one instance takes all rows.
///
/// # Errors
/// [`VerilogError::Simulation`] if the netlist does something that the simulator is not allowed, or the simulation stops or
/// prints something else than results; [`VerilogError::Elsewhere`] if the design reads a file outside the folders of its sources;
/// [`VerilogError::Missing`], [`VerilogError::Run`], [`VerilogError::TooLong`], [`VerilogError::TooMuch`],
/// [`VerilogError::Refused`] and [`VerilogError::Files`] if Yosys or the simulator does not run to its end.
pub fn simulate(
    source: &Source,
    made: &Synthesis,
    rows: &[Vec<Vec<bool>>],
) -> Result<Vec<Vec<Vec<Simulated>>>, VerilogError> {
    let circuit = &made.circuit;
    let shape = Shape::new(made, rows.len());
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir().map_err(VerilogError::Files)?;
    let path = |name: &str| folder.path().join(name);
    let [bench, design, values, program, place] =
        ["bench.v", "design.v", "values", "program", "place"].map(path);
    let text = test_bench(source, made, &shape, &values);
    let netlist = super::netlist(source)?;
    std::fs::write(&bench, text)
        .and_then(|()| std::fs::write(&design, netlist))
        .and_then(|()| std::fs::write(&values, vectors(circuit, &shape, rows)))
        .and_then(|()| std::fs::create_dir(&place))
        .map_err(VerilogError::Files)?;
    let mut arguments: Vec<OsString> = ["-g2012", "-s", BENCH, "-o"].map(Into::into).into();
    arguments.extend([program.clone().into(), bench.into(), design.into()]);
    Tool::Icarus.run(&arguments, source.time, None)?;
    let arguments = ["-n".into(), program.into()];
    let printed = Tool::Vvp.run(&arguments, source.time, Some(&place))?;
    let printed = String::from_utf8_lossy(&printed);
    results(circuit, &shape, rows.len(), &printed).map_err(|found| VerilogError::Simulation {
        top: source.top.clone(),
        found,
    })
}

/// The name of the module around the design: one that no design has.
const BENCH: &str = "veil_test_bench_of_design";
/// What a line with results begins with.
const MARK: &str = "veil:";

/// Instances of the design, and steps in which values are given to all of them.
struct Shape {
    clocked: bool,
    instances: usize,
    steps: usize,
    inputs: usize,
    outputs: usize,
}

impl Shape {
    fn new(made: &Synthesis, rows: usize) -> Self {
        let circuit = &made.circuit;
        // What has a clock is stepped, even if what it computes in one cycle has no registers.
        let clocked = circuit.is_sequential() || made.clock.is_some();
        let (instances, steps) = if clocked {
            (rows, circuit.clock.cycles as usize)
        } else {
            (1, rows)
        };
        Shape {
            clocked,
            instances,
            steps,
            inputs: circuit.input_wires() as usize,
            outputs: circuit.outputs.iter().map(|port| port.wires.len()).sum(),
        }
    }
}

/// A module that gives each instance its values and prints what comes out, step by step.
fn test_bench(source: &Source, made: &Synthesis, shape: &Shape, values: &Path) -> String {
    let circuit = &made.circuit;
    let mut ports = Vec::new();
    let mut at = 0;
    for port in &circuit.inputs {
        ports.push(format!(".\\{} (in[{at} +: {}])", port.name, port.width));
        at += port.width as usize;
    }
    at = 0;
    for port in &circuit.outputs {
        let width = port.wires.len();
        ports.push(format!(".\\{} (out[{at} +: {width}])", port.name));
        at += width;
    }
    let own = [(&made.clock, "clock"), (&made.reset, "reset")];
    for (port, signal) in own {
        if let Some((name, low)) = port {
            let not = if *low { "~" } else { "" };
            ports.push(format!(".\\{name} ({not}{signal})"));
        }
    }
    let &Shape {
        clocked: _,
        instances,
        steps,
        inputs,
        outputs,
    } = shape;
    // Without inputs there is one bit that no gate reads.
    let top = inputs.max(1) - 1;
    let mut text = String::new();
    let _ = write!(
        text,
        "module {BENCH};
  reg clock = 0, reset = 0, show = 0;
  integer step = 0;
  reg [{top}:0] values [0:{last}];
  genvar i;
  generate for (i = 0; i < {instances}; i = i + 1) begin : row
    wire [{top}:0] in = values[step * {instances} + i];
    wire [{outputs}-1:0] out;
    \\{design} dut({ports});
    always @(posedge show) $display(\"{MARK} %0d %0d %b\", step, i, out);
  end endgenerate
  initial begin
    $readmemb(\"{values}\", values);
    #1 reset = 1;
    #1 reset = 0;
    for (step = 0; step < {steps}; step = step + 1) begin
      #1 show = 1;
      #1 show = 0;
      clock = 1;
      #1 clock = 0;
    end
    $finish;
  end
endmodule
",
        last = instances * steps - 1,
        values = tools::quoted(values.as_os_str()),
        design = source.top,
        ports = ports.join(", "),
    );
    text
}

/// The values of all instances in each step, a line each, the first bit last.
fn vectors(circuit: &Circuit, shape: &Shape, rows: &[Vec<Vec<bool>>]) -> String {
    let mut text = String::new();
    for step in 0..shape.steps {
        for instance in 0..shape.instances {
            let (row, cycle) = if shape.clocked {
                (instance, step)
            } else {
                (step, 0)
            };
            let mut line = Vec::with_capacity(shape.inputs + 1);
            for (port, value) in circuit.inputs.iter().zip(&rows[row]) {
                let width = port.width as usize;
                let first = if port.per == Per::Cycle {
                    cycle * width
                } else {
                    0
                };
                line.extend(&value[first..first + width]);
            }
            if line.is_empty() {
                line.push(false);
            }
            text.extend(line.iter().rev().map(|&bit| if bit { '1' } else { '0' }));
            text.push('\n');
        }
    }
    text
}

/// Reads what was printed; returns the line that is no result.
fn results(
    circuit: &Circuit,
    shape: &Shape,
    rows: usize,
    printed: &str,
) -> Result<Vec<Vec<Vec<Simulated>>>, String> {
    let mut all = vec![Vec::new(); shape.steps * shape.instances];
    for line in printed.lines().filter(|line| line.starts_with(MARK)) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
        let place = number()
            .zip(number())
            .map(|(step, row)| step * shape.instances + row);
        let slot = place.and_then(|place| all.get_mut(place));
        let bits = words.next().filter(|bits| bits.len() == shape.outputs);
        let (Some(slot), Some(bits)) = (slot, bits) else {
            return Err(format!("`{line}`"));
        };
        *slot = (bits.bytes().rev())
            .map(|bit| match bit {
                b'0' => Some(false),
                b'1' => Some(true),
                _ => None,
            })
            .collect();
    }
    if all.iter().any(Vec::is_empty) && shape.outputs > 0 {
        return Err("a result is missing".into());
    }
    let of_row = |row: usize| {
        let mut at = 0;
        let ports = circuit.outputs.iter();
        ports
            .map(|port| {
                let bits = at..at + port.wires.len();
                at = bits.end;
                let steps = match (shape.clocked, port.reduce) {
                    (false, _) => row..row + 1,
                    (true, Reduce::EveryCycle) => 0..shape.steps,
                    (true, _) => shape.steps - 1..shape.steps,
                };
                let instance = if shape.clocked { row } else { 0 };
                steps
                    .flat_map(|step| &all[step * shape.instances + instance][bits.clone()])
                    .copied()
                    .collect()
            })
            .collect()
    };
    Ok((0..rows).map(of_row).collect())
}
