//! Steps of intersections in a record.

use super::decode::{Parsed, Parser};
use super::encode::Writer;
use crate::{KeyId, Okvs, Psi};

impl Writer<'_> {
    pub(super) fn intersection(&mut self, step: Psi) {
        let store = |w: &mut Self, number, okvs: Okvs| {
            w.u8(number);
            w.u32(okvs.bins);
            w.u32(okvs.sparse);
            w.u32(okvs.dense);
        };
        match step {
            Psi::Hash => self.u8(0),
            Psi::Encode { okvs } => store(self, 1, okvs),
            Psi::Tags { okvs, offset } => {
                store(self, 2, okvs);
                self.u16(offset.0);
            }
            Psi::Match { okvs } => store(self, 3, okvs),
        }
    }
}

impl Parser<'_> {
    pub(super) fn intersection(&mut self) -> Parsed<Psi> {
        let store = |p: &mut Self| -> Parsed<Okvs> {
            Ok(Okvs {
                bins: p.u32()?,
                sparse: p.u32()?,
                dense: p.u32()?,
            })
        };
        Ok(match self.u8()? {
            0 => Psi::Hash,
            1 => Psi::Encode { okvs: store(self)? },
            2 => Psi::Tags {
                okvs: store(self)?,
                offset: KeyId(self.u16()?),
            },
            3 => Psi::Match { okvs: store(self)? },
            _ => return Err("an unknown step of an intersection"),
        })
    }
}
