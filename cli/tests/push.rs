//! `tallyfold push` through the binary, also with destinations that fail.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use crate::support::pushed::{BUSY, expected, push, report, sums, taken};
use crate::support::{
    RANGE, Reply, Service, Sink, Sums, TAKEN, ends, stderr, stdout, terminate, truth,
};

#[test]
fn a_push_sends_exact_counts() {
    let service = Service::start();
    let sink = Sink::start(vec![], TAKEN);
    let output = push(&service, "influx", &sink.url, &["--label", "env=test", "--format", "json"]);
    ends(&output, 0);
    let requests = sink.all();
    let points = taken(&requests);
    assert_eq!(sums(&points), expected());
    assert!(points.keys().all(|(series, _)| series.contains("env=test")));
    let report = report(&output);
    assert_eq!(report["samples"].as_u64().unwrap() as usize, points.len());
    assert_eq!(report["messages"].as_u64().unwrap() as usize, requests.len());
    assert_eq!(
        (report["retries"].as_u64(), report["cluster"].as_str()),
        (Some(0), Some("default"))
    );
    let sink = Sink::start(vec![], TAKEN);
    let output = push(&service, "influx", &sink.url, &["--where", "integration=CRM"]);
    ends(&output, 0);
    assert_eq!(sums(&taken(&sink.all())), Sums::from([("CRM".to_owned(), truth()["CRM"])]));
}

/// A push only sends settled windows, so its note suggests no option.
#[test]
fn windows_that_may_still_change_are_left_out_with_a_note() {
    let service = Service::start();
    let sink = Sink::start(vec![], TAKEN);
    let all = ["push", "--to", "influx", &sink.url, "--since", "3h"];
    let output = service.tallyfold(&all).output().unwrap();
    ends(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("were left out: their counts may still change"), "{said}");
    assert!(!said.contains("option"), "{said}");
}

#[test]
fn transient_failures_of_a_destination_are_retried() {
    let service = Service::start();
    let late = Reply::Late(Duration::from_secs(60));
    let first = vec![
        BUSY,
        Reply::Answer(429, "retry-after: 1\r\n", ""),
        Reply::Break,
        late,
        Reply::Answer(413, "", ""),
    ];
    let sink = Sink::start(first, TAKEN);
    let output =
        push(&service, "influx", &sink.url, &["--message-timeout", "2s", "--format", "json", "-v"]);
    ends(&output, 0);
    let requests = sink.all();
    assert_eq!(sums(&taken(&requests)), expected());
    assert_eq!(report(&output)["retries"], 4);
    // After 413, messages are about half as large.
    assert!(requests[5].0.body.len() * 3 < requests[4].0.body.len() * 2);
    assert!(stderr(&output).contains("status 503"), "{}", stderr(&output));
}

#[test]
fn each_refusal_of_a_destination_has_its_exit_code() {
    let service = Service::start();
    for (status, code) in [(401, 3), (403, 3), (404, 4), (400, 4), (302, 4)] {
        let sink = Sink::start(vec![], Reply::Answer(status, "", "no"));
        let output = push(&service, "influx", &sink.url, &[]);
        assert_ne!(output.status.code(), Some(0), "{status}");
        if status != 302 {
            ends(&output, code);
        }
        assert_eq!(sink.all().len(), 1);
        assert!(stdout(&output).contains("messages"), "the report is written too");
    }
    let sink = Sink::start(vec![], BUSY);
    ends(&push(&service, "influx", &sink.url, &["--patience", "0s"]), 4);
    ends(&push(&service, "influx", "http://127.0.0.1:1/write", &["--patience", "0s"]), 4);
    let body = r#"{"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too old"}}"#;
    let sink = Sink::start(
        vec![Reply::Answer(200, "content-type: application/json\r\n", body)],
        Reply::Answer(200, "", "{}"),
    );
    let output = push(&service, "otlp-json", &sink.url, &[]);
    ends(&output, 5);
    assert!(stderr(&output).contains("too old"), "{}", stderr(&output));
}

