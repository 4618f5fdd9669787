//! Steps of authenticated garbling that fit no workspace, would write what they still read, repeat a tweak or lack a key are refused by every
//! device, with what is wrong.

mod keys;

use std::sync::Arc;

use veil_device::ag::{Ag, One, Role};
use veil_device::{
    ColumnType, Command, Device, Fault, Frame, Instr, KeyId, Layout, Op, Outcome, PrfCall, Program,
    ProgramId, Region, Residency, Span, Src, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use crate::common::devices;

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);

const ROWS: u32 = 11;
const PRODUCTS: u32 = 3;
const PARTS: u8 = 2;

const SLOTS: u16 = 0;
const JOB_WIDE: u16 = 1;
const SUMS: u16 = 2;
const SHARES: u16 = 3;
const SHARE: u16 = 4;
/// As many blocks as the products have, and seven more; their bits.
const ARRAYS: u16 = 5;
const BITS: u16 = 6;
const TABLES: u16 = 7;
const DIGEST: u16 = 8;
const FOLD: u16 = 9;
/// A block and a bit too few; and what is none.
const SHORT: u16 = 10;
const SHORT_BITS: u16 = 11;
const ODD: u16 = 12;
/// Labels where the host does not reach, and their bits.
const LABELS: u16 = 13;
const LABEL_BITS: u16 = 14;

const SPANS: &str = "a step of authenticated garbling whose spans are not those that it needs";
const OUTSIDE: &str = "a span outside its region";

fn blocks(rows: u32) -> u32 {
    PRODUCTS * rows + 7
}

fn layout(rows: u32) -> Layout {
    let bits = ColumnType::Rows(Ring::Bits);
    let (mapped, resident) = (Residency::Mapped, Residency::Resident);
    let region = |residency, column, components, count| Region {
        residency,
        column,
        components,
        count,
    };
    let array = |blocks: u32| ColumnType::Bytes(16 * blocks);
    let packed = |blocks: u32| ColumnType::Bytes(blocks.div_ceil(8));
    let short = PRODUCTS * rows - 1;
    Layout {
        chunk_rows: rows,
        regions: vec![
            region(resident, ColumnType::Labels, PARTS, 3 * PRODUCTS),
            region(mapped, ColumnType::Label, PARTS, 2),
            region(mapped, ColumnType::Label, PARTS, 1),
            region(resident, bits, 1, 3 * PRODUCTS),
            region(mapped, ColumnType::One(Ring::Bits), 1, 2),
            region(mapped, array(blocks(rows)), 1, 16),
            region(mapped, packed(blocks(rows)), 1, 10),
            region(mapped, ColumnType::Labels, 1, 2 * PRODUCTS + 1),
            region(mapped, ColumnType::Bytes(32), 1, 3),
            region(mapped, ColumnType::Bytes(16), 1, 4),
            region(mapped, array(short), 1, 16),
            region(mapped, packed(short), 1, 10),
            region(mapped, ColumnType::Bytes(16 * blocks(rows) - 8), 1, 16),
            region(resident, ColumnType::Labels, 1, 8),
            region(mapped, bits, 1, 8),
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

fn array(k: u32) -> Span {
    span(ARRAYS, k, 1)
}

fn bits(k: u32) -> Span {
    span(BITS, k, 1)
}

/// Programs: over labels, over shares, and over labels with one product.
const OVER_LABELS: ProgramId = ProgramId(0);
const OVER_SHARES: ProgramId = ProgramId(1);
const OF_ONE: ProgramId = ProgramId(2);

fn program([slots, job_wide, sums]: [u16; 3], products: u32) -> Arc<Program> {
    Arc::new(Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums,
        temps: 0,
        pairs: (0..products)
            .map(|k| (Src::Slot(k), Src::Slot(PRODUCTS + k)))
            .collect(),
        code: (0..products)
            .map(|k| Instr::Product {
                pairs: k..k + 1,
                out: 2 * PRODUCTS + k,
                index: k,
            })
            .collect(),
    })
}

/// Keys that no step lacks.
const KEYS: &[(KeyId, u8)] = &[(OFFSET, 0x5b), (START, 0x22)];

/// What a device with these keys makes of commands in a workspace of so many rows, one after the other.
fn told(
    device: &mut dyn Device,
    (rows, keys): (u32, &[(KeyId, u8)]),
    commands: &[Command],
) -> Result<Outcome, Fault> {
    device.wipe();
    device.bind(veil_session::SessionId([0; 32]));
    for (id, byte) in keys {
        device.load_key(*id, &Secret::new([*byte; 16])).unwrap();
    }
    let layout = layout(rows);
    let labels = [SLOTS, JOB_WIDE, SUMS];
    let loaded = [
        (labels, PRODUCTS),
        ([SHARES, SHARE, SHARE], PRODUCTS),
        (labels, 1),
    ];
    let loaded = loaded.map(|(regions, products)| {
        let program = program(regions, products);
        device.load(&program, &layout).unwrap()
    });
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).unwrap();
    let mut told = Ok(Outcome::Done);
    for command in commands {
        let mut command = command.clone();
        let known = |ProgramId(k)| loaded.get(k as usize).copied().unwrap_or(ProgramId(k));
        command.program = command.program.map(known);
        let submitted = device.submit(workspace, &[command], Tag(0));
        told = submitted.and_then(|()| Ok(device.poll()?.unwrap().outcome));
        if told != Ok(Outcome::Done) {
            break;
        }
    }
    device.close(workspace);
    told
}

fn step(step: Ag, src: Vec<Span>, dst: Vec<Span>) -> Command {
    let mut command = Command::new(Op::Ag(step), src, dst);
    let mut call = |tag| {
        command.calls = vec![PrfCall {
            key: START,
            tag,
            first: 7,
        }];
    };
    match step {
        Ag::Offer { .. } | Ag::Take { .. } => call(DomainTag::AG_LEAKY),
        Ag::Garble { .. } | Ag::Evaluate { .. } => call(DomainTag::GARBLE),
        _ => {}
    }
    if let Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } = step {
        command.program = Some(OVER_LABELS);
    }
    command
}

