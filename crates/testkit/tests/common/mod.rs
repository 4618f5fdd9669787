//! What the cheating tests share.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod programs;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use veil_circuit::{Builder, Circuit, Per, make};
use veil_engine::Abort;
use veil_job::{Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::{Channel, PartyId, Peer};
use veil_testkit::sample::{against_malicious, job, party};
use veil_testkit::{Kind, Message, Outcome, Seed, Values, World, flipped};

/// `rows` rows of a circuit of the catalogue, against one party that may be malicious.
pub(crate) fn made(name: &str, rows: u64) -> JobSpec {
    of_circuit(make(name).expect("the catalogue has it"), rows)
}

/// `rows` rows of a circuit, whose ports an owner and a party supply in turn.
pub(crate) fn of_circuit(circuit: Circuit, rows: u64) -> JobSpec {
    let holders = [Holder::Owner(0), Holder::Party(party(1))];
    let holders: Vec<Holder> = (0..circuit.inputs.len()).map(|k| holders[k % 2]).collect();
    let audiences = vec![Audience::Recipient(0); circuit.outputs.len()];
    against_malicious(job(circuit, &[(rows, &holders)], &audiences))
}

/// The run in which `fate` befalls the message of that name and direction.
pub(crate) fn with(
    world: &World,
    victim: &Message,
    fate: impl Fn(&Message) -> Fate + Send + Sync + 'static,
) -> World {
    let name = (victim.from, victim.to, victim.at);
    world.clone().cheat(move |m| {
        if (m.from, m.to, m.at) == name {
            fate(m)
        } else {
            Fate::Pass
        }
    })
}

/// Whom the receiver of a joint message suspects, and of what, if another one comes in its place: it finds that in its round, sends nothing of a later one,
/// and nothing is opened. Last comes the run itself.
pub(crate) fn suspected(world: &World, wrong: &Message) -> (Vec<Peer>, &'static str, Outcome) {
    let (from, to, at) = (wrong.from, wrong.to, wrong.at);
    let outcome = with(world, wrong, |m| Fate::Replace(flipped(&m.bytes))).run();
    outcome.assert_sound(None);
    assert!(outcome.rows(Peer::Recipient(0), 0).is_none());
    let later = |m: &&Message| {
        let of_layers = matches!(m.kind, Some(Kind::Product | Kind::Mac));
        let same = (m.from, m.at.frame) == (to, at.frame);
        of_layers && same && m.at.step.place > at.step.place
    };
    let later = outcome.transcript.iter().find(later);
    assert!(later.is_none(), "{from} to {to} at {at:?}: {later:?}");
    match outcome.abort(to) {
        Abort::Cheated {
            suspects,
            at: found,
            what,
        } => {
            assert_eq!(found.step, at.step, "{from} to {to} at {at:?}");
            (suspects.clone(), *what, outcome)
        }
        other => panic!("{from} to {to} at {at:?}: {other}"),
    }
}

/// The second stage of `job`, with the shares that its first stage kept.
pub(crate) fn second_stage(job: &JobSpec, seed: Seed) -> World {
    let (input, compute) = job.stages();
    let values = Values::random(&input, seed);
    let kept = World::in_chunks(input, 8, 1)
        .seed(seed)
        .values(values.clone())
        .run();
    kept.assert_right();
    World::in_chunks(compute, 8, 1)
        .values(values)
        .stored(kept.kept.clone())
}

/// Rows that one digest of a key column stands for in [`ordered`].
pub(crate) const EVERY: u32 = 4;

/// Σ of one column each of the holders, in blocks of 10 and 7 rows, of which the order of the second is compared.
pub(crate) fn sum(holders: &[Holder]) -> JobSpec {
    let mut b = Builder::new(Ring::Z64);
    let wires: Vec<_> = (0..holders.len())
        .map(|k| b.input(format!("x{k}"), 1, Per::Row)[0])
        .collect();
    let all = wires[1..].iter().fold(wires[0], |a, w| b.add(a, *w));
    b.output_sum("sum", &[all]);
    let circuit = b.finish().expect("a valid circuit");
    let mut job = job(
        circuit,
        &[(10, holders), (7, holders)],
        &[Audience::Recipient(0)],
    );
    job.blocks[1].order = veil_job::Order::Compared {
        every: EVERY,
        duplicates: true,
    };
    job
}

/// A run of [`sum`]. The digests that a holder has differ from those of the others from part `from` on: rows 0 to 3, rows 4 to 6, or
/// not at all ([`SAME`]).
pub(crate) fn ordered(holders: &[Holder], from: &[usize], lanes: u16) -> World {
    let chain = |from: usize| {
        let digest = |k: usize| [k as u8 * 2 + u8::from(k >= from); 32];
        vec![vec![], (0..SAME).map(digest).collect()]
    };
    let world = World::in_chunks(sum(holders), 8, lanes);
    holders
        .iter()
        .zip(from)
        .fold(world, |world, (holder, from)| {
            world.order(holder.peer().expect("a participant"), chain(*from))
        })
}

/// All digests of [`ordered`] are those of the others.
pub(crate) const SAME: usize = 2;

/// The rows of the second block of [`ordered`] from `first` on, `of` of them, are said to differ.
pub(crate) fn is_misaligned(abort: &Abort, first: u64, of: u64) -> bool {
    matches!(abort, Abort::Misaligned { block, first_row, rows }
        if block == "block 1" && (*first_row, *rows) == (first, of))
}

/// Plays all cases on a few threads, for those that mostly wait for a time-out.
pub(crate) fn side_by_side<C: Sync>(cases: &[C], play: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    play(case);
                }
            });
        }
    });
}

