//! Rules files: how they are read, and the errors for invalid files and rules.

use proptest::prelude::*;
use tallyfold::text::Fraction;
use tallyfold::{Dimension, Metric, TimeStep};
use tallyfold_health::kinds::{
    Budget, Burn, New, Rate, Reconciliation, RuleKind, Silent, Threshold, Undelivered, Vanished,
    Volume,
};
use tallyfold_health::{Baseline, Measure, Rule, Rules, Severity, Side};

/// Returns the error message for an invalid file.
fn file_error(text: &str) -> String {
    let error = Rules::parse(text).expect_err(text);
    assert_eq!((error.code().as_str(), error.kind().as_str()), ("invalid_rules", "config"));
    error.message()
}

/// Returns the error message for an invalid rule. `lines` are the lines after the line with its kind.
fn rule_error(kind: &str, lines: &str) -> String {
    file_error(&format!("[[rule]]\nname = 'x'\nkind = '{kind}'\n{lines}"))
}

#[test]
fn errors_for_files_name_the_place_and_what_is_valid() {
    for (text, expected) in [
        ("x", "line 1, column 2: key with no value, expected `=`"),
        ("a = 1\na = 2", "line 2, column 1: duplicate key"),
        ("[[rules]]", "line 1, column 3: rules: there is no such key; did you mean rule?"),
        ("windwo = '15m'", "line 1, column 1: windwo: there is no such key; did you mean window?"),
        (
            "window = '7m'",
            "line 1, column 1: window: want a step that divides a day, such as 5m, 15m, 1h or 1d",
        ),
        (
            "window = 15",
            "line 1, column 1: window: want a step that divides a day, such as 5m, 15m, 1h or 1d",
        ),
        (
            "window = '1s'",
            "line 1, column 1: window: want a step that divides a day, such as 5m, 15m, 1h or 1d",
        ),
        ("rule = 1", "line 1, column 1: rule: want tables [[rule]]"),
        ("rule = [1]", "line 1, column 9: rule[0]: want tables [[rule]]"),
        ("[rule]\nname = 'x'", "line 1, column 2: rule: want tables [[rule]]"),
        ("[[rule]]", "line 1, column 1: rule[0]: the key kind is missing"),
        ("[[rule]]\nkind = 'rate'", "line 1, column 1: rule[0]: the key name is missing"),
        (
            "[[rule]]\nname = ''\nkind = 'rate'",
            "line 2, column 1: rule[0].name: want a name of 1 to 200 characters without control characters",
        ),
        (
            "[[rule]]\nname = \"a\\u0007\"\nkind = 'rate'",
            "line 2, column 1: rule[0].name: want a name of 1 to 200 characters without control characters",
        ),
        (
            "[[rule]]\nname = 'x'\nkind = 'rates'",
            "line 3, column 1: rule[0].kind: there is no such kind; did you mean rate?",
        ),
        (
            "[[rule]]\nname = 'x'\nkind = 'rate'\n[[rule]]\nname = 'x'\nkind = 'rate'",
            "line 5, column 1: rule[1].name: another rule has this name",
        ),
        ("labels = { team = 1 }", "line 1, column 12: labels.team: want text"),
        (
            "labels = 'x'",
            "line 1, column 1: labels: want texts by names, such as { team = \"data\" }",
        ),
        (
            "dimensions = ['reason']\n[[rule]]\nname = 'x y'\nkind = 'rate'\nby = ['integration']",
            "line 1, column 1: dimensions: the rule \"x y\" uses integration too",
        ),
        ("[[silence]]\nrule = 'x'", "line 2, column 1: silence[0].rule: there is no such rule"),
        (
            "[[rule]]\nname = 'integrations'\nkind = 'rate'\n[[silence]]\nrule = ['integration']",
            "line 5, column 1: silence[0].rule: there is no such rule; did you mean integrations?",
        ),
        (
            "[[silence]]\nfrom = 'tomorrow'",
            "line 2, column 1: silence[0].from: want a timestamp such as 2026-01-31T09:00:00Z",
        ),
        (
            "[[silence]]\nuntil = 2026-01-01",
            "line 2, column 1: silence[0].until: want a timestamp such as 2026-01-31T09:00:00Z",
        ),
        (
            "[[silence]]\nfrom = 2026-01-02T00:00:00Z\nuntil = 2026-01-01T00:00:00Z",
            "line 1, column 1: silence[0]: from must be before until",
        ),
        (
            "[[silence]]\nwhere = { integration = [] }",
            "line 2, column 11: silence[0].where.integration: want at least one value",
        ),
        (
            "[[silence]]\nwhere = { integrations = 'x' }",
            "line 2, column 11: silence[0].where.integrations: there is no such dimension; did you mean integration?",
        ),
        (
            "[[calendar]]\nzone = 'Europe/Berlin'\nrule = 'x'",
            "line 3, column 1: calendar[0].rule: there is no such rule",
        ),
        (
            "[[calendar]]\nzone = 'America/NewYork'",
            "line 2, column 1: calendar[0].zone: there is no such time zone; did you mean America/New_York?",
        ),
        (
            "[[calendar]]\nzone = 'Atlantis'",
            "line 2, column 1: calendar[0].zone: there is no such time zone; want a time zone such as \"America/New_York\"",
        ),
        (
            "[[calendar]]\nholidays = [2026-12-25, 2026-12-25T00:00:00Z]",
            "line 2, column 25: calendar[0].holidays[1]: want a list of dates, such as [2026-11-26, 2026-12-25]",
        ),
        (
            "[[calendar]]\nwhere = { write_key = 'web' }",
            "line 1, column 1: calendar[0]: want zone, holidays or both",
        ),
        (
            "[[rule]]\nname = 'x'\nkind = 'day_off'\nby = ['integration']",
            "line 4, column 1: rule[0].by: a day off is a decline of whole sources; want write_key, or no dimension",
        ),
        (
            "[[silence]]\nends = 2026-01-01T00:00:00Z",
            "line 2, column 1: silence[0].ends: there is no such key; want one of rule, where, from, until, comment",
        ),
    ] {
        assert_eq!(file_error(text), expected, "{text}");
    }
}

