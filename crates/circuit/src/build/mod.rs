//! Building circuits: a builder that folds as it goes, and generators for common functions.

mod adder;
mod aes;
mod builder;
mod catalogue;
mod compare;
mod integer;
mod linear;
mod matrix;
mod merge;
mod multiply;
mod numeric;
mod register;
mod sbox;
mod sha256;

pub(crate) use adder::{full_adder, sum_columns};
pub use builder::Builder;
pub use catalogue::{CatalogueEntry, MakeError, catalogue, make};
pub(crate) use integer::long_division;

/// Generators: functions that add gates to a [`Builder`], and whole circuits.
///
/// Words are slices of wires, bit 0 first. Arithmetic is modulo 2 to the number of bits, and signed numbers are in two's
/// complement. In a builder over a ring of integers they work on the bits that it has there: see [`Builder::bit`] and
/// [`Builder::lift`]. Generators that take an [`Integer`](generate::Integer) work on ring values.
///
/// ```
/// use veil_circuit::{Builder, Per};
/// use veil_circuit::generate::{Integer, is_less};
/// use veil_math::Ring;
/// let mut b = Builder::new(Ring::Z64);
/// let count = b.input("count", 1, Per::Row)[0];
/// let total = b.input("total", 1, Per::Row)[0];
/// let five = b.constant(5);
/// let few = is_less(&mut b, count, five, Integer::unsigned(32));
/// let none = b.constant(0);
/// let shown = b.mux(few, none, total); // a bit chooses between integers
/// let few = b.lift(few); // outputs are integers
/// b.output("total", &[shown, few]);
/// let circuit = b.finish()?;
/// assert_eq!(circuit.evaluate(&[vec![4], vec![700]])?, [[0, 1]]);
/// assert_eq!(circuit.evaluate(&[vec![5], vec![700]])?, [[700, 0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod generate {
    pub use super::adder::{Aim, add, sub, sum, sum_is_minus_one, sum_with};
    pub use super::aes::{aes128, aes128_encrypt, aes128_expand_key, aes128_expanded};
    pub use super::compare::{all, any, equal, less_than, less_than_signed, precedes};
    pub use super::integer::{
        Integer, compose, constant_bits, dabit, decompose, divide, divide_bits, edabit, inject,
        is_at_most, is_equal, is_less, is_zero, max, min, quotient_and_rest, quotient_bits,
        recompose, shift_right, truncate_pr,
    };
    pub use super::matrix::{Shape, matrix_product};
    pub use super::merge::{Merging, exchange};
    pub use super::multiply::multiply;
    pub use super::numeric::{OnRing, Rounding};
    pub use super::sbox::sub_byte;
    pub use super::sha256::{sha256, sha256_compress};
}
