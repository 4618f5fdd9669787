//! What fits no workspace is refused by every device before it touches the workspace's memory.

use std::sync::Arc;

use veil_device::proof::TRACE_PARTS;
use veil_device::{
    ColumnType, Command, Cpu, Device, Dst, Fault, Form, Frame, Instr, KeyId, Layout, Op, PrfCall,
    Program, Proof, Reference, Region, Residency, Side, Span, Src, Tag, Workspace,
};
use veil_math::Ring;
use veil_prss::DomainTag;

const RING: Ring = Ring::Z64;

fn layout(slots: u32) -> Layout {
    let region = |residency, column, components, count| Region {
        residency,
        column,
        components,
        count,
    };
    Layout {
        chunk_rows: 8,
        regions: vec![
            region(Residency::Resident, ColumnType::Rows(RING), 2, slots),
            region(Residency::Mapped, ColumnType::One(RING), 2, 1),
            region(Residency::Mapped, ColumnType::One(RING), 2, 1),
            region(Residency::Mapped, ColumnType::Rows(RING), 1, 2),
        ],
    }
}

fn program(temps: u32, code: Vec<Instr>) -> Arc<Program> {
    Arc::new(Program {
        ring: RING,
        slots: 0,
        job_wide: 1,
        sums: 2,
        temps,
        pairs: vec![(Src::Slot(0), Src::Slot(1))],
        code,
    })
}

/// Slot 2 = slot 0 + slot 1, by way of a temp.
fn sum() -> Arc<Program> {
    program(
        1,
        vec![
            Instr::Add(Src::Slot(0), Src::Slot(1), Dst::Temp(0)),
            Instr::Copy(Src::Temp(0), Dst::Slot(2)),
        ],
    )
}

fn product(index: u32) -> Arc<Program> {
    program(
        0,
        vec![Instr::Product {
            pairs: 0..1,
            out: 2,
            index,
        }],
    )
}

fn open(device: &mut dyn Device, slots: u32) -> Workspace {
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 1,
        rows: 8,
    };
    device.open(&layout(slots), frame).unwrap()
}

pub(crate) fn each(test: impl Fn(&mut dyn Device)) {
    test(&mut Reference::default());
    for isa in veil_device::Isa::available() {
        test(&mut Cpu::with(isa));
    }
}

#[test]
fn a_program_runs_on_workspaces_of_its_layout_only() {
    each(|device| {
        let id = device.load(&sum(), &layout(3)).unwrap();
        let mut command = Command::new(Op::Linear, vec![], vec![]);
        command.program = Some(id);
        let (good, small) = (open(device, 3), open(device, 1));
        assert_eq!(device.submit(good, &[command.clone()], Tag(1)), Ok(()));
        let refused = device.submit(small, &[command.clone()], Tag(2));
        let other = Fault::Program("it was loaded for workspaces of another layout");
        assert_eq!(refused, Err(other), "{}", device.name());
        // A command that needs no program does not mind one that does not fit.
        let mut random = Command::new(Op::Random, vec![], vec![layout(1).all(3, 0)]);
        random.program = Some(id);
        let refused = device.submit(small, &[random], Tag(3)).unwrap_err();
        let call = "one destination and one draw are needed";
        assert!(refused.to_string().contains(call), "{refused}");
    });
}

/// Temps lie behind the slots: a workspace that was opened before has no room for them.
#[test]
fn a_workspace_has_no_room_for_what_is_loaded_later() {
    for isa in veil_device::Isa::available() {
        let mut device = Cpu::with(isa);
        let workspace = open(&mut device, 3);
        let mut command = Command::new(Op::Linear, vec![], vec![]);
        command.program = Some(device.load(&sum(), &layout(3)).unwrap());
        let refused = device.submit(workspace, &[command.clone()], Tag(1));
        let late = Fault::Program("it was loaded after the workspace was opened");
        assert_eq!(refused, Err(late));
        let workspace = open(&mut device, 3);
        assert_eq!(device.submit(workspace, &[command], Tag(2)), Ok(()));
    }
}

