//! The regions of a participant's workspace, and where the host reaches in.

use veil_circuit::Per;
use veil_device::{ColumnType, Layout, Region, Residency, Span};
use veil_job::Holder;
use veil_math::Ring;
use veil_session::{PartyId, Peer};

use super::EVALUATOR;
use super::inputs::Inputs;
use super::layers::Messages;
use crate::choose::garbling;
use crate::plan::{OutputPlan, Plan, PortPlan, WorkspaceOf};
use crate::round::Spans;

pub(super) use crate::plan::{JOB_WIDE, SLOTS, SUMS};

/// Tables of the gates of a message: a region for each kind of item that they have.
pub(super) const TABLES: u16 = 3;
const TABLE_BITS: u16 = 4;
/// Clear values of the participant that supplies them, then the garbler's share of an owner's; at the evaluator its share of an owner's.
pub(super) const INPUT: u16 = 5;
pub(super) const JOB_INPUT: u16 = 6;
/// An owner's share for the evaluator.
pub(super) const MASKS: u16 = 7;
pub(super) const JOB_MASKS: u16 = 8;
/// Bits of inputs, those whose labels are transferred first, and their labels.
pub(super) const BITS: u16 = 9;
pub(super) const LABELS: u16 = 10;
/// Shares of what is opened, of the garbler and of the evaluator.
pub(super) const OPEN: u16 = 11;
pub(super) const OPENED: u16 = 12;
/// The digest of the list of accepted inputs: mine, and the other party's.
pub(super) const DIGESTS: u16 = 13;

/// Part 0 of items of a region.
pub(super) fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

/// Tables of `gates` gates from number `first` of the message on: a span for each kind of item.
pub(super) fn tables(plan: &Plan, first: u32, gates: u32) -> Vec<Span> {
    let kinds = (TABLES..).zip(garbling(plan.job.security.tables).tables());
    kinds
        .map(|(region, (_, count))| span(region, count * first, count * gates))
        .collect()
}

/// Wires of the input ports that all rows share, or of the others.
fn input_wires(plan: &Plan, shared: bool) -> u32 {
    let ports = plan.inputs.iter();
    let ports = ports.filter(|port| (port.per == Per::Job) == shared);
    ports.map(|port| port.width).sum()
}

/// The regions of `me` in a workspace where `inputs` are put. Every participant has all of them, some empty: one numbering for all.
pub(super) fn layout(
    plan: &Plan,
    messages: &Messages,
    me: Peer,
    workspace: WorkspaceOf,
    inputs: &[Inputs<'_>],
) -> Layout {
    let party = me.party().is_some();
    let owner = matches!(me, Peer::Owner(_));
    let when = |yes: bool, count: u32| if yes { count } else { 0 };
    let (slots, gates, outputs, wires) = match workspace {
        WorkspaceOf::Rows => {
            let outputs = plan.outputs.iter().map(|output| output.width).sum();
            let wires = [input_wires(plan, false), 0];
            (plan.slots, messages.gates(), outputs, wires)
        }
        WorkspaceOf::Job => {
            let wires = [0, input_wires(plan, true)];
            let gates = messages.job.iter().map(|group| group.gates).max();
            (plan.job_slots[0], gates.unwrap_or(0), 0, wires)
        }
    };
    let [row_inputs, job_inputs] = wires;
    let staged = inputs.iter().map(Inputs::wires).max().unwrap_or(0);
    let mut layout = Layout {
        chunk_rows: plan.chunk_rows,
        regions: Vec::new(),
    };
    let mut add = |index: u16, residency, column, components, count| {
        let at = layout.add(Region {
            residency,
            column,
            components,
            count,
        });
        assert_eq!(at, index, "regions are added in the order of their numbers");
    };
    let (bits, bit) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Bits));
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    add(SLOTS, resident, ColumnType::Labels, 1, when(party, slots));
    add(
        JOB_WIDE,
        mapped,
        ColumnType::Label,
        1,
        when(party, plan.job_wide),
    );
    add(SUMS, mapped, ColumnType::Label, 1, 0);
    for (k, index) in (TABLES..=TABLE_BITS).enumerate() {
        let tables = garbling(plan.job.security.tables).tables().get(k);
        let (item, count) = tables.copied().unwrap_or((ColumnType::Bytes(0), 0));
        let items = count * gates;
        add(index, mapped, item, 1, when(party, items));
    }
    add(INPUT, mapped, bits, 1, when(party || owner, row_inputs));
    add(JOB_INPUT, mapped, bit, 1, when(party || owner, job_inputs));
    add(MASKS, resident, bits, 1, when(owner, row_inputs));
    add(JOB_MASKS, resident, bit, 1, when(owner, job_inputs));
    add(BITS, resident, bits, 1, when(party, staged));
    add(LABELS, resident, ColumnType::Labels, 1, when(party, staged));
    add(OPEN, mapped, bits, 2, when(!owner, outputs));
    add(OPENED, Residency::Public, bits, 1, when(!owner, outputs));
    add(DIGESTS, mapped, ColumnType::Bytes(32), 1, when(party, 2));
    layout
}

