//! A workspace in which one program without products runs, and columns that are read behind it. Everything has two components.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Device, Fault, Frame, Instr, Layout, Op, Outcome, Program, Region,
    Residency, Span, Tag, Workspace, completion,
};
use veil_math::Ring;

/// Parts of a share.
const PARTS: u8 = 2;
/// Regions of every layout: slots, job-wide values, sums, and what is read.
const SLOTS: u16 = 0;
const JOB_WIDE: u16 = 1;
const SUMS: u16 = 2;
const READ: u16 = 3;

/// A layout with so many slots, and columns that are read.
pub(crate) fn layout(ring: Ring, rows: u32, slots: u32, read: u32) -> Layout {
    let region = |residency, column, count| Region {
        residency,
        column,
        components: PARTS,
        count,
    };
    let (many, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    Layout {
        chunk_rows: rows,
        regions: vec![
            region(Residency::Resident, many, slots),
            region(Residency::Mapped, one, 1),
            region(Residency::Mapped, one, 1),
            region(Residency::Public, many, read),
        ],
    }
}

/// A component of slots.
pub(crate) fn slots(part: u8, first: u32, count: u32) -> Span {
    Span {
        region: SLOTS,
        component: part,
        first,
        count,
    }
}

/// A program of it.
pub(crate) fn program(ring: Ring, temps: u32, code: Vec<Instr>) -> Program {
    Program {
        ring,
        slots: SLOTS,
        job_wide: JOB_WIDE,
        sums: SUMS,
        temps,
        pairs: vec![],
        code,
    }
}

/// Runs a program in all rows of a workspace, behind commands that `prepare` gives: what is then in the slots from `first` on, as many as are read.
pub(crate) fn run(
    device: &mut dyn Device,
    layout: &Layout,
    program: Program,
    first: u32,
    prepare: impl FnOnce(&mut dyn Device, Workspace) -> Result<Vec<Command>, Fault>,
) -> Result<Vec<u8>, Fault> {
    let ring = program.ring;
    let program = device.load(&Arc::new(program), layout)?;
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: layout.chunk_rows,
    };
    let workspace = device.open(layout, frame)?;
    let mut commands = prepare(device, workspace)?;
    let mut linear = Command::new(Op::Linear, vec![], vec![]);
    linear.program = Some(program);
    commands.push(linear);
    for part in 0..PARTS {
        let to = layout.all(READ, part);
        let copy = Op::Combine { ring, minus: 0 };
        let from = slots(part, first, to.count);
        commands.push(Command::new(copy, vec![from], vec![to]));
    }
    device.submit(workspace, &commands, Tag(1))?;
    assert_eq!(completion(device)?.outcome, Outcome::Done);
    let mut seen = Vec::new();
    for part in 0..PARTS {
        seen.extend_from_slice(device.view(workspace, layout.all(READ, part))?);
    }
    device.close(workspace);
    Ok(seen)
}
