//! A job as a participant decides on it: its plan, its facts, and what is filed of it.

use std::path::{Path, PathBuf};

use veil_node::policy::Facts;
use veil_node::{Decision, Home, Request, roles_of};
use veil_program::Job;
use veil_runtime::{Passes, Stages};
use veil_session::{PartyId, Peer};
use veilworks::About;

use crate::commands::explain;
use crate::failure::{Code, Failure};
use crate::ordered::Ordered;
use crate::prepare::JobArgs;
use crate::rates::Found;
use crate::stocks;

/// Lanes of a job in a deployment, unless the operator says otherwise: the plan must not depend on the machine.
pub(crate) const LANES: u16 = 1;

/// A job, planned as a deployment would run it.
pub(crate) struct Planned {
    pub(crate) plan: Passes,
    pub(crate) facts: Facts,
    /// The text of the job file.
    pub(crate) text: String,
    /// The plans of its runs.
    pub(crate) stages: Stages,
    /// The order of its gates, if it garbles.
    ordered: Option<Ordered>,
    job: Job,
}

impl Planned {
    /// Reads and plans the job of a command line.
    pub(crate) fn load(args: &JobArgs, stocked: bool) -> Result<(Job, Self), Failure> {
        let job = args.load()?;
        let text = std::fs::read_to_string(&args.job).map_err(|error| {
            let message = format!("cannot read the job {}: {error}", args.job.display());
            Failure::new(Code::Input, message)
        })?;
        let lanes = args.lanes.unwrap_or(LANES);
        let planned = Self::of(&job, job.written(&text), (lanes, stocked))?;
        Ok((job, planned))
    }

    /// Plans a job for so many lanes, with products from a stock or not.
    pub(crate) fn of(
        job: &Job,
        text: String,
        (lanes, stocked): (u16, bool),
    ) -> Result<Self, Failure> {
        let plan = stocks::plan(job, lanes, stocked)?;
        let protocol = plan.protocol(Peer::Party(PartyId::TWO[0]));
        let stages = veil_node::stages::of(job, &plan)?;
        let facts = Facts::of(job, &plan, &*protocol).against(stages.adversary());
        let ordered = Ordered::approved(job, &plan);
        Ok(Planned {
            plan,
            facts,
            text,
            stages,
            ordered,
            job: job.clone(),
        })
    }

    /// What `home` is asked, which must have a part in the job.
    pub(crate) fn request<'a>(
        &'a self,
        home: &Home,
        asked_by: Option<&'a str>,
    ) -> Result<Request<'a>, Failure> {
        let name = &home.settings().name;
        let roles = roles_of(&self.plan, name);
        if roles.is_empty() {
            let mut names: Vec<&str> = veil_engine::participants(&self.plan)
                .into_iter()
                .map(|peer| veil_engine::name_of(&self.plan, peer))
                .collect();
            names.dedup();
            let message = format!(
                "`{name}` has no part in the job; its participants are {}",
                names.join(", ")
            );
            return Err(Failure::new(Code::Input, message)
                .help("choose the home of a participant with `--home`, or correct the job"));
        }
        Ok(Request {
            plan: self.plan.hash,
            facts: &self.facts,
            asked_by,
            roles,
            repeats: false,
        })
    }

    /// Whether the participant of `home` compares the order of rows with others.
    pub(crate) fn compares_order(&self, home: &Home) -> bool {
        let holders = self.plan.orders.iter().flat_map(|order| &order.holders);
        holders
            .into_iter()
            .any(|peer| veil_engine::name_of(&self.plan, *peer) == home.settings().name)
    }

    /// What `veil explain` says of it, by this table of rates.
    pub(crate) fn explained(&self, file: &Path, rates: &Found) -> String {
        explain::text(
            &self.job,
            &self.plan,
            &self.stages,
            (file, rates),
            self.ordered.clone(),
        )
    }
}

/// What a program may have to know of a job that may not run.
pub(crate) fn about(decision: &Decision) -> About {
    let mut about = About::default();
    match decision {
        Decision::Refused { rule, .. } => (about.rule, about.refused) = (Some(rule.clone()), true),
        Decision::Declined { .. } => about.refused = true,
        Decision::Pending { .. } => about.unapproved = true,
        _ => {}
    }
    about
}

/// A path that holds wherever a daemon runs.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
