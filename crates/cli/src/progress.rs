//! Progress on standard error: a bar with rate and remaining time on a terminal, a line every few seconds elsewhere, and
//! nothing at all for what takes less than a second. Or, if it is asked for, every participant at once.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};
use veil_engine::{Phase, Progress};
use veil_runtime::Passes;
use veil_session::Peer;

use crate::output;

/// A run that takes less shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two lines of a log.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Between two lines about the same participant, where all are watched.
const BETWEEN_CHANGES: Duration = Duration::from_secs(1);

/// How far a participant is, as one process tells another.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    /// The participant, as in messages.
    me: [u8; 3],
    rows: u64,
    of: u64,
    cycles: u64,
    passed: u64,
    phase: String,
    sent: u64,
    received: u64,
    /// Whom it waits for, and for how many milliseconds nothing has moved.
    waits: Vec<[u8; 3]>,
    waiting: u64,
}

impl From<&Progress> for Snapshot {
    fn from(progress: &Progress) -> Self {
        let mut waits: Vec<[u8; 3]> = progress.waits.iter().map(|w| w.peer.to_bytes()).collect();
        waits.sort_unstable();
        waits.dedup();
        Snapshot {
            me: progress.me.to_bytes(),
            rows: progress.rows,
            of: progress.of,
            cycles: progress.cycles,
            passed: progress.passed,
            phase: progress.phase.name().to_owned(),
            sent: progress.sent,
            received: progress.received,
            waits,
            waiting: progress.waiting.as_millis() as u64,
        }
    }
}

impl Snapshot {
    /// How many are done, of how many, and of what: of rows, or of the cycles of all rows.
    fn done(&self) -> (u64, u64, &'static str) {
        match self.cycles {
            1 => (self.rows, self.of, "rows"),
            cycles => (self.passed, self.of.saturating_mul(cycles), "cycles"),
        }
    }
}

/// What is done after less time says nothing about the rest, unless it is a good part of all.
const SOON: Duration = Duration::from_secs(2);
/// A good part: one in so many.
const PART: u64 = 20;

/// Shows how far a run is.
pub(crate) struct Meter {
    /// When the run began: nothing is done while its participants meet.
    start: Mutex<Instant>,
    /// What runs, if it is more than one pass.
    passes: Option<Passes>,
    state: Mutex<State>,
}

/// The pass that is under way, if there are several.
fn pass(passes: Option<&Passes>, progress: &Snapshot) -> Option<String> {
    let passes = passes?;
    let (at, name) = passes.under_way(progress.rows)?;
    let name = match name {
        "" => String::new(),
        name => format!(": {name}"),
    };
    Some(format!("pass {} of {}{name}", at + 1, passes.count()))
}

enum State {
    /// Nothing was shown yet.
    Silent {
        /// Whose progress will be shown, of those heard of: parties come first, for owners and recipients count rows
        /// that they are done with long before the parties are.
        of: Option<[u8; 3]>,
    },
    Bar([u8; 3], ProgressBar),
    Lines {
        of: [u8; 3],
        last: Instant,
    },
    /// Every participant.
    Board(Board),
}

impl Meter {
    /// Of what runs.
    pub(crate) fn new(passes: &Passes) -> Self {
        Self::of(passes, State::Silent { of: None })
    }

    /// Shows every participant at once.
    pub(crate) fn board(passes: &Passes) -> Self {
        Self::of(passes, State::Board(Board::new(passes)))
    }

    fn of(passes: &Passes, state: State) -> Self {
        Meter {
            start: Mutex::new(Instant::now()),
            passes: (passes.count() > 1).then(|| passes.clone()),
            state: Mutex::new(state),
        }
    }

