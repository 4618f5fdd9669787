//! The regions of a participant's workspace, and where the host reaches in.

use veil_circuit::Per;
use veil_device::proof::TRACE_PARTS;
use veil_device::{ColumnType, Layout, Region, Residency, Side, Span};
use veil_job::{Audience, Holder};
use veil_math::Ring;
use veil_session::Peer;

use super::digests::Digests;
use super::scheme::Scheme;
use super::{Authenticated, Batch, batches};
use crate::plan::{
    BIT_JOB_WIDE, BIT_SLOTS, BIT_SUMS, Conversion, ConversionPlan, Gives, JOB_WIDE, LayerPlan,
    OutputPlan, Plan, PortPlan, SLOTS, SUMS, WorkspaceOf,
};
use crate::rep3::{CHECK_ELEMENTS, proof_elements, proof_longest};
use crate::round::{Spans, Stored};

pub(crate) const SEND: u16 = 3;
pub(crate) const RECEIVE: u16 = 4;
pub(crate) const SEND_SUMS: u16 = 5;
pub(crate) const RECEIVE_SUMS: u16 = 6;
/// Clear values of an inputting participant, then its explicit component; received components of others.
pub(super) const INPUT: u16 = 7;
pub(super) const JOB_INPUT: u16 = 8;
/// Components that are opened: at parties their parts and the one received; at recipients u_0, u_1, ….
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
/// Components of job-wide values, for the party's store. Those of rows are in `OPEN`, those of sums in `SUMS`.
pub(super) const KEPT: u16 = 18;
/// Authentication MACs of messages of products.
pub(crate) const MACS: u16 = 19;

/// Operands and masks of products that are proved to be right.
pub(crate) const TRACE: u16 = 20;
/// Vectors of the proofs that a party makes and verifies, one part each.
pub(crate) const VECTORS: u16 = 21;
/// Messages and single elements of proofs.
pub(crate) const PROOF: u16 = 22;
/// Messages of products of bits in a circuit of integers. What they are computed from has the numbers before these.
pub(crate) const BIT_SEND: u16 = 26;
pub(crate) const BIT_RECEIVE: u16 = 27;
/// Masked values that are opened while the parties compute, of the circuit's ring and of bits: a party's parts and the one received.
pub(super) const MASKED: u16 = 28;
pub(super) const MASKED_BITS: u16 = 29;

/// What pairs of values and MACs of a layer are multiplied with for their check: pairs of rows, and of single elements.
pub(crate) const WEIGHTS: u16 = 30;
pub(crate) const SUM_WEIGHTS: u16 = 31;
/// Elements of a check.
pub(crate) const CHECK: u16 = 32;
/// A component in the ring of the inputs, and what is computed of it.
pub(super) const NARROW: u16 = 33;

/// Messages of lifts of bits, where they are no components.
pub(crate) const LIFT_SEND: u16 = 34;
pub(crate) const LIFT_RECEIVE: u16 = 35;

