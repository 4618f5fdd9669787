//! What cores take of the rounds of protocols, and what they keep.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Cpu, Device, Fault, Form, Instr, KeyId, Layout, Op, PrfCall, Program,
    Region, Residency, Src,
};
use veil_job::{Adversary, JobSpec};
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task as Phase};
use veil_prss::DomainTag;
use veil_session::{Frame, Peer, Secret};
use veil_testkit::sample::{against, against_malicious, among_four, everything};

use super::loaded::Loaded;
use super::port::{MADE, Order, Port, Ran, Said};
use super::tasks::{Known, Task};
use super::{Cores, Ended};
use crate::Fpga;
use crate::driver::CardError;
use crate::sim::Stalls;

/// All that is known of a plan at a party, with keys of all numbers.
fn known(plan: &Arc<Plan>, me: Peer) -> Known {
    let mut known = Known::default();
    let protocol = veil_protocol::protocol(Arc::clone(plan), me);
    let programs = protocol
        .programs()
        .iter()
        .zip(plan.workspaces_of_programs());
    for (id, (program, of)) in (0..).map(veil_device::ProgramId).zip(programs) {
        let loaded = Loaded::of(program, protocol.layout(of), |_| Some(1));
        let loaded = loaded.expect("it fits").expect("its values are shares");
        known.programs.insert(id, loaded);
    }
    known.keys = (0..64).map(|k| (KeyId(k), Secret::new([0; 16]))).collect();
    known
}

/// Counts tasks of a batch by kind, and finds nothing that a core could do beside them.
fn tasks(known: &Known, batch: &[Command], counts: &mut [usize; 3], checked: bool) {
    let mut at = 0;
    while at < batch.len() {
        at += match known.task(&batch[at..]) {
            Some(Task::Three(_)) => {
                counts[0] += 1;
                1
            }
            Some(Task::First(of)) => {
                counts[1] += of.macs.len().max(1);
                assert!(!checked || of.products.is_none() || !of.macs.is_empty());
                of.programs + of.macs.len()
            }
            Some(Task::Second(of)) => {
                counts[2] += of.to.len();
                assert_eq!(of.macs, if checked { of.to.len() } else { 0 });
                of.commands()
            }
            None => {
                let left = matches!(
                    batch[at].op,
                    Op::Linear | Op::Product(_) | Op::Mac | Op::AddReceived { .. }
                );
                assert!(!left, "{:?} is left to the CPU", batch[at]);
                1
            }
        };
    }
}

fn counted(job: JobSpec, checked: bool) -> [usize; 3] {
    let plan = Plan::new(Arc::new(job), Options::default()).expect("it has a plan");
    let plan = Arc::new(plan);
    let mut counts = [0; 3];
    for me in plan.parties().iter().map(|party| Peer::Party(*party)) {
        let known = known(&plan, me);
        let protocol = veil_protocol::protocol(Arc::clone(&plan), me);
        for chunk in [0, 1] {
            let frame = Frame {
                chunk,
                ..plan.set_up_frame()
            };
            for phase in [Phase::SetUp, Phase::Layers, Phase::Totals] {
                for round in protocol.flow(phase, frame).rounds() {
                    tasks(&known, &round.local, &mut counts, checked);
                    tasks(&known, &round.finish, &mut counts, checked);
                }
            }
        }
    }
    counts
}

#[test]
fn cores_do_all_products_and_codes_of_rounds() {
    let rows = &[13, 9];
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let three = counted(everything(ring, rows), false);
        assert!(three[0] > 0 && three[1..] == [0, 0], "{three:?}");
        let four = counted(among_four(everything(ring, rows)), true);
        assert!(four[0] == 0 && four[1] > 0 && four[2] > 0, "{four:?}");
        let job = against(among_four(everything(ring, rows)), Adversary::SemiHonest);
        let open = counted(job, false);
        assert!(open[1] > 0 && open[2] > 0, "{open:?}");
    }
    let traced = counted(against_malicious(everything(Ring::Bits, rows)), false);
    assert!(traced[0] > 0);
}

