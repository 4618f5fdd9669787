//! What has been used of a generation: numbers that only grow, and a chain of all sessions that began.
//!
//! Both parties write the same marks when a session begins, before anything depends on its cells. So they differ by one session at most,
//! if a party was ended between. The party that is behind takes the marks of the other one, and writes them before that one goes on. Marks that
//! differ in another way are of a party that was set back or goes on twice (`docs/protocol-ag.md`, "Stock").

use sha2::{Digest, Sha256};
use veil_job::{STOCK_WORD, Turn};

/// Generations that a party names at once.
pub(crate) const NAMED: usize = 8;

/// Bytes of the marks of a generation.
pub(crate) const BYTES: usize = 120;

const _: () = assert!(
    STOCK_WORD == 8 + NAMED * BYTES,
    "a word is a count and marks"
);

/// The marks of a generation at one party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// The name of the generation.
    pub generation: [u8; 32],
    /// Cells that were made.
    pub made: u64,
    /// Cells that are used: those below this number.
    pub used: u64,
    /// Sessions that have begun.
    pub sessions: u64,
    /// The chain of all of them, and what it was before the last one.
    pub chain: [[u8; 32]; 2],
}

/// What follows from the words of both parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// A generation, by its place in this party's list, and how the run goes on with it.
    Of(usize, Turn),
    /// A generation that is forked, by its places in both lists.
    Forked(usize, usize),
    /// Those in common have fewer cells than are needed: the most that one has.
    TooFew(u64),
    /// There is none in common.
    NoneInCommon,
}

impl Marks {
    /// Those of a generation that is made.
    pub fn new(generation: [u8; 32], made: u64) -> Self {
        Marks {
            generation,
            made,
            used: 0,
            sessions: 0,
            chain: [first(&generation), [0; 32]],
        }
    }

    /// Cells that are left.
    pub const fn left(&self) -> u64 {
        self.made.saturating_sub(self.used)
    }

    /// When a session of this name has begun, with so many cells.
    ///
    /// # Panics
    /// If there are not as many.
    #[must_use]
    pub fn advanced(&self, need: u64, session: &[u8; 32]) -> Self {
        assert!(need <= self.left(), "no more is used than there is");
        let (used, sessions) = (self.used + need, self.sessions + 1);
        let mut hash = Sha256::new();
        hash.update(b"veilworks stock session");
        hash.update(self.generation);
        hash.update(sessions.to_le_bytes());
        hash.update(used.to_le_bytes());
        hash.update(self.chain[0]);
        hash.update(session);
        Marks {
            used,
            sessions,
            chain: [hash.finalize().into(), self.chain[0]],
            ..*self
        }
    }

    /// How a run goes on if the other party's of the same generation are `theirs`; nothing if one of the two is not what it was.
    pub fn beside(&self, theirs: &Marks) -> Option<Turn> {
        let one_more = |of: &Marks, than: &Marks| {
            Some(of.sessions) == than.sessions.checked_add(1)
                && of.chain[1] == than.chain[0]
                && of.used >= than.used
                && (of.made, of.generation) == (than.made, than.generation)
        };
        if self == theirs {
            Some(Turn::Begins)
        } else if one_more(theirs, self) {
            Some(Turn::CaughtUp)
        } else if one_more(self, theirs) {
            Some(Turn::Waits)
        } else {
            None
        }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; BYTES] {
        let numbers = [self.made, self.used, self.sessions].map(u64::to_le_bytes);
        let all = [
            &self.generation[..],
            numbers.as_flattened(),
            self.chain.as_flattened(),
        ];
        all.concat().try_into().expect("32 + 24 + 64 bytes")
    }

    /// Of bytes, if they can be marks.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let of: [u8; 8] = bytes[at..at + 8].try_into().expect("8 bytes");
            u64::from_le_bytes(of)
        };
        let block = |at: usize| bytes[at..at + 32].try_into().expect("32 bytes");
        let marks = Marks {
            generation: block(0),
            made: number(32),
            used: number(40),
            sessions: number(48),
            chain: [block(56), block(88)],
        };
        (marks.used <= marks.made).then_some(marks)
    }
}

/// The chain before the first session.
fn first(generation: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"veilworks stock chain");
    hash.update(generation);
    hash.finalize().into()
}

/// What a party says of its stock: the first of its generations.
pub fn word(marks: &[Marks]) -> Vec<u8> {
    let named = &marks[..marks.len().min(NAMED)];
    let mut word = (named.len() as u64).to_le_bytes().to_vec();
    word.extend(named.iter().flat_map(Marks::encode));
    word.resize(STOCK_WORD, 0);
    word
}

/// What a word says, if a party says that.
pub fn heard(word: &[u8]) -> Option<Vec<Marks>> {
    let (count, rest) = word.split_first_chunk::<8>()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    if word.len() != STOCK_WORD || count > NAMED {
        return None;
    }
    let (named, rest) = rest.split_at(count * BYTES);
    let (named, _) = named.as_chunks::<BYTES>();
    let named: Vec<Marks> = named.iter().map(Marks::decode).collect::<Option<_>>()?;
    let twice = (1..named.len()).any(|k| {
        let generation = named[k].generation;
        named[..k]
            .iter()
            .any(|other| other.generation == generation)
    });
    (!twice && rest.iter().all(|byte| *byte == 0)).then_some(named)
}

/// What both parties do, who have the same two words: of the generations in common the one that has enough, and the least beyond.
pub fn choose(mine: &[Marks], theirs: &[Marks], need: u64) -> Choice {
    let mut in_common = Vec::new();
    for (own, of) in mine.iter().take(NAMED).enumerate() {
        let other = theirs
            .iter()
            .position(|other| other.generation == of.generation);
        let Some(other) = other else { continue };
        let Some(turn) = of.beside(&theirs[other]) else {
            return Choice::Forked(own, other);
        };
        let left = of.left().min(theirs[other].left());
        in_common.push((left, of.generation, own, turn));
    }
    let enough = in_common.iter().filter(|(left, ..)| *left >= need);
    let most = in_common.iter().map(|(left, ..)| *left).max();
    match (enough.min_by_key(|of| (of.0, of.1)), most) {
        (Some((.., own, turn)), _) => Choice::Of(*own, *turn),
        (None, Some(left)) => Choice::TooFew(left),
        (None, None) => Choice::NoneInCommon,
    }
}
