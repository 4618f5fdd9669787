//! Functions on short intervals, and polynomials on pieces of them that are proved to be near.

use crate::coefficients::PIECES;
use crate::exact::{Enclosure, Jet};

/// A function on an interval that begins at 0, which polynomials approximate on pieces of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    /// 2^u for u from 0 to 1.
    Exp2,
    /// log2(1 + u) for u from 0 to 1.
    Log2,
    /// 1 / (1 + u) for u from 0 to 1.
    Reciprocal,
    /// √(1 + u) for u from 0 to 1.
    Root,
    /// 1 / √(1 + u) for u from 0 to 1.
    InverseRoot,
    /// 1 / (1 + e^−u).
    Sigmoid,
    /// ln(1 + e^−u).
    Softplus,
    /// erf u.
    Erf,
}

/// Polynomials of one degree on pieces of one width.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    /// What they approximate.
    pub curve: Curve,
    /// A piece has the width 2^-`finer`.
    pub finer: u32,
    /// Their degree.
    pub degree: usize,
    /// They are no farther from the curve than this, in units of 2^-[`UNIT`].
    pub error: u64,
    /// The coefficients of each piece, the constant first, in units of 2^-[`UNIT`], of the variable that is −1/2 where the piece begins and 1/2 where it ends.
    pub coefficients: &'static [i64],
}

/// All polynomials: of each curve the coarsest first.
#[must_use]
pub const fn pieces() -> &'static [Pieces] {
    PIECES
}

/// Binary places of coefficients and of errors.
pub const UNIT: u32 = 60;

/// Order of the Taylor polynomials of proofs.
const ORDER: usize = 12;

/// Steps of a piece in which the difference of two Taylor polynomials is bounded one by one.
const STEPS: i128 = 64;

/// The width of parts of pieces that are proved one by one, as a power of 1/2: pieces that are narrower have one part.
const PART: u32 = 6;

impl Curve {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Exp2,
        Self::Log2,
        Self::Reciprocal,
        Self::Root,
        Self::InverseRoot,
        Self::Sigmoid,
        Self::Softplus,
        Self::Erf,
    ];

    /// Its Taylor coefficients at a number of its interval, or at all numbers of a part of it.
    ///
    /// # Panics
    /// Beyond the interval, where it may have none.
    #[must_use]
    pub fn jet(self, at: &Enclosure, coefficients: usize) -> Jet {
        let u = Jet::variable(at.clone(), coefficients);
        let one = Enclosure::from(1);
        let above = "1 + u is above 0";
        match self {
            Self::Exp2 => u.times(&Enclosure::ln_2()).exp(),
            Self::Log2 => {
                let per = one.over(&Enclosure::ln_2()).expect("ln 2 is above 0");
                u.plus(&one).ln().expect(above).times(&per)
            }
            Self::Reciprocal => u.plus(&one).reciprocal().expect(above),
            Self::Root => u.plus(&one).sqrt().expect(above),
            Self::InverseRoot => {
                let root = u.plus(&one).sqrt().expect(above);
                root.reciprocal().expect(above)
            }
            Self::Sigmoid => {
                let falling = u.times(&Enclosure::from(-1)).exp();
                falling.plus(&one).reciprocal().expect(above)
            }
            Self::Softplus => {
                let falling = u.times(&Enclosure::from(-1)).exp();
                falling.plus(&one).ln().expect(above)
            }
            Self::Erf => {
                let bell = u.product(&u).times(&Enclosure::from(-1)).exp();
                let root = Enclosure::pi().sqrt().expect("π is above 0");
                let per = Enclosure::from(2).over(&root).expect("√π is above 0");
                bell.times(&per).integral(at.erf())
            }
        }
    }

    /// Its value at a number of its interval.
    ///
    /// # Panics
    /// As [`Curve::jet`].
    #[must_use]
    pub fn at(self, u: &Enclosure) -> Enclosure {
        self.jet(u, 1).coefficients()[0].clone()
    }
}

impl Pieces {
    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.coefficients.len() / (self.degree + 1)
    }

    /// The coefficients of a piece.
    #[must_use]
    pub fn piece(&self, piece: usize) -> &'static [i64] {
        &self.coefficients[piece * (self.degree + 1)..][..=self.degree]
    }

    /// The error that [`Pieces::error`] states, as a number.
    #[must_use]
    pub fn stated(&self) -> Enclosure {
        Enclosure::scaled(i128::from(self.error), -(UNIT as i32))
    }
}

impl Curve {
    /// A bound of the distance between the curve and a polynomial on one piece of the width 2^-`finer`, with coefficients as [`Pieces::coefficients`], by Taylor polynomials of both on parts of it: their difference in the middle of each of some steps, as far as its steepest
    /// slope leads from there, and the remainder.
    #[must_use]
    pub fn distance(self, finer: u32, piece: usize, coefficients: &[i64]) -> Enclosure {
        let mut worst = Enclosure::from(0);
        let parts = 1 << PART.saturating_sub(finer);
        for part in 0..parts {
            let bound = self.distance_in_part(finer, piece as i128, coefficients, (part, parts));
            worst = if bound.at_most(&worst) {
                worst
            } else {
                bound.hull(&worst).high()
            };
        }
        worst
    }

    fn distance_in_part(
        self,
        finer: u32,
        piece: i128,
        coefficients: &[i64],
        (part, parts): (i128, i128),
    ) -> Enclosure {
        // In units of half a part: the piece has twice as many as parts.
        let place = |half: i128| {
            let of_piece = Enclosure::ratio(half, 2 * parts);
            (&Enclosure::from(piece) + &of_piece).shifted(-(finer as i32))
        };
        let (start, centre, end) = (place(2 * part), place(2 * part + 1), place(2 * part + 2));
        let there = self.jet(&centre, ORDER);
        let everywhere = self.jet(&start.hull(&end), ORDER + 1);
        // The polynomial around the centre of the part, in the variable of the curve, by Horner's rule on polynomials.
        let middle = Enclosure::ratio(2 * part + 1 - parts, 2 * parts);
        let mut around = vec![Enclosure::from(0); ORDER];
        for &coefficient in coefficients.iter().rev() {
            for k in (0..ORDER).rev() {
                let up = if k > 0 {
                    around[k - 1].shifted(finer as i32)
                } else {
                    Enclosure::scaled(i128::from(coefficient), -(UNIT as i32))
                };
                around[k] = &(&around[k] * &middle) + &up;
            }
        }
        let half = &end - &centre;
        let differences = there.coefficients().iter().zip(&around);
        let differences: Vec<Enclosure> = differences.map(|(a, b)| a - b).collect();
        // At the centre of each of some steps, and as far from it as the steepest slope leads.
        let steps = (STEPS / parts).max(1);
        let (mut power, mut slope) = (Enclosure::from(1), Enclosure::from(0));
        for (k, difference) in differences.iter().enumerate().skip(1) {
            let of_power = &Enclosure::from(k as i128) * &difference.abs();
            slope = &slope + &(&of_power * &power);
            power = &power * &half;
        }
        let mut most = Enclosure::from(0);
        for step in 0..steps {
            let at = &half * &Enclosure::ratio(2 * step + 1 - steps, steps);
            let zero = Enclosure::from(0);
            let terms = differences.iter().rev();
            let value = terms.fold(zero, |sum, term| &(&sum * &at) + term).abs();
            most = most.hull(&value).high();
        }
        let within = &slope * &(&half * &Enclosure::ratio(1, steps));
        let rest = everywhere.coefficients()[ORDER].abs();
        let rest = &rest * &(&power * &half);
        (&(&most + &within) + &rest).high()
    }
}
