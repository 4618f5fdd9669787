//! Aggregates, window functions and other calls.

use sqlparser::ast::{
    self, DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Spanned, WindowType,
};
use sqlparser::tokenizer::Span;
use veil_relation::{
    AggregateFunction, Arithmetic, ColumnId, Comparison, Expr, Kind, Literal, PlanError, TypeError,
};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::models;
use crate::real;
use crate::rel::{Rel, folded, single};
use crate::scalar::Scope;
use crate::term::Term;
use crate::walk;

/// Places of a standard deviation, unless its argument has more.
const ROOT_PLACES: u32 = 6;

/// What the columns of a grouped relation are: first keys, then aggregates, then what `grouping` says of them.
pub(crate) struct Grouped {
    /// The relation before grouping.
    pub(crate) before: Rel,
    /// The keys over it.
    pub(crate) keys: Vec<Expr>,
    /// The aggregates over it, each with its filter.
    pub(crate) aggregates: Vec<(AggregateFunction, Option<Expr>)>,
    /// The keys of each call of `grouping`, by their places.
    pub(crate) groupings: Vec<Vec<usize>>,
}

/// The name of a function, in lower case.
pub(crate) fn name_of(call: &Function) -> String {
    single(&call.name).map_or_else(|| call.name.to_string(), folded)
}

/// Whether an expression is a call of an aggregate over groups.
pub(crate) fn is_aggregate(of: &ast::Expr) -> bool {
    match of {
        ast::Expr::Function(call) if call.over.is_none() => matches!(
            name_of(call).as_str(),
            "count"
                | "sum"
                | "avg"
                | "min"
                | "max"
                | "bool_or"
                | "bool_and"
                | "every"
                | "var_samp"
                | "variance"
                | "stddev_samp"
                | "stddev"
                | "percentile_disc"
                | "median"
        ),
        _ => false,
    }
}

/// Whether an expression is a call that says which keys a row is not grouped by.
pub(crate) fn is_grouping(of: &ast::Expr) -> bool {
    matches!(of, ast::Expr::Function(call) if name_of(call) == "grouping")
}

/// Whether an expression is a call of a window function.
pub(crate) fn is_window(of: &ast::Expr) -> bool {
    matches!(of, ast::Expr::Function(call) if call.over.is_some())
}

/// What a call has beside its name.
pub(crate) struct Call<'c> {
    pub(crate) name: String,
    /// `None` is the star.
    pub(crate) args: Vec<Option<&'c ast::Expr>>,
    pub(crate) distinct: bool,
    pub(crate) within: &'c [ast::OrderByExpr],
    pub(crate) filter: Option<&'c ast::Expr>,
    pub(crate) over: Option<&'c WindowType>,
}

