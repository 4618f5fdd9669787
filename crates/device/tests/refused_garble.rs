//! Commands about labels that fit no workspace, repeat a tweak or lack a key are refused by every device, with what is wrong.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Device, Fault, Form, Frame, Garbling, Instr, KeyId, Layout, Op, Outcome,
    PrfCall, Program, ProgramId, Region, Residency, Span, Src, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use crate::common::devices;

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const DICE: KeyId = KeyId(2);

const ROWS: u32 = 11;
const PRODUCTS: u32 = 3;

const SLOTS: u16 = 0;
const JOB_WIDE: u16 = 1;
const SUMS: u16 = 2;
/// Tables of either scheme.
const LABELS: u16 = 3;
const HALVES: u16 = 4;
const BITS: u16 = 5;
/// What is no table.
const RESIDENT: u16 = 6;
const BIT: u16 = 7;
/// Shares of a bit, and what they have for all rows.
const SHARES: u16 = 8;
const SHARE: u16 = 9;

fn layout(chunk_rows: u32) -> Layout {
    let bits = ColumnType::Rows(Ring::Bits);
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 1,
        count,
    };
    Layout {
        chunk_rows,
        regions: vec![
            region(Residency::Resident, ColumnType::Labels, 3 * PRODUCTS),
            region(Residency::Mapped, ColumnType::Label, 2),
            region(Residency::Mapped, ColumnType::Label, 1),
            region(Residency::Mapped, ColumnType::Labels, 2 * PRODUCTS),
            region(Residency::Mapped, ColumnType::Halves, 3 * PRODUCTS),
            region(Residency::Mapped, bits, 5 * PRODUCTS),
            region(Residency::Resident, ColumnType::Labels, 2 * PRODUCTS),
            region(Residency::Mapped, ColumnType::One(Ring::Bits), 2),
            region(Residency::Resident, bits, 3 * PRODUCTS),
            region(Residency::Mapped, ColumnType::One(Ring::Bits), 2),
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

fn program(slots: u16, job_wide: u16, sums: u16, code: Vec<Instr>) -> Arc<Program> {
    Arc::new(Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums,
        temps: 0,
        pairs: (0..PRODUCTS)
            .map(|k| (Src::Slot(k), Src::Slot(PRODUCTS + k)))
            .collect(),
        code,
    })
}

fn product(k: u32, index: u32) -> Instr {
    Instr::Product {
        pairs: k..k + 1,
        out: 2 * PRODUCTS + k,
        index,
    }
}

fn products() -> Vec<Instr> {
    (0..PRODUCTS).map(|k| product(k, k)).collect()
}

/// Programs: over labels, and over shares. A device has others before them.
const OVER_LABELS: ProgramId = ProgramId(0);
const OVER_SHARES: ProgramId = ProgramId(1);

/// What a device with these keys makes of a command in a workspace of so many rows.
fn told(
    device: &mut dyn Device,
    (rows, keys): (u32, &[(KeyId, u8)]),
    command: &Command,
) -> Result<Outcome, Fault> {
    device.wipe();
    device.bind(veil_session::SessionId([0; 32]));
    for (id, byte) in keys {
        device.load_key(*id, &Secret::new([*byte; 16])).unwrap();
    }
    let layout = layout(rows);
    let over = [(SLOTS, JOB_WIDE, SUMS), (SHARES, SHARE, SHARE)];
    let loaded = over.map(|(slots, job_wide, sums)| {
        let program = program(slots, job_wide, sums, products());
        device.load(&program, &layout).unwrap()
    });
    let mut command = command.clone();
    command.program = command.program.map(|ProgramId(k)| loaded[k as usize]);
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).unwrap();
    let submitted = device.submit(workspace, &[command], Tag(0));
    let told = submitted.and_then(|()| Ok(device.poll()?.unwrap().outcome));
    device.close(workspace);
    told
}

const NO_PROGRAM: Fault = Fault::Unknown("the program of a command");

/// Keys that no command lacks. An offset has bit 0.
const KEYS: &[(KeyId, u8)] = &[(OFFSET, 0x5b), (START, 0x22), (DICE, 0x33)];

fn call(key: KeyId, tag: DomainTag) -> PrfCall {
    PrfCall { key, tag, first: 7 }
}

