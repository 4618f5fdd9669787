//! Rings, a field of bits, bit matrices and word helpers; no protocol, no I/O.
//!
//! The crates above this one compute on columns: one wire of a batch of `n` rows is `n` bits, or `n` little-endian ring elements, in
//! consecutive bytes. [`Ring`] says how those bytes are read; [`Gf64`] is the field of proofs about products;
//! [`bits_from_rows`] and [`bits_to_rows`] transpose between the rows of a file and the columns of a device.
//!
//! ```text
//! Ring::Bits   wire = ⌈n/8⌉ bytes, row 0 in bit 0 of byte 0
//! Ring::Z32    wire = 4n bytes, little-endian
//! Ring::Z64    wire = 8n bytes, little-endian
//! Ring::Z128   wire = 16n bytes, little-endian
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_math::Ring;
//! assert_eq!(Ring::Bits.bytes(10), 2); // ten rows, bit-packed
//! assert_eq!(Ring::Z64.bytes(10), 80);
//! assert_eq!(Ring::Z64.reduce(u128::MAX), u64::MAX as u128);
//! ```
//!
//! # Promises
//!
//! - Ring arithmetic neither overflows nor panics, for any operands.
//! - Nothing branches on the value of a field element.
//!
//! # Limits
//!
//! - Ring and field operations are on single elements; devices compute whole columns.

mod binary;
mod ring;
mod transpose;

pub use binary::Gf64;
pub use ring::Ring;
pub use transpose::{
    bits_from_places, bits_from_rows, bits_from_words, bits_to_rows, bits_to_words, transpose64,
};
