//! Files of stock: damage, files of others, what is complete and what is not, budgets.

use std::fs;
use std::path::Path;

use veil_job::{StockError, StockSink, StockSource};
use veil_session::{Secret, SessionId};
use veil_store::StoreKey;
use veil_store::stock::{Between, ListedState, Stocks, remove_stock, stocks};

use crate::common::stock::{CELLS, PAGE, Pair, begin, between, cells, key, make, put, session};

/// T12: every byte of marks and header, and some of each page.
#[test]
fn damage_is_found() {
    let pair = Pair::new();
    pair.make(7);
    session(&pair, 1, 4);
    let (file, marks) = (pair.file(0, "stock"), pair.file(0, "marks"));
    for path in [&marks, &file] {
        let whole = fs::read(path).unwrap();
        let header = whole.len().min(4096);
        let places = (0..header).step_by(if path == &file { 13 } else { 1 });
        let fields = [0, 32, 64, 96, 128, 160, 161, 168, 176, 184, 200];
        for at in places.chain(fields).filter(|at| *at < header) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(path, &changed).unwrap();
            let error = pair.stocks(0).left().unwrap_err();
            assert!(matches!(error, StockError::Damaged { .. }), "byte {at}");
        }
        for length in [0, 100, header - 1, whole.len() - 1] {
            fs::write(path, &whole[..length]).unwrap();
            let error = pair.stocks(0).left().unwrap_err();
            assert!(
                matches!(error, StockError::Damaged { .. }),
                "{length} bytes"
            );
        }
        fs::write(path, [&whole[..], &[0]].concat()).unwrap();
        let longer = pair.stocks(0).left();
        assert!(path == &marks || matches!(longer, Err(StockError::Damaged { .. })));
        fs::write(path, &whole).unwrap();
    }
    // Pages: a bit, a tag, another page of the same file.
    let whole = fs::read(&file).unwrap();
    let page = |number: usize| 4096 + number * 65552..4096 + (number + 1) * 65552;
    let mut swapped = whole.clone();
    swapped[page(0)].copy_from_slice(&whole[page(1)]);
    let mut cases = vec![swapped];
    for at in [4096, 4096 + 65535, 4096 + 65536, 4096 + 65551] {
        let mut changed = whole.clone();
        changed[at] ^= 0x80;
        cases.push(changed);
    }
    for (number, changed) in (2..).zip(cases) {
        fs::write(&file, &changed).unwrap();
        let [end, _] = session(&pair, number, 3);
        let mut given = false;
        let taken = end.take(0, 3, &mut |_, _| given = true);
        assert!(matches!(taken, Err(StockError::Damaged { .. })) && !given);
        drop(end);
    }
    // What cannot be read is listed, and can be removed.
    fs::write(&file, [0; 5000]).unwrap();
    let folder = pair.folders[0].path();
    let [one] = &stocks(folder, &key(0)).unwrap()[..] else {
        panic!("one generation")
    };
    assert!(matches!(one.state, ListedState::Damaged(_)));
    assert!(remove_stock(folder, &key(0), &one.generation).unwrap());
    assert!(stocks(folder, &key(0)).unwrap().is_empty());
    assert!(!remove_stock(folder, &key(0), &one.generation).unwrap());
    assert!(matches!(
        begin(&pair, 9, 1)[0],
        Err(StockError::NoneInCommon {
            own: 0,
            theirs: 1,
            ..
        })
    ));
}

/// T12: pages and marks of another generation, and files of another peer, role, parameter and party.
#[test]
fn what_is_of_others_is_not_used() {
    let pair = Pair::new();
    pair.make(7);
    let (file, marks) = (pair.file(0, "stock"), pair.file(0, "marks"));
    let elsewhere = Pair::new();
    elsewhere.make(8);
    let [other, other_marks] = ["stock", "marks"].map(|kind| elsewhere.file(0, kind));
    let mut mixed = fs::read(&file).unwrap();
    let theirs = fs::read(&other).unwrap();
    mixed[4096..4096 + 65552].copy_from_slice(&theirs[4096..4096 + 65552]);
    let own = fs::read(&file).unwrap();
    fs::write(&file, &mixed).unwrap();
    let [end, _] = session(&pair, 1, 3);
    let taken = end.take(0, 3, &mut |_, _| panic!("not of this generation"));
    assert!(matches!(taken, Err(StockError::Damaged { .. })));
    drop(end);
    fs::write(&file, &own).unwrap();
    let own_marks = fs::read(&marks).unwrap();
    fs::copy(&other_marks, &marks).unwrap();
    assert!(matches!(
        pair.stocks(0).left(),
        Err(StockError::Damaged { .. })
    ));
    fs::write(&marks, own_marks).unwrap();
    let base = between(0);
    for other in [
        Between {
            peer: [0xc; 32],
            ..base
        },
        Between {
            me: [0xc; 32],
            ..base
        },
        Between {
            garbles: false,
            ..base
        },
        Between {
            statistical: 80,
            ..base
        },
    ] {
        assert!(pair.between(0, other).left().unwrap().is_empty());
    }
    // A greater parameter serves where a smaller one is asked for.
    let weaker = Between {
        statistical: 39,
        ..base
    };
    assert_eq!(pair.between(0, weaker).left().unwrap(), [CELLS - 3]);
    let folder = pair.folders[0].path();
    let another = Stocks::open(folder, &StoreKey::derive(&[9; 32]), base).unwrap();
    assert!(matches!(another.left(), Err(StockError::Damaged { .. })));
}

