//! The live view while it runs. It reads the windows of each cluster as they close, and again while their counts may change. It
//! connects readers, keys, clock and terminal, and restores the terminal on every exit path.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::rc::Rc;
use std::time::Duration;
use std::{env, io};

use crossterm::event::{Event, EventStream};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, enable_raw_mode,
};
use crossterm::{execute, queue};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use ratatui::DefaultTerminal;
use tallyfold::{
    Attempt, CountTable, Counts, Drive, Follow, FollowOptions, FollowStep, Frame, Revision,
    Timestamp, Window,
};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::draw::{Look, draw};
use super::findings::LiveRules;
use super::state::{Action, ClusterView, Outage, State, press};
use crate::arguments::query::{Query, time_of};
use crate::failure::{Exit, Failure, Result};
use crate::host::ranges::driven;
use crate::host::session::{Session, unix_ms};
use crate::stderr::is_colored;

/// The maximum wait before the wall clock is read again. A timer does not notice that the clock was set or that the computer
/// slept.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The state of the view, and the notifications between the screen and the readers.
pub(crate) struct Shared {
    /// The state that is shown.
    pub(crate) state: RefCell<State>,
    /// Notified when there is something new to draw.
    pub(crate) changed: Notify,
    /// For each cluster, notified when the user requests its newest counts.
    pub(crate) wanted: Vec<Notify>,
}

/// The reader of one cluster.
pub(crate) struct Reader {
    shared: Rc<Shared>,
    position: usize,
    session: Rc<Session>,
    options: FollowOptions,
    query: Query,
    workers: usize,
    rules: LiveRules,
    /// Why the last failed request failed, as the view shows it.
    trouble: Rc<RefCell<String>>,
}

impl Reader {
    /// Creates a reader of the cluster at `position`.
    ///
    /// # Errors
    /// For options that the core refuses.
    pub(crate) fn new(
        shared: &Rc<Shared>,
        position: usize,
        session: &Rc<Session>,
        (options, query): (FollowOptions, Query),
        (workers, rules): (usize, LiveRules),
    ) -> Result<Self> {
        let trouble = Rc::new(RefCell::new(String::new()));
        let reader = Self {
            shared: Rc::clone(shared),
            position,
            session: Rc::clone(session),
            options,
            query,
            workers,
            rules,
            trouble: Rc::clone(&trouble),
        };
        drop(reader.follow()?);
        let shared = Rc::clone(shared);
        session.watch(Box::new(move |attempt| {
            show_attempt(&shared, position, attempt, &trouble);
        }));
        Ok(reader)
    }

    /// Reads windows until the future is dropped.
    ///
    /// # Errors
    /// For options that the core refuses, and for an error that ends the follow.
    pub(crate) async fn run(self) -> Result<()> {
        loop {
            let mut follow = self.follow()?;
            self.read(&mut follow).await?;
        }
    }

    /// Returns a follow that starts at the oldest window that is not settled.
    fn follow(&self) -> Result<Follow> {
        let start = time_of(self.with(|view| view.history.unsettled_ms()))?;
        let options = self.options.clone().start(start);
        Ok(self.session.machine.follow(&options)?)
    }

    /// Reads until the user requests the newest counts. The caller then starts a new follow.
    async fn read(&self, follow: &mut Follow) -> Result<()> {
        let mut under_way = FuturesUnordered::new();
        loop {
            let mut wait = LONGEST_WAIT;
            while under_way.len() < self.workers {
                match follow.next(self.session.now()) {
                    FollowStep::Drive(drive) => under_way.push(driven(&self.session, drive)),
                    FollowStep::Wait { ms } => {
                        wait = wait.min(Duration::from_millis(ms.into()));
                        break;
                    }
                    FollowStep::Failed(error) => return Err(error.into()),
                    FollowStep::Done => break,
                }
            }
            tokio::select! {
                Some(drive) = under_way.next(), if !under_way.is_empty() => {
                    self.settle(follow, drive)?;
                    if under_way.is_empty() {
                        self.find();
                    }
                }
                () = sleep(wait) => {}
                () = self.shared.wanted[self.position].notified() => return Ok(()),
            }
        }
    }

