//! Graceful shutdown: after Ctrl-C or SIGTERM, endless work stops at its next safe point.

use std::cell::Cell;
#[cfg(unix)]
use std::io::Read;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::rc::Rc;
#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
#[cfg(unix)]
use std::thread;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, CtrlClose, ctrl_c, ctrl_close};
use tokio::sync::{Mutex, watch};

use crate::failure::{Exit, Failure, Result};

/// Requests endless work to stop at its next safe point.
#[derive(Clone)]
pub(crate) struct Shutdown {
    begun: Rc<watch::Sender<bool>>,
    /// The exit code for unfinished work, if a signal has begun the shutdown.
    exit: Rc<Cell<Option<Exit>>>,
}

impl Shutdown {
    /// Creates a shutdown that has not begun.
    pub(crate) fn new() -> Self {
        Self { begun: Rc::new(watch::Sender::new(false)), exit: Rc::default() }
    }

    /// Begins the shutdown of all work that uses this value or a clone.
    pub(crate) fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Returns the exit code for unfinished work; `None` if no signal has begun the shutdown.
    pub(crate) fn signal(&self) -> Option<Exit> {
        self.exit.get()
    }

    /// Returns whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Waits until the shutdown begins.
    pub(crate) async fn begun(&self) {
        // This can't fail, because `self` holds the sender, so the channel is open.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// Runs `work`; returns `None` if the shutdown begins before the work is done.
    pub(crate) async fn unless_begun<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.begun() => None,
            done = work => Some(done),
        }
    }
}

/// Runs work that ends by itself after the shutdown has begun. The first signal begins the shutdown. A second signal aborts the
/// work; the error is then the exit code of the process.
pub(crate) async fn until_shut_down<T>(
    stop: &Stop,
    shutdown: &Shutdown,
    work: impl Future<Output = T>,
) -> Result<T, Exit> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return Ok(done),
        exit = stop.asked() => {
            shutdown.exit.set(Some(exit));
            shutdown.begin();
        }
    }
    tokio::select! {
        done = work => Ok(done),
        exit = stop.asked() => Err(exit),
    }
}

/// The signals that request a process to stop.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// The signals that request a process to stop.
#[cfg(windows)]
struct Signals {
    interrupt: CtrlC,
    terminate: CtrlClose,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(windows)]
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_close()? })
    }
}

/// Listens for SIGHUP, which requests a process to read its configuration again. Windows has no such signal.
pub(crate) struct Hangups(#[cfg(unix)] Signal);

impl Hangups {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self(
            #[cfg(unix)]
            signal(SignalKind::hangup()).map_err(cant_listen)?,
        ))
    }

    /// Waits for the signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

/// Makes a second signal end the process at once, even if the process is blocked and can't react to the first signal. For
/// example, the process may be writing to a pipe whose reader has stopped reading, or waiting for the command that prints a
/// secret.
#[cfg(unix)]
fn end_at_second_signal() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    let is_asked = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM] {
        // The handlers run in this order, so the first signal finds the flag unset, and only sets it.
        flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&is_asked))?;
        flag::register(number, Arc::clone(&is_asked))?;
    }
    Ok(())
}

/// How long a process has to react to a signal before `end_if_blocked` ends it.
#[cfg(unix)]
const REACTION_TIME: Duration = Duration::from_secs(2);

/// Makes the first signal end the process after [`REACTION_TIME`], even if the process is blocked and can't react to it.
#[cfg(unix)]
fn end_if_blocked() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::{exit, pipe};

    for number in [SIGINT, SIGTERM] {
        let (mut signals, sender) = UnixStream::pair()?;
        pipe::register(number, sender)?;
        thread::Builder::new().spawn(move || {
            if signals.read_exact(&mut [0]).is_ok() {
                // If the process can react to the signal, it ends during this wait.
                thread::sleep(REACTION_TIME);
                exit(128 + number);
            }
        })?;
    }
    Ok(())
}

/// Makes a write fail, as on a full disk, if it exceeds the system's limit on file sizes. By default, SIGXFSZ would end the
/// process without a message.
///
/// # Errors
/// If the system does not allow it.
pub(crate) fn survive_file_limits() -> Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
        .map_err(cant_listen)?;
    Ok(())
}

fn cant_listen(error: std::io::Error) -> Failure {
    Failure::usage(format!("can't listen for signals: {error}"))
}

/// Listens for signals that request the process to stop.
pub(crate) struct Stop(Mutex<Signals>);

impl Stop {
    /// Begins to listen. From now on, the first signal does not end the process. On Unix, the second signal ends it at once.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        #[cfg(unix)]
        end_at_second_signal().map_err(cant_listen)?;
        Self::listen_to_all()
    }

    /// Begins to listen. From now on, the signals do not end the process, not even the second one: `asked` returns all of them.
    /// This is for a process that is never blocked, and that has work to do even after the second signal.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn listen_to_all() -> Result<Self> {
        Ok(Self(Mutex::new(Signals::listen().map_err(cant_listen)?)))
    }

    /// Lets the first signal end the process within two seconds, even if the process is blocked, for example by a write to a
    /// pipe whose reader has stopped reading. This is for work that a signal is allowed to end at any moment.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn end_if_blocked(&self) -> Result<()> {
        #[cfg(unix)]
        end_if_blocked().map_err(cant_listen)?;
        Ok(())
    }

    /// Lets the process continue when its terminal is closed. By default, SIGHUP would end the process before its work is at a
    /// safe point.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn outlive_the_terminal(&self) -> Result<()> {
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default())
            .map_err(cant_listen)?;
        Ok(())
    }

    /// Waits for a signal, and returns the exit code for unfinished work.
    pub(crate) async fn asked(&self) -> Exit {
        let mut signals = self.0.lock().await;
        let Signals { interrupt, terminate } = &mut *signals;
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        }
    }
}
