//! The course of a job at one participant, as a state machine without input and output.

use std::time::{Duration, Instant};

use veil_session::PartyId;

/// Attempts at a stage of a durable job, after the first. A participant that comes back after the last one asks for the job again.
pub const AGAIN: u32 = 8;

/// Turns in which all four parties take part: a run that was interrupted by chance is repeated once before a party is left out.
const OF_ALL: u32 = 2;

/// How often each of the four parties is left out: a run without the malicious one can be interrupted by chance too.
const OF_EACH: u32 = 2;

/// Turns of a job whose output is guaranteed; a participant that has seen so many fail gives it up.
pub const VIEWS: u32 = OF_ALL + OF_EACH * PartyId::FOUR.len() as u32;

/// The pause before the second attempt; each next one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause before an attempt that follows from what the participant heard, and not from a failure.
const AT_ONCE: Duration = Duration::from_millis(50);

/// Between two meetings of a guest with parties that are at another stage.
const BETWEEN: Duration = Duration::from_millis(300);

/// An owner whose values a party says to have keeps calling for so long, if not all parties have them: they may find out that one of them
/// has not.
const LINGER: Duration = Duration::from_secs(5);

/// The pause before a stage is tried again that has failed so often before; `None` if that is enough.
pub fn pause(failures: u32) -> Option<Duration> {
    (failures < AGAIN).then(|| (PAUSE * 2_u32.pow(failures)).min(LONGEST_PAUSE))
}

/// Which run of a job.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Stage {
    /// All of a job that is not durable.
    #[default]
    Whole,
    /// The owners' values come to the parties' stores; nothing is opened.
    Input,
    /// The parties load them, and do the rest. No owner takes part.
    Compute,
    /// The same without this party of the job.
    Finish(PartyId),
}

impl Stage {
    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Whole => "run",
            Stage::Input => "input stage",
            Stage::Compute => "compute stage",
            Stage::Finish(_) => "finishing stage",
        }
    }

    /// The stage that runs at a view of a job whose output is guaranteed, if `out` is out: first all four parties, then the four plans without
    /// one of them; a party that is out is left out at once, and in every other view.
    pub fn at_view(view: u32, out: Option<PartyId>) -> Stage {
        let one_of = |k: u32| Stage::Finish(PartyId::FOUR[k as usize % PartyId::FOUR.len()]);
        match (out, view.checked_sub(OF_ALL)) {
            (Some(_), Some(after)) if after % 2 == 1 => one_of(after / 2),
            (Some(out), _) => Stage::Finish(out),
            (None, Some(after)) => one_of(after),
            (None, None) => Stage::Compute,
        }
    }
}

/// How a participant takes part in a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum As {
    /// A party, which knows from its store at which stage it is.
    Party {
        /// Whether it answers the other parties' questions about the job, and asks them: a service does.
        serves: bool,
    },
    /// An owner, a recipient, or both: it follows the parties.
    Guest {
        /// Whether it has a part in the input stage.
        input: bool,
        /// Whether it has a part in the stages that compute.
        compute: bool,
    },
}

/// What of a job decides its course.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// How this participant takes part.
    pub me: As,
    /// Whether the job runs in two stages.
    pub two: bool,
    /// Whether three of the parties finish the job if the fourth is out.
    pub guaranteed: bool,
    /// How long the others have to turn up.
    pub wait: Duration,
}

/// Why a stage is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// Its run was interrupted.
    Interrupted,
    /// The parties were not at the same stage.
    Disagreed,
    /// Not all were met, and the parties may be at another stage.
    Unmet,
    /// A run has failed, and the parties go on at this view.
    View(u32),
    /// The others are at this view.
    Follow(u32),
    /// The parties are elsewhere than this one thought.
    Seen,
    /// Only recipients were missing.
    Recipients,
}

/// How an attempt at a stage ended. `F` is the caller's failure, which comes back when the job is given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended<F> {
    /// The stage is done.
    Done,
    /// The meeting was ended because all parties say that the inputs are kept.
    Kept,
    /// Another attempt may fare better.
    Again(Again, F),
    /// No attempt will.
    Failed(F),
}

