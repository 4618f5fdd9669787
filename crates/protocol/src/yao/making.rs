//! Random transfers for a stock: the evaluator's choices are random, and nothing is computed.
//!
//! Each row is a batch of its own, whose corrections are checked under a coin of the garbler before either party puts its labels away. Bit 0 of the evaluator's label T is
//! its choice r, bit 0 of the garbler's label Q is 0, and T = Q ⊕ r Δ, with one Δ for the whole run.

use std::borrow::Cow;
use std::sync::Arc;

use veil_circuit::{Circuit, Clock};
use veil_device::ot::Choices;
use veil_device::{ColumnType, KeyId, Layout, Program, Region, Residency};
use veil_job::{Block, JobSpec, Order, Security, StockKind};
use veil_math::Ring;
use veil_session::{Frame, Peer};

use super::transfers::TREES;
use super::{COMMON, GARBLER, LEAVES, OFFSET, PRIVATE, layers, list, other, peers, place, regions};
use crate::ot::correlations::{Receiver, Sender};
use crate::ot::extension::{At, Challenge};
use crate::ot::silent::Base;
use crate::plan::{Plan, WorkspaceOf};
use crate::round::{
    Cost, Flow, Protocol, Round, Seed, Spans, StockUse, Task, Transfers as TransferSetUp,
};

/// Transfers of a row of [`transfers_of`]: 1 MiB of labels at either party, and 256 KiB of corrections.
pub const TRANSFERS_OF_ROW: u64 = 1 << 16;

/// Two of the 32 trees of a batch, whose corrections stand for different choices, pass its check with probability 2^-s at most, beside guesses of Δ: there are 496 pairs of them,
/// and 2^9 blocks, under one of 2^128 challenges.
pub const CHECKED: u8 = 110;

const _: () = assert!(
    (TREES.count() * (TREES.count() - 1) / 2) as u128 * (TRANSFERS_OF_ROW as u128 / 128)
        <= 1 << (128 - CHECKED)
);

/// The challenge of the check: the hash of as many corrections would take longer than all the rest.
const CHALLENGE: Challenge = Challenge::Coin(PRIVATE);

/// Where the rounds of a batch begin; the list of inputs, which is empty, is before them.
const BATCH: u32 = place::LIST + 1;

/// The job of two parties that make at least so many random transfers, between them: rows without values.
pub fn transfers_of(parties: [String; 2], transfers: u64) -> JobSpec {
    making(
        parties,
        Security::among(2),
        transfers.div_ceil(TRANSFERS_OF_ROW),
    )
}

