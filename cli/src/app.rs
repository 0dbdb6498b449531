//! What all commands use that ask a service.

use std::rc::Rc;

use crate::config::settings::Settings;
use crate::failure::Failure;
use crate::host::stop::Stop;
use crate::output::report::Report;
use crate::voice::Voice;

/// What all commands use that ask a service.
pub(crate) struct App {
    /// All settings.
    pub(crate) settings: Settings,
    /// What is said on stderr.
    pub(crate) voice: Rc<Voice>,
    /// Ctrl-C and SIGTERM.
    pub(crate) stop: Stop,
}

impl App {
    /// Says what is missing in a report, and what helps.
    pub(crate) fn tell(&self, report: &Report) {
        for part in &report.parts {
            if let Some(failure) = &part.failure {
                self.fail(&part.cluster, failure, report.is_named);
            }
        }
        for missing in &report.missing {
            self.fail(&missing.cluster, &missing.failure, report.is_named);
        }
    }

    /// Says why nothing is known of a cluster, and what helps.
    pub(crate) fn fail(&self, cluster: &str, failure: &Failure, is_named: bool) {
        match is_named {
            true => self.voice.error(format_args!("{cluster}: {failure}")),
            false => self.voice.error(failure),
        }
        if let Some(help) = &failure.help {
            self.voice.note(format_args!("try: {help}"));
        }
    }
}
