//! Steps of silent transfers in a record.

use super::decode::{Parsed, Parser};
use super::encode::Writer;
use crate::{KeyId, Lpn, Silent};

impl Writer<'_> {
    pub(super) fn silent(&mut self, step: Silent) {
        let set = |w: &mut Self, number, set: Lpn| {
            w.u8(number);
            w.u32(set.trees);
            w.u8(set.log_secret);
            w.u8(set.height);
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
        }
        if let Some(offset) = step.offset() {
            self.u16(offset.0);
        }
    }
}

impl Parser<'_> {
    pub(super) fn silent(&mut self) -> Parsed<Silent> {
        let key = |p: &mut Self| p.u16().map(KeyId);
        let set = |p: &mut Self| -> Parsed<Lpn> { Ok(Lpn::of(p.u32()?, p.u8()?, p.u8()?)) };
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
            _ => return Err("an unknown step of silent transfers"),
        })
    }
}
