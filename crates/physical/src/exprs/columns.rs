//! Sums of bits of public weights: what additions, subtractions and products of numbers come down to.

use veil_circuit::generate::{Aim, add};
use veil_circuit::{Builder, Wire};
use veil_relation::Range;

use super::word::{Word, ones};

/// A sum of bits of public weights and of a public constant, modulo 2^len with `len` at most 128.
///
/// A bit of negative weight is its complement and a constant: `−2^j·x = 2^j·¬x − 2^j`. So subtraction costs what addition does.
pub(crate) struct Columns {
    /// Bits of weight 2^j.
    columns: Vec<Vec<Wire>>,
    constant: u128,
}

impl Columns {
    /// The sum of nothing, modulo 2^len.
    pub(crate) fn new(len: u32) -> Self {
        let columns = vec![Vec::new(); len as usize];
        Self {
            columns,
            constant: 0,
        }
    }

    /// Adds a public constant.
    pub(crate) fn constant(&mut self, value: u128) {
        self.constant = self.constant.wrapping_add(value);
    }

    /// Adds 2^weight · bit, or subtracts it.
    pub(crate) fn bit(&mut self, b: &mut Builder, weight: usize, bit: Wire, negative: bool) {
        let Some(column) = self.columns.get_mut(weight) else {
            return;
        };
        if negative {
            self.constant = self.constant.wrapping_sub(1 << weight);
            column.push(b.not(bit));
        } else {
            column.push(bit);
        }
    }

    /// Adds 2^shift times an unsigned word, or subtracts it.
    pub(crate) fn bits(&mut self, b: &mut Builder, bits: &[Wire], shift: usize, negative: bool) {
        for (j, &bit) in bits.iter().enumerate() {
            self.bit(b, shift + j, bit, negative);
        }
    }

    /// Adds a word times a public factor, by those of its digits that are not 0: binary ones, or −1, 0 and 1 if fewer are not.
    pub(crate) fn scaled(&mut self, b: &mut Builder, word: &Word, factor: i128) {
        self.constant((word.offset as u128).wrapping_mul(factor as u128));
        let (mut left, mut shift) = (factor.unsigned_abs(), 0);
        // From: Reitwiesner, "Binary arithmetic", 1960: as many as 3·left and left differ in.
        let fewer = (left.wrapping_mul(3) ^ left).count_ones() < left.count_ones();
        while left != 0 {
            if left % 2 == 1 {
                let minus = fewer && left % 4 == 3;
                self.bits(b, &word.bits, shift, minus != (factor < 0));
                // At most 2^127 + 1: it fits.
                left = if minus { left + 1 } else { left - 1 };
            }
            left /= 2;
            shift += 1;
        }
    }

    /// Adds the product of two words, or subtracts it.
    pub(crate) fn product(
        &mut self,
        b: &mut Builder,
        x: &Word,
        y: &Word,
        negative: bool,
        aim: Aim,
    ) {
        let sign = if negative { -1 } else { 1 };
        match (x.known(b), y.known(b)) {
            (Some(x), _) if x.checked_mul(sign).is_some() => self.scaled(b, y, x * sign),
            (_, Some(y)) if y.checked_mul(sign).is_some() => self.scaled(b, x, y * sign),
            _ => {
                let (x, y) = (x.weighted(b, aim), y.weighted(b, aim));
                for (i, &(x, below)) in x.iter().enumerate() {
                    for (j, &(y, other)) in y.iter().enumerate() {
                        if i + j < self.columns.len() {
                            let both = b.and(x, y);
                            self.bit(b, i + j, both, (below != other) != negative);
                        }
                    }
                }
            }
        }
    }

    /// The sum as a number of a range, which must hold its value. The offset is chosen so that the constant costs little.
    pub(crate) fn word(mut self, b: &mut Builder, range: Range, aim: Aim) -> Word {
        self.fold(b);
        let mask = ones(range.bits());
        let least = range.min() as u128;
        let slack = mask - (range.max() as u128).wrapping_sub(least);
        // How far the offset lies below the least value if it takes in the whole constant.
        let below = least.wrapping_sub(self.constant) & mask;
        let down = if below <= slack {
            self.constant = 0;
            below
        } else {
            // An offset that lies lower by some leaves a constant that is higher by as much.
            let low = self.constant.wrapping_sub(least) & mask;
            self.constant = roundest(low, low + slack);
            self.constant - low
        };
        Word {
            offset: range.min().wrapping_sub(down as i128),
            bits: self.total(b, aim),
            range,
        }
    }

    /// The sum with its constant, as an unsigned word.
    pub(crate) fn total(mut self, b: &mut Builder, aim: Aim) -> Vec<Wire> {
        self.with_constant(b);
        match aim {
            Aim::Size => ripple(b, self.columns),
            Aim::Depth => tree(b, self.columns),
        }
    }

