//! The runs of a job at one participant: one, or the stages of a durable job; and what a party loads and keeps in each.
//!
//! A durable job has two stages. If its output is guaranteed, the second is done by three of the four parties when the fourth is out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use veil_engine::{Abort, name_of};
use veil_link::tls::{Fingerprint, SetupError};
use veil_program::{Adversary, Delivery, Job, Lowered, ShareSink, ShareSource, Source};
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer, PlanHash};
use veil_store::{Store, StoreError, StoreKey};

use crate::control::{self, Reply, Request};
use crate::home::hex;
use crate::participant::{Neighbours, PartError};
use crate::{Home, HomeError, Members, RECENT, Roll};

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
    /// The same without this party of the job, which is out.
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
}

/// The plans of a job's runs.
#[derive(Clone)]
pub struct Stages {
    whole: Arc<Plan>,
    two: Option<[Arc<Plan>; 2]>,
    /// Of the finishing stage without each party, if there may be one.
    without: Vec<Arc<Plan>>,
}

/// The parties of a job disagree about which stage it is at.
pub struct Disagreement {
    /// What it is about.
    pub why: String,
    /// At which stage the other one is.
    pub theirs: Stage,
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
        let guaranteed = job.lowered().security.delivery == Delivery::Guaranteed;
        let out = PartyId::FOUR.iter().filter(|_| guaranteed);
        let finish = |out: &PartyId| {
            let stage = job.lowered().without(*out);
            let safer = Lowered {
                security: stage.security.against(Adversary::Malicious),
                ..stage.clone()
            };
            // Where no protocol of three parties is secure against a malicious one, who is out was it.
            match make(safer) {
                Err(PlanError::OnlyBits(_)) => make(stage),
                planned => planned,
            }
        };
        let without = out.map(finish);
        Ok(Stages {
            whole: Arc::clone(plan),
            two,
            without: without.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the job runs in two stages.
    pub const fn are_two(&self) -> bool {
        self.two.is_some()
    }

    /// Whether three of the parties finish the job if the fourth is out.
    pub fn are_guaranteed(&self) -> bool {
        !self.without.is_empty()
    }

    /// The plans of the stages; none of a job that runs at once.
    pub fn hashes(&self) -> Vec<PlanHash> {
        let stages = self.two.iter().flatten().chain(&self.without);
        stages.map(|plan| plan.hash).collect()
    }

    /// The keys of the parties, in their order, as the home of one of the participants knows them; nothing if one is no member.
    pub fn party_keys(&self, home: &Home) -> Option<Vec<Fingerprint>> {
        let (members, own) = (home.members(), &home.settings().name);
        let key = |name: &String| match members.by_name(name) {
            Some(member) => Some(member.fingerprint),
            None => (name == own).then(|| home.identity().fingerprint()),
        };
        self.whole.job.parties.iter().map(key).collect()
    }

    /// The name of a party of the job.
    pub fn party(&self, party: PartyId) -> &str {
        &self.whole.job.parties[party.index()]
    }

    /// The name of the party without which a stage runs, if there is one.
    pub fn without(&self, stage: Stage) -> Option<String> {
        match stage {
            Stage::Finish(out) => Some(self.party(out).to_owned()),
            _ => None,
        }
    }

    /// Whether a run of this stage that ended so may be repeated. Where output is guaranteed, that is also so after a failed check: nothing
    /// was opened, and another run has fresh keys.
    pub fn may_repeat(&self, stage: Stage, abort: &Abort) -> bool {
        let checked = self.are_guaranteed()
            && stage != Stage::Input
            && matches!(abort, Abort::Cheated { .. });
        self.are_two() && (interrupted(abort) || checked)
    }

    /// The plan of a stage.
    pub fn plan(&self, stage: Stage) -> &Arc<Plan> {
        match (stage, &self.two) {
            (Stage::Input, Some([input, _])) => input,
            (Stage::Compute, Some([_, compute])) => compute,
            (Stage::Finish(out), _) => self.without.get(out.index()).unwrap_or(&self.whole),
            _ => &self.whole,
        }
    }

    /// The other stages.
    fn others(&self, stage: Stage) -> Vec<Stage> {
        let finish = PartyId::FOUR.iter().zip(&self.without);
        let finish = finish.map(|(out, _)| Stage::Finish(*out));
        let mut all = if self.are_two() {
            vec![Stage::Input, Stage::Compute]
        } else {
            Vec::new()
        };
        all.extend(finish);
        all.retain(|other| *other != stage);
        all
    }

    /// Whom `me` meets at a stage, by the members of its home.
    pub fn neighbours(
        &self,
        stage: Stage,
        me: Peer,
        members: &Members,
    ) -> Result<Neighbours, PartError> {
        let out = self.without(stage);
        let mut neighbours = Neighbours::find(self.plan(stage), me, members)?;
        for other in self.others(stage) {
            let over = other == Stage::Input || out.is_some();
            neighbours = neighbours.with_other(self.plan(other), members, over, out.as_deref());
        }
        Ok(neighbours)
    }

    /// If a meeting for `stage` ended because a party is at another one: at which, and what comes of it.
    pub fn disagree(&self, stage: Stage, error: &SetupError) -> Option<Disagreement> {
        let SetupError::Plan { peer, theirs, .. } = error else {
            return None;
        };
        let mut others = self.others(stage).into_iter();
        let theirs = others.find(|other| self.plan(*other).hash == *theirs)?;
        let finish = |out| format!("without `{}`, which is out", self.party(out));
        let why = match (stage, theirs) {
            (Stage::Finish(out), Stage::Compute) => {
                format!(
                    "somebody has not heard that the job goes on {}",
                    finish(out)
                )
            }
            (Stage::Compute, Stage::Finish(out)) => {
                format!("somebody says that the job goes on {}", finish(out))
            }
            _ => {
                let who = name_of(self.plan(stage), *peer);
                let what = match stage {
                    Stage::Input => format!("`{who}` has kept the inputs, and this party has not"),
                    _ => format!("`{who}` has not kept the inputs, which are kept here"),
                };
                format!("{what}: they are made anew, and {} again", self.come())
            }
        };
        Some(Disagreement { why, theirs })
    }

    /// What a party at this stage waits for; nothing to say of a job that runs at once.
    pub fn awaits(&self, stage: Stage) -> Option<String> {
        match stage {
            Stage::Whole => None,
            Stage::Input => Some(format!("the inputs are not kept yet: {}", self.come())),
            Stage::Compute => Some(
                "the inputs are kept: parties and recipients have to come, and no owner".into(),
            ),
            Stage::Finish(out) => Some(format!(
                "`{}` is out, and the others finish: they and recipients have to come",
                self.party(out)
            )),
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

/// Who of the parties of a job is out, by the word of all the others: whoever can be asked is asked. Nobody, if they do not say so.
pub fn verdict(home: &Home, stages: &Stages) -> Option<PartyId> {
    let keys = stages.party_keys(home)?;
    let (identity, members) = (home.identity(), home.members());
    let plan = stages.plan(Stage::Compute).hash;
    let request = Request::Roll {
        plan: hex(&stages.whole.hash.0),
        said: Vec::new(),
    };
    let mut roll = Roll::default();
    for name in &stages.whole.job.parties {
        let asked = members
            .by_name(name)
            .map(|party| control::ask(&identity, party, &request, Instant::now() + ANSWER));
        if let Some(Ok(Reply::Roll { said })) = asked {
            roll.hear(&said, plan, &keys, RECENT);
        }
    }
    roll.out(plan, &keys, RECENT)
}

/// How long each of the parties has to say who is out.
const ANSWER: Duration = Duration::from_secs(2);

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
    /// Where the verdict about a party is, and whom it puts out.
    roll: Option<PathBuf>,
    out: Option<PartyId>,
}

impl<'a> Shelf<'a> {
    /// Of the participant of a home.
    pub fn of_home(home: &Home, job: &'a Job, stages: &'a Stages) -> Result<Self, HomeError> {
        let name = &home.settings().name;
        let shelf = Self::new(job, stages, name, |parties, party| {
            home.store(parties, party)
        })?;
        let mut found = (None, None);
        if stages.are_guaranteed() && shelf.store.is_some() {
            let path = home.roll_file(stages.whole.hash);
            let mut roll = Roll::default();
            let plan = stages.plan(Stage::Compute).hash;
            if let Some(keys) = stages.party_keys(home) {
                // However long ago: it is about what is still kept.
                roll.hear(&Roll::read(&path), plan, &keys, i64::MAX);
                found.1 = roll.out(plan, &keys, i64::MAX);
            }
            found.0 = Some(path);
        }
        let (roll, out) = found;
        Ok(Shelf { roll, out, ..shelf })
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
            roll: None,
            out: None,
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
            Ok(_) => Ok((self.out.map_or(Stage::Compute, Stage::Finish), None)),
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
            Stage::Finish(out) => {
                let input = self.stages.plan(Stage::Input).hash;
                Some(store.resume_without(&plan.job, &self.inputs(), input, out)?)
            }
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
            Stage::Finish(_) => None,
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
        // Whoever is out is so as long as these inputs are kept.
        if let Some(roll) = &self.roll {
            // It may not be there; if it stays, it is about inputs of another time, and is not fresh.
            let _ = std::fs::remove_file(roll);
        }
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
