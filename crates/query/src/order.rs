//! The order of joins: dynamic programming over the sets of tables of a FROM clause, with exact costs.

use std::collections::BTreeSet;

use sqlparser::tokenizer::Span;
use veil_relation::{ColumnId, Comparison, Expr, JoinKind, Matches, Plan, Shape, join_shape};

use crate::bind::Binder;
use crate::error::SqlError;
use crate::rel::Rel;

/// Most tables of one FROM clause: 3^8 pairs of sets are looked at.
const MOST_TABLES: usize = 8;

/// What a join is, for its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinFacts {
    /// Capacity of the relation whose rows may match several times.
    pub many_rows: u64,
    /// Capacity of the relation whose keys are unique.
    pub unique_rows: u64,
    /// Capacity of the result.
    pub result_rows: u64,
    /// Bits of all keys.
    pub key_bits: u64,
    /// Bits of a row of the relation whose keys are unique.
    pub unique_bits: u64,
    /// Whether its keys are unique at all: if not, the join is bounded by the job.
    pub is_unique: bool,
}

/// The cost of a join, in any unit. An exact function of public facts, so that all participants choose one order.
pub trait JoinCost {
    /// The cost of one join.
    fn cost(&self, join: &JoinFacts) -> u128;
}

/// Bytes that three semi-honest parties send together for a sort of the keys of both relations and the way back: for each row about 45 a bit
/// of the key, and 4 a byte of what is carried.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortedBytes;

impl JoinCost for SortedBytes {
    fn cost(&self, join: &JoinFacts) -> u128 {
        let rows = u128::from(join.many_rows) + u128::from(join.unique_rows);
        let expanded = if join.is_unique {
            0
        } else {
            u128::from(join.result_rows)
        };
        let row =
            45 * u128::from(join.key_bits) + 4 * u128::from(join.unique_bits.div_ceil(8)) + 28;
        (rows + expanded).saturating_mul(row)
    }
}

/// A condition on the columns of all tables of a clause, side by side.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// Two expressions of different tables are equal.
    Equal(Expr, Expr),
    /// Any other.
    Other(Expr),
}

/// Tables, and conditions between them.
pub(crate) struct Graph {
    /// The first column of each table, and one past the last.
    starts: Vec<u32>,
    conditions: Vec<Condition>,
}

/// A set of tables joined: the columns are those of the clause in another order.
#[derive(Clone)]
struct Joined {
    cost: u128,
    rel: Rel,
    columns: Vec<ColumnId>,
}

