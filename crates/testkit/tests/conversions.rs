//! Conversions between integers and bits, and what is built on them, against integer arithmetic in the clear.

use veil_circuit::generate::Integer;
use veil_circuit::{Builder, Circuit, Per, Wire, catalogue, generate, make};
use veil_device::Cpu;
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{among_four, job, party};
use veil_testkit::{Kind, Message, Outcome, Seed, Values, World};

use crate::common::suspected;

/// Values of `ring` at the ends of integers of `bits` bits, and at random.
fn values(ring: Ring, bits: u32, signed: bool, seed: Seed) -> Vec<u128> {
    let mask = u128::MAX >> (128 - bits);
    let top = 1u128 << (bits - 1);
    let extend = |x: u128| {
        let minus = signed && x & top != 0;
        ring.reduce(if minus { x | !mask } else { x })
    };
    let mut values = vec![
        0,
        1,
        mask,
        top,
        top - 1,
        top.wrapping_sub(2) & mask,
        mask - 1,
        2 & mask,
    ];
    let mut numbers = seed.numbers("integers");
    values.extend((0..5).map(|_| numbers.next_u128() & mask));
    values.into_iter().map(extend).collect()
}

/// A job of `circuit`, whose inputs are of an owner and a party, for a recipient, with every pair of `values` in its rows.
fn pairs(circuit: Circuit, values: &[u128]) -> (JobSpec, Vec<[u128; 2]>) {
    let rows: Vec<[u128; 2]> = match circuit.inputs.len() {
        1 => values.iter().map(|x| [*x, 0]).collect(),
        _ => (values.iter())
            .flat_map(|x| values.iter().map(move |y| [*x, *y]))
            .collect(),
    };
    let holders = [Holder::Owner(0), Holder::Party(party(1))];
    let (ports, outputs) = (circuit.inputs.len(), circuit.outputs.len());
    let audiences = vec![Audience::Recipient(0); outputs];
    let job = job(
        circuit,
        &[(rows.len() as u64, &holders[..ports])],
        &audiences,
    );
    (job, rows)
}

fn run(job: &JobSpec, rows: &[[u128; 2]], chunk_rows: u32) -> Outcome {
    let values = Values::new(job, |_, row, port, _| rows[row][port]);
    World::in_chunks(job.clone(), chunk_rows, 1)
        .values(values)
        .devices(|_| Box::new(Cpu::detect()))
        .run()
}

/// What `name` computes of x and y, as integers.
fn expected(name: &str, x: i128, y: i128, bits: u32) -> Option<i128> {
    let name = name.strip_suffix("-signed").unwrap_or(name);
    Some(match name {
        "int-lt" => (x < y).into(),
        "int-le" => (x <= y).into(),
        "int-eq" => (x == y).into(),
        "int-zero" => (x == 0).into(),
        "int-min" => x.min(y),
        "int-max" => x.max(y),
        "int-low" | "int-word" => x,
        "int-half" => x.div_euclid(1 << (bits / 2)),
        "int-div" if y == 0 => {
            let all = (1 << bits) - 1;
            if x < 0 { -all } else { all }
        }
        "int-div" => x / y,
        _ => return None,
    })
}

fn as_integer(ring: Ring, x: u128, signed: bool) -> i128 {
    match ring {
        Ring::Z64 if signed => i128::from(x as u64 as i64),
        _ => x as i128,
    }
}

