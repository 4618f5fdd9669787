//! Rounds over blocks: entries of correlations, second hashes of leaves, and rows that are sums of ten products.

#[cfg(target_arch = "x86_64")]
mod products;

use super::super::vector::{self, Domain, GROUP, RoundKeys, Task, VECTOR, Vector};
use super::super::workspace::Memory;
use super::super::{Cpu, Isa};
use super::BLOCK;
#[cfg(target_arch = "x86_64")]
use super::{leaves::Lack, leaves::Leaves, tree_at, trees::read};
use crate::Fault;
use crate::command::Command;
use crate::gf128::{dot, over_x, pack};
use crate::layout::Span;
use crate::silent::{HIDING, Known, Lpn, Silent, WEIGHT};

/// Correlations of an entry.
const OF_ENTRY: usize = HIDING as usize;

/// Rows whose terms are made at once: those of whole groups of vectors.
const TILE: usize = 32;

/// Blocks that the PRF makes at once.
const STEP: usize = GROUP * VECTOR / BLOCK;

/// The terms of a tile: of each row ten blocks.
type Terms = [u8; BLOCK * TILE * WEIGHT];

const _: () = assert!((TILE * WEIGHT).is_multiple_of(STEP));

/// Entries that are packed side by side: each sum waits for itself.
const SIDE: usize = 4;

/// Entries of correlations.
pub(super) fn pack_all(memory: &mut Memory, from: Span, dst: &[Span]) {
    let count = dst[0].count as usize;
    for first in (0..count).step_by(SIDE) {
        let side = (count - first).min(SIDE);
        let bytes = &memory.bytes(from)[BLOCK * OF_ENTRY * first..][..BLOCK * OF_ENTRY * side];
        let (taken, _) = bytes.as_chunks::<BLOCK>();
        let block = |k: usize, i: usize| u128::from_le_bytes(taken[OF_ENTRY * k + i]);
        let mut sums = [0; SIDE];
        if side == SIDE {
            for i in 0..OF_ENTRY {
                for k in 0..SIDE {
                    sums[k] = over_x(sums[k] ^ block(k, i));
                }
            }
        } else {
            for k in 0..side {
                sums[k] = pack((0..OF_ENTRY).map(|i| block(k, i)));
            }
        }
        let mut choices = [0; SIDE];
        if dst.len() > 1 {
            for k in 0..side {
                for i in 0..OF_ENTRY {
                    choices[k] |= (block(k, i) & 1) << i;
                }
            }
        }
        for (to, blocks) in dst.iter().zip([sums, choices]) {
            for k in 0..side {
                let to = memory.column_bytes_mut(*to, (first + k) as u32);
                to.copy_from_slice(&blocks[k].to_le_bytes());
            }
        }
    }
}

impl Cpu {
    #[cfg(target_arch = "x86_64")]
    pub(super) fn second_hashes(
        &self,
        memory: &mut Memory,
        known: &Known<'_>,
        (step, set): (Silent, Lpn),
        command: &Command,
    ) {
        use super::{
            fill_avx2, fill_avx2_vaes, fill_avx512, give_avx2, give_avx2_vaes, give_avx512,
        };
        let frame = (memory.frame.lane, memory.frame.chunk);
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let noise = BLOCK << set.log_secret;
        let column = |span: Span| memory.column(span, 0).0;
        let fills = matches!(step, Silent::Fill { .. });
        let (told, bases) = if fills {
            (column(src[1]), [column(src[2]), column(src[3])])
        } else {
            (column(dst[2]), [column(src[0]); 2])
        };
        for tree in 0..set.trees {
            let mut at = [tree_at(memory, (set, tree), [dst[0], dst[1]]); 2];
            let mut number = 0;
            if fills {
                at[1] = tree_at(memory, (set, tree), [dst[2], dst[3]]);
                number = crate::silent::lacking(memory, set, src[0], tree);
            }
            let (start, base) = (known.drawn(frame, command, (0, tree.into())), memory.base());
            let of_tree = BLOCK * tree as usize;
            // SAFETY: the command was checked: columns have the leaves and the noise, the base an entry, and the message a block for each tree; `with` checked the
            // instruction set.
            unsafe {
                let leaves = Leaves {
                    at: base.add(at[0]),
                    count: set.leaves() as usize,
                    start,
                };
                let told = base.add(told + of_tree);
                let [own, other] =
                    [0, 1].map(|k: usize| read(base.add(bases[k] + noise + of_tree)));
                if fills {
                    let lack = Lack {
                        number,
                        sum: read(told) ^ own,
                        noise: other,
                        to: base.add(at[1]),
                    };
                    match self.isa {
                        Isa::Avx512 => fill_avx512(&leaves, &lack),
                        Isa::Avx2Vaes => fill_avx2_vaes(&leaves, &lack),
                        _ => fill_avx2(&leaves, &lack),
                    }
                } else {
                    let sum = match self.isa {
                        Isa::Avx512 => give_avx512(&leaves),
                        Isa::Avx2Vaes => give_avx2_vaes(&leaves),
                        _ => give_avx2(&leaves),
                    };
                    let sum = (sum ^ own).to_le_bytes();
                    told.copy_from_nonoverlapping(sum.as_ptr(), BLOCK);
                }
            }
        }
    }