const ROWS: u32 = 300;

/// A workspace with two slots, and a program with their product.
fn product(components: u8) -> (Layout, Arc<Program>) {
    let region = |residency, column, count| Region {
        residency,
        column,
        components,
        count,
    };
    let (rows, one) = (ColumnType::Rows(Ring::Z64), ColumnType::One(Ring::Z64));
    let layout = Layout {
        chunk_rows: ROWS,
        regions: vec![
            region(Residency::Resident, rows, 3),
            region(Residency::Mapped, one, 0),
            region(Residency::Mapped, one, 0),
            region(Residency::Mapped, rows, 1),
        ],
    };
    let program = Program {
        ring: Ring::Z64,
        slots: 0,
        job_wide: 1,
        sums: 2,
        temps: 0,
        pairs: vec![(Src::Slot(0), Src::Slot(1))],
        code: vec![Instr::Product {
            pairs: 0..1,
            out: 2,
            index: 0,
        }],
    };
    (layout, Arc::new(program))
}

/// The command that runs it, among three or four parties.
fn command(layout: &Layout, parts: u8) -> Command {
    let (form, keys): (_, &[u16]) = match parts {
        2 => (Form::replicated(Ring::Z64), &[0, 1]),
        _ => (Form::fourfold(Ring::Z64, false, true), &[2, 1, 2, 0, 1]),
    };
    let messages = (0..form.crosses.len() as u8).map(|k| layout.all(3, k));
    let mut command = Command::new(Op::Product(form), vec![], messages.collect());
    command.program = Some(veil_device::ProgramId(0));
    let call = |(d, key): (u16, &u16)| PrfCall {
        key: KeyId(*key),
        tag: if parts == 2 {
            DomainTag::MUL3
        } else {
            DomainTag::joint4(d as u8)
        },
        first: 0,
    };
    command.calls = (0..).zip(keys).map(call).collect();
    command
}

fn secret(key: u8, id: KeyId) -> Secret {
    let mut bytes = [key; 16];
    bytes[0] = id.0 as u8;
    Secret::new(bytes)
}

/// After a wipe no core has a key, and no command with masks is theirs until keys are loaded; a key that is loaded again is not the old one.
#[test]
#[cfg_attr(not(feature = "simulated"), ignore = "tier cores: simulated")]
fn a_wipe_leaves_no_key() {
    let Ok(mut cores) = Cores::simulated(Stalls::default()) else {
        eprintln!("skipped: no Verilator");
        return;
    };
    for parts in [2, 3] {
        let (layout, program) = product(parts);
        let mut host = Cpu::detect();
        let id = host.load(&program, &layout).expect("a valid program");
        cores.load(id, &program, &layout).expect("it fits");
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: ROWS,
        };
        let workspace = host.open(&layout, frame).expect("it is small");
        let batch = [command(&layout, parts)];
        let mut seen = Vec::new();
        for key in [1, 2, 1] {
            assert!(cores.task(&batch).is_none(), "it has no keys");
            for id in (0..3).map(KeyId) {
                cores.load_key(id, &secret(key, id));
            }
            let task = cores.task(&batch).expect("it has its keys");
            let ended = cores.run(&mut host, workspace, (0, &batch), &task);
            assert!(matches!(ended, Ok(Ended::Done(1))));
            assert!(cores.have_keys());
            let message = host
                .view(workspace, layout.all(3, 0))
                .expect("it is mapped");
            seen.push(message.to_vec());
            cores.wipe();
            assert!(!cores.have_keys());
        }
        // Without wiping: the mask is of the new key.
        for id in (0..3).map(KeyId) {
            cores.load_key(id, &secret(1, id));
        }
        let task = cores.task(&batch).expect("it has its keys");
        assert!(cores.run(&mut host, workspace, (0, &batch), &task).is_ok());
        for id in (0..3).map(KeyId) {
            cores.load_key(id, &secret(2, id));
        }
        assert!(!cores.have_keys());
        assert!(cores.run(&mut host, workspace, (0, &batch), &task).is_ok());
        seen.push(
            host.view(workspace, layout.all(3, 0))
                .expect("mapped")
                .to_vec(),
        );
        assert_eq!(seen[0], seen[2]);
        assert_eq!(seen[1], seen[3]);
        assert_ne!(seen[0], seen[1]);
        host.close(workspace);
        cores.wipe();
    }
}

