//! The attack on delayed checks (B7), position by position, in programs of passes: every message between parties, from the first pass after the inputs to the
//! last one before an opening, is changed once. Its receiver finds that in the round in which it comes, sends nothing of a later round or pass, and does so
//! at the same place and after the same messages whatever the values are; what recipients get is nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use veil_circuit::Per;
use veil_device::{Command, Cpu, Device, Fault, Op, Tag, Workspace};
use veil_engine::local::{Conditions, Failure, run_program};
use veil_engine::{Abort, Settings};
use veil_job::passes::{MoveKind, ProgramSpec};
use veil_job::{Adversary, Audience, Holder, Security};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_operators::{Builder, Duplicates, Key, Shared, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::{Pass, PassProgram};
use veil_session::{Channel, Peer};

use crate::common::programs::{
    CPU, Ends, Tap, builder, honest, parties, proving, random, run, securities,
};

/// Rows: the last byte of bits is not full.
const ROWS: u32 = 5;

/// The part of a challenge among the messages of a round of proofs.
const CHALLENGE: u16 = 1;

/// A message: from whom, to whom, under which name.
type Message = (Peer, Peer, Channel);

/// Where a message is: its pass, its chunk, its round.
fn place(at: &Channel) -> (u16, u32, u32) {
    (at.frame.epoch, at.frame.chunk, at.step.place)
}

/// The number of each round, in the order in which they begin: places have numbers of their own.
type Rounds = BTreeMap<(u16, u32, u32), usize>;

/// Does something for each item, by several threads: most of a run that ends is waiting.
fn each<T: Sync>(all: &[T], of: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(item) = all.get(next.fetch_add(1, Relaxed)) {
                    of(item);
                }
            });
        }
    });
}

/// Four parties, of whom one may do anything.
fn malicious() -> Security {
    let [.., security] = securities();
    assert_eq!(security.adversary, Adversary::Malicious);
    security
}

/// A program, and how many bits the values of its first passes have, which an owner supplies.
struct Case {
    program: Arc<PassProgram>,
    widths: &'static [u32],
}

/// Moves of all kinds, comparisons, lifts, positions by digits, a sum, products of matrices, and a claim; then everything is opened.
fn moves(security: Security) -> (ProgramSpec, &'static [u32]) {
    let mut b = builder(security, parties(security));
    let mut input = |name, sharing| b.input(Holder::Owner(0), name, ROWS, sharing);
    let wide = input("wide", Sharing::Bits(14));
    let narrow = input("narrow", Sharing::Bits(4));
    let number = input("number", Sharing::Ring(Ring::Z64));
    let bit = input("bit", Sharing::Bits(1));
    let shuffled = b.shuffle(&[narrow, number]);
    let order = b.sort(&Key::of(&[wide]));
    let by_wide = b.apply(&order, &[wide, number]);
    let order = b.sort(&Key::of(&[narrow]));
    let by_narrow = b.apply(&order, &[narrow, bit]);
    let sum = b.count(by_narrow[1]);
    let squares = b.transposed_product(&[number], &[number]);
    let products = b.product(&[number], &squares);
    claim(&mut b, bit);
    let to = Audience::Recipient(0);
    for columns in [shuffled, by_wide, by_narrow, vec![sum], products] {
        b.open(&columns, to, "all that was computed");
    }
    (b.finish(), &[14, 4, 64, 1])
}

/// Products of bits, in passes that move no rows; a claim; an opening.
fn products(security: Security) -> (ProgramSpec, &'static [u32]) {
    let mut b = builder(security, parties(security));
    let mut input = |name, bits| b.input(Holder::Owner(0), name, ROWS, Sharing::Bits(bits));
    let (word, bit) = (input("word", 4), input("bit", 1));
    let mut gates = veil_circuit::Builder::new(Ring::Bits);
    let x = gates.input("x", 4, Per::Row);
    let pairs = [gates.and(x[0], x[1]), gates.and(x[2], x[3])];
    let all = gates.and(pairs[0], pairs[1]);
    gates.output("all", &[all]);
    let circuit = gates.finish().expect("gates in their order");
    let all = b.compute(circuit, ROWS, vec![word.take()]);
    claim(&mut b, bit);
    b.open(&all, Audience::Recipient(0), "whether all bits are 1");
    (b.finish(), &[4, 1])
}