    pub(super) fn rows_over_blocks(
        &self,
        memory: &mut Memory,
        set: Lpn,
        command: &Command,
    ) -> Result<(), Fault> {
        let call = command.calls[0];
        let bases = command.src.len();
        let mut tables = [std::ptr::null(); 2];
        for (table, span) in tables.iter_mut().zip(&command.src) {
            let (at, _) = memory.column(*span, 0);
            *table = memory.base().wrapping_add(at).cast_const();
        }
        let mut first = call.first;
        for half in 0..2 {
            let mut to = [std::ptr::null_mut(); 2];
            for (k, to) in to.iter_mut().enumerate().take(bases) {
                let (at, _) = memory.column(command.dst[2 * k + half], 0);
                *to = memory.base().wrapping_add(at);
            }
            let count = command.dst[half].count as usize;
            let mask = self.mask(call, memory.frame)?;
            // SAFETY: the command was checked: bases begin with the secret, and columns of a span, a block each, lie one behind the other; `with` checked the
            // instruction set.
            unsafe {
                let rows = Rows {
                    tables,
                    bases,
                    places: (1 << set.log_secret) - 1,
                    to,
                    count,
                    keys: mask.key,
                    domain: mask.domain,
                    first,
                    add: adds(self.isa),
                };
                vector::run(self.isa, rows);
            }
            first += (count * WEIGHT) as u64;
        }
        Ok(())
    }
}

/// Adds to as many blocks as there are terms of rows the sums of their products with blocks of a table.
type Add = unsafe fn(terms: &Terms, rows: usize, places: u32, table: *const u8, to: *mut u8);

/// The function of an instruction set.
fn adds(isa: Isa) -> Add {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => products::add_avx512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2Vaes | Isa::Avx2 => products::add_avx2,
        _ => add,
    }
}

/// Rows one after the other.
struct Rows<'a> {
    /// Secrets, 2^k blocks each: one, or two under the same rows.
    tables: [*const u8; 2],
    bases: usize,
    /// 2^k − 1.
    places: u32,
    /// Blocks that rows are added to, for each table.
    to: [*mut u8; 2],
    count: usize,
    keys: &'a RoundKeys,
    domain: Domain,
    /// The counter of the first term of the first row.
    first: u64,
    add: Add,
}

impl Task for Rows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let mut terms: Terms = [0; BLOCK * TILE * WEIGHT];
        for at in (0..self.count).step_by(TILE) {
            let mut counter = self.first + (at * WEIGHT) as u64;
            let rows = (self.count - at).min(TILE);
            for step in (0..rows * WEIGHT).step_by(STEP) {
                // SAFETY: the caller's instruction set; there is room for whole steps.
                unsafe {
                    let counters = [counter, counter + 4, counter + 8, counter + 12];
                    let made = V::prf(self.keys, self.domain, counters);
                    for g in 0..GROUP {
                        let to = terms.as_mut_ptr().add(BLOCK * step + g * VECTOR);
                        made[g].store(to);
                    }
                }
                counter += STEP as u64;
            }
            for k in 0..self.bases {
                // SAFETY: the caller's: places are masked, and `count` blocks are written.
                unsafe {
                    let to = self.to[k].add(BLOCK * at);
                    (self.add)(&terms, rows, self.places, self.tables[k], to);
                }
            }
        }
    }
}

/// As it is defined.
unsafe fn add(terms: &Terms, rows: usize, places: u32, table: *const u8, to: *mut u8) {
    let (terms, _) = terms.as_chunks::<BLOCK>();
    for row in 0..rows {
        let mut sum = 0;
        for term in &terms[WEIGHT * row..][..WEIGHT] {
            let term = u128::from_le_bytes(*term);
            let place = (term as u32 & places) as usize;
            // SAFETY: the caller's: the table has the place.
            let of_table = unsafe { table.add(BLOCK * place).cast::<[u8; BLOCK]>().read() };
            sum ^= dot(term & !u128::from(places), u128::from_le_bytes(of_table));
        }
        // SAFETY: the caller's: there is a block for each row.
        unsafe {
            let to = to.add(BLOCK * row).cast::<[u8; BLOCK]>();
            to.write((u128::from_le_bytes(to.read()) ^ sum).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows in pairs, and one that is alone.
    #[test]
    fn every_instruction_set_adds_alike() {
        let mut word = 1u64;
        let mut drawn = |bytes: &mut [u8]| {
            for byte in bytes {
                word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                *byte = (word >> 56) as u8;
            }
        };
        let mut terms: Terms = [0; BLOCK * TILE * WEIGHT];
        let (mut table, mut to) = ([0; BLOCK << 5], [0; BLOCK * TILE]);
        drawn(&mut terms);
        drawn(&mut table);
        drawn(&mut to);
        for rows in [0, 1, 2, 3, 8, 31, TILE] {
            let sums = |add: Add| {
                let mut to = to;
                // SAFETY: the table has 32 places, and the machine the instruction set.
                unsafe { add(&terms, rows, 31, table.as_ptr(), to.as_mut_ptr()) };
                to
            };
            let want = sums(add);
            assert_eq!(want[BLOCK * rows..], to[BLOCK * rows..]);
            for isa in Isa::available() {
                assert_eq!(sums(adds(isa)), want, "{isa:?}, {rows}");
            }
        }
    }
}
