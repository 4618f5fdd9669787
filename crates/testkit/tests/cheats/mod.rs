//! For every message of the protocol a sender that changes it: who finds it, in which round, whom it suspects, and that nothing is
//! opened that depends on it (attack cases A3, A4, A7, G4, G5). Last words come after all openings: G7.

mod authenticated;
mod cut;
mod four;
mod garbled;
mod handshake;
mod inputs;
mod macs;
mod malicious;
mod masked;
mod openings;
mod order;
mod stored;
mod words;

use std::collections::BTreeSet;

use crate::common::{Found, assert_found};
use veil_job::JobSpec;
use veil_link::tap::Fate;
use veil_session::Peer;
use veil_testkit::{Kind, Message, Outcome, World};

const OWNER: Peer = Peer::Owner(0);
const RECIPIENT: Peer = Peer::Recipient(0);
const ROWS: &[u64] = &[13, 9];

/// Messages of kind `kind` from `from` to `to` that `change` changes, all in chunk `chunk`.
struct Case {
    name: &'static str,
    world: World,
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
        self.world.clone().window(1).cheat(cheat)
    }
}

fn in_eights(job: JobSpec) -> World {
    World::in_chunks(job, 8, 1)
}

fn check(by: Peer, round: Kind, suspects: &[Peer], what: &'static str) -> Found {
    Found::Check {
        by,
        round,
        suspects: suspects.to_vec(),
        what,
    }
}

fn play(cases: &[Case]) {
    for case in cases {
        let world = case.world();
        // In one process and, whichever notices first, each participant for itself.
        for outcome in [world.run(), world.run_apart()] {
            println!("{:?}, {}: {:?}", case.kind, case.name, outcome.aborts);
            assert_found(&outcome, case.chunk, &case.found, case.from);
            nothing_was_opened(&outcome, case);
        }
    }
}

/// A participant that found the cheat was given nothing of that chunk or a later one; if it happened before an opening, none was.
fn nothing_was_opened(outcome: &Outcome, case: &Case) {
    let opening = matches!(
        case.kind,
        Kind::Opened
            | Kind::OpenedDigest
            | Kind::Total
            | Kind::TotalDigest
            | Kind::OutputParts
            | Kind::OutputChallenge
            | Kind::OutputFolds
    );
    let plan = &outcome.plan;
    // Of four parties two others open to a third without the one who was lied to about the agreement; it had told them that its own
    // checks have passed.
    let opening = opening || case.kind == Kind::Agreement && plan.parties().len() == 4;
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
            let summed = plan.outputs[port].gives == veil_protocol::Gives::Sum;
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
fn changes_of_the_handshake_are_found() {
    play(&handshake::cases());
}

#[test]
fn changed_inputs_are_found_before_they_are_used() {
    play(&inputs::cases());
}

#[test]
fn a_changed_opening_is_found_before_it_is_used() {
    play(&openings::cases());
}

#[test]
fn a_change_of_what_is_loaded_is_found_before_it_is_used() {
    play(&stored::cases());
}

#[test]
fn a_changed_order_of_rows_ends_the_run_before_any_is_shared() {
    play(&order::cases());
}

#[test]
fn a_change_of_what_four_parties_send_is_found_before_it_is_used() {
    play(&four::cases());
}

#[test]
fn a_forged_proof_is_found_before_anything_is_opened() {
    play(&malicious::cases());
}

#[test]
fn macs_that_do_not_fit_are_found_before_anything_is_opened() {
    play(&macs::cases());
}

#[test]
fn a_changed_masked_value_is_found_before_it_is_used() {
    play(&masked::cases());
}

#[test]
fn a_changed_oblivious_transfer_is_found_before_a_table_is_sent() {
    play(&garbled::cases());
}

#[test]
fn a_byzantine_party_of_cut_and_choose_is_found_before_a_result_is_told() {
    play(&cut::cases());
}

#[test]
fn a_byzantine_party_of_authenticated_garbling_is_found_before_anything_is_opened() {
    play(&authenticated::cases());
}

/// What two parties leave unchecked, and three against one that follows the protocol (`unchecked.rs`), four check.
#[test]
fn no_message_is_without_a_cheat() {
    let cases = [
        handshake::cases(),
        inputs::cases(),
        openings::cases(),
        stored::cases(),
        order::cases(),
        four::cases(),
        malicious::cases(),
        macs::cases(),
        masked::cases(),
        garbled::cases(),
        cut::cases(),
        authenticated::cases(),
    ];
    let played: BTreeSet<Kind> = cases
        .iter()
        .flatten()
        .map(|case| case.kind)
        // The evaluator draws the key of the sum; who says another one than it takes finds its own check failing.
        .chain([Kind::Written, Kind::JobTable, Kind::MatrixKey])
        // Those of runs with a stock are in `stock.rs`, those of intersections in `intersect.rs`, and those of silent transfers, of which there are millions in a run, in
        // tests of their rounds.
        .chain([Kind::StockMarks, Kind::StockCaughtUp, Kind::StockMarked])
        .chain([Kind::MaskedOffset, Kind::JobMaskedOffset])
        .chain([Kind::KeysCommitment, Kind::EncodingSeed, Kind::Encoding])
        .chain([Kind::ReceiverCoin, Kind::SenderCoin, Kind::KeyTags])
        .chain([Kind::SilentSums, Kind::SilentQuestion, Kind::SilentAnswer])
        .collect();
    let all: BTreeSet<Kind> = Kind::ALL.iter().copied().collect();
    assert_eq!(played, all);
}
