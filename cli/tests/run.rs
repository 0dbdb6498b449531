//! `tallyfold run` through the binary: one request for each window, exact sums in each part, failures and kills.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::pushed::{Points, add_points, expected, sums};
use crate::support::{
    Draw, FROM, Fetched, RANGE, Received, Reply, Sink, Sums, TAKEN, UNTIL, WINDOWS, ends, fetch,
    lines, read_request, stderr, terminate, truth,
};
use tallyfold::{Now, Timestamp};
use tallyfold_sandbox::{Fault, FaultEffect, Outcome, Sandbox, SandboxEvent, SandboxOptions};

const WAIT: Duration = Duration::from_secs(120);

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// The target and the body of each request.
type Log = Vec<(String, Vec<u8>)>;

/// A service that keeps a log of its requests.
struct Logged {
    url: String,
    options: SandboxOptions,
    sandbox: Arc<Mutex<Sandbox>>,
    log: Arc<Mutex<Log>>,
}

impl Logged {
    fn start(options: SandboxOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sandbox = Sandbox::new(options.clone()).unwrap();
        // Each response has a `Date`, as from a real server.
        let dated =
            Fault { effect: FaultEffect::Date { milliseconds: 0 }, endpoint: None, every: Some(1) };
        sandbox.inject(dated).unwrap();
        let service = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            sandbox: Arc::new(Mutex::new(sandbox)),
            options,
            log: Arc::default(),
        };
        let (sandbox, log) = (Arc::clone(&service.sandbox), Arc::clone(&service.log));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sandbox, log) = (Arc::clone(&sandbox), Arc::clone(&log));
                thread::spawn(move || answer(stream, &sandbox, &log));
            }
        });
        service
    }

    /// The traffic of seed 7, as in the other tests.
    fn seeded() -> Self {
        Self::start(SandboxOptions::default().seed(7))
    }

    /// Writes a configuration with these destinations, and returns the command.
    fn run(&self, folder: &Path, pushes: &[(&str, &str)], more: &[&str]) -> Command {
        self.configure(folder, pushes, "");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command
            .args(["run", "--config", "t.toml", "--listen", "127.0.0.1:0"])
            .args(["--state", "state"])
            .args(more)
            .current_dir(folder)
            .env("NO_PROXY", "127.0.0.1")
            .env("SECRET_OF_THE_TEST", self.options.client_secret.expose())
            .stdin(Stdio::null());
        command
    }

    /// Writes a configuration with these destinations. The last lines belong to the section `[run]`.
    fn configure(&self, folder: &Path, pushes: &[(&str, &str)], last: &str) {
        let mut text = format!(
            "[cluster.eu]\ncluster_endpoint = {:?}\nclient_id = {:?}\ncontrol_audience = {:?}\n\
             client_secret_env = \"SECRET_OF_THE_TEST\"\n",
            self.url, self.options.client_id, self.options.control_audience
        );
        for (name, url) in pushes {
            text.push_str(&format!(
                "[push.{name}]\nformat = \"influx\"\nurl = {url:?}\npatience = \"1s\"\n"
            ));
        }
        let names: Vec<&str> = pushes.iter().map(|(name, _)| *name).collect();
        text.push_str(&format!("[run]\npush = {names:?}\n{last}"));
        fs::write(folder.join("t.toml"), text).unwrap();
    }

    /// The number of times that each request for counts has arrived.
    fn readings(&self) -> BTreeMap<Vec<u8>, usize> {
        let mut readings = BTreeMap::new();
        for (target, body) in &*self.log.lock().unwrap() {
            if target.contains("/analytics/") {
                *readings.entry(body.clone()).or_default() += 1;
            }
        }
        readings
    }

    fn others(&self) -> usize {
        let log = self.log.lock().unwrap();
        let is_other = |(target, _): &&(String, Vec<u8>)| !target.contains("/analytics/");
        log.iter().filter(is_other).count()
    }

    fn record(&self, at_ms: i64) {
        self.event(at_ms, Outcome::Success);
    }

    fn filter(&self, at_ms: i64) {
        self.event(at_ms, Outcome::Filtered);
    }

    fn event(&self, at_ms: i64, outcome: Outcome) {
        let named = |name: &str| name.to_owned();
        let event = SandboxEvent::with_defaults(
            Timestamp::from_unix_ms(at_ms).unwrap().to_string(),
            outcome,
            named("order"),
            named("web"),
            named("email"),
        );
        self.sandbox.lock().unwrap().record(&event).unwrap();
    }
}

