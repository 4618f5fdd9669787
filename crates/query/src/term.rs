//! Bound expressions, and literals that take their type from what stands beside them.

use std::collections::BTreeSet;

use sqlparser::ast::Value as Written;
use sqlparser::tokenizer::Span;
use veil_relation::{Comparison, Expr, Kind, Literal, Type, Value, Values, calendar};

use crate::error::{Problem, SqlError};
use crate::source::Source;

/// What an expression of SQL is bound to.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// An expression with its type.
    Expr(Expr, Type),
    /// A quoted text: of a category, a date or an interval, by what stands beside it.
    Text(String),
    /// Null, of the kind that stands beside it.
    Null,
    /// An interval of days.
    Days(i128),
    /// An interval of months.
    Months(i32),
}

impl Term {
    /// A public value.
    pub(crate) fn literal(of: Literal) -> Self {
        let ty = Type::of(of.kind()).or_null(matches!(of, Literal::Null(_)));
        Self::Expr(Expr::Literal(of), ty)
    }

    /// What it is, for messages.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Expr(_, ty) => ty.kind.to_string(),
            Self::Text(_) => "text".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Days(_) | Self::Months(_) => "interval".to_owned(),
        }
    }
}

/// Joins terms of one query.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) at: Span,
}

impl Terms<'_> {
    fn refused(&self, what: String, instead: Option<&'static str>) -> SqlError {
        self.source.refused(self.at, what, instead)
    }

    /// A literal as it is written.
    pub(crate) fn written(&self, value: &Written) -> Result<Term, SqlError> {
        Ok(match value {
            Written::Number(digits, false) => Term::literal(self.number(digits)?),
            Written::SingleQuotedString(text) => Term::Text(text.clone()),
            Written::Boolean(value) => Term::literal(Literal::Bool(*value)),
            Written::Null => Term::Null,
            other => {
                let what = format!("the literal {other} is not in the dialect");
                return Err(self.refused(
                    what,
                    Some("numbers, 'texts', DATE '2025-03-14', TRUE, FALSE and NULL are"),
                ));
            }
        })
    }

    fn number(&self, digits: &str) -> Result<Literal, SqlError> {
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(part) {
            let what = format!("{digits} is no exact number");
            return Err(self.refused(what, Some("write a decimal number, such as 0.05")));
        }
        let places = part.len() as u32;
        let units = format!("{whole}{part}").parse();
        match units {
            Ok(units) if places <= veil_relation::MOST_PLACES => Ok(if digits.contains('.') {
                Literal::Decimal { units, places }
            } else {
                Literal::Integer(units)
            }),
            _ => Err(self.refused(format!("{digits} has too many digits"), None)),
        }
    }

    /// The date that a text says.
    pub(crate) fn date(&self, text: &str) -> Result<Expr, SqlError> {
        let day = calendar::parse(text).map(|day| Expr::Literal(Literal::Date(day)));
        day.ok_or_else(|| {
            self.refused(
                format!("'{text}' is no date"),
                Some("write it as 2025-03-14"),
            )
        })
    }

    /// An expression with its type; null and texts alone have none.
    pub(crate) fn typed(&self, term: Term) -> Result<(Expr, Type), SqlError> {
        match term {
            Term::Expr(expr, ty) => Ok((expr, ty)),
            Term::Text(text) => {
                let values = Values::new(vec![text]).expect("one text is a list");
                let literal = Literal::Category { index: 0, values };
                let ty = Type::of(literal.kind());
                Ok((Expr::Literal(literal), ty))
            }
            Term::Null => Err(self.refused(
                "NULL has no type here".to_owned(),
                Some("give it one by CASE or COALESCE with a typed value"),
            )),
            Term::Days(_) | Term::Months(_) => {
                Err(self.refused("an interval is added to a date only".to_owned(), None))
            }
        }
    }

    /// An expression that is true, false or null.
    pub(crate) fn condition(&self, term: Term) -> Result<Expr, SqlError> {
        match term {
            Term::Expr(expr, ty) if ty.kind == Kind::Bool => Ok(expr),
            Term::Null => Ok(Expr::Literal(Literal::Null(Kind::Bool))),
            other => Err(self.refused(
                format!("a condition stands here, and no {}", other.what()),
                None,
            )),
        }
    }

    /// The comparison of two terms.
    pub(crate) fn compare(
        &self,
        sign: Comparison,
        left: Term,
        right: Term,
    ) -> Result<Expr, SqlError> {
        match (left, right) {
            (Term::Null, _) | (_, Term::Null) => Ok(Expr::Literal(Literal::Null(Kind::Bool))),
            (Term::Text(a), Term::Text(b)) => Ok(Expr::bool(sign.admits(a.cmp(&b)))),
            (text @ Term::Text(_), other) => self.compare(sign.mirrored(), other, text),
            (Term::Expr(of, ty), Term::Text(text)) => match ty.kind {
                Kind::Category(values) => Ok(decided(of, &values, |value| {
                    sign.admits(value.cmp(text.as_str()))
                })),
                Kind::Date(_) => Ok(Expr::compare(sign, of, self.date(&text)?)),
                Kind::Key { .. } => Err(self.keys()),
                other => Err(self.refused(
                    format!("a {other} is not compared with a text"),
                    Some("write numbers without quotes"),
                )),
            },
            (left, right) => {
                let [(a, x), (b, y)] = [self.typed(left)?, self.typed(right)?];
                match (&x.kind, &y.kind) {
                    (Kind::Key { .. }, _) | (_, Kind::Key { .. }) => Err(self.keys()),
                    (Kind::Category(one), Kind::Category(other)) if one != other => {
                        let all = self.merged([one, other].into_iter().flat_map(Values::texts))?;
                        Ok(Expr::compare(
                            sign,
                            recoded(a, one, &all),
                            recoded(b, other, &all),
                        ))
                    }
                    _ => Ok(Expr::compare(sign, a, b)),
                }
            }
        }
    }

    fn keys(&self) -> SqlError {
        let what = "a key is compared by joins only".to_owned();
        self.refused(
            what,
            Some("join tables ON an equality of keys, or use IN or EXISTS with a subquery"),
        )
    }

    /// Terms as expressions of one kind but for ranges: decimals at the places of all, categories over the list of all.
    pub(crate) fn unified(&self, terms: Vec<Term>) -> Result<Vec<(Expr, Type)>, SqlError> {
        let kinds = || {
            terms.iter().filter_map(|term| match term {
                Term::Expr(_, ty) => Some(&ty.kind),
                _ => None,
            })
        };
        let date = kinds().any(|kind| matches!(kind, Kind::Date(_)));
        let texts = terms.iter().filter_map(|term| match term {
            Term::Text(text) => Some(text),
            _ => None,
        });
        let listed = kinds().filter_map(|kind| match kind {
            Kind::Category(values) => Some(values.texts()),
            _ => None,
        });
        let decimal = kinds().any(|kind| matches!(kind, Kind::Decimal { .. }));
        let places = kinds()
            .filter_map(Kind::number)
            .map(|(places, _)| places)
            .max();
        let all: Vec<&String> = listed.flatten().chain(texts).collect();
        let values = if all.is_empty() || date {
            None
        } else {
            Some(self.merged(all)?)
        };
        let null = kinds()
            .next()
            .cloned()
            .or_else(|| values.clone().map(Kind::Category));
        let mut unified = Vec::with_capacity(terms.len());
        for term in terms {
            let (expr, ty) = match (term, &values) {
                (Term::Text(text), _) if date => {
                    let day = self.date(&text)?;
                    let ty = day
                        .ty(&[])
                        .map_err(|wrong| self.source.error(self.at, Problem::Type(wrong)))?;
                    (day, ty)
                }
                (Term::Text(text), Some(values)) => {
                    let index = values.index(&text).expect("the list has all texts");
                    let values = values.clone();
                    let literal = Literal::Category { index, values };
                    let ty = Type::of(literal.kind());
                    (Expr::Literal(literal), ty)
                }
                (Term::Null, values) => {
                    let kind = values.clone().map(Kind::Category).or(null.clone());
                    let kind =
                        kind.ok_or_else(|| self.refused("NULL has no type here".to_owned(), None))?;
                    let literal = Literal::Null(kind.clone());
                    (Expr::Literal(literal), Type::of(kind).or_null(true))
                }
                (other, values) => {
                    let (expr, ty) = self.typed(other)?;
                    match (&ty.kind, values) {
                        (Kind::Category(from), Some(to)) if from != to => {
                            let kind = Kind::Category(to.clone());
                            (recoded(expr, from, to), Type::of(kind).or_null(ty.nullable))
                        }
                        _ => (expr, ty),
                    }
                }
            };
            // Nulls of a number have places as well.
            let scaled = match (ty.kind.number(), places) {
                (Some((from, units)), Some(to))
                    if decimal && (from < to || matches!(ty.kind, Kind::Integer(_))) =>
                {
                    let units = units.shifted(to - from).ok_or_else(|| {
                        self.refused("a number does not fit 128 bits".to_owned(), None)
                    })?;
                    let kind = Kind::Decimal { places: to, units };
                    (
                        Expr::Rescale(Box::new(expr), to),
                        Type::of(kind).or_null(ty.nullable),
                    )
                }
                _ => (expr, ty),
            };
            unified.push(scaled);
        }
        let first = unified.first().map(|(_, ty)| ty.kind.clone());
        for (_, ty) in &unified {
            if let Some(first) = &first
                && first.hull(&ty.kind).is_none()
            {
                if matches!(first, Kind::Ratio { .. }) || matches!(ty.kind, Kind::Ratio { .. }) {
                    return Err(self.refused(
                        "a quotient does not stand here".to_owned(),
                        Some("round it first: round(…, 2)"),
                    ));
                }
                return Err(self.refused(
                    format!(
                        "values of one kind stand here, and not {first} and {}",
                        ty.kind
                    ),
                    None,
                ));
            }
        }
        Ok(unified)
    }

    /// The list of all these texts.
    pub(crate) fn merged<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t String>,
    ) -> Result<Values, SqlError> {
        let distinct: BTreeSet<&String> = texts.into_iter().collect();
        let values = Values::new(distinct.into_iter().cloned().collect());
        values.ok_or_else(|| {
            self.refused(
                format!(
                    "a category has at most {} values",
                    veil_relation::MOST_VALUES
                ),
                None,
            )
        })
    }
}

