//! Plans, run: random jobs on every device give what the circuit gives in the clear, at the declared cost, and draw nothing twice.

use std::sync::Arc;

use crate::common::jobs::{Sample, expected, samples};
use crate::common::{Keys, Kind, Net};
use proptest::prelude::*;
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Ahead, Command, Instr, Op, Src, Transfer};
use veil_job::{Adversary, Audience, Block, Delivery, Holder, JobSpec, Security};
use veil_math::Ring;
use veil_protocol::{Cost, Options, Plan, PlanError, Protocol, Replicated, Task};
use veil_session::{PartyId, Peer};

fn run(sample: &Sample, kind: Kind, seed: u64) -> Result<(), TestCaseError> {
    let plan =
        Plan::new(Arc::clone(&sample.job), sample.options).expect("a job that can be planned");
    let keys = Keys::from_seed(seed, sample.job.owners.len());
    let mut net = Net::new(plan, &keys, kind);
    let results = net.job(&sample.values).expect("honest participants");
    for (node, learnt) in net.nodes.iter().zip(results) {
        prop_assert_eq!(
            learnt,
            expected(sample, node.me),
            "what {} learns on {:?}",
            node.me,
            kind
        );
    }
    for meter in &net.meters {
        prop_assert_eq!(meter.found, meter.declared, "{:?}", meter);
    }
    for message in &net.log {
        let from = net
            .nodes
            .iter()
            .find(|n| n.me == message.from)
            .expect("a participant");
        prop_assert!(
            from.protocol.peers().contains(&message.to),
            "a message without a link: {:?}",
            message
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn jobs_compute_what_their_circuits_say(sample in samples(40), kind in prop::sample::select(Kind::all()), seed: u64) {
        run(&sample, kind, seed)?;
    }

    /// The reference device keeps the ledger: no draw of a whole job overlaps another.
    #[test]
    fn jobs_draw_nothing_twice(sample in samples(60), seed: u64) {
        run(&sample, Kind::Reference, seed)?;
    }

    /// What a round says of itself as a layer of products is what its commands and transfers say one by one, and the counters that circuits of
    /// several layers are given are apart.
    #[test]
    fn layers_of_products_say_what_their_commands_say(sample in samples(60), odd: bool) {
        let plan = Arc::new(Plan::new(Arc::clone(&sample.job), sample.options).expect("a job that can be planned"));
        let Some(chunk) = plan.chunk(u32::from(odd)) else { return Ok(()) };
        let opens = plan.all_layers().any(|layer| layer.lifted() > 0 || layer.opened.iter().any(|of| of.count > 0));
        let traced = plan.job.security.adversary == Adversary::Malicious && plan.parties().len() == 3;
        for party in plan.parties() {
            let protocol = veil_protocol::protocol(Arc::clone(&plan), Peer::Party(*party));
            let flow = protocol.flow(Task::Layers, chunk.frame);
            let mut ahead = (0, 0);
            for round in flow.rounds() {
                let multiplies = |command: &&Command| matches!(command.op, Op::Product(_));
                let first = round.local.iter().find(multiplies);
                let Some(products) = &round.products else {
                    prop_assert!(first.is_none() || opens || traced, "a layer says nothing");
                    continue;
                };
                prop_assert_eq!((products.me, usize::from(products.parties)), (*party, plan.parties().len()));
                let first = first.expect("products");
                for (at, command) in round.local.iter().enumerate() {
                    let runs = matches!(command.op, Op::Product(_) | Op::Linear) && command.program.is_some();
                    let is_mac = products.macs.iter().any(|(mac, _)| *mac == at);
                    prop_assert!(products.programs.contains(&at) == runs && is_mac == (command.op == Op::Mac));
                }
                let last = round.local[products.programs.end..].iter();
                prop_assert!(last.clone().all(|command| matches!(command.op, Op::Mac | Op::Publish)));
                for (mac, to) in &products.macs {
                    let of = |send: &Transfer| send.span == round.local[*mac].dst[0] && send.peer == Peer::Party(*to);
                    prop_assert!(round.sends.iter().any(of));
                }
                for (mac, from) in &products.vouched {
                    let [made, compared] = [&round.finish[*mac], &round.finish[mac + 1]];
                    prop_assert!(made.op == Op::Mac && compared.op == Op::CheckEqual && compared.src[0] == made.dst[0]);
                    let of = |recv: &Transfer| recv.span == compared.src[1] && recv.peer == Peer::Party(*from);
                    prop_assert!(round.recvs.iter().any(of) && round.checks.iter().any(|check| check.command == mac + 1));
                }
                prop_assert_eq!(products.vouched.len(), round.checks.len());
                let of_products = |of: &Command| {
                    matches!(of.op, Op::Mac | Op::CheckEqual | Op::AddReceived { .. } | Op::Combine { .. })
                };
                prop_assert!(round.finish[..products.finish].iter().all(of_products));
                // Every block of a column may become so many, and no layer comes to the counters of the next.
                let commands = round.local.iter().chain(&round.finish);
                let calls = commands.flat_map(|command| &command.calls);
                prop_assert!(calls.clone().all(|call| call.first < Ahead::FIRST));
                let blocks = round.local.iter().filter(multiplies).map(|run| {
                    let program = &plan.programs[run.program.expect("of a product").0 as usize];
                    let column = program.ring.bytes(plan.chunk_rows.into()).div_ceil(16);
                    u64::from(program.products().0) * column
                });
                prop_assert!(products.ahead.masks >= Ahead::FIRST.max(ahead.0) && products.ahead.macs >= Ahead::FIRST.max(ahead.1));
                prop_assert_eq!(products.ahead.masks - Ahead::FIRST, first.calls[0].first * Ahead::OF_BLOCK);
                ahead.0 = products.ahead.masks + blocks.sum::<u64>() * Ahead::OF_BLOCK;
                ahead.1 = products.ahead.macs + if products.macs.is_empty() { 0 } else { Ahead::OF_LAYER };
            }
        }
    }

    /// A message is slots in runs, which nothing else has until the layer is over: no operand of it, and no other product.
    #[test]
    fn products_of_a_layer_have_slots_of_their_own(sample in samples(60)) {
        let plan = Plan::new(Arc::clone(&sample.job), sample.options).expect("a job that can be planned");
        for layer in &plan.layers {
            let of_bits = layer.bits.iter().map(|bits| (bits.program, bits.products));
            for (program, products) in std::iter::once((layer.program, layer.products)).chain(of_bits) {
                let program = &plan.programs[program];
                let mut slots: Vec<u32> = Vec::new();
                for instr in &program.code {
                    if let Instr::Product { out, index, .. } = instr {
                        prop_assert_eq!(*index as usize, slots.len(), "in the order of the message");
                        slots.push(*out);
                    }
                }
                prop_assert_eq!(slots.len(), products as usize);
                prop_assert!(slots.windows(2).all(|two| two[0] < two[1]), "{:?}", slots);
                for (a, b) in &program.pairs {
                    for src in [a, b] {
                        let inside = matches!(src, Src::Slot(s) if slots.contains(s));
                        prop_assert!(!inside, "an operand in the slot of a product of its layer");
                    }
                }
            }
        }
    }

    #[test]
    fn chunks_cover_every_row_once(sample in samples(1), rows in prop::collection::vec(1..1000u64, 1..5), lanes in 1..9u16, chunk in 1..300u32) {
        let mut job = (*sample.job).clone();
        let block = job.blocks[0].clone();
        job.blocks = rows.iter().map(|rows| Block { rows: *rows, ..block.clone() }).collect();
        let plan = Plan::new(Arc::new(job), Options { lanes, chunk_rows: Some(chunk) }).expect("a job that can be planned");
        let mut covered = vec![0; rows.len()];
        for index in 0..plan.chunks() {
            let c = plan.chunk(index).expect("as many chunks as it says");
            prop_assert_eq!(c.first, covered[c.block as usize], "rows follow each other");
            prop_assert!(c.frame.rows > 0 && c.frame.rows <= chunk);
            prop_assert_eq!((c.frame.chunk, u32::from(c.frame.lane)), (index + 1, index % u32::from(lanes)));
            covered[c.block as usize] += u64::from(c.frame.rows);
        }
        prop_assert_eq!(covered, rows);
        prop_assert_eq!(plan.chunk(plan.chunks()), None);
        prop_assert_eq!(plan.totals_frame().chunk, plan.chunks() + 1);
    }
}

/// A job on one port of `width` wires, opened to all.
fn job(ring: Ring, width: u32, gates: Vec<Gate>, outputs: Vec<Wire>, reduce: Reduce) -> JobSpec {
    let circuit = Circuit {
        ring,
        inputs: vec![InputPort {
            name: "v".into(),
            width,
            per: Per::Row,
            bits: false,
        }],
        gates,
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: outputs,
            reduce,
        }],
        clock: veil_circuit::Clock::default(),
    };
    JobSpec {
        name: "job".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["p0", "p1", "p2"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: veil_job::Security::among(3),
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: 1000,
            holders: vec![Holder::Owner(0)],
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: vec![Audience::Parties],
        opened: vec!["z".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

fn plan(job: JobSpec) -> Plan {
    Plan::new(
        Arc::new(job),
        Options {
            lanes: 1,
            chunk_rows: Some(1000),
        },
    )
    .expect("a job that can be planned")
}

/// What a party sends in the layers of a chunk of 1000 rows.
fn layer_cost(plan: Plan) -> Cost {
    let frame = plan.chunk(0).expect("a chunk").frame;
    assert_eq!(frame.rows, 1000);
    let protocol = Replicated::new(Arc::new(plan), Peer::Party(PartyId::THREE[1]));
    protocol.cost(Task::Layers, frame)
}

#[test]
#[should_panic(expected = "Reuse")]
fn the_ledger_rings_when_a_chunk_runs_twice() {
    let plan = plan(job(
        Ring::Z64,
        2,
        vec![Gate::Mul(Wire(0), Wire(1))],
        vec![Wire(2)],
        Reduce::None,
    ));
    let frame = plan.chunk(0).expect("a chunk").frame;
    let mut net = Net::new(plan, &Keys::from_seed(1, 1), Kind::Reference);
    for _ in 0..2 {
        net.open(frame);
        net.run(|_| Task::Layers)
            .expect("there is no check in layers");
        net.close();
    }
}

#[test]
fn a_long_chain_of_products_needs_few_slots() {
    let mut gates = vec![Gate::Mul(Wire(0), Wire(1))];
    gates.extend((2..1001).map(|z| Gate::Mul(Wire(z), Wire(0))));
    let plan = plan(job(Ring::Bits, 2, gates, vec![Wire(1001)], Reduce::None));
    assert_eq!((plan.depth, plan.products()), (1000, 1000));
    // The inputs, a product and its successor, the output.
    assert!(plan.slots <= 5, "{} slots", plan.slots);
}

#[test]
fn linear_gates_between_layers_need_no_slots() {
    let mut gates = vec![Gate::Add(Wire(0), Wire(1))];
    gates.extend((2..1001).map(|z| Gate::Add(Wire(z), Wire(0))));
    let plan = plan(job(Ring::Z64, 2, gates, vec![Wire(1001)], Reduce::None));
    assert_eq!((plan.depth, plan.slots), (0, 3));
}

#[test]
fn products_of_one_depth_share_a_layer() {
    // A tree of 64 leaves: 32 + 16 + … + 1 products in 6 layers.
    let gates: Vec<Gate> = (0..63)
        .map(|k| Gate::Mul(Wire(2 * k), Wire(2 * k + 1)))
        .collect();
    let plan = plan(job(Ring::Bits, 64, gates, vec![Wire(126)], Reduce::None));
    let products: Vec<u32> = plan.layers.iter().map(|l| l.products).collect();
    assert_eq!(products, [32, 16, 8, 4, 2, 1, 0]);
    // The inputs and the first layer; all others fit where those were. And the output.
    assert_eq!(plan.slots, 64 + 32 + 1);
    assert_eq!(
        layer_cost(plan),
        Cost {
            rounds: 6,
            messages: 6,
            bytes: 63 * 125
        }
    );
}

#[test]
fn draws_of_layers_lie_side_by_side() {
    let gates: Vec<Gate> = (0..63)
        .map(|k| Gate::Mul(Wire(2 * k), Wire(2 * k + 1)))
        .collect();
    for (ring, stride) in [(Ring::Bits, 8), (Ring::Z64, 500), (Ring::Z128, 1000)] {
        let plan = plan(job(ring, 64, gates.clone(), vec![Wire(126)], Reduce::None));
        let calls: Vec<u64> = plan.layers.iter().map(|l| l.first_call).collect();
        assert_eq!(
            calls,
            [0, 32, 48, 56, 60, 62, 63].map(|products| products * stride),
            "{ring:?}"
        );
    }
}

#[test]
fn a_dot_product_costs_one_product() {
    let dot = [
        Gate::Mul(Wire(0), Wire(2)),
        Gate::Mul(Wire(1), Wire(3)),
        Gate::Add(Wire(4), Wire(5)),
    ];
    let fused = plan(job(Ring::Z64, 4, dot.to_vec(), vec![Wire(6)], Reduce::None));
    assert_eq!(fused.products(), 1);
    assert_eq!(
        layer_cost(fused),
        Cost {
            rounds: 1,
            messages: 1,
            bytes: 8000
        }
    );
    // A product that is an output itself is needed on its own.
    let apart = plan(job(
        Ring::Z64,
        4,
        dot.to_vec(),
        vec![Wire(6), Wire(4)],
        Reduce::None,
    ));
    assert_eq!(
        layer_cost(apart),
        Cost {
            rounds: 1,
            messages: 1,
            bytes: 16000
        }
    );
}

#[test]
fn a_sum_of_products_costs_one_element_per_chunk() {
    let product = vec![Gate::Mul(Wire(0), Wire(1))];
    for (ring, bytes) in [(Ring::Z64, 8), (Ring::Z128, 16)] {
        let plan = plan(job(ring, 2, product.clone(), vec![Wire(2)], Reduce::Sum));
        assert_eq!((plan.layers[0].products, plan.layers[0].sums), (0, 1));
        assert_eq!(
            layer_cost(plan),
            Cost {
                rounds: 1,
                messages: 1,
                bytes
            },
            "{ring:?}"
        );
    }
    let linear = plan(job(
        Ring::Z64,
        2,
        vec![Gate::Add(Wire(0), Wire(1))],
        vec![Wire(2)],
        Reduce::Sum,
    ));
    assert_eq!(layer_cost(linear), Cost::default());
}

/// Changes one thing of a job.
type Change = fn(&mut JobSpec);

/// A job with every kind of thing in it that can change.
fn rich() -> JobSpec {
    let mut job = job(
        Ring::Z64,
        2,
        vec![Gate::Mul(Wire(0), Wire(1)), Gate::Plus(Wire(2), 5)],
        vec![Wire(3)],
        Reduce::None,
    );
    job.owners.push("bob".into());
    job
}

#[test]
fn equal_plans_have_equal_hashes_and_others_do_not() {
    let options = Options {
        lanes: 2,
        chunk_rows: Some(64),
    };
    let hash = |job: JobSpec, options| {
        Plan::new(Arc::new(job), options)
            .expect("a job that can be planned")
            .hash
    };
    let base = hash(rich(), options);
    assert_eq!(base, hash(rich(), options));
    let one = Options {
        lanes: 1,
        ..options
    };
    let moved = Plan::new(Arc::new(rich()), one).expect("a job that can be planned");
    assert_ne!(base, moved.hash);
    assert_eq!(base, moved.on_lanes(2).hash);
    let changes: [(&str, Change); 19] = [
        ("name", |j| j.name.push('!')),
        ("schema", |j| j.schema.push_str("pay: scale 2")),
        ("owner", |j| j.owners[0].push('!')),
        ("number of owners", |j| j.owners.push("carl".into())),
        ("where one owner's name ends", |j| {
            j.owners = vec!["annb".into(), "ob".into()];
        }),
        ("party", |j| j.parties[2].push('!')),
        ("order of parties", |j| j.parties.swap(0, 1)),
        ("recipient", |j| j.recipients[0].push('!')),
        ("number of recipients", |j| j.recipients.clear()),
        ("gate", |j| j.circuit.gates[0] = Gate::Mul(Wire(1), Wire(0))),
        ("constant", |j| j.circuit.gates[1] = Gate::Plus(Wire(2), 6)),
        ("ring", |j| j.circuit.ring = Ring::Z128),
        ("output wire", |j| {
            j.circuit.outputs[0].wires = vec![Wire(2)];
        }),
        ("reduce", |j| j.circuit.outputs[0].reduce = Reduce::Sum),
        ("per", |j| j.circuit.inputs[0].per = Per::Job),
        ("block", |j| j.blocks[0].name.push('!')),
        ("rows", |j| j.blocks[0].rows += 1),
        ("holder", |j| j.blocks[0].holders[0] = Holder::Owner(1)),
        ("description", |j| j.opened[0].push('!')),
    ];
    let mut seen = vec![base];
    for (what, change) in changes {
        let mut job = rich();
        change(&mut job);
        seen.push(hash(job, options));
        assert!(
            !seen[..seen.len() - 1].contains(&seen[seen.len() - 1]),
            "the {what} is not under the hash"
        );
    }
    for audience in [
        Audience::Party(PartyId::THREE[0]),
        Audience::Party(PartyId::THREE[1]),
        Audience::Recipient(0),
    ] {
        let mut job = rich();
        job.audiences = vec![audience];
        seen.push(hash(job, options));
    }
    for holder in PartyId::THREE {
        let mut job = rich();
        job.blocks[0].holders[0] = Holder::Party(holder);
        seen.push(hash(job, options));
    }
    let mut four = rich();
    four.parties.push("p3".into());
    for adversary in [Adversary::SemiHonest, Adversary::Malicious] {
        four.security = Security::among(4).against(adversary);
        seen.push(hash(four.clone(), options));
    }
    let mut stacked = rich();
    let block = Block {
        rows: 500,
        ..stacked.blocks[0].clone()
    };
    stacked.blocks = vec![block.clone(), block];
    seen.push(hash(stacked, options));
    seen.push(hash(
        rich(),
        Options {
            lanes: 3,
            ..options
        },
    ));
    seen.push(hash(
        rich(),
        Options {
            chunk_rows: Some(65),
            ..options
        },
    ));
    for (k, hash) in seen.iter().enumerate() {
        assert!(
            !seen[..k].contains(hash),
            "change {k} is not under the hash"
        );
    }
}

#[test]
fn jobs_that_cannot_be_planned_are_refused() {
    let options = Options {
        lanes: 1,
        chunk_rows: Some(64),
    };
    let refusal = |change: fn(&mut JobSpec), options| {
        let mut job = rich();
        change(&mut job);
        Plan::new(Arc::new(job), options)
            .expect_err("a defect")
            .to_string()
    };
    let malformed: [(Change, &str); 11] = [
        (
            |j| j.security = Security::among(4),
            "the protocol is of as many parties as the job names",
        ),
        (
            |j| j.security.delivery = Delivery::Guaranteed,
            "no protocol for what the job asks: rep3, semi-honest, guaranteed",
        ),
        (
            |j| j.circuit.gates[0] = Gate::Mul(Wire(0), Wire(9)),
            "the circuit is malformed",
        ),
        (|j| j.blocks.clear(), "at least one row"),
        (|j| j.blocks[0].rows = 0, "at least one row"),
        (|j| j.blocks[0].holders.clear(), "one holder per input port"),
        (
            |j| j.blocks[0].holders[0] = Holder::Owner(2),
            "owners of the job",
        ),
        (|j| j.audiences.clear(), "an audience and a description"),
        (|j| j.opened.clear(), "an audience and a description"),
        (
            |j| {
                j.circuit.inputs[0].per = Per::Job;
                j.blocks.push(Block {
                    holders: vec![Holder::Owner(1)],
                    ..j.blocks[0].clone()
                });
            },
            "the same holder in every block",
        ),
        (|j| j.blocks[0].rows = 1 << 40, "choose longer chunks"),
    ];
    for (change, message) in malformed {
        let found = refusal(change, options);
        assert!(
            found.contains(message),
            "{found:?} does not say {message:?}"
        );
    }
    let guaranteed = |gate: Gate| {
        let mut job = rich();
        (job.parties, job.security) = (
            ["p0", "p1", "p2", "p3"].map(String::from).into(),
            Security::among(4),
        );
        job.security.delivery = Delivery::Guaranteed;
        job.circuit.gates.push(gate);
        Plan::new(Arc::new(job), options).map(|_| ())
    };
    assert_eq!(guaranteed(Gate::Constant(1)), Ok(()));
    assert_eq!(guaranteed(Gate::Random(0)), Err(PlanError::Random));
    let whole = |_: &mut JobSpec| {};
    let empty = refusal(
        whole,
        Options {
            chunk_rows: Some(0),
            ..options
        },
    );
    assert!(empty.contains("chunks of 0"), "{empty}");
    // 2^32 rows of two inputs and a product draw 3 · 2^31 blocks. A hundred times as many are within 2^40; a thousand times are not.
    let rows = |rows: u64| {
        let mut job = rich();
        job.blocks[0].rows = rows;
        Plan::new(
            Arc::new(job),
            Options {
                chunk_rows: Some(1 << 20),
                ..options
            },
        )
        .map(|p| p.chunks())
    };
    assert_eq!(rows(100 << 32), Ok(100 << 12));
    assert_eq!(rows(1000 << 32), Err(PlanError::TooManyPrfCalls));
}
