//! A relation that was opened.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use veilworks::Answered;

use crate::batches::{NOT_PICKLED, stream};
use crate::error::failure;

/// Days from 0001-01-01, the first of Python, to 1970-01-01, less one.
const EPOCH: i64 = 719_163;

/// A relation that a query opened to a recipient.
#[pyclass(frozen, module = "veilworks._veil")]
pub(crate) struct Answer {
    recipient: String,
    answered: Answered,
    batch: RecordBatch,
}

impl Answer {
    pub(crate) fn new(recipient: &str, answered: &Answered) -> PyResult<Self> {
        let batch = answered.batch().map_err(|error| failure(&error.into()))?;
        Ok(Answer {
            recipient: recipient.to_owned(),
            answered: answered.clone(),
            batch,
        })
    }
}

/// Cells of a column as objects of Python.
fn objects<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let cells = 0..array.len();
    let cells = cells.map(|at| array.is_valid(at).then_some(at));
    let cell: Box<dyn Fn(usize) -> PyResult<Bound<'py, PyAny>>> = match array.data_type() {
        DataType::Int64 => {
            let numbers = array.as_primitive::<Int64Type>();
            Box::new(move |at| Ok(numbers.value(at).into_pyobject(py)?.into_any()))
        }
        DataType::Decimal128(_, 0) => {
            let numbers = array.as_primitive::<Decimal128Type>();
            Box::new(move |at| Ok(numbers.value(at).into_pyobject(py)?.into_any()))
        }
        DataType::Decimal128(..) => {
            let numbers = array.as_primitive::<Decimal128Type>();
            let decimal = py.import("decimal")?.getattr("Decimal")?;
            Box::new(move |at| decimal.call1((numbers.value_as_string(at),)))
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            let date = py.import("datetime")?.getattr("date")?;
            Box::new(move |at| {
                date.call_method1("fromordinal", (i64::from(days.value(at)) + EPOCH,))
            })
        }
        DataType::Boolean => {
            let bits = array.as_boolean();
            Box::new(move |at| {
                let bit = bits.value(at).into_pyobject(py)?;
                Ok(bit.to_owned().into_any())
            })
        }
        _ => {
            let texts = array.as_string::<i32>();
            Box::new(move |at| Ok(texts.value(at).into_pyobject(py)?.into_any()))
        }
    };
    cells.map(|at| at.map(&cell).transpose()).collect()
}

#[pymethods]
impl Answer {
    /// Who got it.
    #[getter]
    fn recipient(&self) -> &str {
        &self.recipient
    }

    /// The query.
    #[getter]
    fn query(&self) -> &str {
        &self.answered.query
    }

    /// Whether a bound has left out rows; nothing where no bound of the query says so.
    #[getter]
    fn incomplete(&self) -> Option<bool> {
        self.answered.incomplete
    }

    /// Its columns with their types.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let fields = self.answered.fields.iter();
        fields
            .map(|field| (field.name.clone(), field.ty.kind.to_string()))
            .collect()
    }

    /// How many rows it has.
    #[getter]
    fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Its rows, each a dictionary by column.
    fn dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let schema = self.batch.schema();
        let columns = self.batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| objects(py, column))
            .collect::<PyResult<_>>()?;
        let rows = PyList::empty(py);
        for at in 0..self.batch.num_rows() {
            let row = PyDict::new(py);
            for (field, cells) in schema.fields().iter().zip(&columns) {
                row.set_item(field.name(), cells[at].as_ref())?;
            }
            rows.append(row)?;
        }
        Ok(rows)
    }

    /// As a CSV file has it.
    fn csv(&self) -> String {
        self.answered.csv()
    }

    /// As a JSON file has it.
    fn json(&self) -> String {
        self.answered.json()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, self.batch.schema(), vec![self.batch.clone()])
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(NOT_PICKLED))
    }
}
