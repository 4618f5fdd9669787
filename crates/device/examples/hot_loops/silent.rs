//! Steps of silent transfers.

use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Isa, KeyId, Layout, Lpn, Op, PrfCall, Region,
    Residency, Silent, Span,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::{OFFSET, submit};

/// The key of draws, start points, roots and rows.
const START: KeyId = KeyId(0);

/// Small enough for the second cache level.
const SET: Lpn = Lpn::of(64, 10, 8);
const BLOCKS: Lpn = Lpn::over_blocks(64, 10, 8);

/// Outputs of a row.
pub(super) const ITEMS: u32 = 16;

/// Every step, by its name; a workspace has [`ITEMS`] rows' outputs.
pub(super) fn steps() -> Vec<(&'static str, Silent)> {
    let (set, offset, first) = (SET, OFFSET, 0);
    vec![
        ("silent_grow", Silent::Grow { set, offset }),
        ("silent_puncture", Silent::Puncture { set }),
        ("silent_ask", Silent::Ask { set }),
        ("silent_answer", Silent::Answer { set, offset }),
        ("silent_rows", Silent::Rows { set }),
        ("silent_choose", Silent::Choose { first }),
        ("silent_turn", Silent::Turn { first, offset }),
        ("silent_pack", Silent::Pack),
        (
            "silent_take",
            Silent::Take {
                first,
                at: 0,
                count: 128,
            },
        ),
        ("silent_give", Silent::Give { set: BLOCKS }),
        ("silent_fill", Silent::Fill { set: BLOCKS }),
        ("silent_blocks", Silent::Rows { set: BLOCKS }),
    ]
}

/// Runs a step on a base, leaves, sums, bits and an offset of a seed.
pub(super) fn run(isa: Isa, rows: u32, (step, times): (Silent, u64), seed: u8) {
    let mut layout = Layout {
        chunk_rows: rows,
        regions: vec![],
    };
    let mut add = |residency, column, count| {
        let region = layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        });
        layout.all(region, 0)
    };
    let (mapped, resident) = (Residency::Mapped, Residency::Resident);
    let block = ColumnType::Bytes(16);
    let base = add(resident, SET.column(), SET.base_columns());
    let leaves = add(resident, SET.column(), SET.trees);
    let sums = add(mapped, block, SET.trees * u32::from(SET.height));
    let challenge = add(mapped, block, 1);
    let said = [(); 2].map(|()| add(mapped, block, 1));
    let bits = [(); 2].map(|()| add(mapped, ColumnType::Rows(Ring::Bits), ITEMS));
    let labels = add(resident, ColumnType::Labels, ITEMS);
    let bases = [(); 2].map(|()| add(resident, block, BLOCKS.base_columns()));
    let entries = [(); 2].map(|()| add(resident, block, BLOCKS.outputs() as u32));
    let empty = |of: Span| Span { count: 0, ..of };
    let given = Span {
        count: SET.trees,
        ..sums
    };
    let a = Span {
        count: SET.trees - 3,
        ..leaves
    };
    let b = Span {
        first: a.count,
        count: 3,
        ..leaves
    };
    let (src, dst) = match step {
        Silent::Grow { .. } => (vec![base], vec![a, b, sums]),
        Silent::Puncture { .. } => (vec![base, sums], vec![a, b]),
        Silent::Ask { .. } => (vec![a, b, base, challenge], said.to_vec()),
        Silent::Answer { .. } => (vec![a, b, base, challenge, said[0]], vec![said[1]]),
        Silent::Rows { set } if set == BLOCKS => (
            bases.to_vec(),
            vec![entries[0], empty(entries[0]), entries[1], empty(entries[1])],
        ),
        Silent::Rows { .. } => (vec![base], vec![a, b]),
        Silent::Choose { .. } => (vec![leaves, bits[0]], vec![bits[1], labels]),
        Silent::Turn { .. } => (vec![leaves, bits[0]], vec![labels]),
        Silent::Take { .. } => (
            vec![leaves],
            vec![Span {
                count: 128,
                ..entries[0]
            }],
        ),
        Silent::Pack => {
            let [a, c] = entries.map(|of| Span { count: 128, ..of });
            (vec![leaves], vec![a, c])
        }
        Silent::Give { .. } => (vec![bases[0]], vec![entries[0], empty(entries[0]), given]),
        Silent::Fill { .. } => (
            vec![leaves, given, bases[0], bases[1]],
            vec![entries[0], empty(entries[0]), entries[1], empty(entries[1])],
        ),
    };
    let mut command = Command::new(Op::Silent(step), src, dst);
    let call = |tag, first| PrfCall {
        key: START,
        tag,
        first,
    };
    let starts = call(DomainTag::OT_TREE, 0);
    command.calls = match step {
        Silent::Grow { .. } => vec![starts, call(DomainTag::OT_ROOT, 0)],
        Silent::Puncture { .. } | Silent::Give { .. } | Silent::Fill { .. } => vec![starts],
        Silent::Rows { .. } => vec![call(DomainTag::OT_ROWS, 0)],
        _ => vec![],
    };
    let mut device = Cpu::with(isa);
    for (id, byte) in [(START, 4 * seed), (OFFSET, 1 | (4 * seed))] {
        let key = Secret::new([byte; 16]);
        device.load_key(id, &key).expect("a key");
    }
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).expect("a small workspace");
    let fill: Vec<Command> = (0..)
        .zip([
            base, leaves, sums, said[0], bits[0], bases[0], bases[1], entries[0],
        ])
        .map(|(k, to)| {
            let mut command = Command::new(Op::Random, vec![], vec![to]);
            command.calls = vec![call(DomainTag(0x0100), k << 32)];
            command
        })
        .collect();
    submit(&mut device, workspace, &fill);
    for _ in 0..times {
        submit(&mut device, workspace, std::slice::from_ref(&command));
    }
    device.close(workspace);
}
