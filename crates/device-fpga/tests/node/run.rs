//! Runs of the engine whose products nodes compute and exchange by themselves, beside links in memory for all else.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{Bank, Device, Fault, Op, Round, Tag};
use veil_device_fpga::node::{Carrier, Port as _, Shape};
use veil_device_fpga::share::Cores;
use veil_device_fpga::{Fpga, Garbler, Stalls};
use veil_math::Ring;
use veil_program::{Adversary, Audience, Lowered};
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
}

const PLAIN: Way = Way {
    chunk_rows: 8,
    lanes: 1,
    rate: 0,
    seed: 5,
    cheat: None,
};

fn nodes(parties: u8, stalls: Stalls) -> Option<Carrier> {
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
    Some(built(Carrier::new(shape, &mut keys))?.expect("the nodes work"))
}

/// Runs a job at nodes.
fn run(job: &Lowered, way: Way) -> Option<(Outcome, Carrier)> {
    let stalls = Stalls {
        seed: way.seed,
        rate: way.rate,
    };
    let carrier = nodes(job.parties.len() as u8, stalls)?;
    let nodes = carrier.clone();
    let world = World::in_chunks(job.clone(), way.chunk_rows, way.lanes).seed(Seed(way.seed));
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

    fn exchange(&mut self, bank: Bank, rounds: &[Arc<Round>], tag: Tag) -> Result<usize, Fault> {
        let other = rounds.iter().map(|round| {
            let mut round = Round::clone(round);
            let products = round.local.iter_mut();
            for command in products.filter(|of| matches!(of.op, Op::Product(_))) {
                command
                    .draws
                    .iter_mut()
                    .for_each(|draw| draw.first += 1 << 20);
            }
            Arc::new(round)
        });
        let other: Vec<_> = other.collect();
        self.0.exchange(bank, &other, tag)
    }

    veil_device::forward!(self, self.0, bind load_key load open close write map view submit poll wipe);
}

/// Right results, and products that crossed the network; afterwards nothing is left in the memories.
fn right(name: &str, job: &Lowered, way: Way) {
    let Some((outcome, carrier)) = run(job, way) else {
        return;
    };
    outcome.assert_right();
    let parties = job.parties.len() as u8;
    let sent: Vec<u64> = (0..parties).map(|node| carrier.sent(node)).collect();
    println!("{name}: {} cycles, words {sent:?}", carrier.cycles());
    assert!(sent.iter().all(|sent| *sent > 0), "{name}: {sent:?}");
    for node in 0..parties {
        let mut port = carrier.network().port(node);
        let mut page = [0; 4096];
        let mut at = 0;
        while port.load(at, &mut page) {
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
        right(&format!("four, {ring:?}"), &job, PLAIN);
    }
    let job = among_four(everything(Ring::Z64, ROWS));
    let job = against(job, Adversary::SemiHonest);
    right("four, semi-honest", &job, PLAIN);
    right(
        "words of four",
        &among_four(word(20, Audience::Parties)),
        PLAIN,
    );
    let way = Way {
        lanes: 2,
        rate: 60,
        ..PLAIN
    };
    right("two lanes", &among_four(everything(Ring::Z64, &[40])), way);
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
    let four = among_four(everything(Ring::Z64, &[2300]));
    right("four, long", &four, way);
}

/// Whoever sends something else is found by the code that another party made, in the round, before anything is opened.
#[test]
fn nodes_find_other_messages() {
    let job = among_four(everything(Ring::Z64, ROWS));
    for cheat in 0..4 {
        let way = Way {
            cheat: Some(cheat),
            ..PLAIN
        };
        let Some((outcome, _)) = run(&job, way) else {
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
        assert!(outcome.reports.is_empty(), "nobody has a result");
    }
}

/// Time at the nodes is that of what they do: other values, keys and masks take as many cycles.
#[test]
fn cycles_of_nodes_do_not_depend_on_values() {
    let jobs = [
        everything(Ring::Bits, ROWS),
        among_four(everything(Ring::Z128, ROWS)),
    ];
    for job in jobs {
        let words: Vec<Vec<u64>> = [1, 2]
            .into_iter()
            .filter_map(|seed| {
                let (outcome, carrier) = run(&job, Way { seed, ..PLAIN })?;
                outcome.assert_right();
                let nodes = 0..job.parties.len() as u8;
                let sent = nodes.map(|node| carrier.sent(node));
                Some(sent.chain([carrier.cycles()]).collect())
            })
            .collect();
        assert!(words.windows(2).all(|two| two[0] == two[1]), "{words:?}");
    }
}
