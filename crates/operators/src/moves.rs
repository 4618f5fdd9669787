//! Rows that move.

use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, Take};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};

/// A permutation by which rows have moved, opened. It can be undone.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Where each row is that has moved.
    pub(crate) positions: ColumnId,
    pub(crate) factors: ColumnId,
    pub(crate) rotation: u8,
}

impl Opened {
    /// What a move by it takes.
    const fn of(&self, kind: MoveKind) -> (u8, MoveKind, Option<ColumnId>, Option<ColumnId>) {
        (
            self.rotation,
            kind,
            Some(self.factors),
            Some(self.positions),
        )
    }
}

impl Builder {
    /// Moves columns by a permutation that no party knows: their rows, in no order that a party knows.
    ///
    /// # Panics
    /// If there are no columns, or they have not one number of rows.
    pub fn shuffle(&mut self, columns: &[Shared]) -> Vec<Shared> {
        let rows = rows_of(columns);
        let rotation = self.rotation();
        let taken: Vec<(Take, Sharing)> = columns
            .iter()
            .map(|shared| (shared.take(), shared.sharing))
            .collect();
        let parts = grouped(rows, &taken, 0);
        let factors = (parts.len() > 1).then(|| self.column());
        let mut all = Vec::new();
        for (kind, part) in std::iter::once(MoveKind::There)
            .chain(std::iter::repeat(MoveKind::Along))
            .zip(parts)
        {
            let by = (rotation, kind, factors, None);
            let part = part.iter();
            let takes = part.map(|(take, of)| (take.clone(), of.form()));
            all.extend(self.moved(rows, by, takes.collect()));
        }
        let moved = columns.iter().zip(all);
        moved
            .map(|(moved, column)| Shared { column, ..*moved })
            .collect()
    }

    /// A move without an opening: a column for each that it takes.
    pub(crate) fn moved(
        &mut self,
        rows: u32,
        (rotation, kind, factors, positions): (u8, MoveKind, Option<ColumnId>, Option<ColumnId>),
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        let left: Vec<ColumnId> = takes.iter().map(|_| self.column()).collect();
        self.passes.push(PassSpec::Move {
            rows,
            rotation,
            kind,
            takes,
            leaves: left.iter().copied().map(Some).collect(),
            factors,
            positions,
        });
        left
    }

    /// Moves positions, which are a permutation, by one that no party knows, and opens them; what is taken beside moves with them, and is put in their order. It is an opening of a
    /// fresh permutation, always.
    pub(crate) fn open_positions(
        &mut self,
        rows: u32,
        positions: ColumnId,
        beside: Vec<(Take, ColumnForm)>,
    ) -> (Opened, Vec<ColumnId>) {
        let rotation = self.rotation();
        let left: Vec<ColumnId> = beside.iter().map(|_| self.column()).collect();
        let opened = Opened {
            positions: self.column(),
            factors: self.column(),
            rotation,
        };
        let mut takes = vec![(Take::Of(positions), ColumnForm::Ring(Ring::Z32))];
        takes.extend(beside);
        let leaves = std::iter::once(None).chain(left.iter().copied().map(Some));
        self.passes.push(PassSpec::Move {
            rows,
            rotation,
            kind: MoveKind::Open,
            takes,
            leaves: leaves.collect(),
            factors: Some(opened.factors),
            positions: Some(opened.positions),
        });
        (opened, left)
    }

    /// Moves columns by the permutation by which positions have moved before they were opened, and puts them in their order.
    pub(crate) fn move_along(
        &mut self,
        rows: u32,
        by: &Opened,
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        self.moved(rows, by.of(MoveKind::Along), takes)
    }

    /// Takes columns out of the order of opened positions, and moves them back.
    pub(crate) fn go_back(
        &mut self,
        rows: u32,
        by: &Opened,
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        self.moved(rows, by.of(MoveKind::Back), takes)
    }

    /// The positions of rows by a digit, of which these are the indicators.
    pub(crate) fn ranks(
        &mut self,
        rows: u32,
        indicators: impl Iterator<Item = ColumnId>,
    ) -> ColumnId {
        let left = self.column();
        let takes = indicators.map(|column| (Take::Of(column), ColumnForm::Ring(Ring::Z32)));
        self.passes.push(PassSpec::Move {
            rows,
            // Roles alternate, and those of moves go on.
            rotation: self.moves,
            kind: MoveKind::Rank,
            takes: takes.collect(),
            leaves: vec![Some(left)],
            factors: None,
            positions: None,
        });
        left
    }

    pub(crate) fn rotation(&mut self) -> u8 {
        let rotation = self.moves;
        self.moves = self.moves.wrapping_add(1) % 12;
        rotation
    }

    /// Columns taken out of the order of opened positions and moved back, without their first rows.
    pub(crate) fn back_behind(
        &mut self,
        by: &Opened,
        columns: &[Shared],
        first: u32,
    ) -> Vec<Shared> {
        let rows = rows_of(columns);
        let takes = columns.iter();
        let takes = takes.map(|column| (column.take(), column.sharing.form()));
        let back = self.go_back(rows, by, takes.collect());
        let all = columns.iter().zip(back);
        all.map(|(column, back)| {
            self.make(
                Take::shifted(back, first.into()),
                rows - first,
                column.sharing,
            )
        })
        .collect()
    }
}

/// Bytes of a column of a move, at most, that moves together with others: a move has a message, and room in memory, for each.
const TOGETHER: u64 = 4 << 20;

/// Columns that move in one pass each: together as far as they have few bytes, of which the first pass has `first` already.
pub(crate) fn grouped(
    rows: u32,
    columns: &[(Take, Sharing)],
    first: u64,
) -> Vec<&[(Take, Sharing)]> {
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, first * u64::from(rows));
    for (at, (_, sharing)) in columns.iter().enumerate() {
        let more = sharing.form().bytes() * u64::from(rows);
        if bytes + more > TOGETHER && (at > begin || bytes > 0) {
            parts.push(&columns[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += more;
    }
    parts.push(&columns[begin..]);
    if first == 0 {
        parts.retain(|part| !part.is_empty());
    }
    parts
}

/// The rows of columns of one relation.
pub(crate) fn rows_of(columns: &[Shared]) -> u32 {
    let rows = columns.first().expect("a move is of columns").rows;
    assert!(
        columns.iter().all(|moved| moved.rows == rows),
        "columns of one relation have one number of rows"
    );
    rows
}
