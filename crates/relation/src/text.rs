//! The canonical text: what the plan hash covers and `explain` shows.
//!
//! Columns are `#0`, `#1`, … of the operator's input; integers are as they are, decimals have a point, dates are `1994-01-31`. Names and
//! owners are quoted. Two programs with one text are equal, and a text that is read is written the same again.

use std::fmt;

use crate::apply::Apply;
use crate::calendar;
use crate::expr::{DatePart, Expr, Literal};
use crate::fit::{Fit, FitKind};
use crate::forest;
use crate::kept::{Bucket, Kept};
use crate::kind::{Kind, Type, Value};
use crate::models::Trained;
use crate::networks::network;
use crate::plan::{
    Aggregate, AggregateFunction, Domain, Frame, Matches, Named, Overflow, Plan, Program, SortKey,
    Step, WindowFunction, Windowed,
};
use crate::schema::{Column, ColumnId, Origin, Table};
use crate::sexp::Sexp;
use veil_numeric::Range;

impl fmt::Display for Expr {
    /// The canonical text, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&expr(self).line())
    }
}

impl fmt::Display for Plan {
    /// The canonical text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plan(self).pretty())
    }
}

impl fmt::Display for Program {
    /// The canonical text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models = self.models();
        let models = models.iter().map(|model| match model {
            Trained::Trees(model) => forest::model(model),
            Trained::Network(model) => network(model),
        });
        let tables = self.tables.iter().map(table);
        let steps = self.steps.iter().map(
            |Step {
                 name,
                 plan: of,
                 keep,
                 at: _,
             }| {
                let step = [Sexp::Text(name.clone())].into_iter();
                let step = step.chain(keep.as_ref().map(kept));
                Sexp::list("step", step.chain([plan(of)]))
            },
        );
        f.write_str(&Sexp::list("program", models.chain(tables).chain(steps)).pretty())
    }
}

fn column_id(id: ColumnId) -> Sexp {
    Sexp::word(format_args!("#{}", id.0))
}

fn range(of: Range) -> [Sexp; 2] {
    [Sexp::word(of.min()), Sexp::word(of.max())]
}

fn day(of: i128) -> Sexp {
    let day = i32::try_from(of)
        .ok()
        .filter(|day| (calendar::FIRST_DAY..=calendar::LAST_DAY).contains(day));
    day.map_or_else(|| Sexp::word(of), |day| Sexp::word(calendar::show(day)))
}

pub(crate) fn decimal(units: i128, places: u32) -> Sexp {
    Sexp::word(digits(units, places))
}

/// A decimal with its point, which stands behind the digits of an integer.
pub(crate) fn digits(units: i128, places: u32) -> String {
    let digits = format!(
        "{:0>width$}",
        units.unsigned_abs(),
        width = places as usize + 1
    );
    let (whole, part) = digits.split_at(digits.len() - places as usize);
    format!("{}{whole}.{part}", if units < 0 { "-" } else { "" })
}

pub(crate) fn kind(of: &Kind) -> Sexp {
    match of {
        Kind::Integer(values) => Sexp::list("integer", range(*values)),
        Kind::Decimal { places, units } => {
            let rest = [Sexp::word(places)].into_iter().chain(range(*units));
            Sexp::list("decimal", rest)
        }
        Kind::Ratio {
            places,
            above,
            below,
        } => {
            let ranges = range(*above).into_iter().chain(range(*below));
            Sexp::list("ratio", [Sexp::word(places)].into_iter().chain(ranges))
        }
        Kind::Date(days) => Sexp::list("date", [day(days.min()), day(days.max())]),
        Kind::Category(values) => {
            Sexp::list("category", values.texts().iter().cloned().map(Sexp::Text))
        }
        Kind::Bool => Sexp::word("bool"),
        Kind::Key { bits } => Sexp::list("key", [Sexp::word(bits)]),
    }
}

fn ty(of: &Type) -> Sexp {
    if of.nullable {
        Sexp::list("nullable", [kind(&of.kind)])
    } else {
        kind(&of.kind)
    }
}

fn value(of: Value) -> Sexp {
    match of {
        Value::Null => Sexp::word("null"),
        Value::Bool(value) => Sexp::word(value),
        Value::Number(value) => Sexp::word(value),
        Value::Ratio(above, below) => Sexp::list("ratio", [Sexp::word(above), Sexp::word(below)]),
        Value::Key(key) => Sexp::list("key", [Sexp::word(key)]),
    }
}

