//! Stock: two parties make cells in one run and take them in others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use veil_circuit::{Per, make};
use veil_device::{Cpu, Device, Reference};
use veil_engine::Abort;
use veil_job::{Adversary, Audience, Cells, Holder, JobSpec, Statistical, StockError};
use veil_job::{StockKind, StockSource, Turn};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::ag::{CELLS_OF_ROW, stock_of};
use veil_protocol::yao::{TRANSFERS_OF_ROW, transfers_of};
use veil_protocol::{Options, Plan, PlanError, Protocol, Stock, protocol};
use veil_session::{PartyId, Peer, Secret, SessionId};
use veil_store::StoreKey;
use veil_store::stock::{Between, Marks, Stocks, Taking, word};
use veil_testkit::sample::{against, authenticated, between_two, cut, everything, job, peer};
use veil_testkit::{Crash, Kind, Message, Outcome, World, flipped};

const PARTIES: [usize; 2] = [0, 1];

/// Two parties, each with a folder, and a kind of stock.
pub(crate) struct Pair {
    folders: [tempfile::TempDir; 2],
    kind: StockKind,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::of(StockKind::Cells)
    }

    /// Of a kind, with nothing.
    pub(crate) fn of(kind: StockKind) -> Self {
        Pair {
            folders: [(); 2].map(|()| tempfile::tempdir().expect("a folder")),
            kind,
        }
    }

    /// The folders of the same parties, for another kind.
    pub(crate) fn turned(self, kind: StockKind) -> Self {
        Pair { kind, ..self }
    }

    pub(crate) fn folder(&self, party: usize) -> &Path {
        self.folders[party].path()
    }

    /// With a generation of at least so many cells.
    pub(crate) fn with(cells: u64) -> Self {
        Pair::new().stocked(cells)
    }

    /// The same, with a generation of at least so many items.
    pub(crate) fn stocked(self, items: u64) -> Self {
        self.making(items).run().assert_right();
        self
    }

    pub(crate) fn stocks(&self, party: usize) -> Stocks {
        let between = Between {
            me: [party as u8; 32],
            peer: [1 - party as u8; 32],
            garbles: party == 0,
            statistical: 40,
            kind: self.kind,
        };
        let key = StoreKey::derive(&[party as u8; 32]);
        Stocks::open(self.folders[party].path(), &key, between).expect("a folder")
    }

    pub(crate) fn left(&self) -> [Vec<u64>; 2] {
        PARTIES.map(|party| self.stocks(party).left().expect("whole files"))
    }

    /// A run that makes a generation.
    pub(crate) fn making(&self, cells: u64) -> World {
        let parties = ["a", "b"].map(str::to_owned);
        let (job, of_row) = match self.kind {
            StockKind::Cells => (stock_of(parties, Statistical::USUAL, cells), CELLS_OF_ROW),
            StockKind::Transfers => (transfers_of(parties, cells), TRANSFERS_OF_ROW),
        };
        let world = World::stocked(job, (1, 2), Stock::Made);
        let cells = world.plan().job.rows() * of_row;
        let sink = |party| Arc::new(self.stocks(party).making(cells, None));
        let world = world.makes(peer(0), sink(0)).makes(peer(1), sink(1));
        world.devices(|_| Box::new(Cpu::detect()))
    }

    /// A run that takes from it, in chunks of so many rows on so many lanes.
    pub(crate) fn using(&self, job: JobSpec, chunks: (u32, u16)) -> World {
        self.recorded(job, chunks).0
    }

    /// The same, with the cells that each party is given.
    pub(crate) fn recorded(&self, job: JobSpec, chunks: (u32, u16)) -> (World, [Arc<Recorded>; 2]) {
        let world = World::stocked(job, chunks, Stock::Used);
        let record = |party| {
            Arc::new(Recorded {
                inner: self.stocks(party).taking().patient(PATIENCE),
                given: Mutex::default(),
            })
        };
        let both = [record(0), record(1)];
        let world = world.uses(peer(0), both[0].clone());
        (world.uses(peer(1), both[1].clone()), both)
    }

    /// A run whose party is lost after so many messages, and one after it, which takes what is left. Whether there were more messages.
    #[track_caller]
    pub(crate) fn goes_on_after(&self, job: &JobSpec, lost: u8, after: u64) -> bool {
        let before = self.left();
        let world = self.using(job.clone(), (8, 1));
        let need = need(&world);
        let outcome = world.crash(peer(lost), Crash::Killed, after).run();
        if outcome.aborts.is_empty() {
            return false;
        }
        // Items are used at both, or at one, which is the only one that knows of the session, or at none.
        for (before, now) in before.iter().zip(self.left()) {
            assert!([before[0], before[0] - need].contains(&now[0]));
        }
        let most = self.left().concat().into_iter().min().expect("two parties");
        self.using(job.clone(), (8, 1)).run().assert_right();
        let rest = most - need;
        assert_eq!(
            self.left(),
            [vec![rest], vec![rest]],
            "after {after} messages"
        );
        true
    }
}

