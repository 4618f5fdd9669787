//! Callers that only a raw connection can play.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::holders::{AddressRange, REQUESTS};
use super::*;
use crate::LinkKind;
use crate::tls::dial::{Missed, ask, reach};
use crate::tls::preface::{ANSWER, Answer, CALL, Call, Garbled, LaneCall, Refusal, VERSION};
use crate::tls::{ControlError, control, dial, preface};
use veil_session::PartyId;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

#[track_caller]
fn eventually(mut holds: impl FnMut() -> bool) {
    let until = soon();
    while !holds() {
        assert!(Instant::now() < until, "it did not become true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A port that echoes questions of these keys backwards.
fn echo(identity: &Identity, members: &[Fingerprint], joiners: &[Fingerprint]) -> Port {
    let (members, joiners) = (members.to_vec(), joiners.to_vec());
    let admit = move |key: &Fingerprint| {
        if members.contains(key) {
            Admission::Member
        } else if joiners.contains(key) {
            Admission::Joiner
        } else {
            Admission::Stranger
        }
    };
    let handler = |_: Caller, request: &[u8]| request.iter().rev().copied().collect();
    let reception = Reception::new(Arc::new(admit)).with_handler(Arc::new(handler));
    Port::bind(identity, "127.0.0.1:0", reception).unwrap()
}

/// Says `bytes` inside TLS, and hears the answer.
fn say(
    identity: &Identity,
    port: (&Identity, &Port),
    bytes: &[u8],
) -> Result<[u8; ANSWER], String> {
    let config = config::client(identity, port.0.fingerprint()).unwrap();
    let text = |missed| match missed {
        Missed::Broken(why) | Missed::Local(why) => why,
        Missed::Tls(error) => error.to_string(),
    };
    let mut handshake = reach(&port.1.address().to_string(), &config, soon()).map_err(text)?;
    handshake.tls.set_buffer_limit(None);
    ask(&mut handshake, bytes, soon(), &|| false).map_err(text)
}

fn refusal(answer: &[u8; ANSWER]) -> Option<Refusal> {
    Answer::decode(answer).unwrap().refusal
}

#[test]
fn two_versions_tell_each_other_that_they_differ() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let port = echo(&us, &[them.fingerprint()], &[]);
    // What version 1 said: `VEIL`, 1, and 40 bytes more, fewer than ours.
    let mut first = [7; 45];
    first[..5].copy_from_slice(b"VEIL\x01");
    let answer = say(&them, (&us, &port), &first).unwrap();
    // What version 1 looked at: our number at its place, and its own code for "another version".
    assert_eq!(
        (&answer[..4], answer[4], answer[5]),
        (&b"VEIL"[..], VERSION, 1)
    );
    // And what we make of an answer of another version.
    for other in [1, 2, 4] {
        let mut theirs = answer;
        theirs[4] = other;
        assert_eq!(Answer::decode(&theirs), Err(Garbled::Version(other)));
    }
    assert_eq!(preface::check(b"VEIL\x01"), Err(Garbled::Version(1)));
    // Counted once the answer has left.
    eventually(|| port.turned().refused == 1);
}

#[test]
fn garbage_and_unknown_kinds_are_refused_and_the_port_goes_on() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let port = echo(&us, &[them.fingerprint()], &[]);
    let call = Call::Control { length: 3 }.encode();
    let with = |at: usize, byte: u8| {
        let mut bytes = call;
        bytes[at] = byte;
        say(&them, (&us, &port), &bytes).unwrap()
    };
    assert_eq!(refusal(&with(5, 2)), Some(Refusal::Kind));
    assert_eq!(refusal(&with(20, 1)), Some(Refusal::Version));
    assert_eq!(refusal(&with(0, b'v')), Some(Refusal::Version));
    let lane = [b"VEIL\x03\x00".as_slice(), &[9; CALL - 6]].concat();
    assert_eq!(
        refusal(&say(&them, (&us, &port), &lane).unwrap()),
        Some(Refusal::Version),
        "it names no participant"
    );
    // HTTP, or anything else that is not TLS.
    for noise in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 3000],
        &[0x16, 3, 1, 0xff, 0xff],
    ] {
        let mut socket = TcpStream::connect(port.address()).unwrap();
        socket.write_all(noise).unwrap();
    }
    let address = port.address().to_string();
    let reply = control(&them, us.fingerprint(), &address, b"veil", soon());
    assert_eq!(reply, Ok(b"liev".to_vec()));
}

