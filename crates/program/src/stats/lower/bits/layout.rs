//! What the ports of a job of two parties hold.

use veil_job::Holder;

use super::Cell;
use crate::stats::{Opening, Stats, StatsBlock, monomial::Monomial};

/// Bytes of a port's name.
const LONGEST: usize = 200;

/// Letters of a column's name that a port's name repeats.
const LETTERS: usize = 40;

/// What the input ports take, and the bits of what is opened.
#[derive(Clone, Debug)]
pub(in crate::stats) struct Layout {
    /// The input ports, in order.
    pub(in crate::stats) ports: Vec<Port>,
    /// What is summed over rows, and the bits that the sum over all of them can need, the sign's among them.
    pub(in crate::stats) sums: Vec<(Monomial, u32)>,
    /// Of each output port its bits, and whether the highest is a sign.
    pub(in crate::stats) opened: Vec<(u32, bool)>,
    /// The block whose order its holders compare.
    pub(in crate::stats) compared: Option<usize>,
}

/// What an input port takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stats) enum Port {
    /// In every cycle, cells of a column in so many rows of a block, the next ones.
    Cells {
        /// The block.
        block: usize,
        /// The column.
        column: usize,
        /// The bits of a cell.
        cell: Cell,
        /// Rows of a cycle.
        rows: u32,
        /// Rows of the first cycles that are none.
        skipped: u64,
    },
    /// All sums over the rows of the blocks whose columns all lie with a holder, each in the bits that the whole sum can need.
    Sums {
        /// Who it is.
        holder: Holder,
    },
    /// An extreme of every group, among the rows of a holder.
    Extremes {
        /// Which one of [`Opening::extremes`].
        extreme: usize,
        /// Who finds it.
        holder: Holder,
    },
}

impl Layout {
    /// Who supplies each input port.
    pub(crate) fn holders(&self, stats: &Stats) -> Vec<Holder> {
        let holder = |port: &Port| match *port {
            Port::Cells { block, column, .. } => stats.blocks[block].holders[column],
            Port::Sums { holder } | Port::Extremes { holder, .. } => holder,
        };
        self.ports.iter().map(holder).collect()
    }

    /// The blocks of which every row is taken.
    pub(crate) fn joint(&self) -> Vec<usize> {
        let blocks = self.ports.iter().filter_map(|port| match *port {
            Port::Cells { block, .. } => Some(block),
            Port::Sums { .. } | Port::Extremes { .. } => None,
        });
        let mut blocks: Vec<usize> = blocks.collect();
        blocks.dedup();
        blocks
    }
}

/// The holder that has all columns of a block that are summed, if it is one alone.
pub(in crate::stats) fn only_holder(block: &StatsBlock, opening: &Opening) -> Option<Holder> {
    let mut holders = opening.columns.iter().map(|&column| block.holders[column]);
    let first = holders.next()?;
    holders.all(|holder| holder == first).then_some(first)
}

/// Rows of the blocks that `holder` sums.
pub(super) fn own_rows(stats: &Stats, opening: &Opening, holder: Holder) -> u64 {
    let blocks = stats.blocks.iter();
    let own = blocks.filter(|block| only_holder(block, opening) == Some(holder));
    own.map(|block| block.rows).sum()
}

/// What a port of a column is called, as the one with this number.
pub(super) fn port_name(column: &str, number: usize) -> String {
    let column: String = column.chars().take(LETTERS).collect();
    format!("{}: {column}", number + 1)
}

/// A name that is not too long.
pub(super) fn cut(name: &str) -> String {
    let mut bytes = 0;
    let fits = |letter: &char| {
        bytes += letter.len_utf8();
        bytes <= LONGEST
    };
    name.chars().take_while(fits).collect()
}

/// A holder in the name of a port.
pub(super) fn holder_name(holder: Holder) -> String {
    match holder {
        Holder::Party(party) => format!("party {}", party.index() + 1),
        Holder::Owner(owner) => format!("owner {}", u32::from(owner) + 1),
        Holder::Stored | Holder::Column => "no holder".into(),
    }
}
