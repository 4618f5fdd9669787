//! One participant's lane, as a machine that is stepped.

mod ending;
mod lending;
mod passing;
mod quiet;
mod stocking;
mod waiting;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use veil_device::{Device, Fault, Outcome, Span, Tag, Workspace};
use veil_link::{Link, Meters};
use veil_protocol::passes::{ColumnId, Pass};
use veil_protocol::{Plan, Protocol, Spans, Task};
use veil_session::Frame;

use crate::abort::Abort;
use crate::run::{Advance, Means, Run, Stepped};
use crate::setup::{Binding, Handshake, Keys, Random};
use crate::shared::{Ready, Shared};
use crate::status::{NOTED_AFTER, Phase};
use crate::trace::Recorder;
use crate::words::LastWords;
use crate::{Acts, Clock, Data, DeviceFactory, LARGEST_WINDOW, Settings};
use passing::most_in_flight;
use quiet::Quiet;

/// How long chunks in flight wait before another one begins: longer than a message takes within a machine, so that a run there keeps to chunks that its cache
/// has room for, and much shorter than on a network.
const AHEAD_AFTER: Duration = Duration::from_micros(300);

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Something moved: step again.
    Moved,
    /// Everything waits for a peer or for another lane.
    Waiting,
    /// The lane is finished.
    Done,
}

enum Stage {
    Handshake(Box<Handshake>),
    SetUp(Run, Keys),
    /// Not the first lane: keys come from it.
    Keys,
    Chunks,
    /// Other lanes are still in the pass that this one has finished.
    Passing,
    /// The first lane: sums come from the others.
    Lanes,
    Totals(Run),
    LastWords(LastWords),
    /// Nothing is left to do but to hand on what the link holds up, until then: peers on the same thread take it meanwhile.
    Closing(Instant),
    Done,
}

/// The device of passes before that share a plan.
struct Before {
    /// The first of them.
    like: usize,
    device: Box<dyn Device>,
    /// Chunks in flight, at most.
    in_flight: usize,
}

/// One participant's lane. It owns its device and its end of the links.
pub struct Worker {
    acts: Arc<Acts>,
    /// The present pass.
    pass: usize,
    /// Its plan; in a move, that of the first pass.
    plan: Arc<Plan>,
    protocol: Arc<dyn Protocol>,
    lane: u16,
    device: Box<dyn Device>,
    /// Devices of passes before.
    devices: Vec<Before>,
    /// Makes the device of a pass that none of them serves.
    factory: DeviceFactory,
    link: Box<dyn Link>,
    shared: Arc<Shared>,
    data: Data,
    /// Those of each pass.
    ends: Arc<[Data]>,
    binding: Binding,
    window: usize,
    /// Chunks in flight of the present pass, at most.
    in_flight: usize,
    timeout: Duration,
    /// Until when the others have to turn up, while not all of them have.
    meeting: Option<Instant>,
    clock: Clock,
    stage: Stage,
    next_chunk: u32,
    /// The workspace of the first chunk, opened while there was nothing else to do.
    first: Option<(Frame, Workspace)>,
    active: VecDeque<Run>,
    /// Workspaces of chunks of the present pass that are over, with their rows, for those that follow.
    left: Vec<(u32, Workspace)>,
    /// Where columns are that a product reads and that are taken again: the place, the column and the component.
    borrowed: Vec<(Span, ColumnId, usize)>,
    /// This lane's share of the sums, per component.
    sums: Vec<Vec<u8>>,
    ended: Vec<(Tag, Outcome)>,
    tags: u64,
    /// Messages that the device moved itself.
    exchanged: Meters,
    quiet: Quiet,
    recorder: Option<Arc<dyn Recorder>>,
    /// The last step found nothing to do.
    idle: bool,
    /// The others were told that this lane waits.
    noted: bool,
    /// The last words are said and heard: a peer that leaves now takes nothing from this participant.
    settled: bool,
    waited: Duration,
    busy: Duration,
    stepped: Stepped,
}

