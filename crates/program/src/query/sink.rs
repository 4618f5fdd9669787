//! A recipient's end of queries: takes the opened rows, puts them in order, and publishes them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use veil_job::passes::PassSpec;
use veil_job::{Audience, DataError, Guarantee, JobSpec, Sink, Slice};
use veil_math::Ring;
use veil_physical::{PhysicalPlan, ResultPorts};
use veil_relation::{Expr, Field, SortKey, Value};

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

/// A relation that is wanted, and the pass that opens it.
#[derive(Debug)]
struct Wanted {
    ports: ResultPorts,
    /// Rows of the relation.
    rows: u64,
    /// The ring and the number of wires of each port, in one row of the relation.
    wires: Vec<(Ring, u32)>,
    /// Whether the pass has one row, in which all of the relation stand one behind the other.
    in_one: bool,
    min_count: u32,
}

/// What hides results of two parties where a claim is false.
fn ended(plan: &PhysicalPlan) -> Result<Vec<(usize, String)>, DataError> {
    let Some(wires) = &plan.wires else {
        return Ok(vec![]);
    };
    let job = job_of(plan, 0)?;
    let ports = job.audiences.iter().zip(&job.opened).enumerate();
    let claims = ports.filter(|(_, (to, _))| **to == Audience::Parties);
    let claims = claims.map(|(port, (_, what))| (port, what.clone()));
    let told = wires.ended.iter().map(|(_, port)| {
        let what = "what the job claims of its rows".to_owned();
        (*port, what)
    });
    Ok(claims.chain(told).collect())
}

/// What has come of a relation.
#[derive(Debug, Default)]
struct Taken {
    /// By port: slices by their first row.
    slices: Vec<BTreeMap<u64, (u32, Vec<u8>)>>,
    over: bool,
}

/// The job of a pass of rows.
fn job_of(plan: &PhysicalPlan, pass: usize) -> Result<&JobSpec, DataError> {
    match plan.passes.passes.get(pass) {
        Some(PassSpec::Rows { job, .. }) => Ok(job),
        _ => Err(DataError::own(
            "the plan opens in a pass that opens nothing; this is a mistake of the program",
        )),
    }
}

impl Wanted {
    fn new(
        plan: &PhysicalPlan,
        ports: &ResultPorts,
        query: &NamedQuery,
    ) -> Result<Self, DataError> {
        let job = job_of(plan, ports.pass)?;
        let plain = |key: &SortKey| matches!(key.expr, Expr::Column(..));
        let in_one = plan.wires.is_some();
        let own = job.circuit.outputs.get(ports.first..);
        let outputs = own.and_then(|own| own.get(..ports.ports.len()));
        let all = in_one || job.circuit.outputs.len() == ports.ports.len();
        let Some(outputs) = outputs.filter(|_| all && ports.order.iter().flatten().all(plain))
        else {
            return Err(DataError::own(
                "the plan opens other columns than it says; this is a mistake of the program",
            ));
        };
        let of_row = if in_one { ports.rows.max(1) } else { 1 };
        let outputs = outputs.iter();
        Ok(Self {
            rows: ports.rows.into(),
            wires: outputs
                .map(|output| (job.circuit.ring, output.wires.len() as u32 / of_row))
                .collect(),
            in_one,
            ports: ports.clone(),
            min_count: query.min_count,
        })
    }

    /// The values of a port, by row.
    fn values(&self, port: usize, taken: &Taken) -> Vec<u128> {
        let (ring, width) = self.wires[port];
        let mut values = Vec::with_capacity(self.rows as usize);
        for (rows, bytes) in taken.slices[port].values() {
            let wire = ring.bytes((*rows).into()) as usize;
            for row in 0..*rows as usize {
                values.push(get(ring, &bytes[..wire * width as usize], wire, row));
            }
        }
        values
    }

    fn answer(&self, taken: &Taken) -> Answered {
        let ports = 0..self.wires.len();
        let columns: Vec<Vec<u128>> = ports.map(|port| self.values(port, taken)).collect();
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let mut opened = vec![0; columns.len()];
        let mut incomplete = None;
        for row in 0..self.rows as usize {
            for (value, column) in opened.iter_mut().zip(&columns) {
                *value = column[row];
            }
            if row == 0 {
                incomplete = self.ports.incomplete(&opened);
            }
            rows.extend(self.ports.cells(&opened));
        }
        if let Some(keys) = &self.ports.order {
            rows.sort_by(|a, b| order(keys, a, b));
        }
        Answered {
            query: self.ports.step.clone(),
            fields: self.ports.fields.clone(),
            rows,
            min_count: self.min_count,
            incomplete,
        }
    }
}

