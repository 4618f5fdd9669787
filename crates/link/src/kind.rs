//! Kinds of links that carry the bytes of a job, by name: all its participants name the same.

use std::fmt;
use std::str::FromStr;

use crate::tls::{Connected, TlsLink};
use crate::{Bounds, Link, LinkError};
#[cfg(not(libfabric))]
use {crate::LinkFault, veil_session::Peer};

/// The kind of link that carries the bytes between participants which met over TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkKind {
    /// The TLS connections by which they met.
    #[default]
    Tls,
    /// Writes into each other's memory, by libfabric.
    Fabric(Provider),
}

/// A provider of libfabric, such as `tcp`, `shm` or `verbs;ofi_rxm`: 1 to [`Provider::LONGEST`] lower-case letters, digits and `_-;`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Provider([u8; Provider::LONGEST]);

/// Not the name of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a link is called `tls`, `fabric` or `fabric:PROVIDER`, where the provider is one of libfabric, such as tcp or shm"
)]
pub struct NoLink;

impl Provider {
    /// Longest name, in bytes.
    pub const LONGEST: usize = 16;

    /// The provider over ordinary networks.
    pub const TCP: Provider = Provider(*b"tcp\0\0\0\0\0\0\0\0\0\0\0\0\0");

    /// The provider within a machine.
    pub const SHM: Provider = Provider(*b"shm\0\0\0\0\0\0\0\0\0\0\0\0\0");

    /// Its name.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&self.0[..end.unwrap_or(self.0.len())]).unwrap_or_default()
    }
}

impl FromStr for Provider {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        let good =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-;".contains(&byte);
        if text.is_empty() || text.len() > Self::LONGEST || !text.bytes().all(good) {
            return Err(NoLink);
        }
        let mut name = [0; Self::LONGEST];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Provider(name))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LinkKind {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        match text.split_once(':') {
            None if text == "tls" => Ok(LinkKind::Tls),
            None if text == "fabric" => Ok(LinkKind::Fabric(Provider::TCP)),
            Some(("fabric", provider)) => Ok(LinkKind::Fabric(provider.parse()?)),
            _ => Err(NoLink),
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkKind::Tls => f.write_str("tls"),
            LinkKind::Fabric(provider) => write!(f, "fabric:{provider}"),
        }
    }
}

/// Bytes of a TLS connection's own buffers, both ways: what is read from the socket at once, what waits for it, and TLS between.
const TLS: u64 = 1 << 20;

impl LinkKind {
    /// Bytes of a connection's own buffers, without the messages in them. The memory that a provider of libfabric takes for itself is
    /// unknown.
    pub const fn buffers(self) -> u64 {
        match self {
            LinkKind::Tls => TLS,
            LinkKind::Fabric(_) => TLS + crate::fabric::BUFFERS,
        }
    }

    /// Whether this build, on this machine, has it. If not, why, and what to do.
    ///
    /// # Errors
    /// The reason and the remedy, in words, if links over the provider need libfabric and this build or this machine has none.
    pub fn check(&self) -> Result<(), String> {
        match self {
            LinkKind::Tls => Ok(()),
            LinkKind::Fabric(provider) => crate::fabric::available(*provider),
        }
    }

    /// Makes the link of `connections`, all of the same lane, that was agreed when they were made.
    ///
    /// # Errors
    /// [`crate::LinkFault::Local`] if this build or this machine has no links of this kind. A link over TLS always opens.
    pub fn open(
        self,
        connections: Vec<Connected>,
        bounds: Bounds,
    ) -> Result<Box<dyn Link>, LinkError> {
        match self {
            LinkKind::Tls => Ok(Box::new(TlsLink::new(connections, bounds))),
            #[cfg(libfabric)]
            LinkKind::Fabric(provider) => {
                let link = crate::fabric::FabricLink::open(connections, provider, bounds)?;
                Ok(Box::new(link))
            }
            #[cfg(not(libfabric))]
            LinkKind::Fabric(provider) => Err(LinkError {
                peer: connections.first().map_or(Peer::Owner(0), Connected::peer),
                at: None,
                fault: LinkFault::Local(
                    crate::fabric::available(provider).err().unwrap_or_default(),
                ),
            }),
        }
    }

    /// As participants tell each other: the provider's name, filled up with zeros, or zeros alone.
    pub(crate) const fn to_bytes(self) -> [u8; Provider::LONGEST] {
        match self {
            LinkKind::Tls => [0; Provider::LONGEST],
            LinkKind::Fabric(provider) => provider.0,
        }
    }

    /// What [`LinkKind::to_bytes`] gave.
    pub(crate) fn from_bytes(bytes: [u8; Provider::LONGEST]) -> Option<Self> {
        let kind = match bytes.iter().position(|byte| *byte == 0) {
            Some(0) => LinkKind::Tls,
            end => {
                let name = &bytes[..end.unwrap_or(bytes.len())];
                LinkKind::Fabric(std::str::from_utf8(name).ok()?.parse().ok()?)
            }
        };
        (kind.to_bytes() == bytes).then_some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_their_text_and_their_bytes() {
        for name in [
            "tls",
            "fabric:tcp",
            "fabric:verbs;ofi_rxm",
            "fabric:0123456789abcdef",
        ] {
            let kind: LinkKind = name.parse().unwrap();
            assert_eq!(kind.to_string(), name);
            assert_eq!(LinkKind::from_bytes(kind.to_bytes()), Some(kind));
        }
        assert_eq!("fabric".parse(), Ok(LinkKind::Fabric(Provider::TCP)));
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "TLS",
            "fabric:",
            "fabric:a b",
            "fabric:0123456789abcdefg",
            "tls:tcp",
        ] {
            assert_eq!(name.parse::<LinkKind>(), Err(NoLink), "{name}");
        }
        let mut bytes = LinkKind::Fabric(Provider::SHM).to_bytes();
        bytes[15] = b'x';
        assert_eq!(
            LinkKind::from_bytes(bytes),
            None,
            "something after the end of a name"
        );
        assert_eq!(LinkKind::from_bytes([0xff; 16]), None);
        bytes = [0; 16];
        bytes[15] = 1;
        assert_eq!(LinkKind::from_bytes(bytes), None);
    }
}
