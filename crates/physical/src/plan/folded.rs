//! Sums over all rows of numbers that are bits: up to eight rows become one by carry-save additions, until few are left whose bits are lifted.
//!
//! A bit that is lifted in every row takes an integer or more from each party, an addition of bits an AND for each of them. Where owners supply bits
//! alone, a sum is some fifty times cheaper so.

use veil_circuit::{Builder as Gates, Wire};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::Shared;
use veil_relation::{Arithmetic, ColumnId, Expr, Kind, Type};

use super::aggregates::{Summand, square};
use super::public::one_hot;
use super::rel::{Field, Packing, Rel};
use super::rows::{Ports, Words};
use super::{PhysicalError, Planner};
use crate::exprs::{Columns, Data, ExprError, Exprs, Shown, Want, masked};

/// Rows that become one in a pass, at most.
const FOLD: u32 = 8;

/// Bits of all numbers that are added up, of the rows that become one together: more make circuits that are planned for long.
const MOST_BITS: u64 = 8192;

/// Rows from which on bits are added up before they are lifted: fewer are not worth the rounds.
const LEAST: u32 = 256;

/// As many ANDs among four parties send what a bit does that is lifted to 64 bits, and a product of integers of 64 bits.
const LIFT: u64 = 43;
const PRODUCT: u64 = 64;

/// A sum over rows: addends by their numbers, each times a public factor, modulo the ring.
type Terms = Vec<(usize, u128)>;

/// What is added up of a row: numbers as bits.
#[derive(Default)]
struct Addends {
    wires: Vec<Vec<Wire>>,
    /// Of each group and summand.
    sums: Vec<Terms>,
}

impl Addends {
    fn number(&mut self, of: Vec<Wire>) -> usize {
        self.wires.push(of);
        self.wires.len() - 1
    }

    /// Adds a summand of a row: 0 where the bit `here` is 0.
    fn add(
        &mut self,
        exprs: &mut Exprs,
        summand: &Summand,
        here: Wire,
    ) -> Result<(), PhysicalError> {
        let (condition, of) = parts(summand);
        let holds = exprs.truth(condition)?;
        let mut counts = exprs.b.and(holds, here);
        let Some(of) = of else {
            let number = self.number(vec![counts]);
            self.sums.push(vec![(number, 1)]);
            return Ok(());
        };
        let cell = exprs.cell(&of)?;
        let Data::Word(word) = cell.value else {
            let expr = Shown::of(&of);
            return Err(ExprError::Quotient { expr }.into());
        };
        if let Some(null) = cell.null {
            let there = exprs.b.not(null);
            counts = exprs.b.and(counts, there);
        }
        let mut terms = Terms::new();
        if !word.bits.is_empty() {
            let bits = masked(&mut exprs.b, &word.bits, counts);
            terms.push((self.number(bits), 1));
        }
        if word.offset != 0 {
            terms.push((self.number(vec![counts]), word.offset.cast_unsigned()));
        }
        self.sums.push(terms);
        Ok(())
    }
}

/// Where a summand counts, and what is added up there; nothing of rows that are counted.
fn parts(summand: &Summand) -> (&Expr, Option<Expr>) {
    match summand {
        Summand::Rows(condition) => (condition, None),
        Summand::Values(condition, of) => (condition, Some(of.clone())),
        Summand::Squares(condition, of) => (condition, Some(square(of))),
    }
}

/// What an expression of numbers takes of ANDs among four parties: in the ring, of bits that are lifted, and as bits; with its number of bits.
fn price(expr: &Expr, types: &[Type]) -> (u64, u64, u64) {
    let range = expr.ty(types).ok().and_then(|ty| ty.kind.range());
    let bits = range.map_or(0, |range| u64::from(range.bits()));
    let both = |a: &Expr, b: &Expr| {
        let (a, b) = (price(a, types), price(b, types));
        (a.0 + b.0, a.1 + b.1, a.2 * b.2)
    };
    match expr {
        Expr::Literal(_) => (0, 0, bits),
        Expr::Arithmetic(Arithmetic::Mul, a, b) => {
            let (ring, as_bits, squares) = both(a, b);
            (ring + PRODUCT, as_bits + 2 * squares, bits)
        }
        Expr::Arithmetic(_, a, b) | Expr::AddDays(a, b) | Expr::DaysBetween(a, b) => {
            let (ring, as_bits, _) = both(a, b);
            (ring, as_bits + bits, bits)
        }
        // Bits, whichever way is taken.
        _ => (LIFT * bits, 0, bits),
    }
}

