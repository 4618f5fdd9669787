//! Functions of a job that are given by their values.

use std::collections::BTreeSet;

use sqlparser::ast::{self, SelectItem, SetExpr};
use veil_relation::{Bounds, Expr, Kind, MOST_POINTS, Range, Type, Value, is_name};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::group::{is_aggregate, name_of};
use crate::models;
use crate::real;
use crate::scalar::Scope;
use crate::source::Source;
use crate::term::{Term, Terms};

/// Largest absolute value of a result or of an argument, in units: that of a cell.
const LARGEST: i128 = 1 << 62;

/// Most decimal places of a result or of an argument: those of a cell.
const MOST_PLACES: u32 = 18;

/// Other functions than aggregates and those without exact values, and words that SQL has a form of its own for.
const OTHERS: &[&str] = &[
    "abs",
    "all",
    "any",
    "array",
    "between",
    "case",
    "cast",
    "ceil",
    "coalesce",
    "convert",
    "corr",
    "covar_pop",
    "covar_samp",
    "current_date",
    "current_timestamp",
    "exists",
    "extract",
    "floor",
    "greatest",
    "grouping",
    "interval",
    "lag",
    "lead",
    "least",
    "not",
    "now",
    "nullif",
    "overlay",
    "position",
    "pow",
    "power",
    "random",
    "rank",
    "round",
    "row",
    "row_number",
    "some",
    "stddev_pop",
    "substring",
    "trim",
    "try_cast",
    "values",
];

/// A public function of one number or of one category, given by its values. Queries of a job call it by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFunction {
    /// Its name in SQL.
    pub name: String,
    /// What it has values for.
    pub of: Arguments,
    /// Decimal places of the values; without any, they are integers.
    pub places: u32,
    /// The values in units of `10^-places`, one for each argument: 1 to [`MOST_POINTS`].
    pub values: Vec<i128>,
}

/// The arguments of a [`TableFunction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Numbers that are a unit of `10^-places` apart.
    Numbers {
        /// The first, in units.
        first: i128,
        /// Decimal places.
        places: u32,
    },
    /// Texts of a category, in the order of the values.
    Texts(Vec<String>),
}

/// Whether SQL reads a name as another thing than a call of an unknown function.
fn is_taken(name: &str) -> bool {
    if OTHERS.contains(&name) || real::named(name).is_some() || models::applies(name) {
        return true;
    }
    // A word that cannot stand behind a value as its name is one of SQL's.
    let text = format!("SELECT {name}(x), 1 {name} FROM t");
    let Ok((_, query)) = Source::parse("", &text) else {
        return true;
    };
    let SetExpr::Select(select) = &*query.body else {
        return true;
    };
    match select.projection.as_slice() {
        [
            SelectItem::UnnamedExpr(of @ ast::Expr::Function(call)),
            SelectItem::ExprWithAlias { .. },
        ] => name_of(call) != name || is_aggregate(of),
        _ => true,
    }
}

impl TableFunction {
    /// Checks names, numbers and lengths.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn check(&self) -> Result<(), &'static str> {
        if !is_name(&self.name) {
            return Err("the name of a function has lower-case letters, digits and `_`");
        }
        if is_taken(&self.name) {
            return Err("SQL has a function or a word of this name; choose another one");
        }
        if self.values.is_empty() || self.values.len() > MOST_POINTS {
            return Err("a function has 1 to 4096 values");
        }
        let fits = |units: &i128| (-LARGEST..=LARGEST).contains(units);
        if !self.values.iter().all(fits) {
            return Err("a value of a function has at most 62 bits");
        }
        let places = match &self.of {
            Arguments::Numbers { first, places } => {
                if !fits(first) || !fits(&(first + self.values.len() as i128 - 1)) {
                    return Err("an argument of a function has at most 62 bits");
                }
                *places
            }
            Arguments::Texts(texts) => {
                if texts.len() != self.values.len() {
                    return Err("a function of texts has one value for each of them");
                }
                let distinct: BTreeSet<&String> = texts.iter().collect();
                if distinct.len() != texts.len() {
                    return Err("a function of texts has each of them once");
                }
                0
            }
        };
        if places.max(self.places) > MOST_PLACES {
            return Err("numbers of a function have at most 18 decimal places");
        }
        Ok(())
    }

    /// The kind of its values.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let hull = |range: Range, value: &i128| range.hull(Range::point(*value));
        let first = Range::point(self.values.first().copied().unwrap_or(0));
        number(self.places, self.values.iter().fold(first, hull))
    }

    /// What it takes and gives, as a sentence of a report has it.
    #[must_use]
    pub fn about(&self) -> String {
        let of = match &self.of {
            Arguments::Numbers { first, places } => {
                let last = first + self.values.len() as i128 - 1;
                let range = Range::point(*first).hull(Range::point(last));
                Bounds(&number(*places, range)).to_string()
            }
            Arguments::Texts(texts) => match texts.len() {
                1 => "1 text".to_owned(),
                texts => format!("{texts} texts"),
            },
        };
        format!("`{}` of {of}: {}", self.name, Bounds(&self.kind()))
    }

    fn table(&self, of: Expr, first: i128, values: impl IntoIterator<Item = i128>) -> Expr {
        Expr::Lookup {
            of: Box::new(of),
            first,
            kind: self.kind(),
            table: values.into_iter().map(Value::Number).collect(),
        }
    }
}

