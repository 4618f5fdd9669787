//! What one participant does in each pass of a program.

use std::sync::Arc;

use veil_protocol::passes::{Pass, PassProgram};
use veil_protocol::{Plan, Protocol};
use veil_session::{Peer, PlanHash};

/// The passes of a program, and the protocol of one participant in each.
#[derive(Clone)]
pub struct Acts {
    program: Arc<PassProgram>,
    /// Passes of one plan have one protocol.
    protocols: Vec<Arc<dyn Protocol>>,
}

impl Acts {
    /// Those of participant `me`.
    pub fn new(program: Arc<PassProgram>, me: Peer) -> Self {
        let mut protocols: Vec<Arc<dyn Protocol>> = Vec::new();
        for (number, pass) in program.passes().iter().enumerate() {
            let before = program.passes()[..number].iter();
            let same = before
                .zip(&protocols)
                .find(|(other, _)| one_plan(other, pass));
            let protocol = match same {
                Some((_, protocol)) => Arc::clone(protocol),
                None => pass.protocol(me),
            };
            protocols.push(protocol);
        }
        Acts { program, protocols }
    }

    /// Of a program of one pass, whose protocol is there.
    pub fn one(plan: &Arc<Plan>, protocol: &Arc<dyn Protocol>) -> Self {
        Acts {
            program: Arc::new(PassProgram::from(Arc::clone(plan))),
            protocols: vec![Arc::clone(protocol)],
        }
    }

    /// The participant.
    pub fn me(&self) -> Peer {
        self.protocols[0].me()
    }

    /// Those that it has links to.
    pub fn peers(&self) -> Vec<Peer> {
        self.protocols[0].peers()
    }

    /// The program.
    pub const fn program(&self) -> &Arc<PassProgram> {
        &self.program
    }

    /// Pass number `number`.
    pub(crate) fn pass(&self, number: usize) -> &Pass {
        &self.program.passes()[number]
    }

    /// The participant's protocol in it.
    pub(crate) fn protocol(&self, number: usize) -> &Arc<dyn Protocol> {
        &self.protocols[number]
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.protocols.len()
    }

    /// The plan of the first pass, whose participants are those of all.
    pub fn plan(&self) -> &Arc<Plan> {
        self.program.first()
    }

    /// What all participants agree on.
    pub fn hash(&self) -> PlanHash {
        self.program.hash()
    }

    /// The first pass of the same plan as this one.
    pub(crate) fn like_exactly(&self, number: usize) -> usize {
        let pass = self.pass(number);
        let mut passes = self.program.passes().iter();
        passes
            .position(|other| one_plan(other, pass))
            .unwrap_or(number)
    }

    /// The first pass of the same plan, or of another pass over whole columns, as this one: what a device has loaded for it serves both.
    pub(crate) fn like(&self, number: usize) -> usize {
        let pass = self.pass(number);
        let same = |other: &Pass| match (other, pass) {
            // Neither has a program.
            (
                Pass::Move { .. } | Pass::Product { .. },
                Pass::Move { .. } | Pass::Product { .. },
            ) => true,
            _ => one_plan(other, pass),
        };
        let passes = self.program.passes();
        passes.iter().position(same).unwrap_or(number)
    }
}

/// Whether two passes have the same plan, and not only equal ones.
fn one_plan(a: &Pass, b: &Pass) -> bool {
    match (a, b) {
        (Pass::Rows { plan: a, .. }, Pass::Rows { plan: b, .. }) => Arc::ptr_eq(a, b),
        (Pass::Move { plan: a, .. }, Pass::Move { plan: b, .. }) => Arc::ptr_eq(a, b),
        (Pass::Product { plan: a, .. }, Pass::Product { plan: b, .. }) => Arc::ptr_eq(a, b),
        _ => false,
    }
}
