//! An outbox and a ledger that receive the revisions of a follow, in a process that may end at any moment.

include!("../../core/tests/doc/host.rs");

use std::collections::BTreeMap;

use proptest::prelude::*;
use tallyfold::text::is_unseen;
use tallyfold::{
    Aggregator, AggregatorOptions, Code, CountName, FollowOptions, FollowStep, Metric, Revision,
    TimeStep, Timestamp,
};
use tallyfold_export::{Addition, Export, ExportOptions, Format, Labels, Ledger, Outbox, Source};
use tallyfold_sandbox::{Outcome, SandboxEvent};

const DIMENSIONS: [Dimension; 2] = [Dimension::Integration, Dimension::Reason];

fn range() -> Window {
    Window::parse("2026-01-02T10:00:00Z", "2026-01-02T12:00:00Z").unwrap()
}

/// Sums of success, errors and filtered by the values of a group.
type Sums = BTreeMap<Vec<String>, [i128; 3]>;

fn options(state: Option<String>) -> FollowOptions {
    let quarter = TimeStep::parse("15m").unwrap();
    FollowOptions::new(Metric::EventDelivery, range().start(), &DIMENSIONS, quarter)
        .end(range().end())
        .state(state)
}

/// Records events late, in a window that ended less than the settling time ago.
fn arrive_late(host: &mut Host, minutes_ago: i64, count: u64) {
    let instant = Timestamp::from_unix_ms(host.now.unix_ms - minutes_ago * 60_000).unwrap();
    let event = SandboxEvent::with_defaults(
        instant.to_string(),
        Outcome::Success,
        "late".to_owned(),
        "wk".to_owned(),
        "late-integration".to_owned(),
    )
    .count(count);
    host.sandbox.record(&event).unwrap();
}

/// Drives a follow to its end. `take` receives each revision and the state after it. To end the process, it returns the
/// state from which a new process resumes.
fn follow(
    late: &[(i64, u64)],
    take: impl FnMut(&Revision, String) -> Option<Option<String>>,
) -> Host {
    follow_unless(|_, _| false, late, take)
}

/// Like [`follow`], with a service that refuses requests for a window while `is_refused` returns true.
fn follow_unless(
    is_refused: impl Fn(Window, Now) -> bool,
    late: &[(i64, u64)],
    mut take: impl FnMut(&Revision, String) -> Option<Option<String>>,
) -> Host {
    let mut host = Host::new().unwrap();
    host.now.unix_ms = range().start().unix_ms();
    let mut late = late.iter().cycle();
    let mut follow = host.machine.follow(&options(None)).unwrap();
    loop {
        match follow.next(host.now) {
            FollowStep::Drive(mut drive) => {
                let is_refused = is_refused(drive.window, host.now);
                if is_refused {
                    let fault = r#"{"kind":"status","status":400,"endpoint":"event_delivery"}"#;
                    host.sandbox.inject_json(fault).unwrap();
                }
                assert_eq!(host.drive(&mut drive.call).is_err(), is_refused);
                let settled = follow.settle(drive.task, &mut drive.call, host.now);
                if is_refused {
                    settled.unwrap_err();
                    continue;
                }
                let Some(revision) = settled.unwrap() else {
                    continue;
                };
                if let Some(state) = take(&revision, follow.state()) {
                    follow = host.machine.follow(&options(state)).unwrap();
                }
            }
            FollowStep::Wait { ms } => {
                if let Some((minutes_ago, count)) = late.next() {
                    arrive_late(&mut host, *minutes_ago, *count);
                }
                host.wait(ms.into());
            }
            FollowStep::Failed(error) => panic!("{error}"),
            FollowStep::Done => return host,
        }
    }
}

/// The sums that the service returns in the end.
fn truth(host: &mut Host) -> Sums {
    let query = QueryOptions::new(range(), &DIMENSIONS);
    let mut call = host.machine.event_delivery(&query).unwrap();
    host.drive(&mut call).unwrap();
    sums(&Source::from(&call.output().unwrap()))
}

/// The sums of all samples of an export, parsed from NDJSON.
fn sums(source: &Source) -> Sums {
    let mut export =
        Export::new(source.clone(), &ExportOptions::with_defaults(Format::Ndjson)).unwrap();
    let mut text = Vec::new();
    export.write_to(&mut text).unwrap();
    let mut sums = Sums::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let values = DIMENSIONS.map(|name| row[name.as_str()].as_str().unwrap().to_owned());
        let group = sums.entry(values.to_vec()).or_default();
        for (sum, name) in group.iter_mut().zip(CountName::ALL) {
            *sum += i128::from(row[name.as_str()].as_i64().unwrap());
        }
    }
    sums
}

fn add(sums: &mut Sums, more: Sums) {
    for (values, counts) in more {
        let group = sums.entry(values).or_default();
        for (sum, count) in group.iter_mut().zip(counts) {
            *sum += count;
        }
    }
}

/// The totals of a ledger.
fn totals(ledger: &Ledger) -> Sums {
    let counters = ledger.counters(&Labels::default(), None).unwrap();
    let mut totals = Sums::new();
    for (position, counter) in counters.iter().enumerate() {
        assert_eq!(counter.labels, DIMENSIONS.map(Dimension::as_str));
        for (values, count) in &counter.samples {
            totals.entry(values.clone()).or_default()[position] = i128::from(*count);
        }
    }
    totals
}

