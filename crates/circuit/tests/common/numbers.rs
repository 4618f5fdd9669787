//! Numbers for damage and for values, the same in every run.

/// Marsaglia, "Xorshift RNGs", 2003.
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    /// The next number, which is never 0.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number, less than `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