#[test]
fn products_have_room_for_their_messages_and_counters_an_end() {
    each(|device| {
        let beyond = device.load(&product(u32::MAX), &layout(3));
        assert_eq!(beyond, Err(Fault::Program("a product beyond any message")));
        let id = device.load(&product(1), &layout(3)).unwrap();
        let workspace = open(device, 3);
        device
            .load_key(KeyId(0), &veil_session::Secret::new([7; 16]))
            .unwrap();
        let mut run = |first, calls, count| {
            let message = veil_device::Span {
                count,
                ..layout(3).all(3, 0)
            };
            let mut command =
                Command::new(Op::Product(Form::replicated(RING)), vec![], vec![message]);
            command.program = Some(id);
            let call = |k| PrfCall {
                key: KeyId(0),
                tag: DomainTag(DomainTag::MUL3.0 + k),
                first,
            };
            command.calls = (0..calls).map(call).collect();
            device.submit(workspace, &[command], Tag(1))
        };
        assert_eq!(run(0, 2, 2), Ok(()));
        let short = run(100, 2, 1).unwrap_err().to_string();
        assert!(short.contains("too short for its products"), "{short}");
        for (first, calls) in [(u64::MAX - 3, 2), (100, 13)] {
            let refused = run(first, calls, 2).unwrap_err().to_string();
            assert!(
                refused.contains("more draws than a product has"),
                "{refused}"
            );
        }
    });
}

