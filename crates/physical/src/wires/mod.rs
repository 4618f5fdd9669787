//! A program of passes as one circuit of bits, as two parties compute it.
//!
//! Two parties move no rows: a value is on a wire, and what a row needs of another one is a wire of that row. So the passes are interpreted once, over wires, before anything is sent:
//!
//! ```text
//! column            rows × bits wires
//! pass of rows      its circuit in every row; integers modulo 2^k as k bits; sums over rows by adders
//! sort              a network of comparisons, whose bits say how other columns go along, or back
//! claim             a bit that hides every result where it is 1, and is opened to the parties
//! result            the bits of all rows in one output port
//! ```
//!
//! Nothing is opened on the way, not even permutations. Constants fold, and bits that nothing reads are not made, so that what is public costs nothing.
//!
//! # Limits
//!
//! A circuit has no more than [`MOST_GATES`](crate::MOST_GATES) gates. Parties keep no shares, and draw nothing that none of them knows.

mod columns;
mod limits;
mod network;
mod ports;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::generate::{Aim, any};
use veil_circuit::{Builder, CircuitError, Wire};
use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, ProgramSpec, Take};
use veil_job::{Audience, JobSpec};
use veil_math::Ring;

use crate::bits::{InRows, Reads, fits, too_large, words};
use crate::{Opening, PhysicalError, PhysicalPlan};
use columns::{Column, Columns};
use limits::{TRIED, estimated, known_to_move, limits, may_exchange, rows_of, will_fit};
use network::Swaps;
use ports::Ports;

/// Few ANDs: how many follow each other makes no rounds.
const FEW: Aim = Aim::Size;

/// The passes of a plan as one circuit of bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wires {
    /// ANDs that each of the passes has come to.
    pub ands: Vec<u64>,
    /// The recipients that are no parties, by number, and of each the output port that says whether the run ends without a result; none where nothing ends a run.
    pub ended: Vec<(u16, usize)>,
}

