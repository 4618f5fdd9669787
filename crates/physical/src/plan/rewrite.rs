//! Aggregates that are made of other operators: counts of different values, and quantiles.

use veil_relation::{
    Aggregate, AggregateFunction, Arithmetic, Comparison, Domain, Expr, Frame, JoinKind, Kind,
    Literal, Matches, Named, Plan, Shape, SortKey, WindowFunction, Windowed,
};

use super::{PhysicalError, Planner};

/// A group by, taken apart.
#[derive(Clone)]
struct Grouping<'a> {
    input: &'a Plan,
    keys: &'a [Named],
    aggregates: &'a [Aggregate],
    domain: Domain,
    min_rows: u32,
}

impl Planner<'_> {
    /// Another plan with the same rows, of a group by with an aggregate that is made of other operators.
    pub(super) fn rewritten(&self, plan: &Plan) -> Result<Option<Plan>, PhysicalError> {
        let Plan::GroupBy {
            input,
            keys,
            aggregates,
            domain,
            min_rows,
        } = plan
        else {
            return Ok(None);
        };
        let of = Grouping {
            input,
            keys,
            aggregates,
            domain: *domain,
            min_rows: *min_rows,
        };
        let place = |wanted: fn(&AggregateFunction) -> bool| {
            aggregates
                .iter()
                .position(|aggregate| wanted(&aggregate.function))
        };
        if let Some(at) = place(|of| matches!(of, AggregateFunction::PercentileDisc { .. })) {
            return Ok(Some(quantile(&of, at, &self.shape(input)?)?));
        }
        match place(|of| matches!(of, AggregateFunction::CountDistinct(_))) {
            Some(at) => Ok(Some(self.distinct_count(&of, at)?)),
            None => Ok(None),
        }
    }

    /// Groups without one count of different values, joined with the counts of groups of different rows.
    fn distinct_count(&self, of: &Grouping<'_>, at: usize) -> Result<Plan, PhysicalError> {
        let aggregate = &of.aggregates[at];
        let Some(argument) = aggregate.function.argument() else {
            return Err(PhysicalError::Circuit(
                "a count of different values is of none".into(),
            ));
        };
        let width = of.keys.len() as u32;
        let null = Expr::IsNull(Box::new(argument.clone()));
        let there = Expr::Not(Box::new(null));
        let counted = Expr::all(aggregate.filter.iter().cloned().chain([there]).collect());
        let mut columns = of.keys.to_vec();
        columns.push(Named {
            name: "value".into(),
            expr: argument.clone(),
        });
        let different = Plan::Distinct {
            input: Box::new(Plan::Project {
                input: Box::new(Plan::Filter {
                    input: Box::new(of.input.clone()),
                    predicate: counted,
                }),
                columns,
            }),
        };
        let named = |(k, key): (usize, &Named)| Named {
            name: key.name.clone(),
            expr: Expr::column(k as u32),
        };
        let keys: Vec<Named> = of.keys.iter().enumerate().map(named).collect();
        let counts = Plan::GroupBy {
            input: Box::new(different),
            keys: keys.clone(),
            aggregates: vec![Aggregate {
                name: aggregate.name.clone(),
                function: AggregateFunction::CountRows,
                filter: None,
            }],
            domain: of.domain,
            min_rows: 0,
        };
        let mut others = of.aggregates.to_vec();
        others.remove(at);
        let rest = Plan::GroupBy {
            input: Box::new(of.input.clone()),
            keys: of.keys.to_vec(),
            aggregates: others,
            domain: of.domain,
            min_rows: of.min_rows,
        };
        let shape = self.shape(&rest)?;
        let on = keys.iter().enumerate().zip(&shape.fields);
        let on: Result<Vec<_>, _> = on
            .map(|((k, _), field)| keys_on(k as u32, &field.ty))
            .collect();
        let joined = Plan::Join {
            kind: JoinKind::Left,
            left: Box::new(rest),
            right: Box::new(counts),
            on: on?.concat(),
            condition: None,
            matches: Matches::UniqueRight,
        };
        // Keys, the other aggregates, keys again, the count.
        let left = width + of.aggregates.len() as u32 - 1;
        let names = of.keys.iter().map(|key| &key.name);
        let names = names.chain(of.aggregates.iter().map(|aggregate| &aggregate.name));
        let here = width + at as u32;
        let columns = names.zip(0..).map(|(name, k)| Named {
            name: name.clone(),
            expr: match k {
                k if k == here => {
                    let count = Expr::column(left + width);
                    Expr::Coalesce(vec![count, Expr::integer(0)])
                }
                k if k > here => Expr::column(k - 1),
                k => Expr::column(k),
            },
        });
        Ok(Plan::Project {
            input: Box::new(joined),
            columns: columns.collect(),
        })
    }
}

