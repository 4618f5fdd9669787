//! Cheats over what the parties load from their stores: attack case G4.

use veil_job::JobSpec;
use veil_math::Ring;
use veil_testkit::sample::{among_four, everything, peer};
use veil_testkit::{Kind, Seed, flipped};

use super::{Case, ROWS, check};
use crate::common::second_stage;

pub(crate) fn cases() -> Vec<Case> {
    let job = everything(Ring::Z64, ROWS);
    // Component u_i is that of parties i and i + 1: each compares it with the other.
    let mut cases = of(&job, &[(0, 1), (1, 0), (2, 1), (2, 0)]);
    // Of four parties any two compare the two components that both have.
    cases.extend(of(&among_four(job), &[(0, 1), (3, 0), (1, 3), (2, 0)]));
    cases
}

fn of(job: &JobSpec, pairs: &[(u8, u8)]) -> Vec<Case> {
    let world = second_stage(job, Seed(10));
    let (per_job, rows) = (
        "G4: a wrong digest of loaded values per job",
        "G4: a wrong digest of loaded rows",
    );
    let mut cases = Vec::new();
    for (name, chunk, kind) in [
        (per_job, 0, Kind::LoadedJobDigest),
        (rows, 2, Kind::LoadedDigest),
    ] {
        for (from, to) in pairs.iter().map(|(from, to)| (peer(*from), peer(*to))) {
            cases.push(Case {
                name,
                world: world.clone(),
                chunk,
                kind,
                from,
                to,
                change: flipped,
                found: vec![check(to, kind, &[to, from], "a stored share")],
            });
        }
    }
    cases
}