fn answer(stream: TcpStream, sandbox: &Mutex<Sandbox>, log: &Mutex<Log>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (line, Received { headers, body }) = read_request(&mut reader)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let unix_ms = unix_ms();
        let now = Now { monotonic_ms: u64::try_from(unix_ms).unwrap(), unix_ms };
        let response = sandbox.lock().unwrap().handle(method, target, &headers, &body, now);
        log.lock().unwrap().push((target.to_owned(), body));
        let mut head = format!("HTTP/1.1 {} -\r\n", response.status);
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", response.body.len()));
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&response.body).ok()?;
    }
}

/// The command while it runs.
struct Running {
    process: Child,
    url: String,
    said: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = lines(process.stderr.take().unwrap());
        let url = after(&said, "serving ");
        Self { process, url: url.trim_end_matches("/metrics").to_owned(), said }
    }

    /// Waits for a line on stderr that contains `what`, and returns the rest of that line.
    fn said(&self, what: &str) -> String {
        after(&self.said, what)
    }

    fn hang_up(&self) {
        let id = self.process.id().to_string();
        let kill = Command::new("kill").args(["-HUP", &id]).status();
        assert!(kill.unwrap().success());
    }

    fn get(&self, path: &str) -> Fetched {
        fetch("GET", &format!("{}{path}", self.url), "").unwrap()
    }

    /// Scrapes until `is_it` accepts the text.
    fn until(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.until_after(WAIT, is_it)
    }

    /// Scrapes until `is_it` accepts the text, for at most `wait`.
    fn until_after(&self, wait: Duration, is_it: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + wait;
        loop {
            let body = self.get("/metrics").body;
            if is_it(&body) {
                return body;
            }
            assert!(Instant::now() < until, "{body}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn after(said: &Receiver<String>, what: &str) -> String {
    let mut before = Vec::new();
    loop {
        let line = said.recv_timeout(WAIT).unwrap_or_else(|_| panic!("{what}: {before:?}"));
        if let Some((_, rest)) = line.split_once(what) {
            return rest.to_owned();
        }
        before.push(line);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const STEM: &str = "tallyfold_event_delivery_by_integration";

fn totals(text: &str) -> Sums {
    let mut sums = Sums::new();
    for (place, count) in ["success", "errors", "filtered"].iter().enumerate() {
        let start = format!("{STEM}_{count}_settled_events_total{{");
        for line in text.lines().filter(|line| line.starts_with(&start)) {
            let (_, rest) = line.split_once("integration=\"").unwrap();
            let (integration, rest) = rest.split_once('"').unwrap();
            let value = rest.rsplit(' ').next().unwrap();
            sums.entry(integration.to_owned()).or_default()[place] = value.parse().unwrap();
        }
    }
    sums
}

/// The value of a metric of a push.
fn of_push(text: &str, metric: &str, push: &str) -> f64 {
    let start = format!("tallyfold_run_push_{metric}{{cluster=\"eu\",push=\"{push}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("{start}: {text}")).parse().unwrap()
}

/// Adds the points that a destination receives, until their sums are the expected ones.
fn receive(sink: &Sink, points: &mut Points, expected: &Sums) {
    let until = Instant::now() + WAIT;
    while sums(points) != *expected {
        if let Ok((request, Reply::Answer(204, ..))) =
            sink.requests.recv_timeout(Duration::from_millis(100))
        {
            add_points(points, &request.body);
        }
        assert!(Instant::now() < until, "{:?}", sums(points));
    }
}

/// An address at which nothing listens. The system never assigns this low port to a test that requests any free port.
const CLOSED: &str = "http://127.0.0.1:1/write";

fn is_complete(text: &str) -> bool {
    text.contains("settled_until_seconds{cluster=\"eu\"} 1740808800.000")
}

#[test]
fn each_window_is_requested_once_and_a_destination_that_is_down_delays_no_other() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN));
    let pushes = [("one", &*one.url), ("down", CLOSED), ("two", &two.url)];
    let running = Running::start(&mut service.run(folder.path(), &pushes, &RANGE));
    assert_eq!(totals(&running.until(is_complete)), truth());
    for sink in [&one, &two] {
        receive(sink, &mut Points::new(), &expected());
    }
    let text = running.until(|text| {
        let waits = |push| of_push(text, "waiting_seconds", push) > 0.0;
        of_push(text, "failures_total", "down") > 0.0 && !waits("one") && !waits("two")
    });
    assert_eq!(of_push(&text, "healthy", "down"), 0.0);
    assert_eq!(of_push(&text, "samples_total", "down"), 0.0);
    assert!(of_push(&text, "waiting_seconds", "down") >= 1.0);
    for push in ["one", "two"] {
        assert_eq!(of_push(&text, "healthy", push), 1.0);
        assert!(of_push(&text, "samples_total", push) > 0.0);
    }
    assert_eq!(running.get("/-/healthy").status, 200);
    assert_eq!(running.get("/-/ready").status, 200);
    let readings = service.readings();
    assert_eq!(readings.len(), WINDOWS);
    let most = readings.values().max();
    assert_eq!(most, Some(&1), "each window is read once");
    assert_eq!(service.others(), 1, "one token for all parts");
}

#[test]
fn late_events_reach_each_part_once_and_a_destination_that_comes_back_gets_everything() {
    // The late event has to arrive before the window settles. On a slow machine, six seconds are not enough.
    let found = [6, 30, 100].into_iter().find(|seconds| late_events(*seconds));
    assert!(found.is_some(), "the window has settled too early");
}

/// Reads a window that settles after this many seconds. Returns false if the late event could not be recorded in time.
fn late_events(seconds: i64) -> bool {
    let service = Logged::start(SandboxOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let step_ms = 5 * 60_000;
    let end_ms = unix_ms() / step_ms * step_ms - step_ms;
    let text = |ms| Timestamp::from_unix_ms(ms).unwrap().to_string();
    let at_ms = end_ms - 1_000;
    service.record(at_ms);
    let settle_s = (unix_ms() - end_ms) / 1_000 + seconds;
    let (settle, from) = (format!("{settle_s}s"), text(end_ms - step_ms));
    let more = [
        "--window",
        "5m",
        "--reread",
        "1s",
        "--settle",
        &settle,
        "--from",
        &from,
        "--until",
        &text(end_ms),
    ];
    let (well, busy) =
        (Sink::start(vec![], TAKEN), Sink::start(vec![Reply::Answer(503, "", "busy"); 4], TAKEN));
    let pushes = [("well", &*well.url), ("busy", &busy.url)];
    let running = Running::start(&mut service.run(folder.path(), &pushes, &more));
    let mut points = Points::new();
    let counts = |success| Sums::from([("email".to_owned(), [success, 0, 0])]);
    receive(&well, &mut points, &counts(1));
    let before = service.readings().values().sum::<usize>();
    service.record(at_ms);
    if unix_ms() >= end_ms + settle_s * 1_000 {
        return false;
    }
    receive(&well, &mut points, &counts(2));
    receive(&busy, &mut Points::new(), &counts(2));
    let scraped = running.until(|text| totals(text) == counts(2));
    assert!(of_push(&scraped, "samples_total", "well") >= 2.0);
    // Three parts read the window about once a second, and share the responses.
    let after = service.readings().values().sum::<usize>();
    let most = usize::try_from(seconds).unwrap() + 4;
    assert!((before + 1..=most).contains(&after), "{before} {after} {most}");
    true
}

/// A rule that fires at once.
const RULES: &str = r#"
dimensions = ["integration", "reason"]

[[rule]]
name = "much is filtered"
kind = "threshold"
measure = "filtered_rate"
by = ["integration"]
above = "10%"
"#;

/// Requests a path of the dashboard.
fn page(address: &str, path: &str) -> Fetched {
    let url = format!("{address}{}", path.trim_start_matches('/'));
    fetch("GET", &url, "x-user: somebody\r\n").unwrap()
}

#[test]
fn rules_and_the_dashboard_share_responses() {
    let service = Logged::start(SandboxOptions::default());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("health.toml"), RULES).unwrap();
    let step_ms = 15 * 60_000;
    let start_ms = unix_ms() / step_ms * step_ms - 6 * step_ms;
    for window in 0..6 {
        let at_ms = start_ms + window * step_ms + 1_000;
        for _ in 0..20 {
            service.record(at_ms);
        }
        if window >= 4 {
            for _ in 0..80 {
                service.filter(at_ms);
            }
        }
    }
    let (sink, chat) = (Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN));
    let from = Timestamp::from_unix_ms(start_ms).unwrap().to_string();
    let more = ["--from", &from, "--settle", "1s", "--trust-header", "x-user"];
    let mut command = service.run(folder.path(), &[("one", &sink.url)], &more);
    let chat_section = format!(
        "notify = [\"webhook.chat\"]\ndashboard = \"127.0.0.1:0\"\n[webhook.chat]\nurl = {:?}\n",
        chat.url
    );
    service.configure(folder.path(), &[("one", &sink.url)], &chat_section);
    let running = Running::start(&mut command);
    let address = running.said("dashboard ");
    let incident = running.said("firing ");
    assert!(incident.contains("warning: integration email: 80% of events filtered"), "{incident}");
    let told = chat.requests.recv_timeout(WAIT).unwrap().0;
    let told = String::from_utf8(told.body).unwrap();
    assert!(told.contains("integration email: 80% of events filtered"), "{told}");
    let counts = Sums::from([("email".to_owned(), [120, 0, 160])]);
    receive(&sink, &mut Points::new(), &counts);
    let scraped = running.until(|text| text.contains("tallyfold_run_check_healthy 1\n"));
    let incidents = "tallyfold_run_incidents{cluster=\"eu\",severity=\"warning\"} 1\n";
    assert!(scraped.contains(incidents), "{scraped}");
    // The page counts by one dimension, the rules by two.
    let time = |ms| Timestamp::from_unix_ms(ms).unwrap().to_string().replace(':', "%3A");
    let (from, to) = (time(start_ms), time(start_ms + 6 * step_ms));
    let path = format!(
        "/c/eu/v1.1/analytics/event_delivery/windows?start={from}&end={to}&window=15m&dimensions=integration"
    );
    assert_eq!(page(&address, "/").status, 200);
    let seen = page(&address, &path);
    assert_eq!(seen.status, 200, "{}", seen.body);
    let group = r#""counts":[{"success":"20","errors":"0","filtered":"80","dimensions":{"integration":"email"}}]"#;
    assert_eq!(seen.body.matches(group).count(), 2, "{}", seen.body);
    let readings = service.readings();
    let wide = readings.keys().filter(|body| {
        let text = String::from_utf8_lossy(body);
        text.contains("\"integration\",\"reason\"")
    });
    let often = wide.clone().map(|body| (String::from_utf8_lossy(body), readings[body]));
    let twice: Vec<_> = often.filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "read more than once: {twice:?}");
    // The others are windows that had settled when the page was opened.
    let others = readings.len() - wide.count();
    assert!(others <= 2, "{others} of {}", readings.len());
    assert_eq!(service.others(), 1, "one token for all parts");
    assert_eq!(fetch("GET", &address, "").unwrap().status, 401);
    // The next process knows from the state what this one has reported.
    drop(running);
    // Both the log and the message contain the id for `check ack`. That command works without the configuration.
    let id = incident.rsplit_once(" [incident ").unwrap().1;
    let id = id.strip_suffix(']').unwrap();
    assert!(told.contains(&format!("[incident {id}]")), "{told}");
    let mut ack = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
    ack.args(["check", "ack", id, "--state", "state/check"]);
    let acknowledged = ack.current_dir(folder.path()).output().unwrap();
    ends(&acknowledged, 0);
    assert!(stderr(&acknowledged).contains("acknowledged: eu: integration email"));
    let running = Running::start(&mut command);
    let scraped = running.until(|text| text.contains("tallyfold_run_check_healthy 1\n"));
    assert!(
        !scraped.contains("tallyfold_run_incidents{"),
        "an acknowledged incident is counted: {scraped}"
    );
    terminate(&running.process);
    let said: Vec<String> = running.said.iter().collect();
    assert!(!said.iter().any(|line| line.contains("firing ")), "{said:?}");
}

