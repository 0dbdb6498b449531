//! `tallyfold sandbox`: serves the sandbox, a fake of the service, on this machine.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
#[cfg(unix)]
use std::path::Path;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use clap::builder::PossibleValuesParser;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};
use tallyfold_sandbox::{Sandbox, SandboxOptions, SandboxResponse, Scene};
use tokio::process::{Child, Command};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::failure::{Exit, Failure, Result};
use crate::host::server::{Answer, BrokenOff, Server, body_of, empty, target_of, texts_of, whole};
use crate::host::session::{Clock, unix_ms};
use crate::host::shutdown::Stop;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold sandbox -- tallyfold delivery --since 24h
      Runs a command against the sandbox, and exits with the command's exit code.
  tallyfold sandbox --scene outage -- tallyfold dashboard
      A dashboard of traffic with an incident in the last hours: find the integration, the reason and the time.
  tallyfold sandbox --port 8080
      Serves until Ctrl-C, and prints the settings to use.
  tallyfold sandbox --fault '{\"kind\": \"status\", \"status\": 503, \"endpoint\": \"event_delivery\", \"every\": 3}'
      Every third response to a query of event delivery has status 503.
";

/// The maximum length of a request's body, in bytes. Clients send a few hundred.
const LONGEST_BODY: usize = 1_000_000;

/// Headers that let web apps of any origin call the sandbox. The sandboxes of the packages for Python and JavaScript send the
/// same headers.
const CORS: [(&str, &str); 6] = [
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "GET, POST"),
    ("access-control-allow-headers", "authorization, content-type"),
    ("access-control-allow-private-network", "true"),
    ("access-control-expose-headers", "date, retry-after"),
    ("access-control-max-age", "600"),
];

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct SandboxFlags {
    /// The port to listen on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen on; 0.0.0.0 accepts connections from other machines
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The seed of the simulated traffic: the same seed gives the same counts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An incident in the simulated traffic, during the last hours
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Scene::NAMES))]
    scene: Option<String>,
    /// A fault to simulate, as JSON; may be repeated
    #[arg(long, value_name = "JSON")]
    fault: Vec<String>,
    /// A command to run with the sandbox's settings in its environment, and without a configuration
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Serves until Ctrl-C or SIGTERM. If the user gives a command, runs the command, passes the first signal on to it, and serves
/// until the command has ended. A second signal kills the command.
///
/// # Errors
/// For an address that can't be listened on, an invalid fault, and a command that can't be started.
pub(crate) async fn run(stop: &Stop, flags: &SandboxFlags) -> Result<Exit> {
    let scene = flags.scene.as_deref().and_then(Scene::from_name);
    let options = SandboxOptions::default().seed(flags.seed).scene(scene);
    let identity = match scene {
        None => format!("sandbox with seed {}", flags.seed),
        // The counts of a scene depend on the time at which the sandbox starts.
        Some(scene) => format!("sandbox with seed {}, {scene} at {}", flags.seed, unix_ms()),
    };
    let settings = settings(&options);
    let mut sandbox = Sandbox::new(options)?;
    for fault in &flags.fault {
        let refused = |error: tallyfold::Error| {
            Failure::usage(format!("--fault {fault}: {}", error.message()))
        };
        sandbox.inject_json(fault).map_err(refused)?;
    }
    let server = Server::listen(&flags.host, flags.port).await?;
    let url = server.url();
    let clock = Clock::start();
    let sandbox = Rc::new(RefCell::new(sandbox));
    let handler = move |request| answer(Rc::clone(&sandbox), clock, request);
    match flags.command.split_first() {
        None => {
            // Ignores errors: the reader of the address may have closed the pipe.
            let _ = print_settings(&url, &settings);
            server.serve(handler, async { _ = stop.asked().await }).await;
            Ok(Exit::Fine)
        }
        Some((program, arguments)) => {
            let as_failure =
                |error| Failure::usage(format!("can't run {}: {error}", program.to_string_lossy()));
            let configuration = empty_configuration()
                .map_err(|error| Failure::usage(format!("can't write an empty file: {error}")))?;
            let mut child = Command::new(program);
            child
                .args(arguments)
                .envs(variables(&url, &settings))
                // The port differs between runs. A state can be used again only if the identity stays the same.
                .env("TALLYFOLD_IDENTITY", &identity)
                // A configuration of the user may name real destinations, receivers and states.
                .env("TALLYFOLD_CONFIG", configuration.as_os_str());
            let mut child = child.kill_on_drop(true).spawn().map_err(as_failure)?;
            let mut ended = None;
            let work = async {
                ended = Some(until_it_ends(&mut child, stop).await.map_err(as_failure));
            };
            server.serve(handler, work).await;
            ended.unwrap_or(Ok(Exit::Fine))
        }
    }
}

