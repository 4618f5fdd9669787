//! 512 bits at a time: the few operations that the kernels are written in, and the four instruction sets that provide them.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

mod turn;
mod wide;

use std::cell::OnceCell;
use std::marker::PhantomData;
use std::sync::Arc;

use veil_prss::{DomainTag, Prf};
use veil_session::Secret;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::Isa;
pub(crate) use wide::{At, MOST_VECTORS, Scalars, Wide};

/// Bytes of a vector; slots and temps are padded to it.
pub(crate) const VECTOR: usize = 64;

/// Vectors that are encrypted side by side, of four blocks each. Four vectors of 512 bits under two keys are eight chains, and so are four
/// vectors in registers of 256 bits under one key: they cover the latency of the AES round on every core since 2019.
pub(crate) const GROUP: usize = 4;

/// An expanded AES-128 key. Wiped on drop.
///
/// Transfers have hundreds of them, each for a few blocks: a round key is there once, and repeated as it is loaded.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct RoundKeys {
    rounds: [[u8; 16]; 11],
    /// The function as it is defined, where it was needed.
    #[zeroize(skip)]
    portable: OnceCell<Arc<Prf>>,
}

impl RoundKeys {
    pub(crate) fn new(key: &Secret) -> Self {
        let mut round = *key.expose();
        let mut rounds = [[0; 16]; 11];
        let mut rcon = 1u8;
        for (r, out) in rounds.iter_mut().enumerate() {
            if r > 0 {
                round = next_round_key(round, rcon);
                rcon = (rcon << 1) ^ (0x1b & (rcon >> 7).wrapping_neg());
            }
            *out = round;
        }
        round.zeroize();
        RoundKeys {
            rounds,
            portable: OnceCell::new(),
        }
    }

    /// The key itself.
    pub(crate) fn key(&self) -> [u8; 16] {
        self.rounds[0]
    }

    /// The function as it is defined.
    pub(crate) fn prf(&self) -> &Prf {
        let make = || Arc::new(Prf::new(&Secret::new(self.key())));
        self.portable.get_or_init(make)
    }
}

/// The next round key (FIPS-197, section 5.2). The S-box is the `aes` crate's, so that no table is indexed by the key.
fn next_round_key(key: [u8; 16], rcon: u8) -> [u8; 16] {
    // One AES round of a block with equal columns is SubBytes and ShiftRows and MixColumns of it; with the last word of the
    // key in every column, ShiftRows changes nothing, and the inverse of MixColumns leaves SubWord.
    let word: [u8; 4] = key[12..].try_into().expect("four bytes");
    let mut block: aes::Block = std::array::from_fn::<u8, 16, _>(|i| word[i % 4]).into();
    aes::hazmat::cipher_round(&mut block, &[0; 16].into());
    aes::hazmat::inv_mix_columns(&mut block);
    let sub: [u8; 4] = [block[1], block[2], block[3], block[0]];
    let mut next = key;
    for i in 0..4 {
        next[i] ^= sub[i] ^ if i == 0 { rcon } else { 0 };
    }
    for i in 4..16 {
        next[i] ^= next[i - 4];
    }
    block.as_mut_slice().zeroize();
    next
}

/// The part of a PRF input that is the same for a whole command: tag, lane, chunk.
#[derive(Clone, Copy)]
pub(crate) struct Domain {
    pub(crate) tag: DomainTag,
    pub(crate) lane: u16,
    pub(crate) j: u32,
}

/// What is compiled as a function of its own: LLVM's work on a function grows faster than its size. A type and not a closure, which would not
/// have the instruction set.
pub(crate) trait Kernel {
    /// Its arguments.
    type Args<'a>;
    /// Does it. Always inlined, into a function that enables the instruction set.
    ///
    /// # Safety
    /// The instruction set is present, and arguments are as the kernel says.
    unsafe fn run(args: Self::Args<'_>);
}

/// What is done with the vectors of an instruction set, in a function of its own.
pub(crate) trait Task {
    /// Does it. Always inlined, into a function that enables the instruction set.
    ///
    /// # Safety
    /// The instruction set is present, and the task is as it says.
    unsafe fn run<V: Vector>(self);
}

/// A task as a kernel.
struct Over<V, T>(PhantomData<(V, T)>);

impl<V: Vector, T: Task> Kernel for Over<V, T> {
    type Args<'a> = T;

