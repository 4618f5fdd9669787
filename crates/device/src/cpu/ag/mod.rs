//! Steps of authenticated garbling: hashes of candidates side by side, sums and folds by vectors, and everything else as it is defined.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

#[cfg(target_arch = "x86_64")]
mod mix;

use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use mix::{Chosen, Sum};

#[cfg(target_arch = "x86_64")]
use super::garble::{
    aesni::Xmm,
    blocks::{Blocks, Constants, LANES, hashes},
    vaes::Ymm,
    x86::Zmm,
};
#[cfg(target_arch = "x86_64")]
use super::mac::MacKey;
use super::tape::Tape;
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::Fault;
#[cfg(target_arch = "x86_64")]
use crate::ag::Role;
use crate::ag::{self, Ag, BLOCK, Known};
use crate::command::Command;
#[cfg(target_arch = "x86_64")]
use crate::layout::Span;

impl Cpu {
    /// Does a step, which was checked.
    pub(super) fn authenticated(
        &self,
        memory: &mut Memory,
        tape: Option<&Tape>,
        step: Ag,
        command: &Command,
    ) -> Result<(), Fault> {
        if let Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } = step {
            return self.gates_with_masks(memory, tape, step, command);
        }
        let offset = match step.offset() {
            Some(key) => self.offset(key)?,
            None => 0,
        };
        let mut known = Known {
            offset: Zeroizing::new(offset),
            start: 0,
        };
        if let (Ag::Offer { .. } | Ag::Take { .. }, Some(call)) = (step, command.calls.first()) {
            let (key, frame) = (self.mask(*call, memory.frame)?, memory.frame);
            let start = key.key.prf().block(call.tag, frame.lane, 0, frame.chunk);
            known.start = u128::from_le_bytes(start);
        }
        match step {
            #[cfg(target_arch = "x86_64")]
            Ag::Offer { role, .. } | Ag::Take { role, .. } if self.isa != Isa::Portable => {
                self.candidates(memory, &known, (step, role), command);
            }
            #[cfg(target_arch = "x86_64")]
            Ag::Fold { offset } if self.isa != Isa::Portable && command.src.len() <= mix::MOST => {
                let offset = offset.map(|_| *known.offset);
                self.fold_arrays(memory, offset, &command.src, command.dst[0]);
            }
            #[cfg(target_arch = "x86_64")]
            _ if self.isa != Isa::Portable && self.sums(memory, &known, step, command) => {}
            _ => ag::step(memory, &known, step, command),
        }
        Ok(())
    }

    /// POLYVAL of the sum of arrays, and of v Δ.
    #[cfg(target_arch = "x86_64")]
    fn fold_arrays(&self, memory: &mut Memory, offset: Option<u128>, src: &[Span], to: Span) {
        /// Blocks that are added up at a time.
        const TILE: usize = 128;
        let challenge = memory.column_bytes(src[0], 0).first_chunk();
        let key = MacKey::of(self.isa, challenge.expect("a challenge has 16 bytes"));
        let (bits, arrays) = match offset {
            Some(_) => (Some(src[1]), &src[2..]),
            None => (None, &src[1..]),
        };
        let offset = offset.unwrap_or(0);
        let mut state = Zeroizing::new([0; BLOCK]);
        let mut bytes = Zeroizing::new([0; BLOCK * TILE]);
        for k in 0..arrays[0].count {
            let blocks = memory.column_bytes(arrays[0], k).len() / BLOCK;
            for at in (0..blocks).step_by(TILE) {
                let len = TILE.min(blocks - at);
                let at = BLOCK * at..BLOCK * (at + len);
                let of = |span: &Span| memory.column_bytes(*span, k)[at.clone()].as_ptr();
                let chosen = bits.map(|bits| Chosen {
                    bits: memory.column_bytes(bits, k)[at.start / (8 * BLOCK)..].as_ptr(),
                    from: None,
                    block: offset,
                });
                let arrays: Vec<*const u8> = arrays.iter().map(of).collect();
                let sum = Sum::new(len, &arrays, chosen.as_slice());
                // SAFETY: arrays have these blocks, and bits a bit for each.
                unsafe { mix::put(self.isa, &sum, bytes.as_mut_ptr()) };
                state = key.go_on(self.isa, &state, &mut bytes[..BLOCK * len]);
            }
        }
        memory.column_bytes_mut(to, 0).copy_from_slice(&state[..]);
    }

    /// Does a step that is sums of blocks and of chosen ones, if it is one.
    #[cfg(target_arch = "x86_64")]
    fn sums(&self, memory: &mut Memory, known: &Known, step: Ag, command: &Command) -> bool {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let offset = *known.offset;
        // These write one array before they read all of another.
        let several = matches!(step, Ag::Absorb | Ag::Spend { .. });
        if several && dst.iter().any(|to| src.contains(to)) {
            return false;
        }
        let columns = src.iter().chain(dst).map(|span| span.count).max();
        // Arrays with a bit for each block, but for steps whose bits are of one array.
        for k in 0..columns.unwrap_or(0) {
            let base = memory.base();
            let place = |span: &Span| memory.column(*span, k);
            // SAFETY: the offset is within the workspace, here and below.
            let at = |span: &Span| unsafe { base.add(place(span).0) };
            let read = |span: &Span| at(span).cast_const();
            let blocks = |span: &Span| place(span).1 / BLOCK;
            let packed = |span: &Span| {
                let (at, len) = place(span);
                // SAFETY: the bytes are initialised, and nothing writes them while this is borrowed.
                Zeroizing::new(unsafe { std::slice::from_raw_parts(base.add(at), len) }.to_vec())
            };
            let both = |a: &Span, b: &Span| xor(packed(a), &packed(b));
            let same = |bits: &[u8], block| Chosen {
                bits: bits.as_ptr(),
                from: None,
                block,
            };
            let array = |bits: &[u8], span: &Span| Chosen {
                bits: bits.as_ptr(),
                from: Some(read(span)),
                block: 0,
            };
            let put = |to: &Span, arrays: &[*const u8], chosen: &[Chosen]| {
                let sum = Sum::new(blocks(to), arrays, chosen);
                // SAFETY: the command was checked: arrays have as many blocks, and bits a bit for each; the instruction set is there.
                unsafe { mix::put(self.isa, &sum, at(to)) };
            };
            let bits_of = |arrays: &[*const u8], count: usize, second: bool| {
                let mut bits = Zeroizing::new(vec![0; count.div_ceil(8)]);
                let sum = Sum::new(count, arrays, &[]);
                // SAFETY: as above.
                unsafe { mix::put_bits(self.isa, &sum, second, bits.as_mut_ptr()) };
                bits
            };
            match step {
                Ag::Pin { bit } => {
                    let from = read(&src[0]);
                    let mut flips = bits_of(&[from], blocks(&src[0]), bit == 1);
                    if let Some(wanted) = src.get(1) {
                        flips = xor(flips, &packed(wanted));
                    }
                    put(&dst[0], &[from], &[same(&flips, 1 << bit)]);
                }
                Ag::Expand => put(&dst[0], &[], &[same(&packed(&src[0]), 1)]),
                Ag::Bits { bit } if src.len() <= mix::MOST => {
                    let arrays: Vec<*const u8> = src.iter().map(read).collect();
                    let bits = bits_of(&arrays, blocks(&src[0]), bit == 1);
                    let to = memory.column_bytes_mut(dst[0], k);
                    let (own, behind) = to.split_at_mut(bits.len());
                    own.copy_from_slice(&bits);
                    behind.fill(0);
                }
                Ag::Settle { role, .. } => {
                    let d = both(&src[0], &src[1]);
                    let one = role.one(offset);
                    put(&dst[0], &[read(&dst[0])], &[same(&d, offset)]);
                    put(&dst[1], &[read(&dst[1])], &[same(&d, one)]);
                }
                Ag::Absorb => {
                    let d = both(&src[0], &src[1]);
                    for p in 0..2 {
                        let (a, c) = (&src[2 + p], &src[4 + p]);
                        let (to_a, to_c) = (&dst[p], &dst[2 + p]);
                        put(to_a, &[read(to_a), read(a)], &[]);
                        put(to_c, &[read(to_c), read(c)], &[array(&d, a)]);
                    }
                }
                Ag::Spend { role, .. } => {
                    let epsilon = both(&src[0], &src[1]);
                    let delta = both(&src[2], &src[3]);
                    let public = and(epsilon.clone(), &delta);
                    for p in 0..2 {
                        let [a, b, c, gamma] = [4, 6, 8, 10].map(|s: usize| &src[s + p]);
                        let adds = p as u64 == role.number();
                        let one = if adds { role.one(offset) } else { 0 };
                        let chosen = [array(&epsilon, b), array(&delta, a), same(&public, one)];
                        put(&dst[p], &[read(c), read(gamma)], &chosen);
                    }
                }
                Ag::Gates {
                    offset: of,
                    products,
                } => {
                    let [alpha, beta] = [0, 1].map(|s: usize| packed(&src[s]));
                    let used = products as usize * memory.frame.rows as usize;
                    let first = if of.is_some() { 3 } else { 2 };
                    let [a, b, s] = [0, 1, 2].map(|k: usize| &src[first + k]);
                    if of.is_some() {
                        let count = blocks(s);
                        let [of_a, of_b, of_s] =
                            [a, b, s].map(|span| bits_of(&[read(span)], count, false));
                        let gamma = packed(&src[2]);
                        let mut public = xor(and(alpha.clone(), &beta), &gamma);
                        public = xor(public, &and(alpha.clone(), &of_b));
                        public = xor(public, &and(beta.clone(), &of_a));
                        public = xor(public, &of_s);
                        let [a, b, s] = [3, 4, 5].map(|k: usize| &src[first + k]);
                        let chosen = [array(&alpha, b), array(&beta, a), same(&public, offset)];
                        put(&dst[0], &[read(s)], &chosen);
                    } else {
                        let chosen = [array(&alpha, b), array(&beta, a)];
                        put(&dst[0], &[read(s)], &chosen);
                    }
                    ag::clear(memory, dst[0], used);
                }
                _ => return false,
            }
        }
        true
    }

    /// Candidates four at a time.
    #[cfg(target_arch = "x86_64")]
    fn candidates(
        &self,
        memory: &mut Memory,
        known: &Known,
        (step, role): (Ag, Role),
        command: &Command,
    ) {
        let (src, dst) = (&command.src, &command.dst);
        let offers = matches!(step, Ag::Offer { .. });
        for k in 0..dst[0].count {
            let base = memory.base();
            let place = |span: &Span| memory.column(*span, k);
            let count = place(&dst[0]).1 / BLOCK;
            let mut of = Candidates {
                src: [base.cast_const(); 7],
                sums: base,
                bits: base,
                count,
                start: known.start,
                first: command.calls[0].first + u64::from(k) * count as u64,
                offset: *known.offset,
                role: role.number(),
            };
            // SAFETY: the spans have column k; the instruction set was checked by `with`.
            unsafe {
                for (at, span) in of.src.iter_mut().zip(src) {
                    *at = base.add(place(span).0).cast_const();
                }
                of.sums = base.add(place(&dst[0]).0);
                if let Some(bits) = dst.get(1) {
                    let (at, len) = place(bits);
                    of.bits = base.add(at);
                    // Only those of blocks are written, nibble by nibble.
                    std::ptr::write_bytes(of.bits, 0, len);
                }
                match (self.isa, offers) {
                    (Isa::Avx512, true) => offer_avx512(&of),
                    (Isa::Avx512, false) => take_avx512(&of),
                    (Isa::Avx2Vaes, true) => offer_avx2_vaes(&of),
                    (Isa::Avx2Vaes, false) => take_avx2_vaes(&of),
                    (_, true) => offer_avx2(&of),
                    (_, false) => take_avx2(&of),
                }
            }
            zeroize::Zeroize::zeroize(&mut of.offset);
        }
    }
}

