//! The findings of each kind of rule, and their sentences.

use crate::fixture::{Fixture, Row, noise, replay, sentences};
use tallyfold::{Metric, TimeStep};
use tallyfold_health::{Finding, Measure, Observed, ObservedPages, Rules, Severity, Status};

const WEEK: usize = 168;

/// Returns the rows of an hour, for two integrations and two event names. Counts rise and fall each day.
fn usual(slot: usize) -> Vec<Row> {
    let of_day = 300 + 20 * (12 - (slot as u64 % 24).abs_diff(12));
    let mut rows = Vec::new();
    for (place, integration) in ["Amazon S3", "Webhook"].into_iter().enumerate() {
        for (event, name) in ["order", "page"].into_iter().enumerate() {
            let seed = (slot * 4 + place * 2 + event) as u64;
            let attempts = of_day + noise(seed, 30);
            let errors = noise(seed + 7_777, 8);
            rows.push((vec![name, integration], [attempts - errors, errors, 3]));
        }
    }
    rows
}

/// Makes five usual weeks.
fn weeks() -> Fixture {
    let mut fixture = Fixture::delivery(&["event_name", "integration"]);
    fixture.fill(0..5 * WEEK, usual);
    fixture
}

/// Makes five usual weeks and a week with changed rows.
fn with(change: impl Fn(usize, &mut Row)) -> Fixture {
    let mut fixture = weeks();
    fixture.fill(5 * WEEK..6 * WEEK, |slot| {
        let mut rows = usual(slot);
        rows.iter_mut().for_each(|row| change(slot, row));
        rows.retain(|(_, counts)| counts.iter().sum::<u64>() > 0);
        rows
    });
    fixture
}

/// Returns whether a slot is in these hours of the sixth week.
fn in_hours(slot: usize, hours: std::ops::Range<usize>) -> bool {
    (5 * WEEK + hours.start..5 * WEEK + hours.end).contains(&slot)
}

/// Returns the sentences of findings without their usual numbers, which depend on details of the baseline.
fn masked(findings: &[Finding]) -> Vec<String> {
    let mask = |sentence: &str| {
        let Some((before, rest)) = sentence.split_once("usually ") else {
            return sentence.to_owned();
        };
        let end = rest.find([')', ';']).unwrap_or(rest.len());
        format!("{before}usually N{}", &rest[end..])
    };
    findings.iter().map(|finding| mask(&finding.sentence)).collect()
}

/// Returns the sentences of a rule's findings in the sixth week.
fn found(rule: &str, fixture: &Fixture) -> Vec<String> {
    let rules = format!("window = '1h'\n[[rule]]\nname = 'it'\n{rule}");
    let replay = replay(&rules, fixture, 5 * WEEK, 6 * WEEK);
    masked(&replay.findings)
}

#[test]
fn the_usual_band_contains_usual_counts_but_not_unusual_ones() {
    let is_unusual = |slot: usize| in_hours(slot, 26..29);
    let spoil = |slot: usize, (_, counts): &mut Row| {
        if is_unusual(slot) {
            *counts = [counts[0] - 100, counts[1] + 100, counts[2]];
        }
    };
    let counted = |slot: usize| {
        let mut rows = usual(slot);
        rows.iter_mut().for_each(|row| spoil(slot, row));
        let sum = |place: usize| rows.iter().map(|(_, counts)| counts[place]).sum::<u64>() as f64;
        [sum(1), sum(1) / (sum(0) + sum(1))]
    };
    let fixture = with(spoil);
    let table = fixture.table();
    let hour = TimeStep::parse("1h").unwrap();
    let day = fixture.range(5 * WEEK + 24, 5 * WEEK + 48);
    for (measure, place) in [(Measure::Errors, 0), (Measure::ErrorRate, 1)] {
        let usual = tallyfold_health::usual(&table, day, hour, measure).unwrap();
        assert_eq!(usual.len(), 24);
        for (slot, usual) in (5 * WEEK + 24..).zip(&usual) {
            assert_eq!(usual.start, fixture.instant(slot));
            let counted = counted(slot)[place];
            let is_in = (usual.low..=usual.high).contains(&counted);
            assert_eq!(is_in, !is_unusual(slot), "{measure} {usual:?} {counted:?}");
            assert!(usual.low <= usual.expected && usual.expected <= usual.high);
        }
    }
    // Without enough history, the band is empty. Windows longer than the step are an error.
    let early = fixture.range(0, 24);
    assert_eq!(tallyfold_health::usual(&table, early, hour, Measure::Success).unwrap(), []);
    let quarter = TimeStep::parse("15m").unwrap();
    let error = tallyfold_health::usual(&table, day, quarter, Measure::Success).unwrap_err();
    assert_eq!(error.code().as_str(), "unaligned_window");
}

#[test]
fn a_usual_week_has_no_findings() {
    let fixture = with(|_, _| {});
    for rule in [
        "kind = 'rate'\nby = ['integration']",
        "kind = 'volume'\nby = ['event_name', 'integration']\nslow = '1d'",
        "kind = 'silent'\nby = ['event_name']",
        "kind = 'vanished'\nby = ['event_name']",
        "kind = 'new'\nby = ['event_name']",
        "kind = 'budget'\nbudget = '5%'",
        "kind = 'threshold'\nabove = '5%'\nby = ['event_name']",
        "kind = 'reconciliation'",
    ] {
        assert_eq!(found(rule, &fixture), [""; 0], "{rule}");
    }
}