    #[inline(always)]
    unsafe fn run(task: T) {
        // SAFETY: the caller's.
        unsafe { task.run::<V>() }
    }
}

/// Does a task.
///
/// # Safety
/// The machine has the instruction set, and the task is as it says.
pub(crate) unsafe fn run<T: Task>(isa: Isa, task: T) {
    // SAFETY: the caller's.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::outlined::<Over<Avx512, T>>(task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2Vaes => Avx2Vaes::outlined::<Over<Avx2Vaes, T>>(task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::outlined::<Over<Avx2, T>>(task),
            _ => Portable::outlined::<Over<Portable, T>>(task),
        }
    }
}

/// 512 bits.
///
/// # Safety
/// Methods of an implementation may be called only where its instruction set is present, and are always inlined into a
/// function that enables it, but for `outlined`, which is such a function. They use loops, not closures: a closure is a function of its own, without the instruction set. `load` and `store` need 64 bytes behind the pointer, of any alignment.
pub(crate) trait Vector: Copy {
    /// How it works on elements of Z_2^128.
    type Wide: Wide<Self>;
    /// Runs a kernel in a function of its own, which enables the instruction set.
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>);
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    unsafe fn splat(value: u64) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// `self ^ b ^ c`.
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    /// `self ^ (b & c)`.
    unsafe fn xor_and(self, b: Self, c: Self) -> Self;
    /// Sums of words of 32 bits.
    #[inline(always)]
    unsafe fn add32(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { lanes32(self, other, u32::wrapping_add) }
    }
    /// Differences of words of 32 bits.
    #[inline(always)]
    unsafe fn sub32(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { lanes32(self, other, u32::wrapping_sub) }
    }
    /// Products of words of 32 bits.
    #[inline(always)]
    unsafe fn mul32(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { lanes32(self, other, u32::wrapping_mul) }
    }
    unsafe fn add64(self, other: Self) -> Self;
    unsafe fn sub64(self, other: Self) -> Self;
    unsafe fn mul64(self, other: Self) -> Self;
    unsafe fn add128(self, other: Self) -> Self;
    unsafe fn sub128(self, other: Self) -> Self;
    /// The PRF of `domain` at four blocks from each counter.
    unsafe fn prf(key: &RoundKeys, domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP];
    /// The plaintext blocks for [`Vector::prf`] of any key.
    unsafe fn inputs(domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP];
    /// [`Vector::prf`], whose inputs are at hand.
    unsafe fn prf_of(
        key: &RoundKeys,
        domain: Domain,
        ctr: [u64; GROUP],
        inputs: [Self; GROUP],
    ) -> [Self; GROUP];
    /// What changes [`Vector::inputs`] of a domain to those of another one: XORed to each vector.
    #[inline(always)]
    unsafe fn change(from: Domain, to: Domain) -> Self {
        let (from, to) = (frame_of(from), frame_of(to));
        let mut change = [0u8; VECTOR];
        for k in 0..VECTOR {
            change[k] = from[k % 16] ^ to[k % 16];
        }
        // SAFETY: the array is as long as a vector.
        unsafe { Self::load(change.as_ptr()) }
    }
    /// Vector k: the PRF under key k at four blocks from `ctr`; `input` is [`Vector::inputs`] of them.
    unsafe fn prf_keys(
        keys: [&RoundKeys; GROUP],
        domain: Domain,
        ctr: u64,
        input: Self,
    ) -> [Self; GROUP];
    /// Every word of 64 bits, N bits to the left.
    unsafe fn shift_left<const N: u32>(self) -> Self;
    /// Every word of 64 bits, N bits to the right.
    unsafe fn shift_right<const N: u32>(self) -> Self;
    /// Vector l: words l of x\[0\]\[0\], x\[1\]\[0\], x\[0\]\[1\], x\[1\]\[1\], ….
    unsafe fn interleave(x: [[Self; 4]; 2]) -> [Self; 8];
    /// Half of the way to turn eight squares of bits: [`turn::turn`]. It leaves it to exchange words within vectors.
    #[inline(always)]
    unsafe fn turn<const A: u32, const B: u32, const C: u32>(x: &mut [Self; 8]) {
        // SAFETY: the caller's.
        unsafe { turn::turn::<Self, A, B, C>(x) }
    }
    /// The XOR of two keys' [`Vector::prf`].
    #[inline(always)]
    unsafe fn prf_xor(
        a: &RoundKeys,
        b: &RoundKeys,
        domain: Domain,
        ctr: [u64; GROUP],
    ) -> [Self; GROUP] {
        // SAFETY: the caller's.
        unsafe {
            let (mut x, y) = (Self::prf(a, domain, ctr), Self::prf(b, domain, ctr));
            for k in 0..GROUP {
                x[k] = x[k].xor(y[k]);
            }
            x
        }
    }
}

