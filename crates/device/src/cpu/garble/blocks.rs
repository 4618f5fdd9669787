//! Four labels side by side: what the kernels of garbling are written in.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use super::super::vector::Kernel;

/// The body for each number below a count, which is at most 4, one after the other: a loop of this size would not be unrolled, and what it works on
/// would be in memory instead of registers.
macro_rules! each {
    ($n:ident < $count:expr, $body:block) => {
        const { assert!($count <= 4) };
        if $count > 0 {
            let $n = 0;
            $body
        }
        if $count > 1 {
            let $n = 1;
            $body
        }
        if $count > 2 {
            let $n = 2;
            $body
        }
        if $count > 3 {
            let $n = 3;
            $body
        }
    };
}
pub(crate) use each;

/// Labels of a [`Blocks`].
pub(crate) const LANES: usize = 4;

/// Round constants of the key schedule of AES-128 (FIPS 197, section 5.2).
pub(crate) const RCON: [u8; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36];

/// RotWord of the last word of a key, in every column: what bytes are shuffled by.
pub(super) const LAST_WORD: i64 = 0x0c0f_0e0d_0c0f_0e0d;

/// Four labels, each in a lane of 128 bits.
///
/// # Safety
/// Methods may be called only where the instruction set of the implementation is present, and are always inlined into a function that
/// enables it. Pointers are to as many labels as are read or written, of any alignment.
pub(crate) trait Blocks: Copy + 'static {
    /// A bit for each lane.
    type Bits: Copy;

    /// As [`Vector::outlined`](super::super::vector::Vector::outlined).
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>);

    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// The first `lanes` labels; the others are zero.
    unsafe fn load_part(from: *const u8, lanes: usize) -> Self;
    /// The first `lanes` labels.
    unsafe fn store_part(self, to: *mut u8, lanes: usize);
    /// A label from each place.
    unsafe fn gather(from: [*const u8; LANES]) -> Self;
    /// The first `lanes` labels, each to its place.
    unsafe fn scatter(self, to: [*mut u8; LANES], lanes: usize);
    /// The first `lanes` half labels, as low halves; the others are zero.
    unsafe fn load_halves(from: *const u8, lanes: usize) -> Self;
    /// The low halves of the first `lanes` labels.
    unsafe fn store_halves(self, to: *mut u8, lanes: usize);
    /// The same label in each lane.
    unsafe fn splat(label: u128) -> Self;
    /// A number in the high half of each lane.
    unsafe fn tweaks(numbers: [u64; LANES]) -> Self;
    /// The same number in the high half of each lane.
    unsafe fn tweak(number: u64) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    /// `self ^ b ^ c`.
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    /// A round of AES under a key for each lane.
    unsafe fn round(self, key: Self) -> Self;
    /// The last round.
    unsafe fn last_round(self, key: Self) -> Self;
    /// The round key after this one, of each lane; `constant` is the round constant in every column.
    unsafe fn next_key(self, constant: Self) -> Self;
    /// σ of each lane: (hi ⊕ lo) ‖ hi.
    unsafe fn sigma(self) -> Self;
    /// lo ‖ hi.
    unsafe fn swap(self) -> Self;
    /// The low halves of `high` and `low`, as halves of one label.
    unsafe fn join(high: Self, low: Self) -> Self;
    /// Labels 0 of both, labels 1 of both, …: eight of them.
    unsafe fn interleave(self, other: Self) -> [Self; 2];
    /// The labels with even numbers of the eight of both, and those with odd ones.
    unsafe fn apart(self, other: Self) -> [Self; 2];
    /// The high half of `high` and the low half of `low`.
    unsafe fn blend(high: Self, low: Self) -> Self;
    /// The sum of the high halves, and of the low halves, as numbers.
    unsafe fn plus(self, other: Self) -> Self;

    /// Bit 0 of each lane.
    unsafe fn colour(self) -> Self::Bits;
    /// Bit 1 of each lane.
    unsafe fn second(self) -> Self::Bits;
    /// Bit 64 of each lane.
    unsafe fn high_colour(self) -> Self::Bits;
    /// Bits from the low bits of a number, lane 0 first.
    unsafe fn bits(number: u8) -> Self::Bits;
    /// The number of bits.
    unsafe fn number(bits: Self::Bits) -> u8;
    unsafe fn xor_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    unsafe fn and_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    unsafe fn not_bits(a: Self::Bits) -> Self::Bits;
    /// `self ^ (bits & other)`.
    unsafe fn xor_where(self, bits: Self::Bits, other: Self) -> Self;
    /// `self`, and `^ other` in the high halves of lanes whose bit is set.
    unsafe fn xor_high_where(self, bits: Self::Bits, other: Self) -> Self;
    /// `self`, and `^ other` in the low halves of lanes whose bit is set.
    unsafe fn xor_low_where(self, bits: Self::Bits, other: Self) -> Self;
}

