//! Binds unions.

use crate::bind::{Binder, Level};
use crate::error::{Problem, SqlError};
use crate::rel::Rel;
use crate::term::{Term, Terms};
use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{Expr, Named, Plan};

/// Most parts of a union: they nest in the parser's tree.
const MOST_PARTS: usize = 100;

impl Binder<'_> {
    pub(crate) fn set(&mut self, of: &SetExpr, level: Level) -> Result<Rel, SqlError> {
        let at = of.span();
        match of {
            SetExpr::Select(select) => self.select(select, &[], None, level),
            SetExpr::Query(query) => self.query(query, level),
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier,
                ..
            } => {
                let distinct = match set_quantifier {
                    SetQuantifier::All => false,
                    SetQuantifier::None | SetQuantifier::Distinct => true,
                    _ => {
                        return Err(self.source.refused(
                            at,
                            "UNION BY NAME is not in the dialect",
                            None,
                        ));
                    }
                };
                let mut parts = Vec::new();
                self.union_parts(of, *set_quantifier, &mut parts)?;
                let rels = parts
                    .into_iter()
                    .map(|part| self.set(part, level))
                    .collect::<Result<Vec<_>, _>>()?;
                self.union(rels, distinct, at)
            }
            SetExpr::SetOperation { op, .. } => {
                let what = format!("{op} is not in the dialect");
                Err(self.source.refused(
                    self.source.word(&op.to_string()),
                    what,
                    Some("write a SEMI JOIN or ANTI JOIN, or IN or NOT EXISTS of a subquery"),
                ))
            }
            SetExpr::Values(_) => Err(self.source.refused(
                self.source.word("VALUES"),
                "VALUES is not in the dialect",
                None,
            )),
            _ => Err(self
                .source
                .refused(at, "only SELECT and UNION make relations", None)),
        }
    }

    /// The parts of a chain of unions of one kind, in order.
    pub(crate) fn union_parts<'s>(
        &self,
        of: &'s SetExpr,
        same: SetQuantifier,
        into: &mut Vec<&'s SetExpr>,
    ) -> Result<(), SqlError> {
        let mut stack = vec![of];
        while let Some(part) = stack.pop() {
            match part {
                SetExpr::SetOperation {
                    op: SetOperator::Union,
                    set_quantifier,
                    left,
                    right,
                } if *set_quantifier == same => stack.extend([&**right, &**left]),
                other => into.push(other),
            }
        }
        if into.len() > MOST_PARTS {
            let (most, of) = (MOST_PARTS, "parts of a union");
            return Err(self
                .source
                .error(into[MOST_PARTS].span(), Problem::TooLarge { most, of }));
        }
        Ok(())
    }

    pub(crate) fn union(&self, rels: Vec<Rel>, distinct: bool, at: Span) -> Result<Rel, SqlError> {
        let width = rels[0].names.len();
        let names = rels[0].names.clone();
        if rels.iter().any(|rel| rel.names.len() != width) {
            return Err(self.source.refused(
                at,
                "the parts of a union have different numbers of columns",
                None,
            ));
        }
        let mut columns: Vec<Vec<Named>> = vec![Vec::new(); rels.len()];
        for (column, name) in names.iter().enumerate() {
            let term = |rel: &Rel| {
                Term::Expr(
                    Expr::column(column as u32),
                    rel.shape.fields[column].ty.clone(),
                )
            };
            let terms = Terms {
                source: self.source,
                at,
            };
            let unified = terms.unified(rels.iter().map(term).collect())?;
            for (part, (expr, _)) in columns.iter_mut().zip(unified) {
                let name = name.column.clone();
                part.push(Named { name, expr });
            }
        }
        let inputs = rels.into_iter().zip(columns).map(|(rel, columns)| {
            let same = columns
                .iter()
                .zip(0..)
                .all(|(column, at)| column.expr == Expr::column(at));
            let input = Box::new(rel.plan);
            if same {
                *input
            } else {
                Plan::Project { input, columns }
            }
        });
        let plan = Plan::UnionAll {
            inputs: inputs.collect(),
        };
        let plan = if distinct {
            Plan::Distinct {
                input: Box::new(plan),
            }
        } else {
            plan
        };
        let mut rel = self.rel(plan, None, at)?;
        rel.names = names;
        Ok(rel)
    }
}