/// a ⊕ b, byte by byte, of the first.
#[cfg(target_arch = "x86_64")]
fn xor(mut a: Zeroizing<Vec<u8>>, b: &[u8]) -> Zeroizing<Vec<u8>> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    a
}

/// a · b, bit by bit, of the first.
#[cfg(target_arch = "x86_64")]
fn and(mut a: Zeroizing<Vec<u8>>, b: &[u8]) -> Zeroizing<Vec<u8>> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
    a
}

/// Candidates of a column.
#[cfg(target_arch = "x86_64")]
struct Candidates {
    /// The sources of the step, in order.
    src: [*const u8; 7],
    /// G, or S.
    sums: *mut u8,
    /// Bits d.
    bits: *mut u8,
    count: usize,
    start: u128,
    /// Number of the first candidate.
    first: u64,
    offset: u128,
    role: u64,
}

#[cfg(target_arch = "x86_64")]
impl Candidates {
    #[inline(always)]
    unsafe fn load<B: Blocks>(&self, s: usize, at: usize) -> B {
        let lanes = self.count.saturating_sub(at).min(LANES);
        let from = self.src[s].wrapping_add(BLOCK * at);
        // SAFETY: the caller's: the source has `count` blocks.
        unsafe {
            if lanes == LANES {
                B::load(from)
            } else {
                B::load_part(from, lanes)
            }
        }
    }

