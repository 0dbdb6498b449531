//! `tallyfold check test-receivers`: sends a test message to receivers of alerts. It queries no service, and neither reads nor
//! changes the state of `check`.

use std::path::PathBuf;

use clap::Args;
use tallyfold::Timestamp;
use tallyfold_health::{
    AlertLabels, Found, Incident, IncidentPart, Measure, Notified, NotifyOptions, Rules, Severity,
    Status,
};

use crate::app::App;
use crate::arguments::query::time_of;
use crate::config::load::ServiceFlags;
use crate::failure::{Exit, Failure, Result};
use crate::health::notify::{Notifier, NotifyFlags};
use crate::host::session::unix_ms;
use crate::output::sink::write_to;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold check test-receivers --slack oncall
      Sends a test message to the receiver of the section [slack.oncall], and prints whether it
      was accepted.
  tallyfold check test-receivers --pagerduty on-call --resolve
      Sends a test message, and then the message that the test is over.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
The message states that it is a test, and has the severity `info`. Without a flag that names a
receiver, the command sends the message to each receiver of the configuration. The states of check
and run do not change.
Exit codes: 0 if each receiver accepted its messages; 2 for invalid flags or settings; 4 if a
receiver did not accept a message.";

/// The identifier of the incident. It is the same in each test, so PagerDuty and Opsgenie don't open a second one.
const ID: &str = "7e57000000000000";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct TestFlags {
    #[command(flatten)]
    notify: NotifyFlags,
    /// Also sends the message that the test is over; PagerDuty and Opsgenie then close the incident
    #[arg(long)]
    resolve: bool,
    /// The configuration file [default: the same as for check]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Adds this cluster's name and labels, from the configuration, to the message
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
}

impl TestFlags {
    /// Selects the configuration and the cluster that the flags name.
    pub(crate) fn select(&self, service: &mut ServiceFlags) {
        if self.config.is_some() {
            service.config.clone_from(&self.config);
        }
        service.cluster = self.cluster.iter().cloned().collect();
    }
}

/// Sends the messages, and prints which receivers accepted them.
///
/// # Errors
/// For flags and settings that can't be used: then this function sends nothing. Also if stdout can't be written.
pub(crate) async fn run(app: &App, flags: &TestFlags) -> Result<Exit> {
    let settings = app.loaded()?;
    let receivers = flags.notify.or_all_of(settings);
    let mut notifier = Notifier::new(&receivers, settings, &Rules::standard()?, &app.stderr)?;
    if notifier.is_empty() {
        return Err(Failure::usage(
            "test-receivers: the configuration has no receiver; want one, such as --webhook URL",
        )
        .helped_by("tallyfold init, which writes a configuration with examples"));
    }
    let cluster = settings.clusters.iter().find(|_| flags.cluster.is_some());
    let options = NotifyOptions::default()
        .cluster(flags.cluster.clone())
        .labels(AlertLabels(cluster.map_or_else(Vec::new, |cluster| cluster.labels.clone())));
    let now = time_of(unix_ms())?;
    let incidents = [incident(now)];
    let mut messages = vec![&incidents[..]];
    if flags.resolve {
        // A message without incidents reports that the test incident is over.
        messages.push(&[]);
    }
    let mut notified = Notified::default();
    let mut exit = Exit::Fine;
    for incidents in messages {
        let found = Found { incidents, findings: &[], is_cut: false };
        let (next, results) = notifier.send(found, notified, &options, now).await?;
        notified = next;
        let what = match incidents {
            [] => "the end of the test",
            _ => "the test message",
        };
        for (receiver, result) in results {
            match result {
                Ok(0) => {}
                Ok(_) => {
                    write_to(None, |_, out| Ok(writeln!(out, "{receiver}: accepted {what}")?))?
                }
                Err(failure) => {
                    app.stderr.error(&failure);
                    exit = failure.exit;
                }
            }
        }
    }
    Ok(exit)
}

/// Returns the incident that the message is about.
fn incident(now: Timestamp) -> Incident {
    let sentence = "this is a test of the receiver: nothing is wrong, and there is nothing to do";
    let part = IncidentPart {
        id: ID.to_owned(),
        rule: "test message".to_owned(),
        severity: Severity::Info,
        status: Status::Firing,
        group: Vec::new(),
        cause: Vec::new(),
        measure: Measure::Events,
        events: 0,
        since: now,
        until: now,
        silenced: false,
        provisional: false,
        sentence: sentence.to_owned(),
    };
    Incident {
        id: part.id.clone(),
        severity: part.severity,
        status: part.status,
        since: now,
        fired: now,
        until: now,
        headline: part.id.clone(),
        sentence: part.sentence.clone(),
        silenced: false,
        provisional: false,
        missed: false,
        hold: None,
        parts: vec![part],
        history: Vec::new(),
    }
}
