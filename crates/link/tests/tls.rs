//! Links over TLS on loopback: meeting, moving bytes, endings.

use crate::common;
use std::net::TcpStream;
use std::thread;

use crate::common::{BOUNDS, World, at, party, take};
use veil_link::tls::{self, TlsLink};
use veil_link::{Link, LinkKind};

common::suite::suite!(|test: fn(LinkKind)| test(LinkKind::Tls));

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
