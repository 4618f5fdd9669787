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
mod rows;
mod vectors;

use veil_prss::DomainTag;
use veil_session::Frame;
use zeroize::Zeroizing;

use self::gates::Gates;
use self::lanes::{Lanes, Portable};
use super::exec::Mask;
use super::vector::{Domain, RoundKeys};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::command::Command;
use crate::layout::Span;
use crate::proof::{self, Elements, PIECES, Proof, Side, factor, length, pairs};
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

/// What goes through a batch, or follows from what did.
enum Pass<'a> {
    Claims(&'a Gates<'a>, Side, &'a mut [u64; ALL]),
    FirstSums(&'a Gates<'a>, &'a mut [u64; pairs(ALL)]),
    SecondSums(&'a Gates<'a>, u64, &'a mut [u64; pairs(4)]),
    Expand(&'a Gates<'a>, Side, [u64; 2], &'a mut [u64]),
    /// The values that are shared at the first level, from its sums.
    FirstValues(&'a [u64; pairs(ALL)], &'a mut [u64]),
    PairSums([&'a [u64]; 2], usize, &'a mut [u64]),
    Fold(&'a mut [u64], &'a [u64]),
    /// Hashes of rows with the keys of both words, added.
    Hashes(rows::Column<'a>, [u64; 2], &'a mut [u64]),
    /// Rows times weights, summed by word.
    Weighted(rows::Column<'a>, &'a [u64], &'a mut [u64; 2]),
}

/// Pieces, as a length.
const ALL: usize = PIECES as usize;

/// Does it by the instructions of `isa`, which the processor has.
fn pass(isa: Isa, pass: Pass<'_>) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the device looked for the instructions, here and below.
        Isa::Avx512 => unsafe { pass_avx512(pass) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2Vaes | Isa::Avx2 => unsafe { pass_avx2(pass) },
        _ => all::<Portable>(pass),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,vpclmulqdq,pclmulqdq")]
fn pass_avx512(pass: Pass<'_>) {
    all::<lanes::Avx512>(pass);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,pclmulqdq")]
fn pass_avx2(pass: Pass<'_>) {
    all::<lanes::Avx2>(pass);
}

#[inline(always)]
fn all<L: Lanes>(pass: Pass<'_>) {
    match pass {
        Pass::Claims(gates, side, claims) => first::claims::<L>(gates, side, claims),
        Pass::FirstSums(gates, sums) => first::sums::<L>(gates, sums),
        Pass::SecondSums(gates, r, sums) => expand::sums::<L>(gates, r, sums),
        Pass::Expand(gates, side, challenges, vector) => {
            expand::expand::<L>(gates, side, challenges, vector);
        }
        Pass::FirstValues(sums, values) => first::values::<L>(sums, values),
        Pass::PairSums([a, b], places, sums) => vectors::pair_sums::<L>(a, b, places, sums),
        Pass::Fold(vector, basis) => vectors::fold::<L>(vector, basis),
        Pass::Hashes(column, keys, sums) => rows::hashes::<L>(column, keys, sums),
        Pass::Weighted(column, weights, sums) => rows::weighted::<L>(column, weights, sums),
    }
}

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

/// Elements that are drawn together, or rows that are looked at together: they stay in the first cache.
const TILE: usize = 512;

/// Elements from `first`, an even number, on, as [`proof::draws`] has them.
fn draw(
    device: &Cpu,
    key: &RoundKeys,
    (tag, frame): (DomainTag, Frame),
    first: usize,
    elements: &mut [u64],
) {
    let domain = Domain {
        tag,
        lane: frame.lane,
        j: frame.chunk,
    };
    let mask = Mask {
        key,
        domain,
        first: 0,
    };
    let mut bytes = Zeroizing::new([0; 8 * TILE]);
    for (k, piece) in elements.chunks_mut(TILE).enumerate() {
        let bytes = &mut bytes[..8 * piece.len()];
        // A block has two.
        let counter = (first / 2 + k * (TILE / 2)) as u64;
        device.random(mask, counter, bytes);
        let (drawn, _) = bytes.as_chunks::<8>();
        for (element, drawn) in piece.iter_mut().zip(drawn) {
            *element = u64::from_le_bytes(*drawn);
        }
    }
}

/// As [`proof::share_of`] of the first level.
fn first_values(isa: Isa, sums: &[u64; pairs(ALL)]) -> Zeroizing<Vec<u64>> {
    let mut values = Zeroizing::new(vec![0; proof::values(1) as usize]);
    pass(isa, Pass::FirstValues(sums, &mut values));
    values
}

/// As [`proof::pair_sums`].
fn pair_sums(isa: Isa, vectors: [&[u64]; 2], places: usize) -> Zeroizing<Vec<u64>> {
    let mut sums = Zeroizing::new(vec![0; pairs(places)]);
    pass(isa, Pass::PairSums(vectors, places, &mut sums));
    sums
}

impl Cpu {
    pub(super) fn proof(
        &self,
        memory: &mut Memory,
        index: usize,
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
        let (rows, isa) = (memory.frame.rows, self.isa);
        match step {
            Proof::Rows(of) => rows::step(self, memory, index, of, command)?,
            Proof::Claims { side } => {
                let mut claims = Zeroizing::new([0; ALL]);
                gates::with(self, memory, src, dst[0], |gates, _| {
                    pass(isa, Pass::Claims(gates, side, &mut claims));
                })?;
                memory.put(dst[0], &*claims);
            }
            Proof::Expand { side } => {
                let challenges = [src[3], src[4]].map(|span| memory.element(span));
                let length = length(src[0].count, rows, 3) as usize;
                gates::with(self, memory, src, dst[0], |gates, bytes| {
                    let vector = words_mut(bytes, length);
                    pass(isa, Pass::Expand(gates, side, challenges, vector));
                })?;
            }
            Proof::Fold { level, products } => {
                let length = length(products, rows, level) as usize;
                let basis = proof::basis(factor(level), memory.element(src[1]));
                let vector = words_mut(memory.bytes_mut(dst[0]), length);
                pass(isa, Pass::Fold(vector, &basis));
            }
            Proof::Share {
                level, products, ..
            } => {
                let values = match level {
                    1 => {
                        let mut sums = Zeroizing::new([0; pairs(ALL)]);
                        gates::with(self, memory, src, dst[0], |gates, _| {
                            pass(isa, Pass::FirstSums(gates, &mut sums));
                        })?;
                        first_values(isa, &sums)
                    }
                    2 => {
                        let mut sums = Zeroizing::new([0; pairs(4)]);
                        let r = memory.element(src[3]);
                        gates::with(self, memory, src, dst[0], |gates, _| {
                            pass(isa, Pass::SecondSums(gates, r, &mut sums));
                        })?;
                        proof::share_of(level, &*sums)
                    }
                    _ => {
                        let length = length(products, rows, level) as usize;
                        let vectors = [src[0], src[1]].map(|s| words(memory.bytes(s), length));
                        let sums = pair_sums(isa, vectors, factor(level) as usize);
                        proof::share_of(level, &sums)
                    }
                };
                let masks = blocks(memory, 0, proof::values(level))?;
                proof::put_share(memory, dst[0], values, &masks);
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
        let one =
            (0..pairs(ALL)).map(|at| std::array::from_fn(|k| if k == at { u64::MAX } else { 0 }));
        let many = std::array::from_fn(|k| (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for sums in one.chain([many]) {
            let want = proof::share_of(1, &sums);
            for isa in Isa::available() {
                assert_eq!(first_values(isa, &sums), want, "{isa:?}");
            }
        }
    }

    /// Vectors of all lengths around registers, of the largest elements and of others.
    #[test]
    fn pairs_and_folds_are_those_of_the_reference() {
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
                for isa in Isa::available() {
                    let got = pair_sums(isa, [a, b], places);
                    assert_eq!(got, sums, "{length}, {places}");
                    let mut vector = a.clone();
                    pass(isa, Pass::Fold(&mut vector, &basis));
                    assert_eq!(vector[..left], folded[..left], "{length}, {places}");
                }
            }
        }
    }
}
