//! Moving rows between packed buffers of different lengths.

use veil_math::Ring;

/// Rows of one port in a buffer `[wire][Ring::bytes(rows)]`.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// Rows that the whole buffer holds.
    pub(crate) rows: u64,
    /// The first that is meant.
    pub(crate) first: u64,
}

/// Copies `rows` rows of `width` wires, from `source` at `from` to `target` at `to`. Elements of Z_2^128 may become those of Z_2^64.
///
/// The target's other rows stay as they are.
pub(crate) fn copy(
    width: u32,
    rows: u64,
    (source, from_ring, from): (&[u8], Ring, Window),
    (target, to_ring, to): (&mut [u8], Ring, Window),
) {
    let source_wires = source.chunks_exact(from_ring.bytes(from.rows) as usize);
    let target_wires = target.chunks_exact_mut(to_ring.bytes(to.rows) as usize);
    for (target, source) in target_wires.zip(source_wires).take(width as usize) {
        match (from_ring, to_ring) {
            (Ring::Bits, _) => copy_bits(source, from.first, target, to.first, rows),
            (Ring::Z128, Ring::Z64) => {
                let source = &source[from.first as usize * 16..][..rows as usize * 16];
                let target = &mut target[to.first as usize * 8..][..rows as usize * 8];
                let (source, _) = source.as_chunks::<16>();
                let (target, _) = target.as_chunks_mut::<8>();
                for (low, element) in target.iter_mut().zip(source) {
                    low.copy_from_slice(&element[..8]);
                }
            }
            (ring, _) => {
                let size = ring.bytes(1) as usize;
                let bytes = rows as usize * size;
                let source = &source[from.first as usize * size..][..bytes];
                target[to.first as usize * size..][..bytes].copy_from_slice(source);
            }
        }
    }
}

/// Copies `rows` bits.
fn copy_bits(source: &[u8], from: u64, target: &mut [u8], to: u64, rows: u64) {
    let mut done = 0;
    if from.is_multiple_of(8) && to.is_multiple_of(8) {
        let whole = (rows / 8) as usize;
        let source = &source[(from / 8) as usize..][..whole];
        target[(to / 8) as usize..][..whole].copy_from_slice(source);
        done = whole as u64 * 8;
    }
    for row in done..rows {
        let bit = source[((from + row) / 8) as usize] >> ((from + row) % 8) & 1;
        let (byte, place) = (((to + row) / 8) as usize, (to + row) % 8);
        target[byte] = target[byte] & !(1 << place) | bit << place;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Element `row` of `wire`, read in the plainest way.
    fn element(ring: Ring, rows: u64, buffer: &[u8], wire: u64, row: u64) -> u128 {
        let wire = &buffer[(wire * ring.bytes(rows)) as usize..][..ring.bytes(rows) as usize];
        match ring {
            Ring::Bits => u128::from(wire[(row / 8) as usize] >> (row % 8) & 1),
            _ => (0..ring.bytes(1)).rev().fold(0, |value, byte| {
                value << 8 | u128::from(wire[(row * ring.bytes(1) + byte) as usize])
            }),
        }
    }

    proptest! {
        #[test]
        fn every_row_gets_where_it_belongs_and_no_other_moves(
            rings in prop::sample::select(vec![
                (Ring::Bits, Ring::Bits), (Ring::Z64, Ring::Z64), (Ring::Z128, Ring::Z128), (Ring::Z128, Ring::Z64),
            ]),
            width in 1u32..4,
            (from_first, to_first, rows) in (0u64..40, 0u64..40, 0u64..70),
            (from_more, to_more) in (0u64..20, 0u64..20),
            seed in any::<u64>(),
        ) {
            let (from_ring, to_ring) = rings;
            let from = Window { rows: from_first + rows + from_more, first: from_first };
            let to = Window { rows: to_first + rows + to_more, first: to_first };
            prop_assume!(from.rows > 0 && to.rows > 0);
            let mut state = seed;
            let mut bytes = |count: u64| -> Vec<u8> {
                (0..count).map(|_| { state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1); (state >> 56) as u8 }).collect()
            };
            let source = bytes(u64::from(width) * from_ring.bytes(from.rows));
            let before = bytes(u64::from(width) * to_ring.bytes(to.rows));
            let mut after = before.clone();
            copy(width, rows, (&source, from_ring, from), (&mut after, to_ring, to));
            for wire in 0..u64::from(width) {
                for row in 0..to.rows {
                    let got = element(to_ring, to.rows, &after, wire, row);
                    let want = if (to_first..to_first + rows).contains(&row) {
                        to_ring.reduce(element(from_ring, from.rows, &source, wire, row - to_first + from_first))
                    } else {
                        element(to_ring, to.rows, &before, wire, row)
                    };
                    prop_assert_eq!(got, want);
                }
            }
        }
    }
}
