//! Aggregates that are made of other operators: counts of different values, and quantiles.

use veil_relation::{
    Aggregate, AggregateFunction, Arithmetic, Comparison, Domain, Expr, Frame, Kind, Literal,
    Named, Plan, Shape, SortKey, WindowFunction, Windowed,
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
            Some(at) => Ok(Some(distinct_count(&of, at, &self.shape(input)?)?)),
            None => Ok(None),
        }
    }

    /// Whether an aggregate is made of other operators.
    pub(super) const fn is_rewritten(of: &Aggregate) -> bool {
        use AggregateFunction::{CountDistinct, PercentileDisc};
        matches!(of.function, CountDistinct(_) | PercentileDisc { .. })
    }
}

/// The input of a group by with its keys and a value as columns.
struct Keyed {
    input: Plan,
    keys: Vec<Named>,
    value: Expr,
    /// Columns of the input.
    width: u32,
}

/// The keys of a group by and a value become columns where they are none: so the order by them that an operator leaves is known.
fn keyed(of: &Grouping<'_>, value: Expr, input: &Shape) -> Keyed {
    let fields = input.fields.iter().zip(0..);
    let mut columns: Vec<Named> = fields
        .map(|(field, at)| Named {
            name: field.name.clone(),
            expr: Expr::column(at),
        })
        .collect();
    let width = columns.len();
    let mut column = |name: &str, expr: Expr| {
        if matches!(expr, Expr::Column(..)) {
            return expr;
        }
        let name = name.to_owned();
        columns.push(Named { name, expr });
        Expr::column(columns.len() as u32 - 1)
    };
    let keys = of.keys.iter().map(|key| Named {
        name: key.name.clone(),
        expr: column(&key.name, key.expr.clone()),
    });
    let keys: Vec<Named> = keys.collect();
    let value = column("value", value);
    let input = of.input.clone();
    let more = columns.len() > width;
    let width = columns.len() as u32;
    let input = if more {
        let input = Box::new(input);
        Plan::Project { input, columns }
    } else {
        input
    };
    Keyed {
        input,
        keys,
        value,
        width,
    }
}

/// The argument of an aggregate in the rows that its filter chooses, and null in others.
fn chosen_by(filter: Option<&Expr>, argument: &Expr, kind: &Kind) -> Expr {
    match filter {
        None => argument.clone(),
        Some(filter) => Expr::Case {
            branches: vec![(filter.clone(), argument.clone())],
            otherwise: Box::new(Expr::Literal(Literal::Null(kind.clone()))),
        },
    }
}

/// Groups in which the rows are counted that are the first of their value: rows are sorted by keys and value, and by nothing else.
fn distinct_count(of: &Grouping<'_>, at: usize, input: &Shape) -> Result<Plan, PhysicalError> {
    let aggregate = &of.aggregates[at];
    let Some(argument) = aggregate.function.argument() else {
        let what = "a count of different values is of none";
        return Err(PhysicalError::Circuit(what.into()));
    };
    let kind = argument.ty(&input.types())?.kind;
    let value = chosen_by(aggregate.filter.as_ref(), argument, &kind);
    let Keyed {
        input,
        keys,
        value,
        width,
    } = keyed(of, value, input);
    let partition = keys.iter().map(|key| key.expr.clone());
    let numbered = Plan::Window {
        input: Box::new(input),
        partition: partition.chain([value.clone()]).collect(),
        // Rows of a value are equal in an order of no bits.
        order: vec![SortKey::ascending(Expr::integer(0))],
        functions: vec![Windowed {
            name: "number".into(),
            function: WindowFunction::RowNumber,
        }],
    };
    let first = Expr::compare(Comparison::Eq, Expr::column(width), Expr::integer(1));
    let null = Expr::IsNull(Box::new(value));
    let mut aggregates = of.aggregates.to_vec();
    aggregates[at] = Aggregate {
        name: aggregate.name.clone(),
        function: AggregateFunction::CountRows,
        filter: Some(Expr::all(vec![first, Expr::Not(Box::new(null))])),
    };
    Ok(Plan::GroupBy {
        input: Box::new(numbered),
        keys,
        aggregates,
        domain: of.domain,
        min_rows: of.min_rows,
    })
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
    let value = chosen_by(aggregate.filter.as_ref(), argument, &kind);
    let Keyed {
        input,
        keys,
        value,
        width,
    } = keyed(of, value, input);
    let partition = keys.iter().map(|key| key.expr.clone()).collect();
    let order = vec![SortKey::ascending(value.clone())];
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
        input: Box::new(input),
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
        otherwise: Box::new(Expr::Literal(Literal::Null(kind))),
    };
    let mut aggregates = of.aggregates.to_vec();
    aggregates[at] = Aggregate {
        name: aggregate.name.clone(),
        function: AggregateFunction::Max(chosen),
        filter: None,
    };
    Ok(Plan::GroupBy {
        input: Box::new(numbered),
        keys,
        aggregates,
        domain: of.domain,
        min_rows: of.min_rows,
    })
}
