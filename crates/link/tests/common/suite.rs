//! What every link between processes keeps to, whatever carries its bytes.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use veil_link::{Bounds, Link, LinkFault, LinkKind, Woken};
use veil_session::Peer;

use super::{Act, BOUNDS, World, at, party, session, soon, take};

/// A test for everything in this file, run by a function that takes it.
#[allow(unused_macros, reason = "each test binary uses its part")]
macro_rules! suite {
    ($run:expr) => {
        crate::common::suite::suite!($run;
            a_mesh_carries_messages_of_all_sizes_between_all_lanes
            a_lost_peer_is_noticed_at_once
            a_peer_that_is_lost_while_we_send_is_no_signal_and_no_hang
            after_goodbye_what_was_sent_still_lands
            a_message_that_was_promised_and_is_not_sent_before_goodbye_is_an_error
            an_abort_jumps_the_queue_and_tells_nothing
            what_is_early_beyond_the_limit_stays_in_the_network_until_it_is_expected
            duplicates_lengths_and_unplanned_messages_are_named
            a_stalled_peer_is_reported_when_closing
        );
    };
    ($run:expr; $($name:ident)+) => {
        $(#[test]
        fn $name() {
            $run(crate::common::suite::$name);
        })+
    };
}
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use suite;

pub(crate) fn a_mesh_carries_messages_of_all_sizes_between_all_lanes(kind: LinkKind) {
    let world = World::over(&[party(0), party(1), party(2), Peer::Owner(0)], kind);
    let ends = world.meet(2);
    thread::scope(|scope| {
        for (me, lanes) in ends {
            for (lane, connections) in lanes.into_iter().enumerate() {
                scope.spawn(move || {
                    exchange(me, lane as u8, kind.open(connections, BOUNDS).unwrap());
                });
            }
        }
    });
}

/// Sends every peer messages of many sizes, every other one in pieces, and checks those that come, some of which land in pieces.
fn exchange(me: Peer, lane: u8, mut link: Box<dyn Link>) {
    const SIZES: [usize; 7] = [0, 1, 39, 16_384, 16_385, 100_000, 3_000_000];
    let fill = |from: Peer, to: Peer, i: usize| {
        (from.to_bytes()[0] * 50 + from.to_bytes()[1] * 7 + to.to_bytes()[1])
            ^ i as u8
            ^ (lane << 7)
    };
    let peers: Vec<Peer> = [party(0), party(1), party(2), Peer::Owner(0)]
        .into_iter()
        .filter(|&peer| peer != me && (peer.party().is_some() || me.party().is_some()))
        .collect();
    link.bind(session(1));
    for &peer in &peers {
        for (i, size) in SIZES.into_iter().enumerate() {
            link.expect(peer, at(i as u32), size as u64).unwrap();
        }
    }
    for (i, size) in SIZES.into_iter().enumerate() {
        for &peer in &peers {
            let bytes: Vec<u8> = (0..size).map(|k| fill(me, peer, i) ^ k as u8).collect();
            let (head, rest) = bytes.split_at(size / 3);
            let pieces = [head, &[], rest];
            let post = |link: &mut Box<dyn Link>| match i % 2 {
                0 => link.post(peer, at(i as u32), &bytes).unwrap(),
                _ => link.post_pieces(peer, at(i as u32), &pieces).unwrap(),
            };
            while !post(&mut link) {
                assert_eq!(link.wait(soon()).unwrap(), Woken::Ready);
            }
        }
    }
    for (i, size) in SIZES.into_iter().enumerate().rev() {
        for &peer in &peers {
            let mut into = vec![0; size];
            if i % 3 == 0 {
                take(&mut link, peer, at(i as u32), &mut into);
            } else {
                let mut rest = &mut into[..];
                let mut put = |piece: &[u8]| {
                    rest.split_off_mut(..piece.len())
                        .unwrap()
                        .copy_from_slice(piece);
                };
                while !link
                    .land_pieces(peer, at(i as u32), size, &mut put)
                    .unwrap()
                {
                    assert_eq!(link.wait(soon()).unwrap(), Woken::Ready);
                }
                assert!(rest.is_empty());
            }
            assert!(
                (into.iter().zip(0u8..=255).take(256)).all(|(b, k)| *b == fill(peer, me, i) ^ k)
                    && into.windows(257).all(|of| of[0] == of[256]),
                "{peer} to {me}, message {i}"
            );
        }
    }
    link.close(soon()).unwrap();
}