/// The plan for two parties: of one pass, in one row.
pub(crate) fn flat(mut plan: PhysicalPlan) -> Result<PhysicalPlan, PhysicalError> {
    let Some(PassSpec::Rows { job: first, .. }) = plan.passes.passes.first() else {
        return Err(PhysicalError::Circuit("it has no passes".into()));
    };
    let first = Arc::clone(first);
    let rows = rows_of(&plan);
    let named = |error| match error {
        PhysicalError::TooLarge { ands, limit, .. } => {
            PhysicalError::TooLarge { rows, ands, limit }
        }
        error => error,
    };
    let Flat {
        mut b,
        mut ports,
        mut ends,
        ..
    } = estimated(&plan.passes)
        .and_then(|()| Flat::passes(&plan.passes))
        .map_err(named)?;
    let ended = ports.finish(&mut b);
    // What hides results is of the last pass.
    if let Some(last) = ends.last_mut() {
        *last = b.wires();
    }
    let ands = b.needed_products(&ends);
    let all: u64 = ands.iter().sum();
    let circuit = b.finish_within(&limits()).map_err(|error| match error {
        CircuitError::TooLarge { .. } => named(too_large(all)),
        error => error.into(),
    })?;
    let inputs = ports.holders.len();
    let job = JobSpec {
        circuit,
        name: first.name.clone(),
        owners: first.owners.clone(),
        parties: first.parties.clone(),
        recipients: first.recipients.clone(),
        security: first.security,
        schema: String::new(),
        totals: None,
        blocks: vec![veil_job::Block {
            name: "all rows".into(),
            rows: 1,
            holders: ports.holders,
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: ports.audiences,
        opened: ports.opened,
        inputs: ports.inputs,
        datasets: vec![],
        keep: None,
    };
    for of in &mut plan.tables {
        (of.first, of.pass) = (ports.of_inputs[of.pass], 0);
    }
    for of in &mut plan.results {
        (of.first, of.pass) = (ports.of_outputs[of.pass], 0);
    }
    let opens = &mut plan.opens;
    opens.retain(|of| !matches!(of, Opening::Permutations { .. }));
    opens.extend(ended.iter().map(|(recipient, _)| Opening::Ended {
        to: job.recipients[usize::from(*recipient)].clone(),
    }));
    let claim = ports
        .claims
        .then(|| "what the job claims of its rows".into());
    plan.passes = ProgramSpec {
        passes: vec![PassSpec::Rows {
            takes: vec![None; inputs],
            leaves: vec![None; job.audiences.len()],
            job: Arc::new(job),
            claim,
        }],
        made: vec![],
    };
    plan.wires = Some(Wires { ands, ended });
    Ok(plan)
}

fn unplanned(what: &str) -> PhysicalError {
    PhysicalError::Circuit(what.into())
}

/// What the passes have come to so far.
struct Flat {
    b: Builder,
    columns: Columns,
    /// How rows were put in order, by the column of their positions.
    orders: HashMap<ColumnId, Swaps>,
    ports: Ports,
    reads: Reads,
    /// Wires at the end of each pass.
    ends: Vec<u64>,
}

impl Flat {
    /// Interprets all passes.
    fn passes(spec: &ProgramSpec) -> Result<Self, PhysicalError> {
        let mut flat = Flat {
            b: Builder::new(Ring::Bits),
            columns: Columns::default(),
            orders: HashMap::new(),
            ports: Ports::default(),
            reads: Reads::of(spec),
            ends: Vec::new(),
        };
        let mut made = spec.made.iter().peekable();
        for (number, pass) in spec.passes.iter().enumerate() {
            while let Some(made) = made.next_if(|made| made.before as usize == number) {
                let bits = form_bits(made.form);
                let of = flat.taken(&made.take, (made.rows, bits), made.column)?;
                flat.columns.leave(made.column, of);
            }
            flat.pass(pass)?;
            flat.ends.push(flat.b.wires());
            let reads = &flat.reads;
            flat.columns
                .retain(|column| reads.is_read_after(column, number));
        }
        Ok(flat)
    }

    /// What is taken, as a column with this number, of which no more bits are made than something reads.
    fn taken(
        &mut self,
        take: &Take,
        (rows, bits): (u32, u32),
        column: ColumnId,
    ) -> Result<Column, PhysicalError> {
        let read = self.reads.bits(column).min(bits) as usize;
        let words = self
            .columns
            .take(&mut self.b, take, (rows as usize, read))?;
        let words: Vec<Vec<Wire>> = words
            .iter()
            .map(|word| words::extended(&mut self.b, word, bits as usize))
            .collect();
        Ok(Column::of(&words, bits as usize))
    }

    fn pass(&mut self, pass: &PassSpec) -> Result<(), PhysicalError> {
        self.ports.begin();
        match pass {
            PassSpec::Rows {
                job,
                takes,
                leaves,
                claim,
            } => self.rows(job, takes, leaves, claim.as_deref()),
            PassSpec::Move {
                rows,
                kind,
                takes,
                leaves,
                factors,
                positions,
                ..
            } => {
                let compared = factors.is_some_and(|factors| self.reads.is_compared(factors));
                self.moved((*rows, *kind, compared), takes, leaves, *positions)
            }
            PassSpec::Compare {
                job,
                rows,
                of,
                positions: Some(positions),
                ..
            } => {
                let bits = u64::from(job.circuit.input_wires() / 2);
                self.sorted((*rows, bits), of, *positions)
            }
            // The first of several passes of comparisons, which are one network.
            PassSpec::Compare {
                positions: None, ..
            } => Ok(()),
            PassSpec::Product {
                rows,
                ring,
                transposed,
                left,
                right,
                leaves,
                ..
            } => self.product((*rows, *ring, *transposed), left, right, leaves),
        }
    }

    /// A circuit in every row.
    fn rows(
        &mut self,
        job: &JobSpec,
        takes: &[Option<Take>],
        leaves: &[Option<ColumnId>],
        claim: Option<&str>,
    ) -> Result<(), PhysicalError> {
        let rows = u32::try_from(job.rows()).map_err(|_| unplanned("it has too many rows"))?;
        let shares = [!job.datasets.is_empty(), job.keep.is_some()];
        if shares.contains(&true) {
            return Err(PhysicalError::NotOfTwo {
                what: "keep shares, or load them",
            });
        }
        if job.totals.is_some() || job.blocks.len() != 1 {
            return Err(unplanned(
                "a pass is of one block, and its sums are columns",
            ));
        }
        let circuit = InRows::new(&job.circuit, &self.reads.outputs(job, leaves), FEW);
        let read = circuit.read_of_inputs();
        let mut inputs: Vec<Vec<Vec<Wire>>> = Vec::with_capacity(takes.len());
        for (port, take) in takes.iter().enumerate() {
            let bits = circuit.input_bits(port);
            if let Some(take) = take {
                // The upper bits may not be read.
                let size = (rows as usize, read[port].min(bits) as usize);
                let words = self.columns.take(&mut self.b, take, size)?;
                let words = words.iter();
                let words = words.map(|word| words::extended(&mut self.b, word, bits as usize));
                inputs.push(words.collect());
            } else {
                inputs.push(self.ports.input(&mut self.b, job, port, (rows, bits)));
            }
        }
        let mut outputs: Vec<Vec<Vec<Wire>>> = vec![Vec::new(); leaves.len()];
        let mut since = (0, 0);
        for row in 0..rows as usize {
            if row == TRIED[0] {
                since = (self.b.wires(), self.b.products());
            } else if row == TRIED[1] {
                let tried = (TRIED[1] - TRIED[0]) as u64;
                will_fit(&self.b, (tried, since, u64::from(rows) - row as u64))?;
            }
            let own = inputs.iter().flat_map(|port| port[row].iter().copied());
            let out = circuit.row(&mut self.b, own.collect())?;
            for (all, out) in outputs.iter_mut().zip(out) {
                all.push(out);
            }
            fits(&self.b)?;
        }
        for (port, mut all) in outputs.into_iter().enumerate() {
            let (bits, integers) = circuit.output_bits(port);
            if circuit.is_sum(port) {
                all = vec![self.total(&all, self.reads.output(job, leaves, port), bits as usize)];
                fits(&self.b)?;
            }
            match (job.audiences[port], leaves[port], claim) {
                (Audience::Column, Some(column), _) => {
                    self.columns.leave(column, Column::of(&all, bits as usize));
                }
                (Audience::Column, None, _) => {}
                (_, _, Some(claim)) => {
                    let broken = any(&mut self.b, &all.concat());
                    self.ports.claim(broken, claim);
                }
                (audience, ..) => {
                    debug_assert!(
                        !integers,
                        "integers are opened as sizes of what is kept alone"
                    );
                    let what = job.opened[port].clone();
                    self.ports.output(all.concat(), (audience, what));
                }
            }
        }
        Ok(())
    }

    /// The sum of words of which so many low bits are read.
    fn total(&mut self, all: &[Vec<Wire>], read: u32, bits: usize) -> Vec<Wire> {
        let read = bits.min(read as usize);
        let words: Vec<Vec<Wire>> = all.iter().map(|word| word[..read].to_vec()).collect();
        let sum = words::sum_of(&mut self.b, &words, read, FEW);
        words::extended(&mut self.b, &sum, bits)
    }

    /// Rows that move as others have, or stay where they are until they are put in order.
    fn moved(
        &mut self,
        (rows, kind, compared): (u32, MoveKind, bool),
        takes: &[(Take, ColumnForm)],
        leaves: &[Option<ColumnId>],
        positions: Option<ColumnId>,
    ) -> Result<(), PhysicalError> {
        let swaps = match (kind, positions) {
            (MoveKind::There, _) if compared => None,
            (MoveKind::Along | MoveKind::Back, Some(positions)) => Some(positions),
            _ => {
                return Err(PhysicalError::NotOfTwo {
                    what: "put rows in an order by chance",
                });
            }
        };
        for ((take, form), column) in takes.iter().zip(leaves) {
            let Some(column) = column else {
                continue;
            };
            let bits = form_bits(*form);
            let mut moved = self.taken(take, (rows, bits), *column)?;
            if let Some(positions) = swaps {
                let swaps = self.orders.get(&positions);
                let swaps = swaps.ok_or_else(|| unplanned("rows were put in no order"))?;
                if swaps.rows() != moved.rows() {
                    return Err(unplanned("an order is of other rows"));
                }
                let known = known_to_move(std::iter::once(bits));
                may_exchange(&self.b, (swaps.rows(), known), false)?;
                let mut all = moved.all();
                match kind {
                    MoveKind::Back => swaps.back(&mut self.b, &mut all),
                    _ => swaps.along(&mut self.b, &mut all),
                }
                moved = Column::of(&all, bits as usize);
            }
            self.columns.leave(*column, moved);
            fits(&self.b)?;
        }
        Ok(())
    }

    /// Puts rows in the order of their words, of so many bits.
    fn sorted(
        &mut self,
        (rows, bits): (u32, u64),
        of: &[ColumnId],
        positions: ColumnId,
    ) -> Result<(), PhysicalError> {
        let widths = of.iter().map(|of| Ok(self.columns.column(*of)?.bits));
        let widths: Vec<usize> = widths.collect::<Result<_, PhysicalError>>()?;
        let mut words = vec![Vec::new(); rows as usize];
        for of in of {
            let column = self.columns.column(*of)?;
            if column.rows() != words.len() {
                return Err(unplanned("an order is of other rows"));
            }
            for (row, word) in words.iter_mut().enumerate() {
                word.extend_from_slice(column.row(row));
            }
        }
        may_exchange(&self.b, (words.len(), bits), true)?;
        let swaps = Swaps::sort(&mut self.b, &mut words);
        fits(&self.b)?;
        let mut first = 0;
        for (of, bits) in of.iter().zip(widths) {
            let own: Vec<Vec<Wire>> = words
                .iter()
                .map(|word| word[first..first + bits].to_vec())
                .collect();
            self.columns.leave(*of, Column::of(&own, bits));
            first += bits;
        }
        self.orders.insert(positions, swaps);
        Ok(())
    }

    /// A product of matrices.
    fn product(
        &mut self,
        (rows, ring, transposed): (u32, Ring, bool),
        left: &[Take],
        right: &[Take],
        leaves: &[Option<ColumnId>],
    ) -> Result<(), PhysicalError> {
        let bits = ring.bits() as usize;
        let inner = if transposed {
            rows as usize
        } else {
            left.len()
        };
        let mut taken = |takes: &[Take], rows: usize| -> Result<Vec<_>, PhysicalError> {
            let takes = takes.iter();
            takes
                .map(|take| self.columns.take(&mut self.b, take, (rows, bits)))
                .collect()
        };
        let (left_columns, right_columns) = (taken(left, rows as usize)?, taken(right, inner)?);
        let out = if transposed {
            left.len()
        } else {
            rows as usize
        };
        let element = |row: usize, k: usize| {
            let (column, at) = if transposed { (row, k) } else { (k, row) };
            &left_columns[column][at]
        };
        for (of_right, column) in right_columns.iter().zip(leaves) {
            let Some(column) = column else {
                continue;
            };
            let read = self.reads.bits(*column).min(bits as u32) as usize;
            let mut all = Vec::with_capacity(out);
            for row in 0..out {
                let mut terms = Vec::with_capacity(inner);
                for (k, other) in of_right.iter().enumerate() {
                    let own = element(row, k);
                    terms.push(words::times(&mut self.b, &own[..read], &other[..read], FEW));
                    fits(&self.b)?;
                }
                let sum = words::sum_of(&mut self.b, &terms, read, FEW);
                all.push(words::extended(&mut self.b, &sum, bits));
                fits(&self.b)?;
            }
            self.columns.leave(*column, Column::of(&all, bits));
        }
        Ok(())
    }
}

/// Bits of an element.
const fn form_bits(form: ColumnForm) -> u32 {
    (8 * form.bytes()) as u32
}
