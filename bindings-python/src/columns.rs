//! Exports as columns: batches of rows, which pyarrow writes as Parquet and as Arrow IPC.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchReader, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tallyfold::{Counts, Dictionary, Timestamp, Window};
use tallyfold_export::{Counted, Export, ExportOptions, Format, Samples};

use crate::arguments::{Named, keywords};
use crate::arrow::STREAM;
use crate::detach::detached;
use crate::error::Result;
use crate::export::Exported;
use crate::plain::plain;

/// The maximum number of rows in a batch. Each batch becomes a row group of a Parquet file.
const ROWS: usize = 1 << 17;

/// The columns of an export. Its Arrow stream makes each batch of rows when the batch is requested.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Columns(Export);

#[pymethods]
impl Columns {
    /// Begins an export of a table, a series or a revision. All options are keyword arguments. A `format` is ignored.
    #[new]
    #[pyo3(signature = (counts, /, **named))]
    fn new(py: Python<'_>, counts: &Bound<'_, PyAny>, named: Option<Named<'_>>) -> Result<Self> {
        let counts = Exported::of(counts)?;
        // The columns and the rules are the same as for CSV.
        let own = named.map_or_else(|| Ok(PyDict::new(py)), |named| named.copy())?;
        own.set_item("format", Format::Csv.as_str())?;
        let options: ExportOptions = keywords(py, Some(&own), &[])?;
        let export = detached(py, counts.bytes(), || -> tallyfold::Result<Export> {
            let export = Export::new(counts.source(), &options)?;
            if export.revision().is_some() {
                // The columns of changes are signed, so each change must fit into 64 bits with a sign.
                for sample in export.samples() {
                    sample.counts.signed()?;
                }
            }
            Ok(export)
        })?;
        Ok(Self(export))
    }

    /// Notes about the export, as `Note` objects.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, self.0.notes())
    }

    /// An Arrow C stream of batches, in a capsule; `requested_schema` is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(Batches::new(&self.0)?));
        Ok(PyCapsule::new_with_value(py, stream, STREAM)?)
    }
}

/// Makes the batches one by one.
struct Batches {
    schema: SchemaRef,
    samples: Samples,
    /// For each of the caller's labels, an array with its value.
    labels: Vec<Arc<StringArray>>,
    revision: Option<u32>,
    /// The values of the dimensions.
    values: Vec<Arc<StringArray>>,
}

impl Batches {
    fn new(export: &Export) -> Result<Self, ArrowError> {
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let field = |name: &str, of: &DataType| Field::new(name, of.clone(), false);
        let mut fields: Vec<Field> = export.labels(0).map(|(name, _)| field(name, &text)).collect();
        fields.extend([field("window_start", &instant), field("window_end", &instant)]);
        fields.push(field("settled", &DataType::Boolean));
        let revision = export.revision();
        if revision.is_some() {
            fields.push(field("revision", &DataType::UInt32));
        }
        fields.extend(export.dimensions().iter().map(|name| field(name, &text)));
        let count = match revision {
            None => DataType::UInt64,
            Some(_) => DataType::Int64,
        };
        fields.extend(Counts::NAMES.map(|name| field(name, &count)));
        let values = export.dictionaries(0).iter();
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            samples: export.samples(),
            labels: export
                .labels(0)
                .map(|(_, value)| Arc::new(StringArray::from_iter_values([value])))
                .collect(),
            revision,
            values: values.map(|dictionary| Arc::new(texts(dictionary))).collect(),
        })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows: Vec<Counted> = self.samples.by_ref().take(ROWS).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<ArrayRef> = Vec::new();
        for value in &self.labels {
            let keys = Int32Array::from_value(0, rows.len());
            columns.push(Arc::new(DictionaryArray::<Int32Type>::try_new(
                keys,
                Arc::clone(value) as ArrayRef,
            )?));
        }
        for edge in [Window::start, Window::end] as [fn(Window) -> Timestamp; 2] {
            let instants = rows.iter().map(|row| edge(row.window).unix_us());
            let instants = TimestampMicrosecondArray::from_iter_values(instants);
            columns.push(Arc::new(instants.with_timezone("UTC")));
        }
        let settled = rows.iter().map(|row| Some(row.settled));
        columns.push(Arc::new(settled.collect::<BooleanArray>()));
        if let Some(number) = self.revision {
            columns.push(Arc::new(UInt32Array::from_value(number, rows.len())));
        }
        for (position, values) in self.values.iter().enumerate() {
            let keys =
                Int32Array::from_iter_values(rows.iter().map(|row| row.key[position] as i32));
            columns.push(Arc::new(DictionaryArray::<Int32Type>::try_new(
                keys,
                Arc::clone(values) as ArrayRef,
            )?));
        }
        for count in 0..Counts::NAMES.len() {
            let counts = rows.iter().map(|row| row.counts.each()[count]);
            columns.push(match self.revision {
                None => Arc::new(UInt64Array::from_iter_values(counts.map(|count| count as u64))),
                Some(_) => Arc::new(Int64Array::from_iter_values(counts.map(|count| count as i64))),
            });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}

/// The values of a dictionary.
fn texts(dictionary: &Dictionary) -> StringArray {
    StringArray::from_iter_values(dictionary.values())
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
