//! Which protocol a job asks for.

use std::sync::Arc;

use veil_device::Garbling;
use veil_job::{Adversary, Delivery, JobSpec, ProtocolKind, Security, Tables};
use veil_session::Peer;

use crate::ag;
use crate::cut::CutAndChoose;
use crate::intersect::Intersected;
use crate::plan::{Plan, Stock};
use crate::replicated::{Replicated, Scheme};
use crate::round::Protocol;
use crate::yao::{Making, Yao};
use crate::{rep3, rep4};

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// Values are shared.
    Shared(&'static Scheme),
    /// Wires have labels.
    Garbled(Garbling),
    /// Wires have labels in many circuits, of which some are opened.
    Cut,
    /// Wires have labels, and masks with MACs.
    Authenticated,
    /// Keys of two parties meet.
    Intersected,
}

impl Choice {
    /// What a job asks for; nothing if it is not built.
    pub(crate) fn of_job(job: &JobSpec) -> Option<Self> {
        let choice = Choice::of(job.security)?;
        match (job.intersection(), choice) {
            (None, choice) => Some(choice),
            (Some(_), Choice::Authenticated) => Some(Choice::Intersected),
            (Some(_), _) => None,
        }
    }

    /// What a job of these words asks for; nothing if it is not built.
    pub(crate) fn of(security: Security) -> Option<Self> {
        let Security {
            protocol,
            adversary,
            delivery,
            tables,
            // It says in which order gates are, not how they are computed.
            schedule: _,
            // It says how often, not what.
            statistical: _,
            ot: _,
            chunk_rows: _,
        } = security;
        Some(match (protocol, adversary, delivery) {
            (ProtocolKind::Rep3, Adversary::SemiHonest, Delivery::Abort) => {
                Choice::Shared(&rep3::SCHEME)
            }
            (ProtocolKind::Rep3, Adversary::Malicious, Delivery::Abort) => {
                Choice::Shared(&rep3::MALICIOUS)
            }
            (ProtocolKind::Rep4, Adversary::Malicious, Delivery::Abort) => {
                Choice::Shared(&rep4::SCHEME)
            }
            (ProtocolKind::Rep4, Adversary::Malicious, Delivery::Guaranteed) => {
                Choice::Shared(&rep4::GUARANTEED)
            }
            (ProtocolKind::Rep4, Adversary::SemiHonest, Delivery::Abort) => {
                Choice::Shared(&rep4::SEMI_HONEST)
            }
            (ProtocolKind::Yao, Adversary::SemiHonest, Delivery::Abort) => {
                Choice::Garbled(garbling(tables))
            }
            (ProtocolKind::Yao, Adversary::CutAndChoose, Delivery::Abort) => Choice::Cut,
            (ProtocolKind::Yao, Adversary::Malicious, Delivery::Abort) => Choice::Authenticated,
            _ => return None,
        })
    }

    /// Whether the parties prove that products are right.
    pub(crate) fn proves(self) -> bool {
        match self {
            Choice::Shared(scheme) => scheme.products.proof.is_some(),
            Choice::Garbled(_) | Choice::Cut | Choice::Authenticated | Choice::Intersected => false,
        }
    }

    /// Whether wires have labels.
    pub(crate) fn garbles(self) -> bool {
        matches!(
            self,
            Choice::Garbled(_) | Choice::Cut | Choice::Authenticated
        )
    }

    /// Whether every product of bits has one pair of operands: what is proved is proved of one each, and a garbled table is of one gate.
    pub(crate) fn multiplies_singly(self) -> bool {
        match self {
            Choice::Shared(_) => self.proves(),
            Choice::Garbled(_) | Choice::Cut | Choice::Authenticated | Choice::Intersected => true,
        }
    }
}

/// How a device garbles what a job calls so.
pub(crate) fn garbling(tables: Tables) -> Garbling {
    match tables {
        Tables::HalfGates => Garbling::HalfGates,
        Tables::ThreeHalves => Garbling::ThreeHalves,
    }
}

/// The protocol that the job of a plan asks for, as participant `me` runs it: [`rep3`], [`rep4`], [`yao`](crate::yao),
/// [`cut`](crate::cut), [`ag`] or [`intersect`](crate::intersect).
pub fn protocol(plan: Arc<Plan>, me: Peer) -> Arc<dyn Protocol> {
    match Choice::of_job(&plan.job) {
        Some(Choice::Garbled(_)) if plan.stock == Stock::Made => Arc::new(Making::new(plan, me)),
        Some(Choice::Garbled(_)) => Arc::new(Yao::new(plan, me)),
        Some(Choice::Cut) => Arc::new(CutAndChoose::new(plan, me)),
        Some(Choice::Authenticated) => Arc::new(ag::Authenticated::new(plan, me)),
        Some(Choice::Intersected) => Arc::new(Intersected::new(plan, me)),
        _ => Arc::new(Replicated::new(plan, me)),
    }
}