/// What the caller found out: the answer to a [`Step`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard<F> {
    /// To [`Step::AskDone`], [`Step::AskKept`]: whether it is so. To [`Step::AskWanted`]: whether no party wants the values.
    Yes(bool),
    /// To [`Step::Locate`]: the stage by this participant's own store.
    At(Stage),
    /// To [`Step::AskStage`]: the stage at which the parties are by the word of enough of them, if they say so.
    Parties(Option<Stage>),
    /// To [`Step::Prepare`], [`Step::Rest`] and [`Step::Forget`]: it is done.
    Ready,
    /// To [`Step::Run`], or to any other step that failed.
    Ended {
        /// How.
        ended: Ended<F>,
        /// Whether the inputs that are kept are of no use any more.
        void: bool,
    },
}

impl<F> Heard<F> {
    /// A step failed for good.
    pub const fn failed(failure: F) -> Self {
        Heard::Ended {
            ended: Ended::Failed(failure),
            void: false,
        }
    }
}

/// Why a participant comes to a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    /// It begins there, or the stage before is done.
    Course,
    /// An attempt at it has ended.
    Again,
    /// The parties have kept the inputs without this participant.
    Kept,
    /// The parties went on at this stage.
    Moved,
}

/// What the caller does next. The answer goes to [`Participant::next`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<F> {
    /// Ask the other parties whether they have finished the job without this one.
    AskDone,
    /// Find out from the own store at which stage the job is.
    Locate,
    /// Make ready what this participant brings to the stage and takes from it.
    Prepare(Stage, Because),
    /// Meet the others and run the stage.
    Run(Stage),
    /// Ask the parties whether all of them have kept the inputs.
    AskKept,
    /// Ask the parties, each by itself, whether any wants this owner's values still.
    AskWanted,
    /// Ask the parties at which stage they are.
    AskStage,
    /// Wait.
    Rest {
        /// For so long, unless the caller is to stop.
        pause: Duration,
        /// Which attempt follows of how many, if this is counted.
        attempt: Option<(u32, u32)>,
        /// Why, if an attempt has failed.
        why: Option<F>,
    },
    /// Remove the inputs that are kept.
    Forget,
    /// The job is done at this participant.
    Finished,
    /// It is given up.
    GivenUp(GivenUp<F>),
}

/// Why a job is given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenUp<F> {
    /// The failure of the last attempt; nothing where the inputs were kept and are gone.
    pub failure: Option<F>,
    /// Why another attempt would have followed, if fewer had failed.
    pub again: Option<Again>,
}

/// What the next answer is to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaits {
    Start,
    Done,
    Location,
    Preparation,
    Run,
    /// Whether all have kept the inputs: before a run, or because a meeting failed.
    KeptBefore,
    KeptAfter,
    Wanted,
    /// The stage of the parties: after a meeting that failed, or after a run that was interrupted.
    PartiesNow,
    PartiesNext,
    /// The end of a pause, then what follows.
    Rest(Then),
    Forgotten(Then),
    Over,
}

/// What follows a pause or a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// From the beginning: where is the job?
    Start,
    /// The same stage, with what is ready.
    Run,
    /// The same stage, made ready anew.
    Prepare,
    /// Ask at which stage the parties are.
    AskStage,
    /// Decide what becomes of the failure that is held.
    Decide,
    Finish,
}

/// One participant in one job: which stage it is at, what it does next, when it gives up.
///
/// The caller performs each [`Step`] and gives the answer to [`Participant::next`], with the time at which it has it. The machine reads no
/// clock, and neither waits nor sends.
///
/// ```
/// use std::time::{Duration, Instant};
/// use veil_runtime::{As, Because, Course, Ended, Heard, Participant, Stage, Step};
///
/// let course = Course {
///     me: As::Guest { input: false, compute: true },
///     two: false,
///     guaranteed: false,
///     wait: Duration::from_secs(60),
/// };
/// let now = Instant::now();
/// let (mut me, first) = Participant::<String>::new(course, now);
/// assert_eq!(first, Step::Prepare(Stage::Whole, Because::Course));
/// assert_eq!(me.next(Heard::Ready, now), Step::Run(Stage::Whole));
/// let done = Heard::Ended { ended: Ended::Done, void: false };
/// assert_eq!(me.next(done, now + Duration::from_secs(3)), Step::Finished);
/// ```
#[derive(Debug)]
pub struct Participant<F> {
    course: Course,
    stage: Stage,
    because: Because,
    awaits: Awaits,
    failures: Failures,
    /// The inputs were kept a moment ago: no party can have finished the job without this one.
    together: bool,
    /// Whether they were kept before, and were gone when the next stage was to begin.
    gone: bool,
    /// Until when a guest is wanted at all.
    until: Instant,
    /// Since when it is at this stage.
    since: Instant,
    /// What the last attempt ended with, while it is not decided what follows.
    held: Option<(Option<Again>, F)>,
}

