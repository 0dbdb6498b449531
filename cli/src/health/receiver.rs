//! Sends alerts to a receiver.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use reqwest::Client;
use sha2::{Digest, Sha256};
use tallyfold::sending::{BaseAddress, Excerpt, broken};
use tallyfold::{Code, Error, HostFailure, Secret};
use tokio::time::sleep;

use super::alert::{Alerts, News};
use super::alertmanager;
use super::receiver_options::ReceiverOptions;
use super::template::{Template, Told};
use crate::arguments::given::Given;
use crate::config::settings::{NetworkSettings, ReceiverKind};
use crate::failure::{Exit, Failure, Result};
use crate::host::exchange::{Broken, Outgoing, Receiver as Hearing};
use crate::host::network;
use crate::stderr::Stderr;

/// How long a message may take, with its answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The pauses before a message is sent again. The next run sends it too.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// A receiver as it was named: in the configuration, or by its address.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The name of its section; `None` for an address.
    pub(crate) name: Option<String>,
    /// The kind of receiver.
    pub(crate) kind: ReceiverKind,
    /// The address and the headers.
    pub(crate) given: Given,
    /// The file with the template of a webhook's messages.
    pub(crate) template: Option<PathBuf>,
    /// The network settings.
    pub(crate) network: NetworkSettings,
}

/// A receiver of alerts.
pub(crate) struct Receiver {
    /// Its name in the state that a run leaves for the next one. It does not contain the address, which may be a
    /// secret.
    pub(crate) key: String,
    shown: String,
    url: String,
    headers: Vec<(String, Secret)>,
    http: Client,
    message: Message,
    stderr: Rc<Stderr>,
}

/// What is sent.
enum Message {
    /// All alerts in one message. They end this many milliseconds later.
    Alertmanager { lifetime_ms: i64 },
    /// A message for each change.
    Webhook(Template),
}

/// Why a message was not taken.
struct Untaken {
    failure: Failure,
    /// Whether it may help to send it again.
    may_help: bool,
    /// Whether the receiver refuses only this message, and may accept others.
    is_of_message: bool,
}

/// What was answered.
#[derive(Default)]
struct Answer {
    status: u16,
    body: Excerpt,
}

impl Receiver {
    /// Checks a receiver, and reads secrets that are kept in files or in the environment.
    ///
    /// # Errors
    /// For settings that can't be used.
    pub(crate) fn new(named: &Named, lifetime_ms: i64, stderr: &Rc<Stderr>) -> Result<Self> {
        let options: ReceiverOptions = named.given.read()?;
        let kind = named.kind.as_str();
        let message = match named.kind {
            ReceiverKind::Alertmanager => Message::Alertmanager { lifetime_ms },
            ReceiverKind::Webhook => {
                let template = named.template.as_deref().map(Template::read).transpose()?;
                let template = template.unwrap_or_else(Template::usual);
                Message::Webhook(template)
            }
        };
        let url = address(&options, named.kind).map_err(|error| {
            let flag = format!("--{kind}");
            match named.name {
                Some(_) => named.given.told(error),
                None if error.code() == Code::InsecureBaseAddress => Failure::usage(format!(
                    "{flag}: by plain http the network could read all, and the address may be a secret; use https, or --allow-http"
                )),
                None => Failure::usage(format!("{flag}: {}", error.message())),
            }
        })?;
        let shown = match &named.name {
            Some(name) => format!("{kind} {name}"),
            None => kind.to_owned(),
        };
        let key = match &named.name {
            Some(name) => format!("{kind}:{name}"),
            None => format!("{kind}:{}", fingerprint(&url)),
        };
        let headers = options.headers.0.secrets();
        Ok(Self {
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect(),
            http: network::client(&named.network)?,
            stderr: Rc::clone(stderr),
            key,
            shown,
            url,
            message,
        })
    }

    /// Sends the news. `told` is what the receiver was told before; afterwards it includes what was sent, also if this
    /// fails.
    ///
    /// # Errors
    /// If the receiver did not accept all messages.
    pub(crate) async fn tell(&self, news: &News, told: &mut Alerts, cluster: &str) -> Result<()> {
        match &self.message {
            Message::Alertmanager { lifetime_ms } => {
                let Some(message) = alertmanager::message(news, told, *lifetime_ms) else {
                    return Ok(());
                };
                let (firing, kept) = (news.firing(told), news.kept(told));
                let sent = self.send(&message).await;
                if sent.is_ok() {
                    told.clear();
                }
                // If it is not known whether the message arrived, the ends of the old and the new alerts have to be
                // sent later.
                told.extend(firing);
                told.extend(kept);
                sent.map_err(|untaken| untaken.failure)
            }
            Message::Webhook(template) => self.tell_changes(template, news, told, cluster).await,
        }
    }