/// Every generator of the catalogue, among three parties and four.
fn generators(bits: u32, skip: &[&str]) {
    for entry in catalogue().iter().filter(|e| e.name.starts_with("int-")) {
        // What rounds at random has tests of its own: `masked.rs`.
        let rounds = entry.name.contains("-pr");
        if rounds || skip.iter().any(|name| entry.name.starts_with(name)) {
            continue;
        }
        let circuit = make(&format!("{}:{bits}", entry.name)).expect("the catalogue has it");
        let (ring, signed) = (circuit.ring, entry.name.ends_with("-signed"));
        let (three, rows) = pairs(circuit, &values(ring, bits, signed, Seed::any()));
        let four = among_four(three.clone());
        for job in [three, four] {
            // Chunks of less than a byte, of an odd number of rows, and more than there are.
            for chunk_rows in [5, 83, 1024] {
                let outcome = run(&job, &rows, chunk_rows);
                outcome.assert_right();
            }
        }
        // The evaluator says what is right; here is what it must say.
        let (job, _) = pairs(
            make(&format!("{}:{bits}", entry.name)).expect("as before"),
            &[0],
        );
        for [x, y] in rows {
            let inputs = [vec![x], vec![y]];
            let inputs = &inputs[..job.circuit.inputs.len()];
            let got = job.circuit.evaluate(inputs).expect("of this circuit");
            let of = |v| as_integer(ring, v, signed);
            if let Some(want) = expected(entry.name, of(x), of(y), bits) {
                assert_eq!(
                    got[0][0],
                    ring.reduce(want as u128),
                    "{} {x} {y}",
                    entry.name
                );
            } else {
                let bits = (0..bits).map(|j| x >> j & 1);
                assert_eq!(got[0], bits.collect::<Vec<_>>(), "{} {x}", entry.name);
            }
        }
    }
}

#[test]
fn generators_of_narrow_integers() {
    for bits in [1, 2, 5] {
        generators(bits, &[]);
    }
}

#[test]
fn generators_of_wide_integers() {
    generators(32, &["int-div"]);
    generators(64, &["int-div", "int-half", "int-low"]);
}

/// Every bit of integers of every width, one at a time: those below it are carried from, those above are not computed.
#[test]
fn every_bit() {
    for (ring, bits) in [(Ring::Z32, 32), (Ring::Z64, 64), (Ring::Z128, 128)] {
        for j in (0..bits).step_by(if ring == Ring::Z128 { 7 } else { 1 }) {
            let mut b = Builder::new(ring);
            let x = b.input("x", 1, Per::Row)[0];
            let bit = b.bit(x, j);
            let lifted = b.lift(bit);
            b.output("bit", &[lifted]);
            let circuit = b.finish().expect("a valid circuit");
            let (three, rows) = pairs(circuit, &values(ring, bits, false, Seed::any()));
            let four = among_four(three.clone());
            run(&three, &rows, 9).assert_right();
            run(&four, &rows, 9).assert_right();
        }
    }
}

/// Shifts by every number of bits, and whether so many are zero.
#[test]
fn every_shift() {
    for (ring, every) in [(Ring::Z32, 3), (Ring::Z64, 5), (Ring::Z128, 21)] {
        for by in (1..ring.bits()).step_by(every) {
            let circuit = shifts(ring, by);
            let mut all = values(ring, ring.bits(), false, Seed::any());
            // Some that end in so many zeros, or in one less.
            all.extend([1u128 << by, 1 << (by - 1), 3 << by].map(|x| ring.reduce(x)));
            let (three, rows) = pairs(circuit.clone(), &all);
            let four = among_four(three.clone());
            for job in [three, four] {
                run(&job, &rows, 9).assert_right();
            }
            for [x, _] in rows {
                let got = circuit.evaluate(&[vec![x]]).expect("of this circuit");
                let signed = match ring {
                    Ring::Z32 => (x as u32 as i32 >> by) as u32 as u128,
                    Ring::Z64 => (x as u64 as i64 >> by) as u64 as u128,
                    _ => (x as i128 >> by) as u128,
                };
                let zero = x & ((1 << by) - 1) == 0;
                assert_eq!(got[0], [x >> by, zero.into(), signed], "{x} {by}");
            }
        }
    }
}

/// A shift, whether the bits that go are zero, and the same shift of a signed integer.
fn shifts(ring: Ring, by: u32) -> Circuit {
    let mut b = Builder::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let high = b.shift_right(x, by, ring.bits());
    let zero = b.is_zero(x, by);
    let zero = b.lift(zero);
    let signed = generate::shift_right(&mut b, x, by, Integer::signed(ring.bits()));
    b.output("z", &[high, zero, signed]);
    b.finish().expect("a valid circuit")
}

