//! Two parties with a folder of stock each, and cells that tell each other apart.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use veil_job::{Cells, StockError, StockKind, StockSink, StockSource};
use veil_session::{Secret, SessionId};
use veil_store::StoreKey;
use veil_store::stock::{Between, Stocks, Taking, page_of};

/// Cells of a page.
pub(crate) const PAGE: u64 = page_of(StockKind::Cells);

/// Cells of a generation in these tests.
pub(crate) const CELLS: u64 = 4 * PAGE;

/// Two parties, each with a folder.
pub(crate) struct Pair {
    pub(crate) folders: [tempfile::TempDir; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        Pair {
            folders: [(); 2].map(|()| tempfile::tempdir().unwrap()),
        }
    }

    pub(crate) fn stocks(&self, party: usize) -> Stocks {
        self.between(party, between(party))
    }

    pub(crate) fn between(&self, party: usize, between: Between) -> Stocks {
        Stocks::open(self.folders[party].path(), &key(party), between).unwrap()
    }

    /// Both make a generation in a session of this name.
    pub(crate) fn make(&self, session: u8) {
        for party in [0, 1] {
            make(&self.stocks(party), session).unwrap();
        }
    }

    /// The only file of a kind at a party.
    pub(crate) fn file(&self, party: usize, extension: &str) -> PathBuf {
        let entries = fs::read_dir(self.folders[party].path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let fits = |path: &PathBuf| path.extension().is_some_and(|of| of == extension);
        paths.find(fits).unwrap()
    }

    pub(crate) fn left(&self) -> [Vec<u64>; 2] {
        [0, 1].map(|party| self.stocks(party).left().unwrap())
    }

    /// What a party has on its disk.
    pub(crate) fn snapshot(&self, party: usize) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folders[party].path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    /// A party is set back.
    pub(crate) fn restore(&self, party: usize, snapshot: &[(PathBuf, Vec<u8>)]) {
        for entry in fs::read_dir(self.folders[party].path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (path, bytes) in snapshot {
            fs::write(path, bytes).unwrap();
        }
    }
}

pub(crate) fn key(party: usize) -> StoreKey {
    StoreKey::derive(&[party as u8 + 1; 32])
}

pub(crate) fn between(party: usize) -> Between {
    let identities = [[0xa; 32], [0xb; 32]];
    Between {
        me: identities[party],
        peer: identities[1 - party],
        garbles: party == 0,
        statistical: 40,
        kind: StockKind::Cells,
    }
}

/// A field of a cell: what tells it from all others.
pub(crate) fn block(session: u8, cell: u64, field: usize) -> [u8; 16] {
    let mut block = [session; 16];
    block[..8].copy_from_slice(&cell.to_le_bytes());
    block[8] = field as u8;
    block
}

pub(crate) fn put(
    sink: &impl StockSink,
    session: u8,
    first: u64,
    cells: u64,
) -> Result<(), StockError> {
    put_of(StockKind::Cells, sink, session, first..first + cells)
}

pub(crate) fn put_of(
    kind: StockKind,
    sink: &impl StockSink,
    session: u8,
    items: Range<u64>,
) -> Result<(), StockError> {
    let field = |field| -> Vec<u8> {
        let items = items.clone();
        items.flat_map(|item| block(session, item, field)).collect()
    };
    let fields: Vec<Vec<u8>> = (0..kind.fields()).map(field).collect();
    let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    sink.put(items.start, &fields)
}

/// Makes four pages.
pub(crate) fn make(stocks: &Stocks, session: u8) -> Result<(), StockError> {
    let (kind, page) = (stocks.kind(), page_of(stocks.kind()));
    let sink = stocks.making(4 * page, None);
    sink.begin(&SessionId([session; 32]), &Secret::new([session; 16]))?;
    put_of(kind, &sink, session, 2 * page..4 * page)?;
    put_of(kind, &sink, session, 0..2 * page)?;
    sink.finish()
}

/// How far each party comes in a session: not to its marks, to them, or to its cells.
pub(crate) fn begin(pair: &Pair, session: u8, need: u64) -> [Result<Taking, StockError>; 2] {
    begin_of([0, 1].map(|party| pair.stocks(party)), session, need)
}

pub(crate) fn begin_of(
    both: [Stocks; 2],
    session: u8,
    need: u64,
) -> [Result<Taking, StockError>; 2] {
    let ends = both.map(|stocks| stocks.taking());
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

pub(crate) fn session(pair: &Pair, number: u8, need: u64) -> [Taking; 2] {
    begin(pair, number, need).map(Result::unwrap)
}

/// Numbers of cells that a run is given, in order.
pub(crate) fn cells(of: &Taking, session: u8, first: u64, count: u64) -> Vec<u64> {
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
