//! What is said on stderr: errors, notes, and each attempt if that is wanted.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// How much is said, and whether in colour.
#[derive(Debug)]
pub(crate) struct Voice {
    quiet: bool,
    verbose: bool,
    color: bool,
}

impl Voice {
    /// A voice for these flags; colour only for a terminal that wants it.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        Self {
            quiet,
            verbose,
            color: is_colored(&io::stderr()),
        }
    }

    /// A voice that says nothing but errors, for a command that draws on the whole terminal.
    pub(crate) fn silent() -> Self {
        Self::new(true, false)
    }

    /// Whether progress may be shown: to a person who looks at a terminal.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Says what went wrong. It is said even with `--quiet`.
    pub(crate) fn error(&self, text: impl Display) {
        self.line("error", "31", text);
    }

    /// Says what should be known about the results.
    pub(crate) fn warning(&self, text: impl Display) {
        if !self.quiet {
            self.line("warning", "33", text);
        }
    }

    /// Says what was done, or what to do next.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            say(text);
        }
    }

    /// Says what only a person who looks for a fault wants to know.
    pub(crate) fn detail(&self, text: impl Display) {
        if self.verbose {
            say(text);
        }
    }

    fn line(&self, word: &str, color: &str, text: impl Display) {
        match self.color {
            true => say(format_args!("\x1b[1;{color}m{word}:\x1b[0m {text}")),
            false => say(format_args!("{word}: {text}")),
        }
    }
}

/// Whether a stream is a terminal that wants colour (`NO_COLOR`, see no-color.org).
pub(crate) fn is_colored(stream: &impl IsTerminal) -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    stream.is_terminal() && !refused && !is_dumb
}

fn say(text: impl Display) {
    // Nobody can be told that stderr is closed.
    let _ = writeln!(io::stderr(), "{text}");
}
