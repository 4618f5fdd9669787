//! Errors of the library as one exception, which the Python layer turns into its own.

use std::path::{Path, PathBuf};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use veilworks::Code;

create_exception!(
    _veil,
    Failure,
    PyException,
    "A failure of the library: its kind, message, help, place, cells, whom it is about, and the ranges that it is about."
);

/// A place in a text: the query, or nothing for the job's own text; line; column.
type At = (Option<String>, usize, usize);

/// A cell at fault: row, line, column, what it has, what is wrong.
type Cell = (u64, Option<u64>, Option<String>, String, String);

/// Whom an error is about: who may have cheated, who did not come, with whom a link was lost, at which message; and the
/// table whose cells are at fault.
type About = (
    Vec<String>,
    Vec<String>,
    Option<String>,
    Option<String>,
    Option<PathBuf>,
);

/// An operation that is refused for its ranges: the operation, what is wrong, of each operand its kind, least and greatest value, what to write instead in Python, the same in a
/// sentence, and in SQL.
type Range = (
    String,
    String,
    Vec<(String, String, String)>,
    Vec<String>,
    String,
    Vec<String>,
);

/// The kind of a failure in a word.
const fn kind(code: Code) -> &'static str {
    match code {
        Code::Other => "other",
        Code::Usage => "usage",
        Code::Input => "input",
        Code::Check => "check",
        Code::Link => "link",
        Code::Device => "device",
    }
}

/// An error of the library as an exception of Python.
pub(crate) fn failure(error: &veilworks::Error) -> PyErr {
    let at: Option<At> = error
        .place()
        .map(|place| (place.query.clone(), place.line, place.column));
    let cells = error.cells().iter().map(|cell| {
        let fault = cell.fault.to_string();
        let of: Cell = (
            cell.row,
            cell.line,
            cell.column.clone(),
            cell.value.clone(),
            fault,
        );
        of
    });
    let cells: Vec<Cell> = cells.collect();
    let table = error.table().map(Path::to_owned);
    let about = error.about().clone();
    let about: About = (
        about.suspects,
        about.waits_for,
        about.peer,
        about.step,
        table,
    );
    let range: Option<Range> = error.range().map(|of| {
        let (remedies, sentence) = of.in_python.clone();
        let (operation, what) = (of.operation.clone(), of.what.clone());
        let (ranges, sql) = (of.ranges.clone(), of.remedies.clone());
        (operation, what, ranges, remedies, sentence, sql)
    });
    Failure::new_err((
        kind(error.code()),
        error.to_string(),
        error.help().to_owned(),
        at,
        cells,
        about,
        range,
    ))
}
