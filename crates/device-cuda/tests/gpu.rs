//! The first GPU of this machine. Where there is none the tests say why and pass, unless `VEIL_GPU_REQUIRED` is 1; with `VEIL_GPU_EMULATOR` they have
//! the emulator in its place. `VEIL_GPU_CASES` is how many cases the suite has [default: 25].

use std::env;

use veil_device::conformance::{Part, check_part};
use veil_device::{
    Command, Device, Draw, Fault, Frame, Item, KeyId, Layout, Op, Outcome, Place, Reference,
    Region, Tag,
};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Absent, Emulator, Order};
use veil_math::Ring;
use veil_prss::Use;
use veil_session::Secret;

fn is(name: &str) -> bool {
    env::var(name).is_ok_and(|value| value == "1")
}

fn gpu() -> Option<Cuda> {
    if is("VEIL_GPU_EMULATOR") {
        return Some(Cuda::on(Box::new(Emulator::new(Order::Random(3)))));
    }
    match Cuda::open(0) {
        Ok(gpu) => Some(gpu),
        Err(absent) => {
            assert!(!is("VEIL_GPU_REQUIRED"), "{absent}");
            println!("absent: {absent}");
            None
        }
    }
}

fn passes(part: Part) {
    let cases = env::var("VEIL_GPU_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(25);
    if let Some(mut device) = gpu() {
        check_part(&mut device, part, 11, cases).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn programs_over_shares_equal_the_reference() {
    passes(Part::Rings);
}

#[test]
fn integers_equal_the_reference() {
    passes(Part::Integers);
}

#[test]
fn proofs_equal_the_reference() {
    passes(Part::Proofs);
}

#[test]
fn programs_over_labels_equal_the_reference() {
    passes(Part::Labels);
}

#[test]
fn repetitions_equal_the_reference() {
    passes(Part::Repeats);
}

#[test]
fn transfers_equal_the_reference() {
    passes(Part::Transfers);
}

#[test]
fn steps_of_cut_and_choose_equal_the_reference() {
    passes(Part::Cut);
}

/// No machine has a thousand of them.
#[test]
fn a_gpu_that_is_not_there_is_absent() {
    let absent = Cuda::open(1000).err();
    println!("absent: {absent:?}");
    assert!(matches!(
        absent,
        Some(Absent::Code | Absent::Driver | Absent::Gpu { number: 1000, .. })
    ));
}

/// Three banks are written, computed and read in turns, with batches of all of them under way: each has what is its own.
#[test]
fn batches_of_several_banks_are_under_way_at_once() -> Result<(), Fault> {
    const ROWS: u32 = 4096;
    let rows = Item::Rows(Ring::Z64);
    let mut layout = Layout {
        chunk_rows: ROWS,
        regions: vec![],
    };
    let [from, mask, to] = [Place::Mapped, Place::Resident, Place::Public].map(|place| {
        let (item, parts, count) = (rows, 1, 16);
        let region = layout.add(Region {
            place,
            item,
            parts,
            count,
        });
        layout.all(region, 0)
    });
    let ring = Ring::Z64;
    let add = Op::Combine { ring, minus: 0 };
    let batch = |first: u64| {
        let mut random = Command::new(Op::Random, vec![], vec![mask]);
        let (key, tag) = (KeyId(1), Use::RAND3);
        random.draws = vec![Draw { key, tag, first }];
        [
            random,
            Command::new(add.clone(), vec![from, mask], vec![to]),
        ]
    };
    let key = Secret::new([7; 16]);
    let input = |bank: usize, turn: u64| {
        let byte = move |k: u32| (u64::from(k) * 31 + bank as u64 * 7 + turn) as u8;
        (0..16 * 8 * ROWS).map(byte).collect::<Vec<u8>>()
    };
    let frame = |chunk| Frame {
        epoch: 0,
        lane: 0,
        chunk,
        rows: ROWS,
    };
    let Some(mut device) = gpu() else {
        return Ok(());
    };
    device.load_key(KeyId(1), &key)?;
    let banks = [0, 1, 2].map(|chunk| device.open(&layout, frame(chunk)));
    let banks = banks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut ended = 0;
    let mut got = vec![];
    for turn in 0..4 {
        for (k, bank) in banks.iter().enumerate() {
            // The last batch of this bank may be on its way, and those of the others are.
            device.write(*bank, from, &input(k, turn))?;
            device.submit(*bank, &batch(turn * 10_000_000), Tag(turn * 3 + k as u64))?;
        }
        while ended < 3 * (turn + 1) {
            if let Some(end) = device.poll() {
                assert_eq!((end.tag, end.outcome), (Tag(ended), Outcome::Done));
                ended += 1;
            }
        }
        for bank in &banks {
            got.push(device.view(*bank, to)?.to_vec());
        }
    }
    let mut want = vec![];
    let mut reference = Reference::default();
    reference.load_key(KeyId(1), &key)?;
    let banks = [0, 1, 2].map(|chunk| reference.open(&layout, frame(chunk)));
    let banks = banks.into_iter().collect::<Result<Vec<_>, _>>()?;
    for turn in 0..4 {
        for (k, bank) in banks.iter().enumerate() {
            reference.write(*bank, from, &input(k, turn))?;
            reference.submit(*bank, &batch(turn * 10_000_000), Tag(0))?;
            assert_eq!(reference.poll().map(|end| end.outcome), Some(Outcome::Done));
            want.push(reference.view(*bank, to)?.to_vec());
        }
    }
    assert!(got == want);
    Ok(())
}
