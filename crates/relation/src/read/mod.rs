//! Reads the canonical text.

mod models;
mod plan;

use std::collections::BTreeSet;

use veil_learn::network::NetworkError;
use veil_numeric::{Function, Range};

use crate::calendar;
use crate::expr::{Arithmetic, Comparison, DatePart, Expr, Literal};
use crate::forest::{ForestError, Output};
use crate::kept::{Bucket, Kept, OpenSize};
use crate::kind::{Kind, Type, Value, Values};
use crate::models::Trained;
use crate::place::At;
use crate::plan::{Program, Step};
use crate::schema::{Column, ColumnId, Consent, First, Operation, Origin, Reveal, Table};
use crate::sexp::Sexp;
pub(crate) use plan::all;
use plan::plan;

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text is no nested list.
    #[error("line {line}: {what}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A list is not what stands in its place.
    #[error("`{found}` is no {wanted}")]
    Unexpected {
        /// What is there, shortened.
        found: String,
        /// What should be there.
        wanted: &'static str,
    },
    /// A model that is none.
    #[error(transparent)]
    Model(ForestError),
    /// A network that is none.
    #[error(transparent)]
    Network(NetworkError),
    /// The text has the meaning of a program in another form than the canonical one.
    #[error("the text is not in the canonical form")]
    NotCanonical,
}

type Result<T> = std::result::Result<T, ReadError>;

impl Program {
    /// Reads a program from its canonical text. The program is one in form; [`Program::check`] looks at its types.
    ///
    /// # Errors
    /// [`ReadError`], also if the text differs from what is written for the program, be it by white space.
    pub fn read(text: &str) -> Result<Self> {
        let mut whole = Sexp::read(text).map_err(|wrong| ReadError::Malformed {
            line: wrong.line,
            what: wrong.what,
        })?;
        let mut program = Self {
            tables: Vec::new(),
            steps: Vec::new(),
        };
        let models = models::tagged(tagged(&whole, "program")?)?;
        models::resolve(&mut whole, &models)?;
        for item in tagged(&whole, "program")? {
            match head(item) {
                Some("model" | "network") => {}
                Some("table") => program.tables.push(table(item)?),
                _ => match tagged(item, "step")? {
                    [name, of] => program.steps.push(Step {
                        name: quoted(name)?,
                        plan: plan(of)?,
                        keep: None,
                        at: At::default(),
                    }),
                    [name, keep, of] => program.steps.push(Step {
                        name: quoted(name)?,
                        plan: plan(of)?,
                        keep: Some(kept(keep)?),
                        at: At::default(),
                    }),
                    _ => return Err(unexpected(item, "step")),
                },
            }
        }
        if program.to_string() != text {
            return Err(ReadError::NotCanonical);
        }
        Ok(program)
    }
}

pub(crate) fn unexpected(found: &Sexp, wanted: &'static str) -> ReadError {
    let found = found.line().chars().take(60).collect();
    ReadError::Unexpected { found, wanted }
}

pub(crate) fn head(item: &Sexp) -> Option<&str> {
    match item {
        Sexp::List(items) => match items.first() {
            Some(Sexp::Word(word)) => Some(word),
            _ => None,
        },
        _ => None,
    }
}

/// What follows the head of a list.
pub(crate) fn tagged<'a>(item: &'a Sexp, tag: &'static str) -> Result<&'a [Sexp]> {
    match item {
        Sexp::List(items) if head(item) == Some(tag) => Ok(&items[1..]),
        _ => Err(unexpected(item, tag)),
    }
}

pub(crate) fn items(item: &Sexp) -> Result<&[Sexp]> {
    match item {
        Sexp::List(items) => Ok(items),
        _ => Err(unexpected(item, "list")),
    }
}

pub(crate) fn quoted(item: &Sexp) -> Result<String> {
    match item {
        Sexp::Text(text) => Ok(text.clone()),
        _ => Err(unexpected(item, "quoted text")),
    }
}

pub(crate) fn word(item: &Sexp) -> Result<&str> {
    match item {
        Sexp::Word(word) => Ok(word),
        _ => Err(unexpected(item, "word")),
    }
}

pub(crate) fn number<T: std::str::FromStr>(item: &Sexp) -> Result<T> {
    word(item)?.parse().map_err(|_| unexpected(item, "number"))
}

fn column_id(item: &Sexp) -> Result<ColumnId> {
    let digits = word(item)?
        .strip_prefix('#')
        .and_then(|digits| digits.parse().ok());
    digits
        .map(ColumnId)
        .ok_or_else(|| unexpected(item, "column"))
}

fn range(low: &Sexp, high: &Sexp) -> Result<Range> {
    Range::new(number(low)?, number(high)?).ok_or_else(|| unexpected(high, "end of the range"))
}

