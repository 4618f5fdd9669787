//! Steps of silent transfers in a record.

use super::decode::{Parsed, Parser};
use super::encode::Writer;
use crate::{KeyId, Lpn, Over, Silent};

impl Writer<'_> {
    pub(super) fn silent(&mut self, step: Silent) {
        let set = |w: &mut Self, number, set: Lpn| {
            w.u8(number);
            w.u32(set.trees);
            w.u8(set.log_secret);
            w.u8(set.height);
            w.u8(match set.over {
                Over::Bits => 0,
                Over::Blocks => 1,
            });
        };
        match step {
            Silent::Grow { set: of, .. } => set(self, 0, of),
            Silent::Puncture { set: of } => set(self, 1, of),
            Silent::Ask { set: of } => set(self, 2, of),
            Silent::Answer { set: of, .. } => set(self, 3, of),
            Silent::Rows { set: of } => set(self, 4, of),
            Silent::Choose { first } => {
                self.u8(5);
                self.u64(first);
            }
            Silent::Turn { first, .. } => {
                self.u8(6);
                self.u64(first);
            }
            Silent::Give { set: of } => set(self, 7, of),
            Silent::Fill { set: of } => set(self, 8, of),
            Silent::Pack => self.u8(9),
            Silent::Take { first, at, count } => {
                self.u8(10);
                for number in [first, at, count] {
                    self.u64(number);
                }
            }
        }
        if let Some(offset) = step.offset() {
            self.u16(offset.0);
        }
    }
}

impl Parser<'_> {
    pub(super) fn silent(&mut self) -> Parsed<Silent> {
        let key = |p: &mut Self| p.u16().map(KeyId);
        let set = |p: &mut Self| -> Parsed<Lpn> {
            let of = (p.u32()?, p.u8()?, p.u8()?);
            match p.u8()? {
                0 => Ok(Lpn::of(of.0, of.1, of.2)),
                1 => Ok(Lpn::over_blocks(of.0, of.1, of.2)),
                _ => Err("a code over neither bits nor blocks"),
            }
        };
        Ok(match self.u8()? {
            0 => Silent::Grow {
                set: set(self)?,
                offset: key(self)?,
            },
            1 => Silent::Puncture { set: set(self)? },
            2 => Silent::Ask { set: set(self)? },
            3 => Silent::Answer {
                set: set(self)?,
                offset: key(self)?,
            },
            4 => Silent::Rows { set: set(self)? },
            5 => Silent::Choose { first: self.u64()? },
            6 => Silent::Turn {
                first: self.u64()?,
                offset: key(self)?,
            },
            7 => Silent::Give { set: set(self)? },
            8 => Silent::Fill { set: set(self)? },
            9 => Silent::Pack,
            10 => Silent::Take {
                first: self.u64()?,
                at: self.u64()?,
                count: self.u64()?,
            },
            _ => return Err("an unknown step of silent transfers"),
        })
    }
}
