//! A workspace of more than 2^32 elements, of which the last columns are used: places that need more than 32 bits.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Device, Dst, Fault, Frame, Instr, KeyId, Layout, Op, Outcome, PrfCall,
    Program, Region, Residency, Span, Src, Tag, completion,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

/// As many as the longest chunk has.
const ROWS: u32 = 1 << 20;
/// Columns that are drawn, and as many that are computed of them.
const USED: u32 = 4;

/// What a device makes of the columns behind `before` others: the same, however many those are.
pub(crate) fn run(device: &mut dyn Device, ring: Ring, before: u32) -> Result<Vec<u8>, Fault> {
    let (rows, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    let mut layout = Layout {
        chunk_rows: ROWS,
        regions: vec![],
    };
    let mut add = |residency, column, count| {
        layout.add(Region {
            residency,
            column,
            components: 2,
            count,
        })
    };
    let slots = add(Residency::Resident, rows, before + 2 * USED);
    add(Residency::Mapped, one, 1);
    add(Residency::Mapped, one, 1);
    let to = add(Residency::Public, rows, USED);
    let slot = |k: u32| before + k % (2 * USED);
    let sum = |k: u32| {
        let (a, b) = (slot(k), slot((k + 1) % USED));
        Instr::Add(Src::Slot(a), Src::Slot(b), Dst::Slot(slot(USED + k)))
    };
    let program = Program {
        ring,
        slots,
        job_wide: slots + 1,
        sums: slots + 2,
        temps: 0,
        pairs: vec![],
        code: (0..USED).map(sum).collect(),
    };
    device.load_key(KeyId(1), &Secret::new([9; 16]))?;
    let program = device.load(&Arc::new(program), &layout)?;
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: ROWS,
    };
    let workspace = device.open(&layout, frame)?;
    let used = |part, first| Span {
        first,
        count: USED,
        ..layout.all(slots, part)
    };
    let mut commands = vec![];
    for part in 0..2u8 {
        let mut draw = Command::new(Op::Random, vec![], vec![used(part, before)]);
        draw.calls = vec![PrfCall {
            key: KeyId(1),
            tag: DomainTag::RAND3,
            first: u64::from(part) << 32,
        }];
        commands.push(draw);
    }
    let mut linear = Command::new(Op::Linear, vec![], vec![]);
    linear.program = Some(program);
    commands.push(linear);
    for part in 0..2u8 {
        let copy = Op::Combine { ring, minus: 0 };
        let from = used(part, before + USED);
        commands.push(Command::new(copy, vec![from], vec![layout.all(to, part)]));
    }
    device.submit(workspace, &commands, Tag(1))?;
    assert_eq!(completion(device)?.outcome, Outcome::Done);
    let mut seen = device.view(workspace, layout.all(to, 0))?.to_vec();
    seen.extend_from_slice(device.view(workspace, layout.all(to, 1))?);
    device.close(workspace);
    Ok(seen)
}
