//! What is computed of sums before they are opened: by every protocol over rings, checked as all products are, with sums that no party sees.

use std::sync::Arc;

use veil_circuit::generate::{Integer, max};
use veil_circuit::{Builder, Per};
use veil_engine::{Abort, bounds, participants};
use veil_job::{Adversary, Audience, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError, Protocol, Replicated, Task, WorkspaceOf};
use veil_session::Peer;
use veil_testkit::sample::{
    against, against_malicious, among_four, dot, everything, guarded, peer,
};
use veil_testkit::{Kind, Message, Seed, Values, World, flipped};

fn among(job: &JobSpec) -> [JobSpec; 3] {
    let four = among_four(job.clone());
    let semi = against(four.clone(), Adversary::SemiHonest);
    [job.clone(), four, semi]
}

#[test]
fn what_is_opened_is_what_the_circuit_makes_of_the_sums() {
    for ring in [Ring::Z64, Ring::Z128] {
        let half = 1 << (ring.bits() - 1);
        for job in among(&guarded(everything(ring, &[13, 9]), half)) {
            // Both answers of the comparison come.
            for (seed, lanes) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
                let world = World::in_chunks(job.clone(), 8, lanes);
                world.seed(Seed(seed)).run().assert_right();
            }
        }
        let job = among_four(guarded(everything(ring, &[13, 9]), half));
        World::in_chunks(job, 8, 2).run_apart().assert_right();
    }
}

/// Σ x = 20 · 3 is below the bound or not; nothing else is opened of Σ x y.
#[test]
fn a_bound_decides_what_is_seen() {
    for (bound, shown) in [(61, 20 * 12), (60, 0)] {
        let mut job = dot(Ring::Z64, 20, Audience::Parties);
        job.circuit.outputs.reverse();
        for job in among(&guarded(job, bound)) {
            let values = Values::new(&job, |_, _, port, _| [3, 4][port]);
            let outcome = World::in_chunks(job, 8, 1).values(values).run();
            outcome.assert_right();
            let opened = [0, 1].map(|port| outcome.rows(peer(1), port));
            let [first, second] = opened.map(|rows| rows.expect("it is opened to all")[0][0]);
            assert_eq!([first, second], [3600, shown], "{}", outcome.seed);
        }
    }
}

/// Of every port one element: its first sum times k, of owner 0, plus what is larger of the two of q, of party 2; both are
/// job-wide values.
fn shared(job: JobSpec) -> JobSpec {
    let ring = job.circuit.ring;
    let sums = job.circuit.outputs.iter();
    let sums = sums.filter(|o| o.reduce == veil_circuit::Reduce::Sum);
    let widths: Vec<usize> = sums.map(|o| o.wires.len()).collect();
    let mut b = Builder::new(ring);
    let all = b.input("sums", widths.iter().sum::<usize>() as u32, Per::Row);
    let (k, q) = (b.input("k", 1, Per::Row)[0], b.input("q", 2, Per::Row));
    let largest = max(&mut b, q[0], q[1], Integer::unsigned(ring.bits()));
    let mut first = 0;
    for (port, width) in widths.into_iter().enumerate() {
        let keyed = b.mul(all[first], k);
        let wire = b.add(keyed, largest);
        b.output(format!("opened {port}"), &[wire]);
        first += width;
    }
    let totals = Some(b.finish().expect("a valid circuit"));
    JobSpec { totals, ..job }
}

/// Totals read what all rows share, and open less than was summed.
#[test]
fn totals_read_values_that_all_rows_share() {
    for ring in [Ring::Z64, Ring::Z128] {
        for job in among(&shared(everything(ring, &[13, 9]))) {
            for (seed, lanes) in [(5, 1), (6, 2)] {
                let world = World::in_chunks(job.clone(), 8, lanes);
                let outcome = world.seed(Seed(seed)).run();
                outcome.assert_right();
                let opened = outcome.rows(peer(0), 4).expect("it is opened to all");
                assert_eq!(opened[0].len(), 1, "one of two sums: {}", outcome.seed);
            }
        }
        let job = among_four(shared(everything(ring, &[13, 9])));
        World::in_chunks(job, 8, 2).run_apart().assert_right();
    }
}

