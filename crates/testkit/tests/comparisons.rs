//! Rows that are put in order by comparisons, which are opened behind a shuffle.

use std::sync::{Arc, Mutex};

use veil_circuit::generate::precedes;
use veil_engine::Abort;
use veil_job::passes::{
    ColumnForm, ColumnId, MadeSpec, MoveKind, PassSpec, ProgramSpec, Take, passes_of_comparisons,
};
use veil_job::{Audience, Holder, Security};
use veil_link::tap::Fate;
use veil_operators::{Key, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::{Pass, PassProgram};
use veil_session::{PartyId, Peer};

use crate::common::programs::{
    CPU, Ends, Tap, builder, honest, parties, random, run, securities, sent,
};

/// A program that sorts a column by more bits than are sorted by digits, and opens it.
fn sorting(security: Security, rows: u32, bits: u32) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let keys = b.input(Holder::Owner(0), "key", rows, Sharing::Bits(bits));
    let order = b.sort(&Key::of(&[keys]));
    let sorted = b.apply(&order, &[keys]);
    b.open(&sorted, Audience::Recipient(0), "the keys in order");
    b.finish()
}

fn planned(spec: &ProgramSpec) -> Arc<PassProgram> {
    Arc::new(PassProgram::new(spec, Options::default()).unwrap())
}

/// Where all pairs are compared at once, what is sent says nothing of keys. Where they are not, it follows from what is opened, a permutation that the
/// keys have no part in: no two rows are equal, whatever the keys are.
#[test]
fn messages_are_as_many_and_as_long_whatever_the_keys_are() {
    let rows = 90;
    let sets = [
        vec![7; 90],
        random(5, rows, 20),
        (0..90u128).collect(),
        (0..90u128).rev().map(|row| row / 10).collect(),
    ];
    for security in securities() {
        let program = planned(&sorting(security, rows, 20));
        let mut seen = Vec::new();
        for keys in &sets {
            let ends = Ends::of(&program, std::slice::from_ref(keys));
            seen.push(sent(&program, &ends));
            let mut wanted = keys.clone();
            wanted.sort_unstable();
            assert_eq!(ends.opened(&program), [wanted]);
        }
        assert!(
            seen[0].len() > 100 && seen.windows(2).all(|two| two[0] == two[1]),
            "{security}"
        );
    }
}

/// Rows that are compared in many chunks, of which the last has fewer comparisons than room, by several lanes.
#[test]
fn comparisons_of_all_chunks_and_lanes_are_learnt() {
    for (rows, lanes) in [(2600, 1), (5000, 3)] {
        for security in securities() {
            let options = Options {
                lanes,
                chunk_rows: Some(512),
            };
            let spec = sorting(security, rows, 32);
            let program = Arc::new(PassProgram::new(&spec, options).unwrap());
            let mut keys = random(9, rows, 32);
            let ends = Ends::of(&program, std::slice::from_ref(&keys));
            run(&program, &ends, CPU, &honest()).unwrap();
            keys.sort_unstable();
            assert!(ends.opened(&program) == [keys], "{rows} rows, {security}");
        }
    }
}

/// A sum of products has the message of one: five for four bits, where each alone would be nine.
#[test]
fn a_comparison_has_fewer_messages_than_products() {
    let [security, ..] = securities();
    for (bits, rows, products, rounds) in [
        (32, 1 << 20, 64, 9),
        (64, 1 << 20, 106, 10),
        (20, 40, 30, 8),
    ] {
        let program = planned(&sorting(security, rows, bits));
        let pass = program
            .passes()
            .iter()
            .find(|pass| pass.compares().is_some());
        let plan = pass.and_then(Pass::rows).unwrap();
        let sent = plan.programs.iter().map(|program| program.products().0);
        assert_eq!(
            (sent.sum(), plan.layers.len() - 1),
            (products, rounds),
            "{bits} bits, {rows} rows"
        );
    }
}

