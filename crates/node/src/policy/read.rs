//! Reading a policy.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use veil_job::{Adversary, Assumption, Delivery, Statistical, Word};

use super::{Effect, OPERATIONS, Policy, Rule, words};
use crate::file::{self, FileError};
use crate::names::Role;

/// The version of the file that this release reads.
const VERSION: i64 = 1;

/// What a rule may want of the statistical parameter: from what any job has to what a job can have.
const STATISTICAL: RangeInclusive<u64> = Statistical::LEAST.bits() as u64..=119;

type List = Option<Spanned<Vec<Spanned<String>>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Spanned<String>,
    decision: Spanned<String>,
    asked_by: List,
    roles: List,
    jobs: List,
    operations: List,
    circuits: List,
    columns: List,
    join_on: List,
    group_by: List,
    filters_on: List,
    datasets: List,
    assumptions: List,
    to: List,
    parties: Option<Spanned<Vec<Vec<Spanned<String>>>>>,
    keep: Option<Spanned<bool>>,
    min_rows: Option<Spanned<u64>>,
    min_rows_per_group: Option<Spanned<u64>>,
    #[serde(alias = "min_group")]
    min_count: Option<Spanned<u64>>,
    max_rows: Option<Spanned<u64>>,
    max_result_rows: Option<Spanned<u64>>,
    per_day: Option<Spanned<u64>>,
    per_job: Option<Spanned<u64>>,
    per_family: Option<Spanned<u64>>,
    adversary: Option<Spanned<String>>,
    statistical: Option<Spanned<u64>>,
    delivery: Option<Spanned<String>>,
}

/// Something wrong, and where.
struct Wrong(Range<usize>, String);

