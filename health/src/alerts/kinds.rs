//! The kinds of alert receivers: a list of all kinds, and the properties that a kind has. Each kind has a file in `kinds/`.

use std::sync::Arc;

use tallyfold::sending::{Delivery, HTTP};
use tallyfold::text::harmless;
use tallyfold::{Result, Timestamp};

use super::alert::Alert;
use super::options::ReceiverOptions;
use crate::incidents::incident::{Incident, id_of};
use crate::rules::names::Severity;

mod alertmanager;
mod opsgenie;
mod pagerduty;
mod slack;
mod teams;
mod webhook;

/// Generates the enum [`ReceiverKind`] from one line for each kind: its type, its name and its file.
macro_rules! kinds {
    ($($(#[$doc:meta])* $Kind:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A kind of receiver of alerts.
            #[non_exhaustive]
            pub enum ReceiverKind { $( $(#[$doc])* $Kind = $name ),+ }
        }

        impl ReceiverKind {
            /// Returns the properties of the kind.
            pub(crate) const fn form(self) -> &'static Form {
                match self { $( Self::$Kind => &$file::FORM ),+ }
            }
        }
    };
}

kinds! {
    /// An Alertmanager, by its API version 2.
    Alertmanager = "alertmanager" in alertmanager,
    /// Any address that accepts JSON.
    Webhook = "webhook" in webhook,
    /// An incoming webhook of Slack.
    Slack = "slack" in slack,
    /// A PagerDuty service, by its Events API version 2.
    PagerDuty = "pagerduty" in pagerduty,
    /// An Opsgenie team, by its Alert API version 2.
    Opsgenie = "opsgenie" in opsgenie,
    /// A channel of Microsoft Teams, by the webhook of a workflow.
    Teams = "teams" in teams,
}

impl ReceiverKind {
    /// Returns the kind in a few words with an article, such as `a Slack channel`.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.form().about
    }

    /// Returns the options that this kind has and some other kinds don't, such as `template`.
    #[must_use]
    pub const fn own_options(self) -> &'static [&'static str] {
        self.form().options
    }

    /// Returns the default address.
    #[must_use]
    pub const fn usual_url(self) -> Option<&'static str> {
        self.form().usual_url
    }

    /// Returns the address for messages: `url` with the path of the kind. The path is not added twice.
    #[must_use]
    pub fn completed(self, url: &str) -> String {
        let path = self.form().path;
        if path.is_empty() {
            // Keeps a slash at the end, because some receivers treat an address with and without it as different addresses.
            return url.to_owned();
        }
        let (base, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        let base = base.trim_end_matches('/');
        let path = if base.ends_with(path) { "" } else { path };
        format!("{base}{path}{query}")
    }
}

/// Adds a path, which may have a query, to an address: before the query of the address.
pub(crate) fn extended(url: &str, path: &str) -> String {
    match url.split_once('?') {
        Some((base, query)) if path.contains('?') => format!("{base}{path}&{query}"),
        Some((base, query)) => format!("{base}{path}?{query}"),
        None => format!("{url}{path}"),
    }
}

/// The properties of a kind of receiver.
pub(crate) struct Form {
    /// The kind in a few words with an article, such as `a Slack channel`.
    pub(crate) about: &'static str,
    /// The default address, if the kind has one.
    pub(crate) usual_url: Option<&'static str>,
    /// The path that is added to an address that doesn't end with it.
    pub(crate) path: &'static str,
    /// Returns the path that is added to the receiver's address for one message.
    pub(crate) path_of: fn(&Notice<'_>) -> String,
    /// The options that this kind has and some other kinds don't.
    pub(crate) options: &'static [&'static str],
    /// How messages are delivered, and which answer means success.
    pub(crate) delivery: Delivery,
    /// Checks the options, and returns the writer of the messages.
    pub(crate) writer: fn(&ReceiverOptions) -> Result<Writer>,
}

/// How messages are delivered to most kinds of receivers. A receiver may get the same message twice without harm, so an
/// unacknowledged message is sent again.
pub(crate) const POST: Delivery = Delivery { is_repeatable: true, hides_address: true, ..HTTP };

/// Makes a text harmless for a chat, so that values in it can't mention people or become links. It replaces invisible
/// characters, and inserts a zero-width space into every text that chats would treat as a mention or a link, such as
/// `@everyone`, `<!channel>`, `https://a.example` and `[text](address)`.
pub(crate) fn for_chat(text: &str) -> String {
    const ZERO_WIDTH_SPACE: char = '\u{200b}';
    let text = harmless(text);
    let mut separated = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        separated.push(character);
        let rest = &text[at + character.len_utf8()..];
        let is_start = match character {
            '@' => rest.starts_with(char::is_alphanumeric),
            '<' => rest.starts_with(['!', '@', '#']),
            ':' => rest.starts_with("//"),
            ']' => rest.starts_with('('),
            _ => false,
        };
        if is_start {
            separated.push(ZERO_WIDTH_SPACE);
        }
    }
    separated
}

