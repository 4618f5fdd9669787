//! The same product on the CPU device.

use std::sync::Arc;

use veil_device::{
    Command, Cpu, Device, Draw, Form, Frame, Instr, Item, KeyId, Layout, Op, Outcome, Place,
    Program, Region, Span, Src, Tag,
};
use veil_device_fpga::node::pair_key;
use veil_math::Ring;
use veil_prss::Use;

/// What party `me` of the nodes of a seed sends of the product of two columns of whole words, whose components are given.
pub(crate) fn message(
    ring: Ring,
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
    let mut add = |place, item, parts, count| {
        layout.add(Region {
            place,
            item,
            parts,
            count,
        })
    };
    let (rows_of, one) = (Item::Rows(ring), Item::One(ring));
    let input = add(Place::Mapped, rows_of, 2, 2);
    let slots = add(Place::Resident, rows_of, 2, 3);
    let uniforms = add(Place::Mapped, one, 2, 1);
    let sums = add(Place::Mapped, one, 2, 1);
    let message = add(Place::Mapped, rows_of, 1, 1);
    let program = Program {
        ring,
        slots,
        uniforms,
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
    let bank = cpu.open(&layout, frame).expect("a small bank");
    let two = |region, part| Span {
        count: 2,
        ..layout.all(region, part)
    };
    let mut batch = Vec::new();
    for (part, of) in [(0, me), (1, previous)] {
        let bytes = [&a[usize::from(of)][..], &b[usize::from(of)]].concat();
        cpu.write(bank, two(input, part), &bytes)
            .expect("a mapped region");
        let op = Op::Combine { ring, minus: 0 };
        batch.push(Command::new(
            op,
            vec![two(input, part)],
            vec![two(slots, part)],
        ));
    }
    let tag = if ring == Ring::Bits {
        Use::AND3
    } else {
        Use::MUL3
    };
    let draw = |key| Draw {
        key: KeyId(key),
        tag,
        first: counter,
    };
    batch.push(Command {
        program: Some(program),
        draws: vec![draw(0), draw(1)],
        ..Command::new(
            Op::Product(Form::replicated(ring)),
            vec![],
            vec![layout.all(message, 0)],
        )
    });
    cpu.submit(bank, &batch, Tag(1)).expect("right commands");
    assert_eq!(cpu.poll().map(|of| of.outcome), Some(Outcome::Done));
    let bytes = cpu.view(bank, layout.all(message, 0));
    bytes.expect("a mapped region").to_vec()
}