    /// Shows the progress, if it is time to.
    pub(crate) fn show(&self, progress: &Snapshot) {
        let meets = progress.phase == Phase::Meeting.name();
        let elapsed = {
            let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
            if meets {
                *start = Instant::now();
            }
            start.elapsed()
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let me = progress.me;
        let pass = pass(self.passes.as_ref(), progress);
        let pass = pass.as_deref();
        match &mut *state {
            State::Board(board) => board.show(progress, pass, elapsed),
            _ if meets => {}
            State::Silent { of } if elapsed < PATIENCE => {
                *of = Some(of.map_or(me, |of| of.min(me)));
            }
            State::Silent { of: Some(of) } if *of != me => {}
            State::Silent { .. } if std::io::stderr().is_terminal() => {
                *state = State::Bar(me, bar(progress, pass, elapsed));
            }
            State::Silent { .. } => {
                line(progress, pass, elapsed);
                *state = State::Lines {
                    of: me,
                    last: Instant::now(),
                };
            }
            State::Bar(of, bar) if *of == me => {
                bar.set_position(progress.done().0);
                bar.set_message(pass.map_or_else(|| rest(progress, elapsed), str::to_owned));
            }
            State::Lines { of, last } if *of == me && last.elapsed() >= BETWEEN_LINES => {
                *last = Instant::now();
                line(progress, pass, elapsed);
            }
            State::Bar(..) | State::Lines { .. } => {}
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Bar(_, bar) => bar.finish_and_clear(),
            // What was seen last stays on the screen.
            State::Board(board) => board.lines.iter().for_each(|line| line.bar.abandon()),
            State::Silent { .. } | State::Lines { .. } => {}
        }
    }
}

fn bar(progress: &Snapshot, pass: Option<&str>, elapsed: Duration) -> ProgressBar {
    let (done, of, unit) = progress.done();
    let template = match pass {
        Some(_) => "{bar:30} {msg}".to_owned(),
        None => format!("{{bar:30}} {{human_pos}} of {{human_len}} {unit}{{msg}}"),
    };
    let style = ProgressStyle::with_template(&template);
    let bar = ProgressBar::with_draw_target(Some(of), ProgressDrawTarget::stderr());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_position(done);
    bar.set_message(pass.map_or_else(|| rest(progress, elapsed), str::to_owned));
    bar
}

fn line(progress: &Snapshot, pass: Option<&str>, elapsed: Duration) {
    if let Some(pass) = pass {
        eprintln!("{pass}");
        return;
    }
    let (done, of, unit) = progress.done();
    eprintln!("{done} of {of} {unit}{}", rest(progress, elapsed));
}

/// How fast it goes and how long it still takes, once enough is done to tell; and what is left to do when all rows are done.
fn rest(progress: &Snapshot, elapsed: Duration) -> String {
    let (done, of, unit) = progress.done();
    if done >= of && progress.phase != Phase::Rows.name() {
        return format!(", {}", progress.phase);
    }
    let tells = elapsed >= SOON || done.saturating_mul(PART) >= of;
    if done == 0 || done >= of || !tells {
        return String::new();
    }
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = output::seconds((of - done) as f64 / rate);
    format!(", {rate:.0} {unit}/s, {left} left")
}

/// A line per participant: what it is about, how fast, how many bytes, whom it waits for.
#[derive(Debug)]
struct Board {
    lines: Vec<Line>,
    /// Lines of text instead, for what is no terminal.
    plain: bool,
}

#[derive(Debug)]
struct Line {
    me: [u8; 3],
    name: String,
    bar: ProgressBar,
    /// What was said last, and when.
    said: Option<(String, Instant)>,
}

impl Board {
    fn new(plan: &Passes) -> Self {
        let all = match plan.count() {
            1 => plan.job.rows().saturating_mul(plan.cycle_count()),
            _ => plan.rows_of_all(),
        };
        let plain = !std::io::stderr().is_terminal();
        let target = if plain {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bars = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix} {bar:16.cyan/black} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let peers = veil_engine::participants(plan);
        let name = |peer: &Peer| veil_engine::name_of(plan, *peer);
        let width = peers.iter().map(|peer| name(peer).chars().count()).max();
        let lines = peers.iter().map(|peer| {
            let bar = bars.add(ProgressBar::new(all).with_style(style.clone()));
            bar.set_prefix(format!(
                "{:<width$}",
                name(peer),
                width = width.unwrap_or(0)
            ));
            bar.set_message(Phase::Meeting.name());
            Line {
                me: peer.to_bytes(),
                name: name(peer).to_owned(),
                bar,
                said: None,
            }
        });
        Board {
            lines: lines.collect(),
            plain,
        }
    }

