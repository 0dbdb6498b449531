//! Files: replacing them atomically, locking them, and the state that a command keeps between two runs.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use tallyfold::Error;
use tempfile::NamedTempFile;

use crate::config::settings::{Cluster, Settings};
use crate::failure::{Failure, Result};

/// The largest document that is read. A document with a million groups has about a quarter of this size.
const LONGEST: u64 = 1 << 28;

/// A file with a document, locked against other processes.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// The operating system releases the lock when the process ends, in whatever way.
    _lock: File,
}

impl StateFile {
    /// Opens the file of a cluster. If clusters have names, `path` is a folder with a file for each cluster, and is
    /// created if it does not exist. Otherwise, `path` is the file.
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

    /// Opens the file of a state that an earlier run has written. If `path` is a folder, `cluster` names the cluster.
    ///
    /// # Errors
    /// For a path without such a file, and a file that another process uses.
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
    /// For a path that can't be used, and a file that another process uses.
    fn open(path: PathBuf) -> Result<Self> {
        if path.is_dir() {
            let text = format!(
                "{}: want the path of a file; this is a folder",
                path.display()
            );
            return Err(Failure::usage(text));
        }
        // A link stays; its target is replaced.
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
    /// For a file that can't be read, or is too large to be a state.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        let as_failure = |error| Failure::file("read", &self.path, &error);
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(as_failure(error)),
        };
        let mut bytes = Vec::new();
        file.take(LONGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(as_failure)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Failure::usage(format!(
                "{}: this is too large to be a state",
                self.path.display()
            )));
        }
        Ok(Some(bytes))
    }

    /// Replaces the document. When this returns, the new document is on the disk. If the process ends before that, the
    /// file contains either the old document or the new one.
    ///
    /// # Errors
    /// For a file that can't be written. It contains the old document then.
    pub(crate) async fn replace(&self, document: String) -> Result<()> {
        let path = self.path.clone();
        // A slow disk must not delay the responses to scrapes.
        let replaced =
            tokio::task::spawn_blocking(move || replace_locked(&path, document.as_bytes())).await;
        let replaced = replaced.unwrap_or_else(|error| Err(io::Error::other(error)));
        replaced.map_err(|error| Failure::file("write", &self.path, &error))
    }

    /// An error about the document, with the path and what to do.
    pub(crate) fn as_failure(&self, error: Error) -> Failure {
        let mut failure = Failure::from(error);
        failure.text = format!("{}: {}", self.path.display(), failure.text);
        failure.helped_by(format!(
            "another --state, or remove {} to begin anew",
            self.path.display()
        ))
    }
}

/// Locks a folder by locking the file at `path` in it.
///
/// # Errors
/// For a file that can't be created, and a folder that another process uses.
pub(crate) fn file_lock(path: &Path, folder: &Path) -> Result<File> {
    locked(path)?.ok_or_else(|| {
        Failure::usage(format!(
            "{}: another process uses this folder; each process needs one of its own",
            folder.display()
        ))
    })
}

/// Locks a file, which is created if it does not exist; `None` if another process has locked it.
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

/// Replaces a file. The caller holds the lock of the file or of its folder.
///
/// # Errors
/// Errors of the file system; the file is unchanged then.
pub(crate) fn replace_locked(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, Replacement::Locked, |out| out.write_all(bytes))
}

/// How a file is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Replacement {
    /// The new file gets the permissions of the old one. If the path is a link, its target is replaced.
    Shared,
    /// The same for a file that only this process replaces. Only its owner can read a new one. The temporary file is
    /// `NAME.new`. It replaces a temporary file that a killed process has left, so there is never more than one.
    Locked,
    /// Only its owner can read the new file. If the path is a link, the link is replaced. The temporary file is
    /// `NAME.RANDOM.tmp`.
    Private,
}

