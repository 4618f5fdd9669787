//! Where a party's values are in its workspace, and where the host reaches in.

use veil_device::{ColumnType, Layout, Region, Residency, Span};
use veil_job::{Intersection, KEY_BYTES};
use veil_session::PartyId;

use super::{IntersectMessage, encoding};
use crate::plan::WorkspaceOf;
use crate::round::Spans;

const KEYS: u16 = 0;
const DIGESTS: u16 = 1;
const SEED: u16 = 2;
const MASKED: u16 = 3;
const TAGS: u16 = 4;
const COINS: u16 = 5;
const OWN: u16 = 6;
const COMMON: u16 = 7;
const LISTS: u16 = 8;

/// Coins, and what belongs to them.
#[derive(Clone, Copy)]
pub(super) enum Coin {
    Commitment,
    Sender,
    Nonce,
    Receiver,
}

/// Coins there are.
const COIN_COUNT: u32 = 4;

const fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

/// The regions of party `me`: all of them in either workspace, those of keys only in that of keys.
pub(super) fn layout(of: Intersection, me: PartyId, workspace: WorkspaceOf) -> Layout {
    let rows = workspace == WorkspaceOf::Rows;
    let receives = me == of.result;
    let own = of.keys(me) as u32;
    let theirs = of.keys(me.after(1, PartyId::TWO.len())) as u32;
    let sent = if receives { theirs } else { own };
    let when = |there: bool, count: u32| if there { count } else { 0 };
    let (digest, block) = (ColumnType::Bytes(32), ColumnType::Bytes(16));
    let key = ColumnType::Bytes(KEY_BYTES as u32);
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    let length = encoding(of).columns() as u32;
    let all = [
        (mapped, key, when(rows, own)),
        (resident, digest, when(rows, own)),
        (mapped, block, when(rows, 1)),
        (mapped, block, when(rows, length)),
        (mapped, block, when(rows, sent)),
        (mapped, digest, when(rows, COIN_COUNT)),
        (resident, digest, when(rows, 2)),
        (
            Residency::Public,
            ColumnType::Bytes(own.div_ceil(8)),
            when(rows && receives, 1),
        ),
        (mapped, digest, 2),
    ];
    let mut layout = Layout {
        chunk_rows: of.keys(of.result) as u32,
        regions: Vec::new(),
    };
    for (residency, column, count) in all {
        layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        });
    }
    layout
}

/// Keys of this party, as the host puts them there, and hashed.
pub(super) fn keys(of: Intersection, me: PartyId) -> [Span; 2] {
    let count = of.keys(me) as u32;
    [KEYS, DIGESTS].map(|region| span(region, 0, count))
}

/// The seed of the encoding.
pub(super) fn seed() -> Span {
    span(SEED, 0, 1)
}

/// The encoding, masked.
pub(super) fn masked(of: Intersection) -> Span {
    span(MASKED, 0, encoding(of).columns() as u32)
}

/// Digests of the sender's keys.
pub(super) fn tags(of: Intersection) -> Span {
    let sender = of.result.after(1, PartyId::TWO.len());
    span(TAGS, 0, of.keys(sender) as u32)
}

/// What belongs to coins.
pub(super) fn coin(of: Coin) -> Span {
    span(COINS, of as u32, 1)
}

/// The sender's coin, and what hid it.
pub(super) fn opened_coin() -> Span {
    span(COINS, Coin::Sender as u32, 2)
}

/// What follows from both coins.
pub(super) fn both_coins() -> Span {
    span(OWN, 0, 1)
}

/// The sender's commitment, as the receiver computes it.
pub(super) fn own_commitment() -> Span {
    span(OWN, 1, 1)
}

/// Which keys of the receiver the sender has.
pub(super) fn common() -> Span {
    span(COMMON, 0, 1)
}

/// The digest of the list of accepted inputs, of this party or of the other.
pub(super) fn list(mine: bool) -> Span {
    span(LISTS, u32::from(!mine), 1)
}

pub(super) fn spans(of: Intersection, me: PartyId) -> Spans {
    let [keys, _] = keys(of, me);
    Spans {
        inputs: vec![(me.index(), keys)],
        list: Some(list(true)),
        opened: if me == of.result {
            vec![(0, common())]
        } else {
            vec![]
        },
        ..Spans::default()
    }
}

pub(super) fn message(of: Span) -> Option<IntersectMessage> {
    Some(match of.region {
        SEED => IntersectMessage::Seed,
        MASKED => IntersectMessage::Encoding,
        TAGS => IntersectMessage::Tags,
        COINS if of == coin(Coin::Commitment) => IntersectMessage::Commitment,
        COINS if of == coin(Coin::Receiver) => IntersectMessage::ReceiverCoin,
        COINS => IntersectMessage::SenderCoin,
        _ => return None,
    })
}
