//! Where a secret is, and how it is read from there: an environment variable, a file, a command.
//!
//! No message quotes what was written as the name of a variable or as a command, because somebody may have written the
//! secret itself there. The place in the configuration, which is in front of each message, says enough.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use tallyfold::Secret;

use super::private::read_private;
use super::run::{Program, output};

/// The bytes that a secret has at most: more than any key or token has.
pub(crate) const SECRET_BYTES: usize = 64 * 1024;

/// How long a command may take. A person may have to unlock a store of passwords.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Where a secret is. It is read when it is first needed, and then kept: a command runs once, also if several clusters
/// have the same.
pub(crate) struct Source {
    place: Place,
    secret: OnceLock<Result<Secret, String>>,
}

/// The kinds of places.
#[derive(Debug)]
pub(crate) enum Place {
    /// The environment variable with that name.
    Variable(String),
    /// A file to which only its owner has access.
    File(PathBuf),
    /// A command that prints the secret.
    Command(Program),
}

impl Source {
    /// A secret in that place.
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            secret: OnceLock::new(),
        }
    }

    /// The secret.
    ///
    /// # Errors
    /// Say what has to be changed, without the secret.
    pub(crate) fn secret(&self) -> Result<Secret, String> {
        self.secret.get_or_init(|| self.place.secret()).clone()
    }

    /// The flag that can say this.
    pub(crate) fn flag(&self) -> &'static str {
        match self.place {
            Place::Variable(_) => "environment",
            Place::File(_) => "--client-secret-file",
            Place::Command(_) => "--client-secret-command",
        }
    }
}

impl Place {
    fn secret(&self) -> Result<Secret, String> {
        let bytes = match self {
            Self::Variable(name) => match env::var_os(name) {
                Some(value) => value.into_encoded_bytes(),
                None => return Err("the environment variable that is named here is not set".into()),
            },
            Self::File(path) => read_private(path, SECRET_BYTES)?,
            Self::Command(program) => output(program, SECRET_BYTES, COMMAND_LIMIT)?,
        };
        let what = match self {
            Self::Variable(_) => "the environment variable that is named here",
            Self::File(_) => "the file",
            Self::Command(_) => "what the command prints",
        };
        of_bytes(bytes).map_err(|wrong| format!("{what} {wrong}"))
    }
}

/// A secret of one line; the newline at its end, which editors and commands add, is cut.
fn of_bytes(bytes: Vec<u8>) -> Result<Secret, &'static str> {
    // The bytes of the error would be the secret.
    let mut text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    let secret = Secret::from(text);
    if secret.is_empty() {
        return Err("is empty");
    }
    match secret.expose().contains(['\n', '\r', '\0']) {
        true => Err("has more than one line; want the secret alone"),
        false => Ok(secret),
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_is_cut() {
        for (bytes, expected) in [
            ("canary", Ok("canary")),
            ("canary\n", Ok("canary")),
            ("canary\r\n", Ok("canary")),
            (" canary ", Ok(" canary ")),
            ("", Err("is empty")),
            ("\n", Err("is empty")),
            (
                "canary\n\n",
                Err("has more than one line; want the secret alone"),
            ),
            (
                "canary\nlogin: me\n",
                Err("has more than one line; want the secret alone"),
            ),
        ] {
            let secret = of_bytes(bytes.into());
            let secret = secret.as_ref().map(Secret::expose).map_err(|wrong| *wrong);
            assert_eq!(secret, expected, "{bytes:?}");
        }
        assert_eq!(of_bytes(vec![0xff]).unwrap_err(), "is not UTF-8 text");
    }

    #[test]
    fn a_variable_that_is_not_set_is_not_named() {
        let source = Source::new(Place::Variable("TALLYFOLD_TEST_CANARY".to_owned()));
        assert_eq!(
            source.secret().unwrap_err(),
            "the environment variable that is named here is not set"
        );
        // Cargo sets it for tests.
        let source = Source::new(Place::Variable("CARGO_PKG_NAME".to_owned()));
        assert_eq!(source.secret().unwrap().expose(), "tallyfold-cli");
        assert_eq!(format!("{source:?}"), "Source(…)");
    }

    #[cfg(unix)]
    #[test]
    fn a_command_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!("echo ran >> '{}'; echo canary", count.display());
        let source = Source::new(Place::Command(Program::Shell(script)));
        for _ in 0..2 {
            assert_eq!(source.secret().unwrap().expose(), "canary");
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "ran\n");
    }
}
