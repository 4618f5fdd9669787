//! Fixed-point arithmetic on elements of a ring.

use veil_math::Ring;
use veil_numeric::{Machine, Range};

use super::integer::{Integer, shift_right, truncate_pr};
use crate::{Builder, Wire};

/// How numbers lose their last places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// To nearest, halves up: [`crate::Gate::ShiftRight`], a dozen rounds.
    Nearest,
    /// Up or down at random, with the number itself as the mean: [`crate::Gate::TruncatePr`], three rounds, among four parties one. The parties learn the point at which a number was rounded.
    Drawn,
}

/// Integers as elements of the ring of a circuit, signed ones modulo 2^k, and bits as bits: [`veil_numeric`] on wires.
///
/// ```
/// use veil_circuit::generate::{OnRing, Rounding};
/// use veil_circuit::{Builder, Per};
/// use veil_math::Ring;
/// use veil_numeric::{Applied, Function, Number, Range, Scale};
/// let scale = Scale::binary(16);
/// let range = Range::new(-8 << 16, 8 << 16).ok_or("empty")?;
/// let sigmoid = Applied::new(Function::Sigmoid, scale, range, scale)?;
/// let mut b = Builder::new(Ring::Z64);
/// let x = b.input("x", 1, Per::Row)[0];
/// let y = sigmoid.on(&mut OnRing::new(&mut b, Rounding::Nearest), &Number { int: x, range })?;
/// b.output("y", &[y.int]);
/// let circuit = b.finish()?;
/// assert_eq!(circuit.evaluate(&[vec![1 << 16]])?, [[47_911]]); // 0.731058… · 2^16
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OnRing<'b> {
    b: &'b mut Builder,
    rounding: Rounding,
}

impl<'b> OnRing<'b> {
    /// On the wires of a builder.
    ///
    /// # Panics
    /// If its circuit has no integers.
    pub fn new(b: &'b mut Builder, rounding: Rounding) -> Self {
        assert!(b.ring() != Ring::Bits, "a circuit of bits has no integers");
        Self { b, rounding }
    }
}

impl Machine for OnRing<'_> {
    type Int = Wire;
    type Bit = Wire;

    fn most_bits(&self) -> u32 {
        self.b.ring().bits()
    }

    fn constant(&mut self, value: i128) -> Wire {
        self.b.constant(value as u128)
    }

    fn add(&mut self, a: &Wire, b: &Wire, _: Range) -> Wire {
        self.b.add(*a, *b)
    }

    fn times(&mut self, a: &Wire, by: i128, _: Range) -> Wire {
        let by = self.b.ring().reduce(by as u128);
        self.b.times(*a, by)
    }

    fn multiply(&mut self, a: &Wire, b: &Wire, _: Range) -> Wire {
        self.b.mul(*a, *b)
    }

    /// Of many values the bits are picked, each an exclusive or, and lifted; of few values what picks them.
    fn pick(&mut self, which: &[Wire], values: &[i128], range: Range) -> Wire {
        let picked = values.iter().filter(|value| **value != 0).count();
        if picked <= 2 * range.bits() as usize {
            return self.pick_lifted(which, values, range);
        }
        let mut sum = self.constant(range.min());
        for (place, bit) in self.pick_bits(which, values, range).iter().enumerate() {
            let bit = self.lift(bit);
            let part = self.times(&bit, 1 << place, range);
            sum = self.b.add(sum, part);
        }
        sum
    }

    fn round(&mut self, a: &Wire, by: u32, bits: u32, _: Range) -> Wire {
        if by == 0 {
            return *a;
        }
        // A number of as many bits as the quotient loses is rounded like one with a bit more, which is 0.
        let of = Integer::unsigned(bits.max(by + 1));
        match self.rounding {
            Rounding::Nearest => {
                let up = self.b.plus(*a, 1 << (by - 1));
                shift_right(self.b, up, by, of)
            }
            Rounding::Drawn => truncate_pr(self.b, *a, by, of),
        }
    }

    fn draws(&self) -> bool {
        self.rounding == Rounding::Drawn
    }

    fn bits(&mut self, a: &Wire, from: u32, bits: u32) -> Vec<Wire> {
        (from..bits).map(|place| self.b.bit(*a, place)).collect()
    }

    fn is_negative(&mut self, a: &Wire, range: Range) -> Wire {
        if range.min() >= 0 || range.max() < 0 {
            return self.b.constant_bit(range.max() < 0);
        }
        // The lowest place whose bit is the sign of all numbers of the range.
        let most = range.max().max(!range.min());
        self.b.bit(*a, 128 - most.leading_zeros())
    }

    fn lift(&mut self, bit: &Wire) -> Wire {
        self.b.lift(*bit)
    }

    fn truth(&mut self, value: bool) -> Wire {
        self.b.constant_bit(value)
    }

    fn xor(&mut self, a: &Wire, b: &Wire) -> Wire {
        self.b.xor(*a, *b)
    }

    fn and(&mut self, a: &Wire, b: &Wire) -> Wire {
        self.b.and(*a, *b)
    }
}
