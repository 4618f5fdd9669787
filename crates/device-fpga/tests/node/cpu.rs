//! The same products on the CPU device.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Cpu, Device, Form, Frame, Instr, KeyId, Layout, Op, Outcome, PrfCall,
    Program, Region, Residency, Span, Src, Tag,
};
use veil_device_fpga::node::{JOINT, code_key, component_key, crosses, pair_key, received};
use veil_math::Ring;
use veil_prss::DomainTag;

/// What party `me` of the nodes of a seed sends of the product of two columns of whole words, whose components are given.
pub(crate) fn message(
    ring: Ring,
    seed: u64,
    me: u8,
    columns: [&[Vec<u8>; 3]; 2],
    counter: u64,
) -> Vec<u8> {
    of_three((ring, false), seed, me, columns, counter)
}

/// What it sends of the sum of these products: one element.
pub(crate) fn sum(
    ring: Ring,
    seed: u64,
    me: u8,
    columns: [&[Vec<u8>; 3]; 2],
    counter: u64,
) -> Vec<u8> {
    of_three((ring, true), seed, me, columns, counter)
}

fn of_three(
    (ring, sum): (Ring, bool),
    seed: u64,
    me: u8,
    [a, b]: [&[Vec<u8>; 3]; 2],
    counter: u64,
) -> Vec<u8> {
    let rows = 8 * a[0].len() as u32 / ring.bits();
    let mut layout = Layout {
        chunk_rows: rows,
        ..Layout::default()
    };
    let mut add = |residency, column, components, count| {
        layout.add(Region {
            residency,
            column,
            components,
            count,
        })
    };
    let (rows_of, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    let input = add(Residency::Mapped, rows_of, 2, 2);
    let slots = add(Residency::Resident, rows_of, 2, 3);
    let job_wide = add(Residency::Mapped, one, 2, 1);
    let sums = add(Residency::Mapped, one, 2, 1);
    let messages = [rows_of, one].map(|item| add(Residency::Mapped, item, 1, 1));
    let program = Program {
        ring,
        slots,
        job_wide,
        sums,
        temps: 0,
        pairs: vec![(Src::Slot(0), Src::Slot(1))],
        code: vec![if sum {
            Instr::ProductSum {
                pairs: 0..1,
                out: 0,
                index: 0,
            }
        } else {
            Instr::Product {
                pairs: 0..1,
                out: 2,
                index: 0,
            }
        }],
    };
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let previous = (me + 2) % 3;
    let mut cpu = Cpu::detect();
    for (id, party) in [(0, me), (1, previous)] {
        let key = pair_key(seed, party);
        cpu.load_key(KeyId(id), &key).expect("room for a key");
    }
    let program = cpu
        .load(&Arc::new(program), &layout)
        .expect("a right program");
    let workspace = cpu.open(&layout, frame).expect("a small workspace");
    let two = |region, part| Span {
        count: 2,
        ..layout.all(region, part)
    };
    let mut batch = Vec::new();
    for (part, of) in [(0, me), (1, previous)] {
        let bytes = [&a[usize::from(of)][..], &b[usize::from(of)]].concat();
        cpu.write(workspace, two(input, part), &bytes)
            .expect("a mapped region");
        let op = Op::Combine { ring, minus: 0 };
        batch.push(Command::new(
            op,
            vec![two(input, part)],
            vec![two(slots, part)],
        ));
    }
    let tag = if ring == Ring::Bits {
        DomainTag::AND3
    } else {
        DomainTag::MUL3
    };
    let calls = [tag, DomainTag::SUM3].map(|tag| {
        [0, 1].map(|key| PrfCall {
            key: KeyId(key),
            tag,
            first: counter,
        })
    });
    // Of rows and of sums, of which there is one.
    let counts = [u32::from(!sum), u32::from(sum)];
    let spans = [0, 1].map(|kind| Span {
        count: counts[kind],
        ..layout.all(messages[kind], 0)
    });
    batch.push(Command {
        program: Some(program),
        calls: calls.concat(),
        ..Command::new(Op::Product(Form::replicated(ring)), vec![], spans.to_vec())
    });
    cpu.submit(workspace, &batch, Tag(1))
        .expect("right commands");
    let ended = cpu.poll().expect("a healthy device");
    assert_eq!(ended.map(|of| of.outcome), Some(Outcome::Done));
    let bytes = cpu.view(workspace, spans[usize::from(sum)]);
    bytes.expect("a mapped region").to_vec()
}

/// What a party of four makes of a product.
#[derive(Default)]
pub(crate) struct Party {
    /// Of each joint message whose term it computes.
    pub(crate) messages: BTreeMap<u8, Vec<u8>>,
    /// Of those that it vouches for.
    pub(crate) macs: BTreeMap<u8, Vec<u8>>,
    /// By the party that lacks the component.
    pub(crate) shares: BTreeMap<u8, Vec<u8>>,
}

/// What the parties of the nodes of a seed make of the product of two columns of whole words, whose components are given.
pub(crate) fn four(
    ring: Ring,
    seed: u64,
    columns: [&[Vec<u8>; 4]; 2],
    place: (u64, u64, u32),
) -> [Party; 4] {
    let first = [0, 1, 2, 3].map(|me| party(ring, seed, me, columns, place, None));
    let messages = first.into_iter().flat_map(|party| party.messages);
    let sent: BTreeMap<u8, Vec<u8>> = messages.collect();
    [0, 1, 2, 3].map(|me| party(ring, seed, me, columns, place, Some(&sent)))
}

fn party(
    ring: Ring,
    seed: u64,
    me: u8,
    [a, b]: [&[Vec<u8>; 4]; 2],
    (counter, layer, chunk): (u64, u64, u32),
    sent: Option<&BTreeMap<u8, Vec<u8>>>,
) -> Party {
    let rows = 8 * a[0].len() as u32 / ring.bits();
    let mut layout = Layout {
        chunk_rows: rows,
        ..Layout::default()
    };
    let mut add = |residency, column, components, count| {
        layout.add(Region {
            residency,
            column,
            components,
            count,
        })
    };
    let (rows_of, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    let input = add(Residency::Mapped, rows_of, 3, 2);
    let slots = add(Residency::Resident, rows_of, 3, 3);
    let job_wide = add(Residency::Mapped, one, 3, 1);
    let sums = add(Residency::Mapped, one, 3, 1);
    let messages = add(Residency::Mapped, rows_of, 3, 1);
    let came = add(Residency::Mapped, rows_of, 1, 2);
    let none = add(Residency::Mapped, one, 1, 1);
    let macs = add(Residency::Mapped, ColumnType::Bytes(16), 1, 2);
    let output = add(Residency::Mapped, rows_of, 3, 1);
    let program = Program {
        ring,
        slots,
        job_wide,
        sums,
        temps: 0,
        pairs: vec![(Src::Slot(0), Src::Slot(1))],
        code: vec![Instr::Product {
            pairs: 0..1,
            out: 2,
            index: 0,
        }],
    };
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk,
        rows,
    };
    let mut cpu = Cpu::detect();
    // Keys of components by who lacks them; of pairs behind them.
    for of in (0..4).filter(|of| *of != me) {
        let keys = [(0, component_key(seed, of)), (4, code_key(seed, [me, of]))];
        for (id, key) in keys {
            let loaded = cpu.load_key(KeyId(id + u16::from(of)), &key);
            loaded.expect("room for a key");
        }
    }
    let program = cpu
        .load(&Arc::new(program), &layout)
        .expect("a right program");
    let workspace = cpu.open(&layout, frame).expect("a small workspace");
    let span = |region, part, first, count| Span {
        first,
        count,
        ..layout.all(region, part)
    };
    let mut batch = Vec::new();
    let combined = Op::Combine { ring, minus: 0 };
    for part in 0..3 {
        let of = usize::from((me + 1 + part) % 4);
        let bytes = [&a[of][..], &b[of]].concat();
        cpu.write(workspace, span(input, part, 0, 2), &bytes)
            .expect("a mapped region");
        batch.push(Command::new(
            combined.clone(),
            vec![span(input, part, 0, 2)],
            vec![span(slots, part, 0, 2)],
        ));
    }
    // Draws as Form::fourfold has them: of the three cross terms, and of the terms that this party is no part of.
    let crosses = crosses(me);
    let outside = (0..6).filter(|k| JOINT[usize::from(*k)].outsider == me);
    let calls: Vec<PrfCall> = (crosses.into_iter().chain(outside))
        .map(|k| PrfCall {
            key: KeyId(JOINT[usize::from(k)].receiver.into()),
            tag: DomainTag::joint4(k),
            first: counter,
        })
        .collect();
    let swapped = (JOINT[usize::from(crosses[2])].outsider + 3 - me) % 4 == 2;
    let form = Form::fourfold(ring, swapped, calls.len() == 5);
    batch.push(Command {
        program: Some(program),
        calls,
        ..Command::new(
            Op::Product(form),
            vec![],
            (0..3).map(|k| layout.all(messages, k)).collect(),
        )
    });
    let vouched: Vec<u8> = (0..3)
        .filter(|k| JOINT[usize::from(crosses[usize::from(*k)])].sender(chunk) != me)
        .collect();
    for (place, k) in (0..).zip(&vouched) {
        let joint = crosses[usize::from(*k)];
        let other = JOINT[usize::from(joint)].receiver;
        batch.push(Command {
            calls: vec![PrfCall {
                key: KeyId(4 + u16::from(other)),
                tag: DomainTag::mac4(joint),
                first: layer,
            }],
            ..Command::new(
                Op::Mac,
                vec![layout.all(messages, *k)],
                vec![span(macs, 0, place, 1)],
            )
        });
    }
    for (place, k) in (0..).zip(received(me)) {
        let Some(sent) = sent else { break };
        cpu.write(workspace, span(came, 0, place, 1), &sent[&k])
            .expect("a mapped region");
        let component = (JOINT[usize::from(k)].outsider + 3 - me) % 4;
        batch.push(Command {
            program: Some(program),
            ..Command::new(
                Op::AddReceived { component },
                vec![span(came, 0, place, 1), span(none, 0, 0, 0)],
                vec![],
            )
        });
    }
    for part in 0..3 {
        batch.push(Command::new(
            combined.clone(),
            vec![span(slots, part, 2, 1)],
            vec![layout.all(output, part)],
        ));
    }
    cpu.submit(workspace, &batch, Tag(1))
        .expect("right commands");
    let ended = cpu.poll().expect("a healthy device");
    assert_eq!(ended.map(|of| of.outcome), Some(Outcome::Done));
    let view = |span| cpu.view(workspace, span).expect("a mapped region").to_vec();
    let mut made = Party::default();
    for (k, joint) in (0..).zip(crosses) {
        made.messages.insert(joint, view(layout.all(messages, k)));
    }
    for (place, k) in (0..).zip(&vouched) {
        let joint = crosses[usize::from(*k)];
        made.macs.insert(joint, view(span(macs, 0, place, 1)));
    }
    for part in 0..3 {
        let of = (me + 1 + part) % 4;
        made.shares.insert(of, view(layout.all(output, part)));
    }
    made
}
