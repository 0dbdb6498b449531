//! `CountTable`: exact counts by dimension values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType, PyTzInfo};
use tallyfold::{Code, Error, Frame as _, HtmlFrame, Timestamp, Window};

use crate::arguments::{instance, instant, one_or_more, required};
use crate::detach::detached;
use crate::error::{Failure, Result};
use crate::frame::{self, Frame, Reduced};
use crate::host::TextOrBytes;
use crate::plain::{object, plain};
use crate::rows::{Content, ROW, Rows};
use crate::series::Series;

/// Exact counts, grouped by dimension values, of one response or of several merged ones.
///
/// A table is immutable: its methods return new tables. Rows are sorted by their dimension values,
/// in the order of `dimensions`, whatever order the service sent them in. Counts are numbers of
/// events, as `int` from 0 to 2**64 - 1, never `float` (service reference 2.2 and 2.3).
///
/// polars, pandas, duckdb and pyarrow read a table through `__arrow_c_stream__`: a categorical
/// column for each dimension, then `success`, `errors` and `filtered` as unsigned 64-bit integers.
/// If you need text instead of categories, for example for a join, convert the columns, or use `to_polars` or
/// `to_pandas`. `pandas.DataFrame(table)` raises `TypeError`, because it would make a column of whole rows.
///
/// Do not subtract such columns: a difference of unsigned integers wraps around below 0, to 2**64 - 1 instead of
/// -1. Use `compare`, which returns signed changes, or convert the columns to signed integers first.
///
/// >>> len(table), table.totals
/// (2, Counts(success=7, errors=1, filtered=2))
/// >>> import pandas
/// >>> frame = pandas.DataFrame.from_arrow(table)
/// >>> frame.columns.to_list()
/// ['integration', 'reason', 'success', 'errors', 'filtered']
/// >>> frame = frame.astype(dict.fromkeys(table.dimensions, "str"))
/// >>> import polars
/// >>> frame = polars.DataFrame(table)
/// >>> frame = frame.with_columns(polars.col(*table.dimensions).cast(polars.String))
#[pyclass(frozen, eq, extends = Frame, module = "tallyfold")]
#[derive(PartialEq)]
pub(crate) struct CountTable(Arc<tallyfold::CountTable>);

