//! Whether findings are about the same incident: what they have in common, and when they began.

use tallyfold::{Dimension, Timestamp};

use super::finding::Status;
use super::incident::{Incident, IncidentPart};
use crate::measure::Measure;

/// Findings that began within so many milliseconds of each other began together.
const NEAR_MS: i64 = 2 * 3_600_000;

/// What a finding is about: its group, and the cause that explains most of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    group: &'a [(Dimension, String)],
    cause: &'a [(String, String)],
}

impl<'a> Place<'a> {
    pub(super) fn of(part: &'a IncidentPart) -> Self {
        Self {
            group: &part.group,
            cause: &part.cause,
        }
    }

    fn group(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.group.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn all(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let cause = self.cause.iter();
        self.group()
            .chain(cause.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn is_everything(self) -> bool {
        self.group.is_empty() && self.cause.is_empty()
    }
}

/// Whether the group of the wider place contains the narrower place.
pub(super) fn is_inside(narrow: Place<'_>, wide: Place<'_>) -> bool {
    wide.group()
        .all(|pair| narrow.all().any(|other| other == pair))
}

/// Whether no dimension has different values in two groups.
fn is_compatible(one: Place<'_>, other: Place<'_>) -> bool {
    let differs = |(name, value): (&str, &str)| {
        other
            .group()
            .any(|(same, different)| same == name && different != value)
    };
    !one.group().any(differs)
}

/// How many values two places have in common, with those of their causes.
fn common(one: Place<'_>, other: Place<'_>) -> usize {
    one.all()
        .filter(|pair| other.all().any(|same| same == *pair))
        .count()
}

/// What a measure counts, and whether it is too much or too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Errors,
    Filtered,
    Volume,
}

fn deviation(part: &IncidentPart) -> (Counted, bool) {
    let counted = match part.measure {
        Measure::Errors | Measure::ErrorRate => Counted::Errors,
        Measure::Filtered | Measure::FilteredRate => Counted::Filtered,
        _ => Counted::Volume,
    };
    (counted, part.events >= 0)
}

/// How well a finding fits an incident: greater is better, first by whether it fits the headline, then by how many values
/// they have in common. `None` if it isn't about the incident.
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

/// Whether a finding and a part are about the same, and how many values they have in common.
///
/// - Together with the headline begins all that may concern the same events and names a value of the headline, as group or
///   as cause; and what deviates alike in another group with a value of the headline, such as the same integration and
///   another source.
/// - What begins later, or is about another part, must deviate alike and lie inside of the part. If both began together, the
///   part may also lie inside of the finding and explain most of it.
fn fit_part(finding: &IncidentPart, part: &IncidentPart, is_headline: bool) -> Option<usize> {
    let (new, known) = (Place::of(finding), Place::of(part));
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
