//! `tallyfold init`: writes a configuration with comments, or rules for `check`.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Args;
use tallyfold_health::Rules;

use crate::config::find::HERE;
use crate::config::template::template;
use crate::failure::{Exit, Failure, Result};
use crate::files::{Replacement, create, create_private_folder, folder_of, replace};
use crate::output::sink::write_to;
use crate::stderr::Stderr;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold init
      Writes tallyfold.toml. Commands that run in this folder use it after you trust it (tallyfold trust).
  tallyfold init ~/.config/tallyfold/tallyfold.toml
      Writes your own configuration, which your commands read in any folder.
  tallyfold init -
      Prints the configuration.
  tallyfold init --rules health.toml
      Writes the standard rules of tallyfold check. Comments describe every kind of rule and its keys.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct InitFlags {
    /// The file to write; - prints the configuration
    #[arg(value_name = "FILE", default_value = HERE)]
    file: PathBuf,
    /// Writes the rules of tallyfold check to this file instead of a configuration; - prints them
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    rules: Option<PathBuf>,
    /// Replaces an existing file
    #[arg(long)]
    force: bool,
}

/// Writes the file, and a note about the next step. Creates the file's folder if it does not exist; only its owner can use it.
///
/// # Errors
/// If the file exists and `--force` is not given, or if it can't be written.
pub(crate) fn run(flags: &InitFlags, stderr: &Stderr) -> Result<Exit> {
    let (path, text) = match &flags.rules {
        Some(path) => (path, [Rules::STANDARD, &Rules::kinds()].concat()),
        None => (&flags.file, template()),
    };
    if path == Path::new("-") {
        write_to(None, |_, stdout| Ok(stdout.write_all(text.as_bytes())?))?;
        return Ok(Exit::Fine);
    }
    let folder = folder_of(path);
    create_private_folder(folder)
        .map_err(|error| Failure::file("make the folder", folder, &error))?;
    write(path, flags.force, &text).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists; --force replaces it", path.display()))
        }
        _ => Failure::file("write", path, &error),
    })?;
    let file = path.display();
    if flags.rules.is_some() {
        stderr.note(format_args!(
            "Wrote {file}. To see when these rules would have fired, run: tallyfold check --rules {file} --replay --since 7d"
        ));
        return Ok(Exit::Fine);
    }
    let next = match path == Path::new(HERE) {
        true => "tallyfold trust, and tallyfold doctor".to_owned(),
        false => format!("tallyfold doctor --config {file}"),
    };
    stderr.note(format_args!(
        "Wrote {file}. Put the address and credentials of your cluster into it, then run: {next}"
    ));
    Ok(Exit::Fine)
}

/// Writes the file atomically. Only its owner can read it, because it may contain a secret.
fn write(path: &Path, is_forced: bool, text: &str) -> io::Result<()> {
    // Replacing a device or a link would remove it instead of writing to it.
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) && is_forced {
        return Err(io::Error::other("it isn't a regular file"));
    }
    match is_forced {
        true => replace(path, Replacement::Private, |out| out.write_all(text.as_bytes())),
        false => create(path, text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let stderr = Stderr::new(true, false);
        let mut flags = InitFlags { file: folder.path().join("t.toml"), rules: None, force: false };
        assert_eq!(run(&flags, &stderr).unwrap(), Exit::Fine);
        assert_eq!(fs::read_to_string(&flags.file).unwrap(), template());
        fs::write(&flags.file, "mine").unwrap();
        let failure = run(&flags, &stderr).unwrap_err();
        assert!(failure.text.ends_with("t.toml exists; --force replaces it"), "{failure}");
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(fs::read_to_string(&flags.file).unwrap(), "mine");
        flags.force = true;
        run(&flags, &stderr).unwrap();
        assert_eq!(fs::read_to_string(&flags.file).unwrap(), template());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let flags = InitFlags { file: folder.path().join("t.toml"), rules: None, force: false };
        run(&flags, &Stderr::new(true, false)).unwrap();
        let mode = fs::metadata(&flags.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        std::os::unix::fs::symlink("elsewhere", &file).unwrap();
        let flags = InitFlags { file, rules: None, force: true };
        let failure = run(&flags, &Stderr::new(true, false)).unwrap_err();
        assert!(failure.text.ends_with("it isn't a regular file"), "{failure}");
    }

    #[test]
    fn a_missing_folder_is_created_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let stderr = Stderr::new(true, false);
        let config = folder.path().join(".config");
        for force in [false, true] {
            let own = config.join(format!("tallyfold-{force}"));
            let file = own.join("tallyfold.toml");
            let flags = InitFlags { file: file.clone(), rules: None, force };
            assert_eq!(run(&flags, &stderr).unwrap(), Exit::Fine);
            assert_eq!(fs::read_to_string(&file).unwrap(), template());
            #[cfg(unix)]
            for folder in [&own, &config] {
                use std::os::unix::fs::PermissionsExt;
                let mode = fs::metadata(folder).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o700);
            }
            // A file can't contain another one.
            let below = InitFlags { file: file.join("t.toml"), ..flags };
            let failure = run(&below, &stderr).unwrap_err();
            assert!(failure.text.starts_with("can't make the folder "), "{failure}");
        }
    }
}
