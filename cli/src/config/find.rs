//! Finds the configuration file, and checks who can change it.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::{env, io};

use crate::failure::{Failure, Result};

/// The maximum size of a configuration in bytes.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024;

/// A configuration as it was read.
pub(crate) struct Found {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Why the commands in the file are not run; set if somebody else can change the file.
    pub(crate) distrust: Option<String>,
}

/// Reads the configuration that the user has named, or the first one that exists in the usual places.
///
/// # Errors
/// If a file can't be read, or the file that the user has named does not exist.
pub(crate) fn find(asked: Option<&Path>) -> Result<Option<Found>> {
    // An empty variable counts as unset, as everywhere.
    if let Some(path) = asked.filter(|path| !path.as_os_str().is_empty()) {
        return match read(path) {
            Ok(found) => Ok(Some(found?)),
            Err(error) => Err(Failure::file("read", path, &error)),
        };
    }
    for path in usual_places() {
        match read(&path) {
            Ok(found) => return Ok(Some(found?)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Failure::file("read", &path, &error)),
        }
    }
    Ok(None)
}

/// The places that are searched for a configuration, in this order.
pub(crate) fn usual_places() -> Vec<PathBuf> {
    places(&|name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
}

fn places(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    // A relative folder is ignored, as the XDG specification requires.
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let of_user = match cfg!(windows) {
        true => absolute("APPDATA"),
        false => absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config"))),
    };
    let of_system = (!cfg!(windows)).then(|| PathBuf::from("/etc"));
    let mut places = vec![PathBuf::from("tallyfold.toml")];
    for folder in [of_user, of_system].into_iter().flatten() {
        places.push(folder.join("tallyfold").join("tallyfold.toml"));
    }
    places
}

/// Reads a file. The outer error is an I/O error; the inner one is a file that is refused.
fn read(path: &Path) -> io::Result<Result<Found>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let refused = |text: &str| Failure::usage(format!("{}: {text}", path.display()));
    if metadata.is_dir() {
        return Ok(Err(refused("want a file, not a folder")));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let text = format!("want at most {MOST_BYTES} bytes");
        return Ok(Err(refused(&text)));
    }
    Ok(Ok(Found {
        path: path.to_owned(),
        bytes,
        distrust: distrust(&metadata),
    }))
}

/// Why the commands in the file are not run; `None` if only root and the user can change it.
#[cfg(unix)]
pub(crate) fn distrust(metadata: &Metadata) -> Option<String> {
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
        .then(|| format!("others may change the file (mode {mode:04o}; chmod go-w mends it)"))
}

/// Windows has access control lists instead of modes; they are not checked.
#[cfg(not(unix))]
pub(crate) fn distrust(_: &Metadata) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_usual_places_have_an_order() {
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
    fn what_can_not_be_read_is_said() {
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

    #[cfg(unix)]
    #[test]
    fn only_root_and_the_user_are_trusted() {
        for (owner, us, mode, is_trusted) in [
            (1000, 1000, 0o100_644, true),
            (0, 1000, 0o644, true),
            (0, 0, 0o600, true),
            (1001, 1000, 0o600, false),
            (1000, 0, 0o600, false),
            (1000, 1000, 0o664, false),
            (0, 1000, 0o666, false),
        ] {
            assert_eq!(
                why(owner, us, mode).is_none(),
                is_trusted,
                "{owner} {us} {mode:o}"
            );
        }
    }
}
