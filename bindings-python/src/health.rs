//! Health: what explains a change.

use std::sync::Arc;

use pyo3::prelude::*;
use tallyfold_health::{ExplainOptions, Measure};

use crate::arguments::{Named, instance, keywords, required};
use crate::detach::detached;
use crate::error::Result;
use crate::plain::plain;
use crate::rows::Content;
use crate::table::CountTable;

/// What explains the change from one table to another, as an `Explanation`. All options go by name.
#[pyfunction]
#[pyo3(signature = (before, now, measure, /, **named))]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyAny>,
    now: &Bound<'py, PyAny>,
    measure: &Bound<'py, PyAny>,
    named: Option<Named<'py>>,
) -> Result<Bound<'py, PyAny>> {
    let before = table("before", before)?;
    let now = table("now", now)?;
    let measure: Measure = required("measure", measure)?;
    let options: ExplainOptions = keywords(py, named, &[])?;
    let bytes = before.bytes() + now.bytes();
    let explained = detached(py, bytes, || {
        tallyfold_health::explain(&before, &now, measure, &options)
    })?;
    Ok(plain(py, &explained)?)
}

/// The table of an argument.
fn table(name: &str, value: &Bound<'_, PyAny>) -> Result<Arc<tallyfold::CountTable>> {
    let table = instance::<CountTable>(name, "want a CountTable", value)?;
    Ok(table.get().shared())
}
