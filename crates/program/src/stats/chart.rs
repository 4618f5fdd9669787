//! A result as a chart: a panel for each analysis, a bar for each group or coefficient.

use super::svg::{Colour, Picture, Side, Type};
use super::{
    AnalysisResult, Estimate, Figure, Interval, StatsResult, axis::Axis, regression::OF_A_FIT,
    result::day_of, written,
};
use crate::query::LACKS;

// Sizes in pixels: a page of a report is about 960 wide.
const WIDTH: i32 = 960;
const MARGIN: i32 = 24;
const LABELS: i32 = 230;
/// Room for the number behind the longest bar.
const NUMBERS: i32 = 170;
const BAR: i32 = 20;
const PITCH: i32 = 30;
const TITLE: i32 = 58;
const AXIS: i32 = 38;
const FOOT: i32 = 34;

const INK: Colour = Colour(0x22, 0x2b, 0x36);
const PALE: Colour = Colour(0x6b, 0x76, 0x84);
const GRID: Colour = Colour(0xe3, 0xe7, 0xec);
/// One for each value of the last grouping column; chosen to differ for the colour-blind too (Okabe and Ito, 2008).
const BARS: [Colour; 6] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0xd5, 0x5e, 0x00),
];

/// Bars in a panel; a chart with more shows nothing.
const MOST_BARS: usize = 200;

/// One bar.
pub(crate) struct Bar {
    label: String,
    value: Option<f64>,
    shown: String,
    interval: Option<(f64, f64)>,
    colour: Colour,
}

/// Bars under a title.
pub(crate) struct Panel {
    title: String,
    subtitle: String,
    bars: Vec<Bar>,
    more: usize,
    kind: Kind,
}

/// What the values of a panel are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Amounts: bars from zero.
    Amounts,
    /// Correlations: the same, on an axis from -1 to 1, since one bar alone would fill any other.
    Correlations,
    /// Days: points, for a day is no amount of anything.
    Days,
}

impl Bar {
    /// A bar of one colour; without a value, what is shown stands in its place.
    pub(crate) const fn plain(label: String, value: Option<f64>, shown: String) -> Self {
        Bar {
            label,
            value,
            shown,
            interval: None,
            colour: BARS[0],
        }
    }
}

impl Panel {
    /// Amounts, of which the first are shown.
    pub(crate) fn amounts(title: String, subtitle: String, mut bars: Vec<Bar>) -> Self {
        let more = bars.len().saturating_sub(MOST_BARS);
        bars.truncate(MOST_BARS);
        Panel {
            title,
            subtitle,
            bars,
            more,
            kind: Kind::Amounts,
        }
    }

    fn height(&self) -> i32 {
        TITLE + PITCH * self.bars.len() as i32 + AXIS
    }
}

/// Draws the chart as SVG.
pub(super) fn draw(result: &StatsResult) -> String {
    let panels: Vec<Panel> = result.analyses.iter().map(panel).collect();
    page(&result.job, &panels, &foot(&panels, result))
}

/// Draws panels as SVG, with a line below them.
pub(crate) fn page(title: &str, panels: &[Panel], foot: &str) -> String {
    let height = MARGIN + panels.iter().map(Panel::height).sum::<i32>() + FOOT;
    let mut picture = Picture::new(WIDTH, height, title);
    let mut top = MARGIN;
    for panel in panels {
        paint_panel(&mut picture, panel, top);
        top += panel.height();
    }
    picture.text(
        foot,
        (MARGIN, height - FOOT / 2),
        look(13, PALE, Side::Left),
    );
    picture.finish()
}

/// What the chart says below its panels.
fn foot(panels: &[Panel], result: &StatsResult) -> String {
    let drawn = panels.iter().flat_map(|panel| &panel.bars);
    let mut whiskers = String::new();
    if drawn.filter(|bar| bar.interval.is_some()).count() > 0 {
        let analyses = result.analyses.iter();
        let figures = analyses.flat_map(|it| it.groups.iter().flat_map(|group| &group.figures));
        let mut levels: Vec<String> = figures
            .filter_map(|figure| Some(figure.interval.as_ref()?.confidence.to_string()))
            .collect();
        levels.dedup();
        whiskers = format!(
            " · whiskers: confidence intervals, {}",
            levels.join(" and ")
        );
    }
    // An extreme is what one row says.
    let extremes = (result.analyses.iter())
        .any(|it| ["min", "max", "median", "quantiles"].contains(&it.statistic));
    let but = if extremes {
        ", but for the smallest and largest values above"
    } else {
        ""
    };
    let rows = match result.rows {
        Some(rows) => format!("{rows} rows, none of which left"),
        None => "no row left".into(),
    };
    let lacking = result.analyses.iter().filter(|it| it.is_incomplete());
    let lacking: Vec<&str> = lacking.map(|it| it.name.as_str()).collect();
    let lacks = match &lacking[..] {
        [] => String::new(),
        names => format!(" · incomplete: {LACKS} of {}", names.join(", ")),
    };
    format!(
        "{} · {rows} its owner in the clear{but}{whiskers}{lacks}",
        result.job
    )
}

