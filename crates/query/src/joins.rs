//! Binds left, semi and anti joins, and what stands after ON and USING.

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::from::{Clause, concatenated};
use crate::order::{Condition, unique_in};
use crate::rel::{Found, Rel, folded, single};
use crate::walk;
use sqlparser::ast::{JoinConstraint, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{ColumnId, Comparison, Expr, JoinKind, Matches, Plan, Shape, join_shape};

impl Binder<'_> {
    pub(crate) fn constraint<'s>(
        &self,
        left: &Rel,
        right: &Rel,
        of: &'s JoinConstraint,
        at: Span,
        into: &mut Vec<Clause<'s>>,
    ) -> Result<(), SqlError> {
        match of {
            JoinConstraint::None => {}
            JoinConstraint::On(condition) => {
                for part in walk::conjuncts(condition) {
                    if walk::any(part, walk::is_subquery) {
                        return Err(self.source.refused(
                            part.span(),
                            "a subquery does not stand in ON",
                            Some("write it in WHERE"),
                        ));
                    }
                    into.push(Clause::Written(part));
                }
            }
            JoinConstraint::Using(names) => {
                for name in names {
                    let ident = single(name).ok_or_else(|| {
                        self.source
                            .refused(at, "USING takes names of columns", None)
                    })?;
                    let name = folded(ident);
                    let find = |rel: &Rel| match rel.find(None, &name) {
                        Found::Column(id) => Ok(id),
                        Found::None => Err(self
                            .source
                            .error(ident.span, Problem::NoColumn { name: name.clone() })),
                        Found::Several => Err(self
                            .source
                            .error(ident.span, Problem::Ambiguous { name: name.clone() })),
                    };
                    let (a, b) = (find(left)?, find(right)?);
                    into.push(Clause::Using(a, ColumnId(b.0 + left.width()), ident.span));
                }
            }
            _ => {
                return Err(self.source.refused(
                    at,
                    "NATURAL JOIN is not in the dialect",
                    Some("name the columns: USING (…)"),
                ));
            }
        }
        Ok(())
    }

    /// The right column of a pair in USING has no name of its own.
    pub(crate) fn hide_using(right: &mut Rel, of: &JoinConstraint) {
        if let JoinConstraint::Using(names) = of {
            let names: Vec<String> = names.iter().filter_map(single).map(folded).collect();
            for name in right
                .names
                .iter_mut()
                .filter(|name| names.contains(&name.column))
            {
                name.hidden = true;
            }
        }
    }

    /// A left, semi or anti join.
    pub(crate) fn outer(
        &mut self,
        kind: JoinKind,
        left: Rel,
        mut right: Rel,
        constraint: &JoinConstraint,
        at: Span,
    ) -> Result<Rel, SqlError> {
        let mut clauses = Vec::new();
        self.constraint(&left, &right, constraint, at, &mut clauses)?;
        let width = left.width();
        let mut row = concatenated(&[left.clone(), right.clone()]);
        let side = |expr: &Expr| {
            let mut sides = 0;
            expr.columns(&mut |id| sides |= if id.0 < width { 1 } else { 2 });
            sides
        };
        let moved = |expr: Expr| expr.substitute(&|id| Expr::column(id.0.wrapping_sub(width)));
        let (mut on, mut of_right, mut further) = (Vec::new(), Vec::new(), Vec::new());
        for clause in clauses {
            let condition = match clause {
                Clause::Using(a, b, at) => {
                    let place = self.source.at(at);
                    let typed = |id: ColumnId| {
                        let column = Expr::Column(id, place);
                        (column, row.shape.fields[id.index()].ty.clone())
                    };
                    let (one, other) = self.key_pair(typed(a), typed(b), at)?;
                    Condition::Equal(one, other)
                }
                Clause::Written(part) => self.clause(&mut row, part, &side)?,
            };
            match condition {
                Condition::Equal(a, b) if side(&a) == 1 && side(&b) == 2 => on.push((a, moved(b))),
                Condition::Equal(a, b) if side(&a) == 2 && side(&b) == 1 => on.push((b, moved(a))),
                Condition::Equal(a, b) => further.push(Expr::compare(Comparison::Eq, a, b)),
                Condition::Other(expr) if side(&expr) == 2 => of_right.push(moved(expr)),
                Condition::Other(expr) => further.push(expr),
            }
        }
        Self::hide_using(&mut right, constraint);
        let right = self.filtered(right, of_right, at)?;
        let condition = (!further.is_empty()).then(|| Expr::all(further));
        self.outer_join(kind, left, right, on, condition, at)
    }

    /// A left, semi or anti join with its keys and a further condition.
    pub(crate) fn outer_join(
        &self,
        kind: JoinKind,
        left: Rel,
        right: Rel,
        on: Vec<(Expr, Expr)>,
        condition: Option<Expr>,
        at: Span,
    ) -> Result<Rel, SqlError> {
        let keys =
            |side: fn(&(Expr, Expr)) -> &Expr| on.iter().map(side).cloned().collect::<Vec<_>>();
        let right_unique = unique_in(&right.shape, &keys(|pair| &pair.1));
        let left_unique = unique_in(&left.shape, &keys(|pair| &pair.0));
        let refused = |what: &str, instead| Err(self.source.refused(at, what, Some(instead)));
        if on.is_empty() && !right_unique {
            return refused(
                "a join has an equality between its tables",
                "write ON a.x = b.y",
            );
        }
        if condition.is_some() && !right_unique {
            return refused(
                "a further condition on both tables needs keys that are unique on the right",
                "claim that they are unique, or aggregate the right table first",
            );
        }
        let matches = match kind {
            _ if right_unique => Matches::UniqueRight,
            JoinKind::Semi | JoinKind::Anti => Matches::Any,
            _ if left_unique => Matches::UniqueLeft,
            _ => match self.most_pairs() {
                Some(rows) => Matches::AtMost(rows),
                None => {
                    return refused(
                        "the keys of this join are unique in neither table",
                        "claim that they are in one, aggregate one table first, or bound the result by the job",
                    );
                }
            },
        };
        let shape: Shape = join_shape(
            kind,
            left.shape,
            right.shape,
            &on,
            condition.as_ref(),
            matches,
        )
        .map_err(|wrong| self.wrong(wrong, at))?;
        let plan = Plan::Join {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            on,
            condition,
            matches,
        };
        let mut names = left.names;
        if kind == JoinKind::Left {
            names.extend(right.names);
        }
        Ok(Rel { plan, shape, names })
    }
}