pub(crate) fn kind(item: &Sexp) -> Result<Kind> {
    let wrong = || unexpected(item, "kind");
    let Sexp::List(parts) = item else {
        return match word(item)? {
            "bool" => Ok(Kind::Bool),
            _ => Err(wrong()),
        };
    };
    let rest = parts.get(1..).ok_or_else(wrong)?;
    Ok(match (head(item).ok_or_else(wrong)?, rest) {
        ("integer", [low, high]) => Kind::Integer(range(low, high)?),
        ("decimal", [places, low, high]) => Kind::Decimal {
            places: number(places)?,
            units: range(low, high)?,
        },
        ("ratio", [places, low, high, least, most]) => Kind::Ratio {
            places: number(places)?,
            above: range(low, high)?,
            below: range(least, most)?,
        },
        ("date", [first, last]) => {
            let day = |item| calendar::parse(word(item)?).ok_or_else(|| unexpected(item, "date"));
            Kind::date(day(first)?, day(last)?).ok_or_else(wrong)?
        }
        ("category", texts) => {
            let texts = texts.iter().map(quoted).collect::<Result<_>>()?;
            Kind::Category(Values::new(texts).ok_or_else(wrong)?)
        }
        ("key", [bits]) => Kind::Key {
            bits: number(bits)?,
        },
        _ => return Err(wrong()),
    })
}

fn ty(item: &Sexp) -> Result<Type> {
    match tagged(item, "nullable") {
        Ok([of]) => Ok(Type::of(kind(of)?).or_null(true)),
        Ok(_) => Err(unexpected(item, "type")),
        Err(_) => kind(item).map(Type::of),
    }
}

fn value(item: &Sexp) -> Result<Value> {
    match word(item)? {
        "null" => Ok(Value::Null),
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        _ => number(item).map(Value::Number),
    }
}

fn atom(item: &Sexp, text: &str) -> Result<Expr> {
    if text.starts_with('#') {
        return column_id(item).map(|id| Expr::column(id.0));
    }
    let literal = match text {
        "true" => Literal::Bool(true),
        "false" => Literal::Bool(false),
        _ if text.contains('.') => {
            let places = text.len() - text.find('.').unwrap_or(text.len()) - 1;
            let units = text.replacen('.', "", 1).parse();
            Literal::Decimal {
                units: units.map_err(|_| unexpected(item, "decimal"))?,
                places: places as u32,
            }
        }
        _ => match calendar::parse(text) {
            Some(day) => Literal::Date(day),
            None => Literal::Integer(number(item)?),
        },
    };
    Ok(Expr::Literal(literal))
}

fn exprs(items: &[Sexp]) -> Result<Vec<Expr>> {
    items.iter().map(expr).collect()
}

fn boxed(item: &Sexp) -> Result<Box<Expr>> {
    expr(item).map(Box::new)
}

fn expr(item: &Sexp) -> Result<Expr> {
    let wrong = || unexpected(item, "expression");
    let parts = match item {
        Sexp::Word(text) => return atom(item, text),
        Sexp::Text(_) | Sexp::Model(_) => return Err(wrong()),
        Sexp::List(parts) => parts,
    };
    let tag = head(item).ok_or_else(wrong)?;
    let rest = &parts[1..];
    if let [a, b] = rest {
        if let Some(sign) = Comparison::ALL.into_iter().find(|sign| sign.sign() == tag) {
            return Ok(Expr::Compare(sign, boxed(a)?, boxed(b)?));
        }
        let signs = [Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul];
        if let Some(sign) = signs.into_iter().find(|sign| sign.sign() == tag) {
            return Ok(Expr::Arithmetic(sign, boxed(a)?, boxed(b)?));
        }
    }
    Ok(match (tag, rest) {
        ("value", [index, list]) => match kind(list)? {
            Kind::Category(values) => Expr::Literal(Literal::Category {
                index: number(index)?,
                values,
            }),
            _ => return Err(wrong()),
        },
        ("null", [of]) => Expr::Literal(Literal::Null(kind(of)?)),
        ("not", [a]) => Expr::Not(boxed(a)?),
        ("and", all) => Expr::And(exprs(all)?),
        ("or", all) => Expr::Or(exprs(all)?),
        ("is-null", [a]) => Expr::IsNull(boxed(a)?),
        ("/", [a, b]) => Expr::Divide(boxed(a)?, boxed(b)?),
        ("%", [a, by]) => Expr::Modulo(boxed(a)?, number(by)?),
        ("round", [a, places]) => Expr::Round(boxed(a)?, number(places)?),
        ("rescale", [a, places]) => Expr::Rescale(boxed(a)?, number(places)?),
        ("add-days", [a, b]) => Expr::AddDays(boxed(a)?, boxed(b)?),
        ("days-between", [a, b]) => Expr::DaysBetween(boxed(a)?, boxed(b)?),
        ("year", [a]) => Expr::Extract(DatePart::Year, boxed(a)?),
        ("month", [a]) => Expr::Extract(DatePart::Month, boxed(a)?),
        ("lookup", [of, result, first @ .., table]) if first.len() < 2 => Expr::Lookup {
            of: boxed(of)?,
            first: match first {
                // It is not written where it is 0.
                [first] => Some(number(first)?)
                    .filter(|first| *first != 0)
                    .ok_or_else(wrong)?,
                _ => 0,
            },
            kind: kind(result)?,
            table: items(table)?.iter().map(value).collect::<Result<_>>()?,
        },
        ("case", [branches @ .., otherwise]) if branches.len().is_multiple_of(2) => {
            let pairs = branches
                .chunks_exact(2)
                .map(|pair| Ok((expr(&pair[0])?, expr(&pair[1])?)));
            Expr::Case {
                branches: pairs.collect::<Result<_>>()?,
                otherwise: boxed(otherwise)?,
            }
        }
        (name, [a, places]) if Function::named(name).is_some() => {
            let function = Function::named(name).ok_or_else(wrong)?;
            Expr::Real(function, boxed(a)?, number(places)?)
        }
        ("predict", [Sexp::Model(Trained::Trees(model)), asked, of @ ..]) => Expr::Predict {
            model: model.clone(),
            output: output(asked)?,
            of: exprs(of)?,
        },
        ("coalesce", all) => Expr::Coalesce(exprs(all)?),
        ("nullif", [a, b]) => Expr::NullIf(boxed(a)?, boxed(b)?),
        _ => return Err(wrong()),
    })
}

