//! Links over TLS on loopback: meeting, moving bytes, endings.
#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod common;

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use common::{BOUNDS, World, at, party, session, soon, take};
use veil_link::tls::{self, TlsLink};
use veil_link::{Bounds, Link, LinkFault, Woken};
use veil_session::Peer;

#[test]
fn a_mesh_carries_messages_of_all_sizes_between_all_lanes() {
    let world = World::new(&[party(0), party(1), party(2), Peer::Owner(0)]);
    let ends = world.meet(2);
    thread::scope(|scope| {
        for (me, lanes) in ends {
            for (lane, connections) in lanes.into_iter().enumerate() {
                scope.spawn(move || exchange(me, lane as u8, TlsLink::new(connections, BOUNDS)));
            }
        }
    });
}

/// Sends every peer messages of many sizes and checks those that come.
fn exchange(me: Peer, lane: u8, mut link: TlsLink) {
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
            let bytes = vec![fill(me, peer, i); size];
            while !link.post(peer, at(i as u32), &bytes).unwrap() {
                assert_eq!(link.wait(soon()).unwrap(), Woken::Ready);
            }
        }
    }
    for (i, size) in SIZES.into_iter().enumerate().rev() {
        for &peer in &peers {
            let mut into = vec![0; size];
            take(&mut link, peer, at(i as u32), &mut into);
            assert!(
                into.iter().all(|&b| b == fill(peer, me, i)),
                "{peer} to {me}, message {i}"
            );
        }
    }
    link.close(soon()).unwrap();
}

#[test]
fn exporters_agree_between_the_two_ends_and_nowhere_else() {
    let world = World::new(&[party(0), party(1)]);
    let mut ends = world.meet(2);
    let (second, first) = (ends.pop().unwrap().1, ends.pop().unwrap().1);
    let at = |lane: &[tls::Connected], context: &[u8]| lane[0].exporter(b"pair", context);
    assert_eq!(at(&first[0], b"c"), at(&second[0], b"c"));
    assert_ne!(
        at(&first[0], b"c"),
        at(&first[1], b"c"),
        "another connection"
    );
    assert_ne!(at(&first[0], b"c"), at(&first[0], b"d"), "another context");
    assert_eq!((first[1][0].peer(), first[1][0].lane()), (party(1), 1));
}

#[test]
fn a_lost_peer_is_noticed_at_once() {
    let (mut a, b) = World::pair(BOUNDS);
    a.expect(party(1), at(0), 1).unwrap();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        drop(b);
    });
    let start = Instant::now();
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

#[test]
fn a_peer_that_is_lost_while_we_send_is_no_signal_and_no_hang() {
    let (mut a, b) = World::pair(BOUNDS);
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        drop(b);
    });
    let block = vec![0; 1 << 20];
    let mut place = 0;
    let error = loop {
        match a.post(party(1), at(place % 900), &block) {
            Ok(true) => place += 1,
            Ok(false) => {
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

#[test]
fn after_goodbye_what_was_sent_still_lands() {
    let (mut a, mut b) = World::pair(BOUNDS);
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

#[test]
fn a_message_that_was_promised_and_is_not_sent_before_goodbye_is_an_error() {
    let (mut a, mut b) = World::pair(BOUNDS);
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

#[test]
fn an_abort_jumps_the_queue_and_tells_nothing() {
    // The first message is half sent when the abort comes; the nine behind it never leave.
    let bounds = Bounds {
        longest: 64 << 20,
        credit: 1 << 30,
        ..BOUNDS
    };
    let (mut a, mut b) = World::pair(bounds);
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
    assert!(
        b.land(party(0), at(0), &mut into).unwrap(),
        "a frame that has begun is finished"
    );
    assert_eq!(
        b.land(party(0), at(1), &mut into).unwrap_err().fault,
        LinkFault::Aborted
    );
    b.abort();
    b.close(soon()).unwrap();
    sender.join().unwrap();
}

#[test]
fn what_is_early_beyond_the_limit_stays_in_the_network_until_it_is_expected() {
    let bounds = Bounds {
        early: 100_000,
        credit: 1 << 40,
        ..BOUNDS
    };
    let (mut a, mut b) = World::pair(bounds);
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

#[test]
fn duplicates_lengths_and_unplanned_messages_are_named() {
    let fault = |act: &dyn Fn(&mut TlsLink, &mut TlsLink)| {
        let (mut a, mut b) = World::pair(BOUNDS);
        act(&mut a, &mut b);
        a.poll().unwrap();
        loop {
            match b.wait(soon()) {
                Ok(woken) => assert_eq!(woken, Woken::Ready),
                Err(error) => return error,
            }
        }
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

#[test]
fn a_stalled_peer_is_reported_when_closing() {
    let bounds = Bounds {
        longest: 64 << 20,
        credit: 1 << 30,
        ..BOUNDS
    };
    let (mut a, _b) = World::pair(bounds);
    assert!(a.post(party(1), at(0), &vec![1; 64 << 20]).unwrap());
    let error = a
        .close(Instant::now() + Duration::from_millis(200))
        .unwrap_err();
    assert!(
        matches!(error.fault, LinkFault::Unsent(bytes) if bytes > 0),
        "{error}"
    );
}

#[test]
fn strangers_and_garbage_change_nothing_for_those_who_are_awaited() {
    let world = World::new(&[party(0), party(1)]);
    let address = world.address(party(0));
    let noise = thread::spawn(move || {
        let mut held = Vec::new();
        for i in 0..30 {
            let mut socket = TcpStream::connect(&address).unwrap();
            let garbage = [i as u8; 5000];
            // The other side may hang up in the middle of it, and should.
            let _ = std::io::Write::write_all(&mut socket, &garbage);
            held.push(socket);
        }
        held
    });
    let held = noise.join().unwrap();
    let mut ends = world.meet(1);
    drop(held);
    let mut links: Vec<TlsLink> = ends
        .drain(..)
        .map(|(_, mut lanes)| TlsLink::new(lanes.remove(0), BOUNDS))
        .collect();
    links[0].post(party(1), at(0), &[5]).unwrap();
    links[0].poll().unwrap();
    links[1].expect(party(0), at(0), 1).unwrap();
    let mut into = [0];
    take(&mut links[1], party(0), at(0), &mut into);
    assert_eq!(into, [5]);
}
