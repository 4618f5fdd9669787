//! Declared cost = sum over the rounds = what the meters say.

use std::sync::Arc;

use veil_engine::participants;
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_protocol::Replicated;
use veil_protocol::{Cost, Plan, Protocol, Task};
use veil_session::{Frame, Peer};
use veil_testkit::sample::{against_malicious, dot, everything, party, product};
use veil_testkit::{Outcome, Seed, Values, World, tasks};

/// Bytes of a hello, of a proof and of a seed.
const HANDSHAKE: [u64; 3] = [96, 64, 16];

/// The tasks of a run, each with its frame, once per chunk.
fn schedule(plan: &Plan, protocol: &dyn Protocol) -> Vec<(Task, Frame)> {
    let all = tasks(plan, protocol);
    let find = |wanted: fn(&Task) -> bool| {
        *all.iter()
            .find(|task| wanted(task))
            .expect("all tasks are listed")
    };
    let open = find(|t| matches!(t, Task::Open(_)));
    let totals = find(|t| matches!(t, Task::OpenTotals(_)));
    let mut schedule = vec![(Task::SetUp, plan.set_up_frame())];
    for chunk in (0..).map_while(|index| plan.chunk(index)) {
        let frame = chunk.frame;
        schedule.extend([
            (Task::Inputs { block: chunk.block }, frame),
            (Task::Layers, frame),
        ]);
        if plan.opens_rows() {
            schedule.extend([(Task::Agree, frame), (open, frame)]);
        }
    }
    if plan.has_totals() {
        let frame = plan.totals_frame();
        schedule.extend([(Task::Totals, frame), (Task::Agree, frame), (totals, frame)]);
    }
    schedule
}

/// What a task's rounds send.
fn of_rounds(plan: &Plan, protocol: &dyn Protocol, task: Task, frame: Frame) -> Cost {
    let layout = protocol.layout(plan.workspace_of(frame));
    let flow = protocol.flow(task, frame);
    flow.rounds().iter().fold(Cost::default(), |cost, round| {
        let bytes = round
            .sends
            .iter()
            .map(|send| send.bytes(layout, frame.rows))
            .sum();
        cost + Cost {
            rounds: u64::from(!round.recvs.is_empty()),
            messages: round.sends.len() as u64,
            bytes,
        }
    })
}

/// What the handshake sends: a hello and a proof to every peer, owners 16 bytes per seed and holder; of every block whose order is compared
/// holders 32 bytes per digest to each of two judges, and each judge 4 bytes to each holder.
fn of_handshake(plan: &Plan, protocol: &dyn Protocol) -> Cost {
    let me = protocol.me();
    plan.orders
        .iter()
        .fold(of_meeting(protocol), |cost, order| {
            let holds = order.holders.contains(&me);
            let others = order.holders.len() as u64 - u64::from(holds);
            let judges = order.judges.iter().any(|judge| Peer::Party(*judge) == me);
            let answers = if judges { others } else { 0 };
            let lists = match (holds, judges) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => 2,
            };
            cost + Cost {
                rounds: 0,
                messages: answers + lists,
                bytes: 4 * answers + 32 * u64::from(order.digests) * lists,
            }
        })
}

fn of_meeting(protocol: &dyn Protocol) -> Cost {
    let peers = protocol.peers().len() as u64;
    let [hello, proof, seed] = HANDSHAKE;
    let common = Cost {
        rounds: 2,
        messages: 2 * peers,
        bytes: peers * (hello + proof),
    };
    match protocol.me() {
        me @ Peer::Owner(_) => {
            let holders: u64 = protocol
                .dealt(me)
                .iter()
                .map(|seed| seed.holders.len() as u64)
                .sum();
            common
                + Cost {
                    rounds: 0,
                    messages: 3,
                    bytes: holders * seed,
                }
        }
        _ => common,
    }
}