    async fn tell_changes(
        &self,
        template: &Template,
        news: &News,
        told: &mut Alerts,
        cluster: &str,
    ) -> Result<()> {
        let mut refused = None;
        for (id, over) in news.over(told) {
            let until = over.at.to_string();
            let message = template.message(Told {
                alert: &over.alert,
                until: &until,
                cluster,
            });
            if self.takes(&message, &mut refused).await? {
                told.remove(&id);
            }
        }
        for (id, alert) in news.firing(told) {
            let message = template.message(Told {
                alert: &alert,
                until: "",
                cluster,
            });
            if told.contains_key(&id) || self.takes(&message, &mut refused).await? {
                told.insert(id, alert);
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Whether the receiver accepts a message. If it refuses the message for its content, the others are still sent;
    /// the first such refusal is kept.
    async fn takes(&self, message: &str, refused: &mut Option<Failure>) -> Result<bool> {
        match self.send(message).await {
            Ok(()) => Ok(true),
            Err(untaken) if untaken.is_of_message => {
                refused.get_or_insert(untaken.failure);
                Ok(false)
            }
            Err(untaken) => Err(untaken.failure),
        }
    }

    /// Sends a message, and again if that may help.
    async fn send(&self, message: &str) -> Result<(), Untaken> {
        let mut pauses = PAUSES.iter();
        loop {
            let untaken = match self.exchange(message).await {
                Ok(()) => return Ok(()),
                Err(untaken) => untaken,
            };
            match pauses.next().filter(|_| untaken.may_help) {
                None => return Err(untaken),
                Some(pause) => {
                    let failure = &untaken.failure;
                    self.stderr.detail(format_args!("{failure}; sent again"));
                    sleep(*pause).await;
                }
            }
        }
    }

    /// Sends a message once.
    async fn exchange(&self, message: &str) -> Result<(), Untaken> {
        let own = [("content-type", "application/json")];
        let given = self.headers.iter();
        let given = given.map(|(name, value)| (name.as_str(), value.expose()));
        let headers = own.into_iter().chain(given);
        let outgoing = Outgoing::post(&self.http, &self.url, headers, message.as_bytes());
        let mut answer = Answer::default();
        let shown = &self.shown;
        let failed = |failure, name| {
            let error = broken(failure, name, origin(&self.url));
            let text = format!("{shown}: {}", error.message());
            Untaken {
                failure: Failure::new(Exit::Service, text),
                may_help: !error.is_lasting(),
                is_of_message: false,
            }
        };
        match outgoing.exchange(Some(LIMIT), &mut answer).await {
            Err(Broken::Network(name)) => return Err(failed(HostFailure::Network, name)),
            Err(Broken::TimedOut) => return Err(failed(HostFailure::Timeout, "TimeoutError")),
            Err(Broken::Refused(_)) | Ok(()) => {}
        }
        let status = answer.status;
        if (200..300).contains(&status) {
            return Ok(());
        }
        // The address may contain a secret, so it is masked as the headers are.
        let secrets = [Secret::from(self.url.clone())];
        let secrets = self.headers.iter().map(|(_, value)| value).chain(&secrets);
        let said = match answer.body.text(secrets) {
            Some(said) => format!(": {said}"),
            None => String::new(),
        };
        let exit = match status {
            401 | 403 => Exit::Authentication,
            _ => Exit::Service,
        };
        let text = format!("{shown}: the receiver answers with status {status}{said}");
        Err(Untaken {
            failure: Failure::new(exit, text),
            may_help: status == 429 || status >= 500,
            is_of_message: matches!(status, 400 | 413 | 422),
        })
    }
}

impl Hearing for Answer {
    fn head(&mut self, status: u16, _: &[(&str, &str)]) -> tallyfold::Result<bool> {
        self.status = status;
        Ok(!(200..300).contains(&status))
    }

    fn chunk(&mut self, chunk: &[u8]) -> tallyfold::Result<bool> {
        Ok(self.body.push(chunk))
    }

    fn end(&mut self) -> tallyfold::Result<()> {
        Ok(())
    }
}

/// The address that messages are sent to.
fn address(options: &ReceiverOptions, kind: ReceiverKind) -> tallyfold::Result<String> {
    let url = match kind {
        ReceiverKind::Alertmanager => options.url.trim_end_matches('/'),
        // Some receivers treat an address with a slash at the end as a different one.
        ReceiverKind::Webhook => &options.url,
    };
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'#');
    if !query.bytes().all(is_plain) {
        let message = "want a query without characters that must be percent-encoded";
        return Err(Error::argument("url", Code::InvalidBaseAddress, message));
    }
    let is_open = options.headers.0.iter().next().is_none() && kind == ReceiverKind::Alertmanager;
    BaseAddress::parse("url", base, options.allow_http || is_open)?;
    let path = match kind {
        ReceiverKind::Alertmanager if !base.ends_with(alertmanager::PATH) => alertmanager::PATH,
        _ => "",
    };
    Ok(format!("{base}{path}{query}"))
}

/// An address without its path.
fn origin(url: &str) -> &str {
    let host = url.find("//").map_or(0, |at| at + 2);
    let end = url[host..]
        .find(['/', '?'])
        .map_or(url.len(), |at| host + at);
    &url[..end]
}

/// A few characters by which a text is known again.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> ReceiverOptions {
        ReceiverOptions {
            url: url.to_owned(),
            headers: Default::default(),
            allow_http: false,
        }
    }

    #[test]
    fn addresses_are_completed_and_checked() {
        let alertmanager = |url: &str| address(&options(url), ReceiverKind::Alertmanager);
        let webhook = |url: &str| address(&options(url), ReceiverKind::Webhook);
        for url in [
            "http://am:9093",
            "http://am:9093/",
            "http://am:9093/api/v2/alerts",
        ] {
            assert_eq!(alertmanager(url).unwrap(), "http://am:9093/api/v2/alerts");
        }
        assert_eq!(webhook("https://x/y?z=1").unwrap(), "https://x/y?z=1");
        assert_eq!(
            webhook("http://127.0.0.1:1/y").unwrap(),
            "http://127.0.0.1:1/y"
        );
        for url in [
            "http://chat.example/x",
            "https://a@b/",
            "x",
            "https://x/?a b",
        ] {
            assert!(webhook(url).is_err(), "{url}");
        }
        assert_eq!(
            origin("https://chat.example/T0/secret?k=v"),
            "https://chat.example"
        );
        assert_eq!(origin("https://chat.example?k=v"), "https://chat.example");
    }
}