impl Worker {
    /// Lane `lane` of a participant.
    pub(crate) fn new(
        acts: Arc<Acts>,
        lane: u16,
        mut link: Box<dyn Link>,
        shared: Arc<Shared>,
        (ends, binding, settings, random): (Arc<[Data]>, Binding, &Settings, Random<'_>),
    ) -> Result<Self, Abort> {
        let (plan, protocol) = (Arc::clone(acts.plan()), Arc::clone(acts.protocol(0)));
        let device = loaded(acts.pass(0), &*protocol, || (settings.device)());
        let device = device.inspect_err(|_| link.abort())?;
        if ends.len() != acts.count() {
            return Err(Abort::Missing(format!(
                "the program has {} passes, and there are data of {}",
                acts.count(),
                ends.len()
            )));
        }
        for (number, data) in ends.iter().enumerate() {
            let pass = acts.pass(number);
            check_ends((pass, acts.protocol(number).spans()), data)?;
        }
        crate::stored::check_stock(&acts, &ends)?;
        let data = ends[0].clone();
        crate::order::check(&plan, protocol.me(), data.source.as_deref())?;
        let stage = match lane {
            0 => Stage::Handshake(Box::new(Handshake::new(
                (&plan, acts.hash()),
                &*protocol,
                random,
                (settings.ot_cache.as_ref(), data.stock.as_ref()),
            )?)),
            _ => Stage::Keys,
        };
        let window = settings.window.max(device.window());
        let window = if protocol.spans().kept.is_empty() {
            window.clamp(1, LARGEST_WINDOW)
        } else {
            // One chunk after the other.
            1
        };
        let meeting = settings.meeting.filter(|_| lane == 0);
        if meeting.is_some() {
            shared.status.enter(Phase::Meeting);
        }
        let in_flight = most_in_flight(acts.pass(0), &*protocol, (&*device, window));
        Ok(Worker {
            in_flight,
            acts,
            pass: 0,
            plan,
            protocol,
            lane,
            device,
            devices: Vec::new(),
            factory: Arc::clone(&settings.device),
            link,
            shared,
            data,
            ends,
            binding,
            window,
            timeout: settings.timeout,
            meeting,
            clock: Arc::clone(&settings.clock),
            stage,
            next_chunk: u32::from(lane),
            first: None,
            active: VecDeque::new(),
            left: Vec::new(),
            borrowed: Vec::new(),
            sums: Vec::new(),
            ended: Vec::new(),
            tags: 0,
            exchanged: Meters::default(),
            quiet: Quiet::new((settings.clock)()),
            recorder: settings.trace.clone(),
            idle: false,
            noted: false,
            settled: false,
            waited: Duration::ZERO,
            busy: Duration::ZERO,
            stepped: Stepped::Alone,
        })
    }

    /// To be stepped in turn with its peers, by one thread: it stops after each message, so that they can take it.
    pub(crate) fn in_turn(self) -> Self {
        Worker {
            stepped: Stepped::InTurn,
            ..self
        }
    }

    /// Goes on as far as it can without waiting. After an error the lane is wiped, its peers are told, and it stays finished.
    ///
    /// # Errors
    /// [`Abort`] for which the lane, or another lane of the participant before it, gave up: a failed check, link, device, source
    /// or sink, a peer that gave up, or nothing that moved for [`Settings::timeout`](crate::Settings::timeout).
    pub fn step(&mut self) -> Result<Step, Abort> {
        if let Stage::Done = self.stage {
            return Ok(Step::Done);
        }
        if let Some(failed) = self.shared.failed.get() {
            let failed = failed.clone();
            return Err(self.give_up(failed));
        }
        let began = self.idle.then(|| (self.clock)());
        match self.try_step() {
            Ok(Step::Waiting) => {
                self.idle = true;
                let quiet = self.quiet.look((self.clock)());
                if quiet > NOTED_AFTER && !self.noted {
                    self.noted = true;
                    let waits = self.in_the_way();
                    let since = self.quiet.since();
                    self.shared.status.note(self.lane, since, waits);
                }
                match self.stall(quiet) {
                    None => Ok(Step::Waiting),
                    Some(stall) => Err(self.fail(stall)),
                }
            }
            Ok(step) => {
                if let Some(began) = began {
                    self.waited += began.saturating_duration_since(self.quiet.since());
                    self.idle = false;
                }
                self.quiet = Quiet::new((self.clock)());
                self.tell();
                Ok(step)
            }
            Err(abort) => Err(self.fail(abort)),
        }
    }

    /// Writes to the run's status how far this lane is.
    fn tell(&mut self) {
        let status = self.shared.status.lane(self.lane);
        status.moved(self.link.meters() + self.exchanged, self.waited, self.busy);
        status.have_passed(self.active.iter().map(Run::passed).sum());
        if let Stage::Done = self.stage {
            status.over();
        } else if std::mem::take(&mut self.noted) {
            status.goes_on();
        }
        if self.lane == 0 {
            self.shared.status.enter(match self.stage {
                Stage::Handshake(_) if self.meeting.is_some() => Phase::Meeting,
                Stage::Handshake(_) | Stage::Keys => Phase::Handshake,
                Stage::SetUp(..) => Phase::SetUp,
                Stage::Chunks | Stage::Passing => Phase::Rows,
                Stage::Lanes | Stage::Totals(_) | Stage::LastWords(_) | Stage::Closing(_) => {
                    Phase::Opening
                }
                Stage::Done => Phase::Done,
            });
        }
    }

    /// Ends the lane from outside, and gives the reason to report: `why`, unless the run had failed already.
    pub fn stop(&mut self, why: Abort) -> Abort {
        self.fail(why)
    }

    fn try_step(&mut self) -> Result<Step, Abort> {
        let mut moved = match self.link.poll() {
            Ok(moved) => moved,
            Err(error) => {
                self.bear(error)?;
                false
            }
        };
        moved |= match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Handshake(mut handshake) => {
                let step = handshake.step(
                    &self.plan,
                    &*self.protocol,
                    &self.binding,
                    self.data.source.as_deref(),
                    &self.shared.misaligned,
                    &mut *self.link,
                );
                match step? {
                    None => {
                        // Now that every peer is there, the time-out runs.
                        let met = handshake.is_met() && self.meeting.take().is_some();
                        self.stage = Stage::Handshake(handshake);
                        if self.meeting.is_none() {
                            self.open_first()?;
                        }
                        met
                    }
                    Some(mut keys) => {
                        self.meeting = None;
                        if let Some(made) = keys.transfers.take() {
                            self.shared.hold(*made);
                        }
                        self.begin_stock(&keys)?;
                        let trace = self.shared.status.name(keys.session);
                        if let Some(recorder) = &self.recorder {
                            recorder.session(self.protocol.me(), trace);
                        }
                        self.load(&keys)?;
                        self.set_up(keys)?;
                        true
                    }
                }
            }
            Stage::SetUp(mut run, keys) => {
                let advance = self.advance(&mut run)?;
                if let Advance::Feeds { place, cycle } = advance {
                    self.feed(&run, place, cycle)?;
                }
                if let Advance::TaskDone(_) = advance {
                    let job_wide = self.read(&run, |s| &s.job_wide)?;
                    self.keep(&run, |s| &s.job_keeps)?;
                    self.device.close(run.workspace);
                    self.stage = Stage::Chunks;
                    self.shared.note_ready();
                    // Other lanes wait for this.
                    if self.shared.ready.set(Ready { keys, job_wide }).is_err() {
                        return Err(Fault::Unknown("a fresh session").into());
                    }
                    true
                } else {
                    self.stage = Stage::SetUp(run, keys);
                    advance != Advance::Waiting
                }
            }
            Stage::Keys => match self.shared.clone().ready.get() {
                None => {
                    self.stage = Stage::Keys;
                    self.open_first()?;
                    false
                }
                Some(ready) => {
                    self.link.bind(ready.keys.session);
                    self.load(&ready.keys)?;
                    self.stage = Stage::Chunks;
                    true
                }
            },
            Stage::Chunks => self.chunks()?,
            Stage::Passing => {
                if self.shared.pass.load(Ordering::Acquire) > self.pass {
                    self.next_pass()?;
                    true
                } else {
                    self.stage = Stage::Passing;
                    false
                }
            }
            Stage::Lanes => {
                let others = usize::from(self.plan.lanes) - 1;
                if self.shared.lanes_done.load(Ordering::Acquire) < others {
                    self.stage = Stage::Lanes;
                    false
                } else if self.plan.has_totals() {
                    self.totals()?;
                    true
                } else {
                    self.conclude()?;
                    true
                }
            }
            Stage::Totals(mut run) => match self.advance(&mut run)? {
                Advance::Done => {
                    self.shared.note_done();
                    self.device.close(run.workspace);
                    self.conclude()?;
                    true
                }
                Advance::TaskDone(Task::OpenTotals(_)) => {
                    self.put(&run, |s| &s.opened_sums)?;
                    self.keep(&run, |s| &s.keeps_sums)?;
                    self.stage = Stage::Totals(run);
                    true
                }
                advance => {
                    self.note_received(&run);
                    self.stage = Stage::Totals(run);
                    advance != Advance::Waiting
                }
            },
            Stage::LastWords(mut words) => {
                if words.step(&mut *self.link)? {
                    self.settled = true;
                    self.close();
                    true
                } else {
                    self.stage = Stage::LastWords(words);
                    false
                }
            }
            Stage::Closing(until) => {
                if self.link.under_way() && (self.clock)() < until {
                    self.stage = Stage::Closing(until);
                    false
                } else {
                    return self.closed(until);
                }
            }
            Stage::Done => return Ok(Step::Done),
        };
        Ok(if moved { Step::Moved } else { Step::Waiting })
    }

