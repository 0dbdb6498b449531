//! The sans-IO client: `Machine`, and what it makes.

use pyo3::prelude::*;
use tallyfold::{ClientOptions, CollectOptions, FollowOptions, Metric, RetryPolicy, Tolerate};

use crate::aggregator::Limits;
use crate::call::Call;
use crate::collect::{Collect, Probe};
use crate::convert::{Given, Instant, Milliseconds, SecretText, Step};
use crate::convert::{fitting, fitting_if, milliseconds_if, random_seed};
use crate::error::Result;
use crate::follow::Follow;
use crate::table::CountTable;

/// The client without its HTTP: it says what to send and is told what came back.
///
/// `Client` and `AsyncClient` drive one of these; with it any other HTTP stack fits as well. One
/// machine serves all threads and all calls of a program, and shares their tokens (service
/// reference 5). The arguments are those of `Client`; `host_tokens` says that the host answers
/// `ProvideToken` steps, in place of a secret, and `in_browser` that visitors can read what it
/// holds, as with Pyodide: a secret is refused then, unless `dangerously_allow_browser`.
///
/// Raises:
///     ConfigError: for arguments that can't be used.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> call = machine.event_delivery(
/// ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
/// ... )
/// >>> call.step(tallyfold.Now.read())
/// ProvideToken(api='control')
/// >>> call.token("a-token-from-elsewhere", 3600)
/// >>> call.step(tallyfold.Now.read())
/// Send(request=<Request POST https://cluster.example/v1.1/analytics/event_delivery>)
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Machine(tallyfold::Client);

