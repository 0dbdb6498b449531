//! A served sandbox, and a process in a pseudo-terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

const TALLYFOLD: &str = env!("CARGO_BIN_EXE_tallyfold");

/// The maximum wait for a screen. On an idle machine, a screen takes far less time.
const DEADLINE: Duration = Duration::from_secs(60);

/// A served sandbox.
pub(crate) struct Service {
    process: Child,
    /// The environment variables for its clients.
    pub(crate) settings: Vec<(String, String)>,
}

impl Service {
    pub(crate) fn start(port: u16, faults: &[&str]) -> Self {
        let mut command = Command::new(TALLYFOLD);
        command.args(["sandbox", "--seed", "7", "--port", &port.to_string()]);
        for fault in faults {
            command.args(["--fault", fault]);
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let settings = lines.take_while(|line| !line.starts_with("Ctrl-C")).filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        let settings = settings.collect();
        Self { process, settings }
    }

    pub(crate) fn port(&self) -> u16 {
        let (_, url) = &self.settings[0];
        url.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let settings = self.settings.iter().map(|(name, value)| (name, value));
        let mut command = Command::new(TALLYFOLD);
        command.args(arguments).envs(settings).env_remove("TALLYFOLD_CONFIG");
        command.stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> CommandBuilder {
        self.builder(CommandBuilder::from_argv(
            [TALLYFOLD].iter().chain(arguments).map(Into::into).collect(),
        ))
    }

    fn builder(&self, mut command: CommandBuilder) -> CommandBuilder {
        for (name, value) in &self.settings {
            command.env(name, value);
        }
        command.env_remove("TALLYFOLD_CONFIG");
        command.env_remove("NO_COLOR");
        command.env("TERM", "xterm-256color");
        command.cwd(env!("CARGO_TARGET_TMPDIR"));
        command
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The screen of a terminal, and the notification that it has changed.
type Received = Arc<(Mutex<Parser>, Condvar)>;

/// A process in a terminal.
pub(crate) struct Watched {
    process: Box<dyn portable_pty::Child + Send + Sync>,
    terminal: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    received: Received,
    /// The settings of the terminal before the process began.
    before: String,
}

impl Watched {
    pub(crate) fn start(service: &Service, flags: &[&str], size: (u16, u16)) -> Self {
        let arguments = [&["watch"], flags].concat();
        Self::spawn(service.command(&arguments), size)
    }

    /// Starts the view in a shell that prints a line before it and a line after it.
    pub(crate) fn in_shell(service: &Service, flags: &[&str], size: (u16, u16)) -> Self {
        let script = r#"echo before; "$0" "$@"; echo "after $?""#;
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script, TALLYFOLD, "watch"]);
        command.args(flags);
        Self::spawn(service.builder(command), size)
    }

    pub(crate) fn spawn(command: CommandBuilder, (columns, rows): (u16, u16)) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let before = settings(&*pair.master);
        let process = pair.slave.spawn_command(command).unwrap();
        let received = Received::new((Mutex::new(Parser::new(rows, columns, 0)), Condvar::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shared = Arc::clone(&received);
        thread::spawn(move || {
            let mut pending = Vec::new();
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                pending.extend_from_slice(&bytes[..length]);
                let whole = pending.len() - unfinished(&pending);
                shared.0.lock().unwrap().process(&pending[..whole]);
                pending.drain(..whole);
                shared.1.notify_all();
            }
        });
        Self {
            process,
            keys: pair.master.take_writer().unwrap(),
            terminal: pair.master,
            received,
            before,
        }
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let number = self.process.process_id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", name, &number]).status().unwrap().success());
    }

    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        self.locked(|parser| parser.screen_mut().set_size(rows, columns));
        self.terminal.resize(size(columns, rows)).unwrap();
    }

    pub(crate) fn locked<T>(&self, look: impl FnOnce(&mut Parser) -> T) -> T {
        look(&mut self.received.0.lock().unwrap())
    }

    /// Waits until `is_there` accepts the lines of the screen, and returns the lines.
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&[String]) -> bool) -> Vec<String> {
        self.wait_for(what, |parser| is_there(&lines(parser)));
        self.locked(|parser| lines(parser))
    }

    pub(crate) fn wait_for(&self, what: &str, is_there: impl Fn(&Parser) -> bool) {
        if !self.comes_within(DEADLINE, is_there) {
            self.locked(|parser| panic!("waited for {what}: {:#?}", lines(parser)));
        }
    }

    /// Presses a key each second until `is_there` accepts the lines of the screen, and returns the lines. If the size changes at the
    /// moment of a key, crossterm delivers this key only together with the next one.
    pub(crate) fn press_until(
        &mut self,
        key: &str,
        what: &str,
        is_there: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let began = Instant::now();
        self.send(key);
        while !self.comes_within(Duration::from_secs(1), |parser| is_there(&lines(parser))) {
            assert!(began.elapsed() < DEADLINE, "pressed {key} for {what}");
            self.send(key);
        }
        self.locked(|parser| lines(parser))
    }

    fn comes_within(&self, limit: Duration, is_there: impl Fn(&Parser) -> bool) -> bool {
        let (parser, changed) = &*self.received;
        let parser = parser.lock().unwrap();
        let waited = changed.wait_timeout_while(parser, limit, |parser| !is_there(parser));
        !waited.unwrap().1.timed_out()
    }

    /// Waits until the process is stopped by a signal.
    pub(crate) fn stopped(&self) {
        let number = self.process.process_id().unwrap().to_string();
        let began = Instant::now();
        loop {
            let printed =
                Command::new("ps").args(["-o", "state=", "-p", &number]).output().unwrap();
            if printed.stdout.starts_with(b"T") {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "it is not stopped");
        }
    }

    /// Waits until the process has ended, and returns its exit code.
    pub(crate) fn ended(&mut self) -> u32 {
        self.process.wait().unwrap().exit_code()
    }

    pub(crate) fn assert_restored(&self) {
        self.wait_for("the shell's screen", |parser| {
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        });
        assert_eq!(settings(&*self.terminal), self.before);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, ..PtySize::default() }
}

/// The number of bytes at the end that belong to an incomplete frame. Terminals show only complete frames.
fn unfinished(bytes: &[u8]) -> usize {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|part| part == mark);
    match (last(b"\x1b[?2026h"), last(b"\x1b[?2026l")) {
        (Some(begin), end) if end < Some(begin) => bytes.len() - begin,
        _ => 0,
    }
}

/// The settings of a terminal, such as whether it echoes input.
fn settings(terminal: &dyn MasterPty) -> String {
    format!("{:?}", terminal.get_termios().unwrap())
}

fn lines(parser: &Parser) -> Vec<String> {
    let (_, columns) = parser.screen().size();
    parser.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect()
}