/// What acknowledgements send: of a run that loads shares, a byte from every participant that receives or stores something to each party; of
/// a run that only stores shares, a byte from each party to each owner.
fn of_last_words(plan: &Plan, me: Peer) -> Cost {
    let job = &plan.job;
    let keeps = job.audiences.contains(&Audience::Stored) && me.party().is_some();
    let receives = job.audiences.iter().any(|audience| audience.includes(me));
    let loads = job
        .blocks
        .iter()
        .any(|b| b.holders.contains(&Holder::Stored));
    let opens = job.audiences.iter().any(|a| *a != Audience::Stored);
    let (parties, owners) = (3 - u64::from(me.party().is_some()), job.owners.len() as u64);
    let told = match (keeps || receives, loads, opens) {
        (false, ..) | (true, false, true) => 0,
        (true, true, true) => parties,
        (true, true, false) => parties + owners,
        (true, false, false) => owners,
    };
    Cost {
        rounds: 0,
        messages: told,
        bytes: told,
    }
}

fn check(job: JobSpec, chunk_rows: u32, lanes: u16) {
    measure(&World::in_chunks(job, chunk_rows, lanes));
}

/// Runs it, and compares what every participant sent with what was declared.
fn measure(world: &World) -> Outcome {
    let outcome = world.run();
    outcome.assert_right();
    metered(world, &outcome);
    outcome
}

fn metered(world: &World, outcome: &Outcome) {
    assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
    for me in participants(world.plan()) {
        let protocol = Replicated::new(Arc::clone(world.plan()), me);
        let last_words = of_last_words(world.plan(), me);
        let also = veil_engine::last_words_cost(world.plan(), &protocol);
        let sent = |cost: Cost| (cost.messages, cost.bytes);
        assert_eq!(sent(also), sent(last_words), "{me}");
        let mut declared = of_handshake(world.plan(), &protocol) + last_words;
        for (task, frame) in schedule(world.plan(), &protocol) {
            let cost = protocol.cost(task, frame);
            assert_eq!(
                cost,
                of_rounds(world.plan(), &protocol, task, frame),
                "{me}, {task:?}, {frame:?}"
            );
            declared = declared + cost;
        }
        let metered = outcome.reports[&me].meters;
        assert_eq!(
            metered.payload_sent, declared.bytes,
            "{}: bytes of {me}",
            outcome.seed
        );
        assert_eq!(
            metered.messages_sent, declared.messages,
            "{}: messages of {me}",
            outcome.seed
        );
        let recorded = outcome.transcript.iter().filter(|m| m.from == me);
        let recorded = recorded.fold((0, 0), |(messages, bytes), m| {
            (messages + 1, bytes + m.bytes.len() as u64)
        });
        assert_eq!(
            recorded,
            (declared.messages, declared.bytes),
            "{}: transcript of {me}",
            outcome.seed
        );
        let received: u64 = outcome
            .transcript
            .iter()
            .filter(|m| m.to == me)
            .map(|m| m.bytes.len() as u64)
            .sum();
        assert_eq!(
            metered.payload_received, received,
            "{}: received by {me}",
            outcome.seed
        );
    }
}

#[test]
fn meters_say_what_was_declared() {
    for ring in Ring::ALL {
        check(everything(ring, &[1]), 8, 1);
        check(everything(ring, &[23, 9]), 8, 1);
        check(everything(ring, &[17, 8, 30]), 10, 3);
    }
    for blocks in [&[1][..], &[23, 9], &[17, 8, 300]] {
        check(against_malicious(everything(Ring::Bits, blocks)), 64, 2);
        check(against_malicious(everything(Ring::Z32, blocks)), 64, 2);
        check(against_malicious(everything(Ring::Z64, blocks)), 64, 2);
    }
}

#[test]
fn every_audience_costs_what_is_declared() {
    for audience in [
        Audience::Parties,
        Audience::Party(party(0)),
        Audience::Party(party(2)),
        Audience::Recipient(0),
    ] {
        check(product(Ring::Bits, 37, audience), 16, 2);
        check(product(Ring::Z64, 37, audience), 16, 1);
        check(dot(Ring::Z64, 37, audience), 16, 2);
        check(dot(Ring::Z128, 5, audience), 16, 1);
    }
}

#[test]
fn comparing_the_order_of_rows_costs_what_is_declared() {
    let mut job = everything(Ring::Z64, &[23, 9]);
    for block in &mut job.blocks {
        block.order = veil_job::Order::Compared {
            every: 4,
            duplicates: true,
        };
    }
    let chains = || vec![vec![[1; 32]; 6], vec![[2; 32]; 3]];
    let world = World::in_chunks(job, 8, 1);
    let holders: Vec<Peer> = world
        .plan()
        .orders
        .iter()
        .flat_map(|o| o.holders.clone())
        .collect();
    let world = holders
        .into_iter()
        .fold(world, |world, holder| world.order(holder, chains()));
    let outcome = measure(&world);
    assert!(outcome.of(veil_testkit::Kind::Order).count() > 2);
}

