//! Stores the state of a command between two runs.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tallyfold::Error;

use super::lease::Lease;
use crate::config::settings::{Cluster, Settings};
use crate::failure::{Failure, Result};
use crate::files::{
    file_name, if_exists, locked, open_regular, read_at_most, replace_locked, with_end,
};

/// The maximum size of a document in bytes. A document with a million groups has about a quarter of this size.
const LONGEST: u64 = 1 << 28;

/// A file with a document. A lock keeps other processes of the command from using the file. While the file is written,
/// a lease in the folder `NAME.lease` also keeps programs in other languages from writing it.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// The operating system releases the lock when the process ends, even if it is killed.
    _lock: File,
    /// The mark of the file when this process last read or wrote it.
    seen: Cell<Option<Mark>>,
}

impl StateFile {
    /// Opens the file of a cluster. If clusters have names, `path` is a folder with a file for each cluster, and is
    /// created if it does not exist. Otherwise, `path` is the file.
    ///
    /// # Errors
    /// For a path that can't be used, and for a file that another process uses.
    pub(crate) fn of_cluster(path: &Path, settings: &Settings, cluster: &Cluster) -> Result<Self> {
        if !settings.is_named {
            return Self::open(path.to_owned());
        }
        fs::create_dir_all(path).map_err(|error| Failure::file("make the folder", path, &error))?;
        Self::open(path.join(file_name(&cluster.name, ".json")))
    }

    /// Opens the state file that an earlier run has written. If `path` is a folder, the file of `cluster` in that
    /// folder is opened.
    ///
    /// # Errors
    /// For a folder without `cluster`, and for a file with one. Also if there is no such file, or another process uses it.
    pub(crate) fn existing(path: &Path, cluster: Option<&str>) -> Result<Self> {
        let file = match (path.is_dir(), cluster) {
            (true, Some(cluster)) => path.join(file_name(cluster, ".json")),
            (true, None) => {
                return Err(Failure::usage(format!(
                    "{}: this is a folder; want --cluster NAME, too",
                    path.display()
                )));
            }
            (false, Some(_)) => {
                return Err(Failure::usage(format!(
                    "--cluster: {} isn't a folder, so it is the state of one cluster",
                    path.display()
                )));
            }
            (false, None) => path.to_owned(),
        };
        fs::metadata(&file).map_err(|error| Failure::file("read", &file, &error))?;
        Self::open(file)
    }

    /// Opens and locks a file, which need not exist yet.
    ///
    /// # Errors
    /// For a path that can't be used, and for a file that another process uses.
    fn open(path: PathBuf) -> Result<Self> {
        if let Ok(found) = fs::metadata(&path)
            && !found.is_file()
        {
            let what = match found.is_dir() {
                true => "want the path of a file; this is a folder",
                false => "want the path of a regular file; this is a pipe, a socket or a device",
            };
            return Err(Failure::usage(format!("{}: {what}", path.display())));
        }
        // If the path is a link, its target is replaced, and the link stays.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let lock_path = with_end(&path, ".lock");
        let lock = locked(&lock_path)?.ok_or_else(|| {
            Failure::usage(format!(
                "{}: another process uses this file; wait until that process has ended, or name another file",
                path.display()
            ))
        })?;
        let seen = Cell::new(mark(&path));
        Ok(Self { path, _lock: lock, seen })
    }

    /// Reads and parses the document; returns the default if there is no file yet.
    ///
    /// # Errors
    /// Same as [`StateFile::read`], and the errors of `parse`.
    pub(crate) fn load<T: Default>(
        &self,
        parse: impl FnOnce(&[u8]) -> tallyfold::Result<T>,
    ) -> Result<T> {
        match self.read()? {
            None => Ok(T::default()),
            Some(bytes) => parse(&bytes).map_err(|error| self.as_failure(error)),
        }
    }

    /// Reads the document; returns `None` if there is no file yet.
    ///
    /// # Errors
    /// For a file that can't be read, or is too large to be a state.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        let as_failure = |error| Failure::file("read", &self.path, &error);
        self.seen.set(mark(&self.path));
        let Some(file) = if_exists(open_regular(&self.path)).map_err(as_failure)? else {
            return Ok(None);
        };
        match read_at_most(file, LONGEST).map_err(as_failure)? {
            None => Err(Failure::usage(format!(
                "{}: this is too large to be a state",
                self.path.display()
            ))),
            read => Ok(read),
        }
    }

    /// Returns the mark of the file when this process last read or wrote it.
    pub(crate) fn seen(&self) -> Option<Mark> {
        self.seen.get()
    }

    /// Replaces the document. When this returns, the new document is on the disk. If the process ends before that, the
    /// file contains either the old document or the new one.
    ///
    /// # Errors
    /// For a file that can't be written, that another process is writing, or that was changed since this process last read or
    /// wrote it. The file then stays as it is.
    pub(crate) async fn replace(&self, document: String) -> Result<()> {
        let as_failure = |error| Failure::file("write", &self.path, &error);
        let folder = with_end(&self.path, ".lease");
        let lease = leased(&folder).await.map_err(named).map_err(as_failure)?;
        let replaced = self.replace_leased(&lease, document).await;
        drop(lease);
        // If the folder contains leases of other processes, it can't be removed, and stays.
        let _ = fs::remove_dir(&folder);
        replaced.map_err(as_failure)
    }

    async fn replace_leased(&self, lease: &Lease, document: String) -> io::Result<()> {
        lease.check().map_err(named)?;
        // A missing file is written again: no other process can have continued from it.
        if mark(&self.path).is_some_and(|found| self.seen.get() != Some(found)) {
            let message = "it was written or replaced since it was read; run one process with it";
            return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
        }
        let path = self.path.clone();
        // A slow disk must not delay the responses to scrapes.
        let replaced =
            tokio::task::spawn_blocking(move || replace_locked(&path, document.as_bytes())).await;
        replaced.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        self.seen.set(mark(&self.path));
        Ok(())
    }

    /// Converts an error about the document, and adds the path and what to do.
    pub(crate) fn as_failure(&self, error: Error) -> Failure {
        let mut failure = Failure::from(error);
        failure.text = format!("{}: {}", self.path.display(), failure.text);
        failure
            .helped_by(format!("another --state, or remove {} to begin anew", self.path.display()))
    }
}