/// Bits of the whole ring to an integer, and back.
#[test]
fn there_and_back() {
    for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
        let of = Integer::unsigned(ring.bits());
        let mut b = Builder::new(ring);
        let x = b.input("x", 1, Per::Row)[0];
        let bits = generate::decompose(&mut b, x, of);
        let same = generate::recompose(&mut b, &bits, false);
        b.output("x", &[same]);
        let circuit = b.finish().expect("a valid circuit");
        let (three, rows) = pairs(circuit, &values(ring, ring.bits(), false, Seed::any()));
        let four = among_four(three.clone());
        for job in [three, four] {
            let outcome = run(&job, &rows, 6);
            outcome.assert_right();
            let want: Vec<Vec<u128>> = rows.iter().map(|[x, _]| vec![*x]).collect();
            let peer = Peer::Recipient(0);
            assert_eq!(outcome.rows(peer, 0), Some(want));
        }
    }
}

/// Conversions after conversions and products, job-wide values, sums over rows, and bits of constants.
fn tangle(ring: Ring) -> Circuit {
    let mut b = Builder::new(ring);
    let x = b.input("x", 2, Per::Row);
    let y = b.input("y", 1, Per::Row);
    let k = b.input("k", 2, Per::Job);
    let of = Integer::signed(20);
    let low = |b: &mut Builder, x: Wire| {
        let bits = generate::decompose(b, x, of);
        generate::recompose(b, &bits, true)
    };
    let (a, c) = (low(&mut b, x[0]), low(&mut b, x[1]));
    let less = generate::is_less(&mut b, a, c, of);
    let few = low(&mut b, k[0]);
    let job = b.mul(k[0], k[1]);
    let above = generate::is_less(&mut b, few, a, of);
    let both = b.and(less, above);
    let (not, one) = (b.not(both), b.constant_bit(true));
    let either = b.or(not, one);
    let (not, either) = (b.lift(not), b.lift(either));
    let product = b.mul(not, y[0]);
    let kept = b.mux(less, product, job);
    let kept = low(&mut b, kept);
    let square = b.mul(kept, kept);
    let three = b.constant(3);
    let bit = b.bit(three, 1);
    let bit = b.lift(bit);
    let high = b.shift_right(k[0], 9, ring.bits());
    let high = b.add(high, kept);
    let high = b.shift_right(high, 3, ring.bits());
    let none = b.is_zero(high, 4);
    let none = b.lift(none);
    b.output("of rows", &[kept, square, either, bit, not, high, none]);
    b.output_sum("sums", &[product, not]);
    b.output("of the job", &[job]);
    b.finish().expect("a valid circuit")
}

#[test]
fn tangled() {
    for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
        let holders = [
            Holder::Owner(0),
            Holder::Party(party(2)),
            Holder::Party(party(0)),
        ];
        let audiences = [
            Audience::Parties,
            Audience::Recipient(0),
            Audience::Recipient(0),
        ];
        let three = job(tangle(ring), &[(33, &holders), (7, &holders)], &audiences);
        let four = among_four(three.clone());
        for job in [three, four] {
            for _ in 0..3 {
                let world = World::in_chunks(job.clone(), 13, 2);
                world.run().assert_right();
            }
        }
    }
}

/// Among four, a wrong message in a conversion, of bits or of integers, is found by its receiver, in its round.
#[test]
fn lies_in_a_conversion_are_found() {
    let circuit = make("int-lt:20").expect("the catalogue has it");
    let (three, _) = pairs(circuit, &[0, 1, 77, 1 << 19]);
    let world = World::in_chunks(among_four(three), 16, 1).seed(Seed(5));
    let honest = world.run();
    honest.assert_right();
    let messages: Vec<&Message> = honest.of(Kind::Product).collect();
    let of_bits = messages.iter().filter(|m| m.at.part < 24).count();
    // Of one lift.
    let of_integers = messages.len() - of_bits;
    assert!(of_bits > 30 && of_integers == 6, "{messages:?}");
    for wrong in messages {
        let (suspects, ..) = suspected(&world, wrong);
        assert!(suspects.contains(&wrong.from), "{wrong:?}");
    }
}
