//! A push to a destination that fails in every way: what arrives, and how often.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tallyfold::{
    Aggregator, AggregatorOptions, Code, CountTable, HostFailure, Kind, Now, Patience,
};
use tallyfold_export::{
    Addition, Export, ExportOptions, Format, Guarantee, Ledger, Push, PushOptions, PushStep,
    TargetHeaders,
};

/// A table with one row for each count.
fn table(counts: &[u64]) -> CountTable {
    let entries = counts.iter().enumerate().map(|(row, count)| {
        format!(
            r#"{{"success":"{count}","errors":"0","filtered":"0","dimensions":{{"integration":"i{row:03}"}}}}"#
        )
    });
    let entries: Vec<String> = entries.collect();
    let body = format!(
        r#"{{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:15:00Z","totalDelivered":"0","totalErrors":"0",
            "totalFiltered":"0","counts":[{}]}}"#,
        entries.join(",")
    );
    let mut aggregator = Aggregator::new(&["integration"], AggregatorOptions::default()).unwrap();
    aggregator.push(body.as_bytes()).unwrap();
    aggregator.finish().unwrap()
}

fn export(table: &CountTable, format: Format) -> Export {
    // The limit is so low that there are many messages.
    let options = ExportOptions::with_defaults(format).max_bytes(400);
    Export::new(table, &options).unwrap()
}

fn options(format: Format) -> PushOptions {
    PushOptions::with_defaults(match format {
        Format::DogStatsD => "udp://127.0.0.1:8125".to_owned(),
        _ => "http://127.0.0.1:9/write?db=x".to_owned(),
    })
}

/// What happens to a message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Taken,
    /// The destination accepts the message, and the connection breaks before the response.
    TakenUnheard,
    /// The request times out, and the destination has accepted nothing.
    Lost,
    /// There is no connection.
    NotSent,
    /// The destination accepts the message, and the process that sent it ends before it stores that.
    TakenAndCrashed,
    /// The process ends before anything is sent.
    Crashed,
    Refused(u16),
    /// The destination fails after it accepted the message.
    TakenAndFailed,
    TooLarge,
}

/// What has arrived: for InfluxDB the newest value of each point, for other formats the sum of its values.
#[derive(Default)]
struct Receiver {
    points: BTreeMap<String, u64>,
    adds: bool,
}

impl Receiver {
    fn take(&mut self, format: Format, body: &[u8]) {
        for (series, value) in read(format, body) {
            let point = self.points.entry(series).or_default();
            *point = if self.adds { *point + value } else { value };
        }
    }

    fn sum(&self) -> u64 {
        self.points.values().sum()
    }
}

/// The points of a message, each with its delivered events.
fn read(format: Format, body: &[u8]) -> Vec<(String, u64)> {
    let text = std::str::from_utf8(body).unwrap();
    if format == Format::Influx {
        let line = |line: &str| {
            let (series, rest) = line.split_once(" success=").unwrap();
            let (value, _) = rest.split_once('i').unwrap();
            (series.to_owned(), value.parse().unwrap())
        };
        return text.lines().map(line).collect();
    }
    let message: Value = serde_json::from_str(text).unwrap();
    let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let success = metrics.as_array().unwrap().iter();
    let success = success.filter(|metric| metric["name"].as_str().unwrap().ends_with(".success"));
    let points = success.flat_map(|metric| metric["sum"]["dataPoints"].as_array().unwrap());
    points
        .map(|point| {
            let series = point["attributes"].to_string();
            (series, point["asInt"].as_str().unwrap().parse().unwrap())
        })
        .collect()
}

