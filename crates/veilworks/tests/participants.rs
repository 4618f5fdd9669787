//! Participants that meet over TLS: results, and each way in which they do not meet.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use veilworks::{Code, Computation, Error, Identity, Job, Outcome, Participant, Values, make};

/// A comparison among parties with these names, of values of the first two, opened to the last name.
fn job(parties: &[&str], owners: [&str; 2], to: &str) -> Job {
    Computation::new("comparison", make("lt:32").unwrap())
        .parties(parties.iter().copied())
        .input("x", owners[0])
        .input("y", owners[1])
        .output("out", to, "whether the first is less")
        .rows(2)
        .job()
        .unwrap()
}

/// Participants of a job, each with a key; those that are parties at an address.
struct World {
    all: Vec<(String, Arc<Identity>, Option<String>)>,
}

impl World {
    fn of(job: &Job) -> Self {
        let parties = &job.spec().parties;
        let all = job.participants().into_iter().map(|name| {
            // Another program could take the port before its party does: that party would say so.
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap().to_string();
            let address = parties.iter().any(|party| party == name).then_some(address);
            (
                name.to_owned(),
                Identity::generate().unwrap().into(),
                address,
            )
        });
        World { all: all.collect() }
    }

    fn participant(&self, job: &Job, name: &str) -> Participant {
        let own = self.all.iter().find(|(other, ..)| other == name).unwrap();
        let mut me = Participant::new(job, name, own.1.clone()).wait(Duration::from_secs(20));
        if let Some(address) = &own.2 {
            me = me.listen(address);
        }
        for (other, identity, address) in self.all.iter().filter(|(other, ..)| other != name) {
            me = me.knows(other, identity.fingerprint(), address.as_deref());
        }
        me
    }
}

fn run_all(all: Vec<Participant>) -> Vec<Result<Outcome, Error>> {
    let threads: Vec<_> = all
        .into_iter()
        .map(|one| thread::spawn(move || one.run()))
        .collect();
    threads.into_iter().map(|one| one.join().unwrap()).collect()
}

#[test]
fn parties_owners_and_recipients_meet_and_each_gets_what_is_its() {
    for (parties, owners, to) in [
        (&["ann", "bob"][..], ["ann", "bob"], "bob"),
        (&["a", "b", "c"][..], ["ann", "b"], "eve"),
        (&["a", "b", "c", "d"][..], ["ann", "bob"], "ann"),
    ] {
        let job = job(parties, owners, to);
        let world = World::of(&job);
        let all = job.participants().into_iter().map(|name| {
            let mut me = world.participant(&job, name);
            let mut values = Values::new();
            if name == owners[0] {
                values = values.integers("x", [7_u32, 9]);
            }
            if name == owners[1] {
                values = values.integers("y", [8_u32, 9]);
            }
            if owners.contains(&name) {
                me = me.values(values);
            }
            me
        });
        let outcomes = run_all(all.collect());
        for (name, outcome) in job.participants().into_iter().zip(outcomes) {
            let outcome = outcome.unwrap();
            let opened = outcome
                .opened(name)
                .map(|opened| opened.integers("out").unwrap());
            assert_eq!(opened, (name == to).then(|| vec![1, 0]), "{name}");
        }
    }
}

#[test]
fn another_key_than_the_one_that_is_known_is_a_failed_check() {
    let job = job(&["ann", "bob"], ["ann", "bob"], "bob");
    let world = World::of(&job);
    let values = |port: &str| Values::new().integers(port, [1_u32, 2]);
    let ann = world.participant(&job, "ann").values(values("x"));
    let address = world.all[0].2.as_deref();
    let wrong = Identity::generate().unwrap().fingerprint();
    let bob = world.participant(&job, "bob").knows("ann", wrong, address);
    let ann = ann.wait(Duration::from_secs(4)).start();
    let error = bob.values(values("y")).run().unwrap_err();
    assert_eq!(error.code(), Code::Check);
    assert!(error.help().contains("`ann`"), "{error}: {}", error.help());
    let error = ann.join().unwrap_err();
    assert!(matches!(error.code(), Code::Link | Code::Check), "{error}");
}

#[test]
fn another_job_is_refused_on_both_sides() {
    let world = World::of(&job(&["ann", "bob"], ["ann", "bob"], "bob"));
    let values = |port: &str| Values::new().integers(port, [1_u32, 2]);
    let one = job(&["ann", "bob"], ["ann", "bob"], "bob");
    let other = job(&["ann", "bob"], ["ann", "bob"], "ann");
    let ended = run_all(vec![
        world.participant(&one, "ann").values(values("x")),
        world.participant(&other, "bob").values(values("y")),
    ]);
    let codes: Vec<Code> = ended
        .into_iter()
        .map(|end| end.unwrap_err().code())
        .collect();
    assert_eq!(codes, [Code::Input; 2]);
}

#[test]
fn who_does_not_come_is_named_when_the_time_is_over() {
    let job = job(&["ann", "bob"], ["ann", "bob"], "bob");
    let world = World::of(&job);
    let values = Values::new().integers("x", [1_u32, 2]);
    let ann = world.participant(&job, "ann").values(values);
    let error = ann.wait(Duration::from_millis(300)).run().unwrap_err();
    assert_eq!(error.code(), Code::Link);
    assert!(error.help().contains("`bob`"), "{error}: {}", error.help());
}

#[test]
fn a_participant_is_stopped_while_it_waits() {
    let job = job(&["ann", "bob"], ["ann", "bob"], "bob");
    let values = Values::new().integers("x", [1_u32, 2]);
    let run = World::of(&job)
        .participant(&job, "ann")
        .values(values)
        .start();
    thread::sleep(Duration::from_millis(50));
    run.stop();
    let error = run.join().unwrap_err();
    assert_eq!(
        error.to_string(),
        "stopped; the other participants were told, nothing was published"
    );
}
