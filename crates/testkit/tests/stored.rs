//! Shares at rest: what one run keeps, another one loads.

use std::sync::Arc;

use veil_circuit::{Builder, Circuit, Per};
use veil_engine::Abort;
use veil_job::{Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{among_four, dot, everything, job, party, peer};
use veil_testkit::{Kind, Outcome, Seed, Shares, Values, World};

/// Both stages of a job, one after the other, in chunks of other lengths and on other lanes.
fn in_stages(
    job: &JobSpec,
    values: &Values,
    seed: Seed,
    chunks: [(u32, u16); 2],
) -> (Outcome, Outcome) {
    let (input, compute) = job.stages();
    let [first, second] = chunks;
    let input = World::in_chunks(input, first.0, first.1)
        .seed(seed)
        .values(values.clone())
        .run();
    input.assert_right();
    let compute = World::in_chunks(compute, second.0, second.1)
        .seed(Seed(seed.0 ^ 1))
        .values(values.clone())
        .stored(input.kept.clone())
        .run();
    compute.assert_right();
    (input, compute)
}

/// Input and compute, one after the other, open what the job opens when it runs as one.
#[test]
fn the_stages_of_a_job_are_the_job() {
    for seed in 0..6 {
        let seed = Seed(seed);
        for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
            for (blocks, chunks) in [
                (&[1][..], [(8, 1), (8, 1)]),
                (&[23, 9], [(8, 1), (16, 2)]),
                (&[17, 8, 30], [(10, 3), (7, 2)]),
            ] {
                let job = everything(ring, blocks);
                for job in [among_four(job.clone()), job] {
                    same_in_stages(&job, seed, chunks);
                }
            }
        }
    }
}

fn same_in_stages(job: &JobSpec, seed: Seed, chunks: [(u32, u16); 2]) {
    let values = Values::random(job, seed);
    let direct = World::new(job.clone()).values(values.clone()).run();
    direct.assert_right();
    let (_, compute) = in_stages(job, &values, seed, chunks);
    for (who, seen) in &direct.seen {
        for port in direct.ports_of(*who) {
            assert_eq!(
                seen.rows(job.circuit.ring, port),
                compute.rows(*who, port),
                "{who}, output {port}, {seed}"
            );
        }
    }
}

/// No owner takes part in the compute stage, and only the parties are given anything in the input stage.
#[test]
fn the_input_stage_opens_nothing_and_the_compute_stage_asks_no_owner() {
    let job = everything(Ring::Z64, &[13, 9]);
    for job in [among_four(job.clone()), job] {
        opens_nothing_and_asks_no_owner(&job);
    }
}

fn opens_nothing_and_asks_no_owner(job: &JobSpec) {
    let values = Values::random(job, Seed(1));
    let (input, compute) = in_stages(job, &values, Seed(1), [(8, 1), (8, 1)]);
    assert!(input.seen.values().all(|seen| seen.slices().is_empty()));
    let sent: Vec<Kind> = input.transcript.iter().filter_map(|m| m.kind).collect();
    assert!(!sent.contains(&Kind::Opened) && !sent.contains(&Kind::Total));
    let owners = |peer: &Peer| matches!(peer, Peer::Owner(_));
    assert!(!compute.seen.keys().any(owners));
    // Fresh keys, never old counters: the masks of the stages differ.
    assert_ne!(
        input.of(Kind::Hello).next().map(|m| &m.bytes),
        compute.of(Kind::Hello).next().map(|m| &m.bytes)
    );
}

/// x y, kept and opened; Σ x y, kept; x, kept; Σ x, opened; k, kept; k x, opened.
fn keeping(ring: Ring) -> Circuit {
    let mut b = Builder::new(ring);
    let (x, y) = (b.input("x", 1, Per::Row), b.input("y", 2, Per::Row));
    let k = b.input("k", 2, Per::Job);
    let (xy, kx) = (b.mul(x[0], y[1]), b.mul(k[1], x[0]));
    b.output("product", &[xy, kx]);
    b.output("kept product", &[xy]);
    b.output("kept twice", &[kx, x[0], kx]);
    b.output("kept key", &[k[0], k[1]]);
    b.output("kept part of the key", &[k[1]]);
    if ring != Ring::Bits {
        b.output_sum("kept sum", &[xy, x[0]]);
        b.output_sum("sum", &[xy]);
    }
    b.finish().expect("a valid circuit")
}

fn keeps(ring: Ring, blocks: &[u64]) -> JobSpec {
    let holders = [Holder::Owner(0), Holder::Party(party(1)), Holder::Owner(1)];
    let blocks: Vec<(u64, &[Holder])> = blocks.iter().map(|rows| (*rows, &holders[..])).collect();
    let mut audiences = vec![
        Audience::Recipient(0),
        Audience::Stored,
        Audience::Stored,
        Audience::Stored,
        Audience::Stored,
    ];
    if ring != Ring::Bits {
        audiences.extend([Audience::Stored, Audience::Parties]);
    }
    job(keeping(ring), &blocks, &audiences)
}

