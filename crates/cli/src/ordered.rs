//! In which order the gates of a job are garbled, and who has chosen that: the job, the command line, or the device of the garbler.

use serde::{Deserialize, Serialize};
use veil_job::{Adversary, ProtocolKind, Schedule, Word};
use veil_program::{Job, JobProblem};
use veil_protocol::Plan;
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};

use crate::devices::Devices;
use crate::failure::{Code, Failure};
use crate::prepare;
use crate::stocks;
use crate::wishes::Wish;

/// The order of a plan, as reports tell it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Ordered {
    /// The word of a job file.
    pub(crate) schedule: String,
    /// Why it is this one.
    pub(crate) schedule_why: String,
}

impl Ordered {
    fn new(plan: &Plan, why: impl Into<String>) -> Self {
        Ordered {
            schedule: plan.job.security.schedule.word().to_owned(),
            schedule_why: why.into(),
        }
    }

    /// That of a job as it is written; nothing if it does not garble.
    pub(crate) fn written(job: &Job, plan: &Plan) -> Option<Self> {
        let garbles = job.spec().security.protocol == ProtocolKind::Yao;
        garbles.then(|| Ordered::new(plan, why(job)))
    }

    /// The same where a participant approves it: it approves the job, in whichever order that leaves open.
    pub(crate) fn approved(job: &Job, plan: &Plan) -> Option<Self> {
        let written = Self::written(job, plan)?;
        if !job.leaves_schedule() {
            return Some(written);
        }
        let why = "the usual one, unless the garbler states another";
        Some(Ordered::new(plan, why))
    }

    /// In a line of a report.
    pub(crate) fn line(&self) -> String {
        format!(
            "gates in the order {}: {}",
            self.schedule, self.schedule_why
        )
    }
}

/// What one participant knows of the order before it meets the others.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// The job is planned as it is written.
    Written,
    /// It garbles, and has chosen: what it tells the others.
    Chosen(Passes, Ordered),
    /// The job leaves it open, and another participant garbles.
    Open,
}

/// A job, its plan, and why its gates are in the order of the plan; nothing where none are garbled.
pub(crate) struct Planned {
    pub(crate) job: Job,
    pub(crate) plan: Passes,
    pub(crate) ordered: Option<Ordered>,
    /// The party and the device whose wish the length of chunks is, if it is one.
    pub(crate) wish: Option<Wish>,
}

/// The party that garbles, of two.
pub(crate) const GARBLER: Peer = Peer::Party(PartyId::TWO[0]);

/// Plans a run from stock for devices that have room for it: its gates are in the usual order.
pub(crate) fn stocked(job: Job, lanes: u16, devices: &Devices) -> Result<Planned, Failure> {
    let plan = stocks::plan(&job, lanes, true)?;
    devices.check(&plan, None)?;
    Ok(Planned {
        job,
        plan,
        ordered: None,
        wish: None,
    })
}

/// Plans a job for the devices of `own`, or of all participants, which have room for it. Where the job leaves the order of gates open, it is
/// that at which the garbler's device is best, if the device is known here and has room for its programs.
pub(crate) fn plan(
    job: Job,
    lanes: Option<u16>,
    devices: &Devices,
    own: Option<&str>,
) -> Result<Planned, Failure> {
    let plan = prepare::plan(&job, lanes)?;
    devices.known(&plan)?;
    // A participant alone cannot choose: all have chunks of one length.
    let wish = if own.is_none() {
        wish(&job, &plan, devices, None)?
    } else {
        None
    };
    let (job, plan) = match &wish {
        Some(wish) => {
            let job = chosen(job.in_chunks(wish.rows))?;
            let plan = prepare::plan(&job, lanes)?;
            (job, plan)
        }
        None => (job, plan),
    };
    let mut ordered = Ordered::written(&job, &plan);
    let garbles = own.is_none_or(|own| own == veil_engine::name_of(&plan, GARBLER));
    // Against a malicious party gates have one order.
    if job.leaves_schedule()
        && garbles
        && plan.job.security.adversary == Adversary::SemiHonest
        && let Some((device, rows)) = devices.preferred(&plan, GARBLER)?
    {
        let list = Schedule::List(rows);
        match on_rows(&job, list, lanes, devices, own) {
            Ok((job, plan)) => {
                let who = veil_engine::name_of(&plan, GARBLER);
                let rows = rows.count();
                let why = format!("{device}, on which `{who}` garbles, has {rows} rows");
                let ordered = Some(Ordered::new(&plan, why));
                return Ok(Planned {
                    job,
                    plan,
                    ordered,
                    wish,
                });
            }
            // In no other order, either?
            Err(failure) if failure.code() == Code::Device => {
                devices.check(&plan, own).map_err(|_| failure)?;
                let why = format!("{device} has no room for it in the order {}", list.word());
                ordered = Some(Ordered::new(&plan, why));
            }
            Err(failure) => return Err(failure),
        }
    }
    devices.check(&plan, own)?;
    Ok(Planned {
        job,
        plan,
        ordered,
        wish,
    })
}

