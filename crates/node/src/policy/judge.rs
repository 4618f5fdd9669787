//! Which rule of a policy decides on a job, and why the others do not.

use std::collections::BTreeSet;

use super::within::{UNCOUNTED, within};
use super::{Effect, Facts, ME, Policy, Rule};

/// Who asks for what, and what happened before.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "one field is a function")]
pub struct Asked<'a> {
    /// The job.
    pub facts: &'a Facts,
    /// The member who asks; nothing, if this participant does.
    pub by: Option<&'a str>,
    /// As what this participant takes part.
    pub roles: &'a BTreeSet<String>,
    /// Runs so far, by rule. Nothing, if they cannot be counted.
    pub runs: &'a dyn Fn(&str) -> Option<Runs>,
}

/// Runs that a rule allowed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Runs {
    /// In the last 24 hours.
    pub today: u64,
    /// Of jobs of this name, ever.
    pub of_job: u64,
    /// Of jobs of this asker with a query of the same family, ever: of that family of the job of which there are most.
    pub of_family: u64,
}

/// A policy's judgement of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The rule that decided, and what; nothing, if none fits.
    pub decided: Option<(String, Effect)>,
    /// Why: for a refusal what it refuses, else why each rule before did not fit.
    pub reasons: Vec<String>,
}

impl Rule {
    /// Whether it counts runs.
    pub(super) const fn counts_runs(&self) -> bool {
        self.per_day.is_some() || self.per_job.is_some() || self.per_family.is_some()
    }
}

impl Policy {
    /// Whether a rule counts runs.
    pub(crate) fn counts_runs(&self) -> bool {
        self.rules.iter().any(Rule::counts_runs)
    }

    /// Finds the rule that decides.
    pub fn judge(&self, asked: &Asked<'_>) -> Judgement {
        let mut reasons = Vec::new();
        // A rule before that may have been the one to decide.
        let mut open = false;
        for rule in &self.rules {
            let fits = match rule.effect {
                Effect::Refuse => refused(rule, asked),
                Effect::Allow | Effect::Ask => within(rule, asked).map(|()| Vec::new()),
            };
            match fits {
                Ok(_) if open && rule.effect != Effect::Refuse => break,
                Ok(why) => {
                    reasons.extend(why);
                    return Judgement {
                        decided: Some((rule.name.clone(), rule.effect)),
                        reasons,
                    };
                }
                Err(why) => {
                    open |= why == UNCOUNTED;
                    reasons.push(format!("rule `{}`: {why}", rule.name));
                }
            }
        }
        Judgement {
            decided: None,
            reasons,
        }
    }
}

/// What a list of a rule is of, the list, and what the job has of it.
pub(super) type Listed<'a> = (
    &'static str,
    Option<&'a BTreeSet<String>>,
    BTreeSet<&'a str>,
);

/// What the list of columns is of.
pub(super) const USES_COLUMN: &str = "uses the column";

/// The lists of a rule, what they are of, and what the job has of it.
pub(super) fn lists<'a>(rule: &'a Rule, asked: &Asked<'a>) -> [Listed<'a>; 12] {
    fn all(set: &BTreeSet<String>) -> BTreeSet<&str> {
        set.iter().map(String::as_str).collect()
    }
    let facts = asked.facts;
    [
        (
            "is asked for by",
            rule.asked_by.as_ref(),
            BTreeSet::from([asked.by.unwrap_or(ME)]),
        ),
        (
            "has this participant as",
            rule.roles.as_ref(),
            all(asked.roles),
        ),
        (
            "is named",
            rule.jobs.as_ref(),
            BTreeSet::from([facts.job.as_str()]),
        ),
        ("computes", rule.operations.as_ref(), all(&facts.operations)),
        ("runs", rule.circuits.as_ref(), all(&facts.circuits)),
        (USES_COLUMN, rule.columns.as_ref(), all(&facts.columns)),
        ("joins on", rule.join_on.as_ref(), all(&facts.join_on)),
        ("groups by", rule.group_by.as_ref(), all(&facts.group_by)),
        (
            "filters by",
            rule.filters_on.as_ref(),
            all(&facts.filters_on),
        ),
        (
            "uses the stored data set",
            rule.datasets.as_ref(),
            all(&facts.datasets),
        ),
        (
            "rests on",
            rule.assumptions.as_ref(),
            all(&facts.assumptions),
        ),
        ("opens values to", rule.to.as_ref(), all(&facts.to)),
    ]
}

