//! `tallyfold dashboard` through the binary, over loopback: who has access, what the page receives, and what is stored.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{FROM, Service, UNTIL, ends, lines, stderr, stdout, terminate};
use serde_json::Value;
use tempfile::TempDir;

const RANGE: &str = "/v1.1/analytics/event_delivery/windows?start=2025-03-01T00%3A00%3A00Z&end=2025-03-01T06%3A00%3A00Z\
     &window=15m&dimensions=integration%2Creason";

/// A folder that contains a page, and the folder `run` for the command.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page");
    fs::create_dir(&page).unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    let html = "<script src=\"dashboard-1A2B.js\"></script><tallyfold-dashboard clusters=\"[]\"></tallyfold-dashboard>";
    fs::write(page.join("index.html"), html).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"export {};\n").unwrap();
    fs::write(page.join("dashboard-1A2B.js.gz"), encoder.finish().unwrap()).unwrap();
    folder
}

/// A response.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Sends a request with HTTP/1.0, so that the response ends with the connection.
fn ask(url: &str, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let mut head = format!("{line} HTTP/1.0\r\n");
    if headers.iter().all(|(name, _)| *name != "host") {
        head += &format!("host: {host}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let length = body.len();
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    Answer {
        status: status.parse().unwrap(),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: bytes[at + 4..].to_vec(),
    }
}

/// A dashboard that is served.
struct Dashboard {
    process: Child,
    /// The address without a path.
    url: String,
    /// The path of the printed address.
    path: String,
    printed: Receiver<String>,
}

impl Dashboard {
    fn start(command: &mut Command, folder: &Path) -> Self {
        Self::start_with(command, folder, Stdio::null())
    }

    fn start_with(command: &mut Command, folder: &Path, stderr: Stdio) -> Self {
        let mut process = command
            .current_dir(folder.join("run"))
            .env("TALLYFOLD_DASHBOARD_PAGE", folder.join("page"))
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let printed = lines(process.stdout.take().unwrap());
        let address = printed.recv_timeout(Duration::from_secs(120)).unwrap();
        let at = address.rfind("/").unwrap();
        Self { process, url: address[..at].to_owned(), path: address[at..].to_owned(), printed }
    }

    fn of(service: &Service, folder: &Path) -> Self {
        let arguments = ["dashboard", "--listen", "127.0.0.1:0"];
        Self::start(&mut service.tallyfold(&arguments), folder)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        ask(&self.url, &format!("GET {path}"), headers, "")
    }

    /// Opens the printed address, and returns the cookie.
    fn open(&self) -> String {
        let welcome = self.get(&self.path, &[]);
        assert_eq!(welcome.status, 303);
        let cookie = welcome.headers["set-cookie"].split(';').next().unwrap();
        cookie.to_owned()
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_printed_address_admits_one_browser() {
    let (service, folder) = (Service::start(), folder());
    let mut dashboard = Dashboard::of(&service, folder.path());
    assert!(dashboard.url.starts_with("http://127.0.0.1:"));
    for path in ["/", "/dashboard-1A2B.js", "/rules.toml", "/?token=", "/?token=0"] {
        assert_eq!(dashboard.get(path, &[]).status, 401, "{path}");
    }
    assert_eq!(dashboard.get(&format!("/c/default{RANGE}"), &[]).status, 401);
    let welcome = dashboard.get(&dashboard.path, &[]);
    assert_eq!((welcome.status, &*welcome.headers["location"]), (303, "/"));
    let whole = &welcome.headers["set-cookie"];
    assert!(whole.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{whole}");
    let cookie = whole.split(';').next().unwrap().to_owned();
    // The address works once, and the dashboard prints the next one.
    assert_eq!(dashboard.get(&dashboard.path, &[]).status, 401);
    assert_eq!(dashboard.get(&dashboard.path, &[("cookie", &cookie)]).status, 303);
    let next = dashboard.printed.recv_timeout(Duration::from_secs(120)).unwrap();
    let next = next.strip_prefix(&dashboard.url).unwrap();
    assert_ne!(next, dashboard.path);
    assert_eq!(dashboard.get(next, &[]).status, 303);

    let cookies = [("cookie", &*format!("other=1; {cookie}"))];
    let page = dashboard.get("/", &cookies);
    assert_eq!(page.status, 200);
    let named = "clusters=\"[{&quot;name&quot;:&quot;default&quot;,&quot;src&quot;:&quot;/c/default&quot;}]\" \
                 rules=\"/rules.toml\"";
    assert!(page.text().contains(named), "{}", page.text());
    let policy = &page.headers["content-security-policy"];
    for part in [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe-inline"));
    assert!(!policy.contains("http"));
    assert_eq!(page.headers["cache-control"], "no-store");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    let script = dashboard.get("/dashboard-1A2B.js", &cookies);
    assert_eq!(script.text(), "export {};\n");
    assert!(script.headers["cache-control"].contains("immutable"));
    let packed = [cookies[0], ("accept-encoding", "br, gzip")];
    let packed = dashboard.get("/dashboard-1A2B.js", &packed);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.body.starts_with(b"\x1f\x8b"));
    let rules = dashboard.get("/rules.toml", &cookies);
    assert!(
        rules.text().contains("[[rule]]") || rules.text().contains("[rule"),
        "{}",
        rules.text()
    );
    assert_eq!(dashboard.get("/../Cargo.toml", &cookies).status, 404);
    assert_eq!(dashboard.get("/c/other/v1.1/oauth/token", &cookies).status, 404);

    terminate(&dashboard.process);
    assert_eq!(dashboard.process.wait().unwrap().code(), Some(0));
}

#[test]
fn requests_of_other_sites_are_refused() {
    let (service, folder) = (Service::start(), folder());
    let dashboard = Dashboard::of(&service, folder.path());
    let port = dashboard.url.rsplit(':').next().unwrap().to_owned();
    let cookie = dashboard.open();
    let own = ("cookie", &*cookie);
    let range = format!("/c/default{RANGE}");
    for (headers, status) in [
        (&[("host", &*format!("localhost:{port}"))][..], 200),
        (&[("host", &*format!("[::1]:{port}"))][..], 200),
        (&[("host", &*format!("evil.example:{port}"))][..], 421),
        (&[("host", &*format!("127.0.0.1.evil.example:{port}"))][..], 421),
        (&[("origin", "https://evil.example")][..], 403),
        (&[("origin", "null")][..], 403),
        (&[("origin", &*dashboard.url)][..], 200),
        (&[("sec-fetch-site", "cross-site")][..], 403),
        (&[("sec-fetch-site", "same-site")][..], 403),
        (&[("sec-fetch-site", "same-origin")][..], 200),
    ] {
        let all: Vec<(&str, &str)> = headers.iter().copied().chain([own]).collect();
        assert_eq!(dashboard.get(&range, &all).status, status, "{headers:?}");
        let body = r#"{"start":"2025-03-01T00:00:00Z","end":"2025-03-01T00:15:00Z","dimensions":["reason"]}"#;
        let mut all = all;
        all.push(("content-type", "application/json"));
        let path = "POST /c/default/v1.1/analytics/event_delivery";
        let posted = ask(&dashboard.url, path, &all, body);
        assert_eq!(posted.status, status, "{headers:?}");
    }
    // A user may follow a link from another site, but a script of that site can't read files of the page.
    let link = [own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(dashboard.get("/", &link).status, 200);
    let script = [own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(dashboard.get("/dashboard-1A2B.js", &script).status, 403);
}

/// The sums of the lines of a range, by integration and reason: success, errors, filtered.
fn sums(text: &str) -> BTreeMap<(String, String), [u128; 3]> {
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut sums = BTreeMap::new();
    loop {
        let head = lines.next().unwrap();
        if head["done"] == true {
            assert!(lines.next().is_none());
            return sums;
        }
        assert_eq!(head["settled"], true);
        let body = lines.next().unwrap();
        for entry in body["counts"].as_array().unwrap() {
            let name = |of: &str| entry["dimensions"][of].as_str().unwrap_or("").to_owned();
            let sum = sums.entry((name("integration"), name("reason"))).or_insert([0; 3]);
            for (place, count) in ["success", "errors", "filtered"].iter().enumerate() {
                sum[place] += entry[count].as_str().unwrap().parse::<u128>().unwrap();
            }
        }
    }
}

#[test]
fn a_range_has_exactly_the_counts_of_the_command() {
    let (service, folder) = (Service::start(), folder());
    let dashboard = Dashboard::of(&service, folder.path());
    let cookie = dashboard.open();
    let range = dashboard.get(&format!("/c/default{RANGE}"), &[("cookie", &cookie)]);
    assert_eq!(range.status, 200);
    assert_eq!(range.headers["content-type"], "application/x-ndjson");
    assert_eq!(range.headers["cache-control"], "private, no-cache");
    assert!(range.headers.contains_key("date"));
    let sums = sums(&range.text());
    let mut command = service.tallyfold(&[
        "delivery",
        "--from",
        FROM,
        "--to",
        UNTIL,
        "--by",
        "integration,reason",
        "--format",
        "json",
    ]);
    let output = command.output().unwrap();
    ends(&output, 0);
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = rows_of(&document);
    assert!(rows.len() > 40, "{}", rows.len());
    assert_eq!(sums, rows);
    // The browser's copy is still valid.
    let etag = range.headers["etag"].clone();
    let known = [("cookie", &*cookie), ("if-none-match", &etag)];
    let again = dashboard.get(&format!("/c/default{RANGE}"), &known);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let packed = [("cookie", &*cookie), ("accept-encoding", "gzip")];
    let packed = dashboard.get(&format!("/c/default{RANGE}"), &packed);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, range.text());
    let wrong = RANGE.replace("15m", "1s");
    let wrong = dashboard.get(&format!("/c/default{wrong}"), &[("cookie", &cookie)]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("window"), "{}", wrong.text());
}

fn rows_of(document: &Value) -> BTreeMap<(String, String), [u128; 3]> {
    let mut rows = BTreeMap::new();
    for row in document["clusters"][0]["rows"].as_array().unwrap() {
        let name = |of: &str| row["dimensions"][of].as_str().unwrap_or("").to_owned();
        let count = |of: &str| row[of].to_string().trim_matches('"').parse::<u128>().unwrap();
        let counts = [count("success"), count("errors"), count("filtered")];
        let key = (name("integration"), name("reason"));
        assert!(rows.insert(key, counts).is_none());
    }
    rows
}

#[test]
fn stored_responses_survive_a_restart() {
    let (service, folder) = (Service::start(), folder());
    let path = format!("/c/default{RANGE}");
    let dashboard = Dashboard::of(&service, folder.path());
    let first = dashboard.get(&path, &[("cookie", &dashboard.open())]).text();
    let kept = folder.path().join("run/health.history/default/pages");
    // A file gets its name before it is complete, so this waits until each file can be read to its end.
    let is_whole = |file: PathBuf| {
        let mut decoder = flate2::read::GzDecoder::new(fs::File::open(file).unwrap());
        std::io::copy(&mut decoder, &mut std::io::sink()).is_ok()
    };
    let begun = Instant::now();
    let whole = || {
        fs::read_dir(&kept).unwrap().filter(|file| is_whole(file.as_ref().unwrap().path())).count()
    };
    while whole() < 24 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(10));
    }
    drop(dashboard);
    let mut command = service.tallyfold(&["dashboard", "--listen", "127.0.0.1:0"]);
    // The service is gone.
    drop(service);
    let dashboard = Dashboard::start(&mut command, folder.path());
    let second = dashboard.get(&path, &[("cookie", &dashboard.open())]).text();
    assert_eq!(second, first);
}

#[test]
fn an_outage_is_reported_at_once_and_is_one_line_on_stderr() {
    let (service, folder) = (Service::start(), folder());
    let mut command = service.tallyfold(&["dashboard", "--listen", "127.0.0.1:0"]);
    // The service is gone.
    drop(service);
    let mut dashboard = Dashboard::start_with(&mut command, folder.path(), Stdio::piped());
    let cookie = dashboard.open();
    let begun = Instant::now();
    let path = format!("/c/default{RANGE}");
    let text = dashboard.get(&path, &[("cookie", &cookie)]).text();
    assert!(begun.elapsed() < Duration::from_secs(5));
    let mut references = Vec::new();
    for line in text.lines().filter(|line| line.contains("error")) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["error"]["code"], "network_failed");
        let message = line["error"]["message"].as_str().unwrap();
        references.push(message.rsplit(' ').next().unwrap().to_owned());
    }
    assert_eq!(references.len(), 24);
    references.dedup();
    let [reference] = &*references else {
        panic!("{references:?}");
    };
    dashboard.process.kill().unwrap();
    let mut printed = String::new();
    let stderr = dashboard.process.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut printed).unwrap();
    assert_eq!(printed.matches("got no answer").count(), 1, "{printed}");
    assert!(printed.contains(&**reference), "{printed}");
}

#[test]
fn refused_credentials_cost_one_token_request_in_ten_seconds() {
    let (service, folder) = (Service::start(), folder());
    let mut command = service.tallyfold(&["dashboard", "-v", "--listen", "127.0.0.1:0"]);
    command.env("TALLYFOLD_CLIENT_SECRET", "revoked");
    let mut dashboard = Dashboard::start_with(&mut command, folder.path(), Stdio::piped());
    let cookie = dashboard.open();
    let path = format!("/c/default{RANGE}");
    let begun = Instant::now();
    for _ in 0..4 {
        let text = dashboard.get(&path, &[("cookie", &cookie)]).text();
        assert_eq!(text.matches("\"code\":\"token_refused\"").count(), 24);
    }
    let most = 1 + begun.elapsed().as_secs() as usize / 10;
    dashboard.process.kill().unwrap();
    let mut printed = String::new();
    let stderr = dashboard.process.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut printed).unwrap();
    let requests = printed.matches(": token attempt ").count();
    assert!((1..=most).contains(&requests), "{printed}");
}

