//! What owners supply, looked at on shares before anything else is: that cells are in their declared ranges, weights of networks within the bounds of their layers, and rows in the
//! order that plans rest on.

use std::collections::BTreeSet;

use veil_circuit::generate::{any, less_than};
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::{Arranged, Shared, Sharing, stacked};
use veil_relation::{ColumnId, Expr, Kind, SortKey, Table};

use super::inputs::{Asked, Supplied};
use super::known;
use super::rel::{Bits, Field, Rel};
use super::{PhysicalError, Planner};
use crate::exprs::below_bits;
use crate::{Node, Opening};

/// What a plan rests on of the order that an owner says.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// The first so many columns of the order.
    columns: usize,
    /// No two rows are equal in them.
    strict: bool,
}

/// How many values a cell has that is supplied as bits, if the bits have more.
fn values_of(kind: &Kind) -> Option<u128> {
    let range = kind.range()?;
    let values = range.max().checked_sub(range.min())?.unsigned_abs() + 1;
    (!values.is_power_of_two()).then_some(values)
}

/// The input ports of a check.
struct Ports {
    b: Gates,
    takes: Vec<Take>,
}

impl Ports {
    fn bits(&mut self, field: &Field, by: i64) -> Vec<Wire> {
        let name = format!("in{}", self.takes.len());
        self.takes.push(match by {
            0 => field.take(),
            by => field.take_shifted(by),
        });
        self.b.input(name, field.count(), Per::Row)
    }

    fn bit(&mut self, field: Option<&Field>, by: i64) -> Option<Wire> {
        field.map(|field| self.bits(field, by)[0])
    }

    /// The columns of an order as one word, of the row so many rows on: nulls are zero, and last.
    fn word(&mut self, of: &Supplied, order: &[ColumnId], by: i64) -> Vec<Wire> {
        let mut word = Vec::new();
        for column in order.iter().rev() {
            let base = &of.base[column.index()];
            let null = self.bit(base.null.as_ref(), by);
            let bits: Bits = base.bits.flatten();
            let bits = bits.map_or_else(Vec::new, |bits| self.bits(&bits, by));
            let there = null.map(|null| self.b.not(null));
            word.extend(bits.into_iter().map(|bit| match there {
                Some(there) => self.b.and(bit, there),
                None => bit,
            }));
            word.extend(null);
        }
        word
    }
}