impl Policy {
    /// Reads the policy of a home; nothing, if there is no file.
    pub(crate) fn load(path: &Path) -> Result<Option<(Self, String)>, FileError> {
        match file::read(path) {
            Ok(text) => Ok(Some((Self::parse(path, &text)?, text))),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the text of a policy that is, or could be, at `path`.
    ///
    /// # Errors
    /// [`FileError::Syntax`] at the place in the text that is not understood, [`FileError::Version`] if another release wrote it.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let raw: Raw = file::parse(path, text, VERSION)?;
        let mut policy = Policy::default();
        for rule in raw.rule {
            let rule = rule_of(rule.into_inner(), &policy.rules)
                .map_err(|Wrong(span, what)| FileError::at(path, text, span, what))?;
            policy.rules.push(rule);
        }
        Ok(policy)
    }
}

fn rule_of(raw: RawRule, before: &[Rule]) -> Result<Rule, Wrong> {
    let name = raw.name.get_ref();
    if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        let what = "the name of a rule has 1 to 64 printable characters";
        return Err(Wrong(raw.name.span(), what.to_owned()));
    }
    if before.iter().any(|rule| rule.name == *name) {
        let what =
            format!("rule `{name}` is there twice; rename one, decisions and the log name them");
        return Err(Wrong(raw.name.span(), what));
    }
    let effect = match raw.decision.get_ref().as_str() {
        "allow" => Effect::Allow,
        "ask" => Effect::Ask,
        "refuse" => Effect::Refuse,
        other => {
            let what = format!("`{other}` is no decision: write \"allow\", \"ask\" or \"refuse\"");
            return Err(Wrong(raw.decision.span(), what));
        }
    };
    if effect == Effect::Refuse {
        limits_refuse_nothing(&raw)?;
    }
    let roles = Role::ALL.map(Role::name);
    let assumptions = Assumption::ALL.map(Assumption::word);
    let words = |list: List, known: &[&str], what: &str| -> Result<_, Wrong> {
        for word in list.iter().flat_map(Spanned::get_ref) {
            if !known.contains(&word.get_ref().as_str()) {
                let what = format!(
                    "`{}` is no {what}; there are {}{}",
                    word.get_ref(),
                    known.join(", "),
                    file::nearest(word.get_ref(), known)
                );
                return Err(Wrong(word.span(), what));
            }
        }
        set(list)
    };
    let circuits = raw.circuits.iter().flat_map(Spanned::get_ref);
    for circuit in circuits {
        let Some(hash) = circuit.get_ref().strip_prefix("sha256:") else {
            continue;
        };
        if hash.len() != 64 || data_encoding::HEXLOWER.decode(hash.as_bytes()).is_err() {
            let what = "a circuit's hash is `sha256:` and 64 hexadecimal digits, as `veil policy check` prints it";
            return Err(Wrong(circuit.span(), what.to_owned()));
        }
    }
    check_word::<Adversary>(raw.adversary.as_ref())?;
    check_word::<Delivery>(raw.delivery.as_ref())?;
    if let Some(bits) = &raw.statistical
        && !STATISTICAL.contains(bits.get_ref())
    {
        let what = format!(
            "`statistical` is {}: a cheat may get away with probability 2^-{} at most, whatever a rule says, and 2^-{} is the least that \
             a job can ask for",
            bits.get_ref(),
            STATISTICAL.start(),
            STATISTICAL.end(),
        );
        return Err(Wrong(bits.span(), what));
    }
    let parties = raw
        .parties
        .map(|sets| -> Result<Vec<BTreeSet<String>>, Wrong> {
            let span = sets.span();
            let sets: Vec<BTreeSet<String>> = (sets.into_inner().into_iter())
                .map(|set| set.into_iter().map(Spanned::into_inner).collect())
                .collect();
            if sets.is_empty() || sets.iter().any(|set| !(2..=4).contains(&set.len())) {
                let what =
                    "`parties` is a list of sets of two to four names: [[\"a\", \"b\", \"c\"]]";
                return Err(Wrong(span, what.to_owned()));
            }
            Ok(sets)
        });
    Ok(Rule {
        name: name.clone(),
        effect,
        asked_by: set(raw.asked_by)?,
        roles: words(raw.roles, &roles, "role")?,
        jobs: set(raw.jobs)?,
        operations: words(raw.operations, &OPERATIONS, "operation")?,
        circuits: set(raw.circuits)?,
        columns: set(raw.columns)?,
        join_on: set(raw.join_on)?,
        group_by: set(raw.group_by)?,
        filters_on: set(raw.filters_on)?,
        datasets: set(raw.datasets)?,
        assumptions: words(raw.assumptions, &assumptions, "assumption")?,
        to: set(raw.to)?,
        parties: parties.transpose()?,
        keep: raw.keep.is_some_and(Spanned::into_inner),
        min_rows: raw.min_rows.map(Spanned::into_inner),
        min_rows_per_group: raw.min_rows_per_group.map(Spanned::into_inner),
        min_count: raw.min_count.map(Spanned::into_inner),
        max_rows: raw.max_rows.map(Spanned::into_inner),
        max_result_rows: raw.max_result_rows.map(Spanned::into_inner),
        per_day: raw.per_day.map(Spanned::into_inner),
        per_job: raw.per_job.map(Spanned::into_inner),
        per_family: raw.per_family.map(Spanned::into_inner),
        adversary: raw.adversary.map(Spanned::into_inner),
        statistical: raw.statistical.map(Spanned::into_inner),
        delivery: raw.delivery.map(Spanned::into_inner),
    })
}

/// Refuses what is no word of a choice.
fn check_word<W: Word>(said: Option<&Spanned<String>>) -> Result<(), Wrong> {
    let Some(said) = said else { return Ok(()) };
    if words::<W>().contains(&said.get_ref().as_str()) {
        return Ok(());
    }
    let known = words::<W>().join(", ");
    let what = format!("`{}` is no {}; there are {known}", said.get_ref(), W::FIELD);
    Err(Wrong(said.span(), what))
}

/// A rule that refuses lists what is refused; a limit in it could be read both ways.
fn limits_refuse_nothing(raw: &RawRule) -> Result<(), Wrong> {
    let number = |field: &Option<Spanned<u64>>| field.as_ref().map(Spanned::span);
    let limits = [
        ("parties", raw.parties.as_ref().map(Spanned::span)),
        ("keep", raw.keep.as_ref().map(Spanned::span)),
        ("min_rows", number(&raw.min_rows)),
        ("min_rows_per_group", number(&raw.min_rows_per_group)),
        ("min_count", number(&raw.min_count)),
        ("max_rows", number(&raw.max_rows)),
        ("max_result_rows", number(&raw.max_result_rows)),
        ("per_day", number(&raw.per_day)),
        ("per_job", number(&raw.per_job)),
        ("per_family", number(&raw.per_family)),
        ("adversary", raw.adversary.as_ref().map(Spanned::span)),
        ("statistical", number(&raw.statistical)),
        ("delivery", raw.delivery.as_ref().map(Spanned::span)),
    ];
    for (field, span) in limits {
        if let Some(span) = span {
            let what = format!(
                "a rule that refuses has no `{field}`: put it into a rule that allows, what is beyond it is not allowed"
            );
            return Err(Wrong(span, what));
        }
    }
    Ok(())
}

