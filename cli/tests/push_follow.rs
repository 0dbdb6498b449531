//! `tallyfold push --follow` through the binary, over restarts and to receivers that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod support;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use support::pushed::{BUSY, Points, add_points, expected, push, report, sums, taken};
use support::{
    Draw, RANGE, Reply, Service, Sink, Sums, TAKEN, ends, stderr, stdout, terminate, truth,
};

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
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..1 + draw.below(3) {
            match sink.requests.recv_timeout(Duration::from_secs(1)) {
                Ok((request, _)) => bodies.push(request.body),
                Err(_) => break,
            }
        }
        // The signal comes at any moment: while a message is under way, or while its number is stored.
        std::thread::sleep(Duration::from_micros(draw.below(8_000)));
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

#[test]
fn an_address_is_checked_before_anything_is_asked() {
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
            // A service that is asked would be the failure.
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