#[test]
fn lengths_are_limited_before_anything_is_read() {
    let [us, member, joiner] = [(); 3].map(|()| Identity::generate().unwrap());
    let port = echo(&us, &[member.fingerprint()], &[joiner.fingerprint()]);
    let announce = |who: &Identity, length: usize| {
        let call = Call::Control {
            length: length as u32,
        };
        refusal(&say(who, (&us, &port), &call.encode()).unwrap())
    };
    assert_eq!(
        announce(&member, LONGEST_REQUEST + 1),
        Some(Refusal::TooLong)
    );
    assert_eq!(announce(&member, u32::MAX as usize), Some(Refusal::TooLong));
    assert_eq!(
        announce(&joiner, LONGEST_INTRODUCTION + 1),
        Some(Refusal::Unknown)
    );
    let address = port.address().to_string();
    for (who, length) in [
        (&member, LONGEST_REQUEST),
        (&joiner, LONGEST_INTRODUCTION),
        (&joiner, 0),
    ] {
        let request: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let mut reply = control(who, us.fingerprint(), &address, &request, soon()).unwrap();
        reply.reverse();
        assert!(reply == request, "{length} bytes");
    }
}

#[test]
fn a_port_for_one_job_takes_short_questions_only() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let handler = |_: Caller, request: &[u8]| request.to_vec();
    let reception = Reception::sole([them.fingerprint()]).with_handler(Arc::new(handler));
    let port = Port::bind(&us, "127.0.0.1:0", reception).unwrap();
    let address = port.address().to_string();
    let ask = |length| control(&them, us.fingerprint(), &address, &vec![7; length], soon());
    let longest = LONGEST_INTRODUCTION;
    assert_eq!(ask(longest), Ok(vec![7; longest]));
    assert!(matches!(
        ask(longest + 1),
        Err(ControlError::TooLong { .. })
    ));
}

#[test]
fn a_joiner_learns_nothing_about_jobs() {
    let [us, joiner] = [(); 2].map(|()| Identity::generate().unwrap());
    let noticed = Arc::new(Mutex::new(Vec::new()));
    let admit: Admit = Arc::new(|_| Admission::Joiner);
    let heard = Arc::clone(&noticed);
    let reception = Reception::new(admit)
        .with_handler(Arc::new(|_, request| request.to_vec()))
        .with_noticed(Arc::new(move |key, _| heard.lock().unwrap().push(*key)));
    let port = Port::bind(&us, "127.0.0.1:0", reception).unwrap();
    let mut call = [0; CALL];
    call[..5].copy_from_slice(b"VEIL\x03");
    assert_eq!(
        refusal(&say(&joiner, (&us, &port), &call).unwrap()),
        Some(Refusal::Unknown)
    );
    // And is counted as what it is.
    eventually(|| port.turned().strangers == 1);
    assert_eq!(*noticed.lock().unwrap(), [joiner.fingerprint()]);
    let ours = joiner.fingerprint();
    let address = port.address().to_string();
    let long = vec![0; LONGEST_INTRODUCTION + 1];
    assert_eq!(
        control(&joiner, us.fingerprint(), &address, &long, soon()),
        Err(ControlError::OurKey { address, ours })
    );
}

#[test]
fn who_says_nothing_gives_way_to_who_comes_next() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let port = echo(&us, &[them.fingerprint()], &[]);
    let address = port.address().to_string();
    // More than may be pending; each says nothing, or stops in the middle of its hello.
    let mut held = Vec::new();
    for i in 0..3 * PENDING {
        let mut socket = TcpStream::connect(port.address()).unwrap();
        if i % 2 == 0 {
            // It may have been cut off already.
            let _ = socket.write_all(&[0x16, 3, 1, 2, 0, 1]);
        }
        held.push(socket);
    }
    let start = Instant::now();
    let reply = control(&them, us.fingerprint(), &address, b"ab", soon());
    assert_eq!(reply, Ok(b"ba".to_vec()));
    assert!(
        start.elapsed() < Duration::from_secs(9),
        "{:?}",
        start.elapsed()
    );
    eventually(|| port.turned().strangers >= 2 * PENDING as u64);
}

/// A stranger with a network of IPv6 to itself is one stranger, and loses its own places alone.
#[test]
fn addresses_of_one_network_share_their_places() {
    let of = |address: &str| AddressRange::of(address.parse().unwrap());
    assert_eq!(
        of("2001:db8:1:2::1"),
        of("2001:db8:1:2:ffff:ffff:ffff:ffff")
    );
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_ne!(of("::ffff:192.0.2.1"), of("192.0.2.2"));
    let us = Identity::generate().unwrap();
    let admit: Admit = Arc::new(|_| Admission::Stranger);
    let config = server_config(&us, &admit).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut held = Vec::new();
    let mut comes = |from: &str| {
        held.push(TcpStream::connect(socket.local_addr().unwrap()).unwrap());
        let (socket, _) = socket.accept().unwrap();
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let handshake = Handshake::new(socket, tls.into(), Arc::default()).unwrap();
        Pending::new(
            handshake,
            std::net::SocketAddr::new(from.parse().unwrap(), 7000),
        )
    };
    // The oldest is that of another network, which has two.
    let mut pending: Vec<Pending> = ["2001:db8::1", "2001:db8::1"].map(&mut comes).into();
    for host in 0..PENDING - 2 {
        pending.push(comes(&format!("2001:db8:bad:bad::{host:x}")));
    }
    // Fewer are no more than their part.
    while pending.len() >= PENDING / 2 {
        let victim = crowded(&pending).unwrap();
        assert_eq!(victim, 2, "the oldest of the network that has most");
        pending.remove(victim);
    }
}

