//! `tallyfold trust`: lets commands use the configuration of a working folder.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::find::{EXPOSED, HERE, Trust, Verdict, check_owner, named};
use crate::failure::{Exit, Failure, Result};
use crate::output::sink::write_to;
use crate::stderr::Stderr;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold trust
      Commands that run in this folder use its tallyfold.toml from now on, until it changes.
  tallyfold trust --revoke
      Commands no longer use that file.
  tallyfold trust --list
      Prints all trusted files.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrustFlags {
    /// The configuration file
    #[arg(value_name = "FILE", default_value = HERE)]
    file: PathBuf,
    /// Stops trusting the file
    #[arg(long)]
    revoke: bool,
    /// Prints the trusted files, one per line, and warns about files that are no longer trusted
    #[arg(long, conflicts_with_all = ["file", "revoke"])]
    list: bool,
}

/// Trusts a file, revokes the trust, or lists the trusted files.
///
/// # Errors
/// For a file that can't be read or belongs to another user, and if the user's data folder can't be used.
pub(crate) fn run(flags: &TrustFlags, stderr: &Stderr) -> Result<Exit> {
    let trust = Trust::of_user().ok_or_else(|| {
        Failure::usage(match cfg!(windows) {
            true => "the variable LOCALAPPDATA is not set, so there is no place to remember trusted files",
            false => "neither the variable HOME nor XDG_DATA_HOME is set, so there is no place to remember trusted files",
        })
    })?;
    if flags.list {
        return list(&trust, stderr);
    }
    let path = flags.file.display();
    let as_failure = |error| Failure::file("trust", &flags.file, &error);
    if flags.revoke {
        match trust.revoke(&flags.file).map_err(as_failure)? {
            true => stderr.note(format_args!("{path} is no longer trusted")),
            false => stderr.note(format_args!("{path} was not trusted")),
        }
        return Ok(Exit::Fine);
    }
    let found = named(&flags.file)?;
    check_owner(&found)?;
    trust.allow(&found.path, &found.bytes).map_err(as_failure)?;
    stderr.note(format_args!("{path} is trusted until it changes"));
    Ok(Exit::Fine)
}

fn list(trust: &Trust, stderr: &Stderr) -> Result<Exit> {
    let folder_failure = |error| Failure::file("read", Path::new("the trusted files"), &error);
    let paths = trust.list().map_err(folder_failure)?;
    for path in &paths {
        let verdict = named(path).map(|found| trust.verdict(path, &found.bytes));
        match verdict {
            Ok(Ok(Verdict::Trusted)) => {}
            Ok(Ok(Verdict::Exposed)) => {
                stderr.warning(format_args!("{} {EXPOSED}", path.display()));
            }
            Ok(_) => {
                stderr.warning(format_args!("{} has changed since you trusted it", path.display()))
            }
            Err(failure) => stderr.warning(failure),
        }
    }
    write_to(None, |_, out| {
        for path in &paths {
            writeln!(out, "{}", path.display())?;
        }
        Ok(())
    })?;
    Ok(Exit::Fine)
}