#[test]
fn an_integration_that_fails_is_found_with_its_cause() {
    let fixture = with(|slot, (values, counts)| {
        if in_hours(slot, 50..54) && *values == ["order", "Amazon S3"] {
            *counts = [counts[0] - 100, counts[1] + 100, counts[2]];
        }
    });
    assert_eq!(
        found("kind = 'rate'\nby = ['integration']\nfor = 2", &fixture),
        [
            "integration Amazon S3: 14.1% of attempts failed from 2026-02-07 02:00 to 06:00 UTC (435 of 3,093; usually N); 405 more than usual, nearly all from event name order; over"
        ]
    );
}

#[test]
fn the_sentence_of_a_resolved_finding_names_the_causes_of_its_whole_time() {
    let fixture = with(|slot, (values, counts)| {
        let part = if in_hours(slot, 50..51) { "order" } else { "page" };
        if in_hours(slot, 50..60) && values[..] == [part, "Amazon S3"] {
            let failed = counts[0] / 2;
            *counts = [counts[0] - failed, counts[1] + failed, counts[2]];
        }
    });
    let [sentence] = &found("kind = 'rate'\nby = ['integration']", &fixture)[..] else {
        panic!("want one finding");
    };
    // Only in the first hour, all failures were from event name order.
    assert!(!sentence.contains("event name order"), "{sentence}");
}

#[test]
fn volumes_below_and_above_the_usual_are_found() {
    let fixture = with(|slot, (values, counts)| match values[1] {
        "Webhook" if in_hours(slot, 30..33) => *counts = counts.map(|count| count / 3),
        "Amazon S3" if in_hours(slot, 80..82) && values[0] == "page" => {
            *counts = counts.map(|count| 3 * count)
        }
        _ => {}
    });
    let rule = "kind = 'volume'\nby = ['integration']";
    assert_eq!(
        found(rule, &fixture),
        [
            "integration Webhook: only 33.1% of the usual events at delivery from 2026-02-06 06:00 to 09:00 UTC (912; usually N); over",
            "integration Amazon S3: 2.0 times the usual events at delivery from 2026-02-08 08:00 to 10:00 UTC (3,877; usually N); all of the additional events are from event name page; over"
        ]
    );
    assert_eq!(
        found(&format!("{rule}\nside = 'low'"), &fixture),
        [
            "integration Webhook: only 33.1% of the usual events at delivery from 2026-02-06 06:00 to 09:00 UTC (912; usually N); over"
        ]
    );
}

#[test]
fn a_slow_decline_is_found_by_sums_of_windows() {
    let fixture = with(|slot, (values, counts)| {
        if in_hours(slot, 24..72) && values[1] == "Webhook" {
            let left = 100 - (slot - 5 * WEEK - 24).min(20) as u64;
            *counts = counts.map(|count| count * left / 100);
        }
    });
    let rule = |change: &str| format!("kind = 'volume'\nby = ['integration']\nchange = '{change}'");
    assert_eq!(found(&rule("25%"), &fixture), [""; 0]);
    let [slow] = &found(&rule("12%"), &fixture)[..] else {
        panic!("want one finding");
    };
    let is_early = slow.contains(" of the usual events at delivery from 2026-02-06 ");
    assert!(slow.starts_with("integration Webhook: ") && is_early, "{slow}");
}

/// Makes a batch that comes each night at 3:00, but on one day of the last week at `hour`, or not at all.
fn batches(hour: Option<usize>) -> Fixture {
    let mut fixture = Fixture::delivery(&["event_name"]);
    fixture.fill(0..6 * WEEK, |slot| {
        let comes = match 5 * WEEK + 3 * 24 == slot / 24 * 24 {
            true => hour,
            false => Some(3),
        };
        match comes == Some(slot % 24) {
            true => vec![(vec!["export"], [500 + noise(slot as u64, 9), 0, 0])],
            false => Vec::new(),
        }
    });
    fixture
}

#[test]
fn a_missing_batch_is_found_but_a_late_batch_is_not() {
    for rule in ["kind = 'silent'\nby = ['event_name']", "kind = 'volume'\nby = ['event_name']"] {
        for hour in [3, 4, 5] {
            assert_eq!(found(rule, &batches(Some(hour))), [""; 0], "{rule}: {hour}");
        }
        assert_eq!(found(rule, &batches(None)).len(), 1, "{rule}");
    }
}

#[test]
fn a_clock_change_is_not_a_decline() {
    // From Sunday, 2026-03-08 (day 66) on, all events come an hour earlier in UTC.
    let of_day = |slot: usize| {
        let hour = (slot + usize::from(slot >= 66 * 24 + 7)) % 24;
        if (9..17).contains(&hour) { 1_000 } else { 50 }
    };
    let mut fixture = Fixture::delivery(&["event_name"]);
    fixture.fill(0..73 * 24, |slot| {
        vec![(vec!["order"], [of_day(slot) + noise(slot as u64, 20), 0, 0])]
    });
    let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'volume'\nby = ['event_name']";
    let replay = replay(rules, &fixture, 60 * 24, 73 * 24);
    assert_eq!(masked(&replay.findings), [""; 0]);
}

