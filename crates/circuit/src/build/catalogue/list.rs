//! The catalogue.

use veil_math::Ring;

use super::super::adder::{Aim, add, sub};
use super::super::aes::{aes128, aes128_expanded};
use super::super::compare::{equal, less_than, less_than_signed};
use super::super::integer::{
    compose, decompose, divide, is_at_most, is_equal, is_less, is_zero, max, min, recompose,
    shift_right, truncate_pr,
};
use super::super::multiply::multiply;
use super::super::sha256::sha256;
use super::{CatalogueEntry, Make};
use crate::{Builder, Circuit, Per, Wire};

const fn fixed(name: &'static str, summary: &'static str, make: fn() -> Circuit) -> CatalogueEntry {
    CatalogueEntry {
        name,
        takes_width: false,
        summary,
        make: Make::Fixed(make),
    }
}

const fn matrix(name: &'static str, summary: &'static str, ring: Ring) -> CatalogueEntry {
    CatalogueEntry {
        name,
        takes_width: false,
        summary,
        make: Make::Matrices(ring),
    }
}

const fn of_width(name: &'static str, summary: &'static str, make: Make) -> CatalogueEntry {
    CatalogueEntry {
        name,
        takes_width: true,
        summary,
        make,
    }
}

/// A bit, for an output.
fn lifted(b: &mut Builder, make: impl FnOnce(&mut Builder) -> Wire) -> Wire {
    let bit = make(b);
    b.lift(bit)
}

