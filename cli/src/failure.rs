//! Defines the exit codes of commands, and the failures that commands write to stderr.

use std::path::Path;
use std::process::ExitCode;
use std::{fmt, io};

use tallyfold::{Code, CollectError, Error, Kind, Name, Spelling};

/// How a command has ended. Scripts rely on the exit codes, which `docs/cli/index.md` documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did everything that was requested.
    Fine,
    /// `check` found something wrong. With `--fail-above`, too many events failed, or there were none.
    Unhealthy,
    /// The user has to change the arguments, the configuration or a file.
    Usage,
    /// The service or a destination refused the credentials or tokens.
    Authentication,
    /// The service, a destination or a receiver failed, or a connection to one of them did.
    Service,
    /// The service sent a response that can't be counted, or a destination may lack counts that were sent.
    Response,
    /// The counts of some windows or clusters are missing. The other counts were written.
    Missing,
    /// Ctrl-C ended the command. Shells use the same exit code.
    Interrupted,
    /// SIGTERM ended the command. Shells use the same exit code.
    Terminated,
    /// The exit code of the command that `tallyfold sandbox` ran.
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
    /// Returns the exit code as a number.
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

    /// Combines the results of all clusters. `failures` has an entry for each cluster: its exit code if it has failed,
    /// otherwise `None`. Returns the first exit code if all clusters have failed, and `Missing` if only some have failed.
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

/// Why a command has failed, for one cluster or as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code of the process.
    pub(crate) exit: Exit,
    /// What is wrong, where, and what is expected instead.
    pub(crate) text: String,
    /// The core's error code, if the error is from the core.
    pub(crate) code: Option<Code>,
    /// What to try next, usually a command.
    pub(crate) help: Option<String>,
    /// The kind of the error, if the file system returned it.
    pub(crate) io: Option<io::ErrorKind>,
}

impl Failure {
    /// Creates a failure that the user can fix in an argument, a setting or a file.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// Creates a failure with this exit code.
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), code: None, help: None, io: None }
    }

    /// Creates the failure for a file that could not be used. `action` is a verb such as `read`.
    pub(crate) fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        Self {
            io: Some(error.kind()),
            ..Self::usage(format!("can't {action} {}: {error}", path.display()))
        }
    }

    /// Returns whether a file could not be written but may be readable: the disk is full or read-only, or the user has no
    /// permission to write.
    pub(crate) fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(self.io, Some(PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull))
    }

    /// Suggests `tallyfold doctor` for the cluster, if the failure has no other suggestion.
    pub(crate) fn of_cluster(self, cluster: &str) -> Self {
        match self.help {
            Some(_) => self,
            // The text already names the setting to change.
            None if self.exit == Exit::Usage => self,
            None => self.helped_by(format!("tallyfold doctor --cluster {cluster}")),
        }
    }

    /// Appends `more` to the text.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.text.push_str(more);
        self
    }

    /// Sets what to try next.
    pub(crate) fn helped_by(mut self, command: impl Into<String>) -> Self {
        self.help = Some(command.into());
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // The command line has other names for these options.
        let renamed = [
            ("dimensions", "--by"),
            ("group_by", "--by"),
            ("labels", "--label"),
            ("step", "--by-window"),
            ("url", "URL"),
        ];
        let error = renamed
            .into_iter()
            .fold(error, |error, (name, own)| error.renaming(name, &Name::of_caller(own)));
        Self {
            exit: error.kind().into(),
            text: error.text_in(Spelling::Flag).to_string(),
            code: Some(error.code()),
            help: None,
            io: None,
        }
    }
}

impl From<Box<CollectError>> for Failure {
    fn from(error: Box<CollectError>) -> Self {
        let Some((window, first)) = error.failures.first() else {
            let text = error.text_in(Spelling::Flag).to_string();
            return Self { text, ..error.error.into() };
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