/// How often the runs of a job have failed, since the inputs were kept.
#[derive(Clone, Copy, Default, Debug)]
struct Failures {
    /// Runs that were interrupted. They alone make pauses longer: all parties see the same runs end, and come back at the same time.
    interrupted: u32,
    /// Meetings of parties that were not at the same stage, since the last run: some parties have more of them than others.
    disagreed: u32,
    /// Since when only recipients have been missing.
    waits: Option<Instant>,
}

impl Failures {
    /// The pause before the next run; `None` if that is enough.
    fn pause(&mut self, again: Again, course: &Course, now: Instant) -> Option<Duration> {
        if again != Again::Recipients {
            self.waits = None;
        }
        match again {
            Again::Interrupted => {
                self.disagreed = 0;
                let before = self.interrupted;
                self.interrupted += 1;
                if course.follows() {
                    // The parties come to the next view at once.
                    return pause(0).filter(|_| before < VIEWS);
                }
                pause(before)
            }
            Again::Disagreed => {
                self.disagreed += 1;
                pause(self.disagreed - 1).and(pause(0))
            }
            Again::Unmet => None,
            Again::View(view) => pause(0).filter(|_| view < VIEWS),
            Again::Follow(view) => Some(AT_ONCE).filter(|_| view < VIEWS),
            Again::Seen => Some(AT_ONCE),
            Again::Recipients => {
                let since = *self.waits.get_or_insert(now);
                Some(AT_ONCE).filter(|_| now.saturating_duration_since(since) < course.wait)
            }
        }
    }
}

impl Course {
    const fn is_party(&self) -> bool {
        matches!(self.me, As::Party { .. })
    }

    const fn serves(&self) -> bool {
        matches!(self.me, As::Party { serves: true })
    }

    /// Whether this participant follows parties that go on by themselves.
    const fn follows(&self) -> bool {
        self.guaranteed && !self.is_party()
    }

    /// Whether this participant has a part in a stage.
    const fn takes_part(&self, stage: Stage) -> bool {
        match (self.me, stage) {
            (As::Party { .. }, _) | (_, Stage::Whole) => true,
            (As::Guest { input, .. }, Stage::Input) => input,
            (As::Guest { compute, .. }, Stage::Compute | Stage::Finish(_)) => compute,
        }
    }
}

impl<F> Participant<F> {
    /// The machine and the first step.
    pub fn new(course: Course, now: Instant) -> (Self, Step<F>) {
        let mut me = Participant {
            course,
            stage: if course.two {
                Stage::Input
            } else {
                Stage::Whole
            },
            because: Because::Course,
            awaits: Awaits::Start,
            failures: Failures::default(),
            together: false,
            gone: false,
            until: now + course.wait,
            since: now,
            held: None,
        };
        let first = me.start(now);
        (me, first)
    }

    /// The stage at which it is.
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// Why it is at this stage.
    pub const fn because(&self) -> Because {
        self.because
    }

    /// Whether it goes on with inputs that an earlier run of the caller has kept.
    pub const fn is_resumed(&self) -> bool {
        !self.together && matches!(self.stage, Stage::Compute | Stage::Finish(_))
    }

