//! Cases about integers: in another ring, and sums of products of replicated values.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, PrfCall, Reference, Residency, Span, Tag,
};

const ITEMS: u32 = 4;
/// Values of rows and of what all rows share, as the host writes them.
const IN: u16 = 0;
const ONES: u16 = 1;
/// Values of rows that it does not reach.
const SLOTS: u16 = 2;
/// Factors, of the ring of the values, or of 64 bits beside 128.
const FACTORS: u16 = 3;
/// The values in the other ring, as many of what all rows share, and sums of products.
const RESIZED: u16 = 4;
const RESIZED_ONES: u16 = 5;
const SUMS: u16 = 6;

fn layout(ring: Ring, other: Ring, chunk_rows: u32) -> Layout {
    // Factors of sums of products.
    let factors = if ring == Ring::Z128 { Ring::Z64 } else { ring };
    let (mapped, resident, public) = (Residency::Mapped, Residency::Resident, Residency::Public);
    regions(
        chunk_rows,
        &[
            (mapped, ColumnType::Rows(ring), 2, ITEMS),
            (mapped, ColumnType::One(ring), 2, ITEMS),
            (resident, ColumnType::Rows(ring), 2, ITEMS),
            (resident, ColumnType::Rows(factors), 2, ITEMS),
            (public, ColumnType::Rows(other), 2, ITEMS),
            (public, ColumnType::One(other), 1, ITEMS),
            (mapped, ColumnType::One(ring), 1, ITEMS),
        ],
    )
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let rings = [[Ring::Z64, Ring::Z128], [Ring::Z128, Ring::Z64]];
    let of = rings[rng.below(2)];
    between(device, rng, case, of)
}

/// The same of Z_2^32 and another ring.
pub(super) fn narrow(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let mut rings = [Ring::Z32, [Ring::Z64, Ring::Z128][rng.below(2)]];
    if rng.below(2) == 0 {
        rings.reverse();
    }
    between(device, rng, case, rings)
}

fn between(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
    [ring, other]: [Ring; 2],
) -> Result<(), Difference> {
    let rows = ROWS[rng.below(ROWS.len())];
    let layout = layout(ring, other, rows + rng.below(3) as u32 * 100);
    let frame = Frame {
        epoch: 0,
        lane: rng.next() as u16,
        chunk: rng.next() as u32,
        rows,
    };
    let mut bytes = |region| -> [Vec<u8>; 2] {
        let length = layout.bytes(layout.all(region, 0), rows) as usize;
        [(); 2].map(|()| rng.bytes(length))
    };
    let written = [(IN, bytes(IN)), (ONES, bytes(ONES))];
    let key = Secret::new(std::array::from_fn(|_| rng.next() as u8));
    let first = rng.next() >> 8;
    let commands = commands(&layout, rng, first);
    let run = |device: &mut dyn Device| -> Result<Seen, Fault> {
        device.bind(SessionId([7; 32]));
        device.load_key(KeyId(0), &key)?;
        let workspace = device.open(&layout, frame)?;
        for (region, components) in &written {
            for (component, bytes) in (0..).zip(components) {
                device.write(workspace, layout.all(*region, component), bytes)?;
            }
        }
        device.submit(workspace, &commands, Tag(1))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        let shown = [
            ("integers in another ring", RESIZED, 2),
            ("shared integers in another ring", RESIZED_ONES, 1),
            ("a sum of products of components", SUMS, 1),
        ];
        for (what, region, components) in shown {
            for component in 0..components {
                let bytes = device.view(workspace, layout.all(region, component))?;
                seen.push((what, bytes.to_vec()));
            }
        }
        device.close(workspace);
        Ok(seen)
    };
    let want = run(&mut Reference::default());
    compare((case, ring, &layout, frame), want, run(device))
}

fn commands(layout: &Layout, rng: &mut SplitMix, first: u64) -> Vec<Command> {
    let ColumnType::Rows(ring) = layout.regions[usize::from(IN)].column else {
        unreachable!("inputs are integers")
    };
    let span = |region, component, first, count| Span {
        region,
        component,
        first,
        count,
    };
    let mut commands = Vec::new();
    for component in 0..2 {
        let copy = Op::Combine { ring, minus: 0 };
        let (from, to) = (layout.all(IN, component), layout.all(SLOTS, component));
        commands.push(Command::new(copy, vec![from], vec![to]));
        let mut factors = Command::new(Op::Random, vec![], vec![layout.all(FACTORS, component)]);
        factors.calls = vec![PrfCall {
            key: KeyId(0),
            tag: [DomainTag::WEIGHT3, DomainTag::SUM_WEIGHT3][usize::from(component)],
            first,
        }];
        commands.push(factors);
    }
    let count = 1 + rng.below(ITEMS as usize) as u32;
    let at = rng.below((ITEMS - count + 1) as usize) as u32;
    let resize = |from, to| Command::new(Op::Resize, vec![from], vec![to]);
    let dot = |src: [Span; 4], to| Command::new(Op::Dot, src.into(), vec![span(SUMS, 0, to, 1)]);
    let [x, y] = [0, 1].map(|component| span(SLOTS, component, at, count));
    let [v, w] = [0, 1].map(|component| span(IN, component, 0, count));
    let [f, g] = [0, 1].map(|component| span(FACTORS, component, 0, count));
    let [r, s] = [0, 1].map(|component| span(ONES, component, at, count));
    commands.extend([
        resize(span(SLOTS, 0, at, count), span(RESIZED, 0, 0, count)),
        resize(span(ONES, 1, at, count), span(RESIZED, 1, 0, count)),
        resize(span(ONES, 0, 0, count), span(RESIZED_ONES, 0, at, count)),
        dot([f, g, x, v], 0),
        // Added to what is there.
        dot([g, f, w, y], 0),
        dot([x, y, v, w], 1),
        dot([x, x, x, x], 2),
        dot([r, s, s, r], 3),
    ]);
    commands
}
