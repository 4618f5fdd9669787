//! One port, several jobs: which caller gets where, and which one disturbs no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{party, soon};
use veil_link::LinkKind;
use veil_link::tls::{
    Admission, Connected, ControlError, Fingerprint, Identity, Meeting, Port, Reception,
    SetupError, Terms, control, dial, meet,
};
use veil_session::{Peer, PlanHash};

const FIRST: PlanHash = PlanHash([1; 32]);
const SECOND: PlanHash = PlanHash([2; 32]);

/// Two parties, an owner and a recipient, which know each other for any job.
struct Service {
    ids: BTreeMap<Peer, Identity>,
    known: Arc<Mutex<BTreeSet<Fingerprint>>>,
    requests: Arc<Mutex<Vec<(Fingerprint, PlanHash)>>>,
    port: Port,
}

const OTHER: Peer = Peer::Recipient(9);

fn service() -> Service {
    let peers = [party(0), party(1), Peer::Owner(0), OTHER];
    let ids: BTreeMap<Peer, Identity> = peers
        .into_iter()
        .map(|peer| (peer, Identity::generate().unwrap()))
        .collect();
    let known: BTreeSet<_> = ids.values().map(Identity::fingerprint).collect();
    let known = Arc::new(Mutex::new(known));
    let asked = Arc::clone(&known);
    let admit = move |key: &Fingerprint| {
        if asked.lock().unwrap().contains(key) {
            Admission::Member
        } else {
            Admission::Stranger
        }
    };
    let reception = Reception::new(Arc::new(admit));
    let reception = reception.with_handler(Arc::new(|caller, _| caller.key.to_string().into()));
    let requests: Arc<Mutex<Vec<_>>> = Arc::default();
    let heard = Arc::clone(&requests);
    let on_request = move |key, plan| heard.lock().unwrap().push((key, plan));
    let reception = reception.on_connect_request(Arc::new(on_request));
    let port = Port::bind(&ids[&party(0)], "127.0.0.1:0", reception).unwrap();
    Service {
        ids,
        known,
        requests,
        port,
    }
}

impl Service {
    fn terms(&self, me: Peer, plan: PlanHash) -> Terms {
        let peers = [party(0), party(1), Peer::Owner(0)];
        let pins = peers.map(|peer| (peer, self.ids[&peer].fingerprint()));
        Terms {
            me,
            plan,
            pins: pins.into(),
            link: LinkKind::Tls,
            others: Vec::new(),
        }
    }

    fn address(&self) -> String {
        self.port.address().to_string()
    }

    fn call(
        &self,
        me: Peer,
        plan: PlanHash,
        lane: u16,
        until: Instant,
    ) -> Result<Connected, SetupError> {
        let terms = self.terms(me, plan);
        dial(
            &self.ids[&me],
            &terms,
            party(0),
            &self.address(),
            lane,
            until,
        )
    }

    fn await_all(
        &self,
        plan: PlanHash,
        lanes: u16,
        until: Instant,
    ) -> Result<Vec<Connected>, SetupError> {
        let awaited = [party(1), Peer::Owner(0)];
        self.port
            .accept(&self.terms(party(0), plan), &awaited, lanes, until)
    }
}

fn shortly() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

fn eventually(holds: impl Fn() -> bool) {
    let until = soon();
    while !holds() {
        assert!(Instant::now() < until, "it did not become true");
        thread::sleep(Duration::from_millis(5));
    }
}

fn error<T>(result: Result<T, SetupError>) -> SetupError {
    result.map(|_| ()).unwrap_err()
}

#[test]
fn two_jobs_with_the_same_peers_meet_at_once() {
    let service = service();
    let service = &service;
    thread::scope(|scope| {
        let met = [(FIRST, 2), (SECOND, 1)].map(|(plan, lanes)| {
            scope.spawn(move || service.await_all(plan, lanes, soon()).unwrap())
        });
        // A connection lives as long as its handle.
        let lanes = [(SECOND, 0), (FIRST, 1), (FIRST, 0)].into_iter();
        let calls = lanes.flat_map(|lane| [(lane, Peer::Owner(0)), (lane, party(1))]);
        let _callers: Vec<_> = calls
            .map(|((plan, lane), me)| {
                scope.spawn(move || service.call(me, plan, lane, soon()).unwrap())
            })
            .collect();
        let count = met.map(|met| {
            let seats: BTreeSet<_> = met
                .join()
                .unwrap()
                .iter()
                .map(|c| (c.peer(), c.lane()))
                .collect();
            seats.len()
        });
        assert_eq!(count, [4, 2]);
    });
}

