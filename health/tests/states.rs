//! How findings begin, continue and end from check to check.

use crate::fixture::{Fixture, Row, checks, delivery, noise, sentences};
use proptest::prelude::*;
use serde_json::Value;
use tallyfold::{CountTable, Timestamp};
use tallyfold_health::{Check, Finding, IncidentHold, Observed, Rules, Severity, State, Status};

const RULES: &str = r#"
window = "1h"

[[rule]]
name = "fails"
kind = "threshold"
above = "5%"
clear_below = "3%"
by = ["integration"]
for = 2
clear = 2
severity = "critical"

[[rule]]
name = "low"
kind = "threshold"
measure = "success"
below = 50
for = 1
clear = 1
"#;

/// Makes hours with 100 attempts of an integration each, and with this many errors. `None` is a gap.
fn hours(errors: &[Option<u64>]) -> Fixture {
    let mut fixture = Fixture::delivery(&["integration"]);
    for (slot, errors) in errors.iter().enumerate() {
        if let Some(errors) = errors {
            fixture.add(slot, false, 0, &[row(*errors)]);
        }
    }
    fixture
}

fn row(errors: u64) -> Row {
    (vec!["Webhook"], [100 - errors, errors, 0])
}

fn rules() -> Rules {
    Rules::parse(RULES).unwrap()
}

/// Returns the rule and the status of each finding.
fn statuses(check: &Check) -> Vec<(&str, Status)> {
    let findings = check.findings.iter();
    findings.map(|finding| (finding.rule.as_str(), finding.status)).collect()
}

#[test]
fn a_firing_finding_is_unjudged_without_counts() {
    let fixture = hours(&[0, 7, 7].map(Some));
    let before = checks(&rules(), &fixture, 3..4).pop().unwrap();
    assert_eq!(statuses(&before), [("fails", Status::Firing)]);
    let now = Timestamp::parse("2026-02-01T00:00:00Z").unwrap();
    let without = rules().check(&Observed::default(), &before.state, now).unwrap();
    assert_eq!(statuses(&without), [("fails", Status::Unjudged)]);
    assert_eq!(without.findings[0].id, before.findings[0].id);
    assert_eq!((without.healthy, without.unjudged.len()), (false, 2));
    let incident = |check: &Check| (check.incidents[0].id.clone(), check.incidents[0].status);
    assert_eq!(incident(&without), (incident(&before).0, Status::Unjudged));
    let again = rules().check(&Observed::default(), &without.state, now);
    assert_eq!(again.unwrap().state, without.state);
}

