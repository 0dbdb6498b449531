//! The codes with which the process ends.

use std::process::ExitCode;

use tallyfold::Kind;

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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