/// Keeping is free; loading costs two digests per party and chunk, and two for values per job.
#[test]
fn shares_at_rest_cost_what_is_declared() {
    let jobs = [Ring::Bits, Ring::Z64, Ring::Z128].map(|ring| everything(ring, &[23, 9]));
    let authenticated = against_malicious(jobs[1].clone());
    for job in jobs.into_iter().chain([authenticated]) {
        let (input, compute) = job.stages();
        let values = Values::random(&job, Seed(9));
        let kept = measure(&World::in_chunks(input, 8, 2).values(values.clone()));
        let compute = World::in_chunks(compute, 10, 3)
            .values(values)
            .stored(kept.kept.clone());
        measure(&compute).assert_right();
        for me in veil_session::PartyId::THREE {
            let protocol = Replicated::new(Arc::clone(compute.plan()), Peer::Party(me));
            let two_digests = Cost {
                rounds: 1,
                messages: 2,
                bytes: 64,
            };
            let frame = compute.plan().chunk(0).expect("a chunk").frame;
            let inputs = protocol.cost(Task::Inputs { block: 0 }, frame);
            assert_eq!(inputs, two_digests);
        }
    }
}

/// A job of one circuit of the catalogue, on `rows` rows, with the parties' values and for a recipient.
fn made(name: &str, rows: u64) -> JobSpec {
    let circuit = veil_circuit::make(name).expect("the catalogue has it");
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    let ports = circuit.inputs.len();
    veil_testkit::sample::job(
        circuit,
        &[(rows, &holders[..ports])],
        &[Audience::Recipient(0)],
    )
}

#[test]
fn conversions_cost_what_is_declared() {
    for name in ["int-lt:20", "int-bits:3", "int-max-signed:64", "int-low:64"] {
        costs_as_declared(made(name, 37), true);
        check(against_malicious(made(name, 37)), 16, 2);
    }
}

#[test]
fn openings_of_masked_values_cost_what_is_declared() {
    costs_as_declared(made("int-word:20", 37), true);
    costs_as_declared(made("int-word:100", 37), true);
    // What comes out is not for the meters to say.
    costs_as_declared(made("int-half-pr:20", 37), false);
    costs_as_declared(made("int-half-pr-signed:100", 37), false);
}

/// Among three parties, and among four; with a result that is what the circuit says, or not.
fn costs_as_declared(job: JobSpec, exact: bool) {
    let three = World::in_chunks(job.clone(), 16, 2);
    if exact {
        measure(&three);
    } else {
        metered(&three, &three.run());
    }
    // Last words and handshakes are those of three parties here: among four, declared and summed costs are compared.
    let world = World::in_chunks(veil_testkit::sample::among_four(job), 16, 1);
    let outcome = world.run();
    if exact {
        outcome.assert_right();
    }
    assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
    for me in participants(world.plan()) {
        let protocol = Replicated::new(Arc::clone(world.plan()), me);
        for (task, frame) in schedule(world.plan(), &protocol) {
            let cost = protocol.cost(task, frame);
            assert_eq!(
                cost,
                of_rounds(world.plan(), &protocol, task, frame),
                "{me}, {task:?}"
            );
        }
    }
}

/// What `docs/conversions.md` says: rounds, products of bits, lifts, truncations and products of integers, for three parties and four.
#[test]
fn conversions_cost_what_the_documentation_says() {
    let measured = COSTS.map(|(name, _)| {
        let job = made(name, 1);
        let four = veil_testkit::sample::among_four(job.clone());
        let costs = [job, four].map(|job| {
            let plan = Arc::clone(World::new(job).plan());
            let opened = plan.layers.iter().map(|layer| {
                let [integers, bits] = layer.opened.map(|opened| opened.count);
                u64::from(integers * plan.ring.bits() + bits)
            });
            let opened = opened.sum();
            [
                u64::from(plan.depth),
                plan.bit_products(),
                plan.lifts(),
                plan.truncations(),
                plan.products(),
                opened,
            ]
        });
        (name, costs)
    });
    assert_eq!(measured, COSTS);
}

