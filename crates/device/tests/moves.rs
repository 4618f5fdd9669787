//! Moves of rows: what fits no workspace is refused with its reason, and a record of moves is played on every device.

use veil_device::record::{Recording, Tape, fuzz_record, replay};
use veil_device::{
    ColumnType, Command, Cpu, Device, Fault, Frame, Isa, KeyId, Layout, Op, Outcome, PrfCall,
    Reference, Region, Residency, Span, Tag, completion,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

const ROWS: u32 = 1030;

/// Columns of 32 bits, of 64 bits, of words of 2 and of 3 bytes, of bits; one of 32 bits that stays, words of a plane, and integers of one.
const NARROW: u16 = 0;
const WIDE: u16 = 1;
const WORDS: u16 = 2;
const STRANGE: u16 = 3;
const BITS: u16 = 4;
const KEPT: u16 = 5;
const WORDS_OF_PLANE: u16 = 6;
const PLANE: u16 = 7;

fn layout(strange: bool) -> Layout {
    let region = |residency, column| Region {
        residency,
        column,
        components: 1,
        count: 4,
    };
    let mapped = |column| region(Residency::Mapped, column);
    let odd = ColumnType::Words(if strange { 3 } else { 16 });
    let residency = if strange {
        Residency::Plane
    } else {
        Residency::Public
    };
    Layout {
        chunk_rows: ROWS,
        regions: vec![
            mapped(ColumnType::Rows(Ring::Z32)),
            mapped(ColumnType::Rows(Ring::Z64)),
            mapped(ColumnType::Words(2)),
            mapped(odd),
            mapped(ColumnType::Rows(Ring::Bits)),
            region(Residency::Resident, ColumnType::Rows(Ring::Z32)),
            region(residency, ColumnType::Words(4)),
            region(Residency::Plane, ColumnType::Rows(Ring::Z64)),
        ],
    }
}

fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

fn one(region: u16, first: u32) -> Span {
    span(region, first, 1)
}

fn called(op: Op, src: Vec<Span>, to: Span, calls: u64) -> Command {
    let mut command = Command::new(op, src, vec![to]);
    command.calls = (0..calls)
        .map(|k| PrfCall {
            key: KeyId(0),
            tag: DomainTag::move3(0),
            first: k << 32,
        })
        .collect();
    command
}

fn permute(src: Vec<Span>, to: Span) -> Command {
    Command::new(Op::Permute { back: false }, src, vec![to])
}

fn sum(ring: Ring, src: Vec<Span>, to: Span, calls: u64) -> Command {
    called(Op::Combine { ring, minus: 0 }, src, to, calls)
}

fn invert(from: Span, to: Span) -> Command {
    Command::new(Op::Invert, vec![from], vec![to])
}

#[test]
fn what_fits_no_move_is_refused_with_its_reason() {
    const DRAWN: &str = "one draw, and one item of integers modulo 2^32, are needed";
    const BY: &str =
        "one or two permutations, of one item of integers modulo 2^32 each, are needed";
    const ROWS_AND: &str = "rows, one or two permutations, and one destination are needed";
    const SAME: &str = "as many items of integers or words, of one type, are needed";
    const OVERLAP: &str = "the destination overlaps a source";
    const INVERTED: &str = "permutations, of one item of integers modulo 2^32 each, are needed";
    const ADDED: &str = "draws are added to integers or words, in rows that are no plane's";
    const SIZES: &str = "words of 1, 2, 4, 8 or 16 bytes, in no plane, are needed";
    let p = one(NARROW, 0);
    let (bits, z64) = (Ring::Bits, Ring::Z64);
    let cases = [
        (called(Op::Permutation, vec![], one(WIDE, 0), 1), DRAWN),
        (
            called(Op::Permutation, vec![], span(NARROW, 0, 2), 1),
            DRAWN,
        ),
        (called(Op::Permutation, vec![], p, 0), DRAWN),
        (called(Op::Permutation, vec![p], one(NARROW, 1), 1), DRAWN),
        (permute(vec![one(WIDE, 0)], one(WIDE, 1)), BY),
        (permute(vec![one(WIDE, 0), p, p, p], one(WIDE, 1)), BY),
        (permute(vec![one(WIDE, 0), one(WIDE, 2)], one(WIDE, 1)), BY),
        (
            permute(vec![one(WIDE, 0), span(NARROW, 0, 2)], one(WIDE, 1)),
            BY,
        ),
        (permute(vec![], one(WIDE, 1)), ROWS_AND),
        (permute(vec![one(WIDE, 0), p], one(WORDS, 1)), SAME),
        (permute(vec![span(WIDE, 0, 2), p], one(WIDE, 3)), SAME),
        (permute(vec![one(BITS, 0), p], one(BITS, 1)), SAME),
        (permute(vec![one(STRANGE, 0), p], one(STRANGE, 1)), SIZES),
        (
            permute(vec![one(WORDS_OF_PLANE, 0), p], one(WORDS_OF_PLANE, 1)),
            SIZES,
        ),
        (
            permute(vec![span(WIDE, 0, 2), p], span(WIDE, 1, 2)),
            OVERLAP,
        ),
        (permute(vec![one(NARROW, 1), p], p), OVERLAP),
        (invert(one(WIDE, 0), p), INVERTED),
        (invert(span(NARROW, 0, 2), one(NARROW, 3)), INVERTED),
        (invert(p, p), OVERLAP),
        (
            invert(one(KEPT, 0), p),
            "what is inverted is what the host reaches",
        ),
        (sum(bits, vec![], one(BITS, 0), 1), ADDED),
        (sum(z64, vec![], one(PLANE, 0), 1), ADDED),
        (sum(z64, vec![one(PLANE, 0)], one(WIDE, 0), 1), ADDED),
        (sum(bits, vec![one(STRANGE, 0)], one(STRANGE, 1), 0), SIZES),
        (sum(bits, vec![], one(WORDS_OF_PLANE, 0), 0), SIZES),
        (called(Op::Random, vec![], one(STRANGE, 0), 1), SIZES),
        (
            sum(z64, vec![one(WIDE, 0); 31], one(WIDE, 1), 2),
            "more sources and draws than there are signs",
        ),
        (
            sum(z64, vec![one(WORDS, 0)], one(WORDS, 1), 0),
            "sources and destination differ in length",
        ),
    ];
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: 7,
    };
    let devices: [Box<dyn Device>; 2] = [Box::new(Reference::default()), Box::new(Cpu::detect())];
    for mut device in devices {
        device.load_key(KeyId(0), &Secret::new([3; 16])).unwrap();
        let workspace = device.open(&layout(true), frame).unwrap();
        for (command, what) in &cases {
            let refused = device.submit(workspace, std::slice::from_ref(command), Tag(0));
            let what = *what;
            assert_eq!(
                refused,
                Err(Fault::Shape { command: 0, what }),
                "{command:?}"
            );
        }
    }
}

