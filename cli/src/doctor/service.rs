//! Makes one call of each kind to the service. Records details that a call does not report, such as its duration and the
//! content coding of its last response. Checks the responses: their compression, their totals, and whether the counts of
//! adjacent windows add up.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_ENCODING, HeaderName, LOCATION};
use tallyfold::sending::named;
use tallyfold::text::{grouped, roughly};
use tallyfold::{
    Additivity, AdditivityVerdict, Api, AuditLogsOptions, Call, CallOutput, Code, CollectStep,
    CountTable, Dimension, Error, Metric, ProbeOptions, QueryOptions, Reconciliation, Result,
    Spelling, Step, TimeStep, Timestamp, Window,
};
use tokio::time::sleep;

use super::advice;
use super::configuration::{Place, Prepared};
use super::diagnosis::{Check, CheckName, CheckResult};
use crate::host::exchange::{Broken, Outgoing, ResponseReader, within};
use crate::host::session::Session;

/// Details that a call does not report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The `Content-Encoding` of the last response, which may be `identity`; `None` without this header.
    pub(crate) coding: Option<String>,
    /// The decoded length of the last response's body, in bytes.
    pub(crate) bytes: u64,
    /// The redirect target of the last response, if there is one.
    pub(crate) leads_to: Option<String>,
    /// The name of the network failure, if the exchange failed.
    pub(crate) trouble: Option<&'static str>,
    /// The duration of the call.
    pub(crate) took: Duration,
}

/// Drives a call to its end, for at most `limit`, and records its details.
pub(crate) async fn look<T>(
    session: &Session,
    call: &mut Call<T>,
    limit: Option<Duration>,
) -> (Result<()>, Seen) {
    let mut seen = Seen::default();
    let started = Instant::now();
    let drive = drive(session, call, &mut seen);
    let ended = within(limit, drive).await;
    seen.took = started.elapsed();
    (ended.unwrap_or_else(|| Err(slow())), seen)
}

/// Returns the error of a check that took too long.
pub(crate) fn slow() -> Error {
    Error::new(Code::TimedOut, "the check took too long")
}

async fn drive<T>(session: &Session, call: &mut Call<T>, seen: &mut Seen) -> Result<()> {
    loop {
        let begun = session.now();
        let ended = match call.step(begun)? {
            Step::Send(request) => {
                *seen = Seen::default();
                let outgoing = Outgoing::of(&session.http, &request);
                let mut looking = Looking { call, seen };
                // The exchange has no timeout of its own, because the limit of the check includes it.
                let ended = outgoing.exchange(None, &mut looking).await;
                if let Err(Broken::Network(name)) = &ended {
                    seen.trouble = Some(name);
                }
                ended.or_else(|broken| broken.report(call))
            }
            Step::Wait { ms } => {
                sleep(Duration::from_millis(ms.into())).await;
                Ok(())
            }
            Step::Done => return Ok(()),
            // Unreachable: a check makes one call at a time, and its client has a secret.
            Step::Blocked { .. } | Step::ProvideToken { .. } => {
                Err(Error::new(Code::OutOfOrder, "another call is under way"))
            }
        };
        session.report(call, begun);
        ended?;
    }
}

/// Passes a response to a call, and records its details.
struct Looking<'a, T> {
    call: &'a mut Call<T>,
    seen: &'a mut Seen,
}

impl<T> ResponseReader for Looking<'_, T> {
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        let first = |name: HeaderName| named(headers, name.as_str()).next();
        self.seen.coding = first(CONTENT_ENCODING).map(str::to_owned);
        self.seen.leads_to = first(LOCATION).map(destination);
        self.call.head(status, headers)
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        self.seen.bytes += chunk.len() as u64;
        self.call.chunk(chunk).map(|()| true)
    }

    fn end(&mut self) -> Result<()> {
        self.call.end()
    }
}

/// Describes the target of a redirect without its path, query and user, which may contain a secret.
fn destination(location: &str) -> String {
    match Place::of(location) {
        Some(place) if !place.origin.contains('@') => place.origin,
        None if location.starts_with('/') && !location.starts_with("//") => {
            "another path of the same server".to_owned()
        }
        _ => "an address that is not shown".to_owned(),
    }
}

