//! Tests which findings join an incident, which finding is its headline, and how an incident changes from check to check.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tallyfold::{Dimension, Metric, Timestamp, Window};

use super::finding::{Finding, Query, Status};
use super::follow::{Following, incidents};
use super::incident::{Incident, IncidentChange, IncidentHold};
use crate::cause::explanation::{Amount, Cause};
use crate::measure::Measure;
use crate::rules::kinds::RuleKind;
use crate::rules::names::Severity;

const HOUR: i64 = 3_600_000;

/// Returns the time this many quarters of an hour after the beginning of a day.
fn at(quarter: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_767_225_600_000 + quarter * HOUR / 4).unwrap()
}

/// Makes a finding that began with the window before `quarter` and has fired since then.
fn finding(rule: &str, group: &[(&str, &str)], quarter: i64) -> Finding {
    let window = Window::new(at(quarter - 1), at(quarter)).unwrap();
    let pairs = group.iter();
    let group: Vec<(Dimension, String)> = pairs
        .map(|(name, value)| (Dimension::from_name(name).unwrap(), (*value).to_owned()))
        .collect();
    Finding {
        id: format!("{rule} {group:?}"),
        rule: rule.to_owned(),
        kind: RuleKind::Rate,
        severity: Severity::Warning,
        status: Status::Firing,
        window,
        since: window.start(),
        fired: Some(window.end()),
        resolved: None,
        seen: window.end(),
        measure: Measure::ErrorRate,
        observed: Amount { part: 100, whole: Some(200) },
        total: None,
        expected: 10.0,
        low: 0,
        high: Some(20),
        ln_p: None,
        causes: Vec::new(),
        within: Vec::new(),
        unexplained: 0,
        compared: Vec::new(),
        silenced: false,
        provisional: false,
        labels: BTreeMap::new(),
        note: None,
        runbook: None,
        incident: None,
        sentence: format!("{rule} {group:?} is bad"),
        query: Query {
            metric: Metric::EventDelivery,
            start: window.start(),
            end: window.end(),
            dimensions: Vec::new(),
            r#where: Vec::new(),
        },
        group,
    }
}

fn fails(integration: &str, quarter: i64) -> Finding {
    finding("fails", &[("integration", integration)], quarter)
}

fn pair(source: &str, integration: &str, quarter: i64) -> Finding {
    let group = [("integration", integration), ("write_key", source)];
    finding("fails for a source", &group, quarter)
}

fn declines(source: &str, quarter: i64) -> Finding {
    Finding { measure: Measure::Events, ..finding("declines", &[("write_key", source)], quarter) }
}

/// Gives a finding a cause that explains this share of it.
fn caused(mut finding: Finding, name: &str, value: &str, share: f64) -> Finding {
    finding.causes = vec![Cause {
        r#where: vec![(name.to_owned(), value.to_owned())],
        before: Amount::count(0),
        now: Amount::count(0),
        expected: 0.0,
        events: 10,
        share,
        score: 1.0,
    }];
    finding
}

/// Makes the same finding, resolved at this time.
fn over(finding: &Finding, quarter: i64) -> Finding {
    Finding { status: Status::Resolved, resolved: Some(at(quarter)), ..finding.clone() }
}

/// Returns the incidents in the state after a check, and the incidents in its result.
fn check(
    before: &[Incident],
    quarter: i64,
    findings: &[Finding],
) -> (Vec<Incident>, Vec<Incident>) {
    let mut findings = findings.to_vec();
    let over = vec![Some(at(quarter)); findings.len()];
    let mut following = Following::of(before.to_vec());
    following.follow(&mut findings, &over, |one| !one.provisional);
    following.end_others(&findings);
    let kept = following.kept(at(quarter));
    following.follow(&mut findings, &over, |one| one.provisional);
    assert!(findings.iter().all(|one| one.incident.is_some()));
    assert!(kept.iter().all(Incident::is_valid));
    let json = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Incident>>(&json).unwrap(), kept);
    (kept, following.shown())
}

/// Returns the identifiers of the parts of each incident.
fn parts(all: &[Incident]) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> =
        all.iter().map(|one| one.parts.iter().map(|part| part.id.as_str()).collect()).collect();
    parts.sort();
    parts
}

/// Returns how many incidents the findings of a check form.
fn count(findings: &[Finding]) -> usize {
    check(&[], 9, findings).1.len()
}

