//! Integers modulo a power of two as bits: words of wires, bit 0 first.
//!
//! Constants fold in the builder, so that bits which are known cost nothing: of integers of few bits in a large ring the upper bits are zero, and what is added to them, or multiplied, is not.

use veil_circuit::generate::{Aim, add, any, constant_bits, multiply, sub, sum};
use veil_circuit::{Builder, Wire};

/// `bits` zeros.
pub(crate) fn zeros(b: &mut Builder, bits: usize) -> Vec<Wire> {
    vec![b.constant_bit(false); bits]
}

/// The word with zeros above it, or without its upper bits.
pub(crate) fn extended(b: &mut Builder, word: &[Wire], bits: usize) -> Vec<Wire> {
    let mut all = word[..word.len().min(bits)].to_vec();
    all.resize(bits, b.constant_bit(false));
    all
}

/// Bits of a word below the known zeros at its end.
pub(crate) fn length(b: &mut Builder, word: &[Wire]) -> usize {
    let zero = b.constant_bit(false);
    let last = word.iter().rposition(|wire| *wire != zero);
    last.map_or(0, |last| last + 1)
}

/// The sum of two words of one length.
pub(crate) fn plus(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    add(b, x, y, aim)
}

/// What the first word has more.
pub(crate) fn minus(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    sub(b, x, y, aim)
}

/// The sum of a word and a public number.
pub(crate) fn plus_constant(b: &mut Builder, x: &[Wire], number: u128, aim: Aim) -> Vec<Wire> {
    let number = constant_bits(b, number, x.len() as u32);
    plus(b, x, &number, aim)
}

/// The product of two words of one length.
pub(crate) fn times(b: &mut Builder, x: &[Wire], y: &[Wire], aim: Aim) -> Vec<Wire> {
    let (of_x, of_y) = (length(b, x), length(b, y));
    // The shorter one says how many rows are added, and both together how many bits there are.
    let (x, y) = if of_x < of_y { (y, x) } else { (x, y) };
    let width = x.len().min(of_x + of_y);
    let product = multiply(b, &x[..width], &y[..width], aim);
    extended(b, &product, x.len())
}

/// The product of a word and a public number, modulo two to its bits: sums and differences of the word, shifted.
///
/// Of the digits 1, 0 and -1 of a number no two neighbours need be other than 0 (Reitwiesner, "Binary Arithmetic", 1960), so that -1, by which words are taken off, is one digit.
pub(crate) fn times_constant(b: &mut Builder, x: &[Wire], number: u128, aim: Aim) -> Vec<Wire> {
    let bits = x.len();
    let mut left = number;
    let (mut more, mut less) = (Vec::new(), Vec::new());
    for shift in 0..bits {
        if left & 1 == 1 {
            if left & 2 == 0 {
                more.push(shift);
                left &= !1;
            } else {
                less.push(shift);
                left = left.wrapping_add(1);
            }
        }
        left >>= 1;
    }
    let shifted = |b: &mut Builder, by: usize| {
        let mut word = zeros(b, by);
        word.extend_from_slice(&x[..bits - by]);
        word
    };
    let mut all: Option<Vec<Wire>> = None;
    for by in more {
        let word = shifted(b, by);
        all = Some(match all {
            Some(all) => plus(b, &all, &word, aim),
            None => word,
        });
    }
    let mut all = all.unwrap_or_else(|| zeros(b, bits));
    for by in less {
        let word = shifted(b, by);
        all = minus(b, &all, &word, aim);
    }
    all
}

/// Whether all bits are 0.
pub(crate) fn is_zero(b: &mut Builder, bits: &[Wire]) -> Wire {
    let some = any(b, bits);
    b.not(some)
}

/// The sum of words of `bits` bits, modulo two to these.
pub(crate) fn sum_of(b: &mut Builder, words: &[Vec<Wire>], bits: usize, aim: Aim) -> Vec<Wire> {
    let mut most = 0u128;
    for word in words {
        most = most.saturating_add(largest(length(b, word)));
    }
    // No sum has bits above those of the largest one.
    let width = bits.min((u128::BITS - most.leading_zeros()) as usize);
    let words: Vec<Vec<Wire>> = words.iter().map(|word| word[..width].to_vec()).collect();
    let all = sum(b, &words, aim);
    extended(b, &all, bits)
}

/// A sum that grows word by word.
pub(crate) struct Running {
    sum: Vec<Wire>,
    most: u128,
}

impl Running {
    /// Of no words yet, of so many bits.
    pub(crate) fn new(b: &mut Builder, bits: usize) -> Self {
        Running {
            sum: zeros(b, bits),
            most: 0,
        }
    }

    /// The sum so far.
    pub(crate) fn sum(&self) -> &[Wire] {
        &self.sum
    }

