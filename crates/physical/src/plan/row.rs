//! Conditions and projections: computed where they are needed, unless they would be too large there.

use veil_relation::{ColumnId, Expr, Plan};

use super::rel::Rel;
use super::{PhysicalError, Planner};

/// Most operations of the expressions of one relation over what is there as shares. What a projection reads several times counts each time, so that turns of a loop,
/// one upon the other, would double what is read twice again and again; beyond it the columns below are computed first. It is far above what people write in one query.
const MOST_OPERATIONS: u64 = 2048;

/// Operations of an expression whose columns have so many.
fn operations(of: &Expr, column: &dyn Fn(ColumnId) -> u64) -> u64 {
    match of {
        Expr::Column(id, _) => column(*id),
        other => {
            let each = other.operands().into_iter();
            let each = each.map(|operand| operations(operand, column));
            each.fold(1, u64::saturating_add)
        }
    }
}

impl Planner<'_> {
    /// A condition or a projection, which are computed where they are needed.
    pub(super) fn row_by_row(&mut self, plan: &Plan, rel: Rel) -> Result<Rel, PhysicalError> {
        let exprs: Vec<&Expr> = match plan {
            Plan::Filter { predicate, .. } => vec![predicate],
            Plan::Project { columns, .. } => columns.iter().map(|column| &column.expr).collect(),
            _ => Vec::new(),
        };
        let rel = self.within(rel, &exprs)?;
        Ok(Self::where_needed(plan, rel))
    }

    /// The same, of any size.
    pub(super) fn where_needed(plan: &Plan, mut rel: Rel) -> Rel {
        match plan {
            Plan::Filter { predicate, .. } => {
                let condition = rel.over_base(predicate);
                rel.valid.push(condition);
            }
            Plan::Project { columns, .. } => {
                let fields = columns.iter().map(|column| rel.over_base(&column.expr));
                rel.fields = fields.collect();
            }
            _ => {}
        }
        rel
    }

    /// The relation, over whose base these expressions are not too large: its fields are computed where they would be.
    fn within(&mut self, mut rel: Rel, exprs: &[&Expr]) -> Result<Rel, PhysicalError> {
        let one = |_: ColumnId| 0;
        let sizes: Vec<u64> = rel.fields.iter().map(|of| operations(of, &one)).collect();
        let column = |id: ColumnId| sizes.get(id.index()).copied().unwrap_or(0);
        let each = exprs.iter().map(|expr| operations(expr, &column));
        let all = each.fold(0, u64::saturating_add);
        let below = sizes.iter().copied().fold(0, u64::saturating_add);
        // Columns that are there as they are make nothing smaller.
        if all <= MOST_OPERATIONS || below == 0 {
            return Ok(rel);
        }
        let fields = rel.typed_fields()?;
        self.materialised(&mut rel, &fields, false)
    }
}
