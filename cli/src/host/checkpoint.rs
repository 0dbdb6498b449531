//! A checkpoint: a directory with a file for each segment, which Python and Node read and write in the same way.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::{Collect, Segment, segment_name};
use tokio::task::{JoinHandle, spawn_blocking};

use super::lock::{Lock, exclusive};
use super::session::random;
use crate::failure::{Failure, Result};

/// Stores what a collect has read while it reads on.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    directory: Option<Arc<Directory>>,
    saving: Option<JoinHandle<Result<()>>>,
}

impl Keeper {
    /// A keeper of a directory, which is made if it does not exist, and locked.
    ///
    /// # Errors
    /// If another job uses it, and those of the file system.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::usage(format!("{}: {error}", path.display())),
            _ => Failure::file("use", path, &error),
        };
        fs::create_dir_all(path).map_err(told)?;
        let lock = Lock::take(path).await.map_err(told)?;
        let directory = Directory {
            path: path.to_owned(),
            lock,
        };
        directory.tidy().map_err(told)?;
        Ok(Self {
            directory: Some(Arc::new(directory)),
            saving: None,
        })
    }

    /// Loads all stored segments.
    ///
    /// # Errors
    /// For a segment that is damaged or of another query, and those of the file system.
    pub(crate) fn load(&self, collect: &mut Collect) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        for name in (0..).map(segment_name) {
            let path = directory.path.join(&name);
            let Some(json) = read(&path).map_err(|error| Failure::file("read", &path, &error))?
            else {
                break;
            };
            collect.load(&path.to_string_lossy(), &json)?;
        }
        Ok(())
    }

    /// Begins to store what is new, unless something is being stored already.
    pub(crate) fn begin(&mut self, collect: &mut Collect) {
        let Some(directory) = self.directory.as_ref().filter(|_| self.saving.is_none()) else {
            return;
        };
        if let Some(segment) = collect.unsaved() {
            let directory = Arc::clone(directory);
            self.saving = Some(spawn_blocking(move || directory.save(&segment)));
        }
    }

    /// Waits until what is being stored is stored; without end if nothing is.
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

/// A directory that is locked.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    lock: Lock,
}

impl Directory {
    /// Removes what a job that was killed has left: no job is writing while the lock is held.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("segment-") && name.ends_with(".tmp") {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Replaces a segment. After a crash, either the old or the new one is complete.
    fn save(&self, segment: &Segment) -> Result<()> {
        let path = self.path.join(&segment.name);
        let new = self
            .path
            .join(format!("{}.{:016x}.tmp", segment.name, random()));
        let replaced = self
            .lock
            .check()
            .and_then(|()| replace(&new, &path, segment.json.as_bytes()));
        replaced.map_err(|error| {
            let _ = fs::remove_file(&new);
            Failure::file("write", &path, &error)
        })
    }
}

fn replace(new: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = exclusive(new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    sync_names(path)
}

/// Makes sure that a renamed file keeps its name over a power failure. Windows has no way to ask for that.
fn sync_names(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => fs::File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Reads a segment; `None` if there is none. Anything but a file may have no end, as a pipe, or lead out of the directory.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no regular file",
            ));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
