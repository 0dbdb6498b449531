//! Graceful shutdown: Ctrl-C and SIGTERM, and work without an end that stops at its next safe point.

use std::cell::Cell;
use std::rc::Rc;
#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, CtrlClose, ctrl_c, ctrl_close};
use tokio::sync::{Mutex, watch};

use crate::failure::{Exit, Failure, Result};

/// Asks work without an end to stop at its next safe point.
#[derive(Clone)]
pub(crate) struct Shutdown {
    begun: Rc<watch::Sender<bool>>,
    /// The exit code if the signal that began this has cut work short.
    signal: Rc<Cell<Option<Exit>>>,
}

impl Shutdown {
    /// Nothing has to stop yet.
    pub(crate) fn new() -> Self {
        Self {
            begun: Rc::new(watch::Sender::new(false)),
            signal: Rc::default(),
        }
    }

    /// Asks all work that has this shutdown to stop.
    pub(crate) fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// The exit code if a signal has begun this and some work was not finished.
    pub(crate) fn signal(&self) -> Option<Exit> {
        self.signal.get()
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Waits until it begins.
    pub(crate) async fn begun(&self) {
        // The sender is held here, so the channel is open.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// Does something, unless the shutdown begins before it is done.
    pub(crate) async fn unless_begun<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.begun() => None,
            done = work => Some(done),
        }
    }
}

/// Runs work that ends by itself once the shutdown has begun, which a signal does. A second signal breaks it off: then how the
/// process is to end is the error.
pub(crate) async fn until_shut_down<T>(
    stop: &Stop,
    shutdown: &Shutdown,
    work: impl Future<Output = T>,
) -> Result<T, Exit> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return Ok(done),
        exit = stop.asked() => {
            shutdown.signal.set(Some(exit));
            shutdown.begin();
        }
    }
    tokio::select! {
        done = work => Ok(done),
        exit = stop.asked() => Err(exit),
    }
}

/// The signals that ask a process to stop.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// The signals that ask a process to stop.
#[cfg(windows)]
struct Signals {
    interrupt: CtrlC,
    terminate: CtrlClose,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        end_at_the_second()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(windows)]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_close()?,
        })
    }
}

/// Lets a second signal end the process at once, also where it can't notice the first: while it waits for somebody who
/// reads stdout no more, or for a command that gives a secret.
#[cfg(unix)]
fn end_at_the_second() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    let is_asked = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM] {
        // In this order the first signal only sets the flag.
        flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&is_asked))?;
        flag::register(number, Arc::clone(&is_asked))?;
    }
    Ok(())
}

/// Listens for signals that ask the process to stop.
pub(crate) struct Stop(Mutex<Signals>);

impl Stop {
    /// Begins to listen. From now on the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        let as_failure = |error| Failure::usage(format!("can't listen for signals: {error}"));
        Ok(Self(Mutex::new(Signals::listen().map_err(as_failure)?)))
    }

    /// Waits for a signal, and returns the exit code for work that is not finished.
    pub(crate) async fn asked(&self) -> Exit {
        let mut signals = self.0.lock().await;
        let Signals {
            interrupt,
            terminate,
        } = &mut *signals;
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        }
    }
}