#[test]
fn a_small_integration_that_fails_is_found_within_an_hour_and_unjudged_without_attempts() {
    // There are 15 attempts in each quarter of an hour. Then all attempts fail for two hours, and later there are none.
    let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
    let start = 30 * 96;
    fixture.fill(0..start + 40, |slot| match slot.checked_sub(start) {
        None => vec![(vec!["small"], [15, 0, 0]), (vec!["large"], [500, 2, 0])],
        Some(0..8) => vec![(vec!["small"], [0, 15, 0]), (vec!["large"], [500, 2, 0])],
        Some(_) => vec![(vec!["large"], [500, 2, 0])],
    });
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nleast = 30";
    let rules = Rules::parse(rules).unwrap();
    let checks =
        crate::fixture::checks(&rules, &fixture, [start + 4, start + 8, start + 40].into_iter());
    let statuses = checks.iter().map(|check| {
        let [finding] = &check.findings[..] else {
            panic!("want one finding: {:?}", sentences(&check.findings));
        };
        (finding.status, check.healthy)
    });
    let statuses: Vec<(Status, bool)> = statuses.collect();
    assert_eq!(
        statuses,
        [(Status::Firing, false), (Status::Firing, false), (Status::Unjudged, false)]
    );
    let sentence = &checks[2].findings[0].sentence;
    assert!(
        sentence.contains("not judged since") && sentence.contains("100% of attempts failed"),
        "{sentence}"
    );
}

#[test]
fn an_outage_is_separate_from_a_usual_outage_on_the_same_day_and_ends_soon() {
    // In each quarter of an hour, about 3 of 200 attempts fail. On every third day, nearly all attempts fail for 45 minutes from
    // 2:00 on. On the last of these days, they also fail for 75 minutes from 10:30 on.
    let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
    let day = 48;
    fixture.fill(0..(day + 1) * 96, |slot| {
        let of_day = slot % 96;
        let is_usual = (slot / 96).is_multiple_of(3) && (8..11).contains(&of_day);
        let is_out = is_usual || slot / 96 == day && (42..47).contains(&of_day);
        let errors = if is_out { 180 } else { noise(slot as u64, 7) };
        vec![(vec!["out"], [200 - errors, errors, 0]), (vec!["other"], [500, 2, 0])]
    });
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nside = 'high'";
    let replay = replay(rules, &fixture, day * 96, (day + 1) * 96);
    let [finding] = &replay.findings[..] else {
        panic!("want one finding: {:?}", sentences(&replay.findings));
    };
    let shown = |timestamp: tallyfold::Timestamp| timestamp.to_string();
    assert_eq!(shown(finding.since), "2026-02-18T10:30:00Z");
    assert_eq!(finding.resolved.map(shown).as_deref(), Some("2026-02-18T11:45:00Z"));
    let numbers =
        "90% of attempts failed from 2026-02-18 10:30 to 11:45 UTC (900 of 1,000; usually ";
    assert!(finding.sentence.contains(numbers), "{}", finding.sentence);
    // Two hours after the end of the outage, a check reports that it is over.
    let rules = Rules::parse(rules).unwrap();
    let checks = [day * 96 + 47, day * 96 + 55].into_iter();
    let checks = crate::fixture::checks(&rules, &fixture, checks);
    let status = checks.iter().map(|check| check.findings[0].status);
    let status: Vec<Status> = status.collect();
    assert_eq!(status, [Status::Firing, Status::Resolved]);
}

/// Makes 16 attempts in each quarter of an hour. Usually, one in 48 fails. From `start` on, 13 fail in each of three windows. In
/// each later window, `later` attempts fail.
fn with_short_failure(start: usize, later: impl Fn(usize) -> u64) -> Fixture {
    let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
    fixture.fill(0..start + 24, |slot| {
        let errors = match slot.checked_sub(start) {
            None => u64::from(slot.is_multiple_of(3)),
            Some(0..3) => 13,
            Some(after) => later(after),
        };
        vec![(vec!["small"], [16 - errors, errors, 0]), (vec!["large"], [500, 2, 0])]
    });
    fixture
}

#[test]
fn a_short_failure_of_a_small_group_ends_although_hours_were_judged_together() {
    let start = 48 * 96;
    let fixture = with_short_failure(start, |slot| u64::from(slot.is_multiple_of(3)));
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nside = 'high'";
    let rules = Rules::parse(rules).unwrap();
    let checks = crate::fixture::checks(&rules, &fixture, [start + 3, start + 20].into_iter());
    let [firing, resolved] = [0, 1].map(|check| &checks[check].findings[0]);
    assert_eq!(firing.status, Status::Firing);
    let numbers = "since 2026-02-18 00:00 UTC (39 of 48; usually ";
    assert!(firing.sentence.contains(numbers), "{}", firing.sentence);
    assert_eq!(resolved.status, Status::Resolved);
    assert!(resolved.resolved <= Some(fixture.instant(start + 4)));
}

#[test]
fn a_single_failure_does_not_begin_a_finding_about_an_outage_that_is_over() {
    // There are four attempts in each window. All fail in three windows, `later` fail in each of the next four windows, and one
    // fails in the window after them.
    let start = 48 * 96;
    let found = |later: u64| {
        let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
        fixture.fill(0..start + 24, |slot| {
            let errors = match slot.checked_sub(start) {
                None => u64::from(slot.is_multiple_of(25)),
                Some(0..3) => 4,
                Some(3..7) => later,
                Some(7) => 1,
                Some(_) => 0,
            };
            vec![(vec!["small"], [4 - errors, errors, 0])]
        });
        let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nside = 'high'";
        replay(rules, &fixture, start, start + 24).findings.len()
    };
    assert_eq!([found(0), found(1)], [0, 1]);
}

#[test]
fn numbers_of_a_failure_that_may_be_over_end_with_the_last_bad_window() {
    let start = 48 * 96;
    let fixture = with_short_failure(start, |slot| u64::from(slot.is_multiple_of(2)));
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nside = 'high'";
    let rules = Rules::parse(rules).unwrap();
    let checks = crate::fixture::checks(&rules, &fixture, [start + 3, start + 8].into_iter());
    let [finding] = &checks[1].findings[..] else {
        panic!("want one finding: {:?}", sentences(&checks[1].findings));
    };
    assert_eq!(finding.status, Status::Firing);
    let first = "of attempts failed from 2026-02-18 00:00 to 00:45 UTC (39 of 48; usually ";
    let last = "; better since then, but too few events to call it over";
    let sentence = &finding.sentence;
    assert!(sentence.contains(first) && sentence.ends_with(last), "{sentence}");
}