impl Planner<'_> {
    /// Supplies the tables of which something has to be looked at, and looks: the parties open one bit for each owner.
    pub(super) fn checks(&mut self) -> Result<(), PhysicalError> {
        let tables = &self.program.tables;
        // What parties have kept is what they found out themselves.
        let owners: Vec<Option<&str>> = tables.iter().map(|table| table.origin.owner()).collect();
        for (first, of) in owners.iter().enumerate() {
            let Some(owner) = of.filter(|_| !owners[..first].contains(of)) else {
                continue;
            };
            let own = (first..owners.len()).filter(|at| owners[*at] == Some(owner));
            let own: Vec<usize> = own.filter(|at| self.forms.contains_key(at)).collect();
            self.check(owner, &own)?;
        }
        Ok(())
    }

    fn check(&mut self, owner: &str, tables: &[usize]) -> Result<(), PhysicalError> {
        let mut supplied = Vec::new();
        for at in tables {
            supplied.push((*at, self.table(*at)?));
        }
        let begin = self.b.passes();
        let (mut wrong, mut of, mut rows) = (Vec::new(), Vec::new(), 0);
        for (at, supplied) in supplied {
            let table = &self.program.tables[at];
            let order = self.order_of(at);
            let ranges = ranges_of(table, &supplied);
            if let Some(order) = order {
                of.push(order_words(table, order));
            }
            of.extend(range_words(table, &ranges));
            if order.is_some() || !ranges.is_empty() {
                wrong.push(self.wrong_rows(table, &supplied, order, &ranges)?);
                rows += table.capacity;
            }
            let (beyond, words) = self.wrong_weights(at, &supplied)?;
            rows += beyond.iter().map(Shared::rows).sum::<u32>();
            wrong.extend(beyond);
            of.extend(words);
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let all = match wrong[..] {
            [one] => one,
            _ => self.b.make(stacked(wrong), rows, Sharing::Bits(1)),
        };
        let what = format!("what `{owner}` says of its tables ({})", of.join("; "));
        self.b.claim_none(all, &what);
        let passes = begin..self.b.passes();
        self.opens.push(Opening::Claims {
            owner: owner.to_owned(),
            of,
            passes: passes.clone(),
        });
        self.tree.push(Node {
            text: format!("look at what {owner} supplies (opens one bit)"),
            rows,
            passes: vec![passes],
            inputs: vec![],
        });
        Ok(())
    }

    /// What the plan rests on of a table's order.
    fn order_of(&self, at: usize) -> Option<Order> {
        let sorted = &self.program.tables[at].sorted_by;
        let place = |column: &ColumnId| sorted.iter().position(|of| of == column);
        let asked = |wanted: Asked| {
            let asked = self.forms.get(&at).into_iter().flatten();
            let asked = asked.filter(move |(_, asked)| *asked == wanted);
            asked.filter_map(|(column, _)| place(column))
        };
        // Rows that ascend strictly by some columns ascend by all further ones.
        let strict = asked(Asked::Differs).min();
        let most = asked(Asked::Order).max();
        let order = strict.map(|last| (last, true));
        let order = order.or_else(|| most.map(|last| (last, false)));
        order.map(|(last, strict)| Order {
            columns: last + 1,
            strict,
        })
    }

    /// In every row of a table, whether a cell is out of its range or the row not behind the one before; rows that are not valid are behind all others.
    fn wrong_rows(
        &mut self,
        table: &Table,
        of: &Supplied,
        order: Option<Order>,
        ranges: &[(ColumnId, u128)],
    ) -> Result<Shared, PhysicalError> {
        let aim = self.aim(table.capacity);
        let mut ports = Ports {
            b: Gates::new(Ring::Bits),
            takes: vec![],
        };
        let valid = ports.bit(of.valid.as_ref(), 0);
        let mut wrong = Vec::new();
        for (column, values) in ranges {
            let Some(Some(field)) = &of.base[column.index()].bits else {
                continue;
            };
            let bits = ports.bits(field, 0);
            let within = below_bits(&mut ports.b, &bits, *values, aim);
            wrong.push(ports.b.not(within));
        }
        if let Some(Order { columns, strict }) = order {
            let by = &table.sorted_by[..columns];
            let (own, before) = (ports.word(of, by, 0), ports.word(of, by, -1));
            let ahead = if strict {
                let behind = less_than(&mut ports.b, &before, &own, aim);
                ports.b.not(behind)
            } else {
                less_than(&mut ports.b, &own, &before, aim)
            };
            let valid_before = ports.bit(of.valid.as_ref(), -1);
            let misplaced = match valid_before {
                Some(valid) => {
                    let absent = ports.b.not(valid);
                    ports.b.or(ahead, absent)
                }
                None => ahead,
            };
            let name = format!("in{}", ports.takes.len());
            let first = ports.b.input(name, 1, Per::Row)[0];
            ports.takes.push(Take::Within { first: 0, end: 1 });
            let later = ports.b.not(first);
            wrong.push(ports.b.and(misplaced, later));
        }
        let mut any_wrong = any(&mut ports.b, &wrong);
        if let Some(valid) = valid {
            any_wrong = ports.b.and(any_wrong, valid);
        }
        ports.b.output("wrong", &[any_wrong]);
        let circuit = ports.b.finish()?;
        Ok(self.b.compute(circuit, table.capacity, ports.takes)[0])
    }

    /// In which order of these keys the rows of a relation come: if an operator has left them in it, or if they are where their owner has put them, which the plan
    /// rests on from then on.
    pub(super) fn arranged(&mut self, rel: &Rel, keys: &[SortKey]) -> Arranged {
        match known::arranged(rel, keys) {
            Arranged::Anyhow => self.arranged_by_owner(rel, keys),
            known => known,
        }
    }

    fn arranged_by_owner(&mut self, rel: &Rel, keys: &[SortKey]) -> Arranged {
        let ascending = |key: &SortKey| !key.descending && !key.nulls_first;
        let exprs = keys.iter().take_while(|key| ascending(key));
        let columns = columns_of(rel, exprs.map(|key| &key.expr));
        let Some(at) = columns.first().map(|(at, _)| *at) else {
            return Arranged::Anyhow;
        };
        let table = &self.program.tables[at];
        let same = columns.iter().zip(&table.sorted_by);
        let same = same.take_while(|(column, sorted)| **column == (at, **sorted));
        let same = same.count();
        let strict = (1..=same).find(|columns| ascends(table, *columns));
        match strict {
            // What comes behind columns in which no two rows are equal decides nothing.
            Some(columns) => self.rests_on(rel, at, columns, true),
            None if same == keys.len() => self.rests_on(rel, at, same, false),
            None => Arranged::Anyhow,
        }
    }

    /// The same, of rows of partitions whatever the order of these is; with the keys that rows come by.
    pub(super) fn arranged_by(
        &mut self,
        rel: &Rel,
        partition: &[SortKey],
        order: &[SortKey],
    ) -> (Arranged, Vec<SortKey>) {
        if let Some(known) = known::partitioned(rel, partition, order) {
            return known;
        }
        let keys = self.partitions_of_owner(rel, partition, order);
        (self.arranged_by_owner(rel, &keys), keys)
    }

    /// The keys of partitions and rows in the order that an owner may have put them.
    fn partitions_of_owner(
        &self,
        rel: &Rel,
        partition: &[SortKey],
        order: &[SortKey],
    ) -> Vec<SortKey> {
        let exprs = partition.iter().map(|key| &key.expr);
        let columns = columns_of(rel, exprs);
        let Some(at) = columns.first().map(|(at, _)| *at) else {
            return [partition, order].concat();
        };
        // In the order of the table's columns, if they are the first of those.
        let sorted = &self.program.tables[at].sorted_by;
        let place = |key: &SortKey| {
            let mut columns = columns_of(rel, std::iter::once(&key.expr)).into_iter();
            let column = columns.next().map(|(_, column)| column);
            sorted.iter().position(|of| Some(*of) == column)
        };
        let mut keys = partition.to_vec();
        keys.sort_by_key(|key| place(key).unwrap_or(usize::MAX));
        keys.extend_from_slice(order);
        keys
    }

    /// Whether the rows of a relation that are equal in these keys stand together, because an operator has left them so, or because they are where their owner has
    /// put them; and in which order of them.
    pub(super) fn gathered(&mut self, rel: &Rel, keys: &[Expr]) -> (Arranged, Vec<SortKey>) {
        if let Some(known) = known::gathered(rel, keys) {
            return known;
        }
        let Some((at, columns)) = self.gathered_by_owner(rel, keys) else {
            return (Arranged::Anyhow, vec![]);
        };
        let sorted = &self.program.tables[at].sorted_by[..columns];
        let key = |column: &ColumnId| {
            let same = |key: &&Expr| columns_of(rel, std::iter::once(*key)) == [(at, *column)];
            keys.iter().find(same).cloned().map(SortKey::ascending)
        };
        let by: Vec<SortKey> = sorted.iter().filter_map(key).collect();
        (self.rests_on(rel, at, columns, false), by)
    }

    /// The same, of which nothing is noted.
    pub(super) fn is_gathered(&self, rel: &Rel, keys: &[Expr]) -> bool {
        known::gathered(rel, keys).is_some() || self.gathered_by_owner(rel, keys).is_some()
    }

    /// The table in whose order rows stand together that are equal in these keys, and of how many columns that is.
    fn gathered_by_owner(&self, rel: &Rel, keys: &[Expr]) -> Option<(usize, usize)> {
        let columns = columns_of(rel, keys.iter());
        let at = columns.first().map(|(at, _)| *at)?;
        let sorted = &self.program.tables[at].sorted_by;
        let found: BTreeSet<_> = columns.iter().copied().collect();
        let first = sorted.iter().take(found.len()).map(|column| (at, *column));
        let together = columns.len() == keys.len() && found == first.collect();
        together.then_some((at, found.len()))
    }

    /// Whether no two rows of a relation are equal in these fields, because its owner says so of the order that they come in.
    pub(super) fn differs<'k>(&mut self, rel: &Rel, keys: impl Iterator<Item = &'k Expr>) -> bool {
        let keys: Vec<Expr> = keys.map(|key| rel.over_base(key)).collect();
        let columns = keys
            .iter()
            .flat_map(|key| columns_of(rel, [key].into_iter()));
        let columns: BTreeSet<(usize, ColumnId)> = columns.collect();
        let Some((at, _)) = columns.first().copied() else {
            return false;
        };
        let table = &self.program.tables[at];
        let first = table.sorted_by.iter();
        let first = first.take_while(|column| columns.contains(&(at, **column)));
        let strict = (1..=first.count()).find(|columns| ascends(table, *columns));
        let Some(columns) = strict else { return false };
        self.rests_on(rel, at, columns, true);
        true
    }

    /// Notes that the plan rests on the first columns of a table's order.
    fn rests_on(&mut self, rel: &Rel, at: usize, columns: usize, strict: bool) -> Arranged {
        let table = &self.program.tables[at];
        let by = &table.sorted_by[..columns];
        if table.origin.owner().is_some() {
            let asked = self.forms.entry(at).or_default();
            for column in by {
                asked.insert((*column, Asked::Bits));
                if table.columns[column.index()].ty.nullable {
                    asked.insert((*column, Asked::Null));
                }
            }
            let what = if strict { Asked::Differs } else { Asked::Order };
            asked.extend(by.last().map(|column| (*column, what)));
        }
        if self.has_all_rows(rel, at) {
            Arranged::Fully
        } else {
            Arranged::ByKey
        }
    }

    /// The fields by which the valid rows of a relation ascend, nulls last, all others behind them, as far as is known: an operator has put them in order, or they
    /// are where a table has them. And the sets of fields in which that order says that no two rows are equal.
    pub(super) fn known_order(&mut self, rel: &Rel) -> (Vec<ColumnId>, Vec<Vec<ColumnId>>) {
        let place = |wanted: &Expr| {
            let at = rel.fields.iter().position(|field| field == wanted);
            at.map(|at| ColumnId(at as u32))
        };
        if let Some(of) = &rel.order {
            let mut by: Vec<ColumnId> = of.ascending(rel).map_while(place).collect();
            let sets = of.is_unique(by.len()).then(|| by.clone());
            let types = rel.types();
            let nullable = |at: &ColumnId| {
                let ty = rel.fields[at.index()].ty(&types);
                ty.is_ok_and(|ty| ty.nullable)
            };
            if sets.is_some() && by.iter().any(nullable) {
                // No two rows are equal in the keys, so that they are in the order of whatever follows; a table cannot say the first of keys with nulls.
                let ordered = |field: &Expr| field.ty(&types).is_ok_and(|ty| ty.kind.has_order());
                let fields = (0..).map(ColumnId).zip(&rel.fields);
                let others = fields.filter(|(at, field)| !by.contains(at) && ordered(field));
                let others: Vec<ColumnId> = others.map(|(at, _)| at).collect();
                by.extend(others);
            }
            return (by, sets.into_iter().collect());
        }
        let column = |field: &Expr| match field {
            Expr::Column(column, _) => rel.base[column.index()].of_table,
            _ => None,
        };
        let fields: Vec<_> = rel.fields.iter().map(column).collect();
        let Some((at, _)) = fields.iter().flatten().next().copied() else {
            return (vec![], vec![]);
        };
        let table = &self.program.tables[at];
        let field = |of: &ColumnId| {
            let field = fields.iter().position(|field| *field == Some((at, *of)));
            field.map(|field| ColumnId(field as u32))
        };
        let order: Vec<ColumnId> = table.sorted_by.iter().map_while(field).collect();
        if order.is_empty() || !self.has_all_rows(rel, at) {
            return (vec![], vec![]);
        }
        let strict = (1..=order.len()).find(|columns| ascends(table, *columns));
        match strict {
            Some(columns) => self.rests_on(rel, at, columns, true),
            None => self.rests_on(rel, at, order.len(), false),
        };
        let sets = strict.map(|columns| order[..columns].to_vec());
        (order, sets.into_iter().collect())
    }

    /// Whether the valid rows of a relation are those of a table: the padding is behind them.
    fn has_all_rows(&self, rel: &Rel, at: usize) -> bool {
        let padding = self.supplied.get(&at).and_then(|of| of.valid.as_ref());
        rel.valid.iter().all(|condition| {
            let Expr::Column(column, _) = condition else {
                return false;
            };
            let bit = rel.base[column.index()].bits.flatten();
            bit.zip(padding).is_some_and(|(bit, of)| bit.is(of))
        })
    }
}