pub(crate) fn a_lost_peer_is_noticed_at_once(kind: LinkKind) {
    let (mut a, b) = World::pair(kind, BOUNDS);
    a.expect(party(1), at(0), 1).unwrap();
    let (waits, go) = mpsc::channel();
    let killer = thread::spawn(move || {
        go.recv().unwrap();
        drop(b);
    });
    let start = Instant::now();
    waits.send(()).unwrap();
    let error = loop {
        match a.wait(soon()) {
            Ok(woken) => assert_eq!(woken, Woken::Ready),
            Err(error) => break error,
        }
    };
    killer.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(error.peer, party(1));
    assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
    assert!(matches!(
        a.post(party(1), at(0), &[1]).unwrap_err().fault,
        LinkFault::Closed(_)
    ));
}

pub(crate) fn a_peer_that_is_lost_while_we_send_is_no_signal_and_no_hang(kind: LinkKind) {
    let (mut a, b) = World::pair(kind, BOUNDS);
    let (full, go) = mpsc::channel();
    let killer = thread::spawn(move || {
        go.recv().unwrap();
        drop(b);
    });
    let block = vec![0; 1 << 20];
    let mut place = 0;
    let error = loop {
        match a.post(party(1), at(place % 900), &block) {
            Ok(true) => place += 1,
            Ok(false) => {
                // The killer takes the first of these and is gone.
                let _ = full.send(());
                if let Err(error) = a.wait(soon()) {
                    break error;
                }
            }
            Err(error) => break error,
        }
    };
    killer.join().unwrap();
    assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
}

pub(crate) fn after_goodbye_what_was_sent_still_lands(kind: LinkKind) {
    let (mut a, mut b) = World::pair(kind, BOUNDS);
    let sender = thread::spawn(move || {
        assert!(a.post(party(1), at(0), &vec![4; 100_000]).unwrap());
        a.close(soon()).unwrap();
    });
    b.expect(party(0), at(0), 100_000).unwrap();
    let mut into = vec![0; 100_000];
    take(&mut b, party(0), at(0), &mut into);
    assert!(into.iter().all(|&x| x == 4));
    b.close(soon()).unwrap();
    sender.join().unwrap();
}

pub(crate) fn a_message_that_was_promised_and_is_not_sent_before_goodbye_is_an_error(
    kind: LinkKind,
) {
    let (mut a, mut b) = World::pair(kind, BOUNDS);
    let sender = thread::spawn(move || a.close(soon()).unwrap());
    b.expect(party(0), at(0), 1).unwrap();
    let error = loop {
        match b.land(party(0), at(0), &mut [0]) {
            Ok(here) => assert!(!here),
            Err(error) => break error,
        }
        b.wait(soon()).unwrap();
    };
    assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
    b.close(soon()).unwrap();
    sender.join().unwrap();
}

pub(crate) fn an_abort_jumps_the_queue_and_tells_nothing(kind: LinkKind) {
    // The first message is half sent when the abort comes; the nine behind it never leave.
    let bounds = Bounds {
        longest: 64 << 20,
        credit: 1 << 30,
        ..BOUNDS
    };
    let (mut a, mut b) = World::pair(kind, bounds);
    let block = vec![1; 32 << 20];
    for place in 0..10 {
        b.expect(party(0), at(place), 32 << 20).unwrap();
        assert!(a.post(party(1), at(place), &block).unwrap());
    }
    a.abort();
    assert!(matches!(
        a.post(party(1), at(10), &[]).unwrap_err().fault,
        LinkFault::Misuse(_)
    ));
    let sender = thread::spawn(move || a.close(soon()).unwrap());
    let error = loop {
        if let Err(error) = b.wait(soon()) {
            break error;
        }
    };
    assert_eq!((error.peer, error.fault), (party(0), LinkFault::Aborted));
    let mut into = vec![0; 32 << 20];
    if kind == LinkKind::Tls {
        assert!(
            b.land(party(0), at(0), &mut into).unwrap(),
            "a frame that has begun is finished"
        );
    }
    assert_eq!(
        b.land(party(0), at(1), &mut into).unwrap_err().fault,
        LinkFault::Aborted
    );
    b.abort();
    b.close(soon()).unwrap();
    sender.join().unwrap();
}

