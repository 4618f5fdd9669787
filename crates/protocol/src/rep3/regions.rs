//! The regions of a participant's bank, and where the host reaches in.

use veil_circuit::Per;
use veil_device::{Item, Layout, Place, Region, Span};
use veil_program::{Audience, Holder};
use veil_session::{PartyId, Peer};

use crate::plan::{Gives, OutputPlan, Plan, PortPlan, SLOTS, SUMS, UNIFORMS};
use crate::round::{Spans, Stored};

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
/// Components that the host loads from the party's store.
pub(super) const STORED: u16 = 16;
pub(super) const JOB_STORED: u16 = 17;
/// Components of values that all rows share, for the party's store. Those of rows are in `OPEN`, those of sums in `SUMS`.
pub(super) const KEPT: u16 = 18;

/// Digests: agreement and list (mine, next's, previous'), then per owner (rows: mine, other's; job: mine, other's; seeds: two of mine, two of
/// the others'), then per output port three of mine and three received, then of what is loaded (rows: own, previous, the next party's, the
/// previous party's; job: the same).
const AGREEMENT: u32 = 0;
const LIST: u32 = 3;
const OWNERS: u32 = 6;
const PER_OWNER: u32 = 8;
const PER_OUTPUT: u32 = 6;
const LOADED: u32 = 8;

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
        .filter(|o| o.gives == Gives::Row)
        .map(|o| o.width)
        .sum();
    let products = plan.all_layers().map(|l| l.products).max().unwrap_or(0);
    let sums = plan.all_layers().map(|l| l.sums).max().unwrap_or(0);
    let loads = |per| loaded(plan, per).next().is_some();
    let kept = plan.outputs.iter().filter(|o| o.gives == Gives::Once);
    let kept: u32 = kept.map(|o| o.width).sum();
    let digests = loaded_digests(plan) + when(loads(Per::Row) || loads(Per::Job), LOADED);
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
    let (stored, job_stored) = (
        when(party && loads(Per::Row), row_inputs),
        when(party && loads(Per::Job), plan.uniforms),
    );
    add(STORED, Place::Mapped, rows, 2, stored);
    add(JOB_STORED, Place::Mapped, one, 2, job_stored);
    add(KEPT, Place::Mapped, one, 2, when(party, kept));
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

fn loaded_digests(plan: &Plan) -> u32 {
    OWNERS + PER_OWNER * plan.job.owners.len() as u32 + PER_OUTPUT * plan.outputs.len() as u32
}

/// Digest of what is loaded: 0 and 1 own and previous component here, 2 and 3 the same ones at their other holders.
pub(super) fn loaded_digest(plan: &Plan, per: Per, k: u32) -> Span {
    digest(loaded_digests(plan) + 4 * u32::from(per == Per::Job) + k)
}

/// Input ports that some block loads.
fn loaded(plan: &Plan, per: Per) -> impl Iterator<Item = (usize, &PortPlan)> {
    let loads = |k: usize| {
        plan.job
            .blocks
            .iter()
            .any(|b| b.holders[k] == Holder::Stored)
    };
    plan.inputs
        .iter()
        .enumerate()
        .filter(move |(k, p)| p.per == per && loads(*k))
}

/// Output ports that are kept.
pub(super) fn kept(plan: &Plan, gives: Gives) -> impl Iterator<Item = usize> {
    let ports = plan.outputs.iter().zip(&plan.job.audiences).enumerate();
    ports
        .filter(move |(_, (o, a))| o.gives == gives && **a == Audience::Stored)
        .map(|(k, _)| k)
}

/// Where the host puts what a port loads.
pub(super) fn stored(port: &PortPlan, part: u8) -> Span {
    let region = match port.per {
        Per::Row => STORED,
        Per::Job => JOB_STORED,
    };
    Span {
        region,
        part,
        ..input(port)
    }
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

/// An output port's items in region `rows` or `sums`, depending on its kind, which start at `0` for the first such port; in `KEPT` if it
/// has one value that all rows share.
pub(super) fn output(plan: &Plan, port: usize, rows: u16, sums: u16, part: u8) -> Span {
    let OutputPlan { gives, width, .. } = plan.outputs[port];
    let before = plan.outputs[..port].iter().filter(|o| o.gives == gives);
    let region = match gives {
        Gives::Row => rows,
        Gives::Sum => sums,
        Gives::Once => KEPT,
    };
    Span {
        region,
        part,
        first: before.map(|o| o.width).sum(),
        count: width,
    }
}

/// Where an output port's shares are when they are computed.
pub(super) fn result(output: &OutputPlan, part: u8) -> Span {
    let region = match output.gives {
        Gives::Row => SLOTS,
        Gives::Sum => SUMS,
        Gives::Once => UNIFORMS,
    };
    Span {
        region,
        part,
        first: output.first,
        count: output.width,
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
    let opened = |gives: Gives| {
        let ports = plan.outputs.iter().zip(&plan.job.audiences).enumerate();
        let ports = ports.filter(|(_, (o, a))| o.gives == gives && sees(a));
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
    let both = |port, span: &dyn Fn(u8) -> Span| Stored {
        port,
        components: [span(super::OWN), span(super::PREVIOUS)],
    };
    let party = me.party().is_some();
    let loads = |per| -> Vec<Stored> {
        let ports = loaded(plan, per).filter(|_| party);
        ports.map(|(k, p)| both(k, &|c| stored(p, c))).collect()
    };
    let keeps = |gives| -> Vec<Stored> {
        let ports = kept(plan, gives).filter(|_| party);
        let span = |k: usize, c| match gives {
            // They are in a mapped region already.
            Gives::Sum => result(&plan.outputs[k], c),
            Gives::Row | Gives::Once => output(plan, k, OPEN, OPEN_SUMS, c),
        };
        ports.map(|k| both(k, &|c| span(k, c))).collect()
    };
    Spans {
        loads: loads(Per::Row),
        job_loads: loads(Per::Job),
        keeps: keeps(Gives::Row),
        job_keeps: keeps(Gives::Once),
        keeps_sums: keeps(Gives::Sum),
        inputs: ports(Per::Row),
        job_inputs: ports(Per::Job),
        uniforms: shares(UNIFORMS),
        sums: shares(SUMS),
        list: me.party().map(|_: PartyId| list(0)),
        opened: opened(Gives::Row),
        opened_sums: opened(Gives::Sum),
    }
}