/// Drives a push until it ends. Each message meets the next of these fates, and after a crash a new process resumes.
/// After the last fate, every message is accepted.
fn drive(format: Format, guarantee: Option<Guarantee>, counts: &[u64], fates: &[Fate]) -> Receiver {
    let table = table(counts);
    let mut receiver = Receiver { adds: format != Format::Influx, ..Receiver::default() };
    let mut fates = fates.iter().copied();
    let mut now = Now { monotonic_ms: 0, unix_ms: 1_767_225_600_000 };
    let mut noted = 0;
    'process: loop {
        let options =
            options(format).guarantee(guarantee).finished(noted).patience_ms(Patience::Endless);
        let mut push = Push::new(export(&table, format), &options).unwrap();
        loop {
            let body = match push.step(now) {
                Ok(PushStep::Send(message)) => message.body.to_vec(),
                Ok(PushStep::Wait { ms }) => {
                    now.monotonic_ms += u64::from(ms);
                    continue;
                }
                Ok(PushStep::Finished { samples, .. }) => {
                    noted = samples;
                    continue;
                }
                Ok(PushStep::Done) => return receiver,
                // The caller gets the error that ended the push, and then starts the push again.
                Err(_) => {
                    assert_eq!(noted, push.finished());
                    continue 'process;
                }
            };
            let answer = |status: u16, push: &mut Push| {
                if push.head(status, &[("retry-after", "7")]).unwrap() {
                    push.end().unwrap();
                }
            };
            match fates.next().unwrap_or(Fate::Taken) {
                Fate::Taken => {
                    receiver.take(format, &body);
                    answer(if format == Format::Influx { 204 } else { 200 }, &mut push);
                }
                Fate::TakenUnheard => {
                    receiver.take(format, &body);
                    push.failed(HostFailure::Network, "ECONNRESET").unwrap();
                }
                Fate::Lost => push.failed(HostFailure::Timeout, "").unwrap(),
                Fate::NotSent => push.failed(HostFailure::Network, "ECONNREFUSED").unwrap(),
                Fate::TakenAndCrashed => {
                    receiver.take(format, &body);
                    continue 'process;
                }
                Fate::Crashed => continue 'process,
                Fate::Refused(status) => answer(status, &mut push),
                Fate::TakenAndFailed => {
                    receiver.take(format, &body);
                    answer(502, &mut push);
                }
                Fate::TooLarge => answer(413, &mut push),
            }
        }
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        3 => Just(Fate::Taken),
        1 => Just(Fate::TakenUnheard),
        1 => Just(Fate::Lost),
        1 => Just(Fate::NotSent),
        1 => Just(Fate::TakenAndCrashed),
        1 => Just(Fate::Crashed),
        1 => Just(Fate::Refused(429)),
        1 => Just(Fate::Refused(503)),
        1 => Just(Fate::Refused(400)),
        1 => Just(Fate::TakenAndFailed),
        1 => Just(Fate::TooLarge),
    ];
    proptest::collection::vec(fate, 0..40)
}

proptest! {
    #[test]
    fn a_receiver_that_takes_points_again_has_each_exactly_once(
        counts in proptest::collection::vec(0..1_000_u64, 1..30), fates in fates(),
    ) {
        let receiver = drive(Format::Influx, None, &counts, &fates);
        prop_assert_eq!(receiver.points.len(), counts.len());
        prop_assert_eq!(receiver.sum(), counts.iter().sum::<u64>());
    }

    #[test]
    fn at_most_once_is_never_more_and_at_least_once_never_less(
        counts in proptest::collection::vec(1..1_000_u64, 1..30), fates in fates(),
    ) {
        let truth: u64 = counts.iter().sum();
        for guarantee in [None, Some(Guarantee::AtMostOnce)] {
            prop_assert!(drive(Format::OtlpJson, guarantee, &counts, &fates).sum() <= truth);
        }
        let receiver = drive(Format::OtlpJson, Some(Guarantee::AtLeastOnce), &counts, &fates);
        prop_assert!(receiver.sum() >= truth);
        prop_assert_eq!(receiver.points.len(), counts.len());
    }

    #[test]
    fn what_is_surely_refused_is_sent_again_whatever_the_guarantee(
        counts in proptest::collection::vec(1..1_000_u64, 1..30), fates in fates(),
    ) {
        let is_sure = |fate: &Fate| {
            matches!(fate, Fate::Taken | Fate::NotSent | Fate::Refused(_) | Fate::TooLarge)
        };
        let sure: Vec<Fate> = fates.into_iter().filter(is_sure).collect();
        let receiver = drive(Format::OtlpJson, Some(Guarantee::AtMostOnce), &counts, &sure);
        prop_assert_eq!(receiver.sum(), counts.iter().sum::<u64>());
    }
}

const START: Now = Now { monotonic_ms: 0, unix_ms: 1_767_225_600_000 };

fn at(monotonic_ms: u64) -> Now {
    Now { monotonic_ms, ..START }
}

/// A push whose first message is under way.
fn under_way(options: &PushOptions) -> Push {
    let mut push = Push::new(export(&table(&[1, 2, 3]), Format::Influx), options).unwrap();
    assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
    push
}

