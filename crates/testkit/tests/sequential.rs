//! Sequential circuits on the engine: what every protocol makes of them is what evaluation in the clear says, in memory that does not
//! depend on the number of cycles.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_circuit::{Builder, Circuit, Initial, Limits, Per, Reduce, scd};
use veil_engine::{Data, Settings, local, participants};
use veil_job::{Adversary, Audience, Holder, JobSpec, Rows, Schedule, Tables};
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError, Task, WorkspaceOf, protocol};
use veil_session::{Frame, Peer};
use veil_testkit::sample::{against, against_malicious, among_four, between_two, job, party, peer};
use veil_testkit::{Seed, Seen, Values, World, clocked};

type Protocol = (&'static str, fn(JobSpec) -> JobSpec);

/// Every protocol on bits.
const PROTOCOLS: [Protocol; 10] = [
    ("rep3", |job| job),
    ("rep3, malicious", against_malicious),
    ("rep4", among_four),
    ("rep4, semi-honest", |job| {
        against(among_four(job), Adversary::SemiHonest)
    }),
    ("yao", between_two),
    ("yao, three halves", |job| {
        let mut job = between_two(job);
        job.security.tables = Tables::ThreeHalves;
        job
    }),
    ("yao, malicious", |job| {
        against(between_two(job), Adversary::Malicious)
    }),
    ("yao, list(1)", |job| listed(job, Rows::One)),
    ("yao, list(2)", |job| listed(job, Rows::Two)),
    ("yao, three halves, list(4)", |job| {
        let mut job = listed(job, Rows::Four);
        job.security.tables = Tables::ThreeHalves;
        job
    }),
];

/// A job between two, whose gates are in the order of hardware.
fn listed(job: JobSpec, rows: Rows) -> JobSpec {
    let mut job = between_two(job);
    job.security.schedule = Schedule::List(rows);
    job
}

/// A job of a circuit of [`clocked`]: blocks whose inputs come from parties and from outside, outputs for all and for one.
fn job_of(circuit: Circuit) -> JobSpec {
    let outside = [0, 1, 1, 0].map(Holder::Owner);
    let mixed = [
        Holder::Party(party(1)),
        Holder::Party(party(0)),
        Holder::Owner(0),
        Holder::Owner(0),
    ];
    let audiences = [Audience::Parties, Audience::Recipient(0)];
    job(circuit, &[(13, &outside), (9, &mixed)], &audiences)
}

#[test]
fn every_protocol_computes_what_the_clear_evaluation_does() {
    let seed = Seed::any();
    let mut numbers = seed.numbers("circuits");
    for _ in 0..24 {
        let circuit = clocked(Seed(numbers.next_u128() as u64));
        circuit.validate().expect("a valid circuit");
        for (name, of) in PROTOCOLS {
            let job = of(job_of(circuit.clone()));
            println!("{seed}: {name}: {}", circuit.stats());
            World::in_chunks(job, 8, 2).seed(seed).run().assert_right();
        }
    }
}

#[test]
fn participants_that_run_for_themselves_get_the_same() {
    let seed = Seed::any();
    let circuit = clocked(seed);
    for (name, of) in PROTOCOLS {
        println!("{seed}: {name}");
        let job = of(job_of(circuit.clone()));
        World::in_chunks(job, 16, 1)
            .window(3)
            .run_apart()
            .assert_right();
    }
}

/// A shift register of `bits` bits with one AND in what it takes next, which a bit from outside is added to; the state at the end.
fn shift_register(bits: usize, cycles: u64, per: Per) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(cycles);
    let start = b.input("start", bits as u32, Per::Row);
    let x = b.input("x", 1, per)[0];
    let state: Vec<_> = (start.iter().map(|wire| b.register(Initial::Wire(*wire)))).collect();
    let both = b.and(state[0], state[bits / 2]);
    let sum = b.xor(both, state[bits - 1]);
    let new = b.xor(sum, x);
    for (k, bit) in state.iter().enumerate() {
        b.set_next(*bit, if k == 0 { new } else { state[k - 1] });
    }
    b.output("state", &[&[new], &state[..]].concat());
    b.finish().expect("a valid circuit")
}