    /// Adds a word, of which no more bits count.
    pub(crate) fn add(&mut self, b: &mut Builder, word: &[Wire], aim: Aim) {
        let bits = self.sum.len();
        let word = extended(b, word, bits);
        self.most = self.most.saturating_add(largest(length(b, &word)));
        let width = bits.min((u128::BITS - self.most.leading_zeros()) as usize);
        let sum = plus(b, &self.sum[..width], &word[..width], aim);
        self.sum = extended(b, &sum, bits);
    }
}

/// The largest number of so many bits.
pub(crate) const fn largest(bits: usize) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX >> (128 - bits),
    }
}

#[cfg(test)]
mod tests {
    use veil_circuit::Per;
    use veil_math::Ring;

    use super::*;

    fn number(bits: &[u128]) -> u128 {
        bits.iter().zip(0..).map(|(bit, at)| bit << at).sum()
    }

    fn bits(number: u128, count: u32) -> Vec<u128> {
        (0..count).map(|bit| number >> bit & 1).collect()
    }

    /// The value of a word made of two inputs of ten bits, and its ANDs.
    fn made(
        values: [u128; 2],
        make: impl FnOnce(&mut Builder, [Vec<Wire>; 2]) -> Vec<Wire>,
    ) -> (u128, u64) {
        let mut b = Builder::new(Ring::Bits);
        let words = ["x", "y"].map(|name| b.input(name, 10, Per::Row));
        let out = make(&mut b, words);
        b.output("z", &out);
        let circuit = b.finish().unwrap();
        let found = circuit.evaluate(&values.map(|of| bits(of, 10))).unwrap();
        (number(&found[0]), circuit.stats().total_muls())
    }

    #[test]
    fn words_are_integers_of_the_ring() {
        let aims = [Aim::Size, Aim::Depth];
        let widths = aims.map(|aim| [10usize, 13, 32, 128].map(|width| (width, aim)));
        for (x, y) in [(0, 0), (1, 1023), (700, 900), (513, 3)] {
            for (width, aim) in widths.concat() {
                let ring = u128::MAX >> (128 - width);
                let of = |make: fn(&mut Builder, &[Wire], &[Wire], Aim) -> Vec<Wire>| {
                    let wide = |b: &mut Builder, [x, y]: [Vec<Wire>; 2]| {
                        let [x, y] = [extended(b, &x, width), extended(b, &y, width)];
                        make(b, &x, &y, aim)
                    };
                    made([x, y], wide).0
                };
                assert_eq!(of(plus), (x + y) & ring);
                assert_eq!(of(minus), x.wrapping_sub(y) & ring);
                assert_eq!(of(times), (x * y) & ring);
                for number in [0, 1, 2, 3, 7, 85, 1 << 9, u128::MAX, u128::MAX - 6, 1000] {
                    let by = |b: &mut Builder, [x, _]: [Vec<Wire>; 2]| {
                        let x = extended(b, &x, width);
                        let product = times_constant(b, &x, number, aim);
                        plus_constant(b, &product, number, aim)
                    };
                    let want = x.wrapping_mul(number).wrapping_add(number) & ring;
                    assert_eq!(made([x, y], by).0, want, "{x} · {number} of {width} bits");
                }
            }
        }
    }

    #[test]
    fn known_zeros_cost_nothing() {
        let wide = |b: &mut Builder, word: &[Wire]| extended(b, word, 128);
        let of = |make: fn(&mut Builder, &[Wire], &[Wire], Aim) -> Vec<Wire>| {
            let made = made([5, 6], |b, [x, y]| {
                let [x, y] = [wide(b, &x), wide(b, &y)];
                make(b, &x, &y, Aim::Size)
            });
            made.1
        };
        // A carry for each bit; a product for each pair of bits, and nine sums of ten.
        assert_eq!(of(plus), 10);
        assert_eq!(of(times), 100 + 9 * 10);
    }

    #[test]
    fn sums_have_the_bits_of_the_largest() {
        let (total, ands) = made([1023, 1000], |b, [x, y]| {
            let words: Vec<_> = [&x, &y, &x, &y, &x]
                .iter()
                .map(|word| extended(b, word, 64))
                .collect();
            sum_of(b, &words, 64, Aim::Size)
        });
        assert_eq!(total, 3 * 1023 + 2 * 1000);
        assert!(ands < 60, "{ands}");
        let (last, _) = made([1023, 1000], |b, [x, y]| {
            let mut running = Running::new(b, 10);
            let mut all = running.sum().to_vec();
            for word in [&x, &y, &x] {
                running.add(b, word, Aim::Size);
                all.extend_from_slice(running.sum());
            }
            all
        });
        let each = [0, 1023, (1023 + 1000) % 1024, (2 * 1023 + 1000) % 1024];
        let want = each.iter().zip(0..).map(|(of, at)| of << (10 * at));
        assert_eq!(last, want.sum::<u128>());
    }
}
