//! A run as a picture: a row per participant and lane, time to the right.

use std::fmt::Write;

use veil_cli::output;

use super::merge::Run;
use super::summary::{Doing, Spent, Stretch, Summary, lanes, stretches};

/// Pixels: the whole width, names at the left, the margin at the right.
const WIDTH: f64 = 1200.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 24.0;
/// Pixels of a row, and between participants.
const ROW: f64 = 22.0;
const GAP: f64 = 10.0;
/// More lanes than this are drawn as one row that shows how many of them do what.
const FEW_LANES: usize = 4;
/// More stretches than this in a row are too narrow to point at: shares per pixel are drawn instead.
const FEW_STRETCHES: usize = 1500;

const COMPUTING: &str = "#2f6fb3";
const SENDING: &str = "#3f9e78";
const WAITING: &str = "#f0c36d";

/// Draws the run.
pub(crate) fn svg(run: &Run, summary: &Summary) -> String {
    let mut body = String::new();
    let mut y = 84.0;
    let end = run.end.max(1);
    let top = y - 6.0;
    for (by, participant) in (0u32..).zip(&run.header.participants) {
        let lanes = lanes(run, by);
        if lanes.is_empty() {
            continue;
        }
        text(
            &mut body,
            (LEFT - 12.0, y + 15.0),
            "name",
            &participant.name,
        );
        let of: Vec<Vec<Stretch>> = lanes.iter().map(|l| stretches(run, by, *l)).collect();
        if lanes.len() > FEW_LANES {
            shares(&mut body, y, end, &of);
            y += ROW;
        } else {
            for (lane, of) in lanes.iter().zip(&of) {
                if lanes.len() > 1 {
                    let label = format!("lane {lane}");
                    text(&mut body, (LEFT - 12.0, y + 15.0), "lane", &label);
                }
                if of.len() > FEW_STRETCHES {
                    shares(&mut body, y, end, std::slice::from_ref(of));
                } else {
                    each(&mut body, y, run, of);
                }
                y += ROW + 2.0;
            }
        }
        y += GAP;
    }
    let bottom = y - GAP + 4.0;
    let mut axis = String::new();
    grid(&mut axis, end, (top, bottom));
    y = bottom + 44.0;
    table(&mut body, &mut y, summary);
    waits(&mut body, &mut y, summary);
    let mut all = String::new();
    let height = y + 12.0;
    let _ = write!(
        all,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n{STYLE}\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    head(&mut all, summary);
    all + &axis + &body + "</svg>\n"
}

const STYLE: &str = "<style>
text { font: 12px system-ui, 'Helvetica Neue', Arial, sans-serif; fill: #24303c; }
.title { font-size: 18px; font-weight: 600; }
.quiet, .lane { fill: #6a7683; }
.name { text-anchor: end; font-weight: 600; }
.lane { text-anchor: end; font-size: 10px; transform: translateY(0px); }
.tick { text-anchor: middle; fill: #6a7683; font-size: 11px; }
.number { text-anchor: end; font-variant-numeric: tabular-nums; }
.head { fill: #6a7683; font-size: 11px; }
.head.number { text-anchor: end; }
rect.s:hover { stroke: #24303c; stroke-width: 1; }
</style>
";

fn head(all: &mut String, summary: &Summary) {
    text(all, (24.0, 32.0), "title", &summary.job);
    let about = format!(
        "{} in {} · {} on {} · {} · plan {} · trace {}",
        output::count(summary.rows, "row"),
        output::seconds(summary.seconds),
        output::count(summary.rounds as u64, "round"),
        output::count(summary.lanes.into(), "lane"),
        summary.protocol,
        &summary.plan.get(..16).unwrap_or(&summary.plan),
        &summary.trace.get(..16).unwrap_or(&summary.trace),
    );
    text(all, (24.0, 54.0), "quiet", &about);
    let mut x = WIDTH - RIGHT - 270.0;
    for (colour, what) in [
        (COMPUTING, "computing"),
        (SENDING, "sending"),
        (WAITING, "waiting"),
    ] {
        rect(all, (x, 22.0), (12.0, 12.0), colour, "");
        text(all, (x + 18.0, 32.0), "", what);
        x += 96.0;
    }
}

/// Where a time is.
fn at(time: u64, end: u64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * (time as f64 / end as f64)
}

fn colour(doing: Doing) -> &'static str {
    match doing {
        Doing::Computing => COMPUTING,
        Doing::Sending => SENDING,
        Doing::Waiting(_) => WAITING,
    }
}

/// Every stretch as a box that says what it is.
fn each(body: &mut String, y: f64, run: &Run, of: &[Stretch]) {
    let end = run.end.max(1);
    background(body, y);
    for s in of {
        let event = &run.events[s.event];
        let name = |index: u32| &run.header.participants[index as usize].name;
        let bytes = |all: u64| output::bytes(all);
        let what = match s.doing {
            Doing::Computing => {
                let commands = event.commands.iter();
                let list: Vec<String> = commands
                    .map(|(command, items)| format!("{command} × {items}"))
                    .collect();
                format!("computing: {}", list.join(", "))
            }
            Doing::Sending => {
                let to = event.sent.iter();
                let list: Vec<String> = to
                    .map(|(to, _, sent)| format!("{} to {}", bytes(*sent), name(*to)))
                    .collect();
                format!("sending {}", list.join(", "))
            }
            Doing::Waiting(whom) => format!("waiting for {}", name(whom)),
        };
        let title = format!(
            "{}, {}: {} — {what}",
            event.what(),
            output::count(event.rows.into(), "row"),
            output::seconds((s.to - s.from) as f64 / 1e9)
        );
        let (from, to) = (at(s.from, end), at(s.to, end));
        rect(
            body,
            (from, y),
            ((to - from).max(0.2), ROW),
            colour(s.doing),
            &title,
        );
    }
}

/// Per pixel, which share of the lanes' time went into what.
fn shares(body: &mut String, y: f64, end: u64, lanes: &[Vec<Stretch>]) {
    background(body, y);
    let columns = (WIDTH - LEFT - RIGHT) as usize;
    let mut share = vec![[0.0f64; 3]; columns];
    for s in lanes.iter().flatten() {
        let kind = match s.doing {
            Doing::Computing => 0,
            Doing::Sending => 1,
            Doing::Waiting(_) => 2,
        };
        let (from, to) = (at(s.from, end) - LEFT, at(s.to, end) - LEFT);
        let last = (to.ceil() as usize).min(columns);
        for (column, of) in share.iter_mut().enumerate().take(last).skip(from as usize) {
            let covered = to.min(column as f64 + 1.0) - from.max(column as f64);
            of[kind] += covered.max(0.0) / lanes.len() as f64;
        }
    }
    for (column, of) in share.iter().enumerate() {
        let mut bottom = y + ROW;
        for (part, fill) in of.iter().zip([COMPUTING, SENDING, WAITING]) {
            let height = part.min(1.0) * ROW;
            if height > 0.05 {
                bottom -= height;
                rect(
                    body,
                    (LEFT + column as f64, bottom),
                    (1.0, height),
                    fill,
                    "",
                );
            }
        }
    }
}

fn background(body: &mut String, y: f64) {
    rect(body, (LEFT, y), (WIDTH - LEFT - RIGHT, ROW), "#eef1f4", "");
}

/// Lines at round times.
fn grid(axis: &mut String, end: u64, (top, bottom): (f64, f64)) {
    let step = step(end);
    let mut time = 0;
    while time <= end {
        let x = at(time, end);
        let _ = writeln!(
            axis,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#d5dbe1\" stroke-width=\"1\"/>"
        );
        text(axis, (x, bottom + 16.0), "tick", &tick(time, step));
        time += step;
    }
}

/// A step of 1, 2 or 5 times a power of ten, such that there are at most ten.
fn step(end: u64) -> u64 {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if end / (factor * power) <= 10 {
                return factor * power;
            }
        }
        power *= 10;
    }
}

fn tick(time: u64, step: u64) -> String {
    let (unit, size) = match step {
        1_000_000_000.. => ("s", 1e9),
        1_000_000.. => ("ms", 1e6),
        _ => ("µs", 1e3),
    };
    format!("{} {unit}", time as f64 / size)
}

fn table(body: &mut String, y: &mut f64, summary: &Summary) {
    // Right edges of the columns of numbers.
    let x = [290.0, 400.0, 520.0, 940.0, 1040.0, 1140.0];
    text(body, (24.0, *y), "head", "participant");
    let titles = ["busy", "sending", "waiting"];
    for (title, x) in titles.iter().zip(x) {
        text(body, (x, *y), "head number", title);
    }
    text(body, (550.0, *y), "head", "waited for");
    for (title, x) in ["rounds", "sent", "received"].iter().zip(&x[3..]) {
        text(body, (*x, *y), "head number", title);
    }
    rule(body, *y + 6.0);
    *y += 24.0;
    let total = summary.seconds * f64::from(summary.lanes.max(1));
    let percent = |seconds: f64| {
        format!(
            "{} ({:.0} %)",
            output::seconds(seconds),
            100.0 * seconds / total.max(1e-12)
        )
    };
    for Spent {
        name,
        role,
        rounds,
        busy_seconds,
        sending_seconds,
        waiting_seconds,
        waited_for,
        bytes_sent,
        bytes_received,
        ..
    } in &summary.participants
    {
        text(body, (24.0, *y), "", &format!("{name}, {role}"));
        let times = [busy_seconds, sending_seconds, waiting_seconds];
        for (time, x) in times.into_iter().zip(x) {
            text(body, (x, *y), "number", &percent(*time));
        }
        let whom: Vec<String> = waited_for
            .iter()
            .take(3)
            .map(|(whom, time)| format!("{whom} {}", output::seconds(*time)))
            .collect();
        text(body, (550.0, *y), "", &whom.join(", "));
        let counts = [
            rounds.to_string(),
            output::bytes(*bytes_sent),
            output::bytes(*bytes_received),
        ];
        for (count, x) in counts.iter().zip(&x[3..]) {
            text(body, (*x, *y), "number", count);
        }
        *y += 20.0;
    }
    *y += 18.0;
}

fn waits(body: &mut String, y: &mut f64, summary: &Summary) {
    if summary.longest_waits.is_empty() {
        return;
    }
    text(body, (24.0, *y), "head", "longest waits");
    rule(body, *y + 6.0);
    *y += 24.0;
    for wait in &summary.longest_waits {
        let line = format!(
            "{} for {}, {} (lane {}), from {}",
            wait.who,
            wait.for_whom,
            wait.at,
            wait.lane,
            output::seconds(wait.since_seconds)
        );
        text(body, (100.0, *y), "number", &output::seconds(wait.seconds));
        text(body, (116.0, *y), "", &line);
        *y += 20.0;
    }
    for (file, by) in &summary.clocks_moved {
        let line = format!("the clock of {file} was moved by {by:+.6} s to fit the others");
        text(body, (24.0, *y), "quiet", &line);
        *y += 20.0;
    }
}

fn rule(body: &mut String, y: f64) {
    let right = WIDTH - RIGHT;
    let _ = writeln!(
        body,
        "<line x1=\"24\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"#d5dbe1\"/>"
    );
}

fn rect(
    body: &mut String,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    fill: &str,
    title: &str,
) {
    let _ = write!(
        body,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\""
    );
    if title.is_empty() {
        body.push_str("/>\n");
    } else {
        let _ = writeln!(
            body,
            " class=\"s\"><title>{}</title></rect>",
            escaped(title)
        );
    }
}

fn text(body: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>",
        escaped(text)
    );
}

/// Names come from job files of others: nothing of them is markup, and nothing breaks a document.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut all, c| {
        match c {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => all.push('\u{fffd}'),
            c => all.push(c),
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::{event, header};
    use super::super::summary::summarise;
    use super::*;

    #[test]
    fn names_are_no_markup() {
        let mut header = header();
        header.participants[0].name = "<b>&\"\u{0}".into();
        let run = Run {
            header,
            events: vec![event(0, [0, 10, 20, 50, 60])],
            moved: vec![],
            end: 60,
        };
        let svg = svg(&run, &summarise(&run));
        assert!(svg.contains("&lt;b&gt;&amp;&quot;\u{fffd}"));
        assert!(!svg.contains("<b>") && !svg.contains('\u{0}'));
        assert!(svg.contains("waiting for b"), "{svg}");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [1, 10, 11, 99, 1000, 123_456].map(step),
            [1, 1, 2, 10, 100, 20_000]
        );
        assert_eq!(tick(2_500_000, 500_000), "2500 µs");
        assert_eq!(tick(20_000_000, 10_000_000), "20 ms");
    }

    #[test]
    fn many_stretches_become_shares() {
        let events = (0..2000)
            .map(|k| {
                let mut e = event(0, [0, 10, 20, 50, 60].map(|t| t + k * 100));
                e.chunk = k as u32 + 1;
                e
            })
            .collect();
        let run = Run {
            header: header(),
            events,
            moved: vec![],
            end: 200_000,
        };
        let svg = svg(&run, &summarise(&run));
        // Three boxes per pixel at most, whatever the number of rounds.
        assert!(svg.matches("<rect").count() < 3100);
        assert!(svg.contains(COMPUTING) && svg.contains(WAITING));
    }
}
