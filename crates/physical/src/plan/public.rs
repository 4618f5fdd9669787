//! Groups of public lists of keys: one sum over all rows for each group, and nothing moves.

use veil_circuit::generate::constant_bits;
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_math::Ring;
use veil_operators::{Shared, Sharing, stacked};
use veil_relation::{Aggregate, Comparison, Expr, Kind, Range, Shape, SortKey, Type};

use super::aggregates::{Kept, Summand, ring_of};
use super::folded;
use super::group::{extreme_fields, extreme_scans, extreme_words, kind_of, some, summed, wanted};
use super::known::Known;
use super::rel::{Base, Field, Places, Rel};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::{Exprs, Want};

impl Planner<'_> {
    /// One sum over all rows for each group and summand; nothing moves.
    pub(super) fn public_groups(
        &mut self,
        mut rel: Rel,
        keys: &[(Expr, Kind)],
        aggregates: &[Aggregate],
        (min_rows, shape): (u32, &Shape),
    ) -> Result<Rel, PhysicalError> {
        let kept = Kept::of(&rel, aggregates)?;
        let types = rel.types();
        let condition = rel.condition();
        // The rows of a group, whether or not an aggregate asks for them.
        let mut summands = kept.summands.clone();
        let all_rows = Summand::Rows(condition.clone());
        let rows_at = summands.iter().position(|summand| *summand == all_rows);
        let rows_at = rows_at.unwrap_or_else(|| {
            summands.push(all_rows);
            summands.len() - 1
        });
        let ranges = summands
            .iter()
            .map(|summand| Kept::range(summand, &types, rel.rows));
        let ranges: Vec<Range> = ranges.collect::<Result<_, _>>()?;
        let rings = ranges.iter().map(|range| ring_of(*range));
        let ring = rings.max_by_key(|ring| ring.bits()).unwrap_or(Ring::Z32);
        let groups = keys.iter().map(|(_, kind)| kind.domain().unwrap_or(1));
        let groups = groups.fold(1, |all: u64, of| all.saturating_mul(of));
        // Where all is bits, none are lifted.
        let lifts = self.b.participants().security.moves_integers();
        let (as_bits, fold) = if self.twice || !lifts && !self.b.is_garbled() {
            (vec![false; summands.len()], 1)
        } else {
            folded::as_bits(&rel, &summands, groups)
        };
        let of = |bits: bool| -> Vec<Summand> {
            let pairs = summands.iter().zip(&as_bits);
            let pairs = pairs.filter(|(_, as_bits)| **as_bits == bits);
            pairs.map(|(summand, _)| summand.clone()).collect()
        };
        let (in_bits, in_ring) = (of(true), of(false));
        let mut values: Vec<Vec<u128>> = Vec::new();
        let mut sums_of_bits = vec![];
        if !in_bits.is_empty() {
            (values, sums_of_bits) = self.sums_of_bits(&mut rel, (keys, &in_bits), (fold, ring))?;
        }
        let mut sums_in_ring = vec![];
        if !in_ring.is_empty() {
            let wants = wanted(&in_ring, keys, &types);
            sums_in_ring = self.rows(&mut rel, ring, &wants, |exprs| {
                let groups = one_hot(exprs, keys)?;
                values = groups.iter().map(|(values, _)| values.clone()).collect();
                let mut outs = Vec::new();
                for (_, here) in &groups {
                    for summand in &in_ring {
                        outs.push(Out::Sum(summed(exprs, summand, *here)?));
                    }
                }
                Ok(outs)
            })?;
        }
        let (mut of_bits, mut of_ring) = (sums_of_bits.into_iter(), sums_in_ring.into_iter());
        let of_each = values.iter().flat_map(|_| &as_bits);
        let columns = of_each.filter_map(|bits| {
            if *bits {
                of_bits.next()
            } else {
                of_ring.next()
            }
        });
        let columns: Vec<Shared> = columns.collect();
        let groups = values.len() as u32;
        let mut result = Rel {
            rows: groups,
            base: vec![],
            fields: vec![],
            valid: vec![],
            places: Places::Secret,
            order: None,
            min_rows,
        };
        let key_fields = self.public_keys(keys, shape, &values, columns[0])?;
        for base in key_fields {
            let field = result.push(base);
            result.fields.push(field);
        }
        let mut sums = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            let of = columns.chunks(summands.len()).map(|group| group[at]);
            let take = stacked(of);
            let column = self.b.make(take, groups, Sharing::Ring(ring));
            let of = |range: Range| Type::of(kind_of(&summands[at], &types, range));
            if at == rows_at && (!keys.is_empty() || min_rows > 1) {
                let count = result.push(Base::of_integer(of(*range), column));
                let least = Expr::integer(min_rows.max(1).into());
                let enough = Expr::compare(Comparison::Ge, count, least);
                result.valid.push(enough);
            }
            let of_valid = if at == rows_at && !keys.is_empty() {
                some(*range)
            } else {
                *range
            };
            sums.push(result.push(Base::of_integer(of(of_valid), column)));
        }
        result.places = Places::Public;
        let fields = &shape.fields[keys.len()..];
        let extremes = self.extremes_of_all(&mut rel, &mut result, &kept)?;
        let of = self.aggregates(&mut result, &kept, (&sums, &extremes), fields)?;
        result.fields.extend(of);
        // Groups come in the order of their keys, and those without rows between them.
        let by = (0..keys.len() as u32).map(|key| SortKey::ascending(Expr::column(key)));
        result.order = Known::of_groups(&result, by.collect(), false);
        Ok(result)
    }

    /// The smallest and largest values of all rows, as columns of one row.
    fn extremes_of_all(
        &mut self,
        rel: &mut Rel,
        result: &mut Rel,
        kept: &Kept,
    ) -> Result<Vec<Expr>, PhysicalError> {
        if kept.extremes.is_empty() {
            return Ok(vec![]);
        }
        let wants = kept.extremes.iter().flat_map(|extreme| {
            let both = [extreme.of.clone(), extreme.condition.clone()];
            both.map(|expr| (expr, Want::Bits))
        });
        let wants: Vec<_> = wants.collect();
        let columns = self.rows(rel, Ring::Bits, &wants, |exprs| {
            let mut outs = Vec::new();
            for extreme in &kept.extremes {
                outs.extend(extreme_words(exprs, extreme)?);
            }
            Ok(outs)
        })?;
        let first = self.b.within(rel.rows, 0, 1);
        let scanned = self.b.scan(first, &extreme_scans(&kept.extremes, &columns));
        let last: Vec<Shared> = scanned
            .iter()
            .map(|of| {
                self.b
                    .make(of.rows_from(i64::from(rel.rows) - 1), 1, of.sharing())
            })
            .collect();
        Ok(extreme_fields(result, &kept.extremes, &last))
    }

    /// The keys of public groups, as columns: what is public is shared as it is.
    fn public_keys(
        &mut self,
        keys: &[(Expr, Kind)],
        shape: &Shape,
        values: &[Vec<u128>],
        any: Shared,
    ) -> Result<Vec<Base>, PhysicalError> {
        let Sharing::Ring(ring) = any.sharing() else {
            return Err(PhysicalError::Circuit("sums are integers".into()));
        };
        // Bits of each key, and of whether it is null: with at most as many values as there are groups, they fit a word. A key of one value has none.
        let widths = keys.iter().zip(&shape.fields);
        let widths = widths.map(|((_, kind), field)| {
            let null = u32::from(field.ty.nullable);
            (kind.bits().unwrap_or(0), null)
        });
        let widths: Vec<(u32, u32)> = widths.collect();
        let all: u32 = widths.iter().map(|(width, null)| width + null).sum();
        if all == 0 {
            let one_value = shape.fields.iter().take(keys.len());
            let bases = one_value.map(|field| Base::of_bits(field.ty.clone(), None, None));
            return Ok(bases.collect());
        }
        // A circuit has an input: it reads a sum, and does nothing with it.
        let mut b = Gates::new(ring);
        b.input("sum", 1, Per::Row);
        for (group, values) in values.iter().enumerate() {
            let mut word: Vec<Wire> = Vec::new();
            for (value, (width, may_be_null)) in values.iter().zip(&widths) {
                // What is null is numbered last.
                let null = *value >> 127 & 1 == 1;
                word.extend(constant_bits(&mut b, if null { 0 } else { *value }, *width));
                word.extend((*may_be_null > 0).then(|| b.constant_bit(null)));
            }
            b.output(format!("group{group}"), &word);
        }
        let circuit = b.finish()?;
        let words = self.b.compute(circuit, 1, vec![any.take()]);
        let take = stacked(words.iter().copied());
        let all = self.b.make(take, values.len() as u32, Sharing::Bits(all));
        let mut first = 0;
        let mut bases = Vec::new();
        for ((width, null), field) in widths.iter().zip(&shape.fields) {
            let bits = (*width > 0).then(|| Field::new(all, first, *width));
            let is_null = (*null > 0).then(|| Field::new(all, first + width, 1));
            bases.push(Base::of_bits(field.ty.clone(), bits, is_null));
            first += width + null;
        }
        Ok(bases)
    }
}