fn changes(incident: &Incident) -> Vec<IncidentChange> {
    incident.history.iter().map(|event| event.change).collect()
}

#[test]
fn findings_that_share_a_value_and_a_beginning_are_one_incident() {
    assert_eq!(count(&[fails("S3", 4), pair("web", "S3", 4)]), 1);
    assert_eq!(count(&[fails("S3", 4), pair("web", "S3", 12)]), 1);
    // Findings about other sources and integrations are other incidents, even at the same time.
    assert_eq!(count(&[fails("S3", 4), declines("web", 4)]), 2);
    assert_eq!(count(&[fails("S3", 4), fails("GA", 4)]), 2);
    assert_eq!(count(&[pair("web", "S3", 4), pair("app", "GA", 4)]), 2);
    // The cause shows that the decline is at the integration that fails.
    let explained = |share| caused(declines("web", 4), "integration", "S3", share);
    assert_eq!(count(&[fails("S3", 4), explained(0.9)]), 1);
    assert_eq!(count(&[fails("S3", 4), explained(0.2)]), 2);
    assert_eq!(count(&[fails("GA", 4), explained(0.9)]), 2);
    // A finding about all events joins an incident that began at about the same time.
    let budget = |quarter| finding("budget", &[], quarter);
    assert_eq!(count(&[fails("S3", 4), budget(5)]), 1);
    assert_eq!(count(&[fails("S3", 4), budget(14)]), 2);
}

#[test]
fn findings_that_deviate_alike_at_one_integration_are_one_incident() {
    let [web, app] = [pair("web", "S3", 4), pair("app", "S3", 6)];
    assert_eq!(count(&[web.clone(), app.clone()]), 1);
    assert_eq!(count(&[web.clone(), pair("app", "S3", 40)]), 2);
    let fewer = Finding { observed: Amount { part: 0, whole: Some(200) }, ..app };
    assert_eq!(count(&[web, fewer]), 2);
}

#[test]
fn a_wider_finding_joins_only_if_a_part_explains_half_of_it() {
    let gone = |finding: Finding, expected| Finding {
        measure: Measure::Events,
        observed: Amount { part: 0, whole: None },
        expected,
        ..finding
    };
    let silent = gone(fails("S3", 4), 1_000.0);
    let part = gone(pair("web", "S3", 4), 200.0);
    let (state, _) = check(&[], 4, &[silent.clone(), part.clone()]);
    let with = |expected| {
        let source = gone(declines("web", 6), expected);
        let findings = [silent.clone(), part.clone(), source];
        check(&state, 6, &findings).1.len()
    };
    // The pair has lost 200 events: less than half of 900, but more than half of 300.
    assert_eq!([with(900.0), with(300.0)], [2, 1]);
    // An integration that gets events from only one source falls silent with this source.
    let mut within = silent;
    let outage = gone(declines("web", 4), 5_000.0);
    assert_eq!(count(&[within.clone(), outage.clone()]), 2);
    within.within = vec![(Dimension::WriteKey, "web".to_owned())];
    let shown = check(&[], 9, &[within, outage.clone()]).1;
    assert_eq!((shown.len(), &shown[0].headline), (1, &outage.id));
}

#[test]
fn a_finding_that_comes_back_joins_an_open_incident() {
    let (state, _) = check(&[], 4, &[pair("web", "S3", 4)]);
    let (state, _) = check(&state, 8, &[over(&pair("web", "S3", 4), 6)]);
    let again = [pair("web", "S3", 20), fails("S3", 20)];
    let shown = check(&state, 20, &again).1;
    assert_eq!((shown.len(), shown[0].parts.len()), (1, 2));
    assert_eq!(shown[0].since, at(19));
}

#[test]
fn a_later_finding_joins_only_if_it_is_inside_and_deviates_alike() {
    let (first, _) = check(&[], 4, &[fails("S3", 4)]);
    let later = |finding: Finding| check(&first, 40, &[fails("S3", 4), finding]).1.len();
    assert_eq!(later(pair("web", "S3", 40)), 1);
    let delivered = Finding { measure: Measure::Success, ..pair("web", "S3", 40) };
    assert_eq!(later(delivered), 2);
    let (narrow, _) = check(&[], 4, &[pair("web", "S3", 4)]);
    let wide = [pair("web", "S3", 4), fails("S3", 40)];
    assert_eq!(check(&narrow, 40, &wide).1.len(), 2);
}

