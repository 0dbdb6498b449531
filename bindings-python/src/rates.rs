//! Rates of counts that Python holds.

use pyo3::prelude::*;
use tallyfold::Counts;

use crate::arguments::required;
use crate::error::Result;
use crate::plain::plain;

/// Computes the rates of these counts, as `tallyfold.Rates`. Only the core divides counts.
#[pyfunction]
pub(crate) fn count_rates<'py>(
    success: &Bound<'py, PyAny>,
    errors: &Bound<'py, PyAny>,
    filtered: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let counts = Counts {
        success: required("success", success)?,
        errors: required("errors", errors)?,
        filtered: required("filtered", filtered)?,
    };
    Ok(plain(success.py(), &counts.rates())?)
}
