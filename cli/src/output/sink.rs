//! Writes results to stdout, or to a file that is replaced atomically.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::safe::Terminal;
use crate::failure::{Failure, Result};
use crate::files::{Replacement, check_replaceable, replace};
use crate::stderr::{Stderr, is_colored};

/// The width of a terminal that does not report its width.
pub(crate) const USUAL_WIDTH: usize = 80;

/// The properties of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// The width of a terminal in columns; `None` for any other output.
    pub(crate) width: Option<usize>,
    /// Whether to use colours.
    pub(crate) color: bool,
}

impl Screen {
    /// Returns the properties of the output: stdout, or the file at this path.
    pub(crate) fn of(path: Option<&Path>) -> Self {
        match path.is_some_and(is_file_or_device) {
            true => Self::PLAIN,
            false => Self::of_stdout(),
        }
    }

    /// Returns the properties of stdout.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let columns = || {
            let size = crossterm::terminal::size().ok();
            let columns = size.map(|(columns, _)| usize::from(columns));
            // Some terminals, for example on build machines, report a width of 0.
            columns.filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH)
        };
        Self { width: stdout.is_terminal().then(columns), color: is_colored(&stdout) }
    }

    /// The properties of a file or a pipe.
    pub(crate) const PLAIN: Self = Self { width: None, color: false };
}

/// Writes to stdout, or to a file that is replaced atomically. A closed pipe, for example by `head`, is not an error.
///
/// # Errors
/// If the output can't be written, and the errors of `write`.
pub(crate) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<()> {
    match path.filter(|path| is_file_or_device(path)) {
        Some(path) => write_file(path, write),
        None => {
            let screen = Screen::of_stdout();
            let mut stdout = BufWriter::new(io::stdout().lock());
            let written = match screen.width {
                Some(_) => write(screen, &mut Terminal::new(&mut stdout, screen.color)),
                None => write(screen, &mut stdout),
            };
            let written = written.and_then(|()| Ok(stdout.flush()?));
            match written {
                Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    // Discards the buffer. Otherwise, dropping the writer would try to write the buffer again.
                    let _ = stdout.into_parts();
                    Ok(())
                }
                Err(WriteError::Io(error)) => {
                    let _ = stdout.into_parts();
                    Err(Failure::usage(format!("can't write to stdout: {error}")))
                }
                Err(WriteError::Failure(failure)) => Err(failure),
                Ok(()) => Ok(()),
            }
        }
    }
}

/// Returns whether this is the path of a file or a device, and not of stdout. `/dev/stdout` may be a link to a file that the shell
/// has opened. That file must not be replaced.
fn is_file_or_device(path: &Path) -> bool {
    path != Path::new("-") && path != Path::new("/dev/stdout")
}

/// Checks that [`write_to`] could write to this path, so that a command can fail before it queries the service.
///
/// # Errors
/// For a folder, and for a file that can't be created.
pub(crate) fn check_output(path: Option<&Path>) -> Result<()> {
    let Some(path) = path.filter(|path| is_file_or_device(path)) else {
        return Ok(());
    };
    let checked = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // Opening a named pipe would wait for its reader.
        Ok(found) if !found.is_file() => Ok(()),
        _ => check_replaceable(path),
    };
    checked.map_err(|error| Failure::file("write", path, &error))
}

/// Writes a result to stdout or to a file, as [`write_to`] does. Only a complete result replaces the file; an earlier
/// incomplete result is then removed. Writes an incomplete result to another file next to the output file, and a note about
/// that to stderr.
///
/// # Errors
/// Same as [`write_to`].
pub(crate) fn write_result(
    path: Option<&Path>,
    is_complete: bool,
    stderr: &Stderr,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<()> {
    let partial = path.and_then(partial);
    match (is_complete, path, partial) {
        (true, _, Some(partial)) => {
            write_to(path, write)?;
            let _ = fs::remove_file(partial);
        }
        (false, Some(path), Some(partial)) => {
            write_to(Some(&partial), write)?;
            stderr.note(format_args!(
                "{} contains what could be read; {} is replaced only by a complete result",
                partial.display(),
                path.display()
            ));
        }
        _ => write_to(path, write)?,
    }
    Ok(())
}

/// Returns the path for an incomplete result, next to the output file; `None` for a path that is written directly, such as
/// a device.
fn partial(path: &Path) -> Option<PathBuf> {
    let is_written_directly = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let mut name = path.file_name()?.to_owned();
    name.push(".partial");
    (!is_written_directly && is_file_or_device(path)).then(|| path.with_file_name(name))
}

fn write_file(
    path: &Path,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<()> {
    let written = match fs::metadata(path) {
        Ok(old) if !old.is_file() => write_through(path, write),
        _ => replace(path, Replacement::Shared, |out| write(Screen::PLAIN, out)),
    };
    written.map_err(|error| match error {
        WriteError::Io(error) => Failure::file("write", path, &error),
        WriteError::Failure(failure) => failure,
    })
}

/// Writes directly to an existing path that isn't a regular file, because a device or a named pipe must not be
/// replaced.
fn write_through(
    path: &Path,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut writer = BufWriter::new(File::options().write(true).open(path)?);
    let written =
        write(Screen::PLAIN, &mut writer).and_then(|()| writer.flush().map_err(WriteError::from));
    // Discards the buffer. Otherwise, dropping the writer would try to write the buffer again.
    let _ = writer.into_parts();
    match written {
        Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Why results could not be written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The output could not be written.
    Io(io::Error),
    /// The results could not be formatted.
    Failure(Failure),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<tallyfold::Error> for WriteError {
    fn from(error: tallyfold::Error) -> Self {
        Self::Failure(error.into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    fn write_text(path: &Path, text: &str) -> Result<()> {
        write_to(Some(path), |screen, out| {
            assert_eq!(screen.width, None);
            Ok(out.write_all(text.as_bytes())?)
        })
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.csv");
        write_text(&path, "one").unwrap();
        let others = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        // Whatever the umask is, a new file has the same mode as other new files.
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        let usual = fs::metadata(usual).unwrap().permissions().mode() & 0o777;
        assert_eq!(others, usual);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_text(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "one").unwrap();
        symlink(&file, &link).unwrap();
        write_text(&link, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn the_target_of_a_link_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("data")).unwrap();
        symlink("data/file", at("link")).unwrap();
        symlink(at("link"), at("link to the link")).unwrap();
        write_text(&at("link to the link"), "one").unwrap();
        assert_eq!(fs::read_to_string(at("data/file")).unwrap(), "one");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        symlink("none/file", at("lost")).unwrap();
        assert!(write_text(&at("lost"), "two").is_err());
        assert!(fs::symlink_metadata(at("lost")).unwrap().is_symlink());
    }

    #[test]
    fn a_socket_or_a_folder_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = UnixListener::bind(&path).unwrap();
        assert!(write_text(&path, "one").is_err());
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
        assert!(write_text(folder.path(), "one").is_err());
    }

    #[test]
    fn after_a_failure_only_the_old_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.csv");
        write_text(&path, "one").unwrap();
        let failed = write_to(Some(&path), |_, out| {
            out.write_all(b"two")?;
            Err(Failure::usage("no").into())
        });
        assert_eq!(failed.unwrap_err().text, "no");
        let nowhere = folder.path().join("none").join("counts.csv");
        let text = write_text(&nowhere, "two").unwrap_err().text;
        assert!(text.ends_with("counts.csv: No such file or directory (os error 2)"), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
