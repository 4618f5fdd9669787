//! Reports of a shadow: the first difference, and counts of compared values.

use std::fmt;

use veil_session::Peer;

/// Where the shares first differ from the clear values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The kind of value that differs.
    pub what: Diverged,
    /// Name of the block; nothing for job-wide values.
    pub block: Option<String>,
    /// Row of the block, from 0.
    pub row: u64,
    /// The clear value.
    pub expected: u128,
    /// The sum of the shares.
    pub actual: u128,
}

/// The kind of value that differs from its twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Diverged {
    /// A product, one element per row.
    Product {
        /// Layer, from 0; layers of the set-up follow layers of the rows.
        layer: usize,
        /// Which of the layer's products.
        index: usize,
    },
    /// A sum of products over the rows of a chunk.
    Sum {
        /// Layer, from 0.
        layer: usize,
        /// Which of the layer's sums.
        index: usize,
    },
    /// An opened value.
    Opened {
        /// Output port.
        port: usize,
        /// Which of its wires.
        wire: usize,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Diverged::Product { layer, index } => {
                write!(f, "layer {}, product {index}", layer + 1)?;
            }
            Diverged::Sum { layer, index } => {
                write!(f, "layer {}, sum of products {index}", layer + 1)?;
            }
            Diverged::Opened { port, wire } => write!(f, "opened output {port}, wire {wire}")?,
        }
        match &self.block {
            Some(block) => write!(f, ", row {} of block `{block}`", self.row + 1)?,
            None => f.write_str(", of values that all rows share")?,
        }
        write!(
            f,
            ": the shares add up to {}, the clear value is {}",
            self.actual, self.expected
        )
    }
}

/// Counts of compared values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Layers with products.
    pub layers: usize,
    /// Products, one per row, and sums.
    pub products: u64,
    /// Opened values.
    pub opened: u64,
}

/// Why there is no shadow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoShadow {
    /// Some values are nowhere in the clear.
    #[error(
        "block `{0}` is loaded from the parties' stores: its clear values are nowhere, and a shadow needs them"
    )]
    Stored(String),
    /// Bits of components are in no clear value.
    #[error(
        "the job converts between integers and bits, which is done on shares alone: no clear value has the products of that, and a shadow needs them"
    )]
    Mixed,
    /// Values are computed in a larger ring, together with their MACs.
    #[error(
        "integers have MACs that are products with a key that no party knows: no clear value has them, and a shadow needs them; compare a semi-honest run"
    )]
    Authenticated,
    /// Values of a layer are others in every cycle.
    #[error(
        "the circuit has registers or cycles: a shadow is of circuits that compute every layer once"
    )]
    Sequential,
    /// An owner brings no values to this process.
    #[error("{0} brings no values to this process: a shadow needs the values of all owners")]
    Missing(Peer),
}