/// Creates the failed check of a call that ended with `error`.
pub(crate) fn failed(name: CheckName, error: &Error, seen: &Seen) -> Check {
    let next = match seen.trouble {
        Some(trouble) => advice::of_trouble(trouble),
        None => advice::of_code(error.code(), error.status()),
    };
    // The text leaves out the code, which has its own field.
    let text = match error.argument_in(Spelling::Flag) {
        Some(name) => format!("{name}: {}", error.sentence_in(Spelling::Flag)),
        None => error.sentence_in(Spelling::Flag).to_string(),
    };
    let what = match (error.status(), &seen.leads_to) {
        (Some(status), Some(place)) => format!("status {status}, which redirects to {place}"),
        (Some(status), None) => format!("status {status}"),
        (None, _) => "no usable response".to_owned(),
    };
    Check {
        code: Some(error.code()),
        status: error.status(),
        ..Check::failed(name, error.kind().into(), what, &text, next).took(seen.took)
    }
}

/// Requests a token for an API.
pub(crate) async fn token(prepared: &Prepared, api: Api) -> Check {
    let name = token_name(api);
    let (answer, seen) = run(prepared, prepared.session.machine.token(api)).await;
    match answer {
        Ok(token) => {
            // Rounds up to minutes, because some of the lifetime has passed since the service sent the response.
            let minutes = u64::from(token.expires_in_s).div_ceil(60);
            let lifetime = roughly(Duration::from_secs(minutes * 60));
            Check::ok(name, format!("granted, valid for {lifetime}")).took(seen.took)
        }
        Err(error) => failed(name, &error, &seen),
    }
}

/// Returns the name of the check that requests an API's token.
pub(crate) fn token_name(api: Api) -> CheckName {
    match api {
        Api::Control => CheckName::ControlToken,
        Api::Orchestration => CheckName::OrchestrationToken,
    }
}

/// Improves the advice by comparing the checks of both tokens. The service does not report whether it refused the id,
/// the secret or the audience, but both APIs accept the same id and secret (service reference 5.1, point 5).
pub(crate) fn compare_tokens(checks: &mut [Check]) {
    let of = |api| checks.iter().position(|check| check.name == token_name(api));
    let (Some(control), Some(orchestration)) = (of(Api::Control), of(Api::Orchestration)) else {
        return;
    };
    let is_refused = |at: usize| checks[at].code == Some(Code::TokenRefused);
    let is_granted = |at: usize| checks[at].result == CheckResult::Ok;
    let audience = |flag: &str| {
        format!(
            "Check {flag} first: the other API has granted a token for the same id and secret, so the audience is what differs. \
             If it is right, ask the operator whether this id may use this API."
        )
    };
    if is_refused(control) && is_granted(orchestration) {
        checks[control].next = Some(audience("--control-audience"));
    } else if is_refused(orchestration) && is_granted(control) {
        checks[orchestration].next = Some(audience("--orchestration-audience"));
    } else if is_refused(control) && is_refused(orchestration) {
        let next = "Check the client id and the client secret first: both APIs refuse them. Then check both audiences.";
        checks[control].next = Some(next.to_owned());
        checks[orchestration].next = Some(next.to_owned());
    }
}

/// The dimension of the queries. Both metrics have it, and it has few values.
pub(crate) const DIMENSION: Dimension = Dimension::Integration;

/// The length of a query's window, as the service recommends (service reference 8).
const LENGTH_MS: i64 = 300_000;

/// How long the counts of a window may still change after its end, by tallyfold's default.
const SETTLE_MS: i64 = 3_600_000;

