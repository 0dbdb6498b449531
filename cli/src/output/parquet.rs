//! Writes counts as Apache Parquet.
//!
//! The columns are the same as in CSV and in the Parquet files of the Python package: the labels; `window_start` and
//! `window_end` as UTC timestamps in microseconds; `settled`; the dimensions; the three counts as unsigned 64-bit
//! integers. No value is null. Rows are written in groups, so that the memory used does not grow with the number of
//! rows. Files of the Python package also contain Arrow's own schema, which makes readers load texts as dictionaries.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use tallyfold::Counts;
use tallyfold_export::{Counted, Export};

use super::sink::WriteError;
use crate::failure::Failure;

/// The maximum number of rows in a group, the same as in files of the Python package.
const ROWS: usize = 1 << 17;

/// Writes all rows of an export. The format of the export must be CSV, which has the same columns and rules.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_parquet(export: &Export, out: &mut dyn Write) -> Result<(), WriteError> {
    write_groups(export, ROWS, out)
}

fn write_groups(export: &Export, rows: usize, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut file = File::new(export)?;
    for counted in export.samples() {
        file.batch.add(export, &counted);
        if file.batch.starts.len() == rows {
            file.end_group(export, out)?;
        }
    }
    file.end_group(export, out)?;
    let rest = file.writer.into_inner().map_err(refused)?;
    Ok(out.write_all(&rest)?)
}

fn refused(error: ParquetError) -> WriteError {
    Failure::usage(format!("can't write Parquet: {error}")).into()
}

/// A Parquet file that is being written.
struct File {
    /// Writes to a buffer, which is emptied after each group.
    writer: SerializedFileWriter<Vec<u8>>,
    batch: Batch,
}

impl File {
    fn new(export: &Export) -> Result<Self, WriteError> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let schema = schema(export).map_err(refused)?;
        let writer = SerializedFileWriter::new(Vec::new(), schema, properties.build().into());
        Ok(Self { writer: writer.map_err(refused)?, batch: Batch::new(export) })
    }

    /// Writes the added rows as a group, and copies the buffer to the output. Then empties the rows and the buffer. The writer
    /// itself counts the bytes that it has written, so it does not need the old content.
    fn end_group(&mut self, export: &Export, out: &mut dyn Write) -> Result<(), WriteError> {
        if self.batch.starts.is_empty() {
            return Ok(());
        }
        self.batch.write(&mut self.writer).map_err(refused)?;
        self.batch = Batch::new(export);
        self.writer.flush()?;
        let written = self.writer.inner_mut();
        out.write_all(written)?;
        written.clear();
        Ok(())
    }
}

/// The columns of a row group.
struct Batch {
    labels: Vec<Vec<ByteArray>>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    settled: Vec<bool>,
    values: Vec<Vec<ByteArray>>,
    counts: [Vec<i64>; 3],
}

impl Batch {
    fn new(export: &Export) -> Self {
        Self {
            labels: export.labels(0).map(|_| Vec::new()).collect(),
            starts: Vec::new(),
            ends: Vec::new(),
            settled: Vec::new(),
            values: export.dimensions().iter().map(|_| Vec::new()).collect(),
            counts: Default::default(),
        }
    }

    fn add(&mut self, export: &Export, row: &Counted) {
        for (column, (_, value)) in self.labels.iter_mut().zip(export.labels(row.source)) {
            column.push(value.into());
        }
        self.starts.push(row.window.start().unix_us());
        self.ends.push(row.window.end().unix_us());
        self.settled.push(row.settled);
        let values = export.dictionaries(row.source).iter().zip(row.key);
        for (column, (dictionary, id)) in self.values.iter_mut().zip(values) {
            column.push(dictionary.value(id).into());
        }
        for (column, count) in self.counts.iter_mut().zip(row.counts.each()) {
            // Parquet stores the bits of an unsigned integer in a signed one.
            column.push(count as u64 as i64);
        }
    }