/// Returns the command that shows the counts of a firing alert. Returns `None` if [`for_chat`] would change the command, because
/// a changed command would find nothing, and if the command contains a backtick, which would end code in a chat.
pub(crate) fn command_for_chat<'n>(notice: &Notice<'n>) -> Option<&'n str> {
    let query = notice.alert.query.as_str();
    let is_shown = notice.until.is_none() && !query.is_empty();
    (is_shown && !query.contains('`') && for_chat(query) == query).then_some(query)
}

/// Returns a text with at most `most` characters. A longer text is cut off and ends with `…`.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Writes messages as JSON: one with all alerts, or one for each alert.
#[derive(Clone)]
pub(crate) enum Writer {
    /// Every run sends one message with all firing alerts, and with the alerts that ended since the last run. The second
    /// argument is the timestamp at which the receiver ends an alert by itself.
    All(fn(&[Notice<'_>], &str) -> String),
    /// A run sends a message when an alert begins, when it becomes more severe, and when it is over.
    Each(Arc<dyn Fn(&Notice<'_>) -> String + Send + Sync>),
}

/// The content of a message about one alert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    /// The identifier of the incident.
    pub(crate) id: &'a str,
    pub(crate) alert: &'a Alert,
    /// If the alert became more severe, the severity that the receiver was notified of before.
    pub(crate) before: Option<Severity>,
    /// When the alert ended; `None` while it fires.
    pub(crate) until: Option<Timestamp>,
    /// The name of the cluster.
    pub(crate) cluster: &'a str,
}

impl Notice<'_> {
    /// Returns a key of the incident that is unique across clusters. The key can be part of an address.
    pub(crate) fn key(&self) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match self.cluster.len() < 100 && self.cluster.bytes().all(is_plain) {
            true => format!("tallyfold-{}-{}", self.cluster, self.id),
            false => format!("tallyfold-{}-{}", id_of([self.cluster].into_iter()), self.id),
        }
    }

    /// Returns the rule and the sentence, with at most `most` characters.
    pub(crate) fn title(&self, most: usize) -> String {
        let title = format!("{}: {}", self.alert.rule, self.alert.sentence);
        shortened(&for_chat(&title), most)
    }

    /// Returns the beginning of a message: `resolved`, or the severity, with the earlier severity if the alert became
    /// more severe.
    pub(crate) fn head(&self) -> String {
        let severity = self.alert.severity;
        match (self.until, self.before) {
            (Some(_), _) => "resolved".to_owned(),
            (None, Some(before)) => format!("{severity}, previously {before}"),
            (None, None) => severity.to_string(),
        }
    }

    /// Returns the message for a person: the cluster's name, if there is one, the rule, the sentence, the note and the runbook.
    /// The message also contains the beginning of the incident's identifier, which `tallyfold check ack` accepts. The sentence
    /// contains values of events, so it is made harmless for a chat. The note and the runbook come from the rules file, so they
    /// keep their links.
    pub(crate) fn message(&self) -> String {
        let alert = self.alert;
        let mut text = String::new();
        if let Some(cluster) = alert.labels.get("cluster") {
            text = format!("{}: ", harmless(cluster));
        }
        text.push_str(&format!(
            "{}: {} [incident {}]",
            harmless(&alert.rule),
            for_chat(&alert.sentence),
            Incident::short_id(self.id)
        ));
        for more in [&alert.note, &alert.runbook].into_iter().flatten() {
            text.push_str(" — ");
            text.push_str(&harmless(more));
        }
        text
    }
}
