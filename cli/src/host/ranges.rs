//! Reads the windows of one cluster: a range, with several requests at the same time, or windows as they end. A checkpoint
//! stores what was read of a range. It is a folder with a file for each segment. The Python and JavaScript packages read and
//! write the same format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tallyfold::keeper::not_a_file;
use tallyfold::{
    Code, Collect, CollectOptions, CollectStep, CountTable, Drive, Error, Follow, FollowOptions,
    FollowStep, Progress, Revision, Segment, Window,
};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use super::lease::Lease;
use super::session::Session;
use super::state::StateFile;
use crate::arguments::query::Query;
use crate::failure::{Failure, Result};
use crate::files::{Replacement, if_exists, replace};
use crate::stderr::show;

/// Drives a collect to its end, stores what was read, and reports the progress.
///
/// # Errors
/// If the checkpoint can't be stored. A window that can't be read is not an error: the collect records it.
pub(crate) async fn gather(
    session: &Session,
    collect: &mut Collect,
    keeper: &mut Keeper,
    mut on_progress: impl FnMut(Progress),
) -> Result<()> {
    let workers = usize::try_from(collect.concurrency()).unwrap_or(usize::MAX);
    let mut under_way = FuturesUnordered::new();
    on_progress(collect.progress());
    loop {
        while under_way.len() < workers {
            match collect.next(session.now()) {
                CollectStep::Drive(drive) => under_way.push(driven(session, drive)),
                CollectStep::Idle | CollectStep::Done => break,
            }
        }
        keeper.begin(collect);
        tokio::select! {
            ended = under_way.next() => {
                let Some(mut drive) = ended else { break };
                collect.settle(drive.task, &mut drive.call, session.now())?;
                on_progress(collect.progress());
            }
            saved = keeper.saved() => saved?,
        }
    }
    keeper.flush(collect).await
}

/// Drives a call to its end. An error stays in the call, where the collect or the follow finds it.
pub(crate) async fn driven(session: &Session, mut drive: Drive) -> Drive {
    let _ = session.drive(&mut drive.call).await;
    drive
}

/// The minimum number of windows for which [`read`] shows its progress. Fewer are read in a few seconds.
const LONG: u32 = 32;

/// Reads a range. Returns its counts, the missing windows, and why they are missing.
///
/// # Errors
/// For options that the core refuses, and if nothing could be read.
pub(crate) async fn read(
    session: &Session,
    options: CollectOptions,
    query: &Query,
) -> Result<(CountTable, Vec<Window>, Option<Failure>)> {
    let mut collect = session.machine.collect(options)?;
    let is_long = collect.progress().planned >= LONG;
    let bar = is_long.then(|| session.stderr.bar(&session.name));
    gather(session, &mut collect, &mut Keeper::default(), |now| {
        bar.iter().for_each(|bar| show(bar, now));
    })
    .await?;
    let (table, gaps, failure) = finished(&collect)?;
    Ok((query.shape(&table)?, gaps, failure))
}

/// Returns what a collect has read, the missing windows, and why they are missing.
///
/// # Errors
/// If nothing could be read, and for a checkpoint from the future, whose counts may have been settled too early.
pub(crate) fn finished(collect: &Collect) -> Result<(CountTable, Vec<Window>, Option<Failure>)> {
    match collect.finish() {
        Ok(table) => Ok((table, Vec::new(), None)),
        Err(mut error) => match error.partial.take() {
            Some(table) if error.error.code() != Code::InvalidCheckpoint => {
                Ok((table, error.gaps.clone(), Some(error.into())))
            }
            _ => Err(error.into()),
        },
    }
}

/// An event of a follow.
#[derive(Debug)]
pub(crate) enum FollowEvent {
    /// New counts of a window.
    Revision(Box<Revision>),
    /// A window could not be read. The follow will read it again later.
    Failed(Window, Error),
    /// The state is from the future. Nothing is read until the clock has reached the time of the state.
    Ahead(Error),
    /// All windows are settled.
    Done,
}

/// A follow of one cluster.
pub(crate) struct Following {
    /// The client of the cluster.
    pub(crate) session: Rc<Session>,
    machine: Follow,
    /// Whether the follow waits until the service answers again.
    is_down: bool,
    /// Whether any window was read.
    pub(crate) has_read: bool,
}

impl Following {
    /// Begins a follow.
    ///
    /// # Errors
    /// For options that the core refuses, such as a state of another query. An error about the state names `file`, which
    /// contains it.
    pub(crate) fn new(
        session: Rc<Session>,
        options: &FollowOptions,
        file: Option<&StateFile>,
    ) -> Result<Self> {
        let machine = session.machine.follow(options);
        let mut machine = machine.map_err(|error| match file {
            Some(file) if error.argument_name() == Some("state") => file.as_failure(error),
            _ => error.into(),
        })?;
        if let Some(by) = session.shared_by(options.metric, &options.dimensions) {
            machine.request_by(by)?;
        }
        Ok(Self { session, machine, is_down: false, has_read: false })
    }