#[test]
fn a_stray_failure_is_not_part_of_a_later_outage() {
    let start = 48 * 96;
    let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
    fixture.fill(0..start + 8, |slot| {
        let errors = match slot {
            slot if slot >= start => 10,
            slot if [start - 6, start - 9].contains(&slot) => 1,
            slot => u64::from(slot.is_multiple_of(50)),
        };
        vec![(vec!["small"], [10 - errors, errors, 0])]
    });
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nleast = 30";
    let replay = replay(rules, &fixture, start, start + 8);
    assert_eq!(replay.findings[0].since, fixture.instant(start));
}

/// Makes 4,000 attempts in each quarter of an hour. Usually, about 2% fail. On each day, at a different time, the share slowly
/// rises to 4.4% and falls again, within eight hours. From `start` on, it is three times as high for three hours.
fn with_slow_changes(start: usize) -> Fixture {
    let mut fixture = Fixture::new("event_delivery", &["integration"], 900);
    fixture.fill(0..start + 12, |slot| {
        let (day, quarter) = (slot / 96, slot % 96);
        let begin = (day * 37) % 64;
        let slow = match quarter.checked_sub(begin) {
            Some(passed @ 0..32) if slot < start - 24 => 16 - passed.abs_diff(16),
            _ => 0,
        } as u64;
        let times = if slot < start { 1 } else { 3 };
        let errors = times * (80 + 6 * slow) + noise(slot as u64, 9);
        vec![(vec!["it"], [4_000 - errors, errors, 0])]
    });
    fixture
}

#[test]
fn a_sudden_rise_of_a_share_is_found_although_slow_rises_are_usual() {
    let start = 48 * 96 + 40;
    let rules = "[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']\nside = 'high'";
    let fixture = with_slow_changes(start);
    let replay = replay(rules, &fixture, 47 * 96, start + 12);
    let [finding] = &replay.findings[..] else {
        panic!("want one finding: {:?}", sentences(&replay.findings));
    };
    assert!(finding.fired >= Some(fixture.instant(start + 1)));
    assert!(finding.fired <= Some(fixture.instant(start + 4)));
}

#[test]
fn a_few_failures_are_not_a_finding_although_hardly_any_are_usual() {
    let of = |failures: u64| {
        let mut fixture = Fixture::delivery(&["integration"]);
        fixture.fill(0..6 * WEEK, |slot| {
            let errors = match slot.checked_sub(5 * WEEK + 30) {
                Some(0) => failures,
                _ => u64::from(slot.is_multiple_of(50)),
            };
            vec![(vec!["it"], [110 - errors, errors, 0])]
        });
        let rule = "kind = 'rate'\nby = ['integration']\nside = 'high'";
        found(rule, &fixture).len()
    };
    assert_eq!([8, 14].map(of), [0, 1]);
}

#[test]
fn a_stream_without_events_is_silent() {
    let fixture = with(|slot, (values, counts)| {
        if in_hours(slot, 100..110) && values[0] == "page" {
            *counts = [0; 3];
        }
    });
    assert_eq!(
        found("kind = 'silent'\nby = ['event_name']", &fixture),
        [
            "event name page: no events at delivery from 2026-02-09 04:00 to 14:00 UTC (usually N); over"
        ]
    );
}

#[test]
fn a_stream_that_never_comes_back_is_closed_after_a_week() {
    let mut fixture = weeks();
    fixture.fill(5 * WEEK..15 * WEEK, |slot| {
        let mut rows = usual(slot);
        rows.retain(|(values, _)| slot < 5 * WEEK + 100 || values[0] != "page");
        rows
    });
    let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'silent'\nby = ['event_name']";
    let replay = replay(rules, &fixture, 5 * WEEK, 15 * WEEK);
    assert_eq!(
        masked(&replay.findings),
        [
            "event name page: no events at delivery since 2026-02-09 04:00 UTC (usually N); closed without a recovery, after a week or more without events"
        ]
    );
}

#[test]
fn groups_that_vanish_and_new_groups_are_found() {
    let mut fixture = with(|slot, (values, counts)| {
        if in_hours(slot, 60..168) && *values == ["page", "Webhook"] {
            *counts = [0; 3];
        }
    });
    fixture.fill(6 * WEEK..6 * WEEK + 48, |slot| {
        let mut rows = usual(slot);
        rows.push((vec!["refund", "Webhook"], [30, 0, 0]));
        rows
    });
    let found = |rule: &str| {
        let rules = format!(
            "window = '1h'\n[[rule]]\nname = 'it'\n{rule}\nby = ['event_name', 'integration']"
        );
        let replay = replay(&rules, &fixture, 5 * WEEK, 6 * WEEK + 48);
        masked(&replay.findings)
    };
    assert_eq!(
        found("kind = 'vanished'"),
        [
            "event name page, integration Webhook: no events at delivery from 2026-02-07 12:00 to 2026-02-12 00:00 UTC (usually N); over"
        ]
    );
    assert_eq!(
        found("kind = 'new'"),
        [
            "event name refund, integration Webhook: first seen, with 720 events from 2026-02-12 00:00 to 2026-02-13 00:00 UTC; closed after a day, as it is no longer new; it may continue"
        ]
    );
}

