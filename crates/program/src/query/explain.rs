//! What queries open and use, in sentences.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;
use veil_physical::{Node, Opening, To};
use veil_relation::{AggregateFunction, Bucket, ColumnId, FitKind, Operation, Plan, Reveal};

use super::{OwnerTable, Queries};

/// A number of things: `1 row`, `2 rows`.
pub(super) fn count(number: u32, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

impl Queries {
    /// What is opened, as a sentence.
    pub(super) fn sentence(&self, opening: &Opening) -> String {
        sentence(opening, |step| self.title(step).to_owned())
    }
}

/// The same, with the name of a step as the job has it.
fn sentence(opening: &Opening, name: impl Fn(&str) -> String) -> String {
    match opening {
        Opening::Rows {
            step,
            rows,
            columns,
            min_rows,
            to: _,
        } => {
            let step = name(step);
            let least = match min_rows {
                0 | 1 => String::new(),
                least => format!(", without groups of fewer than {}", count(*least, "row")),
            };
            format!(
                "`{step}`: up to {} of {}{least}",
                count(*rows, "row"),
                columns.join(", ")
            )
        }
        Opening::Duplicates { of } => {
            format!("one bit: whether a key of {of} occurs twice; the run ends if it does")
        }
        Opening::Overflow { of, rows } => format!(
            "one bit: whether {of} has more than {}; the run ends if it has",
            count(*rows, "row")
        ),
        Opening::Incomplete { step, of, to: _ } => {
            let of = of
                .iter()
                .map(|(of, rows)| format!("whether {of} has more than {}", count(*rows, "row")));
            format!(
                "`{}`, one bit: {}; the result lacks rows if so, and the run goes on",
                name(step),
                of.collect::<Vec<_>>().join(", or ")
            )
        }
        Opening::Claims { owner, of, .. } => format!(
            "one bit: whether what {owner} says of its tables is false ({}); the run ends if it is",
            of.join("; ")
        ),
        Opening::Size {
            step,
            rows,
            bucket,
            why,
        } => {
            let in_what = match bucket {
                Bucket::RoundUpTo(by) => format!("multiples of {by}"),
                Bucket::PowerOfTwo => "powers of two".into(),
            };
            format!(
                "the size of `{}`: how many of its {} count, rounded up to {in_what}: {why}",
                name(step),
                count(*rows, "row")
            )
        }
        Opening::Ended { to: _ } => {
            "one bit: whether the run ends without a result, since what the parties see ends it"
                .into()
        }
        Opening::Permutations { count: number } => format!(
            "{}, uniform whatever the values are",
            count(*number, "permutation")
        ),
    }
}

/// Something that is opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Opens {
    /// The recipient; nothing for the computing parties.
    pub to: Option<String>,
    /// What it is, as a sentence.
    pub what: String,
}

/// What is opened to whom and what is not, and what is kept, for people.
pub fn openings(opened: &[Opens], hidden: &[String], kept: &[KeptFacts]) -> String {
    let mut text = String::new();
    let mut lines = |title: &str, lines: &mut dyn Iterator<Item = &String>| {
        let _ = writeln!(text, "\n{title}");
        lines.for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
    };
    let mut names: Vec<&String> = Vec::new();
    for name in opened.iter().filter_map(|of| of.to.as_ref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let own = opened.iter().filter(|of| of.to.as_ref() == Some(name));
        let title = format!("opened to {name}, and nothing else");
        lines(&title, &mut own.map(|of| &of.what));
    }
    let title = "opened to the computing parties, and nothing else";
    let nothing = "nothing".to_owned();
    let parties = || opened.iter().filter(|of| of.to.is_none());
    if parties().next().is_none() {
        lines(title, &mut std::iter::once(&nothing));
    } else {
        lines(title, &mut parties().map(|of| &of.what));
    }
    lines("opened to no participant", &mut hidden.iter());
    if !kept.is_empty() {
        let title = "kept as shares by all parties, and not opened by it";
        lines(title, &mut std::iter::empty());
    }
    for of in kept {
        let _ = writeln!(
            text,
            "  `{}`: `{}`, {}, of which a later job has a table by",
            of.dataset,
            of.query,
            count(of.rows, "row")
        );
        for line in of.declared.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// A table, as people look at it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TableFacts {
    /// Its name.
    pub name: String,
    /// Its owner, or the dataset that it is loaded from.
    pub owner: String,
    /// The dataset that parties load it from, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Places for rows.
    pub capacity: u32,
    /// How many rows it may have, in words.
    pub rows: String,
    /// What is known of it, or the job claims of it, in words; parties check it on shares where the query rests on it.
    pub claims: Vec<String>,
}

/// A relation that the parties keep.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KeptFacts {
    /// The dataset.
    pub dataset: String,
    /// The query.
    pub query: String,
    /// Places for rows.
    pub rows: u32,
    /// Its columns.
    pub columns: Vec<String>,
    /// How a later job declares it, in the words of its file.
    pub declared: String,
}

