//! Chunks of as many rows as the devices of parties are best at.
//!
//! The length of chunks is under the plan hash, and a person approves that before participants meet. So it is a word of the job. Who writes
//! the job learns the word from the devices of a run in one place, or from the parties that serve.

use std::time::Duration;

use veil_job::ChunkRows;
use veil_node::control::{Reply, Request, ask_if_there};
use veil_node::{Home, Member};
use veil_protocol::Plan;

/// A party whose device is best at chunks of so many rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wish {
    /// Who.
    pub(crate) party: String,
    /// On which device.
    pub(crate) device: String,
    /// How many.
    pub(crate) rows: ChunkRows,
}

/// The time that a party has to be there, when it is asked what it wishes.
const THERE: Duration = Duration::from_secs(2);

impl Wish {
    /// Takes another wish in its place if that is for shorter chunks: what is best for one is too much for none.
    pub(crate) fn least(of: &mut Option<Self>, other: Self) {
        if of.as_ref().is_none_or(|of| other.rows < of.rows) {
            *of = Some(other);
        }
    }

    /// What the author of a job does about it, if the plan has shorter chunks.
    pub(crate) fn advice(&self, plan: &Plan) -> Option<String> {
        let Wish {
            party,
            device,
            rows,
        } = self;
        (rows.count() > plan.chunk_rows).then(|| {
            format!(
                "{device}, on which `{party}` computes, is best at chunks of {rows} rows, and the plan has chunks of {}: write \
                 `chunk_rows = \"{rows}\"` into the job, or give --chunk-rows {rows} at all participants",
                plan.chunk_rows
            )
        })
    }
}

/// The shortest chunk that a party of the plan wishes, of those that serve and answer. A wish for no more rows than the plan has counts as none: with
/// it, one party would make the job of all slow.
pub(crate) fn of_members(home: &Home, plan: &Plan) -> Option<Wish> {
    let members = home.members();
    let parties = plan.job.parties.iter();
    let known = parties.filter_map(|name| members.by_name(name).cloned());
    let mut least = None;
    for member in known {
        if let Some(wish) = of_member(home, &member, plan) {
            Wish::least(&mut least, wish);
        }
    }
    least
}

fn of_member(home: &Home, member: &Member, plan: &Plan) -> Option<Wish> {
    let reply = ask_if_there(&home.identity(), member, &Request::Hello {}, THERE);
    let Ok(Reply::Hello(hello)) = reply else {
        return None;
    };
    let computes = hello.computes?;
    let rows = computes.wish(plan.ring)?;
    (rows.count() > plan.chunk_rows).then(|| Wish {
        party: member.name.clone(),
        device: computes.shown(),
        rows,
    })
}
