//! A checkpoint: a directory with a file for each segment. Python and Node read and write the same format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::keeper::not_a_file;
use tallyfold::{Collect, Segment};
use tokio::task::{JoinHandle, spawn_blocking};

use super::files::{Replacement, replace};
use super::lease::Lease;
use crate::failure::{Failure, Result};

/// Stores what a collect has read while the collect continues.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    directory: Option<Arc<Directory>>,
    saving: Option<JoinHandle<Result<()>>>,
}

impl Keeper {
    /// A keeper of a directory. Creates the directory if it does not exist, and locks it.
    ///
    /// # Errors
    /// If another job uses the directory, and errors of the file system.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let as_failure = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::usage(format!("{}: {error}", path.display())),
            _ => Failure::file("use", path, &error),
        };
        fs::create_dir_all(path).map_err(as_failure)?;
        let directory = Directory {
            path: path.to_owned(),
            lease: Lease::take(path).await.map_err(as_failure)?,
        };
        Ok(Self {
            directory: Some(Arc::new(directory)),
            saving: None,
        })
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
            let Some(json) = read(&path)? else {
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

    /// Waits until the current segment is stored. If nothing is being stored, this never returns.
    ///
    /// # Errors
    /// If it could not be stored.
    pub(crate) async fn saved(&mut self) -> Result<()> {
        let Some(saving) = &mut self.saving else {
            return std::future::pending().await;
        };
        let saved = saving.await;
        self.saving = None;
        saved.unwrap_or_else(|error| {
            Err(Failure::usage(format!(
                "the checkpoint could not be stored: {error}"
            )))
        })
    }

    /// Stores everything that is new.
    ///
    /// # Errors
    /// If it could not be stored.
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

/// A directory whose lease this job holds.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    lease: Lease,
}

impl Directory {
    /// Replaces a segment. After a crash, either the old or the new one is complete.
    fn save(&self, segment: &Segment) -> Result<()> {
        let path = self.path.join(&segment.name);
        let saved = self.lease.check().and_then(|()| {
            replace(&path, Replacement::Private, |out| {
                out.write_all(segment.json.as_bytes())
            })
        });
        saved.map_err(|error| Failure::file("write", &path, &error))
    }
}

/// Reads a segment; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if !metadata.is_file() => {
            return Err(not_a_file(&path.to_string_lossy()).into());
        }
        _ => {}
    }
    let read = fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    Ok(Some(read))
}