#[test]
fn totals_that_do_not_fit_are_refused() {
    let job = shared(everything(Ring::Z64, &[13]));
    let refused = |change: &dyn Fn(&mut veil_circuit::Circuit)| {
        let mut job = job.clone();
        change(job.totals.as_mut().expect("it has them"));
        let plan = Plan::new(Arc::new(job), Options::default());
        matches!(plan, Err(PlanError::Job(why)) if why.contains("what is computed of sums"))
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|totals| totals.inputs[1].per = Per::Job));
    assert!(refused(&|totals| {
        (totals.inputs[1].width, totals.inputs[2].width) = (2, 1);
    }));
    assert!(refused(&|totals| drop(totals.outputs.pop())));
    assert!(refused(&|totals| {
        let wire = totals.outputs[1].wires[0];
        totals.outputs[1].wires = vec![wire; 2];
    }));
}

#[test]
fn what_totals_cost_is_declared_and_sent() {
    let everything = everything(Ring::Z64, &[13, 9]);
    let jobs = [guarded(everything.clone(), 1 << 63), shared(everything)];
    for job in jobs.iter().flat_map(among) {
        let world = World::in_chunks(job, 8, 1);
        let plan = Arc::clone(world.plan());
        let frame = plan.totals_frame();
        let outcome = world.run();
        outcome.assert_right();
        for me in participants(&plan) {
            let protocol = Replicated::new(Arc::clone(&plan), me);
            let cost = protocol.cost(Task::Totals, frame);
            let kinds = [Some(Kind::Product), Some(Kind::Mac)];
            let sent = outcome.transcript.iter().filter(|m| {
                m.from == me && m.at.frame.chunk == frame.chunk && kinds.contains(&m.kind)
            });
            let (count, bytes) = sent.fold((0, 0), |(n, b), m| (n + 1, b + m.bytes.len() as u64));
            assert_eq!((cost.messages, cost.bytes), (count, bytes), "{me}");
            assert_eq!(count > 0, me.party().is_some(), "{me}");
        }
    }
}

/// Totals have one row, and a workspace of their own: those of chunks are as if there were none, and so is the longest message that a link takes.
#[test]
fn chunks_and_links_have_nothing_of_totals() {
    let everything = everything(Ring::Z64, &[130, 70]);
    let malicious = against_malicious(everything.clone());
    for job in among(&everything).into_iter().chain([malicious]) {
        let [plain, with] = [job.clone(), guarded(job, 1 << 63)].map(|job| {
            let world = World::in_chunks(job, 64, 1);
            (Arc::clone(world.plan()), world)
        });
        let outcome = with.1.run();
        outcome.assert_right();
        for me in participants(&plain.0) {
            let [without, protocol] =
                [&plain.0, &with.0].map(|plan| Replicated::new(Arc::clone(plan), me));
            assert_eq!(
                without.layout(WorkspaceOf::Rows),
                protocol.layout(WorkspaceOf::Rows),
                "{me}"
            );
            let slots = |of| protocol.layout(of).regions[0].count;
            assert_eq!(
                slots(WorkspaceOf::Job) > slots(WorkspaceOf::Rows),
                me.party().is_some()
            );
            let longest = bounds(&with.0, &protocol).longest;
            assert_eq!(longest, bounds(&plain.0, &without).longest, "{me}");
            let of_me = outcome
                .transcript
                .iter()
                .filter(|m| m.from == me || m.to == me);
            let found = of_me.map(|m| m.bytes.len() as u64).max();
            // Handshakes have 256 bytes.
            assert_eq!(found.map(|found| found.max(256)), Some(longest), "{me}");
        }
    }
}

/// A party that changes a product of the totals among four parties is found before anything is opened.
#[test]
fn a_change_of_what_is_made_of_sums_is_found() {
    let job = guarded(everything(Ring::Z64, &[13, 9]), 1 << 63);
    let world = World::in_chunks(among_four(job), 8, 1).window(1);
    let chunk = world.plan().totals_frame().chunk;
    for kind in [Kind::Product, Kind::Mac] {
        let cheat = move |m: &Message| {
            if (m.kind, m.from, m.at.frame.chunk) == (Some(kind), peer(2), chunk) {
                Fate::Replace(flipped(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let outcome = world.clone().cheat(cheat).run();
        let found = |abort: &Abort| match abort {
            Abort::Cheated { suspects, what, .. } => {
                suspects.contains(&peer(2)) && *what == "a joint message of a product"
            }
            _ => false,
        };
        assert!(outcome.aborts.values().any(found), "{}", outcome.seed);
        assert_eq!(outcome.of(Kind::Total).count(), 0, "{}", outcome.seed);
        assert!(!outcome.seen[&Peer::Recipient(0)].finished());
    }
}
