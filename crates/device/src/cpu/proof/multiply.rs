//! Products of eight elements with eight others.

#[cfg(target_arch = "x86_64")]
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use veil_math::Gf64;

use super::{LANES, Register};

/// Products of polynomials that are added up before they are reduced: those of even lanes, and those of odd ones. A product is two words.
#[derive(Clone, Copy)]
pub(super) struct Sums(pub(super) [Register; 2]);

impl Sums {
    pub(super) const ZERO: Sums = Sums([[0; LANES]; 2]);

    #[inline(always)]
    pub(super) fn add(&mut self, other: Sums) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum = xor(*sum, other);
        }
    }

    /// The products of all lanes together.
    #[inline(always)]
    pub(super) fn join(self) -> Register {
        xor(self.0[0], self.0[1])
    }
}

/// The sum of the products that [`Sums::join`] has joined, as an element.
pub(super) fn element(joined: &Register) -> u64 {
    let (products, _) = joined.as_chunks::<2>();
    let sum = products.iter().fold(0, |sum, [low, high]| {
        sum ^ u128::from(*low) ^ u128::from(*high) << 64
    });
    Gf64::reduce(sum)
}

/// Lane by lane.
#[inline(always)]
pub(super) fn xor(a: Register, b: Register) -> Register {
    let mut out = a;
    for (out, b) in out.iter_mut().zip(b) {
        *out ^= b;
    }
    out
}

/// Lane by lane.
#[inline(always)]
pub(super) fn and(a: Register, b: Register) -> Register {
    let mut out = a;
    for (out, b) in out.iter_mut().zip(b) {
        *out &= b;
    }
    out
}

/// x times each lane.
#[inline(always)]
pub(super) fn times_x(a: Register) -> Register {
    let mut out = a;
    for lane in &mut out {
        *lane = Gf64::times_x(*lane);
    }
    out
}

/// Instructions that multiply. Always inlined, into a function that enables them.
pub(super) trait Multiply {
    /// The products of lanes.
    fn products(a: Register, b: Register) -> Sums;

    /// The sums as elements.
    fn reduce(sums: Sums) -> Register;

    /// The products of lanes as elements.
    #[inline(always)]
    fn multiply(a: Register, b: Register) -> Register {
        Self::reduce(Self::products(a, b))
    }
}

/// Numbers of 64 bits.
pub(super) struct Portable;

impl Multiply for Portable {
    #[inline(always)]
    fn products(a: Register, b: Register) -> Sums {
        let mut sums = Sums::ZERO;
        for lane in 0..LANES {
            let product = Gf64::product(a[lane], b[lane]);
            let at = lane & !1;
            sums.0[lane & 1][at] = product as u64;
            sums.0[lane & 1][at + 1] = (product >> 64) as u64;
        }
        sums
    }

    #[inline(always)]
    fn reduce(sums: Sums) -> Register {
        let mut out = [0; LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            let at = lane & !1;
            let product = &sums.0[lane & 1][at..at + 2];
            *out = Gf64::reduce(u128::from(product[0]) | u128::from(product[1]) << 64);
        }
        out
    }
}

/// PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
pub(super) struct Sse;

#[cfg(target_arch = "x86_64")]
impl Sse {
    /// A product modulo the field's polynomial, in the lower half.
    #[inline(always)]
    unsafe fn reduced(product: __m128i) -> __m128i {
        // SAFETY: the caller enables the instructions.
        unsafe {
            let tail = _mm_set_epi64x(0, Gf64::TAIL as i64);
            let folded = _mm_clmulepi64_si128::<0x01>(product, tail);
            let beyond = _mm_clmulepi64_si128::<0x01>(folded, tail);
            _mm_xor_si128(_mm_xor_si128(product, folded), beyond)
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Multiply for Sse {
    #[inline(always)]
    fn products(a: Register, b: Register) -> Sums {
        let mut sums = Sums::ZERO;
        for at in (0..LANES).step_by(2) {
            // SAFETY: registers have two lanes from there on; the caller enables the instructions.
            unsafe {
                let a = _mm_loadu_si128(a.as_ptr().add(at).cast());
                let b = _mm_loadu_si128(b.as_ptr().add(at).cast());
                let products = [
                    _mm_clmulepi64_si128::<0x00>(a, b),
                    _mm_clmulepi64_si128::<0x11>(a, b),
                ];
                for (sum, product) in sums.0.iter_mut().zip(products) {
                    _mm_storeu_si128(sum.as_mut_ptr().add(at).cast(), product);
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn reduce(sums: Sums) -> Register {
        let mut out = [0; LANES];
        for at in (0..LANES).step_by(2) {
            // SAFETY: as above.
            unsafe {
                let [even, odd] = [0, 1].map(|k: usize| {
                    Self::reduced(_mm_loadu_si128(sums.0[k].as_ptr().add(at).cast()))
                });
                let both = _mm_unpacklo_epi64(even, odd);
                _mm_storeu_si128(out.as_mut_ptr().add(at).cast(), both);
            }
        }
        out
    }
}

/// VPCLMULQDQ of 512 bits.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[inline(always)]
    unsafe fn load(register: &Register) -> __m512i {
        // SAFETY: a register is a vector; the caller enables the instructions, here and below.
        unsafe { _mm512_loadu_si512(register.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m512i) -> Register {
        let mut register = [0; LANES];
        unsafe { _mm512_storeu_si512(register.as_mut_ptr().cast(), vector) };
        register
    }

    #[inline(always)]
    unsafe fn reduced(products: __m512i) -> __m512i {
        unsafe {
            let tail = _mm512_set1_epi64(Gf64::TAIL as i64);
            let folded = _mm512_clmulepi64_epi128::<0x01>(products, tail);
            let beyond = _mm512_clmulepi64_epi128::<0x01>(folded, tail);
            // The XOR of three.
            _mm512_ternarylogic_epi64::<0x96>(products, folded, beyond)
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Multiply for Avx512 {
    #[inline(always)]
    fn products(a: Register, b: Register) -> Sums {
        // SAFETY: the caller enables the instructions, here and below.
        unsafe {
            let (a, b) = (Self::load(&a), Self::load(&b));
            Sums([
                Self::store(_mm512_clmulepi64_epi128::<0x00>(a, b)),
                Self::store(_mm512_clmulepi64_epi128::<0x11>(a, b)),
            ])
        }
    }

    #[inline(always)]
    fn reduce(sums: Sums) -> Register {
        unsafe {
            let even = Self::reduced(Self::load(&sums.0[0]));
            let odd = Self::reduced(Self::load(&sums.0[1]));
            Self::store(_mm512_unpacklo_epi64(even, odd))
        }
    }
}
