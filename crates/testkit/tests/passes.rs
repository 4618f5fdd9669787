//! Programs of passes: rows that are shuffled and sorted among three parties and among four, against the same in the clear.

use std::sync::{Arc, Mutex};

use veil_engine::Abort;
use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, ProgramSpec, Take};
use veil_job::{Adversary, Audience, Holder, Security};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_operators::{Key, Sharing};
use veil_protocol::passes::{Pass, PassProgram};
use veil_protocol::{Options, Task};
use veil_session::{Channel, PartyId, Peer};

use crate::common::programs::{
    CPU, Ends, Factory, REFERENCE, Tap, builder, opened, parties, random, run, securities, sent,
};

#[test]
fn shuffled_rows_are_the_rows_in_another_order() {
    let rows = 600;
    let columns = [random(1, rows, 64), random(2, rows, 9)];
    for security in securities() {
        let mut b = builder(security, parties(security));
        let to = Audience::Recipient(0);
        let integers = b.input(Holder::Owner(0), "x", rows, Sharing::Ring(Ring::Z64));
        let bits = b.input(Holder::Owner(0), "y", rows, Sharing::Bits(9));
        let once = b.shuffle(&[integers, bits]);
        let twice = b.shuffle(&once);
        b.open(&twice, to, "the rows");
        let spec = b.finish();
        for device in [REFERENCE, CPU] {
            let found = opened(&spec, &columns, device, 1);
            let pairs = |of: &[Vec<u128>]| -> Vec<(u128, u128)> {
                of[0].iter().copied().zip(of[1].iter().copied()).collect()
            };
            let (mut before, mut after) = (pairs(&columns), pairs(&found));
            assert_ne!(before, after);
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after);
        }
    }
}

#[test]
fn sorted_rows_are_sorted_and_equal_keys_keep_their_order() {
    for (rows, bits, lanes) in [
        (1, 5, 1),
        (2, 1, 1),
        (700, 4, 1),
        (513, 8, 2),
        (20_000, 6, 3),
        // By comparisons.
        (1, 13, 1),
        (2, 40, 1),
        (90, 128, 1),
        (700, 13, 1),
        (700, 125, 2),
    ] {
        let columns = [random(3, rows, bits), (0..rows.into()).collect()];
        let mut wanted: Vec<(u128, u128)> = columns[0]
            .iter()
            .copied()
            .zip(columns[1].iter().copied())
            .collect();
        wanted.sort_unstable();
        for security in securities() {
            let mut b = builder(security, parties(security));
            let keys = b.input(Holder::Owner(0), "key", rows, Sharing::Bits(bits));
            let payload = b.input(Holder::Owner(0), "row", rows, Sharing::Ring(Ring::Z64));
            let order = b.sort(&Key::of(&[keys]));
            let sorted = b.apply(&order, &[keys, payload]);
            b.open(&sorted, Audience::Recipient(0), "the rows in order");
            let spec = b.finish();
            // A batch of comparisons takes the reference seconds.
            let devices: &[Factory] = if rows < 1000 && bits <= 12 || rows < 10 {
                &[REFERENCE, CPU]
            } else {
                &[CPU]
            };
            for device in devices {
                let found = opened(&spec, &columns, *device, lanes);
                let found: Vec<(u128, u128)> = found[0]
                    .iter()
                    .copied()
                    .zip(found[1].iter().copied())
                    .collect();
                assert!(found == wanted, "{rows} rows, {bits} bits, {security}");
            }
        }
    }
}

/// A program that sorts a column and opens it.
fn sorting(security: Security, rows: u32, bits: u32) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let keys = b.input(Holder::Owner(0), "key", rows, Sharing::Bits(bits));
    let order = b.sort(&Key::of(&[keys]));
    let sorted = b.apply(&order, &[keys]);
    b.open(&sorted, Audience::Recipient(0), "the keys in order");
    b.finish()
}