#[test]
fn old_counts_are_unhealthy_and_counts_of_another_endpoint_are_refused() {
    let fixture = hours(&[0, 0, 0].map(Some));
    let table = fixture.table();
    let judged = |hour: usize| {
        let now = fixture.instant(hour);
        rules().check(&delivery(&table), &State::default(), now).unwrap()
    };
    let fresh = judged(4);
    assert!(fresh.healthy && fresh.unjudged.is_empty());
    let old = judged(3 + 38);
    assert!(!old.healthy);
    assert_eq!(
        old.unjudged[0].reason,
        "the counts end at 2026-01-01 03:00 UTC, 38 hours before the check"
    );
    let twice = Observed { delivery: Some(&table), ingestion: Some(&table) };
    let error = rules().check(&twice, &State::default(), fixture.instant(4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_argument: ingestion: this table has counts of event_delivery, want event_ingestion"
    );
}

#[test]
fn a_sentence_has_only_counts_that_the_table_covers() {
    let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'threshold'\nabove = '5%'\nclear = 1";
    let rules = Rules::parse(rules).unwrap();
    let table = |slots: std::ops::Range<usize>| {
        let mut fixture = Fixture::delivery(&["integration"]);
        for slot in slots {
            let errors = if (2..12).contains(&slot) { 10 + slot as u64 } else { 0 };
            fixture.add(slot, false, 0, &[(vec!["Mail"], [100 - errors, errors, 0])]);
        }
        fixture
    };
    let first = checks(&rules, &table(0..10), 10..11).pop().unwrap();
    let sentence_of = |slots: std::ops::Range<usize>| {
        let later = table(slots).table();
        let now = table(0..1).instant(14);
        let check = rules.check(&delivery(&later), &first.state, now).unwrap();
        check.findings[0].sentence.clone()
    };
    assert_eq!(
        sentence_of(0..14),
        "event delivery: 16.5% of attempts failed from 2026-01-01 02:00 to 12:00 UTC (165 of 1,000; limit 5%); over"
    );
    assert_eq!(
        sentence_of(8..14),
        "event delivery: 21% of attempts failed from 2026-01-01 11:00 to 12:00 UTC (21 of 100; limit 5%), part of an incident from 2026-01-01 02:00 to 12:00 UTC; over"
    );
}

#[test]
fn a_group_that_leaves_the_table_still_has_too_few_events() {
    let rules = Rules::parse(&format!("{RULES}by = [\"integration\"]\n")).unwrap();
    let low = |check: &Check| -> Vec<Status> {
        let findings = check.findings.iter();
        let own =
            findings.filter(|finding| finding.group[0].1 == "Webhook" && finding.rule == "low");
        own.map(|finding| finding.status).collect()
    };
    let table = |slots: std::ops::Range<usize>, with_webhook: bool| {
        let mut fixture = Fixture::delivery(&["integration"]);
        for slot in slots {
            let mut rows = vec![(vec!["Mail"], [100, 0, 0])];
            if with_webhook {
                rows.push((vec!["Webhook"], [10, 0, 0]));
            }
            fixture.add(slot, false, 0, &rows);
        }
        fixture
    };
    let first = checks(&rules, &table(0..3, true), 3..4).pop().unwrap();
    assert_eq!(low(&first), [Status::Firing]);
    let gone = table(3..6, false);
    let table = gone.table();
    let later = rules.check(&delivery(&table), &first.state, gone.instant(6));
    assert_eq!(low(&later.unwrap()), [Status::Firing]);
}

#[test]
fn a_finding_is_pending_then_fires_and_is_resolved_once() {
    use Status::{Firing, Pending, Resolved};
    let fixture = hours(&[0, 7, 7, 4, 0, 4, 0, 0, 0].map(Some));
    let checks = checks(&rules(), &fixture, 1..10);
    let statuses: Vec<_> = checks.iter().map(statuses).collect();
    assert_eq!(
        statuses,
        [
            vec![],
            vec![("fails", Pending)],
            vec![("fails", Firing)],
            // 4% is below the limit, but above `clear_below`.
            vec![("fails", Firing)],
            vec![("fails", Firing)],
            vec![("fails", Firing)],
            vec![("fails", Firing)],
            vec![("fails", Resolved)],
            vec![],
        ]
    );
    let healthy: Vec<bool> = checks.iter().map(|check| check.healthy).collect();
    assert_eq!(healthy, [true, true, false, false, false, false, false, true, true]);
    let ids: Vec<&str> = checks[1..8].iter().map(|check| check.findings[0].id.as_str()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]) && ids[0].len() == 16, "{ids:?}");
    let last = &checks[7].findings[0];
    assert_eq!(last.since, fixture.instant(1));
    assert_eq!((last.fired, last.resolved), (Some(fixture.instant(3)), Some(fixture.instant(6))));
    assert_eq!(
        sentences(&checks[1].findings),
        [
            "integration Webhook: 7% of attempts failed since 2026-01-01 01:00 UTC (7 of 100; limit 5%)"
        ]
    );
    assert_eq!(
        sentences(&checks[7].findings),
        [
            "integration Webhook: 4% of attempts failed from 2026-01-01 05:00 to 06:00 UTC (4 of 100; limit 5%), part of an incident from 2026-01-01 01:00 to 06:00 UTC; over"
        ]
    );
}

#[test]
fn a_repeated_check_judges_no_window_again() {
    let fixture = hours(&[0, 7, 7, 7].map(Some));
    let table = fixture.table();
    let now = fixture.instant(4);
    let first = rules().check(&delivery(&table), &State::default(), now).unwrap();
    let second = rules().check(&delivery(&table), &first.state, now).unwrap();
    assert_eq!((first.judged, second.judged), (8, 0));
    assert_eq!(first.findings, second.findings);
    assert_eq!(first.state, second.state);
}

