//! A table's columns as an Arrow C stream, which every data frame library reads.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchIterator};
use arrow_array::{StringArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tallyfold::{CountTable, Dictionary};

/// The name that the Arrow PyCapsule protocol prescribes.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A capsule that holds a stream of one batch.
pub(crate) fn stream<'py>(py: Python<'py>, table: &CountTable) -> PyResult<Bound<'py, PyCapsule>> {
    let batch = py.detach(|| batch(table));
    let batch = batch.map_err(|error| PyOverflowError::new_err(error.to_string()))?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

fn batch(table: &CountTable) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    for column in table.columns() {
        let keys = Int32Array::new(signed(column.ids)?, None);
        let array = DictionaryArray::<Int32Type>::try_new(keys, strings(column.dictionary)?)?;
        columns.push((column.dimension.as_str(), Arc::new(array)));
    }
    let counts = [
        ("success", table.success()),
        ("errors", table.errors()),
        ("filtered", table.filtered()),
    ];
    for (name, column) in counts {
        columns.push((name, Arc::new(UInt64Array::from(column.to_vec()))));
    }
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(
        Arc::new(schema),
        columns.into_iter().map(|(_, column)| column).collect(),
    )
}

fn strings(dictionary: &Dictionary) -> Result<ArrayRef, ArrowError> {
    let offsets = OffsetBuffer::new(signed(dictionary.offsets())?);
    let bytes = Buffer::from(dictionary.bytes().as_bytes());
    Ok(Arc::new(StringArray::try_new(offsets, bytes, None)?))
}

/// The same numbers with a sign. Arrow allows unsigned keys, but pyarrow can't hand them to
/// pandas.
fn signed(numbers: &[u32]) -> Result<ScalarBuffer<i32>, ArrowError> {
    let numbers: Result<Vec<i32>, _> = numbers
        .iter()
        .map(|number| i32::try_from(*number))
        .collect();
    let too_large = |_| ArrowError::DictionaryKeyOverflowError;
    Ok(ScalarBuffer::from(numbers.map_err(too_large)?))
}
