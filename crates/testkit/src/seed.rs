//! Test randomness: everything random in a test follows from one number that a failure prints.

use std::fmt;

use sha2::{Digest, Sha256};

/// Environment variable that gives a test the seed that an earlier failure printed.
const VARIABLE: &str = "VEIL_TEST_SEED";

/// Where all randomness of a test comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// Another seed every time, unless `VEIL_TEST_SEED` gives one: to repeat what failed.
    ///
    /// # Panics
    /// If the variable is no number, or the operating system gives no randomness.
    pub fn any() -> Self {
        if let Ok(text) = std::env::var(VARIABLE) {
            return Seed(text.parse().expect("VEIL_TEST_SEED is a decimal number"));
        }
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Seed(u64::from_le_bytes(bytes))
    }

    /// The numbers of one use; uses of other names are independent of it.
    pub fn numbers(self, name: &str) -> Numbers {
        let mut hash = Sha256::new();
        hash.update(b"veilworks test randomness");
        hash.update(self.0.to_le_bytes());
        hash.update(name);
        Numbers {
            key: hash.finalize().into(),
            count: 0,
            block: [0; 32],
            used: 32,
        }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VARIABLE}={}", self.0)
    }
}

/// A stream of pseudorandom bytes: SHA-256(key ‖ LE64 block number), block by block.
#[derive(Clone, Debug)]
pub struct Numbers {
    key: [u8; 32],
    count: u64,
    block: [u8; 32],
    used: usize,
}

impl Numbers {
    /// Fills `bytes` with the next bytes of the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.used == self.block.len() {
                let mut hash = Sha256::new();
                hash.update(self.key);
                hash.update(self.count.to_le_bytes());
                self.block = hash.finalize().into();
                self.count += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    /// The next 128 bits.
    pub fn next_u128(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }

    /// A number below `bound`, which is not 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u128() >> 64) % u128::from(bound)) as u64
    }

    /// A place in a list of `len` items, which is not empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_repeats_and_names_tell_streams_apart() {
        let take = |seed, name| {
            let mut bytes = [0; 70];
            Seed(seed).numbers(name).fill(&mut bytes);
            bytes
        };
        assert_eq!(take(1, "a"), take(1, "a"));
        assert_ne!(take(1, "a"), take(1, "b"));
        assert_ne!(take(1, "a"), take(2, "a"));
        assert_ne!(take(1, "a")[..32], take(1, "a")[32..64]);
    }
}
