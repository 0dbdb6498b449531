//! The live view: readers, keys, clock and screen.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use tokio::time::{MissedTickBehavior, interval};

use super::keys::{Action, press};
use super::reader::{Reader, Shared};
use super::screen::{Screen, unusable};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::host::clock::unix_ms;

/// How often the view is drawn without anything new, for what it says about time.
const TICK: Duration = Duration::from_secs(1);

/// Shows the view until the user ends it.
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
                // The next drawing asks for the size.
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

/// Hears another process ask this one to stop until it may go on: SIGTSTP.
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
