//! Columns as an Arrow C stream, which every data frame library reads.
//!
//! Columns of ids and counts are handed over as they are: the stream's buffers are those of the
//! table, series or comparison, which lives on as long as one of them does.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int8Array};
use arrow_array::{Int32Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_array::{TimestampNanosecondArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tallyfold::{Code, Column, Comparison, CountColumns, CountTable, Deltas, Presence, Series};
use tallyfold::{SeriesWindow, Shares, Timestamp, Window};

use crate::convert::detached;
use crate::error::{Failure, Result};

/// The names that the Arrow PyCapsule protocol prescribes.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";

/// A capsule that holds a stream of one batch, made of about so many bytes.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    bytes: usize,
    columns: impl FnOnce() -> Result<Columns> + Send,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = detached(py, bytes, || columns()?.batch())?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    Ok(PyCapsule::new_with_value(py, stream, STREAM)?)
}

/// A capsule that holds the schema of that stream.
pub(crate) fn schema<'py>(
    py: Python<'py>,
    bytes: usize,
    columns: impl FnOnce() -> Result<Columns> + Send,
) -> Result<Bound<'py, PyCapsule>> {
    let batch = detached(py, bytes, || columns()?.batch())?;
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

/// The windows, dimensions and counts of a series.
pub(crate) fn series(own: &Arc<Series>) -> Result<Columns> {
    let mut columns = Columns::default();
    columns.instants("window_start", own, |window| window.start())?;
    columns.instants("window_end", own, |window| window.end())?;
    columns.dimensions(own, |series, index| series.columns().nth(index))?;
    columns.counts("success", own, Series::success)?;
    columns.counts("errors", own, Series::errors)?;
    columns.counts("filtered", own, Series::filtered)?;
    Ok(columns)
}

/// Something for each of the three counts.
type ByName<T> = [(&'static str, T); 3];

/// The dimensions of a comparison, and the counts, changes and shares of each group.
pub(crate) fn comparison(own: &Arc<Comparison>) -> Result<Columns> {
    let counts: ByName<fn(&CountColumns) -> &[u64]> = [
        ("success", CountColumns::success),
        ("errors", CountColumns::errors),
        ("filtered", CountColumns::filtered),
    ];
    let deltas: ByName<fn(&Deltas) -> i128> = [
        ("delta_success", |delta| delta.success),
        ("delta_errors", |delta| delta.errors),
        ("delta_filtered", |delta| delta.filtered),
    ];
    let shares: ByName<fn(&Shares) -> Option<f64>> = [
        ("share_success", |share| share.success),
        ("share_errors", |share| share.errors),
        ("share_filtered", |share| share.filtered),
    ];
    let mut columns = Columns::default();
    columns.dimensions(own, |comparison, index| comparison.columns().nth(index))?;
    columns.presences(own.presences())?;
    // A group that is not there counts 0, and its presence says so: of integers with a null among
    // them pandas would make floats.
    for (name, of) in counts {
        columns.counts(&format!("before_{name}"), own, move |own| {
            of(own.before_columns())
        })?;
    }
    for (name, of) in counts {
        columns.counts(&format!("after_{name}"), own, move |own| {
            of(own.after_columns())
        })?;
    }
    let all: Vec<Deltas> = own.rows().map(|row| row.delta()).collect();
    for (name, of) in deltas {
        let exact = Decimal128Array::from_iter_values(all.iter().map(of));
        columns.push(name, exact.with_precision_and_scale(38, 0)?, false);
    }
    let all: Vec<Shares> = own.rows().map(|row| row.share()).collect();
    for (name, of) in shares {
        columns.push(name, Float64Array::from_iter(all.iter().map(of)), true);
    }
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

    /// An edge of each row's window.
    fn instants(
        &mut self,
        name: &str,
        series: &Series,
        edge: fn(Window) -> Timestamp,
    ) -> Result<()> {
        let too_far = || Failure::Unfit {
            code: Code::InvalidArgument,
            argument: "windows".to_owned(),
            reason: "Arrow's nanoseconds hold 1677-09-21 to 2262-04-11 only",
        };
        let exact = |of: &SeriesWindow| edge(of.window).unix_ns().ok_or_else(too_far);
        let windows: Vec<i64> = series.windows().iter().map(exact).collect::<Result<_>>()?;
        let ids = series.window_ids().iter();
        let array = TimestampNanosecondArray::from_iter_values(ids.map(|id| windows[*id as usize]));
        self.push(name, array.with_timezone("UTC"), false);
        Ok(())
    }

    fn presences(&mut self, presences: &[Presence]) -> Result<()> {
        let all = [Presence::Both, Presence::New, Presence::Vanished];
        let key = |presence: &Presence| match presence {
            Presence::Both => 0,
            Presence::New => 1,
            Presence::Vanished => 2,
        };
        let keys = Int8Array::from_iter_values(presences.iter().map(key));
        let names = StringArray::from_iter_values(all.map(Presence::as_str));
        let array = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(names))?;
        self.push("presence", array, false);
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
