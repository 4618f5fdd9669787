//! A durable job has two stages, and participants may disagree about which of them they are at: who is told what, and who can make
//! others believe it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{party, soon};
use veil_link::LinkKind;
use veil_link::tls::{
    Admission, Connected, Fingerprint, Identity, Meeting, OtherStage, Port, Reception, SetupError,
    Terms, dial, meet,
};
use veil_session::{Peer, PlanHash};

const INPUT: PlanHash = PlanHash([1; 32]);
const COMPUTE: PlanHash = PlanHash([2; 32]);
const OWNER: Peer = Peer::Owner(0);
const RECIPIENT: Peer = Peer::Recipient(0);
/// A member that has no part in the job.
const OTHER: Peer = Peer::Owner(7);

/// All participants, and the port of party 0.
struct Site {
    ids: BTreeMap<Peer, Identity>,
    port: Port,
}

impl Site {
    fn new() -> Self {
        let peers = [party(0), party(1), OWNER, RECIPIENT, OTHER];
        let ids: BTreeMap<Peer, Identity> = peers
            .into_iter()
            .map(|peer| (peer, Identity::generate().unwrap()))
            .collect();
        let known: Vec<Fingerprint> = ids.values().map(Identity::fingerprint).collect();
        let admit = move |key: &Fingerprint| {
            if known.contains(key) {
                Admission::Member
            } else {
                Admission::Stranger
            }
        };
        let reception = Reception::new(Arc::new(admit));
        let port = Port::bind(&ids[&party(0)], "127.0.0.1:0", reception).unwrap();
        Site { ids, port }
    }

    fn pins(&self, more: Peer) -> BTreeMap<Peer, Fingerprint> {
        let peers = [party(0), party(1), more];
        let pins = peers.map(|peer| (peer, self.ids[&peer].fingerprint()));
        pins.into()
    }

    /// Owners take part in the first stage, recipients in the second.
    fn terms(&self, me: Peer, plan: PlanHash) -> Terms {
        let (input, compute) = (self.pins(OWNER), self.pins(RECIPIENT));
        let (pins, other, others) = if plan == INPUT {
            (input, COMPUTE, compute)
        } else {
            (compute, INPUT, input)
        };
        Terms {
            me,
            plan,
            pins,
            link: LinkKind::Tls,
            others: vec![OtherStage {
                plan: other,
                pins: others,
                over: other == INPUT,
            }],
        }
    }

    /// Party 0 awaits party 1 and `more` at this stage.
    fn await_all(
        &self,
        plan: PlanHash,
        more: &[Peer],
        until: Instant,
    ) -> Result<Vec<Connected>, SetupError> {
        let awaited = [&[party(1)], more].concat();
        let terms = self.terms(party(0), plan);
        self.port.accept(&terms, &awaited, 1, until)
    }

    /// The holder of the key of `who` calls party 0 as `me`, for this stage.
    fn call(
        &self,
        who: Peer,
        me: Peer,
        plan: PlanHash,
        until: Instant,
    ) -> Result<Connected, SetupError> {
        let terms = self.terms(me, plan);
        let address = self.port.address().to_string();
        dial(&self.ids[&who], &terms, party(0), &address, 0, until)
    }

    /// The meeting of party 0 for COMPUTE, in which it awaits party 1 alone, while `during` happens; then party 1 comes.
    fn goes_on(&self, during: impl FnOnce()) {
        thread::scope(|scope| {
            let met = scope.spawn(|| self.await_all(COMPUTE, &[], soon()).unwrap());
            during();
            assert!(!met.is_finished());
            let _party = self.call(party(1), party(1), COMPUTE, soon()).unwrap();
            assert_eq!(met.join().unwrap().len(), 1);
        });
    }
}

fn shortly() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

fn error<T>(result: Result<T, SetupError>) -> SetupError {
    result.map(|_| ()).unwrap_err()
}

fn other_plan(peer: Peer, ours: PlanHash, theirs: PlanHash) -> SetupError {
    SetupError::Plan { peer, ours, theirs }
}

/// Party 1 comes for this stage, and stays for as long as it may.
fn party_comes(
    site: &Site,
    plan: PlanHash,
    until: Instant,
) -> Result<Vec<Vec<Connected>>, SetupError> {
    let address = site.port.address().to_string();
    let meeting = Meeting {
        dial: &[(party(0), address)],
        from: &[],
        lanes: 1,
        until,
    };
    let go = AtomicBool::new(false);
    meet(
        &site.ids[&party(1)],
        &site.terms(party(1), plan),
        None,
        &meeting,
        &go,
    )
}

