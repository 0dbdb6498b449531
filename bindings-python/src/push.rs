//! `Push`: sends an export message by message; Python sends the bytes.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tallyfold::Spelling;
use tallyfold::arguments::{Argument, Options};
use tallyfold_export::{Export, ExportOptions, Note, PushOptions, PushStep};

use crate::arguments::{Named, keywords, required};
use crate::detach::{BRIEF, detached, locked};
use crate::error::Result;
use crate::export::{Exported, check_format};
use crate::host::{self, Chunk, Clocks, pairs, random_seed};
use crate::plain::{object, plain};

/// The state machine of a push, without I/O. `tallyfold.push` and `tallyfold.async_push` drive it.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Push {
    core: Mutex<tallyfold_export::Push>,
    notes: Vec<Note>,
}

#[pymethods]
impl Push {
    /// Begins a push. `now_ms` is the time of the host's clock in milliseconds since 1970, and `finished` is the number of
    /// samples that an earlier push has finished. All options of an export and of a push are keyword arguments.
    #[new]
    #[pyo3(signature = (counts, now_ms, finished, /, **named))]
    fn new(
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        now_ms: i64,
        finished: &Bound<'_, PyAny>,
        named: Option<Named<'_>>,
    ) -> Result<Self> {
        let counts = Exported::of(counts)?;
        check_format(named, &[])?;
        let (of_export, of_push) = (names(ExportOptions::ARGUMENTS), names(PushOptions::ARGUMENTS));
        let mut options: ExportOptions = keywords(py, named, &texts(&of_push))?;
        options.now_ms = Some(now_ms);
        let mut sending: PushOptions = keywords(py, named, &texts(&of_export))?;
        sending.finished = required("finished", finished)?;
        sending.in_doubt = counts.in_doubt();
        sending.seed = random_seed();
        let (core, notes) = detached(py, usize::MAX, || {
            let export = Export::new(counts.source(), &options)?;
            let notes = export.notes().to_vec();
            tallyfold_export::Push::new(export, &sending).map(|core| (core, notes))
        })?;
        Ok(Self { core: Mutex::new(core), notes })
    }

    /// Notes about the export, as `Note` objects.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.notes)
    }

    /// What to do next: a `Message` to send, `Wait`, `Finished` or `Done`.
    fn step<'py>(&self, py: Python<'py>, now: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let now = Clocks::of("now", now)?;
        // The step may have to make the next message, which takes time.
        let step = locked(py, &self.core, usize::MAX, |push| push.step(now.0).map(Step::from))?;
        Ok(step.object(py)?)
    }

    /// Reports the status and headers of a response. Returns whether its body is wanted.
    fn head(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let (status, headers) = (required("status", status)?, pairs("headers", headers)?);
        Ok(locked(py, &self.core, BRIEF, |push| push.head(status, &host::headers(&headers)))?)
    }

    /// Reports the next bytes of the body. Returns whether more of it is wanted.
    fn chunk(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<bool> {
        let data = Chunk::of("data", data)?;
        Ok(locked(py, &self.core, data.len(), |push| push.chunk(&data))?)
    }

    /// Reports the end of the body, or of the part of it that was wanted.
    fn end(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(py, &self.core, BRIEF, tallyfold_export::Push::end)?)
    }

    /// Reports that a datagram was sent.
    fn sent(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(py, &self.core, BRIEF, tallyfold_export::Push::sent)?)
    }

    /// Reports that an exchange failed. `detail` is the same as for `Call.failed`. With `not_sent`, nothing of the message was
    /// sent.
    #[pyo3(signature = (detail, *, timed_out = false, not_sent = false))]
    fn failed(&self, py: Python<'_>, detail: &str, timed_out: bool, not_sent: bool) -> Result<()> {
        let (failure, detail) = host::failure(detail, timed_out, not_sent);
        Ok(locked(py, &self.core, BRIEF, |push| push.failed(failure, detail))?)
    }

    /// The result of the push so far, as `PushReport`.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = locked(py, &self.core, BRIEF, |push| push.report().clone());
        plain(py, &report)
    }

    /// How many samples of the export are finished.
    #[getter]
    fn finished(&self, py: Python<'_>) -> u64 {
        locked(py, &self.core, BRIEF, |push| push.finished())
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; a push holds the headers of its target"
    )]
    fn __repr__(&self) -> &'static str {
        "<Push>"
    }
}

/// A step that does not borrow from its push.
pub(crate) enum Step {
    Send(Message),
    Wait(u32),
    Finished(Finished),
    Done,
}

impl From<PushStep<'_>> for Step {
    fn from(step: PushStep<'_>) -> Self {
        match step {
            PushStep::Send(message) => Self::Send(Message {
                url: message.url.to_owned(),
                headers: message
                    .headers()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                body: message.body.to_vec(),
                is_datagram: message.is_datagram(),
            }),
            PushStep::Wait { ms } => Self::Wait(ms),
            PushStep::Finished { samples, in_doubt } => {
                Self::Finished(Finished { samples, in_doubt })
            }
            PushStep::Done => Self::Done,
        }
    }
}

impl Step {
    /// Converts the step to a Python object.
    pub(crate) fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Send(message) => Bound::new(py, message)?.into_any(),
            Self::Wait(ms) => object(py, "Wait", (ms,))?,
            Self::Finished(finished) => Bound::new(py, finished)?.into_any(),
            Self::Done => object(py, "Done", ())?,
        })
    }
}

/// A message to send unchanged: a POST request, or a datagram. Its `repr` shows only the size of the body, because the headers
/// and the address may contain secrets.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Message {
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    is_datagram: bool,
}

#[pymethods]
impl Message {
    /// `"POST"`.
    #[getter]
    #[allow(clippy::unused_self, reason = "as of a Request")]
    fn method(&self) -> &'static str {
        "POST"
    }

    /// The whole address.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Pairs of name, in lower case, and value. Includes a `user-agent` of this package, unless the caller has set one.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(&str, Bound<'py, PyString>)> {
        const AGENT: &str = concat!("tallyfold/", env!("CARGO_PKG_VERSION"), " python");
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (&**name, &**value));
        let has_agent = own.clone().any(|(name, _)| name == "user-agent");
        let agent = (!has_agent).then_some(("user-agent", AGENT));
        own.chain(agent).map(|(name, value)| (name, PyString::new(py, value))).collect()
    }

    /// The bytes to send.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.body)
    }

    /// Whether this is a datagram and not a request.
    #[getter]
    fn is_datagram(&self) -> bool {
        self.is_datagram
    }

    fn __repr__(&self) -> String {
        format!("<Message of {} bytes>", self.body.len())
    }
}

/// How many samples of the export are finished, and how many are in doubt if the process ends now. The host stores both.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Finished {
    #[pyo3(get)]
    pub(crate) samples: u64,
    #[pyo3(get)]
    pub(crate) in_doubt: u64,
}

/// The names of arguments as Python spells them.
fn names(arguments: &[Argument]) -> Vec<String> {
    arguments.iter().map(|argument| argument.spelled(Spelling::Python)).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
