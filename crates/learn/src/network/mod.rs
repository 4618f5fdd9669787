//! Networks that were trained elsewhere: layers over numbers or images, whose weights are public, or are those of an owner and have public bounds.
//!
//! A [`Network`] gives for the features of a row so many numbers, or a score for each of its classes. It says what is meant with real numbers; an
//! [`Inference`] is the integer arithmetic that comes near it, with a bound of how near.

mod analysis;
mod error;
mod inference;
mod secret;
mod sums;
mod unit;

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

pub use error::NetworkError;
pub use inference::{Inference, MOST_SCORE_PLACES, Product, Settle, Step};
pub use secret::{Block, Bounds, Scaled, Secret};
pub use sums::Weights;

use crate::column::Column;
use crate::error::FitError;

/// Most features of a network.
pub const MOST_FEATURES: usize = 4096;
/// Most layers.
pub const MOST_LAYERS: usize = 64;
/// Most cells that a layer gives.
pub const MOST_CELLS: usize = 1 << 16;
/// Most weights of all layers.
pub const MOST_WEIGHTS: usize = 1 << 20;
/// Most numbers that a layer adds up for one cell, the bias among them, and most channels of a layer: columns that a matrix may have.
pub const MOST_TERMS: usize = 4096;
/// Most classes, and most numbers that a network gives.
pub const MOST_OUTPUTS: usize = 256;
/// Most decimal places of weights.
pub const MOST_PLACES: u32 = 15;
/// Most bytes of a name, and of what a network says of its source.
pub const MOST_TEXT: usize = 200;

/// Channels, rows and columns of what a layer gives; numbers without places in an image are channels of one row and one column.
pub type Cells = [u32; 3];

/// Numbers of a network are integers of 10^-places. They lie one channel after another, a channel row by row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetworkParts {
    /// Its name in the job.
    pub name: String,
    /// Where it comes from, in words.
    pub source: String,
    /// The names of its features: columns of a relation.
    pub features: Vec<String>,
    /// What the features are.
    pub cells: Cells,
    /// Decimal places of weights and biases.
    pub places: u32,
    /// The layers, one after the other.
    pub layers: Vec<Layer>,
    /// What the last layer gives.
    pub readout: Readout,
}

/// What a network gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Readout {
    /// A number for each of these names.
    Values(Vec<String>),
    /// A score for each of these classes, of which the highest counts; or one number for two classes, of which it is the second one where it is above 0.
    Classes(Vec<String>),
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Sums of all cells, each times a weight, and a bias.
    Dense {
        /// For each cell of the result, a weight for each cell before.
        weights: Vec<Vec<i64>>,
        /// For each cell of the result.
        bias: Vec<i64>,
    },
    /// The same sums of the cells in a window, for every place of the window.
    Convolution {
        /// For each channel of the result, a weight for each cell of the window: channel by channel, row by row.
        weights: Vec<Vec<i64>>,
        /// For each channel of the result.
        bias: Vec<i64>,
        /// The window.
        window: Window,
    },
    /// Such sums whose weights an owner brings.
    Secret(Secret),
    /// The largest cell, or the mean of the cells, in a window of each channel; no window goes beyond the image.
    Pool {
        /// Whether it is the mean.
        mean: bool,
        /// The window.
        window: Window,
    },
    /// A function of each cell.
    Activation(Activation),
    /// The cells before and those that an earlier layer gave, added up.
    Add {
        /// The number of the layer, from 0 on.
        layer: u32,
    },
}

/// Windows over an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Rows and columns.
    pub size: [u32; 2],
    /// Rows and columns from one window to the next.
    pub stride: [u32; 2],
    /// Rows and columns of zeros around the image: above, to the left, below, to the right.
    pub padding: [u32; 4],
}

impl Window {
    /// A window of one cell, everywhere.
    const fn one() -> Self {
        Self {
            size: [1; 2],
            stride: [1; 2],
            padding: [0; 4],
        }
    }

    /// Windows below each other and beside each other, of an image of so many rows and columns; `None` if there is none.
    fn places(&self, image: [u32; 2]) -> Option<[u32; 2]> {
        let [top, left, bottom, right] = self.padding;
        let places = |size: u32, stride: u32, length: u32, [before, after]: [u32; 2]| {
            let length = length.checked_add(before)?.checked_add(after)?;
            // A window of padding alone shows nothing.
            let some = size > 0 && stride > 0 && before < size && after < size;
            let room = length.checked_sub(size).filter(|_| some)?;
            Some(room / stride + 1)
        };
        Some([
            places(self.size[0], self.stride[0], image[0], [top, bottom])?,
            places(self.size[1], self.stride[1], image[1], [left, right])?,
        ])
    }
}

