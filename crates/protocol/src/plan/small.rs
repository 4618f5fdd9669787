//! Small circuits that conversions are made of: of words of bits, one for each component, and of components of bits.

use veil_circuit::{Builder, Circuit, Per, Wire, generate};
use veil_math::Ring;

const MADE: &str = "a small circuit of distinct ports";

/// What is computed of words, one for each component.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// The sum of words of so many bits, modulo 2 to their number.
    Sum(u32),
    /// Whether it is -1.
    IsMinusOne(u32),
    /// The carries of the sum of the `low` lowest bits of words, and of the sum of words of `width` bits: two bits each; then the highest
    /// bit of their sum.
    Carries { low: u32, width: u32 },
    /// Whether the first of two words of so many bits is less than the second.
    Less(u32),
    /// The sum of words of so many bits and of one more that has so many, is known last, and comes behind them.
    Masked(u32, u32),
}

impl Of {
    /// Bits of a word.
    pub(super) fn width(self) -> u32 {
        match self {
            Of::Sum(width)
            | Of::Less(width)
            | Of::IsMinusOne(width)
            | Of::Carries { width, .. }
            | Of::Masked(width, _) => width,
        }
    }

    pub(super) fn make(self, count: usize) -> Circuit {
        let mut b = Builder::new(Ring::Bits);
        let count = match self {
            Of::Less(_) => 2,
            _ => count,
        };
        let words: Vec<Vec<Wire>> = (0..count)
            .map(|c| b.input(format!("u{c}"), self.width(), Per::Row))
            .collect();
        let out = match self {
            Of::Sum(_) => generate::sum(&mut b, &words, generate::Aim::Depth),
            Of::Less(_) => {
                let aim = generate::Aim::Depth;
                vec![generate::less_than(&mut b, &words[0], &words[1], aim)]
            }
            Of::IsMinusOne(_) => vec![generate::sum_is_minus_one(&mut b, &words)],
            Of::Carries { low, width } => {
                let mut out = carries(&mut b, &words, low).split_off(low as usize);
                let mut all = carries(&mut b, &words, width);
                out.extend(all.split_off(width as usize));
                out.extend(all.pop());
                out
            }
            Of::Masked(width, bits) => {
                let mut word = b.input("x", bits, Per::Row);
                word.resize(width as usize, b.constant_bit(false));
                generate::sum_with(&mut b, &words, &word)
            }
        };
        b.output("out", &out);
        b.finish().expect(MADE)
    }
}

/// The sum of the lowest bits of words, two bits longer than they are.
fn carries(b: &mut Builder, words: &[Vec<Wire>], low: u32) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    let words: Vec<Vec<Wire>> = (words.iter())
        .map(|word| [&word[..low as usize], &[zero; 2]].concat())
        .collect();
    generate::sum(b, &words, generate::Aim::Depth)
}

/// The XOR of `count` integers that are 0 or 1: a tree of a + b - 2ab.
pub(super) fn xors(ring: Ring, count: usize) -> Circuit {
    let mut b = Builder::new(ring);
    let mut rest = b.input("t", count as u32, Per::Row);
    while rest.len() > 1 {
        let pairs = rest.chunks(2).map(|pair| match *pair {
            [x, y] => {
                let (sum, both) = (b.add(x, y), b.mul(x, y));
                let twice = b.times(both, 2);
                b.sub(sum, twice)
            }
            _ => pair[0],
        });
        rest = pairs.collect();
    }
    b.output("xor", &rest);
    b.finish().expect(MADE)
}
