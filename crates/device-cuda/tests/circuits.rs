//! Circuits of cut-and-choose, each with an offset and a start point of its own, against the reference and against what their gates compute: fewer than
//! the emulator has threads (192), which then do a level together, as many, and more, of which a thread has one after the other.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Cut, Device, Dst, Fault, Frame, Instr, Layout, Op, Outcome, Program,
    Reference, Region, Residency, Span, Src, Tag,
};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_math::Ring;
use veil_session::SessionId;

const SEEDS: u16 = 0;
const SLOTS: u16 = 1;
const JOB_WIDE: u16 = 2;
const SUMS: u16 = 3;
const TABLES: u16 = 4;
const SEEN: u16 = 5;
const BITS: u16 = 6;

const INPUTS: u32 = 4;
const COUNT: u32 = 6;
const ROUNDS: u32 = 6;

/// Rounds whose instructions write what others of theirs, or of the round before, read and write.
fn program() -> Program {
    let mut pairs = Vec::new();
    let mut code = Vec::new();
    for round in 0..ROUNDS {
        let (sum, kept) = (2 * round, 2 * round + 1);
        let mut product = |a, b, out, index| {
            let start = pairs.len() as u32;
            pairs.push((a, b));
            Instr::Product {
                pairs: start..start + 1,
                out,
                index,
            }
        };
        code.extend([
            product(Src::Slot(0), Src::Slot(1), 4, sum),
            Instr::Add(Src::Slot(2), Src::Slot(3), Dst::Temp(sum)),
            product(Src::Temp(sum), Src::Slot(0), 5, kept),
            Instr::Add(Src::Slot(4), Src::Slot(5), Dst::Slot(0)),
            Instr::Copy(Src::Slot(4), Dst::Temp(kept)),
            Instr::Plus(Src::Slot(2), 1, Dst::Slot(1)),
            Instr::Plus(Src::Slot(5), u128::from(round), Dst::Slot(2)),
            Instr::Add(Src::Temp(kept), Src::Slot(3), Dst::Slot(3)),
        ]);
    }
    Program {
        ring: Ring::Bits,
        slots: SLOTS,
        job_wide: JOB_WIDE,
        sums: SUMS,
        temps: 2 * ROUNDS,
        pairs,
        code,
    }
}

/// What its slots hold in the end.
fn clear(program: &Program, inputs: [bool; INPUTS as usize]) -> Vec<bool> {
    let mut slots = vec![false; COUNT as usize];
    slots[..inputs.len()].copy_from_slice(&inputs);
    let mut temps = vec![false; program.temps as usize];
    for instr in &program.code {
        let get = |src: Src| match src {
            Src::Slot(slot) => slots[slot as usize],
            Src::Temp(temp) => temps[temp as usize],
            Src::JobWide(_) => unreachable!("none is used"),
        };
        let value = match *instr {
            Instr::Add(a, b, _) => get(a) ^ get(b),
            Instr::Plus(a, c, _) => get(a) ^ (c & 1 == 1),
            Instr::Copy(a, _) => get(a),
            Instr::Product { ref pairs, .. } => {
                let (a, b) = program.pairs[pairs.start as usize];
                get(a) & get(b)
            }
            _ => unreachable!("no other is used"),
        };
        match instr.to() {
            Some(Dst::Slot(slot)) => slots[slot as usize] = value,
            Some(Dst::Temp(temp)) => temps[temp as usize] = value,
            None => unreachable!("each writes something"),
        }
    }
    slots
}

fn layout(rows: u32) -> Layout {
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 1,
        count,
    };
    let (mapped, resident) = (Residency::Mapped, Residency::Resident);
    Layout {
        chunk_rows: rows,
        regions: vec![
            region(mapped, ColumnType::Labels, 1),
            region(resident, ColumnType::Labels, COUNT),
            region(mapped, ColumnType::Label, 1),
            region(mapped, ColumnType::Label, 1),
            region(mapped, ColumnType::Labels, 4 * ROUNDS),
            region(mapped, ColumnType::Labels, 2 + 2 * INPUTS + 2 * COUNT),
            region(mapped, ColumnType::One(Ring::Bits), INPUTS),
        ],
    }
}

