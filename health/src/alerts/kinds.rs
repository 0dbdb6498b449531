//! The list of all kinds of receivers.

use super::form::Form;

mod alertmanager;
mod opsgenie;
mod pagerduty;
mod slack;
mod teams;
mod webhook;

macro_rules! kinds {
    ($($(#[$doc:meta])* $Kind:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A kind of receiver of alerts.
            #[non_exhaustive]
            pub enum ReceiverKind { $( $(#[$doc])* $Kind = $name ),+ }
        }

        impl ReceiverKind {
            /// The properties of the kind.
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
        let url = url.trim_end_matches('/');
        let (base, query) = match url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (url, String::new()),
        };
        match base.ends_with(path) {
            true => format!("{base}{query}"),
            false => format!("{base}{path}{query}"),
        }
    }
}
