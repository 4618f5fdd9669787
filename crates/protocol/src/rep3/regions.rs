//! The regions of a participant's bank, and where the host reaches in.

use veil_circuit::{Per, Reduce};
use veil_device::{Item, Layout, Place, Region, Span};
use veil_program::{Audience, Holder};
use veil_session::{PartyId, Peer};

use crate::plan::{OutputPlan, Plan, PortPlan, SLOTS, SUMS, UNIFORMS};
use crate::round::Spans;

pub(super) const SEND: u16 = 3;
pub(super) const RECEIVE: u16 = 4;
pub(super) const SEND_SUMS: u16 = 5;
pub(super) const RECEIVE_SUMS: u16 = 6;
/// Clear values of an inputting participant, then its explicit component; received components of others.
pub(super) const INPUT: u16 = 7;
pub(super) const JOB_INPUT: u16 = 8;
/// Components that are opened: at parties own, previous and received; at recipients u_0, u_1, u_2.
pub(super) const OPEN: u16 = 9;
pub(super) const OPEN_SUMS: u16 = 10;
pub(super) const OPENED: u16 = 11;
pub(super) const OPENED_SUMS: u16 = 12;
pub(super) const DIGESTS: u16 = 13;
/// An owner's random components.
pub(super) const MASKS: u16 = 14;
pub(super) const JOB_MASKS: u16 = 15;

/// Digests: agreement and list (mine, next's, previous'), then per owner (rows: mine, other's; job: mine, other's; seeds: two of mine, two of
/// the others'), then per output port three of mine and three received.
const AGREEMENT: u32 = 0;
const LIST: u32 = 3;
const OWNERS: u32 = 6;
const PER_OWNER: u32 = 8;
const PER_OUTPUT: u32 = 6;

/// The regions of `me`. Every participant has all of them, some empty: one numbering for all.
pub(super) fn layout(plan: &Plan, me: Peer) -> Layout {
    let ring = plan.ring;
    let party = me.party().is_some();
    let owner = matches!(me, Peer::Owner(_));
    let when = |yes: bool, count: u32| if yes { count } else { 0 };
    let row_inputs: u32 = plan
        .inputs
        .iter()
        .filter(|p| p.per == Per::Row)
        .map(|p| p.width)
        .sum();
    let row_outputs: u32 = plan
        .outputs
        .iter()
        .filter(|o| o.reduce == Reduce::None)
        .map(|o| o.width)
        .sum();
    let products = plan.all_layers().map(|l| l.products).max().unwrap_or(0);
    let sums = plan.all_layers().map(|l| l.sums).max().unwrap_or(0);
    let digests =
        OWNERS + PER_OWNER * plan.job.owners.len() as u32 + PER_OUTPUT * plan.outputs.len() as u32;
    let mut layout = Layout {
        chunk_rows: plan.chunk_rows,
        regions: Vec::new(),
    };
    let mut add = |index: u16, place, item, parts, count| {
        let at = layout.add(Region {
            place,
            item,
            parts,
            count,
        });
        assert_eq!(at, index, "regions are added in the order of their numbers");
    };
    let (rows, one) = (Item::Rows(ring), Item::One(ring));
    add(SLOTS, Place::Resident, rows, 2, when(party, plan.slots));
    add(UNIFORMS, Place::Mapped, one, 2, when(party, plan.uniforms));
    add(SUMS, Place::Mapped, one, 2, when(party, plan.sums));
    add(SEND, Place::Mapped, rows, 1, when(party, products));
    add(RECEIVE, Place::Mapped, rows, 1, when(party, products));
    add(SEND_SUMS, Place::Mapped, one, 1, when(party, sums));
    add(RECEIVE_SUMS, Place::Mapped, one, 1, when(party, sums));
    add(
        INPUT,
        Place::Mapped,
        rows,
        1,
        when(party || owner, row_inputs),
    );
    add(
        JOB_INPUT,
        Place::Mapped,
        one,
        1,
        when(party || owner, plan.uniforms),
    );
    add(OPEN, Place::Mapped, rows, 3, when(!owner, row_outputs));
    add(OPEN_SUMS, Place::Mapped, one, 3, when(!owner, plan.sums));
    add(OPENED, Place::Public, rows, 1, when(!owner, row_outputs));
    add(OPENED_SUMS, Place::Public, one, 1, when(!owner, plan.sums));
    add(DIGESTS, Place::Mapped, Item::Bytes(32), 1, digests);
    add(MASKS, Place::Resident, rows, 2, when(owner, row_inputs));
    add(
        JOB_MASKS,
        Place::Resident,
        one,
        2,
        when(owner, plan.uniforms),
    );
    layout
}

