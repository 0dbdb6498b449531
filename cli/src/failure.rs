//! How a command ends: with an exit code, and a failure that a person can read on stderr.

use std::path::Path;
use std::process::ExitCode;
use std::{fmt, io};

use tallyfold::{Code, CollectError, Error, Kind, Name, Spelling};

/// How a command has ended. Scripts rely on the numbers, which are documented in `tallyfold --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything that was asked for was done.
    Fine,
    /// What was checked is not well.
    Unhealthy,
    /// The arguments, the configuration or a file has to be changed here.
    Usage,
    /// The service refused the credentials or tokens.
    Authentication,
    /// The service, or the way to it, failed.
    Service,
    /// The service sent what can't be counted.
    Response,
    /// Counts of some windows or clusters are missing; the others were written.
    Missing,
    /// Ended by Ctrl-C, as shells number it.
    Interrupted,
    /// Ended by SIGTERM, as shells number it.
    Terminated,
    /// As the command that was run has ended.
    Other(u8),
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Config => Self::Usage,
            Kind::Auth => Self::Authentication,
            Kind::Service => Self::Service,
            Kind::Response => Self::Response,
        }
    }
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Unhealthy => 1,
            Self::Usage => 2,
            Self::Authentication => 3,
            Self::Service => 4,
            Self::Response => 5,
            Self::Missing => 6,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::Other(code) => code,
        }
    }
}

impl Exit {
    /// How a command ends by the failures of its clusters. If all clusters have failed, by the first failure; if some have,
    /// counts are missing.
    pub(crate) fn of_clusters(failures: &[Option<Exit>]) -> Self {
        match failures.iter().find_map(|exit| *exit) {
            None => Self::Fine,
            Some(_) if failures.contains(&None) => Self::Missing,
            Some(exit) => exit,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

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

    /// A failure of a cluster, with the command that examines the cluster if no other command helps.
    pub(crate) fn of_cluster(self, cluster: &str) -> Self {
        match self.help {
            Some(_) => self,
            // The text names the setting to change.
            None if self.exit == Exit::Usage => self,
            None => self.helped_by(format!("tallyfold doctor --cluster {cluster}")),
        }
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
