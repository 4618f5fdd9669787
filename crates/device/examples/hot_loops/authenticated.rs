//! Steps of authenticated garbling.

use std::sync::Arc;

use veil_device::ag::{Ag, One, Role};
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Instr, Isa, KeyId, Layout, Op, PrfCall, Program,
    Region, Residency, Span, Src,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::{OFFSET, WIRES, submit};

/// The key of draws, and of start points.
const START: KeyId = KeyId(0);

/// Every step, by its name; a step with a program has a product for each wire.
pub(super) fn steps() -> Vec<(&'static str, Ag)> {
    let (offset, role) = (OFFSET, Role::Garbler);
    let (key, products) = (Some(offset), WIRES);
    let masks = |one| Ag::Masks {
        part: 0,
        at: 0,
        one,
    };
    vec![
        ("ag_pin", Ag::Pin { bit: 0 }),
        ("ag_expand", Ag::Expand),
        ("ag_bits", Ag::Bits { bit: 1 }),
        ("ag_offer", Ag::Offer { offset, role }),
        ("ag_take", Ag::Take { offset, role }),
        ("ag_settle", Ag::Settle { offset, role }),
        ("ag_fold", Ag::Fold { offset: None }),
        ("ag_fold_keys", Ag::Fold { offset: key }),
        ("ag_expect", Ag::Expect { offset }),
        ("ag_rotate", Ag::Rotate { layer: 1 }),
        ("ag_absorb", Ag::Absorb),
        ("ag_spend", Ag::Spend { offset, role }),
        (
            "ag_gates",
            Ag::Gates {
                offset: None,
                products,
            },
        ),
        (
            "ag_gates_keys",
            Ag::Gates {
                offset: key,
                products,
            },
        ),
        ("ag_masks", masks(One::Offset(offset))),
        ("ag_garble", Ag::Garble { at: 0, offset }),
        ("ag_evaluate", Ag::Evaluate { at: 0 }),
    ]
}

/// Runs a step on arrays of a block for each row of each wire, bits, labels, keys and an offset of a seed.
pub(super) fn run(isa: Isa, rows: u32, (step, times): (Ag, u64), seed: u8) {
    let mut layout = Layout {
        chunk_rows: rows,
        regions: vec![],
    };
    let mut add = |residency, column, count| {
        layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        })
    };
    let blocks = WIRES * rows;
    let (mapped, resident) = (Residency::Mapped, Residency::Resident);
    let slots = add(resident, ColumnType::Labels, 3 * WIRES);
    let job_wide = add(mapped, ColumnType::Label, 1);
    let arrays = add(resident, ColumnType::Bytes(16 * blocks), 12);
    let bits = add(mapped, ColumnType::Bytes(blocks.div_ceil(8)), 8);
    let tables = add(mapped, ColumnType::Labels, 2 * WIRES);
    let digest = add(mapped, ColumnType::Bytes(32), 1);
    let fold = add(mapped, ColumnType::Bytes(16), 3);
    let of = &layout;
    let all = |region| of.all(region, 0);
    let some = |region, from: std::ops::Range<u32>| -> Vec<Span> {
        let column = |first| Span {
            first,
            count: 1,
            ..of.all(region, 0)
        };
        from.map(column).collect()
    };
    let (of_arrays, of_bits) = (|from| some(arrays, from), |from| some(bits, from));
    let of_folds = |from| some(fold, from);
    let (digest, tables) = (all(digest), all(tables));
    let (src, dst) = match step {
        Ag::Pin { .. } => ([of_arrays(0..1), of_bits(0..1)].concat(), of_arrays(1..2)),
        Ag::Expand => (of_bits(0..1), of_arrays(0..1)),
        Ag::Bits { .. } => (of_arrays(0..2), of_bits(0..1)),
        Ag::Offer { .. } => (of_arrays(0..3), of_arrays(7..8)),
        Ag::Take { .. } => (of_arrays(0..7), [of_arrays(7..8), of_bits(0..1)].concat()),
        Ag::Settle { .. } => (of_bits(0..2), of_arrays(0..2)),
        Ag::Fold { offset: None } => ([vec![digest], of_arrays(0..1)].concat(), of_folds(0..1)),
        Ag::Fold { .. } => (
            [vec![digest], of_bits(0..1), of_arrays(0..1)].concat(),
            of_folds(0..1),
        ),
        Ag::Expect { .. } => (of_folds(1..3), of_folds(0..1)),
        Ag::Rotate { .. } => ([vec![digest], of_arrays(0..1)].concat(), of_arrays(1..2)),
        Ag::Absorb => ([of_bits(0..2), of_arrays(0..4)].concat(), of_arrays(4..8)),
        Ag::Spend { .. } => ([of_bits(0..4), of_arrays(0..8)].concat(), of_arrays(8..10)),
        Ag::Gates { offset: None, .. } => {
            ([of_bits(0..2), of_arrays(0..3)].concat(), of_arrays(6..7))
        }
        Ag::Gates { .. } => ([of_bits(0..3), of_arrays(0..6)].concat(), of_arrays(6..7)),
        Ag::Masks { .. } => (of_arrays(0..1), of_arrays(1..3)),
        Ag::Garble { .. } => (
            of_arrays(0..6),
            [vec![tables], of_bits(0..1), of_arrays(6..7)].concat(),
        ),
        Ag::Evaluate { .. } => (
            [vec![tables], of_bits(0..1), of_arrays(0..3)].concat(),
            [of_arrays(6..7), of_bits(1..4)].concat(),
        ),
    };
    let mut command = Command::new(Op::Ag(step), src, dst);
    let mut device = Cpu::with(isa);
    // Bits 0 and 1 of the offset are 1.
    for (id, byte) in [(START, 4 * seed), (OFFSET, 3 | (4 * seed))] {
        let key = Secret::new([byte; 16]);
        device.load_key(id, &key).expect("a key");
    }
    let program = Arc::new(Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums: job_wide,
        temps: 0,
        pairs: (0..WIRES)
            .map(|k| (Src::Slot(k), Src::Slot(WIRES + k)))
            .collect(),
        code: (0..WIRES)
            .map(|k| Instr::Product {
                pairs: k..k + 1,
                out: 2 * WIRES + k,
                index: k,
            })
            .collect(),
    });
    let id = device.load(&program, &layout).expect("a program that fits");
    if let Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } = step {
        command.program = Some(id);
    }
    let call = |tag, first| PrfCall {
        key: START,
        tag,
        first,
    };
    command.calls = match step {
        Ag::Offer { .. } | Ag::Take { .. } => vec![call(DomainTag::AG_LEAKY, 0)],
        Ag::Garble { .. } | Ag::Evaluate { .. } => vec![call(DomainTag::GARBLE, 0)],
        _ => vec![],
    };
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).expect("a small workspace");
    // All know the digest, and what follows from it: the shift of a rotation.
    device
        .write(workspace, digest, &[0x5a; 32])
        .expect("it is mapped");
    let filled = [slots, arrays, bits].map(|region| layout.all(region, 0));
    let fill: Vec<Command> = (0..)
        .zip(filled.into_iter().chain([tables]))
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
