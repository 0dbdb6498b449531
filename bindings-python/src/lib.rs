//! The native module `tallyfold._tallyfold`: newtypes that delegate to the core crate.

use pyo3::prelude::*;

/// The part of tallyfold that is written in Rust.
#[pymodule]
mod _tallyfold {
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