fn waits(push: &mut Push, now: Now) -> u32 {
    match push.step(now) {
        Ok(PushStep::Wait { ms }) => ms,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_receiver_that_asks_for_a_pause_gets_it() {
    let mut push = under_way(&options(Format::Influx));
    assert!(push.head(429, &[("Retry-After", "30")]).unwrap());
    push.end().unwrap();
    assert!((30_000..30_500).contains(&waits(&mut push, START)));
    assert!(waits(&mut push, at(29_999)) >= 1);
    assert!(matches!(push.step(at(31_000)), Ok(PushStep::Send(_))));
    assert_eq!(push.report().retries, 1);
}

#[test]
fn patience_ends() {
    let mut push = under_way(&options(Format::Influx).patience_ms(Patience::Milliseconds(10_000)));
    let mut now = START;
    let error = loop {
        push.head(503, &[]).unwrap();
        push.chunk(b"the disk is full").unwrap();
        push.end().unwrap();
        now = match push.step(now) {
            Ok(PushStep::Wait { ms }) => at(now.monotonic_ms + u64::from(ms)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        };
        assert!(matches!(push.step(now), Ok(PushStep::Send(_))));
    };
    assert_eq!((error.code(), error.status()), (Code::ServerError, Some(503)));
    assert_eq!(error.excerpt(), Some("the disk is full"));
    assert_eq!(push.trouble().unwrap().excerpt(), Some("the disk is full"));
    assert!((3..6).contains(&push.report().retries));
    assert!(now.monotonic_ms <= 10_000);
    // Every later step returns the error, too.
    assert!(push.step(now).is_err());
}

#[test]
fn patience_counts_the_time_that_a_message_takes() {
    let patient = options(Format::Influx).patience_ms(Patience::Milliseconds(3_000));
    for (takes_ms, tries) in [(30_000, 1), (3_000, 1), (1_000, 2)] {
        let mut push = under_way(&patient);
        let (mut now, mut tried) = (START, 1);
        let error = loop {
            push.failed(HostFailure::Timeout, "TimeoutError").unwrap();
            now = at(now.monotonic_ms + takes_ms);
            now = match push.step(now) {
                Ok(PushStep::Wait { ms }) => at(now.monotonic_ms + u64::from(ms)),
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            };
            assert!(matches!(push.step(now), Ok(PushStep::Send(_))));
            tried += 1;
        };
        assert_eq!((error.code(), tried), (Code::TimedOut, tries));
        assert_eq!(push.report().retries, tries - 1);
        assert!(now.monotonic_ms <= 3_000 + takes_ms);
        assert!(push.outcome().is_some_and(|outcome| outcome.is_err()));
    }
}

#[test]
fn a_refusal_ends_the_push_and_quotes_its_body_but_no_header() {
    let headers = vec!["Authorization".to_owned(), "Token canary-123456".to_owned()];
    let mut push =
        under_way(&options(Format::Influx).headers(TargetHeaders::new(headers).unwrap()));
    assert!(push.head(401, &[]).unwrap());
    push.chunk(b"bad credentials:\nToken canary-123456").unwrap();
    push.end().unwrap();
    let error = push.step(START).unwrap_err();
    assert_eq!(error.code(), Code::Forbidden);
    assert!(error.to_string().contains("bad credentials: ***"), "{error}");
    assert!(!format!("{error}{error:?}{push:?}").contains("canary"));
    assert_eq!(push.finished(), 0);
}

#[test]
fn what_is_partly_rejected_is_reported_and_not_sent_again() {
    let mut push = under_way(&options(Format::Influx));
    assert!(push.head(400, &[]).unwrap());
    push.chunk(br#"{"error":"partial write: field type conflict dropped=2"}"#).unwrap();
    push.end().unwrap();
    assert!(matches!(push.step(START), Ok(PushStep::Finished { .. })));
    let [rejected] = push.report().rejected.as_slice() else { panic!("one") };
    assert_eq!(rejected.points, Some(2));
    assert_eq!(rejected.message, "partial write: field type conflict dropped=2");

    for (format, body) in [
        (
            Format::OtlpJson,
            &br#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"old"}}"#[..],
        ),
        (Format::Otlp, b"\x0a\x07\x08\x03\x12\x03old"),
        (Format::Datadog, br#"{"errors":["old"]}"#),
    ] {
        let mut push = Push::new(export(&table(&[1]), format), &options(format)).unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Finished { samples: 1, .. })));
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        assert!(push.head(if format == Format::Datadog { 202 } else { 200 }, &[]).unwrap());
        push.chunk(body).unwrap();
        push.end().unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Done)), "{format}");
        assert_eq!(push.report().rejected[0].message, "old", "{format}");
    }
}

