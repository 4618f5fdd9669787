//! Orders of rows that operators leave, and that others need not sort by again.

use veil_operators::Arranged;
use veil_relation::{Expr, SortKey};

use super::rel::Rel;

/// The order in which the rows of a relation come.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Valid rows come in the order of these keys, over the base.
    keys: Vec<SortKey>,
    /// Rows in which one of these is not true come behind all others.
    among: Vec<Expr>,
    /// No two valid rows are equal in the keys.
    unique: bool,
}

impl Known {
    /// An order of rows of which those that are not valid come last, and, if it is `unique`, no two others are equal in the keys.
    pub(super) fn sorted(rel: &Rel, keys: Vec<SortKey>, unique: bool) -> Option<Self> {
        (!keys.is_empty()).then(|| Known {
            keys,
            among: rel.valid.clone(),
            unique,
        })
    }

    /// Whether no two valid rows are equal in the first so many keys.
    pub(super) const fn is_unique(&self, keys: usize) -> bool {
        self.unique && keys == self.keys.len()
    }

    /// An order of rows that all are valid, of which no two are equal in the keys, and of rows between them that are not; or behind them, with `last`.
    pub(super) fn of_groups(rel: &Rel, keys: Vec<SortKey>, last: bool) -> Option<Self> {
        let among = if last { rel.valid.clone() } else { vec![] };
        (!keys.is_empty()).then_some(Known {
            keys,
            among,
            unique: true,
        })
    }

    /// The same over another base, of the expressions `exprs` as its columns, with one bit that says whether a row is valid.
    pub(super) fn over<'e>(
        before: &Rel,
        exprs: &(impl Iterator<Item = &'e Expr> + Clone),
        after: &Rel,
    ) -> Option<Self> {
        let known = before.order.as_ref()?;
        let place = |expr: &Expr| exprs.clone().position(|of| of == expr);
        let keys = known.keys.iter().map_while(|key| {
            Some(SortKey {
                expr: Expr::column(place(&key.expr)? as u32),
                ..key.clone()
            })
        });
        let keys: Vec<SortKey> = keys.collect();
        let whole = keys.len() == known.keys.len();
        let last = known.is_last(before);
        (!keys.is_empty()).then(|| Known {
            keys,
            among: if last { after.valid.clone() } else { vec![] },
            unique: known.unique && whole,
        })
    }

    /// The same, where rows that are not valid have gone behind all others.
    pub(super) fn with_last(self, rel: &Rel) -> Self {
        Known {
            among: rel.valid.clone(),
            ..self
        }
    }

    /// Whether all rows that are not valid come last.
    pub(super) fn is_last(&self, rel: &Rel) -> bool {
        rel.valid
            .iter()
            .all(|condition| self.among.contains(condition))
    }

    /// What all rows ascend by, nulls last, if those that are not valid come last.
    pub(super) fn ascending<'k>(&'k self, rel: &Rel) -> impl Iterator<Item = &'k Expr> {
        let last = self.is_last(rel);
        let keys = self.keys.iter();
        let keys = keys.take_while(move |key| last && !key.descending && !key.nulls_first);
        keys.map(|key| &key.expr)
    }

    fn arranged(&self, rel: &Rel) -> Arranged {
        if self.is_last(rel) {
            Arranged::Fully
        } else {
            Arranged::ByKey
        }
    }
}

/// How rows come in the order of these keys, as far as operators have left them in it.
pub(super) fn arranged(rel: &Rel, keys: &[SortKey]) -> Arranged {
    let Some(known) = &rel.order else {
        return Arranged::Anyhow;
    };
    let same = known.keys.iter().zip(keys);
    let same = same.take_while(|(one, other)| one == other).count();
    // What comes behind keys in which no two rows are equal decides nothing.
    if same == keys.len() || known.unique && same == known.keys.len() {
        known.arranged(rel)
    } else {
        Arranged::Anyhow
    }
}

/// How rows come that are equal in these keys together; and in which order of them.
pub(super) fn gathered(rel: &Rel, keys: &[Expr]) -> Option<(Arranged, Vec<SortKey>)> {
    let known = rel.order.as_ref()?;
    let mut together: Vec<SortKey> = Vec::new();
    for key in &known.keys {
        if !keys.contains(&key.expr) {
            break;
        }
        together.push(key.clone());
    }
    let all = keys
        .iter()
        .all(|key| together.iter().any(|of| of.expr == *key));
    all.then(|| (known.arranged(rel), together))
}

/// How rows come by partitions, whatever the order of these is, and then in the order of these keys; with the keys of the partitions in their order.
pub(super) fn partitioned(
    rel: &Rel,
    partition: &[SortKey],
    order: &[SortKey],
) -> Option<(Arranged, Vec<SortKey>)> {
    let exprs: Vec<Expr> = partition.iter().map(|key| key.expr.clone()).collect();
    let (_, mut keys) = gathered(rel, &exprs)?;
    keys.extend_from_slice(order);
    match arranged(rel, &keys) {
        Arranged::Anyhow => None,
        known => Some((known, keys)),
    }
}
