//! Exports: writes counts as pieces of bytes in the format of another system.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tallyfold::arguments::want_one_of;
use tallyfold::{Name, Window};
use tallyfold_export::{Export, ExportOptions, Format, Source};

use crate::arguments::{Named, instance, keywords, required};
use crate::comparison::Comparison;
use crate::detach::{detached, locked};
use crate::error::{Failure, Result};
use crate::plain::{package, plain};
use crate::series::Series;
use crate::table::CountTable;

/// Formats that the package writes with pyarrow.
pub(crate) const OF_PYARROW: &[&str] = &["parquet", "arrow"];

/// An iterator over the pieces of an export. `tallyfold.Export` wraps it.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Pieces {
    core: Mutex<Export>,
    /// The export in its state before the first piece, for `again`.
    whole: Export,
    media_type: &'static str,
    is_messages: bool,
    /// The number of bytes in the last piece; `usize::MAX` before the first piece.
    last: AtomicUsize,
}

#[pymethods]
impl Pieces {
    /// Begins an export of a table, a series or a revision. `now_ms` is the time of the host's clock in milliseconds since
    /// 1970. All options are keyword arguments.
    #[new]
    #[pyo3(signature = (counts, now_ms, /, **named))]
    fn new(
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        now_ms: i64,
        named: Option<Named<'_>>,
    ) -> Result<Self> {
        let counts = Exported::of(counts)?;
        check_format(named, OF_PYARROW)?;
        let mut options: ExportOptions = keywords(py, named, &[])?;
        options.now_ms = Some(now_ms);
        let export = detached(py, counts.bytes(), || Export::new(counts.source(), &options))?;
        Ok(Self {
            core: Mutex::new(export.clone()),
            whole: export,
            media_type: options.format.media_type(),
            is_messages: options.format.is_messages(),
            last: AtomicUsize::new(usize::MAX),
        })
    }

    /// The media type, for `Content-Type`.
    #[getter]
    fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Whether each piece is a message of its own.
    #[getter]
    fn is_messages(&self) -> bool {
        self.is_messages
    }

    /// Notes about the export, as `Note` objects.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        Ok(plain(py, self.whole.notes())?.cast_into().map_err(PyErr::from)?)
    }

    /// Returns a new iterator over the same pieces, from the first one.
    fn again(&self) -> Self {
        Self {
            core: Mutex::new(self.whole.clone()),
            whole: self.whole.clone(),
            media_type: self.media_type,
            is_messages: self.is_messages,
            last: AtomicUsize::new(usize::MAX),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        // The pieces of an export are about equally large, so the next one is about as large as the last one.
        let bytes = self.last.load(Ordering::Relaxed);
        let piece = locked(py, &self.core, bytes, |export| {
            let mut piece = Vec::new();
            export.next_piece(&mut piece).map(|_| piece)
        })?;
        self.last.store(piece.len(), Ordering::Relaxed);
        Some(PyBytes::new(py, &piece))
    }
}

/// The changes of a revision that an outbox holds, or the totals of a ledger.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Pending {
    pub(crate) source: Source,
    /// How many of its samples an earlier process was sending when it ended; `None` for totals.
    pub(crate) in_doubt: Option<u64>,
}

/// What can be exported.
pub(crate) enum Exported {
    Table(Arc<tallyfold::CountTable>),
    Series(Arc<tallyfold::Series>),
    Revision {
        changes: Arc<tallyfold::Comparison>,
        window: Window,
        number: u32,
        settled: bool,
    },
    /// A revision that an outbox holds, or the totals of a ledger.
    Pending(Source, Option<u64>),
}

impl Exported {
    pub(crate) fn of(counts: &Bound<'_, PyAny>) -> Result<Self> {
        if let Ok(table) = counts.cast::<CountTable>() {
            return Ok(Self::Table(table.get().shared()));
        }
        if let Ok(series) = counts.cast::<Series>() {
            return Ok(Self::Series(series.get().shared()));
        }
        if let Ok(pending) = counts.cast::<Pending>() {
            let pending = pending.get();
            return Ok(Self::Pending(pending.source.clone(), pending.in_doubt));
        }
        let revision = package(counts.py())?.getattr("Revision")?;
        if counts.is_instance(&revision)? {
            return Self::of_revision(counts);
        }
        let wanted = if counts.cast::<Comparison>().is_ok() {
            "want a CountTable, a Series or a Revision: a comparison has no window, the revision of a follow has one"
        } else {
            "want a CountTable, a Series or a Revision"
        };
        Err(Failure::wrong_type("counts", wanted, counts))
    }

    fn of_revision(revision: &Bound<'_, PyAny>) -> Result<Self> {
        let changes = revision.getattr("changes")?;
        let changes: &Bound<'_, Comparison> =
            instance("counts", "want a Revision of a follow", &changes)?;
        let window = revision.getattr("window")?;
        let edge = |name| -> Result<String> { Ok(window.getattr(name)?.extract()?) };
        Ok(Self::Revision {
            changes: changes.get().shared(),
            window: Window::parse(&edge("start_text")?, &edge("end_text")?)?,
            number: required("number", &revision.getattr("number")?)?,
            settled: required("settled", &revision.getattr("settled")?)?,
        })
    }

    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Table(table) => Source::from(&**table),
            Self::Series(series) => Source::from(series),
            Self::Pending(source, _) => source.clone(),
            Self::Revision { changes, window, number, settled } => {
                Source::changes(changes, *window, *number, *settled)
            }
        }
    }

    /// How many samples an earlier push was sending when it ended; `None` for counts that aren't from an outbox.
    pub(crate) fn in_doubt(&self) -> Option<u64> {
        match self {
            Self::Pending(_, in_doubt) => *in_doubt,
            _ => None,
        }
    }

    /// The approximate size of all rows in bytes.
    pub(crate) fn bytes(&self) -> usize {
        use crate::rows::Content;
        match self {
            Self::Table(table) => Content::bytes(&**table),
            Self::Series(series) => tallyfold::Frame::len(&**series) * crate::rows::ROW,
            Self::Revision { changes, .. } => Content::bytes(&**changes),
            Self::Pending(..) => usize::MAX,
        }
    }
}

/// Refuses a `format` that is neither a format of the crate nor one of `others`. Leaves a missing `format`, and one that is
/// not a `str`, to the reading of the options.
pub(crate) fn check_format(named: Option<Named<'_>>, others: &[&str]) -> Result<()> {
    let format = named.map(|named| named.get_item("format")).transpose()?;
    let Some(Ok(format)) = format.flatten().map(|format| format.extract::<String>()) else {
        return Ok(());
    };
    if Format::from_name(&format).is_some() {
        return Ok(());
    }
    let error = want_one_of(&[Format::NAMES, others].concat());
    Err(error.with_argument(Name::of_caller("format")).into())
}
