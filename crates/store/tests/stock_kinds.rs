//! Stock of random transfers in the same folder as cells, and makings that are over or go on, in lists.

use std::fs;

use veil_job::{Cells, StockError, StockKind, StockSink, StockSource};
use veil_session::{Secret, SessionId};
use veil_store::stock::{
    Between, ListedState, Stocks, discard_unfinished, page_of, remove_stock, stocks,
};

use crate::common::stock::{CELLS, Pair, begin_of, between, block, cells, key, make, put_of};

const PAGE: u64 = page_of(StockKind::Transfers);

fn transfers(pair: &Pair, party: usize) -> Stocks {
    let kind = StockKind::Transfers;
    pair.between(
        party,
        Between {
            kind,
            ..between(party)
        },
    )
}

#[test]
fn transfers_and_cells_of_one_folder_are_told_apart() {
    let pair = Pair::new();
    pair.make(7);
    let both = || [0, 1].map(|party| transfers(&pair, party));
    let refused = begin_of(both(), 8, 1);
    assert!(refused.iter().all(|end| matches!(
        end,
        Err(StockError::NoneInCommon {
            kind: StockKind::Transfers,
            own: 0,
            theirs: 0
        })
    )));
    drop(refused);
    for stocks in both() {
        make(&stocks, 9).unwrap();
        assert_eq!(stocks.left().unwrap(), [4 * PAGE]);
    }
    assert_eq!(pair.left(), [[CELLS], [CELLS]]);
    // Over the end of a page, in pieces.
    let [one, other] = begin_of(both(), 10, PAGE + 3).map(Result::unwrap);
    for end in [&one, &other] {
        assert!(cells(end, 9, 0, PAGE - 1).into_iter().eq(0..PAGE - 1));
        assert!(
            cells(end, 9, PAGE - 1, 4)
                .into_iter()
                .eq(PAGE - 1..PAGE + 3)
        );
        let again = end.take(PAGE, 1, &mut |_, _: &Cells<'_>| panic!("it is used"));
        assert!(again.is_err());
    }
    drop([one, other]);
    for stocks in both() {
        assert_eq!(stocks.left().unwrap(), [3 * PAGE - 3]);
    }
    assert_eq!(pair.left(), [[CELLS], [CELLS]]);
    // What both kinds take together is bounded.
    let both_kinds = 2 * (4096 + 4 * 65552);
    for stocks in [transfers(&pair, 0), pair.stocks(0)] {
        let page = page_of(stocks.kind());
        let room = |more: u64| stocks.room(both_kinds + more, None).unwrap();
        assert_eq!([room(4096 + 65551), room(4096 + 65552)], [0, page]);
    }
}

/// A header that says the other kind is not what this party has written.
#[test]
fn a_kind_that_was_changed_does_not_open() {
    let pair = Pair::new();
    make(&transfers(&pair, 0), 7).unwrap();
    let path = pair.file(0, "stock");
    let mut bytes = fs::read(&path).unwrap();
    for kind in [0, 2, 255] {
        bytes[162] = kind;
        fs::write(&path, &bytes).unwrap();
        for stocks in [transfers(&pair, 0), pair.stocks(0)] {
            assert!(
                matches!(stocks.left(), Err(StockError::Damaged { .. })),
                "{kind}"
            );
        }
    }
}

#[test]
fn pages_of_another_number_of_fields_are_refused() {
    let pair = Pair::new();
    let stocks = transfers(&pair, 0);
    let sink = stocks.making(PAGE, None);
    sink.begin(&SessionId([7; 32]), &Secret::new([0; 16]))
        .unwrap();
    let of_cells = put_of(StockKind::Cells, &sink, 7, 0..PAGE);
    assert!(matches!(of_cells, Err(StockError::Data(_))));
    let none: &Cells<'_> = &[];
    assert!(sink.put(0, none).is_err());
    let short: Vec<u8> = (1..PAGE).flat_map(|item| block(7, item, 0)).collect();
    assert!(sink.put(0, &[&short[..]]).is_err());
    put_of(StockKind::Transfers, &sink, 7, 0..PAGE).unwrap();
    sink.finish().unwrap();
    assert_eq!(stocks.left().unwrap(), [PAGE]);
}

/// A making that goes on, is over without an agreement, and is removed when no more is wanted.
#[test]
fn an_unfinished_making_is_listed_and_removed() {
    let pair = Pair::new();
    let folder = pair.folders[0].path();
    let state = || {
        let mut all = stocks(folder, &key(0)).unwrap();
        assert!(all.len() <= 1);
        all.pop().map(|of| (of.generation, of.state))
    };
    let begun = |session| {
        let sink = transfers(&pair, 0).making(4 * PAGE, None);
        sink.begin(&SessionId([session; 32]), &Secret::new([0; 16]))
            .unwrap();
        put_of(StockKind::Transfers, &sink, session, 0..PAGE).unwrap();
        sink
    };
    let sink = begun(7);
    let (name, listed) = state().unwrap();
    let ListedState::Unfinished {
        between: of,
        cells,
        goes_on: true,
        bytes,
    } = listed
    else {
        panic!("{listed:?}");
    };
    assert_eq!(
        (of.kind, cells, bytes),
        (StockKind::Transfers, 4 * PAGE, 4096 + 65552)
    );
    let none = |_: &Between| false;
    // A run holds it.
    assert_eq!(discard_unfinished(folder, &key(0), &none).unwrap(), 0);
    assert!(matches!(
        remove_stock(folder, &key(0), &name),
        Err(StockError::Busy)
    ));
    sink.stay();
    drop(sink);
    assert!(matches!(
        state(),
        Some((_, ListedState::Unfinished { goes_on: false, .. }))
    ));
    let wanted = |of: &Between| of.kind == StockKind::Transfers;
    assert_eq!(discard_unfinished(folder, &key(0), &wanted).unwrap(), 0);
    // A making of another kind leaves it.
    let cells = pair.stocks(0).making(CELLS, None);
    cells
        .begin(&SessionId([9; 32]), &Secret::new([9; 16]))
        .unwrap();
    drop(cells);
    assert_eq!(transfers(&pair, 0).unfinished().unwrap().len(), 1);
    assert_eq!(discard_unfinished(folder, &key(0), &none).unwrap(), 1);
    assert_eq!(state(), None);
    let sink = begun(8);
    sink.stay();
    drop(sink);
    let (name, _) = state().unwrap();
    assert!(remove_stock(folder, &key(0), &name).unwrap());
    assert_eq!(state(), None);
}
