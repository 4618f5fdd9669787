//! Whether all that a job does is within a rule.

use veil_job::{Adversary, Delivery, Statistical, Word};

use super::judge::{Asked, Runs, USES_COLUMN, listed, lists};
use super::{Effect, Facts, ME, OPERATIONS, Rule, words};

/// Whether all that the job does is within the rule; if not, the first thing that is not.
pub(super) fn within(rule: &Rule, asked: &Asked<'_>) -> Result<(), String> {
    for (what, list, names) in lists(rule, asked) {
        let Some(list) = list else { continue };
        // A circuit has a name and a hash, and either will do.
        let either = what == "runs";
        let outside = names.iter().find(|name| !listed(what, list, name));
        let inside = names.iter().any(|name| listed(what, list, name));
        if either && !names.is_empty() && !inside {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            return Err(format!("the job runs {}", names.join(" or ")));
        }
        if let Some(name) = outside.filter(|_| !either) {
            return Err(format!("the job {what} `{name}`"));
        }
        if what == USES_COLUMN
            && let Some(input) = asked.facts.unnamed.first()
        {
            return Err(format!(
                "the job reads input `{input}`, whose columns cannot be named, and the rule lists `columns`"
            ));
        }
    }
    if rule.effect == Effect::Allow {
        said(rule, asked.facts)?;
    }
    protection(rule, asked.facts)?;
    limits(rule, asked.facts)?;
    runs(rule, asked)
}

/// Of some things a rule that allows has to say that it allows them.
fn said(rule: &Rule, facts: &Facts) -> Result<(), String> {
    // This release does not define what it means for a rule.
    let known = |name: &str| OPERATIONS.contains(&name);
    if let Some(name) = facts.operations.iter().find(|name| !known(name)) {
        return Err(format!(
            "the job computes `{name}`, of which this release knows nothing that a rule could allow"
        ));
    }
    // Stored data have no owner in the run who could say no.
    if rule.datasets.is_none()
        && let Some(name) = facts.datasets.first()
    {
        return Err(format!(
            "the job uses the stored data set `{name}`, and the rule lists no `datasets`"
        ));
    }
    // A job that was allowed before would otherwise go on under a weaker promise that its author chose.
    if rule.assumptions.is_none()
        && let Some(name) = facts.assumptions.first()
    {
        return Err(format!(
            "the job rests on `{name}`, and the rule lists no `assumptions`"
        ));
    }
    if facts.keeps && !rule.keep {
        return Err("the job keeps shares, and the rule has no `keep = true`".to_owned());
    }
    if facts.operations.contains("reshare") && rule.operations.is_none() {
        let why =
            "the job gives a stored data set to other parties, and the rule lists no `operations`";
        return Err(why.to_owned());
    }
    if facts.operations.contains("circuit") && rule.circuits.is_none() {
        return Err("the job runs a circuit, and the rule lists no `circuits`".to_owned());
    }
    Ok(())
}

/// The parties are those of the rule, and the protocol is as strong as it wants.
fn protection(rule: &Rule, facts: &Facts) -> Result<(), String> {
    if let Some(sets) = &rule.parties
        && !sets.contains(&facts.parties)
    {
        let names: Vec<&str> = facts.parties.iter().map(String::as_str).collect();
        return Err(format!("the parties are {}", names.join(", ")));
    }
    holds_against(rule, facts)?;
    at_least::<Delivery>("output", &facts.delivery, rule.delivery.as_deref())
}

/// Against whom a protocol holds that holds against `has`, as far as rules go. Of the adversaries that do what they like, the one of
/// cut-and-choose stands for a protocol whose error is chosen: a rule that wants one that holds against a malicious party has what it wants
/// if the error is small enough.
const fn covers(has: Adversary, wants: Adversary) -> bool {
    match wants {
        Adversary::SemiHonest => true,
        Adversary::Malicious => matches!(has, Adversary::Malicious | Adversary::CutAndChoose),
        Adversary::CutAndChoose => matches!(has, Adversary::CutAndChoose),
    }
}

