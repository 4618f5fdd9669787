//! A row of bars per measurement, or a line over cores.

use std::path::Path;

use miette::{Result, miette};
use plotters::prelude::*;

use super::measure::Row;

pub(super) const SIZE: (u32, u32) = (900, 480);
pub(super) const BAR: RGBColor = RGBColor(0x2b, 0x6c, 0xb0);
pub(super) const BOUND: RGBColor = RGBColor(0xa0, 0xae, 0xc0);

/// Writes `rows` as an SVG file: a line if they differ in cores, bars otherwise.
pub(super) fn write(rows: &[Row], path: &Path) -> Result<()> {
    let mut svg = String::new();
    let drawn = if rows.len() > 1 && rows.windows(2).all(|w| w[0].cores != w[1].cores) {
        line(rows, &mut svg)
    } else {
        bars(rows, &mut svg)
    };
    put(drawn, &svg, path)
}

/// Puts a drawn plot in its place, complete or not at all.
pub(super) fn put(drawn: Drawn, svg: &str, path: &Path) -> Result<()> {
    drawn.map_err(|e| miette!("cannot draw the plot: {e}"))?;
    let temporary = path.with_extension("svg.tmp");
    let put = || std::fs::write(&temporary, svg).and_then(|()| std::fs::rename(&temporary, path));
    put().map_err(|e| {
        miette!(
            help = "is the folder there, writable, and the disk not full?",
            "cannot write {}: {e}",
            path.display()
        )
    })
}

pub(super) type Drawn = std::result::Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) color: RGBAColor,
    pub(super) points: Vec<(f64, f64)>,
    /// What it cannot exceed: drawn pale, without a name.
    pub(super) limit: Vec<(f64, f64)>,
}

/// Draws lines over a logarithmic axis: title, names of both axes, and how high the second one goes.
pub(super) fn lines(
    title: &str,
    [x, y]: [&str; 2],
    most: f64,
    lines: Vec<Line>,
    svg: &mut String,
) -> Drawn {
    let all = || lines.iter().flat_map(|line| &line.points).map(|p| p.0);
    let (first, last) = (all().reduce(f64::min), all().reduce(f64::max));
    let (first, last) = (first.unwrap_or(1.0), last.unwrap_or(1.0) * 1.01);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d((first..last).log_scale(), 0.0..most)?;
    chart
        .configure_mesh()
        .x_desc(x)
        .x_label_formatter(&|x| format!("{x}"))
        .y_desc(y)
        .draw()?;
    for line in lines {
        let color = line.color;
        let pale = color.mix(0.3).stroke_width(1);
        chart.draw_series(LineSeries::new(line.limit, pale))?;
        chart
            .draw_series(LineSeries::new(line.points, color.stroke_width(2)).point_size(3))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK)
        .draw()?;
    root.present()
}

fn unit(rate: f64) -> (f64, &'static str) {
    match rate {
        r if r >= 1e9 => (1e9, "G/s"),
        r if r >= 1e6 => (1e6, "M/s"),
        r if r >= 1e3 => (1e3, "k/s"),
        _ => (1.0, "/s"),
    }
}

fn bars(rows: &[Row], svg: &mut String) -> Drawn {
    let most = rows
        .iter()
        .map(|r| r.rate_per_cpu_s / r.bound_fraction)
        .fold(1.0, f64::max);
    let (scale, unit) = unit(most);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!(
        "{} per CPU-second of all parties",
        rows.first().map_or("", |r| &r.bench)
    );
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (0..rows.len().max(1) as u32 - 1).into_segmented(),
            0.0..most / scale * 1.1,
        )?;
    let label = |x: &SegmentValue<u32>| match x {
        SegmentValue::CenterOf(k) => rows.get(*k as usize).map_or_else(String::new, |r| {
            let net = if r.net == "none" {
                String::new()
            } else {
                format!(", {}", r.net)
            };
            let rate = r.rate_per_cpu_s / scale;
            format!("{}{net}, {} rows: {rate:.3} {unit}", r.link, r.batch)
        }),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .y_desc(unit)
        .x_label_formatter(&label)
        .draw()?;
    let bar = |k: usize, height: f64, color: RGBColor| {
        let (left, right) = (
            SegmentValue::Exact(k as u32),
            SegmentValue::Exact(k as u32 + 1),
        );
        let mut bar = Rectangle::new([(left, 0.0), (right, height / scale)], color.filled());
        bar.set_margin(0, 0, 40, 40);
        bar
    };
    chart
        .draw_series(
            rows.iter()
                .enumerate()
                .map(|(k, r)| bar(k, r.rate_per_cpu_s / r.bound_fraction, BOUND)),
        )?
        .label("masks alone (bound)")
        .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], BOUND.filled()));
    chart
        .draw_series(
            rows.iter()
                .enumerate()
                .map(|(k, r)| bar(k, r.rate_per_cpu_s, BAR)),
        )?
        .label("measured")
        .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], BAR.filled()));
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK)
        .draw()?;
    root.present()
}

fn line(rows: &[Row], svg: &mut String) -> Drawn {
    let most = rows.iter().map(|r| r.rate_per_s).fold(1.0, f64::max);
    let (scale, unit) = unit(most);
    let cores = rows.iter().map(|r| r.cores).max().unwrap_or(1);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!(
        "{} per second against cores",
        rows.first().map_or("", |r| &r.bench)
    );
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..f64::from(cores) * 1.05, 0.0..most / scale * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("cores of all parties together")
        .y_desc(unit)
        .x_labels(usize::from(cores) + 1)
        .draw()?;
    let points: Vec<_> = rows
        .iter()
        .map(|r| (f64::from(r.cores), r.rate_per_s / scale))
        .collect();
    chart.draw_series(LineSeries::new(points.clone(), BAR.stroke_width(2)))?;
    chart.draw_series(points.into_iter().map(|p| Circle::new(p, 4, BAR.filled())))?;
    root.present()
}