/// Moves of words of all kinds: there, along and back, with and without an order.
fn words(security: Security) -> (ProgramSpec, &'static [u32]) {
    let mut b = builder(security, parties(security));
    let mut input = |name, bits| b.input(Holder::Owner(0), name, ROWS, Sharing::Bits(bits));
    let (wide, narrow, bit) = (input("wide", 14), input("narrow", 4), input("bit", 1));
    let shuffled = b.shuffle(&[narrow, wide]);
    let order = b.sort(&Key::of(&[wide]));
    let by_wide = b.apply(&order, &[wide, narrow]);
    let found = b.look_up(&[wide], &[wide], &[narrow], Duplicates::First);
    claim(&mut b, bit);
    for columns in [shuffled, by_wide, found.columns] {
        b.open(&columns, Audience::Recipient(0), "all that was computed");
    }
    (b.finish(), &[14, 4, 1])
}

/// Claims that no bit of a column is 1 and 0: a product of shares in every row.
fn claim(b: &mut Builder, bit: Shared) {
    let mut gates = veil_circuit::Builder::new(Ring::Bits);
    let [x, y] = ["x", "y"].map(|name| gates.input(name, 1, Per::Row)[0]);
    let not = gates.not(y);
    let both = gates.and(x, not);
    gates.output("both", &[both]);
    let circuit = gates.finish().expect("gates in their order");
    let both = b.compute(circuit, ROWS, vec![bit.take(), bit.take()])[0];
    b.claim_none(both, "no bit is 1 and 0");
}

impl Case {
    fn new((spec, widths): (ProgramSpec, &'static [u32])) -> Self {
        let program = PassProgram::new(&spec, Options::default()).unwrap();
        Case {
            program: Arc::new(program),
            widths,
        }
    }

    /// Values that another seed has nothing in common with.
    fn ends(&self, seed: u64) -> Ends {
        let columns = (seed..).zip(self.widths);
        let columns: Vec<Vec<u128>> = columns
            .map(|(seed, bits)| random(seed, ROWS, *bits))
            .collect();
        Ends::of(&self.program, &columns)
    }

    /// The first pass that opens something to a recipient.
    fn first_opening(&self) -> u16 {
        let opens = |pass: &Pass| {
            let plan = pass.rows();
            plan.is_some_and(|plan| plan.job.audiences.contains(&Audience::Recipient(0)))
        };
        self.program.passes().iter().position(opens).unwrap() as u16
    }

    /// All messages between parties behind the first pass and before what recipients get, each once, and in which order rounds come.
    fn positions(&self) -> (Vec<Message>, Rounds) {
        let all = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&all);
        let tap: Tap = Arc::new(move |from, to, at, bytes| {
            note.lock()
                .unwrap()
                .push(((from, to, at), bytes.is_empty()));
            Fate::Pass
        });
        run(&self.program, &self.ends(5), CPU, &tap).unwrap();
        let sent = all.lock().unwrap();
        let mut rounds = Rounds::new();
        for ((_, _, at), _) in sent.iter() {
            let next = rounds.len();
            rounds.entry(place(at)).or_insert(next);
        }
        let last = self.first_opening();
        let inner = sent.iter().filter(|((from, to, at), empty)| {
            let between = from.party().is_some() && to.party().is_some();
            between && !empty && (1..last).contains(&at.frame.epoch)
        });
        (inner.map(|(message, _)| *message).collect(), rounds)
    }

    /// What is opened, each column in its order: rows that were shuffled have no other.
    fn opened(&self, ends: &Ends) -> Vec<Vec<u128>> {
        let mut columns = ends.opened(&self.program);
        for column in &mut columns {
            column.sort_unstable();
        }
        columns
    }

    /// The same of honest parties.
    fn right(&self, seed: u64) -> Vec<Vec<u128>> {
        let ends = self.ends(seed);
        run(&self.program, &ends, CPU, &honest()).unwrap();
        self.opened(&ends)
    }

