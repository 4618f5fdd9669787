//! Circuits on files: which file feeds which port, and where the outputs go.

mod format;
mod lower;
mod outputs;
mod parse;
mod read;
mod sink;
mod source;

use std::path::PathBuf;

use veil_circuit::Per;
use veil_math::Ring;

use veil_job::{Audience, Holder};

pub use sink::FileSink;
pub use source::FileSource;

/// The treatment of a last record that is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pad {
    /// Refuse it.
    None,
    /// Fill it with zeros.
    Zero,
    /// Fill it, or add a whole record, with bytes that say how many they are (RFC 5652, section 6.3).
    Pkcs7,
}

/// How the values of an input are written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InputFormat {
    /// A value per line, two digits per byte, first byte first.
    Hex,
    /// Records of `⌈width / 8⌉` bytes, bit 0 of a value in bit 0 of the first byte.
    Binary(Pad),
    /// A column of integers in a CSV file: decimal, negative ones in two's complement, or `0x…`.
    Csv(String),
    /// No file: row `i` has the value `start + i`, big-endian, as AES-CTR counts.
    Counter(u128),
}

/// How several inputs make the value of one port of the original circuit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// Bit by bit.
    Xor,
    /// As integers.
    Sum,
}

/// An input port and the file that feeds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Name of the port in the lowered circuit.
    pub name: String,
    /// Name of the port in the job.
    pub port: String,
    /// Bits of a value.
    pub width: u32,
    /// A value per row or one for the job.
    pub per: Per,
    /// Whose values.
    pub holder: Holder,
    /// How they are written.
    pub format: InputFormat,
    /// How they combine with other inputs of the port, if there are any.
    pub combine: Option<Combine>,
    /// Where, if the job says so.
    pub file: Option<PathBuf>,
}

/// How long an output file is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Length {
    /// All records, complete.
    Whole,
    /// This many bytes: the rest of the last record is dropped.
    Bytes(u64),
    /// As long as the file of the input of this name, which must be here.
    Like(String),
}

/// How the values of an output are written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutputFormat {
    /// As [`InputFormat::Hex`].
    Hex,
    /// As [`InputFormat::Binary`].
    Binary(Length),
    /// A CSV file with one column of integers.
    Csv {
        /// Its header.
        column: String,
        /// Whether they are in two's complement.
        signed: bool,
    },
}

/// An output port and the file that takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Name of the port in the lowered circuit.
    pub name: String,
    /// Bits of a value.
    pub width: u32,
    /// Who gets it.
    pub to: Audience,
    /// How it is written.
    pub format: OutputFormat,
    /// Where, within the folder of results.
    pub file: PathBuf,
}

/// A circuit job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gates {
    /// What its circuit is over.
    pub(crate) ring: Ring,
    /// The name by which the circuit was made, if it comes from no file.
    pub make: Option<String>,
    /// Rows.
    pub rows: u64,
    /// An input for each port of the circuit, in order.
    pub inputs: Vec<Input>,
    /// An output for each port of the circuit, in order.
    pub outputs: Vec<Output>,
}

/// Bytes of a record of `width` bits.
pub(crate) const fn record_bytes(width: u32) -> usize {
    width.div_ceil(8) as usize
}