/// Every step, in shapes that fit: no span is there twice.
fn steps() -> Vec<Command> {
    let (offset, role) = (OFFSET, Role::Evaluator);
    let arrays = |from: std::ops::Range<u32>| from.map(array).collect::<Vec<_>>();
    let packed = |from: std::ops::Range<u32>| from.map(bits).collect::<Vec<_>>();
    let (digest, fold) = (span(DIGEST, 0, 1), span(FOLD, 0, 1));
    let tables = span(TABLES, 0, 2 * PRODUCTS);
    let with = |bits: &[Span], arrays: &[Span]| [bits, arrays].concat();
    let (labels, of_labels) = (span(LABELS, 0, 3), span(LABEL_BITS, 0, 3));
    let masks = |one| Ag::Masks {
        part: 1,
        at: 0,
        one,
    };
    let gates = |offset| Ag::Gates {
        offset,
        products: PRODUCTS,
    };
    vec![
        step(Ag::Pin { bit: 0 }, vec![array(0)], vec![array(1)]),
        step(Ag::Pin { bit: 1 }, vec![array(0), bits(0)], vec![array(1)]),
        step(Ag::Expand, vec![bits(0)], vec![array(1)]),
        step(Ag::Expand, vec![of_labels], vec![labels]),
        step(Ag::Bits { bit: 1 }, arrays(0..2), vec![bits(0)]),
        step(Ag::Bits { bit: 0 }, vec![labels], vec![of_labels]),
        step(Ag::Offer { offset, role }, arrays(0..3), vec![array(3)]),
        step(
            Ag::Take { offset, role },
            arrays(0..7),
            vec![array(7), bits(0)],
        ),
        step(Ag::Settle { offset, role }, packed(0..2), arrays(0..2)),
        step(
            Ag::Fold { offset: None },
            with(&[digest], &arrays(0..2)),
            vec![fold],
        ),
        step(
            Ag::Fold {
                offset: Some(offset),
            },
            with(&[digest, bits(0)], &arrays(0..1)),
            vec![fold],
        ),
        step(
            Ag::Expect { offset },
            vec![span(FOLD, 1, 1), span(FOLD, 2, 1)],
            vec![fold],
        ),
        step(
            Ag::Rotate { layer: 1 },
            vec![digest, span(ARRAYS, 0, 4)],
            vec![span(ARRAYS, 4, 4)],
        ),
        step(Ag::Absorb, with(&packed(0..2), &arrays(0..4)), arrays(4..8)),
        step(
            Ag::Spend { offset, role },
            with(&packed(0..4), &arrays(0..8)),
            arrays(8..10),
        ),
        step(
            gates(None),
            with(&packed(0..2), &arrays(0..3)),
            arrays(3..4),
        ),
        step(
            gates(Some(offset)),
            with(&packed(0..3), &arrays(0..6)),
            arrays(6..7),
        ),
        step(masks(One::Nothing), arrays(0..1), arrays(1..3)),
        step(masks(One::Unit), arrays(0..1), arrays(1..3)),
        step(masks(One::Offset(offset)), arrays(0..1), arrays(1..3)),
        step(
            Ag::Garble { at: 0, offset },
            arrays(0..6),
            vec![tables, bits(0), array(6)],
        ),
        step(
            Ag::Evaluate { at: 0 },
            with(&[tables, bits(0)], &arrays(0..3)),
            with(&arrays(3..4), &packed(1..4)),
        ),
    ]
}

