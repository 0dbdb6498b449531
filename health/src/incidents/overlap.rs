//! Decides whether findings belong to the same incident, by the values that they have in common and by when they began.

use tallyfold::Timestamp;

use super::finding::Status;
use super::incident::{Incident, IncidentPart};
use super::place::{common, is_compatible, is_inside};
use crate::measure::Measure;

/// Findings that began within this many milliseconds of each other began together.
const NEAR_MS: i64 = 2 * 3_600_000;

/// What a measure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Errors,
    Filtered,
    Volume,
}

/// Returns what a part counts, and whether at least as many events came as expected. Two parts with the same result deviate
/// alike.
fn deviation(part: &IncidentPart) -> (Counted, bool) {
    let counted = match part.measure {
        Measure::Errors | Measure::ErrorRate => Counted::Errors,
        Measure::Filtered | Measure::FilteredRate => Counted::Filtered,
        _ => Counted::Volume,
    };
    (counted, part.events >= 0)
}

/// Returns how well a finding fits an incident; greater is better. The first value is whether the finding fits the
/// headline, and the second value is how many values the finding has in common with the part that it fits best. Returns
/// `None` if the finding doesn't belong to the incident.
pub(super) fn fit(finding: &IncidentPart, incident: &Incident) -> Option<(bool, usize)> {
    let is_late = ms_between(incident.until, finding.since) > NEAR_MS;
    if is_late && incident.status != Status::Firing {
        return None;
    }
    let fits = incident.parts.iter().filter_map(|part| {
        let is_headline = part.id == incident.headline;
        Some((is_headline, fit_part(finding, part, is_headline)?))
    });
    fits.max()
}

/// Returns how many values a finding and a part have in common, or `None` if they don't belong to the same incident.
///
/// - A finding or a part about all events belongs only to a headline that began together with it.
/// - A finding that began together with the headline must share a value of its group or cause. Besides, it must deviate alike,
///   or no dimension may have different values in the two groups. So an integration that fails for two sources is one incident.
/// - A finding that began at another time, or that is compared with another part, must deviate alike and lie inside of the
///   part. If both began together, the part may also lie inside of the finding and explain at least half of it.
fn fit_part(finding: &IncidentPart, part: &IncidentPart, is_headline: bool) -> Option<usize> {
    let (new, known) = (finding.place(), part.place());
    let is_together = ms_between(part.since, finding.since).abs() <= NEAR_MS;
    if new.is_everything() || known.is_everything() {
        return (is_together && is_headline).then_some(0);
    }
    let values = common(new, known);
    let is_alike = deviation(finding) == deviation(part);
    let is_inside_of = !known.group.is_empty() && is_inside(new, known);
    let is_most =
        is_inside(known, new) && 2 * part.events.unsigned_abs() >= finding.events.unsigned_abs();
    let fits = match is_together {
        true if is_headline => is_alike || is_compatible(new, known),
        true => is_alike && (is_inside_of || is_most),
        false => is_alike && is_inside_of,
    };
    (values > 0 && fits).then_some(values)
}

fn ms_between(start: Timestamp, end: Timestamp) -> i64 {
    end.unix_ms() - start.unix_ms()
}
