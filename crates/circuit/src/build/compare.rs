//! Comparison.

use veil_math::Ring;

use super::adder::{Aim, carries, not};
use crate::{Builder, Circuit, Per, Wire};

/// Whether `x < y`, for unsigned words of `n` bits.
///
/// [`Aim::Size`]: `n` ANDs, depth `n`. [`Aim::Depth`]: a tree of fewer than `3n` ANDs, depth `1 + ⌈log2 n⌉`.
///
/// # Panics
/// If the words have different widths.
pub fn less_than(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Wire {
    assert_eq!(x.len(), y.len(), "words of one width");
    match aim {
        Aim::Size => {
            // x - y = x + ¬y + 1 carries out exactly if x >= y.
            let (not_y, one) = (not(b, y), b.constant_bit(true));
            let carries = carries(b, x, &not_y, one, Aim::Size);
            let not_less = carries[x.len()];
            b.not(not_less)
        }
        Aim::Depth => {
            let bits = x.iter().zip(y);
            let runs = bits.map(|(&x, &y)| {
                let differ = b.xor(x, y);
                Run {
                    less: b.and(differ, y),
                    equal: b.not(differ),
                }
            });
            let runs = runs.collect();
            less(b, runs)
        }
    }
}

/// Bits that are compared one after the other before a tree begins: with six, words of 52 bits take 64 products in nine rounds; with four, 72 in eight.
const IN_A_ROW: usize = 6;

/// Whether the words of a first row precede those of a second one: the circuit of ports `first0`, `first1`, …, `second0`, … of so many bits each, the
/// least significant word first, and of one output, `precedes`.
///
/// The word of the second row decides in the highest bit in which the two differ, and it has a 1 there if the first row precedes:
///
/// ```text
/// E_i = words are equal in all bits above bit i        precedes = ⊕_i (E_i ⊕ E_(i-1)) · y_i
/// ```
///
/// Sums of products that nothing else reads are one product of shares, so that n bits take fewer than 4/3 n + 8 products, in 6 + ⌈log2 n/6⌉ rounds at most. The circuit has
/// fewer than 5/2 n ANDs.
pub fn precedes(widths: &[u32]) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let mut ports = |name: &str| -> Vec<Wire> {
        let words = widths.iter().enumerate();
        words
            .flat_map(|(at, width)| b.input(format!("{name}{at}"), *width, Per::Row))
            .collect()
    };
    let (first, second) = (ports("first"), ports("second"));
    let bits: Vec<_> = first.into_iter().zip(second).rev().collect();
    let runs = bits.chunks(IN_A_ROW).map(|bits| highest(&mut b, bits));
    let runs: Vec<Run> = runs.collect();
    // Whether all runs from the highest to this one are equal.
    let mut equal: Vec<Wire> = runs.iter().map(|run| run.equal).collect();
    let runs_above = equal.len() - 1;
    prefixes(&mut b, &mut equal[..runs_above]);
    let mut less = runs[0].less;
    let below = runs[1..].iter().zip(&equal);
    let below: Vec<Wire> = below.map(|(run, equal)| b.and(*equal, run.less)).collect();
    if !below.is_empty() {
        let below = sum(&mut b, &below);
        less = b.xor(less, below);
    }
    b.output("precedes", &[less]);
    b.finish().expect("gates in their order")
}

/// Whether x < y in these bits, the highest first, and whether they are equal.
fn highest(b: &mut Builder, bits: &[(Wire, Wire)]) -> Run {
    let mut equal = None;
    let mut decided = Vec::with_capacity(bits.len());
    for &(x, y) in bits {
        let differ = b.xor(x, y);
        let same = b.not(differ);
        let (first, now) = match equal {
            None => (differ, same),
            Some(above) => {
                let now = b.and(above, same);
                (b.xor(above, now), now)
            }
        };
        decided.push(b.and(first, y));
        equal = Some(now);
    }
    Run {
        less: sum(b, &decided),
        equal: equal.expect("a run has bits"),
    }
}

/// The XOR of bits, at least one.
fn sum(b: &mut Builder, bits: &[Wire]) -> Wire {
    let all = bits.iter().copied().reduce(|sum, bit| b.xor(sum, bit));
    all.expect("there are bits")
}

/// Of each bit, whether it and all before it are 1: the prefix circuit of Sklansky, n/2 ⌈log2 n⌉ ANDs at most, depth ⌈log2 n⌉.
fn prefixes(b: &mut Builder, bits: &mut [Wire]) {
    let mut half = 1;
    while half < bits.len() {
        for block in bits.chunks_mut(2 * half) {
            if let Some((low, high)) = block.split_at_mut_checked(half) {
                let all = low[half - 1];
                for bit in high {
                    *bit = b.and(all, *bit);
                }
            }
        }
        half *= 2;
    }
}

/// Whether x < y in some bits of words, and whether they are equal there: never both.
#[derive(Clone, Copy)]
struct Run {
    less: Wire,
    equal: Wire,
}

/// Whether x < y in all runs together, the lowest first: less in the upper one, or equal there and less in the lower. In none it is not.
fn less(b: &mut Builder, mut runs: Vec<Run>) -> Wire {
    while runs.len() > 1 {
        let pairs = runs.chunks(2).map(|pair| match *pair {
            [low, high] => {
                let passed = b.and(high.equal, low.less);
                Run {
                    less: b.xor(high.less, passed),
                    equal: b.and(high.equal, low.equal),
                }
            }
            _ => pair[0],
        });
        runs = pairs.collect();
    }
    match runs.first() {
        Some(all) => all.less,
        None => b.constant_bit(false),
    }
}

/// Whether `x < y`, for words in two's complement; costs as [`less_than`].
///
/// # Panics
/// If the words have different widths.
pub fn less_than_signed(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Wire {
    // Flipping the sign bits maps two's complement to unsigned and keeps the order.
    let (mut x, mut y) = (x.to_vec(), y.to_vec());
    for word in [&mut x, &mut y] {
        if let Some(sign) = word.last_mut() {
            *sign = b.not(*sign);
        }
    }
    less_than(b, &x, &y, aim)
}

/// Whether `x = y`: `n - 1` ANDs, depth `⌈log2 n⌉`.
///
/// # Panics
/// If the words have different widths.
pub fn equal(b: &mut Builder, x: &[Wire], y: &[Wire]) -> Wire {
    assert_eq!(x.len(), y.len(), "words of one width");
    let mut same: Vec<Wire> = Vec::with_capacity(x.len());
    for (&x, &y) in x.iter().zip(y) {
        let differ = b.xor(x, y);
        same.push(b.not(differ));
    }
    all(b, &same)
}

/// Whether all bits are 1; of none, they are: `n - 1` ANDs, depth `⌈log2 n⌉`.
pub fn all(b: &mut Builder, bits: &[Wire]) -> Wire {
    let mut left = bits.to_vec();
    while left.len() > 1 {
        let pairs = left.chunks(2);
        let halves = pairs.map(|pair| match *pair {
            [x, y] => b.and(x, y),
            _ => pair[0],
        });
        left = halves.collect();
    }
    match left.first() {
        Some(bit) => *bit,
        None => b.constant_bit(true),
    }
}

/// Whether one of the bits is 1; of none, none is: `n - 1` ANDs, depth `⌈log2 n⌉`.
pub fn any(b: &mut Builder, bits: &[Wire]) -> Wire {
    let none: Vec<Wire> = bits.iter().map(|bit| b.not(*bit)).collect();
    let none = all(b, &none);
    b.not(none)
}
