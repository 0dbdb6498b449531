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

/// What a measure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Errors,
    Filtered,
    Volume,
}

const fn counted(measure: Measure) -> Counted {
    match measure {
        Measure::Errors | Measure::ErrorRate => Counted::Errors,
        Measure::Filtered | Measure::FilteredRate => Counted::Filtered,
        _ => Counted::Volume,
    }
}

/// How well a finding fits an incident: greater is better. `None` if it isn't about the incident.
pub(super) fn fit(finding: &IncidentPart, incident: &Incident) -> Option<usize> {
    let is_late =
        incident.status != Status::Firing && ms_between(incident.until, finding.since) > NEAR_MS;
    let fits = incident
        .parts
        .iter()
        .filter_map(|part| fit_part(finding, part));
    fits.max().filter(|_| !is_late)
}

/// Findings that began together are about the same incident if their groups have an event in common, and if they name the
/// same value of a dimension, as group or as cause. If one began later, it must be a part of what is known: the same
/// kind of counts, and a group inside of the other's.
fn fit_part(finding: &IncidentPart, part: &IncidentPart) -> Option<usize> {
    let (new, known) = (Place::of(finding), Place::of(part));
    if !is_compatible(new, known) {
        return None;
    }
    let is_together = ms_between(part.since, finding.since).abs() <= NEAR_MS;
    if new.is_everything() || known.is_everything() {
        return is_together.then_some(0);
    }
    let values = common(new, known);
    let is_same = counted(finding.measure) == counted(part.measure);
    let is_part = is_same && !known.group.is_empty() && is_inside(new, known);
    (values > 0 && (is_together || is_part)).then_some(values)
}

fn ms_between(start: Timestamp, end: Timestamp) -> i64 {
    end.unix_ms() - start.unix_ms()
}
