//! Stock of random transfers: two parties make it in one run, and take labels of inputs from it in others.

use std::fs;
use std::sync::Arc;

use veil_circuit::make;
use veil_device::{Cpu, Device, Reference};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_engine::Abort;
use veil_job::{Adversary, Audience, Holder, JobSpec, StockError, StockKind};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::yao::{TRANSFERS_OF_ROW, transfers_of};
use veil_protocol::{Options, Plan, PlanError, Stock, protocol};
use veil_session::PartyId;
use veil_testkit::sample::{against, among_four, between_two, everything, job, peer};
use veil_testkit::{Kind, Message, Outcome, Seed, World, flipped};

use crate::stock::{Pair, need, stock_error};

const GARBLER: u8 = 0;
const EVALUATOR: u8 = 1;

fn transfers(generations: u64) -> Pair {
    Pair::of(StockKind::Transfers).stocked(generations)
}

fn adder(rows: u64, holders: [Holder; 2], audience: Audience) -> JobSpec {
    let circuit = make("adder:9").expect("the catalogue has it");
    between_two(job(circuit, &[(rows, &holders)], &[audience]))
}

fn parties() -> [Holder; 2] {
    PartyId::TWO.map(Holder::Party)
}

/// Runs whose messages are recorded: one that makes transfers, and one that takes them.
pub(crate) fn recorded() -> [(&'static str, Outcome); 2] {
    let pair = Pair::of(StockKind::Transfers);
    let made = pair.making(2 * TRANSFERS_OF_ROW).seed(Seed(1)).run();
    let job = between_two(everything(Ring::Bits, &[13, 9]));
    let taken = pair.using(job, (16, 2)).seed(Seed(1)).run();
    [
        ("transfers for a stock", made),
        (
            "everything over bits, garbled, by transfers from a stock",
            taken,
        ),
    ]
}

#[test]
fn labels_of_inputs_come_from_a_stock() {
    let pair = transfers(1);
    let mut left = TRANSFERS_OF_ROW;
    assert_eq!(pair.left(), [vec![left], vec![left]]);
    let [garbler, evaluator] = parties();
    let all = [
        ([garbler, evaluator], 9),
        ([evaluator, garbler], 9),
        ([evaluator; 2], 18),
    ];
    for (rows, (holders, wires)) in [1, 5, 37].into_iter().zip(all) {
        for lanes in [1, 2] {
            let job = adder(rows, holders, Audience::Parties);
            let (world, recorded) = pair.recorded(job.clone(), (8, lanes));
            assert_eq!(need(&world), rows * wires);
            let outcome = world.run();
            crate::yao::costs(&world, outcome.assert_right());
            for party in &recorded {
                party.assert_given(rows * wires);
            }
            left -= rows * wires;
            assert_eq!(pair.left(), [vec![left], vec![left]]);
            for kind in [Kind::Points, Kind::Trees] {
                assert_eq!(outcome.of(kind).count(), 0);
            }
            // A bit to the garbler, a label back.
            let bytes = |kind| {
                outcome
                    .of(kind)
                    .map(|m: &Message| m.bytes.len() as u64)
                    .sum::<u64>()
            };
            assert_eq!(bytes(Kind::MaskedOffset), 16 * rows * wires);
            let of_chunks = (rows / 8) + (rows % 8).div_ceil(8);
            assert_eq!(bytes(Kind::Correction), wires * of_chunks);
        }
    }
}

/// Owners from outside, recipients, values of the job, both tables, both orders, chunks and blocks of different lengths, devices that differ.
#[test]
fn every_kind_of_input_comes_from_a_stock() {
    let pair = transfers(1);
    let job = between_two(everything(Ring::Bits, &[13, 9]));
    for (rows, lanes) in [(1, 1), (5, 2), (16, 1)] {
        let (world, recorded) = pair.recorded(job.clone(), (rows, lanes));
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
        for party in &recorded {
            party.assert_given(need(&world));
        }
    }
    pair.using(job.clone(), (8, 2)).run_apart().assert_right();
    let mixed = |first: bool| {
        pair.using(job.clone(), (8, 1))
            .devices(move |who| -> Box<dyn Device> {
                if (who == peer(GARBLER)) == first {
                    Box::new(Cpu::detect())
                } else {
                    Box::new(Reference::default())
                }
            })
    };
    mixed(true).run().assert_right();
    mixed(false).run().assert_right();
    let kernels = pair.using(job.clone(), (8, 1));
    let kernels =
        kernels.devices(|_| Box::new(Cuda::on(Box::new(Emulator::new(Order::Random(5))))));
    kernels.run().assert_right();
    let both = [0, 1].map(Holder::Owner);
    let outside = adder(7, both, Audience::Recipient(0));
    pair.using(outside, (4, 1)).run().assert_right();
}

/// Windows of inputs of a sequential circuit.
#[test]
fn cycles_take_transfers_of_their_own() {
    let pair = transfers(1);
    let mut windows = 0;
    for job in crate::authenticated_cycles::jobs() {
        let job = against(job, Adversary::SemiHonest);
        let Ok(plan) = Plan::stocked(Arc::new(job.clone()), Options::default(), Stock::Used) else {
            continue;
        };
        windows += u32::from(plan.cycles.is_some());
        let (world, recorded) = pair.recorded(job, (4, 1));
        let outcome = world.run();
        crate::yao::costs_in_all(&world, outcome.assert_right());
        for party in &recorded {
            party.assert_given(need(&world));
        }
    }
    assert!(windows > 0);
}

/// A run in which one of the two messages is changed goes wrong unnoticed, as semi-honest runs do, in the row that it is about alone.
#[test]
fn a_changed_message_of_the_inputs_changes_the_row_alone() {
    let [garbler, evaluator] = [GARBLER, EVALUATOR].map(peer);
    for (kind, from) in [(Kind::Correction, evaluator), (Kind::MaskedOffset, garbler)] {
        let pair = transfers(1);
        let job = adder(6, parties(), Audience::Party(PartyId::TWO[1]));
        let world = pair.using(job, (8, 1)).cheat(move |message: &Message| {
            if message.kind == Some(kind) && message.from == from {
                let mut bytes = message.bytes.clone();
                bytes[0] ^= 1;
                Fate::Replace(bytes)
            } else {
                Fate::Pass
            }
        });
        let outcome = world.run();
        assert!(outcome.aborts.is_empty(), "{kind:?}: {:?}", outcome.aborts);
        let got = outcome.rows(evaluator, 0).expect("it is the recipient");
        let expected = &outcome.values.expected(&outcome.plan.job)[0];
        assert_eq!(got[1..], expected[1..], "{kind:?}");
    }
}

/// Lies about marks, and a message of another length: each with its error, and nothing is opened.
#[test]
fn messages_that_no_party_sends_are_refused() {
    let lie = |pair: &Pair, from: u8, kind: Kind, bytes: fn(&[u8]) -> Vec<u8>| {
        let world = pair.using(adder(3, parties(), Audience::Parties), (8, 1));
        let cheated = world.cheat(move |message: &Message| {
            if message.kind == Some(kind) && message.from == peer(from) {
                Fate::Replace(bytes(&message.bytes))
            } else {
                Fate::Pass
            }
        });
        cheated.run()
    };
    for from in [GARBLER, EVALUATOR] {
        let to = 1 - from;
        let pair = transfers(1);
        let outcome = lie(&pair, from, Kind::StockMarks, |bytes| {
            vec![0xff; bytes.len()]
        });
        assert!(matches!(stock_error(&outcome, to), Some(StockError::Word)));
        let pair = transfers(1);
        let outcome = lie(&pair, from, Kind::StockMarks, |bytes| {
            let mut bytes = bytes.to_vec();
            bytes[8 + 40] ^= 1;
            bytes
        });
        assert!(matches!(
            stock_error(&outcome, to),
            Some(StockError::Forked { .. })
        ));
        assert!(pair.left()[usize::from(to)].is_empty(), "it is burnt");
        let pair = transfers(1);
        let outcome = lie(&pair, from, Kind::StockMarked, |_| vec![0]);
        assert!(matches!(outcome.aborts[&peer(to)], Abort::SetUp { .. }));
        assert!(pair.left()[usize::from(to)].is_empty(), "it is burnt");
    }
    for (kind, from) in [(Kind::Correction, EVALUATOR), (Kind::MaskedOffset, GARBLER)] {
        for cut in [true, false] {
            let pair = transfers(1);
            let outcome = if cut {
                lie(&pair, from, kind, |bytes| bytes[1..].to_vec())
            } else {
                lie(&pair, from, kind, |bytes| [bytes, &[0]].concat())
            };
            let abort = &outcome.aborts[&peer(1 - from)];
            assert!(
                matches!(abort, Abort::Link { .. } | Abort::Cheated { .. }),
                "{kind:?}: {abort:?}"
            );
            for (peer, seen) in &outcome.seen {
                assert!(
                    seen.rows(Ring::Bits, 0).is_none(),
                    "{peer} was given a result"
                );
            }
        }
    }
}

/// Every message while transfers are made: nothing is kept at the party that finds it, and the third failure within a day ends it.
#[test]
fn a_making_that_fails_leaves_nothing() {
    for kind in [
        Kind::BatchCorrection,
        Kind::BatchTransferFolds,
        Kind::BatchTransferChallenge,
    ] {
        let pair = Pair::of(StockKind::Transfers);
        for number in 1..=3 {
            let world = pair
                .making(2 * TRANSFERS_OF_ROW)
                .cheat(move |message: &Message| {
                    if message.kind == Some(kind) && message.at.frame.chunk == 2 {
                        Fate::Replace(flipped(&message.bytes))
                    } else {
                        Fate::Pass
                    }
                });
            let outcome = world.run();
            let abort = &outcome.aborts[&peer(GARBLER)];
            assert!(
                matches!(abort, Abort::Cheated { what, .. } if *what == "corrections of oblivious transfer"),
                "{kind:?}, {number}: {abort:?}"
            );
            assert!(pair.left().iter().all(Vec::is_empty));
        }
        let outcome = pair.making(1).run();
        assert!(matches!(
            stock_error(&outcome, GARBLER),
            Some(StockError::Failures { failures: 3 })
        ));
    }
}

/// T13: a party that is gone after any number of messages.
#[test]
fn parties_that_are_lost_anywhere_go_on_later() {
    let job = adder(3, parties(), Audience::Parties);
    for lost in [GARBLER, EVALUATOR] {
        let pair = transfers(1);
        for after in 0.. {
            if !pair.goes_on_after(&job, lost, after) {
                assert!(after > 6, "a party sends more than {after} messages");
                break;
            }
        }
    }
}

#[test]
fn a_run_that_needs_too_much_or_another_kind_begins_nothing() {
    let pair = transfers(1);
    let job = adder(8000, parties(), Audience::Parties);
    let (world, recorded) = pair.recorded(job, (64, 1));
    let want = need(&world);
    let outcome = world.run();
    let mut said = [0, 1]
        .into_iter()
        .filter_map(|party| stock_error(&outcome, party));
    let error = said.next().expect("one of them says why");
    let begins = format!("the run takes {want} transfers of stock, and no generation");
    assert!(error.to_string().starts_with(&begins), "{error}");
    for party in &recorded {
        party.assert_none_given();
    }
    drop((world, recorded));
    let all = [vec![TRANSFERS_OF_ROW], vec![TRANSFERS_OF_ROW]];
    assert_eq!(pair.left(), all);
    // Cells are asked for where there are transfers, and the other way around.
    let malicious = against(adder(3, parties(), Audience::Parties), Adversary::Malicious);
    let cells = pair.turned(StockKind::Cells);
    let outcome = cells.using(malicious, (8, 1)).run();
    let error = [0, 1]
        .into_iter()
        .find_map(|party| stock_error(&outcome, party));
    let none =
        |kind: &str| format!("the two parties have no stock of {kind} in common: this one has 0");
    let said = error.expect("one of them says why").to_string();
    assert!(said.starts_with(&none("cells")), "{said}");
    let pair = cells.turned(StockKind::Transfers);
    assert_eq!(pair.left(), all);
    let cells = Pair::with(1).turned(StockKind::Transfers);
    let outcome = cells
        .using(adder(3, parties(), Audience::Parties), (8, 1))
        .run();
    let error = [0, 1]
        .into_iter()
        .find_map(|party| stock_error(&outcome, party));
    let said = error.expect("one of them says why").to_string();
    assert!(said.starts_with(&none("transfers")), "{said}");
}

/// One party is set back; a file is changed; a file of another peer is there.
#[test]
fn stock_that_was_set_back_or_changed_is_not_used() {
    let job = adder(3, parties(), Audience::Parties);
    let pair = transfers(1);
    let marks = |pair: &Pair| {
        let files = fs::read_dir(pair.folder(1)).expect("a folder");
        let mut files = files.map(|file| file.expect("a file").path());
        files
            .find(|file| file.extension().is_some_and(|of| of == "marks"))
            .expect("marks")
    };
    let path = marks(&pair);
    let old = fs::read(&path).expect("a file");
    for _ in 0..2 {
        pair.using(job.clone(), (8, 1)).run().assert_right();
    }
    fs::write(&path, old).expect("a file");
    let outcome = pair.using(job.clone(), (8, 1)).run();
    let forked = |party| {
        matches!(
            stock_error(&outcome, party),
            Some(StockError::Forked { .. })
        )
    };
    assert!(forked(0) || forked(1), "{:?}", outcome.aborts);
    assert!(
        outcome
            .seen
            .values()
            .all(|seen| seen.rows(Ring::Bits, 0).is_none())
    );
    // A page that was changed: its run ends, and nothing is opened.
    for party in [GARBLER, EVALUATOR] {
        let pair = transfers(1);
        let files = fs::read_dir(pair.folder(party.into())).expect("a folder");
        let mut files = files.map(|file| file.expect("a file").path());
        let stock = files.find(|file| file.extension().is_some_and(|of| of == "stock"));
        let stock = stock.expect("a generation");
        let mut bytes = fs::read(&stock).expect("a file");
        bytes[4096 + 7] ^= 1;
        fs::write(&stock, bytes).expect("a file");
        let outcome = pair.using(job.clone(), (8, 1)).run();
        assert!(
            matches!(stock_error(&outcome, party), Some(StockError::Damaged { what, .. }) if what.starts_with("a page")),
            "{:?}",
            outcome.aborts
        );
        assert!(
            outcome
                .seen
                .values()
                .all(|seen| seen.rows(Ring::Bits, 0).is_none())
        );
    }
}

#[test]
fn plans_say_where_transfers_come_from() {
    let of = |job: JobSpec, stock| Plan::stocked(Arc::new(job), Options::default(), stock);
    let job = adder(3, parties(), Audience::Parties);
    let fresh = of(job.clone(), Stock::Fresh).expect("a plan");
    let used = of(job.clone(), Stock::Used).expect("a plan");
    assert_ne!(fresh.hash, used.hash);
    assert!(matches!(
        of(job.clone(), Stock::Made),
        Err(PlanError::Job(_))
    ));
    let own = adder(3, [parties()[0]; 2], Audience::Parties);
    assert!(matches!(of(own, Stock::Used), Err(PlanError::NothingTaken)));
    let four = among_four(everything(Ring::Bits, &[3]));
    assert!(matches!(of(four, Stock::Used), Err(PlanError::NoStock(_))));
    let used = Arc::new(used);
    let [garbler, evaluator] = [GARBLER, EVALUATOR].map(|me| protocol(Arc::clone(&used), peer(me)));
    for party in [&garbler, &evaluator] {
        assert!(party.transfers().is_none());
        let stock = party.stock().expect("it takes from a stock");
        assert_eq!(
            (stock.kind, stock.cells, stock.makes),
            (StockKind::Transfers, 27, false)
        );
    }
    assert!(garbler.own_offset().is_some() && evaluator.own_offset().is_none());
    assert!(
        garbler
            .stock()
            .is_some_and(|of| of.offset.is_some() && of.offset != garbler.own_offset())
    );
    assert!(evaluator.stock().is_some_and(|of| of.offset.is_none()));
    let making = of(transfers_of(["a", "b"].map(str::to_owned), 1), Stock::Made);
    let making = protocol(Arc::new(making.expect("a plan")), peer(GARBLER));
    assert!(making.transfers().is_some());
    let outcome = World::stocked(job, (8, 1), Stock::Used).run();
    assert!(matches!(outcome.aborts[&peer(0)], Abort::Missing(_)));
}
