//! `veil policy`: what the standing rules say of a job, before a member asks for it.

use serde::Serialize;
use veil_node::policy::Facts;
use veil_node::{Decision, log::Event};

use crate::consent::Planned;
use crate::failure::Failure;
use crate::home::HomeArgs;
use crate::output;
use crate::prepare::JobArgs;

/// Tries the policy of a home on a job.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil policy check job.toml
  veil policy check job.toml --asked-by press --json

The rules are in policy.toml in the home; docs/consent.md says what each field means, and what it cannot promise.")]
pub(crate) enum PolicyCommand {
    /// Say which rule decides on a job, and why; nothing is approved, logged or run
    Check {
        #[command(flatten)]
        job: JobArgs,
        /// The member who would ask [default: this participant itself]
        #[arg(long, value_name = "NAME")]
        asked_by: Option<String>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    plan: String,
    allowed: bool,
    decision: String,
    rule: Option<&'a str>,
    facts: &'a Facts,
}

pub(crate) fn run(command: &PolicyCommand) -> Result<(), Failure> {
    let PolicyCommand::Check {
        job,
        asked_by,
        json,
        home,
    } = command;
    let home = home.open()?;
    let (_, planned) = Planned::load(job, false)?;
    let request = planned.request(&home, asked_by.as_deref())?;
    let decision = home.decide(&request)?;
    let facts = &planned.facts;
    if *json {
        return output::print_json(&Printed {
            plan: Event::plan(planned.plan.hash),
            allowed: decision.allows(),
            decision: decision.to_string(),
            rule: match &decision {
                Decision::Policy { rule } | Decision::Refused { rule, .. } => Some(rule),
                _ => None,
            },
            facts,
        });
    }
    let names = |set: &std::collections::BTreeSet<String>| {
        if set.is_empty() {
            return "none".to_owned();
        }
        set.iter().cloned().collect::<Vec<_>>().join(", ")
    };
    let rows = [
        ("job", facts.job.clone()),
        (
            "asked by",
            asked_by.clone().unwrap_or_else(|| "me".to_owned()),
        ),
        ("here as", names(&request.roles)),
        ("operations", names(&facts.operations)),
        ("circuits", names(&facts.circuits)),
        ("columns", names(&facts.columns)),
        ("without a name", names(&facts.unnamed)),
        ("rests on", names(&facts.assumptions)),
        ("data sets", names(&facts.datasets)),
        (
            "keeps shares",
            if facts.keeps { "yes" } else { "no" }.to_owned(),
        ),
        (
            "opens rows",
            if facts.opens_rows { "yes" } else { "no" }.to_owned(),
        ),
        ("opened to", names(&facts.to)),
        ("parties", names(&facts.parties)),
        (
            "rows",
            format!(
                "{}, {} in the smallest block, in at most {}",
                facts.rows,
                facts.smallest_block,
                output::count(facts.groups, "group")
            ),
        ),
        (
            "adversary",
            match facts.statistical {
                None => facts.adversary.clone(),
                Some(bits) => format!(
                    "{}: a cheat gets away with probability 2^-{bits} in each row or batch",
                    facts.adversary
                ),
            },
        ),
        ("delivery", facts.delivery.clone()),
        ("decision", decision.to_string()),
    ];
    output::print(&output::columns(
        &rows.map(|(name, value)| vec![name.to_owned(), value]),
    ))
}