/// The regions of `me`, in the workspaces of chunks or in those of the set-up and the totals. Every participant has all of them in both, some
/// empty: one numbering for all. They differ in what layers have there.
pub(super) fn layout(scheme: &Scheme, plan: &Plan, me: Peer, workspace: WorkspaceOf) -> Layout {
    let ring = plan.ring;
    let party = me.party().is_some();
    let owner = matches!(me, Peer::Owner(_));
    let when = |yes: bool, count: u32| if yes { count } else { 0 };
    let row_inputs: u32 = plan
        .inputs
        .iter()
        .filter(|p| p.per != Per::Job && !p.bits)
        .map(|p| p.width)
        .sum();
    let row_outputs: u32 = plan
        .outputs
        .iter()
        .filter(|o| o.gives == Gives::Row && !o.bits)
        .map(|o| o.width)
        .sum();
    let products = plan
        .layers_of(workspace)
        .map(|l| l.products)
        .max()
        .unwrap_or(0);
    let sums = plan.layers_of(workspace).map(|l| l.sums).max().unwrap_or(0);
    let loads = |per| loaded(plan, per).next().is_some();
    let kept = plan.outputs.iter().filter(|o| o.gives == Gives::Once);
    let kept: u32 = kept.map(|o| o.width).sum();
    let masks = plan.all_layers().any(LayerPlan::opens);
    let digests = Digests::of(scheme, plan).count(loads(Per::Row) || loads(Per::Job), masks);
    let parts = scheme.parts.len() as u8;
    let components = scheme.parties.len() as u8;
    let messages = scheme.products.messages;
    let mut batches = batches(scheme, plan);
    let most = |of: fn(Authenticated) -> u32| {
        let authenticated = plan
            .layers_of(workspace)
            .map(|l| of(Authenticated::of(&l.authenticated)));
        when(party, authenticated.max().unwrap_or(0))
    };
    let (pairs, sums_with_macs) = (
        most(Authenticated::pairs),
        most(|authenticated| authenticated.sums),
    );
    let macs_of_job_wide = when(party, plan.macs_of_job_wide.of.len() as u32);
    let of_rows = |batch: &Batch| batch.layers.start < plan.layers.len();
    batches.retain(|batch| {
        party && batch.products > 0 && of_rows(batch) == (workspace == WorkspaceOf::Rows)
    });
    let [slots, bit_slots] = match workspace {
        WorkspaceOf::Rows => [plan.slots, plan.bit_slots],
        WorkspaceOf::Job => plan.job_slots,
    };
    let [slots, bit_slots] = [slots, bit_slots].map(|count| when(party, count));
    let proved = batches.iter().map(|b| b.products).max().unwrap_or(0);
    let [proved_here, proved_beside] = match ring {
        Ring::Bits => [proved, 0],
        Ring::Z32 | Ring::Z64 | Ring::Z128 => [0, proved],
    };
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
    let (words, word) = (ColumnType::Rows(plan.words), ColumnType::One(plan.words));
    add(SLOTS, Residency::Plane, words, parts, slots);
    let place = Residency::Mapped;
    add(JOB_WIDE, place, word, parts, when(party, plan.job_wide));
    add(SUMS, place, word, parts, when(party, plan.sums));
    // Messages that are shares are sent from slots, and land there, unless a proof needs them.
    let apart = |products: u32| when(party && !scheme.products.are_shares, products);
    let received = apart(products).max(proved_here);
    add(SEND, place, words, messages, apart(products));
    add(RECEIVE, place, words, messages, when(party, received));
    add(SEND_SUMS, place, word, messages, when(party, sums));
    add(RECEIVE_SUMS, place, word, messages, when(party, sums));
    let (rows, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    add(
        INPUT,
        Residency::Mapped,
        rows,
        1,
        when(party || owner, row_inputs),
    );
    add(
        JOB_INPUT,
        Residency::Mapped,
        one,
        1,
        when(party || owner, plan.job_wide),
    );
    add(
        OPEN,
        Residency::Mapped,
        rows,
        components,
        when(!owner, row_outputs),
    );
    add(
        OPEN_SUMS,
        Residency::Mapped,
        one,
        components,
        when(!owner, plan.sums),
    );
    add(
        OPENED,
        Residency::Public,
        rows,
        1,
        when(!owner, row_outputs),
    );
    add(
        OPENED_SUMS,
        Residency::Public,
        one,
        1,
        when(!owner, plan.sums),
    );
    add(
        DIGESTS,
        Residency::Mapped,
        ColumnType::Bytes(32),
        1,
        digests,
    );
    add(
        MASKS,
        Residency::Resident,
        rows,
        parts,
        when(owner, row_inputs),
    );
    add(
        JOB_MASKS,
        Residency::Resident,
        one,
        parts,
        when(owner, plan.job_wide),
    );
    // With MACs all inputs come this way, into the larger ring.
    let staged = |per| party && (loads(per) || plan.has_macs());
    let (stored, job_stored) = (
        when(staged(Per::Row), row_inputs),
        when(staged(Per::Job), plan.job_wide),
    );
    add(STORED, Residency::Mapped, rows, parts, stored);
    add(JOB_STORED, Residency::Mapped, one, parts, job_stored);
    add(KEPT, Residency::Mapped, one, parts, when(party, kept));
    let macs = when(party, scheme.products.macs);
    add(MACS, Residency::Mapped, ColumnType::Bytes(16), 1, macs);
    let element = ColumnType::One(Ring::Z64);
    let most = |of: fn(&Batch) -> u32| when(proved > 0, batches.iter().map(of).max().unwrap_or(0));
    let (sides, traced) = (Side::ALL.len() as u8, TRACE_PARTS);
    let (bits, bit) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Bits));
    add(
        TRACE,
        Residency::Resident,
        bits,
        traced,
        when(party, proved),
    );
    add(
        VECTORS,
        Residency::Resident,
        element,
        sides,
        most(proof_longest),
    );
    add(PROOF, Residency::Mapped, element, 1, most(proof_elements));
    add(BIT_SLOTS, Residency::Plane, bits, parts, bit_slots);
    add(BIT_JOB_WIDE, Residency::Mapped, bit, parts, 0);
    add(BIT_SUMS, Residency::Mapped, bit, parts, 0);
    let of_bits = plan.layers_of(workspace).filter_map(|l| l.bits.as_ref());
    let products = of_bits.map(|b| b.products).max().unwrap_or(0);
    let products = apart(products);
    add(BIT_SEND, Residency::Mapped, bits, messages, products);
    let received = products.max(proved_beside);
    add(BIT_RECEIVE, Residency::Mapped, bits, messages, received);
    let opened = |of: usize| {
        plan.layers_of(workspace)
            .map(move |l| l.opened[of].count)
            .max()
    };
    let opened = |of| when(party, opened(of).unwrap_or(0));
    add(MASKED, Residency::Mapped, rows, components, opened(0));
    add(MASKED_BITS, Residency::Mapped, bits, components, opened(1));
    add(WEIGHTS, Residency::Resident, words, parts, pairs);
    let singly = sums_with_macs.max(macs_of_job_wide);
    add(SUM_WEIGHTS, Residency::Resident, word, parts, singly);
    let checks = party && plan.has_macs();
    let elements = when(checks, CHECK_ELEMENTS);
    add(CHECK, Residency::Mapped, word, parts, elements);
    let shifts = |c: &ConversionPlan| matches!(c.how, Conversion::Shift { .. });
    let shifts = plan
        .layers_of(workspace)
        .flat_map(|l| &l.conversions)
        .any(shifts);
    let narrow = when(checks && shifts, 2);
    add(NARROW, Residency::Resident, rows, parts, narrow);
    let lifts = plan.layers_of(workspace).flat_map(|layer| layer.lifts);
    let lifts = apart(lifts.map(|lifts| lifts.count()).max().unwrap_or(0));
    add(LIFT_SEND, place, words, messages, lifts);
    add(LIFT_RECEIVE, place, words, messages, lifts);
    layout
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

