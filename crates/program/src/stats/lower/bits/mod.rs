//! From analyses to one circuit of bits, for two parties.
//!
//! A block all of whose columns lie with one holder is added up by that holder, which supplies its sums. Rows whose columns lie with several
//! holders are taken by a sequential circuit, a number of them in each cycle, as cells of as few bits as their columns need; registers hold the
//! sums. What is opened is computed of the sums of the last cycle:
//!
//! ```text
//! cells of a cycle's rows ─► values that count ─► products ─┐
//!                                 registers ──────────────► + ─► registers
//!                        sums of holders' own rows ──────► + ─► means, conditions ─► outputs
//! ```
//!
//! Whatever a holder supplies, it is no more than rows of the declared ranges can be: a cell beyond its range is missing, or the least
//! value where none may be missing; a sum beyond what so many rows can have is 0. A holder that is malicious can still supply sums of which no
//! rows exist, such as a sum of squares that is too small for the sum.

mod layout;
mod opened;
mod row;

use std::collections::HashMap;

use veil_circuit::{
    Builder, Circuit, Gate, Initial, Limits, Per, Wire,
    generate::{Aim, constant_bits, less_than},
};
use veil_job::Holder;

pub(in crate::stats) use layout::{Layout, Port, only_holder};
pub(in crate::stats) use row::Cell;

use super::{LoweredStats, Opening};
use crate::bits::{Word, plus, total, within};
use crate::error::JobProblem;
use crate::stats::{Stats, extremes, monomial::Monomial};
use row::Row;

/// ANDs of the rows of a cycle: enough that layers are wide.
const CYCLE: u64 = 1 << 15;

/// Of the ANDs of rows, the part that may be spent on what is computed of sums in every cycle, whether it is opened or not.
const REST: u64 = 8;

/// ANDs of the rows of a cycle at most.
const MOST: u64 = 1 << 20;

/// A block whose columns lie with several holders.
struct Joint {
    block: usize,
    rows: u64,
    /// Rows of a cycle.
    each: u64,
}

impl Joint {
    /// Rows of the first cycles that are none: the last row is the last of the last cycle.
    fn skipped(&self, cycles: u64) -> u64 {
        cycles * self.each - self.rows
    }
}

/// How many rows a cycle takes.
struct Pace {
    joint: Vec<Joint>,
    cycles: u64,
}

/// A circuit, and the wires of its ports.
struct Lowering<'a> {
    stats: &'a Stats,
    opening: &'a Opening,
    sums: &'a [(Monomial, u32)],
    own: &'a [Holder],
}

impl Stats {
    /// Lowers the job for two parties. An error comes with the index of the analysis.
    pub(crate) fn lower_bits(&self) -> Result<LoweredStats, (usize, JobProblem)> {
        let mut opening = self.opening()?;
        let sums = opening.sums().into_iter().map(|sum| {
            let bits = sum.bits(&self.columns, self.rows()) as u32;
            (sum, bits)
        });
        let sums: Vec<(Monomial, u32)> = sums.collect();
        let (joint, own) = self.divided(&opening);
        let compared = self.compared(&joint).map_err(|problem| (0, problem))?;
        let pace = |cycles, joint| Pace { joint, cycles };
        let of = Lowering {
            stats: self,
            opening: &opening,
            sums: &sums,
            own: &own,
        };
        let each = |k: usize| {
            let more = joint.iter().enumerate();
            let joint = more.map(|(at, &(block, _))| {
                let each = 1 + u64::from(at == k);
                Joint {
                    block,
                    rows: 2 * each - 1,
                    each,
                }
            });
            pace(2, joint.collect())
        };
        let ands = |pace: &Pace| of.circuit(pace).map(|(circuit, _)| products(&circuit));
        // What a row of each block costs, and what all else does.
        let one = ands(&each(joint.len())).map_err(|problem| (0, problem))?;
        let rows: Vec<u64> = (0..joint.len())
            .map(|k| Ok(ands(&each(k))?.saturating_sub(one)))
            .collect::<Result<_, JobProblem>>()
            .map_err(|problem| (0, problem))?;
        let rest = one.saturating_sub(rows.iter().sum()).max(1);
        let costs = joint.iter().zip(&rows);
        let all: u64 = costs.map(|((_, count), cost)| count * cost).sum();
        let cycles = (all / CYCLE)
            .min(all / (REST * rest))
            .max(all / MOST)
            .max(1);
        // As many cycles as the longest block fills.
        let longest = joint.iter().map(|(_, rows)| *rows).max().unwrap_or(1);
        let cycles = longest.div_ceil(longest.div_ceil(cycles));
        let joint = joint.into_iter().map(|(block, rows)| Joint {
            block,
            rows,
            each: rows.div_ceil(cycles),
        });
        let pace = pace(cycles, joint.collect());
        let (circuit, opened) = of.circuit(&pace).map_err(|problem| (0, problem))?;
        let ports = of.ports(&pace);
        opening.layout = Some(Layout {
            ports,
            sums,
            opened,
            compared,
        });
        Ok(LoweredStats {
            circuit,
            totals: None,
            audiences: opening.shown.iter().map(|shown| shown.audience).collect(),
            opened: opening.sentences(&self.columns),
            opening,
        })
    }

