//! What opens masked values while it computes, or draws random ones: against integer arithmetic in the clear.

use veil_circuit::generate::{self, Integer};
use veil_circuit::{Builder, Circuit, Per, Wire, make};
use veil_device::Cpu;
use veil_job::{Adversary, Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{against_malicious, among_four, dot, job, party};
use veil_testkit::{Kind, Message, Outcome, Seed, Values, World};

use crate::common::suspected;

/// Values of `ring` at the ends of integers of `bits` bits, and at random.
fn values(ring: Ring, of: Integer, random: usize, seed: Seed) -> Vec<u128> {
    let mask = u128::MAX >> (128 - of.bits);
    let top = 1u128 << (of.bits - 1);
    let mut values = vec![
        0,
        1,
        2,
        mask,
        mask - 1,
        top,
        top - 1,
        top + 1,
        top.wrapping_sub(2),
    ];
    let mut numbers = seed.numbers("masked");
    values.extend((0..random).map(|_| numbers.next_u128()));
    let extend = |x: u128| {
        let x = x & mask;
        let minus = of.signed && x & top != 0;
        ring.reduce(if minus { x | !mask } else { x })
    };
    values.into_iter().map(extend).collect()
}

/// The job among three parties, and among four that take each other to follow the protocol, or not.
fn among_each(circuit: Circuit, rows: usize) -> [JobSpec; 3] {
    let holders = [Holder::Owner(0), Holder::Party(party(1))];
    let ports = circuit.inputs.len();
    let audiences = vec![Audience::Recipient(0); circuit.outputs.len()];
    let three = job(circuit, &[(rows as u64, &holders[..ports])], &audiences);
    let four = among_four(three.clone());
    let mut unchecked = four.clone();
    unchecked.security.adversary = Adversary::SemiHonest;
    [three, four, unchecked]
}

fn run(job: &JobSpec, rows: &[u128], chunk_rows: u32) -> Outcome {
    let values = Values::new(job, |_, row, _, wire| rows[row].rotate_left(wire as u32));
    World::in_chunks(job.clone(), chunk_rows, 1)
        .values(values)
        .devices(|_| Box::new(Cpu::detect()))
        .run()
}

/// What the recipient got, without looking at what it should be.
fn got(outcome: &Outcome) -> Vec<Vec<u128>> {
    assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
    outcome.rows(Peer::Recipient(0), 0).expect("all rows")
}

/// x as a signed integer of its ring, if `signed`.
fn integer(ring: Ring, x: u128, signed: bool) -> i128 {
    match ring {
        Ring::Z64 if signed => i128::from(x as u64 as i64),
        _ => x as i128,
    }
}

/// One input, and what `make` makes of it.
fn circuit(ring: Ring, make: impl FnOnce(&mut Builder, Wire) -> Vec<Wire>) -> Circuit {
    let mut b = Builder::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let out = make(&mut b, x);
    b.output("z", &out);
    b.finish().expect("a valid circuit")
}

/// Integers of every width, by one number of bits or another.
#[test]
fn truncations_are_off_by_one_at_most() {
    for (ring, widths) in [
        (Ring::Z64, (1..64).collect::<Vec<u32>>()),
        (Ring::Z128, vec![1, 2, 31, 64, 65, 100, 126, 127]),
    ] {
        for bits in widths {
            for signed in [false, true] {
                truncates(ring, Integer { bits, signed });
            }
        }
    }
}

fn truncates(ring: Ring, of: Integer) {
    let by: Vec<u32> = match of.bits {
        1 => vec![0],
        2 => vec![0, 1],
        bits => vec![1, bits / 2, bits - 1],
    };
    let circuit = circuit(ring, |b, x| {
        let by = by.iter();
        by.map(|by| generate::truncate_pr(b, x, *by, of)).collect()
    });
    let rows = values(ring, of, 10, Seed::any());
    for job in among_each(circuit, rows.len()) {
        let outcome = run(&job, &rows, 7);
        for (x, z) in rows.iter().zip(got(&outcome)) {
            let x = integer(ring, *x, of.signed);
            for (by, z) in by.iter().zip(z) {
                let floor = x >> by;
                let more = ring.sub(z, ring.reduce(floor as u128));
                let exact = floor << by == x;
                assert!(more == 0 || more == 1 && !exact, "{x} {by} {of:?}: {z}");
            }
        }
    }
}

/// The mean of what comes out is what was divided: of 4096 rows it is off by less than six standard deviations.
#[test]
fn truncations_have_no_bias() {
    let of = Integer::unsigned(40);
    let circuit = circuit(Ring::Z64, |b, x| vec![generate::truncate_pr(b, x, 8, of)]);
    for low in [1u128, 64, 128, 255] {
        let rows = vec![(77 << 8) + low; 4096];
        for job in among_each(circuit.clone(), rows.len()) {
            let outcome = run(&job, &rows, 1024);
            let more: u128 = got(&outcome).iter().map(|z| z[0] - 77).sum();
            let mean = 4096.0 * low as f64 / 256.0;
            let deviation = (mean * (1.0 - low as f64 / 256.0)).sqrt();
            assert!(
                (more as f64 - mean).abs() < 6.0 * deviation,
                "{low}: {more}"
            );
        }
    }
}

/// Words of every width: their bits one by one, and what they are put together to.
#[test]
fn words_are_put_together_exactly() {
    for (ring, widths) in [
        (Ring::Z64, vec![1, 2, 3, 8, 31, 63, 64]),
        (Ring::Z128, vec![1, 64, 65, 127, 128]),
    ] {
        for bits in widths {
            let circuit = circuit(ring, |b, x| {
                let word = generate::decompose(b, x, Integer::unsigned(bits));
                let one = generate::compose(b, &word, false);
                let other = generate::compose(b, &word, true);
                // What another reader reads of a word is a word of its own, and bits may follow any integer.
                let more = b.append(one, word[0]);
                let of_input = b.append(x, word[0]);
                vec![one, other, more, of_input]
            });
            let rows = values(ring, Integer::unsigned(ring.bits()), 8, Seed::any());
            for job in among_each(circuit, rows.len()) {
                let outcome = run(&job, &rows, 9);
                outcome.assert_right();
                for (x, z) in rows.iter().zip(got(&outcome)) {
                    let low = x & u128::MAX >> (128 - bits);
                    let top = low >> (bits - 1) == 1;
                    let signed = if top {
                        low | (u128::MAX >> (bits - 1) << (bits - 1))
                    } else {
                        low
                    };
                    let twice = |y: u128| ring.reduce((y << 1) + (x & 1));
                    let want = [low, ring.reduce(signed), twice(low), twice(*x)];
                    assert_eq!(z, want, "{x} {bits}");
                }
            }
        }
    }
}

/// Random bits and integers are the same wherever they are read, and others in every row.
#[test]
fn random_values_agree_with_their_bits() {
    for ring in [Ring::Z64, Ring::Z128] {
        let circuit = circuit(ring, |b, x| {
            let (bit, lifted) = generate::dabit(b);
            let again = b.lift(bit);
            let difference = b.sub(again, lifted);
            let injected = generate::inject(b, bit, x);
            let (random, bits) = generate::edabit(b);
            let same = generate::recompose(b, &bits, false);
            let other = generate::compose(b, &bits, false);
            let (one, two) = (b.sub(random, same), b.sub(random, other));
            vec![lifted, random, injected, difference, one, two]
        });
        let rows = values(ring, Integer::unsigned(ring.bits()), 300, Seed::any());
        for job in among_each(circuit, rows.len()) {
            let outcome = run(&job, &rows, 64);
            let rows_of = got(&outcome);
            for (x, z) in rows.iter().zip(&rows_of) {
                let bit = z[0];
                assert!(bit < 2 && z[2] == bit * x, "{z:?}");
                assert_eq!(z[3..], [0, 0, 0]);
            }
            let ones: u128 = rows_of.iter().map(|z| z[0]).sum();
            assert!((90..220).contains(&ones), "{ones} of {}", rows.len());
            let mut randoms: Vec<u128> = rows_of.iter().map(|z| z[1]).collect();
            randoms.sort_unstable();
            randoms.dedup();
            assert_eq!(randoms.len(), rows.len());
        }
    }
}

/// What is computed of sums over the rows may open masked values and draw random ones as well.
#[test]
fn sums_are_truncated_before_they_are_opened() {
    let mut sums = dot(Ring::Z64, 20, Audience::Parties);
    let mut b = Builder::new(Ring::Z64);
    let all = b.input("sums", 2, Per::Row);
    for (k, &x) in all.iter().enumerate() {
        let bits = generate::decompose(&mut b, x, Integer::unsigned(9));
        let low = generate::compose(&mut b, &bits, false);
        let rounded = b.truncate_pr(x, 3, 40);
        // The difference of two multiples of 8, one of which is of the sum itself.
        let back = b.times(rounded, 8);
        let zero = b.sub(back, x);
        let both = b.add(low, zero);
        b.output(format!("opened {k}"), &[both]);
    }
    sums.totals = Some(b.finish().expect("a valid circuit"));
    let four = among_four(sums.clone());
    for job in [sums, four] {
        // Sums of multiples of 8 are truncated exactly.
        let values = Values::new(&job, |_, row, port, _| [8, row as u128][port]);
        World::in_chunks(job, 8, 2)
            .values(values)
            .run()
            .assert_right();
    }
}

/// In circuits of bits there are random bits too, with and without proofs of products.
#[test]
fn bits_are_drawn_in_circuits_of_bits() {
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 1, Per::Row)[0];
    let (bit, other) = (b.random_bit(), b.random());
    let (both, not) = (b.and(bit, x), b.not(other));
    let chosen = b.mux(x, bit, not);
    b.output("z", &[bit, other, both, chosen]);
    let circuit = b.finish().expect("a valid circuit");
    let rows: Vec<u128> = (0..600).map(|row| row & 1).collect();
    let [three, four, unchecked] = among_each(circuit, rows.len());
    let proved = against_malicious(three.clone());
    for job in [three, proved, four, unchecked] {
        let outcome = run(&job, &rows, 128);
        let mut counts = [0; 4];
        for (x, z) in rows.iter().zip(got(&outcome)) {
            let (bit, other) = (z[0], z[1]);
            let chosen = if *x == 1 { bit } else { 1 - other };
            assert_eq!(z, [bit, other, bit & x, chosen]);
            counts[(2 * bit + other) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (90..210).contains(c)), "{counts:?}");
    }
}