#[test]
fn a_party_at_a_later_stage_is_told_when_it_calls_and_is_waited_for() {
    let site = Site::new();
    thread::scope(|scope| {
        let met = scope.spawn(|| site.await_all(INPUT, &[], soon()).unwrap());
        for _ in 0..2 {
            let told = error(party_comes(&site, COMPUTE, soon()));
            assert_eq!(told, other_plan(party(0), COMPUTE, INPUT));
        }
        assert!(!met.is_finished());
        let _party = party_comes(&site, INPUT, soon()).unwrap();
        assert_eq!(met.join().unwrap().len(), 1);
    });
}

#[test]
fn a_party_at_a_later_stage_is_told_when_it_is_called_and_is_waited_for() {
    let site = Site::new();
    thread::scope(|scope| {
        let caller = scope.spawn(|| party_comes(&site, INPUT, soon()).unwrap());
        let told = error(site.await_all(COMPUTE, &[], soon()));
        assert_eq!(told, other_plan(party(1), COMPUTE, INPUT));
        assert!(!caller.is_finished());
        assert_eq!(site.await_all(INPUT, &[], soon()).unwrap().len(), 1);
        caller.join().unwrap();
    });
    // It ended that meeting, and is not held against any caller.
    site.goes_on(|| ());
}

#[test]
fn an_owner_of_a_stage_that_is_over_is_told_so_and_not_waited_for() {
    let site = Site::new();
    site.goes_on(|| {
        // Before the job is known here, it would be told to come later.
        let told = error(site.call(OWNER, OWNER, INPUT, soon()));
        assert_eq!(told, other_plan(party(0), INPUT, COMPUTE));
    });
}

#[test]
fn a_recipient_of_the_second_stage_waits_while_the_first_is_met() {
    let site = Site::new();
    thread::scope(|scope| {
        let recipient = scope.spawn(|| site.call(RECIPIENT, RECIPIENT, COMPUTE, soon()).unwrap());
        let first = scope.spawn(|| site.await_all(INPUT, &[OWNER], soon()).unwrap());
        while site.port.turned().later == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        let _callers = [party(1), OWNER].map(|me| site.call(me, me, INPUT, soon()).unwrap());
        assert_eq!(first.join().unwrap().len(), 2);
        assert!(!recipient.is_finished());
        let second = scope.spawn(|| site.await_all(COMPUTE, &[RECIPIENT], soon()).unwrap());
        let _party = site.call(party(1), party(1), COMPUTE, soon()).unwrap();
        assert_eq!(second.join().unwrap().len(), 2);
        let _recipient = recipient.join().unwrap();
    });
}

/// A caller that says that it is at another stage than it is ends no meeting unless it is a party of the job, by its key, and then only that one.
#[test]
fn who_lies_about_its_stage_ends_at_most_its_own_meeting() {
    let site = Site::new();
    site.goes_on(|| {
        // No part in either stage: it cannot even tell that there is such a job, as whomever it comes.
        for me in [OTHER, OWNER, party(1)] {
            let SetupError::TimedOut { peers, hint } =
                error(site.call(OTHER, me, INPUT, shortly()))
            else {
                panic!("{me} was told more than of a job that does not exist")
            };
            assert_eq!(peers, [party(0)]);
            assert!(hint.contains("does not await us"), "{hint}");
        }
        // An owner that says it is a party is an owner: a party would have ended the meeting.
        error(site.call(OWNER, party(1), INPUT, shortly()));
    });
    // A party may say what it likes of itself: the meeting ends with its name, and the next one is as if it had not been.
    thread::scope(|scope| {
        let met = scope.spawn(|| error(site.await_all(COMPUTE, &[], soon())));
        let told = error(site.call(party(1), OWNER, INPUT, soon()));
        assert_eq!(told, other_plan(party(0), INPUT, COMPUTE));
        assert_eq!(met.join().unwrap(), other_plan(party(1), COMPUTE, INPUT));
    });
    site.goes_on(|| ());
}

/// A recipient waits for a stage that comes after this one, and not for one that will not come again.
#[test]
fn a_recipient_of_a_stage_that_is_over_is_told() {
    let site = Site::new();
    thread::scope(|scope| {
        let met = scope.spawn(|| {
            let mut terms = site.terms(party(0), INPUT);
            terms.others[0].over = true;
            site.port.accept(&terms, &[party(1)], 1, soon()).unwrap()
        });
        let told = site
            .call(RECIPIENT, RECIPIENT, COMPUTE, soon())
            .unwrap_err();
        assert_eq!(told, other_plan(party(0), COMPUTE, INPUT));
        // A member without a part in it is told nothing.
        site.call(OTHER, RECIPIENT, COMPUTE, shortly()).unwrap_err();
        assert!(!met.is_finished());
        let _party = site.call(party(1), party(1), INPUT, soon()).unwrap();
        assert_eq!(met.join().unwrap().len(), 1);
    });
}