#[pymethods]
impl CountTable {
    /// The sum of all rows, as `Counts`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.totals())
    }

    /// The sums over all windows of `totalDelivered`, `totalErrors` and `totalFiltered`, as the service
    /// reported them, as `Counts`; `None` for a filtered table, or if a sum is above 2**64 - 1
    /// (service reference 2.2).
    #[getter]
    fn reported<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.reported())
    }

    /// Whether the reported totals are the sums of the counts, as `Reconciliation`. A difference
    /// raises no error: the API is Beta, so your program decides.
    #[getter]
    fn reconciliation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.reconciliation())
    }

    /// The time that the counts cover: sorted `Window` objects; adjacent windows are joined.
    #[getter]
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.coverage())
    }

    /// The `Window` of each response in the table, sorted.
    #[getter]
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.windows())
    }

    /// The windows whose counts may still change, sorted. They were read less than an hour after their end, or
    /// less than the `settle` of the `collect` or `follow`. A table of an `Aggregator` has no such windows, because
    /// an `Aggregator` has no clock.
    ///
    /// >>> table.provisional
    /// []
    #[getter]
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.provisional())
    }

    /// How many deviations were tolerated because of `tolerate`, as `Notes`.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.notes())
    }

    /// Adds up rows by some of the dimensions, in the given order. Without any dimension, all rows
    /// become one row; an empty table stays empty.
    ///
    /// Raises:
    ///     ConfigError: `unknown_dimension` for a name that the table lacks, `repeated_dimension`.
    ///
    /// >>> [(row.dimensions, row.success) for row in table.group_by("integration")]
    /// [({'integration': 'email'}, 0), ({'integration': 'warehouse'}, 7)]
    #[pyo3(signature = (*names))]
    fn group_by<'py>(&self, names: &Bound<'py, PyTuple>) -> Result<Bound<'py, Self>> {
        if let Some(other) = names.iter().find(|name| !name.is_instance_of::<PyString>()) {
            let wanted =
                "want names one by one: group_by(\"integration\", \"reason\") or group_by(*names)";
            return Err(Failure::wrong_type("group_by", wanted, &other));
        }
        let (py, names) = (names.py(), required::<Vec<String>>("names", names)?);
        let table = detached(py, self.bytes(), || self.0.group_by(&names))?;
        Ok(Self::made(py, table)?)
    }

    /// Keeps the rows that have the given value, or one of the given values, in each named dimension.
    /// `reported` becomes `None`, because the service's totals are of all events.
    ///
    /// Raises:
    ///     ConfigError: `unknown_dimension` for a name that the table lacks.
    ///
    /// >>> table.filter(integration=["email", "push"]).totals
    /// Counts(success=0, errors=0, filtered=2)
    #[pyo3(signature = (**wanted))]
    fn filter<'py>(
        &self,
        py: Python<'py>,
        wanted: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, Self>> {
        let mut pairs = Vec::new();
        for (name, values) in wanted.into_iter().flatten() {
            let name: String = name.extract()?;
            let values = one_or_more(&name, &values)?;
            pairs.push((name, values));
        }
        let table = detached(py, self.bytes(), || self.0.filter(&pairs))?;
        Ok(Self::made(py, table)?)
    }

    /// The counts as a widget for a notebook, with the elements of the dashboard. See `tallyfold.show`.
    ///
    /// >>> table.show()
    /// <CountTable: event_delivery by ('integration', 'reason'), 2 rows, success=7, errors=1, filtered=2>
    #[pyo3(signature = (ingestion = None))]
    fn show<'py>(
        slf: &Bound<'py, Self>,
        ingestion: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("tallyfold._notebook")?;
        module.call_method1("show", (slf, ingestion))
    }

    /// Adds the counts of another table, which covers another time. The order of merging makes no
    /// difference.
    ///
    /// With `replace`, windows of the other table replace those windows of this table that they
    /// overlap. Each replaced window must lie inside the time that the other table covers, because
    /// the counts of a window can't be split.
    ///
    /// Raises:
    ///     ConfigError: `overlapping_coverage`, or `incompatible_tables` for other dimensions,
    ///         another metric or another filter.
    ///     ResponseError: `sum_overflow`.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> table.merge(later).coverage
    /// [Window('2026-01-01T00:00:00Z', '2026-01-01T00:30:00Z')]
    #[pyo3(signature = (other, *, replace = None), text_signature = "($self, other, *, replace=False)")]
    fn merge<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        replace: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let other = &instance::<Self>("other", "want a CountTable", other)?.get().0;
        let replace = replace.map(|replace| required("replace", replace));
        let replace = replace.transpose()?.unwrap_or_default();
        let bytes = self.bytes().saturating_add(other.bytes());
        let table = detached(py, bytes, || self.0.merge(other, replace))?;
        Ok(Self::made(py, table)?)
    }

    /// Adds up the counts of any number of tables of different times, in any order. This is faster
    /// than merging one after the other, which copies the growing sum each time.
    ///
    /// Raises:
    ///     ConfigError: `missing_argument` for no table at all, `overlapping_coverage`, or
    ///         `incompatible_tables`.
    ///     ResponseError: `sum_overflow`.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> tallyfold.CountTable.merge_all([later, table]) == table.merge(later)
    /// True
    #[staticmethod]
    fn merge_all<'py>(tables: &Bound<'py, PyAny>) -> Result<Bound<'py, Self>> {
        let py = tables.py();
        let (tables, bytes) = Self::all_of(tables)?;
        let all = tables.iter().map(|table| &**table);
        let table = detached(py, bytes, || tallyfold::CountTable::merge_all(all))?;
        Ok(Self::made(py, table)?)
    }

    /// Adds up the counts of several clusters or clients for the same time. The label becomes the
    /// `identity` of the sum.
    ///
    /// `merge` and `merge_all` refuse tables of different clusters, so that you don't mix them by mistake.
    ///
    /// Raises:
    ///     ConfigError: `missing_argument` for no table at all; `incompatible_tables` for other
    ///         dimensions, two tables of the same cluster and client, and a table that lacks time
    ///         that another covers.
    ///     ResponseError: `sum_overflow`.
    ///
    /// >>> both = tallyfold.CountTable.combine([table], "all clusters")
    /// >>> both.identity
    /// 'all clusters'
    #[staticmethod]
    fn combine<'py>(
        tables: &Bound<'py, PyAny>,
        label: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        let py = tables.py();
        let label: String = required("label", label)?;
        let (tables, bytes) = Self::all_of(tables)?;
        let all = tables.iter().map(|table| &**table);
        let table = detached(py, bytes, || tallyfold::CountTable::combine(all, &label))?;
        Ok(Self::made(py, table)?)
    }

    /// The `identity` of the client that read the counts. `None` if it is not known, as for a table
    /// of an `Aggregator`.
    #[getter]
    fn identity(&self) -> Option<&str> {
        self.0.identity().as_str()
    }

    /// The parts of `[start, end)` that the counts do not cover, as sorted `Window` objects. `None`
    /// stands for the start of the table's first window, or the end of its last one.
    ///
    /// Raises:
    ///     ConfigError: for timestamps that can't be used.
    ///
    /// >>> table.gaps(end="2026-01-01T01:00:00Z")
    /// [Window('2026-01-01T00:15:00Z', '2026-01-01T01:00:00Z')]
    #[pyo3(signature = (start = None, end = None))]
    fn gaps<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        end: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let edge = |name, given: Option<_>| given.map(|given| instant(name, given)).transpose();
        let range = self.range(edge("start", start)?, edge("end", end)?)?;
        Ok(plain(py, &self.0.gaps(range))?)
    }

    /// The counts by window. Without a step, each response keeps its own window. With a step, each
    /// response is added to the step of the UTC day in which its window lies.
    ///
    /// Args:
    ///     step: digits and one of `s`, `m`, `h` and `d`, such as `"5m"`, `"15m"`, `"1h"` and
    ///         `"1d"`, or a `timedelta` of whole seconds; it must divide a day.
    ///     zone: for the step `"1d"`, the name of a time zone, or a `ZoneInfo`: days begin at midnight
    ///         there. When its clocks change, a day has 23 or 25 hours.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` for any other step and for an unknown zone;
    ///         `unaligned_window` for a window that crosses the edge of a step, because its counts
    ///         can't be split.
    ///
    /// >>> (hour,) = table.group_by("integration").by_window("1h").windows
    /// >>> hour.start_text, hour.end_text, hour.complete
    /// ('2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z', False)
    /// >>> (day,) = table.by_window("1d", zone="America/New_York").windows
    /// >>> day.start_text, day.end_text
    /// ('2025-12-31T05:00:00Z', '2026-01-01T05:00:00Z')
    #[pyo3(signature = (step = None, zone = None))]
    fn by_window<'py>(
        slf: &Bound<'py, Self>,
        step: Option<&Bound<'py, PyAny>>,
        zone: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let step = step.map(|step| required("step", step)).transpose()?;
        let (py, own) = (slf.py(), &slf.get().0);
        let days = zone.map(|zone| slf.get().days(zone)).transpose()?;
        let series = detached(py, own.bytes(), || match &days {
            Some((zone, midnights)) => own.by_window_in(step, zone, midnights),
            None => own.by_window(step),
        })?;
        Ok(Series::made(slf.as_any(), series)?.into_any())
    }

    /// The counts of the windows that lie in `[start, end)`.
    ///
    /// Raises:
    ///     ConfigError: `unaligned_window` for a window that is only partly in the range, because its
    ///         counts can't be split; `invalid_window` if no window lies in it.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> half = table.merge(later)
    /// >>> half.between("2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z") == later
    /// True
    fn between<'py>(
        &self,
        py: Python<'py>,
        start: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        let range = Window::parse(&instant("start", start)?, &instant("end", end)?)?;
        Ok(Self::made(py, detached(py, self.bytes(), || self.0.between(range))?)?)
    }

    /// Reads a table from the JSON of `to_json`, as `str` or bytes.
    ///
    /// Raises:
    ///     ResponseError: `invalid_table` for anything else.
    ///
    /// >>> tallyfold.CountTable.from_json("{}")
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    #[classmethod]
    fn from_json<'py>(
        _class: &Bound<'py, PyType>,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        let data = TextOrBytes::of("data", data)?;
        let read = || tallyfold::CountTable::from_json(&data);
        Ok(Self::made(py, detached(py, data.len(), read)?)?)
    }

    /// Encodes the table compactly. `_from_compact` of the same version decodes it.
    fn _to_compact<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = detached(py, self.bytes(), || self.0.to_compact());
        PyBytes::new(py, &bytes)
    }

    /// Decodes a table that `_to_compact` has encoded.
    ///
    /// Raises:
    ///     ResponseError: `invalid_table` for any other bytes.
    #[staticmethod]
    fn _from_compact<'py>(py: Python<'py>, data: &Bound<'py, PyAny>) -> Result<Bound<'py, Self>> {
        let data = TextOrBytes::of("data", data)?;
        let read = || tallyfold::CountTable::from_compact(&data);
        Ok(Self::made(py, detached(py, data.len(), read)?)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        frame::repr(py, "CountTable", &*self.0, "", self.0.totals().each())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String,)>> {
        let from_json = slf.get_type().getattr("from_json")?;
        let own = &slf.get().0;
        let json = detached(slf.py(), own.bytes(), || own.to_json());
        Ok((from_json, (json,)))
    }
}

