//! Binds conditions on categories, and parts of their texts.

use crate::bind::Binder;
use crate::error::SqlError;
use crate::scalar::Scope;
use crate::term::{Term, decided, like};
use sqlparser::ast::{self, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{Comparison, Expr, Kind, Literal, Type, Value};

impl Binder<'_> {
    pub(crate) fn in_list(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        list: &[ast::Expr],
        at: Span,
    ) -> Result<Expr, SqlError> {
        let of = self.term(scope, of)?;
        let items = list.iter().map(|item| self.term(scope, item));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let texts = items.iter().map(|item| match item {
            Term::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Option<Vec<&str>> = texts.collect();
        if let (
            Term::Expr(
                category,
                Type {
                    kind: Kind::Category(values),
                    ..
                },
            ),
            Some(texts),
        ) = (&of, texts)
        {
            return Ok(decided(category.clone(), values, |value| {
                texts.contains(&value)
            }));
        }
        let terms = self.terms(at);
        let equal = items
            .into_iter()
            .map(|item| terms.compare(Comparison::Eq, of.clone(), item));
        Ok(Expr::Or(equal.collect::<Result<_, _>>()?))
    }

    pub(crate) fn like(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        pattern: &ast::Expr,
        at: Span,
    ) -> Result<Expr, SqlError> {
        let term = self.term(scope, pattern)?;
        let Term::Text(pattern) = term else {
            return Err(self.source.refused(
                pattern.span(),
                "the pattern of LIKE is a quoted text",
                None,
            ));
        };
        let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
        if escapes % 2 == 1 {
            return Err(self
                .source
                .refused(at, "the pattern of LIKE ends with an escape", None));
        }
        match self.value(scope, of)? {
            (
                of,
                Type {
                    kind: Kind::Category(values),
                    ..
                },
            ) => Ok(decided(of, &values, |text| like(text, &pattern))),
            (_, other) => Err(self.source.refused(
                at,
                format!("LIKE stands on a category, and not on a {}", other.kind),
                Some("owners prepare texts as categories with a public list"),
            )),
        }
    }

    /// A part of the texts of a category, from a public place on, of a public length.
    pub(crate) fn substring(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        bounds: [Option<&ast::Expr>; 2],
        at: Span,
    ) -> Result<Expr, SqlError> {
        let mut numbers = [1, i128::from(u32::MAX)];
        for (bound, number) in bounds.into_iter().zip(&mut numbers) {
            let Some(bound) = bound else { continue };
            match self.value(scope, bound)?.0 {
                Expr::Literal(Literal::Integer(value))
                    if (0..=i128::from(u32::MAX)).contains(&value) =>
                {
                    *number = value;
                }
                _ => {
                    return Err(self.source.refused(
                        bound.span(),
                        "SUBSTRING takes public integers from 0 on",
                        None,
                    ));
                }
            }
        }
        let (from, length) = (numbers[0], numbers[1]);
        let (of, ty) = self.value(scope, of)?;
        let Kind::Category(values) = ty.kind else {
            return Err(self.source.refused(
                at,
                format!("SUBSTRING stands on a category, and not on a {}", ty.kind),
                None,
            ));
        };
        // Characters from `from` on; those before the first count, as in PostgreSQL.
        let cut = |text: &String| {
            let places = text.chars().zip(1_i128..);
            places
                .filter(|(_, place)| from <= *place && *place < from + length)
                .map(|(c, _)| c)
                .collect::<String>()
        };
        let parts: Vec<String> = values.texts().iter().map(cut).collect();
        let to = self.terms(at).merged(&parts)?;
        let index = |part: &String| {
            to.index(part)
                .map_or(Value::Null, |index| Value::Number(index.into()))
        };
        Ok(Expr::Lookup {
            of: Box::new(of),
            first: 0,
            kind: Kind::Category(to.clone()),
            table: parts.iter().map(index).collect(),
        })
    }
}
