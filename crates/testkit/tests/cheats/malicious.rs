//! Cheats among three parties of whom one may be malicious: in the proof that products are right (attack cases A1, A2, A5), and in the
//! agreement that says that it was accepted.

use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{against_malicious, everything, peer};
use veil_testkit::{Kind, flipped};

use super::{Case, Found, ROWS, check, in_eights};
use crate::common::{found_about, found_of_challenge, found_of_product};

/// Element `k` plus `by`.
fn plus(bytes: &[u8], k: usize, by: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let element: &mut [u8] = &mut bytes[8 * k..][..8];
    let value = u64::from_le_bytes(element.try_into().expect("8 bytes"));
    element.copy_from_slice(&(value ^ by).to_le_bytes());
    bytes
}

/// Another share whose sum is the same.
fn forged(bytes: &[u8]) -> Vec<u8> {
    plus(&plus(bytes, 0, 1), 1, 1)
}

/// Another value of a vector: the last but one.
fn other_value(bytes: &[u8]) -> Vec<u8> {
    plus(bytes, bytes.len() / 8 - 2, 1)
}

/// Another share of the last value.
fn other_share(bytes: &[u8]) -> Vec<u8> {
    plus(bytes, bytes.len() / 8 - 1, 1)
}

/// The largest numbers.
fn largest(bytes: &[u8]) -> Vec<u8> {
    vec![0xff; bytes.len()]
}

/// Nothing.
fn zeros(bytes: &[u8]) -> Vec<u8> {
    vec![0; bytes.len()]
}

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let case = |name, chunk, kind, from, to, change, found: Vec<Found>| Case {
        name,
        world: in_eights(against_malicious(everything(Ring::Bits, ROWS))),
        chunk,
        kind,
        from,
        to,
        change,
        found,
    };
    let (found, job_found) = (
        |prover| found_about(prover, Kind::Findings),
        |prover| found_about(prover, Kind::JobFindings),
    );
    // What a verifier tells the other one: only that one finds it.
    let told = |prover: Peer, by: Peer, round| {
        let mut all = found_about(prover, round);
        all.retain(|found| found.by() == by);
        all
    };
    let agreement = vec![check(p2, Kind::Agreement, &[p1], "the agreement to open")];
    let (findings, wrong) = (Kind::Findings, found_of_product);
    vec![
        case(
            "A1: a product",
            2,
            Kind::Product,
            p1,
            p2,
            flipped,
            wrong(p1, findings),
        ),
        case(
            "A1: a product of values per job",
            0,
            Kind::JobProduct,
            p0,
            p1,
            flipped,
            wrong(p0, Kind::JobFindings),
        ),
        case("a share", 2, Kind::ProofShare, p1, p2, flipped, found(p1)),
        case(
            "A2: a share",
            2,
            Kind::ProofShare,
            p2,
            p0,
            forged,
            found(p2),
        ),
        case(
            "a share of the largest numbers",
            1,
            Kind::ProofShare,
            p0,
            p1,
            largest,
            found(p0),
        ),
        case(
            "a share of zeros",
            2,
            Kind::ProofShare,
            p0,
            p1,
            zeros,
            found(p0),
        ),
        case(
            "A2: a share of values per job",
            0,
            Kind::JobProofShare,
            p1,
            p2,
            forged,
            job_found(p1),
        ),
        case(
            "a seed, between verifiers",
            2,
            Kind::ProofReady,
            p2,
            p1,
            flipped,
            vec![check(p1, Kind::ProofReady, &[p2], "the seed of a proof")],
        ),
        case(
            "a seed of values per job, between verifiers",
            0,
            Kind::JobProofReady,
            p0,
            p2,
            zeros,
            vec![check(p2, Kind::JobProofReady, &[p0], "the seed of a proof")],
        ),
        // A prover with other weights proves another statement; the other verifier hears of them before it tells anything.
        case(
            "a seed",
            2,
            Kind::ProofSeed,
            p2,
            p1,
            flipped,
            found_of_challenge(p1, Kind::ProofSeedEcho),
        ),
        case(
            "a seed of zeros",
            1,
            Kind::ProofSeed,
            p0,
            p2,
            zeros,
            found_of_challenge(p2, Kind::ProofSeedEcho),
        ),
        case(
            "a seed of values per job",
            0,
            Kind::JobProofSeed,
            p1,
            p0,
            flipped,
            found_of_challenge(p0, Kind::JobProofSeedEcho),
        ),
        case(
            "what a prover says was its seed",
            2,
            Kind::ProofSeedEcho,
            p1,
            p0,
            flipped,
            found_of_challenge(p1, Kind::ProofSeedEcho),
        ),
        case(
            "what a prover says was its seed, of values per job",
            0,
            Kind::JobProofSeedEcho,
            p2,
            p1,
            zeros,
            found_of_challenge(p2, Kind::JobProofSeedEcho),
        ),
        // Before the prover that was told another challenge has proved anything by it to the other verifier.
        case(
            "a challenge",
            2,
            Kind::Challenge,
            p2,
            p1,
            flipped,
            found_of_challenge(p1, Kind::Echo),
        ),
        case(
            "a challenge of values per job",
            0,
            Kind::JobChallenge,
            p0,
            p2,
            flipped,
            found_of_challenge(p2, Kind::JobEcho),
        ),
        case(
            "what a prover says it was told",
            2,
            Kind::Echo,
            p1,
            p0,
            flipped,
            found_of_challenge(p1, Kind::Echo),
        ),
        case(
            "what a prover says it was told, of values per job",
            0,
            Kind::JobEcho,
            p2,
            p1,
            flipped,
            found_of_challenge(p2, Kind::JobEcho),
        ),
        case(
            "what the verifier after the prover found",
            2,
            findings,
            p2,
            p0,
            flipped,
            told(p1, p0, findings),
        ),
        case(
            "what the verifier before the prover found",
            1,
            findings,
            p0,
            p2,
            flipped,
            told(p1, p2, findings),
        ),
        case(
            "p(r)",
            2,
            findings,
            p2,
            p0,
            other_value,
            told(p1, p0, findings),
        ),
        case(
            "q(r)",
            2,
            findings,
            p0,
            p2,
            other_value,
            told(p1, p2, findings),
        ),
        case(
            "a share of p(r) q(r)",
            2,
            findings,
            p1,
            p2,
            other_share,
            told(p0, p2, findings),
        ),
        case(
            "findings of values per job",
            0,
            Kind::JobFindings,
            p1,
            p0,
            flipped,
            told(p2, p0, Kind::JobFindings),
        ),
        case("a verdict", 2, Kind::Agreement, p1, p2, flipped, agreement),
    ]
}