/// The shortest chunk that the devices of parties, or of `own` alone, wish, where the job leaves its length open.
pub(crate) fn wish(
    job: &Job,
    plan: &Plan,
    devices: &Devices,
    own: Option<&str>,
) -> Result<Option<Wish>, Failure> {
    if !job.leaves_chunk_rows() {
        return Ok(None);
    }
    devices.wish(plan, own)
}

/// What `own` knows of the order of a job, whose plan as it is written is `plan`; it checks the devices of `own`.
pub(crate) fn known(
    job: &Job,
    plan: &Passes,
    devices: &Devices,
    own: &str,
) -> Result<Known, Failure> {
    if !job.leaves_schedule() {
        devices.check(plan, Some(own))?;
        return Ok(Known::Written);
    }
    if own != veil_engine::name_of(plan, GARBLER) {
        devices.check(plan, Some(own))?;
        return Ok(Known::Open);
    }
    let planned = self::plan(job.clone(), Some(plan.lanes), devices, Some(own))?;
    let ordered = planned.ordered.expect("a job that leaves an order garbles");
    Ok(Known::Chosen(planned.plan, ordered))
}

fn on_rows(
    job: &Job,
    list: Schedule,
    lanes: Option<u16>,
    devices: &Devices,
    own: Option<&str>,
) -> Result<(Job, Passes), Failure> {
    let job = as_stated(job, list)?;
    // It has a plan in another order: what is in the way is this one.
    let plan = prepare::plan(&job, lanes);
    let plan = plan.map_err(|failure| Failure::new(Code::Device, failure.to_string()))?;
    devices.check(&plan, own)?;
    Ok((job, plan))
}

/// The job with gates in this order, which it leaves open.
fn as_stated(job: &Job, schedule: Schedule) -> Result<Job, Failure> {
    chosen(job.ordered(schedule))
}

/// A job with a choice that it leaves open.
pub(crate) fn chosen(job: Result<Job, JobProblem>) -> Result<Job, Failure> {
    job.map_err(|problem| Failure::new(Code::Input, problem.to_string()))
}

/// The plan of a job that leaves the order open, in the order that its garbler has stated.
pub(crate) fn stated(
    job: &Job,
    plan: &Passes,
    schedule: Option<Schedule>,
) -> Result<(Passes, Ordered), Failure> {
    let who = veil_engine::name_of(plan, GARBLER);
    match schedule {
        Some(schedule) if schedule != plan.job.security.schedule => {
            let job = as_stated(job, schedule)?;
            let plan = prepare::plan(&job, Some(plan.lanes))?;
            let ordered = Ordered::new(&plan, format!("`{who}`, who garbles, has stated it"));
            Ok((plan, ordered))
        }
        _ => Ok((plan.clone(), Ordered::new(plan, why(job)))),
    }
}

/// Why a job has the order that it has as it is written.
fn why(job: &Job) -> String {
    let [file, chosen] = job.words().map(|words| words.schedule.is_some());
    let why = match (file, chosen) {
        (true, _) => "the job says so",
        (_, true) => "--schedule says so",
        _ => "the usual one",
    };
    why.to_owned()
}
