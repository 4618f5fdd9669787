//! Binds FROM and WHERE: tables, joins, and conditions on them.

use sqlparser::ast::{self, BinaryOperator, JoinOperator, Spanned, TableFactor, TableWithJoins};
use sqlparser::tokenizer::Span;
use veil_relation::{ColumnId, Expr, JoinKind, Kind, Plan, Shape, Type};

use crate::bind::{Binder, Level};
use crate::error::{Problem, SqlError};
use crate::order::{Condition, Graph};
use crate::rel::{Found, Rel, folded, single};
use crate::scalar::Scope;
use crate::term::{Term, Terms};
use crate::walk;

/// A condition on the tables of a FROM clause.
pub(crate) enum Clause<'s> {
    /// As it is written.
    Written(&'s ast::Expr),
    /// An equality of USING, between columns counted from the first table of the clause.
    Using(ColumnId, ColumnId, Span),
}

/// An equality of an expression of a query with one of the query around it.
pub(crate) type Correlation = (Expr, Expr);

impl Binder<'_> {
    /// Binds FROM and WHERE. Equalities with columns of an outer query are given back.
    pub(crate) fn sources(
        &mut self,
        of: &ast::Select,
        outer: Option<&Rel>,
    ) -> Result<(Rel, Vec<Correlation>), SqlError> {
        let (mut leaves, mut clauses) = (Vec::new(), Vec::new());
        for tables in &of.from {
            self.tables(tables, &mut leaves, &mut clauses)?;
        }
        if leaves.is_empty() {
            return Err(self
                .source
                .refused(of.span(), "a query reads a table", Some("add FROM")));
        }
        let mut later = Vec::new();
        let mut correlated = Vec::new();
        let row = concatenated(&leaves);
        for part in of
            .selection
            .iter()
            .flat_map(|condition| walk::conjuncts(condition))
        {
            if walk::any(part, walk::is_subquery) {
                later.push(part);
            } else if outer.is_some_and(|outer| refers(part, &row, outer)) {
                correlated.push(part);
            } else {
                clauses.push(Clause::Written(part));
            }
        }
        let mut rel = self.joined(leaves, clauses, of.span())?;
        let mut correlations = Vec::new();
        for part in correlated {
            if let Some(outer) = outer {
                correlations.push(self.correlation(&rel, outer, part)?);
            }
        }
        for part in later {
            self.subquery_condition(&mut rel, None, part)?;
        }
        Ok((rel, correlations))
    }

    /// `inner = outer`, of one kind.
    fn correlation(
        &mut self,
        inner: &Rel,
        outer: &Rel,
        of: &ast::Expr,
    ) -> Result<Correlation, SqlError> {
        let refused = || {
            let instead =
                "a condition with columns of the outer query is an equality: inner = outer";
            self.source.refused(
                of.span(),
                "this correlated condition is not in the dialect",
                Some(instead),
            )
        };
        let (left, right) = equality(of).ok_or_else(refused)?;
        let (mine, theirs) = match (refers(left, inner, outer), refers(right, inner, outer)) {
            (false, true) => (left, right),
            (true, false) => (right, left),
            _ => return Err(refused()),
        };
        let mine = self.value(&mut Scope::rows(&mut inner.clone()), mine)?;
        let theirs = self.value(&mut Scope::rows(&mut outer.clone()), theirs)?;
        self.key_pair(mine, theirs, of.span())
    }

    /// Two keys at the same places or over the same list.
    pub(crate) fn key_pair(
        &self,
        one: (Expr, Type),
        other: (Expr, Type),
        at: Span,
    ) -> Result<(Expr, Expr), SqlError> {
        let terms = Terms {
            source: self.source,
            at,
        };
        let pair = terms.unified(vec![Term::Expr(one.0, one.1), Term::Expr(other.0, other.1)])?;
        let pair = pair.into_iter().map(|(expr, _)| expr).collect::<Vec<_>>();
        let [one, other] = <[Expr; 2]>::try_from(pair).expect("two terms stay two");
        Ok((one, other))
    }

    fn tables<'s>(
        &mut self,
        of: &'s TableWithJoins,
        leaves: &mut Vec<Rel>,
        clauses: &mut Vec<Clause<'s>>,
    ) -> Result<(), SqlError> {
        let TableWithJoins { relation, joins } = of;
        let before: u32 = leaves.iter().map(Rel::width).sum();
        let mut own = vec![self.factor(relation)?];
        let mut conditions: Vec<Clause<'s>> = Vec::new();
        for join in joins {
            let ast::Join {
                relation,
                global,
                join_operator,
            } = join;
            let at = relation.span();
            let (kind, constraint) = match join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::CrossJoin(on) => {
                    (JoinKind::Inner, on)
                }
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (JoinKind::Left, on),
                JoinOperator::Semi(on) | JoinOperator::LeftSemi(on) => (JoinKind::Semi, on),
                JoinOperator::Anti(on) | JoinOperator::LeftAnti(on) => (JoinKind::Anti, on),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                    return Err(self.source.refused(
                        at,
                        "RIGHT JOIN is not in the dialect",
                        Some("exchange the tables and write LEFT JOIN"),
                    ));
                }
                JoinOperator::FullOuter(_) => {
                    return Err(self.source.refused(
                        at,
                        "FULL JOIN is not in the dialect",
                        Some(
                            "write a LEFT JOIN and, by UNION ALL, the ANTI JOIN of the other side",
                        ),
                    ));
                }
                _ => {
                    return Err(self
                        .source
                        .refused(at, "this join is not in the dialect", None));
                }
            };
            if *global {
                return Err(self
                    .source
                    .refused(at, "GLOBAL is not in the dialect", None));
            }
            let right = self.factor(relation)?;
            if kind == JoinKind::Inner {
                let row = concatenated(&own);
                self.constraint(&row, &right, constraint, at, &mut conditions)?;
                let mut right = right;
                Self::hide_using(&mut right, constraint);
                own.push(right);
            } else {
                let left = self.joined(
                    std::mem::take(&mut own),
                    std::mem::take(&mut conditions),
                    at,
                )?;
                own.push(self.outer(kind, left, right, constraint, at)?);
            }
        }
        // Columns of USING are counted from the first table of the whole clause.
        clauses.extend(conditions.into_iter().map(|clause| match clause {
            Clause::Using(a, b, at) => {
                Clause::Using(ColumnId(a.0 + before), ColumnId(b.0 + before), at)
            }
            written @ Clause::Written(_) => written,
        }));
        leaves.extend(own);
        Ok(())
    }

    /// Joins tables by equalities, in the order that costs least; other conditions are filters.
    fn joined(
        &mut self,
        mut leaves: Vec<Rel>,
        clauses: Vec<Clause<'_>>,
        at: Span,
    ) -> Result<Rel, SqlError> {
        let mut row = concatenated(&leaves);
        let mut graph = Graph::over(&leaves);
        for clause in clauses {
            match clause {
                Clause::Using(a, b, at) => {
                    let place = self.source.at(at);
                    let typed = |id: ColumnId| {
                        let column = Expr::Column(id, place);
                        (column, row.shape.fields[id.index()].ty.clone())
                    };
                    let (one, other) = self.key_pair(typed(a), typed(b), at)?;
                    graph.add(Condition::Equal(one, other));
                }
                Clause::Written(part) => {
                    let condition = self.clause(&mut row, part, &|expr| graph.leaves(expr))?;
                    graph.add(condition);
                }
            }
        }
        if leaves.len() == 1 {
            let rel = leaves.remove(0);
            return self.filtered(rel, graph.filters(), at);
        }
        self.join_order(leaves, &graph, at)
    }

    /// A conjunct over the columns of several tables: an equality of two sets of them, or any other condition.
    pub(crate) fn clause(
        &mut self,
        row: &mut Rel,
        part: &ast::Expr,
        leaves: &dyn Fn(&Expr) -> u32,
    ) -> Result<Condition, SqlError> {
        if let Some((left, right)) = equality(part) {
            let one = self.term(&mut Scope::rows(row), left)?;
            let other = self.term(&mut Scope::rows(row), right)?;
            if let (Term::Expr(a, x), Term::Expr(b, y)) = (one, other) {
                let (of_a, of_b) = (leaves(&a), leaves(&b));
                let ratio = |ty: &Type| matches!(ty.kind, Kind::Ratio { .. });
                if of_a != 0 && of_b != 0 && of_a & of_b == 0 && !ratio(&x) && !ratio(&y) {
                    let (a, b) = self.key_pair((a, x), (b, y), part.span())?;
                    return Ok(Condition::Equal(a, b));
                }
            }
        }
        self.condition(&mut Scope::rows(row), part)
            .map(Condition::Other)
    }

    /// The relation with conditions on its rows.
    pub(crate) fn filtered(
        &self,
        rel: Rel,
        conditions: Vec<Expr>,
        at: Span,
    ) -> Result<Rel, SqlError> {
        if conditions.is_empty() {
            return Ok(rel);
        }
        let plan = Plan::Filter {
            input: Box::new(rel.plan),
            predicate: Expr::all(conditions),
        };
        let shape = self.shape(&plan, at)?;
        let names = rel.names;
        Ok(Rel { plan, shape, names })
    }

    fn factor(&mut self, of: &TableFactor) -> Result<Rel, SqlError> {
        let at = of.span();
        match of {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_directives,
                inheritance: None,
            } if with_hints.is_empty() && partitions.is_empty() && index_directives.is_empty() => {
                let ident = single(name)
                    .ok_or_else(|| self.source.refused(at, "a table has one name", None))?;
                let rel = self.table(&folded(ident), ident.span)?;
                alias
                    .as_ref()
                    .map_or(Ok(rel.clone()), |alias| self.alias(rel, alias))
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                sample: None,
            } => {
                let Some(alias) = alias else {
                    return Err(self.source.refused(
                        at,
                        "a subquery in FROM has a name",
                        Some("write AS name after it"),
                    ));
                };
                let name = folded(&alias.name);
                let outer = std::mem::replace(
                    &mut self.bound,
                    self.bounds.iter().find(|bound| bound.of == name).cloned(),
                );
                self.named.insert(name);
                let rel = self.query(subquery, Level::Inner)?;
                let rel = self.alias(rel, alias)?;
                let rel = self.trimmed(rel, at)?;
                self.bound = outer;
                Ok(rel)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => {
                let (mut leaves, mut clauses) = (Vec::new(), Vec::new());
                self.tables(table_with_joins, &mut leaves, &mut clauses)?;
                self.joined(leaves, clauses, at)
            }
            TableFactor::Derived { lateral: true, .. } => Err(self.source.refused(
                at,
                "LATERAL is not in the dialect",
                Some("write a scalar subquery, or a join"),
            )),
            _ => Err(self
                .source
                .refused(at, "this form of a table is not in the dialect", None)),
        }
    }

    fn table(&self, name: &str, at: Span) -> Result<Rel, SqlError> {
        if let Some((_, step)) = self.ctes.iter().rev().find(|(known, _)| known == name) {
            let plan = Plan::Step { name: step.clone() };
            return self.rel(plan, Some(name), at);
        }
        if let Some(table) = self.program.tables.iter().find(|table| table.name == name) {
            let columns = (0..table.columns.len() as u32).map(ColumnId).collect();
            let table = name.to_owned();
            return self.rel(Plan::Scan { table, columns }, Some(name), at);
        }
        match self.program.steps.iter().find(|step| step.name == name) {
            Some(step) if matches!(step.plan, Plan::Open { .. }) => {
                let what = format!("query `{name}` opens its relation, and is not read by another");
                Err(self
                    .source
                    .refused(at, what, Some("leave out `to` of the one that is read")))
            }
            Some(step) => self.rel(
                Plan::Step {
                    name: step.name.clone(),
                },
                Some(name),
                at,
            ),
            None => {
                let name = name.to_owned();
                Err(self.source.error(at, Problem::NoTable { name }))
            }
        }
    }
}