/// A column that the queries read, and what for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ColumnFacts {
    /// Its table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Who has it.
    pub owner: String,
    /// What it decides: words of consent, as in `may`.
    pub operations: Vec<&'static str>,
    /// How much of it is opened: a word of consent, as in `reveal`.
    pub reveal: &'static str,
}

/// An operator of a plan, in the order in which a tree is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    /// How many operators are above it.
    pub depth: usize,
    /// What it does.
    pub text: String,
    /// Rows that it gives.
    pub rows: u32,
    /// Its own passes.
    pub passes: Vec<Range<usize>>,
}

impl Queries {
    /// Everything that the queries open: rows to recipients, then what the parties see.
    pub fn opens(&self) -> Vec<Opens> {
        let opens = self.physical().opens.iter();
        let mut all: Vec<Opens> = opens
            .map(|opening| Opens {
                to: match opening.to() {
                    To::Recipient(name) => Some(name),
                    To::Parties => None,
                },
                what: self.sentence(opening),
            })
            .collect();
        all.sort_by_key(|one| one.to.is_none());
        all
    }

    /// What the parties keep, in the order of passes.
    pub fn kept(&self) -> Vec<KeptFacts> {
        let keeps = self.physical().keeps.iter();
        let facts = keeps.map(|kept| KeptFacts {
            dataset: kept.dataset.clone(),
            query: self.title(&kept.step).to_owned(),
            rows: kept.table.capacity,
            columns: (kept.table.columns.iter())
                .map(|column| column.name.clone())
                .collect(),
            declared: self.declared(&kept.table),
        });
        facts.collect()
    }

    /// The owners whose tables parties look at before anything else, and the passes that do.
    pub fn checks(&self) -> Vec<(String, Range<usize>)> {
        let opens = self.physical().opens.iter();
        let checks = opens.filter_map(|opening| match opening {
            Opening::Claims { owner, passes, .. } => Some((owner.clone(), passes.clone())),
            _ => None,
        });
        checks.collect()
    }

    /// What is opened to no participant, in sentences.
    pub fn hidden(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (at, table) in self.tables.iter().enumerate() {
            let of = &table.table;
            if !self.is_taken(at) {
                all.push(format!(
                    "`{}`: no query reads it, and nothing of it is shared",
                    of.name
                ));
                continue;
            }
            let padded = if of.padded {
                format!(
                    ", nor how many of its {} are real",
                    count(of.capacity, "row")
                )
            } else {
                String::new()
            };
            all.push(format!("`{}`: no row of it{padded}", of.name));
        }
        let inner: u32 = self
            .physical()
            .tree
            .iter()
            .map(|node| relations(node) - 1)
            .sum();
        if inner > 0 {
            let of = if inner == 1 {
                "its rows count"
            } else {
                "their rows count"
            };
            all.push(format!(
                "{} on the way: not how many of {of}, nor which",
                count(inner, "relation")
            ));
        }
        all
    }

    /// The functions without exact values, and how near they are, in sentences.
    pub fn inexact(&self) -> Vec<String> {
        // It was typed when the job was read.
        let uses = self.program().reals().unwrap_or_default().into_iter();
        let said = uses.map(|of| {
            let unit = match of.places {
                0 => "1".to_owned(),
                places => format!("10^-{places}"),
            };
            format!(
                "{} in `{}`: at most {} · {unit} from the function",
                of.function.name(),
                self.title(&of.step),
                of.error
            )
        });
        said.collect()
    }

    /// The tables, in the order of the job.
    pub fn table_facts(&self) -> Vec<TableFacts> {
        let tables = self.tables.iter().enumerate();
        let weights = self.program().weights();
        let facts = |(at, table): (usize, &OwnerTable)| {
            let of = &table.table;
            let names = |columns: &[ColumnId]| -> String {
                let names = columns
                    .iter()
                    .map(|column| of.columns[column.index()].name.as_str());
                names.collect::<Vec<_>>().join(", ")
            };
            let sorted =
                (!of.sorted_by.is_empty()).then(|| format!("sorted by {}", names(&of.sorted_by)));
            let unique = of.unique.iter().map(|set| format!("unique {}", names(set)));
            let weights = weights.iter().filter(|weights| weights.table == at);
            let weights = weights.map(|of| format!("weights of network {}", of.network));
            TableFacts {
                name: of.name.clone(),
                owner: of.origin.to_string(),
                dataset: of.origin.dataset().map(str::to_owned),
                capacity: of.capacity,
                rows: table.capacity(),
                claims: sorted.into_iter().chain(unique).chain(weights).collect(),
            }
        };
        tables.map(facts).collect()
    }