fn output(item: &Sexp) -> Result<Output> {
    match item {
        Sexp::Word(word) if word == "value" => Ok(Output::Value),
        Sexp::Word(word) if word == "class" => Ok(Output::Class),
        other => match tagged(other, "score")? {
            [class] => Ok(Output::Score(number(class)?)),
            _ => Err(unexpected(other, "output of a model")),
        },
    }
}

fn kept(item: &Sexp) -> Result<Kept> {
    let (dataset, size) = match tagged(item, "keep")? {
        [dataset] => (dataset, None),
        [dataset, size] => (dataset, Some(size)),
        _ => return Err(unexpected(item, "keep")),
    };
    let size = size.map(|item| {
        let [bucket, why] = tagged(item, "open-size")? else {
            return Err(unexpected(item, "open-size"));
        };
        let bucket = match bucket {
            Sexp::Word(word) if word == "pow2" => Bucket::PowerOfTwo,
            other => match tagged(other, "round-up-to")? {
                [rows] => Bucket::RoundUpTo(number(rows)?),
                _ => return Err(unexpected(other, "round-up-to")),
            },
        };
        let why = quoted(why)?;
        Ok(OpenSize { bucket, why })
    });
    Ok(Kept {
        dataset: quoted(dataset)?,
        size: size.transpose()?,
    })
}

fn table(item: &Sexp) -> Result<Table> {
    let wrong = || unexpected(item, "table");
    let [name, origin, rows, rest @ ..] = tagged(item, "table")? else {
        return Err(wrong());
    };
    let origin = match (head(origin), items(origin)?) {
        (Some("owner"), [_, name]) => Origin::Owner(quoted(name)?),
        (Some("stored"), [_, name]) => Origin::Stored(quoted(name)?),
        (Some("first-of"), [_, name, of, opened]) => Origin::First(First {
            dataset: quoted(name)?,
            of: number(of)?,
            opened: number(opened)?,
        }),
        _ => return Err(unexpected(origin, "owner")),
    };
    let (capacity, padded) = match tagged(rows, "rows")? {
        [capacity] => (capacity, true),
        [capacity, exact] if matches!(word(exact), Ok("exact")) => (capacity, false),
        _ => return Err(unexpected(rows, "rows")),
    };
    let mut table = Table {
        name: quoted(name)?,
        origin,
        capacity: number(capacity)?,
        padded,
        columns: Vec::new(),
        sorted_by: Vec::new(),
        unique: Vec::new(),
    };
    for part in rest {
        match head(part) {
            Some("column") => table.columns.push(column(part)?),
            Some("sorted-by") if table.sorted_by.is_empty() => {
                table.sorted_by = all(part, "sorted-by", column_id)?;
            }
            _ => table.unique.push(all(part, "unique", column_id)?),
        }
    }
    Ok(table)
}

fn column(item: &Sexp) -> Result<Column> {
    let wrong = || unexpected(item, "column");
    let (name, of, consent) = match tagged(item, "column")? {
        [name, of] => (name, of, None),
        [name, of, consent] => (name, of, Some(consent)),
        _ => return Err(wrong()),
    };
    let consent = consent.map(|item| {
        let [may, reveal] = tagged(item, "consent")? else {
            return Err(wrong());
        };
        let operation = |item: &Sexp| {
            let word = word(item)?;
            let found = Operation::ALL
                .into_iter()
                .find(|operation| operation.word() == word);
            found.ok_or_else(|| unexpected(item, "operation"))
        };
        let [reveal] = tagged(reveal, "reveal")? else {
            return Err(wrong());
        };
        let level = word(reveal)?;
        let level = Reveal::ALL
            .into_iter()
            .find(|reveal| reveal.word() == level);
        Ok(Consent {
            may: all(may, "may", operation)?
                .into_iter()
                .collect::<BTreeSet<_>>(),
            reveal: level.ok_or_else(|| unexpected(reveal, "reveal"))?,
        })
    });
    Ok(Column {
        name: quoted(name)?,
        ty: ty(of)?,
        consent: consent.transpose()?,
    })
}