/// The value of a row: its bits, each on a wire, or its element.
fn get(ring: Ring, bytes: &[u8], wire: usize, row: usize) -> u128 {
    if ring == Ring::Bits {
        let bit = |wire: &[u8]| u128::from(wire[row / 8] >> (row % 8) & 1);
        let bits = bytes.chunks_exact(wire).zip(0..u128::BITS);
        return bits.map(|(wire, at)| bit(wire) << at).sum();
    }
    let size = ring.bytes(1) as usize;
    let mut element = [0; 16];
    element[..size].copy_from_slice(&bytes[row * size..][..size]);
    u128::from_le_bytes(element)
}

/// The bits of all rows, which stood one behind the other in one row, a byte for each: as a pass of rows puts them out, each wire in all rows.
fn in_rows(bytes: &[u8], (rows, width): (u64, u32)) -> Option<Vec<u8>> {
    let (rows, width) = (usize::try_from(rows).ok()?, width as usize);
    if bytes.len() != rows.checked_mul(width)? {
        return None;
    }
    let wire = rows.div_ceil(8);
    let mut all = vec![0; wire * width];
    for (row, bits) in bytes.chunks(width.max(1)).enumerate() {
        for (bit, value) in bits.iter().enumerate() {
            all[bit * wire + row / 8] |= (value & 1) << (row % 8);
        }
    }
    Some(all)
}

/// The order of rows: by keys, then by all columns, nulls last.
fn order(keys: &[SortKey], a: &[Value], b: &[Value]) -> Ordering {
    let by = |key: &SortKey| {
        let Expr::Column(column, _) = key.expr else {
            return Ordering::Equal;
        };
        let (a, b) = (a[column.index()], b[column.index()]);
        let nulls = if key.nulls_first {
            (b == Value::Null).cmp(&(a == Value::Null))
        } else {
            (a == Value::Null).cmp(&(b == Value::Null))
        };
        let values = if key.descending { b.cmp(&a) } else { a.cmp(&b) };
        nulls.then(if a == Value::Null || b == Value::Null {
            Ordering::Equal
        } else {
            values
        })
    };
    let keyed = keys.iter().map(by).find(|order| order.is_ne());
    keyed.unwrap_or_else(|| a.cmp(b))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_before_all_columns_and_nulls_where_they_are_said() {
        let key = |column, descending, nulls_first| SortKey {
            expr: Expr::column(column),
            descending,
            nulls_first,
        };
        let (one, two, null) = (Value::Number(1), Value::Number(2), Value::Null);
        let sorted = |keys: &[SortKey]| {
            let mut rows = vec![[two, one], [null, one], [one, two], [one, null], [one, one]];
            rows.sort_by(|a, b| order(keys, a, b));
            rows
        };
        assert_eq!(
            sorted(&[]),
            [[one, one], [one, two], [one, null], [two, one], [null, one]]
        );
        assert_eq!(
            sorted(&[key(0, true, true)]),
            [[null, one], [two, one], [one, one], [one, two], [one, null]]
        );
        assert_eq!(
            sorted(&[key(0, true, false), key(1, true, true)]),
            [[two, one], [one, null], [one, two], [one, one], [null, one]]
        );
        assert_eq!(
            sorted(&[key(1, false, true)]),
            [[one, null], [one, one], [two, one], [null, one], [one, two]]
        );
    }

    #[test]
    fn bits_and_elements_are_those_of_a_row() {
        // Two wires of nine rows: 3 in row 8, 2 in row 0, 1 in row 1.
        let bits = [0b10, 1, 0b01, 1];
        let values: Vec<u128> = (0..9).map(|row| get(Ring::Bits, &bits, 2, row)).collect();
        assert_eq!(values, [2, 1, 0, 0, 0, 0, 0, 0, 3]);
        let elements = [5, 0, 0, 0, 6, 1, 0, 0];
        assert_eq!(get(Ring::Z32, &elements, 8, 1), 262);
    }
}
