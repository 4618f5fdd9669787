//! Cheats in authenticated garbling: every message of either party, or of a participant from outside, changed on its way (attack cases A4, A7, D1, D2, F1 to F6, F8).
//! Parties that lie to their own device, consistently, are in `authenticated.rs`, with what passes half of the time.

use veil_circuit::make;
use veil_device::Cpu;
use veil_job::{Adversary, Audience, Holder, Ot};
use veil_session::Peer;
use veil_testkit::sample::{against, authenticated, between_two, job, party, peer};
use veil_testkit::{Kind, World, flipped};

use super::{Case, OWNER, RECIPIENT, check};
use crate::common::Found;

const GARBLER: usize = 0;
const EVALUATOR: usize = 1;
const PARTIES: [&str; 2] = ["garbler", "evaluator"];

const TRANSFERS: &str = "corrections of oblivious transfer";
const INPUTS: &str = "parts of masks of inputs";
const OUTPUTS: &str = "parts of masks of outputs";
const PRODUCTS: &str = "leaky products of authenticated bits";
const COMMITMENT: &str = "what the other party committed to";
const BITS: &str = "bits that are opened of a batch";
const LABELS: &str = "labels of results";
const GATES: &str = "masks of gates";

/// Who finds a change.
#[derive(Clone, Copy)]
enum By {
    /// The party that gets the message.
    Receiver,
    /// The party that sent it, by the answer to another message.
    Sender,
    /// The garbler, also where it sent it: its check comes first.
    Garbler,
}

const BOTH: &[usize] = &[GARBLER, EVALUATOR];
const OF_GARBLER: &[usize] = &[GARBLER];
const OF_EVALUATOR: &[usize] = &[EVALUATOR];