/// A failed check must end a run at once: far below the time-out of a world.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(5);

/// How a cheat must be found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A check fails at `by`, in the round in which messages of kind `round` travel.
    Check {
        by: Peer,
        round: Kind,
        suspects: Vec<Peer>,
        what: &'static str,
    },
    /// The handshake fails at `by`, over what `peer` said.
    SetUp {
        by: Peer,
        peer: Peer,
        what: &'static str,
    },
    /// `by` learns that so many rows from `first` on are not in the same order in block 1.
    Misaligned { by: Peer, first: u64, rows: u64 },
}

/// How both verifiers of `prover` find that its products are wrong, or that one of them lies: none can tell which.
pub(crate) fn found_about(prover: Peer, round: Kind) -> Vec<Found> {
    let by = |by: usize, other: usize| {
        let at = |by: usize| {
            let party = prover.party().expect("parties prove");
            Peer::Party(party.after(by, 3))
        };
        Found::Check {
            by: at(by),
            round,
            suspects: vec![prover, at(other)],
            what: "the proof of a party's products",
        }
    };
    vec![by(1, 2), by(2, 1)]
}

/// How the other verifier of `prover` finds that the prover was told another challenge than it should, or says so.
pub(crate) fn found_of_challenge(prover: Peer, round: Kind) -> Vec<Found> {
    let party = prover.party().expect("parties prove");
    let [next, previous] = [1, 2].map(|by| Peer::Party(party.after(by, 3)));
    vec![Found::Check {
        by: previous,
        round,
        suspects: vec![prover, next],
        what: "the challenge to a proof",
    }]
}

/// How a wrong product of `corrupt` is found: in its own proof, or in that of the next party, if that one has multiplied with it and
/// the corrupt party, who verifies its proof, has something else.
pub(crate) fn found_of_product(corrupt: Peer, round: Kind) -> Vec<Found> {
    let next = corrupt.party().expect("parties multiply").after(1, 3);
    let mut found = found_about(corrupt, round);
    found.extend(found_about(Peer::Party(next), round));
    found
}

/// The difference of values and MACs is not zero: every party finds that, and none can tell which one deviated.
pub(crate) const NOT_ZERO: &str = "the codes of products";
/// Two parties do not have the same component of it.
pub(crate) const NOT_THE_SAME: &str = "a component of the difference of values and codes";

