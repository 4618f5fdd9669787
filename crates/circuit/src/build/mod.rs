//! Building circuits: a builder that folds as it goes, and generators for what is needed again and again.

mod adder;
mod aes;
mod builder;
mod catalogue;
mod compare;
mod linear;
mod multiply;
mod sbox;
mod sha256;

pub use builder::Builder;
pub use catalogue::{CatalogueEntry, MakeError, catalogue, make};

/// Generators: functions that add gates to a [`Builder`], and whole circuits.
///
/// Words are slices of wires, bit 0 first. Arithmetic is modulo 2 to the number of bits, and signed numbers are in two's
/// complement. All of them need a builder over [`veil_math::Ring::Bits`].
pub mod generate {
    pub use super::adder::{Aim, add, sub, sum};
    pub use super::aes::{aes128, aes128_encrypt, aes128_expand_key, aes128_expanded};
    pub use super::compare::{equal, less_than, less_than_signed};
    pub use super::multiply::multiply;
    pub use super::sbox::sub_byte;
    pub use super::sha256::{sha256, sha256_compress};
}
