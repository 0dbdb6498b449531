//! A machine in virtual time. It runs a program, kills it about every hour and starts it again.
//!
//! The program is the built command. The preloaded library `process.c` replaces its clocks with the machine's clocks, and reports
//! when the process can only wait. The time then advances to the end of the wait. Each request takes a little virtual time, too.
//! So a run takes only as long as its computations, and the seed decides nearly everything that happens.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tallyfold_sandbox::SandboxOptions;
use tempfile::TempDir;

use super::world::{CLUSTERS, HOUR, HOURS, MINUTE, Reaction, SEED, World, name_of, text};
use crate::support::read_request;

/// The errors of the wall clock after somebody has set it wrong, in milliseconds.
const JUMPS: [i64; 8] =
    [-26 * HOUR, -2 * HOUR, -3 * MINUTE, MINUTE / 2, 4 * MINUTE, HOUR, 3 * HOUR, 50 * HOUR];

/// The time of the monotonic clock at the start. It is later than on any real machine.
const BOOTED_MS: i64 = 1_000_000_000_000;

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// How long to wait for a thread that is running, in real time.
const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// How long a process may compute without a request or a wait, in real time.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A machine with a program, and the world around it.
pub(crate) struct Machine {
    pub(crate) world: World,
    pub(crate) folder: TempDir,
    pub(crate) lives: usize,
    /// How often the program was killed before an operation such as a write, and how often while it waited.
    pub(crate) kills: [usize; 2],
    /// How often the program has exited with an error, by exit code.
    pub(crate) failures: BTreeMap<i32, usize>,
    arguments: Vec<String>,
    /// The times at which the wall clock is set, and its error from then on.
    jumps: Vec<(i64, i64)>,
    kill_ms: i64,
    visit_ms: i64,
    control: UnixListener,
    /// The clusters, and then the database.
    services: Vec<Service>,
    connections: Vec<Connection>,
}

struct Service {
    listener: TcpListener,
    is_open: bool,
}

struct Connection {
    service: usize,
    stream: TcpStream,
    unread: Vec<u8>,
}

/// How the program has failed.
pub(crate) struct Failed<'a> {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it has written to stderr.
    pub(crate) stderr: &'a str,
    /// Whether the wall clock was behind when it started or ended.
    pub(crate) is_behind: bool,
}

/// A running process.
struct Process {
    child: Child,
    control: UnixStream,
    /// The number of messages that were sent to it.
    sent: i64,
    /// The end of its wait, if it waits.
    waits_until_ms: Option<i64>,
    /// Whether it will be killed after some more operations.
    is_doomed: bool,
    has_ended: bool,
}

/// When a program is started again, and when it has finished.
pub(crate) enum Task<'a> {
    /// It runs until all windows are settled, and then exits.
    Lasting,
    /// It runs until it is stopped. The function is called every hour, at each start and before each kill, with what the program
    /// has written to stderr. It returns whether everything is settled.
    Endless(&'a mut dyn FnMut(&World, &str) -> bool),
    /// It is started every hour, as by cron. It has finished after a run for which all windows were settled.
    Hourly,
}

impl Machine {
    /// A machine that runs the command with these arguments, and with a configuration that ends with `more`. In both, `{DATABASE}`
    /// stands for the address of the database, and `{END}` for the time of the last event.
    pub(crate) fn new(seed: u64, arguments: &[&str], more: &str) -> Self {
        let folder = folder();
        let mut world = World::new(seed);
        let mut jumps = vec![(0, 0)];
        for number in 0..=*HOURS / 18 {
            let from_ms = number * 18 * HOUR + world.below(10 * HOUR);
            let wrong_ms = JUMPS[usize::try_from(world.below(8)).unwrap()];
            // While the clock is behind, a program only waits, or refuses to run.
            let longest_ms = if wrong_ms < 0 { HOUR } else { 7 * HOUR };
            let right_ms = from_ms + 10 * MINUTE + world.below(longest_ms);
            jumps.extend([(from_ms, wrong_ms), (right_ms, 0)]);
        }
        let services: Vec<_> = (0..=CLUSTERS).map(|_| Service::new()).collect();
        let sections = (0..CLUSTERS).map(|cluster| {
            let options = SandboxOptions::default();
            format!(
                "[cluster.{}]\ncluster_endpoint = {:?}\nclient_id = {:?}\ncontrol_audience = {:?}\n\
                 client_secret_env = \"SECRET_OF_THE_TEST\"\n",
                name_of(cluster),
                services[cluster].url(),
                options.client_id,
                options.control_audience
            )
        });
        let database = services[CLUSTERS].url();
        let end = text(*HOURS * HOUR);
        let fill = |one: &str| one.replace("{DATABASE}", &database).replace("{END}", &end);
        let configuration = folder.path().join("tallyfold.toml");
        fs::write(configuration, sections.collect::<String>() + &fill(more)).unwrap();
        let arguments = arguments.iter().map(|one| fill(one));
        Self {
            world,
            lives: 0,
            kills: [0, 0],
            failures: BTreeMap::new(),
            arguments: arguments.collect(),
            jumps,
            kill_ms: 0,
            visit_ms: HOUR,
            control: UnixListener::bind(folder.path().join("control")).unwrap(),
            services,
            connections: Vec::new(),
            folder,
        }
    }