    /// Waits for the next event. Dropping the future loses nothing: if it was reading a window, that window is read again later.
    pub(crate) async fn next(&mut self) -> FollowEvent {
        loop {
            match self.machine.next(self.session.now()) {
                FollowStep::Done => return FollowEvent::Done,
                FollowStep::Failed(error) => return FollowEvent::Ahead(error),
                FollowStep::Wait { ms } => sleep(Duration::from_millis(ms.into())).await,
                FollowStep::Drive(mut drive) => {
                    if let Some(found) = self.read(&mut drive).await {
                        return found;
                    }
                }
            }
        }
    }

    async fn read(&mut self, drive: &mut Drive) -> Option<FollowEvent> {
        let driven = self.session.drive(&mut drive.call).await;
        let now = self.session.now();
        let settled = self.machine.settle(drive.task, &mut drive.call, now);
        let waits = self.machine.waiting_ms().is_some();
        if waits != self.is_down {
            self.is_down = waits;
            self.report_outage(driven.as_ref().err());
        }
        match (settled, driven) {
            (Ok(Some(revision)), _) => {
                self.has_read = true;
                Some(FollowEvent::Revision(Box::new(revision)))
            }
            (Err(error), _) => Some(FollowEvent::Failed(drive.window, error)),
            // The call has failed, and there is no outage that the follow waits out.
            (Ok(None), Err(error)) if !waits => Some(FollowEvent::Failed(drive.window, error)),
            (Ok(None), _) => None,
        }
    }

    fn report_outage(&self, error: Option<&Error>) {
        let Session { name, stderr, .. } = &*self.session;
        match error.filter(|_| self.is_down) {
            Some(error) => stderr.warning(format_args!(
                "{name}: retrying until the service answers: {}",
                error.text_in(tallyfold::Spelling::Flag)
            )),
            None => stderr.note(format_args!("{name}: the service answers again")),
        }
    }

    /// Returns the state that a later follow can resume.
    pub(crate) fn state(&self) -> String {
        self.machine.state()
    }
}

/// Stores what a collect has read, while the collect continues.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    directory: Option<Arc<Directory>>,
    saving: Option<JoinHandle<Result<()>>>,
}

impl Keeper {
    /// Opens a checkpoint. Creates its folder if it does not exist, and takes the folder's lease.
    ///
    /// # Errors
    /// If another job uses the folder, and errors of the file system.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let as_failure = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::usage(format!("{}: {error}", path.display())),
            _ => Failure::file("use", path, &error),
        };
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            let text = format!("{}: want the path of a folder; this is a file", path.display());
            return Err(Failure::usage(text));
        }
        fs::create_dir_all(path).map_err(as_failure)?;
        let directory = Directory {
            path: path.to_owned(),
            lease: Lease::take(path).await.map_err(as_failure)?,
        };
        Ok(Self { directory: Some(Arc::new(directory)), saving: None })
    }

    /// Loads all stored segments.
    ///
    /// # Errors
    /// For a segment that is damaged or belongs to another query, and errors of the file system.
    pub(crate) fn load(&self, collect: &mut Collect) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        loop {
            let path = directory.path.join(collect.wanted());
            let Some(json) = segment(&path)? else {
                return Ok(());
            };
            collect.load(&path.to_string_lossy(), &json)?;
        }
    }

    /// Begins to store the new segment, if there is one and nothing is being stored already.
    pub(crate) fn begin(&mut self, collect: &mut Collect) {
        let Some(directory) = self.directory.as_ref().filter(|_| self.saving.is_none()) else {
            return;
        };
        if let Some(segment) = collect.unsaved() {
            let directory = Arc::clone(directory);
            self.saving = Some(spawn_blocking(move || directory.save(&segment)));
        }
    }

    /// Waits until the current segment is stored. If no segment is being stored, waits forever.
    ///
    /// # Errors
    /// If a segment could not be stored.
    pub(crate) async fn saved(&mut self) -> Result<()> {
        let Some(saving) = &mut self.saving else {
            return std::future::pending().await;
        };
        let saved = saving.await;
        self.saving = None;
        saved.unwrap_or_else(|error| {
            Err(Failure::usage(format!("the checkpoint could not be stored: {error}")))
        })
    }

    /// Stores everything that was not stored yet.
    ///
    /// # Errors
    /// If a segment could not be stored.
    pub(crate) async fn flush(&mut self, collect: &mut Collect) -> Result<()> {
        loop {
            self.begin(collect);
            if self.saving.is_none() {
                return Ok(());
            }
            self.saved().await?;
        }
    }
}

/// The folder of a checkpoint. This job holds its lease.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    lease: Lease,
}

impl Directory {
    /// Replaces a segment. After a crash, the file contains either the whole old or the whole new segment.
    fn save(&self, segment: &Segment) -> Result<()> {
        let path = self.path.join(&segment.name);
        let saved = self.lease.check().and_then(|()| {
            replace(&path, Replacement::Private, |out| out.write_all(segment.json.as_bytes()))
        });
        saved.map_err(|error| Failure::file("write", &path, &error))
    }
}

/// Reads a segment; returns `None` if the file does not exist.
fn segment(path: &Path) -> Result<Option<Vec<u8>>> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(not_a_file(&path.to_string_lossy()).into());
    }
    if_exists(fs::read(path)).map_err(|error| Failure::file("read", path, &error))
}