fn set(list: List) -> Result<Option<BTreeSet<String>>, Wrong> {
    let Some(list) = list else { return Ok(None) };
    if list.get_ref().is_empty() {
        let what = "an empty list fits nothing; name something, or leave the field away";
        return Err(Wrong(list.span(), what.to_owned()));
    }
    let names = list.into_inner().into_iter().map(Spanned::into_inner);
    Ok(Some(names.collect()))
}

/// For fuzzing: takes `bytes` for a policy. Returns whether it was accepted.
#[doc(hidden)]
pub fn fuzz_policy(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| Policy::parse(Path::new("policy.toml"), text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(rule: &str) -> String {
        let text = format!("version = 1\n[[rule]]\n{rule}\n");
        let error = Policy::parse(Path::new("policy.toml"), &text).unwrap_err();
        error.to_string()
    }

    #[test]
    fn mistakes_are_named_with_place_and_remedy() {
        let allow = "name = \"a\"\ndecision = \"allow\"\n";
        for (rule, want) in [
            (
                format!("{allow}colums = [\"pay\"]"),
                "policy.toml:5:1: unknown field `colums`, did you mean `columns`?",
            ),
            (
                format!("{allow}operations = [\"men\"]"),
                "policy.toml:5:15: `men` is no operation; there are count, sum, mean, ratio, mean-only, min, max, variance, covariance, correlation, regression, clusters, components, tree, network, filter, join, group-by, distinct, sort, top-k, window, quantile, intersect, select-rows, open-size, flag-overflow, circuit, reshare, did you mean `mean`?",
            ),
            (
                format!("{allow}columns = []"),
                "policy.toml:5:11: an empty list fits nothing",
            ),
            (
                format!("{allow}adversary = \"evil\""),
                "policy.toml:5:13: `evil` is no adversary; there are semi-honest, malicious",
            ),
            (
                format!("{allow}statistical = 39"),
                "policy.toml:5:15: `statistical` is 39: a cheat may get away with probability 2^-40 at most",
            ),
            (
                format!("{allow}statistical = 120"),
                "policy.toml:5:15: `statistical` is 120: a cheat may",
            ),
            (
                "name = \"a\"\ndecision = \"refuse\"\nstatistical = 40".into(),
                "policy.toml:5:15: a rule that refuses has no `statistical`",
            ),
            (
                format!("{allow}delivery = \"soon\""),
                "policy.toml:5:12: `soon` is no delivery; there are abort, guaranteed",
            ),
            (
                format!("{allow}parties = [[\"a\"]]"),
                "policy.toml:5:11: `parties` is a list of sets of two to four names",
            ),
            (
                format!("{allow}circuits = [\"sha256:00\"]"),
                "policy.toml:5:13: a circuit's hash is `sha256:` and 64",
            ),
            (
                format!("{allow}roles = [\"boss\"]"),
                "`boss` is no role; there are party, owner, recipient",
            ),
            (
                format!("{allow}assumptions = [\"lpn\"]"),
                "policy.toml:5:16: `lpn` is no assumption; there are regular-lpn",
            ),
            (
                format!("{allow}per_day = -1"),
                "policy.toml:5:11: invalid value: integer `-1`",
            ),
            (
                "name = \"a\"\ndecision = \"maybe\"".into(),
                "policy.toml:4:12: `maybe` is no decision: write \"allow\", \"ask\" or \"refuse\"",
            ),
            (
                "name = \"a\"\ndecision = \"refuse\"\nmin_rows = 3".into(),
                "policy.toml:5:12: a rule that refuses has no `min_rows`",
            ),
            (
                "name = \"\"\ndecision = \"ask\"".into(),
                "policy.toml:3:8: the name of a rule has 1 to 64",
            ),
            (
                format!("{allow}[[rule]]\n{allow}"),
                "policy.toml:6:8: rule `a` is there twice",
            ),
        ] {
            let error = wrong(&rule);
            assert!(
                error.starts_with(want) || (!want.starts_with("policy") && error.contains(want)),
                "{error}\nwanted {want}"
            );
        }
    }
}