/// How long a run waits for another one of the same parties.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stock that writes down what it gives.
pub(crate) struct Recorded {
    inner: Taking,
    given: Mutex<BTreeMap<u64, u64>>,
}

impl Recorded {
    /// What was marked was given, none of it twice. A chunk with fewer rows than others leaves some.
    #[track_caller]
    pub(crate) fn assert_given(&self, need: u64) {
        let given = self.given.lock().expect("no thread panics");
        let ends = given.iter().map(|(first, cells)| first + cells);
        let nexts = given.keys().copied().skip(1).chain([need]);
        assert!(ends.zip(nexts).all(|(end, next)| end <= next), "{given:?}");
        assert!(2 * given.values().sum::<u64>() > need, "{given:?}");
    }

    #[track_caller]
    pub(crate) fn assert_none_given(&self) {
        assert!(self.given.lock().expect("no thread panics").is_empty());
    }
}

impl StockSource for Recorded {
    fn leads(&self) -> bool {
        self.inner.leads()
    }

    fn word(&self) -> Result<Vec<u8>, StockError> {
        self.inner.word()
    }

    fn hear(&self, word: &[u8], need: u64) -> Result<Turn, StockError> {
        self.inner.hear(word, need)
    }

    fn begin(&self, session: &SessionId) -> Result<Secret, StockError> {
        self.inner.begin(session)
    }

