//! What the suite does not look at: batches that stop, what is refused, launches, and memory that the host does not reach.

use std::sync::Arc;

use crate::common::{deep, far};

use veil_device::{
    ColumnType, Command, Cpu, Device, Dst, Fault, Form, Frame, Instr, KeyId, Layout, Op, Outcome,
    PrfCall, Program, Reference, Region, Residency, Span, Src, Tag, completion,
};
use veil_device_cuda::backend::{Emulator, LAUNCH, Order, Reordered};
use veil_device_cuda::{Cuda, Seconds};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Secret, SessionId};

const IN: u16 = 0;
const SLOTS: u16 = 1;
const JOB_WIDE: u16 = 2;
const SUMS: u16 = 3;
const MESSAGE: u16 = 4;
const OUT: u16 = 5;

const ROWS: u32 = 200;

fn layout(count: u32) -> Layout {
    let (rows, one) = (ColumnType::Rows(Ring::Z64), ColumnType::One(Ring::Z64));
    let region = |residency, column, components, count| Region {
        residency,
        column,
        components,
        count,
    };
    Layout {
        chunk_rows: ROWS,
        regions: vec![
            region(Residency::Mapped, rows, 2, 2),
            region(Residency::Resident, rows, 2, 2 + count),
            region(Residency::Mapped, one, 2, 1),
            region(Residency::Mapped, one, 2, 1),
            region(Residency::Mapped, rows, 1, count),
            region(Residency::Public, rows, 1, 2),
        ],
    }
}

fn frame(rows: u32) -> Frame {
    Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    }
}

fn device() -> Cuda {
    Cuda::on(Box::new(Emulator::new(Order::Forward)))
}

fn copy(from: Span, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Z64,
        minus: 0,
    };
    Command::new(op, vec![from], vec![to])
}

/// A layer of so many products.
fn layer(count: u32) -> Arc<Program> {
    let product = |k: u32| Instr::Product {
        pairs: 0..1,
        out: 2 + k,
        index: k,
    };
    Arc::new(Program {
        ring: Ring::Z64,
        slots: SLOTS,
        job_wide: JOB_WIDE,
        sums: SUMS,
        temps: 0,
        pairs: vec![(Src::Slot(0), Src::Slot(1))],
        code: (0..count).map(product).collect(),
    })
}

/// Of integers modulo 2^32 it has kernels for sums and products of matrices, and refuses all else before anything is computed.
#[test]
fn integers_of_32_bits_are_refused() -> Result<(), Fault> {
    let mut of_32 = layout(1);
    for region in &mut of_32.regions {
        region.column = match region.column {
            ColumnType::One(_) => ColumnType::One(Ring::Z32),
            _ => ColumnType::Rows(Ring::Z32),
        };
    }
    let mut program = (*layer(1)).clone();
    program.ring = Ring::Z32;
    let mut device = device();
    let loaded = device.load(&Arc::new(program), &of_32).map(|_| ());
    let workspace = device.open(&of_32, frame(ROWS))?;
    let one = |region| Span {
        count: 1,
        ..of_32.all(region, 0)
    };
    let scale = Command::new(Op::Scale, vec![one(IN), one(IN)], vec![one(OUT)]);
    let scaled = device.submit(workspace, &[scale], Tag(0));
    for refused in [loaded, scaled] {
        assert_eq!(
            refused,
            Err(Fault::Unsupported {
                device: "cuda",
                what: "integers modulo 2^32 but in sums and products of matrices",
            })
        );
    }
    let bytes: Vec<u8> = (0..4 * ROWS).map(|k| (k * 37) as u8).collect();
    device.write(workspace, one(IN), &bytes)?;
    let (ring, minus) = (Ring::Z32, 2);
    let sum = Command::new(
        Op::Combine { ring, minus },
        vec![one(IN); 3],
        vec![one(OUT)],
    );
    device.submit(workspace, &[sum], Tag(1))?;
    completion(&mut device)?;
    assert_eq!(device.view(workspace, one(OUT))?, bytes);
    Ok(())
}

