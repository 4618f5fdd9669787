//! Stock of two parties: what they have made ahead of any job, and jobs use, each item once. There are two kinds ([`StockKind`]).
//!
//! A *cell* is what a gate of authenticated garbling takes: a product \[a\], \[b\], \[c\] with c = a b, and a bit \[r\], of which this party has the MACs of its own
//! parts and the keys of the other party's. A *random transfer* is a label T of the party that evaluates, whose bit 0 is a random choice r, and Q = T ⊕ r Δ of the one that
//! garbles. All items of a *generation* are under the offsets that were drawn when it was made: two for cells, one for transfers.

use std::path::PathBuf;

use veil_session::{Secret, SessionId};

use crate::DataError;

/// What a stock is of. A generation has one kind, and a run takes one kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StockKind {
    /// Cells: MAC and key of a, of b, of c, and of r.
    #[default]
    Cells,
    /// Random transfers: a label.
    Transfers,
}

impl StockKind {
    /// Both.
    pub const ALL: [StockKind; 2] = [StockKind::Cells, StockKind::Transfers];

    /// Blocks of 16 bytes of an item.
    pub const fn fields(self) -> usize {
        match self {
            StockKind::Cells => 8,
            StockKind::Transfers => 1,
        }
    }

    /// Its items, as messages name them.
    pub const fn items(self) -> &'static str {
        match self {
            StockKind::Cells => "cells",
            StockKind::Transfers => "transfers",
        }
    }

    /// One of them.
    pub const fn item(self) -> &'static str {
        match self {
            StockKind::Cells => "cell",
            StockKind::Transfers => "transfer",
        }
    }
}

/// Bytes of what a party says of its stock before a run uses any.
pub const STOCK_WORD: usize = 968;

/// Some items, field by field: 16 bytes of each item, and as many fields as [`StockKind::fields`].
pub type Cells<'a> = [&'a [u8]];

/// Why a run has no stock. Nothing was used then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StockError {
    /// The two parties have no generation in common.
    #[error(
        "the two parties have no stock of {} in common: this one has {own} generations with the other, which names {theirs}, and none is the same; make some with `veil \
         prepare`", kind.items()
    )]
    NoneInCommon {
        /// What was asked for.
        kind: StockKind,
        /// Generations of this party with the other one.
        own: usize,
        /// Generations that the other one names.
        theirs: usize,
    },
    /// No generation has enough.
    #[error(
        "the run takes {need} {} of stock, and no generation that both parties have is left with more than {left}; make more with `veil prepare`", kind.items()
    )]
    TooFew {
        /// What was asked for.
        kind: StockKind,
        /// Items that the run takes.
        need: u64,
        /// The most that a generation has.
        left: u64,
    },
    /// Both ends have used a generation differently: one of them was set back, or goes on twice.
    #[error(
        "stock-forked: the marks of generation {generation} are not those of the other party ({own} of its sessions here, {theirs} there): one of the two was restored \
         from a backup or goes on in two places; the generation is burnt, and nothing of it will be used"
    )]
    Forked {
        /// Which.
        generation: String,
        /// Sessions that have begun here.
        own: u64,
        /// Sessions that have begun at the other end.
        theirs: u64,
    },
    /// What the other end says is not what an end says.
    #[error("the other party says of its stock what no party says")]
    Word,
    /// Another run of this party is about to take from the stock.
    #[error("another run of this party is taking stock at this moment; run again")]
    Busy,
    /// A file that is not what was written.
    #[error("the stock in {} is damaged: {what}; nothing of it was used, and `veil stock` removes it", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Too many checks failed against this peer.
    #[error(
        "{failures} generations with this party were burnt by failed checks within a day, and each attempt is another draw for a party that cheats: find out why, \
         then remove them with `veil stock`"
    )]
    Failures {
        /// How many.
        failures: usize,
    },
    /// The disk would hold more than it may.
    #[error(
        "{cells} {} of stock take {bytes} bytes, and there may be {most}: make fewer, or allow more", kind.items()
    )]
    Budget {
        /// What was asked for.
        kind: StockKind,
        /// Items that were asked for.
        cells: u64,
        /// Bytes of them on the disk.
        bytes: u64,
        /// Bytes that there may be.
        most: u64,
    },
    /// The system refused.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// How a run goes on when both ends have said what they have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Both have the same marks.
    Begins,
    /// The other end was one session behind, and says when it has caught up.
    Waits,
    /// This end was one session behind, has caught up, and says so.
    CaughtUp,
}

/// The stock of a party with the one that it computes with, as a run uses it. Many lanes take from it at once.
///
/// The order of calls is that of the handshake: [`word`](Self::word), [`hear`](Self::hear), [`begin`](Self::begin), then any number of
/// [`take`](Self::take). What `begin` has marked is used, whatever follows.
pub trait StockSource: Send + Sync {
    /// Whether this party tells its word first. Of two parties one does, in all runs of the two: so that no two runs wait for each other.
    fn leads(&self) -> bool;

    /// What this party has, as [`STOCK_WORD`] bytes. No other run of this party begins until this one has begun, or is dropped.
    ///
    /// # Errors
    /// [`StockError`] if the stock cannot be read, is damaged, or another run is about to take from it.
    fn word(&self) -> Result<Vec<u8>, StockError>;

    /// Takes the other party's word, for a run of `need` items.
    ///
    /// # Errors
    /// [`StockError`] if there are too few items, or a generation is forked, which is burnt then.
    fn hear(&self, word: &[u8], need: u64) -> Result<Turn, StockError>;

    /// Marks the items of the run as used, on the disk. The offset of this party; zeros where it has none.
    ///
    /// # Errors
    /// [`StockError`] if that cannot be written, or the stock is damaged.
    fn begin(&self, session: &SessionId) -> Result<Secret, StockError>;

    /// Gives `cells` items from number `first` of those of the run, in pieces: each with the number of its first item, counted from `first`.
    ///
    /// # Errors
    /// [`StockError`] if they cannot be read or are not what was written, or the run has no such items.
    fn take(
        &self,
        first: u64,
        cells: u64,
        give: &mut dyn FnMut(u64, &Cells<'_>),
    ) -> Result<(), StockError>;

    /// A check has failed: nothing of this generation is used again.
    fn burn(&self);
}

/// Where a party puts the stock that a run makes. Many lanes call it at once.
pub trait StockSink: Send + Sync {
    /// The run has begun: its name, and the offset of this party; zeros where it has none.
    ///
    /// # Errors
    /// [`StockError`] if there is no room, or too many checks have failed.
    fn begin(&self, session: &SessionId, offset: &Secret) -> Result<(), StockError>;

    /// Takes items whose checks have passed, from number `first` on, once.
    ///
    /// # Errors
    /// [`StockError`] if the disk does not take them.
    fn put(&self, first: u64, cells: &Cells<'_>) -> Result<(), StockError>;

    /// A check has failed: there is no generation, and the attempt counts.
    fn fail(&self);

    /// All checks of the run have passed at both parties: the generation is complete. Before that there is none.
    ///
    /// # Errors
    /// [`StockError`] if items are missing, or the disk does not take what is left.
    fn finish(&self) -> Result<(), StockError>;
}