/// Replaces a file atomically: writes a temporary file next to it, syncs it to the disk and renames it. Readers, and
/// the next process after a crash, see either the old file or the whole new one. If anything fails, the old file stays
/// and the temporary file is removed.
///
/// # Errors
/// Errors of the file system and of `write`.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    replacement: Replacement,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let (target, old) = match replacement {
        Replacement::Private => (path.to_owned(), None),
        Replacement::Shared | Replacement::Locked => match fs::metadata(path) {
            Ok(old) => (fs::canonicalize(path)?, Some(old)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(error) => return Err(error.into()),
        },
    };
    let mut file = temporary(&target, replacement)?;
    let mut writer = BufWriter::new(&mut file);
    write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    let mut unpersisted = Some(file);
    patiently(cfg!(windows), || match unpersisted.take() {
        Some(file) => file.persist(&target).map(drop).map_err(|failed| {
            unpersisted = Some(failed.file);
            failed.error
        }),
        None => Ok(()),
    })?;
    sync_names(&target);
    Ok(())
}

/// Writes a new file that only its owner can read, whole or not at all.
///
/// # Errors
/// `AlreadyExists`, and other errors of the file system.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary(path, Replacement::Private)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    sync_names(path);
    Ok(())
}

/// Creates a file for its owner only, whole or not at all. It must not exist, not even as a link. It is not synced.
///
/// # Errors
/// `AlreadyExists`, and other errors of the file system.
pub(crate) fn create_for_owner(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path)?.write_all(bytes);
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// A temporary file next to `target`. Dropping the value removes the temporary file.
fn temporary(target: &Path, replacement: Replacement) -> io::Result<NamedTempFile> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    let mut builder = tempfile::Builder::new();
    match replacement {
        Replacement::Shared => builder.prefix(".tallyfold-").suffix(".tmp"),
        Replacement::Private => {
            name.push(".");
            builder.prefix(&name).suffix(".tmp").rand_bytes(16)
        }
        Replacement::Locked => {
            match fs::remove_file(with_end(target, ".new")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            builder.prefix(&name).suffix(".new").rand_bytes(0)
        }
    };
    // tempfile creates files for their owner only. Files without secrets get the usual permissions, as the umask
    // allows.
    #[cfg(unix)]
    if matches!(replacement, Replacement::Shared) {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(target))
}

/// Retries on Windows, where a file can't be replaced while another program, such as a virus scanner, has it open.
fn patiently(is_windows: bool, mut replace: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for wait_ms in RETRY_WAITS_MS {
        match replace() {
            Err(error) if is_windows && error.kind() == io::ErrorKind::PermissionDenied => {
                sleep(Duration::from_millis(wait_ms));
            }
            ended => return ended,
        }
    }
    replace()
}

/// The waits between attempts to replace a file: 2.5 seconds in total.
const RETRY_WAITS_MS: [u64; 8] = [10, 20, 40, 80, 160, 320, 640, 1280];

/// Makes the new name survive a loss of power, on systems where a program can sync a folder.
fn sync_names(path: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// The name of a cluster's file or folder, with this ending. Every byte other than an ASCII letter, a digit, `-` or `_`
/// becomes `%` and its hexadecimal value, so that the name can't lead to another folder.
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
    fn a_failed_replacement_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        for replacement in [
            Replacement::Shared,
            Replacement::Locked,
            Replacement::Private,
        ] {
            fs::write(&path, "old").unwrap();
            let failed = replace(&path, replacement, |out| {
                out.write_all(b"new")?;
                Err(io::Error::other("the disk is full"))
            });
            assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            replace(&path, replacement, |out| out.write_all(b"new")).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        let exists = create(&path, b"other").unwrap_err();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn on_windows_a_file_that_another_program_has_open_is_tried_again() {
        let tries = |is_windows, failures| {
            let mut tried = 0;
            let ended = patiently(is_windows, || {
                tried += 1;
                match tried <= failures {
                    true => Err(io::ErrorKind::PermissionDenied.into()),
                    false => Ok(()),
                }
            });
            (tried, ended.is_ok())
        };
        assert_eq!(tries(true, 2), (3, true));
        assert_eq!(tries(false, 2), (1, false));
    }

    #[test]
    fn names_of_clusters_stay_in_the_folder() {
        assert_eq!(file_name("eu-1_a", ".json"), "eu-1_a.json");
        assert_eq!(file_name("../x", ".json"), "%2e%2e%2fx.json");
        assert_ne!(file_name("A.b", ""), file_name("A%2eb", ""));
    }
}
