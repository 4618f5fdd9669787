//! Stock of two parties: the golden vectors of its marks, and what can happen to the parties.

use serde_json::Value;
use veil_job::{STOCK_WORD, StockError, StockSource, Turn};
use veil_session::SessionId;
use veil_store::stock::{Choice, ListedState, Marks, choose, heard, stocks, word};

use crate::common::stock::{CELLS, PAGE, Pair, begin, between, cells, key, session};

fn marks(value: &Value) -> Marks {
    let bytes = |name: &str| -> [u8; 32] {
        let text = value[name].as_str().unwrap();
        let byte = |k: usize| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap();
        std::array::from_fn(byte)
    };
    let number = |name: &str| value[name].as_u64().unwrap();
    Marks {
        generation: bytes("generation"),
        made: number("made"),
        used: number("used"),
        sessions: number("sessions"),
        chain: [bytes("chain"), bytes("previous")],
    }
}

#[test]
fn marks_are_those_of_the_model() {
    let golden: Value = serde_json::from_str(include_str!("../../../vectors/stock.json")).unwrap();
    let list =
        |value: &Value| -> Vec<Marks> { value.as_array().unwrap().iter().map(marks).collect() };
    let mut now = marks(&golden["fresh"]);
    assert_eq!(Marks::new(now.generation, now.made), now);
    for step in golden["steps"].as_array().unwrap() {
        let text = step["session"].as_str().unwrap();
        let byte = |k: usize| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap();
        now = now.advanced(step["need"].as_u64().unwrap(), &std::array::from_fn(byte));
        assert_eq!(now, marks(&step["marks"]));
    }
    for case in golden["cases"].as_array().unwrap() {
        let (mine, theirs) = (list(&case["mine"]), list(&case["theirs"]));
        let choice = case["choice"].as_array().unwrap();
        let number = |k: usize| choice[k].as_u64().unwrap() as usize;
        let want = match choice[0].as_str().unwrap() {
            "equal" => Choice::Of(number(1), Turn::Begins),
            "behind" => Choice::Of(number(1), Turn::CaughtUp),
            "ahead" => Choice::Of(number(1), Turn::Waits),
            "forked" => Choice::Forked(number(1), number(2)),
            "too few" => Choice::TooFew(number(1) as u64),
            _ => Choice::NoneInCommon,
        };
        let need = case["need"].as_u64().unwrap();
        assert_eq!(choose(&mine, &theirs, need), want, "{case}");
        // What goes over the link is the same.
        assert_eq!(heard(&word(&mine)), Some(mine));
    }
}

/// Whichever of the two garbles, the same party is the first.
#[test]
fn one_of_two_parties_leads() {
    let pair = Pair::new();
    for turned in [false, true] {
        let leads = [0, 1].map(|party| {
            let mut between = between(party);
            between.garbles ^= turned;
            pair.between(party, between).taking().leads()
        });
        assert_eq!(leads, [true, false]);
    }
}

#[test]
fn a_word_that_no_party_says_is_refused() {
    let mine = [Marks::new([1; 32], 512), Marks::new([2; 32], 512)];
    let said = word(&mine);
    assert_eq!(said.len(), STOCK_WORD);
    assert!(heard(&said).is_some());
    let mut twice = mine;
    twice[1].generation = [1; 32];
    assert!(heard(&word(&twice)).is_none());
    let mut more = mine;
    more[0].used = 513;
    assert!(heard(&word(&more)).is_none());
    for (at, byte) in [(0, 9), (0, 1), (7, 1), (STOCK_WORD - 1, 1)] {
        let mut changed = said.clone();
        changed[at] = byte;
        assert!(heard(&changed).is_none(), "byte {at}");
    }
    assert!(heard(&said[1..]).is_none());
    let pair = Pair::new();
    pair.make(1);
    let taking = pair.stocks(0).taking();
    taking.word().unwrap();
    let heard = taking.hear(&[0xff; STOCK_WORD], 1);
    assert!(matches!(heard, Err(StockError::Word)));
    // Nothing was used.
    assert_eq!(pair.left(), [vec![CELLS], vec![CELLS]]);
}

