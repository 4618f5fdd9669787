//! Cases about truncations: their steps over every ring of integers, on ragged numbers of rows.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, PrfCall, Reference, Residency, Span,
    Tag, Truncation,
};

const ITEMS: u32 = 5;
/// Integers that steps read and write.
const PARTS: u8 = 4;
/// Calls of a step.
const CALLS: u16 = 4;
/// Integers and bits as the host writes them.
const IN: u16 = 0;
const BITS_IN: u16 = 1;
/// Where programs compute.
const SLOTS: u16 = 2;
const BITS: u16 = 3;
const OUT: u16 = 4;

fn layout(ring: Ring, chunk_rows: u32, slots: Residency) -> Layout {
    let (rows, bits) = (ColumnType::Rows(ring), ColumnType::Rows(Ring::Bits));
    let (mapped, public) = (Residency::Mapped, Residency::Public);
    regions(
        chunk_rows,
        &[
            (mapped, rows, PARTS, ITEMS),
            (mapped, bits, 1, ITEMS),
            (slots, rows, PARTS, ITEMS),
            (slots, bits, 1, ITEMS),
            (public, rows, PARTS, ITEMS),
        ],
    )
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let ring = [Ring::Z32, Ring::Z64, Ring::Z128][rng.below(3)];
    let rows = ROWS[rng.below(ROWS.len())];
    let slots = [Residency::Plane, Residency::Resident][rng.below(2)];
    let layout = layout(ring, rows + rng.below(3) as u32 * 100, slots);
    let frame = Frame {
        epoch: 0,
        lane: rng.next() as u16,
        chunk: rng.next() as u32,
        rows,
    };
    let mut bytes = |region| rng.bytes(layout.bytes(layout.all(region, 0), rows) as usize);
    let integers: Vec<Vec<u8>> = (0..PARTS).map(|_| bytes(IN)).collect();
    let bits = bytes(BITS_IN);
    let keys =
        [(); CALLS as usize].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
    let commands = commands(&layout, ring, rng);
    let run = |device: &mut dyn Device| -> Result<Seen, Fault> {
        device.bind(SessionId([7; 32]));
        for (id, key) in (0..).map(KeyId).zip(&keys) {
            device.load_key(id, key)?;
        }
        let workspace = device.open(&layout, frame)?;
        for (component, bytes) in (0..).zip(&integers) {
            device.write(workspace, layout.all(IN, component), bytes)?;
        }
        device.write(workspace, layout.all(BITS_IN, 0), &bits)?;
        device.submit(workspace, &commands, Tag(1))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        for part in 0..PARTS {
            let bytes = device.view(workspace, layout.all(OUT, part))?;
            seen.push(("what a step of truncations makes", bytes.to_vec()));
        }
        device.close(workspace);
        Ok(seen)
    };
    let want = run(&mut Reference::default());
    compare((case, ring, &layout, frame), want, run(device))
}

/// Steps one after the other, on some of the columns.
fn commands(layout: &Layout, ring: Ring, rng: &mut SplitMix) -> Vec<Command> {
    let copy = |ring, from, to| {
        let minus = 0;
        Command::new(Op::Combine { ring, minus }, vec![from], vec![to])
    };
    let bits = layout.all(BITS_IN, 0);
    let mut commands = vec![copy(Ring::Bits, bits, layout.all(BITS, 0))];
    commands.extend((0..PARTS).map(|c| copy(ring, layout.all(IN, c), layout.all(SLOTS, c))));
    for number in 0..4 {
        let by = 1 + rng.below(ring.bits() as usize - 1) as u32;
        let step = [
            Truncation::Hide { by },
            Truncation::Take { by },
            Truncation::Answer { by },
            Truncation::Settle { by },
        ][rng.below(4)];
        let count = 1 + rng.below(ITEMS as usize) as u32;
        let mut span = |region, component| Span {
            region,
            component,
            first: rng.below((ITEMS - count + 1) as usize) as u32,
            count,
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(|part| span(SLOTS, part));
        let (src, dst) = match step {
            Truncation::Hide { .. } | Truncation::Take { .. } => (a, vec![b, c, d]),
            Truncation::Answer { .. } => (span(BITS, 0), vec![b, c]),
            Truncation::Settle { .. } => (b, vec![a]),
        };
        let mut command = Command::new(Op::Truncation(step), vec![src], dst);
        // As plans have it: no call twice.
        let calls = (0..step.calls() as u16).map(|d| PrfCall {
            key: KeyId(d),
            tag: DomainTag(DomainTag::truncate3(0).0 | number << 3 | d),
            first: rng.next() >> 8,
        });
        command.calls = calls.collect();
        commands.push(command);
    }
    commands.extend((0..PARTS).map(|c| copy(ring, layout.all(SLOTS, c), layout.all(OUT, c))));
    commands
}