#[test]
fn a_caller_before_the_job_is_known_is_met_when_it_is() {
    let service = service();
    let service = &service;
    thread::scope(|scope| {
        let early = [party(1), Peer::Owner(0)]
            .map(|me| scope.spawn(move || service.call(me, FIRST, 0, soon()).unwrap()));
        eventually(|| service.port.turned().later >= 2);
        assert_eq!(service.await_all(FIRST, 1, soon()).unwrap().len(), 2);
        let _connected = early.map(|thread| thread.join().unwrap());
    });
    let requests = service.requests.lock().unwrap();
    let owner = service.ids[&Peer::Owner(0)].fingerprint();
    assert!(
        requests.contains(&(owner, FIRST))
            && requests.iter().all(|on_request| on_request.1 == FIRST)
    );
}

#[test]
fn a_job_that_is_not_known_here_says_so_when_the_time_is_over() {
    let service = service();
    let told = error(service.call(party(1), FIRST, 0, shortly()));
    let SetupError::TimedOut { peers, hint } = told else {
        panic!("{told}")
    };
    assert_eq!(peers, [party(0)]);
    assert!(
        hint.contains("does not await us for plan 0101010101010101") && hint.contains("approved"),
        "{hint}"
    );
}

#[test]
fn a_member_without_a_part_in_a_job_cannot_tell_whether_it_exists() {
    let service = service();
    let (waiting, hint) = thread::scope(|scope| {
        let waiting = scope.spawn(|| error(service.await_all(FIRST, 1, shortly())));
        thread::sleep(Duration::from_millis(50));
        let mut terms = service.terms(OTHER, FIRST);
        terms.me = Peer::Owner(0);
        let told = dial(
            &service.ids[&OTHER],
            &terms,
            party(0),
            &service.address(),
            0,
            shortly(),
        );
        let SetupError::TimedOut { hint, .. } = error(told) else {
            panic!("told more than of a job that does not exist")
        };
        (waiting.join().unwrap(), hint)
    });
    assert!(hint.contains("does not await us"), "{hint}");
    // It changed nothing: the job waited on for those whom it awaits.
    assert!(
        matches!(waiting, SetupError::TimedOut { ref peers, .. } if peers.len() == 2),
        "{waiting}"
    );
}

#[test]
fn a_job_that_fails_or_is_stopped_disturbs_no_other() {
    let service = service();
    let (service, stop) = (&service, &AtomicBool::new(false));
    thread::scope(|scope| {
        let good = scope.spawn(move || service.await_all(FIRST, 1, soon()).unwrap());
        let bad = scope.spawn(move || error(service.await_all(SECOND, 1, soon())));
        let stopped = scope.spawn(move || {
            let meeting = Meeting {
                dial: &[],
                from: &[party(1)],
                lanes: 1,
                until: soon(),
            };
            let terms = service.terms(party(0), PlanHash([3; 32]));
            error(meet(
                &service.ids[&party(0)],
                &terms,
                Some(&service.port),
                &meeting,
                stop,
            ))
        });
        let call = |plan, lane| service.call(Peer::Owner(0), plan, lane, soon());
        let _first = call(SECOND, 0).unwrap();
        let refused = error(call(SECOND, 1));
        assert!(matches!(refused, SetupError::Refused { .. }), "{refused}");
        assert!(matches!(
            bad.join().unwrap(),
            SetupError::Refused {
                peer: Peer::Owner(0),
                ..
            }
        ));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(
            stopped.join().unwrap(),
            SetupError::Stopped {
                peers: vec![party(1)]
            }
        );
        let _owner = call(FIRST, 0).unwrap();
        let _party = service.call(party(1), FIRST, 0, soon()).unwrap();
        assert_eq!(good.join().unwrap().len(), 2);
    });
}

#[test]
fn a_peer_that_hung_up_while_others_were_awaited_may_come_again() {
    let service = service();
    let service = &service;
    thread::scope(|scope| {
        let met = scope.spawn(move || service.await_all(FIRST, 1, soon()).unwrap());
        drop(service.call(Peer::Owner(0), FIRST, 0, soon()).unwrap());
        // Twice: once while its old place is still taken, once when it was noticed at the end.
        drop(service.call(Peer::Owner(0), FIRST, 0, soon()).unwrap());
        let _party = service.call(party(1), FIRST, 0, soon()).unwrap();
        thread::sleep(Duration::from_millis(200));
        assert!(!met.is_finished(), "the owner is gone");
        let _owner = service.call(Peer::Owner(0), FIRST, 0, soon()).unwrap();
        assert_eq!(met.join().unwrap().len(), 2);
    });
}

