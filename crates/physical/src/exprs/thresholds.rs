//! One word compared with many public numbers at once.
//!
//! With x = h · 2^m + l and a number t = u · 2^m + v,
//!
//! ```text
//! [x < t] = [h < u] + [h = u] · [l < v],
//! ```
//!
//! where never both terms are 1: one AND for each number, and none where v is 0, when the halves are known to be less than and equal to what occurs there.
//! Words of few bits, of which most values occur, are decoded instead: all `[x = t]` take 2^n − n − 1 ANDs, and their running sums all `[x < t]`.

use std::collections::{BTreeMap, BTreeSet};

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Wire};

use super::compare::{below_bits, is_bits};

/// Most bits of a word that is decoded.
const MOST_DECODED: usize = 10;

/// What is asked of a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it is less than these.
    pub(crate) below: BTreeSet<u128>,
    /// Whether it is one of these.
    pub(crate) equal: BTreeSet<u128>,
}

/// What was asked of a word, on wires.
#[derive(Debug, Default)]
pub(crate) struct Known {
    below: BTreeMap<u128, Wire>,
    equal: BTreeMap<u128, Wire>,
}

/// How the answers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each by itself.
    Apart,
    /// The word is decoded.
    Decoded,
    /// By those about its halves.
    Halves,
}

impl Asked {
    /// Without what needs no bits: numbers out of the word's bounds are none.
    fn is_empty(&self) -> bool {
        self.below.is_empty() && self.equal.is_empty()
    }

    /// What is to be known of the lower and the upper part of a word that has `low` bits below.
    fn halves(&self, low: usize) -> (Self, Self) {
        let (mut lower, mut upper) = (Self::default(), Self::default());
        for &of in &self.below {
            let (u, v) = (of >> low, of & ((1 << low) - 1));
            if u > 0 {
                upper.below.insert(u);
            }
            if v > 0 {
                upper.equal.insert(u);
                lower.below.insert(v);
            }
        }
        for &of in &self.equal {
            upper.equal.insert(of >> low);
            lower.equal.insert(of & ((1 << low) - 1));
        }
        (lower, upper)
    }

    /// The way with the fewest ANDs, and how many it takes.
    fn way(&self, len: usize) -> (Way, usize) {
        if self.is_empty() || len <= 1 {
            return (Way::Apart, 0);
        }
        let below = self.below.iter();
        let below = below.map(|of| len.saturating_sub(1 + of.trailing_zeros() as usize));
        let apart = below.sum::<usize>() + self.equal.len() * (len - 1);
        let mut best = (Way::Apart, apart);
        if len <= MOST_DECODED && decoded_ands(len) < best.1 {
            best = (Way::Decoded, decoded_ands(len));
        }
        // Fewer than the asked take no halves, and of one there is nothing to share.
        if self.below.len() + self.equal.len() > 1 {
            let low = len / 2;
            let (lower, upper) = self.halves(low);
            let products = self.below.iter().filter(|of| **of & ((1 << low) - 1) > 0);
            let products = products.count() + self.equal.len();
            if products < best.1 {
                let halves = lower.way(low).1 + upper.way(len - low).1;
                if products + halves < best.1 {
                    best = (Way::Halves, products + halves);
                }
            }
        }
        best
    }

    /// ANDs that [`Asked::answer`] takes at most.
    #[cfg(test)]
    pub(crate) fn ands(&self, len: usize) -> usize {
        self.way(len).1
    }

    /// Puts the answers on wires. What is asked fits the word's bits; it is not whether a word is less than 0, nor than more than it has bits for.
    pub(crate) fn answer(&self, b: &mut Builder, word: &[Wire], aim: Aim) -> Known {
        let mut known = Known::default();
        match self.way(word.len()).0 {
            Way::Apart => {
                for &of in &self.below {
                    known.below.insert(of, below_bits(b, word, of, aim));
                }
                for &of in &self.equal {
                    known.equal.insert(of, is_bits(b, word, of));
                }
            }
            Way::Decoded => {
                let all = decoded(b, word);
                let mut below = b.constant_bit(false);
                for (of, one) in (0..).zip(all) {
                    if self.below.contains(&of) {
                        known.below.insert(of, below);
                    }
                    if self.equal.contains(&of) {
                        known.equal.insert(of, one);
                    }
                    below = b.xor(below, one);
                }
            }
            Way::Halves => {
                let low = word.len() / 2;
                let (lower, upper) = self.halves(low);
                let lower = lower.answer(b, &word[..low], aim);
                let upper = upper.answer(b, &word[low..], aim);
                for &of in &self.below {
                    let (u, v) = (of >> low, of & ((1 << low) - 1));
                    let above = upper.is_below(b, u);
                    let answer = match lower.below.get(&v) {
                        Some(&less) => {
                            let both = b.and(upper.equal[&u], less);
                            b.xor(above, both)
                        }
                        None => above,
                    };
                    known.below.insert(of, answer);
                }
                for &of in &self.equal {
                    let (u, v) = (of >> low, of & ((1 << low) - 1));
                    let both = b.and(upper.equal[&u], lower.equal[&v]);
                    known.equal.insert(of, both);
                }
            }
        }
        known
    }
}

impl Known {
    /// Whether the word is a number that was asked for.
    pub(crate) fn is_equal(&self, of: u128) -> Wire {
        self.equal[&of]
    }

    /// Whether the word is less than a number that was asked for, or than 0.
    pub(crate) fn is_below(&self, b: &mut Builder, of: u128) -> Wire {
        let found = self.below.get(&of).copied();
        found.unwrap_or_else(|| b.constant_bit(false))
    }
}

/// ANDs of [`decoded`].
const fn decoded_ands(len: usize) -> usize {
    (1 << len) - len - 1
}

/// For each value of a word whether it has it.
///
/// Of each half all but one are multiplied with all but one of the other; what is left are their sums, since one of each half is 1.
pub(crate) fn decoded(b: &mut Builder, word: &[Wire]) -> Vec<Wire> {
    match word {
        [] => vec![b.constant_bit(true)],
        [bit] => vec![b.not(*bit), *bit],
        word => {
            let (low, high) = word.split_at(word.len() / 2);
            let (low, high) = (decoded(b, low), decoded(b, high));
            let mut all = Vec::with_capacity(low.len() * high.len());
            let mut left = low.clone();
            for (at, &upper) in high.iter().enumerate() {
                if at + 1 == high.len() {
                    all.append(&mut left);
                    break;
                }
                let mut rest = upper;
                for (lower, left) in low[..low.len() - 1].iter().zip(&mut left) {
                    let both = b.and(upper, *lower);
                    rest = b.xor(rest, both);
                    *left = b.xor(*left, both);
                    all.push(both);
                }
                let last = left.len() - 1;
                left[last] = b.xor(left[last], rest);
                all.push(rest);
            }
            all
        }
    }
}