/// Output ports that are columns of the pass's rows. Sums are columns of one row, which are not left by chunks.
pub(super) fn columns(plan: &Plan) -> impl Iterator<Item = usize> {
    let ports = plan.outputs.iter().zip(&plan.job.audiences).enumerate();
    let columns =
        ports.filter(|(_, (o, audience))| o.gives == Gives::Row && **audience == Audience::Column);
    columns.map(|(port, _)| port)
}

/// Where the host puts what a port loads.
pub(super) fn stored(port: &PortPlan, part: u8) -> Span {
    let region = match port.per {
        Per::Row | Per::Cycle => STORED,
        Per::Job => JOB_STORED,
    };
    Span {
        region,
        component: part,
        ..input(port)
    }
}

/// Where a port's values are among the input regions: wires of ports of the same kind lie side by side, in order.
pub(super) fn input(port: &PortPlan) -> Span {
    let region = match port.per {
        Per::Row | Per::Cycle => INPUT,
        Per::Job => JOB_INPUT,
    };
    Span {
        region,
        component: 0,
        first: port.first,
        count: port.width,
    }
}

/// Where a port's shares arrive: with MACs, where they are still elements of the plan's ring.
pub(super) fn arriving(plan: &Plan, port: &PortPlan, part: u8) -> Span {
    if plan.has_macs() {
        stored(port, part)
    } else {
        shares(port, part)
    }
}

/// Where a port's shares are.
pub(super) fn shares(port: &PortPlan, part: u8) -> Span {
    let region = match port.per {
        Per::Row if port.bits => BIT_SLOTS,
        Per::Row | Per::Cycle => SLOTS,
        Per::Job => JOB_WIDE,
    };
    Span {
        region,
        component: part,
        first: port.first,
        count: port.width,
    }
}

