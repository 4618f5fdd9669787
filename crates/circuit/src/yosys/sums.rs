//! Sums of products: `+`, `-`, `*` and negation, as few ANDs as a carry-save addition takes.
//!
//! A sum that only another one reads is a part of it, so that `a * b + c + d` is one addition. All its bits, negative ones included, go
//! into columns of equal weight: a bit `b` of weight `-2^i` is `¬b` of weight `2^i` and the constant `-2^i`. Products of signed numbers are
//! such sums, too (Baugh, Wooley 1973, "A two's complement parallel array multiplication algorithm").

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::error::YosysError;
use super::json::Bit;
use super::lower::Lowering;
use super::netlist::{CellRef, Netlist};
use crate::build::{full_adder, sum_columns};
use crate::generate::Aim;
use crate::{Builder, Wire};

/// A number, or a product of two, that is added or subtracted.
#[derive(Clone, Debug)]
pub(super) struct Term<'a> {
    factors: Vec<Factor<'a>>,
    negative: bool,
}

#[derive(Clone, Copy, Debug)]
struct Factor<'a> {
    bits: &'a [Bit],
    signed: bool,
}

impl<'a> Factor<'a> {
    /// A number in a sum modulo 2^width, without bits that say nothing.
    fn new(bits: &'a [Bit], signed: bool, width: usize) -> Self {
        // What the highest bit means makes no difference modulo a power of two that is not above it.
        let (mut bits, mut signed) = (bits, signed || bits.len() >= width);
        while let [rest @ .., x, y] = bits
            && signed
            && x == y
        {
            bits = &bits[..=rest.len()];
        }
        while let [rest @ .., Bit::Known(false)] = bits {
            (bits, signed) = (rest, false);
        }
        Factor { bits, signed }
    }
}

impl Term<'_> {
    /// The bits that it is computed from.
    pub(super) fn bits(&self) -> impl Iterator<Item = Bit> {
        let bits = |factor: &Factor<'_>| factor.bits.to_vec();
        self.factors.iter().flat_map(bits)
    }

    /// The least and the greatest value, if they are of a usual size.
    fn range(&self) -> Option<(i128, i128)> {
        let mut range = (1, 1);
        for factor in &self.factors {
            let bits = u32::try_from(factor.bits.len()).ok()?;
            let (low, high) = match (factor.signed, bits) {
                (_, 0) => (0, 0),
                (true, 1..=60) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                (false, 1..=60) => (0, (1i128 << bits) - 1),
                _ => return None,
            };
            let corners = [range.0 * low, range.0 * high, range.1 * low, range.1 * high];
            range = (*corners.iter().min()?, *corners.iter().max()?);
        }
        Some(if self.negative {
            (-range.1, -range.0)
        } else {
            range
        })
    }
}

