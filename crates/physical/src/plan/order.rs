//! Orders, different rows, and rows of several relations as one.

use std::collections::{BTreeSet, HashMap};

use veil_circuit::Wire;
use veil_math::Ring;
use veil_operators::{Arranged, Key, Shared, stacked};
use veil_relation::{ColumnId, Expr, Kind, Overflow, Shape, SortKey, Type};

use super::flags::Flag;
use super::known::Known;
use super::rel::{Base, Field, Packing, Places, Rel, WORD};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::Opening;
use crate::exprs::{Want, sort_bits};

/// The words of a key whose highest bit says that a row takes no part, if there is one.
pub(super) fn key_words(mut bits: Vec<Wire>, absent: Option<Wire>) -> Vec<Out> {
    bits.extend(absent);
    let words = bits.chunks(WORD).map(|word| Out::Bits(word.to_vec()));
    words.collect()
}

impl Planner<'_> {
    /// The rows in the order of keys, those that are not valid last. Where an owner says that no two rows are equal in the keys, and other columns would tell
    /// those that are apart, the parties look.
    pub(super) fn sorted(
        &mut self,
        mut rel: Rel,
        (keys, of): (&[SortKey], &str),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        // An order in which its owner says that no two are equal is looked at first.
        let claimed =
            rests_on_claim(keys, shape) && !self.differs(&rel, keys.iter().map(|key| &key.expr));
        let keys: Vec<SortKey> = keys
            .iter()
            .map(|key| SortKey {
                expr: rel.over_base(&key.expr),
                ..key.clone()
            })
            .collect();
        let arranged = self.arranged(&rel, &keys);
        let own = keys.clone();
        let fields = self.fields(&mut rel, shape)?;
        if rel.rows == 1 || keys.is_empty() || arranged == Arranged::Fully && !claimed {
            return Ok(Rel {
                places: Places::Ordered,
                ..fields
            });
        }
        let keys = match arranged {
            Arranged::ByKey | Arranged::Fully if !claimed => &[],
            _ => &keys[..],
        };
        let condition = rel.condition();
        let wants = keys.iter().map(|key| (key.expr.clone(), Want::Bits));
        let wants: Vec<_> = wants.chain([(condition.clone(), Want::Bits)]).collect();
        let words = self.rows(&mut rel, Ring::Bits, &wants, |exprs| {
            let valid = exprs.truth(&condition)?;
            let bits = sort_bits(exprs, keys)?;
            let bits = bits
                .into_iter()
                .map(|bit| exprs.b.and(bit, valid))
                .collect();
            let absent = exprs.b.not(valid);
            Ok(key_words(bits, Some(absent)))
        })?;
        let mut columns = distinct_columns(&fields);
        let others = columns.len();
        if claimed {
            columns.extend(&words);
        }
        let mut moved = self.b.in_order(&words, arranged, &columns);
        let key = moved.split_off(others);
        columns.truncate(others);
        if claimed {
            self.opens.push(Opening::Duplicates { of: of.to_owned() });
            let what = format!("a key of {of} is there once");
            self.b.claim_apart(&key, &what);
        }
        rel.order = Known::sorted(&rel, own, claimed);
        let by = rel.fields.iter();
        let mut sorted = in_other_rows(&fields, &columns, &moved);
        sorted.order = Known::over(&rel, &by, &sorted);
        sorted.places = Places::Ordered;
        Ok(sorted)
    }

    /// The valid rows in fewer places, as far as there is room. Rows keep the order that they have.
    pub(super) fn trimmed(
        &mut self,
        mut rel: Rel,
        (rows, overflow): (u32, Overflow),
        of: &str,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        if rows >= rel.rows {
            return Ok(rel);
        }
        let (in_front, valid) = self.in_front(&mut rel, shape)?;
        // Valid rows are in front: there are more than fit if the first that does not is one.
        let beyond = valid.rows_from(rows.into());
        match overflow {
            Overflow::Refuse => {
                let beyond = self.b.make(beyond, 1, valid.sharing());
                self.opens.push(Opening::Overflow {
                    of: of.to_owned(),
                    rows,
                });
                let what = format!("{of} has at most {rows} rows");
                self.b.claim_none(beyond, &what);
            }
            Overflow::Flag => {
                let exceeded = self.b.make(beyond, 1, valid.sharing());
                self.flags.raised(Flag {
                    of: of.to_owned(),
                    rows,
                    exceeded,
                });
            }
            Overflow::Drop => {}
        }
        let mut trimmed = self.first_rows(&in_front, rows);
        if rows == 0 {
            trimmed.valid = vec![Expr::bool(false)];
        }
        Ok(trimmed)
    }

    /// The valid rows in front of all others, in the order that they have; and whether each row is valid.
    pub(super) fn in_front(
        &mut self,
        rel: &mut Rel,
        shape: &Shape,
    ) -> Result<(Rel, Shared), PhysicalError> {
        let places = rel.places;
        let mut fields = self.fields(rel, shape)?;
        let condition = fields.condition();
        let wants = [(condition.clone(), Want::Bits)];
        let bits = self.rows(&mut fields, Ring::Bits, &wants, |exprs| {
            let valid = exprs.truth(&condition)?;
            let absent = exprs.b.not(valid);
            Ok(vec![Out::Bits(vec![valid]), Out::Bits(vec![absent])])
        })?;
        let known = fields.order.as_ref();
        if known.is_some_and(|order| order.is_last(&fields)) {
            return Ok((fields, bits[0]));
        }
        let order = self.b.sort(&Key::of(&bits[1..]));
        let columns = distinct_columns(&fields);
        let mut moving = columns.clone();
        moving.push(bits[0]);
        let moved = self.b.apply(&order, &moving);
        // Rows keep their order, and those that are not valid come last.
        let order = fields.order.take().map(|order| order.with_last(&fields));
        let mut sorted = in_other_rows(&fields, &columns, &moved);
        sorted.order = order;
        // Rows of an order that was asked for keep it; places of others say how many rows there are no more than whether they are valid does.
        sorted.places = places;
        Ok((sorted, moved[columns.len()]))
    }

    /// The fields of a relation as its base.
    pub(super) fn fields(&mut self, rel: &mut Rel, shape: &Shape) -> Result<Rel, PhysicalError> {
        let fields = rel.fields.iter().zip(&shape.fields);
        let exprs: Vec<(Expr, Kind)> = fields
            .map(|(expr, field)| (expr.clone(), field.ty.kind.clone()))
            .collect();
        self.materialised(rel, &exprs, false)
    }

    /// Each different row once.
    pub(super) fn distinct(&mut self, rel: Rel, shape: &Shape) -> Result<Rel, PhysicalError> {
        let keys = rel.fields.clone();
        let kinds = shape.fields.iter().map(|field| field.ty.kind.clone());
        let keys: Vec<(Expr, Kind)> = keys.into_iter().zip(kinds).collect();
        self.secret_groups(rel, &keys, &[], (0, shape))
    }

    /// The rows of all relations.
    pub(super) fn union(&mut self, rels: Vec<Rel>, shape: &Shape) -> Result<Rel, PhysicalError> {
        let mut parts = Vec::new();
        let rows = rels.iter().map(|rel| rel.rows).sum();
        let alone = rels.len() == 1;
        for mut rel in rels {
            if alone {
                return Ok(rel);
            }
            parts.push(self.part(&mut rel, shape)?);
        }
        // All parts have the same words, of the same fields.
        let (first, columns) = &parts[0];
        let all: Vec<Shared> = (0..columns.len())
            .map(|word| {
                let of = parts.iter().map(|(_, columns)| columns[word]);
                let take = stacked(of);
                self.b.make(take, rows, columns[word].sharing())
            })
            .collect();
        Ok(Rel {
            rows,
            places: Places::Secret,
            ..in_other_rows(first, columns, &all)
        })
    }

    /// A relation of a union as words that all of them have alike: whether a row is valid, then each field with whether it is null if any of them may be.
    fn part(&mut self, rel: &mut Rel, shape: &Shape) -> Result<(Rel, Vec<Shared>), PhysicalError> {
        let condition = rel.condition();
        let exprs: Vec<Expr> = rel.fields.clone();
        let wants = exprs.iter().chain([&condition]);
        let wants: Vec<_> = wants.map(|expr| (expr.clone(), Want::Bits)).collect();
        let mut packing = Packing::default();
        let mut places: Vec<(Option<usize>, Option<usize>)> = Vec::new();
        let words = self.rows(rel, Ring::Bits, &wants, |exprs_of| {
            let valid = exprs_of.truth(&condition)?;
            packing.add(&[valid]);
            for (expr, field) in exprs.iter().zip(&shape.fields) {
                let (bits, null) = exprs_of.bits_as(expr, &field.ty.kind)?;
                let bits = (!bits.is_empty()).then(|| packing.add(&bits));
                let zero = exprs_of.b.constant_bit(false);
                let null = field
                    .ty
                    .nullable
                    .then(|| packing.add(&[null.unwrap_or(zero)]));
                places.push((bits, null));
            }
            let words = std::mem::take(&mut packing.words);
            Ok(words.into_iter().map(Out::Bits).collect())
        })?;
        let field = |number: usize| -> Field { packing.field(number, &words) };
        let bases = places.iter().zip(&shape.fields).map(|((bits, null), of)| {
            Base::of_bits(of.ty.clone(), bits.map(field), null.map(field))
        });
        let mut part = Rel {
            rows: rel.rows,
            base: bases.collect(),
            fields: (0..shape.fields.len() as u32).map(Expr::column).collect(),
            valid: vec![],
            places: Places::Secret,
            order: None,
            min_rows: rel.min_rows,
        };
        let bit = part.push(Base::of_bits(Type::of(Kind::Bool), Some(field(0)), None));
        part.valid.push(bit);
        Ok((part, words))
    }
}

