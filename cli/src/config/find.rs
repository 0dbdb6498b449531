//! Finds the configuration file, and checks who can change it and whether the user trusts it. A configuration decides which
//! secrets are read and where they are sent. So a configuration in the working folder is used only after the user has trusted
//! it.
//!
//! For each configuration that the user trusts, there is an entry: a file in the user's data folder. The name of the entry is a
//! digest of the configuration's path and content; the content of the entry is the configuration's path. A changed
//! configuration has another digest, so the user has to trust it again.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::failure::{Failure, Result};
use crate::files::{
    Replacement, create_private_folder, folder_of, hex, if_exists, open_written, read_at_most,
    replace,
};

/// The file in the working folder that is used if the user trusts it.
pub(crate) const HERE: &str = "tallyfold.toml";

/// The maximum size of a configuration in bytes.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024;

/// A configuration that was found, not parsed yet.
pub(crate) struct Found {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The content of the file.
    pub(crate) bytes: Vec<u8>,
    /// Why the file is not trusted, if somebody else can change it.
    pub(crate) distrust: Option<String>,
}

/// Reads the configuration that the user has named, or the first one that exists in the usual places.
///
/// A configuration in the usual places is used only if nobody but root and the user can change it. The user must also trust
/// the configuration in the working folder, unless its path is another usual place, too.
///
/// # Errors
/// If a file can't be read or used, or the file that the user has named does not exist.
pub(crate) fn find(asked: Option<&Path>) -> Result<Option<Found>> {
    // An empty `TALLYFOLD_CONFIG` counts as unset, like every empty variable.
    if let Some(path) = asked.filter(|path| !path.as_os_str().is_empty()) {
        return named(path).map(Some);
    }
    let places = usual_places();
    for path in &places {
        match read(path) {
            Ok(found) => {
                let found = found?;
                check_owner(&found)?;
                let is_usual = |place: &PathBuf| place != path && is_same(place, path);
                if path == Path::new(HERE) && !places.iter().any(is_usual) {
                    check_trust(&found)?;
                }
                return Ok(Some(found));
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Failure::file("read", path, &error)),
        }
    }
    Ok(None)
}

/// Reads the configuration that the user has named.
///
/// # Errors
/// If the file can't be read, is a folder, or is too large.
pub(crate) fn named(path: &Path) -> Result<Found> {
    read(path).unwrap_or_else(|error| Err(Failure::file("read", path, &error)))
}

/// Refuses a configuration that somebody else can change.
///
/// # Errors
/// If somebody else can change the file. The error contains the reason.
pub(crate) fn check_owner(found: &Found) -> Result<()> {
    match &found.distrust {
        None => Ok(()),
        Some(why) => Err(Failure::usage(format!(
            "{}: {why}. It is not used, because it could send your secrets to any address",
            found.path.display()
        ))
        .helped_by("a configuration of your own, named with --config")),
    }
}

/// Why a trusted file is refused. In messages, this text follows the file's path.
pub(crate) const EXPOSED: &str =
    "is not trusted any more, because other users can change the record of your trust";

fn check_trust(found: &Found) -> Result<()> {
    let path = found.path.display();
    let verdict = match Trust::of_user() {
        Some(trust) => trust
            .verdict(&found.path, &found.bytes)
            .map_err(|error| Failure::file("find out whether you trust", &found.path, &error))?,
        None => Verdict::Unknown,
    };
    let why = match verdict {
        Verdict::Trusted => return Ok(()),
        Verdict::Changed => "has changed since you trusted it",
        Verdict::Exposed => EXPOSED,
        Verdict::Unknown => "is in the working folder, and you have not trusted it yet",
    };
    Err(Failure::usage(format!(
        "{path} {why}: it could send your secrets to any address. Read it before you trust it, or use --config {path}"
    ))
    .helped_by("tallyfold trust"))
}

/// Returns the paths where a configuration may be, in the order in which they are tried.
pub(crate) fn usual_places() -> Vec<PathBuf> {
    places(&variable)
}

fn places(variable: Variable<'_>) -> Vec<PathBuf> {
    let of_user = match cfg!(windows) {
        true => folder(variable, "APPDATA", ""),
        false => folder(variable, "XDG_CONFIG_HOME", ".config"),
    };
    let of_system = (!cfg!(windows)).then(|| PathBuf::from("/etc"));
    let mut places = vec![PathBuf::from(HERE)];
    for folder in [of_user, of_system].into_iter().flatten() {
        places.push(folder.join("tallyfold").join("tallyfold.toml"));
    }
    places
}