impl Graph {
    pub(crate) fn over(leaves: &[Rel]) -> Self {
        let mut starts = vec![0];
        for leaf in leaves {
            let end = starts[starts.len() - 1] + leaf.width();
            starts.push(end);
        }
        Self {
            starts,
            conditions: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// The tables whose columns an expression has, as a set of bits; tables past the thirty-second are refused before it matters.
    pub(crate) fn leaves(&self, of: &Expr) -> u32 {
        let mut leaves = 0;
        of.columns(&mut |id| {
            let leaf = self.starts.partition_point(|start| *start <= id.0) - 1;
            leaves |= 1_u32.checked_shl(leaf as u32).unwrap_or(0);
        });
        leaves
    }

    /// All conditions as filters, for a clause of one table.
    pub(crate) fn filters(self) -> Vec<Expr> {
        let filter = |condition| match condition {
            Condition::Equal(a, b) => Expr::compare(Comparison::Eq, a, b),
            Condition::Other(expr) => expr,
        };
        self.conditions.into_iter().map(filter).collect()
    }

    fn tables(&self, of: &Condition) -> u32 {
        match of {
            Condition::Equal(a, b) => self.leaves(a) | self.leaves(b),
            Condition::Other(expr) => self.leaves(expr),
        }
    }
}

/// Whether no two valid rows of a relation are equal in all these keys.
pub(crate) fn unique_in(shape: &Shape, keys: &[Expr]) -> bool {
    let columns: BTreeSet<ColumnId> = keys.iter().filter_map(Expr::copied).collect();
    shape.is_unique(&columns)
}

/// The expression over columns in the order of a set of tables.
fn placed(expr: &Expr, columns: &[ColumnId]) -> Expr {
    let place = |id: ColumnId| columns.iter().position(|column| *column == id);
    expr.clone().substitute(&|id| {
        Expr::column(place(id).expect("a condition is placed where all its tables are") as u32)
    })
}

impl Binder<'_> {
    /// Joins at least two tables in the order that costs least; if two cost the same, by their canonical text.
    pub(crate) fn join_order(
        &self,
        leaves: Vec<Rel>,
        graph: &Graph,
        at: Span,
    ) -> Result<Rel, SqlError> {
        let count = leaves.len();
        if count > MOST_TABLES {
            let what = format!(
                "{count} tables in one FROM clause are too many: {MOST_TABLES} are the most"
            );
            return Err(self.source.refused(
                at,
                what,
                Some("join some of them in a subquery of FROM"),
            ));
        }
        let mut best: Vec<Option<Joined>> = vec![None; 1 << count];
        for (leaf, rel) in leaves.into_iter().enumerate() {
            let columns: Vec<ColumnId> = (graph.starts[leaf]..graph.starts[leaf + 1])
                .map(ColumnId)
                .collect();
            // Conditions without columns hold for all rows or none: the first table has them.
            let of_leaf = |condition: &&Condition| {
                let tables = graph.tables(condition);
                tables == 1 << leaf || (tables == 0 && leaf == 0)
            };
            let filters = graph
                .conditions
                .iter()
                .filter(of_leaf)
                .map(|condition| filter(condition, &columns));
            let rel = self.filtered(rel, filters.collect(), at)?;
            best[1 << leaf] = Some(Joined {
                cost: 0,
                rel,
                columns,
            });
        }
        for set in 1_usize..1 << count {
            if set.count_ones() < 2 {
                continue;
            }
            let mut candidates = Vec::new();
            let mut part = (set - 1) & set;
            while part > 0 {
                if let (Some(many), Some(unique)) = (&best[part], &best[set ^ part]) {
                    let bounded = part < set ^ part;
                    candidates.extend(self.candidate(
                        graph,
                        [part as u32, (set ^ part) as u32],
                        many,
                        unique,
                        bounded,
                    ));
                }
                part = (part - 1) & set;
            }
            let least = candidates.iter().map(|candidate| candidate.cost).min();
            candidates.retain(|candidate| Some(candidate.cost) == least);
            let mut chosen: Option<(String, Joined)> = None;
            let single = candidates.len() == 1;
            for candidate in candidates {
                let built = self.built(graph, set as u32, candidate, &best, at)?;
                let text = if single {
                    String::new()
                } else {
                    built.rel.plan.to_string()
                };
                if chosen.as_ref().is_none_or(|(other, _)| text < *other) {
                    chosen = Some((text, built));
                }
            }
            best[set] = chosen.map(|(_, built)| built);
        }
        let all = best.pop().flatten();
        let joined = all.ok_or_else(|| {
            let instead = "add equalities with keys that are unique in one table, or claim that they are, or bound the result by the job";
            self.source.refused(at, "these tables are not joined by keys that are unique in one of them", Some(instead))
        })?;
        // Columns in the order of the clause would be one more projection: names move instead.
        Ok(joined.rel)
    }

    /// The join of two sets with the keys of the second unique, if it is one.
    fn candidate(
        &self,
        graph: &Graph,
        [many, unique]: [u32; 2],
        left: &Joined,
        right: &Joined,
        bounded: bool,
    ) -> Option<Candidate> {
        let mut on = Vec::new();
        for condition in &graph.conditions {
            let Condition::Equal(a, b) = condition else {
                continue;
            };
            let (of_a, of_b) = (graph.leaves(a), graph.leaves(b));
            let within = |of: u32, set: u32| of & !set == 0;
            if within(of_a, many) && within(of_b, unique) {
                on.push((placed(a, &left.columns), placed(b, &right.columns)));
            } else if within(of_b, many) && within(of_a, unique) {
                on.push((placed(b, &left.columns), placed(a, &right.columns)));
            }
        }
        let keys: Vec<Expr> = on.iter().map(|pair| pair.1.clone()).collect();
        let is_unique = unique_in(&right.rel.shape, &keys);
        let matches = match (is_unique, self.most_pairs()) {
            (true, _) => Matches::UniqueRight,
            (false, Some(rows)) if bounded && !on.is_empty() => {
                let keys: Vec<Expr> = on.iter().map(|pair| pair.0.clone()).collect();
                if unique_in(&left.rel.shape, &keys) {
                    return None;
                }
                Matches::AtMost(rows)
            }
            _ => return None,
        };
        let types = right.rel.types();
        let bits = |expr: &Expr| expr.ty(&types).ok().and_then(|ty| ty.kind.bits());
        let result_rows = match matches {
            Matches::AtMost(rows) => u64::from(rows),
            _ => left.rel.shape.capacity,
        };
        let facts = JoinFacts {
            many_rows: left.rel.shape.capacity,
            unique_rows: right.rel.shape.capacity,
            result_rows,
            key_bits: keys
                .iter()
                .map(|key| u64::from(bits(key).unwrap_or(128)))
                .sum(),
            unique_bits: types
                .iter()
                .map(|ty| u64::from(ty.kind.bits().unwrap_or(256)) + u64::from(ty.nullable))
                .sum(),
            is_unique,
        };
        let cost = self
            .cost
            .cost(&facts)
            .saturating_add(left.cost)
            .saturating_add(right.cost);
        let sets = [many, unique];
        Some(Candidate {
            cost,
            sets,
            on,
            matches,
        })
    }

    fn built(
        &self,
        graph: &Graph,
        set: u32,
        of: Candidate,
        best: &[Option<Joined>],
        at: Span,
    ) -> Result<Joined, SqlError> {
        let Candidate {
            cost,
            sets: [many, unique],
            on,
            matches,
        } = of;
        let part = |set: u32| {
            best[set as usize]
                .clone()
                .expect("a candidate is of two sets that are joined")
        };
        let (left, right) = (part(many), part(unique));
        let kind = JoinKind::Inner;
        let shape = join_shape(kind, left.rel.shape, right.rel.shape, &on, None, matches);
        let shape = shape.map_err(|wrong| self.wrong(wrong, at))?;
        let plan = Plan::Join {
            kind,
            left: Box::new(left.rel.plan),
            right: Box::new(right.rel.plan),
            on,
            condition: None,
            matches,
        };
        let columns: Vec<ColumnId> = left.columns.into_iter().chain(right.columns).collect();
        let names = left.rel.names.into_iter().chain(right.rel.names).collect();
        // Conditions whose tables come together here, but for the keys.
        let here = |condition: &&Condition| {
            let tables = graph.tables(condition);
            let apart = |set: u32| tables & !set != 0;
            let is_key = match condition {
                Condition::Equal(a, b) => {
                    let (a, b) = (graph.leaves(a), graph.leaves(b));
                    (a & !many == 0 && b & !unique == 0) || (b & !many == 0 && a & !unique == 0)
                }
                Condition::Other(_) => false,
            };
            tables & !set == 0 && apart(many) && apart(unique) && !is_key
        };
        let filters = graph
            .conditions
            .iter()
            .filter(here)
            .map(|condition| filter(condition, &columns));
        let rel = self.filtered(Rel { plan, shape, names }, filters.collect(), at)?;
        Ok(Joined { cost, rel, columns })
    }
}

struct Candidate {
    cost: u128,
    sets: [u32; 2],
    on: Vec<(Expr, Expr)>,
    matches: Matches,
}

fn filter(condition: &Condition, columns: &[ColumnId]) -> Expr {
    match condition {
        Condition::Equal(a, b) => {
            Expr::compare(Comparison::Eq, placed(a, columns), placed(b, columns))
        }
        Condition::Other(expr) => placed(expr, columns),
    }
}
