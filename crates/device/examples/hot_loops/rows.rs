//! Steps of proofs over rows that move.

use veil_device::proof::rows::PRODUCTS;
use veil_device::proof::{SEED, length};
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Isa, KeyId, Layout, Op, PrfCall, Proof, Region,
    Residency, RowStep, Span,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::submit;

/// Every step but that of weights, which follow a permutation through memory, by its name.
pub(super) fn steps() -> Vec<(&'static str, RowStep)> {
    let (word, place) = (1, 0);
    vec![
        ("rows_hashes", RowStep::Hashes { word, place }),
        (
            "rows_claim",
            RowStep::Claim {
                word,
                place,
                first: true,
            },
        ),
    ]
}

/// Runs a step on a column of words and a seed of a key.
pub(super) fn run(isa: Isa, rows: u32, (step, times): (RowStep, u64), seed: u8) {
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
    let element = ColumnType::One(Ring::Z64);
    let column = add(Residency::Mapped, ColumnType::Words(16), 1);
    let elements = add(Residency::Mapped, element, SEED + 1);
    let vector = add(
        Residency::Resident,
        element,
        length(PRODUCTS, rows, 3) as u32,
    );
    let told = Span {
        count: SEED,
        ..elements
    };
    let claim = Span {
        first: SEED,
        count: 1,
        ..elements
    };
    let to = match step {
        RowStep::Hashes { .. } | RowStep::Weights { .. } => vector,
        RowStep::Claim { .. } => claim,
    };
    let command = Command::new(Op::Proof(Proof::Rows(step)), vec![told, column], vec![to]);
    let mut device = Cpu::with(isa);
    let key = Secret::new([4 * seed; 16]);
    device.load_key(KeyId(0), &key).expect("a key");
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).expect("a small workspace");
    let fill: Vec<Command> = (0..)
        .zip([column, elements])
        .map(|(k, to)| {
            let mut command = Command::new(Op::Random, vec![], vec![to]);
            command.calls = vec![PrfCall {
                key: KeyId(0),
                tag: DomainTag(0x0100),
                first: k << 32,
            }];
            command
        })
        .collect();
    submit(&mut device, workspace, &fill);
    for _ in 0..times {
        submit(&mut device, workspace, std::slice::from_ref(&command));
    }
    device.close(workspace);
}
