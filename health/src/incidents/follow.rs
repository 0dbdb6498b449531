//! Continues incidents from one check to the next: decides which incident a finding belongs to, and when an incident is over.
//! Whether findings belong together depends on the values that they have in common, and on when they began.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tallyfold::Timestamp;

use super::finding::{Finding, Status};
use super::incident::{Incident, IncidentPart, common, is_compatible, is_inside};
use crate::measure::Measure;

/// A finding that comes back within this many milliseconds of the end of its incident reopens the incident.
const AGAIN_MS: i64 = 6 * 3_600_000;

/// Continues the incidents of the previous check, and sets the incident of each finding.
#[derive(Clone, Debug)]
pub(crate) struct Following {
    /// The incidents that are open, that ended shortly before, or that ended in this check.
    all: Vec<Incident>,
    /// The identifiers of the incidents that were over before this check and that it has not reopened.
    over: BTreeSet<String>,
    /// The identifiers of the incidents that were open before this check.
    open: BTreeSet<String>,
}

impl Following {
    pub(crate) fn of(before: Vec<Incident>) -> Self {
        let (over, open): (Vec<&Incident>, Vec<&Incident>) =
            (before.iter()).partition(|one| one.status == Status::Resolved);
        let ids = |of: Vec<&Incident>| of.iter().map(|one| one.id.clone()).collect();
        Self { over: ids(over), open: ids(open), all: before }
    }

    /// Handles the findings that `is_included` selects; `findings` may be in any order. It replays two kinds of events in
    /// chronological order: a finding began to fire, or a window showed that a finding was over. So a late check has the same
    /// result as checks after each window. For each finding that is over, `over` has the end of the window that showed that it
    /// is over.
    pub(crate) fn follow(
        &mut self,
        findings: &mut [Finding],
        over: &[Option<Timestamp>],
        is_included: impl Fn(&Finding) -> bool,
    ) {
        let mut events = Vec::new();
        let mut present = Vec::new();
        for (place, finding) in findings.iter().enumerate().filter(|one| is_included(one.1)) {
            if !self.has_unresolved(finding) {
                events.push((finding.fired, false, place));
            }
            match finding.status {
                Status::Resolved => {
                    let over = over.get(place).copied().flatten();
                    events.push((over.or(finding.resolved), true, place));
                }
                _ => present.push(place),
            }
        }
        events.sort_unstable();
        for together in events.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let now = together.iter().map(|(_, is_over, place)| {
                let mut finding = findings[*place].clone();
                if !is_over {
                    (finding.status, finding.resolved) = (Status::Firing, None);
                }
                (*place, finding)
            });
            for (place, incident) in self.assign(now.collect()) {
                findings[place].incident = Some(incident);
            }
        }
        let present = present.iter().map(|place| (*place, findings[*place].clone()));
        for (place, incident) in self.assign(present.collect()) {
            findings[place].incident = Some(incident);
        }
    }

    /// Returns whether an open incident has an unresolved part for this finding, with the same start.
    fn has_unresolved(&self, finding: &Finding) -> bool {
        let mut open = self.all.iter().filter(|one| one.status != Status::Resolved);
        open.any(|one| one.has_unresolved(&finding.id, finding.since))
    }

    /// Assigns an incident to each finding. Findings of open incidents come first. The other findings are sorted by when they
    /// fired, with wide groups before narrow ones and severe findings before others, so that later findings join earlier ones.
    /// Returns the position and the incident of each finding.
    fn assign(&mut self, mut findings: Vec<(usize, Finding)>) -> Vec<(usize, String)> {
        findings.sort_by_cached_key(|(_, finding)| {
            let mut open = self.all.iter().filter(|one| one.status != Status::Resolved);
            let is_known = open.any(|one| one.has(&finding.id));
            (
                !is_known,
                finding.fired,
                finding.group.len(),
                Reverse(finding.severity),
                finding.since,
                finding.id.clone(),
            )
        });
        let mut of = Vec::new();
        for (at, finding) in findings {
            let place = match self.incident_of(&finding) {
                Some(place) => {
                    self.all[place].update(&finding);
                    place
                }
                None => {
                    self.all.push(Incident::of(&finding));
                    self.all.len() - 1
                }
            };
            let id = &self.all[place].id;
            self.over.remove(id);
            of.push((at, id.clone()));
        }
        of
    }

    /// Returns the position of the incident that a finding belongs to: an open incident that has the finding or that the finding
    /// fits, or else an incident that ended shortly before. Missed incidents are left out. If there are several, it returns the best fit, and among equals the
    /// latest.
    fn incident_of(&self, finding: &Finding) -> Option<usize> {
        let part = IncidentPart::of(finding);
        let all = || self.all.iter().enumerate().filter(|(_, one)| !one.missed);
        let select = |is_open: bool| {
            all().filter(move |(_, one)| (one.status != Status::Resolved) == is_open)
        };
        let latest = |one: &Incident| (one.until, one.id.clone());
        let own = |is_open| {
            let own = select(is_open).filter(|(_, one)| one.has(&finding.id));
            own.max_by_key(|(_, one)| latest(one))
        };
        let best = |is_open| {
            let fitting = select(is_open).filter_map(|(at, one)| Some((fit(&part, one)?, at, one)));
            let best = fitting.max_by_key(|(fit, _, one)| (*fit, latest(one)));
            best.map(|(_, at, one)| (at, one))
        };
        let is_soon = |(_, one): &(usize, &Incident)| {
            finding.since.unix_ms() - one.until.unix_ms() <= AGAIN_MS
                || one.is_silenced(finding.since)
        };
        let found = own(true).or_else(|| best(true));
        let found = found.or_else(|| own(false).filter(is_soon));
        found.or_else(|| best(false)).map(|(at, _)| at)
    }

    /// Ends the parts whose findings are no longer reported, such as the parts of a rule that was removed.
    pub(crate) fn end_others(&mut self, findings: &[Finding]) {
        let reported: BTreeSet<&str> = findings.iter().map(|one| one.id.as_str()).collect();
        for incident in &mut self.all {
            incident.end_others(|id| reported.contains(id));
        }
    }

    /// Returns the incidents that the next check needs, sorted by identifier: the open incidents, and the incidents that may
    /// be reopened by a finding that begins at `earliest` or later.
    pub(crate) fn kept(&self, earliest: Timestamp) -> Vec<Incident> {
        let is_kept = |one: &&Incident| {
            one.status != Status::Resolved
                || earliest.unix_ms() - one.until.unix_ms() <= AGAIN_MS
                || one.is_silenced(earliest)
        };
        let mut kept: Vec<Incident> = self.all.iter().filter(is_kept).cloned().collect();
        kept.sort_by(|one, other| one.id.cmp(&other.id));
        kept
    }

    /// Marks the incidents that began, or came back, and ended in this check. Findings that follow can't reopen them: receivers are
    /// notified of their ends, even if counts that may still change look bad again.
    pub(crate) fn mark_missed(&mut self) {
        for one in &mut self.all {
            let is_over = one.status == Status::Resolved;
            one.missed = is_over && !self.over.contains(&one.id) && !self.open.contains(&one.id);
        }
    }

    /// Returns the incidents that are open or ended in this check.
    pub(crate) fn shown(self) -> Vec<Incident> {
        let Self { mut all, over, .. } = self;
        all.retain(|one| !over.contains(&one.id));
        all
    }
}

