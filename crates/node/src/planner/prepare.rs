//! From a job to what can run, within the limits of a party.

use std::sync::Arc;

use veil_engine::Memory;
use veil_job::Audience;
use veil_link::LinkKind;
use veil_program::Job;
use veil_protocol::passes::Pass;
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer};

use super::{Planned, Terms};
use crate::approvals::roles_of;
use crate::jobs::mib;
use crate::log::Event;
use crate::policy::Facts;
use crate::stock;
use veil_runtime::{Passes, Stage, Stages};

/// A job that is planned and could run.
pub(crate) struct Prepared {
    pub(crate) job: Job,
    pub(crate) plan: Passes,
    pub(crate) stages: Stages,
    /// What is known of it.
    pub(crate) planned: Arc<Planned>,
}

/// Plans a job, within the limits of a party. Why it cannot be has nothing in it but the job and the party's limits.
pub(crate) fn prepare(
    job: Job,
    (lanes, stocked): (u16, bool),
    terms: &Terms,
) -> Result<Prepared, String> {
    if lanes == 0 || lanes > terms.lanes {
        return Err(format!(
            "the job has {lanes} lanes, and this party takes 1 to {}",
            terms.lanes
        ));
    }
    let rows = job.rows();
    if rows > terms.rows {
        return Err(format!(
            "the job has {rows} rows, and this party takes at most {}",
            terms.rows
        ));
    }
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let plan = if stocked {
        stock::planned(&job, options).map_err(|error| unplanned(&error))?
    } else {
        passes(&job, options)?
    };
    let mine = veil_runtime::roles(&plan, &terms.name).map_err(|error| error.to_string())?;
    let me = mine.iter().find_map(|peer| peer.party());
    let me = me.ok_or_else(|| format!("`{}` is no computing party of the job", terms.name))?;
    let link = terms.link.parse().unwrap_or_default();
    let prepared = Prepared::new(job, plan, me, (terms, link));
    let prepared = prepared.map_err(|error| unplanned(&error))?;
    let need = mib(prepared.planned.need);
    if need > terms.memory_mib {
        return Err(format!(
            "`{}` needs up to {need} MiB of working memory (`veil explain` shows it), and this party gives all its jobs {} MiB: its \
             operator sets `memory_mib` under [admission] in veil.toml",
            prepared.plan.job.name, terms.memory_mib
        ));
    }
    Ok(prepared)
}

fn unplanned(error: &dyn std::fmt::Display) -> String {
    format!("the job cannot be planned: {error}")
}

/// Plans the passes of a job: one, but for queries.
fn passes(job: &Job, options: Options) -> Result<Passes, String> {
    let Some(queries) = job.queries() else {
        let plan = Plan::new(job.shared(), options).map_err(|error| unplanned(&error))?;
        return Ok(plan.into());
    };
    let (passes, names) = (&queries.physical().passes, queries.names_of_passes());
    Passes::new(passes, job.shared(), names, options).map_err(|error| unplanned(&error))
}

/// The memory of a run: all that the party gives its jobs where columns wait on its disk for as much.
fn within(plan: &Passes, me: Peer, (terms, link): (&Terms, LinkKind)) -> Memory {
    let memory = plan.memory(me, terms.window, link);
    let given = terms.memory_mib.saturating_mul(1 << 20);
    let least = plan.least_memory(me, terms.window, link);
    match least {
        Some(least) if terms.spill && memory.total() > given && least <= given => Memory {
            workspaces: given.saturating_sub(memory.frames + memory.plan),
            ..memory
        },
        _ => memory,
    }
}