pub(crate) fn what_is_early_beyond_the_limit_stays_in_the_network_until_it_is_expected(
    kind: LinkKind,
) {
    let bounds = Bounds {
        early: 100_000,
        credit: 1 << 40,
        ..BOUNDS
    };
    let (mut a, mut b) = World::pair(kind, bounds);
    let sender = thread::spawn(move || {
        for place in 0..100 {
            assert!(
                a.post(party(1), at(place), &vec![place as u8; 40_000])
                    .unwrap()
            );
        }
        while a.wait(Instant::now() + Duration::from_millis(100)).unwrap() == Woken::Ready {}
        a
    });
    let quiet = Instant::now() + Duration::from_millis(300);
    while b.wait(quiet).unwrap() == Woken::Ready && Instant::now() < quiet {}
    let mut a = sender.join().unwrap();
    let sender = thread::spawn(move || a.close(soon()).unwrap());
    let mut into = vec![0; 40_000];
    // The last first: the early ones in front of it must not be in the way once they are expected.
    for place in (0..100).rev() {
        b.expect(party(0), at(place), 40_000).unwrap();
    }
    for place in (0..100).rev() {
        take(&mut b, party(0), at(place), &mut into);
        assert!(into.iter().all(|&x| x == place as u8));
    }
    b.close(soon()).unwrap();
    sender.join().unwrap();
}

pub(crate) fn duplicates_lengths_and_unplanned_messages_are_named(kind: LinkKind) {
    let fault = |act: &Act| {
        let (mut a, mut b) = World::pair(kind, BOUNDS);
        act(&mut a, &mut b);
        let until = soon();
        while Instant::now() < until {
            // Both move: some links need both for the first bytes.
            a.poll().unwrap();
            if let Err(error) = b.wait(Instant::now() + Duration::from_millis(1)) {
                return error;
            }
        }
        panic!("no error came")
    };
    let twice = fault(&|a, _| {
        a.post(party(1), at(3), &[1]).unwrap();
        a.post(party(1), at(3), &[1]).unwrap();
    });
    assert_eq!((twice.at, twice.fault), (Some(at(3)), LinkFault::Duplicate));
    let unplanned = fault(&|a, _| {
        a.post(party(1), at(BOUNDS.places), &[1]).unwrap();
    });
    assert_eq!(
        (unplanned.at, unplanned.fault),
        (Some(at(BOUNDS.places)), LinkFault::Unexpected)
    );
    let length = fault(&|a, b| {
        b.expect(party(0), at(3), 7).unwrap();
        a.post(party(1), at(3), &[1; 8]).unwrap();
    });
    assert_eq!(
        (length.at, length.fault),
        (Some(at(3)), LinkFault::Length { got: 8, want: 7 })
    );
    let session = fault(&|a, b| {
        a.bind(session(1));
        b.bind(session(2));
        a.post(party(1), at(3), &[1]).unwrap();
    });
    assert_eq!(session.fault, LinkFault::Session);
}

pub(crate) fn a_stalled_peer_is_reported_when_closing(kind: LinkKind) {
    let bounds = Bounds {
        longest: 64 << 20,
        credit: 1 << 30,
        ..BOUNDS
    };
    let (mut a, _b) = World::pair(kind, bounds);
    assert!(a.post(party(1), at(0), &vec![1; 64 << 20]).unwrap());
    let error = a
        .close(Instant::now() + Duration::from_millis(200))
        .unwrap_err();
    assert!(
        matches!(error.fault, LinkFault::Unsent(bytes) if bytes > 0),
        "{error}"
    );
}
