//! Correlations by the extension: transfers of random choices, whose labels say the choice in bit 0.

use veil_device::ot::Choices;
use veil_device::{Command, KeyId, Layout, Op, PrfCall, Region, Residency, Span};
use veil_prss::DomainTag;
use veil_session::Peer;

use super::extension::{self, At, Challenge};
use super::silent::Base;
use crate::round::{Cost, Round};

/// Items of choices, and what an item is.
pub(crate) type Items = (u32, Choices);

/// The receiver's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    extension: extension::Receiver,
    choices: Span,
    to: Span,
    draws: PrfCall,
}

impl Receiver {
    /// Adds to a layout what they need. They go `to` a column for each item.
    pub(crate) fn new(
        layout: &mut Layout,
        (peer, base): (Peer, &Base),
        items: Items,
        to: Span,
    ) -> Self {
        let region = layout.add(Region {
            residency: Residency::Resident,
            column: items.1.column(),
            components: 1,
            count: items.0,
        });
        let choices = layout.all(region, 0);
        let with = (base.trees, items);
        Receiver {
            extension: extension::Receiver::new(layout, peer, with, base.challenge, base.leaves)
                .pinned(),
            choices,
            to,
            draws: PrfCall {
                key: base.private,
                tag: DomainTag::OT_BASE,
                first: base.counter(0),
            },
        }
    }

    /// The rounds: [`Challenge::rounds`] of them.
    pub(crate) fn rounds(&self, at: At) -> Vec<Round> {
        let mut rounds = self.extension.rounds(at, self.choices, self.to);
        let mut draw = Command::new(Op::Random, vec![], vec![self.choices]);
        draw.calls = vec![self.draws];
        rounds[0].local.insert(0, draw);
        rounds
    }
}

/// The sender's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    extension: extension::Sender,
    to: Span,
}

impl Sender {
    /// Adds to a layout what they need. They go `to` a column for each item.
    pub(crate) fn new(
        layout: &mut Layout,
        (peer, base, offset): (Peer, &Base, KeyId),
        items: Items,
        to: Span,
    ) -> Self {
        let (with, keys) = ((base.trees, items), (base.leaves, offset));
        Sender {
            extension: extension::Sender::new(layout, peer, with, base.challenge, keys).pinned(),
            to,
        }
    }

    /// The rounds.
    pub(crate) fn rounds(&self, at: At) -> Vec<Round> {
        self.extension.rounds(at, self.to)
    }
}

/// What they cost the sender and the receiver.
pub(crate) fn cost(base: &Base, (items, of): Items) -> [Cost; 2] {
    let Choices::Bytes(bytes) = of else {
        unreachable!("choices of correlations are bytes")
    };
    let trees = u64::from(base.trees.count());
    let corrections = trees * u64::from(items) * u64::from(bytes);
    let told = corrections + 16 * (trees - 1) + 16 * (u64::from(veil_device::ot::COLUMNS) + 1);
    let coin = base.challenge != Challenge::Hash;
    [
        Cost {
            rounds: 1 + u64::from(coin),
            messages: coin.into(),
            bytes: 16 * u64::from(coin),
        },
        Cost {
            rounds: coin.into(),
            messages: 3,
            bytes: told,
        },
    ]
}
