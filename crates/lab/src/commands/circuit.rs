//! `veil-lab circuit`: whether circuits compute what they should.

mod compare;
mod simulation;

use veil_circuit::Circuit;
use veil_cli::commands::circuit::verilog::{self, is_verilog};
use veil_cli::commands::circuit::{AFTER_HELP, CircuitCommand, Clocked, load, run_one};
use veil_cli::failure::{Code, Failure};
use veil_cli::output;

/// What `veil circuit` does, and checks.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum Circuits {
    #[command(flatten)]
    Circuit(CircuitCommand),
    /// Validate a circuit; with a second one, compare what they compute; of Verilog, simulate it, too
    Check {
        /// The circuit.
        circuit: String,
        /// Another one.
        other: Option<String>,
        #[command(flatten)]
        clocked: Clocked,
        /// Random inputs to compare on; few inputs are all tried.
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        cases: u32,
    },
}

pub(crate) fn run(command: &Circuits) -> Result<(), Failure> {
    match command {
        Circuits::Circuit(command) => run_one(command),
        Circuits::Check {
            circuit,
            other,
            clocked,
            cases,
        } => check(circuit, other.as_deref(), clocked, *cases),
    }
}

fn check(name: &str, other: Option<&str>, clocked: &Clocked, cases: u32) -> Result<(), Failure> {
    let circuit = load(name, clocked)?;
    let simulated = |verilog: &str, circuit: &Circuit, what: &str| {
        if !is_verilog(verilog) {
            return Ok(());
        }
        let made = verilog::load(verilog, clocked)?;
        output::print(&simulation::simulate(&made, circuit, what, cases)?)
    };
    let Some(other) = other else {
        simulated(name, &circuit, "its circuit")?;
        return output::print(&format!("{name} is a valid circuit: {}\n", circuit.stats()));
    };
    let second = load(other, clocked)?;
    let verdict = compare::compare(&circuit, &second, cases)?;
    if matches!(verdict, compare::Verdict::Same { .. }) {
        simulated(name, &second, other)?;
        simulated(other, &circuit, name)?;
    }
    match verdict {
        compare::Verdict::Same { cases, all: true } => output::print(&format!(
            "the same: {name} and {other} agree on all {cases} inputs\n"
        )),
        compare::Verdict::Same { cases, all: false } => output::print(&format!(
            "no difference found: {name} and {other} agree on {cases} random inputs\n"
        )),
        compare::Verdict::Differ(how) => Err(Failure::new(
            Code::Check,
            format!("{name} and {other} differ: {how}"),
        )),
    }
}
