//! Bytes of TLS connections that come again, in another order, not at all or in part, and messages that come again inside one (attack
//! case A6).

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Act, BOUNDS, World, at, party, session, soon, take};
use veil_link::tls::{SetupError, TlsLink, dial};
use veil_link::{Link, LinkError, LinkFault, LinkKind, Woken};

/// What happens to a record of the dialler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trick {
    /// It comes twice.
    Twice,
    /// It comes after the next one.
    Later,
    /// It does not come.
    LeftOut,
    /// An earlier one comes in its place.
    Earlier,
    /// A bit of it is another.
    Changed,
    /// Half of it comes, and then nothing more.
    Half,
    /// The line ends before it.
    Cut,
}

#[derive(Default)]
struct State {
    /// To do once, to the next record.
    trick: Option<Trick>,
    /// Records that the dialler sent.
    sent: Vec<Vec<u8>>,
}

/// A relay on the line to `to` that sees where records begin and end. Its threads end with the connection.
struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    fn start(to: SocketAddr) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let known = Arc::clone(&state);
        thread::spawn(move || {
            let (caller, _) = port.accept().unwrap();
            let callee = TcpStream::connect(to).unwrap();
            let (mut from, mut back) = (callee.try_clone().unwrap(), caller.try_clone().unwrap());
            let answers = thread::spawn(move || {
                // Whatever ends the line is the end.
                let _ = io::copy(&mut from, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
            // The same; what was answered before still arrives.
            let _ = forth(&caller, &callee, &known);
            let _ = callee.shutdown(Shutdown::Write);
            answers.join().unwrap();
        });
        Relay { address, state }
    }

    fn will(&self, trick: Trick) {
        self.state.lock().unwrap().trick = Some(trick);
    }

    fn did(&self) -> bool {
        self.state.lock().unwrap().trick.is_none()
    }
}

/// The next record: type, version, length, and as many bytes.
fn record(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut record = vec![0; 5];
    from.read_exact(&mut record)?;
    let length = u16::from_be_bytes([record[3], record[4]]);
    record.resize(5 + usize::from(length), 0);
    from.read_exact(&mut record[5..])?;
    Ok(record)
}

fn forth(caller: &TcpStream, mut callee: &TcpStream, state: &Mutex<State>) -> io::Result<()> {
    loop {
        let mut next = record(caller)?;
        let (trick, before) = {
            let mut state = state.lock().unwrap();
            let before = state.sent.last().cloned();
            state.sent.push(next.clone());
            (state.trick.take(), before)
        };
        match trick {
            None => {}
            Some(Trick::Twice) => callee.write_all(&next)?,
            Some(Trick::Later) => callee.write_all(&record(caller)?)?,
            Some(Trick::LeftOut) => continue,
            Some(Trick::Earlier) => next = before.unwrap(),
            Some(Trick::Changed) => *next.last_mut().unwrap() ^= 1,
            Some(Trick::Half) => next.truncate(next.len() / 2),
            Some(Trick::Cut) => return Ok(()),
        }
        callee.write_all(&next)?;
        if trick == Some(Trick::Half) {
            return Ok(());
        }
    }
}

/// Party 0, who listens, and party 1, who dials it through a relay.
fn relayed(world: &World) -> (TlsLink, TlsLink, Relay) {
    let relay = Relay::start(world.port(party(0)).address());
    let (listener, dialler) = (&world.members[&party(0)], &world.members[&party(1)]);
    let (a, b) = thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let port = listener.port.as_ref().unwrap();
            port.accept(&listener.terms, &[party(1)], 1, soon())
                .unwrap()
        });
        let address = relay.address.to_string();
        let dialled = dial(
            &dialler.identity,
            &dialler.terms,
            party(0),
            &address,
            0,
            soon(),
        );
        (accepted.join().unwrap(), vec![dialled.unwrap()])
    });
    let link = |connected| TlsLink::new(connected, BOUNDS);
    (link(a), link(b), relay)
}

/// What ends a link.
fn ended(link: &mut impl Link) -> LinkError {
    loop {
        match link.wait(soon()) {
            Ok(woken) => assert_eq!(woken, Woken::Ready, "nothing happened"),
            Err(error) => return error,
        }
    }
}

/// Sends a byte as the message of step `place`.
fn send(link: &mut impl Link, to: u8, place: u32) {
    assert!(link.post(party(to), at(place), &[place as u8]).unwrap());
    link.poll().unwrap();
}

/// Expects and takes what [`send`] sent.
fn hear(link: &mut impl Link, from: u8, place: u32) {
    link.expect(party(from), at(place), 1).unwrap();
    let mut into = [0];
    take(link, party(from), at(place), &mut into);
    assert_eq!(into, [place as u8]);
}

