//! What both ends have, and what they do alike.

use veil_device::{ColumnType, Command, Layout, Lpn, Op, PrfCall, Region, Residency, Silent, Span};
use veil_prss::DomainTag;
use veil_session::Peer;

use super::super::silent::{self, Base, call, step};
use super::shape::{OF_ENTRY, Shape, Way, level_columns};
use crate::round::{Round, Transfer};

/// An array of blocks of an end: B, A or C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    /// In turns: what a round takes, and what it leaves.
    bases: [Span; 2],
    outputs: Span,
}

impl Array {
    fn new(layout: &mut Layout, shape: &Shape) -> Self {
        let mut add = |count| {
            let region = layout.add(Region {
                residency: Residency::Resident,
                column: ColumnType::Bytes(16),
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        let (_, expansions) = shape.rounds();
        let base = match expansions {
            0 => 0,
            _ => shape.sets.blocks.base_columns(),
        };
        Array {
            bases: [add(base), add(if expansions > 1 { base } else { 0 })],
            outputs: add(shape.outputs()),
        }
    }

    /// What the round takes.
    pub(super) fn taken(&self, number: u32) -> Span {
        self.bases[number as usize % 2]
    }

    /// What the round makes: outputs, and the base of the next one, if there is one.
    fn leaves(&self, set: Lpn, number: u32, lasts: bool) -> [Span; 2] {
        let count = silent::outputs(set, lasts) * set.leaves();
        let next = self.bases[1 - number as usize % 2];
        let before = match number {
            0 => 0,
            _ => number * silent::outputs(set, true) * set.leaves(),
        };
        let outputs = part(self.outputs, before, count);
        [outputs, part(next, 0, set.trees * set.leaves() - count)]
    }
}

/// Columns of a span.
fn part(span: Span, first: u32, count: u32) -> Span {
    Span {
        first: span.first + first,
        count,
        ..span
    }
}

/// What both ends have: the sender one array, the receiver two.
#[derive(Clone, Copy, Debug)]
pub(super) struct End<const N: usize> {
    pub(super) peer: Peer,
    pub(super) base: Base,
    pub(super) shape: Shape,
    pub(super) arrays: [Array; N],
    /// Transfers of the extension, where entries are made of those.
    pub(super) transfers: Span,
    /// Sums of levels, and d of each tree.
    pub(super) message: Span,
    pub(super) challenge: Span,
    pub(super) told: Span,
    pub(super) kept: Span,
    /// The sender's digest; the receiver's own.
    pub(super) digests: [Span; 2],
}

impl<const N: usize> End<N> {
    pub(super) fn new(layout: &mut Layout, peer: Peer, shape: Shape, base: Base) -> Self {
        let arrays = [(); N].map(|()| Array::new(layout, &shape));
        let (_, expansions) = shape.rounds();
        let expands = u32::from(expansions > 0);
        let (block, digest) = (ColumnType::Bytes(16), ColumnType::Bytes(32));
        let (resident, mapped) = (Residency::Resident, Residency::Mapped);
        let mut add = |residency, column, count| {
            let region = layout.add(Region {
                residency,
                column,
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        let transfers = match shape.way {
            Way::Transfers => shape.entries,
            _ => 0,
        };
        let set = shape.sets.blocks;
        End {
            peer,
            base,
            shape,
            arrays,
            transfers: add(resident, ColumnType::Bytes(16 * OF_ENTRY), transfers),
            message: add(mapped, block, expands * (set.levels() + set.trees)),
            challenge: add(resident, digest, expands),
            told: add(mapped, block, expands),
            kept: add(resident, block, expands),
            digests: [add(mapped, digest, expands), add(resident, digest, expands)],
        }
    }

    /// Entries of correlations, from number `first` on of what they are packed to.
    pub(super) fn pack(&self, from: Span, first: u32, count: u32) -> Command {
        let (_, expansions) = self.shape.rounds();
        let to = self.arrays.map(|array| {
            let to = match expansions {
                0 => array.outputs,
                _ => array.taken(0),
            };
            part(to, first, count)
        });
        step(Silent::Pack, vec![from], to.to_vec())
    }

    /// Commands that pack what each silent round makes, whose outputs are at `made` of whether the round lasts.
    fn packs(&self, made: &impl Fn(bool) -> Span) -> Vec<Option<Command>> {
        let set = self.shape.sets.silent;
        let counts = self.shape.packed();
        let (mut first, rounds) = (0, counts.len());
        let pack = |(number, count): (usize, u32)| {
            let columns = (u64::from(count) * u64::from(OF_ENTRY)).div_ceil(set.leaves().into());
            let from = part(made(number + 1 < rounds), 0, columns as u32);
            let pack = (count > 0).then(|| self.pack(from, first, count));
            first += count;
            pack
        };
        counts.into_iter().enumerate().map(pack).collect()
    }

    /// All rounds from `place` on, of which some make the base of silent ones: `silent` makes a silent round, whose outputs are at `made` of whether it lasts, and `expansion` one over
    /// blocks from its levels.
    pub(super) fn rounds(
        &self,
        (mut place, base): (u32, Vec<Round>),
        made: impl Fn(bool) -> Span,
        silent: impl Fn(u32, u64, bool) -> [Round; 3],
        expansion: impl Fn(u32, u32, Span) -> [Round; 3],
    ) -> Vec<Round> {
        let mut rounds = base;
        place += self.base.challenge.rounds();
        let packs = self.packs(&made);
        let last = packs.len();
        for (number, pack) in packs.into_iter().enumerate() {
            let mut three = silent(place, number as u64, number + 1 < last);
            three[2].finish.extend(pack);
            rounds.extend(three);
            place += silent::ROUNDS;
        }
        let (_, expansions) = self.shape.rounds();
        for number in 0..expansions {
            rounds.extend(expansion(place, number, self.levels(number, made(false))));
            place += silent::ROUNDS;
        }
        rounds
    }

    /// The correlations of levels of a round, among the outputs of the last silent round.
    pub(super) fn levels(&self, number: u32, made: Span) -> Span {
        let (_, expansions) = self.shape.rounds();
        let each = level_columns(self.shape.sets);
        part(made, made.count - (expansions - number) * each, each)
    }

    /// Sums of levels, and d of each tree.
    pub(super) fn parts(&self) -> [Span; 2] {
        let set = self.shape.sets.blocks;
        let sealed = part(self.message, set.levels(), set.trees);
        [part(self.message, 0, set.levels()), sealed]
    }

    /// Leaves of all arrays, and the base of the next round.
    pub(super) fn leaves(&self, number: u32) -> [[Span; 2]; N] {
        let (_, expansions) = self.shape.rounds();
        let lasts = number + 1 < expansions;
        let set = self.shape.sets.blocks;
        self.arrays.map(|array| array.leaves(set, number, lasts))
    }

    pub(super) fn starts(&self, tag: DomainTag, number: u32) -> PrfCall {
        let tree = u64::from(number) * u64::from(self.shape.sets.blocks.trees);
        call(self.base.common, tag, self.base.counter(tree))
    }

    /// A digest of the round.
    pub(super) fn digest(&self, label: u16, number: u32, from: Span, to: Span) -> Command {
        let mut hash = Command::new(Op::Hash { label }, vec![from], vec![to]);
        hash.calls = vec![self.starts(DomainTag::VOLE_TREE, number)];
        hash
    }

    pub(super) fn rows(&self, number: u32) -> Command {
        let set = self.shape.sets.blocks;
        let taken = self.arrays.map(|array| array.taken(number)).to_vec();
        let mut rows = step(Silent::Rows { set }, taken, self.leaves(number).concat());
        let first = self.base.counter(u64::from(number) * set.row_blocks());
        rows.calls = vec![call(self.base.common, DomainTag::VOLE_ROWS, first)];
        rows
    }

    pub(super) fn transfer(&self, span: Span) -> Transfer {
        Transfer::new(span, self.peer, 0)
    }

    /// Rounds of a step from a place on, empty.
    pub(super) fn empty(place: u32) -> [Round; 3] {
        [0, 1, 2].map(|k| Round {
            place: place + k,
            ..Round::default()
        })
    }

    pub(super) fn entries(&self, array: usize) -> Span {
        part(self.arrays[array].outputs, 0, self.shape.entries)
    }
}