#[test]
fn a_late_check_judges_all_windows_since_the_last_check() {
    let fixture = hours(&[0, 0, 0, 7, 7, 7, 0].map(Some));
    let [_, late] = checks(&rules(), &fixture, [2, 7].into_iter()).try_into().unwrap();
    assert_eq!(late.judged, 10);
    assert_eq!(statuses(&late), [("fails", Status::Firing)]);
    assert_eq!(late.findings[0].since, fixture.instant(3));
    // The late check also reports a finding that has begun and ended since the last check.
    let fixture = hours(&[0, 0, 0, 7, 7, 7, 0, 0, 0].map(Some));
    let [_, late, after] = checks(&rules(), &fixture, [2, 9, 9].into_iter()).try_into().unwrap();
    assert_eq!(statuses(&late), [("fails", Status::Resolved)]);
    assert_eq!(statuses(&after), []);
    assert!(late.incidents[0].missed);
    let state = String::from_utf8(late.state.to_json()).unwrap();
    assert!(!state.contains(r#""missed":true"#), "{state}");
}

#[test]
fn an_incident_that_the_previous_check_reported_is_not_missed() {
    let fixture = hours(&[0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0].map(Some));
    let missed = |ends: &[usize]| -> Vec<bool> {
        let checks = checks(&rules(), &fixture, ends.iter().copied());
        let last = checks.last().unwrap();
        last.incidents.iter().map(|one| one.missed).collect()
    };
    assert_eq!(missed(&[2, 6, 9]), [false]);
    // The incident comes back, and ends again.
    assert_eq!(missed(&[2, 6, 9, 15]), [true]);
    assert_eq!(missed(&[2, 6, 9, 12, 15]), [false]);
}

#[test]
fn a_first_check_reports_when_a_finding_began_but_not_findings_that_are_over() {
    let fixture = hours(&[7, 7, 7, 0, 0, 0, 7, 7, 7, 7].map(Some));
    let [over] = checks(&rules(), &fixture, [6].into_iter()).try_into().unwrap();
    assert_eq!(statuses(&over), []);
    let [firing] = checks(&rules(), &fixture, [10].into_iter()).try_into().unwrap();
    assert_eq!(firing.findings[0].since, fixture.instant(6));
}

#[test]
fn a_gap_neither_continues_nor_ends_a_finding() {
    let fixture = hours(&[Some(0), Some(7), None, Some(7), None, None, Some(7)]);
    let checks = checks(&rules(), &fixture, 1..8);
    assert_eq!(statuses(&checks[2]), [("fails", Status::Pending)]);
    assert_eq!(statuses(&checks[3]), [("fails", Status::Firing)]);
    assert_eq!(statuses(&checks[5]), [("fails", Status::Firing)]);
    assert_eq!(checks[6].findings[0].since, fixture.instant(1));
}

#[test]
fn a_provisional_finding_is_at_most_a_warning_and_is_judged_again() {
    let mut fixture = hours(&[0, 0, 7].map(Some));
    fixture.add(3, true, 0, &[row(60)]);
    let table = fixture.table();
    let now = fixture.instant(4);
    let check = rules().check(&delivery(&table), &State::default(), now).unwrap();
    let [finding] = &check.findings[..] else { panic!("{:?}", check.findings) };
    assert!(check.healthy && finding.provisional && finding.status == Status::Firing);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        sentences(&check.findings),
        [
            "integration Webhook: 60% of attempts failed from 2026-01-01 03:00 to 04:00 UTC (60 of 100; limit 5%); since 02:00 UTC: 67 of 200; these counts may still change"
        ]
    );
    // Once the window has settled, a check also reports that it has too few events.
    let fixture = hours(&[0, 0, 7, 60].map(Some));
    let table = fixture.table();
    let check = rules().check(&delivery(&table), &check.state, now).unwrap();
    assert_eq!(statuses(&check), [("fails", Status::Firing), ("low", Status::Firing)]);
    assert!(!check.findings[0].provisional && !check.healthy);
    assert_eq!(check.judged, 2);
}

#[test]
fn a_rule_that_waits_for_counts_to_settle_is_not_reported_as_unjudged() {
    let text = "window = '1h'\n[[rule]]\nname = 'silent'\nkind = 'silent'\nby = ['integration']\n";
    let rules = Rules::parse(text).unwrap();
    let mut fixture = hours(&[Some(0); 30]);
    let first = checks(&rules, &fixture, 30..=30).remove(0);
    assert_eq!((&first.unjudged[..], first.judged), (&[][..], 24));
    fixture.add(30, true, 0, &[row(0)]);
    let (table, now) = (fixture.table(), fixture.instant(31));
    let later = rules.check(&delivery(&table), &first.state, now).unwrap();
    assert_eq!((&later.unjudged[..], later.judged), (&[][..], 0));
    // If a settled window has too few events for the rule, the rule is reported as unjudged.
    let rare = Rules::parse(&format!("{text}least = 100_000\n")).unwrap();
    let rare = rare.check(&delivery(&table), &State::default(), now);
    assert_eq!(rare.unwrap().unjudged.len(), 1);
}

#[test]
fn a_window_that_is_not_over_is_not_judged() {
    let fixture = hours(&[0, 7, 7].map(Some));
    let table = fixture.table();
    let check = rules().check(&delivery(&table), &State::default(), fixture.instant(2)).unwrap();
    assert_eq!(statuses(&check), [("fails", Status::Pending)]);
    // A longer window is judged once the table covers all of it.
    let rules = Rules::parse(&RULES.replace("1h", "2h")).unwrap();
    let now = fixture.instant(4);
    let check = rules.check(&delivery(&table), &State::default(), now).unwrap();
    assert_eq!(check.judged, 2);
    let table = hours(&[0, 7, 7, 7].map(Some)).table();
    let check = rules.check(&delivery(&table), &check.state, now).unwrap();
    assert_eq!((check.judged, statuses(&check)), (2, vec![("fails", Status::Pending)]));
}

#[test]
fn windows_that_are_longer_than_a_rules_windows_are_refused() {
    let table = hours(&[0, 7].map(Some)).table();
    let rules = Rules::parse(&RULES.replace("1h", "15m")).unwrap();
    let now = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
    let error = rules.check(&delivery(&table), &State::default(), now).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unaligned_window: window: [2026-01-01T00:00:00Z, 2026-01-01T01:00:00Z) does not fit into a window of 15m, the length that the \
         rules judge"
    );
}