    /// Processes the result of reading a window.
    fn settle(&self, follow: &mut Follow, mut drive: Drive) -> Result<()> {
        let now = self.session.now();
        let settled = follow.settle(drive.task, &mut drive.call, now);
        let waiting_ms = follow.waiting_ms();
        match settled {
            Ok(Some(revision)) => self.show(&revision)?,
            Ok(None) => {
                if let Some(ms) = waiting_ms {
                    let text = self.trouble.borrow().clone();
                    let next_ms = now.unix_ms.saturating_add(ms.into());
                    self.with(|view| view.outage = Some(Outage { text, next_ms }));
                }
            }
            Err(error) => {
                let text = Failure::from(error).text;
                self.with(|view| {
                    view.outage = None;
                    view.history.fail(drive.window, text);
                });
            }
        }
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Applies the rules to the windows in memory. `read` calls this when no request is in flight.
    fn find(&self) {
        let findings = self.rules.findings(unix_ms());
        self.with(|view| view.findings = findings);
        self.shared.changed.notify_one();
    }

    fn show(&self, revision: &Revision) -> Result<()> {
        let table = self.query.shape(&revision.table)?;
        let oldest_ms = self.with(|view| view.history.span_ms().start);
        self.rules.take(revision.window, table.clone(), oldest_ms);
        self.with(|view| {
            view.settle(revision.window, rows(&table), revision.settled, unix_ms());
        });
        Ok(())
    }

    fn with<T>(&self, change: impl FnOnce(&mut ClusterView) -> T) -> T {
        change(&mut self.shared.state.borrow_mut().clusters[self.position])
    }
}

/// Converts the rows of a window to the form that a history accepts.
fn rows(table: &CountTable) -> impl Iterator<Item = (Vec<String>, Counts)> {
    let rows = table.rows();
    rows.map(|row| (row.values().map(str::to_owned).collect(), row.counts()))
}

/// Shows how an attempt of a request ended.
fn show_attempt(shared: &Shared, position: usize, attempt: &Attempt, trouble: &RefCell<String>) {
    let view = &mut shared.state.borrow_mut().clusters[position];
    if attempt.code.is_none() {
        view.outage = None;
        return;
    }
    let text = match attempt.status {
        None => "the service does not answer".to_owned(),
        Some(200..=299) => "the response was truncated or corrupted".to_owned(),
        Some(status) => format!("the service answers with status {status}"),
    };
    trouble.borrow_mut().clone_from(&text);
    if let Some(ms) = attempt.wait_ms {
        let next_ms = unix_ms().saturating_add(ms.into());
        view.outage = Some(Outage { text, next_ms });
        shared.changed.notify_one();
    }
}

/// Returns the window between two timestamps in milliseconds since 1970.
///
/// # Errors
/// For timestamps outside of the years 0 to 9999, and if the start is not before the end.
pub(crate) fn window_of(start_ms: i64, end_ms: i64) -> Result<Window> {
    let at = |ms| {
        Timestamp::from_unix_ms(ms)
            .ok_or_else(|| Failure::usage("--since: want a range in the years 0 to 9999"))
    };
    Ok(Window::new(at(start_ms)?, at(end_ms)?)?)
}

/// How often the view is redrawn without new counts, because it shows the time.
const TICK: Duration = Duration::from_secs(1);

/// Shows the view until the user quits.
///
/// # Errors
/// If the terminal or the signals can't be used, and the errors of [`Reader::run`].
pub(crate) async fn run(shared: &Rc<Shared>, readers: Vec<Reader>) -> Result<Exit> {
    let stopping = Stopping::listen()
        .map_err(|error| Failure::usage(format!("can't listen for signals: {error}")))?;
    let screen = Screen::open()?;
    let reading = try_join_all(readers.into_iter().map(Reader::run));
    tokio::select! {
        exit = show(shared, screen, stopping) => exit,
        ended = reading => ended.map(|_| Exit::Fine),
    }
}

async fn show(shared: &Shared, mut screen: Screen, mut stopping: Stopping) -> Result<Exit> {
    let mut events = EventStream::new();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        {
            let mut state = shared.state.borrow_mut();
            state.advance(unix_ms());
            screen.draw(&state)?;
        }
        let action = tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => press(&mut shared.state.borrow_mut(), key),
                // Another event, such as a resize. Drawing reads the new size.
                Some(Ok(_)) => Action::Draw,
                Some(Err(error)) => return Err(unusable(&error)),
                None => Action::Quit,
            },
            () = shared.changed.notified() => Action::Draw,
            _ = tick.tick() => Action::Draw,
            () = stopping.asked() => Action::Suspend,
        };
        match action {
            Action::Draw => {}
            Action::Read => {
                let current = shared.state.borrow().current;
                shared.wanted[current].notify_one();
            }
            Action::Quit => return Ok(Exit::Fine),
            Action::Interrupt => return Ok(Exit::Interrupted),
            Action::Suspend => screen.suspend()?,
        }
    }
}