#[test]
fn errors_that_use_up_a_budget_are_found() {
    let fixture = with(|slot, (_, counts)| {
        if in_hours(slot, 20..23) {
            *counts = [counts[0] / 2, counts[1] + counts[0] - counts[0] / 2, counts[2]];
        }
    });
    let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'budget'\nbudget = '3%'\nseverity = 'critical'";
    let replay = replay(rules, &fixture, 5 * WEEK, 6 * WEEK);
    assert_eq!(
        sentences(&replay.findings),
        [
            "event delivery: 50.6% of attempts failed from 2026-02-05 20:00 to 23:00 UTC (2,272 of 4,494; budget 3%); over"
        ]
    );
    assert_eq!(replay.findings[0].severity, Severity::Critical);
}

#[test]
fn a_budget_does_not_recover_while_nothing_is_attempted() {
    // After an outage of an hour, no burn rate is exceeded any more, but the sums of six hours still contain its attempts.
    for start in [20, 22] {
        let fixture = with(|slot, (_, counts)| {
            if in_hours(slot, start..23) {
                *counts = [0, counts[0] + counts[1], counts[2]];
            } else if in_hours(slot, 23..40) {
                *counts = [0; 3];
            }
        });
        let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'budget'\nbudget = '3%'";
        let end = |end: usize| {
            let replay = replay(rules, &fixture, 5 * WEEK, 5 * WEEK + end);
            replay.findings[0].resolved
        };
        assert_eq!(end(40), None, "from {start}:00");
        assert!(end(80).is_some());
    }
}

#[test]
fn a_share_that_fails_for_weeks_is_over_only_when_it_recovers() {
    for (usual, failing) in [(10, 1_000), (10, 300)] {
        let mut fixture = Fixture::delivery(&["integration"]);
        let (start, end) = (28 * 24, 50 * 24);
        fixture.fill(0..end + 48, |slot| {
            let errors = match (start..end).contains(&slot) {
                true => failing - noise(slot as u64, 9),
                false => usual + noise(slot as u64, 5),
            };
            vec![(vec!["CRM"], [1_000 - errors, errors, 0])]
        });
        let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']";
        let lasts = replay(rules, &fixture, start, end);
        assert_eq!(lasts.findings.len(), 1, "{:?}", sentences(&lasts.findings));
        assert_eq!(lasts.findings[0].resolved, None);
        let ends = replay(rules, &fixture, start, end + 48);
        assert_eq!(ends.findings[0].resolved, Some(fixture.instant(end)));
    }
}

#[test]
fn a_share_that_rose_more_than_a_day_before_it_was_found_is_over_only_when_it_recovers() {
    let mut fixture = Fixture::delivery(&["integration"]);
    let (start, end) = (28 * 24, 50 * 24);
    fixture.fill(0..end, |slot| {
        let share = if slot < start { 2 } else { 8 };
        let seed = |attempt: u64| (500_000 + slot as u64) * 100 + attempt;
        let errors = (0..25).filter(|attempt| noise(seed(*attempt), 100) < share);
        let errors = errors.count() as u64;
        vec![(vec!["CRM"], [25 - errors, errors, 0])]
    });
    let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'rate'\nby = ['integration']";
    let replay = replay(rules, &fixture, start - 72, end);
    let [finding] = &replay.findings[..] else { panic!("{:?}", sentences(&replay.findings)) };
    let lasted_ms = finding.fired.unwrap().unix_ms() - finding.since.unix_ms();
    assert!(lasted_ms > 86_400_000);
    assert_eq!(finding.resolved, None);
}

#[test]
fn a_day_without_events_after_a_quiet_weekend_is_found() {
    let (days, off) = (98, 95);
    for (kind, weekend, left) in [("silent", 0, 0), ("volume", 0, 0), ("volume", 2_000, 2_000)] {
        let mut fixture = Fixture::new("event_delivery", &["integration"], 86_400);
        fixture.fill(0..days, |day| {
            // The first day is a Thursday, and the day off is a Monday.
            let count = match day {
                _ if day == off => left,
                _ if matches!(day % 7, 2 | 3) => weekend,
                _ => 5_000,
            };
            let count = count + noise(day as u64, 1 + count / 50);
            let mut rows = vec![(vec!["CRM"], [count, 0, 0]), (vec!["S3"], [500, 0, 0])];
            rows.retain(|(_, counts)| counts[0] > 0);
            rows
        });
        let rules = format!(
            "window = '1d'\n[[rule]]\nname = 'it'\nkind = '{kind}'\nby = ['integration']\nfor = 1\nbaseline = {{ weeks = 6, neighbours = 0 }}"
        );
        let replay = replay(&rules, &fixture, days - 14, days);
        let found = replay.findings.iter().map(|finding| finding.since);
        assert_eq!(found.collect::<Vec<_>>(), [fixture.instant(off)], "{kind}");
    }
}

#[test]
fn counts_near_the_largest_number_are_judged() {
    let rule = |kind: &str| {
        format!("window = '1h'\n[[rule]]\nname = 'it'\nkind = '{kind}'\nby = ['integration']")
    };
    for kind in ["volume", "silent"] {
        let rules = Rules::parse(&rule(kind)).unwrap();
        let mut store = crate::fixture::Store::new(&rules, Metric::EventDelivery);
        let (days, left) = (30, 6);
        // A table of all days would have a sum above 2^64.
        for day in 0..=days {
            let mut fixture = Fixture::delivery(&["integration"]);
            fixture.fill(day * 24..day * 24 + 24, |slot| {
                let is_there = slot < days * 24 || slot >= days * 24 + left;
                let count = if is_there { 500_000_000_000_000_000 } else { 0 };
                vec![(vec!["CRM"], [count, 0, 0])]
            });
            store.add(&fixture.table());
        }
        let heads = store.heads();
        let pages = store.pages(&heads);
        let observed = ObservedPages { delivery: Some(&pages), ingestion: None };
        let range = Fixture::delivery(&[]).range(days * 24, days * 24 + left);
        let found = rules.replay_pages(&observed, range).unwrap().findings;
        assert_eq!(found.len(), 1, "{kind}");
    }
}

