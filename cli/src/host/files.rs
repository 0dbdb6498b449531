//! State that a command keeps between two runs: a document in a file that is replaced whole, for one process at a time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tallyfold::Error;

use crate::config::settings::{Cluster, Settings};
use crate::failure::{Failure, Result};

/// The largest document that is read. A million groups take about a quarter of it.
const LONGEST: u64 = 1 << 28;

/// A file with a document, which no other process may use meanwhile.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// The lock ends with the process, however that ends.
    _lock: File,
}

impl StateFile {
    /// The file of a cluster. A cluster that has a name has a file of its own in the folder at that path, which is made if it
    /// is not there; without names, the path is that of the file.
    ///
    /// # Errors
    /// For a path that can't be used, and a file that another process uses.
    pub(crate) fn of_cluster(path: &Path, settings: &Settings, cluster: &Cluster) -> Result<Self> {
        if !settings.is_named {
            return Self::open(path.to_owned());
        }
        fs::create_dir_all(path).map_err(|error| Failure::file("make the folder", path, &error))?;
        Self::open(path.join(file_name(&cluster.name, ".json")))
    }

    /// Locks a file, which need not be there yet.
    ///
    /// # Errors
    /// For a path that can't be used, and a file that another process uses.
    fn open(path: PathBuf) -> Result<Self> {
        if path.is_dir() {
            let text = format!(
                "{}: want the path of a file; this is a folder",
                path.display()
            );
            return Err(Failure::usage(text));
        }
        // A link stays, and the file that it leads to is replaced.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let beside = with_end(&path, ".lock");
        let lock = locked(&beside)?.ok_or_else(|| {
            Failure::usage(format!(
                "{}: another process uses this file; each process needs a file of its own",
                path.display()
            ))
        })?;
        Ok(Self { path, _lock: lock })
    }

    /// The document; `None` if there is no file yet.
    ///
    /// # Errors
    /// For a file that can't be read, or is too large to be one of ours.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        let told = |error| Failure::file("read", &self.path, &error);
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(told(error)),
        };
        let mut bytes = Vec::new();
        file.take(LONGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(told)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Failure::usage(format!(
                "{}: this is too large to be a state",
                self.path.display()
            )));
        }
        Ok(Some(bytes))
    }

    /// Replaces the document. It is on the disk when this is done; whatever ends the process meanwhile, the file has either
    /// the old document or the new one.
    ///
    /// # Errors
    /// For a file that can't be written. It has the old document then.
    pub(crate) async fn replace(&self, document: String) -> Result<()> {
        let path = self.path.clone();
        // A slow disk must not keep scrapes from being answered.
        let replaced =
            tokio::task::spawn_blocking(move || replace(&path, document.as_bytes())).await;
        let replaced = replaced.unwrap_or_else(|error| Err(io::Error::other(error)));
        replaced.map_err(|error| Failure::file("write", &self.path, &error))
    }

    /// An error about the document, with the path and what to do.
    pub(crate) fn told(&self, error: Error) -> Failure {
        let mut failure = Failure::from(error);
        failure.text = format!("{}: {}", self.path.display(), failure.text);
        failure.helped_by(format!(
            "another --state, or remove {} to begin anew",
            self.path.display()
        ))
    }
}

/// Locks a folder by a file in it.
///
/// # Errors
/// For a file that can't be made, and a folder that another process uses.
pub(crate) fn file_lock(path: &Path, folder: &Path) -> Result<File> {
    locked(path)?.ok_or_else(|| {
        Failure::usage(format!(
            "{}: another process uses this folder; each process needs one of its own",
            folder.display()
        ))
    })
}

/// Locks a file, which is made if it is not there; `None` if another process has locked it.
fn locked(path: &Path) -> Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| Failure::file("write", path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Failure::file("lock", path, &error)),
    }
}

/// Replaces a file whole. The caller holds the lock of the file, or of its folder.
///
/// # Errors
/// Those of the file system; the file is as it was then.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The lock makes this name ours: what a process that was killed has left is replaced, so at most one such file is left.
    let new = with_end(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&new)?;
    let written = (|| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    sync_names(path)
}

/// Makes the new name survive a loss of power.
#[cfg(unix)]
fn sync_names(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere a folder can't be opened.
#[cfg(not(unix))]
fn sync_names(_: &Path) -> io::Result<()> {
    Ok(())
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// The name of a cluster's file or folder, with that end. Whatever could lead to another folder is written as `%` and its number.
pub(crate) fn file_name(cluster: &str, end: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut name = String::new();
    for byte in cluster.bytes() {
        match is_plain(byte) {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_is_replaced_whole_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let state = StateFile::open(path.clone()).unwrap();
        assert_eq!(state.read().unwrap(), None);
        state.replace("one".to_owned()).await.unwrap();
        // What a process that was killed has left.
        fs::write(folder.path().join("state.json.new"), "torn").unwrap();
        state.replace("two".to_owned()).await.unwrap();
        assert_eq!(state.read().unwrap().unwrap(), b"two");
        let refused = StateFile::open(path.clone()).unwrap_err();
        assert!(refused.text.contains("another process"), "{refused}");
        drop(state);
        StateFile::open(path).unwrap();
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["state.json", "state.json.lock"]);
    }

    #[test]
    fn names_of_clusters_stay_in_the_folder() {
        assert_eq!(file_name("eu-1_a", ".json"), "eu-1_a.json");
        assert_eq!(file_name("../x", ".json"), "%2e%2e%2fx.json");
        assert_ne!(file_name("A.b", ""), file_name("A%2eb", ""));
    }
}