#[test]
fn nothing_takes_effect_after_a_check_that_fails() -> Result<(), Fault> {
    let (mut device, layout) = (device(), layout(1));
    let workspace = device.open(&layout, frame(ROWS))?;
    let all = |region| layout.all(region, 0);
    let bytes: Vec<u8> = (0..2 * 8 * ROWS).map(|k| k as u8).collect();
    device.write(workspace, all(IN), &bytes)?;
    let [x, y] = [0, 1].map(|first| Span {
        first,
        count: 1,
        ..all(OUT)
    });
    let from = Span {
        count: 1,
        ..all(IN)
    };
    let check = Command::new(Op::CheckEqual, vec![x, y], vec![]);
    let again = Command::new(Op::CheckEqual, vec![x, from], vec![]);
    let commands = [copy(from, x), again, check, copy(from, y)];
    device.submit(workspace, &commands, Tag(7))?;
    // The next batch is another one: it begins anew.
    device.submit(workspace, &commands[..2], Tag(8))?;
    let ended = device.poll()?.map(|c| (c.tag, c.outcome));
    assert_eq!(ended, Some((Tag(7), Outcome::Mismatch { command: 2 })));
    let ended = device.poll()?.map(|c| (c.tag, c.outcome));
    assert_eq!(ended, Some((Tag(8), Outcome::Done)));
    assert_eq!(device.poll()?, None);
    assert_eq!(device.view(workspace, x)?, &bytes[..1600]);
    assert_eq!(device.view(workspace, y)?, [0; 1600]);
    Ok(())
}

#[test]
fn a_layer_is_one_launch_however_wide() -> Result<(), Fault> {
    for count in [1, 300] {
        let (mut device, layout) = (device(), layout(count));
        for key in 0..2 {
            device.load_key(KeyId(key), &Secret::new([key as u8; 16]))?;
        }
        let program = device.load(&layer(count), &layout)?;
        let workspace = device.open(&layout, frame(3))?;
        let all = layout.all(MESSAGE, 0);
        let mut run = Command::new(
            Op::Product(Form::replicated(Ring::Z64)),
            vec![],
            vec![all, all],
        );
        run.program = Some(program);
        let call = |key| PrfCall {
            key: KeyId(key),
            tag: DomainTag::MUL3,
            first: 0,
        };
        run.calls = vec![call(0), call(1)];
        // Round keys are made before the first batch.
        device.submit(workspace, &[], Tag(0))?;
        assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
        let before = device.launches();
        device.submit(workspace, &[run], Tag(1))?;
        assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
        assert_eq!(device.launches() - before, 1);
    }
    Ok(())
}

/// A message that is a value of the program would be written while others read it.
#[test]
fn what_is_refused_changes_nothing() -> Result<(), Fault> {
    let (mut device, layout) = (device(), layout(1));
    for key in 0..2 {
        device.load_key(KeyId(key), &Secret::new([key as u8; 16]))?;
    }
    let mut program = Program::clone(&layer(0));
    program.code = vec![Instr::ProductSum {
        pairs: 0..1,
        out: 0,
        index: 0,
    }];
    let id = device.load(&Arc::new(program), &layout)?;
    let workspace = device.open(&layout, frame(ROWS))?;
    let all = |region| layout.all(region, 0);
    let form = Form::replicated(Ring::Z64);
    let messages = vec![all(MESSAGE), all(JOB_WIDE)];
    let mut sum = Command::new(Op::Product(form), vec![], messages);
    sum.program = Some(id);
    let call = |key, tag| PrfCall {
        key: KeyId(key),
        tag,
        first: 0,
    };
    sum.calls = [DomainTag::MUL3, DomainTag::SUM3]
        .into_iter()
        .flat_map(|tag| [call(0, tag), call(1, tag)])
        .collect();
    device.write(workspace, all(IN), &[9; 3200])?;
    let refused = device.submit(workspace, &[copy(all(IN), all(OUT)), sum], Tag(1));
    assert!(
        matches!(refused, Err(Fault::Unsupported { .. })),
        "{refused:?}"
    );
    assert_eq!(device.poll()?, None);
    assert_eq!(device.view(workspace, all(OUT))?, [0; 3200]);
    // The workspace is as it was.
    device.submit(workspace, &[copy(all(IN), all(OUT))], Tag(2))?;
    assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
    assert_eq!(device.view(workspace, all(OUT))?, [9; 3200]);
    Ok(())
}