#[test]
fn totals_that_differ_from_their_rows_are_found() {
    let mut fixture = weeks();
    fixture.add(5 * WEEK, false, 0, &usual(5 * WEEK));
    fixture.add(5 * WEEK + 1, false, 17, &usual(5 * WEEK + 1));
    fixture.add(5 * WEEK + 2, false, 0, &usual(5 * WEEK + 2));
    assert_eq!(
        found("kind = 'reconciliation'", &fixture),
        [
            "event delivery: the reported totals are 1,389 events, but the rows add up to 1,372 since 2026-02-05 01:00 UTC"
        ]
    );
    assert_eq!(found("kind = 'reconciliation'\nleast = 18", &fixture), [""; 0]);
}

#[test]
fn ingested_events_that_are_not_delivered_are_found() {
    // No events of "web" are delivered in slots 4 to 6. If `few` isn't 0, slot 5 has this many events, and all are delivered.
    let found = |few: u64| {
        let (mut delivery, mut ingestion) = (
            Fixture::delivery(&["write_key", "integration"]),
            Fixture::new("event_ingestion", &["write_key"], 3_600),
        );
        for slot in 0..10 {
            let delivered = match slot {
                5 if few > 0 => vec![(vec!["web", "Webhook"], [few, 0, 0])],
                4..7 => vec![],
                _ => vec![(vec!["web", "Webhook"], [90, 5, 5])],
            };
            let other = (vec!["app", "Webhook"], [50, 0, 0]);
            delivery.add(slot, false, 0, &[delivered, vec![other]].concat());
            let events = if slot == 5 && few > 0 { few } else { 100 };
            let ingested = [(vec!["web"], [events, 0, 0]), (vec!["app"], [50, 0, 0])];
            ingestion.add(slot, false, 0, &ingested);
        }
        let rules =
            "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'undelivered'\nby = ['write_key']";
        let rules = Rules::parse(rules).unwrap();
        let (delivered, ingested) = (delivery.table(), ingestion.table());
        let observed = Observed { delivery: Some(&delivered), ingestion: Some(&ingested) };
        let replay = rules.replay(&observed, delivery.range(0, 10)).unwrap();
        let sentences = sentences(&replay.findings);
        sentences.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        found(0),
        [
            "write key web: 300 events ingested, but none delivered, failed or filtered from 2026-01-01 04:00 to 07:00 UTC; over"
        ]
    );
    assert_eq!(
        found(3),
        [
            "write key web: 100 events ingested, but none delivered, failed or filtered from 2026-01-01 04:00 to 05:00 UTC, part of an incident from 2026-01-01 04:00 to 07:00 UTC; over"
        ]
    );
}

#[test]
fn a_rule_that_compares_both_endpoints_waits_until_both_have_settled() {
    let (mut delivery, mut ingestion) =
        (Fixture::delivery(&["write_key"]), Fixture::new("event_ingestion", &["write_key"], 3_600));
    for slot in 0..6 {
        ingestion.add(slot, false, 0, &[(vec!["web"], [100, 0, 0])]);
        let delivered = if slot < 3 { 100 } else { 0 };
        delivery.add(slot, false, 0, &[(vec!["web"], [delivered, 0, 0])]);
    }
    let rules =
        "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'undelivered'\nby = ['write_key']\nfor = 2";
    let rules = Rules::parse(rules).unwrap();
    // The deliveries of the newest window can't be read at 4:00 and at 5:00.
    let mut state = tallyfold_health::State::default();
    let mut statuses = Vec::new();
    for (hour, delivered) in [(3, 3), (4, 3), (5, 4), (6, 6)] {
        let (delivered, ingested) = (delivery.until(delivered), ingestion.until(hour));
        let observed = Observed { delivery: Some(&delivered), ingestion: Some(&ingested) };
        let check = rules.check(&observed, &state, delivery.instant(hour)).unwrap();
        let found = check.findings.first();
        statuses.push(found.map(|one| (one.status, one.since == delivery.instant(3))));
        state = check.state;
    }
    let since = |status| Some((status, true));
    assert_eq!(statuses, [None, None, since(Status::Pending), since(Status::Firing)]);
}