#[test]
fn errors_for_rules_name_the_place_and_what_is_valid() {
    for (kind, lines, expected) in [
        (
            "rate",
            "measur = 'errors'",
            "line 4, column 1: rule[0].measur: there is no such key; did you mean measure?",
        ),
        (
            "rate",
            "above = '5%'",
            "line 4, column 1: rule[0].above: there is no such key; want one of name, kind, metric, by, where, window, for, clear, severity, labels, note, runbook, measure, least, baseline, side, false_alarms, change",
        ),
        (
            "rate",
            "measure = 'errors'",
            "line 4, column 1: rule[0].measure: there is no such measure; want one of error_rate, filtered_rate",
        ),
        (
            "volume",
            "measure = 'error_rate'",
            "line 4, column 1: rule[0].measure: there is no such measure; want one of success, errors, filtered, events",
        ),
        (
            "volume",
            "by = 'integration'",
            "line 4, column 1: rule[0].by: want a list of dimensions, such as [\"integration\"]",
        ),
        (
            "volume",
            "by = ['integration', 'integrations']",
            "line 4, column 22: rule[0].by[1]: there is no such dimension; did you mean integration?",
        ),
        (
            "volume",
            "by = ['integration', 'integration']",
            "line 4, column 22: rule[0].by[1]: this dimension is repeated",
        ),
        (
            "volume",
            "metric = 'event_ingestion'\nby = ['reason']",
            "line 5, column 1: rule[0].by: event_ingestion does not have reason",
        ),
        (
            "volume",
            "metric = 'ingestion'",
            "line 4, column 1: rule[0].metric: there is no such metric; did you mean event_ingestion?",
        ),
        (
            "volume",
            "where = { reason = 1 }",
            "line 4, column 11: rule[0].where.reason: want text, or a list of texts",
        ),
        (
            "volume",
            "for = 0",
            "line 4, column 1: rule[0].for: want a number of windows, from 1 to 1000",
        ),
        (
            "volume",
            "clear = 2000",
            "line 4, column 1: rule[0].clear: want a number of windows, from 1 to 1000",
        ),
        (
            "volume",
            "severity = 'bad'",
            "line 4, column 1: rule[0].severity: there is no such severity; want one of info, warning, critical",
        ),
        (
            "volume",
            "severity = 'Critical'",
            "line 4, column 1: rule[0].severity: there is no such severity; did you mean critical?",
        ),
        (
            "volume",
            "least = -1",
            "line 4, column 1: rule[0].least: want a number of events, 1 or more",
        ),
        (
            "volume",
            "baseline = 6",
            "line 4, column 1: rule[0].baseline: want a table such as { weeks = 6, neighbours = 1 }",
        ),
        (
            "volume",
            "baseline = { week = 6 }",
            "line 4, column 14: rule[0].baseline.week: there is no such key; did you mean weeks?",
        ),
        (
            "volume",
            "baseline = { weeks = 9 }",
            "line 4, column 14: rule[0].baseline.weeks: want a number of weeks, from 1 to 8",
        ),
        (
            "volume",
            "side = 'up'",
            "line 4, column 1: rule[0].side: there is no such side; want one of both, high, low",
        ),
        (
            "volume",
            "false_alarms = 0",
            "line 4, column 1: rule[0].false_alarms: want a number of false alarms in 30 days, from 0.000001 to 100",
        ),
        (
            "volume",
            "false_alarms = 1e-1",
            "line 4, column 1: rule[0].false_alarms: want a number of false alarms in 30 days, from 0.000001 to 100",
        ),
        (
            "volume",
            "change = 0.2",
            "line 4, column 1: rule[0].change: want a share such as 5% or 0.5%",
        ),
        (
            "volume",
            "slow = '1 day'",
            "line 4, column 1: rule[0].slow: want a length of time such as 5m, 6h, 3d or 4w",
        ),
        ("volume", "note = 1", "line 4, column 1: rule[0].note: want text"),
        ("threshold", "", "line 1, column 1: rule[0]: want above or below, or both"),
        (
            "threshold",
            "above = 5",
            "line 4, column 1: rule[0].above: want a share such as 5% or 0.5%",
        ),
        (
            "threshold",
            "above = '0.05'",
            "line 4, column 1: rule[0].above: want a share such as 5% or 0.5%",
        ),
        (
            "threshold",
            "above = '101%'",
            "line 4, column 1: rule[0].above: want a share such as 5% or 0.5%",
        ),
        (
            "threshold",
            "measure = 'errors'\nabove = '5%'",
            "line 5, column 1: rule[0].above: want a number of events, 0 or more",
        ),
        (
            "threshold",
            "above = '5%'\nclear_below = '6%'",
            "line 5, column 1: rule[0].clear_below: want the key above, too, and at most its value",
        ),
        (
            "threshold",
            "above = '5%'\nclear_above = '6%'",
            "line 5, column 1: rule[0].clear_above: want the key below, too, and at least its value",
        ),
        ("budget", "", "line 1, column 1: rule[0]: the key budget is missing"),
        (
            "budget",
            "budget = '0%'",
            "line 4, column 1: rule[0].budget: want a share between 0% and 100%",
        ),
        (
            "budget",
            "budget = '1%'\nburn = []",
            "line 5, column 1: rule[0].burn: want one to ten burn rates",
        ),
        (
            "budget",
            "budget = '1%'\nburn = [{ rate = 2, long = '1h' }]",
            "line 5, column 9: rule[0].burn[0]: want a list such as [{ rate = 14.4, long = \"1h\", short = \"5m\" }]",
        ),
        (
            "budget",
            "budget = '1%'\nburn = [{ rate = 2, long = '1h', shorts = '5m' }]",
            "line 5, column 34: rule[0].burn[0].shorts: there is no such key; did you mean short?",
        ),
        (
            "budget",
            "budget = '1%'\nburn = [{ rate = -2, long = '1h', short = '5m' }]",
            "line 5, column 11: rule[0].burn[0].rate: want a multiple of the speed that the budget allows, such as 14.4",
        ),
        (
            "budget",
            "budget = '1%'\nburn = [{ rate = 2, long = '1h', short = '2h' }]",
            "line 5, column 9: rule[0].burn[0]: want short to be no longer than long",
        ),
        (
            "new",
            "history = 'long'",
            "line 4, column 1: rule[0].history: want a length of time such as 5m, 6h, 3d or 4w",
        ),
        (
            "undelivered",
            "metric = 'event_delivery'",
            "line 4, column 1: rule[0].metric: this kind of rule compares both endpoints; leave the key out",
        ),
        (
            "undelivered",
            "by = ['reason']",
            "line 4, column 1: rule[0].by: event_ingestion does not have reason",
        ),
        (
            "reconciliation",
            "by = ['integration']",
            "line 4, column 1: rule[0].by: totals are reported for all events together",
        ),
    ] {
        assert_eq!(rule_error(kind, lines), expected, "{kind} {lines}");
    }
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let text = "#".repeat(1024 * 1024 + 1);
    assert_eq!(file_error(&text), "want at most 1048576 bytes");
    assert!(file_error(&"[[rule]]\n".repeat(1_001)).contains("want at most 1000 of them"));
}