/// So many registers, each of which takes what the one before it has, the first one a bit of every cycle: what the last one has, and its product
/// with that bit. Without registers the bit itself.
fn chain(registers: usize, cycles: u64) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(cycles);
    let start = b.input("start", registers.max(1) as u32, Per::Row);
    let x = b.input("x", 1, Per::Cycle)[0];
    let first = start.iter().take(registers);
    let state: Vec<_> = first.map(|wire| b.register(Initial::Wire(*wire))).collect();
    for (k, bit) in state.iter().enumerate() {
        b.set_next(*bit, if k == 0 { x } else { state[k - 1] });
    }
    let last = state.last().copied().unwrap_or(x);
    let both = b.and(last, start[0]);
    let wires = [b.xor(both, last), last];
    b.output_every_cycle("last", &wires);
    b.finish().expect("a valid circuit")
}

/// No register, one, and chains of two to nine: a bit comes out as many cycles later, and before it what the registers began with.
#[test]
fn what_registers_take_from_each_other_arrives_a_cycle_later() {
    const CYCLES: usize = 7;
    for registers in [0, 1, 2, 3, 9] {
        let circuit = chain(registers, CYCLES as u64);
        for (name, of) in PROTOCOLS {
            println!("{name}: {registers} registers");
            let job = of(one_block(circuit.clone(), 21));
            let outcome = World::in_chunks(job, 8, 2).run();
            outcome.assert_right();
            let rows = outcome.rows(peer(1), 0).expect("all parties get it");
            for (inputs, row) in outcome.values.blocks[0].iter().zip(rows) {
                let [start, x] = &inputs[..] else {
                    panic!("two ports")
                };
                let begun = start.iter().take(registers).rev();
                let last: Vec<u128> = begun.chain(x).copied().take(CYCLES).collect();
                let want = last.iter().flat_map(|bit| [(bit & start[0]) ^ bit, *bit]);
                assert_eq!(row, want.collect::<Vec<_>>(), "{}", outcome.seed);
            }
        }
    }
}

