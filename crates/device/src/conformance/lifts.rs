//! Cases about lifts and truncations: their steps over every ring of integers, on ragged numbers of rows.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Lifting, Op, PrfCall, Reference, Residency,
    Span, Tag, Truncation,
};

const ITEMS: u32 = 6;
/// Components of values.
const PARTS: u8 = 3;
/// Calls of a step.
const CALLS: u16 = 4;
/// Integers and bits as the host writes them.
const IN: u16 = 0;
const BITS_IN: u16 = 1;
/// Where programs compute.
const SLOTS: u16 = 2;
const BITS: u16 = 3;
const MESSAGES: u16 = 4;
const OUT: u16 = 5;

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
            (mapped, rows, 2, ITEMS),
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
    let commands = commands(&layout, rng);
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
            seen.push((
                "a component of lifted bits, or of truncated integers",
                bytes.to_vec(),
            ));
        }
        for message in 0..2 {
            let bytes = device.view(workspace, layout.all(MESSAGES, message))?;
            seen.push(("a message of lifts, or of truncations", bytes.to_vec()));
        }
        device.close(workspace);
        Ok(seen)
    };
    let want = run(&mut Reference::default());
    compare((case, ring, &layout, frame), want, run(device))
}

/// Steps one after the other, on some of the columns.
fn commands(layout: &Layout, rng: &mut SplitMix) -> Vec<Command> {
    let ColumnType::Rows(ring) = layout.regions[usize::from(IN)].column else {
        unreachable!("inputs are integers")
    };
    let copy = |ring, from, to| {
        let minus = 0;
        Command::new(Op::Combine { ring, minus }, vec![from], vec![to])
    };
    let mut commands = vec![copy(
        Ring::Bits,
        layout.all(BITS_IN, 0),
        layout.all(BITS, 0),
    )];
    commands.extend((0..PARTS).map(|c| copy(ring, layout.all(IN, c), layout.all(SLOTS, c))));
    for _ in 0..3 {
        let count = 1 + rng.below(ITEMS as usize) as u32;
        let span = |region, component, first| Span {
            region,
            component,
            first,
            count,
        };
        let first = |rng: &mut SplitMix| rng.below((ITEMS - count + 1) as usize) as u32;
        let at = first(rng);
        let slots = [0, 1, 2].map(|c| span(SLOTS, c, at));
        let messages = [0, 1].map(|k| span(MESSAGES, k, 0));
        let bits = span(BITS, 0, first(rng));
        let other = [slots[1], messages[0]][rng.below(2)];
        let op = step(ring, rng);
        let (src, dst) = match &op {
            Op::Lifting(Lifting::Terms { .. }) => (vec![], [&messages[..], &slots].concat()),
            Op::Truncation(Truncation::Hide { .. } | Truncation::Take { .. }) => {
                (vec![messages[0]], slots.to_vec())
            }
            Op::Truncation(Truncation::Settle { .. }) => (vec![other], vec![slots[0]]),
            _ => (vec![bits], vec![slots[0], other]),
        };
        let calls = match &op {
            Op::Lifting(step) => step.calls(),
            Op::Truncation(step) => step.calls(),
            _ => 0,
        };
        let mut command = Command::new(op, src, dst);
        // As plans have it: no call twice.
        let number = commands.len() as u16;
        let calls = (0..calls as u16).map(|d| PrfCall {
            key: KeyId(d),
            tag: DomainTag(DomainTag::lift4(0).0 | number << 2 | d),
            first: rng.next() >> 8,
        });
        command.calls = calls.collect();
        commands.push(command);
    }
    commands.extend((0..PARTS).map(|c| copy(ring, layout.all(SLOTS, c), layout.all(OUT, c))));
    commands
}

/// A step of lifts, or one of truncations.
fn step(ring: Ring, rng: &mut SplitMix) -> Op {
    let mut pair = || {
        let r = rng.below(3) as u8;
        (r, (r + 1 + rng.below(2) as u8) % PARTS)
    };
    let terms = [pair(), pair()];
    let kept = rng.below(3);
    let mut keep = |k| (k < kept).then(|| rng.below(3) as u8);
    let keeps = [keep(0), keep(1)];
    let of_terms = Lifting::Terms { terms, keeps };
    let by = 1 + rng.below(ring.bits() as usize - 1) as u32;
    match rng.below(7) {
        0 => Op::Lifting(Lifting::Share),
        1 => Op::Lifting(Lifting::Turn),
        2 => Op::Lifting(of_terms),
        3 => Op::Truncation(Truncation::Hide { by }),
        4 => Op::Truncation(Truncation::Take { by }),
        5 => Op::Truncation(Truncation::Answer { by }),
        _ => Op::Truncation(Truncation::Settle { by }),
    }
}
