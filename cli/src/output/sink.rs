//! Where results go: stdout, or a file that is replaced whole.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};
use crate::voice::is_colored;

/// What is known of the place that results are written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// How many columns a terminal has; `None` for anything else.
    pub(crate) width: Option<usize>,
    /// Whether colours are wanted.
    pub(crate) color: bool,
}

impl Screen {
    /// Stdout.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let width = stdout
            .is_terminal()
            .then(|| crossterm::terminal::size().ok())
            .flatten();
        Self {
            width: width
                .map(|(columns, _)| usize::from(columns))
                .filter(|columns| *columns > 0),
            color: is_colored(&stdout),
        }
    }

    /// A file, or a pipe.
    pub(crate) const PLAIN: Self = Self {
        width: None,
        color: false,
    };
}

/// Writes to stdout, or to a file which is replaced only when everything is written. A reader that has gone away,
/// as `head` does, is no failure.
///
/// # Errors
/// For a file or stdout that can't be written, and those of `write`.
pub(crate) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<()> {
    match path {
        Some(path) => write_file(path, write),
        None => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            let written =
                write(Screen::of_stdout(), &mut stdout).and_then(|()| Ok(stdout.flush()?));
            match written {
                Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    // What is buffered would be written again when the writer is dropped.
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

fn write_file(
    path: &Path,
    write: impl FnOnce(Screen, &mut dyn Write) -> Result<(), WriteError>,
) -> Result<()> {
    let told = |error: io::Error| Failure::file("write", path, &error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(told)?;
    let written = {
        let mut writer = BufWriter::new(&mut file);
        write(Screen::PLAIN, &mut writer).and_then(|()| Ok(writer.flush()?))
    };
    match written {
        Ok(()) => {}
        Err(WriteError::Io(error)) => return Err(told(error)),
        Err(WriteError::Failure(failure)) => return Err(failure),
    }
    file.as_file().sync_all().map_err(told)?;
    file.persist(path).map_err(|error| told(error.error))?;
    Ok(())
}

/// Why results could not be written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The place did not take them.
    Io(io::Error),
    /// The format can't carry them.
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
