//! An owner that comes for the input stage of a durable job: whether the parties want its values still.
//!
//! It may have been ended after the parties had all they need, and then be started again: they go on without it, and perhaps wait for no
//! participant when it calls. So it asks them, before it calls and for as long as it is not let in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_node::stages::{self, Inputs};

use super::roles::{self, Role};
use super::{At, Engagement};

/// How often it asks at first; each next time it waits twice as long.
const FIRST: Duration = Duration::from_millis(500);

/// How long it waits at most.
const LONGEST: Duration = Duration::from_secs(10);

/// How often the watching thread looks whether that is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

/// What an owner knows of the job since it came.
pub(super) struct Owner<'a> {
    engagement: &'a Engagement<'a>,
    at: At<'a>,
    /// What the parties have said since.
    inputs: Mutex<Inputs>,
}

impl<'a> Owner<'a> {
    pub(super) fn new(engagement: &'a Engagement<'a>, at: At<'a>) -> Self {
        Owner {
            engagement,
            at,
            inputs: Mutex::default(),
        }
    }

    /// Asks the parties, and looks at all they have said since it came.
    fn ask(&self, look: impl FnOnce(&Inputs) -> bool) -> bool {
        let said = stages::inputs(self.engagement.home, self.at.stages);
        // Every change leaves it whole.
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.hear(said);
        look(&inputs)
    }

    /// Whether all parties say that they have kept the inputs. A job that was done before it came is asked for again.
    pub(super) fn is_over(&self) -> bool {
        self.ask(Inputs::are_kept)
    }

    /// Whether enough parties say that they have its values, and none that it wants them, when one was at a later stage that it called as
    /// `role`. So it calls each by itself: those in the foreground say nothing else, and one alone may lie.
    pub(super) fn is_wanted_by_no_party(&self, role: Option<&Role>) -> bool {
        let past = role.map(|role| roles::past(self.engagement, self.at, role));
        self.ask(|inputs| inputs.are_wanted_by_no_party(&past.unwrap_or_default()))
    }

    /// Takes part, with what ends its meeting; nothing, if all parties say meanwhile, and before it is let in, that the inputs are kept.
    pub(super) fn unless_over<T, E>(
        &self,
        began: &(dyn Fn() -> bool + Sync),
        take_part: impl FnOnce(&AtomicBool) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let (halt, done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let watcher =
                scope.spawn(|| self.watch(&halt, &|| done.load(Ordering::Relaxed) || began()));
            let ran = take_part(&halt);
            done.store(true, Ordering::Relaxed);
            let over = watcher
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (ran.is_ok() || !over).then_some(ran)
        })
    }

    /// Asks again and again until there is no need, and ends the meeting if the inputs are kept; whether they are.
    fn watch(&self, halt: &AtomicBool, needless: &dyn Fn() -> bool) -> bool {
        let (mut pause, mut asked) = (FIRST, Instant::now());
        while !needless() {
            if self.engagement.stop.flag().load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            } else if asked.elapsed() >= pause {
                if self.is_over() && !needless() {
                    halt.store(true, Ordering::Relaxed);
                    return true;
                }
                (pause, asked) = ((pause * 2).min(LONGEST), Instant::now());
            }
            thread::sleep(GLANCE);
        }
        false
    }
}