/// A function of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The larger of the cell and 0.
    Relu,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Relu, Self::Sigmoid, Self::Tanh];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
        }
    }
}

/// A network whose layers fit each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Network(Arc<Checked>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    parts: NetworkParts,
    cells: Vec<Cells>,
    inferred: Inferred,
}

/// Arithmetic of a network that was asked for: a query asks again and again for that of the same columns.
#[derive(Debug, Default)]
struct Inferred(Mutex<Vec<(Vec<Column>, u32, Inference)>>);

/// It says nothing that a network does not: networks with the same parts are equal.
impl PartialEq for Inferred {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Inferred {}

impl Hash for Inferred {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// How many cells there are.
#[must_use]
pub const fn count(cells: Cells) -> u64 {
    (cells[0] as u64)
        .saturating_mul(cells[1] as u64)
        .saturating_mul(cells[2] as u64)
}

impl Network {
    /// A network.
    ///
    /// # Errors
    /// [`NetworkError`], with what is wrong.
    pub fn new(parts: NetworkParts) -> Result<Self, NetworkError> {
        let text = |text: &String| {
            let plain = text.len() <= MOST_TEXT && !text.chars().any(char::is_control);
            plain.then_some(()).ok_or(NetworkError::Text)
        };
        text(&parts.source)?;
        distinct("feature", &parts.features, (1, MOST_FEATURES))?;
        let (what, outputs, least) = match &parts.readout {
            Readout::Values(names) => ("output", names, 1),
            Readout::Classes(names) => ("class", names, 2),
        };
        distinct(what, outputs, (least, MOST_OUTPUTS))?;
        for name in parts.features.iter().chain(outputs) {
            text(name)?;
        }
        if parts.places > MOST_PLACES {
            return Err(NetworkError::Places(parts.places));
        }
        if count(parts.cells) != parts.features.len() as u64 {
            return Err(NetworkError::Features {
                cells: parts.cells,
                features: parts.features.len(),
            });
        }
        if parts.layers.is_empty() || parts.layers.len() > MOST_LAYERS {
            return Err(NetworkError::Many {
                what: "layers",
                found: parts.layers.len(),
                most: MOST_LAYERS,
            });
        }
        let mut weights = 0;
        let mut cells: Vec<Cells> = Vec::new();
        for (at, layer) in parts.layers.iter().enumerate() {
            let before = cells.last().copied().unwrap_or(parts.cells);
            let wrong = |what| NetworkError::Layer { at, what };
            let given = given(layer, before, &cells).map_err(wrong)?;
            if count(given) > MOST_CELLS as u64 {
                return Err(wrong("it gives more than 65536 cells"));
            }
            weights += match layer {
                Layer::Dense { weights, .. } | Layer::Convolution { weights, .. } => {
                    weights.iter().map(Vec::len).sum()
                }
                Layer::Secret(secret) => secret.weights(before) as usize,
                _ => 0,
            };
            cells.push(given);
        }
        if weights > MOST_WEIGHTS {
            return Err(NetworkError::Many {
                what: "weights",
                found: weights,
                most: MOST_WEIGHTS,
            });
        }
        let last = cells.last().copied().map_or(0, count);
        let fits = match &parts.readout {
            Readout::Values(names) => last == names.len() as u64,
            Readout::Classes(names) => last == names.len() as u64 || (last, names.len()) == (1, 2),
        };
        if !fits {
            return Err(NetworkError::Readout {
                cells: last,
                outputs: outputs.len(),
            });
        }
        let inferred = Inferred::default();
        Ok(Self(Arc::new(Checked {
            parts,
            cells,
            inferred,
        })))
    }

    /// What it was made of.
    #[must_use]
    pub fn parts(&self) -> &NetworkParts {
        &self.0.parts
    }

    /// Its name in the job.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.parts.name
    }

    /// What each layer gives.
    #[must_use]
    pub fn cells(&self) -> &[Cells] {
        &self.0.cells
    }

