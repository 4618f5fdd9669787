//! Runs of the engine whose products nodes compute and exchange by themselves, beside links in memory for all else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use veil_device::{Device, Fault, Op, Round, Tag, Workspace};
use veil_device_fpga::node::{Carrier, Fault as NetworkFault, Port as _, Shape};
use veil_device_fpga::share::Cores;
use veil_device_fpga::{Fpga, Garbler, Stalls};
use veil_engine::Abort;
use veil_job::{Adversary, Audience, JobSpec};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{against, among_four, dot, everything, peer, word};
use veil_testkit::{Outcome, Seed, World};

use super::{built, random};

/// How a job runs.
#[derive(Clone, Copy)]
struct Way {
    chunk_rows: u32,
    lanes: u16,
    rate: u8,
    seed: u64,
    /// Draws masks of other counters than the others.
    cheat: Option<u8>,
    /// Nodes compute circuits without their hosts.
    headless: bool,
    /// Packets between two nodes of which one is lost, and which.
    lost: Option<([u8; 2], u64)>,
}

const PLAIN: Way = Way {
    chunk_rows: 8,
    lanes: 1,
    rate: 0,
    seed: 5,
    cheat: None,
    headless: false,
    lost: None,
};

/// Four nodes take long: two chunks, as an even one and an odd one differ.
const OF_FOUR: Way = Way {
    chunk_rows: 13,
    ..PLAIN
};

fn nodes(parties: u8, stalls: Stalls, headless: bool) -> Option<Carrier> {
    let shape = Shape {
        stalls,
        four: parties == 4,
        ..Shape::new(parties)
    };
    let mut drawn = 0;
    let mut keys = |bytes: &mut [u8]| {
        drawn += 1;
        bytes.copy_from_slice(&random(drawn, bytes.len()));
    };
    let carrier = built(Carrier::new(shape, &mut keys))?.expect("the nodes work");
    Some(if headless {
        carrier.compute_headless()
    } else {
        carrier
    })
}

/// Runs a job at nodes.
fn run(job: &JobSpec, way: Way) -> Option<(Outcome, Carrier)> {
    let stalls = Stalls {
        seed: way.seed,
        rate: way.rate,
    };
    let carrier = nodes(job.parties.len() as u8, stalls, way.headless)?;
    if let Some((between, skip)) = way.lost {
        carrier
            .network()
            .fault(between, NetworkFault::Drop, skip, 1);
    }
    let nodes = carrier.clone();
    let world = World::in_chunks(job.clone(), way.chunk_rows, way.lanes).seed(Seed(way.seed));
    // No test runs until then.
    let world = world.timeout(Duration::from_secs(3600));
    let world = world.devices(move |peer| -> Box<dyn Device> {
        let garbler = Garbler::simulated(2, stalls).expect("built as nodes are");
        let fpga = Fpga::with(garbler);
        let Some(party) = peer.party() else {
            return Box::new(fpga);
        };
        let cores = Cores::simulated(stalls).expect("built as nodes are");
        let me = party.index() as u8;
        let fpga = fpga.shares(cores).joined(nodes.node(me).user());
        if way.cheat == Some(me) {
            Box::new(Other(fpga))
        } else {
            Box::new(fpga)
        }
    });
    let outcome = world.run();
    Some((outcome, carrier))
}

/// A party that masks its products otherwise than the others think.
struct Other(Fpga);

impl Device for Other {
    fn name(&self) -> &'static str {
        "other"
    }

    fn exchange(
        &mut self,
        workspace: Workspace,
        rounds: &[Arc<Round>],
        tag: Tag,
    ) -> Result<usize, Fault> {
        let other = rounds.iter().map(|round| {
            let mut round = Round::clone(round);
            let products = round.local.iter_mut();
            for command in products.filter(|of| matches!(of.op, Op::Product(_))) {
                command
                    .calls
                    .iter_mut()
                    .for_each(|call| call.first += 1 << 20);
            }
            if let Some(products) = &mut round.products {
                Arc::make_mut(products).ahead.masks += 1 << 20;
            }
            Arc::new(round)
        });
        let other: Vec<_> = other.collect();
        self.0.exchange(workspace, &other, tag)
    }

    veil_device::forward!(self, self.0, bind load_key load open close write map view submit poll wipe);
}

