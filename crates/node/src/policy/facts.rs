//! What a policy judges: the public facts of a job.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use veil_program::{Adversary, Audience, Holder, Job, Kind, Word};
use veil_protocol::{Plan, Protocol};
use veil_session::Peer;

use crate::home::hex;

/// What a job would do. All of it is under the plan hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the job. Whoever writes the job chooses it.
    pub job: String,
    /// What is computed: the kinds of its analyses, `circuit`, or `reshare`.
    pub operations: BTreeSet<String>,
    /// The circuit of a circuit job: its name if `veil` makes it, and `sha256:` with the hash of the circuit that runs.
    pub circuits: BTreeSet<String>,
    /// Columns that are computed on, grouped by, or given to other parties.
    pub columns: BTreeSet<String>,
    /// Stored data sets that it computes on, or gives to other parties.
    pub datasets: BTreeSet<String>,
    /// Whether the parties keep shares of something.
    pub keeps: bool,
    /// Names of those to whom something is opened.
    pub to: BTreeSet<String>,
    /// Names of the computing parties.
    pub parties: BTreeSet<String>,
    /// Rows of all blocks.
    pub rows: u64,
    /// Rows of the smallest block.
    pub smallest_block: u64,
    /// The largest number of groups that an analysis makes; 1 without groups.
    pub groups: u64,
    /// Rows that a group of any analysis needs to be shown; 0 where some are shown whatever they have.
    pub min_count: u64,
    /// The protocol.
    pub protocol: String,
    /// The weakest adversary against which a run of it may have to hold, `semi-honest` or `malicious`.
    pub adversary: String,
    /// What becomes of the result if somebody cheats or is lost, `abort` or `guaranteed`.
    pub delivery: String,
}

impl Facts {
    /// The facts of `job`, planned as `plan` for `protocol`.
    pub fn of(job: &Job, plan: &Plan, protocol: &dyn Protocol) -> Self {
        let lowered = &plan.job;
        let mut facts = Facts {
            job: lowered.name.clone(),
            operations: BTreeSet::new(),
            circuits: BTreeSet::new(),
            columns: BTreeSet::new(),
            datasets: (lowered.blocks.iter())
                .filter(|block| block.holders.contains(&Holder::Stored))
                .map(|block| block.stored.clone().unwrap_or_default())
                .collect(),
            keeps: lowered.audiences.contains(&Audience::Stored),
            to: (lowered.audiences.iter())
                .flat_map(|audience| readers(plan, *audience))
                .collect(),
            parties: lowered.parties.iter().cloned().collect(),
            rows: lowered.rows(),
            smallest_block: (lowered.blocks.iter())
                .map(|block| block.rows)
                .min()
                .unwrap_or(0),
            groups: 1,
            min_count: 0,
            protocol: protocol.name().to_owned(),
            adversary: lowered.security.adversary.word().to_owned(),
            delivery: lowered.security.delivery.word().to_owned(),
        };
        match job.kind() {
            Kind::Stats(stats) => {
                let least = stats.analyses.iter().map(|a| a.min_count.unwrap_or(0));
                facts.min_count = least.min().unwrap_or(0);
                for analysis in &stats.analyses {
                    let statistic = &analysis.statistic;
                    facts.operations.insert(statistic.name().to_owned());
                    let mut groups = 1u64;
                    for &column in &analysis.by {
                        let values = stats.columns[column].categories().len() as u64;
                        groups = groups.saturating_mul(values.max(1));
                    }
                    facts.groups = facts.groups.max(groups);
                    let used = statistic.columns().into_iter();
                    let used = used.chain(analysis.by.iter().copied());
                    let names = used.map(|column| stats.columns[column].name.clone());
                    facts.columns.extend(names);
                }
            }
            Kind::Circuit(gates) => {
                facts.operations.insert("circuit".to_owned());
                facts.circuits.extend(gates.make.clone());
                let hash = hex(&lowered.circuit.canonical_hash());
                facts.circuits.insert(format!("sha256:{hash}"));
            }
            Kind::Reshare(resharing) => {
                facts.operations.insert("reshare".to_owned());
                facts.datasets.insert(resharing.dataset.clone());
                let columns = resharing.ports.iter().map(|(name, _)| name.clone());
                facts.columns.extend(columns);
            }
            // A kind that this release does not know is judged by nothing but a person.
            _ => {
                facts.operations.insert("unknown".to_owned());
            }
        }
        facts
    }

    /// The same of a job that may be finished by runs which hold against this adversary only.
    #[must_use]
    pub fn against(self, weakest: Adversary) -> Self {
        Facts {
            adversary: weakest.word().to_owned(),
            ..self
        }
    }
}

fn readers(plan: &Plan, audience: Audience) -> Vec<String> {
    let name = |peer| veil_engine::name_of(plan, peer).to_owned();
    match audience {
        Audience::Parties => plan
            .parties()
            .iter()
            .map(|party| name(Peer::Party(*party)))
            .collect(),
        Audience::Party(party) => vec![name(Peer::Party(party))],
        Audience::Recipient(recipient) => vec![name(Peer::Recipient(recipient))],
        Audience::Stored => Vec::new(),
    }
}