/// At which points a process crashes. Two points without a crash follow each of them, so that the follow makes progress.
fn crashes() -> impl Strategy<Value = Vec<bool>> {
    proptest::collection::vec(any::<bool>(), 1..20)
        .prop_map(|crashes| crashes.into_iter().flat_map(|crash| [crash, false, false]).collect())
}

fn late() -> impl Strategy<Value = Vec<(i64, u64)>> {
    // A window of 15 minutes settles an hour after its end, so events that are at most 45 minutes late are always read.
    proptest::collection::vec((1..45_i64, 1..100_u64), 1..8)
}

/// If the caller can't store a revision and goes on, or reads ahead, the outbox would not have the revision's counts.
#[test]
fn an_outbox_refuses_a_skipped_and_a_repeated_revision() {
    let mut all = Vec::new();
    let late = [(20, 3), (40, 4)];
    follow(&late, |revision, state| {
        all.push((revision.clone(), state));
        None
    });
    assert!(all.iter().any(|(revision, _)| revision.number > 0));
    let put = |outbox: &mut Outbox, place: usize, state: usize| {
        let (revision, state) = (&all[place].0, all[state].1.clone());
        outbox.put(revision, state, Format::Influx)
    };
    let mut outbox = Outbox::default();
    for place in 0..all.len() {
        for ahead in place + 1..all.len() {
            let mut refused = vec![put(&mut outbox.clone(), place, ahead)];
            // No state shows whether the first revision is the follow's first one.
            if place > 0 {
                refused.push(put(&mut outbox.clone(), ahead, ahead));
            }
            for refused in refused {
                assert_eq!(refused.unwrap_err().code(), Code::OutOfOrder, "{place} {ahead}");
            }
        }
        put(&mut outbox, place, place).unwrap();
        outbox.clear();
        let repeated = put(&mut outbox.clone(), place, place).unwrap_err();
        assert_eq!(repeated.code(), Code::OutOfOrder);
        assert_eq!(repeated.argument_name(), Some("revision"));
    }
}

