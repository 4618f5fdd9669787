//! Who keeps its place among the pending connections: no caller, member or not, can hold them all.

use std::net::{IpAddr, Ipv4Addr};

use super::LONGEST_REQUEST;
use super::caller::Pending;
use crate::tls::identity::Fingerprint;

/// Connections that may be pending at once; strangers cost no more than that.
pub(super) const PENDING: usize = 64;

/// Places that members cannot take from those who have yet to show a key.
const UNKNOWN: usize = PENDING / 2;

/// Requests of one member that may be on their way in at once.
pub(super) const REQUESTS: usize = 8;

/// Bytes of one member's requests that are held until the last of them has come: two of the longest.
const BYTES: usize = 2 * LONGEST_REQUEST;

/// Whose a pending connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// It showed the key of a member.
    Member(Fingerprint),
    /// It showed no key, or one that is no member's: keys are free, addresses in a network less so.
    Unknown(AddressRange),
}

/// The range of addresses that counts as one caller: an address of IPv4, whichever way it is written, or the first 64 bits of one of IPv6. A caller
/// with one address of IPv6 has all that begin so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressRange {
    Address(Ipv4Addr),
    Prefix([u16; 4]),
}

impl AddressRange {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => AddressRange::Address(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                AddressRange::Prefix([a, b, c, d])
            }
        }
    }
}

impl Holder {
    /// Of a caller that has shown no key yet.
    pub(super) fn unknown(address: IpAddr) -> Self {
        Holder::Unknown(AddressRange::of(address))
    }

    const fn is_member(self) -> bool {
        matches!(self, Holder::Member(_))
    }
}

/// Whose place a newcomer gets, when all are taken: the oldest of the place with most connections that show no member's key;
/// if such connections have less than their part, the oldest of the member with most. So a caller that opens many connections only
/// loses its own.
pub(super) fn crowded(pending: &[Pending]) -> Option<usize> {
    let unknown = pending.iter().filter(|one| !one.holder().is_member());
    let member = unknown.count() < UNKNOWN;
    let held = |holder: Holder| pending.iter().filter(|one| one.holder() == holder).count();
    let candidates = pending
        .iter()
        .enumerate()
        .filter(|(_, one)| one.holder().is_member() == member);
    let victim =
        candidates.max_by_key(|(_, one)| (held(one.holder()), std::cmp::Reverse(one.since())));
    victim.map(|(index, _)| index)
}

/// The oldest request of a member that has too many on their way in.
pub(super) fn overdrawn(pending: &[Pending]) -> Option<usize> {
    let asks = |one: &&Pending| one.asks() && one.holder().is_member();
    let many = |one: &Pending| {
        let of = pending.iter().filter(asks);
        let (mut requests, mut bytes) = (0, 0);
        for other in of.filter(|other| other.holder() == one.holder()) {
            requests += 1;
            bytes += other.received();
        }
        requests > REQUESTS || bytes > BYTES
    };
    let candidates = pending.iter().enumerate();
    candidates
        .filter(|(_, one)| asks(one) && many(one))
        .min_by_key(|(_, one)| one.since())
        .map(|(index, _)| index)
}
