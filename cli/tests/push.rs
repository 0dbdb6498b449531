//! `tallyfold push` through the binary, to receivers that fail and over restarts.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::{Output, Stdio};
use std::time::Duration;

use support::{
    Draw, RANGE, Received, Reply, Service, Sink, Sums, TAKEN, ends, stderr, stdout, terminate,
    truth,
};

const BUSY: Reply = Reply::Answer(503, "", "busy");

/// The points of line protocol by series and time: a point that comes again replaces itself.
type Points = BTreeMap<(String, String), [i128; 3]>;

fn add_points(points: &mut Points, body: &[u8]) {
    for line in std::str::from_utf8(body).unwrap().lines() {
        // Spaces in names are written as `\ `.
        let line = line.replace("\\ ", "_");
        let mut parts = line.split(' ');
        let (series, fields, time) = (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap(),
        );
        let mut counts = [0; 3];
        for field in fields.split(',') {
            let (name, value) = field.split_once('=').unwrap();
            let place = ["success", "errors", "filtered"]
                .iter()
                .position(|known| *known == name)
                .unwrap();
            counts[place] = value.trim_end_matches('i').parse().unwrap();
        }
        if let Some(before) = points.insert((series.to_owned(), time.to_owned()), counts) {
            assert_eq!(before, counts, "{series} has another value now");
        }
    }
}