/// The columns of one table that the first of some keys are, in rows that are where their owner has put them.
fn columns_of<'a>(rel: &Rel, keys: impl Iterator<Item = &'a Expr>) -> Vec<(usize, ColumnId)> {
    let columns = keys.map_while(|key| match key {
        Expr::Column(column, _) => rel.base[column.index()].of_table,
        _ => None,
    });
    columns.collect()
}

/// Whether the owner says that no two rows are equal in the first columns of its order, none of which has nulls.
fn ascends(table: &Table, columns: usize) -> bool {
    let by: BTreeSet<&ColumnId> = table.sorted_by[..columns].iter().collect();
    let nullable = by
        .iter()
        .any(|column| table.columns[column.index()].ty.nullable);
    let same = |set: &Vec<ColumnId>| set.iter().collect::<BTreeSet<_>>() == by;
    !nullable && table.unique.iter().any(same)
}

/// Columns that are supplied as bits which have more values than the range, and how many the range has.
fn ranges_of(table: &Table, of: &Supplied) -> Vec<(ColumnId, u128)> {
    let columns = table.columns.iter().zip(&of.base).zip(0..);
    let supplied = columns.filter(|((_, base), _)| matches!(base.bits, Some(Some(_))));
    supplied
        .filter_map(|((column, _), at)| Some((ColumnId(at), values_of(&column.ty.kind)?)))
        .collect()
}

fn names(table: &Table, columns: impl Iterator<Item = ColumnId>) -> String {
    let names = columns.map(|column| table.columns[column.index()].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn order_words(table: &Table, order: Order) -> String {
    let by = names(table, table.sorted_by[..order.columns].iter().copied());
    let strict = if order.strict {
        ", in which no two are equal"
    } else {
        ""
    };
    format!("rows of `{}` are sorted by {by}{strict}", table.name)
}

fn range_words(table: &Table, ranges: &[(ColumnId, u128)]) -> Option<String> {
    let columns = names(table, ranges.iter().map(|(column, _)| *column));
    (!ranges.is_empty())
        .then(|| format!("cells of `{}` are in the ranges of {columns}", table.name))
}