    /// Writes the columns in the order of the schema.
    fn write(&self, writer: &mut SerializedFileWriter<Vec<u8>>) -> ParquetResult<()> {
        let mut group = writer.next_row_group()?;
        for texts in &self.labels {
            write_column::<ByteArrayType>(&mut group, texts)?;
        }
        write_column::<Int64Type>(&mut group, &self.starts)?;
        write_column::<Int64Type>(&mut group, &self.ends)?;
        write_column::<BoolType>(&mut group, &self.settled)?;
        for texts in &self.values {
            write_column::<ByteArrayType>(&mut group, texts)?;
        }
        for counts in &self.counts {
            write_column::<Int64Type>(&mut group, counts)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes the next column of a row group.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
) -> ParquetResult<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
    }
    Ok(())
}

fn schema(export: &Export) -> ParquetResult<TypePtr> {
    let text = |name: &str| field(name, Physical::BYTE_ARRAY, Some(LogicalType::String));
    let timestamp = || LogicalType::timestamp(true, TimeUnit::MICROS);
    let mut fields = Vec::new();
    for (name, _) in export.labels(0) {
        fields.push(text(name)?);
    }
    fields.push(field("window_start", Physical::INT64, Some(timestamp()))?);
    fields.push(field("window_end", Physical::INT64, Some(timestamp()))?);
    fields.push(field("settled", Physical::BOOLEAN, None)?);
    for name in export.dimensions() {
        fields.push(text(name)?);
    }
    for name in Counts::NAMES {
        let unsigned = LogicalType::integer(64, false);
        fields.push(field(name, Physical::INT64, Some(unsigned))?);
    }
    let schema = Type::group_type_builder("schema").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

fn field(name: &str, of: Physical, logical: Option<LogicalType>) -> ParquetResult<TypePtr> {
    let field = Type::primitive_type_builder(name, of)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::export::export_of;
    use crate::output::report::{Counted as Found, Report};
    use crate::output::testing::{named_pair, report_of, show, table};
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use tallyfold_export::Format;

    fn read(report: &Report, flags: &[&str], rows: usize) -> SerializedFileReader<Bytes> {
        let export = export_of(report, &show(flags), Format::Csv).unwrap();
        let mut out = Vec::new();
        write_groups(&export, rows, &mut out).unwrap();
        SerializedFileReader::new(Bytes::from(out)).unwrap()
    }

    fn rows(reader: &SerializedFileReader<Bytes>) -> Vec<String> {
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().to_string()).collect()
    }

    #[test]
    fn rows_are_read_back_as_they_were_written() {
        for size in [1, 3, 100] {
            let reader = read(&named_pair(), &["--label", "env=test"], size);
            let groups = reader.metadata().num_row_groups();
            assert_eq!(groups, 4_usize.div_ceil(size));
            let first = "{cluster: \"eu\", env: \"test\", window_start: 2026-01-01 00:00:00.000000 +00:00, \
                         window_end: 2026-01-01 01:00:00.000000 +00:00, settled: true, integration: \"a\", success: 1, \
                         errors: 5, filtered: 0}";
            let all = rows(&reader);
            assert_eq!(all.len(), 4);
            assert_eq!(all[0], first);
            assert!(all[3].contains("\"us\"") && all[3].contains("integration: \"c\", success: 4"));
        }
    }

    #[test]
    fn the_largest_count_is_exact() {
        let table = table(&[("a", u64::MAX, (1 << 63) + 1, 0)]);
        let report = report_of(vec![("default", Found::Table(table))]);
        let all = rows(&read(&report, &[], 10));
        assert!(
            all[0].contains("success: 18446744073709551615, errors: 9223372036854775809"),
            "{}",
            all[0]
        );
    }

    #[test]
    fn top_rows_are_in_order_of_rank() {
        let all = rows(&read(&named_pair(), &["--top", "2"], 10));
        let values: Vec<bool> = all.iter().map(|row| row.contains("integration: \"c\"")).collect();
        assert_eq!(values, [true, false]);
    }

    #[test]
    fn a_file_without_rows_has_all_columns() {
        let report = report_of(vec![("default", Found::Table(table(&[])))]);
        let reader = read(&report, &[], 10);
        let schema = reader.metadata().file_metadata().schema_descr();
        assert_eq!(schema.num_columns(), 7);
        assert_eq!(rows(&reader).len(), 0);
    }
}