    /// Keys of the hashes of what a party garbles.
    #[inline(always)]
    unsafe fn key<B: Blocks>(&self, at: usize, role: u64) -> B {
        let first = 2 * (self.first + at as u64) + role;
        // SAFETY: the caller's instruction set.
        unsafe { B::splat(self.start).xor(B::tweaks([first, first + 2, first + 4, first + 6])) }
    }
}

/// G of all candidates, `N` vectors side by side.
///
/// # Safety
/// `B`'s instruction set is enabled in the caller; sources and destination have `count` blocks.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn offer<B: Blocks, const N: usize>(of: &Candidates) {
    // SAFETY: the caller's.
    unsafe {
        let constants = Constants::<B>::new();
        let offset = B::splat(of.offset);
        for at in (0..of.count).step_by(N * LANES) {
            let (mut keys, mut x, mut c) = ([[offset]; N], [[offset]; N], [offset; N]);
            for g in 0..N {
                let row = at + g * LANES;
                keys[g][0] = of.key(row, of.role);
                x[g][0] = of.load::<B>(0, row).sigma();
                let mac = of.load::<B>(1, row);
                c[g] = mac
                    .xor(of.load::<B>(2, row))
                    .xor_where(mac.colour(), offset);
            }
            let made = hashes::<B, N, 1, 2>(keys, x, [offset.sigma(); N], &constants);
            for g in 0..N {
                let row = at + g * LANES;
                let lanes = of.count.saturating_sub(row).min(LANES);
                let [[own, other]] = made[g];
                own.xor3(other, c[g])
                    .store_part(of.sums.wrapping_add(BLOCK * row), lanes);
            }
        }
    }
}