#[test]
fn an_incident_keeps_its_identity_until_all_parts_are_over() {
    let (state, shown) = check(&[], 4, &[fails("S3", 4)]);
    let id = shown[0].id.clone();
    assert_eq!((id.len(), shown[0].severity), (16, Severity::Warning));
    // A new part raises the severity.
    let critical = Finding { severity: Severity::Critical, ..pair("web", "S3", 6) };
    let (state, shown) = check(&state, 6, &[critical.clone(), fails("S3", 4)]);
    assert_eq!((&shown[0].id, shown[0].severity), (&id, Severity::Critical));
    // The incident keeps this severity when the part is over.
    let (state, shown) = check(&state, 8, &[over(&critical, 7), fails("S3", 4)]);
    assert_eq!((shown[0].status, shown[0].severity), (Status::Firing, Severity::Critical));
    // An unjudged finding is not over.
    let unjudged = Finding { status: Status::Unjudged, ..fails("S3", 4) };
    let (state, shown) = check(&state, 12, &[unjudged]);
    assert_eq!(shown[0].status, Status::Unjudged);
    let (state, shown) = check(&state, 13, &[over(&fails("S3", 4), 11)]);
    assert_eq!((&shown[0].id, shown[0].status), (&id, Status::Resolved));
    assert_eq!((shown[0].since, shown[0].until), (at(3), at(11)));
    use IncidentChange::{Began, Ended, Worse};
    assert_eq!(changes(&shown[0]), [Began, Worse, Ended]);
    // The end is reported once.
    let (state, shown) = check(&state, 14, &[]);
    assert_eq!((state.len(), shown.len()), (1, 0));
    let (state, _) = check(&state, 11 + 6 * 4 + 1, &[]);
    assert_eq!(state.len(), 0);
}

#[test]
fn a_finding_about_all_events_joins_only_findings_that_deviate_alike() {
    let all = finding("fails everywhere", &[], 4);
    let silent = declines("pos", 8);
    assert_eq!(check(&[], 8, &[all.clone(), silent]).1.len(), 2);
    assert_eq!(check(&[], 8, &[all, fails("S3", 8)]).1.len(), 1);
}

#[test]
fn a_silenced_incident_is_reopened_while_the_silence_lasts() {
    let (mut state, _) = check(&[], 4, &[fails("S3", 4)]);
    state[0].hold = Some(IncidentHold::silenced(at(200), None));
    let (state, _) = check(&state, 8, &[over(&fails("S3", 4), 8)]);
    let (state, _) = check(&state, 100, &[]);
    assert_eq!(check(&state, 101, &[fails("S3", 101)]).0.len(), 1);
    assert!(check(&state, 201, &[]).0.is_empty());
}

#[test]
fn a_finding_that_comes_back_soon_reopens_its_incident() {
    let (state, shown) = check(&[], 4, &[fails("S3", 4)]);
    let id = shown[0].id.clone();
    let (over, _) = check(&state, 10, &[over(&fails("S3", 4), 8)]);
    let again = |quarter: i64| check(&over, quarter, &[fails("S3", quarter)]).1;
    let soon = again(8 + 6 * 4);
    use IncidentChange::{Began, Ended, Reopened};
    assert_eq!((&soon[0].id, soon.len()), (&id, 1));
    assert_eq!(changes(&soon[0]), [Began, Ended, Reopened]);
    assert_eq!(soon[0].status, Status::Firing);
    let late = again(8 + 6 * 4 + 2);
    assert_ne!(late[0].id, id);
}

/// The incident's sentence is about the time since it came back, also once it is over again.
#[test]
fn the_end_of_an_incident_that_came_back_is_not_about_its_first_episode() {
    let (wide, narrow) = (fails("S3", 4), pair("web", "S3", 4));
    let (state, _) = check(&[], 4, &[wide.clone(), narrow.clone()]);
    let (state, _) = check(&state, 10, &[over(&wide, 8), over(&narrow, 8)]);
    let again = pair("web", "S3", 14);
    let (state, shown) = check(&state, 14, std::slice::from_ref(&again));
    assert_eq!(shown[0].sentence, again.sentence);
    let (_, shown) = check(&state, 20, &[over(&again, 18)]);
    assert_eq!((shown.len(), shown[0].status), (1, Status::Resolved));
    assert_eq!((&shown[0].headline, &shown[0].sentence), (&again.id, &again.sentence));
    assert_eq!(shown[0].since, at(3));
}

