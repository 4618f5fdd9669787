//! Whole runs on the engine: right results for every shape of job, on every device, however lanes and chunks are cut.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use veil_device::{Cpu, Device, Fault, Isa, Reference};
use veil_engine::Abort;
use veil_job::Audience;
use veil_link::shape::Profile;
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{dot, everything, party, peer, product};
use veil_testkit::{Kind, Seed, Values, World};

const RINGS: [Ring; 3] = [Ring::Bits, Ring::Z64, Ring::Z128];

#[test]
fn products_and_dot_products_are_those_of_integers() {
    let seed = Seed::any();
    let (mut x, mut y) = (seed.numbers("x"), seed.numbers("y"));
    let rows: Vec<[u64; 2]> = (0..77)
        .map(|_| [x.next_u128() as u64, y.next_u128() as u64])
        .collect();
    let job = product(Ring::Z64, 77, Audience::Recipient(0));
    let values = Values::new(&job, |_, row, port, _| rows[row][port].into());
    let outcome = World::in_chunks(job, 20, 2).seed(seed).values(values).run();
    let want: Vec<Vec<u128>> = rows
        .iter()
        .map(|[x, y]| vec![x.wrapping_mul(*y).into()])
        .collect();
    assert_eq!(outcome.rows(Peer::Recipient(0), 0), Some(want), "{seed}");

    let job = dot(Ring::Z64, 77, Audience::Party(party(2)));
    let values = Values::new(&job, |_, row, port, _| rows[row][port].into());
    let outcome = World::in_chunks(job, 20, 2).seed(seed).values(values).run();
    let dot = rows
        .iter()
        .fold(0u64, |sum, [x, y]| sum.wrapping_add(x.wrapping_mul(*y)));
    let sum = rows.iter().fold(0u64, |sum, [x, _]| sum.wrapping_add(*x));
    assert_eq!(
        outcome.rows(peer(2), 0),
        Some(vec![vec![dot.into()]]),
        "{seed}"
    );
    assert_eq!(
        outcome.rows(peer(2), 1),
        Some(vec![vec![sum.into()]]),
        "{seed}"
    );
    assert_eq!(outcome.rows(peer(0), 0), None, "{seed}");
}

#[test]
fn results_do_not_depend_on_how_the_rows_are_cut() {
    for ring in RINGS {
        for blocks in [&[1][..], &[13], &[16, 5, 1], &[40, 33]] {
            for (chunk_rows, lanes, window) in [
                (1, 1, 1),
                (7, 1, 4),
                (8, 3, 2),
                (8, 2, 1),
                (16, 2, 3),
                (64, 4, 4),
            ] {
                World::in_chunks(everything(ring, blocks), chunk_rows, lanes)
                    .window(window)
                    .run()
                    .assert_right();
            }
        }
    }
}

#[test]
fn participants_that_run_for_themselves_get_the_same() {
    for ring in RINGS {
        for (chunk_rows, lanes, window) in [(7, 1, 1), (8, 3, 2), (64, 2, 4)] {
            World::in_chunks(everything(ring, &[40, 33]), chunk_rows, lanes)
                .window(window)
                .run_apart()
                .assert_right();
        }
    }
}

#[test]
fn all_devices_put_the_same_bytes_on_the_links() {
    for ring in RINGS {
        let world = World::in_chunks(everything(ring, &[130, 67, 1]), 100, 2);
        let digests = world.run().assert_right().digests();
        for isa in Isa::available() {
            let outcome = world
                .clone()
                .devices(move |_| Box::new(Cpu::with(isa)))
                .run();
            assert_eq!(
                outcome.assert_right().digests(),
                digests,
                "{}: {isa:?}, {ring:?}",
                outcome.seed
            );
        }
        // Every party on another device.
        let mixed = |who| -> Box<dyn Device> {
            match who {
                Peer::Party(p) if p == party(0) => Box::new(Cpu::detect()),
                Peer::Party(p) if p == party(1) => Box::new(Cpu::with(Isa::Portable)),
                _ => Box::new(Reference::default()),
            }
        };
        let outcome = world.clone().devices(mixed).run();
        assert_eq!(
            outcome.assert_right().digests(),
            digests,
            "{}: {ring:?}",
            outcome.seed
        );
    }
}