/// Integers, or decimals.
const fn number(places: u32, units: Range) -> Kind {
    match places {
        0 => Kind::Integer(units),
        places => Kind::Decimal { places, units },
    }
}

impl Binder<'_> {
    /// A call of a function of the job.
    pub(crate) fn tabulated(
        &self,
        scope: &Scope<'_>,
        terms: &Terms<'_>,
        function: &TableFunction,
        args: Vec<Term>,
    ) -> Result<Term, SqlError> {
        let (name, at) = (&function.name, terms.at);
        let refused = |what: String, instead| Err(self.source.refused(at, what, instead));
        let [arg] = match <[Term; 1]>::try_from(args) {
            Ok(arg) => arg,
            Err(args) => {
                let found = args.len();
                let what = format!("`{name}` is a function of one argument, and not of {found}");
                return refused(what, None);
            }
        };
        let (of, Type { kind, .. }) = terms.typed(arg)?;
        let expr = match (&function.of, &kind) {
            (Arguments::Texts(texts), Kind::Category(values)) => {
                let value = |text: &String| {
                    let at = texts.iter().position(|known| known == text);
                    at.and_then(|at| function.values.get(at).copied())
                };
                let found: Option<Vec<i128>> = values.texts().iter().map(value).collect();
                let Some(found) = found else {
                    let missing = values.texts().iter().find(|text| value(text).is_none());
                    let missing = missing.map_or("", String::as_str);
                    let what = format!("`{name}` has no value for '{missing}', which x may be");
                    return refused(what, Some("give it one, or write CASE for the others"));
                };
                function.table(of, 0, found)
            }
            (Arguments::Texts(_), other) => {
                let what = format!("`{name}` takes a category, and not a {other}");
                return refused(what, None);
            }
            (Arguments::Numbers { .. }, Kind::Ratio { .. }) => {
                let what = format!("`{name}` takes a number, and x is a quotient");
                return refused(what, Some("write round(x, places) in the place of x"));
            }
            (Arguments::Numbers { first, places }, kind) => {
                let Some((has, _)) = kind.number() else {
                    let what = format!("`{name}` takes a number, and not a {kind}");
                    return refused(what, None);
                };
                if has > *places {
                    let what = format!(
                        "`{name}` takes numbers of at most {places} decimal places, and x has {has}"
                    );
                    return refused(what, Some("write round(x, places) in the place of x"));
                }
                let of = match has {
                    has if has < *places => Expr::Rescale(Box::new(of), *places),
                    _ => of,
                };
                let (of, ty) = terms.typed(self.checked(of, scope, at)?)?;
                let last = first + function.values.len() as i128 - 1;
                let range = ty.kind.range().unwrap_or(Range::point(*first));
                if range.min() < *first || range.max() > last {
                    let known = Range::point(*first).hull(Range::point(last));
                    return Err(self.source.error(at, beyond(name, *places, known, range)));
                }
                function.table(of, *first, function.values.iter().copied())
            }
        };
        self.checked(expr, scope, at)
    }
}

/// The refusal of an argument that may be where a function has no value, with what to write.
fn beyond(name: &str, places: u32, known: Range, found: Range) -> Problem {
    let shown = |range: Range| Bounds(&number(places, range)).to_string();
    let (low, high) = (
        shown(Range::point(known.min())),
        shown(Range::point(known.max())),
    );
    let (below, above) = (found.min() < known.min(), found.max() > known.max());
    let within = match (below, above) {
        (true, true) => format!("least(greatest(x, {low}), {high})"),
        (true, false) => format!("greatest(x, {low})"),
        _ => format!("least(x, {high})"),
    };
    Problem::NoValue {
        name: name.to_owned(),
        known: shown(known),
        found: shown(found),
        instead: format!("write {within} in the place of x, or declare narrower ranges"),
    }
}