    /// Runs the program until it has finished. It may exit with errors that `may_fail` accepts.
    pub(crate) fn run(&mut self, mut task: Task<'_>, may_fail: fn(&Failed<'_>) -> bool) {
        if matches!(task, Task::Hourly) {
            self.world.pass(HOUR);
        }
        loop {
            let now_ms = self.world.now_ms;
            let seed = *SEED;
            assert!(now_ms < (*HOURS + 14 * 24) * HOUR, "SOAK_SEED={seed}: it does not finish");
            self.kill_ms = now_ms + 30 * MINUTE + self.world.below(HOUR);
            let Some(status) = self.live(&mut task) else {
                return;
            };
            if std::env::var_os("SOAK_LOG").is_some() {
                let [from, until] = [now_ms, self.world.now_ms].map(text);
                let wrong_ms = self.wrong_ms(now_ms);
                eprintln!("{from} to {until}, clock {wrong_ms:+} ms: {status}\n{}", self.stderr());
            }
            // The services still get what the process has sent.
            while self.serve(None, NO_TIME) {}
            self.connections.clear();
            match status.code() {
                None => assert_eq!(status.signal(), Some(9), "SOAK_SEED={seed}: {}", self.stderr()),
                Some(0) if !matches!(task, Task::Hourly) => return,
                Some(0) => {
                    let is_settled = now_ms > (*HOURS + 4) * HOUR;
                    if is_settled && self.wrong_ms(now_ms) == 0 {
                        return;
                    }
                    let ms = (now_ms / HOUR + 1) * HOUR - self.world.now_ms;
                    self.world.pass(ms.max(0));
                }
                Some(code) => {
                    let stderr = self.stderr();
                    assert!(
                        may_fail(&Failed {
                            code,
                            stderr: &stderr,
                            is_behind: [now_ms, self.world.now_ms]
                                .iter()
                                .any(|ms| self.wrong_ms(*ms) < 0),
                        }),
                        "SOAK_SEED={seed}: exit code {code} at {}: {stderr}",
                        text(now_ms)
                    );
                    *self.failures.entry(code).or_default() += 1;
                    let ms = self.world.below(2 * HOUR);
                    self.world.pass(ms);
                }
            }
            let ms = self.world.below(2 * MINUTE);
            self.world.pass(ms);
        }
    }

    /// Runs one process to its end. Returns `None` if an endless task is finished.
    fn live(&mut self, task: &mut Task<'_>) -> Option<ExitStatus> {
        self.lives += 1;
        let mut process = self.start();
        // Some processes are killed soon after their start. An hourly process is too short for a later kill.
        let (chance, most) = match task {
            Task::Hourly => (2, 250),
            _ => (8, 100),
        };
        let first = (self.world.below(chance) == 0).then(|| self.world.below(most));
        process.is_doomed = first.is_some();
        self.send_time(&mut process, first);
        if let Task::Endless(visit) = task {
            self.serve_until_it_speaks(&mut process);
            visit(&self.world, &self.stderr());
        }
        loop {
            let Some(waits_until_ms) = self.serve_until_it_waits(&mut process) else {
                let status = process.child.wait().unwrap();
                self.kills[0] += usize::from(status.signal() == Some(9));
                return Some(status);
            };
            // Waits end late, as on a busy computer. Otherwise, the leases' signs of life, every 15 seconds, would take most of
            // the run.
            let late_ms = self.world.now_ms + self.world.below(2 * MINUTE);
            let next_ms = waits_until_ms.max(late_ms).min(self.kill_ms).min(self.visit_ms);
            self.world.pass((next_ms - self.world.now_ms).max(0));
            let now_ms = self.world.now_ms;
            let is_killed = now_ms >= self.kill_ms;
            if is_killed || now_ms >= self.visit_ms {
                self.visit_ms = (now_ms / HOUR + 1) * HOUR;
                if let Task::Endless(visit) = task
                    && visit(&self.world, &self.stderr())
                {
                    process.child.kill().unwrap();
                    process.child.wait().unwrap();
                    return None;
                }
            }
            let mut operations = None;
            if is_killed {
                if process.is_doomed {
                    process.child.kill().unwrap();
                    self.kills[1] += 1;
                    return Some(process.child.wait().unwrap());
                }
                process.is_doomed = true;
                let most = if self.world.below(2) == 0 { 12 } else { 400 };
                operations = Some(self.world.below(most));
                // A process that does fewer operations is killed at this time, while it waits.
                self.kill_ms = now_ms + self.world.below(HOUR);
            }
            self.send_time(&mut process, operations);
        }
    }

    /// Serves a new process until it writes to stderr, or can only wait.
    fn serve_until_it_speaks(&mut self, process: &mut Process) {
        while !process.has_ended && self.stderr().is_empty() {
            let is_served = self.serve(Some(process), MOMENT);
            if !is_served && process.waits_until_ms.is_some() && process.sleeps() {
                return;
            }
        }
    }

    /// Serves a process until it can only wait. Returns the end of the wait; `None` if the process has ended.
    fn serve_until_it_waits(&mut self, process: &mut Process) -> Option<i64> {
        while !process.has_ended {
            let limit = match process.waits_until_ms {
                Some(_) => NO_TIME,
                None => PATIENCE,
            };
            if self.serve(Some(process), limit) {
                continue;
            }
            let Some(waits_until_ms) = process.waits_until_ms else {
                process.child.kill().unwrap();
                panic!("SOAK_SEED={}: the process hangs: {}", *SEED, self.stderr());
            };
            let sleeps = process.sleeps();
            let limit = if sleeps { NO_TIME } else { MOMENT };
            // A thread may have sent something just before it fell asleep.
            if !self.serve(Some(process), limit) && sleeps {
                return Some(waits_until_ms);
            }
        }
        None
    }

    fn start(&mut self) -> Process {
        let options = SandboxOptions::default();
        let file = |name: &str| self.folder.path().join(name);
        let out = File::options().create(true).append(true).open(file("stdout"));
        let chance = self.world.below(i64::MAX).to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command
            .args(&self.arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("TALLYFOLD_CONFIG", "tallyfold.toml")
            .env("SECRET_OF_THE_TEST", options.client_secret.expose())
            // Nothing here uses TLS, and reading the system's certificates would take most of the time of a start.
            .env("SSL_CERT_FILE", "/dev/null")
            .env("LD_PRELOAD", library())
            .env("SOAK_CONTROL", file("control"))
            .env("SOAK_CHANCE", chance)
            .stdin(Stdio::null())
            .stdout(out.unwrap())
            .stderr(File::create(file("stderr")).unwrap());
        let child = command.spawn().unwrap();
        let mut connects = [PollFd::new(&self.control, PollFlags::IN)];
        let connected = poll(&mut connects, Some(&PATIENCE)).unwrap();
        assert_eq!(connected, 1, "the command does not start");
        Process {
            child,
            control: self.control.accept().unwrap().0,
            sent: 0,
            waits_until_ms: None,
            is_doomed: false,
            has_ended: false,
        }
    }

    /// What the last process has written to stderr.
    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// By how many milliseconds the wall clock is ahead at some time.
    fn wrong_ms(&self, now_ms: i64) -> i64 {
        let mut latest = self.jumps.iter().rev();
        latest.find(|(from_ms, _)| *from_ms <= now_ms).unwrap().1
    }

    /// Sends the time to a process, and the number of operations before its kill.
    fn send_time(&self, process: &mut Process, operations: Option<i64>) {
        let now_ms = self.world.now_ms;
        let wrong_ms = self.wrong_ms(now_ms);
        process.sent += 1;
        process.waits_until_ms = None;
        let message = [
            process.sent,
            (BOOTED_MS + now_ms) * 1_000_000,
            (self.world.unix_ms() + wrong_ms) * 1_000_000,
            operations.unwrap_or(-1),
        ];
        // If the process is dead, the next read from it will show that.
        let _ = process.control.write_all(&message.map(i64::to_ne_bytes).concat());
    }

    /// Waits for bytes from the process or for a service, and handles them. Returns whether there were any.
    fn serve(&mut self, mut process: Option<&mut Process>, limit: Timespec) -> bool {
        self.open_and_close();
        let mut files = Vec::new();
        let mut watch = |file| files.push(PollFd::from_borrowed_fd(file, PollFlags::IN));
        let control = process.as_ref().map(|process| process.control.try_clone());
        let control = control.transpose().unwrap();
        control.iter().for_each(|one| watch(one.as_fd()));
        self.connections.iter().for_each(|one| watch(one.stream.as_fd()));
        let open = (0..self.services.len()).filter(|place| self.services[*place].is_open);
        let open: Vec<usize> = open.collect();
        open.iter().for_each(|place| watch(self.services[*place].listener.as_fd()));
        if poll(&mut files, Some(&limit)).unwrap() == 0 {
            return false;
        }
        let ready: Vec<bool> = files.iter().map(|file| !file.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        if let Some(process) = &mut process
            && ready.next() == Some(true)
        {
            process.receive();
        }
        let (world, mut is_answered) = (&mut self.world, false);
        self.connections
            .retain_mut(|one| ready.next() != Some(true) || one.read(world, &mut is_answered));
        for (service, _) in open.into_iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
            let (stream, _) = self.services[service].listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            self.connections.push(Connection { service, stream, unread: Vec::new() });
        }
        // The response is sent first, so a process that has received this message has the response, too.
        if let Some(process) = process.filter(|_| is_answered) {
            self.send_time(process, None);
        }
        true
    }

    /// Makes services listen or refuse connections. They keep their ports.
    fn open_and_close(&mut self) {
        for (place, service) in self.services.iter_mut().enumerate() {
            let is_open = self.world.listens(place);
            if std::mem::replace(&mut service.is_open, is_open) == is_open {
                continue;
            }
            let socket = SockRef::from(&service.listener);
            match is_open {
                true => socket.listen(128).unwrap(),
                false => socket.shutdown(Shutdown::Both).unwrap(),
            }
        }
    }
}