/// Passes of comparisons that nothing is left for send nothing.
#[test]
fn what_is_in_order_is_compared_no_more() {
    for security in securities() {
        let program = planned(&sorting(security, 300, 20));
        let last = Arc::new(Mutex::new(0));
        let note = Arc::clone(&last);
        let compares = |pass: &usize| program.passes()[*pass].compares().is_some();
        let all: Vec<usize> = (0..program.passes().len()).filter(compares).collect();
        let behind = all[all.len() - 1] + 1;
        let tap: Tap = Arc::new(move |_, _, at, _| {
            let epoch = usize::from(at.frame.epoch);
            let mut last = note.lock().unwrap();
            if epoch < behind {
                *last = epoch.max(*last);
            }
            Fate::Pass
        });
        let keys = random(8, 300, 20);
        let ends = Ends::of(&program, &[keys]);
        run(&program, &ends, CPU, &tap).unwrap();
        let compared = *last.lock().unwrap() + 1 - all[0];
        let there = passes_of_comparisons(300) as usize;
        assert_eq!(all.len(), there);
        assert!((2..=there - 8).contains(&compared), "{compared} of {there}");
    }
}

/// Among four parties of whom one cheats, each of its messages in comparisons is found when it is wrong, before what follows from it is opened.
#[test]
fn a_lie_in_comparisons_among_four_opens_nothing() {
    let [.., security] = securities();
    let program = planned(&sorting(security, 30, 20));
    let keys = random(6, 30, 20);
    let liar = Peer::Party(PartyId::FOUR[1]);
    let first = program
        .passes()
        .iter()
        .position(|pass| pass.compares().is_some());
    let pass = first.unwrap() as u16;
    for number in 0.. {
        let ends = Ends::of(&program, std::slice::from_ref(&keys));
        let lied = Arc::new(Mutex::new((number, None)));
        let note = Arc::clone(&lied);
        let tap: Tap = Arc::new(move |from, to, at, bytes| {
            let mut lied = note.lock().unwrap();
            if from != liar || at.frame.epoch != pass || lied.1.is_some() || bytes.is_empty() {
                return Fate::Pass;
            }
            if lied.0 > 0 {
                lied.0 -= 1;
                return Fate::Pass;
            }
            lied.1 = Some(to);
            let mut bytes = bytes.to_vec();
            bytes[0] ^= 1;
            Fate::Replace(bytes)
        });
        let ran = run(&program, &ends, CPU, &tap);
        let Some(receiver) = lied.lock().unwrap().1 else {
            assert!(number > 20, "{number} messages");
            ran.unwrap();
            return;
        };
        match &ran.expect_err("a lie").0[&receiver] {
            Abort::Cheated { at, suspects, .. } => {
                assert_eq!(at.frame.epoch, pass);
                // Who breaks an agreement is known; of two that contradict each other both are named.
                assert!(suspects.contains(&liar) && suspects.len() <= 2);
            }
            other => panic!("message {number}: {other}"),
        }
        assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
    }
}

/// Among three semi-honest parties it is not promised that a wrong message is found. One that its receiver alone has makes shares differ, and what is opened of
/// them is compared.
#[test]
fn a_lie_in_comparisons_among_three_opens_nothing() {
    let [security, ..] = securities();
    let program = planned(&sorting(security, 90, 20));
    let compares = |pass: u16| program.passes()[usize::from(pass)].compares().is_some();
    let mut all = 0..program.passes().len() as u16;
    let pass = all.find(|pass| compares(*pass)).unwrap();
    let liar = Peer::Party(PartyId::THREE[0]);
    let ends = Ends::of(&program, &[random(6, 90, 20)]);
    let tap: Tap = Arc::new(move |from, _, at, bytes| {
        // Products, and not what is agreed or opened.
        if from != liar || at.frame.epoch != pass || bytes.len() < 512 {
            return Fate::Pass;
        }
        Fate::Replace(bytes.iter().map(|byte| byte ^ 0x55).collect())
    });
    let failure = run(&program, &ends, CPU, &tap).expect_err("a lie");
    let found =
        |abort: &Abort| matches!(abort, Abort::Cheated { at, .. } if at.frame.epoch == pass);
    assert!(failure.0.values().any(found), "{failure:?}");
    assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
}

