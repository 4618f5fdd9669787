//! One participant of a program of passes is recorded on one device and replayed alone on another.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veil_device::record::{Damage, Recording, ReplayError, Tape, replay};
use veil_device::{Cpu, Device, Lifting, Op, Reference};
use veil_engine::Settings;
use veil_job::Security;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::{PartyId, Peer};
use veil_testkit::{Erred, Seed, Slip};

use crate::common::programs::{
    CPU, Ends, Factory, REFERENCE, honest, parties, proving, random, run_on, securities, sorting,
};

/// The program, and the records of all devices of `who`.
fn recorded(
    security: Security,
    (rows, bits, lanes): (u32, u32, u16),
    who: Peer,
    make: Factory,
) -> (Arc<PassProgram>, Vec<Vec<u8>>) {
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let spec = sorting(security, rows, bits);
    let program = Arc::new(PassProgram::new(&spec, options).unwrap());
    let ends = Ends::of(&program, &[random(1, rows, bits), random(2, rows, 64)]);
    let tapes: Arc<Mutex<Vec<Tape>>> = Arc::default();
    let settings = |peer: Peer| {
        let tapes = Arc::clone(&tapes);
        Settings {
            timeout: Duration::from_secs(20),
            device: Arc::new(move || {
                if peer != who {
                    return Ok(CPU());
                }
                let tape = Tape::memory();
                tapes.lock().unwrap().push(tape.clone());
                Ok(Box::new(Recording::new(make(), tape)) as Box<dyn Device>)
            }),
            ..Settings::default()
        }
    };
    run_on(&program, &ends, &settings, &honest()).unwrap();
    let tapes = tapes.lock().unwrap();
    let records = tapes.iter().map(|tape| tape.finish().unwrap());
    (program, records.collect())
}

#[test]
fn every_role_replays_on_the_other_device() {
    for security in securities().into_iter().chain([proving()]) {
        let last = parties(security) as u8 - 1;
        for who in [
            Peer::Party(PartyId::FOUR[0]),
            Peer::Party(PartyId::FOUR[usize::from(last)]),
            Peer::Owner(0),
            Peer::Recipient(0),
        ] {
            for (size, make, other) in [
                ((40, 4, 2), CPU, REFERENCE),
                ((9, 20, 1), CPU, REFERENCE),
                ((40, 4, 1), REFERENCE, CPU),
            ] {
                let (program, records) = recorded(security, size, who, make);
                let mut passes = BTreeSet::new();
                for record in &records {
                    let replayed = replay(&record[..], &mut *other()).unwrap();
                    assert_eq!(replayed.recorded_on, make().name());
                    passes.extend(replayed.passes);
                }
                let all = program.passes().len() as u16;
                match who {
                    // But for comparisons that were not needed any more.
                    Peer::Party(_) => {
                        let compares = |pass: u16| program.passes()[usize::from(pass)].compares();
                        let missing = (0..all).filter(|pass| !passes.contains(pass));
                        assert!(missing.map(compares).all(|of| of.is_some()), "{passes:?}");
                        assert!(records.len() > 2, "{}", records.len());
                    }
                    Peer::Owner(_) => assert_eq!(passes.first(), Some(&0)),
                    Peer::Recipient(_) => assert_eq!(passes.last(), Some(&(all - 1))),
                }
            }
        }
    }
}

/// In which commands a device errs.
type Slips = fn(&Op) -> bool;

/// A device that errs in a later pass is found by the record alone, which names pass and command.
#[test]
fn an_error_in_a_later_pass_is_named() {
    let who = Peer::Party(PartyId::FOUR[1]);
    let kinds: [(Slips, &str); 3] = [
        (|op| matches!(op, Op::Permute { .. }), "permute"),
        (
            |op| matches!(op, Op::Lifting(Lifting::Turn | Lifting::Terms { .. })),
            "a step of lifts",
        ),
        (|op| matches!(op, Op::Rank(_)), "rank"),
    ];
    let mut named = BTreeSet::new();
    for security in securities() {
        let (program, records) = recorded(security, (40, 4, 1), who, CPU);
        for (slips, name) in kinds {
            for pass in 1..program.passes().len() as u16 {
                for record in &records {
                    let erred = Erred::default();
                    let mut wrong = Slip::new(Box::new(Cpu::detect()), pass, slips, &erred);
                    let played = replay(&record[..], &mut wrong);
                    let Some((frame, _)) = *erred.lock().unwrap() else {
                        played.unwrap();
                        continue;
                    };
                    let difference = match played {
                        Err(ReplayError::Differs(difference)) => difference,
                        // The host has not looked at what it made, nor at what was made of it: a message that another party sends.
                        Ok(_) => continue,
                        Err(other) => panic!("{security}, pass {pass}: {other}"),
                    };
                    assert_eq!(difference.frame, frame);
                    let text = difference.to_string();
                    // A command that wrote what the host looks at: the one that erred, or one that took what that had made.
                    let (_, _, called) = difference.command.unwrap();
                    if called == name {
                        named.insert(name);
                    }
                    let place = format!("chunk {} of pass {} (lane", frame.chunk, pass + 1);
                    assert!(text.contains(&place), "{text}");
                }
            }
        }
    }
    assert_eq!(named.len(), kinds.len(), "{named:?}");
}

#[test]
fn a_damaged_record_is_refused_wherever_it_is_damaged() {
    for security in securities() {
        let who = Peer::Party(PartyId::FOUR[2]);
        let (_, records) = recorded(security, (5, 2, 1), who, CPU);
        let mut numbers = Seed(9).numbers("damage");
        for record in &records {
            let played = replay(&record[..], &mut Reference::default()).unwrap();
            for _ in 0..100 {
                let at = numbers.next_u128() as usize % record.len();
                let mut damaged = record.clone();
                damaged[at] ^= 1 << (at % 8);
                let error = replay(&damaged[..], &mut Reference::default()).unwrap_err();
                let ReplayError::Damaged(damage) = &error else {
                    panic!("{at}: {error}");
                };
                let text = damage.to_string();
                let expected = match damage {
                    Damage::Stranger => "this is no device record of version 2".to_owned(),
                    Damage::Cut { step } => format!(
                        "the record ends within step {step}: it was cut off, or the run was"
                    ),
                    Damage::Changed { step } => {
                        assert!(*step <= played.steps, "{at}");
                        format!("step {step} of the record was changed after it was written")
                    }
                    other => panic!("{at}: {other}"),
                };
                assert_eq!(text, expected);
                let cut = replay(&record[..at], &mut Reference::default()).unwrap_err();
                let cut = matches!(
                    cut,
                    ReplayError::Damaged(Damage::Cut { .. } | Damage::Stranger)
                );
                assert!(cut, "{at}");
            }
        }
    }
}