/// Reads a file. The outer error is an I/O error; the inner error means that the file is refused.
fn read(path: &Path) -> io::Result<Result<Found>> {
    let file = open_written(path)?;
    let metadata = file.metadata()?;
    let refused = |text: &str| Failure::usage(format!("{}: {text}", path.display()));
    if metadata.is_dir() {
        return Ok(Err(refused("want a file, not a folder")));
    }
    let Some(bytes) = read_at_most(file, MOST_BYTES)? else {
        let text = format!("want at most {MOST_BYTES} bytes");
        return Ok(Err(refused(&text)));
    };
    Ok(Ok(Found { path: path.to_owned(), bytes, distrust: distrust(&metadata) }))
}

/// The configurations that the user trusts.
pub(crate) struct Trust {
    folder: PathBuf,
}

/// Whether a configuration is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The user trusts the configuration with its current content.
    Trusted,
    /// The user trusts the configuration only with other content.
    Changed,
    /// The user trusts the configuration with its current content, but other users can change the entry, so it does not count.
    Exposed,
    /// The user does not trust the configuration with any content.
    Unknown,
}

impl Trust {
    /// Returns the configurations that this user trusts; `None` if no environment variable leads to the user's data folder.
    pub(crate) fn of_user() -> Option<Self> {
        let data = match cfg!(windows) {
            true => folder(&variable, "LOCALAPPDATA", ""),
            false => folder(&variable, "XDG_DATA_HOME", ".local/share"),
        };
        let folder = data?.join("tallyfold").join("trusted");
        Some(Self { folder })
    }

    /// Returns whether the user trusts a configuration with this content. An entry that other users can change does not count.
    pub(crate) fn verdict(&self, path: &Path, bytes: &[u8]) -> io::Result<Verdict> {
        let path = known_path(path)?;
        if let Ok(metadata) = fs::metadata(self.entry(&path, bytes)) {
            return Ok(match distrust(&metadata) {
                None => Verdict::Trusted,
                Some(_) => Verdict::Exposed,
            });
        }
        let is_known = self.list()?.contains(&path);
        Ok(if is_known { Verdict::Changed } else { Verdict::Unknown })
    }

    /// Trusts a configuration with its current content only.
    pub(crate) fn allow(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = known_path(path)?;
        self.revoke(&path)?;
        create_private_folder(&self.folder)?;
        let entry = self.entry(&path, bytes);
        replace(&entry, Replacement::Private, |out| {
            out.write_all(path.as_os_str().as_encoded_bytes())
        })
    }

    /// Stops trusting a configuration, whatever its content. Returns whether it was trusted.
    pub(crate) fn revoke(&self, path: &Path) -> io::Result<bool> {
        let path = known_path(path)?;
        let mut was_trusted = false;
        for (entry, named) in self.entries()? {
            if named == path {
                fs::remove_file(entry)?;
                was_trusted = true;
            }
        }
        Ok(was_trusted)
    }

    /// Returns the paths of all configurations that the user trusts, sorted.
    pub(crate) fn list(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> = self.entries()?.into_iter().map(|(_, path)| path).collect();
        paths.sort();
        Ok(paths)
    }

    fn entries(&self) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let Some(entries) = if_exists(fs::read_dir(&self.folder))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?.path();
            // Skips an entry that can't be read, such as one that another process has just removed.
            if let Ok(path) = fs::read(&entry) {
                found.push((entry, path_of(path)));
            }
        }
        Ok(found)
    }

    fn entry(&self, path: &Path, bytes: &[u8]) -> PathBuf {
        let digest = Sha256::new()
            .chain_update(path.as_os_str().as_encoded_bytes())
            .chain_update(b"\n")
            .chain_update(bytes)
            .finalize();
        self.folder.join(hex(&digest))
    }
}

/// Returns the path that is stored in an entry: the folder without links, and the file's name in that folder. A link to a
/// trusted file isn't trusted itself, because relative paths in the file would start at the folder of the link.
fn known_path(path: &Path) -> io::Result<PathBuf> {
    let folder = fs::canonicalize(folder_of(path))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Returns whether two paths name the same entry of the same folder.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    matches!((known_path(one), known_path(other)), (Ok(one), Ok(other)) if one == other)
}

/// A function that returns the folder that an environment variable names.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// Returns the folder that an environment variable names.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Returns the folder that a variable names, or else the folder `usual` in the folder that `HOME` names. If `usual` is empty,
/// does not use `HOME`. Returns `None` if there is no such folder.
pub(super) fn folder(variable: Variable<'_>, name: &str, usual: &str) -> Option<PathBuf> {
    // A relative folder is ignored, as the XDG specification requires.
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let in_home = || Some(absolute("HOME")?.join(usual)).filter(|_| !usual.is_empty());
    absolute(name).or_else(in_home)
}

/// Returns why a file is not trusted: who else can change it. Returns `None` if only root and the user can.
#[cfg(unix)]
pub(super) fn distrust(metadata: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let us = rustix::process::geteuid().as_raw();
    why(metadata.uid(), us, metadata.permissions().mode())
}

