//! Looks through syntax trees without binding them.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, InTarget, WindowType,
};

/// The operands of the expressions that the dialect has, without those in subqueries.
pub(crate) fn operands(of: &Expr) -> Vec<&Expr> {
    match of {
        Expr::Nested(a)
        | Expr::IsNull(a)
        | Expr::IsNotNull(a)
        | Expr::IsTrue(a)
        | Expr::IsNotTrue(a)
        | Expr::IsFalse(a)
        | Expr::IsNotFalse(a)
        | Expr::IsUnknown(a)
        | Expr::IsNotUnknown(a)
        | Expr::UnaryOp { expr: a, .. }
        | Expr::Cast { expr: a, .. }
        | Expr::Extract { expr: a, .. }
        | Expr::Like { expr: a, .. } => vec![a],
        Expr::IsDistinctFrom(a, b)
        | Expr::IsNotDistinctFrom(a, b)
        | Expr::BinaryOp {
            left: a, right: b, ..
        } => vec![a, b],
        Expr::Between {
            expr, low, high, ..
        } => vec![expr, low, high],
        Expr::In { expr, target, .. } => match target {
            InTarget::List(list) => std::iter::once(&**expr).chain(list).collect(),
            _ => vec![expr],
        },
        Expr::Substring {
            expr,
            substring_from,
            substring_for,
            ..
        } => {
            let more = substring_from.iter().chain(substring_for).map(|of| &**of);
            std::iter::once(&**expr).chain(more).collect()
        }
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            let pairs = conditions
                .iter()
                .flat_map(|when| [&when.condition, &when.result]);
            let ends = operand.iter().chain(else_result).map(|of| &**of);
            pairs.chain(ends).collect()
        }
        Expr::Function(call) => call_operands(call),
        _ => Vec::new(),
    }
}

fn call_operands(call: &Function) -> Vec<&Expr> {
    let mut all = arguments(call);
    all.extend(call.filter.as_deref());
    all.extend(call.within_group.iter().map(|key| &key.expr));
    if let Some(WindowType::WindowSpec(window)) = &call.over {
        all.extend(&window.partition_by);
        all.extend(window.order_by.iter().map(|key| &key.expr));
    }
    all
}

/// The arguments of a call that are expressions.
pub(crate) fn arguments(call: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &call.args else {
        return Vec::new();
    };
    list.args
        .iter()
        .filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect()
}

/// Calls `seen` with an expression and all below it, parents first, as long as it says to go on below.
pub(crate) fn each<'a>(root: &'a Expr, seen: &mut dyn FnMut(&'a Expr) -> bool) {
    let mut stack = vec![root];
    while let Some(of) = stack.pop() {
        if seen(of) {
            let mut below = operands(of);
            below.reverse();
            stack.extend(below);
        }
    }
}

/// Whether one of an expression and what is below it is as said.
pub(crate) fn any(root: &Expr, is: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    each(root, &mut |of| {
        found |= is(of);
        !found
    });
    found
}

/// Whether an expression is a subquery or a condition on one.
pub(crate) fn is_subquery(of: &Expr) -> bool {
    match of {
        Expr::Subquery(_) | Expr::Exists { .. } => true,
        Expr::In { target, .. } => matches!(target, InTarget::Subquery(_)),
        _ => false,
    }
}

/// The expressions whose conjunction this is, in order.
pub(crate) fn conjuncts(root: &Expr) -> Vec<&Expr> {
    chain(root, &sqlparser::ast::BinaryOperator::And)
}

/// The operands of a chain of one operator, in order, parentheses aside.
pub(crate) fn chain<'a>(root: &'a Expr, sign: &sqlparser::ast::BinaryOperator) -> Vec<&'a Expr> {
    let (mut flat, mut stack) = (Vec::new(), vec![root]);
    while let Some(of) = stack.pop() {
        match of {
            Expr::BinaryOp { left, op, right } if op == sign => stack.extend([&**right, &**left]),
            Expr::Nested(inner) => stack.push(inner),
            other => flat.push(other),
        }
    }
    flat
}

/// The calls of one kind in some expressions, but for those within one another.
pub(crate) fn found<'e>(roots: &[&'e Expr], is: &dyn Fn(&Expr) -> bool) -> Vec<&'e Expr> {
    let mut all = Vec::new();
    for root in roots {
        each(root, &mut |of| {
            if is(of) {
                all.push(of);
            }
            !is(of)
        });
    }
    all
}
