//! Moves of rows: the plan of one, and its rounds at a participant.

use std::borrow::Cow;
use std::sync::Arc;

use veil_device::{KeyId, Layout, PrfCall, Program};
use veil_job::{Delivery, Security};
use veil_prss::DomainTag;
use veil_session::{Frame, PartyId, Peer};

use super::regions::{self, Places};
use super::{ColumnForm, MoveKind, cost, proved, rank, rep3, rep4};
use crate::choose::Choice;
use crate::plan::{Chunk, PlanError, WorkspaceOf};
use crate::replicated::Scheme;
use crate::round::{Cost, Flow, Protocol, Round, Seed, Spans, Task};

/// A move: every row of some columns goes to another place, by one permutation Π that no party knows. Or where rows belong is found, before they move:
/// [`MoveKind::Rank`].
///
/// Π is a product of as many factors as there are parties, and each party lacks one: factor c is drawn by the holders of component c.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovePlan {
    /// The protocol.
    pub security: Security,
    /// Rows.
    pub rows: u32,
    /// Who plays which role among three parties: passes take turns.
    pub rotation: u8,
    /// Which way.
    pub kind: MoveKind,
    /// What moves.
    pub columns: Vec<ColumnForm>,
    /// Whether columns are put in the order of opened positions behind the move, or taken out of it before a move back.
    pub orders: bool,
}

/// The protocol of a plan.
pub(super) fn scheme(security: Security) -> Option<&'static Scheme> {
    // A run that three of four parties finish begins again from checkpointed inputs, with other passes.
    if security.delivery != Delivery::Abort {
        return None;
    }
    match Choice::of(security) {
        Some(Choice::Shared(scheme)) => Some(scheme),
        _ => None,
    }
}

impl MovePlan {
    /// Checks what parties of this security can move.
    ///
    /// # Errors
    /// [`PlanError::NoProtocol`] if they move no rows.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        scheme(self.security)
            .map(|_| ())
            .ok_or(PlanError::NoProtocol(self.security))
    }

    /// What is wrong with a move of parties who prove to each other that rows were moved rightly: it is of words, and opens nothing.
    pub(super) fn provable(&self) -> Result<(), &'static str> {
        let proves = scheme(self.security).is_some_and(|scheme| scheme.products.proof.is_some());
        if !proves {
            return Ok(());
        }
        let words = |form: &ColumnForm| matches!(form, ColumnForm::Words(_));
        let kind = match self.kind {
            MoveKind::There | MoveKind::Along | MoveKind::Back => true,
            MoveKind::Open | MoveKind::Rank => false,
        };
        if !kind || !self.columns.iter().all(words) {
            return Err(
                "three parties of whom one may be malicious move words, and open no positions",
            );
        }
        // A vector of a proof has two elements for each row.
        if self.rows >= 1 << 31 {
            return Err("three parties of whom one may be malicious move fewer than 2^31 rows");
        }
        Ok(())
    }

    /// The rows, as the one chunk that they are.
    pub fn chunk(&self) -> Chunk {
        Chunk {
            frame: Frame {
                epoch: 0,
                lane: 0,
                chunk: 1,
                rows: self.rows,
            },
            block: 0,
            first: 0,
        }
    }

    /// Counter of the first draw for column `index`: columns draw one after the other.
    pub(super) fn counter(&self, index: usize) -> u64 {
        let before = self.columns[..index].iter();
        let draws = |form: &ColumnForm| (form.bytes() * u64::from(self.rows)).div_ceil(16);
        before.map(draws).sum()
    }
}

/// A pass over whole columns, a move or a product of matrices, as one participant does it. Owners and recipients take no part.
#[derive(Debug)]
pub struct Moves {
    scheme: &'static Scheme,
    me: Peer,
    layout: Layout,
    spans: Spans,
    rounds: Arc<[Arc<Round>]>,
    cost: Cost,
}

impl Moves {
    /// The move of a plan at participant `me`.
    ///
    /// # Panics
    /// If the parties move no rows: a program with such a pass is refused.
    pub fn new(plan: &MovePlan, me: Peer) -> Self {
        let scheme = scheme(plan.security).expect("a program whose parties move rows");
        let Peer::Party(party) = me else {
            return Moves::none(scheme, me);
        };
        let moving = Moving {
            plan,
            scheme,
            me: party,
            places: Places::of(scheme, plan),
        };
        let made = match scheme.parties.len() {
            _ if plan.kind == MoveKind::Rank => rank::of(&moving),
            parties => (
                regions::layout(scheme, plan),
                regions::spans(&moving),
                match parties {
                    3 if scheme.products.proof.is_some() => proved::rounds(&moving),
                    3 => rep3::rounds(&moving),
                    _ => rep4::rounds(&moving),
                },
            ),
        };
        Moves::of(scheme, me, made, cost::of(scheme, plan, party))
    }

    /// The workspace, what goes in and out of it, and the rounds, with what they cost.
    pub(super) fn of(
        scheme: &'static Scheme,
        me: Peer,
        (layout, spans, rounds): (Layout, Spans, Vec<Round>),
        cost: Cost,
    ) -> Self {
        Moves {
            scheme,
            me,
            layout,
            spans,
            rounds: rounds.into_iter().map(Arc::new).collect(),
            cost,
        }
    }

    /// Of a participant that takes no part.
    pub(super) fn none(scheme: &'static Scheme, me: Peer) -> Self {
        Moves::of(scheme, me, <_>::default(), Cost::default())
    }
}

/// What the rounds of a party are made of.
pub(super) struct Moving<'a> {
    pub(super) plan: &'a MovePlan,
    pub(super) scheme: &'static Scheme,
    pub(super) me: PartyId,
    pub(super) places: Places,
}

impl Moving<'_> {
    /// A draw for column `index`, under the key of part `part`.
    pub(super) fn call(&self, part: u8, tag: DomainTag, index: usize) -> PrfCall {
        PrfCall {
            key: Scheme::key(part),
            tag,
            first: self.plan.counter(index),
        }
    }

    /// Numbers and forms of what moves.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, ColumnForm)> + use<'_> {
        self.plan.columns.iter().copied().enumerate()
    }
}

impl Protocol for Moves {
    fn name(&self) -> &'static str {
        self.scheme.name
    }

    fn guarantee(&self) -> Cow<'static, str> {
        self.scheme.guarantee.into()
    }

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self, _: WorkspaceOf) -> &Layout {
        &self.layout
    }

    fn programs(&self) -> &[Arc<Program>] {
        &[]
    }

    fn flow(&self, task: Task, _: Frame) -> Flow {
        match task {
            Task::Layers => Flow::new(Arc::clone(&self.rounds), false),
            Task::SetUp
            | Task::Inputs { .. }
            | Task::Totals
            | Task::Agree
            | Task::Open(_)
            | Task::OpenTotals(_) => Flow::of(vec![]),
        }
    }

    fn cost(&self, task: Task, _: Frame) -> Cost {
        match task {
            Task::Layers => self.cost,
            _ => Cost::default(),
        }
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        regions::places(self.scheme)
    }

    fn peers(&self) -> Vec<Peer> {
        match self.me {
            Peer::Party(me) => self.scheme.others(me).map(Peer::Party).collect(),
            Peer::Owner(_) | Peer::Recipient(_) => vec![],
        }
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        match (self.me, peer) {
            (Peer::Party(me), Peer::Party(other)) => (self.scheme.pair_keys)(me, other),
            _ => vec![],
        }
    }

    fn dealt(&self, _: Peer) -> Vec<Seed> {
        vec![]
    }
}
