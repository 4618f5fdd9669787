//! Defects of a circuit.

use veil_math::Ring;

/// Why a circuit is not well formed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// Larger than the limits.
    #[error(
        "the circuit has {found} {what}, and the limit is {limit}; split it, or raise the limit at every party"
    )]
    TooLarge {
        /// The counted items.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A gate reads a wire that no earlier gate drives.
    #[error(
        "gate {gate} drives wire {own} and reads wire {operand}; a gate may only read wires of smaller number"
    )]
    ForwardReference {
        /// Index of the gate.
        gate: usize,
        /// The wire that it drives.
        own: u32,
        /// The wire that it reads.
        operand: u32,
    },
    /// A constant is not an element of the ring.
    #[error("gate {gate} has the constant {value}, which is not an element of {}; reduce it first", ring.name())]
    ConstantOutsideRing {
        /// Index of the gate.
        gate: usize,
        /// The constant.
        value: u128,
        /// The ring of the circuit.
        ring: Ring,
    },
    /// Operands of one gate are an integer and a bit.
    #[error(
        "gate {gate} reads wire {operand}, which is {}; {}",
        if *bit { "a bit" } else { "an integer" },
        if *bit { "lift it first" } else { "take one of its bits" }
    )]
    OtherRing {
        /// Index of the gate.
        gate: usize,
        /// The wire that it reads.
        operand: u32,
        /// Whether that is a bit where an integer is needed, or the other way round.
        bit: bool,
    },
    /// A bit beyond the ring.
    #[error("gate {gate} reads bit {bit} of an integer, and bits of {} are 0 to {}", ring.name(), ring.bits() - 1)]
    NoSuchBit {
        /// Index of the gate.
        gate: usize,
        /// The bit.
        bit: u32,
        /// The ring of the circuit.
        ring: Ring,
    },
    /// A truncation that has no meaning.
    #[error(
        "gate {gate} takes {by} bits off integers of {bits}; these are at most {} in {}, and fewer than they have go", ring.bits() - 1, ring.name()
    )]
    Truncates {
        /// Index of the gate.
        gate: usize,
        /// Bits that go.
        by: u32,
        /// Bits of the integer.
        bits: u32,
        /// The ring of the circuit.
        ring: Ring,
    },
    /// A conversion in a circuit that has no integers.
    #[error(
        "gate {gate} converts between integers and bits; this is a circuit of bits, where nothing is to be converted"
    )]
    NoIntegers {
        /// Index of the gate.
        gate: usize,
    },
    /// A port of integers, or one that is summed, has a bit; or a port of bits has an integer.
    #[error(
        "output `{port}` names wire {wire}, and a port is of integers alone or of bits alone, which are not summed; lift the bit first, or \
         put it out by a port of its own"
    )]
    OutputOfBits {
        /// Name of the port.
        port: String,
        /// The wire that it names.
        wire: u32,
    },
    /// An output names a wire that does not exist.
    #[error("output `{port}` names wire {wire}, but the circuit has {wires} wires")]
    OutputMissing {
        /// Name of the port.
        port: String,
        /// The wire that it names.
        wire: u32,
        /// Wires in the circuit.
        wires: u64,
    },
    /// Nothing would be computed.
    #[error("the circuit has no outputs; name at least one")]
    NoOutputs,
    /// A port without wires.
    #[error("port `{port}` has no wires; give it a width, or leave it out")]
    EmptyPort {
        /// Name of the port.
        port: String,
    },
    /// A port without a name, or with one that files and reports cannot show.
    #[error(
        "port name {name:?} is empty, longer than 255 bytes or has control characters; rename the port"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// Two input ports or two output ports have one name.
    #[error("two {direction} ports are called `{name}`; rename one")]
    DuplicateName {
        /// `input` or `output`.
        direction: &'static str,
        /// The name.
        name: String,
    },
    /// Registers hold bits.
    #[error("a sequential circuit is over bits, and this one is over {}", ring.name())]
    SequentialIntegers {
        /// The ring of the circuit.
        ring: Ring,
    },
    /// A port of bits where there is nothing but bits, or without a value in every row.
    #[error(
        "input `{port}` is of bits beside integers: only a circuit over integers has such inputs, with a value in every row"
    )]
    BitPort {
        /// Name of the port.
        port: String,
    },
    /// Nothing would be computed.
    #[error("the circuit has no cycles; it needs at least one")]
    NoCycles,
    /// A random gate in a sequential circuit: its value would have to differ from cycle to cycle, or not.
    #[error("gate {gate} of a sequential circuit is random; give it the values as inputs")]
    SequentialRandom {
        /// Index of the gate.
        gate: usize,
    },
    /// A register's next value does not exist.
    #[error("register {register} takes wire {wire} next, but the circuit has {wires} wires")]
    NextMissing {
        /// Index of the register.
        register: usize,
        /// The wire that it names.
        wire: u32,
        /// Wires in the circuit.
        wires: u32,
    },
    /// A register's first value is no input, or one that is another in every cycle.
    #[error(
        "register {register} begins as wire {wire}; it may begin as a constant, or as one of the {inputs} wires of inputs that has one \
         value for all cycles"
    )]
    BadInitial {
        /// Index of the register.
        register: usize,
        /// The wire that it names.
        wire: u32,
        /// Wires of input ports.
        inputs: u32,
    },
    /// Summing bits modulo 2 is hardly ever meant.
    #[error(
        "output `{port}` is summed over the rows, which needs a ring of integers; this is a circuit of bits"
    )]
    SumOfBits {
        /// Name of the port.
        port: String,
    },
}
