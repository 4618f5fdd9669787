//! Binds window functions.

use crate::bind::Binder;
use crate::error::SqlError;
use crate::group::{Grouped, is_window};
use crate::rel::{Name, Rel};
use crate::scalar::Scope;
use crate::walk;
use sqlparser::ast::{
    self, Spanned, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Span;
use veil_relation::{ColumnId, Expr, Frame, Literal, Plan, SortKey, WindowFunction, Windowed};

impl Binder<'_> {
    /// Binds a call of a window function; gives the specification of its window.
    pub(crate) fn window<'c>(
        &mut self,
        scope: &mut Scope<'_>,
        of: &'c ast::Expr,
    ) -> Result<(WindowFunction, &'c WindowSpec), SqlError> {
        let at = of.span();
        let ast::Expr::Function(call) = of else {
            return Err(self.source.refused(at, "a window function is a call", None));
        };
        let call = self.parts(call, at)?;
        let Some(WindowType::WindowSpec(window)) = call.over else {
            return Err(self.source.refused(
                at,
                "named windows are not in the dialect",
                Some("write the window after OVER"),
            ));
        };
        if call.distinct || call.filter.is_some() || !call.within.is_empty() {
            return Err(self.source.refused(
                at,
                "DISTINCT, FILTER and WITHIN GROUP do not stand in window functions",
                None,
            ));
        }
        let frame = self.frame(window, at)?;
        let mut args = Vec::new();
        for arg in &call.args {
            match arg {
                Some(arg) => args.push(self.value(scope, arg)?.0),
                None if call.name == "count" && call.args.len() == 1 => {}
                None => return Err(self.source.refused(at, "* stands in count(*) only", None)),
            }
        }
        let rows = |expr: &Expr| match expr {
            Expr::Literal(Literal::Integer(rows)) => u32::try_from(*rows).ok(),
            _ => None,
        };
        let ordered = !window.order_by.is_empty();
        let name = call.name.as_str();
        let unframed = matches!(name, "row_number" | "rank" | "lag" | "lead");
        if unframed && !ordered {
            let what = format!("{name} needs an order");
            return Err(self
                .source
                .refused(at, what, Some("write ORDER BY in its window")));
        }
        if unframed && window.window_frame.is_some() {
            return Err(self
                .source
                .refused(at, format!("{name} takes no frame"), None));
        }
        let framed = || {
            let what = "the default frame of a window with an order, which goes to the last row that ties, is not in the dialect";
            let instead = "write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
            frame.ok_or_else(|| self.source.refused(at, what, Some(instead)))
        };
        let function = match (name, args.as_slice()) {
            ("row_number", []) => WindowFunction::RowNumber,
            ("rank", []) => WindowFunction::Rank,
            ("lag", [of]) => WindowFunction::Lag(of.clone(), 1),
            ("lead", [of]) => WindowFunction::Lead(of.clone(), 1),
            ("lag" | "lead", [of, by]) => match (name, rows(by)) {
                ("lag", Some(by)) => WindowFunction::Lag(of.clone(), by),
                (_, Some(by)) => WindowFunction::Lead(of.clone(), by),
                _ => {
                    return Err(self.source.refused(
                        at,
                        format!("{name} takes a public number of rows"),
                        None,
                    ));
                }
            },
            ("lag" | "lead", [_, _, _]) => {
                return Err(self.source.refused(
                    at,
                    format!("{name} takes no default"),
                    Some("write COALESCE around it"),
                ));
            }
            ("count", []) => WindowFunction::CountRows(framed()?),
            ("count", [of]) => WindowFunction::Count(of.clone(), framed()?),
            ("sum", [of]) => WindowFunction::Sum(of.clone(), framed()?),
            ("avg", [of]) => WindowFunction::Avg(of.clone(), framed()?),
            ("min", [of]) => WindowFunction::Min(of.clone(), framed()?),
            ("max", [of]) => WindowFunction::Max(of.clone(), framed()?),
            (
                "row_number" | "rank" | "count" | "sum" | "avg" | "min" | "max" | "lag" | "lead",
                _,
            ) => {
                return Err(self
                    .source
                    .refused(at, format!("{name} takes other arguments"), None));
            }
            _ => {
                let what = format!("{name} is no window function of the dialect");
                return Err(self.source.refused(
                    at,
                    what,
                    Some("row_number, rank, lag, lead, count, sum, avg, min and max are"),
                ));
            }
        };
        if matches!(
            function,
            WindowFunction::Min(_, Frame::Moving(_)) | WindowFunction::Max(_, Frame::Moving(_))
        ) {
            return Err(self.source.refused(
                at,
                format!("{name} of a moving frame is not in the dialect"),
                Some("UNBOUNDED PRECEDING is"),
            ));
        }
        Ok((function, window))
    }

    /// The frame of a window; `None` is SQL's default in a window with an order.
    pub(crate) fn frame(&self, window: &WindowSpec, at: Span) -> Result<Option<Frame>, SqlError> {
        let ordered = !window.order_by.is_empty();
        let Some(WindowFrame {
            units,
            start_bound,
            end_bound,
        }) = &window.window_frame
        else {
            // With an order, SQL's default frame goes to the last row that ties: not one of ours.
            return Ok((!ordered).then_some(Frame::Whole));
        };
        let number = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::Preceding(Some(rows)) => match &**rows {
                ast::Expr::Value(ast::ValueWithSpan {
                    value: ast::Value::Number(digits, false),
                    ..
                }) => digits.parse().ok(),
                _ => None,
            },
            _ => None,
        };
        let to_here = matches!(end_bound, None | Some(WindowFrameBound::CurrentRow));
        let to_end = matches!(end_bound, Some(WindowFrameBound::Following(None)));
        let from_start = matches!(start_bound, WindowFrameBound::Preceding(None));
        match units {
            _ if from_start && to_end => Ok(Some(Frame::Whole)),
            WindowFrameUnits::Rows if from_start && to_here && ordered => Ok(Some(Frame::Running)),
            WindowFrameUnits::Rows if to_here && ordered && number(start_bound).is_some() => {
                Ok(number(start_bound).map(Frame::Moving))
            }
            _ => Err(self.source.refused(
                at,
                "this frame is not in the dialect",
                Some("write ROWS BETWEEN UNBOUNDED PRECEDING (or n PRECEDING) AND CURRENT ROW, with an ORDER BY"),
            )),
        }
    }

    /// Adds the columns of window functions.
    pub(crate) fn windows<'s>(
        &mut self,
        rel: &mut Rel,
        grouped: Option<&Grouped>,
        after: &[&'s ast::Expr],
    ) -> Result<Vec<(&'s ast::Expr, ColumnId)>, SqlError> {
        let mut calls: Vec<&ast::Expr> = Vec::new();
        for root in after {
            walk::each(root, &mut |of| {
                if is_window(of) && !calls.contains(&of) {
                    calls.push(of);
                }
                !is_window(of)
            });
        }
        let mut windows = Vec::new();
        for call in calls {
            if walk::operands(call)
                .into_iter()
                .any(|part| walk::any(part, |of| is_window(of) || walk::is_subquery(of)))
            {
                return Err(self.source.refused(
                    call.span(),
                    "a window is over columns",
                    Some("compute them in a subquery of FROM"),
                ));
            }
            let (function, window) = self.window(&mut Scope::select(rel, grouped, &[]), call)?;
            let ast::WindowSpec {
                window_name,
                partition_by,
                order_by,
                window_frame: _,
            } = window;
            if window_name.is_some() {
                return Err(self.source.refused(
                    call.span(),
                    "named windows are not in the dialect",
                    None,
                ));
            }
            let scope = &mut Scope::select(rel, grouped, &[]);
            let partition = partition_by
                .iter()
                .map(|key| self.value(scope, key).map(|(expr, _)| expr));
            let partition = partition.collect::<Result<Vec<_>, _>>()?;
            let mut order = Vec::new();
            for key in order_by {
                let (expr, ty) = self.value(scope, &key.expr)?;
                order.push(self.sort_key(key, Self::rounded(expr, &ty.kind))?);
            }
            self.windowed(rel, partition, order, function, call.span())?;
            windows.push((call, ColumnId(rel.width() - 1)));
        }
        Ok(windows)
    }

    /// Adds a column of a window function; functions of one window stand in one operator.
    pub(crate) fn windowed(
        &self,
        rel: &mut Rel,
        partition: Vec<Expr>,
        order: Vec<SortKey>,
        function: WindowFunction,
        at: Span,
    ) -> Result<(), SqlError> {
        let named = Windowed {
            name: format!("window{}", rel.width() + 1),
            function,
        };
        match &mut rel.plan {
            Plan::Window {
                partition: p,
                order: o,
                functions,
                ..
            } if *p == partition && *o == order => {
                functions.push(named);
            }
            plan => {
                let input = Box::new(plan.clone());
                *plan = Plan::Window {
                    input,
                    partition,
                    order,
                    functions: vec![named],
                };
            }
        }
        rel.shape = self.shape(&rel.plan, at)?;
        let column = String::new();
        rel.names.push(Name {
            table: None,
            column,
            hidden: true,
        });
        Ok(())
    }
}
