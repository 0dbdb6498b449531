//! Writes to stderr: errors, warnings, notes, progress, and with `--verbose` details such as each request.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use tallyfold::Progress;

use crate::failure::Failure;

/// Writes messages to stderr, unless `--quiet` suppresses them.
#[derive(Debug)]
pub(crate) struct Stderr {
    quiet: bool,
    verbose: bool,
    /// The progress bars of all clusters. They are hidden with `--quiet`, and if stderr is not a terminal.
    bars: MultiProgress,
}

impl Stderr {
    /// Creates the writer for these values of `--quiet` and `--verbose`.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        let target = match !quiet && io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self { quiet, verbose, bars: MultiProgress::with_draw_target(target) }
    }

    /// Creates a writer of errors only, for a command that draws on the whole terminal.
    pub(crate) fn silent() -> Self {
        Self::new(true, false)
    }

    /// Returns whether to show progress: stderr is a terminal, and `--quiet` is not set.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// Adds a progress bar for a cluster. The bar is removed when it is dropped.
    pub(crate) fn bar(&self, cluster: &str) -> ProgressBar {
        // A hidden `MultiProgress` never removes its bars.
        if self.bars.is_hidden() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(
            "{prefix} {wide_bar} {pos}/{len} windows, {eta} left {msg}",
        );
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
            .with_finish(ProgressFinish::AndClear)
            .with_prefix(cluster.to_owned());
        self.bars.add(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Writes what went wrong, even with `--quiet`.
    pub(crate) fn error(&self, text: impl Display) {
        self.labeled("error", AnsiColor::Red, text);
    }

    /// Writes what the user should know about the results.
    pub(crate) fn warning(&self, text: impl Display) {
        if !self.quiet {
            self.labeled("warning", AnsiColor::Yellow, text);
        }
    }

    /// Writes what was done, or what to do next.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            self.line(text);
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
            self.line(text);
        }
    }

    fn labeled(&self, label: &str, color: AnsiColor, text: impl Display) {
        let style = color.on_default().effects(Effects::BOLD);
        self.line(format_args!("{style}{label}:{style:#} {text}"));
    }

    /// Writes a line above the progress bars.
    fn line(&self, text: impl Display) {
        self.bars.suspend(|| {
            // Ignores errors: if stderr is closed, there is nowhere to report the error.
            let _ = writeln!(AutoStream::auto(io::stderr()), "{text}");
        });
    }
}

/// Returns whether to write colours to a stream. `NO_COLOR` (no-color.org) and `TERM` can turn them off.
pub(crate) fn is_colored(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Updates a bar with the progress of reading a range.
pub(crate) fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.planned.into());
    bar.set_position(progress.done.into());
    let mut message = String::new();
    if progress.failed > 0 {
        message = format!("{} failed", progress.failed);
    }
    if let Some(ms) = progress.waiting_ms {
        message = format!("the service is unavailable; next try in {} s", ms.div_ceil(1000));
    }
    bar.set_message(message);
}
