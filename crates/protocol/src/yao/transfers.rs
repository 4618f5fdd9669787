//! Oblivious transfers of labels: of each number of wires that comes up, in rows or in the set-up, the regions that they need.

use std::collections::{BTreeMap, BTreeSet};

use veil_device::ot::{COLUMNS, Choices};
use veil_device::{Layout, Span, Trees};
use veil_math::Ring;
use veil_session::Peer;

use super::{EVALUATOR, GARBLER, LEAVES, OFFSET, stock};
use crate::ot::extension::{At, Challenge, Receiver, Sender};
use crate::round::{Cost, Round};

/// Four bits of the offset for each tree.
pub(super) const TREES: Trees = match Trees::new(4) {
    Some(trees) => trees,
    None => unreachable!(),
};

/// The challenge of their check: one flight, as nothing else of a chunk waits for an answer.
const CHALLENGE: Challenge = Challenge::Hash;

/// Label of the hash that is the challenge: other protocols hash other things, in other sessions.
const LABEL: u16 = 1;

/// A participant's end of the transfers, by the number of wires.
#[derive(Clone, Debug)]
pub(crate) enum Ends {
    /// The evaluator's.
    Chooses(BTreeMap<u32, Receiver>),
    /// The garbler's.
    Offers(BTreeMap<u32, Sender>),
    /// Of either, from a stock.
    Stocked(stock::End),
    /// Neither of the two.
    None,
}

impl Ends {
    /// Adds what transfers of so many wires need to the layout of `me`.
    pub(crate) fn new(layout: &mut Layout, me: Peer, wires: &BTreeSet<u32>) -> Self {
        let wires = wires.iter().copied().filter(|wires| *wires > 0);
        let (garbler, evaluator) = (Peer::Party(GARBLER), Peer::Party(EVALUATOR));
        if me == evaluator {
            let mut end = |n| {
                Receiver::new(
                    layout,
                    garbler,
                    (TREES, (n, Choices::Rows)),
                    CHALLENGE,
                    LEAVES,
                )
            };
            Ends::Chooses(wires.map(|n| (n, end(n))).collect())
        } else if me == garbler {
            let keys = (LEAVES, OFFSET);
            let mut end = |n| {
                Sender::new(
                    layout,
                    evaluator,
                    (TREES, (n, Choices::Rows)),
                    CHALLENGE,
                    keys,
                )
            };
            Ends::Offers(wires.map(|n| (n, end(n))).collect())
        } else {
            Ends::None
        }
    }

    /// The same, where they come from a stock.
    pub(super) fn of_stock(layout: &mut Layout, me: Peer, wires: &BTreeSet<u32>) -> Self {
        let most = wires.last().copied().unwrap_or_default();
        match me.party() {
            Some(party) => Ends::Stocked(stock::End::new(layout, party == GARBLER, most)),
            None => Ends::None,
        }
    }

    /// The end of transfers from a stock.
    pub(super) const fn stocked(&self) -> Option<stock::End> {
        match self {
            Ends::Stocked(end) => Some(*end),
            Ends::Chooses(_) | Ends::Offers(_) | Ends::None => None,
        }
    }

    /// The round, of place and first counter of the leaves, of transfers of these bits, which become these labels; an empty one if there are
    /// none.
    pub(crate) fn round(&self, (place, first): (u32, u64), [bits, labels]: [Span; 2]) -> Round {
        let at = At {
            place,
            first,
            label: LABEL,
        };
        let wires = labels.count;
        let rounds = match self {
            Ends::Chooses(ends) => ends.get(&wires).map(|end| end.rounds(at, bits, labels)),
            Ends::Offers(ends) => ends.get(&wires).map(|end| end.rounds(at, labels)),
            Ends::Stocked(_) | Ends::None => None,
        };
        let round = rounds.and_then(|rounds| rounds.into_iter().next());
        round.unwrap_or(Round {
            place,
            ..Round::default()
        })
    }
}

/// What a party sends for the labels of so many wires that come from a stock: the evaluator a bit, the garbler a masked label.
pub(super) fn sent_of_stock(garbles: bool, wires: u32, rows: u64) -> Cost {
    let each = if garbles {
        16 * rows
    } else {
        Ring::Bits.bytes(rows)
    };
    Cost {
        rounds: 0,
        messages: u64::from(wires > 0),
        bytes: u64::from(wires) * each,
    }
}

/// What the evaluator sends for the labels of so many wires: corrections, those of the last block, and folds of its columns.
pub(super) fn sent(wires: u32, rows: u64) -> Cost {
    const BLOCK: u64 = 16;
    if wires == 0 {
        return Cost::default();
    }
    let trees = u64::from(TREES.count());
    let corrections = u64::from(wires) * trees * Ring::Bits.bytes(rows);
    Cost {
        rounds: 0,
        messages: 3,
        bytes: corrections + BLOCK * (trees - 1 + u64::from(COLUMNS) + 1),
    }
}
