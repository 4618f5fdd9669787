//! Defects of a file.

use crate::CircuitError;

/// Where a file is wrong, and how.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
#[non_exhaustive]
pub struct ParseError {
    /// Line of the file, from 1.
    pub line: u64,
    /// Byte in the line, from 1.
    pub column: u64,
    /// The defect.
    pub kind: ParseErrorKind,
}

/// A defect of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Something else stands where a number should.
    #[error("expected {expected}, found `{found}`")]
    NotANumber {
        /// The meaning of the number.
        expected: &'static str,
        /// The text found, shortened.
        found: String,
    },
    /// The line ends too early.
    #[error("the line ends where {expected} should follow")]
    LineEnds {
        /// The missing field.
        expected: &'static str,
    },
    /// The file ends too early.
    #[error(
        "the file ends where {expected} should follow; it was cut off, or its header counts too many"
    )]
    FileEnds {
        /// The missing line.
        expected: String,
    },
    /// A line goes on after its last field.
    #[error("`{found}` follows the end of the {after}; remove it, or correct the counts before it")]
    LineGoesOn {
        /// The text found, shortened.
        found: String,
        /// The contents of the line.
        after: &'static str,
    },
    /// The file goes on after its last gate.
    #[error(
        "`{found}` follows the last of {gates} gates; remove it, or correct the gate count in line 1"
    )]
    FileGoesOn {
        /// The text found, shortened.
        found: String,
        /// Gates that the header declares.
        gates: u64,
    },
    /// More than the limits allow.
    #[error(
        "{found} {what} are more than the limit of {limit}; split the circuit, or raise the limit at every party"
    )]
    TooLarge {
        /// The counted items.
        what: &'static str,
        /// How many the file declares.
        found: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// Inputs or outputs have more bits than the header has wires.
    #[error("the {what} take {found} wires, but line 1 declares {wires}; correct one of them")]
    Widths {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// Sum of the widths.
        found: u64,
        /// Wires that the header declares.
        wires: u64,
    },
    /// A value without bits.
    #[error("a value of 0 bits; leave it out, and lower the number of values")]
    EmptyValue,
    /// A gate name that the format does not have.
    #[error("unknown gate `{found}`; {known}")]
    UnknownGate {
        /// The name found, shortened.
        found: String,
        /// The names that there are.
        known: &'static str,
    },
    /// A gate with the wrong number of inputs or outputs.
    #[error("a gate {gate} has {shape}, not {inputs} and {outputs}")]
    Arity {
        /// The gate.
        gate: &'static str,
        /// The inputs and outputs that it should have.
        shape: &'static str,
        /// Inputs it declares.
        inputs: u64,
        /// Outputs it declares.
        outputs: u64,
    },
    /// A constant that is not a bit.
    #[error("{found} is not a bit; an EQ gate takes the constant 0 or 1")]
    NotABit {
        /// The number found.
        found: u64,
    },
    /// A ring that there is not.
    #[error("integers of {found} bits are not known; write `integers 64` or `integers 128`")]
    NoRing {
        /// The number found.
        found: u64,
    },
    /// A constant beyond the ring.
    #[error(
        "`{found}` is no element of the ring; write a number from 0 to 2^{bits} - 1, a negative one as what it is modulo 2^{bits}"
    )]
    NoElement {
        /// The text found, shortened.
        found: String,
        /// Bits of an element.
        bits: u32,
    },
    /// A number of bits, or of a bit, that an integer does not have.
    #[error("{found} is beyond the integers of this file; a gate {gate} takes {least} to {most}")]
    NoSuchBit {
        /// The gate.
        gate: &'static str,
        /// The number found.
        found: u64,
        /// The smallest that there is.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A gate over bits reads an integer, or the other way round.
    #[error(
        "wire {wire} is {}",
        if *bit { "a bit, and this gate is over integers; lift it first (LIFT)" }
        else { "an integer, and this gate is over bits; take one of its bits first (BIT)" }
    )]
    OtherRing {
        /// The wire.
        wire: u64,
        /// Whether it is a bit.
        bit: bool,
    },
    /// A wire that does not exist.
    #[error("wire {wire} does not exist; line 1 declares wires 0 to {last}")]
    NoSuchWire {
        /// The wire.
        wire: u64,
        /// The last wire.
        last: u64,
    },
    /// A wire is read before it is driven.
    #[error("wire {wire} is read before any gate drives it; put gates in topological order")]
    NotYetDriven {
        /// The wire.
        wire: u64,
    },
    /// A wire is driven twice.
    #[error(
        "wire {wire} is already driven, by an input or an earlier gate; give each gate its own output wire"
    )]
    DrivenTwice {
        /// The wire.
        wire: u64,
    },
    /// The counts of the header do not fit the gates.
    #[error(
        "wire {wire} is never driven: {driven} of the {wires} wires in line 1 are inputs or gate outputs"
    )]
    NeverDriven {
        /// The first such wire.
        wire: u64,
        /// Wires that are driven.
        driven: u64,
        /// Wires that the header declares.
        wires: u64,
    },
    /// Not the numbers that a netlist begins with.
    #[error(
        "{count} numbers where a netlist begins with 7, 9 or 10: `veil_circuit::scd` says which"
    )]
    Header {
        /// Numbers in the first line.
        count: usize,
    },
    /// A netlist that ends when one of its wires says so.
    #[error(
        "the netlist ends when wire {wire} is 1, and when that is would say something about the values; write 0, and run all cycles"
    )]
    Terminates {
        /// The wire.
        wire: u64,
    },
    /// A gate type that netlists do not have.
    #[error(
        "{found} is no gate type; they are AND 8, NAND 7, OR 14, NOR 1, XOR 6, XNOR 9, NOT 12, and with one operand negated 4, 2, 11, 13"
    )]
    GateType {
        /// The number found.
        found: i64,
    },
    /// Gates read each other.
    #[error("wire {wire} depends on itself within one cycle; put a flip-flop in between")]
    Cyclic {
        /// The wire.
        wire: u64,
    },
    /// Another word stands where one of a few should.
    #[error("expected {expected}, found `{found}`")]
    OtherWord {
        /// The words that may be there.
        expected: &'static str,
        /// The text found, shortened.
        found: String,
    },
    /// The gates are fine, the circuit is not.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
}
