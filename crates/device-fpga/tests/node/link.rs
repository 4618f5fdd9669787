//! Links whose messages go from node to node: what is posted lands, whole and in order, and what the network does to packets ends the run.

use std::time::{Duration, Instant};

use veil_device_fpga::Stalls;
use veil_device_fpga::node::{Carried, Carrier, Fault, Shape};
use veil_link::memory::{self, MemoryLink};
use veil_link::{Bounds, Link, LinkError, LinkFault};
use veil_session::{Channel, Frame, PartyId, Peer, SessionId, StepId};

use super::{built, random};

const BOUNDS: Bounds = Bounds {
    longest: 1 << 22,
    early: 1 << 24,
    credit: 1 << 24,
    places: 1 << 10,
    chunks: 1,
    epochs: 1,
};

const NAME: SessionId = SessionId([7; 32]);

fn at(place: u32) -> Channel {
    Channel {
        frame: Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 8,
        },
        step: StepId { place, cycle: 0 },
        part: 0,
    }
}

/// Nodes, and a link of each party and of an owner for each of two lanes.
fn carried(stalls: Stalls) -> Option<(Carrier, [Vec<Carried<MemoryLink>>; 2])> {
    let shape = Shape {
        stalls,
        ..Shape::new(3)
    };
    let mut drawn = 0;
    let mut keys = |bytes: &mut [u8]| {
        drawn += 1;
        bytes.copy_from_slice(&random(drawn, bytes.len()));
    };
    let carrier = built(Carrier::new(shape, &mut keys))?.expect("the nodes work");
    let [a, b, c] = PartyId::THREE.map(Peer::Party);
    let peers = [a, b, c, Peer::Owner(0)];
    let lane = || {
        let links = memory::mesh(&peers, BOUNDS).into_iter();
        links
            .zip(peers)
            .map(|(link, me)| carrier.link(me, link))
            .collect()
    };
    let lanes = [lane(), lane()];
    Some((carrier, lanes))
}

/// Polls all links until a message is there, or something fails.
fn land(
    links: &mut [Carried<MemoryLink>],
    [from, to]: [usize; 2],
    place: u32,
    bytes: usize,
) -> Result<Vec<u8>, LinkError> {
    let peers = [0, 1, 2].map(|k| Peer::Party(PartyId::new(k).expect("a party")));
    let mut into = vec![0; bytes];
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        for link in &mut *links {
            link.poll()?;
        }
        if links[to].land(peers[from], at(place), &mut into)? {
            return Ok(into);
        }
    }
    panic!("message {place} has not landed");
}

#[test]
fn what_is_posted_lands() {
    let Some((carrier, mut lanes)) = carried(Stalls { seed: 9, rate: 10 }) else {
        return;
    };
    let [a, b, _] = PartyId::THREE.map(Peer::Party);
    // Longer than all places of a direction, of every small length, and nothing at all.
    let lengths = [16 * 5000 + 3, 0, 1, 15, 16, 17, 16 * 1024, 16 * 1024 + 1];
    for (lane, links) in lanes.iter_mut().enumerate() {
        for (place, bytes) in (0..).zip(lengths) {
            let message = random(100 * lane as u64 + u64::from(place), bytes);
            assert_eq!(links[0].post(b, at(place), &message), Ok(true));
            assert_eq!(links[1].expect(a, at(place), bytes as u64), Ok(()));
            // The name comes in between: what was posted before it stays without.
            if place == 3 {
                links[0].bind(NAME);
            }
        }
        links[3].bind(NAME);
        let owner = Peer::Owner(0);
        assert_eq!(links[3].post(a, at(1), b"from an owner"), Ok(true));
        assert_eq!(links[0].expect(owner, at(1), 13), Ok(()));
    }
    for (lane, links) in lanes.iter_mut().enumerate() {
        for (place, bytes) in (0..).zip(lengths) {
            let landed = land(links, [0, 1], place, bytes);
            let message = random(100 * lane as u64 + u64::from(place), bytes);
            let landed = landed.expect("it lands");
            let differs = landed.iter().zip(&message).position(|(a, b)| a != b);
            assert_eq!(differs, None, "lane {lane}, message {place}");
            if place == 3 {
                links[1].bind(NAME);
            }
        }
        assert!(links.iter().all(|link| !link.under_way()));
        let mut into = [0; 13];
        assert_eq!(links[0].land(Peer::Owner(0), at(1), &mut into), Ok(true));
        assert_eq!(&into, b"from an owner");
        let meters = links[0].meters();
        assert_eq!(meters.messages_sent, lengths.len() as u64);
        assert_eq!(meters.payload_sent, lengths.iter().sum::<usize>() as u64);
    }
    let words: u64 = lengths.iter().map(|bytes| bytes.div_ceil(16) as u64).sum();
    let sent = carrier.sent(0);
    assert!(sent > 2 * words, "{sent} words, for {words} in each lane");
    assert!(
        carrier.cycles() > 2 * words,
        "a word takes a cycle at least"
    );
    assert_eq!(carrier.sent(2), 0, "a node that was not asked");
}

#[test]
fn packets_that_are_touched_end_the_run() {
    for fault in [Fault::Drop, Fault::Duplicate, Fault::Corrupt] {
        let Some((carrier, [mut links, _])) = carried(Stalls::default()) else {
            return;
        };
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        carrier.network().fault([0, 1], fault, 0, 1);
        for place in 0..2 {
            assert_eq!(links[0].post(b, at(place), &random(1, 40)), Ok(true));
            assert_eq!(links[1].expect(a, at(place), 40), Ok(()));
        }
        let landed = land(&mut links, [0, 1], 0, 40).and_then(|_| land(&mut links, [0, 1], 1, 40));
        // No host waits for what came twice: the node that threw it away says so when a host looks.
        let after = landed.and_then(|_| {
            assert_eq!(links[0].post(b, at(2), &random(1, 40)), Ok(true));
            links[1].expect(a, at(2), 40)?;
            land(&mut links, [0, 1], 2, 40)
        });
        let failed = after.expect_err("the run ends");
        assert!(
            matches!(failed.fault, LinkFault::Cipher(_) | LinkFault::Closed(_)),
            "{fault:?}: {failed}"
        );
        // The host that looks next has the same end.
        assert_eq!(links[0].poll(), Err(failed), "{fault:?}");
    }
}
