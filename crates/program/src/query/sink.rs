//! A recipient's end of queries: takes the opened rows, puts them in order, and publishes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use veil_job::{DataError, Guarantee, Sink, Slice};
use veil_relation::{Field, Value};

use super::wanted::{Taken, Wanted, ended, in_rows};
use super::{NamedQuery, Queries, Writing, chart, show};
use crate::publish::{Staged, publish};
use crate::stats::{self, Relation, ResultFiles, StatsResult, TableAnalysis};

/// Why a result is incomplete.
pub(crate) const LACKS: &str = "a bound of the job has left out rows";

/// A relation that was opened to a recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The query.
    pub query: String,
    /// The columns.
    pub fields: Vec<Field>,
    /// The rows, in their order.
    pub rows: Vec<Vec<Value>>,
    /// The fewest rows of a group that is shown; 0 where all are.
    pub min_count: u32,
    /// Whether a bound has left out rows; nothing where no bound of the query says so.
    pub incomplete: Option<bool>,
}

/// Takes all that is opened to one recipient. When the last pass that opens something is over, the files have their names, all or none, and
/// [`QuerySink::answers`] has the relations.
#[derive(Debug)]
pub struct QuerySink {
    job: String,
    recipient: String,
    security: Guarantee,
    results: Vec<Wanted>,
    /// Output ports that are 0 unless the run ends without a result, and what is false then.
    ended: Vec<(usize, String)>,
    taken: Mutex<Vec<Taken>>,
    files: Mutex<Vec<(Staged, usize, Writing)>>,
    answers: OnceLock<Vec<Answered>>,
    /// The analyses whose statistics are for the recipient, and their files.
    analyses: Vec<TableAnalysis>,
    result_files: Mutex<Option<ResultFiles>>,
    statistics: OnceLock<StatsResult>,
}

impl QuerySink {
    /// The end of the recipient of this name; its files appear in `folder`, if there is one.
    pub(crate) fn new(
        (job, security): (&str, Guarantee),
        queries: &Queries,
        recipient: &str,
        folder: Option<&Path>,
    ) -> Result<Self, DataError> {
        let plan = queries.physical();
        let (mut results, mut files) = (Vec::new(), Vec::new());
        for ports in plan.results.iter().filter(|ports| ports.to == recipient) {
            let mut named = queries.asked.iter();
            let Some(query) = named.find(|query| query.name == ports.step) else {
                let message =
                    "the plan opens what no query asks for; this is a mistake of the program";
                return Err(DataError::own(message));
            };
            let Some(folder) = folder else {
                results.push(Wanted::new(plan, ports, query)?);
                continue;
            };
            for file in query.written(&ports.fields) {
                let writing = Writing::of(&file).map_err(DataError::own)?;
                files.push((Staged::create(&folder.join(&file))?, results.len(), writing));
            }
            results.push(Wanted::new(plan, ports, query)?);
        }
        let mine = queries.analyses.iter().filter(|one| one.to == recipient);
        let analyses: Vec<TableAnalysis> = mine.cloned().collect();
        let folder = folder.filter(|_| !analyses.is_empty());
        let taken = results.iter().map(|wanted| Taken {
            slices: vec![BTreeMap::new(); wanted.wires.len()],
            over: false,
        });
        Ok(Self {
            job: job.to_owned(),
            recipient: recipient.to_owned(),
            security,
            taken: Mutex::new(taken.collect()),
            results,
            ended: ended(plan)?,
            files: Mutex::new(files),
            answers: OnceLock::new(),
            analyses,
            result_files: Mutex::new(folder.map(ResultFiles::create).transpose()?),
            statistics: OnceLock::new(),
        })
    }

    /// The relations, once all are there.
    pub fn answers(&self) -> Option<&[Answered]> {
        self.answers.get().map(Vec::as_slice)
    }

    /// The statistics, once all is there; nothing of a job with queries.
    pub fn statistics(&self) -> Option<&StatsResult> {
        self.statistics.get()
    }

    /// All relations as text for a terminal, once they are there.
    pub fn text(&self) -> Option<String> {
        let answers = self.answers()?.iter();
        let texts = answers.map(|answer| answer.text(&self.job, &self.recipient));
        Some(texts.collect::<Vec<_>>().join("\n"))
    }

    /// All relations as one JSON object, once they are there.
    pub fn json(&self) -> Option<String> {
        let results: Vec<String> = self.answers()?.iter().map(Answered::json).collect();
        Some(format!("{{\"queries\":[{}]}}", results.join(",")))
    }

    /// The results that lack rows, each in a sentence, once they are there.
    pub fn incomplete(&self) -> Vec<String> {
        let answers = self.answers().unwrap_or_default().iter();
        let lacking = answers.filter(|answer| answer.incomplete == Some(true));
        let said = lacking.map(|answer| {
            let mut analyses = self.analyses.iter();
            let analysis = analyses.find(|analysis| analysis.step == answer.query);
            let name = analysis.map_or(answer.query.as_str(), TableAnalysis::name);
            format!(
                "the result of `{name}` for {} is incomplete: {LACKS}",
                self.recipient
            )
        });
        said.collect()
    }

    /// What the run was worth.
    pub const fn security(&self) -> &Guarantee {
        &self.security
    }

