//! The steps of a proof that go through the whole batch, eight words of 64 gates at a time.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

mod expand;
mod first;
mod gates;
mod lanes;
mod vectors;

use zeroize::Zeroizing;

use self::gates::Gates;
use self::lanes::{Lanes, Portable};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::command::Command;
use crate::layout::Span;
use crate::proof::{self, Elements, PIECES, Proof, Side, factor, length};
use crate::{Fault, mac};

impl Elements for Memory {
    fn bytes_of(&self, span: Span) -> &[u8] {
        self.bytes(span)
    }

    fn bytes_of_mut(&mut self, span: Span) -> &mut [u8] {
        self.bytes_mut(span)
    }

    fn rows(&self) -> u32 {
        self.frame.rows
    }
}

/// Sums of pairs of the places of a level that folds so many values.
const fn pairs(places: usize) -> usize {
    places * (places + 1) / 2
}

/// What goes through a batch.
enum Pass<'a> {
    Claims(Side, &'a mut [u64; PIECES as usize]),
    FirstSums(&'a mut [u64; pairs(PIECES as usize)]),
    SecondSums(u64, &'a mut [u64; pairs(4)]),
    Expand(Side, [u64; 2], &'a mut [u64]),
}

/// The instructions that a device uses.
#[derive(Clone, Copy)]
struct Kernels(Isa);

impl Kernels {
    fn of(isa: Isa) -> Self {
        Kernels(if cfg!(veil_portable) {
            Isa::Portable
        } else {
            isa
        })
    }

    fn pass(self, gates: &Gates<'_>, pass: Pass<'_>) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the device looked for the instructions, here and below.
            Isa::Avx512 => unsafe { pass_avx512(gates, pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2Vaes | Isa::Avx2 => unsafe { pass_avx2(gates, pass) },
            _ => all::<Portable>(gates, pass),
        }
    }

    fn pair_sums(self, a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
        let mut sums = Zeroizing::new(vec![0; pairs(places)]);
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx512 => unsafe { pair_sums_avx512(a, b, places, &mut sums) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2Vaes | Isa::Avx2 => unsafe { pair_sums_avx2(a, b, places, &mut sums) },
            _ => vectors::pair_sums::<Portable>(a, b, places, &mut sums),
        }
        sums
    }

    fn first_values(self, sums: &[u64; pairs(PIECES as usize)]) -> Zeroizing<Vec<u64>> {
        let mut values = Zeroizing::new(vec![0; proof::values(1) as usize]);
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx512 => unsafe { first_values_avx512(sums, &mut values) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2Vaes | Isa::Avx2 => unsafe { first_values_avx2(sums, &mut values) },
            _ => first::values::<Portable>(sums, &mut values),
        }
        values
    }

    fn fold(self, vector: &mut [u64], basis: &[u64]) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx512 => unsafe { fold_avx512(vector, basis) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2Vaes | Isa::Avx2 => unsafe { fold_avx2(vector, basis) },
            _ => vectors::fold::<Portable>(vector, basis),
        }
    }
}

#[inline(always)]
fn all<L: Lanes>(gates: &Gates<'_>, pass: Pass<'_>) {
    match pass {
        Pass::Claims(side, claims) => first::claims::<L>(gates, side, claims),
        Pass::FirstSums(sums) => first::sums::<L>(gates, sums),
        Pass::SecondSums(r, sums) => expand::sums::<L>(gates, r, sums),
        Pass::Expand(side, challenges, vector) => {
            expand::expand::<L>(gates, side, challenges, vector);
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($features:literal, $lanes:ty, $pass:ident, $pair_sums:ident, $fold:ident, $values:ident) => {
        #[target_feature(enable = $features)]
        fn $pass(gates: &Gates<'_>, pass: Pass<'_>) {
            all::<$lanes>(gates, pass);
        }

        #[target_feature(enable = $features)]
        fn $pair_sums(a: &[u64], b: &[u64], places: usize, sums: &mut [u64]) {
            vectors::pair_sums::<$lanes>(a, b, places, sums);
        }

        #[target_feature(enable = $features)]
        fn $values(sums: &[u64; pairs(PIECES as usize)], values: &mut [u64]) {
            first::values::<$lanes>(sums, values);
        }

        #[target_feature(enable = $features)]
        fn $fold(vector: &mut [u64], basis: &[u64]) {
            vectors::fold::<$lanes>(vector, basis);
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(
    "avx512f,avx512bw,avx512dq,vpclmulqdq,pclmulqdq",
    lanes::Avx512,
    pass_avx512,
    pair_sums_avx512,
    fold_avx512,
    first_values_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    "avx2,pclmulqdq",
    lanes::Avx2,
    pass_avx2,
    pair_sums_avx2,
    fold_avx2,
    first_values_avx2
);

/// The first elements of a region's bytes, as this machine has numbers.
fn words(bytes: &[u8], length: usize) -> &[u64] {
    // SAFETY: any bytes are words, and those that are not aligned are left out.
    let (before, words, _) = unsafe { bytes.align_to::<u64>() };
    assert!(before.is_empty(), "regions of a workspace are aligned");
    &words[..length]
}

fn words_mut(bytes: &mut [u8], length: usize) -> &mut [u64] {
    // SAFETY: as `words`.
    let (before, words, _) = unsafe { bytes.align_to_mut::<u64>() };
    assert!(before.is_empty(), "regions of a workspace are aligned");
    &mut words[..length]
}

impl Cpu {
    pub(super) fn proof(
        &self,
        memory: &mut Memory,
        step: Proof,
        command: &Command,
    ) -> Result<bool, Fault> {
        let blocks = |memory: &Memory, call: usize, count: u32| {
            let call = command.calls[call];
            let mask = self.mask(call, memory.frame)?;
            let mut bytes = Zeroizing::new(vec![0; mac::BLOCK * count as usize]);
            self.random(mask, call.first, &mut bytes);
            Ok(bytes)
        };
        if let Some(fits) = proof::step(step, memory, command, blocks)? {
            return Ok(fits);
        }
        let (src, dst) = (&command.src, &command.dst);
        let (rows, kernels) = (memory.frame.rows, Kernels::of(self.isa));
        match step {
            Proof::Claims { side } => {
                let mut claims = Zeroizing::new([0; PIECES as usize]);
                gates::with(self, memory, src, dst[0], |gates, _| {
                    kernels.pass(gates, Pass::Claims(side, &mut claims));
                })?;
                memory.put(dst[0], &*claims);
            }
            Proof::Expand { side } => {
                let challenges = [src[3], src[4]].map(|span| memory.element(span));
                let length = length(src[0].count, rows, 3) as usize;
                gates::with(self, memory, src, dst[0], |gates, bytes| {
                    let vector = words_mut(bytes, length);
                    kernels.pass(gates, Pass::Expand(side, challenges, vector));
                })?;
            }
            Proof::Fold { level, products } => {
                let length = length(products, rows, level) as usize;
                let basis = proof::basis(factor(level), memory.element(src[1]));
                kernels.fold(words_mut(memory.bytes_mut(dst[0]), length), &basis);
            }
            Proof::Share { level: 1, .. } => {
                let mut sums = Zeroizing::new([0; pairs(PIECES as usize)]);
                gates::with(self, memory, src, dst[0], |gates, _| {
                    kernels.pass(gates, Pass::FirstSums(&mut sums));
                })?;
                let masks = blocks(memory, 0, proof::values(1))?;
                proof::put_share(memory, dst[0], &kernels.first_values(&sums), &masks);
            }
            Proof::Share { level: 2, .. } => {
                let mut sums = Zeroizing::new([0; pairs(4)]);
                let r = memory.element(src[3]);
                gates::with(self, memory, src, dst[0], |gates, _| {
                    kernels.pass(gates, Pass::SecondSums(r, &mut sums));
                })?;
                let masks = blocks(memory, 0, proof::values(2))?;
                let values = proof::share_of(2, &*sums);
                proof::put_share(memory, dst[0], &values, &masks);
            }
            Proof::Share {
                level, products, ..
            } => {
                let length = length(products, rows, level) as usize;
                let [a, b] = [src[0], src[1]].map(|span| words(memory.bytes(span), length));
                let sums = kernels.pair_sums(a, b, factor(level) as usize);
                let masks = blocks(memory, 0, proof::values(level))?;
                let values = proof::share_of(level, &sums);
                proof::put_share(memory, dst[0], &values, &masks);
            }
            // Those that every device does alike.
            _ => return Err(Fault::Program("a step of a proof that no party does")),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of which one is not zero, and of which none is.
    #[test]
    fn values_of_the_first_level_are_those_of_the_reference() {
        let all = pairs(PIECES as usize);
        let one = (0..all).map(|at| std::array::from_fn(|k| if k == at { u64::MAX } else { 0 }));
        let many = std::array::from_fn(|k| (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for sums in one.chain([many]) {
            let want = proof::share_of(1, &sums);
            for isa in Isa::available() {
                assert_eq!(Kernels::of(isa).first_values(&sums), want, "{isa:?}");
            }
        }
    }

    /// Vectors of all lengths around registers, of the largest elements and of others.
    #[test]
    fn pairs_and_folds_are_those_of_the_reference() {
        let kernels: Vec<Kernels> = Isa::available().into_iter().map(Kernels::of).collect();
        let lengths = [
            1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1030, 2048, 9001,
        ];
        for (length, places) in lengths.into_iter().flat_map(|l| [(l, 4), (l, 8)]) {
            let mut x = 1u64;
            let mut random = || {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                x ^ x >> 32
            };
            let largest = vec![u64::MAX; length];
            let other: Vec<u64> = (0..length).map(|_| random()).collect();
            let basis: Vec<u64> = (0..places).map(|_| random()).collect();
            for (a, b) in [(&largest, &largest), (&largest, &other), (&other, &other)] {
                let sums = proof::pair_sums(a, b, places);
                let mut folded = a.clone();
                proof::fold(&mut folded, &basis);
                let left = length.div_ceil(places);
                for kernels in &kernels {
                    assert_eq!(kernels.pair_sums(a, b, places), sums, "{length}, {places}");
                    let mut vector = a.clone();
                    kernels.fold(&mut vector, &basis);
                    assert_eq!(vector[..left], folded[..left], "{length}, {places}");
                }
            }
        }
    }
}
