//! Links over libfabric: peers who met over TLS write into each other's memory.
//!
//! Each peer of a link has an endpoint of its own, with a ring of [`SLOTS`] places for packets. The sender seals a packet (AES-GCM, under
//! keys that only the two ends of the TLS connection know, numbered per direction), writes it into the next place by `fi_writedata`, and
//! rings with place and length as completion data. The receiver copies the packet out, opens the copy, and after [`EVERY`] packets gives as
//! much credit back, which is sealed, too. No packet is ever written over one that was not taken, and no peer makes this side hold more
//! than the ring and the limit of [`crate::Bounds`].
//!
//! The TLS connection stays: it has carried the addresses and keys of the rings, tells an abort ahead of everything, and its end is the end
//! of the peer. Frames, limits and faults are the same as of [`crate::tls::TlsLink`].
//!
//! The feature `fabric` brings it, where libfabric's headers are found when this is built; the library itself is looked for when a
//! link is opened.

#[cfg(libfabric)]
mod control;
#[cfg(libfabric)]
mod hello;
#[cfg(libfabric)]
mod link;
#[cfg(libfabric)]
mod region;
#[cfg(libfabric)]
mod ring;
#[cfg(libfabric)]
mod seal;
#[cfg(libfabric)]
mod sys;
#[cfg(libfabric)]
mod wire;

#[cfg(libfabric)]
pub use link::FabricLink;

use crate::Provider;

/// Bytes of rings and packets with one peer, beside the TLS connection.
pub(crate) const BUFFERS: u64 = 2 << 20;

/// Packets that may be in a ring at once.
pub const SLOTS: usize = 16;

/// Bytes of a packet at most, with its seal.
pub const SLOT: usize = 64 * 1024;

/// After so many packets the receiver gives credit for as many.
pub const EVERY: usize = 4;

/// Whether this build, on this machine, has links over `provider`. If not, why, and what to do.
///
/// # Errors
/// The reason and the remedy, in words: libfabric does not load, or offers nothing over this provider here.
#[cfg(libfabric)]
pub fn available(provider: Provider) -> Result<(), String> {
    sys::available(&provider)
}

/// Whether this build, on this machine, has links over `provider`. If not, why, and what to do.
///
/// # Errors
/// The remedy, in words: this build has no links over libfabric.
#[cfg(not(libfabric))]
pub fn available(provider: Provider) -> Result<(), String> {
    let how = if cfg!(feature = "fabric") {
        "it was built where libfabric's headers were missing: `apt-get install libfabric-dev`, and build it again"
    } else {
        "build it with `--features fabric`"
    };
    Err(format!(
        "this build has no links over libfabric ({provider}): {how}"
    ))
}