/// With an earlier end, a follow settles the windows that it has opened. It does not open the windows after that end again later.
#[test]
fn an_outbox_accepts_a_follow_that_is_resumed_with_an_earlier_end() {
    let mut host = Host::new().unwrap();
    host.now.unix_ms = range().end().unix_ms() - 900_000;
    let mut outbox = Outbox::default();
    let mut sent = Vec::new();
    let earlier = Timestamp::parse("2026-01-02T10:30:00Z").unwrap();
    for (end, most) in [(range().end(), 7), (earlier, 100), (range().end(), 100)] {
        let options = options(outbox.state().map(str::to_owned)).end(end);
        let mut follow = host.machine.follow(&options).unwrap();
        let mut revisions = 0;
        while revisions < most {
            match follow.next(host.now) {
                FollowStep::Drive(mut drive) => {
                    host.drive(&mut drive.call).unwrap();
                    let settled = follow.settle(drive.task, &mut drive.call, host.now);
                    let Some(revision) = settled.unwrap() else {
                        continue;
                    };
                    outbox.put(&revision, follow.state(), Format::Influx).unwrap();
                    outbox.clear();
                    sent.push((revision.window, revision.number));
                    revisions += 1;
                }
                FollowStep::Wait { ms } => host.wait(ms.into()),
                FollowStep::Failed(error) => panic!("{error}"),
                FollowStep::Done => break,
            }
        }
    }
    let all = sent.len();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), all, "no revision twice");
    let windows = sent.iter().filter(|(_, number)| *number == 0);
    assert_eq!(windows.count(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_ledger_never_goes_down_and_ends_at_the_truth(crashes in crashes(), late in late()) {
        let mut crashes = crashes.into_iter().cycle();
        let mut stored = Ledger::default().to_json();
        let mut last = Sums::new();
        let mut host = follow(&late, |revision, state| {
            let mut ledger = Ledger::from_json(stored.as_bytes()).unwrap();
            ledger.add(revision, state).unwrap();
            if crashes.next() == Some(true) {
                // The process ends before the document is stored: the window is read again.
                return Some(Ledger::from_json(stored.as_bytes()).unwrap().state().map(str::to_owned));
            }
            stored = ledger.to_json();
            let totals = totals(&Ledger::from_json(stored.as_bytes()).unwrap());
            for (values, counts) in &last {
                assert!(counts.iter().zip(totals[values]).all(|(before, after)| *before <= after));
            }
            last = totals;
            crashes.next().filter(|crashes| *crashes).map(|_| ledger.state().map(str::to_owned))
        });
        prop_assert_eq!(last, truth(&mut host));
    }

    #[test]
    fn an_outbox_sends_each_revision_as_it_was(crashes in crashes(), late in late()) {
        let mut crashes = crashes.into_iter().cycle();
        let mut stored = Outbox::default().to_json();
        // The samples at a destination that keeps one value for each sample.
        let mut received: BTreeMap<(String, u32), Sums> = BTreeMap::new();
        let mut host = follow(&late, |revision, state| {
            let mut outbox = Outbox::from_json(stored.as_bytes()).unwrap();
            outbox.put(revision, state, Format::Influx).unwrap();
            if crashes.next() == Some(true) {
                return Some(Outbox::from_json(stored.as_bytes()).unwrap().state().map(str::to_owned));
            }
            stored = outbox.to_json();
            // The revision may be sent once more after a crash.
            for _ in 0..2 {
                let outbox = Outbox::from_json(stored.as_bytes()).unwrap();
                let (source, finished) = outbox.pending(Format::Influx).unwrap().unwrap();
                assert_eq!(finished, 0);
                let sample = (format!("{:?}", revision.window), revision.number);
                let changes = sums(&source);
                assert_eq!(changes, sums(&revision.into()));
                let before = received.insert(sample, changes.clone());
                assert!(before.is_none_or(|before| before == changes), "another value for the same sample");
            }
            outbox.clear();
            stored = outbox.to_json();
            crashes.next().filter(|crashes| *crashes).map(|_| outbox.state().map(str::to_owned))
        });
        let mut all = Sums::new();
        received.into_values().for_each(|changes| add(&mut all, changes));
        all.retain(|_, counts| *counts != [0; 3]);
        let mut truth = truth(&mut host);
        truth.retain(|_, counts| *counts != [0; 3]);
        prop_assert_eq!(all, truth);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_receiver_of_totals_sees_them_grow(crashes in crashes(), late in late(), seconds in proptest::collection::vec(-250..0_i64, 1..20)) {
        let mut crashes = crashes.into_iter().cycle();
        let mut seconds = seconds.into_iter().cycle();
        // The caller's clock. It is sometimes set back by less than five minutes.
        let mut latest = 1_767_400_000_000_i64;
        let mut ledger = Ledger::default();
        ledger.stamp(latest).unwrap();
        let began = Timestamp::from_unix_ms(latest).unwrap().unix_ns().to_string();
        let mut stored = ledger.to_json();
        let mut last = (0, Sums::new());
        let mut host = follow(&late, |revision, state| {
            let mut ledger = Ledger::from_json(stored.as_bytes()).unwrap();
            ledger.add(revision, state).unwrap();
            if crashes.next() == Some(true) {
                return Some(Ledger::from_json(stored.as_bytes()).unwrap().state().map(str::to_owned));
            }
            stored = ledger.to_json();
            // If a process ends while it sends, the next process sends the same totals.
            for _ in 0..2 {
                latest += 100_000;
                let clock = latest + seconds.next().unwrap_or_default() * 1_000;
                let mut ledger = Ledger::from_json(stored.as_bytes()).unwrap();
                ledger.stamp(clock).unwrap();
                stored = ledger.to_json();
                if ledger.settled_until().is_none() {
                    continue;
                }
                let (start, time, sums) = received(&ledger);
                assert_eq!(start, began);
                assert!(time > last.0, "{time} after {}", last.0);
                assert!(time >= clock as u64 * 1_000_000);
                for (values, counts) in &last.1 {
                    assert!(counts.iter().zip(sums[values]).all(|(before, after)| *before <= after));
                }
                last = (time, sums);
            }
            crashes.next().filter(|crashes| *crashes).map(|_| ledger.state().map(str::to_owned))
        });
        prop_assert_eq!(last.1, truth(&mut host));
    }
}

/// The start and the timestamp that all points of a ledger's OTLP messages have, and their sums.
fn received(ledger: &Ledger) -> (String, u64, Sums) {
    let options = ExportOptions::with_defaults(Format::OtlpJson);
    let mut export = Export::new(ledger.totals().unwrap(), &options).unwrap();
    let (mut piece, mut sums) = (Vec::new(), Sums::new());
    let (mut starts, mut times) = (BTreeMap::new(), BTreeMap::new());
    while export.next_piece(&mut piece).is_some() {
        let message: serde_json::Value = serde_json::from_slice(&piece).unwrap();
        let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        for (position, count) in CountName::ALL.iter().enumerate() {
            let metric = &metrics[position];
            let name = format!("tallyfold.event_delivery.by_integration_reason.{count}");
            assert_eq!(
                (metric["name"].as_str(), metric["unit"].as_str()),
                (Some(&*name), Some("{event}"))
            );
            let sum = &metric["sum"];
            assert_eq!(
                (sum["aggregationTemporality"].as_i64(), sum["isMonotonic"].as_bool()),
                (Some(2), Some(true))
            );
            for point in sum["dataPoints"].as_array().unwrap() {
                let text = |key: &str| point[key].as_str().unwrap().to_owned();
                starts.insert(text("startTimeUnixNano"), ());
                times.insert(text("timeUnixNano"), ());
                let label = |name: &str| {
                    let mut all = point["attributes"].as_array().unwrap().iter();
                    let found = all.find(|label| label["key"] == name);
                    found.map_or(String::new(), |label| {
                        label["value"]["stringValue"].as_str().unwrap().to_owned()
                    })
                };
                let values = DIMENSIONS.map(Dimension::as_str).map(label).to_vec();
                sums.entry(values).or_default()[position] = text("asInt").parse().unwrap();
            }
        }
    }
    let only = |texts: BTreeMap<String, ()>| {
        let texts: Vec<String> = texts.into_keys().collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        texts[0].clone()
    };
    (only(starts), only(times).parse().unwrap(), sums)
}

#[test]
fn a_ledger_has_one_start_and_its_time_never_goes_back() {
    const NOW: i64 = 1_767_400_000_000;
    let ns = |ms: i64| ms as u64 * 1_000_000;
    let (revision, state) = first();
    let mut ledger = Ledger::default();
    assert_eq!(ledger.totals().unwrap_err().code(), Code::OutOfOrder);
    ledger.stamp(NOW).unwrap();
    // There is no revision yet, so there is nothing to send.
    let options = ExportOptions::with_defaults(Format::Otlp);
    let mut empty = Export::new(ledger.totals().unwrap(), &options).unwrap();
    assert_eq!(empty.next_piece(&mut Vec::new()), None);
    let table = revision.table.windowed();
    ledger.add_rows(&table, addition(&state)).unwrap();
    let start = ns(NOW).to_string();
    for (clock, time) in [
        (NOW + 60_000, NOW + 60_000),
        // The same moment, and a clock that was set back.
        (NOW + 60_000, NOW + 60_001),
        (NOW - 200_000, NOW + 60_002),
        (NOW + 90_000, NOW + 90_000),
    ] {
        let mut next = Ledger::from_json(ledger.to_json().as_bytes()).unwrap();
        assert_eq!(next, ledger);
        next.stamp(clock).unwrap();
        let (began, at, sums) = received(&next);
        assert_eq!((began, at), (start.clone(), ns(time)));
        assert_eq!(sums, totals(&next));
        ledger = next;
    }
    // The clock is more than five minutes before the last stamp.
    let before = ledger.clone();
    let error = ledger.stamp(NOW - 210_001).unwrap_err();
    assert_eq!(error.code(), Code::InvalidCheckpoint);
    assert!(error.to_string().contains("from the future"), "{error}");
    assert_eq!(ledger, before);
    assert!(ledger.stamp(i64::MAX).is_err());
    // Another ledger has another start. A ledger that was never stamped begins with its first stamp.
    let mut other = Ledger::default();
    other.add_rows(&table, addition("other")).unwrap();
    other.stamp(NOW + 1).unwrap();
    assert_eq!(received(&other).0, ns(NOW + 1).to_string());
    for format in Format::ALL.iter().filter(|format| format.totals_delivery().is_err()) {
        let options = ExportOptions::with_defaults(*format);
        let error = Export::new(ledger.totals().unwrap(), &options).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedByFormat, "{format}");
    }
}

/// Adds a settled revision for a caller whose clock is right.
fn addition(state: &str) -> Addition {
    Addition { settled: true, state: state.to_owned(), allow_gap: false, clock_ahead_ms: 0 }
}

#[test]
fn a_revision_whose_time_is_unknown_is_not_added() {
    let (revision, state) = first();
    let rows = revision.table.windowed();
    let mut ledger = Ledger::default();
    ledger.stamp_at(1_767_400_000_000).unwrap();
    let before = ledger.clone();
    let ahead = || Addition { clock_ahead_ms: 1, ..addition(&state) };
    let error = ledger.add_at(&rows, ahead(), i64::MAX).unwrap_err();
    assert_eq!(error.code(), Code::InvalidTimestamp);
    assert_eq!(ledger, before);
    ledger.add_at(&rows, ahead(), 1_767_400_000_000).unwrap();
}

/// A caller adds revisions while its clock is three hours ahead. Then the clock is corrected.
#[test]
fn totals_have_the_time_of_the_service_if_the_clock_is_ahead() {
    const NOW: i64 = 1_767_400_000_000;
    const AHEAD: i64 = 3 * 3_600_000;
    let ns = |ms: i64| ms as u64 * 1_000_000;
    let (revision, state) = first();
    let rows = revision.table.windowed();
    let mut ledger = Ledger::default();
    // Before the first revision, the caller knows only its own wrong clock.
    ledger.stamp_at(NOW + AHEAD).unwrap();
    let ahead = Addition { clock_ahead_ms: AHEAD.unsigned_abs(), ..addition(&state) };
    ledger.add_at(&rows, ahead, NOW + AHEAD).unwrap();
    let start = ns(NOW).to_string();
    for (clock, time) in [
        (NOW + AHEAD + 60_000, NOW + 60_000),
        // The clock was corrected, and there was no revision since then.
        (NOW + 90_000, NOW + 60_001),
        (NOW + 120_000, NOW + 60_002),
    ] {
        ledger = Ledger::from_json(ledger.to_json().as_bytes()).unwrap();
        ledger.stamp_at(clock).unwrap();
        let (began, at, _) = received(&ledger);
        assert_eq!((began, at), (start.clone(), ns(time)));
    }
    let again = Addition { settled: false, ..addition("another") };
    ledger.add_at(&rows, again, NOW + 150_000).unwrap();
    ledger.stamp_at(NOW + 150_000).unwrap();
    assert_eq!(received(&ledger).1, ns(NOW + 150_000));
    // It is still an error if the clock is more than five minutes before the last stamp.
    let error = ledger.stamp_at(NOW - 210_001).unwrap_err();
    assert_eq!(error.code(), Code::InvalidCheckpoint);
}

#[test]
fn what_can_not_be_a_state_is_refused() {
    let (revision, state) = first();
    let changed = state.replacen("2026-01-02T10", "2026-01-02T11", 1);
    assert_ne!(changed, state);
    for (wrong, code) in [
        ("", Code::InvalidArgument),
        (" \n", Code::InvalidArgument),
        (&state[..state.len() - 1], Code::InvalidCheckpoint),
        (&changed, Code::InvalidCheckpoint),
    ] {
        let (mut ledger, mut outbox) = (Ledger::default(), Outbox::default());
        let added = ledger.add(&revision, wrong.to_owned());
        let put = outbox.put(&revision, wrong.to_owned(), Format::Influx);
        for error in [added.unwrap_err(), put.unwrap_err()] {
            assert_eq!((error.code(), error.argument_name()), (code, Some("state")), "{wrong}");
        }
        assert_eq!((ledger, outbox), (Ledger::default(), Outbox::default()));
    }
}

/// The first revision of a follow, and the state after it.
fn first() -> (Revision, String) {
    let mut first = None;
    follow(&[(5, 1)], |revision, state| {
        first.get_or_insert_with(|| (revision.clone(), state));
        None
    });
    first.unwrap()
}

#[test]
fn a_document_that_was_changed_is_refused() {
    let (revision, state) = first();
    let mut ledger = Ledger::default();
    ledger.add(&revision, state.clone()).unwrap();
    let mut outbox = Outbox::default();
    outbox.put(&revision, state, Format::Influx).unwrap();
    for (name, document) in [("ledger", ledger.to_json()), ("outbox", outbox.to_json())] {
        let read = |json: &[u8]| match name {
            "ledger" => Ledger::from_json(json).map(|_| ()),
            _ => Outbox::from_json(json).map(|_| ()),
        };
        assert_eq!(read(document.as_bytes()), Ok(()));
        for at in (0..document.len()).step_by(7) {
            let mut changed = document.clone().into_bytes();
            changed[at] ^= 4;
            assert_eq!(
                read(&changed).unwrap_err().code(),
                Code::InvalidCheckpoint,
                "{name}, byte {at}"
            );
            assert_eq!(
                read(&document.as_bytes()[..at]).unwrap_err().code(),
                Code::InvalidCheckpoint
            );
        }
        let other = document.replacen("/1\"", "/9\"", 1);
        assert_eq!(read(other.as_bytes()).unwrap_err().code(), Code::InvalidCheckpoint);
    }
}

#[test]
fn what_is_pending_is_not_replaced() {
    let (revision, state) = first();
    let mut outbox = Outbox::default();
    assert!(outbox.pending(Format::Influx).unwrap().is_none());
    outbox.put(&revision, state.clone(), Format::Influx).unwrap();
    let again = outbox.put(&revision, state, Format::Influx);
    assert_eq!(again.unwrap_err().code(), Code::OutOfOrder);
    outbox.finish(3, 0);
    let read = Outbox::from_json(outbox.to_json().as_bytes()).unwrap();
    assert_eq!(read, outbox);
    assert_eq!(read.pending(Format::Influx).unwrap().map(|(_, finished)| finished), Some(3));
    let other = read.pending(Format::Otlp).unwrap_err();
    assert_eq!(other.argument_name(), Some("format"));
    for format in [Format::Csv, Format::OpenMetrics, Format::StatsD] {
        let error = Outbox::default().pending(format).unwrap_err();
        assert_eq!(error.argument_name(), Some("format"));
    }
}

#[test]
fn only_settled_windows_are_counted_and_labels_are_added() {
    let mut ledger = Ledger::default();
    let mut open = 0;
    follow(&[(5, 1)], |revision, state| {
        let before = totals(&ledger);
        ledger.add(revision, state).unwrap();
        if !revision.settled {
            open += 1;
            assert_eq!(totals(&ledger), before);
        }
        None
    });
    assert!(open > 0);
    let cluster = Labels::new([("cluster".to_owned(), "a\"b".to_owned())]).unwrap();
    let text = ledger.openmetrics(&cluster, None).unwrap();
    let name = "tallyfold_event_delivery_by_integration_reason_success_settled_events";
    let head = format!(
        "# TYPE {name} counter\n# UNIT {name} events\n# HELP {name} Events delivered in all windows"
    );
    assert!(text.starts_with(&head), "{text}");
    assert!(text.contains(&format!(
        "{name}_total{{cluster=\"a\\\"b\",integration=\"late-integration\"}} "
    )));
    assert!(
        text.contains("_settled_until_seconds{cluster=\"a\\\"b\"} 1767355200.000\n# EOF\n"),
        "{text}"
    );
    let error =
        ledger.counters(&Labels::new([("reason".to_owned(), String::new())]).unwrap(), None);
    assert_eq!(error.unwrap_err().argument_name(), Some("labels"));
    assert_eq!(Ledger::default().openmetrics(&cluster, None).unwrap(), "# EOF\n");
}

#[test]
fn a_revision_is_added_once_and_groups_of_several_windows_are_added_up() {
    let (revision, state) = first();
    let mut ledger = Ledger::default();
    ledger.add(&revision, state.clone()).unwrap();
    let again = ledger.add(&revision, state).unwrap_err();
    assert_eq!((again.code(), again.argument_name()), (Code::OutOfOrder, Some("state")));

    let mut host = Host::new().unwrap();
    let day =
        CountTable::merge_all(&[host.quarter(36).unwrap(), host.quarter(37).unwrap()]).unwrap();
    let mut ledger = Ledger::default();
    ledger.add_rows(&day.windowed(), addition("state")).unwrap();
    assert_eq!(totals(&ledger), sums(&Source::from(&day)));

    assert_eq!(ledger.note(), None);
    let (mut exact, mut large) = (Ledger::default(), 1_u64 << 53);
    for (state, [start, end], is_inexact) in [("a", [0, 15], false), ("b", [15, 30], true)] {
        let body = format!(
            r#"{{"start":"2026-01-01T00:{start:02}:00Z","end":"2026-01-01T00:{end}:00Z","totalDelivered":"0","totalErrors":"0",
                "totalFiltered":"0","counts":[{{"success":"{large}","errors":"0","filtered":"0",
                "dimensions":{{"integration":"x","reason":""}}}}]}}"#
        );
        let mut aggregator = Aggregator::new(&DIMENSIONS, AggregatorOptions::default()).unwrap();
        aggregator.push(body.as_bytes()).unwrap();
        let rows = aggregator.finish().unwrap().windowed();
        let mut ledger = exact.clone();
        ledger.add_rows(&rows, addition(state)).unwrap();
        assert_eq!(ledger.note().is_some(), is_inexact);
        (exact, large) = (ledger, 1);
    }

    let wrong = Labels::new([("reason".to_owned(), "x".to_owned())]).unwrap();
    let error = Ledger::default().counters(&wrong, None).unwrap_err();
    assert_eq!(error.argument_name(), Some("labels"));
}

