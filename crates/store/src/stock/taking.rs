//! What a run takes from the stock of its party: marked before, each cell once.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_job::{Cells, DataError, StockError, StockSource, Turn};
use veil_session::{Secret, SessionId};

use super::marks::{Choice, Marks, choose, heard, word};
use super::{Held, Stocks, short};

/// How often a run that waits for another one to begin looks whether it has.
const GLANCE: Duration = Duration::from_millis(20);

/// What a run takes from the stock of its party.
pub struct Taking {
    stocks: Stocks,
    patience: Duration,
    state: Mutex<State>,
    begun: OnceLock<Begun>,
}

/// Before cells are marked.
#[derive(Default)]
struct State {
    /// Held from the word on until the run has begun.
    lock: Option<File>,
    held: Vec<Held>,
    /// The generation that the run takes from, and its cells.
    chosen: Option<(usize, u64)>,
}

/// The cells of a run.
struct Begun {
    held: Held,
    cells: Range<u64>,
    /// Cells that were given, by the first of each range: each is given once.
    given: Mutex<BTreeMap<u64, u64>>,
}

impl Begun {
    /// Whether none of these was given before; they are from now on.
    fn is_first(&self, cells: &Range<u64>) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let before = given.range(..cells.end).next_back();
        if cells.is_empty() || before.is_some_and(|(_, end)| *end > cells.start) {
            return cells.is_empty();
        }
        let before = before.filter(|(_, end)| **end == cells.start);
        let first = before.map_or(cells.start, |(first, _)| *first);
        given.insert(first, cells.end);
        true
    }
}

impl Taking {
    pub(super) fn new(stocks: Stocks) -> Self {
        Taking {
            stocks,
            patience: Duration::ZERO,
            state: Mutex::default(),
            begun: OnceLock::new(),
        }
    }

    /// The same, waiting so long where another run of this party is about to take from the stock with the same peer.
    #[must_use]
    pub const fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The lock of the stock with the peer.
    fn lock(&self) -> Result<File, StockError> {
        let until = Instant::now() + self.patience;
        loop {
            match self.stocks.lock() {
                Err(StockError::Busy) if Instant::now() < until => thread::sleep(GLANCE),
                locked => return locked,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StockSource for Taking {
    /// The party whose key is the lower one.
    fn leads(&self) -> bool {
        self.stocks.between.me < self.stocks.between.peer
    }

    fn word(&self) -> Result<Vec<u8>, StockError> {
        let lock = self.lock()?;
        let mut state = self.state();
        state.lock = Some(lock);
        state.held = self.stocks.held()?;
        let marks: Vec<Marks> = state.held.iter().map(|held| held.marks).collect();
        Ok(word(&marks))
    }

    fn hear(&self, word: &[u8], need: u64) -> Result<Turn, StockError> {
        let mut state = self.state();
        let theirs = heard(word).ok_or(StockError::Word)?;
        let mine: Vec<Marks> = state.held.iter().map(|held| held.marks).collect();
        match choose(&mine, &theirs, need) {
            Choice::Of(own, turn) => {
                state.chosen = Some((own, need));
                let held = &mut state.held[own];
                if turn == Turn::CaughtUp {
                    let mut newer = theirs.iter();
                    let newer = newer.find(|of| of.generation == held.marks.generation);
                    held.marks = *newer.expect("a generation in common");
                    held.file
                        .mark(&held.path.with_extension("marks"), &held.marks)?;
                }
                Ok(turn)
            }
            Choice::Forked(own, other) => {
                for held in &state.held {
                    let generation = held.marks.generation;
                    let mut same = theirs.iter().filter(|of| of.generation == generation);
                    if same.any(|of| held.marks.beside(of).is_none()) {
                        held.burn("forked");
                    }
                }
                Err(StockError::Forked {
                    generation: short(&mine[own].generation),
                    own: mine[own].sessions,
                    theirs: theirs[other].sessions,
                })
            }
            Choice::TooFew(left) => Err(StockError::TooFew {
                kind: self.stocks.between.kind,
                need,
                left,
            }),
            Choice::NoneInCommon => Err(StockError::NoneInCommon {
                kind: self.stocks.between.kind,
                own: mine.len(),
                theirs: theirs.len(),
            }),
        }
    }

    fn begin(&self, session: &SessionId) -> Result<Secret, StockError> {
        let mut state = self.state();
        let Some((own, need)) = state.chosen.take() else {
            return Err(StockError::Word);
        };
        let mut held = state.held.swap_remove(own);
        let offset = held.file.offset()?;
        // Before the marks say that its cells are used: what they say may be erased once no run shares the file.
        held.file.share()?;
        let first = held.marks.used;
        held.marks = held.marks.advanced(need, &session.0);
        let path = held.path.with_extension("marks");
        held.file.mark(&path, &held.marks)?;
        let cells = first..first + need;
        let given = Mutex::default();
        let begun = self.begun.set(Begun { held, cells, given });
        state.lock = None;
        state.held.clear();
        begun.map_err(|_| DataError::own("a run takes its stock once"))?;
        Ok(offset)
    }

    fn take(
        &self,
        first: u64,
        cells: u64,
        give: &mut dyn FnMut(u64, &Cells<'_>),
    ) -> Result<(), StockError> {
        let of_run = |begun: &Begun| {
            let from = begun.cells.start.checked_add(first)?;
            let to = from.checked_add(cells)?;
            let cells = from..to;
            (to <= begun.cells.end && begun.is_first(&cells)).then_some(cells)
        };
        let asked = self
            .begun
            .get()
            .and_then(|begun| Some((begun, of_run(begun)?)));
        let Some((begun, Range { start, end })) = asked else {
            let what = "the run takes stock that it has not marked, or takes it twice";
            return Err(DataError::own(what).into());
        };
        let (mut at, of_page) = (start, self.stocks.between.page());
        while at < end {
            let page = begun.held.file.page(at / of_page)?;
            let (from, until) = (at % of_page, end.min((at / of_page + 1) * of_page));
            let (from, length) = (from as usize * 16, (until - at) as usize * 16);
            let fields = page.chunks_exact(of_page as usize * 16);
            let fields: Vec<&[u8]> = fields.map(|field| &field[from..from + length]).collect();
            give(at - start, &fields);
            at = until;
        }
        Ok(())
    }

    fn burn(&self) {
        if let Some(begun) = self.begun.get() {
            begun.held.burn("check");
        }
    }
}

impl Drop for Taking {
    /// The cells of the run are used, whether it has come to them or not. A page that has cells of another run too is erased when no run takes from the
    /// generation any more.
    fn drop(&mut self) {
        let Some(Begun { held, cells, .. }) = self.begun.get() else {
            return;
        };
        if !held.path.exists() {
            return;
        }
        let of_page = held.file.between.page();
        if held.file.is_alone() {
            let marks = held.file.marks(&held.path.with_extension("marks"));
            let used = marks.map_or(cells.end, |marks| marks.used);
            held.file.erase(0..used / of_page);
        } else {
            held.file
                .erase(cells.start.div_ceil(of_page)..cells.end / of_page);
        }
    }
}
