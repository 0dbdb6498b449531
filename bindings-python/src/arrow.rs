//! Columns as an Arrow C stream, which every data frame library reads.
//!
//! Columns of ids and counts are handed over as they are: the stream's buffers are those of the
//! table, which lives on as long as one of them does.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch};
use arrow_array::{RecordBatchIterator, StringArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tallyfold::{Column, CountTable};

use crate::error::Result;

/// The names that the Arrow PyCapsule protocol prescribes.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";

/// A capsule that holds a stream of one batch.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    columns: impl FnOnce() -> Result<Columns> + Send,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = py.detach(|| columns()?.batch())?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    Ok(PyCapsule::new_with_value(py, stream, STREAM)?)
}

/// A capsule that holds the schema of that stream.
pub(crate) fn schema<'py>(
    py: Python<'py>,
    columns: impl FnOnce() -> Result<Columns> + Send,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = py.detach(|| columns()?.batch())?;
    let schema = FFI_ArrowSchema::try_from(&*batch.schema())?;
    Ok(PyCapsule::new_with_value(py, schema, SCHEMA)?)
}

/// The dimensions and counts of a table.
pub(crate) fn table(table: &CountTable) -> Result<Columns> {
    let own = Arc::new(table.clone());
    let mut columns = Columns::default();
    columns.dimensions(&own, |table, index| table.columns().nth(index))?;
    columns.counts("success", &own, CountTable::success)?;
    columns.counts("errors", &own, CountTable::errors)?;
    columns.counts("filtered", &own, CountTable::filtered)?;
    Ok(columns)
}

/// The columns of a batch in the making.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(&mut self, name: &str, array: impl Array + 'static, nullable: bool) {
        let field = Field::new(name, array.data_type().clone(), nullable);
        self.fields.push(field);
        self.arrays.push(Arc::new(array));
    }

    /// The columns of dimensions, which `at` gives by their positions.
    fn dimensions<O: Send + Sync + 'static>(
        &mut self,
        own: &Arc<O>,
        at: fn(&O, usize) -> Option<Column<'_>>,
    ) -> Result<()> {
        for (index, column) in (0..).map_while(|index| Some((index, at(own, index)?))) {
            // Positions in a dictionary of at most 2^30 bytes, and in those bytes: both are below
            // 2^31, and are the same bytes with a sign. Arrow allows unsigned keys, but pyarrow
            // can't hand them to pandas.
            let ids = shared(own, move |own| {
                at(own, index).map_or(&[][..], |column| column.ids)
            });
            let offsets = shared(own, move |own| {
                at(own, index).map_or(&[][..], |column| column.dictionary.offsets())
            });
            let text = shared(own, move |own| {
                at(own, index).map_or(&[][..], |column| column.dictionary.bytes().as_bytes())
            });
            let offsets = OffsetBuffer::new(ScalarBuffer::<i32>::from(offsets));
            let values = StringArray::try_new(offsets, text, None)?;
            let keys = Int32Array::try_new(ScalarBuffer::from(ids), None)?;
            let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?;
            self.push(column.dimension.as_str(), array, false);
        }
        Ok(())
    }

    /// A column of counts.
    fn counts<O: Send + Sync + 'static>(
        &mut self,
        name: &str,
        own: &Arc<O>,
        of: impl Fn(&O) -> &[u64] + Send + 'static,
    ) -> Result<()> {
        let counts = ScalarBuffer::from(shared(own, of));
        self.push(name, UInt64Array::try_new(counts, None)?, false);
        Ok(())
    }

    fn batch(self) -> Result<RecordBatch> {
        let schema = Schema::new(self.fields);
        Ok(RecordBatch::try_new(Arc::new(schema), self.arrays)?)
    }
}

/// The numbers that `of` finds in an owner, as they lie there. The buffer keeps the owner.
fn shared<O, T>(own: &Arc<O>, of: impl Fn(&O) -> &[T] + Send + 'static) -> Buffer
where
    O: Send + Sync + 'static,
    [T]: ToByteSlice,
    T: 'static,
{
    let owner = Arc::clone(own);
    Buffer::from(Bytes::from_owner(Shared { owner, of }))
}

struct Shared<O, F> {
    owner: Arc<O>,
    of: F,
}

impl<O, F, T> AsRef<[u8]> for Shared<O, F>
where
    F: Fn(&O) -> &[T],
    [T]: ToByteSlice,
    T: 'static,
{
    fn as_ref(&self) -> &[u8] {
        (self.of)(&self.owner).to_byte_slice()
    }
}