/// Returns the last two windows of five minutes that are settled, the earlier window first.
pub(crate) fn settled(unix_ms: i64) -> Option<[Window; 2]> {
    let step = TimeStep::from_seconds(LENGTH_MS.unsigned_abs() / 1_000).ok()?;
    let edge = |windows: i64| {
        let ago_ms = SETTLE_MS + windows * LENGTH_MS;
        Some(step.floor(Timestamp::from_unix_ms(unix_ms.checked_sub(ago_ms)?)?))
    };
    let [start, middle, end] = [edge(2)?, edge(1)?, edge(0)?];
    Some([Window::new(start, middle).ok()?, Window::new(middle, end).ok()?])
}

/// Queries the counts of a window.
pub(crate) async fn metrics(
    prepared: &Prepared,
    metric: Metric,
    window: Window,
) -> (Check, Option<CountTable>, Seen) {
    let name = match metric {
        Metric::EventDelivery => CheckName::EventDelivery,
        Metric::EventIngestion => CheckName::EventIngestion,
    };
    let options = QueryOptions::new(window, &[DIMENSION]);
    let call = prepared.session.machine.metrics(metric, &options);
    let (answer, seen) = run(prepared, call).await;
    match answer {
        Ok(table) => (counted(name, &table, window).took(seen.took), Some(table), seen),
        Err(error) => (failed(name, &error, &seen), None, seen),
    }
}

fn counted(name: CheckName, table: &CountTable, window: Window) -> Check {
    let totals = table.totals();
    let [success, errors, filtered] = [totals.success, totals.errors, totals.filtered].map(grouped);
    let groups = table.success().len();
    Check::ok(
        name,
        format!(
            "from {} to {}: {success} delivered, {errors} errors, {filtered} filtered, in {groups} group{}",
            window.start(),
            window.end(),
            if groups == 1 { "" } else { "s" }
        ),
    )
}

/// Lists the first page of audit logs.
pub(crate) async fn audit_logs(prepared: &Prepared) -> Check {
    let name = CheckName::AuditLogs;
    let options = AuditLogsOptions::default().page(1).per_page(10);
    let call = prepared.session.machine.audit_logs(&options);
    let (answer, seen) = run(prepared, call).await;
    match answer {
        Ok(_) => {
            let bytes = grouped(seen.bytes);
            Check::ok(name, format!("page 1: {bytes} bytes of JSON")).took(seen.took)
        }
        Err(error) => failed(name, &error, &seen),
    }
}

async fn run<T: CallOutput>(prepared: &Prepared, call: Result<Call<T>>) -> (Result<T>, Seen) {
    match call {
        Err(error) => (Err(error), Seen::default()),
        Ok(mut call) => {
            let (ended, seen) = look(&prepared.session, &mut call, prepared.limit).await;
            (ended.and_then(|()| call.output()), seen)
        }
    }
}

/// An uncompressed response of at least this length causes a warning.
const LARGE_BODY: u64 = 100_000;

/// Checks whether a response was compressed.
pub(crate) fn compression(seen: &Seen) -> Check {
    let name = CheckName::Compression;
    let bytes = grouped(seen.bytes);
    match &seen.coding {
        Some(coding) if !coding.eq_ignore_ascii_case("identity") => {
            Check::ok(name, format!("responses are compressed: {coding}"))
        }
        _ if seen.bytes < LARGE_BODY => {
            Check::ok(name, format!("not compressed, which does not matter for {bytes} bytes"))
        }
        _ => Check::warning(
            name,
            format!("not compressed: {bytes} bytes"),
            "tallyfold requests gzip, which would shorten responses to about a tenth.",
            "Ask the operator to compress responses; a proxy in between may also remove the compression.",
        ),
    }
}

/// Checks whether the totals that the service reports are the sums of its counts.
pub(crate) fn totals(reconciliation: Reconciliation) -> Check {
    let name = CheckName::Totals;
    match reconciliation {
        Reconciliation::Balanced => {
            Check::ok(name, "the reported totals are the sums of the counts")
        }
        Reconciliation::Unavailable => Check::skipped(name, "the totals can't be compared"),
        Reconciliation::Unbalanced { success, errors, filtered } => Check::warning(
            name,
            format!(
                "reported totals minus counts: {success:+} delivered, {errors:+} errors, {filtered:+} filtered"
            ),
            "The totals that the service reports are not the sums of its counts, so one of the two is wrong.",
            "Show the operator this message. Until then, tallyfold uses the sums of the counts, not the reported totals.",
        ),
    }
}