/// S and d of all candidates.
///
/// # Safety
/// As [`offer`]; `bits` has a bit for each block, and all are 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn take<B: Blocks, const N: usize>(of: &Candidates) {
    // SAFETY: the caller's.
    unsafe {
        let constants = Constants::<B>::new();
        let offset = B::splat(of.offset);
        for at in (0..of.count).step_by(N * LANES) {
            let (mut keys, mut x) = ([[offset; 2]; N], [[offset; 2]; N]);
            let mut sum = [offset; N];
            for g in 0..N {
                let row = at + g * LANES;
                keys[g] = [of.key(row, of.role), of.key(row, 1 - of.role)];
                let (mac_a, key_a) = (of.load::<B>(0, row), of.load::<B>(1, row));
                x[g] = [key_a.sigma(), mac_a.sigma()];
                let mac_b = of.load::<B>(2, row);
                let c = mac_b
                    .xor(of.load::<B>(3, row))
                    .xor_where(mac_b.colour(), offset);
                let mac_r = of.load::<B>(4, row);
                let r = mac_r
                    .xor(of.load::<B>(5, row))
                    .xor_where(mac_r.colour(), offset);
                sum[g] = r.xor_where(mac_a.colour(), of.load::<B>(6, row).xor(c));
            }
            let made = hashes::<B, N, 2, 1>(keys, x, [offset; N], &constants);
            for g in 0..N {
                let row = at + g * LANES;
                let lanes = of.count.saturating_sub(row).min(LANES);
                let [[own], [theirs]] = made[g];
                let sum = own.xor3(theirs, sum[g]);
                sum.store_part(of.sums.wrapping_add(BLOCK * row), lanes);
                if lanes > 0 {
                    let bits = B::number(sum.second()) & ((1 << lanes) - 1);
                    let to = of.bits.wrapping_add(row / 8);
                    to.write(to.read() | bits << (row % 8));
                }
            }
        }
    }
}

/// The kernels once per instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($blocks:ty, $groups:literal, $features:literal, $offer:ident, $take:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $offer(of: &Candidates) {
            // SAFETY: the caller's.
            unsafe { offer::<$blocks, $groups>(of) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $take(of: &Candidates) {
            // SAFETY: the caller's.
            unsafe { take::<$blocks, $groups>(of) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernels!(
    Zmm,
    4,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    offer_avx512,
    take_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    Ymm,
    2,
    "avx2,aes,vaes,bmi2",
    offer_avx2_vaes,
    take_avx2_vaes
);
#[cfg(target_arch = "x86_64")]
kernels!(Xmm, 1, "avx2,aes", offer_avx2, take_avx2);
