//! The live view on a terminal: connects the readers, the keys and the clock, and restores the terminal on every exit path.

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
use ratatui::DefaultTerminal;
use tokio::time::{MissedTickBehavior, interval};

use super::draw::{Look, draw};
use super::reader::{Reader, Shared};
use super::state::{Action, State, press};
use crate::failure::{Exit, Failure, Result};
use crate::host::session::unix_ms;
use crate::stderr::is_colored;

/// The interval at which the view is redrawn even without new counts, because it shows the time.
const TICK: Duration = Duration::from_secs(1);

/// Shows the view until the user quits.
///
/// # Errors
/// If the terminal can't be used.
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
    pub(crate) fn open() -> Result<Self> {
        let color = is_colored(&io::stdout());
        let look = Look {
            color,
            is_live: true,
        };
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
    pub(crate) fn draw(&mut self, state: &State) -> Result<()> {
        let look = self.look;
        // Terminals that support synchronized updates show only complete frames.
        let mut drawn = || {
            queue!(io::stdout(), BeginSynchronizedUpdate)?;
            self.terminal
                .draw(|frame| draw(state, look, frame.area(), frame.buffer_mut()))?;
            execute!(io::stdout(), EndSynchronizedUpdate)
        };
        drawn().map_err(|error| unusable(&error))
    }

    /// Restores the terminal, and stops the process as Ctrl-Z does. When the shell resumes the process, takes over the terminal
    /// again.
    ///
    /// # Errors
    /// If the terminal can't be used any more.
    pub(crate) fn suspend(&mut self) -> Result<()> {
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
pub(crate) fn unusable(error: &io::Error) -> Failure {
    Failure::usage(format!("the terminal can't be used: {error}"))
}
