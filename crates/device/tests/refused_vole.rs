//! Steps of silent transfers over blocks that fit no workspace, lack a key, or take correlations or entries twice are refused.

use veil_device::{
    ColumnType, Command, Device, Fault, Frame, KeyId, Layout, Lpn, Op, Outcome, PrfCall, Reference,
    Region, Residency, Silent, Span, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Secret, SessionId};

use crate::common::{devices, with_span};

const OFFSET: KeyId = KeyId(0);
const COMMON: KeyId = KeyId(1);
const OWN: KeyId = KeyId(2);
const SET: Lpn = Lpn::over_blocks(6, 4, 3);
/// The same over bits, whose columns are others.
const BITS: Lpn = Lpn::of(6, 4, 3);

const CORRELATIONS: u16 = 0;
/// B, A and C.
const BASES: u16 = 1;
const LEAVES: u16 = 2;
const NOISE: u16 = 3;
const SUMS: u16 = 4;
const BLOCKS: u16 = 5;
const CHALLENGE: u16 = 6;
/// Of a type that no step takes.
const OTHER: u16 = 7;

const SPANS: &str = "a step of silent transfers whose spans are not those that it needs";

/// Entries that are packed.
const ENTRIES: u32 = 2;

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
    let levels = SET.levels();
    Layout {
        chunk_rows: 13,
        regions: vec![
            region(resident, block, 128 * ENTRIES + levels),
            region(resident, block, 3 * SET.base_columns()),
            region(resident, block, SET.outputs() as u32),
            region(resident, block, SET.outputs() as u32),
            region(mapped, block, levels + SET.trees),
            region(resident, block, 3 + 2 * ENTRIES),
            region(resident, ColumnType::Bytes(32), 1),
            region(mapped, ColumnType::Rows(Ring::Bits), 1 << 12),
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

/// Every step, in shapes that fit, with the keys that it takes, and the sources that may be longer.
fn steps() -> Vec<(Command, Vec<KeyId>, Option<usize>)> {
    let (set, offset) = (SET, OFFSET);
    let step = |step, src: &[Span], dst: &[Span], keys: &[(KeyId, DomainTag)], longer| {
        let mut command = Command::new(Op::Silent(step), src.to_vec(), dst.to_vec());
        for (key, tag) in keys {
            command.calls.push(PrfCall {
                key: *key,
                tag: *tag,
                first: 7,
            });
        }
        let mut keys: Vec<KeyId> = keys.iter().map(|(key, _)| *key).collect();
        if let Silent::Grow { .. } | Silent::Answer { .. } = step {
            keys.push(OFFSET);
        }
        (command, keys, longer)
    };
    let base = |k| span(BASES, k * SET.base_columns(), SET.base_columns());
    let of = |region| {
        let (first, all) = (4 * SET.leaves(), SET.outputs() as u32);
        [span(region, 0, first), span(region, first, all - first)]
    };
    let ([a, b], [c, d]) = (of(LEAVES), of(NOISE));
    let packed = span(CORRELATIONS, 0, 128 * ENTRIES);
    let levels = span(CORRELATIONS, 128 * ENTRIES, SET.levels());
    let sums = span(SUMS, 0, SET.levels());
    let sealed = span(SUMS, SET.levels(), SET.trees);
    let block = |k| span(BLOCKS, k, 1);
    let entries = |k| span(BLOCKS, 3 + k * ENTRIES, ENTRIES);
    let challenge = span(CHALLENGE, 0, 1);
    let starts = (COMMON, DomainTag::VOLE_TREE);
    let seconds = (COMMON, DomainTag::VOLE_LEAF);
    let roots = (OWN, DomainTag::VOLE_ROOT);
    let rows = (COMMON, DomainTag::VOLE_ROWS);
    vec![
        step(Silent::Pack, &[packed], &[entries(0)], &[], Some(0)),
        step(
            Silent::Pack,
            &[packed],
            &[entries(0), entries(1)],
            &[],
            Some(0),
        ),
        step(
            Silent::Grow { set, offset },
            &[levels],
            &[a, b, sums],
            &[starts, roots],
            Some(0),
        ),
        step(
            Silent::Puncture { set },
            &[levels, sums],
            &[a, b],
            &[starts],
            Some(0),
        ),
        step(
            Silent::Give { set },
            &[base(0)],
            &[a, b, sealed],
            &[seconds],
            None,
        ),
        step(
            Silent::Fill { set },
            &[levels, sealed, base(1), base(2)],
            &[a, b, c, d],
            &[seconds],
            Some(0),
        ),
        step(
            Silent::Ask { set },
            &[a, b, c, d, base(1), base(2), challenge],
            &[block(0), block(1)],
            &[],
            None,
        ),
        step(
            Silent::Answer { set, offset },
            &[a, b, base(0), challenge, block(0)],
            &[block(1)],
            &[],
            None,
        ),
        step(Silent::Rows { set }, &[base(0)], &[a, b], &[rows], None),
        step(
            Silent::Rows { set },
            &[base(1), base(2)],
            &[a, b, c, d],
            &[rows],
            None,
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
        rows: 13,
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
        for (command, ..) in steps() {
            let told = told(&mut *device, None, &[&command]);
            assert_eq!(told, Ok(Outcome::Done), "{command:?}");
        }
    }
}

/// The same step of other parameters.
fn with(step: Silent, set: Lpn) -> Option<Silent> {
    Some(match step {
        Silent::Grow { offset, .. } => Silent::Grow { set, offset },
        Silent::Puncture { .. } => Silent::Puncture { set },
        Silent::Give { .. } => Silent::Give { set },
        Silent::Fill { .. } => Silent::Fill { set },
        Silent::Ask { .. } => Silent::Ask { set },
        Silent::Answer { offset, .. } => Silent::Answer { set, offset },
        Silent::Rows { .. } => Silent::Rows { set },
        _ => return None,
    })
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let mut bad = Vec::new();
    for (good, _, longer) in steps() {
        let changed = |f: &dyn Fn(&mut Command)| {
            let mut changed = good.clone();
            f(&mut changed);
            changed
        };
        let sources = good.src.len();
        for k in 0..sources + good.dst.len() {
            let change = |f: &dyn Fn(&mut Span)| with_span(&good, k, f);
            if longer != Some(k) {
                bad.push(change(&|s| s.count += 1));
            }
            // Fewer entries are packed of as many correlations.
            let packs = good.op == Op::Silent(Silent::Pack) && good.dst.len() == 1;
            if !(packs && k == sources) {
                bad.push(change(&|s| s.count -= 1));
            }
            bad.push(change(&|s| s.first = u32::MAX));
            bad.push(change(&|s| s.component = 2));
            bad.push(change(&|s| s.region = 99));
            bad.push(change(&|s| s.region = OTHER));
        }
        bad.push(changed(&|c| {
            c.src.pop();
        }));
        bad.push(changed(&|c| c.src.push(c.src[0])));
        if good.dst.len() != 2 || good.op != Op::Silent(Silent::Pack) {
            bad.push(changed(&|c| {
                c.dst.pop();
            }));
        }
        bad.push(changed(&|c| c.dst.push(span(BLOCKS, 2, 1))));
        bad.push(changed(&|c| {
            c.calls.push(PrfCall {
                key: COMMON,
                tag: DomainTag::VOLE_ROWS,
                first: 5,
            });
        }));
        if !good.calls.is_empty() {
            bad.push(changed(&|c| {
                c.calls.pop();
            }));
            bad.push(changed(&|c| c.calls[0].first = u64::MAX));
        }
        // What would be written while it is read, or twice.
        bad.push(changed(&|c| c.dst[0] = c.src[0]));
        if good.dst.len() > 1 && good.dst[0].count == good.dst[1].count {
            bad.push(changed(&|c| c.dst[1] = c.dst[0]));
        }
        let others = [
            BITS,
            Lpn::over_blocks(0, 4, 3),
            Lpn::over_blocks(6, 0, 3),
            Lpn::over_blocks(6, 25, 3),
            Lpn::over_blocks(6, 4, 2),
            Lpn::over_blocks(6, 4, 17),
            Lpn::over_blocks(6, 4, 255),
            Lpn::over_blocks(7, 4, 3),
            Lpn::over_blocks(1 << 15, 4, 3),
        ];
        let Op::Silent(step) = good.op else { continue };
        for other in others {
            if let Some(step) = with(step, other) {
                bad.push(changed(&|c| c.op = Op::Silent(step)));
            }
        }
    }
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

/// A base over blocks is not one over bits, and none of its steps takes one.
#[test]
fn second_hashes_are_over_blocks() {
    for step in [Silent::Give { set: BITS }, Silent::Fill { set: BITS }] {
        for mut device in devices() {
            let (mut command, ..) = steps().swap_remove(4);
            command.op = Op::Silent(step);
            let told = told(&mut *device, None, &[&command]);
            assert!(matches!(told, Err(Fault::Shape { .. })), "{told:?}");
        }
    }
}

#[test]
fn keys_that_lack_are_missed() {
    for mut device in devices() {
        for (command, keys, _) in steps() {
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

/// Levels, noise, and correlations that are packed may be taken once.
#[test]
fn what_is_taken_twice_rings() {
    let steps = steps();
    let rings = |commands: &[&Command]| match told(&mut Reference::default(), None, commands) {
        Err(Fault::Reuse(reuse)) => Some((reuse.tag, reuse.ctr)),
        Ok(Outcome::Done) => None,
        other => panic!("{other:?}"),
    };
    // The first column that is taken twice, of each step that takes some.
    let entries = u64::from(SET.base_columns());
    for (at, column) in [(0, 0), (1, 0), (2, 256), (3, 256), (4, 0), (5, entries)] {
        let (command, ..) = &steps[at];
        let mut next = command.clone();
        next.calls.iter_mut().for_each(|call| call.first += 100);
        let taken = Some((DomainTag::OT_BASE, column));
        assert_eq!(rings(&[command, &next]), taken, "{command:?}");
        assert_eq!(rings(&[command]), None);
        if !command.calls.is_empty() {
            let (rows, ..) = &steps[8];
            assert_eq!(rings(&[command, rows, &next]), taken, "{command:?}");
        }
    }
    // What becomes an entry is no level, and the other way.
    let mut levels = steps[2].0.clone();
    levels.src[0].first = 0;
    assert_eq!(
        rings(&[&steps[0].0, &levels]),
        Some((DomainTag::OT_BASE, 0))
    );
    let (rows, ..) = &steps[8];
    assert_eq!(rings(&[rows, rows]), Some((DomainTag::VOLE_ROWS, 7)));
}
