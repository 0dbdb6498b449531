//! `tallyfold serve` through the binary: scrapes, health, and restarts.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::support::{
    Draw, Fetched, RANGE, SLOW, Service, Sums, ends, fetch, lines, stderr, terminate, truth,
};

const STEM: &str = "tallyfold_event_delivery_by_integration";

/// A running exporter.
struct Exporter {
    process: Child,
    url: String,
    said: Receiver<String>,
}

impl Exporter {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = lines(process.stderr.take().unwrap());
        let line = said.recv_timeout(Duration::from_secs(120)).unwrap();
        let url = line.strip_prefix("serving ").unwrap_or_else(|| panic!("{line}"));
        Self { url: url.trim_end_matches("/metrics").to_owned(), process, said }
    }

    fn of(service: &Service, state: &Path, more: &[&str]) -> Self {
        Self::start(&mut service.tallyfold(&arguments(state, more)))
    }

    fn get(&self, path: &str) -> Fetched {
        fetch("GET", &format!("{}{path}", self.url), "").unwrap()
    }

    /// Repeats a request until `is_it` accepts the response.
    fn until(&self, path: &str, is_it: impl Fn(&Fetched) -> bool) -> Fetched {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let answer = self.get(path);
            if is_it(&answer) {
                return answer;
            }
            assert!(Instant::now() < until, "{}", answer.body);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn complete(&self) -> Fetched {
        let end = format!("{STEM}_settled_until_seconds 1740808800.000");
        self.until("/metrics", |answer| answer.body.contains(&end))
    }

    /// Kills the exporter by dropping it.
    fn kill(self) {}

    fn terminate(mut self) -> i32 {
        terminate(&self.process);
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn arguments<'a>(state: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--state", state.to_str().unwrap()];
    all.extend(RANGE);
    all.extend(more);
    all
}

/// The totals in a scrape of either format.
fn totals(text: &str) -> Sums {
    let mut sums = Sums::new();
    for line in text.lines().filter(|line| line.starts_with(STEM)) {
        for (place, count) in ["success", "errors", "filtered"].iter().enumerate() {
            let Some(rest) =
                line.strip_prefix(&format!("{STEM}_{count}_settled_events_total{{integration=\""))
            else {
                continue;
            };
            let (integration, value) = rest.split_once("\"} ").unwrap();
            sums.entry(integration.to_owned()).or_default()[place] = value.parse().unwrap();
        }
    }
    sums
}

#[test]
fn a_scrape_has_exact_totals_and_metrics_about_the_exporter() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::of(&service, &folder.path().join("totals.json"), &[]);
    let plain = exporter.complete();
    assert_eq!(totals(&plain.body), truth());
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4"), "{}", plain.head);
    let accept =
        "accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n";
    let url = format!("{}/metrics", exporter.url);
    let open = fetch("GET", &url, accept).unwrap();
    assert_eq!(totals(&open.body), truth());
    assert!(
        open.head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{}",
        open.head
    );
    assert!(open.body.ends_with("# EOF\n"));
    for line in [
        "tallyfold_exporter_requests_total{status=\"200\",target=\"event_delivery\"} 24",
        "tallyfold_exporter_requests_total{status=\"200\",target=\"token\"} 1",
        "tallyfold_exporter_revisions_total{settled=\"true\"} 24",
        "tallyfold_exporter_revisions_total{settled=\"false\"} 0",
        "tallyfold_exporter_scrape_errors_total 0",
        "tallyfold_exporter_healthy 1",
        concat!("tallyfold_exporter_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(open.body.lines().any(|one| one == line), "{line} is not in {}", open.body);
    }
    assert!(open.body.contains("\ntallyfold_exporter_token_age_seconds "));
    assert!(open.body.contains("\ntallyfold_exporter_settled_lag_seconds "));
    let health = exporter.get("/healthz");
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let head = fetch("HEAD", &url, "").unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(exporter.get("/nowhere").status, 404);
    let refused = fetch("POST", &url, "content-length: 0\r\n").unwrap();
    assert_eq!(refused.status, 405);
    assert!(refused.head.contains("allow: get, head"), "{}", refused.head);
    assert_eq!(exporter.terminate(), 0);
}

#[test]
fn kills_at_any_moment_never_decrease_a_counter() {
    let service = Service::with_faults(&[SLOW]);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let (mut draw, mut before, mut seen) = (Draw(3), Sums::new(), 0);
    for number in 0.. {
        let exporter = Exporter::of(&service, &state, &[]);
        let until = Instant::now() + Duration::from_millis(draw.below(120));
        loop {
            let now = totals(&exporter.get("/metrics").body);
            for (name, counts) in &before {
                assert!(now[name].iter().zip(counts).all(|(now, before)| now >= before), "{name}");
            }
            seen += usize::from(now != before);
            before = now;
            if Instant::now() >= until {
                break;
            }
        }
        let is_done = before == truth();
        match number % 4 {
            3 => assert_eq!(exporter.terminate(), 0),
            _ => exporter.kill(),
        }
        if is_done {
            assert!(number >= 2, "{number} restarts");
            break;
        }
        assert!(number < 300);
    }
    assert!(seen > 3, "{seen} different scrapes");
}

#[test]
fn slow_and_invalid_clients_do_not_block_others() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::of(&service, &folder.path().join("totals.json"), &[]);
    let host = exporter.url.strip_prefix("http://").unwrap();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(host).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /metr").unwrap();
    }
    for rubbish in [
        &b"\x16\x03\x01\x00\xff\xff\xff"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(rubbish).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    exporter.complete();
    // The exporter waits ten seconds for the head of a request. Reading the service may have taken as long, so the connections
    // are opened again.
    let mut slow: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(host).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /metr").unwrap();
    }
    assert_eq!(exporter.get("/metrics").status, 200);
    slow[0].write_all(b"ics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    slow[0].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let begun = Instant::now();
    assert_eq!(exporter.terminate(), 0);
    assert!(begun.elapsed() < Duration::from_secs(8));
}