#[test]
fn connecting_or_disconnecting_a_source_is_not_a_change_of_the_integration() {
    // "app" starts or stops sending to the integration in the middle of a day.
    let (day, days) = (42, 16);
    let found_with = |sends: fn(usize) -> u64, is_known: fn(usize) -> bool| {
        let (mut delivery, mut ingestion) = (
            Fixture::delivery(&["write_key", "integration"]),
            Fixture::new("event_ingestion", &["write_key"], 3_600),
        );
        for slot in 0..(day + days) * 24 {
            let of = |source: usize| 200 + noise((slot * 2 + source) as u64, 20);
            let mut delivered = vec![(vec!["web", "Webhook"], [of(0), 0, 0])];
            if sends(slot) > 0 {
                delivered.push((vec!["app", "Webhook"], [of(1) * sends(slot), 0, 0]));
            }
            delivery.add(slot, false, 0, &delivered);
            let ingested = [(vec!["app"], [of(1), 0, 0]), (vec!["web"], [of(0), 0, 0])];
            if is_known(slot) {
                ingestion.add(slot, false, 0, &ingested);
            }
        }
        let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'ratio'\nby = ['integration']";
        let rules = Rules::parse(rules).unwrap();
        let (delivered, ingested) = (delivery.table(), ingestion.table());
        let observed = Observed { delivery: Some(&delivered), ingestion: Some(&ingested) };
        let range = delivery.range(day * 24, (day + days) * 24);
        let replay = rules.replay(&observed, range).unwrap();
        masked(&replay.findings)
    };
    let found = |sends| found_with(sends, |_| true);
    assert_eq!(found(|slot| (slot < 42 * 24 + 12).into()), [""; 0]);
    assert_eq!(found(|slot| (slot >= 42 * 24 + 12).into()), [""; 0]);
    // Deliveries without known ingestion counts are not judged.
    assert_eq!(found_with(|_| 1, |slot| slot % 24 != 5), [""; 0]);
    assert_eq!(found_with(|_| 1, |slot| slot < 50 * 24), [""; 0]);
    // "app" sends each event twice for eight hours.
    let twice = |slot| 1 + u64::from((50 * 24 + 6..50 * 24 + 14).contains(&slot));
    assert_eq!(
        found(twice),
        [
            "integration Webhook: 1.5 times the usual deliveries per ingested event from 2026-02-20 06:00 to 14:00 UTC (5,089 for 3,381 events ingested; usually N); all of the additional events are from write key app; over"
        ]
    );
}

#[test]
fn fixed_limits_are_compared_exactly() {
    let mut fixture = Fixture::delivery(&["event_name", "integration"]);
    for (slot, errors) in [5, 6, 6, 5, 5, 4].into_iter().enumerate() {
        fixture.add(slot, false, 0, &[(vec!["order", "Webhook"], [100 - errors, errors, 9])]);
    }
    let found = |rule: &str| {
        let rules =
            format!("window = '1h'\n[[rule]]\nname = 'it'\nkind = 'threshold'\nclear = 1\n{rule}");
        let replay = replay(&rules, &fixture, 0, 6);
        masked(&replay.findings)
    };
    assert_eq!(
        found("above = '5%'"),
        [
            "event delivery: 6% of attempts failed from 2026-01-01 01:00 to 03:00 UTC (12 of 200; limit 5%); over"
        ]
    );
    assert_eq!(
        found("above = '5%'\nclear_below = '4%'"),
        [
            "event delivery: 5.5% of attempts failed from 2026-01-01 01:00 to 05:00 UTC (22 of 400; limit 5%); over"
        ]
    );
    // The share of all windows together is within the limit.
    assert_eq!(
        found("above = '5.9%'\nclear_below = '4.5%'"),
        [
            "event delivery: 6% of attempts failed from 2026-01-01 01:00 to 02:00 UTC (6 of 100; limit 5.9%), part of an incident from 2026-01-01 01:00 to 05:00 UTC; over"
        ]
    );
    assert_eq!(found("above = '6%'"), [""; 0]);
    assert_eq!(found("above = '5%'\nleast = 101"), [""; 0]);
    assert_eq!(
        found("measure = 'success'\nbelow = 95\nby = ['event_name']"),
        [
            "event name order: 94 events delivered from 2026-01-01 01:00 to 02:00 UTC (limit 95), part of an incident from 2026-01-01 01:00 to 03:00 UTC; nearly all of its usual traffic has integration Webhook; over"
        ]
    );
    assert_eq!(found("measure = 'errors'\nabove = 5\nfor = 3"), [""; 0]);
}

/// Makes two sources with low counts at night. From hour 5 of a day (midnight in New York) on, the source "web" has a day off for
/// `hours` hours: only `left` percent of its usual events are left, for each of two event names.
fn with_day_off(day: usize, hours: usize, left: [u64; 2]) -> Fixture {
    with_uneven_day_off(day, hours, |_| left)
}

/// Like [`with_day_off`], but the percentages may differ from hour to hour.
fn with_uneven_day_off(day: usize, hours: usize, left: impl Fn(usize) -> [u64; 2]) -> Fixture {
    let mut fixture = Fixture::delivery(&["write_key", "event_name", "integration"]);
    let start = day * 24 + 5;
    fixture.fill(0..day * 24 + 60, |slot| {
        let of_day = match (slot + 19) % 24 {
            0..7 => 60,
            _ => 600,
        };
        let mut rows = Vec::new();
        for (place, source) in ["web", "server"].into_iter().enumerate() {
            for (event, name) in ["order", "page"].into_iter().enumerate() {
                for (number, integration) in ["Amazon S3", "Webhook"].into_iter().enumerate() {
                    let seed = slot * 8 + place * 4 + event * 2 + number;
                    let events = of_day + noise(seed as u64, of_day / 10);
                    let is_off = place == 0 && (start..start + hours).contains(&slot);
                    let events =
                        if is_off { events * left(slot - start)[event] / 100 } else { events };
                    rows.push((vec![source, name, integration], [events, 0, 0]));
                }
            }
        }
        rows
    });
    fixture
}

const DECLINES: &str =
    "window = '1h'\n[[rule]]\nname = 'less'\nkind = 'volume'\nby = ['write_key']\nside = 'low'
[[rule]]\nname = 'off'\nkind = 'day_off'\nby = ['write_key']\nseverity = 'info'\n";

/// Returns the rules of the findings, and how many hours after the beginning of the day they fired.
fn of_day_off(rules: &str, day: usize, fixture: &Fixture) -> Vec<(String, usize)> {
    let replay = replay(rules, fixture, day * 24, day * 24 + 60);
    let fired = replay.findings.iter().map(|finding| {
        let fired = finding.fired.unwrap().unix_ms() - fixture.instant(day * 24).unix_ms();
        (finding.rule.clone(), fired as usize / 3_600_000)
    });
    fired.collect()
}