/// Returns an empty configuration file. While `TALLYFOLD_CONFIG` names it, commands read no other.
#[cfg(unix)]
fn empty_configuration() -> io::Result<&'static Path> {
    Ok(Path::new("/dev/null"))
}

/// Returns an empty configuration file, which is removed when the value is dropped.
#[cfg(windows)]
fn empty_configuration() -> io::Result<tempfile::TempPath> {
    Ok(tempfile::NamedTempFile::new()?.into_temp_path())
}

/// The names and values of the settings that a client needs.
type Settings = Vec<(&'static str, String)>;

fn settings(options: &SandboxOptions) -> Settings {
    vec![
        ("client_id", options.client_id.clone()),
        // The secret of a sandbox is public.
        ("client_secret", options.client_secret.expose().to_owned()),
        ("control_audience", options.control_audience.clone()),
        ("orchestration_audience", options.orchestration_audience.clone()),
    ]
}

/// Returns the environment variables with the settings.
fn variables(url: &str, settings: &Settings) -> Vec<(String, String)> {
    let addresses = ["cluster_endpoint", "base_url", "auth_url"].map(|name| (name, url.to_owned()));
    let all = addresses.into_iter().chain(settings.clone());
    all.map(|(name, value)| (format!("TALLYFOLD_{}", name.to_ascii_uppercase()), value)).collect()
}

fn print_settings(url: &str, settings: &Settings) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "tallyfold sandbox on {url}")?;
    for (name, value) in settings {
        writeln!(out, "  {name:<22} {value}")?;
    }
    writeln!(out, "In another terminal:")?;
    for (name, value) in variables(url, settings) {
        writeln!(out, "  export {name}={value}")?;
    }
    writeln!(out, "Ctrl-C stops it.")?;
    out.flush()
}

/// Waits until the command has ended. Passes the first signal on to the command. Returns after the second signal, and the
/// caller then kills the command.
async fn until_it_ends(child: &mut Child, stop: &Stop) -> io::Result<Exit> {
    tokio::select! {
        status = child.wait() => return status.map(code_of),
        exit = stop.asked() => pass_on(exit, child),
    }
    tokio::select! {
        status = child.wait() => status.map(code_of),
        exit = stop.asked() => Ok(exit),
    }
}

/// Passes a signal, given by its exit code, on to the command. In a terminal, the command itself has already received Ctrl-C.
#[cfg(unix)]
fn pass_on(exit: Exit, child: &Child) {
    use std::io::IsTerminal;

    use rustix::process::{Pid, Signal, kill_process};

    let is_in_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    let signal = match exit {
        Exit::Interrupted if is_in_terminal => return,
        Exit::Interrupted => Signal::INT,
        _ => Signal::TERM,
    };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // Ignores errors: a command that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// On Windows, the command itself receives Ctrl-C.
#[cfg(windows)]
fn pass_on(_: Exit, _: &Child) {}

/// Returns the exit code of the command, as a shell reports it: 128 plus the signal's number if a signal ended the command.
fn code_of(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or_else(|| signal.map(|signal| 128 + signal));
    Exit::Other(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

async fn answer(sandbox: Rc<RefCell<Sandbox>>, clock: Clock, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    if head.method == Method::OPTIONS {
        return with_cors(empty(StatusCode::NO_CONTENT));
    }
    let body = match body_of(body, LONGEST_BODY).await {
        Ok(body) => body,
        Err(status) => return with_cors(empty(status)),
    };
    let headers = texts_of(&head.headers);
    let target = target_of(&head.uri);
    let answer =
        sandbox.borrow_mut().handle(head.method.as_str(), target, &headers, &body, clock.now());
    sleep(Duration::from_millis(answer.delay_ms.into())).await;
    with_cors(response_of(answer))
}

fn with_cors(mut answer: Answer) -> Answer {
    for (name, value) in CORS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Converts a response of the sandbox. If it has `cut_at`, the connection ends after that many bytes of the body.
fn response_of(answer: SandboxResponse) -> Answer {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        if !name.eq_ignore_ascii_case("content-length") {
            response = response.header(name, value);
        }
    }
    let length = answer.body.len();
    let body = match answer.cut_at {
        None => whole(answer.body),
        Some(end) => {
            response = response.header("content-length", length);
            let mut bytes = Bytes::from(answer.body);
            bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
            let sent = stream::iter([Ok(Frame::data(bytes))]);
            // Before the error, yield once: the server then flushes the head and the first part of the body.
            let cut = stream::once(async {
                yield_now().await;
                Err(BrokenOff)
            });
            StreamBody::new(sent.chain(cut)).boxed_unsync()
        }
    };
    response.body(body).unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
}
