//! Meeting over TLS when something is wrong: who is told what, on both sides.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{World, party, soon};
use veil_link::LinkKind;
use veil_link::tls::{Identity, Meeting, Port, Reception, SetupError, Terms, dial, meet};
use veil_session::{Peer, PlanHash};

/// What the lower party, who listens, and the higher one, who dials, are told.
fn told(world: &World, until: Instant) -> [SetupError; 2] {
    let mut told = world
        .try_meet(1, until)
        .into_iter()
        .map(|(_, met)| met.map(|_| ()).unwrap_err());
    [told.next().unwrap(), told.next().unwrap()]
}

fn shortly() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

/// An address on which no port listens, for now.
fn free_address() -> String {
    let reserved = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    reserved.local_addr().unwrap().to_string()
}

#[test]
fn another_plan_is_named_with_both_hashes_on_both_sides() {
    let mut world = World::new(&[party(0), party(1)]);
    world.members.get_mut(&party(1)).unwrap().terms.plan = PlanHash([7; 32]);
    let start = Instant::now();
    let [listener, dialler] = told(&world, soon());
    let (nine, seven) = (PlanHash([9; 32]), PlanHash([7; 32]));
    assert_eq!(
        listener,
        SetupError::Plan {
            peer: party(1),
            ours: nine,
            theirs: seven
        }
    );
    assert_eq!(
        dialler,
        SetupError::Plan {
            peer: party(0),
            ours: seven,
            theirs: nine
        }
    );
    assert!(dialler.to_string().contains("0909090909090909"));
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "no reason to wait for the time-out"
    );
}

#[test]
fn another_key_at_the_address_is_refused_by_the_dialler() {
    let world = World::new(&[party(0), party(1)]);
    let imposter = Identity::generate().unwrap();
    let shown = imposter.fingerprint();
    let address = world.address(party(0));
    world.port(party(0)).renew(&imposter).unwrap();
    let [listener, dialler] = told(&world, shortly());
    let pinned = world.members[&party(1)].terms.pins[&party(0)];
    assert_eq!(
        dialler,
        SetupError::WrongKey {
            peer: party(0),
            address,
            pinned,
            shown
        }
    );
    assert!(
        matches!(listener, SetupError::TimedOut { ref peers, .. } if *peers == [party(1)]),
        "{listener}"
    );
}

#[test]
fn a_key_that_is_not_pinned_gets_nowhere_and_is_told_its_fingerprint() {
    let mut world = World::new(&[party(0), party(1)]);
    let unknown = Identity::generate().unwrap();
    let ours = unknown.fingerprint();
    world.members.get_mut(&party(1)).unwrap().identity = unknown;
    let [listener, dialler] = told(&world, shortly());
    assert_eq!(
        dialler,
        SetupError::OurKey {
            peer: party(0),
            ours
        }
    );
    let SetupError::TimedOut { peers, hint } = listener else {
        panic!("{listener}")
    };
    assert_eq!(peers, [party(1)]);
    assert!(hint.contains(&ours.to_string()), "{hint}");
}

#[test]
fn a_known_key_cannot_speak_for_another_peer() {
    let world = World::new(&[party(0), party(1), Peer::Owner(4)]);
    let address = world.address(party(0));
    let owner = &world.members[&Peer::Owner(4)];
    let posing = Terms {
        me: party(1),
        ..owner.terms.clone()
    };
    let (listener, dialler) = thread::scope(|scope| {
        let listener = scope.spawn(|| {
            let terms = &world.members[&party(0)].terms;
            let awaited = [party(1), Peer::Owner(4)];
            world.port(party(0)).accept(terms, &awaited, 1, soon())
        });
        let dialler = dial(&owner.identity, &posing, party(0), &address, 0, soon());
        (
            listener.join().unwrap().map(|_| ()).unwrap_err(),
            dialler.map(|_| ()).unwrap_err(),
        )
    });
    assert!(
        matches!(
            listener,
            SetupError::Refused {
                peer: Peer::Owner(4),
                ..
            }
        ),
        "{listener}"
    );
    assert!(
        matches!(dialler, SetupError::Refused { ref why, .. } if why.contains("pins our key")),
        "{dialler}"
    );
}

#[test]
fn a_lane_connects_once_and_the_right_peer_only() {
    let world = World::new(&[party(0), party(1)]);
    let address = world.address(party(0));
    let second = &world.members[&party(1)];
    thread::scope(|scope| {
        scope.spawn(|| {
            let terms = &world.members[&party(0)].terms;
            let error = world.port(party(0)).accept(terms, &[party(1)], 2, soon());
            let error = error.map(|_| ()).unwrap_err();
            assert!(matches!(error, SetupError::Refused { .. }), "{error}");
        });
        let first = dial(
            &second.identity,
            &second.terms,
            party(0),
            &address,
            0,
            soon(),
        )
        .unwrap();
        let again = dial(
            &second.identity,
            &second.terms,
            party(0),
            &address,
            0,
            soon(),
        );
        let error = again.map(|_| ()).unwrap_err();
        assert!(
            matches!(error, SetupError::Refused { ref why, .. } if why.contains("lane")),
            "{error}"
        );
        drop(first);
    });
}

