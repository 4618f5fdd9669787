//! The compiled part of the Python package `veilworks`: jobs that are parsed, planned, explained and run by the library of that name, and tables
//! that come and go as Arrow.
//!
//! ```text
//!  Python: text of a job ──► Job ──► hash, what is opened, operators
//!          Arrow, files ────► Batches ──► Job::run ──► Answer ──► Arrow
//! ```
//!
//! # Getting started
//!
//! It is no library of its own: the package `veilworks` is built by `scripts/wheel.sh`, and `docs/python.md` says how it is used.
//!
//! # Promises
//!
//! - No rule of jobs, queries or tables is here: each is the library's.
//! - What comes from Python is looked at before it is used: names of capsules, and each buffer of an array.
//! - Other threads of Python go on while a table is read or a job runs, and Ctrl-C ends the run.
//!
//! # Limits
//!
//! - No object of the module can be pickled or copied.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "what Python calls has the signature that Python wants"
)]

mod answer;
mod batches;
mod error;
mod guess;
mod job;
mod model;
mod shadow;

use pyo3::prelude::*;

/// The compiled part of `veilworks`.
#[pymodule]
fn _veil(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("Failure", module.py().get_type::<error::Failure>())?;
    module.add_function(wrap_pyfunction!(guess::guess, module)?)?;
    module.add_function(wrap_pyfunction!(model::read_model, module)?)?;
    module.add_function(wrap_pyfunction!(model::read_network, module)?)?;
    module.add_class::<batches::Batches>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<answer::Answer>()?;
    Ok(())
}