impl Prepared {
    fn new(
        job: Job,
        plan: Passes,
        me: PartyId,
        (terms, link): (&Terms, LinkKind),
    ) -> Result<Self, PlanError> {
        let stages = crate::stages::of(&job, &plan)?;
        let protocol = plan.protocol(Peer::Party(me));
        let facts = Facts::of(&job, &plan, &*protocol).against(stages.adversary());
        // Who finishes is one of three parties, whichever is left out: none of the plans takes more at another of them.
        let need = |stage| {
            let plan = stages.plan(stage);
            let left = plan.parties().iter().copied();
            let memory = |me| within(plan, Peer::Party(me), (terms, link));
            match stage {
                Stage::Finish(_) => left.map(memory).max_by_key(Memory::total),
                _ => Some(memory(me)),
            }
        };
        let needs: Vec<Memory> = stages.all().into_iter().filter_map(need).collect();
        let most = |of: fn(&Memory) -> u64| needs.iter().map(of).max().unwrap_or_default();
        let planned = Planned {
            asks: asks(&job, terms),
            plan: Event::plan(plan.hash),
            stages: stages.hashes().into_iter().map(Event::plan).collect(),
            name: plan.job.name.clone(),
            input: stages.plan(Stage::Input).job.name.clone(),
            rows: job.rows(),
            participants: names(&plan),
            parties: plan.job.parties.clone(),
            roles: roles_of(&plan, &terms.name),
            facts,
            opened: opened(&job, &plan),
            need: most(Memory::total),
            held: most(|memory| memory.plan),
            work: work_of_all(&plan),
            takes: stock::Takes::of(&plan, &terms.name),
        };
        Ok(Prepared {
            job,
            plan,
            stages,
            planned: Arc::new(planned),
        })
    }
}

/// What the job asks this party's own people for.
pub(super) fn asks(job: &Job, terms: &Terms) -> Vec<String> {
    let asks = job.data().into_iter();
    let asks = asks.filter(|data| data.owner == terms.name);
    asks.map(|data| data.what).collect()
}

fn names(plan: &Plan) -> Vec<String> {
    let peers = veil_engine::participants(plan).into_iter();
    peers
        .map(|peer| veil_engine::name_of(plan, peer).to_owned())
        .collect()
}

/// That of all passes: a row that moves counts once for each bit of its columns, and a product of matrices as the products of elements that it is.
fn work_of_all(passes: &Passes) -> u64 {
    let of = |pass: &Pass| match pass {
        Pass::Rows { plan, .. } => work(plan),
        Pass::Move { plan, .. } => {
            let bytes: u64 = plan.columns.iter().map(|form| form.bytes()).sum();
            u64::from(plan.rows).saturating_mul(8 * bytes)
        }
        Pass::Product { plan, .. } => (plan.terms()).saturating_mul(plan.ring.bits().into()),
    };
    let passes = passes.program().passes().iter();
    passes.map(of).fold(0, u64::saturating_add)
}

/// Products, lifts and truncations of all rows, weighed by the bits of their ring; at least one for every row.
fn work(plan: &Plan) -> u64 {
    let width = u64::from(plan.job.circuit.ring.bits());
    // Of a circuit of bits, these are all.
    let bits = if width == 1 { 0 } else { plan.bit_products() };
    let others = plan.lifts().saturating_add(plan.truncations());
    let elements = plan.products().saturating_add(others);
    let products = elements.saturating_mul(width);
    products
        .saturating_add(bits)
        .max(1)
        .saturating_mul(plan.job.rows())
}

/// What is opened to whom, a line each: what people who approve look at first.
fn opened(job: &Job, plan: &Plan) -> String {
    if let Some(queries) = job.queries() {
        let parties = || plan.job.parties.join(", ");
        let line = |of: veil_program::Opens| {
            let to = of.to.unwrap_or_else(parties);
            format!("opened: {}, to: {to}\n", of.what)
        };
        return queries.opens().into_iter().map(line).collect();
    }
    let to = |audience: &Audience| match audience {
        Audience::Stored | Audience::Column => "nobody: the parties keep shares".to_owned(),
        Audience::Parties => plan.job.parties.join(", "),
        Audience::Party(party) => plan.job.parties[party.index()].clone(),
        Audience::Recipient(index) => plan.job.recipients[usize::from(*index)].clone(),
    };
    let lines = plan.job.opened.iter().zip(&plan.job.audiences);
    let lines = lines.map(|(what, audience)| format!("opened: {what}, to: {}\n", to(audience)));
    lines.collect::<Vec<_>>().concat()
}
