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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Unhealthy => 1,
            Exit::Usage => 2,
            Exit::Authentication => 3,
            Exit::Service => 4,
            Exit::Response => 5,
            Exit::Missing => 6,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
            Exit::Other(code) => code,
        })
    }
}