/// Right results, and products that crossed the network; afterwards nothing is left in the memories.
fn right(name: &str, job: &JobSpec, way: Way) {
    let Some((outcome, carrier)) = run(job, way) else {
        return;
    };
    outcome.assert_right();
    let parties = job.parties.len() as u8;
    let sent: Vec<u64> = (0..parties).map(|node| carrier.sent(node)).collect();
    println!("{name}: {} cycles, words {sent:?}", carrier.cycles());
    let headless = carrier.headless();
    assert_eq!(headless.circuits > 0, way.headless, "{name}: {headless:?}");
    assert!(
        !way.headless || headless.rounds > headless.circuits,
        "{name}: {headless:?}"
    );
    if way.lanes == 1 {
        let circuits = headless.circuits;
        let [first, others @ ..] = headless.hosts;
        // A list and an invocation, and their ends; of the others the end of each list.
        assert_eq!(first.all(), 4 * circuits, "{name}: {headless:?}");
        for other in &others[..job.parties.len() - 1] {
            assert_eq!(other.all(), other.completions, "{name}: {headless:?}");
            assert_eq!(other.completions, circuits, "{name}: {headless:?}");
        }
    }
    assert!(sent.iter().all(|sent| *sent > 0), "{name}: {sent:?}");
    nothing_is_left(name, parties, &carrier);
}

/// The memories of all nodes are zero.
fn nothing_is_left(name: &str, parties: u8, carrier: &Carrier) {
    for node in 0..parties {
        let mut port = carrier.network().port(node);
        let mut page = [0; 4096];
        let mut at = 0;
        while port.load(at, &mut page).unwrap() {
            assert_eq!(page, [0; 4096], "{name}: node {node} at {at:#x}");
            at += page.len() as u64;
        }
        assert!(at > 1 << 20, "all of a memory");
    }
}

const ROWS: &[u64] = &[13, 9];

#[test]
fn three_nodes_do_the_products_of_a_run() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        right(&format!("three, {ring:?}"), &everything(ring, ROWS), PLAIN);
    }
    right("words of three", &word(20, Audience::Parties), PLAIN);
    let way = Way {
        lanes: 2,
        rate: 90,
        ..PLAIN
    };
    right("two lanes", &everything(Ring::Z64, &[40]), way);
}

#[test]
fn four_nodes_do_the_products_of_a_run() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let job = among_four(everything(ring, ROWS));
        right(&format!("four, {ring:?}"), &job, OF_FOUR);
    }
    let job = among_four(everything(Ring::Z64, ROWS));
    let job = against(job, Adversary::SemiHonest);
    right("four, semi-honest", &job, OF_FOUR);
    right(
        "words of four",
        &among_four(word(20, Audience::Parties)),
        OF_FOUR,
    );
    let way = Way {
        lanes: 2,
        rate: 60,
        ..OF_FOUR
    };
    right("two lanes", &among_four(everything(Ring::Z64, &[40])), way);
}

/// Nodes go through all rounds of a circuit by themselves, once the host of the first has started them.
#[test]
fn nodes_compute_circuits_of_a_run_without_hosts() {
    let way = Way {
        headless: true,
        ..PLAIN
    };
    right("bits", &everything(Ring::Bits, ROWS), way);
    let long = Way {
        chunk_rows: 1000,
        ..way
    };
    right("long columns", &everything(Ring::Bits, &[900]), long);
    let lanes = Way {
        lanes: 2,
        rate: 90,
        ..way
    };
    right("two lanes", &everything(Ring::Bits, &[40, 7]), lanes);
    let four = among_four(everything(Ring::Bits, ROWS));
    let way = Way {
        headless: true,
        ..OF_FOUR
    };
    right("four", &four, way);
    let trusting = against(four.clone(), Adversary::SemiHonest);
    right("four, semi-honest", &trusting, way);
    let four = among_four(everything(Ring::Bits, &[40]));
    right("two lanes of four", &four, Way { rate: 60, ..lanes });
}

