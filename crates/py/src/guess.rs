//! Guesses of columns.

use std::path::PathBuf;

use pyo3::prelude::*;
use veilworks::{Draft, Guess, Guessed};

use crate::batches::Batches;
use crate::error::failure;

/// A column: its name, a word for its type, what the type takes, whether cells are missing, and what was guessed.
type Column<'py> = (
    String,
    &'static str,
    Vec<Bound<'py, PyAny>>,
    bool,
    Vec<String>,
);

fn column(py: Python<'_>, guess: Guess) -> PyResult<Column<'_>> {
    let text = |text: String| Ok::<_, PyErr>(text.into_pyobject(py)?.into_any());
    let number = |number: i128| Ok::<_, PyErr>(number.into_pyobject(py)?.into_any());
    let (word, takes) = match guess.what {
        Guessed::Integer { min, max } => ("integer", vec![number(min)?, number(max)?]),
        Guessed::Decimal { scale, min, max } => (
            "decimal",
            vec![number(scale.into())?, text(min)?, text(max)?],
        ),
        Guessed::Date { min, max, format } => {
            let format = format.into_pyobject(py)?.into_any();
            ("date", vec![text(min)?, text(max)?, format])
        }
        Guessed::Category { mut values, rare } => {
            values.extend(rare);
            values.sort_unstable();
            let values = values.into_iter().map(text);
            ("category", values.collect::<PyResult<_>>()?)
        }
        Guessed::Bool => ("bool", Vec::new()),
        Guessed::Key => ("key", Vec::new()),
        Guessed::Nothing(why) => ("nothing", vec![text(why.to_owned())?]),
    };
    Ok((guess.name, word, takes, guess.null, guess.guesses))
}

/// What the columns of a table may be: of one in memory, whose texts are read as those of a CSV file are if it is `loose`, or of a file.
#[pyfunction]
#[pyo3(signature = (of, loose))]
pub(crate) fn guess<'py>(
    py: Python<'py>,
    of: &Bound<'py, PyAny>,
    loose: bool,
) -> PyResult<Vec<Column<'py>>> {
    let draft = if let Ok(batches) = of.cast::<Batches>() {
        let table = batches.get().table().clone();
        py.detach(|| Draft::of_memory(&table, loose))
    } else {
        let file = of.extract::<PathBuf>()?;
        let draft = py.detach(|| Draft::of_file(&file));
        draft.map_err(|error| failure(&error.into()))?
    };
    let columns = draft.columns.into_iter();
    columns.map(|guess| column(py, guess)).collect()
}
