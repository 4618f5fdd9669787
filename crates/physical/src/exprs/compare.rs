//! Comparisons of numbers, and bits that are combined.

use veil_circuit::generate::{self, Aim, constant_bits, sum_is_minus_one};
use veil_circuit::{Builder, Wire};

use super::word::{Word, aligned};

/// Whether all bits are 1: an AND for each different bit but one, in few rounds.
pub(crate) fn all(b: &mut Builder, mut bits: Vec<Wire>) -> Wire {
    bits.sort_unstable();
    bits.dedup();
    loop {
        // The two that are known first; the last of the list are.
        bits.sort_by_key(|&bit| std::cmp::Reverse(b.depth(bit)));
        match (bits.pop(), bits.pop()) {
            (Some(x), Some(y)) => bits.push(b.and(x, y)),
            (Some(x), None) => return x,
            _ => return b.constant_bit(true),
        }
    }
}

/// Whether a bit is 1; costs as [`all`].
pub(crate) fn any(b: &mut Builder, bits: Vec<Wire>) -> Wire {
    let not = bits.into_iter().map(|bit| b.not(bit)).collect();
    let none = all(b, not);
    b.not(none)
}

/// Whether `x = y`: an AND less than their common range has bits, or than that of the one that is not public; as many again if their offsets
/// differ.
pub(crate) fn equal(b: &mut Builder, x: &Word, y: &Word) -> Wire {
    let hull = x.range.hull(y.range);
    match (x.known(b), y.known(b)) {
        (Some(x), Some(y)) => return b.constant_bit(x == y),
        (Some(known), None) => return is(b, y, known),
        (None, Some(known)) => return is(b, x, known),
        (None, None) => {}
    }
    if x.range.max() < y.range.min() || y.range.max() < x.range.min() {
        return b.constant_bit(false);
    }
    let len = hull.bits();
    let [left, right] = [x, y].map(|word| padded(b, &word.bits, len));
    if x.offset == y.offset {
        return generate::equal(b, &left, &right);
    }
    // x + d − y − 1 = −1 modulo 2^len, which is more than the distance of the two.
    let up = x.offset.wrapping_sub(y.offset) as u128;
    let up = constant_bits(b, up, len);
    let minus = right.iter().map(|&bit| b.not(bit)).collect();
    sum_is_minus_one(b, &[left, minus, up])
}

/// Whether `x` is a public number: an AND less than it has bits.
fn is(b: &mut Builder, x: &Word, known: i128) -> Wire {
    if !x.range.contains(known) {
        return b.constant_bit(false);
    }
    let bits = known.wrapping_sub(x.offset) as u128;
    is_bits(b, &x.bits, bits)
}

/// Whether an unsigned word is a public one: an AND less than it has bits.
pub(crate) fn is_bits(b: &mut Builder, x: &[Wire], known: u128) -> Wire {
    let same = |(j, &bit): (usize, &Wire)| {
        if known >> j & 1 == 1 { bit } else { b.not(bit) }
    };
    let same = x.iter().enumerate().map(same).collect();
    all(b, same)
}

/// Whether `x < y`.
///
/// With a public number an AND less than the other has bits, at most. Otherwise, for a common range of `n` bits, `n` ANDs for
/// [`Aim::Size`], `2n` for [`Aim::Depth`]; `n` more if their offsets differ.
pub(crate) fn less(b: &mut Builder, x: &Word, y: &Word, aim: Aim) -> Wire {
    if x.range.max() < y.range.min() {
        return b.constant_bit(true);
    }
    if y.range.max() <= x.range.min() {
        return b.constant_bit(false);
    }
    match (x.known(b), y.known(b)) {
        (Some(x), Some(y)) => return b.constant_bit(x < y),
        // y ≤ x is y < x + 1.
        (Some(known), None) => match known.checked_add(1) {
            Some(above) => {
                let at_most = below(b, y, above, aim);
                return b.not(at_most);
            }
            None => return b.constant_bit(false),
        },
        (None, Some(known)) => return below(b, x, known, aim),
        (None, None) => {}
    }
    let hull = x.range.hull(y.range);
    let (_, words) = aligned(b, &[x, y], hull, aim);
    less_bits(b, &words[0], &words[1], aim)
}