/// Pairs of keys that are equal where column k of both sides is, nulls being equal.
fn keys_on(k: u32, ty: &veil_relation::Type) -> Result<Vec<(Expr, Expr)>, PhysicalError> {
    let column = Expr::column(k);
    if !ty.nullable {
        return Ok(vec![(column.clone(), column)]);
    }
    let least = ty.kind.range().map_or(0, veil_relation::Range::min);
    let value = match &ty.kind {
        Kind::Bool => veil_relation::Value::Bool(false),
        _ => veil_relation::Value::Number(least),
    };
    let some = Literal::of(value, &ty.kind).ok_or(PhysicalError::NotYet {
        what: "counts of different values in groups by a key that may be null",
        instead: "leave rows without a key out",
    })?;
    let filled = Expr::Coalesce(vec![column.clone(), Expr::Literal(some)]);
    let null = Expr::IsNull(Box::new(column));
    Ok(vec![(filled.clone(), filled), (null.clone(), null)])
}

/// The value whose number among those of its group, in their order, is that of the quantile: the largest of those that are it.
fn quantile(of: &Grouping<'_>, at: usize, input: &Shape) -> Result<Plan, PhysicalError> {
    let aggregate = &of.aggregates[at];
    let AggregateFunction::PercentileDisc {
        of: argument,
        above,
        below,
    } = &aggregate.function
    else {
        return Err(PhysicalError::Circuit("a quantile is none".into()));
    };
    let kind = argument.ty(&input.types())?.kind;
    let null = || Box::new(Expr::Literal(Literal::Null(kind.clone())));
    let value = match &aggregate.filter {
        None => argument.clone(),
        Some(filter) => Expr::Case {
            branches: vec![(filter.clone(), argument.clone())],
            otherwise: null(),
        },
    };
    let partition = of.keys.iter().map(|key| key.expr.clone()).collect();
    let order = vec![SortKey::ascending(value.clone())];
    let width = input.fields.len() as u32;
    let functions = vec![
        Windowed {
            name: "number".into(),
            function: WindowFunction::RowNumber,
        },
        Windowed {
            name: "values".into(),
            function: WindowFunction::Count(value.clone(), Frame::Whole),
        },
    ];
    let numbered = Plan::Window {
        input: Box::new(of.input.clone()),
        partition,
        order,
        functions,
    };
    // Number i is ⌈above/below · count⌉ if below · (i − 1) < above · count ≤ below · i; at least it is 1.
    let (number, values) = (Expr::column(width), Expr::column(width + 1));
    let times = |of: Expr, by: u32| Expr::arithmetic(Arithmetic::Mul, of, Expr::integer(by.into()));
    let goal = times(values, *above);
    let before = Expr::arithmetic(Arithmetic::Sub, number.clone(), Expr::integer(1));
    let not_below = Expr::compare(Comparison::Lt, times(before, *below), goal.clone());
    let not_above = Expr::compare(Comparison::Le, goal, times(number.clone(), *below));
    let first = Expr::compare(Comparison::Eq, number, Expr::integer(1));
    let here = Expr::all(vec![Expr::Or(vec![not_below, first]), not_above]);
    let chosen = Expr::Case {
        branches: vec![(here, value)],
        otherwise: null(),
    };
    let mut aggregates = of.aggregates.to_vec();
    aggregates[at] = Aggregate {
        name: aggregate.name.clone(),
        function: AggregateFunction::Max(chosen),
        filter: None,
    };
    Ok(Plan::GroupBy {
        input: Box::new(numbered),
        keys: of.keys.to_vec(),
        aggregates,
        domain: of.domain,
        min_rows: of.min_rows,
    })
}