#[test]
fn a_refused_secret_is_not_tried_again_for_each_window() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::start(vec![], TAKEN);
    let more = ["--since", "30d"];
    let mut command = service.run(folder.path(), &[("one", &sink.url)], &more);
    command.env("SECRET_OF_THE_TEST", "wrong");
    let begun = Instant::now();
    let running = Running::start(&mut command);
    running.said("will be read again later");
    running
        .until(|text| text.contains("tallyfold_run_push_healthy{cluster=\"eu\",push=\"one\"} 0\n"));
    // A second later, none of the other 2,879 windows has caused a token request.
    thread::sleep(Duration::from_secs(1));
    // The client remembers a refusal for ten seconds.
    let most = 4 + begun.elapsed().as_secs() as usize / 10;
    assert!(service.others() <= most, "{} token requests", service.others());
    terminate(&running.process);
}

#[test]
fn samples_that_are_lost_are_counted_and_make_the_push_unhealthy() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let refusals = vec![Reply::Answer(500, "", ""); 2];
    let sink =
        Sink::start(refusals, Reply::Answer(200, "content-type: application/json\r\n", "{}"));
    let mut command = service.run(folder.path(), &[("one", &sink.url)], &RANGE);
    let path = folder.path().join("t.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"influx\"", "\"otlp-json\"")).unwrap();
    let running = Running::start(&mut command);
    let said = running.said("warning: ");
    assert!(said.starts_with("eu: push one: "), "{said}");
    running
        .until(|text| text.contains("tallyfold_run_push_healthy{cluster=\"eu\",push=\"one\"} 0\n"));
    let text = running.until(|text| {
        is_complete(text)
            && text.contains("tallyfold_run_push_healthy{cluster=\"eu\",push=\"one\"} 1\n")
    });
    assert_eq!(of_push(&text, "failures_total", "one"), 2.0);
    assert!(of_push(&text, "unacknowledged_samples_total", "one") > 0.0);
    terminate(&running.process);
}

