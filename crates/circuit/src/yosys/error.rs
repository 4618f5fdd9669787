//! Defects of a design.

use crate::CircuitError;

/// Where a design is wrong, and how.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{kind}", source_prefix(.place.as_ref()))]
#[non_exhaustive]
pub struct YosysError {
    /// File and line of the Verilog, `design.v:12`, where Yosys knows them.
    pub place: Option<String>,
    /// The defect.
    pub kind: YosysErrorKind,
}

fn source_prefix(place: Option<&String>) -> String {
    place.map_or(String::new(), |place| format!("{place}: "))
}

/// A defect of a design.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum YosysErrorKind {
    /// Not the format.
    #[error("this is not what Yosys' write_json writes: {0}")]
    Json(String),
    /// There is nothing to take.
    #[error("the design has no module {}; it has {}", module_name(.wanted.as_ref()), list(.modules))]
    NoTop {
        /// The module asked for, if one was.
        wanted: Option<String>,
        /// Modules that there are.
        modules: Vec<String>,
    },
    /// Several modules are instances of no other.
    #[error("each of {} could be the top module; choose one by --top", list(.0))]
    SeveralTops(Vec<String>),
    /// More than the limits allow.
    #[error("{found} {what} are more than the limit of {limit}; split the design")]
    TooLarge {
        /// The counted items.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// Storage without a clock.
    #[error(
        "`{signal}` keeps its value when no branch assigns it, which is a latch; assign it in every branch, or in a clocked process"
    )]
    Latch {
        /// The signal that it stores.
        signal: String,
    },
    /// A clock that is no input.
    #[error(
        "the clock `{signal}` is computed; registers need an input of one bit as their clock, and choose by a condition whether they change"
    )]
    Clock {
        /// The clock.
        signal: String,
    },
    /// Registers with several clocks.
    #[error("registers have two clocks, `{}` and `{}`; a netlist cycle is a period of one", .clocks[0], .clocks[1])]
    TwoClocks {
        /// Two of them.
        clocks: [String; 2],
    },
    /// Registers at both edges of their clock.
    #[error("registers change at both edges of clock `{clock}`; use one edge")]
    TwoEdges {
        /// The clock.
        clock: String,
    },
    /// An asynchronous reset that is not the start.
    #[error(
        "the asynchronous reset `{signal}` is not the one input of the design that sets first values; make other resets synchronous"
    )]
    Reset {
        /// The reset.
        signal: String,
    },
    /// A clock or reset that is computed with.
    #[error("port `{port}` is a {what} and a value at once; use it for registers alone")]
    UsedAsValue {
        /// The port.
        port: String,
        /// `clock` or `reset`.
        what: &'static str,
    },
    /// A first value that is computed.
    #[error(
        "register `{signal}` begins as a value that is computed; it may begin as a constant or as an input"
    )]
    Load {
        /// The register.
        signal: String,
    },
    /// A register without a known first value.
    #[error(
        "register `{signal}` has no first value; give it one by `initial`, or by an asynchronous reset to a constant or an input"
    )]
    NoInitial {
        /// The register.
        signal: String,
    },
    /// A clocked design without an end.
    #[error(
        "the design has registers; say for how many cycles it runs: --cycles N, or (* cycles = N *) before the module"
    )]
    NoCycles,
    /// A module or primitive without a definition.
    #[error("`{0}` is a black box: its definition is in none of the files")]
    BlackBox(String),
    /// A cell that has no meaning here.
    #[error("Yosys made this a cell `{0}`, which cannot be computed here; write it in other words")]
    UnknownCell(String),
    /// An undefined value.
    #[error(
        "`{signal}` can be undefined (x) and a result depends on it; give it a value in every case"
    )]
    Undefined {
        /// The undefined signal.
        signal: String,
    },
    /// A value without a driver.
    #[error(
        "`{signal}` can be high impedance (z), which a circuit of gates has not; choose by a condition instead"
    )]
    HighImpedance {
        /// The signal without a driver.
        signal: String,
    },
    /// A port in both directions.
    #[error("port `{0}` is an inout; make it an input and an output")]
    InOut(String),
    /// Two drivers.
    #[error("`{signal}` is driven twice; give it one driver")]
    DrivenTwice {
        /// The signal.
        signal: String,
    },
    /// No driver.
    #[error("`{signal}` is never given a value, and a result depends on it; assign it")]
    Undriven {
        /// The signal without a driver.
        signal: String,
    },
    /// A value that depends on itself.
    #[error("`{signal}` depends on itself in the same cycle; break the loop by a register")]
    Loop {
        /// A signal of the loop.
        signal: String,
    },
    /// A cell that is not as its type says.
    #[error("cell `{cell}` of type `{kind}` has {what}; this is not what Yosys' write_json writes")]
    Cell {
        /// Its name.
        cell: String,
        /// Its type.
        kind: String,
        /// The defect.
        what: &'static str,
    },
    /// An attribute that says something else than it can.
    #[error("attribute `{name}` is {found}; write {expected}")]
    Attribute {
        /// Which.
        name: &'static str,
        /// Its value.
        found: String,
        /// The values that it may have.
        expected: &'static str,
    },
    /// The design is fine, the circuit is not.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
}

fn module_name(wanted: Option<&String>) -> String {
    match wanted {
        Some(name) => format!("`{name}`"),
        None => "that could be synthesized".into(),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
