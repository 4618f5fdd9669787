//! Steps of authenticated garbling, to and from the bytes of a record.

use super::decode::{Parsed, Parser};
use super::encode::Writer;
use crate::ag::{Ag, One, Role};
use crate::command::KeyId;

const ROLES: [Role; 2] = [Role::Garbler, Role::Evaluator];

impl Writer<'_> {
    pub(super) fn authenticated(&mut self, step: Ag) {
        let mut roles = |number: u8, offset: KeyId, role: Role| {
            self.u8(number);
            self.u16(offset.0);
            self.u8(role.number() as u8);
        };
        match step {
            Ag::Offer { offset, role } => roles(3, offset, role),
            Ag::Take { offset, role } => roles(4, offset, role),
            Ag::Settle { offset, role } => roles(5, offset, role),
            Ag::Spend { offset, role } => roles(10, offset, role),
            Ag::Pin { bit } => {
                self.u8(0);
                self.u8(bit);
            }
            Ag::Expand => self.u8(1),
            Ag::Bits { bit } => {
                self.u8(2);
                self.u8(bit);
            }
            Ag::Fold { offset: None } => self.u8(6),
            Ag::Fold {
                offset: Some(offset),
            } => {
                self.u8(7);
                self.u16(offset.0);
            }
            Ag::Rotate { layer } => {
                self.u8(8);
                self.u32(layer);
            }
            Ag::Absorb => self.u8(9),
            Ag::Gates { offset, products } => {
                self.u8(if offset.is_some() { 12 } else { 11 });
                self.u32(products);
                if let Some(offset) = offset {
                    self.u16(offset.0);
                }
            }
            Ag::Masks { part, at, one } => {
                self.u8(13);
                self.u8(part);
                self.u32(at);
                match one {
                    One::Nothing => self.u8(0),
                    One::Unit => self.u8(1),
                    One::Offset(offset) => {
                        self.u8(2);
                        self.u16(offset.0);
                    }
                }
            }
            Ag::Garble { at, offset } => {
                self.u8(14);
                self.u32(at);
                self.u16(offset.0);
            }
            Ag::Evaluate { at } => {
                self.u8(15);
                self.u32(at);
            }
            Ag::Expect { offset } => {
                self.u8(16);
                self.u16(offset.0);
            }
        }
    }
}

impl Parser<'_> {
    fn role(&mut self) -> Parsed<(KeyId, Role)> {
        let offset = KeyId(self.u16()?);
        let role = ROLES.get(usize::from(self.u8()?));
        Ok((offset, *role.ok_or("a party that there is not")?))
    }

    pub(super) fn authenticated(&mut self) -> Parsed<Ag> {
        Ok(match self.u8()? {
            0 => Ag::Pin { bit: self.u8()? },
            1 => Ag::Expand,
            2 => Ag::Bits { bit: self.u8()? },
            3 => {
                let (offset, role) = self.role()?;
                Ag::Offer { offset, role }
            }
            4 => {
                let (offset, role) = self.role()?;
                Ag::Take { offset, role }
            }
            5 => {
                let (offset, role) = self.role()?;
                Ag::Settle { offset, role }
            }
            6 => Ag::Fold { offset: None },
            7 => Ag::Fold {
                offset: Some(KeyId(self.u16()?)),
            },
            8 => Ag::Rotate { layer: self.u32()? },
            9 => Ag::Absorb,
            10 => {
                let (offset, role) = self.role()?;
                Ag::Spend { offset, role }
            }
            11 => Ag::Gates {
                products: self.u32()?,
                offset: None,
            },
            12 => Ag::Gates {
                products: self.u32()?,
                offset: Some(KeyId(self.u16()?)),
            },
            13 => Ag::Masks {
                part: self.u8()?,
                at: self.u32()?,
                one: match self.u8()? {
                    0 => One::Nothing,
                    1 => One::Unit,
                    2 => One::Offset(KeyId(self.u16()?)),
                    _ => return Err("an unknown public constant of masks"),
                },
            },
            14 => Ag::Garble {
                at: self.u32()?,
                offset: KeyId(self.u16()?),
            },
            15 => Ag::Evaluate { at: self.u32()? },
            16 => Ag::Expect {
                offset: KeyId(self.u16()?),
            },
            _ => return Err("an unknown step of authenticated garbling"),
        })
    }
}
