//! Commands that read a service whose events arrive late, or whose clock differs from this machine's.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::{Received, ends, fetch, lines, read_request, stderr, stdout, terminate};
use tallyfold::{
    Call, CollectOptions, CollectStep, Dimension, FollowOptions, FollowStep, Machine,
    MachineOptions, Metric, Now, Step, TimeStep, Timestamp, Window,
};
use tallyfold_export::Ledger;
use tallyfold_sandbox::{Fault, FaultEffect, Outcome, Sandbox, SandboxEvent, SandboxOptions};

const SECOND_MS: i64 = 1_000;

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn text(unix_ms: i64) -> String {
    Timestamp::from_unix_ms(unix_ms).unwrap().to_string()
}

/// A service that counts an event only after it has arrived.
struct Late {
    url: String,
    options: SandboxOptions,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    sandbox: Sandbox,
    /// The time at which each event arrives, and the time at which it happened.
    events: Vec<(i64, i64)>,
    /// By how much the clock of the service is behind.
    behind_ms: i64,
}

impl Late {
    fn start(events: Vec<(i64, i64)>, behind_ms: i64) -> Self {
        let options = SandboxOptions::default();
        let shared =
            Shared { sandbox: Sandbox::new(options.clone()).unwrap(), events, behind_ms: 0 };
        let shared = Arc::new(Mutex::new(shared));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = Self { url, options, shared: Arc::clone(&shared) };
        if behind_ms > 0 {
            service.set_back(behind_ms);
        }
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || answer(stream, &shared));
            }
        });
        service
    }

    /// Sets the clock of the service back.
    fn set_back(&self, behind_ms: i64) {
        let milliseconds = u32::try_from(behind_ms).unwrap();
        let mut shared = self.shared.lock().unwrap();
        shared.behind_ms = behind_ms;
        let fault =
            Fault { effect: FaultEffect::Date { milliseconds }, endpoint: None, every: Some(1) };
        shared.sandbox.inject(fault).unwrap();
    }

    fn tallyfold(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command.args(arguments).env_remove("TALLYFOLD_CONFIG");
        command.env("TALLYFOLD_CLUSTER_ENDPOINT", &self.url);
        command.env("TALLYFOLD_CLIENT_ID", &self.options.client_id);
        command.env("TALLYFOLD_CLIENT_SECRET", self.options.client_secret.expose());
        command.env("TALLYFOLD_CONTROL_AUDIENCE", &self.options.control_audience);
        command.env("NO_PROXY", "127.0.0.1");
        command
    }
}

fn answer(stream: TcpStream, shared: &Mutex<Shared>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (line, Received { headers, body }) = read_request(&mut reader)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let mut shared = shared.lock().unwrap();
        let Shared { sandbox, events, behind_ms } = &mut *shared;
        let unix_ms = unix_ms();
        events.retain(|(arrives_ms, at_ms)| {
            if *arrives_ms > unix_ms - *behind_ms {
                return true;
            }
            let named = |name: &str| name.to_owned();
            let event = SandboxEvent::with_defaults(
                text(*at_ms),
                Outcome::Success,
                named("order"),
                named("web"),
                named("email"),
            );
            sandbox.record(&event).unwrap();
            false
        });
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let now = Now { monotonic_ms: u64::try_from(unix_ms).unwrap(), unix_ms };
        let response = sandbox.handle(method, target, &headers, &body, now);
        drop(shared);
        let mut head = format!("HTTP/1.1 {} -\r\n", response.status);
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", response.body.len()));
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&response.body).ok()?;
    }
}

/// A hundred events in each of three seconds. Every third event arrives `late_ms` milliseconds late.
fn events(start_ms: i64, late_ms: i64) -> Vec<(i64, i64)> {
    let each = (0..300).map(|number| start_ms + number * 10);
    each.enumerate()
        .map(|(number, at_ms)| (at_ms + if number % 3 == 0 { late_ms } else { 0 }, at_ms))
        .collect()
}

const PACE: [&str; 4] = ["--window", "1s", "--reread", "300ms"];

