//! Replaces files atomically, locks files, and opens files without waiting for pipes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};

/// Locks a folder by locking the file `path` in that folder.
///
/// # Errors
/// For a file that can't be created, and for a folder that another process uses.
pub(crate) fn lock_folder(path: &Path, folder: &Path) -> Result<File> {
    locked(path)?.ok_or_else(|| {
        Failure::usage(format!(
            "{}: another process uses this folder; each process needs its own folder",
            folder.display()
        ))
    })
}

/// Opens a regular file to read it. Reading a pipe could block forever, and a device may have no end.
///
/// # Errors
/// If the path isn't a regular file, and errors of the file system.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(irregular()),
    }
}

/// Opens a file that a user has written. Accepts a pipe only below `/dev`, where a shell's process substitution puts it, such as
/// `/dev/fd/63`. Reading any other pipe, such as one in another user's folder, could block forever.
///
/// # Errors
/// For a pipe or a device outside of `/dev`, and errors of the file system.
pub(crate) fn open_written(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    match found.is_file() || found.is_dir() || path.starts_with("/dev") {
        true => File::open(path),
        false => Err(irregular()),
    }
}

/// Reads a text that a user has written. `what` names the kind of file in errors, such as `a rules file`.
///
/// # Errors
/// For a file that can't be opened or read, that is larger than a mebibyte, or that is not UTF-8.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String> {
    const MOST_BYTES: u64 = 1 << 20;
    let read = open_written(path).and_then(|file| read_at_most(file, MOST_BYTES));
    let read = read.map_err(|error| Failure::file("read", path, &error))?;
    let bytes = read.ok_or_else(|| {
        Failure::usage(format!("{}: this is too large to be {what}", path.display()))
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{}: want UTF-8 text", path.display())))
}

/// Reads an open file; returns `None` if it has more than `most` bytes. Limits the reading instead of checking the size,
/// because a pipe or a device does not report its size.
pub(crate) fn read_at_most(file: File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Returns `None` instead of an error if the file does not exist.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "this isn't a regular file")
}

/// Creates a folder that only its owner can use, and its missing parent folders.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Locks a file, and creates it if it does not exist. Returns `None` if another process has locked the file.
pub(crate) fn locked(path: &Path) -> Result<Option<File>> {
    let open = || match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(irregular()),
        _ => OpenOptions::new().create(true).truncate(false).write(true).open(path),
    };
    let file = open().map_err(|error| Failure::file("write", path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Failure::file("lock", path, &error)),
    }
}

/// Replaces a file as [`Replacement::Locked`] describes. The caller must have locked the file or its folder.
///
/// # Errors
/// Errors of the file system. The file is unchanged after an error.
pub(crate) fn replace_locked(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, Replacement::Locked, |out| out.write_all(bytes))
}

/// Follows links to the path of a file that does not exist yet. Returns the path itself if it isn't a link.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    // Linux follows at most 40 links, too.
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(to) => target = target.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

/// How a file is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Replacement {
    /// The new file gets the permissions of the old one and, for root, its owner. If the path is a link, its target is replaced.
    Shared,
    /// Like `Shared`, for a file that only this process replaces. If the file is new, only its owner can read it. The temporary
    /// file is `NAME.new`. If a killed process has left a temporary file, it is removed first, so there is never more than one.
    Locked,
    /// Only its owner can read the new file. If the path is a link, the link itself is replaced. The temporary file is
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
        Replacement::Shared | Replacement::Locked => replaced(path)?,
    };
    let mut file = temporary(&target, replacement)?;
    let mut writer = BufWriter::new(file.as_file_mut());
    write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    if let Some(old) = old {
        // If root replaces the file, the owner stays the same: `sudo tallyfold check ack` changes a state file that belongs to
        // the user of a service. Other users can't change the owner, so ignore errors.
        #[cfg(unix)]
        let _ = fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    let mut unpersisted = Some(file);
    with_retries(cfg!(windows), || match unpersisted.take() {
        Some(file) => file.persist(&target).map(drop).map_err(|failed| {
            unpersisted = Some(failed.file);
            failed.error
        }),
        None => Ok(()),
    })?;
    sync_names(&target);
    Ok(())
}

/// Returns the path of the file to replace, which is the target if `path` is a link, and the metadata of the old file, if
/// there is one.
fn replaced(path: &Path) -> io::Result<(PathBuf, Option<fs::Metadata>)> {
    Ok(match if_exists(fs::metadata(path))? {
        Some(old) => (fs::canonicalize(path)?, Some(old)),
        None => (target_of(path)?, None),
    })
}

/// Checks that a file can be replaced as [`Replacement::Shared`] describes: creates a temporary file, and removes it.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    let (target, _) = replaced(path)?;
    temporary(&target, Replacement::Shared).map(drop)
}

/// Writes a new file that only its owner can read. The file appears at `path` only when it is complete.
///
/// # Errors
/// `AlreadyExists`, and other errors of the file system.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary(path, Replacement::Private)?;
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    sync_names(path);
    Ok(())
}