/// A folder in memory if possible, because waiting for a disk would take most of the time.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

impl Service {
    fn new() -> Self {
        // A socket that doesn't listen keeps its port only if it was bound to that port by number. Another test may take the
        // free port before that, so this tries again.
        let by_number = || {
            let any = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = any.local_addr().unwrap();
            drop(any);
            TcpListener::bind(address).ok()
        };
        Self { listener: (0..100).find_map(|_| by_number()).unwrap(), is_open: true }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }
}

impl Process {
    /// Receives a message: the process waits, or has ended.
    fn receive(&mut self) {
        let mut message = [0; 16];
        if self.control.read_exact(&mut message).is_err() {
            self.has_ended = true;
            return;
        }
        let [number, deadline_ns] =
            [0, 8].map(|place| i64::from_ne_bytes(message[place..place + 8].try_into().unwrap()));
        if number == self.sent {
            self.waits_until_ms = Some((deadline_ns / 1_000_000).saturating_sub(BOOTED_MS));
        }
    }

    /// Whether none of its threads is running.
    fn sleeps(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.map_while(Result::ok).all(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state comes after the name, which is in parentheses.
            let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim_start());
            !state.starts_with(['R', 'D'])
        })
    }
}

impl Connection {
    /// Reads bytes, and reacts to a request when it is complete. Returns whether the connection stays open.
    fn read(&mut self, world: &mut World, is_answered: &mut bool) -> bool {
        let mut bytes = [0; 16_384];
        match self.stream.read(&mut bytes) {
            Ok(0) | Err(_) => return false,
            Ok(length) => self.unread.extend_from_slice(&bytes[..length]),
        }
        let Some(length) = length_of_request(&self.unread) else {
            return true;
        };
        let request: Vec<u8> = self.unread.drain(..length).collect();
        let (line, received) = read_request(&mut &request[..]).unwrap();
        *is_answered = true;
        match world.react(self.service, &line, &received) {
            Reaction::Answer(answer) => self.stream.write_all(&answer).is_ok(),
            Reaction::Cut(part) => {
                // The process may be dead.
                let _ = self.stream.write_all(&part);
                false
            }
            Reaction::Silence => true,
        }
    }
}

/// The length of the first request in some bytes, if it is complete.
fn length_of_request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).unwrap();
    let text = text.to_ascii_lowercase();
    let mut lines = text.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    let length = head + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
    (bytes.len() >= length).then_some(length)
}

/// The library that is preloaded.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak/process.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join("soak.so");
        // Another run may be using the library, so it is replaced as a whole.
        let new = folder.join(format!("soak-{}.so", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
        compiler.arg(&new).arg(source);
        assert!(compiler.status().unwrap().success());
        fs::rename(&new, &library).unwrap();
        library
    })
}