    fn take(
        &self,
        first: u64,
        cells: u64,
        give: &mut dyn FnMut(u64, &Cells<'_>),
    ) -> Result<(), StockError> {
        let mut given = self.given.lock().expect("no thread panics");
        let old = given.insert(first, cells);
        assert_eq!(old, None, "cells from number {first} on are taken twice");
        drop(given);
        self.inner.take(first, cells, give)
    }

    fn burn(&self) {
        self.inner.burn();
    }
}

fn adder(rows: u64, holders: [Holder; 2], audience: Audience) -> JobSpec {
    let circuit = make("adder:9").expect("the catalogue has it");
    let mut job = between_two(job(circuit, &[(rows, &holders)], &[audience]));
    job.security = job.security.against(Adversary::Malicious);
    job
}

/// What a plan takes.
pub(crate) fn need(world: &World) -> u64 {
    let party = protocol(Arc::clone(world.plan()), peer(0));
    party.stock().expect("it takes from a stock").cells
}

#[test]
fn a_stock_serves_runs_one_after_the_other() {
    let pair = Pair::with(3 * CELLS_OF_ROW);
    let mut left = 3 * CELLS_OF_ROW;
    assert_eq!(pair.left(), [vec![left], vec![left]]);
    let parties = PartyId::TWO.map(Holder::Party);
    let all = [parties, [parties[1], parties[0]], [parties[1]; 2]];
    for (rows, holders) in [1, 5, 37].into_iter().zip(all) {
        for lanes in [1, 2] {
            let job = adder(rows, holders, Audience::Parties);
            let (world, recorded) = pair.recorded(job, (8, lanes));
            let need = need(&world);
            let outcome = world.run();
            crate::yao::costs(&world, outcome.assert_right());
            for party in &recorded {
                party.assert_given(need);
            }
            left -= need;
            assert_eq!(pair.left(), [vec![left], vec![left]]);
            // No transfers, no products.
            for kind in [
                Kind::Points,
                Kind::Trees,
                Kind::Correction,
                Kind::LeakyOffer,
            ] {
                assert_eq!(outcome.of(kind).count(), 0);
            }
        }
    }
}

#[test]
fn owners_and_recipients_from_outside_and_values_of_the_job() {
    let pair = Pair::with(4 * CELLS_OF_ROW);
    let job = against(
        between_two(everything(Ring::Bits, &[13, 9])),
        Adversary::Malicious,
    );
    for (rows, lanes) in [(1, 1), (5, 2), (16, 1)] {
        let world = pair.using(job.clone(), (rows, lanes));
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
    }
    pair.using(job, (8, 2)).run_apart().assert_right();
    let both = [0, 1].map(Holder::Owner);
    let job = adder(7, both, Audience::Recipient(0));
    pair.using(job, (4, 1)).run().assert_right();
}

#[test]
fn many_batches_on_every_device() {
    let pair = Pair::with(8 * CELLS_OF_ROW);
    let mut circuit = make("aes128").expect("the catalogue has it");
    circuit
        .inputs
        .iter_mut()
        .for_each(|port| port.per = Per::Row);
    let holders = PartyId::TWO.map(Holder::Party);
    let of = job(circuit, &[(5, &holders)], &[Audience::Parties]);
    let aes = against(between_two(of), Adversary::Malicious);
    let world = pair.using(aes, (5, 1));
    world
        .devices(|_| Box::new(Cpu::detect()))
        .run()
        .assert_right();
    // Two batches in a chunk, on different devices.
    let two = authenticated("adder:4", 8192, Audience::Parties);
    let world = pair.using(two, (8192, 1));
    let mixed = world.devices(|who| -> Box<dyn Device> {
        if who == peer(0) {
            Box::new(Cpu::detect())
        } else {
            Box::new(Reference::default())
        }
    });
    mixed.run().assert_right();
}

/// A sequential circuit: windows of inputs, batches of cycles.
#[test]
fn cycles_take_cells_of_their_own() {
    let pair = Pair::with(4 * CELLS_OF_ROW);
    for job in crate::authenticated_cycles::jobs() {
        let (world, recorded) = pair.recorded(job, (4, 1));
        let need = need(&world);
        world.run().assert_right();
        for party in &recorded {
            party.assert_given(need);
        }
    }
}

/// Every message of the handshake and of the run, changed on its way.
#[test]
fn every_message_changed_is_found_and_burns_what_it_concerns() {
    let parties = PartyId::TWO.map(Holder::Party);
    let job = adder(3, parties, Audience::Parties);
    let kinds = [
        Kind::InputParts,
        Kind::InputChallenge,
        Kind::InputFold,
        Kind::MaskedInput,
        Kind::OpenedBits,
        Kind::BitChallenge,
        Kind::BitFolds,
        Kind::Table,
        Kind::TableColours,
        Kind::MaskedResults,
        Kind::GateChallenge,
        Kind::LabelFold,
        Kind::GateFold,
        Kind::OutputParts,
        Kind::OutputChallenge,
        Kind::OutputFolds,
    ];
    let mut changed = 0;
    for kind in kinds {
        for from in [0, 1].map(peer) {
            let pair = Pair::with(1);
            let world = pair.using(job.clone(), (8, 1));
            let outcome = world
                .cheat(move |message: &Message| {
                    if message.kind == Some(kind) && message.from == from {
                        Fate::Replace(flipped(&message.bytes))
                    } else {
                        Fate::Pass
                    }
                })
                .run();
            if outcome.of(kind).all(|message| message.from != from) {
                continue;
            }
            // A changed row of a table is found by the party that uses it.
            if outcome.aborts.is_empty() {
                assert_eq!(kind, Kind::Table, "a row of a table that no gate needs");
                outcome.assert_right();
                continue;
            }
            changed += 1;
            let cheated = |abort: &Abort| matches!(abort, Abort::Cheated { .. });
            let found: Vec<usize> = PARTIES
                .into_iter()
                .filter(|party| outcome.aborts.get(&peer(*party as u8)).is_some_and(cheated))
                .collect();
            assert!(!found.is_empty(), "{kind:?}: {:?}", outcome.aborts);
            let opens = matches!(
                kind,
                Kind::OutputParts | Kind::OutputChallenge | Kind::OutputFolds
            );
            for (peer, seen) in &outcome.seen {
                let rows = (0..1).all(|port| seen.rows(Ring::Bits, port).is_none());
                assert!(rows || opens, "{kind:?}: {peer} was given a result");
            }
            for party in found {
                assert!(pair.left()[party].is_empty(), "{kind:?}: it is burnt");
            }
            // The other party has it still; the two have none in common.
            let again = pair.using(job.clone(), (8, 1)).run();
            let refused = |abort: &Abort| matches!(abort, Abort::Stock(error) if matches!(**error, StockError::NoneInCommon { .. }));
            assert!(again.aborts.values().any(refused), "{:?}", again.aborts);
        }
    }
    assert!(changed >= 22, "{changed} messages");
}

pub(crate) fn stock_error(outcome: &Outcome, party: u8) -> Option<&StockError> {
    match outcome.aborts.get(&peer(party)) {
        Some(Abort::Stock(error)) => Some(error),
        _ => None,
    }
}

/// The messages about marks: a word that no party says, marks of another history, a party that does not say that it has written.
#[test]
fn lies_about_marks_are_found() {
    let parties = PartyId::TWO.map(Holder::Party);
    let job = adder(3, parties, Audience::Parties);
    let lie = |pair: &Pair, from: u8, kind: Kind, bytes: fn(&[u8]) -> Vec<u8>| {
        let world = pair.using(job.clone(), (8, 1));
        let cheated = world.cheat(move |message: &Message| {
            if message.kind == Some(kind) && message.from == peer(from) {
                Fate::Replace(bytes(&message.bytes))
            } else {
                Fate::Pass
            }
        });
        cheated.run()
    };
    for from in [0, 1] {
        let to = 1 - from;
        let pair = Pair::with(1);
        let all = pair.left();
        let outcome = lie(&pair, from, Kind::StockMarks, |bytes| {
            vec![0xff; bytes.len()]
        });
        assert!(matches!(stock_error(&outcome, to), Some(StockError::Word)));
        let outcome = lie(&pair, from, Kind::StockMarks, |bytes| vec![0; bytes.len()]);
        assert!(matches!(
            stock_error(&outcome, to),
            Some(StockError::NoneInCommon {
                own: 1,
                theirs: 0,
                ..
            })
        ));
        // Another generation of the same size.
        let outcome = lie(&pair, from, Kind::StockMarks, |_| {
            word(&[Marks::new([7; 32], 1 << 14)])
        });
        assert!(matches!(
            stock_error(&outcome, to),
            Some(StockError::NoneInCommon {
                own: 1,
                theirs: 1,
                ..
            })
        ));
        // The party that lied has marked cells of a session that the other one has not: one is behind, and catches up.
        assert_eq!(pair.left()[usize::from(to)], all[usize::from(to)]);
        pair.using(job.clone(), (8, 1)).run().assert_right();
        let now = pair.left();
        assert_eq!(now[0], now[1]);
        // The same generation, with other marks.
        let outcome = lie(&pair, from, Kind::StockMarks, |bytes| {
            let mut bytes = bytes.to_vec();
            bytes[8 + 40] ^= 1;
            bytes
        });
        assert!(matches!(
            stock_error(&outcome, to),
            Some(StockError::Forked { .. })
        ));
        assert!(pair.left()[usize::from(to)].is_empty());
        let pair = Pair::with(1);
        let outcome = lie(&pair, from, Kind::StockMarked, |_| vec![0]);
        assert!(matches!(outcome.aborts[&peer(to)], Abort::SetUp { .. }));
        assert!(pair.left()[usize::from(to)].is_empty(), "it is burnt");
    }
}

/// T13: a party that is gone after any number of messages. Nothing is used twice, and a later run goes on.
#[test]
fn parties_that_are_lost_anywhere_go_on_later() {
    let parties = PartyId::TWO.map(Holder::Party);
    let job = adder(3, parties, Audience::Parties);
    for lost in [0, 1] {
        let pair = Pair::with(2 * CELLS_OF_ROW);
        for after in 0..14 {
            let aborted = pair.goes_on_after(&job, lost, after);
            assert!(aborted, "{after} messages are not all");
        }
    }
}

/// None of them holds one party and waits for the other.
#[test]
fn runs_at_the_same_time_take_turns() {
    let job = adder(3, PartyId::TWO.map(Holder::Party), Audience::Parties);
    let pair = Pair::with(CELLS_OF_ROW);
    let [[before], [_]] = pair
        .left()
        .map(|left| <[u64; 1]>::try_from(left).expect("one"));
    let need = need(&pair.using(job.clone(), (8, 1)));
    thread::scope(|runs| {
        for _ in 0..4 {
            runs.spawn(|| {
                for _ in 0..4 {
                    pair.using(job.clone(), (8, 1)).run().assert_right();
                }
            });
        }
    });
    let left = before - 16 * need;
    assert_eq!(pair.left(), [vec![left], vec![left]]);
}

#[test]
fn a_run_that_needs_too_much_begins_nothing() {
    let pair = Pair::with(1);
    let parties = PartyId::TWO.map(Holder::Party);
    let job = adder(2000, parties, Audience::Parties);
    let (world, recorded) = pair.recorded(job, (64, 1));
    let want = need(&world);
    let outcome = world.run();
    // The party that finds it first tells the other.
    let mut said = [0, 1]
        .into_iter()
        .filter_map(|party| stock_error(&outcome, party));
    let Some(StockError::TooFew { need, left, .. }) = said.next() else {
        panic!("{:?}", outcome.aborts);
    };
    assert_eq!((*need, *left), (want, CELLS_OF_ROW));
    recorded[0].assert_none_given();
    assert_eq!(pair.left(), [vec![CELLS_OF_ROW], vec![CELLS_OF_ROW]]);
    // The other one, without its folder.
    let world = World::stocked(adder(1, parties, Audience::Parties), (8, 1), Stock::Used);
    let outcome = world.run();
    assert!(matches!(outcome.aborts[&peer(0)], Abort::Missing(_)));
}

/// A lie while a stock is made: nothing is kept, and the third one within a day ends it.
#[test]
fn a_making_that_fails_leaves_nothing() {
    let pair = Pair::new();
    for number in 1..=3 {
        let world = pair.making(1).cheat(|message: &Message| {
            if message.kind == Some(Kind::OpenedBits) && message.from == peer(0) {
                Fate::Replace(flipped(&message.bytes))
            } else {
                Fate::Pass
            }
        });
        let outcome = world.run();
        assert!(
            matches!(outcome.aborts[&peer(1)], Abort::Cheated { .. }),
            "{number}"
        );
        assert!(pair.left().iter().all(Vec::is_empty));
    }
    let outcome = pair.making(1).run();
    assert!(matches!(
        stock_error(&outcome, 1),
        Some(StockError::Failures { failures: 3 })
    ));
}

#[test]
fn plans_say_where_products_come_from() {
    let parties = PartyId::TWO.map(Holder::Party);
    let of = |job: JobSpec, stock| Plan::stocked(Arc::new(job), Options::default(), stock);
    let malicious = adder(3, parties, Audience::Parties);
    let fresh = of(malicious.clone(), Stock::Fresh).expect("a plan");
    let used = of(malicious.clone(), Stock::Used).expect("a plan");
    assert_ne!(fresh.hash, used.hash);
    assert!(matches!(
        of(malicious.clone(), Stock::Made),
        Err(PlanError::Job(_))
    ));
    let refused = of(cut("adder:9", 3), Stock::Used);
    assert!(matches!(refused, Err(PlanError::NoStock(_))));
    let making = stock_of(["a", "b"].map(str::to_owned), Statistical::USUAL, 1);
    let making = Arc::new(of(making, Stock::Made).expect("a plan"));
    let both = [0, 1].map(|party| protocol(Arc::clone(&making), peer(party)));
    for party in &both {
        let stock = party.stock().expect("it makes some");
        assert!(stock.makes);
        assert_eq!(stock.cells, CELLS_OF_ROW);
    }
    let both: [&dyn Protocol; 2] = [&*both[0], &*both[1]];
    assert!(both.iter().all(|party| party.transfers().is_some()));
    let used = protocol(Arc::new(used), Peer::Party(PartyId::TWO[0]));
    assert!(used.transfers().is_none());
}
