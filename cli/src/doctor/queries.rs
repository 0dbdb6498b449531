//! One query of each kind.

use tallyfold::text::grouped;
use tallyfold::{
    AuditLogsOptions, Call, CountTable, Metric, Output, Patience, QueryOptions, Result, TimeStep,
    Timestamp, Window,
};

use super::check::{Check, CheckName};
use super::configuration::Prepared;
use super::look::{Seen, failed, look};

/// What the queries ask for: the dimension that both kinds of events have and that has few values.
pub(crate) const DIMENSION: &str = "integration";

/// The length of the window that is asked for, as the service advises (service reference 8).
const LENGTH_MS: i64 = 300_000;

/// After this time the counts of a window no longer change, as everywhere in tallyfold if no flag says otherwise.
const SETTLE_MS: i64 = 3_600_000;

/// The last two settled windows of five minutes, the older one first.
pub(crate) fn settled(unix_ms: i64) -> Option<[Window; 2]> {
    let step = TimeStep::from_seconds(LENGTH_MS.unsigned_abs() / 1_000).ok()?;
    let end = step.floor(Timestamp::from_unix_ms(unix_ms.checked_sub(SETTLE_MS)?)?);
    let before = |ms: i64| Timestamp::from_unix_ms(end.unix_ms().checked_sub(ms)?);
    let (middle, start) = (before(LENGTH_MS)?, before(2 * LENGTH_MS)?);
    let window = |start, end| Window::new(start, end).ok();
    Some([window(start, middle)?, window(middle, end)?])
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
    let (start, end) = (window.start().to_string(), window.end().to_string());
    let options = QueryOptions::new(&start, &end, &[DIMENSION]);
    let call = prepared.session.machine.metrics(metric, &options);
    let (answer, seen) = asked(prepared, call).await;
    match answer {
        Ok(Output::Table(table)) => (
            counted(name, &table, window).took(seen.took),
            Some(table),
            seen,
        ),
        // A query of counts gives a table.
        Ok(_) => (Check::skipped(name, "no table"), None, seen),
        Err(error) => (failed(name, &error, &seen), None, seen),
    }
}

fn counted(name: CheckName, table: &CountTable, window: Window) -> Check {
    let totals = table.totals();
    let [success, errors, filtered] =
        [totals.success, totals.errors, totals.filtered].map(|count| grouped(count));
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
    let options = AuditLogsOptions {
        page: Some(1),
        per_page: Some(10),
        deadline_ms: Patience::Endless,
    };
    let call = prepared.session.machine.audit_logs(&options);
    let (answer, seen) = asked(prepared, call).await;
    match answer {
        Ok(_) => {
            let bytes = grouped(seen.bytes);
            Check::ok(name, format!("page 1: {bytes} bytes of JSON")).took(seen.took)
        }
        Err(error) => failed(name, &error, &seen),
    }
}

async fn asked(prepared: &Prepared, call: Result<Call>) -> (Result<Output>, Seen) {
    match call {
        Err(error) => (Err(error), Seen::default()),
        Ok(mut call) => {
            let (ended, seen) = look(&prepared.session, &mut call, prepared.limit).await;
            (ended.and_then(|()| call.output()), seen)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