/// Whether `x` is less than a public number.
pub(crate) fn below(b: &mut Builder, x: &Word, bound: i128, aim: Aim) -> Wire {
    if bound <= x.range.min() {
        return b.constant_bit(false);
    }
    if bound > x.range.max() {
        return b.constant_bit(true);
    }
    let bound = bound.wrapping_sub(x.offset) as u128;
    below_bits(b, &x.bits, bound, aim)
}

/// Whether an unsigned word is less than a public number, which it has bits for: an AND less than there are bits, at most, for
/// [`Aim::Size`].
pub(crate) fn below_bits(b: &mut Builder, x: &[Wire], bound: u128, aim: Aim) -> Wire {
    // What lies below the lowest 1 of the bound decides nothing.
    let from = (bound.trailing_zeros() as usize).min(x.len());
    // Runs of equal bits of the bound: (less, equal) in them.
    let mut runs = Vec::new();
    let mut start = from;
    while start < x.len() {
        let set = bound >> start & 1 == 1;
        let run = x[start..]
            .iter()
            .enumerate()
            .take_while(|(j, _)| (bound >> (start + j) & 1 == 1) == set);
        let bits: Vec<Wire> = run.map(|(_, &bit)| bit).collect();
        start += bits.len();
        let bits = if set {
            bits
        } else {
            bits.iter().map(|&bit| b.not(bit)).collect()
        };
        let equal = all(b, bits);
        let less = if set {
            b.not(equal)
        } else {
            b.constant_bit(false)
        };
        runs.push((less, equal));
    }
    merged(b, runs, aim)
}

/// Whether one unsigned word is less than another of its length.
pub(crate) fn less_bits(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Wire {
    match aim {
        Aim::Size => generate::less_than(b, x, y, Aim::Size),
        Aim::Depth => {
            // In a run: whether the words differ, and the bit of y in the highest place where they do.
            let mut runs: Vec<(Wire, Wire)> = Vec::new();
            for (&x, &y) in x.iter().zip(y) {
                runs.push((b.xor(x, y), y));
            }
            while runs.len() > 1 {
                let pairs = runs.chunks(2);
                runs = pairs
                    .map(|pair| match *pair {
                        [(low, below), (high, above)] => {
                            let either = {
                                let (both, one) = (b.and(low, high), b.xor(low, high));
                                b.xor(both, one)
                            };
                            (either, b.mux(high, above, below))
                        }
                        _ => pair[0],
                    })
                    .collect();
            }
            match runs.first() {
                Some(&(differ, greater)) => b.and(differ, greater),
                None => b.constant_bit(false),
            }
        }
    }
}

/// Whether less, of runs from the lowest: of each whether less and whether equal.
fn merged(b: &mut Builder, mut runs: Vec<(Wire, Wire)>, aim: Aim) -> Wire {
    let mut merge = |(low, equal_low): (Wire, Wire), (high, equal): (Wire, Wire)| {
        // Less above, or equal there and less below: never both.
        let passed = b.and(equal, low);
        (b.xor(high, passed), b.and(equal, equal_low))
    };
    if aim == Aim::Size {
        // Whether all are equal is not asked for, and dropped.
        let merged = runs.into_iter().reduce(merge);
        return match merged {
            Some((less, _)) => less,
            None => b.constant_bit(false),
        };
    }
    while runs.len() > 1 {
        let pairs = runs.chunks(2);
        runs = pairs
            .map(|pair| match *pair {
                [low, high] => merge(low, high),
                _ => pair[0],
            })
            .collect();
    }
    match runs.first() {
        Some(&(less, _)) => less,
        None => b.constant_bit(false),
    }
}

/// The word with zeros above, in `len` bits, or its lowest.
pub(crate) fn padded(b: &mut Builder, bits: &[Wire], len: u32) -> Vec<Wire> {
    let mut bits = bits.to_vec();
    let zero = b.constant_bit(false);
    bits.resize(len as usize, zero);
    bits
}

/// The bits where a condition is 1, else zeros.
pub(crate) fn masked(b: &mut Builder, bits: &[Wire], condition: Wire) -> Vec<Wire> {
    bits.iter().map(|&bit| b.and(bit, condition)).collect()
}

/// The bits of `yes` where a condition is 1, else those of `no`.
pub(crate) fn choose(b: &mut Builder, condition: Wire, yes: &[Wire], no: &[Wire]) -> Vec<Wire> {
    let pairs = yes.iter().zip(no);
    pairs.map(|(&yes, &no)| b.mux(condition, yes, no)).collect()
}