/// Reads ten minutes as one window and as two windows, and checks that their counts agree.
pub(crate) async fn additivity(prepared: &Prepared, halves: [Window; 2]) -> Check {
    let started = Instant::now();
    let name = CheckName::Additivity;
    let mut seen = Seen::default();
    let read = probe(prepared, halves, &mut seen);
    let read = within(prepared.limit, read).await;
    seen.took = started.elapsed();
    match read.unwrap_or_else(|| Err(slow())) {
        Ok(additivity) => judge(&additivity).took(seen.took),
        Err(error) => failed(name, &error, &seen),
    }
}

async fn probe(prepared: &Prepared, halves: [Window; 2], seen: &mut Seen) -> Result<Additivity> {
    let [one, other] = halves;
    let session = &prepared.session;
    let options = ProbeOptions::with_defaults(
        Metric::EventDelivery,
        one.start(),
        other.start(),
        other.end(),
        vec![DIMENSION],
    );
    let mut probe = session.machine.probe_additivity(&options)?;
    while let CollectStep::Drive(mut drive) = probe.step() {
        // The error stays in the call, and `settle` reads it from there.
        *seen = look(session, &mut drive.call, None).await.1;
        probe.settle(drive.task, &mut drive.call)?;
    }
    probe.finish()
}

fn judge(additivity: &Additivity) -> Check {
    let total = additivity.whole.totals();
    let events = [total.success, total.errors, total.filtered].map(u128::from);
    verdict(additivity.verdict, events.iter().sum())
}