#[test]
fn the_standard_rules_need_both_endpoints_and_all_dimensions() {
    let rules = Rules::standard().unwrap();
    assert_eq!(rules, Rules::parse(Rules::STANDARD).unwrap());
    let [delivery, ingestion] = &rules.needs()[..] else { panic!("{:?}", rules.needs()) };
    assert_eq!(
        (delivery.metric, ingestion.metric),
        (Metric::EventDelivery, Metric::EventIngestion)
    );
    assert_eq!(delivery.dimensions, Dimension::ALL);
    assert_eq!(delivery.window_s, 900);
    assert!(delivery.back_s > 6 * 7 * 86_400);
}

#[test]
fn the_error_for_a_file_without_rules_names_the_place() {
    for (file, place) in [
        ("", "line 1, column 1"),
        ("window = '1h'\n[labels]\na = 'b'", "line 1, column 1"),
        ("window = '1h'\nrule = []", "line 2, column 1: rule"),
    ] {
        assert_eq!(
            Rules::parse(file).unwrap_err().to_string(),
            format!(
                "invalid_rules: {place}: there is no rule in this file; want one or more [[rule]]"
            )
        );
    }
}

#[test]
fn a_length_of_time_may_have_several_units() {
    let rule = |length: &str| {
        let line = format!("history = '{length}'");
        Rules::parse(&format!("[[rule]]\nname = 'x'\nkind = 'new'\n{line}"))
    };
    for length in ["90m", "1h30m", "5400s"] {
        assert!(rule(length).is_ok(), "{length}");
    }
    for length in ["1h30", "1500ms", "0s", "11w1000w", "1.5h"] {
        assert!(rule(length).is_err(), "{length}");
    }
}

