//! Garbled circuits between two parties: results, whichever participant supplies or gets values, on every device, in both schemes; declared
//! costs.

use std::sync::Arc;
use std::time::Duration;

use veil_circuit::{Builder, Per, Wire, make};
use veil_device::{Cpu, Device, Reference};
use veil_engine::participants;
use veil_job::{Audience, Holder, JobSpec, Rows, Schedule, Tables};
use veil_link::shape::Profile;
use veil_math::Ring;
use veil_protocol::{Cost, Options, Plan, protocol};
use veil_protocol::{PlanError, Task};
use veil_session::Peer;
use veil_testkit::sample::{between_two, everything, job, party, peer, product};
use veil_testkit::{Outcome, Seed, Values, World, clocked, tasks};

const SCHEMES: [Tables; 2] = [Tables::HalfGates, Tables::ThreeHalves];

fn with(job: JobSpec, tables: Tables) -> JobSpec {
    let mut job = between_two(job);
    job.security.tables = tables;
    job
}

/// Runs it on the reference device, on the CPU's, and with one of them at each end, in one process and apart.
fn right(job: &JobSpec, chunk_rows: u32, lanes: u16) {
    let world = World::in_chunks(job.clone(), chunk_rows, lanes);
    world.run().assert_right();
    world.run_apart().assert_right();
    let cpu = || -> Box<dyn Device> { Box::new(Cpu::detect()) };
    world.clone().devices(move |_| cpu()).run().assert_right();
    for other in [0, 1] {
        let mixed = world.clone().devices(move |peer| {
            if peer == Peer::Party(party(other)) {
                cpu()
            } else {
                Box::new(Reference::default())
            }
        });
        mixed.run().assert_right();
    }
}

#[test]
fn every_participant_may_supply_and_receive() {
    let [garbler, evaluator] = [0, 1].map(|p| Holder::Party(party(p)));
    let holders = [garbler, evaluator, Holder::Owner(0)];
    let audiences = [
        Audience::Parties,
        Audience::Party(party(0)),
        Audience::Party(party(1)),
        Audience::Recipient(0),
    ];
    let circuit = make("adder:9").expect("the catalogue has it");
    for x in holders {
        for y in holders {
            for audience in audiences {
                let job = job(circuit.clone(), &[(11, &[x, y])], &[audience]);
                World::in_chunks(between_two(job), 4, 1)
                    .run()
                    .assert_right();
            }
        }
    }
}

#[test]
fn every_kind_of_input_and_output_on_every_device_in_both_schemes() {
    for tables in SCHEMES {
        right(&with(everything(Ring::Bits, &[13, 9]), tables), 8, 1);
        right(&with(everything(Ring::Bits, &[40, 1, 7]), tables), 16, 2);
    }
}

/// Gates in the order of hardware, of circuits of one cycle and of several.
#[test]
fn every_schedule_computes_what_the_clear_evaluation_does() {
    const ALL: [Rows; 5] = [Rows::One, Rows::Two, Rows::Four, Rows::Eight, Rows::Sixteen];
    let scheduled = |job, tables, rows| {
        let mut job = with(job, tables);
        job.security.schedule = Schedule::List(rows);
        job
    };
    let seed = Seed::any();
    println!("{seed}");
    let mut numbers = seed.numbers("circuits");
    for (k, rows) in ALL.into_iter().enumerate() {
        for tables in SCHEMES {
            right(
                &scheduled(everything(Ring::Bits, &[13, 9]), tables, rows),
                8,
                1,
            );
            let circuit = clocked(Seed(numbers.next_u128() as u64));
            let holders = [0, 1, 1, 0].map(|p| Holder::Party(party(p)));
            let job = job(circuit, &[(9, &holders)], &[Audience::Parties; 2]);
            right(&scheduled(job, tables, rows), 4, 1 + k as u16 % 2);
        }
    }
}

#[test]
fn aes_of_many_rows_and_of_one() {
    let circuit = make("aes128").expect("the catalogue has it");
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    for (tables, rows) in [(SCHEMES[0], 1), (SCHEMES[0], 70), (SCHEMES[1], 33)] {
        let job = with(
            job(
                circuit.clone(),
                &[(rows, &holders)],
                &[Audience::Party(party(1))],
            ),
            tables,
        );
        for schedule in [Schedule::Layers, Schedule::List(Rows::Two)] {
            let mut job = job.clone();
            job.security.schedule = schedule;
            let world = World::new(job).devices(|_| Box::new(Cpu::detect()));
            world.run().assert_right();
        }
    }
}