    /// The columns that are read, and what for.
    pub fn column_facts(&self) -> Vec<ColumnFacts> {
        // It was allowed when the job was read.
        let uses = self.program().uses().unwrap_or_default().into_iter();
        let facts = uses.map(|of| {
            let table = &self.program().tables[of.table];
            ColumnFacts {
                table: table.name.clone(),
                column: table.columns[of.column.index()].name.clone(),
                owner: table.origin.to_string(),
                operations: of.operations.iter().map(|one| one.word()).collect(),
                reveal: of.opened.unwrap_or(Reveal::Never).word(),
            }
        });
        facts.collect()
    }

    /// What the queries do, as rules of policies name it.
    pub fn operations(&self) -> BTreeSet<&'static str> {
        let mut all = BTreeSet::new();
        for step in &self.program().steps {
            operations(&step.plan, &mut all);
        }
        if self.physical().keeps.iter().any(|kept| kept.size.is_some()) {
            all.insert("open-size");
        }
        let opens = self.physical().opens.iter();
        if { opens }.any(|opening| matches!(opening, Opening::Incomplete { .. })) {
            all.insert("flag-overflow");
        }
        // The conditions of CASE decide, too, and so do those of aggregates.
        let uses = self.program().uses().unwrap_or_default();
        if uses
            .iter()
            .any(|of| of.operations.contains(&Operation::Filter))
        {
            all.insert("filter");
        }
        if uses.iter().any(|of| of.opened == Some(Reveal::Rows)) {
            all.insert("select-rows");
        }
        all
    }

    /// The fewest rows that a table may have: 0 where the job has a bound in their place.
    pub fn fewest_rows(&self) -> u64 {
        let rows = self.tables.iter().map(|table| table.rows.least());
        rows.min().unwrap_or(0)
    }

    /// The most rows that one query opens, and the fewest rows of a group that is shown by all of them: 0 where some show rows.
    pub fn shows(&self) -> (u64, u64) {
        let opens = self.physical().opens.iter();
        let rows = opens.filter_map(|opening| match opening {
            Opening::Rows { rows, min_rows, .. } => Some((u64::from(*rows), u64::from(*min_rows))),
            _ => None,
        });
        let rows: Vec<(u64, u64)> = rows.collect();
        let most = rows.iter().map(|(rows, _)| *rows).max().unwrap_or(0);
        (
            most,
            rows.iter().map(|(_, least)| *least).min().unwrap_or(0),
        )
    }

    /// The operators of the plan, each above its inputs.
    pub fn operators(&self) -> Vec<Operator> {
        let mut all = Vec::new();
        for node in &self.physical().tree {
            operators(node, 0, &mut all);
        }
        all
    }
}

/// Notes what a plan does.
fn operations(plan: &Plan, into: &mut BTreeSet<&'static str>) {
    match plan {
        Plan::Filter { .. } => drop(into.insert("filter")),
        Plan::Join { .. } => drop(into.insert("join")),
        Plan::Distinct { .. } => drop(into.insert("distinct")),
        Plan::Sort { .. } => drop(into.insert("sort")),
        Plan::TopK { .. } => drop(into.insert("top-k")),
        Plan::Window { .. } => drop(into.insert("window")),
        Plan::GroupBy {
            keys, aggregates, ..
        } => {
            if !keys.is_empty() {
                into.insert("group-by");
            }
            into.extend(aggregates.iter().map(|of| match of.function {
                AggregateFunction::CountRows
                | AggregateFunction::Count(_)
                | AggregateFunction::CountDistinct(_) => "count",
                AggregateFunction::Sum(_) => "sum",
                AggregateFunction::Avg(_) => "mean",
                AggregateFunction::Min(_) | AggregateFunction::BoolAnd(_) => "min",
                AggregateFunction::Max(_) | AggregateFunction::BoolOr(_) => "max",
                AggregateFunction::VarSamp(_) | AggregateFunction::StddevSamp(..) => "variance",
                AggregateFunction::PercentileDisc { .. } => "quantile",
            }));
        }
        Plan::Fit { model, .. } => drop(into.insert(match model.kind {
            FitKind::Regression { .. } => "regression",
            FitKind::Clusters { .. } => "clusters",
            FitKind::Components { .. } => "components",
            FitKind::Tree { .. } => "tree",
        })),
        Plan::Apply { .. } => drop(into.insert("network")),
        Plan::Scan { .. }
        | Plan::Step { .. }
        | Plan::Project { .. }
        | Plan::UnionAll { .. }
        | Plan::Trim { .. }
        | Plan::Open { .. } => {}
    }
    for input in plan.inputs() {
        operations(input, into);
    }
}

/// How many relations a tree has.
fn relations(node: &Node) -> u32 {
    1 + node.inputs.iter().map(relations).sum::<u32>()
}

fn operators(node: &Node, depth: usize, into: &mut Vec<Operator>) {
    into.push(Operator {
        depth,
        text: node.text.clone(),
        rows: node.rows,
        passes: node.passes.clone(),
    });
    for input in &node.inputs {
        operators(input, depth + 1, into);
    }
}
