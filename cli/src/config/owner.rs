//! Who can change a configuration. A configuration may say which commands to run, so that of somebody else, found in the
//! folder where a job happens to run, must not be followed.

use std::fs::Metadata;

/// Why no command of the file is run; `None` if only root and the user can change it.
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

/// Windows has lists in place of modes, which are not looked at.
#[cfg(not(unix))]
pub(crate) fn distrust(_: &Metadata) -> Option<String> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::why;

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