    /// The next step, after the answer to the last one. An answer that does not fit the step is taken for a failure without a cause: the job is
    /// given up.
    pub fn next(&mut self, heard: Heard<F>, now: Instant) -> Step<F> {
        match (self.awaits, heard) {
            (Awaits::Over, _) | (Awaits::KeptAfter, Heard::Yes(false)) => self.give_up(),
            (Awaits::Done, Heard::Yes(true)) => self.forget(Then::Finish),
            (Awaits::Done, Heard::Yes(false)) => self.locate(),
            (Awaits::Location, Heard::At(stage)) => self.located(stage, now),
            (Awaits::Preparation, Heard::Ready) => self.arrive(),
            (Awaits::KeptBefore, Heard::Yes(false)) => self.run(),
            (Awaits::KeptBefore | Awaits::KeptAfter | Awaits::Wanted, Heard::Yes(true)) => {
                self.kept(now)
            }
            (Awaits::PartiesNow, Heard::Parties(Some(stage))) if stage != self.stage => {
                self.come(stage, Because::Moved, now)
            }
            (Awaits::PartiesNow, Heard::Parties(_)) | (Awaits::Wanted, Heard::Yes(false)) => {
                self.wanted(now)
            }
            (Awaits::PartiesNext, Heard::Parties(stage)) => match stage {
                Some(stage) if stage != self.stage => self.come(stage, Because::Moved, now),
                _ => self.come(self.stage, Because::Again, now),
            },
            (Awaits::Rest(then) | Awaits::Forgotten(then), Heard::Ready) => self.then(then, now),
            (Awaits::Run, Heard::Ended { ended, void }) => self.ended(ended, void, now),
            // A step before the run failed.
            (_, Heard::Ended { ended, .. }) => match ended {
                Ended::Failed(failure) => {
                    self.held = Some((None, failure));
                    self.give_up()
                }
                Ended::Again(again, failure) => {
                    self.held = Some((Some(again), failure));
                    self.decide(now)
                }
                Ended::Done | Ended::Kept => self.give_up(),
            },
            _ => self.give_up(),
        }
    }

    fn awaits(&mut self, awaits: Awaits, step: Step<F>) -> Step<F> {
        self.awaits = awaits;
        step
    }

    /// Where is the job?
    fn start(&mut self, now: Instant) -> Step<F> {
        if self.course.serves() && !self.together {
            return self.awaits(Awaits::Done, Step::AskDone);
        }
        if self.course.is_party() {
            return self.locate();
        }
        self.come(self.stage, self.because, now)
    }

    fn locate(&mut self) -> Step<F> {
        self.awaits(Awaits::Location, Step::Locate)
    }

    fn located(&mut self, stage: Stage, now: Instant) -> Step<F> {
        if self.together && stage == Stage::Input {
            // The inputs were kept, and are gone: they are asked for once more.
            if self.gone {
                return self.give_up();
            }
            self.gone = true;
        }
        self.come(stage, self.because, now)
    }

    /// Comes to a stage, or past one in which it has no part.
    fn come(&mut self, stage: Stage, because: Because, now: Instant) -> Step<F> {
        (self.stage, self.because, self.since) = (stage, because, now);
        self.held = None;
        if self.course.takes_part(stage) {
            return self.awaits(Awaits::Preparation, Step::Prepare(stage, because));
        }
        match stage {
            Stage::Input => self.come(Stage::Compute, because, now),
            _ => self.finish(),
        }
    }

    /// All is ready: an owner first asks whether its values are wanted.
    fn arrive(&mut self) -> Step<F> {
        if self.is_owner() {
            return self.awaits(Awaits::KeptBefore, Step::AskKept);
        }
        self.run()
    }

    fn run(&mut self) -> Step<F> {
        self.awaits(Awaits::Run, Step::Run(self.stage))
    }

    /// Whether it is at the stage as an owner whose values the parties may have already.
    fn is_owner(&self) -> bool {
        self.stage == Stage::Input && !self.course.is_party()
    }

    fn ended(&mut self, ended: Ended<F>, void: bool, now: Instant) -> Step<F> {
        let then = match ended {
            Ended::Done => return self.done(now),
            Ended::Kept => return self.kept(now),
            Ended::Again(again, failure) => {
                self.held = Some((Some(again), failure));
                Then::Decide
            }
            Ended::Failed(failure) => {
                self.held = Some((None, failure));
                Then::Decide
            }
        };
        if void {
            return self.forget(then);
        }
        self.then(then, now)
    }

