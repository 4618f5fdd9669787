//! Inputs: how the labels of a value reach the evaluator.
//!
//! Of what the garbler supplies, both draw the active label L from their common key, and the garbler takes L ⊕ xΔ for the label of 0. Of what the
//! evaluator supplies, the labels are its oblivious transfers: it gets T with T = Q ⊕ xΔ, and Q is the label of 0. An outside owner
//! gives x ⊕ s to the garbler, where both the owner and the evaluator draw s: the evaluator's transfer is of s, and the garbler
//! takes Q ⊕ (x ⊕ s)Δ for the label of 0.

use veil_circuit::Per;
use veil_device::{Command, Op, PrfCall, Span, ot};
use veil_job::Holder;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::cycles::Taken;
use super::layers::Messages;
use super::regions::{self, BITS, LABELS};
use super::transfers::Ends;
use super::{COMMON, EVALUATOR, GARBLER, OFFSET, combine, other, place, seed_key, stock, transfer};
use crate::plan::{Plan, PortPlan, Stock};
use crate::round::{Check, Round};

/// A port on its way in.
#[derive(Clone, Copy)]
struct Staged<'a> {
    /// Number of the port: that of its messages.
    number: u16,
    port: &'a PortPlan,
    holder: Holder,
    /// First item in the regions of bits and labels.
    at: u32,
}

/// The ports of a block with a value per row, or per job: what is transferred first.
#[derive(Clone)]
pub(super) struct Inputs<'a> {
    plan: &'a Plan,
    me: Peer,
    per: Per,
    ports: Vec<Staged<'a>>,
    /// Counters that others have taken before in the same frame.
    before: Taken,
}

impl<'a> Inputs<'a> {
    pub(super) fn of_rows(plan: &'a Plan, me: Peer, block: usize) -> Self {
        Self::new(plan, me, block, Per::Row)
    }

    pub(super) fn of_job(plan: &'a Plan, me: Peer) -> Self {
        Self::new(plan, me, 0, Per::Job)
    }

    /// Of a window of cycles.
    pub(super) fn of_cycles(plan: &'a Plan, me: Peer, block: usize) -> Self {
        Self {
            before: Self::of_rows(plan, me, block).taken(),
            ..Self::new(plan, me, block, Per::Cycle)
        }
    }

    fn new(plan: &'a Plan, me: Peer, block: usize, per: Per) -> Self {
        let holders = &plan.job.blocks[block].holders;
        let ports = (0..).zip(plan.inputs.iter().zip(holders));
        let mut ports: Vec<Staged<'_>> = ports
            .filter(|(_, (port, _))| port.per == per)
            .map(|(number, (port, holder))| Staged {
                number,
                port,
                holder: *holder,
                at: 0,
            })
            .collect();
        ports.sort_by_key(|port| !regions::is_transferred(port.holder));
        let mut at = 0;
        for port in &mut ports {
            port.at = at;
            at += port.port.width;
        }
        Inputs {
            plan,
            me,
            per,
            ports,
            before: Taken::default(),
        }
    }

    /// Counters that its draws take.
    pub(super) fn taken(&self) -> Taken {
        let rows = self.plan.chunk_rows;
        let wires = self.plan.inputs.iter().filter(|port| port.per != Per::Job);
        let wires: u32 = wires.map(|port| port.width).sum();
        Taken {
            labels: u64::from(self.wires()) * u64::from(rows),
            leaves: ot::blocks(self.transferred(), rows),
            transfers: u64::from(self.transferred()),
            shares: u64::from(wires) * self.stride(),
        }
    }

    /// Wires of all ports.
    pub(super) fn wires(&self) -> u32 {
        self.ports.iter().map(|port| port.port.width).sum()
    }

    /// Wires whose labels are transferred.
    pub(super) fn transferred(&self) -> u32 {
        let ports = self.ports.iter();
        let ports = ports.filter(|port| regions::is_transferred(port.holder));
        ports.map(|port| port.port.width).sum()
    }

    /// Where their transfers come from.
    pub(super) fn stock(&self) -> Stock {
        self.plan.stock
    }

