//! Steps of silent transfers that fit no workspace, lack a key, or take correlations twice are refused.

use veil_device::{
    ColumnType, Command, Device, Fault, Frame, KeyId, Layout, Lpn, Op, Outcome, PrfCall, Reference,
    Region, Residency, Silent, Span, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Secret, SessionId};

use crate::common::{devices, with_span};

const ROWS: u32 = 13;
const ITEMS: u32 = 2;
const OFFSET: KeyId = KeyId(0);
const COMMON: KeyId = KeyId(1);
const OWN: KeyId = KeyId(2);
const SET: Lpn = Lpn::of(6, 4, 3);

const BASE: u16 = 0;
const LEAVES: u16 = 1;
const SUMS: u16 = 2;
const BLOCKS: u16 = 3;
const CHALLENGE: u16 = 4;
const BITS: u16 = 5;
const LABELS: u16 = 6;
const REGIONS: u16 = 7;

const SPANS: &str = "a step of silent transfers whose spans are not those that it needs";

/// Each region has a component and a column more than are needed.
fn layout() -> Layout {
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 2,
        count: count + 1,
    };
    let block = ColumnType::Bytes(16);
    Layout {
        chunk_rows: ROWS,
        regions: vec![
            region(resident, SET.column(), SET.base_columns()),
            region(resident, SET.column(), SET.trees),
            region(mapped, block, SET.trees * u32::from(SET.height)),
            region(resident, block, 3),
            region(resident, ColumnType::Bytes(32), 1),
            region(mapped, ColumnType::Rows(Ring::Bits), 2 * ITEMS),
            region(resident, ColumnType::Labels, ITEMS),
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

/// Every step, in shapes that fit, with the keys that it takes.
fn steps() -> Vec<(Command, Vec<KeyId>)> {
    let (set, offset) = (SET, OFFSET);
    let step = |step, src: &[Span], dst: &[Span], keys: &[(KeyId, DomainTag)]| {
        let mut command = Command::new(Op::Silent(step), src.to_vec(), dst.to_vec());
        for (key, tag) in keys {
            command.calls.push(PrfCall {
                key: *key,
                tag: *tag,
                first: 7,
            });
        }
        let mut keys: Vec<KeyId> = keys.iter().map(|(key, _)| *key).collect();
        if let Silent::Grow { .. } | Silent::Answer { .. } | Silent::Turn { .. } = step {
            keys.push(OFFSET);
        }
        (command, keys)
    };
    let base = span(BASE, 0, SET.base_columns());
    let (a, b) = (span(LEAVES, 0, 4), span(LEAVES, 4, SET.trees - 4));
    let sums = span(SUMS, 0, SET.trees * u32::from(SET.height));
    let block = |k| span(BLOCKS, k, 1);
    let challenge = span(CHALLENGE, 0, 1);
    let bits = |k| span(BITS, k * ITEMS, ITEMS);
    let labels = span(LABELS, 0, ITEMS);
    let outputs = span(LEAVES, 0, 4);
    let (starts, roots) = ((COMMON, DomainTag::OT_TREE), (OWN, DomainTag::OT_ROOT));
    vec![
        step(
            Silent::Grow { set, offset },
            &[base],
            &[a, b, sums],
            &[starts, roots],
        ),
        step(Silent::Puncture { set }, &[base, sums], &[a, b], &[starts]),
        step(
            Silent::Ask { set },
            &[a, b, base, challenge],
            &[block(0), block(1)],
            &[],
        ),
        step(
            Silent::Answer { set, offset },
            &[a, b, base, challenge, block(0)],
            &[block(1)],
            &[],
        ),
        step(
            Silent::Rows { set },
            &[base],
            &[a, b],
            &[(COMMON, DomainTag::OT_ROWS)],
        ),
        step(
            Silent::Choose { first: 6 },
            &[outputs, bits(0)],
            &[bits(1), labels],
            &[],
        ),
        step(
            Silent::Turn { first: 6, offset },
            &[outputs, bits(1)],
            &[labels],
            &[],
        ),
        step(
            Silent::Take {
                first: 29,
                at: 1,
                count: 3,
            },
            &[outputs],
            &[span(BASE, 0, 1)],
            &[],
        ),
    ]
}

/// What a fresh device makes of commands, one after the other: the last one's end.
fn told(
    device: &mut dyn Device,
    lacking: Option<KeyId>,
    commands: &[&Command],
) -> Result<Outcome, Fault> {
    device.wipe();
    for id in [OFFSET, COMMON, OWN] {
        if Some(id) != lacking {
            device.load_key(id, &Secret::new([id.0 as u8 | 1; 16]))?;
        }
    }
    device.bind(SessionId([0; 32]));
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: ROWS,
    };
    let workspace = device.open(&layout(), frame)?;
    let mut told = Ok(Outcome::Done);
    for command in commands {
        let submitted = device.submit(workspace, std::slice::from_ref(*command), Tag(0));
        told = submitted.and_then(|()| Ok(device.poll()?.unwrap().outcome));
    }
    device.close(workspace);
    told
}

#[test]
fn steps_that_fit_are_done() {
    for mut device in devices() {
        for (command, _) in steps() {
            assert_eq!(
                told(&mut *device, None, &[&command]),
                Ok(Outcome::Done),
                "{command:?}"
            );
        }
    }
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let mut bad = Vec::new();
    for (good, _) in steps() {
        for k in 0..good.src.len() + good.dst.len() {
            let change = |f: &dyn Fn(&mut Span)| with_span(&good, k, f);
            // More outputs than are used are no harm, nor is more room for them.
            let room = match good.op {
                Op::Silent(Silent::Choose { .. } | Silent::Turn { .. }) => k == 0,
                Op::Silent(Silent::Take { .. }) => true,
                _ => false,
            };
            if !room {
                bad.push(change(&|s| s.count += 1));
            }
            bad.push(change(&|s| s.count -= 1));
            bad.push(change(&|s| s.first = u32::MAX));
            bad.push(change(&|s| s.component = 2));
            bad.push(change(&|s| s.region = 99));
            bad.push(change(&|s| s.region = (s.region + 2) % REGIONS));
        }
        if let Op::Silent(Silent::Take { first, at, count }) = good.op {
            for (first, at, count) in [(first + 1, at, count), (first, 6, count), (first, at, 0)] {
                let mut other = good.clone();
                other.op = Op::Silent(Silent::Take { first, at, count });
                bad.push(other);
            }
        }
        let less = |f: &dyn Fn(&mut Command)| {
            let mut less = good.clone();
            f(&mut less);
            less
        };
        bad.push(less(&|c| {
            c.src.pop();
        }));
        bad.push(less(&|c| {
            c.dst.pop();
        }));
        bad.push(less(&|c| c.calls.push(call(5))));
        if !good.calls.is_empty() {
            bad.push(less(&|c| {
                c.calls.pop();
            }));
            bad.push(less(&|c| c.calls[0].first = u64::MAX));
        }
        // Parameters that no device has room for, or that other spans would be needed for.
        for other in [
            Lpn::of(0, 4, 3),
            Lpn::of(6, 0, 3),
            Lpn::of(6, 25, 3),
            Lpn::of(6, 4, 2),
            Lpn::of(6, 4, 17),
            Lpn::of(6, 4, 255),
            Lpn::of(7, 4, 3),
            Lpn::of(6, 5, 3),
            Lpn::of(1 << 15, 4, 3),
        ] {
            let Op::Silent(step) = good.op else { continue };
            let changed = match step {
                Silent::Grow { offset, .. } => Silent::Grow { set: other, offset },
                Silent::Puncture { .. } => Silent::Puncture { set: other },
                Silent::Ask { .. } => Silent::Ask { set: other },
                Silent::Answer { offset, .. } => Silent::Answer { set: other, offset },
                Silent::Rows { .. } => Silent::Rows { set: other },
                Silent::Choose { .. } => Silent::Choose { first: 7 },
                Silent::Turn { offset, .. } => Silent::Turn {
                    first: u64::MAX,
                    offset,
                },
                Silent::Take { first, count, .. } => Silent::Take {
                    first,
                    at: u64::MAX,
                    count,
                },
                Silent::Give { .. } | Silent::Fill { .. } | Silent::Pack => continue,
            };
            bad.push(less(&|c| c.op = Op::Silent(changed)));
        }
    }
    // What would be written while it is read.
    let (mut onto, _) = steps().swap_remove(4);
    onto.dst[1] = onto.dst[0];
    bad.push(onto);
    for mut device in devices() {
        for command in &bad {
            let told = told(&mut *device, None, &[command]);
            let Err(Fault::Shape { command: 0, what }) = told else {
                panic!("{told:?}: {command:?}");
            };
            let others = [
                "a span outside its region",
                "more draws than a product has, or a counter that no plan reaches",
            ];
            assert!(what == SPANS || others.contains(&what), "{what}");
        }
    }
}

fn call(first: u64) -> PrfCall {
    PrfCall {
        key: COMMON,
        tag: DomainTag::OT_ROWS,
        first,
    }
}

#[test]
fn keys_that_lack_are_missed() {
    for mut device in devices() {
        for (command, keys) in steps() {
            for key in keys {
                let told = told(&mut *device, Some(key), &[&command]);
                assert!(
                    matches!(told, Err(Fault::Unknown(_) | Fault::Program(_))),
                    "{told:?}: {command:?}"
                );
            }
        }
    }
}

/// Attack case T17: correlations of a round that are taken by the next one ring on the reference device, as do trees with the counters of others; a base that was
/// written anew is taken.
#[test]
fn correlations_that_are_taken_twice_ring() {
    let steps = steps();
    let rings = |commands: &[&Command]| match told(&mut Reference::default(), None, commands) {
        Err(Fault::Reuse(reuse)) => Some((reuse.tag, reuse.ctr)),
        Ok(Outcome::Done) => None,
        other => panic!("{other:?}"),
    };
    for (command, _) in &steps[..2] {
        let mut next = command.clone();
        next.calls
            .iter_mut()
            .for_each(|call| call.first += u64::from(SET.trees));
        assert_eq!(rings(&[command, &next]), Some((DomainTag::OT_BASE, 0)));
        // Rows are made of the same base, which does not make it new.
        let (rows, _) = &steps[4];
        assert_eq!(
            rings(&[command, rows, &next]),
            Some((DomainTag::OT_BASE, 0))
        );
        let base = command.src[0];
        // All but the last column.
        let most = Span {
            count: base.count - 1,
            ..base
        };
        let clear = pinned(most);
        let last = u64::from(SET.base_columns()) - 1;
        assert_eq!(
            rings(&[command, &clear, &next]),
            Some((DomainTag::OT_BASE, last))
        );
        let clear = pinned(base);
        assert_eq!(rings(&[command, &clear, &next]), None);
        let starts = (DomainTag::OT_TREE, 7);
        assert_eq!(rings(&[command, &clear, command]), Some(starts));
    }
    let (rows, _) = &steps[4];
    assert_eq!(rings(&[rows, rows]), Some((DomainTag::OT_ROWS, 7)));
}

/// A command that writes a base.
fn pinned(base: Span) -> Command {
    let pin = Op::Ag(veil_device::Ag::Pin { bit: 0 });
    Command::new(pin, vec![base], vec![base])
}
