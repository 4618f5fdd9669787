//! Jobs: text in, and what it means; runs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use veilworks::explain::Found;
use veilworks::{Local, Progress};

use crate::answer::Answer;
use crate::batches::{Batches, NOT_PICKLED};
use crate::error::failure;

/// How long a run goes on before Python is asked for signals.
const TICK: Duration = Duration::from_millis(50);

/// A table that is given: whose, which, and its file or itself.
type Given<'py> = (String, String, Bound<'py, PyAny>);

/// What a job costs: rounds, seconds by networks, what each participant sends.
type Costs = (
    u64,
    Vec<(&'static str, f64)>,
    Vec<(String, &'static str, u64, u64)>,
);

/// What is told of a run: each participant with its phase, rows and bytes.
type Told = Vec<(String, &'static str, u64, u64, u64)>;

/// A job, parsed and planned.
#[pyclass(frozen, module = "veilworks._veil")]
pub(crate) struct Job(veilworks::Job);

impl Job {
    fn local(&self, tables: Vec<Given<'_>>) -> PyResult<Local> {
        let mut local = Local::of(&self.0);
        for (owner, name, given) in tables {
            local = if let Ok(batches) = given.cast::<Batches>() {
                local.table(owner, name, batches.get().table().clone())
            } else {
                local.file(owner, name, given.extract::<PathBuf>()?)
            };
        }
        Ok(local)
    }

    fn told(&self, latest: &[Progress]) -> Told {
        let plan = self.0.plan();
        let one = |one: &Progress| {
            let name = veilworks::name_of(plan, one.me).to_owned();
            (name, one.phase.name(), one.rows, one.of, one.sent)
        };
        latest.iter().map(one).collect()
    }
}

#[pymethods]
impl Job {
    /// Parses and plans the text of a job file, whose paths are relative to `folder`; models that are in `beside` are taken from there.
    #[staticmethod]
    #[pyo3(signature = (text, folder, beside = None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        folder: PathBuf,
        beside: Option<BTreeMap<String, Vec<u8>>>,
    ) -> PyResult<Self> {
        let beside = beside.unwrap_or_default();
        let parsed = py.detach(|| veilworks::Job::parse_with(text, folder, &beside));
        parsed.map(Job).map_err(|error| failure(&error))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The hash of its plan, as messages show it.
    #[getter]
    fn plan_hash(&self) -> String {
        self.0.hash().to_string()
    }

    /// All digits of the hash.
    #[getter]
    fn plan(&self) -> String {
        let mut digits = String::new();
        for byte in self.0.hash().0 {
            // A string takes whatever is written.
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }

    /// The roles of the participant of this name, in words.
    fn roles(&self, name: &str) -> Vec<&'static str> {
        self.0.roles_of(name)
    }

    /// What a run has opened to this recipient, from the JSON that it has written.
    fn answers(&self, recipient: &str, json: &str) -> PyResult<Vec<Answer>> {
        let answered = self.0.answered(recipient, json);
        let answered = answered.map_err(|error| failure(&error))?;
        answered
            .iter()
            .map(|one| Answer::new(recipient, one))
            .collect()
    }

    /// What is opened: to whom, which is nothing for the computing parties, and what.
    #[getter]
    fn opens(&self) -> Vec<(Option<String>, String)> {
        let opened = self.0.opened().into_iter();
        opened.map(|of| (of.to, of.what)).collect()
    }

    /// What the result is worth.
    #[getter]
    fn guarantee(&self) -> String {
        self.0.guarantee().to_string()
    }

    /// Names of all participants.
    #[getter]
    fn participants(&self) -> Vec<String> {
        let names = self.0.participants().into_iter();
        names.map(str::to_owned).collect()
    }

    /// Data that its owners bring: whose, which, and where they are, if the job says so.
    #[getter]
    fn data(&self) -> Vec<(String, String, Option<PathBuf>)> {
        let data = self.0.data().into_iter();
        data.map(|data| (data.owner, data.what, data.path))
            .collect()
    }

    /// What `veil explain` prints of the job in `file`, or with `--plan`, by the program's own table of rates.
    fn explain(&self, py: Python<'_>, file: PathBuf, plan: bool) -> PyResult<String> {
        let rates = Found::built_in();
        let explained = py.detach(|| self.0.explain(&rates.rates));
        let explained = explained.map_err(|error| failure(&error))?;
        Ok(explained.text(&file, &rates, plan))
    }

    /// What it costs by the program's own table of rates: rounds, seconds by networks, and of each participant its name and role, and the messages and
    /// bytes that it sends.
    fn costs(&self, py: Python<'_>) -> PyResult<Costs> {
        let rates = Found::built_in();
        let explained = py.detach(|| self.0.explain(&rates.rates));
        let explained = explained.map_err(|error| failure(&error))?;
        let estimates = explained.estimates().iter();
        let participants = explained.participants().iter();
        let of = |one: &veilworks::explain::Participant| {
            (one.name.clone(), one.role, one.messages, one.bytes)
        };
        Ok((
            explained.rounds(),
            estimates.map(|one| (one.net, one.seconds)).collect(),
            participants.map(of).collect(),
        ))
    }

    /// The circuits of its passes that compute columns: rows, ring, gates and products in a row, how many of these follow each other, and the bytes that all parties send
    /// for all rows.
    fn circuits(&self) -> Vec<(u64, &'static str, u64, u64, u64, u64)> {
        let all = self.0.circuits().into_iter();
        let one = |of: veilworks::RowCircuit| {
            let ring = of.ring.name();
            (of.rows, ring, of.gates, of.products, of.depth, of.bytes)
        };
        all.map(one).collect()
    }

    /// Which columns of what a query opens may have values that those of another have not.
    fn outside(&self, given: &str, contract: &str) -> PyResult<Vec<(usize, String, String)>> {
        let outside = self.0.outside(given, contract);
        outside.map_err(|error| failure(&error))
    }

    /// What its queries mean on these tables, by the meaning of the algebra and without any sharing.
    fn clear(&self, py: Python<'_>, tables: Vec<Given<'_>>) -> PyResult<Vec<Answer>> {
        let local = self.local(tables)?;
        let answered = py.detach(|| local.clear());
        let answered = answered.map_err(|error| failure(&error))?;
        answered
            .iter()
            .map(|(to, one)| Answer::new(to, one))
            .collect()
    }

    /// A shadow run on these tables: the report as JSON, as text for people, and as a table with a row for each column.
    fn shadow(
        &self,
        py: Python<'_>,
        tables: Vec<Given<'_>>,
    ) -> PyResult<(String, String, Batches)> {
        let local = self.local(tables)?;
        let shadow = py.detach(|| local.shadow());
        let shadow = shadow.map_err(|error| failure(&error))?;
        let table = crate::shadow::table(&shadow)?;
        Ok((shadow.json(), shadow.text(), table))
    }

    /// Checks all tables, and runs nothing: of each its name, its rows, and the bytes that were read.
    fn check(&self, py: Python<'_>, tables: Vec<Given<'_>>) -> PyResult<Vec<(String, u64, u64)>> {
        let local = self.local(tables)?;
        let reports = py.detach(|| local.check());
        let reports = reports.map_err(|error| failure(&error))?;
        let reports = reports.into_iter();
        Ok(reports
            .map(|report| (report.block, report.rows, report.bytes))
            .collect())
    }

    /// Runs all participants in this process. `told` is called with how far each is, again and again; Ctrl-C ends the run.
    #[pyo3(signature = (tables, told=None, timeout=None, out=None))]
    fn run(
        &self,
        py: Python<'_>,
        tables: Vec<Given<'_>>,
        told: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        out: Option<PathBuf>,
    ) -> PyResult<Vec<Answer>> {
        let mut local = self.local(tables)?;
        if let Some(seconds) = timeout {
            let seconds = Duration::try_from_secs_f64(seconds);
            let seconds = seconds.map_err(|error| PyValueError::new_err(error.to_string()))?;
            local = local.timeout(seconds);
        }
        if let Some(folder) = out {
            local = local.out(folder);
        }
        let running = local.start();
        while !py.detach(|| running.wait(TICK)) {
            let asked = py.check_signals().and_then(|()| match told {
                Some(told) => told.call1((self.told(&running.latest()),)).map(drop),
                None => Ok(()),
            });
            if let Err(error) = asked {
                running.stop();
                let ended = py.detach(|| running.join());
                drop(ended);
                return Err(error);
            }
        }
        let outcome = py.detach(|| running.join());
        let outcome = outcome.map_err(|error| failure(&error))?;
        let mut answers = Vec::new();
        for name in self.0.participants() {
            for answered in outcome.answers(name).unwrap_or_default() {
                answers.push(Answer::new(name, answered)?);
            }
        }
        Ok(answers)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(NOT_PICKLED))
    }
}
