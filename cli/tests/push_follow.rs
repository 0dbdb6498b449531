//! `tallyfold push --follow` through the binary, with restarts and with destinations that fail.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::pushed::{BUSY, Points, add_points, expected, push, report, sums, taken};
use crate::support::{
    Draw, RANGE, Reply, SLOW, Service, Sink, Sums, TAKEN, ends, stderr, stdout, terminate, truth,
};
use tallyfold::Timestamp;

#[test]
fn kills_at_any_moment_neither_lose_nor_double_counts() {
    let service = Service::with_faults(&[SLOW]);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let mut draw = Draw(5);
    let sink = Sink::start(vec![BUSY, Reply::Break], TAKEN);
    let mut points = Points::new();
    let mut kills = 0;
    loop {
        let all =
            ["push", "--to", "influx", &sink.url, "--follow", "--state", state.to_str().unwrap()];
        let mut command = service.tallyfold(&[&all[..], &RANGE[..]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Kills the process a little after this many messages.
        let mut left = 1 + draw.below(3);
        let status = loop {
            match sink.requests.recv_timeout(Duration::from_millis(20)) {
                Ok((request, reply)) => {
                    if matches!(reply, Reply::Answer(204, ..)) {
                        add_points(&mut points, &request.body);
                    }
                    left = left.saturating_sub(1);
                }
                Err(_) => {
                    if let Some(status) = child.try_wait().unwrap() {
                        break status;
                    }
                }
            }
            if left == 0 {
                std::thread::sleep(Duration::from_micros(draw.below(8_000)));
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        };
        if status.success() {
            break;
        }
        kills += 1;
        assert!(kills < 500);
    }
    assert!(kills >= 5, "{kills}");
    points.extend(taken(&sink.all()));
    assert_eq!(sums(&points), expected());
}

#[test]
fn with_graceful_stops_each_sample_is_sent_once() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let sink = Sink::start(vec![], Reply::Late(Duration::from_millis(2)));
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let mut stops = 0;
    let mut draw = Draw(11);
    loop {
        let all = [
            "push",
            "--to",
            "otlp-json",
            &sink.url,
            "--max-bytes",
            "3000",
            "--follow",
            "--state",
            state.to_str().unwrap(),
        ];
        let mut command =
            service.tallyfold(&[&all[..], &RANGE[..], &["--format", "json"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut left = 1 + draw.below(3);
        // The command ends by itself once everything is sent.
        while left > 0 && child.try_wait().unwrap().is_none() {
            if let Ok((request, _)) = sink.requests.recv_timeout(Duration::from_millis(20)) {
                bodies.push(request.body);
                left -= 1;
            }
        }
        // The signal arrives at any moment: while a message is sent, or while the progress is stored.
        std::thread::sleep(Duration::from_micros(draw.below(8_000)));
        if child.try_wait().unwrap().is_none() {
            terminate(&child);
        }
        let output = child.wait_with_output().unwrap();
        ends(&output, 0);
        bodies.extend(sink.all().into_iter().map(|(request, _)| request.body));
        if report(&output)["messages"] == 0 {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 3, "{stops}");
    assert_eq!(otlp_sums(&bodies), truth());
}

/// The sums of all points. A point that was sent twice counts twice.
fn otlp_sums(bodies: &[Vec<u8>]) -> Sums {
    let mut sums = Sums::new();
    for body in bodies {
        let message: serde_json::Value = serde_json::from_slice(body).unwrap();
        let metrics =
            message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        for metric in metrics {
            let name = metric["name"].as_str().unwrap();
            let place = ["success", "errors", "filtered"]
                .iter()
                .position(|count| name.ends_with(count))
                .unwrap();
            for point in metric["sum"]["dataPoints"].as_array().unwrap() {
                let attributes = point["attributes"].as_array().unwrap();
                let of = attributes.iter().find(|one| one["key"] == "integration").unwrap();
                let value: i128 = point["asInt"].as_str().unwrap().parse().unwrap();
                sums.entry(of["value"]["stringValue"].as_str().unwrap().to_owned()).or_default()
                    [place] += value;
            }
        }
    }
    sums
}

#[test]
fn a_revision_stays_pending_while_the_destination_is_down() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let more = ["--follow", "--state", state.to_str().unwrap(), "--patience", "0s"];
    let down = Sink::start(vec![TAKEN, TAKEN], BUSY);
    ends(&push(&service, "influx", &down.url, &more), 4);
    let mut points = taken(&down.all());
    assert!(!points.is_empty());
    // The pending revision can't be sent in another format.
    let output = push(&service, "otlp", &down.url, &more);
    ends(&output, 2);
    // The pending revision is for the first destination, unless --moved is passed.
    let up = Sink::start(vec![], TAKEN);
    let output = push(&service, "influx", &up.url, &more);
    ends(&output, 2);
    let said = stderr(&output);
    let [before, now] = [&down, &up].map(|sink| sink.url.rsplit_once('/').unwrap().0.to_owned());
    assert!(
        said.contains(&format!("it is for influx at {before} "))
            && said.contains(&format!("not for influx at {now} ")),
        "{said}"
    );
    assert!(
        said.contains("try: another --state, or, if the destination has moved, --moved once"),
        "{said}"
    );
    assert!(up.all().is_empty());
    let moved = [&more[..], &["--moved"]].concat();
    ends(&push(&service, "influx", &up.url, &moved), 0);
    points.extend(taken(&up.all()));
    assert_eq!(sums(&points), expected());
    // Nothing is pending any more.
    ends(&push(&service, "influx", &up.url, &more), 0);
    assert!(up.all().is_empty());
    // A state with one flipped bit is refused.
    let mut bytes = fs::read(&state).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 4;
    fs::write(&state, bytes).unwrap();
    let output = push(&service, "influx", &up.url, &more);
    ends(&output, 2);
    assert!(stderr(&output).contains("outbox.json"), "{}", stderr(&output));
}

#[test]
fn on_a_full_disk_nothing_is_sent() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let all = [
        "push",
        "--to",
        "otlp-json",
        &sink.url,
        "--by",
        "integration,event_name",
        "--follow",
        "--state",
        state.to_str().unwrap(),
    ];
    let output = service.on_full_disk(&[&all[..], &RANGE[..]].concat()).output().unwrap();
    ends(&output, 2);
    assert!(stderr(&output).contains("can't write"), "{}", stderr(&output));
    assert!(sink.all().is_empty());
}

#[test]
fn an_address_is_checked_before_the_service_is_queried() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let follow = ["--follow", "--state", state.to_str().unwrap()];
    for (format, url) in [
        ("otlp", "nowhere"),
        ("influx", "http://192.0.2.1/write?token=x"),
        ("dogstatsd", "http://127.0.0.1:1/"),
        ("remote-write", "udp://127.0.0.1:9"),
    ] {
        for more in [&[][..], &follow] {
            let all = [&["push", "--to", format, url], &RANGE[..], more].concat();
            let mut command = service.tallyfold(&all);
            // A query to this service would fail with another exit code.
            command.env("TALLYFOLD_CLUSTER_ENDPOINT", "http://127.0.0.1:1");
            let output = command.output().unwrap();
            ends(&output, 2);
            assert!(stderr(&output).contains("URL"), "{}", stderr(&output));
            assert_eq!(stdout(&output), "");
            assert!(!state.exists());
        }
    }
    let http = "http://127.0.0.1:1/";
    let udp = "udp://127.0.0.1:9";
    let statsd = [&["push", "--to", "statsd", udp][..], &follow].concat();
    let output = service.tallyfold(&statsd).output().unwrap();
    ends(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("--to: statsd can't represent"), "{said}");
    for (format, url) in [
        ("otlp", http),
        ("otlp-json", http),
        ("remote-write", http),
        ("remote-write-2", http),
        ("influx", http),
        ("datadog", http),
        ("dogstatsd", udp),
        ("statsd", udp),
    ] {
        let mut command = service.tallyfold(&["push", "--to", format, url]);
        command.env("TALLYFOLD_CLIENT_SECRET", "wrong");
        let output = command.output().unwrap();
        ends(&output, 3);
        // Nothing was sent, so there is nothing to report.
        assert_eq!(stdout(&output), "");
    }
}

/// Pushes OTLP with a state. The destination adds up the counts, so none may be sent twice.
fn follow_otlp(
    service: &Service,
    url: &str,
    state: &std::path::Path,
    more: &[&str],
) -> std::process::Output {
    let state = state.to_str().unwrap();
    let usual = ["--max-bytes", "3000", "--follow", "--state", state, "--format", "json"];
    push(service, "otlp-json", url, &[&usual[..], more].concat())
}

#[test]
fn a_kill_while_a_message_is_sent_is_reported_at_the_next_start() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let slow = Sink::start(vec![], Reply::Late(Duration::from_secs(60)));
    let all = [
        "push",
        "--to",
        "otlp-json",
        &slow.url,
        "--max-bytes",
        "3000",
        "--follow",
        "--state",
        state.to_str().unwrap(),
    ];
    let mut command = service.tallyfold(&[&all[..], &RANGE[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let first = slow.requests.recv_timeout(Duration::from_secs(120)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let up = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let output = follow_otlp(&service, &up.url, &state, &["--moved"]);
    ends(&output, 5);
    let said = stderr(&output);
    assert!(said.contains("an earlier run ended while it was sending"), "{said}");
    assert!(report(&output)["unsure"].as_u64().unwrap() > 0);
    let bodies = |sink: &Sink| -> Vec<Vec<u8>> {
        sink.all().into_iter().map(|(request, _)| request.body).collect()
    };
    // The message is not sent again, and nothing else is missing.
    assert_eq!(otlp_sums(&[vec![first.0.body], bodies(&up)].concat()), truth());
    // The message is reported only once.
    let output = follow_otlp(&service, &up.url, &state, &[]);
    ends(&output, 0);
    assert_eq!(report(&output)["unsure"], 0);
}

#[test]
fn samples_in_doubt_are_reported_even_if_the_next_run_is_killed_too() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let up = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let output = follow_otlp(&service, &up.url, &folder.path().join("all.json"), &[]);
    ends(&output, 0);
    let all = report(&output)["samples"].as_u64().unwrap();

    let state = folder.path().join("outbox.json");
    let slow = Sink::start(vec![], Reply::Late(Duration::from_secs(60)));
    for _ in 0..2 {
        let command = [
            "push",
            "--to",
            "otlp-json",
            &slow.url,
            "--max-bytes",
            "3000",
            "--follow",
            "--state",
            state.to_str().unwrap(),
        ];
        let mut child = service
            .tallyfold(&[&command[..], &RANGE[..]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        slow.requests.recv_timeout(Duration::from_secs(120)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = follow_otlp(&service, &up.url, &state, &["--moved"]);
    ends(&output, 5);
    let number = |name: &str| report(&output)[name].as_u64().unwrap();
    assert_eq!(number("samples") + number("unsure"), all);
    let output = follow_otlp(&service, &up.url, &state, &[]);
    ends(&output, 0);
    assert_eq!(report(&output)["unsure"], 0);
}

#[test]
fn samples_in_doubt_are_reported_after_a_drop() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let path = state.to_str().unwrap();
    let slow = Sink::start(vec![], Reply::Late(Duration::from_secs(60)));
    let command = [
        "push",
        "--to",
        "otlp-json",
        &slow.url,
        "--max-bytes",
        "3000",
        "--follow",
        "--state",
        path,
    ];
    let mut child = service
        .tallyfold(&[&command[..], &RANGE[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    slow.requests.recv_timeout(Duration::from_secs(120)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let dropped = service.tallyfold(&["push", "drop", "--state", path]).output().unwrap();
    ends(&dropped, 0);
    let said = stderr(&dropped);
    assert!(said.contains("the next push reports"), "{said}");
    let up = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let output = follow_otlp(&service, &up.url, &state, &["--moved"]);
    ends(&output, 5);
    assert!(report(&output)["unsure"].as_u64().unwrap() > 0);
    let output = follow_otlp(&service, &up.url, &state, &[]);
    ends(&output, 0);
}

#[test]
fn a_message_that_was_never_sent_is_not_in_doubt() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    // The port speaks plain http, so there is no connection with TLS.
    let tls = sink.url.replace("http://", "https://");
    let output = follow_otlp(&service, &tls, &state, &["--patience", "0s"]);
    ends(&output, 4);
    assert_eq!(report(&output)["unsure"], 0);
    // No process accepts this connection, so TLS never begins.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}/", silent.local_addr().unwrap());
    let more = ["--patience", "0s", "--message-timeout", "300ms", "--moved"];
    let output = follow_otlp(&service, &silent, &state, &more);
    ends(&output, 4);
    assert!(stderr(&output).contains("no connection in time"), "{}", stderr(&output));
    assert_eq!(report(&output)["unsure"], 0);
    let output = follow_otlp(&service, &sink.url, &state, &["--moved"]);
    ends(&output, 0);
    let sent: Vec<Vec<u8>> = sink.all().into_iter().map(|(request, _)| request.body).collect();
    assert_eq!(otlp_sums(&sent), truth());
}

#[test]
fn a_web_page_as_the_response_loses_no_counts() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let page = Reply::Answer(200, "content-type: text/html\r\n", "<!doctype html>sign in");
    let login = Sink::start(vec![], page);
    let output = follow_otlp(&service, &login.url, &state, &[]);
    ends(&output, 5);
    assert!(stderr(&output).contains("html_response: a web page answers"), "{}", stderr(&output));
    assert_eq!(report(&output)["samples"], 0);
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    ends(&follow_otlp(&service, &sink.url, &state, &["--moved"]), 0);
    let sent: Vec<Vec<u8>> = sink.all().into_iter().map(|(request, _)| request.body).collect();
    assert_eq!(otlp_sums(&sent), truth());
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_a_state() {
    use std::os::unix::fs::PermissionsExt;

    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    ends(&follow_otlp(&service, &sink.url, &state, &[]), 0);
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_revision_that_is_refused_for_good_can_be_dropped() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let path = state.to_str().unwrap();
    // Prometheus before 2.49 answers like this. The push does not retry for fifteen minutes, but fails at once.
    let old = Sink::start(vec![], Reply::Answer(500, "", "too old sample\n"));
    let more = ["--follow", "--state", path];
    let output = push(&service, "remote-write", &old.url, &more);
    ends(&output, 4);
    let said = stderr(&output);
    assert!(said.contains("too old sample"), "{said}");
    assert!(said.contains("try: tallyfold push drop --state"), "{said}");
    assert_eq!(old.all().len(), 1);

    let drop = || service.tallyfold(&["push", "drop", "--state", path]).output().unwrap();
    let dropped = drop();
    ends(&dropped, 0);
    let said = stderr(&dropped);
    let lost = "dropped revision 0 of [2025-03-01T00:00:00Z, 2025-03-01T00:15:00Z), which was for remote-write; 0 of its";
    assert!(said.starts_with(lost) && said.contains("success by +"), "{said}");
    assert_eq!(stderr(&drop()), "nothing is pending\n");

    // The later revisions are sent.
    let up = Sink::start(vec![], TAKEN);
    let moved = [&more[..], &["--moved"]].concat();
    ends(&push(&service, "remote-write", &up.url, &moved), 0);
    assert_eq!(up.all().len(), crate::support::WINDOWS - 1);
}

/// The newest point of each series that a destination of cumulative sums has received. Checks that series keep their start, and
/// that their time and value never decrease.
#[derive(Default)]
struct Cumulative {
    start: Option<String>,
    newest: std::collections::BTreeMap<(usize, String), (u64, i128)>,
    /// How many points replaced an earlier one with the same value.
    repeated: usize,
}

impl Cumulative {
    fn take(&mut self, body: &[u8]) {
        let message: serde_json::Value = serde_json::from_slice(body).unwrap();
        let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        for metric in metrics.as_array().unwrap() {
            let name = metric["name"].as_str().unwrap();
            let stem = "tallyfold.event_delivery.by_integration.";
            let count = name.strip_prefix(stem).unwrap();
            let mut names = ["success", "errors", "filtered"].iter();
            let place = names.position(|known| *known == count).unwrap();
            let sum = &metric["sum"];
            assert_eq!(sum["aggregationTemporality"], 2);
            assert_eq!(sum["isMonotonic"], true);
            for point in sum["dataPoints"].as_array().unwrap() {
                let text = |name: &str| point[name].as_str().unwrap().to_owned();
                let start = text("startTimeUnixNano");
                assert_eq!(*self.start.get_or_insert(start.clone()), start);
                let time: u64 = text("timeUnixNano").parse().unwrap();
                assert!(time > start.parse().unwrap());
                let value: i128 = text("asInt").parse().unwrap();
                let series = (place, point["attributes"][0]["value"]["stringValue"].to_string());
                if let Some((before, total)) = self.newest.insert(series, (time, value)) {
                    assert!(time >= before && value >= total, "{value} after {total}");
                    // A message that is sent again is the same.
                    assert!(time > before || value == total);
                    self.repeated += usize::from(value == total);
                }
            }
        }
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::new();
        for ((place, name), (_, value)) in &self.newest {
            let name = serde_json::from_str(name).unwrap();
            sums.entry(name).or_default()[*place] = *value;
        }
        sums
    }
}

/// The arguments of a push that sends totals in several messages.
fn cumulative<'a>(format: &'a str, url: &'a str, state: &'a str) -> Vec<&'a str> {
    let usual = ["--max-bytes", "3000", "--format", "json"];
    let all = ["push", "--to", format, url, "--follow", "--cumulative", "--state", state];
    [&all[..], &usual[..]].concat()
}

#[test]
fn totals_become_exact_despite_kills_and_failures() {
    let service = Service::with_faults(&[SLOW]);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let state = state.to_str().unwrap();
    let mut draw = Draw(9);
    let fate = vec![BUSY, Reply::Break, BUSY];
    let sink = Sink::start(fate, Reply::Answer(200, "", "{}"));
    let mut received = Cumulative::default();
    let mut kills = 0;
    loop {
        let all = [&cumulative("otlp-json", &sink.url, state)[..], &RANGE[..]].concat();
        let mut child =
            service.tallyfold(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut left = 1 + draw.below(4);
        let status = loop {
            match sink.requests.recv_timeout(Duration::from_millis(20)) {
                Ok((request, _)) => {
                    received.take(&request.body);
                    left = left.saturating_sub(1);
                }
                Err(_) => {
                    if let Some(status) = child.try_wait().unwrap() {
                        break status;
                    }
                }
            }
            if left == 0 && kills < 25 {
                std::thread::sleep(Duration::from_micros(draw.below(8_000)));
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        };
        if status.success() {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 5, "{kills}");
    sink.all().iter().for_each(|(request, _)| received.take(&request.body));
    assert_eq!(received.sums(), truth());
    assert!(received.repeated > 0);
    // Without anything new, the same totals are sent once more, with the same start.
    let all = [&cumulative("otlp-json", &sink.url, state)[..], &RANGE[..]].concat();
    let output = service.tallyfold(&all).output().unwrap();
    ends(&output, 0);
    assert_eq!(report(&output)["unsure"], 0);
    let last = sink.all();
    assert!(!last.is_empty());
    last.iter().for_each(|(request, _)| received.take(&request.body));
    assert_eq!(received.sums(), truth());
}

#[test]
fn unchanged_totals_are_sent_again_even_after_an_outage() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let state = state.to_str().unwrap();
    let first = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let all = [&cumulative("otlp-json", &first.url, state)[..], &RANGE[..]].concat();
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    let mut received = Cumulative::default();
    first.all().iter().for_each(|(request, _)| received.take(&request.body));
    assert_eq!(received.sums(), truth());

    // A destination that fails is an error, but no counts are lost.
    let broken = Sink::start(vec![], Reply::Answer(500, "", "boom"));
    let all = [&cumulative("otlp-json", &broken.url, state)[..], &RANGE[..]].concat();
    let output = service.tallyfold(&all).output().unwrap();
    ends(&output, 4);
    assert!(stderr(&output).contains("boom"), "{}", stderr(&output));
    assert_eq!(report(&output)["unsure"], 0);

    // Another destination gets all totals at once, because totals are not bound to a destination. Its first response is an error.
    let other = Sink::start(vec![Reply::Answer(500, "", "boom")], Reply::Answer(200, "", "{}"));
    let begin = ["--from", RANGE[1], "--every", "1s"];
    let all = [&cumulative("otlp-json", &other.url, state)[..], &begin[..]].concat();
    let mut command = service.tallyfold(&all);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut times = 0;
    while times < 4 {
        let (request, _) = other.requests.recv_timeout(Duration::from_secs(120)).unwrap();
        let before = received.newest.values().map(|(time, _)| *time).max();
        received.take(&request.body);
        times += usize::from(received.newest.values().map(|(time, _)| *time).max() > before);
        if times == 1 {
            // Only one process at a time can use the state.
            let output = service.tallyfold(&all).output().unwrap();
            ends(&output, 2);
            assert!(stderr(&output).contains("another process uses this file"));
        }
    }
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    ends(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("status 500: boom); the next totals make up for it"), "{said}");
}

#[test]
fn totals_continue_from_an_older_state_that_was_restored() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let older = folder.path().join("older.json");
    let path = state.to_str().unwrap();
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let all = [&cumulative("otlp-json", &sink.url, path)[..], &RANGE[..]].concat();
    let mut child =
        service.tallyfold(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (request, _) = sink.requests.recv_timeout(Duration::from_secs(120)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut before = Cumulative::default();
    before.take(&request.body);
    fs::copy(&state, &older).unwrap();
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    sink.all();
    fs::copy(&older, &state).unwrap();
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    // The destination gets totals that are smaller than before and have the same start, and in the end the exact totals.
    let mut after = Cumulative::default();
    sink.all().iter().for_each(|(request, _)| after.take(&request.body));
    assert_eq!(after.start, before.start);
    assert_eq!(after.sums(), truth());
    // Totals that begin anew have a new start.
    fs::remove_file(&state).unwrap();
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    let mut anew = Cumulative::default();
    sink.all().iter().for_each(|(request, _)| anew.take(&request.body));
    assert_eq!(anew.sums(), truth());
    assert_ne!(anew.start, before.start);
}

#[test]
fn totals_need_a_suitable_format_and_their_own_state() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let outbox = folder.path().join("outbox.json");
    let totals = folder.path().join("totals.json");
    let (outbox, totals) = (outbox.to_str().unwrap(), totals.to_str().unwrap());
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let output = service.tallyfold(&[arguments, &RANGE[..]].concat()).output().unwrap();
        ends(&output, code);
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    };
    let wrong = cumulative("remote-write", &sink.url, totals);
    refused(&wrong, 2, "--cumulative: remote-write has no running totals; want otlp or otlp-json");
    let right = cumulative("otlp-json", &sink.url, totals);
    for (more, words) in [
        (["--every", "10ms"], "--every: want a length of time of 1s or more"),
        (["--guarantee", "at_most_once"], "--guarantee"),
    ] {
        refused(&[&right[..], &more[..]].concat(), 2, words);
    }
    // The state of a push of changes can't be used for totals, and the state of totals can't be used for changes.
    ends(&follow_otlp(&service, &sink.url, std::path::Path::new(outbox), &[]), 0);
    refused(&cumulative("otlp-json", &sink.url, outbox), 2, "ledger");
    let all = [&right[..], &RANGE[..]].concat();
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    let output = follow_otlp(&service, &sink.url, std::path::Path::new(totals), &[]);
    ends(&output, 2);
    assert!(stderr(&output).contains("outbox"), "{}", stderr(&output));
}

/// The service's `Date` is two hours behind.
const OLD_DATE: &str = r#"{"kind": "date", "milliseconds": 7200000, "every": 1}"#;

/// The wall clock is two hours ahead of the service's. Once it is set right, totals must not be from the future.
#[test]
fn totals_have_the_time_of_the_services_clock() {
    let unix_ms = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_millis()).unwrap()
    };
    let service = Service::with_faults(&[OLD_DATE]);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let path = state.to_str().unwrap();
    let all = [&cumulative("otlp-json", &sink.url, path)[..], &RANGE[..]].concat();
    let mut began = None;
    // The second run has nothing to read.
    for _ in 0..2 {
        let mut command = service.tallyfold(&all);
        let output = command.env("TALLYFOLD_IDENTITY", "one").output().unwrap();
        ends(&output, 0);
        assert!(!sink.all().is_empty());
        let stored: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
        for name in ["began", "stamped"] {
            let ms = Timestamp::parse(stored[name].as_str().unwrap()).unwrap();
            let behind_ms = unix_ms() - ms.unix_ms();
            assert!(behind_ms >= 7_190_000, "{name}: {behind_ms} ms");
        }
        let first = began.get_or_insert(stored["began"].clone()).clone();
        assert_eq!(first, stored["began"]);
    }
}

/// A `Date` that is too old doesn't make totals look as if they were from the future.
#[test]
fn totals_survive_an_old_date() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let path = state.to_str().unwrap();
    let all = [&cumulative("otlp-json", &sink.url, path)[..], &RANGE[..]].concat();
    for faults in [&[][..], &[OLD_DATE]] {
        let service = Service::with_faults(faults);
        let mut command = service.tallyfold(&all);
        let output = command.env("TALLYFOLD_IDENTITY", "one").output().unwrap();
        ends(&output, 0);
        assert!(!sink.all().is_empty());
    }
}
