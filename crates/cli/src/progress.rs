//! Progress on standard error: a bar with rate and remaining time on a terminal, a line every few seconds elsewhere, and
//! nothing at all for what takes less than a second.

use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use veil_engine::Progress;
use veil_session::Peer;

use crate::output;

/// What takes less is over before anybody wonders.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two lines of a log.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Shows how far a run is.
#[derive(Debug)]
pub(crate) struct Meter {
    start: Instant,
    /// Whose progress is shown.
    of: OnceLock<Peer>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Nothing was shown yet.
    Silent,
    Bar(ProgressBar),
    Lines {
        last: Instant,
    },
}

impl Meter {
    pub(crate) fn new() -> Self {
        Meter {
            start: Instant::now(),
            of: OnceLock::new(),
            state: Mutex::new(State::Silent),
        }
    }

    /// Shows the progress, if it is time to. Of several participants, the one that comes first.
    pub(crate) fn show(&self, progress: &Progress) {
        if self.of.get_or_init(|| progress.me) != &progress.me {
            return;
        }
        let elapsed = self.start.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Silent if elapsed < PATIENCE => {}
            State::Silent if std::io::stderr().is_terminal() => *state = State::Bar(bar(progress)),
            State::Silent => {
                line(progress, elapsed);
                *state = State::Lines {
                    last: Instant::now(),
                };
            }
            State::Bar(bar) => bar.set_position(progress.rows),
            State::Lines { last } if last.elapsed() < BETWEEN_LINES => {}
            State::Lines { last } => {
                *last = Instant::now();
                line(progress, elapsed);
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let State::Bar(bar) = &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.finish_and_clear();
        }
    }
}

fn bar(progress: &Progress) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {human_pos} of {human_len} rows, {per_sec}, {eta} left",
    );
    let bar = ProgressBar::with_draw_target(Some(progress.of), ProgressDrawTarget::stderr());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_position(progress.rows);
    bar
}

fn line(progress: &Progress, elapsed: Duration) {
    let Progress { rows, of, .. } = *progress;
    let rate = rows as f64 / elapsed.as_secs_f64();
    let rest = match rows {
        0 => String::new(),
        _ => format!(
            ", {rate:.0} rows/s, {} left",
            output::seconds((of - rows.min(of)) as f64 / rate)
        ),
    };
    eprintln!("{rows} of {of} rows{rest}");
}