    /// The ports with their holders, for their cost.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u32, Holder)> {
        self.ports.iter().map(|port| (port.port.width, port.holder))
    }

    /// At most one round, in which the evaluator only sends and the garbler only receives; with transfers of a stock one more, the other way around.
    pub(super) fn rounds(&self, ends: &Ends) -> Vec<Round> {
        let place = match self.per {
            Per::Row => place::INPUTS,
            Per::Cycle => place::CYCLE_INPUTS,
            Per::Job => place::JOB_INPUTS,
        };
        let transferred = self.transferred();
        let wires = [BITS, LABELS].map(|region| regions::span(region, 0, transferred));
        let mut rounds = match ends.stocked().filter(|_| transferred > 0) {
            Some(end) => end.rounds(self.of_stock(place), wires),
            None => vec![ends.round((place, self.before.leaves), wires)],
        };
        match (self.me, &mut rounds[..]) {
            _ if self.ports.is_empty() => return vec![],
            (Peer::Party(GARBLER), [first, ..]) => self.garbler(first),
            (Peer::Party(_), rounds) => self.evaluator(rounds),
            (Peer::Owner(owner), [first, ..]) => self.owner(first, owner),
            (Peer::Owner(_) | Peer::Recipient(_), _) => return vec![],
        }
        let empty = Round {
            place,
            ..Round::default()
        };
        rounds.retain(|round| *round != empty);
        rounds
    }

    /// Where transfers of a stock become those of these inputs: the second rounds are behind all others.
    fn of_stock(&self, place: u32) -> stock::At {
        let number = match self.per {
            Per::Row => 0,
            Per::Cycle => 1,
            Per::Job => 2,
        };
        stock::At {
            place,
            masked: Messages::of(self.plan).places() + number,
            first: self.before.transfers,
        }
    }

    fn garbler(&self, round: &mut Round) {
        for port in &self.ports {
            let (input, bits) = (regions::input(port.port), port.bits());
            match port.holder {
                Holder::Owner(owner) => {
                    round
                        .recvs
                        .push(transfer(input, Peer::Owner(owner), port.number));
                    round.finish.push(combine(vec![input], bits));
                }
                Holder::Party(GARBLER) => round.local.push(combine(vec![input], bits)),
                Holder::Party(_) | Holder::Stored | Holder::Column => {}
            }
        }
        self.draw_labels(&mut round.local);
        for port in &self.ports {
            // Whatever bits the garbler knows of a value go into the label of 0.
            if port.holder != Holder::Party(EVALUATOR) {
                let src = vec![port.labels(), port.bits()];
                let op = Op::Encode { offset: OFFSET };
                round
                    .finish
                    .push(Command::new(op, src, vec![port.labels()]));
            }
            round
                .finish
                .push(combine(vec![port.labels()], regions::labels(port.port)));
        }
    }

    fn evaluator(&self, rounds: &mut [Round]) {
        let mut before = Vec::new();
        for port in &self.ports {
            let (input, bits) = (regions::input(port.port), port.bits());
            match port.holder {
                Holder::Owner(owner) => {
                    let mut call = Command::new(Op::Random, vec![], vec![input]);
                    call.calls = vec![self.share(port.port, owner)];
                    before.push(call);
                }
                Holder::Party(EVALUATOR) => {}
                Holder::Party(_) | Holder::Stored | Holder::Column => continue,
            }
            before.push(combine(vec![input], bits));
        }
        self.draw_labels(&mut before);
        if let Some(first) = rounds.first_mut() {
            first.local.splice(0..0, before);
        }
        let ports = self.ports.iter();
        let labels = ports.map(|port| combine(vec![port.labels()], regions::labels(port.port)));
        if let Some(last) = rounds.last_mut() {
            last.finish.extend(labels);
        }
    }

    /// An owner draws the evaluator's share, and sends what is left to the garbler.
    fn owner(&self, round: &mut Round, me: u16) {
        let mine = self.ports.iter();
        for port in mine.filter(|port| port.holder == Holder::Owner(me)) {
            let (input, mask) = (regions::input(port.port), regions::mask(port.port));
            let mut call = Command::new(Op::Random, vec![], vec![mask]);
            call.calls = vec![self.share(port.port, me)];
            round.local.push(call);
            round.local.push(combine(vec![input, mask], input));
            round
                .sends
                .push(transfer(input, Peer::Party(GARBLER), port.number));
        }
    }

    /// Counters of a wire of an owner's share: as many as a full chunk of it takes.
    fn stride(&self) -> u64 {
        match self.per {
            Per::Row | Per::Cycle => u64::from(self.plan.chunk_rows).div_ceil(128),
            Per::Job => 1,
        }
    }

    /// How the evaluator's share of a port of an owner is drawn: wires in order.
    fn share(&self, port: &PortPlan, owner: u16) -> PrfCall {
        PrfCall {
            key: seed_key(owner),
            tag: DomainTag::SHARE2,
            first: self.before.shares + u64::from(port.first) * self.stride(),
        }
    }

    /// Both draw the active labels of what the garbler supplies, behind those that are transferred.
    fn draw_labels(&self, commands: &mut Vec<Command>) {
        let transferred = self.transferred();
        let count = self.wires() - transferred;
        if count > 0 {
            let to = regions::span(LABELS, transferred, count);
            let mut call = Command::new(Op::Random, vec![], vec![to]);
            // A block per row and wire.
            call.calls = vec![PrfCall {
                key: COMMON,
                tag: DomainTag::ACTIVE,
                first: self.before.labels,
            }];
            commands.push(call);
        }
    }
}

impl Staged<'_> {
    fn bits(&self) -> Span {
        regions::span(BITS, self.at, self.port.width)
    }

    fn labels(&self) -> Span {
        regions::span(LABELS, self.at, self.port.width)
    }
}

/// The parties tell each other the digest of their list of accepted inputs.
pub(crate) fn list(me: PartyId, place: u32, [mine, theirs]: [Span; 2]) -> Round {
    let peer = other(me);
    Round {
        place,
        sends: vec![transfer(mine, peer, 0)],
        recvs: vec![transfer(theirs, peer, 0)],
        finish: vec![Command::new(Op::CheckEqual, vec![mine, theirs], vec![])],
        checks: vec![Check {
            command: 0,
            suspects: vec![peer],
            what: "the list of accepted inputs",
        }],
        ..Round::default()
    }
}
