//! Commands: operation, sources, destinations, length (by the spans), randomness, tag.

use veil_math::Ring;
use veil_prss::Use;

use crate::Fault;
use crate::layout::{Layout, Span};

/// A key that was loaded into the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct KeyId(pub u16);

/// A program that was loaded into the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProgramId(pub u32);

/// A bilinear form with masks: how a product of shares is made of products of components, as the protocol defines it.
///
/// r = Σ_(p, q) in terms a_p · b_q + Σ plus draws - Σ minus draws, written to component `own` of the result.
/// Devices specialise the forms they know and compute any other by the formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// Ring of the components.
    pub ring: Ring,
    /// Pairs of components that are multiplied.
    pub terms: &'static [(u8, u8)],
    /// Component that gets the result.
    pub own: u8,
}

/// A draw of pseudorandom elements: which key, what for, from which counter.
///
/// Item `p` of a command starts at counter `first + p · stride`, where the stride is the number of AES blocks that a full
/// chunk of one item takes (one block for a single element).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draw {
    /// Key.
    pub key: KeyId,
    /// Use, the first half of the PRF's input.
    pub tag: Use,
    /// Counter of item 0.
    pub first: u64,
    /// Subtracted instead of added.
    pub minus: bool,
}

/// What a command does.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Op {
    /// Runs the program; it has no products.
    Linear,
    /// Runs the program. dst 0: message of row products, dst 1 (if the program has any): message of sums; draws: of row
    /// products, then (from index 2) of sums.
    Product(&'static Form),
    /// Puts received products of the program in their places, as component `part`. src as dst of `Product`.
    Scatter {
        /// Component to fill.
        part: u8,
    },
    /// dst 0 = pseudorandom elements of draw 0.
    Random,
    /// dst 0 = Σ ± src; bit k of `minus` set: source k is subtracted. No source: zero. The destination may be source 0 itself, if
    /// that is not subtracted; it overlaps no other.
    ///
    /// Of bits, what lies beyond the last row becomes zero: rows that do not exist are computed along, on values that all rows
    /// share, and must never be opened.
    Combine {
        /// Ring.
        ring: Ring,
        /// Signs.
        minus: u32,
    },
    /// dst 0 (32 bytes) = SHA-256(session ‖ LE16 label ‖ LE16 epoch ‖ LE16 lane ‖ LE32 chunk ‖ LE32 rows ‖ bytes of the sources).
    Hash {
        /// What is hashed; equal at both ends, different for each use.
        label: u16,
    },
    /// Compares src 0 with src 1, in constant time; unequal ends the batch with [`Outcome::Mismatch`].
    CheckEqual,
}

/// A command over whole spans of a bank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Operation.
    pub op: Op,
    /// The program of `Linear`, `Product`, `Scatter`.
    pub program: Option<ProgramId>,
    /// Components that public constants of the program act on: bit p for part p.
    pub constants: u8,
    /// Sources.
    pub src: Vec<Span>,
    /// Destinations.
    pub dst: Vec<Span>,
    /// Randomness.
    pub draws: Vec<Draw>,
}

impl Command {
    /// A command without program and randomness.
    pub fn new(op: Op, src: Vec<Span>, dst: Vec<Span>) -> Self {
        Command {
            op,
            program: None,
            constants: 0,
            src,
            dst,
            draws: Vec::new(),
        }
    }

    /// Refuses spans that do not lie within their regions.
    pub(crate) fn check_spans(&self, index: usize, layout: &Layout) -> Result<(), Fault> {
        if self
            .src
            .iter()
            .chain(&self.dst)
            .all(|s| layout.contains(*s))
        {
            return Ok(());
        }
        Err(Fault::Shape {
            command: index,
            what: "a span outside its region",
        })
    }

    /// Refuses a `Combine` that would read what it has written.
    pub(crate) fn check_overlap(&self, index: usize) -> Result<(), Fault> {
        let Op::Combine { minus, .. } = self.op else {
            return Ok(());
        };
        let bad = |(k, s): (usize, &Span)| {
            self.dst
                .iter()
                .any(|d| d.overlaps(*s) && !(k == 0 && minus & 1 == 0 && d.first == s.first))
        };
        if self.src.iter().enumerate().any(bad) {
            return Err(Fault::Shape {
                command: index,
                what: "the destination overlaps a source",
            });
        }
        Ok(())
    }
}

/// How a batch of commands ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All commands took effect.
    Done,
    /// A check failed: the number of the command in its batch. Not a fault of the device.
    Mismatch {
        /// Index in the batch.
        command: usize,
    },
}

/// Name of a batch, chosen by whoever submits it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(pub u64);

/// The end of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Which batch.
    pub tag: Tag,
    /// How it ended.
    pub outcome: Outcome,
}