/// Combines a replay's findings into incidents, and sets the incident of each finding. Returns the incidents in chronological
/// order. For each finding that is over, `over` has the end of the window that showed that it is over.
#[must_use]
pub fn incidents(findings: &mut [Finding], over: &[Option<Timestamp>]) -> Vec<Incident> {
    let mut following = Following::of(Vec::new());
    following.follow(findings, over, |_| true);
    let mut all = following.shown();
    all.sort_by(|one, other| (one.fired, &one.id).cmp(&(other.fired, &other.id)));
    all
}

/// Findings that began within this many milliseconds of each other began together.
const NEAR_MS: i64 = 2 * 3_600_000;

/// What a measure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Errors,
    Filtered,
    Volume,
}

/// Returns what a part counts, and whether it has at least as many events as expected. Parts with the same result deviate alike.
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
fn fit(finding: &IncidentPart, incident: &Incident) -> Option<(bool, usize)> {
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
/// If the finding or the part is about all events, they belong together only if the part is the headline, both began
/// together and they deviate alike. Otherwise, their groups or causes must have a value in common, and:
///
/// - If the part is the headline and both began together, they must deviate alike, or their groups must have the same value
///   in each dimension that both have.
/// - In all other cases, they must deviate alike, and the finding must lie inside the part's group, which must not be empty.
///   If both began together, it is also enough if the part lies inside the finding's group and explains at least half of the
///   finding.
fn fit_part(finding: &IncidentPart, part: &IncidentPart, is_headline: bool) -> Option<usize> {
    let (new, known) = (finding.values(), part.values());
    let is_together = ms_between(part.since, finding.since).abs() <= NEAR_MS;
    let is_alike = deviation(finding) == deviation(part);
    if new.is_everything() || known.is_everything() {
        return (is_together && is_headline && is_alike).then_some(0);
    }
    let shared = common(new, known);
    let is_inside_of = !known.group.is_empty() && is_inside(new, known);
    let is_most =
        is_inside(known, new) && 2 * part.events.unsigned_abs() >= finding.events.unsigned_abs();
    let fits = match is_together {
        true if is_headline => is_alike || is_compatible(new, known),
        true => is_alike && (is_inside_of || is_most),
        false => is_alike && is_inside_of,
    };
    (shared > 0 && fits).then_some(shared)
}

fn ms_between(start: Timestamp, end: Timestamp) -> i64 {
    end.unix_ms() - start.unix_ms()
}
