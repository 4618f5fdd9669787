//! The runs of a job at one participant: one, or the two stages of a durable job; and what a party loads and keeps in each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use veil_engine::{Abort, name_of};
use veil_link::tls::SetupError;
use veil_program::{Job, Lowered, ShareSink, ShareSource, Source};
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer, PlanHash};
use veil_store::{Store, StoreError, StoreKey};

use crate::home::hex;
use crate::participant::{Neighbours, PartError};
use crate::{Home, HomeError, Members};

/// Attempts at a stage of a durable job, after the first. Whoever comes back after the last one asks for the job again.
pub const AGAIN: u32 = 8;

/// The pause before the second attempt; each next one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause before a stage is tried again that has failed so often before; `None` if that is enough.
pub fn pause(failures: u32) -> Option<Duration> {
    (failures < AGAIN).then(|| (PAUSE * 2_u32.pow(failures)).min(LONGEST_PAUSE))
}

/// Sleeps so long, unless it is asked to stop.
pub fn nap(pause: Duration, stop: &AtomicBool) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE);
    }
}

/// How often somebody who naps looks whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Whether a run was interrupted from outside, so that another attempt may fare better: not by wrong data or a failed check here.
pub const fn interrupted(abort: &Abort) -> bool {
    matches!(
        abort,
        Abort::Told { .. } | Abort::Link(_) | Abort::Stalled { .. }
    )
}

/// Which run of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// All of a job that is not durable.
    Whole,
    /// The owners' values come to the parties' stores; nothing is opened.
    Input,
    /// The parties load them, and do the rest. No owner takes part.
    Compute,
}

impl Stage {
    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Whole => "run",
            Stage::Input => "input stage",
            Stage::Compute => "compute stage",
        }
    }
}

/// The plans of a job's runs.
#[derive(Clone)]
pub struct Stages {
    whole: Arc<Plan>,
    two: Option<[Arc<Plan>; 2]>,
}

impl Stages {
    /// Plans the stages of `job`, which is planned as `plan`, for the same lanes.
    pub fn new(job: &Job, plan: &Arc<Plan>) -> Result<Self, PlanError> {
        let make = |stage: Lowered| {
            let options = Options {
                lanes: plan.lanes,
                chunk_rows: None,
            };
            Plan::new(Arc::new(stage), options).map(Arc::new)
        };
        let two = if job.is_durable() {
            let (input, compute) = job.lowered().stages();
            Some([make(input)?, make(compute)?])
        } else {
            None
        };
        Ok(Stages {
            whole: Arc::clone(plan),
            two,
        })
    }

    /// Whether the job runs in two stages.
    pub const fn are_two(&self) -> bool {
        self.two.is_some()
    }

    /// The plans of the two stages; none of a job that runs at once.
    pub fn hashes(&self) -> Vec<PlanHash> {
        self.two.iter().flatten().map(|plan| plan.hash).collect()
    }

    /// The plan of a stage.
    pub fn plan(&self, stage: Stage) -> &Arc<Plan> {
        match (stage, &self.two) {
            (Stage::Input, Some([input, _])) => input,
            (Stage::Compute, Some([_, compute])) => compute,
            _ => &self.whole,
        }
    }

    /// The other stage.
    pub const fn other(&self, stage: Stage) -> Option<Stage> {
        match (stage, &self.two) {
            (Stage::Input, Some(_)) => Some(Stage::Compute),
            (Stage::Compute, Some(_)) => Some(Stage::Input),
            _ => None,
        }
    }

    /// Whom `me` meets at a stage, by the members of its home.
    pub fn neighbours(
        &self,
        stage: Stage,
        me: Peer,
        members: &Members,
    ) -> Result<Neighbours, PartError> {
        let neighbours = Neighbours::find(self.plan(stage), me, members)?;
        Ok(match self.other(stage) {
            Some(other) => neighbours.with_other(self.plan(other), members),
            None => neighbours,
        })
    }