impl Binder<'_> {
    /// The parts of a call, all of them looked at.
    pub(crate) fn parts<'c>(&self, call: &'c Function, at: Span) -> Result<Call<'c>, SqlError> {
        let Function {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            within_group,
            filter,
            null_treatment,
            over,
        } = call;
        let refused = |what: &str| {
            Err(self
                .source
                .refused(at, format!("{what} is not in the dialect"), None))
        };
        if single(name).is_none() || *uses_odbc_syntax || *parameters != FunctionArguments::None {
            return refused("this form of a call");
        }
        if null_treatment.is_some() {
            return refused("IGNORE NULLS and RESPECT NULLS");
        }
        let (mut distinct, mut list) = (false, Vec::new());
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => return refused("a subquery as an argument"),
            FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment,
                args,
                clauses,
            }) => {
                if !clauses.is_empty() {
                    return refused("a clause among arguments");
                }
                distinct = *duplicate_treatment == Some(DuplicateTreatment::Distinct);
                for arg in args {
                    match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => list.push(Some(expr)),
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => list.push(None),
                        _ => return refused("this form of an argument"),
                    }
                }
            }
        }
        Ok(Call {
            name: name_of(call),
            args: list,
            distinct,
            within: within_group,
            filter: filter.as_deref(),
            over: over.as_ref(),
        })
    }

    /// The column of a grouped relation that has the values of an expression.
    pub(crate) fn grouped_column(
        &mut self,
        grouped: &Grouped,
        of: &ast::Expr,
    ) -> Result<Option<ColumnId>, SqlError> {
        if is_aggregate(of) {
            let mut before = grouped.before.clone();
            let wanted = self.aggregate(&mut before, of)?;
            let found = grouped.aggregates.iter().position(|known| *known == wanted);
            return Ok(found.map(|at| ColumnId((grouped.keys.len() + at) as u32)));
        }
        if is_grouping(of) {
            let mut before = grouped.before.clone();
            let wanted = self.grouping(&mut before, of, &grouped.keys)?;
            let found = grouped.groupings.iter().position(|known| *known == wanted);
            let first = grouped.keys.len() + grouped.aggregates.len();
            return Ok(found.map(|at| ColumnId((first + at) as u32)));
        }
        let whole = !walk::any(of, |of| {
            is_aggregate(of) || is_grouping(of) || is_window(of) || walk::is_subquery(of)
        });
        if matches!(of, ast::Expr::Value(_)) || !whole || grouped.keys.is_empty() {
            return Ok(None);
        }
        let mut before = grouped.before.clone();
        match self.term(&mut Scope::rows(&mut before), of) {
            Ok(Term::Expr(expr, _)) => {
                let found = grouped.keys.iter().position(|key| *key == expr);
                Ok(found.map(|at| ColumnId(at as u32)))
            }
            // What is wrong with it is said where its parts are bound.
            _ => Ok(None),
        }
    }

    /// Binds a call of an aggregate, with its filter.
    pub(crate) fn aggregate(
        &mut self,
        rel: &mut Rel,
        of: &ast::Expr,
    ) -> Result<(AggregateFunction, Option<Expr>), SqlError> {
        let at = of.span();
        let ast::Expr::Function(call) = of else {
            return Err(self.source.refused(at, "an aggregate is a call", None));
        };
        let call = self.parts(call, at)?;
        let inner = call
            .args
            .iter()
            .flatten()
            .copied()
            .chain(call.filter)
            .chain(call.within.iter().map(|key| &key.expr));
        for part in inner {
            if walk::any(part, |of| is_aggregate(of) || is_window(of)) {
                return Err(self.source.refused(
                    part.span(),
                    "an aggregate stands in no other aggregate",
                    Some("aggregate in a subquery of FROM first"),
                ));
            }
        }
        let rows = rel.shape.capacity;
        let scope = &mut Scope::rows(rel);
        let filter = call
            .filter
            .map(|filter| self.condition(scope, filter))
            .transpose()?;
        if call.distinct
            && call.name != "count"
            && !matches!(
                call.name.as_str(),
                "min" | "max" | "bool_or" | "bool_and" | "every"
            )
        {
            let what = format!("{} of DISTINCT values is not in the dialect", call.name);
            return Err(self.source.refused(
                at,
                what,
                Some("take DISTINCT in a subquery of FROM, then aggregate"),
            ));
        }
        if !call.within.is_empty() && call.name != "percentile_disc" {
            return Err(self.source.refused(
                at,
                "WITHIN GROUP stands with percentile_disc only",
                None,
            ));
        }
        if let ("count", [None], false) = (call.name.as_str(), call.args.as_slice(), call.distinct)
        {
            return Ok((AggregateFunction::CountRows, filter));
        }
        let one = |args: &[Option<&ast::Expr>]| match args {
            [Some(_)] => Ok(()),
            _ => Err(self
                .source
                .refused(at, format!("{} takes one argument", call.name), None)),
        };
        one(&call.args)?;
        let arg = call
            .args
            .first()
            .copied()
            .flatten()
            .expect("one argument was counted");
        let (expr, ty) = self.value(scope, arg)?;
        let function = match call.name.as_str() {
            "count" if call.distinct => AggregateFunction::CountDistinct(expr),
            "count" => AggregateFunction::Count(expr),
            "sum" => AggregateFunction::Sum(expr),
            "avg" => AggregateFunction::Avg(expr),
            "min" => AggregateFunction::Min(expr),
            "max" => AggregateFunction::Max(expr),
            "bool_or" => AggregateFunction::BoolOr(expr),
            "bool_and" | "every" => AggregateFunction::BoolAnd(expr),
            "var_samp" | "variance" => AggregateFunction::VarSamp(expr),
            "stddev_samp" | "stddev" => {
                let places = ty.kind.number().map_or(0, |(places, _)| places);
                AggregateFunction::StddevSamp(expr, places.max(ROOT_PLACES))
            }
            "median" => AggregateFunction::PercentileDisc {
                of: expr,
                above: 1,
                below: 2,
            },
            _ => {
                let [key] = call.within else {
                    return Err(self.source.refused(
                        at,
                        "percentile_disc orders by one expression",
                        Some("write percentile_disc(0.9) WITHIN GROUP (ORDER BY …)"),
                    ));
                };
                let key_at = key.expr.span();
                let of = self.value(scope, &key.expr)?.0;
                let key = self.sort_key(key, of)?;
                if key.descending || key.nulls_first {
                    return Err(self.source.refused(
                        key_at,
                        "percentile_disc orders ascending",
                        None,
                    ));
                }
                let (above, below) = match expr {
                    Expr::Literal(Literal::Integer(whole @ 0..=1)) => (whole as u32, 1),
                    Expr::Literal(Literal::Decimal {
                        units,
                        places: places @ 0..=9,
                    }) if (0..=10_i128.pow(places)).contains(&units) => {
                        (units as u32, 10_u32.pow(places))
                    }
                    _ => {
                        return Err(self.source.refused(
                            arg.span(),
                            "the fraction is a decimal literal from 0 to 1",
                            None,
                        ));
                    }
                };
                AggregateFunction::PercentileDisc {
                    of: key.expr,
                    above,
                    below,
                }
            }
        };
        // Ranges are looked at here, where the place of the call is known; the rest where all is.
        if let Err(PlanError::Range(range)) = function.ty(&scope.rel.types(), rows) {
            let problem = Problem::Type(TypeError::Range(range));
            return Err(self.source.error(at, problem));
        }
        Ok((function, filter))
    }

    /// Binds a call that is no aggregate of groups.
    pub(crate) fn call(
        &mut self,
        scope: &mut Scope<'_>,
        call: &Function,
        at: Span,
    ) -> Result<Term, SqlError> {
        let whole = ast::Expr::Function(call.clone());
        if is_aggregate(&whole) {
            return Err(self.source.refused(
                at,
                "an aggregate stands in SELECT, HAVING and ORDER BY only",
                None,
            ));
        }
        if is_window(&whole) {
            return Err(self.source.refused(
                at,
                "a window function stands in SELECT and ORDER BY only",
                Some("filter by it in a query over a subquery of FROM"),
            ));
        }
        let call = self.parts(call, at)?;
        match call.name.as_str() {
            "grouping" => {
                let what =
                    "grouping stands in SELECT, HAVING and ORDER BY of a query with GROUP BY only";
                return Err(self.source.refused(at, what, None));
            }
            "corr" | "covar_samp" | "covar_pop" => {
                let what = format!("{} is not in the dialect", call.name);
                let instead = "open count(*), sum(x), sum(y), sum(x * y), sum(x * x) and sum(y * y) of rows that have both, of which it is made exactly";
                return Err(self.source.refused(at, what, Some(instead)));
            }
            _ => {}
        }
        if call.distinct || !call.within.is_empty() || call.filter.is_some() {
            return Err(self.source.refused(
                at,
                "DISTINCT, WITHIN GROUP and FILTER stand in aggregates only",
                None,
            ));
        }
        let args = call.args.iter().map(|arg| match arg {
            Some(arg) => self.term(scope, arg),
            None => Err(self.source.refused(at, "* stands in count(*) only", None)),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let terms = crate::term::Terms {
            source: self.source,
            at,
        };
        if let (Some(function), [of]) = (real::named(&call.name), args.as_slice()) {
            let (of, ty) = terms.typed(of.clone())?;
            return self.checked(real::of(function, of, &ty.kind), scope, at);
        }
        if models::applies(&call.name) {
            return self.applied(scope, &terms, &call.name, args);
        }
        let expr = match (call.name.as_str(), <[Term; 2]>::try_from(args.clone())) {
            ("coalesce", _) if !args.is_empty() => {
                let parts = terms.unified(args)?;
                Expr::Coalesce(parts.into_iter().map(|(expr, _)| expr).collect())
            }
            ("nullif", Ok([a, b])) => match terms.compare(Comparison::Eq, a.clone(), b.clone())? {
                Expr::Compare(_, a, b) => Expr::NullIf(a, b),
                // Null where a condition on a public list is true.
                condition => {
                    let (a, ty) = terms.typed(a)?;
                    let null = Box::new(Expr::Literal(Literal::Null(ty.kind)));
                    let kept =
                        Expr::Not(Box::new(Expr::Coalesce(vec![condition, Expr::bool(false)])));
                    Expr::Case {
                        branches: vec![(kept, a)],
                        otherwise: null,
                    }
                }
            },
            ("round", Ok([number, places])) => match terms.typed(places)?.0 {
                Expr::Literal(Literal::Integer(places))
                    if (0..=i128::from(veil_relation::MOST_PLACES)).contains(&places) =>
                {
                    real::rounded(&terms, terms.typed(number)?.0, places as u32)?
                }
                _ => {
                    return Err(self.source.refused(
                        at,
                        "round takes a public number of places from 0 on",
                        None,
                    ));
                }
            },
            ("round", Err(mut args)) if args.len() == 1 => {
                let (number, _) = terms.typed(args.remove(0))?;
                real::rounded(&terms, number, 0)?
            }
            ("now" | "current_date" | "current_timestamp" | "random", _) => {
                let what = format!("{} has another value at each call", call.name);
                return Err(self.source.refused(
                    at,
                    what,
                    Some("write the date: DATE '2025-03-14'"),
                ));
            }
            ("greatest" | "least", _) if !args.is_empty() => {
                let greatest = call.name == "greatest";
                let parts = terms.unified(args)?;
                real::extreme(greatest, parts)
            }
            ("power" | "pow", Ok([base, exponent])) => {
                let base = terms.typed(base)?.0;
                real::power(&terms, base, &terms.typed(exponent)?.0)?
            }
            ("abs", _) if args.len() == 1 => {
                let zero = Term::literal(Literal::Integer(0));
                let minus = Expr::arithmetic(
                    Arithmetic::Sub,
                    Expr::integer(0),
                    terms.typed(args[0].clone())?.0,
                );
                let number = self.checked(minus, scope, at)?;
                let parts = terms.unified(vec![args[0].clone(), number, zero])?;
                real::absolute(&parts)
            }
            (name, _)
                if real::named(name).is_some()
                    || matches!(name, "coalesce" | "nullif" | "round" | "greatest" | "least")
                    || matches!(name, "power" | "pow" | "abs") =>
            {
                let what = format!("{} takes other arguments", call.name);
                return Err(self.source.refused(at, what, None));
            }
            _ => {
                let mut functions = self.functions.iter();
                if let Some(function) = functions.find(|function| function.name == call.name) {
                    return self.tabulated(scope, &terms, function, args);
                }
                let name = call.name;
                return Err(self.source.error(at, Problem::NoFunction { name }));
            }
        };
        self.checked(expr, scope, at)
    }

    /// A name for a column that has none: that of its function, as in PostgreSQL.
    pub(crate) fn default_name(of: &ast::Expr, place: usize) -> String {
        match of {
            ast::Expr::Identifier(name) => folded(name),
            ast::Expr::CompoundIdentifier(parts) => parts.last().map(folded).unwrap_or_default(),
            ast::Expr::Function(call) => name_of(call),
            ast::Expr::Nested(inner) => Self::default_name(inner, place),
            _ => format!("column{place}"),
        }
    }

    /// A quotient as it is opened: rounded to as many places as its parts have, and at least six.
    pub(crate) fn rounded(expr: Expr, kind: &Kind) -> Expr {
        match kind {
            Kind::Ratio { places, .. } => Expr::Round(Box::new(expr), (*places).max(ROOT_PLACES)),
            _ => expr,
        }
    }
}