/// Whatever a program leaves behind, the sums of the next one in its workspace are right.
#[test]
fn programs_share_a_workspace() -> Result<(), Fault> {
    let layout = layout(1);
    let all = |region, part| layout.all(region, part);
    let values = Span {
        count: 2,
        ..all(SLOTS, 0)
    };
    let temps = (0..40).map(|t| Instr::Add(Src::Slot(0), Src::Slot(1), Dst::Temp(t)));
    let last = Instr::Copy(Src::Temp(39), Dst::Slot(0));
    let mut first = Program::clone(&layer(0));
    first.temps = 40;
    first.code = temps.chain([last]).collect();
    let mut second = Program::clone(&layer(0));
    second.code = vec![Instr::Sum(Src::Slot(0), 0)];
    let bytes: Vec<u8> = (0..2 * 8 * ROWS).map(|k| (k * k + 1) as u8).collect();
    let run = |device: &mut dyn Device| -> Result<Vec<u8>, Fault> {
        let mut load = |program: &Program| device.load(&Arc::new(program.clone()), &layout);
        let (first, second) = (load(&first)?, load(&second)?);
        let workspace = device.open(&layout, frame(ROWS))?;
        device.write(workspace, all(IN, 0), &bytes)?;
        let mut commands = vec![copy(all(IN, 0), values)];
        for program in [second, first, second, second] {
            let mut linear = Command::new(Op::Linear, vec![], vec![]);
            linear.program = Some(program);
            commands.push(linear);
        }
        device.submit(workspace, &commands, Tag(1))?;
        assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
        Ok(device.view(workspace, all(SUMS, 0))?.to_vec())
    };
    let want = run(&mut Reference::default())?;
    assert_eq!(run(&mut device())?, want);
    assert_ne!(want, [0; 8]);
    Ok(())
}

