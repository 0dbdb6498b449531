//! What commands that go on for long say about one of their clusters.

use std::fmt::Display;

use crate::app::App;
use crate::failure::Failure;

/// Says what should be known about a cluster.
pub(crate) fn warn(app: &App, cluster: &str, text: impl Display) {
    match app.settings.is_named {
        true => app.voice.warning(format_args!("{cluster}: {text}")),
        false => app.voice.warning(text),
    }
}

/// Says why something failed for a cluster, and what helps.
pub(crate) fn fail(app: &App, cluster: &str, failure: &Failure) {
    match app.settings.is_named {
        true => app.voice.error(format_args!("{cluster}: {failure}")),
        false => app.voice.error(failure),
    }
    if let Some(help) = &failure.help {
        app.voice.note(format_args!("try: {help}"));
    }
}
