//! Bits of an offset that are fixed.

use veil_session::Secret;
use zeroize::Zeroizing;

/// Bits of an offset that every honest sender sets alike, so that labels can carry what they say in the same bits: bit 0, which is 1, and any
/// others. Both ends know them; the set-up does not prove them of a malicious sender's offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pins {
    mask: u128,
    value: u128,
}

impl Pins {
    /// The bits of `mask` are those of `value`, and bit 0 is 1, whatever both say of it. Bit 0 is the lowest bit of byte 0.
    pub const fn new(mask: u128, value: u128) -> Self {
        Pins {
            mask: mask | 1,
            value: value & mask | 1,
        }
    }

    /// The bits that are fixed; bit 0 is one of them.
    pub const fn mask(self) -> u128 {
        self.mask
    }

    /// Their values; all other bits are 0.
    pub const fn value(self) -> u128 {
        self.value
    }

    /// The offset that random bits become.
    pub fn offset(self, drawn: &Secret) -> Secret {
        let bits = Zeroizing::new(u128::from_le_bytes(*drawn.expose()));
        let bytes = Zeroizing::new((*bits & !self.mask | self.value).to_le_bytes());
        Secret::new(*bytes)
    }
}

impl Default for Pins {
    /// Bit 0 alone.
    fn default() -> Self {
        Pins::new(1, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_the_pinned_bits_and_the_drawn_others() {
        let drawn = |byte| Secret::new([byte; 16]);
        for (pins, zeros, ones) in [
            (Pins::default(), 1, u128::MAX),
            (Pins::new(0, u128::MAX), 1, u128::MAX),
            (Pins::new(3, 0), 1, u128::MAX - 2),
            (Pins::new(3, 3), 3, u128::MAX),
            (Pins::new(1 << 127, 6), 1, u128::MAX >> 1),
        ] {
            let of = |byte| u128::from_le_bytes(*pins.offset(&drawn(byte)).expose());
            assert_eq!([of(0), of(0xff)], [zeros, ones], "{pins:?}");
            assert_eq!(zeros & pins.mask(), pins.value());
        }
    }
}