    fn load(&mut self, keys: &Keys) -> Result<(), Abort> {
        self.device.bind(keys.session);
        for (id, key) in &keys.secrets {
            match self.acts.count() {
                1 => self.device.load_key(*id, key)?,
                _ => self.device.load_key(*id, &key.of_pass(self.pass as u16))?,
            }
        }
        Ok(())
    }

    fn advance(&mut self, run: &mut Run) -> Result<Advance, Abort> {
        run.advance(&mut Means {
            protocol: &*self.protocol,
            device: &mut *self.device,
            link: &mut *self.link,
            ended: &mut self.ended,
            tags: &mut self.tags,
            exchanged: &mut self.exchanged,
            busy: &mut self.busy,
            recorder: self.recorder.as_deref(),
            stepped: self.stepped,
        })
    }
}

/// Refuses to start without the ends that a pass needs, which may open for parties alone.
fn check_ends((pass, spans): (&Pass, &Spans), data: &Data) -> Result<(), Abort> {
    let ports = [&spans.inputs, &spans.cycle_inputs, &spans.job_inputs];
    if data.source.is_none() && !ports.iter().all(|ports| ports.is_empty()) {
        return Err(Abort::Missing(
            "this participant supplies values to the job, and has no data".into(),
        ));
    }
    // What parties open of claims and comparisons goes nowhere.
    let mut opened = spans.opened.iter().chain(&spans.opened_sums);
    let given = pass.compares().is_none() && opened.any(|(port, _)| pass.claimed(*port).is_none());
    if given && data.sink.is_none() {
        return Err(Abort::Missing(
            "this participant gets results of the job, and has nowhere to put them".into(),
        ));
    }
    crate::stored::check(spans, data)
}

/// A fresh device with the programs of the protocol.
fn loaded(
    pass: &Pass,
    protocol: &dyn Protocol,
    fresh: impl FnOnce() -> Result<Box<dyn Device>, Fault>,
) -> Result<Box<dyn Device>, Fault> {
    let mut device = fresh()?;
    let workspaces = pass.rows().map(|plan| plan.workspaces_of_programs());
    let programs = protocol.programs().iter();
    let programs = programs.zip(workspaces.unwrap_or_default());
    for (index, (program, of)) in programs.enumerate() {
        let id = device.load(program, protocol.layout(of))?;
        if id.0 as usize != index {
            return Err(Fault::Unknown("a fresh device"));
        }
    }
    Ok(device)
}