/// A document does not show that it is outdated. A sample that is sent again from it has the same revision, window and
/// labels, but another value if events arrived since then. So a destination that refuses another value for the same
/// sample detects it.
#[test]
fn an_older_outbox_sends_another_value_for_the_same_sample() {
    let window = Window::parse("2026-01-02T10:00:00Z", "2026-01-02T10:15:00Z").unwrap();
    let mut host = Host::new().unwrap();
    host.now.unix_ms = window.end().unix_ms();
    let mut read = |state: Option<String>| {
        let minutes = (host.now.unix_ms - window.start().unix_ms()) / 60_000;
        arrive_late(&mut host, minutes - 5, 1);
        host.wait(900_000);
        // The follow of one window returns no revision of another window, which the outbox would miss.
        let own = options(state).end(window.end());
        let mut follow = host.machine.follow(&own).unwrap();
        loop {
            match follow.next(host.now) {
                FollowStep::Drive(mut drive) => {
                    host.drive(&mut drive.call).unwrap();
                    let revision = follow.settle(drive.task, &mut drive.call, host.now);
                    let revision = revision.unwrap().unwrap();
                    if revision.window == window {
                        return (revision, follow.state());
                    }
                }
                step => panic!("{step:?}"),
            }
        }
    };
    let mut outbox = Outbox::default();
    let send = |outbox: &mut Outbox, (revision, state): (Revision, String)| {
        outbox.put(&revision, state, Format::Influx).unwrap();
        let (source, _) = outbox.pending(Format::Influx).unwrap().unwrap();
        let mut text = Vec::new();
        let options = ExportOptions::with_defaults(Format::Influx);
        let mut export = Export::new(source, &options).unwrap();
        export.write_to(&mut text).unwrap();
        outbox.clear();
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find(|line| line.contains("late-integration"));
        let parts: Vec<String> = line.unwrap().split(' ').map(str::to_owned).collect();
        (parts[0].clone(), parts[2].clone(), parts[1].clone())
    };
    let first = read(None);
    send(&mut outbox, first);
    let older = outbox.to_json();
    let newer = read(outbox.state().map(str::to_owned));
    let (series, time, value) = send(&mut outbox, newer);
    let mut outbox = Outbox::from_json(older.as_bytes()).unwrap();
    let again = read(outbox.state().map(str::to_owned));
    let (again_series, again_time, again_value) = send(&mut outbox, again);
    assert!(series.contains("revision=1"), "{series}");
    assert_eq!((again_series, again_time), (series, time));
    assert_ne!(again_value, value);
}

