//! Sums of products of replicated values: what a party computes of them itself.

use veil_math::Ring;

use super::workspace::Memory;
use crate::layout::{ColumnType, Span};

/// `to` += Σ a (c + d) + b c over all elements of `src`, which are a, b, c, d. It was checked that they fit.
pub(super) fn run(memory: &mut Memory, src: &[Span], to: Span) {
    let wide = |span: Span| {
        let column = memory.layout.regions[span.region as usize].column;
        matches!(
            column,
            ColumnType::Rows(Ring::Z128) | ColumnType::One(Ring::Z128)
        )
    };
    let shape = (wide(src[0]), wide(src[2]));
    let mut sum = 0u128;
    for k in 0..src[0].count {
        let [a, b, c, d] = [0, 1, 2, 3].map(|s| memory.column_bytes(src[s], k));
        let of_item = match shape {
            (true, _) => columns::<16, 16>(a, b, c, d),
            (false, true) => columns::<8, 16>(a, b, c, d),
            (false, false) => columns::<8, 8>(a, b, c, d),
        };
        sum = sum.wrapping_add(of_item);
    }
    let into = memory.column_bytes_mut(to, 0);
    let size = into.len();
    let mut value = [0; 16];
    value[..size].copy_from_slice(into);
    let value = u128::from_le_bytes(value).wrapping_add(sum);
    into.copy_from_slice(&value.to_le_bytes()[..size]);
}

/// The sum over the elements of one column of each source: factors of `F` bytes, values of `V`.
fn columns<const F: usize, const V: usize>(a: &[u8], b: &[u8], c: &[u8], d: &[u8]) -> u128 {
    let (a, b) = (a.as_chunks::<F>().0, b.as_chunks::<F>().0);
    let (c, d) = (c.as_chunks::<V>().0, d.as_chunks::<V>().0);
    let mut sum = 0u128;
    for ((a, b), (c, d)) in a.iter().zip(b).zip(c.iter().zip(d)) {
        let (a, b, c, d) = (element(a), element(b), element(c), element(d));
        let own = a.wrapping_mul(c.wrapping_add(d));
        sum = sum.wrapping_add(own.wrapping_add(b.wrapping_mul(c)));
    }
    sum
}

/// An element of `SIZE` bytes, little-endian.
#[inline]
fn element<const SIZE: usize>(bytes: &[u8; SIZE]) -> u128 {
    let mut value = [0; 16];
    value[..SIZE].copy_from_slice(bytes);
    u128::from_le_bytes(value)
}