#[test]
fn a_check_that_fails_is_reported_once_and_delays_nothing() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("health.toml"), RULES).unwrap();
    let sink = Sink::start(vec![], TAKEN);
    let pushes = [("one", &*sink.url)];
    let mut command = service.run(folder.path(), &pushes, &RANGE);
    service.configure(folder.path(), &pushes, "check = true\n");
    let history = folder.path().join("state/history");
    fs::create_dir_all(history.parent().unwrap()).unwrap();
    fs::write(&history, "not a folder").unwrap();
    let running = Running::start(&mut command);
    let said = running.said("error: ");
    assert!(said.contains("history"), "{said}");
    let text = running.until(|text| text.contains("tallyfold_run_check_healthy 0\n"));
    // The age is known even if no check has succeeded yet.
    assert!(text.contains("tallyfold_run_check_age_seconds "), "{text}");
    assert_eq!(totals(&running.until(is_complete)), truth());
    receive(&sink, &mut Points::new(), &expected());
    assert_eq!(running.get("/-/ready").status, 200);
}

#[test]
fn a_cluster_that_is_down_delays_no_alert_of_another() {
    let service = Logged::start(SandboxOptions::default());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("health.toml"), RULES).unwrap();
    let now_ms = unix_ms() / 900_000 * 900_000;
    // The next window has the same events, because it may end before the check.
    for _ in 0..100 {
        service.filter(now_ms - 1_000);
        service.filter(now_ms + 899_000);
    }
    let chat = Sink::start(vec![], TAKEN);
    let more = ["--since", "1h", "--settle", "1s", "--delay", "0s"];
    let mut command = service.run(folder.path(), &[], &more);
    let path = folder.path().join("t.toml");
    let text = fs::read_to_string(&path).unwrap();
    let section = format!("notify = [\"webhook.chat\"]\n[webhook.chat]\nurl = {:?}\n", chat.url);
    // The cluster that is down comes first, and has no stored history.
    let down = text.replace("[cluster.eu]", "[cluster.down]");
    let down = down.split("[run]").next().unwrap();
    let down = down.replace(&service.url, "http://127.0.0.1:1");
    fs::write(&path, format!("{down}{text}{section}")).unwrap();
    let running = Running::start(&mut command);
    let sent = chat.requests.recv_timeout(WAIT).unwrap().0;
    assert!(String::from_utf8_lossy(&sent.body).contains("events filtered"));
    // The check of the other cluster still waits for its service.
    let scraped = running.get("/metrics").body;
    assert!(scraped.contains("tallyfold_run_check_failures_total 0\n"), "{scraped}");
    let incidents = "tallyfold_run_incidents{cluster=\"eu\",severity=\"warning\"} 1\n";
    running.until(|text| text.contains(incidents));
    let mut stopped = running;
    terminate(&stopped.process);
    stopped.process.wait().unwrap();
    // After a restart, the metrics count the incident even before the service answers.
    let unanswered = service.sandbox.lock().unwrap();
    let mut running = Running::start(&mut command);
    let scraped = running.get("/metrics").body;
    assert!(scraped.contains(incidents), "{scraped}");
    running.process.kill().unwrap();
    drop(unanswered);
}