#[test]
fn a_plan_is_met_once_at_a_time() {
    let service = service();
    thread::scope(|scope| {
        let two = [(); 2].map(|()| scope.spawn(|| error(service.await_all(FIRST, 1, shortly()))));
        let mut two = two.map(|one| one.join().unwrap());
        // Whichever was the first.
        two.sort_by_key(|error| matches!(error, SetupError::Twice { .. }));
        assert!(matches!(two[0], SetupError::TimedOut { .. }), "{}", two[0]);
        assert_eq!(two[1], SetupError::Twice { plan: FIRST });
    });
    assert!(matches!(
        error(service.await_all(FIRST, 1, shortly())),
        SetupError::TimedOut { .. }
    ));
}

#[test]
fn a_key_that_is_dropped_ends_its_meetings_and_is_a_stranger_at_once() {
    let service = service();
    let service = &service;
    let owner = service.ids[&Peer::Owner(0)].fingerprint();
    thread::scope(|scope| {
        let met = scope.spawn(move || error(service.await_all(FIRST, 1, soon())));
        service.call(Peer::Owner(0), FIRST, 0, soon()).unwrap();
        service.known.lock().unwrap().remove(&owner);
        service.port.drop_key(&owner);
        assert_eq!(
            met.join().unwrap(),
            SetupError::Dropped {
                peer: Peer::Owner(0)
            }
        );
    });
    let told = error(service.call(Peer::Owner(0), FIRST, 0, soon()));
    assert_eq!(
        told,
        SetupError::OurKey {
            peer: party(0),
            ours: owner
        }
    );
    let asked = control(
        &service.ids[&Peer::Owner(0)],
        service.ids[&party(0)].fingerprint(),
        &service.address(),
        b"?",
        soon(),
    );
    assert!(
        matches!(asked, Err(ControlError::OurKey { ours, .. }) if ours == owner),
        "{asked:?}"
    );
}

#[test]
fn questions_are_answered_while_jobs_meet_and_name_who_asks() {
    let service = service();
    let service = &service;
    thread::scope(|scope| {
        let met = scope.spawn(move || service.await_all(FIRST, 1, soon()).unwrap());
        let asked: Vec<_> = (0..30)
            .map(|_| {
                scope.spawn(move || {
                    let pinned = service.ids[&party(0)].fingerprint();
                    control(
                        &service.ids[&OTHER],
                        pinned,
                        &service.address(),
                        b"?",
                        soon(),
                    )
                })
            })
            .collect();
        let mine = service.ids[&OTHER].fingerprint().to_string();
        for asked in asked {
            assert_eq!(asked.join().unwrap(), Ok(mine.clone().into_bytes()));
        }
        let _callers = [party(1), Peer::Owner(0)]
            .map(|me| scope.spawn(move || service.call(me, FIRST, 0, soon()).unwrap()));
        assert_eq!(met.join().unwrap().len(), 2);
    });
}

#[test]
fn a_question_to_the_wrong_key_or_to_no_port_says_where_and_what_to_do() {
    let service = service();
    let (me, stranger) = (&service.ids[&OTHER], Identity::generate().unwrap());
    let pinned = stranger.fingerprint();
    let shown = service.ids[&party(0)].fingerprint();
    let told = control(me, pinned, &service.address(), b"?", soon()).unwrap_err();
    assert_eq!(
        told,
        ControlError::WrongKey {
            address: service.address(),
            pinned,
            shown
        }
    );
    let sole = Port::bind(me, "127.0.0.1:0", Reception::sole([shown])).unwrap();
    let address = sole.address().to_string();
    let told = control(
        &service.ids[&party(0)],
        me.fingerprint(),
        &address,
        b"?",
        soon(),
    );
    assert!(
        told.unwrap_err()
            .to_string()
            .contains("it serves a single job")
    );
    drop(sole);
    let told = control(me, pinned, &address, b"?", shortly()).unwrap_err();
    assert!(
        told.to_string().contains("is `veil serve` running there"),
        "{told}"
    );
}
