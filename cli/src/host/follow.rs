//! Reads windows as they close, and again until they are settled.

use std::rc::Rc;
use std::time::Duration;

use tallyfold::{Drive, Error, Follow, FollowOptions, FollowStep, Result, Revision, Window};
use tokio::time::sleep;

use super::session::Session;

/// What a follow has come to.
#[derive(Debug)]
pub(crate) enum Found {
    /// New counts of a window.
    Revision(Box<Revision>),
    /// A window could not be read. It is read again later.
    Failed(Window, Error),
    /// All windows are settled.
    Done,
}

/// A follow of one cluster.
pub(crate) struct Following {
    /// The client of the cluster.
    pub(crate) session: Rc<Session>,
    machine: Follow,
    is_down: bool,
}

impl Following {
    /// Begins a follow.
    ///
    /// # Errors
    /// For options that the core refuses, such as a state of another query.
    pub(crate) fn new(session: Rc<Session>, options: &FollowOptions) -> Result<Self> {
        Ok(Self {
            machine: session.machine.follow(options)?,
            session,
            is_down: false,
        })
    }

    /// Waits for what comes next. If this is dropped before, nothing is lost: the window is read again by the next process.
    pub(crate) async fn next(&mut self) -> Found {
        loop {
            match self.machine.next(self.session.now()) {
                FollowStep::Done => return Found::Done,
                FollowStep::Wait { ms } => sleep(Duration::from_millis(ms.into())).await,
                FollowStep::Drive(mut drive) => {
                    if let Some(found) = self.read(&mut drive).await {
                        return found;
                    }
                }
            }
        }
    }

    async fn read(&mut self, drive: &mut Drive) -> Option<Found> {
        let driven = self.session.drive(&mut drive.call).await;
        let now = self.session.now();
        let settled = self.machine.settle(drive.task, &mut drive.call, now);
        let waits = self.machine.waiting_ms().is_some();
        if waits != self.is_down {
            self.is_down = waits;
            self.tell_outage(driven.as_ref().err());
        }
        match (settled, driven) {
            (Ok(Some(revision)), _) => Some(Found::Revision(Box::new(revision))),
            (Err(error), _) => Some(Found::Failed(drive.window, error)),
            // The call did not end, and the machine does not wait for the service.
            (Ok(None), Err(error)) if !waits => Some(Found::Failed(drive.window, error)),
            (Ok(None), _) => None,
        }
    }

    fn tell_outage(&self, error: Option<&Error>) {
        let Session { name, voice, .. } = &*self.session;
        match error.filter(|_| self.is_down) {
            Some(error) => voice.warning(format_args!(
                "{name}: the service is tried again until it answers: {}",
                error.text_in(tallyfold::Spelling::Flag)
            )),
            None => voice.note(format_args!("{name}: the service answers again")),
        }
    }

    /// What a later follow needs to go on from here.
    pub(crate) fn state(&self) -> String {
        self.machine.state()
    }
}