/// No other device takes the place of one that does not start: the run ends there, and the others hear of it.
#[test]
fn a_device_that_does_not_start_ends_the_run() {
    for (broken, lanes) in [(party(0), 1), (party(2), 2)] {
        let fault = Fault::Absent {
            device: "gpu".into(),
            why: "it fell off the bus".into(),
        };
        let planted = fault.clone();
        let world = World::in_chunks(everything(Ring::Z64, &[130]), 100, lanes);
        let made = AtomicU16::new(1);
        let world = world.devices_or_faults(move |who| {
            // The device of the last lane.
            if who == Peer::Party(broken) && made.fetch_add(1, Ordering::Relaxed) == lanes {
                Err(planted.clone())
            } else {
                Ok(Box::new(Reference::default()))
            }
        });
        let outcome = world.run_apart();
        for (peer, abort) in &outcome.aborts {
            if *peer == Peer::Party(broken) {
                assert!(
                    matches!(abort, Abort::Device(found) if *found == fault),
                    "{abort}"
                );
                assert_eq!(
                    abort.to_string(),
                    "the device failed: gpu did not start: it fell off the bus"
                );
            } else {
                // By the one, or by another that was.
                assert!(matches!(abort, Abort::Told { .. }), "{peer}: {abort}");
            }
        }
        assert_eq!(outcome.aborts.len(), outcome.seen.len());
    }
}

#[test]
fn a_slow_network_and_messages_out_of_order_change_nothing() {
    let world = World::in_chunks(everything(Ring::Z64, &[30, 9]), 8, 2).window(3);
    let digests = world.run().assert_right().digests();
    let slow = world
        .clone()
        .net(Profile {
            latency: Duration::from_millis(2),
            bandwidth: 100_000_000,
        })
        .run();
    assert_eq!(slow.assert_right().digests(), digests, "{}", slow.seed);
    // Not those of the handshake: a tap sends what it held back under the name that the session has by then.
    let early = [Kind::Hello, Kind::Proof].map(Some);
    let late = world.cheat(move |m| match (m.at.step.place + m.at.frame.chunk) % 3 {
        0 if !early.contains(&m.kind) => Fate::Delay(Duration::from_millis(3)),
        _ => Fate::Pass,
    });
    let late = late.run();
    assert_eq!(late.assert_right().digests(), digests, "{}", late.seed);
}

#[test]
fn each_run_has_its_own_session_and_its_own_bytes() {
    let world = World::new(product(Ring::Z64, 10, Audience::Parties));
    let first = world.run();
    first.assert_right();
    let again = world.run();
    assert_eq!(
        again.assert_right().digests(),
        first.digests(),
        "{}: the same seed",
        world.run().seed
    );
    let other = world
        .clone()
        .seed(Seed(first.seed.0 ^ 1))
        .values((*first.values).clone())
        .run();
    other.assert_right();
    for (ends, digest) in other.digests() {
        assert_ne!(
            Some(&digest),
            first.digests().get(&ends),
            "{}: {ends:?}",
            first.seed
        );
    }
    // Without a seed, the product's own way: never the same.
    let apart = [world.run_apart().digests(), world.run_apart().digests()];
    for (ends, digest) in &apart[0] {
        assert_ne!(Some(digest), apart[1].get(ends), "{ends:?}");
    }
}

#[test]
fn only_the_audience_is_given_values() {
    for audience in [
        Audience::Parties,
        Audience::Party(party(0)),
        Audience::Recipient(1),
    ] {
        let outcome = World::new(product(Ring::Bits, 9, audience)).run();
        outcome.assert_right();
        for (&who, seen) in &outcome.seen {
            let given = !seen.slices().is_empty();
            assert_eq!(
                given,
                !outcome.ports_of(who).is_empty(),
                "{who}, {audience:?}"
            );
        }
    }
}