fn one_block(circuit: Circuit, rows: u64) -> JobSpec {
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    job(circuit, &[(rows, &holders)], &[Audience::Parties])
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn windows_of_inputs_and_batches_of_proofs_come_to_their_ends() {
    // 700 cycles: two windows of 256 bits and a rest; and with 4096 rows batches of 128 cycles and a rest.
    for (name, of) in PROTOCOLS {
        println!("{name}");
        let job = of(one_block(shift_register(9, 700, Per::Cycle), 4096 + 3));
        World::in_chunks(job, 4096, 1)
            .devices(|_| Box::new(veil_device::Cpu::detect()))
            .run()
            .assert_right();
    }
}

/// What a link may carry is that of the block in which most has to be sent, wherever it is.
#[test]
fn blocks_differ_in_who_supplies_inputs_of_cycles() {
    let [first, second] = [0, 1].map(|p| Holder::Party(party(p)));
    for (name, of) in PROTOCOLS {
        println!("{name}");
        let circuit = shift_register(9, 200, Per::Cycle);
        let blocks: [(u64, &[Holder]); 3] = [
            (20, &[first, first]),
            (7, &[first, second]),
            (5, &[first, Holder::Owner(0)]),
        ];
        let job = of(job(circuit, &blocks, &[Audience::Parties]));
        World::in_chunks(job, 8, 1).run().assert_right();
    }
}

#[test]
fn neither_plan_nor_workspace_depends_on_the_number_of_cycles() {
    for (name, of) in PROTOCOLS {
        for per in [Per::Row, Per::Cycle] {
            let made = |cycles| {
                let job = of(one_block(shift_register(16, cycles, per), 1000));
                let options = Options {
                    lanes: 1,
                    chunk_rows: Some(1024),
                };
                Arc::new(Plan::new(Arc::new(job), options).expect("a plan"))
            };
            let (few, many) = (made(1000), made(1_000_000));
            assert_eq!(few.slots, many.slots, "{name}");
            assert_eq!(few.programs, many.programs, "{name}");
            assert_eq!(few.layers, many.layers, "{name}");
            assert_ne!(few.hash, many.hash, "{name}");
            let [few, many] = [few, many].map(|plan| protocol(plan, peer(0)));
            assert_eq!(
                few.layout(WorkspaceOf::Rows),
                many.layout(WorkspaceOf::Rows),
                "{name}"
            );
            assert_eq!(few.places(), many.places(), "{name}");
            let mut flow = many.flow(Task::Layers, Frame { chunk: 1, ..FRAME });
            // No more than one cycle's rounds are there at once, those of a proof and of inputs included.
            let most = (0..5000).filter_map(|_| {
                flow.next()?;
                Some(flow.rounds().len())
            });
            assert!(most.max() < Some(100), "{name}");
        }
    }
}

const FRAME: Frame = Frame {
    epoch: 0,
    lane: 0,
    chunk: 0,
    rows: 1000,
};

#[test]
fn a_hundred_thousand_cycles_run() {
    let job = Arc::new(one_block(shift_register(16, 100_000, Per::Row), 64));
    let plan = Plan::new(Arc::clone(&job), Options::default()).expect("a plan");
    let values = Arc::new(Values::random(&job, Seed(7)));
    let want = values.expected(&job);
    let seen: Vec<Arc<Seen>> = (0..3).map(|_| Arc::default()).collect();
    let data = |who: Peer| Data {
        source: Some(values.clone()),
        sink: who
            .party()
            .map(|p| seen[p.index()].clone() as Arc<dyn veil_job::Sink>),
        ..Data::default()
    };
    local::run(&Arc::new(plan), &Settings::default(), data, &|_| ()).expect("an honest run");
    for seen in &seen {
        assert_eq!(seen.rows(Ring::Bits, 0).as_ref(), Some(&want[0]));
    }
}

#[test]
fn what_a_cycle_costs_is_declared() {
    for (name, of) in PROTOCOLS {
        for cycles in [1, 5, 300] {
            let job = of(one_block(shift_register(5, cycles, Per::Cycle), 10));
            let plan = Arc::new(Plan::new(Arc::new(job), Options::default()).expect("a plan"));
            let frame = Frame {
                chunk: 1,
                rows: 10,
                ..FRAME
            };
            for me in [0, 1, 2].map(peer) {
                let protocol = protocol(Arc::clone(&plan), me);
                let layout = protocol.layout(WorkspaceOf::Rows);
                let mut measured = veil_protocol::Cost::default();
                let mut flow = protocol.flow(Task::Layers, frame);
                while let Some(round) = flow.next() {
                    measured.rounds += u64::from(!round.recvs.is_empty());
                    measured.messages += round.sends.len() as u64;
                    let bytes = round.sends.iter().map(|s| s.bytes(layout, 10));
                    measured.bytes += bytes.sum::<u64>();
                }
                let mut declared = protocol.cost(Task::Layers, frame);
                if plan.parties().len() == 2 {
                    // Tables are received in many rounds, and waited for in few.
                    measured.rounds = 0;
                    declared.rounds = 0;
                }
                assert_eq!(measured, declared, "{name}: {me}, {cycles}");
            }
        }
    }
}

/// How often the participants wait for each other in the layers of a chunk, one after the other: messages take one unit of time, and all
/// else none.
fn waits(plan: &Arc<Plan>, frame: Frame) -> u64 {
    let mut flows: Vec<_> = participants(plan)
        .into_iter()
        .map(|me| {
            let mut flow = protocol(Arc::clone(plan), me).flow(Task::Layers, frame);
            let round = flow.next();
            (me, flow, round, 0)
        })
        .collect();
    let mut sent = BTreeMap::new();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for (me, flow, round, now) in &mut flows {
            while let Some(this) = round {
                for send in &this.sends {
                    let name = (*me, send.peer, this.place, this.cycle, send.part);
                    sent.entry(name).or_insert(*now);
                }
                let come = this.recvs.iter().map(|recv| {
                    let name = (recv.peer, *me, this.place, this.cycle, recv.part);
                    sent.get(&name).map(|at| at + 1)
                });
                let Some(come) = come.collect::<Option<Vec<u64>>>() else {
                    break;
                };
                *now = come.into_iter().fold(*now, u64::max);
                *round = flow.next();
                moved = true;
            }
        }
    }
    assert!(flows.iter().all(|(_, _, round, _)| round.is_none()));
    flows.iter().map(|(_, _, _, now)| *now).max().unwrap_or(0)
}

