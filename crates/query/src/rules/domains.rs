//! Groups of public domains are marked: their keys are known, so nothing has to be sorted.

use veil_relation::{Domain, Plan, PlanError, Program, Shapes};

use super::each_step;

/// Most groups whose sums are computed side by side, whatever they are of.
const MOST_GROUPS: u64 = 64;

/// Most sums, groups times aggregates, if there are more groups.
const MOST_SUMS: u64 = 512;

/// Marks each group by whose keys are categories and bools of at most 64 groups together, or of at most 512 sums.
///
/// Right, since a domain says how groups may be found, and not which there are.
///
/// # Errors
/// [`PlanError`], if the program is none.
pub fn domains(program: &mut Program) -> Result<(), PlanError> {
    each_step(program, &mut |mut plan, shapes| {
        mark(&mut plan, shapes)?;
        Ok(plan)
    })
}

fn mark(plan: &mut Plan, shapes: Shapes<'_>) -> Result<(), PlanError> {
    for input in plan.inputs_mut() {
        mark(input, shapes)?;
    }
    let Plan::GroupBy {
        input,
        keys,
        aggregates,
        domain,
        ..
    } = plan
    else {
        return Ok(());
    };
    let types = shapes.of(input)?.types();
    let values = keys.iter().map(|key| {
        let ty = key.expr.ty(&types).ok()?;
        Some(ty.kind.domain()? + u64::from(ty.nullable))
    });
    let groups = values
        .into_iter()
        .try_fold(1_u64, |product, values| product.checked_mul(values?));
    *domain = match groups {
        Some(groups) if !keys.is_empty() => {
            let sums = groups.saturating_mul(aggregates.len().max(1) as u64);
            if groups <= MOST_GROUPS || sums <= MOST_SUMS {
                Domain::Public(groups as u32)
            } else {
                Domain::Secret
            }
        }
        _ => Domain::Secret,
    };
    Ok(())
}