    /// If a meeting for `stage` ended because a party is at the other one: who has not kept the inputs, and what comes of it.
    pub fn disagree(&self, stage: Stage, error: &SetupError) -> Option<String> {
        let other = self.other(stage)?;
        let plan = self.plan(other);
        let SetupError::Plan { peer, theirs, .. } = error else {
            return None;
        };
        let who = name_of(&self.whole, *peer);
        let what = match stage {
            Stage::Compute => format!("`{who}` has not kept the inputs, which are kept here"),
            _ => format!("`{who}` has kept the inputs, and this party has not"),
        };
        (*theirs == plan.hash)
            .then(|| format!("{what}: they are made anew, and {} again", self.come()))
    }

    /// What a party at this stage waits for; nothing to say of a job that runs at once.
    pub fn awaits(&self, stage: Stage) -> Option<String> {
        match stage {
            Stage::Whole => None,
            Stage::Input => Some(format!("the inputs are not kept yet: {}", self.come())),
            Stage::Compute => Some(
                "the inputs are kept: parties and recipients have to come, and no owner".into(),
            ),
        }
    }

    /// That the owners have to come.
    fn come(&self) -> String {
        let input = &self.plan(Stage::Input).job;
        let holders = input.blocks.iter().flat_map(|block| &block.holders);
        let mut names: Vec<&str> = holders
            .filter_map(|holder| holder.peer())
            .map(|peer| name_of(self.plan(Stage::Input), peer))
            .collect();
        names.sort_unstable();
        names.dedup();
        match &names[..] {
            [] => "the parties have to load them".into(),
            [one] => format!("the owner {one} has to send them (`veil party JOB`)"),
            more => format!(
                "the owners {} have to send them (`veil party JOB` at each)",
                more.join(", ")
            ),
        }
    }
}

/// Longest name of a dataset, in bytes.
const LONGEST: usize = 80;

/// The dataset in which a party keeps the inputs of a durable job between its stages. It names the plan: two jobs of one name do not
/// come into each other's way.
pub fn inputs_name(job: &str, input: PlanHash) -> String {
    let end = format!(": input {}", hex(&input.0[..8]));
    let mut cut = job.len().min(LONGEST - end.len());
    while !job.is_char_boundary(cut) {
        cut -= 1;
    }
    job[..cut].to_owned() + &end
}

/// What a participant brings from its store to one run, and keeps of it there.
#[derive(Clone, Default)]
pub struct Ends {
    /// What it supplies, of a dataset that goes to other parties.
    pub source: Option<Arc<dyn Source>>,
    /// What is loaded.
    pub stored: Option<Arc<dyn ShareSource>>,
    /// Where what is kept goes.
    pub keeps: Option<Arc<dyn ShareSink>>,
}

/// A participant's store, as the stages of one job use it.
pub struct Shelf<'a> {
    /// As a party of the job; nothing of others, nor where the job neither loads nor keeps shares.
    store: Option<Store>,
    /// As one of those who have the dataset that the job gives to other parties.
    old: Option<Store>,
    job: &'a Job,
    stages: &'a Stages,
}

impl<'a> Shelf<'a> {
    /// Of the participant of a home.
    pub fn of_home(home: &Home, job: &'a Job, stages: &'a Stages) -> Result<Self, HomeError> {
        let name = &home.settings().name;
        Self::new(job, stages, name, |parties, party| {
            home.store(parties, party)
        })
    }

    /// Of the participant `name`, whose store for what is shared among some parties, and as which of them, `open` opens.
    pub fn new<E>(
        job: &'a Job,
        stages: &'a Stages,
        name: &str,
        open: impl Fn(&[String], PartyId) -> Result<Store, E>,
    ) -> Result<Self, E> {
        let of = |parties: &[String]| {
            let index = parties.iter().position(|party| party == name);
            let party = index.and_then(|index| PartyId::new(index as u8));
            party.map(|party| open(parties, party)).transpose()
        };
        let parties = job.needs_stores().then_some(&job.lowered().parties[..]);
        let old = job.resharing().map(|resharing| &resharing.old[..]);
        Ok(Shelf {
            store: parties.map(of).transpose()?.flatten(),
            old: old.map(of).transpose()?.flatten(),
            job,
            stages,
        })
    }

