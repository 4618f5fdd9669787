//! Stock: products that are made ahead, and runs that take them.
//!
//! A run for a stock has a batch in each row, up to the combined product, and leaves *cells*: a product \[a\], \[b\], \[c\], and the authenticated bit \[r\] that a
//! gate would have for its result. All of them depend on no circuit. A run from a stock makes no transfers: before a batch, before inputs are masked and
//! before outputs are told outside the host puts cells into the workspace, each once. A batch takes a cell for each of its candidates; where bits are needed and no
//! products, a cell has three, r, a and b, and c is dropped.
//!
//! All cells are under one pair of offsets, which is that of the run then.

use veil_circuit::Circuit;
use veil_device::Span;
use veil_job::{JobSpec, Security, Statistical, StockKind};
use veil_session::{Frame, Peer};

use super::batch::ROUNDS;
use super::inputs::Taken;
use super::regions::{self, Of, part};
use super::{Authenticated, GATES, OFFSET, Shape, place};
use crate::plan::Stock;
use crate::round::{Put, StockUse, Take};

/// Authenticated bits of a cell.
pub(super) const BITS: u64 = 3;

/// Fields of the MACs of a cell's bits: r, a, b. The key is the field behind each.
const FIELDS: [u8; 3] = [6, 0, 2];

/// Cells of a row of [`stock_of`].
pub const CELLS_OF_ROW: u64 = GATES;

/// The job of two parties that make a stock of at least so many cells, between them, with an error of 2^-s in each batch: rows without values.
pub fn stock_of(parties: [String; 2], statistical: Statistical, cells: u64) -> JobSpec {
    let mut security = Security::among(2).against(veil_job::Adversary::Malicious);
    security.statistical = statistical;
    crate::yao::making(parties, security, cells.div_ceil(CELLS_OF_ROW))
}

/// Whether a job computes something: the other one is [`stock_of`] two parties.
pub(crate) fn computes(job: &JobSpec) -> bool {
    let Circuit {
        inputs,
        gates,
        outputs,
        ..
    } = &job.circuit;
    !(inputs.is_empty() && gates.is_empty() && outputs.is_empty())
}

/// The fields of a cell where a batch has them.
pub(super) fn fields(shape: &Shape) -> Vec<Span> {
    let [a, b, c] = [Of::A, Of::B, Of::C].map(|of| regions::layer(shape, of, 0));
    [a, b, c, regions::fresh(shape)].concat()
}

/// Bits of cells as MACs and keys.
fn bits(first: u64, wires: u32, rows: u32, [macs, keys]: [Span; 2]) -> Option<Take> {
    let cells = (u64::from(wires) * u64::from(rows)).div_ceil(BITS);
    let of = (0..).zip(FIELDS);
    let into = of.flat_map(|(k, field)| {
        let put = |field, span| Put {
            field,
            span,
            at: k * cells,
        };
        [put(field, macs), put(field + 1, keys)]
    });
    (cells > 0).then(|| Take {
        first,
        cells,
        into: into.collect(),
        ones: None,
    })
}

impl Authenticated {
    /// What the run has to do with a stock.
    pub(super) fn stock_use(&self) -> Option<StockUse> {
        let me = self.me.party()?;
        let chunks = u64::from(self.plan.chunks());
        let (makes, cells) = match self.plan.stock {
            Stock::Fresh => return None,
            Stock::Made => (true, chunks * u64::from(self.shape.candidates)),
            Stock::Used => (false, self.cells_before(1 + chunks)),
        };
        Some(StockUse {
            makes,
            kind: StockKind::Cells,
            peer: crate::yao::other(me),
            cells,
            offset: Some(OFFSET),
        })
    }

    /// Cells of the chunks before one, by its number in frames; the set-up is number 0.
    fn cells_before(&self, chunk: u64) -> u64 {
        let (of_job, of_chunk) = &self.shape.cells;
        let of_chunk = of_chunk.all(self.shape.batches());
        match chunk.checked_sub(1) {
            None => 0,
            Some(chunks) => of_job.saturating_add(of_chunk.saturating_mul(chunks)),
        }
    }

    /// The cells before a round that feeds.
    pub(super) fn cells_of(&self, place: u32, cycle: u64, frame: Frame) -> Option<Take> {
        let shape = &self.shape;
        if !shape.is_stocked() || !matches!(self.me, Peer::Party(_)) {
            return None;
        }
        let before = self.cells_before(frame.chunk.into());
        let (_, of_chunk) = &shape.cells;
        let inputs = |taken| {
            let wires = shape.wires(taken);
            let spans = [part::MAC, part::KEY].map(|of| regions::staged(wires, of));
            bits(before + of_chunk.inputs(taken), wires, frame.rows, spans)
        };
        if place == shape.place(Taken::Rows) {
            return inputs(Taken::Rows);
        }
        let batches = place::BATCHES..shape.place(Taken::Window(0));
        if batches.contains(&place) {
            let of_run = shape.groups.len() as u64;
            let group = u64::from((place - place::BATCHES) / ROUNDS);
            let number = cycle / u64::from(shape.together) * of_run + group;
            let into = (0..).zip(fields(shape));
            let into = into.map(|(field, span)| Put { field, span, at: 0 });
            return Some(Take {
                first: before + of_chunk.batch(number),
                cells: shape.candidates.into(),
                into: into.collect(),
                ones: None,
            });
        }
        if shape.wires(Taken::Window(0)) > 0 && place == shape.place(Taken::Window(0)) {
            return inputs(Taken::Window(shape.window(cycle)?));
        }
        if shape.wires(Taken::Job) > 0 && place == shape.place(Taken::Job) {
            return inputs(Taken::Job);
        }
        if shape.recipients > 0 && place == shape.place_of_recipients() {
            let wires = shape.recipients * shape.hiding_outputs();
            let spans = [0, 1].map(|component| regions::hiding(wires, component));
            let first = before + of_chunk.batch(shape.batches());
            return bits(first, wires, frame.rows, spans);
        }
        None
    }
}
