//! How work that goes on without end comes to an end: at its next good moment.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::watch;

use super::stop::Stop;
use crate::exit::Exit;

/// Tells work that goes on without end that it is to come to an end at its next good moment.
#[derive(Clone)]
pub(crate) struct Ending {
    begun: Rc<watch::Sender<bool>>,
    /// How the process is to end if the signal that began this has cut its work short.
    signal: Rc<Cell<Option<Exit>>>,
}

impl Ending {
    /// Nothing is to end yet.
    pub(crate) fn new() -> Self {
        Self {
            begun: Rc::new(watch::Sender::new(false)),
            signal: Rc::default(),
        }
    }

    /// Everything that has this ending is to end.
    pub(crate) fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// How the process is to end if a signal has begun this, and work is left that has an end.
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

    /// Does something, unless the end begins before it is done.
    pub(crate) async fn unless_begun<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.begun() => None,
            done = work => Some(done),
        }
    }
}

/// Runs work that ends by itself once the ending has begun, which a signal does. A second signal breaks it off: then how the
/// process is to end is the error.
pub(crate) async fn until_ended<T>(
    stop: &Stop,
    ending: &Ending,
    work: impl Future<Output = T>,
) -> Result<T, Exit> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return Ok(done),
        exit = stop.asked() => {
            ending.signal.set(Some(exit));
            ending.begin();
        }
    }
    tokio::select! {
        done = work => Ok(done),
        exit = stop.asked() => Err(exit),
    }
}