    fn forget(&mut self, then: Then) -> Step<F> {
        self.awaits(Awaits::Forgotten(then), Step::Forget)
    }

    fn done(&mut self, now: Instant) -> Step<F> {
        self.failures = Failures::default();
        match self.stage {
            Stage::Input if self.course.is_party() => {
                (self.together, self.because) = (true, Because::Course);
                self.start(now)
            }
            Stage::Input => self.come(Stage::Compute, Because::Course, now),
            Stage::Compute | Stage::Finish(_) if self.course.is_party() => {
                self.forget(Then::Finish)
            }
            _ => self.finish(),
        }
    }

    fn finish(&mut self) -> Step<F> {
        self.awaits(Awaits::Over, Step::Finished)
    }

    fn give_up(&mut self) -> Step<F> {
        let (again, failure) = match self.held.take() {
            Some((again, failure)) => (again, Some(failure)),
            None => (None, None),
        };
        self.awaits(Awaits::Over, Step::GivenUp(GivenUp { failure, again }))
    }

    /// The parties go on without this owner's values.
    fn kept(&mut self, now: Instant) -> Step<F> {
        self.come(Stage::Compute, Because::Kept, now)
    }

    fn then(&mut self, then: Then, now: Instant) -> Step<F> {
        match then {
            Then::Start => self.start(now),
            Then::Run if self.is_owner() => self.awaits(Awaits::KeptBefore, Step::AskKept),
            Then::Run => self.run(),
            Then::Prepare => self.come(self.stage, Because::Again, now),
            Then::AskStage => self.awaits(Awaits::PartiesNext, Step::AskStage),
            Then::Decide => self.decide(now),
            Then::Finish => self.finish(),
        }
    }

    /// What follows an attempt that has failed.
    fn decide(&mut self, now: Instant) -> Step<F> {
        let Some((Some(again), _)) = &self.held else {
            return self.give_up();
        };
        let again = *again;
        if !self.course.is_party() && matches!(again, Again::Disagreed | Again::Unmet) {
            return self.apart(again, now);
        }
        let Some(pause) = self.failures.pause(again, &self.course, now) else {
            return self.give_up();
        };
        self.together = false;
        self.because = Because::Again;
        let then = match self.course.me {
            As::Party { .. } => Then::Start,
            As::Guest { .. } if self.course.guaranteed && self.stage != Stage::Input => {
                Then::AskStage
            }
            As::Guest { .. } => Then::Prepare,
        };
        let of = if self.course.follows() { VIEWS } else { AGAIN };
        let attempt = Some((self.failures.interrupted + self.failures.disagreed, of));
        let why = self.held.take().map(|(_, failure)| failure);
        self.awaits(
            Awaits::Rest(then),
            Step::Rest {
                pause,
                attempt,
                why,
            },
        )
    }

    /// A guest has not met the parties at the stage for which it came.
    fn apart(&mut self, again: Again, now: Instant) -> Step<F> {
        if !self.is_owner() {
            // It believes two of the parties, or a verdict, and not the one that says so first.
            return self.awaits(Awaits::PartiesNow, Step::AskStage);
        }
        if again == Again::Unmet {
            return self.awaits(Awaits::KeptAfter, Step::AskKept);
        }
        let here = now.saturating_duration_since(self.since);
        if now >= self.until || here >= LINGER {
            return self.awaits(Awaits::Wanted, Step::AskWanted);
        }
        self.once_more()
    }

    /// No party says that the guest's part is over: it tries the same stage again while there is time.
    fn wanted(&mut self, now: Instant) -> Step<F> {
        let here = now.saturating_duration_since(self.since);
        let late = !self.is_owner() || now >= self.until;
        if late && here >= self.course.wait {
            return self.give_up();
        }
        self.once_more()
    }

    /// The same stage, with what is ready.
    fn once_more(&mut self) -> Step<F> {
        let rest = Step::Rest {
            pause: BETWEEN,
            attempt: None,
            why: None,
        };
        self.awaits(Awaits::Rest(Then::Run), rest)
    }
}

#[cfg(test)]
mod tests;