/// What is sent, how long it is, and in which order, says nothing of keys: all equal, all different, and sorted ones take the same messages.
#[test]
fn messages_are_as_many_and_as_long_whatever_the_keys_are() {
    let rows = 600;
    let sets = [
        vec![7; 600],
        random(5, rows, 6),
        (0..600u128).map(|row| row / 10).collect(),
    ];
    for security in securities() {
        let spec = sorting(security, rows, 6);
        let program = Arc::new(PassProgram::new(&spec, Options::default()).unwrap());
        let mut seen = Vec::new();
        for keys in &sets {
            let ends = Ends::of(&program, std::slice::from_ref(keys));
            seen.push(sent(&program, &ends));
        }
        assert!(
            seen[0].len() > 100 && seen.windows(2).all(|two| two[0] == two[1]),
            "{security}"
        );
    }
}

/// Among four parties of whom one cheats, a wrong message of any pass before the opening ends the run at its receiver, which names the sender; recipients
/// have received nothing then.
#[test]
fn a_lie_in_any_pass_among_four_opens_nothing() {
    let [.., security] = securities();
    let spec = sorting(security, 40, 4);
    let program = Arc::new(PassProgram::new(&spec, Options::default()).unwrap());
    let keys = random(6, 40, 4);
    let last = program.passes().len() as u16 - 1;
    let liar = Peer::Party(PartyId::FOUR[2]);
    let moves = |pass: u16| program.passes()[usize::from(pass)].rows().is_none();
    // Of a move each of its first messages, elements and codes.
    let all =
        (1..last).flat_map(|pass| (0..if moves(pass) { 3 } else { 1 }).map(move |k| (pass, k)));
    for (pass, number) in all.collect::<Vec<_>>() {
        let ends = Ends::of(&program, std::slice::from_ref(&keys));
        let lied = Arc::new(Mutex::new(None));
        let note = Arc::clone(&lied);
        let before = Mutex::new(number);
        let tap: Tap = Arc::new(move |from, to, at, bytes| {
            let mut lied = note.lock().unwrap();
            if from != liar || at.frame.epoch != pass || lied.is_some() {
                return Fate::Pass;
            }
            let mut before = before.lock().unwrap();
            if *before > 0 {
                *before -= 1;
                return Fate::Pass;
            }
            *lied = Some(to);
            let mut bytes = bytes.to_vec();
            bytes[0] ^= 1;
            Fate::Replace(bytes)
        });
        let failure = run(&program, &ends, CPU, &tap).expect_err("a lie");
        let receiver = lied
            .lock()
            .unwrap()
            .expect("party 2 sends something in every pass");
        match &failure.0[&receiver] {
            Abort::Cheated { at, suspects, .. } => {
                assert_eq!(at.frame.epoch, pass);
                assert!(
                    suspects.contains(&liar) && suspects.len() == 2,
                    "pass {pass}"
                );
            }
            other => panic!("pass {pass}: {other}"),
        }
        assert!(
            ends.seen.values().all(|seen| seen.slices().is_empty()),
            "pass {pass}"
        );
    }
}