#[test]
fn each_alert_is_sent_once_even_if_the_state_cannot_be_stored() {
    let service = Logged::start(SandboxOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let rules = RULES.replace("above = ", "window = \"1m\"\nabove = ");
    fs::write(folder.path().join("health.toml"), rules).unwrap();
    let now_ms = unix_ms();
    // The incident lasts longer than this test.
    for minute in -9..4 {
        for _ in 0..100 {
            service.filter(now_ms - minute * 60_000);
        }
    }
    let (chat, sink) = (Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN));
    let pushes = [("one", &*sink.url)];
    let more = ["--window", "1m", "--since", "5m", "--settle", "1s", "--delay", "0s"];
    let mut command = service.run(folder.path(), &pushes, &more);
    let section = format!("notify = [\"webhook.chat\"]\n[webhook.chat]\nurl = {:?}\n", chat.url);
    service.configure(folder.path(), &pushes, &section);
    // The folder has the name of the state's temporary file.
    let blocked = folder.path().join("state/check/eu.json.new");
    fs::create_dir_all(&blocked).unwrap();
    let running = Running::start(&mut command);
    let said = running.said("error: check: can't write ");
    assert!(said.contains("eu.json"), "{said}");
    let sent = chat.requests.recv_timeout(WAIT).unwrap().0;
    assert!(String::from_utf8_lossy(&sent.body).contains("events filtered"));
    running.until(|text| text.contains("tallyfold_run_check_healthy 0\n"));
    // Once the state can be stored, the next check begins within a minute. It knows what was sent.
    fs::remove_dir(&blocked).unwrap();
    running.until_after(2 * WAIT, |text| text.contains("tallyfold_run_check_healthy 1\n"));
    assert!(chat.all().is_empty(), "the alert is not sent again");
    terminate(&running.process);
}