/// An output port's items in region `rows` or `sums`, depending on its kind, which start at `0` for the first such port; in `KEPT` if it
/// has one job-wide value.
pub(super) fn output(plan: &Plan, port: usize, rows: u16, sums: u16, part: u8) -> Span {
    let OutputPlan { gives, width, .. } = plan.outputs[port];
    let before = plan.outputs[..port].iter();
    let before = before.filter(|o| o.gives == gives && !o.bits);
    let region = match gives {
        Gives::Row => rows,
        Gives::Sum => sums,
        Gives::Once => KEPT,
    };
    Span {
        region,
        component: part,
        first: before.map(|o| o.width).sum(),
        count: width,
    }
}

/// Where an output port's shares are when they are computed.
pub(super) fn result(output: &OutputPlan, part: u8) -> Span {
    let region = match output.gives {
        Gives::Row if output.bits => BIT_SLOTS,
        Gives::Row => SLOTS,
        Gives::Sum => SUMS,
        Gives::Once => JOB_WIDE,
    };
    Span {
        region,
        component: part,
        first: output.first,
        count: output.width,
    }
}

/// Regions of which every column that is read or sent was written before in the same chunk: by the host, by a message, or by a command.
const WRITTEN: [u16; 15] = [
    SLOTS,
    BIT_SLOTS,
    SEND,
    RECEIVE,
    BIT_SEND,
    BIT_RECEIVE,
    LIFT_SEND,
    LIFT_RECEIVE,
    INPUT,
    STORED,
    MASKS,
    MASKED,
    MASKED_BITS,
    OPEN,
    OPENED,
];

/// What is zero where a chunk begins in the workspace of another: all regions but those.
fn zeros(layout: &Layout) -> Vec<Span> {
    let regions = (0..).zip(&layout.regions);
    let others = regions.filter(|(number, region)| region.count > 0 && !WRITTEN.contains(number));
    let parts = others.flat_map(|(number, region)| {
        (0..region.components).map(move |component| layout.all(number, component))
    });
    parts.collect()
}

pub(super) fn spans(scheme: &Scheme, plan: &Plan, me: Peer, layout: &Layout) -> Spans {
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
        Some(_) => scheme
            .parts()
            .map(|part| layout.all(region, part))
            .collect(),
        None => vec![],
    };
    let all = |port, span: &dyn Fn(u8) -> Span| Stored {
        port,
        components: scheme.parts().map(span).collect(),
    };
    let party = me.party().is_some();
    let loads = |per| -> Vec<Stored> {
        let ports = loaded(plan, per).filter(|_| party);
        ports.map(|(k, p)| all(k, &|c| stored(p, c))).collect()
    };
    let keeps = |gives| -> Vec<Stored> {
        let ports = kept(plan, gives).filter(|_| party);
        let span = |k: usize, c| match gives {
            // They are in a mapped region already.
            Gives::Sum if !plan.has_macs() => result(&plan.outputs[k], c),
            Gives::Sum | Gives::Row | Gives::Once => output(plan, k, OPEN, OPEN_SUMS, c),
        };
        ports.map(|k| all(k, &|c| span(k, c))).collect()
    };
    let takes = |k: usize| {
        plan.job
            .blocks
            .iter()
            .any(|b| b.holders[k] == Holder::Column)
    };
    let taken = plan
        .inputs
        .iter()
        .enumerate()
        .filter(|(k, _)| party && takes(*k));
    let left = columns(plan).filter(|_| party);
    Spans {
        stock: vec![],
        zeros: plan.cycles.is_none().then(|| zeros(layout)),
        kept: vec![],
        constants: me.party().map_or(0, |me| (scheme.constants)(plan.ring, me)),
        takes: taken
            .map(|(k, p)| all(k, &|c| self::shares(p, c)))
            .collect(),
        leaves: left
            .map(|k| all(k, &|c| result(&plan.outputs[k], c)))
            .collect(),
        loads: loads(Per::Row),
        job_loads: loads(Per::Job),
        keeps: keeps(Gives::Row),
        job_keeps: keeps(Gives::Once),
        keeps_sums: keeps(Gives::Sum),
        inputs: ports(Per::Row),
        cycle_inputs: ports(Per::Cycle),
        job_inputs: ports(Per::Job),
        job_wide: shares(JOB_WIDE),
        sums: shares(SUMS),
        list: me.party().map(|_| Digests::of(scheme, plan).list(0)),
        opened: opened(Gives::Row),
        opened_sums: opened(Gives::Sum),
    }
}