/// A missed incident ends, although counts that may still change look bad again. Once they have settled, they reopen it.
#[test]
fn provisional_counts_do_not_reopen_a_missed_incident() {
    let provisional = Finding { provisional: true, ..fails("S3", 14) };
    let mut following = Following::of(Vec::new());
    let mut findings = [over(&fails("S3", 4), 8), provisional.clone()];
    following.follow(&mut findings, &[Some(at(8)), None], |one| !one.provisional);
    let state = following.kept(at(8));
    following.mark_missed();
    following.follow(&mut findings, &[Some(at(8)), None], |one| one.provisional);
    let shown = following.shown();
    let is = |one: &Incident| (one.status, one.missed, one.provisional);
    let all: Vec<_> = shown.iter().map(is).collect();
    assert_eq!(all, [(Status::Resolved, true, false), (Status::Firing, false, true)]);
    assert_ne!(shown[0].id, shown[1].id);
    assert_eq!(shown[0].sentence, findings[0].sentence);
    let (_, again) = check(&state, 14, &[fails("S3", 14)]);
    assert_eq!((again.len(), &again[0].id), (1, &shown[0].id));
}

#[test]
fn removing_a_rule_ends_its_parts() {
    let (state, _) = check(&[], 4, &[fails("S3", 4), pair("web", "S3", 4)]);
    let (state, shown) = check(&state, 5, &[pair("web", "S3", 4)]);
    assert_eq!(shown[0].status, Status::Firing);
    assert_eq!(check(&state, 6, &[]).1[0].status, Status::Resolved);
}

#[test]
fn the_headline_explains_most_of_the_others() {
    let large =
        |finding: Finding, part: u64| Finding { observed: Amount { part, whole: None }, ..finding };
    let headline = |findings: &[Finding]| check(&[], 9, findings).1[0].headline.clone();
    let parts = [fails("S3", 4), pair("web", "S3", 4), pair("app", "S3", 4)];
    assert_eq!(headline(&parts), parts[0].id);
    // A finding about all events is the headline only if no other finding explains most of it.
    let budget = large(finding("budget", &[], 4), 1_000);
    let all = [parts[1].clone(), parts[0].clone(), budget.clone()];
    assert_eq!(headline(&[all[1].clone(), large(budget.clone(), 150)]), parts[0].id);
    assert_eq!(headline(&all[..2]), parts[0].id);
    // A wider group with few of the events is not the headline.
    let few = [large(fails("S3", 4), 20), large(pair("web", "S3", 4), 300)];
    assert_eq!(headline(&few), few[1].id);
    // An `info` is the headline only if no finding is more severe.
    let info = Finding { severity: Severity::Info, ..large(parts[0].clone(), 1_000) };
    let worse = [info.clone(), parts[1].clone(), parts[2].clone()];
    assert_eq!(headline(&worse), parts[2].id);
    assert_eq!(headline(std::slice::from_ref(&info)), info.id);
    // An unjudged part is the headline only if no part fires.
    let unjudged = Finding { status: Status::Unjudged, ..large(parts[0].clone(), 1_000) };
    let state = check(&[], 5, &parts).0;
    let findings = [unjudged, parts[1].clone(), parts[2].clone()];
    assert_eq!(check(&state, 9, &findings).1[0].headline, parts[2].id);
    assert_eq!(check(&state, 9, &findings[..1]).1[0].headline, parts[0].id);
    // The sentence names the other findings in a harmless form.
    let mut hostile = pair("<!channel>\u{202e}\u{1b}[2J", "S3", 4);
    hostile.rule = "a\nb".to_owned();
    let shown = check(&[], 9, &[fails("S3", 4), hostile]).1;
    assert_eq!(
        shown[0].sentence,
        "fails [(Integration, \"S3\")] is bad; also found: a\u{fffd}b (integration S3, write_key <!channel>\u{fffd}\u{fffd}[2J)"
    );
    let many: Vec<Finding> = ["a", "b", "c", "d"].map(|one| pair(one, "S3", 4)).to_vec();
    let shown = check(&[], 9, &[&parts[..1], &many[..]].concat()).1;
    assert!(
        shown[0].sentence.ends_with(
            "; also 4 findings: fails for a source (integration S3, write_key a), fails for a source (integration S3, write_key b), …"
        ),
        "{}",
        shown[0].sentence
    );
}

