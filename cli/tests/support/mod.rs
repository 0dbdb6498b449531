//! Helpers for the tests of commands: a served sandbox, its exact counts, and a destination of pushes.

pub(crate) mod pushed;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tallyfold::Now;
use tallyfold_sandbox::{Sandbox, SandboxOptions};

const SEED: u64 = 7;

/// The range that most tests read. All of its windows are settled.
pub(crate) const FROM: &str = "2025-03-01T00:00:00Z";
pub(crate) const UNTIL: &str = "2025-03-01T06:00:00Z";
/// The number of windows of 15 minutes in the range.
pub(crate) const WINDOWS: usize = 24;

/// The flags for the range.
pub(crate) const RANGE: [&str; 4] = ["--from", FROM, "--until", UNTIL];

/// The counts of each integration: success, errors and filtered.
pub(crate) type Sums = BTreeMap<String, [i128; 3]>;

/// The counts of the whole range, read with a single request.
pub(crate) fn truth() -> Sums {
    let options = SandboxOptions::default().seed(SEED);
    let token = serde_json::json!({
        "client_id": options.client_id,
        "client_secret": options.client_secret.expose(),
        "audience": options.control_audience,
    });
    let mut sandbox = Sandbox::new(options).unwrap();
    let mut ask = |path: &str, headers: &[(&str, &str)], body: serde_json::Value| {
        let now = Now { monotonic_ms: 0, unix_ms: 1_760_000_000_000 };
        let answer = sandbox.handle("POST", path, headers, body.to_string().as_bytes(), now);
        assert_eq!(answer.status, 200);
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()
    };
    let json = ("content-type", "application/json");
    let token = ask("/v1.1/oauth/token", &[json], token);
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    let body = serde_json::json!({"start": FROM, "end": UNTIL, "dimensions": ["integration"]});
    let answer = ask("/v1.1/analytics/event_delivery", &[json, ("authorization", &bearer)], body);
    let mut sums = Sums::new();
    for entry in answer["counts"].as_array().unwrap() {
        let count = |name: &str| entry[name].as_str().unwrap().parse::<i128>().unwrap();
        let integration = entry["dimensions"]["integration"].as_str().unwrap().to_owned();
        let counts = [count("success"), count("errors"), count("filtered")];
        assert!(sums.insert(integration, counts).is_none());
    }
    assert!(sums.len() > 20);
    sums
}

/// A fault that delays each response, so that even a slow test can kill a process many times before it has read the range.
pub(crate) const SLOW: &str =
    r#"{"kind":"delay","milliseconds":10,"endpoint":"event_delivery","every":1}"#;

/// A served sandbox.
pub(crate) struct Service {
    process: Child,
    settings: Vec<(String, String)>,
}

impl Service {
    pub(crate) fn start() -> Self {
        Self::with_faults(&[])
    }

    pub(crate) fn with_faults(faults: &[&str]) -> Self {
        let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
        Self::with(&["--seed", "7"].into_iter().chain(faults).collect::<Vec<_>>())
    }

    /// A sandbox with these flags.
    pub(crate) fn with(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command.arg("sandbox").args(flags);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let lines = lines.take_while(|line| !line.starts_with("Ctrl-C"));
        let settings = lines.filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self { settings: settings.collect(), process }
    }

    /// The address of the sandbox.
    pub(crate) fn url(&self) -> String {
        let is_url = |(name, _): &&(String, String)| name == "TALLYFOLD_CLUSTER_ENDPOINT";
        self.settings.iter().find(is_url).unwrap().1.clone()
    }

    /// The command, which queries this sandbox.
    pub(crate) fn tallyfold(&self, arguments: &[&str]) -> Command {
        self.run(env!("CARGO_BIN_EXE_tallyfold"), arguments)
    }