/// A party that is gone before any pass, moves and comparisons among them: nothing is opened to a recipient, and those who wait for it name it.
#[test]
fn a_party_that_is_gone_before_any_pass_is_named() {
    let gone = Peer::Party(PartyId::THREE[1]);
    for security in securities() {
        let program = planned(&sorting(security, 60, 20));
        let keys = random(6, 60, 20);
        let last = program.passes().len() as u16;
        let compares = |pass: &u16| program.passes()[usize::from(*pass)].compares().is_some();
        // Of comparisons the first: behind it all is in order.
        let first = (0..last).find(compares).unwrap();
        for pass in (0..last).filter(|pass| !compares(pass) || *pass == first) {
            let ends = Ends::of(&program, std::slice::from_ref(&keys));
            // What it sends from this pass on is nothing that others take.
            let tap: Tap = Arc::new(move |from, _, at, _| {
                if from == gone && at.frame.epoch >= pass && at.frame.chunk > 0 {
                    Fate::Instead(Vec::new())
                } else {
                    Fate::Pass
                }
            });
            let failure = run(&program, &ends, CPU, &tap).expect_err("a party that is gone");
            let named = failure.0.values().any(|abort| match abort {
                Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => {
                    waits.iter().any(|wait| wait.peer == gone)
                }
                _ => false,
            });
            assert!(named, "{security}, pass {pass}: {failure:?}");
            assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
        }
    }
}

#[test]
fn rows_that_are_all_equal_keep_their_order() {
    for security in securities() {
        let mut b = builder(security, parties(security));
        let keys = b.input(Holder::Owner(0), "key", 500, Sharing::Bits(30));
        let row = b.input(Holder::Owner(0), "row", 500, Sharing::Bits(9));
        let order = b.sort(&Key::of(&[keys]));
        let sorted = b.apply(&order, &[row]);
        // What an order was applied to once it can be applied to again: nothing more is opened.
        let again = b.apply(&order, &[row, keys]);
        b.open(
            &[sorted[0], again[0], again[1]],
            Audience::Recipient(0),
            "rows",
        );
        let program = planned(&b.finish());
        let rows: Vec<u128> = (0..500).collect();
        let ends = Ends::of(&program, &[vec![5; 500], rows.clone()]);
        run(&program, &ends, CPU, &honest()).unwrap();
        assert_eq!(ends.opened(&program), [rows.clone(), rows, vec![5; 500]]);
    }
}

type Change = Box<dyn Fn(&mut ProgramSpec)>;

