//! Models: what the text of one says.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What the text of a model's file says, in a sentence; `ValueError` says why it is none.
#[pyfunction]
pub(crate) fn read_model(name: &str, text: &str) -> PyResult<String> {
    veilworks::read_model(name, text.as_bytes()).map_err(PyValueError::new_err)
}

/// What the text of a network's file says, in a sentence; how many cells its last layer gives; and how many weights and biases an owner brings. `ValueError` says why it is none.
#[pyfunction]
pub(crate) fn read_network(name: &str, text: &str) -> PyResult<(String, u64, u64)> {
    let facts = veilworks::read_network(name, text.as_bytes()).map_err(PyValueError::new_err)?;
    Ok((facts.about, facts.cells, facts.secret))
}
