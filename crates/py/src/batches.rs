//! Tables of Arrow, in and out by the capsules of its C data interface.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    StructArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use veilworks::MemoryTable;

use crate::error::failure;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Cells of a column of Python.
#[derive(FromPyObject)]
enum Cells {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

/// A cell at fault: file, row, line, column, what it has, what is wrong.
type Fault = (String, u64, Option<u64>, Option<String>, String, String);

/// A table in memory.
#[pyclass(frozen, module = "veilworks._veil")]
pub(crate) struct Batches(MemoryTable);

pub(crate) fn wrong(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table is no Arrow: {error}"))
}

/// Takes what a capsule of this name points to out of it. What is left there has no owner's release any more, as the interface demands.
macro_rules! take {
    ($capsule:expr, $name:expr, $of:ty) => {{
        let capsule = $capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some($name))?.cast::<$of>();
        // SAFETY: a capsule of this name has this structure of the Arrow C interface, which stays valid while the capsule lives; `from_raw`
        // moves it out and leaves a released one, and the interpreter is attached, so that no other thread takes it meanwhile.
        unsafe { <$of>::from_raw(pointer.as_ptr()) }
    }};
}

fn of_stream(capsule: &Bound<'_, PyAny>) -> PyResult<MemoryTable> {
    let stream = take!(capsule, STREAM, FFI_ArrowArrayStream);
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(wrong)?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches: Result<Vec<RecordBatch>, ArrowError> = reader.collect();
    MemoryTable::new(schema, batches.map_err(wrong)?).map_err(wrong)
}

fn of_array(capsules: &Bound<'_, PyAny>) -> PyResult<MemoryTable> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
    let schema = take!(schema, SCHEMA, FFI_ArrowSchema);
    let array = take!(array, ARRAY, FFI_ArrowArray);
    // SAFETY: both were moved out of capsules that say what they are, and the schema is that of the array.
    let data = unsafe { from_ffi(array, &schema) }.map_err(wrong)?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        return Err(PyTypeError::new_err(
            "this is one column, and a table has names: give a table, or {\"name\": column}",
        ));
    }
    data.validate_full().map_err(wrong)?;
    let table = StructArray::from(data);
    if table.null_count() > 0 {
        let message = "the table has rows that are null as a whole";
        return Err(PyValueError::new_err(message));
    }
    let batch = RecordBatch::from(table);
    MemoryTable::new(batch.schema(), vec![batch]).map_err(wrong)
}

/// The numbers of a column as the shortest decimals that stand for them; other columns as they are.
fn written(array: &ArrayRef) -> ArrayRef {
    let texts: StringArray = match array.data_type() {
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>().iter();
            numbers.map(|one| one.map(|one| one.to_string())).collect()
        }
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>().iter();
            numbers.map(|one| one.map(|one| one.to_string())).collect()
        }
        _ => return Arc::clone(array),
    };
    Arc::new(texts)
}

impl Batches {
    /// Of a batch of this library.
    pub(crate) fn of_batch(batch: RecordBatch) -> PyResult<Self> {
        let table = MemoryTable::new(batch.schema(), vec![batch]);
        table.map(Batches).map_err(wrong)
    }

    pub(crate) fn table(&self) -> &MemoryTable {
        &self.0
    }
}

#[pymethods]
impl Batches {
    /// Of an object that gives itself as Arrow.
    #[staticmethod]
    fn of_arrow(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        if of.hasattr("__arrow_c_stream__")? {
            return of_stream(&of.call_method0("__arrow_c_stream__")?).map(Batches);
        }
        if of.hasattr("__arrow_c_array__")? {
            return of_array(&of.call_method0("__arrow_c_array__")?).map(Batches);
        }
        Err(PyTypeError::new_err(
            "this gives no Arrow: it has neither `__arrow_c_stream__` nor `__arrow_c_array__`",
        ))
    }