#[test]
fn one_sample_that_is_too_large_ends_the_push() {
    let mut push = under_way(&options(Format::Influx));
    let mut steps = 0;
    let error = loop {
        if push.head(413, &[]).unwrap() {
            push.end().unwrap();
        }
        match push.step(START) {
            Ok(PushStep::Send(_)) => steps += 1,
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(steps >= 1);
    assert_eq!(error.status(), Some(413));
    assert!(error.to_string().contains("single sample"), "{error}");
}

#[test]
fn an_address_that_can_not_be_used_is_refused_at_once() {
    let refused = |format: Format, options: PushOptions| {
        let error = Push::new(export(&table(&[1]), format), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        (error.code(), error.argument_name().unwrap_or_default().to_owned())
    };
    let url = |url: &str| PushOptions::with_defaults(url.to_owned());
    let address = (Code::InvalidBaseAddress, "url".to_owned());
    assert_eq!(refused(Format::Influx, url("influx.example/write")), address);
    assert_eq!(refused(Format::Influx, url("https://user:pass@influx.example/write")), address);
    assert_eq!(refused(Format::Influx, url("https://influx.example/write?db=a b")), address);
    assert_eq!(refused(Format::DogStatsD, url("http://127.0.0.1:8125")), address);
    assert_eq!(refused(Format::DogStatsD, url("udp://127.0.0.1")), address);
    let format = (Code::InvalidArgument, "format".to_owned());
    assert_eq!(refused(Format::Csv, url("https://files.example/")), format);
    let needless = options(Format::Influx).guarantee(Guarantee::AtMostOnce);
    assert_eq!(refused(Format::Influx, needless), (Code::InvalidArgument, "guarantee".to_owned()));
    let headers = || TargetHeaders::new(vec!["api-key".to_owned(), "k".to_owned()]).unwrap();
    let open =
        |allow_http| url("http://influx.example/write").headers(headers()).allow_http(allow_http);
    assert_eq!(refused(Format::Influx, open(false)), (Code::InsecureBaseAddress, "url".to_owned()));
    assert!(Push::new(export(&table(&[1]), Format::Influx), &open(true)).is_ok());
    // Without a header there is no secret to read.
    let plain = url("http://influx.example/write");
    assert!(Push::new(export(&table(&[1]), Format::Influx), &plain).is_ok());
}

#[test]
fn an_error_shows_only_the_origin_of_an_address() {
    for rest in ["/write?db=x&p=canary", "/services/T0/canary", "/canary"] {
        let address = format!("http://127.0.0.1:8086{rest}");
        let options = PushOptions::with_defaults(address).patience_ms(Patience::Milliseconds(0));
        let mut push = under_way(&options);
        push.failed(HostFailure::NotSent, "ECONNREFUSED").unwrap();
        let error = push.step(START).unwrap_err();
        assert!(error.to_string().contains("http://127.0.0.1:8086)"), "{error}");
        assert!(!format!("{error}{error:?}{push:?}").contains("canary"));
    }
}

#[test]
fn a_long_part_of_the_path_is_masked_in_what_a_destination_says() {
    let address = "http://127.0.0.1:9/services/T0/canary-0123456789";
    let mut push = under_way(&PushOptions::with_defaults(address.to_owned()));
    push.head(404, &[]).unwrap();
    push.chunk(b"no /services/T0/canary-0123456789 here").unwrap();
    push.end().unwrap();
    let error = push.step(START).unwrap_err();
    assert_eq!(error.excerpt(), Some("no /services/T0/*** here"));
}

/// A password is masked however short it is, and a server may quote it decoded.
#[test]
fn a_password_in_the_address_is_masked_in_what_a_destination_says() {
    for (query, body, said) in [
        (
            "db=events&u=me&p=hunter2",
            "POST /write?db=events&u=me&p=hunter2",
            "POST /write?db=events&u=me&p=***",
        ),
        ("u=me&P=abc", "wrong password for me: abc", "wrong password for me: ***"),
        ("p=a%20b%2Bc%21", "no a b+c! here, nor a%20b%2Bc%21", "no *** here, nor ***"),
        ("p=two+words", "no two words here, nor two+words", "no *** here, nor ***"),
        ("token=%zz", "no %zz here", "no *** here"),
        ("p=", "no password", "no password"),
    ] {
        let address = format!("http://127.0.0.1:9/write?{query}");
        let mut push = under_way(&PushOptions::with_defaults(address));
        push.head(400, &[]).unwrap();
        push.chunk(body.as_bytes()).unwrap();
        push.end().unwrap();
        let error = push.step(START).unwrap_err();
        assert_eq!(error.excerpt(), Some(said), "{query}");
    }
}

#[test]
fn a_push_that_is_driven_in_the_wrong_order_says_so() {
    let mut push = under_way(&options(Format::Influx));
    assert_eq!(push.step(START).unwrap_err().code(), Code::OutOfOrder);
    assert_eq!(push.end().unwrap_err().code(), Code::OutOfOrder);
    assert!(push.head(204, &[]).unwrap());
    assert_eq!(push.head(204, &[]).unwrap_err().code(), Code::OutOfOrder);
    push.end().unwrap();
    assert!(matches!(push.step(START), Ok(PushStep::Finished { .. })));
}

#[test]
fn what_is_refused_is_not_noted_as_finished_while_it_waits() {
    let otlp =
        || Push::new(export(&table(&[1]), Format::OtlpJson), &options(Format::OtlpJson)).unwrap();
    for refused in [Some(503), Some(429), None] {
        let mut push = otlp();
        let finished = |push: &mut Push, now| match push.step(now) {
            Ok(PushStep::Finished { samples, .. }) => samples,
            other => panic!("{other:?}"),
        };
        assert_eq!(finished(&mut push, START), 1);
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        match refused {
            Some(status) => {
                assert!(push.head(status, &[]).unwrap());
                push.end().unwrap();
            }
            None => push.failed(HostFailure::Network, "ECONNREFUSED").unwrap(),
        }
        assert_eq!(finished(&mut push, START), 0);
        let ms = waits(&mut push, START);
        // The sample is stored as finished again before it is sent again.
        assert_eq!(finished(&mut push, at(u64::from(ms))), 1);
        assert!(matches!(push.step(at(u64::from(ms))), Ok(PushStep::Send(_))));
    }
    // A route that is lost may have existed when the message was sent.
    let mut push = otlp();
    while !matches!(push.step(START), Ok(PushStep::Send(_))) {}
    push.failed(HostFailure::Network, "EHOSTUNREACH").unwrap();
    assert!(push.step(START).is_err());
    assert_eq!(push.report().unsure, 1);
}

#[test]
fn a_receiver_that_does_not_know_the_format_is_no_success() {
    let name = "X-Prometheus-Remote-Write-Samples-Written";
    for (written, is_taken) in [(None, false), (Some("0"), false), (Some("3"), true)] {
        let format = Format::RemoteWrite2;
        let mut push = Push::new(export(&table(&[1]), format), &options(format)).unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        let headers: Vec<(&str, &str)> =
            written.map(|written| (name, written)).into_iter().collect();
        assert!(push.head(204, &headers).unwrap());
        push.end().unwrap();
        assert_eq!(push.step(START).is_ok(), is_taken, "{written:?}");
        assert_eq!(push.report().samples, u64::from(is_taken));
    }
}

#[test]
fn secrets_are_masked_in_all_that_a_receiver_says() {
    let headers = vec!["authorization".to_owned(), "Bearer canary-123456".to_owned()];
    let options =
        PushOptions::with_defaults("http://127.0.0.1:9/write?db=x&p=password99".to_owned())
            .headers(TargetHeaders::new(headers).unwrap());
    for (status, body) in [
        (401, "the token canary-123456 and password99 are unknown"),
        (400, r#"{"error":"partial write: canary-123456 password99 dropped=1"}"#),
    ] {
        let mut push = Push::new(export(&table(&[1, 2]), Format::Influx), &options).unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        assert!(push.head(status, &[]).unwrap());
        push.chunk(body.as_bytes()).unwrap();
        push.end().unwrap();
        let ended = format!("{:?}", push.step(START).map(|_| ()));
        let said = format!("{:?} {ended}", push.report().rejected);
        assert!(said.contains("***"), "{said}");
        assert!(!said.contains("canary") && !said.contains("password99"), "{said}");
    }
    for name in ["p", "api-key", "authKey", "access_token"] {
        let url = format!("http://influx.example/write?db=x&{name}=password99");
        let open = PushOptions::with_defaults(url);
        assert!(!format!("{open:?}").contains("password99"), "{open:?}");
        let error = Push::new(export(&table(&[1]), Format::Influx), &open).unwrap_err();
        assert_eq!(error.code(), Code::InsecureBaseAddress, "{name}");
    }
}

#[test]
fn a_datagram_that_is_too_large_is_cut_in_two() {
    let format = Format::DogStatsD;
    let options = options(format);
    let three = Export::new(&table(&[1, 2, 3]), &ExportOptions::with_defaults(format)).unwrap();
    let mut push = Push::new(three, &options).unwrap();
    let mut sizes = Vec::new();
    for detail in ["EMSGSIZE", "EMSGSIZE"] {
        loop {
            match push.step(START) {
                Ok(PushStep::Send(message)) => break sizes.push(message.body.len()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let is_last = sizes.len() == 2;
        push.failed(HostFailure::Network, detail).unwrap();
        if is_last {
            while push.step(START).is_ok() {}
        }
    }
    assert!(sizes[1] < sizes[0], "{sizes:?}");
    assert_eq!((push.finished(), push.report().unsure), (0, 0));
}

#[test]
fn a_number_of_finished_samples_that_there_are_not_is_refused() {
    let options = options(Format::Influx).finished(4);
    let error = Push::new(export(&table(&[1, 2, 3]), Format::Influx), &options).unwrap_err();
    assert_eq!(error.argument_name(), Some("finished"));
}

/// The formats that are sent as requests.
const OVER_HTTP: [Format; 6] = [
    Format::RemoteWrite,
    Format::RemoteWrite2,
    Format::Influx,
    Format::Otlp,
    Format::OtlpJson,
    Format::Datadog,
];

/// A push of one sample whose message has got this response.
fn answered(format: Format, status: u16, media_type: &str, body: &[u8]) -> Push {
    let mut push = Push::new(export(&table(&[1]), format), &options(format)).unwrap();
    while !matches!(push.step(START), Ok(PushStep::Send(_))) {}
    let headers = [("Content-Type", media_type)];
    assert!(push.head(status, &headers[..usize::from(!media_type.is_empty())]).unwrap());
    if !body.is_empty() {
        push.chunk(body).unwrap();
    }
    push.end().unwrap();
    push
}

/// The result of a push that needs no waits.
fn ended(push: &mut Push) -> Result<(), tallyfold::Error> {
    loop {
        match push.step(START) {
            Ok(PushStep::Done) => return Ok(()),
            Ok(PushStep::Finished { .. }) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn a_web_page_is_nobodys_yes() {
    let page = b"\n<!DOCTYPE html><title>Sign in</title>";
    for format in OVER_HTTP {
        for (status, media_type, body) in [
            (200, "text/html; charset=utf-8", &page[..]),
            (200, "Text/HTML", b""),
            (202, "application/json", page),
            (204, "text/html", b""),
            (200, "", page),
            (200, "", b"<html>"),
        ] {
            let mut push = answered(format, status, media_type, body);
            let error = ended(&mut push).unwrap_err();
            let at = format!("{format} {status} {media_type}: {error}");
            assert_eq!((error.code(), error.status()), (Code::HtmlResponse, Some(status)), "{at}");
            // The sample is neither finished nor in doubt, so it is not lost.
            assert_eq!((push.finished(), push.report().unsure), (0, 0), "{at}");
            assert_eq!(push.report().samples, 0, "{at}");
        }
    }
}

#[test]
fn each_receiver_says_yes_in_its_own_way() {
    let (json, protobuf) = ("application/json", "application/x-protobuf");
    for (format, status, media_type, body, is_yes) in [
        (Format::RemoteWrite, 204, "", &b""[..], true),
        (Format::RemoteWrite, 200, "", b"", true),
        (Format::RemoteWrite, 200, "text/plain", b"\n", true),
        (Format::RemoteWrite, 200, json, b"{}", false),
        (Format::RemoteWrite, 200, "text/plain", b"hello", false),
        (Format::Influx, 204, "", b"", true),
        (Format::Influx, 200, json, br#"{"results":[]}"#, false),
        (Format::Influx, 200, "", b"", false),
        (Format::Datadog, 202, json, br#"{"errors":[]}"#, true),
        (Format::Datadog, 202, "", b"", true),
        (Format::Datadog, 202, json, br#"{"status":"queued"}"#, false),
        (Format::Datadog, 200, json, br#"{"errors":[]}"#, false),
        (Format::Otlp, 200, protobuf, b"", true),
        (Format::Otlp, 200, "", b"", true),
        (Format::Otlp, 200, protobuf, b"\x0a\x00", true),
        (Format::Otlp, 200, protobuf, b"hello", false),
        (Format::Otlp, 200, "text/plain", b"\x0a\x00", false),
        (Format::Otlp, 202, protobuf, b"", false),
        (Format::OtlpJson, 200, "application/json; charset=utf-8", b"{}", true),
        (Format::OtlpJson, 200, json, br#"{"partialSuccess":{}}"#, true),
        (Format::OtlpJson, 200, json, br#"{"status":"ok"}"#, false),
        (Format::OtlpJson, 200, json, b"ok", false),
        (Format::OtlpJson, 204, "", b"", false),
        // A negative number of rejected points is invalid.
        (
            Format::OtlpJson,
            200,
            json,
            br#"{"partialSuccess":{"rejectedDataPoints":"-3","errorMessage":"old"}}"#,
            false,
        ),
        (Format::OtlpJson, 200, json, br#"{"partialSuccess":{"rejectedDataPoints":-3}}"#, false),
        (
            Format::OtlpJson,
            200,
            json,
            br#"{"partialSuccess":{"rejectedDataPoints":"some"}}"#,
            false,
        ),
        (Format::OtlpJson, 200, json, br#"{"partialSuccess":{"rejectedDataPoints":"0"}}"#, true),
        (Format::OtlpJson, 200, json, br#"{"partialSuccess":null}"#, true),
        (
            Format::Otlp,
            200,
            protobuf,
            b"\x0a\x0b\x08\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            false,
        ),
    ] {
        let mut push = answered(format, status, media_type, body);
        let ended = ended(&mut push);
        let at = format!("{format} {status} {media_type} {ended:?}");
        assert_eq!(ended.is_ok(), is_yes, "{at}");
        assert_eq!(push.report().samples, u64::from(is_yes), "{at}");
        assert_eq!(push.finished(), u64::from(is_yes), "{at}");
        if let Err(error) = ended {
            assert_eq!(error.code(), Code::UnexpectedStatus);
            assert!(
                error.to_string().contains("is this the address of the destination?"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_yes_whose_body_breaks_off_is_in_doubt() {
    for (format, unsure) in [(Format::Otlp, 1), (Format::RemoteWrite, 0)] {
        let mut push = Push::new(export(&table(&[1]), format), &options(format)).unwrap();
        while !matches!(push.step(START), Ok(PushStep::Send(_))) {}
        assert!(push.head(200, &[]).unwrap());
        push.failed(HostFailure::Network, "ECONNRESET").unwrap();
        assert_eq!((push.report().samples, push.report().unsure), (0, unsure), "{format}");
        // Prometheus accepts the same message again.
        let is_again = loop {
            match push.step(START) {
                Ok(PushStep::Finished { .. }) => {}
                Ok(PushStep::Wait { .. }) => break true,
                _ => break false,
            }
        };
        assert_eq!(is_again, unsure == 0, "{format}");
    }
}

#[test]
fn a_message_that_a_server_has_failed_on_is_not_sent_twice() {
    // OTLP names 429, 502, 503 and 504 as the statuses after which a message may be sent again.
    for format in [Format::Otlp, Format::OtlpJson, Format::Datadog] {
        let mut push = answered(format, 500, "text/plain", b"boom");
        let error = ended(&mut push).unwrap_err();
        assert_eq!((error.code(), error.excerpt()), (Code::ServerError, Some("boom")));
        assert_eq!((push.finished(), push.report().unsure), (1, 1), "{format}");
    }
    let options = options(Format::Otlp).guarantee(Guarantee::AtLeastOnce);
    for (status, is_again) in
        [(500, false), (501, false), (502, true), (503, true), (504, true), (429, true)]
    {
        let mut push = Push::new(export(&table(&[1]), Format::Otlp), &options).unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        assert!(push.head(status, &[]).unwrap());
        push.end().unwrap();
        let step = push.step(START);
        assert_eq!(matches!(step, Ok(PushStep::Wait { .. })), is_again, "{status}: {step:?}");
    }
}

#[test]
fn totals_may_be_sent_again() {
    let mut ledger = Ledger::default();
    let rows = table(&[1, 2]).windowed();
    let addition =
        Addition { settled: true, state: "state".to_owned(), allow_gap: false, clock_ahead_ms: 0 };
    ledger.add_rows(&rows, addition).unwrap();
    ledger.stamp(1_767_300_000_000).unwrap();
    let totals = || {
        let options = ExportOptions::with_defaults(Format::Otlp);
        Export::new(ledger.totals().unwrap(), &options).unwrap()
    };
    let guaranteed = options(Format::Otlp).guarantee(Guarantee::AtMostOnce);
    let error = Push::new(totals(), &guaranteed).map(|_| ()).unwrap_err();
    assert_eq!(error.argument_name(), Some("guarantee"));
    // It is unknown whether the destination accepted these totals.
    for failure in [HostFailure::Network, HostFailure::Timeout] {
        let mut push = Push::new(totals(), &options(Format::Otlp)).unwrap();
        assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
        push.failed(failure, "ECONNRESET").unwrap();
        let ms = waits(&mut push, START);
        let message = push.step(at(u64::from(ms)));
        assert!(matches!(message, Ok(PushStep::Send(_))), "{message:?}");
        push.head(200, &[]).unwrap();
        push.end().unwrap();
        assert_eq!(ended(&mut push), Ok(()));
        assert_eq!((push.finished(), push.report().unsure), (2, 0));
    }
    // OTLP forbids a retry after 500. The next totals include these.
    let mut push = Push::new(totals(), &options(Format::Otlp)).unwrap();
    assert!(matches!(push.step(START), Ok(PushStep::Send(_))));
    assert!(push.head(500, &[]).unwrap());
    push.end().unwrap();
    assert_eq!(ended(&mut push).unwrap_err().code(), Code::ServerError);
    assert_eq!((push.finished(), push.report().unsure), (0, 0));
}

#[test]
fn what_was_never_sent_is_not_in_doubt() {
    for (failure, detail, code) in [
        (HostFailure::NotSent, "ETIMEDOUT", Code::TimedOut),
        (HostFailure::NotSent, "SSLError", Code::NetworkFailed),
        (HostFailure::NotSent, "EHOSTUNREACH", Code::NetworkFailed),
        (HostFailure::NotSent, "ProxyError", Code::NetworkFailed),
        (HostFailure::NotSent, "Error", Code::NetworkFailed),
    ] {
        let options = options(Format::OtlpJson).patience_ms(Patience::Milliseconds(10_000));
        let mut push = Push::new(export(&table(&[1]), Format::OtlpJson), &options).unwrap();
        let mut now = START;
        let error = loop {
            match push.step(now) {
                Ok(PushStep::Send(_)) => push.failed(failure, detail).unwrap(),
                Ok(PushStep::Wait { ms }) => now = at(now.monotonic_ms + u64::from(ms)),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), code, "{error}");
        assert!(push.report().retries > 1);
        assert_eq!((push.finished(), push.report().unsure), (0, 0), "{detail}");
    }
}

#[test]
fn prometheus_that_finds_a_sample_too_old_is_not_asked_for_15_minutes() {
    // Before 2.49 it answers 500, and later 400.
    for status in [500, 400] {
        for format in [Format::RemoteWrite, Format::RemoteWrite2] {
            let mut push =
                answered(format, status, "text/plain; charset=utf-8", b"too old sample\n");
            let error = ended(&mut push).unwrap_err();
            assert_eq!(error.excerpt(), Some("too old sample"), "{format} {status}");
            assert_eq!(push.report().retries, 0);
        }
    }
    let mut push = answered(Format::RemoteWrite, 500, "text/plain", b"the disk is full");
    assert!(matches!(push.step(START), Ok(PushStep::Wait { .. })));
}

/// Drives a push that stores its samples in doubt until its next message is being sent. Returns what was stored last.
fn until_sent(push: &mut Push) -> Option<(u64, u64)> {
    let mut stored = None;
    loop {
        match push.step(START).unwrap() {
            PushStep::Finished { samples, in_doubt } => stored = Some((samples, in_doubt)),
            PushStep::Send(_) => return stored,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_was_being_sent_when_a_process_ended_is_in_doubt() {
    let begun = |finished, in_doubt| {
        let options = options(Format::OtlpJson).finished(finished).in_doubt(in_doubt);
        Push::new(export(&table(&[1, 2, 3]), Format::OtlpJson), &options).unwrap()
    };
    let mut push = begun(0, 0);
    let (samples, in_doubt) = until_sent(&mut push).unwrap();
    assert!(samples > 0 && in_doubt == samples);
    // The process is killed here.
    let mut next = begun(samples, in_doubt);
    assert_eq!(next.report().unsure, in_doubt);
    // If this push ends early, too, the stored number still includes the samples in doubt of the first push.
    let (_, stored) = until_sent(&mut next).unwrap();
    assert!(stored > in_doubt);
    // Samples that were accepted or refused are no longer in doubt.
    push.head(200, &[]).unwrap();
    push.end().unwrap();
    let PushStep::Finished { samples: again, in_doubt } = push.step(START).unwrap() else {
        panic!("want the mark removed")
    };
    assert_eq!((again, in_doubt), (samples, 0));
    assert!(push.is_at_rest());
    let mut push = begun(0, 0);
    until_sent(&mut push);
    push.head(400, &[]).unwrap();
    push.end().unwrap();
    assert!(matches!(push.step(START), Ok(PushStep::Finished { samples: 0, in_doubt: 0 })));
}

#[test]
fn what_is_in_doubt_stays_stored_until_a_report_has_it() {
    let sending = |finished, in_doubt| {
        let options = options(Format::OtlpJson).finished(finished).in_doubt(in_doubt);
        Push::new(export(&table(&[1, 2, 3]), Format::OtlpJson), &options).unwrap()
    };
    // An earlier process has left 5 samples in doubt; this one ends while it sends more.
    let mut push = sending(0, 5);
    let (samples, in_doubt) = until_sent(&mut push).unwrap();
    assert_eq!(in_doubt, samples + 5);
    assert_eq!(push.report().unsure, 5);
    // Samples that were accepted are no longer in doubt, but those that were in doubt before still are.
    push.head(200, &[]).unwrap();
    push.end().unwrap();
    assert!(matches!(
        push.step(START),
        Ok(PushStep::Finished { samples: again, in_doubt: 5 }) if again == samples
    ));
    // A message that is in doubt when the push ends was stored as such before it was sent.
    let mut push = sending(0, 5);
    let (_, stored) = until_sent(&mut push).unwrap();
    push.failed(HostFailure::Network, "ECONNRESET").unwrap();
    assert!(push.step(START).is_err());
    assert_eq!(push.report().unsure, stored);
}

#[test]
fn options_are_printed_without_the_secrets_of_their_address() {
    for url in ["https://user:SECRET@push.example", "https://push.example?token=SECRET"] {
        let text = format!("{:?}", PushOptions::with_defaults(url.to_owned()));
        assert!(text.contains("push.example") && !text.contains("SECRET"), "{text}");
    }
}