impl CountTable {
    /// Parses a range. A missing edge is the edge of the table's first or last window. Returns `None` if both edges are
    /// missing, or if the table has no windows.
    fn range(&self, start: Option<String>, end: Option<String>) -> Result<Option<Window>> {
        let windows = self.0.windows();
        let edges = windows.first().zip(windows.last());
        Ok(match (start, end, edges) {
            (None, None, _) | (_, _, None) => None,
            (start, end, Some((first, last))) => {
                let start = start.unwrap_or_else(|| first.start().to_string());
                let end = end.unwrap_or_else(|| last.end().to_string());
                Some(Window::parse(&start, &end)?)
            }
        })
    }

    /// Returns the name of a time zone, and when the days of this table begin there.
    fn days(&self, zone: &Bound<'_, PyAny>) -> Result<(String, Vec<Timestamp>)> {
        if !zone.is_instance_of::<PyString>() && !zone.is_instance_of::<PyTzInfo>() {
            let wanted = "want a str such as \"America/New_York\", or a ZoneInfo";
            return Err(Failure::wrong_type("zone", wanted, zone));
        }
        let windows = self.0.windows();
        let edges = windows.first().zip(windows.last());
        let (start, end) = edges.map_or((0, 0), |(first, last)| {
            // `unix_us` rounds down, but the end must be rounded up.
            let end_ns = last.end().unix_ns();
            let end_us = last.end().unix_us() + i64::from(end_ns % 1_000 != 0);
            (first.start().unix_us(), end_us)
        });
        let module = zone.py().import("tallyfold._time")?;
        let found = module.getattr("midnights")?.call1((zone, start, end))?;
        let Ok((zone, seconds)) = found.extract::<(String, Vec<i64>)>() else {
            let error = Error::argument("zone", Code::InvalidArgument, found.extract::<String>()?);
            return Err(error.into());
        };
        let ms = seconds.iter().map(|seconds| seconds.checked_mul(1_000));
        let midnights = ms.filter_map(|ms| Timestamp::from_unix_ms(ms?));
        Ok((zone, midnights.collect()))
    }