#[test]
fn a_generation_is_complete_or_not_there() {
    let pair = Pair::new();
    let stocks = pair.stocks(0);
    let sink = stocks.making(CELLS, None);
    assert!(put(&sink, 7, 0, PAGE).is_err());
    sink.begin(&SessionId([7; 32]), &Secret::new([7; 16]))
        .unwrap();
    put(&sink, 7, 0, PAGE).unwrap();
    // A page twice, half a page, a page too many.
    assert!(put(&sink, 7, 0, PAGE).is_err());
    assert!(put(&sink, 7, PAGE, PAGE / 2).is_err());
    assert!(put(&sink, 7, PAGE / 2, PAGE).is_err());
    assert!(put(&sink, 7, CELLS, PAGE).is_err());
    assert!(sink.finish().is_err());
    assert!(stocks.left().unwrap().is_empty());
    // A run that is ended leaves a file, which the next one removes; that of a run that goes on it leaves alone.
    let second = stocks.making(CELLS, None);
    second
        .begin(&SessionId([8; 32]), &Secret::new([8; 16]))
        .unwrap();
    assert_eq!(files(pair.folders[0].path(), "making"), 2);
    drop(second);
    assert_eq!(files(pair.folders[0].path(), "making"), 1);
    let abandoned = pair.folders[0].path().join("0000000000000000.making");
    fs::write(&abandoned, [0; 100]).unwrap();
    make(&stocks, 9).unwrap();
    assert!(!abandoned.exists());
    assert_eq!(stocks.left().unwrap(), [CELLS]);
}

fn files(folder: &Path, extension: &str) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|of| of == extension))
        .count()
}

#[test]
fn budgets_and_failures_stop_the_making() {
    let pair = Pair::new();
    pair.make(7);
    let stocks = pair.stocks(0);
    let bytes = fs::metadata(pair.file(0, "stock")).unwrap().len();
    assert_eq!(bytes, 4096 + CELLS * 128 + CELLS / PAGE * 16);
    let begin = |most, session: u8| {
        let sink = stocks.making(CELLS, Some(most));
        sink.begin(&SessionId([session; 32]), &Secret::new([0; 16]))
    };
    let refused = begin(2 * bytes - 1, 8);
    assert!(matches!(refused, Err(StockError::Budget { most, .. }) if most == 2 * bytes - 1));
    begin(2 * bytes, 8).unwrap();
    // A failed check burns the generation; after three of them nothing is made.
    for number in 0..3 {
        let ends = session(&pair, 10 + number, 5);
        ends[0].burn();
        ends[0].burn();
        ends[1].burn();
        drop(ends);
        assert!(pair.left().iter().all(Vec::is_empty));
        if number < 2 {
            pair.make(20 + number);
        }
    }
    let refused = make(&stocks, 30);
    assert!(matches!(refused, Err(StockError::Failures { failures: 3 })));
    // With another peer it goes on; with this one when its operator has looked.
    let other = Between {
        peer: [0xd; 32],
        ..between(0)
    };
    make(&pair.between(0, other), 31).unwrap();
    let folder = pair.folders[0].path();
    let burnt = veil_store::stock::stocks(folder, &key(0)).unwrap();
    let burnt = burnt
        .iter()
        .find(|of| matches!(of.state, ListedState::Burnt { .. }));
    assert!(remove_stock(folder, &key(0), &burnt.unwrap().generation).unwrap());
    make(&stocks, 32).unwrap();
}

#[test]
fn one_run_at_a_time_begins() {
    let pair = Pair::new();
    pair.make(7);
    let first = pair.stocks(0).taking();
    first.word().unwrap();
    assert!(matches!(
        pair.stocks(0).taking().word(),
        Err(StockError::Busy)
    ));
    drop(first);
    // When it has begun, another one may.
    let running = session(&pair, 1, 5);
    let second = session(&pair, 2, 5);
    assert_eq!(cells(&running[0], 7, 0, 1), [0]);
    assert_eq!(cells(&second[0], 7, 0, 1), [5]);
    // The generation that has enough and the least beyond comes first.
    pair.make(8);
    let third = session(&pair, 3, CELLS - 5);
    assert_eq!(cells(&third[1], 8, 0, 2), [0, 1]);
    let fourth = session(&pair, 4, 5);
    assert_eq!(cells(&fourth[1], 8, 0, 2), [CELLS - 5, CELLS - 4]);
}

/// Used pages are written over.
#[test]
fn used_pages_are_erased() {
    let pair = Pair::new();
    pair.make(7);
    let path = pair.file(0, "stock");
    let zeros = |page: usize| {
        let file = fs::read(&path).unwrap();
        file[4096 + page * 65552..][..65552]
            .iter()
            .all(|byte| *byte == 0)
    };
    drop(session(&pair, 1, PAGE - 1));
    assert!(!zeros(0));
    let running = session(&pair, 2, PAGE + 1);
    assert_eq!(cells(&running[0], 7, 0, 1), [PAGE - 1]);
    drop(running);
    assert!(zeros(0) && zeros(1) && !zeros(2));
}
