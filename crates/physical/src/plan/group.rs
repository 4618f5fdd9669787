//! Groups: over keys of public lists by one sum for each group, over secret keys by a sort.

use veil_circuit::{Builder as Gates, Per, Wire};
use veil_math::Ring;
use veil_operators::{Arranged, GroupKey, Scan, Shared};
use veil_relation::{
    Aggregate, Comparison, Domain, Expr, Kind, Named, Range, Shape, SortKey, Type,
};

use super::aggregates::{Extreme, Kept, Summand, ring_of, square, value_where};
use super::known::Known;
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
        if one_by_one(keys.len(), aggregates, domain) {
            return self.public_groups(rel, &keys, aggregates, (min_rows, shape));
        }
        self.secret_groups(rel, &keys, aggregates, (min_rows, shape))
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
        let (arranged, known) = self.gathered(&rel, &exprs);
        let of = OfGroups::of(&rel, aggregates)?;
        let kept = &of.kept;
        let condition = rel.condition();
        let summed_up = of.summed_up();
        let ring = of.ring();
        let mut wants = of.wants(keys);
        wants.push((condition.clone(), Want::Bits));
        let mut layout = Layout::default();
        let all_valid = rel.valid.is_empty();
        let columns = self.rows(&mut rel, ring, &wants, |exprs| {
            let valid = exprs.truth(&condition)?;
            let mut bits = Vec::new();
            // The first key is the most significant.
            for (expr, kind) in keys.iter().rev() {
                let (of, null) = exprs.bits_as(expr, kind)?;
                layout
                    .keys
                    .push((bits.len() as u32, of.len() as u32, null.is_some()));
                bits.extend(of.into_iter().chain(null));
            }
            layout.keys.reverse();
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
            order: None,
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
        let all = of.fields(&mut result, groups.count, &groups.sums)?;
        let extremes = extreme_fields(&mut result, &kept.extremes, &groups.scanned);
        let valid = Field::new(groups.valid, 0, 1);
        let valid = result.push(Base::of_bits(Type::of(Kind::Bool), Some(valid), None));
        result.valid.push(valid);
        let place = |expr: &Expr| exprs.iter().position(|key| key == expr);
        let by: Vec<SortKey> = if arranged == Arranged::Anyhow {
            let all = (0..keys.len() as u32).map(Expr::column);
            all.map(SortKey::ascending).collect()
        } else {
            let by = known.into_iter().filter_map(|key| {
                Some(SortKey {
                    expr: Expr::column(place(&key.expr)? as u32),
                    ..key
                })
            });
            by.collect()
        };
        result.order = Known::of_groups(&result, by, true);
        if min_rows > 1 {
            let count = Type::of(Kind::Integer(counts(rel.rows)));
            let count = Base::of_integer(count, groups.count);
            let count = result.push(count);
            let least = Expr::integer(min_rows.into());
            result
                .valid
                .push(Expr::compare(Comparison::Ge, count, least));
        }
        let fields = &shape.fields[keys.len()..];
        let of = self.aggregates(&mut result, kept, (&all, &extremes), fields)?;
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

/// Whether groups are those of public lists, and so few that each has sums of its own.
pub(super) fn one_by_one(keys: usize, aggregates: &[Aggregate], domain: Domain) -> bool {
    let extremes = |aggregate: &Aggregate| {
        use veil_relation::AggregateFunction::{Max, Min};
        matches!(aggregate.function, Min(_) | Max(_))
    };
    let groups = match domain {
        _ if keys == 0 => 1,
        Domain::Public(groups) => u64::from(groups),
        Domain::Secret => u64::MAX,
    };
    let sums = groups.saturating_mul(aggregates.len() as u64 + 1);
    sums <= MOST_GROUPS && (keys == 0 || !aggregates.iter().any(extremes))
}

/// A value as a word that gives way to all others where its row takes no part; and whether it takes part.
pub(super) fn extreme_words(
    exprs: &mut Exprs,
    extreme: &Extreme,
) -> Result<[Out; 2], PhysicalError> {
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
pub(super) fn extreme_scans(extremes: &[Extreme], columns: &[Shared]) -> Vec<(Scan, Shared)> {
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
pub(super) fn extreme_fields(rel: &mut Rel, extremes: &[Extreme], columns: &[Shared]) -> Vec<Expr> {
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

/// What is kept of groups that rows are sorted into.
pub(super) struct OfGroups {
    pub(super) kept: Kept,
    types: Vec<Type>,
    ranges: Vec<Range>,
    /// How many rows a group has, which comes with the sort.
    counted: Summand,
}

impl OfGroups {
    /// What these aggregates of the rows of a relation need.
    pub(super) fn of(rel: &Rel, aggregates: &[Aggregate]) -> Result<Self, PhysicalError> {
        let kept = Kept::of(rel, aggregates)?;
        let types = rel.types();
        let ranges = kept.summands.iter();
        let ranges = ranges.map(|of| Kept::range(of, &types, rel.rows));
        Ok(OfGroups {
            ranges: ranges.collect::<Result<_, _>>()?,
            counted: Summand::Rows(rel.condition()),
            kept,
            types,
        })
    }

    /// What is summed up, but for the number of rows.
    pub(super) fn summed_up(&self) -> Vec<&Summand> {
        let all = self.kept.summands.iter();
        all.filter(|of| **of != self.counted).collect()
    }

    /// The ring of all sums; that of bits, if there are none.
    pub(super) fn ring(&self) -> Ring {
        let all = self.kept.summands.iter().zip(&self.ranges);
        let all = all.filter(|(of, _)| **of != self.counted);
        let rings = all.map(|(_, range)| ring_of(*range));
        rings.max_by_key(|ring| ring.bits()).unwrap_or(Ring::Bits)
    }

    /// What a circuit of sums, extremes and these keys reads.
    pub(super) fn wants(&self, keys: &[(Expr, Kind)]) -> Vec<(Expr, Want)> {
        let mut wants = wanted(&self.kept.summands, keys, &self.types);
        for extreme in &self.kept.extremes {
            wants.push((extreme.of.clone(), Want::Bits));
            wants.push((extreme.condition.clone(), Want::Bits));
        }
        wants
    }

    /// The sums as further columns of the base of groups.
    pub(super) fn fields(
        &self,
        groups: &mut Rel,
        count: Shared,
        sums: &[Shared],
    ) -> Result<Vec<Expr>, PhysicalError> {
        let mut sums = sums.iter();
        let all = self.kept.summands.iter().zip(&self.ranges);
        let fields = all.map(|(summand, range)| {
            let (column, range) = if *summand == self.counted {
                (Some(&count), some(*range))
            } else {
                (sums.next(), *range)
            };
            let column = column.ok_or_else(|| PhysicalError::Circuit("a sum is missing".into()))?;
            let ty = Type::of(kind_of(summand, &self.types, range));
            Ok(groups.push(Base::of_integer(ty, *column)))
        });
        fields.collect()
    }
}

/// What a circuit of groups reads.
pub(super) fn wanted(
    summands: &[Summand],
    keys: &[(Expr, Kind)],
    types: &[Type],
) -> Vec<(Expr, Want)> {
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
pub(super) fn summed(
    exprs: &mut Exprs,
    summand: &Summand,
    here: Wire,
) -> Result<Wire, PhysicalError> {
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

/// Numbers of rows, of so many.
pub(super) fn counts(rows: u32) -> Range {
    Range::new(0, rows.into()).unwrap_or(Range::point(0))
}

/// The number of rows of a group that is one.
pub(super) fn some(range: Range) -> Range {
    Range::new(1, range.max().max(1)).unwrap_or(range)
}

/// The kind of a sum.
pub(super) fn kind_of(summand: &Summand, types: &[Type], range: Range) -> Kind {
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