pub(crate) fn expr(of: &Expr) -> Sexp {
    let operands = |head: &str| Sexp::list(head, of.operands().into_iter().map(expr));
    match of {
        Expr::Column(id, _) => column_id(*id),
        Expr::Literal(literal) => match literal {
            Literal::Integer(value) => Sexp::word(value),
            Literal::Decimal { units, places } => decimal(*units, *places),
            Literal::Date(of) => day(i128::from(*of)),
            Literal::Bool(value) => Sexp::word(value),
            Literal::Category { index, values } => {
                let list = kind(&Kind::Category(values.clone()));
                Sexp::list("value", [Sexp::word(index), list])
            }
            Literal::Null(of) => Sexp::list("null", [kind(of)]),
        },
        Expr::Not(_) => operands("not"),
        Expr::And(_) => operands("and"),
        Expr::Or(_) => operands("or"),
        Expr::Compare(sign, ..) => operands(sign.sign()),
        Expr::IsNull(_) => operands("is-null"),
        Expr::Arithmetic(sign, ..) => operands(sign.sign()),
        Expr::Divide(..) => operands("/"),
        Expr::Modulo(a, by) => Sexp::list("%", [expr(a), Sexp::word(by)]),
        Expr::Round(a, places) => Sexp::list("round", [expr(a), Sexp::word(places)]),
        Expr::Real(function, a, places) => {
            Sexp::list(function.name(), [expr(a), Sexp::word(places)])
        }
        Expr::Rescale(a, places) => Sexp::list("rescale", [expr(a), Sexp::word(places)]),
        Expr::AddDays(..) => operands("add-days"),
        Expr::DaysBetween(..) => operands("days-between"),
        Expr::Extract(DatePart::Year, _) => operands("year"),
        Expr::Extract(DatePart::Month, _) => operands("month"),
        Expr::Lookup {
            of,
            first,
            kind: result,
            table,
        } => {
            let table = Sexp::List(table.iter().copied().map(value).collect());
            let first = (*first != 0).then(|| Sexp::word(first));
            let head = [expr(of), kind(result)].into_iter().chain(first);
            Sexp::list("lookup", head.chain([table]))
        }
        Expr::Case { .. } => operands("case"),
        Expr::Coalesce(_) => operands("coalesce"),
        Expr::NullIf(..) => operands("nullif"),
        Expr::Predict { model, output, of } => {
            let name = Sexp::Text(model.name().to_owned());
            let head = [name, forest::output(*output)];
            Sexp::list("predict", head.into_iter().chain(of.iter().map(expr)))
        }
    }
}

fn named(of: &Named) -> Sexp {
    Sexp::List(vec![Sexp::Text(of.name.clone()), expr(&of.expr)])
}

fn sort_key(of: &SortKey) -> Sexp {
    let mut words = vec![Sexp::word(if of.descending { "desc" } else { "asc" })];
    words.push(Sexp::word(if of.nulls_first {
        "nulls-first"
    } else {
        "nulls-last"
    }));
    words.push(expr(&of.expr));
    Sexp::List(words)
}

fn aggregate(of: &Aggregate) -> Sexp {
    let name = of.function.name();
    let argument = of.function.argument().map(expr);
    let more = match &of.function {
        AggregateFunction::StddevSamp(_, places) => vec![Sexp::word(places)],
        AggregateFunction::PercentileDisc { above, below, .. } => {
            vec![Sexp::word(above), Sexp::word(below)]
        }
        _ => Vec::new(),
    };
    let call = Sexp::list(name, argument.into_iter().chain(more));
    let filter = of
        .filter
        .as_ref()
        .map(|filter| Sexp::list("where", [expr(filter)]));
    Sexp::List(
        [Sexp::Text(of.name.clone()), call]
            .into_iter()
            .chain(filter)
            .collect(),
    )
}

