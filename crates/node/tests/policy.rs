//! Policies against whatever facts a job may have: never a panic, and never a yes to something that the text of a rule does not cover.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::collection::{btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use veil_node::policy::{Asked, Effect, Facts, Policy, Runs};
use veil_node::{Home, Role, Settings};

type Names = BTreeSet<String>;

/// A rule as a person writes it. Lists of names are by field.
#[derive(Clone, Debug)]
struct Written {
    effect: &'static str,
    lists: [Option<Names>; 12],
    limits: [Option<u64>; 7],
    parties: Option<Names>,
    keep: Option<bool>,
    adversary: Option<&'static str>,
    statistical: Option<u8>,
    delivery: Option<&'static str>,
}

const LISTS: [&str; 12] = [
    "asked_by",
    "roles",
    "jobs",
    "operations",
    "circuits",
    "columns",
    "datasets",
    "to",
    "join_on",
    "group_by",
    "filters_on",
    "assumptions",
];
const LIMITS: [&str; 7] = [
    "min_rows",
    "min_rows_per_group",
    "max_rows",
    "per_day",
    "per_job",
    "max_result_rows",
    "per_family",
];
/// Names that facts have, of which rules list some.
const NAMES: [&str; 6] = ["me", "press", "pay", "pay*", "*", "\u{1b}[2J\"\\\n"];
const OPERATIONS: [&str; 3] = ["sum", "circuit", "mean"];
const PARTIES: [&str; 4] = ["a", "b", "c", "d"];

impl Written {
    fn limits_nothing(mut self) -> Self {
        self.limits = [None; 7];
        (self.parties, self.keep) = (None, None);
        (self.adversary, self.statistical, self.delivery) = (None, None, None);
        self
    }

    fn text(&self, name: &str) -> String {
        let list = |names: &Names| {
            let quoted: Vec<String> = names
                .iter()
                .map(|name| toml::Value::from(name.as_str()).to_string())
                .collect();
            format!("[{}]", quoted.join(", "))
        };
        let mut text = format!(
            "[[rule]]\nname = \"{name}\"\ndecision = \"{}\"\n",
            self.effect
        );
        for (field, names) in LISTS.iter().zip(&self.lists) {
            text.extend(names.iter().map(|n| format!("{field} = {}\n", list(n))));
        }
        for (field, limit) in LIMITS.iter().zip(&self.limits) {
            text.extend(limit.iter().map(|n| format!("{field} = {n}\n")));
        }
        text.extend(
            self.parties
                .iter()
                .map(|n| format!("parties = [{}]\n", list(n))),
        );
        text.extend(self.keep.iter().map(|keep| format!("keep = {keep}\n")));
        text.extend(
            self.adversary
                .iter()
                .map(|a| format!("adversary = \"{a}\"\n")),
        );
        text.extend(
            self.statistical
                .iter()
                .map(|bits| format!("statistical = {bits}\n")),
        );
        text.extend(
            self.delivery
                .iter()
                .map(|d| format!("delivery = \"{d}\"\n")),
        );
        text
    }
}

fn names(
    from: &'static [&'static str],
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Names> {
    btree_set(select(from).prop_map(str::to_owned), count)
}

/// Small numbers, and those at the ends.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..6u64, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

/// What a policy file can say: numbers in TOML have a sign.
fn limit() -> impl Strategy<Value = u64> {
    number().prop_map(|n| n.min(i64::MAX as u64))
}

prop_compose! {
    fn written()(
        effect in select(&["allow", "ask", "refuse"][..]),
        asked_by in of(names(&NAMES, 1..4)),
        roles in of(names(&["owner", "recipient"], 1..3)),
        jobs in of(names(&NAMES, 1..4)),
        operations in of(names(&OPERATIONS, 1..4)),
        circuits in of(names(&NAMES, 1..4)),
        columns in of(names(&NAMES, 1..6)),
        datasets in of(names(&NAMES, 1..6)),
        to in of(names(&NAMES, 1..6)),
        (join_on, group_by, filters_on) in (of(names(&NAMES, 1..6)), of(names(&NAMES, 1..6)), of(names(&NAMES, 1..6))),
        assumptions in of(names(&["regular-lpn"], 1..2)),
        limits in [of(limit()), of(limit()), of(limit()), of(limit()), of(limit()), of(limit()), of(limit())],
        parties in of(names(&PARTIES, 2..5)),
        keep in of(any::<bool>()),
        adversary in of(select(&["semi-honest", "malicious", "malicious-cutchoose"][..])),
        statistical in of(select(&[40u8, 59, 119][..])),
        delivery in of(select(&["abort", "guaranteed"][..])),
    ) -> Written {
        let lists = [asked_by, roles, jobs, operations, circuits, columns, datasets, to, join_on, group_by, filters_on, assumptions];
        let written = Written { effect, lists, limits, parties, keep, adversary, statistical, delivery };
        if effect == "refuse" { written.limits_nothing() } else { written }
    }
}

