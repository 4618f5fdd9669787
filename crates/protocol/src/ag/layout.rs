//! The regions of a participant's workspace.

use veil_circuit::Per;
use veil_device::{ColumnType, Layout, Region, Residency};
use veil_math::Ring;
use veil_session::Peer;

use super::Shape;
use super::inputs::{self, Taken};
use super::regions::{self, part};
use crate::plan::{Plan, Stock, WorkspaceOf};

/// Challenges of a workspace at a time: of the comparison of leaky products, of an opening, of gates.
const CHALLENGE_COUNT: u32 = 3;
/// Coins, nonces, commitments and digests of both parties.
const COIN_COUNT: u32 = 8;

/// A workspace of `me`. That of the set-up has the same regions, and no gates. All participants have all regions, some of them empty.
pub(super) fn of(plan: &Plan, shape: &Shape, me: Peer, workspace: WorkspaceOf) -> Layout {
    let rows = workspace == WorkspaceOf::Rows;
    let (party, owner, recipient) = match me {
        Peer::Party(_) => (true, false, false),
        Peer::Owner(_) => (false, true, false),
        Peer::Recipient(_) => (false, false, true),
    };
    let when = |there: bool, count: u32| if there { count } else { 0 };
    // At parties; at owners as well; at recipients as well. Of rows only, at parties.
    let parties = |count| when(party, count);
    let owners = |count| when(party || owner, count);
    let recipients = |count| when((party || recipient) && rows, count);
    let gates = |count| when(party && rows, count);
    // Of batches that make their products; what the host reaches, where there is a stock.
    let making = |count| gates(when(!shape.is_stocked(), count));
    let (bits, labels) = (ColumnType::Rows(Ring::Bits), ColumnType::Labels);
    let blocks = ColumnType::Bytes(16 * shape.candidates);
    let packed = ColumnType::Bytes(shape.candidates / 8);
    let (digest, block) = (ColumnType::Bytes(32), ColumnType::Bytes(16));
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    let stocked = match shape.stock {
        Stock::Fresh => resident,
        Stock::Used | Stock::Made => mapped,
    };
    let taken = if shape.is_stocked() { mapped } else { resident };
    let outputs: u32 = plan.outputs.iter().map(|output| output.width).sum();
    let [of_rows, of_windows, of_job] =
        [Per::Row, Per::Cycle, Per::Job].map(|per| inputs::wires(plan, per));
    let [staged, clear, clear_of_job] = if rows {
        let staged = [Taken::Rows, Taken::Window(0)].map(|taken| shape.wires(taken));
        [staged[0].max(staged[1]), of_rows + of_windows, 0]
    } else {
        [shape.wires(Taken::Job), 0, of_job]
    };
    // What is said of inputs takes little of what is said of gates.
    let opens = |count| when(party && (rows || of_job > 0), count);
    let (layers, arrays) = (shape.layers, shape.arrays());
    let told = shape.owners.max(shape.recipients);
    let outside = regions::outside_wires(plan, shape);
    let hiding = shape.recipients * shape.hiding_outputs();
    let [asked, answers] = match (told, party) {
        (0, _) => [0; 2],
        (_, true) => [2 * told; 2],
        (_, false) => [4; 2],
    };
    let all = [
        (resident, labels, part::ALL, gates(plan.slots)),
        (mapped, ColumnType::Label, part::ALL, parties(plan.job_wide)),
        (mapped, ColumnType::Label, part::ALL, 0),
        (mapped, bits, 1, owners(clear)),
        (resident, bits, 1, parties(staged)),
        // Labels, MACs, keys, and Λ of inputs.
        (taken, labels, part::ALL, owners(staged)),
        (mapped, bits, 2, owners(staged)),
        (mapped, bits, 1, owners(staged)),
        (mapped, block, 2, opens(CHALLENGE_COUNT)),
        (mapped, block, 3, opens(shape.folds(plan))),
        (resident, packed, 1, making(arrays)),
        (stocked, blocks, 1, gates(arrays)),
        (stocked, blocks, 1, gates(arrays)),
        (mapped, blocks, 2, making(layers)),
        (resident, blocks, 1, making(layers)),
        (mapped, packed, 2, making(layers)),
        (mapped, digest, 1, making(COIN_COUNT)),
        (resident, digest, 1, making(3)),
        (mapped, packed, 2, gates(shape.openings())),
        (resident, blocks, 1, gates(6)),
        (mapped, labels, 1, gates(2 * shape.gates)),
        (mapped, packed, 1, gates(1)),
        (resident, blocks, 1, gates(4)),
        (mapped, packed, 1, gates(3)),
        (mapped, bits, 4, gates(outputs)),
        (Residency::Public, bits, 1, recipients(outputs)),
        (mapped, digest, 1, parties(2)),
        (mapped, ColumnType::One(Ring::Bits), 1, owners(clear_of_job)),
        (mapped, block, 1, asked),
        (resident, block, 1, opens(when(told > 0, 3))),
        (mapped, digest, 1, answers),
        (mapped, digest, 2, parties(when(shape.owners > 0, 1))),
        (resident, bits, 1, gates(hiding)),
        (taken, labels, 2, gates(hiding)),
        (resident, labels, 2, recipients(outside)),
        (mapped, bits, 2, recipients(outside)),
        (mapped, bits, 2, recipients(outside)),
    ];
    let mut layout = Layout {
        chunk_rows: plan.chunk_rows,
        regions: Vec::new(),
    };
    for (residency, column, components, count) in all {
        layout.add(Region {
            residency,
            column,
            components,
            count,
        });
    }
    assert_eq!(
        layout.regions.len(),
        usize::from(regions::OUTSIDE_PUBLIC) + 1,
        "regions are added in the order of their numbers"
    );
    layout
}