/// The same function of all words of 32 bits, which are little-endian.
#[inline(always)]
unsafe fn lanes32<V: Vector>(a: V, b: V, of: impl Fn(u32, u32) -> u32) -> V {
    let (mut x, mut y) = ([0u32; VECTOR / 4], [0u32; VECTOR / 4]);
    // SAFETY: the arrays are as long as a vector; the instruction set is the caller's.
    unsafe {
        a.store(x.as_mut_ptr().cast());
        b.store(y.as_mut_ptr().cast());
        for k in 0..VECTOR / 4 {
            x[k] = of(u32::from_le(x[k]), u32::from_le(y[k])).to_le();
        }
        V::load(x.as_ptr().cast())
    }
}

/// Sixteen zero bytes but for the bytes of tag, lane and chunk.
#[inline(always)]
fn frame_of(domain: Domain) -> [u8; 16] {
    Prf::input(domain.tag, domain.lane, 0, domain.j)
}

/// Any machine: words of 64 bits and the `aes` crate.
#[derive(Clone, Copy)]
pub(crate) struct Portable([u64; 8]);

impl Portable {
    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        for i in 0..8 {
            self.0[i] = f(self.0[i], other.0[i]);
        }
        self
    }

    #[inline(always)]
    fn zip128(mut self, other: Self, f: impl Fn(u128, u128) -> u128) -> Self {
        // Words are as they are in memory, little-endian.
        let element = |v: &[u64; 8], k: usize| {
            let (lo, hi) = (u64::from_le(v[k]), u64::from_le(v[k + 1]));
            u128::from(hi) << 64 | u128::from(lo)
        };
        for k in (0..8).step_by(2) {
            let sum = f(element(&self.0, k), element(&other.0, k));
            self.0[k] = (sum as u64).to_le();
            self.0[k + 1] = ((sum >> 64) as u64).to_le();
        }
        self
    }
}