/// Tables; and offsets, start points, inputs, active inputs, zero-labels of all slots, active ones.
fn run(device: &mut dyn Device, rows: u32, inputs: u8) -> Result<[Vec<u8>; 2], Fault> {
    let layout = layout(rows);
    let all = |region| layout.all(region, 0);
    let span = |region, first, count| Span {
        region,
        component: 0,
        first,
        count,
    };
    device.bind(SessionId([5; 32]));
    let id = device.load(&Arc::new(program()), &layout)?;
    let frame = Frame {
        epoch: 1,
        lane: 2,
        chunk: 3,
        rows,
    };
    let workspace = device.open(&layout, frame)?;
    let seeds: Vec<u8> = (0..16 * rows).map(|k| (k * k / 5 + k) as u8).collect();
    device.write(workspace, all(SEEDS), &seeds)?;
    let bits: Vec<u8> = (0..INPUTS).map(|k| inputs >> k & 1).collect();
    device.write(workspace, all(BITS), &bits)?;
    let copy = |from, to| {
        let op = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        Command::new(op, vec![from], vec![to])
    };
    let cut =
        |step, src: &[Span], dst: &[Span]| Command::new(Op::Cut(step), src.to_vec(), dst.to_vec());
    let [offsets, starts] = [0, 1].map(|at| span(SEEN, at, 1));
    let [zeros, active] = [0, 1].map(|at| span(SEEN, 2 + at * INPUTS, INPUTS));
    let [garbled, evaluated] = [0, 1].map(|at| span(SEEN, 2 + 2 * INPUTS + at * COUNT, COUNT));
    let given = span(SLOTS, 0, INPUTS);
    // Numbers of gates that are more than 32 bits.
    let first = (1 << 40) + 7;
    let mut garble = cut(Cut::Garble { first }, &[offsets, starts], &[all(TABLES)]);
    let mut evaluate = cut(Cut::Evaluate { first }, &[starts, all(TABLES)], &[]);
    garble.program = Some(id);
    evaluate.program = Some(id);
    let commands = [
        cut(Cut::Stretch, &[all(SEEDS)], &[offsets, starts, zeros]),
        cut(Cut::Active, &[zeros, offsets, all(BITS)], &[active]),
        copy(zeros, given),
        garble,
        copy(all(SLOTS), garbled),
        copy(active, given),
        evaluate,
        copy(all(SLOTS), evaluated),
    ];
    device.submit(workspace, &commands, Tag(1))?;
    assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
    let seen = [TABLES, SEEN].map(|region| device.view(workspace, all(region)).map(<[u8]>::to_vec));
    let [tables, labels] = seen;
    Ok([tables?, labels?])
}

#[test]
fn circuits_compute_their_function_however_many_there_are() -> Result<(), Fault> {
    for (k, rows) in (0..).zip([1, 33, 191, 192, 193, 400]) {
        let inputs = 0b1101 ^ k;
        let order = [Order::Forward, Order::Reverse, Order::Random(3)][usize::from(k) % 3];
        let got = run(&mut Cuda::on(Box::new(Emulator::new(order))), rows, inputs)?;
        let want = run(&mut Reference::default(), rows, inputs)?;
        assert!(got == want, "{order:?}: {rows} rows");
        let values = clear(&program(), [0, 1, 2, 3].map(|bit| inputs >> bit & 1 == 1));
        let labels: Vec<u128> = (got[1].as_chunks().0.iter())
            .map(|label| u128::from_le_bytes(*label))
            .collect();
        let item = |at: u32| &labels[(at * rows) as usize..][..rows as usize];
        for (slot, value) in (0..).zip(values) {
            let (zero, active) = (
                item(2 + 2 * INPUTS + slot),
                item(2 + 2 * INPUTS + COUNT + slot),
            );
            for ((zero, active), offset) in zero.iter().zip(active).zip(item(0)) {
                let label = if value { zero ^ offset } else { *zero };
                assert_eq!(*active, label, "{rows} rows, slot {slot}");
            }
        }
    }
    Ok(())
}