/// The number of events that a follow has counted at its end.
fn followed(service: &Late, from_ms: i64, more: &[&str]) -> i64 {
    let (from, until) = (text(from_ms), text(from_ms + 3 * SECOND_MS));
    let mut all = vec!["follow", "--format", "ndjson", "--from", &from, "--until", &until];
    all.extend(PACE);
    all.extend(more);
    let output = service.tallyfold(&all).output().unwrap();
    ends(&output, 0);
    stdout(&output)
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            match &row["success"] {
                serde_json::Value::String(digits) => digits.parse::<i64>().unwrap(),
                number => number.as_i64().unwrap(),
            }
        })
        .sum()
}

#[test]
fn a_follow_counts_late_events() {
    let from_ms = unix_ms() / SECOND_MS * SECOND_MS;
    let service = Late::start(events(from_ms, 3_000), 0);
    assert_eq!(followed(&service, from_ms, &["--settle", "5s"]), 300);
    // With `--settle-when-unchanged`, windows settle sooner, so late events are lost, even on a slow machine.
    let from_ms = unix_ms() / SECOND_MS * SECOND_MS;
    let service = Late::start(events(from_ms, 100_000), 0);
    let quick = ["--settle", "110s", "--settle-when-unchanged"];
    assert!(followed(&service, from_ms, &quick) < 300);
}

#[test]
fn a_scrape_counts_late_events() {
    let from_ms = unix_ms() / SECOND_MS * SECOND_MS;
    let service = Late::start(events(from_ms, 3_000), 0);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let (from, until) = (text(from_ms), text(from_ms + 3 * SECOND_MS));
    let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--state", state.to_str().unwrap()];
    all.extend(["--from", &from, "--until", &until, "--settle", "5s"]);
    all.extend(PACE);
    let mut process = service.tallyfold(&all).stderr(Stdio::piped()).spawn().unwrap();
    let line = lines(process.stderr.take().unwrap()).recv().unwrap();
    let url = line.strip_prefix("serving ").unwrap().to_owned();
    let end = format!("_settled_until_seconds {}.000", from_ms / SECOND_MS + 3);
    let limit = Instant::now() + Duration::from_secs(120);
    let body = loop {
        let body = fetch("GET", &url, "").unwrap().body;
        if body.contains(&end) {
            break body;
        }
        assert!(Instant::now() < limit, "{body}");
        thread::sleep(Duration::from_millis(50));
    };
    terminate(&process);
    process.wait().unwrap();
    let total = "tallyfold_event_delivery_by_integration_success_settled_events_total{integration=\"email\"} 300";
    assert!(body.contains(total), "{body}");
}

/// The clock of this machine is ten minutes ahead of the service's.
#[test]
fn a_clock_that_is_ahead_is_reported_and_settles_nothing() {
    let now_ms = unix_ms();
    let service = Late::start(Vec::new(), 600_000);
    let (from, to) = (text(now_ms - 3_900_000), text(now_ms - 3_600_000));
    let range = ["--from", &from, "--to", &to, "--format", "json"];
    let output = service.tallyfold(&[&["delivery"], &range[..]].concat()).output().unwrap();
    ends(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("warning") && said.contains("10 min ahead of the service's"), "{said}");
    assert!(stdout(&output).contains("provisional"), "{}", stdout(&output));
}

const HOUR_MS: i64 = 3_600_000;

