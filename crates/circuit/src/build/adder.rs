//! Addition and subtraction.

use super::compare::equal;
use crate::{Builder, Wire};

/// The measure that a generator keeps small where it has the choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Aim {
    /// Few ANDs: bytes on the wire, and throughput.
    Size,
    /// Small AND depth: rounds, and latency.
    Depth,
}

/// `x + y` modulo 2^n for words of `n` bits.
///
/// [`Aim::Size`]: `n - 1` ANDs, depth `n - 1` (carry by one AND: Boyar, Peralta, Pochuev 2000, "On the multiplicative
/// complexity of Boolean functions over the basis (∧, ⊕, 1)"). [`Aim::Depth`]: a parallel-prefix adder (Sklansky 1960,
/// "Conditional-sum addition logic"), depth `1 + ⌈log2(n - 1)⌉`.
pub fn add(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    add_with_carry(b, x, y, zero, aim)
}

/// `x - y` modulo 2^n, as `x + ¬y + 1`; costs as [`add`].
pub fn sub(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    let (not_y, one) = (not(b, y), b.constant_bit(true));
    add_with_carry(b, x, &not_y, one, aim)
}

/// The sum of any number of `n`-bit words modulo 2^n: carry-save, then one [`add`].
///
/// Each word after the second costs `n - 1` ANDs at most. Bits that are known early are added early.
pub fn sum(b: &mut Builder, words: &[Vec<Wire>], aim: Aim) -> Vec<Wire> {
    let columns = carry_save(b, words, aim);
    add_rows(b, &columns, aim)
}

/// The sum of any number of `n`-bit words and of one more that is known late, modulo 2^n, with small depth: it waits for one carry-save
/// addition and one [`add`].
pub fn sum_with(b: &mut Builder, words: &[Vec<Wire>], late: &[Wire]) -> Vec<Wire> {
    let columns = carry_save(b, words, Aim::Depth);
    let [x, y] = rows(b, &columns);
    sum(b, &[late.to_vec(), x, y], Aim::Depth)
}

/// Whether the sum of any number of `n`-bit words is -1 modulo 2^n: carry-save, then `n - 1` ANDs in `⌈log2 n⌉` rounds.
///
/// Two words add up to -1 exactly if one is the other's complement: no carry is needed.
pub fn sum_is_minus_one(b: &mut Builder, words: &[Vec<Wire>]) -> Wire {
    let columns = carry_save(b, words, Aim::Depth);
    let [x, y] = rows(b, &columns);
    let not_y = not(b, &y);
    equal(b, &x, &not_y)
}

/// Columns of at most two bits that have the same sum as the words.
fn carry_save(b: &mut Builder, words: &[Vec<Wire>], aim: Aim) -> Vec<Vec<Wire>> {
    let width = words.first().map_or(0, Vec::len);
    let zero = b.constant_bit(false);
    let mut columns = vec![Vec::new(); width];
    for word in words {
        assert_eq!(word.len(), width, "words of one width");
        for (column, &wire) in columns.iter_mut().zip(word) {
            // A known zero costs an AND if it is added, but keeps columns equally high: no carry runs along them.
            if wire != zero || aim == Aim::Depth {
                column.push(wire);
            }
        }
    }
    loop {
        for column in &mut columns {
            // Known bits last, where they are taken.
            column.sort_by_key(|&wire| std::cmp::Reverse(b.depth(wire)));
        }
        // The first round in which three bits of some column are known.
        let third = |column: &Vec<Wire>| Some(b.depth(column[column.len().checked_sub(3)?]));
        let Some(round) = columns.iter().filter_map(third).min() else {
            break;
        };
        compress(&mut columns, |column, _| match column[..] {
            [.., x, _, _] if b.depth(x) <= round => Some(full_adder_of(b, column)),
            _ => None,
        });
    }
    columns
}

/// Adds bits of equal weight, `columns[i]` of weight 2^i, modulo 2^(number of columns), with small depth.
///
/// A sum is known in the round of its bits and a carry a round later, so a column of `2t - 1` bits can be left with one
/// bit and take in `t - 1` carries. As in Dadda's trees (1965, "Some schemes for parallel multipliers"), each round
/// brings the columns down to the next such `t` and no further, or a last carry would run along all of them.
pub(crate) fn sum_columns(b: &mut Builder, mut columns: Vec<Vec<Wire>>) -> Vec<Wire> {
    let highest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut goals: Vec<usize> = std::iter::successors(Some(2), |goal| Some(2 * goal - 1))
        .take_while(|&goal| goal < highest)
        .collect();
    while let Some(goal) = goals.pop() {
        compress(&mut columns, |column, carried| match column.len() {
            left if left + carried <= goal => None,
            0 | 1 => None,
            2 => Some(half_adder_of(b, column)),
            _ => Some(full_adder_of(b, column)),
        });
    }
    add_rows(b, &columns, Aim::Depth)
}

