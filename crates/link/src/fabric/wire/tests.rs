//! A peer that lies, on the wire and in the ring: what is played here is one end without its rules.

use std::time::Duration;

use super::*;
use crate::fabric::FabricLink;
use crate::fabric::hello::{HELLO, LastWord};
use crate::frame::tests::at;
use crate::frame::{self, Body, Header};
use crate::tls::pair::{PLAN, met, parties};
use crate::{Bounds, Link, LinkError, LinkKind, Woken};

const BOUNDS: Bounds = Bounds {
    longest: 1 << 20,
    early: 1 << 20,
    credit: 1 << 22,
    places: 1000,
    chunks: 1,
    epochs: 1,
};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// One side of an attack: a link that keeps the rules, and an end of its peer that does not.
struct Attack {
    link: FabricLink,
    liar: FabricWire,
}

/// Runs an attack by either provider, if it is here: the fault that the link then has.
fn attack(act: impl Fn(&mut Attack)) -> Vec<LinkFault> {
    let providers = [Provider::TCP, Provider::SHM].into_iter();
    let here = providers.filter(|provider| {
        let missing = LinkKind::Fabric(*provider).check().err();
        missing.map(|why| eprintln!("skipped: {why}")).is_none()
    });
    let faults = here.map(|provider| {
        let [ours, theirs] = met(LinkKind::Fabric(provider));
        let mut attack = Attack {
            link: FabricLink::open(vec![ours], provider, BOUNDS).unwrap(),
            liar: FabricWire::open(theirs, provider).unwrap(),
        };
        attack.until(|attack| attack.liar.met);
        act(&mut attack);
        attack.fault()
    });
    faults.collect()
}

impl Attack {
    /// Moves both until that holds.
    fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let until = soon();
        while !holds(self) {
            assert!(Instant::now() < until, "it did not come about");
            self.link.poll().unwrap();
            self.liar.drive();
            self.liar.listen().unwrap();
        }
    }

    /// What the link says in the end.
    fn fault(&mut self) -> LinkFault {
        let until = soon();
        while Instant::now() < until {
            self.liar.drive();
            match self.link.wait(Instant::now() + Duration::from_millis(1)) {
                Ok(_) => {}
                Err(LinkError { peer, fault, .. }) => {
                    assert_eq!(peer, parties()[1]);
                    return fault;
                }
            }
        }
        panic!("nothing was noticed")
    }

    /// A packet of a whole message, sealed as the next one.
    fn packet(&mut self, place: u32) -> Vec<u8> {
        let header = Header {
            tag: frame::tag(&PLAN.0),
            body: Body::Message {
                at: at(place),
                length: 1,
            },
        };
        let mut bytes = [&header.encode()[..], &[7]].concat();
        let tag = self.liar.out.packets.seal(&mut bytes);
        [&bytes[..], &tag].concat()
    }

    /// Writes `bytes` to `to` and rings.
    fn write(&mut self, bytes: &[u8], to: usize, rung: u32) {
        // No other write of the test is from here.
        let write = self.liar.busy.iter().position(|busy| !busy).unwrap();
        let from = write.min(OUT - 1) * SLOT;
        self.liar
            .endpoint
            .out(from, bytes.len())
            .copy_from_slice(bytes);
        let mut under_way = false;
        self.until(|attack| {
            let endpoint = &mut attack.liar.endpoint;
            under_way |= under_way
                || endpoint
                    .write(write, from, bytes.len(), to as u64, rung)
                    .unwrap();
            under_way
        });
        self.liar.busy[write] = true;
    }

    /// Writes it where packet `number` lies, and rings for that.
    fn put(&mut self, bytes: &[u8], number: u64) {
        let place = number as usize % SLOTS;
        let rung = Ring::Packet {
            place,
            bytes: bytes.len(),
        };
        self.write(bytes, ring::packet(number), rung.encode());
    }

    /// The link takes the message.
    fn landed(&mut self, place: u32) {
        self.link.expect(parties()[1], at(place), 1).unwrap();
        self.until(|attack| attack.link.land(parties()[1], at(place), &mut [0]).unwrap());
    }
}