/// Where a port's values are among the input regions: wires of ports of the same kind lie side by side, in order.
pub(super) fn input(port: &PortPlan) -> Span {
    let region = match port.per {
        Per::Row | Per::Cycle => INPUT,
        Per::Job => JOB_INPUT,
    };
    span(region, port.first, port.width)
}

/// An owner's share for the evaluator of what it supplies.
pub(super) fn mask(port: &PortPlan) -> Span {
    let region = match port.per {
        Per::Row | Per::Cycle => MASKS,
        Per::Job => JOB_MASKS,
    };
    span(region, port.first, port.width)
}

/// Where a port's labels are.
pub(super) fn labels(port: &PortPlan) -> Span {
    let region = match port.per {
        Per::Row | Per::Cycle => SLOTS,
        Per::Job => JOB_WIDE,
    };
    span(region, port.first, port.width)
}

/// Where an output's labels are when they are computed.
pub(super) fn result(output: &OutputPlan) -> Span {
    span(SLOTS, output.first, output.width)
}

fn output(plan: &Plan, port: usize, region: u16) -> Span {
    let before = plan.outputs[..port].iter().map(|o| o.width).sum();
    span(region, before, plan.outputs[port].width)
}

/// The share of an output that a party has.
pub(super) fn share(plan: &Plan, port: usize, party: u8) -> Span {
    Span {
        component: party,
        ..output(plan, port, OPEN)
    }
}

/// The opened values of an output.
pub(super) fn opened(plan: &Plan, port: usize) -> Span {
    output(plan, port, OPENED)
}

/// The digest of the list of accepted inputs, of this party or of the other.
pub(super) fn list(mine: bool) -> Span {
    span(DIGESTS, u32::from(!mine), 1)
}

pub(super) fn spans(plan: &Plan, me: Peer) -> Spans {
    let mine = |holder: Holder| holder.peer() == Some(me);
    let supplies = |k: usize| plan.job.blocks.iter().any(|b| mine(b.holders[k]));
    let ports = |per: Per| {
        let ports = plan.inputs.iter().enumerate();
        let ports = ports.filter(|(k, port)| port.per == per && supplies(*k));
        ports.map(|(k, port)| (k, input(port))).collect()
    };
    let sees = |k: &usize| plan.job.audiences[*k].includes(me);
    let party = me.party();
    Spans {
        inputs: ports(Per::Row),
        cycle_inputs: ports(Per::Cycle),
        job_inputs: ports(Per::Job),
        job_wide: party.map_or(vec![], |_| vec![span(JOB_WIDE, 0, plan.job_wide)]),
        list: party.map(|_: PartyId| list(true)),
        opened: (0..plan.outputs.len())
            .filter(sees)
            .map(|k| (k, opened(plan, k)))
            .collect(),
        ..Spans::default()
    }
}

/// Whether the labels of what `holder` supplies are transferred: whatever of it the evaluator knows is bits that the garbler does not.
pub(crate) fn is_transferred(holder: Holder) -> bool {
    match holder {
        Holder::Party(party) => party == EVALUATOR,
        Holder::Owner(_) => true,
        Holder::Stored | Holder::Column => false,
    }
}
