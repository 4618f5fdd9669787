//! How many entries come about, and what that costs.

use veil_device::ot::Choices;
use veil_device::{Lpn, Over};

use super::super::correlations;
use super::super::extension::Challenge;
use super::super::silent::{self, Base};
use crate::round::Cost;

/// Correlations of an entry.
pub(super) const OF_ENTRY: u32 = 128;

/// The parameters of silent rounds, and of rounds over blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sets {
    /// Over bits.
    pub silent: Lpn,
    /// Over blocks.
    pub blocks: Lpn,
}

impl Default for Sets {
    fn default() -> Self {
        Sets {
            silent: Lpn::C12,
            blocks: Lpn::V,
        }
    }
}

/// How entries come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Each of 128 transfers of the extension.
    Transfers,
    /// Each of 128 silent transfers.
    Silent {
        /// Silent rounds.
        rounds: u32,
    },
    /// By rounds over blocks, the base of whose first is made of silent transfers.
    Expanded {
        /// Silent rounds.
        rounds: u32,
        /// Rounds over blocks.
        expansions: u32,
    },
}

/// A number of entries, and the way to them. It follows from the number and the sets alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub(super) entries: u32,
    pub(super) sets: Sets,
    pub(super) way: Way,
}

impl Shape {
    /// `entries` entries by the default sets; one if there are none.
    ///
    /// # Panics
    /// If there are more than 10^8, which no workspace holds.
    pub fn of(entries: u32) -> Self {
        let shape = Shape::with(entries, Sets::default());
        shape.expect("fewer entries than the last silent round has levels for")
    }

    /// The same by other sets, which hide what they hide. `None` if the rounds of a set cannot follow each other, or the levels of all rounds over blocks are more than a silent
    /// round makes.
    ///
    /// # Panics
    /// If a set is over what the other one is to be over.
    pub fn with(entries: u32, sets: Sets) -> Option<Self> {
        let over = (sets.silent.over, sets.blocks.over);
        assert_eq!(over, (Over::Bits, Over::Blocks), "what sets are over");
        let entries = entries.max(1);
        let shape = |way| Shape { entries, sets, way };
        if u64::from(entries) * u64::from(OF_ENTRY) <= sets.silent.base() {
            return Some(shape(Way::Transfers));
        }
        // A base is packed of more silent transfers than these.
        if u64::from(entries) <= sets.blocks.base() {
            let rounds = rounds(sets.silent, entries.into(), 0)?;
            return Some(shape(Way::Silent { rounds }));
        }
        let made = sets.blocks.outputs();
        let left = u64::from(entries).saturating_sub(made);
        let expansions = match left {
            0 => 1,
            _ => 1 + left.div_ceil(lasting(sets.blocks).filter(|made| *made > 0)?),
        };
        let expansions = u32::try_from(expansions).ok()?;
        let levels = expansions.checked_mul(level_columns(sets))?;
        let rounds = rounds(sets.silent, sets.blocks.base(), levels)?;
        Some(shape(Way::Expanded { rounds, expansions }))
    }

    /// Number of entries.
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// The way to them.
    pub const fn way(&self) -> Way {
        self.way
    }

    /// Silent rounds, and rounds over blocks.
    pub(crate) const fn rounds(&self) -> (u32, u32) {
        match self.way {
            Way::Transfers => (0, 0),
            Way::Silent { rounds } => (rounds, 0),
            Way::Expanded { rounds, expansions } => (rounds, expansions),
        }
    }

    /// Rounds in the plan, each of which has a place.
    pub const fn places(&self, challenge: Challenge) -> u32 {
        let (silent, expansions) = self.rounds();
        challenge.rounds() + silent::ROUNDS * (silent + expansions)
    }

    /// What all rounds cost the sender and the receiver.
    pub fn cost(&self, base: &Base) -> [Cost; 2] {
        let (rounds, expansions) = self.rounds();
        let first = match self.way {
            Way::Transfers => self.items(),
            _ => silent::items(self.sets.silent),
        };
        let first = correlations::cost(base, first);
        let silent = silent::cost(self.sets.silent);
        let blocks = silent::cost(self.sets.blocks);
        let sealed = 16 * u64::from(self.sets.blocks.trees);
        let (rounds, expansions) = (u64::from(rounds), u64::from(expansions));
        let all = |end: usize, sealed: u64| {
            let sum = |of: fn(&Cost) -> u64| {
                of(&first[end]) + rounds * of(&silent[end]) + expansions * of(&blocks[end])
            };
            Cost {
                rounds: sum(|cost| cost.rounds),
                messages: sum(|cost| cost.messages),
                bytes: sum(|cost| cost.bytes) + expansions * sealed,
            }
        };
        [all(0, sealed), all(1, 0)]
    }

    /// Choices of the extension, if entries are made of its transfers.
    pub(super) fn items(&self) -> correlations::Items {
        (self.entries, Choices::Bytes(OF_ENTRY / 8))
    }

    /// Entries that each silent round is packed to.
    pub(super) fn packed(&self) -> Vec<u32> {
        let (rounds, expansions) = self.rounds();
        let mut left = match expansions {
            0 => u64::from(self.entries),
            _ => self.sets.blocks.base(),
        };
        let each = |round: u32| {
            let lasts = round + 1 < rounds;
            let made = silent::outputs(self.sets.silent, lasts);
            // The last round has levels, too, which it is known to have room for.
            let most = u64::from(made) << self.sets.silent.height;
            let packed = left.min(most / u64::from(OF_ENTRY));
            left -= packed;
            packed as u32
        };
        (0..rounds).map(each).collect()
    }

    /// Blocks of outputs, of which the first are the entries.
    pub(super) fn outputs(&self) -> u32 {
        match self.way {
            Way::Expanded { expansions, .. } => {
                let set = self.sets.blocks;
                let most = u64::from(expansions - 1) * lasting(set).unwrap_or(0) + set.outputs();
                u32::try_from(most).expect("a workspace has no more columns")
            }
            _ => self.entries,
        }
    }
}

/// Outputs of a round that leaves the base of the next one, if it can.
fn lasting(set: Lpn) -> Option<u64> {
    let trees = set.trees.checked_sub(set.base_trees())?;
    Some(u64::from(trees) << set.height)
}

/// Silent rounds for `entries` entries, of which the last one leaves `levels` columns over.
fn rounds(set: Lpn, entries: u64, levels: u32) -> Option<u32> {
    let of = |correlations: u64| correlations / u64::from(OF_ENTRY);
    let last = of(u64::from(set.trees.checked_sub(levels)?) << set.height);
    let left = entries.saturating_sub(last);
    if left == 0 {
        return Some(1);
    }
    let each = of(lasting(set)?);
    u32::try_from(1 + left.checked_div(each)? + u64::from(!left.is_multiple_of(each))).ok()
}

/// Columns of silent transfers that are the levels of a round over blocks.
pub(super) fn level_columns(sets: Sets) -> u32 {
    sets.blocks.levels().div_ceil(sets.silent.leaves())
}