#[test]
fn records_that_come_again_in_another_order_or_not_at_all_end_the_connection() {
    let refused = [
        "what came under its name is not what it sent: cannot decrypt peer's message",
        "what came under its name is not what it sent: received fatal alert: BadRecordMac",
    ];
    let lost = ["the connection ended before the run did"; 2];
    for (trick, said) in [
        (Trick::Twice, refused),
        (Trick::Later, refused),
        (Trick::LeftOut, refused),
        (Trick::Earlier, refused),
        (Trick::Changed, refused),
        (Trick::Half, lost),
        (Trick::Cut, lost),
    ] {
        let says = |error: LinkError, from: u8, what: &str| {
            let exact = error.peer == party(from) && error.fault.to_string().starts_with(what);
            assert!(exact, "{trick:?}: {error}");
        };
        let world = World::new(&[party(0), party(1)]);
        let (mut a, mut b, relay) = relayed(&world);
        send(&mut b, 0, 1);
        hear(&mut a, 1, 1);
        relay.will(trick);
        send(&mut b, 0, 2);
        // A record of its own: the first has left.
        while !relay.did() {
            thread::sleep(Duration::from_millis(1));
        }
        // The line may be cut already.
        let _ = b.post(party(0), at(3), &[3]).and_then(|_| b.poll());
        says(ended(&mut a), 1, said[0]);
        // What came before it is what was sent; nothing after it counts.
        let mut into = [0];
        let _ = a.expect(party(1), at(3), 1);
        assert!(a.land(party(1), at(3), &mut into).is_err(), "{trick:?}");
        drop(a);
        says(ended(&mut b), 0, said[1]);
    }
}

#[test]
fn bytes_of_an_old_connection_get_nowhere_and_change_nothing() {
    let world = World::new(&[party(0), party(1)]);
    let (mut a, mut b, relay) = relayed(&world);
    send(&mut b, 0, 1);
    hear(&mut a, 1, 1);
    let sent = relay.state.lock().unwrap().sent.clone();
    drop((a, b));

    let port = world.port(party(0));
    let before = port.turned();
    let mut replayed = 0;
    thread::scope(|scope| {
        let member = &world.members[&party(0)];
        let met = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(2);
            port.accept(&member.terms, &[party(1)], 1, until)
        });
        // While the true one is awaited, again and again: all of it at once, and as it came, record by record.
        while !met.is_finished() {
            for pieces in [vec![sent.concat()], sent.clone()] {
                let mut line = TcpStream::connect(port.address()).unwrap();
                line.set_read_timeout(Some(Duration::from_secs(120)))
                    .unwrap();
                for piece in pieces {
                    // It may be hung up on before it has said all.
                    let _ = line.write_all(&piece);
                }
                let mut answer = Vec::new();
                let _ = line.read_to_end(&mut answer);
                // A hello, a certificate, an alert: the answer to a call would be the 38 bytes of a fourth kind of thing.
                assert!(answer.len() < 4 << 10, "{} bytes", answer.len());
                replayed += 1;
            }
        }
        let SetupError::TimedOut { peers, hint } = met.join().unwrap().unwrap_err() else {
            panic!("the meeting ended for another reason")
        };
        assert_eq!(peers, [party(1)]);
        assert!(hint.contains("cannot decrypt peer's message"), "{hint}");
    });
    // A caller that is hung up on may know it before it is counted.
    let until = Instant::now() + Duration::from_secs(120);
    let turned = || port.turned().strangers - before.strangers;
    while turned() < replayed && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(turned(), replayed);
    // The true one is let in.
    let (mut a, mut b, _relay) = relayed(&world);
    send(&mut b, 0, 1);
    hear(&mut a, 1, 1);
}

/// A party that is what it says it is, and sends an old message again inside its own connection.
#[test]
fn messages_that_were_sent_before_are_refused_by_their_names() {
    let fault = |act: &Act| {
        let (mut a, mut b) = World::pair(LinkKind::Tls, BOUNDS);
        for link in [&mut a, &mut b] {
            link.bind(session(1));
        }
        act(&mut a, &mut b);
        let error = ended(&mut b);
        assert_eq!(error.peer, party(0));
        (error.at, error.fault)
    };
    // Of this session: it has landed.
    let again = fault(&|a, b| {
        send(a, 1, 3);
        hear(b, 0, 3);
        send(a, 1, 3);
    });
    assert_eq!(again, (Some(at(3)), LinkFault::Duplicate));
    // Under the name of another chunk, which is awaited with its own rows: it is not what was announced.
    let chunk = |chunk| {
        let mut at = at(3);
        at.frame.chunk = chunk;
        at
    };
    let other = fault(&|a, b| {
        send(a, 1, 3);
        hear(b, 0, 3);
        b.expect(party(0), chunk(1), 9).unwrap();
        a.post(party(1), chunk(1), &[3]).unwrap();
        a.poll().unwrap();
    });
    assert_eq!(
        other,
        (Some(chunk(1)), LinkFault::Length { got: 1, want: 9 })
    );
    // Of a chunk that there never is.
    let none = fault(&|a, _| {
        a.post(party(1), chunk(BOUNDS.chunks), &[3]).unwrap();
        a.poll().unwrap();
    });
    assert_eq!(none, (Some(chunk(BOUNDS.chunks)), LinkFault::Unexpected));
    // Of an older session.
    let older = fault(&|a, b| {
        b.expect(party(0), at(3), 1).unwrap();
        a.bind(session(0));
        send(a, 1, 3);
    });
    assert_eq!(older, (Some(at(3)), LinkFault::Session));
}