/// The tables of all products.
fn tables(scheme: Garbling) -> Vec<Span> {
    match scheme {
        Garbling::HalfGates => vec![span(LABELS, 0, 2 * PRODUCTS)],
        Garbling::ThreeHalves => vec![span(HALVES, 0, 3 * PRODUCTS), span(BITS, 0, 5 * PRODUCTS)],
    }
}

fn garble(scheme: Garbling) -> Command {
    let offset = OFFSET;
    let mut command = Command::new(Op::Garble { scheme, offset }, vec![], tables(scheme));
    command.program = Some(OVER_LABELS);
    command.calls = vec![call(START, DomainTag::GARBLE), call(DICE, DomainTag::DICE)];
    command
}

fn evaluate(scheme: Garbling) -> Command {
    let mut command = Command::new(Op::Evaluate { scheme }, tables(scheme), vec![]);
    command.program = Some(OVER_LABELS);
    command.calls = vec![call(START, DomainTag::GARBLE)];
    command
}

fn encode(src: Vec<Span>, to: Span) -> Command {
    Command::new(Op::Encode { offset: OFFSET }, src, vec![to])
}

fn colour(from: Span, to: Span) -> Command {
    Command::new(Op::Colour, vec![from], vec![to])
}

fn shape(what: &'static str) -> Result<Outcome, Fault> {
    Err(Fault::Shape { command: 0, what })
}