/// Shows the key of `identity`, says `bytes`, and then nothing more.
fn stall(identity: &Identity, port: (&Identity, &Port), bytes: &[u8]) -> Handshake {
    let config = config::client(identity, port.0.fingerprint()).unwrap();
    let mut handshake = reach(&port.1.address().to_string(), &config, soon())
        .ok()
        .unwrap();
    handshake.say(bytes).unwrap();
    let until = soon();
    let mut heard = 0;
    // It may have been cut off already.
    while handshake.hear(&mut [0], &mut heard).is_ok()
        && (handshake.tls.is_handshaking() || handshake.tls.wants_write())
    {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(1));
    }
    handshake
}

/// A member that begins many requests, or shows its key many times and says nothing, loses its own places and no others'.
#[test]
fn a_member_that_stalls_shuts_no_other_out() {
    let [us, bad, good] = [(); 3].map(|()| Identity::generate().unwrap());
    let keys = [bad.fingerprint(), good.fingerprint()];
    let call = Call::Control { length: 100 }.encode();
    for (begun, many, kept) in [
        (&call[..], PENDING + 20, REQUESTS),
        (&[], 2 * PENDING, PENDING),
    ] {
        let port = echo(&us, &keys, &[]);
        // A request of the other that is slow, and older than all of them.
        let mut slow = stall(&good, (&us, &port), &Call::Control { length: 2 }.encode());
        let held: Vec<_> = (0..many)
            .map(|_| stall(&bad, (&us, &port), begun))
            .collect();
        let start = Instant::now();
        let address = port.address().to_string();
        let reply = control(&good, us.fingerprint(), &address, b"ab", soon());
        assert_eq!(reply, Ok(b"ba".to_vec()));
        ask(&mut slow, b"ab", soon(), &|| false).ok().unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(9),
            "{:?}",
            start.elapsed()
        );
        let away = (many - kept) as u64;
        eventually(|| port.turned().later >= away);
        // All places taken: two callers, the slow one among them, each cost one more.
        assert!(port.turned().later <= away + 2, "{:?}", port.turned());
        assert_eq!(port.turned().strangers, 0);
        drop(held);
    }
}

/// Neither a member nor any number of joiners can have all threads or all places of a queue.
#[test]
fn who_asks_much_leaves_room_for_others() {
    let ids: [Identity; 9] = [(); 9].map(|()| Identity::generate().unwrap());
    let [us, good, bad, joiners @ ..] = &ids;
    let members = [good, bad].map(Identity::fingerprint);
    let admit = move |key: &Fingerprint| {
        if members.contains(key) {
            Admission::Member
        } else {
            Admission::Joiner
        }
    };
    let [go, at_once] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let (goes, runs) = (Arc::clone(&go), Arc::clone(&at_once));
    let handler = move |_: Caller, request: &[u8]| {
        if request.ends_with(b"slow") {
            assert_eq!(runs.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
            while goes.load(Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_millis(5));
            }
            runs.fetch_sub(1, Ordering::Relaxed);
        }
        request.to_vec()
    };
    let reception = Reception::new(Arc::new(admit))
        .with_handler(Arc::new(handler))
        .with_lanes(Arc::new(|_, request| {
            if request.starts_with(b"quick") {
                Lane::Quick
            } else {
                Lane::Slow
            }
        }));
    let port = Port::bind(us, "127.0.0.1:0", reception).unwrap();
    let address = port.address().to_string();
    let ask = |who, request, until| control(who, us.fingerprint(), &address, request, until);
    // One is answered, and a quarter of the places of that queue wait.
    for (slow, fast, places) in [
        (&b"slow"[..], &b"fast"[..], 1 + 16 / 4),
        (b"quick slow", b"quick fast", 1 + 32 / 4),
    ] {
        for asking in [&[bad][..], &joiners.iter().collect::<Vec<_>>()] {
            go.store(0, Ordering::Relaxed);
            let mut askers = asking.iter().copied().cycle();
            thread::scope(|scope| {
                let all: Vec<_> = (0..places)
                    .map(|_| askers.next().unwrap())
                    .map(|who| scope.spawn(move || ask(who, slow, soon())))
                    .collect();
                let busy = |who| ask(who, slow, Instant::now() + Duration::from_millis(200));
                let last = askers.next().unwrap();
                eventually(|| matches!(busy(last), Err(ControlError::Busy { .. })));
                assert_eq!(ask(good, fast, soon()), Ok(fast.to_vec()));
                go.store(1, Ordering::Relaxed);
                for one in all {
                    assert_eq!(one.join().unwrap(), Ok(slow.to_vec()));
                }
            });
            eventually(|| at_once.load(Ordering::Relaxed) == 0);
        }
    }
}