#[test]
fn a_day_off_is_an_info_but_a_longer_or_uneven_decline_is_not() {
    // Day 48 is a Wednesday.
    let found = |hours, left| of_day_off(DECLINES, 48, &with_day_off(48, hours, left));
    let [(rule, fired)] = &found(24, [45, 45])[..] else {
        panic!("{:?}", found(24, [45, 45]));
    };
    assert_eq!(rule, "off");
    assert!((6..10).contains(fired), "{fired}");
    let long = found(50, [45, 45]);
    assert_eq!([&*long[0].0, &*long[1].0], ["off", "less"]);
    assert!((30..40).contains(&long[1].1), "{long:?}");
    // Nearly all events of one name, and nearly all events of both names, are missing.
    for left in [[100, 5], [2, 2]] {
        let found = found(24, left);
        let less = found.iter().find(|(rule, _)| rule == "less");
        assert!(less.is_some_and(|(_, fired)| *fired < 15), "{left:?}: {found:?}");
    }
}

#[test]
fn an_hour_may_be_too_low_by_chance_on_a_day_off() {
    // On a day off, a fifth of the usual events must be left.
    let found = |left: u64| {
        let left = |hour: usize| [if hour == 10 { left } else { 45 }; 2];
        let found = of_day_off(DECLINES, 48, &with_uneven_day_off(48, 24, left));
        found.into_iter().map(|(rule, _)| rule).collect::<Vec<_>>()
    };
    assert_eq!(found(19), ["off"]);
    assert_eq!(found(10), ["off", "less"]);
}

#[test]
fn a_steady_decline_that_begins_in_a_quiet_hour_is_not_a_day_off() {
    // From a quiet hour on, counts decline steadily for 30 hours.
    let day = 48;
    let start = day * 24 + 5;
    let mut fixture = Fixture::delivery(&["write_key", "event_name", "integration"]);
    fixture.fill(0..day * 24 + 60, |slot| {
        let usual = if (slot + 19) % 24 < 7 { 60 } else { 600 };
        let left = 100 - 2 * slot.saturating_sub(start).min(30) as u64;
        let row = |number: usize| {
            let seed = (slot * 4 + number) as u64;
            let events = (usual + noise(seed, usual / 10)) * left / 100;
            let name = ["order", "page"][number / 2];
            (vec!["web", name, ["Amazon S3", "Webhook"][number % 2]], [events, 0, 0])
        };
        (0..4).map(row).collect()
    });
    let found = of_day_off(DECLINES, day, &fixture);
    let less = found.iter().find(|(rule, _)| rule == "less");
    assert!(less.is_some_and(|(_, fired)| *fired < 24), "{found:?}");
}

#[test]
fn a_decline_in_the_busy_hours_is_not_a_day_off() {
    let mut fixture = with_day_off(48, 0, [100, 100]);
    let start = 48 * 24 + 60;
    fixture.fill(start..start + 24, |slot| {
        let events = 200 + noise(slot as u64, 20);
        ["web", "server"].map(|source| (vec![source, "page", "Webhook"], [events, 0, 0])).to_vec()
    });
    let replay = replay(DECLINES, &fixture, start, start + 24);
    let rules: Vec<&str> = replay.findings.iter().map(|finding| &*finding.rule).collect();
    assert_eq!(rules, ["less", "less"]);
}

#[test]
fn a_holiday_in_a_calendar_is_not_a_decline() {
    let fixture = with_day_off(48, 24, [45, 45]);
    let by_event =
        DECLINES.replace("by = ['write_key']\nside", "by = ['write_key', 'event_name']\nside");
    let without = of_day_off(&by_event, 48, &fixture);
    assert_eq!(without.iter().filter(|(rule, _)| rule == "less").count(), 2, "{without:?}");
    // Day 48 is the 18th of February.
    let calendar = |days: &str, values: &str| {
        format!(
            "{by_event}[[calendar]]\nwhere = {{ write_key = {values} }}\nzone = 'America/New_York'\nholidays = [{days}]\n"
        )
    };
    let declines = |calendar: &str| {
        let found = of_day_off(calendar, 48, &fixture);
        found.iter().filter(|(rule, _)| rule == "less").count()
    };
    assert_eq!(declines(&calendar("2026-02-18", "['web']")), 0);
    assert_eq!(declines(&calendar("2026-02-17", "['web']")), 2);
    assert_eq!(declines(&calendar("2026-02-18", "['server']")), 2);
}

#[test]
fn a_calendar_with_a_zone_follows_a_clock_change_at_once() {
    // If `moves` is true, events come an hour earlier in UTC from 2026-03-08 (day 66) on, when New York's clocks change.
    let found = |moves: bool| {
        let of_day = |slot: usize| {
            let hour = (slot + usize::from(moves && slot >= 66 * 24 + 7)) % 24;
            if (14..22).contains(&hour) { 1_000 } else { 50 }
        };
        let mut fixture = Fixture::delivery(&["event_name"]);
        fixture.fill(0..73 * 24, |slot| {
            vec![(vec!["order"], [of_day(slot) + noise(slot as u64, 20), 0, 0])]
        });
        let rules = "window = '1h'\n[[rule]]\nname = 'it'\nkind = 'volume'\nby = ['event_name']\nbaseline = { neighbours = 0 }
            [[calendar]]\nzone = 'America/New_York'";
        let findings = replay(rules, &fixture, 60 * 24, 73 * 24).findings;
        findings.len()
    };
    assert_eq!(found(true), 0);
    assert!(found(false) > 0);
}
