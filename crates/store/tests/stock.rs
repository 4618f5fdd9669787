//! Stock of two parties: the golden vectors of its marks, and everything that can happen to its files and to the parties.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use veil_job::{Cells, STOCK_WORD, StockError, StockSink, StockSource, Turn};
use veil_session::{Secret, SessionId};
use veil_store::StoreKey;
use veil_store::stock::{
    Between, Choice, ListedState, Marks, PAGE, Stocks, Taking, choose, heard, remove_stock, stocks,
    word,
};

/// Cells of a generation in these tests.
const CELLS: u64 = 4 * PAGE;

/// Two parties, each with a folder.
struct Pair {
    folders: [tempfile::TempDir; 2],
}

impl Pair {
    fn new() -> Self {
        Pair {
            folders: [(); 2].map(|()| tempfile::tempdir().unwrap()),
        }
    }

    fn stocks(&self, party: usize) -> Stocks {
        self.between(party, between(party))
    }

    fn between(&self, party: usize, between: Between) -> Stocks {
        Stocks::open(self.folders[party].path(), &key(party), between).unwrap()
    }

    /// Both make a generation in a session of this name.
    fn make(&self, session: u8) {
        for party in [0, 1] {
            make(&self.stocks(party), session).unwrap();
        }
    }

    /// The only file of a kind at a party.
    fn file(&self, party: usize, extension: &str) -> PathBuf {
        let entries = fs::read_dir(self.folders[party].path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let fits = |path: &PathBuf| path.extension().is_some_and(|of| of == extension);
        paths.find(fits).unwrap()
    }

    fn left(&self) -> [Vec<u64>; 2] {
        [0, 1].map(|party| self.stocks(party).left().unwrap())
    }

    /// What a party has on its disk.
    fn snapshot(&self, party: usize) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folders[party].path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    /// A party is set back.
    fn restore(&self, party: usize, snapshot: &[(PathBuf, Vec<u8>)]) {
        for entry in fs::read_dir(self.folders[party].path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (path, bytes) in snapshot {
            fs::write(path, bytes).unwrap();
        }
    }
}

fn key(party: usize) -> StoreKey {
    StoreKey::derive(&[party as u8 + 1; 32])
}

fn between(party: usize) -> Between {
    let identities = [[0xa; 32], [0xb; 32]];
    Between {
        me: identities[party],
        peer: identities[1 - party],
        garbles: party == 0,
        statistical: 40,
    }
}

/// A field of a cell: what tells it from all others.
fn block(session: u8, cell: u64, field: usize) -> [u8; 16] {
    let mut block = [session; 16];
    block[..8].copy_from_slice(&cell.to_le_bytes());
    block[8] = field as u8;
    block
}

fn put(sink: &impl StockSink, session: u8, first: u64, cells: u64) -> Result<(), StockError> {
    let field = |field| -> Vec<u8> {
        let cells = first..first + cells;
        cells.flat_map(|cell| block(session, cell, field)).collect()
    };
    let fields: Vec<Vec<u8>> = (0..8).map(field).collect();
    sink.put(first, &std::array::from_fn(|k| &fields[k][..]))
}

fn make(stocks: &Stocks, session: u8) -> Result<(), StockError> {
    let sink = stocks.making(CELLS, None);
    sink.begin(&SessionId([session; 32]), &Secret::new([session; 16]))?;
    put(&sink, session, 2 * PAGE, CELLS - 2 * PAGE)?;
    put(&sink, session, 0, 2 * PAGE)?;
    sink.finish()
}

/// How far each party comes in a session: not to its marks, to them, or to its cells.
fn begin(pair: &Pair, session: u8, need: u64) -> [Result<Taking, StockError>; 2] {
    let ends = [0, 1].map(|party| pair.stocks(party).taking());
    let words = [0, 1].map(|party| ends[party].word());
    let [Ok(first), Ok(second)] = &words else {
        let error = words.into_iter().find_map(Result::err).unwrap();
        return [Err(error), Err(StockError::Word)];
    };
    let turns = [ends[0].hear(second, need), ends[1].hear(first, need)];
    let mut both = ends.into_iter().zip(turns).map(|(end, turn)| {
        turn?;
        let offset = end.begin(&SessionId([session; 32]))?;
        let made = *offset.expose();
        assert_eq!(made, [made[0]; 16]);
        Ok(end)
    });
    [both.next().unwrap(), both.next().unwrap()]
}

fn session(pair: &Pair, number: u8, need: u64) -> [Taking; 2] {
    begin(pair, number, need).map(Result::unwrap)
}

/// Numbers of cells that a run is given, in order.
fn cells(of: &Taking, session: u8, first: u64, count: u64) -> Vec<u64> {
    let mut given = Vec::new();
    of.take(first, count, &mut |at, cells: &Cells<'_>| {
        assert_eq!(at, given.len() as u64);
        let pieces: Vec<&[[u8; 16]]> = cells.iter().map(|field| field.as_chunks().0).collect();
        for k in 0..pieces[0].len() {
            let cell = u64::from_le_bytes(pieces[0][k][..8].try_into().unwrap());
            for (field, blocks) in pieces.iter().enumerate() {
                assert_eq!(blocks[k], block(session, cell, field));
            }
            given.push(cell);
        }
    })
    .unwrap();
    given
}

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
        let Err(StockError::TooFew { need, left: told }) = end.map(|_| ()) else {
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
        Err(StockError::NoneInCommon { own: 0, theirs: 0 })
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
        Err(StockError::NoneInCommon { own: 0, theirs: 1 })
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
    std::mem::forget(sink);
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
