//! The first GPU of this machine. Where there is none the tests say why and pass, unless `VEIL_GPU_REQUIRED` is 1; with `VEIL_GPU_EMULATOR` they have
//! the emulator in its place. `VEIL_GPU_CASES` is how many cases the suite has [default: 25].

#[path = "common/deep.rs"]
mod deep;
#[path = "common/far.rs"]
mod far;
#[path = "common/linear.rs"]
mod linear;

use std::env;

use veil_device::conformance::{Product, Section, check_product, check_section};
use veil_device::{
    ColumnType, Command, Cpu, Device, Fault, Frame, KeyId, Layout, Op, Outcome, PrfCall, Reference,
    Region, Residency, Tag,
};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Absent, Emulator, Order};
use veil_math::Ring;
use veil_prss::DomainTag;
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

fn passes(section: Section) {
    let cases = env::var("VEIL_GPU_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(25);
    if let Some(mut device) = gpu() {
        check_section(&mut device, section, 11, cases).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn programs_over_shares_equal_the_reference() {
    passes(Section::Rings);
}

#[test]
fn integers_equal_the_reference() {
    passes(Section::Integers);
}

#[test]
fn products_of_matrices_equal_the_reference() {
    passes(Section::Matrices);
}

/// Tiles beyond those of all multiprocessors, few tiles of many terms, and sums of the largest limbs that do not fit 32 bits. Of an emulated GPU they are
/// smaller.
#[test]
fn large_products_of_matrices_are_those_of_the_processor() {
    let Some(mut device) = gpu() else {
        return;
    };
    let share = if device.name() == "cuda" { 1 } else { 16 };
    let of_all = [
        ([1000, 300, 1200], false),
        ([100_000, 70, 90], true),
        ([1000, 4, 1000], true),
    ];
    for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
        for (shape, transposed) in of_all {
            for four in [false, true] {
                let shape = shape.map(|size: u32| size.div_ceil(share));
                let saturated = false;
                let of = Product {
                    ring,
                    four,
                    transposed,
                    shape,
                    saturated,
                };
                let same = check_product(&mut device, &mut Cpu::detect(), of);
                assert_eq!(same, Ok(()), "{of:?}");
            }
        }
    }
    if share > 1 {
        return;
    }
    // As many tiles as are not split by their terms, of more terms than fit.
    for (ring, terms) in [(Ring::Z64, 9000), (Ring::Z128, 3000)] {
        let (four, transposed, saturated) = (false, true, true);
        let shape = [terms, 1024, 1024];
        let of = Product {
            ring,
            four,
            transposed,
            shape,
            saturated,
        };
        let same = check_product(&mut device, &mut Cpu::detect(), of);
        assert_eq!(same, Ok(()), "{of:?}");
    }
}

#[test]
fn proofs_equal_the_reference() {
    passes(Section::Proofs);
}

#[test]
fn programs_over_labels_equal_the_reference() {
    passes(Section::Labels);
}

#[test]
fn repetitions_equal_the_reference() {
    passes(Section::Repeats);
}

#[test]
fn transfers_equal_the_reference() {
    passes(Section::Transfers);
}

#[test]
fn steps_of_cut_and_choose_equal_the_reference() {
    passes(Section::Cut);
}

#[test]
fn deep_programs_in_many_rows_are_those_of_the_processor() -> Result<(), Fault> {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let Some(mut device) = gpu() else {
            return Ok(());
        };
        let want = deep::run(&mut Cpu::detect(), ring)?;
        assert!(deep::run(&mut device, ring)? == want, "{ring:?}");
    }
    Ok(())
}

/// Slots of 4.4 billion bits, and others of five billion bytes, of which the last are used.
#[test]
fn elements_and_bytes_beyond_those_of_32_bits_are_reached() -> Result<(), Fault> {
    for (ring, before) in [(Ring::Bits, 2100), (Ring::Z128, 140)] {
        let Some(mut device) = gpu() else {
            return Ok(());
        };
        // An emulated workspace is memory of this machine.
        if device.name() != "cuda" && ring != Ring::Bits {
            return Ok(());
        }
        let want = far::run(&mut Cpu::detect(), ring, 0)?;
        assert!(far::run(&mut device, ring, before)? == want, "{ring:?}");
    }
    Ok(())
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

/// Three workspaces are written, computed and read in turns, with batches of all of them under way: each has what is its own.
#[test]
fn batches_of_several_workspaces_are_under_way_at_once() -> Result<(), Fault> {
    const ROWS: u32 = 4096;
    let rows = ColumnType::Rows(Ring::Z64);
    let mut layout = Layout {
        chunk_rows: ROWS,
        regions: vec![],
    };
    let [from, mask, to] =
        [Residency::Mapped, Residency::Resident, Residency::Public].map(|residency| {
            let (item, parts, count) = (rows, 1, 16);
            let region = layout.add(Region {
                residency,
                column: item,
                components: parts,
                count,
            });
            layout.all(region, 0)
        });
    let ring = Ring::Z64;
    let add = Op::Combine { ring, minus: 0 };
    let batch = |first: u64| {
        let mut random = Command::new(Op::Random, vec![], vec![mask]);
        let (key, tag) = (KeyId(1), DomainTag::RAND3);
        random.calls = vec![PrfCall { key, tag, first }];
        [
            random,
            Command::new(add.clone(), vec![from, mask], vec![to]),
        ]
    };
    let key = Secret::new([7; 16]);
    let input = |workspace: usize, turn: u64| {
        let byte = move |k: u32| (u64::from(k) * 31 + workspace as u64 * 7 + turn) as u8;
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
    let workspaces = [0, 1, 2].map(|chunk| device.open(&layout, frame(chunk)));
    let workspaces = workspaces.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut ended = 0;
    let mut got = vec![];
    for turn in 0..4 {
        for (k, workspace) in workspaces.iter().enumerate() {
            // The last batch of this workspace may be on its way, and those of the others are.
            device.write(*workspace, from, &input(k, turn))?;
            device.submit(
                *workspace,
                &batch(turn * 10_000_000),
                Tag(turn * 3 + k as u64),
            )?;
        }
        while ended < 3 * (turn + 1) {
            if let Some(end) = device.poll()? {
                assert_eq!((end.tag, end.outcome), (Tag(ended), Outcome::Done));
                ended += 1;
            }
        }
        for workspace in &workspaces {
            got.push(device.view(*workspace, to)?.to_vec());
        }
    }
    let mut want = vec![];
    let mut reference = Reference::default();
    reference.load_key(KeyId(1), &key)?;
    let workspaces = [0, 1, 2].map(|chunk| reference.open(&layout, frame(chunk)));
    let workspaces = workspaces.into_iter().collect::<Result<Vec<_>, _>>()?;
    for turn in 0..4 {
        for (k, workspace) in workspaces.iter().enumerate() {
            reference.write(*workspace, from, &input(k, turn))?;
            reference.submit(*workspace, &batch(turn * 10_000_000), Tag(0))?;
            let ended = reference.poll()?.map(|end| end.outcome);
            assert_eq!(ended, Some(Outcome::Done));
            want.push(reference.view(*workspace, to)?.to_vec());
        }
    }
    assert!(got == want);
    Ok(())
}