/// Listens for SIGTSTP, with which another process can suspend this one.
struct Stopping {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Stopping {
    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let number = rustix::process::Signal::TSTP.as_raw();
        let signal = signal(SignalKind::from_raw(number))?;
        Ok(Self { signal })
    }

    #[cfg(windows)]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(unix)]
    async fn asked(&mut self) {
        self.signal.recv().await;
    }

    #[cfg(windows)]
    async fn asked(&mut self) {
        std::future::pending().await
    }
}

/// A terminal that shows the live view. Dropping it restores the terminal. A panic restores the terminal, too, before
/// it prints its message.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    look: Look,
}

impl Screen {
    /// Checks that stdout is a terminal that can be drawn on.
    ///
    /// # Errors
    /// If stdout isn't such a terminal.
    pub(crate) fn check() -> Result<()> {
        let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        match io::stdout().is_terminal() && !is_dumb {
            true => Ok(()),
            false => {
                let text =
                    "stdout isn't a terminal that can be drawn on; --once prints the view as text";
                Err(Failure::usage(text).helped_by("tallyfold watch --once"))
            }
        }
    }

    /// Takes over the terminal.
    ///
    /// # Errors
    /// If the terminal can't be used.
    fn open() -> Result<Self> {
        let color = is_colored(&io::stdout());
        let look = Look { color, is_live: true };
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal, look }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(unusable(&error))
            }
        }
    }

    /// Draws a state.
    ///
    /// # Errors
    /// If the terminal can't be written.
    fn draw(&mut self, state: &State) -> Result<()> {
        let look = self.look;
        // Terminals that support synchronized updates show only complete frames.
        let mut drawn = || {
            queue!(io::stdout(), BeginSynchronizedUpdate)?;
            self.terminal.draw(|frame| draw(state, look, frame.area(), frame.buffer_mut()))?;
            execute!(io::stdout(), EndSynchronizedUpdate)
        };
        drawn().map_err(|error| unusable(&error))
    }

    /// Restores the terminal, and stops the process as Ctrl-Z does. When the shell resumes the process, takes over the terminal
    /// again.
    ///
    /// # Errors
    /// If the terminal can't be used any more.
    fn suspend(&mut self) -> Result<()> {
        let mut suspended = || {
            self.terminal.show_cursor()?;
            ratatui::try_restore()?;
            stop()?;
            enable_raw_mode()?;
            execute!(io::stdout(), EnterAlternateScreen)?;
            // Resizing forces a full redraw. Clearing would query the terminal for the cursor position, and the
            // response would get lost among the keys.
            let area = self.terminal.size()?.into();
            self.terminal.resize(area)
        };
        suspended().map_err(|error| unusable(&error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // After a panic, the terminal is already restored, and the message must stay on the screen.
        if !std::thread::panicking() {
            let _ = self.terminal.show_cursor();
            let _ = ratatui::try_restore();
        }
    }
}

/// Stops this process until the shell resumes it.
#[cfg(unix)]
fn stop() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Windows processes can't be stopped and resumed.
#[cfg(windows)]
fn stop() -> io::Result<()> {
    Ok(())
}

/// Returns the failure for a terminal that can't be read or written.
fn unusable(error: &io::Error) -> Failure {
    Failure::usage(format!("the terminal can't be used: {error}"))
}
