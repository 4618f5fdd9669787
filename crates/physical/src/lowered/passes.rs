//! Passes, one by one: moves and comparisons of words.

use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, Take};

use super::columns::{Taken, no_bit};
use super::{Lowered, Word, defect, refused};
use crate::PhysicalError;

/// What a move does with its rows.
struct How {
    rows: u32,
    rotation: u8,
    kind: MoveKind,
    factors: Option<ColumnId>,
    positions: Option<ColumnId>,
}

impl Lowered<'_> {
    /// A pass of the program: the number of that which has its ports, if it is not left out.
    pub(super) fn pass(
        &mut self,
        number: usize,
        pass: &PassSpec,
    ) -> Result<Option<usize>, PhysicalError> {
        match pass {
            PassSpec::Rows {
                job,
                takes,
                leaves,
                claim,
            } => self.rows(number, job, (takes, leaves), claim.as_deref()),
            PassSpec::Move {
                rows,
                rotation,
                kind,
                takes,
                leaves,
                factors,
                positions,
            } => {
                let how = How {
                    rows: *rows,
                    rotation: *rotation,
                    kind: *kind,
                    factors: *factors,
                    positions: *positions,
                };
                self.moved(&how, takes, leaves)
            }
            PassSpec::Compare {
                job,
                rows,
                of,
                factors,
                positions,
            } => {
                let words = of.iter().map(|of| Ok(self.known(*of)?.column));
                let of = words.collect::<Result<_, PhysicalError>>()?;
                let factors = self.other(*factors)?;
                let positions = positions.map(|positions| self.new_other(positions));
                Ok(Some(self.push(PassSpec::Compare {
                    job: job.clone(),
                    rows: *rows,
                    of,
                    factors,
                    positions,
                })))
            }
            PassSpec::Product { .. } => Err(refused("multiply matrices")),
        }
    }

    /// Words that move, as far as they are read.
    fn moved(
        &mut self,
        how: &How,
        takes: &[(Take, ColumnForm)],
        leaves: &[Option<ColumnId>],
    ) -> Result<Option<usize>, PhysicalError> {
        if matches!(how.kind, MoveKind::Open | MoveKind::Rank) {
            return Err(refused("sort by counting"));
        }
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for ((take, form), column) in takes.iter().zip(leaves) {
            let Some(column) = *column else { continue };
            let own = if self.compared.contains(&column) {
                Some(self.taken_whole(take, *form)?)
            } else {
                self.taken(take, self.reads.bits(column))?
            };
            let word = match own {
                Some(Taken { take, bits }) => {
                    let word = self.word(how.rows, bits);
                    taken.push((take, word.form()?));
                    left.push(Some(word.column));
                    word
                }
                // Zeros are zeros wherever they go.
                None if self.reads.bits(column) > 0 => self.zero(how.rows)?,
                None => continue,
            };
            self.known.insert(column, word);
        }
        let draws = how.kind.draws();
        let needed = how.factors.filter(|of| self.moved_by.contains(of));
        if taken.is_empty() {
            if !draws || needed.is_none() {
                return Ok(None);
            }
            taken.push((no_bit(), ColumnForm::Words(1)));
            left.push(None);
        }
        let factors = match how.factors {
            Some(_) if draws => needed.map(|factors| self.new_other(factors)),
            Some(factors) => Some(self.other(factors)?),
            None => None,
        };
        let positions = how.positions.map(|of| self.other(of)).transpose()?;
        Ok(Some(self.push(PassSpec::Move {
            rows: how.rows,
            rotation: how.rotation,
            kind: how.kind,
            takes: taken,
            leaves: left,
            factors,
            positions,
        })))
    }

    /// Factors or positions that a pass before has left.
    fn other(&self, of: ColumnId) -> Result<ColumnId, PhysicalError> {
        let known = self.others.get(&of).copied();
        known.ok_or_else(|| defect("a pass moves rows as none before it has"))
    }

    /// Those that this pass leaves.
    fn new_other(&mut self, of: ColumnId) -> ColumnId {
        let column = self.column();
        self.others.insert(of, column);
        column
    }

    /// The word that a pass leaves in the place of a column, if something reads it.
    pub(super) fn left(&mut self, column: ColumnId, word: Word) {
        self.known.insert(column, word);
    }
}
