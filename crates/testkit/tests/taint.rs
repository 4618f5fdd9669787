//! Attack case G2: no unmasked copy of an input reaches a link, and what is on the links looks the same for any input.

use std::collections::BTreeSet;

use veil_circuit::{Builder, Per, Wire};
use veil_device::Cpu;
use veil_job::{Adversary, Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{
    against, among_four, authenticated, between_two, cut, everything, job, peer,
};
use veil_testkit::{Kind, Message, Outcome, Seed, Values, World, flipped, pack};

use crate::lifts::lifts;

/// Every byte sequence that stands for a secret input: elements of rings, of 32 bits in two rows, columns of 128 bits.
fn marks(outcome: &Outcome) -> Vec<Vec<u8>> {
    let (plan, values) = (&outcome.plan, &outcome.values);
    let width = match plan.ring {
        Ring::Bits => 128,
        Ring::Z32 => 2,
        Ring::Z64 | Ring::Z128 => 1,
    };
    let mut marks = Vec::new();
    for block in &values.blocks {
        // A value per job is the same in every row: where a mark takes several rows, that is none.
        let marked = |per: Per| width == 1 || per == Per::Row;
        for (port, input) in plan
            .job
            .circuit
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, p)| marked(p.per))
        {
            for wire in 0..input.width as usize {
                for rows in block.chunks_exact(width) {
                    let mut mark = vec![0; plan.ring.bytes(width as u64) as usize];
                    pack(plan.ring, rows.iter().map(|row| row[port][wire]), &mut mark);
                    marks.push(mark);
                }
            }
        }
    }
    marks
}

/// Messages that contain a secret input as it is.
fn tainted(outcome: &Outcome) -> Vec<&Message> {
    let marks = marks(outcome);
    let length = marks[0].len();
    let marks: std::collections::HashSet<Vec<u8>> = marks.into_iter().collect();
    let contains = |m: &&Message| m.bytes.windows(length).any(|window| marks.contains(window));
    outcome.transcript.iter().filter(contains).collect()
}

/// A job whose every input is a mark that is not found by chance: at least 64 random bits.
fn marked(ring: Ring) -> JobSpec {
    let rows = if ring == Ring::Bits {
        [256, 128]
    } else {
        [20, 9]
    };
    everything(ring, &rows)
}

/// The job among three parties and among four.
fn among_each(job: JobSpec) -> [JobSpec; 2] {
    [job.clone(), among_four(job)]
}

/// Jobs with lifts, whose marks are of the integers.
fn marked_lifts(ring: Ring) -> JobSpec {
    lifts(ring, 3, 20)
}

#[test]
fn no_message_contains_an_input() {
    for ring in Ring::ALL {
        let more = if ring == Ring::Bits {
            vec![between_two(marked(ring))]
        } else {
            among_each(marked_lifts(ring)).into()
        };
        for job in among_each(marked(ring)).into_iter().chain(more) {
            let outcome = World::in_chunks(job, 128, 1).run();
            let found = tainted(outcome.assert_right());
            assert!(
                found.is_empty(),
                "{}: {ring:?}: {:?}",
                outcome.seed,
                found[0]
            );
        }
    }
}

/// Whether a message is of lifts: their numbers are behind those of products.
fn of_lifts(m: &Message) -> bool {
    let parties = m.kind == Some(Kind::Product);
    parties && (matches!(m.at.part, 6..=8) || m.at.part >= 24)
}