/// This also holds before the first revision. The error does not print control or invisible characters of the name.
#[test]
fn a_name_that_is_no_name_of_a_metric_is_refused() {
    let (revision, state) = first();
    let mut full = Ledger::default();
    full.add(&revision, state).unwrap();
    let long = "x".repeat(101);
    let injected = "a\"} 1\nown_total{x=\"";
    for name in [
        "",
        "1bad",
        "a b",
        "a.b",
        "a-b",
        "na\u{ef}ve",
        "a\0",
        "a\u{1b}[2J",
        "a\u{202e}b",
        injected,
        &long,
    ] {
        for ledger in [&Ledger::default(), &full] {
            let labels = Labels::default();
            let error = ledger.openmetrics(&labels, Some(name)).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{name:?}");
            assert_eq!(error.argument_name(), Some("name"));
            assert_eq!(ledger.counters(&labels, Some(name)), Err(error.clone()));
            let text = error.to_string();
            assert!(text.contains("want"), "{text}");
            assert!(text.len() < 200 && !text.contains(is_unseen), "{text}");
        }
        let options = ExportOptions::with_defaults(Format::OpenMetrics).name(name.to_owned());
        let error = Export::new(&revision.table, &options).map(|_| ()).unwrap_err();
        assert_eq!(error.argument_name(), Some("name"), "{name:?}");
    }
    let longest = "x".repeat(100);
    let text = full.openmetrics(&Labels::default(), Some(&longest));
    assert!(text.unwrap().contains(&format!("{longest}_by_integration_reason_success")));
}

