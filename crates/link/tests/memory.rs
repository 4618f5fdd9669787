//! The link in memory: order, limits, endings.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use veil_link::{Bounds, Link, LinkFault, Woken, memory};
use veil_session::{Channel, Frame, PartyId, Peer, SessionId, StepId};

const BOUNDS: Bounds = Bounds {
    longest: 1 << 16,
    early: 1 << 16,
    credit: 1 << 16,
    places: 100_000,
    chunks: 4,
    epochs: 1,
};

fn at(place: u32) -> Channel {
    Channel {
        frame: Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 1,
        },
        step: StepId { place, cycle: 0 },
        part: 0,
    }
}

fn party(i: u8) -> Peer {
    Peer::Party(PartyId::new(i).unwrap())
}

fn pair() -> (memory::MemoryLink, memory::MemoryLink) {
    let mut links = memory::mesh(&[party(0), party(1)], BOUNDS);
    let second = links.pop().unwrap();
    (links.pop().unwrap(), second)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

/// Waits for one message, as an engine does.
fn take(link: &mut impl Link, from: Peer, at: Channel, into: &mut [u8]) {
    while !link.land(from, at, into).unwrap() {
        assert_eq!(link.wait(soon()).unwrap(), Woken::Ready, "nothing came");
    }
}

#[test]
fn messages_land_in_any_order_whatever_came_first() {
    let (mut a, mut b) = pair();
    for place in 0..3 {
        assert!(a.post(party(1), at(place), &[place as u8; 5]).unwrap());
    }
    for place in [2, 0, 1] {
        let mut into = [0; 5];
        b.expect(party(0), at(place), 5).unwrap();
        assert!(b.land(party(0), at(place), &mut into).unwrap());
        assert_eq!(into, [place as u8; 5]);
    }
    let (sent, received) = (a.meters(), b.meters());
    assert_eq!(
        (sent.messages_sent, sent.payload_sent, sent.bytes_sent),
        (3, 15, 135)
    );
    assert_eq!(
        (received.messages_received, received.payload_received),
        (3, 15)
    );
}

#[test]
fn owners_and_recipients_reach_parties_only() {
    let mut links = memory::mesh(&[party(0), Peer::Owner(0), Peer::Recipient(0)], BOUNDS);
    assert!(links[1].post(party(0), at(0), &[]).unwrap());
    let error = links[1].post(Peer::Recipient(0), at(0), &[]).unwrap_err();
    assert_eq!(
        (error.peer, error.fault),
        (Peer::Recipient(0), LinkFault::NoSuchPeer)
    );
}

#[test]
fn credit_refuses_and_room_wakes() {
    let (mut a, mut b) = pair();
    let block = vec![1; 1 << 15];
    let mut posted = 0;
    while a.post(party(1), at(posted), &block).unwrap() {
        posted += 1;
    }
    assert_eq!(posted, 2);
    let receiver = thread::spawn(move || {
        let mut into = vec![0; 1 << 15];
        for place in 0..100 {
            b.expect(party(0), at(place), 1 << 15).unwrap();
            take(&mut b, party(0), at(place), &mut into);
        }
        b
    });
    while posted < 100 {
        if a.post(party(1), at(posted), &block).unwrap() {
            posted += 1;
        } else {
            assert_eq!(a.wait(soon()).unwrap(), Woken::Ready, "room is announced");
        }
    }
    receiver.join().unwrap();
}

#[test]
fn what_is_early_beyond_the_limit_stays_outside_until_something_is_taken() {
    let (mut a, mut b) = pair();
    // Each costs its 1000 bytes and 64 more.
    for place in 0..60 {
        assert!(a.post(party(1), at(place), &[3; 1000]).unwrap());
    }
    b.poll().unwrap();
    assert!(a.post(party(1), at(60), &[3; 1000]).unwrap());
    for place in 61..200 {
        if !a.post(party(1), at(place), &[3; 1000]).unwrap() {
            // Full: what is not read does not make room.
            assert_eq!(
                b.wait(Instant::now() + Duration::from_millis(5)).unwrap(),
                Woken::TimedOut
            );
            let mut into = [0; 1000];
            for place in 0..place {
                b.expect(party(0), at(place), 1000).unwrap();
                assert!(b.land(party(0), at(place), &mut into).unwrap());
            }
            return;
        }
        b.poll().unwrap();
    }
    panic!("the sender was never told to wait");
}

#[test]
fn a_wait_times_out() {
    let (mut a, _b) = pair();
    let start = Instant::now();
    assert_eq!(
        a.wait(start + Duration::from_millis(20)).unwrap(),
        Woken::TimedOut
    );
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn an_abort_overtakes_what_waits() {
    let (mut a, mut b) = pair();
    b.expect(party(0), at(0), 1).unwrap();
    a.post(party(1), at(0), &[1]).unwrap();
    a.abort();
    let error = b.land(party(0), at(0), &mut [0]).unwrap_err();
    assert_eq!((error.peer, error.fault), (party(0), LinkFault::Aborted));
    assert_eq!(b.wait(soon()).unwrap_err().fault, LinkFault::Aborted);
    assert!(matches!(
        a.post(party(1), at(1), &[]).unwrap_err().fault,
        LinkFault::Misuse(_)
    ));
}

#[test]
fn a_lost_peer_is_noticed_by_a_sleeper_and_by_a_sender() {
    let (mut a, b) = pair();
    let (waits, go) = mpsc::channel();
    let killer = thread::spawn(move || {
        go.recv().unwrap();
        drop(b);
    });
    waits.send(()).unwrap();
    let error = loop {
        match a.wait(soon()) {
            Ok(woken) => assert_eq!(woken, Woken::Ready),
            Err(error) => break error,
        }
    };
    killer.join().unwrap();
    assert!(matches!(error.fault, LinkFault::Closed(_)));
    assert!(matches!(
        a.post(party(1), at(0), &[1]).unwrap_err().fault,
        LinkFault::Closed(_)
    ));
}

#[test]
fn after_goodbye_what_was_sent_still_lands_and_nothing_else_is_promised() {
    let (mut a, mut b) = pair();
    a.post(party(1), at(0), &[4]).unwrap();
    a.close(soon()).unwrap();
    drop(a);
    b.expect(party(0), at(0), 1).unwrap();
    b.expect(party(0), at(1), 1).unwrap();
    let mut into = [0];
    take(&mut b, party(0), at(0), &mut into);
    assert_eq!(into, [4]);
    b.poll().unwrap();
    assert!(matches!(
        b.land(party(0), at(1), &mut into).unwrap_err().fault,
        LinkFault::Closed(_)
    ));
}

#[test]
fn faults_name_peer_and_message() {
    let (mut a, mut b) = pair();
    a.post(party(1), at(BOUNDS.places), &[]).unwrap();
    let error = b.poll().unwrap_err();
    assert_eq!(
        (error.peer, error.at, error.fault),
        (party(0), Some(at(BOUNDS.places)), LinkFault::Unexpected)
    );

    let (mut a, mut b) = pair();
    b.expect(party(0), at(1), 2).unwrap();
    a.post(party(1), at(1), &[1, 2, 3]).unwrap();
    let error = b.poll().unwrap_err();
    assert_eq!(error.fault, LinkFault::Length { got: 3, want: 2 });
    assert_eq!(
        error.to_string(),
        "party 0, step 1 message 0 of chunk 0 (lane 0): sent 3 bytes where the plan says 2"
    );

    let (mut a, mut b) = pair();
    a.post(party(1), at(9), &[1]).unwrap();
    b.poll().unwrap();
    assert_eq!(
        b.close(soon()).unwrap_err().fault,
        LinkFault::Unexpected,
        "no participant asked for it"
    );
}

#[test]
fn a_quicker_peer_may_bind_first() {
    let (mut a, mut b) = pair();
    let session = SessionId([9; 32]);
    a.post(party(1), at(0), &[1]).unwrap();
    a.bind(session);
    a.post(party(1), at(1), &[2]).unwrap();
    let mut into = [0];
    b.expect(party(0), at(0), 1).unwrap();
    take(&mut b, party(0), at(0), &mut into);
    b.bind(session);
    b.expect(party(0), at(1), 1).unwrap();
    take(&mut b, party(0), at(1), &mut into);
    assert_eq!(into, [2]);

    let (mut a, mut b) = pair();
    a.bind(SessionId([1; 32]));
    b.bind(SessionId([2; 32]));
    a.post(party(1), at(0), &[1]).unwrap();
    assert_eq!(b.poll().unwrap_err().fault, LinkFault::Session);
}
