//! Comparison.

use super::adder::{Aim, carries, not};
use crate::{Builder, Wire};

/// Whether `x < y`, for unsigned words of `n` bits.
///
/// [`Aim::Size`]: `n` ANDs, depth `n`. [`Aim::Depth`]: a tree of fewer than `3n` ANDs, depth `1 + ⌈log2 n⌉`.
///
/// # Panics
/// If the words have different widths.
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
            let mut runs = Vec::with_capacity(x.len());
            for (&x, &y) in x.iter().zip(y) {
                let differ = b.xor(x, y);
                runs.push((b.and(differ, y), b.not(differ)));
            }
            if runs.is_empty() {
                return b.constant_bit(false);
            }
            // Less in the upper run, or equal there and less in the lower: never both.
            while runs.len() > 1 {
                let mut next = Vec::with_capacity(runs.len().div_ceil(2));
                for pair in runs.chunks(2) {
                    next.push(match *pair {
                        [(low_less, low_equal), (high_less, high_equal)] => {
                            let passed = b.and(high_equal, low_less);
                            (b.xor(high_less, passed), b.and(high_equal, low_equal))
                        }
                        _ => pair[0],
                    });
                }
                runs = next;
            }
            runs[0].0
        }
    }
}

/// Whether `x < y`, for words in two's complement; costs as [`less_than`].
///
/// # Panics
/// If the words have different widths.
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