    /// A run in which one message is changed: how all participants ended, what recipients have, and what was sent.
    fn lied(&self, lie: Message, seed: u64) -> (Result<(), Failure>, Ends, Vec<Message>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&sent);
        let tap: Tap = Arc::new(move |from, to, at, bytes| {
            note.lock().unwrap().push((from, to, at));
            if (from, to, at) != lie {
                return Fate::Pass;
            }
            let mut bytes = bytes.to_vec();
            bytes[0] ^= 1;
            Fate::Replace(bytes)
        });
        let ends = self.ends(seed);
        let ran = run(&self.program, &ends, CPU, &tap).map(drop);
        let sent = sent.lock().unwrap().clone();
        (ran, ends, sent)
    }

    /// The kind of the pass of a message, in a word.
    fn kind(&self, at: &Channel) -> &'static str {
        match &self.program.passes()[usize::from(at.frame.epoch)] {
            Pass::Move { plan, .. } => match plan.kind {
                MoveKind::There => "there",
                MoveKind::Open => "open",
                MoveKind::Along => "along",
                MoveKind::Back => "back",
                MoveKind::Rank => "rank",
            },
            Pass::Product { .. } => "product",
            pass if pass.compares().is_some() => "compare",
            pass if pass.claim().is_some() => "claim",
            Pass::Rows { .. } => "rows",
        }
    }
}

/// What came of a lie: how its receiver ended, and what the receiver had sent of the pass of the lie.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    at: (u16, u32, u32),
    what: String,
    suspects: Vec<Peer>,
    sent: Vec<Message>,
}

/// A lie among four is found by its receiver in the round in which it came, and nothing of a later round or pass has left.
fn found(case: &Case, rounds: &Rounds, lie: Message, seed: u64) -> Found {
    let (ran, ends, sent) = case.lied(lie, seed);
    let (liar, receiver, at) = lie;
    let failure = ran.expect_err("a lie");
    let (found, suspects, what) = match failure.0.get(&receiver) {
        Some(Abort::Cheated { at, suspects, what }) => (at, suspects.clone(), what),
        other => panic!("{lie:?}: {other:?}"),
    };
    assert_eq!(place(found), place(&at), "{lie:?}: {what}");
    assert!(
        suspects.contains(&liar) && suspects.len() <= 2,
        "{lie:?}: {suspects:?}"
    );
    let own = sent.into_iter().filter(|(from, ..)| *from == receiver);
    let own = own.filter(|(.., of)| of.frame.epoch >= at.frame.epoch);
    let sent: Vec<Message> = own.collect();
    let round = |at: &Channel| rounds.get(&place(at)).copied().unwrap_or(usize::MAX);
    let later = sent.iter().find(|(.., of)| round(of) > round(&at));
    assert!(later.is_none(), "{lie:?}: {later:?}");
    assert!(
        ends.seen.values().all(|seen| seen.slices().is_empty()),
        "{lie:?}"
    );
    Found {
        at: place(found),
        what: what.to_string(),
        suspects,
        sent,
    }
}

#[test]
fn a_wrong_message_of_any_position_is_found_before_anything_depends_on_it() {
    let case = Case::new(moves(malicious()));
    let (all, rounds) = case.positions();
    each(&all, |lie| {
        // Neither where it is found, nor what has left before, says anything of values.
        let [first, second] = [5, 1005].map(|seed| found(&case, &rounds, *lie, seed));
        assert_eq!(first, second, "{lie:?}");
    });
    let mut pairs: BTreeMap<&str, BTreeSet<(Peer, Peer)>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (from, to, at) in &all {
        let kind = case.kind(at);
        pairs.entry(kind).or_default().insert((*from, *to));
        *counts.entry(kind).or_default() += 1;
    }
    println!("{counts:?}");
    // Of a move each party sends something to each other one.
    for kind in ["there", "open", "along", "back"] {
        assert_eq!(pairs[kind].len(), 12, "{kind}");
    }
    for kind in ["rank", "product", "compare", "claim", "rows"] {
        assert!(pairs[kind].len() >= 10, "{kind}: {:?}", pairs[kind]);
    }
}