/// Replaces the message about a lease by a message about the file.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "another process is writing it"),
        _ => error,
    }
}

/// Takes the lease of a folder, and creates the folder if it does not exist.
async fn leased(folder: &Path) -> io::Result<Lease> {
    for _ in 0..100 {
        create_folder(folder)?;
        match Lease::take(folder).await {
            // The last holder of the lease has just removed the empty folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            taken => return taken,
        }
    }
    Lease::take(folder).await
}

fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Distinguishes a file from a file that replaces it: modification time, length in bytes, and inode number.
pub(crate) type Mark = (Option<SystemTime>, u64, u64);

/// Returns the mark of a file; `None` if the file does not exist.
fn mark(path: &Path) -> Option<Mark> {
    let found = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    Some((found.modified().ok(), found.len(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_is_replaced_as_a_whole_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let state = StateFile::open(path.clone()).unwrap();
        assert_eq!(state.read().unwrap(), None);
        state.replace("one".to_owned()).await.unwrap();
        // A killed process has left this file.
        fs::write(folder.path().join("state.json.new"), "torn").unwrap();
        state.replace("two".to_owned()).await.unwrap();
        assert_eq!(state.read().unwrap().unwrap(), b"two");
        let refused = StateFile::open(path.clone()).unwrap_err();
        assert!(refused.text.contains("another process"), "{refused}");
        drop(state);
        StateFile::open(path).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["state.json", "state.json.lock"]);
    }

    #[tokio::test]
    async fn a_document_that_another_program_has_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let state = StateFile::open(path.clone()).unwrap();
        state.replace("one".to_owned()).await.unwrap();
        fs::write(&path, "another's").unwrap();
        let refused = state.replace("two".to_owned()).await.unwrap_err();
        assert!(refused.text.contains("since it was read"), "{refused}");
        assert_eq!(state.read().unwrap().unwrap(), b"another's");
        // A process on another machine holds the lease.
        let lease = folder.path().join("state.json.lease");
        fs::create_dir(&lease).unwrap();
        let foreign = lease.join("lock-0123456789abcdef-1-1-00");
        fs::write(&foreign, "").unwrap();
        let refused = state.replace("two".to_owned()).await.unwrap_err();
        assert!(refused.text.contains("another process is writing it"), "{refused}");
        fs::remove_file(&foreign).unwrap();
        state.replace("two".to_owned()).await.unwrap();
        assert!(!lease.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for opened in [StateFile::open(pipe.clone()), StateFile::existing(&pipe, None)] {
            let refused = opened.unwrap_err();
            assert_eq!(refused.exit, crate::failure::Exit::Usage);
            assert!(refused.text.contains("pipe: want the path of a regular file"), "{refused}");
        }
        // A pipe can also replace the file after it was opened, or take the place of the lock.
        let path = folder.path().join("state.json");
        let state = StateFile::open(path.clone()).unwrap();
        fs::rename(&pipe, &path).unwrap();
        let refused = state.read().unwrap_err();
        assert!(refused.text.contains("isn't a regular file"), "{refused}");
        drop(state);
        fs::rename(&path, with_end(&path, ".lock")).unwrap();
        let refused = StateFile::open(path).unwrap_err();
        assert!(refused.text.contains("isn't a regular file"), "{refused}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_document_is_not_replaced_without_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFile::open(folder.path().join("state.json")).unwrap();
        state.replace("one".to_owned()).await.unwrap();
        let leases = folder.path().join("state.json.lease");
        let other = folder.path().join("other");
        for is_replaced in [true, false] {
            let lease = leased(&leases).await.unwrap();
            let own = fs::read_dir(&leases).unwrap().next().unwrap().unwrap();
            if is_replaced {
                fs::write(&other, "").unwrap();
                fs::rename(&other, own.path()).unwrap();
            } else {
                fs::remove_file(own.path()).unwrap();
            }
            let refused = state.replace_leased(&lease, "two".to_owned()).await;
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert_eq!(state.read().unwrap().unwrap(), b"one");
        }
        state.replace("three".to_owned()).await.unwrap();
        assert_eq!(state.read().unwrap().unwrap(), b"three");
    }
}