    /// The blocks whose columns lie with several holders, with their rows, and the holders that have all columns of some block.
    fn divided(&self, opening: &Opening) -> (Vec<(usize, u64)>, Vec<Holder>) {
        let (mut joint, mut own) = (Vec::new(), Vec::new());
        if opening.columns.is_empty() {
            return (joint, own);
        }
        for (index, block) in self.blocks.iter().enumerate() {
            match layout::only_holder(block, opening) {
                Some(holder) => own.push(holder),
                None => joint.push((index, block.rows)),
            }
        }
        own.sort_unstable();
        own.dedup();
        (joint, own)
    }

    /// The block whose order its holders compare.
    fn compared(&self, joint: &[(usize, u64)]) -> Result<Option<usize>, JobProblem> {
        let blocks = joint.iter().map(|(block, _)| *block);
        let mut compared = blocks.filter(|block| self.blocks[*block].pairing.compared().is_some());
        let first = compared.next();
        match compared.next() {
            None => Ok(first),
            Some(other) => Err(JobProblem::TwoOrders(self.blocks[other].name.clone())),
        }
    }
}

/// Multiplications of a circuit.
fn products(circuit: &Circuit) -> u64 {
    let products = circuit.gates.iter();
    products
        .filter(|gate| matches!(gate, Gate::Mul(..)))
        .count() as u64
}

