//! A program of many levels in many rows: all blocks of a GPU meet as often as it has levels, which the suite of devices, with its few rows, does not
//! ask for.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Device, Dst, Fault, Frame, Instr, Layout, Op, Outcome, Program, Region,
    Residency, Src, Tag, completion,
};
use veil_math::Ring;

/// No multiple of a warp or of a column, and more rows than a chunk of the planner has.
const ROWS: u32 = 70_001;
const LEVELS: u32 = 200;
/// Instructions of a level.
const WIDTH: u32 = 5;

/// Values that each level makes of those of the level before: neighbours are added and subtracted, and one is multiplied, so that every value depends on
/// all of some levels before.
fn program(ring: Ring, slots: u16) -> Program {
    let mut code = Vec::new();
    let source = |level: u32, k: u32| match level {
        0 => Src::Slot(k % WIDTH),
        _ => Src::Temp((level - 1) * WIDTH + k % WIDTH),
    };
    for level in 0..LEVELS {
        for k in 0..WIDTH {
            let to = if level + 1 == LEVELS {
                Dst::Slot(WIDTH + k)
            } else {
                Dst::Temp(level * WIDTH + k)
            };
            let (a, b) = (source(level, k), source(level, k + 1));
            code.push(match (k, level % 3) {
                (0, 0) => Instr::Times(a, 0x1234_5677, to),
                (0, _) => Instr::Plus(a, 0x0fed_cba9, to),
                (1 | 3, _) => Instr::Sub(a, b, to),
                _ => Instr::Add(a, b, to),
            });
        }
    }
    Program {
        ring,
        slots,
        job_wide: slots + 1,
        sums: slots + 2,
        temps: LEVELS * WIDTH,
        pairs: vec![],
        code,
    }
}

/// What a device makes of it.
pub(crate) fn run(device: &mut dyn Device, ring: Ring) -> Result<Vec<u8>, Fault> {
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
    let from = add(Residency::Mapped, rows, WIDTH);
    let slots = add(Residency::Resident, rows, 2 * WIDTH);
    add(Residency::Mapped, one, 1);
    add(Residency::Mapped, one, 1);
    let to = add(Residency::Public, rows, WIDTH);
    let program = device.load(&Arc::new(program(ring, slots)), &layout)?;
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: ROWS,
    };
    let workspace = device.open(&layout, frame)?;
    let mut commands = Vec::new();
    let copy = |from, to| Command::new(Op::Combine { ring, minus: 0 }, vec![from], vec![to]);
    let slot = |part, first| veil_device::Span {
        first,
        count: WIDTH,
        ..layout.all(slots, part)
    };
    for part in 0..2 {
        let bytes = layout.bytes(layout.all(from, part), ROWS);
        let some = |k: u64| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ part;
        let bytes: Vec<u8> = (0..bytes).map(some).collect();
        device.write(workspace, layout.all(from, part), &bytes)?;
        commands.push(copy(layout.all(from, part), slot(part, 0)));
    }
    let mut linear = Command::new(Op::Linear, vec![], vec![]);
    linear.program = Some(program);
    commands.push(linear);
    for part in 0..2 {
        commands.push(copy(slot(part, WIDTH), layout.all(to, part)));
    }
    device.submit(workspace, &commands, Tag(1))?;
    assert_eq!(completion(device)?.outcome, Outcome::Done);
    let seen = [0, 1].map(|part| {
        device
            .view(workspace, layout.all(to, part))
            .map(<[u8]>::to_vec)
    });
    let [a, b] = seen;
    device.close(workspace);
    Ok([a?, b?].concat())
}
