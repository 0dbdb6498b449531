//! Columns as an Arrow C stream, which every data frame library reads.
//!
//! Columns of ids and counts are not copied: the stream shares the buffers of the table, series or comparison. That object
//! stays in memory as long as one of its buffers is in use.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array};
use arrow_array::{Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_array::{TimestampMicrosecondArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tallyfold::Window;
use tallyfold::{Column, Counts, Deltas, Frame, Presence, SeriesWindow, Timestamp, Values};

use crate::detach::detached;
use crate::error::Result;
use crate::rows::Content;

/// The names that the Arrow PyCapsule protocol prescribes.
pub(crate) const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";

/// A capsule that holds a stream of one batch.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    own: &Arc<dyn Content>,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = detached(py, own.bytes(), || batch_of(own))?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    Ok(PyCapsule::new_with_value(py, stream, STREAM)?)
}

/// A capsule that holds the schema of that stream.
pub(crate) fn schema<'py>(
    py: Python<'py>,
    own: &Arc<dyn Content>,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = detached(py, own.bytes(), || batch_of(own))?;
    let schema = FFI_ArrowSchema::try_from(&*batch.schema())?;
    Ok(PyCapsule::new_with_value(py, schema, SCHEMA)?)
}

/// Makes all columns of a frame. A frame with two sides also gets the changes and shares of each row.
fn batch_of(own: &Arc<dyn Content>) -> Result<RecordBatch> {
    let mut columns = Columns::default();
    let frame = own.core();
    let shown = frame.columns();
    for (index, column) in shown.iter().enumerate() {
        let Column { side, name, values } = *column;
        let name = side.map_or_else(|| name.to_owned(), |side| format!("{side}_{name}"));
        match values {
            Values::Texts { .. } => columns.texts(&name, own, index)?,
            Values::Windows { windows, ids } => {
                columns.instants(&format!("{name}_start"), windows, ids, Window::start);
                columns.instants(&format!("{name}_end"), windows, ids, Window::end);
                let complete = ids.iter().map(|id| Some(windows[*id as usize].complete));
                columns.push("complete", complete.collect::<BooleanArray>(), false);
                let settled = ids.iter().map(|id| Some(windows[*id as usize].settled()));
                columns.push("settled", settled.collect::<BooleanArray>(), false);
            }
            Values::Presences(presences) => columns.presences(&name, presences)?,
            // If a side lacks the group, its counts are 0, and the column of presences shows that. A null would make pandas
            // use floats.
            Values::Counts(_) => columns.counts(&name, own, index)?,
        }
    }
    if shown.iter().any(|column| column.side.is_some()) {
        columns.changes(frame)?;
    }
    columns.batch()
}

/// The columns of a batch that is being built.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(&mut self, name: &str, array: impl Array + 'static, nullable: bool) {
        let field = Field::new(name, array.data_type().clone(), nullable);
        self.fields.push(field);
        self.arrays.push(Arc::new(array));
    }

    /// Adds the values of a dimension. `index` is the place of its column in the frame.
    fn texts(&mut self, name: &str, own: &Arc<dyn Content>, index: usize) -> Result<()> {
        // The ids are positions in a dictionary of at most 2^30 bytes, and the offsets are positions in these bytes. Both
        // are below 2^31, so the unsigned numbers have the same bytes as signed ones. Arrow allows unsigned keys, but
        // pyarrow can't convert them for pandas.
        let ids = shared(own, index, |values| match values {
            Values::Texts { ids, .. } => ids,
            _ => &[],
        });
        let offsets = shared(own, index, |values| match values {
            Values::Texts { dictionary, .. } => dictionary.offsets(),
            _ => &[],
        });
        let text = shared(own, index, |values| match values {
            Values::Texts { dictionary, .. } => dictionary.bytes().as_bytes(),
            _ => &[],
        });
        let offsets = OffsetBuffer::new(ScalarBuffer::<i32>::from(offsets));
        let values = StringArray::try_new(offsets, text, None)?;
        let keys = Int32Array::try_new(ScalarBuffer::from(ids), None)?;
        let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?;
        self.push(name, array, false);
        Ok(())
    }

    /// Adds counts. `index` is the place of their column in the frame.
    fn counts(&mut self, name: &str, own: &Arc<dyn Content>, index: usize) -> Result<()> {
        let counts = shared(own, index, |values| match values {
            Values::Counts(counts) => counts,
            _ => &[],
        });
        self.push(name, UInt64Array::try_new(ScalarBuffer::from(counts), None)?, false);
        Ok(())
    }

    /// Adds the start or the end of each row's window in microseconds, the unit of `datetime`, which data frames have, too.
    fn instants(
        &mut self,
        name: &str,
        windows: &[SeriesWindow],
        ids: &[u32],
        edge: fn(Window) -> Timestamp,
    ) {
        let of_rows = ids.iter().map(|id| edge(windows[*id as usize].window).unix_us());
        let array = TimestampMicrosecondArray::from_iter_values(of_rows);
        self.push(name, array.with_timezone("UTC"), false);
    }

    fn presences(&mut self, name: &str, presences: &[Presence]) -> Result<()> {
        let keys = Int8Array::from_iter_values(presences.iter().map(|presence| *presence as i8));
        let names = StringArray::from_iter_values(Presence::ALL.iter().map(|one| one.as_str()));
        let array = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(names))?;
        self.push(name, array, false);
        Ok(())
    }

    /// Adds the change of each count, and its share of the change of the total.
    fn changes(&mut self, frame: &dyn Frame) -> Result<()> {
        let rows = 0..frame.len();
        let deltas = rows.clone().filter_map(|row| frame.delta(row));
        let deltas: Vec<[i64; 3]> =
            deltas.map(Deltas::signed).collect::<std::result::Result<_, _>>()?;
        for (index, name) in Counts::NAMES.into_iter().enumerate() {
            let deltas = Int64Array::from_iter_values(deltas.iter().map(|delta| delta[index]));
            self.push(&format!("delta_{name}"), deltas, false);
        }
        let shares: Vec<[Option<f64>; 3]> = rows.map(|row| frame.fractions(row)).collect();
        for (index, name) in frame.fraction_names().into_iter().enumerate() {
            let shares = Float64Array::from_iter(shares.iter().map(|share| share[index]));
            self.push(&format!("share_{name}"), shares, true);
        }
        Ok(())
    }

    fn batch(self) -> Result<RecordBatch> {
        let schema = Schema::new(self.fields);
        Ok(RecordBatch::try_new(Arc::new(schema), self.arrays)?)
    }
}

/// Makes a buffer of the numbers that `of` finds in a column, without copying them. The buffer keeps the frame alive.
fn shared<T>(own: &Arc<dyn Content>, index: usize, of: fn(Values<'_>) -> &[T]) -> Buffer
where
    [T]: ToByteSlice,
    T: 'static,
{
    let owner = Arc::clone(own);
    Buffer::from(Bytes::from_owner(Shared { owner, index, of }))
}

struct Shared<T: 'static> {
    owner: Arc<dyn Content>,
    index: usize,
    of: fn(Values<'_>) -> &[T],
}

impl<T> AsRef<[u8]> for Shared<T>
where
    [T]: ToByteSlice,
{
    fn as_ref(&self) -> &[u8] {
        let column = self.owner.core().columns()[self.index];
        (self.of)(column.values).to_byte_slice()
    }
}