fn all(faults: &[LinkFault], is: impl Fn(&LinkFault) -> bool) {
    assert!(faults.iter().all(is), "{faults:?}");
}

fn all_cipher(faults: &[LinkFault]) {
    all(faults, |fault| matches!(fault, LinkFault::Cipher(_)));
}

fn all_malformed(faults: &[LinkFault]) {
    all(faults, |fault| matches!(fault, LinkFault::Malformed(_)));
}

#[test]
fn what_is_sent_by_the_rules_lands() {
    let faults = attack(|attack| {
        for number in 0..40 {
            let packet = attack.packet(number as u32);
            attack.put(&packet, number);
            attack.landed(number as u32);
        }
        let last = attack.packet(0);
        attack.put(&last, 40);
    });
    all(&faults, |fault| *fault == LinkFault::Duplicate);
}

#[test]
fn a_bit_that_was_changed_is_found_wherever_it_is() {
    for at in [0, 41, 50] {
        all_cipher(&attack(|attack| {
            let mut packet = attack.packet(0);
            packet[at] ^= 0x10;
            attack.put(&packet, 0);
        }));
    }
}

#[test]
fn a_packet_that_is_repeated_swapped_or_left_out_is_found() {
    all_cipher(&attack(|attack| {
        let first = attack.packet(0);
        attack.put(&first, 0);
        attack.landed(0);
        attack.put(&first, 1);
    }));
    all_cipher(&attack(|attack| {
        let [first, second] = [0, 1].map(|place| attack.packet(place));
        attack.put(&second, 0);
        attack.put(&first, 1);
    }));
    all_cipher(&attack(|attack| {
        let _lost = attack.packet(0);
        let second = attack.packet(1);
        attack.put(&second, 0);
    }));
}

#[test]
fn a_length_that_is_not_the_packets_is_found() {
    for (more, malformed) in [(-1, false), (1, false), (900, false), (-41, true)] {
        let faults = attack(|attack| {
            let packet = attack.packet(0);
            let bytes = (packet.len() as i32 + more) as usize;
            let rung = Ring::Packet { place: 0, bytes };
            attack.write(&packet, 0, rung.encode());
        });
        if malformed {
            all_malformed(&faults);
        } else {
            all_cipher(&faults);
        }
    }
}

#[test]
fn ringing_for_what_cannot_be_there_is_found() {
    for rung in [(SLOTS as u32) << 16 | 0xff, 1 << 31 | 8, u32::MAX, 1 << 30] {
        all_malformed(&attack(|attack| {
            let packet = attack.packet(0);
            attack.write(&packet, 0, rung);
        }));
    }
    // The second packet comes twice before the first: the ring is full there.
    all_malformed(&attack(|attack| {
        let packet = attack.packet(0);
        attack.put(&packet, 1);
        attack.put(&packet, 1);
    }));
}

#[test]
fn credit_that_is_false_early_or_repeated_is_found() {
    let place = |number: u64| {
        Ring::Credit {
            place: number as usize,
        }
        .encode()
    };
    all_cipher(&attack(|attack| {
        attack.write(&[7; TAG], ring::credit(0), place(0));
    }));
    all_malformed(&attack(|attack| {
        let tag = attack.liar.into.credits.seal(&mut []);
        attack.write(&tag, ring::credit(0), place(0));
    }));
    all_cipher(&attack(|attack| {
        let tag = attack.liar.into.credits.seal(&mut []);
        for i in 0..9 {
            let posted = attack.link.post(parties()[1], at(i), &vec![1; 1 << 16]);
            assert!(posted.unwrap());
        }
        // As if the packets had been taken, which the Byzantine party only looks at.
        let mut seen = 0;
        attack.until(|attack| {
            seen += std::mem::take(&mut attack.liar.came);
            seen > 4 * SLOT
        });
        attack.write(&tag, ring::credit(0), place(0));
        attack.write(&tag, ring::credit(1), place(1));
    }));
}

