//! Addition and subtraction.

use crate::{Builder, Wire};

/// What a generator keeps small where it has the choice.
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
    let zero = b.constant(0);
    add_with_carry(b, x, y, zero, aim)
}

/// `x - y` modulo 2^n, as `x + ¬y + 1`; costs as [`add`].
pub fn sub(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    let (not_y, one) = (not(b, y), b.constant(1));
    add_with_carry(b, x, &not_y, one, aim)
}

/// The sum of any number of `n`-bit words modulo 2^n: carry-save, then one [`add`].
///
/// Each word after the second costs `n - 1` ANDs at most and, since always the three earliest words are taken together,
/// little depth.
pub fn sum(b: &mut Builder, words: &[Vec<Wire>], aim: Aim) -> Vec<Wire> {
    let width = words.first().map_or(0, Vec::len);
    let mut columns = vec![Vec::new(); width];
    for word in words {
        assert_eq!(word.len(), width, "words of one width");
        for (column, &wire) in columns.iter_mut().zip(word) {
            column.push((wire, 0));
        }
    }
    add_columns(b, columns, aim)
}

/// Adds bits of equal weight, `columns[i]` of weight 2^i, modulo 2^(number of columns). With each bit stands the AND
/// depth at which it is known, relative to the others.
pub(super) fn add_columns(
    b: &mut Builder,
    mut columns: Vec<Vec<(Wire, u32)>>,
    aim: Aim,
) -> Vec<Wire> {
    let width = columns.len();
    let zero = b.constant(0);
    let (mut x, mut y) = (vec![zero; width], vec![zero; width]);
    for place in 0..width {
        let mut column = std::mem::take(&mut columns[place]);
        while column.len() > 2 {
            // Earliest last, so that they are taken first.
            column.sort_by_key(|&(_, depth)| std::cmp::Reverse(depth));
            let (Some(p), Some(q), Some(r)) = (column.pop(), column.pop(), column.pop()) else {
                break;
            };
            let depth = p.1.max(q.1).max(r.1);
            let (bit, carry) = full_adder(b, p.0, q.0, r.0);
            column.push((bit, depth));
            if let Some(next) = columns.get_mut(place + 1) {
                next.push((carry, depth + 1));
            }
        }
        let mut rest = column.into_iter();
        x[place] = rest.next().map_or(zero, |(wire, _)| wire);
        y[place] = rest.next().map_or(zero, |(wire, _)| wire);
    }
    add(b, &x, &y, aim)
}

/// Sum and carry of three bits: one AND.
pub(super) fn full_adder(b: &mut Builder, x: Wire, y: Wire, z: Wire) -> (Wire, Wire) {
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

fn add_with_carry(b: &mut Builder, x: &[Wire], y: &[Wire], carry: Wire, aim: Aim) -> Vec<Wire> {
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