/// A follow that begins without the state of the ledger returns windows again that were already added.
#[test]
fn a_window_is_added_once() {
    let mut ledger = Ledger::default();
    let mut host = follow(&[(5, 1)], |revision, state| {
        ledger.add(revision, state).unwrap();
        None
    });
    let whole = truth(&mut host);
    assert_eq!(totals(&ledger), whole);
    let before = ledger.to_json();
    let mut again = Ledger::from_json(before.as_bytes()).unwrap();
    let mut refused = 0;
    follow(&[(5, 1)], |revision, state| {
        let added = again.add(revision, format!("another {state}"));
        if revision.settled {
            let error = added.unwrap_err();
            assert_eq!(error.code(), Code::OverlappingCoverage);
            refused += 1;
        }
        None
    });
    assert!(refused > 1);
    assert_eq!(totals(&again), whole);
}

/// A caller that loses a settled window gets an error at the next revision, and can still resume from the state in the ledger.
#[test]
fn a_skipped_window_is_refused() {
    let mut ledger = Ledger::default();
    let (mut settled, mut refused) = (0, None);
    let mut host = follow(&[(5, 1)], |revision, state| {
        settled += u32::from(revision.settled);
        if settled == 3 && revision.settled && refused.is_none() {
            refused = Some(revision.window);
            return None;
        }
        match (ledger.add(revision, state), refused) {
            (Ok(()), _) => None,
            (Err(error), Some(window)) => {
                assert_eq!(error.code(), Code::OutOfOrder);
                assert_eq!(error.argument_name(), Some("revision"));
                let text = format!("{window:?} was skipped");
                assert!(error.message().starts_with(&text), "{error}");
                Some(ledger.state().map(str::to_owned))
            }
            (Err(error), None) => panic!("{error}"),
        }
    });
    assert!(refused.is_some());
    assert_eq!(totals(&ledger), truth(&mut host));

    // A follow that begins later, without the state of the ledger, has skipped the windows before it.
    let quarter = TimeStep::parse("15m").unwrap();
    let later = Timestamp::parse("2026-01-02T13:00:00Z").unwrap();
    let later = FollowOptions::new(Metric::EventDelivery, later, &DIMENSIONS, quarter);
    let state = host.machine.follow(&later).unwrap().state();
    let (revision, _) = first();
    let error = ledger.add(&revision, state).unwrap_err();
    assert_eq!(error.code(), Code::OutOfOrder);
}

