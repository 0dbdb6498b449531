//! `Notifications`: sends alerts to receivers; Python sends the bytes.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tallyfold::Timestamp;
use tallyfold::sending::Push;
use tallyfold_health::{
    Finding, Found, Incident, Notified, NotifyOptions, Posted, Receiver, ReceiverKind,
    ReceiverOptions,
};

use crate::arguments::{Named, instant, keywords, required};
use crate::detach::{BRIEF, locked};
use crate::error::{Failure, Result};
use crate::from_plain::from_plain;
use crate::host::{self, Chunk, Clocks, TextOrBytes, failure, pairs, random_seed};
use crate::plain::plain;
use crate::push::Step;

/// The state machine of notifications, without I/O. `tallyfold.notify` and `tallyfold.async_notify` drive it.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Notifications(Mutex<tallyfold_health::Notifications>);

#[pymethods]
impl Notifications {
    /// Begins notifications. `check` is a `Check`, `receivers` are mappings, `state` is the state after the previous
    /// notifications, or `None`, and `now` is the time.
    #[new]
    #[pyo3(signature = (check, receivers, state, now, /, **named))]
    fn new(
        py: Python<'_>,
        check: &Bound<'_, PyAny>,
        receivers: &Bound<'_, PyAny>,
        state: &Bound<'_, PyAny>,
        now: &Bound<'_, PyAny>,
        named: Option<Named<'_>>,
    ) -> Result<Self> {
        let mut options: NotifyOptions = keywords(py, named, &[])?;
        options.seed = random_seed();
        let refused = |_| Failure::wrong_type("check", "want the result of Rules.check", check);
        let given = |name: &str| check.getattr(name);
        let incidents = given("incidents").and_then(|incidents| from_plain(&incidents));
        let incidents: Vec<Incident> = incidents.map_err(refused)?;
        let findings = given("findings").and_then(|findings| from_plain(&findings));
        let findings: Vec<Finding> = findings.map_err(refused)?;
        let left_out: u64 = required("check", &check.getattr("left_out")?)?;
        let wanted = "want receivers: mappings with kind, name and url";
        let refused = |_| Failure::wrong_type("receivers", wanted, receivers);
        let receivers = receivers.try_iter().map_err(refused)?.map(|receiver| {
            let given = PyDict::new(py);
            given
                .update(receiver?.cast().map_err(|error| refused(error.into()))?)
                .map_err(refused)?;
            let kind = given.get_item("kind")?;
            let kind = kind.unwrap_or_else(|| py.None().into_bound(py));
            let kind: ReceiverKind = required("kind", &kind)?;
            let options: ReceiverOptions = keywords(py, Some(&given), &["kind"])?;
            Ok(Receiver::new(kind, &options)?)
        });
        let receivers: Vec<Receiver> = receivers.collect::<Result<_>>()?;
        let notified = match state.is_none() {
            true => Notified::default(),
            false => Notified::from_json(&TextOrBytes::of("state", state)?)
                .map_err(|error| error.with_argument("state"))?,
        };
        let now = Timestamp::parse(&instant("now", now)?);
        let now = now.map_err(|error| error.with_argument("now"))?;
        let found = Found { incidents: &incidents, findings: &findings, is_cut: left_out > 0 };
        let core = tallyfold_health::Notifications::new(found, receivers, notified, &options, now)?;
        Ok(Self(Mutex::new(core)))
    }

    /// What to do next: a `Message` to send, `Wait` or `Done`.
    fn step<'py>(&self, py: Python<'py>, now: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let now = Clocks::of("now", now)?;
        let step = locked(py, &self.0, BRIEF, |core| core.step(now.0, |step| Step::from(step)))?;
        Ok(step.unwrap_or(Step::Done).object(py)?)
    }

    /// Reports the status and headers of a response. Returns whether its body is wanted.
    fn head(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let (status, headers) = (required("status", status)?, pairs("headers", headers)?);
        self.with(py, |push| push.head(status, &host::headers(&headers)))
    }

    /// Reports the next bytes of the body. Returns whether more of it is wanted.
    fn chunk(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<bool> {
        let data = Chunk::of("data", data)?;
        self.with(py, |push| push.chunk(&data))
    }

    /// Reports the end of the body, or of the part of it that was wanted.
    fn end(&self, py: Python<'_>) -> Result<()> {
        self.with(py, Push::end)
    }

    /// Reports that a datagram was sent, like the method of `Push`. No receiver of alerts gets datagrams.
    fn sent(&self, py: Python<'_>) -> Result<()> {
        self.with(py, Push::sent)
    }

    /// Reports that an exchange failed. `detail` is the same as for `Call.failed`. With `not_sent`, nothing of the message was
    /// sent.
    #[pyo3(signature = (detail, *, timed_out = false, not_sent = false))]
    fn failed(&self, py: Python<'_>, detail: &str, timed_out: bool, not_sent: bool) -> Result<()> {
        let (failure, detail) = failure(detail, timed_out, not_sent);
        self.with(py, |push| push.failed(failure, detail))
    }

    /// The state for the next notifications, and a `Receipt` for each receiver.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyAny>)> {
        let (notified, outcomes) =
            locked(py, &self.0, BRIEF, tallyfold_health::Notifications::finish);
        let receipts: Vec<_> = outcomes.iter().map(|outcome| &outcome.receipt).collect();
        Ok((notified.to_json(), plain(py, &receipts)?))
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; notifications hold secrets of their receivers"
    )]
    fn __repr__(&self) -> &'static str {
        "<Notifications>"
    }
}

impl Notifications {
    /// Passes an event to the push that is under way, and returns its result.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        event: impl FnOnce(&mut Push<Posted>) -> tallyfold::Result<R> + Send,
    ) -> Result<R> {
        let result = locked(py, &self.0, BRIEF, |core| event(core.under_way()?));
        Ok(result?)
    }
}