#[test]
fn cells_come_once_and_in_order() {
    let pair = Pair::new();
    pair.make(7);
    let mut next = 0;
    for (number, need) in [(1, 10), (2, PAGE), (3, 0), (4, 2 * PAGE + 3), (5, 1)] {
        for end in session(&pair, number, need) {
            let half = need / 2;
            let mut given = cells(&end, 7, 0, half);
            given.extend(cells(&end, 7, half, need - half));
            assert_eq!(given, (next..next + need).collect::<Vec<_>>());
            // Not one more, nor one of before, nor one again.
            let more = [(0, need + 1), (need, 1), (u64::MAX, 1), (1, u64::MAX)];
            let again = [(0, 1), (0, need), (half, 1), (need.saturating_sub(1), 1)];
            let again = again.into_iter().filter(|_| need > 1);
            for (first, count) in more.into_iter().chain(again) {
                let mut given = false;
                let taken = end.take(first, count, &mut |_, _| given = true);
                assert!(taken.is_err() && !given);
            }
        }
        next += need;
    }
    let [one, other] = begin(&pair, 6, CELLS);
    let left = CELLS - next;
    for end in [one, other] {
        let Err(StockError::TooFew {
            need, left: told, ..
        }) = end.map(|_| ())
        else {
            panic!("there are not so many");
        };
        assert_eq!((need, told), (CELLS, left));
    }
    assert_eq!(pair.left(), [vec![left], vec![left]]);
    session(&pair, 7, left);
    assert!(pair.left().iter().all(Vec::is_empty));
    let [one, _] = begin(&pair, 8, 1);
    assert!(matches!(
        one.map(|_| ()),
        Err(StockError::NoneInCommon {
            own: 0,
            theirs: 0,
            ..
        })
    ));
}

/// T10 and T13: a party that is ended between any two steps of a session, at either end. What was marked is never given again.
#[test]
fn a_party_that_is_ended_uses_nothing_twice() {
    // How far each party comes: to its word, to what it hears, to its marks.
    for (first, second) in (0..9).map(|k| (k / 3, k % 3)) {
        let pair = Pair::new();
        pair.make(7);
        let given = cells(&session(&pair, 1, 5)[0], 7, 0, 5);
        assert_eq!(given, [0, 1, 2, 3, 4]);
        let ends = [0, 1].map(|party| pair.stocks(party).taking());
        let words = [ends[0].word().unwrap(), ends[1].word().unwrap()];
        for (party, far) in [(0, first), (1, second)] {
            if far > 0 {
                ends[party].hear(&words[1 - party], 100).unwrap();
            }
            if far > 1 {
                ends[party].begin(&SessionId([2; 32])).unwrap();
            }
        }
        drop(ends);
        // The next session goes on behind it; the one after that as if nothing had been.
        let marked = first.max(second) == 2;
        let next = if marked { 105 } else { 5 };
        for (number, at) in [(3, next), (4, next + 3)] {
            for end in session(&pair, number, 3) {
                assert_eq!(
                    cells(&end, 7, 0, 3),
                    [at, at + 1, at + 2],
                    "{first}, {second}"
                );
            }
        }
    }
}