#[pymethods]
impl Machine {
    #[new]
    #[pyo3(signature = (
        *, cluster_endpoint = None, client_id = None, client_secret = None,
        control_audience = None, base_url = None, auth_url = None, orchestration_audience = None,
        host_tokens = false, in_browser = false, dangerously_allow_browser = false,
        dangerously_allow_http = false, default_token_lifetime = None, limits = None,
        tolerate = Vec::new(), max_retries = None, longest_retry_wait = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        cluster_endpoint: Option<Given<String>>,
        client_id: Option<Given<String>>,
        client_secret: Option<SecretText>,
        control_audience: Option<Given<String>>,
        base_url: Option<Given<String>>,
        auth_url: Option<Given<String>>,
        orchestration_audience: Option<Given<String>>,
        host_tokens: bool,
        in_browser: bool,
        dangerously_allow_browser: bool,
        dangerously_allow_http: bool,
        default_token_lifetime: Option<Given<u64>>,
        limits: Option<&Bound<'_, Limits>>,
        tolerate: Vec<String>,
        max_retries: Option<Given<u32>>,
        longest_retry_wait: Option<Milliseconds>,
    ) -> Result<Self> {
        let usual = RetryPolicy::default();
        let retry = RetryPolicy {
            max_retries: fitting_if("max_retries", max_retries)?.unwrap_or(usual.max_retries),
            longest_wait_ms: milliseconds_if("longest_retry_wait", longest_retry_wait)?
                .unwrap_or(usual.longest_wait_ms),
            seed: random_seed(),
        };
        let options = ClientOptions {
            cluster_endpoint: fitting_if("cluster_endpoint", cluster_endpoint)?,
            client_id: fitting_if("client_id", client_id)?,
            client_secret: client_secret
                .map(|secret| secret.of("client_secret"))
                .transpose()?,
            control_audience: fitting_if("control_audience", control_audience)?,
            base_url: fitting_if("base_url", base_url)?,
            auth_url: fitting_if("auth_url", auth_url)?,
            orchestration_audience: fitting_if("orchestration_audience", orchestration_audience)?,
            host_tokens,
            in_browser,
            dangerously_allow_browser,
            dangerously_allow_http,
            default_token_lifetime_s: fitting_if("default_token_lifetime", default_token_lifetime)?,
            limits: limits.map(|limits| limits.get().0).unwrap_or_default(),
            tolerate: Tolerate::parse(&tolerate)?,
            hash_seed: random_seed(),
            retry,
        };
        Ok(Self(tallyfold::Client::new(options)?))
    }

    /// A call for event delivery metrics (service reference 4.4), whose output is a `CountTable`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (start, end, dimensions, group_by = None))]
    fn event_delivery(
        &self,
        start: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
        group_by: Option<Given<Vec<String>>>,
    ) -> Result<Call> {
        let (start, end) = (start.of("start")?, end.of("end")?);
        let dimensions = fitting("dimensions", dimensions)?;
        let group_by = fitting_if("group_by", group_by)?;
        let call = self
            .0
            .event_delivery(&start, &end, &dimensions, group_by.as_deref());
        Ok(Call::new(call?))
    }

    /// A call for event ingestion metrics (service reference 4.5), whose output is a `CountTable`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (start, end, dimensions, group_by = None))]
    fn event_ingestion(
        &self,
        start: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
        group_by: Option<Given<Vec<String>>>,
    ) -> Result<Call> {
        let (start, end) = (start.of("start")?, end.of("end")?);
        let dimensions = fitting("dimensions", dimensions)?;
        let group_by = fitting_if("group_by", group_by)?;
        let call = self
            .0
            .event_ingestion(&start, &end, &dimensions, group_by.as_deref());
        Ok(Call::new(call?))
    }

    /// A call for a page of audit logs (service reference 4.2), whose output is JSON as bytes.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (page = None, per_page = None))]
    fn audit_logs(&self, page: Option<Given<i64>>, per_page: Option<Given<i64>>) -> Result<Call> {
        let page = fitting_if("page", page)?;
        let per_page = fitting_if("per_page", per_page)?;
        Ok(Call::new(self.0.audit_logs(page, per_page)?))
    }

    /// A long range, window by window: the `Collect` that workers drive.
    ///
    /// Arguments are those of `Client.collect`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (
        metric, start, end, dimensions, *, window, group_by = None, part = None, have = None,
        settle = None, finest = None, probe = false,
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names each of them")]
    fn collect(
        &self,
        metric: &str,
        start: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
        window: Step,
        group_by: Option<Given<Vec<String>>>,
        part: Option<(Given<u32>, Given<u32>)>,
        have: Option<&Bound<'_, CountTable>>,
        settle: Option<Milliseconds>,
        finest: Option<Step>,
        probe: bool,
    ) -> Result<Collect> {
        let (start, end) = (start.of("start")?, end.of("end")?);
        let dimensions = fitting("dimensions", dimensions)?;
        let metric = Metric::from_name(metric)?;
        let usual = CollectOptions::new(metric, &start, &end, &dimensions, window.of("window")?);
        let part = match part {
            Some((index, of)) => Some((fitting("part", index)?, fitting("part", of)?)),
            None => None,
        };
        let finest = finest.map(|finest| finest.of("finest")).transpose()?;
        let options = CollectOptions {
            group_by: fitting_if("group_by", group_by)?,
            part,
            have: have.map(|table| table.get().0.clone()),
            settle_ms: milliseconds_if("settle", settle)?.unwrap_or(usual.settle_ms),
            finest: finest.unwrap_or(usual.finest),
            probe,
            ..usual
        };
        Ok(Collect::new(self.0.collect(options)?))
    }

    /// Windows as they close, and their corrections: the `Follow` that a host drives.
    ///
    /// Arguments are those of `Client.follow`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (
        metric, start, dimensions, *, window, end = None, group_by = None, delay = None,
        reread = None, settle = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names each of them")]
    fn follow(
        &self,
        metric: &str,
        start: Instant,
        dimensions: Given<Vec<String>>,
        window: Step,
        end: Option<Instant>,
        group_by: Option<Given<Vec<String>>>,
        delay: Option<Milliseconds>,
        reread: Option<Milliseconds>,
        settle: Option<Milliseconds>,
    ) -> Result<Follow> {
        let start = start.of("start")?;
        let dimensions = fitting("dimensions", dimensions)?;
        let metric = Metric::from_name(metric)?;
        let usual = FollowOptions::new(metric, &start, &dimensions, window.of("window")?);
        let options = FollowOptions {
            end: end.map(|end| end.of("end")).transpose()?,
            group_by: fitting_if("group_by", group_by)?,
            delay_ms: milliseconds_if("delay", delay)?.unwrap_or(usual.delay_ms),
            reread_ms: milliseconds_if("reread", reread)?,
            settle_ms: milliseconds_if("settle", settle)?.unwrap_or(usual.settle_ms),
            ..usual
        };
        Ok(Follow::new(self.0.follow(options)?))
    }

    /// Whether the service's windows are half-open: the `Probe` that a host drives.
    ///
    /// Arguments are those of `Client.probe_additivity`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    fn probe_additivity(
        &self,
        metric: &str,
        start: Instant,
        middle: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
    ) -> Result<Probe> {
        let edges = [start.of("start")?, middle.of("middle")?, end.of("end")?];
        let edges = edges.each_ref().map(String::as_str);
        let dimensions = fitting("dimensions", dimensions)?;
        let metric = Metric::from_name(metric)?;
        Ok(Probe::new(self.0.probe_additivity(
            metric,
            edges,
            &dimensions,
        )?))
    }

    /// A number that changes whenever a token was gained or lost, or its fetching ended: what a
    /// `Blocked` call waits for.
    fn token_epoch(&self) -> u64 {
        self.0.token_epoch()
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; the options hold a secret"
    )]
    fn __repr__(&self) -> &'static str {
        "<Machine>"
    }
}