#[test]
fn a_destination_that_hangs_ends_the_push_in_time() {
    let service = Service::start();
    let hangs = || Sink::start(vec![], Reply::Late(Duration::from_secs(60)));
    for flag in ["--timeout", "--message-timeout"] {
        let sink = hangs();
        let all = ["push", "--to", "influx", &sink.url, flag, "2s"];
        let all = [&all[..], &["--patience", "1s"], &RANGE[..]].concat();
        let mut command = service.tallyfold(&all);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Measures from the first message, because reading the service may take long on a slow machine.
        sink.requests.recv_timeout(Duration::from_secs(120)).unwrap();
        let started = std::time::Instant::now();
        let output = child.wait_with_output().unwrap();
        ends(&output, 4);
        let took = started.elapsed();
        // Without the flag, it would take 30 seconds.
        assert!(took < Duration::from_secs(20), "{flag} {took:?}");
        assert!(!stderr(&output).contains("retrying"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("/write"), "{}", stderr(&output));
    }
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
    ends(&push(&service, "otlp-json", &sink.url, &["--guarantee", "at_least_once"]), 0);
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
fn a_header_of_a_flag_replaces_the_configured_one_in_upper_or_lower_case() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::start(vec![], TAKEN);
    let config = folder.path().join("t.toml");
    let text = format!(
        "[push.one]\nformat = \"influx\"\nurl = {:?}\nheaders = {{ authorization = {{ env = \"OLD\" }}, X-Team = \"old\", x-kept = \"old\" }}\n",
        sink.url
    );
    fs::write(&config, text).unwrap();
    let send = |more: &[&str]| {
        let all = ["push", "one", "--config", config.to_str().unwrap()];
        let mut command = service.tallyfold(&[&all[..], &RANGE[..], more].concat());
        command.env("NEW", "new").env("OLD", "old");
        command.output().unwrap()
    };
    let output = send(&["--header-env", "Authorization=NEW", "--header-env", "x-team=NEW"]);
    ends(&output, 0);
    let (request, _) = &sink.all()[0];
    for (name, value) in [("authorization", "new"), ("x-team", "new"), ("x-kept", "old")] {
        assert_eq!(request.headers[name], value, "{name}");
    }
    let output = send(&["--header-env", "X-A=NEW", "--header-env", "x-a=NEW"]);
    ends(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("--header-env x-a: this header is given twice"), "{said}");
}

#[test]
fn datagrams_contain_exact_counts() {
    let service = Service::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    // The buffer must hold all datagrams until the thread reads them.
    socket2::SockRef::from(&socket).set_recv_buffer_size(1 << 20).unwrap();
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
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"end", address).unwrap();
    assert_eq!(reader.join().unwrap(), truth());
}

/// The operating system refuses a datagram to the broadcast address: it was not sent, so nothing is in doubt.
#[test]
fn a_datagram_that_the_system_refuses_was_not_sent() {
    let service = Service::start();
    let url = "udp://255.255.255.255:9";
    let output = push(&service, "dogstatsd", url, &["--patience", "0s"]);
    ends(&output, 4);
    let said = String::from_utf8_lossy(&output.stderr);
    // A machine without a network has no route to that address.
    let known = ["the operating system does not permit it", "no way to the server"];
    assert!(known.iter().any(|text| said.contains(text)), "{said}");
    let table = String::from_utf8_lossy(&output.stdout);
    let row: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[1..], ["0", "0", "0", "0", "0"], "{table}");
}

#[test]
fn invalid_arguments_are_refused_before_anything_is_sent() {
    let service = Service::start();
    for (arguments, said) in [
        (&["push", "nowhere"][..], "[push.nowhere]"),
        (&["push", "https://example.com/secret"], "--to FORMAT"),
        (&["push", "--to", "csv", "http://127.0.0.1:1/"], "possible values"),
        (&["push", "--to", "otlp", "nowhere"], "URL"),
        (&["push", "--to", "otlp", "http://127.0.0.1:1/", "--follow"], "--state"),
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
            &["push", "--to", "influx", "http://127.0.0.1:1/", "--guarantee", "at_most_once"],
            "guarantee",
        ),
        (&["push", "--to", "otlp", "http://127.0.0.1:1/", "--label", "x"], "--label"),
        (
            &["push", "--to", "otlp", "http://127.0.0.1:1/", "--label", "integration=x"],
            "integration",
        ),
        (
            &["push", "--to", "otlp", "http://127.0.0.1:1/", "--header-env", "a=NOT_THERE"],
            "--header-env a: ",
        ),
        (
            &[
                "push",
                "--to",
                "otlp",
                "http://127.0.0.1:1/",
                "--header-env",
                "authorization=Bearer /secret",
            ],
            "--header-env authorization: ",
        ),
        (
            &[
                "push",
                "--to",
                "otlp",
                "http://127.0.0.1:1/",
                "--header-file",
                "authorization=Bearer /secret",
            ],
            "--header-file authorization: ",
        ),
        (
            &["push", "--to", "otlp", "http://127.0.0.1:1/", "--header-env", "/secret=="],
            "want HEADER=VARIABLE",
        ),
    ] {
        let output = service.tallyfold(&[arguments, &RANGE[..]].concat()).output().unwrap();
        ends(&output, 2);
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("/secret"));
    }
}

#[test]
fn after_a_signal_the_current_message_ends_and_the_report_is_written() {
    let service = Service::start();
    let sink = Sink::start(vec![], Reply::Late(Duration::from_millis(400)));
    let all = ["push", "--to", "otlp-json", &sink.url, "--max-bytes", "3000", "--format", "json"];
    let mut command = service.tallyfold(&[&all[..], &RANGE[..]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = sink.requests.recv_timeout(Duration::from_secs(120));
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    first.unwrap();
    // The push was not finished, so the exit code shows the signal.
    ends(&output, 143);
    let report = report(&output);
    assert_eq!(report["messages"].as_u64().unwrap() as usize, 1 + sink.all().len());
    assert_eq!(report["unsure"], 0);
    assert!(report["samples"].as_u64().unwrap() > 0);
}