#[test]
fn a_reload_replaces_the_configuration_only_if_all_of_it_is_valid() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN));
    let running = Running::start(&mut service.run(folder.path(), &[("one", &one.url)], &RANGE));
    running.until(is_complete);
    let path = folder.path().join("t.toml");
    let valid = fs::read_to_string(&path).unwrap();
    for (wrong, why) in [
        (valid.replace("push = [\"one\"]", "push = [\"no\"]"), "there is no section [push.no]"),
        (valid.replace("format = \"influx\"", "format = \"nothing\""), "format"),
        (format!("{valid}dashboard = \"127.0.0.1:0\"\n"), "--password-file"),
        (format!("{valid}check = true\n[check]\nrules = \"none.toml\"\n"), "none.toml"),
        ("[".to_owned(), "t.toml"),
    ] {
        fs::write(&path, wrong).unwrap();
        running.hang_up();
        let said = running.said("the configuration stays as it was: ");
        assert!(said.contains(why), "{said}");
        running.until(|text| text.contains("tallyfold_run_last_reload_successful 0\n"));
    }
    assert_eq!(totals(&running.until(is_complete)), truth());
    let pushes = [("one", &*one.url), ("two", &two.url)];
    service.configure(folder.path(), &pushes, "");
    running.hang_up();
    running.said("the configuration is loaded again");
    for sink in [&one, &two] {
        receive(sink, &mut Points::new(), &expected());
    }
    let text = running.until(|text| {
        is_complete(text) && text.contains("tallyfold_run_last_reload_successful 1\n")
    });
    assert_eq!(totals(&text), truth());
    assert!(of_push(&text, "samples_total", "two") > 0.0);
    // Counts that the first destination has received are not sent again.
    assert_eq!(of_push(&text, "samples_total", "one"), 0.0);
    // A state that can't be used is noticed only after the former parts have ended, so they are started again.
    fs::write(folder.path().join("state/push-three"), "not a folder").unwrap();
    let pushes = [("one", &*one.url), ("two", &two.url), ("three", &two.url)];
    service.configure(folder.path(), &pushes, "");
    running.hang_up();
    let line = running.said.recv_timeout(WAIT).unwrap();
    assert!(line.contains("the configuration stays as it was: "), "{line}");
    assert_eq!(totals(&running.until(is_complete)), truth());
    // If the former parts can't start, either, the process keeps running, and tries again later.
    let serve = folder.path().join("state/serve");
    fs::remove_dir_all(&serve).unwrap();
    fs::write(&serve, "").unwrap();
    running.hang_up();
    running.said("the configuration stays as it was: ");
    running.said("; retrying in 10 s");
    assert_eq!(running.get("/-/healthy").status, 200);
    assert_eq!(running.get("/-/ready").status, 503);
    fs::remove_file(&serve).unwrap();
    fs::write(&path, valid).unwrap();
    running.hang_up();
    running.said("the configuration is loaded again");
    assert_eq!(totals(&running.until(is_complete)), truth());
    terminate(&running.process);
}