/// Every device says the same.
fn every_device_says(rows: u32, cases: &[(Command, &'static str)]) {
    for mut device in devices() {
        for (command, what) in cases {
            let told = told(&mut *device, (rows, KEYS), command);
            assert_eq!(told, shape(what), "{}: {command:?}", device.name());
        }
    }
}

#[test]
fn commands_that_fit_are_done() {
    let mut good = vec![
        encode(vec![span(SLOTS, 0, 3), span(BITS, 2, 3)], span(SLOTS, 0, 3)),
        encode(
            vec![span(JOB_WIDE, 0, 1), span(BIT, 1, 1)],
            span(SUMS, 0, 1),
        ),
        colour(span(SLOTS, 4, 2), span(BITS, 0, 2)),
        colour(span(JOB_WIDE, 0, 2), span(BIT, 0, 2)),
    ];
    good.extend(Garbling::ALL.map(garble));
    good.extend(Garbling::ALL.map(evaluate));
    for mut device in devices() {
        for command in &good {
            let told = told(&mut *device, (ROWS, KEYS), command);
            assert_eq!(told, Ok(Outcome::Done), "{command:?}");
        }
    }
}

/// Messages that are missing, too short, of other items, or where the host does not reach; programs that are none; counters beyond the last.
#[test]
fn tables_that_do_not_fit_are_refused() {
    let mut cases = Vec::new();
    for scheme in Garbling::ALL {
        for good in [garble(scheme), evaluate(scheme)] {
            let garbles = matches!(good.op, Op::Garble { .. });
            let messages = |change: &dyn Fn(&mut Vec<Span>)| {
                let mut command = good.clone();
                change(if garbles {
                    &mut command.dst
                } else {
                    &mut command.src
                });
                command
            };
            for k in 0..tables(scheme).len() {
                let less = messages(&|spans| spans.truncate(k));
                let short = messages(&|spans| spans[k].count -= 1);
                let other = messages(&|spans| spans[k] = span(SHARES, 0, 3));
                let hidden = messages(&|spans| spans[k] = span(RESIDENT, 0, 2 * PRODUCTS));
                let beyond = messages(&|spans| spans[k].first += 1);
                let nowhere = messages(&|spans| spans[k].region = 99);
                let part = messages(&|spans| spans[k].component = 1);
                cases.extend([
                    (less, "a message of tables is missing"),
                    (short, "a message is too short for its tables"),
                    (other, "a message that holds no tables of the scheme"),
                    (hidden, "a message that holds no tables of the scheme"),
                    (beyond, "a span outside its region"),
                    (nowhere, "a span outside its region"),
                    (part, "a span outside its region"),
                ]);
            }
            let needed = usize::from(garbles && scheme == Garbling::ThreeHalves);
            let mut dry = good.clone();
            dry.calls.truncate(needed);
            let what = "a start point, and dice where the scheme has some, are needed";
            cases.push((dry, what));
            let mut late = good.clone();
            // The last gate that has a tweak of its own is number 2^46 − 1.
            late.calls[0].first = (1 << 46) - u64::from(PRODUCTS) + 1;
            cases.push((late, "gates beyond the last number"));
            let mut lost = good.clone();
            lost.calls[0].first = u64::MAX;
            let what = "more draws than a product has, or a counter that no plan reaches";
            cases.push((lost, what));
            let mut other = good.clone();
            other.program = Some(OVER_SHARES);
            cases.push((other, "its program is not over labels"));
        }
    }
    // Labels are no shares.
    let mut product = Command::new(
        Op::Product(Form::replicated(Ring::Bits)),
        vec![],
        vec![span(BITS, 0, PRODUCTS)],
    );
    product.program = Some(OVER_LABELS);
    product.calls = vec![call(START, DomainTag::AND3), call(DICE, DomainTag::AND3)];
    cases.push((
        product,
        "a program over labels, which is garbled or evaluated",
    ));
    every_device_says(ROWS, &cases);
}

/// A row has a number of 16 bits among those of a gate.
#[test]
fn rows_without_a_number_are_refused() {
    let cases: Vec<_> = Garbling::ALL
        .into_iter()
        .flat_map(|scheme| [garble(scheme), evaluate(scheme)])
        .map(|command| (command, "gates beyond the last number"))
        .collect();
    every_device_says((1 << 16) + 1, &cases);
}

#[test]
fn labels_and_bits_that_do_not_fit_are_refused() {
    let three = [span(SLOTS, 0, 3), span(BITS, 0, 3), span(RESIDENT, 0, 3)];
    let [labels, bits, to] = three;
    let with = |src: &[Span], dst: &[Span]| {
        let mut command = encode(src.to_vec(), to);
        command.dst = dst.to_vec();
        command
    };
    let needed = "labels, bits and one destination are needed";
    let pairs = "labels and a bit for each are needed";
    let overlap = "the destination overlaps a source";
    let mut cases = vec![
        (with(&[labels], &[to]), needed),
        (with(&[labels, bits, bits], &[to]), needed),
        (with(&[labels, bits], &[]), needed),
        (with(&[labels, bits], &[to, labels]), needed),
        (
            with(&[labels, bits], &[span(SHARES, 0, 3)]),
            "the destination of labels holds something else",
        ),
        (with(&[bits, labels], &[to]), pairs),
        (with(&[labels, labels], &[to]), pairs),
        (with(&[span(JOB_WIDE, 0, 2), bits], &[to]), pairs),
        (with(&[labels, span(BIT, 0, 2)], &[to]), pairs),
        (with(&[labels, bits], &[span(SUMS, 0, 1)]), pairs),
        (
            with(&[span(SLOTS, 0, 2), bits], &[to]),
            "as many labels as bits are needed",
        ),
        (
            with(&[labels, span(BITS, 0, 4)], &[to]),
            "as many labels as bits are needed",
        ),
        (with(&[labels, bits], &[span(SLOTS, 1, 3)]), overlap),
        (
            with(&[labels, bits], &[span(SLOTS, 7, 3)]),
            "a span outside its region",
        ),
    ];
    let coloured = |src: &[Span], dst: &[Span]| {
        let mut command = colour(labels, bits);
        (command.src, command.dst) = (src.to_vec(), dst.to_vec());
        command
    };
    let one = "one source and one destination are needed";
    let many = "as many bits as labels are needed";
    cases.extend([
        (coloured(&[], &[bits]), one),
        (coloured(&[labels], &[]), one),
        (coloured(&[labels, labels], &[bits]), one),
        (coloured(&[labels], &[bits, bits]), one),
        (coloured(&[bits], &[bits]), many),
        (coloured(&[labels], &[to]), many),
        (coloured(&[labels], &[span(BITS, 0, 2)]), many),
        (coloured(&[labels], &[span(BIT, 0, 2)]), many),
        (coloured(&[span(JOB_WIDE, 0, 2)], &[span(BITS, 0, 2)]), many),
    ]);
    // Sums of labels, as of anything: a command that reads what it has written adds something else.
    let sum = |src: &[Span], to: Span| {
        let op = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        Command::new(op, src.to_vec(), vec![to])
    };
    let length = "sources and destination differ in length";
    cases.extend([
        (
            sum(&[labels, span(SLOTS, 1, 3)], span(SLOTS, 2, 3)),
            overlap,
        ),
        (sum(&[labels, span(SLOTS, 3, 2)], to), length),
        (sum(&[labels, bits], to), length),
        (sum(&[labels, span(HALVES, 0, 3)], to), length),
    ]);
    every_device_says(ROWS, &cases);
}

/// Programs over labels have products of one pair, no sums, and numbers that differ.
#[test]
fn programs_that_would_repeat_a_tweak_are_refused() {
    let pairs = Instr::Product {
        pairs: 0..2,
        out: 2 * PRODUCTS,
        index: 0,
    };
    let sum = Instr::ProductSum {
        pairs: 0..1,
        out: 0,
        index: 0,
    };
    for mut device in devices() {
        for (code, what) in [
            (
                vec![product(0, 1), product(1, 1)],
                "two products of labels with one number",
            ),
            (vec![pairs.clone()], "a product of labels of several pairs"),
            (
                vec![sum.clone()],
                "an operand that does not exist or is not yet there",
            ),
            (vec![product(0, u32::MAX)], "a product beyond any message"),
        ] {
            let program = program(SLOTS, JOB_WIDE, SUMS, code);
            let loaded = device.load(&program, &layout(ROWS));
            assert_eq!(loaded, Err(Fault::Program(what)), "{}", device.name());
        }
        // Slots of labels go with a label for all rows.
        let program = program(SLOTS, SHARE, SUMS, products());
        let loaded = device.load(&program, &layout(ROWS));
        let what = "a region of the wrong shape";
        assert_eq!(loaded, Err(Fault::Program(what)), "{}", device.name());
    }
}

/// A program runs in workspaces of the layout for which it was loaded.
#[test]
fn a_workspace_of_another_layout_is_refused() {
    for mut device in devices() {
        let keys = KEYS
            .iter()
            .map(|(id, byte)| (*id, Secret::new([*byte; 16])));
        for (id, key) in keys {
            device.load_key(id, &key).unwrap();
        }
        let program = program(SLOTS, JOB_WIDE, SUMS, products());
        let id = device.load(&program, &layout(ROWS)).unwrap();
        let mut small = layout(ROWS);
        small.regions[usize::from(SLOTS)].count = 2 * PRODUCTS;
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: ROWS,
        };
        let workspace = device.open(&small, frame).unwrap();
        for scheme in Garbling::ALL {
            for mut command in [garble(scheme), evaluate(scheme)] {
                command.program = Some(id);
                let refused = device.submit(workspace, &[command.clone()], Tag(0));
                let other = Fault::Program("it was loaded for workspaces of another layout");
                assert_eq!(refused, Err(other), "{}", device.name());
                command.program = None;
                let refused = device.submit(workspace, &[command.clone()], Tag(0));
                assert_eq!(refused, Err(NO_PROGRAM), "{}", device.name());
                command.program = Some(ProgramId(77));
                let refused = device.submit(workspace, &[command], Tag(0));
                assert_eq!(refused, Err(NO_PROGRAM), "{}", device.name());
            }
        }
    }
}

/// An offset that is missing or whose labels have one colour, a start point, and dice.
#[test]
fn keys_that_are_missing_are_missed() {
    let offset = "an offset whose bit 0 is 1";
    let drawn = "the key of a draw";
    let encode = encode(
        vec![span(SLOTS, 0, 3), span(BITS, 0, 3)],
        span(RESIDENT, 0, 3),
    );
    let even = [(OFFSET, 0x5a), (START, 0x22), (DICE, 0x33)];
    for mut device in devices() {
        for scheme in Garbling::ALL {
            let (garble, evaluate) = (garble(scheme), evaluate(scheme));
            let three = scheme == Garbling::ThreeHalves;
            for (command, keys, missed) in [
                (&garble, &KEYS[1..], Some(offset)),
                (&garble, &even[..], Some(offset)),
                (&encode, &KEYS[1..], Some(offset)),
                (&encode, &even[..], Some(offset)),
                (&garble, &[KEYS[0], KEYS[2]], Some(drawn)),
                (&evaluate, &[KEYS[0], KEYS[2]], Some(drawn)),
                (&garble, &KEYS[..2], three.then_some(drawn)),
                // An evaluator has neither an offset nor dice.
                (&evaluate, &KEYS[1..2], None),
            ] {
                let want = missed.map_or(Ok(Outcome::Done), |key| Err(Fault::Unknown(key)));
                let told = told(&mut *device, (ROWS, keys), command);
                assert_eq!(told, want, "{}: {command:?}", device.name());
            }
        }
    }
}