    /// Takes what each pass opens.
    pub(crate) fn sinks(self: &Arc<Self>) -> Vec<(usize, Arc<dyn Sink>)> {
        let mut passes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, wanted) in self.results.iter().enumerate() {
            passes.entry(wanted.ports.pass).or_default().push(index);
        }
        let sink = |results| -> Arc<dyn Sink> {
            Arc::new(PassSink {
                set: Arc::clone(self),
                results,
            })
        };
        passes
            .into_iter()
            .map(|(pass, results)| (pass, sink(results)))
            .collect()
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(
        &self,
        results: &[usize],
        port: usize,
        slice: Slice,
        given: &[u8],
    ) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        if let Some((_, what)) = self.ended.iter().find(|(ended, _)| *ended == port) {
            return match given {
                [0] => Ok(()),
                [1] => Err(DataError::own(format!(
                    "{what}: that is false, and the run is over; nothing else was opened"
                ))),
                _ => Err(beyond()),
            };
        }
        let own = |index: usize| {
            let wanted = &self.results[index];
            let port = port.checked_sub(wanted.ports.first)?;
            Some((index, wanted, port, *wanted.wires.get(port)?))
        };
        let found = results.iter().find_map(|index| own(*index));
        let (index, wanted, port, (ring, width)) = found.ok_or_else(beyond)?;
        let (whole, values);
        let slice = if wanted.in_one {
            whole = in_rows(given, (wanted.rows, width)).ok_or_else(beyond)?;
            values = whole.as_slice();
            if (slice.first, slice.rows) != (0, 1) {
                return Err(beyond());
            }
            let rows = u32::try_from(wanted.rows).map_err(|_| beyond())?;
            Slice { rows, ..slice }
        } else {
            values = given;
            slice
        };
        let end = slice.first.checked_add(slice.rows.into());
        let fits = slice.block == 0
            && end.is_some_and(|end| end <= wanted.rows)
            && values.len() as u64 == ring.bytes(slice.rows.into()) * u64::from(width);
        let mut taken = self.taken();
        let slices = &mut taken[index].slices[port];
        let before = slices.range(..=slice.first).next_back();
        let after = slices.range(slice.first..).next();
        let apart = before.is_none_or(|(first, (rows, _))| first + u64::from(*rows) <= slice.first)
            && after.is_none_or(|(first, _)| end.is_some_and(|end| end <= *first));
        if !fits || !apart {
            return Err(beyond());
        }
        slices.insert(slice.first, (slice.rows, values.to_vec()));
        Ok(())
    }

    /// A pass is over; with the last of them everything is published.
    fn finish(&self, index: usize) -> Result<(), DataError> {
        let mut taken = self.taken();
        let wanted = &self.results[index];
        let rows = |slices: &BTreeMap<u64, (u32, Vec<u8>)>| -> u64 {
            slices.values().map(|(rows, _)| u64::from(*rows)).sum()
        };
        let got: u64 = taken[index].slices.iter().map(rows).sum();
        let want = wanted.rows * wanted.wires.len() as u64;
        if got != want {
            return Err(DataError::Incomplete { got, want });
        }
        taken[index].over = true;
        if !taken.iter().all(|taken| taken.over) {
            return Ok(());
        }
        let answers = self.results.iter().zip(&*taken);
        let answers: Vec<Answered> = answers
            .map(|(wanted, taken)| wanted.answer(taken))
            .collect();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut staged = Vec::new();
        for (mut file, index, writing) in files.drain(..) {
            writing.write(&answers[index], (&self.job, &self.recipient), &mut file)?;
            staged.push(file);
        }
        if !self.analyses.is_empty() {
            let job = (self.job.as_str(), self.recipient.as_str());
            let of = of(&self.analyses, &answers);
            let result = stats::result(job, &of, Some(self.security.clone()));
            let files = self.result_files.lock();
            let files = files.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(files) = files {
                staged.extend(files.write(&result)?);
            }
            let _ = self.statistics.set(result);
        }
        publish(staged)?;
        let _ = self.answers.set(answers);
        Ok(())
    }
}

/// The relations of analyses, among all that were opened.
pub(crate) fn of<'a>(
    analyses: &'a [TableAnalysis],
    answers: &'a [Answered],
) -> Vec<(&'a TableAnalysis, Relation<'a>)> {
    let relation = |analysis: &'a TableAnalysis| {
        let mut found = answers.iter();
        let found = found.find(|answer| answer.query == analysis.step)?;
        let relation = Relation {
            fields: &found.fields,
            rows: &found.rows,
            incomplete: found.incomplete,
        };
        Some((analysis, relation))
    };
    analyses.iter().filter_map(relation).collect()
}

/// Takes what one pass opens.
#[derive(Debug)]
struct PassSink {
    set: Arc<QuerySink>,
    /// The relations that it opens, by number.
    results: Vec<usize>,
}

impl Sink for PassSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        self.set.put(&self.results, port, slice, values)
    }

    fn finish(&self) -> Result<(), DataError> {
        let mut results = self.results.iter();
        results.try_for_each(|index| self.set.finish(*index))
    }
}

impl NamedQuery {
    /// The files of a result with these columns: no chart of what makes none.
    pub(crate) fn written(&self, fields: &[Field]) -> Vec<std::path::PathBuf> {
        let drawn = chart::is_drawn(fields);
        let kept = |file: &&std::path::PathBuf| drawn || Writing::of(file) != Ok(Writing::Chart);
        self.files.iter().filter(kept).cloned().collect()
    }
}

impl Answered {
    /// A heading and the rows, cut after some.
    fn text(&self, job: &str, recipient: &str) -> String {
        self.heading(job, recipient) + &show::terminal(&self.fields, &self.rows)
    }

    /// The name of the query, and what is left out of it.
    pub(super) fn heading(&self, job: &str, recipient: &str) -> String {
        let count = match self.rows.len() {
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        let least = match self.min_count {
            0 | 1 => String::new(),
            rows => format!(", without groups of fewer than {rows} rows"),
        };
        let lacks = match self.incomplete {
            Some(true) => format!("; incomplete: {LACKS}"),
            Some(false) | None => String::new(),
        };
        format!(
            "{job}: {}, for {recipient}: {count}{least}{lacks}\n",
            self.query
        )
    }
}
