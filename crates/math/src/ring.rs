//! The rings that values live in.

/// The ring of a value. Bits are bit-packed, bit 0 first; elements are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ring {
    /// Z_2: addition is XOR, multiplication is AND. One bit per row.
    Bits,
    /// Integers modulo 2^32. Four bytes per row.
    Z32,
    /// Integers modulo 2^64. Eight bytes per row.
    Z64,
    /// Integers modulo 2^128. Sixteen bytes per row.
    Z128,
}

impl Ring {
    /// Every ring, from the smallest.
    pub const ALL: [Ring; 4] = [Ring::Bits, Ring::Z32, Ring::Z64, Ring::Z128];

    /// Bits of one element.
    pub const fn bits(self) -> u32 {
        match self {
            Ring::Bits => 1,
            Ring::Z32 => 32,
            Ring::Z64 => 64,
            Ring::Z128 => 128,
        }
    }

    /// Bytes of `rows` packed elements; a last partial byte counts whole.
    pub const fn bytes(self, rows: u64) -> u64 {
        match self {
            Ring::Bits => rows.div_ceil(8),
            Ring::Z32 => rows * 4,
            Ring::Z64 => rows * 8,
            Ring::Z128 => rows * 16,
        }
    }

    /// `value` modulo the ring's modulus.
    pub const fn reduce(self, value: u128) -> u128 {
        match self {
            Ring::Bits => value & 1,
            Ring::Z32 => value & 0xffff_ffff,
            Ring::Z64 => value & 0xffff_ffff_ffff_ffff,
            Ring::Z128 => value,
        }
    }

    /// The sum in the ring.
    pub const fn add(self, a: u128, b: u128) -> u128 {
        self.reduce(a.wrapping_add(b))
    }

    /// The difference in the ring.
    pub const fn sub(self, a: u128, b: u128) -> u128 {
        self.reduce(a.wrapping_sub(b))
    }

    /// The product in the ring.
    pub const fn mul(self, a: u128, b: u128) -> u128 {
        self.reduce(a.wrapping_mul(b))
    }

    /// Name as it is written in job files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Ring::Bits => "Z_2",
            Ring::Z32 => "Z_2^32",
            Ring::Z64 => "Z_2^64",
            Ring::Z128 => "Z_2^128",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_wrap_at_the_modulus() {
        for (ring, bits) in [(Ring::Z32, 32), (Ring::Z64, 64), (Ring::Z128, 128)] {
            let most = ring.reduce(u128::MAX);
            assert_eq!(
                (ring.bits(), ring.bytes(3)),
                (bits, 3 * u64::from(bits) / 8)
            );
            assert_eq!(most, u128::MAX >> (128 - bits));
            assert_eq!((ring.add(most, 1), ring.sub(0, 1)), (0, most));
            assert_eq!(ring.mul(most, most), 1);
        }
    }

    #[test]
    fn bits_add_is_xor_and_mul_is_and() {
        for a in 0..2 {
            for b in 0..2 {
                assert_eq!(Ring::Bits.add(a, b), a ^ b);
                assert_eq!(Ring::Bits.sub(a, b), a ^ b);
                assert_eq!(Ring::Bits.mul(a, b), a & b);
            }
        }
    }
}
