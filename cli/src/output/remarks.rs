//! What one must know of a report, in sentences.

use tallyfold::text::signed;
use tallyfold::{Reconciliation, Timestamp, Window};

use super::report::{Counted, Part, Report};
use super::safe::harmless;

/// The sign of counts that may still change.
pub(crate) const PROVISIONAL: char = '*';

/// The sign of windows that the counts cover in part only.
pub(crate) const INCOMPLETE: char = '~';

/// Says which counts may still change, and until when.
pub(crate) fn provisional(report: &Report) -> Option<String> {
    let windows = report
        .parts
        .iter()
        .flat_map(|part| part.provisional.iter().copied());
    let windows: Vec<Window> = windows.collect();
    let start = windows.iter().map(|window| window.start()).min()?;
    let end = windows.iter().map(|window| window.end()).max()?;
    let settled_ms = end
        .unix_ms()
        .saturating_add_unsigned(report.asked.settle_ms);
    let until = match Timestamp::from_unix_ms(settled_ms) {
        Some(settled) => format!(" until {settled}"),
        None => String::new(),
    };
    Some(format!(
        "counts of {start} to {end} may still change{until}"
    ))
}

/// Says that windows are covered in part.
pub(crate) fn incomplete(report: &Report) -> Option<String> {
    let is_partial = |part: &Part| match &part.counts {
        Counted::Series(series) => !series.complete(),
        _ => false,
    };
    let some = report.parts.iter().any(is_partial);
    some.then(|| "only a part of this window was counted".to_owned())
}

/// Says what is missing, and what does not add up, cluster by cluster.
pub(crate) fn faults(report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    for part in &report.parts {
        let of = of(report, &part.cluster);
        if !part.gaps.is_empty() {
            faults.push(format!("{of}not counted: {}", spans(&part.gaps)));
        }
        faults.extend(unbalanced(part).map(|text| format!("{of}{text}")));
    }
    for missing in &report.missing {
        let name = harmless(&missing.cluster);
        faults.push(format!(
            "{name} is missing: {}",
            harmless(&missing.failure.text)
        ));
    }
    faults
}

/// Says that the totals which the service reports are not the sums of its counts.
pub(crate) fn unbalanced(part: &Part) -> Option<String> {
    let Counted::Table(table) = &part.counts else {
        return None;
    };
    let Reconciliation::Unbalanced {
        success,
        errors,
        filtered,
    } = table.reconciliation()
    else {
        return None;
    };
    let differences = [
        ("success", success),
        ("errors", errors),
        ("filtered", filtered),
    ];
    let differences = differences
        .iter()
        .filter(|(_, difference)| *difference != 0)
        .map(|(name, difference)| format!("{name} {}", signed(*difference)));
    Some(format!(
        "the totals that the service reports differ from the sums of its counts: {}",
        differences.collect::<Vec<_>>().join(", ")
    ))
}

/// What a sentence about a cluster begins with.
pub(crate) fn of(report: &Report, cluster: &str) -> String {
    match report.is_named {
        true => format!("{}: ", harmless(cluster)),
        false => String::new(),
    }
}

/// Windows as text.
pub(crate) fn spans(windows: &[Window]) -> String {
    let spans = windows.iter().map(|window| span(*window));
    spans.collect::<Vec<_>>().join(", ")
}

/// A window as text.
pub(crate) fn span(window: Window) -> String {
    format!("{} to {}", window.start(), window.end())
}