    /// The arithmetic of the network over columns of its features; scores have so many decimal places.
    ///
    /// # Errors
    /// [`FitError`] if the features are others, or numbers on the way need more than 64 bits.
    pub fn inference(&self, columns: &[Column], places: u32) -> Result<Inference, FitError> {
        const MOST: usize = 4;
        let known = || {
            self.0
                .inferred
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let same = |of: &&(Vec<Column>, u32, Inference)| of.0 == columns && of.1 == places;
        if let Some((_, _, found)) = known().iter().find(same) {
            return Ok(found.clone());
        }
        let found = Inference::new(self, columns, places)?;
        let mut known = known();
        known.truncate(MOST - 1);
        known.insert(0, (columns.to_vec(), places, found.clone()));
        Ok(found)
    }

    /// How many weights there are, biases left out.
    #[must_use]
    pub fn weights(&self) -> usize {
        let of = self.parts().layers.iter().map(|layer| match layer {
            Layer::Dense { weights, .. } | Layer::Convolution { weights, .. } => {
                weights.iter().map(Vec::len).sum()
            }
            _ => 0,
        });
        let secret = self.secret().into_iter().filter(|block| !block.bias);
        of.sum::<usize>() + secret.map(|block| block.count as usize).sum::<usize>()
    }

    /// What a layer takes.
    fn before(&self, layer: usize) -> Cells {
        let before = layer.checked_sub(1).map(|before| self.cells()[before]);
        before.unwrap_or(self.parts().cells)
    }
}

/// Names that are not empty, each once.
fn distinct(
    what: &'static str,
    names: &[String],
    (least, most): (usize, usize),
) -> Result<(), NetworkError> {
    if names.len() < least || names.len() > most {
        return Err(NetworkError::Names {
            what,
            found: names.len(),
            least,
            most,
        });
    }
    let mut seen = std::collections::BTreeSet::new();
    match names
        .iter()
        .find(|name| name.is_empty() || !seen.insert(*name))
    {
        Some(name) => Err(NetworkError::Twice {
            what,
            name: name.clone(),
        }),
        None => Ok(()),
    }
}

/// What a layer gives for what it takes; or what is wrong with it.
fn given(layer: &Layer, before: Cells, earlier: &[Cells]) -> Result<Cells, &'static str> {
    let of_weights = |weights: &[Vec<i64>], bias: &[i64], terms: u64| {
        let outputs = weights.len();
        if outputs == 0 || bias.len() != outputs {
            return Err(
                "it has a list of weights and a bias for each output, and one output at least",
            );
        }
        if weights.iter().any(|of| of.len() as u64 != terms) {
            return Err("each output has a weight for each cell that it takes");
        }
        if terms + 1 > MOST_TERMS as u64 || outputs > MOST_TERMS {
            return Err("an output adds up at most 4095 cells, and there are at most 4096 outputs");
        }
        let small = |one: &i64| one.unsigned_abs() >> 62 == 0;
        if !weights.iter().flatten().chain(bias).all(small) {
            return Err("a weight has at most 61 bits in units of the network's places");
        }
        Ok(outputs as u32)
    };
    match layer {
        Layer::Dense { weights, bias } => Ok([of_weights(weights, bias, count(before))?, 1, 1]),
        Layer::Convolution {
            weights,
            bias,
            window,
        } => {
            let places = window.places([before[1], before[2]]);
            let [rows, columns] = places.ok_or(WINDOW)?;
            let size = u64::from(window.size[0]) * u64::from(window.size[1]);
            let terms = size.saturating_mul(before[0].into());
            Ok([of_weights(weights, bias, terms)?, rows, columns])
        }
        Layer::Secret(secret) => secret.given(before),
        Layer::Pool { window, .. } => {
            if window.padding != [0; 4] {
                return Err("no window of a pool goes beyond the image");
            }
            let places = window.places([before[1], before[2]]);
            let [rows, columns] = places.ok_or(WINDOW)?;
            if u64::from(window.size[0]) * u64::from(window.size[1]) > 256 {
                return Err("a window of a pool has at most 256 cells");
            }
            Ok([before[0], rows, columns])
        }
        Layer::Activation(_) => Ok(before),
        Layer::Add { layer } => match earlier.get(*layer as usize) {
            Some(cells) if *cells == before => Ok(before),
            Some(_) => Err("cells are added to those of a layer that gives as many"),
            None => Err("cells are added to those of an earlier layer"),
        },
    }
}

const WINDOW: &str = "a window has rows, columns and strides, is no larger than the image with its padding, and larger than the padding";