    /// Reads the tables of an iterable. Also returns the approximate size of their rows in bytes.
    fn all_of(tables: &Bound<'_, PyAny>) -> Result<(Vec<Arc<tallyfold::CountTable>>, usize)> {
        let wanted = "want an iterable of CountTable";
        let all = tables.try_iter();
        let all = all.map_err(|_| Failure::wrong_type("tables", wanted, tables))?;
        let tables: Vec<Arc<tallyfold::CountTable>> = all
            .map(|table| {
                let table = table?;
                let table = instance::<Self>("tables", wanted, &table)?;
                Ok(Arc::clone(&table.get().0))
            })
            .collect::<Result<_>>()?;
        let bytes = tables.iter().map(|table| table.bytes()).sum();
        Ok((tables, bytes))
    }

    /// Makes the Python object of a core table.
    pub(crate) fn made(py: Python<'_>, table: tallyfold::CountTable) -> PyResult<Bound<'_, Self>> {
        let own = Arc::new(table);
        Frame::made(py, Self(Arc::clone(&own)), own)
    }

    /// The core's table, which may outlive this object.
    pub(crate) fn shared(&self) -> Arc<tallyfold::CountTable> {
        Arc::clone(&self.0)
    }

    /// The core's table.
    pub(crate) fn core(&self) -> &tallyfold::CountTable {
        &self.0
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Content for tallyfold::CountTable {
    fn core(&self) -> &(dyn HtmlFrame + Send + Sync) {
        self
    }

    /// The approximate size in bytes of the rows of all windows.
    fn bytes(&self) -> usize {
        let rows = self.windows().len().saturating_mul(self.len() + 1);
        rows.saturating_mul(ROW)
    }
}

impl Rows for tallyfold::CountTable {
    fn length(&self) -> usize {
        self.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(row) = tallyfold::Frame::row(self, index) else {
            return Ok(None);
        };
        let names = PyTuple::new(py, self.dimensions().names())?;
        let values = PyTuple::new(py, row.values())?;
        let [success, errors, filtered] = row.counts().each();
        object(py, "Row", (names, values, success, errors, filtered)).map(Some)
    }
}