#[cfg(unix)]
fn why(owner: u32, us: u32, mode: u32) -> Option<String> {
    const ROOT: u32 = 0;
    if owner != us && owner != ROOT {
        return Some("the file belongs to another user".to_owned());
    }
    let mode = mode & 0o777;
    (mode & 0o022 != 0)
        .then(|| format!("others can change the file (mode {mode:04o}; run chmod go-w)"))
}

/// Returns `None`: Windows has access control lists instead of modes, and this command does not check them.
#[cfg(not(unix))]
pub(super) fn distrust(_: &fs::Metadata) -> Option<String> {
    None
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;

    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_usual_places_are_in_order() {
        let none = places(&|_| None);
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let system = "/etc/tallyfold/tallyfold.toml";
        assert_eq!(none, paths(&["tallyfold.toml", system]));
        let home = |name: &str| (name == "HOME").then(|| "/home/me".into());
        let of_home = "/home/me/.config/tallyfold/tallyfold.toml";
        assert_eq!(places(&home), paths(&["tallyfold.toml", of_home, system]));
        let both = |name: &str| match name {
            "HOME" => Some("/home/me".into()),
            "XDG_CONFIG_HOME" => Some("/conf".into()),
            _ => None,
        };
        let of_xdg = "/conf/tallyfold/tallyfold.toml";
        assert_eq!(places(&both), paths(&["tallyfold.toml", of_xdg, system]));
        let relative = |name: &str| (name == "XDG_CONFIG_HOME").then(|| "conf".into());
        assert_eq!(places(&relative), paths(&["tallyfold.toml", system]));
    }

    #[test]
    fn unreadable_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let text = |path: &Path| match find(Some(path)) {
            Ok(_) => "found".to_owned(),
            Err(failure) => failure.text,
        };
        assert!(text(folder.path()).contains("want a file, not a folder"));
        assert!(text(&folder.path().join("none")).starts_with("can't read "));
        let path = folder.path().join("large");
        let most = usize::try_from(MOST_BYTES).unwrap();
        std::fs::write(&path, vec![b'#'; most]).unwrap();
        assert_eq!(text(&path), "found");
        std::fs::write(&path, vec![b'#'; most + 1]).unwrap();
        assert!(text(&path).contains("want at most 1048576 bytes"));
    }

    #[test]
    fn only_the_content_that_was_trusted_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust { folder: folder.path().join("data/trusted") };
        let path = folder.path().join("tallyfold.toml");
        let verdict = |bytes: &[u8]| trust.verdict(&path, bytes).unwrap();
        assert_eq!(verdict(b"a = 1"), Verdict::Unknown);
        assert!(!trust.revoke(&path).unwrap());
        trust.allow(&path, b"a = 1").unwrap();
        trust.allow(&path, b"a = 1").unwrap();
        assert_eq!(verdict(b"a = 1"), Verdict::Trusted);
        assert_eq!(verdict(b"a = 2"), Verdict::Changed);
        trust.allow(&path, b"a = 2").unwrap();
        assert_eq!(verdict(b"a = 1"), Verdict::Changed);
        assert_eq!(trust.list().unwrap(), [known_path(&path).unwrap()]);
        let other = folder.path().join("other.toml");
        assert_eq!(trust.verdict(&other, b"a = 2").unwrap(), Verdict::Unknown);
        assert!(trust.revoke(&path).unwrap());
        assert_eq!(verdict(b"a = 2"), Verdict::Unknown);
    }

    #[cfg(unix)]
    #[test]
    fn an_entry_that_others_can_change_does_not_count() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let trust = Trust { folder: folder.path().join("trusted") };
        let path = folder.path().join("tallyfold.toml");
        trust.allow(&path, b"a = 1").unwrap();
        let entry = trust.entry(&known_path(&path).unwrap(), b"a = 1");
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(trust.verdict(&path, b"a = 1").unwrap(), Verdict::Exposed);
        assert_eq!(trust.verdict(&path, b"a = 2").unwrap(), Verdict::Changed);
        trust.allow(&path, b"a = 1").unwrap();
        assert_eq!(trust.verdict(&path, b"a = 1").unwrap(), Verdict::Trusted);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_trusted_file_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust { folder: folder.path().join("trusted") };
        let path = folder.path().join("tallyfold.toml");
        fs::write(&path, "a = 1").unwrap();
        trust.allow(&path, b"a = 1").unwrap();
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(trust.verdict(&link, b"a = 1").unwrap(), Verdict::Unknown);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_own_or_can_change_is_not_trusted() {
        for (owner, us, mode, is_trusted) in [
            (1000, 1000, 0o100_644, true),
            (0, 1000, 0o644, true),
            (0, 0, 0o600, true),
            (1001, 1000, 0o600, false),
            (1000, 0, 0o600, false),
            (1000, 1000, 0o664, false),
            (0, 1000, 0o666, false),
        ] {
            assert_eq!(why(owner, us, mode).is_none(), is_trusted, "{owner} {us} {mode:o}");
        }
    }
}