/// One launch ends all sums: what depends on their order is not done.
#[test]
fn sums_that_are_written_twice_are_refused() {
    let (mut device, layout) = (device(), layout(1));
    let sum = |slot| Instr::Sum(Src::Slot(slot), 0);
    let mut program = Program::clone(&layer(0));
    program.code = vec![sum(0), sum(1)];
    let refused = device.load(&Arc::new(program.clone()), &layout);
    assert!(
        matches!(refused, Err(Fault::Unsupported { .. })),
        "{refused:?}"
    );
    program.job_wide = SUMS;
    let read = Instr::Copy(Src::JobWide(0), Dst::Slot(0));
    program.code = vec![sum(0), read];
    let refused = device.load(&Arc::new(program), &layout);
    assert!(
        matches!(refused, Err(Fault::Unsupported { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_host_reaches_what_it_may() -> Result<(), Fault> {
    let (mut device, layout) = (device(), layout(1));
    let workspace = device.open(&layout, frame(ROWS))?;
    let all = |region| layout.all(region, 0);
    assert_eq!(device.view(workspace, all(SLOTS)), Err(Fault::NotReachable));
    assert_eq!(
        device.map(workspace, all(SLOTS)).err(),
        Some(Fault::NotReachable)
    );
    assert_eq!(
        device.map(workspace, all(OUT)).err(),
        Some(Fault::NotReachable)
    );
    assert!(device.view(workspace, all(OUT)).is_ok());
    let beyond = Span {
        count: 3,
        ..all(OUT)
    };
    assert_eq!(device.view(workspace, beyond), Err(Fault::NotReachable));
    device.close(workspace);
    assert_eq!(
        device.view(workspace, all(OUT)),
        Err(Fault::Unknown("the workspace"))
    );
    // Another workspace in its place is all zero.
    let workspace = device.open(&layout, frame(ROWS))?;
    device.submit(workspace, &[copy(all(IN), all(OUT))], Tag(1))?;
    assert_eq!(device.view(workspace, all(OUT))?, [0; 3200]);
    device.wipe();
    assert_eq!(device.poll()?, None);
    assert_eq!(
        device.view(workspace, all(OUT)),
        Err(Fault::Unknown("the workspace"))
    );
    Ok(())
}

/// The time of kernels is that of launches, however long the copies of their batch take.
#[test]
fn the_time_of_kernels_has_no_copies_in_it() -> Result<(), Fault> {
    let layout = layout(1);
    let all = |region| layout.all(region, 0);
    for seed in 0..10 {
        let streams = Reordered::new(Emulator::new(Order::Forward), seed);
        let clock = Seconds::default();
        let mut device = Cuda::on(Box::new(streams)).timed(&clock);
        let workspace = device.open(&layout, frame(ROWS))?;
        let copies = [copy(all(IN), all(OUT))];
        device.write(workspace, all(IN), &[9; 3200])?;
        device.submit(workspace, &copies, Tag(1))?;
        assert_eq!(completion(&mut device)?.outcome, Outcome::Done);
        let launches = f64::from(device.launches() as u32) * LAUNCH.as_secs_f64();
        let took = *clock.lock().unwrap();
        assert!(
            (took - launches).abs() < 1e-9,
            "{seed}: {took} s, {launches} s of them launches"
        );
    }
    Ok(())
}

/// A GPU that is lost says so in `poll`, which does not wait for it, and in whatever comes after that.
#[test]
fn a_gpu_that_is_lost_in_a_batch_says_so() -> Result<(), Fault> {
    let layout = layout(1);
    let all = |region| layout.all(region, 0);
    let lost = Emulator::new(Order::Forward).lost_in(2);
    let mut device = Cuda::on(Box::new(lost));
    let workspace = device.open(&layout, frame(ROWS))?;
    let batch = [copy(all(IN), all(OUT))];
    device.submit(workspace, &batch, Tag(1))?;
    assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
    device.submit(workspace, &batch, Tag(2))?;
    assert_eq!(device.poll()?, None, "it goes on");
    let said = loop {
        match device.poll() {
            Ok(None) => {}
            Ok(Some(ended)) => panic!("{ended:?}"),
            Err(fault) => break fault,
        }
    };
    let reason = "an illegal memory access";
    let is = |fault: &Fault| matches!(fault, Fault::Card { device: "cuda", why } if why.contains(reason));
    assert!(is(&said), "{said:?}");
    assert_eq!(device.poll(), Err(said.clone()));
    assert_eq!(device.submit(workspace, &batch, Tag(3)), Err(said));
    device.close(workspace);
    device.wipe();
    Ok(())
}

/// Seventy thousand rows, and a thousand instructions in two hundred levels: all threads meet after each, or each has columns of its own.
#[test]
fn deep_programs_in_many_rows_are_those_of_the_processor() -> Result<(), Fault> {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let want = deep::run(&mut Cpu::detect(), ring)?;
        let emulator = Emulator::new(Order::Reverse);
        assert!(
            deep::run(&mut Cuda::on(Box::new(emulator)), ring)? == want,
            "{ring:?}"
        );
        // As many threads as a GPU has: fewer columns of bits than threads.
        let emulator = Emulator::new(Order::Random(2)).sized(20, 64);
        assert!(
            deep::run(&mut Cuda::on(Box::new(emulator)), ring)? == want,
            "{ring:?}"
        );
    }
    Ok(())
}

/// Slots of 4.4 billion bits, of which the last are used.
#[test]
fn elements_beyond_those_of_32_bits_are_reached() -> Result<(), Fault> {
    let want = far::run(&mut Cpu::detect(), Ring::Bits, 0)?;
    assert!(far::run(&mut device(), Ring::Bits, 2100)? == want);
    Ok(())
}

/// Memory is kept for workspaces of the same layout, and holds nothing of those before.
#[test]
fn a_closed_workspace_is_another_one_all_zero() -> Result<(), Fault> {
    let layout = layout(1);
    let all = |region, part| layout.all(region, part);
    let values = Span {
        count: 2,
        ..all(SLOTS, 1)
    };
    let (fill, look) = ([copy(all(IN, 0), values)], [copy(values, all(OUT, 0))]);
    let mut device = device();
    let run = |device: &mut Cuda, workspace, batch: &[Command]| -> Result<(), Fault> {
        device.submit(workspace, batch, Tag(1))?;
        assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
        Ok(())
    };
    let mut allocated = 0;
    for chunk in 0..5 {
        let frame = Frame {
            chunk,
            ..frame(ROWS)
        };
        let workspace = device.open(&layout, frame)?;
        for part in 0..2 {
            assert_eq!(device.view(workspace, all(IN, part))?, [0; 3200]);
        }
        run(&mut device, workspace, &look)?;
        assert_eq!(device.view(workspace, all(OUT, 0))?, [0; 3200]);
        device.write(workspace, all(IN, 0), &[9; 3200])?;
        run(&mut device, workspace, &fill)?;
        run(&mut device, workspace, &look)?;
        assert_eq!(device.view(workspace, all(OUT, 0))?, [9; 3200]);
        // What the host writes last, no batch takes over.
        device.write(workspace, all(IN, 1), &[7; 3200])?;
        device.close(workspace);
        let before = std::mem::replace(&mut allocated, device.allocations());
        assert_eq!(chunk > 0, before == allocated, "chunk {chunk}");
    }
    // Other rows are other memory.
    let workspace = device.open(&layout, frame(ROWS - 1))?;
    assert!(device.allocations() > allocated);
    device.close(workspace);
    Ok(())
}

/// Keys are made ready together, before the batch that comes next, and one that is loaded anew is another key.
#[test]
fn round_keys_are_made_in_one_launch() -> Result<(), Fault> {
    let layout = layout(1);
    let to = layout.all(OUT, 0);
    let drawn = |device: &mut Cuda, key| -> Result<Vec<u8>, Fault> {
        let workspace = device.open(&layout, frame(ROWS))?;
        let mut random = Command::new(Op::Random, vec![], vec![to]);
        let (tag, first) = (DomainTag::RAND3, 3);
        random.calls = vec![PrfCall { key, tag, first }];
        device.submit(workspace, &[random], Tag(1))?;
        assert_eq!(device.poll()?.map(|c| c.outcome), Some(Outcome::Done));
        Ok(device.view(workspace, to)?.to_vec())
    };
    let mut device = device();
    for key in 0..100 {
        device.load_key(KeyId(key), &Secret::new([key as u8; 16]))?;
    }
    assert_eq!(device.launches(), 0);
    let before = drawn(&mut device, KeyId(70))?;
    assert_eq!(device.launches(), 2, "of round keys, and of what is drawn");
    device.load_key(KeyId(70), &Secret::new([71; 16]))?;
    let after = drawn(&mut device, KeyId(70))?;
    assert_eq!(device.launches(), 4);
    assert_ne!(before, after);
    assert_eq!(after, drawn(&mut device, KeyId(71))?);
    assert_eq!(device.launches(), 5);
    Ok(())
}

/// More keys than there is room for at first: those before them are kept.
#[test]
fn keys_are_kept_when_there_are_more() -> Result<(), Fault> {
    let layout = layout(1);
    let all = |region| layout.all(region, 0);
    let drawn = |others: u16| -> Result<Vec<u8>, Fault> {
        let mut device = device();
        device.load_key(KeyId(1000), &Secret::new([5; 16]))?;
        for key in 0..others {
            device.load_key(KeyId(key), &Secret::new([key as u8; 16]))?;
        }
        let workspace = device.open(&layout, frame(ROWS))?;
        let mut random = Command::new(Op::Random, vec![], vec![all(OUT)]);
        random.calls = vec![PrfCall {
            key: KeyId(1000),
            tag: DomainTag::RAND3,
            first: 3,
        }];
        device.submit(workspace, &[random], Tag(1))?;
        Ok(device.view(workspace, all(OUT))?.to_vec())
    };
    assert_eq!(drawn(200)?, drawn(0)?);
    Ok(())
}

/// Sources of a piece, of a byte more, of a level of pieces and of a byte more, wherever they begin; and none is made after a check failed.
#[test]
fn digests_are_those_of_the_reference_whatever_is_hashed() -> Result<(), Fault> {
    let mut layout = layout(1);
    let mut bytes = |residency, bytes, count| {
        layout.add(Region {
            residency,
            column: ColumnType::Bytes(bytes),
            components: 1,
            count,
        })
    };
    let long = 33 * 1024 + 9;
    let (from, to) = (
        bytes(Residency::Mapped, 1, long),
        bytes(Residency::Public, 32, 1),
    );
    let cut = |first, count| Span {
        region: from,
        component: 0,
        first,
        count,
    };
    let sources = [
        vec![],
        vec![cut(3, 1)],
        vec![cut(0, 1024)],
        vec![cut(1, 1024), cut(2, 1025), cut(3, 7)],
        vec![cut(2, 1026), cut(0, 1027), cut(16, 2048)],
        vec![cut(5, 32 * 1024), cut(9, 32 * 1024 + 1)],
        vec![cut(0, long), cut(3, long - 3)],
    ];
    let text: Vec<u8> = (0..long).map(|k| (k * k / 7) as u8).collect();
    let run = |device: &mut dyn Device, src: &[Span], fails: bool| -> Result<Vec<u8>, Fault> {
        device.bind(SessionId([3; 32]));
        let workspace = device.open(&layout, frame(ROWS))?;
        device.write(workspace, layout.all(from, 0), &text)?;
        let mut commands = Vec::new();
        if fails {
            let differ = vec![cut(0, 5), cut(1, 5)];
            commands.push(Command::new(Op::CheckEqual, differ, vec![]));
        }
        let hash = Op::Hash { label: 5 };
        commands.push(Command::new(hash, src.to_vec(), vec![layout.all(to, 0)]));
        device.submit(workspace, &commands, Tag(1))?;
        let done = device.poll()?.map(|c| c.outcome) == Some(Outcome::Done);
        assert_eq!(done, !fails);
        Ok(device.view(workspace, layout.all(to, 0))?.to_vec())
    };
    for src in &sources {
        let got = run(&mut device(), src, false)?;
        assert_eq!(got, run(&mut Reference::default(), src, false)?, "{src:?}");
        assert_eq!(run(&mut device(), src, true)?, [0; 32]);
    }
    Ok(())
}
