//! A program of many levels in many rows: all blocks of a GPU meet as often as it has levels, which the suite of devices, with its few rows, does not
//! ask for.

use veil_device::{
    ColumnType, Command, Device, Dst, Fault, Instr, Op, Program, Region, Residency, Src,
};
use veil_math::Ring;

use super::linear;

/// No multiple of a warp or of a column, and more rows than a chunk of the planner has.
const ROWS: u32 = 70_001;
const LEVELS: u32 = 200;
/// Instructions of a level.
const WIDTH: u32 = 5;

/// Values that each level makes of those of the level before: neighbours are added and subtracted, and one is multiplied, so that every value depends on
/// all of some levels before.
fn program(ring: Ring) -> Program {
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
    linear::program(ring, LEVELS * WIDTH, code)
}

/// What a device makes of it.
pub(crate) fn run(device: &mut dyn Device, ring: Ring) -> Result<Vec<u8>, Fault> {
    let mut layout = linear::layout(ring, ROWS, 2 * WIDTH, WIDTH);
    let given = layout.add(Region {
        residency: Residency::Mapped,
        column: ColumnType::Rows(ring),
        components: 2,
        count: WIDTH,
    });
    linear::run(
        device,
        &layout,
        program(ring),
        WIDTH,
        |device, workspace| {
            let mut commands = Vec::new();
            for part in 0..2 {
                let from = layout.all(given, part);
                let some = |k: u64| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ part;
                let bytes: Vec<u8> = (0..layout.bytes(from, ROWS)).map(some).collect();
                device.write(workspace, from, &bytes)?;
                let copy = Op::Combine { ring, minus: 0 };
                let to = linear::slots(part, 0, WIDTH);
                commands.push(Command::new(copy, vec![from], vec![to]));
            }
            Ok(commands)
        },
    )
}