/// What no command of a core can name is refused when the program is loaded.
#[test]
fn what_is_too_long_is_refused() {
    let (layout, program) = product(2);
    let loaded = |program: &Program, layout: &Layout| {
        Loaded::of(program, layout, |_| Some(1)).map(|loaded| loaded.is_some())
    };
    assert_eq!(loaded(&program, &layout), Ok(true));
    let rows = (1 << 17) + 1;
    let long = Layout {
        chunk_rows: rows,
        ..layout.clone()
    };
    let why = loaded(&program, &long).expect_err("65 537 beats");
    assert!(why.contains("65537 beats"), "{why}");
    let mut many = Program::clone(&program);
    many.pairs = vec![many.pairs[0]; 1 << 16];
    many.code = vec![Instr::Product {
        pairs: 0..1 << 16,
        out: 2,
        index: 0,
    }];
    let why = loaded(&many, &layout).expect_err("65 536 pairs");
    assert!(why.contains("65536 products"), "{why}");
    // Labels are no shares.
    let mut labels = layout;
    labels.regions[0].column = ColumnType::Labels;
    assert_eq!(loaded(&program, &labels), Ok(false));
}

/// A core that is told nothing in a test: programs are loaded by the host.
struct Idle;

impl Port for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn order(&mut self, _order: &Order) -> Result<Said, CardError> {
        Ok(Said::No)
    }

    fn run(&mut self, _given: &[&[u8]], _made: &mut [&mut [u8]]) -> Result<Ran, CardError> {
        Ok(Ran {
            cycles: 0,
            moved: [0; MADE],
        })
    }
}

/// The programs of a job's plan on a card with cores of shares, or without: those that it refuses.
fn refused(job: JobSpec, with_cores: bool) -> Vec<(Ring, Fault)> {
    let plan = Plan::new(Arc::new(job), Options::default()).expect("it has a plan");
    let plan = Arc::new(plan);
    let protocol = veil_protocol::protocol(Arc::clone(&plan), Peer::Party(plan.parties()[0]));
    let mut card = Fpga::new("card", None);
    if with_cores {
        card = card.shares(Cores::with([
            Box::new(Idle),
            Box::new(Idle),
            Box::new(Idle),
        ]));
    }
    let programs = protocol.programs().iter();
    let load = programs
        .zip(plan.workspaces_of_programs())
        .map(|(program, of)| (program.ring, card.load(program, protocol.layout(of))));
    load.filter_map(|(ring, ended)| Some((ring, ended.err()?)))
        .collect()
}

/// Cores refuse every program over Z_2^32 when it is loaded, before anything is computed, and no program over another ring. A card without them
/// leaves shares to its host, which has all rings.
#[test]
fn integers_of_32_bits_are_refused() {
    for job in [
        everything(Ring::Z32, &[13]),
        among_four(everything(Ring::Z32, &[13])),
    ] {
        let found = refused(job.clone(), true);
        assert!(!found.is_empty());
        for (ring, fault) in found {
            assert_eq!(ring, Ring::Z32, "{fault}");
            assert_eq!(
                fault,
                Fault::Unsupported {
                    device: "card",
                    what: "integers modulo 2^32: its cores add and multiply words of 64 and of 128 bits",
                }
            );
        }
        assert_eq!(refused(job, false), []);
    }
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        assert_eq!(refused(everything(ring, &[13]), true), [], "{ring:?}");
    }
}
