//! Why Verilog gives no circuit, or no comparison.

use std::time::Duration;

use crate::yosys::YosysError;

/// Why Verilog gives no circuit, or no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerilogError {
    /// A program is missing.
    #[error("{program} is not installed; as root: apt-get install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package of Debian and Ubuntu that has it.
        package: &'static str,
    },
    /// A program could not be run.
    #[error("{program} cannot be run: {error}")]
    Run {
        /// The program.
        program: &'static str,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// A program ran for too long.
    #[error(
        "{program} ran for more than {} s and was ended: allow it more, or ask for less",
        .time.as_secs_f64()
    )]
    TooLong {
        /// The program.
        program: &'static str,
        /// How long it may run.
        time: Duration,
    },
    /// A program printed too much.
    #[error(
        "{program} printed more than {bytes} bytes and was ended: let the design print less, or split it"
    )]
    TooMuch {
        /// The program.
        program: &'static str,
        /// How much it may print.
        bytes: u64,
    },
    /// A program refused.
    #[error("{message}")]
    Refused {
        /// The program.
        program: &'static str,
        /// Its message.
        message: String,
    },
    /// Nothing to take.
    #[error("no module can be the top one: there is none, or each is an instance in another")]
    NoTop,
    /// Several modules are instances of no other.
    #[error("each of {} could be the top module; choose one by --top", .0.join(", "))]
    SeveralTops(Vec<String>),
    /// Not a name of a module.
    #[error("`{0}` is no name of a module: letters, digits, _ and $")]
    BadName(String),
    /// No circuit.
    #[error(transparent)]
    Yosys(#[from] YosysError),
    /// A file for the simulator.
    #[error("cannot write the simulator's files: {0}")]
    Files(std::io::Error),
    /// The design reads a file that did not come with it.
    #[error(
        "{place}the design reads `{name}`, which is not beside it: a design may read files in its own folder or below, none of which is hidden; put there what it needs"
    )]
    Elsewhere {
        /// File and line, where they are known.
        place: String,
        /// The file.
        name: String,
    },
    /// The simulation stopped, or said something else than results.
    #[error("the simulation of `{top}` ended early or printed something itself: {found}")]
    Simulation {
        /// The top module.
        top: String,
        /// The output in the place of results.
        found: String,
    },
}