/// Among four, one truncation after the other takes one round each, beside that of the product before it: what they draw is ready when they need it. Among three it takes
/// three.
#[test]
fn truncations_take_one_round_or_three() {
    let of = Integer::unsigned(40);
    let rounds = |products: u32| {
        let circuit = circuit(Ring::Z64, |b, x| {
            let mut y = x;
            for _ in 0..products {
                let square = b.mul(y, y);
                y = generate::truncate_pr(b, square, 20, of);
            }
            vec![y]
        });
        among_each(circuit, 1).map(|job| World::new(job).plan().depth)
    };
    let [three, four, _] = rounds(10);
    assert_eq!(rounds(11), [three + 4, four + 2, four + 2]);
    assert_eq!([three, four], [40, 28]);
    let exact = circuit(Ring::Z64, |b, x| {
        let squared = |y, _| {
            let square = b.mul(y, y);
            generate::shift_right(b, square, 20, of)
        };
        vec![(0..10).fold(x, squared)]
    });
    let [exact, ..] = among_each(exact, 1).map(|job| World::new(job).plan().depth);
    assert_eq!(exact, 110);
}

/// Attack case A3: a party that lies about a masked value, or about its digest, to one other is found by that one, in that round, and nothing that depends
/// on the value leaves it.
#[test]
fn lies_about_masked_values_are_found() {
    for name in ["int-half-pr:20", "int-word:5"] {
        let circuit = make(name).expect("the catalogue has it");
        // Three parties open nothing for a truncation.
        let opens = |job: &JobSpec| name == "int-word:5" || job.parties.len() == 4;
        for job in among_each(circuit, 4).into_iter().filter(opens) {
            let parties = job.parties.len();
            let values = Values::new(&job, |_, row, _, _| 77 + row as u128);
            let world = World::in_chunks(job, 16, 1).values(values).seed(Seed(5));
            let honest = world.run();
            assert!(honest.aborts.is_empty(), "{:?}", honest.aborts);
            let messages: Vec<&Message> = [Kind::Masked, Kind::MaskedDigest]
                .into_iter()
                .flat_map(|kind| honest.of(kind))
                .collect();
            assert_eq!(messages.len(), 2 * parties);
            for wrong in messages {
                let (suspects, what, outcome) = suspected(&world, wrong);
                let (to, at) = (wrong.to, wrong.at);
                assert!(suspects.contains(&wrong.from) && suspects.len() == 2);
                assert_eq!(what, "a masked value");
                let later = |m: &&Message| {
                    let layer = m.at.frame == at.frame && m.at.step.place > at.step.place;
                    m.from == to && (layer || m.kind == Some(Kind::Agreement))
                };
                assert_eq!(outcome.transcript.iter().find(later), None);
            }
        }
    }
}