/// Which summands over rows of so many groups of a relation are added up as bits, where owners supply bits alone, and how many rows become one in a pass.
pub(super) fn as_bits(rel: &Rel, summands: &[Summand], groups: u64) -> (Vec<bool>, u32) {
    let each: Vec<Option<u64>> = summands.iter().map(|of| bits_of(rel, of, groups)).collect();
    let all: u64 = each.iter().flatten().sum();
    let most = MOST_BITS / all.saturating_mul(groups).max(1);
    // A power of two: numbers become as many bits longer.
    let fold = FOLD.min(1 << most.max(1).ilog2());
    let some = fold > 1 && rel.rows >= LEAST;
    (each.iter().map(|of| some && of.is_some()).collect(), fold)
}

/// Whether an expression asks a model, whose circuit is large: that of several rows would be too large.
fn asks_a_model(of: &Expr) -> bool {
    matches!(of, Expr::Predict { .. }) || of.operands().into_iter().any(asks_a_model)
}

/// The bits of a summand, if it is to be added up as bits.
fn bits_of(rel: &Rel, summand: &Summand, groups: u64) -> Option<u64> {
    let (condition, of) = parts(summand);
    if asks_a_model(condition) || of.as_ref().is_some_and(asks_a_model) {
        return None;
    }
    let Some(of) = of else {
        return Some(1);
    };
    let mut at_hand = true;
    of.columns(&mut |column: ColumnId| {
        let base = rel.base.get(column.index());
        at_hand &= base.is_some_and(|base| base.bits.is_some() || base.of_table.is_some());
    });
    let (ring, as_bits, bits) = price(&of, &rel.types());
    let cheaper = as_bits + 2 * groups * bits <= ring + groups * PRODUCT;
    (at_hand && cheaper).then_some(bits)
}

/// Numbers of which each is added up over rows, as words whose sum it is.
struct Partial {
    rows: u32,
    /// Of each number its words, and bits that hold its sum.
    numbers: Vec<(Vec<Field>, u32)>,
    /// Of each group and summand.
    sums: Vec<Terms>,
}

impl Partial {
    /// The words of a circuit's outputs that this many rows of it leave: what `columns` are of each number, saved, and packed.
    fn outputs(b: &mut Gates, columns: Vec<Columns>) -> (Packing, Vec<[usize; 2]>) {
        let mut packing = Packing::default();
        let columns = columns.into_iter();
        let fields = columns.map(|columns| columns.saved(b).map(|word| packing.add(&word)));
        let fields = fields.collect();
        for (at, word) in packing.words.iter().enumerate() {
            b.output(format!("out{at}"), word);
        }
        (packing, fields)
    }

    /// Input ports for all words, in so many blocks of rows: the wires of each number.
    fn read(&self, ports: &mut Ports, blocks: u32) -> Vec<Vec<Vec<Wire>>> {
        let all = self.numbers.iter().flat_map(|(fields, _)| fields);
        let all: Vec<Field> = all.copied().collect();
        let mut numbers: Vec<Vec<Vec<Wire>>> = self.numbers.iter().map(|_| vec![]).collect();
        let each = self.rows.div_ceil(blocks);
        for block in 0..blocks {
            let mut words = Words::of(&all, Some(block * each));
            for (number, (fields, _)) in numbers.iter_mut().zip(&self.numbers) {
                number.extend(fields.iter().map(|field| words.field(ports, field)));
            }
        }
        numbers
    }
}