#[test]
fn peers_start_at_different_times() {
    let world = World::new(&[party(0), party(1)]);
    let address = free_address();
    let [early, late] = [party(1), party(0)].map(|p| &world.members[&p]);
    let (met, heard) = thread::scope(|scope| {
        let met =
            scope.spawn(|| dial(&early.identity, &early.terms, party(0), &address, 0, soon()));
        thread::sleep(Duration::from_millis(300));
        let reception = Reception::sole([early.identity.fingerprint()]);
        let port = Port::bind(&late.identity, &address, reception).unwrap();
        let heard = port.accept(&late.terms, &[party(1)], 1, soon());
        (met.join().unwrap().unwrap(), heard.unwrap())
    });
    assert_eq!((met.peer(), heard[0].peer()), (party(0), party(1)));
}

#[test]
fn a_missing_participant_is_named() {
    let world = World::new(&[party(1)]);
    let member = &world.members[&party(1)];
    let mut terms = member.terms.clone();
    for absent in [party(0), party(2), Peer::Owner(5)] {
        terms
            .pins
            .insert(absent, Identity::generate().unwrap().fingerprint());
    }
    let address = free_address();
    let meeting = Meeting {
        dial: &[(party(0), address.clone())],
        from: &[party(2), Peer::Owner(5)],
        lanes: 1,
        until: shortly(),
    };
    let go = AtomicBool::new(false);
    let error = meet(
        &member.identity,
        &terms,
        member.port.as_ref(),
        &meeting,
        &go,
    );
    let error = error.map(|_| ()).unwrap_err();
    let SetupError::TimedOut { mut peers, hint } = error.clone() else {
        panic!("{error}")
    };
    peers.sort();
    assert_eq!(peers, [party(0), party(2), Peer::Owner(5)]);
    assert!(hint.contains(&address), "{hint}");
    assert!(error.to_string().contains("owner 5"), "{error}");
}

#[test]
fn a_port_in_use_says_what_to_do() {
    let identity = Identity::generate().unwrap();
    let bind = |address: &str| Port::bind(&identity, address, Reception::sole([]));
    let first = bind("127.0.0.1:0").unwrap();
    let address = first.address().to_string();
    let error = bind(&address).unwrap_err();
    assert!(error.to_string().contains("the port is in use"), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn a_peer_without_a_pinned_key_is_not_even_dialled() {
    let identity = Identity::generate().unwrap();
    let terms = Terms {
        me: party(0),
        plan: PlanHash([0; 32]),
        pins: BTreeMap::new(),
        link: LinkKind::Tls,
        others: Vec::new(),
    };
    let error = dial(&identity, &terms, party(1), "127.0.0.1:1", 0, soon());
    assert_eq!(
        error.map(|_| ()).unwrap_err(),
        SetupError::NoPin { peer: party(1) }
    );
}

#[test]
fn a_peer_that_starts_again_while_others_are_awaited_is_dialled_again() {
    let world = World::new(&[party(0), party(1), party(2)]);
    let until = soon();
    let stop = AtomicBool::new(false);
    let address = |peer| world.address(peer);
    let of = |peer: Peer| &world.members[&peer];
    thread::scope(|scope| {
        let middle = scope.spawn(|| {
            let meeting = Meeting {
                dial: &[(party(0), address(party(0)))],
                from: &[party(2)],
                lanes: 1,
                until,
            };
            let (me, port) = (of(party(1)), world.port(party(1)));
            meet(&me.identity, &me.terms, Some(port), &meeting, &stop)
        });
        let accept = || {
            let terms = &of(party(0)).terms;
            world
                .port(party(0))
                .accept(terms, &[party(1)], 1, until)
                .unwrap()
        };
        // The first life of party 0 ends as soon as it has met; the second one is met as well.
        drop(accept());
        let again = accept();
        let last = of(party(2));
        let third = dial(
            &last.identity,
            &last.terms,
            party(1),
            &address(party(1)),
            0,
            until,
        )
        .unwrap();
        let met = middle.join().unwrap().unwrap();
        let peers: Vec<Peer> = met[0].iter().map(veil_link::tls::Connected::peer).collect();
        assert_eq!(peers, [party(0), party(2)]);
        let bytes = met[0][0].exporter(b"test", b"");
        assert_eq!(
            bytes,
            again[0].exporter(b"test", b""),
            "the second connection"
        );
        drop(third);
    });
}