    fn inputs(&self) -> String {
        inputs_name(
            &self.job.lowered().name,
            self.stages.plan(Stage::Input).hash,
        )
    }

    /// At which stage this party is: at the second one if it has kept the inputs of the first. What it has kept and cannot use is told
    /// by the second value; the first stage replaces it.
    pub fn stage(&self) -> Result<(Stage, Option<StoreError>), StoreError> {
        let Some(store) = self.store.as_ref().filter(|_| self.stages.are_two()) else {
            return Ok((Stage::Whole, None));
        };
        match self.load(store) {
            Ok(_) => Ok((Stage::Compute, None)),
            Err(StoreError::NotThere { .. }) => Ok((Stage::Input, None)),
            Err(error @ (StoreError::Io { .. } | StoreError::Busy { .. })) => Err(error),
            Err(error) => Ok((Stage::Input, Some(error))),
        }
    }

    fn load(&self, store: &Store) -> Result<Arc<dyn ShareSource>, StoreError> {
        let compute = &self.stages.plan(Stage::Compute).job;
        let input = self.stages.plan(Stage::Input).hash;
        Ok(Arc::new(store.resume(compute, &self.inputs(), input)?))
    }

    /// What comes from the store in a stage, and what is kept. What is kept is made here: an attempt that is given up removes it again.
    pub fn ends(&self, stage: Stage) -> Result<Ends, StoreError> {
        let old = self.old.as_ref().zip(self.job.resharing());
        let source = old.map(|(store, of)| store.supplies(of)).transpose()?;
        let source = source.map(|source| Arc::new(source) as Arc<dyn Source>);
        let Some(store) = &self.store else {
            return Ok(Ends {
                source,
                ..Ends::default()
            });
        };
        let plan = self.stages.plan(stage);
        let stored = match stage {
            Stage::Compute => Some(self.load(store)?),
            Stage::Whole | Stage::Input => {
                let loads = store.loads(self.job)?;
                loads.map(|loads| Arc::new(loads) as Arc<dyn ShareSource>)
            }
        };
        let keeps = match stage {
            Stage::Input => {
                self.forget()?;
                let (name, rows) = (self.inputs(), plan.chunk_rows);
                Some(store.keeps(&plan.job, plan.hash, rows, &name, "")?)
            }
            Stage::Whole | Stage::Compute => store.kept(self.job, plan.hash, plan.chunk_rows)?,
        };
        Ok(Ends {
            source,
            stored,
            keeps: keeps.map(|keeps| Arc::new(keeps) as Arc<dyn ShareSink>),
        })
    }

    /// Removes the inputs that were kept between the stages.
    pub fn forget(&self) -> Result<(), StoreError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        match veil_store::remove(&store.root, &self.inputs()) {
            Ok(()) | Err(StoreError::NotThere { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Home {
    /// The durable jobs that were interrupted here: their inputs are kept, all or some. The oldest first.
    pub fn interrupted(&self) -> Result<Vec<PlanHash>, HomeError> {
        let key = StoreKey::derive(self.store_secret()?.as_slice());
        let there = |name: &str| veil_store::dataset(&self.shares(), name, &key).is_ok();
        let mut found = Vec::new();
        for filed in self.all_filed()? {
            if let Some(input) = filed.stages.first()
                && there(&inputs_name(&filed.name, *input))
            {
                found.push(filed.plan);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_come_to_an_end() {
        let seconds: Vec<u64> = (0..).map_while(pause).map(|p| p.as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(pause(u32::MAX), None);
    }

    #[test]
    fn names_of_kept_inputs_fit_and_differ() {
        let [one, other] = [1, 2].map(|byte| PlanHash([byte; 32]));
        assert_eq!(inputs_name("pay", one), "pay: input 0101010101010101");
        assert_ne!(inputs_name("pay", one), inputs_name("pay", other));
        for job in ["é".repeat(64), "x".repeat(64)] {
            let name = inputs_name(&job, one);
            assert!(name.len() <= LONGEST && name.ends_with(": input 0101010101010101"));
        }
    }
}