/// A party that sends nothing in some pass is waited for until the time is over, and is named by those who wait.
#[test]
fn a_party_that_is_silent_in_a_move_is_named() {
    let [security, ..] = securities();
    let spec = sorting(security, 40, 4);
    let program = Arc::new(PassProgram::new(&spec, Options::default()).unwrap());
    let ends = Ends::of(&program, &[random(6, 40, 4)]);
    let silent = Peer::Party(PartyId::THREE[0]);
    let moves = program
        .passes()
        .iter()
        .position(|pass| pass.rows().is_none())
        .unwrap() as u16;
    let tap: Tap = Arc::new(move |from, _, at, _| {
        if from == silent && at.frame.epoch >= moves {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let failure = run(&program, &ends, CPU, &tap).expect_err("a party that is silent");
    let named = failure.0.values().any(|abort| match abort {
        // The first that gives up tells the others, and they say what they have waited for.
        Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => {
            waits.iter().any(|wait| wait.peer == silent)
        }
        _ => false,
    });
    assert!(named, "{failure:?}");
    assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
}

type Change = Box<dyn Fn(&mut ProgramSpec)>;

#[test]
fn programs_that_break_a_rule_are_refused() {
    let [security, ..] = securities();
    let good = sorting(security, 40, 4);
    assert!(PassProgram::new(&good, Options::default()).is_ok());
    let first = |of: MoveKind| {
        let is = |pass: &PassSpec| matches!(pass, PassSpec::Move { kind, .. } if *kind == of);
        good.passes.iter().position(is).expect("a pass of a sort")
    };
    let (moved, ranked) = (first(MoveKind::Open), first(MoveKind::Rank));
    let of_move = |change: fn(&mut PassSpec)| -> Change {
        Box::new(move |spec| change(&mut spec.passes[moved]))
    };
    let cases: Vec<(&str, Change)> = vec![
        (
            "a program has 1 to 32768 passes, and this one has 0",
            Box::new(|spec| spec.passes.clear()),
        ),
        (
            "pass 0 of the program: a column is taken after the pass that leaves it",
            Box::new(|spec| drop(spec.passes.remove(0))),
        ),
        (
            "a column is left once",
            of_move(|pass| {
                if let PassSpec::Move { leaves, .. } = pass {
                    leaves[1] = Some(ColumnId(0));
                }
            }),
        ),
        (
            "columns have numbers from 0 on, without gaps",
            of_move(|pass| {
                if let PassSpec::Move { leaves, .. } = pass {
                    leaves[1] = Some(ColumnId(u32::MAX));
                }
            }),
        ),
        (
            "a move leaves what it takes, but for what it opens",
            of_move(|pass| {
                if let PassSpec::Move { leaves, .. } = pass {
                    leaves[0] = Some(ColumnId(900));
                }
            }),
        ),
        (
            "an opening leaves positions, and a move that opens nothing leaves none",
            of_move(|pass| {
                if let PassSpec::Move { kind, .. } = pass {
                    *kind = MoveKind::There;
                }
            }),
        ),
        (
            "a column is taken in its own form",
            of_move(|pass| {
                if let PassSpec::Move { takes, .. } = pass {
                    takes[0].1 = ColumnForm::Ring(Ring::Z64);
                }
            }),
        ),
        (
            "bits are those that the words have",
            of_move(|pass| {
                if let PassSpec::Move { takes, .. } = pass {
                    takes[1].0 = Take::Of(ColumnId(0)).bits(7, 2);
                }
            }),
        ),
        (
            "a column that is taken as it is has the pass's rows",
            of_move(|pass| {
                if let PassSpec::Move { rows, .. } = pass {
                    *rows = 39;
                }
            }),
        ),
        (
            "a column is taken after the pass that leaves it",
            Box::new(move |spec| spec.passes.swap(moved, moved + 1)),
        ),
        (
            "rows go along or back by factors that others have moved by, in the same roles",
            Box::new(|spec| {
                for pass in &mut spec.passes {
                    if let PassSpec::Move {
                        kind: MoveKind::Back,
                        rotation,
                        ..
                    } = pass
                    {
                        *rotation += 1;
                    }
                }
            }),
        ),
        (
            "a move leaves what it takes, but for what it opens",
            Box::new(move |spec| {
                if let PassSpec::Move { leaves, .. } = &mut spec.passes[ranked] {
                    leaves.push(Some(ColumnId(900)));
                }
            }),
        ),
        (
            "positions are found of indicators modulo 2^32, and of nothing else",
            Box::new(move |spec| {
                if let PassSpec::Move { factors, .. } = &mut spec.passes[ranked] {
                    *factors = Some(ColumnId(0));
                }
            }),
        ),
        (
            "positions are found of indicators modulo 2^32, and of nothing else",
            Box::new(move |spec| {
                if let PassSpec::Move { takes, .. } = &mut spec.passes[ranked] {
                    let key = (Take::Of(ColumnId(0)), ColumnForm::Words(1));
                    takes.push(key);
                }
            }),
        ),
        (
            "the first pass and the last are of rows",
            Box::new(|spec| drop(spec.passes.pop())),
        ),
    ];
    for (error, change) in cases {
        let mut spec = good.clone();
        change(&mut spec);
        let found = PassProgram::new(&spec, Options::default()).expect_err(error);
        assert!(found.to_string().ends_with(error), "{found}: {error}");
    }
    // Nor does a run that may begin again without a party.
    let guaranteed = Security {
        adversary: Adversary::Malicious,
        delivery: veil_job::Delivery::Guaranteed,
        ..Security::among(4)
    };
    assert!(PassProgram::new(&sorting(guaranteed, 40, 4), Options::default()).is_err());
}

/// Programs that differ in one number have different hashes, and one of a single pass has its plan's.
#[test]
fn hashes_tell_programs_apart() {
    let [security, ..] = securities();
    let hash = |spec: &ProgramSpec| PassProgram::new(spec, Options::default()).unwrap().hash();
    let good = sorting(security, 40, 4);
    let mut all = vec![
        hash(&good),
        hash(&sorting(security, 41, 4)),
        hash(&sorting(security, 40, 5)),
    ];
    let mut other = good.clone();
    let turned = other.passes.iter_mut().rev().find_map(|pass| match pass {
        PassSpec::Move { rotation, .. } | PassSpec::Product { rotation, .. } => Some(rotation),
        PassSpec::Rows { .. } | PassSpec::Compare { .. } => None,
    });
    *turned.unwrap() += 1;
    all.push(hash(&other));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
}

/// The products of a position are one: an element for each row from each of three parties, and six from four, with a code of each; and what is sent is what the
/// formula says.
#[test]
fn a_position_is_one_product() {
    for security in securities() {
        let spec = sorting(security, 600, 4);
        let program = Arc::new(PassProgram::new(&spec, Options::default()).unwrap());
        let ranks =
            |pass: &Pass| matches!(pass, Pass::Move { plan, .. } if plan.kind == MoveKind::Rank);
        let passes = program.passes().iter().enumerate();
        let ranks: Vec<(usize, &Pass)> = passes.filter(|(_, pass)| ranks(pass)).collect();
        assert_eq!(ranks.len(), 2);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&sent);
        let tap: Tap = Arc::new(move |from, _, at, bytes| {
            note.lock().unwrap().push((from, at, bytes.len() as u64));
            Fate::Pass
        });
        let ends = Ends::of(&program, &[random(6, 600, 4)]);
        run(&program, &ends, CPU, &tap).unwrap();
        let sent = sent.lock().unwrap();
        for (number, pass) in ranks {
            let (mut elements, mut codes) = (0, 0);
            for party in program.first().parties().iter().copied().map(Peer::Party) {
                let of = |(from, at, _): &&(Peer, Channel, u64)| {
                    *from == party && usize::from(at.frame.epoch) == number
                };
                let bytes: Vec<u64> = sent.iter().filter(of).map(|(.., bytes)| *bytes).collect();
                let frame = pass.chunk(0).unwrap().frame;
                let cost = pass.protocol(party).cost(Task::Layers, frame);
                let found = (bytes.len() as u64, bytes.iter().sum());
                assert_eq!(found, (cost.messages, cost.bytes), "{security}: {party:?}");
                elements += bytes.iter().filter(|bytes| **bytes == 4 * 600).count();
                codes += bytes.iter().filter(|bytes| **bytes == 16).count();
            }
            let want = match (parties(security), security.adversary) {
                (3, _) => (3, 0),
                (_, Adversary::Malicious) => (6, 6),
                _ => (6, 0),
            };
            assert_eq!((elements, codes), want, "{security}");
        }
    }
}
