//! What went wrong, for a person who reads stderr and for the exit code.

use std::fmt;
use std::io;
use std::path::Path;

use tallyfold::{Code, CollectError, Error, Name, Spelling};

use crate::exit::Exit;

/// Why a command, or its part for one cluster, has failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The code that the process ends with.
    pub(crate) exit: Exit,
    /// What was wrong, where, and what would be right.
    pub(crate) text: String,
    /// The core's code, if it is an error of the core.
    pub(crate) code: Option<Code>,
    /// The command that helps, if it is not `tallyfold doctor`.
    pub(crate) help: Option<String>,
}

impl Failure {
    /// Something to be changed here: an argument, a setting, a file.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// A failure with that exit code.
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self {
            exit,
            text: text.into(),
            code: None,
            help: None,
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        // An error of a temporary file ends with the path of that file, which nobody knows.
        let error = error.to_string();
        let cause = error.split(" at path ").next().unwrap_or_default();
        Self::usage(format!("can't {action} {}: {cause}", path.display()))
    }

    /// The same failure, with the command that helps.
    pub(crate) fn helped_by(mut self, command: impl Into<String>) -> Self {
        self.help = Some(command.into());
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error.argument_name() {
            // What the core calls dimensions is chosen by this flag.
            Some("dimensions" | "group_by") => error.with_argument(Name::of_caller("--by")),
            // It stands without a flag.
            Some("url") => error.with_argument(Name::of_caller("URL")),
            _ => error,
        };
        Self {
            exit: error.kind().into(),
            text: error.text_in(Spelling::Flag).to_string(),
            code: Some(error.code()),
            help: None,
        }
    }
}

impl From<Box<CollectError>> for Failure {
    fn from(error: Box<CollectError>) -> Self {
        let Some((window, first)) = error.failures.first() else {
            let text = error.text_in(Spelling::Flag).to_string();
            return Self {
                text,
                ..error.error.into()
            };
        };
        let mut failure = Self::from(first.clone());
        failure.text.push_str(&match error.failures.len() {
            1 => format!("; {window:?} could not be read"),
            all => format!("; {all} windows could not be read, the first is {window:?}"),
        });
        failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The result type of this crate.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;