prop_compose! {
    /// Facts of no job that there is: empty sets, no groups, unknown words, numbers that overflow when they are added.
    fn facts()(
        job in select(&["", "pay", "payroll", "me", "*", "\u{1b}[2J"][..]),
        operations in names(&["sum", "circuit", "mean", "unknown", "", "SUM"], 0..3),
        circuits in names(&NAMES, 0..3),
        columns in names(&NAMES, 0..3),
        unnamed in names(&["x", "y"], 0..2),
        datasets in names(&NAMES, 0..2),
        to in names(&NAMES, 0..3),
        keeps in any::<bool>(),
        parties in names(&PARTIES, 0..5),
        rows in number(),
        smallest_block in number(),
        groups in number(),
        adversary in select(&["", "semi-honest", "malicious", "malicious-cutchoose", "malicious-ish", "none"][..]),
        statistical in of(select(&[9u8, 39, 40, 59, 119][..])),
        opens_rows in any::<bool>(),
        delivery in select(&["", "abort", "guaranteed", "none"][..]),
        (join_on, group_by, filters_on) in (names(&NAMES, 0..3), names(&NAMES, 0..2), names(&NAMES, 0..3)),
        result_rows in of(number()),
        families in names(&NAMES, 0..2),
        assumptions in names(&["regular-lpn", "", "pay"], 0..3),
    ) -> Facts {
        Facts {
            join_on, group_by, filters_on, result_rows, families, assumptions,
            job: job.into(), operations, circuits, columns, unnamed, inputs: Vec::new(), datasets, keeps, to, parties, opens_rows, rows, smallest_block, groups,
            min_count: groups,
            protocol: "rep3".into(), adversary: adversary.into(), statistical, delivery: delivery.into(),
        }
    }
}

/// Who asks, as what this participant takes part, and how often the rule has allowed something.
#[derive(Clone, Debug)]
struct Around {
    by: Option<&'static str>,
    roles: Names,
    runs: Runs,
}

prop_compose! {
    fn around()(
        by in of(select(&["press", "pay", ""][..])),
        roles in names(&["owner", "recipient", "party"], 0..3),
        runs in (number(), number(), number()).prop_map(|(today, of_job, of_family)| Runs { today, of_job, of_family }),
    ) -> Around {
        Around { by, roles, runs }
    }
}

