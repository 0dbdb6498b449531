//! Writes to stderr: errors, warnings, notes, progress, and with `--verbose` details such as each request.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// Writes messages to stderr, unless `--quiet` suppresses them.
#[derive(Debug)]
pub(crate) struct Stderr {
    quiet: bool,
    verbose: bool,
}

impl Stderr {
    /// Creates the writer for these values of `--quiet` and `--verbose`.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        Self { quiet, verbose }
    }

    /// Creates a writer of errors only, for a command that draws on the whole terminal.
    pub(crate) fn silent() -> Self {
        Self::new(true, false)
    }

    /// Returns whether to show progress: stderr is a terminal, and `--quiet` is not set.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Writes what went wrong, even with `--quiet`.
    pub(crate) fn error(&self, text: impl Display) {
        labeled("error", AnsiColor::Red, text);
    }

    /// Writes what the user should know about the results.
    pub(crate) fn warning(&self, text: impl Display) {
        if !self.quiet {
            labeled("warning", AnsiColor::Yellow, text);
        }
    }

    /// Writes what was done, or what to do next.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            line(text);
        }
    }

    /// Writes what the user can try after a failure.
    pub(crate) fn suggest(&self, failure: &Failure) {
        if let Some(help) = &failure.help {
            self.note(format_args!("try: {help}"));
        }
    }

    /// Writes a detail for troubleshooting, only with `--verbose`.
    pub(crate) fn detail(&self, text: impl Display) {
        if self.verbose {
            line(text);
        }
    }
}

/// Returns whether to write colours to a stream. `NO_COLOR` (no-color.org) and `TERM` can turn them off.
pub(crate) fn is_colored(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

fn labeled(label: &str, color: AnsiColor, text: impl Display) {
    let style = color.on_default().effects(Effects::BOLD);
    line(format_args!("{style}{label}:{style:#} {text}"));
}

fn line(text: impl Display) {
    // Ignores errors: if stderr is closed, there is nowhere to report the error.
    let _ = writeln!(AutoStream::auto(io::stderr()), "{text}");
}

/// The progress bars of all clusters, shown only on a terminal.
pub(crate) struct Bars(MultiProgress);

impl Bars {
    /// Creates an empty set of bars.
    pub(crate) fn new(stderr: &Stderr) -> Self {
        let target = match stderr.shows_progress() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self(MultiProgress::with_draw_target(target))
    }

    /// Adds a bar for a cluster.
    pub(crate) fn add(&self, cluster: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(
            "{prefix} {wide_bar} {pos}/{len} windows, {eta} left {msg}",
        );
        let bar = self.0.add(ProgressBar::no_length());
        bar.set_prefix(cluster.to_owned());
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    /// Removes all bars.
    pub(crate) fn clear(&self) {
        // Ignores errors: a leftover line of a bar does no harm.
        let _ = self.0.clear();
    }
}

/// Updates a bar with the progress in windows, the number of failed windows, and the wait before the next attempt.
pub(crate) fn show(
    bar: &ProgressBar,
    (planned, done, failed): (u32, u32, u32),
    waiting_ms: Option<u32>,
) {
    bar.set_length(planned.into());
    bar.set_position(done.into());
    let mut message = String::new();
    if failed > 0 {
        message = format!("{failed} failed");
    }
    if let Some(ms) = waiting_ms {
        message = format!(
            "the service does not answer, next try in {} s",
            ms.div_ceil(1000)
        );
    }
    bar.set_message(message);
}
