//! Of a job with queries: what is opened to whom, what is not, what it is worth, what it costs; then the queries.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use veil_job::Guarantee;
use veil_link::shape::Profile;
use veil_program::{ColumnFacts, Job, KeptFacts, NamedQuery, Opens, Queries, TableFacts};
use veil_protocol::Options;
use veil_runtime::Passes;
use veil_session::Peer;

use super::estimate::Costs;
use super::parts::{CheckCost, OperatorCost, checks, operators};
use super::rates::{Found, Origin, Rates};
use super::words::{bytes, columns, count, seconds};
use super::{Estimate, Numbers, Participant, estimates, role};
use crate::error::Error;

/// An explanation of a job with queries: serialised, it is what `veil explain --json` prints.
#[derive(Serialize, Debug)]
pub struct Explained {
    job: String,
    plan: String,
    protocol: &'static str,
    guarantee: Cow<'static, str>,
    security: Guarantee,
    passes: usize,
    lanes: u16,
    /// Rounds that follow each other, with the handshake.
    rounds: u64,
    tables: Vec<TableFacts>,
    columns: Vec<ColumnFacts>,
    opened: Vec<Opens>,
    /// How many numbers are opened at most, and the job's own limit of them: of jobs with analyses.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_numbers: Option<Numbers>,
    /// What the parties keep.
    kept: Vec<KeptFacts>,
    hidden: Vec<String>,
    /// Functions without exact values, and how near they are.
    inexact: Vec<String>,
    /// Models of trees that are applied, and what that costs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forests: Vec<String>,
    /// Networks that are applied, and how near they come to real numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    networks: Vec<String>,
    /// Whether an owner brings weights of a network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    secret_weights: bool,
    /// What is said of models that are fitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<String>,
    /// Functions that are given by their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<String>,
    /// What it costs to look at what owners supply.
    checks: Vec<CheckCost>,
    /// How likely two different keys have one digest.
    collisions: Vec<String>,
    participants: Vec<Participant>,
    estimates: Vec<Estimate>,
    /// The table of rates that they are by.
    rates: Origin,
    /// Between two parties, ANDs of the one circuit that all queries are.
    #[serde(skip_serializing_if = "Option::is_none")]
    ands: Option<u64>,
    /// The same among three parties that follow the protocol, for a job of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    among_three: Option<Price>,
    /// The same among four parties, one of which may be malicious.
    #[serde(skip_serializing_if = "Option::is_none")]
    among_four: Option<Price>,
    queries: Vec<Asked>,
    operators: Vec<OperatorCost>,
}

impl Explained {
    /// Rounds that follow each other, with the handshake.
    pub const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// How long it takes on one machine, and over networks.
    pub fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    /// What each participant sends and needs.
    pub fn participants(&self) -> &[Participant] {
        &self.participants
    }
}

/// What the same queries cost among other parties.
#[derive(Serialize, Debug)]
struct Price {
    protocol: &'static str,
    guarantee: Cow<'static, str>,
    rounds: u64,
    /// Payload of the busiest party.
    party_bytes: u64,
    estimates: Vec<Estimate>,
}

/// A query.
#[derive(Serialize, Debug)]
struct Asked {
    name: String,
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<String>,
    min_count: u32,
    #[serde(skip)]
    left_out: Option<String>,
    sql: String,
}