fn windowed(of: &Windowed) -> Sexp {
    let frame = |of: &Frame| match of {
        Frame::Whole => Sexp::word("whole"),
        Frame::Running => Sexp::word("running"),
        Frame::Moving(rows) => Sexp::list("moving", [Sexp::word(rows)]),
    };
    let more = match &of.function {
        WindowFunction::RowNumber | WindowFunction::Rank => None,
        WindowFunction::Lag(_, rows) | WindowFunction::Lead(_, rows) => Some(Sexp::word(rows)),
        WindowFunction::CountRows(of)
        | WindowFunction::Count(_, of)
        | WindowFunction::Sum(_, of)
        | WindowFunction::Avg(_, of)
        | WindowFunction::Min(_, of)
        | WindowFunction::Max(_, of) => Some(frame(of)),
    };
    let argument = of.function.argument().map(expr);
    let call = Sexp::list(of.function.name(), argument.into_iter().chain(more));
    Sexp::List(vec![Sexp::Text(of.name.clone()), call])
}

fn list<T>(head: &str, items: &[T], by: impl Fn(&T) -> Sexp) -> Sexp {
    Sexp::list(head, items.iter().map(by))
}

pub(crate) fn plan(of: &Plan) -> Sexp {
    match of {
        Plan::Scan { table, columns } => {
            let columns = columns.iter().copied().map(column_id);
            Sexp::list(
                "scan",
                [Sexp::Text(table.clone())].into_iter().chain(columns),
            )
        }
        Plan::Step { name } => Sexp::list("read", [Sexp::Text(name.clone())]),
        Plan::Filter { input, predicate } => Sexp::list("filter", [expr(predicate), plan(input)]),
        Plan::Project { input, columns } => {
            Sexp::list("project", [list("columns", columns, named), plan(input)])
        }
        Plan::UnionAll { inputs } => list("union-all", inputs, plan),
        Plan::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        } => {
            let matches = match matches {
                Matches::AtMost(rows) => Sexp::list(matches.name(), [Sexp::word(rows)]),
                _ => Sexp::word(matches.name()),
            };
            let on = list("on", on, |(a, b)| Sexp::List(vec![expr(a), expr(b)]));
            let condition = condition.as_ref().map(|c| Sexp::list("where", [expr(c)]));
            let head = [Sexp::word(kind.name()), matches, on]
                .into_iter()
                .chain(condition);
            Sexp::list("join", head.chain([plan(left), plan(right)]))
        }
        Plan::GroupBy {
            input,
            keys,
            aggregates,
            domain,
            min_rows,
        } => {
            let domain = match domain {
                Domain::Secret => Sexp::word(domain.name()),
                Domain::Public(groups) => Sexp::list(domain.name(), [Sexp::word(groups)]),
            };
            let keys = list("keys", keys, named);
            let aggregates = list("aggregates", aggregates, aggregate);
            let least = Sexp::list("min-rows", [Sexp::word(min_rows)]);
            Sexp::list("group-by", [domain, least, keys, aggregates, plan(input)])
        }
        Plan::Distinct { input } => Sexp::list("distinct", [plan(input)]),
        Plan::Sort { input, keys } => {
            Sexp::list("sort", [list("keys", keys, sort_key), plan(input)])
        }
        Plan::TopK { input, keys, rows } => Sexp::list(
            "top",
            [Sexp::word(rows), list("keys", keys, sort_key), plan(input)],
        ),
        Plan::Window {
            input,
            partition,
            order,
            functions,
        } => {
            let partition = list("partition", partition, expr);
            let order = list("keys", order, sort_key);
            let functions = list("functions", functions, windowed);
            Sexp::list("window", [partition, order, functions, plan(input)])
        }
        Plan::Trim {
            input,
            rows,
            overflow,
        } => {
            let overflow = match overflow {
                Overflow::Refuse => "refuse",
                Overflow::Flag => "flag",
                Overflow::Drop => "drop",
            };
            Sexp::list(
                "trim",
                [Sexp::word(rows), Sexp::word(overflow), plan(input)],
            )
        }
        Plan::Fit { input, model } => Sexp::list("fit", fit(model).chain([plan(input)])),
        Plan::Apply {
            input,
            model,
            weights,
        } => apply(model, weights.as_deref(), input),
        Plan::Open { input, to } => Sexp::list("open", [Sexp::Text(to.clone()), plan(input)]),
    }
}

fn apply(of: &Apply, weights: Option<&Plan>, input: &Plan) -> Sexp {
    let parts = [
        Sexp::Text(of.network.name().to_owned()),
        Sexp::list("places", [Sexp::word(of.places)]),
        Sexp::list("scores", [Sexp::word(of.scores)]),
        list("features", &of.features, expr),
    ];
    let weights = weights.map(|of| Sexp::list("weights", [plan(of)]));
    Sexp::list(
        "apply",
        parts.into_iter().chain(weights).chain([plan(input)]),
    )
}

