//! A run in the background: its progress, its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures_core::Stream;
use veil_engine::Progress;

use crate::Outcome;
use crate::error::{Code, Error};

/// A run that goes on in threads of its own.
///
/// It is a [`Future`] of the outcome, for any executor; [`Running::join`] waits without one. When it is dropped before its end, the run is
/// stopped.
pub struct Running(Arc<Shared>);

/// How far a run is, again and again: an [`Iterator`] that waits, and a [`Stream`]. Each item has what is known of every participant that runs in
/// this process; what changes faster than it is read comes once. It ends with the run.
pub struct Updates {
    shared: Arc<Shared>,
    seen: u64,
}

/// What a run and those who look at it share.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    latest: Vec<Progress>,
    changes: u64,
    outcome: Option<Result<Outcome, Error>>,
    over: bool,
    wakers: Vec<Waker>,
}

impl Shared {
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.lock();
            change(&mut state);
            state.changes += 1;
            std::mem::take(&mut state.wakers)
        };
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes how far a participant is.
    pub(crate) fn goes(&self, progress: Progress) {
        self.change(|state| {
            let known = state.latest.iter_mut();
            match { known }.find(|known| known.me == progress.me) {
                Some(known) => *known = progress,
                None => state.latest.push(progress),
            }
        });
    }
}

impl State {
    fn wakes(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }
}

impl Running {
    /// Starts `run` in a thread.
    pub(crate) fn start(
        run: impl FnOnce(&Shared) -> Result<Outcome, Error> + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let started = thread::Builder::new()
            .name("veilworks".into())
            .spawn(move || {
                let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&theirs)));
                let ran = ran.unwrap_or_else(|_| {
                    let message = "the run ended by a defect of this library; please report it";
                    Err(Error::new(Code::Other, message))
                });
                theirs.change(|state| (state.outcome, state.over) = (Some(ran), true));
            });
        if let Err(error) = started {
            let message = format!("no thread can be started: {error}");
            let failed = Err(Error::new(Code::Other, message));
            shared.change(|state| (state.outcome, state.over) = (Some(failed), true));
        }
        Running(shared)
    }

    /// How far it is, from now on.
    pub fn progress(&self) -> Updates {
        Updates {
            shared: Arc::clone(&self.0),
            seen: 0,
        }
    }

    /// Waits for its end, but no longer than `most`: whether it is over. For callers that look after other things meanwhile.
    pub fn wait(&self, most: Duration) -> bool {
        let state = self.0.lock();
        let waited = self
            .0
            .changed
            .wait_timeout_while(state, most, |state| !state.over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.over
    }

    /// What is known of every participant that runs in this process.
    pub fn latest(&self) -> Vec<Progress> {
        self.0.lock().latest.clone()
    }

    /// Asks the run to end: the other participants are told, and nothing more is opened. It ends with an [`Error`].
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The [`Error`] that ended the run.
    pub fn join(self) -> Result<Outcome, Error> {
        let mut state = self.0.lock();
        loop {
            if let Some(outcome) = state.outcome.take() {
                return outcome;
            }
            if state.over {
                return Err(taken());
            }
            let waited = self.0.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The outcome was given to another caller.
fn taken() -> Error {
    Error::new(Code::Usage, "the outcome of this run was taken before")
}

impl Future for Running {
    type Output = Result<Outcome, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None if state.over => Poll::Ready(Err(taken())),
            None => {
                state.wakes(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Updates {
    /// What is known, if it is not what was seen before; nothing more after the end.
    fn news(&mut self, state: &State) -> Poll<Option<Vec<Progress>>> {
        if state.changes > self.seen && !state.latest.is_empty() {
            self.seen = state.changes;
            return Poll::Ready(Some(state.latest.clone()));
        }
        if state.over {
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

impl Iterator for Updates {
    type Item = Vec<Progress>;

    fn next(&mut self) -> Option<Self::Item> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            if let Poll::Ready(news) = self.news(&state) {
                return news;
            }
            let waited = shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Stream for Updates {
    type Item = Vec<Progress>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let news = self.news(&state);
        if news.is_pending() {
            state.wakes(context.waker());
        }
        news
    }
}