fn digest(first: u32) -> Span {
    Span {
        region: DIGESTS,
        part: 0,
        first,
        count: 1,
    }
}

/// Digest of an agreement: 0 mine, 1 the next party's, 2 the previous party's.
pub(super) fn agreement(k: u32) -> Span {
    digest(AGREEMENT + k)
}

/// Digest of the list of accepted inputs: as [`agreement`].
pub(super) fn list(k: u32) -> Span {
    digest(LIST + k)
}

/// Digest of an owner's explicit components: mine or the other holder's.
pub(super) fn owner_digest(owner: u16, per: Per, theirs: bool) -> Span {
    digest(
        OWNERS + PER_OWNER * u32::from(owner) + 2 * u32::from(per == Per::Job) + u32::from(theirs),
    )
}

/// Digest of an owner's seed: mine.
pub(super) fn seed_digest(owner: u16, index: u8) -> Span {
    digest(OWNERS + PER_OWNER * u32::from(owner) + 4 + u32::from(index))
}

/// Digest of an owner's seed: the other holder's.
pub(super) fn other_seed_digest(owner: u16, index: u8) -> Span {
    digest(OWNERS + PER_OWNER * u32::from(owner) + 6 + u32::from(index))
}

/// Digest `k` of an opening: 0 to 2 computed here, 3 to 5 received.
pub(super) fn open_digest(plan: &Plan, output: usize, k: u32) -> Span {
    digest(OWNERS + PER_OWNER * plan.job.owners.len() as u32 + PER_OUTPUT * output as u32 + k)
}

/// Where a port's values are among the input regions: wires of ports of the same kind lie side by side, in order.
pub(super) fn input(port: &PortPlan) -> Span {
    let region = match port.per {
        Per::Row => INPUT,
        Per::Job => JOB_INPUT,
    };
    Span {
        region,
        part: 0,
        first: port.first,
        count: port.width,
    }
}

/// Where a port's shares are.
pub(super) fn shares(port: &PortPlan, part: u8) -> Span {
    let region = match port.per {
        Per::Row => SLOTS,
        Per::Job => UNIFORMS,
    };
    Span {
        region,
        part,
        first: port.first,
        count: port.width,
    }
}

/// An output port's items in region `rows` or `sums`, depending on its kind, which start at `0` for the first such port.
pub(super) fn output(plan: &Plan, port: usize, rows: u16, sums: u16, part: u8) -> Span {
    let OutputPlan {
        reduce,
        first,
        width,
    } = plan.outputs[port];
    let base = plan
        .outputs
        .iter()
        .filter(|o| o.reduce == reduce)
        .map(|o| o.first)
        .min()
        .unwrap_or(0);
    let region = if reduce == Reduce::None { rows } else { sums };
    Span {
        region,
        part,
        first: first - base,
        count: width,
    }
}

pub(super) fn spans(plan: &Plan, me: Peer, layout: &Layout) -> Spans {
    let mine = |holder: Holder| holder.peer() == Some(me);
    let supplies = |k: usize| plan.job.blocks.iter().any(|b| mine(b.holders[k]));
    let ports = |per: Per| {
        let ports = plan
            .inputs
            .iter()
            .enumerate()
            .filter(|(k, p)| p.per == per && supplies(*k));
        ports.map(|(k, p)| (k, input(p))).collect()
    };
    let sees = |audience: &Audience| audience.includes(me);
    let opened = |reduce: Reduce| {
        let ports = plan.outputs.iter().zip(&plan.job.audiences).enumerate();
        let ports = ports.filter(|(_, (o, a))| o.reduce == reduce && sees(a));
        ports
            .map(|(k, _)| (k, output(plan, k, OPENED, OPENED_SUMS, 0)))
            .collect()
    };
    let shares = |region| match me.party() {
        Some(_) => vec![
            layout.all(region, super::OWN),
            layout.all(region, super::PREVIOUS),
        ],
        None => vec![],
    };
    Spans {
        inputs: ports(Per::Row),
        job_inputs: ports(Per::Job),
        uniforms: shares(UNIFORMS),
        sums: shares(SUMS),
        list: me.party().map(|_: PartyId| list(0)),
        opened: opened(Reduce::None),
        opened_sums: opened(Reduce::Sum),
    }
}