fn fit(of: &Fit) -> impl Iterator<Item = Sexp> + use<> {
    let number = |name: &str, value: u32| Sexp::list(name, [Sexp::word(value)]);
    let mut all = vec![
        Sexp::word(of.kind.name()),
        number("steps", of.iterations),
        number("places", of.places),
        number("min-rows", of.min_rows),
        Sexp::list("features", of.features.iter().map(named)),
    ];
    match &of.kind {
        FitKind::Regression {
            family: _,
            target,
            ridge,
            errors,
            stepping,
        } => {
            let decimal = |name: &str, (units, places): (u64, u32)| {
                Sexp::list(name, [decimal(units.into(), places)])
            };
            all.extend([
                Sexp::list("target", [expr(target)]),
                decimal("ridge", *ridge),
                Sexp::list("errors", [Sexp::word(errors)]),
            ]);
            // Steps of gradient descent; without them they are Newton's.
            all.extend(stepping.as_ref().map(|of| {
                let batch = of.batch.map(|rows| number("batch", rows));
                let rest = [
                    decimal("rate", of.rate),
                    decimal("momentum", of.momentum),
                    number("limit", of.limit),
                ];
                Sexp::list("gradient", rest.into_iter().chain(batch))
            }));
        }
        FitKind::Components { count } => all.push(number("components", *count)),
        FitKind::Clusters { start } => {
            let centres = start.iter();
            all.extend(centres.map(|of| Sexp::list("start", of.iter().map(Sexp::word))));
        }
        FitKind::Tree { target, cuts } => {
            all.push(Sexp::list("target", [expr(target)]));
            let cuts = cuts.iter();
            all.extend(cuts.map(|of| Sexp::list("cuts", of.iter().map(Sexp::word))));
        }
    }
    all.into_iter()
}

fn kept(of: &Kept) -> Sexp {
    let size = of.size.as_ref().map(|size| {
        let bucket = match size.bucket {
            Bucket::RoundUpTo(rows) => Sexp::list("round-up-to", [Sexp::word(rows)]),
            Bucket::PowerOfTwo => Sexp::word("pow2"),
        };
        Sexp::list("open-size", [bucket, Sexp::Text(size.why.clone())])
    });
    let dataset = Sexp::Text(of.dataset.clone());
    Sexp::list("keep", [dataset].into_iter().chain(size))
}

fn table(of: &Table) -> Sexp {
    let ids = |head: &str, ids: &[ColumnId]| list(head, ids, |id| column_id(*id));
    let column = |column: &Column| {
        let consent = column.consent.as_ref().map(|consent| {
            let may = consent
                .may
                .iter()
                .map(|operation| Sexp::word(operation.word()));
            let reveal = Sexp::list("reveal", [Sexp::word(consent.reveal.word())]);
            Sexp::list("consent", [Sexp::list("may", may), reveal])
        });
        let head = [Sexp::Text(column.name.clone()), ty(&column.ty)];
        Sexp::list("column", head.into_iter().chain(consent))
    };
    let exact = (!of.padded).then(|| Sexp::word("exact"));
    let head = [
        Sexp::Text(of.name.clone()),
        match &of.origin {
            Origin::Owner(name) => Sexp::list("owner", [Sexp::Text(name.clone())]),
            Origin::Stored(name) => Sexp::list("stored", [Sexp::Text(name.clone())]),
            Origin::First(first) => {
                let words = [first.of, first.opened].map(Sexp::word);
                let dataset = Sexp::Text(first.dataset.clone());
                Sexp::list("first-of", [dataset].into_iter().chain(words))
            }
        },
        Sexp::list("rows", [Sexp::word(of.capacity)].into_iter().chain(exact)),
    ];
    let sorted = (!of.sorted_by.is_empty()).then(|| ids("sorted-by", &of.sorted_by));
    let claims = sorted
        .into_iter()
        .chain(of.unique.iter().map(|set| ids("unique", set)));
    Sexp::list(
        "table",
        head.into_iter()
            .chain(of.columns.iter().map(column))
            .chain(claims),
    )
}
