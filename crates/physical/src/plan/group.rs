//! Groups: over keys of public lists by one sum for each group, over secret keys by a sort.

use veil_circuit::generate::constant_bits;
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_math::Ring;
use veil_operators::{GroupKey, Scan, Shared, Sharing, stacked};
use veil_relation::{Aggregate, Comparison, Domain, Expr, Kind, Named, Range, Shape, Type};

use super::aggregates::{Extreme, Kept, Summand, ring_of, square, value_where};
use super::order::key_words;
use super::rel::{Base, Field, Places, Rel, WORD, or_null};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::{Exprs, Want};

/// Groups of a public domain that are counted one by one, at most.
const MOST_GROUPS: u64 = 512;

impl Planner<'_> {
    /// A row for each group.
    pub(super) fn group_by(
        &mut self,
        rel: Rel,
        (keys, aggregates): (&[Named], &[Aggregate]),
        (domain, min_rows): (Domain, u32),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let kinds = shape.fields.iter().map(|field| field.ty.kind.clone());
        let keys: Vec<(Expr, Kind)> = keys
            .iter()
            .map(|key| rel.over_base(&key.expr))
            .zip(kinds)
            .collect();
        let extremes = |aggregate: &Aggregate| {
            use veil_relation::AggregateFunction::{Max, Min};
            matches!(aggregate.function, Min(_) | Max(_))
        };
        let groups = match domain {
            _ if keys.is_empty() => 1,
            Domain::Public(groups) => u64::from(groups),
            Domain::Secret => u64::MAX,
        };
        let sums = groups.saturating_mul(aggregates.len() as u64 + 1);
        if sums <= MOST_GROUPS && (keys.is_empty() || !aggregates.iter().any(extremes)) {
            return self.public_groups(rel, &keys, aggregates, (min_rows, shape));
        }
        self.secret_groups(rel, &keys, aggregates, (min_rows, shape))
    }

    /// One sum over all rows for each group and summand; nothing moves.
    fn public_groups(
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
        let wants = wanted(&summands, keys, &types);
        let mut values: Vec<Vec<u128>> = Vec::new();
        let columns = self.rows(&mut rel, ring, &wants, |exprs| {
            let groups = one_hot(exprs, keys)?;
            values = groups.iter().map(|(values, _)| values.clone()).collect();
            let mut outs = Vec::new();
            for (_, here) in &groups {
                for summand in &summands {
                    outs.push(Out::Sum(summed(exprs, summand, *here)?));
                }
            }
            Ok(outs)
        })?;
        let groups = values.len() as u32;
        let mut result = Rel {
            rows: groups,
            base: vec![],
            fields: vec![],
            valid: vec![],
            places: Places::Secret,
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

    /// Rows are sorted by their keys; groups are in front of what comes out.
    pub(super) fn secret_groups(
        &mut self,
        mut rel: Rel,
        keys: &[(Expr, Kind)],
        aggregates: &[Aggregate],
        (min_rows, shape): (u32, &Shape),
    ) -> Result<Rel, PhysicalError> {
        let exprs: Vec<Expr> = keys.iter().map(|(key, _)| key.clone()).collect();
        let arranged = self.gathered(&rel, &exprs);
        let kept = Kept::of(&rel, aggregates)?;
        let types = rel.types();
        let condition = rel.condition();
        let ranges = kept
            .summands
            .iter()
            .map(|of| Kept::range(of, &types, rel.rows));
        let ranges: Vec<Range> = ranges.collect::<Result<_, _>>()?;
        // How many rows a group has comes with the sort.
        let counted = Summand::Rows(condition.clone());
        let summed_up: Vec<&Summand> = kept.summands.iter().filter(|of| **of != counted).collect();
        let rings = kept.summands.iter().zip(&ranges);
        let rings = rings
            .filter(|(of, _)| **of != counted)
            .map(|(_, range)| ring_of(*range));
        let ring = rings.max_by_key(|ring| ring.bits()).unwrap_or(Ring::Bits);
        let mut wants = wanted(&kept.summands, keys, &types);
        wants.push((condition.clone(), Want::Bits));
        for extreme in &kept.extremes {
            wants.push((extreme.of.clone(), Want::Bits));
            wants.push((extreme.condition.clone(), Want::Bits));
        }
        let mut layout = Layout::default();
        let all_valid = rel.valid.is_empty();
        let columns = self.rows(&mut rel, ring, &wants, |exprs| {
            let valid = exprs.truth(&condition)?;
            let mut bits = Vec::new();
            for (expr, kind) in keys {
                let (of, null) = exprs.bits_as(expr, kind)?;
                layout
                    .keys
                    .push((bits.len() as u32, of.len() as u32, null.is_some()));
                bits.extend(of.into_iter().chain(null));
            }
            let bits: Vec<Wire> = bits
                .into_iter()
                .map(|bit| exprs.b.and(bit, valid))
                .collect();
            layout.all = all_valid && !bits.is_empty();
            let absent = (!layout.all).then(|| exprs.b.not(valid));
            let mut outs = key_words(bits, absent);
            layout.words = outs.len();
            for summand in &summed_up {
                let one = exprs.b.constant_bit(true);
                outs.push(Out::Integer(summed(exprs, summand, one)?));
            }
            for extreme in &kept.extremes {
                outs.extend(extreme_words(exprs, extreme)?);
            }
            Ok(outs)
        })?;
        let (words, rest) = columns.split_at(layout.words);
        let (sums, scanned) = rest.split_at(summed_up.len());
        let scans = extreme_scans(&kept.extremes, scanned);
        let by = GroupKey {
            words,
            all: layout.all,
            arranged,
        };
        let groups = self.b.group(by, sums, &scans);
        let mut result = Rel {
            rows: rel.rows,
            base: vec![],
            fields: vec![],
            valid: vec![],
            places: Places::Secret,
            min_rows,
        };
        for ((first, count, null), field) in layout.keys.iter().zip(&shape.fields) {
            let at = |first: u32, count: u32| part_of(&groups.key, first, count);
            let bits = self.key_bits(&groups.key, (*first, *count))?;
            let null = null.then(|| at(first + count, 1)).flatten();
            let base = Base::of_bits(field.ty.clone(), bits, null);
            let field = result.push(base);
            result.fields.push(field);
        }
        let mut of_sums = groups.sums.iter();
        let mut all = Vec::new();
        for (summand, range) in kept.summands.iter().zip(&ranges) {
            let column = if *summand == counted {
                Some(&groups.count)
            } else {
                of_sums.next()
            };
            let column = column.ok_or_else(|| PhysicalError::Circuit("a sum is missing".into()))?;
            let range = if *summand == counted {
                some(*range)
            } else {
                *range
            };
            let ty = Type::of(kind_of(summand, &types, range));
            all.push(result.push(Base::of_integer(ty, *column)));
        }
        let extremes = extreme_fields(&mut result, &kept.extremes, &groups.scanned);
        let valid = Field::new(groups.valid, 0, 1);
        let valid = result.push(Base::of_bits(Type::of(Kind::Bool), Some(valid), None));
        result.valid.push(valid);
        if min_rows > 1 {
            let range = Range::new(0, rel.rows.into()).unwrap_or(Range::point(0));
            let count = Base::of_integer(Type::of(Kind::Integer(range)), groups.count);
            let count = result.push(count);
            let least = Expr::integer(min_rows.into());
            result
                .valid
                .push(Expr::compare(Comparison::Ge, count, least));
        }
        let fields = &shape.fields[keys.len()..];
        let of = self.aggregates(&mut result, &kept, (&all, &extremes), fields)?;
        result.fields.extend(of);
        Ok(self.first_rows(&result, shape.capacity.min(rel.rows.into()) as u32))
    }

    /// Bits of a key of several words, which may lie in two of them: then they are put together.
    fn key_bits(
        &mut self,
        words: &[Shared],
        (first, count): (u32, u32),
    ) -> Result<Option<Field>, PhysicalError> {
        if count == 0 {
            return Ok(None);
        }
        if let Some(field) = part_of(words, first, count) {
            return Ok(Some(field));
        }
        let word = WORD as u32;
        let (at, low) = ((first / word) as usize, word - first % word);
        let parts = [
            Field::new(words[at], first % word, low),
            Field::new(words[at + 1], 0, count - low),
        ];
        let mut b = Gates::new(Ring::Bits);
        let wires = parts
            .iter()
            .enumerate()
            .map(|(k, part)| b.input(format!("part{k}"), part.count(), Per::Row));
        let wires: Vec<Wire> = wires.flatten().collect();
        b.output("whole", &wires);
        let circuit = b.finish()?;
        let takes = parts.iter().map(Field::take).collect();
        let whole = self.b.compute(circuit, words[0].rows(), takes)[0];
        Ok(Some(Field::new(whole, 0, count)))
    }
}

/// A value as a word that gives way to all others where its row takes no part; and whether it takes part.
fn extreme_words(exprs: &mut Exprs, extreme: &Extreme) -> Result<[Out; 2], PhysicalError> {
    let takes_part = exprs.truth(&extreme.condition)?;
    let of = exprs.bits_as(&extreme.of, &extreme.kind)?.0;
    let word = giving_way(&mut exprs.b, &of, takes_part, extreme.largest);
    Ok([Out::Bits(word), Out::Bits(vec![takes_part])])
}

/// A word that gives way to all others where a row takes no part: the least of all, or the largest where the smallest is kept. It has a bit at least.
pub(super) fn giving_way(
    b: &mut Gates,
    word: &[Wire],
    takes_part: Wire,
    largest: bool,
) -> Vec<Wire> {
    if word.is_empty() {
        return vec![takes_part];
    }
    let bits = word.iter().map(|bit| {
        let here = b.and(*bit, takes_part);
        if largest {
            return here;
        }
        let not = b.not(takes_part);
        b.xor(here, not)
    });
    bits.collect()
}

/// How the columns of extremes are scanned.
fn extreme_scans(extremes: &[Extreme], columns: &[Shared]) -> Vec<(Scan, Shared)> {
    let pairs = columns.chunks(2).zip(extremes);
    let scans = pairs.flat_map(|(pair, extreme)| {
        let scan = if extreme.largest {
            Scan::Max
        } else {
            Scan::Min
        };
        [(scan, pair[0]), (Scan::Or, pair[1])]
    });
    scans.collect()
}

/// The fields of extremes that have been scanned: null where no row has taken part.
fn extreme_fields(rel: &mut Rel, extremes: &[Extreme], columns: &[Shared]) -> Vec<Expr> {
    let mut fields = Vec::new();
    for (pair, extreme) in columns.chunks(2).zip(extremes) {
        let width = extreme.kind.bits().unwrap_or(0);
        let bits = (width > 0).then(|| Field::new(pair[0], 0, width));
        let any = Field::new(pair[1], 0, 1);
        let of = rel.push(Base::of_bits(Type::of(extreme.kind.clone()), bits, None));
        let some = rel.push(Base::of_bits(Type::of(Kind::Bool), Some(any), None));
        fields.push(or_null(some, of, extreme.kind.clone()));
    }
    fields
}

/// Bits of a key that lie in one word.
fn part_of(words: &[Shared], first: u32, count: u32) -> Option<Field> {
    let word = WORD as u32;
    let within = first % word + count <= word;
    within.then(|| Field::new(words[(first / word) as usize], first % word, count))
}

/// Where the outputs of a circuit of groups are.
#[derive(Default)]
struct Layout {
    words: usize,
    /// Whether the key lacks the bit of rows that take no part: all do.
    all: bool,
    /// Of each key the first bit, the number of bits, and whether a bit follows that says that it is null.
    keys: Vec<(u32, u32, bool)>,
}

/// What a circuit of groups reads.
fn wanted(summands: &[Summand], keys: &[(Expr, Kind)], types: &[Type]) -> Vec<(Expr, Want)> {
    let of = summands.iter().map(|summand| match summand {
        Summand::Rows(condition) => (condition.clone(), Want::Bits),
        Summand::Values(condition, of) => {
            let kind = of.ty(types).map_or(Kind::Bool, |ty| ty.kind);
            (value_where(condition, of, &kind), Want::Integer)
        }
        Summand::Squares(condition, of) => {
            let kind = of.ty(types).map_or(Kind::Bool, |ty| ty.kind);
            (value_where(condition, of, &kind), Want::Integer)
        }
    });
    let keys = keys.iter().map(|(key, _)| (key.clone(), Want::Bits));
    of.chain(keys).collect()
}

/// A summand of a row as an integer; 0 where the bit `here` is 0.
fn summed(exprs: &mut Exprs, summand: &Summand, here: Wire) -> Result<Wire, PhysicalError> {
    match summand {
        Summand::Rows(condition) => {
            let holds = exprs.truth(condition)?;
            let counts = exprs.b.and(holds, here);
            Ok(exprs.b.lift(counts))
        }
        Summand::Values(condition, of) => {
            let value = exprs.integer(of)?.0;
            masked(exprs, condition, here, value)
        }
        Summand::Squares(condition, of) => {
            let square = exprs.integer(&square(of))?.0;
            masked(exprs, condition, here, square)
        }
    }
}

fn masked(
    exprs: &mut Exprs,
    condition: &Expr,
    here: Wire,
    value: Wire,
) -> Result<Wire, PhysicalError> {
    let holds = exprs.truth(condition)?;
    let counts = exprs.b.and(holds, here);
    if counts == exprs.b.constant_bit(true) {
        return Ok(value);
    }
    let counts = exprs.b.lift(counts);
    Ok(exprs.b.mul(counts, value))
}

/// The number of rows of a group that is one.
fn some(range: Range) -> Range {
    Range::new(1, range.max().max(1)).unwrap_or(range)
}

/// The kind of a sum.
fn kind_of(summand: &Summand, types: &[Type], range: Range) -> Kind {
    let places = match summand {
        Summand::Rows(_) => 0,
        Summand::Values(_, of) | Summand::Squares(_, of) => {
            let number = of.ty(types).ok().and_then(|ty| ty.kind.number());
            number.map_or(0, |(places, _)| places)
        }
    };
    let decimal = match summand {
        Summand::Values(_, of) => {
            matches!(of.ty(types).map(|ty| ty.kind), Ok(Kind::Decimal { .. }))
        }
        _ => false,
    };
    if decimal {
        Kind::Decimal {
            places,
            units: range,
        }
    } else if places > 0 {
        Kind::Decimal {
            places: 2 * places,
            units: range,
        }
    } else {
        Kind::Integer(range)
    }
}

/// For each group of keys of public lists their values, and whether a row is of it; a value that is null has bit 127.
fn one_hot(
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