impl Vector for Portable {
    type Wide = Scalars;

    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 64 bytes are readable, by the trait's contract; any bytes are a `[u64; 8]`.
        Portable(unsafe { from.cast::<[u64; 8]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 64 bytes are writable, by the trait's contract.
        unsafe { to.cast::<[u64; 8]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn splat(value: u64) -> Self {
        Portable([value; 8])
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        self.zip(b, |a, b| a ^ b).zip(c, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn xor_and(self, b: Self, c: Self) -> Self {
        self.zip(b.zip(c, |b, c| b & c), |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn add64(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
    #[inline(always)]
    unsafe fn sub64(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn mul64(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_mul)
    }
    #[inline(always)]
    unsafe fn add128(self, other: Self) -> Self {
        self.zip128(other, u128::wrapping_add)
    }
    #[inline(always)]
    unsafe fn sub128(self, other: Self) -> Self {
        self.zip128(other, u128::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn inputs(_domain: Domain, _ctr: [u64; GROUP]) -> [Self; GROUP] {
        [Portable([0; 8]); GROUP]
    }
    #[inline(always)]
    unsafe fn prf_of(
        key: &RoundKeys,
        domain: Domain,
        ctr: [u64; GROUP],
        _inputs: [Self; GROUP],
    ) -> [Self; GROUP] {
        // SAFETY: the caller's.
        unsafe { Self::prf(key, domain, ctr) }
    }
    #[inline(always)]
    unsafe fn prf_keys(
        keys: [&RoundKeys; GROUP],
        domain: Domain,
        ctr: u64,
        _input: Self,
    ) -> [Self; GROUP] {
        keys.map(|key| {
            let mut bytes = [0; VECTOR];
            let prf = key.prf();
            prf.stream(domain.tag, domain.lane, ctr, domain.j, &mut bytes);
            // SAFETY: `bytes` is 64 bytes long.
            unsafe { Self::load(bytes.as_ptr()) }
        })
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(self) -> Self {
        self.zip(self, |a, _| a << N)
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(self) -> Self {
        self.zip(self, |a, _| a >> N)
    }
    #[inline(always)]
    unsafe fn interleave(x: [[Self; 4]; 2]) -> [Self; 8] {
        let mut out = [Portable([0; 8]); 8];
        for l in 0..8 {
            for w in 0..8 {
                out[l].0[w] = x[w % 2][w / 2].0[l];
            }
        }
        out
    }
    #[inline(always)]
    unsafe fn prf(key: &RoundKeys, domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        ctr.map(|c| {
            let mut bytes = [0; VECTOR];
            key.prf()
                .stream(domain.tag, domain.lane, c, domain.j, &mut bytes);
            // SAFETY: `bytes` is 64 bytes long.
            unsafe { Self::load(bytes.as_ptr()) }
        })
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use {
    avx2::{Avx2, Avx2Vaes},
    x86::Avx512,
};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    use super::*;

    unsafe fn prf_bytes<V: Vector>(
        key: &Secret,
        other: &Secret,
        domain: Domain,
        ctr: [u64; GROUP],
    ) -> [Vec<u8>; 2] {
        let (key, other) = (RoundKeys::new(key), RoundKeys::new(other));
        let bytes = |vectors: [V; GROUP]| {
            let mut out = vec![0; VECTOR * GROUP];
            // SAFETY: `out` has room; the instruction set is the caller's.
            vectors
                .into_iter()
                .enumerate()
                .for_each(|(k, v)| unsafe { v.store(out.as_mut_ptr().add(k * VECTOR)) });
            out
        };
        // SAFETY: the caller's.
        unsafe {
            [
                bytes(V::prf(&key, domain, ctr)),
                bytes(V::prf_xor(&key, &other, domain, ctr)),
            ]
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes")]
    unsafe fn avx512(k: &Secret, o: &Secret, d: Domain, c: [u64; GROUP]) -> [Vec<u8>; 2] {
        unsafe { prf_bytes::<Avx512>(k, o, d, c) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,vaes,bmi2")]
    unsafe fn avx2_vaes(k: &Secret, o: &Secret, d: Domain, c: [u64; GROUP]) -> [Vec<u8>; 2] {
        unsafe { prf_bytes::<Avx2Vaes>(k, o, d, c) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes")]
    unsafe fn avx2(k: &Secret, o: &Secret, d: Domain, c: [u64; GROUP]) -> [Vec<u8>; 2] {
        unsafe { prf_bytes::<Avx2>(k, o, d, c) }
    }

    #[test]
    fn every_prf_is_the_prf() {
        let (key, other) = (
            Secret::new(std::array::from_fn(|i| i as u8 * 17)),
            Secret::new([0xa5; 16]),
        );
        let domain = Domain {
            tag: DomainTag(0x0203),
            lane: 0x0405,
            j: 0x0607_0809,
        };
        for ctr in [[0, 4, 8, 12], [5, 1 << 40, u64::MAX - 9, 77]] {
            let want = [&key, &other].map(|k| {
                let mut out = vec![0; VECTOR * GROUP];
                for (piece, c) in out.chunks_mut(VECTOR).zip(ctr) {
                    Prf::new(k).stream(domain.tag, domain.lane, c, domain.j, piece);
                }
                out
            });
            let xor: Vec<u8> = want[0].iter().zip(&want[1]).map(|(a, b)| a ^ b).collect();
            for isa in crate::Isa::available() {
                // SAFETY: `available` lists what this machine has.
                let got = unsafe {
                    match isa {
                        #[cfg(target_arch = "x86_64")]
                        crate::Isa::Avx512 => avx512(&key, &other, domain, ctr),
                        #[cfg(target_arch = "x86_64")]
                        crate::Isa::Avx2Vaes => avx2_vaes(&key, &other, domain, ctr),
                        #[cfg(target_arch = "x86_64")]
                        crate::Isa::Avx2 => avx2(&key, &other, domain, ctr),
                        _ => prf_bytes::<Portable>(&key, &other, domain, ctr),
                    }
                };
                assert_eq!(got[0], want[0], "{isa:?}");
                assert_eq!(got[1], xor, "{isa:?}");
            }
        }
    }
}