/// Another device of a party, of which one component is wrong after a command of a kind: the party's messages fit it from then on.
struct Wrong {
    inner: Box<dyn Device>,
    is: fn(&Op) -> bool,
    /// So many commands before it.
    left: Arc<Mutex<Option<usize>>>,
}

impl Device for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        for (at, command) in batch.iter().enumerate() {
            if !(self.is)(&command.op) {
                continue;
            }
            let mut left = self.left.lock().unwrap();
            if *left == Some(0) {
                // What a permutation makes is masked by a command behind it.
                let made = command.dst[0];
                let masked = batch[at + 1..]
                    .iter()
                    .find(|later| later.src.contains(&made));
                let component = masked.map_or(made, |later| later.dst[0]);
                self.inner.map(workspace, component)?[0] ^= 1;
            }
            *left = left.and_then(|left| left.checked_sub(1));
        }
        Ok(())
    }

    veil_device::forward!(self, self.inner, bind load load_key open close write map view poll wipe);
}

/// A run in which a component of one party is wrong after its command `number` of a kind; and how many such commands were left.
fn wrong(
    case: &Case,
    (liar, is, number): (Peer, fn(&Op) -> bool, usize),
    seed: u64,
) -> (Result<(), Failure>, Ends, Option<usize>) {
    let left = Arc::new(Mutex::new(Some(number)));
    let ends = case.ends(seed);
    let conditions = Conditions {
        settings: &|peer| {
            let left = Arc::clone(&left);
            Settings {
                timeout: std::time::Duration::from_secs(2),
                device: Arc::new(move || {
                    let inner: Box<dyn Device> = Box::new(Cpu::detect());
                    let left = Arc::clone(&left);
                    Ok(if peer == liar {
                        Box::new(Wrong { inner, is, left })
                    } else {
                        inner
                    })
                }),
                ..Settings::default()
            }
        },
        wrap: &|_, _, link| Box::new(link),
        stop: None,
    };
    let data = |peer, pass| ends.data(peer, pass);
    let ran = run_program(&case.program, data, &|_| (), &conditions);
    let left = *left.lock().unwrap();
    (ran.map(drop), ends, left)
}

/// Whether it is found: then nothing is opened to recipients in that pass, nor in a later one. It is not where the party is given the component anew before it says
/// anything of it, or no pass takes its column: then what is opened is right.
fn wrong_is_found(
    case: &Case,
    of: (Peer, fn(&Op) -> bool, usize),
    (seed, right): (u64, &[Vec<u128>]),
) -> bool {
    let (ran, ends, _) = wrong(case, of, seed);
    let (liar, _, number) = of;
    let Err(failure) = ran else {
        assert_eq!(case.opened(&ends), right, "{liar}, {number}");
        return false;
    };
    // Where it puts together what it has made wrong itself, this device says so; one that lies would not, and harms its own party alone.
    let found = failure.0.iter().filter_map(|(peer, abort)| match abort {
        Abort::Cheated { at, suspects, .. } => {
            (*peer == liar || suspects.contains(&liar)).then(|| place(at))
        }
        _ => None,
    });
    let first = found.min();
    let first = first.unwrap_or_else(|| panic!("{liar}, {number}: {failure:?}"));
    let opened = ends.seen.iter();
    let mut opened = opened.filter(|(_, seen)| !seen.slices().is_empty());
    assert!(
        opened.all(|(pass, _)| *pass < usize::from(first.0)),
        "{liar}, {number}"
    );
    true
}

/// A party that permutes or masks its own copies otherwise, finds positions or multiplies matrices otherwise, is found at its next joint message of that component, or by the recipient.
#[test]
fn a_wrong_component_of_any_party_is_found_before_it_is_opened() {
    let kinds: [fn(&Op) -> bool; 3] = [
        |op| matches!(op, Op::Permute { .. }),
        |op| matches!(op, Op::Rank(_)),
        |op| matches!(op, Op::MatMul(_)),
    ];
    wrong_components_are_found(&Case::new(moves(malicious())), &kinds);
}