pub(super) const CATALOGUE: &[CatalogueEntry] = &[
    fixed("aes128", "AES-128 with key schedule: key, block", || {
        aes128(Per::Job, Aim::Size)
    }),
    fixed(
        "aes128-shallow",
        "the same with fewer rounds and 3 % more ANDs",
        || aes128(Per::Job, Aim::Depth),
    ),
    fixed(
        "aes128-expanded",
        "AES-128 under round keys: round_keys, block",
        || aes128_expanded(Per::Job, Aim::Size),
    ),
    fixed(
        "aes128-expanded-shallow",
        "the same with fewer rounds and 3 % more ANDs",
        || aes128_expanded(Per::Job, Aim::Depth),
    ),
    fixed("sha256", "one compression of SHA-256: state, block", || {
        sha256(Per::Row, Aim::Size)
    }),
    fixed(
        "sha256-shallow",
        "the same with fewer rounds and more ANDs",
        || sha256(Per::Row, Aim::Depth),
    ),
    matrix(
        "matmul64",
        "product of matrices over Z_2^64: x, y, row by row",
        Ring::Z64,
    ),
    matrix(
        "matmul128",
        "product of matrices over Z_2^128: x, y, row by row",
        Ring::Z128,
    ),
    of_width(
        "adder",
        "x + y, few ANDs",
        Make::Word(|b, x, y| add(b, x, y, Aim::Size)),
    ),
    of_width(
        "adder-fast",
        "x + y, few rounds",
        Make::Word(|b, x, y| add(b, x, y, Aim::Depth)),
    ),
    of_width(
        "sub",
        "x - y, few ANDs",
        Make::Word(|b, x, y| sub(b, x, y, Aim::Size)),
    ),
    of_width(
        "sub-fast",
        "x - y, few rounds",
        Make::Word(|b, x, y| sub(b, x, y, Aim::Depth)),
    ),
    of_width(
        "mul",
        "x · y, the low half, few ANDs",
        Make::Word(|b, x, y| multiply(b, x, y, Aim::Size)),
    ),
    of_width(
        "mul-fast",
        "x · y, the low half, few rounds",
        Make::Word(|b, x, y| multiply(b, x, y, Aim::Depth)),
    ),
    of_width("eq", "x = y", Make::Bit(equal)),
    of_width(
        "lt",
        "x < y, unsigned, few ANDs",
        Make::Bit(|b, x, y| less_than(b, x, y, Aim::Size)),
    ),
    of_width(
        "lt-fast",
        "x < y, unsigned, few rounds",
        Make::Bit(|b, x, y| less_than(b, x, y, Aim::Depth)),
    ),
    of_width(
        "lt-signed",
        "x < y, two's complement, few ANDs",
        Make::Bit(|b, x, y| less_than_signed(b, x, y, Aim::Size)),
    ),
    of_width(
        "lt-signed-fast",
        "x < y, two's complement, few rounds",
        Make::Bit(|b, x, y| less_than_signed(b, x, y, Aim::Depth)),
    ),
    of_width(
        "int-lt",
        "x < y of unsigned integers in a ring, as 0 or 1",
        Make::Integers(false, |b, x, y, of| lifted(b, |b| is_less(b, x, y, of))),
    ),
    of_width(
        "int-lt-signed",
        "x < y of signed integers in a ring, as 0 or 1",
        Make::Integers(true, |b, x, y, of| lifted(b, |b| is_less(b, x, y, of))),
    ),
    of_width(
        "int-le",
        "x <= y of unsigned integers in a ring, as 0 or 1",
        Make::Integers(false, |b, x, y, of| lifted(b, |b| is_at_most(b, x, y, of))),
    ),
    of_width(
        "int-le-signed",
        "x <= y of signed integers in a ring, as 0 or 1",
        Make::Integers(true, |b, x, y, of| lifted(b, |b| is_at_most(b, x, y, of))),
    ),
    of_width(
        "int-eq",
        "x = y of integers in a ring, as 0 or 1",
        Make::Integers(false, |b, x, y, of| lifted(b, |b| is_equal(b, x, y, of))),
    ),
    of_width(
        "int-zero",
        "x = 0 of an integer in a ring, as 0 or 1",
        Make::Integer(false, |b, x, of| vec![lifted(b, |b| is_zero(b, x, of))]),
    ),
    of_width(
        "int-min",
        "the smaller of two unsigned integers in a ring",
        Make::Integers(false, min),
    ),
    of_width(
        "int-min-signed",
        "the smaller of two signed integers in a ring",
        Make::Integers(true, min),
    ),
    of_width(
        "int-max",
        "the larger of two unsigned integers in a ring",
        Make::Integers(false, max),
    ),
    of_width(
        "int-max-signed",
        "the larger of two signed integers in a ring",
        Make::Integers(true, max),
    ),
    of_width(
        "int-bits",
        "the bits of an integer in a ring, each as 0 or 1",
        Make::Integer(false, |b, x, of| {
            let bits = decompose(b, x, of);
            bits.into_iter().map(|bit| b.lift(bit)).collect()
        }),
    ),
    of_width(
        "int-low",
        "x modulo 2^WIDTH of any ring value",
        Make::Integer(false, |b, x, of| {
            let bits = decompose(b, x, of);
            vec![recompose(b, &bits, false)]
        }),
    ),
    of_width(
        "int-half",
        "x of WIDTH bits without its lower half, unsigned",
        Make::Integer(false, |b, x, of| vec![shift_right(b, x, of.bits / 2, of)]),
    ),
    of_width(
        "int-half-signed",
        "x of WIDTH bits without its lower half, signed, rounded down",
        Make::Integer(true, |b, x, of| vec![shift_right(b, x, of.bits / 2, of)]),
    ),
    of_width(
        "int-word",
        "x modulo 2^WIDTH of any ring value, its bits put together behind a mask",
        Make::Integer(false, |b, x, of| {
            let bits = decompose(b, x, of);
            vec![compose(b, &bits, false)]
        }),
    ),
    of_width(
        "int-half-pr",
        "x of WIDTH bits without its lower half, unsigned, or one more",
        Make::Shorter(false, |b, x, of| truncate_pr(b, x, of.bits / 2, of)),
    ),
    of_width(
        "int-half-pr-signed",
        "x of WIDTH bits without its lower half, signed, rounded down, or one more",
        Make::Shorter(true, |b, x, of| truncate_pr(b, x, of.bits / 2, of)),
    ),
    of_width(
        "int-div",
        "x / y of unsigned integers in a ring, rounded down",
        Make::Integers(false, divide),
    ),
    of_width(
        "int-div-signed",
        "x / y of signed integers in a ring, rounded towards zero",
        Make::Integers(true, divide),
    ),
];