/// The garbler is finished while more of its tables are on a slow line than a link in memory takes, and one thread steps both ends: it
/// must not wait for the line without the evaluator, who alone makes room.
#[test]
fn a_slow_line_is_emptied_while_the_evaluator_goes_on() {
    let circuit = make("aes128").expect("the catalogue has it");
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    let audience = [Audience::Party(party(1))];
    for lanes in [1, 2] {
        let job = between_two(job(circuit.clone(), &[(64, &holders)], &audience));
        let world = World::in_chunks(job, 64 / u32::from(lanes), lanes)
            .devices(|_| Box::new(Cpu::detect()))
            .timeout(Duration::from_secs(10));
        let slow = Profile {
            latency: Duration::from_millis(5),
            bandwidth: 10_000_000_000,
        };
        world.net(slow).run().assert_right();
    }
}

/// Key, block and what it is encrypted to: NIST SP 800-38A, F.1.1, FIPS 197, B and C.1.
const AES: [[u128; 3]; 6] = [
    [
        0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
        0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a,
        0x3ad7_7bb4_0d7a_3660_a89e_caf3_2466_ef97,
    ],
    [
        0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
        0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51,
        0xf5d3_d585_03b9_699d_e785_895a_96fd_baaf,
    ],
    [
        0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
        0x30c8_1c46_a35c_e411_e5fb_c119_1a0a_52ef,
        0x43b1_cd7f_598e_ce23_881b_00e3_ed03_0688,
    ],
    [
        0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
        0xf69f_2445_df4f_9b17_ad2b_417b_e66c_3710,
        0x7b0c_785e_27e8_ad3f_8223_2071_0472_5dd4,
    ],
    [
        0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
        0x3243_f6a8_885a_308d_3131_98a2_e037_0734,
        0x3925_841d_02dc_09fb_dc11_8597_196a_0b32,
    ],
    [
        0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
        0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
        0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a,
    ],
];

/// Bit `wire` of the bytes of a block, in order, bit 0 of each first.
fn wire(block: u128, wire: usize) -> u128 {
    u128::from(block.to_be_bytes()[wire / 8] >> (wire % 8) & 1)
}

/// With a key for all rows, and with one for each, whichever party has it, on every device.
#[test]
fn aes_is_that_of_the_standards_vectors() {
    let [garbler, evaluator] = [0, 1].map(|p| Holder::Party(party(p)));
    let cpu = || -> Box<dyn Device> { Box::new(Cpu::detect()) };
    for (per, rows) in [(Per::Row, AES.len()), (Per::Job, AES.len() - 1)] {
        let mut circuit = make("aes128").expect("the catalogue has it");
        circuit.inputs[0].per = per;
        for tables in SCHEMES {
            for holders in [[garbler, evaluator], [Holder::Owner(0), garbler]] {
                let block = (rows as u64, &holders[..]);
                let job = job(circuit.clone(), &[block], &[Audience::Parties]);
                let job = with(job, tables);
                let values = Values::new(&job, |_, row, port, w| wire(AES[row][port], w));
                let world = World::new(job).values(values);
                for world in [world.clone(), world.devices(move |_| cpu())] {
                    let outcome = world.run();
                    let out = AES[..rows].iter().map(|[.., out]| *out);
                    let want: Vec<Vec<u128>> = out
                        .map(|out| (0..128).map(|w| wire(out, w)).collect())
                        .collect();
                    for to in [0, 1].map(peer) {
                        let got = outcome.rows(to, 0);
                        assert_eq!(got.as_ref(), Some(&want), "{per:?}, {tables:?}, {to}");
                    }
                }
            }
        }
    }
}