/// The protocol holds against the adversary that the rule wants, with an error as small as it wants.
fn holds_against(rule: &Rule, facts: &Facts) -> Result<(), String> {
    if rule.adversary.is_none() && rule.statistical.is_none() {
        return Ok(());
    }
    let has = Adversary::parse(&facts.adversary).ok();
    if let Some(word) = &rule.adversary {
        let wants = Adversary::parse(word).ok();
        let covered = has
            .zip(wants)
            .is_some_and(|(has, wants)| covers(has, wants));
        if !covered {
            let has = &facts.adversary;
            return Err(format!("the protocol is {has}, and the rule wants {word}"));
        }
    }
    let least = (rule.statistical).unwrap_or(Statistical::LEAST.bits().into());
    match facts.statistical {
        Some(bits) if u64::from(bits) >= least => Ok(()),
        None if has != Some(Adversary::CutAndChoose) => Ok(()),
        Some(bits) => Err(format!(
            "a cheat gets away with probability 2^-{bits} in each row or batch, and the rule wants 2^-{least} at most"
        )),
        None => Err(format!(
            "the probability of a cheat that gets away is unknown, and the rule wants 2^-{least} at most"
        )),
    }
}

/// Rows and groups are as many as the rule wants, and no more.
fn limits(rule: &Rule, facts: &Facts) -> Result<(), String> {
    if let Some(least) = rule.min_rows
        && facts.smallest_block < least
    {
        let rows = facts.smallest_block;
        return Err(format!(
            "a block has {rows} rows, and the rule wants {least}"
        ));
    }
    if let Some(least) = rule.min_rows_per_group
        && facts.rows / facts.groups.max(1) < least
    {
        let (rows, groups) = (facts.rows, facts.groups);
        return Err(format!(
            "{rows} rows in {groups} groups are fewer than {least} per group"
        ));
    }
    if let Some(least) = rule.min_count
        && facts.min_count < least
    {
        let shown = match facts.min_count {
            0 => "whatever they have".to_owned(),
            rows => format!("from {rows} rows on"),
        };
        return Err(format!(
            "the job shows groups {shown}, and the rule wants {least} rows"
        ));
    }
    if let (Some(most), Some(rows)) = (rule.max_result_rows, facts.result_rows)
        && rows > most
    {
        return Err(format!(
            "a query opens up to {rows} rows, and the rule allows {most}"
        ));
    }
    if let Some(most) = rule.max_rows
        && facts.rows > most
    {
        let rows = facts.rows;
        return Err(format!(
            "the job has {rows} rows, and the rule allows {most}"
        ));
    }
    Ok(())
}

/// Why a rule that counts runs says nothing.
pub(super) const UNCOUNTED: &str =
    "its runs cannot be counted: the log is not in order, and `veil log verify` says where";

/// There were fewer runs than the rule allows.
fn runs(rule: &Rule, asked: &Asked<'_>) -> Result<(), String> {
    if rule.counts_runs() {
        let Runs {
            today,
            of_job,
            of_family,
        } = (asked.runs)(&rule.name).ok_or(UNCOUNTED)?;
        if rule.per_day.is_some_and(|most| today >= most) {
            return Err(format!(
                "{today} runs in the last 24 hours are all that it allows"
            ));
        }
        if rule.per_job.is_some_and(|most| of_job >= most) {
            let job = &asked.facts.job;
            return Err(format!("{of_job} runs of `{job}` are all that it allows"));
        }
        if rule.per_family.is_some() && asked.facts.families.is_empty() {
            return Err(
                "the job has no queries, and the rule counts families of queries".to_owned(),
            );
        }
        if rule.per_family.is_some_and(|most| of_family >= most) {
            let by = asked.by.unwrap_or(ME);
            return Err(format!(
                "{of_family} runs for `{by}` of queries that differ from one of these in literals alone are all that it allows"
            ));
        }
    }
    Ok(())
}

/// Whether what a job has is as strong as what a rule wants, of words of which the weakest comes first.
fn at_least<W: Word>(what: &str, has: &str, wants: Option<&str>) -> Result<(), String> {
    let strength = |name: &str| words::<W>().iter().position(|known| *known == name);
    match wants {
        Some(least) if strength(has) < strength(least) => {
            Err(format!("the {what} is {has}, and the rule wants {least}"))
        }
        _ => Ok(()),
    }
}