impl Planner<'_> {
    /// For each group of keys of public lists its values, and for each group and summand the sum over all rows, as an integer of a ring in one row.
    pub(super) fn sums_of_bits(
        &mut self,
        rel: &mut Rel,
        of: (&[(Expr, Kind)], &[Summand]),
        (fold, ring): (u32, Ring),
    ) -> Result<(Vec<Vec<u128>>, Vec<Shared>), PhysicalError> {
        let (values, mut partial) = self.first_sums(rel, of, (fold, ring))?;
        while partial.rows >= LEAST {
            let mut ports = Ports::new(Ring::Bits);
            let numbers = partial.read(&mut ports, fold);
            let mut columns = Vec::new();
            for (words, (_, width)) in numbers.iter().zip(&mut partial.numbers) {
                *width = (*width + fold.ilog2()).min(ring.bits());
                let mut all = Columns::new(*width);
                for bits in words {
                    all.bits(&mut ports.b, bits, 0, false);
                }
                columns.push(all);
            }
            let (packing, fields) = Partial::outputs(&mut ports.b, columns);
            partial.rows = partial.rows.div_ceil(fold);
            let words = self.b.compute(ports.b.finish()?, partial.rows, ports.takes);
            for ((of, _), fields) in partial.numbers.iter_mut().zip(fields) {
                *of = fields.map(|field| packing.field(field, &words)).to_vec();
            }
        }
        let mut ports = Ports::new(ring);
        let numbers = partial.read(&mut ports, 1);
        let b = &mut ports.b;
        let mut totals = Vec::new();
        for words in numbers {
            let mut total = b.constant(0);
            for word in words {
                for (j, bit) in word.into_iter().enumerate() {
                    let bit = b.lift(bit);
                    let bit = b.times(bit, 1 << j);
                    total = b.add(total, bit);
                }
            }
            totals.push(total);
        }
        for (at, terms) in partial.sums.iter().enumerate() {
            let mut sum = b.constant(0);
            for (number, factor) in terms {
                let term = b.times(totals[*number], *factor);
                sum = b.add(sum, term);
            }
            b.output_sum(format!("out{at}"), &[sum]);
        }
        let totals = self.b.compute(ports.b.finish()?, partial.rows, ports.takes);
        Ok((values, totals))
    }

    /// The first pass: each of its rows adds up several of the relation's, which stand so many rows apart.
    fn first_sums(
        &mut self,
        rel: &mut Rel,
        (keys, summands): (&[(Expr, Kind)], &[Summand]),
        (fold, ring): (u32, Ring),
    ) -> Result<(Vec<Vec<u128>>, Partial), PhysicalError> {
        let of_keys = keys.iter().map(|(key, _)| key.clone());
        let of_summands = summands.iter().flat_map(|summand| {
            let (condition, of) = parts(summand);
            of.into_iter().chain([condition.clone()])
        });
        let wants = of_keys.chain(of_summands).map(|expr| (expr, Want::Bits));
        let wants: Vec<(Expr, Want)> = wants.collect();
        let forms = self.forms(rel, Ring::Bits, &wants)?;
        let each = rel.rows.div_ceil(fold);
        let aim = self.aim(rel.rows);
        let mut ports = Ports::new(Ring::Bits);
        let mut values = Vec::new();
        let mut blocks: Vec<Addends> = Vec::new();
        for block in 0..fold {
            let first = block * each;
            let there = rel.rows.saturating_sub(first).min(each);
            if there == 0 {
                break;
            }
            let sources = ports.sources(rel, &forms, Some(first));
            ports.at_least_one();
            let present = (there < each).then(|| {
                let within = Take::Within {
                    first: 0,
                    end: there,
                };
                ports.bits(within, 1)[0]
            });
            let mut exprs = Exprs::new(ports.b, rel.types(), sources, aim);
            let groups = one_hot(&mut exprs, keys)?;
            let mut addends = Addends::default();
            for (_, here) in &groups {
                let here = match present {
                    Some(present) => exprs.b.and(*here, present),
                    None => *here,
                };
                for summand in summands {
                    addends.add(&mut exprs, summand, here)?;
                }
            }
            values = groups.into_iter().map(|(values, _)| values).collect();
            blocks.push(addends);
            ports.b = exprs.b;
        }
        // What is the same in all blocks is added up once.
        let mut sums = std::mem::take(&mut blocks[0].sums);
        let mut kept: Vec<usize> = Vec::new();
        for (number, _) in sums.iter_mut().flatten() {
            let same = |kept: &usize| {
                let mut blocks = blocks.iter();
                blocks.all(|block| block.wires[*kept] == block.wires[*number])
            };
            let known = kept.iter().position(same);
            *number = known.unwrap_or_else(|| {
                kept.push(*number);
                kept.len() - 1
            });
        }
        let mut columns = Vec::new();
        let mut widths = Vec::new();
        for number in kept {
            let bits = blocks[0].wires[number].len() as u32;
            let width = (bits + fold.ilog2()).min(ring.bits());
            let mut all = Columns::new(width);
            for block in &blocks {
                all.bits(&mut ports.b, &block.wires[number], 0, false);
            }
            columns.push(all);
            widths.push(width);
        }
        let (packing, fields) = Partial::outputs(&mut ports.b, columns);
        let words = self.b.compute(ports.b.finish()?, each, ports.takes);
        let numbers = fields.into_iter().zip(widths).map(|(fields, width)| {
            let fields = fields.map(|field| packing.field(field, &words));
            (fields.to_vec(), width)
        });
        let partial = Partial {
            rows: each,
            numbers: numbers.collect(),
            sums,
        };
        Ok((values, partial))
    }
}