/// For each group of keys of public lists their values, and whether a row is of it; a value that is null has bit 127.
pub(super) fn one_hot(
    exprs: &mut Exprs,
    keys: &[(Expr, Kind)],
) -> Result<Vec<(Vec<u128>, Wire)>, PhysicalError> {
    let mut groups: Vec<(Vec<u128>, Wire)> = vec![(vec![], exprs.b.constant_bit(true))];
    for (expr, kind) in keys {
        let (bits, null) = exprs.bits_as(expr, kind)?;
        let values = kind.domain().unwrap_or(1);
        let mut of_key = decoded(&mut exprs.b, &bits, values);
        if let Some(null) = null {
            // Where the value is null its bits are those of value 0.
            let there = exprs.b.not(null);
            of_key[0].1 = exprs.b.and(of_key[0].1, there);
            of_key.push((1 << 127, null));
        }
        let mut all = Vec::new();
        for (values, here) in &groups {
            for (value, is) in &of_key {
                let mut values = values.clone();
                values.push(*value);
                all.push((values, exprs.b.and(*here, *is)));
            }
        }
        groups = all;
    }
    Ok(groups)
}

/// Whether bits are each of the first `values` numbers.
fn decoded(b: &mut Gates, bits: &[Wire], values: u64) -> Vec<(u128, Wire)> {
    match bits {
        [] => vec![(0, b.constant_bit(true))],
        [bit] => {
            let not = b.not(*bit);
            let both = [(0, not), (1, *bit)];
            both.into_iter().take(values as usize).collect()
        }
        _ => {
            let (low, high) = bits.split_at(bits.len() / 2);
            let size = 1u64 << low.len();
            let of_low = decoded(b, low, size.min(values));
            let of_high = decoded(b, high, values.div_ceil(size));
            let pairs = of_high.iter().flat_map(|(h, is_high)| {
                let low = of_low.iter();
                low.map(move |(l, is_low)| (h * u128::from(size) + l, *is_high, *is_low))
            });
            let pairs: Vec<_> = pairs.filter(|(value, ..)| *value < values.into()).collect();
            let both = pairs.into_iter().map(|(value, h, l)| (value, b.and(h, l)));
            both.collect()
        }
    }
}