/// Explains a job with queries, which are planned as these passes; over all networks, or this one.
///
/// # Errors
/// An [`Error`] if the same queries cannot be planned among four parties, though they can among three.
pub fn of_queries(
    job: &Job,
    queries: &Queries,
    passes: &Passes,
    net: Option<Profile>,
    rates: &Rates,
) -> Result<Explained, Error> {
    let costs = Costs::of(passes);
    let first = passes.protocol(Peer::Party(passes.parties()[0]));
    let cpu = costs.run.cpu_seconds(rates);
    let participants = costs
        .whole
        .iter()
        .zip(cpu)
        .map(|(of, cpu_seconds)| Participant {
            name: veil_engine::name_of(passes, of.peer).to_owned(),
            role: role(of.peer),
            messages: of.sends.messages,
            bytes: of.sends.bytes,
            framed: of.framed,
            memory_bytes: of.memory,
            least_memory_bytes: of.least_memory,
            cpu_seconds,
        });
    let asked = |query: &NamedQuery| Asked {
        name: queries.title(&query.name).to_owned(),
        to: query.to.clone(),
        keep: query.keep.as_ref().map(|kept| kept.dataset.clone()),
        min_count: query.min_count,
        left_out: query.left_out(),
        sql: query.sql.clone(),
    };
    Ok(Explained {
        job: passes.job.name.clone(),
        plan: passes.hash.to_string(),
        protocol: first.name(),
        guarantee: first.guarantee(),
        security: Guarantee::of(passes.job.security),
        passes: passes.count(),
        lanes: passes.lanes,
        rounds: costs.run.rounds_of_all(),
        tables: queries.table_facts(),
        columns: queries.column_facts(),
        opened: queries.opens(),
        opened_numbers: Numbers::of(job),
        kept: queries.kept(),
        hidden: queries.hidden(),
        inexact: queries.inexact(),
        forests: queries.forests(),
        networks: queries.networks(),
        secret_weights: !queries.program().weights().is_empty(),
        models: queries.models(),
        functions: queries.functions(),
        checks: checks(queries, &costs.passes),
        collisions: queries
            .collisions()
            .iter()
            .map(ToString::to_string)
            .collect(),
        participants: participants.collect(),
        estimates: estimates(passes.program().first(), &costs.run, rates, net),
        rates: rates.origin(),
        ands: queries.ands(),
        among_three: price((job, queries, 3), passes.lanes, net, rates)?,
        among_four: price((job, queries, 4), passes.lanes, net, rates)?,
        queries: queries.queries().iter().map(asked).collect(),
        operators: operators(queries, &costs.passes),
    })
}

/// What the same costs among so many parties, for a job of fewer.
fn price(
    (job, queries, parties): (&Job, &Queries, usize),
    lanes: u16,
    net: Option<Profile>,
    rates: &Rates,
) -> Result<Option<Price>, Error> {
    let Some((more, described)) = queries.among_more(parties, job.spec(), job.roles()) else {
        return Ok(None);
    };
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let passes = &more.physical().passes;
    let passes = Passes::new(passes, Arc::new(described), Vec::new(), options)?;
    let costs = Costs::of(&passes);
    let first = passes.protocol(Peer::Party(passes.parties()[0]));
    let parties = costs.whole.iter().filter(|of| of.peer.party().is_some());
    Ok(Some(Price {
        protocol: first.name(),
        guarantee: first.guarantee(),
        rounds: costs.run.rounds_of_all(),
        party_bytes: parties.map(|of| of.sends.bytes).max().unwrap_or(0),
        estimates: estimates(passes.program().first(), &costs.run, rates, net),
    }))
}

fn list(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text
}