#[test]
fn rules_from_values_equal_rules_from_a_file() {
    let file = "dimensions = ['write_key', 'integration', 'event_name', 'reason']
        labels = { team = 'data' }
        [[rule]]
        name = 'threshold'
        kind = 'threshold'
        measure = 'errors'
        above = 10
        clear_below = 5
        by = ['integration', 'write_key']
        where = { integration = ['b', 'a'] }
        window = '1h'
        for = 3
        clear = 4
        severity = 'critical'
        least = 7
        labels = { page = 'yes' }
        [[rule]]
        name = 'rate'
        kind = 'rate'
        metric = 'event_ingestion'
        measure = 'filtered_rate'
        side = 'high'
        [[rule]]
        name = 'volume'
        kind = 'volume'
        baseline = { weeks = 4, neighbours = 0 }
        false_alarms = 3
        change = '25%'
        slow = '1d'
        [[rule]]
        name = 'silent'
        kind = 'silent'
        [[rule]]
        name = 'vanished'
        kind = 'vanished'
        over = '12h'
        [[rule]]
        name = 'new'
        kind = 'new'
        history = '1w'
        [[rule]]
        name = 'budget'
        kind = 'budget'
        budget = '1%'
        burn = [{ rate = 14.4, long = '1h', short = '5m', severity = 'info' }]
        [[rule]]
        name = 'undelivered'
        kind = 'undelivered'
        [[rule]]
        name = 'reconciliation'
        kind = 'reconciliation'";
    let limits = Threshold::default().above(Fraction::new(10, 1)).clear_below(Fraction::new(5, 1));
    let baseline = Baseline::default().weeks(4).neighbours(0).false_alarms(3.0);
    let burn = Burn::new(Fraction::new(144, 10), 3_600, 300).severity(Severity::Info);
    let rules = Rules::new([
        Rule::new("threshold", limits)
            .measure(Measure::Errors)
            .by([Dimension::Integration, Dimension::WriteKey])
            .only(Dimension::Integration, ["b", "a"])
            .window(TimeStep::from_seconds(3_600).unwrap())
            .windows(3, 4)
            .severity(Severity::Critical)
            .least(7)
            .label("page", "yes"),
        Rule::new("rate", Rate::from(Baseline::default().side(Side::High)))
            .metric(Metric::EventIngestion)
            .measure(Measure::FilteredRate),
        Rule::new("volume", Volume::from(baseline.change(Fraction::new(25, 100))).slow(86_400)),
        Rule::new("silent", Silent::default()),
        Rule::new("vanished", Vanished::default().over(43_200)),
        Rule::new("new", New::default().history(604_800)),
        Rule::new("budget", Budget::new(Fraction::new(1, 100)).burns([burn])),
        Rule::new("undelivered", Undelivered::default()),
        Rule::new("reconciliation", Reconciliation::default()),
    ]);
    let rules = rules.unwrap().label("team", "data");
    let rules = rules.explained_by([
        Dimension::WriteKey,
        Dimension::Integration,
        Dimension::EventName,
        Dimension::Reason,
    ]);
    assert_eq!(rules.unwrap(), Rules::parse(file).unwrap());
}