/// A service that is busy with what takes long says so, and answers what does not.
#[test]
fn quick_questions_do_not_wait_behind_others() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let go = Arc::new(AtomicBool::new(false));
    let goes = Arc::clone(&go);
    let handler = move |_: Caller, request: &[u8]| {
        while request == b"slow" && !goes.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        request.to_vec()
    };
    let reception = Reception::new(Arc::new(|_| Admission::Member))
        .with_handler(Arc::new(handler))
        .with_lanes(Arc::new(|_, request| match request {
            b"quick" => Lane::Quick,
            _ => Lane::Slow,
        }));
    let port = Port::bind(&us, "127.0.0.1:0", reception).unwrap();
    let address = port.address().to_string();
    let ask = |request, until| control(&them, us.fingerprint(), &address, request, until);
    thread::scope(|scope| {
        // One is answered, four wait, and the others find no place.
        let slow: Vec<_> = (0..11)
            .map(|_| scope.spawn(|| ask(b"slow", soon())))
            .collect();
        let busy = || ask(b"slow", Instant::now() + Duration::from_millis(200));
        eventually(
            || matches!(busy(), Err(error @ ControlError::Busy { .. }) if error.is_answer()),
        );
        assert_eq!(ask(b"quick", soon()), Ok(b"quick".to_vec()));
        go.store(true, Ordering::Relaxed);
        for slow in slow {
            assert_eq!(slow.join().unwrap(), Ok(b"slow".to_vec()));
        }
    });
    drop(port);
    let gone = ask(b"quick", Instant::now() + Duration::from_millis(100));
    assert!(matches!(gone, Err(error) if !error.is_answer()));
}

/// The terms of the party that has the port, and the call of the other one.
fn two_parties(us: &Identity, them: &Identity) -> (Terms, LaneCall) {
    let [first, second] = [PartyId::THREE[0], PartyId::THREE[1]].map(Peer::Party);
    let terms = Terms {
        me: first,
        plan: PlanHash([3; 32]),
        pins: [(first, us.fingerprint()), (second, them.fingerprint())].into(),
        link: LinkKind::Tls,
        others: Vec::new(),
    };
    let call = LaneCall {
        plan: terms.plan,
        from: second,
        to: first,
        lane: 0,
        link: terms.link,
    };
    (terms, call)
}

#[test]
fn who_hangs_up_before_it_is_answered_keeps_no_seat() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let (terms, call) = two_parties(&us, &them);
    let port = Port::bind(&us, "127.0.0.1:0", Reception::sole([them.fingerprint()])).unwrap();
    let theirs = Terms {
        me: call.from,
        ..terms.clone()
    };
    let address = port.address().to_string();
    for _ in 0..30 {
        thread::scope(|scope| {
            let met = scope.spawn(|| port.accept(&terms, &[call.from], 2, soon()));
            // It gets as far as its call for the first of two lanes, and is gone before the answer.
            drop(stall(&them, (&us, &port), &Call::Lane(call).encode()));
            let lane = |lane| dial(&them, &theirs, call.to, &address, lane, soon()).unwrap();
            let come = [lane(0), lane(1)];
            let met = met.join().unwrap().unwrap();
            assert_eq!(met.len(), come.len());
        });
    }
}

#[test]
fn a_seat_is_promised_once_and_again_if_no_caller_takes_it() {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let (terms, call) = two_parties(&us, &them);
    let (slots, never) = (Slots::new(true), AtomicBool::new(false));
    let ended = Ended {
        asked: &never,
        failed: &never,
    };
    let key = them.fingerprint();
    thread::scope(|scope| {
        let met = scope.spawn(|| slots.gather(&terms, &[call.from], 1, (soon(), &ended), &|_| ()));
        let mut seat = None;
        eventually(|| {
            seat = slots.seat(key, call).ok();
            seat.is_some()
        });
        drop(seat);
        let seat = slots.seat(key, call).ok().unwrap();
        let again = slots.seat(key, call).err().unwrap();
        assert_eq!(again.refusal, Refusal::Lane);
        drop(seat);
        let met = met.join().unwrap();
        assert!(matches!(met, Err(SetupError::Refused { .. })), "{met:?}");
    });
}