#[test]
fn after_a_failed_reload_windows_have_time_to_settle() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::start(vec![], TAKEN);
    // No window settles during this test.
    let more = ["--since", "1h", "--settle", "1d", "--stale-after", "3s"];
    let running = Running::start(&mut service.run(folder.path(), &[("one", &sink.url)], &more));
    let is_ready = |status| {
        let until = Instant::now() + WAIT;
        loop {
            let answer = running.get("/-/ready");
            if answer.status == status && answer.body != "starting\n" {
                return;
            }
            assert!(Instant::now() < until, "{}", answer.body);
            thread::sleep(Duration::from_millis(10));
        }
    };
    is_ready(503);
    // The parts end before the state of the new push turns out to be unusable, and then they start again.
    fs::write(folder.path().join("state/push-two"), "not a folder").unwrap();
    service.configure(folder.path(), &[("one", &sink.url), ("two", &sink.url)], "");
    running.hang_up();
    running.said("the configuration stays as it was: ");
    is_ready(200);
    terminate(&running.process);
}

/// The command that prints the secret waits for a file. Meanwhile, the process answers requests and reacts to signals.
#[test]
fn a_slow_secret_delays_neither_responses_nor_signals() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::start(vec![], TAKEN);
    let mut command = service.run(folder.path(), &[("one", &sink.url)], &RANGE);
    let path = folder.path().join("t.toml");
    let text = fs::read_to_string(&path).unwrap();
    let asking = folder.path().join("asking");
    let script = format!(
        "touch {0}; while kill -0 $PPID && ! test -e {0}.go; do sleep 0.01; done; printf $SECRET_OF_THE_TEST",
        asking.display()
    );
    let slow = text.replace(
        "client_secret_env = \"SECRET_OF_THE_TEST\"",
        &format!("client_secret_command = {script:?}"),
    );
    let asked = || {
        let until = Instant::now() + WAIT;
        while !asking.exists() {
            assert!(Instant::now() < until, "the command has not begun");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let go = asking.with_extension("go");
    let mut running = Running::start(&mut command);
    running.until(is_complete);
    fs::write(&path, &slow).unwrap();
    running.hang_up();
    asked();
    assert_eq!(running.get("/-/healthy").status, 200);
    assert_eq!(running.get("/metrics").status, 200);
    fs::write(&go, "").unwrap();
    running.said("the configuration is loaded again");
    running.until(is_complete);
    fs::remove_file(&go).unwrap();
    fs::remove_file(&asking).unwrap();
    running.hang_up();
    asked();
    terminate(&running.process);
    let until = Instant::now() + Duration::from_secs(60);
    while running.process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "SIGTERM waits for the command");
        thread::sleep(Duration::from_millis(10));
    }
    fs::write(&go, "").unwrap();
}

