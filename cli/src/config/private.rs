//! Files that only their owner may read.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

/// Reads a file to which nobody but its owner has access.
///
/// # Errors
/// If it can't be read, is larger than that, or others have access to it.
pub(crate) fn read_private(path: &Path, most_bytes: usize) -> Result<Vec<u8>, String> {
    // The name is not quoted before the file is known to exist: it may be the secret itself.
    let failed = |error: std::io::Error| {
        format!(
            "the file can't be read: {} (a relative path starts at the folder of the configuration)",
            error
        )
    };
    // Looked at first, because a pipe could not even be opened before somebody writes into it.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err("want a file, not a folder".to_owned());
    }
    if !metadata.is_file() {
        return Err("want a regular file, not a pipe or a device".to_owned());
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check(path, &metadata)?;
    let mut bytes = Vec::new();
    file.take(most_bytes as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() > most_bytes {
        true => Err(format!("the file has more than {most_bytes} bytes")),
        false => Ok(bytes),
    }
}

/// Windows has lists in place of modes, which are not looked at.
#[cfg(not(unix))]
fn check(_: &Path, _: &Metadata) -> Result<(), String> {
    Ok(())
}

/// Refuses a file to which its group or others have access.
#[cfg(unix)]
fn check(path: &Path, metadata: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    let is_private = mode & 0o077 == 0
        || credentials.is_some_and(|folder| is_in(path, Path::new(&folder)))
        || is_mounted_secret(path);
    match is_private {
        true => Ok(()),
        false => Err(format!(
            "others than its owner have access to the file (mode {mode:04o}); take it away: chmod 600 {path:?}"
        )),
    }
}

/// Whether systemd put the file there (`LoadCredential=`). It lets only the unit into that folder, and gives access by a
/// list, which shows in the mode as that of a group.
#[cfg(unix)]
fn is_in(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Whether Kubernetes mounted the file as a secret. Such files have mode 0644 if the pod does not say otherwise, and only
/// the containers of the pod that mount the secret can see them. They are known by their layout: each is a link into
/// `..data`, which is a link to a folder such as `..2026_01_31_09_00_00.123456789` beside it.
#[cfg(unix)]
fn is_mounted_secret(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let data = Path::new("..data");
    let is_link = path.read_link().is_ok_and(|link| link == data.join(name));
    let version = folder.join(data).read_link();
    let is_version = |link: &Path| {
        let digit = |byte: &u8| byte.is_ascii_digit();
        let bytes = link.as_os_str().as_encoded_bytes();
        link.components().count() == 1
            && bytes.starts_with(b"..")
            && bytes.get(2).is_some_and(digit)
    };
    is_link && version.is_ok_and(|link| is_version(&link))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    fn file(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "canary\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn others_must_not_have_access() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, is_private) in [
            (0o600, true),
            (0o400, true),
            (0o700, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
            (0o644, false),
        ] {
            let path = file(folder.path(), &format!("{mode:o}"), mode);
            let read = read_private(&path, 100);
            assert_eq!(read.is_ok(), is_private, "{mode:o}");
            if let Err(error) = read {
                assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
                assert!(!error.contains("canary"), "{error}");
            }
        }
    }

    #[test]
    fn a_link_does_not_hide_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "open", 0o644);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read_private(&link, 100).is_err());
    }

    #[test]
    fn secrets_that_kubernetes_mounts_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let version = folder.path().join("..2026_01_31_09_00_00.1");
        fs::create_dir(&version).unwrap();
        file(&version, "secret", 0o644);
        symlink(version.file_name().unwrap(), folder.path().join("..data")).unwrap();
        let path = folder.path().join("secret");
        symlink("..data/secret", &path).unwrap();
        assert_eq!(read_private(&path, 100).unwrap(), b"canary\n");
        // The file behind the link is not one by itself, nor is one beside it.
        assert!(read_private(&version.join("secret"), 100).is_err());
        assert!(read_private(&file(folder.path(), "other", 0o644), 100).is_err());
    }

    #[test]
    fn credentials_of_systemd_are_known_by_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "secret", 0o440);
        assert!(is_in(&path, folder.path()));
        assert!(!is_in(&path, &folder.path().join("none")));
        assert!(!is_in(&folder.path().join("none"), folder.path()));
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(!is_in(&path, elsewhere.path()));
    }

    #[test]
    fn files_that_are_none_or_too_large_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "secret", 0o600);
        assert!(read_private(&path, 6).unwrap_err().contains("more than 6"));
        assert_eq!(read_private(&path, 7).unwrap(), b"canary\n");
        let error = read_private(folder.path(), 7).unwrap_err();
        assert!(error.contains("folder"), "{error}");
        let error = read_private(&folder.path().join("canary"), 7).unwrap_err();
        assert!(
            error.contains("No such file") && !error.contains("canary"),
            "{error}"
        );
    }
}
