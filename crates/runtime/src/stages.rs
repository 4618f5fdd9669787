//! The runs of a job at one participant: one, or the stages of a durable job.
//!
//! A durable job has two stages. If its output is guaranteed, the second can be done by three of the four parties without the fourth.

use std::sync::Arc;

use veil_engine::{Abort, name_of};
use veil_job::{Adversary, Delivery, Guarantee, JobSpec};
use veil_link::tls::{Fingerprint, Identity, SetupError};
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer, PlanHash};

use crate::part::{Neighbours, PartError, Roster};
use crate::participant::Stage;
use crate::passes::Passes;

/// Whether a run was interrupted from outside, so that another attempt may fare better: not by wrong data or a failed check here.
pub const fn interrupted(abort: &Abort) -> bool {
    matches!(
        abort,
        Abort::Told { .. } | Abort::Link(_) | Abort::Stalled { .. }
    )
}

/// The plans of a job's runs.
#[derive(Clone)]
pub struct Stages {
    whole: Passes,
    two: Option<[Passes; 2]>,
    /// Of the finishing stage without each party, if there may be one.
    without: Vec<Passes>,
}

/// The parties of a job disagree about which stage it is at.
pub struct Disagreement {
    /// The reason.
    pub why: String,
    /// At which stage the other one is.
    pub theirs: Stage,
}

impl Stages {
    /// Plans the stages of `job`, which is planned as `plan`, for the same lanes: two of them if it is `durable`.
    ///
    /// # Errors
    /// [`PlanError`] as of [`Plan::new`], for any stage.
    pub fn new(job: &JobSpec, durable: bool, plan: &Passes) -> Result<Self, PlanError> {
        let make = |stage: JobSpec| {
            let options = Options {
                lanes: plan.lanes,
                chunk_rows: None,
            };
            Plan::new(Arc::new(stage), options).map(Passes::from)
        };
        let two = if durable {
            let (input, compute) = job.stages();
            Some([make(input)?, make(compute)?])
        } else {
            None
        };
        let guaranteed = job.security.delivery == Delivery::Guaranteed;
        let out = PartyId::FOUR.iter().filter(|_| guaranteed);
        // The party that is out need not be the one that deviates.
        let finish = |out: &PartyId| {
            let stage = job.without(*out);
            let security = stage.security.against(Adversary::Malicious);
            make(JobSpec { security, ..stage })
        };
        let without = out.map(finish);
        Ok(Stages {
            whole: plan.clone(),
            two,
            without: without.collect::<Result<_, _>>()?,
        })
    }

    /// The plan of the job as it was agreed to.
    pub const fn whole(&self) -> &Passes {
        &self.whole
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

    /// Whether the parties may go on at another stage than this one, by themselves: a participant that cannot meet one of them asks at
    /// which stage they are.
    pub fn goes_on(&self, stage: Stage) -> bool {
        self.are_guaranteed() && matches!(stage, Stage::Compute | Stage::Finish(_))
    }

    /// The keys of the parties, in their order, as the participant `me` knows them; nothing if one is not in its roster.
    pub fn party_keys(
        &self,
        roster: &dyn Roster,
        me: (&str, &Identity),
    ) -> Option<Vec<Fingerprint>> {
        let key = |name: &String| {
            let own = || (name == me.0).then(|| me.1.fingerprint());
            roster.key(name).or_else(own)
        };
        self.whole.job.parties.iter().map(key).collect()
    }

    /// The name of a party of the job.
    pub fn party(&self, party: PartyId) -> &str {
        &self.whole.job.parties[party.index()]
    }

    /// The guarantee of a run without one of the parties, if the stage is one.
    pub fn finished(&self, stage: Stage) -> Option<Guarantee> {
        let out = self.without(stage)?;
        Some(Guarantee::finished(self.plan(stage).job.security, out))
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
            && matches!(abort, Abort::Cheated { .. } | Abort::SetUp { .. });
        self.are_two() && (interrupted(abort) || checked)
    }

    /// The weakest adversary against whom a run of the job may have to hold.
    pub fn adversary(&self) -> Adversary {
        let all = self.all().into_iter();
        let all = all.map(|stage| self.plan(stage).job.security.adversary);
        all.fold(self.whole.job.security.adversary, std::cmp::min)
    }

    /// All stages that the job may come to.
    pub fn all(&self) -> Vec<Stage> {
        let mut all = self.others(Stage::Whole);
        if all.is_empty() {
            all.push(Stage::Whole);
        }
        all
    }

    /// The plan of a stage.
    pub fn plan(&self, stage: Stage) -> &Passes {
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

    /// Whom `me` meets at a stage, by its roster. Where output is guaranteed, a party that comes for another stage ends no
    /// meeting: the parties ask each other where they are, and believe none of them alone.
    ///
    /// # Errors
    /// [`PartError`] as of [`Neighbours::find`].
    pub fn neighbours(
        &self,
        stage: Stage,
        me: Peer,
        roster: &dyn Roster,
    ) -> Result<Neighbours, PartError> {
        let parties = !self.are_guaranteed();
        let mut neighbours = Neighbours::find(self.plan(stage), me, roster)?;
        for other in self.others(stage) {
            let over = other == Stage::Input || matches!(stage, Stage::Finish(_));
            neighbours = neighbours.with_other(self.plan(other), roster, over, parties);
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
        let who = name_of(self.plan(stage), *peer);
        let why = match (stage, theirs) {
            (Stage::Input, _) => format!(
                "`{who}` has kept the inputs, and this participant waits for them: {} again if others have not kept them either",
                self.come()
            ),
            (_, Stage::Input) => format!(
                "`{who}` has not kept the inputs, which are kept here: they are made anew, and {} again",
                self.come()
            ),
            (_, Stage::Finish(out)) => {
                format!(
                    "`{who}` says that the job goes on without `{}`",
                    self.party(out)
                )
            }
            _ => format!("`{who}` is at the {}", theirs.name()),
        };
        Some(Disagreement { why, theirs })
    }

    /// The event that a party at this stage waits for; nothing for a job that runs at once.
    pub fn awaits(&self, stage: Stage) -> Option<String> {
        match stage {
            Stage::Whole => None,
            Stage::Input => Some(format!("the inputs are not kept yet: {}", self.come())),
            Stage::Compute => Some(
                "the inputs are kept: parties and recipients have to come, and no owner".into(),
            ),
            Stage::Finish(out) => Some(format!(
                "the others finish without `{}`: they and recipients have to come",
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