/// Products of a depth that are more than a layer may have are in several, and no message has more than one layer's tables.
#[test]
fn wide_circuits_are_garbled_a_layer_at_a_time() {
    const WIDTH: usize = 20_000;
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 256, Per::Row);
    let y = b.input("y", 256, Per::Row);
    // All pairs of the bits of two words; what is linear before them is read by several layers; and all products again with a neighbour.
    let both: Vec<Wire> = x.iter().zip(&y).map(|(x, y)| b.xor(*x, *y)).collect();
    let products: Vec<Wire> = (0..WIDTH)
        .map(|k| b.and(both[k % 256], x[k / 256 + k % 7]))
        .collect();
    let again: Vec<Wire> = (0..WIDTH)
        .map(|k| b.and(products[k], products[(k + 12_345) % WIDTH]))
        .collect();
    let sums: Vec<Wire> = again
        .chunks(500)
        .map(|some| {
            let (first, others) = some.split_first().expect("five hundred");
            others.iter().fold(*first, |sum, next| b.xor(sum, *next))
        })
        .collect();
    b.output("z", &sums);
    let circuit = b.finish().expect("a valid circuit");
    let products = circuit.stats().muls;
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    let [layers, list] = [Schedule::Layers, Schedule::List(Rows::Eight)];
    for (tables, rows, schedule) in [
        (SCHEMES[0], 1, layers),
        (SCHEMES[1], 1, layers),
        (SCHEMES[0], 6, layers),
        (SCHEMES[0], 2, list),
    ] {
        let audience = [Audience::Party(party(1))];
        let mut job = with(job(circuit.clone(), &[(rows, &holders)], &audience), tables);
        job.security.schedule = schedule;
        let world = World::new(job).devices(|_| Box::new(Cpu::detect()));
        let plan = world.plan();
        let layers = plan.layers.iter().map(|layer| layer.products);
        assert_eq!(layers.clone().map(u64::from).sum::<u64>(), products);
        assert!(layers.max() <= Some(8192) && plan.depth == 2);
        let garbler = protocol(Arc::clone(plan), Peer::Party(party(0)));
        let longest = veil_engine::bounds(plan, &*garbler).longest;
        assert!(
            longest <= 8192 * 32 * u64::from(plan.chunk_rows),
            "{longest}"
        );
        let outcome = world.run();
        outcome.assert_right();
        costs(&world, &outcome);
    }
}

/// Declared cost = sum over the rounds = what the meters say.
#[test]
fn costs_are_as_declared() {
    for (tables, schedule) in [
        (SCHEMES[0], Schedule::Layers),
        (SCHEMES[1], Schedule::Layers),
        (SCHEMES[0], Schedule::List(Rows::Two)),
    ] {
        let mut job = with(everything(Ring::Bits, &[13, 9]), tables);
        job.security.schedule = schedule;
        let world = World::in_chunks(job, 8, 1);
        let outcome = world.run();
        outcome.assert_right();
        costs(&world, &outcome);
    }
}

/// Declared costs are those of the rounds of each task, and of all messages that were sent.
pub(crate) fn costs(world: &World, outcome: &Outcome) {
    declared(world, outcome, true);
}

/// Declared costs are those of all messages that were sent, in cycles too.
pub(crate) fn costs_in_all(world: &World, outcome: &Outcome) {
    declared(world, outcome, false);
}

fn declared(world: &World, outcome: &Outcome, each: bool) {
    let plan = world.plan();
    for peer in participants(plan) {
        let protocol = protocol(Arc::clone(plan), peer);
        let of_task = |task, frame| {
            let declared = protocol.cost(task, frame);
            let layout = protocol.layout(plan.workspace_of(frame));
            let rounds: Vec<_> = protocol.flow(task, frame).all().collect();
            let sends = rounds.iter().flat_map(|round| &round.sends);
            let bytes = sends.map(|send| send.bytes(layout, frame.rows));
            let bytes = bytes.filter(|bytes| *bytes > 0);
            let sent = bytes.clone().count() as u64;
            // What is carried from chunk to chunk is declared of all chunks.
            if each && (task != Task::Layers || protocol.carried() == Cost::default()) {
                assert_eq!(
                    (declared.messages, declared.bytes),
                    (sent, bytes.sum()),
                    "{peer}, {task:?}"
                );
            }
            declared
        };
        let all = tasks(plan, &*protocol);
        let open = all.iter().find(|task| matches!(task, Task::Open(_)));
        let open = *open.expect("all tasks are listed");
        let mut total = of_task(Task::SetUp, plan.set_up_frame());
        for chunk in (0..).map_while(|index| plan.chunk(index)) {
            for task in [
                Task::Inputs { block: chunk.block },
                Task::Layers,
                Task::Agree,
                open,
            ] {
                total = total + of_task(task, chunk.frame);
            }
        }
        let total = total + protocol.carried();
        let handshake = veil_engine::handshake_cost(plan, &*protocol);
        let Cost {
            messages, bytes, ..
        } = total + handshake;
        let meters = outcome.reports[&peer].meters;
        assert_eq!(
            (meters.messages_sent, meters.payload_sent),
            (messages, bytes),
            "{peer}"
        );
    }
}

#[test]
fn what_is_not_of_bits_has_no_plan() {
    let plan = |job: JobSpec| Plan::new(Arc::new(job), Options::default()).map(|_| ());
    let integers = between_two(product(Ring::Z64, 3, Audience::Parties));
    let security = integers.security;
    assert_eq!(plan(integers), Err(PlanError::BitsOnly(security)));
    let kept = between_two(product(Ring::Bits, 3, Audience::Stored));
    assert_eq!(plan(kept), Err(PlanError::NoShares(security)));
}