#[test]
fn no_more_is_written_than_there_is_credit_for() {
    let faults = attack(|attack| {
        for i in 0..40 {
            let posted = attack.link.post(parties()[1], at(i), &vec![1; 1 << 16]);
            assert!(posted.unwrap());
        }
        let mut seen = 0;
        attack.until(|attack| {
            seen += std::mem::take(&mut attack.liar.came);
            seen == SLOTS * SLOT
        });
        for _ in 0..300 {
            attack
                .link
                .wait(Instant::now() + Duration::from_micros(100))
                .unwrap();
            attack.liar.drive();
        }
        assert_eq!((attack.liar.came, &attack.liar.fault), (0, &None));
        attack.liar.control.end(LastWord::Abort).unwrap();
    });
    all(&faults, |fault| *fault == LinkFault::Aborted);
}

#[test]
fn a_peer_that_goes_without_a_word_is_gone() {
    let faults = attack(|attack| {
        let packet = attack.packet(0);
        attack.put(&packet, 0);
        attack.landed(0);
        let [_, other] = met(LinkKind::Fabric(Provider::TCP));
        // Its process ends: the connection and the ring with it.
        let gone = std::mem::replace(
            &mut attack.liar,
            FabricWire::open(other, Provider::TCP).unwrap(),
        );
        drop(gone);
    });
    all(&faults, |fault| matches!(fault, LinkFault::Closed(_)));
}

#[test]
fn a_peer_that_ends_in_order_with_packets_missing_is_gone_when_they_are_late() {
    let faults = attack(|attack| {
        attack.liar.control.end(LastWord::End(1)).unwrap();
    });
    all(&faults, |fault| matches!(fault, LinkFault::Closed(_)));
}

/// What the link says to `bytes` inside TLS instead of a hello.
fn greeted(bytes: &[u8]) -> Option<LinkFault> {
    if LinkKind::Fabric(Provider::TCP).check().is_err() {
        return None;
    }
    let [ours, Connected { mut line, .. }] = met(LinkKind::Fabric(Provider::TCP));
    let mut link = FabricLink::open(vec![ours], Provider::TCP, BOUNDS).unwrap();
    line.say(bytes).unwrap();
    line.flush().unwrap();
    let until = soon();
    while Instant::now() < until {
        match link.wait(Instant::now() + Duration::from_millis(50)) {
            Ok(_) => {}
            Err(error) => return Some(error.fault),
        }
    }
    panic!("nothing was noticed")
}

#[test]
fn a_hello_that_makes_no_sense_is_a_fault_of_the_peer() {
    let version = greeted(&[9; HELLO]);
    assert!(version.is_none_or(|fault| fault == LinkFault::Version { ours: 1, theirs: 9 }));
    let elsewhere = Hello::new(&[2, 0, 4, 5, 10, 9, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0], 0, 1).unwrap();
    for bytes in [[1; HELLO], elsewhere.encode()] {
        let malformed = greeted(&bytes);
        assert!(malformed.is_none_or(|fault| matches!(fault, LinkFault::Malformed(_))));
    }
}

#[test]
fn a_peer_that_is_silent_is_waited_for_no_longer_than_was_said() {
    for provider in [Provider::TCP, Provider::SHM] {
        if LinkKind::Fabric(provider).check().is_err() {
            continue;
        }
        let [ours, _silent] = met(LinkKind::Fabric(provider));
        let mut link = FabricLink::open(vec![ours], provider, BOUNDS).unwrap();
        link.expect(parties()[1], at(0), 1).unwrap();
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            assert!(!link.land(parties()[1], at(0), &mut [0]).unwrap());
            assert_eq!(link.wait(until).unwrap(), Woken::TimedOut);
        }
    }
}