/// The job of two parties that make so many rows of stock.
pub(crate) fn making(parties: [String; 2], security: Security, rows: u64) -> JobSpec {
    JobSpec {
        name: "stock".to_owned(),
        schema: String::new(),
        owners: Vec::new(),
        parties: parties.into(),
        recipients: Vec::new(),
        security,
        circuit: Circuit {
            ring: Ring::Bits,
            inputs: Vec::new(),
            gates: Vec::new(),
            outputs: Vec::new(),
            clock: Clock::default(),
        },
        totals: None,
        blocks: vec![Block {
            name: "batches".to_owned(),
            rows: rows.max(1),
            holders: Vec::new(),
            stored: None,
            order: Order::Unsaid,
        }],
        audiences: Vec::new(),
        opened: Vec::new(),
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

/// A run that makes random transfers, as one of the two parties runs it.
#[derive(Debug)]
pub(crate) struct Making {
    plan: Arc<Plan>,
    me: Peer,
    layouts: [Layout; 2],
    spans: Spans,
    set_up: Arc<[Arc<Round>]>,
    batch: Arc<[Arc<Round>]>,
}

impl Making {
    /// The rounds of participant `me`.
    pub(crate) fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let messages = layers::Messages::of(&plan);
        let [mut rows, job] = [WorkspaceOf::Rows, WorkspaceOf::Job]
            .map(|of| regions::layout(&plan, &messages, me, of, &[]));
        let labels = rows.add(Region {
            // The host looks at what it puts away.
            residency: Residency::Mapped,
            column: ColumnType::Bytes(16 * TRANSFERS_OF_ROW as u32),
            components: 1,
            count: 1,
        });
        let labels = rows.all(labels, 0);
        let batch = me.party().map(|party| {
            let at = At {
                place: BATCH,
                first: 0,
                label: 0,
            };
            let with = (other(party), &BASE);
            if party == GARBLER {
                let (peer, base) = with;
                let sender = Sender::new(&mut rows, (peer, base, OFFSET), ITEMS, labels);
                sender.rounds(at)
            } else {
                Receiver::new(&mut rows, with, ITEMS, labels).rounds(at)
            }
        });
        let lists = [true, false].map(regions::list);
        let set_up = me.party().map(|me| list(me, place::LIST, lists));
        let shared = |rounds: Vec<Round>| rounds.into_iter().map(Arc::new).collect();
        Making {
            spans: Spans {
                stock: vec![labels],
                ..regions::spans(&plan, me)
            },
            set_up: shared(set_up.into_iter().collect()),
            batch: shared(batch.unwrap_or_default()),
            layouts: [rows, job],
            plan,
            me,
        }
    }
}

/// The extension's.
const BASE: Base = Base {
    trees: TREES,
    challenge: CHALLENGE,
    leaves: LEAVES,
    common: COMMON,
    private: PRIVATE,
    back: false,
};

/// What a batch is of.
const ITEMS: (u32, Choices) = (1, Choices::Bytes((TRANSFERS_OF_ROW / 8) as u32));

impl Protocol for Making {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn guarantee(&self) -> Cow<'static, str> {
        "random transfers for a stock, checked against either party".into()
    }

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        let [rows, job] = &self.layouts;
        match of {
            WorkspaceOf::Rows => rows,
            WorkspaceOf::Job => job,
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        &self.plan.programs
    }

    fn flow(&self, task: Task, _frame: Frame) -> Flow {
        match task {
            Task::SetUp => Flow::new(Arc::clone(&self.set_up), false),
            Task::Layers => Flow::new(Arc::clone(&self.batch), false),
            // A batch is put away when its own check has passed.
            Task::Agree => Flow::new(Arc::from([]), true),
            Task::Inputs { .. } | Task::Open(_) | Task::Totals | Task::OpenTotals(_) => {
                Flow::new(Arc::from([]), false)
            }
        }
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        let of = match task {
            Task::SetUp => WorkspaceOf::Job,
            Task::Layers => WorkspaceOf::Rows,
            _ => return Cost::default(),
        };
        Cost::of_rounds(self.layout(of), self.flow(task, frame).all(), frame)
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        BATCH + CHALLENGE.rounds()
    }

    fn peers(&self) -> Vec<Peer> {
        peers(&self.plan.job, self.me)
    }

    fn keys(&self, _peer: Peer) -> Vec<(&'static str, KeyId)> {
        vec![]
    }

    fn transfers(&self) -> Option<TransferSetUp> {
        super::transfers(self.me)
    }

    fn stock(&self) -> Option<StockUse> {
        let me = self.me.party()?;
        Some(StockUse {
            makes: true,
            kind: StockKind::Transfers,
            peer: other(me),
            cells: u64::from(self.plan.chunks()) * TRANSFERS_OF_ROW,
            offset: (me == GARBLER).then_some(OFFSET),
        })
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        Seed::own(self.me, by, PRIVATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, Stock};

    #[test]
    fn a_row_is_a_batch_of_whole_pages_at_either_party() {
        let job = transfers_of(["a", "b"].map(str::to_owned), TRANSFERS_OF_ROW + 1);
        let plan = Plan::stocked(Arc::new(job), Options::default(), Stock::Made);
        let plan = Arc::new(plan.expect("a plan"));
        assert_eq!((plan.chunk_rows, plan.chunks()), (1, 2));
        for party in veil_session::PartyId::TWO {
            let making = Making::new(Arc::clone(&plan), Peer::Party(party));
            let stock = making.stock().expect("it makes some");
            assert_eq!(stock.cells, 2 * TRANSFERS_OF_ROW);
            assert_eq!(stock.offset.is_some(), party == GARBLER);
            let labels = making.spans.stock[0];
            let bytes = making.layouts[0].regions[labels.region as usize].column;
            assert_eq!(bytes.bytes(1), 16 * TRANSFERS_OF_ROW);
        }
    }
}