/// Items are multiplied by others of their shape, and nothing that is read is written.
#[test]
fn items_are_multiplied_by_others_of_their_ring() {
    each(|device| {
        let workspace = open(device, 3);
        let slots = |part, first, count| Span {
            region: 0,
            component: part,
            first,
            count,
        };
        let mut run = |src: Vec<Span>, to| {
            let command = Command::new(Op::Scale, src, vec![to]);
            device.submit(workspace, &[command], Tag(1))
        };
        let message = layout(3).all(3, 0);
        let twice = vec![slots(0, 0, 2), slots(1, 1, 2)];
        assert_eq!(run(twice.clone(), message), Ok(()));
        for (src, to, why) in [
            (vec![slots(0, 0, 2)], message, "two sources"),
            (vec![slots(0, 0, 2), slots(1, 1, 1)], message, "of one ring"),
            (
                vec![slots(0, 0, 1), layout(3).all(1, 0)],
                slots(0, 2, 1),
                "of one ring",
            ),
            (twice.clone(), slots(1, 0, 2), "overlaps a source"),
            (twice, slots(0, 1, 2), "overlaps a source"),
        ] {
            let refused = run(src, to).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    });
}

/// A step of a proof reads and writes what it is told to: spans of another shape, or shorter than the batch needs, are refused.
#[test]
fn steps_of_a_proof_stay_within_their_spans() {
    let region = |residency, column, components, count| Region {
        residency,
        column,
        components,
        count,
    };
    let (bits, element) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Z64));
    let layout = Layout {
        chunk_rows: 8,
        regions: vec![
            region(Residency::Resident, bits, TRACE_PARTS, 5),
            region(Residency::Mapped, bits, 1, 5),
            region(Residency::Resident, element, 4, 32),
            region(Residency::Mapped, element, 1, 300),
        ],
    };
    let all = |region, part| layout.all(region, part);
    let some = |first, count| Span {
        first,
        count,
        ..layout.all(3, 0)
    };
    let gates = vec![all(0, 0), all(1, 0)];
    let seeded = [gates.clone(), vec![some(0, 2)]].concat();
    let expand = [seeded.clone(), vec![some(2, 1), some(3, 1)]].concat();
    let side = Side::OwnNext;
    let claims = |side| Proof::Claims { side };
    let share = |level, products, last| Proof::Share {
        level,
        products,
        last,
    };
    let fold = |level, products| Proof::Fold { level, products };
    let verify = |level, last| Proof::Verify { level, last };
    let vectors = vec![all(2, 0), all(2, 1)];
    let (short, challenge) = (some(2, 31), some(0, 1));
    let pieces = some(0, 32);
    let with = |spans: &[Span], also: Span| [spans, &[also]].concat();
    let folded = vec![all(2, 0), challenge];
    let one = vec![some(299, 1)];
    let cases = [
        (claims(Side::Next), seeded.clone(), vec![pieces], true),
        (claims(Side::Next), seeded.clone(), vec![some(0, 31)], false),
        (claims(side), seeded.clone(), vec![pieces], false),
        (claims(Side::Next), gates.clone(), vec![pieces], false),
        (
            claims(Side::Next),
            with(&gates, challenge),
            vec![pieces],
            false,
        ),
        (
            claims(Side::Next),
            vec![all(1, 0), all(1, 0), some(0, 2)],
            vec![pieces],
            false,
        ),
        (
            claims(Side::Next),
            vec![all(0, 1), all(1, 0), some(0, 2)],
            vec![pieces],
            false,
        ),
        (share(1, 5, false), seeded.clone(), vec![some(10, 31)], true),
        (
            share(1, 4, false),
            seeded.clone(),
            vec![some(10, 31)],
            false,
        ),
        (share(1, 5, true), seeded.clone(), vec![some(10, 31)], false),
        (share(2, 5, false), seeded.clone(), vec![some(10, 6)], false),
        (
            share(2, 5, false),
            with(&seeded, challenge),
            vec![some(10, 6)],
            true,
        ),
        // Five products of eight rows are a word of each piece: 32 values after two levels.
        (
            Proof::Expand { side },
            expand.clone(),
            vec![all(2, 3)],
            true,
        ),
        (Proof::Expand { side }, expand.clone(), vec![short], false),
        (
            Proof::Expand { side },
            expand[..4].to_vec(),
            vec![all(2, 3)],
            false,
        ),
        (fold(3, 32), folded.clone(), vec![all(2, 0)], true),
        (fold(3, 33), folded.clone(), vec![all(2, 0)], false),
        (fold(2, 5), folded.clone(), vec![all(2, 0)], false),
        (fold(3, 5), folded, vec![all(2, 1)], false),
        (share(3, 5, false), vectors.clone(), vec![some(0, 14)], true),
        (
            share(3, 5, false),
            vectors.clone(),
            vec![some(0, 15)],
            false,
        ),
        (share(3, 5, true), vectors.clone(), vec![some(0, 14)], false),
        (share(3, 33, false), vectors, vec![some(0, 14)], false),
        (
            verify(1, false),
            vec![pieces, some(40, 31), challenge],
            one.clone(),
            true,
        ),
        (
            verify(1, true),
            vec![pieces, some(40, 31), challenge],
            one.clone(),
            false,
        ),
        (
            verify(2, false),
            vec![some(0, 1), some(40, 6), challenge],
            one.clone(),
            true,
        ),
        (
            verify(2, false),
            vec![pieces, some(40, 6), challenge],
            one.clone(),
            false,
        ),
        (
            verify(3, true),
            vec![some(0, 1), some(40, 14), challenge],
            one.clone(),
            true,
        ),
        (
            verify(0, false),
            vec![some(0, 1), some(40, 14), challenge],
            one,
            false,
        ),
        (Proof::Compare, vec![some(0, 1), some(1, 1)], vec![], false),
        (Proof::Compare, vec![some(0, 3), some(5, 3)], vec![], false),
    ];
    each(|device| {
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: 8,
        };
        let workspace = device.open(&layout, frame).unwrap();
        device
            .load_key(KeyId(0), &veil_session::Secret::new([7; 16]))
            .unwrap();
        for (k, (proof, src, dst, fits)) in cases.iter().enumerate() {
            let mut command = Command::new(Op::Proof(*proof), src.clone(), dst.clone());
            let call = PrfCall {
                key: KeyId(0),
                tag: DomainTag::AND3,
                first: 100 * k as u64,
            };
            command.calls = vec![call; usize::from(matches!(proof, Proof::Share { .. }))];
            let done = device.submit(workspace, &[command], Tag(k as u64));
            assert_eq!(done.is_ok(), *fits, "{} case {k}: {done:?}", device.name());
            if let Err(fault) = done {
                assert!(fault.to_string().contains("step of a proof"), "{fault}");
            }
        }
    });
}
