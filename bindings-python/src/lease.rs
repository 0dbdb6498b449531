//! The lease of a directory: wraps [`tallyfold::keeper::Lease`].

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tallyfold::keeper::{self, Holder, Process};

/// The state machine of a directory's lease. `tallyfold._files.lock` performs its steps.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
#[derive(Debug)]
pub(crate) struct Lease(Mutex<keeper::Lease>);

#[pymethods]
impl Lease {
    /// The content of the lease's file.
    #[classattr]
    const TEXT: &'static str = keeper::Lease::TEXT;
    /// The message if the file of a held lease is gone.
    #[classattr]
    const LOST: &'static str = keeper::Lease::LOST;
    /// Seconds between two writes of the lease's file.
    #[classattr]
    const SIGN_OF_LIFE: f64 = keeper::Lease::SIGN_OF_LIFE_MS as f64 / 1000.0;

    #[new]
    fn new(host: &str, pid: u32, stat: Option<&str>, seed: u64) -> Self {
        let holder = Holder { host, pid, stat, thread: None, seed };
        Self(Mutex::new(keeper::Lease::new(holder)))
    }

    /// The name of the lease's file.
    #[getter]
    fn name(&self) -> String {
        self.with(|lease| lease.name().to_owned())
    }

    /// What to do next, as a word and its argument.
    fn step(&self) -> (&'static str, String) {
        self.with(|lease| lease.step().parts())
    }

    /// Reports that a file was created or removed, or that a wait has ended.
    fn done(&self) {
        self.with(keeper::Lease::done);
    }

    /// Reports the names of all files in the directory.
    fn listed(&self, names: Vec<String>) {
        self.with(|lease| lease.listed(names.iter().map(String::as_str)));
    }

    /// Reports the modification time of the file that the step names; `None` if the file does not exist.
    fn modified(&self, unix_ms: Option<i64>) {
        self.with(|lease| lease.modified(unix_ms));
    }

    /// Reports whether the process exists, and what its `/proc/PID/stat` contains; `None` for what is not known.
    fn process(&self, exists: Option<bool>, stat: Option<&str>) {
        self.with(|lease| lease.process(Process { exists, stat }));
    }
}

impl Lease {
    fn with<T>(&self, act: impl FnOnce(&mut keeper::Lease) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