/// Rounds, products of bits, lifts, truncations, products of integers, bits opened behind masks: among three parties, and among four.
const COSTS: [(&str, [[u64; 6]; 2]); 15] = [
    ("int-bits:1", [[2, 0, 1, 0, 0, 0], [2, 0, 1, 0, 0, 0]]),
    (
        "int-bits:64",
        [[9, 373, 64, 0, 0, 0], [10, 436, 64, 0, 0, 0]],
    ),
    (
        "int-low:64",
        [[9, 373, 64, 0, 0, 0], [10, 436, 64, 0, 0, 0]],
    ),
    (
        "int-word:64",
        [[15, 809, 0, 0, 0, 64], [16, 934, 0, 0, 0, 64]],
    ),
    ("int-low:32", [[8, 151, 32, 0, 0, 0], [9, 182, 32, 0, 0, 0]]),
    (
        "int-word:32",
        [[14, 587, 0, 0, 0, 64], [15, 680, 0, 0, 0, 64]],
    ),
    ("int-lt:32", [[8, 89, 1, 0, 0, 0], [9, 121, 1, 0, 0, 0]]),
    ("int-lt:64", [[10, 544, 1, 0, 0, 0], [11, 733, 1, 0, 0, 0]]),
    ("int-eq:64", [[9, 126, 1, 0, 0, 0], [10, 188, 1, 0, 0, 0]]),
    ("int-max:32", [[9, 89, 1, 0, 1, 0], [10, 121, 1, 0, 1, 0]]),
    (
        "int-half-signed:64",
        [[10, 186, 4, 0, 0, 0], [11, 250, 4, 0, 0, 0]],
    ),
    (
        "int-half-signed:40",
        [[10, 34, 1, 1, 0, 0], [11, 252, 4, 0, 0, 0]],
    ),
    (
        "int-half-pr-signed:63",
        [[3, 0, 0, 1, 0, 0], [11, 270, 5, 0, 0, 64]],
    ),
    (
        "int-half-pr-signed:40",
        [[3, 0, 0, 1, 0, 0], [10, 165, 5, 0, 0, 64]],
    ),
    (
        "int-div:32",
        [[204, 2561, 32, 0, 0, 0], [205, 2623, 32, 0, 0, 0]],
    ),
];

/// A matrix product is one round, and one element per row, element of the result and message of a product: three messages among three parties,
/// six among four, whatever the inner size.
#[test]
fn a_matrix_product_costs_one_element_for_each_of_its_own() {
    let rows = 64;
    for (name, bytes) in [("matmul64:3x5x2", 8), ("matmul128:2x7x3", 16)] {
        let job = made(name, rows);
        check(job.clone(), 16, 2);
        let four = veil_testkit::sample::among_four(job.clone());
        for (job, messages, macs) in [(job, 3, 0), (four, 6, 6 * 16)] {
            let world = World::in_chunks(job, rows as u32, 1);
            world.run().assert_right();
            let plan = world.plan();
            let frame = plan.chunk(0).expect("a chunk").frame;
            let parties = plan.parties().iter();
            let costs = parties.map(|party| {
                let protocol = Replicated::new(Arc::clone(plan), Peer::Party(*party));
                protocol.cost(Task::Layers, frame)
            });
            let all = costs.fold(Cost::default(), |all, cost| {
                assert_eq!(cost.rounds, 1);
                all + cost
            });
            assert_eq!(all.bytes, messages * 6 * bytes * rows + macs, "{name}");
        }
    }
}

#[test]
fn an_and_costs_one_bit_per_party() {
    let rows = 1 << 13;
    let world = World::in_chunks(
        product(Ring::Bits, rows, Audience::Recipient(0)),
        rows as u32,
        1,
    );
    for me in veil_session::PartyId::THREE {
        let protocol = Replicated::new(Arc::clone(world.plan()), Peer::Party(me));
        let frame = world.plan().chunk(0).expect("a chunk").frame;
        let cost = protocol.cost(Task::Layers, frame);
        assert_eq!(
            cost,
            Cost {
                rounds: 1,
                messages: 1,
                bytes: rows / 8
            }
        );
    }
}