    /// Two words whose sum this is, modulo 2^len, by carry-save additions alone.
    pub(crate) fn saved(mut self, b: &mut Builder) -> [Vec<Wire>; 2] {
        self.with_constant(b);
        saved(b, self.columns)
    }

    /// Makes the constant bits of the columns.
    fn with_constant(&mut self, b: &mut Builder) {
        self.fold(b);
        let one = b.constant_bit(true);
        for (j, column) in self.columns.iter_mut().enumerate() {
            if self.constant >> j & 1 == 1 {
                column.push(one);
            }
        }
    }

    /// Takes known bits into the constant, and what is added twice to the next column.
    fn fold(&mut self, b: &mut Builder) {
        let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
        for j in 0..self.columns.len() {
            let mut column = std::mem::take(&mut self.columns[j]);
            column.sort_unstable();
            let mut kept: Vec<Wire> = Vec::with_capacity(column.len());
            for bit in column {
                if bit == one {
                    self.constant = self.constant.wrapping_add(1 << j);
                } else if kept.last() == Some(&bit) {
                    kept.pop();
                    if let Some(next) = self.columns.get_mut(j + 1) {
                        next.push(bit);
                    }
                } else if bit != zero {
                    kept.push(bit);
                }
            }
            self.columns[j] = kept;
        }
    }
}

/// The number from `low` to `high` that ends in the most zero bits.
fn roundest(low: u128, high: u128) -> u128 {
    let mut found = low;
    for zeros in 0..128 {
        let part = ones(zeros);
        match low.checked_add(part) {
            Some(up) if up & !part <= high => found = up & !part,
            _ => break,
        }
    }
    found
}

/// Sum and carry of three bits: one AND.
fn full_adder(b: &mut Builder, x: Wire, y: Wire, z: Wire) -> (Wire, Wire) {
    let (xy, xz) = (b.xor(x, y), b.xor(x, z));
    let change = b.and(xy, xz);
    (b.xor(xy, z), b.xor(x, change))
}

/// Column by column from the lowest: an AND for each bit more than one of a column.
fn ripple(b: &mut Builder, mut columns: Vec<Vec<Wire>>) -> Vec<Wire> {
    let mut sum = Vec::with_capacity(columns.len());
    let last = columns.len().saturating_sub(1);
    for j in 0..columns.len() {
        let mut column = std::mem::take(&mut columns[j]);
        while column.len() > 1 {
            // Bits that are known early are added early.
            column.sort_by_key(|&bit| std::cmp::Reverse(b.depth(bit)));
            let zero = b.constant_bit(false);
            let [x, y, z] = [(); 3].map(|()| column.pop().unwrap_or(zero));
            if j == last {
                let both = b.xor(x, y);
                column.push(b.xor(both, z));
                continue;
            }
            let (bit, carry) = full_adder(b, x, y, z);
            column.push(bit);
            columns[j + 1].push(carry);
        }
        sum.push(column.pop().unwrap_or_else(|| b.constant_bit(false)));
    }
    sum
}

/// Carry-save until no column has more than two bits, then one addition.
///
/// From: Wallace, "A suggestion for a fast multiplier", 1964.
fn tree(b: &mut Builder, columns: Vec<Vec<Wire>>) -> Vec<Wire> {
    let [x, y] = saved(b, columns);
    let zero = b.constant_bit(false);
    // Below the lowest place with two bits there is nothing to add.
    let from = y.iter().position(|&bit| bit != zero).unwrap_or(y.len());
    let mut sum = x[..from].to_vec();
    sum.extend(add(b, &x[from..], &y[from..], Aim::Depth));
    sum
}

/// Carry-save until no column has more than two bits: two words.
fn saved(b: &mut Builder, mut columns: Vec<Vec<Wire>>) -> [Vec<Wire>; 2] {
    let len = columns.len();
    while columns.iter().any(|column| column.len() > 2) {
        let mut next: Vec<Vec<Wire>> = vec![Vec::new(); len];
        for (j, mut column) in columns.into_iter().enumerate() {
            column.sort_by_key(|&bit| b.depth(bit));
            for three in column.chunks(3) {
                let &[x, y, z] = three else {
                    next[j].extend_from_slice(three);
                    continue;
                };
                let (bit, carry) = full_adder(b, x, y, z);
                next[j].push(bit);
                if let Some(above) = next.get_mut(j + 1) {
                    above.push(carry);
                }
            }
        }
        columns = next;
    }
    let zero = b.constant_bit(false);
    [0, 1].map(|place| {
        let bit = |column: &Vec<Wire>| column.get(place).copied().unwrap_or(zero);
        columns.iter().map(bit).collect()
    })
}