/// Which parties may find that MACs do not fit, and as what: all, also the one whose message was changed on its way.
pub(crate) fn found_by_codes(round: Kind, what: &[&'static str]) -> Vec<Found> {
    let by = |what: &'static str| {
        PartyId::THREE.map(|by| Found::Check {
            by: Peer::Party(by),
            round,
            suspects: [1, 2].map(|k| Peer::Party(by.after(k, 3))).to_vec(),
            what,
        })
    };
    what.iter().flat_map(|what| by(what)).collect()
}

impl Found {
    pub(crate) fn by(&self) -> Peer {
        match self {
            Found::Check { by, .. } | Found::SetUp { by, .. } | Found::Misaligned { by, .. } => *by,
        }
    }

    /// Whether `abort` says exactly this, about chunk `chunk`.
    pub(crate) fn is(&self, outcome: &Outcome, chunk: u32, abort: &Abort) -> bool {
        match (self, abort) {
            (
                Found::Check {
                    round,
                    suspects,
                    what,
                    ..
                },
                Abort::Cheated {
                    at,
                    suspects: s,
                    what: w,
                },
            ) => {
                let sent = outcome.of(*round).filter(|m| m.at.frame.chunk == chunk);
                // One to the participant itself, if there is any.
                let round = sent
                    .min_by_key(|m| m.to != self.by())
                    .expect("such a message was sent");
                let place = Channel {
                    part: 0,
                    ..round.at
                };
                *at == place && suspects == s && what == w
            }
            (Found::SetUp { peer, what, .. }, Abort::SetUp { peer: p, what: w }) => {
                peer == p && what == w
            }
            (Found::Misaligned { first, rows, .. }, abort) => is_misaligned(abort, *first, *rows),
            _ => false,
        }
    }
}

/// A participant found it as said; one that could have found it and did not was told before; none went on, and none got a wrong value.
#[track_caller]
pub(crate) fn assert_found(outcome: &Outcome, chunk: u32, found: &[Found], corrupt: Peer) {
    let seed = outcome.seed;
    let exact = |f: &Found| f.is(outcome, chunk, outcome.abort(f.by()));
    assert!(
        found.iter().any(exact),
        "{seed}: no party found {found:?} in {:?}",
        outcome.aborts
    );
    for f in found {
        let abort = outcome.abort(f.by());
        // Where it may find one of several things, it finds one of them.
        let found = found.iter().filter(|other| other.by() == f.by());
        assert!(
            found.clone().any(exact) || is_consequence(abort),
            "{seed}: {} says {abort:?}, not {f:?}",
            f.by()
        );
    }
    for (peer, abort) in &outcome.aborts {
        let known = found.iter().any(|f| f.by() == *peer) || is_consequence(abort);
        assert!(known, "{seed}: {peer} says {abort:?}");
    }
    // Who has opened all that is opened to it is done, and does not hear what another one found in its own opening.
    let opening = |f: &Found| {
        matches!(
            f,
            Found::Check {
                round: Kind::Opened
                    | Kind::Total
                    | Kind::OutputFolds
                    | Kind::OutsideResults
                    | Kind::OutsideAnswers,
                ..
            }
        )
    };
    if !found.iter().any(opening) {
        assert_parties_gave_up(outcome);
    }
    assert!(
        outcome.elapsed < AT_ONCE,
        "{seed}: it took {:?}",
        outcome.elapsed
    );
    outcome.assert_sound(Some(corrupt));
}

#[track_caller]
pub(crate) fn assert_parties_gave_up(outcome: &Outcome) {
    for party in outcome.plan.parties() {
        outcome.abort(Peer::Party(*party));
    }
}

/// What a participant says to which nothing happened but that others gave up or left.
pub(crate) fn is_consequence(abort: &Abort) -> bool {
    match abort {
        Abort::Told { .. } => true,
        Abort::Link(error) => matches!(error.fault, veil_link::LinkFault::Closed(_)),
        _ => false,
    }
}