#[test]
fn outputs_are_kept_and_opened_in_one_job() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        for (blocks, chunk, lanes) in [(&[1][..], 8, 1), (&[23, 9], 8, 2), (&[21, 30], 10, 3)] {
            let job = keeps(ring, blocks);
            let per: Vec<Per> = job.keeps().into_iter().map(|kept| kept.per).collect();
            // A part of a value per job is kept in every row: it is no port of its own.
            let mut expected = vec![Per::Row, Per::Row, Per::Job, Per::Row];
            if ring != Ring::Bits {
                expected.push(Per::Job);
            }
            assert_eq!(per, expected);
            for job in [among_four(job.clone()), job] {
                let world = World::in_chunks(job, chunk, lanes);
                world.run().assert_right();
                world.run_apart().assert_right();
            }
        }
    }
}

/// A job loads some columns and asks owners for others, which differ from block to block.
#[test]
fn blocks_are_loaded_beside_blocks_that_owners_supply() {
    for ring in [Ring::Z64, Ring::Z128] {
        blocks_are_loaded(ring, |job| job);
        blocks_are_loaded(ring, among_four);
    }
}

fn blocks_are_loaded(ring: Ring, among: fn(JobSpec) -> JobSpec) {
    let first = among(dot(ring, 20, Audience::Stored));
    let (input, _) = first.stages();
    let values = Values::random(&input, Seed(3));
    let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
    kept.assert_right();

    let stored = [Holder::Stored, Holder::Stored];
    let mixed = [Holder::Stored, Holder::Party(party(2))];
    let fresh = [Holder::Owner(0), Holder::Party(party(1))];
    for (second, third) in [(&fresh, &mixed), (&fresh, &fresh)] {
        let (audience, circuit) = (Audience::Recipient(0), first.circuit.clone());
        let mut job = among(job(
            circuit,
            &[(20, &stored), (6, second), (20, third)],
            &[audience; 2],
        ));
        for block in &mut job.blocks {
            let loads = block.holders.contains(&Holder::Stored);
            block.stored = loads.then(|| "pay".into());
        }
        // The third block loads what the first one does: the store has it under both numbers.
        let mut all = Values::random(&job, Seed(4));
        all.blocks[0].clone_from(&values.blocks[0]);
        if third[0] == Holder::Stored {
            for (row, loaded) in all.blocks[2].iter_mut().zip(&values.blocks[0]) {
                row[0].clone_from(&loaded[0]);
            }
        }
        let stores = kept
            .kept
            .iter()
            .map(|kept| Arc::new(kept.also_as(0, 2)))
            .collect();
        let world = World::in_chunks(job, 8, 2).values(all).stored(stores);
        world.run().assert_right();
    }
}

#[test]
fn a_party_without_a_store_does_not_start() {
    let job = dot(Ring::Z64, 20, Audience::Parties);
    let values = Values::random(&job, Seed(5));
    let (input, compute) = job.stages();
    let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
    let outcome = World::new(compute)
        .values(values)
        .stored(kept.kept.clone())
        .stored_at(1, None)
        .run();
    assert_eq!(
        outcome.abort(peer(1)).to_string(),
        "this party loads shares in the job, and has none in its store"
    );
    assert!(
        outcome.transcript.is_empty(),
        "nothing was sent before it was found out"
    );
}

/// A share file that was altered at one party: the two holders of that component find it, name each other, and nothing is opened.
#[test]
fn an_altered_share_is_found_by_both_of_its_holders() {
    let job = everything(Ring::Bits, &[13, 9]);
    let values = Values::random(&job, Seed(6));
    let (input, compute) = job.stages();
    let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
    // Port, block, row, and where it is found: the chunk of that row, or the set-up.
    let cases = [(0, 0, 9, 2), (2, 1, 0, 3), (3, 0, 0, 0), (4, 0, 0, 0)];
    for (port, block, row, chunk) in cases {
        for (at, component) in [(0, 0), (0, 1), (2, 0), (1, 1)] {
            let damaged = kept.kept[at].damaged(port, component, block, row);
            let outcome = World::in_chunks(compute.clone(), 8, 1)
                .window(1)
                .values(values.clone())
                .stored(kept.kept.clone())
                .stored_at(at as u8, Some(Arc::new(damaged)))
                .run();
            let at = at as u8;
            let other = if component == 0 {
                (at + 1) % 3
            } else {
                (at + 2) % 3
            };
            for (me, them) in [(at, other), (other, at)] {
                match outcome.abort(peer(me)) {
                    Abort::Cheated {
                        at,
                        suspects,
                        what: "a stored share",
                    } => {
                        assert_eq!(at.frame.chunk, chunk);
                        assert_eq!(suspects, &[peer(me), peer(them)]);
                    }
                    // The other one was faster.
                    Abort::Told { by, .. } => assert_eq!(*by, peer(them)),
                    other => panic!("{other}"),
                }
            }
            let found =
                [at, other].map(|p| matches!(outcome.abort(peer(p)), Abort::Cheated { .. }));
            assert!(found.contains(&true));
            assert!(outcome.seen.values().all(|seen| !seen.finished()));
        }
    }
}

