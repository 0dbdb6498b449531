//! Checks responses: their compression, their totals, and whether adjacent windows add up.

use std::time::Instant;

use tallyfold::text::grouped;
use tallyfold::{
    Additivity, AdditivityVerdict, Code, CollectStep, Metric, ProbeOptions, Reconciliation, Result,
    Window,
};

use super::advice;
use super::configuration::Prepared;
use super::diagnosis::{Check, CheckName};
use super::service::{DIMENSION, Seen, failed, look, slow};

/// An uncompressed response of at least this length causes a warning.
const LARGE_BODY: u64 = 100_000;

/// Whether a response was compressed.
pub(crate) fn compression(seen: &Seen) -> Check {
    let name = CheckName::Compression;
    let bytes = grouped(seen.bytes);
    match &seen.coding {
        Some(coding) if !coding.eq_ignore_ascii_case("identity") => {
            Check::ok(name, format!("responses are compressed: {coding}"))
        }
        _ if seen.bytes < LARGE_BODY => Check::ok(
            name,
            format!("not compressed, which does not matter for {bytes} bytes"),
        ),
        _ => Check::warning(
            name,
            format!("not compressed: {bytes} bytes"),
            "Responses could be about a tenth as long: tallyfold requests gzip.",
            "Ask the operator to compress responses; a proxy in between may also remove the compression.",
        ),
    }
}

/// Whether the totals that the service reports are the sums of its counts.
pub(crate) fn totals(reconciliation: Reconciliation) -> Check {
    let name = CheckName::Totals;
    match reconciliation {
        Reconciliation::Balanced => {
            Check::ok(name, "the reported totals are the sums of the counts")
        }
        Reconciliation::Unavailable => Check::skipped(name, "the totals can't be compared"),
        Reconciliation::Unbalanced {
            success,
            errors,
            filtered,
        } => Check::warning(
            name,
            format!(
                "reported totals minus counts: {success:+} delivered, {errors:+} errors, {filtered:+} filtered"
            ),
            "The totals that the service reports are not the sums of its counts, so one of the two is wrong.",
            "Show the operator this message. tallyfold shows sums of the counts.",
        ),
    }
}

/// Reads ten minutes as one window and as two halves.
pub(crate) async fn additivity(prepared: &Prepared, halves: [Window; 2]) -> Check {
    let started = Instant::now();
    let name = CheckName::Additivity;
    let mut seen = Seen::default();
    let read = probe(prepared, halves, &mut seen);
    let read = match prepared.limit {
        None => read.await,
        Some(limit) => tokio::time::timeout(limit, read)
            .await
            .unwrap_or_else(|_| Err(slow())),
    };
    seen.took = started.elapsed();
    match read {
        Ok(additivity) => judge(&additivity).took(seen.took),
        Err(error) => failed(name, &error, &seen),
    }
}

async fn probe(prepared: &Prepared, halves: [Window; 2], seen: &mut Seen) -> Result<Additivity> {
    let [one, other] = halves;
    let session = &prepared.session;
    let options = ProbeOptions::with_defaults(
        Metric::EventDelivery,
        one.start().to_string(),
        other.start().to_string(),
        other.end().to_string(),
        vec![DIMENSION.to_owned()],
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
            "some counts of two adjacent windows are above the counts of the whole time, some below",
            "Counts changed while they were read, although the windows ended an hour ago.",
            "Run this again later. If it persists, ask the operator when counts are final, and set --settle to it.",
        ),
        AdditivityVerdict::DoubleCounted => broken(
            "two adjacent windows have more events than the whole time",
            "Events at the edge of a window are counted in both windows.",
        ),
        AdditivityVerdict::Missing => broken(
            "two adjacent windows have fewer events than the whole time",
            "Some events are counted in neither window.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Outcome;
    use crate::failure::Exit;

    #[test]
    fn only_a_long_response_has_to_be_compressed() {
        let judged = |coding: Option<&str>, bytes| {
            let coding = coding.map(str::to_owned);
            compression(&Seen {
                coding,
                bytes,
                ..Seen::default()
            })
            .result
        };
        assert_eq!(judged(Some("gzip"), 1_000_000), Outcome::Ok);
        assert_eq!(judged(None, 99_999), Outcome::Ok);
        assert_eq!(judged(None, 100_000), Outcome::Warning);
        assert_eq!(judged(Some("identity"), 100_000), Outcome::Warning);
    }

    #[test]
    fn totals_that_differ_are_shown_with_their_sign() {
        let check = totals(Reconciliation::Unbalanced {
            success: 5,
            errors: -2,
            filtered: 0,
        });
        assert_eq!(check.result, Outcome::Warning);
        assert!(
            check.seen.contains("+5 delivered, -2 errors, +0 filtered"),
            "{}",
            check.seen
        );
        assert_eq!(totals(Reconciliation::Balanced).result, Outcome::Ok);
        assert_eq!(totals(Reconciliation::Unavailable).result, Outcome::Skipped);
    }

    #[test]
    fn windows_that_do_not_add_up_fail() {
        for (found, outcome, exit) in [
            (AdditivityVerdict::Additive, Outcome::Ok, Exit::Fine),
            (AdditivityVerdict::Unknown, Outcome::Skipped, Exit::Fine),
            (AdditivityVerdict::Mixed, Outcome::Warning, Exit::Fine),
            (
                AdditivityVerdict::DoubleCounted,
                Outcome::Failed,
                Exit::Response,
            ),
            (AdditivityVerdict::Missing, Outcome::Failed, Exit::Response),
        ] {
            let check = verdict(found, 1_234);
            assert_eq!((check.result, check.exit), (outcome, exit), "{found:?}");
        }
        assert!(
            verdict(AdditivityVerdict::Additive, 1_234)
                .seen
                .contains("1,234 events")
        );
    }
}