/// The clock of this machine is fifteen days ahead of the service's. The check judges what the service counts now, and keeps the
/// history, so that the next check with a correct clock continues from there.
#[test]
fn a_check_with_a_clock_that_is_days_ahead_keeps_history_and_state() {
    const AHEAD_MS: i64 = 15 * 24 * HOUR_MS;
    let service = Late::start(Vec::new(), 0);
    let folder = tempfile::tempdir().unwrap();
    let rules = "[[rule]]\nname = \"fails\"\nkind = \"threshold\"\nmeasure = \"error_rate\"\nabove = \"10%\"\n";
    fs::write(folder.path().join("health.toml"), rules).unwrap();
    let check = |at: Option<i64>| {
        let mut line = vec!["check".to_owned()];
        line.extend(at.into_iter().flat_map(|at| ["--at".to_owned(), text(at)]));
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let mut command = service.tallyfold(&line);
        command.current_dir(folder.path()).output().unwrap()
    };
    let pages = || {
        let query = fs::read_dir(folder.path().join("health.history")).unwrap();
        let query = query.last().unwrap().unwrap().path();
        let names = fs::read_dir(query).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let now_ms = unix_ms() - AHEAD_MS;
    ends(&check(Some(now_ms - HOUR_MS)), 0);
    let before = pages();
    service.set_back(AHEAD_MS);
    let output = check(None);
    ends(&output, 0);
    assert!(stderr(&output).contains("21600 min ahead"), "{}", stderr(&output));
    let after = pages();
    assert!(after.is_superset(&before), "{before:?} {after:?}");
    ends(&check(Some(unix_ms() - AHEAD_MS)), 0);
}

fn machine(service: &Late) -> Machine {
    Machine::new(
        MachineOptions::default()
            .cluster_endpoint(service.url.clone())
            .client_id(service.options.client_id.clone())
            .client_secret(service.options.client_secret.clone())
            .control_audience(service.options.control_audience.clone())
            .dangerously_allow_http(true),
    )
    .unwrap()
}

/// Drives a call at a time that has not come.
fn drive(service: &Late, call: &mut Call, now: Now) {
    let mut shared = service.shared.lock().unwrap();
    while let Ok(Step::Send(request)) = call.step(now) {
        let target = request.url().strip_prefix(&service.url).unwrap();
        let headers: Vec<(&str, &str)> = request.headers().collect();
        let body = request.body().unwrap_or_default();
        let response = shared.sandbox.handle(request.method(), target, &headers, body, now);
        let json = [("content-type", "application/json")];
        assert!(call.head(response.status, &json).unwrap());
        call.chunk(&response.body).unwrap();
        call.end().unwrap();
    }
}

/// The time of a run whose clock is this much ahead.
fn ahead_by(ms: i64) -> Now {
    Now { monotonic_ms: 0, unix_ms: unix_ms() + ms }
}

/// The last quarter of an hour that has ended by this time.
fn quarter_before(unix_ms: i64) -> Window {
    let quarter = TimeStep::parse("15m").unwrap();
    let start = quarter.floor(Timestamp::from_unix_ms(unix_ms - 900_000).unwrap());
    Window::new(start, quarter.after(start).unwrap()).unwrap()
}

/// The state of a follow whose clock was an hour ahead.
fn future_state(service: &Late) -> String {
    let now = ahead_by(HOUR_MS);
    let start = quarter_before(now.unix_ms).start();
    let quarter = TimeStep::parse("15m").unwrap();
    let metric = Metric::EventDelivery;
    let options = FollowOptions::new(metric, start, &[Dimension::Integration], quarter);
    let mut follow = machine(service).follow(&options).unwrap();
    let FollowStep::Drive(mut next) = follow.next(now) else {
        panic!("a window is due");
    };
    drive(service, &mut next.call, now);
    assert!(follow.settle(next.task, &mut next.call, now).unwrap().is_some());
    follow.state()
}

/// The counts of a checkpoint from the future may have been settled too early, even if no window is missing.
#[test]
fn a_checkpoint_from_the_future_is_refused() {
    let service = Late::start(Vec::new(), 0);
    let now = ahead_by(3 * HOUR_MS);
    // For the earlier run, an hour has passed since the end of this window, so the window is settled.
    let window = quarter_before(now.unix_ms - HOUR_MS);
    let options = CollectOptions::new(Metric::EventDelivery, window, &[Dimension::Integration]);
    let mut collect = machine(&service).collect(options).unwrap();
    while let CollectStep::Drive(mut next) = collect.next(now) {
        drive(&service, &mut next.call, now);
        collect.settle(next.task, &mut next.call, now).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let segment = collect.unsaved().unwrap();
    fs::write(folder.path().join(segment.name), segment.json).unwrap();
    let [from, to] = [window.start(), window.end()].map(|time| time.to_string());
    let checkpoint = folder.path().to_str().unwrap();
    let range = ["collect", "--from", &from, "--to", &to];
    for format in ["table", "csv"] {
        let flags = ["--checkpoint", checkpoint, "--format", format];
        let output = service.tallyfold(&[&range[..], &flags].concat()).output().unwrap();
        let said = stderr(&output);
        assert!(said.contains("from the future"), "{said}");
        ends(&output, 2);
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_state_from_the_future_is_refused() {
    let service = Late::start(Vec::new(), 0);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    fs::write(&state, future_state(&service)).unwrap();
    let state = state.to_str().unwrap();
    let output = service.tallyfold(&["follow", "--state", state]).output().unwrap();
    ends(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("from the future") && said.contains("state.json"), "{said}");
}

/// The exporter keeps its totals, and reports that it is unhealthy.
#[test]
fn an_exporter_with_a_state_from_the_future_is_unhealthy() {
    let service = Late::start(Vec::new(), 0);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("totals.json");
    let mut ledger = Ledger::default();
    ledger.begin(future_state(&service));
    fs::write(&state, ledger.to_json()).unwrap();
    let state = state.to_str().unwrap();
    let all = ["serve", "--listen", "127.0.0.1:0", "--state", state];
    let mut process = service.tallyfold(&all).stderr(Stdio::piped()).spawn().unwrap();
    let said = lines(process.stderr.take().unwrap());
    let url = said.recv().unwrap();
    let url = url.strip_prefix("serving ").unwrap().replace("/metrics", "/healthz");
    assert!(said.iter().take(2).any(|line| line.contains("from the future")));
    let health = fetch("GET", &url, "").unwrap();
    assert_eq!(health.status, 503);
    assert!(health.body.contains("from the future"), "{}", health.body);
    terminate(&process);
    process.wait().unwrap();
}

/// Every command that shows counts reports totals of the service that are not the sums of its counts.
#[test]
fn totals_that_contradict_the_counts_are_reported() {
    let service = Late::start(Vec::new(), 0);
    {
        let mut shared = service.shared.lock().unwrap();
        let effect = FaultEffect::WrongTotal { amount: 1_007 };
        let fault = Fault { effect, endpoint: None, every: Some(1) };
        shared.sandbox.inject(fault).unwrap();
    }
    let end_ms = unix_ms() / 900_000 * 900_000 - 7_200_000;
    let (from, to) = (text(end_ms - 900_000), text(end_ms));
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let history = folder.path().join("history");
    let rules = folder.path().join("health.toml");
    // A fixed limit, which needs no history.
    let rule = "[[rule]]\nname = 'r'\nkind = 'threshold'\nmeasure = 'events'\nby = ['integration']\nabove = 1\n";
    fs::write(&rules, rule).unwrap();
    let wrong = "the totals that the service reports differ from the sums of its counts";
    for all in [
        &["follow", "--from", &from, "--until", &to][..],
        &["compare", "--from", &from, "--to", &to],
        &["explain", "--from", &from, "--to", &to],
        &[
            "check",
            "--at",
            &to,
            "--rules",
            rules.to_str().unwrap(),
            "--state",
            state.to_str().unwrap(),
            "--history",
            history.to_str().unwrap(),
        ],
    ] {
        let output = service.tallyfold(all).output().unwrap();
        let said = stderr(&output);
        assert!(said.contains(wrong), "{all:?}: {said}");
    }
    let totals = folder.path().join("totals.json");
    let state = totals.to_str().unwrap();
    let all =
        ["serve", "--listen", "127.0.0.1:0", "--state", state, "--from", &from, "--until", &to];
    let mut process = service.tallyfold(&all).stderr(Stdio::piped()).spawn().unwrap();
    let said = lines(process.stderr.take().unwrap());
    let url = said.recv().unwrap().strip_prefix("serving ").unwrap().to_owned();
    assert!(said.iter().take(2).any(|line| line.contains(wrong)));
    let counted = "tallyfold_exporter_contradictory_windows_total 1";
    let limit = Instant::now() + Duration::from_secs(120);
    while !fetch("GET", &url, "").unwrap().body.contains(counted) {
        assert!(Instant::now() < limit);
        thread::sleep(Duration::from_millis(20));
    }
    terminate(&process);
    process.wait().unwrap();
}

/// In CSV, an hour that the range covers only in part looks like a whole hour, so a warning names it.
#[test]
fn partly_covered_windows_are_named() {
    let hour_ms = 3_600_000;
    let hour = unix_ms() / hour_ms * hour_ms - 5 * hour_ms;
    let service = Late::start(vec![(hour, hour + 1_900_000), (hour, hour + 4_000_000)], 0);
    let (from, to) = (text(hour + hour_ms / 2), text(hour + 2 * hour_ms));
    let all = ["delivery", "--from", &from, "--to", &to, "--by-window", "1h", "--format", "csv"];
    let output = service.tallyfold(&all).output().unwrap();
    ends(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("counted only in part"), "{said}");
    let rows = stdout(&output);
    let settled: Vec<bool> = rows.lines().skip(1).map(|row| row.contains(",true,")).collect();
    assert_eq!(settled, [false, true], "{rows}");
}