#[test]
fn errors_for_values_name_what_is_valid() {
    let share = |percent| Fraction::new(percent, 100);
    let limit = || Rule::new("x", Threshold::default().above(share(5)));
    for (rule, expected) in [
        (Rule::new("x", Threshold::default()), "the rule \"x\": want above or below, or both"),
        (
            Rule::new("", Silent::default()),
            "the rule \"\": name: want a name of 1 to 200 characters without control characters",
        ),
        (
            Rule::new("x", Rate::default()).measure(Measure::Errors),
            "the rule \"x\": measure: want one of error_rate, filtered_rate",
        ),
        (
            limit().window(TimeStep::from_seconds(1).unwrap()),
            "the rule \"x\": window: want a minute or more",
        ),
        (limit().windows(1, 0), "the rule \"x\": clear: want a number of windows, from 1 to 1000"),
        (limit().least(0), "the rule \"x\": least: want a number of events, 1 or more"),
        (
            limit().metric(Metric::EventIngestion).by([Dimension::Reason]),
            "the rule \"x\": by: event_ingestion does not have reason",
        ),
        (
            limit().only(Dimension::Integration, [""; 0]),
            "the rule \"x\": where: want at least one value",
        ),
        (
            Rule::new("x", Undelivered::default()).metric(Metric::EventDelivery),
            "the rule \"x\": metric: this kind of rule compares both endpoints; leave the key out",
        ),
        (
            Rule::new("x", Budget::new(share(100))),
            "the rule \"x\": budget: want a share between 0% and 100%",
        ),
        (
            Rule::new("x", Budget::new(share(1)).burns([])),
            "the rule \"x\": burn: want one to ten burn rates",
        ),
        (
            Rule::new("x", Volume::from(Baseline::default().weeks(9))),
            "the rule \"x\": baseline: want 1 to 8 weeks and up to 8 neighbours",
        ),
        (
            Rule::new("x", Rate::from(Baseline::default().false_alarms(f64::NAN))),
            "the rule \"x\": false_alarms: want a number of false alarms in 30 days, from 0.000001 to 100",
        ),
    ] {
        let error = Rules::new([rule]).unwrap_err();
        assert_eq!((error.code().as_str(), error.message().as_str()), ("invalid_rules", expected));
    }
    let error = Rules::new([limit(), limit()]).unwrap_err();
    assert_eq!(error.message(), "the rule \"x\": another rule has this name");
    assert_eq!(Rules::new([]).unwrap_err().message(), "want 1 to 1000 rules");
    let rules = Rules::new([limit().by([Dimension::Integration])]).unwrap();
    let error = rules.explained_by([Dimension::Reason]).unwrap_err();
    assert_eq!(error.message(), "the rule \"x\" uses integration too");
}

