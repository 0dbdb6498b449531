//! Checks after each window have the same findings as one replay, even for rules that compare with earlier weeks.

use crate::fixture::{Fixture, Row, checks, delivery, noise};
use tallyfold_health::{Finding, Rules, Status};

const DAY: usize = 24;
const START: usize = 43 * DAY;
const END: usize = START + 40;

const RULES: &str = r#"
window = "1h"
[[rule]]
name = "rate"
kind = "rate"
by = ["integration"]
[[rule]]
name = "volume"
kind = "volume"
by = ["integration"]
slow = "12h"
[[rule]]
name = "silent"
kind = "silent"
by = ["integration"]
[[rule]]
name = "vanished"
kind = "vanished"
by = ["integration"]
over = "6h"
history = "3d"
[[rule]]
name = "new"
kind = "new"
by = ["integration"]
history = "1w"
[[rule]]
name = "budget"
kind = "budget"
budget = "1%"
by = ["integration"]
"#;

fn hour(slot: usize) -> Vec<Row> {
    let since = slot.saturating_sub(START);
    let row = |name: &'static str, success: u64, errors: u64| (vec![name], [success, errors, 0]);
    let usual = 500 + noise(slot as u64, 40);
    let mut rows = vec![row("a", usual, noise(slot as u64 + 99, 6))];
    // "b" fails, "c" declines, "d" falls silent, and "e" is new.
    let fails = if slot >= START && (4..8).contains(&since) { 150 } else { 3 };
    rows.push(row("b", usual - fails, fails));
    let left = if slot >= START { 100 - since.min(30) as u64 } else { 100 };
    rows.push(row("c", usual * left / 100, 2));
    if slot < START || !(10..19).contains(&since) {
        rows.push(row("d", usual, 1));
    }
    if slot >= START + 20 {
        rows.push(row("e", 60, 0));
    }
    rows
}

/// Describes the findings that have a status.
fn described(findings: &[Finding], status: Status) -> Vec<String> {
    let of = findings.iter().filter(|finding| finding.status == status);
    let mut all: Vec<String> = of
        .map(|finding| {
            format!(
                "{} {:?} {} {:?} {:?}",
                finding.rule, finding.group, finding.since, finding.fired, finding.resolved
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn checks_after_each_window_have_the_findings_of_a_replay() {
    let mut fixture = Fixture::delivery(&["integration"]);
    fixture.fill(0..END, hour);
    let rules = Rules::parse(RULES).unwrap();
    let checks = checks(&rules, &fixture, START..=END);
    let table = fixture.table();
    let replay = rules.replay(&delivery(&table), fixture.range(START - DAY, END)).unwrap();
    let mut resolved: Vec<String> =
        checks.iter().flat_map(|check| described(&check.findings, Status::Resolved)).collect();
    resolved.sort();
    assert_eq!(resolved, described(&replay.findings, Status::Resolved));
    let firing = described(&checks.last().unwrap().findings, Status::Firing);
    assert_eq!(firing, described(&replay.findings, Status::Firing));
    for rule in rules.names() {
        assert!(
            replay.findings.iter().any(|finding| finding.rule == rule),
            "{rule} has no finding"
        );
    }
    // A late check has the same state, to the last digit of the expected counts.
    for end in [START + 6, START + 14, START + 30, END] {
        let late = crate::fixture::checks(&rules, &fixture, [START, end].into_iter());
        assert_eq!(late[1].state, checks[end - START].state);
    }
}

#[test]
fn extreme_counts_are_judged_without_a_panic() {
    for most in [u64::MAX / 48, u64::MAX / 1_000, 1] {
        let mut fixture = Fixture::delivery(&["integration"]);
        for slot in 0..40 {
            let events = if slot == 39 { 0 } else { most };
            fixture.add(slot, slot > 37, u64::MAX / 2, &[(vec!["a"], [events, events, events])]);
        }
        let rules = Rules::parse(RULES).unwrap();
        let replay = rules.replay(&delivery(&fixture.table()), fixture.range(0, 40)).unwrap();
        assert!(replay.findings.iter().all(|finding| finding.expected.is_finite()));
        let last = checks(&rules, &fixture, 39..=40).pop().unwrap();
        let mut numbers = last
            .findings
            .iter()
            .flat_map(|finding| [Some(finding.expected), finding.ln_p])
            .flatten();
        assert!(numbers.all(f64::is_finite));
    }
}

#[test]
fn windows_that_are_far_apart_need_little_memory() {
    let rules =
        Rules::parse(&format!("{RULES}\n[[rule]]\nname = 'off'\nkind = 'reconciliation'")).unwrap();
    let mut fixture = Fixture::delivery(&["integration"]);
    // Thousands of years lie between the second and the third window.
    for slot in [0, 1, 60_000_000, 60_000_001] {
        fixture.add(slot, false, 5, &[(vec!["a"], [10, 0, 0])]);
    }
    let replay = rules.replay(&delivery(&fixture.table()), fixture.range(0, 60_000_002)).unwrap();
    assert_eq!(replay.findings.len(), 1);
}

/// Returns the identifier and the numbers of a finding.
fn numbers(finding: &Finding) -> (String, f64, Option<f64>, u64, Option<u64>) {
    let Finding { id, expected, ln_p, low, high, .. } = finding;
    (id.clone(), *expected, *ln_p, *low, *high)
}

#[test]
fn more_history_than_needed_does_not_change_the_numbers() {
    // With two weeks instead of six, the test is faster.
    let by = "by = [\"integration\"]\n";
    let shorter = format!("{by}baseline = {{ weeks = 2 }}\n");
    let rules = RULES.replacen(by, &shorter, 3);
    let rules = Rules::parse(&rules).unwrap();
    let needed = rules.needs()[0].back_s as usize / 3_600;
    // The first check may come at any time of the day, although the variance is learned once a day.
    for first in [55 * DAY + 8, 60 * DAY] {
        let table = |from: usize| {
            let mut fixture = Fixture::delivery(&["integration"]);
            fixture.fill(from..first + 30, |slot| match slot < first {
                true => hour(slot % DAY),
                false => hour(slot + START - first),
            });
            fixture
        };
        let (exact, longer) = (table(first - needed), table(first - needed - 5 * DAY));
        let some = || [0, 1, 8, 21, 30].iter().map(|after| first + after);
        let (few, more) = (checks(&rules, &exact, some()), checks(&rules, &longer, some()));
        assert_eq!(few, more);
        let exact = checks(&rules, &exact, first..=first + 30);
        // A replay judges more windows at once, but with the same numbers.
        let replay = rules
            .replay(&delivery(&longer.table()), longer.range(first - 5 * DAY, first + 30))
            .unwrap();
        let mut compared = 0;
        for finding in &replay.findings {
            let fired = finding.fired.unwrap();
            let check = (first..).zip(&exact).find(|(slot, _)| longer.instant(*slot) == fired);
            if let Some((_, check)) = check {
                let found = check.findings.iter().find(|one| one.id == finding.id).unwrap();
                assert_eq!(numbers(found), numbers(finding));
                compared += 1;
            }
        }
        assert!(compared >= 5, "{compared}");
    }
}