/// The columns of several relations side by side; it has no rows of its own, and only its names and types are used.
pub(crate) fn concatenated(leaves: &[Rel]) -> Rel {
    let fields = leaves
        .iter()
        .flat_map(|leaf| leaf.shape.fields.clone())
        .collect();
    Rel {
        plan: Plan::UnionAll { inputs: Vec::new() },
        shape: Shape {
            fields,
            capacity: 0,
            unique: Vec::new(),
            claimed: Vec::new(),
        },
        names: leaves.iter().flat_map(|leaf| leaf.names.clone()).collect(),
    }
}

/// The sides of an equality.
fn equality(of: &ast::Expr) -> Option<(&ast::Expr, &ast::Expr)> {
    match of {
        ast::Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => Some((left, right)),
        ast::Expr::Nested(inner) => equality(inner),
        _ => None,
    }
}

/// Whether an expression has a column of the outer relation that the inner one does not have.
pub(crate) fn refers(of: &ast::Expr, inner: &Rel, outer: &Rel) -> bool {
    let of_outer = |table: Option<String>, name: &ast::Ident| {
        let name = folded(name);
        let there = matches!(
            outer.find(table.as_deref(), &name),
            Found::Column(_) | Found::Several
        );
        matches!(inner.find(table.as_deref(), &name), Found::None) && there
    };
    walk::any(of, |of| match of {
        ast::Expr::Identifier(name) => of_outer(None, name),
        ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] => of_outer(Some(folded(table)), name),
            _ => false,
        },
        _ => false,
    })
}