fn sums(points: &Points) -> Sums {
    let mut sums = Sums::new();
    for ((series, _), counts) in points {
        let tag = series
            .split(',')
            .find_map(|tag| tag.strip_prefix("integration="));
        let sum = sums.entry(tag.unwrap().to_owned()).or_default();
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

fn expected() -> Sums {
    truth()
        .into_iter()
        .map(|(name, counts)| (name.replace(' ', "_"), counts))
        .collect()
}

fn taken(requests: &[(Received, Reply)]) -> Points {
    let mut points = Points::new();
    for (request, reply) in requests {
        if matches!(reply, Reply::Answer(204, ..)) {
            add_points(&mut points, &request.body);
        }
    }
    points
}

fn push(service: &Service, format: &str, url: &str, more: &[&str]) -> Output {
    let mut all = vec!["push", "--to", format, url];
    all.extend(RANGE);
    all.extend(more);
    service.tallyfold(&all).output().unwrap()
}

fn report(output: &Output) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    all[0].clone()
}

#[test]
fn a_push_sends_the_truth() {
    let service = Service::start();
    let sink = Sink::start(vec![], TAKEN);
    let output = push(
        &service,
        "influx",
        &sink.url,
        &["--label", "env=test", "--format", "json"],
    );
    ends(&output, 0);
    let requests = sink.all();
    let points = taken(&requests);
    assert_eq!(sums(&points), expected());
    assert!(points.keys().all(|(series, _)| series.contains("env=test")));
    let report = report(&output);
    assert_eq!(report["samples"].as_u64().unwrap() as usize, points.len());
    assert_eq!(
        report["messages"].as_u64().unwrap() as usize,
        requests.len()
    );
    assert_eq!(
        (report["retries"].as_u64(), report["cluster"].as_str()),
        (Some(0), Some("default"))
    );
    let sink = Sink::start(vec![], TAKEN);
    let output = push(
        &service,
        "influx",
        &sink.url,
        &["--where", "integration=CRM"],
    );
    ends(&output, 0);
    assert_eq!(
        sums(&taken(&sink.all())),
        Sums::from([("CRM".to_owned(), truth()["CRM"])])
    );
}

#[test]
fn failures_of_a_receiver_pass() {
    let service = Service::start();
    let late = Reply::Late(Duration::from_secs(3));
    let first = vec![
        BUSY,
        Reply::Answer(429, "retry-after: 1\r\n", ""),
        Reply::Break,
        late,
        Reply::Answer(413, "", ""),
    ];
    let sink = Sink::start(first, TAKEN);
    let output = push(
        &service,
        "influx",
        &sink.url,
        &["--message-timeout", "500ms", "--format", "json", "-v"],
    );
    ends(&output, 0);
    let requests = sink.all();
    assert_eq!(sums(&taken(&requests)), expected());
    assert_eq!(report(&output)["retries"], 4);
    // After 413, half as much at once.
    assert!(requests[5].0.body.len() * 3 < requests[4].0.body.len() * 2);
    assert!(
        stderr(&output).contains("status 503"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_receiver_that_refuses_has_a_code() {
    let service = Service::start();
    for (status, code) in [(401, 3), (403, 3), (404, 4), (400, 4), (302, 4)] {
        let sink = Sink::start(vec![], Reply::Answer(status, "", "no"));
        let output = push(&service, "influx", &sink.url, &[]);
        assert_ne!(output.status.code(), Some(0), "{status}");
        if status != 302 {
            ends(&output, code);
        }
        assert_eq!(sink.all().len(), 1);
        assert!(
            stdout(&output).contains("messages"),
            "the report is written too"
        );
    }
    let sink = Sink::start(vec![], BUSY);
    ends(
        &push(&service, "influx", &sink.url, &["--patience", "0s"]),
        4,
    );
    ends(
        &push(
            &service,
            "influx",
            "http://127.0.0.1:1/write",
            &["--patience", "0s"],
        ),
        4,
    );
    let body = r#"{"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too old"}}"#;
    let sink = Sink::start(
        vec![Reply::Answer(
            200,
            "content-type: application/json\r\n",
            body,
        )],
        Reply::Answer(200, "", "{}"),
    );
    let output = push(&service, "otlp-json", &sink.url, &[]);
    ends(&output, 5);
    assert!(stderr(&output).contains("too old"), "{}", stderr(&output));
}

#[test]
fn a_message_in_doubt_is_not_sent_twice() {
    let service = Service::start();
    let sink = Sink::start(vec![Reply::Break], Reply::Answer(200, "", "{}"));
    let output = push(&service, "otlp-json", &sink.url, &["--format", "json"]);
    ends(&output, 4);
    assert!(report(&output)["unsure"].as_u64().unwrap() > 0);
    assert_eq!(sink.all().len(), 1);
    let sink = Sink::start(vec![Reply::Break], Reply::Answer(200, "", "{}"));
    ends(
        &push(
            &service,
            "otlp-json",
            &sink.url,
            &["--guarantee", "at_least_once"],
        ),
        0,
    );
}

#[test]
fn secrets_come_from_variables_and_private_files() {
    use std::os::unix::fs::PermissionsExt;
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "Bearer of-file\n").unwrap();
    let in_file = format!("x-other={}", file.display());
    let sink = Sink::start(vec![], TAKEN);
    let send = || {
        let all = [
            "push",
            "--to",
            "influx",
            &sink.url,
            "-v",
            "--header-env",
            "authorization=TOKEN",
            "--header-file",
            &in_file,
        ];
        let mut command = service.tallyfold(&[&all[..], &RANGE[..]].concat());
        command.env("TOKEN", "Token of-variable").output().unwrap()
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let output = send();
    ends(&output, 2);
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let output = send();
    ends(&output, 0);
    let (request, _) = &sink.all()[0];
    assert_eq!(request.headers["authorization"], "Token of-variable");
    assert_eq!(request.headers["x-other"], "Bearer of-file");
    assert!(!stderr(&output).contains("of-") && !stdout(&output).contains("of-"));
}

#[test]
fn datagrams_are_sent() {
    let service = Service::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let url = format!("udp://{}", socket.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut found = Sums::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let length = socket.recv(&mut buffer).unwrap();
            if &buffer[..length] == b"end" {
                return found;
            }
            for line in std::str::from_utf8(&buffer[..length]).unwrap().lines() {
                let (name, rest) = line.split_once(':').unwrap();
                let count = ["success", "errors", "filtered"]
                    .iter()
                    .position(|count| name.ends_with(count))
                    .unwrap();
                let value: i128 = rest.split('|').next().unwrap().parse().unwrap();
                let tag = rest
                    .split(['|', ',', '#'])
                    .find_map(|tag| tag.strip_prefix("integration:"))
                    .unwrap();
                found.entry(tag.to_owned()).or_default()[count] += value;
            }
        }
    });
    let output = push(&service, "dogstatsd", &url, &[]);
    ends(&output, 0);
    let address = url.strip_prefix("udp://").unwrap();
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .send_to(b"end", address)
        .unwrap();
    assert_eq!(reader.join().unwrap(), truth());
}

#[test]
fn what_can_not_be_used_is_refused_before_anything_is_sent() {
    let service = Service::start();
    for (arguments, said) in [
        (&["push", "nowhere"][..], "[push.nowhere]"),
        (&["push", "https://example.com/secret"], "--to FORMAT"),
        (
            &["push", "--to", "csv", "http://127.0.0.1:1/"],
            "possible values",
        ),
        (&["push", "--to", "otlp", "nowhere"], "url"),
        (
            &["push", "--to", "otlp", "http://127.0.0.1:1/", "--follow"],
            "--state",
        ),
        (
            &[
                "push",
                "--to",
                "statsd",
                "udp://127.0.0.1:9",
                "--follow",
                "--state",
                "/dev/shm/never",
            ],
            "statsd",
        ),
        (
            &[
                "push",
                "--to",
                "influx",
                "http://127.0.0.1:1/",
                "--guarantee",
                "at_most_once",
            ],
            "guarantee",
        ),
        (
            &[
                "push",
                "--to",
                "otlp",
                "http://127.0.0.1:1/",
                "--label",
                "x",
            ],
            "--label",
        ),
        (
            &[
                "push",
                "--to",
                "otlp",
                "http://127.0.0.1:1/",
                "--label",
                "integration=x",
            ],
            "integration",
        ),
        (
            &[
                "push",
                "--to",
                "otlp",
                "http://127.0.0.1:1/",
                "--header-env",
                "a=NOT_THERE",
            ],
            "NOT_THERE",
        ),
    ] {
        let output = service
            .tallyfold(&[arguments, &RANGE[..]].concat())
            .output()
            .unwrap();
        ends(&output, 2);
        assert!(
            stderr(&output).contains(said),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("/secret"));
    }
}

#[test]
fn kills_at_any_moment_lose_and_double_nothing() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let mut draw = Draw(5);
    let sink = Sink::start(vec![BUSY, Reply::Break], TAKEN);
    let mut points = Points::new();
    let mut kills = 0;
    loop {
        let all = [
            "push",
            "--to",
            "influx",
            &sink.url,
            "--follow",
            "--state",
            state.to_str().unwrap(),
        ];
        let mut command = service.tallyfold(&[&all[..], &RANGE[..]].concat());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It is killed when so many messages have come, and a little later.
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
fn a_clean_stop_sends_each_sample_once_where_that_matters() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let sink = Sink::start(vec![], Reply::Answer(200, "", "{}"));
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let mut stops = 0;
    loop {
        let all = [
            "push",
            "--to",
            "otlp-json",
            &sink.url,
            "--max-bytes",
            "4000",
            "--follow",
            "--state",
            state.to_str().unwrap(),
        ];
        let mut command =
            service.tallyfold(&[&all[..], &RANGE[..], &["--format", "json"]].concat());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..7 {
            if let Ok((request, _)) = sink.requests.recv_timeout(Duration::from_secs(1)) {
                bodies.push(request.body);
            }
        }
        terminate(&child);
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

/// The sums of all points, each of which counts as often as it came.
fn otlp_sums(bodies: &[Vec<u8>]) -> Sums {
    let mut sums = Sums::new();
    for body in bodies {
        let message: serde_json::Value = serde_json::from_slice(body).unwrap();
        let metrics = message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
            .as_array()
            .unwrap();
        for metric in metrics {
            let name = metric["name"].as_str().unwrap();
            let place = ["success", "errors", "filtered"]
                .iter()
                .position(|count| name.ends_with(count))
                .unwrap();
            for point in metric["sum"]["dataPoints"].as_array().unwrap() {
                let attributes = point["attributes"].as_array().unwrap();
                let of = attributes
                    .iter()
                    .find(|one| one["key"] == "integration")
                    .unwrap();
                let value: i128 = point["asInt"].as_str().unwrap().parse().unwrap();
                sums.entry(of["value"]["stringValue"].as_str().unwrap().to_owned())
                    .or_default()[place] += value;
            }
        }
    }
    sums
}

#[test]
fn a_receiver_that_is_down_keeps_the_revision_pending() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("outbox.json");
    let more = [
        "--follow",
        "--state",
        state.to_str().unwrap(),
        "--patience",
        "0s",
    ];
    let down = Sink::start(vec![TAKEN, TAKEN], BUSY);
    ends(&push(&service, "influx", &down.url, &more), 4);
    let mut points = taken(&down.all());
    assert!(!points.is_empty());
    // It can't be sent in another format.
    let output = push(&service, "otlp", &down.url, &more);
    ends(&output, 2);
    let up = Sink::start(vec![], TAKEN);
    ends(&push(&service, "influx", &up.url, &more), 0);
    points.extend(taken(&up.all()));
    assert_eq!(sums(&points), expected());
    // Everything was sent.
    ends(&push(&service, "influx", &up.url, &more), 0);
    assert!(up.all().is_empty());
    // One flipped bit.
    let mut bytes = fs::read(&state).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 4;
    fs::write(&state, bytes).unwrap();
    let output = push(&service, "influx", &up.url, &more);
    ends(&output, 2);
    assert!(
        stderr(&output).contains("outbox.json"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_full_disk_sends_nothing_that_is_not_stored() {
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
    let output = service
        .on_full_disk(&[&all[..], &RANGE[..]].concat())
        .output()
        .unwrap();
    ends(&output, 2);
    assert!(
        stderr(&output).contains("can't write"),
        "{}",
        stderr(&output)
    );
    assert!(sink.all().is_empty());
}