/// Whether a list of a rule has a name. Names of jobs may end in a star.
pub(super) fn listed(what: &str, list: &BTreeSet<String>, name: &str) -> bool {
    list.contains(name)
        || what == "is named"
            && (list.iter())
                .filter_map(|pattern| pattern.strip_suffix('*'))
                .any(|start| name.starts_with(start))
}

/// Whether the job does something of everything that the rule lists; if so, what, else why not.
fn refused(rule: &Rule, asked: &Asked<'_>) -> Result<Vec<String>, String> {
    let mut does = Vec::new();
    for (what, list, names) in lists(rule, asked) {
        let Some(list) = list else { continue };
        let touched = names.iter().find(|name| listed(what, list, name));
        // What cannot be named may be what is refused.
        let unnamed = (asked.facts.unnamed.first()).filter(|_| what == USES_COLUMN);
        match (touched, unnamed) {
            (Some(name), _) => does.push(format!("it {what} `{name}`")),
            (None, Some(input)) => {
                does.push(format!(
                    "it reads input `{input}`, whose columns cannot be named"
                ));
            }
            (None, None) => return Err("it refuses other jobs".to_owned()),
        }
    }
    if does.is_empty() {
        does.push("it refuses every job".to_owned());
    }
    Ok(does)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn facts() -> Facts {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Facts {
            job: "pay 2025".into(),
            operations: set(&["mean", "count"]),
            circuits: BTreeSet::new(),
            columns: set(&["pay", "sex"]),
            join_on: BTreeSet::new(),
            group_by: BTreeSet::new(),
            filters_on: BTreeSet::new(),
            result_rows: None,
            families: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            inputs: Vec::new(),
            datasets: BTreeSet::new(),
            assumptions: BTreeSet::new(),
            keeps: false,
            to: set(&["press"]),
            parties: set(&["a", "b", "c"]),
            opens_rows: false,
            rows: 100,
            smallest_block: 30,
            min_count: 5,
            groups: 4,
            protocol: "rep3".into(),
            adversary: "semi-honest".into(),
            statistical: None,
            delivery: "abort".into(),
        }
    }

    fn judge(rules: &str, facts: &Facts) -> Judgement {
        let text = format!("version = 1\n{rules}");
        let policy = Policy::parse(Path::new("policy.toml"), &text).unwrap();
        policy.judge(&Asked {
            facts,
            by: Some("press"),
            roles: &BTreeSet::from(["owner".to_owned()]),
            runs: &|rule| match rule {
                "often" => Some(Runs {
                    today: 3,
                    of_job: 7,
                    of_family: 2,
                }),
                "damaged" => None,
                _ => Some(Runs::default()),
            },
        })
    }

    const PAY: &str = r#"
        [[rule]]
        name = "pay"
        decision = "allow"
        asked_by = ["press", "me"]
        roles = ["owner"]
        jobs = ["pay *", "age"]
        operations = ["count", "mean"]
        columns = ["pay", "sex", "age"]
        to = ["press"]
        parties = [["c", "b", "a"]]
        min_rows = 30
        min_rows_per_group = 25
        min_count = 5
        max_rows = 100
        adversary = "semi-honest"
    "#;

    type Change = fn(&mut Facts);

    #[test]
    fn a_rule_allows_what_is_wholly_within_it() {
        let judged = judge(PAY, &facts());
        assert_eq!(judged.decided, Some(("pay".into(), Effect::Allow)));
        let changes: [(Change, &str); 13] = [
            (|f| f.job = "wages".into(), "the job is named `wages`"),
            (
                |f| assert!(f.operations.insert("sum".into())),
                "the job computes `sum`",
            ),
            (
                |f| assert!(f.columns.insert("home".into())),
                "the job uses the column `home`",
            ),
            (
                |f| assert!(f.to.insert("eve".into())),
                "the job opens values to `eve`",
            ),
            (|f| drop(f.parties.pop_first()), "the parties are b, c"),
            (
                |f| f.smallest_block = 29,
                "a block has 29 rows, and the rule wants 30",
            ),
            (
                |f| f.groups = 5,
                "100 rows in 5 groups are fewer than 25 per group",
            ),
            (
                |f| f.min_count = 4,
                "the job shows groups from 4 rows on, and the rule wants 5 rows",
            ),
            (
                |f| f.min_count = 0,
                "the job shows groups whatever they have, and the rule wants 5 rows",
            ),
            (
                |f| (f.rows, f.groups) = (101, 1),
                "the job has 101 rows, and the rule allows 100",
            ),
            (
                |f| f.adversary = String::new(),
                "the protocol is , and the rule wants semi-honest",
            ),
            (
                |f| f.keeps = true,
                "the job keeps shares, and the rule has no `keep = true`",
            ),
            (
                |f| assert!(f.datasets.insert("old".into())),
                "the job uses the stored data set `old`, and the rule lists no `datasets`",
            ),
        ];
        for (change, want) in changes {
            let mut facts = facts();
            change(&mut facts);
            let judged = judge(PAY, &facts);
            assert_eq!(judged.decided, None, "{want}");
            assert_eq!(judged.reasons, [format!("rule `pay`: {want}")]);
        }
    }

    #[test]
    fn a_rule_refuses_what_touches_it_and_the_first_that_fits_decides() {
        let refuse = "[[rule]]\nname = \"no homes\"\ndecision = \"refuse\"\ncolumns = [\"home\", \"sex\"]\nto = [\"press\"]\n";
        let judged = judge(&format!("{refuse}{PAY}"), &facts());
        assert_eq!(judged.decided, Some(("no homes".into(), Effect::Refuse)));
        assert_eq!(
            judged.reasons,
            ["it uses the column `sex`", "it opens values to `press`"]
        );
        let judged = judge(&format!("{PAY}{refuse}"), &facts());
        assert_eq!(judged.decided, Some(("pay".into(), Effect::Allow)));
        let mut inside = facts();
        inside.to = BTreeSet::from(["b".to_owned()]);
        let judged = judge(refuse, &inside);
        assert_eq!(judged.decided, None, "all that it lists must be touched");
        let everything = "[[rule]]\nname = \"closed\"\ndecision = \"refuse\"\n";
        assert_eq!(
            judge(everything, &facts()).reasons,
            ["it refuses every job"]
        );
        let ask = "[[rule]]\nname = \"person\"\ndecision = \"ask\"\n";
        assert_eq!(
            judge(ask, &facts()).decided,
            Some(("person".into(), Effect::Ask))
        );
        assert_eq!(judge("", &facts()).decided, None);
    }

    #[test]
    fn what_has_no_name_is_in_no_list_of_columns_and_refused_by_each() {
        let mut facts = facts();
        assert!(facts.unnamed.insert("x".into()));
        let judged = judge(PAY, &facts);
        assert_eq!(judged.decided, None);
        assert_eq!(
            judged.reasons,
            [
                "rule `pay`: the job reads input `x`, whose columns cannot be named, and the rule lists `columns`"
            ]
        );
        let refuse = |more: &str| {
            format!("[[rule]]\nname = \"no\"\ndecision = \"refuse\"\ncolumns = [\"home\"]\n{more}")
        };
        let judged = judge(&refuse(""), &facts);
        assert_eq!(judged.decided, Some(("no".into(), Effect::Refuse)));
        assert_eq!(
            judged.reasons,
            ["it reads input `x`, whose columns cannot be named"]
        );
        let judged = judge(&refuse("to = [\"eve\"]\n"), &facts);
        assert_eq!(judged.decided, None, "all that it lists must be touched");
        // A rule before it that says nothing of columns.
        let allow = "[[rule]]\nname = \"yes\"\ndecision = \"allow\"\nto = [\"press\"]\n";
        let judged = judge(&format!("{allow}{}", refuse("")), &facts);
        assert_eq!(judged.decided, Some(("yes".into(), Effect::Allow)));
    }

    /// `malicious` is wanted, and cut-and-choose is as good as its parameter.
    #[test]
    fn adversaries_have_an_order_and_a_parameter() {
        let adversaries = [
            ("semi-honest", None),
            ("malicious", None),
            ("malicious-cutchoose", Some(9)),
            ("malicious-cutchoose", Some(39)),
            ("malicious-cutchoose", Some(40)),
            ("malicious-cutchoose", Some(59)),
            ("", None),
            ("malicious-cutchoose", None),
        ];
        let allowed = |rule: &str| {
            let rule = format!("[[rule]]\nname = \"m\"\ndecision = \"allow\"\n{rule}\n");
            adversaries.map(|(adversary, statistical)| {
                let adversary = adversary.to_owned();
                let facts = Facts {
                    adversary,
                    statistical,
                    ..facts()
                };
                judge(&rule, &facts).decided.is_some()
            })
        };
        let none = allowed("statistical = 40");
        assert_eq!(none, [true, true, false, false, true, true, true, false]);
        let semi_honest = allowed("adversary = \"semi-honest\"");
        assert_eq!(
            semi_honest,
            [true, true, false, false, true, true, false, false]
        );
        let malicious = allowed("adversary = \"malicious\"");
        assert_eq!(
            malicious,
            [false, true, false, false, true, true, false, false]
        );
        let more = allowed("adversary = \"malicious\"\nstatistical = 59");
        assert_eq!(more, [false, true, false, false, false, true, false, false]);
        let cut = allowed("adversary = \"malicious-cutchoose\"");
        assert_eq!(cut, [false, false, false, false, true, true, false, false]);
        let weak = Facts {
            adversary: "malicious-cutchoose".into(),
            statistical: Some(9),
            ..facts()
        };
        let rule = "[[rule]]\nname = \"m\"\ndecision = \"allow\"\nadversary = \"malicious\"\n";
        assert_eq!(
            judge(rule, &weak).reasons,
            [
                "rule `m`: a cheat gets away with probability 2^-9 in each row or batch, and the rule wants 2^-40 at most"
            ]
        );
    }

    #[test]
    fn runs_are_counted() {
        let rule =
            |limit: &str| format!("[[rule]]\nname = \"often\"\ndecision = \"allow\"\n{limit}\n");
        assert!(
            judge(&rule("per_day = 4\nper_job = 8"), &facts())
                .decided
                .is_some()
        );
        let judged = judge(&rule("per_day = 3"), &facts());
        assert_eq!(
            judged.reasons,
            ["rule `often`: 3 runs in the last 24 hours are all that it allows"]
        );
        let judged = judge(&rule("per_job = 7"), &facts());
        assert_eq!(
            judged.reasons,
            ["rule `often`: 7 runs of `pay 2025` are all that it allows"]
        );
        let mut asks = facts();
        let judged = judge(&rule("per_family = 9"), &asks);
        assert_eq!(
            judged.reasons,
            ["rule `often`: the job has no queries, and the rule counts families of queries"]
        );
        asks.families.insert("ab".into());
        assert!(judge(&rule("per_family = 3"), &asks).decided.is_some());
        let judged = judge(&rule("per_family = 2"), &asks);
        assert_eq!(
            judged.reasons,
            [
                "rule `often`: 2 runs for `press` of queries that differ from one of these in literals alone are all that it allows"
            ]
        );
    }

    /// A rule that counts what cannot be counted decides nothing, and none after it allows what it might have asked or refused.
    #[test]
    fn what_cannot_be_counted_allows_nothing() {
        let rule = |name: &str, decision: &str, limit: &str| {
            format!("[[rule]]\nname = \"{name}\"\ndecision = \"{decision}\"\n{limit}\n")
        };
        let damaged = rule("damaged", "allow", "per_day = 9");
        let judged = judge(&(damaged.clone() + &rule("all", "allow", "")), &facts());
        assert_eq!(judged.decided, None);
        assert_eq!(
            judged.reasons,
            [
                "rule `damaged`: its runs cannot be counted: the log is not in order, and `veil log verify` says where"
            ]
        );
        let judged = judge(&(damaged.clone() + &rule("none", "refuse", "")), &facts());
        assert_eq!(judged.decided, Some(("none".into(), Effect::Refuse)));
        // One that does not fit anyway leaves the others as they are.
        let other = rule("damaged", "allow", "per_day = 9\njobs = [\"age\"]");
        let judged = judge(&(other + &rule("all", "allow", "")), &facts());
        assert_eq!(judged.decided, Some(("all".into(), Effect::Allow)));
    }

    /// An assumption that a member's job adds is one that a person or a rule has to name.
    #[test]
    fn what_a_job_rests_on_beyond_others_a_rule_has_to_say() {
        let mut facts = facts();
        facts.assumptions = BTreeSet::from(["regular-lpn".to_owned()]);
        let rule = |decision: &str, list: &str| {
            format!("[[rule]]\nname = \"s\"\ndecision = \"{decision}\"\n{list}\n")
        };
        let named = "assumptions = [\"regular-lpn\"]";
        let allowed = Some(("s".to_owned(), Effect::Allow));
        assert_eq!(judge(&rule("allow", named), &facts).decided, allowed);
        let judged = judge(&rule("allow", ""), &facts);
        assert_eq!(judged.decided, None);
        assert_eq!(
            judged.reasons,
            ["rule `s`: the job rests on `regular-lpn`, and the rule lists no `assumptions`"]
        );
        let judged = judge(&rule("refuse", named), &facts);
        assert_eq!(judged.decided, Some(("s".to_owned(), Effect::Refuse)));
        assert_eq!(judged.reasons, ["it rests on `regular-lpn`"]);
        let another = Facts {
            assumptions: BTreeSet::from(["another".to_owned()]),
            ..facts.clone()
        };
        let judged = judge(&rule("allow", named), &another);
        assert_eq!(judged.reasons, ["rule `s`: the job rests on `another`"]);
        // Jobs that rest on nothing more are what they were.
        facts.assumptions.clear();
        for list in ["", named] {
            assert_eq!(judge(&rule("allow", list), &facts).decided, allowed);
        }
        assert_eq!(judge(&rule("refuse", named), &facts).decided, None);
    }

    #[test]
    fn a_data_set_goes_to_other_parties_only_if_a_rule_says_so() {
        let mut facts = facts();
        facts.operations = BTreeSet::from(["reshare".to_owned()]);
        facts.datasets = BTreeSet::from(["pay 2025".to_owned()]);
        facts.keeps = true;
        let decided = |list: &str| {
            let datasets = "datasets = [\"pay 2025\"]\nkeep = true\n";
            let rule = format!("[[rule]]\nname = \"s\"\ndecision = \"allow\"\n{datasets}{list}");
            judge(&rule, &facts)
        };
        assert!(decided("operations = [\"reshare\"]").decided.is_some());
        let judged = decided("");
        assert!(
            judged.reasons[0].ends_with("the rule lists no `operations`"),
            "{judged:?}"
        );
        let judged = decided("operations = [\"sum\"]");
        assert!(
            judged.reasons[0].ends_with("the job computes `reshare`"),
            "{judged:?}"
        );
    }

    #[test]
    fn queries_are_within_their_columns_and_sizes() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let facts = Facts {
            operations: set(&["join", "group-by", "sum"]),
            columns: set(&[
                "stays.patient",
                "stays.cost",
                "people.patient",
                "stays.ward",
            ]),
            join_on: set(&["stays.patient", "people.patient"]),
            group_by: set(&["stays.ward"]),
            result_rows: Some(12),
            ..facts()
        };
        let rule = |more: &str| format!("[[rule]]\nname = \"q\"\ndecision = \"allow\"\n{more}\n");
        for (more, why) in [
            ("join_on = [\"stays.patient\", \"people.patient\"]", ""),
            (
                "join_on = [\"stays.patient\"]",
                "the job joins on `people.patient`",
            ),
            (
                "group_by = [\"stays.ward\"]\nfilters_on = [\"stays.since\"]",
                "",
            ),
            (
                "group_by = [\"stays.since\"]",
                "the job groups by `stays.ward`",
            ),
            ("max_result_rows = 12\nmin_group = 5", ""),
            (
                "max_result_rows = 11",
                "a query opens up to 12 rows, and the rule allows 11",
            ),
            (
                "min_group = 6",
                "the job shows groups from 5 rows on, and the rule wants 6 rows",
            ),
            (
                "operations = [\"join\", \"sum\"]",
                "the job computes `group-by`",
            ),
        ] {
            let judged = judge(&rule(more), &facts);
            let expected: Vec<String> = Some(why)
                .filter(|why| !why.is_empty())
                .map(|why| format!("rule `q`: {why}"))
                .into_iter()
                .collect();
            assert_eq!(judged.reasons, expected, "{more}");
            assert_eq!(judged.decided.is_some(), why.is_empty(), "{more}");
        }
        let filters = Facts {
            filters_on: set(&["people.born"]),
            ..facts
        };
        let refuse =
            "[[rule]]\nname = \"no\"\ndecision = \"refuse\"\nfilters_on = [\"people.born\"]\n";
        assert_eq!(
            judge(refuse, &filters).reasons,
            ["it filters by `people.born`"]
        );
    }

    #[test]
    fn circuits_go_by_name_or_by_hash_and_never_unnamed() {
        let mut facts = facts();
        let hash = format!("sha256:{}", "0".repeat(64));
        facts.operations = BTreeSet::from(["circuit".to_owned()]);
        facts.columns.clear();
        facts.circuits = BTreeSet::from(["aes128".to_owned(), hash.clone()]);
        let rule = |list: &str| format!("[[rule]]\nname = \"c\"\ndecision = \"allow\"\n{list}\n");
        assert!(
            judge(&rule("circuits = [\"aes128\"]"), &facts)
                .decided
                .is_some()
        );
        assert!(
            judge(&rule(&format!("circuits = [\"{hash}\"]")), &facts)
                .decided
                .is_some()
        );
        let judged = judge(&rule("circuits = [\"sha256\"]"), &facts);
        assert!(
            judged.reasons[0].contains("the job runs `aes128` or `sha256:0000"),
            "{judged:?}"
        );
        let judged = judge(&rule(""), &facts);
        assert!(
            judged.reasons[0].ends_with("the rule lists no `circuits`"),
            "{judged:?}"
        );
    }
}
