//! Two parties that met, for tests of what carries their bytes.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use veil_session::{PartyId, Peer, PlanHash};

use super::{Connected, Identity, Meeting, Port, Reception, Terms, meet};
use crate::LinkKind;

/// What they met for.
pub(crate) const PLAN: PlanHash = PlanHash([6; 32]);

/// Both of them.
pub(crate) fn parties() -> [Peer; 2] {
    [0, 1].map(|i| Peer::Party(PartyId::new(i).unwrap()))
}

/// The ends of both, which agreed on `link`.
pub(crate) fn met(link: LinkKind) -> [Connected; 2] {
    let [a, b] = parties();
    let [first, second] = [(); 2].map(|()| Identity::generate().unwrap());
    let pins = BTreeMap::from([(a, first.fingerprint()), (b, second.fingerprint())]);
    let terms = |me| Terms {
        me,
        plan: PLAN,
        pins: pins.clone(),
        link,
        others: Vec::new(),
    };
    let reception = Reception::sole([second.fingerprint()]);
    let port = Port::bind(&first, "127.0.0.1:0", reception).unwrap();
    let dial = [(a, port.address().to_string())];
    let go = AtomicBool::new(false);
    let dialling = Meeting {
        dial: &dial,
        from: &[],
        lanes: 1,
        until: Instant::now() + Duration::from_secs(60),
    };
    let listening = Meeting {
        dial: &[],
        from: &[b],
        ..dialling
    };
    thread::scope(|scope| {
        let dialler = scope.spawn(|| meet(&second, &terms(b), None, &dialling, &go).unwrap());
        let mut heard = meet(&first, &terms(a), Some(&port), &listening, &go).unwrap();
        [
            heard.remove(0).remove(0),
            dialler.join().unwrap().remove(0).remove(0),
        ]
    })
}
