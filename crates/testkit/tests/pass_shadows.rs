//! Programs of passes whose devices run in the shadow of the reference device: silent where all is right, exact where one bit is wrong.

use std::sync::Arc;
use std::time::Duration;

use veil_device::shadow::{Compared, Difference, Differs, Shadow, Shadowed};
use veil_device::{Cpu, Device, Lifting, Op, Outcome, Proof, Reference, RowStep};
use veil_engine::{Abort, Settings};
use veil_job::Security;
use veil_job::passes::ProgramSpec;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::Peer;
use veil_testkit::{Erred, Slip};

use crate::common::programs::{
    CPU, Ends, honest, opened, parties, proving, random, run_on, securities, sorting,
};

fn program(spec: &ProgramSpec, lanes: u16) -> Arc<PassProgram> {
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    Arc::new(PassProgram::new(spec, options).unwrap())
}

/// In which commands a device errs.
type Slips = fn(&Op) -> bool;

/// Runs in a shadow; `wrong` errs, in a pass, in a kind of command. What the shadow says, how the run ended, and where the device erred.
fn shadowed(
    program: &Arc<PassProgram>,
    ends: &Ends,
    wrong: Option<(Peer, u16, Slips)>,
) -> (Result<Compared, Box<Difference>>, Result<(), Abort>, Erred) {
    let shadow = Shadow::new();
    let erred = Erred::default();
    let settings = |peer: Peer| {
        let (shadow, erred) = (Arc::clone(&shadow), Arc::clone(&erred));
        let slips = wrong.filter(|(who, ..)| *who == peer);
        Settings {
            timeout: Duration::from_secs(20),
            device: Arc::new(move || {
                let cpu: Box<dyn Device> = Box::new(Cpu::detect());
                let device = match slips {
                    Some((_, pass, slips)) => Box::new(Slip::new(cpu, pass, slips, &erred)),
                    None => cpu,
                };
                let other = Box::new(Reference::default());
                let shadowed = Shadowed::new(device, other, &shadow, peer.to_string());
                Ok(Box::new(shadowed) as Box<dyn Device>)
            }),
            ..Settings::default()
        }
    };
    let ended = run_on(program, ends, &settings, &honest());
    let ended = ended.map(drop).map_err(|failure| failure.first().1.clone());
    (shadow.verdict(), ended, erred)
}

#[test]
fn a_right_run_has_the_same_shadow() {
    for (rows, bits, lanes) in [(70, 6, 2), (9, 20, 1)] {
        let columns = [random(1, rows, bits), random(2, rows, 64)];
        for security in securities().into_iter().chain([proving()]) {
            let spec = sorting(security, rows, bits);
            let program = program(&spec, lanes);
            let ends = Ends::of(&program, &columns);
            let (verdict, ended, _) = shadowed(&program, &ends, None);
            ended.unwrap();
            let compared = verdict.unwrap();
            assert!(
                compared.commands > compared.batches && compared.bytes > 10_000,
                "{compared:?}"
            );
            // Owner, parties and recipient have some for each lane, and parties more than one.
            let participants = parties(security) as u64 + 2;
            assert!(
                compared.devices > participants * u64::from(lanes),
                "{compared:?}"
            );
            let found = ends.opened(&program);
            assert_eq!(found, opened(&spec, &columns, CPU, 1), "{security}");
        }
    }
}

/// The passes in which one of these devices has a command of this kind, by trying.
fn erring(
    security: Security,
    (rows, bits): (u32, u32),
    passes: impl Fn(&PassProgram) -> Vec<u16>,
    (slips, name): (Slips, &str),
) {
    let spec = sorting(security, rows, bits);
    let program = program(&spec, 1);
    let columns = [random(1, rows, bits), random(2, rows, 64)];
    let mut found = 0;
    for pass in passes(&program) {
        for party in program.first().parties() {
            let wrong = Peer::Party(*party);
            let ends = Ends::of(&program, &columns);
            let (verdict, ended, erred) = shadowed(&program, &ends, Some((wrong, pass, slips)));
            let Some((frame, command)) = *erred.lock().unwrap() else {
                // The party has no such command in this pass.
                verdict.unwrap();
                continue;
            };
            found += 1;
            let difference = verdict.unwrap_err();
            let text = difference.to_string();
            assert_eq!(frame.epoch, pass);
            assert_eq!(difference.frame, frame, "{text}");
            assert_eq!(
                (&*difference.of, difference.device),
                (&*wrong.to_string(), "slip")
            );
            let named = difference.commands.iter();
            let mut named = named.map(|(_, at, called)| (*at, *called));
            assert!(
                named.any(|named| named == (command, name)),
                "{security}: command {command} ({name}): {text}"
            );
            assert!(matches!(difference.what, Differs::Bytes { .. }), "{text}");
            let start = format!("{wrong} in pass {}, chunk {}", pass + 1, frame.chunk);
            assert!(text.starts_with(&start), "{text}");
            let part = format!("command {command} ({name})");
            assert!(text.contains(&part), "{text}");
            // The run ends at the party whose device it is, and nothing is opened to a recipient.
            let said = ended.unwrap_err().to_string();
            assert!(
                said.contains("slip is wrong: ") && said.contains(&text),
                "{said}"
            );
            assert!(ends.seen.values().all(|seen| !seen.finished()), "{text}");
        }
    }
    assert!(found > 1, "{security}: {name} {found}");
}