/// All revisions of a follow, each with the state after it.
fn revisions() -> (Vec<(Revision, String)>, Host) {
    let mut all = Vec::new();
    let host = follow(&[(5, 1)], |revision, state| {
        all.push((revision.clone(), state));
        None
    });
    (all, host)
}

/// The first settled revision is lost, so only provisional revisions were added before it.
#[test]
fn a_first_window_that_is_skipped_is_refused() {
    let (all, host) = revisions();
    let lost = all.iter().position(|(revision, _)| revision.settled).unwrap();
    let mut ledger = Ledger::default();
    for (revision, state) in &all[..lost] {
        ledger.add(revision, state.clone()).unwrap();
    }
    let (next, state) = &all[lost + 1];
    let error = ledger.add(next, state.clone()).unwrap_err();
    assert_eq!(error.code(), Code::OutOfOrder);
    let text = format!("{:?} was skipped", all[lost].0.window);
    assert!(error.message().starts_with(&text), "{error}");

    // The error is the same if the ledger has only the state of a follow that had returned no revision yet.
    let mut ledger = Ledger::default();
    ledger.begin(host.machine.follow(&options(None)).unwrap().state());
    let error = ledger.add(next, state.clone()).unwrap_err();
    assert!(error.message().starts_with(&text), "{error}");
}

/// A caller that reads ahead stores a state that is further than the revision. Resumed from there, the follow would skip windows.
#[test]
fn a_first_revision_with_a_state_further_ahead_is_refused() {
    let (all, _) = revisions();
    let (mut accepted, mut refused) = (0, 0);
    let unsettled = |after: usize| {
        let newest = all[..=after].iter().rfind(|(revision, _)| revision.settled);
        newest.is_none_or(|(revision, _)| revision.window == all[0].0.window)
    };
    for (ahead, (_, state)) in all.iter().enumerate() {
        let mut ledger = Ledger::default();
        match ledger.add(&all[0].0, state.clone()) {
            // Nothing is lost: the totals contain only settled windows.
            Ok(()) => {
                assert!(unsettled(ahead) && (ahead == 0 || !all[0].0.settled), "{ahead}");
                accepted += 1;
            }
            Err(error) => {
                assert_eq!(error.code(), Code::OutOfOrder);
                assert_eq!(ledger, Ledger::default());
                refused += 1;
            }
        }
    }
    assert!(accepted > 0 && refused > accepted, "{accepted} {refused}");
}

/// The caller deliberately skips windows whose counts can't be read any more.
#[test]
fn a_gap_is_named_whole_and_allowed_on_purpose() {
    let (all, mut host) = revisions();
    let mut ledger = Ledger::default();
    let settled = |(revision, _): &&(Revision, String)| revision.settled;
    let (first, state) = all.iter().find(settled).unwrap();
    ledger.add(first, state.clone()).unwrap();
    // A process that loses the state begins three windows later.
    let mut after = all.iter().filter(settled).skip(4);
    let (next, state) = after.next().unwrap();
    let before = ledger.clone();
    let error = ledger.add(next, state.clone()).unwrap_err();
    let gap = Window::new(first.window.end(), next.window.start()).unwrap();
    let text = format!("{gap:?} was skipped");
    assert!(error.message().starts_with(&text), "{error}");
    assert_eq!(ledger, before);
    ledger.add_allowing_gap(next, state.clone()).unwrap();
    // After a restart, the gap is no longer an error.
    let mut ledger = Ledger::from_json(ledger.to_json().as_bytes()).unwrap();
    for (revision, state) in after {
        ledger.add(revision, state.clone()).unwrap();
    }
    let mut whole = totals(&ledger);
    for (lost, _) in all.iter().filter(settled).skip(1).take(3) {
        add(&mut whole, sums(&Source::from(&lost.table)));
    }
    assert_eq!(whole, truth(&mut host));
    // It is still an error to add a window twice.
    let error = ledger.add_allowing_gap(first, "another".to_owned());
    assert_eq!(error.unwrap_err().code(), Code::OverlappingCoverage);
}