    /// Of columns, equally long.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, Cells)>) -> PyResult<Self> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, cells) in columns {
            let array: ArrayRef = match cells {
                Cells::Numbers(cells) => Arc::new(Float64Array::from(cells)),
                Cells::Texts(cells) => Arc::new(StringArray::from(cells)),
            };
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        MemoryTable::new(schema, vec![batch.map_err(wrong)?])
            .map(Batches)
            .map_err(wrong)
    }

    /// The rows of Parquet files, one after the other: of these columns, or of all.
    #[staticmethod]
    #[pyo3(signature = (files, columns=None))]
    fn of_parquet(
        py: Python<'_>,
        files: Vec<PathBuf>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let read = py.detach(|| MemoryTable::of_parquet(&files, columns.as_deref()));
        read.map(Batches).map_err(|error| failure(&error.into()))
    }

    /// A table of cells at fault: file, row, line, column, cell, what is wrong.
    #[staticmethod]
    fn of_problems(problems: Vec<Fault>) -> PyResult<Self> {
        let texts = |of: fn(&Fault) -> Option<&String>| -> ArrayRef {
            Arc::new(problems.iter().map(of).collect::<StringArray>())
        };
        let numbers = |of: fn(&Fault) -> Option<u64>| -> ArrayRef {
            let numbers = problems.iter().map(of);
            let numbers = numbers.map(|one| one.and_then(|one| i64::try_from(one).ok()));
            Arc::new(numbers.collect::<Int64Array>())
        };
        let columns = [
            ("file", texts(|one| Some(&one.0))),
            ("row", numbers(|one| Some(one.1))),
            ("line", numbers(|one| one.2)),
            ("column", texts(|one| one.3.as_ref())),
            ("cell", texts(|one| Some(&one.4))),
            ("what", texts(|one| Some(&one.5))),
        ];
        let fields = columns.iter();
        let fields = fields.map(|(name, of)| Field::new(*name, of.data_type().clone(), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, of)| of).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        MemoryTable::new(schema, vec![batch.map_err(wrong)?])
            .map(Batches)
            .map_err(wrong)
    }

    /// The same table with binary fractions as the shortest decimals that stand for them.
    fn written(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| {
            let of = |field: &Arc<Field>| match field.data_type() {
                DataType::Float64 | DataType::Float32 => {
                    Arc::new(Field::new(field.name(), DataType::Utf8, true))
                }
                _ => Arc::clone(field),
            };
            let fields: Vec<Arc<Field>> = self.0.schema().fields().iter().map(of).collect();
            let schema: SchemaRef = Arc::new(Schema::new(fields));
            let batch = |batch: &RecordBatch| {
                let columns = batch.columns().iter().map(written).collect();
                RecordBatch::try_new(Arc::clone(&schema), columns)
            };
            let batches: Result<Vec<_>, _> = self.0.batches().iter().map(batch).collect();
            MemoryTable::new(schema, batches?)
        })
        .map(Batches)
        .map_err(wrong)
    }

    /// Writes an Arrow file that is this user's alone.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| {
            let mut options = OpenOptions::new();
            let file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            let mut writer = FileWriter::try_new(file, self.0.schema())?;
            for batch in self.0.batches() {
                writer.write(batch)?;
            }
            writer.finish()?;
            writer.into_inner()?.sync_all().map_err(ArrowError::from)
        });
        written.map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// How many rows it has.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    /// The names of its columns with their types.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let fields = self.0.schema().fields().iter();
        fields
            .map(|field| (field.name().clone(), field.data_type().to_string()))
            .collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<RecordBatch> = self.0.batches().to_vec();
        stream(py, Arc::clone(self.0.schema()), batches)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(NOT_PICKLED))
    }
}

/// Why nothing of the module is pickled.
pub(crate) const NOT_PICKLED: &str =
    "what may have data of participants is neither pickled nor copied";

/// Batches as a capsule.
pub(crate) fn stream(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, STREAM)
}
