//! Ctrl-C and SIGTERM.

#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;

use tokio::sync::Mutex;

use crate::exit::Exit;
use crate::failure::{Failure, Result};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, CtrlClose, ctrl_c, ctrl_close};

/// What asks a process to stop.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// What asks a process to stop.
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
        let told = |error| Failure::usage(format!("can't listen for signals: {error}"));
        Ok(Self(Mutex::new(Signals::listen().map_err(told)?)))
    }

    /// Waits for a signal, and says how the process is to end if it does not finish its work.
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
