//! Answers that the parties computed: the value opened of a group is the answer, and nothing else of it was opened.

use super::{
    Analysis, AnalysisResult, End, Estimate, Figure, Group, Statistic, Stats,
    derive::{Context, NO_ROWS, SUPPRESSED, figure},
    lower::Meaning,
};

const BEYOND: &str = "beyond the declared range: an owner has supplied what no row can have";

/// The answer to an analysis, from what was opened of its groups in order.
pub(super) fn derive(stats: &Stats, analysis: &Analysis, answers: &[Meaning]) -> AnalysisResult {
    let column = &stats.columns[analysis.statistic.columns()[0]];
    let name = name(&analysis.statistic);
    let none = match analysis.min_count {
        Some(_) => SUPPRESSED,
        None => NO_ROWS,
    };
    let estimate = |answer: &Meaning| match *answer {
        Meaning::Number(number) if column.is_date() => Estimate::Date(number.value as f64),
        Meaning::Number(number) => Estimate::Exact(number),
        Meaning::Beyond(_) => Estimate::Undefined(BEYOND),
        Meaning::Nothing => Estimate::Undefined(none),
    };
    let answered = |answer| Figure {
        unit: column
            .unit()
            .filter(|_| !column.is_date())
            .map(str::to_owned),
        ..figure(name, estimate(answer))
    };
    let groups = stats.groups(analysis);
    AnalysisResult {
        name: analysis.name.clone(),
        statistic: analysis.statistic.name(),
        about: Context::new(&stats.columns, analysis, false).about(),
        by: stats.names(&analysis.by),
        incomplete: None,
        min_count: analysis.min_count,
        // Without a missing value it is no secret, and with one it is not opened.
        rows_used: (!stats.may_drop(analysis)).then(|| stats.rows()),
        groups: (groups.iter().zip(answers))
            .map(|(group, answer)| Group {
                values: stats.values(analysis, group),
                figures: vec![answered(answer)],
            })
            .collect(),
    }
}

/// What the figure is called that is the answer.
pub(super) const fn name(statistic: &Statistic) -> &'static str {
    match statistic {
        Statistic::Extreme(End::Smallest, _) => "min",
        Statistic::Extreme(End::Largest, _) => "max",
        _ => "mean",
    }
}
