//! Generations of makings that ended early, generations without another half, and runs that wait for each other.

use std::thread;
use std::time::{Duration, Instant};

use veil_job::{StockError, StockSink, StockSource};
use veil_session::{Secret, SessionId};
use veil_store::stock::{Between, ListedState, NewStock, stocks};

use crate::common::stock::{CELLS, PAGE, Pair, begin, between, cells, key, make, put, session};

/// A making at a party that has begun, and of which the first of these pages have passed.
fn begun(pair: &Pair, party: usize, name: u8, pages: &[u64]) -> NewStock {
    let sink = pair.stocks(party).making(CELLS, None);
    sink.begin(&SessionId([name; 32]), &Secret::new([name; 16]))
        .unwrap();
    for page in pages {
        put(&sink, name, page * PAGE, PAGE).unwrap();
    }
    sink
}

#[test]
fn what_has_passed_at_both_is_kept_and_used() {
    let pair = Pair::new();
    // The other party is a page behind, and has put one out of order.
    let [one, other] = [
        begun(&pair, 0, 7, &[0, 1, 2]),
        begun(&pair, 1, 7, &[0, 1, 3]),
    ];
    assert_eq!([one.passed(), other.passed()], [3 * PAGE, 2 * PAGE]);
    for wrong in [0, PAGE + 1, 3 * PAGE] {
        let error = other.keep(wrong).unwrap_err().to_string();
        assert_eq!(
            error,
            "cells of stock are kept that have not passed their checks here"
        );
    }
    for sink in [&one, &other] {
        sink.keep(2 * PAGE).unwrap();
        // It is there, and nothing is kept twice.
        assert_eq!(sink.passed(), 0);
        assert!(sink.keep(PAGE).is_err());
    }
    assert_eq!(pair.left(), [[2 * PAGE], [2 * PAGE]]);
    let ends = session(&pair, 1, 2 * PAGE);
    for end in &ends {
        let given = cells(end, 7, 0, 2 * PAGE);
        assert!(given.into_iter().eq(0..2 * PAGE));
    }
    drop((ends, one, other));
    assert!(pair.left().iter().all(Vec::is_empty));
    let listed = stocks(pair.folders[0].path(), &key(0)).unwrap();
    let ListedState::There { cells, bytes, .. } = &listed[0].state else {
        panic!("{listed:?}")
    };
    assert_eq!((cells, *bytes), (&[2 * PAGE; 2], 4096 + 2 * 65552));
    // The next making removes what is used up.
    pair.make(8);
    assert_eq!(stocks(pair.folders[0].path(), &key(0)).unwrap().len(), 1);
}

#[test]
fn nothing_is_kept_after_a_failed_check_or_of_a_making_that_is_forgotten() {
    let pair = Pair::new();
    let failed = begun(&pair, 0, 7, &[0, 1]);
    failed.fail();
    assert_eq!(failed.passed(), 0);
    assert!(failed.keep(PAGE).is_err());
    drop(failed);
    drop(begun(&pair, 0, 8, &[0, 1]));
    assert!(pair.left().iter().all(Vec::is_empty));
    let listed = stocks(pair.folders[0].path(), &key(0)).unwrap();
    assert_eq!(listed.len(), 1);
    assert!(matches!(&listed[0].state, ListedState::Burnt { why, .. } if why == "check"));
}

/// A process that was killed in the middle of a page, and another party that could not be asked: both have what has passed at both, but for that page.
#[test]
fn what_a_killed_process_has_left_is_kept_by_agreement() {
    let pair = Pair::new();
    let [one, other] = [
        begun(&pair, 0, 7, &[0, 1, 2]),
        begun(&pair, 1, 7, &[0, 1, 2]),
    ];
    let [first, second] = [0, 1].map(|party| pair.stocks(party));
    assert_eq!(
        first.unfinished().unwrap(),
        [],
        "a run that goes on has not left it"
    );
    one.stay();
    drop(one);
    // As the system leaves it: the file is there, and a page is cut.
    let path = pair.file(1, "making");
    let bytes = std::fs::read(&path).unwrap();
    drop(other);
    assert!(!path.exists(), "a making that is given up leaves nothing");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let [[(name, passed)], [(same, fewer)]] =
        [&first, &second].map(|stocks| <[_; 1]>::try_from(stocks.unfinished().unwrap()).unwrap());
    assert_eq!((&name, passed, fewer), (&same, 3 * PAGE, 2 * PAGE));
    let refused = "cells of stock are kept that have not passed their checks here";
    for (name, wrong) in [
        (&name[..], 0),
        (&name, PAGE + 1),
        (&name, 3 * PAGE),
        ("../7", PAGE),
    ] {
        let error = second.keep_unfinished(name, wrong).unwrap_err();
        assert_eq!(error.to_string(), refused, "{wrong} of {name}");
    }
    for stocks in [&second, &first] {
        stocks.keep_unfinished(&name, 2 * PAGE).unwrap();
        assert_eq!(stocks.unfinished().unwrap(), []);
    }
    assert_eq!(pair.left(), [[2 * PAGE], [2 * PAGE]]);
    let ends = session(&pair, 1, 2 * PAGE);
    for end in &ends {
        assert!(cells(end, 7, 0, 2 * PAGE).into_iter().eq(0..2 * PAGE));
    }
}