#[test]
fn each_cluster_has_its_own_path() {
    let (service, folder) = (Service::start(), folder());
    let clusters = [("eu", ""), ("us", "identity = \"another client\"")];
    let run = folder.path().join("run");
    let arguments = ["dashboard", "--listen", "127.0.0.1:0"];
    let mut command = service.clusters(&run, &clusters, &arguments);
    let dashboard = Dashboard::start(&mut command, folder.path());
    let cookie = dashboard.open();
    let own = [("cookie", &*cookie)];
    assert!(dashboard.get("/", &own).text().contains("/c/us"));
    for name in ["eu", "us"] {
        assert_eq!(dashboard.get(&format!("/c/{name}{RANGE}"), &own).status, 200);
    }
    assert_eq!(dashboard.get(&format!("/c/default{RANGE}"), &own).status, 404);
}

#[test]
fn other_machines_need_a_password_or_a_proxy() {
    let (service, folder) = (Service::start(), folder());
    let run = |arguments: &[&str]| {
        let mut command = service.tallyfold(&[&["dashboard"], arguments].concat());
        command.env("TALLYFOLD_DASHBOARD_PAGE", folder.path().join("page"));
        command.current_dir(folder.path().join("run")).output().unwrap()
    };
    let refused = run(&["--listen", "0.0.0.0:0"]);
    ends(&refused, 2);
    assert!(stderr(&refused).contains("--password-file"), "{}", stderr(&refused));
    let file = folder.path().join("password");
    fs::write(&file, "short\n").unwrap();
    private(&file);
    let name = file.to_str().unwrap();
    let refused = run(&["--listen", "0.0.0.0:0", "--password-file", name]);
    ends(&refused, 2);
    assert!(stderr(&refused).contains("12 characters"), "{}", stderr(&refused));

    fs::write(&file, "correct horse\n").unwrap();
    let mut command = service.tallyfold(&[
        "dashboard",
        "--listen",
        "0.0.0.0:0",
        "--password-file",
        name,
        "--allow-host",
        "counts.example",
    ]);
    let dashboard = Dashboard::start(&mut command, folder.path());
    let page = dashboard.get("/", &[("host", "counts.example")]);
    assert_eq!(page.status, 401);
    assert!(page.text().contains("type=\"password\""));
    assert_eq!(dashboard.get("/rules.toml", &[]).status, 401);
    let login =
        |password: &str| ask(&dashboard.url, "POST /login", &[], &format!("password={password}"));
    // The dashboard checks simultaneous attempts one after the other, and each check takes a second.
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let wrong = login("wrong");
                assert_eq!(wrong.status, 401);
                let alert = "<p role=\"alert\">Wrong password.</p>";
                assert!(wrong.text().contains(alert), "{}", wrong.text());
                assert!(wrong.text().contains("type=\"password\""));
            });
        }
    });
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert!(!page.text().contains("role=\"alert\""));
    let begun = Instant::now();
    let welcome = login("correct+horse");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(welcome.status, 303);
    let cookie = welcome.headers["set-cookie"].split(';').next().unwrap();
    assert_eq!(dashboard.get("/", &[("cookie", cookie)]).status, 200);
    let foreign = [("origin", "https://evil.example")];
    let foreign = ask(&dashboard.url, "POST /login", &foreign, "password=correct+horse");
    assert_eq!(foreign.status, 403);
    // While 20 attempts wait, the dashboard checks no others.
    let host = dashboard.url.trim_start_matches("http://").trim_end_matches('/');
    let full = || {
        let waiting: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = TcpStream::connect(host).unwrap();
                let request =
                    "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\nx";
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        let busy = login("correct+horse");
        drop(waiting);
        busy
    };
    // On a slow machine, one of them may end before this attempt arrives, so this tries several times.
    let mut answers = (0..5).map(|_| full());
    let busy = answers.find(|answer| answer.status != 303).unwrap();
    assert_eq!(busy.status, 503);
    assert!(busy.headers.contains_key("retry-after"));
    let alert = "<p role=\"alert\">Busy: your password was not checked. Try again.</p>";
    assert!(busy.text().contains(alert), "{}", busy.text());

    let mut command =
        service.tallyfold(&["dashboard", "--listen", "0.0.0.0:0", "--trust-header", "x-user"]);
    let proxied = Dashboard::start(&mut command, folder.path());
    assert_eq!(proxied.get("/", &[]).status, 401);
    assert_eq!(proxied.get("/", &[("x-user", "")]).status, 401);
    assert_eq!(proxied.get("/", &[("x-user", "ada")]).status, 200);
    for (flags, said) in [
        (["--trust-header", "Host"], "a header that only your proxy adds"),
        (["--trust-header", "cookie"], "a header that only your proxy adds"),
        (["--trust-header", "Sec-Fetch-Mode"], "a header that only your proxy adds"),
        (["--allow-host", "*"], "want a host name such as counts.example"),
        (["--allow-host", "http://x/"], "want a host name such as counts.example"),
    ] {
        let refused = run(&flags);
        ends(&refused, 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
}

fn private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[test]
fn a_build_without_the_page_is_an_error() {
    let (service, folder) = (Service::start(), folder());
    fs::remove_file(folder.path().join("page/index.html")).unwrap();
    let mut command = service.tallyfold(&["dashboard", "--listen", "127.0.0.1:0"]);
    command.env("TALLYFOLD_DASHBOARD_PAGE", folder.path().join("page"));
    let output = command.current_dir(folder.path()).output().unwrap();
    ends(&output, 2);
    assert!(stderr(&output).contains("no page for the dashboard"), "{}", stderr(&output));
}