/// Operations on bits and by bits, within an `impl Blocks` of registers with `and`, `and_not` and `high`: where a bit is all bits of its lane.
#[cfg(target_arch = "x86_64")]
macro_rules! bits_of_lanes {
    () => {
        #[inline(always)]
        unsafe fn xor_bits(a: Self, b: Self) -> Self {
            // SAFETY: the caller's instruction set, here and below.
            unsafe { a.xor(b) }
        }
        #[inline(always)]
        unsafe fn and_bits(a: Self, b: Self) -> Self {
            unsafe { a.and(b) }
        }
        #[inline(always)]
        unsafe fn not_bits(a: Self) -> Self {
            unsafe { a.xor(Self::splat(u128::MAX)) }
        }
        #[inline(always)]
        unsafe fn xor_where(self, bits: Self, other: Self) -> Self {
            unsafe { self.xor(bits.and(other)) }
        }
        #[inline(always)]
        unsafe fn xor_high_where(self, bits: Self, other: Self) -> Self {
            unsafe { self.xor(bits.and(other).and(Self::high())) }
        }
        #[inline(always)]
        unsafe fn xor_low_where(self, bits: Self, other: Self) -> Self {
            unsafe { self.xor(bits.and(other).and_not(Self::high())) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use bits_of_lanes;

/// The round constants, in every column.
#[derive(Clone, Copy)]
pub(crate) struct Constants<B>([B; RCON.len()]);

impl<B: Blocks> Constants<B> {
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: the caller's instruction set.
        unsafe {
            let mut constants = [B::splat(0); RCON.len()];
            for k in 0..RCON.len() {
                let column = RCON[k] as u128;
                constants[k] = B::splat(column | column << 32 | column << 64 | column << 96);
            }
            Constants(constants)
        }
    }
}

/// The round keys of one key, under which many labels are hashed.
pub(crate) struct Fixed<B>([B; RCON.len() + 1]);

impl<B: Blocks> Fixed<B> {
    #[inline(always)]
    pub(crate) unsafe fn new(key: u128) -> Self {
        // SAFETY: the caller's instruction set.
        unsafe {
            let constants = Constants::<B>::new();
            let mut keys = [B::splat(key); RCON.len() + 1];
            for k in 0..RCON.len() {
                keys[k + 1] = keys[k].next_key(constants.0[k]);
            }
            Fixed(keys)
        }
    }

    /// H(x) = AES(σ(x)) ⊕ σ(x) of `N` times four labels, `N` at most 4.
    #[inline(always)]
    pub(crate) unsafe fn hash<const N: usize>(&self, labels: [B; N]) -> [B; N] {
        // SAFETY: the caller's instruction set.
        unsafe {
            let (mut sigma, mut states) = (labels, labels);
            each!(n < N, {
                sigma[n] = labels[n].sigma();
                states[n] = sigma[n].xor(self.0[0]);
            });
            for round in 1..RCON.len() {
                each!(n < N, {
                    states[n] = states[n].round(self.0[round]);
                });
            }
            each!(n < N, {
                // The last key, and the label that is added to the result.
                states[n] = states[n].last_round(self.0[RCON.len()].xor(sigma[n]));
            });
            states
        }
    }
}

/// Hashes under `K` keys for each of `N` groups of four gates, `X` labels under each: H(x) = AES(σ(x)) ⊕ σ(x). `keys` are the keys, and
/// `labels` are σ of the labels, where label 1 under a key is label 0 ⊕ `offset`. The schedules are computed in step with the rounds.
#[inline(always)]
pub(crate) unsafe fn hashes<B: Blocks, const N: usize, const K: usize, const X: usize>(
    mut keys: [[B; K]; N],
    labels: [[B; K]; N],
    offset: [B; N],
    constants: &Constants<B>,
) -> [[[B; X]; K]; N] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut states = [[[B::splat(0); X]; K]; N];
        each!(n < N, {
            for k in 0..K {
                states[n][k][0] = labels[n][k].xor(keys[n][k]);
                if X == 2 {
                    states[n][k][1] = states[n][k][0].xor(offset[n]);
                }
            }
        });
        for round in 0..9 {
            each!(n < N, {
                for k in 0..K {
                    keys[n][k] = keys[n][k].next_key(constants.0[round]);
                    for x in 0..X {
                        states[n][k][x] = states[n][k][x].round(keys[n][k]);
                    }
                }
            });
        }
        each!(n < N, {
            for k in 0..K {
                // The last key with what is added to the result.
                let key = keys[n][k].next_key(constants.0[9]).xor(labels[n][k]);
                states[n][k][0] = states[n][k][0].last_round(key);
                if X == 2 {
                    states[n][k][1] = states[n][k][1].last_round(key.xor(offset[n]));
                }
            }
        });
        states
    }
}
