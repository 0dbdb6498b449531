//! The codes with which the process ends.

use std::process::ExitCode;

use tallyfold::Kind;

/// How a command has ended. Scripts rely on the numbers, which are documented in `tallyfold --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything that was asked for was done.
    Fine = 0,
    /// What was checked is not well.
    Unhealthy = 1,
    /// The arguments, the configuration or a file has to be changed here.
    Usage = 2,
    /// The service refused the credentials or tokens.
    Authentication = 3,
    /// The service, or the way to it, failed.
    Service = 4,
    /// The service sent what can't be counted.
    Response = 5,
    /// Counts of some windows or clusters are missing; the others were written.
    Missing = 6,
    /// Ended by Ctrl-C, as shells number it.
    Interrupted = 130,
    /// Ended by SIGTERM, as shells number it.
    Terminated = 143,
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
        // Every variant is below 256.
        Self::from(exit as u8)
    }
}