/// Whether no two rows are equal in the keys of an order because an owner says so, and rows that are could differ in other columns.
fn rests_on_claim(keys: &[SortKey], shape: &Shape) -> bool {
    let named = keys.iter().filter_map(|key| match key.expr {
        Expr::Column(column, _) => Some(column),
        _ => None,
    });
    let named: BTreeSet<ColumnId> = named.collect();
    let within = |sets: &[BTreeSet<ColumnId>]| {
        let nullable = |column: &ColumnId| shape.fields[column.index()].ty.nullable;
        let mut sets = sets.iter().filter(|set| !set.iter().any(nullable));
        sets.any(|set| set.is_subset(&named))
    };
    let fields = (0..).map(ColumnId).zip(&shape.fields);
    let mut compared = fields.filter(|(_, field)| field.ty.kind.has_order());
    let others = compared.any(|(column, _)| !named.contains(&column));
    others && !within(&shape.unique) && within(&shape.claimed)
}

/// The columns of a relation, each once.
pub(super) fn distinct_columns(rel: &Rel) -> Vec<Shared> {
    let mut columns: Vec<Shared> = Vec::new();
    for column in rel.base.iter().flat_map(Base::columns) {
        if !columns
            .iter()
            .any(|known| known.column() == column.column())
        {
            columns.push(column);
        }
    }
    columns
}

/// A relation whose columns have gone to others, in as many rows as these have: in no order that is known.
pub(super) fn in_other_rows(rel: &Rel, from: &[Shared], to: &[Shared]) -> Rel {
    let moved: HashMap<u32, Shared> = from
        .iter()
        .zip(to)
        .map(|(from, to)| (from.column().0, *to))
        .collect();
    let to_other = |column: Shared| moved.get(&column.column().0).copied().unwrap_or(column);
    Rel {
        order: None,
        rows: to.first().map_or(rel.rows, Shared::rows),
        base: rel.base.iter().map(|base| base.moved(&to_other)).collect(),
        ..rel.clone()
    }
}
