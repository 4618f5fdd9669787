//! Cases about proofs that rows were moved rightly: hashes of rows, weights in the order of a permutation, and claims.

use veil_math::Ring;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::proof::rows::{PRODUCTS, words};
use crate::proof::{SEED, length};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, Proof, Reference, Residency, RowStep,
    Span, Tag,
};

/// Columns that move, of which each has a region.
const COLUMNS: u16 = 3;
/// A permutation, vectors, single elements, and vectors as the host sees them.
const FACTOR: u16 = COLUMNS;
const VECTORS: u16 = COLUMNS + 1;
const ELEMENTS: u16 = COLUMNS + 2;
const OUT: u16 = COLUMNS + 3;

/// Bytes of an element of a column.
const SIZES: [u8; 5] = [1, 2, 4, 8, 16];

/// Rows of more than one tile.
const MANY: u32 = 5000;

struct Case {
    layout: Layout,
    frame: Frame,
    columns: [Vec<u8>; COLUMNS as usize],
    sizes: [u8; COLUMNS as usize],
    factor: Vec<u8>,
    elements: Vec<u8>,
    /// Words before the first column.
    word: u32,
    back: bool,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let rows = match rng.below(20) {
        0 => MANY,
        _ => ROWS[1 + rng.below(ROWS.len() - 1)],
    };
    let chunk_rows = rows + rng.below(3) as u32 * 100;
    let sizes = [(); COLUMNS as usize].map(|()| SIZES[rng.below(SIZES.len())]);
    let element = ColumnType::One(Ring::Z64);
    let vectors = length(PRODUCTS, chunk_rows, 3) as u32;
    let mut of_regions: Vec<_> = sizes
        .iter()
        .map(|size| (Residency::Mapped, ColumnType::Words(*size), 1, 1))
        .collect();
    of_regions.extend([
        (Residency::Mapped, ColumnType::Rows(Ring::Z32), 1, 1),
        (Residency::Resident, element, 2, vectors),
        (Residency::Mapped, element, 1, SEED + 2),
        (Residency::Mapped, element, 1, vectors),
    ]);
    let mut order: Vec<u32> = (0..rows).collect();
    for row in 1..order.len() {
        order.swap(row, rng.below(row + 1));
    }
    if rng.below(8) == 0 {
        // No row: the device refuses it, as the reference does.
        order[rng.below(rows as usize)] = rows + rng.below(2) as u32;
    }
    let layout = regions(chunk_rows, &of_regions);
    let of = Case {
        frame: Frame {
            epoch: 0,
            lane: rng.next() as u16,
            chunk: rng.next() as u32,
            rows,
        },
        columns: sizes.map(|size| rng.bytes(usize::from(size) * rows as usize)),
        sizes,
        factor: order.iter().flat_map(|to| to.to_le_bytes()).collect(),
        elements: rng.bytes(8 * (SEED as usize + 2)),
        word: rng.below(4) as u32,
        back: rng.below(2) == 0,
        layout,
    };
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

impl Case {
    fn steps(&self) -> Vec<Command> {
        let layout = &self.layout;
        let seed = Span {
            count: SEED,
            ..layout.all(ELEMENTS, 0)
        };
        let claim = Span {
            first: SEED,
            count: 1,
            ..seed
        };
        let step = |step, from, to| {
            let op = Op::Proof(Proof::Rows(step));
            Command::new(op, vec![seed, from], vec![to])
        };
        let mut steps = Vec::new();
        let mut word = self.word;
        for (column, size) in (0..).zip(self.sizes) {
            let from = layout.all(column, 0);
            for (component, place) in [(0, 0), (1, 1)] {
                let to = layout.all(VECTORS, component);
                // Of one vector the first step leaves zeros behind its rows.
                let word = if component == 0 && column == 0 {
                    0
                } else {
                    word
                };
                steps.push(step(RowStep::Hashes { word, place }, from, to));
                let first = column == 0 && place == 0;
                let of = RowStep::Claim { word, place, first };
                steps.push(step(of, from, claim));
            }
            word += words(size.into());
        }
        for (component, place) in [(0, 1), (1, 0)] {
            let back = self.back != (place == 1);
            let to = layout.all(VECTORS, component);
            let of = RowStep::Weights { place, back };
            steps.push(step(of, layout.all(FACTOR, 0), to));
        }
        steps
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        let layout = &self.layout;
        device.bind(SessionId([9; 32]));
        device.load_key(KeyId(0), &Secret::new([1; 16]))?;
        let workspace = device.open(layout, self.frame)?;
        for (region, column) in (0..).zip(&self.columns) {
            device.write(workspace, layout.all(region, 0), column)?;
        }
        device.write(workspace, layout.all(FACTOR, 0), &self.factor)?;
        device.write(workspace, layout.all(ELEMENTS, 0), &self.elements)?;
        let mut seen = Seen::new();
        for step in self.steps() {
            match device.submit(workspace, std::slice::from_ref(&step), Tag(0)) {
                Ok(()) => expect_done(device)?,
                // A factor that moves a row beyond all rows.
                Err(Fault::Shape { command, .. }) => {
                    while device.poll()?.is_some() {}
                    seen.push(("a factor that is no permutation", vec![command as u8]));
                    break;
                }
                Err(fault) => return Err(fault),
            }
        }
        let claims = device.view(workspace, layout.all(ELEMENTS, 0))?.to_vec();
        seen.push(("a claim about rows", claims));
        for component in [0, 1] {
            let op = Op::Combine {
                ring: Ring::Z64,
                minus: 0,
            };
            let to = layout.all(OUT, 0);
            let copy = Command::new(op, vec![layout.all(VECTORS, component)], vec![to]);
            device.submit(workspace, &[copy], Tag(0))?;
            expect_done(device)?;
            let vector = device.view(workspace, to)?.to_vec();
            seen.push(("a vector of rows", vector));
        }
        device.close(workspace);
        Ok(seen)
    }
}
