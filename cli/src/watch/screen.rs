//! The terminal while it is drawn on. It is given back on every way out.

use std::env;
use std::io::{self, IsTerminal};

use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::DefaultTerminal;

use super::draw::canvas::Look;
use super::draw::draw;
use super::state::State;
use crate::failure::{Failure, Result};
use crate::voice::is_colored;

/// A terminal that shows the live view. When it is dropped, the terminal is as it was before; a panic gives it back
/// too, before its message is printed.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    look: Look,
}

impl Screen {
    /// Checks that stdout is a terminal that can be drawn on.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn check() -> Result<()> {
        let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        match io::stdout().is_terminal() && !is_dumb {
            true => Ok(()),
            false => {
                let text =
                    "stdout is no terminal that can be drawn on; --once prints the view as text";
                Err(Failure::usage(text).helped_by("tallyfold watch --once"))
            }
        }
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// If it can't be used.
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
    /// If the terminal is gone.
    pub(crate) fn draw(&mut self, state: &State) -> Result<()> {
        let look = self.look;
        // Terminals that know of it show a frame only when all of it has come.
        let mut drawn = || {
            queue!(io::stdout(), BeginSynchronizedUpdate)?;
            self.terminal
                .draw(|frame| draw(state, look, frame.area(), frame.buffer_mut()))?;
            execute!(io::stdout(), EndSynchronizedUpdate)
        };
        drawn().map_err(|error| unusable(&error))
    }

    /// Gives the terminal back, stops the process as Ctrl-Z does, and takes the terminal again when the shell lets the
    /// process go on.
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
            // Resizing makes all of the next frame be drawn. To clear would ask the terminal where the cursor is, and
            // the answer would get lost among the keys.
            let area = self.terminal.size()?.into();
            self.terminal.resize(area)
        };
        suspended().map_err(|error| unusable(&error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // After a panic its message must stay on the screen, and all of this was done before it.
        if !std::thread::panicking() {
            let _ = self.terminal.show_cursor();
            let _ = ratatui::try_restore();
        }
    }
}

/// Stops this process until the shell lets it go on.
#[cfg(unix)]
fn stop() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Windows has no such state of a process.
#[cfg(windows)]
fn stop() -> io::Result<()> {
    Ok(())
}

/// The terminal, or the way to it, has failed.
pub(crate) fn unusable(error: &io::Error) -> Failure {
    Failure::usage(format!("the terminal can't be used: {error}"))
}
