//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Listens for signals that ask the process to stop.
pub(crate) struct Stop {
    signals: Mutex<[Signal; 2]>,
}

impl Stop {
    /// Begins to listen. From now on the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| {
            let told = |error| Failure::usage(format!("can't listen for signals: {error}"));
            signal(kind).map_err(told)
        };
        let signals = [
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
        ];
        Ok(Self {
            signals: Mutex::new(signals),
        })
    }

    /// Waits for a signal, and says how the process is to end if it does not finish its work.
    pub(crate) async fn asked(&self) -> Exit {
        let [interrupt, terminate] = &mut *self.signals.lock().await;
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        }
    }
}