/// The same among three: of what each party permutes, in the steps of moves and in orders.
#[test]
fn a_wrong_component_among_three_is_found_before_it_is_opened() {
    let kinds: [fn(&Op) -> bool; 1] = [|op| matches!(op, Op::Permute { .. })];
    wrong_components_are_found(&Case::new(words(proving())), &kinds);
}

fn wrong_components_are_found(case: &Case, kinds: &[fn(&Op) -> bool]) {
    let rights = [5, 1005].map(|seed| (seed, case.right(seed)));
    let mut counts = Vec::new();
    for is in kinds.iter().copied() {
        for liar in case
            .program
            .first()
            .parties()
            .iter()
            .copied()
            .map(Peer::Party)
        {
            let all = 1 << 20;
            let (ran, _, left) = wrong(case, (liar, is, all), 5);
            ran.unwrap();
            let commands = all - left.unwrap();
            let numbers: Vec<usize> = (0..commands).collect();
            let unused = AtomicUsize::new(0);
            each(&numbers, |number| {
                for (seed, right) in &rights {
                    let of = (liar, is, *number);
                    let found = wrong_is_found(case, of, (*seed, right));
                    unused.fetch_add(usize::from(!found), Relaxed);
                }
            });
            counts.push((commands, unused.into_inner()));
        }
    }
    println!("{counts:?}");
    // Of each party and kind some are used, in one run or both.
    assert!(
        counts.iter().all(|(all, unused)| *unused < 2 * all),
        "{counts:?}"
    );
}

/// Among three parties, one of which may do anything, checks of products and of moves come before whatever is opened: a changed message of a pass ends the run before a message of a
/// later pass is sent.
#[test]
fn among_three_checks_of_products_come_before_every_opening() {
    proofs_come_before_every_opening(&Case::new(products(proving())), &["claim", "rows"]);
}

/// The same of words that move.
#[test]
fn among_three_checks_of_moves_come_before_every_opening() {
    let case = Case::new(words(proving()));
    proofs_come_before_every_opening(
        &case,
        &["along", "back", "claim", "compare", "rows", "there"],
    );
}

fn proofs_come_before_every_opening(case: &Case, kinds: &[&str]) {
    let (all, _) = case.positions();
    let rights = [5, 1005].map(|seed| (seed, case.right(seed)));
    let unused = Mutex::new(BTreeSet::new());
    each(&all, |lie| {
        let (liar, _, at) = *lie;
        for (seed, right) in &rights {
            let (ran, ends, sent) = case.lied(*lie, *seed);
            let Err(failure) = ran else {
                assert_eq!(case.opened(&ends), *right, "{lie:?}");
                unused.lock().unwrap().insert(*lie);
                continue;
            };
            let later = |(from, _, of): &&Message| *from != liar && of.frame.epoch > at.frame.epoch;
            let later = sent.iter().find(later);
            assert!(later.is_none(), "{lie:?}: {later:?}");
            // The party whose message was changed behind its back finds that its own proof does not hold.
            let cheated = |(peer, abort): (&Peer, &Abort)| match abort {
                Abort::Cheated { suspects, .. } => *peer == liar || suspects.contains(&liar),
                _ => false,
            };
            assert!(failure.0.iter().any(cheated), "{lie:?}: {failure:?}");
            let opened = ends.seen.values().any(|seen| !seen.slices().is_empty());
            assert!(!opened, "{lie:?}");
        }
    });
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (.., at) in &all {
        *counts.entry(case.kind(at)).or_default() += 1;
    }
    println!("{counts:?}");
    assert!(counts.keys().eq(kinds), "{counts:?}");
    // A prover needs the last challenge no more: one of each prover, in each pass that has products.
    let unused = unused.into_inner().unwrap();
    let mut of_pass: BTreeMap<u16, BTreeSet<Peer>> = BTreeMap::new();
    for (_, prover, at) in &unused {
        let new = of_pass.entry(at.frame.epoch).or_default().insert(*prover);
        assert!(new && at.part == CHALLENGE, "{unused:?}");
    }
    assert!(
        of_pass.values().all(|provers| provers.len() == 3),
        "{unused:?}"
    );
}