#[test]
fn silenced_and_provisional_findings_do_not_raise_the_severity() {
    let critical = |finding: Finding| Finding { severity: Severity::Critical, ..finding };
    let silenced = Finding { silenced: true, ..critical(pair("web", "S3", 4)) };
    let (_, shown) = check(&[], 4, &[fails("S3", 4), silenced.clone()]);
    assert_eq!((shown[0].severity, shown[0].silenced), (Severity::Warning, false));
    let (state, shown) = check(&[], 4, std::slice::from_ref(&silenced));
    assert!(shown[0].silenced);
    let (_, shown) = check(&state, 5, &[silenced, pair("app", "S3", 5), fails("S3", 5)]);
    assert_eq!((shown[0].severity, shown[0].silenced), (Severity::Warning, false));
    // A provisional finding is shown, but isn't part of the state for the next check.
    let provisional = Finding { provisional: true, ..pair("web", "S3", 5) };
    let (state, shown) = check(&[], 5, std::slice::from_ref(&provisional));
    assert!(state.is_empty() && shown[0].provisional);
    let (state, shown) = check(&[], 5, &[fails("S3", 4), critical(provisional)]);
    assert_eq!((state[0].parts.len(), shown[0].parts.len()), (1, 2));
    assert_eq!((shown[0].severity, shown[0].provisional), (Severity::Warning, false));
}

#[test]
fn a_replay_has_the_same_incidents_as_the_checks() {
    let first = fails("S3", 4);
    let joined = pair("web", "S3", 6);
    let again = fails("S3", 20);
    let mut state = Vec::new();
    let mut last = BTreeMap::new();
    for (quarter, findings) in [
        (4, vec![first.clone()]),
        (6, vec![first.clone(), joined.clone()]),
        (9, vec![over(&first, 8), joined.clone()]),
        (11, vec![over(&joined, 10)]),
        (20, vec![again.clone(), declines("app", 20)]),
    ] {
        let (kept, shown) = check(&state, quarter, &findings);
        state = kept;
        last.extend(shown.into_iter().map(|one| (one.id.clone(), one)));
    }
    let mut all = [over(&first, 8), over(&joined, 10), again, declines("app", 20)];
    let ends = [Some(at(9)), Some(at(11)), None, None];
    let replayed = incidents(&mut all, &ends);
    let checked: Vec<Incident> = last.into_values().collect();
    let by_id: BTreeMap<String, Incident> =
        replayed.into_iter().map(|one| (one.id.clone(), one)).collect();
    assert_eq!(by_id.into_values().collect::<Vec<_>>(), checked);
    assert!(all.iter().all(|one| one.incident.is_some()));
}

proptest! {
    #[test]
    fn the_order_of_findings_does_not_matter(
        picked in prop::collection::vec((0..3_usize, 0..3_usize, 0..3_usize, 1..30_i64, any::<bool>()), 1..12),
        seed in any::<u64>(),
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut findings: Vec<Finding> = picked
            .into_iter()
            .map(|(kind, source, integration, quarter, is_over)| {
                let finding = match kind {
                    0 => fails(NAMES[integration], quarter),
                    1 => pair(NAMES[source], NAMES[integration], quarter),
                    _ => declines(NAMES[source], quarter),
                };
                if is_over { over(&finding, quarter + 1) } else { finding }
            })
            .collect();
        findings.sort_by(|one, other| one.id.cmp(&other.id));
        findings.dedup_by(|one, other| one.id == other.id);
        let (state, shown) = check(&[], 40, &findings);
        let mut moved = findings.clone();
        let turn = seed as usize % moved.len();
        moved.rotate_left(turn);
        if seed % 2 == 0 {
            moved.reverse();
        }
        let (other, _) = check(&[], 40, &moved);
        prop_assert_eq!(&state, &other);
        // A check with the same findings changes nothing.
        let firing: Vec<Finding> = findings.into_iter().filter(|one| one.status == Status::Firing).collect();
        let (again, _) = check(&state, 40, &firing);
        prop_assert_eq!(parts(&again), parts(&state));
        prop_assert!(shown.len() >= state.iter().filter(|one| one.status == Status::Firing).count());
    }
}
