//! Steps of transfers that fit no workspace, or lack a key, are refused by every device.

use veil_device::ot::{COLUMNS, Choices, Low, blocks, column_bytes};
use veil_device::{
    ColumnType, Command, Device, Fault, Frame, KeyId, Layout, Op, Ot, Outcome, PrfCall, Region,
    Residency, Span, Tag, Trees,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use crate::common::{devices, with_span};

const ROWS: u32 = 21;
const ITEMS: u32 = 3;
const TREES: Trees = Trees::ALL[1];
const LEAVES: KeyId = KeyId(8);
const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);

/// Regions of every step, each with a part and an item more than are needed.
fn layout() -> Layout {
    let bits = ColumnType::Rows(Ring::Bits);
    let column = ColumnType::Bytes(column_bytes(Choices::Rows, ITEMS, ROWS) as u32);
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 2,
        count: count + 1,
    };
    Layout {
        chunk_rows: ROWS,
        regions: vec![
            region(Residency::Resident, bits, ITEMS),
            region(Residency::Mapped, bits, ITEMS * TREES.count()),
            region(Residency::Mapped, ColumnType::Bytes(16), TREES.count() - 1),
            region(Residency::Resident, column, COLUMNS + 1),
            region(Residency::Mapped, ColumnType::Bytes(16), COLUMNS),
            region(Residency::Mapped, ColumnType::Bytes(16), COLUMNS + 1),
            region(Residency::Resident, ColumnType::Labels, 4 * ITEMS),
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

fn call(key: KeyId, tag: DomainTag) -> Vec<PrfCall> {
    vec![PrfCall { key, tag, first: 5 }]
}

/// Every step, in shapes that fit.
fn steps() -> Vec<Command> {
    let (offset, items, trees) = (OFFSET, ITEMS, TREES);
    let step = |step, src: Vec<Span>, dst: Vec<Span>, calls| {
        let mut command = Command::new(Op::Ot(step), src, dst);
        command.calls = calls;
        command
    };
    let message = vec![
        span(1, 0, ITEMS * TREES.count()),
        span(2, 0, TREES.count() - 1),
    ];
    let (all, some) = (span(3, 0, COLUMNS + 1), span(3, 1, COLUMNS));
    let labels = |kind: u32| span(6, kind * ITEMS, ITEMS);
    let leaves = call(LEAVES, DomainTag::OT_LEAF);
    let start = call(START, DomainTag::OT_KEYS);
    vec![
        step(
            Ot::Receive { trees },
            vec![span(0, 0, ITEMS)],
            [&message[..], &[all]].concat(),
            leaves.clone(),
        ),
        step(Ot::Send { trees, offset }, message, vec![some], leaves),
        step(
            Ot::Fold {
                items,
                of: Choices::Rows,
            },
            vec![all, span(4, 0, 1)],
            vec![span(5, 0, COLUMNS + 1)],
            vec![],
        ),
        step(
            Ot::Compare { offset },
            vec![span(4, 0, COLUMNS), span(5, 0, COLUMNS + 1)],
            vec![],
            vec![],
        ),
        step(
            Ot::Labels { low: Low::Column },
            vec![some],
            vec![labels(0)],
            vec![],
        ),
        step(
            Ot::Labels { low: Low::Choice },
            vec![all],
            vec![labels(0)],
            vec![],
        ),
        step(
            Ot::Keys { offset: None },
            vec![labels(0)],
            vec![labels(1)],
            start.clone(),
        ),
        step(
            Ot::Keys {
                offset: Some(offset),
            },
            vec![labels(0)],
            vec![labels(1), labels(2)],
            start,
        ),
        step(
            Ot::Choose,
            vec![labels(0), labels(1), span(0, 0, ITEMS)],
            vec![labels(2)],
            vec![],
        ),
    ]
}

fn load(device: &mut dyn Device, lacking: Option<KeyId>) {
    let leaves = (0..TREES.count() * TREES.leaves()).map(|k| LEAVES.0 + k as u16);
    for id in [OFFSET.0, START.0].into_iter().chain(leaves) {
        if Some(KeyId(id)) != lacking {
            device
                .load_key(KeyId(id), &Secret::new([id as u8 | 1; 16]))
                .unwrap();
        }
    }
}

/// What a fresh device makes of a command.
fn told(
    device: &mut dyn Device,
    lacking: Option<KeyId>,
    command: &Command,
) -> Result<Outcome, Fault> {
    device.wipe();
    load(device, lacking);
    device.bind(veil_session::SessionId([0; 32]));
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: ROWS,
    };
    let workspace = device.open(&layout(), frame).unwrap();
    let submitted = device.submit(workspace, std::slice::from_ref(command), Tag(0));
    let told = submitted.and_then(|()| Ok(device.poll()?.unwrap().outcome));
    device.close(workspace);
    told
}

#[test]
fn steps_that_fit_are_done() {
    assert_eq!(blocks(ITEMS, ROWS), 2);
    for mut device in devices() {
        for command in steps() {
            assert_eq!(
                told(&mut *device, None, &command),
                Ok(Outcome::Done),
                "{command:?}"
            );
        }
    }
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let mut bad = Vec::new();
    for good in steps() {
        for k in 0..good.src.len() + good.dst.len() {
            let change = |f: &dyn Fn(&mut Span)| with_span(&good, k, f);
            bad.push(change(&|s| s.count += 3));
            // Labels of the first items alone are no less labels.
            if !matches!(good.op, Op::Ot(Ot::Labels { .. })) || k == 0 {
                bad.push(change(&|s| s.count -= 1));
            }
            bad.push(change(&|s| s.first = u32::MAX));
            bad.push(change(&|s| s.component = 2));
            let other = change(&|s| s.region = (s.region + 1) % 7);
            let items = |command: &Command| {
                let spans = command.src.iter().chain(&command.dst);
                let items = spans.map(|s| layout().regions[usize::from(s.region)].column);
                items.collect::<Vec<_>>()
            };
            if items(&other) != items(&good) {
                bad.push(other);
            }
            bad.push(change(&|s| s.region = 99));
        }
        let mut less = good.clone();
        less.src.pop();
        bad.push(less);
        if !good.dst.is_empty() {
            let mut less = good.clone();
            less.dst.pop();
            bad.push(less);
        }
        if !good.calls.is_empty() {
            let mut less = good.clone();
            less.calls.clear();
            bad.push(less);
            let mut late = good.clone();
            late.calls[0].first = u64::MAX;
            bad.push(late);
        }
        if let Op::Ot(Ot::Receive { .. } | Ot::Send { .. }) = good.op {
            let mut beyond = good.clone();
            beyond.calls[0].key = KeyId(u16::MAX);
            bad.push(beyond);
        }
        if let Op::Ot(Ot::Receive { .. }) = good.op {
            let mut onto = good.clone();
            onto.src[0] = span(1, 5, ITEMS);
            bad.push(onto);
        }
        if let Op::Ot(Ot::Fold { .. }) = good.op {
            let mut long = good.clone();
            long.op = Op::Ot(Ot::Fold {
                items: u32::MAX,
                of: Choices::Rows,
            });
            bad.push(long);
        }
        if let Op::Ot(Ot::Keys { .. }) = good.op {
            let mut onto = good.clone();
            onto.dst[0] = onto.src[0];
            bad.push(onto);
        }
    }
    for mut device in devices() {
        for command in &bad {
            let told = told(&mut *device, None, command);
            assert!(
                matches!(told, Err(Fault::Shape { .. })),
                "{told:?}: {command:?}"
            );
        }
    }
}

#[test]
fn keys_that_lack_are_missed() {
    let last = KeyId(LEAVES.0 + TREES.index(TREES.count() - 1, 3));
    for mut device in devices() {
        for command in steps() {
            let lacking = match command.op {
                // The sender has no leaf 0.
                Op::Ot(Ot::Receive { .. }) => vec![LEAVES, last],
                Op::Ot(Ot::Send { .. }) => vec![KeyId(LEAVES.0 + 1), last, OFFSET],
                Op::Ot(Ot::Compare { .. } | Ot::Keys { offset: Some(_) }) => vec![OFFSET],
                Op::Ot(Ot::Keys { offset: None }) => vec![START],
                _ => vec![],
            };
            for key in lacking {
                let told = told(&mut *device, Some(key), &command);
                assert!(
                    matches!(told, Err(Fault::Unknown(_))),
                    "{told:?}: {command:?}"
                );
            }
        }
        let send = &steps()[1];
        assert_eq!(told(&mut *device, Some(LEAVES), send), Ok(Outcome::Done));
    }
}