#[test]
fn an_input_in_a_message_is_noticed() {
    let [bits, short, words, long] = Ring::ALL.map(marked);
    for (job, kind, from) in [
        (bits.clone(), Kind::Product, peer(2)),
        (short, Kind::Product, peer(2)),
        (words, Kind::Product, peer(2)),
        (long, Kind::Product, peer(2)),
        (between_two(bits.clone()), Kind::Correction, peer(1)),
        (between_two(bits), Kind::Table, peer(0)),
    ] {
        let honest = World::in_chunks(job, 128, 1);
        let mark = marks(&honest.run()).swap_remove(0);
        let leak = move |m: &Message| {
            if m.kind == Some(kind) && m.from == from {
                Fate::Replace([&mark[..], &m.bytes[mark.len()..]].concat())
            } else {
                Fate::Pass
            }
        };
        let outcome = honest.cheat(leak).run();
        let leaked = |m: &&Message| m.kind == Some(kind) && m.from == from;
        assert!(tainted(&outcome).iter().any(leaked), "{}", outcome.seed);
    }
}

/// The same of the messages of lifts.
#[test]
fn an_input_in_a_lift_is_noticed() {
    for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
        for job in among_each(marked_lifts(ring)) {
            let honest = World::in_chunks(job, 128, 1);
            let mark = marks(&honest.run()).swap_remove(0);
            let leak = move |m: &Message| {
                if of_lifts(m) && m.from == peer(2) {
                    Fate::Replace([&mark[..], &m.bytes[mark.len()..]].concat())
                } else {
                    Fate::Pass
                }
            };
            let outcome = honest.cheat(leak).run();
            let found = tainted(&outcome);
            let lifted = |m: &&Message| of_lifts(m) && m.from == peer(2);
            assert!(found.iter().any(lifted), "{}: {ring:?}", outcome.seed);
        }
    }
}

/// The inputs of a job whose chunks are rows, each as bits in bytes, from either end, and as a byte for each bit.
fn words(outcome: &Outcome) -> Vec<Vec<u8>> {
    let rows = outcome.values.blocks.iter().flatten();
    let forms = rows.flatten().flat_map(|bits| {
        let bits: Vec<u8> = bits.iter().map(|bit| *bit as u8).collect();
        let byte = |bits: &[u8]| (0..).zip(bits).fold(0, |byte, (k, bit)| byte | bit << k);
        let bytes: Vec<u8> = bits.chunks(8).map(byte).collect();
        let turned = bytes.iter().rev().map(|byte| byte.reverse_bits()).collect();
        [bytes, turned, bits]
    });
    forms.collect()
}

/// Messages that contain one of the words.
fn told<'a>(outcome: &'a Outcome, words: &[Vec<u8>]) -> Vec<&'a Message> {
    let contains = |m: &&Message| {
        let has = |word: &Vec<u8>| m.bytes.windows(word.len()).any(|window| window == word);
        words.iter().any(has)
    };
    outcome.transcript.iter().filter(contains).collect()
}

