//! Hellos of peers over TLS before the first packet: the addresses of their rings.
//!
//! Little-endian, 152 bytes: version (1), length of the address (1), zeros (6), base (8), key (8), the address in the provider's form
//! and zeros (128). Later comes at most one last word of 9 bytes: its kind, 1 for abort and 2 for the end, and how many
//! packets were sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::LinkFault;

/// Version of this, and of the layout of rings and packets.
const VERSION: u8 = 1;

/// Bytes of the longest address.
pub(super) const ADDRESS: usize = 128;

/// Bytes of a hello.
pub(super) const HELLO: usize = 24 + ADDRESS;

/// Bytes of a last word.
pub(super) const LAST: usize = 9;

/// Where a ring is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    /// What is added to offsets in it.
    pub(super) base: u64,
    /// What one must know to write into it.
    pub(super) key: u64,
    address: [u8; ADDRESS],
    length: u8,
}

/// The last that a side says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LastWord {
    /// It gave up the run.
    Abort,
    /// It has sent so many packets, and sends no more.
    End(u64),
}

impl Hello {
    /// Of a ring at `address`; `None` if that is too long.
    pub(super) fn new(address: &[u8], base: u64, key: u64) -> Option<Self> {
        let mut padded = [0; ADDRESS];
        // One zero at least ends an address that is a string.
        if address.len() >= ADDRESS {
            return None;
        }
        padded[..address.len()].copy_from_slice(address);
        Some(Hello {
            base,
            key,
            address: padded,
            length: address.len() as u8,
        })
    }

    /// The address, and zeros.
    pub(super) const fn padded(&self) -> &[u8; ADDRESS] {
        &self.address
    }

    fn address(&self) -> &[u8] {
        &self.address[..usize::from(self.length)]
    }

    pub(super) fn encode(&self) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        out[0] = VERSION;
        out[1] = self.length;
        out[8..16].copy_from_slice(&self.base.to_le_bytes());
        out[16..24].copy_from_slice(&self.key.to_le_bytes());
        out[24..].copy_from_slice(&self.address);
        out
    }

    /// Reads the hello of the peer at `peer`. Its address must be of the form of `ours`, since the provider believes the form, and name no
    /// other machine.
    pub(super) fn decode(
        bytes: &[u8; HELLO],
        ours: &Hello,
        peer: Option<IpAddr>,
    ) -> Result<Self, LinkFault> {
        let theirs = bytes[0];
        if theirs != VERSION {
            let ours = VERSION;
            return Err(LinkFault::Version { ours, theirs });
        }
        let field = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[from + i]));
        let length = usize::from(bytes[1]);
        let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if length >= ADDRESS || !zeros(&bytes[2..8]) || !zeros(&bytes[24 + length..]) {
            return Err(LinkFault::Malformed("where its ring is makes no sense"));
        }
        let hello = Hello {
            base: field(8),
            key: field(16),
            address: std::array::from_fn(|i| bytes[24 + i]),
            length: length as u8,
        };
        let same_form = length == usize::from(ours.length)
            && match (Form::of(ours.address()), Form::of(hello.address())) {
                (Form::Ip(_), Form::Ip(ip)) => {
                    hello.address[..2] == ours.address[..2] && peer.is_none_or(|peer| peer == ip)
                }
                (Form::Name, Form::Name) | (Form::Other, _) => true,
                _ => false,
            };
        if same_form {
            Ok(hello)
        } else {
            Err(LinkFault::Malformed(
                "its ring is not at an address of its own",
            ))
        }
    }
}

/// What an address looks like.
enum Form {
    /// A socket's, of this machine.
    Ip(IpAddr),
    /// One of our names for memory that is shared within a machine.
    Name,
    Other,
}

impl Form {
    fn of(address: &[u8]) -> Form {
        let family = address.first_chunk().copied().map(u16::from_ne_bytes);
        match (family.map(i32::from), address.len()) {
            (Some(2), 16) => {
                let ip: [u8; 4] = std::array::from_fn(|i| address[4 + i]);
                Form::Ip(Ipv4Addr::from(ip).into())
            }
            (Some(10), 28) => {
                let ip: [u8; 16] = std::array::from_fn(|i| address[8 + i]);
                Form::Ip(Ipv6Addr::from(ip).to_canonical())
            }
            _ if super::region::is_name(address) => Form::Name,
            _ => Form::Other,
        }
    }
}

impl LastWord {
    pub(super) fn encode(self) -> [u8; LAST] {
        let (kind, count) = match self {
            LastWord::Abort => (1, 0),
            LastWord::End(count) => (2, count),
        };
        let mut out = [0; LAST];
        out[0] = kind;
        out[1..].copy_from_slice(&count.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8; LAST]) -> Result<Self, LinkFault> {
        let count = u64::from_le_bytes(std::array::from_fn(|i| bytes[1 + i]));
        match bytes[0] {
            1 if count == 0 => Ok(LastWord::Abort),
            2 => Ok(LastWord::End(count)),
            _ => Err(LinkFault::Malformed("a last word that makes no sense")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8, port: u8) -> Hello {
        let mut address = [0; 16];
        address[..8].copy_from_slice(&[2, 0, 4, port, 10, 0, 0, last]);
        Hello::new(&address, 0, 9).unwrap()
    }

    #[test]
    fn hellos_survive_their_bytes() {
        let (ours, theirs) = (ip(1, 5), ip(2, 6));
        let peer = Some([10, 0, 0, 2].into());
        let read = Hello::decode(&theirs.encode(), &ours, peer);
        assert_eq!(read, Ok(theirs.clone()));
        let elsewhere = Hello::decode(&theirs.encode(), &ours, Some([10, 0, 0, 3].into()));
        assert!(
            matches!(elsewhere, Err(LinkFault::Malformed(_))),
            "another machine"
        );
        for last in [LastWord::Abort, LastWord::End(7)] {
            assert_eq!(LastWord::decode(&last.encode()), Ok(last));
        }
        assert!(LastWord::decode(&[0; LAST]).is_err() && LastWord::decode(&[1; LAST]).is_err());
    }

    /// Whatever the bytes are, what is read is what was sent, of the form of our own address.
    #[test]
    fn damaged_hellos_are_read_or_refused() {
        let name = super::super::region::name(1, 2);
        let name = Hello::new(name.as_bytes(), 3, 4).unwrap();
        for ours in [ip(1, 5), name] {
            let good = ours.encode();
            for at in 0..HELLO {
                for bit in 0..8 {
                    let mut bytes = good;
                    bytes[at] ^= 1 << bit;
                    if let Ok(read) = Hello::decode(&bytes, &ours, None) {
                        assert_eq!(read.encode(), bytes);
                        assert_eq!(read.length, ours.length);
                        assert_eq!(read.address[..2], ours.address[..2]);
                    }
                }
            }
        }
    }
}
