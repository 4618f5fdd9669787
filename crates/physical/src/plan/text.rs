//! Operators in words, as people look at them.

use veil_relation::{Domain, FitKind, JoinKind, Matches, Overflow, Plan, Program, Shape};

/// A relation in a few words.
pub(super) fn relation(plan: &Plan) -> String {
    match plan {
        Plan::Scan { table, .. } => format!("`{table}`"),
        Plan::Step { name } => format!("`{name}`"),
        Plan::GroupBy { input, .. } => format!("groups of {}", relation(input)),
        Plan::Join { left, right, .. } => {
            format!("the join of {} and {}", relation(left), relation(right))
        }
        Plan::UnionAll { inputs } => {
            let inputs: Vec<String> = inputs.iter().map(relation).collect();
            format!("all rows of {}", inputs.join(", "))
        }
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Distinct { input }
        | Plan::Sort { input, .. }
        | Plan::TopK { input, .. }
        | Plan::Window { input, .. }
        | Plan::Trim { input, .. }
        | Plan::Fit { input, .. }
        | Plan::Apply { input, .. }
        | Plan::Open { input, .. } => relation(input),
    }
}

/// What an operator does, in one line.
pub(super) fn of(plan: &Plan, shape: &Shape, program: &Program) -> String {
    let names = |skip: usize, count: usize| {
        let fields = shape.fields.iter().skip(skip).take(count);
        let names: Vec<&str> = fields.map(|field| field.name.as_str()).collect();
        names.join(", ")
    };
    match plan {
        Plan::Scan { table, columns } => {
            let found = program.tables.iter().find(|known| known.name == *table);
            let of = found.map_or_else(String::new, |table| table.origin.to_string());
            format!("table {table} of {of}: {}", names(0, columns.len()))
        }
        Plan::Step { name } => format!("relation {name}"),
        Plan::Filter { predicate, .. } => format!("filter {predicate}"),
        Plan::Project { columns, .. } => format!("compute {}", names(0, columns.len())),
        Plan::UnionAll { .. } => "all rows of several relations".into(),
        Plan::Join {
            kind, matches, on, ..
        } => {
            let kind = match kind {
                JoinKind::Inner => "join",
                JoinKind::Left => "left join",
                JoinKind::Semi => "rows with a match",
                JoinKind::Anti => "rows without a match",
            };
            let opens = match matches {
                Matches::Any => "nothing is opened".into(),
                _ if on.is_empty() => "one row for all".into(),
                Matches::AtMost(pairs) => format!("at most {pairs} pairs (opens one bit)"),
                _ => "each key once on one side".into(),
            };
            format!("{kind} on {} keys, {opens}", on.len())
        }
        Plan::GroupBy {
            keys,
            domain,
            min_rows,
            ..
        } => {
            let by = if keys.is_empty() {
                "aggregate all rows".into()
            } else {
                format!("group by {}", names(0, keys.len()))
            };
            let domain = match domain {
                Domain::Secret => String::new(),
                Domain::Public(groups) => format!(" ({groups} groups, public)"),
            };
            let least = if *min_rows > 1 {
                format!(", at least {min_rows} rows")
            } else {
                String::new()
            };
            format!("{by}{domain}: {}{least}", names(keys.len(), usize::MAX))
        }
        Plan::Distinct { .. } => "different rows".into(),
        Plan::Sort { keys, .. } => format!("sort by {} keys", keys.len()),
        Plan::TopK { keys, rows, .. } => format!("first {rows} rows by {} keys", keys.len()),
        Plan::Window { .. } => "window".into(),
        Plan::Trim { rows, overflow, .. } => {
            let told = match overflow {
                Overflow::Refuse => " (opens one bit)",
                Overflow::Flag => " (the result says if there are more)",
                Overflow::Drop => "",
            };
            format!("at most {rows} rows{told}")
        }
        Plan::Fit { model, .. } => {
            let least = if model.min_rows > 1 {
                format!(", at least {} rows", model.min_rows)
            } else {
                String::new()
            };
            let (name, rows, steps) = (model.kind.name(), shape.capacity, model.iterations);
            match &model.kind {
                FitKind::Regression {
                    stepping: Some(_), ..
                } => {
                    format!(
                        "{name} regression of {rows} terms by gradient descent in {steps} epochs{least}"
                    )
                }
                FitKind::Regression { .. } => {
                    format!("{name} regression of {rows} terms in {steps} steps{least}")
                }
                FitKind::Components { .. } => format!(
                    "{rows} principal components of {} features{least}",
                    model.features.len()
                ),
                FitKind::Clusters { .. } => {
                    format!("{name} with {rows} clusters in {steps} steps{least}")
                }
                FitKind::Tree { .. } => {
                    format!("decision {name} of up to {rows} nodes in {steps} levels{least}")
                }
            }
        }
        Plan::Apply { model, .. } => {
            let given = model.names().len();
            let columns = shape.fields.len();
            format!(
                "network {}: {}",
                model.network.name(),
                names(columns.saturating_sub(given), given)
            )
        }
        Plan::Open { to, .. } => format!("open to {to}"),
    }
}