/// A party that is ended again and again, before it has caught up and after.
#[test]
fn a_party_that_lags_catches_up_before_the_other_goes_on() {
    let pair = Pair::new();
    pair.make(7);
    // The first party marks, the second one does not.
    let only_first = |number: u8| {
        let ends = [0, 1].map(|party| pair.stocks(party).taking());
        let words = [ends[0].word().unwrap(), ends[1].word().unwrap()];
        let turn = ends[0].hear(&words[1], 10).unwrap();
        if turn == Turn::Begins {
            ends[0].begin(&SessionId([number; 32])).unwrap();
        }
        turn
    };
    assert_eq!(only_first(1), Turn::Begins);
    // It waits for a word that does not come, whatever the number of tries: marks never differ by two sessions.
    for number in 2..6 {
        assert_eq!(only_first(number), Turn::Waits);
    }
    let ends = [0, 1].map(|party| pair.stocks(party).taking());
    let words = [ends[0].word().unwrap(), ends[1].word().unwrap()];
    assert_eq!(ends[1].hear(&words[0], 10).unwrap(), Turn::CaughtUp);
    drop(ends);
    let both = session(&pair, 7, 10);
    assert_eq!(cells(&both[0], 7, 0, 1), [10]);
    assert_eq!(cells(&both[1], 7, 0, 1), [10]);
}

/// T11: one party is set back, by one session or more, with its disk.
#[test]
fn a_party_that_is_set_back_is_found() {
    for (who, sessions) in [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3)] {
        let pair = Pair::new();
        pair.make(7);
        session(&pair, 1, 4);
        let before = pair.snapshot(who);
        for number in 0..sessions {
            session(&pair, 2 + number, 10);
        }
        pair.restore(who, &before);
        let next = begin(&pair, 9, 3);
        if sessions == 1 {
            // The other party knows what was used: both go on behind it.
            for end in next {
                assert_eq!(cells(&end.unwrap(), 7, 0, 3), [14, 15, 16]);
            }
            continue;
        }
        for (party, end) in next.into_iter().enumerate() {
            let Err(StockError::Forked { own, theirs, .. }) = end.map(|_| ()) else {
                panic!("marks that differ by {sessions} sessions");
            };
            let all = 1 + u64::from(sessions);
            let want = if party == who { (1, all) } else { (all, 1) };
            assert_eq!((own, theirs), want);
        }
        // It is burnt at both, and stays so.
        for party in 0..2 {
            let listed = stocks(pair.folders[party].path(), &key(party)).unwrap();
            let [one] = &listed[..] else {
                panic!("one generation")
            };
            assert!(matches!(&one.state, ListedState::Burnt { why, .. } if why == "forked"));
        }
        let [one, _] = begin(&pair, 10, 3);
        assert!(matches!(
            one.map(|_| ()),
            Err(StockError::NoneInCommon { .. })
        ));
        // Another one is made as before: a fork is no failed check.
        pair.make(8);
        session(&pair, 11, 3);
    }
}

/// T11: a party goes on twice. Each copy has sessions of its own with the other party, which knows all of them.
#[test]
fn a_party_that_goes_on_twice_is_found() {
    let pair = Pair::new();
    pair.make(7);
    let before = pair.snapshot(0);
    session(&pair, 1, 10);
    let one = pair.snapshot(0);
    pair.restore(0, &before);
    // The copy is one session behind, and takes what the other party knows.
    let [copy, _] = session(&pair, 2, 10);
    assert_eq!(cells(&copy, 7, 0, 1), [10]);
    drop(copy);
    session(&pair, 3, 10);
    pair.restore(0, &one);
    let [one, other] = begin(&pair, 4, 10);
    assert!(matches!(one.map(|_| ()), Err(StockError::Forked { .. })));
    assert!(matches!(other.map(|_| ()), Err(StockError::Forked { .. })));
}

/// The stated limit: both are set back, and nothing of the two tells.
#[test]
fn two_parties_that_are_set_back_together_are_not_found() {
    let pair = Pair::new();
    pair.make(7);
    let before = [0, 1].map(|party| pair.snapshot(party));
    session(&pair, 1, 10);
    for party in [0, 1] {
        pair.restore(party, &before[party]);
    }
    let [one, _] = session(&pair, 2, 10);
    assert_eq!(cells(&one, 7, 0, 1), [0]);
}
