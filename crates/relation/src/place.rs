//! Places in the texts of queries: where a plan was written, for errors about it.

use std::cmp::Reverse;
use std::hash::{Hash, Hasher};

use crate::expr::Expr;
use crate::plan::Plan;
use crate::schema::ColumnId;

/// A place in the text of a query of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the query in its job.
    pub query: u32,
    /// The query or subquery that it is in: each has a number of its own in the text.
    pub scope: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Where something was written, if that is known. It is no part of what a plan means: no two are different, and the canonical text has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(pub Option<Place>);

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for At {}

impl Hash for At {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl At {
    /// This place, or another one where it is not known.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match self.0 {
            Some(_) => self,
            None => other,
        }
    }
}

impl Expr {
    /// Where the expression was written: the first of its columns in the text of the query or subquery that it is in. Operands that another query or subquery
    /// computes do not count, if there are others: those of a later query are none of an earlier one, and those of a query none of its subqueries; among
    /// subqueries, what one computes lies deeper in what another makes of it.
    #[must_use]
    pub fn written(&self) -> At {
        let mut columns = Vec::new();
        self.all_written(0, &mut columns);
        let within = |(depth, place): &&(u32, Place)| {
            (Reverse(place.query), place.scope != 0, *depth, place.scope)
        };
        let outermost = columns.iter().min_by_key(within);
        let scope = outermost.map(|(_, place)| (place.query, place.scope));
        let here = columns.iter().map(|(_, place)| *place);
        let here = here.filter(|place| Some((place.query, place.scope)) == scope);
        At(here.min())
    }

    /// Where the first of the columns is written that are such.
    pub(crate) fn first_of(&self, such: &dyn Fn(ColumnId) -> bool) -> At {
        match self {
            Self::Column(id, at) if such(*id) => *at,
            other => {
                let operands = other.operands().into_iter();
                let places = operands.filter_map(|operand| operand.first_of(such).0);
                At(places.min())
            }
        }
    }

    fn all_written(&self, depth: u32, into: &mut Vec<(u32, Place)>) {
        if let Self::Column(_, At(Some(place))) = self {
            into.push((depth, *place));
        }
        for operand in self.operands() {
            operand.all_written(depth + 1, into);
        }
    }
}

/// Where the first of some expressions was written.
#[must_use]
pub fn first_written<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> At {
    let places = exprs.into_iter().map(Expr::written);
    places.fold(At::default(), At::or)
}

/// Where a column of a relation is written.
pub(crate) fn of_column(plan: &Plan, column: usize) -> At {
    match plan {
        Plan::Project { input, columns } => match columns.get(column).map(|of| &of.expr) {
            // A projection that no text has hands on what is written below.
            Some(Expr::Column(id, At(None))) => of_column(input, id.index()),
            Some(expr) => expr.written(),
            None => At(None),
        },
        Plan::GroupBy {
            keys, aggregates, ..
        } => {
            let keys = keys.iter().map(|key| Some(&key.expr));
            let of = aggregates.iter().map(|of| of.function.argument());
            let found = keys.chain(of).nth(column).flatten();
            found.map_or(At(None), Expr::written)
        }
        Plan::Filter { input, .. }
        | Plan::Distinct { input }
        | Plan::Sort { input, .. }
        | Plan::TopK { input, .. }
        | Plan::Trim { input, .. }
        | Plan::Open { input, .. } => of_column(input, column),
        Plan::UnionAll { inputs } => inputs
            .first()
            .map_or(At(None), |input| of_column(input, column)),
        Plan::Fit { model, .. } => first_written(model.exprs()),
        Plan::Apply { input, model, .. } => match width(input) {
            Some(width) if column < width => of_column(input, column),
            Some(_) => {
                let features = model.features.iter().map(|of| match of {
                    Expr::Column(id, At(None)) => of_column(input, id.index()),
                    other => other.written(),
                });
                At(features.filter_map(|At(place)| place).min())
            }
            None => At(None),
        },
        Plan::Scan { .. } | Plan::Step { .. } | Plan::Join { .. } | Plan::Window { .. } => At(None),
    }
}

/// How many columns a relation has, where its operators say that.
fn width(plan: &Plan) -> Option<usize> {
    match plan {
        Plan::Scan { columns, .. } => Some(columns.len()),
        Plan::Project { columns, .. } => Some(columns.len()),
        Plan::GroupBy {
            keys, aggregates, ..
        } => Some(keys.len() + aggregates.len()),
        Plan::Filter { input, .. }
        | Plan::Distinct { input }
        | Plan::Sort { input, .. }
        | Plan::TopK { input, .. }
        | Plan::Trim { input, .. }
        | Plan::Open { input, .. } => width(input),
        Plan::UnionAll { inputs } => inputs.first().and_then(width),
        Plan::Apply { input, model, .. } => Some(width(input)? + model.names().len()),
        Plan::Step { .. } | Plan::Join { .. } | Plan::Window { .. } | Plan::Fit { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::expr::Arithmetic;

    fn column(id: u32, scope: u32, line: u32, column: u32) -> Expr {
        let place = Place {
            query: 0,
            scope,
            line,
            column,
        };
        Expr::Column(ColumnId(id), At(Some(place)))
    }

    fn outer_column() -> Expr {
        column(0, 0, 3, 8)
    }

    fn product(a: Expr, b: Expr) -> Expr {
        Expr::arithmetic(Arithmetic::Mul, a, b)
    }

    #[test]
    fn places_are_no_part_of_an_expression() {
        assert_eq!(column(3, 0, 1, 2), Expr::column(3));
        let both: HashSet<Expr> = [column(3, 0, 1, 2), column(3, 0, 4, 9)].into();
        assert_eq!(both.len(), 1);
        assert_ne!(column(3, 0, 1, 2), column(4, 0, 1, 2));
    }

    #[test]
    fn an_expression_is_where_its_first_column_is() {
        let text = product(
            product(column(0, 0, 2, 7), column(1, 0, 2, 11)),
            column(2, 0, 3, 1),
        );
        let At(Some(place)) = text.written() else {
            panic!("it has places");
        };
        assert_eq!((place.line, place.column), (2, 7));
        assert!(
            product(Expr::column(0), Expr::integer(2))
                .written()
                .0
                .is_none()
        );
    }

    /// `p · z` where a subquery, which stands before it, has `x · y AS p`.
    #[test]
    fn what_a_subquery_computes_is_where_it_computes_it() {
        let inner = product(column(0, 5, 1, 20), column(1, 5, 1, 24));
        let outer = product(column(0, 0, 2, 8), column(7, 0, 2, 12));
        let substituted = outer.substitute(&|id| match id.0 {
            0 => inner.clone(),
            _ => Expr::column(1),
        });
        let of = |expr: &Expr| expr.written().0.map(|place| (place.line, place.column));
        assert_eq!(of(&substituted), Some((2, 12)));
        assert_eq!(of(substituted.operands()[0]), Some((1, 20)));
        // It is as deep as the others, and is of the query that reads the subquery.
        let square = product(outer_column(), outer_column());
        assert_eq!(of(&product(inner.clone(), square)), Some((3, 8)));
        // A column stays where it was written, whatever its number is.
        assert_eq!(of(substituted.operands()[1]), Some((2, 12)));
    }
}
