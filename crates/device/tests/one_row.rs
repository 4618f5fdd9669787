//! Programs over labels of one row, with more products than are garbled side by side: every instruction set makes the tables and labels that
//! the reference makes, however many products are left over at the end of a layer.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Cpu, Device, Dst, Frame, Garbling, Instr, Isa, KeyId, Layout, Op, Outcome,
    PrfCall, Program, ProgramId, Reference, Region, Residency, Span, Src, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

const SLOTS: u16 = 0;
const IN: u16 = 3;
const OUT: u16 = 4;
const TABLES: u16 = 5;

/// How products are numbered, and whether they read results of those before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Forwards,
    Backwards,
    Chained,
}

/// Products of two sums each, to the slots behind the first ones.
fn program(products: u32, kind: Kind) -> Program {
    let sums = |k: u32| {
        let there = if kind == Kind::Chained {
            products + k
        } else {
            products
        };
        let slot = |n: u32| Src::Slot(n % there);
        let sum = |n: u32, to| Instr::Add(slot(k + n), slot(5 * k + 3 * n + 1), Dst::Temp(to));
        let index = if kind == Kind::Backwards {
            products - 1 - k
        } else {
            k
        };
        let product = Instr::Product {
            pairs: k..k + 1,
            out: products + k,
            index,
        };
        [sum(0, 2 * k), sum(1, 2 * k + 1), product]
    };
    Program {
        ring: Ring::Bits,
        slots: SLOTS,
        job_wide: 1,
        sums: 2,
        temps: 2 * products,
        pairs: (0..products)
            .map(|k| (Src::Temp(2 * k), Src::Temp(2 * k + 1)))
            .collect(),
        code: (0..products).flat_map(sums).collect(),
    }
}

/// Tables, and labels of all slots: of the garbler, then of an evaluator of other labels and tables.
fn run(
    device: &mut dyn Device,
    (scheme, products, kind): (Garbling, u32, Kind),
) -> Result<Vec<Vec<u8>>, veil_device::Fault> {
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 1,
        count,
    };
    let mut regions = vec![
        region(Residency::Resident, ColumnType::Labels, 2 * products),
        region(Residency::Mapped, ColumnType::Label, 1),
        region(Residency::Mapped, ColumnType::Label, 1),
        region(Residency::Mapped, ColumnType::Labels, 2 * products),
        region(Residency::Public, ColumnType::Labels, 2 * products),
    ];
    let kinds = scheme.tables().iter();
    regions.extend(kinds.map(|(item, count)| region(Residency::Mapped, *item, count * products)));
    let layout = Layout {
        chunk_rows: 8,
        regions,
    };
    for (key, byte) in [(0, 0x35), (1, 2), (2, 3)] {
        device.load_key(KeyId(key), &Secret::new([byte; 16]))?;
    }
    let id: ProgramId = device.load(&Arc::new(program(products, kind)), &layout)?;
    let all = |region| layout.all(region, 0);
    let tables: Vec<Span> = (TABLES..)
        .zip(scheme.tables())
        .map(|(at, _)| all(at))
        .collect();
    let copy = |from, to| {
        let op = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        Command::new(op, vec![all(from)], vec![all(to)])
    };
    let offset = KeyId(0);
    let garble = Command::new(Op::Garble { scheme, offset }, vec![], tables.clone());
    let evaluate = Command::new(Op::Evaluate { scheme }, tables.clone(), vec![]);
    let mut seen = Vec::new();
    for (chunk, mut command) in (1..).zip([garble, evaluate]) {
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk,
            rows: 1,
        };
        let workspace = device.open(&layout, frame)?;
        for span in tables.iter().copied().chain([all(IN)]) {
            let bytes = layout.bytes(span, 1) as u32;
            let some = (0..bytes).map(|k| (k * k / 7 + k * chunk + 3) as u8);
            device.write(workspace, span, &some.collect::<Vec<u8>>())?;
        }
        let call = |key, tag| PrfCall {
            key: KeyId(key),
            tag,
            first: 1000,
        };
        command.program = Some(id);
        command.calls = vec![call(1, DomainTag::GARBLE), call(2, DomainTag::DICE)];
        device.submit(
            workspace,
            &[copy(IN, SLOTS), command, copy(SLOTS, OUT)],
            Tag(0),
        )?;
        let ended = device.poll()?.map(|completion| completion.outcome);
        assert_eq!(ended, Some(Outcome::Done));
        for span in tables.iter().copied().chain([all(OUT)]) {
            seen.push(device.view(workspace, span)?.to_vec());
        }
    }
    Ok(seen)
}

#[test]
fn every_number_of_products_is_garbled_alike() -> Result<(), veil_device::Fault> {
    for scheme in Garbling::ALL {
        for products in 1..=40 {
            for kind in [Kind::Forwards, Kind::Backwards, Kind::Chained] {
                let case = (scheme, products, kind);
                let want = run(&mut Reference::default(), case)?;
                for isa in Isa::available() {
                    let got = run(&mut Cpu::with(isa), case)?;
                    assert_eq!(got, want, "{isa:?}: {case:?}");
                }
            }
        }
    }
    Ok(())
}
