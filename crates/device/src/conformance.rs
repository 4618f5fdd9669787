//! The suite that every device must pass: the same commands, the same bytes as [`Reference`](crate::Reference).
//!
//! Cases are drawn from a seed: random programs over every ring, with chains and sums of products, on ragged numbers of rows.

mod ag;
mod cut;
mod integers;
mod labels;
mod lifts;
mod matmul;
mod moves;
mod ot;
mod program;
mod proof;
mod psi;
mod ranks;
mod repeats;
mod reuse;
mod rings;
mod rows;
mod silent;
mod vole;

use veil_math::Ring;
use veil_session::Frame;

use crate::{ColumnType, Device, Fault, Layout, Outcome, Region, Residency, completion};
pub use matmul::{Product, check_product};

/// A device gave other bytes than the reference.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// Bytes differ.
    #[error(
        "case {case} ({ring:?}, {rows} of {chunk_rows} rows): {what} differs from the reference"
    )]
    Bytes {
        /// Number of the case under the seed.
        case: u32,
        /// Ring of the case.
        ring: Ring,
        /// Rows of the case.
        rows: u32,
        /// Rows of a full chunk.
        chunk_rows: u32,
        /// The value that differs.
        what: &'static str,
    },
    /// The device refused what the reference did.
    #[error("case {case}: {fault}")]
    Fault {
        /// Number of the case under the seed.
        case: u32,
        /// The fault.
        fault: Fault,
    },
}

/// Numbers of rows that find the edges: nothing, one, around bytes, words, vectors and groups of them.
const ROWS: [u32; 18] = [
    0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 129, 511, 512, 513, 1000, 2048, 2500,
];

/// After so many cases comes one about proofs, one about integers, one over Z_2^32, one about lifts and truncations, one about moves, one about proofs of them, one about products of matrices, one about labels, one about transfers, one about silent ones, one about intersections, one about cut-and-choose, one about authenticated garbling, and one about repetitions.
const PROOFS: u32 = 4;

/// The subject of cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// Programs over shares, and what surrounds them.
    Rings,
    /// Steps of proofs.
    Proofs,
    /// Integers in other rings.
    Integers,
    /// Programs over Z_2^32, and integers modulo 2^32 in other rings.
    Narrow,
    /// Lifts of bits to integers, and truncations of integers.
    Lifts,
    /// Permutations, rows that move by them, and positions to which they move.
    Moves,
    /// Proofs that rows were moved rightly.
    Rows,
    /// Products of matrices.
    Matrices,
    /// Programs over labels.
    Labels,
    /// Oblivious transfers.
    Transfers,
    /// Silent transfers.
    Silent,
    /// Steps of intersections.
    Intersections,
    /// Steps of cut-and-choose.
    Cut,
    /// Steps of authenticated garbling.
    Authenticated,
    /// Repetitions, and workspaces that serve several chunks.
    Repeats,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 15] = [
        Section::Rings,
        Section::Proofs,
        Section::Integers,
        Section::Narrow,
        Section::Lifts,
        Section::Moves,
        Section::Rows,
        Section::Matrices,
        Section::Labels,
        Section::Transfers,
        Section::Silent,
        Section::Intersections,
        Section::Cut,
        Section::Authenticated,
        Section::Repeats,
    ];
}

/// Runs `cases` random cases from `seed` that are about one thing: for a device that does not do all of them.
///
/// # Errors
/// [`Difference`] for the first case whose bytes differ from the reference ([`Difference::Bytes`]) or in which the device refuses
/// a command that the reference executes ([`Difference::Fault`]). The device is not wiped then.
pub fn check_section(
    device: &mut dyn Device,
    section: Section,
    seed: u64,
    cases: u32,
) -> Result<(), Difference> {
    let mut rng = SplitMix(seed);
    let one = match section {
        Section::Rings => rings::one,
        Section::Proofs => proof::one,
        Section::Integers => integers::one,
        Section::Narrow => narrow,
        Section::Lifts => lifts,
        Section::Moves => moves,
        Section::Rows => moved,
        Section::Matrices => matrices,
        Section::Labels => labels::one,
        Section::Transfers => transfers,
        Section::Silent => quiet,
        Section::Intersections => intersections,
        Section::Cut => cut::one,
        Section::Authenticated => authenticated,
        Section::Repeats => repeated,
    };
    for case in 0..cases {
        one(device, &mut rng, case)?;
    }
    device.wipe();
    Ok(())
}

/// Runs `cases` random cases from `seed`.
///
/// # Errors
/// [`Difference`] as of [`check_section`].
pub fn check(device: &mut dyn Device, seed: u64, cases: u32) -> Result<(), Difference> {
    let mut rng = SplitMix(seed);
    for case in 0..cases {
        rings::one(device, &mut rng, case)?;
        if case % PROOFS == 0 {
            proof::one(device, &mut rng, case)?;
            integers::one(device, &mut rng, case)?;
            narrow(device, &mut rng, case)?;
            lifts(device, &mut rng, case)?;
            moves(device, &mut rng, case)?;
            moved(device, &mut rng, case)?;
            matrices(device, &mut rng, case)?;
            labels::one(device, &mut rng, case)?;
            transfers(device, &mut rng, case)?;
            quiet(device, &mut rng, case)?;
            intersections(device, &mut rng, case)?;
            cut::one(device, &mut rng, case)?;
            authenticated(device, &mut rng, case)?;
            repeated(device, &mut rng, case)?;
        }
    }
    device.wipe();
    Ok(())
}