    fn show(&mut self, progress: &Snapshot, pass: Option<&str>, elapsed: Duration) {
        let names: Vec<([u8; 3], String)> = self
            .lines
            .iter()
            .map(|line| (line.me, line.name.clone()))
            .collect();
        let Some(line) = self.lines.iter_mut().find(|line| line.me == progress.me) else {
            return;
        };
        let mut text = describe(progress, elapsed, &names);
        if let Some(pass) = pass {
            let _ = write!(text, "  {pass}");
        }
        if self.plain {
            // Times go on by themselves: what is new is another phase, other rows, or another one to wait for.
            let news = format!(
                "{} {} {:?}",
                progress.phase,
                progress.done().0,
                progress.waits
            );
            let due = match &line.said {
                Some((said, at)) => *said != news && at.elapsed() >= BETWEEN_CHANGES,
                None => true,
            };
            if due
                || progress.phase == Phase::Done.name()
                    && line.said.as_ref().is_some_and(|s| s.0 != news)
            {
                eprintln!("{}: {text}", line.name);
                line.said = Some((news, Instant::now()));
            }
        } else {
            line.bar.set_position(progress.done().0);
            line.bar.set_message(text);
        }
    }
}

/// One participant in a line.
fn describe(progress: &Snapshot, elapsed: Duration, names: &[([u8; 3], String)]) -> String {
    let mut text = format!("{:<9}", progress.phase);
    let (done, _, unit) = progress.done();
    if done > 0 {
        let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
        let _ = write!(text, " {rate:>9.0} {unit}/s");
    } else {
        text += &" ".repeat(17);
    }
    let (sent, received) = (
        output::bytes(progress.sent),
        output::bytes(progress.received),
    );
    let _ = write!(text, "  sent {sent:>8}  received {received:>8}");
    if !progress.waits.is_empty() {
        let name = |peer: &[u8; 3]| {
            let known = names.iter().find(|(me, _)| me == peer);
            known.map_or("a participant", |(_, name)| name.as_str())
        };
        let whom: Vec<&str> = progress.waits.iter().map(name).collect();
        let _ = write!(
            text,
            "  waits for {} since {}",
            whom.join(", "),
            output::seconds(progress.waiting as f64 / 1e3)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use veil_engine::{Progress, Wait};
    use veil_session::{Channel, Frame, PartyId, StepId};

    use super::*;

    #[test]
    fn an_estimate_begins_when_enough_is_done() {
        let me = Peer::Recipient(0);
        let after = |rows, millis, phase| {
            let progress = Progress {
                rows,
                phase,
                ..Progress::new(me, 1000)
            };
            rest(&Snapshot::from(&progress), Duration::from_millis(millis))
        };
        assert_eq!(after(0, 5000, Phase::Rows), "");
        assert_eq!(after(10, 1500, Phase::Rows), "");
        assert_eq!(after(50, 500, Phase::Rows), ", 100 rows/s, 9.5 s left");
        assert_eq!(after(10, 2000, Phase::Rows), ", 5 rows/s, 3 min left");
        assert_eq!(after(1000, 4000, Phase::Rows), "");
        assert_eq!(after(1000, 4000, Phase::Opening), ", opening");
    }

    #[test]
    fn a_line_says_who_waits_for_whom() {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: 8,
        };
        let wait = Wait {
            peer: b,
            at: Channel {
                frame,
                step: StepId { place: 9, cycle: 0 },
                part: 0,
            },
            sending: false,
        };
        let progress = Progress {
            rows: 500,
            phase: Phase::Rows,
            sent: 1500,
            waits: vec![wait, wait],
            waiting: Duration::from_millis(2500),
            ..Progress::new(a, 1000)
        };
        let names = [
            (a.to_bytes(), "ann".to_owned()),
            (b.to_bytes(), "bob".to_owned()),
        ];
        assert_eq!(
            describe(&Snapshot::from(&progress), Duration::from_secs(1), &names),
            "rows            500 rows/s  sent   1.5 kB  received      0 B  waits for bob since 2.5 s"
        );
        // Two rows and a half, of four cycles each.
        let cycles = Snapshot::from(&Progress {
            cycles: 4,
            passed: 10,
            ..progress
        });
        assert_eq!(cycles.done(), (10, 4000, "cycles"));
        let text = describe(&cycles, Duration::from_secs(1), &names);
        assert!(text.starts_with("rows             10 cycles/s"), "{text}");
        let start = Snapshot::from(&Progress::new(a, 1000));
        let text = describe(&start, Duration::from_secs(1), &names);
        assert!(
            text.starts_with("meeting") && !text.contains("waits"),
            "{text}"
        );
    }
}