/// Passes of rows, but for the first.
fn of_rows(program: &PassProgram) -> Vec<u16> {
    let passes = (0u16..).zip(program.passes()).skip(1);
    let rows = passes.filter(|(_, pass)| pass.rows().is_some() && pass.compares().is_none());
    rows.map(|(number, _)| number).take(3).collect()
}

fn of_moves(program: &PassProgram) -> Vec<u16> {
    let passes = (0u16..).zip(program.passes());
    let moves = passes.filter(|(_, pass)| pass.rows().is_none());
    moves.map(|(number, _)| number).take(4).collect()
}

fn of_comparisons(program: &PassProgram) -> Vec<u16> {
    let passes = (0u16..).zip(program.passes());
    let compares = passes.filter(|(_, pass)| pass.compares().is_some());
    compares.map(|(number, _)| number).take(2).collect()
}

#[test]
fn an_error_in_a_lift_is_named() {
    for security in securities() {
        // What a party that shares a bit keeps of it is overwritten by messages: an error there is none.
        let lifts = |op: &Op| matches!(op, Op::Lifting(Lifting::Turn | Lifting::Terms { .. }));
        erring(security, (40, 4), of_rows, (lifts, "a step of lifts"));
    }
}

#[test]
fn an_error_in_a_move_is_named() {
    for security in securities() {
        let permutes = |op: &Op| matches!(op, Op::Permute { .. });
        erring(security, (40, 4), of_moves, (permutes, "permute"));
        let draws = |op: &Op| matches!(op, Op::Permutation);
        erring(security, (40, 4), of_moves, (draws, "permutation"));
    }
}

/// Of rows that are moved, and of what is proved of them.
#[test]
fn an_error_in_a_move_that_is_proved_is_named() {
    let permutes = |op: &Op| matches!(op, Op::Permute { .. });
    erring(proving(), (9, 20), of_moves, (permutes, "permute"));
    // Vectors are where the host does not reach.
    let claims = |op: &Op| matches!(op, Op::Proof(Proof::Rows(RowStep::Claim { .. })));
    erring(proving(), (9, 20), of_moves, (claims, "proof"));
}

#[test]
fn an_error_in_positions_is_named() {
    for security in securities() {
        let ranks = |op: &Op| matches!(op, Op::Rank(_));
        erring(security, (40, 4), of_moves, (ranks, "rank"));
    }
}

#[test]
fn an_error_in_a_comparison_is_named() {
    for security in securities() {
        let products = |op: &Op| matches!(op, Op::Product(_));
        erring(security, (7, 20), of_comparisons, (products, "product"));
    }
}

/// A device that lets a failed check pass, or fails one that holds, differs in how its batch ended.
#[test]
fn an_outcome_that_differs_is_named() {
    struct Says(Cpu, Outcome);

    impl Device for Says {
        fn poll(&mut self) -> Result<Option<veil_device::Completion>, veil_device::Fault> {
            let ended = self.0.poll()?;
            Ok(ended.map(|ended| veil_device::Completion {
                outcome: self.1.clone(),
                ..ended
            }))
        }

        veil_device::forward!(self, self.0, name bind load_key load open close write map view submit wipe);
    }

    let [.., security] = securities();
    let program = program(&sorting(security, 9, 4), 1);
    let ends = Ends::of(&program, &[random(1, 9, 4), random(2, 9, 64)]);
    let shadow = Shadow::new();
    let settings = |peer: Peer| {
        let shadow = Arc::clone(&shadow);
        Settings {
            device: Arc::new(move || {
                let says = Outcome::Mismatch { command: 0 };
                let device: Box<dyn Device> = match peer {
                    Peer::Party(party) if party.index() == 1 => Box::new(Says(Cpu::detect(), says)),
                    _ => Box::new(Cpu::detect()),
                };
                let other = Box::new(Reference::default());
                Ok(Box::new(Shadowed::new(device, other, &shadow, peer.to_string())) as _)
            }),
            ..Settings::default()
        }
    };
    run_on(&program, &ends, &settings, &honest()).unwrap_err();
    let difference = shadow.verdict().unwrap_err();
    let want = Differs::Outcome {
        want: Outcome::Done,
        got: Outcome::Mismatch { command: 0 },
    };
    assert_eq!(difference.what, want);
    assert!(difference.commands.is_empty());
    let text = difference.to_string();
    assert!(text.starts_with("party 1 in pass 1, chunk "), "{text}");
    assert!(
        text.contains("a batch ended with Mismatch { command: 0 } on ")
            && text.ends_with(", and ends with Done by definition"),
        "{text}"
    );
}
