//! Numbers on shares: fixed-point integers with proved ranges, and functions of them that have no exact values.
//!
//! A fixed-point number is an integer and a [`Scale`]. A [`Function`] between two scales, on a [`Range`] of integers, is [`Applied`]: a sequence of sums, products, roundings and choices that is
//! fixed by these alone, with the range of its result and a bound of its error. It is written once, over a [`Machine`]: integers in the clear ([`Clear`]), or wires of a circuit. All machines
//! that round to nearest have the same result, to the last bit.
//!
//! ```
//! use veil_numeric::{Applied, Function, Range, Scale};
//! let cents = Range::new(1, 10_000_000).ok_or("empty")?; // 0.01 to 100 000.00
//! let ln = Applied::new(Function::Ln, Scale::decimal(2), cents, Scale::decimal(6))?;
//! assert_eq!(ln.clear(300_000), Some(8_006_368)); // ln 3000 = 8.0063675…
//! assert!(ln.error(false).approximately() < 1.0); // in units of 10^-6, rounding included
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - No result is farther from the function than [`Applied::error`] states, whatever the argument is in its range. The bound has the error of the polynomial, which is proved
//!   ([`Curve::distance`]), and of every rounding.
//! - No integer on the way leaves the range that was derived for it: what may not fit a machine is refused before anything is computed ([`FunctionError`]).
//! - What is computed does not depend on values: neither operations nor their order do.
//!
//! # Limits
//!
//! - Polynomials are near their functions to 2^-45: results have some 14 significant digits, whatever their scale is. [`Applied::error`] says so where it is more than a unit.
//! - A function is refused on a range that has a number without a value for it.

mod coefficients;
mod curve;
pub mod exact;
mod function;
mod machine;
mod number;
mod range;
mod scale;
mod wide;

pub use curve::{Curve, Pieces, UNIT, pieces};
pub use function::{Applied, Function, FunctionError};
pub use machine::{Choice, Clear, Factor, Machine, Ranges, Scaled};
pub use number::{Arithmetic, Number, On, Times, TooWide};
pub use range::Range;
pub use scale::{MOST_PLACES, Scale};
pub use wide::Wide;