/// A condition on the texts of a category, as a public table.
pub(crate) fn decided(of: Expr, values: &Values, by: impl Fn(&str) -> bool) -> Expr {
    let table = values
        .texts()
        .iter()
        .map(|text| Value::Bool(by(text)))
        .collect();
    Expr::Lookup {
        of: Box::new(of),
        first: 0,
        kind: Kind::Bool,
        table,
    }
}

/// A category over a longer list.
pub(crate) fn recoded(of: Expr, from: &Values, to: &Values) -> Expr {
    if from == to {
        return of;
    }
    let index = |text: &String| {
        to.index(text)
            .map_or(Value::Null, |index| Value::Number(index.into()))
    };
    Expr::Lookup {
        of: Box::new(of),
        first: 0,
        kind: Kind::Category(to.clone()),
        table: from.texts().iter().map(index).collect(),
    }
}

/// Whether a text fits a pattern of LIKE: `%` is any text, `_` any character, and `\` takes the next character as it is.
pub(crate) fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut pattern = pattern.chars();
    // Which beginnings of the text the pattern so far fits, by their length.
    let mut fits = vec![false; text.len() + 1];
    fits[0] = true;
    while let Some(sign) = pattern.next() {
        if sign == '%' {
            let first = fits.iter().position(|fit| *fit).unwrap_or(fits.len());
            fits[first..].fill(true);
            continue;
        }
        let exact = if sign == '\\' {
            pattern.next()
        } else {
            Some(sign)
        };
        let any = sign == '_';
        for length in (1..fits.len()).rev() {
            fits[length] = fits[length - 1] && (any || exact == Some(text[length - 1]));
        }
        fits[0] = false;
    }
    fits[text.len()]
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn patterns() {
        for (text, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "a_c"),
            ("a%", "a\\%"),
            ("äb", "_b"),
            ("aab", "%ab"),
        ] {
            assert!(like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [
            ("", "_"),
            ("abc", "ab"),
            ("ab", "a\\%"),
            ("abc", "b%"),
            ("abc", "A%"),
            ("special packages", "%x%"),
        ] {
            assert!(!like(text, pattern), "{text} {pattern}");
        }
        assert!(like("the special, rare requests", "%special%requests%"));
    }
}