/// A packet that is lost in a circuit ends the run of all, and nothing is left.
#[test]
fn lost_packets_end_a_run_without_hosts() {
    let job = everything(Ring::Bits, ROWS);
    for (between, skip) in [([0, 1], 0), ([1, 2], 0), ([2, 0], 1)] {
        let way = Way {
            headless: true,
            lost: Some((between, skip)),
            ..PLAIN
        };
        let Some((outcome, carrier)) = run(&job, way) else {
            return;
        };
        assert!(
            outcome.reports.is_empty(),
            "{between:?}: no party has a result"
        );
        let ended = |party| outcome.aborts.contains_key(&peer(party));
        assert!((0..3).all(ended), "{between:?}");
        // The party whose node has failed says why, and the others hear that it has given up.
        let why = |abort: &Abort| matches!(abort, Abort::Device(Fault::Card { .. }));
        assert!(outcome.aborts.values().any(why), "{:?}", outcome.aborts);
        nothing_is_left("lost", 3, &carrier);
    }
}

/// Columns of rows, and sums, of more words than a command has.
#[test]
fn long_columns_are_several_commands() {
    let way = Way {
        chunk_rows: 4096,
        ..PLAIN
    };
    for ring in [Ring::Z64, Ring::Z128] {
        right(&format!("long, {ring:?}"), &everything(ring, &[2500]), way);
    }
    right(
        "a long dot product",
        &dot(Ring::Z64, 4000, Audience::Parties),
        way,
    );
    let four = among_four(everything(Ring::Z64, &[2100]));
    right("four, long", &four, way);
}

/// A party that sends something else is found by the MAC that another party made, in the round, before anything is opened.
#[test]
fn nodes_find_other_messages() {
    found(&among_four(everything(Ring::Z64, ROWS)), OF_FOUR);
}

/// So is a party that does in a circuit: the list ends with the join that finds it.
#[test]
fn nodes_find_other_messages_without_hosts() {
    let way = Way {
        headless: true,
        ..OF_FOUR
    };
    found(&among_four(everything(Ring::Bits, ROWS)), way);
}

fn found(job: &JobSpec, way: Way) {
    for cheat in 0..4 {
        let way = Way {
            cheat: Some(cheat),
            ..way
        };
        let Some((outcome, _)) = run(job, way) else {
            return;
        };
        let said: BTreeMap<Peer, String> = (outcome.aborts.iter())
            .map(|(who, why)| (*who, format!("{why:?}")))
            .collect();
        let found = |(who, why): (&Peer, &String)| {
            *who != peer(cheat)
                && why.contains("Cheated")
                && why.contains("a joint message of a product")
                && why.contains(&format!("{:?}", peer(cheat)))
        };
        assert!(said.iter().any(found), "party {cheat}: {said:?}");
        assert!(outcome.reports.is_empty(), "no party has a result");
    }
}

/// Time at the nodes is that of what they do: other values, keys and masks take as many cycles.
#[test]
fn cycles_of_nodes_do_not_depend_on_values() {
    let jobs = [
        (everything(Ring::Bits, ROWS), false),
        (everything(Ring::Bits, ROWS), true),
        (among_four(everything(Ring::Z128, ROWS)), false),
        (among_four(everything(Ring::Bits, ROWS)), true),
    ];
    for (job, headless) in jobs {
        let words: Vec<Vec<u64>> = [1, 2]
            .into_iter()
            .filter_map(|seed| {
                let (outcome, carrier) = run(
                    &job,
                    Way {
                        seed,
                        headless,
                        ..OF_FOUR
                    },
                )?;
                outcome.assert_right();
                let nodes = 0..job.parties.len() as u8;
                let sent = nodes.map(|node| carrier.sent(node));
                Some(sent.chain([carrier.cycles()]).collect())
            })
            .collect();
        assert!(words.windows(2).all(|two| two[0] == two[1]), "{words:?}");
    }
}