/// One round of carry-save addition: in each column, `step` replaces bits by their sum and returns their carry until it
/// has enough. It is told how many carries came from the column before.
fn compress(
    columns: &mut [Vec<Wire>],
    mut step: impl FnMut(&mut Vec<Wire>, usize) -> Option<Wire>,
) {
    let mut carried = Vec::new();
    for column in columns {
        let mut carries = Vec::new();
        while let Some(carry) = step(column, carried.len()) {
            carries.push(carry);
        }
        column.append(&mut carried);
        carried = carries;
    }
}

/// Adds columns of at most two bits.
fn add_rows(b: &mut Builder, columns: &[Vec<Wire>], aim: Aim) -> Vec<Wire> {
    let [x, y] = rows(b, columns);
    add(b, &x, &y, aim)
}

/// Columns of at most two bits as two words.
fn rows(b: &mut Builder, columns: &[Vec<Wire>]) -> [Vec<Wire>; 2] {
    let zero = b.constant_bit(false);
    [0, 1].map(|place| {
        columns
            .iter()
            .map(|column| column.get(place).copied().unwrap_or(zero))
            .collect()
    })
}

/// Replaces the last three bits by their sum; returns the carry.
fn full_adder_of(b: &mut Builder, column: &mut Vec<Wire>) -> Wire {
    let at = column.len() - 3;
    let (sum, carry) = full_adder(b, column[at + 2], column[at + 1], column[at]);
    column.truncate(at);
    column.push(sum);
    carry
}

/// Replaces the last two bits by their sum; returns the carry.
fn half_adder_of(b: &mut Builder, column: &mut Vec<Wire>) -> Wire {
    let at = column.len() - 2;
    let (x, y) = (column[at], column[at + 1]);
    column.truncate(at);
    column.push(b.xor(x, y));
    b.and(x, y)
}

/// Sum and carry of three bits: one AND.
pub(crate) fn full_adder(b: &mut Builder, x: Wire, y: Wire, z: Wire) -> (Wire, Wire) {
    let (xy, xz) = (b.xor(x, y), b.xor(x, z));
    let change = b.and(xy, xz);
    (b.xor(xy, z), b.xor(x, change))
}

/// The carry into each place and out of the last, `n + 1` wires, of `x + y + carry`.
pub(super) fn carries(b: &mut Builder, x: &[Wire], y: &[Wire], carry: Wire, aim: Aim) -> Vec<Wire> {
    assert_eq!(x.len(), y.len(), "words of one width");
    match aim {
        Aim::Size => {
            let mut carries = vec![carry];
            let mut carry = carry;
            for (&x, &y) in x.iter().zip(y) {
                // Carry first: it is the third bit, and shares its differences with the sum.
                carry = full_adder(b, carry, x, y).1;
                carries.push(carry);
            }
            carries
        }
        Aim::Depth => {
            let mut pairs: Vec<Pair> = x
                .iter()
                .zip(y)
                .map(|(&x, &y)| Pair {
                    generate: b.and(x, y),
                    propagate: b.xor(x, y),
                })
                .collect();
            if let Some(first) = pairs.first_mut() {
                let passed = b.and(first.propagate, carry);
                first.generate = b.xor(first.generate, passed);
            }
            prefixes(b, &mut pairs);
            std::iter::once(carry)
                .chain(pairs.into_iter().map(|pair| pair.generate))
                .collect()
        }
    }
}

pub(super) fn not(b: &mut Builder, word: &[Wire]) -> Vec<Wire> {
    word.iter().map(|&wire| b.not(wire)).collect()
}

pub(crate) fn add_with_carry(
    b: &mut Builder,
    x: &[Wire],
    y: &[Wire],
    carry: Wire,
    aim: Aim,
) -> Vec<Wire> {
    let Some(last) = x.len().checked_sub(1) else {
        return Vec::new();
    };
    assert_eq!(x.len(), y.len(), "words of one width");
    let carries = carries(b, &x[..last], &y[..last], carry, aim);
    let sum = |((&x, &y), carry)| {
        // As `full_adder` computes it, so that the builder finds it again.
        let (first, second) = if aim == Aim::Size {
            (carry, y)
        } else {
            (y, carry)
        };
        let partial = b.xor(x, first);
        b.xor(partial, second)
    };
    x.iter().zip(y).zip(carries).map(sum).collect()
}

/// Whether a run of places makes a carry by itself, and whether it passes one on. Never both.
#[derive(Clone, Copy)]
struct Pair {
    generate: Wire,
    propagate: Wire,
}

/// Replaces each pair by that of all places up to its own, after Sklansky: in step `k`, the upper half of each block of
/// 2^(k+1) places takes in the last of the lower half.
fn prefixes(b: &mut Builder, pairs: &mut [Pair]) {
    let mut half = 1;
    while half < pairs.len() {
        for place in (0..pairs.len()).filter(|place| place & half != 0) {
            let low = pairs[(place & !(half - 1)) - 1];
            let high = pairs[place];
            let passed = b.and(high.propagate, low.generate);
            pairs[place] = Pair {
                generate: b.xor(high.generate, passed),
                propagate: b.and(high.propagate, low.propagate),
            };
        }
        half *= 2;
    }
}
