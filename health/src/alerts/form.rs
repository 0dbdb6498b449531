//! The properties of a kind of receiver, as data.

use std::sync::Arc;

use tallyfold::sending::{Delivery, HTTP};
use tallyfold::text::harmless;
use tallyfold::{Result, Timestamp};

use super::alert::Alert;
use super::options::ReceiverOptions;
use crate::incidents::incident::id_of;

/// A kind of receiver.
pub(crate) struct Form {
    /// What it is, in a few words with an article.
    pub(crate) about: &'static str,
    /// The address that is used if the caller gives none.
    pub(crate) usual_url: Option<&'static str>,
    /// The path below the address, if the caller leaves it out.
    pub(crate) path: &'static str,
    /// What follows the address in the address of a message.
    pub(crate) path_of: fn(&Notice<'_>) -> String,
    /// The options that only some kinds have.
    pub(crate) options: &'static [&'static str],
    /// How messages are delivered, and which answer means success.
    pub(crate) delivery: Delivery,
    /// Checks the options, and returns the writer of the messages.
    pub(crate) writer: fn(&ReceiverOptions) -> Result<Writer>,
}

/// How messages are sent to all receivers. A receiver may get the same message twice without harm, so an unacknowledged
/// message is sent again.
pub(crate) const POST: Delivery = Delivery {
    is_repeatable: true,
    hides_address: true,
    ..HTTP
};

/// Makes a text harmless for a chat, so that values in it mention nobody and link to nothing. Characters that can't be
/// seen are replaced, and a zero-width space splits what chats would read as a mention or a link, such as `@everyone`,
/// `<!channel>`, `https://a.example` and `[text](address)`.
pub(crate) fn for_chat(text: &str) -> String {
    const PART: char = '\u{200b}';
    let text = harmless(text);
    let mut parted = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        parted.push(character);
        let rest = &text[at + character.len_utf8()..];
        let is_begin = match character {
            '@' => rest.starts_with(char::is_alphanumeric),
            '<' => rest.starts_with(['!', '@', '#']),
            ':' => rest.starts_with("//"),
            ']' => rest.starts_with('('),
            _ => false,
        };
        if is_begin {
            parted.push(PART);
        }
    }
    parted
}

/// The beginning of a text, if the text has more than so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Writes messages as JSON: one with all alerts, or one for each alert.
#[derive(Clone)]
pub(crate) enum Writer {
    /// Every run sends one message with all firing alerts, and with the alerts that ended since the last run. The
    /// receiver ends an alert by itself at the timestamp that is passed as text.
    All(fn(&[Notice<'_>], &str) -> String),
    /// A message is sent when an alert begins, when it becomes more severe, and when it is over.
    Each(Arc<dyn Fn(&Notice<'_>) -> String + Send + Sync>),
}

/// What a receiver is notified of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    /// The identifier of the incident.
    pub(crate) id: &'a str,
    /// The alert.
    pub(crate) alert: &'a Alert,
    /// The severity that the receiver was notified of before, if the alert became more severe.
    pub(crate) before: Option<&'a str>,
    /// When it ended; `None` while it fires.
    pub(crate) until: Option<Timestamp>,
    /// The name of the cluster.
    pub(crate) cluster: &'a str,
}

impl Notice<'_> {
    /// A key of the incident that no other cluster's has. It can be a part of an address.
    pub(crate) fn key(&self) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match self.cluster.len() < 100 && self.cluster.bytes().all(is_plain) {
            true => format!("tallyfold-{}-{}", self.cluster, self.id),
            false => format!(
                "tallyfold-{}-{}",
                id_of([self.cluster].into_iter()),
                self.id
            ),
        }
    }

    /// The rule and the sentence, with at most so many characters.
    pub(crate) fn title(&self, most: usize) -> String {
        let title = format!("{}: {}", self.alert.rule, self.alert.sentence);
        shortened(&for_chat(&title), most)
    }

    /// What a person has to know: the cluster if it has a name, the rule, the sentence, its note and its runbook. The
    /// sentence names values of events, so it is written for a chat. The rest is the user's own, links included.
    pub(crate) fn message(&self) -> String {
        let alert = self.alert;
        let mut text = String::new();
        if let Some(cluster) = alert.labels.get("cluster") {
            text = format!("{}: ", harmless(cluster));
        }
        text.push_str(&format!(
            "{}: {}",
            harmless(&alert.rule),
            for_chat(&alert.sentence)
        ));
        for more in [&alert.note, &alert.runbook].into_iter().flatten() {
            text.push_str(" — ");
            text.push_str(&harmless(more));
        }
        text
    }
}