#[test]
fn needs_cover_all_rules() {
    let rules = Rules::parse(
        "dimensions = ['write_key', 'integration']\nwindow = '1h'\n\
         [[rule]]\nname = 'a'\nkind = 'rate'\nby = ['integration']\nbaseline = { weeks = 4 }\n\
         [[rule]]\nname = 'b'\nkind = 'threshold'\nwindow = '90m'\nabove = '1%'\n",
    );
    let rules = rules.unwrap();
    let [need] = &rules.needs()[..] else { panic!("{:?}", rules.needs()) };
    assert_eq!(need.dimensions, [Dimension::WriteKey, Dimension::Integration]);
    assert_eq!(need.window_s, 1_800);
    // Four weeks to compare with, 29 days to learn how much counts vary, 36 hours for the longest sum, the day that a first check
    // judges, an hour for an early or late window, an hour for the window itself, and an hour for a clock change.
    assert_eq!(need.back_s, (4 * 7 + 29 + 1 + 1) * 86_400 + 15 * 3_600);
}

#[test]
fn the_examples_in_the_docs_are_valid_and_complete() {
    let docs = include_str!("../../docs/health-rules.md");
    let blocks: Vec<&str> =
        docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 3, "{}", blocks.len());
    for block in &blocks {
        Rules::parse(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    // Together, the examples have every key.
    for key in [
        "window",
        "dimensions",
        "labels",
        "name",
        "kind",
        "metric",
        "measure",
        "by",
        "where",
        "for",
        "clear",
        "severity",
        "least",
        "note",
        "above",
        "clear_below",
        "below",
        "clear_above",
        "baseline",
        "side",
        "false_alarms",
        "change",
        "slow",
        "over",
        "history",
        "budget",
        "burn",
        "from",
        "until",
        "comment",
    ] {
        let is_in = |block: &&str| {
            block.lines().any(|line| line.trim_start().starts_with(&format!("{key} = ")))
        };
        assert!(blocks.iter().any(is_in), "no example has {key}");
        assert!(docs.contains(&format!("`{key}`")), "the docs don't describe {key}");
    }
    for kind in RuleKind::ALL {
        assert!(docs.contains(&format!("kind = \"{kind}\"")), "no example has the kind {kind}");
    }
    assert!(docs.contains(Rules::STANDARD.trim()), "the docs have other standard rules");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        drop(Rules::parse(&text));
    }

    #[test]
    fn no_change_of_the_standard_rules_makes_the_reader_panic(
        at in any::<prop::sample::Index>(),
        length in 0..20_usize,
        by in "[\\[\\]{}='\"#,.a-z0-9\n%-]{0,6}",
    ) {
        let mut text = Rules::STANDARD.to_owned();
        let start = at.index(text.len());
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &by);
        drop(Rules::parse(&text));
    }
}