fn verdict(verdict: AdditivityVerdict, events: u128) -> Check {
    let name = CheckName::Additivity;
    let events = grouped(events);
    let broken = |seen: &str, problem: &str| Check {
        code: Some(Code::WindowsNotAdditive),
        ..Check::failed(
            name,
            Code::WindowsNotAdditive.kind().into(),
            seen,
            problem,
            advice::of_code(Code::WindowsNotAdditive, None),
        )
    };
    match verdict {
        AdditivityVerdict::Additive => Check::ok(
            name,
            format!(
                "two windows of 5 minutes have the same {events} events as the 10 minutes that they cover"
            ),
        ),
        AdditivityVerdict::Unknown => Check::skipped(name, "there were no events to compare"),
        AdditivityVerdict::Mixed => Check::warning(
            name,
            "some counts of two adjacent windows are above the counts of the whole range, some below",
            "Counts changed while they were read, although the windows ended an hour ago.",
            "Run this again later. If it persists, ask the operator how long counts may change after a window, and set --settle to that time.",
        ),
        AdditivityVerdict::DoubleCounted => broken(
            "two adjacent windows have more events than the whole range",
            "Events at the edge of a window are counted in both windows.",
        ),
        AdditivityVerdict::Missing => broken(
            "two adjacent windows have fewer events than the whole range",
            "Some events are counted in neither window.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_redirect_is_shown_without_parts_that_may_be_secret() {
        for (location, shown) in [
            ("https://login.example/a?session=1", "https://login.example"),
            ("http://a.example:81", "http://a.example:81"),
            ("/login?session=1", "another path of the same server"),
            ("https://me:pw@a.example/", "an address that is not shown"),
            ("//a.example/login", "an address that is not shown"),
            ("login", "an address that is not shown"),
            ("", "an address that is not shown"),
        ] {
            assert_eq!(destination(location), shown);
        }
    }

    fn advised(control: bool, orchestration: bool) -> [Option<String>; 2] {
        let check = |api, is_granted| match is_granted {
            true => Check::ok(token_name(api), ""),
            false => {
                let error = Error::new(Code::TokenRefused, "refused").with_status(401);
                failed(token_name(api), &error, &Seen::default())
            }
        };
        let mut checks = [check(Api::Control, control), check(Api::Orchestration, orchestration)];
        compare_tokens(&mut checks);
        checks.map(|check| check.next)
    }

    #[test]
    fn if_only_one_api_refuses_a_token_the_advice_names_its_audience() {
        let [control, orchestration] = advised(false, true);
        assert!(control.unwrap().contains("--control-audience first"));
        assert_eq!(orchestration, None);
        let [control, orchestration] = advised(true, false);
        assert!(orchestration.unwrap().contains("--orchestration-audience first"));
        assert_eq!(control, None);
    }

    #[test]
    fn if_both_apis_refuse_a_token_the_advice_names_the_secret() {
        for next in advised(false, false) {
            assert!(next.unwrap().contains("client secret first"));
        }
        assert_eq!(advised(true, true), [None, None]);
    }

    #[test]
    fn a_single_token_keeps_the_usual_advice() {
        let error = Error::new(Code::TokenRefused, "refused");
        let mut checks = [failed(CheckName::ControlToken, &error, &Seen::default())];
        compare_tokens(&mut checks);
        assert!(checks[0].next.as_ref().unwrap().contains("does not report which"));
    }

    #[test]
    fn settled_windows_ended_an_hour_ago() {
        for (now_ms, expected) in [
            (
                1_767_225_600_000,
                "[2025-12-31T22:50:00Z, 2025-12-31T22:55:00Z) [2025-12-31T22:55:00Z, 2025-12-31T23:00:00Z)",
            ),
            (
                1_767_225_899_999,
                "[2025-12-31T22:50:00Z, 2025-12-31T22:55:00Z) [2025-12-31T22:55:00Z, 2025-12-31T23:00:00Z)",
            ),
            (
                1_767_225_900_000,
                "[2025-12-31T22:55:00Z, 2025-12-31T23:00:00Z) [2025-12-31T23:00:00Z, 2025-12-31T23:05:00Z)",
            ),
        ] {
            let [one, other] = settled(now_ms).unwrap();
            assert_eq!(format!("{one:?} {other:?}"), expected);
        }
        assert_eq!(settled(i64::MIN), None);
        assert_eq!(settled(i64::MAX), None);
    }

    #[test]
    fn only_a_long_uncompressed_response_is_a_warning() {
        let judged = |coding: Option<&str>, bytes| {
            let coding = coding.map(str::to_owned);
            compression(&Seen { coding, bytes, ..Seen::default() }).result
        };
        assert_eq!(judged(Some("gzip"), 1_000_000), CheckResult::Ok);
        assert_eq!(judged(None, 99_999), CheckResult::Ok);
        assert_eq!(judged(None, 100_000), CheckResult::Warning);
        assert_eq!(judged(Some("identity"), 100_000), CheckResult::Warning);
    }

    #[test]
    fn differences_of_totals_are_shown_with_their_sign() {
        let check = totals(Reconciliation::Unbalanced { success: 5, errors: -2, filtered: 0 });
        assert_eq!(check.result, CheckResult::Warning);
        assert!(check.seen.contains("+5 delivered, -2 errors, +0 filtered"), "{}", check.seen);
        assert_eq!(totals(Reconciliation::Balanced).result, CheckResult::Ok);
        assert_eq!(totals(Reconciliation::Unavailable).result, CheckResult::Skipped);
    }

    #[test]
    fn windows_that_do_not_add_up_fail() {
        for (found, outcome, exit) in [
            (AdditivityVerdict::Additive, CheckResult::Ok, Exit::Fine),
            (AdditivityVerdict::Unknown, CheckResult::Skipped, Exit::Fine),
            (AdditivityVerdict::Mixed, CheckResult::Warning, Exit::Fine),
            (AdditivityVerdict::DoubleCounted, CheckResult::Failed, Exit::Response),
            (AdditivityVerdict::Missing, CheckResult::Failed, Exit::Response),
        ] {
            let check = verdict(found, 1_234);
            assert_eq!((check.result, check.exit), (outcome, exit), "{found:?}");
        }
        assert!(verdict(AdditivityVerdict::Additive, 1_234).seen.contains("1,234 events"));
    }
}
