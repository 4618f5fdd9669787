//! Parties that compute on cores of shares, simulated: the messages of a processor, in as many cycles whatever the values are, and lies that
//! are found in the same round.

use std::collections::BTreeMap;

use veil_device::{Cpu, Device};
use veil_device_fpga::share::Cores;
use veil_device_fpga::{Absent, Clock, Fpga, Garbler, Stalls};
use veil_job::{Adversary, Audience, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{against, against_malicious, among_four, dot, everything, peer, word};
use veil_testkit::{Kind, Message, Outcome, Seed, World};

/// Whether there are simulated cores; or a message.
fn there() -> bool {
    match Garbler::simulated(2, Stalls::default()) {
        Ok(_) => true,
        Err(Absent::NoVerilator) => {
            eprintln!("skipped: {}", Absent::NoVerilator);
            false
        }
        Err(absent) => panic!("{absent}"),
    }
}

fn card(stalls: Stalls, clock: &Clock) -> Box<dyn Device> {
    let garbler = Garbler::simulated(2, stalls).expect("there was one");
    let cores = Cores::simulated(stalls).expect("they are built where garblers are");
    Box::new(Fpga::with(garbler).shares(cores).counting(clock))
}

/// Runs a job, with cards at some of its parties; says what came of it, and how many cycles cores ran.
fn run(job: &JobSpec, seed: u64, on_card: fn(Peer) -> bool, rate: u8) -> (Outcome, u64) {
    let clock = Clock::default();
    let cores = clock.clone();
    let world = World::in_chunks(job.clone(), 8, 1).seed(Seed(seed));
    let world = world.devices(move |peer| -> Box<dyn Device> {
        if on_card(peer) {
            card(Stalls { seed, rate }, &cores)
        } else {
            Box::new(Cpu::detect())
        }
    });
    let outcome = world.run();
    (outcome, clock.cycles())
}

const NOBODY: fn(Peer) -> bool = |_| false;
const PARTIES: fn(Peer) -> bool = |peer| peer.party().is_some();

/// The same messages, and right results, with cards at some parties as with none.
fn alike(name: &str, job: &JobSpec) {
    if !there() {
        return;
    }
    let (usual, none) = run(job, 5, NOBODY, 0);
    let usual = usual.assert_right().digests();
    assert_eq!(none, 0);
    let second: fn(Peer) -> bool = |of| of == peer(1);
    for (on_card, rate) in [(PARTIES, 0), (second, 90)] {
        let (outcome, cycles) = run(job, 5, on_card, rate);
        assert_eq!(outcome.assert_right().digests(), usual, "{name}");
        println!("{name}: {cycles} cycles");
        assert!(cycles > 100, "{name}: {cycles} cycles");
    }
}

const ROWS: &[u64] = &[13, 9];

#[test]
fn three_parties_send_what_processors_do() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        alike(&format!("three, {ring:?}"), &everything(ring, ROWS));
    }
    alike("a dot product", &dot(Ring::Z128, 300, Audience::Parties));
}

#[test]
fn what_three_parties_prove_is_traced() {
    for ring in [Ring::Bits, Ring::Z64] {
        let job = against_malicious(everything(ring, ROWS));
        alike(&format!("three, malicious, {ring:?}"), &job);
    }
}

#[test]
fn four_parties_send_what_processors_do() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let job = among_four(everything(ring, ROWS));
        alike(&format!("four, {ring:?}"), &job);
    }
    let job = among_four(everything(Ring::Z64, ROWS));
    alike("four, semi-honest", &against(job, Adversary::SemiHonest));
}

/// Products of bits beside those of integers are of the same codes.
#[test]
fn words_and_bits_have_one_code() {
    alike("words of three", &word(20, Audience::Parties));
    alike("words of four", &among_four(word(20, Audience::Parties)));
}

#[test]
fn cycles_do_not_depend_on_values() {
    if !there() {
        return;
    }
    let jobs = [
        everything(Ring::Bits, ROWS),
        everything(Ring::Z64, ROWS),
        among_four(everything(Ring::Z128, ROWS)),
    ];
    for job in jobs {
        // Other values, keys and masks.
        let cycles = [1, 2].map(|seed| run(&job, seed, PARTIES, 0).1);
        assert!(cycles[0] == cycles[1] && cycles[0] > 0, "{cycles:?}");
    }
}

/// What a cheat is: messages of a kind, from one to another, in a chunk.
type Lie = (Kind, u8, u8, u32);

/// The joint messages of products, in even and in odd chunks, a sum, and codes: attack cases B1 to B6.
const LIES: [Lie; 9] = [
    (Kind::Product, 0, 3, 2),
    (Kind::Product, 1, 0, 2),
    (Kind::Product, 2, 1, 2),
    (Kind::Product, 3, 2, 2),
    (Kind::Product, 1, 2, 2),
    (Kind::Product, 1, 3, 1),
    (Kind::SumProduct, 2, 1, 2),
    (Kind::Mac, 2, 0, 2),
    (Kind::JobMac, 3, 1, 0),
];

#[test]
fn lies_are_found_as_by_a_processor() {
    if !there() {
        return;
    }
    let job = among_four(everything(Ring::Z64, ROWS));
    for (kind, from, to, chunk) in LIES {
        let (from, to) = (peer(from), peer(to));
        let cheat = move |message: &Message| {
            let picked = message.kind == Some(kind)
                && (message.from, message.to) == (from, to)
                && message.at.frame.chunk == chunk;
            if !picked {
                return Fate::Pass;
            }
            let mut bytes = message.bytes.clone();
            let last = bytes.len() - 1;
            bytes[last] ^= 0x80;
            Fate::Replace(bytes)
        };
        let said = |cards: bool| -> BTreeMap<Peer, String> {
            let world = World::in_chunks(job.clone(), 8, 1).seed(Seed(3)).window(1);
            let world = world.cheat(cheat).devices(move |_| -> Box<dyn Device> {
                if cards {
                    card(Stalls::default(), &Clock::default())
                } else {
                    Box::new(Cpu::detect())
                }
            });
            let outcome = world.run();
            let said = (outcome.aborts.iter()).map(|(who, why)| (*who, format!("{why:?}")));
            said.collect()
        };
        let usual = said(false);
        assert!(
            usual.get(&to).is_some_and(|why| why.contains("Cheated")),
            "{usual:?}"
        );
        assert_eq!(said(true), usual, "{kind:?} from {from} to {to}");
    }
}