/// What an analysis shows.
fn panel(analysis: &AnalysisResult) -> Panel {
    let regression = analysis.statistic == "regression";
    // A bar for each figure of a group, under its name.
    let several = regression || analysis.statistic == "quantiles";
    let wanted = match analysis.statistic {
        "variance" | "mean-only" => "mean",
        "histogram" => "count",
        other => other,
    };
    let mut bars = Vec::new();
    let mut unit = None;
    let mut kind = match analysis.statistic {
        "correlation" => Kind::Correlations,
        _ => Kind::Amounts,
    };
    let mut hue = Vec::new();
    for group in &analysis.groups {
        let last = group.values.last().cloned().unwrap_or_default();
        let colour = hue
            .iter()
            .position(|other| *other == last)
            .unwrap_or_else(|| {
                hue.push(last);
                hue.len() - 1
            });
        let coefficients = |figure: &&Figure| {
            !["count", "intercept"].contains(&figure.name.as_str())
                && !OF_A_FIT.contains(&figure.name.as_str())
        };
        let figures: Vec<&Figure> = if several {
            group.figures.iter().filter(coefficients).collect()
        } else {
            group
                .figures
                .iter()
                .filter(|figure| figure.name == wanted)
                .collect()
        };
        for figure in figures {
            if let Estimate::Date(_) = figure.estimate {
                kind = Kind::Days;
            }
            let mut label = group.values.clone();
            if several {
                label.push(figure.name.clone());
            }
            unit = unit.or(figure.unit.clone().filter(|_| !regression));
            let own = figure
                .unit
                .as_ref()
                .filter(|_| regression)
                .map(|unit| format!(" {unit}"));
            bars.push(Bar {
                label: if label.is_empty() {
                    "all rows".into()
                } else {
                    label.join(" · ")
                },
                value: figure.estimate.value(),
                shown: written::show(&figure.estimate) + &own.unwrap_or_default(),
                interval: figure.interval.as_ref().and_then(Interval::ends),
                colour: BARS[colour % BARS.len()],
            });
        }
    }
    let by = if analysis.by.is_empty() {
        String::new()
    } else {
        format!(" by {}", analysis.by.join(" and "))
    };
    let what = match analysis.statistic {
        "variance" => analysis.about.replacen("variance", "mean", 1),
        "regression" => format!("{}: coefficients", analysis.about),
        _ => analysis.about.clone(),
    };
    let unit = unit.map(|unit| format!(", {unit}")).unwrap_or_default();
    let more = bars.len().saturating_sub(MOST_BARS);
    bars.truncate(MOST_BARS);
    Panel {
        title: analysis.name.clone(),
        subtitle: format!("{what}{by}{unit}"),
        bars,
        more,
        kind,
    }
}

fn paint_panel(picture: &mut Picture, panel: &Panel, top: i32) {
    picture.text(
        &panel.title,
        (MARGIN, top + 12),
        Type {
            bold: true,
            ..look(21, INK, Side::Left)
        },
    );
    let more = if panel.more > 0 {
        format!(" ({} more not shown)", panel.more)
    } else {
        String::new()
    };
    picture.text(
        &format!("{}{more}", panel.subtitle),
        (MARGIN, top + 34),
        look(15, PALE, Side::Left),
    );

    let ends = panel.bars.iter().filter_map(|bar| {
        bar.value
            .map(|value| bar.interval.unwrap_or((value, value)))
    });
    let wider = |(low, high): (f64, f64), (from, to): (f64, f64)| (low.min(from), high.max(to));
    let days = panel.kind == Kind::Days;
    let (low, high) = match panel.kind {
        Kind::Amounts => ends.fold((0.0, 0.0), wider),
        Kind::Correlations => ends.fold((-1.0, 1.0), wider),
        Kind::Days => ends.reduce(wider).unwrap_or((0.0, 0.0)),
    };
    let axis = if days {
        Axis::new(low.floor(), high.ceil()).of_days()
    } else {
        Axis::new(low, high)
    };
    let (first, last) = (
        top + TITLE - 4,
        top + TITLE + PITCH * panel.bars.len() as i32,
    );
    let room = WIDTH - 2 * MARGIN - LABELS - NUMBERS;
    let at = |value: f64| axis.at(value, (MARGIN + LABELS, room));
    for tick in axis.ticks() {
        let x = at(tick);
        picture.stroke((x, first), (x, last), GRID, 1);
        picture.text(
            &if days { day_of(tick) } else { axis.label(tick) },
            (x, last + 12),
            look(13, PALE, Side::Centre),
        );
    }
    let zero = at(if days { axis.low } else { 0.0 });
    for (index, bar) in panel.bars.iter().enumerate() {
        let middle = top + TITLE + PITCH * index as i32 + PITCH / 2;
        let label_end = MARGIN + LABELS - 12;
        picture.text(
            &cut(&bar.label, 34),
            (label_end, middle),
            look(15, INK, Side::Right),
        );
        let Some(value) = bar.value else {
            picture.text(&bar.shown, (zero + 8, middle), look(14, PALE, Side::Left));
            continue;
        };
        let end = at(value);
        if days {
            picture.circle((end, middle), BAR / 3, bar.colour);
        } else {
            let corner = (zero.min(end), middle - BAR / 2);
            picture.rectangle(corner, (zero.max(end), middle + BAR / 2), bar.colour);
        }
        let mut right = zero.max(end);
        if let Some((low, high)) = bar.interval {
            let (from, to) = (at(low), at(high));
            picture.stroke((from, middle), (to, middle), INK, 2);
            for x in [from, to] {
                picture.stroke((x, middle - 4), (x, middle + 4), INK, 2);
            }
            right = right.max(to);
        }
        picture.text(&bar.shown, (right + 8, middle), look(14, INK, Side::Left));
    }
    picture.stroke((zero, first), (zero, last), INK, 1);
}

fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}

fn look(size: i32, colour: Colour, side: Side) -> Type {
    Type {
        size,
        colour,
        side,
        bold: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Group, derive::figure};

    fn result(values: &[(&str, Estimate, Option<f64>)]) -> StatsResult {
        let group = |(value, estimate, half): &(&str, Estimate, Option<f64>)| {
            let end = |sign: f64| {
                let (value, half) = (estimate.value()?, (*half)?);
                Some(Estimate::Rounded(value + sign * half))
            };
            let interval = end(-1.0).zip(end(1.0)).map(|(low, high)| Interval {
                confidence: crate::stats::Confidence::USUAL,
                low,
                high,
            });
            Group {
                values: vec![(*value).to_owned()],
                figures: vec![Figure {
                    unit: Some("EUR".into()),
                    interval,
                    ..figure("mean", estimate.clone())
                }],
            }
        };
        StatsResult {
            paired: Vec::new(),
            job: "study".into(),
            recipient: "press".into(),
            rows: Some(3),
            analyses: vec![AnalysisResult {
                name: "pay".into(),
                statistic: "variance",
                about: "variance of pay".into(),
                by: vec!["kind".into()],
                incomplete: None,
                min_count: None,
                rows_used: Some(3),
                groups: values.iter().map(group).collect(),
            }],
            opened: Vec::new(),
            security: None,
        }
    }

    #[test]
    fn every_group_has_its_label_and_number() {
        let svg = draw(&result(&[
            ("<a&b>", Estimate::Rounded(-1234.5), Some(10.0)),
            ("c", Estimate::Rounded(99.25), None),
            ("d", Estimate::Undefined("no rows"), None),
        ]));
        for text in [
            "&lt;a&amp;b&gt;",
            "-1234.50",
            "99.2500",
            "(no rows)",
            "mean of pay by kind, EUR",
        ] {
            assert!(svg.contains(text), "{text} is missing from\n{svg}");
        }
        assert!(
            svg.contains("whiskers: confidence intervals, 95 %"),
            "{svg}"
        );
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn a_day_is_no_amount() {
        let mut result = result(&[
            ("a", Estimate::Date(7305.5), None),
            ("b", Estimate::Date(7400.0), None),
            ("c", Estimate::Undefined("no rows"), None),
        ]);
        result.analyses[0].statistic = "mean-only";
        let svg = draw(&result);
        // Days on the axis, and points: the only rectangle is the page.
        assert!(svg.contains("1990-01-01"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert_eq!(svg.matches("<rect").count(), 1, "{svg}");
        assert!(!svg.contains("7305") && !svg.contains("7400"), "{svg}");
        for day in [0.0, -719_468.0, 1e5] {
            result.analyses[0].groups.truncate(1);
            result.analyses[0].groups[0].figures[0].estimate = Estimate::Date(day);
            assert!(draw(&result).contains("</svg>"));
        }
    }

    #[test]
    fn a_correlation_has_an_axis_of_its_own() {
        let mut result = result(&[("a", Estimate::Rounded(0.5), None)]);
        result.analyses[0].statistic = "correlation";
        result.analyses[0].groups[0].figures[0].name = "correlation".into();
        let svg = draw(&result);
        for text in [">-1</text>", ">1</text>", "0.500000"] {
            assert!(svg.contains(text), "{text} is missing from\n{svg}");
        }
    }

    /// What is the value of one row does not stay with its owner.
    #[test]
    fn the_footer_says_what_left() {
        let foot = |statistic| {
            let mut result = result(&[("a", Estimate::Rounded(0.5), None)]);
            result.analyses[0].statistic = statistic;
            draw(&result)
        };
        let but = "3 rows, none of which left its owner in the clear, but for the smallest and largest values above";
        for extreme in ["min", "max"] {
            assert!(foot(extreme).contains(but));
        }
        assert!(!foot("variance").contains("but for"));
    }

    #[test]
    fn strange_values_still_make_a_chart() {
        for value in [0.0, 1e300, -1e300, 1e-300, f64::MAX] {
            let svg = draw(&result(&[(
                "a",
                Estimate::Rounded(value),
                Some(value.abs()),
            )]));
            assert!(svg.contains("</svg>"));
        }
        assert!(draw(&result(&[])).contains("</svg>"));
    }
}
