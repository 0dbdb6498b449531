//! Tables, series and comparisons as Python sequences of rows.

use std::fmt::Display;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::PyClass;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use tallyfold::{HtmlFrame, Metric, TopOptions};

use crate::arguments::{Named, Positional, options};
use crate::arrow;
use crate::detach::detached;
use crate::error::Result;
use crate::rows::{self, Content};

/// The base class of tables, series and comparisons.
#[pyclass(frozen, subclass, module = "tallyfold._tallyfold")]
pub(crate) struct Frame(Arc<dyn Content>);

impl Frame {
    /// Makes an object of a class of frames.
    pub(crate) fn made<T>(
        py: Python<'_>,
        class: T,
        content: Arc<dyn Content>,
    ) -> PyResult<Bound<'_, T>>
    where
        T: PyClass<BaseType = Self>,
    {
        let base = PyClassInitializer::from(Self(content));
        Bound::new(py, base.add_subclass(class))
    }

    fn core(&self) -> &(dyn HtmlFrame + Send + Sync) {
        self.0.core()
    }
}

#[pymethods]
impl Frame {
    /// The names of the dimensions, in the order that rows are sorted by.
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.core().dimensions().names())
    }

    /// `"event_delivery"` or `"event_ingestion"`; `None` if an `Aggregator` made the table without a metric.
    #[getter]
    fn metric(&self) -> Option<&'static str> {
        self.core().metric().map(Metric::as_str)
    }

    /// The `n` rows with the highest `by`, highest first. In a comparison, the rows whose `by` changed
    /// most, up or down. Rows of equal rank keep their order.
    ///
    /// `by` is a count (`success`, `errors`, `filtered`, or `undelivered`: errors and filtered
    /// together) or a rate (`error_rate`, of success and errors; `filtered_rate`, of all events).
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` for another `by`.
    ///
    /// >>> table.top(1, by="errors")[0].dimensions["integration"]
    /// 'warehouse'
    #[pyo3(signature = (*positional, **named))]
    fn top<'py>(
        &self,
        positional: Positional<'py>,
        named: Option<Named<'py>>,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let py = positional.py();
        let TopOptions { n, by, .. } = options(2, positional, named, &[])?;
        let positions = detached(py, self.0.bytes(), || self.core().top(n, by));
        Ok(rows::picked(&*self.0, py, positions)?)
    }

    /// JSON text, with counts as strings of digits. The text is the same in every language.
    /// `CountTable.from_json` reads the JSON of a table. Nothing reads the JSON of a series or a
    /// comparison, so save the tables.
    ///
    /// >>> tallyfold.CountTable.from_json(table.to_json()) == table
    /// True
    fn to_json(&self, py: Python<'_>) -> String {
        detached(py, self.0.bytes(), || self.core().to_json())
    }

    /// A polars data frame of plain columns: text for the dimensions, exact integers for the counts.
    ///
    /// Raises:
    ///     ModuleNotFoundError: if polars is not installed.
    ///
    /// >>> table.to_polars().schema["integration"], table.to_polars().schema["errors"]
    /// (String, UInt64)
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let polars = slf.py().import("polars")?;
        let frame = polars.call_method1("DataFrame", (slf,))?;
        let categories = polars.call_method1("col", (polars.getattr("Categorical")?,))?;
        let text = categories.call_method1("cast", (polars.getattr("String")?,))?;
        frame.call_method1("with_columns", (text,))
    }

    /// A pandas data frame of plain columns: text for the dimensions, exact integers for the counts.
    ///
    /// Raises:
    ///     ModuleNotFoundError: if pandas is not installed; before pandas 3, also if pyarrow is not.
    ///
    /// >>> table.to_pandas()["errors"].dtype
    /// dtype('uint64')
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = py.import("pandas")?.getattr("DataFrame")?;
        let frame = match class.getattr_opt("from_arrow")? {
            Some(from_arrow) => from_arrow.call1((slf,))?,
            None => {
                let table = py.import("pyarrow")?.call_method1("table", (slf,))?;
                table.call_method0("to_pandas")?
            }
        };
        let categories = frame.call_method1("select_dtypes", ("category",))?;
        let kinds = PyDict::new(py);
        for name in categories.getattr("columns")?.try_iter()? {
            kinds.set_item(name?, "str")?;
        }
        frame.call_method1("astype", (kinds,))
    }

    /// An Arrow C stream of one batch, in a capsule; `requested_schema` is ignored.
    ///
    /// Raises:
    ///     ResponseError: `count_overflow` for a comparison with a change that does not fit into 64 bits
    ///         with a sign.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to ignore the requested schema.
        drop(requested_schema);
        arrow::stream(py, &self.0)
    }

    /// The stream's schema, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.0)
    }

    /// Refuses to become an array. numpy, and `pandas.DataFrame(table)`, which requests an array, would put whole
    /// rows into it.
    ///
    /// Raises:
    ///     TypeError: always; the message names the methods that return columns.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        slf: &Bound<'_, Self>,
        dtype: Option<Bound<'_, PyAny>>,
        copy: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop((dtype, copy));
        let class = slf.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a {class} is not an array; for columns, want pandas.DataFrame.from_arrow(x), polars.DataFrame(x) or \
             pyarrow.table(x).to_pandas()"
        )))
    }

    fn __len__(&self) -> usize {
        self.core().len()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        rows::item(&*self.0, key)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        rows::forward(slf)
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        rows::backward(slf)
    }

    fn _repr_html_(&self) -> String {
        tallyfold::to_html(self.core())
    }
}

/// Describes a frame in one line. `middle` comes before the number of rows.
pub(crate) fn repr(
    py: Python<'_>,
    class: &str,
    frame: &dyn tallyfold::Frame,
    middle: &str,
    [success, errors, filtered]: [impl Display; 3],
) -> PyResult<String> {
    let metric = frame.metric().map_or("counts", Metric::as_str);
    let dimensions = PyTuple::new(py, frame.dimensions().names())?.repr()?;
    let rows = frame.len();
    Ok(format!(
        "<{class}: {metric} by {dimensions}, {middle}{rows} rows, \
         success={success}, errors={errors}, filtered={filtered}>"
    ))
}

/// The result of `__reduce__`: the function that makes the object again, and its arguments.
pub(crate) type Reduced<'py, T> = (Bound<'py, PyAny>, T);