/// The least and the greatest value of a sum.
fn range(terms: &[Term<'_>]) -> Option<(i128, i128)> {
    terms.iter().try_fold((0i128, 0i128), |sum, term| {
        let (low, high) = term.range()?;
        Some((sum.0.checked_add(low)?, sum.1.checked_add(high)?))
    })
}

pub(super) fn is_sum(kind: &str) -> bool {
    matches!(kind, "$add" | "$sub" | "$mul" | "$neg")
}

/// The sum that a cell is, with those taken in that only it reads.
pub(super) fn terms<'a>(netlist: &Netlist<'a>, at: CellRef<'a>) -> Vec<Term<'a>> {
    let width = at.bits("Y").len();
    let mut open = own_terms(at);
    open.reverse();
    let mut closed = Vec::new();
    let mut taken = HashSet::from([at.name]);
    while let Some(term) = open.pop() {
        let inner = match term.factors[..] {
            [factor] => inner_sum(netlist, factor, width),
            _ => None,
        };
        // A sum that is taken in twice reads itself, and is refused where it is computed.
        match inner.filter(|inner| taken.insert(inner.name)) {
            Some(inner) => open.extend(own_terms(inner).into_iter().rev().map(|mut inner| {
                inner.negative ^= term.negative;
                inner
            })),
            None => closed.push(term),
        }
    }
    closed
}

/// The operands of one cell.
fn own_terms(at: CellRef<'_>) -> Vec<Term<'_>> {
    let kind = at.cell.kind.as_str();
    let width = at.bits("Y").len();
    let signed = at.signed("A_SIGNED") && (kind == "$neg" || at.signed("B_SIGNED"));
    let factor = |port| Factor::new(at.bits(port), signed, width);
    let term = |factors, negative| Term { factors, negative };
    match kind {
        "$mul" => vec![term(vec![factor("A"), factor("B")], false)],
        "$neg" => vec![term(vec![factor("A")], true)],
        _ => vec![
            term(vec![factor("A")], false),
            term(vec![factor("B")], kind == "$sub"),
        ],
    }
}

/// The cell whose sum a number is, if only this addition modulo 2^width reads it, and nothing is lost by leaving out that cell's own
/// reduction modulo a power of two.
fn inner_sum<'a>(netlist: &Netlist<'a>, factor: Factor<'a>, width: usize) -> Option<CellRef<'a>> {
    let Factor { bits, signed } = factor;
    let inner = netlist.only_reader_of(bits)?;
    if !is_sum(&inner.cell.kind) {
        return None;
    }
    let size = u32::try_from(bits.len()).ok()?;
    let exact = || {
        let (low, high) = range(&own_terms(inner))?;
        let (least, most) = match signed {
            _ if size > 120 => return None,
            true => (-(1i128 << (size - 1)), (1i128 << (size - 1)) - 1),
            false => (0, (1i128 << size) - 1),
        };
        (least <= low && high <= most).then_some(())
    };
    // What was taken in is as exact as what was not: both are the same number.
    let whole = bits.len() >= width || exact().is_some();
    whole.then_some(inner)
}

/// The gates of a sum.
pub(super) fn lower(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let width = at.bits("Y").len();
    let terms = terms(lowering.netlist, at);
    let bits = |term: &Term<'_>| {
        let lengths = term.factors.iter().map(|f| f.bits.len().min(width) as u64);
        lengths.fold(1u64, u64::saturating_mul)
    };
    let bits = terms.iter().map(bits).fold(0, u64::saturating_add);
    lowering.room(bits.saturating_mul(6))?;
    // Beyond these bits the sum is its sign.
    let range = range(&terms);
    let own = range.map_or(width, |(low, high)| width.min(length(low, high)));
    let mut columns = Columns::new(own);
    for term in &terms {
        let mut factors = Vec::new();
        for factor in &term.factors {
            let wires: Result<Vec<_>, _> =
                (factor.bits.iter().map(|&bit| lowering.wire(at, bit))).collect();
            factors.push((wires?, factor.signed));
        }
        columns.add(&mut lowering.b, &factors, term.negative);
    }
    let mut sum = columns.sum(&mut lowering.b, lowering.aim);
    let signed = range.is_some_and(|(low, _)| low < 0);
    super::cells::extend(&mut lowering.b, &mut sum, signed, width);
    lowering.drive(at, &sum)
}

/// Bits of a number in this range, with a sign if it can be negative.
fn length(low: i128, high: i128) -> usize {
    let unsigned = |number: i128| (128 - number.leading_zeros()) as usize;
    match low {
        0.. => unsigned(high),
        _ => unsigned(high.max(0)).max(unsigned(-(low + 1))) + 1,
    }
}

/// Bits to be added, by weight, and a constant.
struct Columns {
    bits: Vec<Vec<Wire>>,
    constant: Vec<bool>,
}

impl Columns {
    fn new(width: usize) -> Self {
        Columns {
            bits: vec![Vec::new(); width],
            constant: vec![false; width],
        }
    }

    /// Adds or subtracts a number, or the product of two.
    fn add(&mut self, b: &mut Builder, factors: &[(Vec<Wire>, bool)], negative: bool) {
        let is_sign =
            |(word, signed): &(Vec<Wire>, bool), place| *signed && place + 1 == word.len();
        match factors {
            [x] => {
                for (place, &bit) in x.0.iter().enumerate().take(self.bits.len()) {
                    self.bit(b, place, bit, negative ^ is_sign(x, place));
                }
            }
            [x, y] => {
                for (i, &x_bit) in x.0.iter().enumerate().take(self.bits.len()) {
                    for (j, &y_bit) in y.0.iter().enumerate().take(self.bits.len() - i) {
                        let product = b.and(x_bit, y_bit);
                        let negative = negative ^ is_sign(x, i) ^ is_sign(y, j);
                        self.bit(b, i + j, product, negative);
                    }
                }
            }
            _ => {}
        }
    }

    fn bit(&mut self, b: &mut Builder, place: usize, bit: Wire, negative: bool) {
        let bit = if negative {
            self.constant(place, true);
            b.not(bit)
        } else {
            bit
        };
        if bit == b.constant_bit(true) {
            self.constant(place, false);
        } else if bit != b.constant_bit(false) {
            self.bits[place].push(bit);
        }
    }

    /// Adds or subtracts 2^place.
    fn constant(&mut self, place: usize, negative: bool) {
        for bit in &mut self.constant[place..] {
            *bit = !*bit;
            if *bit != negative {
                break;
            }
        }
    }

    fn sum(mut self, b: &mut Builder, aim: Aim) -> Vec<Wire> {
        let one = b.constant_bit(true);
        if aim == Aim::Depth {
            for (bits, constant) in self.bits.iter_mut().zip(self.constant) {
                bits.extend(constant.then_some(one));
            }
            return sum_columns(b, self.bits);
        }
        let mut sum = Vec::with_capacity(self.bits.len());
        let mut carries: Vec<Wire> = Vec::new();
        let last = self.bits.len().wrapping_sub(1);
        for (place, bits) in self.bits.into_iter().enumerate() {
            // 2x is x in the next column.
            let mut doubled = Vec::new();
            let mut counts = BTreeMap::new();
            for bit in bits.into_iter().chain(std::mem::take(&mut carries)) {
                *counts.entry((b.depth(bit), bit)).or_insert(0u64) += 1;
            }
            let mut queue = BTreeSet::new();
            for ((depth, bit), count) in counts {
                doubled.extend((0..count / 2).map(|_| bit));
                if count % 2 == 1 {
                    queue.insert((depth, bit));
                }
            }
            let constant = self.constant[place];
            let (bit, more) = add_column(
                b,
                queue.into_iter().map(|key| key.1).collect(),
                constant,
                place == last,
            );
            sum.push(bit);
            carries = more;
            carries.extend(doubled);
        }
        sum
    }
}

/// The sum modulo 2 of the bits of a column, earliest first, and of a constant 1 if there is one; and its carries, unless the column is the
/// last. One AND for each carry, at most.
fn add_column(b: &mut Builder, bits: Vec<Wire>, constant: bool, last: bool) -> (Wire, Vec<Wire>) {
    if last {
        let sum = bits.into_iter().reduce(|x, y| b.xor(x, y));
        let sum = sum.unwrap_or_else(|| b.constant_bit(false));
        return (b.plus(sum, constant.into()), Vec::new());
    }
    let mut queue = std::collections::VecDeque::from(bits);
    let mut carries = Vec::new();
    while queue.len() > 2 {
        let (x, y, z) = (queue.pop_front(), queue.pop_front(), queue.pop_front());
        let (Some(x), Some(y), Some(z)) = (x, y, z) else {
            break;
        };
        // The latest is the third: a carry that runs shares its differences with comparisons of the same numbers.
        let (sum, carry) = full_adder(b, z, x, y);
        let at = queue.partition_point(|&other| b.depth(other) <= b.depth(sum));
        queue.insert(at, sum);
        carries.push(carry);
    }
    let one = constant.then(|| b.constant_bit(true));
    let mut left = queue.into_iter().chain(one);
    match (left.next(), left.next(), left.next()) {
        (Some(x), Some(y), Some(z)) => {
            let (sum, carry) = full_adder(b, z, x, y);
            carries.push(carry);
            (sum, carries)
        }
        (Some(x), Some(y), None) => {
            let carry = b.and(x, y);
            carries.push(carry);
            (b.xor(x, y), carries)
        }
        (Some(x), ..) => (x, carries),
        _ => (b.constant_bit(false), carries),
    }
}