fn shape(what: &'static str) -> Result<Outcome, Fault> {
    Err(Fault::Shape { command: 0, what })
}

/// Every device says the same.
fn every_device_says(rows: u32, cases: &[(Command, &'static str)]) {
    for mut device in devices() {
        for (command, what) in cases {
            let told = told(&mut *device, (rows, KEYS), std::slice::from_ref(command));
            assert_eq!(told, shape(what), "{}: {command:?}", device.name());
        }
    }
}

fn every_device_does(commands: &[Command]) {
    for mut device in devices() {
        for command in commands {
            let told = told(&mut *device, (ROWS, KEYS), std::slice::from_ref(command));
            assert_eq!(told, Ok(Outcome::Done), "{}: {command:?}", device.name());
        }
    }
}

#[test]
fn steps_that_fit_are_done() {
    every_device_does(&steps());
}

/// The span at a place among sources, then destinations.
fn at(command: &mut Command, k: usize) -> &mut Span {
    let sources = command.src.len();
    if k < sources {
        &mut command.src[k]
    } else {
        &mut command.dst[k - sources]
    }
}

/// Spans outside, too many or too few, too short, or of other items.
#[test]
fn spans_that_do_not_fit_are_refused() {
    let mut cases = Vec::new();
    for good in steps() {
        for k in 0..good.src.len() + good.dst.len() {
            let mut change = |what, f: &dyn Fn(&mut Span)| {
                let mut command = good.clone();
                f(at(&mut command, k));
                cases.push((command, what));
            };
            change(OUTSIDE, &|span| span.first = u32::MAX);
            change(OUTSIDE, &|span| span.component = PARTS);
            change(OUTSIDE, &|span| span.region = 99);
            change(SPANS, &|span| span.count -= 1);
            let region = at(&mut good.clone(), k).region;
            // Tables may be longer than their products.
            if region != TABLES {
                change(SPANS, &|span| span.count += 1);
            }
            // One array alone may be shorter than its bits.
            let alone = matches!(good.op, Op::Ag(Ag::Expand | Ag::Fold { offset: Some(_) }));
            let wrong: &[u16] = match region {
                ARRAYS if alone => &[ODD, BITS],
                ARRAYS => &[SHORT, ODD, BITS],
                BITS => &[SHORT_BITS, TABLES],
                TABLES => &[LABELS, ARRAYS],
                DIGEST => &[SHORT_BITS, LABEL_BITS],
                FOLD => &[DIGEST, BITS],
                LABELS => &[ARRAYS, LABEL_BITS],
                _ => &[LABELS],
            };
            for region in wrong {
                change(SPANS, &|span| (span.region, span.first) = (*region, 0));
            }
        }
        let mut change = |f: &dyn Fn(&mut Command)| {
            let mut command = good.clone();
            f(&mut command);
            cases.push((command, SPANS));
        };
        change(&|command| command.src.clear());
        change(&|command| command.dst.clear());
        change(&|command| command.dst.push(array(15)));
        // These have as many sources as are given, or one that may lack.
        let Op::Ag(Ag::Bits { .. } | Ag::Fold { .. } | Ag::Pin { .. }) = good.op else {
            change(&|command| command.src.push(array(15)));
            change(&|command| command.src.push(bits(9)));
            change(&|command| command.src.truncate(command.src.len() - 1));
            continue;
        };
    }
    let pins = vec![array(0), bits(0), bits(1)];
    cases.push((step(Ag::Pin { bit: 0 }, pins, vec![array(1)]), SPANS));
    let (digest, fold) = (span(DIGEST, 0, 1), span(FOLD, 0, 1));
    for (offset, src) in [(None, vec![digest]), (Some(OFFSET), vec![digest, bits(0)])] {
        cases.push((step(Ag::Fold { offset }, src, vec![fold]), SPANS));
    }
    every_device_says(ROWS, &cases);
}

/// Numbers of bits, of components, and of candidates and gates.
#[test]
fn numbers_beyond_the_last_are_refused() {
    let mut cases = Vec::new();
    let mut last = Vec::new();
    let lost = "more draws than a product has, or a counter that no plan reaches";
    for good in steps() {
        let Op::Ag(op) = good.op else { continue };
        let mut change = |what, f: &dyn Fn(&mut Command)| {
            let mut command = good.clone();
            f(&mut command);
            cases.push((command, what));
        };
        match op {
            Ag::Pin { .. } => change(SPANS, &|command| command.op = Op::Ag(Ag::Pin { bit: 2 })),
            Ag::Bits { .. } => change(SPANS, &|command| command.op = Op::Ag(Ag::Bits { bit: 2 })),
            Ag::Masks { one, .. } => change(SPANS, &|command| {
                command.op = Op::Ag(Ag::Masks {
                    part: PARTS,
                    at: 0,
                    one,
                });
            }),
            Ag::Offer { .. } | Ag::Take { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } => {
                let many = match op {
                    Ag::Offer { .. } | Ag::Take { .. } => blocks(ROWS),
                    _ => PRODUCTS,
                };
                // The last one that has a tweak of its own is number 2^46 − 1.
                let end = (1 << 46) - u64::from(many);
                change(SPANS, &|command| command.calls.clear());
                change(SPANS, &|command| command.calls[0].first = end + 1);
                change(lost, &|command| command.calls[0].first = u64::MAX);
                let mut good = good.clone();
                good.calls[0].first = end;
                last.push(good);
            }
            _ => {}
        }
    }
    every_device_says(ROWS, &cases);
    every_device_does(&last);
}

/// A row has a number of 16 bits among those of a gate.
#[test]
fn rows_without_a_number_are_refused() {
    let gates =
        |command: &Command| matches!(command.op, Op::Ag(Ag::Garble { .. } | Ag::Evaluate { .. }));
    let cases = steps().into_iter().filter(gates);
    let cases: Vec<_> = cases.map(|command| (command, SPANS)).collect();
    assert_eq!(cases.len(), 2);
    every_device_says((1 << 16) + 1, &cases);
}

/// Sources of a step in whose place its array destinations may be.
fn in_place(op: &Op) -> std::ops::Range<usize> {
    match op {
        Op::Ag(Ag::Pin { .. }) => 0..1,
        Op::Ag(Ag::Offer { .. }) => 0..3,
        Op::Ag(Ag::Take { .. }) => 0..7,
        Op::Ag(Ag::Rotate { .. }) => 1..2,
        Op::Ag(Ag::Absorb) => 2..6,
        Op::Ag(Ag::Spend { .. }) => 4..12,
        Op::Ag(Ag::Gates { offset: None, .. }) => 2..5,
        Op::Ag(Ag::Gates { .. }) => 3..9,
        _ => 0..0,
    }
}

/// What is read lies nowhere where something is written, but for an array that takes the place of another.
#[test]
fn what_is_read_is_not_overwritten() {
    let (mut cases, mut done) = (Vec::new(), Vec::new());
    for good in steps() {
        let count = good.dst.len();
        for d in 0..count {
            for other in (0..count).filter(|other| *other != d) {
                let mut twice = good.clone();
                twice.dst[d] = twice.dst[other];
                cases.push((twice, SPANS));
            }
            for s in 0..good.src.len() {
                let mut same = good.clone();
                same.dst[d] = same.src[s];
                let array = |span: Span| matches!(span.region, ARRAYS | LABELS);
                let both = array(good.dst[d]) && in_place(&good.op).contains(&s);
                if both {
                    done.push(same);
                } else {
                    cases.push((same, SPANS));
                }
                // An array of blocks has bits as well.
                let mut same = good.clone();
                same.src[s] = same.dst[d];
                if !both {
                    cases.push((same, SPANS));
                }
            }
        }
    }
    let mut rotate = steps().swap_remove(12);
    rotate.dst[0].first = 3;
    cases.push((rotate, SPANS));
    every_device_says(ROWS, &cases);
    every_device_does(&done);
}