/// Four parties: whichever share component one of them has altered, both other holders find it, and name only its holders.
#[test]
fn an_altered_share_of_four_is_found_by_all_of_its_holders() {
    for ring in [Ring::Bits, Ring::Z64] {
        let job = among_four(everything(ring, &[13, 9]));
        let values = Values::random(&job, Seed(6));
        let (input, compute) = job.stages();
        let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
        for (port, block, row, chunk) in [(0, 0, 9, 2), (4, 0, 0, 0)] {
            for (at, part) in (0..4).flat_map(|at| (0..3).map(move |part| (at, part))) {
                let damaged = kept.kept[at].damaged(port, part, block, row);
                let outcome = World::in_chunks(compute.clone(), 8, 1)
                    .window(1)
                    .values(values.clone())
                    .stored(kept.kept.clone())
                    .stored_at(at as u8, Some(Arc::new(damaged)))
                    .run();
                let lacks = Shares::component_of(4, at, part);
                let at = peer(at as u8);
                let mut found = 0;
                for me in (0..4).map(peer) {
                    match outcome.abort(me) {
                        Abort::Cheated {
                            at: step,
                            suspects,
                            what: "a stored share",
                        } => {
                            assert_eq!(step.frame.chunk, chunk);
                            assert!(suspects.contains(&at) && suspects.contains(&me));
                            assert!(!suspects.contains(&peer(lacks as u8)));
                            found += 1;
                        }
                        Abort::Told { .. } => {}
                        other => panic!("{other}"),
                    }
                }
                assert!(found >= 1);
                assert!(outcome.seen.values().all(|seen| !seen.finished()));
            }
        }
    }
}

/// The same damage at both holders is no damage that a party could see; it is another dataset, and it is what is computed on.
#[test]
fn what_both_holders_changed_alike_is_another_value() {
    let job = dot(Ring::Z64, 5, Audience::Recipient(0));
    let values = Values::random(&job, Seed(7));
    let (input, compute) = job.stages();
    let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
    let mut changed = values;
    let before = kept.joined(0)[2][0];
    let stores = vec![
        Arc::new(kept.kept[0].damaged(0, 0, 0, 2)),
        Arc::new(kept.kept[1].damaged(0, 1, 0, 2)),
        Arc::clone(&kept.kept[2]),
    ];
    let own = kept.kept[0].component(0, 0)[2][0];
    changed.blocks[0][2][0][0] = Ring::Z64.add(Ring::Z64.sub(before, own), own ^ 1);
    let outcome = World::in_chunks(compute, 8, 1)
        .values(changed)
        .stored(stores)
        .run();
    outcome.assert_right();
}

/// Loading twice gives no message twice: a run has keys of its own.
#[test]
fn two_runs_on_the_same_shares_say_different_things() {
    let job = dot(Ring::Z64, 20, Audience::Recipient(0));
    let values = Values::random(&job, Seed(8));
    let (input, compute) = job.stages();
    let kept = World::in_chunks(input, 8, 1).values(values.clone()).run();
    let run = |seed| {
        World::in_chunks(compute.clone(), 8, 1)
            .seed(Seed(seed))
            .values(values.clone())
            .stored(kept.kept.clone())
            .run()
    };
    let (one, two) = (run(1), run(2));
    for kind in [Kind::LoadedDigest, Kind::SumProduct, Kind::Agreement] {
        let bytes = |outcome: &Outcome| -> Vec<Vec<u8>> {
            outcome.of(kind).map(|m| m.bytes.clone()).collect()
        };
        let (one, two) = (bytes(&one), bytes(&two));
        assert!(
            !one.is_empty() && one.iter().all(|m| !two.contains(m)),
            "{kind:?}"
        );
    }
}

/// What fails before the end keeps nothing.
#[test]
fn a_run_that_fails_keeps_nothing() {
    let job = keeps(Ring::Z64, &[23, 9]);
    for job in [among_four(job.clone()), job] {
        fails_and_keeps_nothing(job);
    }
}

fn fails_and_keeps_nothing(job: JobSpec) {
    // The very last message of the run: an agreement, in the frame of totals.
    let world = World::in_chunks(job, 8, 1);
    let last = world.plan().totals_frame().chunk;
    let cheat = move |m: &veil_testkit::Message| match m.kind {
        Some(Kind::Agreement) if m.at.frame.chunk == last && m.from == peer(0) => {
            Fate::Replace(veil_testkit::flipped(&m.bytes))
        }
        _ => Fate::Pass,
    };
    for outcome in [
        world.clone().cheat(cheat).run(),
        world.cheat(cheat).run_apart(),
    ] {
        assert!(!outcome.aborts.is_empty());
        for (party, kept) in outcome.kept.iter().enumerate().skip(1) {
            let kept: &Shares = kept;
            assert!(!kept.finished(), "party {party}: {:?}", outcome.aborts);
        }
    }
}