#[test]
fn a_destination_that_has_moved_needs_the_flag_moved() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN));
    let running = Running::start(&mut service.run(folder.path(), &[("one", &one.url)], &RANGE));
    receive(&one, &mut Points::new(), &expected());
    terminate(&running.process);
    drop(running);
    let moved =
        |more: &[&str]| service.run(folder.path(), &[("one", &two.url)], &[&RANGE, more].concat());
    let output = moved(&[]).stderr(Stdio::piped()).output().unwrap();
    ends(&output, 2);
    assert!(stderr(&output).contains("--moved one once"), "{}", stderr(&output));
    let output = moved(&["--moved", "two"]).stderr(Stdio::piped()).output().unwrap();
    assert!(stderr(&output).contains("--moved two: the section [run] names no such push"));
    let running = Running::start(&mut moved(&["--moved", "one"]));
    assert_eq!(totals(&running.until(is_complete)), truth());
    // The flag does not apply to a later address.
    service.configure(folder.path(), &[("one", &one.url)], "");
    running.hang_up();
    running.said("the configuration stays as it was: ");
    assert!(running.said("try: ").contains("--moved one once"));
    terminate(&running.process);
}

#[test]
fn kills_at_any_moment_neither_lose_nor_double_counts_in_any_part() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let sinks = [Sink::start(vec![], TAKEN), Sink::start(vec![], TAKEN)];
    let pushes = [("one", &*sinks[0].url), ("two", &sinks[1].url)];
    let (mut points, mut draw) = ([Points::new(), Points::new()], Draw(9));
    for _ in 0..12 {
        let running = Running::start(&mut service.run(folder.path(), &pushes, &RANGE));
        // Kills the process a little after some messages.
        for _ in 0..1 + draw.below(4) {
            if let Ok((request, Reply::Answer(204, ..))) =
                sinks[0].requests.recv_timeout(Duration::from_millis(300))
            {
                add_points(&mut points[0], &request.body);
            }
        }
        thread::sleep(Duration::from_micros(draw.below(8_000)));
        drop(running);
    }
    let running = Running::start(&mut service.run(folder.path(), &pushes, &RANGE));
    assert_eq!(totals(&running.until(is_complete)), truth());
    for (sink, points) in sinks.iter().zip(&mut points) {
        receive(sink, points, &expected());
    }
    terminate(&running.process);
}

#[test]
fn an_invalid_configuration_is_refused_with_the_place_of_the_error() {
    let service = Logged::seeded();
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: fn(String) -> String| {
        let url = "http://127.0.0.1:9/write";
        let mut command =
            service.run(folder.path(), &[("one", url)], &["--from", FROM, "--until", UNTIL]);
        let path = folder.path().join("t.toml");
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
        let output = command.stderr(Stdio::piped()).output().unwrap();
        ends(&output, 2);
        stderr(&output)
    };
    for (change, expected) in [
        (
            (|text| text.replace("push = [\"one\"]", "push = [\"on\"]")) as fn(String) -> String,
            "t.toml:11:1: run.push: there is no section [push.on]",
        ),
        (
            |text| text.replace("push = [\"one\"]", "push = [\"one\", \"one\"]"),
            "t.toml:11:1: run.push: one is listed twice",
        ),
        (|text| text.replace("push = [\"one\"]", "push = \"one\""), "t.toml:11:"),
        (|text| text.replace("push = [\"one\"]", "pull = [\"one\"]"), "t.toml:11:1: run.pull"),
        (
            |text| text.replace("push = [\"one\"]", "push = []"),
            "t.toml names nothing to do; want push, check, notify or dashboard in a section [run]",
        ),
        (
            |text| text.replace("push = [\"one\"]", "dashboard = \"0.0.0.0:0\""),
            "run.dashboard: 0.0.0.0: other machines could read all counts; want --password-file",
        ),
    ] {
        let text = refused(change);
        assert!(text.contains(expected), "{text}");
    }
    assert!(service.log.lock().unwrap().is_empty(), "nothing was requested");
}