/// A random case over Z_2^32.
fn narrow(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(rings::narrow(device, rng, case))?;
    offered(integers::narrow(device, rng, case))
}

/// A random case about what is done again.
fn repeated(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    repeats::one(device, rng, case)?;
    offered(reuse::one(device, rng, case))
}

/// A random case about lifts, or truncations.
fn lifts(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(lifts::one(device, rng, case))
}

/// A random case about moves.
fn moves(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(moves::one(device, rng, case))?;
    offered(ranks::one(device, rng, case))
}

/// A random case about proofs that rows were moved rightly.
fn moved(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(rows::one(device, rng, case))
}

/// A random case about products of matrices.
fn matrices(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(matmul::one(device, rng, case))
}

/// A random case about oblivious transfers.
fn transfers(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(ot::one(device, rng, case))
}

/// A random case about silent transfers, and one about rounds over blocks.
fn quiet(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(silent::one(device, rng, case))?;
    offered(vole::one(device, rng, case))
}

/// A random case about intersections.
fn intersections(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(psi::one(device, rng, case))
}

/// A random case about authenticated garbling.
fn authenticated(device: &mut dyn Device, rng: &mut SplitMix, case: u32) -> Result<(), Difference> {
    offered(ag::one(device, rng, case))
}

/// A device that refuses programs or workspaces over Z_2^32, moves, proofs of them, products of matrices, transfers whose choices are bytes, silent transfers, intersections, or authenticated gates behind
/// others, as [`Fault::Unsupported`], has no such cases.
fn offered(ended: Result<(), Difference>) -> Result<(), Difference> {
    match ended {
        Err(Difference::Fault {
            fault: Fault::Unsupported { .. },
            ..
        }) => Ok(()),
        ended => ended,
    }
}

/// Test data only: a device's behaviour never depends on it (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// What one device makes of a case, by what it is.
type Seen = Vec<(&'static str, Vec<u8>)>;

/// The layout of regions: place, column, parts and count of each.
fn regions(chunk_rows: u32, regions: &[(Residency, ColumnType, u8, u32)]) -> Layout {
    let region = |&(residency, column, components, count)| Region {
        residency,
        column,
        components,
        count,
    };
    Layout {
        chunk_rows,
        regions: regions.iter().map(region).collect(),
    }
}

/// Random bytes for everything that the host may write.
fn written(rng: &mut SplitMix, layout: &Layout, rows: u32) -> Vec<(u16, Vec<u8>)> {
    let mapped = (0..).zip(&layout.regions);
    let mapped = mapped.filter(|(_, region)| region.residency == Residency::Mapped);
    let bytes = mapped.map(|(index, _)| {
        let bytes = layout.bytes(layout.all(index, 0), rows) as usize;
        (index, rng.bytes(bytes))
    });
    bytes.collect()
}

/// Whether a device saw in a case what the reference did.
fn compare(
    (case, ring, layout, frame): (u32, Ring, &Layout, Frame),
    want: Result<Seen, Fault>,
    got: Result<Seen, Fault>,
) -> Result<(), Difference> {
    let [want, got] =
        [want, got].map(|seen| seen.map_err(|fault| Difference::Fault { case, fault }));
    for ((what, want), (_, got)) in want?.iter().zip(&got?) {
        if want != got {
            return Err(Difference::Bytes {
                case,
                ring,
                rows: frame.rows,
                chunk_rows: layout.chunk_rows,
                what,
            });
        }
    }
    Ok(())
}

fn expect_done(device: &mut dyn Device) -> Result<(), Fault> {
    match completion(device)?.outcome {
        Outcome::Done => Ok(()),
        Outcome::Mismatch { .. } => Err(Fault::Unknown("the completion of a batch")),
    }
}

#[cfg(test)]
mod tests {
    use veil_session::Secret;

    use super::*;
    use crate::{Cpu, Isa, KeyId};

    #[test]
    fn every_instruction_set_equals_the_reference() {
        std::thread::scope(|scope| {
            for isa in Isa::available() {
                scope.spawn(move || {
                    check(&mut Cpu::with(isa), 1, 400).unwrap_or_else(|e| panic!("{isa:?}: {e}"));
                });
            }
        });
    }

    /// The suite finds a device that is wrong in one bit of one message.
    #[test]
    fn a_wrong_device_is_found() {
        struct Wrong(Cpu);
        impl Device for Wrong {
            fn name(&self) -> &'static str {
                "wrong"
            }

            fn load_key(&mut self, id: KeyId, _: &Secret) -> Result<(), Fault> {
                self.0.load_key(id, &Secret::new([0; 16]))
            }

            crate::forward!(self, self.0, bind load open close write map view submit poll wipe);
        }
        let found = check(&mut Wrong(Cpu::with(Isa::Portable)), 1, 20);
        assert!(matches!(found, Err(Difference::Bytes { .. })), "{found:?}");
    }
}