    /// The command in a folder whose configuration has a section for each of these clusters. The section contains the cluster's
    /// text.
    pub(crate) fn clusters(
        &self,
        folder: &Path,
        clusters: &[(&str, &str)],
        arguments: &[&str],
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command.args(arguments).env("TALLYFOLD_CONFIG", "tallyfold.toml");
        let mut text = String::new();
        for (name, more) in clusters {
            text.push_str(&format!(
                "[cluster.{name}]\nclient_secret_env = \"SECRET_OF_THE_TEST\"\n{more}\n"
            ));
            for (variable, value) in &self.settings {
                let key = variable.trim_start_matches("TALLYFOLD_").to_ascii_lowercase();
                command.env_remove(variable);
                if key == "client_secret" {
                    command.env("SECRET_OF_THE_TEST", value);
                } else if !more.contains(&key) {
                    text.push_str(&format!("{key} = {value:?}\n"));
                }
            }
        }
        std::fs::write(folder.join("tallyfold.toml"), text).unwrap();
        command.stdin(Stdio::null());
        command.current_dir(folder);
        command
    }

    /// Another program, such as a shell that runs the command.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_remove("TALLYFOLD_CONFIG");
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// The command with a small limit on the size of its files, as on a full disk.
    pub(crate) fn on_full_disk(&self, arguments: &[&str]) -> Command {
        let script = "ulimit -f 4; exec \"$0\" \"$@\"";
        let mut all = vec!["-c", script, env!("CARGO_BIN_EXE_tallyfold")];
        all.extend(arguments);
        self.run("sh", &all)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks the exit code of a process.
pub(crate) fn ends(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

/// Sends SIGTERM.
pub(crate) fn terminate(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

/// The lines of a stream, as they arrive.
pub(crate) fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Random numbers that are the same in each run.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A request that a server has received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What a destination does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with this status, headers and body.
    Answer(u16, &'static str, &'static str),
    /// Reads the request, and closes the connection.
    Break,
    /// Reads the request, and answers after this time.
    Late(Duration),
}

pub(crate) const TAKEN: Reply = Reply::Answer(204, "", "");

/// A destination of pushed messages. The channel contains each request with its reply.
pub(crate) struct Sink {
    pub(crate) url: String,
    pub(crate) requests: Receiver<(Received, Reply)>,
}

impl Sink {
    /// Starts a destination. The replies in `first` are for the first requests, and `then` is for all later requests.
    pub(crate) fn start(first: Vec<Reply>, then: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/write", listener.local_addr().unwrap());
        let (send, requests) = channel();
        let (plan, replies) = channel();
        first.into_iter().for_each(|reply| plan.send(reply).unwrap());
        let replies = std::sync::Arc::new(std::sync::Mutex::new(replies));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (send, replies, then) = (send.clone(), replies.clone(), then.clone());
                thread::spawn(move || {
                    let next = || replies.lock().unwrap().try_recv().unwrap_or(then.clone());
                    serve(stream, &send, next)
                });
            }
            drop(plan);
        });
        Self { url, requests }
    }

    /// All requests so far.
    pub(crate) fn all(&self) -> Vec<(Received, Reply)> {
        self.requests.try_iter().collect()
    }
}

/// Reads the next request of a connection: its first line, and the rest. Returns `None` at the end, and for the incomplete
/// request of a killed process.
pub(crate) fn read_request(reader: &mut impl BufRead) -> Option<(String, Received)> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim().split_once(':') {
            None => break,
            Some((name, value)) => {
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned())
            }
        };
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, Received { headers, body }))
}

fn serve(
    stream: TcpStream,
    send: &Sender<(Received, Reply)>,
    next: impl Fn() -> Reply,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (_, Received { headers, body }) = read_request(&mut reader)?;
        let reply = next();
        send.send((Received { headers, body }, reply.clone())).ok()?;
        let (status, headers, body) = match reply {
            Reply::Answer(status, headers, body) => (status, headers, body),
            Reply::Break => return None,
            Reply::Late(time) => {
                thread::sleep(time);
                (200, "", "")
            }
        };
        let length = match status {
            204 => String::new(),
            _ => format!("content-length: {}\r\n", body.len()),
        };
        write!(stream, "HTTP/1.1 {status} -\r\n{headers}{length}\r\n{body}").ok()?;
    }
}

/// A response of a server.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request to `http://host:port/path`, and reads the response; returns `None` if there is no response.
pub(crate) fn fetch(method: &str, url: &str, headers: &str) -> Option<Fetched> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Fetched { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}
