//! Whether this machine's clock agrees with the `Date` of a response.

use std::time::Duration;

use super::check::{Check, CheckName};
use super::words::length;
use crate::exit::Exit;

const WARNING_MS: u64 = 30_000;
const FAILURE_MS: u64 = 300_000;

/// A `Date` has whole seconds, so it is half a second early on average.
const HALF_SECOND_MS: i64 = 500;

/// Judges the clock by the `Date` of a response. `unix_ms` is the time here when its head arrived.
pub(crate) fn check(date: Option<&str>, unix_ms: i64) -> Check {
    let name = CheckName::Clock;
    let Some(date) = date else {
        return Check::skipped(name, "not shown: the response has no Date");
    };
    let Some(server_ms) = parsed(date) else {
        return Check::skipped(name, "not shown: the response's Date is none");
    };
    let ahead_ms = unix_ms.saturating_sub(server_ms.saturating_add(HALF_SECOND_MS));
    let apart = Duration::from_millis(ahead_ms.unsigned_abs());
    let seen = match apart.as_millis() {
        0..=1_500 => "agrees with the server's".to_owned(),
        _ => format!("{} {} the server's", length(apart), side(ahead_ms)),
    };
    match ahead_ms.unsigned_abs() {
        off if off <= WARNING_MS => Check::ok(name, seen),
        off if off <= FAILURE_MS => Check::warning(name, seen, problem(ahead_ms), NEXT),
        _ => Check::failed(name, Exit::Usage, seen, problem(ahead_ms), NEXT),
    }
}

const NEXT: &str = "Let this machine set its clock over the network (`timedatectl set-ntp true`, or chrony); if its clock is right, tell the \
     operator that the server's is not.";

/// Why it matters.
fn problem(ahead_ms: i64) -> &'static str {
    match ahead_ms > 0 {
        true => {
            "This clock is ahead: windows count as settled while their counts may still change, and \"the last hour\" ends in the \
             server's future."
        }
        false => {
            "This clock is behind: windows stay provisional for longer than they are, \"the last hour\" lacks the newest events, and a \
             new certificate may count as not yet valid."
        }
    }
}

fn side(ahead_ms: i64) -> &'static str {
    match ahead_ms > 0 {
        true => "ahead of",
        false => "behind",
    }
}

fn parsed(date: &str) -> Option<i64> {
    let date = httpdate::parse_http_date(date).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::check::Outcome;
    use super::*;

    const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
    const SERVER_MS: i64 = 1_767_225_600_000;

    #[test]
    fn a_clock_is_judged_by_how_far_it_is_off() {
        for (ahead_ms, outcome, seen) in [
            (0, Outcome::Ok, "agrees with the server's"),
            (1_900, Outcome::Ok, "agrees with the server's"),
            (-1_000, Outcome::Ok, "agrees with the server's"),
            (10_500, Outcome::Ok, "10 s ahead of the server's"),
            (30_500, Outcome::Ok, "30 s ahead of the server's"),
            (30_501, Outcome::Warning, "30 s ahead of the server's"),
            (-29_501, Outcome::Warning, "30 s behind the server's"),
            (300_500, Outcome::Warning, "5 min ahead of the server's"),
            (300_501, Outcome::Failed, "5 min ahead of the server's"),
            (-3_700_000, Outcome::Failed, "1 h 1 min behind the server's"),
            (
                864_000_500,
                Outcome::Failed,
                "10 days ahead of the server's",
            ),
        ] {
            let check = check(Some(DATE), SERVER_MS + ahead_ms);
            assert_eq!((check.result, &*check.seen), (outcome, seen), "{ahead_ms}");
            assert_eq!(check.problem.is_some(), outcome > Outcome::Ok);
            if let Some(problem) = &check.problem {
                assert_eq!(problem.contains("is ahead"), ahead_ms > 0);
            }
        }
    }

    #[test]
    fn a_date_that_is_none_says_nothing() {
        for date in [
            None,
            Some(""),
            Some("today"),
            Some("Thu, 01 Jan 1960 00:00:00 GMT"),
        ] {
            let check = check(date, SERVER_MS);
            assert_eq!(check.result, Outcome::Skipped, "{date:?}");
            assert!(check.seen.contains("not shown"));
        }
    }

    #[test]
    fn clocks_at_the_ends_of_time_do_not_overflow() {
        for unix_ms in [i64::MIN, i64::MAX] {
            assert_eq!(check(Some(DATE), unix_ms).result, Outcome::Failed);
        }
    }
}
