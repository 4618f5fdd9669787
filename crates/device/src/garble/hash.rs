//! The hash of labels, as it is defined.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// σ(hi ‖ lo) = (hi ⊕ lo) ‖ hi: linear, and neither it nor its sum with the identity maps anything but 0 to 0.
pub(crate) const fn sigma(x: u128) -> u128 {
    let (hi, lo) = (x >> 64, x & u64::MAX as u128);
    (hi ^ lo) << 64 | hi
}

/// H(x, 0) from one start point, for many labels.
pub(crate) struct Fixed(Aes128);

impl Fixed {
    pub(crate) fn new(start: u128) -> Self {
        Fixed(Aes128::new(&start.to_le_bytes().into()))
    }

    pub(crate) fn of(&self, x: u128) -> u128 {
        let x = sigma(x);
        let mut block = x.to_le_bytes().into();
        self.0.encrypt_block(&mut block);
        u128::from_le_bytes(block.into()) ^ x
    }
}

/// H(x, tweak) from the start point `start`, as the documentation of this module defines it. Numbers are little-endian strings.
pub fn hash(start: u128, tweak: u64, x: u128) -> u128 {
    Fixed::new(start ^ u128::from(tweak) << 64).of(x)
}