/// A kind of messages, from whom, how it is changed, and who finds that.
type Change = (Kind, &'static [usize], fn(&[u8]) -> Vec<u8>, By);

/// What is found in the round of messages of a kind, to the party that finds it; by changes after the set-up, in the order of the messages.
const FOUND: &[(&str, Kind, &[Change])] = &[
    (
        TRANSFERS,
        Kind::TransferFolds,
        &[
            (Kind::Correction, BOTH, flipped, By::Receiver),
            (Kind::TransferChallenge, BOTH, flipped, By::Sender),
            (Kind::TransferFolds, BOTH, flipped, By::Receiver),
        ],
    ),
    (
        INPUTS,
        Kind::InputFold,
        &[
            (Kind::InputParts, BOTH, flipped, By::Receiver),
            (Kind::InputChallenge, BOTH, flipped, By::Sender),
            (Kind::InputFold, BOTH, flipped, By::Receiver),
        ],
    ),
    (
        LABELS,
        Kind::LabelFold,
        &[
            // The other party has a label of neither value.
            (Kind::MaskedInput, BOTH, flipped, By::Garbler),
        ],
    ),
    (
        TRANSFERS,
        Kind::BatchTransferFolds,
        &[
            (Kind::BatchCorrection, BOTH, flipped, By::Receiver),
            (Kind::BatchTransferChallenge, BOTH, flipped, By::Sender),
            (Kind::BatchTransferFolds, BOTH, flipped, By::Receiver),
        ],
    ),
    (
        PRODUCTS,
        Kind::LeakyDigest,
        &[
            // Of all candidates: a change of one passes where the other party's part of a is 0.
            (Kind::LeakyOffer, BOTH, blocks, By::Garbler),
            (Kind::LeakyBits, BOTH, flipped, By::Garbler),
            (Kind::LeakyChallenge, BOTH, flipped, By::Garbler),
            (Kind::LeakyDigest, OF_EVALUATOR, flipped, By::Receiver),
        ],
    ),
    (
        COMMITMENT,
        Kind::LeakyDigest,
        &[
            (Kind::LeakyCommitment, OF_GARBLER, flipped, By::Receiver),
            (Kind::LeakyDigest, OF_GARBLER, flipped, By::Receiver),
            (Kind::LeakyNonce, OF_GARBLER, flipped, By::Receiver),
        ],
    ),
    (
        BITS,
        Kind::BitFolds,
        &[
            // The parties combine other candidates than each other.
            (Kind::GarblerCoin, OF_GARBLER, flipped, By::Garbler),
        ],
    ),
    (
        COMMITMENT,
        Kind::EvaluatorCoin,
        &[
            (Kind::CoinCommitment, OF_EVALUATOR, flipped, By::Receiver),
            (Kind::EvaluatorCoin, OF_EVALUATOR, flipped, By::Receiver),
            (Kind::CoinNonce, OF_EVALUATOR, flipped, By::Receiver),
        ],
    ),
    (
        BITS,
        Kind::BitFolds,
        &[
            (Kind::OpenedBits, BOTH, flipped, By::Receiver),
            (Kind::OpenedBits, BOTH, last, By::Receiver),
            (Kind::BitChallenge, BOTH, flipped, By::Sender),
            (Kind::BitFolds, BOTH, flipped, By::Receiver),
            (Kind::BitFolds, BOTH, last, By::Receiver),
        ],
    ),
    (
        LABELS,
        Kind::LabelFold,
        &[
            // The evaluator follows the protocol, and has labels that are none of the garbler's, who is the first to check.
            (Kind::Table, OF_GARBLER, blocks, By::Garbler),
            (Kind::TableColours, OF_GARBLER, flipped, By::Garbler),
            (Kind::MaskedResults, OF_EVALUATOR, flipped, By::Garbler),
            (Kind::GateChallenge, OF_GARBLER, flipped, By::Garbler),
            (Kind::LabelFold, OF_EVALUATOR, flipped, By::Receiver),
        ],
    ),
    (
        GATES,
        Kind::GateFold,
        &[
            (Kind::GateChallenge, OF_EVALUATOR, flipped, By::Sender),
            (Kind::GateFold, OF_GARBLER, flipped, By::Receiver),
        ],
    ),
    (
        OUTPUTS,
        Kind::OutputFolds,
        &[
            (Kind::OutputParts, BOTH, flipped, By::Receiver),
            (Kind::OutputChallenge, BOTH, flipped, By::Sender),
            (Kind::OutputFolds, BOTH, flipped, By::Receiver),
        ],
    ),
];

/// The same of the rounds of silent transfers.
const OF_STREAMS: &[(&str, Kind, &[Change])] = &[(
    "trees of silent transfers",
    Kind::SilentAnswer,
    &[
        (Kind::SilentSums, BOTH, flipped, By::Receiver),
        (Kind::SilentSums, BOTH, last, By::Receiver),
        (Kind::SilentQuestion, BOTH, flipped, By::Sender),
        (Kind::SilentAnswer, BOTH, flipped, By::Receiver),
    ],
)];

/// The base of a stream, in its first chunk.
const OF_BASES: &[(&str, Kind, &[Change])] = &[(
    TRANSFERS,
    Kind::BatchTransferFolds,
    &[
        (Kind::BatchCorrection, BOTH, flipped, By::Receiver),
        (Kind::BatchTransferChallenge, BOTH, flipped, By::Sender),
        (Kind::BatchTransferFolds, BOTH, flipped, By::Receiver),
    ],
)];

/// By silent transfers: rounds of the second chunk go on with those of the first.
fn in_a_stream() -> World {
    let mut job = authenticated("adder:9", 8, Audience::Parties);
    job.security.ot = Ot::Silent;
    let world = World::in_chunks(job, 4, 1).expanding(crate::silent::TINY);
    world.devices(|_| Box::new(Cpu::detect()))
}

/// Eight rows in two chunks, of which the second is changed: enough gates that one of those that `blocks` changes has Λ = 1.
fn world() -> World {
    World::in_chunks(authenticated("adder:9", 8, Audience::Parties), 4, 1)
        .devices(|_| Box::new(Cpu::detect()))
}

pub(crate) fn cases() -> Vec<Case> {
    let parties = [GARBLER, EVALUATOR].map(|p| peer(p as u8));
    let tables = [
        (FOUND, false, 2),
        (OF_STREAMS, true, 2),
        (OF_BASES, true, 1),
    ];
    let all = tables.into_iter().flat_map(|(found, silent, chunk)| {
        found.iter().flat_map(move |(what, round, changes)| {
            let one = move |change: &'static Change| ((*what, silent, chunk), *round, *change);
            changes.iter().map(one)
        })
    });
    let after = all.flat_map(|((what, silent, chunk), round, (kind, from, change, by))| {
        from.iter().map(move |&from| {
            let by = match by {
                By::Receiver => 1 - from,
                By::Sender => from,
                By::Garbler => GARBLER,
            };
            let suspects: &[Peer] = &[parties[1 - by]];
            Case {
                name: PARTIES[from],
                world: if silent { in_a_stream() } else { world() },
                chunk,
                kind,
                from: parties[from],
                to: parties[1 - from],
                change,
                found: vec![check(parties[by], round, suspects, what)],
            }
        })
    });
    let set_up = [
        ("other points for base transfers", Kind::Points, GARBLER),
        ("another point of their sender", Kind::Points, EVALUATOR),
        ("other trees of keys", Kind::Trees, EVALUATOR),
        ("another turn of transfers", Kind::Trees, EVALUATOR),
        ("other trees of the second direction", Kind::Trees, GARBLER),
    ]
    .map(|(name, kind, from)| {
        let (from, by) = (parties[from], parties[1 - from]);
        Case {
            name,
            world: world(),
            chunk: 0,
            kind,
            from,
            to: by,
            // The turn is behind the trees.
            change: if name.contains("turn") { last } else { flipped },
            found: vec![Found::SetUp {
                by,
                peer: from,
                what: "sent a message of oblivious transfer that was not made for this session",
            }],
        }
    });
    let lists = [GARBLER, EVALUATOR].map(|from| {
        let (from, by) = (parties[from], parties[1 - from]);
        Case {
            name: "A7: another list",
            world: world(),
            chunk: 0,
            kind: Kind::List,
            from,
            to: by,
            change: flipped,
            found: vec![check(
                by,
                Kind::List,
                &[from],
                "the list of accepted inputs",
            )],
        }
    });
    let cases = set_up.into_iter().chain(lists).chain(after);
    cases.chain(outside()).collect()
}

/// Changes of what participants from outside are told, and say.
fn outside() -> Vec<Case> {
    let [p0, p1] = [0, 1].map(peer);
    let circuit = make("adder:9").expect("the catalogue has it");
    let holders = [Holder::Owner(0), Holder::Party(party(1))];
    let job = job(circuit, &[(8, &holders)], &[Audience::Recipient(0)]);
    let job = against(between_two(job), Adversary::Malicious);
    let world = World::in_chunks(job, 4, 1).devices(|_| Box::new(Cpu::detect()));
    let case = |name, kind, from, to, found| Case {
        name,
        world: world.clone(),
        chunk: 2,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let told = |by| {
        let what = "parts of masks that are told outside";
        vec![check(by, Kind::OutsideAnswers, &[p0, p1], what)]
    };
    let mut cases = Vec::new();
    for outsider in [OWNER, RECIPIENT] {
        for party in [p0, p1] {
            for (kind, from, to) in [
                (Kind::OutsideParts, party, outsider),
                (Kind::OutsideChallenge, outsider, party),
                (Kind::OutsideSum, outsider, party),
                (Kind::OutsideAnswers, party, outsider),
            ] {
                cases.push(case("told outside", kind, from, to, told(outsider)));
            }
        }
    }
    let masked = |by, other| {
        let what = "masked inputs from outside";
        check(by, Kind::MaskedInputDigest, &[other, OWNER], what)
    };
    let both = || vec![masked(p0, p1), masked(p1, p0)];
    for (party, other) in [(p0, p1), (p1, p0)] {
        let results = "masked results that are told outside";
        let found = vec![check(RECIPIENT, Kind::OutsideResults, &[p0, p1], results)];
        cases.extend([
            case(
                "A4: another masked value",
                Kind::MaskedInput,
                OWNER,
                party,
                both(),
            ),
            case(
                "another digest",
                Kind::MaskedInputDigest,
                other,
                party,
                vec![masked(party, other)],
            ),
            case(
                "another result",
                Kind::OutsideResults,
                party,
                RECIPIENT,
                found,
            ),
        ]);
    }
    cases
}

/// The last bit changed.
fn last(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 0x80;
    }
    bytes
}

/// The first bit of every block changed.
fn blocks(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.iter_mut().step_by(16).for_each(|byte| *byte ^= 1);
    bytes
}