impl Lowering<'_> {
    /// The ports of the circuit, in order.
    fn ports(&self, pace: &Pace) -> Vec<Port> {
        let cells = pace.joint.iter().flat_map(|joint| {
            let columns = self.opening.columns.iter();
            columns.map(|&column| Port::Cells {
                block: joint.block,
                column,
                cell: Cell::of(&self.stats.columns[column]),
                rows: joint.each as u32,
                skipped: joint.skipped(pace.cycles),
            })
        });
        let sums = self.own.iter().map(|&holder| Port::Sums { holder });
        let extremes = self.opening.extremes.iter().enumerate();
        let extremes = extremes.flat_map(|(extreme, one)| {
            let holders = one.holders.iter();
            holders.map(move |&holder| Port::Extremes { extreme, holder })
        });
        cells.chain(sums).chain(extremes).collect()
    }

    /// The circuit, and of each output port its bits and whether they are signed.
    fn circuit(&self, pace: &Pace) -> Result<(Circuit, Vec<(u32, bool)>), JobProblem> {
        let (stats, opening) = (self.stats, self.opening);
        let mut b = Builder::new(veil_math::Ring::Bits);
        b.cycles(pace.cycles);
        let mut cells: Vec<Vec<Wire>> = Vec::new();
        for (number, joint) in pace.joint.iter().enumerate() {
            for &column in &opening.columns {
                let name = layout::port_name(&stats.columns[column].name, cells.len());
                let width = Cell::of(&stats.columns[column]).width() * joint.each as u32;
                let block = &stats.blocks[joint.block].name;
                let name = format!("{name} of block {}, {block}", number + 1);
                cells.push(b.input(layout::cut(&name), width, Per::Cycle));
            }
        }
        let mut totals = self.of_rows(&mut b, pace, &cells)?;
        for &holder in self.own {
            let rows = layout::own_rows(stats, opening, holder);
            let name = format!("sums of own rows, {}", layout::holder_name(holder));
            let width = self.sums.iter().map(|(_, width)| *width).sum();
            let mut wires = b.input(name, width, Per::Job).into_iter();
            for ((sum, width), total) in self.sums.iter().zip(&mut totals) {
                let bits = wires.by_ref().take(*width as usize).collect();
                let word = Word { bits, signed: true };
                let (least, most) = sum.range(&stats.columns, rows);
                let fits = within(&mut b, &word, least, most);
                let word = word.masked(&mut b, fits);
                *total = plus(&mut b, total, &word.bits);
            }
        }
        let mut extremes = Vec::new();
        for ((name, groups, _), steps) in extremes::ports(&opening.extremes, &stats.columns).zip(
            opening.extremes.iter().flat_map(|one| {
                let bits = one.bits(&stats.columns);
                one.holders.iter().map(move |_| bits)
            }),
        ) {
            let wires = b.input(name, groups * steps, Per::Job);
            extremes.push(wires.chunks(steps as usize).map(<[Wire]>::to_vec).collect());
        }
        let counts = self.sums.iter().zip(&totals);
        let of = opened::Sums {
            stats,
            opening,
            totals: counts
                .map(|((sum, _), bits)| (sum, bits.as_slice()))
                .collect::<HashMap<_, _>>(),
            extremes,
        };
        let mut opened = Vec::new();
        for (index, shown) in opening.shown.iter().enumerate() {
            let word = of.open(&mut b, shown);
            opened.push((word.bits.len() as u32, word.signed));
            b.output(format!("opened {index}"), &word.bits);
            limited(&b)?;
        }
        let circuit = b.finish().expect("gates as ports of other names have");
        Ok((circuit, opened))
    }

    /// The sums over the rows of all cycles so far.
    fn of_rows(
        &self,
        b: &mut Builder,
        pace: &Pace,
        cells: &[Vec<Wire>],
    ) -> Result<Vec<Vec<Wire>>, JobProblem> {
        if pace.joint.is_empty() {
            let zero = |(_, width): &(Monomial, u32)| constant_bits(b, 0, *width);
            return Ok(self.sums.iter().map(zero).collect());
        }
        let counter = Counter::new(b, pace.cycles);
        let mut words: Vec<Vec<Word>> = vec![Vec::new(); self.sums.len()];
        let columns = &self.opening.columns;
        for (joint, cells) in pace.joint.iter().zip(cells.chunks(columns.len())) {
            let skipped = joint.skipped(pace.cycles);
            let [first, second] = [0, 1].map(|more| counter.from(b, skipped / joint.each + more));
            for at in 0..joint.each {
                let live = if at < skipped % joint.each {
                    second
                } else {
                    first
                };
                let mut row = Row::default();
                for (&index, wires) in columns.iter().zip(cells) {
                    let column = &self.stats.columns[index];
                    let width = Cell::of(column).width() as usize;
                    let wires = &wires[at as usize * width..][..width];
                    row.take(b, (index, column), wires, live);
                }
                for ((sum, _), words) in self.sums.iter().zip(&mut words) {
                    words.push(row.product(b, sum));
                }
                limited(b)?;
            }
        }
        let mut totals = Vec::new();
        for (words, (_, width)) in words.iter().zip(self.sums) {
            let registers: Vec<Wire> = (0..*width)
                .map(|_| b.register(Initial::Constant(false)))
                .collect();
            let sum = total(b, registers.clone(), words);
            for (register, next) in registers.into_iter().zip(&sum) {
                b.set_next(register, *next);
            }
            totals.push(sum);
            limited(b)?;
        }
        Ok(totals)
    }
}

/// Long before memory is a concern.
fn limited(b: &Builder) -> Result<(), JobProblem> {
    let limit = Limits::default().gates;
    let found = b.wires();
    if found > limit {
        let what = "gates for the rows of a cycle and for what is computed of sums";
        return Err(JobProblem::TooMany { what, found, limit });
    }
    Ok(())
}

/// The number of the cycle.
struct Counter(Vec<Wire>);

impl Counter {
    fn new(b: &mut Builder, cycles: u64) -> Self {
        let bits = u64::BITS - cycles.leading_zeros();
        let registers: Vec<Wire> = (0..bits)
            .map(|_| b.register(Initial::Constant(false)))
            .collect();
        let one = constant_bits(b, 1, bits);
        let next = plus(b, &registers, &one);
        for (register, next) in registers.iter().zip(next) {
            b.set_next(*register, next);
        }
        Self(registers)
    }

    /// Whether this is cycle `first` or a later one; nothing if it always is.
    fn from(&self, b: &mut Builder, first: u64) -> Option<Wire> {
        if first == 0 {
            return None;
        }
        let bound = constant_bits(b, first.into(), self.0.len() as u32);
        let before = less_than(b, &self.0, &bound, Aim::Size);
        Some(b.not(before))
    }
}
