//! `Plan`: a long range as many windows.

use pyo3::prelude::*;
use tallyfold::PartOptions;

use crate::arguments::{Named, Positional, options};
use crate::error::Result;
use crate::plain::plain;
use crate::rows::{self, Rows};

/// A time range `[start, end)`, cut into windows at multiples of a step of the UTC day. A plan may also be
/// a part of another plan.
///
/// A plan is a sequence of `Window` objects. Each window is computed when you request it, so a plan
/// of a year in steps of a second takes no memory. If the range does not start or end at an edge of
/// the step, the first or the last window is shorter. The service advises windows of 5 to 15 minutes
/// (service reference 8).
///
/// Args:
///     start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
///     end: a timestamp after `start`, in the same forms.
///     window: the step, such as `"15m"` and `"1h"`, or a `timedelta`; it must divide a day.
///
/// Raises:
///     ConfigError: for arguments that can't be used.
///
/// >>> plan = tallyfold.Plan("2026-01-31T09:10:00Z", "2026-01-31T09:50:00Z", "15m")
/// >>> [window.start_text[11:16] for window in plan]
/// ['09:10', '09:15', '09:30', '09:45']
/// >>> plan[-1]
/// Window('2026-01-31T09:45:00Z', '2026-01-31T09:50:00Z')
#[pyclass(frozen, eq, module = "tallyfold")]
pub(crate) struct Plan {
    plan: tallyfold::Plan,
    /// For pickling: the plan that this is a part of, and which part.
    whole: Option<(Py<Self>, u32, u32)>,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.plan == other.plan
    }
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (*positional, **named))]
    fn new(positional: Positional<'_>, named: Option<Named<'_>>) -> Result<Self> {
        Ok(Self { plan: tallyfold::Plan::of(&options(3, positional, named, &[])?)?, whole: None })
    }

    /// One of `of` parts, counted from 0. The window at position `i` belongs to part `i % of`, so the
    /// parts together are the whole plan and have no window in common. A part can be cut into parts
    /// again.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` unless `index` is below `of`.
    ///
    /// >>> plan = tallyfold.Plan("2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z", "15m")
    /// >>> [len(plan.part(index, 5)) for index in range(5)]
    /// [20, 19, 19, 19, 19]
    #[pyo3(signature = (*positional, **named))]
    fn part(
        slf: &Bound<'_, Self>,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
    ) -> Result<Self> {
        let PartOptions { index, of, .. } = options(2, positional, named, &[])?;
        Ok(Self {
            plan: slf.get().plan.part(index, of)?,
            whole: Some((slf.clone().unbind(), index, of)),
        })
    }

    /// The `Window` of the whole plan, even if this plan is a part of it.
    #[getter]
    fn range<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.plan.range())
    }

    /// The step in its largest unit, such as `"15m"`, `"90m"` and `"1h"`.
    #[getter]
    fn step(&self) -> String {
        self.plan.step().to_string()
    }

    fn __len__(&self) -> usize {
        self.length()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        rows::item(self, key)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        rows::forward(slf)
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        rows::backward(slf)
    }

    fn __repr__(&self) -> String {
        let (range, step) = (self.plan.range(), self.plan.step());
        let windows = self.plan.len();
        let whole = if self.whole.is_some() { "a part of " } else { "" };
        format!("<Plan: {windows} windows of {step}, {whole}{range:?}>")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let py = slf.py();
        let own = slf.get();
        if let Some((whole, index, of)) = &own.whole {
            let part = whole.bind(py).getattr("part")?;
            return Ok((part, (index, of).into_pyobject(py)?.into_any()));
        }
        let range = own.plan.range();
        let edges = (range.start().to_string(), range.end().to_string());
        let arguments = (edges.0, edges.1, own.step()).into_pyobject(py)?;
        Ok((slf.get_type().into_any(), arguments.into_any()))
    }
}

impl Rows for Plan {
    /// The length is always below Python's limit, 2^63 - 1, because ten thousand years have fewer seconds.
    fn length(&self) -> usize {
        usize::try_from(self.plan.len()).unwrap_or(usize::MAX)
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let window = self.plan.window(index as u64);
        window.map(|window| plain(py, &window)).transpose()
    }
}