/// Creates a file that only its owner can read. The path must not exist, not even as a link. If writing fails, the file
/// is removed. The file is not synced to the disk.
///
/// # Errors
/// `AlreadyExists`, and other errors of the file system.
pub(crate) fn create_for_owner(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = create_new(path, 0o600)?.write_all(bytes);
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Creates a file at a path that must not exist. The file gets the mode `mode`, less the umask; Windows has no modes.
fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Removes the temporary files for [`Replacement::Shared`] that killed processes have left in a folder. Files that are younger
/// than an hour may belong to a process that is still writing, so they stay.
pub(crate) fn remove_abandoned(folder: &Path) {
    const YOUNG: Duration = Duration::from_secs(3_600);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let changed = entry.metadata().and_then(|found| found.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG));
        if is_old && name.starts_with(SHARED_PREFIX) && name.ends_with(".tmp") {
            // Ignores errors: a leftover file does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// How the names of temporary files for [`Replacement::Shared`] begin.
const SHARED_PREFIX: &str = ".tallyfold-";

/// Creates a temporary file next to `target`. Dropping the returned value removes the file.
fn temporary(target: &Path, replacement: Replacement) -> io::Result<NamedTempFile> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    let mut builder = tempfile::Builder::new();
    match replacement {
        Replacement::Shared => builder.prefix(SHARED_PREFIX).suffix(".tmp"),
        Replacement::Private => {
            name.push(".");
            builder.prefix(&name).suffix(".tmp").rand_bytes(16)
        }
        Replacement::Locked => {
            if_exists(fs::remove_file(with_end(target, ".new")))?;
            builder.prefix(&name).suffix(".new").rand_bytes(0)
        }
    };
    // A `Shared` file contains no secret, so it gets the usual permissions.
    let mode = match replacement {
        Replacement::Shared => 0o666,
        Replacement::Locked | Replacement::Private => 0o600,
    };
    // Creates the file here, because an error of `tempfile` would end with the temporary path, which means nothing to the user.
    builder.make_in(folder_of(target), |path| create_new(path, mode))
}

/// Calls `replace`, and retries on Windows, where a file can't be replaced while another program, such as a virus
/// scanner, has it open.
fn with_retries(is_windows: bool, mut replace: impl FnMut() -> io::Result<()>) -> io::Result<()> {
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

/// The waits between attempts to replace a file, in milliseconds. Their sum is about 2.5 seconds.
const RETRY_WAITS_MS: [u64; 8] = [10, 20, 40, 80, 160, 320, 640, 1280];

/// Syncs a file's folder, so that the file's new name survives a power failure. Windows does not allow programs to do
/// this.
fn sync_names(path: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    }
}

/// Returns the folder that contains a file; `.` for a bare file name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Appends `end` to the name of a file.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Returns the name of a cluster's file or folder, with the suffix `end`. Every byte other than an ASCII letter, a
/// digit, `-` or `_` becomes `%` and its hexadecimal value, so that the name can't lead to another folder.
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

/// Reverses [`file_name`]: returns the cluster to which a file or folder belongs. `name` does not include the suffix. Returns
/// `None` for a name that [`file_name`] never returns.
pub(crate) fn cluster_of(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    let cluster = String::from_utf8(bytes).ok()?;
    (file_name(&cluster, "") == name).then_some(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_gives_the_name_of_its_cluster() {
        for cluster in ["eu", "", "a b/../%é", "..", "%2"] {
            assert_eq!(cluster_of(&file_name(cluster, "")).as_deref(), Some(cluster));
        }
        // No cluster has a file with any of these names.
        for other in ["eu.json", "%", "%4", "%41", "%2E", "%zz", "%é", "%ff", "%+a"] {
            assert_eq!(cluster_of(other), None, "{other}");
        }
    }

    /// Only root can change the owner of a file, so this tests nothing for other users.
    #[test]
    #[cfg(unix)]
    fn a_file_that_root_replaces_keeps_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        fs::write(&path, "old").unwrap();
        if std::os::unix::fs::chown(&path, Some(65_532), Some(65_532)).is_err() {
            return;
        }
        replace_locked(&path, b"new").unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (65_532, 65_532));
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    #[cfg(unix)]
    fn a_text_that_is_too_large_or_not_utf_8_is_refused() {
        let read = |path: &Path| read_text(path, "a rules file").map_err(|failure| failure.text);
        let endless = read(Path::new("/dev/zero"));
        assert_eq!(endless.unwrap_err(), "/dev/zero: this is too large to be a rules file");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        for (bytes, is_read) in [(1 << 20, true), ((1 << 20) + 1, false)] {
            fs::write(&path, vec![b' '; bytes]).unwrap();
            assert_eq!(read(&path).is_ok(), is_read, "{bytes}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path).unwrap_err().ends_with("rules.toml: want UTF-8 text"));
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        for replacement in [Replacement::Shared, Replacement::Locked, Replacement::Private] {
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
    fn on_windows_replacing_a_file_that_another_program_has_open_is_retried() {
        let tries = |is_windows, failures| {
            let mut tried = 0;
            let ended = with_retries(is_windows, || {
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
    fn a_cluster_name_leads_to_no_other_folder_and_to_no_other_cluster() {
        assert_eq!(file_name("eu-1_a", ".json"), "eu-1_a.json");
        assert_eq!(file_name("../x", ".json"), "%2e%2e%2fx.json");
        assert_ne!(file_name("A.b", ""), file_name("A%2eb", ""));
    }
}