/// No message contains an input, and one that does is noticed, of these kinds from these parties.
fn tells_no_input(job: JobSpec, kinds: &[(Kind, Peer)]) {
    let honest = World::in_chunks(job, 1, 1);
    let outcome = honest.run();
    let words = words(outcome.assert_right());
    assert_eq!(words.len(), 3 * 2 * 2);
    let found = told(&outcome, &words);
    assert!(found.is_empty(), "{}: {:?}", outcome.seed, found[0]);
    for &(kind, from) in kinds {
        for word in &words {
            let leak = word.clone();
            let leaks = move |m: &Message| {
                if m.kind == Some(kind) && m.from == from && m.bytes.len() >= leak.len() {
                    Fate::Replace([&leak[..], &m.bytes[leak.len()..]].concat())
                } else {
                    Fate::Pass
                }
            };
            let outcome = honest.clone().cheat(leaks).run();
            let leaked = |m: &&Message| m.kind == Some(kind) && m.from == from;
            let told = told(&outcome, &words);
            assert!(told.iter().any(leaked), "{}: {kind:?}", outcome.seed);
        }
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn no_message_of_cut_and_choose_contains_an_input() {
    let kinds = [
        (Kind::MaskedLabels, peer(0)),
        (Kind::ShownLabels, peer(0)),
        (Kind::Correction, peer(1)),
    ];
    tells_no_input(cut("adder:128", 2), &kinds);
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn no_message_of_authenticated_garbling_contains_an_input() {
    let kinds = [
        (Kind::InputParts, peer(0)),
        (Kind::MaskedInput, peer(0)),
        (Kind::MaskedInput, peer(1)),
        (Kind::LeakyOffer, peer(1)),
        (Kind::Table, peer(0)),
    ];
    tells_no_input(authenticated("adder:128", 2, Audience::Parties), &kinds);
}

/// Rows of a job whose messages are long enough to count their bytes.
const ROWS: u64 = 4000;

/// A circuit of two integers x and y, of two owners, opened to all parties.
fn of_two(ring: Ring, make: fn(&mut Builder, [Wire; 2]) -> Wire) -> JobSpec {
    let mut b = Builder::new(ring);
    let [x, y] = ["x", "y"].map(|name| b.input(name, 1, Per::Row)[0]);
    let z = make(&mut b, [x, y]);
    b.output("z", &[z]);
    job(
        b.finish().expect("a valid circuit"),
        &[(ROWS, &[Holder::Owner(0), Holder::Owner(1)])],
        &[Audience::Parties],
    )
}

/// x y x + x.
fn twice(ring: Ring) -> JobSpec {
    of_two(ring, |b, [x, y]| {
        let m = b.mul(x, y);
        let n = b.mul(m, x);
        b.add(n, x)
    })
}

/// With the lowest bits a and c of x and y, and the AND and the XOR of both: products of lifts, in which bits of a product are lifted again. Three are lifted in
/// one layer, so that parties of three have all roles.
fn lifted(ring: Ring) -> JobSpec {
    of_two(ring, |b, [x, y]| {
        let [a, c] = [x, y].map(|of| b.bit(of, 0));
        let (both, either) = (b.and(a, c), b.xor(a, c));
        let [a, c, either] = [a, c, either].map(|bit| b.lift(bit));
        let both = b.lift(both);
        let m = b.mul(a, y);
        let m = b.add(m, c);
        let bit = b.bit(m, 0);
        let bit = b.lift(bit);
        let n = b.mul(bit, either);
        let n = b.add(n, both);
        b.add(n, x)
    })
}

/// χ² of the bytes against the uniform distribution: 255 degrees of freedom.
fn chi_square(bytes: impl ExactSizeIterator<Item = u8>) -> f64 {
    let expected = bytes.len() as f64 / 256.0;
    let mut counts = [0u32; 256];
    bytes.for_each(|byte| counts[byte as usize] += 1);
    counts
        .iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum()
}

/// Exceeded by uniform bytes with probability below 10^-9; the seed is fixed, so a test that passes once passes always.
const BOUND: f64 = 420.0;

/// Long messages that a party sends or receives, and the differences of any two of one length, which are not uniform. There are so many
/// at least.
pub(crate) fn uneven(outcome: &Outcome, long: u64, least: usize) -> Vec<String> {
    let mut found = Vec::new();
    for me in outcome.plan.parties().iter().copied().map(Peer::Party) {
        let view = || {
            outcome
                .transcript
                .iter()
                .filter(|m| (m.from == me || m.to == me) && m.bytes.len() as u64 >= long)
        };
        assert!(view().count() >= least, "{}", outcome.seed);
        for (k, a) in view().enumerate() {
            let alone = chi_square(a.bytes.iter().copied());
            if alone > BOUND {
                found.push(format!("{:?} of {} to {}: {alone}", a.kind, a.from, a.to));
            }
            let same = |b: &&Message| b.bytes.len() == a.bytes.len();
            for b in view().skip(k + 1).filter(same) {
                let both = chi_square(a.bytes.iter().zip(&b.bytes).map(|(a, b)| a ^ b));
                if both > BOUND {
                    found.push(format!(
                        "{:?} of {} and {:?} of {} at {me}: {both}",
                        a.kind, a.from, b.kind, b.from
                    ));
                }
            }
        }
    }
    found
}

/// Of three parties: two explicit components, two products each way, an opening each way.
fn uneven_words(outcome: &Outcome) -> Vec<String> {
    uneven(outcome, outcome.plan.ring.bytes(ROWS), 6)
}

fn constant(job: JobSpec, x: u128, y: u128) -> World {
    let values = Values::new(&job, |_, _, port, _| [x, y][port]);
    World::in_chunks(job, ROWS as u32, 1)
        .seed(Seed(7))
        .values(values)
}

#[test]
fn messages_are_uniform_whatever_the_inputs() {
    for (x, y) in [(0, 0), (0, 1), (1, 1), (u128::MAX, 1), (3, u128::MAX)] {
        for ring in [Ring::Z32, Ring::Z64] {
            for job in [twice, lifted].map(|make| make(ring)) {
                for job in among_each(job) {
                    let outcome = constant(job, x, y).run();
                    let found = uneven_words(outcome.assert_right());
                    assert!(found.is_empty(), "{ring:?}: x = {x}, y = {y}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn a_message_without_a_mask_is_noticed() {
    // What party 0 would send to the next if it forgot the masks of products of zero.
    let bare = |m: &Message| match m.kind {
        Some(Kind::Product) if m.from == peer(0) => Fate::Replace(vec![0; m.bytes.len()]),
        _ => Fate::Pass,
    };
    for ring in [Ring::Z32, Ring::Z64] {
        let outcome = constant(twice(ring), 0, 0).cheat(bare).run();
        assert!(!uneven_words(&outcome).is_empty(), "{ring:?}");
    }
}

/// What a party would send if it forgot the masks of a message of lifts: a bit in every row, here 0 and 1 by turns. Parties do not check what
/// they get, so that all messages are there.
#[test]
fn a_lift_without_a_mask_is_noticed() {
    for ring in [Ring::Z32, Ring::Z64] {
        let element = ring.bytes(1) as usize;
        let [three, four] = among_each(lifted(ring));
        for job in [three, against(four, Adversary::SemiHonest)] {
            let world = constant(job, 1, 1).devices(|_| Box::new(Cpu::detect()));
            let honest = world.run();
            assert_eq!(uneven_words(&honest), [] as [String; 0]);
            let sent = honest.transcript.iter().filter(|m| of_lifts(m));
            let sent: BTreeSet<_> = sent.map(|m| (m.from, m.at.step, m.at.part)).collect();
            assert!(sent.len() > 8, "{sent:?}");
            for name in sent {
                let bare = move |m: &Message| {
                    if (m.from, m.at.step, m.at.part) != name {
                        return Fate::Pass;
                    }
                    let mut bits = vec![0; m.bytes.len()];
                    bits.iter_mut().step_by(2 * element).for_each(|b| *b = 1);
                    Fate::Replace(bits)
                };
                let found = uneven_words(&world.clone().cheat(bare).run());
                assert!(!found.is_empty(), "{ring:?}: {name:?}");
            }
        }
    }
}

#[test]
fn a_mask_that_is_used_twice_is_noticed() {
    // Party 0 repeats the message of the first layer in the second, but for one bit.
    let kept = std::sync::Mutex::new(Vec::new());
    let again = move |m: &Message| {
        let mut kept = kept.lock().unwrap();
        match m.kind {
            Some(Kind::Product) if m.from == peer(0) && kept.is_empty() => {
                kept.clone_from(&m.bytes);
                Fate::Pass
            }
            Some(Kind::Product) if m.from == peer(0) => Fate::Replace(flipped(&kept)),
            _ => Fate::Pass,
        }
    };
    let found = uneven_words(&constant(twice(Ring::Z64), 1, 1).cheat(again).run());
    assert!(!found.is_empty());
}
