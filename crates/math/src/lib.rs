//! Rings, prime fields, bit matrices and word helpers; no protocol, no I/O.
//!
//! Everything above this crate computes on columns: one wire of a batch of `n` rows is `n` bits, or `n`
//! little-endian ring elements, in consecutive bytes. This crate says how those bytes are read.
//!
//! ```
//! use veil_math::Ring;
//! assert_eq!(Ring::Bits.bytes(10), 2); // ten rows, bit-packed
//! assert_eq!(Ring::Z64.bytes(10), 80);
//! assert_eq!(Ring::Z64.reduce(u128::MAX), u64::MAX as u128);
//! ```

mod field;
mod ring;
mod transpose;

pub use field::{Mersenne, P61};
pub use ring::Ring;
pub use transpose::{bits_from_rows, bits_to_rows, transpose64};
