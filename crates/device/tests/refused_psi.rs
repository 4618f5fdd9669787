//! Steps of intersections that fit no workspace, or lack a key, are refused.

use veil_device::{
    ColumnType, Command, Device, Fault, Frame, KeyId, Layout, Okvs, Op, Outcome, PrfCall, Psi,
    Reference, Region, Residency, Span, Tag,
};
use veil_math::Ring;
use veil_prss::{DomainTag, Reuse};
use veil_session::{Secret, SessionId};

use crate::common::{devices, with_span};

const OFFSET: KeyId = KeyId(0);
const COMMON: KeyId = KeyId(1);
const OWN: KeyId = KeyId(2);
const OKVS: Okvs = Okvs {
    bins: 2,
    sparse: 20,
    dense: 3,
};
/// Keys of the receiver, and of the sender.
const COUNTS: [u32; 2] = [6, 9];

const KEYS: u16 = 0;
const DIGESTS: u16 = 1;
const VOLE: u16 = 2;
const BLOCKS: u16 = 3;
const SENT: u16 = 4;
const TAGS: u16 = 5;
const FOUND: u16 = 6;
const OTHERS: u16 = 7;
const ROWS: u16 = 8;

const SPANS: &str = "a step of an intersection whose spans are not those that it needs";

/// Each region has a component and a column more than are needed.
fn layout() -> Layout {
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 2,
        count: count + 1,
    };
    let columns = OKVS.columns() as u32;
    Layout {
        chunk_rows: 1,
        regions: vec![
            region(mapped, ColumnType::Bytes(32), COUNTS[1]),
            region(resident, ColumnType::Bytes(32), COUNTS[1]),
            region(resident, ColumnType::Bytes(16), 3 * columns),
            region(mapped, ColumnType::Bytes(16), 4),
            region(mapped, ColumnType::Bytes(16), columns),
            region(mapped, ColumnType::Bytes(16), COUNTS[1]),
            region(resident, ColumnType::Bytes(1), COUNTS[0].div_ceil(8)),
            region(mapped, ColumnType::Bytes(24), 8),
            region(resident, ColumnType::Rows(Ring::Z64), 8),
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
    let (okvs, offset) = (OKVS, OFFSET);
    let step = |step, src: &[Span], dst: &[Span], keys: &[(KeyId, DomainTag)]| {
        let mut command = Command::new(Op::Psi(step), src.to_vec(), dst.to_vec());
        for (key, tag) in keys {
            command.calls.push(PrfCall {
                key: *key,
                tag: *tag,
                first: 7,
            });
        }
        let mut keys: Vec<KeyId> = keys.iter().map(|(key, _)| *key).collect();
        if let Psi::Tags { .. } = step {
            keys.push(OFFSET);
        }
        (command, keys)
    };
    let columns = OKVS.columns() as u32;
    let vole = |k| span(VOLE, k * columns, columns);
    let (seed, w) = (span(BLOCKS, 0, 1), span(BLOCKS, 1, 2));
    let (sent, tags) = (span(SENT, 0, columns), span(TAGS, 0, COUNTS[1]));
    let digests = |end: usize| span(DIGESTS, 0, COUNTS[end]);
    vec![
        step(
            Psi::Hash,
            &[span(KEYS, 0, COUNTS[1])],
            &[digests(1)],
            &[(COMMON, DomainTag::PSI_SALT)],
        ),
        step(
            Psi::Encode { okvs },
            &[digests(0), vole(2)],
            &[seed, sent],
            &[(OWN, DomainTag::PSI_ENCODE)],
        ),
        step(
            Psi::Tags { okvs, offset },
            &[digests(1), vole(1), sent, seed, w],
            &[tags],
            &[],
        ),
        step(
            Psi::Match { okvs },
            &[digests(0), vole(0), seed, w, tags],
            &[span(FOUND, 0, COUNTS[0].div_ceil(8))],
            &[],
        ),
    ]
}

/// What a fresh device, which has hashed different keys, makes of commands, one after the other: the last one's end.
fn told(
    device: &mut dyn Device,
    lacking: Option<KeyId>,
    commands: &[&Command],
) -> Result<Outcome, Fault> {
    device.wipe();
    for id in [OFFSET, COMMON, OWN] {
        device.load_key(id, &Secret::new([id.0 as u8 | 1; 16]))?;
    }
    device.bind(SessionId([0; 32]));
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: 1,
    };
    let mut workspace = device.open(&layout(), frame)?;
    let keys: Vec<u8> = (0..32 * COUNTS[1]).map(|k| (k * k / 7) as u8).collect();
    device.write(workspace, span(KEYS, 0, COUNTS[1]), &keys)?;
    let (hash, _) = &steps()[0];
    device.submit(workspace, std::slice::from_ref(hash), Tag(0))?;
    device.poll()?;
    let tags: Vec<u8> = (0..COUNTS[1])
        .flat_map(|k| u128::from(k).to_be_bytes())
        .collect();
    device.write(workspace, span(TAGS, 0, COUNTS[1]), &tags)?;
    if let Some(lacking) = lacking {
        // Another workspace, of a device that has the keys but one.
        device.wipe();
        for id in [OFFSET, COMMON, OWN]
            .into_iter()
            .filter(|id| *id != lacking)
        {
            device.load_key(id, &Secret::new([id.0 as u8 | 1; 16]))?;
        }
        workspace = device.open(&layout(), frame)?;
    }
    device.bind(SessionId([0; 32]));
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
            let sum = matches!(good.op, Op::Psi(Psi::Tags { .. })) && k == 4
                || matches!(good.op, Op::Psi(Psi::Match { .. })) && k == 3;
            let vole = matches!(
                good.op,
                Op::Psi(Psi::Tags { .. } | Psi::Encode { .. } | Psi::Match { .. })
            ) && k == 1;
            let tags = matches!(good.op, Op::Psi(Psi::Match { .. })) && k == 4;
            // One digest more or less may have as many bytes of bits.
            let keys = matches!(good.op, Op::Psi(Psi::Match { .. })) && k == 0;
            let encoded = matches!(good.op, Op::Psi(Psi::Encode { .. })) && k == 0;
            // More of a VOLE is no harm; a store takes any keys; w may be one block or several.
            if !(vole || encoded || sum || tags || keys) {
                bad.push(change(&|s| s.count += 1));
            }
            if !(encoded || sum || tags || keys) {
                bad.push(change(&|s| s.count -= 1));
            }
            if sum {
                bad.push(change(&|s| s.count = 0));
            }
            bad.push(change(&|s| s.first = u32::MAX));
            bad.push(change(&|s| s.component = 2));
            bad.push(change(&|s| s.region = 99));
            bad.push(change(&|s| s.region = ROWS));
            bad.push(change(&|s| s.region = OTHERS));
            // Blocks in the place of keys and digests.
            let spans: Vec<Span> = good.src.iter().chain(&good.dst).copied().collect();
            if spans[k].region <= DIGESTS {
                bad.push(change(&|s| s.region += 2));
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
        bad.push(less(&|c| c.dst.push(span(FOUND, 0, 1))));
        bad.push(less(&|c| {
            c.calls.push(PrfCall {
                key: COMMON,
                tag: DomainTag::PSI_SALT,
                first: 5,
            });
        }));
        if !good.calls.is_empty() {
            bad.push(less(&|c| {
                c.calls.pop();
            }));
            bad.push(less(&|c| c.calls[0].first = u64::MAX));
        }
        let Op::Psi(step) = good.op else { continue };
        // Stores that no device has room for, or that other spans would be needed for.
        for (bins, sparse, dense) in [
            (0, 20, 3),
            (2, 2, 21),
            (2, 0, 23),
            (2, u32::MAX, 3),
            (2, 20, u32::MAX),
            (u32::MAX, u32::MAX, u32::MAX),
            (1 << 20, 1 << 24, 3),
            (2, 20, 4),
            (2, 21, 3),
            (3, 20, 3),
        ] {
            let okvs = Okvs {
                bins,
                sparse,
                dense,
            };
            let other = match step {
                Psi::Encode { .. } => Psi::Encode { okvs },
                Psi::Tags { offset, .. } => Psi::Tags { okvs, offset },
                // What it reads may be longer than the store.
                Psi::Match { .. } if bins != 3 || sparse != 20 => Psi::Match { okvs },
                _ => continue,
            };
            bad.push(less(&|c| c.op = Op::Psi(other)));
        }
    }
    // Written while it is read, or twice.
    let (mut onto, _) = steps().swap_remove(0);
    onto.dst[0] = onto.src[0];
    bad.push(onto);
    let (mut onto, _) = steps().swap_remove(1);
    onto.src[1] = Span {
        count: OKVS.columns() as u32,
        ..onto.dst[1]
    };
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

/// Salts and columns that are drawn twice ring on the reference device.
#[test]
fn draws_that_are_repeated_ring() {
    let steps = steps();
    let rings = |commands: &[&Command]| match told(&mut Reference::default(), None, commands) {
        Err(Fault::Reuse(Reuse { tag, ctr, .. })) => Some((tag, ctr)),
        Ok(Outcome::Done) => None,
        other => panic!("{other:?}"),
    };
    let (hash, encode) = (&steps[0].0, &steps[1].0);
    assert_eq!(rings(&[hash, hash]), Some((DomainTag::PSI_SALT, 7)));
    let mut next = hash.clone();
    next.calls[0].first += 1;
    assert_eq!(rings(&[hash, &next]), None);
    assert_eq!(rings(&[encode, encode]), Some((DomainTag::PSI_ENCODE, 7)));
    let mut next = encode.clone();
    next.calls[0].first += OKVS.counters();
    assert_eq!(rings(&[encode, &next]), None);
    next.calls[0].first -= 1;
    let last = 7 + OKVS.counters() - 1;
    assert_eq!(rings(&[encode, &next]), Some((DomainTag::PSI_ENCODE, last)));
}