#[test]
fn a_silence_covers_matching_findings_while_it_lasts() {
    let fixture = hours(&[0, 7, 7, 7].map(Some));
    let silenced = |silence: &str| {
        let rules = Rules::parse(&format!("{RULES}\n[[silence]]\n{silence}")).unwrap();
        let table = fixture.table();
        let check = rules.check(&delivery(&table), &State::default(), fixture.instant(4)).unwrap();
        assert_eq!(check.healthy, check.findings[0].silenced);
        check.healthy
    };
    assert!(silenced(""));
    assert!(silenced("rule = 'fails'\ncomment = 'a known fault'"));
    assert!(silenced("where = { integration = ['Webhook', 'S3'] }"));
    assert!(silenced("until = 2026-01-01T05:00:00Z"));
    assert!(silenced("from = '2026-01-01T04:00:00Z'"));
    assert!(!silenced("rule = 'low'"));
    assert!(!silenced("where = { integration = 'S3' }"));
    assert!(!silenced("where = { event_name = 'Webhook' }"));
    // The last bad window lies in this silence, although its counts settle later.
    assert!(silenced("until = 2026-01-01T04:00:00Z"));
    assert!(!silenced("until = 2026-01-01T03:00:00Z"));
    assert!(!silenced("from = '2026-01-01T04:00:01Z'"));
}

#[test]
fn a_rule_without_counts_is_unjudged_and_keeps_its_state() {
    let fixture = hours(&[0, 7, 7, 7].map(Some));
    let table = fixture.table();
    let now = fixture.instant(4);
    let check = rules().check(&delivery(&table), &State::default(), now).unwrap();
    let without = rules().check(&tallyfold_health::Observed::default(), &check.state, now).unwrap();
    let reasons: Vec<_> = without.unjudged.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["there are no counts of event_delivery"; 2]);
    assert_eq!(without.state, check.state);
    let baseline = Rules::parse("window = '1h'\n[[rule]]\nname = 'x'\nkind = 'rate'").unwrap();
    let check = baseline.check(&delivery(&table), &State::default(), now).unwrap();
    assert_eq!(
        check.unjudged[0].reason,
        "there is not enough history, or no group has at least 100 events"
    );
    assert!(check.healthy);
    // Rules that can never judge such counts report nothing, so their silence does not mean that all is well.
    let ungrouped = table.group_by::<&str>(&[]).unwrap();
    let grouped = Rules::parse(
        "window = '1h'\n[[rule]]\nname = 'x'\nkind = 'threshold'\nmeasure = 'error_rate'\nby = ['integration']\nabove = '1%'",
    );
    let check = grouped.unwrap().check(&delivery(&ungrouped), &State::default(), now).unwrap();
    let reason = &check.unjudged[0].reason;
    assert!(reason.contains("not grouped by"), "{reason}");
    assert!(!check.healthy && check.findings.is_empty());
}

#[test]
fn a_deviation_that_is_likely_in_one_of_many_groups_is_not_a_finding() {
    // The probability that a certain group is this bad by chance is about one in 20,000. There are 400 groups.
    let mut fixture = Fixture::delivery(&["event_name"]);
    let names: Vec<&'static str> = (0..400).map(|at| &*format!("event-{at:03}").leak()).collect();
    for slot in 0..300 {
        let row = |at: usize| {
            let seed = (slot * 400 + at) as u64;
            let extra = if slot == 299 && at < 1 { 125 } else { noise(seed, 10) };
            (vec![names[at]], [500 + extra, 0, 0])
        };
        fixture.add(slot, false, 0, &(0..400).map(row).collect::<Vec<_>>());
    }
    let found = |by: &str| {
        let rule = "window = '1h'\n[[rule]]\nname = 'x'\nkind = 'volume'\nfor = 1\nfalse_alarms = 0.5\nchange = '1%'";
        let rules = format!("{rule}\n{by}");
        crate::fixture::replay(&rules, &fixture, 290, 300).findings.len()
    };
    assert_eq!(found("by = ['event_name']\nwhere = { event_name = 'event-000' }"), 1);
    assert_eq!(found("by = ['event_name']"), 0);
}

/// Makes the number of errors of each hour; `None` for a missing hour.
fn histories() -> impl Strategy<Value = Vec<Option<u64>>> {
    let errors = prop_oneof![3 => Just(0), 2 => Just(4), 3 => 6..20_u64, 1 => 51..100_u64];
    let hour = prop_oneof![9 => errors.prop_map(Some), 1 => Just(None)];
    // The first hour is never missing, so that the first check has counts.
    prop::collection::vec(hour, 2..20).prop_map(|mut hours| {
        hours[0] = Some(0);
        hours
    })
}

/// Returns the part of a state about rules.
fn rules_of(state: &State) -> Value {
    let document: Value = serde_json::from_slice(&state.to_json()).unwrap();
    document["rules"].clone()
}

