//! Layers whose weights an owner brings: what is public of them, where the weights lie, and which integers they become.
//!
//! The weights of all such layers are one column of numbers in units of the network's places. Those of a layer are a matrix, row by row: for each cell that a sum takes a row
//! with a weight for each output, and last a row of biases.
//!
//! A layer is computed with integers of some binary places, as one with public weights is: each weight is multiplied by a public factor, and rounded to nearest. The factor
//! is that of the exact quotient, so near that what is rounded is the nearest integer of the weight wherever 62 bits have room for that; else it is off by
//! what [`Scaled::beyond`] says.

use num_bigint::BigInt;
use veil_numeric::Range;

use super::analysis::{MOST_BITS, signed};
use super::inference::rounded;
use super::unit::nearest;
use super::{Cells, Layer, MOST_TERMS, Network, WINDOW, Window, count};

/// The greatest absolute values of numbers in units of the network's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Of a weight.
    pub weight: i64,
    /// Of a bias.
    pub bias: i64,
}

/// What is public of sums whose weights are an owner's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Secret {
    /// How many numbers it gives, or channels.
    pub outputs: u32,
    /// The window of a convolution; without it all cells are added up.
    pub window: Option<Window>,
    /// How large weights are, at most.
    pub bounds: Bounds,
}

impl Secret {
    /// How many cells a sum takes.
    pub(super) fn terms(&self, before: Cells) -> u64 {
        match &self.window {
            None => count(before),
            Some(window) => {
                let size = u64::from(window.size[0]) * u64::from(window.size[1]);
                size.saturating_mul(before[0].into())
            }
        }
    }

    /// How many weights there are, biases left out.
    pub(super) fn weights(&self, before: Cells) -> u64 {
        self.terms(before).saturating_mul(self.outputs.into())
    }

    /// What it gives for these cells; or what is wrong with it.
    pub(super) fn given(&self, before: Cells) -> Result<Cells, &'static str> {
        let [rows, columns] = match &self.window {
            None => [1, 1],
            Some(window) => window.places([before[1], before[2]]).ok_or(WINDOW)?,
        };
        let most = MOST_TERMS as u64;
        if self.terms(before) + 1 > most || !(1..=MOST_TERMS as u32).contains(&self.outputs) {
            return Err(
                "an output adds up at most 4095 cells, and there are one output at least and at most 4096",
            );
        }
        let small = |bound: i64| bound >= 0 && bound >> 61 == 0;
        if self.bounds.weight == 0 || !small(self.bounds.weight) || !small(self.bounds.bias) {
            return Err(
                "the bound of weights is above 0 and that of biases not below, and both have at most 61 bits in units of the network's places",
            );
        }
        Ok([self.outputs, rows, columns])
    }
}

/// Numbers of an owner's column that have one bound: the weights of a layer, or its biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the layer, from 0 on.
    pub layer: usize,
    /// Whether they are biases.
    pub bias: bool,
    /// The first row.
    pub first: u32,
    /// How many rows.
    pub count: u32,
    /// The greatest absolute value, in units of the network's places.
    pub most: i64,
}

impl Block {
    /// What a number of it may be.
    #[must_use]
    pub fn range(&self) -> Range {
        let most = i128::from(self.most);
        Range::new(-most, most).unwrap_or(Range::point(0))
    }
}

impl Network {
    /// The blocks of the column that an owner brings, one behind the other; none if all weights are public.
    #[must_use]
    pub fn secret(&self) -> Vec<Block> {
        let mut all = Vec::new();
        let mut first = 0;
        for (layer, of) in self.parts().layers.iter().enumerate() {
            let Layer::Secret(secret) = of else { continue };
            // No more than a network may have.
            let weights = secret.weights(self.before(layer)) as u32;
            for (bias, count, most) in [
                (false, weights, secret.bounds.weight),
                (true, secret.outputs, secret.bounds.bias),
            ] {
                all.push(Block {
                    layer,
                    bias,
                    first,
                    count,
                    most,
                });
                first += count;
            }
        }
        all
    }

    /// The weights of a layer, and its biases.
    pub(super) fn blocks(&self, layer: usize) -> Option<(Block, Block)> {
        let mut all = self.secret().into_iter();
        let weights = all.find(|block| block.layer == layer)?;
        Some((weights, all.next()?))
    }
}

/// Numbers of a block as integers that a layer is computed with: each times a public factor, over 2^by, rounded to nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The numbers.
    pub block: Block,
    /// The public factor.
    pub factor: i64,
    /// The product is over 2^by, rounded to nearest.
    pub by: u32,
    /// Whether the factor over 2^by is the exact quotient.
    exact: bool,
}

impl Scaled {
    /// Numbers times above / below; `None` if there is no room.
    pub(super) fn new(block: Block, above: &BigInt, below: &BigInt) -> Option<Self> {
        let most = BigInt::from(block.most);
        let fits = |factor: &BigInt, by: u32| {
            let factor = i64::try_from(factor).ok()?;
            let product = block.range().times(Range::point(factor.into()))?;
            let whole = signed(scaled(block, factor, by)?) - 1;
            (signed(product) <= MOST_BITS && whole + by <= MOST_BITS).then_some(factor)
        };
        // A quotient is off a half by a multiple of 1 / (2 below), or by nothing; with 2^by above most · below, what is rounded is off by less.
        let enough = u32::try_from((&most * below).bits()).unwrap_or(MOST_BITS);
        (0..=enough.min(MOST_BITS)).rev().find_map(|by| {
            let up = above << by;
            let factor = nearest(&up, below);
            let exact = &factor * below == up;
            // As few places as are exact, too.
            if exact && by > 0 && (&factor % 2_u32) == BigInt::from(0_u32) {
                return None;
            }
            let factor = fits(&factor, by)?;
            Some(Self {
                block,
                factor,
                by,
                exact,
            })
        })
    }

    /// What the integers may be.
    #[must_use]
    pub fn range(&self) -> Range {
        scaled(self.block, self.factor, self.by).unwrap_or(Range::point(0))
    }

    /// How far an integer is from the quotient beyond half a unit, at most: in halves of 2^-by.
    pub(super) fn beyond(&self) -> u128 {
        if self.exact {
            0
        } else {
            u128::from(self.block.most.unsigned_abs())
        }
    }

    /// The integer of a number.
    #[must_use]
    pub fn clear(&self, value: i128) -> i128 {
        rounded(value, self.factor, self.by)
    }
}

fn scaled(block: Block, factor: i64, by: u32) -> Option<Range> {
    let range = block.range();
    let product = range.times(Range::point(factor.into()))?;
    let of = |value: i128| rounded(value, 1, by);
    Range::new(of(product.min()), of(product.max()))
}