#[test]
fn comparisons_that_break_a_rule_are_refused() {
    let [security, ..] = securities();
    let good = sorting(security, 40, 20);
    assert!(PassProgram::new(&good, Options::default()).is_ok());
    let options = Options {
        chunk_rows: Some(12),
        ..Options::default()
    };
    let error = PassProgram::new(&good, options).unwrap_err().to_string();
    let told = "rows are compared in chunks of a multiple of eight";
    assert!(error.contains(told), "{error}");
    let compares = |pass: &PassSpec| matches!(pass, PassSpec::Compare { .. });
    let first = good.passes.iter().position(compares).unwrap();
    let there = passes_of_comparisons(40) as usize;
    let of_first = |change: fn(&mut PassSpec)| -> Change {
        Box::new(move |spec| change(&mut spec.passes[first]))
    };
    let of_move = |change: fn(&mut PassSpec)| -> Change {
        Box::new(move |spec| change(&mut spec.passes[first - 1]))
    };
    let cases: Vec<(&str, Change)> = vec![
        (
            "rows that are compared are numbered: no two are equal",
            of_move(|pass| {
                if let PassSpec::Move { takes, .. } = pass {
                    takes[0] = (Take::Of(ColumnId(0)).bits(0, 20), ColumnForm::Words(4));
                }
            }),
        ),
        (
            "every row has a number of its own, below its word",
            of_move(|pass| {
                if let PassSpec::Move { takes, .. } = pass
                    && let (Take::Numbered { bits, .. }, _) = &mut takes[0]
                {
                    *bits = 5;
                }
            }),
        ),
        (
            "comparisons open to the parties which row precedes the other, and nothing else",
            of_first(|pass| {
                if let PassSpec::Compare { job, .. } = pass {
                    // The words themselves, or parts of them that may be equal.
                    let job = Arc::make_mut(job);
                    let gates = job.circuit.gates.len() - 1;
                    job.circuit.outputs[0].wires = vec![veil_circuit::Wire(gates as u32 / 2)];
                }
            }),
        ),
        (
            "what is compared are words of the rows",
            of_first(|pass| {
                if let PassSpec::Compare { job, .. } = pass {
                    Arc::make_mut(job).circuit = precedes(&[3]);
                }
            }),
        ),
        (
            "comparisons open to the parties which row precedes the other, and nothing else",
            of_first(|pass| {
                if let PassSpec::Compare { job, .. } = pass {
                    Arc::make_mut(job).audiences = vec![Audience::Recipient(0)];
                }
            }),
        ),
        (
            "comparisons open to the parties which row precedes the other, and nothing else",
            of_first(|pass| {
                if let PassSpec::Compare { rows, .. } = pass {
                    *rows = 5000;
                }
            }),
        ),
        (
            "rows are compared that have moved by one permutation",
            of_first(|pass| {
                if let PassSpec::Compare { factors, .. } = pass {
                    *factors = ColumnId(0);
                }
            }),
        ),
        (
            "what is compared are words of the rows",
            of_first(|pass| {
                if let PassSpec::Compare { of, .. } = pass {
                    of[0] = ColumnId(900);
                }
            }),
        ),
        (
            "rows are compared that have moved by one permutation",
            of_first(|pass| {
                if let PassSpec::Compare { of, .. } = pass {
                    of[0] = ColumnId(0);
                }
            }),
        ),
        (
            "the last comparisons leave positions",
            Box::new(move |spec| {
                let last = first + there - 1;
                if let PassSpec::Compare { positions, .. } = &mut spec.passes[last] {
                    *positions = None;
                }
            }),
        ),
        (
            "the last comparisons leave positions",
            Box::new(move |spec| drop(spec.passes.remove(first))),
        ),
        (
            "comparisons follow each other until there are positions",
            Box::new(move |spec| {
                let other = spec.passes[0].clone();
                spec.passes.insert(first + 1, other);
            }),
        ),
        (
            "rows that are being put in order are not taken",
            Box::new(move |spec| {
                let PassSpec::Compare { of, .. } = &spec.passes[first] else {
                    unreachable!("comparisons")
                };
                let made = MadeSpec {
                    before: first as u32 + 1,
                    take: Take::Of(of[0]),
                    form: ColumnForm::Words(4),
                    rows: 40,
                    column: ColumnId(900),
                };
                spec.made.insert(0, made);
            }),
        ),
        (
            "a permutation opens one vector",
            Box::new(move |spec| {
                let again = spec.passes[first].clone();
                spec.passes.insert(first + there, again);
            }),
        ),
        (
            "rows are numbered as they move",
            Box::new(|spec| {
                for pass in &mut spec.passes {
                    if let PassSpec::Rows { takes, .. } = pass
                        && let Some(Some(take)) = takes.first_mut()
                    {
                        *take = Take::Numbered { of: None, bits: 20 };
                    }
                }
            }),
        ),
        (
            "rows are compared by passes that compare",
            of_move(|pass| {
                if let PassSpec::Move { takes, .. } = pass {
                    takes[0].0 = Take::Compared {
                        of: ColumnId(0),
                        second: true,
                    };
                }
            }),
        ),
        (
            "rows are compared that have moved by one permutation",
            // Opened positions say by which permutation rows have moved.
            Box::new(move |spec| {
                if let PassSpec::Move { kind, factors, .. } = &mut spec.passes[first - 1] {
                    assert_eq!(*kind, MoveKind::There);
                    *factors = None;
                }
            }),
        ),
    ];
    for (error, change) in cases {
        let mut spec = good.clone();
        change(&mut spec);
        let found = PassProgram::new(&spec, Options::default()).expect_err(error);
        assert!(found.to_string().ends_with(error), "{found}: {error}");
    }
}