/// What a run with another peer has left, or one after a failed check, is none of this one's.
#[test]
fn what_is_left_belongs_to_one_peer_and_has_passed() {
    let pair = Pair::new();
    let left = begun(&pair, 0, 7, &[0]);
    left.stay();
    drop(left);
    let other = Between {
        peer: [9; 32],
        ..between(0)
    };
    let other = pair.between(0, other);
    assert_eq!(other.unfinished().unwrap(), []);
    let sink = other.making(CELLS, None);
    sink.begin(&SessionId([8; 32]), &Secret::new([8; 16]))
        .unwrap();
    drop(sink);
    assert_eq!(pair.stocks(0).unfinished().unwrap().len(), 1);
    let failed = begun(&pair, 0, 9, &[0, 1]);
    assert_eq!(
        pair.stocks(0).unfinished().unwrap(),
        [],
        "the next making removes it"
    );
    failed.fail();
    failed.stay();
    drop(failed);
    assert_eq!(pair.stocks(0).unfinished().unwrap(), []);
}

/// A party that keeps another number than it has said has stock that is of no use.
#[test]
fn different_numbers_are_a_fork() {
    let pair = Pair::new();
    for (party, kept) in [(0, 2), (1, 1)] {
        begun(&pair, party, 7, &[0, 1]).keep(kept * PAGE).unwrap();
    }
    let ends = begin(&pair, 1, 5);
    for end in ends {
        assert!(matches!(end, Err(StockError::Forked { .. })));
    }
    assert!(pair.left().iter().all(Vec::is_empty));
}

#[test]
fn what_the_other_party_does_not_name_is_burnt() {
    let pair = Pair::new();
    pair.make(7);
    // An orphan: the other party was told of it too late, or has burnt it.
    make(&pair.stocks(0), 8).unwrap();
    let names = |party: usize| -> Vec<String> {
        let all = pair.stocks(party).generations().unwrap().into_iter();
        all.map(|(name, _)| name).collect()
    };
    assert_eq!([names(0).len(), names(1).len()], [2, 1]);
    assert_eq!(pair.stocks(0).burn_unnamed(&names(1)).unwrap(), CELLS);
    assert_eq!(names(0), names(1));
    assert_eq!(pair.stocks(0).burn_unnamed(&names(1)).unwrap(), 0);
    session(&pair, 1, 5);
    // Not while a run is about to take from it.
    let taking = pair.stocks(0).taking();
    taking.word().unwrap();
    let error = pair.stocks(0).burn_unnamed(&[]).unwrap_err();
    assert!(matches!(error, StockError::Busy));
}

#[test]
fn the_smallest_of_eight_makes_room() {
    let pair = Pair::new();
    for name in 1..=8 {
        pair.make(name);
        assert_eq!(
            pair.stocks(0).make_room().unwrap(),
            if name == 8 { CELLS } else { 0 }
        );
    }
    assert_eq!(pair.left().map(|left| left.len()), [7, 8]);
    pair.stocks(0).make_room().unwrap();
    make(&pair.stocks(0), 9).unwrap();
    assert_eq!(pair.left().map(|left| left.len()), [8, 8]);
}

#[test]
fn room_is_counted_in_pages() {
    let pair = Pair::new();
    let room = |most| pair.stocks(0).room(most, None).unwrap();
    assert_eq!([0, 4096 + 65551, 4096 + 65552].map(room), [0, 0, PAGE]);
    pair.make(7);
    let taken = 4096 + 4 * 65552;
    assert_eq!([taken, taken + 4096 + 65552].map(room), [0, PAGE]);
    // What will be burnt takes no room.
    assert_eq!(pair.stocks(0).room(4096 + 65552, Some(&[])).unwrap(), PAGE);
}

/// Runs that take at the same time share a page: it is there until both are over, in whichever order they end.
#[test]
fn a_page_of_two_runs_is_there_until_both_are_over() {
    for first_ends_first in [true, false] {
        let pair = Pair::new();
        pair.make(7);
        let [one, other] = session(&pair, 1, PAGE + 5);
        let [second, last] = session(&pair, 2, PAGE + 5);
        drop((other, last));
        let numbers = |from: u64| (from..from + PAGE + 5).collect::<Vec<_>>();
        let take_one = || assert_eq!(cells(&one, 7, 0, PAGE + 5), numbers(0));
        let take_second = || assert_eq!(cells(&second, 7, 0, PAGE + 5), numbers(PAGE + 5));
        let page = |number: usize| {
            let whole = std::fs::read(pair.file(0, "stock")).unwrap();
            whole[4096 + number * 65552..][..65552]
                .iter()
                .any(|byte| *byte != 0)
        };
        if first_ends_first {
            take_one();
            drop(one);
            assert_eq!([0, 1, 2].map(page), [false, true, true]);
            take_second();
            drop(second);
        } else {
            take_second();
            drop(second);
            assert_eq!([0, 1, 2].map(page), [true, true, true]);
            take_one();
            drop(one);
        }
        assert_eq!([0, 1, 2].map(page), [false, false, true]);
    }
}

/// A run waits for another one of its party to begin, as long as it is patient; one with another peer does not wait at all.
#[test]
fn runs_wait_for_each_other_to_begin() {
    let pair = Pair::new();
    pair.make(7);
    let first = pair.stocks(0).taking();
    first.word().unwrap();
    let second = pair.stocks(0).taking().patient(Duration::from_millis(60));
    let start = Instant::now();
    assert!(matches!(second.word(), Err(StockError::Busy)));
    assert!(start.elapsed() >= Duration::from_millis(60));
    thread::scope(|scope| {
        scope.spawn(|| {
            let patient = pair.stocks(0).taking().patient(Duration::from_secs(60));
            patient.word().unwrap();
        });
        thread::sleep(Duration::from_millis(50));
        drop(first);
    });
    let held = pair.stocks(0).taking();
    held.word().unwrap();
    let other = veil_store::stock::Between {
        peer: [0xc; 32],
        ..crate::common::stock::between(0)
    };
    pair.between(0, other).taking().word().unwrap();
}
