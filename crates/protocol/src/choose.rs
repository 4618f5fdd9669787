//! Which protocol a job asks for.

use std::sync::Arc;

use veil_program::{Adversary, Delivery, Security, Sharing};
use veil_session::Peer;

use crate::plan::Plan;
use crate::replicated::{Replicated, Scheme};
use crate::round::Protocol;
use crate::{rep3, rep4};

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// Values are shared.
    Shared(&'static Scheme),
}

impl Choice {
    /// What a job of these words asks for; nothing if it is not built.
    pub(crate) fn of(security: Security) -> Option<Self> {
        let Security {
            sharing,
            adversary,
            delivery,
        } = security;
        Some(match (sharing, adversary, delivery) {
            (Sharing::Rep3, Adversary::SemiHonest, Delivery::Abort) => {
                Choice::Shared(&rep3::SCHEME)
            }
            (Sharing::Rep3, Adversary::Malicious, Delivery::Abort) => {
                Choice::Shared(&rep3::MALICIOUS)
            }
            (Sharing::Rep4, Adversary::Malicious, Delivery::Abort) => Choice::Shared(&rep4::SCHEME),
            (Sharing::Rep4, Adversary::Malicious, Delivery::Guaranteed) => {
                Choice::Shared(&rep4::GUARANTEED)
            }
            (Sharing::Rep4, Adversary::SemiHonest, Delivery::Abort) => {
                Choice::Shared(&rep4::SEMI_HONEST)
            }
            _ => return None,
        })
    }

    /// Whether the parties prove that products are right.
    pub(crate) fn proves(self) -> bool {
        match self {
            Choice::Shared(scheme) => scheme.products.proof.is_some(),
        }
    }

    /// Whether every product of bits has one pair of operands: what is proved is proved of one each.
    pub(crate) fn multiplies_singly(self) -> bool {
        self.proves()
    }
}

/// The protocol that the job of a plan asks for, as participant `me` runs it: [`rep3`] or [`rep4`].
pub fn protocol(plan: Arc<Plan>, me: Peer) -> Arc<dyn Protocol> {
    Arc::new(Replicated::new(plan, me))
}