fn without_resolved(findings: &[Finding]) -> Vec<Finding> {
    let live = findings.iter().filter(|finding| finding.status != Status::Resolved);
    live.cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn frequent_and_rare_checks_have_the_same_findings(errors in histories(), skip in 1..5_usize) {
        let fixture = hours(&errors);
        let end = errors.len();
        let every = checks(&rules(), &fixture, 1..=end);
        let some = checks(&rules(), &fixture, (1..end).step_by(skip).chain([end]));
        let (every, some) = (every.last().unwrap(), some.last().unwrap());
        prop_assert_eq!(rules_of(&every.state), rules_of(&some.state));
        let alone = |check: &Check| {
            let mut findings = without_resolved(&check.findings);
            for finding in &mut findings {
                // The incident may have begun with a finding that began and ended between two checks. Then its identifier differs.
                prop_assert!(finding.incident.is_some() || finding.status == Status::Pending);
                finding.incident = None;
            }
            Ok(findings)
        };
        prop_assert_eq!(alone(every)?, alone(some)?);
    }

    #[test]
    fn repeated_checks_change_nothing(errors in histories()) {
        let fixture = hours(&errors);
        let end = errors.len();
        let once = checks(&rules(), &fixture, 1..=end);
        let twice = checks(&rules(), &fixture, (1..=end).flat_map(|slot| [slot, slot]));
        for (once, [first, second]) in once.iter().zip(twice.as_chunks::<2>().0) {
            prop_assert_eq!(&once.findings, &first.findings);
            prop_assert_eq!(&once.state, &second.state);
            prop_assert_eq!(without_resolved(&first.findings), second.findings.clone());
            prop_assert_eq!(second.judged, 0);
        }
    }

    #[test]
    fn a_replay_fires_and_resolves_when_checks_do(errors in histories()) {
        let fixture = hours(&errors);
        let table = fixture.table();
        let replay = rules().replay(&delivery(&table), fixture.range(0, errors.len())).unwrap();
        let checks = checks(&rules(), &fixture, 1..=errors.len());
        let times = |status: Status, all: &[Finding]| {
            let of = all.iter().filter(|finding| finding.status == status);
            of.map(|finding| (finding.id.clone(), finding.fired, finding.resolved)).collect::<Vec<_>>()
        };
        let mut resolved: Vec<_> = checks.iter().flat_map(|check| times(Status::Resolved, &check.findings)).collect();
        let mut replayed = times(Status::Resolved, &replay.findings);
        resolved.sort();
        replayed.sort();
        prop_assert_eq!(resolved, replayed);
        let mut firing = times(Status::Firing, &checks.last().unwrap().findings);
        let mut at_end = times(Status::Firing, &replay.findings);
        firing.sort();
        at_end.sort();
        prop_assert_eq!(firing, at_end);
    }

    #[test]
    fn a_state_is_read_back_or_refused(errors in histories(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let fixture = hours(&errors);
        let state = &checks(&rules(), &fixture, 1..=errors.len()).pop().unwrap().state;
        let json = state.to_json();
        prop_assert_eq!(&State::from_json(&json).unwrap(), state);
        let mut changed = json.clone();
        let at = at.index(json.len());
        changed[at] = byte;
        if changed != json {
            let error = State::from_json(&changed).unwrap_err();
            prop_assert_eq!(error.code().as_str(), "invalid_checkpoint");
        }
        prop_assert!(State::from_json(&json[..at]).is_err());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(State::from_json(&bytes).is_err());
    }

    #[test]
    fn the_names_of_groups_and_their_order_do_not_matter(seed in any::<u64>()) {
        let found = |names: [&'static str; 3]| {
            let mut fixture = Fixture::delivery(&["integration"]);
            for slot in 0..12 {
                let row = |at: usize| (vec![names[at]], [90, noise(seed ^ (slot * 3 + at) as u64, 12), 0]);
                fixture.add(slot, false, 0, &[row(0), row(1), row(2)]);
            }
            let check = checks(&rules(), &fixture, 12..=12).remove(0);
            let group = |finding: &Finding| names.iter().position(|name| finding.group[0].1 == *name);
            let mut found: Vec<_> = check
                .findings
                .iter()
                .map(|finding| (group(finding), finding.rule.clone(), finding.since, finding.observed))
                .collect();
            found.sort_by_key(|(group, rule, ..)| (*group, rule.clone()));
            format!("{found:?}")
        };
        prop_assert_eq!(found(["a", "b", "c"]), found(["z", "y", "x"]));
    }

    #[test]
    fn shorter_windows_with_the_same_sums_have_the_same_findings(errors in histories(), seed in any::<u64>()) {
        let mut quarters = Fixture::new("event_delivery", &["integration"], 900);
        for (slot, errors) in errors.iter().enumerate() {
            let Some(errors) = errors else { continue };
            // The rest of the hour's counts. Each quarter has a pseudorandom part of the rest, and the last quarter has all of it.
            let mut left = [100 - errors, *errors, 0];
            for quarter in 0..4 {
                let part = left.map(|count| match quarter {
                    3 => count,
                    _ => noise(seed ^ (slot * 4 + quarter) as u64, count + 1),
                });
                quarters.add(slot * 4 + quarter, false, 0, &[(vec!["Webhook"], part)]);
                left = [left[0] - part[0], left[1] - part[1], 0];
            }
        }
        let hours = checks(&rules(), &hours(&errors), 1..=errors.len());
        let quarters = checks(&rules(), &quarters, (1..=errors.len()).map(|slot| 4 * slot));
        prop_assert_eq!(hours, quarters);
    }
}

#[test]
fn a_share_that_exceeds_its_limit_by_one_event_is_an_info() {
    let severities = |errors: &[u64]| {
        let errors: Vec<_> = errors.iter().copied().map(Some).collect();
        let checks = checks(&rules(), &hours(&errors), 1..errors.len() + 1);
        let severities = checks.iter().filter_map(|check| check.findings.first());
        let severities: Vec<Severity> = severities.map(|finding| finding.severity).collect();
        (severities, checks.iter().all(|check| check.healthy))
    };
    assert_eq!(severities(&[0, 6, 6]), (vec![Severity::Info; 2], true));
    assert_eq!(severities(&[0, 7, 7]), (vec![Severity::Critical; 2], false));
    // A finding that has become critical stays critical until it is over.
    assert_eq!(severities(&[0, 6, 7, 6]).0[1..], [Severity::Critical; 2]);
}

#[test]
fn a_sentence_has_the_exact_limit() {
    for (limit, shown) in
        [("10%", "10%"), ("7%", "7%"), ("0.350%", "0.35%"), ("12.125%", "12.125%")]
    {
        let mut fixture = Fixture::delivery(&["integration"]);
        fixture.add(0, false, 0, &[(vec!["Webhook"], [919, 422, 0])]);
        let rule =
            format!("window = '1h'\n[[rule]]\nname = 'x'\nkind = 'threshold'\nabove = '{limit}'");
        let findings = crate::fixture::replay(&rule, &fixture, 0, 1).findings;
        assert_eq!(
            sentences(&findings),
            [format!(
                "event delivery: 31.5% of attempts failed since 2026-01-01 00:00 UTC (422 of 1,341; limit {shown})"
            )]
        );
    }
}

#[test]
fn the_order_of_a_rules_dimensions_does_not_matter() {
    let mut fixture = Fixture::delivery(&["event_name", "integration"]);
    for slot in 0..3 {
        let row = |event, name| (vec![event, name], [90, 10, 0]);
        fixture.add(slot, false, 0, &[row("order", "b"), row("view", "a")]);
    }
    let check = |by: &str| {
        let rules = Rules::parse(&RULES.replacen("by = [\"integration\"]", by, 1)).unwrap();
        checks(&rules, &fixture, 3..4).pop().unwrap()
    };
    let one = check("by = ['event_name', 'integration']");
    assert_eq!(one.findings.len(), 2);
    assert_eq!(one, check("by = ['integration', 'event_name']"));
}

#[test]
fn a_group_is_new_only_if_nine_tenths_of_the_history_are_known() {
    let found = |missing: usize| {
        let mut fixture = Fixture::delivery(&["integration"]);
        for slot in 0..(10 + 1) * 24 {
            let mut rows = vec![(vec!["Mail"], [100, 0, 0])];
            if slot == 10 * 24 {
                rows.push((vec!["Webhook"], [100, 0, 0]));
            }
            // The first hours are missing.
            if slot >= missing {
                fixture.add(slot, false, 0, &rows);
            }
        }
        let rule = "window = '1h'\n[[rule]]\nname = 'x'\nkind = 'new'\nby = ['integration']\nhistory = '9d'";
        let end = 10 * 24 + 1;
        let table = fixture.until(end);
        let rules = Rules::parse(rule).unwrap();
        let check = rules.check(&delivery(&table), &State::default(), fixture.instant(end));
        check.unwrap().findings.len()
    };
    assert_eq!((found(0), found(22), found(23)), (1, 1, 0));
}

#[test]
fn a_window_that_never_settles_delays_later_windows_by_only_a_day() {
    let mut fixture = hours(&[0, 0].map(Some));
    fixture.add(2, true, 0, &[row(51)]);
    for slot in 3..40 {
        fixture.add(slot, false, 0, &[row(if slot < 6 { 7 } else { 0 })]);
    }
    let checks = checks(&rules(), &fixture, 3..40);
    // The window ends at 3, so it is a day old at 27.
    for (slot, check) in (3..).zip(&checks) {
        let judged = if slot < 27 { 2 } else { slot };
        let judged = Some(fixture.instant(judged));
        assert_eq!(check.state.judged(), judged, "{slot}");
    }
    // At 27, the check judges this window and all later windows. It does not report that this window has too few events.
    assert_eq!(statuses(&checks[27 - 3]), [("fails", Status::Resolved)]);
    assert_eq!(checks[27 - 3].findings[0].since, fixture.instant(2));
}

#[test]
fn counts_and_states_of_other_clusters_are_refused() {
    let hours = hours(&[Some(1), Some(1), Some(40), Some(40)]);
    let table = hours.table();
    let of = |label| CountTable::combine([&table], label).unwrap();
    let (one, other) = (of("one"), of("other"));
    let now = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
    let state = rules().check(&delivery(&one), &State::default(), now).unwrap().state;
    // A stored state also contains the cluster.
    let state = State::from_json(&state.to_json()).unwrap();
    rules().check(&delivery(&one), &state, now).unwrap();
    let refused = rules().check(&delivery(&other), &state, now).unwrap_err();
    assert_eq!(refused.code().as_str(), "incompatible_tables");
    assert_eq!(refused.argument_name(), Some("state"));
    let both = Observed { delivery: Some(&one), ingestion: Some(&other) };
    let refused = rules().check(&both, &State::default(), now).unwrap_err();
    assert_eq!(refused.argument_name(), Some("ingestion"));
}

#[test]
fn an_acknowledged_incident_is_silenced() {
    let fixture = hours(&[0, 7, 7, 7, 7, 40, 40].map(Some));
    let table = fixture.table();
    let rules =
        Rules::parse(&RULES.replace("severity = 'critical'", "severity = 'warning'")).unwrap();
    let check = |state: &State, hour: usize| {
        // Each check reads a stored state.
        let state = State::from_json(&state.to_json()).unwrap();
        rules.check(&delivery(&table), &state, fixture.instant(hour)).unwrap()
    };
    let first = check(&State::default(), 3);
    let [incident] = &first.incidents[..] else { panic!("{:?}", first.incidents) };
    assert!(!first.healthy && !incident.silenced);
    let mut state = first.state.clone();
    let note = Some("the vendor works on it".to_owned());
    assert_eq!(
        state.hold(&incident.id[..6], Some(IncidentHold::acknowledged(note.clone()))).unwrap().id,
        incident.id
    );
    let known = check(&state, 4);
    assert!(known.healthy && known.incidents[0].silenced && known.findings[0].silenced);
    assert_eq!(known.incidents[0].hold.as_ref().unwrap().note, note);

    let until = fixture.instant(5);
    let mut silenced = first.state.clone();
    silenced.hold(&incident.id, Some(IncidentHold::silenced(until, None))).unwrap();
    assert!(check(&silenced, 4).healthy);
    // The window that ends at 5:00 still lies in the silence.
    let last = check(&silenced, 5);
    assert!(last.healthy && last.incidents[0].hold.is_some());
    let after = check(&last.state, 6);
    assert!(!after.healthy && after.incidents[0].hold.is_none());

    silenced.hold(&incident.id, None).unwrap();
    assert!(!check(&silenced, 4).healthy);
    let past = IncidentHold::silenced(fixture.instant(2), None);
    let error = silenced.hold(&incident.id, Some(past)).unwrap_err();
    assert_eq!(error.argument_name(), Some("until"));
    assert!(error.to_string().contains("in the past"), "{error}");
    for (id, expected) in [("", "want the identifier"), ("\u{1b}x", "no recent incident")] {
        let error = silenced.hold(id, None).unwrap_err();
        assert_eq!(error.argument_name(), Some("incident"));
        assert!(error.to_string().contains(expected) && !error.to_string().contains('\u{1b}'));
    }
}

#[test]
fn an_acknowledgement_ends_when_the_incident_becomes_more_severe() {
    // Above 5%, the incident is a warning. Above 30%, another rule makes it critical.
    let rules = Rules::parse(
        "window = '1h'\n\
         [[rule]]\nname = 'fails'\nkind = 'threshold'\nby = ['integration']\nabove = '5%'\nseverity = 'warning'\n\
         [[rule]]\nname = 'fails badly'\nkind = 'threshold'\nby = ['integration']\nabove = '30%'\nseverity = 'critical'",
    )
    .unwrap();
    let fixture = hours(&[0, 12, 12, 40, 40].map(Some));
    let table = fixture.table();
    let check = |state: &State, hour: usize| {
        rules.check(&delivery(&table), state, fixture.instant(hour)).unwrap()
    };
    let mut state = check(&State::default(), 2).state;
    let id = state.incidents().next().unwrap().id.clone();
    state.hold(&id, Some(IncidentHold::acknowledged(None))).unwrap();
    let known = check(&state, 3);
    assert!(known.healthy);
    let worse = check(&known.state, 4);
    assert!(!worse.healthy);
    let [incident] = &worse.incidents[..] else { panic!("{:?}", worse.incidents) };
    assert_eq!((incident.severity, &incident.hold), (Severity::Critical, &None));
    assert_eq!(incident.id, id);
}

#[test]
fn a_finding_from_a_silence_stays_silenced_until_its_counts_have_settled() {
    // Events fail only from 2:00 to 4:00. Counts settle an hour after their window.
    let fixture = hours(&[0, 0, 50, 50, 0, 0, 0].map(Some));
    let silence = "from = 2026-01-01T02:00:00Z\nuntil = 2026-01-01T04:00:00Z";
    let rules = Rules::parse(&format!("{RULES}\n[[silence]]\n{silence}")).unwrap();
    let mut state = State::default();
    let mut seen = Vec::new();
    for hour in 4..8 {
        let table = fixture.until(hour - 1);
        let check = rules.check(&delivery(&table), &state, fixture.instant(hour));
        let check = check.unwrap();
        for finding in &check.findings {
            seen.push((hour, finding.status, finding.silenced, check.healthy));
        }
        state = check.state;
    }
    assert_eq!(
        seen,
        [
            (4, Status::Pending, true, true),
            (5, Status::Firing, true, true),
            (6, Status::Firing, true, true),
            (7, Status::Resolved, true, true)
        ]
    );
    let table = fixture.table();
    let replay = rules.replay(&delivery(&table), fixture.range(0, 7)).unwrap();
    assert!(replay.findings[0].silenced);
}

#[test]
fn a_finding_from_a_silence_is_not_silenced_for_as_long_as_nothing_is_attempted() {
    // Events fail from 2:00 to 4:00, and then no more are sent.
    let mut fixture = Fixture::delivery(&["integration"]);
    fixture.fill(0..8, |slot| {
        let other = (vec!["S3"], [100, 0, 0]);
        match slot {
            0..2 => vec![other, row(0)],
            2..4 => vec![other, row(50)],
            _ => vec![other],
        }
    });
    let silence = "from = 2026-01-01T02:00:00Z\nuntil = 2026-01-01T04:00:00Z";
    let rules = Rules::parse(&format!("{RULES}\n[[silence]]\n{silence}")).unwrap();
    let seen = checks(&rules, &fixture, 4..8).into_iter().map(|check| {
        let finding = &check.findings[0];
        (finding.status, finding.silenced, check.healthy)
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            (Status::Firing, true, true),
            (Status::Firing, true, true),
            (Status::Unjudged, false, false),
            (Status::Unjudged, false, false)
        ]
    );
}

#[test]
fn a_silence_of_an_incident_covers_its_windows_also_when_they_settle_later() {
    // Events fail from 2:00 to 6:00 and from 18:00 to 20:00. Counts settle an hour after their window.
    let fails = |hour: &usize| (2..6).contains(hour) || (18..20).contains(hour);
    let errors = (0..24).map(|hour| Some(if fails(&hour) { 50 } else { 0 }));
    let fixture = hours(&errors.collect::<Vec<_>>());
    for until in [6, 20] {
        let mut state = State::default();
        let mut incidents = Vec::new();
        for hour in 4..12 + (until - 6) {
            let table = fixture.until(hour - 1);
            let check = rules().check(&delivery(&table), &state, fixture.instant(hour));
            let check = check.unwrap();
            state = check.state;
            if hour == 5 {
                let id = check.incidents[0].id.clone();
                let hold = IncidentHold::silenced(fixture.instant(until), None);
                state.hold(&id, Some(hold)).unwrap();
                continue;
            }
            assert!(check.healthy, "{hour}:00, silenced until {until}:00");
            for incident in check.incidents {
                assert!(incident.silenced);
                incidents.push(incident.id);
            }
        }
        incidents.dedup();
        assert_eq!(incidents.len(), 1, "silenced until {until}:00");
    }
}

#[test]
fn a_share_below_its_limit_is_critical_even_if_it_is_0() {
    let rules = "window = '1h'\n[[rule]]\nname = 'unfiltered'\nkind = 'threshold'\nmeasure = 'filtered_rate'\nbelow = '1%'\nseverity = 'critical'";
    let fixture = hours(&[0, 0].map(Some));
    let checks = checks(&Rules::parse(rules).unwrap(), &fixture, 1..3);
    for check in checks {
        let found = (check.findings[0].severity, check.healthy);
        assert_eq!(found, (Severity::Critical, false));
    }
}

#[test]
fn an_incident_comes_back_within_six_hours_although_counts_settle_late() {
    // A failure ends at 4:00, and comes back at 9:00.
    let fails = |hour| [2, 3, 9, 10, 11].contains(&hour);
    let errors: Vec<_> = (0..14).map(|hour| Some(if fails(hour) { 50 } else { 0 })).collect();
    let fixture = hours(&errors);
    for late in [0, 1, 6] {
        let mut state = State::default();
        let mut incidents = Vec::new();
        for hour in 1 + late..15 + late {
            let table = fixture.until(hour - late);
            let now = fixture.instant(hour);
            state = rules().check(&delivery(&table), &state, now).unwrap().state;
            incidents.extend(state.incidents().map(|one| one.id.clone()));
        }
        incidents.sort();
        incidents.dedup();
        assert_eq!(incidents.len(), 1, "{late} hours late");
    }
}