#[test]
fn two_parties_wait_for_inputs_of_cycles_once_in_each_direction_per_window() {
    for (holder, waited) in [
        (Holder::Party(party(0)), false),
        (Holder::Party(party(1)), true),
        (Holder::Owner(0), true),
    ] {
        for cycles in [1, 256, 257, 1000] {
            let holders = [Holder::Party(party(1)), holder];
            let circuit = shift_register(5, cycles, Per::Cycle);
            let job = job(circuit, &[(10, &holders)], &[Audience::Parties]);
            let plan = Plan::new(Arc::new(between_two(job)), Options::default());
            let plan = Arc::new(plan.expect("a plan"));
            let frame = Frame {
                chunk: 1,
                rows: 10,
                ..FRAME
            };
            let all = participants(&plan).into_iter();
            let declared = all.map(|me| {
                protocol(Arc::clone(&plan), me)
                    .cost(Task::Layers, frame)
                    .rounds
            });
            let windows = cycles.div_ceil(256);
            let expected = if waited { 2 * windows } else { 1 };
            assert_eq!(declared.max(), Some(expected), "{holder:?}, {cycles}");
            assert_eq!(waits(&plan, frame), expected, "{holder:?}, {cycles}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let circuit = shift_register(5, 9, Per::Cycle);
    let mut guaranteed = among_four(one_block(circuit.clone(), 4));
    guaranteed.security.delivery = veil_job::Delivery::Guaranteed;
    let refused = Plan::new(Arc::new(guaranteed), Options::default());
    assert!(matches!(refused, Err(PlanError::Job(why)) if why.contains("guaranteed")));
    let mut stored = one_block(circuit.clone(), 4);
    stored.blocks[0].holders[1] = Holder::Stored;
    stored.blocks[0].stored = Some("old".into());
    let refused = Plan::new(Arc::new(stored), Options::default());
    assert!(matches!(refused, Err(PlanError::Job(why)) if why.contains("every cycle")));
    let mut long = circuit;
    long.clock.cycles = 1 << 30;
    long.outputs[0].reduce = Reduce::EveryCycle;
    long.inputs[1].per = Per::Row;
    long.outputs[0].wires.truncate(1);
    let refused = Plan::new(Arc::new(one_block(long, 4)), Options::default());
    assert!(matches!(
        refused,
        Err(PlanError::TooManyKept { width: 0x4000_0000 })
    ));
}

/// `VEIL_NETLISTS=folder cargo test --test sequential` runs all files of a folder that are called `NAME_bits_cycles.scd`.
#[test]
fn public_netlists_run_on_shares() {
    let Some(folder) = std::env::var_os("VEIL_NETLISTS") else {
        println!("skipped: VEIL_NETLISTS names no folder of netlists");
        return;
    };
    for file in std::fs::read_dir(folder).expect("the folder of netlists") {
        let file = file.expect("a file").path();
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let cycles = name.rsplit('_').next().and_then(|word| word.parse().ok());
        let (Some(cycles), true) = (cycles, file.extension().is_some_and(|e| e == "scd")) else {
            continue;
        };
        let text = std::fs::read(&file).expect("a file");
        let limits = Limits::default();
        let circuit = scd::read(&text, cycles, Reduce::EveryCycle, &limits);
        let circuit = circuit.unwrap_or_else(|error| panic!("{name}: {error}"));
        let holders = circuit.inputs.iter().enumerate();
        let holders: Vec<Holder> = holders
            .map(|(k, _)| Holder::Party(party(k as u8 % 2)))
            .collect();
        for (protocol, of) in PROTOCOLS {
            println!("{name}: {protocol}");
            let job = of(job(circuit.clone(), &[(5, &holders)], &[Audience::Parties]));
            World::new(job)
                .devices(|_| Box::new(veil_device::Cpu::detect()))
                .run()
                .assert_right();
        }
    }
}