impl Explained {
    /// For people: of the job in this file, whose times are by these rates; with `plan`, the operators alone.
    pub fn text(&self, file: &Path, rates: &Found, plan: bool) -> String {
        if plan {
            return self.tree();
        }
        let rounds = count(self.rounds, "round");
        let lanes = count(self.lanes.into(), "lane");
        let made = match self.ands {
            Some(ands) => (
                "circuit",
                format!(
                    "all queries are one, of {} in one row, {rounds} in all, on {lanes}",
                    count(ands, "AND")
                ),
            ),
            None => (
                "passes",
                format!("{}, {rounds} in all, on {lanes}", self.passes),
            ),
        };
        let mut facts = vec![
            ("job", format!("{} ({})", self.job, file.display())),
            ("protocol", self.protocol.to_owned()),
            ("guarantee", self.guarantee.to_string()),
            ("security", self.security.to_string()),
            made,
            (
                "plan",
                format!(
                    "{} (participants compare it before anything is sent)",
                    self.plan
                ),
            ),
        ];
        facts.extend(
            self.opened_numbers
                .map(|numbers| ("opened", numbers.text())),
        );
        let facts = facts.into_iter();
        let mut text = columns(
            &facts
                .map(|(name, value)| vec![name.to_owned(), value])
                .collect::<Vec<_>>(),
        );
        text += &veil_program::openings(&self.opened, &self.hidden, &self.kept);
        if !self.functions.is_empty() {
            text += "\nfunctions that are given by their values, public to all participants\n";
        }
        text += &list(self.functions.iter().cloned());
        if !self.inexact.is_empty() {
            text += "\nfunctions without exact values, rounded to their last place\n";
        }
        text += &list(self.inexact.iter().cloned());
        if !self.forests.is_empty() || !self.networks.is_empty() {
            text += "\nmodels that are applied, public to all participants";
            text += if self.secret_weights {
                " but for secret weights\n"
            } else {
                "\n"
            };
        }
        text += &list(self.forests.iter().chain(&self.networks).cloned());
        if !self.models.is_empty() {
            text += "\nmodels that are fitted\n";
        }
        text += &list(self.models.iter().cloned());
        text += &self.reads();
        text += &self.takes(rates);
        text += "\nqueries\n";
        for query in &self.queries {
            let to = query.to.as_ref();
            let to = to.map_or_else(String::new, |to| format!(", to {to}"));
            let keep = query.keep.as_ref();
            let keep = keep.map_or_else(String::new, |name| format!(", kept as {name}"));
            let least = query.left_out.as_ref();
            let least = least.map_or_else(String::new, |of| format!(", without {of}"));
            let _ = writeln!(text, "  {}{to}{keep}{least}:", query.name);
            for line in query.sql.trim().lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }

    /// Which tables and columns are read, and what for.
    fn reads(&self) -> String {
        let mut text = "\ntables\n".to_owned();
        let rows = self.tables.iter().map(|of| {
            let claims = of.claims.join(", ");
            let claims = match (&of.dataset, of.claims.is_empty()) {
                (_, true) => String::new(),
                (None, false) => format!("claimed, and checked where it is used: {claims}"),
                (Some(_), false) => format!("known: {claims}"),
            };
            vec![
                format!("{} ({})", of.name, of.owner),
                of.rows.clone(),
                claims,
            ]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        text += &list(self.checks.iter().map(|of| {
            if let Some(ands) = of.cost.ands {
                return format!(
                    "what {} supplies is looked at in the circuit: {}",
                    of.owner,
                    count(ands, "AND")
                );
            }
            format!(
                "what {} supplies is looked at on shares first: {}, {} from all participants, {}",
                of.owner,
                match of.cost.passes {
                    1 => "1 pass".to_owned(),
                    passes => format!("{passes} passes"),
                },
                bytes(of.cost.bytes),
                count(of.cost.rounds, "round")
            )
        }));
        text += "\ncolumns that are computed on\n";
        let rows = self.columns.iter().map(|of| {
            let name = format!("{}.{} ({})", of.table, of.column, of.owner);
            let mut uses: Vec<String> = of.operations.iter().map(|one| (*one).to_owned()).collect();
            uses.push(match of.reveal {
                "never" => "not opened".into(),
                "aggregates" => "opened in aggregates".into(),
                _ => "opened in rows".into(),
            });
            vec![name, uses.join(", ")]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        text += &list(self.collisions.iter().map(|line| format!("keys: {line}")));
        text
    }

    /// What the run takes.
    fn takes(&self, rates: &Found) -> String {
        let mut text = "\nparticipants\n".to_owned();
        let rows = self.participants.iter().map(|p| {
            let mut memory = format!("at most {} of working memory", bytes(p.memory_bytes));
            if let Some(least) = p.least_memory_bytes {
                let _ = write!(memory, ", {} with `--spill`", bytes(least));
            }
            let sends = format!(
                "sends {} in {}",
                bytes(p.bytes),
                count(p.messages, "message")
            );
            vec![p.name.clone(), p.role.to_owned(), sends, memory]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        text += "\nestimated time, from the first message to the last\n";
        text += &times(&self.estimates);
        let _ = writeln!(text, "  by the rates of: {rates}");
        let others = [("three", &self.among_three), ("four", &self.among_four)];
        for (parties, price) in others {
            let Some(price) = price else {
                continue;
            };
            let _ = writeln!(
                text,
                "\nthe same among {parties} parties ({}: {}): the busiest sends {} in {}",
                price.protocol,
                price.guarantee,
                bytes(price.party_bytes),
                count(price.rounds, "round")
            );
            text += &times(&price.estimates);
        }
        text
    }

    /// The operators, each above its inputs.
    fn tree(&self) -> String {
        if self.ands.is_some() {
            let head = ["operator", "rows", "ANDs"];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(self.operators.iter().map(|of| {
                vec![
                    format!("{}{}", "  ".repeat(of.depth), of.what),
                    of.rows.to_string(),
                    of.cost.ands.unwrap_or_default().to_string(),
                ]
            }));
            return columns(&rows);
        }
        let head = ["operator", "rows", "passes", "bytes", "rounds"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.operators.iter().map(|of| {
            vec![
                format!("{}{}", "  ".repeat(of.depth), of.what),
                of.rows.to_string(),
                of.cost.passes.to_string(),
                bytes(of.cost.bytes),
                of.cost.rounds.to_string(),
            ]
        }));
        columns(&rows)
    }
}

fn times(estimates: &[Estimate]) -> String {
    let rows = estimates.iter().map(|e| {
        vec![
            e.net.to_owned(),
            format!("about {}", seconds(e.seconds)),
            e.description.clone(),
        ]
    });
    columns(&rows.collect::<Vec<_>>())
}
