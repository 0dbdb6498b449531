//! Finds the configuration file, and checks who can change it and whether the user trusts it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::trust::{Trust, Variable, Verdict, distrust, folder, is_same, variable};
use crate::failure::{Failure, Result};

/// The file in the working folder that is used if the user trusts it.
pub(crate) const HERE: &str = "tallyfold.toml";

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
/// A configuration decides which secrets are read and where they are sent. So one that the user hasn't named is used only
/// if nobody else can have written it, and one in the working folder only if the user trusts it.
///
/// # Errors
/// If a file can't be read or used, or the file that the user has named does not exist.
pub(crate) fn find(asked: Option<&Path>) -> Result<Option<Found>> {
    // An empty variable counts as unset, as everywhere.
    if let Some(path) = asked.filter(|path| !path.as_os_str().is_empty()) {
        return named(path).map(Some);
    }
    let places = usual_places();
    for path in &places {
        match read(path) {
            Ok(found) => {
                let found = found?;
                check_owner(&found)?;
                let is_of_user = |place: &PathBuf| place != path && is_same(place, path);
                if path == Path::new(HERE) && !places.iter().any(is_of_user) {
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
/// If the file can't be read.
pub(crate) fn named(path: &Path) -> Result<Found> {
    read(path).unwrap_or_else(|error| Err(Failure::file("read", path, &error)))
}

/// Refuses a configuration that somebody else may have written.
///
/// # Errors
/// The error names who may have written it.
pub(crate) fn check_owner(found: &Found) -> Result<()> {
    match &found.distrust {
        None => Ok(()),
        Some(why) => Err(Failure::usage(format!(
            "{}: {why}, so it could send your secrets to any address: it is not used",
            found.path.display()
        ))
        .helped_by("a configuration of your own, named with --config")),
    }
}

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
        Verdict::Unknown => "is in the working folder, and you have not trusted it yet",
    };
    Err(Failure::usage(format!(
        "{path} {why}: it could send your secrets to any address. Read it before you trust it, or use --config {path}"
    ))
    .helped_by("tallyfold trust"))
}

/// The places that are searched for a configuration, in this order.
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
}
