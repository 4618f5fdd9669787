//! For every message of the protocol a sender that changes it: who finds it, in which round, whom it suspects, and that nothing is
//! opened that depends on it (attack cases A3, A4, A7).

mod common;

use std::collections::BTreeSet;

use common::{Found, assert_found};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_program::{Audience, Lowered};
use veil_session::Peer;
use veil_testkit::sample::{dot, everything, party, peer, product};
use veil_testkit::{Kind, Message, Outcome, World, flipped};

const OWNER: Peer = Peer::Owner(0);
const RECIPIENT: Peer = Peer::Recipient(0);
const ROWS: &[u64] = &[13, 9];

/// Messages of kind `kind` from `from` to `to` that `change` changes, all in chunk `chunk`.
struct Case {
    name: &'static str,
    job: Lowered,
    chunk: u32,
    kind: Kind,
    from: Peer,
    to: Peer,
    change: fn(&[u8]) -> Vec<u8>,
    found: Vec<Found>,
}

impl Case {
    fn world(&self) -> World {
        let (chunk, kind, from, to, change) =
            (self.chunk, self.kind, self.from, self.to, self.change);
        let picked = move |m: &Message| {
            m.kind == Some(kind) && (m.from, m.to) == (from, to) && m.at.frame.chunk == chunk
        };
        let cheat = move |m: &Message| {
            if picked(m) {
                Fate::Replace(change(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        World::in_chunks(self.job.clone(), 8, 1)
            .window(1)
            .cheat(cheat)
    }
}

fn check(by: Peer, round: Kind, suspects: &[Peer], what: &'static str) -> Found {
    Found::Check {
        by,
        round,
        suspects: suspects.to_vec(),
        what,
    }
}

fn set_up(by: Peer, peer: Peer, what: &'static str) -> Found {
    Found::SetUp { by, peer, what }
}

/// `bytes` with bit 0 of byte `at` changed.
fn flip_at(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

fn handshake() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let everyone = [p2, OWNER, Peer::Owner(1), RECIPIENT, Peer::Recipient(1)];
    let case = |name, kind, from, to, change, found| Case {
        name,
        job: everything(Ring::Z64, ROWS),
        chunk: 0,
        kind,
        from,
        to,
        change,
        found,
    };
    let nonces = "was told other nonces by another party";
    let keys = "does not hold the same keys: somebody sits between the two ends";
    let plan = "runs another plan: compare job files, versions and lanes";
    let mut told = vec![set_up(p0, p1, nonces), set_up(p1, p0, nonces)];
    told.extend(everyone.map(|by| set_up(by, p0, nonces)));
    vec![
        case(
            "a party with another plan",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 64),
            vec![set_up(p0, p1, plan)],
        ),
        case(
            "an owner with another plan",
            Kind::Hello,
            OWNER,
            p2,
            |b| flip_at(b, 95),
            vec![set_up(p2, OWNER, plan)],
        ),
        case(
            "a recipient with another plan",
            Kind::Hello,
            RECIPIENT,
            p1,
            |b| flip_at(b, 80),
            vec![set_up(p1, RECIPIENT, plan)],
        ),
        case(
            "a party that tells two nonces",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 0),
            told,
        ),
        case(
            "a key share that makes the secret known",
            Kind::Hello,
            p1,
            p0,
            |b| [&b[..32], &[0; 32], &b[64..]].concat(),
            vec![set_up(p0, p1, "sent a key share of small order")],
        ),
        case(
            "a man in the middle of two parties",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 40),
            vec![set_up(p0, p1, keys), set_up(p1, p0, keys)],
        ),
        case(
            "a man in the middle of owner and party",
            Kind::Hello,
            p2,
            OWNER,
            |b| flip_at(b, 40),
            vec![set_up(p2, OWNER, keys), set_up(OWNER, p2, keys)],
        ),
        case(
            "a proof for another session",
            Kind::Proof,
            p2,
            p0,
            |b| flip_at(b, 31),
            vec![set_up(p0, p2, nonces)],
        ),
        case(
            "a wrong proof",
            Kind::Proof,
            p2,
            p0,
            |b| flip_at(b, 32),
            vec![set_up(p0, p2, keys)],
        ),
        case(
            "a recipient's wrong proof",
            Kind::Proof,
            RECIPIENT,
            p1,
            |b| flip_at(b, 63),
            vec![set_up(p1, RECIPIENT, keys)],
        ),
    ]
}

/// A4, A7, and the digests that find them.
fn inputs() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let case = |name, chunk, kind, from, to, found| Case {
        name,
        job: everything(Ring::Z64, ROWS),
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let (seed, shares) = ("an owner's seed", "an owner's shares");
    let seeds = |a, b| {
        vec![
            check(a, Kind::SeedDigest, &[OWNER, b], seed),
            check(b, Kind::SeedDigest, &[OWNER, a], seed),
        ]
    };
    let components = |owner, kind| {
        vec![
            check(p0, kind, &[owner, p2], shares),
            check(p2, kind, &[owner, p0], shares),
        ]
    };
    vec![
        case(
            "A4: another seed 0 for party 0",
            0,
            Kind::Seeds,
            OWNER,
            p0,
            seeds(p0, p1),
        ),
        case(
            "A4: another seed 0 for party 1",
            0,
            Kind::Seeds,
            OWNER,
            p1,
            seeds(p0, p1),
        ),
        case(
            "A4: another seed 1 for party 2",
            0,
            Kind::Seeds,
            OWNER,
            p2,
            seeds(p1, p2),
        ),
        case(
            "a party's wrong digest of a seed",
            0,
            Kind::SeedDigest,
            p0,
            p1,
            vec![check(p1, Kind::SeedDigest, &[OWNER, p0], seed)],
        ),
        case(
            "A7: another list",
            0,
            Kind::List,
            p2,
            p1,
            vec![check(p1, Kind::List, &[p2], "the list of accepted inputs")],
        ),
        case(
            "A4: another value per job for party 0",
            0,
            Kind::OwnerJobInput,
            OWNER,
            p0,
            components(OWNER, Kind::OwnerJobDigest),
        ),
        case(
            "A4: another value per job for party 2",
            0,
            Kind::OwnerJobInput,
            OWNER,
            p2,
            components(OWNER, Kind::OwnerJobDigest),
        ),
        case(
            "a party's wrong digest of values per job",
            0,
            Kind::OwnerJobDigest,
            p2,
            p0,
            vec![check(p0, Kind::OwnerJobDigest, &[OWNER, p2], shares)],
        ),
        case(
            "A4: other rows for party 0",
            2,
            Kind::OwnerInput,
            Peer::Owner(1),
            p0,
            components(Peer::Owner(1), Kind::OwnerDigest),
        ),
        case(
            "A4: other rows for party 2",
            3,
            Kind::OwnerInput,
            OWNER,
            p2,
            components(OWNER, Kind::OwnerDigest),
        ),
        case(
            "a party's wrong digest of rows",
            2,
            Kind::OwnerDigest,
            p0,
            p2,
            vec![check(p2, Kind::OwnerDigest, &[OWNER, p0], shares)],
        ),
    ]
}

/// A3, for each kind of audience, and the agreement before it.
fn openings() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let opened = "an opened component";
    let agreement = "the agreement to open";
    let case = |name, job, chunk, kind, from, to, found| Case {
        name,
        job,
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let rows = |audience| product(Ring::Z64, 20, audience);
    let sums = |audience| dot(Ring::Z64, 20, audience);
    let [all, one, out] = [
        Audience::Parties,
        Audience::Party(party(1)),
        Audience::Recipient(0),
    ];
    let at_party = |kind| vec![check(p1, kind, &[p0, p2], opened)];
    let at_recipient = |kind, holder, other| vec![check(RECIPIENT, kind, &[holder, other], opened)];
    // Party 1 misses u_2: party 0 sends it, party 2 its digest. A recipient gets u_0 from party 0 and its digest from party 1.
    let mut cases = vec![
        case(
            "no agreement",
            rows(all),
            2,
            Kind::Agreement,
            p1,
            p2,
            vec![check(p2, Kind::Agreement, &[p1], agreement)],
        ),
        // The chunk after the last is that of the totals.
        case(
            "no agreement on sums",
            sums(all),
            4,
            Kind::Agreement,
            p0,
            p1,
            vec![check(p1, Kind::Agreement, &[p0], agreement)],
        ),
        case(
            "A3: to a recipient",
            rows(out),
            2,
            Kind::Opened,
            p0,
            RECIPIENT,
            at_recipient(Kind::Opened, p0, p1),
        ),
        case(
            "A3: digest to a recipient",
            rows(out),
            1,
            Kind::OpenedDigest,
            p0,
            RECIPIENT,
            at_recipient(Kind::Opened, p2, p0),
        ),
        case(
            "A3: sum to a recipient",
            sums(out),
            4,
            Kind::Total,
            p2,
            RECIPIENT,
            at_recipient(Kind::Total, p2, p0),
        ),
        case(
            "A3: digest of a sum to a recipient",
            sums(out),
            4,
            Kind::TotalDigest,
            p2,
            RECIPIENT,
            at_recipient(Kind::Total, p1, p2),
        ),
    ];
    for audience in [all, one] {
        cases.extend([
            case(
                "A3: to a party",
                rows(audience),
                3,
                Kind::Opened,
                p0,
                p1,
                at_party(Kind::Opened),
            ),
            case(
                "A3: digest to a party",
                rows(audience),
                1,
                Kind::OpenedDigest,
                p2,
                p1,
                at_party(Kind::Opened),
            ),
            case(
                "A3: sum to a party",
                sums(audience),
                4,
                Kind::Total,
                p0,
                p1,
                at_party(Kind::Total),
            ),
            case(
                "A3: digest of a sum to a party",
                sums(audience),
                4,
                Kind::TotalDigest,
                p2,
                p1,
                at_party(Kind::Total),
            ),
        ]);
    }
    cases
}

fn play(cases: &[Case]) {
    for case in cases {
        let world = case.world();
        // In one process and, whoever notices first, each participant for itself.
        for outcome in [world.run(), world.run_apart()] {
            println!("{}: {:?}", case.name, outcome.aborts);
            assert_found(&outcome, case.chunk, &case.found, case.from);
            nothing_was_opened(&outcome, case);
        }
    }
}

/// Who found the cheat was given nothing of that chunk or a later one; and if it happened before an opening, nobody was.
fn nothing_was_opened(outcome: &Outcome, case: &Case) {
    let opening = matches!(
        case.kind,
        Kind::Opened | Kind::OpenedDigest | Kind::Total | Kind::TotalDigest
    );
    let plan = &outcome.plan;
    let reached = (0..)
        .map_while(|index| plan.chunk(index))
        .take_while(|chunk| chunk.frame.chunk < case.chunk);
    let before: BTreeSet<(u32, u64)> = reached.map(|chunk| (chunk.block, chunk.first)).collect();
    for (&who, seen) in &outcome.seen {
        let bystander = opening && !case.found.iter().any(|f| f.by() == who);
        if bystander || outcome.ports_of(who).is_empty() {
            continue;
        }
        assert!(
            !seen.finished(),
            "{}: {}: {who} finished",
            outcome.seed,
            case.name
        );
        for (port, slice) in seen.slices() {
            let summed = plan.outputs[port].reduce == veil_circuit::Reduce::Sum;
            let early = !summed && before.contains(&(slice.block, slice.first));
            assert!(
                early,
                "{}: {}: {who} was given {slice:?} of output {port}",
                outcome.seed, case.name
            );
        }
    }
}

#[test]
fn whoever_changes_the_handshake_is_found() {
    play(&handshake());
}

#[test]
fn whoever_changes_inputs_is_found_before_they_are_used() {
    play(&inputs());
}

#[test]
fn whoever_changes_an_opening_is_found_before_it_is_used() {
    play(&openings());
}

/// Messages that no check covers in a semi-honest protocol: see the tests in `unchecked.rs`.
const UNCHECKED: [Kind; 5] = [
    Kind::PartyInput,
    Kind::PartyJobInput,
    Kind::JobProduct,
    Kind::Product,
    Kind::SumProduct,
];

#[test]
fn no_message_is_without_a_cheat() {
    let outcome = World::in_chunks(everything(Ring::Z64, ROWS), 8, 1).run();
    let sent: BTreeSet<Option<Kind>> = outcome
        .assert_right()
        .transcript
        .iter()
        .map(|m| m.kind)
        .collect();
    let cases = handshake().into_iter().chain(inputs()).chain(openings());
    let played: BTreeSet<Option<Kind>> = cases
        .map(|case| Some(case.kind))
        .chain(UNCHECKED.map(Some))
        .collect();
    assert_eq!(sent, played);
}