/// What the documentation says of a rule, read word by word.
fn fits(rule: &Written, facts: &Facts, around: &Around) -> bool {
    let one = |name: &str| Names::from([name.to_owned()]);
    let does = [
        one(around.by.unwrap_or("me")),
        around.roles.clone(),
        one(&facts.job),
        facts.operations.clone(),
        facts.circuits.clone(),
        facts.columns.clone(),
        facts.datasets.clone(),
        facts.to.clone(),
        facts.join_on.clone(),
        facts.group_by.clone(),
        facts.filters_on.clone(),
        facts.assumptions.clone(),
    ];
    let has = |field: usize, list: &Names, name: &String| {
        let star = |pattern: &String| {
            pattern
                .strip_suffix('*')
                .is_some_and(|p| name.starts_with(p))
        };
        list.contains(name) || LISTS[field] == "jobs" && list.iter().any(star)
    };
    let listed = (0..12).filter_map(|field| Some((field, rule.lists[field].as_ref()?)));
    // What has no name may be any column, and may be none that is listed.
    let nameless = |field: usize| LISTS[field] == "columns" && !facts.unnamed.is_empty();
    if rule.effect == "refuse" {
        return { listed }.all(|(field, list)| {
            nameless(field) || does[field].iter().any(|name| has(field, list, name))
        });
    }
    let within = { listed }.all(|(field, list)| {
        let mut names = does[field].iter();
        if nameless(field) {
            return false;
        }
        // Its name or its hash: one of them is enough.
        if LISTS[field] == "circuits" {
            does[field].is_empty() || names.any(|name| has(field, list, name))
        } else {
            names.all(|name| has(field, list, name))
        }
    });
    let [
        min_rows,
        per_group,
        max_rows,
        per_day,
        per_job,
        results,
        per_family,
    ] = rule.limits;
    let strength = |word: &str| {
        let words = ["abort", "guaranteed"];
        words.iter().position(|w| *w == word)
    };
    let limits = min_rows.is_none_or(|least| facts.smallest_block >= least)
        && per_group.is_none_or(|least| {
            u128::from(facts.rows) >= u128::from(least) * u128::from(facts.groups.max(1))
        })
        && max_rows.is_none_or(|most| facts.rows <= most)
        && results.is_none_or(|most| facts.result_rows.is_none_or(|rows| rows <= most))
        && per_day.is_none_or(|most| around.runs.today < most)
        && per_job.is_none_or(|most| around.runs.of_job < most)
        && per_family.is_none_or(|most| !facts.families.is_empty() && around.runs.of_family < most)
        && rule
            .parties
            .as_ref()
            .is_none_or(|set| *set == facts.parties)
        && rule.adversary.is_none_or(|least| {
            matches!(
                (least, facts.adversary.as_str()),
                (
                    "semi-honest",
                    "semi-honest" | "malicious" | "malicious-cutchoose"
                ) | ("malicious", "malicious" | "malicious-cutchoose")
                    | ("malicious-cutchoose", "malicious-cutchoose")
            )
        })
        && (rule.adversary.is_none() && rule.statistical.is_none()
            || match facts.statistical {
                Some(bits) => bits >= rule.statistical.unwrap_or(40),
                None => facts.adversary != "malicious-cutchoose",
            })
        && rule.delivery.is_none_or(|least| {
            strength(&facts.delivery).is_some_and(|s| Some(s) >= strength(least))
        });
    let unsaid = facts.datasets.is_empty() || rule.lists[6].is_some();
    let rests = facts.assumptions.is_empty() || rule.lists[11].is_some();
    let kept = !facts.keeps || rule.keep == Some(true);
    let circuit = !facts.operations.contains("circuit") || rule.lists[4].is_some();
    let known = facts
        .operations
        .iter()
        .all(|o| OPERATIONS.contains(&o.as_str()));
    within && limits && (rule.effect == "ask" || unsaid && rests && kept && circuit && known)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// A second implementation of the rules, on arbitrary facts.
    #[test]
    fn a_policy_decides_what_its_text_says_whatever_the_facts(
        rules in vec(written(), 0..4),
        facts in facts(),
        around in around(),
    ) {
        let mut text = "version = 1\n".to_owned();
        for (index, rule) in rules.iter().enumerate() {
            text += &rule.text(&index.to_string());
        }
        let policy = Policy::parse(Path::new("policy.toml"), &text).unwrap();
        let judged = policy.judge(&Asked {
            facts: &facts,
            by: around.by,
            roles: &around.roles,
            runs: &|_| Some(around.runs),
        });
        let first = rules.iter().position(|rule| fits(rule, &facts, &around));
        let expected = first.map(|index| {
            let effect = match rules[index].effect {
                "allow" => Effect::Allow,
                "ask" => Effect::Ask,
                _ => Effect::Refuse,
            };
            (index.to_string(), effect)
        });
        prop_assert_eq!(judged.decided, expected, "{}", text);
        let before = first.unwrap_or(rules.len());
        prop_assert!(judged.reasons.len() >= before, "every rule before says why it does not fit");
    }
}

/// A rule that allows what this participant asks for itself allows no member that took that name.
#[test]
fn no_participant_can_be_called_me() {
    let wrong = "means the author of a policy in its rules; choose another";
    let error = Settings::new("me", Role::Owner).unwrap_err().to_string();
    assert!(error.ends_with(wrong), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(
        &folder.path().join("ann"),
        &Settings::new("ann", Role::Owner).unwrap(),
    )
    .unwrap();
    let key = home.identity().fingerprint();
    let error = home.pin("me", Role::Owner, key, None).unwrap_err();
    assert!(error.to_string().contains(wrong), "{error}");
    let hour = std::time::Duration::from_secs(3600);
    let error = home.invite("me", Role::Owner, hour).unwrap_err();
    assert!(error.to_string().contains(wrong), "{error}");
}