#[test]
fn an_exporter_with_refused_credentials_is_unhealthy() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let mut command = service.tallyfold(&arguments(&state, &[]));
    let exporter = Exporter::start(command.env("TALLYFOLD_CLIENT_SECRET", "wrong-one"));
    let health = exporter.until("/healthz", |answer| answer.status == 503);
    assert!(health.body.contains("refuses the credentials"), "{}", health.body);
    assert_eq!(health.body.lines().count(), 1);
    let text = exporter.get("/metrics").body;
    assert!(text.contains("\ntallyfold_exporter_healthy 0\n"), "{text}");
    assert!(text.contains("tallyfold_exporter_reading_failures_total{code="), "{text}");
    assert_eq!(exporter.terminate(), 0);
    // With the right credentials, an exporter continues from the same state.
    let exporter = Exporter::of(&service, &state, &[]);
    assert_eq!(totals(&exporter.complete().body), truth());
    exporter.kill();
}

#[test]
fn an_exporter_without_any_response_is_unhealthy() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let mut command = service.tallyfold(&arguments(&folder.path().join("totals.json"), &[]));
    command.env("TALLYFOLD_CLUSTER_ENDPOINT", "http://127.0.0.1:1");
    let exporter = Exporter::start(&mut command);
    let health = exporter.until("/healthz", |answer| answer.status == 503);
    let expected = "nothing has been read yet; the last request failed (network_failed)\n";
    assert_eq!(health.body, expected);
    exporter.kill();
}

#[test]
fn an_exporter_whose_windows_do_not_settle_is_unhealthy() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let mut command = service
        .tallyfold(&arguments(&folder.path().join("totals.json"), &["--stale-after", "100ms"]));
    command.env("TALLYFOLD_CLUSTER_ENDPOINT", "http://127.0.0.1:1");
    let exporter = Exporter::start(&mut command);
    let health = exporter.until("/healthz", |answer| answer.body.contains("no window has settled"));
    assert_eq!(health.status, 503);
    assert!(health.body.contains("network_failed"), "{}", health.body);
    let text = exporter.get("/metrics").body;
    assert!(
        text.contains("tallyfold_exporter_requests_total{status=\"none\",target=\"token\"}"),
        "{text}"
    );
    assert_eq!(exporter.terminate(), 0);
}

#[test]
fn a_state_that_cannot_be_stored_at_the_start_ends_the_exporter() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    // The folder has the name of the state's temporary file.
    fs::create_dir(folder.path().join("totals.json.new")).unwrap();
    let output = service.tallyfold(&arguments(&state, &[])).output().unwrap();
    ends(&output, 2);
    let said = stderr(&output);
    assert!(said.contains(&format!("can't write {}", state.display())), "{said}");
    assert!(said.contains("try: another --state"), "{said}");
}