/// What a recorder writes of moves is played by every device, and is no danger when it is changed.
#[test]
fn a_record_of_moves_is_played_on_every_device() {
    let frame = Frame {
        epoch: 0,
        lane: 3,
        chunk: 5,
        rows: 40,
    };
    let tape = Tape::memory();
    let mut device = Recording::new(Box::new(Cpu::detect()), tape.clone());
    let layout = layout(false);
    device.load_key(KeyId(0), &Secret::new([3; 16])).unwrap();
    let workspace = device.open(&layout, frame).unwrap();
    let (p, back) = (one(NARROW, 0), Op::Permute { back: true });
    let batch = [
        called(Op::Permutation, vec![], p, 1),
        called(Op::Random, vec![], span(WORDS, 0, 2), 1),
        called(
            Op::Combine {
                ring: Ring::Z64,
                minus: 2,
            },
            vec![],
            one(WIDE, 0),
            2,
        ),
        permute(vec![span(WORDS, 0, 2), p], span(WORDS, 2, 2)),
        permute(vec![one(WIDE, 0), p, p], one(WIDE, 1)),
        Command::new(back, vec![one(WIDE, 1), p], vec![one(WIDE, 2)]),
        invert(p, one(NARROW, 1)),
    ];
    // Tuples are used once, as the reference sees to.
    let mut batch = batch.to_vec();
    for (command, tag) in batch.iter_mut().zip(0..) {
        command.calls.iter_mut().for_each(|call| call.tag.0 += tag);
    }
    device.submit(workspace, &batch, Tag(1)).unwrap();
    assert_eq!(completion(&mut device).unwrap().outcome, Outcome::Done);
    for region in [NARROW, WIDE, WORDS] {
        device.view(workspace, layout.all(region, 0)).unwrap();
    }
    // Zeros are no permutation.
    device
        .submit(workspace, &[invert(one(NARROW, 2), one(NARROW, 3))], Tag(2))
        .unwrap();
    let ended = completion(&mut device).unwrap().outcome;
    assert_eq!(ended, Outcome::Mismatch { command: 0 });
    device.wipe();
    let record = tape.finish().unwrap();
    replay(&record[..], &mut Reference::default()).unwrap();
    for isa in Isa::available() {
        let played = replay(&record[..], &mut Cpu::with(isa)).unwrap();
        assert_eq!(played.commands, batch.len() as u64 + 1);
    }
    assert!(fuzz_record(&record));
    for at in (0..record.len()).step_by(3) {
        let mut changed = record.clone();
        changed[at] ^= 1 << (at % 8);
        fuzz_record(&changed);
    }
}
