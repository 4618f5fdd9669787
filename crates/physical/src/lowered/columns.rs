//! What passes take of columns, as words of fewer bits.

use veil_circuit::{Builder, Per, Wire};
use veil_job::passes::{ColumnForm, ColumnId, MadeSpec, PassSpec, Take};
use veil_math::Ring;

use super::{Lowered, Word, defect, form_of, refused};
use crate::PhysicalError;
use crate::bits::words;

/// What a port takes: so many low bits of a word, above which all are zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Taken {
    pub(super) take: Take,
    /// 1 to 128.
    pub(super) bits: u32,
}

/// A public bit that is 0 in every row.
pub(super) const fn no_bit() -> Take {
    Take::Within { first: 0, end: 0 }
}

/// The word that a port takes in every row, by name and width, in so many bits.
pub(super) fn port(b: &mut Builder, (name, width): (&str, u32), bits: u32) -> Vec<Wire> {
    let own = b.input(name, width, Per::Row);
    words::extended(b, &own, bits as usize)
}

impl Lowered<'_> {
    /// A column of the program, as a word.
    pub(super) fn known(&self, column: ColumnId) -> Result<Word, PhysicalError> {
        let known = self.known.get(&column).copied();
        known.ok_or_else(|| defect("a pass takes what no pass before it has left"))
    }

    /// What is taken, of which so many low bits are read: nothing if all of them are known to be zero.
    pub(super) fn taken(&mut self, take: &Take, read: u32) -> Result<Option<Taken>, PhysicalError> {
        let (of, first, count) = match take {
            Take::Bits { of, first, count } => (&**of, *first, *count),
            Take::Within { .. } => {
                let take = take.clone();
                return Ok((read > 0).then_some(Taken { take, bits: 1 }));
            }
            of => (of, 0, u128::BITS),
        };
        if read == 0 || count == 0 {
            return Ok(None);
        }
        let Taken { take, bits } = self.elements(of, 0)?;
        let count = count.min(read).min(bits.saturating_sub(first));
        if count == 0 {
            return Ok(None);
        }
        let all = first == 0 && count == bits;
        let take = if all { take } else { take.bits(first, count) };
        Ok(Some(Taken { take, bits: count }))
    }

    /// Elements of columns, of at least so many bits.
    pub(super) fn elements(&mut self, take: &Take, least: u32) -> Result<Taken, PhysicalError> {
        let mut alike = |of: &[ColumnId]| self.alike(of, least);
        let (take, bits) = match take {
            Take::Of(of) => {
                let (of, bits) = alike(&[*of])?;
                (Take::Of(of[0]), bits)
            }
            Take::Rows { of, first, step } => {
                let (of, bits) = alike(of)?;
                let (first, step) = (*first, *step);
                (Take::Rows { of, first, step }, bits)
            }
            Take::Turns { even, odd } => {
                let (of, bits) = alike(&[*even, *odd])?;
                let (even, odd) = (of[0], of[1]);
                (Take::Turns { even, odd }, bits)
            }
            Take::View { of, axes } => {
                let (of, bits) = alike(of)?;
                let axes = axes.clone();
                (Take::View { of, axes }, bits)
            }
            Take::Public { .. } => {
                return Err(refused("take public numbers that follow no rule"));
            }
            Take::Bits { .. }
            | Take::Within { .. }
            | Take::Numbered { .. }
            | Take::Compared { .. }
            | Take::Sums { .. } => return Err(defect("elements are taken of columns")),
        };
        Ok(Taken { take, bits })
    }

    /// Columns in the form of the widest of them, which has at least so many bits.
    fn alike(
        &mut self,
        of: &[ColumnId],
        least: u32,
    ) -> Result<(Vec<ColumnId>, u32), PhysicalError> {
        let words = of.iter().map(|of| self.known(*of));
        let words: Vec<Word> = words.collect::<Result<_, _>>()?;
        let widest = words.iter().map(|word| word.bits).max();
        let bits = widest.unwrap_or(1).max(least);
        let form = form_of(bits)?;
        let mut all = Vec::with_capacity(words.len());
        for word in words {
            let word = if word.form()? == form {
                word
            } else {
                self.wider(word, bits)?
            };
            all.push(word.column);
        }
        Ok((all, bits))
    }

    /// A word with zeros above it.
    fn wider(&mut self, word: Word, bits: u32) -> Result<Word, PhysicalError> {
        if let Some(wider) = self.wider.get(&(word.column, bits)) {
            return Ok(*wider);
        }
        let mut b = Builder::new(Ring::Bits);
        let all = port(&mut b, ("word", word.bits), bits);
        b.output("word", &all);
        let wider = self.computed(b, word.rows, (vec![Take::Of(word.column)], bits))?;
        self.wider.insert((word.column, bits), wider);
        Ok(wider)
    }

    /// A word that is zero in every row.
    pub(super) fn zero(&mut self, rows: u32) -> Result<Word, PhysicalError> {
        if let Some(zero) = self.zeros.get(&rows) {
            return Ok(*zero);
        }
        let mut b = Builder::new(Ring::Bits);
        let zero = b.input("zero", 1, Per::Row);
        b.output("zero", &zero);
        let zero = self.computed(b, rows, (vec![no_bit()], 1))?;
        self.zeros.insert(rows, zero);
        Ok(zero)
    }

    /// What a circuit of one output port leaves, of so many bits.
    pub(super) fn computed(
        &mut self,
        b: Builder,
        rows: u32,
        (takes, bits): (Vec<Take>, u32),
    ) -> Result<Word, PhysicalError> {
        let job = self.common(b, rows)?;
        let word = self.word(rows, bits);
        self.push(PassSpec::Rows {
            job,
            takes: takes.into_iter().map(Some).collect(),
            leaves: vec![Some(word.column)],
            claim: None,
        });
        Ok(word)
    }

    /// A column that parties make by themselves, before the next pass.
    pub(super) fn make(&mut self, taken: Taken, rows: u32) -> Result<Word, PhysicalError> {
        let word = self.word(rows, taken.bits);
        self.passes.made.push(MadeSpec {
            before: self.passes.passes.len() as u32,
            take: taken.take,
            form: word.form()?,
            rows,
            column: word.column,
        });
        Ok(word)
    }

    /// What parties make by themselves between passes.
    pub(super) fn made(&mut self, made: &MadeSpec) -> Result<(), PhysicalError> {
        let word = match self.taken(&made.take, self.reads.bits(made.column))? {
            // Nothing reads it, or it is zero.
            None if self.reads.bits(made.column) == 0 => return Ok(()),
            None => self.zero(made.rows)?,
            // The column itself.
            Some(Taken {
                take: Take::Of(column),
                bits,
            }) => Word {
                column,
                rows: made.rows,
                bits,
            },
            Some(taken) => self.make(taken, made.rows)?,
        };
        self.known.insert(made.column, word);
        Ok(())
    }

    /// What a move takes of words that are compared, whose bits are those that the comparison has; and how many these are.
    pub(super) fn taken_whole(
        &mut self,
        take: &Take,
        form: ColumnForm,
    ) -> Result<Taken, PhysicalError> {
        match take {
            Take::Numbered { of: None, bits } => Ok(Taken {
                take: take.clone(),
                bits: *bits,
            }),
            Take::Numbered { of: Some(of), bits } => {
                let Take::Bits { count, .. } = **of else {
                    return Err(defect("numbers are below bits of words"));
                };
                let of = Some(Box::new(self.whole(of, count)?));
                let take = Take::Numbered { of, bits: *bits };
                let bits = count + bits;
                Ok(Taken { take, bits })
            }
            Take::Within { .. } => Ok(Taken {
                take: take.clone(),
                bits: 1,
            }),
            take => {
                let count = match take {
                    Take::Bits { count, .. } => *count,
                    _ => 8 * form.bytes() as u32,
                };
                let take = self.whole(take, count)?;
                Ok(Taken { take, bits: count })
            }
        }
    }

    /// So many bits of words, of which those above a word's own are zeros.
    fn whole(&mut self, take: &Take, count: u32) -> Result<Take, PhysicalError> {
        let (of, first) = match take {
            Take::Bits { of, first, .. } => (&**of, *first),
            of => (of, 0),
        };
        let words = self.elements(of, first.saturating_add(count))?;
        Ok(words.take.bits(first, count))
    }
}