#[test]
fn on_a_full_disk_only_stored_totals_are_shown() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let more = ["--by", "integration,event_name"];
    let exporter = Exporter::start(&mut service.on_full_disk(&arguments(&state, &more)));
    let health = exporter.until("/healthz", |answer| answer.status == 503);
    assert!(health.body.contains("can't write"), "{}", health.body);
    let text = exporter.get("/metrics").body;
    assert!(!text.contains("_settled_events_total"), "{text}");
    assert!(!text.contains("tallyfold_exporter_store_failures_total 0"), "{text}");
    assert!(exporter.said.iter().take(2).any(|line| line.contains("can't write")));
    assert_eq!(exporter.terminate(), 0);
    // Once there is space again, an exporter starts from the beginning.
    let exporter = Exporter::of(&service, &state, &more);
    let end = "_settled_until_seconds 1740808800.000";
    exporter.until("/metrics", |answer| answer.body.contains(end));
    exporter.kill();
}

#[test]
fn a_state_that_is_in_use_or_damaged_is_refused() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let exporter = Exporter::of(&service, &state, &[]);
    exporter.complete();
    let refused = service.tallyfold(&arguments(&state, &[])).output().unwrap();
    ends(&refused, 2);
    assert!(stderr(&refused).contains("another process"), "{}", stderr(&refused));
    exporter.kill();
    let whole = fs::read(&state).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 12) {
        let mut bytes = whole.clone();
        bytes[place] ^= 2;
        fs::write(&state, &bytes).unwrap();
        let refused = service.tallyfold(&arguments(&state, &[])).output().unwrap();
        ends(&refused, 2);
        assert!(stderr(&refused).contains("totals.json"), "{}", stderr(&refused));
    }
    fs::write(&state, &whole).unwrap();
    // A state with other dimensions is refused.
    ends(&service.tallyfold(&arguments(&state, &["--by", "reason"])).output().unwrap(), 2);
    for wrong in [
        &["--listen", "9464"][..],
        &["--label", "integration=x"],
        &["--stale-after", "x"],
        &["--listen", "203.0.113.1:1"],
    ] {
        let mut all = arguments(&state, &[]);
        if wrong[0] == "--listen" {
            all.drain(1..3);
        }
        all.extend(wrong);
        ends(&service.tallyfold(&all).output().unwrap(), 2);
    }
}

#[test]
fn an_exporter_that_is_done_is_healthy() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    // With this flag, an exporter that waits for a window is unhealthy.
    let exporter = Exporter::of(&service, &state, &["--stale-after", "0s"]);
    exporter.until("/healthz", |answer| answer.status == 200);
}

/// Sends a request with these headers, and returns the head and the bytes of the response.
fn raw(exporter: &Exporter, headers: &str) -> (String, Vec<u8>) {
    let host = exporter.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\n{headers}connection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    (head.to_ascii_lowercase(), bytes[end + 4..].to_vec())
}

#[test]
fn scrapes_are_compressed_for_clients_that_accept_gzip() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::of(&service, &folder.path().join("totals.json"), &[]);
    let plain = exporter.complete();
    for accepted in ["gzip", "br;q=1.0, gzip;q=0.5"] {
        let (head, body) = raw(&exporter, &format!("host: a\r\naccept-encoding: {accepted}\r\n"));
        assert!(head.contains("content-encoding: gzip"), "{head}");
        assert!(body.len() < plain.body.len() / 2, "{}", body.len());
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(totals(&text), truth());
    }
    let (head, _) = raw(&exporter, "host: a\r\naccept-encoding: gzip;q=0\r\n");
    assert!(!head.contains("content-encoding"), "{head}");
}

#[test]
fn only_requests_for_allowed_hosts_are_answered() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let hosts = ["--allow-host", "metrics.example"];
    let exporter = Exporter::of(&service, &folder.path().join("totals.json"), &hosts);
    for (headers, status) in [
        ("host: metrics.example\r\n", "200"),
        ("host: Metrics.Example:9464\r\n", "200"),
        ("host: rebound.example\r\n", "421"),
        ("host: metrics.example.evil.example\r\n", "421"),
    ] {
        let (head, _) = raw(&exporter, headers);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{headers}: {head}");
    }
}
