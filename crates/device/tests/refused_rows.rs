//! Steps of proofs over rows that move, whose spans are not those that they need.

use veil_device::proof::rows::PRODUCTS;
use veil_device::proof::{SEED, length};
use veil_device::{
    ColumnType, Command, KeyId, Layout, Op, Proof, Region, Residency, RowStep, Span, Tag,
};
use veil_math::Ring;
use veil_session::Frame;

use crate::refused::each;

const ROWS: u32 = 70;

fn region(residency: Residency, column: ColumnType, count: u32) -> Region {
    Region {
        residency,
        column,
        components: 1,
        count,
    }
}

/// Two columns of words, one of bits, a permutation, elements, a vector.
fn layout() -> Layout {
    let element = ColumnType::One(Ring::Z64);
    Layout {
        chunk_rows: ROWS,
        regions: vec![
            region(Residency::Mapped, ColumnType::Words(8), 2),
            region(Residency::Mapped, ColumnType::Rows(Ring::Bits), 1),
            region(Residency::Mapped, ColumnType::Rows(Ring::Z32), 1),
            region(Residency::Mapped, element, 10),
            region(
                Residency::Resident,
                element,
                length(PRODUCTS, ROWS, 3) as u32,
            ),
        ],
    }
}

#[test]
fn spans_that_do_not_fit_are_refused() {
    let layout = layout();
    let span = |region, first, count| Span {
        region,
        component: 0,
        first,
        count,
    };
    let (column, bits, factor) = (span(0, 0, 1), span(1, 0, 1), span(2, 0, 1));
    let (seed, claim) = (span(3, 0, SEED), span(3, SEED, 1));
    let vector = layout.all(4, 0);
    let short = Span {
        count: vector.count - 1,
        ..vector
    };
    let hashes = |place| RowStep::Hashes { word: 5, place };
    let weights = |place| RowStep::Weights { place, back: true };
    let claims = |place| RowStep::Claim {
        word: 5,
        place,
        first: false,
    };
    let cases = [
        (hashes(0), vec![seed, column], vec![vector], true),
        (hashes(1), vec![seed, column], vec![vector], true),
        (hashes(2), vec![seed, column], vec![vector], false),
        (hashes(1), vec![seed, column], vec![short], false),
        (hashes(0), vec![seed, span(0, 0, 2)], vec![vector], false),
        (hashes(0), vec![seed, bits], vec![vector], false),
        (hashes(0), vec![seed, factor], vec![vector], false),
        (hashes(0), vec![claim, column], vec![vector], false),
        (hashes(0), vec![column, column], vec![vector], false),
        (hashes(0), vec![seed], vec![vector], false),
        (hashes(0), vec![seed, column, column], vec![vector], false),
        (hashes(0), vec![seed, column], vec![], false),
        (weights(0), vec![seed, factor], vec![vector], true),
        (weights(1), vec![seed, factor], vec![vector], true),
        (weights(2), vec![seed, factor], vec![vector], false),
        (weights(0), vec![seed, column], vec![vector], false),
        (weights(0), vec![seed, factor], vec![short], false),
        (weights(0), vec![seed, factor], vec![column], false),
        (claims(1), vec![seed, column], vec![claim], true),
        (claims(2), vec![seed, column], vec![claim], false),
        (claims(0), vec![seed, column], vec![vector], false),
        (claims(0), vec![seed, column], vec![span(3, 1, 1)], false),
        (claims(0), vec![seed, factor], vec![claim], false),
    ];
    each(|device| {
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: ROWS,
        };
        let workspace = device.open(&layout, frame).unwrap();
        let entries: Vec<u8> = (0..ROWS).flat_map(u32::to_le_bytes).collect();
        device.write(workspace, factor, &entries).unwrap();
        device
            .load_key(KeyId(0), &veil_session::Secret::new([7; 16]))
            .unwrap();
        for (k, (step, src, dst, fits)) in cases.iter().enumerate() {
            let op = Op::Proof(Proof::Rows(*step));
            let command = Command::new(op, src.clone(), dst.clone());
            let done = device.submit(workspace, &[command], Tag(k as u64));
            assert_eq!(done.is_ok(), *fits, "{} case {k}: {done:?}", device.name());
            if let Err(fault) = done {
                assert!(fault.to_string().contains("step of a proof"), "{fault}");
            }
        }
    });
}