/// A window that can't be read for hours isn't a gap, because the follow still has to settle it.
#[test]
fn a_window_that_can_not_be_read_delays_no_other_one() {
    let late = Window::parse("2026-01-02T10:15:00Z", "2026-01-02T10:30:00Z").unwrap();
    let until = Timestamp::parse("2026-01-02T18:00:00Z").unwrap().unix_ms();
    let is_refused = |window, now: Now| window == late && now.unix_ms < until;
    let mut ledger = Ledger::default();
    let mut order = Vec::new();
    let mut host = follow_unless(is_refused, &[], |revision, state| {
        ledger.add(revision, state).unwrap();
        order.extend(revision.settled.then_some(revision.window));
        // Each revision ends a process.
        let stored = Ledger::from_json(ledger.to_json().as_bytes()).unwrap();
        Some(stored.state().map(str::to_owned))
    });
    assert_eq!(order.len(), 8);
    assert_eq!(order.last(), Some(&late));
    assert_eq!(totals(&ledger), truth(&mut host));
}

/// A gap that was allowed is not reported again, even if a window before it is not settled yet.
#[test]
fn a_gap_is_allowed_once() {
    let late = Window::parse("2026-01-02T10:00:00Z", "2026-01-02T10:15:00Z").unwrap();
    let until = Timestamp::parse("2026-01-02T18:00:00Z").unwrap().unix_ms();
    let is_refused = |window, now: Now| window == late && now.unix_ms < until;
    let mut ledger = Ledger::default();
    let (mut settled, mut lost) = (0, 0);
    follow_unless(is_refused, &[], |revision, state| {
        settled += i32::from(revision.settled);
        if revision.settled && settled == 2 {
            return None;
        }
        match ledger.add(revision, state.clone()) {
            Ok(()) => {}
            Err(_) if lost == 0 => {
                lost += 1;
                ledger.add_allowing_gap(revision, state).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        None
    });
    assert_eq!((settled, lost), (8, 1));
}

/// A caller with its own states must add windows in order, or allow the gap.
#[test]
fn a_gap_is_refused_whatever_the_state_is() {
    let (all, _) = revisions();
    let settled: Vec<_> = all.iter().filter(|(revision, _)| revision.settled).collect();
    let mut ledger = Ledger::default();
    let mut add = |at: usize| ledger.add(&settled[at].0, format!("my state {at}"));
    add(0).unwrap();
    add(1).unwrap();
    assert_eq!(add(3).unwrap_err().code(), Code::OutOfOrder);
    add(2).unwrap();
    add(3).unwrap();
    // This is the truncated state of a follow.
    let (next, state) = settled[4];
    let error = ledger.add(next, state[..state.len() - 1].to_owned());
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.argument_name()), (Code::InvalidCheckpoint, Some("state")));
    ledger.add(next, state.clone()).unwrap();
}

#[test]
fn windows_without_a_millisecond_of_their_own_are_refused_where_times_are_milliseconds() {
    let body = |start: &str, end: &str| {
        format!(
            r#"{{"start":"2026-01-01T00:{start}Z","end":"2026-01-01T00:{end}Z","totalDelivered":"0",
                "totalErrors":"0","totalFiltered":"0","counts":[]}}"#
        )
    };
    let table = |start: &str, end: &str| {
        let mut aggregator = Aggregator::new(&DIMENSIONS, AggregatorOptions::default()).unwrap();
        aggregator.push(body(start, end).as_bytes()).unwrap();
        aggregator.finish().unwrap()
    };
    for format in [Format::OpenMetrics, Format::RemoteWrite, Format::RemoteWrite2, Format::Influx] {
        let options = ExportOptions::with_defaults(format);
        let begin = |start, end| Export::new(&table(start, end), &options).map(|_| ());
        assert_eq!(begin("00:00", "15:00"), Ok(()));
        assert_eq!(begin("14:59.9995", "15:00.0005"), Ok(()));
        let error = begin("15:00.0001", "15:00.0005").unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedByFormat, "{format}");
    }
}

#[test]
fn samples_in_doubt_stay_in_an_outbox_until_they_are_acknowledged() {
    let (revision, state) = first();
    let mut outbox = Outbox::default();
    outbox.put(&revision, state, Format::OtlpJson).unwrap();
    outbox.finish(2, 2);
    let stored = |outbox: &Outbox| Outbox::from_json(outbox.to_json().as_bytes()).unwrap();
    outbox = stored(&outbox);
    assert_eq!(outbox.in_doubt(), 2);
    outbox.clear();
    outbox = stored(&outbox);
    assert!(outbox.pending_changes().is_none());
    assert_eq!(outbox.in_doubt(), 2);
    outbox.acknowledge(2);
    assert_eq!(stored(&outbox).in_doubt(), 0);
}
